#include "support/check.h"
#include "support/expressions.h"

static void sets_hold_values_once(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"SetUnion([1, 2, 2], [2, 3])", "[1,2,3]"},
        {"SetUnion([], [])", "[]"},
        {"SetUnion([1], [1.0])", "[1]"},
        {"SetIntersect([1, 2, 2, 3], [2, 3, 4])", "[2,3]"},
        {"SetIntersect([1], ['1'])", "[]"},
        {"SetDifference([1, 2, 2, 3], [3])", "[1,2]"},
        {"SetDifference([], [1])", "[]"},
        {"SetDifference([{'a': 1, 'b': 2}, null], [{'b': 2, 'a': 1}])", "[null]"},
        {"SetEqual([1, 2], [2, 1, 1])", "true"},
        {"SetEqual([1, 2], [1])", "false"},
        {"SetEqual([], [])", "true"},
        {"SetEqual(['a', null], [null, 'a'])", "true"},
    };

    expression_cases(cases, ARRAY_LEN(cases), NULL);
}

static void wrong_types_are_undefined(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"SetUnion(undefined, [2])", "undefined"},
        {"SetUnion(null, [2])", "undefined"},
        {"SetUnion('1', [2])", "undefined"},
        {"SetUnion(true, [2])", "undefined"},
        {"SetUnion(1, [2])", "undefined"},
        {"SetUnion({}, [2])", "undefined"},
        {"SetUnion([1], undefined)", "undefined"},
        {"SetUnion([1], null)", "undefined"},
        {"SetUnion([1], '1')", "undefined"},
        {"SetUnion([1], true)", "undefined"},
        {"SetUnion([1], 1)", "undefined"},
        {"SetUnion([1], {})", "undefined"},
        {"SetIntersect(undefined, [2])", "undefined"},
        {"SetIntersect(null, [2])", "undefined"},
        {"SetIntersect('1', [2])", "undefined"},
        {"SetIntersect(true, [2])", "undefined"},
        {"SetIntersect(1, [2])", "undefined"},
        {"SetIntersect({}, [2])", "undefined"},
        {"SetIntersect([1], undefined)", "undefined"},
        {"SetIntersect([1], null)", "undefined"},
        {"SetIntersect([1], '1')", "undefined"},
        {"SetIntersect([1], true)", "undefined"},
        {"SetIntersect([1], 1)", "undefined"},
        {"SetIntersect([1], {})", "undefined"},
        {"SetDifference(undefined, [2])", "undefined"},
        {"SetDifference(null, [2])", "undefined"},
        {"SetDifference('1', [2])", "undefined"},
        {"SetDifference(true, [2])", "undefined"},
        {"SetDifference(1, [2])", "undefined"},
        {"SetDifference({}, [2])", "undefined"},
        {"SetDifference([1], undefined)", "undefined"},
        {"SetDifference([1], null)", "undefined"},
        {"SetDifference([1], '1')", "undefined"},
        {"SetDifference([1], true)", "undefined"},
        {"SetDifference([1], 1)", "undefined"},
        {"SetDifference([1], {})", "undefined"},
        {"SetEqual(undefined, [2])", "undefined"},
        {"SetEqual(null, [2])", "undefined"},
        {"SetEqual('1', [2])", "undefined"},
        {"SetEqual(true, [2])", "undefined"},
        {"SetEqual(1, [2])", "undefined"},
        {"SetEqual({}, [2])", "undefined"},
        {"SetEqual([1], undefined)", "undefined"},
        {"SetEqual([1], null)", "undefined"},
        {"SetEqual([1], '1')", "undefined"},
        {"SetEqual([1], true)", "undefined"},
        {"SetEqual([1], 1)", "undefined"},
        {"SetEqual([1], {})", "undefined"},
    };

    expression_cases(cases, ARRAY_LEN(cases), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_hold_values_once),
        cmocka_unit_test(wrong_types_are_undefined),
    };
    return cmocka_run_group_tests_name("query/function/functions_set", tests, NULL, NULL);
}
