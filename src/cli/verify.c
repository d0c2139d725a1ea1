/* `orrery verify` of a running server, and `orrery check DIR` of a stopped one: the same report. */
#include "cli/backup.h"

#include "backup/verify.h"
#include "cli/asking.h"
#include "cli/table.h"
#include "document/bson.h"
#include "document/json.h"

#include <sys/stat.h>

enum { OPTION_REPAIR = 1000, OPTION_FORMAT, SHOWN_MAX = 1000, STORES_MAX = 64 };

/* What either has found. */
struct report {
    bool json;
    struct arena *arena;
    struct cli_table *table;
    struct buf findings; /* JSON, one behind the other */
    uint64_t shown, found, repaired, items, entries, partitions, resident;
};

void cli_verify_help(void)
{
    printf(
        "Usage: orrery verify [OPTION]...\n"
        "\n"
        "Compares what all nodes of a running server store with itself, at one moment and while\n"
        "clients work: items with their numbers, index entries, unique keys, expiry entries, the\n"
        "change feed and sums; shard maps with the partitions of the nodes; and both with\n"
        "placement rules that are resident. Exit code 0: all agrees; 1: it does not, and the\n"
        "report says where.\n"
        "\n"
        "Options:\n"
        "  --repair             make anew what is derived from items: entries, feeds' last\n"
        "                       records, unique keys, sums\n");
    cli_client_help();
}

void cli_check_help(void)
{
    printf(
        "Usage: orrery check DIR [DIR]... [OPTION]...\n"
        "\n"
        "Compares what the store of a stopped server holds with itself, as `orrery verify` does.\n"
        "DIR is the directory of a node, or the URL of one; of several nodes name all, so that\n"
        "maps are compared with all of them. Nothing is repaired.\n"
        "\n"
        "Options:\n"
        "  --format FORMAT      table, or json\n"
        "  -h, --help           this text\n");
}

/* --- The report ------------------------------------------------------------------------------ */

static void report_init(struct report *report, bool json, struct arena *arena)
{
    static const char *const headings[] = {"FINDING", "CONTAINER", "NODE", ">PARTITION",
                                           "KEY",     "WHAT",      NULL};

    *report = (struct report){.json = json, .arena = arena};
    report->table = cli_table_new(arena, headings);
    buf_init(&report->findings, BUF_DEFAULT_MAX);
}

/* A finding as the server tells it. */
static void report_add(struct report *report, struct slice finding)
{
    struct slice key = cli_answer_text(finding, "key");
    struct slice container = cli_answer_text(finding, "container");

    if (report->shown == SHOWN_MAX)
        return;
    report->shown++;
    if (report->json) {
        const struct document_value value = document_object(finding);

        if (report->findings.len)
            BUF_APPEND(&report->findings, ",");
        document_json_write_value(&value, &report->findings);
        return;
    }
    cli_table_text(report->table, arena_copy(report->arena, cli_answer_text(finding, "kind")));
    cli_table_text(report->table,
                   container.len ? arena_printf(report->arena, "%.*s/%.*s/%.*s",
                                                SLICE_ARG(cli_answer_text(finding, "account")),
                                                SLICE_ARG(cli_answer_text(finding, "database")),
                                                SLICE_ARG(container))
                                 : SLICE("-"));
    cli_table_text(report->table, arena_copy(report->arena, cli_answer_text(finding, "node")));
    cli_table_number(report->table, cli_answer_number(finding, "partition"), 0);
    cli_table_text(report->table,
                   arena_copy(report->arena, slice_first(key, MIN(key.len, (size_t)40))));
    cli_table_text(report->table, arena_copy(report->arena, cli_answer_text(finding, "message")));
}

static int report_print(struct report *report)
{
    if (report->json) {
        printf("{\"found\":%llu,\"repaired\":%llu,\"partitions\":%llu,\"items\":%llu,"
               "\"entries\":%llu,\"resident\":%llu,\"findings\":[%.*s]}\n",
               (unsigned long long)report->found, (unsigned long long)report->repaired,
               (unsigned long long)report->partitions, (unsigned long long)report->items,
               (unsigned long long)report->entries, (unsigned long long)report->resident,
               SLICE_ARG(buf_slice(&report->findings)));
    } else {
        if (report->shown)
            cli_table_print(report->table);
        printf("%llu partitions, %llu items, %llu entries: %llu findings",
               (unsigned long long)report->partitions, (unsigned long long)report->items,
               (unsigned long long)report->entries, (unsigned long long)report->found);
        if (report->repaired)
            printf(", %llu entries and sums made anew", (unsigned long long)report->repaired);
        if (report->resident)
            printf(", %llu items of resident keys", (unsigned long long)report->resident);
        printf("\n");
        if (report->found > report->shown)
            printf("only the first %llu are shown\n", (unsigned long long)report->shown);
    }
    buf_done(&report->findings);
    return report->found ? CLI_FAILED : CLI_OK;
}

/* --- Of a running server --------------------------------------------------------------------- */

struct verifying {
    struct cli_asking asking;
    bool repair;
    struct report report;
    struct slice moment;
};

static bool option_take(void *context, int option, const char *value)
{
    struct verifying *v = context;

    if (option == OPTION_REPAIR)
        v->repair = true;
    else
        return cli_client_take(&v->asking.options, option, value);
    return true;
}

static void findings_take(struct verifying *v, struct slice answer)
{
    struct document_iter iter;

    document_iter_init(&iter, cli_answer_inside(answer, "findings"));
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT)
            report_add(&v->report, iter.value.document);
}

static bool partition_verify(struct verifying *v, struct slice said, struct error *err)
{
    struct slice path =
        arena_printf(v->asking.arena, "moments/%.*s/verify/%.0f/%.0f", SLICE_ARG(v->moment),
                     cli_answer_number(said, "node"), cli_answer_number(said, "partition"));

    for (;;) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct document_value finished;
        struct cli_answer answer;

        if (!cli_client_ask(v->asking.client, "POST", path,
                            v->repair ? SLICE("repair=true") : SLICE_NONE, SLICE("{}"), arena,
                            &answer, err))
            return false;
        findings_take(v, answer.document);
        if (!document_find(answer.document, SLICE("finished"), &finished) || !finished.boolean)
            continue;
        v->report.partitions++;
        v->report.items += (uint64_t)cli_answer_number(answer.document, "items");
        v->report.entries += (uint64_t)cli_answer_number(answer.document, "entries");
        v->report.found += (uint64_t)cli_answer_number(answer.document, "found");
        v->report.repaired += (uint64_t)cli_answer_number(answer.document, "repaired");
        v->report.resident += (uint64_t)cli_answer_number(answer.document, "resident");
        return true;
    }
}

static bool moment_verify(struct verifying *v, struct slice said, struct error *err)
{
    struct document_iter iter;
    struct cli_answer answer;

    if (!cli_asking_ask(&v->asking, "POST",
                        arena_printf(v->asking.arena, "moments/%.*s/verify", SLICE_ARG(v->moment)),
                        SLICE("{}"), &answer, err))
        return false;
    findings_take(v, answer.document);
    v->report.found += (uint64_t)cli_answer_number(answer.document, "found");
    document_iter_init(&iter, cli_answer_inside(said, "partitions"));
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT && !partition_verify(v, iter.value.document, err))
            return false;
    return true;
}

static int verify_run(struct verifying *v)
{
    struct cli_answer answer, ended;
    struct error err, ignored;
    bool good;

    if (!cli_client_new(&v->asking.options, &v->asking.client, &err))
        return cli_asking_failed(&err);
    good = cli_client_ask(v->asking.client, "POST", SLICE("moments"), SLICE("damaged=true"),
                          SLICE("{}"), v->asking.arena, &answer, &err);
    if (good) {
        v->moment = cli_answer_text(answer.document, "id");
        good = moment_verify(v, answer.document, &err);
        (void)!cli_asking_ask(&v->asking, "DELETE",
                              arena_printf(v->asking.arena, "moments/%.*s", SLICE_ARG(v->moment)),
                              SLICE_NONE, &ended, &ignored);
    }
    cli_client_free(v->asking.client);
    if (!good) {
        buf_done(&v->report.findings);
        return cli_asking_failed(&err);
    }
    return report_print(&v->report);
}

int cli_verify(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_CLIENT_OPTION_ROWS,
        {"repair", no_argument, NULL, OPTION_REPAIR},
        {"help", no_argument, NULL, 'h'},
        {NULL},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct verifying v = {.asking.arena = arena};
    bool help;

    v.asking.word_count = cli_words_read(
        argc, argv, options, &(struct cli_words){v.asking.words, 0, option_take, &v}, &help);
    if (help) {
        cli_verify_help();
        return CLI_OK;
    }
    if (v.asking.word_count < 0)
        return CLI_USAGE;
    report_init(&v.report, v.asking.options.json, arena);
    return verify_run(&v);
}

/* --- Of a stopped one ------------------------------------------------------------------------ */

struct checking {
    const char *words[STORES_MAX];
    bool json;
    struct engine *engines[STORES_MAX];
    int count;
};

static bool check_option_take(void *context, int option, const char *value)
{
    struct checking *c = context;

    return option == OPTION_FORMAT && cli_format_take(value, &c->json);
}

static void finding_take(void *context, const struct verify_finding *finding)
{
    struct report *report = context;
    CLEANUP(buf_done) struct buf document, key;
    size_t begin;

    buf_init(&document, BUF_DEFAULT_MAX);
    buf_init(&key, BUF_DEFAULT_MAX);
    backup_hex(finding->key, &key);
    begin = document_begin(&document);
    document_append_string(&document, SLICE("kind"),
                           slice_of_text(verify_kind_name(finding->kind)));
    document_append_bool(&document, SLICE("derived"), finding->is_derived);
    document_append_string(&document, SLICE("node"), slice_of_text(finding->node));
    document_append_int64(&document, SLICE("partition"), finding->partition);
    if (finding->container) {
        document_append_string(&document, SLICE("account"), finding->container->account);
        document_append_string(&document, SLICE("database"), finding->container->database);
        document_append_string(&document, SLICE("container"),
                               container_info(finding->container->container)->id);
    }
    document_append_string(&document, SLICE("key"), buf_slice(&key));
    document_append_string(&document, SLICE("message"), finding->message);
    document_end(&document, begin);
    report->found++;
    report_add(report, buf_slice(&document));
}

/* What is not there is not made. */
static bool store_open(const char *word, struct engine **ret_engine, struct error *err)
{
    CLEANUP(buf_done) struct buf url;
    const struct engine_options options = {0};
    struct stat found;
    const char *directory = strncmp(word, "rocksdb:", 8) == 0 ? word + 8 : word;
    bool is_url = strncmp(word, "postgresql:", 11) == 0 || strncmp(word, "postgres:", 9) == 0;

    buf_init(&url, 64 * 1024);
    if (!is_url && (stat(directory, &found) != 0 || !S_ISDIR(found.st_mode)))
        return error_set(err, ERROR_BAD_REQUEST, "\"%s\" is no directory of a node", word);
    buf_printf(&url, "%s%s", is_url ? "" : "rocksdb:", is_url ? word : directory);
    return engine_open(buf_slice(&url), &options, ret_engine, err) ||
           error_prefix(err, "\"%s\"", word);
}

static bool moment_check(const struct backup_moment *moment, struct report *report,
                         struct error *err)
{
    struct verify_sink sink = {finding_take, report};
    size_t ignored;

    if (!verify_catalogue(moment, &sink, &ignored, err))
        return false;
    for (size_t i = 0; i < moment->partition_count; i++) {
        CLEANUP(verify_free)
        struct verify *verify = verify_new(moment, &moment->partitions[i], false);
        struct verify_figures figures;
        bool finished = false;

        while (!finished)
            if (!verify_step(verify, 100 * 1000, &sink, &finished, err))
                return false;
        figures = verify_figures(verify);
        report->partitions++;
        report->items += figures.items;
        report->entries += figures.entries;
        report->resident += figures.resident;
    }
    return true;
}

static bool check_run(struct checking *c, struct report *report, struct error *err)
{
    CLEANUP(backup_moment_free) struct backup_moment *moment = NULL;

    for (int i = 0; i < c->count; i++)
        if (!store_open(c->words[i], &c->engines[i], err))
            return false;
    if (!backup_moment_of(c->engines, c->words, (size_t)c->count, &moment, err))
        return false;
    if (!moment->has_catalogue)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the catalogue is not here: name the server's first node, too");
    return moment_check(moment, report, err);
}

int cli_check(int argc, char **argv)
{
    static const struct option options[] = {
        {"format", required_argument, NULL, OPTION_FORMAT},
        {"help", no_argument, NULL, 'h'},
        {NULL},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct checking c = {0};
    struct report report;
    struct error err;
    bool help, good;

    c.count =
        cli_words_read(argc, argv, options,
                       &(struct cli_words){c.words, STORES_MAX, check_option_take, &c}, &help);
    if (help) {
        cli_check_help();
        return CLI_OK;
    }
    if (c.count < 0)
        return CLI_USAGE;
    if (c.count == 0)
        return cli_fail(CLI_USAGE, "it is used as `orrery check DIR`");
    report_init(&report, c.json, arena);
    good = check_run(&c, &report, &err);
    for (int i = 0; i < c.count; i++)
        engine_close(c.engines[i]);
    if (!good) {
        buf_done(&report.findings);
        return cli_fail(CLI_FAILED, "%s", err.message);
    }
    return report_print(&report);
}
