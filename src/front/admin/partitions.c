/* Physical partitions of a container: shown, and split, merged, moved, isolated and spread on
 * request. What is asked for begins and goes on by itself: the answer is 202 with the migration. */
#include "front/admin/call.h"

#include "catalogue/container_usage.h"
#include "catalogue/shares.h"
#include "document/bson.h"
#include "document/json.h"
#include "front/admin/migrations.h"

/* --- Shown ----------------------------------------------------------------------------------- */

static bool is_source(const struct migration *migration, uint32_t id)
{
    size_t count;
    const struct migration_source *sources = migration_sources(migration, &count);

    for (size_t i = 0; i < count; i++)
        if (sources[i].id == id)
            return true;
    return false;
}

static void parents_append(struct buf *out, const struct partition_span *span)
{
    BUF_APPEND(out, ",\"parents\":[");
    for (size_t i = 0; i < span->parent_count; i++)
        buf_printf(out, "%s\"%u\"", i ? "," : "", span->parents[i]);
    BUF_APPEND(out, "]");
}

static bool partition_append(struct admin_call *call, const struct container *container,
                             const struct partition_span *span, double rate, struct error *err)
{
    const struct migration *migration = container_migration(container);
    struct container_usage usage;
    struct buf *out = &call->body;

    if (!container_usage_partition(container, span, call->arena, &usage, err))
        return false;
    buf_printf(out, "{\"id\":\"%u\"", span->id);
    admin_hex(out, "minInclusive", span->min);
    admin_hex(out, "maxExclusive", span->max);
    admin_node(call, span->node);
    admin_number_append(out, "bytes", usage.bytes);
    admin_number_append(out, "items", usage.items);
    buf_printf(out, ",\"share\":%.6f",
               rate / (double)MAX(container_offer(container)->ru, (uint64_t)1));
    if (span->cut)
        buf_printf(out, ",\"cut\":\"%s\"", partition_cut_name(span->cut));
    admin_number_append(out, "epoch", span->epoch);
    parents_append(out, span);
    if (migration && migration_state(migration) == MIGRATION_MOVING &&
        is_source(migration, span->id))
        admin_text(out, "underWay", slice_of_text(migration_kind_name(migration_kind(migration))));
    BUF_APPEND(out, "}");
    return true;
}

bool admin_partitions_list(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    const struct partition_span *spans;
    double *rates;
    size_t count;

    if (!admin_container_open(call, &container, err))
        return false;
    spans = partition_map_spans(container_map(container), &count);
    rates = ARENA_ARRAY(call->arena, double, count);
    container_rates(container, container_map(container), rates);
    BUF_APPEND(&call->body, "{");
    admin_text(&call->body, "database", call->names[0]);
    admin_text(&call->body, "container", call->names[1]);
    admin_number_append(&call->body, "version", partition_map_version(container_map(container)));
    BUF_APPEND(&call->body, ",\"partitions\":[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            BUF_APPEND(&call->body, ",");
        if (!partition_append(call, container, &spans[i], rates[i], err))
            return false;
    }
    BUF_APPEND(&call->body, "]");
    if (container_migration(container)) {
        BUF_APPEND(&call->body, ",\"migration\":");
        admin_migration_append(call, container);
    }
    BUF_APPEND(&call->body, "}");
    call->status = 200;
    return true;
}

/* --- What is asked for ----------------------------------------------------------------------- */

/* What is asked for: a member of the body, which may be left out as a whole, and whether it is only
 * tried out. Others than those named are refused: what is misspelt would be ignored else. */
struct asked {
    struct document_value value;
    bool given;                  /* the member */
    struct document_value parts; /* a second one, if parts_given */
    bool parts_given;
    bool dry_run;
};

static bool body_read_with(struct admin_call *call, const char *member, bool needed,
                           const char *parts, struct asked *ret_asked, struct error *err)
{
    struct document_iter iter;
    struct slice body;

    *ret_asked = (struct asked){0};
    if (call->http->body.len == 0 && !needed)
        return true;
    if (!front_http_body(&call->over_http, &body, err))
        return false;
    document_iter_init(&iter, body);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("dryRun")) && iter.value.type == DOCUMENT_BOOL) {
            ret_asked->dry_run = iter.value.boolean;
            continue;
        }
        if (parts && slice_equal(iter.key, slice_of_text(parts))) {
            ret_asked->parts = iter.value;
            ret_asked->parts_given = true;
            continue;
        }
        if (!slice_equal(iter.key, slice_of_text(member)))
            return error_set(
                err, ERROR_BAD_REQUEST,
                "the body has a member \"%.*s\": it takes \"%s\" and, true or false, \"dryRun\"",
                (int)MIN(iter.key.len, (size_t)60), (const char *)iter.key.data, member);
        ret_asked->value = iter.value;
        ret_asked->given = true;
    }
    return ret_asked->given || !needed ||
           error_set(err, ERROR_BAD_REQUEST, "the body has no member \"%s\"", member);
}

static bool body_read(struct admin_call *call, const char *member, bool needed,
                      struct asked *ret_asked, struct error *err)
{
    return body_read_with(call, member, needed, NULL, ret_asked, err);
}

static bool partition_id(struct slice text, uint32_t *ret_id, struct error *err)
{
    uint64_t id;

    if (!slice_to_uint64(text, &id) || id > UINT32_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "\"%.*s\" is not the id of a partition",
                         (int)MIN(text.len, (size_t)60), (const char *)text.data);
    *ret_id = (uint32_t)id;
    return true;
}

/* As ids are shown, "7", or as a number. */
static bool partition_value(const struct document_value *value, uint32_t *ret_id, struct error *err)
{
    int64_t number;

    if (value->type == DOCUMENT_STRING)
        return partition_id(value->text, ret_id, err);
    if (!document_to_int64(value, &number) || number < 0 || number > UINT32_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "a partition is named by its id, as \"7\"");
    *ret_id = (uint32_t)number;
    return true;
}

bool admin_migrator_need(const struct admin_call *call, struct error *err)
{
    return call->services->migrator ||
           error_set(err, ERROR_NOT_SUPPORTED, "this server leaves partitions as they are");
}

static bool begin(struct admin_call *call, struct container **ret_container, struct error *err)
{
    return admin_migrator_need(call, err) && admin_container_open(call, ret_container, err);
}

bool admin_migration_begun(struct admin_call *call, const struct container *container, bool fine,
                           struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;

    if (!fine)
        return admin_migration_refused(err);
    if (!catalogue_container_reopen(call->services->catalogue, container, &now, err))
        return false;
    if (container_migration(now))
        admin_migration_append(call, now);
    else
        BUF_APPEND(&call->body, "{}"); /* it is over already */
    call->status = 202;
    return true;
}

/* --- Done ------------------------------------------------------------------------------------ */

bool admin_partitions_split(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(migration_unref) struct migration *plan = NULL;
    struct asked asked;
    int64_t count = 2;
    uint32_t id = 0;

    if (!begin(call, &container, err) || !partition_id(call->names[2], &id, err) ||
        !body_read(call, "pieces", false, &asked, err))
        return false;
    if (asked.given &&
        (!document_to_int64(&asked.value, &count) || count < 2 || count > MIGRATION_TARGETS_MAX))
        return error_set(err, ERROR_BAD_REQUEST, "pieces must be a whole number from 2 to %d",
                         MIGRATION_TARGETS_MAX);
    if (asked.dry_run)
        return admin_plan_show(
            call, container,
            migrator_split_plan(call->services->migrator, container, id, (size_t)count, &plan, err),
            &plan, err);
    return admin_migration_begun(
        call, container,
        migrator_split(call->services->migrator, container, id, (size_t)count, NULL, err), err);
}

static bool ids_read(const struct document_value *value, uint32_t *ids, size_t *ret_count,
                     struct error *err)
{
    struct document_iter iter;
    size_t count = 0;

    if (value->type != DOCUMENT_ARRAY)
        return error_set(err, ERROR_BAD_REQUEST, "partitions must be an array of ids");
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        if (count == MIGRATION_SOURCES_MAX)
            return error_set(err, ERROR_BAD_REQUEST, "at most %d partitions are merged at once",
                             MIGRATION_SOURCES_MAX);
        if (!partition_value(&iter.value, &ids[count++], err))
            return false;
    }
    *ret_count = count;
    return true;
}

bool admin_partitions_merge(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(migration_unref) struct migration *plan = NULL;
    uint32_t ids[MIGRATION_SOURCES_MAX];
    struct asked asked;
    size_t count = 0;

    if (!begin(call, &container, err) || !body_read(call, "partitions", true, &asked, err) ||
        !ids_read(&asked.value, ids, &count, err))
        return false;
    if (asked.dry_run)
        return admin_plan_show(
            call, container,
            migrator_merge_plan(call->services->migrator, container, ids, count, &plan, err), &plan,
            err);
    return admin_migration_begun(
        call, container, migrator_merge(call->services->migrator, container, ids, count, err), err);
}

static bool node_find(const struct admin_call *call, const struct document_value *value,
                      uint32_t *ret_node, struct error *err)
{
    const struct cluster *cluster = catalogue_cluster(call->services->catalogue);

    if (value->type != DOCUMENT_STRING)
        return error_set(err, ERROR_BAD_REQUEST, "node must be the name of a node");
    for (size_t i = 0; i < cluster_count(cluster); i++) {
        const struct cluster_node *node = cluster_at(cluster, i);

        if (slice_equal(slice_of_text(node->name), value->text)) {
            *ret_node = node->number;
            return true;
        }
    }
    return error_set(err, ERROR_NOT_FOUND, "there is no node \"%.*s\"",
                     (int)MIN(value->text.len, (size_t)60), (const char *)value->text.data);
}

bool admin_partitions_move(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(migration_unref) struct migration *plan = NULL;
    uint32_t id = 0, node = 0;
    struct asked asked;

    if (!admin_need_owner(call, err) || !begin(call, &container, err) ||
        !partition_id(call->names[2], &id, err) || !body_read(call, "node", true, &asked, err) ||
        !node_find(call, &asked.value, &node, err))
        return false;
    if (asked.dry_run)
        return admin_plan_show(
            call, container,
            migrator_move_plan(call->services->migrator, container, id, node, &plan, err), &plan,
            err);
    return admin_migration_begun(
        call, container, migrator_move(call->services->migrator, container, id, node, err), err);
}

/* The key of the body. */
static bool key_read(struct admin_call *call, struct container *container,
                     const struct asked *asked, struct partition_key *ret_key, struct error *err)
{
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    document_json_write_value(&asked->value, &text);
    if (!partition_key_parse(definition, buf_slice(&text), PARTITION_KEY_ANY, call->arena, ret_key,
                             err))
        return false;
    return ret_key->count > 0 || error_set(err, ERROR_BAD_REQUEST, "partitionKey needs a value");
}

/* One that has items, unless the query says otherwise: it may be mistyped. */
static bool used_key_read(struct admin_call *call, struct container *container,
                          const struct asked *asked, struct partition_key *ret_key,
                          struct error *err)
{
    return key_read(call, container, asked, ret_key, err) &&
           admin_key_check(call, container, ret_key, err);
}

bool admin_partitions_isolate(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(migration_unref) struct migration *plan = NULL;
    struct partition_key key;
    struct asked asked;

    if (!begin(call, &container, err) || !body_read(call, "partitionKey", true, &asked, err) ||
        !used_key_read(call, container, &asked, &key, err))
        return false;
    if (asked.dry_run)
        return admin_plan_show(
            call, container,
            migrator_isolate_plan(call->services->migrator, container, &key, &plan, err), &plan,
            err);
    return admin_migration_begun(
        call, container, migrator_isolate(call->services->migrator, container, &key, 0, err), err);
}

/* A key over several partitions, by the ids of its items. */
bool admin_partitions_spread(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(migration_unref) struct migration *plan = NULL;
    struct partition_key key;
    struct asked asked;
    int64_t parts = 2;
    bool fine;

    if (!begin(call, &container, err) ||
        !body_read_with(call, "partitionKey", true, "parts", &asked, err))
        return false;
    if (asked.parts_given && (!document_to_int64(&asked.parts, &parts) || parts < 2 ||
                              parts > MIGRATION_TARGETS_MAX - 2))
        return error_set(err, ERROR_BAD_REQUEST, "parts must be a whole number from 2 to %d",
                         MIGRATION_TARGETS_MAX - 2);
    if (!used_key_read(call, container, &asked, &key, err))
        return false;
    fine = migrator_spread(call->services->migrator, container, &key, (size_t)parts,
                           asked.dry_run ? &plan : NULL, err);
    return asked.dry_run ? admin_plan_show(call, container, fine, &plan, err)
                         : admin_migration_begun(call, container, fine, err);
}

bool admin_partitions_gather(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(migration_unref) struct migration *plan = NULL;
    struct partition_key key;
    struct asked asked;
    bool fine;

    if (!begin(call, &container, err) || !body_read(call, "partitionKey", true, &asked, err) ||
        !key_read(call, container, &asked, &key, err))
        return false;
    fine = migrator_gather(call->services->migrator, container, &key, asked.dry_run ? &plan : NULL,
                           err);
    return asked.dry_run ? admin_plan_show(call, container, fine, &plan, err)
                         : admin_migration_begun(call, container, fine, err);
}

/* All of them, as another container of the database. */
bool admin_partitions_copy(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(migration_unref) struct migration *plan = NULL;
    struct asked asked;

    if (!begin(call, &container, err) || !body_read(call, "to", true, &asked, err))
        return false;
    if (asked.value.type != DOCUMENT_STRING)
        return error_set(err, ERROR_BAD_REQUEST, "to is the id of the container to be made");
    if (asked.dry_run)
        return admin_plan_show(
            call, container,
            migrator_copy_plan(call->services->migrator, container, asked.value.text, &plan, err),
            &plan, err);
    return admin_migration_begun(
        call, container, migrator_copy(call->services->migrator, container, asked.value.text, err),
        err);
}
