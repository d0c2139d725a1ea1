/* `orrery maintenance`: what is refused for a time, with a message for clients. */
#include "base/clock.h"
#include "cli/asking.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "cli/time.h"
#include "document/bson.h"
#include "document/json.h"

enum {
    OPTION_MESSAGE = 'm',
    OPTION_WRITES = 'w',
    OPTION_FROM = 'f',
    OPTION_UNTIL = 'u',
    OPTION_KEY = 'k',
    OPTION_NODE = 'n',
    OPTION_REGION = 'r',
    OPTION_WAIT = 't',
    OPTION_EMPTY = 'e',
    KEYS_MAX = 64,
    WAIT_SECONDS_MAX = 60,
};

struct maintenance_command {
    struct cli_asking asking;
    const char *message, *from, *until, *node, *region, *wait;
    const char *keys[KEYS_MAX];
    size_t key_count;
    bool writes, empty;
};

void cli_maintenance_help(void)
{
    printf(
        "Usage: orrery maintenance list\n"
        "       orrery maintenance pause NAME [DATABASE [CONTAINER]]\n"
        "       orrery maintenance resume NAME\n"
        "\n"
        "A pause refuses requests to a container, to all of a database, or to all of them\n"
        "with 503, the message and the time to wait, in every API, until it is resumed or its\n"
        "planned end comes; it outlives restarts. Requests that began before are finished;\n"
        "--wait waits for them. NAME is chosen here, and resumes it. With keys, a node or a\n"
        "region it is of those alone; whoever asks for other keys besides is refused too.\n"
        "\n"
        "Options:\n"
        "  --writes             only what changes something is refused\n"
        "  --key KEY            of the container this partition key alone; again for others.\n"
        "                       A text, or JSON: [\"acme\",7]; its first values are enough\n"
        "  --empty              a key that no item has yet may be named\n"
        "  --node NAME          what this storage node holds\n"
        "  --region NAME        what the storage nodes of this region hold\n"
        "  --wait SECONDS       until what began before has ended, at most 60 (exit code 1 then)\n"
        "  --message TEXT       what clients are told (maintenance)\n"
        "  --from TIME          a planned begin: 2026-11-17T10:00:00 (UTC)\n"
        "  --until TIME         a planned end: the same, or in 30m, 2h, 1d\n");
    cli_client_help();
}

static bool option_take(void *context, int option, const char *value)
{
    struct maintenance_command *command = context;

    switch (option) {
    case OPTION_MESSAGE:
        command->message = value;
        return true;
    case OPTION_WRITES:
        command->writes = true;
        return true;
    case OPTION_FROM:
        command->from = value;
        return true;
    case OPTION_UNTIL:
        command->until = value;
        return true;
    case OPTION_NODE:
        command->node = value;
        return true;
    case OPTION_REGION:
        command->region = value;
        return true;
    case OPTION_WAIT:
        command->wait = value;
        return true;
    case OPTION_EMPTY:
        command->empty = true;
        return true;
    case OPTION_KEY:
        if (command->key_count == KEYS_MAX)
            return false;
        command->keys[command->key_count++] = value;
        return true;
    default:
        return cli_client_take(&command->asking.options, option, value);
    }
}

static struct maintenance_command *command_of(struct cli_asking *asking)
{
    return CONTAINER_OF(asking, struct maintenance_command, asking);
}

static void member(struct buf *json, const char *name, const char *text)
{
    if (!text)
        return;
    buf_printf(json, "%s\"%s\":", json->len > 1 ? "," : "", name);
    document_json_write_string(slice_of_text(text), json);
}

static bool time_member(struct buf *json, const char *name, const char *text, struct error *err)
{
    int64_t ms;

    if (!text)
        return true;
    if (!cli_time_read(text, 1, &ms, err))
        return false;
    buf_printf(json, ",\"%s\":%lld", name, (long long)ms);
    return true;
}

static bool wait_member(struct buf *json, const char *text, struct error *err)
{
    uint64_t seconds;

    if (!text)
        return true;
    if (!slice_to_uint64(slice_of_text(text), &seconds) || seconds < 1 ||
        seconds > WAIT_SECONDS_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "--wait is a number of seconds from 1 to %d",
                         WAIT_SECONDS_MAX);
    buf_printf(json, ",\"waitMs\":%llu", (unsigned long long)seconds * 1000);
    return true;
}

static void keys_member(struct buf *json, const struct maintenance_command *command)
{
    for (size_t i = 0; i < command->key_count; i++) {
        buf_printf(json, "%s", i ? "," : ",\"keys\":[");
        cli_asking_key(json, command->keys[i]);
    }
    if (command->key_count)
        BUF_APPEND(json, "]");
}

static int maintenance_pause(struct cli_asking *asking)
{
    const struct maintenance_command *command = command_of(asking);
    CLEANUP(buf_done) struct buf json;
    struct document_value drained;
    struct cli_answer answer;
    struct error err;

    buf_init(&json, BUF_DEFAULT_MAX);
    BUF_APPEND(&json, "{");
    member(&json, "name", asking->words[1]);
    member(&json, "database", asking->word_count > 2 ? asking->words[2] : NULL);
    member(&json, "container", asking->word_count > 3 ? asking->words[3] : NULL);
    member(&json, "account", asking->word_count > 2 ? asking->options.account : NULL);
    member(&json, "what", command->writes ? "writes" : "all");
    member(&json, "message", command->message);
    if (!time_member(&json, "from", command->from, &err) ||
        !time_member(&json, "until", command->until, &err) ||
        !wait_member(&json, command->wait, &err))
        return cli_fail(CLI_USAGE, "%s", err.message);
    member(&json, "node", command->node);
    member(&json, "region", command->region);
    keys_member(&json, command);
    BUF_APPEND(&json, "}");
    if (!cli_asking_ask(asking, "POST",
                        command->empty ? SLICE("pauses?empty=true") : SLICE("pauses"),
                        buf_slice(&json), &answer, &err))
        return cli_asking_failed(&err);
    if (command->wait && !(document_find(answer.document, SLICE("drained"), &drained) &&
                           drained.type == DOCUMENT_BOOL && drained.boolean)) {
        if (asking->options.json)
            (void)cli_asking_json(&answer);
        return cli_fail(CLI_FAILED,
                        "it is paused, but %.0f requests that began before are still "
                        "under way: run the same command again to wait on",
                        cli_answer_number(answer.document, "underWay"));
    }
    return cli_asking_done(asking, &answer, "%s of %.*s is paused",
                           command->writes ? "writing" : "service",
                           SLICE_ARG(cli_answer_text(answer.document, "scope")));
}

static int maintenance_resume(struct cli_asking *asking)
{
    struct cli_answer answer;
    struct error err;

    if (!cli_asking_ask(asking, "DELETE",
                        arena_printf(asking->arena, "pauses/%s", asking->words[1]), SLICE_NONE,
                        &answer, &err))
        return cli_asking_failed(&err);
    return cli_asking_done(asking, &answer, "\"%s\" is resumed", asking->words[1]);
}

static struct slice time_shown(struct slice pause, const char *name, struct arena *arena)
{
    double ms = cli_answer_number(pause, name);
    char text[CLOCK_ISO_SIZE];

    if (ms <= 0)
        return SLICE("-");
    clock_iso((int64_t)ms, text);
    return arena_copy(arena, slice_of_text(text));
}

static int maintenance_list(struct cli_asking *asking)
{
    static const char *const headings[] = {"NAME",  "SCOPE", "WHAT",    "FROM",
                                           "UNTIL", "NOW",   "MESSAGE", NULL};
    struct cli_table *table = cli_table_new(asking->arena, headings);
    struct document_iter iter;
    struct cli_answer answer;
    struct error err;

    if (!cli_asking_ask(asking, "GET", SLICE("pauses"), SLICE_NONE, &answer, &err))
        return cli_asking_failed(&err);
    if (asking->options.json)
        return cli_asking_json(&answer);
    document_iter_init(&iter, cli_answer_inside(answer.document, "pauses"));
    while (document_iter_next(&iter)) {
        struct slice pause = iter.value.document;
        struct document_value now;

        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        cli_table_text(table, cli_answer_text(pause, "name"));
        cli_table_text(table, cli_answer_text(pause, "scope"));
        cli_table_text(table, cli_answer_text(pause, "what"));
        cli_table_text(table, time_shown(pause, "from", asking->arena));
        cli_table_text(table, time_shown(pause, "until", asking->arena));
        cli_table_text(table, document_find(pause, SLICE("inForce"), &now) &&
                                      now.type == DOCUMENT_BOOL && now.boolean
                                  ? SLICE("in force")
                                  : SLICE("-"));
        cli_table_text(table, cli_answer_text(pause, "message"));
    }
    cli_table_print(table);
    return CLI_OK;
}

int cli_maintenance(int argc, char **argv)
{
    static const struct option options[] = {CLI_CLIENT_OPTION_ROWS,
                                            {"message", required_argument, NULL, OPTION_MESSAGE},
                                            {"writes", no_argument, NULL, OPTION_WRITES},
                                            {"from", required_argument, NULL, OPTION_FROM},
                                            {"until", required_argument, NULL, OPTION_UNTIL},
                                            {"key", required_argument, NULL, OPTION_KEY},
                                            {"empty", no_argument, NULL, OPTION_EMPTY},
                                            {"node", required_argument, NULL, OPTION_NODE},
                                            {"region", required_argument, NULL, OPTION_REGION},
                                            {"wait", required_argument, NULL, OPTION_WAIT},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL}};
    static const struct cli_verb rows[] = {
        {"list", 0, 0, "list", maintenance_list, NULL},
        {"pause", 1, 3, "pause NAME [DATABASE [CONTAINER]]", maintenance_pause, NULL},
        {"resume", 1, 1, "resume NAME", maintenance_resume, NULL},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct maintenance_command command = {.asking.arena = arena};

    return cli_verbs_run(&(struct cli_verbs){.noun = "maintenance",
                                             .rows = rows,
                                             .count = ARRAY_LEN(rows),
                                             .options = options,
                                             .take = option_take,
                                             .help = cli_maintenance_help},
                         &command.asking, argc, argv);
}
