/* Worker: what the process does after its sandbox is closed: one request after the other. */
#pragma once

#include "script/worker/realm.h"

/* A run that is under way, as the natives see it. */
struct worker_run {
    bool logging, log_cut;
    bool accepting;          /* operations, as far as the server says */
    int64_t accept_until_ms; /* and as far as the clock does */
    size_t output_max, log_max;
    struct buf operations; /* an open frame; its count is filled in when it is sent */
    uint32_t operation_count;
    struct buf answers;    /* of all that were sent and not delivered yet */
    size_t answers_read;   /* bytes of them */
    uint32_t answer_count; /* not delivered */
    struct buf log;
};

struct worker {
    int descriptor;
    uint64_t memory_max; /* resident */
    struct engine engine;
    struct realms realms;
    struct worker_run run;
    struct buf frame;  /* of the request */
    struct buf answer; /* a frame of answers */
    struct buf reply;
};

/* The functions of api.js's `native`. */
extern const struct realm_native worker_natives[];
extern const size_t worker_native_count;

void worker_init(struct worker *worker, int descriptor);

/* Runs a script of our own, so that the engine has done once what it does lazily: its threads
 * exist, its tables are there. */
NODISCARD bool worker_warm_up(struct worker *worker);

/* Sends off the operations and waits for all answers. False: the server has gone, or time is up,
 * and the run is over. */
NODISCARD bool worker_exchange(struct worker *worker);

/* Serves until the server closes the socket, or the engine is spent. */
void worker_serve(struct worker *worker, unsigned hidden);
