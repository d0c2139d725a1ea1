#include "front/table/answer.h"

#include "support/check.h"

static void every_error_has_a_code_of_the_api(void **state UNUSED)
{
    for (int code = ERROR_NONE + 1; code < ERROR_CODE_COUNT; code++) {
        const struct error_face *face = error_face((enum error_code)code);
        const struct table_code *row = table_code_of((enum error_code)code);

        assert_string_equal(row->code, face->table_code);
        assert_in_range(row->status, 400, 599);
    }
}

static void codes_of_tables_keep_their_status(void **state UNUSED)
{
    assert_int_equal(table_code_of(ERROR_UNAUTHORIZED)->status, 403);
    assert_int_equal(table_code_of(ERROR_ITEM_EXISTS)->status, 409);
    assert_int_equal(table_code_of(ERROR_TOO_MANY_REQUESTS)->status, 429);
    assert_int_equal(table_code_of(ERROR_FENCED)->status, 503);
    assert_int_equal(table_code_of(ERROR_LOGICAL_PARTITION_FULL)->status, 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_a_code_of_the_api),
        cmocka_unit_test(codes_of_tables_keep_their_status),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
