/* Resume tokens: where a change stream stands, in a client's hands.
 *
 *     {_data: "82..."}   upper-case hex of 82 | time, 8 | origin, 4 | ordinal, 4 | kind, 1
 *                        and of kind 2 | fragment, 4
 *
 * Texts sort as the places do. Kind 0: the change at the place was told; 1: the invalidation that
 * follows it, too; 2: of the change, which is told in fragments (split.h), those up to this one.
 * Where nothing was to be told origin and ordinal are the highest. */
#pragma once

#include "base/buf.h"
#include "document/value.h"
#include "partition/history.h"

struct mongo_token {
    struct history_place place;
    bool invalidated;
    uint32_t fragment; /* the last that was told; 0: the change is told as a whole */
};

/* Behind everything of that time. */
struct mongo_token mongo_token_behind(uint64_t time);

/* Is it of a change, and not of a time alone? */
bool mongo_token_is_event(const struct mongo_token *token);

void mongo_token_append(struct buf *out, struct slice name, const struct mongo_token *token);

/* MONGO_INVALID_RESUME_TOKEN: it is none of ours. */
NODISCARD bool mongo_token_read(struct slice document, struct mongo_token *ret_token,
                                struct error *err);
