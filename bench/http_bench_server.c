/* Our side of http_bench: answers every request with 1 KB and 13 headers, just as the script tells
 * nginx to. Prints its port and serves until its standard input ends.
 *
 *     http_bench_server LOOPS [CERTIFICATE KEY] */
#include "net/http.h"
#include "net/listener.h"

#include <stdio.h>
#include <unistd.h>

enum { BODY_LEN = 1024 };

/* The same names and values as in http_bench.py. */
static const struct net_http_header headers[] = {
    {SLICE("x-ms-activity-id"), SLICE("6f0f6dd2-63c4-4b5f-b3f3-0c8f6a1f8d51")},
    {SLICE("x-ms-request-charge"), SLICE("1.00")},
    {SLICE("x-ms-session-token"), SLICE("0:-1#1042")},
    {SLICE("x-ms-resource-quota"), SLICE("documentSize=51200;documentsCount=-1")},
    {SLICE("x-ms-resource-usage"), SLICE("documentSize=0;documentsCount=17")},
    {SLICE("x-ms-schemaversion"), SLICE("1.18")},
    {SLICE("x-ms-serviceversion"), SLICE("version=2.14.0.0")},
    {SLICE("x-ms-gatewayversion"), SLICE("version=2.14.0")},
    {SLICE("x-ms-last-state-change-utc"), SLICE("Thu, 27 Apr 2017 00:51:12 GMT")},
    {SLICE("x-ms-transport-request-id"), SLICE("1")},
    {SLICE("lsn"), SLICE("1042")},
    {SLICE("etag"), SLICE("0000d826-0000-0700-0000-62f1a2b30000")},
    {SLICE("cache-control"), SLICE("no-store, no-cache")},
};

static void handle(struct net_http_request *request, void *context)
{
    net_http_respond(request, &(struct net_http_response){
                                  .status = 200,
                                  .lines = SLICE("Content-Type: application/json\r\n"),
                                  .headers = headers,
                                  .header_count = ARRAY_LEN(headers),
                                  .body = slice_of(context, BODY_LEN),
                                  .body_kind = NET_HTTP_BODY_IN_ARENA,
                              });
}

static bool serve(size_t loop_count, const char *certificate, const char *key, struct error *err)
{
    struct net_listener_settings listener_settings = net_listener_settings_default();
    struct net_http_settings http_settings = net_http_settings_default();
    CLEANUP(net_tls_context_unref) struct net_tls_context *tls = NULL;
    CLEANUP(net_http_free) struct net_http *http = NULL;
    CLEANUP(net_loops_free) struct net_loops *loops = NULL;
    CLEANUP(net_listener_free) struct net_listener *listener = NULL;
    struct net_address address;
    char body[BODY_LEN], byte;

    memset(body, 'x', sizeof body);
    if (certificate && !net_tls_context_new(certificate, key, &tls, err))
        return false;
    if (!net_loops_new(loop_count, &loops, err) ||
        !net_address_parse(SLICE("127.0.0.1:0"), &address, err))
        return false;
    http = net_http_new(loops, &http_settings, handle, body);
    if (!net_listener_new(loops, &address, &listener_settings, &net_http_protocol, http, tls,
                          &listener, err))
        return false;
    printf("%u\n", net_address_port(net_listener_address(listener)));
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    net_listener_drain(listener, 1000);
    return true;
}

int main(int argc, char **argv)
{
    uint64_t loops = 0;
    struct error err;

    if ((argc != 2 && argc != 4) || !slice_to_uint64(slice_of_text(argv[1]), &loops)) {
        fprintf(stderr, "usage: %s LOOPS [CERTIFICATE KEY]\n", argv[0]);
        return 2;
    }
    if (!serve(loops, argc == 4 ? argv[2] : NULL, argc == 4 ? argv[3] : NULL, &err)) {
        fprintf(stderr, "%s: %s\n", argv[0], err.message);
        return 1;
    }
    return 0;
}
