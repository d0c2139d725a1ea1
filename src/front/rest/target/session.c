/* A range that has split is known by its children: a parent's token goes for each of them, since
 * they go on with its numbering, and a span has all its ancestors. So a range that is neither here
 * nor among them is another container's, perhaps of the same name before it was made anew: that
 * asks nothing of this one. But a range that was never given out is of a state that is not known
 * here, because the catalogue was restored to an earlier one: what the session has seen of it
 * cannot be shown, and it is told so. */
#include "front/rest/target/session.h"

#include <inttypes.h>

enum { TOKENS_MAX = 4096 };

static bool number_until(struct slice *text, uint8_t stop, uint64_t *ret_number)
{
    struct slice head, tail;

    if (!slice_split(*text, stop, &head, &tail)) {
        head = *text;
        tail = SLICE_NONE;
    }
    *text = tail;
    return slice_to_uint64(head, ret_number);
}

/* One of "0:-1#12", "0:12" and "0:3#12#1=11": range and lsn. */
static bool token_parse(struct slice text, uint64_t *ret_range, uint64_t *ret_lsn)
{
    struct slice version, rest;

    if (!number_until(&text, ':', ret_range) || !text.data)
        return false;
    if (!slice_split(text, '#', &version, &rest))
        return slice_to_uint64(text, ret_lsn);
    return number_until(&rest, '#', ret_lsn);
}

static bool covers(const struct partition_span *span, uint64_t range)
{
    for (size_t i = 0; i < span->parent_count; i++)
        if (span->parents[i] == range)
            return true;
    return span->id == range;
}

/* A partition that another container has: what is in its place here stands still, and requests that
 * were under way may have brought back later numbers. */
static bool is_handed(const struct rest_items *items, uint64_t range)
{
    const struct promotion_list *promotions = container_promotions(items->container);

    for (size_t i = 0; i < promotions->count; i++)
        if (promotions->list[i]->partition == range &&
            !partition_map_find_id(items->space.map, (uint32_t)range))
            return true;
    return false;
}

static bool token_check(const struct catalogue *catalogue, const struct rest_items *items,
                        uint64_t range, uint64_t lsn, struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(items->space.map, &count);

    if (!catalogue_knows_partition(catalogue, range))
        return error_set(err, ERROR_SESSION_AHEAD,
                         "the session token names range %" PRIu64 ", which is not known here",
                         range);
    if (is_handed(items, range))
        return true;
    for (size_t i = 0; i < count; i++) {
        uint64_t now;

        if (!covers(&spans[i], range))
            continue;
        if (!commit_partition_lsn(items->space.commit(items->space.nodes, spans[i].node),
                                  spans[i].id, &now, err)) {
            struct error away;

            /* where it stands is not known, and who asks for it is told by the node */
            if (!engine_serves(items->space.engine(items->space.nodes, spans[i].node), &away))
                continue;
            return false;
        }
        if (now < lsn)
            return error_set(err, ERROR_SESSION_AHEAD,
                             "the session token names write %" PRIu64 " of range %" PRIu64
                             ", which stands at %" PRIu64,
                             lsn, range, now);
    }
    return true;
}

static size_t tokens_count(struct slice text)
{
    size_t count = 1;

    for (size_t i = 0; i < text.len; i++)
        count += text.data[i] == ',';
    return count;
}

bool rest_session_parse(struct slice text, struct arena *arena, struct item_token **ret_tokens,
                        size_t *ret_count, struct error *err)
{
    struct item_token *tokens =
        ARENA_ARRAY(arena, struct item_token, MIN(tokens_count(text), (size_t)TOKENS_MAX));
    size_t count = 0;

    for (; text.len; count++) {
        struct slice token, rest;

        if (!slice_split(text, ',', &token, &rest)) {
            token = text;
            rest = SLICE_NONE;
        }
        if (count == TOKENS_MAX ||
            !token_parse(slice_trim(token), &tokens[count].partition, &tokens[count].lsn))
            return error_set(err, ERROR_BAD_REQUEST, "the session token is malformed");
        text = rest;
    }
    *ret_tokens = tokens;
    *ret_count = count;
    return true;
}

static bool tokens_known(const struct catalogue *catalogue, const struct rest_items *items,
                         struct error *err)
{
    for (size_t i = 0; i < items->token_count; i++)
        if (!catalogue_knows_partition(catalogue, items->tokens[i].partition) ||
            is_handed(items, items->tokens[i].partition))
            return error_set(err, ERROR_UNPROVED, "a range of the session is not known here");
    return true;
}

bool rest_session_check(struct rest_call *call, struct rest_items *items, struct error *err)
{
    struct slice text = rest_call_header(call, REST_HEADER_SESSION_TOKEN);

    if (!text.len)
        return true;
    if (!rest_session_parse(text, call->arena, &items->tokens, &items->token_count, err))
        return false;
    /* There is no committer to ask: what is read proves that it has them (item/reading.h). */
    if (call->services->follows)
        return tokens_known(call->services->catalogue, items, err);
    for (size_t i = 0; i < items->token_count; i++)
        if (!token_check(call->services->catalogue, items, items->tokens[i].partition,
                         items->tokens[i].lsn, err))
            return false;
    return true;
}

void rest_session_append(const struct rest_call *call, uint32_t range, uint64_t lsn,
                         struct buf *out)
{
    buf_append_uint64(out, range);
    BUF_APPEND(out, ":");
    if (!rest_call_version_before(call, SLICE("2018-06-18")))
        BUF_APPEND(out, "-1#");
    buf_append_uint64(out, lsn);
}

struct slice rest_session_database(struct rest_call *call)
{
    CLEANUP(database_unref) struct database *database = NULL;
    struct slice text = call->route.database;
    struct error ignored;
    struct rid rid;

    if (!rid_parse(text, &rid) || rid.kind != RID_DATABASE ||
        !catalogue_database_open(call->services->catalogue, call->account.id, text, &database,
                                 &ignored))
        return text;
    return arena_copy(call->arena, database_info(database)->id);
}

void rest_session_paths(struct rest_call *call, const struct rest_items *items)
{
    struct buf *lines = &call->lines;

    rest_answer_header(call, SLICE("x-ms-content-path"), container_info(items->container)->rid);
    if (!call->route.database.data)
        return;
    BUF_APPEND(lines, "x-ms-alt-content-path: dbs/");
    front_percent_encode(rest_session_database(call), lines);
    BUF_APPEND(lines, "/colls/");
    front_percent_encode(container_info(items->container)->id, lines);
    BUF_APPEND(lines, "\r\n");
}
