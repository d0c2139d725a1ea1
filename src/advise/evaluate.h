/* Evaluate: what a workload would be like under a partition key, in figures. Pure: the same
 * workload gives the same figures. */
#pragma once

#include "advise/candidate.h"

/* A view of the container that has its items by another property. */
struct advise_view {
    struct slice name;
    struct slice path; /* of the container's items: /address/city */
};

struct advise_options {
    uint32_t partitions;              /* physical, to judge at; 0: 16 */
    uint64_t partition_ru_max;        /* RU/s one may give; 0: 10,000 */
    uint64_t logical_bytes_max;       /* of one key value; 0: 20 GB */
    const struct advise_key *current; /* that the operations ran with; NULL: not known */
    uint32_t current_partitions;      /* of it; 0: 1 */
    double load;                      /* times the recorded load; 0: 1 */
    double ru_per_second_ideal;       /* advise_ideal of these, where it is at hand; 0: it is not */
    struct advise_target target;      /* for the command to run */
    const struct advise_view *views;  /* index tables that there are; borrowed */
    size_t view_count;
};

/* Keys are judged at so many times today's data, load and partitions. There are as many more values
 * then, each with as much less of all, but for those that are more than a partition's part today:
 * these keep their share. */
enum { ADVISE_SCALES = 3 };
extern const uint32_t advise_scales[ADVISE_SCALES];

struct advise_figures {
    uint64_t keys;                    /* values in the sample */
    double storage_top, storage_gini; /* largest share of one value; 0 even to 1 uneven */
    double ru_top, ru_gini;           /* of RU that go to one value */
    double window_top;                /* the same within short times: a hot spot that moves */
    double one_logical, one_physical; /* share of operations that one such partition answers */
    double fan_out;                   /* share of RU spent on asking several */
    double everywhere;                /* share of operations that must ask every partition */
    double ru_each[ADVISE_SCALES];    /* of an operation, at each of advise_scales */
    double growth;                    /* how needs outgrow the data, over the scales; 1: not */
    double missing;                   /* share of items without a value */
    double changed;                   /* operations that changed a path of it */
    double transactions_split;        /* share of transactions that would be over several keys */
    double days_to_limit;             /* until a value is over the logical limit; HUGE_VAL */
    double full;                      /* the largest value over the logical limit */
    double bytes_top;                 /* stored under the largest value now */
    double ru_per_second;             /* to provision, so that the hottest partition keeps up */
    double ru_per_second_ideal;       /* if all were even and nothing had to be asked twice */
    double key_ru_per_second;         /* the hottest value at its busiest */
    bool moves;                       /* the hot spot goes from value to value: time as key */
    bool grows;                       /* later items have larger values */
    bool counter;                     /* a number of its own for each item, that grows; */
    bool counter_bare;                /* with no text before it that could tell shards apart */
    const advise_value *top_storage, *top_ru; /* of one of its items or operations; NULL: none */
};

/* RU/s to provision if every operation went anywhere by chance: what all keys are measured by. */
double advise_ideal(const struct advise_workload *workload, const struct advise_options *options);

void advise_evaluate(const struct advise_workload *workload, const struct advise_key *key,
                     const struct advise_options *options, struct advise_figures *ret_figures);

/* What one operation costs under a key, and how many partitions it meets. */
struct advise_visit {
    enum advise_known known;
    int64_t cru;         /* in all */
    uint32_t partitions; /* that it asks: 1 or more */
    int64_t grows_cru;   /* more for each time the number of partitions is there again; 0: it asks
                          * no more of them then */
    uint64_t key;        /* of one logical partition; else of the first */
};
struct advise_visit advise_visit_of(const struct advise_key *key,
                                    const struct advise_operation *operation,
                                    const struct advise_options *options, uint64_t chance);

/* The options with their presets filled in. */
struct advise_options advise_options_complete(const struct advise_options *options);
