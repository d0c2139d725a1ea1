#include "server/node_paths.h"

#include "support/check.h"
#include "support/scratch.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool allowed(const char *url, const char *directories)
{
    struct error err;
    bool fine = server_node_paths_check(slice_of_text(url), slice_of_text(directories), &err);

    if (!fine)
        assert_int_equal(err.code, ERROR_FORBIDDEN);
    return fine;
}

static void nothing_with_a_path_is_allowed_without_the_setting(void **state UNUSED)
{
    assert_true(allowed("memory:", ""));
    assert_true(allowed("postgresql://orrery:p@west:5432,east/orrery?sslmode=require", ""));
    assert_false(allowed("rocksdb:/tmp/x", ""));
    assert_false(allowed("rocksdb:x", ""));
    assert_false(allowed("postgresql://orrery@/db?host=%2Frun%2Fpostgresql", ""));
    assert_false(allowed("postgresql://%2Frun%2Fpostgresql/db", ""));
    assert_false(allowed("postgresql://west/db?sslkey=/etc/shadow", ""));
    assert_false(allowed("postgresql://west/db?%70assfile=/etc/shadow", ""));
    assert_false(allowed("postgresql://west/db?service=x", ""));
}

static void a_path_is_allowed_below_the_directories_and_nowhere_else(void **state UNUSED)
{
    CLEANUP(scratch_done) struct scratch scratch;
    char directories[256], url[256];

    scratch_init(&scratch);
    assert_int_equal(mkdir(scratch_path(&scratch, "in"), 0700), 0);
    assert_int_equal(mkdir(scratch_path(&scratch, "out"), 0700), 0);
    assert_int_equal(symlink(scratch_path(&scratch, "out"), scratch_path(&scratch, "in/link")), 0);
    (void)snprintf(directories, sizeof directories, "/nowhere, %s/in/", scratch.path);

    (void)snprintf(url, sizeof url, "rocksdb:%s/in/a/b", scratch.path);
    assert_true(allowed(url, directories));
    (void)snprintf(url, sizeof url, "postgresql://o@/db?host=%s/in/socket", scratch.path);
    assert_true(allowed(url, directories));
    (void)snprintf(url, sizeof url, "rocksdb:%s/in", scratch.path);
    assert_false(allowed(url, directories));
    (void)snprintf(url, sizeof url, "rocksdb:%s/inside", scratch.path);
    assert_false(allowed(url, directories));
    (void)snprintf(url, sizeof url, "rocksdb:%s/in/../out/a", scratch.path);
    assert_false(allowed(url, directories));
    (void)snprintf(url, sizeof url, "rocksdb:%s/in/link/a", scratch.path);
    assert_false(allowed(url, directories));
}

static void relative_paths_are_below_the_directory_the_server_runs_in(void **state UNUSED)
{
    CLEANUP(scratch_done) struct scratch scratch;

    scratch_init(&scratch);
    assert_int_equal(chdir(scratch.path), 0);
    assert_true(allowed("rocksdb:x/y", scratch.path));
    assert_false(allowed("rocksdb:x/y", "/nowhere"));
    assert_true(allowed("rocksdb:data/b", "data"));
    assert_int_equal(chdir("/"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_with_a_path_is_allowed_without_the_setting),
        cmocka_unit_test(a_path_is_allowed_below_the_directories_and_nowhere_else),
        cmocka_unit_test(relative_paths_are_below_the_directory_the_server_runs_in),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
