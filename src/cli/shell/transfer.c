/* `orrery import` and `orrery export`: the shell's .import and .export as commands of their own. */
#include "cli/shell/transfer.h"

#include "cli/cli.h"
#include "cli/shell/shell.h"
#include "document/json.h"

enum {
    OPTION_DATABASE = 'd',
    OPTION_CONTAINER = 'c',
    OPTION_KIND = 'k',
    OPTION_UPSERT = 'u',
    OPTION_TEXT = 't',
    OPTION_QUERY = 'q',
    OPTION_SYSTEM = 's',
    OPTION_QUIET = 'n',
    OPTION_GRAPH = 'g',
    OPTION_KEY_FROM = 'f',
    OPTION_CREATE = 'r',
    OPTION_PARTITION_KEY = 'p',
};

struct transfer_command {
    struct cli_client_options options;
    struct shell_transfer transfer;
    const char *database, *container;
    bool create;               /* database and container are made if they are not there */
    const char *partition_key; /* of a container that is: "/tenant,/user" */
};

void cli_import_help(void)
{
    printf("Usage: orrery import FILE --database NAME --container NAME\n"
           "\n"
           "Puts the items of a file into a container: JSON (one object a line, or an array of\n"
           "objects) or CSV with a header row; \"-\" is standard input. A file is read through\n"
           "before anything is sent. docs/shell.md says which types CSV fields get.\n"
           "\n"
           "Options:\n"
           "  --database NAME      where to\n"
           "  --container NAME\n"
           "  --create             make database and container if they are not there, with\n"
           "  --partition-key PATHS  this key: /tenant, or /tenant,/user for a hierarchical one\n"
           "  --upsert             replace items that exist instead of refusing them\n"
           "  --as KIND            json or csv; without it by the name: .csv is CSV\n"
           "  --text COLUMN,...    CSV columns that are text whatever they look like\n"
           "  --graph              the file is a graph: GraphSON, one vertex a line with its\n"
           "                       edges, or CSV, where rows with from and to are edges\n"
           "  --key-from NAME      of a graph: id, label or the property that the partition key\n"
           "                       is filled from where a vertex lacks it\n"
           "  --quiet              no bar and no sums\n");
    cli_client_help();
}

void cli_export_help(void)
{
    printf("Usage: orrery export FILE --database NAME --container NAME [--query SQL]\n"
           "\n"
           "Writes all items of a container, or the rows of a query, to a file: JSON lines or\n"
           "CSV; \"-\" is standard output. The file appears when it is whole.\n"
           "\n"
           "Options:\n"
           "  --database NAME      where from\n"
           "  --container NAME\n"
           "  --query SQL          rows of this instead of all items\n"
           "  --as KIND            json or csv; without it by the name: .csv is CSV\n"
           "  --system             with _rid, _self, _etag, _attachments and _ts\n"
           "  --quiet              no bar and no sums\n");
    cli_client_help();
}

static bool option_take(void *context, int option, const char *value)
{
    struct transfer_command *command = context;

    switch (option) {
    case OPTION_DATABASE:
        command->database = value;
        break;
    case OPTION_CONTAINER:
        command->container = value;
        break;
    case OPTION_KIND:
        if (strcmp(value, "json") != 0 && strcmp(value, "csv") != 0) {
            cli_fail(CLI_USAGE, "--as takes json or csv, not \"%s\"", value);
            return false;
        }
        command->transfer.kind = value[0] == 'c' ? SHELL_FILE_CSV : SHELL_FILE_JSON;
        break;
    case OPTION_UPSERT:
        command->transfer.upsert = true;
        break;
    case OPTION_CREATE:
        command->create = true;
        break;
    case OPTION_PARTITION_KEY:
        command->partition_key = value;
        break;
    case OPTION_TEXT:
        command->transfer.columns_text = value;
        break;
    case OPTION_GRAPH:
        command->transfer.graph = true;
        break;
    case OPTION_KEY_FROM:
        command->transfer.key_from = value;
        break;
    case OPTION_QUERY:
        command->transfer.query = slice_of_text(value);
        break;
    case OPTION_SYSTEM:
        command->transfer.system = true;
        break;
    case OPTION_QUIET:
        command->transfer.quiet = true;
        break;
    default:
        return cli_client_take(&command->options, option, value);
    }
    return true;
}

/* --- Making what items go into --------------------------------------------------------------- */

/* What is there already is left as it is. */
static bool resource_make(const struct shell_transfer *transfer, const char *type,
                          struct slice link, struct slice body, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct cli_request request = {
        .method = "POST", .type = slice_of_text(type), .link = link, .feed = true, .body = body};
    struct cli_answer answer;

    return shell_ask(transfer->server, &request, arena, &answer, err) &&
           (answer.status < 400 || answer.status == 409 || cli_answer_refused(&answer, err));
}

static void key_append(const char *paths, struct buf *body)
{
    struct slice rest = slice_of_text(paths), path;
    size_t count = 0;

    BUF_APPEND(body, ",\"partitionKey\":{\"version\":2,\"paths\":[");
    while (rest.len) {
        if (!slice_split(rest, ',', &path, &rest)) {
            path = rest;
            rest = SLICE_NONE;
        }
        if (count++)
            BUF_APPEND(body, ",");
        document_json_write_string(slice_trim(path), body);
    }
    buf_printf(body, "],\"kind\":\"%s\"}}", count > 1 ? "MultiHash" : "Hash");
}

static bool container_make(const struct transfer_command *command, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf body;

    buf_init(&body, BUF_DEFAULT_MAX);
    BUF_APPEND(&body, "{\"id\":");
    document_json_write_string(command->transfer.database, &body);
    BUF_APPEND(&body, "}");
    if (!resource_make(&command->transfer, "dbs", SLICE(""), buf_slice(&body), err))
        return false;
    buf_clear(&body);
    BUF_APPEND(&body, "{\"id\":");
    document_json_write_string(command->transfer.container, &body);
    key_append(command->partition_key, &body);
    return resource_make(&command->transfer, "colls",
                         arena_printf(arena, "dbs/%.*s", SLICE_ARG(command->transfer.database)),
                         buf_slice(&body), err);
}

static int imported(const struct shell_transfer *transfer)
{
    uint64_t refused;
    struct error err;

    if (!shell_import(transfer, &refused, &err))
        return cli_fail(CLI_FAILED, "%s", err.message);
    return refused ? CLI_FAILED : CLI_OK;
}

static int exported(const struct shell_transfer *transfer)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct shell silent = {.quiet = true};
    struct shell_fault fault;
    struct error err;

    if (shell_export(transfer, &fault, arena, &err))
        return CLI_OK;
    (void)shell_fault_say(&silent, &fault, transfer->query, &err);
    return CLI_FAILED;
}

static int transfer_run(int argc, char **argv, const struct option *options, void (*help)(void),
                        int (*run)(const struct shell_transfer *transfer))
{
    struct transfer_command command = {0};
    struct shell_server server = {.cancel = -1};
    struct error err;
    bool helped;
    int words, code;

    words = cli_words_read(argc, argv, options,
                           &(struct cli_words){&command.transfer.path, 1, option_take, &command},
                           &helped);
    if (helped) {
        help();
        return CLI_OK;
    }
    if (words < 0)
        return CLI_USAGE;
    if (words != 1 || !command.database || !command.container)
        return cli_fail(CLI_USAGE,
                        "it is used as `orrery %s FILE --database NAME --container NAME`", argv[0]);
    if (command.create != (command.partition_key != NULL))
        return cli_fail(CLI_USAGE, "--create and --partition-key go together: a container needs a "
                                   "key, and one that is there has its own");
    if (!cli_client_new(&command.options, &server.client, &err))
        return cli_fail(CLI_FAILED, "%s", err.message);
    command.transfer.server = &server;
    command.transfer.json = command.options.json;
    command.transfer.database = slice_of_text(command.database);
    command.transfer.container = slice_of_text(command.container);
    if (command.create && !container_make(&command, &err))
        code = cli_fail(CLI_FAILED, "%s", err.message);
    else
        code = run(&command.transfer);
    cli_client_free(server.client);
    return code;
}

int cli_import(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_CLIENT_OPTION_ROWS,
        {"help", no_argument, NULL, 'h'},
        {"database", required_argument, NULL, OPTION_DATABASE},
        {"container", required_argument, NULL, OPTION_CONTAINER},
        {"create", no_argument, NULL, OPTION_CREATE},
        {"partition-key", required_argument, NULL, OPTION_PARTITION_KEY},
        {"upsert", no_argument, NULL, OPTION_UPSERT},
        {"as", required_argument, NULL, OPTION_KIND},
        {"text", required_argument, NULL, OPTION_TEXT},
        {"graph", no_argument, NULL, OPTION_GRAPH},
        {"key-from", required_argument, NULL, OPTION_KEY_FROM},
        {"quiet", no_argument, NULL, OPTION_QUIET},
        {NULL}};

    return transfer_run(argc, argv, options, cli_import_help, imported);
}

int cli_export(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_CLIENT_OPTION_ROWS,
        {"help", no_argument, NULL, 'h'},
        {"database", required_argument, NULL, OPTION_DATABASE},
        {"container", required_argument, NULL, OPTION_CONTAINER},
        {"query", required_argument, NULL, OPTION_QUERY},
        {"as", required_argument, NULL, OPTION_KIND},
        {"system", no_argument, NULL, OPTION_SYSTEM},
        {"quiet", no_argument, NULL, OPTION_QUIET},
        {NULL}};

    return transfer_run(argc, argv, options, cli_export_help, exported);
}
