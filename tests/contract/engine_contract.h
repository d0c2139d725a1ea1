/* The contract of engine.h as tests, run against every driver: what one does differently from the
 * others is a bug or a line in engine.h. */
#pragma once

#include "engine/engine.h"

/* How to get at stores of one driver. */
struct contract_subject {
    const char *name;
    bool survives_close; /* a store opened again has what was written: not memory: */
    bool can_back_up;
    bool has_snapshot_deadline;
    void *context;

    /* The URL of a new, empty store; lives until the next call. */
    const char *(*fresh_url)(void *context);
};

/* Runs every test; the value for main to return. */
int engine_contract_run(const struct contract_subject *subject);
