/* `orrery promote ...`: a container of its own for a partition key value, and the way back. */
#include "cli/cli.h"
#include "cli/partition.h"
#include "cli/table.h"

#include "document/bson.h"
#include "document/json.h"

#include <time.h>

enum {
    OPTION_NO_WAIT = 1000,
    OPTION_KEY,
    OPTION_TO,
    OPTION_THROUGHPUT,
    OPTION_MAX_THROUGHPUT,
    OPTION_DRY_RUN,
    OPTION_STATUS,
    OPTION_DEMOTE,
    OPTION_END,
    OPTION_FORGET,
    OPTION_EMPTY,
};

enum { POLL_MS = 200 };

struct promote {
    struct cli_asking command; /* words: "promote", database, container */
    const char *key, *to, *throughput, *max_throughput;
    bool empty; /* --empty */
    int what;   /* OPTION_DRY_RUN and the like; 0: begin */
    int whats;
    char waits_for[ERROR_MESSAGE_SIZE]; /* that was said last */
};

void cli_promote_help(void)
{
    printf(
        "Usage: orrery promote DATABASE CONTAINER --key KEY --to CONTAINER [OPTION]...\n"
        "       orrery promote DATABASE CONTAINER --key KEY --demote | --end | --forget\n"
        "       orrery promote DATABASE CONTAINER --status\n"
        "\n"
        "Gives one partition key value a container of its own, while clients work. Until --end\n"
        "both containers serve the key: they are two names for the same items. --demote takes it\n"
        "back the same way. The command waits until the key is there; Ctrl-C leaves it to the\n"
        "server.\n"
        "\n"
        "Options:\n"
        "  --key KEY            the key, '[\"acme\"]' or for a text acme; of a hierarchical key\n"
        "                       the first values will do\n"
        "  --to CONTAINER       the container, of the same database; it is made if it is not "
        "there\n"
        "  --throughput RU      of a container that is made; --max-throughput RU: autoscale\n"
        "  --empty              the key is to come: no item has it yet\n"
        "  --dry-run            only say how much would be copied, and what is in the way\n"
        "  --status             all promotions of the container\n"
        "  --demote             make CONTAINER the home of the key again\n"
        "  --end                end the grace period: one container serves the key from then on\n"
        "  --forget             cut the tie behind the end; before the key has moved, take it "
        "back\n"
        "  --no-wait            return as soon as it has begun\n");
    cli_client_help();
}

static bool option_take(void *context, int option, const char *value)
{
    struct promote *promote = context;

    switch (option) {
    case OPTION_NO_WAIT:
        promote->command.no_wait = true;
        break;
    case OPTION_KEY:
        promote->key = value;
        break;
    case OPTION_TO:
        promote->to = value;
        break;
    case OPTION_THROUGHPUT:
        promote->throughput = value;
        break;
    case OPTION_MAX_THROUGHPUT:
        promote->max_throughput = value;
        break;
    case OPTION_EMPTY:
        promote->empty = true;
        promote->command.query = SLICE("empty=true");
        break;
    case OPTION_DRY_RUN:
    case OPTION_STATUS:
    case OPTION_DEMOTE:
    case OPTION_END:
    case OPTION_FORGET:
        promote->what = option;
        promote->whats++;
        break;
    default:
        return cli_client_take(&promote->command.options, option, value);
    }
    return true;
}

/* --- What is asked for ----------------------------------------------------------------------- */

static bool number_append(struct buf *body, const char *name, const char *text)
{
    uint64_t number;

    if (!text)
        return true;
    if (!slice_to_uint64(slice_of_text(text), &number))
        return false;
    buf_printf(body, ",\"%s\":%s", name, text);
    return true;
}

static bool body_write(const struct promote *promote, struct buf *body)
{
    BUF_APPEND(body, "{\"partitionKey\":");
    cli_asking_key(body, promote->key);
    if (promote->to) {
        BUF_APPEND(body, ",\"to\":");
        document_json_write_string(slice_of_text(promote->to), body);
    }
    if (!number_append(body, "throughput", promote->throughput) ||
        !number_append(body, "maxThroughput", promote->max_throughput))
        return false;
    if (promote->what == OPTION_DRY_RUN)
        BUF_APPEND(body, ",\"dryRun\":true");
    BUF_APPEND(body, "}");
    return true;
}

static int ask(struct promote *promote, const char *method, struct slice rest, struct slice body,
               struct cli_answer *ret_answer)
{
    struct cli_asking *command = &promote->command;
    struct error err;

    if (!cli_asking_ask(command, method, cli_asking_path(command, rest), body, ret_answer, &err))
        return cli_asking_failed(&err);
    return CLI_OK;
}

/* --- What is answered ------------------------------------------------------------------------ */

static struct slice key_text(struct promote *promote, struct slice promotion)
{
    CLEANUP(buf_done) struct buf text;
    struct document_value key;

    buf_init(&text, BUF_DEFAULT_MAX);
    if (document_find(promotion, SLICE("partitionKey"), &key))
        document_json_write_value(&key, &text);
    return arena_copy(promote->command.arena, buf_slice(&text));
}

static bool has_grace(struct slice promotion)
{
    struct document_value grace;

    return document_find(promotion, SLICE("grace"), &grace) && grace.type == DOCUMENT_BOOL &&
           grace.boolean;
}

static const char *served_by(struct slice promotion)
{
    bool preparing = slice_equal(cli_answer_text(promotion, "state"), SLICE("preparing"));

    return preparing ? "the first" : has_grace(promotion) ? "both" : "one";
}

static void promotion_print(struct promote *promote, struct slice promotion)
{
    struct slice state = cli_answer_text(promotion, "state");
    struct slice key = key_text(promote, promotion);

    if (promote->command.options.json) {
        CLEANUP(buf_done) struct buf text;

        buf_init(&text, BUF_DEFAULT_MAX);
        document_json_write(promotion, &text);
        printf("%.*s\n", SLICE_ARG(buf_slice(&text)));
        return;
    }
    printf("%.*s of %.*s: %.*s%s%.*s", SLICE_ARG(key),
           SLICE_ARG(cli_answer_text(promotion, "container")), SLICE_ARG(state),
           slice_equal(state, SLICE("demoted")) ? " from " : " to ",
           SLICE_ARG(cli_answer_text(promotion, "to")));
    printf(slice_equal(state, SLICE("preparing")) ? "\n"
           : has_grace(promotion)                 ? ", served by both\n"
                                                  : ", grace period over\n");
}

static int status_print(struct promote *promote, struct slice answer)
{
    static const char *const headings[] = {"KEY",    "CONTAINER", "TO",        "STATE",
                                           "SERVED", ">ITEMS",    "WAITS FOR", NULL};
    struct arena *arena = promote->command.arena;
    struct cli_table *table = cli_table_new(arena, headings);
    struct document_iter iter;
    size_t count = 0;

    document_iter_init(&iter, cli_answer_inside(answer, "promotions"));
    while (document_iter_next(&iter)) {
        struct slice promotion = iter.value.document;

        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        count++;
        cli_table_text(table, key_text(promote, promotion));
        cli_table_text(table, cli_answer_text(promotion, "container"));
        cli_table_text(table, cli_answer_text(promotion, "to"));
        cli_table_text(table, cli_answer_text(promotion, "state"));
        cli_table_text(table, slice_of_text(served_by(promotion)));
        cli_table_text(table, arena_printf(arena, "%.0f", cli_answer_number(promotion, "items")));
        cli_table_text(table, cli_answer_text(promotion, "waitsFor"));
    }
    if (count)
        cli_table_print(table);
    else
        printf("no key of the container is promoted\n");
    return CLI_OK;
}

static int estimate_print(struct promote *promote, struct slice answer)
{
    struct document_value exists, isolated;
    bool there = document_find(answer, SLICE("exists"), &exists) && exists.boolean;
    bool alone = document_find(answer, SLICE("isolated"), &isolated) && isolated.boolean;

    printf("container %s %s\n", promote->to, there ? "is there and fits" : "would be made");
    printf("the key %s partition %.*s of %.*s: %.*s would be copied\n",
           alone ? "has for itself" : "would be isolated from",
           SLICE_ARG(cli_answer_text(answer, "partition")),
           SLICE_ARG(
               cli_table_count(cli_answer_number(answer, "items"), "item", promote->command.arena)),
           SLICE_ARG(cli_table_bytes_text(cli_answer_number(answer, "bytesToCopy"),
                                          promote->command.arena)));
    return CLI_OK;
}

/* --- Waiting --------------------------------------------------------------------------------- */

/* The promotion of this key among all; data NULL: it is gone. */
static struct slice ours(struct promote *promote, struct slice answer, struct slice key)
{
    struct document_iter iter;

    document_iter_init(&iter, cli_answer_inside(answer, "promotions"));
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT &&
            slice_equal(key_text(promote, iter.value.document), key))
            return iter.value.document;
    return SLICE_NONE;
}

static void waits_say(struct promote *promote, struct slice reason)
{
    if (!reason.len || slice_equal(reason, slice_of_text(promote->waits_for)))
        return;
    (void)snprintf(promote->waits_for, sizeof promote->waits_for, "%.*s", SLICE_ARG(reason));
    fprintf(stderr, "waits: %s\n", promote->waits_for);
}

/* The isolation is watched like any other migration, but for whoever wants JSON, which is one
 * answer; what follows takes a moment. */
static int follow(struct promote *promote, struct slice key)
{
    const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};

    for (;;) {
        struct cli_answer answer;
        struct slice promotion, migration;
        int code = ask(promote, "GET", SLICE("/promote"), SLICE_NONE, &answer);

        if (code != CLI_OK)
            return code;
        promotion = ours(promote, answer.document, key);
        if (!promotion.data)
            return cli_fail(CLI_FAILED, "the promotion was taken back");
        if (!slice_equal(cli_answer_text(promotion, "state"), SLICE("preparing"))) {
            promotion_print(promote, promotion);
            return CLI_OK;
        }
        migration = cli_answer_inside(promotion, "migration");
        if (document_count(migration) && !promote->command.options.json) {
            code = cli_partition_watch(&promote->command, cli_answer_text(migration, "id"));
            if (code != CLI_OK)
                return code;
            continue;
        }
        waits_say(promote, cli_answer_text(promotion, "waitsFor"));
        nanosleep(&pause, NULL);
    }
}

/* --- Running --------------------------------------------------------------------------------- */

static int post(struct promote *promote, struct slice rest, struct cli_answer *ret_answer)
{
    CLEANUP(buf_done) struct buf body;

    buf_init(&body, BUF_DEFAULT_MAX);
    if (!promote->key)
        return cli_fail(CLI_USAGE, "it needs --key");
    if (!body_write(promote, &body))
        return cli_fail(CLI_USAGE, "throughput is a whole number of RU/s");
    return ask(promote, "POST", rest, buf_slice(&body), ret_answer);
}

static int shown(const struct promote *promote, const struct cli_answer *answer)
{
    return promote->command.options.json ? cli_asking_json(answer) : CLI_OK;
}

static int begin(struct promote *promote)
{
    struct cli_answer answer;
    int code;

    if (!promote->to)
        return cli_fail(CLI_USAGE, "a promotion needs --to, the container it goes to");
    code = post(promote, SLICE("/promote"), &answer);
    if (code != CLI_OK)
        return code;
    if (promote->command.options.json && (promote->what || promote->command.no_wait))
        return shown(promote, &answer);
    if (promote->what == OPTION_DRY_RUN)
        return estimate_print(promote, answer.document);
    if (!promote->command.no_wait)
        return follow(promote, key_text(promote, answer.document));
    printf("begun: `orrery promote %s %s --status` shows how it goes\n", promote->command.words[1],
           promote->command.words[2]);
    return CLI_OK;
}

static int change(struct promote *promote, struct slice rest)
{
    struct cli_answer answer;
    int code = post(promote, rest, &answer);

    if (code != CLI_OK || promote->command.options.json)
        return code == CLI_OK ? shown(promote, &answer) : code;
    if (promote->what == OPTION_FORGET)
        printf("forgotten\n");
    else
        promotion_print(promote, answer.document);
    return CLI_OK;
}

static int run(struct promote *promote)
{
    struct cli_answer answer;
    int code;

    switch (promote->what) {
    case OPTION_STATUS:
        code = ask(promote, "GET", SLICE("/promote"), SLICE_NONE, &answer);
        if (code != CLI_OK)
            return code;
        return promote->command.options.json ? shown(promote, &answer)
                                             : status_print(promote, answer.document);
    case OPTION_DEMOTE:
        return change(promote, SLICE("/promote/demote"));
    case OPTION_END:
        return change(promote, SLICE("/promote/end"));
    case OPTION_FORGET:
        return change(promote, SLICE("/promote/forget"));
    default:
        return begin(promote);
    }
}

int cli_promote(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_CLIENT_OPTION_ROWS,
        {"help", no_argument, NULL, 'h'},
        {"no-wait", no_argument, NULL, OPTION_NO_WAIT},
        {"key", required_argument, NULL, OPTION_KEY},
        {"to", required_argument, NULL, OPTION_TO},
        {"throughput", required_argument, NULL, OPTION_THROUGHPUT},
        {"max-throughput", required_argument, NULL, OPTION_MAX_THROUGHPUT},
        {"dry-run", no_argument, NULL, OPTION_DRY_RUN},
        {"status", no_argument, NULL, OPTION_STATUS},
        {"demote", no_argument, NULL, OPTION_DEMOTE},
        {"end", no_argument, NULL, OPTION_END},
        {"forget", no_argument, NULL, OPTION_FORGET},
        {"empty", no_argument, NULL, OPTION_EMPTY},
        {NULL}};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct promote promote = {.command = {.arena = arena, .words = {"promote"}}};
    struct error err;
    bool help;
    int count, code;

    count = cli_words_read(argc, argv, options,
                           &(struct cli_words){&promote.command.words[1], 2, option_take, &promote},
                           &help);
    if (help) {
        cli_promote_help();
        return CLI_OK;
    }
    if (count < 0)
        return CLI_USAGE;
    if (count != 2 || !promote.command.words[1][0] || !promote.command.words[2][0])
        return cli_fail(CLI_USAGE, "it is used as `orrery promote DATABASE CONTAINER ...`");
    if (promote.whats > 1)
        return cli_fail(CLI_USAGE,
                        "--dry-run, --status, --demote, --end and --forget exclude each other");
    if (promote.what && promote.what != OPTION_DRY_RUN &&
        (promote.to || promote.throughput || promote.max_throughput || promote.empty))
        return cli_fail(CLI_USAGE,
                        "--to, --empty and throughput belong to a promotion that begins");
    promote.command.word_count = 3;
    if (!cli_client_new(&promote.command.options, &promote.command.client, &err))
        return cli_asking_failed(&err);
    code = run(&promote);
    cli_client_free(promote.command.client);
    return code;
}
