/* Moments: all nodes at once, for commands that back a server up or verify it, page by page
 * (backup/moments.h). They show everything, secrets too: only the owner of the default account asks
 * for them. */
#include "front/admin/call.h"

#include "backup/moments.h"
#include "base/bytes.h"
#include "document/json.h"

enum {
    VERIFY_ENTRIES = 20000,   /* looked at for one request */
    FINDINGS_BYTES = 4 << 20, /* told in one answer; what is more is counted */
    FILES_BYTES_MAX = 1 << 20,
};

static void hex_append(struct buf *out, struct slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        buf_printf(out, "%02x", bytes.data[i]);
}

/* --- Taking and letting go ------------------------------------------------------------------- */

static void node_append(struct buf *out, const struct backup_node *node)
{
    BUF_APPEND(out, "{");
    admin_number_append(out, "number", node->number);
    admin_text(out, "name", slice_of_text(node->name));
    BUF_APPEND(out, "}");
}

static void partition_append(struct buf *out, const struct backup_partition *partition)
{
    uint64_t bytes = 0;
    struct error ignored;

    if (!engine_range_size(partition->node->engine, partition->id, (struct engine_range){0}, &bytes,
                           &ignored))
        bytes = 0;
    BUF_APPEND(out, "{");
    admin_number_append(out, "node", partition->node->number);
    admin_number_append(out, "partition", partition->id);
    admin_number_append(out, "epoch", partition->epoch);
    BUF_APPEND(out, ",\"numbering\":\"");
    hex_append(out, partition->numbering);
    BUF_APPEND(out, "\"");
    admin_number_append(out, "bytes", bytes);
    if (partition->container) {
        admin_text(out, "account", partition->container->account);
        admin_text(out, "database", partition->container->database);
        admin_text(out, "container", container_info(partition->container->container)->id);
    }
    BUF_APPEND(out, "}");
}

static void files_append(struct admin_call *call)
{
    CLEANUP(buf_done) struct buf files;

    buf_init(&files, FILES_BYTES_MAX);
    if (call->hooks->files)
        call->hooks->files(call->hooks->context, &files);
    BUF_APPEND(&call->body, ",\"files\":\"");
    hex_append(&call->body, buf_slice(&files));
    BUF_APPEND(&call->body, "\"");
}

static void moment_append(struct admin_call *call, const struct backup_held *held)
{
    const struct backup_moment *moment = held->moment;
    struct buf *out = &call->body;

    BUF_APPEND(out, "{");
    admin_text(out, "id", slice_of_text(held->id));
    admin_number_append(out, "timeMs", (uint64_t)moment->wall_ms);
    admin_text(out, "cluster", moment->cluster_id);
    BUF_APPEND(out, ",\"nodes\":[");
    for (size_t i = 0; i < moment->node_count; i++) {
        if (i)
            BUF_APPEND(out, ",");
        node_append(out, &moment->nodes[i]);
    }
    BUF_APPEND(out, "],\"partitions\":[");
    for (size_t i = 0; i < moment->partition_count; i++) {
        if (i)
            BUF_APPEND(out, ",");
        partition_append(out, &moment->partitions[i]);
    }
    BUF_APPEND(out, "]");
    files_append(call);
    BUF_APPEND(out, "}");
}

/* What a backup would not have is told at once. */
static bool is_whole(const struct backup_moment *moment, struct error *err)
{
    size_t missing = backup_moment_missing(moment, NULL, NULL);

    if (missing || moment->kept.damage_count)
        return error_set(err, ERROR_STORE_CORRUPT,
                         "%zu partitions are missing and %zu records of the catalogue are damaged: "
                         "`orrery verify` names them",
                         missing, moment->kept.damage_count);
    return true;
}

bool admin_moments_begin(struct admin_call *call, struct error *err)
{
    CLEANUP(backup_held_leave) struct backup_held *held = NULL;
    bool damaged = slice_equal(admin_parameter(call, SLICE("damaged")), SLICE("true"));

    if (!admin_need_owner(call, err) || !backup_moments_begin(call->moments, &held, err))
        return false;
    if (!damaged && !is_whole(held->moment, err)) {
        struct error ignored;
        char id[RANDOM_UUID_SIZE];

        memcpy(id, held->id, sizeof id);
        backup_held_leave(TAKE(held));
        (void)!backup_moments_end(call->moments, slice_of_text(id), &ignored);
        return false;
    }
    moment_append(call, held);
    call->status = 201;
    return true;
}

bool admin_moments_list(struct admin_call *call, struct error *err)
{
    if (!admin_need_owner(call, err))
        return false;
    BUF_APPEND(&call->body, "{");
    buf_printf(&call->body, "\"held\":%zu,\"max\":%d}", backup_moments_count(call->moments),
               BACKUP_MOMENTS_MAX);
    call->status = 200;
    return true;
}

bool admin_moments_end(struct admin_call *call, struct error *err)
{
    if (!admin_need_owner(call, err) || !backup_moments_end(call->moments, call->names[0], err))
        return false;
    call->status = 204;
    return true;
}

/* --- Pages ----------------------------------------------------------------------------------- */

static bool partition_of(struct admin_call *call, const struct backup_moment *moment,
                         const struct backup_partition **ret_partition, struct error *err)
{
    uint64_t node, partition;

    if (!slice_to_uint64(call->names[1], &node) || node > UINT32_MAX ||
        !slice_to_uint64(call->names[2], &partition) || partition > UINT32_MAX)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the path is moments/ID/pages/NODE/PARTITION, in numbers");
    *ret_partition = backup_moment_find(moment, (uint32_t)node, (uint32_t)partition);
    return *ret_partition ||
           error_set(err, ERROR_NOT_FOUND, "the moment has no partition %llu on node %llu",
                     (unsigned long long)partition, (unsigned long long)node);
}

/* The body: length of a key, 2 bytes big-endian, the key the page begins behind, and digests. */
bool admin_moments_page(struct admin_call *call, struct error *err)
{
    CLEANUP(backup_held_leave) struct backup_held *held = NULL;
    const struct backup_partition *partition;
    struct slice body = call->http->body, after;
    size_t len = body.len >= 2 ? bytes_get_be16(body.data) : 0;

    if (!admin_need_owner(call, err))
        return false;
    if (body.len < 2 + len || (body.len - 2 - len) % BACKUP_DIGEST_LEN ||
        (body.len - 2 - len) / BACKUP_DIGEST_LEN > BACKUP_KNOWN_MAX)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the body is the length of a key, the key and at most %d digests",
                         BACKUP_KNOWN_MAX);
    after = slice_first(slice_skip(body, 2), len);
    if (!backup_moments_use(call->moments, call->names[0], &held, err) ||
        !partition_of(call, held->moment, &partition, err) ||
        !backup_page(partition, after, slice_skip(body, 2 + len), &call->body, err) ||
        !front_http_grown(&call->over_http, err))
        return false;
    call->status = 200;
    call->is_bytes = true;
    return true;
}

/* --- Verification ---------------------------------------------------------------------------- */

struct findings {
    struct buf *out;
    size_t count;
};

static void finding_append(void *context, const struct verify_finding *finding)
{
    struct findings *findings = context;
    struct buf *out = findings->out;

    if (out->len > FINDINGS_BYTES)
        return;
    if (findings->count++)
        BUF_APPEND(out, ",");
    BUF_APPEND(out, "{");
    admin_text(out, "kind", slice_of_text(verify_kind_name(finding->kind)));
    buf_printf(out, ",\"derived\":%s", finding->is_derived ? "true" : "false");
    admin_text(out, "node", slice_of_text(finding->node));
    admin_number_append(out, "partition", finding->partition);
    if (finding->container) {
        admin_text(out, "account", finding->container->account);
        admin_text(out, "database", finding->container->database);
        admin_text(out, "container", container_info(finding->container->container)->id);
    }
    BUF_APPEND(out, ",\"key\":\"");
    hex_append(out, finding->key);
    BUF_APPEND(out, "\",\"message\":");
    document_json_write_string(finding->message, out);
    BUF_APPEND(out, "}");
}

bool admin_moments_verify_catalogue(struct admin_call *call, struct error *err)
{
    CLEANUP(backup_held_leave) struct backup_held *held = NULL;
    struct findings findings = {&call->body, 0};
    struct verify_sink sink = {finding_append, &findings};
    size_t count;

    if (!admin_need_owner(call, err) ||
        !backup_moments_use(call->moments, call->names[0], &held, err))
        return false;
    BUF_APPEND(&call->body, "{\"findings\":[");
    if (!verify_catalogue(held->moment, &sink, &count, err))
        return false;
    buf_printf(&call->body, "],\"found\":%zu}", count);
    call->status = 200;
    return true;
}

/* One partition after the other: asking for another begins it anew. */
bool admin_moments_verify(struct admin_call *call, struct error *err)
{
    CLEANUP(backup_held_leave) struct backup_held *held = NULL;
    const struct backup_partition *partition;
    bool repair = slice_equal(admin_parameter(call, SLICE("repair")), SLICE("true"));
    struct findings findings = {&call->body, 0};
    struct verify_sink sink = {finding_append, &findings};
    struct verify_figures figures;
    bool finished;

    if (!admin_need_owner(call, err) ||
        !backup_moments_use(call->moments, call->names[0], &held, err) ||
        !partition_of(call, held->moment, &partition, err))
        return false;
    if (!held->verify || verify_partition(held->verify) != partition) {
        verify_free(held->verify);
        held->verify = verify_new(held->moment, partition, repair);
    }
    BUF_APPEND(&call->body, "{\"findings\":[");
    if (!verify_step(held->verify, VERIFY_ENTRIES, &sink, &finished, err))
        return false;
    figures = verify_figures(held->verify);
    BUF_APPEND(&call->body, "]");
    admin_number_append(&call->body, "items", figures.items);
    admin_number_append(&call->body, "entries", figures.entries);
    admin_number_append(&call->body, "bytes", figures.bytes);
    admin_number_append(&call->body, "found", figures.findings);
    admin_number_append(&call->body, "repaired", figures.repaired);
    admin_number_append(&call->body, "resident", figures.resident);
    buf_printf(&call->body, ",\"finished\":%s}", finished ? "true" : "false");
    if (finished)
        verify_free(TAKE(held->verify));
    call->status = 200;
    return front_http_grown(&call->over_http, err);
}
