/* `orrery node ...`: the stores of a server, each verb one request to it; a drain and a rebalance
 * are watched until they are over. */
#include "cli/cli.h"

#include "base/clock.h"
#include "cli/asking.h"
#include "cli/table.h"
#include "document/json.h"

#include <unistd.h>

enum {
    OPTION_REGION = 1000,
    OPTION_ZONE,
    OPTION_TAGS,
    OPTION_CAPACITY,
    OPTION_RESERVE,
    OPTION_PLAN,
    OPTION_CANCEL,
    OPTION_NO_WAIT,
    WATCH_MS = 250,
    BAR_WIDTH = 30,
};

void cli_node_help(void)
{
    printf("Usage: orrery node list                    all nodes\n"
           "       orrery node show NAME               one of them\n"
           "       orrery node add NAME URL            make a store a node of the running server;\n"
           "                                           it is opened again at the next start\n"
           "       orrery node set NAME                change what is said of it\n"
           "       orrery node drain NAME              move everything away from it\n"
           "       orrery node undrain NAME            let it take partitions again\n"
           "       orrery node remove NAME             forget one that holds nothing\n"
           "       orrery node pause NAME              answer 503 for its partitions\n"
           "       orrery node resume NAME             and serve them again\n"
           "       orrery node accept-loss NAME        go on without acknowledged writes that a\n"
           "                                           failover of its server has lost\n"
           "       orrery node rebalance               spread bytes and load over the nodes\n"
           "\n"
           "Options:\n"
           "  --region NAME     of add and set: where it is; of pause and resume, in place of a\n"
           "                    node: all nodes of that region\n"
           "  --zone NAME       of add and set\n"
           "  --tags A,B        of add and set: for placement rules\n"
           "  --capacity SIZE   of add and set: 500GB; 0: what its disk has\n"
           "  --reserve N%%      of add and set: what is left free of it\n"
           "  --plan            of rebalance: show what would be moved, and move nothing\n"
           "  --cancel          of rebalance: stop; moves under way are finished\n"
           "  --no-wait         of drain and rebalance: do not watch it\n");
    cli_client_help();
    printf("\n"
           "URL is rocksdb:DIRECTORY, memory: or postgresql://USER:PASSWORD@HOST,HOST/DATABASE.\n");
}

struct node_command {
    struct cli_asking asking;
    const char *attributes[5]; /* in the order of attribute_names */
    bool plan, cancel;
};

static const char *const attribute_names[] = {"region", "zone", "tags", "capacity", "reserve"};

static bool option_take(void *context, int option, const char *value)
{
    struct node_command *command = context;

    switch (option) {
    case OPTION_REGION:
    case OPTION_ZONE:
    case OPTION_TAGS:
    case OPTION_CAPACITY:
    case OPTION_RESERVE:
        command->attributes[option - OPTION_REGION] = value;
        return true;
    case OPTION_PLAN:
        command->plan = true;
        return true;
    case OPTION_CANCEL:
        command->cancel = true;
        return true;
    case OPTION_NO_WAIT:
        command->asking.no_wait = true;
        return true;
    default:
        return cli_client_take(&command->asking.options, option, value);
    }
}

static const struct node_command *of_node(struct cli_asking *asking)
{
    return CONTAINER_OF(asking, struct node_command, asking);
}

static bool ask(struct cli_asking *command, const char *method, const char *path, struct slice body,
                struct cli_answer *ret_answer, struct error *err)
{
    return cli_client_ask(command->client, method, slice_of_text(path), SLICE_NONE, body,
                          command->arena, ret_answer, err);
}

static const char *node_path(struct cli_asking *command, const char *verb)
{
    return arena_text(command->arena, arena_printf(command->arena, "nodes/%s%s%s",
                                                   command->words[1], verb[0] ? "/" : "", verb));
}

/* --- Showing --------------------------------------------------------------------------------- */

static bool flag_of(struct slice node, const char *name)
{
    struct document_value flag = document_undefined();

    (void)document_find(node, slice_of_text(name), &flag);
    return flag.type == DOCUMENT_BOOL && flag.boolean;
}

static struct slice flags_text(struct cli_asking *command, struct slice node)
{
    struct slice state = cli_answer_text(node, "state");

    if (flag_of(node, "draining"))
        return arena_printf(command->arena, "%.*s, draining", SLICE_ARG(state));
    return state;
}

static struct slice tags_text(struct cli_asking *command, struct slice node)
{
    struct slice text = SLICE("");
    struct document_iter iter;

    document_iter_init(&iter, cli_answer_inside(node, "tags"));
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_STRING)
            text = arena_printf(command->arena, "%.*s%s%.*s", SLICE_ARG(text), text.len ? "," : "",
                                SLICE_ARG(iter.value.text));
    return text;
}

/* How many serve, and how old the oldest of them is. */
static struct slice standbys_text(struct cli_asking *command, struct slice node)
{
    struct document_iter iter;
    double oldest_ms = 0;
    size_t serving = 0;
    bool any = false;

    document_iter_init(&iter, cli_answer_inside(node, "standbys"));
    while (document_iter_next(&iter)) {
        struct slice standby = iter.value.document;

        any = true;
        if (iter.value.type != DOCUMENT_OBJECT ||
            slice_equal(cli_answer_text(standby, "state"), SLICE("down")))
            continue;
        serving++;
        oldest_ms = MAX(oldest_ms, cli_answer_number(standby, "ageMs"));
    }
    if (!serving)
        return any ? SLICE("0") : SLICE("");
    return arena_printf(command->arena, "%zu (%.0f ms)", serving, oldest_ms);
}

static void row_add(struct cli_asking *command, struct cli_table *table, struct slice node)
{
    cli_table_text(table, cli_answer_text(node, "name"));
    cli_table_text(table, flags_text(command, node));
    cli_table_text(table, cli_answer_text(node, "region"));
    cli_table_text(table, cli_answer_text(node, "zone"));
    cli_table_text(table, tags_text(command, node));
    cli_table_number(table, cli_answer_number(node, "partitions"), 0);
    cli_table_bytes(table, cli_answer_number(node, "bytes"));
    cli_table_number(table, cli_answer_number(node, "ruPerSecond"), 1);
    cli_table_text(table, standbys_text(command, node));
    cli_table_text(table, cli_answer_text(node, "url"));
}

static int list_print(struct cli_asking *command, const struct cli_answer *answer)
{
    static const char *const headings[] = {"NODE",     "STATE",       "REGION", "ZONE",
                                           "TAGS",     ">PARTITIONS", ">BYTES", ">RU/S",
                                           "STANDBYS", "URL",         NULL};
    struct cli_table *table = cli_table_new(command->arena, headings);
    struct document_iter iter;

    if (command->options.json)
        return cli_asking_json(answer);
    document_iter_init(&iter, cli_answer_inside(answer->document, "nodes"));
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT)
            row_add(command, table, iter.value.document);
    cli_table_print(table);
    return CLI_OK;
}

static void standbys_print(struct slice node)
{
    struct document_iter iter;

    document_iter_init(&iter, cli_answer_inside(node, "standbys"));
    while (document_iter_next(&iter)) {
        struct slice standby = iter.value.document, because;

        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        because = cli_answer_text(standby, "because");
        printf("standby     %.*s %.*s", SLICE_ARG(cli_answer_text(standby, "host")),
               SLICE_ARG(cli_answer_text(standby, "state")));
        if (because.len)
            printf(": %.*s\n", SLICE_ARG(because));
        else
            printf(", %.0f ms old, %.0f reads\n", cli_answer_number(standby, "ageMs"),
                   cli_answer_number(standby, "reads"));
    }
}

static int node_print(struct cli_asking *command, const struct cli_answer *answer)
{
    struct slice node = answer->document, because = cli_answer_text(node, "because");

    if (command->options.json)
        return cli_asking_json(answer);
    printf("node        %.*s\nurl         %.*s\nstate       %.*s%s%.*s\n",
           SLICE_ARG(cli_answer_text(node, "name")), SLICE_ARG(cli_answer_text(node, "url")),
           SLICE_ARG(flags_text(command, node)), because.len ? ": " : "", SLICE_ARG(because));
    printf("region      %.*s\nzone        %.*s\ntags        %.*s\n",
           SLICE_ARG(cli_answer_text(node, "region")), SLICE_ARG(cli_answer_text(node, "zone")),
           SLICE_ARG(tags_text(command, node)));
    if (cli_answer_number(node, "timeline") > 0)
        printf("primary     on timeline %.0f%s\n", cli_answer_number(node, "timeline"),
               flag_of(node, "replicated") ? ", replicated" : ", not replicated");
    standbys_print(node);
    printf("capacity    %.0f bytes, %.0f%% of them in reserve\n",
           cli_answer_number(node, "capacity"), cli_answer_number(node, "reserve"));
    printf("partitions  %.0f\nbytes       %.0f\nRU/s        %.2f\nwent down   %.0f time%s\n",
           cli_answer_number(node, "partitions"), cli_answer_number(node, "bytes"),
           cli_answer_number(node, "ruPerSecond"), cli_answer_number(node, "downs"),
           PLURAL(cli_answer_number(node, "downs")));
    return CLI_OK;
}

static int node_list(struct cli_asking *command)
{
    struct cli_answer answer;
    struct error err;

    return ask(command, "GET", "nodes", SLICE_NONE, &answer, &err) ? list_print(command, &answer)
                                                                   : cli_asking_failed(&err);
}

static int node_show(struct cli_asking *command)
{
    struct cli_answer answer;
    struct error err;

    return ask(command, "GET", node_path(command, ""), SLICE_NONE, &answer, &err)
               ? node_print(command, &answer)
               : cli_asking_failed(&err);
}

/* --- Changing -------------------------------------------------------------------------------- */

static void member_append(struct buf *body, const char *name, const char *value)
{
    buf_printf(body, "%s\"%s\":", body->len > 1 ? "," : "", name);
    document_json_write_string(slice_of_text(value), body);
}

static void attributes_append(struct cli_asking *command, struct buf *body)
{
    for (size_t i = 0; i < ARRAY_LEN(attribute_names); i++)
        if (of_node(command)->attributes[i])
            member_append(body, attribute_names[i], of_node(command)->attributes[i]);
}

static int node_send(struct cli_asking *command, const char *path, const struct buf *body)
{
    struct cli_answer answer;
    struct error err;

    return ask(command, "POST", path, buf_slice(body), &answer, &err) ? node_print(command, &answer)
                                                                      : cli_asking_failed(&err);
}

static int node_add(struct cli_asking *command)
{
    CLEANUP(buf_done) struct buf body;

    buf_init(&body, BUF_DEFAULT_MAX);
    BUF_APPEND(&body, "{");
    member_append(&body, "name", command->words[1]);
    member_append(&body, "url", command->words[2]);
    attributes_append(command, &body);
    BUF_APPEND(&body, "}");
    return node_send(command, "nodes", &body);
}

static int node_set_attributes(struct cli_asking *command)
{
    CLEANUP(buf_done) struct buf body;

    buf_init(&body, BUF_DEFAULT_MAX);
    BUF_APPEND(&body, "{");
    attributes_append(command, &body);
    if (body.len == 1)
        return cli_fail(CLI_USAGE, "say what to set: --region, --zone, --tags, --capacity or "
                                   "--reserve");
    BUF_APPEND(&body, "}");
    return node_send(command, node_path(command, ""), &body);
}

static int node_remove(struct cli_asking *command)
{
    struct cli_answer answer;
    struct error err;

    if (!ask(command, "DELETE", node_path(command, ""), SLICE_NONE, &answer, &err))
        return cli_asking_failed(&err);
    return cli_asking_done(command, &answer, "node \"%s\" is no longer a node", command->words[1]);
}

static int verb_post(struct cli_asking *command, const char *verb)
{
    struct cli_answer answer;
    const char *path;
    struct error err;

    if (command->word_count == 2 && of_node(command)->attributes[0])
        return cli_fail(CLI_USAGE, "say a node or --region, not both");
    if (command->word_count == 1 && !of_node(command)->attributes[0])
        return cli_fail(CLI_USAGE, "it is used as `orrery node %s NAME`, or with --region NAME",
                        verb);
    path = command->word_count == 2
               ? node_path(command, verb)
               : arena_text(command->arena, arena_printf(command->arena, "regions/%s/%s",
                                                         of_node(command)->attributes[0], verb));
    if (!ask(command, "POST", path, SLICE("{}"), &answer, &err))
        return cli_asking_failed(&err);
    return command->word_count == 2 ? node_print(command, &answer) : list_print(command, &answer);
}

static int node_pause(struct cli_asking *command)
{
    return verb_post(command, "pause");
}

static int node_resume(struct cli_asking *command)
{
    return verb_post(command, "resume");
}

static int node_undrain(struct cli_asking *command)
{
    return verb_post(command, "undrain");
}

static int node_accept_loss(struct cli_asking *command)
{
    return verb_post(command, "accept-loss");
}

/* --- Watching -------------------------------------------------------------------------------- */

/* One line that is written over; without a terminal, a line only when something has changed. */
static void bar_print(double done, double all, const char *what, double *last)
{
    double part = all > 0 ? done / all : 1;
    int full = (int)(part * BAR_WIDTH);
    bool terminal = isatty(STDERR_FILENO);

    if (!terminal && *last == done)
        return;
    *last = done;
    fprintf(stderr, "%s[%.*s%.*s] %3.0f%%  %.0f of %.0f %s%s", terminal ? "\r\033[K" : "", full,
            "##############################", BAR_WIDTH - full, "..............................",
            part * 100, done, all, what, terminal ? "" : "\n");
    fflush(stderr);
}

static void bar_end(void)
{
    if (isatty(STDERR_FILENO))
        fputc('\n', stderr);
}

static int drain_watch(struct cli_asking *command, struct cli_answer *answer)
{
    double all = cli_answer_number(answer->document, "partitions"), left = all, last = -1;
    struct error err;

    while (left > 0) {
        bar_print(all - left, all, "partitions moved", &last);
        usleep(WATCH_MS * 1000);
        if (!ask(command, "GET", node_path(command, ""), SLICE_NONE, answer, &err)) {
            bar_end();
            return cli_asking_failed(&err);
        }
        left = cli_answer_number(answer->document, "partitions");
        all = left > all ? left : all;
    }
    bar_print(all, all, "partitions moved", &last);
    bar_end();
    if (command->options.json)
        return node_print(command, answer);
    printf("node \"%s\" holds nothing any more: `orrery node remove %s` lets go of it\n",
           command->words[1], command->words[1]);
    return CLI_OK;
}

static int node_drain(struct cli_asking *command)
{
    struct cli_answer answer;
    struct error err;

    if (!ask(command, "POST", node_path(command, "drain"), SLICE("{}"), &answer, &err))
        return cli_asking_failed(&err);
    return command->no_wait ? node_print(command, &answer) : drain_watch(command, &answer);
}

/* --- Rebalancing ----------------------------------------------------------------------------- */

static size_t plan_print(struct cli_asking *command, const struct cli_answer *answer)
{
    static const char *const headings[] = {"CONTAINER", ">PARTITION", "FROM",   "TO",
                                           ">BYTES",    ">RU/S",      "REASON", NULL};
    struct cli_table *table = cli_table_new(command->arena, headings);
    struct document_iter iter;
    size_t count = 0;

    document_iter_init(&iter, cli_answer_inside(answer->document, "moves"));
    while (document_iter_next(&iter)) {
        struct slice move = iter.value.document;

        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        cli_table_text(table, arena_printf(command->arena, "%.*s/%.*s",
                                           SLICE_ARG(cli_answer_text(move, "database")),
                                           SLICE_ARG(cli_answer_text(move, "container"))));
        cli_table_number(table, cli_answer_number(move, "partition"), 0);
        cli_table_text(table, cli_answer_text(move, "from"));
        cli_table_text(table, cli_answer_text(move, "to"));
        cli_table_bytes(table, cli_answer_number(move, "bytes"));
        cli_table_number(table, cli_answer_number(move, "ruPerSecond"), 1);
        cli_table_text(table, cli_answer_text(move, "reason"));
        count++;
    }
    if (count)
        cli_table_print(table);
    printf("%zu move%s; spread %.4f, afterwards %.4f (0: everything in proportion)\n", count,
           PLURAL(count), cli_answer_number(answer->document, "spreadBefore"),
           cli_answer_number(answer->document, "spreadAfter"));
    document_iter_init(&iter, cli_answer_inside(answer->document, "problems"));
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT)
            printf("cannot be satisfied: partition %.0f of \"%.*s\": %.*s\n",
                   cli_answer_number(iter.value.document, "partition"),
                   SLICE_ARG(cli_answer_text(iter.value.document, "container")),
                   SLICE_ARG(cli_answer_text(iter.value.document, "problem")));
    return count;
}

static bool is_rebalancing(const struct cli_answer *answer)
{
    struct document_value on;

    return document_find(answer->document, SLICE("rebalancing"), &on) && on.type == DOCUMENT_BOOL &&
           on.boolean;
}

static int rebalance_watch(struct cli_asking *command, struct cli_answer *answer)
{
    double last = -1;
    struct error err;

    while (is_rebalancing(answer)) {
        bar_print(cli_answer_number(answer->document, "movesDone"),
                  cli_answer_number(answer->document, "movesPlanned"), "moves begun", &last);
        usleep(WATCH_MS * 1000);
        if (!ask(command, "GET", "rebalance", SLICE_NONE, answer, &err)) {
            bar_end();
            return cli_asking_failed(&err);
        }
    }
    bar_end();
    if (command->options.json)
        printf("%.*s\n", SLICE_ARG(answer->text));
    else
        printf("done: %.*s\n",
               SLICE_ARG(cli_table_count(cli_answer_number(answer->document, "movesDone"), "move",
                                         command->arena)));
    return CLI_OK;
}

/* The plan is shown before anything is moved. */
static int node_rebalance(struct cli_asking *command)
{
    const char *method = of_node(command)->cancel ? "DELETE" : "GET";
    struct cli_answer answer;
    struct error err;

    if (!ask(command, method, "rebalance", SLICE_NONE, &answer, &err))
        return cli_asking_failed(&err);
    if (of_node(command)->plan || of_node(command)->cancel) {
        if (command->options.json)
            printf("%.*s\n", SLICE_ARG(answer.text));
        else
            (void)plan_print(command, &answer);
        return CLI_OK;
    }
    if (!command->options.json)
        (void)plan_print(command, &answer);
    if (!ask(command, "POST", "rebalance", SLICE("{}"), &answer, &err))
        return cli_asking_failed(&err);
    if (!command->no_wait)
        return rebalance_watch(command, &answer);
    return command->options.json ? cli_asking_json(&answer) : CLI_OK;
}

/* --- Which verb ------------------------------------------------------------------------------ */

static const struct cli_verb verbs[] = {
    {"list", 0, 0, "list", node_list},
    {"show", 1, 1, "show NAME", node_show},
    {"add", 2, 2, "add NAME URL", node_add},
    {"set", 1, 1, "set NAME --region NAME ...", node_set_attributes},
    {"drain", 1, 1, "drain NAME", node_drain},
    {"undrain", 1, 1, "undrain NAME", node_undrain},
    {"remove", 1, 1, "remove NAME", node_remove},
    {"pause", 0, 1, "pause NAME", node_pause},
    {"resume", 0, 1, "resume NAME", node_resume},
    {"accept-loss", 1, 1, "accept-loss NAME", node_accept_loss},
    {"rebalance", 0, 0, "rebalance [--plan]", node_rebalance},
};

int cli_node(int argc, char **argv)
{
    static const struct option options[] = {CLI_CLIENT_OPTION_ROWS,
                                            {"help", no_argument, NULL, 'h'},
                                            {"region", required_argument, NULL, OPTION_REGION},
                                            {"zone", required_argument, NULL, OPTION_ZONE},
                                            {"tags", required_argument, NULL, OPTION_TAGS},
                                            {"capacity", required_argument, NULL, OPTION_CAPACITY},
                                            {"reserve", required_argument, NULL, OPTION_RESERVE},
                                            {"plan", no_argument, NULL, OPTION_PLAN},
                                            {"cancel", no_argument, NULL, OPTION_CANCEL},
                                            {"no-wait", no_argument, NULL, OPTION_NO_WAIT},
                                            {NULL}};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct node_command command = {.asking.arena = arena};

    return cli_verbs_run(&(struct cli_verbs){.noun = "node",
                                             .rows = verbs,
                                             .count = ARRAY_LEN(verbs),
                                             .options = options,
                                             .take = option_take,
                                             .help = cli_node_help},
                         &command.asking, argc, argv);
}
