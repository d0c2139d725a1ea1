/* Tables for people: columns as wide as their longest cell, numbers to the right. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

enum { CLI_TABLE_COLUMNS_MAX = 64 };

struct cli_table; /* opaque; everything is in the arena */

/* headings: a NULL behind the last; one that begins with '>' is of a column of numbers. */
struct cli_table *cli_table_new(struct arena *arena, const char *const *headings);

/* The same for headings that came from somewhere else; right: which are of numbers. */
struct cli_table *cli_table_new_columns(struct arena *arena, const struct slice *headings,
                                        const bool *right, size_t count);

/* One cell after the other, row by row. The text must outlive the table. */
void cli_table_text(struct cli_table *table, struct slice text);
void cli_table_number(struct cli_table *table, double number, int decimals);
void cli_table_bytes(struct cli_table *table, double bytes); /* 1.5 MB */
struct slice cli_table_bytes_text(double bytes, struct arena *arena);

/* "1 item", "2 items" */
struct slice cli_table_count(double number, const char *noun, struct arena *arena);

/* Cuts columns so that rows are not wider than this, the widest first; columns at the end for
 * which there is no room at all are left out. Says how many. */
size_t cli_table_fit(struct cli_table *table, size_t width);

/* To standard output, or appended; control characters in cells become '?'. */
void cli_table_print(const struct cli_table *table);
void cli_table_append(const struct cli_table *table, struct buf *out);

/* Columns of a terminal that text takes. */
size_t cli_table_width(struct slice text);
