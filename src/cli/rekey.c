/* `orrery rekey ...`: another partition key for a container in use. */
#include "cli/cli.h"
#include "cli/partition.h"
#include "cli/table.h"

#include "document/bson.h"
#include "document/json.h"

enum {
    OPTION_NO_WAIT = 1000,
    OPTION_KEY,
    OPTION_SYNTHETIC,
    OPTION_STRATEGY,
    OPTION_ALLOW_MISSING,
    OPTION_DRY_RUN,
    OPTION_STATUS,
    OPTION_ABORT,
    OPTION_END_GRACE,
};

struct rekey {
    struct cli_asking command; /* words: "rekey", database, container */
    const char *key, *synthetic, *strategy;
    bool allow_missing;
    int what; /* OPTION_DRY_RUN and the like; 0: begin */
    int whats;
};

void cli_rekey_help(void)
{
    printf(
        "Usage: orrery rekey DATABASE CONTAINER --key /PATH[,/PATH]... [OPTION]...\n"
        "       orrery rekey DATABASE CONTAINER --status | --abort | --end-grace\n"
        "\n"
        "Gives a container another partition key, synthetic key or strategy, under its name and\n"
        "while clients work. Items that would meet under one key and id, or have no value for\n"
        "the new key, are conflicts: with any the switch waits until they are resolved. After it,\n"
        "clients that still name the old key are understood until --end-grace. The command waits\n"
        "until it is done; Ctrl-C leaves it to the server.\n"
        "\n"
        "Options:\n"
        "  --key PATHS          the paths of the new key; without it they stay\n"
        "  --synthetic JSON     how a part of it is made, as in the property orrery.synthetic\n"
        "  --strategy JSON      hash, range, or an object, as in the property orrery.strategy\n"
        "  --allow-missing      items without a value for the new key are no conflict\n"
        "  --dry-run            only say how long, how much and what would be in the way\n"
        "  --status             how it goes, and the conflicts\n"
        "  --abort              take it back; until the switch\n"
        "  --end-grace          understand the old key no longer\n"
        "  --no-wait            return as soon as it has begun\n");
    cli_client_help();
}

static bool option_take(void *context, int option, const char *value)
{
    struct rekey *rekey = context;

    switch (option) {
    case OPTION_NO_WAIT:
        rekey->command.no_wait = true;
        break;
    case OPTION_KEY:
        rekey->key = value;
        break;
    case OPTION_SYNTHETIC:
        rekey->synthetic = value;
        break;
    case OPTION_STRATEGY:
        rekey->strategy = value;
        break;
    case OPTION_ALLOW_MISSING:
        rekey->allow_missing = true;
        break;
    case OPTION_DRY_RUN:
    case OPTION_STATUS:
    case OPTION_ABORT:
    case OPTION_END_GRACE:
        rekey->what = option;
        rekey->whats++;
        break;
    default:
        return cli_client_take(&rekey->command.options, option, value);
    }
    return true;
}

/* --- What is asked for ----------------------------------------------------------------------- */

static void key_append(struct buf *body, const char *paths)
{
    struct slice rest = slice_of_text(paths);
    size_t count = 0;

    BUF_APPEND(body, "\"partitionKey\":{\"paths\":[");
    while (rest.len) {
        const uint8_t *comma = memchr(rest.data, ',', rest.len);
        size_t len = comma ? (size_t)(comma - rest.data) : rest.len;

        if (count++)
            BUF_APPEND(body, ",");
        document_json_write_string(slice_first(rest, len), body);
        rest = slice_skip(rest, MIN(len + 1, rest.len));
    }
    buf_printf(body, "],\"kind\":\"%s\",\"version\":2},", count > 1 ? "MultiHash" : "Hash");
}

/* A word is a text, anything else is JSON as it stands. */
static void strategy_append(struct buf *body, const char *strategy)
{
    BUF_APPEND(body, "\"strategy\":");
    if (strategy[0] == '{')
        buf_append_text(body, strategy);
    else
        document_json_write_string(slice_of_text(strategy), body);
}

static void body_write(const struct rekey *rekey, struct buf *body)
{
    BUF_APPEND(body, "{");
    if (rekey->key)
        key_append(body, rekey->key);
    if (rekey->strategy || rekey->synthetic) {
        BUF_APPEND(body, "\"orrery\":{");
        if (rekey->strategy)
            strategy_append(body, rekey->strategy);
        if (rekey->synthetic)
            buf_printf(body, "%s\"synthetic\":%s", rekey->strategy ? "," : "", rekey->synthetic);
        BUF_APPEND(body, "},");
    }
    buf_printf(body, "\"allowMissing\":%s,\"dryRun\":%s}", rekey->allow_missing ? "true" : "false",
               rekey->what == OPTION_DRY_RUN ? "true" : "false");
}

/* --- What is answered ------------------------------------------------------------------------ */

static void conflicts_print(struct rekey *rekey, struct slice document)
{
    static const char *const headings[] = {"CONFLICT", "ID", "KEY NOW", "NEW KEY OR WHY", NULL};
    static const char *const members[] = {"id", "from"};
    struct arena *arena = rekey->command.arena;
    struct cli_table *table = cli_table_new(arena, headings);
    struct document_iter iter;
    size_t count = 0;

    document_iter_init(&iter, cli_answer_inside(document, "list"));
    while (document_iter_next(&iter)) {
        CLEANUP(buf_done) struct buf text;
        struct document_value value;

        buf_init(&text, BUF_DEFAULT_MAX);
        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        count++;
        cli_table_text(table, cli_answer_text(iter.value.document, "kind"));
        for (size_t i = 0; i < ARRAY_LEN(members); i++) {
            buf_clear(&text);
            if (document_find(iter.value.document, slice_of_text(members[i]), &value))
                document_json_write_value(&value, &text);
            cli_table_text(table, arena_copy(arena, buf_slice(&text)));
        }
        buf_clear(&text);
        if (document_find(iter.value.document, SLICE("to"), &value) ||
            document_find(iter.value.document, SLICE("why"), &value))
            document_json_write_value(&value, &text);
        cli_table_text(table, arena_copy(arena, buf_slice(&text)));
    }
    if (count)
        cli_table_print(table);
}

/* The number of conflicts, each kind told. */
static double conflicts_count(struct slice conflicts, bool tell)
{
    struct document_iter iter;
    double total = 0;

    document_iter_init(&iter, conflicts);
    while (document_iter_next(&iter)) {
        double number = 0;

        if (slice_equal(iter.key, SLICE("comparedOneIn")) ||
            !document_to_double(&iter.value, &number) || number == 0)
            continue;
        total += number;
        if (tell)
            printf("%.0f x %.*s\n", number, SLICE_ARG(iter.key));
    }
    return total;
}

/* Exit code 1 where something is in the way, in either form. */
static int estimate_print(struct rekey *rekey, const struct cli_answer *told)
{
    struct arena *arena = rekey->command.arena;
    struct slice answer = told->document, conflicts = cli_answer_inside(answer, "conflicts");
    struct document_value complete;
    double total;

    if (rekey->command.options.json) {
        (void)cli_asking_json(told);
        return conflicts_count(conflicts, false) == 0 ? CLI_OK : CLI_FAILED;
    }
    printf("%.0f of %.*s looked at%s\n", cli_answer_number(answer, "items"),
           SLICE_ARG(cli_table_count(cli_answer_number(answer, "itemsTotal"), "item", arena)),
           document_find(answer, SLICE("complete"), &complete) && complete.boolean
               ? ""
               : "; the rest is reckoned");
    printf("%.*s, %.*s besides what there is, about %.0f s\n",
           SLICE_ARG(cli_table_count(cli_answer_number(answer, "partitions"), "physical partition",
                                     arena)),
           SLICE_ARG(cli_table_bytes_text(cli_answer_number(answer, "bytesNeeded"), arena)),
           cli_answer_number(answer, "durationMs") / 1000);
    total = conflicts_count(conflicts, true);
    conflicts_print(rekey, answer);
    if (total == 0)
        printf("no conflicts\n");
    return total == 0 ? CLI_OK : CLI_FAILED;
}

static void paths_print(struct slice answer, const char *member, const char *said)
{
    struct slice paths = cli_answer_inside(answer, member);
    struct document_iter iter;

    if (document_count(paths) == 0)
        return;
    printf("%s:", said);
    document_iter_init(&iter, paths);
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_STRING)
            printf(" %.*s", SLICE_ARG(iter.value.text));
    printf("\n");
}

static int status_print(struct rekey *rekey, struct slice answer)
{
    struct slice migration = cli_answer_inside(answer, "migration");
    struct arena *arena = rekey->command.arena;

    paths_print(answer, "partitionKey", "partition key");
    paths_print(answer, "formerly", "still understood");
    paths_print(answer, "next", "becomes");
    if (document_count(migration) == 0)
        return CLI_OK;
    printf("%.*s: %.*s, %.*s copied, %.*s, %.*s too large\n",
           SLICE_ARG(cli_answer_text(migration, "phase")),
           SLICE_ARG(cli_table_count(cli_answer_number(migration, "items"), "item", arena)),
           SLICE_ARG(cli_table_bytes_text(cli_answer_number(migration, "bytes"), arena)),
           SLICE_ARG(cli_table_count(cli_answer_number(answer, "conflicts"), "conflict", arena)),
           SLICE_ARG(cli_table_count(cli_answer_number(answer, "logicalPartitionsFull"),
                                     "logical partition", arena)));
    conflicts_print(rekey, answer);
    return CLI_OK;
}

/* --- Running --------------------------------------------------------------------------------- */

static int ask(struct rekey *rekey, const char *method, struct slice rest, struct slice body,
               struct cli_answer *ret_answer)
{
    struct cli_asking *command = &rekey->command;
    struct error err;

    if (!cli_asking_ask(command, method, cli_asking_path(command, rest), body, ret_answer, &err))
        return cli_asking_failed(&err);
    return CLI_OK;
}

static int begin(struct rekey *rekey)
{
    struct cli_asking *command = &rekey->command;
    CLEANUP(buf_done) struct buf body;
    struct cli_answer answer;
    int code;

    buf_init(&body, BUF_DEFAULT_MAX);
    if (!rekey->key && !rekey->strategy && !rekey->synthetic)
        return cli_fail(CLI_USAGE, "a re-key needs --key, --synthetic or --strategy");
    body_write(rekey, &body);
    code = ask(rekey, "POST", SLICE("/rekey"), buf_slice(&body), &answer);
    if (code != CLI_OK)
        return code;
    if (rekey->what == OPTION_DRY_RUN)
        return estimate_print(rekey, &answer);
    if (!command->no_wait)
        return cli_partition_watch(command, cli_answer_text(answer.document, "id"));
    return cli_asking_done(command, &answer,
                           "begun: `orrery rekey %s %s --status` shows how it goes",
                           command->words[1], command->words[2]);
}

static int run(struct rekey *rekey)
{
    struct cli_answer answer;
    int code;

    switch (rekey->what) {
    case OPTION_STATUS:
        code = ask(rekey, "GET", SLICE("/rekey"), SLICE_NONE, &answer);
        if (code != CLI_OK)
            return code;
        return rekey->command.options.json ? cli_asking_json(&answer)
                                           : status_print(rekey, answer.document);
    case OPTION_ABORT:
        code = ask(rekey, "DELETE", SLICE("/rekey"), SLICE_NONE, &answer);
        return code != CLI_OK ? code : cli_asking_done(&rekey->command, &answer, "taken back");
    case OPTION_END_GRACE:
        code = ask(rekey, "POST", SLICE("/rekey/end-grace"), SLICE_NONE, &answer);
        return code != CLI_OK ? code
                              : cli_asking_done(&rekey->command, &answer,
                                                "the old key is understood no longer");
    default:
        return begin(rekey);
    }
}

int cli_rekey(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_CLIENT_OPTION_ROWS,
        {"help", no_argument, NULL, 'h'},
        {"no-wait", no_argument, NULL, OPTION_NO_WAIT},
        {"key", required_argument, NULL, OPTION_KEY},
        {"synthetic", required_argument, NULL, OPTION_SYNTHETIC},
        {"strategy", required_argument, NULL, OPTION_STRATEGY},
        {"allow-missing", no_argument, NULL, OPTION_ALLOW_MISSING},
        {"dry-run", no_argument, NULL, OPTION_DRY_RUN},
        {"status", no_argument, NULL, OPTION_STATUS},
        {"abort", no_argument, NULL, OPTION_ABORT},
        {"end-grace", no_argument, NULL, OPTION_END_GRACE},
        {NULL}};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct rekey rekey = {.command = {.arena = arena, .words = {"rekey"}}};
    struct error err;
    bool help;
    int count, code;

    count =
        cli_words_read(argc, argv, options,
                       &(struct cli_words){&rekey.command.words[1], 2, option_take, &rekey}, &help);
    if (help) {
        cli_rekey_help();
        return CLI_OK;
    }
    if (count < 0)
        return CLI_USAGE;
    if (count != 2 || !rekey.command.words[1][0] || !rekey.command.words[2][0])
        return cli_fail(CLI_USAGE, "it is used as `orrery rekey DATABASE CONTAINER ...`");
    if (rekey.whats > 1)
        return cli_fail(CLI_USAGE,
                        "--dry-run, --status, --abort and --end-grace exclude each other");
    rekey.command.word_count = 3;
    if (!cli_client_new(&rekey.command.options, &rekey.command.client, &err))
        return cli_asking_failed(&err);
    code = run(&rekey);
    cli_client_free(rekey.command.client);
    return code;
}
