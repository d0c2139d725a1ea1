#include "query_http.h"

#include "cosmos_requests.h"
#include "http_client.h"
#include "rounds.h"

#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 5000, THROUGHPUT = 1000000, CONNECTIONS = 16, BODY_MIN = 900 };

static const double turn_s = 0.4;

struct target {
    struct cosmos_requests *requests;
    struct random random;
    uint64_t created;
};

static void database_append(void *context, struct buf *out)
{
    cosmos_database_create(((struct target *)context)->requests, out);
}

static void container_append(void *context, struct buf *out)
{
    cosmos_container_create(((struct target *)context)->requests, COSMOS_INDEXED, THROUGHPUT, out);
}

static void create_append(void *context, struct buf *out)
{
    struct target *target = context;

    cosmos_item_create(target->requests, COSMOS_INDEXED, target->created++, out);
}

static void read_append(void *context, struct buf *out)
{
    struct target *target = context;

    cosmos_item_read(target->requests, COSMOS_INDEXED, random_below(&target->random, ITEMS), out);
}

static void query_append(void *context, struct buf *out)
{
    struct target *target = context;

    cosmos_item_query(target->requests, random_below(&target->random, ITEMS), out);
}

static void turn(const struct http_client_plan *plan, pid_t server, struct load_result *result)
{
    struct http_client *http = http_client_new(plan);
    struct load_client client = http_client_load(http);

    load_run(&client, server, CONNECTIONS, turn_s, result);
    http_client_free(http);
}

static void fill(struct http_client_plan plan, pid_t server)
{
    struct target *target = plan.context;
    struct load_result unused = {0};

    plan.status = 201;
    plan.body_min = 0;
    plan.request_append = database_append;
    http_client_once(&plan);
    plan.request_append = container_append;
    http_client_once(&plan);
    plan.request_append = create_append;
    while (target->created < ITEMS)
        turn(&plan, server, &unused);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void query_http_run(uint16_t port, pid_t server, const char *key)
{
    static const char *const names[] = {"point queries", "point reads"};
    struct target target = {.requests = cosmos_requests_new(key)};
    struct http_client_plan plan = {
        .port = port, .status = 200, .body_min = BODY_MIN, .context = &target};
    double rates[2][ROUNDS_DEFAULT];
    struct load_result results[2] = {0};

    random_seed(&target.random, 1);
    fill(plan, server);
    for (size_t round = 0; round < ROUNDS_DEFAULT; round++)
        for (size_t i = 0; i < 2; i++) {
            size_t which = (round + i) % 2;
            uint64_t before = results[which].operations;

            plan.request_append = which ? read_append : query_append;
            turn(&plan, server, &results[which]);
            rates[which][round] = (double)(results[which].operations - before) / turn_s;
        }
    for (size_t i = 0; i < 2; i++) {
        qsort(rates[i], ROUNDS_DEFAULT, sizeof rates[i][0], compare_doubles);
        printf("  %s over HTTP, %d at once: %.0f/s, p50 %.2f ms, p99 %.2f ms, CPU of the server "
               "%.0f us each\n",
               names[i], CONNECTIONS, rates[i][ROUNDS_DEFAULT / 2],
               (double)histogram_quantile(&results[i].latency_us, 0.5) / 1000,
               (double)histogram_quantile(&results[i].latency_us, 0.99) / 1000,
               results[i].server_cpu_s / (double)results[i].operations * 1e6);
    }
    rounds_ratio("point query over HTTP, per second, queries vs point reads",
                 rates[0][ROUNDS_DEFAULT / 2], rates[1][ROUNDS_DEFAULT / 2], "goal: 0.5");
    rounds_ratio("point query over HTTP, per CPU second of the server, queries vs point reads",
                 (double)results[0].operations / results[0].server_cpu_s,
                 (double)results[1].operations / results[1].server_cpu_s, "goal: 0.5");
    cosmos_requests_free(target.requests);
}
