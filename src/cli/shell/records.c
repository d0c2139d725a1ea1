#include "cli/shell/records.h"

#include "base/memory.h"
#include "cli/shell/csv.h"
#include "document/json.h"

#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>

enum { ITEM_BYTES_MAX = 16 * 1024 * 1024 };

struct shell_records {
    const char *name; /* for messages */
    FILE *file;
    enum shell_file_kind kind;
    const char *columns_text;
    uint64_t line;  /* the present one, from 1 */
    uint64_t begin; /* the line on which the present item began */
    uint64_t count;
    struct buf text; /* of the present item */
    bool in_array;
    struct shell_csv_row header, row;
};

enum shell_file_kind shell_file_kind_of(enum shell_file_kind given, const char *path)
{
    size_t length = strlen(path);

    if (given != SHELL_FILE_BY_NAME)
        return given;
    return length >= 4 && strcasecmp(path + length - 4, ".csv") == 0 ? SHELL_FILE_CSV
                                                                     : SHELL_FILE_JSON;
}

uint64_t shell_records_line(const struct shell_records *records)
{
    return records->begin;
}

uint64_t shell_records_place(const struct shell_records *records)
{
    off_t place = ftello(records->file);

    return place > 0 ? (uint64_t)place : 0;
}

uint64_t shell_records_size(const struct shell_records *records)
{
    struct stat status;

    return fstat(fileno(records->file), &status) == 0 && S_ISREG(status.st_mode)
               ? (uint64_t)status.st_size
               : 0;
}

void shell_records_close(struct shell_records *records)
{
    if (!records)
        return;
    if (records->file && records->file != stdin)
        fclose(records->file);
    buf_done(&records->text);
    shell_csv_row_done(&records->header);
    shell_csv_row_done(&records->row);
    memory_free(records);
}

static bool fault(struct shell_records *records, struct error *err)
{
    return error_prefix(err, "%s, line %llu", records->name, (unsigned long long)records->begin);
}

/* --- Beginning ------------------------------------------------------------------------------- */

static void mark_skip(FILE *file)
{
    static const uint8_t mark[] = {0xEF, 0xBB, 0xBF};
    int c = getc(file);

    if (c != mark[0]) {
        ungetc(c, file);
        return;
    }
    (void)getc(file);
    (void)getc(file);
}

static bool header_check(struct shell_records *records, struct error *err)
{
    const struct shell_csv_row *header = &records->header;

    for (size_t i = 0; i < header->count; i++) {
        struct slice name = shell_csv_text(header, i);

        if (name.len == 0 || memchr(name.data, '\0', name.len))
            return error_set(err, ERROR_BAD_REQUEST, "column %zu of the header has no name", i + 1);
        for (size_t j = 0; j < i; j++)
            if (slice_equal(name, shell_csv_text(header, j)))
                return error_set(err, ERROR_DUPLICATE_PROPERTY, "the header names \"%.*s\" twice",
                                 SLICE_ARG(name));
    }
    return true;
}

/* Reads what comes before the first item. */
static bool records_begin(struct shell_records *records, struct error *err)
{
    bool end = false;

    records->line = records->begin = 1;
    records->in_array = false;
    records->count = 0;
    mark_skip(records->file);
    if (records->kind != SHELL_FILE_CSV)
        return true;
    if (!shell_csv_read(records->file, &records->header, &records->line, &end, err))
        return fault(records, err);
    if (end)
        return error_set(err, ERROR_BAD_REQUEST, "%s has no header row", records->name);
    return header_check(records, err) || fault(records, err);
}

bool shell_records_open(const char *path, enum shell_file_kind kind, const char *columns_text,
                        struct shell_records **ret_records, struct error *err)
{
    CLEANUP(shell_records_close) struct shell_records *records = MEMORY_NEW(struct shell_records);
    bool standard = strcmp(path, "-") == 0;

    records->name = standard ? "standard input" : path;
    records->columns_text = columns_text;
    buf_init(&records->text, ITEM_BYTES_MAX);
    shell_csv_row_init(&records->header);
    shell_csv_row_init(&records->row);
    records->kind = shell_file_kind_of(kind, path);
    records->file = standard ? stdin : fopen(path, "re");
    if (!records->file)
        return error_set_errno(err, ERROR_SYSTEM, "file \"%s\" cannot be opened", path);
    if (!records_begin(records, err))
        return false;
    *ret_records = TAKE(records);
    return true;
}

bool shell_records_rewind(struct shell_records *records)
{
    struct error ignored;

    return shell_records_size(records) > 0 && fseeko(records->file, 0, SEEK_SET) == 0 &&
           records_begin(records, &ignored);
}

/* --- JSON ------------------------------------------------------------------------------------ */

static int visible_next(struct shell_records *records)
{
    int c;

    do {
        c = getc(records->file);
        records->line += c == '\n';
    } while (c == ' ' || c == '\t' || c == '\n' || c == '\r');
    return c;
}

/* What stands between items: nothing, or in an array commas and brackets. *ret_first: the first
 * character of the next item, or EOF. */
static bool between(struct shell_records *records, int *ret_first, struct error *err)
{
    int c = visible_next(records);

    if (records->count == 0 && c == '[') {
        records->in_array = true;
        c = visible_next(records);
    } else if (records->in_array && c == ',') {
        *ret_first = visible_next(records);
        return *ret_first != EOF || error_set(err, ERROR_BAD_JSON, "the array does not end");
    } else if (records->in_array && c != ']') {
        return error_set(err, ERROR_BAD_JSON, "expected a comma or the end of the array");
    }
    if (records->in_array && c == EOF)
        return error_set(err, ERROR_BAD_JSON, "the array does not end");
    if (records->in_array && c == ']') {
        c = visible_next(records);
        if (c != EOF)
            return error_set(err, ERROR_BAD_JSON, "something follows the array");
    }
    *ret_first = c;
    return true;
}

/* The text of the object that begins with c, which is a brace: up to the one that closes it. */
static bool object_read(struct shell_records *records, int c, struct error *err)
{
    bool in_text = false, escaped = false;
    size_t depth = 0;

    buf_clear(&records->text);
    for (;; c = getc(records->file)) {
        if (c == EOF)
            return error_set(err, ERROR_BAD_JSON, "the object does not end");
        records->line += c == '\n';
        buf_append_byte(&records->text, (uint8_t)c);
        if (escaped)
            escaped = false;
        else if (in_text && c == '\\')
            escaped = true;
        else if (c == '"')
            in_text = !in_text;
        else if (!in_text && (c == '{' || c == '['))
            depth++;
        else if (!in_text && (c == '}' || c == ']') && --depth == 0)
            break;
        if (buf_overflowed(&records->text))
            return error_set(err, ERROR_TOO_LARGE, "an item is larger than %d bytes",
                             ITEM_BYTES_MAX);
    }
    return true;
}

static bool json_next(struct shell_records *records, struct buf *item, bool *ret_end,
                      struct error *err)
{
    int c = EOF;

    if (!between(records, &c, err))
        return false;
    records->begin = records->line;
    *ret_end = c == EOF;
    if (c == EOF)
        return !ferror(records->file) ||
               error_set_errno(err, ERROR_SYSTEM, "the file cannot be read");
    if (c != '{')
        return error_set(err, ERROR_BAD_JSON, "an item must be an object, and begin with {");
    return object_read(records, c, err) &&
           document_json_read(buf_slice(&records->text), NULL, item, err);
}

/* --- CSV ------------------------------------------------------------------------------------- */

/* Ids are text always: items are not taken with others. */
static bool is_text_column(const struct shell_records *records, struct slice name)
{
    struct slice list = slice_of_text(records->columns_text ? records->columns_text : ""), first;

    if (slice_equal(name, SLICE("id")))
        return true;
    while (slice_split(list, ',', &first, &list))
        if (slice_equal(slice_trim(first), name))
            return true;
    return list.len && slice_equal(slice_trim(list), name);
}

static bool csv_next(struct shell_records *records, struct buf *item, bool *ret_end,
                     struct error *err)
{
    const struct shell_csv_row *header = &records->header, *row = &records->row;
    size_t begin;

    records->begin = records->line;
    if (!shell_csv_read(records->file, &records->row, &records->line, ret_end, err))
        return false;
    if (*ret_end)
        return true;
    if (row->count != header->count)
        return error_set(err, ERROR_BAD_REQUEST, "the row has %zu fields, the header %zu",
                         row->count, header->count);
    begin = document_begin(item);
    for (size_t i = 0; i < row->count; i++) {
        struct slice name = shell_csv_text(header, i);

        shell_csv_property(item, name, shell_csv_text(row, i), row->fields[i].quoted,
                           is_text_column(records, name));
    }
    document_end(item, begin);
    return document_validate(buf_slice(item), NULL, err);
}

bool shell_records_next(struct shell_records *records, struct buf *item, bool *ret_end,
                        struct error *err)
{
    bool good;

    buf_clear(item);
    good = records->kind == SHELL_FILE_CSV ? csv_next(records, item, ret_end, err)
                                           : json_next(records, item, ret_end, err);
    records->count++;
    return good || fault(records, err);
}
