/* Parts of a backup written into a running server, and one logical partition taken back in time by
 * the change feed of all versions. Items are written as any client would write them: they are new
 * versions, with a time and an etag of now. They are charged as such, and shown so in the answer,
 * the audit and the figures, but held back by no budget: an operator waits for them. */
#include "front/admin/call.h"

#include "base/bytes.h"
#include "catalogue/container_space.h"
#include "definition/rekey.h"
#include "document/bson.h"
#include "document/json.h"
#include "item/bulk.h"
#include "item/feed_read.h"
#include "item/shown.h"
#include "load/offer_meters.h"
#include "partition/synthetic.h"

enum {
    ITEMS_MAX = 20000,         /* of one request */
    PLAN_ITEMS_MAX = 5000,     /* of a logical partition that is restored in one commit */
    PLAN_BYTES_MAX = 32 << 20, /* likewise */
    FEED_RECORDS_MAX = 200000, /* looked at for one */
};

/* --- Items of a backup ----------------------------------------------------------------------- */

static bool frames_wrong(struct error *err)
{
    return error_set(err, ERROR_BAD_REQUEST,
                     "the body is BSON documents, each behind its length, 4 bytes big-endian; at "
                     "most %d of them",
                     ITEMS_MAX);
}

/* The documents of a body; slices point into it. */
static bool frames_read(struct admin_call *call, struct slice *ret_documents, size_t *ret_count,
                        struct error *err)
{
    struct slice rest = call->http->body;
    size_t count = 0;

    while (rest.len) {
        size_t len = rest.len >= 4 ? bytes_get_be32(rest.data) : SIZE_MAX;

        if (len > rest.len - 4 || count == ITEMS_MAX)
            return frames_wrong(err);
        ret_documents[count] = slice_first(slice_skip(rest, 4), len);
        if (!document_validate(ret_documents[count++], NULL, err))
            return false;
        rest = slice_skip(rest, 4 + len);
    }
    *ret_count = count;
    return true;
}

static bool identity_of(const struct item_space *space, struct slice document,
                        struct document_value *ret_id, struct error *err)
{
    struct slice name = definition_names_of(space->definition)->identity;

    return document_find(document, name, ret_id) ||
           error_set(err, ERROR_BAD_REQUEST, "a document has no \"%.*s\"", SLICE_ARG(name));
}

/* All of them, each for itself, made durable together. */
static bool items_put(struct admin_call *call, const struct item_space *space,
                      const struct slice *documents, size_t count, struct error *err)
{
    struct item_operation *operations =
        arena_alloc_zero(call->arena, memory_array_size(count + 1, sizeof *operations));

    for (size_t i = 0; i < count; i++) {
        struct item_operation *op = &operations[i];

        op->space = space;
        op->arena = call->arena;
        op->verb = ITEM_UPSERT;
        op->document = documents[i];
        if (!identity_of(space, documents[i], &op->id, err) ||
            !partition_key_derive(&space->definition->key, documents[i], NULL, call->arena,
                                  &op->key, err))
            return false;
    }
    bulk_run(operations, count, &(struct bulk_options){0});
    for (size_t i = 0; i < count; i++)
        call->front.charge_cru += operations[i].metered.charge_cru;
    for (size_t i = 0; i < count; i++)
        if (operations[i].err.code) {
            *err = operations[i].err;
            return false;
        }
    return true;
}

/* --- One logical partition ------------------------------------------------------------------- */

/* What becomes of an item. */
struct planned {
    struct document_value id;
    struct slice document; /* data NULL: it goes */
};

struct plan {
    struct planned *list; /* in the arena */
    size_t count, capacity, bytes;
    bool only;               /* items of the partition that are not in it go, */
    struct slice after, end; /* but for those up to this key and behind that; empty: all */
};

static bool plan_add(struct plan *plan, struct planned planned, struct arena *arena,
                     struct error *err)
{
    if (plan->count == plan->capacity) {
        size_t capacity = plan->capacity ? plan->capacity * 2 : 64;
        struct planned *list = ARENA_ARRAY(arena, struct planned, capacity);

        if (plan->count)
            memcpy(list, plan->list, plan->count * sizeof *list);
        plan->list = list;
        plan->capacity = capacity;
    }
    plan->bytes += planned.document.len;
    if (plan->bytes > PLAN_BYTES_MAX || plan->count == PLAN_ITEMS_MAX)
        return error_set(err, ERROR_TOO_LARGE,
                         "more than %d items or %d MB would be written in one commit",
                         PLAN_ITEMS_MAX, PLAN_BYTES_MAX >> 20);
    plan->list[plan->count++] = planned;
    return true;
}

static bool plan_has(const struct plan *plan, const struct document_names *names,
                     const struct document_value *id)
{
    for (size_t i = 0; i < plan->count; i++)
        if (item_id_same(names, &plan->list[i].id, id))
            return true;
    return false;
}

/* Those the partition has between its bounds and the plan has not go, too. */
static bool others_remove(struct transaction *transaction, const struct item_space *space,
                          const struct plan *plan, struct error *err)
{
    const struct document_names *names = definition_names_of(space->definition);
    struct transaction_page page = {.more = true, .position = plan->after};

    while (page.more) {
        if (!transaction_scan(transaction, page.position, 1000, true, &page, err))
            return false;
        for (size_t i = 0; i < page.count; i++) {
            struct document_value id;

            if (plan->end.len && slice_compare(page.items[i].key, plan->end) > 0)
                return true;
            if (!identity_of(space, page.items[i].document, &id, err))
                return false;
            if (!plan_has(plan, names, &id) &&
                !transaction_write(transaction, &id, TRANSACTION_DELETE, SLICE_NONE, NULL, err))
                return false;
        }
    }
    return true;
}

static bool plan_try(const struct item_space *space, struct slice logical, const struct plan *plan,
                     struct arena *arena, int64_t *charge_cru, struct error *err)
{
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct item_scope scope = item_space_scope(space, logical);

    if (!transaction_begin(&scope, logical, arena, &transaction, err) ||
        (plan->only && !others_remove(transaction, space, plan, err)))
        return false;
    for (size_t i = 0; i < plan->count; i++) {
        const struct planned *planned = &plan->list[i];
        const struct item *now;

        if (!transaction_read(transaction, &planned->id, &now, err))
            return false;
        if ((planned->document.data || now) &&
            !transaction_write(transaction, &planned->id,
                               planned->document.data ? TRANSACTION_UPSERT : TRANSACTION_DELETE,
                               planned->document, NULL, err))
            return false;
    }
    if (!transaction_commit(transaction, err))
        return false;
    *charge_cru += transaction_work(transaction).write_cru;
    return true;
}

static bool plan_apply(struct admin_call *call, const struct item_space *space,
                       struct slice logical, const struct plan *plan, struct error *err)
{
    CLEANUP(item_space_release) struct item_space now = *space;

    now.renewed = false;
    while (!plan_try(&now, logical, plan, call->arena, &call->front.charge_cru, err))
        if (!item_space_try_again(&now, err))
            return false;
    return true;
}

static bool key_read(struct admin_call *call, const struct item_space *space, struct slice text,
                     struct slice *ret_logical, struct error *err)
{
    const struct partition_definition *definition = &space->definition->key;
    struct partition_key key;

    if (!partition_key_parse(definition, text, PARTITION_KEY_WHOLE, call->arena, &key, err))
        return false;
    if (key.open)
        return error_set(err, ERROR_BAD_REQUEST, "name the whole partition key, with its suffix");
    *ret_logical = item_logical(definition, &key, call->arena);
    return true;
}

/* A logical partition that is too large for one request comes in several, in the order of its keys,
 * each one commit: with after=true the first document is the last one of the request before and
 * only says where this one begins; with more=true others follow behind the last. */
static bool plan_read(struct admin_call *call, const struct item_space *space, struct slice logical,
                      const struct slice *documents, size_t count, struct plan *plan,
                      struct error *err)
{
    const struct document_names *names = definition_names_of(space->definition);
    bool after = slice_equal(admin_parameter(call, SLICE("after")), SLICE("true"));
    bool more = slice_equal(admin_parameter(call, SLICE("more")), SLICE("true"));
    struct slice last = SLICE_NONE;

    if (count < (size_t)after + more)
        return error_set(err, ERROR_BAD_REQUEST, "a bound of the documents is missing");
    plan->only = true;
    for (size_t i = 0; i < count; i++) {
        struct planned planned = {.document = documents[i]};
        struct partition_key own;
        struct slice key;

        if (!identity_of(space, documents[i], &planned.id, err) ||
            !partition_key_derive(&space->definition->key, documents[i], NULL, call->arena, &own,
                                  err))
            return false;
        if (!slice_equal(item_logical(&space->definition->key, &own, call->arena), logical))
            return error_set(err, ERROR_BAD_REQUEST, "a document has another partition key");
        key = item_key(names, logical, &planned.id, call->arena);
        if ((after || more) && last.len && slice_compare(last, key) >= 0)
            return error_set(err, ERROR_BAD_REQUEST, "the documents are not in the order of keys");
        last = key;
        if (after && i == 0)
            plan->after = key;
        else if (!plan_add(plan, planned, call->arena, err))
            return false;
    }
    if (more)
        plan->end = last;
    return true;
}

/* With ?key=[...] the documents are what the logical partition shall hold, and nothing else. */
bool admin_restore_items(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct slice key = admin_parameter(call, SLICE("key")), logical, *documents;
    struct item_space space;
    struct plan plan = {0};
    size_t count = 0;

    if (!admin_container_open(call, &container, err))
        return false;
    documents = ARENA_ARRAY(call->arena, struct slice, ITEMS_MAX);
    space = container_space(container, call->services->clock, call->services->gates);
    if (!frames_read(call, documents, &count, err))
        return false;
    if (!key.data) {
        if (!items_put(call, &space, documents, count, err))
            return false;
    } else {
        if (!key_read(call, &space, key, &logical, err) ||
            !plan_read(call, &space, logical, documents, count, &plan, err) ||
            !plan_apply(call, &space, logical, &plan, err))
            return false;
    }
    buf_printf(&call->body, "{\"written\":%zu}", count);
    call->status = 200;
    return true;
}

/* --- Back in time ---------------------------------------------------------------------------- */

struct rewind {
    struct slice key_text; /* JSON */
    int64_t time_ms;
    struct slice into; /* container of the same database; empty: itself */
    bool dry_run;
};

static bool rewind_read(struct admin_call *call, struct rewind *ret_rewind, struct error *err)
{
    CLEANUP(buf_done) struct buf text;
    struct document_iter iter;
    struct slice body;

    buf_init(&text, BUF_DEFAULT_MAX);
    *ret_rewind = (struct rewind){.time_ms = -1};
    if (!front_http_body(&call->over_http, &body, err))
        return false;
    document_iter_init(&iter, body);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("partitionKey")) && iter.value.type == DOCUMENT_ARRAY)
            document_json_write_value(&iter.value, &text);
        else if (slice_equal(iter.key, SLICE("into")) && iter.value.type == DOCUMENT_STRING)
            ret_rewind->into = arena_copy(call->arena, iter.value.text);
        else if (slice_equal(iter.key, SLICE("dryRun")) && iter.value.type == DOCUMENT_BOOL)
            ret_rewind->dry_run = iter.value.boolean;
        else if (!slice_equal(iter.key, SLICE("timeMs")) ||
                 !document_to_int64(&iter.value, &ret_rewind->time_ms))
            return error_set(err, ERROR_BAD_REQUEST,
                             "the body is {\"partitionKey\":[...],\"timeMs\":...,\"into\":\"...\","
                             "\"dryRun\":true}");
    }
    if (!text.len || ret_rewind->time_ms < 0)
        return error_set(err, ERROR_BAD_REQUEST, "partitionKey and timeMs are needed");
    ret_rewind->key_text = arena_copy(call->arena, buf_slice(&text));
    return true;
}

/* What was trimmed by then would be taken for what was never there. */
static bool time_check(struct admin_call *call, const struct item_space *space, int64_t time_ms,
                       struct error *err)
{
    int64_t now_ms = clock_read_wall_ms(call->services->clock);
    int64_t retention_ms = space->definition->feed_retention_ms;

    if (time_ms > now_ms)
        return error_set(err, ERROR_BAD_REQUEST, "timeMs is in the future");
    if (retention_ms && time_ms < now_ms - retention_ms)
        return error_set(err, ERROR_FEED_RETENTION,
                         "the time is before the retention of container \"%.*s\", %lld minutes",
                         SLICE_ARG(space->definition->id), (long long)(retention_ms / 60000));
    return true;
}

/* What an item was before a change. ERROR_FEED_RETENTION: nobody knows. */
static bool before_change(const struct item_space *space, const struct feed_change *change,
                          struct planned *ret_planned, struct error *err)
{
    struct slice document =
        change->current.document.data ? change->current.document : change->previous;

    ret_planned->document = SLICE_NONE;
    if (change->previous_lsn) {
        if (!change->previous.data)
            return error_set(err, ERROR_FEED_RETENTION,
                             "an item was changed whose version before is not kept any more: go "
                             "back less far, or restore from a backup");
        ret_planned->document = document = change->previous;
    }
    if (!document.data)
        return error_set(err, ERROR_FEED_RETENTION,
                         "an item was made before all versions were kept: restore from a backup");
    return identity_of(space, document, &ret_planned->id, err);
}

/* The first change of each item behind the time tells what it was then. */
static bool part_plan(const struct item_space *space, const struct partition_span *span,
                      struct slice logical, int64_t time_ms, struct plan *plan, struct arena *arena,
                      struct error *err)
{
    const struct document_names *names = definition_names_of(space->definition);
    struct item_scope scope = item_space_span_scope(space, span);
    struct feed_request request = {.mode = FEED_ALL_VERSIONS, .logical = logical};
    struct feed_page page = {.more = true};
    size_t records = 0;

    if (!feed_lsn_at(&scope, time_ms, &request.after_lsn, err))
        return false;
    while (page.more) {
        if (!feed_read(&scope, &request, arena, &page, err))
            return false;
        for (size_t i = 0; i < page.count; i++) {
            struct planned planned;

            if (page.changes[i].wall_ms <= time_ms)
                continue; /* of a partition that was merged */
            if (!before_change(space, &page.changes[i], &planned, err))
                return false;
            if (!plan_has(plan, names, &planned.id) && !plan_add(plan, planned, arena, err))
                return false;
        }
        records += page.records_read;
        if (records > FEED_RECORDS_MAX)
            return error_set(err, ERROR_TOO_LARGE,
                             "more than %d changes were made since: restore from a backup",
                             FEED_RECORDS_MAX);
        request.after_lsn = page.lsn;
    }
    return true;
}

/* In the one partition it is in, or in all parts of a key that is spread. */
static bool changes_plan(const struct item_space *space, struct slice logical, int64_t time_ms,
                         struct plan *plan, struct arena *arena, struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_parts(space->map, logical, &count);

    for (size_t i = 0; i < count; i++)
        if (!part_plan(space, &spans[i], logical, time_ms, plan, arena, err))
            return false;
    return true;
}

/* Everything the partition had then: for another container, what was not changed since, too. */
static bool rest_plan(const struct item_space *space, struct slice logical, struct plan *plan,
                      struct arena *arena, struct error *err)
{
    const struct document_names *names = definition_names_of(space->definition);
    struct item_scope scope = item_space_scope(space, logical);
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct transaction_page page = {.more = true};
    struct plan changed = *plan;

    if (!transaction_begin(&scope, logical, arena, &transaction, err))
        return false;
    while (page.more) {
        if (!transaction_scan(transaction, page.position, 1000, false, &page, err))
            return false;
        for (size_t i = 0; i < page.count; i++) {
            struct planned planned = {.document = page.items[i].document};

            if (!identity_of(space, planned.document, &planned.id, err))
                return false;
            if (!plan_has(&changed, names, &planned.id) && !plan_add(plan, planned, arena, err))
                return false;
        }
    }
    return true;
}

static bool other_open(struct admin_call *call, const struct rewind *rewind,
                       const struct item_space *space, struct container **ret_other,
                       struct error *err)
{
    struct slice account = admin_parameter(call, SLICE("account"));

    if (!catalogue_container_open(call->services->catalogue,
                                  account.data ? account : call->account.id, call->names[0],
                                  rewind->into, ret_other, err))
        return false;
    return definition_keys_equal(&definition_fields(container_definition(*ret_other))->key,
                                 &space->definition->key) ||
           error_set(err, ERROR_BAD_REQUEST,
                     "container \"%.*s\" has another partition key: make it with the same",
                     SLICE_ARG(rewind->into));
}

static void rewind_answer(struct admin_call *call, const struct rewind *rewind,
                          const struct plan *plan)
{
    size_t removed = 0;

    for (size_t i = 0; i < plan->count; i++)
        removed += !plan->list[i].document.data;
    buf_printf(&call->body, "{\"written\":%zu,\"removed\":%zu,\"dryRun\":%s}",
               plan->count - removed, removed, rewind->dry_run ? "true" : "false");
    call->status = 200;
}

bool admin_rewind(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL, *other = NULL;
    struct item_space space, target;
    struct plan plan = {0};
    struct rewind rewind;
    struct slice logical;

    if (!admin_container_open(call, &container, err) || !rewind_read(call, &rewind, err))
        return false;
    space = target = container_space(container, call->services->clock, call->services->gates);
    if (!time_check(call, &space, rewind.time_ms, err) ||
        !key_read(call, &space, rewind.key_text, &logical, err) ||
        (rewind.into.len && !other_open(call, &rewind, &space, &other, err)) ||
        !changes_plan(&space, logical, rewind.time_ms, &plan, call->arena, err) ||
        (other && !rest_plan(&space, logical, &plan, call->arena, err)) ||
        !front_http_grown(&call->over_http, err))
        return false;
    if (other)
        target = container_space(other, call->services->clock, call->services->gates);
    plan.only = other != NULL;
    if (!rewind.dry_run && plan.count && !plan_apply(call, &target, logical, &plan, err))
        return false;
    rewind_answer(call, &rewind, &plan);
    return true;
}

/* --- Containers ------------------------------------------------------------------------------ */

/* A container by the definition that a backup has of it, as BSON, under the name in its `id`. */
bool admin_restore_container(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    struct slice account = admin_parameter(call, SLICE("account"));
    struct offer_request request = {0};
    uint64_t ru, autoscale;
    struct error missing;

    if (!account.data)
        account = call->account.id;
    if (!slice_equal(account, call->account.id) && !admin_need_owner(call, err))
        return false;
    if (!admin_number(call, SLICE("ru"), 0, 1u << 31, 0, &ru, err) ||
        !admin_number(call, SLICE("autoscale"), 0, 1u << 31, 0, &autoscale, err) ||
        !document_validate(call->http->body, NULL, err))
        return false;
    request.given = ru > 0;
    request.ru = (int64_t)ru;
    request.autoscale_given = autoscale > 0;
    request.autoscale_max = (int64_t)autoscale;
    if (!catalogue_database_open(call->services->catalogue, account, call->names[0], &database,
                                 &missing) &&
        !catalogue_database_create(call->services->catalogue, account, call->names[0], NULL,
                                   &database, err))
        return false;
    if (!catalogue_container_create(call->services->catalogue, account, call->names[0],
                                    call->http->body, &request, &container, err))
        return false;
    if (!load_meters_apply(call->services->meters, container, call->services->burst_seconds, err))
        return false;
    BUF_APPEND(&call->body, "{");
    admin_text(&call->body, "id", container_info(container)->id);
    BUF_APPEND(&call->body, "}");
    call->status = 201;
    return true;
}

/* Gives the container the name of another, which is dropped in the same commit. */
bool admin_restore_over(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct slice account = admin_parameter(call, SLICE("account")),
                 name = admin_parameter(call, SLICE("name"));

    if (!account.data)
        account = call->account.id;
    if (!slice_equal(account, call->account.id) && !admin_need_owner(call, err))
        return false;
    if (!name.len)
        return error_set(err, ERROR_BAD_REQUEST, "?name= says which name it gets");
    if (!catalogue_container_rename(call->services->catalogue, account, call->names[0],
                                    call->names[1], name, true, &container, err))
        return false;
    BUF_APPEND(&call->body, "{}");
    call->status = 200;
    return true;
}
