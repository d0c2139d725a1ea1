/* Pauses: listed, set, ended. Of the default account alone: they are the operator's. */
#include "front/admin/call.h"

#include "document/bson.h"
#include "maintain/pauses.h"

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
    if (pause->from_ms)
        admin_number_append(out, "from", (uint64_t)pause->from_ms);
    if (pause->until_ms)
        admin_number_append(out, "until", (uint64_t)pause->until_ms);
    buf_printf(out, ",\"inForce\":%s}",
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

/* What is named must be there: a name that was mistyped would pause nothing. */
static bool scope_find(struct admin_call *call, const struct scope *scope, struct pause *pause,
                       struct error *err)
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
    return true;
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

    if (!pauses_get(call, &pauses, err) || !front_http_body(&call->over_http, &body, err) ||
        !text_take(body, "name", pause.name, sizeof pause.name, err) ||
        !text_take(body, "message", pause.message, sizeof pause.message, err) ||
        !text_take(body, "account", scope.account, sizeof scope.account, err) ||
        !text_take(body, "database", scope.database, sizeof scope.database, err) ||
        !text_take(body, "container", scope.container, sizeof scope.container, err) ||
        !time_take(body, "from", &pause.from_ms, err) ||
        !time_take(body, "until", &pause.until_ms, err) || !what_take(body, &pause.writes, err))
        return false;
    if (scope.container[0] && !scope.database[0])
        return error_set(err, ERROR_BAD_REQUEST, "a container is named with its database");
    if (!pause.message[0])
        snprintf(pause.message, sizeof pause.message, "maintenance");
    if (!scope_find(call, &scope, &pause, err) || !pauses_set(pauses, &pause, err))
        return false;
    pause_append(call, &pause);
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
