/* JSON lines are written as they come. CSV needs all columns before its first row, so rows wait in
 * a temporary file, each as its BSON, until the last one is there. */
#include "base/bytes.h"
#include "base/clock.h"
#include "cli/shell/csv.h"
#include "cli/shell/progress.h"
#include "cli/shell/transfer.h"
#include "definition/names.h"
#include "document/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE_ROWS = 1000, COLUMN_BYTES_MAX = 1024 * 1024 };

struct exporting {
    const struct shell_transfer *transfer;
    FILE *file;
    char *part; /* the name the file has until it is whole; NULL: standard output */
    FILE *spool;
    struct arena *names; /* owned */
    struct slice *columns;
    size_t column_count;
    struct shell_progress progress;
    struct buf out;
};

static void exporting_done(struct exporting *exporting)
{
    if (exporting->spool)
        fclose(exporting->spool);
    if (exporting->part) {
        if (exporting->file)
            fclose(exporting->file);
        unlink(exporting->part);
        memory_free(exporting->part);
    }
    buf_done(&exporting->out);
    arena_free(exporting->names);
    memory_free(exporting->columns);
}
CLEANUP_VALUE_FN(struct exporting, exporting_done)

/* --- The file -------------------------------------------------------------------------------- */

static bool file_open(struct exporting *exporting, struct error *err)
{
    const char *path = exporting->transfer->path;
    mode_t mask;
    size_t size;
    int fd;

    if (strcmp(path, "-") == 0) {
        exporting->file = stdout;
        return true;
    }
    size = strlen(path) + 8;
    exporting->part = memory_alloc(size);
    snprintf(exporting->part, size, "%s.XXXXXX", path);
    fd = mkstemp(exporting->part);
    if (fd < 0) {
        memory_free(TAKE(exporting->part));
        return error_set_errno(err, ERROR_SYSTEM, "file \"%s\" cannot be made", path);
    }
    mask = umask(0); /* there is no other way to look at it */
    umask(mask);
    (void)fchmod(fd, 0666 & ~mask);
    exporting->file = fdopen(fd, "w");
    assert(exporting->file);
    return true;
}

static bool write_failed(const struct exporting *exporting, struct error *err)
{
    return error_set_errno(err, ERROR_SYSTEM, "file \"%s\" cannot be written",
                           exporting->transfer->path);
}

static bool out_write(struct exporting *exporting, struct error *err)
{
    bool good = exporting->out.len == 0 ||
                fwrite(exporting->out.data, exporting->out.len, 1, exporting->file) == 1;

    if (buf_overflowed(&exporting->out))
        return error_set(err, ERROR_TOO_LARGE, "a row is larger than %zu bytes",
                         exporting->out.max);
    buf_clear(&exporting->out);
    return good || write_failed(exporting, err);
}

static bool file_finish(struct exporting *exporting, struct error *err)
{
    FILE *file = TAKE(exporting->file);

    if (!exporting->part)
        return fflush(file) == 0 || write_failed(exporting, err);
    if (fclose(file) != 0 || rename(exporting->part, exporting->transfer->path) != 0)
        return write_failed(exporting, err);
    memory_free(TAKE(exporting->part));
    return true;
}

/* --- Rows ------------------------------------------------------------------------------------ */

static bool is_system(struct slice name)
{
    return document_names_system(definition_names(DEFINITION_IDENTITY_ID), name) <
           DOCUMENT_SYSTEM_SHOWN;
}

/* Without system properties, unless they are wanted. scratch holds it. */
static struct document_value row_shown(const struct exporting *exporting,
                                       const struct document_value *row, struct buf *scratch)
{
    struct document_iter iter;
    size_t begin;

    if (row->type != DOCUMENT_OBJECT || exporting->transfer->system)
        return *row;
    buf_clear(scratch);
    begin = document_begin(scratch);
    document_iter_init(&iter, row->document);
    while (document_iter_next(&iter))
        if (!is_system(iter.key))
            document_append(scratch, iter.key, &iter.value);
    document_end(scratch, begin);
    return document_object(buf_slice(scratch));
}

/* Most rows have the columns of the one before, in the same order: hint is where to look first. */
static bool column_note(struct exporting *exporting, struct slice name, size_t *hint,
                        struct error *err)
{
    for (size_t i = 0; i < exporting->column_count; i++) {
        size_t at = (*hint + i) % exporting->column_count;

        if (!slice_equal(exporting->columns[at], name))
            continue;
        *hint = at + 1;
        return true;
    }
    if (exporting->column_count == SHELL_CSV_COLUMNS_MAX ||
        arena_used(exporting->names) > COLUMN_BYTES_MAX)
        return error_set(err, ERROR_TOO_LARGE,
                         "the rows have more than %d different properties: name those you want in "
                         "the query, or export JSON",
                         SHELL_CSV_COLUMNS_MAX);
    exporting->columns[exporting->column_count++] = arena_copy(exporting->names, name);
    return true;
}

static bool row_spool(struct exporting *exporting, const struct document_value *row,
                      struct error *err)
{
    struct document_iter iter;
    size_t hint = 0;

    if (row->type != DOCUMENT_OBJECT)
        return error_set(err, ERROR_BAD_REQUEST,
                         "row %llu is no object: CSV takes queries whose rows have columns",
                         (unsigned long long)exporting->progress.items + 1);
    document_iter_init(&iter, row->document);
    while (document_iter_next(&iter))
        if (!column_note(exporting, iter.key, &hint, err))
            return false;
    return fwrite(row->document.data, row->document.len, 1, exporting->spool) == 1 ||
           error_set_errno(err, ERROR_SYSTEM, "the temporary file cannot be written");
}

static bool rows_take(struct exporting *exporting, struct slice rows, struct error *err)
{
    CLEANUP(buf_done) struct buf scratch;
    struct document_iter iter;

    buf_init(&scratch, BUF_DEFAULT_MAX);
    document_iter_init(&iter, rows);
    while (document_iter_next(&iter)) {
        struct document_value row = row_shown(exporting, &iter.value, &scratch);

        if (exporting->spool) {
            if (!row_spool(exporting, &row, err))
                return false;
        } else {
            document_json_write_value(&row, &exporting->out);
            BUF_APPEND(&exporting->out, "\n");
            if (!out_write(exporting, err))
                return false;
        }
        exporting->progress.items++;
    }
    return true;
}

/* --- CSV at the end -------------------------------------------------------------------------- */

static bool header_write(struct exporting *exporting, struct error *err)
{
    for (size_t i = 0; i < exporting->column_count; i++) {
        if (i)
            BUF_APPEND(&exporting->out, ",");
        shell_csv_write_text(exporting->columns[i], &exporting->out);
    }
    BUF_APPEND(&exporting->out, "\r\n");
    return out_write(exporting, err);
}

static bool spooled_read(struct exporting *exporting, struct buf *row, bool *ret_end,
                         struct error *err)
{
    uint8_t length[4];
    size_t size;

    buf_clear(row);
    *ret_end = fread(length, sizeof length, 1, exporting->spool) != 1;
    if (*ret_end)
        return true;
    size = bytes_get_le32(length);
    buf_append(row, length, sizeof length);
    if (size < 5 || !buf_reserve(row, size - 4) ||
        fread(row->data + 4, size - 4, 1, exporting->spool) != 1)
        return error_set(err, ERROR_SYSTEM, "the temporary file cannot be read back");
    row->len = size;
    return true;
}

static bool csv_write(struct exporting *exporting, struct error *err)
{
    CLEANUP(buf_done) struct buf row;
    bool end = false;

    buf_init(&row, BUF_DEFAULT_MAX);
    if (fflush(exporting->spool) != 0 || fseeko(exporting->spool, 0, SEEK_SET) != 0)
        return error_set_errno(err, ERROR_SYSTEM, "the temporary file cannot be read back");
    if (!header_write(exporting, err))
        return false;
    while (spooled_read(exporting, &row, &end, err)) {
        if (end)
            return true;
        for (size_t i = 0; i < exporting->column_count; i++) {
            struct document_value value;

            if (i)
                BUF_APPEND(&exporting->out, ",");
            if (document_find(buf_slice(&row), exporting->columns[i], &value))
                shell_csv_write(&value, &exporting->out);
        }
        BUF_APPEND(&exporting->out, "\r\n");
        if (!out_write(exporting, err))
            return false;
    }
    return false;
}

/* --- All of it ------------------------------------------------------------------------------- */

static bool pages_take(struct exporting *exporting, struct shell_fault *ret_fault,
                       struct arena *arena, struct error *err)
{
    const struct shell_transfer *transfer = exporting->transfer;
    CLEANUP(arena_free) struct arena *odd = arena_new();
    CLEANUP(arena_free) struct arena *even = arena_new();
    struct shell_pages pages = {.server = transfer->server,
                                .database = transfer->database,
                                .container = transfer->container,
                                .text = transfer->query.len ? transfer->query
                                                            : SLICE("SELECT * FROM c"),
                                .parameters = transfer->parameters,
                                .rows_max = PAGE_ROWS};

    for (uint64_t i = 0; !pages.ended; i++) {
        struct arena *own = i % 2 ? odd : even;
        struct shell_page page;

        arena_reset(own);
        if (!shell_pages_next(&pages, own, &page, ret_fault, err)) {
            ret_fault->message = arena_copy(arena, ret_fault->message);
            ret_fault->code = arena_copy(arena, ret_fault->code);
            return false;
        }
        exporting->progress.charge += page.charge;
        if (!rows_take(exporting, page.rows, err))
            return false;
        shell_progress_show(&exporting->progress, clock_monotonic_ms());
    }
    return true;
}

bool shell_export(const struct shell_transfer *transfer, struct shell_fault *ret_fault,
                  struct arena *arena, struct error *err)
{
    CLEANUP(exporting_done) struct exporting exporting = {.transfer = transfer};
    uint64_t throttled = transfer->server->throttled;
    bool csv = shell_file_kind_of(transfer->kind, transfer->path) == SHELL_FILE_CSV;

    *ret_fault = (struct shell_fault){0};
    buf_init(&exporting.out, BUF_DEFAULT_MAX);
    exporting.names = arena_new();
    exporting.columns =
        memory_alloc(memory_array_size(SHELL_CSV_COLUMNS_MAX, sizeof *exporting.columns));
    if (csv && !(exporting.spool = tmpfile()))
        return error_set_errno(err, ERROR_SYSTEM, "a temporary file cannot be made");
    if (!file_open(&exporting, err))
        return false;
    shell_progress_begin(&exporting.progress, "exporting", "exported", transfer->quiet,
                         clock_monotonic_ms());
    if (transfer->json)
        exporting.progress.json = strcmp(transfer->path, "-") == 0 ? stderr : stdout;
    if (!pages_take(&exporting, ret_fault, arena, err) || (csv && !csv_write(&exporting, err)) ||
        !file_finish(&exporting, err)) {
        shell_progress_clear(&exporting.progress);
        return false;
    }
    exporting.progress.throttled = transfer->server->throttled - throttled;
    shell_progress_end(&exporting.progress, clock_monotonic_ms());
    return true;
}
