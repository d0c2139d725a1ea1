#include "document/decimal_math.h"
#include "support/check.h"
#include "support/expressions.h"

static void equality_is_undefined_across_types(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"eq(1, 1)", "true"},
        {"eq(1, 1.0)", "true"},
        {"eq(1, 2)", "false"},
        {"eq(0, -0.0)", "true"},
        {"eq(9007199254740993, 9007199254740992.0)", "false"},
        {"eq(9223372036854775807, 9223372036854775807)", "true"},
        {"eq(9223372036854775807, 9223372036854775808)", "false"},
        {"eq('a', 'a')", "true"},
        {"eq('a', 'A')", "false"},
        {"eq('', '')", "true"},
        {"eq(null, null)", "true"},
        {"eq(true, true)", "true"},
        {"eq(true, false)", "false"},
        {"eq(1, '1')", "undefined"},
        {"eq(1, true)", "undefined"},
        {"eq(null, 0)", "undefined"},
        {"eq(null, undefined)", "undefined"},
        {"eq(undefined, undefined)", "undefined"},
        {"eq([1, 2], [1, 2.0])", "true"},
        {"eq([1, 2], [2, 1])", "false"},
        {"eq([], {})", "undefined"},
        {"eq({'a': 1, 'b': [2]}, {'b': [2], 'a': 1})", "true"},
        {"eq({'a': 1}, {'a': 1, 'b': 2})", "false"},
        {"ne(1, 2)", "true"},
        {"ne(1, 1)", "false"},
        {"ne(1, '1')", "undefined"},
        {"ne(undefined, 1)", "undefined"},
        {"ne(null, null)", "false"},
        {"ne([1], [1])", "false"},
        {"eq(NaN, NaN)", "true"},
    };

    expression_cases(cases, ARRAY_LEN(cases), NULL);
}

static void order_exists_within_null_boolean_number_and_string(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"lt(1, 2)", "true"},
        {"lt(2, 1)", "false"},
        {"lt(1, 1.5)", "true"},
        {"le(1, 1.0)", "true"},
        {"gt(9007199254740993, 9007199254740992.0)", "true"},
        {"ge(-1, -1)", "true"},
        {"lt(false, true)", "true"},
        {"gt(false, true)", "false"},
        {"le(null, null)", "true"},
        {"lt(null, null)", "false"},
        {"lt('a', 'b')", "true"},
        {"lt('B', 'a')", "true"},
        {"lt('', 'a')", "true"},
        {"lt('a', 'ab')", "true"},
        /* UTF-16 puts surrogates before U+E000 and above */
        {"lt('\\ud83d\\ude00', '\\uff21')", "true"},
        {"lt(1, '2')", "undefined"},
        {"lt(null, 1)", "undefined"},
        {"lt(undefined, 1)", "undefined"},
        {"lt([1], [2])", "undefined"},
        {"ge({}, {})", "undefined"},
        {"lt(true, 1)", "undefined"},
    };

    expression_cases(cases, ARRAY_LEN(cases), NULL);
}

static void integers_stay_exact_while_they_fit(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"add(1, 2)", "3"},
        {"add(2147483647, 1)", "2147483648"},
        {"add(9007199254740993, 2)", "9007199254740995"},
        {"add(9223372036854775807, 1)", "9223372036854775808"},
        {"add(0.1, 0.2)", "0.30000000000000004"},
        {"add(1, 0.5)", "1.5"},
        {"sub(1, 3)", "-2"},
        {"sub(-9223372036854775808, 1)", "-9223372036854775808"},
        {"mul(3, 4)", "12"},
        {"mul(3037000500, 3037000500)", "9223372037000249344"},
        {"mul(0, -1)", "0"},
        {"div(7, 2)", "3.5"},
        {"div(6, 2)", "3"},
        {"div(-9223372036854775808, -1)", "9223372036854775808"},
        {"div(1, 0)", "undefined"},
        {"div(1, 0.0)", "undefined"},
        {"div(0, 0)", "undefined"},
        {"mod(7, 3)", "1"},
        {"mod(-7, 3)", "-1"},
        {"mod(7, -3)", "1"},
        {"mod(-9223372036854775808, -1)", "0"},
        {"mod(7.5, 2)", "1.5"},
        {"mod(1, 0)", "undefined"},
        {"neg(5)", "-5"},
        {"neg(-9223372036854775808)", "9223372036854775808"},
        {"neg(0)", "0"},
        {"neg(1.5)", "-1.5"},
        {"plus(5)", "5"},
        {"mul(1e200, 1e200)", "Infinity"},
    };

    expression_cases(cases, ARRAY_LEN(cases), NULL);
}

static void arithmetic_on_anything_but_numbers_is_undefined(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"add('1', 1)", "undefined"},       {"add('a', 'b')", "undefined"},
        {"add(null, 1)", "undefined"},      {"add(1, undefined)", "undefined"},
        {"sub(true, 1)", "undefined"},      {"mul([1], 2)", "undefined"},
        {"div({}, 2)", "undefined"},        {"mod(1, null)", "undefined"},
        {"neg('1')", "undefined"},          {"neg(undefined)", "undefined"},
        {"plus('1')", "undefined"},         {"plus(true)", "undefined"},
        {"bnot('1')", "undefined"},         {"band(1, '1')", "undefined"},
        {"shl(undefined, 1)", "undefined"},
    };

    expression_cases(cases, ARRAY_LEN(cases), NULL);
}

static void bits_are_those_of_javascript(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"band(12, 10)", "8"},         {"bor(12, 10)", "14"},
        {"bxor(12, 10)", "6"},         {"bnot(0)", "-1"},
        {"bnot(5.7)", "-6"},           {"shl(1, 31)", "-2147483648"},
        {"shl(1, 32)", "1"},           {"shr(-8, 1)", "-4"},
        {"ushr(-1, 0)", "4294967295"}, {"ushr(-8, 28)", "15"},
        {"bor(4294967296, 0)", "0"},   {"bor(4294967297, 0)", "1"},
        {"bor(-1.9, 0)", "-1"},        {"bor(1e20, 0)", "1661992960"},
        {"bor(NaN, 0)", "0"},          {"bor(Infinity, 3)", "3"},
        {"band(-1, 255)", "255"},
    };

    expression_cases(cases, ARRAY_LEN(cases), NULL);
}

static void concatenation_takes_strings_alone(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"cat('a', 'b')", "'ab'"},
        {"cat('', '')", "''"},
        {"cat(cat('a', 'b'), 'c')", "'abc'"},
        {"cat('a', 1)", "undefined"},
        {"cat(null, 'a')", "undefined"},
        {"cat('a', undefined)", "undefined"},
        {"cat('\\u00e9', '\\u20ac')", "'é€'"},
        /* two halves become one character */
        {"cat('\\ud83d', '\\ude00')", "'😀'"},
        {"LENGTH(cat('\\ud83d', '\\ude00'))", "2"},
        {"cat('\\ude00', '\\ud83d')", "'\\ude00\\ud83d'"},
    };

    expression_cases(cases, ARRAY_LEN(cases), NULL);
}

/* Evaluates with x and y standing for decimals of these texts. */
static struct document_value with_decimals(const char *text, enum document_order order,
                                           const char *x, const char *y, struct arena *arena)
{
    struct query_build build = {.arena = arena, .order = order};
    struct query_slot slots[EXPRESSION_SLOTS] = {0};
    const struct query_expression *expression = expression_of(&build, text, slots);
    struct query_context context;
    struct document_decimal decimals[2];
    struct document_value value;
    struct error err = {0};

    assert_true(decimal_from_text(slice_of_text(x), &decimals[0], NULL));
    assert_true(decimal_from_text(slice_of_text(y), &decimals[1], NULL));
    slots[1].value = document_decimal_value(decimals[0]);
    slots[2].value = document_decimal_value(decimals[1]);
    query_context_init(&context, arena, &(struct query_limits){0}, NULL);
    context.order = order;
    context.slots = slots;
    context.slot_count = EXPRESSION_SLOTS;
    assert_ok(query_evaluate(expression, &context, &value, &err), &err);
    query_context_done(&context);
    return value;
}

static void decimals_stay_decimals_in_mongodbs_order(void **state UNUSED)
{
    static const struct {
        const char *text, *x, *y, *mongo, *sql; /* mongo NULL: undefined in both */
    } cases[] = {
        {"add(x, y)", "0.10", "0.2", "0.30", "0.30000000000000004"},
        {"sub(x, y)", "1", "0.9", "0.1", "0.09999999999999998"},
        {"mul(x, y)", "1.1", "1.1", "1.21", "1.2100000000000002"},
        {"div(x, y)", "1", "3", "0.3333333333333333333333333333333333", "0.3333333333333333"},
        {"mod(x, y)", "-7.5", "2", "-1.5", "-1.5"},
        {"div(x, y)", "1", "0.00", NULL, NULL},
        {"mod(x, y)", "1", "0", NULL, NULL},
        {"add(x, 'a')", "1", "0", NULL, NULL},
        {"add(x, 1)", "0.10", "0", "1.10", "1.1"},
        {"add(0.1, x)", "0.2", "0", "0.300000000000000", "0.30000000000000004"},
        {"neg(x)", "1.50", "0", "-1.50", "-1.5"},
        {"ABS(x)", "-1.50", "0", "1.50", "1.5"},
        {"CEILING(x)", "1.2", "0", "2", "2"},
        {"FLOOR(x)", "-1.2", "0", "-2", "-2"},
        {"TRUNC(x)", "-1.7", "0", "-1", "-1"},
        {"ROUND(x, 1)", "2.25", "0", "2.2", "2.3"},
        {"SQRT(x)", "2", "0", "1.414213562373095048801688724209698", "1.4142135623730951"},
        {"EXP(x)", "1", "0", "2.718281828459045235360287471352662", "2.718281828459045"},
        {"LOG(x)", "10", "0", "2.302585092994045684017991454684364", "2.302585092994046"},
        {"LOG(x, 2)", "8", "0", "3.000000000000000000000000000000000", "3"},
        {"LOG10(x)", "1000", "0", "3", "3"},
        {"POWER(x, y)", "1.1", "2", "1.21", "1.2100000000000002"},
        {"POWER(2, x)", "-1", "0", "0.5", "0.5"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct document_value mongo =
            with_decimals(cases[i].text, DOCUMENT_ORDER_MONGO, cases[i].x, cases[i].y, arena);
        struct document_value sql =
            with_decimals(cases[i].text, DOCUMENT_ORDER_SQL, cases[i].x, cases[i].y, arena);
        char text[DECIMAL_TEXT_MAX + 1];

        if (!cases[i].mongo) {
            assert_int_equal(mongo.type, DOCUMENT_UNDEFINED);
            assert_int_equal(sql.type, DOCUMENT_UNDEFINED);
            continue;
        }
        assert_int_equal(mongo.type, DOCUMENT_DECIMAL128);
        text[decimal_to_text(mongo.decimal, text)] = 0;
        assert_string_equal(text, cases[i].mongo);
        assert_int_equal(sql.type, DOCUMENT_DOUBLE);
        assert_string_equal(expression_print(&sql, arena), cases[i].sql);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decimals_stay_decimals_in_mongodbs_order),
        cmocka_unit_test(equality_is_undefined_across_types),
        cmocka_unit_test(order_exists_within_null_boolean_number_and_string),
        cmocka_unit_test(integers_stay_exact_while_they_fit),
        cmocka_unit_test(arithmetic_on_anything_but_numbers_is_undefined),
        cmocka_unit_test(bits_are_those_of_javascript),
        cmocka_unit_test(concatenation_takes_strings_alone),
    };
    return cmocka_run_group_tests_name("query/expression/operators", tests, NULL, NULL);
}
