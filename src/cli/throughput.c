/* `orrery throughput ...`: how the owner of a container divides what was bought. */
#include "cli/cli.h"

#include "cli/asking.h"
#include "cli/stats.h"

void cli_throughput_help(void)
{
    printf(
        "Usage: orrery throughput show DATABASE CONTAINER\n"
        "       orrery throughput bucket DATABASE CONTAINER ID PERCENT\n"
        "       orrery throughput reserve DATABASE CONTAINER KEY RU\n"
        "       orrery throughput cap DATABASE CONTAINER KEY RU\n"
        "\n"
        "How a container divides the throughput that was bought for it. Requests that name the\n"
        "throughput bucket ID, 1 to 5, get at most PERCENT of it together; 100 takes that back.\n"
        "RU/s reserved for a partition key value are served to it whatever others spend, and its\n"
        "physical partition gives at least as much: so a key that was isolated is given its "
        "share.\n"
        "A cap is what the key value does not exceed though there be room. 0 takes either back.\n"
        "KEY is a partition key as JSON, '[\"tenant-7\"]', or for a text the text itself.\n"
        "\n"
        "Options:\n");
    cli_client_help();
}

static bool option_take(void *context, int option, const char *value)
{
    return cli_client_take(&((struct cli_asking *)context)->options, option, value);
}

static int ask(struct cli_asking *command, const char *method, struct slice body)
{
    struct cli_answer answer;
    struct error err;

    if (!cli_asking_ask(command, method, cli_asking_path(command, SLICE("/throughput")), body,
                        &answer, &err))
        return cli_asking_failed(&err);
    if (command->options.json)
        return cli_asking_json(&answer);
    cli_stats_throughput(answer.document, command->arena);
    return CLI_OK;
}

static int throughput_show(struct cli_asking *command)
{
    return ask(command, "GET", SLICE_NONE);
}

static bool number_read(const char *word, uint64_t max, uint64_t *ret_number)
{
    if (slice_to_uint64(slice_of_text(word), ret_number) && *ret_number <= max)
        return true;
    (void)cli_fail(CLI_USAGE, "\"%s\" is not a whole number up to %llu", word,
                   (unsigned long long)max);
    return false;
}

static int throughput_bucket(struct cli_asking *command)
{
    CLEANUP(buf_done) struct buf body;
    uint64_t id, percent;

    buf_init(&body, BUF_DEFAULT_MAX);
    if (!number_read(command->words[3], 5, &id) || !number_read(command->words[4], 100, &percent))
        return CLI_USAGE;
    buf_printf(&body, "{\"buckets\":[{\"id\":%llu,\"maxThroughputPercentage\":%llu}]}",
               (unsigned long long)id, (unsigned long long)percent);
    return ask(command, "POST", buf_slice(&body));
}

static int key_set(struct cli_asking *command, const char *what)
{
    CLEANUP(buf_done) struct buf body;
    uint64_t ru;

    buf_init(&body, BUF_DEFAULT_MAX);
    if (!number_read(command->words[4], 10000000, &ru))
        return CLI_USAGE;
    BUF_APPEND(&body, "{\"keys\":[{\"key\":");
    cli_asking_key(&body, command->words[3]);
    buf_printf(&body, ",\"%s\":%llu}]}", what, (unsigned long long)ru);
    return ask(command, "POST", buf_slice(&body));
}

static int throughput_reserve(struct cli_asking *command)
{
    return key_set(command, "reserved");
}

static int throughput_cap(struct cli_asking *command)
{
    return key_set(command, "cap");
}

int cli_throughput(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_CLIENT_OPTION_ROWS, {"help", no_argument, NULL, 'h'}, {NULL}};
    static const struct cli_verb rows[] = {
        {"show", 2, 2, "show DATABASE CONTAINER", throughput_show, NULL},
        {"bucket", 4, 4, "bucket DATABASE CONTAINER ID PERCENT", throughput_bucket, NULL},
        {"reserve", 4, 4, "reserve DATABASE CONTAINER KEY RU", throughput_reserve, NULL},
        {"cap", 4, 4, "cap DATABASE CONTAINER KEY RU", throughput_cap, NULL},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct cli_asking command = {.arena = arena};

    return cli_verbs_run(&(struct cli_verbs){.noun = "throughput",
                                             .rows = rows,
                                             .count = ARRAY_LEN(rows),
                                             .options = options,
                                             .take = option_take,
                                             .help = cli_throughput_help},
                         &command, argc, argv);
}
