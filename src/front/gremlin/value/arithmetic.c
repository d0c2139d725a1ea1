/* Numbers have widths of 8 to 64 bits, or none (128 stands for that), and a point or not; the
 * result has the greater width of the two, and a point if either has one: int and float give float,
 * long and float double, as upstream. */
#include "front/gremlin/value/arithmetic.h"

#include "front/gremlin/value/big_private.h"
#include "front/gremlin/value/compare.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/text.h"

#include <math.h>

enum { WIDTH_BIG = 128, DIVISION_DIGITS_MORE = 10 };

double gremlin_number_double(struct gremlin_value number)
{
    if (gremlin_is_whole(number))
        return (double)number.integer;
    if (number.type == GREMLIN_FLOAT || number.type == GREMLIN_DOUBLE)
        return number.real;
    return gremlin_big_double(number);
}

bool gremlin_number_long(struct gremlin_value number, int64_t *ret_number)
{
    CLEANUP(gremlin_big_done) struct gremlin_big big = {};

    if (gremlin_is_whole(number)) {
        *ret_number = number.integer;
        return true;
    }
    if (number.type == GREMLIN_FLOAT || number.type == GREMLIN_DOUBLE) {
        if (!(number.real >= -0x1p63 && number.real < 0x1p63))
            return false;
        *ret_number = (int64_t)number.real;
        return true;
    }
    if (!gremlin_is_number(number))
        return false;
    gremlin_big_init(&big);
    gremlin_big_set(&big, number);
    return gremlin_big_long(&big, ret_number);
}

/* --- Which type ------------------------------------------------------------------------------- */

static int width_of(enum gremlin_type type)
{
    switch (type) {
    case GREMLIN_BYTE:
        return 8;
    case GREMLIN_SHORT:
        return 16;
    case GREMLIN_INT:
    case GREMLIN_FLOAT:
        return 32;
    case GREMLIN_LONG:
    case GREMLIN_DOUBLE:
        return 64;
    default:
        return WIDTH_BIG;
    }
}

static bool has_point(enum gremlin_type type)
{
    return type == GREMLIN_FLOAT || type == GREMLIN_DOUBLE || type == GREMLIN_BIG_DECIMAL;
}

static enum gremlin_type whole_of_width(int width)
{
    switch (width) {
    case 8:
        return GREMLIN_BYTE;
    case 16:
        return GREMLIN_SHORT;
    case 32:
        return GREMLIN_INT;
    case 64:
        return GREMLIN_LONG;
    default:
        return GREMLIN_BIG_INTEGER;
    }
}

static enum gremlin_type common_type(enum gremlin_type a, enum gremlin_type b)
{
    int width = MAX(width_of(a), width_of(b));

    if (!has_point(a) && !has_point(b))
        return whole_of_width(width);
    if (width == WIDTH_BIG)
        return GREMLIN_BIG_DECIMAL;
    return width == 64 ? GREMLIN_DOUBLE : GREMLIN_FLOAT;
}

static bool is_finite(struct gremlin_value number)
{
    return (number.type != GREMLIN_FLOAT && number.type != GREMLIN_DOUBLE) || isfinite(number.real);
}

static bool fits(int64_t number, enum gremlin_type type)
{
    switch (type) {
    case GREMLIN_BYTE:
        return number == (int8_t)number;
    case GREMLIN_SHORT:
        return number == (int16_t)number;
    case GREMLIN_INT:
        return number == (int32_t)number;
    default:
        return true;
    }
}

/* The least type from `type` on that holds it. */
static struct gremlin_value whole_fitted(int64_t number, enum gremlin_type type)
{
    while (!fits(number, type))
        type++;
    return gremlin_integer(type, number);
}

/* --- Computing -------------------------------------------------------------------------------- */

/* False: the result does not fit 64 bits. b is not 0 when dividing. */
static bool whole_compute(enum gremlin_operation operation, int64_t a, int64_t b,
                          int64_t *ret_number)
{
    switch (operation) {
    case GREMLIN_ADD:
        return !__builtin_add_overflow(a, b, ret_number);
    case GREMLIN_SUBTRACT:
        return !__builtin_sub_overflow(a, b, ret_number);
    case GREMLIN_MULTIPLY:
        return !__builtin_mul_overflow(a, b, ret_number);
    default:
        if (a == INT64_MIN && b == -1)
            return false;
        *ret_number = a / b;
        return true;
    }
}

static double real_compute(enum gremlin_operation operation, double a, double b)
{
    switch (operation) {
    case GREMLIN_ADD:
        return a + b;
    case GREMLIN_SUBTRACT:
        return a - b;
    case GREMLIN_MULTIPLY:
        return a * b;
    default:
        return a / b;
    }
}

/* Brings both to one scale. False: they are too far apart. */
static bool big_align(struct gremlin_big *a, struct gremlin_big *b)
{
    struct gremlin_big *less = a->scale < b->scale ? a : b, *more = less == a ? b : a;
    int64_t distance = more->scale - less->scale;

    if (BN_is_zero(less->coefficient)) {
        less->scale = more->scale;
        return true;
    }
    if (distance > GREMLIN_DIGITS_MAX)
        return false;
    gremlin_big_multiply_ten(less->coefficient, distance);
    less->scale = more->scale;
    return true;
}

static int64_t digits_of(const BIGNUM *number)
{
    char *text = BN_bn2dec(number);
    int64_t count = text ? (int64_t)strlen(text) - (*text == '-') : 0;

    OPENSSL_free(text);
    return count;
}

/* Half up, away from zero: what is left of the division decides. */
static void round_half_up(BIGNUM *quotient, BIGNUM *rest, const BIGNUM *divisor, bool negative)
{
    BN_set_negative(rest, 0);
    BN_lshift1(rest, rest);
    if (BN_ucmp(rest, divisor) < 0)
        return;
    if (negative)
        BN_sub_word(quotient, 1);
    else
        BN_add_word(quotient, 1);
}

/* Exact where ten digits more than either has are enough for that; otherwise rounded there. */
static bool decimal_divide(struct gremlin_big *a, struct gremlin_big *b)
{
    int64_t wanted = MAX(MAX(a->scale, b->scale), (int64_t)DIVISION_DIGITS_MORE);
    int64_t precision =
        MAX(digits_of(a->coefficient), digits_of(b->coefficient)) + DIVISION_DIGITS_MORE;
    int64_t preferred = a->scale - b->scale, more;
    bool negative = BN_is_negative(a->coefficient) != BN_is_negative(b->coefficient);
    BN_CTX *context = BN_CTX_new();
    BIGNUM *rest = BN_new();
    bool exact;

    more = MIN(precision + digits_of(b->coefficient), (int64_t)GREMLIN_DIGITS_MAX);
    gremlin_big_multiply_ten(a->coefficient, more);
    a->scale = preferred + more;
    exact =
        BN_div(a->coefficient, rest, a->coefficient, b->coefficient, context) && BN_is_zero(rest);
    if (exact) {
        while (a->scale > preferred) {
            BIGNUM *cut = BN_dup(a->coefficient);
            bool zero = BN_div_word(cut, 10) == 0;

            if (zero) {
                BN_swap(cut, a->coefficient);
                a->scale--;
            }
            BN_free(cut);
            if (!zero)
                break;
        }
    } else {
        round_half_up(a->coefficient, rest, b->coefficient, negative);
        if (a->scale > wanted && a->scale - wanted <= GREMLIN_DIGITS_MAX) {
            BIGNUM *power = BN_new();

            BN_set_word(power, 1);
            gremlin_big_multiply_ten(power, a->scale - wanted);
            BN_div(a->coefficient, rest, a->coefficient, power, context);
            round_half_up(a->coefficient, rest, power, negative);
            a->scale = wanted;
            BN_free(power);
        }
    }
    BN_free(rest);
    BN_CTX_free(context);
    return true;
}

/* A double is the decimal that it prints as: 0.1 is 0.1, as upstream computes. (Comparing is by
 * what it is exactly.) */
static void big_take(struct gremlin_big *big, struct gremlin_value number)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    if (number.type != GREMLIN_FLOAT && number.type != GREMLIN_DOUBLE) {
        gremlin_big_set(big, number);
        return;
    }
    gremlin_real_write(number, &text);
    if (!gremlin_big_parse(buf_slice(&text), true, big))
        assert(!"a finite double prints as a decimal");
}

/* a becomes the result. b is not 0 when dividing. */
static bool big_apply(enum gremlin_operation operation, bool decimal, struct gremlin_big *a,
                      struct gremlin_big *b)
{
    BN_CTX *context;
    bool fine;

    if (operation == GREMLIN_ADD || operation == GREMLIN_SUBTRACT) {
        if (!big_align(a, b))
            return false;
        return operation == GREMLIN_ADD ? BN_add(a->coefficient, a->coefficient, b->coefficient)
                                        : BN_sub(a->coefficient, a->coefficient, b->coefficient);
    }
    if (operation == GREMLIN_DIVIDE && decimal)
        return decimal_divide(a, b);
    context = BN_CTX_new();
    if (operation == GREMLIN_MULTIPLY) {
        fine = BN_mul(a->coefficient, a->coefficient, b->coefficient, context);
        a->scale += b->scale;
    } else {
        fine = BN_div(a->coefficient, NULL, a->coefficient, b->coefficient, context);
    }
    BN_CTX_free(context);
    return fine;
}

static bool big_compute(struct gremlin_heap *heap, enum gremlin_operation operation,
                        enum gremlin_type type, struct gremlin_value a, struct gremlin_value b,
                        struct gremlin_value *ret_value, struct error *err)
{
    CLEANUP(gremlin_big_done) struct gremlin_big x;
    CLEANUP(gremlin_big_done) struct gremlin_big y;

    gremlin_big_init(&x);
    gremlin_big_init(&y);
    big_take(&x, a);
    big_take(&y, b);
    if (operation == GREMLIN_DIVIDE && BN_is_zero(y.coefficient))
        return error_set(err, ERROR_GREMLIN_RUN, "division by zero");
    if (!big_apply(operation, type == GREMLIN_BIG_DECIMAL, &x, &y) ||
        !gremlin_big_value(heap, type, &x, ret_value))
        return error_set(err, ERROR_GREMLIN_RUN, "a number has more than %d digits",
                         GREMLIN_DIGITS_MAX);
    return true;
}

bool gremlin_number_compute(struct gremlin_heap *heap, enum gremlin_operation operation,
                            struct gremlin_value a, struct gremlin_value b,
                            struct gremlin_value *ret_value, struct error *err)
{
    enum gremlin_type type = common_type(a.type, b.type);
    int64_t whole;

    if (type <= GREMLIN_LONG) {
        if (operation == GREMLIN_DIVIDE && b.integer == 0)
            return error_set(err, ERROR_GREMLIN_RUN, "division by zero");
        if (whole_compute(operation, a.integer, b.integer, &whole)) {
            *ret_value = whole_fitted(whole, type);
            return true;
        }
        return big_compute(heap, operation, GREMLIN_BIG_INTEGER, a, b, ret_value, err);
    }
    if (type == GREMLIN_FLOAT) {
        *ret_value = gremlin_float(
            (float)real_compute(operation, gremlin_number_double(a), gremlin_number_double(b)));
        return true;
    }
    if (type == GREMLIN_DOUBLE || !is_finite(a) || !is_finite(b)) {
        *ret_value = gremlin_double(
            real_compute(operation, gremlin_number_double(a), gremlin_number_double(b)));
        return true;
    }
    return big_compute(heap, operation, type, a, b, ret_value, err);
}

/* --- Least and greatest ----------------------------------------------------------------------- */

static bool is_nan(struct gremlin_value value)
{
    return (value.type == GREMLIN_FLOAT || value.type == GREMLIN_DOUBLE) && isnan(value.real);
}

static bool chosen(struct gremlin_value a, struct gremlin_value b, int sign,
                   struct gremlin_value *ret_value, struct error *err)
{
    int order = 0;

    if (gremlin_is_null(a) || (is_nan(a) && gremlin_is_number(b))) {
        *ret_value = gremlin_value_ref(b);
        return true;
    }
    if (gremlin_is_null(b) || (is_nan(b) && gremlin_is_number(a))) {
        *ret_value = gremlin_value_ref(a);
        return true;
    }
    if (!gremlin_comparable(a, b, &order))
        return error_set(err, ERROR_GREMLIN_RUN, "cannot compare %s and %s",
                         gremlin_type_name(a.type), gremlin_type_name(b.type));
    *ret_value = gremlin_value_ref(order * sign <= 0 ? a : b);
    return true;
}

bool gremlin_value_min(struct gremlin_value a, struct gremlin_value b,
                       struct gremlin_value *ret_value, struct error *err)
{
    return chosen(a, b, 1, ret_value, err);
}

bool gremlin_value_max(struct gremlin_value a, struct gremlin_value b,
                       struct gremlin_value *ret_value, struct error *err)
{
    return chosen(a, b, -1, ret_value, err);
}

/* --- Operators -------------------------------------------------------------------------------- */

static bool wrong_types(const char *what, struct gremlin_value a, struct gremlin_value b,
                        struct error *err)
{
    return error_set(err, ERROR_GREMLIN_RUN, "operator \"%s\" does not take %s and %s", what,
                     gremlin_type_name(a.type), gremlin_type_name(b.type));
}

/* A collection of one's own to add to: this one, if nobody else holds it. */
static struct gremlin_value collection_own(struct gremlin_heap *heap, struct gremlin_value value)
{
    struct gremlin_value copy;

    if (value.object->references == 1)
        return gremlin_value_ref(value);
    if (value.type == GREMLIN_LIST) {
        copy = gremlin_list_new(heap, gremlin_list(value)->count);
        for (size_t i = 0; i < gremlin_list(value)->count; i++)
            gremlin_list_add(copy, gremlin_list(value)->items[i]);
        return copy;
    }
    copy = gremlin_table_new(heap, value.type, gremlin_table(value)->count);
    for (size_t i = 0; i < gremlin_table(value)->count; i++)
        gremlin_map_put(copy, gremlin_table(value)->rows[i].key,
                        gremlin_table(value)->rows[i].value);
    return copy;
}

static void collection_add(struct gremlin_value to, struct gremlin_value item, int64_t bulk)
{
    if (to.type == GREMLIN_MAP) {
        gremlin_map_put(to, gremlin_entry(item)->key, gremlin_entry(item)->value);
    } else if (to.type == GREMLIN_SET) {
        gremlin_set_add(to, item);
    } else if (to.type == GREMLIN_BULK_SET) {
        gremlin_bulk_set_add(to, item, bulk);
    } else {
        for (int64_t i = 0; i < bulk && !gremlin_heap_failed(to.object->heap); i++)
            gremlin_list_add(to, item);
    }
}

static bool add_all(struct gremlin_heap *heap, struct gremlin_value a, struct gremlin_value b,
                    struct gremlin_value *ret_value, struct error *err)
{
    CLEANUP(gremlin_collection_done) struct gremlin_cursor cursor = {};
    struct gremlin_value own, item;
    int64_t bulk;

    if (gremlin_is_null(a) || gremlin_is_null(b)) {
        *ret_value = gremlin_value_ref(gremlin_is_null(a) ? b : a);
        return true;
    }
    if (a.type < GREMLIN_LIST || a.type > GREMLIN_MAP ||
        (a.type == GREMLIN_MAP) != (b.type == GREMLIN_MAP) || !gremlin_is_collection(b) ||
        b.type == GREMLIN_TREE)
        return wrong_types("addAll", a, b, err);
    own = collection_own(heap, a);
    while (gremlin_collection_next(b, &cursor, &item, &bulk)) {
        collection_add(own, item, bulk);
        gremlin_value_unref(item);
    }
    *ret_value = own;
    return true;
}

bool gremlin_operator_apply(struct gremlin_heap *heap, enum gremlin_enum_word operator,
                            struct gremlin_value a, struct gremlin_value b,
                            struct gremlin_value *ret_value, struct error *err)
{
    static const enum gremlin_operation operations[] = {
        [GREMLIN_OPERATOR_SUM - GREMLIN_OPERATOR_SUM] = GREMLIN_ADD,
        [GREMLIN_OPERATOR_MINUS - GREMLIN_OPERATOR_SUM] = GREMLIN_SUBTRACT,
        [GREMLIN_OPERATOR_MULT - GREMLIN_OPERATOR_SUM] = GREMLIN_MULTIPLY,
        [GREMLIN_OPERATOR_DIV - GREMLIN_OPERATOR_SUM] = GREMLIN_DIVIDE,
    };
    struct slice name = gremlin_word_text(gremlin_word(operator).word);

    operator= gremlin_word_canonical(operator);
    switch (operator) {
    case GREMLIN_OPERATOR_SUM:
    case GREMLIN_OPERATOR_MINUS:
    case GREMLIN_OPERATOR_MULT:
    case GREMLIN_OPERATOR_DIV:
        if (!gremlin_is_number(a) || !gremlin_is_number(b))
            return wrong_types((const char *)name.data, a, b, err);
        return gremlin_number_compute(heap, operations[operator - GREMLIN_OPERATOR_SUM], a, b,
                                      ret_value, err);
    case GREMLIN_OPERATOR_MIN:
        return gremlin_value_min(a, b, ret_value, err);
    case GREMLIN_OPERATOR_MAX:
        return gremlin_value_max(a, b, ret_value, err);
    case GREMLIN_OPERATOR_ASSIGN:
        *ret_value = gremlin_value_ref(b);
        return true;
    case GREMLIN_OPERATOR_AND:
    case GREMLIN_OPERATOR_OR:
        if (a.type != GREMLIN_BOOLEAN || b.type != GREMLIN_BOOLEAN)
            return wrong_types((const char *)name.data, a, b, err);
        *ret_value = gremlin_boolean(operator== GREMLIN_OPERATOR_AND ? a.boolean && b.boolean
                                                                     : a.boolean || b.boolean);
        return true;
    case GREMLIN_OPERATOR_ADD_ALL:
        return add_all(heap, a, b, ret_value, err);
    default:
        return error_set(err, ERROR_GREMLIN_COMPILE, "\"%.*s\" is no operator", SLICE_ARG(name));
    }
}

/* --- Conversion ------------------------------------------------------------------------------- */

static bool no_fit(enum gremlin_type type, struct gremlin_value number, struct error *err)
{
    return error_set(err, ERROR_GREMLIN_RUN, "cannot convert number of type %s to %s",
                     gremlin_type_name(number.type), gremlin_type_name(type));
}

static bool big_cast(struct gremlin_heap *heap, enum gremlin_type type, struct gremlin_value number,
                     struct gremlin_value *ret_value, struct error *err)
{
    CLEANUP(gremlin_big_done) struct gremlin_big big;
    CLEANUP(gremlin_big_done) struct gremlin_big whole;

    gremlin_big_init(&big);
    gremlin_big_init(&whole);
    if (!is_finite(number))
        return no_fit(type, number, err);
    big_take(&big, number);
    if (type == GREMLIN_BIG_INTEGER && !gremlin_big_cut(&big, &whole))
        return no_fit(type, number, err);
    if (!gremlin_big_value(heap, type, type == GREMLIN_BIG_INTEGER ? &whole : &big, ret_value))
        return no_fit(type, number, err);
    return true;
}

bool gremlin_number_cast(struct gremlin_heap *heap, enum gremlin_type type,
                         struct gremlin_value number, struct gremlin_value *ret_value,
                         struct error *err)
{
    int64_t whole;
    double real;

    switch (type) {
    case GREMLIN_BYTE:
    case GREMLIN_SHORT:
    case GREMLIN_INT:
    case GREMLIN_LONG:
        if (!gremlin_number_long(number, &whole) || !fits(whole, type))
            return no_fit(type, number, err);
        *ret_value = gremlin_integer(type, whole);
        return true;
    case GREMLIN_FLOAT:
        real = gremlin_number_double(number);
        if (isfinite(real) && isinf((float)real))
            return no_fit(type, number, err);
        *ret_value = gremlin_float((float)real);
        return true;
    case GREMLIN_DOUBLE:
        *ret_value = gremlin_double(gremlin_number_double(number));
        return true;
    case GREMLIN_BIG_INTEGER:
    case GREMLIN_BIG_DECIMAL:
        return big_cast(heap, type, number, ret_value, err);
    default:
        return no_fit(type, number, err);
    }
}
