#include "cli/table.h"

#include "base/buf.h"

/* Cells in blocks, so that a table can grow in an arena. */
enum { BLOCK_CELLS = 256 };

struct block {
    struct slice cells[BLOCK_CELLS];
    struct block *next;
};

struct cli_table {
    struct arena *arena;
    size_t columns;
    bool right[CLI_TABLE_COLUMNS_MAX];
    size_t widths[CLI_TABLE_COLUMNS_MAX];
    struct block *first, *last;
    size_t count; /* of cells, headings included */
};

/* What a terminal shows of UTF-8, but for wide and combining characters. */
static size_t width_of(struct slice text)
{
    size_t width = 0;

    for (size_t i = 0; i < text.len; i++)
        width += (text.data[i] & 0xC0) != 0x80;
    return width;
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
    table->widths[column] = MAX(table->widths[column], width_of(text));
    table->count++;
}

struct cli_table *cli_table_new(struct arena *arena, const char *const *headings)
{
    struct cli_table *table = ARENA_NEW(arena, struct cli_table);

    table->arena = arena;
    while (headings[table->columns])
        table->columns++;
    assert(table->columns > 0 && table->columns <= CLI_TABLE_COLUMNS_MAX);
    for (size_t i = 0; i < table->columns; i++) {
        table->right[i] = headings[i][0] == '>';
        cli_table_text(table, slice_of_text(headings[i] + table->right[i]));
    }
    return table;
}

void cli_table_number(struct cli_table *table, double number, int decimals)
{
    cli_table_text(table, arena_printf(table->arena, "%.*f", decimals, number));
}

void cli_table_bytes(struct cli_table *table, double bytes)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    size_t unit = 0;

    while (bytes >= 1024 && unit + 1 < ARRAY_LEN(units)) {
        bytes /= 1024;
        unit++;
    }
    cli_table_text(table,
                   arena_printf(table->arena, "%.*f %s", unit && bytes < 100, bytes, units[unit]));
}

static void cell_print(const struct cli_table *table, size_t column, struct slice text,
                       struct buf *out)
{
    size_t pad = table->widths[column] - width_of(text);
    bool last = column + 1 == table->columns;

    if (table->right[column])
        buf_printf(out, "%*s", (int)pad, "");
    for (size_t i = 0; i < text.len; i++)
        buf_append_byte(out, text.data[i] < 0x20 || text.data[i] == 0x7F ? '?' : text.data[i]);
    if (!table->right[column] && !last)
        buf_printf(out, "%*s", (int)pad, "");
    buf_append_text(out, last ? "\n" : "  ");
}

void cli_table_print(const struct cli_table *table)
{
    CLEANUP(buf_done) struct buf out;
    const struct block *block = table->first;

    buf_init(&out, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < table->count; i++) {
        if (i && i % BLOCK_CELLS == 0)
            block = block->next;
        cell_print(table, i % table->columns, block->cells[i % BLOCK_CELLS], &out);
    }
    fwrite(out.data, 1, out.len, stdout);
}
