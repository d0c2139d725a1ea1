#include "cli/table.h"

#include <utf8proc.h>

/* Cells in blocks, so that a table can grow in an arena. */
enum { BLOCK_CELLS = 256, WIDTH_LEAST = 5, GAP = 2 };

struct block {
    struct slice cells[BLOCK_CELLS];
    struct block *next;
};

struct cli_table {
    struct arena *arena;
    size_t columns;
    size_t shown; /* of them */
    bool right[CLI_TABLE_COLUMNS_MAX];
    size_t widths[CLI_TABLE_COLUMNS_MAX];
    struct block *first, *last;
    size_t count; /* of cells, headings included */
};

/* The next character and its width; bytes that are none count as a question mark. */
static size_t character(struct slice rest, size_t *ret_width)
{
    utf8proc_int32_t code;
    utf8proc_ssize_t length = utf8proc_iterate(rest.data, (utf8proc_ssize_t)rest.len, &code);

    *ret_width = 1;
    if (length <= 0)
        return 1;
    if (code >= 0x20 && !(code >= 0x7F && code < 0xA0))
        *ret_width = (size_t)utf8proc_charwidth(code);
    return (size_t)length;
}

size_t cli_table_width(struct slice text)
{
    size_t total = 0, width;

    while (text.len) {
        text = slice_skip(text, character(text, &width));
        total += width;
    }
    return total;
}

void cli_table_text(struct cli_table *table, struct slice text)
{
    size_t column = table->count % table->columns, place = table->count % BLOCK_CELLS;

    if (place == 0) {
        struct block *block = ARENA_NEW(table->arena, struct block);

        if (table->last)
            table->last->next = block;
        else
            table->first = block;
        table->last = block;
    }
    table->last->cells[place] = text;
    table->widths[column] = MAX(table->widths[column], cli_table_width(text));
    table->count++;
}

struct cli_table *cli_table_new_columns(struct arena *arena, const struct slice *headings,
                                        const bool *right, size_t count)
{
    struct cli_table *table = ARENA_NEW(arena, struct cli_table);

    assert(count > 0 && count <= CLI_TABLE_COLUMNS_MAX);
    table->arena = arena;
    table->columns = table->shown = count;
    for (size_t i = 0; i < count; i++) {
        table->right[i] = right[i];
        cli_table_text(table, headings[i]);
    }
    return table;
}

struct cli_table *cli_table_new(struct arena *arena, const char *const *headings)
{
    struct slice texts[CLI_TABLE_COLUMNS_MAX];
    bool right[CLI_TABLE_COLUMNS_MAX];
    size_t count = 0;

    for (; headings[count]; count++) {
        assert(count < CLI_TABLE_COLUMNS_MAX);
        right[count] = headings[count][0] == '>';
        texts[count] = slice_of_text(headings[count] + right[count]);
    }
    return cli_table_new_columns(arena, texts, right, count);
}

void cli_table_number(struct cli_table *table, double number, int decimals)
{
    cli_table_text(table, arena_printf(table->arena, "%.*f", decimals, number));
}

struct slice cli_table_bytes_text(double bytes, struct arena *arena)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    size_t unit = 0;

    while (bytes >= 1024 && unit + 1 < ARRAY_LEN(units)) {
        bytes /= 1024;
        unit++;
    }
    return arena_printf(arena, "%.*f %s", unit && bytes < 100, bytes, units[unit]);
}

struct slice cli_table_count(double number, const char *noun, struct arena *arena)
{
    return arena_printf(arena, "%.0f %s%s", number, noun, PLURAL(number));
}

void cli_table_bytes(struct cli_table *table, double bytes)
{
    cli_table_text(table, cli_table_bytes_text(bytes, table->arena));
}

/* How wide the table is when no column is wider than most. */
static size_t width_with(const struct cli_table *table, size_t most)
{
    size_t total = (table->shown - 1) * GAP;

    for (size_t i = 0; i < table->shown; i++)
        total += MIN(table->widths[i], most);
    return total;
}

size_t cli_table_fit(struct cli_table *table, size_t width)
{
    size_t most = width;

    while (table->shown > 1 && width_with(table, WIDTH_LEAST) > width)
        table->shown--;
    while (most > WIDTH_LEAST && width_with(table, most) > width)
        most--;
    for (size_t i = 0; i < table->shown; i++)
        table->widths[i] = MIN(table->widths[i], most);
    return table->columns - table->shown;
}

/* As much of a text as has room, an ellipsis in place of the rest. Gives the width. */
static size_t text_append(struct slice text, size_t room, struct buf *out)
{
    size_t used = 0, width, whole = cli_table_width(text);

    while (text.len) {
        size_t length = character(text, &width);
        struct slice bytes = slice_first(text, length);

        if (whole > room && used + width + 1 > room) {
            BUF_APPEND(out, "\u2026");
            return used + 1;
        }
        /* Control characters, those of 8 bits too, would steer the terminal. */
        if (bytes.data[0] < 0x20 || bytes.data[0] == 0x7F ||
            (length == 2 && bytes.data[0] == 0xC2 && bytes.data[1] < 0xA0) ||
            (length == 1 && bytes.data[0] >= 0x80))
            BUF_APPEND(out, "?");
        else
            buf_append_slice(out, bytes);
        used += width;
        text = slice_skip(text, length);
    }
    return used;
}

static void cell_append(const struct cli_table *table, size_t column, struct slice text,
                        struct buf *out)
{
    size_t room = table->widths[column], width = MIN(cli_table_width(text), room);
    bool last = column + 1 == table->shown;

    if (table->right[column])
        buf_printf(out, "%*s", (int)(room - width), "");
    width = text_append(text, room, out);
    if (!table->right[column] && !last)
        buf_printf(out, "%*s", (int)(room - width), "");
    buf_append_text(out, last ? "\n" : "  ");
}

void cli_table_append(const struct cli_table *table, struct buf *out)
{
    const struct block *block = table->first;

    for (size_t i = 0; i < table->count; i++) {
        if (i && i % BLOCK_CELLS == 0)
            block = block->next;
        if (i % table->columns < table->shown)
            cell_append(table, i % table->columns, block->cells[i % BLOCK_CELLS], out);
    }
}

void cli_table_print(const struct cli_table *table)
{
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    cli_table_append(table, &out);
    fwrite(out.data, 1, out.len, stdout);
}
