/* Snapshots of all nodes: listed, made, dropped, gone back to. Of the default account alone. */
#include "front/admin/call.h"

#include "document/bson.h"

static bool hooks_check(struct admin_call *call, struct error *err)
{
    return admin_need_owner(call, err) &&
           (call->hooks->snapshots ||
            error_set(err, ERROR_NOT_SUPPORTED, "this server keeps no snapshots"));
}

static bool shown(struct admin_call *call, struct error *err)
{
    BUF_APPEND(&call->body, "{");
    if (!call->hooks->snapshots(call->hooks->context, &call->body, err))
        return false;
    BUF_APPEND(&call->body, "}");
    return true;
}

bool admin_snapshots_list(struct admin_call *call, struct error *err)
{
    if (!hooks_check(call, err) || !shown(call, err))
        return false;
    call->status = 200;
    return true;
}

bool admin_snapshots_make(struct admin_call *call, struct error *err)
{
    struct document_value name;
    struct slice body;

    if (!hooks_check(call, err) || !front_http_body(&call->over_http, &body, err))
        return false;
    if (!document_find(body, SLICE("name"), &name) || name.type != DOCUMENT_STRING)
        return error_set(err, ERROR_BAD_REQUEST, "a snapshot needs a \"name\"");
    if (!call->hooks->snapshot_make(call->hooks->context, name.text, err) || !shown(call, err))
        return false;
    call->status = 201;
    return true;
}

bool admin_snapshots_drop(struct admin_call *call, struct error *err)
{
    if (!hooks_check(call, err) ||
        !call->hooks->snapshot_drop(call->hooks->context, call->names[0], err) || !shown(call, err))
        return false;
    call->status = 200;
    return true;
}

/* Whoever waits for the server to be back knows by "boot" that it is another. */
bool admin_snapshots_reset(struct admin_call *call, struct error *err)
{
    if (!hooks_check(call, err) || !shown(call, err) ||
        !call->hooks->snapshot_reset(call->hooks->context, call->names[0], err))
        return false;
    call->status = 202;
    return true;
}
