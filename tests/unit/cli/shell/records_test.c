#include "cli/shell/records.h"

#include "document/json.h"
#include "support/check.h"

#include <unistd.h>

enum { PATH_SIZE = 64 };

static void file_make(const char *text, const char *suffix, char path[PATH_SIZE])
{
    int fd;

    snprintf(path, PATH_SIZE, "/tmp/orrery-records-XXXXXX%s", suffix);
    fd = mkstemps(path, (int)strlen(suffix));
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* All items as JSON with their lines: "1:{...} 2:{...} ". */
static bool items_read(struct shell_records *records, struct buf *got, struct error *err)
{
    CLEANUP(buf_done) struct buf item;
    bool end = false;

    buf_init(&item, BUF_DEFAULT_MAX);
    for (;;) {
        if (!shell_records_next(records, &item, &end, err))
            return false;
        if (end)
            return true;
        buf_printf(got, "%llu:", (unsigned long long)shell_records_line(records));
        document_json_write(buf_slice(&item), got);
        BUF_APPEND(got, " ");
    }
}

static void expect(const char *suffix, const char *text, const char *expected)
{
    CLEANUP(shell_records_close) struct shell_records *records = NULL;
    CLEANUP(buf_done) struct buf got;
    char path[PATH_SIZE];
    struct error err;

    buf_init(&got, BUF_DEFAULT_MAX);
    file_make(text, suffix, path);
    assert_ok(shell_records_open(path, SHELL_FILE_BY_NAME, "zip", &records, &err), &err);
    assert_ok(items_read(records, &got, &err), &err);
    assert_slice_equal(buf_slice(&got), slice_of_text(expected));
    buf_clear(&got);
    if (strlen(text)) { /* a second time, as importing does */
        assert_true(shell_records_rewind(records));
        assert_ok(items_read(records, &got, &err), &err);
        assert_slice_equal(buf_slice(&got), slice_of_text(expected));
    }
    unlink(path);
}

static void expect_fault(const char *suffix, const char *text, const char *words)
{
    CLEANUP(shell_records_close) struct shell_records *records = NULL;
    CLEANUP(buf_done) struct buf got;
    char path[PATH_SIZE];
    struct error err;

    buf_init(&got, BUF_DEFAULT_MAX);
    file_make(text, suffix, path);
    assert_false(shell_records_open(path, SHELL_FILE_BY_NAME, NULL, &records, &err) &&
                 items_read(records, &got, &err));
    assert_contains(err.message, words);
    unlink(path);
}

static void json_comes_in_lines_or_over_lines_or_in_an_array(void **state UNUSED)
{
    expect(".jsonl", "{\"a\":1}\n{\"a\":2}\n", "1:{\"a\":1} 2:{\"a\":2} ");
    expect(".json", "{\n \"a\": \"}\\\"{\"\n}\n\n{\"b\":[{}]}",
           "1:{\"a\":\"}\\\"{\"} 5:{\"b\":[{}]} ");
    expect(".json", "[{\"a\":1},\n{\"a\":2}]\n", "1:{\"a\":1} 2:{\"a\":2} ");
    expect(".json", " [ ] ", "");
    expect(".json", "", "");
    expect(".json", "\xEF\xBB\xBF{}", "1:{} ");
}

static void broken_json_is_told_with_its_line(void **state UNUSED)
{
    expect_fault(".json", "{\"a\":1}\n{\"a\":}\n", "line 2: ");
    expect_fault(".json", "{\"a\":1}\n5\n", "line 2: an item must be an object");
    expect_fault(".json", "{\"a\":1", "the object does not end");
    expect_fault(".json", "[{\"a\":1}", "expected a comma or the end of the array");
    expect_fault(".json", "[{\"a\":1} {}]", "expected a comma or the end of the array");
    expect_fault(".json", "[{}] {}", "something follows the array");
    expect_fault(".json", "[{},]", "an item must be an object");
    expect_fault(".json", "{\"a\":1,\"a\":2}", "a");
}

static void csv_takes_names_from_its_header(void **state UNUSED)
{
    expect(
        ".csv", "id,zip,n,gone\r\n1,12345,5,\r\n\"2\",,\"x\ny\",true\r\n3,x,null,0\r\n",
        "2:{\"id\":\"1\",\"zip\":\"12345\",\"n\":5} 3:{\"id\":\"2\",\"n\":\"x\\ny\",\"gone\":true} "
        "5:{\"id\":\"3\",\"zip\":\"x\",\"n\":null,\"gone\":0} ");
    expect(".CSV", "\xEF\xBB\xBFid\n7\n", "2:{\"id\":\"7\"} ");
}

static void broken_csv_is_told_with_its_line(void **state UNUSED)
{
    expect_fault(".csv", "", "has no header row");
    expect_fault(".csv", "a,a\n1,2\n", "names \"a\" twice");
    expect_fault(".csv", "a,,b\n", "column 2 of the header has no name");
    expect_fault(".csv", "a,b\n1,2\n1\n", "line 3: the row has 1 fields, the header 2");
    expect_fault(".csv", "a\n\"x", "line 2: a quoted field does not end");
    expect_fault(".csv", "a\n\xFF\n", "line 2: ");
}

static void the_name_tells_what_a_file_is_unless_it_is_given(void **state UNUSED)
{
    assert_int_equal(shell_file_kind_of(SHELL_FILE_BY_NAME, "a.csv"), SHELL_FILE_CSV);
    assert_int_equal(shell_file_kind_of(SHELL_FILE_BY_NAME, "a.ndjson"), SHELL_FILE_JSON);
    assert_int_equal(shell_file_kind_of(SHELL_FILE_BY_NAME, "-"), SHELL_FILE_JSON);
    assert_int_equal(shell_file_kind_of(SHELL_FILE_CSV, "-"), SHELL_FILE_CSV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_comes_in_lines_or_over_lines_or_in_an_array),
        cmocka_unit_test(broken_json_is_told_with_its_line),
        cmocka_unit_test(csv_takes_names_from_its_header),
        cmocka_unit_test(broken_csv_is_told_with_its_line),
        cmocka_unit_test(the_name_tells_what_a_file_is_unless_it_is_given),
    };
    return cmocka_run_group_tests_name("cli/shell/records", tests, NULL, NULL);
}
