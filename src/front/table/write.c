#include "front/table/write.h"

#include "document/bson.h"
#include "front/table/answer.h"
#include "partition/synthetic.h"
#include "throughput/cost.h"

/* Clients take 8 to 16 KB of headers; a link has up to 9 bytes for each character of a key. */
enum { LOCATION_MAX = 4096, SERVICE_ID_MAX = 2048 };

/* --- Planning -------------------------------------------------------------------------------- */

static bool is_any(struct slice etag)
{
    return slice_equal(etag, SLICE("*"));
}

bool table_write_condition_read(const struct table_call *call, struct table_write *write,
                                struct error *err)
{
    struct slice text = table_call_header(call, SLICE("if-match"));

    if (write->kind == TABLE_WRITE_INSERT)
        return true;
    if (!text.data)
        return write->kind != TABLE_WRITE_DELETE ||
               error_set(err, ERROR_TABLE_HEADER_MISSING, "a delete needs If-Match, an ETag or *");
    if (!is_any(text) && (text.len < 4 || !slice_starts_with(text, SLICE("W/\"")) ||
                          memchr(text.data + 3, '"', text.len - 3) != text.data + text.len - 1))
        return error_set(
            err, ERROR_BAD_REQUEST,
            "the etag value in If-Match is not valid: it is * or one ETag as W/\"...\"");
    write->etag = text;
    return true;
}

bool table_write_needs_item(const struct table_write *write)
{
    return write->kind == TABLE_WRITE_MERGE || (write->etag.data && !is_any(write->etag));
}

static bool etag_check(const struct table_write *write, const struct item *item, struct error *err)
{
    char etag[TABLE_ETAG_LEN];

    table_etag_write(table_entity_ticks(&item->header), etag);
    return slice_equal(write->etag, slice_of(etag, sizeof etag)) ||
           error_set(err, ERROR_PRECONDITION_FAILED, "the entity has another ETag");
}

static bool plan_on_item(const struct table_write *write, const struct item *item,
                         struct arena *arena, struct table_write_plan *plan, struct error *err)
{
    if (!item && write->etag.data)
        return error_set(err, ERROR_ITEM_MISSING, "the entity does not exist");
    if (!item) { /* insert or merge, where nothing is */
        plan->verb = TRANSACTION_CREATE;
        plan->relies = true;
        return true;
    }
    if (write->etag.data && !is_any(write->etag) && !etag_check(write, item, err))
        return false;
    if (write->kind == TABLE_WRITE_MERGE &&
        !table_entity_merge(item->document, write->document, arena, &plan->document, err))
        return false;
    item_etag(&item->header, plan->etag);
    plan->options.if_match = slice_of(plan->etag, sizeof plan->etag);
    plan->relies = !write->etag.data || is_any(write->etag);
    if (write->kind == TABLE_WRITE_MERGE)
        plan->verb = TRANSACTION_REPLACE;
    return true;
}

bool table_write_plan(const struct table_write *write, const struct item *item, struct arena *arena,
                      struct table_write_plan *ret_plan, struct error *err)
{
    *ret_plan = (struct table_write_plan){.document = write->document};
    switch (write->kind) {
    case TABLE_WRITE_INSERT:
        ret_plan->verb = TRANSACTION_CREATE;
        break;
    case TABLE_WRITE_DELETE:
        ret_plan->verb = TRANSACTION_DELETE;
        break;
    default:
        ret_plan->verb = write->etag.data ? TRANSACTION_REPLACE : TRANSACTION_UPSERT;
    }
    return !table_write_needs_item(write) || plan_on_item(write, item, arena, ret_plan, err);
}

bool table_write_add(const struct table_write *write, struct transaction *transaction,
                     struct arena *arena, struct error *err)
{
    struct document_value id = table_write_id(&write->keys);
    const struct item *item = NULL;
    struct table_write_plan *plan = ARENA_NEW(arena, struct table_write_plan);

    return (!table_write_needs_item(write) || transaction_read(transaction, &id, &item, err)) &&
           table_write_plan(write, item, arena, plan, err) &&
           transaction_write(transaction, &id, plan->verb, plan->document, &plan->options, err);
}

int64_t table_write_price(const struct table_write *write)
{
    struct cost_write known = {.removes = write->kind == TABLE_WRITE_DELETE,
                               .puts = write->kind != TABLE_WRITE_DELETE,
                               .new_bytes = write->document.len};

    return cost_write(&known);
}

struct partition_key table_write_key(const struct table_space *space, const struct table_keys *keys)
{
    struct document_value value = document_string(keys->partition);

    return partition_key_of(&space->space.definition->key, &value, 1);
}

struct document_value table_write_id(const struct table_keys *keys)
{
    return document_string(keys->row);
}

/* --- Where blocking is fine ------------------------------------------------------------------ */

struct single {
    struct metered_transaction transaction;
    const struct table_write *write;
    struct arena *arena;
    struct transaction_result result;
};

static bool single_plan(struct metered_transaction *self, struct transaction *transaction,
                        struct error *err)
{
    struct single *single = CONTAINER_OF(self, struct single, transaction);

    return table_write_add(single->write, transaction, single->arena, err);
}

static void single_done(struct metered_transaction *self, struct transaction *transaction)
{
    struct single *single = CONTAINER_OF(self, struct single, transaction);

    single->result = transaction_result(transaction, 0);
}

bool table_write_run(struct table_call *call, const struct table_space *space,
                     const struct table_write *write, struct transaction_result *ret_result,
                     struct error *err)
{
    struct partition_key key = table_write_key(space, &write->keys);
    struct single single = {.transaction = {.plan = single_plan,
                                            .done = single_done,
                                            .price_cru = table_write_price(write)},
                            .write = write,
                            .arena = call->arena};
    struct metered_call metered = table_call_metered(call);
    bool done = metered_transaction_run(call->services->meters, &space->space, &key,
                                        &single.transaction, &metered, call->arena, err);

    table_call_charged(call, &metered);
    if (done)
        *ret_result = single.result;
    return done;
}

/* --- Keys made by the server ----------------------------------------------------------------- */

/* With another PartitionKey; data NULL: without one. */
static struct slice document_rekeyed(struct slice document, struct slice partition,
                                     struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    struct document_iter iter;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_iter_init(&iter, document);
    while (document_iter_next(&iter))
        if (!slice_equal(iter.key, SLICE("PartitionKey")))
            document_append(&out, iter.key, &iter.value);
        else if (partition.data)
            document_append_string(&out, iter.key, partition);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

bool table_write_complete(struct table_call *call, const struct table_space *space,
                          struct table_write *write, struct error *err)
{
    const struct partition_definition *definition = &space->space.definition->key;
    struct partition_key key;

    if (!definition->synthetic || write->kind != TABLE_WRITE_INSERT || write->keys.partition.len)
        return true;
    if (!partition_key_derive(definition,
                              document_rekeyed(write->document, SLICE_NONE, call->arena), NULL,
                              call->arena, &key, err))
        return false;
    if (key.components[0].type != DOCUMENT_STRING)
        return error_set(err, ERROR_BAD_REQUEST,
                         "no PartitionKey can be made: a property that it is made of is missing");
    write->keys.partition = key.components[0].text;
    write->document = document_rekeyed(write->document, write->keys.partition, call->arena);
    return table_keys_check(&write->keys, err) &&
           table_identity_check_keys(&call->identity, &write->keys, err);
}

/* --- On a loop ------------------------------------------------------------------------------- */

/* In the arena of the call. */
struct under_way {
    struct item_operation op;
    struct table_call *call;
    struct table_space space; /* owned while it is under way */
    struct table_write write;
    struct table_write_plan plan;
    struct item item; /* that the plan was made with */
    struct net_task task;
};

/* What another writer has overtaken is settled by a worker; what the client asked to be refused is
 * not. */
static bool runs_again(const struct under_way *way, const struct error *err)
{
    return item_operation_is_overtaken(err) ||
           (way->plan.relies &&
            (err->code == ERROR_PRECONDITION_FAILED || err->code == ERROR_ITEM_EXISTS ||
             err->code == ERROR_ITEM_MISSING));
}

/* On the loop. */
static void settle(struct net_task *task, struct net_loop *loop UNUSED)
{
    struct under_way *way = CONTAINER_OF(task, struct under_way, task);
    CLEANUP(table_space_close) struct table_space space = way->space;
    struct table_call *call = way->call;
    struct error err;
    bool fine = item_operation_settle(&way->op, &err);

    if (!fine && runs_again(way, &err)) {
        table_call_move(call);
        return;
    }
    table_call_charged(call, &way->op.metered);
    if (fine)
        table_write_answer(call, &space, &way->write, &way->op.result);
    table_call_finish(call, fine, &err);
}

/* On the committer's thread. */
static void post(struct item_operation *op)
{
    struct under_way *way = CONTAINER_OF(op, struct under_way, op);
    atomic_uint *count = way->call->under_way;

    way->task.run = settle;
    way->task.owner = net_http_owner(way->call->http);
    net_loop_post(way->call->http->loop, &way->task);
    atomic_fetch_sub(count, 1); /* the loop is not needed any more by this thread */
}

/* Reads the item if the write wants it, which nobody pays for by itself, and plans. */
static enum item_start way_plan(struct under_way *way, struct error *err)
{
    struct item_operation read = {.space = way->op.space,
                                  .arena = way->op.arena,
                                  .verb = ITEM_READ,
                                  .key = way->op.key,
                                  .id = way->op.id};
    const struct item *item = NULL;

    if (table_write_needs_item(&way->write)) {
        enum item_start start = item_operation_start(&read, err);

        if (start == ITEM_START_COLD ||
            (start == ITEM_START_FAILED && err->code != ERROR_ITEM_MISSING))
            return start;
        way->item = read.result.item;
        item = start == ITEM_START_ENDED ? &way->item : NULL;
    }
    if (table_write_plan(&way->write, item, way->call->arena, &way->plan, err))
        return ITEM_START_ENDED;
    way->op.metered.charge_cru = metering_refused_cru(err);
    return ITEM_START_FAILED;
}

static enum item_start way_start(struct under_way *way, struct error *err)
{
    enum item_start start = way_plan(way, err);

    if (start != ITEM_START_ENDED)
        return start;
    way->op.verb = item_verb_of(way->plan.verb);
    way->op.document = way->plan.document;
    way->op.options = way->plan.options;
    return item_operation_start(&way->op, err);
}

bool table_write_start(struct table_call *call, struct table_space *space,
                       const struct table_write *write, struct error *err)
{
    struct under_way *way = ARENA_NEW(call->arena, struct under_way);
    bool *pending = call->pending;
    atomic_uint *count = call->under_way;

    way->call = call;
    way->space = *space;
    way->write = *write;
    way->op = (struct item_operation){.space = &way->space.space,
                                      .meters = call->services->meters,
                                      .arena = call->arena,
                                      .key = table_write_key(space, &write->keys),
                                      .id = table_write_id(&write->keys),
                                      .metered = table_call_metered(call),
                                      .done = post};
    atomic_fetch_add(count, 1);
    switch (way_start(way, err)) {
    case ITEM_START_UNDER_WAY:
        space->container = NULL;
        *pending = true;
        return true;
    case ITEM_START_COLD:
        call->cold = true;
        break;
    default:
        table_call_charged(call, &way->op.metered);
        table_write_refused(call, space, write, err);
        call->cold = runs_again(way, err);
    }
    atomic_fetch_sub(count, 1);
    return false;
}

/* --- Answers --------------------------------------------------------------------------------- */

struct metered_call table_call_metered(const struct table_call *call)
{
    enum item_level level;
    struct error ignored; /* who reads is told when he looks */

    return (struct metered_call){.strong = table_call_consistency(call, &level, &ignored) &&
                                           front_consistency_is_dear(level)};
}

void table_call_charged(struct table_call *call, const struct metered_call *metered)
{
    call->charge_cru = metered->charge_cru;
    call->wait_ms = metered->wait_ms;
}

struct table_shape table_call_shape(struct table_call *call, const struct table_space *space)
{
    return (struct table_shape){.minimal = call->level != TABLE_LEVEL_NONE,
                                .full = call->level == TABLE_LEVEL_FULL,
                                .root = table_call_root(call),
                                .account = table_call_account(call),
                                .table = space->name};
}

bool table_call_wants_content(const struct table_call *call, bool *ret_said)
{
    struct slice prefer = table_call_header(call, SLICE("prefer"));
    bool none = slice_equal_nocase(prefer, SLICE("return-no-content"));

    *ret_said = none || slice_equal_nocase(prefer, SLICE("return-content"));
    return !none;
}

static void insert_answer(struct table_call *call, const struct table_space *space,
                          const struct table_write *write, const struct transaction_result *result)
{
    struct table_shape shape = table_call_shape(call, space);
    CLEANUP(buf_done) struct buf link;
    bool said, content = table_call_wants_content(call, &said);

    buf_init(&link, 64 * 1024);
    buf_append_slice(&link, shape.root);
    buf_append_byte(&link, '/');
    table_entity_link_append(space->name, &write->keys, &link);
    if (link.len <= LOCATION_MAX)
        table_answer_header(call, SLICE("Location"), buf_slice(&link));
    if (said)
        table_answer_header(call, SLICE("Preference-Applied"),
                            content ? SLICE("return-content") : SLICE("return-no-content"));
    if (!content) {
        if (link.len <= SERVICE_ID_MAX)
            table_answer_header(call, SLICE("DataServiceId"), buf_slice(&link));
        call->status = 204;
        return;
    }
    table_entity_append(&shape, result->item.document, table_entity_ticks(&result->item.header),
                        true, &call->body);
    call->status = 201;
}

static enum advise_operation_kind told(enum table_write_kind kind, bool created)
{
    switch (kind) {
    case TABLE_WRITE_INSERT:
        return ADVISE_CREATE;
    case TABLE_WRITE_DELETE:
        return ADVISE_DELETE;
    case TABLE_WRITE_MERGE:
        return created ? ADVISE_CREATE : ADVISE_PATCH;
    default:
        return created ? ADVISE_CREATE : ADVISE_REPLACE;
    }
}

struct front_traffic_attempt table_call_attempt(const struct table_call *call,
                                                const struct error *err)
{
    const struct net_http_request *http = call->batch ? call->batch : call->http;
    struct front_traffic_attempt attempt = {
        .mark = net_http_header(http, SLICE("x-ms-client-request-id")),
        .refused = err && front_traffic_is_refusal(err),
        .wait_ms = call->wait_ms,
        .started_ns = http->started_ns};

    if (!attempt.mark.len)
        attempt.mark = net_http_header(http, SLICE("x-ms-date"));
    return attempt;
}

static void traffic_tell(const struct table_call *call, const struct table_space *space,
                         const struct table_write *write, enum advise_operation_kind kind,
                         struct slice document, const struct error *err)
{
    struct partition_key key = table_write_key(space, &write->keys);
    struct document_value id = table_write_id(&write->keys);

    front_traffic_item(call->services, space->container,
                       &(struct front_traffic_item){.kind = kind,
                                                    .key = &key,
                                                    .id = &id,
                                                    .document = document,
                                                    .cru = call->charge_cru,
                                                    .transaction = call->transaction,
                                                    .weight = call->traffic_weight,
                                                    .attempt = table_call_attempt(call, err)});
}

void table_write_refused(const struct table_call *call, const struct table_space *space,
                         const struct table_write *write, const struct error *err)
{
    if (front_traffic_is_refusal(err))
        traffic_tell(call, space, write, told(write->kind, false), write->document, err);
}

void table_write_answer(struct table_call *call, const struct table_space *space,
                        const struct table_write *write, const struct transaction_result *result)
{
    char etag[TABLE_ETAG_LEN];

    traffic_tell(call, space, write, told(write->kind, result->created), result->item.document,
                 NULL);
    call->status = 204;
    if (write->kind == TABLE_WRITE_DELETE)
        return;
    table_etag_write(table_entity_ticks(&result->item.header), etag);
    table_answer_header(call, SLICE("ETag"), slice_of(etag, sizeof etag));
    if (write->kind == TABLE_WRITE_INSERT)
        insert_answer(call, space, write, result);
}
