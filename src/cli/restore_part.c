/* Containers are made from the definition in the backup, and their items are sent in batches. Over
 * an existing one means: beside it under another name, then its name in one commit. */
#include "cli/restore_part.h"

#include "backup/restore.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "catalogue/kept.h"
#include "document/bson.h"
#include "document/json.h"
#include "item/item.h"
#include "partition/layout.h"
#include "partition/strategy.h"

#include <stdarg.h>
#include <time.h>

/* A request is at most net.body_bytes_max long, 4 MiB unless it is set otherwise. */
enum { BATCH_BYTES = 1 << 20, BATCH_ITEMS = 1000, LOGICAL_BYTES = 7 << 19, LOGICAL_ITEMS = 4000 };

/* One container on its way. */
struct moving {
    struct cli_restore_part *part;
    struct backup_archive *archive;
    const struct catalogue_kept_container *of;
    struct slice database, name; /* here, while it is filled */
    struct buf batch;
    size_t batched;
    size_t last_len;  /* of the last document in it */
    struct slice key; /* of one logical partition: the query of its requests; empty: of none */
    struct buf bound; /* the last document of the request before; empty: this is the first */
    uint64_t items, bytes, commits;
};

/* --- The catalogue of the backup ------------------------------------------------------------- */

static bool walk_next(void *context, struct slice *ret_key, struct slice *ret_value,
                      bool *ret_found, struct error *err)
{
    return backup_walk_next(context, ret_key, ret_value, ret_found, err);
}

static bool catalogue_read(struct backup_archive *archive, struct arena *arena,
                           struct catalogue_kept *ret_kept, struct error *err)
{
    const struct backup_manifest *manifest = backup_archive_manifest(archive);
    CLEANUP(backup_walk_free) struct backup_walk *walk = NULL;

    for (size_t i = 0; i < manifest->partition_count; i++)
        if (manifest->partitions[i].id == CATALOGUE_KEPT_PARTITION)
            return backup_walk_new(archive, &manifest->partitions[i], &walk, err) &&
                   catalogue_kept_read(&(struct catalogue_kept_source){walk_next, walk}, arena,
                                       ret_kept, err);
    return error_set(err, ERROR_STORE_CORRUPT, "the backup has no catalogue");
}

static bool is_meant(const struct cli_restore_part *part,
                     const struct catalogue_kept_container *container)
{
    return slice_equal(container->account, slice_of_text(part->account)) &&
           (!part->database || slice_equal(container->database, slice_of_text(part->database))) &&
           (!part->container ||
            slice_equal(container_info(container->container)->id, slice_of_text(part->container)));
}

/* --- Asking ---------------------------------------------------------------------------------- */

static struct slice query_of(const struct cli_restore_part *part, const char *format, ...)
    PRINTF_LIKE(2, 3);
static struct slice query_of(const struct cli_restore_part *part, const char *format, ...)
{
    CLEANUP(buf_done) struct buf text;
    char more[4096];
    va_list args;

    buf_init(&text, 64 * 1024);
    va_start(args, format);
    vsnprintf(more, sizeof more, format, args);
    va_end(args);
    buf_printf(&text, "account=%s%s%s", part->account, more[0] ? "&" : "", more);
    return arena_copy(part->asking.arena, buf_slice(&text));
}

static bool bytes_send(struct cli_restore_part *part, struct slice link, struct slice query,
                       struct slice body, struct cli_answer *ret_answer, struct error *err)
{
    struct cli_request request = {.method = "POST",
                                  .type = SLICE("_orrery"),
                                  .link = link,
                                  .query = query,
                                  .content_type = "application/octet-stream",
                                  .body = body.data ? body : SLICE("")};

    if (!cli_client_send(part->asking.client, &request, part->asking.arena, ret_answer, err))
        return false;
    if (ret_answer->status == 413)
        return error_set(err, ERROR_TOO_LARGE,
                         "a request of %zu bytes, which one item makes so large, is over the "
                         "server's net.body_bytes_max: set that to more while this is restored",
                         body.len);
    return ret_answer->status < 400 || cli_answer_refused(ret_answer, err);
}

static void encoded(struct buf *out, struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        buf_printf(out, "%%%02X", text.data[i]);
}

/* --- Items ----------------------------------------------------------------------------------- */

static bool batch_send(struct moving *m, struct slice query, struct error *err)
{
    struct arena *arena = arena_new(), *before = m->part->asking.arena;
    struct cli_answer answer;
    bool good = true;

    m->part->asking.arena = arena; /* an answer for every batch would add up */
    if (!m->part->dry_run && (m->batched || query.len))
        good = bytes_send(m->part,
                          arena_printf(arena, "containers/%.*s/%.*s/restore",
                                       SLICE_ARG(m->database), SLICE_ARG(m->name)),
                          query.len ? query : query_of(m->part, "%s", ""), buf_slice(&m->batch),
                          &answer, err);
    m->part->asking.arena = before;
    arena_free(arena);
    m->items += m->batched;
    m->batched = 0;
    buf_clear(&m->batch);
    return good;
}

static void frame_append(struct moving *m, struct slice document)
{
    buf_append_be32(&m->batch, (uint32_t)document.len);
    buf_append_slice(&m->batch, document);
}

/* One request of a logical partition, which is one commit: what lies between the last document of
 * the one before and its own last. */
static bool logical_batch_send(struct moving *m, bool more, struct error *err)
{
    struct slice query = arena_printf(m->part->asking.arena, "%.*s%s%s", SLICE_ARG(m->key),
                                      m->bound.len ? "&after=true" : "", more ? "&more=true" : "");

    m->commits++;
    return batch_send(m, query, err);
}

/* Another document of it. Where a request has grown enough it goes, and the next begins behind. */
static bool logical_take(struct moving *m, struct slice document, struct error *err)
{
    if (m->batched && (m->batched >= LOGICAL_ITEMS ||
                       m->batch.len + 4 + document.len + m->last_len > LOGICAL_BYTES)) {
        CLEANUP(buf_done) struct buf last;

        buf_init(&last, BUF_DEFAULT_MAX);
        buf_append_slice(&last, slice_skip(buf_slice(&m->batch), m->batch.len - m->last_len));
        if (!logical_batch_send(m, true, err))
            return false;
        buf_clear(&m->bound);
        buf_append_slice(&m->bound, buf_slice(&last));
        frame_append(m, buf_slice(&m->bound));
    }
    frame_append(m, document);
    m->last_len = document.len;
    m->batched++;
    return true;
}

/* Items whose time is over stay away. */
static bool item_take(struct moving *m, struct slice key, struct slice value, struct error *err)
{
    const struct definition_fields *fields =
        definition_fields(container_definition(m->of->container));
    struct item item;

    if (!item_decode(slice_skip(key, 1), value, &item, err))
        return false;
    if (item_is_over(&item.header, fields->default_ttl, clock_wall_ms()))
        return true;
    m->bytes += item.document.len;
    if (m->key.len)
        return logical_take(m, item.document, err);
    frame_append(m, item.document);
    m->batched++;
    return (m->batched < BATCH_ITEMS && m->batch.len < BATCH_BYTES) ||
           batch_send(m, SLICE_NONE, err);
}

/* Items of one partition that begin with the prefix. */
static bool partition_send(struct moving *m, const struct partition_span *span, struct slice prefix,
                           struct error *err)
{
    const struct backup_manifest_partition *partition =
        backup_manifest_find(backup_archive_manifest(m->archive), span->node, span->id);
    CLEANUP(backup_walk_free) struct backup_walk *walk = NULL;
    struct slice key, value;
    bool found = true;

    if (!partition)
        return error_set(err, ERROR_STORE_CORRUPT, "the backup has no partition %u", span->id);
    if (!backup_walk_new(m->archive, partition, &walk, err))
        return false;
    backup_walk_skip(walk, prefix);
    while (found) {
        if (!backup_walk_next(walk, &key, &value, &found, err))
            return false;
        if (!found || (slice_compare(key, prefix) > 0 && !slice_starts_with(key, prefix)))
            break;
        if (slice_starts_with(key, prefix) && !item_take(m, key, value, err))
            return false;
        cli_progress_tell(m->part->progress, m->bytes, 0);
    }
    return true;
}

static bool items_send(struct moving *m, struct error *err)
{
    size_t count;
    const struct partition_span *spans =
        partition_map_spans(container_map(m->of->container), &count);

    for (size_t i = 0; i < count; i++)
        if (!partition_send(m, &spans[i], SLICE("d"), err))
            return false;
    return batch_send(m, SLICE_NONE, err);
}

/* What the logical partition was then and nothing else, in one commit, or in several if it is
 * large. */
static bool logical_send(struct moving *m, struct error *err)
{
    const struct definition_fields *fields =
        definition_fields(container_definition(m->of->container));
    struct arena *arena = m->part->asking.arena;
    CLEANUP(buf_done) struct buf text, query;
    const struct partition_span *spans;
    struct partition_key key;
    struct slice logical;
    size_t count;

    buf_init(&text, BUF_DEFAULT_MAX);
    buf_init(&query, BUF_DEFAULT_MAX);
    cli_asking_key(&text, m->part->key);
    if (!partition_key_parse(&fields->key, buf_slice(&text), PARTITION_KEY_WHOLE, arena, &key, err))
        return false;
    logical = item_logical(&fields->key, &key, arena);
    buf_append_slice(&query, query_of(m->part, "key="));
    encoded(&query, buf_slice(&text));
    m->key = buf_slice(&query);
    spans = partition_map_overlap(container_map(m->of->container),
                                  partition_route_range(&fields->key, &key, arena), &count);
    for (size_t i = 0; i < count; i++) /* parts of a spread key, in the order of ids */
        if (!partition_send(m, &spans[i], item_family_key(arena, PARTITION_FAMILY_ITEM, logical),
                            err))
            return false;
    return logical_batch_send(m, false, err);
}

/* --- Containers ------------------------------------------------------------------------------ */

static bool container_make(struct moving *m, struct error *err)
{
    CLEANUP(definition_unref) struct definition *definition = NULL;
    const struct offer *offer = &m->of->offer;
    struct cli_answer answer;
    struct slice query;

    if (!definition_renamed(container_definition(m->of->container), m->name, &definition, err))
        return false;
    query = !m->of->has_offer || offer->unstated ? query_of(m->part, "%s", "")
            : offer->kind == OFFER_AUTOSCALE
                ? query_of(m->part, "autoscale=%llu", (unsigned long long)offer->ru)
                : query_of(m->part, "ru=%llu", (unsigned long long)offer->ru);
    return m->part->dry_run ||
           bytes_send(m->part,
                      arena_printf(m->part->asking.arena, "databases/%.*s/containers",
                                   SLICE_ARG(m->database)),
                      query, definition_fields(definition)->document, &answer, err);
}

static bool scripts_send(struct moving *m, const struct catalogue_kept *kept, struct error *err)
{
    static const char *const types[] = {
        [CHILD_PROCEDURE] = "sprocs", [CHILD_TRIGGER] = "triggers", [CHILD_FUNCTION] = "udfs"};
    struct slice id = container_info(m->of->container)->id;

    for (size_t i = 0; i < kept->child_count && !m->part->dry_run; i++) {
        const struct catalogue_kept_child *child = &kept->children[i];
        const struct document_value body = document_object(child->body);
        CLEANUP(buf_done) struct buf json;
        struct cli_answer answer;
        struct cli_request request = {.method = "POST", .feed = true};

        if (child->kind < CHILD_PROCEDURE || !slice_equal(child->account, m->of->account) ||
            !slice_equal(child->database, m->of->database) || !slice_equal(child->container, id))
            continue;
        buf_init(&json, BUF_DEFAULT_MAX);
        document_json_write_value(&body, &json);
        request.type = slice_of_text(types[child->kind]);
        request.link = arena_printf(m->part->asking.arena, "dbs/%.*s/colls/%.*s",
                                    SLICE_ARG(m->database), SLICE_ARG(m->name));
        request.body = buf_slice(&json);
        if (!cli_client_send(m->part->asking.client, &request, m->part->asking.arena, &answer, err))
            return false;
        if (answer.status >= 400)
            return cli_answer_refused(&answer, err);
    }
    return true;
}

static bool container_drop(struct moving *m, struct error *err)
{
    struct cli_answer answer;
    struct cli_request request = {.method = "DELETE",
                                  .type = SLICE("colls"),
                                  .link = arena_printf(m->part->asking.arena, "dbs/%.*s/colls/%.*s",
                                                       SLICE_ARG(m->database), SLICE_ARG(m->name))};

    return cli_client_send(m->part->asking.client, &request, m->part->asking.arena, &answer, err);
}

static bool over_take(struct moving *m, struct slice name, struct error *err)
{
    CLEANUP(buf_done) struct buf query;
    struct cli_answer answer;

    buf_init(&query, BUF_DEFAULT_MAX);
    buf_append_slice(&query, query_of(m->part, "name="));
    encoded(&query, name);
    return m->part->dry_run ||
           bytes_send(m->part,
                      arena_printf(m->part->asking.arena, "containers/%.*s/%.*s/restore/over",
                                   SLICE_ARG(m->database), SLICE_ARG(m->name)),
                      buf_slice(&query), SLICE("{}"), &answer, err);
}

static bool container_restore(struct moving *m, const struct catalogue_kept *kept,
                              struct error *err)
{
    struct cli_restore_part *part = m->part;
    struct slice id = container_info(m->of->container)->id;
    struct slice name = part->as && part->container ? slice_of_text(part->as) : id;
    struct error ignored;
    bool good;

    m->database = part->as && !part->container ? slice_of_text(part->as) : m->of->database;
    m->name = name;
    if (part->key)
        return logical_send(m, err);
    if (part->over)
        m->name = arena_printf(part->asking.arena, "%.*s-restoring-%llx", SLICE_ARG(name),
                               (unsigned long long)clock_wall_ms());
    if (!container_make(m, err))
        return false;
    good = items_send(m, err) && scripts_send(m, kept, err) &&
           (!part->over || over_take(m, name, err));
    if (!good && !part->dry_run) /* half of it is nothing */
        (void)!container_drop(m, &ignored);
    return good;
}

static bool account_make(struct cli_restore_part *part, struct error *err)
{
    struct cli_answer answer;

    if (part->dry_run ||
        cli_client_ask(part->asking.client, "GET",
                       arena_printf(part->asking.arena, "accounts/%s", part->account), SLICE_NONE,
                       SLICE_NONE, part->asking.arena, &answer, err))
        return true;
    if (err->code != ERROR_NOT_FOUND)
        return false;
    return cli_client_ask(part->asking.client, "POST", SLICE("accounts"), SLICE_NONE,
                          arena_printf(part->asking.arena, "{\"id\":\"%s\"}", part->account),
                          part->asking.arena, &answer, err);
}

static bool parts_restore(struct cli_restore_part *part, struct backup_archive *archive,
                          uint64_t *ret_containers, struct moving *total, struct error *err)
{
    CLEANUP(catalogue_kept_done) struct catalogue_kept kept = {0};

    *ret_containers = 0;
    if (!catalogue_read(archive, part->asking.arena, &kept, err) || !account_make(part, err))
        return false;
    for (size_t i = 0; i < kept.container_count; i++) {
        struct moving m = {.part = part, .archive = archive, .of = &kept.containers[i]};
        bool good;

        if (!is_meant(part, &kept.containers[i]))
            continue;
        buf_init(&m.batch, (size_t)LOGICAL_BYTES + (32 << 20));
        buf_init(&m.bound, 32 << 20);
        good = container_restore(&m, &kept, err);
        buf_done(&m.batch);
        buf_done(&m.bound);
        if (!good)
            return error_prefix(err, "container \"%.*s\"",
                                SLICE_ARG(container_info(m.of->container)->id));
        (*ret_containers)++;
        total->items += m.items;
        total->bytes += m.bytes;
        total->commits += m.commits;
    }
    return *ret_containers ||
           error_set(err, ERROR_NOT_FOUND, "the backup has no such account, database or container");
}

int cli_restore_part_run(struct cli_restore_part *part, struct backup_archive *archive)
{
    struct moving total = {0};
    uint64_t containers;
    struct error err;
    bool good;

    if (!cli_client_new(&part->asking.options, &part->asking.client, &err))
        return cli_asking_failed(&err);
    good = parts_restore(part, archive, &containers, &total, &err);
    cli_progress_done(part->progress);
    cli_client_free(part->asking.client);
    if (!good)
        return cli_asking_failed(&err);
    if (part->asking.options.json)
        printf("{\"id\":\"%s\",\"containers\":%llu,\"items\":%llu,\"bytes\":%llu,\"commits\":%llu,"
               "\"dryRun\":%s}\n",
               backup_archive_manifest(archive)->id, (unsigned long long)containers,
               (unsigned long long)total.items, (unsigned long long)total.bytes,
               (unsigned long long)total.commits, part->dry_run ? "true" : "false");
    else
        printf("%llu containers, %llu items, %.1f MB%s\n", (unsigned long long)containers,
               (unsigned long long)total.items, (double)total.bytes / 1e6,
               part->dry_run ? ": nothing was written" : " restored");
    if (total.commits > 1 && !part->asking.options.json)
        printf("the logical partition was too large for one commit: it took %llu, one after the "
               "other\n",
               (unsigned long long)total.commits);
    return CLI_OK;
}

/* --- Back in time ---------------------------------------------------------------------------- */

/* 2026-11-17T10:45:00Z, or milliseconds since 1970. */
static bool time_read(const char *text, int64_t *ret_ms)
{
    struct tm parts = {0};
    uint64_t number;
    const char *rest;

    if (slice_to_uint64(slice_of_text(text), &number) && number < INT64_MAX) {
        *ret_ms = (int64_t)number;
        return true;
    }
    rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    if (!rest || (strcmp(rest, "Z") != 0 && rest[0]))
        return false;
    *ret_ms = (int64_t)timegm(&parts) * 1000;
    return true;
}

int cli_restore_rewind_run(struct cli_restore_part *part)
{
    CLEANUP(buf_done) struct buf body;
    struct cli_answer answer;
    int64_t time_ms;
    struct error err;
    bool good;

    buf_init(&body, BUF_DEFAULT_MAX);
    if (!time_read(part->time, &time_ms))
        return cli_fail(CLI_USAGE,
                        "--time takes 2026-11-17T10:45:00Z or milliseconds since 1970, not \"%s\"",
                        part->time);
    BUF_APPEND(&body, "{\"partitionKey\":");
    cli_asking_key(&body, part->key);
    buf_printf(&body, ",\"timeMs\":%lld,\"dryRun\":%s", (long long)time_ms,
               part->dry_run ? "true" : "false");
    if (part->as) {
        BUF_APPEND(&body, ",\"into\":");
        document_json_write_string(slice_of_text(part->as), &body);
    }
    BUF_APPEND(&body, "}");
    if (!cli_client_new(&part->asking.options, &part->asking.client, &err))
        return cli_asking_failed(&err);
    good = cli_client_ask(part->asking.client, "POST",
                          arena_printf(part->asking.arena, "containers/%s/%s/rewind",
                                       part->database, part->container),
                          query_of(part, "%s", ""), buf_slice(&body), part->asking.arena, &answer,
                          &err);
    cli_client_free(part->asking.client);
    if (!good)
        return cli_asking_failed(&err);
    return cli_asking_done(&part->asking, &answer, "%.0f items written, %.0f removed%s",
                           cli_answer_number(answer.document, "written"),
                           cli_answer_number(answer.document, "removed"),
                           part->dry_run ? ": nothing was done" : "");
}
