/* Loading: a program whose clients commit numbered batches until they are killed or fail, and tell
 * on standard output which ones were acknowledged.
 *
 *     PROGRAM URL CLIENTS FIRST
 *
 * Client c writes batches n = FIRST, FIRST + 1, ... A line "c n" means: batch n of client c is
 * durable. It ends by itself when writing fails, with the line "error CODE". */
#pragma once

#include "engine/engine.h"

enum { LOADING_CLIENTS_MAX = 16 };

struct loading {
    /* What batches are committed to; the engine is its own from now on. */
    bool (*open)(struct engine *engine, struct error *err);
    /* By any thread. */
    bool (*commit)(uint32_t client, uint32_t n, struct error *err);
};

/* What main returns. */
int loading_main(int argc, char **argv, const struct loading *loading);
