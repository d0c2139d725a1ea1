#include "front/admin/call.h"

#include "document/json.h"
#include "front/text.h"
#include "partition/epk.h"

#include <stdlib.h>

bool admin_is_owner(const struct admin_call *call)
{
    return slice_equal(call->account.id, SLICE(CATALOGUE_ACCOUNT_DEFAULT));
}

bool admin_need_owner(const struct admin_call *call, struct error *err)
{
    return admin_is_owner(call) ||
           error_set(err, ERROR_FORBIDDEN,
                     "only the account \"" CATALOGUE_ACCOUNT_DEFAULT
                     "\" administers the server: other accounts see themselves alone");
}

struct slice admin_parameter(const struct admin_call *call, struct slice name)
{
    struct slice rest = call->http->query, part, key, value, decoded;

    while (rest.len) {
        if (!slice_split(rest, '&', &part, &rest)) {
            part = rest;
            rest = SLICE_NONE;
        }
        if (slice_split(part, '=', &key, &value) && slice_equal(key, name))
            return front_percent_decode(value, call->arena, &decoded) ? decoded : value;
    }
    return SLICE_NONE;
}

bool admin_number(const struct admin_call *call, struct slice name, uint64_t min, uint64_t max,
                  uint64_t preset, uint64_t *ret_number, struct error *err)
{
    struct slice text = admin_parameter(call, name);
    uint64_t number = preset;

    if (text.data && (!slice_to_uint64(text, &number) || number < min || number > max))
        return error_set(err, ERROR_BAD_REQUEST,
                         "the parameter %.*s must be a whole number from %llu to %llu",
                         SLICE_ARG(name), (unsigned long long)min, (unsigned long long)max);
    *ret_number = number;
    return true;
}

bool admin_decimal(const struct admin_call *call, struct slice name, double min, double max,
                   double preset, double *ret_number, struct error *err)
{
    struct slice text = admin_parameter(call, name);
    double number = preset;
    char copy[32], *end;

    if (text.data) {
        (void)snprintf(copy, sizeof copy, "%.*s", SLICE_ARG(text));
        number = strtod(copy, &end);
        if (end != copy + text.len || !text.len || !(number >= min && number <= max))
            return error_set(err, ERROR_BAD_REQUEST,
                             "the parameter %.*s must be a number from %g to %g", SLICE_ARG(name),
                             min, max);
    }
    *ret_number = number;
    return true;
}

static void member_begin(struct buf *out, const char *name)
{
    uint8_t last = out->len ? out->data[out->len - 1] : '{';

    buf_printf(out, "%s\"%s\":", last == '{' || last == '[' ? "" : ",", name);
}

void admin_text(struct buf *out, const char *name, struct slice text)
{
    member_begin(out, name);
    document_json_write_string(text, out);
}

void admin_number_append(struct buf *out, const char *name, uint64_t number)
{
    member_begin(out, name);
    buf_append_uint64(out, number);
}

void admin_ru(struct buf *out, const char *name, int64_t cru)
{
    member_begin(out, name);
    buf_printf(out, "%lld.%02lld", (long long)(cru / 100), (long long)(cru % 100));
}

void admin_hex(struct buf *out, const char *name, struct slice bytes)
{
    member_begin(out, name);
    BUF_APPEND(out, "\"");
    partition_epk_hex(bytes, out);
    BUF_APPEND(out, "\"");
}

void admin_node(struct admin_call *call, uint32_t node)
{
    const struct admin_hooks *hooks = call->hooks;
    const char *name = hooks->node_name ? hooks->node_name(hooks->context, node) : NULL;

    if (name)
        admin_text(&call->body, "node", slice_of_text(name));
    else
        admin_number_append(&call->body, "node", node);
}

struct slice admin_endpoint(struct admin_call *call)
{
    return front_gateway_endpoint(&call->over_gateway, net_http_header(call->http, SLICE("host")),
                                  call->prefix);
}

bool admin_container_open(struct admin_call *call, struct container **ret_container,
                          struct error *err)
{
    struct slice account = admin_parameter(call, SLICE("account"));

    if (!account.data)
        account = call->account.id;
    if (!slice_equal(account, call->account.id) && !admin_need_owner(call, err))
        return false;
    return catalogue_container_open(call->services->catalogue, account, call->names[0],
                                    call->names[1], ret_container, err);
}

/* --- The server ------------------------------------------------------------------------------ */

bool admin_settings_show(struct admin_call *call, struct error *err)
{
    const struct admin_hooks *hooks = call->hooks;

    if (!admin_need_owner(call, err))
        return false;
    if (!hooks->settings)
        return error_set(err, ERROR_NOT_SUPPORTED, "this server does not show its settings");
    BUF_APPEND(&call->body, "{");
    hooks->settings(hooks->context, &call->body);
    BUF_APPEND(&call->body, "}");
    call->status = 200;
    return true;
}
