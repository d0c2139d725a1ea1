/* Shell: queries and dot commands over the NoSQL API, at a prompt or from files, pipes and the
 * command line (docs/shell.md).
 *
 * Rows go to standard output. What is said about them (charge, plan, errors) goes there too while
 * somebody sits at a prompt, and to standard error otherwise, so that output can be piped. */
#pragma once

#include "cli/shell/ask.h"
#include "cli/shell/screen.h"
#include "cli/shell/words.h"
#include "document/value.h"

#include <stdio.h>

enum shell_format { SHELL_TABLE, SHELL_JSON, SHELL_LINES };
extern const char *const shell_format_names[3];

/* The format of that name. */
NODISCARD bool shell_format_parse(struct slice name, enum shell_format *ret_format,
                                  struct error *err);

enum { SHELL_NAME_MAX = 255, SHELL_READ_DEPTH_MAX = 16 };

struct shell {
    struct shell_server server;
    char database[SHELL_NAME_MAX + 1], container[SHELL_NAME_MAX + 1]; /* empty: none is chosen */
    enum shell_format format;
    bool explain;
    bool quiet;                    /* nothing is said about rows */
    bool interactive;              /* somebody sits at a prompt */
    bool ended;                    /* .quit */
    unsigned depth;                /* of files that read files */
    struct shell_words parameters; /* of queries: @name and its JSON */
    struct shell_words properties; /* seen in rows, for completion */
    struct shell_screen screen;
};

/* Where messages about rows go. */
FILE *shell_messages(const struct shell *shell);

/* "orrery: ..." as cli_fail, returning false; at a prompt without the name of the program. */
bool shell_say(const struct shell *shell, const char *format, ...) PRINTF_LIKE(2, 3);

/* What the server says of a query, and where in it; returns false. */
struct shell_fault;
bool shell_fault_say(const struct shell *shell, const struct shell_fault *fault, struct slice query,
                     const struct error *err);

/* Each does what it is told and prints the outcome. False: it failed, and said so. */
bool shell_statement_run(struct shell *shell, struct slice statement); /* a query or a command */
bool shell_command_run(struct shell *shell, struct slice line);
bool shell_query_run(struct shell *shell, struct slice text);
bool shell_read(struct shell *shell, const char *path);

/* Runs all statements of a stream; stops behind the first that fails. */
bool shell_stream_run(struct shell *shell, FILE *stream, const char *name);

/* Asks for statements until the end. */
bool shell_prompt_run(struct shell *shell);

/* ERROR_BAD_REQUEST: no container is chosen. */
NODISCARD bool shell_need_container(const struct shell *shell, struct error *err);

/* The parameters as the JSON array a query is sent with. */
struct slice shell_parameters_json(const struct shell *shell, struct arena *arena);

/* Ends what cancels: Ctrl-C was meant for what has ended now. */
void shell_cancel_clear(struct shell *shell);

/* Appends a value as JSON over several lines, indented by two blanks a level. */
void shell_json_pretty(const struct document_value *value, unsigned level, struct buf *out);

/* The dot commands, for completion; NULL behind the last. */
const char *shell_command_name(size_t index);
