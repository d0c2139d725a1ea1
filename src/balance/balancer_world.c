#include "balance/balancer_private.h"
#include "catalogue/container_usage.h"
#include "catalogue/placed.h"
#include "partition/strategy.h"

enum {
    HEAT_MINUTES = 5,
    PATTERN_KEYS_MAX = 512,     /* of one span that a pattern is looked for among */
    PATTERN_KEYS_SEEN = 100000, /* and how many are gone through for them */
};

/* --- Nodes ----------------------------------------------------------------------------------- */

static void node_add(struct balancer_world *world, const struct cluster_node *node,
                     const struct node_info *info)
{
    bool serves = cluster_node_serves(node);
    struct engine_statistics statistics;
    struct error ignored;
    struct rebalance_node *figures = &world->nodes[world->node_count++];

    *figures = (struct rebalance_node){
        .number = node->number,
        .capacity_bytes = info->capacity_bytes,
        .reserve_percent = info->reserve_percent,
        .weighed = info->capacity_bytes > 0,
        .takes = serves && !info->draining && !node_is_paused(world->table, info),
        .empties = info->draining,
    };
    /* What its disk has left; what it holds is added when the spans are known. */
    if (!info->capacity_bytes && serves && engine_statistics(node->engine, &statistics, &ignored) &&
        statistics.bytes_free != UINT64_MAX)
        figures->capacity_bytes = statistics.bytes_free;
}

static void nodes_read(struct balancer_world *world, const struct cluster *cluster)
{
    for (size_t i = 0; i < cluster_count(cluster); i++) {
        const struct cluster_node *node = cluster_at(cluster, i);
        const struct node_info *info = node_table_find_number(world->table, node->number);

        if (cluster_node_is_member(node) && info)
            node_add(world, node, info);
    }
}

static void nodes_fill(struct balancer_world *world)
{
    for (size_t n = 0; n < world->node_count; n++) {
        struct rebalance_node *node = &world->nodes[n];

        for (size_t i = 0; i < world->span_count; i++)
            if (world->figures[i].node == node->number)
                node->used_bytes += world->figures[i].bytes;
        if (!node->weighed && node->capacity_bytes)
            node->capacity_bytes += node->used_bytes;
    }
}

/* --- Claims ---------------------------------------------------------------------------------- */

struct claims {
    struct placement_range *list; /* in the arena, by rule */
    size_t count, capacity;
};

static void claim_add(struct claims *claims, const struct placement_range *claim,
                      struct arena *arena)
{
    if (claims->count == claims->capacity) {
        struct placement_range *more;

        claims->capacity = claims->capacity * 2 + 16;
        more = ARENA_ARRAY(arena, struct placement_range, claims->capacity);
        if (claims->count)
            memcpy(more, claims->list, claims->count * sizeof *more);
        claims->list = more;
    }
    claims->list[claims->count++] = *claim;
}

static void claim_key(struct claims *claims, const struct container *container,
                      const struct placement_rule *rule, const struct document_value *values,
                      size_t count, struct arena *arena)
{
    const struct partition_definition *key =
        &definition_fields(container_definition(container))->key;
    struct placement_range claim = {.rule = rule, .key = partition_key_of(key, values, count)};

    claim.range = partition_route_range(key, &claim.key, arena);
    claim_add(claims, &claim, arena);
}

/* Which keys a pattern means is known from what is stored: those with items in this span. */
static bool claims_in_span(struct claims *claims, const struct container *container,
                           const struct partition_span *span, struct arena *arena,
                           struct error *err)
{
    const struct placement *placement =
        &definition_fields(container_definition(container))->placement;
    struct container_usage_key *keys;
    size_t count, seen;

    if (!container_usage_largest(container, span, PATTERN_KEYS_MAX, PATTERN_KEYS_SEEN, arena, &keys,
                                 &count, &seen, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct placement_rule *rule = placement_match(placement, &keys[i].key);

        if (rule && rule->like && !rule->ranged)
            claim_key(claims, container, rule, keys[i].key.components, keys[i].key.count, arena);
    }
    return true;
}

static int by_rule(const void *a, const void *b)
{
    const struct placement_range *left = a, *right = b;

    return (left->rule > right->rule) - (left->rule < right->rule);
}

/* A span whose node is away is left alone anyhow, so its keys need not be known. */
static bool claims_find(struct balancer_world *world, const struct container *container,
                        const struct cluster *cluster, struct claims *claims, struct error *err)
{
    const struct placement *placement =
        &definition_fields(container_definition(container))->placement;
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    bool patterns = false;

    for (size_t i = 0; i < placement->count; i++)
        patterns = patterns || (placement->rules[i].like && !placement->rules[i].ranged);
    for (size_t i = 0; i < placement->range_count; i++)
        claim_add(claims, &placement->ranges[i], world->arena);
    world->rules = world->rules || placement->count;
    world->patterns = world->patterns || patterns;
    for (size_t i = 0; patterns && i < count; i++)
        if (cluster_node_serves(cluster_find(cluster, spans[i].node)) &&
            !claims_in_span(claims, container, &spans[i], world->arena, err))
            return false;
    if (claims->count > 1)
        qsort(claims->list, claims->count, sizeof *claims->list, by_rule);
    return true;
}

/* --- Spans ----------------------------------------------------------------------------------- */

static double heat_of(const struct balancer *balancer, uint32_t partition)
{
    struct meter *meter =
        balancer->options.meters ? meters_find(balancer->options.meters, partition) : NULL;
    struct statistics_totals totals;
    int64_t cru = 0;

    if (!meter)
        return 0;
    statistics_get_totals(meter_statistics(meter), clock_read_wall_ms(balancer->clock), &totals);
    for (size_t i = 0; i < HEAT_MINUTES; i++)
        cru += totals.minutes[i].cru;
    return (double)cru / 100 / (HEAT_MINUTES * 60);
}

/* Where a span is or, while it moves, will be. */
static uint32_t node_of(const struct container *container, const struct partition_span *span)
{
    const struct migration *migration = container_migration(container);
    const struct migration_source *sources;
    const struct partition_span *targets;
    size_t count;

    if (!migration || migration_kind(migration) != MIGRATION_MOVE ||
        migration_state(migration) != MIGRATION_MOVING)
        return span->node;
    sources = migration_sources(migration, &count);
    targets = migration_targets(migration, &count);
    return sources[0].id == span->id ? targets[0].node : span->node;
}

static void span_add(struct balancer *balancer, struct balancer_world *world,
                     const struct balancer_span *about, const struct claims *claims)
{
    const struct cluster *cluster = catalogue_cluster(balancer->options.catalogue);
    struct balancer_span *span = &world->spans[world->span_count];
    const struct definition_fields *fields =
        definition_fields(container_definition(about->container));
    struct placement_verdict verdict =
        placement_judge(&fields->placement, claims->list, claims->count, world->table, about->span);
    struct container_usage usage = {0};
    struct error ignored;

    *span = *about;
    span->figures = (struct rebalance_span){
        .node = node_of(about->container, about->span),
        .allowed = verdict.allowed,
        .heat = heat_of(balancer, about->span->id),
        .fixed = container_migration(about->container) != NULL ||
                 container_places(about->container) ||
                 partition_map_is_part(container_map(about->container), about->span) ||
                 promotion_list_sharing(container_promotions(about->container), about->span->id) ||
                 !cluster_node_serves(cluster_find(cluster, about->span->node)),
    };
    if (!container_usage_partition(about->container, about->span, world->arena, &usage, &ignored))
        span->figures.fixed = true;
    span->figures.bytes = usage.bytes;
    span->isolate = verdict.isolate;
    world->figures[world->span_count++] = span->figures;
}

/* One container that cannot be looked at now is left out, and does not keep the others. */
static void container_read(struct balancer *balancer, struct balancer_world *world,
                           struct balancer_span about)
{
    const struct cluster *cluster = catalogue_cluster(balancer->options.catalogue);
    struct claims claims = {0};
    size_t count;
    struct error err;

    about.container = container_ref(about.container);
    world->containers[world->container_count++] = about.container;
    world->migrating += container_migration(about.container) != NULL;
    if (!claims_find(world, about.container, cluster, &claims, &err))
        return;
    about.span = partition_map_spans(container_map(about.container), &count);
    for (size_t i = 0; i < count; i++, about.span++)
        if (!promotion_list_is_window(container_promotions(about.container), about.span->id))
            span_add(balancer, world, &about, &claims);
}

static void sizes_count(struct account *const *accounts, size_t count, size_t *ret_containers,
                        size_t *ret_spans)
{
    *ret_containers = *ret_spans = 0;
    for (size_t a = 0; a < count; a++)
        for (size_t d = 0; d < account_database_count(accounts[a]); d++) {
            const struct database *database = account_database(accounts[a], d);

            for (size_t c = 0; c < database_container_count(database); c++) {
                size_t spans;

                (void)partition_map_spans(container_map(database_container(database, c)), &spans);
                *ret_spans += spans;
                ++*ret_containers;
            }
        }
}

static void accounts_read(struct balancer *balancer, struct balancer_world *world,
                          struct account *const *accounts, size_t count)
{
    for (size_t a = 0; a < count; a++)
        for (size_t d = 0; d < account_database_count(accounts[a]); d++) {
            const struct database *database = account_database(accounts[a], d);

            for (size_t c = 0; c < database_container_count(database); c++)
                container_read(
                    balancer, world,
                    (struct balancer_span){
                        .container = database_container(database, c),
                        .account = arena_copy(world->arena, account_info(accounts[a])->id),
                        .database = arena_copy(world->arena, database_info(database)->id)});
        }
}

bool balancer_world_read(struct balancer *balancer, struct balancer_world *ret_world,
                         struct error *err UNUSED)
{
    struct balancer_world world = {.arena = arena_new()};
    struct account **accounts;
    size_t count, containers, spans;

    accounts = catalogue_accounts(balancer->options.catalogue, world.arena, &count);
    sizes_count(accounts, count, &containers, &spans);
    world.table = catalogue_nodes(balancer->options.catalogue);
    world.spans = ARENA_ARRAY(world.arena, struct balancer_span, spans + 1);
    world.figures = ARENA_ARRAY(world.arena, struct rebalance_span, spans + 1);
    world.containers = ARENA_ARRAY(world.arena, struct container *, containers + 1);
    nodes_read(&world, catalogue_cluster(balancer->options.catalogue));
    accounts_read(balancer, &world, accounts, count);
    nodes_fill(&world);
    for (size_t i = 0; i < count; i++)
        account_unref(accounts[i]);
    *ret_world = world;
    return true;
}

void balancer_world_done(struct balancer_world *world)
{
    for (size_t i = 0; i < world->container_count; i++)
        container_unref(world->containers[i]);
    catalogue_nodes_free(world->table);
    if (world->arena)
        arena_free(world->arena);
    *world = (struct balancer_world){0};
}

void balancer_world_plan(struct balancer_world *world, bool must_only,
                         struct rebalance_plan *ret_plan)
{
    rebalance_plan(world->nodes, world->node_count, world->figures, world->span_count, must_only,
                   world->arena, ret_plan);
}
