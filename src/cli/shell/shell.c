/* `orrery shell`: what is run, in this order: each --command, the --file, and without either what
 * comes in, from a prompt if that is a terminal. */
#include "cli/shell/shell.h"

#include "cli/cli.h"
#include "cli/shell/statement.h"
#include "document/json.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/signalfd.h>
#include <unistd.h>

const char *const shell_format_names[3] = {"table", "json", "lines"};

enum {
    OPTION_DATABASE = 'd',
    OPTION_CONTAINER = 'c',
    OPTION_COMMAND = 'q',
    OPTION_FILE = 'f',
    OPTION_EXPLAIN = 'e',
    OPTION_QUIET = 's',
    COMMANDS_MAX = 256,
};

void cli_shell_help(void)
{
    printf("Usage: orrery shell [OPTIONS]\n"
           "\n"
           "Queries and dot commands over the NoSQL API. From a terminal it asks for them (.help\n"
           "lists the commands); otherwise it reads them from standard input, rows go to standard\n"
           "output, everything else to standard error, and it ends with 1 behind the first\n"
           "statement that fails.\n"
           "\n"
           "Options:\n"
           "  --database NAME      where queries go; .use changes it\n"
           "  --container NAME\n"
           "  --command TEXT       run this and end; may be given several times\n"
           "  --file FILE          run the statements of a file and end\n"
           "  --format FORMAT      table, json or lines (one JSON value a line); without it table\n"
           "                       on a terminal, else lines\n"
           "  --explain            show how the server ran each query, and advice\n"
           "  --quiet              say nothing about rows: no charge, no bar\n");
    cli_client_help();
}

/* --- Saying things --------------------------------------------------------------------------- */

FILE *shell_messages(const struct shell *shell)
{
    return shell->interactive ? stdout : stderr;
}

bool shell_say(const struct shell *shell, const char *format, ...)
{
    va_list args;

    fflush(stdout);
    if (!shell->interactive)
        fputs("orrery: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return false;
}

bool shell_format_parse(struct slice name, enum shell_format *ret_format, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(shell_format_names); i++)
        if (slice_equal(name, slice_of_text(shell_format_names[i]))) {
            *ret_format = (enum shell_format)i;
            return true;
        }
    return error_set(err, ERROR_BAD_REQUEST, "there is no format \"%.*s\": table, json or lines",
                     SLICE_ARG(name));
}

bool shell_need_container(const struct shell *shell, struct error *err)
{
    return shell->container[0] ||
           error_set(err, ERROR_BAD_REQUEST, "no container is chosen: %s",
                     shell->interactive ? ".use DATABASE/CONTAINER"
                                        : "--database NAME --container NAME");
}

struct slice shell_parameters_json(const struct shell *shell, struct arena *arena)
{
    CLEANUP(buf_done) struct buf json;

    buf_init(&json, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < shell->parameters.count; i++) {
        buf_append_text(&json, i ? ",{\"name\":" : "[{\"name\":");
        document_json_write_string(slice_of_text(shell->parameters.names[i]), &json);
        buf_printf(&json, ",\"value\":%s}", shell->parameters.values[i]);
    }
    if (json.len)
        BUF_APPEND(&json, "]");
    return arena_copy(arena, buf_slice(&json));
}

/* --- Running --------------------------------------------------------------------------------- */

bool shell_statement_run(struct shell *shell, struct slice statement)
{
    return statement.data[0] == '.' ? shell_command_run(shell, statement)
                                    : shell_query_run(shell, statement);
}

static bool statements_run(struct shell *shell, struct shell_statements *statements,
                           const char *name)
{
    struct slice statement;

    while (!shell->ended && shell_statement_next(statements, &statement)) {
        if (buf_overflowed(&statements->text))
            return shell_say(shell, "%s: a query may have %d bytes at most", name,
                             SHELL_STATEMENT_MAX);
        if (!shell_statement_run(shell, statement))
            return false;
    }
    if (buf_overflowed(&statements->text) || buf_overflowed(&statements->waiting))
        return shell_say(shell, "%s: a query may have %d bytes at most", name, SHELL_STATEMENT_MAX);
    return true;
}

static bool statements_end(struct shell *shell, struct shell_statements *statements,
                           const char *name)
{
    struct slice statement;
    struct error err;
    bool any;

    if (!shell_statements_end(statements, &statement, &any, &err))
        return shell_say(shell, "%s: %s", name, err.message);
    return !any || shell->ended || shell_statement_run(shell, statement);
}

bool shell_stream_run(struct shell *shell, FILE *stream, const char *name)
{
    struct shell_statements statements;
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    bool good = true;

    shell_statements_init(&statements, false);
    while (good && !shell->ended && (length = getline(&line, &size, stream)) >= 0) {
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
            length--;
        shell_statements_feed(&statements, slice_of(line, (size_t)length));
        good = statements_run(shell, &statements, name);
    }
    if (good && ferror(stream))
        good = shell_say(shell, "%s cannot be read (%s)", name, strerror(errno));
    good = good && statements_end(shell, &statements, name);
    free(line);
    shell_statements_done(&statements);
    return good;
}

bool shell_read(struct shell *shell, const char *path)
{
    FILE *file;
    bool good;

    if (shell->depth == SHELL_READ_DEPTH_MAX)
        return shell_say(shell, "file \"%s\" is read by files that are %d deep: is it one of them?",
                         path, SHELL_READ_DEPTH_MAX);
    file = fopen(path, "re");
    if (!file)
        return shell_say(shell, "file \"%s\" cannot be opened (%s)", path, strerror(errno));
    shell->depth++;
    good = shell_stream_run(shell, file, path);
    shell->depth--;
    fclose(file);
    return good;
}

static bool command_run(struct shell *shell, const char *text)
{
    struct shell_statements statements;
    struct slice rest = slice_of_text(text), line;
    bool good = true;

    shell_statements_init(&statements, false);
    while (good && slice_split(rest, '\n', &line, &rest)) {
        shell_statements_feed(&statements, line);
        good = statements_run(shell, &statements, "--command");
    }
    shell_statements_feed(&statements, rest);
    good = good && statements_run(shell, &statements, "--command") &&
           statements_end(shell, &statements, "--command");
    shell_statements_done(&statements);
    return good;
}

/* --- Ctrl-C ---------------------------------------------------------------------------------- */

void shell_cancel_clear(struct shell *shell)
{
    struct signalfd_siginfo info;

    while (shell->server.cancel >= 0 && read(shell->server.cancel, &info, sizeof info) > 0)
        ;
}

/* At a prompt Ctrl-C ends what runs, not the shell: it becomes a descriptor to look at. */
static void cancel_start(struct shell *shell)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    shell->server.cancel = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    shell->screen.cancel = shell->server.cancel;
    cli_client_cancel_by(shell->server.client, shell->server.cancel);
}

/* --- The command ----------------------------------------------------------------------------- */

struct shell_command {
    struct cli_client_options options;
    struct shell shell;
    const char *commands[COMMANDS_MAX];
    size_t command_count;
    const char *file;
    bool format_given;
};

static bool name_take(char to[SHELL_NAME_MAX + 1], const char *option, const char *value)
{
    if (strlen(value) == 0 || strlen(value) > SHELL_NAME_MAX) {
        cli_fail(CLI_USAGE, "%s takes a name of 1 to %d bytes", option, SHELL_NAME_MAX);
        return false;
    }
    snprintf(to, SHELL_NAME_MAX + 1, "%s", value);
    return true;
}

static bool option_take(void *context, int option, const char *value)
{
    struct shell_command *command = context;
    struct error err;

    switch (option) {
    case OPTION_DATABASE:
        return name_take(command->shell.database, "--database", value);
    case OPTION_CONTAINER:
        return name_take(command->shell.container, "--container", value);
    case OPTION_COMMAND:
        if (command->command_count == COMMANDS_MAX) {
            cli_fail(CLI_USAGE, "--command may be given %d times at most", COMMANDS_MAX);
            return false;
        }
        command->commands[command->command_count++] = value;
        return true;
    case OPTION_FILE:
        command->file = value;
        return true;
    case CLI_CLIENT_OPTION_FORMAT:
        command->format_given = true;
        if (shell_format_parse(slice_of_text(value), &command->shell.format, &err))
            return true;
        cli_fail(CLI_USAGE, "%s", err.message);
        return false;
    case OPTION_EXPLAIN:
        command->shell.explain = true;
        return true;
    case OPTION_QUIET:
        command->shell.quiet = true;
        return true;
    default:
        return cli_client_take(&command->options, option, value);
    }
}

static bool run(struct shell_command *command)
{
    struct shell *shell = &command->shell;
    bool good = true;

    for (size_t i = 0; good && !shell->ended && i < command->command_count; i++)
        good = command_run(shell, command->commands[i]);
    if (good && command->file)
        good = shell_read(shell, command->file);
    if (command->command_count || command->file)
        return good;
    if (!shell->interactive)
        return shell_stream_run(shell, stdin, "standard input");
    cancel_start(shell);
    return shell_prompt_run(shell);
}

static int shell_main(struct shell_command *command)
{
    struct shell *shell = &command->shell;
    bool terminal = isatty(STDOUT_FILENO);
    struct error err;
    bool good;

    if (shell->container[0] && !shell->database[0])
        return cli_fail(CLI_USAGE, "--container is in a database: give --database too");
    if (!cli_client_new(&command->options, &shell->server.client, &err))
        return cli_fail(CLI_FAILED, "%s", err.message);
    shell->interactive =
        terminal && isatty(STDIN_FILENO) && !command->command_count && !command->file;
    shell->screen =
        (struct shell_screen){.terminal = shell->interactive, .input = STDIN_FILENO, .cancel = -1};
    shell->server.cancel = -1;
    if (!command->format_given)
        shell->format = command->options.json ? SHELL_JSON : terminal ? SHELL_TABLE : SHELL_LINES;
    good = run(command);
    if (fflush(stdout) != 0)
        good = shell_say(shell, "standard output cannot be written");
    if (shell->server.cancel >= 0)
        close(shell->server.cancel);
    shell_words_done(&shell->parameters);
    shell_words_done(&shell->properties);
    cli_client_free(shell->server.client);
    return good ? CLI_OK : CLI_FAILED;
}

int cli_shell(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_CLIENT_OPTION_ROWS,
        {"help", no_argument, NULL, 'h'},
        {"database", required_argument, NULL, OPTION_DATABASE},
        {"container", required_argument, NULL, OPTION_CONTAINER},
        {"command", required_argument, NULL, OPTION_COMMAND},
        {"file", required_argument, NULL, OPTION_FILE},
        {"explain", no_argument, NULL, OPTION_EXPLAIN},
        {"quiet", no_argument, NULL, OPTION_QUIET},
        {NULL}};
    CLEANUP(memory_free) struct shell_command *command = MEMORY_NEW(struct shell_command);
    bool help;
    int words;

    setlocale(LC_CTYPE, ""); /* for the widths and bytes of characters; numbers stay as they are */
    words = cli_words_read(argc, argv, options, &(struct cli_words){NULL, 0, option_take, command},
                           &help);
    if (help) {
        cli_shell_help();
        return CLI_OK;
    }
    return words < 0 ? CLI_USAGE : shell_main(command);
}
