#include "cli/shell/csv.h"

#include "document/json.h"
#include "support/check.h"

/* The fields of all rows: quoted ones in brackets, ' ' between fields, '|' behind rows. */
static bool read_all(const char *text, struct buf *got, struct error *err)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    struct shell_csv_row row;
    uint64_t line = 1;
    bool good, end = false;

    shell_csv_row_init(&row);
    while ((good = shell_csv_read(file, &row, &line, &end, err)) && !end) {
        for (size_t i = 0; i < row.count; i++) {
            buf_append_text(got, i ? " " : "");
            buf_append_text(got, row.fields[i].quoted ? "[" : "");
            buf_append_slice(got, shell_csv_text(&row, i));
            buf_append_text(got, row.fields[i].quoted ? "]" : "");
        }
        BUF_APPEND(got, "|");
    }
    shell_csv_row_done(&row);
    fclose(file);
    return good;
}

static void rows_are_read_as_rfc_4180_has_them(void **state UNUSED)
{
    static const struct {
        const char *text, *rows;
    } cases[] = {
        {"a,b\r\n1,2\r\n", "a b|1 2|"},
        {"a,b\n1,2", "a b|1 2|"},
        {"a,,c\n,,\n", "a  c|  |"},
        {"\"a\",\"b,c\"\n", "[a] [b,c]|"},
        {"\"a\"\"b\"\n", "[a\"b]|"},
        {"\"a\nb\",c\n", "[a\nb] c|"},
        {"\"\",\n", "[] |"},
        {"\n\r\na\n\n\nb\n", "a|b|"},
        {" a , b \n", " a   b |"},
        {"\"a\r\nb\"", "[a\r\nb]|"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(buf_done) struct buf got;
        struct error err;

        buf_init(&got, BUF_DEFAULT_MAX);
        assert_ok(read_all(cases[i].text, &got, &err), &err);
        assert_slice_equal(buf_slice(&got), slice_of_text(cases[i].rows));
    }
}

static void what_is_no_csv_is_refused(void **state UNUSED)
{
    static const char *const cases[] = {"a\"b\n", "\"a\"b\n", "\"a", "\"a\" ,b\n", "a\rb\n"};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(buf_done) struct buf got;
        struct error err;

        buf_init(&got, BUF_DEFAULT_MAX);
        assert_fails(read_all(cases[i], &got, &err), &err, ERROR_BAD_REQUEST);
    }
}

static void a_row_has_limits(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf text;
    CLEANUP(buf_done) struct buf got;
    struct error err;

    buf_init(&text, BUF_DEFAULT_MAX);
    buf_init(&got, BUF_DEFAULT_MAX);
    for (int i = 0; i <= SHELL_CSV_COLUMNS_MAX; i++)
        BUF_APPEND(&text, "x,");
    buf_append_byte(&text, '\0');
    assert_fails(read_all((char *)text.data, &got, &err), &err, ERROR_TOO_LARGE);
    buf_clear(&text);
    for (int i = 0; i <= SHELL_CSV_ROW_BYTES_MAX / 64; i++)
        buf_printf(&text, "%064d", i);
    buf_append_byte(&text, '\0');
    assert_fails(read_all((char *)text.data, &got, &err), &err, ERROR_TOO_LARGE);
}

/* What a field becomes, as JSON of an object. */
static void expect_property(const char *field, bool quoted, bool text, const char *json)
{
    CLEANUP(buf_done) struct buf document;
    CLEANUP(buf_done) struct buf got;
    size_t begin;

    buf_init(&document, BUF_DEFAULT_MAX);
    buf_init(&got, BUF_DEFAULT_MAX);
    begin = document_begin(&document);
    shell_csv_property(&document, SLICE("x"), slice_of_text(field), quoted, text);
    document_end(&document, begin);
    document_json_write(buf_slice(&document), &got);
    assert_slice_equal(buf_slice(&got), slice_of_text(json));
}

static void fields_get_types_by_the_documented_rule(void **state UNUSED)
{
    expect_property("", false, false, "{}");
    expect_property("", true, false, "{\"x\":\"\"}");
    expect_property("true", false, false, "{\"x\":true}");
    expect_property("false", false, false, "{\"x\":false}");
    expect_property("null", false, false, "{\"x\":null}");
    expect_property("True", false, false, "{\"x\":\"True\"}");
    expect_property("12", false, false, "{\"x\":12}");
    expect_property("-1.50", false, false, "{\"x\":-1.5}");
    expect_property("1e3", false, false, "{\"x\":1000}");
    expect_property("9223372036854775807", false, false, "{\"x\":9223372036854775807}");
    expect_property("9223372036854775808", false, false, "{\"x\":\"9223372036854775808\"}");
    expect_property("1e999", false, false, "{\"x\":\"1e999\"}");
    expect_property("007", false, false, "{\"x\":\"007\"}");
    expect_property("+1", false, false, "{\"x\":\"+1\"}");
    expect_property("-", false, false, "{\"x\":\"-\"}");
    expect_property("1 ", false, false, "{\"x\":\"1 \"}");
    expect_property("12", true, false, "{\"x\":\"12\"}");
    expect_property("true", true, false, "{\"x\":\"true\"}");
    expect_property("12", false, true, "{\"x\":\"12\"}");
    expect_property("{\"a\":[1]}", true, false, "{\"x\":{\"a\":[1]}}");
    expect_property("[1,2]", true, false, "{\"x\":[1,2]}");
    expect_property("[1]", false, false, "{\"x\":\"[1]\"}");
    expect_property("[1,", true, false, "{\"x\":\"[1,\"}");
    expect_property("\"[1]\"", true, false, "{\"x\":\"[1]\"}");
}

static void what_is_written_reads_as_what_it_was(void **state UNUSED)
{
    static const char *const values[] = {
        "\"\"",    "\"a\"",           "\"a,b\"", "\"a\\\"b\"",    "\"a\\nb\"",        "\"a\\rb\"",
        "\" a \"", "\"12\"",          "\"-0\"",  "\"true\"",      "\"null\"",         "\"007\"",
        "\"[1]\"", "\"[1\"",          "\"{}\"",  "\"\\\"q\\\"\"", "\"\\\"\"",         "12",
        "-0.5",    "1e300",           "1e19",    "-1e20",         "9007199254740993", "true",
        "null",    "{\"a\":\"b,c\"}", "[]",      "[1,\"x\"]",     "\"\\u00fcber\"",
    };

    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        CLEANUP(buf_done) struct buf read;
        CLEANUP(buf_done) struct buf row;
        CLEANUP(buf_done) struct buf back;
        CLEANUP(buf_done) struct buf expected;
        struct shell_csv_row parsed;
        struct document_value value;
        uint64_t line = 1;
        struct error err;
        bool end;
        FILE *file;
        size_t begin;

        buf_init(&read, BUF_DEFAULT_MAX);
        buf_init(&row, BUF_DEFAULT_MAX);
        buf_init(&back, BUF_DEFAULT_MAX);
        buf_init(&expected, BUF_DEFAULT_MAX);
        assert_ok(document_json_read_value(slice_of_text(values[i]), NULL, &read, &value, &err),
                  &err);
        shell_csv_write(&value, &row);
        BUF_APPEND(&row, ",z\r\n");
        file = fmemopen(row.data, row.len, "r");
        shell_csv_row_init(&parsed);
        assert_ok(shell_csv_read(file, &parsed, &line, &end, &err), &err);
        assert_int_equal(parsed.count, 2);
        begin = document_begin(&back);
        shell_csv_property(&back, SLICE(""), shell_csv_text(&parsed, 0), parsed.fields[0].quoted,
                           false);
        document_end(&back, begin);
        assert_slice_equal(buf_slice(&back), buf_slice(&read));
        shell_csv_row_done(&parsed);
        fclose(file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read_as_rfc_4180_has_them),
        cmocka_unit_test(what_is_no_csv_is_refused),
        cmocka_unit_test(a_row_has_limits),
        cmocka_unit_test(fields_get_types_by_the_documented_rule),
        cmocka_unit_test(what_is_written_reads_as_what_it_was),
    };
    return cmocka_run_group_tests_name("cli/shell/csv", tests, NULL, NULL);
}
