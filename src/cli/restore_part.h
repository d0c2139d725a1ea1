/* Parts of a backup, written into a running server: an account, a database, a container, or one
 * logical partition; and one logical partition taken back in time, without a backup. */
#pragma once

#include "cli/asking.h"
#include "cli/backup.h"

struct cli_restore_part {
    struct cli_asking asking; /* options of the client */
    const char *account;      /* in the backup, and here */
    const char *database;     /* NULL: all of the account */
    const char *container;    /* NULL: all of the database */
    const char *key;          /* of one logical partition; NULL: all of the container */
    const char *as;           /* another name: of the container, or of the database */
    const char *time;         /* back to then, by the change feed */
    bool over, dry_run;
    struct cli_progress *progress;
};

/* Gives the exit code. */
int cli_restore_part_run(struct cli_restore_part *part, struct backup_archive *archive);
int cli_restore_rewind_run(struct cli_restore_part *part);
