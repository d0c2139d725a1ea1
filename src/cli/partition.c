/* `orrery partition ...`: one request to begin something, and a look at it until it is done. */
#include "cli/partition.h"

#include "cli/cli.h"
#include "cli/heat.h"
#include "cli/table.h"
#include "document/bson.h"
#include "document/json.h"

enum {
    OPTION_NO_WAIT = 'n',
    OPTION_PIECES = 'p',
    OPTION_EMPTY = 'e',
    OPTION_DRY_RUN = 'd',
    OPTION_PARTS = 'P',
    PIECES_MAX = 64,
    PARTS_MAX = 62
};

void cli_partition_help(void)
{
    printf(
        "Usage: orrery partition list DATABASE CONTAINER\n"
        "       orrery partition shards DATABASE CONTAINER\n"
        "       orrery partition split DATABASE CONTAINER ID [--pieces N]\n"
        "       orrery partition merge DATABASE CONTAINER ID ID...\n"
        "       orrery partition move DATABASE CONTAINER ID NODE\n"
        "       orrery partition isolate DATABASE CONTAINER KEY\n"
        "       orrery partition spread DATABASE CONTAINER KEY [--parts N]\n"
        "       orrery partition gather DATABASE CONTAINER KEY\n"
        "       orrery partition watch [DATABASE CONTAINER]\n"
        "       orrery partition heat DATABASE CONTAINER    (its own --help)\n"
        "       orrery partition hot [DATABASE CONTAINER]\n"
        "       orrery partition cancel DATABASE CONTAINER\n"
        "       orrery partition pause\n"
        "       orrery partition resume\n"
        "\n"
        "Physical partitions of a container: what they hold and where they are; cut into\n"
        "pieces of about as many bytes each, merged with their neighbours, moved to another\n"
        "storage node. Isolating gives one partition key value a partition of its own: KEY is\n"
        "a JSON array, '[\"tenant-7\"]', or for a text the text itself. Spreading cuts one key\n"
        "value into several partitions by the ids of its items, on the node it is on; gathering\n"
        "makes them one again. Clients go on working.\n"
        "The command waits until it is done; Ctrl-C leaves it to the server. Without names,\n"
        "watch lists what is under way in all containers. Pause holds all of it until resume.\n"
        "shards prints the list that programs route by, as JSON.\n"
        "\n"
        "Options:\n"
        "  --pieces N           split into N partitions, 2 to 64 (2)\n"
        "  --parts N            spread over N partitions, 2 to 62 (2)\n"
        "  --empty              isolate a key that no item has yet\n"
        "  --no-wait            return as soon as it has begun\n"
        "  --dry-run            split, merge, move, isolate, spread, gather: only say\n"
        "                       what would be\n");
    cli_client_help();
}

struct partition_command {
    struct cli_asking asking;
    const char *pieces; /* --pieces; NULL: not given */
    const char *parts;  /* --parts; NULL: not given */
    bool empty;         /* --empty */
    bool dry_run;       /* --dry-run */
};

static bool count_take(const char *option, const char *value, uint64_t max, const char **ret_text)
{
    uint64_t count;

    if (!slice_to_uint64(slice_of_text(value), &count) || count < 2 || count > max)
        return cli_fail(CLI_USAGE, "%s takes a whole number from 2 to %llu, not \"%s\"", option,
                        (unsigned long long)max, value) == CLI_OK;
    *ret_text = value;
    return true;
}

static bool option_take(void *context, int option, const char *value)
{
    struct partition_command *command = context;

    if (option == OPTION_NO_WAIT) {
        command->asking.no_wait = true;
    } else if (option == OPTION_EMPTY) {
        command->empty = true;
    } else if (option == OPTION_DRY_RUN) {
        command->dry_run = true;
    } else if (option == OPTION_PIECES) {
        return count_take("--pieces", value, PIECES_MAX, &command->pieces);
    } else if (option == OPTION_PARTS) {
        return count_take("--parts", value, PARTS_MAX, &command->parts);
    } else {
        return cli_client_take(&command->asking.options, option, value);
    }
    return true;
}

/* --- Looking --------------------------------------------------------------------------------- */

static void partition_row(struct cli_table *table, struct slice partition)
{
    struct slice max = cli_answer_text(partition, "maxExclusive");
    struct slice doing = cli_answer_text(partition, "underWay");

    cli_table_text(table, cli_answer_text(partition, "id"));
    cli_table_text(table, cli_answer_text(partition, "node"));
    cli_table_text(table, cli_answer_text(partition, "minInclusive"));
    cli_table_text(table, slice_equal(max, SLICE("FF")) ? SLICE("end") : max);
    cli_table_number(table, cli_answer_number(partition, "items"), 0);
    cli_table_bytes(table, cli_answer_number(partition, "bytes"));
    cli_table_number(table, 100 * cli_answer_number(partition, "share"), 1);
    cli_table_text(table, doing.len ? doing : SLICE("-"));
}

static int partition_list(struct cli_asking *command)
{
    static const char *const headings[] = {"PARTITION", "NODE",     "FROM",      "TO", ">ITEMS",
                                           ">BYTES",    ">SHARE %", "UNDER WAY", NULL};
    struct cli_table *table = cli_table_new(command->arena, headings);
    struct document_iter iter;
    struct cli_answer answer;
    struct error err;

    if (!cli_asking_ask(command, "GET", cli_asking_path(command, SLICE("/partitions")), SLICE_NONE,
                        &answer, &err))
        return cli_asking_failed(&err);
    if (command->options.json)
        return cli_asking_json(&answer);
    document_iter_init(&iter, cli_answer_inside(answer.document, "partitions"));
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT)
            partition_row(table, iter.value.document);
    cli_table_print(table);
    return CLI_OK;
}

/* For programs that route by themselves: JSON in any case (docs/routing.md). */
static int partition_shards(struct cli_asking *command)
{
    struct cli_answer answer;
    struct error err;

    if (!cli_asking_ask(command, "GET", cli_asking_path(command, SLICE("/shards")), SLICE_NONE,
                        &answer, &err))
        return cli_asking_failed(&err);
    return cli_asking_json(&answer);
}

static int migrations_list(struct cli_asking *command)
{
    static const char *const headings[] = {"ACCOUNT", "DATABASE", "CONTAINER", "WHAT",
                                           "PHASE",   ">BYTES",   ">OF",       NULL};
    struct cli_table *table = cli_table_new(command->arena, headings);
    struct document_iter iter;
    struct document_value paused;
    struct cli_answer answer;
    struct error err;
    size_t count = 0;

    if (!cli_asking_ask(command, "GET", SLICE("migrations"), SLICE_NONE, &answer, &err))
        return cli_asking_failed(&err);
    if (command->options.json)
        return cli_asking_json(&answer);
    document_iter_init(&iter, cli_answer_inside(answer.document, "migrations"));
    while (document_iter_next(&iter)) {
        struct slice migration = iter.value.document;

        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        cli_table_text(table, cli_answer_text(migration, "account"));
        cli_table_text(table, cli_answer_text(migration, "database"));
        cli_table_text(table, cli_answer_text(migration, "container"));
        cli_table_text(table, cli_answer_text(migration, "kind"));
        cli_table_text(table, cli_answer_text(migration, "phase"));
        cli_table_bytes(table, cli_answer_number(migration, "bytes"));
        cli_table_bytes(table, cli_answer_number(migration, "bytesTotal"));
        count++;
    }
    if (count)
        cli_table_print(table);
    else
        printf("nothing is under way\n");
    if (answer.document.data && document_find(answer.document, SLICE("paused"), &paused) &&
        paused.type == DOCUMENT_BOOL && paused.boolean)
        printf("all of it is paused: `orrery partition resume` goes on\n");
    return CLI_OK;
}

static int partition_watch(struct cli_asking *command)
{
    struct cli_answer answer;
    struct slice migration;
    struct error err;

    if (command->word_count == 1)
        return migrations_list(command);
    /* the list of partitions has the migration too, and tells a container that is not there from
     * one that nothing happens to */
    if (!cli_asking_ask(command, "GET", cli_asking_path(command, SLICE("/partitions")), SLICE_NONE,
                        &answer, &err))
        return cli_asking_failed(&err);
    migration = cli_answer_inside(answer.document, "migration");
    if (document_count(migration) == 0) {
        printf(command->options.json ? "{}\n" : "nothing is under way\n");
        return CLI_OK;
    }
    return cli_partition_watch(command, cli_answer_text(migration, "id"));
}

/* --- Beginning ------------------------------------------------------------------------------- */

static bool is_dry(struct cli_asking *command)
{
    return CONTAINER_OF(command, struct partition_command, asking)->dry_run;
}

static void end_row(struct cli_table *table, struct slice partition)
{
    struct slice id = cli_answer_text(partition, "id"), max;

    max = cli_answer_text(partition, "maxExclusive");
    cli_table_text(table, id.len ? id : SLICE("new"));
    cli_table_text(table, cli_answer_text(partition, "node"));
    cli_table_text(table, cli_answer_text(partition, "minInclusive"));
    cli_table_text(table, slice_equal(max, SLICE("FF")) ? SLICE("end") : max);
    cli_table_bytes(table, cli_answer_number(partition, "bytes"));
    cli_table_number(table, 100 * cli_answer_number(partition, "share"), 1);
}

struct slice cli_partition_dry(struct cli_asking *command, struct slice body)
{
    return arena_printf(command->arena, "%.*s%s\"dryRun\":true}", (int)(body.len - 1),
                        (const char *)body.data, body.len > 2 ? "," : "");
}

int cli_partition_plan(struct cli_asking *command, const struct cli_answer *answer)
{
    static const char *const headings[] = {"PARTITION", "NODE",     "FROM", "TO",
                                           ">BYTES",    ">SHARE %", NULL};
    static const char *const ends[] = {"sources", "targets"};
    struct cli_table *table = cli_table_new(command->arena, headings);
    size_t rows = 0;

    if (command->options.json)
        return cli_asking_json(answer);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        struct document_iter iter;

        document_iter_init(&iter, cli_answer_inside(answer->document, ends[i]));
        while (document_iter_next(&iter))
            if (iter.value.type == DOCUMENT_OBJECT) {
                end_row(table, iter.value.document);
                rows++;
            }
    }
    if (rows)
        cli_table_print(table);
    printf("%.*s: %.0f items would be copied, the container would have %.0f physical partitions "
           "instead of %.0f. Nothing was begun.\n",
           SLICE_ARG(cli_answer_text(answer->document, "kind")),
           cli_answer_number(answer->document, "items"),
           cli_answer_number(answer->document, "partitionsAfter"),
           cli_answer_number(answer->document, "partitions"));
    return CLI_OK;
}

static int begin(struct cli_asking *command, struct slice path, struct slice body)
{
    struct cli_answer answer;
    struct slice id;
    struct error err;

    if (is_dry(command))
        body = cli_partition_dry(command, body);
    if (!cli_asking_ask(command, "POST", path, body, &answer, &err))
        return cli_asking_failed(&err);
    if (is_dry(command))
        return cli_partition_plan(command, &answer);
    id = cli_answer_text(answer.document, "id");
    if (!command->no_wait && id.len)
        return cli_partition_watch(command, id);
    return cli_asking_done(
        command, &answer, "%.*s begun: `orrery partition watch %s %s` shows how it goes",
        SLICE_ARG(cli_answer_text(answer.document, "kind")), command->words[1], command->words[2]);
}

static struct slice of_partition(struct cli_asking *command, const char *verb)
{
    return cli_asking_path(
        command, arena_printf(command->arena, "/partitions/%s/%s", command->words[3], verb));
}

static int partition_split(struct cli_asking *command)
{
    const char *pieces = CONTAINER_OF(command, struct partition_command, asking)->pieces;
    struct slice body =
        pieces ? arena_printf(command->arena, "{\"pieces\":%s}", pieces) : SLICE("{}");

    return begin(command, of_partition(command, "split"), body);
}

/* A JSON object of one member whose value is text that is JSON, or a text. */
static struct slice object_of(struct cli_asking *command, const char *name, struct slice value,
                              bool quoted)
{
    CLEANUP(buf_done) struct buf body;

    buf_init(&body, BUF_DEFAULT_MAX);
    buf_printf(&body, "{\"%s\":", name);
    if (quoted)
        document_json_write_string(value, &body);
    else
        buf_append_slice(&body, value);
    BUF_APPEND(&body, "}");
    return arena_copy(command->arena, buf_slice(&body));
}

static int partition_merge(struct cli_asking *command)
{
    CLEANUP(buf_done) struct buf ids;

    buf_init(&ids, BUF_DEFAULT_MAX);
    BUF_APPEND(&ids, "[");
    for (int i = 3; i < command->word_count; i++) {
        if (i > 3)
            BUF_APPEND(&ids, ",");
        document_json_write_string(slice_of_text(command->words[i]), &ids);
    }
    BUF_APPEND(&ids, "]");
    return begin(command, cli_asking_path(command, SLICE("/partitions/merge")),
                 object_of(command, "partitions", buf_slice(&ids), false));
}

static int partition_move(struct cli_asking *command)
{
    return begin(command, of_partition(command, "move"),
                 object_of(command, "node", slice_of_text(command->words[4]), true));
}

static int partition_isolate(struct cli_asking *command)
{
    CLEANUP(buf_done) struct buf key;

    buf_init(&key, BUF_DEFAULT_MAX);
    cli_asking_key(&key, command->words[3]);
    if (CONTAINER_OF(command, struct partition_command, asking)->empty)
        command->query = SLICE("empty=true");
    return begin(command, cli_asking_path(command, SLICE("/isolate")),
                 object_of(command, "partitionKey", buf_slice(&key), false));
}

static int of_key(struct cli_asking *command, const char *verb, const char *parts)
{
    CLEANUP(buf_done) struct buf key, body;

    buf_init(&key, BUF_DEFAULT_MAX);
    buf_init(&body, BUF_DEFAULT_MAX);
    cli_asking_key(&key, command->words[3]);
    BUF_APPEND(&body, "{\"partitionKey\":");
    buf_append_slice(&body, buf_slice(&key));
    if (parts)
        buf_printf(&body, ",\"parts\":%s", parts);
    BUF_APPEND(&body, "}");
    return begin(command, cli_asking_path(command, slice_of_text(verb)),
                 arena_copy(command->arena, buf_slice(&body)));
}

static int partition_spread(struct cli_asking *command)
{
    return of_key(command, "/spread",
                  CONTAINER_OF(command, struct partition_command, asking)->parts);
}

static int partition_gather(struct cli_asking *command)
{
    return of_key(command, "/gather", NULL);
}

/* --- Stopping -------------------------------------------------------------------------------- */

static int partition_cancel(struct cli_asking *command)
{
    struct cli_answer answer;
    struct error err;

    if (!cli_asking_ask(command, "DELETE", cli_asking_path(command, SLICE("/migration")),
                        SLICE_NONE, &answer, &err))
        return cli_asking_failed(&err);
    return cli_asking_done(command, &answer, "cancelled: the partitions are as they were");
}

static int partition_pause(struct cli_asking *command)
{
    struct cli_answer answer;
    struct error err;

    if (!cli_asking_ask(command, "POST", SLICE("migrations/pause"), SLICE("{}"), &answer, &err))
        return cli_asking_failed(&err);
    return cli_asking_done(
        command, &answer, "paused: `orrery partition resume`, or a restart of the server, goes on");
}

static int partition_resume(struct cli_asking *command)
{
    struct cli_answer answer;
    struct error err;

    if (!cli_asking_ask(command, "POST", SLICE("migrations/resume"), SLICE("{}"), &answer, &err))
        return cli_asking_failed(&err);
    return cli_asking_done(command, &answer, "goes on");
}

/* --- Which verb ------------------------------------------------------------------------------ */

static const struct cli_verb verbs[] = {
    {"list", 2, 2, "list DATABASE CONTAINER", partition_list},
    {"shards", 2, 2, "shards DATABASE CONTAINER", partition_shards},
    {"split", 3, 3, "split DATABASE CONTAINER ID [--pieces N]", partition_split},
    {"merge", 4, CLI_ASKING_WORDS_MAX, "merge DATABASE CONTAINER ID ID...", partition_merge},
    {"move", 4, 4, "move DATABASE CONTAINER ID NODE", partition_move},
    {"isolate", 3, 3, "isolate DATABASE CONTAINER KEY", partition_isolate},
    {"spread", 3, 3, "spread DATABASE CONTAINER KEY [--parts N]", partition_spread},
    {"gather", 3, 3, "gather DATABASE CONTAINER KEY", partition_gather},
    {"watch", 0, 2, "watch [DATABASE CONTAINER]", partition_watch},
    {"heat", .own = cli_partition_heat},
    {"hot", .own = cli_partition_hot},
    {"cancel", 2, 2, "cancel DATABASE CONTAINER", partition_cancel},
    {"pause", 0, 0, "pause", partition_pause},
    {"resume", 0, 0, "resume", partition_resume},
};

static bool options_fit(const struct cli_asking *asking, const struct cli_verb *verb)
{
    const struct partition_command *command =
        CONTAINER_OF((struct cli_asking *)asking, struct partition_command, asking);

    if (command->pieces && verb->run != partition_split)
        return cli_fail(CLI_USAGE, "--pieces is for split") == CLI_OK;
    if (command->parts && verb->run != partition_spread)
        return cli_fail(CLI_USAGE, "--parts is for spread") == CLI_OK;
    if (command->empty && verb->run != partition_isolate)
        return cli_fail(CLI_USAGE, "--empty is for isolate") == CLI_OK;
    if (command->dry_run && verb->run != partition_split && verb->run != partition_merge &&
        verb->run != partition_move && verb->run != partition_isolate &&
        verb->run != partition_spread && verb->run != partition_gather)
        return cli_fail(CLI_USAGE,
                        "--dry-run is for split, merge, move, isolate, spread and gather") ==
               CLI_OK;
    if (verb->run == partition_watch && asking->word_count == 2)
        return cli_fail(CLI_USAGE, "watch takes a database and a container, or neither") == CLI_OK;
    return true;
}

int cli_partition(int argc, char **argv)
{
    static const struct option options[] = {CLI_CLIENT_OPTION_ROWS,
                                            {"help", no_argument, NULL, 'h'},
                                            {"no-wait", no_argument, NULL, OPTION_NO_WAIT},
                                            {"pieces", required_argument, NULL, OPTION_PIECES},
                                            {"parts", required_argument, NULL, OPTION_PARTS},
                                            {"empty", no_argument, NULL, OPTION_EMPTY},
                                            {"dry-run", no_argument, NULL, OPTION_DRY_RUN},
                                            {NULL}};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_command command = {.asking.arena = arena};

    return cli_verbs_run(&(struct cli_verbs){.noun = "partition",
                                             .rows = verbs,
                                             .count = ARRAY_LEN(verbs),
                                             .options = options,
                                             .take = option_take,
                                             .help = cli_partition_help,
                                             .fits = options_fit},
                         &command.asking, argc, argv);
}
