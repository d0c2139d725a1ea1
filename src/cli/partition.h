/* Migrations from the command line: tried out, and followed. */
#pragma once

#include "cli/asking.h"

/* Follows the migration of the command's container to its end (partition_watch.c): a bar on a
 * terminal, else a line when the phase changes. id: which one, as administration names it. Gives
 * the exit code. */
int cli_partition_watch(struct cli_asking *command, struct slice id);

/* The body of a request, an object, with "dryRun":true behind its other members; in the arena. */
struct slice cli_partition_dry(struct cli_asking *command, struct slice body);

/* Prints the answer to it: the partitions that would go, and those that would come. Gives the exit
 * code. */
int cli_partition_plan(struct cli_asking *command, const struct cli_answer *answer);
