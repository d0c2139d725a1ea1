/* An open-addressed table of containers by number, read without a lock: a place, once taken, keeps
 * its counters, and only the number in it changes when a container is gone. A request that ends at
 * the very moment its container is dropped and the place given to another may be counted there;
 * that costs a count, not memory. A search looks at few places, so a full table costs no more than
 * an empty one.
 *
 * Threads count in cells by the processor they run on: counters that all cores write would be
 * fetched back and forth for every request. What is read is the sum. */
#include "observe/figures.h"

#include "base/memory.h"
#include "base/thread.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    CELLS = 4,         /* power of two */
    SEARCH_MAX = 16,   /* places */
    PLACES_FACTOR = 4, /* for each container */
};

#define NUMBER_GONE UINT32_MAX /* a place whose container is gone */

struct cell {
    _Atomic uint64_t requests[OBSERVED_OPERATIONS][FIGURES_STATUSES];
    _Atomic uint64_t times[FIGURES_TIMES + 1];
    _Atomic uint64_t cru, bytes_in, bytes_out, operation_us[OBSERVED_OPERATIONS];
} __attribute__((aligned(64)));

struct counted {
    struct cell cells[CELLS];
    _Atomic uint64_t feed_lag;
};

struct place {
    _Atomic uint32_t number; /* 0: free */
    struct counted *counted; /* owned; set before the number is, and never again */
};

struct figures {
    struct mutex lock; /* of taking and leaving places */
    size_t containers_max;
    atomic_size_t count; /* changed under the lock */
    uint32_t mask;
    struct place *places;
    struct counted others;
    _Atomic uint64_t errors[ERROR_CODE_COUNT];
};

static const uint16_t statuses[FIGURES_STATUSES] = {200, 201, 204, 207, 304, 400, 401, 403,
                                                    404, 409, 412, 413, 429, 449, 503, 0};

const char *figures_status_name(size_t status)
{
    static const char *const names[FIGURES_STATUSES] = {"200", "201", "204", "207",  "304", "400",
                                                        "401", "403", "404", "409",  "412", "413",
                                                        "429", "449", "503", "other"};

    assert(status < FIGURES_STATUSES);
    return names[status];
}

static size_t status_class(uint16_t status)
{
    for (size_t i = 0; i < FIGURES_STATUSES - 1; i++)
        if (statuses[i] == status)
            return i;
    return FIGURES_STATUSES - 1;
}

uint64_t figures_time_us(size_t at)
{
    assert(at < FIGURES_TIMES);
    return UINT64_C(16) << (2 * at);
}

static size_t time_class(uint64_t us)
{
    size_t log2 = us < 16 ? 3 : 63 - (size_t)__builtin_clzll(us);

    return MIN((log2 - 2) / 2, (size_t)FIGURES_TIMES);
}

struct figures *figures_new(size_t containers_max)
{
    struct figures *figures = memory_alloc_zero(sizeof *figures);
    uint32_t places = SEARCH_MAX;

    assert(containers_max <= FIGURES_CONTAINERS_MAX);
    while (places < PLACES_FACTOR * containers_max)
        places *= 2;
    mutex_init(&figures->lock);
    figures->containers_max = containers_max;
    figures->mask = places - 1;
    figures->places = memory_alloc_zero(memory_array_size(places, sizeof *figures->places));
    return figures;
}

void figures_free(struct figures *figures)
{
    if (!figures)
        return;
    for (uint32_t i = 0; i <= figures->mask; i++)
        free(figures->places[i].counted);
    memory_free(figures->places);
    mutex_done(&figures->lock);
    memory_free(figures);
}

/* --- Counting -------------------------------------------------------------------------------- */

static uint32_t place_first(const struct figures *figures, uint32_t number)
{
    return (number * UINT32_C(2654435761) >> 7) & figures->mask;
}

static struct counted *counted_find(const struct figures *figures, uint32_t number)
{
    uint32_t at = place_first(figures, number);

    for (int i = 0; i < SEARCH_MAX; i++, at = (at + 1) & figures->mask) {
        const struct place *place = &figures->places[at];
        uint32_t has = atomic_load_explicit(&place->number, memory_order_acquire);

        if (has == number)
            return place->counted;
        if (has == 0)
            return NULL;
    }
    return NULL;
}

static struct counted *counted_new(void)
{
    struct counted *counted = aligned_alloc(_Alignof(struct counted), sizeof *counted);

    if (!counted)
        memory_exhausted(sizeof *counted);
    memset(counted, 0, sizeof *counted);
    return counted;
}

/* Under the lock: a place that is free or left, if there is one near enough. */
static struct counted *place_take(struct figures *figures, uint32_t number)
{
    uint32_t at = place_first(figures, number);

    for (int i = 0; i < SEARCH_MAX; i++, at = (at + 1) & figures->mask) {
        struct place *place = &figures->places[at];
        uint32_t has = atomic_load_explicit(&place->number, memory_order_relaxed);

        if (has != 0 && has != NUMBER_GONE)
            continue;
        if (place->counted)
            memset(place->counted, 0, sizeof *place->counted);
        else
            place->counted = counted_new();
        atomic_store_explicit(&place->number, number, memory_order_release);
        figures->count++;
        return place->counted;
    }
    return NULL;
}

static struct counted *counted_make(struct figures *figures, uint32_t number)
{
    struct counted *counted = NULL;

    WITH_LOCK (&figures->lock) {
        counted = counted_find(figures, number);
        if (!counted && figures->count < figures->containers_max)
            counted = place_take(figures, number);
    }
    return counted ? counted : &figures->others;
}

static struct counted *counted_of(struct figures *figures, uint32_t number)
{
    struct counted *counted;

    if (number == 0 || figures->containers_max == 0)
        return &figures->others;
    counted = counted_find(figures, number);
    if (LIKELY(counted != NULL))
        return counted;
    return figures->count < figures->containers_max ? counted_make(figures, number)
                                                    : &figures->others;
}

static void add(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

void figures_count(struct figures *figures, const struct observed_request *request,
                   enum error_code error)
{
    struct counted *counted = counted_of(figures, request->observed.container);
    struct cell *cell = &counted->cells[(unsigned)sched_getcpu() % CELLS];

    add(&cell->requests[request->observed.operation][status_class(request->status)], 1);
    add(&cell->times[time_class(request->time_us)], 1);
    add(&cell->operation_us[request->observed.operation], request->time_us);
    add(&cell->cru, (uint64_t)request->charge_cru);
    if (request->bytes_in)
        add(&cell->bytes_in, request->bytes_in);
    if (request->bytes_out)
        add(&cell->bytes_out, request->bytes_out);
    if (error)
        add(&figures->errors[error], 1);
}

void figures_feed_lag(struct figures *figures, uint32_t container, uint64_t commits)
{
    atomic_store_explicit(&counted_of(figures, container)->feed_lag, commits, memory_order_relaxed);
}

/* --- Reading --------------------------------------------------------------------------------- */

static uint64_t get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void cell_add(const struct cell *cell, struct figures_counts *to)
{
    for (size_t i = 0; i < OBSERVED_OPERATIONS; i++) {
        uint64_t us = get(&cell->operation_us[i]);

        for (size_t j = 0; j < FIGURES_STATUSES; j++)
            to->requests[i][j] += get(&cell->requests[i][j]);
        to->operation_us[i] += us;
        to->time_us += us;
    }
    for (size_t i = 0; i <= FIGURES_TIMES; i++)
        to->times[i] += get(&cell->times[i]);
    to->cru += get(&cell->cru);
    to->bytes_in += get(&cell->bytes_in);
    to->bytes_out += get(&cell->bytes_out);
}

static void counted_read(const struct counted *counted, struct figures_counts *ret_counts)
{
    *ret_counts = (struct figures_counts){.feed_lag = get(&counted->feed_lag)};
    for (size_t i = 0; i < CELLS; i++)
        cell_add(&counted->cells[i], ret_counts);
}

bool figures_read(struct figures *figures, uint32_t container, struct figures_counts *ret_counts)
{
    const struct counted *counted = counted_of(figures, container);

    if (counted == &figures->others)
        return false;
    counted_read(counted, ret_counts);
    return true;
}

void figures_read_others(struct figures *figures, struct figures_counts *ret_counts)
{
    counted_read(&figures->others, ret_counts);
}

uint64_t figures_errors(const struct figures *figures, enum error_code error)
{
    assert(error < ERROR_CODE_COUNT);
    return get(&figures->errors[error]);
}

static int number_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

void figures_keep_only(struct figures *figures, const uint32_t *numbers, size_t count)
{
    WITH_LOCK (&figures->lock) {
        for (uint32_t i = 0; i <= figures->mask; i++) {
            struct place *place = &figures->places[i];
            uint32_t number = atomic_load_explicit(&place->number, memory_order_relaxed);

            if (number == 0 || number == NUMBER_GONE ||
                (count && bsearch(&number, numbers, count, sizeof number, number_compare)))
                continue;
            atomic_store_explicit(&place->number, NUMBER_GONE, memory_order_release);
            figures->count--;
        }
    }
}
