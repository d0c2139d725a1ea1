/* Pauses: listed, set, ended. Of the default account alone: they are the operator's. */
#include "front/admin/call.h"

#include "document/bson.h"
#include "document/json.h"
#include "maintain/pauses.h"

enum { WAIT_MS_MAX = 60000, KEYS_SHOWN_MAX = 256 };

static bool pauses_get(struct admin_call *call, struct pauses **ret_pauses, struct error *err)
{
    *ret_pauses = call->services->pauses;
    return admin_need_owner(call, err) &&
           (*ret_pauses || error_set(err, ERROR_NOT_SUPPORTED, "this server keeps no pauses"));
}

static void pause_append(struct admin_call *call, const struct pause *pause)
{
    struct buf *out = &call->body;

    BUF_APPEND(out, "{");
    admin_text(out, "name", slice_of_text(pause->name));
    admin_text(out, "scope", slice_of_text(pause->scope));
    admin_text(out, "what", pause->writes ? SLICE("writes") : SLICE("all"));
    admin_text(out, "message", slice_of_text(pause->message));
    if (pause->node[0])
        admin_text(out, "node", slice_of_text(pause->node));
    if (pause->region[0])
        admin_text(out, "region", slice_of_text(pause->region));
    if (pause->keys[0])
        buf_printf(out, ",\"keys\":%s", pause->keys);
    if (pause->from_ms)
        admin_number_append(out, "from", (uint64_t)pause->from_ms);
    if (pause->until_ms)
        admin_number_append(out, "until", (uint64_t)pause->until_ms);
    buf_printf(out, ",\"inForce\":%s",
               pause_is_in_force(pause, clock_read_wall_ms(call->services->clock)) ? "true"
                                                                                   : "false");
}

bool admin_pauses_list(struct admin_call *call, struct error *err)
{
    struct pauses *pauses;
    struct pause *list;
    size_t count;

    if (!pauses_get(call, &pauses, err))
        return false;
    list = pauses_list(pauses, call->arena, &count);
    BUF_APPEND(&call->body, "{\"pauses\":[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            BUF_APPEND(&call->body, ",");
        pause_append(call, &list[i]);
        BUF_APPEND(&call->body, "}");
    }
    BUF_APPEND(&call->body, "]}");
    call->status = 200;
    return true;
}

/* --- Setting --------------------------------------------------------------------------------- */

static bool text_take(struct slice body, const char *name, char *ret_text, size_t size,
                      struct error *err)
{
    struct document_value value;

    ret_text[0] = '\0';
    if (!document_find(body, slice_of_text(name), &value))
        return true;
    if (value.type != DOCUMENT_STRING || value.text.len >= size ||
        memchr(value.text.data, '\0', value.text.len))
        return error_set(err, ERROR_BAD_REQUEST, "\"%s\" is a text of less than %zu bytes", name,
                         size);
    snprintf(ret_text, size, "%.*s", SLICE_ARG(value.text));
    return true;
}

static bool time_take(struct slice body, const char *name, int64_t *ret_ms, struct error *err)
{
    struct document_value value;
    double number;

    *ret_ms = 0;
    if (!document_find(body, slice_of_text(name), &value))
        return true;
    if (!document_to_double(&value, &number) || number < 0 || number > 1e15)
        return error_set(err, ERROR_BAD_REQUEST, "\"%s\" is a time: milliseconds since 1970", name);
    *ret_ms = (int64_t)number;
    return true;
}

struct scope {
    char account[256], database[256], container[256];
};

/* Each of them is a key that items have, or ?empty=true says that they are to come. */
static bool keys_take(struct admin_call *call, struct slice body, struct container *container,
                      struct pause *pause, struct error *err)
{
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    CLEANUP(buf_done) struct buf text;
    struct document_value keys;
    struct document_iter iter;
    size_t count = 0;

    buf_init(&text, BUF_DEFAULT_MAX);
    if (!document_find(body, SLICE("keys"), &keys))
        return true;
    if (keys.type != DOCUMENT_ARRAY)
        return error_set(err, ERROR_BAD_REQUEST, "\"keys\" is an array of partition keys");
    document_iter_init(&iter, keys.document);
    while (document_iter_next(&iter)) {
        struct partition_key key;

        buf_clear(&text);
        document_json_write_value(&iter.value, &text);
        if (++count > PAUSE_KEYS_MAX)
            return error_set(err, ERROR_BAD_REQUEST, "a pause has at most %d keys", PAUSE_KEYS_MAX);
        if (!partition_key_parse(definition, buf_slice(&text), PARTITION_KEY_ANY, call->arena, &key,
                                 err))
            return false;
        if (!key.count || key.open)
            return error_set(
                err, ERROR_BAD_REQUEST,
                "a key has its first component at least, and its suffix if it has one");
        if (!admin_key_check(call, container, &key, err))
            return false;
    }
    if (!count)
        return error_set(err, ERROR_BAD_REQUEST, "\"keys\" names one key at least");
    buf_clear(&text);
    document_json_write_value(&keys, &text);
    if (text.len >= sizeof pause->keys)
        return error_set(err, ERROR_BAD_REQUEST, "the keys have more than %zu bytes of JSON",
                         sizeof pause->keys - 1);
    snprintf(pause->keys, sizeof pause->keys, "%.*s", SLICE_ARG(buf_slice(&text)));
    return true;
}

/* What is named must be there: a name that was mistyped would pause nothing. */
static bool scope_find(struct admin_call *call, struct slice body, const struct scope *scope,
                       struct pause *pause, struct error *err)
{
    struct catalogue *catalogue = call->services->catalogue;
    struct slice id = slice_of_text(scope->account[0] ? scope->account : CATALOGUE_ACCOUNT_DEFAULT);
    CLEANUP(account_unref) struct account *account = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    CLEANUP(container_unref) struct container *container = NULL;

    snprintf(pause->scope, sizeof pause->scope, "all");
    if (!scope->account[0] && !scope->database[0])
        return true;
    if (!catalogue_account_open(catalogue, id, &account, err))
        return false;
    pause->account = account_info(account)->number;
    snprintf(pause->scope, sizeof pause->scope, "%.*s", SLICE_ARG(id));
    if (!scope->database[0])
        return true;
    if (!catalogue_database_open(catalogue, id, slice_of_text(scope->database), &database, err))
        return false;
    pause->database = database_info(database)->number;
    snprintf(pause->scope, sizeof pause->scope, "%.*s/%s", SLICE_ARG(id), scope->database);
    if (!scope->container[0])
        return true;
    if (!catalogue_container_open(catalogue, id, slice_of_text(scope->database),
                                  slice_of_text(scope->container), &container, err))
        return false;
    pause->container = container_info(container)->number;
    snprintf(pause->scope, sizeof pause->scope, "%.*s/%s/%s", SLICE_ARG(id), scope->database,
             scope->container);
    return keys_take(call, body, container, pause, err);
}

/* Behind the names: which keys of it, and where. */
static void scope_narrow(struct pause *pause)
{
    size_t len = strlen(pause->scope);

    if (pause->keys[0])
        len += (size_t)snprintf(pause->scope + len, sizeof pause->scope - len, " keys %.*s",
                                KEYS_SHOWN_MAX, pause->keys);
    if (pause->node[0] && len < sizeof pause->scope)
        len += (size_t)snprintf(pause->scope + len, sizeof pause->scope - len, " on node %s",
                                pause->node);
    if (pause->region[0] && len < sizeof pause->scope)
        snprintf(pause->scope + len, sizeof pause->scope - len, " in region %s", pause->region);
}

/* Waits for what began before the pause, as long as the operator will. */
static void drain(struct admin_call *call, struct pauses *pauses, int64_t wait_ms)
{
    uint64_t under_way;
    bool drained;

    front_call_leave(&call->front);
    drained =
        pauses_drain(pauses, clock_monotonic_ms() + wait_ms, call->front.cancelled, &under_way);
    buf_printf(&call->body, ",\"drained\":%s", drained ? "true" : "false");
    admin_number_append(&call->body, "underWay", under_way);
}

static bool what_take(struct slice body, bool *ret_writes, struct error *err)
{
    char what[16];

    if (!text_take(body, "what", what, sizeof what, err))
        return false;
    *ret_writes = strcmp(what, "writes") == 0;
    return *ret_writes || !what[0] || strcmp(what, "all") == 0 ||
           error_set(err, ERROR_BAD_REQUEST, "\"what\" is writes or all");
}

bool admin_pauses_set(struct admin_call *call, struct error *err)
{
    struct pause pause = {0};
    struct pauses *pauses;
    struct scope scope;
    struct slice body;
    int64_t wait_ms;

    if (!pauses_get(call, &pauses, err) || !front_http_body(&call->over_http, &body, err) ||
        !text_take(body, "name", pause.name, sizeof pause.name, err) ||
        !text_take(body, "message", pause.message, sizeof pause.message, err) ||
        !text_take(body, "account", scope.account, sizeof scope.account, err) ||
        !text_take(body, "database", scope.database, sizeof scope.database, err) ||
        !text_take(body, "container", scope.container, sizeof scope.container, err) ||
        !text_take(body, "node", pause.node, sizeof pause.node, err) ||
        !text_take(body, "region", pause.region, sizeof pause.region, err) ||
        !time_take(body, "waitMs", &wait_ms, err) ||
        !time_take(body, "from", &pause.from_ms, err) ||
        !time_take(body, "until", &pause.until_ms, err) || !what_take(body, &pause.writes, err))
        return false;
    if (scope.container[0] && !scope.database[0])
        return error_set(err, ERROR_BAD_REQUEST, "a container is named with its database");
    if (document_find(body, SLICE("keys"), &(struct document_value){0}) && !scope.container[0])
        return error_set(err, ERROR_BAD_REQUEST, "keys are paused of one container");
    if (wait_ms > WAIT_MS_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "\"waitMs\" is at most %d", WAIT_MS_MAX);
    if (wait_ms && pause.from_ms > clock_read_wall_ms(call->services->clock))
        return error_set(err, ERROR_BAD_REQUEST,
                         "a pause that is planned for later has nothing to wait for");
    if (!pause.message[0])
        snprintf(pause.message, sizeof pause.message, "maintenance");
    if (!scope_find(call, body, &scope, &pause, err))
        return false;
    scope_narrow(&pause);
    if (!pauses_set(pauses, &pause, err))
        return false;
    pause_append(call, &pause);
    if (wait_ms)
        drain(call, pauses, wait_ms);
    BUF_APPEND(&call->body, "}");
    call->status = 201;
    return true;
}

bool admin_pauses_end(struct admin_call *call, struct error *err)
{
    struct pauses *pauses;

    if (!pauses_get(call, &pauses, err) || !pauses_end(pauses, call->names[0], err))
        return false;
    BUF_APPEND(&call->body, "{}");
    call->status = 200;
    return true;
}
