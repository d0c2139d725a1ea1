/* The servers that share the nodes: listed, drained, forgotten. Of the default account alone. */
#include "front/admin/call.h"

static bool hooks_check(struct admin_call *call, struct error *err)
{
    return admin_need_owner(call, err) &&
           (call->hooks->servers ||
            error_set(err, ERROR_NOT_SUPPORTED, "this server works alone (servers.listen is off)"));
}

static bool shown(struct admin_call *call, struct error *err)
{
    BUF_APPEND(&call->body, "{\"servers\":");
    if (!call->hooks->servers(call->hooks->context, &call->body, err))
        return false;
    BUF_APPEND(&call->body, "}");
    call->status = 200;
    return true;
}

bool admin_servers_list(struct admin_call *call, struct error *err)
{
    return hooks_check(call, err) && shown(call, err);
}

static bool drain_say(struct admin_call *call, bool on, struct error *err)
{
    return hooks_check(call, err) &&
           call->hooks->server_drain(call->hooks->context, call->names[0], on, err) &&
           shown(call, err);
}

bool admin_servers_drain(struct admin_call *call, struct error *err)
{
    return drain_say(call, true, err);
}

bool admin_servers_resume(struct admin_call *call, struct error *err)
{
    return drain_say(call, false, err);
}

bool admin_servers_forget(struct admin_call *call, struct error *err)
{
    return hooks_check(call, err) &&
           call->hooks->server_forget(call->hooks->context, call->names[0], err) &&
           shown(call, err);
}
