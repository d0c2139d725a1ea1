/* Containers are walked as the catalogue has them now, in one pass that samples everything, so that
 * each family is printed in one place afterwards. How many have lines of their own is bounded by
 * settings, whatever clients create: metrics.containers_max by who was asked first (figures.h),
 * metrics.partitions_max in the order of the walk. */
#include "base/arena.h"
#include "catalogue/container_usage.h"
#include "front/rest/views/views.h"
#include "partition/layout.h"
#include "server/metrics_private.h"
#include "throughput/statistics_all.h"

#include <stdlib.h>

struct partition_sample {
    uint32_t id;
    const char *node;
    bool usage_known;
    uint64_t bytes, items, index_bytes;
    struct statistics_numbers all;
    int64_t refused_cru;
    bool budget_known;
    struct budget_state budget;
};

struct container_sample {
    struct slice account, database, id;
    uint32_t number;
    bool counted;     /* it has figures of its own */
    bool usage_known; /* of every partition */
    bool migrating;
    bool is_view;
    struct front_view_report view;
    uint64_t bytes, items, index_bytes;
    int64_t refused_cru;
    struct figures_counts counts;
    struct partition_sample *partitions; /* that have lines of their own */
    size_t partition_count;
    struct container_sample *next;
};

struct sampling {
    const struct metrics_sources *sources;
    struct arena *arena;
    struct container_sample *first, **last;
    size_t count;
    size_t partitions_left;
};

/* --- Sampling -------------------------------------------------------------------------------- */

static uint64_t index_bytes(const struct container *container, const struct partition_span *span)
{
    static const uint8_t from[] = {PARTITION_FAMILY_INDEX}, to[] = {PARTITION_FAMILY_INDEX + 1};
    const struct engine_range range = {slice_of(from, sizeof from), slice_of(to, sizeof to)};
    struct error ignored;
    uint64_t bytes;

    return engine_range_size(container_engine(container, span->node), span->id, range, &bytes,
                             &ignored)
               ? bytes
               : 0;
}

static void meter_sample(const struct metrics_sources *sources, struct partition_sample *sample)
{
    struct meter *meter = sources->meters ? meters_find(sources->meters, sample->id) : NULL;

    if (!meter)
        return;
    statistics_all(meter_statistics(meter), &sample->all, &sample->refused_cru);
    sample->budget_known = meters_state(sources->meters, sample->id, &sample->budget);
}

static struct partition_sample span_sample(struct sampling *sampling,
                                           const struct container *container,
                                           const struct partition_span *span)
{
    const struct cluster *cluster = catalogue_cluster(sampling->sources->catalogue);
    const struct cluster_node *node = cluster_find(cluster, span->node);
    struct partition_sample sample = {.id = span->id, .node = node ? node->name : ""};
    struct container_usage usage;
    struct error ignored;

    sample.usage_known =
        container_usage_partition(container, span, sampling->arena, &usage, &ignored);
    if (sample.usage_known) {
        sample.bytes = usage.bytes;
        sample.items = usage.items;
        sample.index_bytes = index_bytes(container, span);
    }
    meter_sample(sampling->sources, &sample);
    return sample;
}

static void spans_sample(struct sampling *sampling, const struct container *container,
                         struct container_sample *sample)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    size_t shown = sample->counted ? MIN(count, sampling->partitions_left) : 0;

    sample->usage_known = true;
    sample->partitions = ARENA_ARRAY(sampling->arena, struct partition_sample, shown + 1);
    for (size_t i = 0; i < count; i++) {
        struct partition_sample one = span_sample(sampling, container, &spans[i]);

        sample->usage_known = sample->usage_known && one.usage_known;
        sample->bytes += one.bytes;
        sample->items += one.items;
        sample->index_bytes += one.index_bytes;
        sample->refused_cru += one.refused_cru;
        if (i < shown)
            sample->partitions[sample->partition_count++] = one;
    }
    sampling->partitions_left -= shown;
}

static void container_sample(struct sampling *sampling, struct slice account, struct slice database,
                             const struct container *container)
{
    struct container_sample *sample = ARENA_NEW(sampling->arena, struct container_sample);

    sample->account = account;
    sample->database = database;
    sample->id = arena_copy(sampling->arena, container_info(container)->id);
    sample->number = container_info(container)->number;
    sample->migrating = container_migration(container) != NULL;
    sample->is_view = sampling->sources->views &&
                      rest_views_report(sampling->sources->views, container, &sample->view);
    sample->counted =
        sampling->sources->observer && figures_read(observer_figures(sampling->sources->observer),
                                                    sample->number, &sample->counts);
    spans_sample(sampling, container, sample);
    *sampling->last = sample;
    sampling->last = &sample->next;
    sampling->count++;
}

static void all_sample(struct sampling *sampling)
{
    size_t account_count;
    struct account **accounts =
        catalogue_accounts(sampling->sources->catalogue, sampling->arena, &account_count);

    for (size_t i = 0; i < account_count; i++) {
        struct slice account = arena_copy(sampling->arena, account_info(accounts[i])->id);

        for (size_t j = 0; j < account_database_count(accounts[i]); j++) {
            struct database *database = account_database(accounts[i], j);
            struct slice id = arena_copy(sampling->arena, database_info(database)->id);

            for (size_t k = 0; k < database_container_count(database); k++)
                container_sample(sampling, account, id, database_container(database, k));
        }
        account_unref(accounts[i]);
    }
}

static int number_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Figures of dropped containers make room for others. */
static void dropped_forget(const struct sampling *sampling)
{
    uint32_t *numbers = ARENA_ARRAY(sampling->arena, uint32_t, sampling->count + 1);
    size_t count = 0;

    for (const struct container_sample *at = sampling->first; at; at = at->next)
        numbers[count++] = at->number;
    qsort(numbers, count, sizeof *numbers, number_compare);
    figures_keep_only(observer_figures(sampling->sources->observer), numbers, count);
}

/* --- Printing -------------------------------------------------------------------------------- */

/* As the format has it: backslash, quote and line feed are escaped. */
static void label(struct buf *out, const char *name, struct slice value)
{
    buf_printf(out, "%s=\"", name);
    for (size_t i = 0; i < value.len; i++) {
        uint8_t c = value.data[i];

        if (c == '\n') {
            BUF_APPEND(out, "\\n");
            continue;
        }
        if (c == '"' || c == '\\')
            buf_append_byte(out, '\\');
        buf_append_byte(out, c);
    }
    BUF_APPEND(out, "\"");
}

static void container_labels(struct buf *out, const struct container_sample *sample)
{
    label(out, "account", sample->account);
    label(out, ",database", sample->database);
    label(out, ",container", sample->id);
}

/* name{account,database,container, up to the value. */
static void container_line(struct buf *out, const char *name, const struct container_sample *sample)
{
    buf_printf(out, "%s{", name);
    container_labels(out, sample);
}

static void ru_append(struct buf *out, uint64_t cru)
{
    buf_printf(out, "%llu.%02llu\n", (unsigned long long)(cru / 100),
               (unsigned long long)(cru % 100));
}

/* All that are shown: those with figures of their own, then what the others come to. */
static struct container_sample *shown_make(const struct sampling *sampling)
{
    struct container_sample *others = ARENA_NEW(sampling->arena, struct container_sample);
    struct container_sample *first = NULL, **last = &first, *next;

    others->usage_known = true;
    if (sampling->sources->observer)
        figures_read_others(observer_figures(sampling->sources->observer), &others->counts);
    for (struct container_sample *at = sampling->first; at; at = next) {
        next = at->next;
        if (at->counted) {
            *last = at;
            last = &at->next;
            continue;
        }
        others->bytes += at->bytes;
        others->items += at->items;
        others->index_bytes += at->index_bytes;
        others->refused_cru += at->refused_cru;
        others->migrating |= at->migrating;
    }
    *last = others;
    others->next = NULL;
    return first;
}

static void requests_print(const struct container_sample *first, struct buf *out)
{
    metrics_family(out, "orrery_container_requests_total", "counter",
                   "Requests by container, operation and status; empty names: all others.");
    for (const struct container_sample *at = first; at; at = at->next)
        for (size_t i = 0; i < OBSERVED_OPERATIONS; i++)
            for (size_t j = 0; j < FIGURES_STATUSES; j++) {
                if (!at->counts.requests[i][j])
                    continue;
                container_line(out, "orrery_container_requests_total", at);
                buf_printf(out, ",operation=\"%s\",status=\"%s\"} %llu\n",
                           observed_operation_name((enum observed_operation)i),
                           figures_status_name(j), (unsigned long long)at->counts.requests[i][j]);
            }
}

static void seconds_print(const struct container_sample *first, struct buf *out)
{
    static const char name[] = "orrery_container_request_seconds";

    metrics_family(out, name, "histogram", "From the last byte of a request to its answer.");
    for (const struct container_sample *at = first; at; at = at->next) {
        uint64_t count = 0;

        for (size_t i = 0; i < FIGURES_TIMES; i++) {
            count += at->counts.times[i];
            container_line(out, "orrery_container_request_seconds_bucket", at);
            buf_printf(out, ",le=\"%.6f\"} %llu\n", (double)figures_time_us(i) / 1e6,
                       (unsigned long long)count);
        }
        count += at->counts.times[FIGURES_TIMES];
        container_line(out, "orrery_container_request_seconds_bucket", at);
        buf_printf(out, ",le=\"+Inf\"} %llu\n", (unsigned long long)count);
        container_line(out, "orrery_container_request_seconds_sum", at);
        buf_printf(out, "} %.6f\n", (double)at->counts.time_us / 1e6);
        container_line(out, "orrery_container_request_seconds_count", at);
        buf_printf(out, "} %llu\n", (unsigned long long)count);
    }
}

/* A family of one number of each container. */
struct container_family {
    const char *name, *type, *help;
    uint64_t (*value)(const struct container_sample *sample);
    bool ru;     /* hundredths */
    bool stored; /* only where all of its partitions could be asked */
    bool view;   /* only of views */
};

#define CONTAINER_VALUE(name, expression)                                                          \
    static uint64_t value_##name(const struct container_sample *s)                                 \
    {                                                                                              \
        return expression;                                                                         \
    }
CONTAINER_VALUE(cru, s->counts.cru)
CONTAINER_VALUE(refused, (uint64_t)s->refused_cru)
CONTAINER_VALUE(bytes_in, s->counts.bytes_in)
CONTAINER_VALUE(bytes_out, s->counts.bytes_out)
CONTAINER_VALUE(feed_lag, s->counts.feed_lag)
CONTAINER_VALUE(bytes, s->bytes)
CONTAINER_VALUE(items, s->items)
CONTAINER_VALUE(index_bytes, s->index_bytes)
CONTAINER_VALUE(migrating, s->migrating)
CONTAINER_VALUE(view_lag, (uint64_t)s->view.lag_ms)
CONTAINER_VALUE(view_lag_lsn, s->view.lag_lsn)
CONTAINER_VALUE(view_left_out, s->view.left_out)
CONTAINER_VALUE(view_rebuilds, s->view.rebuilds)

static void container_families_print(const struct container_sample *first, struct buf *out)
{
    static const struct container_family families[] = {
        {"orrery_container_request_units_total", "counter", "Request units that were charged.",
         value_cru, true, false},
        {"orrery_container_request_units_refused", "gauge",
         "Request units that were refused with 429 by the partitions it has now, at least.",
         value_refused, true, false},
        {"orrery_container_received_bytes_total", "counter", "Bytes of requests.", value_bytes_in,
         false, false},
        {"orrery_container_sent_bytes_total", "counter", "Bytes of answers.", value_bytes_out,
         false, false},
        {"orrery_container_change_feed_lag_commits", "gauge",
         "How far behind the last commit the change feed was read last.", value_feed_lag, false,
         false},
        {"orrery_container_bytes", "gauge", "What its items take, as limits count it.", value_bytes,
         false, true},
        {"orrery_container_items", "gauge", "Items.", value_items, false, true},
        {"orrery_container_index_bytes", "gauge", "What its index takes on disk, estimated.",
         value_index_bytes, false, true},
        {"orrery_container_migrating", "gauge", "1: a migration of it is under way.",
         value_migrating, false, false},
        {"orrery_view_lag_milliseconds", "gauge", "How far a view is behind its sources.",
         value_view_lag, false, false, true},
        {"orrery_view_lag_lsn", "gauge", "The same in LSNs of the sources' partitions, added up.",
         value_view_lag_lsn, false, false, true},
        {"orrery_view_left_out_total", "counter",
         "Items of its sources that make none that could be stored.", value_view_left_out, false,
         false, true},
        {"orrery_view_rebuilds_total", "counter", "How often a view was built again.",
         value_view_rebuilds, false, false, true},
    };

    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        const struct container_family *f = &families[i];

        metrics_family(out, f->name, f->type, f->help);
        for (const struct container_sample *at = first; at; at = at->next) {
            if ((f->stored && !at->usage_known) || (f->view && !at->is_view))
                continue;
            container_line(out, f->name, at);
            BUF_APPEND(out, "} ");
            if (f->ru)
                ru_append(out, f->value(at));
            else
                buf_printf(out, "%llu\n", (unsigned long long)f->value(at));
        }
    }
}

struct partition_row {
    const char *name, *type, *help;
    uint64_t (*value)(const struct partition_sample *sample);
    bool ru;
    bool (*known)(const struct partition_sample *sample); /* NULL: always */
};

#define PARTITION_VALUE(name, expression)                                                          \
    static uint64_t part_##name(const struct partition_sample *s)                                  \
    {                                                                                              \
        return (uint64_t)(expression);                                                             \
    }
PARTITION_VALUE(requests, s->all.requests)
PARTITION_VALUE(throttled, s->all.throttled)
PARTITION_VALUE(cru, s->all.cru)
PARTITION_VALUE(refused, s->refused_cru)
PARTITION_VALUE(rate, s->budget.rate_cru)
PARTITION_VALUE(bytes, s->bytes)
PARTITION_VALUE(items, s->items)
PARTITION_VALUE(index_bytes, s->index_bytes)

static bool usage_is_known(const struct partition_sample *sample)
{
    return sample->usage_known;
}

static bool budget_is_known(const struct partition_sample *sample)
{
    return sample->budget_known;
}

static void partition_row_print(const struct container_sample *first, const struct partition_row *f,
                                struct buf *out)
{
    metrics_family(out, f->name, f->type, f->help);
    for (const struct container_sample *at = first; at; at = at->next)
        for (size_t i = 0; i < at->partition_count; i++) {
            const struct partition_sample *sample = &at->partitions[i];

            if (f->known && !f->known(sample))
                continue;
            container_line(out, f->name, at);
            buf_printf(out, ",partition=\"%u\",node=\"%s\"} ", sample->id, sample->node);
            if (f->ru)
                ru_append(out, f->value(sample));
            else
                buf_printf(out, "%llu\n", (unsigned long long)f->value(sample));
        }
}

static void partitions_print(const struct container_sample *first, struct buf *out)
{
    static const struct partition_row families[] = {
        {"orrery_partition_requests_total", "counter",
         "Requests that a physical partition had a part in, those refused included.", part_requests,
         false, NULL},
        {"orrery_partition_throttled_total", "counter", "Those refused for lack of throughput.",
         part_throttled, false, NULL},
        {"orrery_partition_request_units_total", "counter", "Request units charged to it.",
         part_cru, true, NULL},
        {"orrery_partition_request_units_refused_total", "counter",
         "Request units it refused, at least.", part_refused, true, NULL},
        {"orrery_partition_request_units_per_second_max", "gauge",
         "Request units it gives in a second.", part_rate, true, budget_is_known},
        {"orrery_partition_bytes", "gauge", "What its items take, as limits count it.", part_bytes,
         false, usage_is_known},
        {"orrery_partition_items", "gauge", "Items.", part_items, false, usage_is_known},
        {"orrery_partition_index_bytes", "gauge", "What its index takes on disk, estimated.",
         part_index_bytes, false, usage_is_known},
    };

    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        partition_row_print(first, &families[i], out);
}

static void migrations_print(struct migrator *migrator, struct buf *out)
{
    struct migrator_statistics statistics = migrator_statistics(migrator);

    metrics_family(out, "orrery_migrations_total", "counter", "Migrations that are over, by kind.");
    for (int i = 0; i < MIGRATION_KINDS; i++)
        buf_printf(out, "orrery_migrations_total{kind=\"%s\"} %llu\n",
                   migration_kind_name((enum migration_kind)i),
                   (unsigned long long)statistics.done[i]);
    metrics_single(out, "orrery_migrations_cancelled_total", "counter",
                   "Those that were cancelled.", statistics.cancelled);
    metrics_single(out, "orrery_migration_copied_bytes_total", "counter", "Bytes they copied.",
                   statistics.bytes);
    metrics_single(out, "orrery_migrations_paused", "gauge", "1: the operator holds them.",
                   migrator_is_paused(migrator));
}

static void errors_print(const struct figures *figures, struct buf *out)
{
    metrics_family(out, "orrery_errors_total", "counter",
                   "Requests that ended with an error, by its name in docs/errors.md: limits of "
                   "queries, scripts and memory among them.");
    for (int i = 1; i < ERROR_CODE_COUNT; i++) {
        uint64_t count = figures_errors(figures, (enum error_code)i);

        if (count)
            buf_printf(out, "orrery_errors_total{error=\"%s\"} %llu\n",
                       error_face((enum error_code)i)->name, (unsigned long long)count);
    }
}

void metrics_containers_print(const struct metrics_sources *sources, struct buf *out)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct sampling sampling = {
        .sources = sources, .arena = arena, .partitions_left = sources->partitions_max};
    struct container_sample *first;

    sampling.last = &sampling.first;
    all_sample(&sampling);
    if (sources->observer) {
        dropped_forget(&sampling);
        errors_print(observer_figures(sources->observer), out);
    }
    first = shown_make(&sampling);
    requests_print(first, out);
    seconds_print(first, out);
    container_families_print(first, out);
    partitions_print(first, out);
    if (sources->migrator)
        migrations_print(sources->migrator, out);
}
