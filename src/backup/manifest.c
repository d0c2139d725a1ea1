#include "backup/manifest.h"

#include "base/random.h"
#include "document/bson.h"
#include "document/json.h"

#include <ctype.h>
#include <time.h>

void backup_hex(struct slice bytes, struct buf *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < bytes.len; i++) {
        buf_append_byte(out, (uint8_t)digits[bytes.data[i] >> 4]);
        buf_append_byte(out, (uint8_t)digits[bytes.data[i] & 15]);
    }
}

static int digit_of(uint8_t c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool backup_hex_read(struct slice text, struct arena *arena, struct slice *ret_bytes)
{
    uint8_t *bytes = arena_alloc(arena, text.len / 2 + 1);

    if (text.len % 2)
        return false;
    for (size_t i = 0; i < text.len; i += 2) {
        int high = digit_of(text.data[i]), low = digit_of(text.data[i + 1]);

        if (high < 0 || low < 0)
            return false;
        bytes[i / 2] = (uint8_t)(high << 4 | low);
    }
    *ret_bytes = slice_of(bytes, text.len / 2);
    return true;
}

void backup_id_make(int64_t time_ms, char ret_id[BACKUP_ID_SIZE])
{
    time_t seconds = (time_t)(time_ms / 1000);
    uint8_t some[2];
    struct tm parts;
    size_t len;

    random_secret(some, sizeof some);
    gmtime_r(&seconds, &parts);
    len = strftime(ret_id, BACKUP_ID_SIZE, "%Y%m%dT%H%M%S", &parts);
    snprintf(ret_id + len, BACKUP_ID_SIZE - len, ".%03dZ-%02x%02x", (int)(time_ms % 1000), some[0],
             some[1]);
}

/* What is no id is never taken for the name of a file. */
bool backup_id_is(const char *text)
{
    size_t len = strlen(text);

    if (len < 16 || len >= BACKUP_ID_SIZE || !isdigit((unsigned char)text[0]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '-' && text[i] != '.')
            return false;
    return true;
}

/* --- Printing -------------------------------------------------------------------------------- */

static void hex_member(struct buf *out, const char *name, struct slice bytes)
{
    buf_printf(out, "\"%s\":\"", name);
    backup_hex(bytes, out);
    BUF_APPEND(out, "\"");
}

static void lists_print(const struct backup_manifest *manifest, struct buf *out)
{
    BUF_APPEND(out, ",\n \"chain\":[");
    for (size_t i = 0; i < manifest->chain_count; i++) {
        buf_printf(out, "%s\n  {\"id\":\"%s\",", i ? "," : "", manifest->chain[i].id);
        hex_member(out, "digest", slice_of(manifest->chain[i].digest, BACKUP_DIGEST_LEN));
        BUF_APPEND(out, "}");
    }
    BUF_APPEND(out, "],\n \"nodes\":[");
    for (size_t i = 0; i < manifest->node_count; i++) {
        buf_printf(out, "%s\n  {\"number\":%u,\"name\":", i ? "," : "", manifest->nodes[i].number);
        document_json_write_string(manifest->nodes[i].name, out);
        BUF_APPEND(out, "}");
    }
    BUF_APPEND(out, "],\n \"partitions\":[");
    for (size_t i = 0; i < manifest->partition_count; i++) {
        const struct backup_manifest_partition *partition = &manifest->partitions[i];

        buf_printf(out, "%s\n  {\"node\":%u,\"partition\":%u,\"epoch\":%llu,", i ? "," : "",
                   partition->node, partition->id, (unsigned long long)partition->epoch);
        hex_member(out, "numbering", partition->numbering);
        buf_printf(out, ",\"chunks\":%llu,\"bytes\":%llu,\"stored\":%llu,",
                   (unsigned long long)partition->chunks, (unsigned long long)partition->bytes,
                   (unsigned long long)partition->stored);
        hex_member(out, "index", slice_of(partition->index, BACKUP_DIGEST_LEN));
        BUF_APPEND(out, "}");
    }
    BUF_APPEND(out, "]}\n");
}

void backup_manifest_print(const struct backup_manifest *manifest, struct buf *out)
{
    buf_printf(out, "{\"format\":%d,\"orrery\":\"%s\",\"id\":\"%s\",\"timeMs\":%lld,\"cluster\":",
               BACKUP_FORMAT, ORRERY_VERSION, manifest->id, (long long)manifest->time_ms);
    document_json_write_string(manifest->cluster, out);
    buf_printf(out, ",\n \"encryption\":{\"kind\":\"%s\",", backup_seal_name(manifest->seal));
    hex_member(out, "salt", slice_of(manifest->salt, sizeof manifest->salt));
    BUF_APPEND(out, "},\n ");
    hex_member(out, "files", slice_of(manifest->files, BACKUP_DIGEST_LEN));
    lists_print(manifest, out);
}

/* --- Reading --------------------------------------------------------------------------------- */

static bool damaged(struct error *err, const char *what)
{
    return error_set(err, ERROR_STORE_CORRUPT, "the manifest of the backup has no good \"%s\"",
                     what);
}

static bool number(struct slice document, const char *name, uint64_t max, uint64_t *ret_number)
{
    struct document_value value;
    int64_t found;

    if (!document_find(document, slice_of_text(name), &value) ||
        !document_to_int64(&value, &found) || found < 0 || (uint64_t)found > max)
        return false;
    *ret_number = (uint64_t)found;
    return true;
}

static bool text_of(struct slice document, const char *name, struct slice *ret_text)
{
    struct document_value value;

    if (!document_find(document, slice_of_text(name), &value) || value.type != DOCUMENT_STRING)
        return false;
    *ret_text = value.text;
    return true;
}

static bool hex_of(struct slice document, const char *name, struct arena *arena, uint8_t *ret_bytes,
                   size_t len)
{
    struct slice text, bytes;

    if (!text_of(document, name, &text) || !backup_hex_read(text, arena, &bytes) ||
        bytes.len != len)
        return false;
    memcpy(ret_bytes, bytes.data, len);
    return true;
}

static bool id_of(struct slice document, char ret_id[BACKUP_ID_SIZE])
{
    struct slice text;

    if (!text_of(document, "id", &text) || text.len >= BACKUP_ID_SIZE)
        return false;
    memcpy(ret_id, text.data, text.len);
    ret_id[text.len] = '\0';
    return backup_id_is(ret_id);
}

static struct slice list_of(struct slice document, const char *name, bool *ret_found)
{
    struct document_value value;

    *ret_found =
        document_find(document, slice_of_text(name), &value) && value.type == DOCUMENT_ARRAY;
    return *ret_found ? value.document : SLICE_NONE;
}

static bool chain_read(struct slice list, struct arena *arena, struct backup_manifest *manifest)
{
    struct document_iter iter;

    document_iter_init(&iter, list);
    while (document_iter_next(&iter)) {
        struct backup_link *link = &manifest->chain[manifest->chain_count];

        if (manifest->chain_count == BACKUP_CHAIN_MAX || iter.value.type != DOCUMENT_OBJECT ||
            !id_of(iter.value.document, link->id) ||
            !hex_of(iter.value.document, "digest", arena, link->digest, sizeof link->digest))
            return false;
        manifest->chain_count++;
    }
    return true;
}

static bool nodes_read(struct slice list, struct arena *arena, struct backup_manifest *manifest)
{
    size_t most = document_count(list);
    struct document_iter iter;

    manifest->nodes = ARENA_ARRAY(arena, struct backup_manifest_node, most);
    document_iter_init(&iter, list);
    while (document_iter_next(&iter)) {
        struct backup_manifest_node *node = &manifest->nodes[manifest->node_count++];
        uint64_t found;

        if (iter.value.type != DOCUMENT_OBJECT ||
            !number(iter.value.document, "number", CLUSTER_NODES_MAX - 1, &found) ||
            !text_of(iter.value.document, "name", &node->name))
            return false;
        node->number = (uint32_t)found;
        node->name = arena_copy(arena, node->name);
    }
    return manifest->node_count > 0;
}

static bool partitions_read(struct slice list, struct arena *arena,
                            struct backup_manifest *manifest)
{
    size_t most = document_count(list);
    struct document_iter iter;

    manifest->partitions = ARENA_ARRAY(arena, struct backup_manifest_partition, most);
    document_iter_init(&iter, list);
    while (document_iter_next(&iter)) {
        struct backup_manifest_partition *partition =
            &manifest->partitions[manifest->partition_count++];
        uint64_t node, id;
        struct slice text, of;

        *partition = (struct backup_manifest_partition){0};
        if (iter.value.type != DOCUMENT_OBJECT)
            return false;
        of = iter.value.document;
        if (!number(of, "node", CLUSTER_NODES_MAX - 1, &node) ||
            !number(of, "partition", UINT32_MAX - 1, &id) || id == 0 ||
            !number(of, "epoch", INT64_MAX, &partition->epoch) || partition->epoch == 0 ||
            !number(of, "chunks", INT64_MAX, &partition->chunks) ||
            !number(of, "bytes", INT64_MAX, &partition->bytes) ||
            !number(of, "stored", INT64_MAX, &partition->stored) ||
            !text_of(of, "numbering", &text) ||
            !backup_hex_read(text, arena, &partition->numbering) ||
            !hex_of(of, "index", arena, partition->index, sizeof partition->index))
            return false;
        partition->node = (uint32_t)node;
        partition->id = (uint32_t)id;
    }
    return true;
}

static bool heads_read(struct slice document, struct arena *arena, struct backup_manifest *manifest,
                       struct error *err)
{
    struct document_value encryption;
    uint64_t format, time_ms;
    struct slice kind;

    if (!number(document, "format", UINT32_MAX, &format))
        return damaged(err, "format");
    if (format > BACKUP_FORMAT)
        return error_set(err, ERROR_STORE_VERSION,
                         "the backup was written by a newer Orrery: format %u", (unsigned)format);
    if (!id_of(document, manifest->id))
        return damaged(err, "id");
    if (!number(document, "timeMs", INT64_MAX, &time_ms))
        return damaged(err, "timeMs");
    manifest->time_ms = (int64_t)time_ms;
    if (!text_of(document, "cluster", &manifest->cluster))
        return damaged(err, "cluster");
    manifest->cluster = arena_copy(arena, manifest->cluster);
    if (!document_find(document, SLICE("encryption"), &encryption) ||
        encryption.type != DOCUMENT_OBJECT || !text_of(encryption.document, "kind", &kind) ||
        !backup_seal_parse(kind, &manifest->seal) ||
        !hex_of(encryption.document, "salt", arena, manifest->salt, sizeof manifest->salt))
        return damaged(err, "encryption");
    return hex_of(document, "files", arena, manifest->files, sizeof manifest->files) ||
           damaged(err, "files");
}

bool backup_manifest_read(struct slice text, struct arena *arena,
                          struct backup_manifest *ret_manifest, struct error *err)
{
    const struct document_limits limits = {.bytes_max = 2 * (size_t)BACKUP_MANIFEST_BYTES_MAX};
    struct backup_manifest *manifest = ARENA_NEW(arena, struct backup_manifest);
    CLEANUP(buf_done) struct buf document;
    struct document_value value;
    struct slice list;
    bool found;

    buf_init(&document, 2 * (size_t)BACKUP_MANIFEST_BYTES_MAX);
    if (!document_json_read_value(text, &limits, &document, &value, err) ||
        value.type != DOCUMENT_OBJECT)
        return error_set(err, ERROR_STORE_CORRUPT, "the manifest of the backup is no JSON object");
    if (!heads_read(value.document, arena, manifest, err))
        return false;
    list = list_of(value.document, "chain", &found);
    if (!found || !chain_read(list, arena, manifest))
        return damaged(err, "chain");
    list = list_of(value.document, "nodes", &found);
    if (!found || !nodes_read(list, arena, manifest))
        return damaged(err, "nodes");
    list = list_of(value.document, "partitions", &found);
    if (!found || !partitions_read(list, arena, manifest))
        return damaged(err, "partitions");
    *ret_manifest = *manifest;
    return true;
}

const struct backup_manifest_partition *backup_manifest_find(const struct backup_manifest *manifest,
                                                             uint32_t node, uint32_t partition)
{
    for (size_t i = 0; i < manifest->partition_count; i++)
        if (manifest->partitions[i].id == partition && manifest->partitions[i].node == node)
            return &manifest->partitions[i];
    return NULL;
}
