/* Following a migration from the command line. */
#pragma once

#include "cli/asking.h"

/* Follows the migration of the command's container to its end (partition_watch.c): a bar on a
 * terminal, else a line when the phase changes. id: which one, as administration names it. Gives
 * the exit code. */
int cli_partition_watch(struct cli_asking *command, struct slice id);
