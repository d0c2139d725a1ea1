/* Write records: what became of writes that a client may send again, kept beside the items they
 * wrote, in the same commit.
 *
 *     s | session, 16 | statement, 4 | routing key | pk  -> number, 8 | wall clock, ms, 8 | outcome
 *
 * A client numbers the requests of a session, and the statements of a request. The next request of
 * a session overwrites what the one before has left where it writes to the same logical partition;
 * what it leaves elsewhere is swept once it is old. A record belongs to the routing key of its
 * item, and migrations carry it along; a re-key does not. The outcome is the front's. */
#pragma once

#include "item/items.h"

enum { WRITE_RECORD_SESSION_LEN = 16, WRITE_RECORD_PREFIX_LEN = 1 + 16 + 4 };

struct write_record {
    const uint8_t *session; /* WRITE_RECORD_SESSION_LEN bytes */
    uint32_t statement;
    int64_t number;
    int64_t wall_ms;
    struct slice outcome;
};

/* Engine key and value of a record in a logical partition, in the arena. */
struct slice write_record_key(const struct write_record *record, struct slice logical,
                              struct arena *arena);
struct slice write_record_value(const struct write_record *record, struct arena *arena);

struct write_records {
    struct write_record *list; /* those of the number, in the arena */
    size_t count;
    int64_t number_max; /* the highest number that was found; -1: none */
};

enum { WRITE_RECORDS_MAX = 1 << 18 };

/* The records of one number of a session, in all partitions of a container. ERROR_TOO_LARGE: more
 * than there can be. */
NODISCARD bool write_records_find(const struct item_space *space, const uint8_t *session,
                                  int64_t number, struct arena *arena,
                                  struct write_records *ret_records, struct error *err);

/* Nothing that was begun before is still on its way: what write_records_find does not find from now
 * on will never be there. Blocks. ERROR_PLEDGED, or a node cannot tell yet. */
NODISCARD bool write_records_settle(const struct item_space *space, struct error *err);

/* Removes records from before a time, up to max of them, behind the position (an engine key; empty:
 * from the first), which moves on. *ret_more false: that was the last. */
NODISCARD bool write_records_sweep(const struct item_scope *scope, int64_t before_ms, size_t max,
                                   struct buf *position, bool *ret_more, size_t *ret_removed,
                                   struct error *err);
