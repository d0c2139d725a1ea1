/* Journal: which keys of a partition were touched, commit by commit, while a migration needs to
 * know. Group commit writes it in the batch that touches them (commit_partition_tap).
 *
 *     j | lsn, 8 | nth, 4  -> length, 4, and key; again and again
 *
 * The lsn is that of the last transaction of a group, so entries are in the order of the groups; a
 * group that touched much has several. Numbers are big-endian. What became of a key is not in it:
 * whoever reads it looks at the key. Meta, sums of the whole partition and the journal itself are
 * left out. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "engine/engine.h"

enum { JOURNAL_KEY_LEN = 13, JOURNAL_VALUE_USUAL = 1024 * 1024 };

/* Everything up to here was read. Zeros: nothing. */
struct journal_position {
    uint64_t lsn;
    uint32_t nth;
};

void journal_key_encode(struct journal_position position, uint8_t ret_key[JOURNAL_KEY_LEN]);

/* ERROR_STORE_CORRUPT. */
NODISCARD bool journal_key_decode(struct slice key, struct journal_position *ret_position,
                                  struct error *err);

/* The entries behind a position; the bounds are in the arena. */
struct engine_range journal_range(struct journal_position after, struct arena *arena);

/* Is a key of the partition noted at all? */
bool journal_notes(struct slice key);

void journal_append(struct slice key, struct buf *value);

/* Takes the next key off a value; it points into it. ERROR_STORE_CORRUPT. */
NODISCARD bool journal_next(struct slice *value, struct slice *ret_key, struct error *err);
