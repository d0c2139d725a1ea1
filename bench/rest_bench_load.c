/* The measuring side of rest_bench: point reads and durable creates of 1 KB items, and changes of
 * one value of them, ours against PostgreSQL, an emulator, and an HTTP answer without any database
 * behind it. Creates are compared twice, with every path indexed on both sides and with nothing but
 * the key.
 *
 *     rest_bench_load --ours PORT:PID --emulator PORT:PID --bare PORT:PID --key BASE64
 *                     --directory DIR [--rounds N] [--seconds S]
 *
 * Servers take turns within every round. Rates are medians over the rounds, latencies come from all
 * of them. The generator shares the machine with the servers, so a rate says what the pair of them
 * manages; CPU time per operation, also printed, says what the server needs. */
#include "http_client.h"
#include "pg_client.h"
#include "rounds.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    ITEMS = 5000,         /* to read among */
    THROUGHPUT = 1000000, /* RU/s: more than one machine can spend */
    FILL_CONNECTIONS = 16,
    BODY_MIN = 900,
    SYNC_BYTES = 1024,
};

enum server { OURS, POSTGRESQL, EMULATOR, BARE, SERVER_COUNT };
enum workload { READ, CREATE_INDEXED, CREATE_KEYED, REPLACE, PATCH, WORKLOAD_COUNT };

static const char *const server_names[] = {"ours", "PostgreSQL", "emulator", "bare HTTP"};
static const size_t connection_counts[] = {1, 16, 128};

enum { CONNECTION_COUNTS = ARRAY_LEN(connection_counts) };

/* Those with a goal are measured beside ours. The emulator indexes nothing whatever the policy, so
 * it is asked once. */
static const struct {
    const char *name;
    enum cosmos_verb verb;
    enum cosmos_container container;
    const char *goals[SERVER_COUNT][CONNECTION_COUNTS];
} workloads[] = {
    [READ] = {"reads",
              COSMOS_READ,
              COSMOS_INDEXED,
              {[POSTGRESQL] = {"goal: 1, or 0.6 of bare HTTP", "goal: 2, or 0.6 of bare HTTP",
                               "goal: 3, or 0.6 of bare HTTP"},
               [EMULATOR] = {"goal: 20", "goal: 20", "goal: 20"},
               [BARE] = {"goal: 0.6, or 1 of PostgreSQL", "goal: 0.6, or 2 of PostgreSQL",
                         "goal: 0.6, or 3 of PostgreSQL"}}},
    [CREATE_INDEXED] = {"durable creates, every path indexed",
                        COSMOS_CREATE,
                        COSMOS_INDEXED,
                        {[POSTGRESQL] = {"goal: 1", "goal: 1.3", "goal: 1.5"},
                         [EMULATOR] = {"goal: 20", "goal: 20", "goal: 20"}}},
    [CREATE_KEYED] = {"durable creates, no index but the key",
                      COSMOS_CREATE,
                      COSMOS_KEYED,
                      {[POSTGRESQL] = {"goal: 1", "goal: 1.5", "goal: 2"}}},
    [REPLACE] = {"durable replaces, one value of all that are indexed changes",
                 COSMOS_REPLACE,
                 COSMOS_INDEXED,
                 {[POSTGRESQL] = {"goal: 1.5", "goal: 2", "goal: 2"}}},
    [PATCH] = {"durable patches of one value of all that are indexed",
               COSMOS_PATCH,
               COSMOS_INDEXED,
               {[POSTGRESQL] = {"goal: 1.5", "goal: 2", "goal: 2"}}},
};

static_assert(ARRAY_LEN(workloads) == WORKLOAD_COUNT, "all of them");

/* One server under test. */
struct target {
    uint16_t port;
    pid_t process;
    struct cosmos_requests *requests; /* borrowed */
    struct pg_client *pg;             /* of PostgreSQL alone */
    struct random random;
    enum cosmos_container container; /* that the turn is about */
    uint64_t created[COSMOS_CONTAINERS], changes;
    uint64_t filled; /* items there to be read */
};

/* What was measured of one workload at one number of connections. */
struct cell {
    double rates[ROUNDS_MAX]; /* per second, one for each round */
    struct load_result total;
};

struct bench {
    const char *key, *directory;
    size_t rounds;
    double seconds; /* of a turn */
    struct target targets[SERVER_COUNT];
    struct cell cells[SERVER_COUNT][WORKLOAD_COUNT][CONNECTION_COUNTS];
    struct histogram sync_us; /* of the device alone */
};

/* --- Turns ----------------------------------------------------------------------------------- */

static uint64_t next_read(void *context)
{
    struct target *target = context;

    return random_below(&target->random, target->filled);
}

static uint64_t next_create(void *context)
{
    struct target *target = context;

    return target->created[target->container]++;
}

static void read_append(void *context, struct buf *out)
{
    struct target *target = context;

    cosmos_item_read(target->requests, target->container, next_read(target), out);
}

static void create_append(void *context, struct buf *out)
{
    struct target *target = context;

    cosmos_item_create(target->requests, target->container, next_create(target), out);
}

static void replace_append(void *context, struct buf *out)
{
    struct target *target = context;

    cosmos_item_replace(target->requests, target->container, next_read(target), ++target->changes,
                        out);
}

static void patch_append(void *context, struct buf *out)
{
    struct target *target = context;

    cosmos_item_patch(target->requests, target->container, next_read(target), ++target->changes,
                      out);
}

static void bare_append(void *context UNUSED, struct buf *out)
{
    BUF_APPEND(out, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
}

static bool takes_part(enum server server, enum workload workload)
{
    return server == OURS || workloads[workload].goals[server][0];
}

static void turn(struct target *target, enum server server, enum workload workload,
                 size_t connections, double seconds, struct load_result *result)
{
    static void (*const appends[])(void *context, struct buf *out) = {
        [COSMOS_READ] = read_append,
        [COSMOS_CREATE] = create_append,
        [COSMOS_REPLACE] = replace_append,
        [COSMOS_PATCH] = patch_append,
    };
    enum cosmos_verb verb = workloads[workload].verb;
    const struct http_client_plan plan = {
        .port = target->port,
        .status = verb == COSMOS_CREATE ? 201 : 200,
        .body_min = BODY_MIN,
        .request_append = server == BARE ? bare_append : appends[verb],
        .context = target,
    };
    struct http_client *http = NULL;
    struct load_client client;

    target->container = workloads[workload].container;
    if (server == POSTGRESQL) {
        client = pg_client_load(target->pg, target->container, verb,
                                verb == COSMOS_CREATE ? next_create : next_read, target);
    } else {
        http = http_client_new(&plan);
        client = http_client_load(http);
    }
    load_run(&client, target->process, connections, seconds, result);
    if (http)
        http_client_free(http);
}

/* A turn whose operations count. */
static void turn_measure(struct bench *bench, enum server server, enum workload workload, size_t at,
                         size_t round)
{
    struct cell *cell = &bench->cells[server][workload][at];
    uint64_t before = cell->total.operations;

    turn(&bench->targets[server], server, workload, connection_counts[at], bench->seconds,
         &cell->total);
    cell->rates[round] = (double)(cell->total.operations - before) / bench->seconds;
}

/* What the device takes to make 1 KB durable, while nobody else writes. */
static void sync_measure(struct bench *bench)
{
    char path[256], bytes[SYNC_BYTES] = {0};
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)(bench->seconds * 1e9) / 3;
    int fd;

    snprintf(path, sizeof path, "%s/sync", bench->directory);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        load_fail("%s cannot be written", path);
    for (uint64_t begin_ns = clock_monotonic_ns(); begin_ns < end_ns;) {
        uint64_t done_ns;

        if (write(fd, bytes, sizeof bytes) != sizeof bytes || fdatasync(fd) != 0)
            load_fail("%s cannot be written", path);
        done_ns = clock_monotonic_ns();
        histogram_record(&bench->sync_us, (done_ns - begin_ns) / 1000);
        begin_ns = done_ns;
    }
    close(fd);
    unlink(path);
}

/* Each round begins with another server and goes round the other way, so that none always follows
 * the same one, whose work for later might slow it. */
static void turns_run(struct bench *bench, enum workload workload, size_t at, size_t round)
{
    enum server servers[SERVER_COUNT];
    size_t count = 0;

    for (size_t server = 0; server < SERVER_COUNT; server++)
        if (takes_part((enum server)server, workload))
            servers[count++] = (enum server)server;
    for (size_t i = 0; i < count; i++)
        turn_measure(bench, servers[(round + (round % 2 ? count - i : i)) % count], workload, at,
                     round);
}

static void round_run(struct bench *bench, size_t round)
{
    for (size_t at = 0; at < CONNECTION_COUNTS; at++) {
        for (size_t workload = 0; workload < WORKLOAD_COUNT; workload++)
            turns_run(bench, (enum workload)workload, at, round);
        sync_measure(bench);
    }
}

/* --- Before ---------------------------------------------------------------------------------- */

static void database_append(void *context, struct buf *out)
{
    cosmos_database_create(((struct target *)context)->requests, out);
}

static void container_append(void *context, struct buf *out)
{
    const struct target *target = context;

    cosmos_container_create(target->requests, target->container, THROUGHPUT, out);
}

/* Makes the container a workload writes to, with items in it. */
static void container_prepare(struct target *target, enum server server, enum workload workload)
{
    struct load_result unused = {0};
    const struct http_client_plan plan = {
        .port = target->port, .status = 201, .request_append = container_append, .context = target};

    target->container = workloads[workload].container;
    if (server != POSTGRESQL)
        http_client_once(&plan);
    while (target->created[target->container] < ITEMS)
        turn(target, server, workload, FILL_CONNECTIONS, 0.1, &unused);
}

static void target_prepare(struct target *target, enum server server)
{
    const struct http_client_plan plan = {
        .port = target->port, .status = 201, .request_append = database_append, .context = target};

    random_seed(&target->random, 1);
    if (server != POSTGRESQL && server != BARE)
        http_client_once(&plan);
    for (size_t i = 0; i < WORKLOAD_COUNT; i++)
        if (workloads[i].verb == COSMOS_CREATE && takes_part(server, (enum workload)i))
            container_prepare(target, server, (enum workload)i);
    target->filled = target->created[workloads[READ].container];
}

/* --- After ----------------------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double rate_of(struct bench *bench, enum server server, enum workload workload, size_t at)
{
    double *rates = bench->cells[server][workload][at].rates;

    qsort(rates, bench->rounds, sizeof *rates, compare_doubles);
    return rates[bench->rounds / 2];
}

static double quantile_ms(const struct histogram *latency_us, double fraction)
{
    return (double)histogram_quantile(latency_us, fraction) / 1000;
}

static void cell_print(struct bench *bench, enum server server, enum workload workload, size_t at)
{
    const struct cell *cell = &bench->cells[server][workload][at];
    double rate = rate_of(bench, server, workload, at);
    double each_us = 1e6 / (double)MAX(cell->total.operations, (uint64_t)1);

    printf("  1 KB %s, %zu at once, %s: %.0f/s, spread %.0f %%, p50 %.2f ms, p99 %.2f ms, CPU of "
           "the server %.1f us each, of the generator %.1f us, which is busy %.0f %%\n",
           workloads[workload].name, connection_counts[at], server_names[server], rate,
           (cell->rates[bench->rounds - 1] - cell->rates[0]) / rate * 100,
           quantile_ms(&cell->total.latency_us, 0.5), quantile_ms(&cell->total.latency_us, 0.99),
           cell->total.server_cpu_s * each_us, cell->total.generator_cpu_s * each_us,
           cell->total.generator_cpu_s / cell->total.seconds * 100);
}

static void rate_compare(struct bench *bench, enum server theirs, enum workload workload, size_t at)
{
    char name[128];

    snprintf(name, sizeof name, "1 KB %s, %zu at once, per second, vs %s", workloads[workload].name,
             connection_counts[at], server_names[theirs]);
    rounds_ratio(name, rate_of(bench, OURS, workload, at), rate_of(bench, theirs, workload, at),
                 workloads[workload].goals[theirs][at]);
}

/* CPU time says more than a rate where the generator takes a core of its own. */
static void cpu_compare(const struct bench *bench, enum server theirs, enum workload workload,
                        size_t at)
{
    const struct load_result *a = &bench->cells[OURS][workload][at].total;
    const struct load_result *b = &bench->cells[theirs][workload][at].total;
    char name[128];

    snprintf(name, sizeof name, "1 KB %s, %zu at once, per CPU second of the server, vs %s",
             workloads[workload].name, connection_counts[at], server_names[theirs]);
    rounds_ratio(name, (double)a->operations / a->server_cpu_s,
                 (double)b->operations / b->server_cpu_s, NULL);
}

static void latency_compare(const struct bench *bench, enum workload workload, size_t at,
                            double other_ms, const char *other, const char *goal)
{
    char name[128];

    snprintf(name, sizeof name, "1 KB %s, %zu at once, p99 in ms, less is better, vs %s",
             workloads[workload].name, connection_counts[at], other);
    rounds_ratio(name, quantile_ms(&bench->cells[OURS][workload][at].total.latency_us, 0.99),
                 other_ms, goal);
}

static void workload_print(struct bench *bench, enum workload workload, size_t at)
{
    for (size_t server = 0; server < SERVER_COUNT; server++)
        if (takes_part((enum server)server, workload))
            cell_print(bench, (enum server)server, workload, at);
    for (size_t theirs = OURS + 1; theirs < SERVER_COUNT; theirs++)
        if (takes_part((enum server)theirs, workload))
            rate_compare(bench, (enum server)theirs, workload, at);
    for (size_t theirs = OURS + 1; theirs < SERVER_COUNT; theirs++)
        if (takes_part((enum server)theirs, workload))
            cpu_compare(bench, (enum server)theirs, workload, at);
    if (workloads[workload].verb != COSMOS_READ)
        latency_compare(
            bench, workload, at, quantile_ms(&bench->sync_us, 0.99),
            "p99 of the device's fdatasync",
            workload == CREATE_INDEXED && connection_counts[at] == 16 ? "goal: at most 3" : NULL);
    else
        latency_compare(bench, workload, at, 10, "10 ms", "goal: below 1");
}

static void bench_print(struct bench *bench)
{
    printf("  fdatasync of 1 KB appended: p50 %.2f ms, p99 %.2f ms\n",
           quantile_ms(&bench->sync_us, 0.5), quantile_ms(&bench->sync_us, 0.99));
    for (size_t workload = 0; workload < WORKLOAD_COUNT; workload++)
        for (size_t at = 0; at < CONNECTION_COUNTS; at++)
            workload_print(bench, (enum workload)workload, at);
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
        {"ours", required_argument, NULL, 'o'},    {"emulator", required_argument, NULL, 'e'},
        {"bare", required_argument, NULL, 'b'},    {"key", required_argument, NULL, 'k'},
        {"rounds", required_argument, NULL, 'r'},  {"directory", required_argument, NULL, 'd'},
        {"seconds", required_argument, NULL, 's'}, {NULL}};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'o')
            target_parse(optarg, &bench->targets[OURS]);
        else if (option == 'e')
            target_parse(optarg, &bench->targets[EMULATOR]);
        else if (option == 'b')
            target_parse(optarg, &bench->targets[BARE]);
        else if (option == 'k')
            bench->key = optarg;
        else if (option == 'd')
            bench->directory = optarg;
        else if (option == 'r')
            bench->rounds = strtoul(optarg, NULL, 10);
        else if (option == 's')
            bench->seconds = strtod(optarg, NULL);
        else
            exit(2);
    }
    if (!bench->key || !bench->directory || !bench->targets[OURS].port ||
        !bench->targets[EMULATOR].port || !bench->targets[BARE].port || bench->rounds < 1 ||
        bench->rounds > ROUNDS_MAX || bench->seconds <= 0)
        load_fail("an argument is missing or wrong");
}

int main(int argc, char **argv)
{
    struct bench *bench = MEMORY_NEW(struct bench);
    struct cosmos_requests *requests;

    bench->rounds = ROUNDS_DEFAULT;
    bench->seconds = 0.5;
    arguments_read(argc, argv, bench);
    requests = cosmos_requests_new(bench->key);
    bench->targets[POSTGRESQL].pg = pg_client_new(requests);
    bench->targets[POSTGRESQL].process = pg_client_server(bench->targets[POSTGRESQL].pg);
    for (size_t i = 0; i < SERVER_COUNT; i++) {
        bench->targets[i].requests = requests;
        target_prepare(&bench->targets[i], (enum server)i);
    }
    for (size_t round = 0; round < bench->rounds; round++)
        round_run(bench, round);
    bench_print(bench);
    pg_client_free(bench->targets[POSTGRESQL].pg);
    cosmos_requests_free(requests);
    memory_free(bench);
    return 0;
}
