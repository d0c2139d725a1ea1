/* A pool of real workers, and a collection in memory that serves what their scripts ask for. */
#pragma once

#include "script/script.h"

enum { SCRIPT_BENCH_ITEMS = 512 };

struct script_bench {
    struct script_pool *pool;
    struct arena *arena; /* of the runs so far */
    struct {
        char id[40];
        char *json;
        unsigned version;
    } items[SCRIPT_BENCH_ITEMS];
    size_t count;
    size_t batches, operations;    /* served so far */
    size_t accepted_max;           /* operations before no more are accepted; 0: no end */
    size_t fail_at;                /* the operation, from 1, at which the host gives up */
    void (*before)(void *context); /* called before each batch */
    void *before_context;
    struct script_result result; /* of the last run */
    struct error err;
    const char *domain; /* "a" at first */
};

void script_bench_init(struct script_bench *bench, const struct script_options *options);
void script_bench_done(struct script_bench *bench);
CLEANUP_VALUE_FN(struct script_bench, script_bench_done)

/* A procedure of that source (which is also its key), with JSON arguments; NULL: none. */
bool script_bench_run(struct script_bench *bench, const char *source, const char *arguments);
bool script_bench_request(struct script_bench *bench, struct script_request *request);

/* The request of script_bench_run, for those who change it. */
struct script_request script_bench_make(struct script_bench *bench, enum script_kind kind,
                                        const char *source);

const struct script_host *script_bench_host(struct script_bench *bench, struct script_host *host);
