/* What a re-key will do, for whoever begins it or only wants to know. */
#pragma once

#include "migration/migrator_private.h"
#include "migration/mover_private.h"

struct migrator_rekey_plan {
    struct definition *definition; /* a reference */
    uint32_t sources[MIGRATION_SOURCES_MAX];
    size_t source_count;
    struct slice bounds[MIGRATION_TARGETS_MAX]; /* in the arena */
    uint32_t nodes[MIGRATION_TARGETS_MAX];
    double weights[MIGRATION_TARGETS_MAX]; /* to divide the throughput by, if weighed */
    bool weighed;
    size_t target_count;
    uint64_t items, bytes; /* as the counters have them */
};

/* Errors as migrator_rekey. The plan is done in any case. */
NODISCARD bool migrator_rekey_plan_make(struct catalogue *catalogue,
                                        const struct container *container,
                                        const struct definition_rekey *rekey, struct arena *arena,
                                        struct migrator_rekey_plan *ret_plan, struct error *err);

/* Cuts the targets as placement rules want it and gives each a node. ERROR_BAD_REQUEST: a rule
 * names values of paths that are no longer in the key. ERROR_NODE_DOWN: no node that a rule allows
 * is here. */
NODISCARD bool migrator_rekey_plan_place(struct catalogue *catalogue,
                                         const struct container *container, struct arena *arena,
                                         struct migrator_rekey_plan *plan, struct error *err);
void migrator_rekey_plan_done(struct migrator_rekey_plan *plan);
CLEANUP_VALUE_FN(struct migrator_rekey_plan, migrator_rekey_plan_done)

/* A sample of the items, copied for the time it takes (migrator_rekey_sample.c). */
struct migrator_rekey_sample {
    struct engine *engine; /* in memory */
    struct commit *commit;
    struct item_scope scope;
    struct arena *arena;
    uint64_t items, bytes;
};

struct migrator_rekey_sampled {
    struct item item;
    struct mover_rekeyed rekeyed;
};

/* Done in any case. placed: the container as it will be; borrowed. */
NODISCARD bool migrator_rekey_sample_init(struct migrator_rekey_sample *sample,
                                          const struct item_space *space,
                                          const struct definition_fields *placed,
                                          struct error *err);
void migrator_rekey_sample_done(struct migrator_rekey_sample *sample);
CLEANUP_VALUE_FN(struct migrator_rekey_sample, migrator_rekey_sample_done)
NODISCARD bool migrator_rekey_sample_copy(struct migrator_rekey_sample *sample,
                                          const struct migrator_rekey_sampled *list, size_t count,
                                          struct error *err);
