/* Rows of CSV become properties; written as CSV again they read as the same properties. The same
 * bytes as lines of a shell give statements that are never empty. */
#include "cli/shell/csv.h"
#include "cli/shell/statement.h"
#include "document/json.h"
#include "fuzz/fuzz.h"

static void properties_make(const struct shell_csv_row *row, size_t count, struct buf *document)
{
    size_t begin = document_begin(document);

    for (size_t i = 0; i < count; i++) {
        char key[16];

        snprintf(key, sizeof key, "p%zu", i);
        shell_csv_property(document, slice_of_text(key), shell_csv_text(row, i),
                           row->fields[i].quoted, false);
    }
    document_end(document, begin);
}

/* The same columns, each in the form an export gives it. */
static void row_write(struct slice document, size_t count, struct buf *out)
{
    for (size_t i = 0; i < count; i++) {
        struct document_value value = document_undefined();
        char key[16];

        snprintf(key, sizeof key, "p%zu", i);
        (void)document_find(document, slice_of_text(key), &value);
        if (i)
            BUF_APPEND(out, ",");
        shell_csv_write(&value, out);
    }
    BUF_APPEND(out, ",end\r\n"); /* a row of one empty field would be an empty line */
}

static void row_check(const struct shell_csv_row *row)
{
    CLEANUP(buf_done) struct buf first;
    CLEANUP(buf_done) struct buf second;
    CLEANUP(buf_done) struct buf text;
    CLEANUP(buf_done) struct buf json;
    struct shell_csv_row again;
    size_t count = MIN(row->count, (size_t)SHELL_CSV_COLUMNS_MAX - 1);
    uint64_t line = 1;
    struct error err;
    FILE *file;
    bool end;

    buf_init(&first, BUF_DEFAULT_MAX);
    buf_init(&second, BUF_DEFAULT_MAX);
    buf_init(&text, BUF_DEFAULT_MAX);
    buf_init(&json, BUF_DEFAULT_MAX);
    properties_make(row, count, &first);
    if (!document_validate(buf_slice(&first), NULL, &err))
        return; /* bytes that are no UTF-8: an import refuses them */
    row_write(buf_slice(&first), count, &text);
    shell_csv_row_init(&again);
    file = fmemopen(text.data, text.len, "r");
    FUZZ_CHECK(shell_csv_read(file, &again, &line, &end, &err) && !end);
    FUZZ_CHECK(again.count == count + 1);
    properties_make(&again, count, &second);
    fclose(file);
    /* As JSON: 1.0 goes out as 1, which is the same number of another type. */
    buf_clear(&text);
    document_json_write(buf_slice(&first), &text);
    document_json_write(buf_slice(&second), &json);
    FUZZ_CHECK(slice_equal(buf_slice(&text), buf_slice(&json)));
    shell_csv_row_done(&again);
}

static void statements_check(struct slice text)
{
    struct shell_statements statements;
    struct slice line, statement;
    struct error err;
    bool more = true, any;

    shell_statements_init(&statements, text.len % 2);
    while (more) {
        more = slice_split(text, '\n', &line, &text);
        shell_statements_feed(&statements, more ? line : text);
        while (shell_statement_next(&statements, &statement))
            FUZZ_CHECK(statement.len > 0);
    }
    FUZZ_CHECK(!shell_statements_end(&statements, &statement, &any, &err) || !any ||
               statement.len > 0);
    shell_statements_done(&statements);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FILE *file = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;
    struct shell_csv_row row;
    uint64_t line = 1;
    struct error err;
    bool end = false;

    shell_csv_row_init(&row);
    while (file && shell_csv_read(file, &row, &line, &end, &err) && !end)
        row_check(&row);
    shell_csv_row_done(&row);
    if (file)
        fclose(file);
    statements_check(slice_of(data, size));
    return 0;
}
