/* Who asks, for pages that show what the key they were given may do. */
#include "front/admin/call.h"

bool admin_session_show(struct admin_call *call, struct error *err UNUSED)
{
    BUF_APPEND(&call->body, "{");
    admin_text(&call->body, "account", call->account.id);
    buf_printf(&call->body, ",\"readOnly\":%s,\"owner\":%s}",
               call->may_only_read ? "true" : "false", admin_is_owner(call) ? "true" : "false");
    call->status = 200;
    return true;
}
