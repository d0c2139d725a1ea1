/* The functions of partition/synthetic.h behind a C interface that has none of our types. */
#include "orrery/key.h"

#include "base/memory.h"
#include "base/random.h"
#include "document/json.h"
#include "partition/strategy.h"
#include "partition/synthetic.h"

#include <string.h>

enum { TEXT_MAX = 16 * 1024 * 1024, PARTITIONS_MAX = 65536 };

struct orrery_key {
    struct arena *arena; /* owns this structure */
    struct partition_definition definition;
};

static int refused(struct orrery_key_error *error, const struct error *err)
{
    size_t len = strlen(err->message);

    if (error) {
        len = MIN(len, sizeof error->message - 1);
        memcpy(error->message, err->message, len);
        error->message[len] = 0;
    }
    return ORRERY_KEY_REFUSED;
}

static int text_out(const struct buf *text, char *out, size_t size, size_t *ret_length)
{
    if (ret_length)
        *ret_length = text->len;
    if (size < text->len + 1)
        return ORRERY_KEY_SMALL;
    memcpy(out, text->data, text->len);
    out[text->len] = 0;
    return ORRERY_KEY_OK;
}

static bool object_read(const char *text, size_t length, struct arena *arena,
                        struct slice *ret_document, struct error *err)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, TEXT_MAX);
    if (!document_json_read(slice_of(text, length), NULL, &buf, err))
        return false;
    *ret_document = arena_copy(arena, buf_slice(&buf));
    return true;
}

/* --- Definitions ----------------------------------------------------------------------------- */

static bool definition_read(struct slice container, struct arena *arena,
                            struct partition_definition *definition, struct error *err)
{
    struct document_value key, orrery, value;

    if (!document_find(container, SLICE("partitionKey"), &key) || key.type != DOCUMENT_OBJECT)
        return error_set(err, ERROR_BAD_REQUEST, "the container has no object \"partitionKey\"");
    if (!partition_definition_read(key.document, arena, definition, err))
        return false;
    if (!document_find(container, SLICE("orrery"), &orrery) || orrery.type != DOCUMENT_OBJECT)
        return true;
    /* Only hashing is the same everywhere; other strategies need the container's own state. */
    if (document_find(orrery.document, SLICE("strategy"), &value) &&
        !(value.type == DOCUMENT_STRING && slice_equal(value.text, SLICE("hash"))))
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "a container that is not placed by hashing is not understood here: ask "
                         "the server");
    if (!document_find(orrery.document, SLICE("synthetic"), &value))
        return true;
    if (value.type != DOCUMENT_OBJECT)
        return error_set(err, ERROR_BAD_REQUEST, "orrery.synthetic must be an object");
    return partition_synthetic_read(value.document, definition, true, arena, &definition->synthetic,
                                    err);
}

int orrery_key_open(const char *container, size_t length, struct orrery_key **ret_key,
                    struct orrery_key_error *error)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct orrery_key *key = ARENA_NEW(arena, struct orrery_key);
    struct slice document;
    struct error err;

    if (!object_read(container, length, arena, &document, &err) ||
        !definition_read(document, arena, &key->definition, &err))
        return refused(error, &err);
    key->arena = TAKE(arena);
    *ret_key = key;
    return ORRERY_KEY_OK;
}

void orrery_key_close(struct orrery_key *key)
{
    if (key)
        arena_free(key->arena);
}

unsigned orrery_key_suffixes(const struct orrery_key *key)
{
    return key->definition.synthetic ? key->definition.synthetic->suffixes : 0;
}

/* --- Keys ------------------------------------------------------------------------------------ */

/* Closes a key: with the suffix given, or drawn. */
static bool key_close(const struct partition_definition *definition, unsigned suffix,
                      struct arena *arena, struct partition_key *key, struct error *err)
{
    const struct partition_synthetic *synthetic = definition->synthetic;
    struct document_value *made;
    uint64_t drawn;

    if (!key->open)
        return true;
    made = &key->components[synthetic->target];
    if (made->type != DOCUMENT_STRING || !synthetic->suffixes)
        return error_set(err, ERROR_BAD_REQUEST, "the values do not give the whole key");
    if (suffix > synthetic->suffixes)
        return error_set(err, ERROR_BAD_REQUEST, "there are %u suffixes, not %u",
                         synthetic->suffixes, suffix);
    random_secret(&drawn, sizeof drawn);
    key->open = false;
    return partition_synthetic_suffixed(
        synthetic, made, suffix ? suffix : (uint32_t)(drawn % synthetic->suffixes) + 1, arena, made,
        err);
}

static int key_out(const struct orrery_key *key, const struct partition_key *found, char *out,
                   size_t size, size_t *ret_length)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, TEXT_MAX);
    partition_key_json(&key->definition, found, &text);
    return text_out(&text, out, size, ret_length);
}

int orrery_key_compute(const struct orrery_key *key, const char *document, size_t length,
                       unsigned suffix, char *out, size_t size, size_t *ret_length,
                       struct orrery_key_error *error)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct partition_key_limits none = {SIZE_MAX};
    struct partition_key found;
    struct slice bson;
    struct error err;

    if (!object_read(document, length, arena, &bson, &err) ||
        !partition_key_derive(&key->definition, bson, NULL, arena, &found, &err) ||
        !partition_key_check(&key->definition, &found, &none, &err) ||
        !key_close(&key->definition, suffix, arena, &found, &err))
        return refused(error, &err);
    return key_out(key, &found, out, size, ret_length);
}

int orrery_key_of_sources(const struct orrery_key *key, const char *values, size_t length,
                          char *out, size_t size, size_t *ret_length,
                          struct orrery_key_error *error)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_key found;
    struct error err;

    if (!partition_key_parse(&key->definition, slice_of(values, length), PARTITION_KEY_WHOLE, arena,
                             &found, &err))
        return refused(error, &err);
    if (found.open) {
        (void)error_set(&err, ERROR_BAD_REQUEST, "the values do not give the whole key");
        return refused(error, &err);
    }
    return key_out(key, &found, out, size, ret_length);
}

int orrery_key_of_base(const struct orrery_key *key, const char *base, size_t length,
                       unsigned suffix, char *out, size_t size, size_t *ret_length,
                       struct orrery_key_error *error)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_key found;
    struct error err;

    if (!partition_key_parse(&key->definition, slice_of(base, length), PARTITION_KEY_WHOLE, arena,
                             &found, &err))
        return refused(error, &err);
    if (!found.open || suffix == 0) {
        (void)error_set(&err, ERROR_BAD_REQUEST,
                        suffix ? "this is a whole key already" : "suffixes begin with 1");
        return refused(error, &err);
    }
    if (!key_close(&key->definition, suffix, arena, &found, &err))
        return refused(error, &err);
    return key_out(key, &found, out, size, ret_length);
}

int orrery_key_explain(const struct orrery_key *key, const char *document, size_t length, char *out,
                       size_t size, size_t *ret_length, struct orrery_key_error *error)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf text;
    struct partition_key found;
    struct slice bson;
    struct error err;

    buf_init(&text, TEXT_MAX);
    BUF_APPEND(&text, "{");
    if (!object_read(document, length, arena, &bson, &err) ||
        !partition_key_explain(&key->definition, bson, arena, &text, &found, &err))
        return refused(error, &err);
    BUF_APPEND(&text, "}");
    return text_out(&text, out, size, ret_length);
}

/* --- Partitions ------------------------------------------------------------------------------ */

int orrery_key_partition(const struct orrery_key *key, const char *partition_key, size_t length,
                         unsigned partitions, unsigned *ret_partition,
                         struct orrery_key_error *error)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf routing;
    struct partition_key found;
    struct slice *points;
    unsigned partition = 0;
    struct error err;

    buf_init(&routing, TEXT_MAX);
    if (partitions < 1 || partitions > PARTITIONS_MAX) {
        (void)error_set(&err, ERROR_BAD_REQUEST, "partitions must be 1 to %d", PARTITIONS_MAX);
        return refused(error, &err);
    }
    if (!partition_key_parse(&key->definition, slice_of(partition_key, length), PARTITION_KEY_WHOLE,
                             arena, &found, &err))
        return refused(error, &err);
    if (found.open) {
        (void)error_set(&err, ERROR_BAD_REQUEST, "the values do not give the whole key");
        return refused(error, &err);
    }
    partition_route(&key->definition, &found, &routing);
    points = ARENA_ARRAY(arena, struct slice, partitions);
    partition_route_split_points(&key->definition, partitions, arena, points);
    while (partition < partitions - 1 && slice_compare(points[partition], buf_slice(&routing)) <= 0)
        partition++;
    *ret_partition = partition;
    return ORRERY_KEY_OK;
}
