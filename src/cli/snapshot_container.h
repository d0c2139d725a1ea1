/* Snapshots of one container: another container of its database, made by a copy that is a migration
 * and named CONTAINER@NAME; with its scripts, which a copy has not. */
#pragma once

#include "cli/asking.h"

/* Each gives the exit code. path: "DATABASE/CONTAINER" as it was typed; name: of the snapshot. */
int cli_snapshot_container_create(struct cli_asking *asking, const char *path, const char *name);
int cli_snapshot_container_reset(struct cli_asking *asking, const char *path, const char *name);
int cli_snapshot_container_drop(struct cli_asking *asking, const char *path, const char *name);
int cli_snapshot_container_list(struct cli_asking *asking, const char *path);
