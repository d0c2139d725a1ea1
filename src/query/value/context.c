#include "query/value/context.h"

#include "query/value/regex.h"
#include "query/value/shapes.h"
#include "query/value/value.h"
#include "query/value/vectors.h"
#include "search/analyser.h"

enum {
    BYTES_MAX_DEFAULT = 16 * 1024 * 1024,
    WORK_BETWEEN_CHECKS = 16384, /* tens of microseconds: the clock is read that often */
    TICKS_PER_MS = 10000,
    HOLD_STEP = 256 * 1024, /* memory is held on the meter in such steps */
    COPIED_BYTES_SHIFT = 6, /* bytes copied for a unit of work */
};

void query_context_init(struct query_context *context, struct arena *arena,
                        const struct query_limits *limits, const struct clock *clock)
{
    *context = (struct query_context){.arena = arena};
    if (limits)
        context->limits = *limits;
    if (!context->limits.bytes_max)
        context->limits.bytes_max = BYTES_MAX_DEFAULT;
    if (!context->limits.work_max)
        context->limits.work_max = UINT64_MAX;
    context->work_check = MIN(context->limits.work_max, (uint64_t)WORK_BETWEEN_CHECKS);
    context->clock = clock ? clock : &clock_system;
    context->now_ticks = clock_read_wall_ms(context->clock) * TICKS_PER_MS;
    buf_init(&context->scratch, context->limits.bytes_max);
}

void query_context_done(struct query_context *context)
{
    memory_meter_set(context->memory, context->memory_held, 0);
    context->memory_held = 0;
    buf_done(&context->scratch);
    query_regex_cache_free(context->regexes);
    context->regexes = NULL;
    query_shape_cache_free(context->shapes);
    context->shapes = NULL;
    query_vector_cache_free(context->vectors);
    context->vectors = NULL;
    search_analyser_free(context->analyser);
    context->analyser = NULL;
}

uint64_t query_random(struct query_context *context)
{
    uint64_t seed;

    if (!context->random_seeded) {
        random_secret(&seed, sizeof seed);
        random_seed(&context->random, seed);
        context->random_seeded = true;
    }
    return random_next(&context->random);
}

bool query_memory_hold(struct query_context *context, struct error *err)
{
    size_t used, held;

    if (!context->memory)
        return true;
    used = arena_used(context->arena) + context->scratch.capacity + context->kept_bytes +
           (context->rendered ? context->rendered->capacity : 0);
    held = used / HOLD_STEP * HOLD_STEP;
    /* what an arena gives back after each row is soon used again */
    if (held == context->memory_held ||
        (held < context->memory_held && held + 4 * (size_t)HOLD_STEP > context->memory_held))
        return true;
    if (!memory_meter_change(context->memory, context->memory_held, held))
        return error_set(err, ERROR_MEMORY_FULL,
                         "requests hold all the memory they may: server.memory_bytes_max, or "
                         "account.memory_bytes_max for those of one account");
    context->memory_held = held;
    return true;
}

bool query_work_check(struct query_context *context, struct error *err)
{
    const struct query_limits *limits = &context->limits;

    if (context->work >= limits->work_max)
        return error_set(err, ERROR_QUERY_LIMIT,
                         "the query needs more than the %llu units of work a request may use",
                         (unsigned long long)limits->work_max);
    if (context->cancelled && atomic_load_explicit(context->cancelled, memory_order_relaxed))
        return error_set(err, ERROR_TIMED_OUT, "the query was cancelled");
    if (limits->deadline_ms && clock_read_monotonic_ms(context->clock) >= limits->deadline_ms)
        return error_set(err, ERROR_TIMED_OUT, "the query took longer than its deadline");
    context->work_check = MIN(limits->work_max, context->work + WORK_BETWEEN_CHECKS);
    query_context_breathe(context);
    return query_memory_hold(context, err);
}

static bool memory_limit(const struct query_context *context, struct error *err)
{
    return error_set(err, ERROR_QUERY_LIMIT,
                     "the query needs more than the %zu bytes of memory a request may use",
                     context->limits.bytes_max);
}

bool query_memory_check(const struct query_context *context, size_t other, struct error *err)
{
    size_t used = arena_used(context->arena);

    if (used > context->limits.bytes_max || other > context->limits.bytes_max - used)
        return memory_limit(context, err);
    return true;
}

void *query_alloc(struct query_context *context, size_t size, struct error *err)
{
    size_t used = arena_used(context->arena);

    if (UNLIKELY(used > context->limits.bytes_max || size > context->limits.bytes_max - used)) {
        memory_limit(context, err);
        return NULL;
    }
    if (size >= HOLD_STEP && !query_memory_hold(context, err))
        return NULL;
    return arena_alloc(context->arena, size);
}

bool query_build_end(struct query_context *context, size_t mark, struct slice *ret_bytes,
                     struct error *err)
{
    struct buf *scratch = &context->scratch;
    size_t len;
    uint8_t *bytes;

    if (buf_overflowed(scratch)) {
        scratch->len = MIN(mark, scratch->len);
        scratch->overflowed = false;
        return memory_limit(context, err);
    }
    assert(mark <= scratch->len);
    len = scratch->len - mark;
    scratch->len = mark;
    if (!query_work(context, len >> COPIED_BYTES_SHIFT, err))
        return false;
    bytes = query_alloc(context, len ? len : 1, err);
    if (!bytes)
        return false;
    if (len)
        memcpy(bytes, scratch->data + mark, len);
    *ret_bytes = slice_of(bytes, len);
    return true;
}

bool query_build_append(struct query_context *context, struct slice key,
                        const struct document_value *value, struct error *err)
{
    if (UNLIKELY(!query_value_nests_within(value, QUERY_VALUE_DEPTH_MAX - 1)))
        return error_set(err, ERROR_TOO_DEEP, "a value would be nested deeper than %d levels",
                         QUERY_VALUE_DEPTH_MAX);
    document_append(&context->scratch, key, value);
    /* seen at once, or the maker of very many elements would go on for nothing */
    if (buf_overflowed(&context->scratch))
        return memory_limit(context, err);
    return context->scratch.capacity <= context->memory_held + HOLD_STEP ||
           query_memory_hold(context, err);
}

bool query_build_close(struct query_context *context, size_t mark, size_t begin,
                       enum document_type type, struct document_value *ret_value, struct error *err)
{
    struct slice bytes;

    document_end(&context->scratch, begin);
    if (!query_build_end(context, mark, &bytes, err))
        return false;
    *ret_value = (struct document_value){.type = type, .document = bytes};
    return true;
}
