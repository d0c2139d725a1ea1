#include "support/rest_bench.h"

#include "front/signature.h"
#include "support/check.h"

#include <openssl/evp.h>

static int64_t wall_ms(void *context)
{
    return ((struct rest_bench *)context)->wall_ms;
}

int rest_bench_setup(void **state)
{
    struct rest_bench *rest = MEMORY_NEW(struct rest_bench);
    CLEANUP(account_unref) struct account *account = NULL;
    struct error err;

    bench_setup_memory((void **)&rest->bench);
    rest->arena = arena_new();
    rest->wall_ms = 1800000000000;
    rest->clock = (struct clock){wall_ms, wall_ms, rest};
    rest->options.services.catalogue = rest->bench->catalogue;
    rest->options.services.clock = &rest->clock;
    account_keys_make(&rest->keys);
    assert_ok(catalogue_account_create_keyed(rest->bench->catalogue,
                                             SLICE(CATALOGUE_ACCOUNT_DEFAULT), SLICE_NONE,
                                             &rest->keys, &account, &err),
              &err);
    *state = rest;
    return 0;
}

int rest_bench_teardown(void **state)
{
    struct rest_bench *rest = *state;

    arena_free(rest->arena);
    bench_teardown((void **)&rest->bench);
    memory_free(rest);
    return 0;
}

struct rest_bench_call *rest_bench_call(struct rest_bench *bench, const char *method,
                                        const char *path, enum rest_verb verb)
{
    struct rest_bench_call *made = ARENA_NEW(bench->arena, struct rest_bench_call);
    struct rest_call *call = &made->call;
    struct error err;

    made->http = (struct net_http_request){.method = slice_of_text(method),
                                           .path = slice_of_text(path),
                                           .headers = made->headers,
                                           .arena = bench->arena};
    call->options = &bench->options;
    call->door = &bench->options.door;
    call->services = &bench->options.services;
    call->http = &made->http;
    call->arena = bench->arena;
    assert_ok(rest_route_parse(made->http.path, SLICE_NONE, call->arena, &call->route, &err), &err);
    assert_ok(rest_account_find(call, &err), &err);
    call->verb = verb;
    call->operation = rest_operation_find(call->route.resource, verb);
    assert_non_null(call->operation);
    return made;
}

void rest_bench_done(struct rest_bench_call *call)
{
    front_account_done(&call->call.account);
}

void rest_bench_header(struct rest_bench_call *call, const char *name, const char *value)
{
    assert_true(call->http.header_count < REST_BENCH_HEADERS_MAX);
    call->headers[call->http.header_count++] =
        (struct net_http_header){slice_of_text(name), slice_of_text(value)};
    rest_headers_find(&call->http, &call->call.headers);
}

const char *rest_bench_date(struct rest_bench *bench, int64_t later_ms)
{
    char date[CLOCK_HTTP_DATE_LEN];

    clock_http_date(bench->wall_ms + later_ms, date);
    return arena_text(bench->arena, slice_of(date, sizeof date));
}

const char *rest_bench_signature(struct rest_bench *bench, struct slice key, const char *method,
                                 struct slice type, struct slice link, const char *date)
{
    struct slice text =
        arena_printf(bench->arena, "%.*s\n%.*s\n%.*s\n%.*s\n\n",
                     SLICE_ARG(front_lower(slice_of_text(method), bench->arena)), SLICE_ARG(type),
                     SLICE_ARG(link), SLICE_ARG(front_lower(slice_of_text(date), bench->arena)));
    uint8_t mac[FRONT_SIGNATURE_LEN];
    char encoded[48];

    front_signature(key, &text, 1, mac);
    EVP_EncodeBlock((unsigned char *)encoded, mac, sizeof mac);
    return arena_text(bench->arena,
                      arena_printf(bench->arena, "type=master&ver=1.0&sig=%s", encoded));
}

void rest_bench_sign(struct rest_bench *bench, struct rest_bench_call *call, struct slice key)
{
    const char *date = rest_bench_date(bench, 0);
    const char *method = arena_text(bench->arena, call->http.method);

    rest_bench_header(call, "x-ms-date", date);
    rest_bench_header(call, "Authorization",
                      rest_bench_signature(bench, key, method, call->call.route.type,
                                           call->call.route.link, date));
}
