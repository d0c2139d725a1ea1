#include "front/rest/query/continued.h"

#include "document/json.h"
#include "front/rest/continuation.h"

/* Libraries take the continuation of a query that names neither range nor key for a list of ranges,
 * each with its own. There is one of all ranges. */
static bool is_of_ranges(const struct rest_call *call)
{
    return !rest_call_header(call, REST_HEADER_PARTITION_RANGE_ID).data &&
           !rest_call_header(call, REST_HEADER_PARTITION_KEY).data;
}

static struct slice ranges_text(struct rest_call *call, struct slice token)
{
    struct slice min = rest_call_header(call, REST_HEADER_START_EPK);
    struct slice max = rest_call_header(call, REST_HEADER_END_EPK);

    return arena_printf(call->arena,
                        "[{\"token\":\"%.*s\",\"range\":{\"min\":\"%.*s\",\"max\":\"%.*s\"}}]",
                        SLICE_ARG(token), SLICE_ARG(min), SLICE_ARG(max.data ? max : SLICE("FF")));
}

/* The token in such a list. */
static bool ranges_read(struct rest_call *call, struct slice text, struct slice *ret_token,
                        struct error *err)
{
    CLEANUP(buf_done) struct buf bytes;
    struct document_value list, range, token;
    struct document_iter iter;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    if (document_json_read_value(text, NULL, &bytes, &list, err) && list.type == DOCUMENT_ARRAY &&
        document_count(list.document) == 1) {
        document_iter_init(&iter, list.document);
        if (document_iter_next(&iter) && iter.value.type == DOCUMENT_OBJECT &&
            document_find(iter.value.document, SLICE("range"), &range) &&
            range.type == DOCUMENT_OBJECT &&
            document_find(iter.value.document, SLICE("token"), &token) &&
            token.type == DOCUMENT_STRING) {
            *ret_token = arena_copy(call->arena, token.text);
            return true;
        }
    }
    return error_set(err, ERROR_BAD_CONTINUATION, "Invalid Continuation Token");
}

bool rest_query_token_read(struct rest_call *call, struct rest_query_token *ret_token,
                           struct error *err)
{
    struct slice text = rest_call_header(call, REST_HEADER_CONTINUATION);
    struct rest_query_token token = {0};

    if (text.len && text.data[0] == '[' && !ranges_read(call, text, &text, err))
        return false;
    if (text.len) {
        token.sealed = text;
        (void)slice_split(text, '!', &token.view_rid, &token.sealed);
    }
    *ret_token = token;
    return true;
}

static struct slice purpose_of(struct rest_call *call, const struct rest_items *items, bool by_view)
{
    return rest_items_purpose(items, by_view ? SLICE("query by view 1") : SLICE("query 2"),
                              call->arena);
}

bool rest_query_token_open(struct rest_call *call, const struct rest_query_token *token,
                           const struct rest_items *items, struct slice *ret_bytes,
                           struct error *err)
{
    *ret_bytes = SLICE_NONE;
    return !token->sealed.data ||
           rest_continuation_open(call, container_info(items->container)->rid,
                                  purpose_of(call, items, token->view_rid.data != NULL),
                                  token->sealed, ret_bytes, err);
}

void rest_query_token_answer(struct rest_call *call, const struct rest_items *items, bool by_view,
                             struct slice bytes)
{
    struct slice rid = container_info(items->container)->rid;
    struct slice text = rest_continuation_seal(call, rid, purpose_of(call, items, by_view), bytes);

    if (by_view)
        text = arena_join(call->arena, (struct slice[]){rid, SLICE("!"), text}, 3);
    rest_continuation_answer(call, is_of_ranges(call) ? ranges_text(call, text) : text);
}
