/* The dot commands: a table of them, and how the words of a line are found. */
#include "base/nearest.h"
#include "cli/shell/shell.h"
#include "cli/shell/sweep.h"
#include "cli/shell/transfer.h"
#include "cli/stats.h"
#include "cli/table.h"
#include "document/json.h"

enum { WORDS_MAX = 6 };

/* One command as it was given. */
struct given {
    struct shell *shell;
    struct arena *arena;
    const char *words[WORDS_MAX]; /* behind the command; those not given are NULL */
    size_t count;
    struct slice rest;   /* everything behind the command, as it stands */
    struct slice behind; /* everything behind the first word */
    struct error err;
};

static bool failed(struct given *given)
{
    return shell_say(given->shell, "%s", given->err.message);
}

static bool container_link(struct given *given, struct slice *ret_link)
{
    const struct shell *shell = given->shell;

    if (!shell_need_container(shell, &given->err))
        return false;
    *ret_link = arena_printf(given->arena, "dbs/%s/colls/%s", shell->database, shell->container);
    return true;
}

static bool table_out(struct given *given, const struct cli_table *table)
{
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    cli_table_append(table, &out);
    shell_screen_begin(&given->shell->screen);
    (void)shell_screen_write(&given->shell->screen, buf_slice(&out));
    return true;
}

/* --- What there is --------------------------------------------------------------------------- */

static void id_add(void *context, struct slice resource)
{
    cli_table_text(context, cli_answer_text(resource, "id"));
}

static bool databases_run(struct given *given)
{
    static const char *const headings[] = {"DATABASE", NULL};
    struct cli_table *table = cli_table_new(given->arena, headings);

    if (!shell_feed(&given->shell->server, "dbs", SLICE(""), "Databases", given->arena, id_add,
                    table, &given->err))
        return failed(given);
    return table_out(given, table);
}

struct containers {
    struct cli_table *table;
    struct arena *arena;
};

static void container_add(void *context, struct slice resource)
{
    struct containers *containers = context;
    CLEANUP(buf_done) struct buf paths;
    struct document_iter iter;

    buf_init(&paths, BUF_DEFAULT_MAX);
    document_iter_init(&iter,
                       cli_answer_inside(cli_answer_inside(resource, "partitionKey"), "paths"));
    while (document_iter_next(&iter)) {
        buf_append_text(&paths, paths.len ? ", " : "");
        buf_append_slice(&paths, iter.value.type == DOCUMENT_STRING ? iter.value.text : SLICE(""));
    }
    cli_table_text(containers->table, cli_answer_text(resource, "id"));
    cli_table_text(containers->table, arena_copy(containers->arena, buf_slice(&paths)));
}

static bool containers_run(struct given *given)
{
    static const char *const headings[] = {"CONTAINER", "PARTITION KEY", NULL};
    struct containers containers = {cli_table_new(given->arena, headings), given->arena};
    const char *database = given->words[0] ? given->words[0] : given->shell->database;

    if (!database[0])
        return shell_say(given->shell,
                         "no database is chosen: .containers DATABASE, or .use first");
    if (!shell_feed(&given->shell->server, "colls", arena_printf(given->arena, "dbs/%s", database),
                    "DocumentCollections", given->arena, container_add, &containers, &given->err))
        return failed(given);
    return table_out(given, containers.table);
}

static bool name_take(char to[SHELL_NAME_MAX + 1], struct slice name)
{
    if (name.len > SHELL_NAME_MAX)
        return false;
    if (name.len)
        memcpy(to, name.data, name.len);
    to[name.len] = '\0';
    return true;
}

static bool use_run(struct given *given)
{
    struct slice text = slice_of_text(given->words[0]), database = text, container = SLICE("");
    struct cli_answer answer;

    (void)slice_split(text, '/', &database, &container);
    if (database.len == 0 || database.len > SHELL_NAME_MAX || container.len > SHELL_NAME_MAX)
        return shell_say(given->shell,
                         "\"%s\" is no name: .use DATABASE or .use "
                         "DATABASE/CONTAINER",
                         given->words[0]);
    if (!shell_get(&given->shell->server, container.len ? "colls" : "dbs",
                   container.len ? arena_printf(given->arena, "dbs/%.*s/colls/%.*s",
                                                SLICE_ARG(database), SLICE_ARG(container))
                                 : arena_printf(given->arena, "dbs/%.*s", SLICE_ARG(database)),
                   given->arena, &answer, &given->err))
        return given->err.code == ERROR_NOT_FOUND
                   ? shell_say(given->shell, "there is no %s \"%s\": %s lists them",
                               container.len ? "container" : "database", given->words[0],
                               container.len ? ".containers DATABASE" : ".databases")
                   : failed(given);
    return name_take(given->shell->database, database) &&
           name_take(given->shell->container, container);
}

static bool schema_run(struct given *given)
{
    CLEANUP(buf_done) struct buf out;
    struct document_value container;
    struct cli_answer answer;
    struct slice link;

    buf_init(&out, BUF_DEFAULT_MAX);
    if (!container_link(given, &link) ||
        !shell_get(&given->shell->server, "colls", link, given->arena, &answer, &given->err))
        return failed(given);
    container = document_object(answer.document);
    shell_json_pretty(&container, 0, &out);
    BUF_APPEND(&out, "\n");
    shell_screen_begin(&given->shell->screen);
    (void)shell_screen_write(&given->shell->screen, buf_slice(&out));
    return true;
}

static void range_add(void *context, struct slice resource)
{
    struct containers *ranges = context;
    CLEANUP(buf_done) struct buf parents;
    struct document_value list;

    buf_init(&parents, BUF_DEFAULT_MAX);
    if (document_find(resource, SLICE("parents"), &list))
        document_json_write_value(&list, &parents);
    cli_table_text(ranges->table, cli_answer_text(resource, "id"));
    cli_table_text(ranges->table, cli_answer_text(resource, "minInclusive"));
    cli_table_text(ranges->table, cli_answer_text(resource, "maxExclusive"));
    cli_table_number(ranges->table, cli_answer_number(resource, "throughputFraction") * 100, 1);
    cli_table_text(ranges->table, cli_answer_text(resource, "status"));
    cli_table_text(ranges->table, arena_copy(ranges->arena, buf_slice(&parents)));
}

static bool ranges_run(struct given *given)
{
    static const char *const headings[] = {"RANGE",  "FROM",    "TO", ">THROUGHPUT %",
                                           "STATUS", "PARENTS", NULL};
    struct containers ranges = {cli_table_new(given->arena, headings), given->arena};
    struct slice link;

    if (!container_link(given, &link) ||
        !shell_feed(&given->shell->server, "pkranges", link, "PartitionKeyRanges", given->arena,
                    range_add, &ranges, &given->err))
        return failed(given);
    return table_out(given, ranges.table);
}

static bool stats_run(struct given *given)
{
    const struct shell *shell = given->shell;
    struct slice path = SLICE("databases");
    struct cli_answer answer;

    if (shell->container[0])
        path = arena_printf(given->arena, "containers/%s/%s", shell->database, shell->container);
    if (!cli_client_ask(shell->server.client, "GET", path, SLICE_NONE, SLICE_NONE, given->arena,
                        &answer, &given->err))
        return failed(given);
    return table_out(given, shell->container[0] ? cli_stats_container(answer.document, given->arena)
                                                : cli_stats_account(answer.document, given->arena));
}

/* --- How things are shown -------------------------------------------------------------------- */

static bool explain_run(struct given *given)
{
    bool on = strcmp(given->words[0], "on") == 0;

    if (!on && strcmp(given->words[0], "off") != 0)
        return shell_say(given->shell, ".explain takes on or off, not \"%s\"", given->words[0]);
    given->shell->explain = on;
    return true;
}

static bool format_run(struct given *given)
{
    return shell_format_parse(slice_of_text(given->words[0]), &given->shell->format, &given->err) ||
           failed(given);
}

static bool parameters_list(const struct shell *shell)
{
    for (size_t i = 0; i < shell->parameters.count; i++)
        printf("%s %s\n", shell->parameters.names[i], shell->parameters.values[i]);
    return true;
}

/* .set @name JSON; .set @name takes it away; .set alone lists. */
static bool set_run(struct given *given)
{
    struct slice name = slice_of_text(given->words[0] ? given->words[0] : ""), json;
    CLEANUP(buf_done) struct buf document;
    struct document_value value;

    buf_init(&document, SHELL_WORD_BYTES_MAX);
    if (!given->count)
        return parameters_list(given->shell);
    if (name.len < 2 || name.data[0] != '@')
        return shell_say(given->shell, "a parameter begins with @: .set @name JSON");
    json = given->behind;
    if (json.len == 0)
        return shell_words_remove(&given->shell->parameters, name) ||
               shell_say(given->shell, "there is no parameter \"%s\"", given->words[0]);
    if (!document_json_read_value(json, NULL, &document, &value, &given->err))
        return shell_say(given->shell, "the value of %s is not JSON: %s", given->words[0],
                         given->err.message);
    return shell_words_put(&given->shell->parameters, name, json) ||
           shell_say(given->shell, "there are too many parameters, or this one is too long");
}

/* --- Files ----------------------------------------------------------------------------------- */

static bool read_run(struct given *given)
{
    return shell_read(given->shell, given->words[0]);
}

static struct shell_transfer transfer_of(const struct given *given)
{
    return (struct shell_transfer){.server = &given->shell->server,
                                   .database = slice_of_text(given->shell->database),
                                   .container = slice_of_text(given->shell->container),
                                   .path = given->words[0],
                                   .quiet = given->shell->quiet};
}

static bool import_run(struct given *given)
{
    struct shell_transfer transfer = transfer_of(given);
    uint64_t refused;

    for (size_t i = 1; i < given->count; i++) {
        if (strcmp(given->words[i], "--upsert") == 0)
            transfer.upsert = true;
        else if (strcmp(given->words[i], "--text") == 0 && i + 1 < given->count)
            transfer.columns_text = given->words[++i];
        else
            return shell_say(given->shell, ".import does not know \"%s\"", given->words[i]);
    }
    if (!shell_need_container(given->shell, &given->err) ||
        !shell_import(&transfer, &refused, &given->err))
        return failed(given);
    return refused == 0;
}

static bool export_run(struct given *given)
{
    struct shell_transfer transfer = transfer_of(given);
    struct shell_fault fault;

    transfer.query = given->behind;
    transfer.parameters = shell_parameters_json(given->shell, given->arena);
    if (!shell_need_container(given->shell, &given->err))
        return failed(given);
    if (shell_export(&transfer, &fault, given->arena, &given->err))
        return true;
    return shell_fault_say(given->shell, &fault, transfer.query, &given->err);
}

/* .delete CONDITION; .patch OPERATIONS CONDITION */
static bool sweep(struct given *given, struct slice condition, struct slice operations)
{
    const struct shell *shell = given->shell;
    struct shell_sweep sweep = {.server = &given->shell->server,
                                .database = slice_of_text(shell->database),
                                .container = slice_of_text(shell->container),
                                .condition = condition,
                                .operations = operations,
                                .quiet = shell->quiet};
    uint64_t found, refused;

    if (!shell_need_container(shell, &given->err) ||
        !shell_sweep_run(&sweep, &found, &refused, &given->err))
        return failed(given);
    return refused == 0;
}

static bool delete_run(struct given *given)
{
    return sweep(given, given->rest, SLICE_NONE);
}

static bool patch_run(struct given *given)
{
    return sweep(given, given->behind, slice_of_text(given->words[0]));
}

/* --- The rest -------------------------------------------------------------------------------- */

static bool quit_run(struct given *given)
{
    given->shell->ended = true;
    return true;
}

static bool help_run(struct given *given);

static const struct command {
    const char *name, *usage, *help;
    size_t words_min, words_max; /* behind it */
    bool (*run)(struct given *given);
} commands[] = {
    {".containers", "[DATABASE]", "containers of a database", 0, 1, containers_run},
    {".databases", "", "all databases", 0, 0, databases_run},
    {".delete", "CONDITION", "delete all items it holds for: .delete c.total < 5", 1, SIZE_MAX,
     delete_run},
    {".explain", "on|off", "show how the server ran each query, and advice", 1, 1, explain_run},
    {".export", "FILE [QUERY]", "write rows, or all items, to a .csv or JSON-lines file", 1,
     SIZE_MAX, export_run},
    {".format", "table|json|lines", "how rows are shown", 1, 1, format_run},
    {".help", "", "this list", 0, 0, help_run},
    {".import", "FILE [--upsert] [--text COLUMN,...]", "items of a .csv or JSON file", 1, 4,
     import_run},
    {".patch", "OPERATIONS CONDITION", "patch all items it holds for", 2, SIZE_MAX, patch_run},
    {".quit", "", "leave", 0, 0, quit_run},
    {".ranges", "", "physical partitions of the container", 0, 0, ranges_run},
    {".read", "FILE", "run the statements of a file", 1, 1, read_run},
    {".schema", "", "the definition of the container", 0, 0, schema_run},
    {".set", "[@NAME [JSON]]", "give queries a parameter, take it away, or list all", 0, SIZE_MAX,
     set_run},
    {".stats", "", "what is stored, and what it was asked for in the last hour", 0, 0, stats_run},
    {".use", "DATABASE[/CONTAINER]", "choose where queries go", 1, 1, use_run},
};

static bool help_run(struct given *given)
{
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    BUF_APPEND(&out, "A query goes on until a semicolon or an empty line. Ctrl-C ends one that "
                     "runs.\n\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        struct slice left =
            arena_printf(given->arena, "%s %s", commands[i].name, commands[i].usage);

        buf_printf(&out, "  %-44.*s %s\n", SLICE_ARG(left), commands[i].help);
    }
    shell_screen_begin(&given->shell->screen);
    (void)shell_screen_write(&given->shell->screen, buf_slice(&out));
    return true;
}

const char *shell_command_name(size_t index)
{
    return index < ARRAY_LEN(commands) ? commands[index].name : NULL;
}

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t';
}

/* Words are separated by blanks; one that holds blanks is quoted. */
static bool words_split(struct given *given, struct slice line)
{
    while (given->count < WORDS_MAX) {
        struct slice word;

        line = slice_trim(line);
        if (line.len == 0)
            return true;
        word = line;
        if (line.data[0] == '"') {
            if (!slice_split(slice_skip(line, 1), '"', &word, &line))
                return false;
        } else {
            word.len = 0;
            while (word.len < line.len && !is_space(line.data[word.len]))
                word.len++;
            line = slice_skip(line, word.len);
        }
        given->words[given->count++] = arena_text(given->arena, word);
        if (given->count == 1)
            given->behind = slice_trim(line);
    }
    return true;
}

static bool unknown(struct shell *shell, struct slice name)
{
    struct nearest nearest = nearest_to(name);

    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        nearest_offer(&nearest, commands[i].name);
    return nearest.name ? shell_say(shell, "there is no command \"%.*s\": did you mean %s?",
                                    SLICE_ARG(name), nearest.name)
                        : shell_say(shell, "there is no command \"%.*s\": .help lists them",
                                    SLICE_ARG(name));
}

bool shell_command_run(struct shell *shell, struct slice line)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct given given = {.shell = shell, .arena = arena};
    struct slice name = line;

    name.len = 0;
    while (name.len < line.len && !is_space(line.data[name.len]))
        name.len++;
    given.rest = slice_trim(slice_skip(line, name.len));
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        const struct command *command = &commands[i];

        if (!slice_equal(name, slice_of_text(command->name)))
            continue;
        if (!words_split(&given, given.rest))
            return shell_say(shell, "a quote is not closed");
        if (given.count < command->words_min || given.count > command->words_max)
            return shell_say(shell, "it is used as %s %s", command->name, command->usage);
        return command->run(&given);
    }
    return unknown(shell, name);
}
