/* Several operations on items of one database as one transaction, whatever containers and logical
 * partitions they are in, and on whatever nodes those are (item/agreement.h).
 *
 * All of it is planned against one snapshot of each node; items that are read or checked are relied
 * on, so that the commit fails if another one writes them meanwhile. Who loses a race, or meets a
 * fence, begins anew from the names of the request: containers may have other maps and definitions
 * by then. */
#include "front/admin/call.h"

#include "base/random.h"
#include "catalogue/agreements.h"
#include "catalogue/container_space.h"
#include "document/bson.h"
#include "document/json.h"
#include "front/item.h"
#include "item/agreement.h"
#include "item/shown.h"
#include "partition/synthetic.h"
#include "throughput/cost.h"

#include <time.h>

enum { OPERATIONS_MAX = 100, ATTEMPTS_MAX = 50, ATTEMPT_PAUSE_MS = 10 };

enum verb { VERB_READ, VERB_CHECK, VERB_ABSENT, VERB_WRITE };

/* One operation as it is asked for. */
struct asked {
    struct slice container, key_text, document;
    struct document_value id;
    struct transaction_options options;
    enum verb verb;
    enum transaction_verb write;
};

/* A container the transaction touches. */
struct place {
    struct slice name;
    struct container *container; /* owned */
    struct item_space space;
};

/* One attempt; all of it is in the arena. */
struct attempt {
    struct admin_call *call;
    struct slice database;
    const struct asked *asked;
    size_t count;
    struct arena *arena;
    struct place places[OPERATIONS_MAX];
    size_t place_count;
    struct agreement *agreement;
    const struct place *of[OPERATIONS_MAX]; /* each operation */
    const struct agreement_member *member[OPERATIONS_MAX];
    const struct item *read[OPERATIONS_MAX];
    size_t nth_write[OPERATIONS_MAX];
    struct metering budgets[OPERATIONS_MAX];
    uint32_t partitions[OPERATIONS_MAX];
    int64_t cru[OPERATIONS_MAX];
    size_t budget_count;
    size_t paid_by[OPERATIONS_MAX]; /* of each operation: which budget */
    int64_t looked_cru[OPERATIONS_MAX];
    size_t entered; /* operations that came to their partition */
    struct metered_call metered;
};

static void attempt_done(struct attempt *attempt)
{
    agreement_free(attempt->agreement);
    for (size_t i = 0; i < attempt->place_count; i++)
        container_unref(attempt->places[i].container);
    arena_free(attempt->arena);
}
CLEANUP_VALUE_FN(struct attempt, attempt_done)

/* --- What is asked --------------------------------------------------------------------------- */

static const struct {
    struct slice name;
    enum verb verb;
    enum transaction_verb write;
} verbs[] = {
    {SLICE("create"), VERB_WRITE, TRANSACTION_CREATE},
    {SLICE("replace"), VERB_WRITE, TRANSACTION_REPLACE},
    {SLICE("upsert"), VERB_WRITE, TRANSACTION_UPSERT},
    {SLICE("delete"), VERB_WRITE, TRANSACTION_DELETE},
    {SLICE("read"), VERB_READ, 0},
    {SLICE("check"), VERB_CHECK, 0},
    {SLICE("absent"), VERB_ABSENT, 0},
};

static bool shape(struct error *err)
{
    return error_set(err, ERROR_BAD_REQUEST,
                     "an operation is {\"do\":\"create|upsert|replace\",\"container\",\"item\"} or "
                     "{\"do\":\"delete|read|check|absent\",\"container\",\"partitionKey\",\"id\"}, "
                     "with \"ifMatch\" where it is wanted");
}

static bool verb_find(struct slice name, struct asked *asked)
{
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (slice_equal(verbs[i].name, name)) {
            asked->verb = verbs[i].verb;
            asked->write = verbs[i].write;
            return true;
        }
    return false;
}

static bool brings_item(const struct asked *asked)
{
    return asked->verb == VERB_WRITE && asked->write != TRANSACTION_DELETE;
}

static bool asked_read(struct admin_call *call, struct slice object, struct asked *asked,
                       struct error *err)
{
    struct document_iter iter;
    bool has_verb = false;

    *asked = (struct asked){0};
    document_iter_init(&iter, object);
    while (document_iter_next(&iter)) {
        struct document_value value = iter.value;
        bool text = value.type == DOCUMENT_STRING;

        if (slice_equal(iter.key, SLICE("do")) && text && verb_find(value.text, asked))
            has_verb = true;
        else if (slice_equal(iter.key, SLICE("container")) && text)
            asked->container = value.text;
        else if (slice_equal(iter.key, SLICE("id")) && text)
            asked->id = value;
        else if (slice_equal(iter.key, SLICE("partitionKey")) && value.type == DOCUMENT_ARRAY) {
            CLEANUP(buf_done) struct buf json;

            buf_init(&json, BUF_DEFAULT_MAX);
            document_json_write_value(&value, &json);
            asked->key_text = arena_copy(call->arena, buf_slice(&json));
        } else if (slice_equal(iter.key, SLICE("item")) && value.type == DOCUMENT_OBJECT)
            asked->document = value.document;
        else if (slice_equal(iter.key, SLICE("ifMatch")) && text && value.text.len)
            asked->options.if_match = value.text;
        else
            return shape(err);
    }
    if (!has_verb || !asked->container.len)
        return shape(err);
    if (brings_item(asked) ? !asked->document.data || asked->key_text.data || asked->id.type
                           : asked->document.data || !asked->key_text.data || !asked->id.type)
        return shape(err);
    if (asked->options.if_match.data &&
        (asked->verb == VERB_ABSENT ||
         (asked->verb == VERB_WRITE && asked->write == TRANSACTION_CREATE)))
        return error_set(err, ERROR_BAD_REQUEST, "what is not there has no etag to match");
    return true;
}

static bool body_read(struct admin_call *call, struct slice *ret_database, struct asked **ret_asked,
                      size_t *ret_count, struct error *err)
{
    struct document_value database, operations;
    struct document_iter iter;
    struct slice body;

    if (!front_http_body(&call->over_http, &body, err))
        return false;
    if (document_count(body) != 2 || !document_find(body, SLICE("database"), &database) ||
        database.type != DOCUMENT_STRING ||
        !document_find(body, SLICE("operations"), &operations) || operations.type != DOCUMENT_ARRAY)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the body is {\"database\":\"...\",\"operations\":[...]}");
    *ret_count = 0;
    *ret_asked = ARENA_ARRAY(call->arena, struct asked, OPERATIONS_MAX);
    document_iter_init(&iter, operations.document);
    while (document_iter_next(&iter)) {
        if (*ret_count == OPERATIONS_MAX)
            return error_set(err, ERROR_TOO_LARGE, "a transaction has at most %d operations",
                             OPERATIONS_MAX);
        if (iter.value.type != DOCUMENT_OBJECT)
            return shape(err);
        if (!asked_read(call, iter.value.document, &(*ret_asked)[*ret_count], err))
            return error_prefix(err, "operation %zu", *ret_count);
        ++*ret_count;
    }
    *ret_database = database.text;
    return *ret_count || error_set(err, ERROR_BAD_REQUEST, "there are no operations");
}

/* --- Planning -------------------------------------------------------------------------------- */

static bool place_find(struct attempt *attempt, struct slice name, struct place **ret_place,
                       struct error *err)
{
    struct admin_call *call = attempt->call;
    struct place *place = attempt->places;

    while (place < &attempt->places[attempt->place_count] && !slice_equal(place->name, name))
        place++;
    if (place == &attempt->places[attempt->place_count]) {
        if (!catalogue_container_open(call->services->catalogue, call->account.id,
                                      attempt->database, name, &place->container, err))
            return false;
        attempt->place_count++;
        place->name = name;
        place->space = front_space(call->services, place->container);
    }
    *ret_place = place;
    return true;
}

/* Key, id and document in the terms of the container as it is now. */
static bool operation_read(struct attempt *attempt, const struct asked *asked,
                           const struct item_space *space, struct partition_key *ret_key,
                           struct document_value *ret_id, struct slice *ret_document,
                           struct error *err)
{
    const struct document_names *names = definition_names_of(space->definition);
    const struct partition_definition *definition = &space->definition->key;

    *ret_document = SLICE_NONE;
    if (brings_item(asked)) {
        if (!front_item_clean(names, asked->document, attempt->arena, ret_document, ret_id, err) ||
            !partition_key_derive(definition, *ret_document, NULL, attempt->arena, ret_key, err))
            return false;
        if (space->item_bytes_max && ret_document->len > space->item_bytes_max)
            return error_set(err, ERROR_TOO_LARGE, "the item is larger than %zu bytes",
                             space->item_bytes_max);
    } else {
        *ret_id = item_id_of_text(names, asked->id.text, attempt->arena);
        if (!partition_key_parse(definition, asked->key_text, PARTITION_KEY_WHOLE, attempt->arena,
                                 ret_key, err))
            return false;
    }
    if (ret_key->open)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "items with a random suffix are not part of transactions");
    return items_names_check(space, ret_key, ret_id, err);
}

static bool etag_check(const struct item *item, struct slice wanted, struct error *err)
{
    char etag[ITEM_ETAG_LEN];

    item_etag(&item->header, etag);
    return !wanted.data || slice_equal(wanted, SLICE("*")) ||
           slice_equal(wanted, slice_of(etag, sizeof etag)) ||
           error_set(err, ERROR_PRECONDITION_FAILED, "the etag of the item is another");
}

/* --- Paying ---------------------------------------------------------------------------------- */

/* The budget of a partition that the transaction comes to, asked for the least that is done there.
 * So one that fails cannot come again and again for nothing. */
static bool budget_enter(struct attempt *attempt, uint32_t partition, int64_t least_cru,
                         size_t *ret_at, struct error *err)
{
    const struct metering_request request = {.partition = partition, .price_cru = least_cru};
    size_t at = 0;

    while (at < attempt->budget_count && attempt->partitions[at] != partition)
        at++;
    *ret_at = at;
    if (at < attempt->budget_count)
        return true;
    if (!metering_begin(&attempt->budgets[at], attempt->call->services->meters, &request,
                        &attempt->metered, err)) {
        attempt->call->wait_ms = attempt->metered.wait_ms;
        return false;
    }
    attempt->partitions[attempt->budget_count++] = partition;
    return true;
}

/* What an operation has looked at so far. */
static void looked(struct attempt *attempt, size_t nth, const struct item *item)
{
    attempt->looked_cru[nth] = cost_read(item ? item->document.len : 0, false);
}

static void budgets_end(struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->budget_count; i++) {
        metering_end(&attempt->budgets[i], attempt->cru[i]);
        attempt->call->charge_cru = cost_add(attempt->call->charge_cru, attempt->cru[i]);
    }
}

static void budget_add(struct attempt *attempt, size_t nth, int64_t cru)
{
    attempt->cru[attempt->paid_by[nth]] = cost_add(attempt->cru[attempt->paid_by[nth]], cru);
}

static struct transaction_result result_of(const struct attempt *attempt, size_t nth)
{
    return agreement_result(attempt->member[nth], attempt->nth_write[nth]);
}

/* Reads cost what reads of items cost, writes what they did. */
static void done_pay(struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->count; i++)
        budget_add(attempt, i,
                   attempt->asked[i].verb == VERB_WRITE ? result_of(attempt, i).charge_cru
                                                        : attempt->looked_cru[i]);
    budgets_end(attempt);
}

/* One that is refused pays for what it has read to find out: each operation up to that one. Faults
 * of the server, lost races and refusals of a budget are free. */
static void failed_pay(struct attempt *attempt, const struct error *err)
{
    if (!metering_refused_cru(err)) {
        while (attempt->budget_count)
            metering_drop(&attempt->budgets[--attempt->budget_count]);
        return;
    }
    for (size_t i = 0; i < attempt->entered; i++)
        budget_add(attempt, i, attempt->looked_cru[i]);
    budgets_end(attempt);
}

static bool look(struct attempt *attempt, size_t nth, const struct document_value *id,
                 struct error *err)
{
    const struct asked *asked = &attempt->asked[nth];
    struct transaction *transaction = agreement_transaction(attempt->agreement);

    if (!transaction_read(transaction, id, &attempt->read[nth], err))
        return false;
    looked(attempt, nth, attempt->read[nth]);
    transaction_rely(transaction, id);
    if (asked->verb == VERB_ABSENT)
        return !attempt->read[nth] || error_set(err, ERROR_ITEM_EXISTS, "the item is there");
    if (!attempt->read[nth])
        return error_set(err, ERROR_ITEM_MISSING, "the item is not there");
    return etag_check(attempt->read[nth], asked->options.if_match, err);
}

static int64_t least_cru(const struct asked *asked)
{
    return asked->verb == VERB_WRITE ? cost_write(&(struct cost_write){.puts = true})
                                     : cost_read(0, false);
}

static bool operation_plan(struct attempt *attempt, size_t nth, struct error *err)
{
    const struct asked *asked = &attempt->asked[nth];
    struct document_value *id = ARENA_NEW(attempt->arena, struct document_value);
    struct partition_key key;
    struct item_scope scope;
    struct slice logical, document;
    struct transaction *transaction;
    struct place *place;

    if (!place_find(attempt, asked->container, &place, err) ||
        !operation_read(attempt, asked, &place->space, &key, id, &document, err))
        return false;
    attempt->of[nth] = place;
    logical = item_logical(&place->space.definition->key, &key, attempt->arena);
    scope = item_space_scope(&place->space, logical);
    if (!agreement_enter(attempt->agreement, &scope, logical, err) ||
        !budget_enter(attempt, scope.partition, least_cru(asked), &attempt->paid_by[nth], err))
        return false;
    attempt->entered = nth + 1;
    looked(attempt, nth, NULL);
    if (asked->verb != VERB_WRITE)
        return look(attempt, nth, id, err);
    transaction = agreement_transaction(attempt->agreement);
    attempt->member[nth] = agreement_member(attempt->agreement);
    attempt->nth_write[nth] = transaction_write_count(transaction);
    return transaction_write(transaction, id, asked->write, document, &asked->options, err);
}

/* --- The answer ------------------------------------------------------------------------------ */

static void item_append(struct attempt *attempt, size_t nth, const struct item *item)
{
    const struct place *place = attempt->of[nth];
    struct buf *out = &attempt->call->body;
    char rid[RID_TEXT_SIZE], etag[ITEM_ETAG_LEN];

    item_etag(&item->header, etag);
    BUF_APPEND(out, ",\"item\":");
    document_json_write(
        item_shown(definition_names_of(place->space.definition), item->document, attempt->arena),
        out);
    BUF_APPEND(out, ",\"rid\":\"");
    buf_append_slice(
        out, rid_format(container_rid_below(place->container, RID_ITEM, item->header.number), rid));
    BUF_APPEND(out, "\"");
    admin_text(out, "etag", slice_of(etag, sizeof etag));
}

static uint64_t status_of(const struct asked *asked, const struct transaction_result *result)
{
    if (asked->verb != VERB_WRITE)
        return 200;
    if (asked->write == TRANSACTION_DELETE)
        return 204;
    return result->created ? 201 : 200;
}

static void answer(struct attempt *attempt)
{
    struct buf *out = &attempt->call->body;

    BUF_APPEND(out, "{\"results\":[");
    for (size_t i = 0; i < attempt->count; i++) {
        const struct asked *asked = &attempt->asked[i];
        struct transaction_result result = {0};

        if (asked->verb == VERB_WRITE)
            result = result_of(attempt, i);
        buf_append_text(out, i ? ",{\"status\":" : "{\"status\":");
        buf_append_uint64(out, status_of(asked, &result));
        if (asked->verb == VERB_READ)
            item_append(attempt, i, attempt->read[i]);
        else if (brings_item(asked))
            item_append(attempt, i, &result.item);
        BUF_APPEND(out, "}");
    }
    BUF_APPEND(out, "]");
    admin_ru(out, "charge", attempt->call->charge_cru);
    BUF_APPEND(out, "}");
    attempt->call->status = 200;
}

/* --- All of it ------------------------------------------------------------------------------- */

static bool all_plan(struct attempt *attempt, struct error *err)
{
    for (size_t i = 0; i < attempt->count; i++)
        if (!operation_plan(attempt, i, err))
            return error_prefix(err, "operation %zu", i);
    return true;
}

static bool attempt_run(struct attempt *attempt, struct error *err)
{
    if (!all_plan(attempt, err) || !agreement_commit(attempt->agreement, err)) {
        failed_pay(attempt, err);
        return false;
    }
    done_pay(attempt);
    answer(attempt);
    return true;
}

static bool try_once(struct admin_call *call, struct slice database, const struct asked *asked,
                     size_t count, struct error *err)
{
    CLEANUP(attempt_done)
    struct attempt attempt = {
        .call = call, .database = database, .asked = asked, .count = count, .arena = arena_new()};

    attempt.agreement =
        agreement_new(catalogue_agreements(call->services->catalogue), attempt.arena);
    return attempt_run(&attempt, err);
}

/* Who met others over several nodes would meet them again. */
static void pause_randomly(void)
{
    uint32_t chance;

    random_secret(&chance, sizeof chance);
    nanosleep(&(struct timespec){0, 1 + chance % (2 * ATTEMPT_PAUSE_MS * 1000000L)}, NULL);
}

bool admin_transactions_run(struct admin_call *call, struct error *err)
{
    struct slice database = SLICE_NONE;
    struct asked *asked = NULL;
    size_t count = 0;

    if (!body_read(call, &database, &asked, &count, err))
        return false;
    for (int i = 0; i < ATTEMPTS_MAX; i++) {
        if (try_once(call, database, asked, count, err))
            return true;
        if (err->code != ERROR_CONFLICT && !item_space_is_overtaken(err))
            return false;
        pause_randomly();
    }
    return false;
}
