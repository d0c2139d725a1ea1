/* The common cases, two small integers, doubles or texts, are decided here; the rest goes to
 * document_compare. Objects hash as the sum over their properties, so that order does not count. */
#include "query/value/compare.h"

#include <math.h>
#include <xxhash.h>

uint32_t query_class_of(const struct document_value *value)
{
    switch (value->type) {
    case DOCUMENT_UNDEFINED:
        return QUERY_CLASS_UNDEFINED;
    case DOCUMENT_NULL:
        return QUERY_CLASS_NULL;
    case DOCUMENT_BOOL:
        return QUERY_CLASS_BOOL;
    case DOCUMENT_INT32:
    case DOCUMENT_INT64:
    case DOCUMENT_DOUBLE:
    case DOCUMENT_DECIMAL128:
        return QUERY_CLASS_NUMBER;
    case DOCUMENT_STRING:
    case DOCUMENT_SYMBOL:
        return QUERY_CLASS_STRING;
    case DOCUMENT_ARRAY:
        return QUERY_CLASS_ARRAY;
    case DOCUMENT_OBJECT:
        return QUERY_CLASS_OBJECT;
    case DOCUMENT_MIN_KEY: /* 0xFF would not fit a mask of classes */
        return QUERY_CLASS_OTHER + 1;
    case DOCUMENT_MAX_KEY:
        return QUERY_CLASS_OTHER;
    default:
        return QUERY_CLASS_OTHER + (uint32_t)value->type;
    }
}

/* Doubles and int32s, which are doubles too, except NaN, whose place is the total order's to say.
 */
static inline bool plain_double(const struct document_value *value, double *ret_number)
{
    if (value->type == DOCUMENT_INT32)
        *ret_number = value->int32;
    else if (value->type == DOCUMENT_DOUBLE)
        *ret_number = value->number;
    else
        return false;
    return !isnan(*ret_number);
}

enum query_truth query_values_equal(enum document_order order, const struct document_value *a,
                                    const struct document_value *b)
{
    double x, y;

    if (a->type == b->type) {
        switch (a->type) {
        case DOCUMENT_INT32:
            return a->int32 == b->int32 ? QUERY_TRUE : QUERY_FALSE;
        case DOCUMENT_INT64:
            return a->int64 == b->int64 ? QUERY_TRUE : QUERY_FALSE;
        case DOCUMENT_STRING:
            return slice_equal(a->text, b->text) ? QUERY_TRUE : QUERY_FALSE;
        case DOCUMENT_BOOL:
            return a->boolean == b->boolean ? QUERY_TRUE : QUERY_FALSE;
        case DOCUMENT_UNDEFINED:
            return QUERY_UNKNOWN;
        default:
            break;
        }
    } else if (plain_double(a, &x) && plain_double(b, &y)) {
        return x == y ? QUERY_TRUE : QUERY_FALSE;
    } else if (query_class_of(a) != query_class_of(b)) {
        return QUERY_UNKNOWN;
    }
    return query_values_same(order, a, b) ? QUERY_TRUE : QUERY_FALSE;
}

/* SQL compares scalars of JSON, and dates; MongoDB any two values of one type. */
static bool class_has_order(enum document_order order, uint32_t class)
{
    if (order == DOCUMENT_ORDER_MONGO)
        return class != QUERY_CLASS_UNDEFINED;
    return (class >= QUERY_CLASS_NULL && class <= QUERY_CLASS_STRING) ||
           class == QUERY_CLASS_OTHER + (uint32_t)DOCUMENT_DATE;
}

bool query_values_order(enum document_order order, const struct document_value *a,
                        const struct document_value *b, int *ret_order)
{
    uint32_t class;
    double x, y;

    if (plain_double(a, &x) && plain_double(b, &y)) {
        *ret_order = (x > y) - (x < y);
        return true;
    }
    class = query_class_of(a);
    if (class != query_class_of(b) || !class_has_order(order, class))
        return false;
    *ret_order = document_compare(order, a, b);
    return true;
}

/* --- Hashes ---------------------------------------------------------------------------------- */

static uint64_t hash_bytes(const void *bytes, size_t len, uint32_t seed)
{
    return XXH3_64bits_withSeed(len ? bytes : "", len, seed);
}

/* Whole numbers that fit by their integer, all others by the nearest double: both are functions of
 * the number alone, whatever its type. */
static uint64_t hash_number(const struct document_value *value)
{
    int64_t integer;
    double number;

    if (document_to_int64(value, &integer))
        return hash_bytes(&integer, sizeof integer, QUERY_CLASS_NUMBER);
    document_to_double(value, &number);
    if (isnan(number))
        return hash_bytes("NaN", 3, QUERY_CLASS_NUMBER);
    return hash_bytes(&number, sizeof number, QUERY_CLASS_NUMBER);
}

static uint64_t hash_array(struct slice array)
{
    struct document_iter iter;
    uint64_t hash = QUERY_CLASS_ARRAY;

    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        uint64_t pair[2] = {hash, query_value_hash(&iter.value)};

        hash = hash_bytes(pair, sizeof pair, QUERY_CLASS_ARRAY);
    }
    return hash;
}

static uint64_t hash_object(struct slice object)
{
    struct document_iter iter;
    uint64_t sum = 0;

    document_iter_init(&iter, object);
    while (document_iter_next(&iter)) {
        uint64_t pair[2] = {hash_bytes(iter.key.data, iter.key.len, QUERY_CLASS_OBJECT),
                            query_value_hash(&iter.value)};

        sum += hash_bytes(pair, sizeof pair, QUERY_CLASS_OBJECT);
    }
    return hash_bytes(&sum, sizeof sum, QUERY_CLASS_OBJECT);
}

uint64_t query_value_hash(const struct document_value *value)
{
    uint32_t class = query_class_of(value);

    switch (class) {
    case QUERY_CLASS_BOOL:
        return hash_bytes(&value->boolean, sizeof value->boolean, class);
    case QUERY_CLASS_NUMBER:
        return hash_number(value);
    case QUERY_CLASS_STRING:
        return hash_bytes(value->text.data, value->text.len, class);
    case QUERY_CLASS_ARRAY:
        return hash_array(value->document);
    case QUERY_CLASS_OBJECT:
        return hash_object(value->document);
    default:
        break;
    }
    switch (value->type) {
    case DOCUMENT_DATE:
    case DOCUMENT_TIMESTAMP:
        return hash_bytes(&value->timestamp, sizeof value->timestamp, class);
    case DOCUMENT_OBJECT_ID:
        return hash_bytes(value->id, DOCUMENT_OBJECT_ID_SIZE, class);
    case DOCUMENT_BINARY:
        return hash_bytes(value->binary.bytes.data, value->binary.bytes.len, class);
    case DOCUMENT_CODE:
        return hash_bytes(value->text.data, value->text.len, class);
    default: /* rare, or one value only: the class tells enough */
        return hash_bytes(&class, sizeof class, 0);
    }
}

bool query_value_shows(const struct document_value *value)
{
    if (value->type == DOCUMENT_UNDEFINED)
        return false;
    return value->type != DOCUMENT_DOUBLE || isfinite(value->number);
}
