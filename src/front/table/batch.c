/* Entity group transactions. All changes are one transaction; the first that fails ends it and is
 * the only part of the answer, which is 202 all the same. */
#include "document/json.h"
#include "front/table/answer.h"
#include "front/table/multipart.h"
#include "front/table/query.h"
#include "front/table/write.h"

#include <xxhash.h>

enum { NONE = -1 };

/* One change: a call of its own as far as its headers go. */
struct batched {
    struct table_call call;
    struct net_http_request http;
    struct table_write write;
};

struct run {
    struct metered_transaction transaction;
    struct table_call *call;
    struct table_space space;
    struct batched *changes;
    size_t count;
    struct transaction_result *results;
    int failed; /* which change; NONE: none, or it is not known */
    uint32_t traffic_weight;
};

/* --- Reading --------------------------------------------------------------------------------- */

/* The path and query of a target that is a URL, a path or relative to the account. */
static bool target_split(struct table_call *call, struct slice target, struct slice *ret_path,
                         struct slice *ret_query)
{
    struct slice host, path = target;
    const uint8_t *scheme = memmem(target.data, target.len, "://", 3);

    if (scheme) {
        path = slice_skip(target, (size_t)(scheme - target.data) + 3);
        if (!slice_split(path, '/', &host, &path))
            return false;
    } else if (path.data[0] == '/') {
        path = slice_skip(path, 1);
    }
    path = arena_join(call->arena, (struct slice[]){SLICE("/"), path}, 2);
    *ret_query = SLICE_NONE;
    (void)slice_split(path, '?', &path, ret_query);
    *ret_path = path;
    return true;
}

/* Fills in a call for a part of the batch; its answer goes elsewhere. */
static bool part_open(struct table_call *call, const struct table_part *part,
                      struct batched *ret_change, struct error *err)
{
    struct table_call *inner = &ret_change->call;
    struct net_http_request *http = &ret_change->http;

    *inner = *call;
    *http = *call->http;
    inner->batch = call->http;
    inner->http = http;
    http->method = part->method;
    http->headers = part->headers;
    http->header_count = part->header_count;
    http->body = part->body;
    if (!target_split(call, part->target, &http->path, &http->query))
        return error_set(err, ERROR_BAD_REQUEST, "a part of the batch names no path");
    if (!table_parameters_parse(http->query, call->arena, &inner->parameters, err) ||
        !table_route_parse(http->path, &inner->parameters, call->arena, &inner->route, err) ||
        !table_verb_find(http->method, table_call_header(inner, SLICE("x-http-method")),
                         inner->route.resource, &inner->verb, err) ||
        !table_call_level(inner, err))
        return false;
    inner->route.prefix = call->route.prefix; /* links are those of the batch */
    inner->operation = table_operation_find(inner->route.resource, inner->verb);
    if (!inner->operation || inner->operation->scope != TABLE_SCOPE_OBJECT ||
        inner->route.resource == TABLE_BATCH)
        return error_set(err, ERROR_BAD_REQUEST, "a batch is made of operations on entities");
    if (inner->route.account.data && call->route.account.data &&
        !slice_equal(inner->route.account, call->route.account))
        return error_set(err, ERROR_BAD_REQUEST, "a part of the batch names another account");
    inner->route.account = call->route.account; /* and so are the accounts in types */
    return table_identity_check(&call->identity, inner->operation, inner->route.table, err);
}

static enum table_write_kind kind_of(enum table_verb verb)
{
    switch (verb) {
    case TABLE_CREATE:
        return TABLE_WRITE_INSERT;
    case TABLE_MERGE:
        return TABLE_WRITE_MERGE;
    case TABLE_DELETE:
        return TABLE_WRITE_DELETE;
    default:
        return TABLE_WRITE_REPLACE;
    }
}

static bool change_read(struct table_call *call, const struct table_part *part,
                        struct batched *change, struct error *err)
{
    struct table_write *write = &change->write;
    struct table_call *inner = &change->call;

    if (!part_open(call, part, change, err))
        return false;
    if (inner->verb == TABLE_READ || inner->verb == TABLE_LIST)
        return error_set(err, ERROR_BAD_REQUEST, "a changeset has no queries");
    *write = (struct table_write){.kind = kind_of(inner->verb), .keys = inner->route.keys};
    if (!table_write_condition_read(inner, write, err))
        return false;
    if (write->kind != TABLE_WRITE_DELETE &&
        !table_entity_read(part->body, &write->keys, call->arena, &write->document, err))
        return false;
    if ((write->kind == TABLE_WRITE_REPLACE || write->kind == TABLE_WRITE_MERGE) &&
        !write->etag.data && !table_identity_check_add(&call->identity, err))
        return false;
    return table_identity_check_keys(&call->identity, &write->keys, err);
}

/* All on one table and partition, no row twice. */
static bool group_check(const struct run *run, size_t at, struct error *err)
{
    const struct batched *first = &run->changes[0], *change = &run->changes[at];

    if (!slice_equal_nocase(change->call.route.table, first->call.route.table) ||
        !slice_equal(change->write.keys.partition, first->write.keys.partition))
        return error_set(err, ERROR_TABLE_PARTITIONS, "operation %zu is on another one", at);
    for (size_t i = 0; i < at; i++)
        if (slice_equal(run->changes[i].write.keys.row, change->write.keys.row))
            return error_set(err, ERROR_TABLE_ROW_TWICE, "operation %zu is on the entity of %zu",
                             at, i);
    return true;
}

/* --- Answers --------------------------------------------------------------------------------- */

static void part_begin(struct table_call *call, const char *boundary)
{
    buf_printf(&call->body,
               "--%s_%s\r\nContent-Type: application/http\r\n"
               "Content-Transfer-Encoding: binary\r\n\r\n",
               boundary, call->request_id);
}

static void status_append(struct table_call *call, uint16_t status)
{
    buf_printf(&call->body,
               "HTTP/1.1 %u %s\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n"
               "DataServiceVersion: 3.0;\r\n",
               status, net_http_reason(status));
}

static void answer_begin(struct table_call *call)
{
    call->status = 202;
    call->format = TABLE_FORMAT_OTHER;
    buf_clear(&call->body);
    buf_printf(&call->lines, "Content-Type: multipart/mixed; boundary=batchresponse_%s\r\n",
               call->request_id);
}

static void changeset_begin(struct table_call *call)
{
    buf_printf(&call->body,
               "--batchresponse_%s\r\nContent-Type: multipart/mixed; "
               "boundary=changesetresponse_%s\r\n\r\n",
               call->request_id, call->request_id);
}

static void changeset_end(struct table_call *call)
{
    buf_printf(&call->body, "--changesetresponse_%s--\r\n--batchresponse_%s--\r\n",
               call->request_id, call->request_id);
}

/* For the record for advice: the changes are one transaction. */
static void change_join(struct run *run, struct table_call *inner)
{
    inner->transaction = slice_of(run->call->request_id, RANDOM_UUID_SIZE - 1);
    inner->traffic_weight = &run->traffic_weight;
}

/* Lines and body of a change that went well are made as for a single one, then put into place. */
static void change_answer(struct run *run, struct batched *change,
                          const struct transaction_result *result)
{
    struct table_call *call = run->call, *inner = &change->call;

    buf_init(&inner->lines, TABLE_LINES_MAX);
    buf_init(&inner->body, TABLE_BODY_MAX);
    inner->charge_cru = result->charge_cru;
    change_join(run, inner);
    table_write_answer(inner, &run->space, &change->write, result);
    part_begin(call, "changesetresponse");
    status_append(call, inner->status);
    if (inner->body.len)
        buf_printf(&call->body, "Content-Type: %s\r\n", table_content_type(inner->level));
    buf_append_slice(&call->body, buf_slice(&inner->lines));
    if (change->write.kind != TABLE_WRITE_INSERT) {
        BUF_APPEND(&call->body, "DataServiceId: ");
        buf_append_slice(&call->body, table_call_root(call));
        BUF_APPEND(&call->body, "/");
        table_entity_link_append(run->space.name, &change->write.keys, &call->body);
        BUF_APPEND(&call->body, "\r\n");
    }
    BUF_APPEND(&call->body, "\r\n");
    buf_append_slice(&call->body, buf_slice(&inner->body));
    BUF_APPEND(&call->body, "\r\n");
    buf_done(&inner->lines);
    buf_done(&inner->body);
}

static void success_answer(struct run *run)
{
    answer_begin(run->call);
    changeset_begin(run->call);
    for (size_t i = 0; i < run->count; i++)
        change_answer(run, &run->changes[i], &run->results[i]);
    changeset_end(run->call);
}

static void failure_answer(struct run *run, const struct error *err)
{
    struct table_call *call = run->call;

    answer_begin(call);
    changeset_begin(call);
    part_begin(call, "changesetresponse");
    status_append(call, table_code_of(err->code)->status);
    buf_printf(&call->body, "Content-Type: %s\r\n\r\n", table_content_type(TABLE_LEVEL_MINIMAL));
    table_error_append(call, err, MAX(run->failed, 0), &call->body);
    BUF_APPEND(&call->body, "\r\n");
    changeset_end(call);
}

/* Whether an error is one operation's own fault, to be shown in its place. */
static bool is_of_operation(const struct error *err)
{
    uint16_t status = table_code_of(err->code)->status;

    return status == 400 || status == 404 || status == 409 || status == 412;
}

/* --- Running --------------------------------------------------------------------------------- */

static bool plan(struct metered_transaction *self, struct transaction *transaction,
                 struct error *err)
{
    struct run *run = CONTAINER_OF(self, struct run, transaction);

    run->failed = NONE;
    for (size_t i = 0; i < run->count; i++)
        if (!table_write_add(&run->changes[i].write, transaction, run->call->arena, err)) {
            run->failed = (int)i;
            return false;
        }
    return true;
}

static void done(struct metered_transaction *self, struct transaction *transaction)
{
    struct run *run = CONTAINER_OF(self, struct run, transaction);

    for (size_t i = 0; i < run->count; i++)
        run->results[i] = transaction_result(transaction, i);
}

static void refused(struct metered_transaction *self, size_t nth)
{
    struct run *run = CONTAINER_OF(self, struct run, transaction);

    run->failed = (int)nth;
}

static bool run_commit(struct run *run, struct error *err)
{
    struct table_call *call = run->call;
    struct metered_call metered = table_call_metered(call);
    struct partition_key key = table_write_key(&run->space, &run->changes[0].write.keys);
    bool fine;

    run->transaction = (struct metered_transaction){
        .plan = plan,
        .done = done,
        .refused = refused,
        .ticket = XXH3_64bits(call->http->body.data, call->http->body.len) | 1};
    for (size_t i = 0; i < run->count; i++)
        run->transaction.price_cru += table_write_price(&run->changes[i].write);
    fine = metered_transaction_run(call->services->meters, &run->space.space, &key,
                                   &run->transaction, &metered, call->arena, err);
    table_call_charged(call, &metered);
    return fine;
}

static bool changes_read(struct run *run, const struct table_multipart *multipart,
                         struct error *err)
{
    for (size_t i = 0; i < multipart->count; i++) {
        run->failed = (int)i;
        if (!change_read(run->call, &multipart->parts[i], &run->changes[i], err))
            return false;
        if (!group_check(run, i, err)) {
            run->failed = NONE; /* the fault is in the batch as a whole */
            return false;
        }
    }
    run->failed = NONE;
    return true;
}

/* Keys that the server makes are known now; they must be one as well. */
static bool changes_complete(struct run *run, struct error *err)
{
    for (size_t i = 0; i < run->count; i++)
        if (!table_write_complete(run->call, &run->space, &run->changes[i].write, err) ||
            !group_check(run, i, err))
            return false;
    return true;
}

static void refusal_tell(struct run *run, const struct error *err)
{
    for (size_t i = 0; i < run->count; i++) {
        struct table_call *inner = &run->changes[i].call;

        inner->wait_ms = run->call->wait_ms;
        change_join(run, inner);
        table_write_refused(inner, &run->space, &run->changes[i].write, err);
    }
}

static bool changeset_run(struct table_call *call, const struct table_multipart *multipart,
                          struct error *err)
{
    struct run run = {.call = call,
                      .changes = ARENA_ARRAY(call->arena, struct batched, multipart->count),
                      .count = multipart->count,
                      .traffic_weight = TRAFFIC_UNDECIDED,
                      .results =
                          ARENA_ARRAY(call->arena, struct transaction_result, multipart->count)};
    bool fine;

    fine = changes_read(&run, multipart, err);
    if (!fine && run.failed == NONE)
        return false;
    fine = fine && table_space_open(call, run.changes[0].call.route.table, &run.space, err) &&
           changes_complete(&run, err) && run_commit(&run, err);
    if (fine)
        success_answer(&run);
    else if (is_of_operation(err))
        failure_answer(&run, err);
    else if (run.space.container)
        refusal_tell(&run, err);
    table_space_close(&run.space);
    return fine || is_of_operation(err);
}

/* A query alone in its batch. */
static bool query_run_alone(struct table_call *call, const struct table_part *part,
                            struct error *err)
{
    struct batched *change = ARENA_NEW(call->arena, struct batched);
    struct table_call *inner = &change->call;
    bool fine;

    if (!part_open(call, part, change, err))
        return false;
    if (inner->verb != TABLE_READ && inner->verb != TABLE_LIST)
        return error_set(err, ERROR_BAD_REQUEST, "changes stand in a changeset");
    if (inner->verb == TABLE_READ &&
        !table_identity_check_keys(&call->identity, &inner->route.keys, err))
        return false;
    buf_init(&inner->lines, TABLE_LINES_MAX);
    buf_init(&inner->body, TABLE_BODY_MAX);
    fine = inner->operation->run(inner, err);
    call->charge_cru = inner->charge_cru;
    call->wait_ms = inner->wait_ms;
    if (!fine && is_of_operation(err)) {
        inner->status = table_code_of(err->code)->status;
        buf_clear(&inner->lines);
        buf_clear(&inner->body);
        table_error_append(call, err, 0, &inner->body);
        fine = true;
    }
    if (fine) {
        answer_begin(call);
        part_begin(call, "batchresponse");
        status_append(call, inner->status);
        buf_printf(&call->body, "Content-Type: %s\r\n", table_content_type(inner->level));
        buf_append_slice(&call->body, buf_slice(&inner->lines));
        BUF_APPEND(&call->body, "\r\n");
        buf_append_slice(&call->body, buf_slice(&inner->body));
        buf_printf(&call->body, "\r\n--batchresponse_%s--\r\n", call->request_id);
    }
    buf_done(&inner->lines);
    buf_done(&inner->body);
    return fine;
}

bool table_batch_run(struct table_call *call, struct error *err)
{
    struct table_multipart multipart;

    if (!table_multipart_read(table_call_header(call, SLICE("content-type")), call->http->body,
                              call->arena, &multipart, err))
        return false;
    return multipart.changeset ? changeset_run(call, &multipart, err)
                               : query_run_alone(call, &multipart.parts[0], err);
}
