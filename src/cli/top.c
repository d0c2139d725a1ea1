/* `orrery top`: asks every few seconds and draws what was done in between. On a terminal the
 * picture is drawn over the last one, on the terminal's other page, so that what stood there before
 * comes back at the end; elsewhere each picture follows the last. */
#include "cli/cli.h"

#include "base/clock.h"
#include "cli/client.h"
#include "cli/top_screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum {
    OPTION_SECONDS = 's',
    OPTION_ONCE = 'o',
    SECONDS_MAX = 3600,
    ROWS_ELSEWHERE = 60,
    COLUMNS_ELSEWHERE = 200,
    KEYS_SHOWN = 10,
    SLOW_SHOWN = 20
};

void cli_top_help(void)
{
    printf("Usage: orrery top [--seconds N] [--once]\n"
           "\n"
           "What containers and physical partitions do now, the keys that spend the most of the\n"
           "busiest container, and the last slow requests. Keys: s sorts by RU/s, requests,\n"
           "throttled or time; q, or Ctrl-C, ends it.\n"
           "\n"
           "Options:\n"
           "  --seconds N          between two pictures, 1 to 3600 (2)\n"
           "  --once               one picture, of the next N seconds, and no more; with\n"
           "                       --format json the counters as the server has them\n");
    cli_client_help();
}

struct top_command {
    struct cli_client_options options;
    uint64_t seconds;
    bool once;
    bool terminal;
    enum cli_top_order order;
    struct cli_client *client;
    struct arena *arenas[2]; /* of this picture, and of the last one, whose counters are needed */
    struct slice before;
};

static bool option_take(void *context, int option, const char *value)
{
    struct top_command *command = context;

    if (option == OPTION_ONCE) {
        command->once = true;
        return true;
    }
    if (option != OPTION_SECONDS)
        return cli_client_take(&command->options, option, value);
    if (!slice_to_uint64(slice_of_text(value), &command->seconds) || command->seconds < 1 ||
        command->seconds > SECONDS_MAX) {
        (void)cli_fail(CLI_USAGE, "--seconds takes a whole number from 1 to %d, not \"%s\"",
                       SECONDS_MAX, value);
        return false;
    }
    return true;
}

/* --- Asking ---------------------------------------------------------------------------------- */

static bool ask(struct top_command *command, struct slice path, struct slice query,
                struct slice *ret_document, struct error *err)
{
    struct cli_answer answer;

    if (!cli_client_ask(command->client, "GET", path, query, SLICE_NONE, command->arenas[0],
                        &answer, err))
        return false;
    *ret_document = answer.document;
    return true;
}

static bool sample_take(struct top_command *command, struct cli_top_sample *sample,
                        struct error *err)
{
    struct arena *arena = command->arenas[0];

    *sample = (struct cli_top_sample){.before = command->before};
    if (!ask(command, SLICE("figures"), SLICE_NONE, &sample->now, err) ||
        !ask(command, SLICE("slow"), arena_printf(arena, "max=%d", SLOW_SHOWN), &sample->slow, err))
        return false;
    if (cli_top_busiest(sample, command->order, arena, &sample->keys_database,
                        &sample->keys_container)) {
        struct slice path =
            arena_printf(arena, "containers/%.*s/%.*s/keys", SLICE_ARG(sample->keys_database),
                         SLICE_ARG(sample->keys_container));
        struct error ignored; /* it may be gone by now, or another account's */

        if (!ask(command, path, arena_printf(arena, "minutes=1&max=%d", KEYS_SHOWN), &sample->keys,
                 &ignored))
            sample->keys = SLICE_NONE;
    }
    return true;
}

/* What was asked just now is what the next picture is compared with. */
static void sample_keep(struct top_command *command, const struct cli_top_sample *sample)
{
    struct arena *arena = command->arenas[0];

    command->before = sample->now;
    command->arenas[0] = command->arenas[1];
    command->arenas[1] = arena;
    arena_reset(command->arenas[0]);
}

/* --- The terminal ---------------------------------------------------------------------------- */

static void size_get(const struct top_command *command, size_t *ret_rows, size_t *ret_columns)
{
    struct winsize size = {0};

    *ret_rows = ROWS_ELSEWHERE;
    *ret_columns = COLUMNS_ELSEWHERE;
    if (command->terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 2) {
        *ret_rows = size.ws_row - 1u;
        *ret_columns = size.ws_col;
    }
}

static void frame_print(struct top_command *command, const struct cli_top_sample *sample)
{
    CLEANUP(buf_done) struct buf frame;
    size_t rows, columns;

    buf_init(&frame, BUF_DEFAULT_MAX);
    size_get(command, &rows, &columns);
    cli_top_draw(sample, command->order, rows, columns, command->arenas[0], &frame);
    if (command->terminal)
        fputs("\033[H\033[J", stdout);
    fwrite(frame.data, 1, frame.len, stdout);
    fflush(stdout);
}

/* Waits for the next picture, or a key. False: they want no more. */
static bool pause_or_key(struct top_command *command)
{
    int64_t until = clock_monotonic_ms() + (int64_t)command->seconds * 1000;

    for (;;) {
        struct pollfd wait = {.fd = command->terminal ? STDIN_FILENO : -1, .events = POLLIN};
        int64_t left = until - clock_monotonic_ms();
        char key;

        if (left <= 0)
            return true;
        if (poll(&wait, 1, (int)left) < 0)
            return false; /* a signal */
        if (!wait.revents)
            continue;
        if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q' || key == 3 || key == 4)
            return false;
        if (key == 's') {
            command->order = (command->order + 1) % CLI_TOP_ORDERS;
            return true;
        }
    }
}

static int pictures_draw(struct top_command *command)
{
    struct cli_top_sample sample;
    struct error err;

    do {
        if (!sample_take(command, &sample, &err))
            return cli_fail(CLI_FAILED, "%s", err.message);
        if (command->terminal || command->before.data)
            frame_print(command, &sample);
        if (command->once && command->before.data)
            return CLI_OK;
        sample_keep(command, &sample);
    } while (pause_or_key(command));
    return CLI_OK;
}

static void nothing(int number UNUSED)
{
}

static int terminal_run(struct top_command *command)
{
    struct sigaction ends = {.sa_handler = nothing}; /* so that poll ends, and what was changed is
                                                      * put back */
    struct termios before, raw;
    bool changed = tcgetattr(STDIN_FILENO, &before) == 0;
    int code;

    sigaction(SIGINT, &ends, NULL);
    sigaction(SIGTERM, &ends, NULL);
    if (changed) {
        raw = before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    fputs("\033[?1049h\033[?25l", stdout);
    code = pictures_draw(command);
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    if (changed)
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    return code;
}

static int json_print(struct top_command *command)
{
    struct cli_answer answer;
    struct error err;

    if (!cli_client_ask(command->client, "GET", SLICE("figures"), SLICE_NONE, SLICE_NONE,
                        command->arenas[0], &answer, &err))
        return cli_fail(CLI_FAILED, "%s", err.message);
    printf("%.*s\n", SLICE_ARG(answer.text));
    return CLI_OK;
}

int cli_top(int argc, char **argv)
{
    static const struct option options[] = {CLI_CLIENT_OPTION_ROWS,
                                            {"help", no_argument, NULL, 'h'},
                                            {"seconds", required_argument, NULL, OPTION_SECONDS},
                                            {"once", no_argument, NULL, OPTION_ONCE},
                                            {NULL}};
    CLEANUP(arena_free) struct arena *first = arena_new();
    CLEANUP(arena_free) struct arena *second = arena_new();
    struct top_command command = {.seconds = 2, .arenas = {first, second}};
    struct error err;
    bool help;
    int code = cli_words_read(argc, argv, options,
                              &(struct cli_words){NULL, 0, option_take, &command}, &help);

    if (help) {
        cli_top_help();
        return CLI_OK;
    }
    if (code < 0)
        return CLI_USAGE;
    if (command.options.json && !command.once)
        return cli_fail(CLI_USAGE, "--format json goes with --once");
    if (!cli_client_new(&command.options, &command.client, &err))
        return cli_fail(CLI_FAILED, "%s", err.message);
    command.terminal = !command.once && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    code = command.options.json ? json_print(&command)
           : command.terminal   ? terminal_run(&command)
                                : pictures_draw(&command);
    cli_client_free(command.client);
    return code;
}
