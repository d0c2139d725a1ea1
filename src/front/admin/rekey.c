/* Another partition key for a container: tried out, begun, looked at, taken back, and the end of
 * its grace period. */
#include "front/admin/call.h"

#include "document/bson.h"
#include "document/json.h"
#include "front/admin/migrations.h"
#include "migration/migrator.h"
#include "migration/mover.h"
#include "partition/synthetic.h"

enum {
    CONFLICTS_SHOWN = 100,
    DRY_RUN_MS = 10 * 1000,
    DRY_RUN_MS_MAX = 300 * 1000,
    LOOK_MS = 500, /* before it begins */
};

/* --- What is asked for ----------------------------------------------------------------------- */

struct asked {
    struct definition_rekey rekey;
    bool dry_run, allows_missing;
};

static bool bool_take(const struct document_value *value, const char *name, bool *ret_bool,
                      struct error *err)
{
    if (value->type != DOCUMENT_BOOL)
        return error_set(err, ERROR_BAD_REQUEST, "%s is true or false", name);
    *ret_bool = value->boolean;
    return true;
}

static bool orrery_take(const struct document_value *value, struct definition_rekey *rekey,
                        struct error *err)
{
    struct document_iter iter;

    if (value->type != DOCUMENT_OBJECT)
        return error_set(err, ERROR_BAD_REQUEST, "orrery must be an object");
    rekey->strategy = value->document;
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("strategy")))
            continue;
        if (!slice_equal(iter.key, SLICE("synthetic")) || iter.value.type != DOCUMENT_OBJECT)
            return error_set(err, ERROR_BAD_REQUEST,
                             "a re-key takes orrery.strategy and orrery.synthetic alone");
        rekey->synthetic = iter.value.document;
    }
    return true;
}

static bool member_take(const struct document_iter *iter, struct asked *asked, struct error *err)
{
    if (slice_equal(iter->key, SLICE("dryRun")))
        return bool_take(&iter->value, "dryRun", &asked->dry_run, err);
    if (slice_equal(iter->key, SLICE("allowMissing")))
        return bool_take(&iter->value, "allowMissing", &asked->allows_missing, err);
    if (slice_equal(iter->key, SLICE("orrery")))
        return orrery_take(&iter->value, &asked->rekey, err);
    if (slice_equal(iter->key, SLICE("partitionKey")) && iter->value.type == DOCUMENT_OBJECT) {
        asked->rekey.partition_key = iter->value.document;
        return true;
    }
    return error_set(err, ERROR_BAD_REQUEST,
                     "the body is {\"partitionKey\":{...},\"orrery\":{...},\"dryRun\":BOOL,"
                     "\"allowMissing\":BOOL}; it has \"%.*s\"",
                     (int)MIN(iter->key.len, (size_t)60), (const char *)iter->key.data);
}

static bool asked_read(struct admin_call *call, struct asked *ret_asked, struct error *err)
{
    struct document_iter iter;
    struct slice body;

    *ret_asked = (struct asked){0};
    if (!front_http_body(&call->over_http, &body, err))
        return false;
    document_iter_init(&iter, body);
    while (document_iter_next(&iter))
        if (!member_take(&iter, ret_asked, err))
            return false;
    if (!ret_asked->rekey.partition_key.data && !ret_asked->rekey.strategy.data)
        return error_set(err, ERROR_BAD_REQUEST, "a re-key needs partitionKey, orrery or both");
    return true;
}

/* --- Trying out ------------------------------------------------------------------------------ */

static void estimate_append(struct buf *out, const struct migrator_estimate *estimate)
{
    buf_printf(out, ",\"complete\":%s", estimate->complete ? "true" : "false");
    admin_number_append(out, "items", estimate->items);
    admin_number_append(out, "bytes", estimate->bytes);
    admin_number_append(out, "itemsTotal", estimate->items_total);
    admin_number_append(out, "bytesTotal", estimate->bytes_total);
    admin_number_append(out, "bytesNeeded", estimate->bytes_needed);
    admin_number_append(out, "partitions", estimate->partitions);
    admin_number_append(out, "sampled", estimate->sampled);
    admin_number_append(out, "durationMs", (uint64_t)MAX(estimate->duration_ms, INT64_C(0)));
    BUF_APPEND(out, ",\"conflicts\":{");
    admin_number_append(out, "invalidKey", estimate->invalid);
    admin_number_append(out, "missingKey", estimate->missing);
    admin_number_append(out, "sameKeyAndId", estimate->same);
    admin_number_append(out, "sameUniqueKey", estimate->unique);
    admin_number_append(out, "logicalPartitionsFull", estimate->logical_full);
    admin_number_append(out, "comparedOneIn", estimate->same_one_in);
    BUF_APPEND(out, "}");
}

static bool dry_run(struct admin_call *call, struct container *container, const struct asked *asked,
                    struct error *err)
{
    CLEANUP(buf_done) struct buf list;
    struct migrator_estimate estimate;
    uint64_t ms;

    buf_init(&list, BUF_DEFAULT_MAX);
    if (!admin_number(call, SLICE("ms"), 1, DRY_RUN_MS_MAX, DRY_RUN_MS, &ms, err))
        return false;
    if (!migrator_rekey_estimate(call->services->migrator, container, &asked->rekey,
                                 asked->allows_missing, (int64_t)ms, &list, &estimate, err))
        return admin_migration_refused(err);
    BUF_APPEND(&call->body, "{\"dryRun\":true");
    estimate_append(&call->body, &estimate);
    BUF_APPEND(&call->body, ",\"list\":[");
    buf_append_slice(&call->body, buf_slice(&list));
    BUF_APPEND(&call->body, "]}");
    call->status = 200;
    return true;
}

/* A path that no item has is mistyped: the copy would wait for a value in every item. Some items
 * without one are conflicts, which clients may mend while it goes on. */
static bool key_check(struct admin_call *call, struct container *container,
                      const struct asked *asked, struct error *err)
{
    CLEANUP(buf_done) struct buf list;
    struct migrator_estimate estimate;

    buf_init(&list, BUF_DEFAULT_MAX);
    if (asked->allows_missing)
        return true;
    if (!migrator_rekey_estimate(call->services->migrator, container, &asked->rekey, false, LOOK_MS,
                                 &list, &estimate, err))
        return admin_migration_refused(err);
    if (estimate.items == 0 || estimate.missing < estimate.items)
        return true;
    return error_set(err, ERROR_BAD_REQUEST,
                     "none of %llu item%s looked at has a value for this key, and nothing was "
                     "changed: for a key that is to come say allowMissing (--allow-missing)",
                     (unsigned long long)estimate.items, PLURAL(estimate.items));
}

bool admin_rekey_begin(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct asked asked;

    if (!admin_migrator_need(call, err) || !admin_container_open(call, &container, err) ||
        !asked_read(call, &asked, err))
        return false;
    if (call->services->view_key_check &&
        !call->services->view_key_check(container, asked.rekey.partition_key,
                                        asked.allows_missing || asked.rekey.synthetic.data, err))
        return false;
    if (asked.dry_run)
        return dry_run(call, container, &asked, err);
    if (!key_check(call, container, &asked, err))
        return false;
    return admin_migration_begun(call, container,
                                 migrator_rekey(call->services->migrator, container, &asked.rekey,
                                                asked.allows_missing, err),
                                 err);
}

/* --- How it goes ----------------------------------------------------------------------------- */

static bool is_rekeyed(const struct container *container)
{
    const struct migration *migration = container_migration(container);

    return migration && migration_kind(migration) == MIGRATION_REKEY;
}

static void paths_append(struct buf *out, const char *name,
                         const struct partition_definition *definition)
{
    buf_printf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < definition->path_count; i++) {
        struct document_value path = document_string(definition->texts[i]);

        if (i)
            BUF_APPEND(out, ",");
        document_json_write_value(&path, out);
    }
    BUF_APPEND(out, "]");
}

static bool conflicts_append(struct admin_call *call, const struct container *container,
                             struct error *err)
{
    struct migrator_progress progress = {0};
    CLEANUP(buf_done) struct buf list;
    size_t count;

    buf_init(&list, BUF_DEFAULT_MAX);
    if (!mover_conflicts_show(catalogue_cluster(call->services->catalogue),
                              container_migration(container), CONFLICTS_SHOWN, &list, &count, err))
        return false;
    if (!migrator_progress(call->services->migrator, container, &progress))
        progress = (struct migrator_progress){0}; /* it has just ended */
    BUF_APPEND(&call->body, ",\"migration\":");
    admin_migration_append(call, container);
    admin_number_append(&call->body, "conflicts", count);
    admin_number_append(&call->body, "logicalPartitionsFull", progress.logical_full);
    BUF_APPEND(&call->body, ",\"list\":[");
    buf_append_slice(&call->body, buf_slice(&list));
    BUF_APPEND(&call->body, "]");
    return true;
}

bool admin_rekey_show(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    const struct partition_definition *key;

    if (!admin_migrator_need(call, err) || !admin_container_open(call, &container, err))
        return false;
    key = &definition_fields(container_definition(container))->key;
    buf_printf(&call->body, "{\"underWay\":%s", is_rekeyed(container) ? "true" : "false");
    paths_append(&call->body, "partitionKey", key);
    if (is_rekeyed(container)) {
        paths_append(&call->body, "next",
                     &definition_fields(migration_definition(container_migration(container)))->key);
        if (!conflicts_append(call, container, err))
            return false;
    }
    if (key->formerly)
        paths_append(&call->body, "formerly", key->formerly);
    BUF_APPEND(&call->body, "}");
    call->status = 200;
    return true;
}

bool admin_rekey_abort(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;

    if (!admin_migrator_need(call, err) || !admin_container_open(call, &container, err))
        return false;
    if (!is_rekeyed(container))
        return error_set(err, ERROR_NOT_FOUND, "container \"%.*s\" is not being re-keyed",
                         SLICE_ARG(container_info(container)->id));
    if (!migrator_cancel(call->services->migrator, container, err))
        return admin_migration_refused(err);
    call->status = 204;
    return true;
}

bool admin_rekey_end_grace(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;

    if (!admin_migrator_need(call, err) || !admin_container_open(call, &container, err))
        return false;
    if (!migrator_grace_end(call->services->migrator, container, err))
        return admin_migration_refused(err);
    call->status = 204;
    return true;
}
