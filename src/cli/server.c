/* `orrery server ...`: the servers that share the nodes, each verb one request to any of them. */
#include "cli/cli.h"

#include "cli/asking.h"
#include "cli/table.h"
#include "document/bson.h"

void cli_server_help(void)
{
    printf("Usage: orrery server list             the servers that share the nodes\n"
           "       orrery server drain NAME       let another one own what it owns, and give it\n"
           "                                      nothing more\n"
           "       orrery server resume NAME      it may own again\n"
           "       orrery server forget NAME      one that is gone is listed no more\n"
           "\n"
           "Options:\n");
    cli_client_help();
}

static bool option_take(void *context, int option, const char *value)
{
    struct cli_asking *asking = context;

    return cli_client_take(&asking->options, option, value);
}

static bool owns(struct slice server)
{
    struct document_value flag = document_undefined();

    (void)document_find(server, SLICE("owns"), &flag);
    return flag.type == DOCUMENT_BOOL && flag.boolean;
}

static void row_add(struct cli_table *table, struct slice server)
{
    cli_table_text(table, cli_answer_text(server, "name"));
    cli_table_text(table, cli_answer_text(server, "region"));
    cli_table_text(table, cli_answer_text(server, "release"));
    cli_table_text(table, cli_answer_text(server, "state"));
    cli_table_text(table, owns(server) ? SLICE("all") : SLICE("-"));
    cli_table_number(table, cli_answer_number(server, "beat"), 0);
    cli_table_text(table, cli_answer_text(server, "address"));
    cli_table_text(table, cli_answer_text(server, "endpoint"));
}

static int list_print(struct cli_asking *asking, const struct cli_answer *answer)
{
    static const char *const headings[] = {"NAME",  "REGION",  "RELEASE",  "STATE", "OWNS",
                                           ">BEAT", "ADDRESS", "ENDPOINT", NULL};
    struct cli_table *table = cli_table_new(asking->arena, headings);
    struct document_iter iter;

    if (asking->options.json)
        return cli_asking_json(answer);
    document_iter_init(&iter, cli_answer_inside(answer->document, "servers"));
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT)
            row_add(table, iter.value.document);
    cli_table_print(table);
    return CLI_OK;
}

static int server_list(struct cli_asking *asking)
{
    struct cli_answer answer;
    struct error err;

    return cli_asking_ask(asking, "GET", SLICE("servers"), SLICE_NONE, &answer, &err)
               ? list_print(asking, &answer)
               : cli_asking_failed(&err);
}

static int say(struct cli_asking *asking, const char *method, const char *verb, const char *done)
{
    struct slice path =
        arena_printf(asking->arena, "servers/%s%s%s", asking->words[1], verb[0] ? "/" : "", verb);
    struct cli_answer answer;
    struct error err;

    if (!cli_asking_ask(asking, method, path, verb[0] ? SLICE("{}") : SLICE_NONE, &answer, &err))
        return cli_asking_failed(&err);
    return cli_asking_done(asking, &answer, "server \"%s\" %s", asking->words[1], done);
}

static int server_drain(struct cli_asking *asking)
{
    return say(asking, "POST", "drain", "hands over what it owns, and is given nothing more");
}

static int server_resume(struct cli_asking *asking)
{
    return say(asking, "POST", "resume", "may own again");
}

static int server_forget(struct cli_asking *asking)
{
    return say(asking, "DELETE", "", "is forgotten");
}

int cli_server(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_CLIENT_OPTION_ROWS, {"help", no_argument, NULL, 'h'}, {NULL}};
    static const struct cli_verb rows[] = {
        {"list", 0, 0, "list", server_list, NULL},
        {"drain", 1, 1, "drain NAME", server_drain, NULL},
        {"resume", 1, 1, "resume NAME", server_resume, NULL},
        {"forget", 1, 1, "forget NAME", server_forget, NULL},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct cli_asking asking = {.arena = arena};

    return cli_verbs_run(&(struct cli_verbs){.noun = "server",
                                             .rows = rows,
                                             .count = ARRAY_LEN(rows),
                                             .options = options,
                                             .take = option_take,
                                             .help = cli_server_help},
                         &asking, argc, argv);
}
