/* Tables of what the administration says of accounts and containers (docs/admin.md), for `orrery
 * stats` and the shell. */
#pragma once

#include "cli/table.h"

/* The answers to GET databases and GET containers/DATABASE/CONTAINER. */
struct cli_table *cli_stats_account(struct slice document, struct arena *arena);
struct cli_table *cli_stats_container(struct slice document, struct arena *arena);

/* Prints what was bought for a container, and how it is divided: buckets and key values with RU/s
 * of their own. */
void cli_stats_throughput(struct slice document, struct arena *arena);
