#include "support/check.h"
#include "support/expressions.h"

static void patterns_match_and_extract(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"RegexMatch('abcd', 'ABC')", "false"},
        {"RegexMatch('abcd', 'ABC', 'i')", "true"},
        {"RegexMatch('abcd', '^bc')", "false"},
        {"RegexMatch('x\\nabc', '^a')", "false"},
        {"RegexMatch('x\\nabc', '^a', 'm')", "true"},
        {"RegexMatch('a\\nb', 'a.b')", "false"},
        {"RegexMatch('a\\nb', 'a.b', 's')", "true"},
        {"RegexMatch('ab', 'a b', 'x')", "true"},
        {"RegexMatch('AB', 'a b', 'xi')", "true"},
        {"RegexMatch('a', '')", "true"},
        {"RegexMatch('', '^$')", "true"},
        {"RegexMatch('a', 'a', 'q')", "undefined"},
        {"RegexMatch('a', '(')", "undefined"},
        {"RegexMatch('a', '[')", "undefined"},
        {"RegexMatch('é', '^.$')", "true"},
        {"RegexMatch('😀', '^.$')", "true"},
        {"RegexMatch('\\ud83d', 'a')", "false"},
        {"RegexMatch('a\\ud83d', 'a')", "true"},
        {"RegexMatch('É', 'é', 'i')", "true"},
        {"RegexMatch('a', '\\\\C')", "undefined"},
        {"RegexExtract('SKU-93821-BLUE', '[A-Z]+')", "'SKU'"},
        {"RegexExtract('SKU-93821-BLUE', '[0-9]+')", "'93821'"},
        {"RegexExtract('sku-93821', 'SKU-([0-9]+)', 'i', 1)", "'93821'"},
        {"RegexExtract('abc', 'x')", "undefined"},
        {"RegexExtract('abc', 'b', '', 0)", "'b'"},
        {"RegexExtract('abc', 'b', '', 1)", "undefined"},
        {"RegexExtract('abc', 'b', '', -1)", "undefined"},
        {"RegexExtract('abc', '(x)?b', '', 1)", "undefined"},
        {"RegexExtractAll('A12-B34-C56', '[0-9]+')", "['12','34','56']"},
        {"RegexExtractAll('north-east', '[a-z]+')", "['north','east']"},
        {"RegexExtractAll('a1b2', '[a-z]([0-9])', '', 1)", "['1','2']"},
        {"RegexExtractAll('abc', 'x')", "[]"},
        {"RegexExtractAll('aé', '')", "['','','']"},
        {"RegexExtractAll('aab', 'a*')", "['aa','','']"},
        {"RegexExtractAll('abc', 'b', '', 2)", "undefined"},
    };

    expression_cases(cases, ARRAY_LEN(cases), NULL);
}

static void wrong_types_are_undefined(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"RegexMatch(undefined, 'a', 'i')", "undefined"},
        {"RegexMatch(null, 'a', 'i')", "undefined"},
        {"RegexMatch(1, 'a', 'i')", "undefined"},
        {"RegexMatch(true, 'a', 'i')", "undefined"},
        {"RegexMatch([], 'a', 'i')", "undefined"},
        {"RegexMatch({}, 'a', 'i')", "undefined"},
        {"RegexMatch('a', undefined, 'i')", "undefined"},
        {"RegexMatch('a', null, 'i')", "undefined"},
        {"RegexMatch('a', 1, 'i')", "undefined"},
        {"RegexMatch('a', true, 'i')", "undefined"},
        {"RegexMatch('a', [], 'i')", "undefined"},
        {"RegexMatch('a', {}, 'i')", "undefined"},
        {"RegexMatch('a', 'a', undefined)", "undefined"},
        {"RegexMatch('a', 'a', null)", "undefined"},
        {"RegexMatch('a', 'a', 1)", "undefined"},
        {"RegexMatch('a', 'a', true)", "undefined"},
        {"RegexMatch('a', 'a', [])", "undefined"},
        {"RegexMatch('a', 'a', {})", "undefined"},
        {"RegexExtract(undefined, 'a', 'i')", "undefined"},
        {"RegexExtract(null, 'a', 'i')", "undefined"},
        {"RegexExtract(1, 'a', 'i')", "undefined"},
        {"RegexExtract(true, 'a', 'i')", "undefined"},
        {"RegexExtract([], 'a', 'i')", "undefined"},
        {"RegexExtract({}, 'a', 'i')", "undefined"},
        {"RegexExtract('a', undefined, 'i')", "undefined"},
        {"RegexExtract('a', null, 'i')", "undefined"},
        {"RegexExtract('a', 1, 'i')", "undefined"},
        {"RegexExtract('a', true, 'i')", "undefined"},
        {"RegexExtract('a', [], 'i')", "undefined"},
        {"RegexExtract('a', {}, 'i')", "undefined"},
        {"RegexExtract('a', 'a', undefined)", "undefined"},
        {"RegexExtract('a', 'a', null)", "undefined"},
        {"RegexExtract('a', 'a', 1)", "undefined"},
        {"RegexExtract('a', 'a', true)", "undefined"},
        {"RegexExtract('a', 'a', [])", "undefined"},
        {"RegexExtract('a', 'a', {})", "undefined"},
        {"RegexExtractAll(undefined, 'a', 'i')", "undefined"},
        {"RegexExtractAll(null, 'a', 'i')", "undefined"},
        {"RegexExtractAll(1, 'a', 'i')", "undefined"},
        {"RegexExtractAll(true, 'a', 'i')", "undefined"},
        {"RegexExtractAll([], 'a', 'i')", "undefined"},
        {"RegexExtractAll({}, 'a', 'i')", "undefined"},
        {"RegexExtractAll('a', undefined, 'i')", "undefined"},
        {"RegexExtractAll('a', null, 'i')", "undefined"},
        {"RegexExtractAll('a', 1, 'i')", "undefined"},
        {"RegexExtractAll('a', true, 'i')", "undefined"},
        {"RegexExtractAll('a', [], 'i')", "undefined"},
        {"RegexExtractAll('a', {}, 'i')", "undefined"},
        {"RegexExtractAll('a', 'a', undefined)", "undefined"},
        {"RegexExtractAll('a', 'a', null)", "undefined"},
        {"RegexExtractAll('a', 'a', 1)", "undefined"},
        {"RegexExtractAll('a', 'a', true)", "undefined"},
        {"RegexExtractAll('a', 'a', [])", "undefined"},
        {"RegexExtractAll('a', 'a', {})", "undefined"},
        {"RegexExtract(undefined, 'a', 'i', 0)", "undefined"},
        {"RegexExtract(null, 'a', 'i', 0)", "undefined"},
        {"RegexExtract(1, 'a', 'i', 0)", "undefined"},
        {"RegexExtract(true, 'a', 'i', 0)", "undefined"},
        {"RegexExtract([], 'a', 'i', 0)", "undefined"},
        {"RegexExtract({}, 'a', 'i', 0)", "undefined"},
        {"RegexExtract('a', undefined, 'i', 0)", "undefined"},
        {"RegexExtract('a', null, 'i', 0)", "undefined"},
        {"RegexExtract('a', 1, 'i', 0)", "undefined"},
        {"RegexExtract('a', true, 'i', 0)", "undefined"},
        {"RegexExtract('a', [], 'i', 0)", "undefined"},
        {"RegexExtract('a', {}, 'i', 0)", "undefined"},
        {"RegexExtract('a', 'a', undefined, 0)", "undefined"},
        {"RegexExtract('a', 'a', null, 0)", "undefined"},
        {"RegexExtract('a', 'a', 1, 0)", "undefined"},
        {"RegexExtract('a', 'a', true, 0)", "undefined"},
        {"RegexExtract('a', 'a', [], 0)", "undefined"},
        {"RegexExtract('a', 'a', {}, 0)", "undefined"},
        {"RegexExtract('a', 'a', 'i', undefined)", "undefined"},
        {"RegexExtract('a', 'a', 'i', null)", "undefined"},
        {"RegexExtract('a', 'a', 'i', '1')", "undefined"},
        {"RegexExtract('a', 'a', 'i', true)", "undefined"},
        {"RegexExtract('a', 'a', 'i', [])", "undefined"},
        {"RegexExtract('a', 'a', 'i', {})", "undefined"},
        {"RegexExtract('a', 'a', 'i', 0.5)", "undefined"},
    };

    expression_cases(cases, ARRAY_LEN(cases), NULL);
}

static void a_pattern_that_explodes_ends_in_an_error(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"RegexMatch('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab',"
         " '^(a+)+$')",
         "QUERY_LIMIT"},
        {"RegexMatch('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab',"
         " '^(a|aa)+$')",
         "QUERY_LIMIT"},
        /* a constant pattern on a text of the row, as the optimiser would not see it */
        {"RegexExtractAll(c.t, '(.+)+[XY]')", "QUERY_LIMIT"},
    };

    expression_cases(cases, ARRAY_LEN(cases),
                     "{'t': 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'}");
}

static void more_patterns_than_are_kept_still_work(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(query_context_done) struct query_context context;
    struct query_slot slot;
    struct query_build build = {.arena = arena};
    const struct query_expression *match = expression_of(&build, "RegexMatch('x7y', c)", NULL);
    struct error err = {0};

    query_context_init(&context, arena, NULL, NULL);
    context.slots = &slot;
    context.slot_count = 1;
    for (int i = 0; i < 300; i++) {
        struct document_value value;

        slot =
            (struct query_slot){.value = document_string(arena_printf(arena, "^x%dy$", i % 100))};
        assert_ok(query_evaluate(match, &context, &value, &err), &err);
        assert_int_equal(value.boolean, i % 100 == 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match_and_extract),
        cmocka_unit_test(wrong_types_are_undefined),
        cmocka_unit_test(a_pattern_that_explodes_ends_in_an_error),
        cmocka_unit_test(more_patterns_than_are_kept_still_work),
    };
    return cmocka_run_group_tests_name("query/function/functions_regex", tests, NULL, NULL);
}
