/* Queries over items. The server can run every query whole, whatever it needs: across partitions
 * the engine merges, sorts and aggregates. Clients that merge themselves ask for a plan, or are
 * told that they have to (merging.h), and send its rewritten queries with the id of each range. */
#include "front/rest/query/query.h"

#include "document/extended.h"
#include "document/json.h"
#include "front/kit/queries.h"
#include "front/kit/references.h"
#include "front/rest/continuation.h"
#include "front/rest/query/by_view.h"
#include "front/rest/query/continued.h"
#include "front/rest/query/merging.h"
#include "front/rest/query/query_figures.h"
#include "front/rest/query/text.h"
#include "front/rest/script/functions.h"
#include "front/rest/script/turn.h"
#include "front/rest/sql/computed.h"
#include "front/rest/sql/documents.h"
#include "front/rest/sql/gateway_plan.h"
#include "front/rest/sql/key_ranges.h"
#include "front/rest/sql/parser.h"
#include "front/rest/sql/ranking_run.h"
#include "front/rest/sql/rebind.h"
#include "front/rest/sql/resolve.h"
#include "front/rest/sql/vectors.h"
#include "front/rest/target/feed_target.h"
#include "front/rest/target/former.h"
#include "front/rest/target/session.h"
#include "front/traffic.h"
#include "item/shown.h"
#include "partition/synthetic.h"
#include "throughput/cost.h"

#include <xxhash.h>

enum {
    PLAN_BYTES_MAX = 64 * 1024, /* of one that is kept */
    LOOP_BODY_BYTES = 4 * 1024, /* of a request that a loop looks at */
    LOOP_SPANS = 16,            /* partitions of a container, the same */
};

/* A compiled query that is kept for the next request with the same text. */
struct kept {
    struct front_plan plan;
    struct sql_prepared prepared;
    bool is_short;
};

struct querying {
    struct rest_call *call;
    struct arena *tree; /* of the text: megabytes at worst, so it goes where it was made, off the
                         * loop, and not with the call */
    struct rest_items items;
    struct rest_feed_target target;
    struct partition_key *keys; /* of an open key */
    size_t key_count;
    struct metered_call metered;
    struct sql_body body;
    struct slice plan_key; /* in the call's arena; empty: plans of it are not kept */
    struct kept *kept;     /* NULL: it was compiled for this request, or not yet */
    struct sql_prepared prepared;
    struct rest_functions functions;
    struct front_references references;
    struct rest_by_view by; /* a view that answers in the place of the container, if one does */
    struct rest_query_token token;
    size_t rows_max;
    size_t rows;
    uint64_t compile_ns;
};

/* --- Faults and options ------------------------------------------------------------------------
 */

void rest_query_fault(struct rest_call *call, const struct sql_error *fault)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    if (!fault->message.data)
        return;
    sql_error_render(fault, &text);
    call->message = arena_copy(call->arena, buf_slice(&text));
}

struct sql_compile_options rest_query_options(const struct rest_items *items)
{
    struct sql_compile_options options = {.names = definition_names_of(items->space.definition),
                                          .plane = items->space.definition->plane};
    struct document_value computed, full_text, vectors;

    if (document_find(items->space.definition->document, SLICE("computedProperties"), &computed) &&
        computed.type == DOCUMENT_ARRAY)
        options.computed = computed.document;
    if (document_find(items->space.definition->document, SLICE("fullTextPolicy"), &full_text) &&
        full_text.type == DOCUMENT_OBJECT)
        options.full_text = full_text.document;
    if (document_find(items->space.definition->document, SLICE("vectorEmbeddingPolicy"),
                      &vectors) &&
        vectors.type == DOCUMENT_OBJECT)
        options.vectors = vectors.document;
    return options;
}

bool rest_query_computed_check(struct rest_call *call, struct slice definition, struct error *err)
{
    struct document_value computed;
    struct sql_error fault = {0};

    if (!document_find(definition, SLICE("computedProperties"), &computed) ||
        computed.type != DOCUMENT_ARRAY) /* another type is refused with the definition */
        return true;
    if (sql_computed_check(computed.document, call->arena, &fault, err))
        return true;
    rest_query_fault(call, &fault);
    return false;
}

/* --- What is asked -----------------------------------------------------------------------------
 */

/* Parameters are written as items are. */
static bool parameters_take(struct querying *q, struct error *err)
{
    struct document_value parameters = document_array(q->body.parameters);

    if (item_shows_plainly(definition_names_of(q->items.space.definition)) ||
        !q->body.parameters.len)
        return true;
    if (!document_extended_read(&parameters, q->call->arena, &parameters, err))
        return false;
    q->body.parameters = parameters.document;
    return true;
}

/* --- Plans that are kept ------------------------------------------------------------------------
 */

static struct front_plans *plans_of(const struct querying *q)
{
    return front_queries_plans(q->call->services->queries);
}

static uint64_t account_of(const struct querying *q)
{
    return account_info(q->call->account.account)->number;
}

/* Under which bytes the plan of this query is kept. What is asked by a former key has a filter of
 * its own. */
static void plan_key_make(struct querying *q, const struct sql_compile_options *options)
{
    CLEANUP(buf_done) struct buf key;

    buf_init(&key, BUF_DEFAULT_MAX);
    if (!q->target.former && sql_rebind_key(q->body.text, q->body.parameters, options, &key))
        q->plan_key = arena_copy(q->call->arena, buf_slice(&key));
}

static bool plan_take(struct querying *q, const struct sql_compile_options *options)
{
    struct front_plan *plan;

    plan_key_make(q, options);
    if (!q->plan_key.len)
        return false;
    plan = front_plans_take(plans_of(q), account_of(q), q->plan_key);
    if (!plan)
        return false;
    q->kept = CONTAINER_OF(plan, struct kept, plan);
    sql_rebind(&q->kept->prepared, q->body.text, q->body.parameters, options);
    q->prepared = q->kept->prepared;
    return true;
}

/* After the query: keeps what was compiled, if it can be used again. */
static void plan_give(struct querying *q)
{
    struct kept *kept = q->kept;

    if (!kept && q->prepared.query && q->plan_key.len && !q->functions.count &&
        !q->references.count && arena_used(q->tree) <= PLAN_BYTES_MAX &&
        sql_rebind_is_possible(&q->prepared)) {
        kept = ARENA_NEW(q->tree, struct kept);
        kept->plan.arena = TAKE(q->tree);
        kept->prepared = q->prepared;
        kept->is_short = query_plan_is_short(&q->prepared.plan);
    }
    if (kept)
        front_plans_give(plans_of(q), account_of(q), q->plan_key, &kept->plan);
}

/* --- Reference containers ----------------------------------------------------------------------
 */

/* A resource token is for one container, and one that is bound to a key is for that alone. */
static bool reference_allowed(void *self, const struct container *container, struct error *err)
{
    const struct rest_call *call = ((const struct querying *)self)->call;
    const struct rest_identity *identity = &call->identity;

    if (identity->kind != REST_IDENTITY_TOKEN ||
        (container && !identity->key.data && !identity->one_item && identity->container &&
         identity->container == container_info(container)->number))
        return true;
    return error_set(err, ERROR_FORBIDDEN,
                     "the resource token does not allow to read the container that REFERENCE "
                     "names");
}

static void references_offer(struct querying *q, struct sql_compile_options *options)
{
    front_references_init(&q->references, &q->call->front, q->call->route.database);
    q->references.allowed = reference_allowed;
    q->references.self = q;
    options->reference = front_references_open;
    options->reference_self = &q->references;
}

/* What filling copies has cost, and how old they may be. */
static void references_answer(struct querying *q)
{
    if (!q->references.count)
        return;
    q->call->charge_cru = cost_add(
        q->call->charge_cru,
        front_references_pay(
            &q->references, q->target.span
                                ? q->target.span->id
                                : rest_items_partition(&q->items, &q->target.key, q->call->arena)));
    rest_answer_header_int(q->call, SLICE("x-orrery-reference-lag-ms"), q->references.lag_ms);
}

/* Plans are of texts; how long one takes is also a matter of the container. */
static uint64_t kind_of(const struct querying *q)
{
    return q->kept->plan.hash + container_info(q->items.container)->number;
}

/* May the loop try it? */
static bool is_for_loop(const struct querying *q)
{
    size_t spans;

    (void)partition_map_spans(q->items.space.map, &spans);
    return q->kept && q->kept->is_short && spans <= LOOP_SPANS &&
           front_queries_may_try(q->call->services->queries, kind_of(q));
}

/* False with the call cold: it is for a worker. */
static bool cold(struct querying *q)
{
    q->call->cold = true;
    q->call->charge_cru = 0;
    return false;
}

static bool query_compile(struct querying *q, struct error *err)
{
    struct sql_compile_options options = rest_query_options(&q->items);
    struct sql_error fault = {0};
    uint64_t begin = clock_monotonic_ns();
    struct slice text = q->body.text;

    if (!parameters_take(q, err))
        return false;
    if (plan_take(q, &options) && (q->call->may_block || is_for_loop(q))) {
        q->compile_ns = clock_monotonic_ns() - begin;
        return true;
    }
    if (!q->call->may_block)
        return cold(q);
    rest_functions_offer(&q->functions, &options);
    references_offer(q, &options);
    options.breath = front_breath(q->call->services->workers);
    options.ranks = !q->target.former;
    if (q->plan_key.len) { /* what the plan borrows from has to live as long */
        text = arena_copy(q->tree, text);
        options.computed = arena_copy(q->tree, options.computed);
    }
    if (!sql_prepare(text, q->body.parameters, &options, q->tree, &q->prepared, &fault, err)) {
        rest_query_fault(q->call, &fault);
        return false;
    }
    if (q->target.former &&
        !rest_former_filter(&q->items, q->target.former, q->tree, &q->prepared.plan, err))
        return false;
    q->compile_ns = clock_monotonic_ns() - begin;
    return true;
}

static bool query_prepare(struct querying *q, struct error *err)
{
    struct metered_call metered = q->metered;
    struct metering metering;
    bool done;

    if (!rest_query_text_begin(q->call, &q->items, q->target.range, q->body.text, &metering,
                               &metered, err))
        return false;
    done = query_compile(q, err);
    rest_query_text_end(q->call, q->body.text, &metering);
    return done;
}

/* Without a key, a range or leave to span partitions, the filter must name one key. */
static bool scope_check(struct querying *q, struct error *err)
{
    const struct query_key_range *ranges;
    size_t count;

    if (rest_call_header(q->call, REST_HEADER_PARTITION_KEY).data || q->target.span ||
        rest_headers_true(&q->call->headers, REST_HEADER_QUERY_CROSS_PARTITION))
        return true;
    query_key_ranges(&q->prepared.plan, &q->items.space.definition->key, q->call->arena, &ranges,
                     &count);
    if (count == 0 || (count == 1 && ranges[0].point))
        return true;
    return error_set(err, ERROR_BAD_REQUEST, "%s", REST_CROSS_PARTITION_TEXT);
}

/* The logical partitions of a base. */
static bool keys_find(struct querying *q, struct error *err)
{
    return !q->target.key.open ||
           partition_synthetic_keys(&q->items.space.definition->key, &q->target.key, q->call->arena,
                                    &q->keys, &q->key_count, err);
}

static bool target_read(struct querying *q, struct error *err)
{
    if (rest_feed_target(q->call, &q->items, &q->target, err))
        return true;
    if (err->code != ERROR_RANGE_GONE ||
        !rest_merging_span_lives_on(q->call, &q->items, &q->target.range, err))
        return false;
    *err = (struct error){0};
    return true;
}

static bool items_open(struct querying *q, struct error *err)
{
    if (!rest_items_open(q->call, &q->items, err))
        return false;
    rest_items_look(q->call, &q->items);
    return true;
}

static bool order_is_free(const struct rest_call *call)
{
    return call->options->queries.order_unindexed ||
           rest_headers_true(&call->headers, REST_HEADER_QUERY_ENABLE_SCAN) ||
           rest_headers_true(&call->headers, REST_HEADER_QUERY_FORCE_SCAN);
}

/* A view may answer: then there is nothing for the client to merge. */
static bool by_view_find(struct querying *q, struct error *err)
{
    const struct rest_by_view_asked asked = {.source = &q->items,
                                             .body = &q->body,
                                             .plan = &q->prepared.plan,
                                             .order_unindexed = order_is_free(q->call),
                                             .view_rid = q->token.view_rid};

    if (rest_by_view_find(q->call, &asked, &q->by, err))
        return true;
    return q->call->cold ? cold(q) : false;
}

static bool request_read(struct querying *q, struct error *err)
{
    return rest_query_body(q->call, &q->body, err) &&
           rest_query_token_read(q->call, &q->token, err) && items_open(q, err) &&
           target_read(q, err) && keys_find(q, err) &&
           rest_feed_page_size(q->call, &q->rows_max, err) &&
           rest_continuation_limit_check(q->call, err) &&
           rest_items_metered(q->call, &q->metered, err) && query_prepare(q, err) &&
           scope_check(q, err) && by_view_find(q, err) &&
           (q->by.items.container ||
            !rest_merging_is_left(q->call, &q->items, q->prepared.query, err));
}

/* A page goes on under the same key, but for streams in an order. Ranges may differ: they split and
 * merge between pages, and a key may be placed elsewhere. */
static void fingerprint_scope(struct querying *q)
{
    struct slice key = rest_call_header(q->call, REST_HEADER_PARTITION_KEY);
    CLEANUP(buf_done) struct buf bytes;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    if (!key.data)
        return;
    if (q->target.key.open || q->target.former)
        buf_append_slice(&bytes, key);
    else
        partition_key_append(&q->target.key, &bytes);
    q->prepared.plan.fingerprint =
        XXH3_64bits_withSeed(bytes.data, bytes.len, q->prepared.plan.fingerprint);
}

/* Who runs the query: the container of the request, or the view that answers for it. */
static const struct rest_items *answering(const struct querying *q)
{
    return q->by.items.container ? &q->by.items : &q->items;
}

/* --- What is answered --------------------------------------------------------------------------
 */

static bool row_append(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct querying *q = self;

    if (q->rows++)
        buf_append_byte(&q->call->body, ',');
    document_json_write_value(value, &q->call->body);
    return true;
}

/* The session goes on with the source's tokens: what a view has shown is not newer. */
static void view_answer(struct querying *q)
{
    CLEANUP(buf_done) struct buf name;

    buf_init(&name, BUF_DEFAULT_MAX);
    front_percent_encode(container_info(q->by.items.container)->id, &name);
    rest_answer_header(q->call, SLICE("x-orrery-view"), buf_slice(&name));
    rest_items_served(q->call, &q->by.items, q->by.span, 1);
}

/* Of a query that may have looked at all partitions: where each of them stands. */
static void sessions_answer(struct querying *q)
{
    CLEANUP(buf_done) struct buf token;
    size_t count;
    const struct partition_span *spans = partition_map_spans(q->items.space.map, &count);

    buf_init(&token, 16 * 1024);
    for (size_t i = 0; i < count; i++) {
        uint64_t lsn;

        if (!rest_items_lsn(&q->items, &spans[i], &lsn))
            continue;
        if (token.len)
            buf_append_byte(&token, ',');
        rest_session_append(q->call, spans[i].id, lsn, &token);
    }
    if (token.len && !buf_overflowed(&token))
        rest_answer_header(q->call, SLICE("x-ms-session-token"), buf_slice(&token));
    rest_session_paths(q->call, &q->items);
    if (q->by.items.container)
        view_answer(q);
    else
        rest_items_served(q->call, &q->items, spans, count);
}

static void partition_answer(struct querying *q, uint32_t partition)
{
    rest_items_headers(q->call, &q->items, partition, 0);
    rest_items_served(q->call, &q->items, partition_map_find_id(q->items.space.map, partition), 1);
}

static void session_answer(struct querying *q)
{
    if (q->target.span)
        partition_answer(q, q->target.span->id);
    else if (q->target.keyed)
        partition_answer(q, rest_items_partition(&q->items, &q->target.key, q->call->arena));
    else
        sessions_answer(q);
}

/* What was passed over. The list ends where a header would become too long. */
static void missing_answer(struct rest_call *call, const struct query_page *page)
{
    CLEANUP(buf_done) struct buf list;

    buf_init(&list, 4096);
    if (!page->missing_count)
        return;
    for (size_t i = 0; i < page->missing_count && list.len < 4000; i++)
        buf_printf(&list, "%s%u", i ? "," : "", page->missing[i]);
    rest_answer_header(call, SLICE("x-orrery-partial"), SLICE("true"));
    rest_answer_header(call, SLICE("x-orrery-missing-partitions"), buf_slice(&list));
}

static void page_answer(struct querying *q, const struct query_page *page)
{
    front_query_observe(&q->call->observed, &page->metrics);
    missing_answer(q->call, page);
    rest_feed_end(q->call, q->rows);
    rest_query_explain(q->call, page);
    if (page->continuation.len)
        rest_query_token_answer(q->call, answering(q), q->by.items.container != NULL,
                                page->continuation);
    rest_answer_header(q->call, SLICE("x-ms-cosmos-query-execution-info"),
                       SLICE("{\"reverseRidEnabled\":false,\"reverseIndexScan\":false}"));
    rest_query_figures(q->call, page, q->compile_ns);
    session_answer(q);
    q->call->status = 200;
}

static struct query_scope scope_of(const struct querying *q)
{
    if (q->target.key.open)
        return (struct query_scope){
            .kind = QUERY_SCOPE_KEYS, .keys = q->keys, .key_count = q->key_count};
    if (rest_call_header(q->call, REST_HEADER_PARTITION_KEY).data && !q->target.former)
        return (struct query_scope){.kind = QUERY_SCOPE_KEY, .key = q->target.key};
    return (struct query_scope){.kind = QUERY_SCOPE_RANGE, .range = q->target.range};
}

/* Advice is on the key of the container: what a query costs there, also where a view answered. */
static int64_t cru_without_view(const struct querying *q)
{
    const struct cost_query others = {.partitions_begun = (uint32_t)q->by.instead - 1};

    return q->by.items.container ? cost_add(q->call->charge_cru, cost_query(&others))
                                 : q->call->charge_cru;
}

/* err NULL: it was carried out. */
static void traffic_tell(const struct querying *q, const struct error *err)
{
    const struct rest_call *call = q->call;

    front_traffic_query(
        call->services, q->items.container,
        &(struct front_traffic_query){.plan = &q->prepared.plan,
                                      .key = q->target.keyed ? &q->target.key : NULL,
                                      .span = q->target.keyed ? NULL : q->target.span,
                                      .cru = cru_without_view(q),
                                      .bytes = err ? 0 : call->body.len,
                                      .text = call->http->body,
                                      .attempt = rest_items_attempt(call, err)});
}

/* --- Rankings ---------------------------------------------------------------------------------
 */

static bool head_page(void *self, const struct query_plan *plan,
                      const struct query_request *request, struct query_page *ret_page,
                      struct error *err)
{
    struct querying *q = self;
    struct query_request own = *request;

    return front_query_run(&q->call->front, plan, &own, ret_page, err);
}

/* Scores are by the texts of the whole container, so that they do not depend on where an item is;
 * for a token that may read one logical partition they are by the texts of that. */
static struct query_scope all_of(const struct querying *q)
{
    const struct partition_range all = {.min = PARTITION_ROUTING_MIN, .max = PARTITION_ROUTING_MAX};

    if (q->call->identity.key.data)
        return scope_of(q);
    return (struct query_scope){.kind = QUERY_SCOPE_RANGE, .range = all};
}

static bool ranking_run(struct querying *q, struct query_request *request,
                        struct query_page *ret_page, struct error *err)
{
    struct sql_compile_options options = rest_query_options(&q->items);
    const struct front_queries *queries = q->call->services->queries;
    struct sql_ranking_run run = {.prepared = &q->prepared,
                                  .parameters = q->body.parameters,
                                  .options = &options,
                                  .all = all_of(q),
                                  .head = {head_page, q}};

    rest_functions_offer(&q->functions, &options);
    request->arena = q->call->arena;
    request->meters = q->call->services->meters;
    request->limits.cancelled = q->call->cancelled;
    request->limits.memory_max = front_queries_memory_max(queries);
    request->limits.memory = net_owner_memory(q->call->owner);
    request->limits.deadline_ms =
        clock_read_monotonic_ms(q->call->services->clock) + front_queries_deadline_ms(queries);
    return sql_ranking_page(&run, request, ret_page, err);
}

static bool query_page_run(struct querying *q, struct error *err)
{
    struct rest_call *call = q->call;
    struct query_request request = {
        .space = &answering(q)->space,
        .container = container_rid(answering(q)->container),
        .call = &q->metered,
        .scope = scope_of(q),
        .limits = {.rows_max = q->rows_max,
                   .bytes_max = REST_FEED_BYTES_MAX,
                   .row_bytes_max = REST_FEED_BYTES_MAX,
                   .rendered = &call->body},
        .partial = rest_headers_true(&call->headers, REST_HEADER_ALLOW_PARTIAL),
        .order_unindexed = order_is_free(call),
        .timed = rest_headers_true(&call->headers, REST_HEADER_POPULATE_QUERY_METRICS),
        .explain = rest_query_wants_indexes(call) || rest_query_wants_explain(call),
        .row = row_append,
        .self = q,
    };
    struct query_page page;
    bool done;

    fingerprint_scope(q);
    if (!rest_query_token_open(call, &q->token, answering(q), &request.continuation, err) ||
        !rest_functions_host(&q->functions, &request.udf, err))
        return false;
    if (!front_references_take(&q->references, &q->prepared.plan, &request.reference, err)) {
        references_answer(q);
        return false;
    }
    rest_feed_begin(call, &q->items);
    done =
        q->prepared.ranking
            ? ranking_run(q, &request, &page, err)
            : front_query_run(&call->front, q->by.items.container ? &q->by.plan : &q->prepared.plan,
                              &request, &page, err);
    if (!done && !call->may_block && err->code == ERROR_COLD) {
        front_queries_was_cold(call->services->queries, kind_of(q));
        return cold(q);
    }
    if (done && !call->may_block)
        front_queries_was_short(call->services->queries, kind_of(q));
    rest_script_charged(call, &q->metered);
    references_answer(q);
    if (!request.continuation.len &&
        (done || (front_traffic_is_refusal(err) && !q->by.items.container)))
        traffic_tell(q, done ? NULL : err);
    if (!done)
        return false;
    page.explain = rest_by_view_explain(&q->by, page.explain, call->arena);
    page_answer(q, &page);
    return !buf_overflowed(&call->body) ||
           error_set(err, ERROR_TOO_LARGE, "a row of the query is larger than an answer may be");
}

/* What a view could not answer the container does, if nothing was given out yet: the view's
 * throughput is used up, or its node away. What took too much stays refused. */
static bool is_left_to_source(const struct querying *q, const struct error *err)
{
    return q->by.items.container && !q->token.sealed.data && err->code != ERROR_TIMED_OUT &&
           err->code != ERROR_QUERY_LIMIT && err->code != ERROR_MEMORY_FULL &&
           err->code != ERROR_TOO_LARGE;
}

static bool query_run_somewhere(struct querying *q, struct error *err)
{
    struct rest_call *call = q->call;
    size_t body_len = call->body.len;
    int64_t spent_cru;
    bool done = query_page_run(q, err);

    if (done || !is_left_to_source(q, err))
        return done;
    spent_cru = call->charge_cru;
    call->body.len = body_len;
    call->wait_ms = 0;
    q->metered.wait_ms = 0;
    q->metered.charge_cru = 0;
    q->rows = 0;
    rest_by_view_done(&q->by);
    done = query_page_run(q, err);
    call->charge_cru = cost_add(call->charge_cru, spent_cru);
    return done;
}

bool rest_items_query(struct rest_call *call, struct error *err)
{
    CLEANUP(arena_free) struct arena *tree = arena_new();
    struct querying q = {.call = call, .tree = tree};
    int64_t text_cru;
    bool done;

    if (!call->may_block && (call->http->body.len > LOOP_BODY_BYTES ||
                             rest_call_header(call, REST_HEADER_CONTINUATION).len)) {
        call->cold = true;
        return false;
    }
    rest_functions_init(&q.functions, call, &q.items);
    done = request_read(&q, err);
    text_cru = call->charge_cru;
    if (done) {
        done = query_run_somewhere(&q, err);
        call->charge_cru = cost_add(call->charge_cru, text_cru);
    }
    plan_give(&q);
    tree = q.tree;
    rest_functions_done(&q.functions);
    front_references_done(&q.references);
    rest_by_view_done(&q.by);
    rest_items_close(&q.items);
    return done;
}

/* --- Plans -------------------------------------------------------------------------------------
 */

static bool plan_make(struct rest_call *call, const struct rest_items *items,
                      const struct sql_body *body, struct sql_error *fault, struct error *err)
{
    struct slice features = rest_call_header(call, REST_HEADER_QUERY_FEATURES);
    struct sql_report report = {call->arena, fault, err};
    struct sql_query *query;

    if (!sql_parse(body->text, NULL, call->arena, &query, fault, err) ||
        !sql_bind(query, body->parameters, call->arena, fault, err) ||
        !sql_resolve(query, call->arena, fault, err) ||
        !sql_vectors_orient(query, rest_query_options(items).vectors, call->arena, &report))
        return false;
    if (query->order_by_rank)
        sql_bind_literally(
            query); /* libraries send the queries of such a plan without parameters */
    return sql_gateway_plan(
        query, &(struct sql_gateway_place){&items->space.definition->key, items->space.map},
        features, call->arena, &call->body, fault, err);
}

static bool plan_answer(struct rest_call *call, const struct rest_items *items,
                        struct sql_error *fault, struct error *err)
{
    const struct partition_range all = {.min = PARTITION_ROUTING_MIN, .max = PARTITION_ROUTING_MAX};
    struct metered_call metered = {0};
    struct metering metering;
    struct sql_body body;
    bool done;

    if (!rest_query_body(call, &body, err) || !rest_items_metered(call, &metered, err) ||
        !rest_query_text_begin(call, items, all, body.text, &metering, &metered, err))
        return false;
    done = plan_make(call, items, &body, fault, err);
    rest_query_text_end(call, body.text, &metering);
    return done;
}

bool rest_items_plan(struct rest_call *call, struct error *err)
{
    CLEANUP(rest_items_close) struct rest_items items = {0};
    struct sql_error fault = {0};

    if (!rest_items_open(call, &items, err))
        return false;
    call->charge_cru = cost_metadata(COST_METADATA_READ);
    if (!plan_answer(call, &items, &fault, err)) {
        rest_query_fault(call, &fault);
        return false;
    }
    call->status = 200;
    return true;
}
