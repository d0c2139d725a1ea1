/* Rows: results of a query as a table, as JSON or as lines of JSON. */
#pragma once

#include "cli/shell/shell.h"

struct shell_rows {
    struct shell *shell;
    uint64_t count; /* shown */
};

/* Shows a page. False: nobody wants to see more. */
bool shell_rows_show(struct shell_rows *rows, struct slice page);

/* Behind the last page. */
void shell_rows_end(struct shell_rows *rows);
