#include "observe/lines.h"

#include "support/check.h"
#include "support/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

static struct lines *opened(const char *path, uint64_t file_bytes_max)
{
    struct lines *lines;
    struct error err;

    assert_ok(lines_new(&(struct lines_options){.path = path,
                                                .file_bytes_max = file_bytes_max,
                                                .waiting_bytes_max = 65536},
                        &lines, &err),
              &err);
    return lines;
}

static size_t lines_in(const char *path)
{
    FILE *file = fopen(path, "re");
    size_t count = 0;
    int c;

    if (!file)
        return 0;
    while ((c = fgetc(file)) != EOF)
        count += c == '\n';
    fclose(file);
    return count;
}

static void every_line_is_in_the_file_when_it_is_closed(void **state UNUSED)
{
    CLEANUP(scratch_done) struct scratch scratch;
    const char *path;
    struct lines *lines;

    scratch_init(&scratch);
    path = scratch_path(&scratch, "access");
    lines = opened(path, 1 << 20);
    for (int i = 0; i < 100; i++)
        lines_add(lines, SLICE("{\"a\":1}"));
    assert_int_equal(lines_lost(lines), 0);
    lines_free(lines);
    assert_int_equal(lines_in(path), 100);
}

static void a_large_file_is_renamed_and_there_are_never_more_than_two(void **state UNUSED)
{
    CLEANUP(scratch_done) struct scratch scratch;
    const char *path;
    struct stat stat_of;

    scratch_init(&scratch);
    path = scratch_path(&scratch, "access");
    for (int i = 0; i < 20; i++) {
        struct lines *lines = opened(path, 100);

        lines_add(lines, SLICE("0123456789012345678901234567890123456789"));
        lines_free(lines);
    }
    assert_int_equal(stat(scratch_path(&scratch, "access.1"), &stat_of), 0);
    assert_true(stat_of.st_size < 200);
    assert_int_equal(stat(path, &stat_of), 0);
    assert_true(stat_of.st_size < 200);
}

static void lines_that_find_no_room_are_counted(void **state UNUSED)
{
    struct lines *lines = opened("/dev/full", 1 << 20);

    for (int i = 0; i < 10; i++)
        lines_add(lines, SLICE("x"));
    while (lines_lost(lines) == 0)
        usleep(1000);
    lines_free(lines);
}

static void a_file_that_cannot_be_made_is_refused(void **state UNUSED)
{
    struct lines *lines;
    struct error err;

    assert_fails(lines_new(&(struct lines_options){.path = "/nowhere/at/all"}, &lines, &err), &err,
                 ERROR_CONFIGURATION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line_is_in_the_file_when_it_is_closed),
        cmocka_unit_test(a_large_file_is_renamed_and_there_are_never_more_than_two),
        cmocka_unit_test(lines_that_find_no_room_are_counted),
        cmocka_unit_test(a_file_that_cannot_be_made_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
