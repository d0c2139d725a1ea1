/* GET of what has changed. A position is an LSN of one physical partition, shown as the etag; it
 * goes for a part of that partition as well, and for its children after a split, which go on with
 * its numbering.
 *
 * Whoever reads a part may have to pass over very many changes of others: that is done in bounded
 * steps, and when they are used up the answer is an empty page with a later position, never a 304,
 * which would say that there is nothing more. */
#include "document/json.h"
#include "front/date.h"
#include "front/rest/item/change_parts.h"
#include "front/rest/target/feed_target.h"

#include "item/feed_read.h"
#include "item/shown.h"
#include "partition/former.h"
#include "throughput/cost.h"

#include <inttypes.h>

enum { RECORDS_PER_STEP = 10000, STEPS_MAX = 10 };

struct reading {
    struct rest_call *call;
    const struct rest_items *items;
    struct rest_feed_target target;
    const struct partition_span *span;
    struct item_scope scope;
    struct metered_call metered;
    struct feed_request request;
    struct feed_page page;
    size_t records_read;
    uint64_t position; /* that the request gave: */
    bool position_given;
    struct rest_change_parts *parts; /* of a key that is or was spread; NULL: it is not */
};

static bool mode_find(const struct rest_call *call, enum feed_mode *ret_mode, struct error *err)
{
    struct slice text = slice_trim(rest_call_header(call, REST_HEADER_A_IM));

    if (slice_equal_nocase(text, SLICE("Incremental Feed")))
        *ret_mode = FEED_LATEST;
    else if (slice_equal_nocase(text, SLICE("Full-Fidelity Feed")))
        *ret_mode = FEED_ALL_VERSIONS;
    else
        return error_set(err, ERROR_BAD_REQUEST,
                         "A-IM must be Incremental Feed or Full-Fidelity Feed");
    return true;
}

/* A feed is read from one physical partition, for its position is one number; of a key that is
 * spread, from one after the other. */
static bool span_find(struct reading *r, struct error *err)
{
    size_t count;
    const struct partition_span *spans =
        partition_map_overlap(r->items->space.map, r->target.range, &count);

    if (r->target.keyed &&
        (count > 1 || rest_change_parts_is(rest_call_etag(r->call, REST_HEADER_IF_NONE_MATCH))))
        r->parts = ARENA_NEW(r->call->arena, struct rest_change_parts);
    if (count == 1 || r->parts) {
        r->span = spans;
        r->scope = item_space_span_scope(&r->items->space, spans);
        return true;
    }
    if (rest_call_header(r->call, REST_HEADER_START_EPK).data ||
        rest_call_header(r->call, REST_HEADER_END_EPK).data)
        return error_set(err, ERROR_RANGE_GONE,
                         "the bounds are in several ranges: read the ranges again");
    return error_set(err, ERROR_BAD_REQUEST,
                     "a change feed needs a whole partition key or the id of a range");
}

/* Where to begin: behind the etag of the last answer, else behind now or a time, else before all.
 */
static bool position_find(struct reading *r, struct error *err)
{
    struct slice etag = rest_call_etag(r->call, REST_HEADER_IF_NONE_MATCH);
    struct slice since = rest_call_header(r->call, REST_HEADER_IF_MODIFIED_SINCE);
    uint64_t *lsn = &r->request.after_lsn;
    int64_t since_ms;

    if (slice_equal(etag, SLICE("*")))
        return commit_partition_lsn(r->scope.commit, r->scope.partition, lsn, err);
    if (etag.len && !slice_to_uint64(etag, lsn))
        return error_set(err, ERROR_BAD_REQUEST, "if-none-match is no position of a change feed");
    if (etag.len) {
        r->position = *lsn;
        r->position_given = true;
        return true;
    }
    if (r->request.mode == FEED_ALL_VERSIONS)
        return error_set(
            err, ERROR_BAD_REQUEST,
            "You must read the change feed from within the retention period. A feed of "
            "all versions and deletes begins now (if-none-match: *) or at the etag of "
            "an earlier answer.");
    if (!since.data)
        return true;
    if (!front_date_parse(since, &since_ms))
        return error_set(err, ERROR_BAD_REQUEST, "if-modified-since is no date of HTTP");
    return feed_lsn_at(&r->scope, since_ms, lsn, err);
}

/* The same for each part of a key. */
static bool parts_find(struct reading *r, struct error *err)
{
    const struct partition_map *map = r->items->space.map;
    struct slice etag = rest_call_etag(r->call, REST_HEADER_IF_NONE_MATCH);

    if (rest_change_parts_is(etag))
        return rest_change_parts_read(etag, map, r->target.range, r->parts, err);
    if (!rest_change_parts_begin(map, r->target.range, r->parts, err))
        return false;
    for (size_t i = 0; i < r->parts->count; i++) {
        r->scope = item_space_span_scope(&r->items->space, r->parts->list[i].span);
        r->request.after_lsn = 0;
        if (!position_find(r, err))
            return false;
        r->parts->list[i].lsn = r->request.after_lsn;
    }
    return true;
}

/* --- Reading -----------------------------------------------------------------------------------
 */

/* Leaves only what had a key of before a re-key. */
static void former_keep(struct reading *r)
{
    const struct partition_definition *formerly = r->items->space.definition->key.formerly;
    size_t kept = 0;

    for (size_t i = 0; i < r->page.count; i++)
        if (partition_former_fits(formerly, r->page.changes[i].current.document, r->target.former,
                                  r->call->arena))
            r->page.changes[kept++] = r->page.changes[i];
    r->page.count = kept;
}

static bool steps_read(struct reading *r, struct error *err)
{
    for (int i = 0; i < STEPS_MAX; i++) {
        if (!feed_read(&r->scope, &r->request, r->call->arena, &r->page, err))
            return false;
        if (r->target.former)
            former_keep(r);
        r->records_read += r->page.records_read;
        if (r->page.count || !r->page.more)
            return true;
        r->request.after_lsn = r->page.lsn;
    }
    return true;
}

static void range_set(struct reading *r, struct partition_range range)
{
    r->request.routing_min = r->request.routing_max = SLICE_NONE;
    if (slice_compare(range.min, r->span->min) > 0)
        r->request.routing_min = range.min;
    if (slice_compare(range.max, r->span->max) < 0)
        r->request.routing_max = range.max;
}

/* Of a key that is elsewhere for a time nothing was seen: who comes back goes on from there. */
static bool stays(const struct reading *r)
{
    return promotion_list_keeps_place(container_promotions(r->items->container), r->span);
}

/* One part after the other, until one has something. */
static bool parts_read(struct reading *r, struct error *err)
{
    size_t i = 0;
    bool found = false;

    while (!found && i < r->parts->count) {
        struct rest_change_part *part = &r->parts->list[i++];

        r->span = part->span;
        r->scope = item_space_span_scope(&r->items->space, r->span);
        r->request.after_lsn = part->lsn;
        range_set(r, part->range);
        if (!steps_read(r, err))
            return false;
        if (!stays(r))
            part->lsn = r->page.lsn;
        found = r->page.count || r->page.more;
    }
    rest_change_parts_rotate(r->parts, i);
    return true;
}

/* --- Showing -----------------------------------------------------------------------------------
 */

static void key_show(struct reading *r, const struct partition_key *key)
{
    const struct partition_definition *definition = &r->items->space.definition->key;
    struct buf *body = &r->call->body;

    BUF_APPEND(body, ",\"partitionKey\":{");
    for (size_t i = 0, shown = 0; i < key->count; i++) {
        struct slice path = definition->texts[i];

        if (key->components[i].type == DOCUMENT_UNDEFINED)
            continue;
        if (shown++)
            buf_append_byte(body, ',');
        document_json_write_string(path.len ? slice_skip(path, 1) : path, body);
        buf_append_byte(body, ':');
        document_json_write_value(&key->components[i], body);
    }
    buf_append_byte(body, '}');
}

/* Whose change it was: all that is left of a deleted item. */
static bool name_show(struct reading *r, const struct feed_change *change, struct error *err)
{
    const struct partition_definition *definition = &r->items->space.definition->key;
    const struct document_names *names = definition_names_of(r->items->space.definition);
    struct partition_key key;
    struct document_value id;

    if (!rest_item_names(r->items, change->key, r->call->arena, &key, &id, err))
        return false;
    BUF_APPEND(&r->call->body, ",\"id\":");
    document_json_write_string(item_id_text(names, &id, r->call->arena), &r->call->body);
    if (!definition->system_key)
        key_show(r, &key);
    return true;
}

static bool metadata_show(struct reading *r, const struct feed_change *change, struct error *err)
{
    static const char *const kinds[] = {[FEED_CREATE] = "create",
                                        [FEED_REPLACE] = "replace",
                                        [FEED_DELETE] = "delete",
                                        [FEED_EXPIRE] = "delete"};
    struct buf *body = &r->call->body;

    buf_printf(body,
               "\"metadata\":{\"operationType\":\"%s\",\"lsn\":%" PRIu64 ",\"crts\":%" PRId64
               ",\"previousImageLSN\":%" PRIu64,
               kinds[change->kind], change->lsn, change->wall_ms / 1000, change->previous_lsn);
    if (change->kind == FEED_EXPIRE)
        BUF_APPEND(body, ",\"timeToLiveExpired\":true");
    if ((change->kind == FEED_DELETE || change->kind == FEED_EXPIRE) && !name_show(r, change, err))
        return false;
    buf_append_byte(body, '}');
    return true;
}

static bool version_show(struct reading *r, const struct feed_change *change, struct error *err)
{
    struct item previous = {
        .header = change->previous_header, .key = change->key, .document = change->previous};
    struct buf *body = &r->call->body;

    BUF_APPEND(body, "{\"current\":");
    if (change->current.document.data)
        rest_item_append(r->items, &change->current, 0, body);
    else
        BUF_APPEND(body, "{}");
    if (previous.document.data) {
        BUF_APPEND(body, ",\"previous\":");
        rest_item_append(r->items, &previous, 0, body);
    }
    buf_append_byte(body, ',');
    if (!metadata_show(r, change, err))
        return false;
    buf_append_byte(body, '}');
    return true;
}

static bool page_show(struct reading *r, struct error *err)
{
    rest_feed_begin(r->call, r->items);
    for (size_t i = 0; i < r->page.count; i++) {
        const struct feed_change *change = &r->page.changes[i];

        if (i)
            buf_append_byte(&r->call->body, ',');
        rest_call_breathe(r->call);
        if (r->request.mode == FEED_LATEST)
            rest_item_append(r->items, &change->current, change->lsn, &r->call->body);
        else if (!version_show(r, change, err))
            return false;
    }
    rest_feed_end(r->call, r->page.count);
    /* A transaction is shown whole, however large it is. */
    if (buf_overflowed(&r->call->body))
        return error_set(err, ERROR_TOO_LARGE,
                         "a transaction of the feed is too large to be shown");
    return true;
}

/* --- The operation -----------------------------------------------------------------------------
 */

/* How far behind the last commit of the partition the reader is now, for the figures. */
static void lag_tell(const struct reading *r)
{
    struct observer *observer = r->call->services->observer;
    const struct item_space *space = &r->items->space;
    struct error ignored;
    uint64_t now;

    if (observer && commit_partition_lsn(space->commit(space->nodes, r->span->node), r->span->id,
                                         &now, &ignored))
        figures_feed_lag(observer_figures(observer), r->call->observed.container,
                         now > r->page.lsn ? now - r->page.lsn : 0);
}

static bool feed_answer(struct reading *r, struct error *err)
{
    struct slice etag;

    if (!(r->parts ? parts_read(r, err) : steps_read(r, err)) || !rest_call_grown(r->call, err))
        return false;
    if (r->position_given && stays(r))
        r->page.lsn = r->position;
    etag = r->parts ? arena_printf(r->call->arena, "\"%.*s\"",
                                   SLICE_ARG(rest_change_parts_text(r->parts, r->call->arena)))
                    : arena_printf(r->call->arena, "\"%" PRIu64 "\"", r->page.lsn);
    r->call->status = r->page.count || r->page.more ? 200 : 304;
    if (r->call->status == 200 && !page_show(r, err))
        return false;
    rest_answer_etag(r->call, etag);
    rest_items_headers(r->call, r->items, r->span->id, 0);
    rest_items_served(r->call, r->items, r->span, 1);
    lag_tell(r);
    return true;
}

/* A position is one number, and items of one key of before a re-key may be in every physical
 * partition by now. Of a delete nothing is left that tells which key it had. */
static bool former_check(const struct reading *r, struct error *err)
{
    size_t count;

    if (!r->target.former)
        return true;
    (void)partition_map_spans(r->items->space.map, &count);
    if (count == 1 && r->request.mode == FEED_LATEST)
        return true;
    return error_set(err, ERROR_NOT_SUPPORTED,
                     "the container was re-keyed: its change feed is read by the keys it has now, "
                     "or without one%s",
                     count == 1 ? "; by an old key only that of latest versions" : "");
}

bool rest_items_changes(struct rest_call *call, struct error *err)
{
    CLEANUP(rest_items_close) struct rest_items items = {0};
    struct reading r = {.call = call, .items = &items};
    struct metering_request request = {.price_cru = cost_feed(0, 0)};
    struct metering metering;
    bool fine;

    if (!rest_items_open(call, &items, err) || !mode_find(call, &r.request.mode, err) ||
        !rest_feed_target(call, &items, &r.target, err) || !rest_feed_whole(&r.target, err) ||
        !rest_feed_admits(&items, &r.target, err) || !former_check(&r, err) ||
        !rest_feed_page_size(call, &r.request.changes_max, err) || !span_find(&r, err) ||
        !(r.parts ? parts_find(&r, err) : position_find(&r, err)) ||
        !rest_items_metered(call, &r.metered, err) || !rest_feed_hold(call, err))
        return false;
    /* Where to begin was found at the primary: positions are the same everywhere. One that is ahead
     * of a standby finds nothing there, and stays. */
    rest_items_look(call, &items);
    r.scope = item_space_span_scope(&items.space, r.span);
    r.request.logical = r.target.logical;
    r.request.records_max = RECORDS_PER_STEP;
    if (!r.target.logical.data)
        range_set(&r, r.target.range);
    request.partition = r.span->id;
    if (r.target.keyed)
        request.pk = metering_pk(&r.target.key, call->arena);
    if (!metering_begin(&metering, call->services->meters, &request, &r.metered, err)) {
        rest_items_charged(call, &r.metered);
        return false;
    }
    fine = feed_answer(&r, err);
    metering.bytes_out = call->body.len;
    metering_end(&metering, fine ? cost_feed(r.records_read, call->body.len) : 0);
    rest_items_charged(call, &r.metered);
    return fine;
}
