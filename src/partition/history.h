/* History: what was changed in this node's partitions lately, for readers who want every change in
 * one order over all nodes (MongoDB's change streams).
 *
 * It is a partition of its own on each node, PARTITION_HISTORY. Whoever writes something that is to
 * be told adds a part for it to the same batch of group commit; a record stays where it was
 * written, wherever the partition it tells of moves. In time the oldest go (history_trim).
 *
 *     h | time, 8 | origin, 4 | ordinal, 4     -> record; time 0: the mark
 *
 * time is cluster time (commit_clock.h), origin the physical partition whose item was changed. A
 * record (format 1, numbers big-endian):
 *
 *     1   format, 1
 *     1   kind (enum history_kind)
 *     8   wall clock, ms
 *     4   number of the account
 *     4   number of the database
 *     4   number of the container; 0: of none
 *     2   length of the database's name, then the name
 *     2   length of the container's name, then the name
 *     ..  BSON, by kind:
 *             of an item     {k: documentKey, d: document, u: updateDescription,
 *                             b: document before, a: document after}, as far as they are kept
 *             of a container {o: description, t: name it gets, x: number of the container that
 *                             had the name and was dropped}
 *             touched        no BSON: the number of the item, 8, for whoever keeps something by
 *                             what the item is now (front/rest/views/); no language tells of it
 *
 * The mark: 8 bytes, the time up to which records were removed. Behind it, with ordinal 1, the gap:
 * likewise, the time up to which records are missing that another node had, which was removed.
 * Bytes and records are counted under c | h. */
#pragma once

#include "base/arena.h"
#include "partition/commit.h"
#include "partition/commit_clock.h"

enum history_kind {
    /* items */
    HISTORY_INSERT = 1,
    HISTORY_UPDATE = 2,
    HISTORY_REPLACE = 3,
    HISTORY_DELETE = 4,
    HISTORY_TOUCHED = 5,
    /* the catalogue */
    HISTORY_CREATE = 16,
    HISTORY_DROP = 17,
    HISTORY_RENAME = 18,
    HISTORY_DROP_DATABASE = 19,
    HISTORY_CREATE_INDEXES = 20,
    HISTORY_DROP_INDEXES = 21,
    HISTORY_MODIFY = 22,
    HISTORY_SHARD = 23,
    HISTORY_RESHARD = 24,
    HISTORY_REFINE = 25,
};

enum { HISTORY_EPOCH = 1, HISTORY_KEY_LEN = 17, HISTORY_NAME_MAX = UINT16_MAX };

/* Where a record stands among all. */
struct history_place {
    uint64_t time;
    uint32_t origin, ordinal;
};

int history_place_compare(struct history_place a, struct history_place b);

/* Whose changes they are. Names are borrowed. */
struct history_origin {
    bool kept;     /* changes are told to MongoDB's change streams */
    bool images;   /* with the documents before and after them */
    bool followed; /* items that were touched are noted, by number */
    uint32_t account, database, container;
    struct slice database_name, container_name;
};

struct history_record {
    struct history_place place;
    enum history_kind kind;
    int64_t wall_ms;
    struct history_origin origin;
    struct slice payload; /* BSON, or a number */
};

/* Is anything written down of its items? */
static inline bool history_is_kept(const struct history_origin *origin)
{
    return origin->kept || origin->followed;
}

/* The number of an item that was touched. ERROR_STORE_CORRUPT. */
NODISCARD bool history_touched_number(const struct history_record *record, uint64_t *ret_number,
                                      struct error *err);

/* In the arena, to be stamped: the key's time, and the wall clock. */
struct slice history_key_encode(struct history_place place, struct arena *arena);
struct slice history_record_encode(const struct history_record *record, struct arena *arena);
enum { HISTORY_KEY_TIME_AT = 1, HISTORY_VALUE_WALL_AT = 2 };

/* ERROR_STORE_CORRUPT. The slices point into key and value. */
NODISCARD bool history_record_decode(struct slice key, struct slice value,
                                     struct history_record *ret_record, struct error *err);

/* The part of a batch that puts these records, and counts them. */
struct commit_part history_part(struct engine_op *ops, size_t count, struct arena *arena);

/* What changes of an origin are noted under, and what a reader asks of (commit_clock_noted): a
 * container by its name, a database, or an account; empty: all of them. */
uint64_t history_hash(uint32_t account, struct slice database, struct slice container);
void history_note(struct commit_clock *clock, const struct history_origin *origin, uint64_t time);

/* Makes the partition if the engine has none, and lets the clock begin behind what is in it. */
NODISCARD bool history_join(struct engine *engine, struct commit_clock *clock, struct error *err);

/* How many of a node's partitions are others. */
size_t history_others(const struct engine_partition *partitions, size_t count);

/* The last time of which records may have been removed, or went with another node; 0: none were. */
NODISCARD bool history_mark(struct engine *engine, uint64_t *ret_time, struct error *err);

/* The time of the last record; 0: there is none. */
NODISCARD bool history_last(struct engine *engine, uint64_t *ret_time, struct error *err);

/* Records up to this time are missing, for the node that had them goes: who stands before it is
 * told so. One caller at a time. */
NODISCARD bool history_gap(struct engine *engine, struct commit *commit, uint64_t time,
                           struct error *err);

struct history_size {
    uint64_t bytes, records;
};

/* Keys and values of all records that are kept. */
NODISCARD bool history_size(struct engine *engine, struct history_size *ret_size,
                            struct error *err);

struct history_limits {
    int64_t retention_ms;
    uint64_t bytes_max; /* 0: no limit */
};

/* Removes what is older than the retention, and the oldest of what is too much, now and then: not
 * before it is worth it. One caller at a time. */
NODISCARD bool history_trim(struct engine *engine, struct commit *commit,
                            const struct history_limits *limits, int64_t now_ms, bool *ret_removed,
                            struct error *err);
