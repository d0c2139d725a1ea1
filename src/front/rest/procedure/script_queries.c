/* Queries of scripts: the language and the engine of all others, held to one logical partition and
 * to the moment of the transaction, and paid for with the script. */
#include "front/kit/queries.h"
#include "front/rest/continuation.h"
#include "front/rest/procedure/script_host.h"
#include "front/rest/query/query.h"
#include "front/rest/script/functions.h"
#include "front/rest/target/feed_target.h"

#include "document/json.h"
#include "front/rest/sql/documents.h"
#include "throughput/cost.h"

#include <xxhash.h>

static const struct slice purpose = {(const uint8_t *)"script query 1", 14};

struct querying {
    struct rest_script_host *host;
    const struct script_operation *operation;
    struct sql_body body;
    struct sql_prepared prepared;
    struct rest_functions functions;
    struct buf rows;
    size_t count;
};

static bool body_read(struct querying *q, struct sql_error *fault, struct error *err)
{
    struct document_value body;

    if (q->operation->verb == SCRIPT_READ_FEED) {
        q->body = (struct sql_body){.text = SLICE("SELECT * FROM root")};
        return true;
    }
    if (!rest_call_json(q->host->call, q->operation->body, 0, &body, err))
        return false;
    if (body.type != DOCUMENT_OBJECT)
        return error_set(err, ERROR_BAD_REQUEST, "the query is neither a text nor an object");
    return sql_body_read(body.document, &q->body, q->host->answers, fault, err);
}

static bool prepare(struct querying *q, struct error *err)
{
    struct sql_compile_options options = rest_query_options(q->host->items);
    struct sql_error fault = {0};

    rest_functions_offer(&q->functions, &options);
    if (body_read(q, &fault, err) && sql_prepare(q->body.text, q->body.parameters, &options,
                                                 q->host->answers, &q->prepared, &fault, err))
        return true;
    rest_query_fault(q->host->call, &fault);
    return false;
}

static bool row_append(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct querying *q = self;

    buf_append_byte(&q->rows, q->count++ ? ',' : '[');
    document_json_write_value(value, &q->rows);
    return true;
}

static size_t page_size(const struct script_operation *operation)
{
    if (operation->page_size == 0)
        return REST_FEED_ITEMS_DEFAULT;
    if (operation->page_size < 0)
        return REST_FEED_ITEMS_MAX;
    return MIN((size_t)operation->page_size, (size_t)REST_FEED_ITEMS_MAX);
}

static bool page_run(struct querying *q, struct query_page *ret_page, struct arena *arena,
                     struct error *err)
{
    struct rest_script_host *host = q->host;
    struct rest_call *call = host->call;
    int64_t now_ms = clock_read_monotonic_ms(call->services->clock);
    struct metered_call metered = {.strong = host->strong};
    struct query_request request = {
        .space = host->space,
        .container = container_rid(host->items->container),
        .call = &metered,
        .scope = {.kind = QUERY_SCOPE_KEY, .key = host->key},
        .limits = {.rows_max = page_size(q->operation),
                   .bytes_max = REST_FEED_BYTES_MAX,
                   .row_bytes_max = REST_FEED_BYTES_MAX,
                   .rendered = &q->rows,
                   .pause_ms = now_ms + call->options->scripts.time_ms / 2,
                   .deadline_ms = now_ms + call->options->scripts.time_ms,
                   .memory_max = front_queries_memory_max(call->services->queries),
                   .cancelled = call->cancelled,
                   .breath = front_breath(call->services->workers),
                   .memory = net_owner_memory(call->owner)},
        .snapshot = transaction_snapshot(host->transaction),
        .order_unindexed = call->options->queries.order_unindexed,
        .arena = arena,
        .row = row_append,
        .self = q,
    };
    struct slice logical = item_logical(&host->space->definition->key, &host->key, arena);

    if (!rest_functions_host(&q->functions, &request.udf, err))
        return false;
    q->prepared.plan.fingerprint =
        XXH3_64bits_withSeed(logical.data, logical.len, q->prepared.plan.fingerprint);
    return (!q->operation->continuation.len ||
            rest_continuation_open(call, container_info(host->items->container)->rid, purpose,
                                   q->operation->continuation, &request.continuation, err)) &&
           query_run(&q->prepared.plan, &request, ret_page, err);
}

static bool query_answer(struct querying *q, struct script_answer *answer, struct arena *arena,
                         struct error *err)
{
    struct query_page page;

    if (!prepare(q, err) || !page_run(q, &page, arena, err))
        return false;
    if (!q->count)
        buf_append_byte(&q->rows, '[');
    buf_append_byte(&q->rows, ']');
    if (buf_overflowed(&q->rows))
        return error_set(err, ERROR_TOO_LARGE, "a row of the query is larger than a page may be");
    answer->status = 200;
    answer->body = arena_copy(arena, buf_slice(&q->rows));
    answer->charge_cru = page.charge_cru;
    if (page.continuation.len)
        answer->continuation =
            rest_continuation_seal(q->host->call, container_info(q->host->items->container)->rid,
                                   purpose, page.continuation);
    q->host->reads_cru = cost_add(q->host->reads_cru, page.charge_cru);
    return true;
}

bool rest_script_query(struct rest_script_host *host, const struct script_operation *operation,
                       struct script_answer *answer, struct arena *arena, struct error *err)
{
    struct querying q = {.host = host, .operation = operation};
    bool done;

    buf_init(&q.rows, BUF_DEFAULT_MAX);
    rest_functions_init(&q.functions, host->call, host->items);
    q.functions.within = true;
    done = query_answer(&q, answer, arena, err);
    rest_functions_done(&q.functions);
    buf_done(&q.rows);
    return done;
}
