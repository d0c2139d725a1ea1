/* Writes of items with triggers around them. The body of the request goes through the pre-triggers,
 * is written, and what came of it goes through the post-triggers, all on the loop of one
 * transaction; nobody else sees anything before all of it is committed. */
#include "front/rest/procedure/scripts.h"
#include "front/rest/token.h"

#include "base/clock.h"
#include "document/json.h"
#include "front/rest/procedure/script_link.h"
#include "partition/synthetic.h"
#include "throughput/cost.h"

#include <xxhash.h>

enum { TRIGGERS_MAX = 8 }; /* of each type in one request; the service documents one */

struct triggers {
    struct catalogue_child *list[TRIGGERS_MAX]; /* borrowed from the container */
    size_t count;
};

struct write {
    struct metered_transaction metered;
    struct rest_script_host host;
    struct triggers pre, post;
    struct document_value id; /* of the path; undefined: the body has it */
    struct transaction_options options;
    int64_t late_ms;

    /* Of the present attempt. */
    struct slice body; /* as the pre-triggers left it */
    struct document_value written;
    size_t nth;            /* as of transaction_result */
    struct slice response; /* set by a post-trigger; absent: the item */

    struct buf log;
};

/* --- Which triggers -------------------------------------------------------------------------- */

/* What getOperationType says, and what triggerOperation has to be. */
static const char *operation_name(enum rest_verb verb)
{
    switch (verb) {
    case REST_CREATE:
        return "Create";
    case REST_UPSERT:
        return "Upsert";
    case REST_REPLACE:
        return "Replace";
    case REST_PATCH:
        return "Patch";
    default:
        return "Delete";
    }
}

static bool operation_suits(struct slice declared, enum rest_verb verb)
{
    bool changes = verb == REST_REPLACE || verb == REST_PATCH;

    return slice_equal_nocase(declared, SLICE("All")) ||
           slice_equal_nocase(declared, slice_of_text(operation_name(verb))) ||
           (changes && (slice_equal_nocase(declared, SLICE("Update")) ||
                        slice_equal_nocase(declared, SLICE("Replace"))));
}

static bool trigger_find(const struct rest_call *call, const struct rest_items *items,
                         struct slice name, const char *type, struct catalogue_child **ret_trigger,
                         struct error *err)
{
    struct catalogue_child *trigger =
        catalogue_children_find(container_children(items->container, CHILD_TRIGGER), name);
    int shown = (int)MIN(name.len, (size_t)64);

    if (!trigger)
        return error_set(err, ERROR_BAD_REQUEST, "trigger \"%.*s\" does not exist", shown,
                         (const char *)name.data);
    if (!slice_equal_nocase(catalogue_child_trait(trigger, SLICE("triggerType")),
                            slice_of_text(type)))
        return error_set(err, ERROR_BAD_REQUEST, "trigger \"%.*s\" is not a %s-trigger", shown,
                         (const char *)name.data, type);
    if (!operation_suits(catalogue_child_trait(trigger, SLICE("triggerOperation")), call->verb))
        return error_set(err, ERROR_BAD_REQUEST, "trigger \"%.*s\" is not for the operation %s",
                         shown, (const char *)name.data, operation_name(call->verb));
    *ret_trigger = trigger;
    return true;
}

/* A header names triggers, separated by commas; they run in that order. */
static bool triggers_find(const struct rest_call *call, const struct rest_items *items,
                          enum rest_header header, const char *type, struct triggers *triggers,
                          struct error *err)
{
    struct slice rest = rest_call_header(call, header), name;

    while (rest.len) {
        if (!slice_split(rest, ',', &name, &rest)) {
            name = rest;
            rest = SLICE_NONE;
        }
        name = slice_trim(name);
        if (!name.len)
            continue;
        if (triggers->count == TRIGGERS_MAX)
            return error_set(err, ERROR_BAD_REQUEST, "a request names more than %d %s-triggers",
                             TRIGGERS_MAX, type);
        if (!trigger_find(call, items, name, type, &triggers->list[triggers->count++], err))
            return false;
    }
    return true;
}

/* --- The transaction ------------------------------------------------------------------------- */

static bool triggers_run(struct write *write, const struct triggers *triggers,
                         enum script_kind kind, struct slice response_body, struct error *err)
{
    struct script_result result;

    for (size_t i = 0; i < triggers->count; i++) {
        struct script_request request = {
            .kind = kind,
            .operation = slice_of_text(operation_name(write->host.call->verb)),
            .request_body = write->body,
            .response_body = response_body,
        };
        bool fine = rest_script_run(&write->host, triggers->list[i], request, &result, err);

        buf_append_slice(&write->log, result.log);
        if (!fine)
            return false;
        if (kind == SCRIPT_PRE_TRIGGER && result.request_body.data)
            write->body = result.request_body;
        if (kind == SCRIPT_POST_TRIGGER && result.response_body.data)
            write->response = response_body = result.response_body;
    }
    return true;
}

static bool item_put(struct write *write, enum transaction_verb verb, struct error *err)
{
    struct slice document;

    if (!rest_script_item(&write->host, write->body, false, &document, &write->written, err))
        return false;
    if (write->id.type == DOCUMENT_UNDEFINED || slice_equal(write->id.text, write->written.text))
        return rest_script_write(&write->host, &write->written, verb, document, &write->options,
                                 err);
    if (!rest_token_check_rename(write->host.call, err))
        return false;
    write->options.new_id = &write->written;
    return rest_script_write(&write->host, &write->id, verb, document, &write->options, err);
}

static bool item_write(struct write *write, struct error *err)
{
    write->written = write->id;
    switch (write->host.call->verb) {
    case REST_CREATE:
        return item_put(write, TRANSACTION_CREATE, err);
    case REST_UPSERT:
        return item_put(write, TRANSACTION_UPSERT, err);
    case REST_REPLACE:
        return item_put(write, TRANSACTION_REPLACE, err);
    case REST_PATCH:
        return rest_script_patch(&write->host, &write->id, write->body, &write->options, err);
    default:
        return rest_script_write(&write->host, &write->id, TRANSACTION_DELETE, SLICE_NONE,
                                 &write->options, err);
    }
}

static bool attempt_run(struct write *write, struct error *err)
{
    struct rest_script_host *host = &write->host;
    struct slice shown = SLICE_NONE;

    if (!triggers_run(write, &write->pre, SCRIPT_PRE_TRIGGER, SLICE_NONE, err))
        return false;
    write->nth = transaction_work(host->transaction).writes;
    if (!item_write(write, err))
        return false;
    if (host->call->verb != REST_DELETE && write->post.count &&
        !rest_script_shown(host, &write->written, host->arena, &shown, err))
        return false;
    return triggers_run(write, &write->post, SCRIPT_POST_TRIGGER, shown, err);
}

static bool write_plan(struct metered_transaction *metered, struct transaction *transaction,
                       struct error *err)
{
    struct write *write = CONTAINER_OF(metered, struct write, metered);
    struct rest_script_host *host = &write->host;
    bool fine;

    if (clock_read_monotonic_ms(host->call->services->clock) >= write->late_ms)
        return error_set(err, ERROR_CONFLICT,
                         "others wrote what the triggers wanted to write, as often as they ran");
    rest_script_host_begin(host, metered, transaction);
    write->body = host->call->http->body.len ? host->call->http->body : SLICE_NONE;
    write->response = SLICE_NONE;
    buf_clear(&write->log);
    fine = attempt_run(write, err);
    metered->reads_cru = cost_add(host->reads_cru, fine ? 0 : host->writes_cru);
    return fine;
}

static void write_done(struct metered_transaction *metered, struct transaction *transaction)
{
    struct write *write = CONTAINER_OF(metered, struct write, metered);
    struct rest_call *call = write->host.call;
    struct item_operation op = {.space = &write->host.items->space,
                                .arena = call->arena,
                                .key = write->host.key,
                                .id = write->written,
                                .result = transaction_outcome(transaction, write->nth)};
    bool deleted = call->verb == REST_DELETE || !op.result.item.document.data;

    call->charge_cru = cost_add(metered->reads_cru, transaction_work(transaction).write_cru);
    op.verb = deleted                     ? ITEM_DELETE
              : call->verb == REST_CREATE ? ITEM_CREATE
              : call->verb == REST_UPSERT ? ITEM_UPSERT
                                          : ITEM_REPLACE;
    op.route = item_space_route(op.space, &op.key, &op.id, call->arena);
    rest_item_written(call, write->host.items, &op);
    if (!write->response.data || rest_items_minimal(call) || deleted)
        return;
    buf_clear(&call->body);
    rest_script_names(&write->host, write->response, &call->body);
}

/* --- The request ----------------------------------------------------------------------------- */

/* The partition key of a create or upsert without a header: that of the body as it was sent. */
static bool key_of_body(struct rest_call *call, const struct rest_items *items,
                        struct partition_key *ret_key, struct error *err)
{
    struct slice body;

    if (!rest_call_body(call, &body, err))
        return false;
    return partition_key_derive(&items->space.definition->key, body, NULL, call->arena, ret_key,
                                err);
}

static bool target_find(struct rest_call *call, const struct rest_items *items, struct write *write,
                        struct partition_key *ret_key, struct error *err)
{
    struct rest_item_target target;
    bool given;

    write->id = document_undefined();
    if (call->verb == REST_CREATE || call->verb == REST_UPSERT)
        return rest_items_key(call, items, ret_key, &given, err) &&
               (given || key_of_body(call, items, ret_key, err));
    if (!rest_item_target_of_path(call, items, &target, err))
        return false;
    *ret_key = target.key;
    write->id = target.id;
    return true;
}

static bool write_run(struct rest_call *call, const struct rest_items *items, struct write *write,
                      struct metered_call *metered, struct error *err)
{
    struct slice body = call->http->body;
    struct script_place *place;
    bool fine;

    if (!rest_scripts_enter(call, items, &place, err))
        return false;
    write->metered = (struct metered_transaction){
        .plan = write_plan,
        .done = write_done,
        .price_cru =
            cost_add(cost_script(0, body.len),
                     cost_write(&(struct cost_write){.puts = true, .new_bytes = body.len})),
        .ticket = XXH3_64bits(body.data, body.len) | 1,
        .attempts_max = REST_SCRIPT_ATTEMPTS_MAX,
        .gates = call->script_gates,
        .own_arena = true,
    };
    write->late_ms = clock_read_monotonic_ms(call->services->clock) +
                     REST_SCRIPT_TIMES_MAX * call->options->scripts.time_ms;
    buf_init(&write->log, BUF_DEFAULT_MAX);
    fine = metered_transaction_run(call->services->meters, &items->space, &write->host.key,
                                   &write->metered, metered, call->arena, err);
    rest_scripts_leave(call, place);
    rest_script_host_done(&write->host);
    rest_script_charged(call, metered);
    rest_script_log(call, buf_slice(&write->log));
    buf_done(&write->log);
    return fine;
}

bool rest_triggers_write(struct rest_call *call, struct error *err)
{
    CLEANUP(rest_items_close) struct rest_items items = {0};
    struct write write = {0};
    struct metered_call metered;
    struct partition_key key;

    if (!call->may_block) {
        call->cold = true;
        return false;
    }
    return rest_items_open(call, &items, err) && rest_items_metered(call, &metered, err) &&
           triggers_find(call, &items, REST_HEADER_PRE_TRIGGER, "Pre", &write.pre, err) &&
           triggers_find(call, &items, REST_HEADER_POST_TRIGGER, "Post", &write.post, err) &&
           rest_items_options(call, &write.options, err) &&
           target_find(call, &items, &write, &key, err) &&
           rest_script_host_init(&write.host, call, &items, &key, metered.strong, err) &&
           write_run(call, &items, &write, &metered, err);
}
