/* What belongs to no family. */
#include "front/mongo/expression/expression_private.h"
#include "front/mongo/match/text.h"

#include <math.h>
#include <openssl/evp.h>

enum { TICKS_PER_MS = 10000, MD5_SIZE = 16 };

bool expression_now(const struct query_expression *expression, struct query_context *context,
                    struct document_value *ret_value, struct error *err)
{
    (void)expression;
    (void)err;
    *ret_value = document_date(context->now_ticks / TICKS_PER_MS);
    return true;
}

/* --- Chance ----------------------------------------------------------------------------------- */

static double chance(struct query_context *context)
{
    return ldexp((double)(query_random(context) >> 11), -53);
}

EXPRESSION_COMPUTE(expression_rand)
{
    return expression_give(call, document_double(chance(call->context)));
}

EXPRESSION_PARSE(expression_rand_parse)
{
    bool empty = (value->type == DOCUMENT_OBJECT || value->type == DOCUMENT_ARRAY) &&
                 document_count(value->document) == 0;

    if (!empty)
        return mongo_error_set(compile->err, 3040501, "$rand does not currently accept arguments");
    *ret = expression_node_make(compile, op, NULL, 0);
    return true;
}

EXPRESSION_PARSE(expression_sample_rate_parse)
{
    const struct query_expression *rate = query_constant(compile->build, *value);
    double number;

    if (!document_to_double(value, &number))
        return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                               "argument to $sampleRate must be a numeric type");
    if (!(number >= 0 && number <= 1))
        return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                               "numeric argument to $sampleRate must be in [0, 1]");
    *ret = expression_node_make(compile, op, &rate, 1);
    return true;
}

EXPRESSION_COMPUTE(expression_sample_rate)
{
    double rate = 0;

    (void)document_to_double(&call->arguments[0], &rate);
    return expression_give(call, document_bool(chance(call->context) < rate));
}

/* --- Sizes and times -------------------------------------------------------------------------- */

EXPRESSION_COMPUTE(expression_bson_size)
{
    const struct document_value *value = &call->arguments[0];

    if (expression_is_nullish(value))
        return expression_give_null(call);
    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(call->err, 31393, "$bsonSize requires a document input, found: %s",
                               expression_type_name(value));
    return expression_give(call, document_int32((int32_t)value->document.len));
}

/* $tsSecond and $tsIncrement; number 1: the latter. */
EXPRESSION_COMPUTE(expression_timestamp_part)
{
    const struct document_value *value = &call->arguments[0];

    if (expression_is_nullish(value))
        return expression_give_null(call);
    if (value->type != DOCUMENT_TIMESTAMP)
        return mongo_error_set(call->err, call->node->number ? 5687302 : 5687301,
                               "Argument to %s must be a timestamp, but is %s",
                               call->node->op->name, expression_type_name(value));
    return expression_give(call,
                           document_int64((int64_t)(call->node->number ? (uint32_t)value->timestamp
                                                                       : value->timestamp >> 32)));
}

/* --- Hashes of keys ----------------------------------------------------------------------------
 *
 * The first eight bytes, little-endian, of the MD5 of a seed of four zero bytes and the value:
 *
 *     type     its place in MongoDB's order of types, four bytes
 *     name     with its NUL, of fields and elements within another value
 *     value    of numbers eight bytes, cut to a long; of objects and arrays each field, then four
 *              zero bytes; else the bytes that BSON has */

static uint32_t type_place(enum document_type type)
{
    switch (type) {
    case DOCUMENT_MIN_KEY:
        return UINT32_MAX;
    case DOCUMENT_UNDEFINED:
        return 0;
    case DOCUMENT_NULL:
        return 5;
    case DOCUMENT_STRING:
    case DOCUMENT_SYMBOL:
        return 15;
    case DOCUMENT_OBJECT:
        return 20;
    case DOCUMENT_ARRAY:
        return 25;
    case DOCUMENT_BINARY:
        return 30;
    case DOCUMENT_OBJECT_ID:
        return 35;
    case DOCUMENT_BOOL:
        return 40;
    case DOCUMENT_DATE:
        return 45;
    case DOCUMENT_TIMESTAMP:
        return 47;
    case DOCUMENT_REGEX:
        return 50;
    case DOCUMENT_DB_POINTER:
        return 55;
    case DOCUMENT_CODE:
        return 60;
    case DOCUMENT_CODE_WITH_SCOPE:
        return 65;
    case DOCUMENT_MAX_KEY:
        return 127;
    default:
        return 10;
    }
}

static int64_t cut_long(const struct document_value *value)
{
    double number;
    int64_t whole;

    if (document_to_int64(value, &whole))
        return whole;
    (void)document_to_double(value, &number);
    if (isnan(number))
        return 0;
    return number >= 0x1p63 ? INT64_MAX : number < -0x1p63 ? INT64_MIN : (int64_t)number;
}

static void hashed_append(struct buf *buf, struct slice name, bool named,
                          const struct document_value *value)
{
    struct document_iter iter;
    size_t begin;

    buf_append_le32(buf, type_place(value->type));
    if (named) {
        buf_append_slice(buf, name);
        buf_append_byte(buf, 0);
    }
    if (document_is_number(value)) {
        buf_append_le64(buf, (uint64_t)cut_long(value));
    } else if (value->type == DOCUMENT_OBJECT || value->type == DOCUMENT_ARRAY) {
        document_iter_init(&iter, value->document);
        while (document_iter_next(&iter))
            hashed_append(buf, iter.key, true, &iter.value);
        buf_append_le32(buf, 0);
    } else {
        /* an element without a name is its type, a NUL, and the bytes that count */
        begin = buf->len;
        document_append(buf, SLICE(""), value);
        if (!buf_overflowed(buf)) {
            memmove(buf->data + begin, buf->data + begin + 2, buf->len - begin - 2);
            buf->len -= 2;
        }
    }
}

EXPRESSION_COMPUTE(expression_hashed_key)
{
    struct document_value value = call->arguments[0];
    size_t mark = query_build_begin(call->context);
    uint8_t digest[MD5_SIZE];
    struct slice bytes;
    uint64_t hash = 0;

    if (value.type == DOCUMENT_UNDEFINED)
        value = document_null();
    buf_append_le32(&call->context->scratch, 0);
    hashed_append(&call->context->scratch, SLICE_NONE, false, &value);
    if (!query_build_end(call->context, mark, &bytes, call->err) ||
        !query_work(call->context, bytes.len >> 3, call->err))
        return false;
    if (!EVP_Digest(bytes.data, bytes.len, digest, NULL, EVP_md5(), NULL))
        return mongo_error_set(call->err, MONGO_INTERNAL_ERROR, "MD5 is not available");
    for (int i = 8; i-- > 0;)
        hash = hash << 8 | digest[i];
    return expression_give(call, document_int64((int64_t)hash));
}

/* --- What is not offered ---------------------------------------------------------------------- */

EXPRESSION_PARSE(expression_meta_parse)
{
    static const char *const known[] = {"textScore",
                                        "randVal",
                                        "searchScore",
                                        "recordId",
                                        "indexKey",
                                        "geoNearDistance",
                                        "geoNearPoint",
                                        "sortKey",
                                        "searchHighlights",
                                        "searchScoreDetails",
                                        "timeseriesBucketMinTime",
                                        "timeseriesBucketMaxTime"};

    (void)op;
    if (value->type != DOCUMENT_STRING)
        return mongo_error_set(compile->err, 17307, "$meta only supports string arguments");
    if (slice_equal(value->text, SLICE("textScore")) && compile->build->searched) {
        *ret = mongo_text_score_expression(compile->build->searched,
                                           compile->options ? compile->options->slot : 0,
                                           compile->build);
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (slice_equal(value->text, slice_of_text(known[i])))
            return mongo_error_set(compile->err, 40218,
                                   "query requires %s metadata, but it is not available", known[i]);
    return mongo_error_set(compile->err, 17308, "Unsupported argument to $meta: %.*s",
                           SLICE_ARG(value->text));
}
