/* What would become of partitions, tried out: which go, which come, what each holds and may spend.
 * The plan is the migrator's own; here it is only shown, and nothing is begun. */
#include "front/admin/call.h"

#include "catalogue/container_usage.h"
#include "catalogue/shares.h"
#include "front/admin/migrations.h"
#include "load/split_points.h"

/* A plan, and what its sources hold. */
struct shown {
    const struct container *container;
    const struct migration *plan; /* NULL: every key stays where it is */
    const int64_t *moved;         /* see admin_plan_append */
    struct container_usage all;
};

static void ends_append(struct admin_call *call, const struct shown *shown,
                        const struct partition_span *span, double rate)
{
    struct buf *out = &call->body;

    admin_hex(out, "minInclusive", span->min);
    admin_hex(out, "maxExclusive", span->max);
    admin_node(call, span->node);
    buf_printf(out, ",\"share\":%.6f",
               rate / (double)MAX(container_offer(shown->container)->ru, (uint64_t)1));
}

static bool sources_append(struct admin_call *call, struct shown *shown, struct error *err)
{
    const struct partition_map *map = container_map(shown->container);
    size_t count, spans;
    const struct migration_source *sources = migration_sources(shown->plan, &count);
    const struct partition_span *first = partition_map_spans(map, &spans);
    double *rates = ARENA_ARRAY(call->arena, double, spans);

    container_rates(shown->container, map, rates);
    BUF_APPEND(&call->body, ",\"sources\":[");
    for (size_t i = 0; i < count; i++) {
        const struct partition_span *span = partition_map_find_id(map, sources[i].id);
        struct container_usage usage;

        if (!span)
            return error_set(err, ERROR_BUSY, "the container has changed meanwhile: try again");
        if (!container_usage_partition(shown->container, span, call->arena, &usage, err))
            return false;
        shown->all.items += usage.items;
        shown->all.bytes += usage.bytes;
        buf_printf(&call->body, "%s{\"id\":\"%u\"", i ? "," : "", span->id);
        ends_append(call, shown, span, rates[span - first]);
        admin_number_append(&call->body, "items", usage.items);
        admin_number_append(&call->body, "bytes", usage.bytes);
        BUF_APPEND(&call->body, "}");
    }
    BUF_APPEND(&call->body, "]");
    return true;
}

/* What a source of these bounds holds, with what comes and goes. */
static bool target_weigh(struct admin_call *call, const struct shown *shown,
                         const struct partition_span *target, uint64_t *ret_bytes,
                         struct error *err)
{
    size_t count;
    const struct partition_span *spans =
        partition_map_spans(container_map(shown->container), &count);

    for (size_t i = 0; i < count; i++) {
        struct container_usage usage;

        if (!slice_equal(spans[i].min, target->min))
            continue;
        if (!container_usage_partition(shown->container, &spans[i], call->arena, &usage, err))
            return false;
        *ret_bytes =
            (uint64_t)MAX((int64_t)usage.bytes + (shown->moved ? shown->moved[i] : 0), INT64_C(0));
        return true;
    }
    return error_set(err, ERROR_BUSY, "the container has changed meanwhile: try again");
}

/* The bytes of a key are counted where it begins; its parts are cut about even. */
static void parts_even(const struct partition_span *targets, size_t count, uint64_t *bytes)
{
    for (size_t i = 0, end; i < count; i = end) {
        uint64_t all = bytes[i];

        for (end = i + 1; end < count && targets[end].cut == PARTITION_CUT_SPREAD;)
            end++;
        for (size_t j = i + 1; j < end; j++) {
            bytes[j] = all / (end - i);
            bytes[i] -= bytes[j];
        }
    }
}

/* How many bytes of the only source each target gets; of a merge all. A copy has what there is. */
static bool pieces_weigh(struct admin_call *call, const struct shown *shown,
                         const struct partition_span *targets, size_t count, uint64_t *ret_bytes,
                         struct error *err)
{
    struct slice bounds[MIGRATION_TARGETS_MAX];
    const struct partition_span *source;
    const struct migration_source *sources;
    size_t source_count;

    if (shown->moved || migration_kind(shown->plan) == MIGRATION_COPY) {
        for (size_t i = 0; i < count; i++)
            if (!target_weigh(call, shown, &targets[i], &ret_bytes[i], err))
                return false;
        return true;
    }
    ret_bytes[0] = shown->all.bytes;
    if (count < 2)
        return true;
    sources = migration_sources(shown->plan, &source_count);
    source = partition_map_find_id(container_map(shown->container), sources[0].id);
    for (size_t i = 0; i + 1 < count; i++)
        bounds[i] = targets[i].max;
    front_call_breathe(&call->front);
    if (!split_points_bytes(shown->container, source, bounds, count - 1, ret_bytes, err))
        return false;
    parts_even(targets, count, ret_bytes);
    return true;
}

static bool targets_append(struct admin_call *call, const struct shown *shown, struct error *err)
{
    const struct partition_map *map = migration_map(shown->plan);
    size_t count, spans;
    const struct partition_span *targets = migration_targets(shown->plan, &count);
    const struct partition_span *first = partition_map_spans(map, &spans);
    double *rates = ARENA_ARRAY(call->arena, double, spans);
    uint64_t bytes[MIGRATION_TARGETS_MAX];

    assert(count && count <= MIGRATION_TARGETS_MAX);
    if (!pieces_weigh(call, shown, targets, count, bytes, err))
        return false;
    container_rates(shown->container, map, rates);
    BUF_APPEND(&call->body, ",\"targets\":[");
    for (size_t i = 0; i < count; i++) {
        const struct partition_span *span = partition_map_find_id(map, targets[i].id);

        buf_append_text(&call->body, i ? ",{" : "{");
        ends_append(call, shown, span, rates[span - first]);
        admin_number_append(&call->body, "bytes", bytes[i]);
        BUF_APPEND(&call->body, "}");
    }
    BUF_APPEND(&call->body, "]");
    return true;
}

/* A plan that carries nothing has neither: what is named as source is only watched. */
static bool both_append(struct admin_call *call, struct shown *shown, struct error *err)
{
    size_t targets = 0;

    if (shown->plan)
        (void)migration_targets(shown->plan, &targets);
    if (targets)
        return sources_append(call, shown, err) && targets_append(call, shown, err);
    BUF_APPEND(&call->body, ",\"sources\":[],\"targets\":[]");
    return true;
}

bool admin_plan_append(struct admin_call *call, const struct container *container,
                       const struct migration *plan, enum migration_kind kind, const int64_t *moved,
                       struct error *err)
{
    struct shown shown = {.container = container, .plan = plan, .moved = moved};
    size_t before, after;

    BUF_APPEND(&call->body, "{\"dryRun\":true");
    admin_text(&call->body, "kind", slice_of_text(migration_kind_name(kind)));
    if (!both_append(call, &shown, err))
        return false;
    (void)partition_map_spans(container_map(container), &before);
    (void)partition_map_spans(
        plan && kind != MIGRATION_COPY ? migration_map(plan) : container_map(container), &after);
    admin_number_append(&call->body, "items", shown.all.items);
    admin_number_append(&call->body, "bytes", shown.all.bytes);
    admin_number_append(&call->body, "partitions", before);
    admin_number_append(&call->body, "partitionsAfter", after);
    admin_number_append(&call->body, "copyMs",
                        (uint64_t)migrator_copy_ms(call->services->migrator, shown.all.bytes));
    return true;
}

bool admin_plan_show(struct admin_call *call, const struct container *container, bool fine,
                     struct migration *const *planned, struct error *err)
{
    if (!fine)
        return admin_migration_refused(err);
    if (!admin_plan_append(call, container, *planned, migration_kind(*planned), NULL, err))
        return false;
    BUF_APPEND(&call->body, "}");
    call->status = 200;
    return true;
}
