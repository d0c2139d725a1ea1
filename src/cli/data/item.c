/* `orrery item ...`: single items read, written, patched and deleted. */
#include "cli/cli.h"

#include "cli/data/resource.h"
#include "cli/shell/sweep.h"

enum { OPTION_IF_MATCH = 'm', OPTION_DRY = 'n', OPTION_QUIET = 'q' };

struct item_command {
    struct cli_asking asking;
    const char *etag; /* --if-match; NULL: whatever is there */
    bool dry, quiet;  /* --dry-run, --quiet */
};

void cli_item_help(void)
{
    printf(
        "Usage: orrery item get DATABASE CONTAINER KEY ID\n"
        "       orrery item create DATABASE CONTAINER JSON\n"
        "       orrery item put DATABASE CONTAINER JSON\n"
        "       orrery item patch DATABASE CONTAINER KEY ID OPERATIONS\n"
        "       orrery item delete DATABASE CONTAINER KEY ID\n"
        "       orrery item delete-where DATABASE CONTAINER CONDITION\n"
        "       orrery item patch-where DATABASE CONTAINER CONDITION OPERATIONS\n"
        "\n"
        "KEY is the item's partition key as JSON, '[\"tenant-7\"]', or for a text the text "
        "itself.\n"
        "JSON is an item, @FILE a file with one, - standard input; put replaces an item that is\n"
        "there. OPERATIONS are those of a patch, likewise: '[{\"op\":\"incr\",\"path\":\"/n\",\n"
        "\"value\":1}]'. Many items at once are for `orrery import`.\n"
        "CONDITION is what stands behind WHERE, of the item c: 'c.total < 5'. All items it holds\n"
        "for are looked up first; each is then deleted or patched if nobody has changed it since.\n"
        "\n"
        "Options:\n"
        "  --if-match ETAG      only while the item has this _etag: put, patch and delete\n"
        "  --dry-run            delete-where and patch-where: only say how many items it would be\n"
        "  --quiet              ... : no bar and no sums\n");
    cli_client_help();
}

static struct item_command *command_of(const struct cli_asking *asking)
{
    return CONTAINER_OF((struct cli_asking *)(uintptr_t)asking, struct item_command, asking);
}

static bool option_take(void *context, int option, const char *value)
{
    struct item_command *command = command_of(context);

    if (option == OPTION_DRY || option == OPTION_QUIET) {
        *(option == OPTION_DRY ? &command->dry : &command->quiet) = true;
        return true;
    }
    if (option != OPTION_IF_MATCH)
        return cli_client_take(&command->asking.options, option, value);
    command->etag = value;
    if (!strpbrk(value, "\r\n"))
        return true;
    (void)cli_fail(CLI_USAGE, "an etag has no line ends");
    return false;
}

static bool options_fit(const struct cli_asking *asking, const struct cli_verb *verb)
{
    const struct item_command *command = command_of(asking);

    if ((command->dry || command->quiet) && !strstr(verb->name, "-where")) {
        (void)cli_fail(CLI_USAGE, "--dry-run and --quiet are for delete-where and patch-where");
        return false;
    }
    if (!command_of(asking)->etag || strcmp(verb->name, "put") == 0 ||
        strcmp(verb->name, "patch") == 0 || strcmp(verb->name, "delete") == 0)
        return true;
    (void)cli_fail(CLI_USAGE, "--if-match is for put, patch and delete, not for %s", verb->name);
    return false;
}

/* The headers of a request for one item: its key, and the version it must have. */
static struct slice lines_make(const struct cli_asking *asking, const char *key)
{
    const struct item_command *command = command_of(asking);
    CLEANUP(buf_done) struct buf lines;

    buf_init(&lines, BUF_DEFAULT_MAX);
    if (key) {
        BUF_APPEND(&lines, "x-ms-documentdb-partitionkey: ");
        cli_asking_key(&lines, key);
        BUF_APPEND(&lines, "\r\n");
    }
    if (command->etag)
        buf_printf(&lines, "if-match: %s\r\n", command->etag);
    return arena_copy(asking->arena, buf_slice(&lines));
}

/* The item that the third and fourth word behind the verb name. */
static struct cli_resource item_of(const struct cli_asking *asking, const char *method)
{
    return (struct cli_resource){.method = method,
                                 .type = "docs",
                                 .link = arena_printf(asking->arena, "%.*s/docs/%s",
                                                      SLICE_ARG(cli_resource_container(asking)),
                                                      asking->words[4]),
                                 .lines = lines_make(asking, asking->words[3])};
}

static bool key_is_sound(const struct cli_asking *asking)
{
    if (!strpbrk(asking->words[3], "\r\n"))
        return true;
    (void)cli_fail(CLI_USAGE, "a partition key on the command line has no line ends");
    return false;
}

/* What came of a request for one item. The server does not say which one it has not found. */
static int item_failed(const struct cli_asking *asking, const struct error *err)
{
    CLEANUP(buf_done) struct buf key;

    buf_init(&key, BUF_DEFAULT_MAX);
    if (err->code != ERROR_NOT_FOUND || strstr(err->message, "\" does not exist"))
        return cli_asking_failed(err);
    cli_asking_key(&key, asking->words[3]);
    return cli_fail(CLI_FAILED,
                    "container \"%s\" has no item with the partition key %.*s and the id \"%s\" "
                    "(the key comes first, then the id)",
                    asking->words[2], (int)MIN(key.len, (size_t)80), (const char *)key.data,
                    asking->words[4]);
}

static int item_get(struct cli_asking *asking)
{
    struct cli_resource request = item_of(asking, "GET");
    struct cli_answer answer;
    struct error err;

    if (!key_is_sound(asking))
        return CLI_USAGE;
    if (!cli_resource_ask(asking, &request, &answer, &err))
        return item_failed(asking, &err);
    return cli_resource_show(asking, &answer);
}

static int item_delete(struct cli_asking *asking)
{
    struct cli_resource request = item_of(asking, "DELETE");
    struct cli_answer answer;
    struct error err;

    if (!key_is_sound(asking))
        return CLI_USAGE;
    if (!cli_resource_ask(asking, &request, &answer, &err))
        return item_failed(asking, &err);
    return cli_asking_done(asking, &answer, "item \"%s\" was deleted", asking->words[4]);
}

static int item_patch(struct cli_asking *asking)
{
    struct cli_resource request = item_of(asking, "PATCH");
    struct cli_answer answer;
    struct error err;

    if (!key_is_sound(asking))
        return CLI_USAGE;
    if (!cli_resource_json(asking, asking->words[5], true, &request.body, &err))
        return cli_asking_failed(&err);
    if (!cli_resource_ask(asking, &request, &answer, &err))
        return item_failed(asking, &err);
    return cli_resource_show(asking, &answer);
}

/* The server finds the partition key in the item. */
static int item_write(struct cli_asking *asking, const char *lines)
{
    struct cli_resource request = {
        .method = "POST", .type = "docs", .link = cli_resource_container(asking), .feed = true};
    struct cli_answer answer;
    struct error err;

    request.lines =
        arena_printf(asking->arena, "%.*s%s", SLICE_ARG(lines_make(asking, NULL)), lines);
    if (!cli_resource_json(asking, asking->words[3], false, &request.body, &err) ||
        !cli_resource_ask(asking, &request, &answer, &err))
        return cli_asking_failed(&err);
    return cli_resource_show(asking, &answer);
}

static int item_create(struct cli_asking *asking)
{
    return item_write(asking, "");
}

static int item_put(struct cli_asking *asking)
{
    return item_write(asking, "x-ms-documentdb-is-upsert: True\r\n");
}

static int sweep_run(struct cli_asking *asking, struct slice operations)
{
    const struct item_command *command = command_of(asking);
    struct shell_server server = {.client = asking->client, .cancel = -1};
    struct shell_sweep sweep = {.server = &server,
                                .database = slice_of_text(asking->words[1]),
                                .container = slice_of_text(asking->words[2]),
                                .condition = slice_of_text(asking->words[3]),
                                .operations = operations,
                                .dry = command->dry,
                                .quiet = command->quiet,
                                .json = asking->options.json};
    uint64_t found, refused;
    struct error err;

    if (!shell_sweep_run(&sweep, &found, &refused, &err))
        return cli_asking_failed(&err);
    if (sweep.dry)
        printf(sweep.json ? "{\"found\":%llu}\n" : "%llu items\n", (unsigned long long)found);
    return refused ? CLI_FAILED : CLI_OK;
}

static int item_delete_where(struct cli_asking *asking)
{
    return sweep_run(asking, SLICE_NONE);
}

static int item_patch_where(struct cli_asking *asking)
{
    struct slice operations;
    struct error err;

    if (!cli_resource_json(asking, asking->words[4], true, &operations, &err))
        return cli_asking_failed(&err);
    return sweep_run(asking, operations);
}

int cli_item(int argc, char **argv)
{
    static const struct option options[] = {CLI_CLIENT_OPTION_ROWS,
                                            {"if-match", required_argument, NULL, OPTION_IF_MATCH},
                                            {"dry-run", no_argument, NULL, OPTION_DRY},
                                            {"quiet", no_argument, NULL, OPTION_QUIET},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL}};
    static const struct cli_verb rows[] = {
        {"get", 4, 4, "get DATABASE CONTAINER KEY ID", item_get, NULL},
        {"create", 3, 3, "create DATABASE CONTAINER JSON", item_create, NULL},
        {"put", 3, 3, "put DATABASE CONTAINER JSON", item_put, NULL},
        {"patch", 5, 5, "patch DATABASE CONTAINER KEY ID OPERATIONS", item_patch, NULL},
        {"delete", 4, 4, "delete DATABASE CONTAINER KEY ID", item_delete, NULL},
        {"delete-where", 3, 3, "delete-where DATABASE CONTAINER CONDITION", item_delete_where,
         NULL},
        {"patch-where", 4, 4, "patch-where DATABASE CONTAINER CONDITION OPERATIONS",
         item_patch_where, NULL},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct item_command command = {.asking.arena = arena};

    return cli_verbs_run(&(struct cli_verbs){.noun = "item",
                                             .rows = rows,
                                             .count = ARRAY_LEN(rows),
                                             .options = options,
                                             .take = option_take,
                                             .help = cli_item_help,
                                             .fits = options_fit},
                         &command.asking, argc, argv);
}
