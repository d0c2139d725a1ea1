#include "catalogue/container_names.h"
#include "catalogue/container_usage.h"
#include "catalogue/migration.h"
#include "catalogue/shares.h"
#include "load/split_points.h"
#include "migration/migrator_private.h"
#include "partition/strategy.h"

enum { WHOLE_MS = 60000 };

/* --- By hand --------------------------------------------------------------------------------- */

bool migrator_begin(struct migrator *migrator, const struct container *container,
                    const struct migration_request *request, bool alike, struct error *err)
{
    CLEANUP(container_unref) struct container *before = NULL;
    CLEANUP(container_unref) struct container *now = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct container_names names;
    struct migration_request divided = *request;

    if (!catalogue_container_reopen(migrator->catalogue, container, &before, err) ||
        !migrator_divide(migrator, before, &divided, alike, arena, err))
        return false;
    if (request->ret_plan)
        return catalogue_migration_plan(migrator->catalogue, container, &divided, request->ret_plan,
                                        err);
    if (!catalogue_migration_begin(migrator->catalogue, container, &divided, &now, err))
        return false;
    names = container_names(migrator->catalogue, now, arena);
    log_event(migrator->options.log, LOG_INFO, "migration begun",
              LOG_TEXT("kind", migration_kind_name(request->kind)),
              LOG_SLICE("account", names.account), LOG_SLICE("database", names.database),
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

/* Whatever cuts between keys has nothing to cut in a part of one. */
static bool whole_keys_check(const struct container *container, const struct partition_span *span,
                             const char *what, struct error *err)
{
    return !partition_map_is_part(container_map(container), span) ||
           error_set(err, ERROR_NOT_SUPPORTED,
                     "partition %u is a part of a key that is spread, and cannot be %s: gather the "
                     "key first",
                     span->id, what);
}

static bool split(struct migrator *migrator, const struct container *container, uint32_t partition,
                  size_t pieces, const double *weights, struct migration **ret_plan,
                  struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice points[MIGRATION_TARGETS_MAX];
    struct migration_request request = {.kind = MIGRATION_SPLIT,
                                        .sources = &partition,
                                        .source_count = 1,
                                        .target_count = pieces,
                                        .bounds = points,
                                        .weights = weights,
                                        .cut = PARTITION_CUT_BY_HAND,
                                        .ret_plan = ret_plan};
    const struct partition_span *span;
    size_t count;

    if (pieces < 2 || pieces > MIGRATION_TARGETS_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "a split makes 2 to %d partitions",
                         MIGRATION_TARGETS_MAX);
    if (!catalogue_container_reopen(migrator->catalogue, container, &now, err) ||
        !span_find(now, partition, &span, err) || !whole_keys_check(now, span, "split", err) ||
        !split_points_by_bytes(now, span, pieces, arena, points, &count, err))
        return false;
    if (count + 1 < pieces)
        split_points_even(now, span, pieces, arena, points, &count);
    if (count + 1 < pieces)
        return error_set(err, ERROR_BAD_REQUEST, "partition %u cannot be split into %zu", partition,
                         pieces);
    return migrator_begin(migrator, now, &request, false, err);
}

bool migrator_split(struct migrator *migrator, const struct container *container,
                    uint32_t partition, size_t pieces, const double *weights, struct error *err)
{
    return split(migrator, container, partition, pieces, weights, NULL, err);
}

bool migrator_split_plan(struct migrator *migrator, const struct container *container,
                         uint32_t partition, size_t pieces, struct migration **ret_plan,
                         struct error *err)
{
    return split(migrator, container, partition, pieces, NULL, ret_plan, err);
}

/* What is reserved for key values must fit into one partition. */
static bool reserved_fits(const struct container *container, const uint32_t *partitions,
                          size_t count, struct error *err)
{
    uint64_t most = container_limits(container)->partition_ru_max, reserved = 0;

    for (size_t i = 0; i < count; i++) {
        const struct partition_span *span =
            partition_map_find_id(container_map(container), partitions[i]);
        const struct definition_tenant *alone;

        if (span)
            reserved += definition_throughput_within(
                &definition_fields(container_definition(container))->throughput, span->min,
                span->max, &alone);
    }
    return reserved <= most ||
           error_set(err, ERROR_BAD_REQUEST,
                     "%llu RU/s are reserved for key values of these partitions; one may give %llu",
                     (unsigned long long)reserved, (unsigned long long)most);
}

static bool merge(struct migrator *migrator, const struct container *container,
                  const uint32_t *partitions, size_t count, struct migration **ret_plan,
                  struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;
    uint32_t needed;
    size_t spans;

    if (count < 2)
        return error_set(err, ERROR_BAD_REQUEST, "a merge needs two partitions or more");
    if (!catalogue_container_reopen(migrator->catalogue, container, &now, err))
        return false;
    (void)partition_map_spans(container_map(now), &spans);
    needed = offer_partitions_needed(container_limits(now), container_offer(now));
    if (spans - MIN(count - 1, spans) < needed)
        return error_set(err, ERROR_BAD_REQUEST,
                         "throughput of %llu RU/s needs %u physical partition%s",
                         (unsigned long long)container_offer(now)->ru, needed, PLURAL(needed));
    if (!reserved_fits(now, partitions, count, err))
        return false;
    return migrator_begin(migrator, now,
                          &(struct migration_request){.kind = MIGRATION_MERGE,
                                                      .sources = partitions,
                                                      .source_count = count,
                                                      .target_count = 1,
                                                      .ret_plan = ret_plan},
                          false, err);
}

bool migrator_merge(struct migrator *migrator, const struct container *container,
                    const uint32_t *partitions, size_t count, struct error *err)
{
    return merge(migrator, container, partitions, count, NULL, err);
}

bool migrator_merge_plan(struct migrator *migrator, const struct container *container,
                         const uint32_t *partitions, size_t count, struct migration **ret_plan,
                         struct error *err)
{
    return merge(migrator, container, partitions, count, ret_plan, err);
}

bool migrator_move_plan(struct migrator *migrator, const struct container *container,
                        uint32_t partition, uint32_t node, struct migration **ret_plan,
                        struct error *err)
{
    return migrator_begin(migrator, container,
                          &(struct migration_request){.kind = MIGRATION_MOVE,
                                                      .sources = &partition,
                                                      .source_count = 1,
                                                      .target_count = 1,
                                                      .nodes = &node,
                                                      .ret_plan = ret_plan},
                          false, err);
}

bool migrator_move(struct migrator *migrator, const struct container *container, uint32_t partition,
                   uint32_t node, struct error *err)
{
    return migrator_move_plan(migrator, container, partition, node, NULL, err);
}

bool migrator_copy_plan(struct migrator *migrator, const struct container *container,
                        struct slice id, struct migration **ret_plan, struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;
    uint32_t sources[MIGRATION_SOURCES_MAX];
    const struct partition_span *spans;
    size_t count;

    if (!catalogue_container_reopen(migrator->catalogue, container, &now, err))
        return false;
    spans = partition_map_spans(container_map(now), &count);
    if (count > MIGRATION_SOURCES_MAX)
        return error_set(err, ERROR_LIMIT_REACHED,
                         "container \"%.*s\" has %zu physical partitions; at most %d are copied",
                         SLICE_ARG(container_info(now)->id), count, MIGRATION_SOURCES_MAX);
    for (size_t i = 0; i < count; i++)
        sources[i] = spans[i].id;
    return migrator_begin(migrator, now,
                          &(struct migration_request){.kind = MIGRATION_COPY,
                                                      .sources = sources,
                                                      .source_count = count,
                                                      .target_count = count,
                                                      .copy = id,
                                                      .ret_plan = ret_plan},
                          false, err);
}

bool migrator_copy(struct migrator *migrator, const struct container *container, struct slice id,
                   struct error *err)
{
    return migrator_copy_plan(migrator, container, id, NULL, err);
}

static bool isolate(struct migrator *migrator, const struct container *container,
                    const struct partition_key *key, double heat, struct migration **ret_plan,
                    struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct partition_span *span;
    struct partition_range range;
    struct slice bounds[2];
    double weights[3];
    struct migration_request request = {.kind = MIGRATION_ISOLATE,
                                        .source_count = 1,
                                        .bounds = bounds,
                                        .cut = PARTITION_CUT_ISOLATED,
                                        .ret_plan = ret_plan};
    size_t spans, count = 0;
    bool given = heat > 0 && heat < 1;

    if (!catalogue_container_reopen(migrator->catalogue, container, &now, err))
        return false;
    range = partition_route_range(&definition_fields(container_definition(now))->key, key, arena);
    span = partition_map_overlap(container_map(now), range, &spans);
    if (!whole_keys_check(now, span, "isolated", err))
        return false;
    if (spans != 1)
        return error_set(err, ERROR_BAD_REQUEST, "the key is in %zu partitions", spans);
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
    request.sources = &span->id;
    request.target_count = count + 1;
    request.ended = range;
    request.weights = given ? weights : NULL;
    return migrator_begin(migrator, now, &request, false, err);
}

bool migrator_isolate(struct migrator *migrator, const struct container *container,
                      const struct partition_key *key, double heat, struct error *err)
{
    return isolate(migrator, container, key, heat, NULL, err);
}

bool migrator_isolate_plan(struct migrator *migrator, const struct container *container,
                           const struct partition_key *key, struct migration **ret_plan,
                           struct error *err)
{
    return isolate(migrator, container, key, 0, ret_plan, err);
}

int64_t migrator_copy_ms(const struct migrator *migrator, uint64_t bytes)
{
    uint64_t speed = migrator->options.bytes_per_second;

    return speed ? (int64_t)((double)bytes * 1000 / (double)speed) : 0;
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
    return migrator_begin(migrator, now,
                          &(struct migration_request){.kind = MIGRATION_ISOLATE,
                                                      .sources = &partition,
                                                      .source_count = 1,
                                                      .target_count = count + 1,
                                                      .bounds = bounds,
                                                      .cut = PARTITION_CUT_PLACED,
                                                      .ended = *range},
                          false, err);
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
                       uint32_t partition, bool by_bytes)
{
    CLEANUP(arena_free) struct arena *arena = NULL;
    struct container_names names;

    migrator->wholes[migrator->whole_next++ % MIGRATOR_WHOLES] =
        (struct migrator_whole){partition, clock_read_monotonic_ms(migrator->clock) + WHOLE_MS};
    if (!by_bytes)
        return; /* for throughput alone: it has too few keys yet */
    arena = arena_new();
    names = container_names(migrator->catalogue, container, arena);
    log_event(migrator->options.log, LOG_WARNING, "partition too large cannot be split",
              LOG_SLICE("account", names.account), LOG_SLICE("database", names.database),
              LOG_SLICE("container", container_info(container)->id),
              LOG_INT("partition", partition));
}

static bool points_choose(const struct container *container, const struct migrator_choice *choice,
                          const struct partition_span *span, struct arena *arena,
                          struct slice *points, size_t *ret_count, struct error *err)
{
    *ret_count = 0;
    if (!choice->by_bytes)
        split_points_even(container, span, choice->pieces, arena, points, ret_count);
    /* Where nothing is known of keys to come, those that are stored tell. */
    return *ret_count ||
           split_points_by_bytes(container, span, choice->pieces, arena, points, ret_count, err);
}

static bool container_split(struct migrator *migrator, const struct container *container,
                            const struct migrator_choice *choice, bool *begun, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice points[MIGRATION_TARGETS_MAX];
    struct migration_request request = {
        .kind = MIGRATION_SPLIT, .source_count = 1, .bounds = points};
    size_t spans, count;
    const struct partition_span *span =
        &partition_map_spans(container_map(container), &spans)[choice->span];

    if (!points_choose(container, choice, span, arena, points, &count, err))
        return false;
    if (count == 0) {
        whole_note(migrator, container, span->id, choice->by_bytes);
        return true;
    }
    request.sources = &span->id;
    request.target_count = count + 1;
    *begun = true;
    return migrator_begin(migrator, container, &request, !choice->by_bytes, err);
}

/* The counter is read only if something was committed to the partition since the last time. The LSN
 * is taken first: what is committed in between is then read twice, never missed. */
static bool bytes_of(struct migrator *migrator, const struct container *container,
                     const struct partition_span *span, struct arena *arena, uint64_t *ret_bytes,
                     struct error *err)
{
    struct migrator_size *size = migrator_size_of(&migrator->sizes, span->id);
    struct container_usage usage;
    uint64_t lsn;

    if (!commit_partition_lsn(container_commit(container, span->node), span->id, &lsn, err))
        return false;
    size->seen = true;
    if (size->lsn != lsn || !lsn) {
        if (!container_usage_partition(container, span, arena, &usage, err))
            return false;
        size->bytes = usage.bytes;
        size->lsn = lsn;
        migrator->sizes_read++;
    }
    *ret_bytes = size->bytes;
    return true;
}

/* Of a node that was never here nothing is open. */
static bool is_away(const struct container *container, const struct partition_span *span,
                    const struct error *err)
{
    struct error ignored;

    return err->code == ERROR_NODE_DOWN || err->code == ERROR_NODE_PAUSED ||
           !engine_serves(container_engine(container, span->node), &ignored);
}

/* Where nothing is known of keys to come, those that are stored tell. */
static void reach_fill(const struct container *container, struct migrator_figures *figures,
                       size_t count, struct arena *arena)
{
    double *parts = ARENA_ARRAY(arena, double, count), known = 0, bytes = 0;

    split_points_reach(container, arena, parts);
    for (size_t i = 0; i < count; i++) {
        known += parts[i];
        bytes += (double)figures[i].bytes;
    }
    for (size_t i = 0; i < count; i++)
        figures[i].reach = known > 0 ? parts[i] : bytes > 0 ? (double)figures[i].bytes / bytes : 0;
}

static bool container_look(struct migrator *migrator, const struct container *container,
                           bool *begun, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct definition_limits *limits = container_limits(container);
    int64_t now_ms = clock_read_monotonic_ms(migrator->clock);
    size_t count, wanted;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    struct migrator_figures *figures = ARENA_ARRAY(arena, struct migrator_figures, count);
    struct migrator_choice choice;

    if (container_is_fixed(container) || container_migration(container))
        return true;
    for (size_t i = 0; i < count; i++) {
        figures[i] = (struct migrator_figures){
            .share = container_share(container, &spans[i]),
            .whole = is_whole(migrator, spans[i].id, now_ms) ||
                     partition_map_is_part(container_map(container), &spans[i]) ||
                     promotion_list_sharing(container_promotions(container), spans[i].id) ||
                     promotion_list_keeps_place(container_promotions(container), &spans[i])};
        if (!bytes_of(migrator, container, &spans[i], arena, &figures[i].bytes, err))
            return is_away(container, &spans[i], err); /* it is looked at when it is here again */
    }
    wanted = offer_partitions_needed(limits, container_offer(container));
    if (count < wanted)
        reach_fill(container, figures, count, arena);
    choice = migrator_decide(figures, count, limits->partition_bytes_max, wanted,
                             limits->container_partitions_max);
    return !choice.wanted || container_split(migrator, container, &choice, begun, err);
}

/* Whatever a decision rests on is committed somewhere: items, and in the catalogue maps and offers.
 * But for partitions found indivisible, whose time comes by itself. */
static uint64_t commits_of_all(const struct migrator *migrator)
{
    const struct cluster *cluster = catalogue_cluster(migrator->catalogue);
    uint64_t commits = 0;

    for (size_t i = 0; i < cluster_count(cluster); i++)
        commits += commit_statistics(cluster_at(cluster, i)->commit).batches;
    return commits;
}

static bool any_whole(const struct migrator *migrator)
{
    int64_t now_ms = clock_read_monotonic_ms(migrator->clock);

    for (size_t i = 0; i < MIGRATOR_WHOLES; i++)
        if (migrator->wholes[i].partition && migrator->wholes[i].until_ms > now_ms - WHOLE_MS)
            return true;
    return false;
}

static bool look_at_all(struct migrator *migrator, bool *ret_begun, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t count;
    struct account **accounts = catalogue_accounts(migrator->catalogue, arena, &count);
    bool fine = true;

    /* A container that cannot be looked at now does not keep the others waiting. */
    for (size_t i = 0; i < count; i++) {
        for (size_t d = 0; d < account_database_count(accounts[i]); d++) {
            const struct database *database = account_database(accounts[i], d);

            for (size_t c = 0; c < database_container_count(database); c++)
                fine = container_look(migrator, database_container(database, c), ret_begun, err) &&
                       fine;
        }
        account_unref(accounts[i]);
    }
    migrator_sizes_sweep(&migrator->sizes);
    return fine;
}

bool migrator_look(struct migrator *migrator, bool *ret_begun, struct error *err)
{
    uint64_t commits = commits_of_all(migrator);
    bool fine;

    *ret_begun = false;
    if (migrator->calm.valid && migrator->calm.commits == commits)
        return true;
    fine = look_at_all(migrator, ret_begun, err);
    migrator->calm = (struct migrator_calm){.valid = fine && !*ret_begun && !any_whole(migrator),
                                            .commits = commits};
    return fine;
}
