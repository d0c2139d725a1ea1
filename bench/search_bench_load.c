/* Sends requests that search_bench.py and vector_bench.py have made and signed, one after the other
 * over one connection:
 *
 *     search_bench_load PORT PID SECONDS [mongo] < requests
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

static void http_run(struct requests *requests, uint16_t port, pid_t server, double seconds,
                     struct load_result *result)
{
    struct http_client_plan plan = {.port = port,
                                    .status = 200,
                                    .body_min = 2,
                                    .request_append = request_append,
                                    .context = requests};
    struct http_client *http = http_client_new(&plan);
    struct load_client client = http_client_load(http);

    load_run(&client, server, 1, seconds, result);
    http_client_free(http);
}

static void mongo_run(struct requests *requests, uint16_t port, pid_t server, double seconds,
                      struct load_result *result)
{
    struct mongo_client_plan plan = {
        .port = port, .command_append = request_append, .context = requests};
    struct mongo_client *mongo = mongo_client_new(&plan);
    struct load_client client = mongo_client_load(mongo);

    load_run(&client, server, 1, seconds, result);
    mongo_client_free(mongo);
}

int main(int argc, char **argv)
{
    static struct requests requests;
    struct load_result result = {0};
    bool mongo = argc == 5 && strcmp(argv[4], "mongo") == 0;
    uint16_t port;
    pid_t server;

    if (argc != 4 && !mongo)
        load_fail("usage: search_bench_load PORT PID SECONDS [mongo] < requests");
    requests_read(&requests);
    port = (uint16_t)strtoul(argv[1], NULL, 10);
    server = (pid_t)strtol(argv[2], NULL, 10);
    (mongo ? mongo_run : http_run)(&requests, port, server, strtod(argv[3], NULL), &result);
    printf("%.1f %.1f\n", (double)result.operations / result.seconds,
           result.server_cpu_s / (double)MAX(result.operations, (uint64_t)1) * 1e6);
    return 0;
}
