/* The execution of stored procedures. A procedure is the plan of a transaction: when the commit
 * loses to another one, all of it is thrown away and the procedure runs again on a later moment. */
#include "front/rest/procedure/scripts.h"

#include "base/clock.h"
#include "document/json.h"
#include "front/rest/procedure/script_link.h"
#include "throughput/cost.h"

#include <inttypes.h>
#include <xxhash.h>

/* --- Running ---------------------------------------------------------------------------------- */

enum { COMPILE_FAILED = 65535 }; /* a substatus of the service */

/* The service's words around what was thrown. */
static void failure_tell(struct rest_call *call, const struct script_result *result,
                         struct error *err)
{
    CLEANUP(buf_done) struct buf text, message;

    buf_init(&text, BUF_DEFAULT_MAX);
    buf_init(&message, BUF_DEFAULT_MAX);
    BUF_APPEND(&text, "Encountered exception while executing function. Exception = ");
    buf_append_slice(&text, result->error_message);
    if (result->error_stack.len) {
        BUF_APPEND(&text, "\r\nStack trace: ");
        buf_append_slice(&text, result->error_stack);
    }
    BUF_APPEND(&message, "Message: {\"Errors\":[");
    document_json_write_string(buf_slice(&text), &message);
    BUF_APPEND(&message, "]}");
    call->message = arena_copy(call->arena, buf_slice(&message));
    if (result->compile_failed)
        err->substatus = COMPILE_FAILED;
    else if (result->error_number > 0)
        err->substatus = (uint32_t)result->error_number;
}

static int64_t script_cost(const struct script_counts *counts)
{
    return cost_script(counts->operations, counts->operation_bytes + counts->answer_bytes +
                                               counts->input_bytes + counts->output_bytes);
}

bool rest_script_run(struct rest_script_host *host, struct catalogue_child *script,
                     struct script_request request, struct script_result *ret_result,
                     struct error *err)
{
    CLEANUP(catalogue_child_unref) struct catalogue_child *whole = NULL;
    struct script_host served = rest_script_host(host);
    struct rest_call *call = host->call;
    bool fine;

    *ret_result = (struct script_result){0};
    if (!catalogue_child_whole(call->services->catalogue, script, &whole, err))
        return false;
    request.who = rest_script_party(call, host->items);
    request.key = rest_script_key(call, whole, host->arena);
    request.name = catalogue_child_info(whole)->id;
    request.source = rest_script_source(whole);
    request.self_link = host->self_link;
    request.alt_link = host->alt_link;
    request.logging = rest_headers_true(&call->headers, REST_HEADER_SCRIPT_LOGGING);
    request.may_write = true;
    request.arena = host->arena;
    fine = script_run(call->services->scripts, &request, &served, ret_result, err);
    host->reads_cru = cost_add(host->reads_cru, script_cost(&ret_result->counts));
    if (!fine && err->code == ERROR_SCRIPT_FAILED)
        failure_tell(call, ret_result, err);
    if (!fine && err->code == ERROR_BUSY && !host->ended)
        return rest_script_busy(call, err);
    return fine;
}

void rest_script_log(struct rest_call *call, struct slice log)
{
    if (!rest_headers_true(&call->headers, REST_HEADER_SCRIPT_LOGGING))
        return;
    if (log.len && log.data[log.len - 1] == '\n')
        log.len--; /* between lines, not behind the last */
    BUF_APPEND(&call->lines, "x-ms-documentdb-script-log-results: ");
    front_percent_encode(log, &call->lines);
    BUF_APPEND(&call->lines, "\r\n");
}

/* --- Procedures ------------------------------------------------------------------------------ */

struct execution {
    struct metered_transaction metered;
    struct rest_script_host host;
    struct catalogue_child *script; /* whole; a reference */
    struct slice arguments;
    int64_t late_ms; /* by the monotonic clock: no attempt begins then */
    struct slice response;
    struct slice log; /* in the call's arena */
};

static bool execution_plan(struct metered_transaction *metered, struct transaction *transaction,
                           struct error *err)
{
    struct execution *execution = CONTAINER_OF(metered, struct execution, metered);
    struct rest_script_host *host = &execution->host;
    struct rest_call *call = host->call;
    struct script_request request = {.kind = SCRIPT_PROCEDURE, .arguments = execution->arguments};
    struct script_result result;
    bool fine;

    if (clock_read_monotonic_ms(call->services->clock) >= execution->late_ms)
        return error_set(err, ERROR_CONFLICT,
                         "others wrote what the procedure wanted to write, as often as it ran");
    rest_script_host_begin(host, metered, transaction);
    fine = rest_script_run(host, execution->script, request, &result, err);
    execution->response = result.response_body;
    execution->log = arena_copy(call->arena, result.log);
    metered->reads_cru = cost_add(host->reads_cru, fine ? 0 : host->writes_cru);
    return fine;
}

static void execution_done(struct metered_transaction *metered,
                           struct transaction *transaction UNUSED)
{
    struct execution *execution = CONTAINER_OF(metered, struct execution, metered);
    struct buf *body = &execution->host.call->body;

    buf_clear(body);
    if (execution->response.data)
        rest_script_names(&execution->host, execution->response, body);
    else
        BUF_APPEND(body, "\"\"");
}

/* The arguments stay text: the script's side reads them. Here they are only looked at. */
static bool arguments_read(struct rest_call *call, struct slice *ret_arguments, struct error *err)
{
    struct document_value arguments;

    *ret_arguments = SLICE_NONE;
    if (call->http->body.len == 0)
        return true;
    if (!rest_call_body_value(call, 1, &arguments, err))
        return false;
    if (arguments.type != DOCUMENT_ARRAY)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the arguments of a stored procedure must be a JSON array");
    *ret_arguments = call->http->body;
    return true;
}

static bool procedure_open(const struct rest_call *call, const struct rest_items *items,
                           struct catalogue_child **ret_script, struct error *err)
{
    struct catalogue_child *script = catalogue_children_find(
        container_children(items->container, CHILD_PROCEDURE), call->route.id);

    if (!script)
        return error_set(err, ERROR_NOT_FOUND, "stored procedure \"%.*s\" does not exist",
                         (int)MIN(call->route.id.len, (size_t)64),
                         (const char *)call->route.id.data);
    return catalogue_child_whole(call->services->catalogue, script, ret_script, err);
}

static bool execution_run(struct execution *execution, const struct rest_items *items,
                          struct metered_call *metered, struct error *err)
{
    struct rest_call *call = execution->host.call;
    const struct partition_key *key = &execution->host.key;
    struct slice body = call->http->body;

    execution->metered = (struct metered_transaction){
        .plan = execution_plan,
        .done = execution_done,
        .price_cru = cost_script(0, rest_script_source(execution->script).len + body.len),
        .ticket = XXH3_64bits_withSeed(body.data, body.len, call->route.id.len) | 1,
        .attempts_max = REST_SCRIPT_ATTEMPTS_MAX,
        .gates = call->script_gates,
        .own_arena = true,
    };
    execution->late_ms = clock_read_monotonic_ms(call->services->clock) +
                         REST_SCRIPT_TIMES_MAX * call->options->scripts.time_ms;
    return metered_transaction_run(call->services->meters, &items->space, key, &execution->metered,
                                   metered, call->arena, err);
}

static bool execution_answer(struct execution *execution, struct rest_items *items,
                             const struct partition_key *key, struct metered_call *metered,
                             struct error *err)
{
    struct rest_call *call = execution->host.call;
    struct script_place *place;
    bool fine;

    if (!rest_scripts_enter(call, items, &place, err))
        return false;
    fine = execution_run(execution, items, metered, err);
    rest_scripts_leave(call, place);
    rest_script_host_done(&execution->host);
    rest_script_charged(call, metered);
    rest_script_log(call, execution->log);
    if (!fine)
        return false;
    rest_items_headers(call, items, rest_items_partition(items, key, call->arena), 0);
    call->status = 200;
    return true;
}

bool rest_procedures_execute(struct rest_call *call, struct error *err)
{
    CLEANUP(rest_items_close) struct rest_items items = {0};
    struct execution execution = {0};
    struct metered_call metered;
    struct partition_key key;
    bool given, fine;

    if (!rest_items_open(call, &items, err) || !rest_items_metered(call, &metered, err) ||
        !rest_items_key(call, &items, &key, &given, err))
        return false;
    if (!given)
        return rest_items_key_missing(err);
    if (!procedure_open(call, &items, &execution.script, err))
        return false;
    fine = arguments_read(call, &execution.arguments, err) &&
           rest_script_host_init(&execution.host, call, &items, &key, metered.strong, err) &&
           execution_answer(&execution, &items, &key, &metered, err);
    catalogue_child_unref(execution.script);
    return fine;
}
