#include "front/rest/sql/functions.h"

#include "support/check.h"

static void names_have_no_case(void **state UNUSED)
{
    assert_ptr_equal(sql_function_find(SLICE("startswith")), sql_function(SQL_FUNCTION_STARTSWITH));
    assert_ptr_equal(sql_function_find(SLICE("DATETIMEADD")),
                     sql_function(SQL_FUNCTION_DATE_TIME_ADD));
    assert_null(sql_function_find(SLICE("START_WITH")));
    assert_null(sql_function_find(SLICE("_COMPARE_OBJECTS")));
    assert_null(sql_function_find(SLICE("")));
}

static void every_row_can_be_found_and_no_name_occurs_twice(void **state UNUSED)
{
    for (int id = 0; id < SQL_FUNCTION_COUNT_ALL; id++) {
        const struct sql_function *function = sql_function((enum sql_function_id)id);

        assert_int_equal(function->id, id);
        assert_ptr_equal(sql_function_find(slice_of_text(function->name)), function);
        assert_true(function->arguments_min <= function->arguments_max);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_no_case),
        cmocka_unit_test(every_row_can_be_found_and_no_name_occurs_twice),
    };
    return cmocka_run_group_tests_name("front/rest/sql/functions", tests, NULL, NULL);
}
