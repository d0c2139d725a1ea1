/* Tables for people: columns as wide as their longest cell, numbers to the right. */
#pragma once

#include "base/arena.h"

enum { CLI_TABLE_COLUMNS_MAX = 12 };

struct cli_table; /* opaque; everything is in the arena */

/* headings: a NULL behind the last; one that begins with '>' is of a column of numbers. */
struct cli_table *cli_table_new(struct arena *arena, const char *const *headings);

/* One cell after the other, row by row. The text must outlive the table. */
void cli_table_text(struct cli_table *table, struct slice text);
void cli_table_number(struct cli_table *table, double number, int decimals);
void cli_table_bytes(struct cli_table *table, double bytes); /* 1.5 MB */

/* To standard output; control characters in cells become '?'. */
void cli_table_print(const struct cli_table *table);
