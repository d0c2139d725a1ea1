/* Creates or reads items of 1 KB through one of several servers, for servers_bench.py:
 *
 *     servers_bench_load PORT KEY prepare                              makes the container, 2000
 * items servers_bench_load PORT KEY create|read SECONDS CONNECTIONS FIRST
 *
 * FIRST is the number of the first item that is created. Prints how many were answered, their p50,
 * p99 and longest in ms, and the seconds of the processor that this program took; an answer that is
 * not the expected one ends the program. */
#include "cosmos_requests.h"
#include "http_client.h"

#include "base/memory.h"
#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ITEMS = 2000, THROUGHPUT = 1000000, FILL_CONNECTIONS = 16, BODY_MIN = 900 };

struct work {
    struct cosmos_requests *requests;
    struct random random;
    uint64_t next;
};

static void database_append(void *context, struct buf *out)
{
    cosmos_database_create(((struct work *)context)->requests, out);
}

static void container_append(void *context, struct buf *out)
{
    cosmos_container_create(((struct work *)context)->requests, COSMOS_INDEXED, THROUGHPUT, out);
}

static void create_append(void *context, struct buf *out)
{
    struct work *work = context;

    cosmos_item_create(work->requests, COSMOS_INDEXED, work->next++, out);
}

static void read_append(void *context, struct buf *out)
{
    struct work *work = context;

    cosmos_item_read(work->requests, COSMOS_INDEXED, random_below(&work->random, ITEMS), out);
}

static void prepare(struct http_client_plan plan)
{
    struct load_result unused = {0};
    struct load_client client;
    struct http_client *http;

    plan.status = 201;
    plan.request_append = database_append;
    http_client_once(&plan);
    plan.request_append = container_append;
    http_client_once(&plan);
    plan.request_append = create_append;
    http = http_client_new(&plan);
    client = http_client_load(http);
    load_run_count(&client, getpid(), FILL_CONNECTIONS, ITEMS, &unused);
    http_client_free(http);
}

static double quantile_ms(const struct histogram *latency_us, double fraction)
{
    return (double)histogram_quantile(latency_us, fraction) / 1000;
}

static void run(const struct http_client_plan *plan, double seconds, size_t connections)
{
    struct http_client *http = http_client_new(plan);
    struct load_client client = http_client_load(http);
    struct load_result result = {0};

    load_run(&client, getpid(), connections, seconds, &result);
    http_client_free(http);
    printf("%llu %.3f %.3f %.3f %.3f\n", (unsigned long long)result.operations,
           quantile_ms(&result.latency_us, 0.5), quantile_ms(&result.latency_us, 0.99),
           quantile_ms(&result.latency_us, 1), result.generator_cpu_s);
}

int main(int argc, char **argv)
{
    struct work work = {0};
    struct http_client_plan plan = {.body_min = 0, .context = &work};
    bool creates;

    if (argc != 4 && argc != 7)
        load_fail("see the head of this file");
    plan.port = (uint16_t)strtoul(argv[1], NULL, 10);
    work.requests = cosmos_requests_new(argv[2]);
    random_seed(&work.random, 1);
    if (argc == 4) {
        prepare(plan);
    } else {
        creates = strcmp(argv[3], "create") == 0;
        work.next = strtoull(argv[6], NULL, 10);
        plan.status = creates ? 201 : 200;
        plan.body_min = BODY_MIN;
        plan.request_append = creates ? create_append : read_append;
        run(&plan, strtod(argv[4], NULL), strtoul(argv[5], NULL, 10));
    }
    cosmos_requests_free(work.requests);
    return 0;
}
