#include "base/directory.h"

#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void file_make(const char *path)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    fclose(file);
}

static void a_tree_goes_and_what_links_point_to_stays(void **state UNUSED)
{
    char root[] = "/tmp/directory_test.XXXXXX", path[128], kept[128];
    struct error err;

    assert_non_null(mkdtemp(root));
    snprintf(kept, sizeof kept, "%s/kept", root);
    file_make(kept);
    snprintf(path, sizeof path, "%s/tree", root);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/tree/below", root);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/tree/below/file", root);
    file_make(path);
    snprintf(path, sizeof path, "%s/tree/link", root);
    assert_int_equal(symlink(root, path), 0);
    snprintf(path, sizeof path, "%s/tree", root);
    assert_ok(directory_remove(path, ERROR_SYSTEM, &err), &err);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(access(kept, F_OK), 0);
    assert_ok(directory_remove(path, ERROR_SYSTEM, &err), &err); /* nothing is there */
    assert_ok(directory_remove(root, ERROR_SYSTEM, &err), &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_goes_and_what_links_point_to_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
