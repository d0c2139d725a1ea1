/* Sessions: tokens that say how far a client has seen a partition, {range}:-1#{lsn}. */
#pragma once

#include "front/rest/items.h"

/* Reads the token of the request, several joined by commas, and checks those of present ranges.
 * ERROR_SESSION_AHEAD: a partition has not got that far; ERROR_BAD_REQUEST: it is no token. */
NODISCARD bool rest_session_check(struct rest_call *call, const struct rest_items *items,
                                  struct error *err);

/* "dbs/d/colls/c" by name, percent-encoded, as clients find their tokens by. */
struct slice rest_session_alt_path(struct rest_call *call, const struct rest_items *items);
