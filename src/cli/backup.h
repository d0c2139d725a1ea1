/* What the commands about backups share: the secret of encryption, and progress on a terminal. */
#pragma once

#include "backup/archive.h"
#include "cli/cli.h"

enum { CLI_BACKUP_OPTION = 3000 };

#define CLI_BACKUP_SECRET_ROWS                                                                     \
    {"key", required_argument, NULL, CLI_BACKUP_OPTION},                                           \
    {                                                                                              \
        "passphrase", required_argument, NULL, CLI_BACKUP_OPTION + 1                               \
    }

/* True: it was one of those. */
bool cli_backup_secret_take(struct backup_secret *secret, int option, const char *value);
void cli_backup_secret_help(void);

/* A line on the terminal that is written over and over; nothing elsewhere. */
struct cli_progress {
    const char *what;
    int64_t begun_ms, told_ms;
    bool shown;
};

void cli_progress_init(struct cli_progress *progress, const char *what);
void cli_progress_tell(struct cli_progress *progress, uint64_t bytes, uint64_t total);
void cli_progress_done(struct cli_progress *progress);
