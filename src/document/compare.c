/* Comparison, by walking both values side by side. Nothing is decoded that does not decide.
 *
 * Recursion follows documents that were validated, so its depth is bounded. An object under the SQL
 * order needs its properties by name: a few are sorted on the stack, more on the heap. Keeping
 * objects sorted in storage was the alternative, but clients see the order they wrote. */
#include "document/order.h"

#include "base/memory.h"
#include "document/number.h"
#include "document/order_private.h"
#include "document/utf8.h"

static int compare_arrays(enum document_order order, struct slice a, struct slice b);
static int compare_objects_stored(struct slice a, struct slice b);
static int compare_objects_by_name(struct slice a, struct slice b);

/* --- Types ----------------------------------------------------------------------------------- */

static uint8_t rank_sql(enum document_type type)
{
    switch (type) {
    case DOCUMENT_MIN_KEY:
        return 0x04;
    case DOCUMENT_UNDEFINED:
        return 0x08;
    case DOCUMENT_NULL:
        return 0x0C;
    case DOCUMENT_BOOL:
        return 0x10;
    case DOCUMENT_INT32:
    case DOCUMENT_INT64:
    case DOCUMENT_DOUBLE:
    case DOCUMENT_DECIMAL128:
        return 0x14;
    case DOCUMENT_STRING:
    case DOCUMENT_SYMBOL:
        return 0x18;
    case DOCUMENT_ARRAY:
        return 0x1C;
    case DOCUMENT_OBJECT:
        return 0x20;
    case DOCUMENT_BINARY:
        return 0x24;
    case DOCUMENT_OBJECT_ID:
        return 0x28;
    case DOCUMENT_DATE:
        return 0x2C;
    case DOCUMENT_TIMESTAMP:
        return 0x30;
    case DOCUMENT_REGEX:
        return 0x34;
    case DOCUMENT_DB_POINTER:
        return 0x38;
    case DOCUMENT_CODE:
        return 0x3C;
    case DOCUMENT_CODE_WITH_SCOPE:
        return 0x40;
    case DOCUMENT_MAX_KEY:
        return 0xF0;
    }
    assert(!"a value has a type");
    return 0;
}

/* As the SQL order has them, but for arrays after objects, and booleans among the other types. */
static uint8_t rank_mongo(enum document_type type)
{
    switch (type) {
    case DOCUMENT_OBJECT:
        return 0x1C;
    case DOCUMENT_ARRAY:
        return 0x20;
    case DOCUMENT_BOOL:
        return 0x2A;
    default:
        return rank_sql(type);
    }
}

uint8_t order_rank(enum document_order order, enum document_type type)
{
    return order == DOCUMENT_ORDER_SQL ? rank_sql(type) : rank_mongo(type);
}

/* Asked for every value of every key that is read: found by the rank, not searched for. */
bool order_type(enum document_order order, uint8_t rank, enum document_type *ret_type)
{
    static const uint8_t sql[UINT8_MAX + 1] = {
        [0x04] = DOCUMENT_MIN_KEY, [0x08] = DOCUMENT_UNDEFINED,
        [0x0C] = DOCUMENT_NULL,    [0x10] = DOCUMENT_BOOL,
        [0x14] = DOCUMENT_DOUBLE,  [0x18] = DOCUMENT_STRING,
        [0x1C] = DOCUMENT_ARRAY,   [0x20] = DOCUMENT_OBJECT,
        [0x24] = DOCUMENT_BINARY,  [0x28] = DOCUMENT_OBJECT_ID,
        [0x2C] = DOCUMENT_DATE,    [0x30] = DOCUMENT_TIMESTAMP,
        [0x34] = DOCUMENT_REGEX,   [0x38] = DOCUMENT_DB_POINTER,
        [0x3C] = DOCUMENT_CODE,    [0x40] = DOCUMENT_CODE_WITH_SCOPE,
        [0xF0] = DOCUMENT_MAX_KEY,
    };
    uint8_t type = sql[rank];

    if (order == DOCUMENT_ORDER_MONGO) {
        if (rank == 0x1C)
            type = DOCUMENT_OBJECT;
        else if (rank == 0x20)
            type = DOCUMENT_ARRAY;
        else if (rank == 0x2A)
            type = DOCUMENT_BOOL;
        else if (rank == 0x10)
            type = 0;
    }
    *ret_type = type;
    return type != 0;
}

/* --- Text ------------------------------------------------------------------------------------ */

bool order_surrogates(const uint8_t *at, const uint8_t *end, uint8_t six[6])
{
    uint32_t code;

    if (*at < 0xF0 || utf8_length(at, end) != 4)
        return false;
    code = (uint32_t)(at[0] & 7) << 18 | (uint32_t)(at[1] & 0x3F) << 12 |
           (uint32_t)(at[2] & 0x3F) << 6 | (at[3] & 0x3F);
    code -= 0x10000;
    utf8_encode(0xD800 | code >> 10, six);
    utf8_encode(0xDC00 | (code & 0x3FF), six + 3);
    return true;
}

/* Gives the bytes of a text as the SQL order has them, one by one. */
struct text_cursor {
    const uint8_t *at, *end;
    uint8_t six[6];
    uint8_t left; /* of the six */
};

static int text_cursor_next(struct text_cursor *cursor)
{
    if (cursor->left)
        return cursor->six[6 - cursor->left--];
    if (cursor->at == cursor->end)
        return -1;
    if (order_surrogates(cursor->at, cursor->end, cursor->six)) {
        cursor->at += 4;
        cursor->left = 5;
        return cursor->six[0];
    }
    return *cursor->at++;
}

static int compare_text_units(struct slice a, struct slice b)
{
    struct text_cursor left = {a.data, a.data + a.len, {0}, 0};
    struct text_cursor right = {b.data, b.data + b.len, {0}, 0};

    for (;;) {
        int x = text_cursor_next(&left), y = text_cursor_next(&right);

        if (x != y)
            return x > y ? 1 : -1;
        if (x < 0)
            return 0;
    }
}

static bool continues_at(struct slice text, size_t at)
{
    return at < text.len && utf8_continues(text.data[at]);
}

static bool four_bytes_at(struct slice text, size_t at)
{
    return at < text.len && text.data[at] >= 0xF0;
}

/* Bytes decide, unless the character where the texts part is a four-byte one in either. */
static int compare_text_utf16(struct slice a, struct slice b)
{
    size_t shorter = MIN(a.len, b.len), at = 0;

    if (shorter == 0)
        return (a.len > 0) - (b.len > 0);
    while (at < shorter && a.data[at] == b.data[at])
        at++;
    if (at == a.len && at == b.len)
        return 0;
    /* Back to where that character begins: three bytes at most, the same in both. */
    for (int back = 0; back < 3 && at > 0 && (continues_at(a, at) || continues_at(b, at)); back++)
        at--;
    a = slice_skip(a, at);
    b = slice_skip(b, at);
    if (four_bytes_at(a, 0) || four_bytes_at(b, 0))
        return compare_text_units(a, b);
    return slice_compare(a, b);
}

int document_compare_text(enum document_order order, struct slice a, struct slice b)
{
    return order == DOCUMENT_ORDER_SQL ? compare_text_utf16(a, b) : slice_compare(a, b);
}

/* --- Values ---------------------------------------------------------------------------------- */

static int compare_binary(const struct document_value *a, const struct document_value *b)
{
    if (a->binary.bytes.len != b->binary.bytes.len)
        return a->binary.bytes.len > b->binary.bytes.len ? 1 : -1;
    if (a->binary.subtype != b->binary.subtype)
        return a->binary.subtype > b->binary.subtype ? 1 : -1;
    return slice_compare(a->binary.bytes, b->binary.bytes);
}

static int compare_pointers(enum document_order order, const struct document_value *a,
                            const struct document_value *b)
{
    int by_name = document_compare_text(order, a->pointer.collection, b->pointer.collection);

    return by_name ? by_name : memcmp(a->pointer.id, b->pointer.id, DOCUMENT_OBJECT_ID_SIZE);
}

static int compare_regexes(enum document_order order, const struct document_value *a,
                           const struct document_value *b)
{
    int by_pattern = document_compare_text(order, a->regex.pattern, b->regex.pattern);

    if (by_pattern)
        return by_pattern;
    return document_compare_text(order, a->regex.options, b->regex.options);
}

static int compare_objects(enum document_order order, struct slice a, struct slice b)
{
    return order == DOCUMENT_ORDER_SQL ? compare_objects_by_name(a, b)
                                       : compare_objects_stored(a, b);
}

static int compare_scoped(enum document_order order, const struct document_value *a,
                          const struct document_value *b)
{
    int by_code = document_compare_text(order, a->scoped.code, b->scoped.code);

    return by_code ? by_code : compare_objects(order, a->scoped.scope, b->scoped.scope);
}

int document_compare(enum document_order order, const struct document_value *a,
                     const struct document_value *b)
{
    uint8_t left = order_rank(order, a->type), right = order_rank(order, b->type);

    if (left != right)
        return left > right ? 1 : -1;
    switch (a->type) {
    case DOCUMENT_INT32:
    case DOCUMENT_INT64:
    case DOCUMENT_DOUBLE:
    case DOCUMENT_DECIMAL128:
        return number_compare(a, b);
    case DOCUMENT_STRING:
    case DOCUMENT_SYMBOL:
    case DOCUMENT_CODE:
        return document_compare_text(order, a->text, b->text);
    case DOCUMENT_BOOL:
        return a->boolean - b->boolean;
    case DOCUMENT_ARRAY:
        return compare_arrays(order, a->document, b->document);
    case DOCUMENT_OBJECT:
        return compare_objects(order, a->document, b->document);
    case DOCUMENT_BINARY:
        return compare_binary(a, b);
    case DOCUMENT_OBJECT_ID:
        return memcmp(a->id, b->id, DOCUMENT_OBJECT_ID_SIZE);
    case DOCUMENT_DATE:
        return (a->int64 > b->int64) - (a->int64 < b->int64);
    case DOCUMENT_TIMESTAMP:
        return (a->timestamp > b->timestamp) - (a->timestamp < b->timestamp);
    case DOCUMENT_REGEX:
        return compare_regexes(order, a, b);
    case DOCUMENT_DB_POINTER:
        return compare_pointers(order, a, b);
    case DOCUMENT_CODE_WITH_SCOPE:
        return compare_scoped(order, a, b);
    case DOCUMENT_UNDEFINED:
    case DOCUMENT_NULL:
    case DOCUMENT_MIN_KEY:
    case DOCUMENT_MAX_KEY:
        break;
    }
    return 0;
}

static int compare_arrays(enum document_order order, struct slice a, struct slice b)
{
    struct document_iter left, right;

    document_iter_init(&left, a);
    document_iter_init(&right, b);
    for (;;) {
        bool more_left = document_iter_next(&left), more_right = document_iter_next(&right);
        int result;

        if (!more_left || !more_right)
            return more_left - more_right;
        result = document_compare(order, &left.value, &right.value);
        if (result)
            return result;
    }
}

/* MongoDB: property by property as stored; of each the type first, then the name, then the value.
 */
static int compare_objects_stored(struct slice a, struct slice b)
{
    struct document_iter left, right;

    document_iter_init(&left, a);
    document_iter_init(&right, b);
    for (;;) {
        bool more_left = document_iter_next(&left), more_right = document_iter_next(&right);
        int result;

        if (!more_left || !more_right)
            return more_left - more_right;
        result = rank_mongo(left.value.type) - rank_mongo(right.value.type);
        if (!result)
            result = slice_compare(left.key, right.key);
        if (!result)
            result = document_compare(DOCUMENT_ORDER_MONGO, &left.value, &right.value);
        if (result)
            return result;
    }
}

/* SQL: property by property by name; the name first, then the value. */
static int compare_objects_by_name(struct slice a, struct slice b)
{
    CLEANUP(order_object_done) struct order_object left, right;

    order_object_init(&left, a);
    order_object_init(&right, b);
    for (size_t i = 0;; i++) {
        int result;

        if (i == left.count || i == right.count)
            return (i < left.count) - (i < right.count);
        result = compare_text_utf16(left.properties[i].key, right.properties[i].key);
        if (!result)
            result = document_compare(DOCUMENT_ORDER_SQL, &left.properties[i].value,
                                      &right.properties[i].value);
        if (result)
            return result;
    }
}

/* --- Objects by name ------------------------------------------------------------------------- */

/* Of equal names the one stored first, which lies before the other. */
static int compare_properties(const void *a, const void *b)
{
    const struct order_property *left = a, *right = b;
    int by_name = compare_text_utf16(left->key, right->key);

    if (by_name)
        return by_name;
    return (left->key.data > right->key.data) - (left->key.data < right->key.data);
}

/* For the few; most objects of one container have their properties in the same order. */
static void insertion_sort(struct order_property *properties, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct order_property moving = properties[i];
        size_t at = i;

        for (; at > 0 && compare_properties(&properties[at - 1], &moving) > 0; at--)
            properties[at] = properties[at - 1];
        properties[at] = moving;
    }
}

void order_object_init(struct order_object *object, struct slice document)
{
    struct document_iter iter;
    size_t count = document_count(document);

    object->count = 0;
    object->properties = object->few;
    if (count > ORDER_PROPERTIES_INLINE)
        object->properties = memory_alloc(memory_array_size(count, sizeof *object->properties));
    document_iter_init(&iter, document);
    while (object->count < count && document_iter_next(&iter))
        object->properties[object->count++] = (struct order_property){iter.key, iter.value};
    if (count > ORDER_PROPERTIES_INLINE)
        qsort(object->properties, object->count, sizeof *object->properties, compare_properties);
    else
        insertion_sort(object->properties, object->count);
}

void order_object_done(struct order_object *object)
{
    if (object->properties != object->few)
        memory_free(object->properties);
}
