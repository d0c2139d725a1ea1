/* Changes: what was written to a physical partition behind the LSN of a block, as entries of its
 * index of vectors, so that a block serves for longer than to the next commit.
 *
 * They are a log. Whoever searches at an LSN that it does not reach reads what is missing from the
 * change feed of the partition, under the snapshot of the search, and adds it for the next; where
 * another has added something meanwhile it keeps what it read to itself. So a search sees exactly
 * what its snapshot has, whichever is the later one. What an item was before is to be passed over
 * where it stands in the block or earlier in the log (query_since_has). An item that was deleted
 * may be in no record: its entry in the block leads to nothing, as that of one that has expired.
 *
 * Bounded: beyond its maximum the block is of no use any more. For any number of threads. */
#pragma once

#include "base/buf.h"
#include "item/cursor.h"

struct query_changes; /* opaque, owned by its block */

/* An item as it was written. */
struct query_change {
    uint64_t number;
    struct slice key;
    struct slice value; /* of its entry; data NULL: it has none any more */
};

struct query_changes *query_changes_new(uint64_t lsn, size_t max);
void query_changes_free(struct query_changes *changes); /* NULL is fine; nobody uses it */

/* How many there are. */
size_t query_changes_count(struct query_changes *changes);

/* Whether a log has what a search at one LSN has to know of. */
enum query_since_state {
    QUERY_SINCE_WHOLE,
    QUERY_SINCE_FORGOTTEN, /* not any more: the search is older than its last marks */
    QUERY_SINCE_WORN,      /* there are more changes than it may have */
};

struct query_since {
    const struct query_change **list; /* of each item its last; owned */
    size_t count;
    uint64_t *numbers; /* of them, by hash; owned */
    size_t numbers_size;
    struct arena *arena; /* of what was read and could not be added; owned */
    size_t read;         /* items that were read for it */
};

void query_since_done(struct query_since *since);

/* Has the item with this number been written since? */
bool query_since_has(const struct query_since *since, uint64_t number);

/* What a search that has no further changes than these needs of them is made ready: those of the
 * log up to the LSN of the view, and what is missing is read. index: whose entries they are.
 * grown(self, bytes): the log takes so many more. *ret_since is set where it is whole. */
NODISCARD bool query_changes_since(struct query_changes *changes, const struct view *view,
                                   uint64_t lsn, const struct index_definition *index,
                                   void (*grown)(void *self, size_t bytes), void *self,
                                   struct query_since *ret_since, enum query_since_state *ret_state,
                                   struct error *err);
