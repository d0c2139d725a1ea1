/* Page: what a command's --help prints, taken apart, so that manual pages and completions of shells
 * say nothing else. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "cli/cli.h"

enum { CLI_PAGE_USAGES_MAX = 32, CLI_PAGE_OPTIONS_MAX = 64 };

struct cli_page_option {
    struct slice name;    /* "endpoint", without its hyphens; "h" of a short one */
    struct slice value;   /* what it takes: "URL"; empty: nothing */
    struct slice meaning; /* words with single blanks between them */
};

struct cli_page {
    const struct cli_command *command;
    struct slice usages[CLI_PAGE_USAGES_MAX]; /* "orrery item get DATABASE CONTAINER KEY ID" */
    size_t usage_count;
    struct slice text; /* what stands between usage and options, line by line */
    struct cli_page_option options[CLI_PAGE_OPTIONS_MAX];
    size_t option_count;
    struct slice verbs[CLI_PAGE_USAGES_MAX]; /* first words of its usages, where they are verbs */
    size_t verb_count;
};

/* Everything in the arena. */
struct cli_page *cli_page_new(const struct cli_command *command, struct arena *arena);

/* A manual page (roff, section 1): of one command; command NULL: of orrery as a whole. */
void cli_man_print(const struct cli_command *command, struct buf *out);

/* A script for bash, zsh or fish. False: the shell is none of these. */
NODISCARD bool cli_completion_print(const char *shell, struct buf *out);
