/* Each operation is carried out as soon as it comes, in the order of the script. The transaction
 * keeps what was read and planned, so nothing is kept here but what it costs. */
#include "front/rest/procedure/script_host.h"

#include "base/random.h"
#include "document/json.h"
#include "front/fault.h"
#include "front/item.h"
#include "front/rest/procedure/script_link.h"
#include "front/rest/query/patch.h"
#include "front/rest/query/query.h"
#include "partition/synthetic.h"
#include "throughput/cost.h"

enum {
    BYTES_MAX = 32 * 1024 * 1024, /* read, written and asked with by one script; from half of it on
                                   * no more is accepted */
    OPERATION_BYTES = 256,        /* what any operation leaves in memory, at the least */
    QUERY_BYTES = 2048,           /* and a query */
    WRITES_MAX = 60000,           /* a provisional etag has 16 bits for the number of its write */
    RU_SECONDS_CRU = 100,
};

bool rest_script_host_init(struct rest_script_host *host, struct rest_call *call,
                           const struct rest_items *items, const struct partition_key *key,
                           bool strong, struct error *err)
{
    struct budget_state state;

    *host = (struct rest_script_host){.call = call, .items = items, .key = *key, .strong = strong};
    if (!call->services->scripts)
        return error_set(err, ERROR_SCRIPT_UNAVAILABLE, "scripts are not run by this server");
    if (key->open)
        return error_set(err, ERROR_BAD_REQUEST,
                         "PartitionKey value must be supplied for this operation: a script needs "
                         "the whole of a synthetic key, for it stays within one logical partition");
    rest_script_links(call, items, &host->self_link, &host->alt_link);
    if (call->options->scripts.ru_seconds && call->services->meters &&
        meters_state(call->services->meters, rest_items_partition(items, key, call->arena), &state))
        host->budget_cru = MAX(state.rate_cru, (int64_t)RU_SECONDS_CRU) *
                           (int64_t)call->options->scripts.ru_seconds;
    return true;
}

void rest_script_host_done(struct rest_script_host *host)
{
    arena_free(host->answers);
    host->answers = NULL;
}

void rest_script_host_begin(struct rest_script_host *host, struct metered_transaction *metered,
                            struct transaction *transaction)
{
    host->transaction = transaction;
    host->space = metered->space;
    host->arena = metered->arena;
    host->reads_cru = host->writes_cru = 0;
    host->bytes = 0;
    if (!host->answers)
        host->answers = arena_new();
    host->ended = false;
}

bool rest_script_error_is_operations(const struct error *err)
{
    return err->status < 500 && err->status != 449 && err->status != 429 &&
           err->code != ERROR_SCRIPT_TIMED_OUT && !item_space_is_overtaken(err);
}

/* --- Items ----------------------------------------------------------------------------------- */

static bool json_object(struct rest_script_host *host, struct slice json,
                        struct slice *ret_document, struct error *err)
{
    const struct document_limits limits = {.refuse_duplicates = true};
    CLEANUP(buf_done) struct buf document;

    buf_init(&document, BUF_DEFAULT_MAX);
    if (!document_json_read(json, &limits, &document, err))
        return false;
    *ret_document = arena_copy(host->arena, buf_slice(&document));
    return true;
}

/* The document with an id of its own before everything else. */
static struct slice with_id(struct rest_script_host *host, struct slice document)
{
    CLEANUP(buf_done) struct buf made;
    char id[RANDOM_UUID_SIZE];
    size_t begin;

    buf_init(&made, BUF_DEFAULT_MAX);
    random_uuid(id);
    begin = document_begin(&made);
    document_append_string(&made, definition_names_of(host->space->definition)->identity,
                           slice_of(id, RANDOM_UUID_SIZE - 1));
    buf_append(&made, document.data + 4, document.len - 5); /* the elements alone */
    document_end(&made, begin);
    return arena_copy(host->arena, buf_slice(&made));
}

bool rest_script_item(struct rest_script_host *host, struct slice json, bool make_id,
                      struct slice *ret_document, struct document_value *ret_id, struct error *err)
{
    const struct partition_definition *definition = &host->space->definition->key;
    const struct document_names *names = definition_names_of(host->space->definition);
    struct document_value id;
    struct partition_key key;
    struct slice document;

    if (!json_object(host, json, &document, err))
        return false;
    if (make_id && !document_find(document, names->identity, &id) &&
        !document_find(document, names->shown, &id))
        document = with_id(host, document);
    if (!front_item_clean(names, document, host->arena, ret_document, ret_id, err) ||
        !rest_item_size_check(host->items, *ret_document, err))
        return false;
    if (!partition_key_derive(definition, *ret_document, NULL, host->arena, &key, err))
        return false;
    if (key.open ? !partition_key_closes(definition, &host->key, &key)
                 : !partition_key_equal(&key, &host->key))
        return error_set(err, ERROR_KEY_MISMATCH,
                         "a script works on the partition key it was called with: the item has "
                         "another");
    return items_names_check(host->space, &host->key, ret_id, err);
}

bool rest_script_write(struct rest_script_host *host, const struct document_value *id,
                       enum transaction_verb verb, struct slice document,
                       const struct transaction_options *options, struct error *err)
{
    struct cost_write known = {.removes = verb == TRANSACTION_DELETE,
                               .puts = verb != TRANSACTION_DELETE,
                               .new_bytes = document.len};

    if (transaction_work(host->transaction).writes >= WRITES_MAX)
        return error_set(err, ERROR_TOO_LARGE, "a script writes more than %d times", WRITES_MAX);
    if ((verb != TRANSACTION_DELETE &&
         !transaction_unique_check(host->transaction, id, document, err)) ||
        !transaction_write(host->transaction, id, verb, document, options, err)) {
        host->reads_cru = cost_add(host->reads_cru, metering_refused_cru(err));
        return false;
    }
    host->writes_cru = cost_add(host->writes_cru, cost_write(&known));
    return true;
}

static bool missing(struct error *err)
{
    return error_set(err, ERROR_ITEM_MISSING,
                     "Entity with the specified id does not exist in the system.");
}

bool rest_script_patch(struct rest_script_host *host, const struct document_value *id,
                       struct slice json, const struct transaction_options *options,
                       struct error *err)
{
    struct document_value body;
    struct rest_patch patch;
    const struct item *item;
    struct slice document;

    if (!rest_call_json(host->call, json, 0, &body, err) ||
        !rest_patch_parse(host->call, host->items, &body, &patch, err) ||
        !transaction_read(host->transaction, id, &item, err))
        return false;
    if (!item)
        return missing(err);
    return rest_patch_make(item, &patch, host->arena, &document, err) &&
           rest_item_size_check(host->items, document, err) &&
           rest_script_write(host, id, TRANSACTION_REPLACE, document, options, err);
}

static struct slice item_json(struct rest_script_host *host, const struct item *item,
                              struct arena *arena)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    rest_item_append(host->items, item, 0, &text);
    return arena_copy(arena, buf_slice(&text));
}

bool rest_script_shown(struct rest_script_host *host, const struct document_value *id,
                       struct arena *arena, struct slice *ret_json, struct error *err)
{
    const struct item *item;

    if (!transaction_read(host->transaction, id, &item, err))
        return false;
    *ret_json = item ? item_json(host, item, arena) : SLICE_NONE;
    return true;
}

/* --- Operations ------------------------------------------------------------------------------ */

/* Options that would change what an operation does, and are not offered here. */
static bool options_check(const struct script_operation *operation, bool *ret_not_indexed,
                          struct arena *arena, struct error *err)
{
    static const char *const refused[] = {"preTriggerInclude", "postTriggerInclude"};
    const struct document_limits limits = {0};
    CLEANUP(buf_done) struct buf document;
    struct document_value value;

    buf_init(&document, BUF_DEFAULT_MAX);
    *ret_not_indexed = false;
    if (!operation->options.len)
        return true;
    if (!document_json_read(operation->options, &limits, &document, err))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        if (document_find(buf_slice(&document), slice_of_text(refused[i]), &value))
            return error_set(err, ERROR_BAD_REQUEST,
                             "option %s cannot be used in a script: writes of scripts fire no "
                             "triggers",
                             refused[i]);
    if (!document_find(buf_slice(&document), SLICE("indexAction"), &value))
        return true;
    if (value.type != DOCUMENT_STRING)
        return error_set(err, ERROR_BAD_REQUEST, "option indexAction must be a text");
    return rest_items_directive(arena_copy(arena, value.text), ret_not_indexed, err);
}

static bool item_read(struct rest_script_host *host, const struct script_operation *operation,
                      const struct document_value *id, struct script_answer *answer,
                      struct arena *arena, struct error *err)
{
    struct slice etag = front_http_etag_bare(operation->etag);
    const struct item *item;
    char own[ITEM_ETAG_LEN];

    if (!transaction_read(host->transaction, id, &item, err))
        return false;
    answer->charge_cru = cost_read(item ? item->document.len : 0, host->strong);
    host->reads_cru = cost_add(host->reads_cru, answer->charge_cru);
    if (!item)
        return missing(err);
    item_etag(&item->header, own);
    answer->etag = rest_item_etag(item, arena);
    answer->status = 304;
    if (etag.len && slice_equal(etag, slice_of(own, sizeof own)))
        return true;
    answer->status = 200;
    answer->body = item_json(host, item, arena);
    return true;
}

/* The target of an operation on one item, and what it shall become. */
static bool target_find(struct rest_script_host *host, const struct script_operation *operation,
                        struct rest_item_target *ret_target, struct error *err)
{
    struct document_value *ret_id = &ret_target->id;
    struct slice *ret_document = &ret_target->document;
    struct document_value named;
    bool found;

    if (operation->verb == SCRIPT_CREATE || operation->verb == SCRIPT_UPSERT)
        return rest_script_link_is_collection(host, operation->link, err) &&
               rest_script_item(host, operation->body, !operation->id_given, ret_document, ret_id,
                                err);
    if (!rest_script_link_item(host, operation->link, ret_id, &found, err))
        return false;
    if (!found)
        return missing(err);
    if (operation->verb != SCRIPT_REPLACE)
        return true;
    if (!rest_script_item(host, operation->body, false, ret_document, &named, err))
        return false;
    if (!slice_equal(named.text, ret_id->text))
        ret_target->new_id = named;
    return true;
}

static bool item_write(struct rest_script_host *host, const struct script_operation *operation,
                       const struct rest_item_target *target, struct script_answer *answer,
                       struct arena *arena, struct error *err)
{
    static const enum transaction_verb verbs[] = {[SCRIPT_CREATE] = TRANSACTION_CREATE,
                                                  [SCRIPT_REPLACE] = TRANSACTION_REPLACE,
                                                  [SCRIPT_UPSERT] = TRANSACTION_UPSERT,
                                                  [SCRIPT_DELETE] = TRANSACTION_DELETE};
    struct transaction_options options = {.if_match = front_http_etag_bare(operation->etag)};
    const struct document_value *id = &target->id;
    int64_t before_cru = host->writes_cru;
    const struct item *item;

    if (!options_check(operation, &options.not_indexed, arena, err) ||
        !transaction_read(host->transaction, id, &item, err))
        return false;
    rest_item_target_options(target, &options);
    answer->status = operation->verb == SCRIPT_DELETE ? 204 : item ? 200 : 201;
    if (operation->verb == SCRIPT_PATCH
            ? !rest_script_patch(host, id, operation->body, &options, err)
            : !rest_script_write(host, id, verbs[operation->verb], target->document, &options, err))
        return false;
    answer->charge_cru = host->writes_cru - before_cru;
    if (operation->verb == SCRIPT_DELETE)
        return true;
    if (!transaction_read(host->transaction, items_id_written(id, &options), &item, err))
        return false;
    answer->etag = rest_item_etag(item, arena);
    answer->body = item_json(host, item, arena);
    return true;
}

static bool operation_run(struct rest_script_host *host, const struct script_operation *operation,
                          struct script_answer *answer, struct arena *arena, struct error *err)
{
    struct rest_item_target target = {0};

    if (operation->verb == SCRIPT_QUERY || operation->verb == SCRIPT_READ_FEED)
        return rest_script_link_is_collection(host, operation->link, err) &&
               rest_script_query(host, operation, answer, arena, err);
    if (!target_find(host, operation, &target, err))
        return false;
    if (operation->verb == SCRIPT_READ)
        return item_read(host, operation, &target.id, answer, arena, err);
    return item_write(host, operation, &target, answer, arena, err);
}

/* Long texts are told in full: those of faults in a query are. */
static void answer_refusal(struct rest_script_host *host, const struct error *err,
                           struct script_answer *answer, struct arena *arena)
{
    const struct rest_call *call = host->call;
    struct slice message = front_fault_tell(call->services, err, call->activity_id, arena);

    *answer = (struct script_answer){
        .status = err->status, .substatus = err->substatus, .charge_cru = answer->charge_cru};
    if (host->call->message.data)
        message = host->call->message;
    answer->message = arena_copy(arena, message);
    host->call->message = SLICE_NONE;
}

/* --- Serving --------------------------------------------------------------------------------- */

static bool size_check(const struct rest_script_host *host, bool *ret_accepting, struct error *err)
{
    struct transaction_work work = transaction_work(host->transaction);
    uint64_t bytes = work.bytes_read + work.bytes_written + host->bytes;

    if (bytes > BYTES_MAX)
        return error_set(err, ERROR_SCRIPT_LIMIT, "the script reads and writes more than %d bytes",
                         BYTES_MAX);
    if (bytes > BYTES_MAX / 2 || work.writes > WRITES_MAX / 2 ||
        (host->budget_cru && cost_add(host->reads_cru, host->writes_cru) >= host->budget_cru))
        *ret_accepting = false;
    return true;
}

static void bytes_count(struct rest_script_host *host, const struct script_operation *operation,
                        const struct script_answer *answer)
{
    bool queries = operation->verb == SCRIPT_QUERY || operation->verb == SCRIPT_READ_FEED;

    host->bytes += operation->body.len + operation->options.len + OPERATION_BYTES;
    if (queries)
        host->bytes += answer->body.len + QUERY_BYTES;
}

static bool operations_run(struct rest_script_host *host, const struct script_operation *operations,
                           size_t count, struct script_answer *ret_answers, bool *ret_accepting,
                           struct arena *arena, struct error *err)
{
    const atomic_bool *cancelled = host->call->cancelled;

    for (size_t i = 0; i < count; i++) {
        if (cancelled && atomic_load_explicit(cancelled, memory_order_relaxed))
            return error_set(err, ERROR_TIMED_OUT, "the client has gone");
        ret_answers[i] = (struct script_answer){0};
        if (!operation_run(host, &operations[i], &ret_answers[i], arena, err)) {
            if (!rest_script_error_is_operations(err))
                return false;
            answer_refusal(host, err, &ret_answers[i], arena);
        }
        bytes_count(host, &operations[i], &ret_answers[i]);
        if (!size_check(host, ret_accepting, err))
            return false;
    }
    return true;
}

static bool serve(void *self, const struct script_operation *operations, size_t count,
                  struct script_answer *ret_answers, bool *ret_accepting,
                  struct arena *arena UNUSED, struct error *err)
{
    struct rest_script_host *host = self;

    arena_reset(host->answers); /* those of the batch before have been sent */
    host->ended =
        !operations_run(host, operations, count, ret_answers, ret_accepting, host->answers, err);
    return !host->ended;
}

struct script_host rest_script_host(struct rest_script_host *host)
{
    return (struct script_host){.serve = serve, .self = host};
}
