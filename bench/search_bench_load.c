/* Sends requests that search_bench.py and vector_bench.py have made and signed, over some
 * connections, over each one after the other:
 *
 *     search_bench_load PORT PID SECONDS CONNECTIONS [mongo] < requests
 *
 * Each request is its length in bytes as a line, then the bytes: of HTTP, or with "mongo" a command
 * as BSON. Prints how many were answered in a second, and the microseconds of the server's
 * processors for each; an answer that is not 200, or not ok, ends the program. */
#include "http_client.h"
#include "mongo_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REQUESTS_MAX = 4096, REQUEST_BYTES_MAX = 65536 };

struct requests {
    struct slice list[REQUESTS_MAX];
    size_t count, at;
};

static void request_append(void *context, struct buf *out)
{
    struct requests *requests = context;

    buf_append_slice(out, requests->list[requests->at++ % requests->count]);
}

static void requests_read(struct requests *requests)
{
    size_t len;

    while (requests->count < REQUESTS_MAX && scanf("%zu%*1[\n]", &len) == 1) {
        uint8_t *bytes;

        if (len == 0 || len > REQUEST_BYTES_MAX)
            load_fail("a request has %zu bytes", len);
        bytes = malloc(len);
        if (!bytes || fread(bytes, 1, len, stdin) != len)
            load_fail("a request is cut short");
        requests->list[requests->count++] = slice_of(bytes, len);
    }
    if (!requests->count)
        load_fail("there are no requests");
}

/* Who is asked, and how. */
struct target {
    uint16_t port;
    pid_t server;
    double seconds;
    size_t connections;
};

static void http_run(struct requests *requests, const struct target *target,
                     struct load_result *result)
{
    struct http_client_plan plan = {.port = target->port,
                                    .status = 200,
                                    .body_min = 2,
                                    .request_append = request_append,
                                    .context = requests};
    struct http_client *http = http_client_new(&plan);
    struct load_client client = http_client_load(http);

    load_run(&client, target->server, target->connections, target->seconds, result);
    http_client_free(http);
}

static void mongo_run(struct requests *requests, const struct target *target,
                      struct load_result *result)
{
    struct mongo_client_plan plan = {
        .port = target->port, .command_append = request_append, .context = requests};
    struct mongo_client *mongo = mongo_client_new(&plan);
    struct load_client client = mongo_client_load(mongo);

    load_run(&client, target->server, target->connections, target->seconds, result);
    mongo_client_free(mongo);
}

int main(int argc, char **argv)
{
    static struct requests requests;
    struct load_result result = {0};
    bool mongo = argc == 6 && strcmp(argv[5], "mongo") == 0;
    struct target target;

    if (argc != 5 && !mongo)
        load_fail("usage: search_bench_load PORT PID SECONDS CONNECTIONS [mongo] < requests");
    target = (struct target){.port = (uint16_t)strtoul(argv[1], NULL, 10),
                             .server = (pid_t)strtol(argv[2], NULL, 10),
                             .seconds = strtod(argv[3], NULL),
                             .connections = strtoul(argv[4], NULL, 10)};
    if (target.connections == 0 || target.connections > LOAD_CONNECTIONS_MAX)
        load_fail("there may be 1 to %d connections", LOAD_CONNECTIONS_MAX);
    requests_read(&requests);
    (mongo ? mongo_run : http_run)(&requests, &target, &result);
    printf("%.1f %.1f\n", (double)result.operations / result.seconds,
           result.server_cpu_s / (double)MAX(result.operations, (uint64_t)1) * 1e6);
    return 0;
}
