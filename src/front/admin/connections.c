/* Who is connected, by front: the server knows. */
#include "front/admin/call.h"

bool admin_connections_show(struct admin_call *call, struct error *err)
{
    const struct admin_hooks *hooks = call->hooks;

    if (!admin_need_owner(call, err))
        return false;
    if (!hooks->connections)
        return error_set(err, ERROR_NOT_SUPPORTED, "this server does not show its connections");
    BUF_APPEND(&call->body, "{\"fronts\":[");
    hooks->connections(hooks->context, &call->body);
    BUF_APPEND(&call->body, "]}");
    call->status = 200;
    return true;
}
