/* Tables: the index tables that a workload wants beside a partition key: views by another property,
 * which answer from one place the queries that name that property and not the key. */
#pragma once

#include "advise/evaluate.h"

enum { ADVISE_TABLES_MAX = 3 };

struct advise_table {
    uint8_t path;            /* of the workload: the partition key of the view */
    struct slice view;       /* that there is already; data NULL: it is a proposal */
    double queries;          /* share of all operations that it answers */
    double saved_ru;         /* RU/s that these cost less */
    double cost_ru;          /* RU/s for keeping its rows, at most: as of whole items */
    double bytes;            /* it stores, the same */
    struct slice name;       /* of the property */
    struct slice reason;     /* in words */
    struct slice definition; /* JSON, of a proposal; in the arena as all of these */
};

/* Beside this key: those that there are, and those that save more than they cost, the best first.
 * In the arena, ADVISE_TABLES_MAX of each at most. */
size_t advise_tables_find(const struct advise_workload *workload, const struct advise_key *key,
                          const struct advise_options *options, struct arena *arena,
                          struct advise_table **ret_tables);
