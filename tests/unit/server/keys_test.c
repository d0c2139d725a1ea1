#include "server/keys.h"

#include "server/file.h"
#include "support/check.h"
#include "support/scratch.h"

#include <sys/stat.h>

static void the_key_of_a_directory_is_made_once(void **state UNUSED)
{
    CLEANUP(scratch_done) struct scratch scratch;
    struct keys first, second;
    struct error err;
    struct stat status;

    scratch_init(&scratch);
    assert_ok(keys_load(scratch.path, &first, &err), &err);
    assert_ok(keys_load(scratch.path, &second, &err), &err);
    assert_string_equal(first.primary, second.primary);
    assert_int_equal(strlen(first.primary), KEYS_TEXT_SIZE - 1);
    assert_int_equal(stat(first.path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
}

static void without_a_directory_each_key_is_another(void **state UNUSED)
{
    struct keys first, second;
    struct error err;

    assert_ok(keys_load(NULL, &first, &err), &err);
    assert_ok(keys_load(NULL, &second, &err), &err);
    assert_string_not_equal(first.primary, second.primary);
    assert_string_equal(first.path, "");
}

static void a_key_others_can_read_is_refused(void **state UNUSED)
{
    CLEANUP(scratch_done) struct scratch scratch;
    struct keys keys;
    struct error err;

    scratch_init(&scratch);
    assert_ok(keys_load(scratch.path, &keys, &err), &err);
    assert_int_equal(chmod(keys.path, 0640), 0);
    assert_fails(keys_load(scratch.path, &keys, &err), &err, ERROR_CONFIGURATION);
    assert_contains(err.message, "chmod 600");
}

static void a_broken_file_is_refused_and_kept(void **state UNUSED)
{
    static const char *const texts[] = {"", "\n", "primary\n", "primary short\n", "secondary x\n"};
    CLEANUP(scratch_done) struct scratch scratch;
    struct keys keys;
    struct error err;

    scratch_init(&scratch);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CLEANUP(buf_done) struct buf left;

        buf_init(&left, BUF_DEFAULT_MAX);
        assert_ok(server_file_write_private(scratch_path(&scratch, "keys"), slice_of_text(texts[i]),
                                            &err),
                  &err);
        assert_fails(keys_load(scratch.path, &keys, &err), &err, ERROR_CONFIGURATION);
        assert_ok(server_file_read(scratch_path(&scratch, "keys"), &left, &err), &err);
        assert_slice_equal(buf_slice(&left), slice_of_text(texts[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_key_of_a_directory_is_made_once),
        cmocka_unit_test(without_a_directory_each_key_is_another),
        cmocka_unit_test(a_key_others_can_read_is_refused),
        cmocka_unit_test(a_broken_file_is_refused_and_kept),
    };
    return cmocka_run_group_tests_name("server/keys", tests, NULL, NULL);
}
