/* Continued: where a query goes on, in the words of the client's libraries.
 *
 * Sealed (continuation.h), a place in the result of one container: that of the request, or the view
 * that answers for it (by_view.h), whose rid then stands before it and a "!". */
#pragma once

#include "front/rest/target/items.h"

struct rest_query_token {
    struct slice sealed;   /* data NULL: the query begins */
    struct slice view_rid; /* data NULL: it is of the container itself */
};

/* From the header of the request. ERROR_BAD_CONTINUATION. */
NODISCARD bool rest_query_token_read(struct rest_call *call, struct rest_query_token *ret_token,
                                     struct error *err);

/* What is sealed in it, for the container that runs the query; empty where it begins.
 * ERROR_BAD_CONTINUATION. */
NODISCARD bool rest_query_token_open(struct rest_call *call, const struct rest_query_token *token,
                                     const struct rest_items *items, struct slice *ret_bytes,
                                     struct error *err);

/* The header of an answer after which there is more. by_view: items are a view's, which answers for
 * the container of the request. */
void rest_query_token_answer(struct rest_call *call, const struct rest_items *items, bool by_view,
                             struct slice bytes);
