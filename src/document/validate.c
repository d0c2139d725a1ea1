/* The validator: one pass over the bytes, recursing into nested documents. Depth is limited before
 * each step down, so the stack it uses is bounded by DOCUMENT_DEPTH_MAX frames.
 *
 * Where a value is out of shape its position is that of the element; bad UTF-8 is named to the
 * byte. Duplicate names cost a sort of the keys of each object, only when asked for. */
#include "base/bytes.h"
#include "base/memory.h"
#include "document/bson.h"
#include "document/bson_private.h"
#include "document/utf8.h"

struct check {
    const uint8_t *first; /* positions count from here */
    uint32_t depth_max;
    bool refuse_duplicates;
    struct error *err;
};

static bool check_document(const struct check *check, struct slice document, bool array,
                           uint32_t depth);
static bool check_value(const struct check *check, uint8_t type, const uint8_t *at, size_t size,
                        uint32_t depth);
static bool check_text(const struct check *check, struct slice text, const char *what);
static bool check_duplicates(const struct check *check, struct slice document);

bool document_validate(struct slice bytes, const struct document_limits *limits, struct error *err)
{
    size_t bytes_max = limits && limits->bytes_max ? limits->bytes_max : DOCUMENT_BYTES_DEFAULT;
    struct check check = {
        .first = bytes.data,
        .depth_max = limits && limits->depth_max ? limits->depth_max : DOCUMENT_DEPTH_DEFAULT,
        .refuse_duplicates = limits && limits->refuse_duplicates,
        .err = err,
    };

    assert(check.depth_max <= DOCUMENT_DEPTH_MAX);
    if (bytes.len > bytes_max)
        return error_set(err, ERROR_TOO_LARGE, "document of %zu bytes is over the limit of %zu",
                         bytes.len, bytes_max);
    return check_document(&check, bytes, false, 1);
}

static bool check_document(const struct check *check, struct slice document, bool array,
                           uint32_t depth)
{
    const uint8_t *at, *end;
    size_t position = (size_t)(document.data - check->first);

    if (depth > check->depth_max)
        return error_set(check->err, ERROR_TOO_DEEP, "nesting at byte %zu is deeper than %u levels",
                         position, check->depth_max);
    if (document.len < 5 || bytes_get_le32(document.data) != document.len)
        return error_set(check->err, ERROR_BAD_BSON,
                         "length of the document at byte %zu is not that of its bytes", position);
    if (document.data[document.len - 1] != 0)
        return error_set(check->err, ERROR_BAD_BSON,
                         "document at byte %zu does not end in a zero byte", position);
    at = document.data + 4;
    end = document.data + document.len - 1;
    while (at < end) {
        const uint8_t *key = at + 1, *nul = memchr(key, 0, (size_t)(end - key));
        size_t size;

        position = (size_t)(at - check->first);
        if (!nul)
            return error_set(check->err, ERROR_BAD_BSON, "key at byte %zu does not end",
                             position + 1);
        if (!check_text(check, slice_of(key, (size_t)(nul - key)), "key"))
            return false;
        if (!bson_value_size(*at, nul + 1, (size_t)(end - nul - 1), &size))
            return error_set(check->err, ERROR_BAD_BSON,
                             "value of type 0x%02x at byte %zu is malformed or of no known type",
                             *at, position);
        if (!check_value(check, *at, nul + 1, size, depth))
            return false;
        at = nul + 1 + size;
    }
    return array || !check->refuse_duplicates || check_duplicates(check, document);
}

static bool check_value(const struct check *check, uint8_t type, const uint8_t *at, size_t size,
                        uint32_t depth)
{
    struct document_value value;

    bson_value_decode(type, at, size, &value);
    switch (value.type) {
    case DOCUMENT_STRING:
    case DOCUMENT_CODE:
    case DOCUMENT_SYMBOL:
        return check_text(check, value.text, "string");
    case DOCUMENT_OBJECT:
    case DOCUMENT_ARRAY:
        return check_document(check, value.document, type == DOCUMENT_ARRAY, depth + 1);
    case DOCUMENT_BOOL:
        if (at[0] > 1)
            return error_set(check->err, ERROR_BAD_BSON, "boolean at byte %zu is neither 0 nor 1",
                             (size_t)(at - check->first));
        return true;
    case DOCUMENT_REGEX:
        return check_text(check, value.regex.pattern, "pattern") &&
               check_text(check, value.regex.options, "options");
    case DOCUMENT_DB_POINTER:
        return check_text(check, value.pointer.collection, "collection name");
    case DOCUMENT_CODE_WITH_SCOPE:
        return check_text(check, value.scoped.code, "string") &&
               check_document(check, value.scoped.scope, false, depth + 1);
    default:
        return true;
    }
}

static bool check_text(const struct check *check, struct slice text, const char *what)
{
    size_t valid = utf8_valid_length(text);

    if (LIKELY(valid == text.len))
        return true;
    return error_set(check->err, ERROR_BAD_BSON, "%s is not UTF-8 at byte %zu", what,
                     (size_t)(text.data - check->first) + valid);
}

static int compare_keys(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static bool check_duplicates(const struct check *check, struct slice document)
{
    size_t count = document_count(document), i = 0;
    CLEANUP(memory_free) struct slice *keys = NULL;
    struct document_iter iter;

    if (count < 2)
        return true;
    keys = memory_alloc(memory_array_size(count, sizeof *keys));
    document_iter_init(&iter, document);
    while (document_iter_next(&iter))
        keys[i++] = iter.key;
    assert(i == count);
    qsort(keys, count, sizeof *keys, compare_keys);
    for (i = 1; i < count; i++) {
        if (slice_equal(keys[i - 1], keys[i]))
            return error_set(check->err, ERROR_DUPLICATE_PROPERTY, "property \"%.*s\" occurs twice",
                             (int)MIN(keys[i].len, (size_t)100), (const char *)keys[i].data);
    }
    return true;
}
