/* Sends requests that search_bench.py has made and signed, one after the other over one connection:
 *
 *     search_bench_load PORT PID SECONDS < requests
 *
 * Each request is its length in bytes as a line, then the bytes. Prints how many were answered in a
 * second; an answer that is not 200 ends the program. */
#include "http_client.h"

#include <stdio.h>
#include <stdlib.h>

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

int main(int argc, char **argv)
{
    static struct requests requests;
    struct http_client_plan plan = {
        .status = 200, .body_min = 2, .request_append = request_append, .context = &requests};
    struct load_result result = {0};
    struct load_client client;
    struct http_client *http;

    if (argc != 4)
        load_fail("usage: search_bench_load PORT PID SECONDS < requests");
    requests_read(&requests);
    plan.port = (uint16_t)strtoul(argv[1], NULL, 10);
    http = http_client_new(&plan);
    client = http_client_load(http);
    load_run(&client, (pid_t)strtol(argv[2], NULL, 10), 1, strtod(argv[3], NULL), &result);
    http_client_free(http);
    printf("%.1f %.1f\n", (double)result.operations / result.seconds,
           result.server_cpu_s / (double)MAX(result.operations, (uint64_t)1) * 1e6);
    return 0;
}
