/* `orrery stats [DATABASE [CONTAINER]]`: the figures of the administration as tables. */
#include "cli/cli.h"

#include "cli/client.h"
#include "cli/stats.h"
#include "document/bson.h"

enum { OPTION_KEYS = 'k', OPTION_MINUTES = 'm', WORDS_MAX = 2, MINUTES_MAX = 60 };

void cli_stats_help(void)
{
    printf(
        "Usage: orrery stats [DATABASE [CONTAINER]] [--keys] [--minutes N]\n"
        "\n"
        "Without names, the databases and containers of the account; of a database, what each\n"
        "container holds; of a container, its physical partitions: the span of routing keys,\n"
        "what is in it, and the request units (RU) spent and requests refused in the last hour;\n"
        "and the key values that are spread over several of them.\n"
        "\n"
        "Options:\n"
        "  --keys               the partition key values that spend the most RU\n"
        "  --minutes N          in the last N minutes, 1 to 60 (5)\n");
    cli_client_help();
}

struct stats_command {
    struct cli_client_options options;
    bool keys;
    const char *minutes;
    const char *words[WORDS_MAX];
    int word_count;
    size_t listed; /* containers, as JSON */
    struct cli_client *client;
    struct arena *arena;
};

static bool option_take(void *context, int option, const char *value)
{
    struct stats_command *command = context;
    uint64_t minutes;

    if (option == OPTION_KEYS) {
        command->keys = true;
    } else if (option == OPTION_MINUTES) {
        command->minutes = value;
        if (!slice_to_uint64(slice_of_text(value), &minutes) || minutes < 1 ||
            minutes > MINUTES_MAX) {
            cli_fail(CLI_USAGE, "--minutes takes a whole number from 1 to %d, not \"%s\"",
                     MINUTES_MAX, value);
            return false;
        }
    } else {
        return cli_client_take(&command->options, option, value);
    }
    return true;
}

static bool ask(struct stats_command *command, struct slice path, struct slice query,
                struct cli_answer *ret_answer, struct error *err)
{
    if (!cli_client_ask(command->client, "GET", path, query, SLICE_NONE, command->arena, ret_answer,
                        err))
        return false;
    return ret_answer->document.data ||
           error_set(err, ERROR_SYSTEM, "the server's answer is empty");
}

/* --- The account ----------------------------------------------------------------------------- */

/* What nobody bought is shown where clients look for it, but holds nobody back. */
static struct slice offer_kind(struct slice offer, struct arena *arena)
{
    struct document_value enforced;
    struct slice kind = cli_answer_text(offer, "kind");
    bool is_free = document_find(offer, SLICE("enforced"), &enforced) &&
                   enforced.type == DOCUMENT_BOOL && !enforced.boolean;

    return is_free ? arena_printf(arena, "%.*s, not enforced", SLICE_ARG(kind)) : kind;
}

static void containers_add(struct cli_table *table, struct slice database, struct slice containers,
                           struct arena *arena)
{
    struct document_iter iter;
    bool any = false;

    document_iter_init(&iter, containers);
    while (document_iter_next(&iter)) {
        struct slice offer;

        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        any = true;
        offer = cli_answer_inside(iter.value.document, "throughput");
        cli_table_text(table, database);
        cli_table_text(table, cli_answer_text(iter.value.document, "id"));
        cli_table_number(table, cli_answer_number(iter.value.document, "partitions"), 0);
        cli_table_number(table, cli_answer_number(offer, "ruPerSecond"), 0);
        cli_table_text(table, offer_kind(offer, arena));
    }
    if (any)
        return;
    cli_table_text(table, database);
    for (int i = 0; i < 4; i++)
        cli_table_text(table, SLICE("-"));
}

struct cli_table *cli_stats_account(struct slice document, struct arena *arena)
{
    static const char *const headings[] = {"DATABASE", "CONTAINER",  ">PARTITIONS",
                                           ">RU/S",    "THROUGHPUT", NULL};
    struct cli_table *table = cli_table_new(arena, headings);
    struct document_iter iter;

    document_iter_init(&iter, cli_answer_inside(document, "databases"));
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT)
            containers_add(table, cli_answer_text(iter.value.document, "id"),
                           cli_answer_inside(iter.value.document, "containers"), arena);
    return table;
}

/* --- A database ------------------------------------------------------------------------------ */

static bool container_row(struct stats_command *command, struct cli_table *table,
                          struct slice container, struct error *err)
{
    struct slice path =
        arena_printf(command->arena, "containers/%s/%.*s", command->words[0], SLICE_ARG(container));
    struct cli_answer answer;
    struct slice hour;

    if (!ask(command, path, SLICE_NONE, &answer, err))
        return false;
    if (command->options.json) {
        printf("%s%.*s", command->listed++ ? "," : "[", SLICE_ARG(answer.text));
        return true;
    }
    hour = cli_answer_inside(cli_answer_inside(answer.document, "statistics"), "hour");
    cli_table_text(table, container);
    cli_table_number(table,
                     (double)document_count(cli_answer_inside(answer.document, "partitions")), 0);
    cli_table_number(table, cli_answer_number(answer.document, "items"), 0);
    cli_table_bytes(table, cli_answer_number(answer.document, "bytes"));
    cli_table_number(
        table, cli_answer_number(cli_answer_inside(answer.document, "throughput"), "ruPerSecond"),
        0);
    cli_table_number(table, cli_answer_number(hour, "ru"), 2);
    cli_table_number(table, cli_answer_number(hour, "requests"), 0);
    cli_table_number(table, cli_answer_number(hour, "throttled"), 0);
    return true;
}

static int database_print(struct stats_command *command, struct slice document)
{
    static const char *const headings[] = {"CONTAINER", ">PARTITIONS", ">ITEMS",
                                           ">SIZE",     ">RU/S",       ">RU (HOUR)",
                                           ">REQUESTS", ">THROTTLED",  NULL};
    struct cli_table *table = cli_table_new(command->arena, headings);
    struct document_iter databases, containers;
    bool found = false;
    struct error err;

    document_iter_init(&databases, cli_answer_inside(document, "databases"));
    while (document_iter_next(&databases)) {
        if (databases.value.type != DOCUMENT_OBJECT ||
            !slice_equal(cli_answer_text(databases.value.document, "id"),
                         slice_of_text(command->words[0])))
            continue;
        found = true;
        document_iter_init(&containers, cli_answer_inside(databases.value.document, "containers"));
        while (document_iter_next(&containers))
            if (containers.value.type == DOCUMENT_OBJECT &&
                !container_row(command, table, cli_answer_text(containers.value.document, "id"),
                               &err))
                return cli_fail(CLI_FAILED, "%s", err.message);
    }
    if (!found)
        return cli_fail(CLI_FAILED, "there is no database \"%s\": `orrery stats` lists them",
                        command->words[0]);
    if (command->options.json)
        printf(command->listed ? "]\n" : "[]\n");
    else
        cli_table_print(table);
    return CLI_OK;
}

/* --- A container ----------------------------------------------------------------------------- */

struct cli_table *cli_stats_container(struct slice document, struct arena *arena)
{
    static const char *const headings[] = {"PARTITION",  "FROM",      "TO",         "NODE",
                                           ">ITEMS",     ">SIZE",     ">SHARE %",   ">RU/S",
                                           ">RU (HOUR)", ">REQUESTS", ">THROTTLED", NULL};
    struct cli_table *table = cli_table_new(arena, headings);
    struct document_iter iter;

    document_iter_init(&iter, cli_answer_inside(document, "partitions"));
    while (document_iter_next(&iter)) {
        struct slice partition = iter.value.document, hour;

        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        hour = cli_answer_inside(cli_answer_inside(partition, "statistics"), "hour");
        cli_table_text(table, cli_answer_text(partition, "id"));
        cli_table_text(table, cli_answer_text(partition, "minInclusive"));
        cli_table_text(table, cli_answer_text(partition, "maxExclusive"));
        cli_table_text(table, cli_answer_text(partition, "node"));
        cli_table_number(table, cli_answer_number(partition, "items"), 0);
        cli_table_bytes(table, cli_answer_number(partition, "bytes"));
        cli_table_number(table, cli_answer_number(partition, "share") * 100, 1);
        cli_table_number(table, cli_answer_number(partition, "ruPerSecond"), 0);
        cli_table_number(table, cli_answer_number(hour, "ru"), 2);
        cli_table_number(table, cli_answer_number(hour, "requests"), 0);
        cli_table_number(table, cli_answer_number(hour, "throttled"), 0);
    }
    return table;
}

/* Keys that lie in several partitions. */
static void spread_print(struct slice spread, struct arena *arena)
{
    static const char *const headings[] = {"SPREAD KEY", "PARTITIONS", ">ITEMS", ">SIZE", NULL};
    struct cli_table *table = cli_table_new(arena, headings);
    struct document_iter iter, partitions;

    document_iter_init(&iter, spread);
    while (document_iter_next(&iter)) {
        struct slice key = iter.value.document, list = SLICE_NONE;

        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        document_iter_init(&partitions, cli_answer_inside(key, "partitions"));
        while (document_iter_next(&partitions))
            if (partitions.value.type == DOCUMENT_STRING)
                list = arena_printf(arena, "%.*s%s%.*s", SLICE_ARG(list), list.len ? ", " : "",
                                    SLICE_ARG(partitions.value.text));
        cli_table_text(table, cli_answer_key(key, arena));
        cli_table_text(table, list);
        cli_table_number(table, cli_answer_number(key, "items"), 0);
        cli_table_bytes(table, cli_answer_number(key, "bytes"));
    }
    cli_table_print(table);
}

static void buckets_print(struct slice buckets, struct arena *arena)
{
    static const char *const headings[] = {">BUCKET", ">AT MOST %", ">RU", ">THROTTLED", NULL};
    struct cli_table *table = cli_table_new(arena, headings);
    struct document_iter iter;

    document_iter_init(&iter, buckets);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        cli_table_number(table, cli_answer_number(iter.value.document, "id"), 0);
        cli_table_number(table, cli_answer_number(iter.value.document, "maxThroughputPercentage"),
                         0);
        cli_table_number(table, cli_answer_number(iter.value.document, "ru"), 2);
        cli_table_number(table, cli_answer_number(iter.value.document, "throttled"), 0);
    }
    cli_table_print(table);
}

static void reservations_print(struct slice reservations, struct arena *arena)
{
    static const char *const headings[] = {
        "PARTITION KEY", "PARTITION", ">RESERVED RU/S", ">CAP RU/S", ">RU", ">THROTTLED", NULL};
    struct cli_table *table = cli_table_new(arena, headings);
    struct document_iter iter;

    document_iter_init(&iter, reservations);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        cli_table_text(table, cli_answer_key(iter.value.document, arena));
        cli_table_text(table, cli_answer_text(iter.value.document, "partition"));
        cli_table_number(table, cli_answer_number(iter.value.document, "reserved"), 0);
        cli_table_number(table, cli_answer_number(iter.value.document, "cap"), 0);
        cli_table_number(table, cli_answer_number(iter.value.document, "ru"), 2);
        cli_table_number(table, cli_answer_number(iter.value.document, "throttled"), 0);
    }
    cli_table_print(table);
}

void cli_stats_throughput(struct slice document, struct arena *arena)
{
    struct slice offer = cli_answer_inside(document, "throughput"),
                 buckets = cli_answer_inside(document, "buckets"),
                 reservations = cli_answer_inside(document, "reservations");

    printf("throughput: %.0f RU/s, %.*s\n", cli_answer_number(offer, "ruPerSecond"),
           SLICE_ARG(offer_kind(offer, arena)));
    if (buckets.data && document_count(buckets))
        buckets_print(buckets, arena);
    if (reservations.data && document_count(reservations))
        reservations_print(reservations, arena);
}

static int keys_print(struct stats_command *command, struct slice document)
{
    static const char *const headings[] = {"PARTITION KEY",    "PARTITION",  ">RU", ">SHARE %",
                                           ">REQUESTS (HOUR)", ">THROTTLED", NULL};
    struct cli_table *table = cli_table_new(command->arena, headings);
    struct document_iter iter;

    document_iter_init(&iter, cli_answer_inside(document, "keys"));
    while (document_iter_next(&iter)) {
        struct slice key = iter.value.document;

        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        cli_table_text(table, cli_answer_key(key, command->arena));
        cli_table_text(table, cli_answer_text(key, "partition"));
        cli_table_number(table, cli_answer_number(key, "ru"), 2);
        cli_table_number(table, cli_answer_number(key, "shareOfPartition") * 100, 1);
        cli_table_number(table, cli_answer_number(cli_answer_inside(key, "hour"), "requests"), 0);
        cli_table_number(table, cli_answer_number(cli_answer_inside(key, "hour"), "throttled"), 0);
    }
    cli_table_print(table);
    return CLI_OK;
}

/* --- Which of them --------------------------------------------------------------------------- */

/* What is kept for MongoDB's change streams, if anything is. */
static void changes_print(struct slice document, struct arena *arena)
{
    struct slice changes = cli_answer_inside(document, "changes");

    if (changes.data && cli_answer_number(changes, "records") > 0)
        printf("Changes kept for change streams: %.0f, %.*s\n",
               cli_answer_number(changes, "records"),
               SLICE_ARG(cli_table_bytes_text(cli_answer_number(changes, "bytes"), arena)));
}

static int stats_run(struct stats_command *command)
{
    struct slice path = SLICE("databases"), query = SLICE_NONE;
    struct cli_answer answer;
    struct error err;

    if (command->word_count == 2)
        path = arena_printf(command->arena, "containers/%s/%s%s", command->words[0],
                            command->words[1], command->keys ? "/keys" : "");
    if (command->keys && command->minutes)
        query = arena_printf(command->arena, "minutes=%s", command->minutes);
    if (!ask(command, path, query, &answer, &err))
        return cli_fail(CLI_FAILED, "%s", err.message);
    if (command->word_count == 1)
        return database_print(command, answer.document);
    if (command->options.json) {
        printf("%.*s\n", SLICE_ARG(answer.text));
        return CLI_OK;
    }
    if (command->keys)
        return keys_print(command, answer.document);
    cli_table_print(command->word_count ? cli_stats_container(answer.document, command->arena)
                                        : cli_stats_account(answer.document, command->arena));
    if (command->word_count && document_count(cli_answer_inside(answer.document, "spread")))
        spread_print(cli_answer_inside(answer.document, "spread"), command->arena);
    if (command->word_count)
        cli_stats_throughput(answer.document, command->arena);
    else
        changes_print(answer.document, command->arena);
    return CLI_OK;
}

int cli_stats(int argc, char **argv)
{
    static const struct option options[] = {CLI_CLIENT_OPTION_ROWS,
                                            {"help", no_argument, NULL, 'h'},
                                            {"keys", no_argument, NULL, OPTION_KEYS},
                                            {"minutes", required_argument, NULL, OPTION_MINUTES},
                                            {NULL}};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct stats_command command = {.arena = arena};
    struct error err;
    bool help;
    int code;

    command.word_count =
        cli_words_read(argc, argv, options,
                       &(struct cli_words){command.words, WORDS_MAX, option_take, &command}, &help);
    if (help) {
        cli_stats_help();
        return CLI_OK;
    }
    if (command.word_count < 0)
        return CLI_USAGE;
    if ((command.keys && command.word_count != 2) || (command.minutes && !command.keys))
        return cli_fail(CLI_USAGE, "%s",
                        command.keys ? "--keys is of one container: orrery stats DATABASE "
                                       "CONTAINER --keys"
                                     : "--minutes goes with --keys");
    if (!cli_client_new(&command.options, &command.client, &err))
        return cli_fail(CLI_FAILED, "%s", err.message);
    code = stats_run(&command);
    cli_client_free(command.client);
    return code;
}
