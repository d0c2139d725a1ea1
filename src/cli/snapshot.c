/* `orrery snapshot`: what all nodes hold, or one container does, under a name, to go back to. */
#include "base/clock.h"
#include "cli/asking.h"
#include "cli/cli.h"
#include "cli/snapshot_container.h"
#include "cli/table.h"
#include "document/bson.h"
#include "document/json.h"

#include <time.h>

enum { BACK_MS_MAX = 120000, LOOK_NS = 100 * 1000 * 1000 };

void cli_snapshot_help(void)
{
    printf(
        "Usage: orrery snapshot list\n"
        "       orrery snapshot create NAME\n"
        "       orrery snapshot reset NAME\n"
        "       orrery snapshot drop NAME\n"
        "\n"
        "A snapshot is what all nodes of a server hold at one moment, kept on their own disks\n"
        "by links: it is made, and gone back to, in a moment, however much that is. Going back\n"
        "loses what was written since: the server stops, answers what is in flight, and begins\n"
        "again as it was. It is meant for tests and for a step that may go wrong; it is no\n"
        "backup, for it is lost with the disk (`orrery backup`). All nodes are rocksdb: ones.\n"
        "\n"
        "With --container it is of that container alone, on any nodes: a copy of it, made while\n"
        "clients work, which is a container itself, CONTAINER@NAME. Going back makes another\n"
        "copy, with times and etags as they were, that takes the place of the container.\n"
        "\n"
        "Options:\n"
        "  --container DATABASE/CONTAINER\n"
        "                       of this container alone\n"
        "  --no-wait            of reset: do not wait until the server is back\n");
    cli_client_help();
}

struct snapshot_command {
    struct cli_asking asking;
    const char *container; /* --container; NULL: of all nodes */
};

static const char *container_of(struct cli_asking *asking)
{
    return CONTAINER_OF(asking, struct snapshot_command, asking)->container;
}

static bool option_take(void *context, int option, const char *value)
{
    struct cli_asking *asking = context;

    if (option == 'n')
        asking->no_wait = true;
    else if (option == 'c')
        CONTAINER_OF(asking, struct snapshot_command, asking)->container = value;
    else
        return cli_client_take(&asking->options, option, value);
    return true;
}

static int snapshot_create(struct cli_asking *asking)
{
    CLEANUP(buf_done) struct buf json;
    struct cli_answer answer;
    struct error err;

    buf_init(&json, BUF_DEFAULT_MAX);
    if (container_of(asking))
        return cli_snapshot_container_create(asking, container_of(asking), asking->words[1]);
    BUF_APPEND(&json, "{\"name\":");
    document_json_write_string(slice_of_text(asking->words[1]), &json);
    BUF_APPEND(&json, "}");
    if (!cli_asking_ask(asking, "POST", SLICE("snapshots"), buf_slice(&json), &answer, &err))
        return cli_asking_failed(&err);
    return cli_asking_done(asking, &answer, "snapshot \"%s\" is made", asking->words[1]);
}

static int snapshot_drop(struct cli_asking *asking)
{
    struct cli_answer answer;
    struct error err;

    if (container_of(asking))
        return cli_snapshot_container_drop(asking, container_of(asking), asking->words[1]);
    if (!cli_asking_ask(asking, "DELETE",
                        arena_printf(asking->arena, "snapshots/%s", asking->words[1]), SLICE_NONE,
                        &answer, &err))
        return cli_asking_failed(&err);
    return cli_asking_done(asking, &answer, "snapshot \"%s\" is dropped", asking->words[1]);
}

/* Connects anew each time: where the server says by itself where it listens, that may be elsewhere
 * now. */
static bool is_back(struct cli_asking *asking, struct slice boot, struct cli_answer *ret_answer,
                    struct error *err)
{
    struct cli_client *client;

    if (!cli_client_new(&asking->options, &client, err))
        return false;
    cli_client_free(asking->client);
    asking->client = client;
    return cli_asking_ask(asking, "GET", SLICE("snapshots"), SLICE_NONE, ret_answer, err) &&
           (!slice_equal(cli_answer_text(ret_answer->document, "boot"), boot) ||
            error_set(err, ERROR_BUSY, "the server has not stopped yet"));
}

static int snapshot_reset(struct cli_asking *asking)
{
    int64_t until_ms = clock_monotonic_ms() + BACK_MS_MAX;
    struct cli_answer answer;
    struct slice boot;
    struct error err;

    if (container_of(asking))
        return cli_snapshot_container_reset(asking, container_of(asking), asking->words[1]);
    if (!cli_asking_ask(asking, "POST",
                        arena_printf(asking->arena, "snapshots/%s/reset", asking->words[1]),
                        SLICE_NONE, &answer, &err))
        return cli_asking_failed(&err);
    if (asking->no_wait)
        return cli_asking_done(asking, &answer, "the server goes back to \"%s\"", asking->words[1]);
    boot = arena_copy(asking->arena, cli_answer_text(answer.document, "boot"));
    while (!is_back(asking, boot, &answer, &err)) {
        if (clock_monotonic_ms() >= until_ms)
            return cli_fail(CLI_FAILED, "the server goes back to \"%s\", but is not there yet: %s",
                            asking->words[1], err.message);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    return cli_asking_done(asking, &answer, "the server is what snapshot \"%s\" was",
                           asking->words[1]);
}

static int snapshot_list(struct cli_asking *asking)
{
    static const char *const headings[] = {"NAME", "MADE", "NODES", NULL};
    struct cli_table *table = cli_table_new(asking->arena, headings);
    struct document_iter iter;
    struct cli_answer answer;
    struct error err;

    if (container_of(asking))
        return cli_snapshot_container_list(asking, container_of(asking));
    if (!cli_asking_ask(asking, "GET", SLICE("snapshots"), SLICE_NONE, &answer, &err))
        return cli_asking_failed(&err);
    if (asking->options.json)
        return cli_asking_json(&answer);
    document_iter_init(&iter, cli_answer_inside(answer.document, "snapshots"));
    while (document_iter_next(&iter)) {
        struct slice snapshot = iter.value.document;
        struct document_iter nodes;
        CLEANUP(buf_done) struct buf names;
        char made[CLOCK_ISO_SIZE];

        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        buf_init(&names, BUF_DEFAULT_MAX);
        document_iter_init(&nodes, cli_answer_inside(snapshot, "nodes"));
        while (document_iter_next(&nodes))
            if (nodes.value.type == DOCUMENT_STRING)
                buf_printf(&names, "%s%.*s", names.len ? "," : "", SLICE_ARG(nodes.value.text));
        clock_iso((int64_t)cli_answer_number(snapshot, "created"), made);
        cli_table_text(table, cli_answer_text(snapshot, "name"));
        cli_table_text(table, arena_copy(asking->arena, slice_of_text(made)));
        cli_table_text(table, arena_copy(asking->arena, buf_slice(&names)));
    }
    cli_table_print(table);
    return CLI_OK;
}

static bool options_fit(const struct cli_asking *asking, const struct cli_verb *verb)
{
    if (asking->no_wait &&
        (verb->run != snapshot_reset || container_of((struct cli_asking *)asking)))
        return cli_fail(CLI_USAGE, "--no-wait is for reset of all nodes") == CLI_OK;
    return true;
}

int cli_snapshot(int argc, char **argv)
{
    static const struct option options[] = {CLI_CLIENT_OPTION_ROWS,
                                            {"no-wait", no_argument, NULL, 'n'},
                                            {"container", required_argument, NULL, 'c'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL}};
    static const struct cli_verb rows[] = {
        {"list", 0, 0, "list", snapshot_list, NULL},
        {"create", 1, 1, "create NAME", snapshot_create, NULL},
        {"reset", 1, 1, "reset NAME", snapshot_reset, NULL},
        {"drop", 1, 1, "drop NAME", snapshot_drop, NULL},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct snapshot_command command = {.asking.arena = arena};

    return cli_verbs_run(&(struct cli_verbs){.noun = "snapshot",
                                             .rows = rows,
                                             .count = ARRAY_LEN(rows),
                                             .options = options,
                                             .take = option_take,
                                             .help = cli_snapshot_help,
                                             .fits = options_fit},
                         &command.asking, argc, argv);
}
