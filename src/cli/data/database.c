/* `orrery database ...`: databases made, listed, shown, dropped, and the throughput they share. */
#include "cli/cli.h"

#include "cli/data/resource.h"
#include "cli/table.h"
#include "document/json.h"

struct database_command {
    struct cli_asking asking;
    struct cli_offer offer;
};

void cli_database_help(void)
{
    printf(
        "Usage: orrery database list\n"
        "       orrery database create DATABASE [--ru N | --autoscale N]\n"
        "       orrery database show DATABASE\n"
        "       orrery database throughput DATABASE [--ru N | --autoscale N]\n"
        "       orrery database drop DATABASE\n"
        "\n"
        "A database holds containers. Throughput given here is shared by those of its containers\n"
        "that have none of their own; without it each container has its own.\n"
        "\n"
        "Options:\n"
        "  --ru N               so many RU/s\n"
        "  --autoscale N        as many RU/s as are used, up to N\n");
    cli_client_help();
}

static bool option_take(void *context, int option, const char *value)
{
    struct database_command *command =
        CONTAINER_OF((struct cli_asking *)context, struct database_command, asking);

    if (option == CLI_OFFER_OPTION_RU || option == CLI_OFFER_OPTION_AUTOSCALE)
        return cli_offer_take(&command->offer, option, value);
    return cli_client_take(&command->asking.options, option, value);
}

static bool options_fit(const struct cli_asking *asking, const struct cli_verb *verb)
{
    const struct database_command *command =
        CONTAINER_OF(asking, const struct database_command, asking);

    if ((!command->offer.ru && !command->offer.autoscale) || strcmp(verb->name, "create") == 0 ||
        strcmp(verb->name, "throughput") == 0)
        return true;
    (void)cli_fail(CLI_USAGE, "--ru and --autoscale are for create and throughput, not for %s",
                   verb->name);
    return false;
}

static void row_add(void *context, struct slice database)
{
    struct cli_table *table = context;

    cli_table_text(table, cli_answer_text(database, "id"));
    cli_table_text(table, cli_answer_text(database, "_rid"));
}

static int database_list(struct cli_asking *asking)
{
    static const char *const headings[] = {"DATABASE", "_RID", NULL};
    const struct cli_resource feed = {
        .method = "GET", .type = "dbs", .link = SLICE(""), .feed = true};
    struct cli_table *table = cli_table_new(asking->arena, headings);
    struct cli_answer answer;
    struct error err;

    if (asking->options.json) {
        if (!cli_resource_ask(asking, &feed, &answer, &err))
            return cli_asking_failed(&err);
        return cli_asking_json(&answer);
    }
    if (!cli_resource_feed(asking, &feed, "Databases", row_add, table, &err))
        return cli_asking_failed(&err);
    cli_table_print(table);
    return CLI_OK;
}

static int database_create(struct cli_asking *asking)
{
    struct database_command *command = CONTAINER_OF(asking, struct database_command, asking);
    CLEANUP(buf_done) struct buf body;
    struct cli_answer answer;
    struct error err;

    buf_init(&body, BUF_DEFAULT_MAX);
    BUF_APPEND(&body, "{\"id\":");
    document_json_write_string(slice_of_text(asking->words[1]), &body);
    BUF_APPEND(&body, "}");
    if (!cli_resource_ask(
            asking,
            &(struct cli_resource){.method = "POST",
                                   .type = "dbs",
                                   .link = SLICE(""),
                                   .feed = true,
                                   .lines = cli_offer_lines(&command->offer, asking->arena),
                                   .body = buf_slice(&body)},
            &answer, &err))
        return cli_asking_failed(&err);
    return cli_asking_done(asking, &answer, "database \"%s\" was created", asking->words[1]);
}

static int database_show(struct cli_asking *asking)
{
    struct cli_answer answer;
    struct error err;

    if (!cli_resource_ask(asking,
                          &(struct cli_resource){.method = "GET",
                                                 .type = "dbs",
                                                 .link = cli_resource_database(asking)},
                          &answer, &err))
        return cli_asking_failed(&err);
    return cli_resource_show(asking, &answer);
}

static int database_throughput(struct cli_asking *asking)
{
    struct database_command *command = CONTAINER_OF(asking, struct database_command, asking);

    return cli_offer_run(asking, &command->offer, cli_resource_database(asking), "dbs");
}

static int database_drop(struct cli_asking *asking)
{
    struct cli_answer answer;
    struct error err;

    if (!cli_resource_ask(asking,
                          &(struct cli_resource){.method = "DELETE",
                                                 .type = "dbs",
                                                 .link = cli_resource_database(asking)},
                          &answer, &err))
        return cli_asking_failed(&err);
    return cli_asking_done(asking, &answer, "database \"%s\" was dropped, with all it held",
                           asking->words[1]);
}

int cli_database(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_CLIENT_OPTION_ROWS, CLI_OFFER_OPTION_ROWS, {"help", no_argument, NULL, 'h'}, {NULL}};
    static const struct cli_verb rows[] = {
        {"list", 0, 0, "list", database_list, NULL},
        {"create", 1, 1, "create DATABASE", database_create, NULL},
        {"show", 1, 1, "show DATABASE", database_show, NULL},
        {"throughput", 1, 1, "throughput DATABASE [--ru N | --autoscale N]", database_throughput,
         NULL},
        {"drop", 1, 1, "drop DATABASE", database_drop, NULL},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct database_command command = {.asking.arena = arena};

    return cli_verbs_run(&(struct cli_verbs){.noun = "database",
                                             .rows = rows,
                                             .count = ARRAY_LEN(rows),
                                             .options = options,
                                             .take = option_take,
                                             .help = cli_database_help,
                                             .fits = options_fit},
                         &command.asking, argc, argv);
}
