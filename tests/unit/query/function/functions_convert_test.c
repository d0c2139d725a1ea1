#include "support/check.h"
#include "support/expressions.h"

static void text_becomes_values_and_back(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"StringToArray('[1, 2]')", "[1,2]"},
        {"StringToArray('  [ ]  ')", "[]"},
        {"StringToArray('{}')", "undefined"},
        {"StringToArray('[1')", "undefined"},
        {"StringToArray('x')", "undefined"},
        {"StringToBoolean('true')", "true"},
        {"StringToBoolean(' false ')", "false"},
        {"StringToBoolean('TRUE')", "undefined"},
        {"StringToBoolean('1')", "undefined"},
        {"StringToNull('null')", "null"},
        {"StringToNull(' null ')", "null"},
        {"StringToNull('NULL')", "undefined"},
        {"StringToNumber('1')", "1"},
        {"StringToNumber('  -1.5e3 ')", "-1500"},
        {"StringToNumber('9223372036854775807')", "9223372036854775807"},
        {"StringToNumber('1e400')", "undefined"},
        {"StringToNumber('+5')", "undefined"},
        {"StringToNumber('0x10')", "undefined"},
        {"StringToNumber('')", "undefined"},
        {"StringToNumber('1 2')", "undefined"},
        {"StringToNumber('true')", "undefined"},
        {"StringToObject('{}')", "{}"},
        {"StringToObject('[]')", "undefined"},
        {"StringToObject(' { } ')", "{}"},
        {"ToString(1)", "'1'"},
        {"ToString(1.0)", "'1'"},
        {"ToString(1.5)", "'1.5'"},
        {"ToString(-0.5)", "'-0.5'"},
        {"ToString(9223372036854775807)", "'9223372036854775807'"},
        {"ToString(true)", "'true'"},
        {"ToString(null)", "'null'"},
        {"ToString('a')", "'a'"},
        {"ToString('')", "''"},
        {"ToString([1, 2])", "'[1,2]'"},
        {"ToString({})", "'{}'"},
        {"ToString(NaN)", "'NaN'"},
        {"ToString(Infinity)", "'Infinity'"},
        {"ToString(-Infinity)", "'-Infinity'"},
        {"ToString(undefined)", "undefined"},
        {"StringToArray(ToString([1, [true, null]]))", "[1,[true,null]]"},
        {"StringToObject(ToString({'a': [1, 'x']}))", "{'a':[1,'x']}"},
    };

    expression_cases(cases, ARRAY_LEN(cases), NULL);
}

static void wrong_types_are_undefined(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"StringToArray(undefined)", "undefined"},
        {"StringToArray(null)", "undefined"},
        {"StringToArray(1)", "undefined"},
        {"StringToArray(true)", "undefined"},
        {"StringToArray([])", "undefined"},
        {"StringToArray({})", "undefined"},
        {"StringToBoolean(undefined)", "undefined"},
        {"StringToBoolean(null)", "undefined"},
        {"StringToBoolean(1)", "undefined"},
        {"StringToBoolean(true)", "undefined"},
        {"StringToBoolean([])", "undefined"},
        {"StringToBoolean({})", "undefined"},
        {"StringToNull(undefined)", "undefined"},
        {"StringToNull(null)", "undefined"},
        {"StringToNull(1)", "undefined"},
        {"StringToNull(true)", "undefined"},
        {"StringToNull([])", "undefined"},
        {"StringToNull({})", "undefined"},
        {"StringToNumber(undefined)", "undefined"},
        {"StringToNumber(null)", "undefined"},
        {"StringToNumber(1)", "undefined"},
        {"StringToNumber(true)", "undefined"},
        {"StringToNumber([])", "undefined"},
        {"StringToNumber({})", "undefined"},
        {"StringToObject(undefined)", "undefined"},
        {"StringToObject(null)", "undefined"},
        {"StringToObject(1)", "undefined"},
        {"StringToObject(true)", "undefined"},
        {"StringToObject([])", "undefined"},
        {"StringToObject({})", "undefined"},
    };

    expression_cases(cases, ARRAY_LEN(cases), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_becomes_values_and_back),
        cmocka_unit_test(wrong_types_are_undefined),
    };
    return cmocka_run_group_tests_name("query/function/functions_convert", tests, NULL, NULL);
}
