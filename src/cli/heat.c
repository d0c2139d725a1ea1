#include "cli/heat.h"

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/heat_picture.h"
#include "cli/table.h"
#include "document/bson.h"

#include <errno.h>

enum {
    OPTION_BY = 'b',
    OPTION_SHOW = 's',
    OPTION_LAST = 'l',
    OPTION_OUT = 'o',
    OPTION_POINTS = 'p',
    WORDS_MAX = 2,
    WEEK_MINUTES = 10080,
};

static void heat_help(void)
{
    printf(
        "Usage: orrery partition heat DATABASE CONTAINER [--by span|keys]\n"
        "                             [--show ru|throttled|latency|requests] [--last TIME]\n"
        "                             [--out FILE]\n"
        "\n"
        "Draws what was asked of a container over time, as SVG: physical partitions in the order\n"
        "of their routing keys, or the hottest partition keys, with splits, merges, moves and\n"
        "isolations marked. The record goes back a week; beyond the last day it has one column\n"
        "for ten minutes.\n"
        "\n"
        "Options:\n"
        "  --by span|keys       what the rows are (span)\n"
        "  --show WHAT          what the colour is: ru, throttled, latency or requests (ru)\n"
        "  --last TIME          how far back: 30m, 2h, 7d (2h)\n"
        "  --out FILE           where to write it (standard output)\n"
        "  --points N           at most so many columns, 1 to 2000 (240)\n");
    cli_client_help();
}

static void hot_help(void)
{
    printf(
        "Usage: orrery partition hot [DATABASE CONTAINER]\n"
        "\n"
        "Lists the partition keys that want more than their physical partition can give, or are\n"
        "near the largest size a logical partition may have: since when, how much, and what to\n"
        "do.\n"
        "\n"
        "Options:\n");
    cli_client_help();
}

struct heat_command {
    struct cli_client_options options;
    bool keys;
    enum cli_heat_shown shown;
    uint64_t minutes, points;
    const char *out;
    const char *words[WORDS_MAX];
    int word_count;
    struct cli_client *client;
    struct arena *arena;
};

/* --- Options --------------------------------------------------------------------------------- */

static bool last_read(const char *text, uint64_t *ret_minutes)
{
    size_t len = strlen(text);
    uint64_t number, unit = 0;

    if (len < 2 || !slice_to_uint64(slice_of(text, len - 1), &number) || number > WEEK_MINUTES)
        return false;
    unit = text[len - 1] == 'm' ? 1 : text[len - 1] == 'h' ? 60 : text[len - 1] == 'd' ? 1440 : 0;
    *ret_minutes = number * unit;
    return *ret_minutes >= 1 && *ret_minutes <= WEEK_MINUTES;
}

static bool shown_read(const char *text, enum cli_heat_shown *ret_shown)
{
    for (int i = 0; i < HEAT_SHOWN; i++)
        if (strcmp(text, heat_shown_names[i]) == 0) {
            *ret_shown = (enum cli_heat_shown)i;
            return true;
        }
    return false;
}

static bool wrong(const char *takes, const char *value)
{
    cli_fail(CLI_USAGE, "%s, not \"%s\"", takes, value);
    return false;
}

static bool option_take(void *context, int option, const char *value)
{
    struct heat_command *command = context;

    switch (option) {
    case OPTION_BY:
        command->keys = strcmp(value, "keys") == 0;
        return command->keys || strcmp(value, "span") == 0 ||
               wrong("--by takes span or keys", value);
    case OPTION_SHOW:
        return shown_read(value, &command->shown) ||
               wrong("--show takes ru, throttled, latency or requests", value);
    case OPTION_LAST:
        return last_read(value, &command->minutes) ||
               wrong("--last takes minutes, hours or days up to a week, as 30m, 2h or 7d", value);
    case OPTION_POINTS:
        return (slice_to_uint64(slice_of_text(value), &command->points) && command->points >= 1 &&
                command->points <= 2000) ||
               wrong("--points takes a whole number from 1 to 2000", value);
    case OPTION_OUT:
        command->out = value;
        return true;
    default:
        return cli_client_take(&command->options, option, value);
    }
}

/* --- The picture ----------------------------------------------------------------------------- */

static int text_write(const struct heat_command *command, struct slice text)
{
    FILE *file = command->out ? fopen(command->out, "we") : stdout;
    bool written;

    if (!file)
        return cli_fail(CLI_FAILED, "cannot write \"%s\": %s", command->out, strerror(errno));
    written = fwrite(text.data, 1, text.len, file) == text.len;
    if (command->out)
        written = fclose(file) == 0 && written;
    return written ? CLI_OK
                   : cli_fail(CLI_FAILED, "cannot write \"%s\": %s",
                              command->out ? command->out : "standard output", strerror(errno));
}

static int heat_run(struct heat_command *command)
{
    CLEANUP(buf_done) struct buf svg;
    struct cli_heat_picture picture;
    struct cli_answer answer;
    struct error err;

    buf_init(&svg, BUF_DEFAULT_MAX);
    if (!cli_client_ask(command->client, "GET",
                        arena_printf(command->arena, "containers/%s/%s/heat", command->words[0],
                                     command->words[1]),
                        arena_printf(command->arena, "minutes=%llu&points=%llu&by=%s",
                                     (unsigned long long)command->minutes,
                                     (unsigned long long)command->points,
                                     command->keys ? "keys" : "span"),
                        SLICE_NONE, command->arena, &answer, &err))
        return cli_fail(CLI_FAILED, "%s", err.message);
    if (command->options.json)
        return text_write(command, arena_printf(command->arena, "%.*s\n", SLICE_ARG(answer.text)));
    if (!cli_heat_picture_read(answer.document, command->shown, command->arena, &picture, &err))
        return cli_fail(CLI_FAILED, "%s", err.message);
    cli_heat_svg(&picture, &svg);
    if (buf_overflowed(&svg))
        return cli_fail(CLI_FAILED, "the picture is larger than %zu bytes: ask for fewer --points",
                        svg.max);
    return text_write(command, buf_slice(&svg));
}

/* --- The report ------------------------------------------------------------------------------ */

static struct slice trouble_text(struct heat_command *command, struct slice key)
{
    if (slice_equal(cli_answer_text(key, "trouble"), SLICE("large")))
        return arena_printf(command->arena, "large: %.0f of %.0f bytes",
                            cli_answer_number(key, "bytes"), cli_answer_number(key, "bytesMax"));
    return arena_printf(command->arena, "hot: wants %.0f of %.0f RU/s, %.0f %% refused",
                        cli_answer_number(key, "ruPerSecondWanted"),
                        cli_answer_number(key, "ruPerSecondOfPartition"),
                        cli_answer_number(key, "throttledShare") * 100);
}

static int hot_print(struct heat_command *command, struct slice document)
{
    static const char *const headings[] = {"PARTITION KEY", "DATABASE", "CONTAINER", "PARTITION",
                                           "SINCE",         "TROUBLE",  "DO",        NULL};
    struct cli_table *table = cli_table_new(command->arena, headings);
    struct document_iter iter;

    document_iter_init(&iter, cli_answer_inside(document, "keys"));
    while (document_iter_next(&iter)) {
        struct slice key = iter.value.document;

        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        cli_table_text(table, cli_answer_key(key, command->arena));
        cli_table_text(table, cli_answer_text(key, "database"));
        cli_table_text(table, cli_answer_text(key, "container"));
        cli_table_text(table, cli_answer_text(key, "partition"));
        cli_table_text(table, cli_answer_text(key, "since"));
        cli_table_text(table, trouble_text(command, key));
        cli_table_text(table, cli_answer_text(key, "advice"));
    }
    cli_table_print(table);
    return CLI_OK;
}

static int hot_run(struct heat_command *command)
{
    struct slice path = SLICE("hot");
    struct cli_answer answer;
    struct error err;

    if (command->word_count == 2)
        path = arena_printf(command->arena, "containers/%s/%s/hot", command->words[0],
                            command->words[1]);
    if (!cli_client_ask(command->client, "GET", path, SLICE_NONE, SLICE_NONE, command->arena,
                        &answer, &err))
        return cli_fail(CLI_FAILED, "%s", err.message);
    if (command->options.json) {
        printf("%.*s\n", SLICE_ARG(answer.text));
        return CLI_OK;
    }
    return hot_print(command, answer.document);
}

/* --- Both ------------------------------------------------------------------------------------ */

static int client_run(struct heat_command *command, int (*run)(struct heat_command *command))
{
    struct error err;
    int code;

    if (!cli_client_new(&command->options, &command->client, &err))
        return cli_fail(CLI_FAILED, "%s", err.message);
    code = run(command);
    cli_client_free(command->client);
    return code;
}

int cli_partition_heat(int argc, char **argv)
{
    static const struct option options[] = {CLI_CLIENT_OPTION_ROWS,
                                            {"help", no_argument, NULL, 'h'},
                                            {"by", required_argument, NULL, OPTION_BY},
                                            {"show", required_argument, NULL, OPTION_SHOW},
                                            {"last", required_argument, NULL, OPTION_LAST},
                                            {"out", required_argument, NULL, OPTION_OUT},
                                            {"points", required_argument, NULL, OPTION_POINTS},
                                            {NULL}};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct heat_command command = {.arena = arena, .minutes = 120, .points = 240};
    bool help;

    command.word_count =
        cli_words_read(argc, argv, options,
                       &(struct cli_words){command.words, WORDS_MAX, option_take, &command}, &help);
    if (help) {
        heat_help();
        return CLI_OK;
    }
    if (command.word_count < 0)
        return CLI_USAGE;
    if (command.word_count != 2)
        return cli_fail(CLI_USAGE, "heat is of one container: orrery partition heat DATABASE "
                                   "CONTAINER");
    return client_run(&command, heat_run);
}

int cli_partition_hot(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_CLIENT_OPTION_ROWS, {"help", no_argument, NULL, 'h'}, {NULL}};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct heat_command command = {.arena = arena};
    bool help;

    command.word_count =
        cli_words_read(argc, argv, options,
                       &(struct cli_words){command.words, WORDS_MAX, option_take, &command}, &help);
    if (help) {
        hot_help();
        return CLI_OK;
    }
    if (command.word_count < 0)
        return CLI_USAGE;
    if (command.word_count == 1)
        return cli_fail(CLI_USAGE, "a container has a database: orrery partition hot DATABASE "
                                   "CONTAINER");
    return client_run(&command, hot_run);
}
