/* Fills a server with items of 1 KB, every path indexed, as fast as it takes them:
 *
 *     fill_bench_load --items N --key BASE64 --ours PORT:PID     through bulk requests of 100
 *     fill_bench_load --items 0 --key BASE64 --ours PORT:PID     makes the container alone
 *     fill_bench_load --items N --key BASE64 --postgresql        prepared inserts of 100 rows
 *     fill_bench_load --items N --key BASE64 --file PATH         writes them to a file, one a line
 *
 * A fill prints one line: seconds of the first fifth and of the last, of all until the server is
 * quiet, its CPU seconds, its largest resident set in MB, and what it wrote to the device in MB (0
 * where that is not known). fill_bench.py makes figures of them. */
#include "cosmos_requests.h"
#include "http_client.h"
#include "load.h"
#include "pg_client.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

enum { CONNECTIONS = 16, TOGETHER = 100, FIFTHS = 5, RU_MANY = 1000000 };

static_assert((int)TOGETHER == (int)PG_FILL_ROWS, "the same at once");

struct fill {
    struct cosmos_requests *requests;
    uint64_t next; /* item */
};

static uint64_t next_take(void *context)
{
    struct fill *fill = context;
    uint64_t first = fill->next;

    fill->next += TOGETHER;
    return first;
}

static void bulk_append(void *context, struct buf *out)
{
    struct fill *fill = context;

    cosmos_items_create(fill->requests, next_take(fill), TOGETHER, out);
}

static void database_append(void *context, struct buf *out)
{
    cosmos_database_create(((struct fill *)context)->requests, out);
}

static void container_append(void *context, struct buf *out)
{
    cosmos_container_create(((struct fill *)context)->requests, COSMOS_INDEXED, RU_MANY, out);
}

/* The number behind a word of a file of /proc; 0: it is not there. */
static double proc_number(pid_t process, const char *file, const char *word)
{
    char path[64], line[256];
    double number = 0;
    FILE *in;

    snprintf(path, sizeof path, "/proc/%d/%s", process, file);
    in = fopen(path, "re");
    while (in && fgets(line, sizeof line, in))
        if (strncmp(line, word, strlen(word)) == 0)
            number = strtod(line + strlen(word), NULL);
    if (in)
        fclose(in);
    return number;
}

static void fill_run(const struct load_client *client, pid_t server, uint64_t items)
{
    double fifths_s[FIFTHS], all_s = 0, cpu_s = load_cpu_s(server);
    double written = proc_number(server, "io", "write_bytes:");

    for (size_t i = 0; i < FIFTHS; i++) {
        struct load_result result = {0};

        load_run_count(client, server, CONNECTIONS, items / FIFTHS / TOGETHER, &result);
        all_s += fifths_s[i] = result.seconds;
    }
    all_s += load_wait_quiet(server);
    printf("%.3f %.3f %.3f %.3f %.1f %.1f\n", fifths_s[0], fifths_s[FIFTHS - 1], all_s,
           load_cpu_s(server) - cpu_s, proc_number(server, "status", "VmHWM:") / 1024,
           (proc_number(server, "io", "write_bytes:") - written) / (1024 * 1024));
}

static void ours_fill(struct fill *fill, const char *server, uint64_t items)
{
    struct http_client_plan plan = {.status = 201, .context = fill};
    struct http_client *http;
    struct load_client client;
    int process;

    if (sscanf(server, "%hu:%d", &plan.port, &process) != 2)
        load_fail("a server is PORT:PID");
    plan.request_append = database_append;
    http_client_once(&plan);
    plan.request_append = container_append;
    http_client_once(&plan);
    if (!items)
        return;
    plan.status = 200; /* of bulk: none of them failed */
    plan.request_append = bulk_append;
    http = http_client_new(&plan);
    client = http_client_load(http);
    fill_run(&client, process, items);
    http_client_free(http);
}

static void theirs_fill(struct fill *fill, uint64_t items)
{
    struct pg_client *pg = pg_client_new(fill->requests);
    struct load_client client = pg_client_fill(pg, next_take, fill);

    fill_run(&client, pg_client_server(pg), items);
    pg_client_free(pg);
}

static void file_fill(struct fill *fill, const char *path, uint64_t items)
{
    FILE *out = fopen(path, "we");

    if (!out)
        load_fail("cannot write %s", path);
    for (uint64_t n = 0; n < items; n++) {
        const struct cosmos_item item = cosmos_item_parts(fill->requests, n);

        fwrite(item.json.data, 1, item.json.len, out);
        fputc('\n', out);
    }
    if (fclose(out) != 0)
        load_fail("cannot write %s", path);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"items", required_argument, NULL, 'i'}, {"key", required_argument, NULL, 'k'},
        {"ours", required_argument, NULL, 'o'},  {"postgresql", no_argument, NULL, 'p'},
        {"file", required_argument, NULL, 'f'},  {0}};
    const char *key = NULL, *ours = NULL, *file = NULL;
    struct fill fill = {0};
    uint64_t items = 0;
    bool theirs = false;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        switch (option) {
        case 'i':
            items = strtoull(optarg, NULL, 10);
            break;
        case 'k':
            key = optarg;
            break;
        case 'o':
            ours = optarg;
            break;
        case 'p':
            theirs = true;
            break;
        case 'f':
            file = optarg;
            break;
        default:
            return 2;
        }
    if (!key || (items < FIFTHS * TOGETHER && (items || !ours)) ||
        (ours != NULL) + theirs + (file != NULL) != 1)
        load_fail("usage: fill_bench_load --items N --key KEY --ours PORT:PID | --postgresql | "
                  "--file PATH");
    fill.requests = cosmos_requests_new(key);
    cosmos_requests_distinct(fill.requests);
    if (ours)
        ours_fill(&fill, ours, items);
    else if (theirs)
        theirs_fill(&fill, items);
    else
        file_fill(&fill, file, items);
    cosmos_requests_free(fill.requests);
    return 0;
}
