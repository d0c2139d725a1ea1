/* A system key is an ordinary path, /_partitionKey, whose value is undefined in every item of an
 * old container. Clients write that key as [], which elsewhere means no key at all. It is told
 * apart here, at the edge: inside there is one component, undefined, so that layouts and strategies
 * know nothing of it. */
#include "partition/key.h"

#include "document/json.h"
#include "document/order.h"
#include "partition/synthetic.h"

enum {
    TEXT_MAX = 64 * 1024, /* three components of the largest size, every byte escaped */
    TEXT_DEPTH_MAX = 8,   /* more than any key has; what is deeper is not looked at */
};

static bool is_nested(const struct document_value *value);
static bool component_of_json(const struct document_value *value, struct document_value *ret,
                              struct error *err);
static bool read_components(const struct document_value *array, size_t max,
                            struct document_value *ret_values, size_t *ret_count,
                            struct error *err);

struct partition_key partition_key_extract(const struct partition_definition *definition,
                                           struct slice item)
{
    struct document_value values[PARTITION_PATHS_MAX];

    for (size_t i = 0; i < definition->path_count; i++) {
        if (!document_path_find(&definition->paths[i], item, &values[i]))
            values[i] = document_undefined();
    }
    return partition_key_of(definition, values, definition->path_count);
}

struct partition_key partition_key_of(const struct partition_definition *definition,
                                      const struct document_value *values, size_t count)
{
    struct partition_key key = {.count = (uint8_t)count, .partial = count < definition->path_count};

    assert(count <= definition->path_count && count <= PARTITION_PATHS_MAX);
    for (size_t i = 0; i < count; i++) {
        bool nested = is_nested(&values[i]);

        /* An object counts as if it was not there, as the service has it. */
        key.components[i] = nested ? document_undefined() : values[i];
        key.nested |= nested && values[i].type != DOCUMENT_OBJECT;
    }
    return key;
}

/* Values whose stored key cannot be read back whole, and which no service takes as a key. */
static bool is_nested(const struct document_value *value)
{
    return value->type == DOCUMENT_OBJECT || value->type == DOCUMENT_ARRAY ||
           value->type == DOCUMENT_CODE_WITH_SCOPE;
}

static size_t component_size(const struct document_value *value)
{
    switch (value->type) {
    case DOCUMENT_STRING:
    case DOCUMENT_SYMBOL:
    case DOCUMENT_CODE:
        return value->text.len;
    case DOCUMENT_BINARY:
        return value->binary.bytes.len;
    case DOCUMENT_REGEX:
        return value->regex.pattern.len + value->regex.options.len;
    case DOCUMENT_DB_POINTER:
        return value->pointer.collection.len + DOCUMENT_OBJECT_ID_SIZE;
    default:
        return 0; /* a few bytes, always */
    }
}

bool partition_key_check(const struct partition_definition *definition,
                         const struct partition_key *key, const struct partition_key_limits *limits,
                         struct error *err)
{
    size_t max = limits->bytes_max, size = 0;

    if (key->nested)
        return error_set(err, ERROR_BAD_REQUEST,
                         "partition key value is an array; it must be a string, a number, a "
                         "boolean, null or missing");
    if (key->partial)
        return error_set(err, ERROR_BAD_REQUEST,
                         "Number of components in partition key value (%u) does not match "
                         "definition (%u)",
                         key->count, definition->path_count);
    for (size_t i = 0; i < key->count; i++)
        size += component_size(&key->components[i]);
    if (size > max)
        return error_set(err, ERROR_BAD_REQUEST,
                         "partition key value of %zu bytes is over the limit of %zu", size, max);
    return true;
}

bool partition_key_parse(const struct partition_definition *definition, struct slice text,
                         enum partition_key_need need, struct arena *arena,
                         struct partition_key *ret_key, struct error *err)
{
    const struct document_limits limits = {.depth_max = TEXT_DEPTH_MAX, .bytes_max = TEXT_MAX};
    CLEANUP(buf_done) struct buf buf;
    struct document_value array, values[PARTITION_COMPONENTS_MAX];
    struct partition_key key = {0};
    size_t count, expected = definition->path_count;
    struct error why;

    buf_init(&buf, TEXT_MAX + 1024);
    if (!document_json_read_value(text, &limits, &buf, &array, &why))
        return error_set(err, ERROR_BAD_REQUEST, "partition key is not JSON: %s", why.message);
    if (array.type != DOCUMENT_ARRAY)
        return error_set(err, ERROR_BAD_REQUEST, "partition key is not a JSON array");
    array.document = arena_copy(arena, array.document);
    if (!read_components(&array, ARRAY_LEN(values), values, &count, err))
        return false;
    if (definition->synthetic)
        return partition_synthetic_take(definition, values, count, need, arena, ret_key, err);
    if (count == 0 && definition->system_key) {
        values[0] = document_undefined();
        count = 1;
    }
    if (count < expected && need == PARTITION_KEY_WHOLE)
        return error_set(err, ERROR_KEY_MISMATCH,
                         "Partition key provided either doesn't correspond to definition in the "
                         "collection or doesn't match partition key field values specified in the "
                         "document. It has %zu of %zu components.",
                         count, expected);
    if (count > expected)
        return error_set(err, ERROR_BAD_REQUEST,
                         "Number of components in partition key value (%zu) does not match "
                         "definition (%zu)",
                         count, expected);
    for (size_t i = 0; i < count; i++)
        key.components[i] = values[i];
    key.count = (uint8_t)count;
    key.partial = count < expected;
    *ret_key = key;
    return true;
}

/* All are counted, so that the message can say how many there were; only as many as a key can have
 * are kept. */
static bool read_components(const struct document_value *array, size_t max,
                            struct document_value *ret_values, size_t *ret_count, struct error *err)
{
    struct document_iter iter;
    size_t count = 0;

    document_iter_init(&iter, array->document);
    for (; document_iter_next(&iter); count++) {
        struct document_value component;

        if (!component_of_json(&iter.value, &component, err))
            return false;
        if (count < max)
            ret_values[count] = component;
    }
    *ret_count = count;
    return true;
}

static bool component_of_json(const struct document_value *value, struct document_value *ret,
                              struct error *err)
{
    if (value->type == DOCUMENT_OBJECT && document_count(value->document) == 0) {
        *ret = document_undefined();
        return true;
    }
    if (is_nested(value))
        return error_set(err, ERROR_BAD_REQUEST,
                         "partition key component is an object or array; it must be a string, a "
                         "number, a boolean, null or {} for undefined");
    *ret = *value;
    return true;
}

bool partition_key_equal(const struct partition_key *a, const struct partition_key *b)
{
    return a->count == b->count && a->partial == b->partial && partition_key_starts_with(a, b);
}

bool partition_key_starts_with(const struct partition_key *key, const struct partition_key *prefix)
{
    if (key->count < prefix->count)
        return false;
    for (size_t i = 0; i < prefix->count; i++) {
        if (document_compare(DOCUMENT_ORDER_SQL, &key->components[i], &prefix->components[i]))
            return false;
    }
    return true;
}

void partition_key_append(const struct partition_key *key, struct buf *buf)
{
    for (size_t i = 0; i < key->count; i++)
        document_key_append(DOCUMENT_ORDER_SQL, &key->components[i], buf);
}

bool partition_key_read(const struct partition_definition *definition, struct slice *bytes,
                        struct arena *arena, struct partition_key *ret_key, struct error *err)
{
    struct partition_key key = {.count = definition->path_count};
    struct slice rest = *bytes;

    for (size_t i = 0; i < key.count; i++) {
        if (!document_key_read(DOCUMENT_ORDER_SQL, &rest, arena, &key.components[i], err))
            return false;
    }
    *bytes = rest;
    *ret_key = key;
    return true;
}

bool partition_key_skip(const struct partition_definition *definition, struct slice *bytes,
                        struct error *err)
{
    struct slice rest = *bytes;

    for (size_t i = 0; i < definition->path_count; i++) {
        if (!document_key_skip(DOCUMENT_ORDER_SQL, &rest, err))
            return false;
    }
    *bytes = rest;
    return true;
}

void partition_key_json(const struct partition_definition *definition,
                        const struct partition_key *key, struct buf *buf)
{
    bool unfilled =
        definition->system_key && key->count == 1 && key->components[0].type == DOCUMENT_UNDEFINED;

    BUF_APPEND(buf, "[");
    for (size_t i = 0; i < key->count && !unfilled; i++) {
        if (i)
            BUF_APPEND(buf, ",");
        if (key->components[i].type == DOCUMENT_UNDEFINED)
            BUF_APPEND(buf, "{}");
        else
            document_json_write_value(&key->components[i], buf);
    }
    BUF_APPEND(buf, "]");
}
