/* The orrery command: one function per sub-command, and what they share.
 *
 * Messages for the user begin with "orrery: ", go to standard error and say what to do next. Exit
 * codes: 0 done, 1 it failed, 2 it was called wrongly. */
#pragma once

#include "base/error.h"
#include "server/settings.h"

#include <getopt.h>

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

struct cli_command {
    const char *name;
    const char *summary;               /* one line of `orrery help` */
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
    void (*help)(void);                /* prints what --help shows */
};

/* All of them, ended by a row without a name. */
extern const struct cli_command cli_commands[];
const struct cli_command *cli_command_find(const char *name); /* NULL: there is none */

int cli_serve(int argc, char **argv);
void cli_serve_help(void);
int cli_account(int argc, char **argv);
void cli_account_help(void);
int cli_database(int argc, char **argv);
void cli_database_help(void);
int cli_container(int argc, char **argv);
void cli_container_help(void);
int cli_item(int argc, char **argv);
void cli_item_help(void);
int cli_query(int argc, char **argv);
void cli_query_help(void);
int cli_node(int argc, char **argv);
void cli_node_help(void);
int cli_stats(int argc, char **argv);
void cli_stats_help(void);
int cli_partition(int argc, char **argv);
void cli_partition_help(void);
int cli_promote(int argc, char **argv);
int cli_rekey(int argc, char **argv);
void cli_promote_help(void);
void cli_rekey_help(void);
int cli_throughput(int argc, char **argv);
void cli_throughput_help(void);
int cli_directory(int argc, char **argv);
void cli_directory_help(void);
int cli_advise(int argc, char **argv);
void cli_advise_help(void);
int cli_what_if(int argc, char **argv);
void cli_what_if_help(void);
int cli_shell(int argc, char **argv);
void cli_shell_help(void);
int cli_import(int argc, char **argv);
void cli_import_help(void);
int cli_export(int argc, char **argv);
void cli_export_help(void);
int cli_backup(int argc, char **argv);
void cli_backup_help(void);
int cli_restore(int argc, char **argv);
void cli_restore_help(void);
int cli_verify(int argc, char **argv);
void cli_verify_help(void);
int cli_check(int argc, char **argv);
void cli_check_help(void);
int cli_key(int argc, char **argv);
void cli_key_help(void);
int cli_audit(int argc, char **argv);
void cli_audit_help(void);
int cli_maintenance(int argc, char **argv);
void cli_maintenance_help(void);
int cli_server(int argc, char **argv);
void cli_server_help(void);
int cli_snapshot(int argc, char **argv);
void cli_snapshot_help(void);
int cli_top(int argc, char **argv);
void cli_top_help(void);
int cli_certificate(int argc, char **argv);
void cli_certificate_help(void);
int cli_help(int argc, char **argv);
void cli_help_help(void);
int cli_version(int argc, char **argv);
void cli_version_help(void);

/* What `orrery` alone prints. */
void cli_overview(void);

/* Prints "orrery: ..." and returns the code, so that it can stand in a return statement. */
int cli_fail(int code, const char *format, ...) PRINTF_LIKE(2, 3);

/* As getopt_long with no short options but -h, printing a message with the nearest option where
 * it would print its own. '?' after a message, -1 at the end. */
int cli_option_next(int argc, char **argv, const struct option *options);

/* Options anywhere between words: take is called for each option (and says whether it is good), at
 * most max words are kept, as many are given back. -1 after a message; *ret_help: --help was asked
 * for. */
struct cli_words {
    const char **words;
    int max;
    bool (*take)(void *context, int option, const char *value);
    void *context;
};
int cli_words_read(int argc, char **argv, const struct option *options,
                   const struct cli_words *words, bool *ret_help);

/* The directory a server keeps its keys and certificates in: the given one, or if that is NULL as
 * cli/local.h finds it. Settings hold the text. */
NODISCARD bool cli_directory_find(const char *given, struct settings *settings,
                                  const char **ret_directory, struct error *err);
