#include "front/mongo/error.h"

#include "support/check.h"

static void a_refusal_has_mongos_code_and_name(void **state UNUSED)
{
    char text[MONGO_CODE_NAME_SIZE];
    struct error err;

    assert_false(mongo_error_set(&err, MONGO_BAD_VALUE, "unknown operator: %s", "$foo"));
    assert_int_equal(mongo_error_code(&err), 2);
    assert_string_equal(mongo_error_name(&err, text), "BadValue");
    assert_string_equal(err.message, "unknown operator: $foo");
}

static void a_code_without_a_name_is_called_by_its_number(void **state UNUSED)
{
    char text[MONGO_CODE_NAME_SIZE];
    struct error err;

    assert_false(mongo_error_set(&err, 40324, "Unrecognized pipeline stage name: '$foo'"));
    assert_string_equal(mongo_error_name(&err, text), "Location40324");
}

static void errors_of_other_rooms_have_their_faces(void **state UNUSED)
{
    char text[MONGO_CODE_NAME_SIZE];
    struct error err;

    error_set(&err, ERROR_ITEM_EXISTS, "there is one");
    assert_int_equal(mongo_error_code(&err), 11000);
    assert_string_equal(mongo_error_name(&err, text), "DuplicateKey");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_has_mongos_code_and_name),
        cmocka_unit_test(a_code_without_a_name_is_called_by_its_number),
        cmocka_unit_test(errors_of_other_rooms_have_their_faces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
