/* $inc, $mul and $bit: of two numbers the result has the wider type, decimal being the widest, and
 * an int that overflows becomes a long. */
#include "document/decimal_math.h"
#include "front/mongo/text.h"
#include "front/mongo/update/update_private.h"

static const char *operator_name(const struct update_modifier *modifier)
{
    return modifier->op == UPDATE_MUL ? "$mul" : "$inc";
}

static struct document_value zero_of(enum document_type type)
{
    switch (type) {
    case DOCUMENT_INT32:
        return document_int32(0);
    case DOCUMENT_INT64:
        return document_int64(0);
    case DOCUMENT_DECIMAL128:
        return document_decimal_value(decimal_from_int64(0));
    default:
        return document_double(0);
    }
}

static bool is_whole(const struct document_value *value)
{
    return value->type == DOCUMENT_INT32 || value->type == DOCUMENT_INT64;
}

static bool overflowed(struct update_run *run, const struct update_modifier *modifier,
                       const struct document_value *before)
{
    int64_t number = 0;

    (void)document_to_int64(before, &number);
    return mongo_error_set(run->err, MONGO_BAD_VALUE,
                           "Failed to apply %s operations to current value ((%s)%lld) for document "
                           "%.*s",
                           operator_name(modifier),
                           before->type == DOCUMENT_INT32 ? "NumberInt" : "NumberLong",
                           (long long)number, SLICE_ARG(run->id_text));
}

static bool whole_compute(struct update_run *run, const struct update_modifier *modifier,
                          const struct document_value *before, struct document_value *ret_after)
{
    bool long_type = before->type == DOCUMENT_INT64 || modifier->value.type == DOCUMENT_INT64;
    int64_t a = 0, b = 0, result;

    (void)document_to_int64(before, &a);
    (void)document_to_int64(&modifier->value, &b);
    if (modifier->op == UPDATE_MUL ? __builtin_mul_overflow(a, b, &result)
                                   : __builtin_add_overflow(a, b, &result))
        return overflowed(run, modifier, before);
    *ret_after = long_type || result < INT32_MIN || result > INT32_MAX
                     ? document_int64(result)
                     : document_int32((int32_t)result);
    return true;
}

static struct document_value decimal_compute(const struct update_modifier *modifier,
                                             const struct document_value *before)
{
    struct document_decimal a = decimal_from_number(before);
    struct document_decimal b = decimal_from_number(&modifier->value);

    return document_decimal_value(modifier->op == UPDATE_MUL ? decimal_multiply(a, b)
                                                             : decimal_add(a, b));
}

bool update_number_compute(struct update_run *run, const struct update_modifier *modifier,
                           const struct document_value *before, struct document_value *ret_after)
{
    double a, b;

    if (!before) {
        *ret_after = modifier->op == UPDATE_MUL ? zero_of(modifier->value.type) : modifier->value;
        return true;
    }
    if (!document_is_number(before))
        return mongo_error_set(run->err, MONGO_TYPE_MISMATCH,
                               "Cannot apply %s to a value of non-numeric type. %.*s has the field "
                               "'%.*s' of non-numeric type %s",
                               operator_name(modifier), SLICE_ARG(run->id_text),
                               SLICE_ARG(update_path_last(&modifier->path)),
                               mongo_type_name(before->type));
    if (before->type == DOCUMENT_DECIMAL128 || modifier->value.type == DOCUMENT_DECIMAL128) {
        *ret_after = decimal_compute(modifier, before);
        return true;
    }
    if (is_whole(before) && is_whole(&modifier->value))
        return whole_compute(run, modifier, before, ret_after);
    (void)document_to_double(before, &a);
    (void)document_to_double(&modifier->value, &b);
    *ret_after = document_double(modifier->op == UPDATE_MUL ? a * b : a + b);
    return true;
}

/* --- Bits ------------------------------------------------------------------------------------- */

static int64_t bits_of(struct slice name, int64_t a, int64_t b)
{
    if (slice_equal(name, SLICE("and")))
        return a & b;
    return slice_equal(name, SLICE("or")) ? a | b : a ^ b;
}

bool update_bits_compute(struct update_run *run, const struct update_modifier *modifier,
                         const struct document_value *before, struct document_value *ret_after)
{
    struct document_value result = before ? *before : document_int32(0);
    struct document_iter iter;
    int64_t a, b;

    if (!is_whole(&result))
        return mongo_error_set(run->err, MONGO_BAD_VALUE,
                               "Cannot apply $bit to a value of non-integral type.%.*s has the "
                               "field %.*s of non-integer type %s",
                               SLICE_ARG(run->id_text),
                               SLICE_ARG(update_path_last(&modifier->path)),
                               mongo_type_name(result.type));
    document_iter_init(&iter, modifier->value.document);
    while (document_iter_next(&iter)) {
        bool long_type = result.type == DOCUMENT_INT64 || iter.value.type == DOCUMENT_INT64;

        (void)document_to_int64(&result, &a);
        (void)document_to_int64(&iter.value, &b);
        a = bits_of(iter.key, a, b);
        result = long_type ? document_int64(a) : document_int32((int32_t)a);
    }
    *ret_after = result;
    return true;
}
