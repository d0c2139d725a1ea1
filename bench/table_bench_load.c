/* The measuring side of table_bench: the Table API of ours against Azurite, with the same signed
 * requests: durable inserts of 1 KB entities, point gets, queries of one partition with a filter,
 * and entity group transactions of 100 inserts, at 16 connections. Inserts go into a table with
 * every property indexed, as ours have it, and into one with the keys indexed alone, as Azurite and
 * the storage service have it; the script has made that one on our side.
 *
 *     table_bench_load --ours PORT:PID [--azurite PORT:PID] [--rounds N] [--seconds S]
 *                      [--only insert|insert_keyed|get|query|batch|batch_keyed]
 *
 * Without Azurite ours is measured alone, for a profiler.
 * Servers take turns within every round; rates are medians over the rounds. The generator shares
 * the machine with the servers, so a rate says what the pair of them manages; operations per CPU
 * second of the server, also printed, says what the server needs. */
#include "http_client.h"
#include "rounds.h"
#include "table_requests.h"

#include "base/memory.h"
#include "base/random.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

enum { CONNECTIONS = 16, ENTITIES = 2000, THROUGHPUT = 1000000 };
enum server { OURS, AZURITE, SERVER_COUNT };
enum workload { INSERT, INSERT_KEYED, GET, QUERY, BATCH, BATCH_KEYED, WORKLOAD_COUNT };

static const char *const server_names[] = {"ours", "Azurite"};

struct target {
    uint16_t port;
    pid_t process;
    struct table_requests *requests; /* borrowed */
    struct random random;
    uint64_t inserted, inserted_keyed, batches, batches_keyed;
    uint64_t filled; /* entities there to be read */
};

static void insert_append(void *context, struct buf *out)
{
    struct target *target = context;

    table_request_insert(target->requests, "bench", target->inserted++, out);
}

static void insert_keyed_append(void *context, struct buf *out)
{
    struct target *target = context;

    table_request_insert(target->requests, "keyed", target->inserted_keyed++, out);
}

static void get_append(void *context, struct buf *out)
{
    struct target *target = context;

    table_request_get(target->requests, random_below(&target->random, target->filled), out);
}

static void query_append(void *context, struct buf *out)
{
    struct target *target = context;

    table_request_query(target->requests, random_below(&target->random, target->filled), out);
}

static void batch_append(void *context, struct buf *out)
{
    struct target *target = context;

    table_request_batch(target->requests, "batches", target->batches++, out);
}

static void batch_keyed_append(void *context, struct buf *out)
{
    struct target *target = context;

    table_request_batch(target->requests, "keyed", target->batches_keyed++, out);
}

static const struct {
    const char *name, *option;
    unsigned status;
    size_t body_min;
    void (*append)(void *context, struct buf *out);
    double each; /* entities of an operation */
} workloads[] = {
    [INSERT] = {"inserts of 1 KB, every property indexed", "insert", 204, 0, insert_append, 1},
    [INSERT_KEYED] = {"inserts of 1 KB, keys indexed", "insert_keyed", 204, 0, insert_keyed_append,
                      1},
    [GET] = {"point gets of 1 KB", "get", 200, 900, get_append, 1},
    [QUERY] = {"queries of a partition with a filter, 5 entities", "query", 200, 4500, query_append,
               1},
    [BATCH] = {"entities in batches of 100, every property indexed", "batch", 202, 10000,
               batch_append, TABLE_BATCH_ENTITIES},
    [BATCH_KEYED] = {"entities in batches of 100, keys indexed", "batch_keyed", 202, 10000,
                     batch_keyed_append, TABLE_BATCH_ENTITIES},
};

static_assert(ARRAY_LEN(workloads) == WORKLOAD_COUNT, "all of them");

struct cell {
    double rates[ROUNDS_MAX];
    struct load_result total;
};

struct bench {
    size_t rounds;
    double seconds;   /* of a turn */
    const char *only; /* NULL: all workloads */
    struct target targets[SERVER_COUNT];
    struct cell cells[SERVER_COUNT][WORKLOAD_COUNT];
};

/* --- Turns ----------------------------------------------------------------------------------- */

static void turn(struct target *target, enum workload workload, double seconds,
                 struct load_result *result)
{
    const struct http_client_plan plan = {.port = target->port,
                                          .status = workloads[workload].status,
                                          .body_min = workloads[workload].body_min,
                                          .request_append = workloads[workload].append,
                                          .context = target};
    struct http_client *http = http_client_new(&plan);
    struct load_client client = http_client_load(http);

    load_run(&client, target->process, CONNECTIONS, seconds, result);
    http_client_free(http);
}

static bool takes_part(const struct bench *bench, enum server server, enum workload workload)
{
    return bench->targets[server].port &&
           (!bench->only || strcmp(bench->only, workloads[workload].option) == 0);
}

static void round_run(struct bench *bench, size_t round)
{
    for (size_t workload = 0; workload < WORKLOAD_COUNT; workload++)
        for (size_t i = 0; i < SERVER_COUNT; i++) {
            enum server server = (enum server)((i + round) % SERVER_COUNT);
            struct cell *cell = &bench->cells[server][workload];
            uint64_t before = cell->total.operations;

            if (!takes_part(bench, server, (enum workload)workload))
                continue;
            turn(&bench->targets[server], (enum workload)workload, bench->seconds, &cell->total);
            cell->rates[round] = (double)(cell->total.operations - before) *
                                 workloads[workload].each / bench->seconds;
        }
}

/* A table to be made. */
struct table_wish {
    struct target *target;
    const char *name;
};

static void table_append(void *context, struct buf *out)
{
    const struct table_wish *wish = context;

    table_request_create(wish->target->requests, wish->name, THROUGHPUT, out);
}

static void table_make(struct target *target, const char *name)
{
    struct table_wish wish = {target, name};
    struct http_client_plan plan = {
        .port = target->port, .status = 201, .request_append = table_append, .context = &wish};

    http_client_once(&plan);
}

static void target_prepare(struct target *target, enum server server)
{
    struct load_result unused = {0};

    random_seed(&target->random, 1);
    table_make(target, "bench");
    table_make(target, "batches");
    if (server == AZURITE)
        table_make(target, "keyed");
    while (target->inserted < ENTITIES)
        turn(target, INSERT, 0.1, &unused);
    target->filled = target->inserted / TABLE_PARTITION_ENTITIES * TABLE_PARTITION_ENTITIES -
                     TABLE_PARTITION_ENTITIES * CONNECTIONS;
}

/* --- Figures --------------------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void workload_print(struct bench *bench, enum workload workload)
{
    double rates[SERVER_COUNT], per_cpu[SERVER_COUNT];
    char name[128];

    for (size_t server = 0; server < SERVER_COUNT; server++) {
        struct cell *cell = &bench->cells[server][workload];
        const struct histogram *latency = &cell->total.latency_us;

        if (!takes_part(bench, (enum server)server, workload))
            return;
        qsort(cell->rates, bench->rounds, sizeof *cell->rates, compare_doubles);
        rates[server] = cell->rates[bench->rounds / 2];
        per_cpu[server] = (double)cell->total.operations * workloads[workload].each /
                          MAX(cell->total.server_cpu_s, 1e-3);
        printf("  %s, %d at once, %s: %.0f/s, p50 %.2f ms, p99 %.2f ms, %.0f per CPU second\n",
               workloads[workload].name, CONNECTIONS, server_names[server], rates[server],
               (double)histogram_quantile(latency, 0.5) / 1000,
               (double)histogram_quantile(latency, 0.99) / 1000, per_cpu[server]);
    }
    snprintf(name, sizeof name, "tables, %s, %d at once, per second, vs Azurite",
             workloads[workload].name, CONNECTIONS);
    rounds_ratio(name, rates[OURS], rates[AZURITE], "goal: 10");
    snprintf(name, sizeof name, "tables, %s, %d at once, per CPU second of the server, vs Azurite",
             workloads[workload].name, CONNECTIONS);
    rounds_ratio(name, per_cpu[OURS], per_cpu[AZURITE], NULL);
}

/* --- Arguments ------------------------------------------------------------------------------- */

static void target_parse(const char *text, struct target *target)
{
    unsigned port;
    int process;

    if (sscanf(text, "%u:%d", &port, &process) != 2 || port > UINT16_MAX)
        load_fail("\"%s\" is not PORT:PID", text);
    target->port = (uint16_t)port;
    target->process = process;
}

static void arguments_read(int argc, char **argv, struct bench *bench)
{
    static const struct option options[] = {
        {"ours", required_argument, NULL, 'o'},    {"azurite", required_argument, NULL, 'a'},
        {"only", required_argument, NULL, 'w'},    {"rounds", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'}, {NULL}};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'o')
            target_parse(optarg, &bench->targets[OURS]);
        else if (option == 'a')
            target_parse(optarg, &bench->targets[AZURITE]);
        else if (option == 'w')
            bench->only = optarg;
        else if (option == 'r')
            bench->rounds = strtoul(optarg, NULL, 10);
        else if (option == 's')
            bench->seconds = strtod(optarg, NULL);
        else
            exit(2);
    }
    if (!bench->targets[OURS].port || bench->rounds < 1 || bench->rounds > ROUNDS_MAX ||
        bench->seconds <= 0)
        load_fail("an argument is missing or wrong");
}

int main(int argc, char **argv)
{
    struct bench *bench = MEMORY_NEW(struct bench);
    struct table_requests *requests = table_requests_new();

    bench->rounds = ROUNDS_DEFAULT;
    bench->seconds = 0.5;
    arguments_read(argc, argv, bench);
    for (size_t i = 0; i < SERVER_COUNT; i++) {
        bench->targets[i].requests = requests;
        if (bench->targets[i].port)
            target_prepare(&bench->targets[i], (enum server)i);
    }
    for (size_t round = 0; round < bench->rounds; round++)
        round_run(bench, round);
    for (size_t workload = 0; workload < WORKLOAD_COUNT; workload++)
        workload_print(bench, (enum workload)workload);
    table_requests_free(requests);
    memory_free(bench);
    return 0;
}
