/* The front as the files of this folder share it. */
#pragma once

#include "front/gremlin/command/gremlin.h"
#include "front/gremlin/format/format.h"
#include "front/kit/key.h"

struct gremlin {
    struct gremlin_options options;
    struct gremlin_wire *wire;
    struct front_http http; /* of requests over HTTP */
    atomic_uint under_way;
    atomic_uint sessions; /* open */
    /* Of graphs, by number: when they may be offered indexes again, monotonic. */
    atomic_int_fast64_t offers_ms[256];
    atomic_uint_fast64_t scripts, bytecodes, authentications, failed, results;
};

static inline struct gremlin_format_options gremlin_formats(const struct gremlin *gremlin)
{
    return (struct gremlin_format_options){.typed = gremlin->options.typed};
}

static inline void gremlin_tally(atomic_uint_fast64_t *counter, uint64_t by)
{
    atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}
