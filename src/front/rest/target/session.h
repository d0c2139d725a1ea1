/* Sessions: tokens that say how far a client has seen a partition, {range}:-1#{lsn}. Libraries of
 * before 2018-06-18 know the simple form only, {range}:{lsn}. */
#pragma once

#include "front/rest/target/items.h"

/* The tokens of a list, in the arena. ERROR_BAD_REQUEST. */
NODISCARD bool rest_session_parse(struct slice text, struct arena *arena,
                                  struct item_token **ret_tokens, size_t *ret_count,
                                  struct error *err);

/* Reads the token of the request, several joined by commas, into items, and checks those of present
 * ranges. ERROR_SESSION_AHEAD: a partition has not got that far, or is one that nobody has given
 * out; ERROR_BAD_REQUEST: it is no token. */
NODISCARD bool rest_session_check(struct rest_call *call, struct rest_items *items,
                                  struct error *err);

/* Appends the token of one range in the form that the call's library knows. */
void rest_session_append(const struct rest_call *call, uint32_t range, uint64_t lsn,
                         struct buf *out);

/* The name of the call's database, where the path may have its rid. */
struct slice rest_session_database(struct rest_call *call);

/* The headers by which clients keep their tokens apart: the container's _rid, and "dbs/d/colls/c"
 * by name, percent-encoded. */
void rest_session_paths(struct rest_call *call, const struct rest_items *items);
