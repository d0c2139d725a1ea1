#include "container/catalogue_migration.h"
#include "container/container_usage.h"
#include "container/migrator_private.h"
#include "container/split_points.h"
#include "partition/strategy.h"

enum { WHOLE_MS = 60000 };

/* --- By hand --------------------------------------------------------------------------------- */

static bool begin(struct migrator *migrator, const struct container *container,
                  const struct migration_request *request, struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;

    if (!catalogue_migration_begin(migrator->catalogue, container, request, &now, err))
        return false;
    log_event(migrator->options.log, LOG_INFO, "migration begun",
              LOG_TEXT("kind", migration_kind_name(request->kind)),
              LOG_SLICE("container", container_info(now)->id),
              LOG_INT("sources", (int64_t)request->source_count),
              LOG_INT("targets", (int64_t)request->target_count));
    migrator_wake(migrator);
    return true;
}

static bool span_find(const struct container *container, uint32_t partition,
                      const struct partition_span **ret_span, struct error *err)
{
    *ret_span = partition_map_find_id(container_map(container), partition);
    return *ret_span ||
           error_set(err, ERROR_PARTITION_UNKNOWN, "container \"%.*s\" has no partition %u",
                     SLICE_ARG(container_info(container)->id), partition);
}

bool migrator_split(struct migrator *migrator, const struct container *container,
                    uint32_t partition, size_t pieces, const double *weights, struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice points[MIGRATION_TARGETS_MAX];
    const struct partition_span *span;
    size_t count;

    if (pieces < 2 || pieces > MIGRATION_TARGETS_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "a split makes 2 to %d partitions",
                         MIGRATION_TARGETS_MAX);
    if (!catalogue_container_reopen(migrator->catalogue, container, &now, err) ||
        !span_find(now, partition, &span, err) ||
        !split_points_by_bytes(now, span, pieces, arena, points, &count, err))
        return false;
    if (count + 1 < pieces)
        split_points_even(now, span, pieces, arena, points, &count);
    if (count + 1 < pieces)
        return error_set(err, ERROR_BAD_REQUEST, "partition %u cannot be split into %zu", partition,
                         pieces);
    return begin(migrator, now,
                 &(struct migration_request){.kind = MIGRATION_SPLIT,
                                             .sources = &partition,
                                             .source_count = 1,
                                             .target_count = pieces,
                                             .bounds = points,
                                             .weights = weights},
                 err);
}

bool migrator_merge(struct migrator *migrator, const struct container *container,
                    const uint32_t *partitions, size_t count, struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;
    uint32_t needed;
    size_t spans;

    if (count < 2)
        return error_set(err, ERROR_BAD_REQUEST, "a merge needs two partitions or more");
    if (!catalogue_container_reopen(migrator->catalogue, container, &now, err))
        return false;
    (void)partition_map_spans(container_map(now), &spans);
    needed = offer_partitions(container_limits(now), container_offer(now)->ru);
    if (spans - MIN(count - 1, spans) < needed)
        return error_set(err, ERROR_BAD_REQUEST,
                         "throughput of %llu RU/s needs %u physical partitions",
                         (unsigned long long)container_offer(now)->ru, needed);
    return begin(migrator, now,
                 &(struct migration_request){.kind = MIGRATION_MERGE,
                                             .sources = partitions,
                                             .source_count = count,
                                             .target_count = 1},
                 err);
}

bool migrator_move(struct migrator *migrator, const struct container *container, uint32_t partition,
                   uint32_t node, struct error *err)
{
    return begin(migrator, container,
                 &(struct migration_request){.kind = MIGRATION_MOVE,
                                             .sources = &partition,
                                             .source_count = 1,
                                             .target_count = 1,
                                             .nodes = &node},
                 err);
}

bool migrator_isolate(struct migrator *migrator, const struct container *container,
                      const struct partition_key *key, double heat, struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct partition_span *span;
    struct partition_range range;
    struct slice bounds[2];
    double weights[3];
    size_t spans, count = 0;

    if (!catalogue_container_reopen(migrator->catalogue, container, &now, err))
        return false;
    range = partition_route_range(&definition_fields(container_definition(now))->key, key, arena);
    span = partition_map_overlap(container_map(now), range, &spans);
    if (spans != 1)
        return error_set(err, ERROR_BAD_REQUEST, "the key is in %zu partitions", spans);
    heat = heat > 0 && heat < 1 ? heat : 0.5;
    if (slice_compare(range.min, span->min) > 0) {
        weights[count] = 1 - heat;
        bounds[count++] = range.min;
    }
    weights[count] = heat;
    if (slice_compare(range.max, span->max) < 0) {
        bounds[count++] = range.max;
        weights[count] = 1 - heat;
    }
    if (count == 0)
        return error_set(err, ERROR_BAD_REQUEST, "the key has partition %u for itself", span->id);
    if (count == 2) /* both neighbours share what is left */
        weights[0] = weights[2] = (1 - heat) / 2;
    return begin(migrator, now,
                 &(struct migration_request){.kind = MIGRATION_ISOLATE,
                                             .sources = &span->id,
                                             .source_count = 1,
                                             .target_count = count + 1,
                                             .bounds = bounds,
                                             .weights = weights},
                 err);
}

bool migrator_carve(struct migrator *migrator, const struct container *container,
                    uint32_t partition, const struct partition_range *range, struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;
    const struct partition_span *span;
    struct slice bounds[2];
    size_t count = 0;

    if (!catalogue_container_reopen(migrator->catalogue, container, &now, err) ||
        !span_find(now, partition, &span, err))
        return false;
    if (slice_compare(range->min, span->min) > 0 && slice_compare(range->min, span->max) < 0)
        bounds[count++] = range->min;
    if (slice_compare(range->max, span->min) > 0 && slice_compare(range->max, span->max) < 0)
        bounds[count++] = range->max;
    if (count == 0)
        return error_set(err, ERROR_BAD_REQUEST, "partition %u cannot be cut there", partition);
    return begin(migrator, now,
                 &(struct migration_request){.kind = MIGRATION_ISOLATE,
                                             .sources = &partition,
                                             .source_count = 1,
                                             .target_count = count + 1,
                                             .bounds = bounds},
                 err);
}

/* --- By limits ------------------------------------------------------------------------------- */

static bool is_whole(const struct migrator *migrator, uint32_t partition, int64_t now_ms)
{
    for (size_t i = 0; i < MIGRATOR_WHOLES; i++)
        if (migrator->wholes[i].partition == partition && migrator->wholes[i].until_ms > now_ms)
            return true;
    return false;
}

static void whole_note(struct migrator *migrator, const struct container *container,
                       uint32_t partition)
{
    migrator->wholes[migrator->whole_next++ % MIGRATOR_WHOLES] =
        (struct migrator_whole){partition, clock_read_monotonic_ms(migrator->clock) + WHOLE_MS};
    log_event(migrator->options.log, LOG_WARNING, "partition too large cannot be split",
              LOG_SLICE("container", container_info(container)->id),
              LOG_INT("partition", partition));
}

static bool points_choose(const struct container *container, const struct migrator_choice *choice,
                          const struct partition_span *span, struct arena *arena,
                          struct slice *points, size_t *ret_count, struct error *err)
{
    if (choice->by_bytes)
        return split_points_by_bytes(container, span, choice->pieces, arena, points, ret_count,
                                     err);
    split_points_even(container, span, choice->pieces, arena, points, ret_count);
    return true;
}

static bool container_split(struct migrator *migrator, const struct container *container,
                            const struct migrator_choice *choice, bool *begun, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice points[MIGRATION_TARGETS_MAX];
    size_t spans, count;
    const struct partition_span *span =
        &partition_map_spans(container_map(container), &spans)[choice->span];

    if (!points_choose(container, choice, span, arena, points, &count, err))
        return false;
    if (count == 0) {
        whole_note(migrator, container, span->id);
        return true;
    }
    *begun = true;
    return begin(migrator, container,
                 &(struct migration_request){.kind = MIGRATION_SPLIT,
                                             .sources = &span->id,
                                             .source_count = 1,
                                             .target_count = count + 1,
                                             .bounds = points},
                 err);
}

static bool is_away(const struct error *err)
{
    return err->code == ERROR_NODE_DOWN || err->code == ERROR_NODE_PAUSED;
}

static bool container_look(struct migrator *migrator, const struct container *container,
                           bool *begun, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct catalogue_limits *limits = container_limits(container);
    int64_t now_ms = clock_read_monotonic_ms(migrator->clock);
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    struct migrator_figures *figures = ARENA_ARRAY(arena, struct migrator_figures, count);
    struct migrator_choice choice;

    if (container_is_fixed(container) || container_migration(container))
        return true;
    for (size_t i = 0; i < count; i++) {
        struct container_usage usage;

        if (!container_usage_partition(container, &spans[i], arena, &usage, err))
            return is_away(err); /* the container is looked at when it is here again */
        figures[i] = (struct migrator_figures){.bytes = usage.bytes,
                                               .share = spans[i].share,
                                               .whole = is_whole(migrator, spans[i].id, now_ms)};
    }
    choice = migrator_decide(figures, count, limits->partition_bytes_max,
                             offer_partitions(limits, container_offer(container)->ru),
                             limits->container_partitions_max);
    return !choice.wanted || container_split(migrator, container, &choice, begun, err);
}

/* A container that cannot be looked at now does not keep the others waiting. */
bool migrator_look(struct migrator *migrator, bool *ret_begun, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t count;
    struct account **accounts = catalogue_accounts(migrator->catalogue, arena, &count);
    bool fine = true;

    *ret_begun = false;
    for (size_t i = 0; i < count; i++) {
        for (size_t d = 0; d < account_database_count(accounts[i]); d++) {
            const struct database *database = account_database(accounts[i], d);

            for (size_t c = 0; c < database_container_count(database); c++)
                fine = container_look(migrator, database_container(database, c), ret_begun, err) &&
                       fine;
        }
        account_unref(accounts[i]);
    }
    return fine;
}
