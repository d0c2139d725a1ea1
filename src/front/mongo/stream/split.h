/* Split: an event that is larger than a document may be, as fragments that are not.
 *
 *     {_id: token of the fragment, splitEvent: {fragment: 1, of: 2}, some fields of the event}
 *
 * Fields are not cut: the shortest come first, as many in a fragment as fit. The same event is
 * always split the same way, so that a client resumes behind a fragment by its number. */
#pragma once

#include "front/mongo/stream/token.h"

enum { MONGO_FRAGMENT_BYTES_MAX = 16 * 1024 * 1024 };

struct mongo_split {
    struct mongo_token token;        /* of the event */
    const struct mongo_piece *first; /* by fragment; in the arena */
    size_t piece_count;
    uint32_t count; /* fragments */
};

/* How the event, which has a token as its _id, is split; borrows it. 10334: a field alone is too
 * large for a fragment of that many bytes. */
NODISCARD bool mongo_split_plan(struct slice event, size_t bytes_max, struct arena *arena,
                                struct mongo_split *ret_split, struct error *err);

/* Appends a fragment, from 1 on, as the document `name`. */
void mongo_split_append(const struct mongo_split *split, uint32_t fragment, struct slice name,
                        struct buf *out);
