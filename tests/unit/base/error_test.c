#include "base/error.h"

#include "support/check.h"

#include <errno.h>

static void set_fills_the_rest_face_of_the_code(void **state UNUSED)
{
    struct error err;

    assert_false(error_set(&err, ERROR_FENCED, "partition %d has moved", 7));
    assert_int_equal(err.status, 410);
    assert_int_equal(err.substatus, 1002);
    assert_string_equal(err.message, "partition 7 has moved");
}

static void a_long_message_is_cut_between_characters(void **state UNUSED)
{
    struct error err;
    char text[2 * ERROR_MESSAGE_SIZE];

    for (size_t i = 0; i + 1 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    text[sizeof text - 2] = '\0';
    error_set(&err, ERROR_BAD_REQUEST, "x%s", text);
    assert_int_equal(strlen(err.message) % 2, 1);
    assert_true(strlen(err.message) > ERROR_MESSAGE_SIZE - 10);
}

static void a_message_holds_two_of_the_longest_names(void **state UNUSED)
{
    struct error err;
    char name[256];

    memset(name, 'n', 255);
    name[255] = '\0';
    error_set(&err, ERROR_BAD_REQUEST, "container \"%s\" of database \"%s\" has no such thing",
              name, name);
    assert_non_null(strstr(err.message, "has no such thing"));
}

static void prefix_puts_context_before(void **state UNUSED)
{
    struct error err;

    error_set(&err, ERROR_STORE_IO, "disk on fire");
    assert_false(error_prefix(&err, "node \"%s\"", "a"));
    assert_string_equal(err.message, "node \"a\": disk on fire");
    assert_int_equal(err.code, ERROR_STORE_IO);
}

static void errno_ends_the_message(void **state UNUSED)
{
    struct error err;

    errno = EACCES;
    error_set_errno(&err, ERROR_SYSTEM, "opening \"%s\"", "x");
    assert_string_equal(err.message, "opening \"x\": Permission denied");
}

static void every_code_has_a_face(void **state UNUSED)
{
    for (enum error_code code = ERROR_NONE + 1; code < ERROR_CODE_COUNT; code++) {
        const struct error_face *face = error_face(code);

        assert_true(face->rest_status >= 400 && face->rest_status < 600);
        assert_true(face->mongo_code > 0 && face->mongo_name[0]);
        assert_true(face->gremlin_status >= 400);
        assert_true(face->table_code[0]);
        assert_true(face->meaning[strlen(face->meaning) - 1] == '.');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_fills_the_rest_face_of_the_code),
        cmocka_unit_test(a_long_message_is_cut_between_characters),
        cmocka_unit_test(a_message_holds_two_of_the_longest_names),
        cmocka_unit_test(prefix_puts_context_before),
        cmocka_unit_test(errno_ends_the_message),
        cmocka_unit_test(every_code_has_a_face),
    };
    return cmocka_run_group_tests_name("base/error", tests, NULL, NULL);
}
