/* A table is made for each page, so that rows are shown as they come; its columns are the
 * properties of the page's rows in the order they are met. */
#include "cli/shell/rows.h"

#include "cli/table.h"
#include "definition/names.h"
#include "document/json.h"

/* --- JSON ------------------------------------------------------------------------------------ */

static void indent(unsigned level, struct buf *out)
{
    buf_printf(out, "\n%*s", (int)level * 2, "");
}

void shell_json_pretty(const struct document_value *value, unsigned level, struct buf *out)
{
    bool object = value->type == DOCUMENT_OBJECT;
    struct document_iter iter;
    bool first = true;

    if ((!object && value->type != DOCUMENT_ARRAY) || document_count(value->document) == 0) {
        document_json_write_value(value, out);
        return;
    }
    BUF_APPEND(out, "[");
    if (object)
        out->data[out->len - 1] = '{';
    document_iter_init(&iter, value->document);
    for (; document_iter_next(&iter); first = false) {
        if (!first)
            BUF_APPEND(out, ",");
        indent(level + 1, out);
        if (object) {
            document_json_write_string(iter.key, out);
            BUF_APPEND(out, ": ");
        }
        shell_json_pretty(&iter.value, level + 1, out);
    }
    indent(level, out);
    buf_append_byte(out, object ? '}' : ']');
}

static bool json_show(struct shell_rows *rows, struct slice page)
{
    CLEANUP(buf_done) struct buf out;
    struct document_iter iter;

    buf_init(&out, BUF_DEFAULT_MAX);
    document_iter_init(&iter, page);
    while (document_iter_next(&iter)) {
        if (rows->shell->format == SHELL_LINES) {
            document_json_write_value(&iter.value, &out);
            BUF_APPEND(&out, "\n");
        } else {
            buf_append_text(&out, rows->count ? ",\n  " : "[\n  ");
            shell_json_pretty(&iter.value, 1, &out);
        }
        rows->count++;
    }
    return shell_screen_write(&rows->shell->screen, buf_slice(&out));
}

/* --- Tables ---------------------------------------------------------------------------------- */

struct columns {
    struct slice names[CLI_TABLE_COLUMNS_MAX];
    bool right[CLI_TABLE_COLUMNS_MAX]; /* all its values are numbers */
    size_t count;
    size_t hidden; /* properties there was no column left for */
    bool plain;    /* there are rows that are no objects: they come in the first column */
};

static const struct slice plain_heading = {(const uint8_t *)"(value)", 7};

/* Of every item, and of interest to few: left out of tables. */
static bool is_system(struct slice name)
{
    return document_names_system(definition_names(DEFINITION_IDENTITY_ID), name) <
           DOCUMENT_SYSTEM_SHOWN;
}

static void column_note(struct columns *columns, struct slice name,
                        const struct document_value *value)
{
    size_t i = columns->plain;

    while (i < columns->count && !slice_equal(columns->names[i], name))
        i++;
    if (i == CLI_TABLE_COLUMNS_MAX) {
        columns->hidden++;
        return;
    }
    if (i == columns->count) {
        columns->names[i] = name;
        columns->right[i] = true;
        columns->count++;
    }
    columns->right[i] = columns->right[i] && document_is_number(value);
}

static bool is_whole_item(struct slice row)
{
    const struct slice *system = definition_names(DEFINITION_IDENTITY_ID)->system;
    struct document_value value;

    return document_find(row, system[DOCUMENT_SYSTEM_RID], &value) &&
           document_find(row, system[DOCUMENT_SYSTEM_ETAG], &value);
}

static void columns_find(struct columns *columns, struct slice page)
{
    struct document_iter rows, properties;

    document_iter_init(&rows, page);
    while (document_iter_next(&rows))
        columns->plain = columns->plain || rows.value.type != DOCUMENT_OBJECT;
    if (columns->plain) {
        columns->names[0] = plain_heading;
        columns->right[0] = true;
        columns->count = 1;
    }
    document_iter_init(&rows, page);
    while (document_iter_next(&rows)) {
        if (rows.value.type != DOCUMENT_OBJECT) {
            columns->right[0] = columns->right[0] && document_is_number(&rows.value);
            continue;
        }
        document_iter_init(&properties, rows.value.document);
        while (document_iter_next(&properties))
            if (!is_system(properties.key) || !is_whole_item(rows.value.document))
                column_note(columns, properties.key, &properties.value);
    }
}

/* Text as it is, anything else as JSON. */
static struct slice cell_of(const struct document_value *value, struct arena *arena)
{
    CLEANUP(buf_done) struct buf json;

    buf_init(&json, BUF_DEFAULT_MAX);
    if (value->type == DOCUMENT_STRING)
        return value->text.len ? value->text : SLICE("\"\"");
    document_json_write_value(value, &json);
    return arena_copy(arena, buf_slice(&json));
}

static void row_add(struct cli_table *table, const struct columns *columns,
                    const struct document_value *row, struct arena *arena)
{
    for (size_t i = 0; i < columns->count; i++) {
        bool plain = columns->plain && i == 0;
        struct document_value value;

        if (plain ? row->type == DOCUMENT_OBJECT
                  : row->type != DOCUMENT_OBJECT ||
                        !document_find(row->document, columns->names[i], &value))
            cli_table_text(table, SLICE(""));
        else
            cli_table_text(table, cell_of(plain ? row : &value, arena));
    }
}

static bool table_show(struct shell_rows *rows, struct slice page)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf out;
    struct columns columns = {0};
    struct cli_table *table;
    struct document_iter iter;
    size_t left_out = 0;

    buf_init(&out, BUF_DEFAULT_MAX);
    columns_find(&columns, page);
    if (columns.count == 0)
        return true;
    table = cli_table_new_columns(arena, columns.names, columns.right, columns.count);
    document_iter_init(&iter, page);
    for (; document_iter_next(&iter); rows->count++)
        row_add(table, &columns, &iter.value, arena);
    if (rows->shell->screen.terminal)
        left_out = cli_table_fit(table, shell_screen_width());
    cli_table_append(table, &out);
    if (left_out || columns.hidden)
        buf_printf(&out, "(%zu more column%s: `.format json` shows them)\n",
                   left_out + columns.hidden, PLURAL(left_out + columns.hidden));
    return shell_screen_write(&rows->shell->screen, buf_slice(&out));
}

/* --- Either ---------------------------------------------------------------------------------- */

/* Names for completion. */
static void properties_note(struct shell *shell, struct slice row, unsigned depth)
{
    struct document_iter iter;

    document_iter_init(&iter, row);
    while (document_iter_next(&iter)) {
        (void)shell_words_put(&shell->properties, iter.key, SLICE_NONE);
        if (iter.value.type == DOCUMENT_OBJECT && depth < 4)
            properties_note(shell, iter.value.document, depth + 1);
    }
}

bool shell_rows_show(struct shell_rows *rows, struct slice page)
{
    struct document_iter iter;

    document_iter_init(&iter, page);
    for (int i = 0; i < 20 && rows->shell->interactive && document_iter_next(&iter); i++)
        if (iter.value.type == DOCUMENT_OBJECT)
            properties_note(rows->shell, iter.value.document, 0);
    return rows->shell->format == SHELL_TABLE ? table_show(rows, page) : json_show(rows, page);
}

void shell_rows_end(struct shell_rows *rows)
{
    if (rows->shell->format == SHELL_JSON)
        (void)shell_screen_write(&rows->shell->screen,
                                 rows->count ? SLICE("\n]\n") : SLICE("[]\n"));
}
