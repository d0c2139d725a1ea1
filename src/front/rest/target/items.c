#include "front/rest/target/items.h"

#include "document/json.h"
#include "document/order.h"
#include "front/rest/target/session.h"
#include "front/rest/views/views.h"
#include "item/shown.h"
#include "partition/former.h"
#include "partition/strategy.h"
#include "partition/synthetic.h"

#include <inttypes.h>
#include <xxhash.h>

enum { ITEM_SYSTEM_BYTES = 512 }; /* about what the system properties of an item take as JSON */

/* --- Opening --------------------------------------------------------------------------------- */

/* The level this request is read with: its own or the account's. */
static bool consistency_of(const struct rest_call *call, enum item_level *ret_level,
                           struct error *err)
{
    return front_consistency_find(&call->services->consistency,
                                  rest_call_header(call, REST_HEADER_CONSISTENCY_LEVEL), ret_level,
                                  err);
}

enum { VIEW_WAIT_MS_MAX = 5000 };

static bool view_wait_begin(struct rest_call *call, struct slice token, struct error *err)
{
    struct rest_view_wait *wait = ARENA_NEW(call->arena, struct rest_view_wait);
    struct item_token *tokens = NULL;

    if (!rest_session_parse(token, call->arena, &tokens, &wait->token_count, err))
        return false;
    wait->tokens = tokens;
    call->view_wait = wait;
    return true;
}

/* A view may be asked to catch up first; who waits holds no thread. */
static bool view_wait(struct rest_call *call, const struct container *container, struct error *err)
{
    struct slice header = rest_call_header(call, REST_HEADER_VIEW_WAIT);
    struct slice token = rest_call_header(call, REST_HEADER_VIEW_SESSION);
    uint64_t wait_ms = VIEW_WAIT_MS_MAX;

    if ((!header.data && !token.data) || !call->services->views ||
        !definition_fields(container_definition(container))->view.form)
        return true;
    if (header.data && (!slice_to_uint64(header, &wait_ms) || wait_ms > VIEW_WAIT_MS_MAX))
        return error_set(err, ERROR_BAD_REQUEST, "x-orrery-view-wait-ms must be 0 to %d",
                         VIEW_WAIT_MS_MAX);
    if (!call->may_block) {
        call->cold = true;
        return error_set(err, ERROR_COLD, "a view is waited for");
    }
    return (call->view_wait || view_wait_begin(call, token, err)) &&
           rest_views_wait(call->services->views, container, (int64_t)wait_ms, call->view_wait,
                           &call->front, err);
}

bool rest_items_open(struct rest_call *call, struct rest_items *ret_items, struct error *err)
{
    struct rest_items items = {0};
    char database_text[RID_TEXT_SIZE];
    struct slice database;

    if (!consistency_of(call, &items.level, err) ||
        !rest_call_container(call, &items.container, err))
        return false;
    items.space = front_space(call->services, items.container);
    database =
        rid_format(rid_of_database(container_database_number(items.container)), database_text);
    items.self = arena_join(call->arena,
                            (struct slice[]){SLICE("dbs/"), database, SLICE("/colls/"),
                                             container_info(items.container)->rid, SLICE("/docs/")},
                            5);
    if (!view_wait(call, items.container, err) || !rest_session_check(call, &items, err)) {
        rest_items_close(&items);
        return false;
    }
    *ret_items = items;
    return true;
}

void rest_items_look(struct rest_call *call, struct rest_items *items)
{
    const struct front_consistency *own = &call->services->consistency;

    assert(!items->reading && items->container);
    if (call->primary)
        return;
    items->reading = item_reading_begin(
        &items->space, &(struct item_reading_options){.level = items->level,
                                                      .staleness_ms = own->staleness_ms,
                                                      .staleness_lsns = own->staleness_operations,
                                                      .tokens = items->tokens,
                                                      .token_count = items->token_count,
                                                      .follows = call->services->follows,
                                                      .trusted = call->services->unproved});
}

void rest_items_close(struct rest_items *items)
{
    item_reading_end(TAKE(items->reading));
    items->space.reading = NULL;
    container_unref(items->container);
    items->container = NULL;
}

/* Clients of containers without a key have never heard of one. */
static struct slice key_header(struct rest_call *call, const struct rest_items *items)
{
    struct slice header = rest_call_header(call, REST_HEADER_PARTITION_KEY);

    return !header.data && items->space.definition->key.system_key ? SLICE("[]") : header;
}

bool rest_items_key(struct rest_call *call, const struct rest_items *items,
                    struct partition_key *ret_key, bool *ret_given, struct error *err)
{
    struct slice header = key_header(call, items);

    *ret_given = header.data != NULL;
    return !header.data || partition_key_parse(&items->space.definition->key, header,
                                               PARTITION_KEY_WHOLE, call->arena, ret_key, err);
}

bool rest_items_key_either(struct rest_call *call, const struct rest_items *items,
                           struct partition_key *ret_key, bool *ret_given, struct error *err)
{
    struct slice header = key_header(call, items);

    *ret_given = header.data != NULL;
    return !header.data ||
           partition_key_parse_either(&items->space.definition->key, header, PARTITION_KEY_WHOLE,
                                      call->arena, ret_key, err);
}

struct slice rest_items_purpose(const struct rest_items *items, struct slice purpose,
                                struct arena *arena)
{
    const struct partition_definition *key = &items->space.definition->key;
    const struct partition_synthetic *synthetic = key->synthetic;
    uint64_t hash = (uint64_t)key->strategy << 8 | key->kind;

    for (size_t i = 0; i < key->path_count; i++)
        hash = XXH3_64bits_withSeed(key->texts[i].data, key->texts[i].len, hash);
    if (synthetic)
        hash ^= ((uint64_t)synthetic->suffixes << 8 | synthetic->kind) + 1;
    return arena_printf(arena, "%.*s %016" PRIx64, SLICE_ARG(purpose), hash);
}

bool rest_items_metered(struct rest_call *call, struct metered_call *ret_metered, struct error *err)
{
    struct slice bucket = rest_call_header(call, REST_HEADER_THROUGHPUT_BUCKET);
    struct slice priority = rest_call_header(call, REST_HEADER_PRIORITY);
    struct metered_call metered = {0};
    enum item_level level;
    uint64_t number;

    if (!consistency_of(call, &level, err))
        return false;
    metered.strong = front_consistency_is_dear(level);
    metered.minute_pool_off = rest_headers_true(&call->headers, REST_HEADER_RU_PER_MINUTE_OFF);
    metered.low_priority = slice_equal_nocase(priority, SLICE("Low"));
    if (priority.data && !metered.low_priority && !slice_equal_nocase(priority, SLICE("High")))
        return error_set(err, ERROR_BAD_REQUEST, "x-ms-cosmos-priority-level must be High or Low");
    if (bucket.data) {
        if (!slice_to_uint64(bucket, &number) || number < 1 || number > BUDGET_BUCKETS)
            return error_set(err, ERROR_BAD_REQUEST,
                             "x-ms-cosmos-throughput-bucket must be 1 to %d", BUDGET_BUCKETS);
        metered.bucket = (uint8_t)number;
    }
    *ret_metered = metered;
    return true;
}

void rest_items_charged(struct rest_call *call, const struct metered_call *metered)
{
    call->charge_cru = metered->charge_cru;
    call->wait_ms = metered->wait_ms;
    if (metered->minute_used)
        rest_answer_header(call, SLICE("x-ms-documentdb-is-ru-per-minute-used"), SLICE("true"));
}

struct front_traffic_attempt rest_items_attempt(const struct rest_call *call,
                                                const struct error *err)
{
    static const enum rest_header marks[] = {REST_HEADER_ACTIVITY_ID, REST_HEADER_DATE_MS,
                                             REST_HEADER_DATE};
    struct front_traffic_attempt attempt = {.refused = err && front_traffic_is_refusal(err),
                                            .wait_ms = call->wait_ms,
                                            .started_ns = call->http->started_ns};

    for (size_t i = 0; i < ARRAY_LEN(marks) && !attempt.mark.len; i++)
        attempt.mark = rest_call_header(call, marks[i]);
    return attempt;
}

bool rest_items_key_missing(struct error *err)
{
    return error_set(err, ERROR_BAD_REQUEST,
                     "PartitionKey value must be supplied for this operation.");
}

bool rest_items_minimal(const struct rest_call *call)
{
    struct slice rest = rest_call_header(call, REST_HEADER_PREFER), preference;

    while (rest.len) {
        if (!slice_split(rest, ',', &preference, &rest)) {
            preference = rest;
            rest = SLICE_NONE;
        }
        if (slice_equal_nocase(slice_trim(preference), SLICE("return=minimal")))
            return true;
    }
    return false;
}

bool rest_items_directive(struct slice text, bool *ret_not_indexed, struct error *err)
{
    *ret_not_indexed = slice_equal_nocase(text, SLICE("Exclude"));
    if (text.data && !*ret_not_indexed && !slice_equal_nocase(text, SLICE("Include")) &&
        !slice_equal_nocase(text, SLICE("Default")))
        return error_set(err, ERROR_BAD_REQUEST,
                         "x-ms-indexing-directive must be Default, Include or Exclude");
    return true;
}

bool rest_items_options(struct rest_call *call, struct transaction_options *ret_options,
                        struct error *err)
{
    *ret_options = (struct transaction_options){
        .if_match = rest_call_etag(call, REST_HEADER_IF_MATCH),
        .if_none_match = rest_call_etag(call, REST_HEADER_IF_NONE_MATCH),
    };
    return rest_items_directive(rest_call_header(call, REST_HEADER_INDEXING_DIRECTIVE),
                                &ret_options->not_indexed, err);
}

/* --- Bodies ---------------------------------------------------------------------------------- */

bool rest_item_size_check(const struct rest_items *items, struct slice document, struct error *err)
{
    if (document.len > items->space.item_bytes_max)
        return error_set(err, ERROR_TOO_LARGE, "an item of %zu bytes is over the limit of %zu",
                         document.len, items->space.item_bytes_max);
    return true;
}

bool rest_item_names(const struct rest_items *items, struct slice item_key, struct arena *arena,
                     struct partition_key *ret_key, struct document_value *ret_id,
                     struct error *err)
{
    const struct partition_definition *definition = &items->space.definition->key;
    struct item_key_parts parts;
    struct slice pk, id;

    if (!item_key_split(definition, item_key, &parts, err))
        return false;
    pk = slice_skip(parts.logical, parts.routing.len);
    id = parts.id;
    return partition_key_read(definition, &pk, arena, ret_key, err) &&
           document_key_read(definition_names_of(items->space.definition)->identity_order, &id,
                             arena, ret_id, err);
}

struct slice rest_item_etag(const struct item *item, struct arena *arena)
{
    char etag[ITEM_ETAG_LEN + 2];

    etag[0] = etag[ITEM_ETAG_LEN + 1] = '"';
    item_etag(&item->header, etag + 1);
    return arena_copy(arena, slice_of(etag, sizeof etag));
}

static void document_append_shown(const struct document_names *names, struct slice document,
                                  struct buf *body)
{
    struct arena *arena;

    if (LIKELY(item_shows_plainly(names))) {
        document_json_write(document, body);
        return;
    }
    arena = arena_new();
    document_json_write(item_shown(names, document, arena), body);
    arena_free(arena);
}

void rest_item_append(const struct rest_items *items, const struct item *item, uint64_t lsn,
                      struct buf *body)
{
    char rid_text[RID_TEXT_SIZE], etag[ITEM_ETAG_LEN];
    struct slice rid =
        rid_format(container_rid_below(items->container, RID_ITEM, item->header.number), rid_text);

    item_etag(&item->header, etag);
    (void)buf_reserve(body, item->document.len + item->document.len / 4 + ITEM_SYSTEM_BYTES);
    document_append_shown(definition_names_of(items->space.definition), item->document, body);
    body->len--; /* the closing brace; an item has at least its id before it */
    BUF_APPEND(body, ",\"_rid\":\"");
    buf_append_slice(body, rid);
    BUF_APPEND(body, "\",\"_self\":\"");
    buf_append_slice(body, items->self);
    buf_append_slice(body, rid);
    BUF_APPEND(body, "/\",\"_etag\":\"\\\"");
    buf_append(body, etag, sizeof etag);
    BUF_APPEND(body, "\\\"\",\"_attachments\":\"attachments/\",\"_ts\":");
    buf_append_int64(body, item->header.wall_ms / 1000);
    if (lsn) {
        BUF_APPEND(body, ",\"_lsn\":");
        buf_append_uint64(body, lsn);
    }
    buf_append_byte(body, '}');
}

/* --- Headers --------------------------------------------------------------------------------- */

uint32_t rest_items_partition(const struct rest_items *items, const struct partition_key *key,
                              struct arena *arena)
{
    struct slice logical = PARTITION_ROUTING_MIN;

    if (!key->former_only && key->count == items->space.definition->key.path_count)
        logical = item_logical(&items->space.definition->key, key, arena);
    return partition_map_find(items->space.map, logical)->id;
}

bool rest_items_lsn(const struct rest_items *items, const struct partition_span *span,
                    uint64_t *ret_lsn)
{
    struct item_served served;
    struct error ignored;

    if (item_reading_served(items->reading, span->id, &served)) {
        *ret_lsn = served.lsn;
        return true;
    }
    return commit_partition_lsn(items->space.commit(items->space.nodes, span->node), span->id,
                                ret_lsn, &ignored);
}

/* How far a view is behind its sources. */
static void lag_answer(struct rest_call *call, const struct rest_items *items)
{
    struct front_view_report report;

    if (items->space.definition->view.form && call->services->views &&
        rest_views_report(call->services->views, items->container, &report)) {
        rest_answer_header_int(call, SLICE("x-orrery-view-lag-ms"), report.lag_ms);
        rest_answer_header_int(call, SLICE("x-orrery-view-lag-lsn"), (int64_t)report.lag_lsn);
    }
}

void rest_items_served(struct rest_call *call, const struct rest_items *items,
                       const struct partition_span *spans, size_t count)
{
    CLEANUP(buf_done) struct buf list;

    buf_init(&list, BUF_DEFAULT_MAX);
    front_served_append(items->container, items->reading, spans, count, &list);
    if (call->services->server)
        buf_printf(&list, ";server=%s", call->services->server);
    rest_answer_header(call, SLICE("x-orrery-served-by"), buf_slice(&list));
    lag_answer(call, items);
}

void rest_items_headers(struct rest_call *call, const struct rest_items *items, uint32_t partition,
                        uint64_t lsn)
{
    const struct partition_span *span = partition_map_find_id(items->space.map, partition);
    struct buf *lines = &call->lines;
    uint64_t now = 0;

    assert(span);
    if (!rest_items_lsn(items, span, &now))
        now = lsn;
    now = MAX(now, lsn);
    BUF_APPEND(lines, "x-ms-session-token: ");
    rest_session_append(call, partition, now, lines);
    BUF_APPEND(lines, "\r\n");
    rest_answer_header_int(call, SLICE("lsn"), (int64_t)now);
    rest_answer_header_int(call, SLICE("x-ms-cosmos-llsn"), (int64_t)now);
    rest_answer_header_int(call, SLICE("x-ms-global-committed-lsn"), (int64_t)now);
    rest_answer_header_int(call, SLICE("x-ms-documentdb-partitionkeyrangeid"), partition);
    rest_session_paths(call, items);
    call->observed.partition = partition;
}
