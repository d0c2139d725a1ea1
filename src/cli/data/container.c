/* `orrery container ...`: containers made, listed, shown, changed and dropped. */
#include "cli/cli.h"

#include "cli/data/resource.h"
#include "cli/table.h"
#include "document/bson.h"
#include "document/json.h"

enum {
    OPTION_KEY = 'k',
    OPTION_TTL = 't',
    OPTION_INDEX = 'i',
    OPTION_UNIQUE = 'u',
    OPTION_DEFINITION = 'd',
    UNIQUE_MAX = 10
};

struct container_command {
    struct cli_asking asking;
    struct cli_offer offer;
    const char *key;        /* paths, with commas between */
    const char *ttl;        /* seconds, "on" or "off" */
    const char *index;      /* the policy: JSON or @FILE */
    const char *definition; /* the same: what the container has besides */
    const char *unique[UNIQUE_MAX];
    size_t unique_count;
};

void cli_container_help(void)
{
    printf(
        "Usage: orrery container list DATABASE\n"
        "       orrery container create DATABASE CONTAINER --partition-key PATH[,PATH...]\n"
        "       orrery container show DATABASE CONTAINER\n"
        "       orrery container change DATABASE CONTAINER [--ttl ...] [--index-policy ...]\n"
        "       orrery container throughput DATABASE CONTAINER [--ru N | --autoscale N]\n"
        "       orrery container drop DATABASE CONTAINER\n"
        "\n"
        "A container holds items. Its partition key decides which of them stay together: `orrery\n"
        "advise` says which fits, `orrery rekey` gives a container in use another. Several paths\n"
        "make a hierarchical key.\n"
        "\n"
        "Options:\n"
        "  --partition-key PATHS  /tenant, or /tenant,/user\n"
        "  --ru N                 so many RU/s\n"
        "  --autoscale N          as many RU/s as are used, up to N\n"
        "  --ttl SECONDS          items expire so long after they were last written; on: those\n"
        "                         alone that have a ttl of their own; off: none does\n"
        "  --index-policy JSON    or @FILE, or - for standard input\n"
        "  --unique PATHS         values that no two items of a partition key share; up to 10 "
        "times\n"
        "  --definition JSON      or @FILE: what the definition has besides\n");
    cli_client_help();
}

static struct container_command *command_of(const struct cli_asking *asking)
{
    return CONTAINER_OF((struct cli_asking *)(uintptr_t)asking, struct container_command, asking);
}

static bool unique_take(struct container_command *command, const char *value)
{
    if (command->unique_count == UNIQUE_MAX) {
        (void)cli_fail(CLI_USAGE, "--unique is given more than %d times", UNIQUE_MAX);
        return false;
    }
    command->unique[command->unique_count++] = value;
    return true;
}

static bool ttl_take(struct container_command *command, const char *value)
{
    uint64_t seconds;

    command->ttl = value;
    if (strcmp(value, "on") == 0 || strcmp(value, "off") == 0 ||
        (slice_to_uint64(slice_of_text(value), &seconds) && seconds >= 1 && seconds <= INT32_MAX))
        return true;
    (void)cli_fail(CLI_USAGE, "--ttl takes seconds, on or off, not \"%s\"", value);
    return false;
}

static bool option_take(void *context, int option, const char *value)
{
    struct container_command *command = command_of(context);

    switch (option) {
    case OPTION_KEY:
        command->key = value;
        return true;
    case OPTION_TTL:
        return ttl_take(command, value);
    case OPTION_INDEX:
        command->index = value;
        return true;
    case OPTION_UNIQUE:
        return unique_take(command, value);
    case OPTION_DEFINITION:
        command->definition = value;
        return true;
    case CLI_OFFER_OPTION_RU:
    case CLI_OFFER_OPTION_AUTOSCALE:
        return cli_offer_take(&command->offer, option, value);
    default:
        return cli_client_take(&command->asking.options, option, value);
    }
}

/* Options that would do nothing are refused. */
static bool options_fit(const struct cli_asking *asking, const struct cli_verb *verb)
{
    const struct container_command *command = command_of(asking);
    bool creates = strcmp(verb->name, "create") == 0, changes = strcmp(verb->name, "change") == 0;
    bool offers = creates || strcmp(verb->name, "throughput") == 0;
    const char *wrong = NULL;

    if ((command->offer.ru || command->offer.autoscale) && !offers)
        wrong = "--ru and --autoscale are for create and throughput";
    else if (command->key && !creates)
        wrong = changes ? "a partition key is changed by `orrery rekey`"
                        : "--partition-key is for create";
    else if ((command->unique_count || command->definition) && !creates)
        wrong = "--unique and --definition are for create";
    else if ((command->ttl || command->index) && !creates && !changes)
        wrong = "--ttl and --index-policy are for create and change";
    else if (creates && !command->key && !command->definition)
        wrong = "a container needs --partition-key, as /tenant";
    else if (changes && !command->ttl && !command->index)
        wrong = "nothing is to be changed: give --ttl or --index-policy";
    if (wrong)
        (void)cli_fail(CLI_USAGE, "%s", wrong);
    return !wrong;
}

/* --- Definitions ----------------------------------------------------------------------------- */

static void paths_append(struct buf *json, const char *paths)
{
    struct slice rest = slice_of_text(paths), path;

    BUF_APPEND(json, "[");
    while (slice_split(rest, ',', &path, &rest)) {
        document_json_write_string(slice_trim(path), json);
        BUF_APPEND(json, ",");
    }
    document_json_write_string(slice_trim(rest), json);
    BUF_APPEND(json, "]");
}

static void key_append(struct buf *json, const char *paths)
{
    BUF_APPEND(json, ",\"partitionKey\":{\"paths\":");
    paths_append(json, paths);
    buf_printf(json, ",\"kind\":\"%s\",\"version\":2}", strchr(paths, ',') ? "MultiHash" : "Hash");
}

static void ttl_append(struct buf *json, const char *ttl)
{
    if (strcmp(ttl, "off") == 0)
        return;
    buf_printf(json, ",\"defaultTtl\":%s", strcmp(ttl, "on") == 0 ? "-1" : ttl);
}

static void unique_append(struct buf *json, const struct container_command *command)
{
    if (!command->unique_count)
        return;
    BUF_APPEND(json, ",\"uniqueKeyPolicy\":{\"uniqueKeys\":[");
    for (size_t i = 0; i < command->unique_count; i++) {
        buf_printf(json, "%s{\"paths\":", i ? "," : "");
        paths_append(json, command->unique[i]);
        BUF_APPEND(json, "}");
    }
    BUF_APPEND(json, "]}");
}

static bool index_append(struct buf *json, const struct container_command *command,
                         struct error *err)
{
    struct slice policy;

    if (!command->index)
        return true;
    if (!cli_resource_json(&command->asking, command->index, false, &policy, err))
        return error_prefix(err, "--index-policy");
    BUF_APPEND(json, ",\"indexingPolicy\":");
    buf_append_slice(json, policy);
    return true;
}

/* The properties of a document but for those that are given otherwise. */
static void rest_append(struct buf *json, struct slice document, const char *const *left)
{
    struct document_iter iter;

    document_iter_init(&iter, document);
    while (document_iter_next(&iter)) {
        bool leave = false;

        for (size_t i = 0; left[i]; i++)
            leave = leave || slice_equal(iter.key, slice_of_text(left[i]));
        if (leave)
            continue;
        BUF_APPEND(json, ",");
        document_json_write_string(iter.key, json);
        BUF_APPEND(json, ":");
        document_json_write_value(&iter.value, json);
    }
}

static bool definition_append(struct buf *json, const struct container_command *command,
                              struct error *err)
{
    const char *left[] = {"id",
                          command->key ? "partitionKey" : "id",
                          command->ttl ? "defaultTtl" : "id",
                          command->index ? "indexingPolicy" : "id",
                          command->unique_count ? "uniqueKeyPolicy" : "id",
                          NULL};
    CLEANUP(buf_done) struct buf bytes;
    struct document_value value;
    struct slice text;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    if (!command->definition)
        return true;
    if (!cli_resource_json(&command->asking, command->definition, false, &text, err) ||
        !document_json_read_value(text, NULL, &bytes, &value, err))
        return error_prefix(err, "--definition");
    rest_append(json, value.document, left);
    return true;
}

static bool created_json(const struct container_command *command, struct buf *json,
                         struct error *err)
{
    BUF_APPEND(json, "{\"id\":");
    document_json_write_string(slice_of_text(command->asking.words[2]), json);
    if (command->key)
        key_append(json, command->key);
    if (command->ttl)
        ttl_append(json, command->ttl);
    unique_append(json, command);
    if (!index_append(json, command, err) || !definition_append(json, command, err))
        return false;
    BUF_APPEND(json, "}");
    return true;
}

/* The definition as it is, with what was said in place of what it says. */
static bool changed_json(const struct container_command *command, struct slice definition,
                         struct buf *json, struct error *err)
{
    const char *left[] = {"id", command->ttl ? "defaultTtl" : "id",
                          command->index ? "indexingPolicy" : "id", NULL};

    BUF_APPEND(json, "{\"id\":");
    document_json_write_string(slice_of_text(command->asking.words[2]), json);
    rest_append(json, definition, left);
    if (command->ttl)
        ttl_append(json, command->ttl);
    if (!index_append(json, command, err))
        return false;
    BUF_APPEND(json, "}");
    return true;
}

/* --- Verbs ----------------------------------------------------------------------------------- */

static struct slice key_text(struct slice container, struct arena *arena)
{
    struct slice paths = cli_answer_inside(cli_answer_inside(container, "partitionKey"), "paths");
    CLEANUP(buf_done) struct buf text;
    struct document_iter iter;

    buf_init(&text, BUF_DEFAULT_MAX);
    if (paths.len)
        for (document_iter_init(&iter, paths); document_iter_next(&iter);)
            if (iter.value.type == DOCUMENT_STRING)
                buf_printf(&text, "%s%.*s", text.len ? "," : "", SLICE_ARG(iter.value.text));
    return arena_copy(arena, buf_slice(&text));
}

struct listing {
    struct cli_table *table;
    struct arena *arena;
};

static void row_add(void *context, struct slice container)
{
    struct listing *listing = context;
    double ttl = cli_answer_number(container, "defaultTtl");

    cli_table_text(listing->table, cli_answer_text(container, "id"));
    cli_table_text(listing->table, key_text(container, listing->arena));
    cli_table_text(listing->table, ttl > 0   ? arena_printf(listing->arena, "%.0f s", ttl)
                                   : ttl < 0 ? SLICE("on")
                                             : SLICE("off"));
}

static int container_list(struct cli_asking *asking)
{
    static const char *const headings[] = {"CONTAINER", "PARTITION KEY", "TTL", NULL};
    const struct cli_resource feed = {
        .method = "GET", .type = "colls", .link = cli_resource_database(asking), .feed = true};
    struct listing listing = {cli_table_new(asking->arena, headings), asking->arena};
    struct cli_answer answer;
    struct error err;

    if (asking->options.json) {
        if (!cli_resource_ask(asking, &feed, &answer, &err))
            return cli_asking_failed(&err);
        return cli_asking_json(&answer);
    }
    if (!cli_resource_feed(asking, &feed, "DocumentCollections", row_add, &listing, &err))
        return cli_asking_failed(&err);
    cli_table_print(listing.table);
    return CLI_OK;
}

static int container_create(struct cli_asking *asking)
{
    struct container_command *command = command_of(asking);
    CLEANUP(buf_done) struct buf body;
    struct cli_resource request = {
        .method = "POST", .type = "colls", .link = cli_resource_database(asking), .feed = true};
    struct cli_answer answer;
    struct error err;

    buf_init(&body, BUF_DEFAULT_MAX);
    if (!created_json(command, &body, &err))
        return cli_asking_failed(&err);
    request.body = buf_slice(&body);
    request.lines = cli_offer_lines(&command->offer, asking->arena);
    if (!cli_resource_ask(asking, &request, &answer, &err))
        return cli_asking_failed(&err);
    return cli_asking_done(asking, &answer, "container \"%s\" was created, with the key %.*s",
                           asking->words[2], SLICE_ARG(key_text(answer.document, asking->arena)));
}

static bool container_get(struct cli_asking *asking, struct cli_answer *ret_answer,
                          struct error *err)
{
    return cli_resource_ask(asking,
                            &(struct cli_resource){.method = "GET",
                                                   .type = "colls",
                                                   .link = cli_resource_container(asking)},
                            ret_answer, err);
}

static int container_show(struct cli_asking *asking)
{
    struct cli_answer answer;
    struct error err;

    if (!container_get(asking, &answer, &err))
        return cli_asking_failed(&err);
    return cli_resource_show(asking, &answer);
}

static int container_change(struct cli_asking *asking)
{
    CLEANUP(buf_done) struct buf body;
    struct cli_resource request = {
        .method = "PUT", .type = "colls", .link = cli_resource_container(asking)};
    struct cli_answer answer;
    struct error err;

    buf_init(&body, BUF_DEFAULT_MAX);
    if (!container_get(asking, &answer, &err) ||
        !changed_json(command_of(asking), answer.document, &body, &err))
        return cli_asking_failed(&err);
    request.body = buf_slice(&body);
    /* somebody else may have changed it meanwhile */
    request.lines = arena_printf(asking->arena, "if-match: %.*s\r\n",
                                 SLICE_ARG(cli_answer_text(answer.document, "_etag")));
    if (!cli_resource_ask(asking, &request, &answer, &err))
        return cli_asking_failed(&err);
    return cli_asking_done(asking, &answer, "container \"%s\" was changed", asking->words[2]);
}

static int container_throughput(struct cli_asking *asking)
{
    return cli_offer_run(asking, &command_of(asking)->offer, cli_resource_container(asking),
                         "colls");
}

static int container_drop(struct cli_asking *asking)
{
    struct cli_answer answer;
    struct error err;

    if (!cli_resource_ask(asking,
                          &(struct cli_resource){.method = "DELETE",
                                                 .type = "colls",
                                                 .link = cli_resource_container(asking)},
                          &answer, &err))
        return cli_asking_failed(&err);
    return cli_asking_done(asking, &answer, "container \"%s\" was dropped, with its items",
                           asking->words[2]);
}

int cli_container(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_CLIENT_OPTION_ROWS,
        CLI_OFFER_OPTION_ROWS,
        {"partition-key", required_argument, NULL, OPTION_KEY},
        {"ttl", required_argument, NULL, OPTION_TTL},
        {"index-policy", required_argument, NULL, OPTION_INDEX},
        {"unique", required_argument, NULL, OPTION_UNIQUE},
        {"definition", required_argument, NULL, OPTION_DEFINITION},
        {"help", no_argument, NULL, 'h'},
        {NULL}};
    static const struct cli_verb rows[] = {
        {"list", 1, 1, "list DATABASE", container_list, NULL},
        {"create", 2, 2, "create DATABASE CONTAINER --partition-key PATH", container_create, NULL},
        {"show", 2, 2, "show DATABASE CONTAINER", container_show, NULL},
        {"change", 2, 2, "change DATABASE CONTAINER", container_change, NULL},
        {"throughput", 2, 2, "throughput DATABASE CONTAINER [--ru N | --autoscale N]",
         container_throughput, NULL},
        {"drop", 2, 2, "drop DATABASE CONTAINER", container_drop, NULL},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct container_command command = {.asking.arena = arena};

    return cli_verbs_run(&(struct cli_verbs){.noun = "container",
                                             .rows = rows,
                                             .count = ARRAY_LEN(rows),
                                             .options = options,
                                             .take = option_take,
                                             .help = cli_container_help,
                                             .fits = options_fit},
                         &command.asking, argc, argv);
}
