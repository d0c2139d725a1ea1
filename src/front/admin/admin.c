#include "front/admin/admin.h"

#include "document/json.h"
#include "partition/epk.h"

#include <stdlib.h>

static bool settings_show(struct admin_request *request, struct error *err);

/* --- Which resource -------------------------------------------------------------------------- */

static const struct resource {
    enum rest_verb verb; /* POST is REST_EXECUTE here */
    const char *path;    /* a star stands for a name */
    bool (*run)(struct admin_request *request, struct error *err);
} resources[] = {
    {REST_READ, "accounts", admin_accounts_list},
    {REST_EXECUTE, "accounts", admin_accounts_create},
    {REST_READ, "accounts/*", admin_accounts_show},
    {REST_DELETE, "accounts/*", admin_accounts_drop},
    {REST_READ, "accounts/*/keys", admin_keys_show},
    {REST_EXECUTE, "accounts/*/keys/*/rotate", admin_keys_rotate},
    {REST_READ, "databases", admin_databases_list},
    {REST_READ, "containers/*/*", admin_containers_show},
    {REST_READ, "containers/*/*/keys", admin_containers_keys},
    {REST_READ, "containers/*/*/partitions", admin_partitions_list},
    {REST_EXECUTE, "containers/*/*/partitions/*/split", admin_partitions_split},
    {REST_EXECUTE, "containers/*/*/partitions/*/move", admin_partitions_move},
    {REST_EXECUTE, "containers/*/*/partitions/merge", admin_partitions_merge},
    {REST_EXECUTE, "containers/*/*/isolate", admin_partitions_isolate},
    {REST_READ, "containers/*/*/directory", admin_directory_show},
    {REST_EXECUTE, "containers/*/*/directory", admin_directory_edit},
    {REST_READ, "containers/*/*/throughput", admin_throughput_show},
    {REST_EXECUTE, "containers/*/*/throughput", admin_throughput_edit},
    {REST_READ, "containers/*/*/migration", admin_migration_show},
    {REST_DELETE, "containers/*/*/migration", admin_migration_cancel},
    {REST_READ, "containers/*/*/shards", admin_shards_show},
    {REST_READ, "migrations", admin_migrations_list},
    {REST_EXECUTE, "migrations/pause", admin_migrations_pause},
    {REST_EXECUTE, "migrations/resume", admin_migrations_resume},
    {REST_EXECUTE, "containers/*/*/key", admin_containers_key},
    {REST_EXECUTE, "containers/*/*/move-item", admin_item_move},
    {REST_EXECUTE, "containers/*/*/rekey", admin_rekey_begin},
    {REST_READ, "containers/*/*/rekey", admin_rekey_show},
    {REST_DELETE, "containers/*/*/rekey", admin_rekey_abort},
    {REST_EXECUTE, "containers/*/*/rekey/end-grace", admin_rekey_end_grace},
    {REST_EXECUTE, "containers/*/*/promote", admin_promote_begin},
    {REST_READ, "containers/*/*/promote", admin_promote_show},
    {REST_EXECUTE, "containers/*/*/promote/demote", admin_promote_demote},
    {REST_EXECUTE, "containers/*/*/promote/end", admin_promote_end},
    {REST_EXECUTE, "containers/*/*/promote/forget", admin_promote_forget},
    {REST_READ, "containers/*/*/advice", admin_advice_show},
    {REST_READ, "containers/*/*/traffic", admin_traffic_show},
    {REST_READ, "containers/*/*/what-if", admin_what_if},
    {REST_READ, "containers/*/*/heat", admin_heat_show},
    {REST_READ, "containers/*/*/hot", admin_hot_container},
    {REST_READ, "hot", admin_hot_all},
    {REST_READ, "settings", settings_show},
    {REST_READ, "nodes", admin_nodes_list},
    {REST_EXECUTE, "nodes", admin_nodes_add},
    {REST_READ, "nodes/*", admin_nodes_show},
    {REST_EXECUTE, "nodes/*", admin_nodes_change},
    {REST_DELETE, "nodes/*", admin_nodes_remove},
    {REST_EXECUTE, "nodes/*/drain", admin_nodes_drain},
    {REST_EXECUTE, "nodes/*/undrain", admin_nodes_undrain},
    {REST_EXECUTE, "nodes/*/pause", admin_nodes_pause},
    {REST_EXECUTE, "nodes/*/resume", admin_nodes_resume},
    {REST_EXECUTE, "regions/*/pause", admin_regions_pause},
    {REST_EXECUTE, "regions/*/resume", admin_regions_resume},
    {REST_READ, "rebalance", admin_rebalance_show},
    {REST_EXECUTE, "rebalance", admin_rebalance_begin},
    {REST_DELETE, "rebalance", admin_rebalance_cancel},
};

static struct slice segment_next(struct slice *rest)
{
    struct slice segment = *rest, tail = SLICE_NONE;

    (void)slice_split(*rest, '/', &segment, &tail);
    *rest = tail;
    return segment;
}

static bool path_matches(const char *pattern, struct slice path, struct slice *ret_names)
{
    struct slice wanted = slice_of_text(pattern);
    size_t count = 0;

    while (wanted.data && path.data) {
        struct slice want = segment_next(&wanted), got = segment_next(&path);

        if (slice_equal(want, SLICE("*")) && got.len && count < ADMIN_NAMES_MAX)
            ret_names[count++] = got;
        else if (!slice_equal(want, got))
            return false;
    }
    return !wanted.data && !path.data;
}

bool admin_run(struct rest_call *call, struct error *err)
{
    struct admin_request request = {.call = call};
    bool known = false;

    if (!call->account) /* it is made by use, and nobody has used it */
        return error_set(err, ERROR_NOT_FOUND, "account \"%.*s\" does not exist yet",
                         (int)MIN(call->account_id.len, (size_t)64),
                         (const char *)call->account_id.data);
    for (size_t i = 0; i < ARRAY_LEN(resources); i++) {
        if (!path_matches(resources[i].path, call->route.id, request.names))
            continue;
        known = true;
        if (resources[i].verb != call->verb)
            continue;
        if (!resources[i].run(&request, err))
            return false;
        return !buf_overflowed(&call->body) ||
               error_set(err, ERROR_TOO_LARGE, "the answer would be larger than %zu bytes",
                         call->body.max);
    }
    if (known)
        return error_set(
            err, ERROR_METHOD_NOT_ALLOWED, "\"/_orrery/%.*s\" does not take this method",
            (int)MIN(call->route.id.len, (size_t)100), (const char *)call->route.id.data);
    return error_set(err, ERROR_NOT_FOUND, "there is nothing at \"/_orrery/%.*s\"",
                     (int)MIN(call->route.id.len, (size_t)100), (const char *)call->route.id.data);
}

/* --- What all of them need ------------------------------------------------------------------- */

bool admin_is_owner(const struct rest_call *call)
{
    return slice_equal(call->account_id, SLICE(CATALOGUE_ACCOUNT_DEFAULT));
}

bool admin_need_owner(const struct rest_call *call, struct error *err)
{
    return admin_is_owner(call) ||
           error_set(err, ERROR_FORBIDDEN,
                     "only the account \"" CATALOGUE_ACCOUNT_DEFAULT
                     "\" administers the server: other accounts see themselves alone");
}

struct slice admin_parameter(const struct rest_call *call, struct slice name)
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

bool admin_number(const struct rest_call *call, struct slice name, uint64_t min, uint64_t max,
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

bool admin_decimal(const struct rest_call *call, struct slice name, double min, double max,
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

void admin_node(struct rest_call *call, uint32_t node)
{
    const struct front_hooks *hooks = &call->options->admin;
    const char *name = hooks->node_name ? hooks->node_name(hooks->context, node) : NULL;

    if (name)
        admin_text(&call->body, "node", slice_of_text(name));
    else
        admin_number_append(&call->body, "node", node);
}

bool admin_container_open(struct admin_request *request, struct container **ret_container,
                          struct error *err)
{
    struct rest_call *call = request->call;
    struct slice account = admin_parameter(call, SLICE("account"));

    if (!account.data)
        account = call->account_id;
    if (!slice_equal(account, call->account_id) && !admin_need_owner(call, err))
        return false;
    return catalogue_container_open(call->services->catalogue, account, request->names[0],
                                    request->names[1], ret_container, err);
}

/* --- The server ------------------------------------------------------------------------------ */

static bool settings_show(struct admin_request *request, struct error *err)
{
    const struct front_hooks *hooks = &request->call->options->admin;

    if (!admin_need_owner(request->call, err))
        return false;
    if (!hooks->settings)
        return error_set(err, ERROR_NOT_SUPPORTED, "this server does not show its settings");
    BUF_APPEND(&request->call->body, "{");
    hooks->settings(hooks->context, &request->call->body);
    BUF_APPEND(&request->call->body, "}");
    request->call->status = 200;
    return true;
}
