#include "cli/shell/csv.h"

#include "base/memory.h"
#include "document/json.h"
#include "document/json_number.h"

void shell_csv_row_init(struct shell_csv_row *row)
{
    *row = (struct shell_csv_row){
        .fields = memory_alloc(SHELL_CSV_COLUMNS_MAX * sizeof(struct shell_csv_field))};
    buf_init(&row->bytes, SHELL_CSV_ROW_BYTES_MAX);
}

void shell_csv_row_done(struct shell_csv_row *row)
{
    memory_free(row->fields);
    buf_done(&row->bytes);
}

struct slice shell_csv_text(const struct shell_csv_row *row, size_t index)
{
    const struct shell_csv_field *field = &row->fields[index];

    return field->len ? slice_of(row->bytes.data + field->begin, field->len) : SLICE("");
}

/* --- Reading --------------------------------------------------------------------------------- */

static bool field_begin(struct shell_csv_row *row, struct error *err)
{
    if (row->count == SHELL_CSV_COLUMNS_MAX)
        return error_set(err, ERROR_TOO_LARGE, "a row has more than %d fields",
                         SHELL_CSV_COLUMNS_MAX);
    row->fields[row->count++] = (struct shell_csv_field){.begin = row->bytes.len};
    return true;
}

/* Behind the opening quote up to behind the closing one; gives the character after it. */
static bool quoted_read(FILE *file, struct buf *bytes, uint64_t *line, int *ret_next,
                        struct error *err)
{
    for (;;) {
        int c = getc(file);

        if (c == EOF)
            return error_set(err, ERROR_BAD_REQUEST, "a quoted field does not end");
        if (c == '"') {
            c = getc(file);
            if (c != '"') {
                *ret_next = c;
                return true;
            }
        }
        *line += c == '\n';
        buf_append_byte(bytes, (uint8_t)c);
    }
}

static bool bare_read(FILE *file, struct buf *bytes, int *c, struct error *err)
{
    while (*c != EOF && *c != ',' && *c != '\n' && *c != '\r') {
        if (*c == '"')
            return error_set(err, ERROR_BAD_REQUEST,
                             "a quote stands within a field that is not quoted");
        buf_append_byte(bytes, (uint8_t)*c);
        *c = getc(file);
    }
    return true;
}

/* One field; c is its first character, and then what ended it. */
static bool field_read(FILE *file, struct shell_csv_row *row, int *c, uint64_t *line,
                       struct error *err)
{
    struct shell_csv_field *field;

    if (!field_begin(row, err))
        return false;
    field = &row->fields[row->count - 1];
    field->quoted = *c == '"';
    if (field->quoted ? !quoted_read(file, &row->bytes, line, c, err)
                      : !bare_read(file, &row->bytes, c, err))
        return false;
    field->len = row->bytes.len - field->begin;
    if (*c == '\r')
        *c = getc(file) == '\n' ? '\n' : '\r';
    if (*c != ',' && *c != '\n' && *c != EOF)
        return error_set(err, ERROR_BAD_REQUEST,
                         "a field is followed by something other than a comma or the line's end");
    return true;
}

bool shell_csv_read(FILE *file, struct shell_csv_row *row, uint64_t *line, bool *ret_end,
                    struct error *err)
{
    int c = getc(file);

    buf_clear(&row->bytes);
    row->count = 0;
    while (c == '\n' || c == '\r') {
        *line += c == '\n';
        c = getc(file);
    }
    *ret_end = c == EOF;
    if (c == EOF)
        return !ferror(file) || error_set_errno(err, ERROR_SYSTEM, "the file cannot be read");
    while (field_read(file, row, &c, line, err)) {
        if (buf_overflowed(&row->bytes))
            return error_set(err, ERROR_TOO_LARGE, "a row is larger than %d bytes",
                             SHELL_CSV_ROW_BYTES_MAX);
        if (c != ',') {
            *line += c == '\n';
            return true;
        }
        c = getc(file);
    }
    return false;
}

/* --- What a field means ---------------------------------------------------------------------- */

/* A JSON number, all of it, that keeps its value. */
static bool number_of(struct slice text, struct json_number *ret_number)
{
    struct json_fault fault;
    bool whole = true;

    if (text.len == 0 || (text.data[0] != '-' && (text.data[0] < '0' || text.data[0] > '9')) ||
        json_number_read(text.data, text.data + text.len, ret_number, &fault) !=
            text.data + text.len)
        return false;
    for (size_t i = 0; i < text.len; i++)
        whole = whole && text.data[i] != '.' && (text.data[i] | 0x20) != 'e';
    return !whole || ret_number->type != DOCUMENT_DOUBLE || slice_equal(text, SLICE("-0"));
}

static bool is_json(struct slice text)
{
    return text.len >= 2 && (text.data[0] == '{' || text.data[0] == '[' || text.data[0] == '"');
}

static bool json_property(struct buf *document, struct slice key, struct slice field)
{
    CLEANUP(buf_done) struct buf read;
    struct document_value value;
    struct error ignored;

    buf_init(&read, SHELL_CSV_ROW_BYTES_MAX);
    if (!is_json(field) || !document_json_read_value(field, NULL, &read, &value, &ignored))
        return false;
    document_append(document, key, &value);
    return true;
}

static bool bare_property(struct buf *document, struct slice key, struct slice field)
{
    struct json_number number;

    if (slice_equal(field, SLICE("true")) || slice_equal(field, SLICE("false")))
        document_append_bool(document, key, field.len == 4);
    else if (slice_equal(field, SLICE("null")))
        document_append_null(document, key);
    else if (!number_of(field, &number))
        return false;
    else if (number.type == DOCUMENT_DOUBLE)
        document_append_double(document, key, number.real);
    else if (number.type == DOCUMENT_INT32)
        document_append_int32(document, key, (int32_t)number.integer);
    else
        document_append_int64(document, key, number.integer);
    return true;
}

void shell_csv_property(struct buf *document, struct slice key, struct slice field, bool quoted,
                        bool text)
{
    if (!quoted && field.len == 0)
        return;
    if (quoted ? json_property(document, key, field) : !text && bare_property(document, key, field))
        return;
    document_append_string(document, key, field);
}

/* --- Writing --------------------------------------------------------------------------------- */

static void quoted_append(struct slice text, struct buf *out)
{
    BUF_APPEND(out, "\"");
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '"')
            BUF_APPEND(out, "\"");
        buf_append_byte(out, text.data[i]);
    }
    BUF_APPEND(out, "\"");
}

void shell_csv_write_text(struct slice text, struct buf *out)
{
    bool quoted = text.len == 0;

    for (size_t i = 0; i < text.len; i++)
        quoted = quoted || text.data[i] == '"' || text.data[i] == ',' || text.data[i] == '\r' ||
                 text.data[i] == '\n';
    if (quoted)
        quoted_append(text, out);
    else
        buf_append_slice(out, text);
}

/* Would it be read as something else if it were not quoted? */
static bool looks_typed(struct slice text)
{
    CLEANUP(buf_done) struct buf scratch;

    buf_init(&scratch, 1024);
    return bare_property(&scratch, SLICE("x"), text);
}

static void text_append(struct slice text, struct buf *out)
{
    CLEANUP(buf_done) struct buf scratch;

    buf_init(&scratch, BUF_DEFAULT_MAX);
    if (json_property(&scratch, SLICE("x"), text)) {
        /* Text that is itself JSON is written as JSON of that text. */
        buf_clear(&scratch);
        document_json_write_string(text, &scratch);
        quoted_append(buf_slice(&scratch), out);
    } else if (looks_typed(text)) {
        quoted_append(text, out);
    } else {
        shell_csv_write_text(text, out);
    }
}

void shell_csv_write(const struct document_value *value, struct buf *out)
{
    CLEANUP(buf_done) struct buf json;
    struct json_number number;

    buf_init(&json, BUF_DEFAULT_MAX);
    if (value->type == DOCUMENT_UNDEFINED)
        return;
    if (value->type == DOCUMENT_STRING) {
        text_append(value->text, out);
        return;
    }
    document_json_write_value(value, &json);
    if (is_json(buf_slice(&json))) {
        quoted_append(buf_slice(&json), out);
        return;
    }
    buf_append_slice(out, buf_slice(&json));
    if (document_is_number(value) && !number_of(buf_slice(&json), &number))
        BUF_APPEND(out, ".0"); /* a double beyond 64 bits, which would be text without it */
}
