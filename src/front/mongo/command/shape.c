#include "front/mongo/command/shape.h"

#include "document/bson.h"

#include <xxhash.h>

enum { FILTER_BYTES_MAX = 1024, DEPTH_MAX = 3, IN_MAX = 16 };

static void hash_add(uint64_t *hash, struct slice name, enum document_type type)
{
    *hash = XXH3_64bits_withSeed(name.data, name.len, *hash * 31 + (uint64_t)type);
}

static bool is_scalar(const struct document_value *value)
{
    switch (value->type) {
    case DOCUMENT_OBJECT:
    case DOCUMENT_ARRAY:
    case DOCUMENT_REGEX:
    case DOCUMENT_CODE:
    case DOCUMENT_CODE_WITH_SCOPE:
        return false;
    default:
        return true;
    }
}

static bool is_name(struct slice name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(name, slice_of_text(names[i])))
            return true;
    return false;
}

static bool are_scalars(struct slice array, uint32_t max)
{
    struct document_iter iter;
    uint32_t count = 0;

    document_iter_init(&iter, array);
    while (document_iter_next(&iter))
        if (!is_scalar(&iter.value) || ++count > max)
            return false;
    return true;
}

/* {$gt: 5, $lt: 7}. An object without operators is a value, and compared as one. */
static bool operators_are_plain(struct slice operators, uint64_t *hash)
{
    static const char *const names[] = {"$eq", "$gt", "$gte", "$lt", "$lte", "$exists"};
    struct document_iter iter;

    document_iter_init(&iter, operators);
    while (document_iter_next(&iter)) {
        hash_add(hash, iter.key, iter.value.type);
        if (slice_equal(iter.key, SLICE("$in")) && iter.value.type == DOCUMENT_ARRAY
                ? !are_scalars(iter.value.document, IN_MAX)
                : !is_name(iter.key, names, ARRAY_LEN(names)) || !is_scalar(&iter.value))
            return false;
    }
    return true;
}

static bool is_plain(struct slice filter, unsigned depth, uint64_t *hash);

static bool all_plain(struct slice array, unsigned depth, uint64_t *hash)
{
    struct document_iter iter;

    document_iter_init(&iter, array);
    while (document_iter_next(&iter))
        if (iter.value.type != DOCUMENT_OBJECT || !is_plain(iter.value.document, depth + 1, hash))
            return false;
    return true;
}

static bool is_plain(struct slice filter, unsigned depth, uint64_t *hash)
{
    static const char *const logic[] = {"$and", "$or"};
    struct document_iter iter;

    if (depth > DEPTH_MAX)
        return false;
    document_iter_init(&iter, filter);
    while (document_iter_next(&iter)) {
        bool plain;

        hash_add(hash, iter.key, iter.value.type);
        if (iter.key.len && iter.key.data[0] == '$')
            plain = is_name(iter.key, logic, ARRAY_LEN(logic)) &&
                    iter.value.type == DOCUMENT_ARRAY &&
                    all_plain(iter.value.document, depth, hash);
        else if (iter.value.type == DOCUMENT_OBJECT)
            plain = operators_are_plain(iter.value.document, hash);
        else
            plain = is_scalar(&iter.value);
        if (!plain)
            return false;
    }
    return true;
}

bool mongo_shape_filter(struct slice filter, uint64_t *hash)
{
    return !filter.data || (filter.len <= FILTER_BYTES_MAX && is_plain(filter, 0, hash));
}

bool mongo_shape_list(struct slice document, uint64_t *hash)
{
    struct document_iter iter;

    if (!document.data)
        return true;
    if (document.len > FILTER_BYTES_MAX)
        return false;
    document_iter_init(&iter, document);
    while (document_iter_next(&iter)) {
        hash_add(hash, iter.key, DOCUMENT_NULL);
        if (memchr(iter.key.data, '$', iter.key.len))
            return false;
        if (iter.value.type != DOCUMENT_INT32 && iter.value.type != DOCUMENT_INT64 &&
            iter.value.type != DOCUMENT_DOUBLE && iter.value.type != DOCUMENT_BOOL)
            return false;
    }
    return true;
}
