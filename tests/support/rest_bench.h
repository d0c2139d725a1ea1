/* REST bench: calls of the REST front made by hand, up to the point where an operation would run,
 * over a catalogue in memory. The clock stands still until the test turns it. */
#pragma once

#include "front/rest/call.h"
#include "support/catalogue_bench.h"

enum { REST_BENCH_HEADERS_MAX = 8 };

struct rest_bench {
    struct bench *bench;
    struct arena *arena;
    struct clock clock;
    int64_t wall_ms;
    struct rest_options options;
    struct account_keys keys; /* of the default account */
};

/* A call and the request it is made of. */
struct rest_bench_call {
    struct rest_call call;
    struct net_http_request http;
    struct net_http_header headers[REST_BENCH_HEADERS_MAX];
};

int rest_bench_setup(void **state);
int rest_bench_teardown(void **state);

/* A request with route and account found; the operation is that of its resource and verb, which
 * must exist. Lives in the arena; rest_bench_done lets go of the account. */
struct rest_bench_call *rest_bench_call(struct rest_bench *bench, const char *method,
                                        const char *path, enum rest_verb verb);
void rest_bench_done(struct rest_bench_call *call);

/* One more header; the texts must outlive the call. */
void rest_bench_header(struct rest_bench_call *call, const char *name, const char *value);

/* Signs it with a key as a client would: date of the bench's clock, type and link of the route. */
void rest_bench_sign(struct rest_bench *bench, struct rest_bench_call *call, struct slice key);

/* The date of the bench's clock, moved, as a header has it; in the arena. */
const char *rest_bench_date(struct rest_bench *bench, int64_t later_ms);

/* The authorization header that signs these fields; in the arena. */
const char *rest_bench_signature(struct rest_bench *bench, struct slice key, const char *method,
                                 struct slice type, struct slice link, const char *date);
