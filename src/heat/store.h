/* Heat store: the records of heat on the root node, for a week: minute by minute for the last day,
 * in tens of minutes before. Beside them which span of routing keys each physical partition had,
 * and when partitions were split, merged, moved or isolated.
 *
 * Of a container there are at most 1,440 records of a minute and 1,009 of ten, each with at
 * most 3.3 KB for its hottest keys and, for each partition that was asked in that time, some 50
 * bytes (at most 400); usually a container of one partition takes under 2 MB. Nothing is written of
 * a time in which nobody asked. All functions block. */
#pragma once

#include "catalogue/catalogue.h"
#include "heat/record.h"

enum {
    HEAT_FOLD_MINUTES = 10,    /* of a record of the days before the last */
    HEAT_DAY_MINUTES = 1440,   /* kept minute by minute */
    HEAT_WEEK_MINUTES = 10080, /* kept at all */
    HEAT_EVENTS_MAX = 4096,    /* of a container; the oldest go first */
};

/* A physical partition that there is or was. */
struct heat_place {
    uint32_t partition, node;
    int64_t since, until; /* minutes; until 0: it is there still */
    struct slice min, max;
};

/* A migration, when its map was published. */
struct heat_event {
    int64_t at_ms;
    enum migration_kind kind;
    size_t source_count, target_count;
    uint32_t *sources; /* ids */
    uint32_t *targets; /* ids, ascending and in key order */
};

/* --- Writing --------------------------------------------------------------------------------- */

/* Gathers writes, so that many containers share a commit. */
struct heat_batch {
    struct catalogue *catalogue; /* borrowed */
    struct arena *arena;         /* owned */
    struct engine_op *ops;
    size_t count, bytes;
};

void heat_batch_init(struct heat_batch *batch, struct catalogue *catalogue);
void heat_batch_done(struct heat_batch *batch); /* what is not written is forgotten */
CLEANUP_VALUE_FN(struct heat_batch, heat_batch_done)
NODISCARD bool heat_batch_write(struct heat_batch *batch, struct error *err);

/* The counters of a minute, read while it goes on or behind it; what is stored of it is met. */
NODISCARD bool heat_store_save(struct heat_batch *batch, uint32_t container, int64_t minute,
                               const struct heat_record *record, struct error *err);
NODISCARD bool heat_store_put_place(struct heat_batch *batch, uint32_t container,
                                    const struct heat_place *place, struct error *err);
NODISCARD bool heat_store_put_event(struct heat_batch *batch, uint32_t container,
                                    const struct heat_event *event, struct error *err);

/* Folds minutes older than a day into tens and removes what is older than a week. */
NODISCARD bool heat_store_fold(struct heat_batch *batch, uint32_t container, int64_t now_minute,
                               struct error *err);

/* Removes everything of a container. */
NODISCARD bool heat_store_forget(struct heat_batch *batch, uint32_t container, struct error *err);

/* --- Reading --------------------------------------------------------------------------------- */

/* Calls visit for each record of the minutes from first to last, oldest first. */
typedef bool heat_store_visit(void *context, int64_t minute, uint32_t minutes,
                              const struct heat_record *record, struct error *err);
NODISCARD bool heat_store_read(struct catalogue *catalogue, uint32_t container, int64_t first,
                               int64_t last, heat_store_visit *visit, void *context,
                               struct error *err);

/* *ret_found false: it is not known. */
NODISCARD bool heat_store_place(struct catalogue *catalogue, uint32_t container, uint32_t partition,
                                struct arena *arena, struct heat_place *ret_place, bool *ret_found,
                                struct error *err);
NODISCARD bool heat_store_places(struct catalogue *catalogue, uint32_t container,
                                 struct arena *arena, struct heat_place **ret_places,
                                 size_t *ret_count, struct error *err);
/* In the order of their targets' ids, which is that of time. */
NODISCARD bool heat_store_events(struct catalogue *catalogue, uint32_t container,
                                 struct arena *arena, struct heat_event **ret_events,
                                 size_t *ret_count, struct error *err);
NODISCARD bool heat_store_has_event(struct catalogue *catalogue, uint32_t container,
                                    uint32_t first_target, bool *ret_has, struct error *err);

/* The numbers of all containers that anything is kept of, ascending. */
NODISCARD bool heat_store_containers(struct catalogue *catalogue, struct arena *arena,
                                     uint32_t **ret_numbers, size_t *ret_count, struct error *err);
