/* `orrery audit`: the record of who did what, and whether it is whole. */
#include "cli/asking.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "cli/time.h"
#include "document/bson.h"

enum { FILTERS = 9 };

/* Options that go to the server as parameters of the same name. */
static const char *const filters[FILTERS] = {"database", "container", "operation", "who", "address",
                                             "status",   "max",       "number",    "hash"};

struct audit_command {
    struct cli_asking asking;
    const char *values[FILTERS];
    const char *since, *until;
    bool failed;
};

enum { OPTION_SINCE = 'a', OPTION_UNTIL = 'b', OPTION_FAILED = 'c', OPTION_FIRST = 3000 };

void cli_audit_help(void)
{
    printf("Usage: orrery audit list [FILTERS]\n"
           "       orrery audit verify [--number N --hash HASH]\n"
           "\n"
           "The record of administration, of changes to databases, containers, users and\n"
           "throughput, of who was refused, and of operations on items of the containers that\n"
           "the setting audit.containers names; the newest first. verify walks along the chain\n"
           "of hashes, says whether it is whole and what the last record's number and hash are:\n"
           "kept elsewhere, they show with --number and --hash later that it is still the same\n"
           "chain. Exit code 1: it is not whole.\n"
           "\n"
           "Options:\n"
           "  --database NAME      only records about this database\n"
           "  --container NAME     ... and this container\n"
           "  --operation NAME     order, change, admin, create, delete and the others\n"
           "  --who TEXT           as the record has it: \"read-write key\", \"user ann\"\n"
           "  --address ADDRESS    where it came from\n"
           "  --status N           how it ended\n"
           "  --failed             only what was refused or failed\n"
           "  --since TIME         not older: 2026-11-17, 2026-11-17T10:00:00, or 30m, 2h, 7d\n"
           "  --until TIME         not as new\n"
           "  --max N              at most so many (100)\n"
           "  --number N           verify: the record with this number ...\n"
           "  --hash HASH          ... must have this hash\n");
    cli_client_help();
}

static bool option_take(void *context, int option, const char *value)
{
    struct audit_command *command = context;

    if (option >= OPTION_FIRST && option < OPTION_FIRST + FILTERS)
        command->values[option - OPTION_FIRST] = value;
    else if (option == OPTION_SINCE)
        command->since = value;
    else if (option == OPTION_UNTIL)
        command->until = value;
    else if (option == OPTION_FAILED)
        command->failed = true;
    else
        return cli_client_take(&command->asking.options, option, value);
    return true;
}

/* --- The question ---------------------------------------------------------------------------- */

static void parameter_append(struct buf *query, const char *name, struct slice value)
{
    static const char digits[] = "0123456789ABCDEF";

    buf_printf(query, "%s%s=", query->len ? "&" : "", name);
    for (size_t i = 0; i < value.len; i++) {
        uint8_t c = value.data[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     c == '-' || c == '_' || c == '.' || c == '~';

        if (plain) {
            buf_append_byte(query, c);
        } else {
            buf_append_byte(query, '%');
            buf_append_byte(query, (uint8_t)digits[c >> 4]);
            buf_append_byte(query, (uint8_t)digits[c & 15]);
        }
    }
}

static bool time_append(struct buf *query, const char *name, const char *text, struct error *err)
{
    int64_t ms;

    if (!text)
        return true;
    if (!cli_time_read(text, -1, &ms, err))
        return false;
    buf_printf(query, "%s%s=%lld", query->len ? "&" : "", name, (long long)ms);
    return true;
}

static bool query_make(struct audit_command *command, struct error *err)
{
    CLEANUP(buf_done) struct buf query;

    buf_init(&query, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < FILTERS; i++)
        if (command->values[i])
            parameter_append(&query, filters[i], slice_of_text(command->values[i]));
    if (command->failed)
        parameter_append(&query, "failed", SLICE("true"));
    if (!time_append(&query, "from", command->since, err) ||
        !time_append(&query, "to", command->until, err))
        return false;
    command->asking.query = arena_copy(command->asking.arena, buf_slice(&query));
    return true;
}

static struct audit_command *command_of(struct cli_asking *asking)
{
    return CONTAINER_OF(asking, struct audit_command, asking);
}

static int list_print(struct slice document, struct arena *arena)
{
    static const char *const headings[] = {"TIME",   "WHO", "FROM", "API", "OPERATION",
                                           "STATUS", ">RU", "WHAT", NULL};
    struct cli_table *table = cli_table_new(arena, headings);
    struct document_iter iter;

    document_iter_init(&iter, cli_answer_inside(document, "records"));
    while (document_iter_next(&iter)) {
        struct slice record = iter.value.document, what;

        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        what = cli_answer_text(record, "what");
        if (!what.len)
            what = arena_printf(arena, "%.*s/%.*s", SLICE_ARG(cli_answer_text(record, "database")),
                                SLICE_ARG(cli_answer_text(record, "container")));
        cli_table_text(table, cli_answer_text(record, "time"));
        cli_table_text(table, cli_answer_text(record, "who"));
        cli_table_text(table, cli_answer_text(record, "from"));
        cli_table_text(table, cli_answer_text(record, "api"));
        cli_table_text(table, cli_answer_text(record, "name").len
                                  ? cli_answer_text(record, "name")
                                  : cli_answer_text(record, "operation"));
        cli_table_text(table, arena_printf(arena, "%.0f", cli_answer_number(record, "status")));
        cli_table_number(table, cli_answer_number(record, "charge"), 2);
        cli_table_text(table, what);
    }
    cli_table_print(table);
    return CLI_OK;
}

static int audit_list(struct cli_asking *asking)
{
    struct cli_answer answer;
    struct error err;

    if (!query_make(command_of(asking), &err))
        return cli_fail(CLI_USAGE, "%s", err.message);
    if (!cli_asking_ask(asking, "GET", SLICE("audit"), SLICE_NONE, &answer, &err))
        return cli_asking_failed(&err);
    return asking->options.json ? cli_asking_json(&answer)
                                : list_print(answer.document, asking->arena);
}

static int verdict_print(struct slice document)
{
    struct document_value whole;

    if (document_find(document, SLICE("whole"), &whole) && whole.type == DOCUMENT_BOOL &&
        whole.boolean) {
        printf("the chain is whole: %.0f records, the last is number %.0f with the hash %.*s\n",
               cli_answer_number(document, "records"), cli_answer_number(document, "last"),
               SLICE_ARG(cli_answer_text(document, "hash")));
        return CLI_OK;
    }
    return cli_fail(CLI_FAILED, "the chain is broken at number %.0f: %.*s",
                    cli_answer_number(document, "brokenAt"),
                    SLICE_ARG(cli_answer_text(document, "because")));
}

static int audit_verify_run(struct cli_asking *asking)
{
    const struct audit_command *command = command_of(asking);
    struct document_value whole;
    struct cli_answer answer;
    struct error err;

    if (!command->values[7] != !command->values[8])
        return cli_fail(CLI_USAGE, "--number and --hash go together");
    if (!query_make(command_of(asking), &err))
        return cli_fail(CLI_USAGE, "%s", err.message);
    if (!cli_asking_ask(asking, "GET", SLICE("audit/verify"), SLICE_NONE, &answer, &err))
        return cli_asking_failed(&err);
    if (!asking->options.json)
        return verdict_print(answer.document);
    (void)cli_asking_json(&answer);
    return document_find(answer.document, SLICE("whole"), &whole) && whole.type == DOCUMENT_BOOL &&
                   whole.boolean
               ? CLI_OK
               : CLI_FAILED;
}

int cli_audit(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_CLIENT_OPTION_ROWS,
        {"database", required_argument, NULL, OPTION_FIRST},
        {"container", required_argument, NULL, OPTION_FIRST + 1},
        {"operation", required_argument, NULL, OPTION_FIRST + 2},
        {"who", required_argument, NULL, OPTION_FIRST + 3},
        {"address", required_argument, NULL, OPTION_FIRST + 4},
        {"status", required_argument, NULL, OPTION_FIRST + 5},
        {"max", required_argument, NULL, OPTION_FIRST + 6},
        {"number", required_argument, NULL, OPTION_FIRST + 7},
        {"hash", required_argument, NULL, OPTION_FIRST + 8},
        {"since", required_argument, NULL, OPTION_SINCE},
        {"until", required_argument, NULL, OPTION_UNTIL},
        {"failed", no_argument, NULL, OPTION_FAILED},
        {"help", no_argument, NULL, 'h'},
        {NULL}};
    static const struct cli_verb rows[] = {
        {"list", 0, 0, "list", audit_list, NULL},
        {"verify", 0, 0, "verify", audit_verify_run, NULL},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct audit_command command = {.asking.arena = arena};

    return cli_verbs_run(&(struct cli_verbs){.noun = "audit",
                                             .rows = rows,
                                             .count = ARRAY_LEN(rows),
                                             .options = options,
                                             .take = option_take,
                                             .help = cli_audit_help},
                         &command.asking, argc, argv);
}
