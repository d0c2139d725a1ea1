/* Advise: which partition key a container should have, with the reasons in words. */
#pragma once

#include "advise/tables.h"

struct advise_proposal {
    struct advise_key key;
    struct advise_figures figures;
    double score;   /* what it needs over what would be needed ideally, and faults; 1 is best */
    bool good;      /* nothing speaks against it */
    bool dominated; /* one key for all, where another key does the same and can grow */
    struct slice name, definition, reason; /* in the arena; definition: JSON members */
};

enum { ADVISE_PROPOSALS_MAX = 10 };

struct advise_report {
    struct advise_proposal *proposals; /* the best first */
    size_t count;
    bool recommended;     /* there is enough to judge by, and the first is good */
    bool enough;          /* there is enough to judge by */
    struct slice summary; /* what to do, in a sentence or two */
    struct slice rekey; /* the command that does it; empty: there is nothing to do, or none does */
    bool has_current;
    struct advise_proposal current; /* the key it has now, judged the same way */
    double ru_per_second;        /* what is needed with the key it has or, if more, the first one */
    double bytes;                /* stored */
    bool matters;                /* the container is, at this load, past one partition */
    struct advise_table *tables; /* beside the key it has or, if it is better, the first one */
    size_t table_count;
};

enum {
    ADVISE_DOCUMENTS_MIN = 20, /* fewer, or */
    ADVISE_RECORDED_MIN = 50,  /* fewer recorded operations, say nothing of a key */
    ADVISE_FEW_VALUES = 300,   /* fewer are warned of: what they can be spread over is limited */
};

/* Judges all candidates and the current key. Everything is in the arena. Of fewer than two
 * documents there are no proposals. */
struct advise_report advise_report_make(const struct advise_workload *workload,
                                        const struct advise_options *options, struct arena *arena);

/* Appends the report as JSON (docs/advise.md), or as text for people. */
void advise_report_json(const struct advise_workload *workload, const struct advise_report *report,
                        struct buf *out);
void advise_report_text(const struct advise_workload *workload, const struct advise_report *report,
                        struct buf *out);
