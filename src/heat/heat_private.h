/* Heat from within: heat.c has the thread and the decisions, heat_harvest.c what is written down,
 * heat_series.c what is read back, heat_hot.c who is reported. */
#pragma once

#include "base/thread.h"
#include "heat/heat.h"

enum { HEAT_MINUTE_MS = 60000 };

/* A container at one look, with a reference, and whose it is. */
struct heat_subject {
    struct container *container;
    struct slice account, database; /* in the arena of the look */
    bool with_sources;              /* of the migration in its state, which is being published */
};

/* Two neighbours that have been calm. */
struct heat_calm {
    uint32_t left, right;
    int64_t since_ms;
};

/* Who is, or may become, a report. */
struct heat_case {
    struct heat_report report; /* its slices are in texts */
    uint8_t *texts;            /* owned */
    unsigned looks;            /* in which it was in trouble */
    int64_t last_ms;           /* when it last was */
    bool reported;
    bool fresh; /* seen in this look */
};

/* When the shares of a container last followed its load. */
struct heat_followed {
    uint32_t container; /* number */
    int64_t minute;
};

/* When the sizes of a partition's keys were looked at. */
struct heat_sized {
    uint32_t partition;
    int64_t again_ms;
    bool there, looked; /* in this look */
};

struct heat {
    struct heat_options options;
    const struct clock *clock;

    struct mutex record_lock; /* held while records are read, changed and written */
    int64_t harvested;        /* under it: the last minute that is written down whole */
    int64_t folded;           /* minute of the last folding */
    uint32_t *known;          /* partitions whose places are written; ascending */
    size_t known_count, known_capacity;

    struct mutex report_lock; /* for a moment; taken last */
    struct heat_case *cases;
    size_t case_count;

    struct mutex lock; /* for a moment: of the thread, and of whom it asks */
    struct condition wake;
    bool stopping;
    struct migrator *migrator;
    struct thread thread;

    /* the look's alone */
    int64_t decided; /* minute of the last decisions */
    struct heat_calm *calm;
    size_t calm_count;
    struct heat_followed *followed;
    size_t followed_count, followed_capacity;
    struct heat_sized *sized;
    size_t sized_count, sized_capacity;
};

/* All containers, each with a reference that heat_subjects_done lets go. */
struct heat_subject *heat_subjects(struct heat *heat, struct arena *arena, size_t *ret_count);
void heat_subjects_done(struct heat_subject *subjects, size_t count);

/* Writes down what is over, up to the minute before now; with_present: the present one too. */
NODISCARD bool heat_harvest(struct heat *heat, const struct heat_subject *subjects, size_t count,
                            int64_t now_ms, bool with_present, struct error *err);

/* Folds, expires, and forgets containers that are gone. Every ten minutes. */
NODISCARD bool heat_tidy(struct heat *heat, int64_t now_ms, struct error *err);

/* The counters of a partition for a minute, into a record. */
void heat_gather(struct heat *heat, uint32_t partition, int64_t minute, int64_t now_ms,
                 struct heat_record *record);

/* Looks for keys in trouble. */
NODISCARD bool heat_look_hot(struct heat *heat, const struct heat_subject *subjects, size_t count,
                             int64_t now_ms, struct error *err);

/* Other shares for the spans of a container, if some of them have refused requests for long and
 * others have throughput to spare; and a note that it was done now. */
bool heat_follow(struct heat *heat, const struct container *container,
                 const struct heat_figures *figures, int64_t now_ms, double *ret_shares);

void heat_cases_free(struct heat *heat);

/* One key value, or all below a partial one, has the span for itself. */
bool heat_span_is_isolated(const struct partition_span *span);
