/* The orrery command: one function per sub-command, and what they share.
 *
 * Messages for the user begin with "orrery: ", go to standard error and say what to do next. Exit
 * codes: 0 done, 1 it failed, 2 it was called wrongly. */
#pragma once

#include "base/error.h"

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
