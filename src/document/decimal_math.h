/* Arithmetic of Decimal128, by Intel's library for decimals in the binary integer encoding.
 *
 * Every result is the exact one rounded once, to 34 digits, half to even; exp, ln, log10, pow and
 * those of angles are within one unit of the last place. What has no result is NaN, what is too
 * large infinite, as IEEE 754-2008 has it: nothing fails, and no state is kept between calls or
 * shared by threads. Comparing and hashing are those of all numbers (number.h,
 * query/value/compare.h). */
#pragma once

#include "document/decimal.h"

/* --- Made of other things --------------------------------------------------------------------- */

/* Reads what decimal_to_text writes, and whatever else the BSON specification allows: digits with
 * at most one point, an exponent, Infinity, Inf and NaN in any case, a sign. ret_exact (NULL: who
 * cares): no digit was lost. False: it is no number. */
NODISCARD bool decimal_from_text(struct slice text, struct document_decimal *ret_decimal,
                                 bool *ret_exact);
struct document_decimal decimal_from_int64(int64_t number);

/* A double to 15 significant digits, which is what people mean by it (0.1 is 0.100000000000000), or
 * to all 34. */
struct document_decimal decimal_from_double(double number);
struct document_decimal decimal_from_double_whole(double number);

/* Any number: a double to 15 digits. */
struct document_decimal decimal_from_number(const struct document_value *number);

static inline struct document_value document_decimal_value(struct document_decimal decimal)
{
    return (struct document_value){.type = DOCUMENT_DECIMAL128, .decimal = decimal};
}

/* --- Of two ----------------------------------------------------------------------------------- */

struct document_decimal decimal_add(struct document_decimal a, struct document_decimal b);
struct document_decimal decimal_subtract(struct document_decimal a, struct document_decimal b);
struct document_decimal decimal_multiply(struct document_decimal a, struct document_decimal b);
struct document_decimal decimal_divide(struct document_decimal a, struct document_decimal b);

/* What is left of a divided by b with the quotient cut to a whole number: it has the sign of a. */
struct document_decimal decimal_modulo(struct document_decimal a, struct document_decimal b);
struct document_decimal decimal_power(struct document_decimal a, struct document_decimal b);
struct document_decimal decimal_atan2(struct document_decimal y, struct document_decimal x);

/* --- Of one ----------------------------------------------------------------------------------- */

struct document_decimal decimal_abs(struct document_decimal a);
struct document_decimal decimal_negate(struct document_decimal a);
struct document_decimal decimal_ceil(struct document_decimal a);
struct document_decimal decimal_floor(struct document_decimal a);
struct document_decimal decimal_sqrt(struct document_decimal a);
struct document_decimal decimal_exp(struct document_decimal a);
struct document_decimal decimal_ln(struct document_decimal a);
struct document_decimal decimal_log10(struct document_decimal a);
struct document_decimal decimal_sin(struct document_decimal a);
struct document_decimal decimal_cos(struct document_decimal a);
struct document_decimal decimal_tan(struct document_decimal a);
struct document_decimal decimal_asin(struct document_decimal a);
struct document_decimal decimal_acos(struct document_decimal a);
struct document_decimal decimal_atan(struct document_decimal a);
struct document_decimal decimal_sinh(struct document_decimal a);
struct document_decimal decimal_cosh(struct document_decimal a);
struct document_decimal decimal_tanh(struct document_decimal a);
struct document_decimal decimal_asinh(struct document_decimal a);
struct document_decimal decimal_acosh(struct document_decimal a);
struct document_decimal decimal_atanh(struct document_decimal a);

/* To so many digits behind the point, negative: before it; half to even, or cut. What has fewer
 * stays as it is. */
struct document_decimal decimal_round(struct document_decimal a, int64_t places);
struct document_decimal decimal_trunc(struct document_decimal a, int64_t places);

static inline bool decimal_is_nan(struct document_decimal a)
{
    return decimal_unpack(a).kind == DECIMAL_NAN;
}

static inline bool decimal_is_zero(struct document_decimal a)
{
    struct decimal decimal = decimal_unpack(a);

    return decimal.kind == DECIMAL_FINITE && decimal.coefficient == 0;
}
