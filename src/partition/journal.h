/* Journal: which keys of a partition were touched, commit by commit, while a migration needs to
 * know. Group commit writes it in the batch that touches them (commit_partition_tap).
 *
 *     j | lsn, 8 | nth, 4  -> notes, again and again:
 *
 *         1   0: look at the key; 1: it was deleted; 2: it was put, and the value is here
 *         3   length of the key, then the key
 *         1   of a value that is here: its length, then the value
 *
 * The lsn is that of the last transaction of a group, so entries are in the order of the groups; a
 * group that touched much has several. Numbers are big-endian. Of two notes of a key the later
 * counts. Small values are in it, as most are: entries of an index, numbers, counters. Of larger
 * ones whoever reads it looks at the key, which may tell of a later commit. Meta, sums of the whole
 * partition and the journal itself are left out. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "engine/engine.h"

enum {
    JOURNAL_KEY_LEN = 13,
    JOURNAL_VALUE_USUAL = 1024 * 1024,
    JOURNAL_SMALL_MAX = 160, /* bytes of a value that is noted */
    JOURNAL_NOTE_MAX = 5 + ENGINE_KEY_MAX + JOURNAL_SMALL_MAX,
};

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

void journal_append(const struct engine_op *op, struct buf *value);

/* What became of a key. */
struct journal_note {
    struct slice key;
    bool known;                /* else look */
    struct engine_value value; /* as it was then */
};

/* Takes the next note off a value; it points into it. ERROR_STORE_CORRUPT. */
NODISCARD bool journal_next(struct slice *value, struct journal_note *ret_note, struct error *err);
