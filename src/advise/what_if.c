/* Requests come at the times that were recorded, whatever becomes of those before them: an open
 * loop, as many independent clients are. A refused one comes again when it was told to; those that
 * wait are kept in a heap. What an operation costs under the plan is evaluate.h's to say.
 *
 * A recorded operation may stand for several that were not. As many are sent, spread over the time
 * since the record before it; each is like one of the records around it, drawn by chance, for if
 * all were like the one, its key would look hotter than it was. Where that would be more requests
 * than can be run in a reasonable time, fewer are sent to budgets that are smaller by as much.
 *
 * How often a client comes again is a habit of its own: operations that were given up show it, and
 * others are dealt habits from among those. */
#include "advise/what_if.h"

#include "base/random.h"
#include "document/order.h"
#include "partition/epk.h"
#include "partition/strategy.h"
#include "throughput/budget.h"
#include "throughput/cost.h"

#include <math.h>
#include <stdlib.h>
#include <xxhash.h>

enum {
    PARTITIONS_MAX = 1024,
    REQUESTS_MAX = 2000000,
    NEIGHBOURS = 256,  /* records that an operation that was not recorded may be like */
    SETTLED_MS = 1000, /* who was due so long before the end and did not come has given up */
};

struct attempt {
    int64_t time_ms;
    uint32_t operation; /* index */
    uint32_t number;    /* of the request; its parts share it */
    uint32_t part;      /* of a fan-out: which of its partitions */
    uint32_t tries;
    int64_t first_ms;
};

/* What throttling added to one request. */
struct wait {
    float ms;
    uint32_t operation : 31;
    uint32_t failed : 1;
};

struct simulation {
    const struct advise_workload *workload;
    const struct what_if_plan *plan;
    struct advise_options options;
    struct arena *arena;
    struct budget **budgets;
    struct slice *bounds; /* partitions - 1 of them */
    enum partition_kind kind;
    struct attempt *heap;
    size_t heap_count, heap_capacity;
    struct wait *waits; /* by the number of the request */
    size_t wait_capacity;
    double scale;     /* how many requests one that is sent stands for */
    uint32_t numbers; /* given to requests */
    struct random random;
    uint32_t *habits; /* how often clients came again before they gave up */
    size_t habit_count;
    struct what_if_result result;
    struct buf scratch;
};

double what_if_throttled_share(const struct what_if_result *result)
{
    return result->attempts ? (double)result->throttled / (double)result->attempts : 0;
}

/* --- Who waits ------------------------------------------------------------------------------- */

static bool earlier(const struct attempt *a, const struct attempt *b)
{
    return a->time_ms < b->time_ms;
}

static void heap_push(struct simulation *simulation, struct attempt attempt)
{
    size_t at = simulation->heap_count++;

    if (at == simulation->heap_capacity) {
        simulation->heap_capacity = MAX(at * 2, (size_t)1024);
        simulation->heap = memory_realloc(
            simulation->heap, memory_array_size(simulation->heap_capacity, sizeof(struct attempt)));
    }
    while (at && earlier(&attempt, &simulation->heap[(at - 1) / 2])) {
        simulation->heap[at] = simulation->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    simulation->heap[at] = attempt;
}

static struct attempt heap_pop(struct simulation *simulation)
{
    struct attempt first = simulation->heap[0];
    struct attempt last = simulation->heap[--simulation->heap_count];
    size_t at = 0, below;

    while ((below = at * 2 + 1) < simulation->heap_count) {
        if (below + 1 < simulation->heap_count &&
            earlier(&simulation->heap[below + 1], &simulation->heap[below]))
            below++;
        if (!earlier(&simulation->heap[below], &last))
            break;
        simulation->heap[at] = simulation->heap[below];
        at = below;
    }
    simulation->heap[at] = last;
    return first;
}

/* --- Where a key is -------------------------------------------------------------------------- */

static int bound_compare(const void *key, const void *bound)
{
    return slice_compare(*(const struct slice *)key, *(const struct slice *)bound);
}

static uint32_t bounds_find(const struct simulation *simulation, struct slice routing)
{
    size_t low = 0, high = simulation->result.partitions - 1;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (bound_compare(&routing, &simulation->bounds[middle]) < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return (uint32_t)low;
}

/* As the server does place it. */
static uint32_t span_of(struct simulation *simulation, const struct document_value *values,
                        size_t count)
{
    const struct what_if_plan *plan = simulation->plan;
    struct partition_key key = {.count = (uint8_t)count};
    size_t spans;

    for (size_t i = 0; i < count; i++)
        key.components[i] = values[i];
    partition_route(plan->definition, &key, &simulation->scratch);
    return (uint32_t)(partition_map_find(plan->map, buf_slice(&simulation->scratch)) -
                      partition_map_spans(plan->map, &spans));
}

/* As the server would place it; where the values are not kept whole, or the suffix is chosen by the
 * server, by another hash that spreads as evenly. */
static uint32_t partition_of(struct simulation *simulation,
                             const struct advise_operation *operation, uint64_t key)
{
    const struct advise_key *wanted = simulation->plan->key;
    struct document_value values[ADVISE_KEY_PATHS_MAX];

    if (wanted->kind != ADVISE_PROPERTY && wanted->kind != ADVISE_HIERARCHICAL)
        return (uint32_t)(key % simulation->result.partitions);
    for (size_t i = 0; i < wanted->path_count; i++)
        values[i] =
            *advise_workload_value(simulation->workload, operation->values[wanted->paths[i]]);
    buf_clear(&simulation->scratch);
    if (simulation->plan->map)
        return span_of(simulation, values, wanted->path_count);
    if (simulation->plan->range)
        document_key_append(DOCUMENT_ORDER_SQL, &values[0], &simulation->scratch);
    else
        partition_epk_append(simulation->kind, values, wanted->path_count, &simulation->scratch);
    return bounds_find(simulation, buf_slice(&simulation->scratch));
}

/* Bounds that give each partition about as many of the stored bytes, as splits would have. */
static void range_bounds_make(struct simulation *simulation)
{
    size_t count;
    const struct advise_item *items = advise_workload_items(simulation->workload, &count);
    struct slice *keys = ARENA_ARRAY(simulation->arena, struct slice, count + 1);
    size_t bounds = simulation->result.partitions - 1;

    for (size_t i = 0; i < count; i++) {
        buf_clear(&simulation->scratch);
        document_key_append(DOCUMENT_ORDER_SQL,
                            advise_workload_value(simulation->workload,
                                                  items[i].values[simulation->plan->key->paths[0]]),
                            &simulation->scratch);
        keys[i] = arena_copy(simulation->arena, buf_slice(&simulation->scratch));
    }
    qsort(keys, count, sizeof *keys, bound_compare);
    for (size_t i = 0; i < bounds; i++)
        simulation->bounds[i] = count ? keys[(i + 1) * count / (bounds + 1)] : SLICE("");
}

/* --- Running --------------------------------------------------------------------------------- */

/* What the server knows of a price before the work is done. */
static int64_t price_of(const struct advise_operation *operation)
{
    switch (operation->kind) {
    case ADVISE_READ:
        return cost_read(0, false);
    case ADVISE_QUERY:
        return cost_model.query_partition / 10000;
    case ADVISE_DELETE:
        return cost_write(&(struct cost_write){.removes = true});
    default:
        return cost_write(&(struct cost_write){.puts = true, .new_bytes = operation->bytes});
    }
}

static void cell_add(struct what_if_cell *to, const struct what_if_cell *from)
{
    to->cru += from->cru;
    to->requests += from->requests;
    to->throttled += from->throttled;
}

/* Windows become twice as long, and half as many. */
static void windows_halve(struct what_if_result *result)
{
    size_t partitions = result->partitions;

    for (size_t w = 0; w < WHAT_IF_WINDOWS / 2; w++)
        for (size_t p = 0; p < partitions; p++) {
            struct what_if_cell sum = result->cells[2 * w * partitions + p];

            cell_add(&sum, &result->cells[(2 * w + 1) * partitions + p]);
            result->cells[w * partitions + p] = sum;
        }
    memset(result->cells + WHAT_IF_WINDOWS / 2 * partitions, 0,
           WHAT_IF_WINDOWS / 2 * partitions * sizeof *result->cells);
    result->windows = (result->windows + 1) / 2;
    result->window_ms *= 2;
}

/* How long it takes until the last who waits has come through is not known before. */
static struct what_if_cell *cell_of(struct simulation *simulation, int64_t time_ms,
                                    uint32_t partition)
{
    struct what_if_result *result = &simulation->result;
    size_t window;

    while ((window = (size_t)((time_ms - result->begin_ms) / result->window_ms)) >= WHAT_IF_WINDOWS)
        windows_halve(result);
    result->windows = MAX(result->windows, window + 1);
    return &result->cells[window * result->partitions + partition];
}

/* The same for every attempt of one request. */
static struct advise_visit visit_of(const struct simulation *simulation, uint32_t operation,
                                    uint32_t number)
{
    size_t count;
    const struct advise_operation *operations =
        advise_workload_operations(simulation->workload, &count);

    return advise_visit_of(simulation->plan->key, &operations[operation], &simulation->options,
                           XXH3_64bits(&number, sizeof number));
}

/* How often the client of a request comes again. */
static uint32_t retries_of(const struct simulation *simulation, const struct attempt *attempt)
{
    size_t count;
    const struct advise_operation *operation =
        &advise_workload_operations(simulation->workload, &count)[attempt->operation];
    uint32_t habit = WHAT_IF_RETRIES;

    if (!simulation->plan->retries_recorded)
        return simulation->plan->retries_max;
    if (simulation->habit_count)
        habit = simulation->habits[XXH3_64bits_withSeed(&attempt->number, sizeof attempt->number,
                                                        attempt->part) %
                                   simulation->habit_count];
    return operation->failed ? habit : MAX(habit, operation->refused);
}

/* A client sees the slowest part of what it asked, and nothing if one part failed. */
static void wait_note(struct simulation *simulation, const struct attempt *attempt, double ms)
{
    struct wait *wait;

    if (attempt->number >= simulation->wait_capacity) {
        size_t capacity = MAX(simulation->wait_capacity * 2, (size_t)attempt->number + 4096);

        simulation->waits =
            memory_realloc(simulation->waits, memory_array_size(capacity, sizeof(struct wait)));
        memset(simulation->waits + simulation->wait_capacity, 0,
               (capacity - simulation->wait_capacity) * sizeof(struct wait));
        simulation->wait_capacity = capacity;
    }
    wait = &simulation->waits[attempt->number];
    wait->failed |= ms < 0;
    wait->ms = fmaxf(wait->ms, (float)ms);
    wait->operation = attempt->operation;
}

/* A fan-out is as many requests as it asks partitions; the client sees the slowest. For the figures
 * each counts as one. */
static void attempt_run(struct simulation *simulation, struct attempt attempt)
{
    size_t count;
    const struct advise_operation *operation =
        &advise_workload_operations(simulation->workload, &count)[attempt.operation];
    struct advise_visit visit = visit_of(simulation, attempt.operation, attempt.number);
    uint32_t partition =
        visit.partitions == 1
            ? partition_of(simulation, operation, visit.key)
            : (uint32_t)((visit.key + attempt.part) % simulation->result.partitions);
    int64_t cru = MAX(visit.cru / visit.partitions, (int64_t)1), wait_ms;
    struct budget_request request = {.price_cru = MIN(price_of(operation), cru),
                                     .ticket = ((uint64_t)attempt.number << 12 | attempt.part) + 1};
    struct what_if_cell *cell = cell_of(simulation, attempt.time_ms, partition);
    struct budget_grant grant;
    struct error err;
    int64_t now_ms = attempt.time_ms - simulation->result.begin_ms;
    bool limited = simulation->plan->ru_per_second > 0;

    simulation->result.attempts++;
    if (!limited ||
        budget_admit(simulation->budgets[partition], &request, now_ms, &grant, &wait_ms, &err)) {
        if (limited)
            budget_settle(simulation->budgets[partition], &grant, cru, now_ms);
        cell->cru += (double)cru;
        cell->requests++;
        simulation->result.ru += (double)cru / 100;
        wait_note(simulation, &attempt, (double)(attempt.time_ms - attempt.first_ms));
        return;
    }
    cell->throttled++;
    simulation->result.throttled++;
    if (attempt.tries >= retries_of(simulation, &attempt) ||
        attempt.time_ms - attempt.first_ms >= WHAT_IF_WAIT_MS_MAX) {
        simulation->result.given_up++;
        wait_note(simulation, &attempt, -1);
        return;
    }
    attempt.tries++;
    attempt.time_ms += wait_ms;
    heap_push(simulation, attempt);
}

/* How many operations each of the kept ones stands for, on top of its weight. */
static double operations_each(const struct simulation *simulation)
{
    size_t count;
    const struct advise_operation *operations =
        advise_workload_operations(simulation->workload, &count);
    double weight = 0;

    for (size_t i = 0; i < count; i++)
        weight += operations[i].weight;
    return (double)advise_workload_operations_seen(simulation->workload) / weight;
}

/* How many requests one that is sent must stand for. */
static double scale_of(const struct simulation *simulation)
{
    size_t count;
    const struct advise_operation *operations =
        advise_workload_operations(simulation->workload, &count);
    double requests = 0;

    for (uint32_t i = 0; i < count; i++)
        requests += (double)operations[i].weight * visit_of(simulation, i, i).partitions;
    return fmax(1, requests * operations_each(simulation) / REQUESTS_MAX);
}

/* Who was refused, was due a while before the record ends and is not there again. */
static void habits_find(struct simulation *simulation)
{
    size_t count;
    const struct advise_operation *operations =
        advise_workload_operations(simulation->workload, &count);
    int64_t end_ms = operations[count - 1].time_ms;

    simulation->habits = ARENA_ARRAY(simulation->arena, uint32_t, count);
    for (size_t i = 0; i < count; i++)
        if (operations[i].failed && operations[i].due_ms + SETTLED_MS <= end_ms)
            simulation->habits[simulation->habit_count++] = operations[i].refused - 1;
}

static int64_t time_of(const struct simulation *simulation, const struct advise_operation *first,
                       const struct advise_operation *operation)
{
    double speed = simulation->plan->speed > 0 ? simulation->plan->speed : 1;

    return first->time_ms + (int64_t)((double)(operation->time_ms - first->time_ms) / speed);
}

/* Those that wait and are due. */
static void waiting_run(struct simulation *simulation, int64_t now_ms)
{
    while (simulation->heap_count && simulation->heap[0].time_ms <= now_ms)
        attempt_run(simulation, heap_pop(simulation));
}

static void request_run(struct simulation *simulation, uint32_t operation, int64_t now_ms)
{
    uint32_t number = simulation->numbers++;
    uint32_t parts = visit_of(simulation, operation, number).partitions;

    waiting_run(simulation, now_ms);
    simulation->result.requests += parts;
    for (uint32_t part = 0; part < parts; part++)
        attempt_run(simulation, (struct attempt){.time_ms = now_ms,
                                                 .operation = operation,
                                                 .number = number,
                                                 .part = part,
                                                 .first_ms = now_ms});
}

/* A record near this one. */
static uint32_t neighbour_of(struct simulation *simulation, uint32_t operation, size_t count)
{
    size_t first = operation < NEIGHBOURS / 2 ? 0 : operation - NEIGHBOURS / 2;
    size_t end = MIN(first + NEIGHBOURS, count);

    return (uint32_t)(first + random_below(&simulation->random, end - first));
}

static void operations_run(struct simulation *simulation)
{
    size_t count;
    const struct advise_operation *operations =
        advise_workload_operations(simulation->workload, &count);
    double each = operations_each(simulation), owed = 0;
    int64_t before_ms = operations[0].time_ms;

    for (uint32_t i = 0; i < count; i++) {
        int64_t now_ms = time_of(simulation, operations, &operations[i]);
        uint32_t copies;

        owed += operations[i].weight * each / simulation->scale;
        copies = (uint32_t)(owed + 1e-9);
        owed -= copies;
        for (uint32_t k = 1; k < copies; k++)
            request_run(simulation, neighbour_of(simulation, i, count),
                        before_ms + (now_ms - before_ms) * k / copies);
        if (copies)
            request_run(simulation, i, now_ms);
        before_ms = now_ms;
    }
    waiting_run(simulation, INT64_MAX);
}

static int double_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static uint64_t scaled(const struct simulation *simulation, uint64_t count)
{
    return (uint64_t)llround((double)count * simulation->scale);
}

/* To what the requests that were sent stand for. */
static void figures_scale(struct simulation *simulation)
{
    struct what_if_result *result = &simulation->result;

    if (!(simulation->scale > 1))
        return;
    result->requests = scaled(simulation, result->requests);
    result->attempts = scaled(simulation, result->attempts);
    result->throttled = scaled(simulation, result->throttled);
    result->given_up = scaled(simulation, result->given_up);
    result->ru *= simulation->scale;
    for (size_t i = 0; i < result->windows * result->partitions; i++) {
        struct what_if_cell *cell = &result->cells[i];

        cell->cru *= simulation->scale;
        cell->requests = (uint32_t)scaled(simulation, cell->requests);
        cell->throttled = (uint32_t)scaled(simulation, cell->throttled);
    }
}

/* The mean and the 99th percentile; sorts. */
static void spread_of(double *ms, size_t count, double *ret_mean, double *ret_p99)
{
    double sum = 0;

    if (!count)
        return;
    for (size_t i = 0; i < count; i++)
        sum += ms[i];
    qsort(ms, count, sizeof *ms, double_compare);
    *ret_mean = sum / (double)count;
    *ret_p99 = ms[count * 99 / 100];
}

static void waits_sum(struct simulation *simulation)
{
    struct what_if_result *result = &simulation->result;
    size_t all, count = 0;
    const struct advise_operation *operations =
        advise_workload_operations(simulation->workload, &all);
    CLEANUP(memory_free)
    double *waits = memory_alloc(memory_array_size(simulation->numbers + 1, sizeof *waits));
    CLEANUP(memory_free)
    double *latencies = memory_alloc(memory_array_size(simulation->numbers + 1, sizeof *latencies));

    for (uint32_t i = 0; i < simulation->numbers; i++) {
        const struct wait *wait = &simulation->waits[i];

        if (wait->failed)
            continue;
        waits[count] = wait->ms;
        latencies[count++] = wait->ms + operations[wait->operation].ms;
    }
    spread_of(waits, count, &result->wait_ms_mean, &result->wait_ms_p99);
    spread_of(latencies, count, &result->latency_ms_mean, &result->latency_ms_p99);
}

static void figures_sum(struct simulation *simulation)
{
    struct what_if_result *result = &simulation->result;
    double all = 0;

    waits_sum(simulation);
    for (uint32_t p = 0; p < result->partitions; p++) {
        double here = 0;

        for (size_t w = 0; w < result->windows; w++)
            here += result->cells[w * result->partitions + p].cru;
        result->busiest = fmax(result->busiest, here);
        all += here;
    }
    if (all > 0)
        result->busiest /= all;
}

static void windows_init(struct simulation *simulation)
{
    struct what_if_result *result = &simulation->result;
    size_t count;
    const struct advise_operation *operations =
        advise_workload_operations(simulation->workload, &count);
    int64_t length =
        time_of(simulation, operations, &operations[count - 1]) - operations[0].time_ms + 1;

    result->windows = (size_t)MIN(length, (int64_t)WHAT_IF_WINDOWS);
    result->begin_ms = operations[0].time_ms;
    result->window_ms = (length + (int64_t)result->windows - 1) / (int64_t)result->windows;
    result->cells = arena_alloc_zero(
        simulation->arena,
        memory_array_size((size_t)WHAT_IF_WINDOWS * result->partitions, sizeof *result->cells));
}

static void budgets_init(struct simulation *simulation)
{
    const struct what_if_plan *plan = simulation->plan;
    size_t count;
    const struct partition_span *spans = plan->map ? partition_map_spans(plan->map, &count) : NULL;

    simulation->budgets = ARENA_ARRAY(simulation->arena, struct budget *, plan->partitions);
    for (uint32_t i = 0; i < plan->partitions; i++) {
        double share = spans ? spans[i].share : 1.0 / plan->partitions;
        double ru = share * (double)plan->ru_per_second;

        if (plan->partition_ru_max)
            ru = fmin(ru, (double)plan->partition_ru_max);
        simulation->budgets[i] = budget_new(
            &(struct budget_options){.rate_cru = MAX((int64_t)(ru * 100 / simulation->scale), 1),
                                     .burst_seconds = plan->burst_seconds});
    }
}

static void simulation_init(struct simulation *simulation)
{
    const struct what_if_plan *plan = simulation->plan;

    simulation->result.partitions = plan->partitions;
    simulation->result.ru_per_second = plan->ru_per_second;
    simulation->options = advise_options_complete(
        &(struct advise_options){.partitions = plan->partitions,
                                 .current = plan->current,
                                 .current_partitions = plan->current_partitions});
    simulation->kind = plan->key->kind == ADVISE_HIERARCHICAL ? PARTITION_MULTI_HASH
                       : plan->hash_v1                        ? PARTITION_HASH_V1
                                                              : PARTITION_HASH_V2;
    simulation->bounds = ARENA_ARRAY(simulation->arena, struct slice, plan->partitions);
    random_seed(&simulation->random, 17);
    simulation->scale = scale_of(simulation);
    windows_init(simulation);
    budgets_init(simulation);
    habits_find(simulation);
    buf_init(&simulation->scratch, BUF_DEFAULT_MAX);
    if (plan->range)
        range_bounds_make(simulation);
    else if (!plan->map)
        partition_epk_split_points(simulation->kind, plan->partitions, simulation->arena,
                                   simulation->bounds);
}

static bool plan_check(const struct advise_workload *workload, const struct what_if_plan *plan,
                       struct error *err)
{
    size_t count;

    (void)advise_workload_operations(workload, &count);
    if (!count)
        return error_set(err, ERROR_BAD_REQUEST, "there are no operations to run again");
    if (!plan->partitions || plan->partitions > PARTITIONS_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "partitions must be from 1 to %d", PARTITIONS_MAX);
    if (plan->ru_per_second &&
        (plan->ru_per_second < plan->partitions || plan->ru_per_second > 1000000000))
        return error_set(err, ERROR_BAD_REQUEST,
                         "the throughput must be at least 1 RU/s for each partition");
    if (plan->range && plan->key->kind != ADVISE_PROPERTY)
        return error_set(err, ERROR_BAD_REQUEST, "range takes a key of one property");
    return true;
}

bool what_if_run(const struct advise_workload *workload, const struct what_if_plan *plan,
                 struct arena *arena, struct what_if_result *ret_result, struct error *err)
{
    struct simulation simulation = {.workload = workload, .plan = plan, .arena = arena};

    if (!plan_check(workload, plan, err))
        return false;
    simulation_init(&simulation);
    operations_run(&simulation);
    figures_scale(&simulation);
    figures_sum(&simulation);
    for (uint32_t i = 0; i < plan->partitions; i++)
        budget_free(simulation.budgets[i]);
    memory_free(simulation.heap);
    memory_free(simulation.waits);
    buf_done(&simulation.scratch);
    *ret_result = simulation.result;
    return true;
}

void what_if_json(const struct what_if_result *result, struct buf *out)
{
    buf_printf(out,
               "{\"requests\":%llu,\"attempts\":%llu,\"throttled\":%llu,\"givenUp\":%llu,"
               "\"throttledShare\":%.4f,\"ru\":%.2f,\"waitMsMean\":%.2f,\"waitMsP99\":%.0f,"
               "\"latencyMsMean\":%.2f,\"latencyMsP99\":%.2f,\"ruPerSecond\":%llu,"
               "\"busiestShare\":%.4f,\"partitions\":%u,\"windowMs\":%lld,\"heat\":[",
               (unsigned long long)result->requests, (unsigned long long)result->attempts,
               (unsigned long long)result->throttled, (unsigned long long)result->given_up,
               what_if_throttled_share(result), result->ru, result->wait_ms_mean,
               result->wait_ms_p99, result->latency_ms_mean, result->latency_ms_p99,
               (unsigned long long)result->ru_per_second, result->busiest, result->partitions,
               (long long)result->window_ms);
    for (size_t w = 0; w < result->windows; w++) {
        buf_append_text(out, w ? ",[" : "[");
        for (uint32_t p = 0; p < result->partitions; p++) {
            const struct what_if_cell *cell = &result->cells[w * result->partitions + p];

            buf_printf(out, "%s[%.2f,%u,%u]", p ? "," : "", cell->cru / 100, cell->requests,
                       cell->throttled);
        }
        buf_append_byte(out, ']');
    }
    buf_append_text(out, "]}");
}
