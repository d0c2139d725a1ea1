/* A partition that two containers have in their maps has one set of items under two names, as long
 * as both make keys and entries the same way. So nothing that would make them differ is allowed
 * meanwhile, and nothing has to be forwarded: every front, query and feed finds the items by the
 * map it has.
 *
 * What needs care is requests that hold an old map. When a partition leaves a map it is noted
 * together with that map (catalogue_stale.c); until nobody holds the map, the partition is neither
 * dropped nor migrated by the container it belongs to, and a container that is being prepared is
 * not taken for empty. */
#include "catalogue/promotion.h"

#include "catalogue/catalogue_private.h"
#include "catalogue/placed.h"
#include "catalogue/resident.h"
#include "catalogue/shares.h"
#include "catalogue/spread.h"
#include "document/order.h"
#include "partition/counters.h"
#include "partition/layout.h"
#include "partition/pledge.h"

enum { FIRST_EPOCH = 1, PARENTS_MAX = 64, JOIN_TRIES = 5 };

/* --- What a tie does not allow --------------------------------------------------------------- */

static bool bound(const struct promotion *promotion, struct error *err, const char *what)
{
    return error_set(
        err, ERROR_PROMOTION_BOUND, "%s while partition key %.*s of container \"%.*s\" is %s", what,
        (int)MIN(promotion->key.len, (size_t)PROMOTION_KEY_SHOWN_MAX),
        (const char *)promotion->key.data, (int)MIN(promotion->origin_id.len, (size_t)48),
        (const char *)promotion->origin_id.data,
        promotion->state == PROMOTION_PREPARING ? "being promoted"
        : promotion->grace                      ? "served by two containers"
        : promotion->state == PROMOTION_BACK    ? "demoted and not forgotten"
                                                : "promoted");
}

bool catalogue_promotions_let_drop(const struct container *container, struct error *err)
{
    for (size_t i = 0; i < container->promotions.count; i++) {
        const struct promotion *promotion = container->promotions.list[i];

        if (promotion_shares(promotion) || promotion->state == PROMOTION_PREPARING)
            return bound(promotion, err, "the container cannot be dropped");
    }
    return true;
}

static bool is_free_property(struct slice name)
{
    return slice_equal(name, SLICE("id")) || slice_equal(name, SLICE("computedProperties"));
}

/* Every property of one that matters is in the other. */
static bool has_all(struct slice a, struct slice b, struct slice *ret_name)
{
    struct document_iter iter;

    document_iter_init(&iter, a);
    while (document_iter_next(&iter)) {
        struct document_value other = document_undefined();

        (void)document_find(b, iter.key, &other);
        if (!is_free_property(iter.key) &&
            document_compare(DOCUMENT_ORDER_SQL, &iter.value, &other) != 0) {
            *ret_name = iter.key;
            return false;
        }
    }
    return true;
}

/* Do both make keys, entries and lifetimes the same way? Whether they are followed is the server's
 * to say (views.c). *ret_name: the property that differs, in the arena. */
static bool definitions_alike(const struct definition *a, const struct definition *b,
                              struct arena *arena, struct slice *ret_name)
{
    struct slice left = definition_with_followed(definition_fields(a), false, arena);
    struct slice right = definition_with_followed(definition_fields(b), false, arena);

    return has_all(left, right, ret_name) && has_all(right, left, ret_name);
}

bool catalogue_promotions_let_replace(const struct container *container,
                                      const struct definition *definition, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = NULL;
    struct slice name;

    if (container->promotions.count)
        arena = arena_new();
    for (size_t i = 0; i < container->promotions.count; i++) {
        const struct promotion *promotion = container->promotions.list[i];

        if ((promotion_shares(promotion) || promotion->state == PROMOTION_PREPARING) &&
            !definitions_alike(container->definition, definition, arena, &name))
            return bound(promotion, err, "the definition cannot be changed");
    }
    return true;
}

static bool lets_migrate(const struct container *container, const struct promotion *promotion,
                         const struct migration_request *request, struct error *err)
{
    if (request->definition)
        return bound(promotion, err, "keys cannot be placed otherwise");
    if (promotion->state == PROMOTION_PREPARING && promotion->own == container->state.info.number)
        return bound(promotion, err, "partitions stay as they are");
    for (size_t i = 0; i < request->source_count; i++) {
        const struct partition_span *span =
            partition_map_find_id(container->map, request->sources[i]);

        if (promotion_shares(promotion) && promotion->partition == request->sources[i])
            return bound(promotion, err, "a partition that two containers have stays as it is");
        if (span && request->kind != MIGRATION_MOVE &&
            promotion_list_keeps_place(&container->promotions, span))
            return bound(promotion, err, "the place of the key stays as it is");
    }
    return true;
}

bool catalogue_promotions_let_migrate(const struct container *container,
                                      const struct migration_request *request, struct error *err)
{
    for (size_t i = 0; i < container->promotions.count; i++)
        if (!lets_migrate(container, container->promotions.list[i], request, err))
            return false;
    for (size_t i = 0; i < request->source_count; i++)
        if (!catalogue_stale_check(container->catalogue, request->sources[i], err))
            return false;
    return true;
}

/* --- Changes of two containers --------------------------------------------------------------- */

struct pair {
    struct catalogue_change change;
    struct container *origin_before, *own_before; /* borrowed; NULL: it is gone */
    struct container *origin, *own;               /* copies to be published; owned */
    const struct promotion *promotion;            /* as it is now; borrowed */
};

static void pair_end(struct pair *pair)
{
    container_unref(pair->origin);
    container_unref(pair->own);
    catalogue_change_end(&pair->change);
}
CLEANUP_VALUE_FN(struct pair, pair_end)

static struct container *copy_of(const struct container *container)
{
    return container ? catalogue_state_container(catalogue_state_copy(&container->state)) : NULL;
}

/* Takes the lock of changes in any case. */
static bool pair_open(struct catalogue *catalogue, const struct container *tied, uint32_t origin,
                      uint32_t own, struct pair *pair, struct error *err)
{
    *pair = (struct pair){0};
    if (!catalogue_change_begin(catalogue, &pair->change, err))
        return false;
    pair->origin_before =
        catalogue_find_container_number(pair->change.root, tied->account, tied->database, origin);
    pair->own_before =
        catalogue_find_container_number(pair->change.root, tied->account, tied->database, own);
    pair->origin = copy_of(pair->origin_before);
    pair->own = copy_of(pair->own_before);
    return true;
}

static struct promotion *list_find(const struct promotion_list *list,
                                   const struct promotion *promotion)
{
    for (size_t i = 0; i < list->count; i++)
        if (promotion_same(list->list[i], promotion))
            return list->list[i];
    return NULL;
}

static bool gone(const struct promotion *promotion, struct error *err)
{
    return error_set(err, ERROR_NOT_FOUND, "partition key %.*s is not promoted",
                     (int)MIN(promotion->key.len, (size_t)PROMOTION_KEY_SHOWN_MAX),
                     (const char *)promotion->key.data);
}

static bool pair_of(struct catalogue *catalogue, const struct container *tied,
                    const struct promotion *promotion, struct pair *pair, struct error *err)
{
    const struct container *one;

    if (!pair_open(catalogue, tied, promotion->origin, promotion->own, pair, err))
        return false;
    one = pair->origin_before ? pair->origin_before : pair->own_before;
    pair->promotion = one ? list_find(&one->promotions, promotion) : NULL;
    return pair->promotion || gone(promotion, err);
}

static bool is_there(const struct container *container, struct slice id, struct error *err)
{
    return container || error_set(err, ERROR_NOT_FOUND, "container \"%.*s\" was dropped",
                                  (int)MIN(id.len, (size_t)64), (const char *)id.data);
}

static bool both_there(const struct pair *pair, const struct promotion *promotion,
                       struct error *err)
{
    return is_there(pair->origin, promotion->origin_id, err) &&
           is_there(pair->own, promotion->own_id, err);
}

static bool calm(const struct container *container, struct error *err)
{
    return !container->migration ||
           error_set(err, ERROR_BUSY, "a migration of container \"%.*s\" is under way: a %s",
                     SLICE_ARG(container->state.info.id),
                     migration_kind_name(migration_kind(container->migration)));
}

/* promotion NULL: it is taken out. */
static void list_set(struct promotion_list *list, const struct promotion *same,
                     const struct promotion *promotion)
{
    size_t i = 0;

    while (i < list->count && !promotion_same(list->list[i], same))
        i++;
    if (i < list->count)
        promotion_unref(list->list[i]);
    else if (promotion)
        list->count++;
    else
        return;
    if (promotion)
        list->list[i] = promotion_new(promotion);
    else
        list->list[i] = list->list[--list->count];
}

/* Takes the map over, which has the shares of now. */
static void map_set(struct container *container, struct partition_map *map)
{
    partition_map_unref(container->map);
    container->map = map;
    container_shares_unref(TAKE(container->shares));
}

static bool pair_commit(struct pair *pair, const struct promotion *same, struct promotion *next,
                        struct error *err)
{
    struct container *both[] = {pair->origin, pair->own};

    if (next)
        next->since_ms = clock_read_wall_ms(&clock_system);
    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        if (!both[i])
            continue;
        list_set(&both[i]->promotions, same, next);
        catalogue_change_put_record(
            &pair->change, container_address(both[i]),
            catalogue_record_container_write(both[i], true, pair->change.arena));
    }
    if (!catalogue_change_commit(&pair->change, err))
        return false;
    if (pair->origin)
        catalogue_change_publish_pair(&pair->change, container_ref(pair->origin),
                                      pair->own ? container_ref(pair->own) : NULL);
    else
        catalogue_change_publish_pair(&pair->change, container_ref(pair->own), NULL);
    return true;
}

/* --- Maps ------------------------------------------------------------------------------------ */

static const struct partition_span *only_span(const struct container *container)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container->map, &count);

    return count == 1 ? spans : NULL;
}

/* The span that holds the range and nothing else; NULL: there is none. */
static const struct partition_span *span_of(const struct partition_map *map,
                                            const struct partition_range *range)
{
    size_t count;
    const struct partition_span *span = partition_map_overlap(map, *range, &count);

    return count == 1 && slice_equal(span->min, range->min) && slice_equal(span->max, range->max)
               ? span
               : NULL;
}

/* The others divide what is left in the proportions they had. */
static void share_set(struct partition_span *spans, size_t count, size_t at, double share)
{
    double rest = 1 - spans[at].share;

    if (count == 1)
        return;
    for (size_t i = 0; i < count; i++)
        if (i != at)
            spans[i].share =
                rest > 0 ? spans[i].share / rest * (1 - share) : (1 - share) / (double)(count - 1);
    spans[at].share = share;
}

/* Clients that know the one before it find out by its name among the parents. Whoever is listed is
 * nobody's parent: they would leave it out. */
static void parents_join(struct partition_span *span, const struct partition_span *before,
                         struct arena *arena)
{
    uint32_t *parents = ARENA_ARRAY(arena, uint32_t, span->parent_count + before->parent_count + 1);
    size_t count = 0;

    for (size_t i = 0; i < before->parent_count; i++)
        if (before->parents[i] != span->id)
            parents[count++] = before->parents[i];
    parents[count++] = before->id;
    span->parent_count = MIN(count, (size_t)PARENTS_MAX);
    span->parents = parents + (count - span->parent_count);
}

/* The container's map with another partition in the place of a span of it, or the same with another
 * share. */
static bool map_with(const struct container *container, const struct partition_span *before,
                     const struct partition_span *placed, double share, struct arena *arena,
                     struct partition_map **ret_map, struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container->map, &count);
    struct partition_span *copies = ARENA_ARRAY(arena, struct partition_span, count);
    size_t at = (size_t)(before - spans);

    for (size_t i = 0; i < count; i++) {
        copies[i] = spans[i];
        copies[i].share = container_share(container, &spans[i]);
    }
    if (placed->id != before->id) {
        copies[at].id = placed->id;
        copies[at].node = placed->node;
        copies[at].epoch = placed->epoch;
        parents_join(&copies[at], before, arena);
    }
    share_set(copies, count, at, share);
    return partition_map_next(container->map, copies, count,
                              partition_map_version(container->map) + 1, ret_map, err);
}

static double even_share(const struct container *container)
{
    size_t count;

    (void)partition_map_spans(container->map, &count);
    return 1 / (double)count;
}

static bool numbering_of(const struct catalogue *catalogue, const struct partition_span *span,
                         struct commit_numbering *ret_numbering, struct error *err)
{
    const struct cluster_node *node = cluster_find(catalogue->cluster, span->node);

    return node ? commit_partition_numbering(node->commit, span->id, ret_numbering, err)
                : error_set(err, ERROR_CONFIGURATION, "node %u is not here", span->node);
}

/* The batch that makes the numbering durable has the LSN that the other's last had: positions of
 * feeds and session tokens go on. */
static bool numbering_set(const struct cluster_node *node, const struct partition_span *span,
                          const struct commit_numbering *numbering, struct error *err)
{
    static const uint8_t key[] = {PARTITION_FAMILY_COUNTER, 't'};
    uint8_t zeros[COUNTER_BYTES];
    struct counter counter = {0};
    struct engine_op op = {ENGINE_PUT, slice_of(key, sizeof key), slice_of(zeros, sizeof zeros)};
    struct commit_numbering before = {.lsn = numbering->lsn - 1, .wall_ms = numbering->wall_ms};
    struct commit_part part = {.partition = span->id,
                               .epoch = span->epoch,
                               .numbering = &before,
                               .ops = &op,
                               .op_count = 1};
    struct commit_batch batch = {
        .parts = &part, .part_count = 1, .moment = COMMIT_NOTHING_RELIED_ON};

    counter_encode(&counter, zeros);
    return !numbering->lsn || commit_run(node->commit, &batch, err);
}

/* An empty partition beside another, which nobody knows yet. */
static bool place_make(struct catalogue *catalogue, const struct partition_span *beside,
                       struct partition_span *ret_span, struct error *err)
{
    struct partition_span span = *beside;
    struct commit_numbering numbering;

    span.epoch = FIRST_EPOCH;
    if (!numbering_of(catalogue, beside, &numbering, err) ||
        !catalogue_partition_ids_take(&catalogue->head, 1, &span.id, err) ||
        !catalogue_partitions_make_spans(catalogue, &span, 1, err))
        return false;
    if (!numbering_set(cluster_find(catalogue->cluster, span.node), &span, &numbering, err)) {
        catalogue_partitions_unmake_spans(catalogue, &span, 1);
        return false;
    }
    *ret_span = span;
    return true;
}

/* --- Are they fit? --------------------------------------------------------------------------- */

static bool kind_check(const struct container *origin, struct error *err)
{
    const struct partition_definition *key = &definition_fields(origin->definition)->key;
    const char *what = container_is_fixed(origin)                 ? "containers without a key"
                       : key->strategy != PARTITION_STRATEGY_HASH ? "keys that are not hashed"
                       : key->synthetic                           ? "synthetic keys"
                       : key->formerly ? "containers in the grace period of a re-key"
                                       : NULL;

    return !what || error_set(err, ERROR_PROMOTION_UNFIT, "a promotion does not take %s", what);
}

static bool unfit(struct error *err, const struct container *container, const char *what)
{
    return error_set(err, ERROR_PROMOTION_UNFIT, "container \"%.*s\" %s",
                     SLICE_ARG(container->state.info.id), what);
}

static bool alike(const struct container *origin, const struct container *own, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice name;

    if (!definitions_alike(origin->definition, own->definition, arena, &name))
        return error_set(err, ERROR_PROMOTION_UNFIT,
                         "containers \"%.*s\" and \"%.*s\" differ in their property \"%.*s\"",
                         SLICE_ARG(origin->state.info.id), SLICE_ARG(own->state.info.id),
                         SLICE_ARG(name));
    if (origin->before_count || own->before_count)
        return unfit(err, origin->before_count ? origin : own,
                     "is being indexed anew: wait until that is done");
    return true;
}

/* What is written through one is in the views of the other: both note it, or none does. */
static bool followed_alike(const struct container *origin, const struct container *own,
                           struct error *err)
{
    return definition_fields(origin->definition)->followed ==
               definition_fields(own->definition)->followed ||
           error_set(err, ERROR_BUSY,
                     "views of container \"%.*s\" or \"%.*s\" come or go: try again",
                     SLICE_ARG(origin->state.info.id), SLICE_ARG(own->state.info.id));
}

/* The committer knows of a partition by which version it was written last, whoever writes next. */
static void writers_join(struct container *origin, struct container *own)
{
    origin->writers = own->writers = MAX(origin->writers, own->writers);
}

/* Was anything ever written? Every change leaves a record in the feed, or the mark that says that
 * records were removed. */
static bool is_unused(const struct container *container, bool *ret_unused, struct error *err)
{
    static const uint8_t min[] = {PARTITION_FAMILY_FEED}, max[] = {PARTITION_FAMILY_FEED + 1};
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    const struct partition_span *span = only_span(container);
    struct engine_range range = {slice_of(min, sizeof min), slice_of(max, sizeof max)};
    struct engine_entry entry;

    *ret_unused = false;
    if (!span)
        return true;
    if (!engine_iterator_new(container_engine(container, span->node), NULL, span->id, range, false,
                             ENGINE_READ_ANY, &iterator, err) ||
        !engine_iterator_next(iterator, &entry, err))
        return false;
    *ret_unused = entry.found != ENGINE_FOUND;
    return true;
}

static bool own_check(const struct container *origin, const struct container *own,
                      struct error *err)
{
    bool unused;

    if (own->database != origin->database || own->state.info.number == origin->state.info.number)
        return error_set(err, ERROR_PROMOTION_UNFIT,
                         "a key is promoted to another container of its database");
    if (!alike(origin, own, err))
        return false;
    if (!only_span(own))
        return unfit(err, own,
                     "has more than one physical partition: buy less throughput for it "
                     "until the grace period is over, or merge them");
    if (!is_unused(own, &unused, err))
        return false;
    return unused || unfit(err, own,
                           "was used: a key is promoted to a container of which nothing "
                           "was ever written");
}

/* Bytes of keys come in order, so ranges that do not lie within one another are apart. */
static bool ranges_meet(const struct partition_range *a, const struct partition_range *b)
{
    return slice_compare(a->min, b->max) < 0 && slice_compare(b->min, a->max) < 0;
}

/* *ret_known: the tie there is already, on its way back or behind it; NULL: none. */
static bool ties_check(const struct container *origin, const struct container *own,
                       const struct partition_range *range, const struct promotion **ret_known,
                       struct error *err)
{
    uint32_t number = own ? own->state.info.number : 0;

    *ret_known = NULL;
    for (size_t i = 0; i < origin->promotions.count; i++) {
        const struct promotion *promotion = origin->promotions.list[i];

        if (promotion->own == origin->state.info.number)
            return bound(promotion, err, "the container is another key's: nothing is promoted");
        if (!ranges_meet(&promotion->range, range))
            continue;
        if (promotion->state != PROMOTION_BACK || promotion->own != number ||
            !slice_equal(promotion->range.min, range->min) ||
            !slice_equal(promotion->range.max, range->max))
            return bound(promotion, err, "the key cannot be promoted");
        *ret_known = promotion;
    }
    for (size_t i = 0; own && i < own->promotions.count; i++)
        if (own->promotions.list[i]->origin == number || !*ret_known ||
            !promotion_same(own->promotions.list[i], *ret_known))
            return bound(own->promotions.list[i], err, "nothing else is promoted to the container");
    return *ret_known || origin->promotions.count < PROMOTIONS_MAX ||
           error_set(err, ERROR_LIMIT_REACHED, "a container has at most %d promotions",
                     PROMOTIONS_MAX);
}

static bool range_check(const struct partition_key *key, const struct partition_range *range,
                        struct error *err)
{
    return (key->count && !slice_equal(range->min, PARTITION_ROUTING_MIN)) ||
           error_set(err, ERROR_BAD_REQUEST, "a promotion needs a partition key value");
}

static bool begin_check(const struct container *origin, const struct container *own,
                        const struct partition_key *key, const struct partition_range *range,
                        const struct promotion **ret_known, struct error *err)
{
    if (!kind_check(origin, err) || !range_check(key, range, err) ||
        !catalogue_views_let_promote(origin, err) ||
        (own && !catalogue_views_let_promote(own, err)) ||
        !catalogue_resident_lets_promote(origin, err) ||
        (own && !catalogue_resident_lets_promote(own, err)) ||
        !catalogue_placed_lets_promote(origin, err) ||
        !catalogue_spread_lets_promote(origin, err) ||
        (own && !catalogue_spread_lets_promote(own, err)) ||
        (own && !catalogue_placed_lets_promote(own, err)) ||
        !ties_check(origin, own, range, ret_known, err))
        return false;
    if (*ret_known && (*ret_known)->grace)
        return true;
    if (origin->before_count)
        return unfit(err, origin, "is being indexed anew: wait until that is done");
    return !own || (own_check(origin, own, err) && calm(own, err));
}

bool catalogue_promotion_check(struct catalogue *catalogue, const struct container *origin,
                               const struct container *own, const struct partition_key *key,
                               struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    struct partition_range range;
    const struct promotion *known;

    if (!catalogue_change_begin(catalogue, &change, err))
        return false;
    range = partition_route_range(&definition_fields(origin->definition)->key, key, change.arena);
    return begin_check(origin, own, key, &range, &known, err);
}

/* --- Beginning ------------------------------------------------------------------------------- */

/* The other one is home; both serve the key as before. */
static bool turn(struct pair *pair, struct error *err)
{
    const struct promotion *now = pair->promotion;
    const struct partition_span *span;
    struct promotion next = *now;
    struct partition_map *map;
    double share;

    if (!both_there(pair, now, err) || !calm(pair->origin, err))
        return false;
    span = partition_map_find_id(pair->origin_before->map, now->partition);
    assert(span);
    next.state = now->state == PROMOTION_OUT ? PROMOTION_BACK : PROMOTION_OUT;
    share = next.state == PROMOTION_OUT ? 0 : even_share(pair->origin);
    if (!map_with(pair->origin_before, span, span, share, pair->change.arena, &map, err))
        return false;
    map_set(pair->origin, map);
    catalogue_stale_add(pair->change.catalogue, pair->origin_before, span, false);
    return pair_commit(pair, now, &next, err);
}

/* Whoever writes by a state from before holds its map: another one tells them apart. */
static bool prepare(struct pair *pair, const struct partition_key *key,
                    const struct partition_range *range, struct error *err)
{
    CLEANUP(buf_done) struct buf json;
    const struct partition_span *span = only_span(pair->own);
    struct promotion next = {.origin = pair->origin->state.info.number,
                             .own = pair->own->state.info.number,
                             .state = PROMOTION_PREPARING,
                             .grace = true,
                             .origin_shown = pair->promotion ? pair->promotion->origin_shown : 0,
                             .own_shown = pair->promotion ? pair->promotion->own_shown : 0,
                             .origin_id = pair->origin->state.info.id,
                             .own_id = pair->own->state.info.id,
                             .range = *range};
    struct partition_map *map;

    buf_init(&json, BUF_DEFAULT_MAX);
    partition_key_json(&definition_fields(pair->origin->definition)->key, key, &json);
    next.key = buf_slice(&json);
    if (!map_with(pair->own, span, span, 1, pair->change.arena, &map, err))
        return false;
    map_set(pair->own, map);
    catalogue_stale_add(pair->change.catalogue, pair->own_before, only_span(pair->own_before),
                        false);
    return pair_commit(pair, &next, &next, err);
}

static bool begin(struct catalogue *catalogue, const struct container *origin,
                  const struct container *own, const struct partition_key *key,
                  struct promotion **ret_promotion, struct error *err)
{
    CLEANUP(pair_end) struct pair pair;
    struct partition_range range;
    struct promotion wanted;

    if (!pair_open(catalogue, origin, origin->state.info.number, own->state.info.number, &pair,
                   err) ||
        !is_there(pair.origin, origin->state.info.id, err) ||
        !is_there(pair.own, own->state.info.id, err))
        return false;
    range = partition_route_range(&definition_fields(pair.origin->definition)->key, key,
                                  pair.change.arena);
    if (!begin_check(pair.origin_before, pair.own_before, key, &range, &pair.promotion, err) ||
        !followed_alike(pair.origin, pair.own, err))
        return false;
    wanted = (struct promotion){.origin = pair.origin->state.info.number,
                                .own = pair.own->state.info.number,
                                .range = range};
    if (pair.promotion && pair.promotion->grace ? !turn(&pair, err)
                                                : !prepare(&pair, key, &range, err))
        return false;
    *ret_promotion = promotion_ref(list_find(&pair.origin->promotions, &wanted));
    return true;
}

/* A container that is followed for the other's sake may be released before the two are tied. */
bool catalogue_promotion_begin(struct catalogue *catalogue, const struct container *origin,
                               const struct container *own, const struct partition_key *key,
                               struct promotion **ret_promotion, struct error *err)
{
    if (!catalogue_promotion_check(catalogue, origin, own, key, err))
        return false;
    for (int i = 0; i < JOIN_TRIES; i++) {
        if (!catalogue_views_join(catalogue, origin, own, err))
            return false;
        if (begin(catalogue, origin, own, key, ret_promotion, err))
            return true;
        if (err->code != ERROR_BUSY)
            return false;
    }
    return false;
}

/* --- Sharing --------------------------------------------------------------------------------- */

bool catalogue_promotion_is_isolated(const struct promotion *promotion,
                                     const struct container *origin)
{
    return span_of(origin->map, &promotion->range);
}

/* Positions and tokens of the empty partition must not be ahead of the one that takes its place. */
static bool numbers_check(const struct pair *pair, const struct partition_span *span,
                          struct error *err)
{
    struct commit_numbering here, there;

    if (!numbering_of(pair->change.catalogue, span, &here, err) ||
        !numbering_of(pair->change.catalogue, only_span(pair->own), &there, err))
        return false;
    return here.lsn >= there.lsn ||
           unfit(err, pair->own, "was another key's, whose feed is further: take a new one");
}

static bool share_check(const struct pair *pair, const struct partition_span **ret_span,
                        struct error *err)
{
    const struct promotion *now = pair->promotion;

    if (!both_there(pair, now, err))
        return false;
    if (now->state != PROMOTION_PREPARING)
        return error_set(err, ERROR_BAD_REQUEST, "the key is promoted already");
    *ret_span = span_of(pair->origin->map, &now->range);
    if (!calm(pair->origin, err) || !calm(pair->own, err))
        return false;
    if (!*ret_span)
        return error_set(err, ERROR_BUSY, "the key has no physical partition for itself yet");
    return own_check(pair->origin, pair->own, err) &&
           followed_alike(pair->origin, pair->own, err) && numbers_check(pair, *ret_span, err) &&
           catalogue_stale_check(pair->change.catalogue, only_span(pair->own)->id, err);
}

bool catalogue_promotion_share(struct catalogue *catalogue, const struct container *tied,
                               const struct promotion *promotion, struct error *err)
{
    CLEANUP(pair_end) struct pair pair;
    CLEANUP(partition_map_unref) struct partition_map *map = NULL;
    const struct partition_span *span, *empty;
    struct partition_map *own_map;
    struct promotion next;

    if (!pair_of(catalogue, tied, promotion, &pair, err) || !share_check(&pair, &span, err))
        return false;
    empty = only_span(pair.own_before);
    if (!map_with(pair.origin, span, span, 0, pair.change.arena, &map, err) ||
        !map_with(pair.own, only_span(pair.own), span, 1, pair.change.arena, &own_map, err))
        return false;
    next = *pair.promotion;
    next.state = PROMOTION_OUT;
    next.grace = true;
    next.partition = span->id;
    next.own_shown = ++pair.own->shown;
    map_set(pair.origin, TAKE(map));
    map_set(pair.own, own_map);
    pair.own->policy_version = pair.origin->policy_version;
    writers_join(pair.origin, pair.own);
    span = partition_map_find_id(pair.origin_before->map, next.partition);
    catalogue_stale_add(catalogue, pair.origin_before, span, false);
    if (!pair_commit(&pair, pair.promotion, &next, err))
        return false;
    catalogue_stale_add(catalogue, pair.own_before, empty, true);
    return true;
}

/* --- Ending the grace period ----------------------------------------------------------------- */

bool catalogue_promotion_end(struct catalogue *catalogue, const struct container *tied,
                             const struct promotion *promotion, struct error *err)
{
    CLEANUP(pair_end) struct pair pair;
    struct container *closed, *closed_before;
    const struct partition_span *span;
    struct partition_span place;
    struct partition_map *map;
    struct promotion next;

    if (!pair_of(catalogue, tied, promotion, &pair, err))
        return false;
    if (!promotion_shares(pair.promotion))
        return error_set(err, ERROR_BAD_REQUEST, "there is no grace period to be ended");
    if (!both_there(&pair, promotion, err))
        return false;
    next = *pair.promotion;
    next.grace = false;
    closed = next.state == PROMOTION_OUT ? pair.origin : pair.own;
    *(next.state == PROMOTION_OUT ? &next.origin_shown : &next.own_shown) = ++closed->shown;
    closed_before = next.state == PROMOTION_OUT ? pair.origin_before : pair.own_before;
    span = partition_map_find_id(closed_before->map, next.partition);
    assert(span);
    if (!calm(closed, err) || !place_make(catalogue, span, &place, err))
        return false;
    if (!map_with(closed_before, span, &place, container_share(closed_before, span),
                  pair.change.arena, &map, err)) {
        catalogue_partitions_unmake_spans(catalogue, &place, 1);
        return false;
    }
    map_set(closed, map);
    catalogue_stale_add(catalogue, closed_before, span, false);
    if (!pair_commit(&pair, pair.promotion, &next, err)) {
        /* If the outcome is not known, loading again tells whose it is. */
        if (!catalogue->in_doubt)
            catalogue_partitions_unmake_spans(catalogue, &place, 1);
        return false;
    }
    return true;
}

/* --- The way back ---------------------------------------------------------------------------- */

/* Items are of the version they were written by. Where the containers have counted differently
 * since they parted, the lower numbers are taken for policies before: they say the same, and the
 * caretaker writes the present number into the items. */
static bool versions_join(struct container *origin, const struct container *own, struct error *err)
{
    uint32_t high = MAX(origin->policy_version, own->policy_version);
    uint32_t low = MIN(origin->policy_version, own->policy_version);

    if (high - low > CONTAINER_POLICIES_ASKED_MAX)
        return error_set(err, ERROR_PROMOTION_UNFIT,
                         "the index policies of the two containers were changed too often since "
                         "they parted: %u and %u times",
                         origin->policy_version - 1, own->policy_version - 1);
    origin->policy_version = high;
    for (uint32_t version = low; version < high; version++)
        origin->before[origin->before_count++] = definition_ref(origin->definition);
    return true;
}

static bool return_check(const struct pair *pair, const struct partition_span **ret_place,
                         struct error *err)
{
    const struct promotion *now = pair->promotion;

    if (!both_there(pair, now, err) || !calm(pair->origin, err) || !calm(pair->own, err) ||
        !alike(pair->origin, pair->own, err) || !followed_alike(pair->origin, pair->own, err))
        return false;
    if (!only_span(pair->own))
        return unfit(err, pair->own, "has more than one physical partition: merge them first");
    *ret_place = span_of(pair->origin->map, &now->range);
    assert(*ret_place); /* its place stays as it is */
    return true;
}

static bool come_back(struct pair *pair, struct error *err)
{
    struct catalogue *catalogue = pair->change.catalogue;
    const struct partition_span *place, *span = NULL;
    struct promotion next = *pair->promotion;
    struct partition_map *map;

    if (!return_check(pair, &place, err))
        return false;
    place = span_of(pair->origin_before->map, &next.range);
    span = only_span(pair->own);
    if (!map_with(pair->origin_before, place, span, even_share(pair->origin), pair->change.arena,
                  &map, err))
        return false;
    map_set(pair->origin, map);
    if (!versions_join(pair->origin, pair->own, err))
        return false;
    pair->own->policy_version = pair->origin->policy_version;
    writers_join(pair->origin, pair->own);
    for (uint32_t i = 0; i < pair->origin->before_count; i++)
        pair->own->before[pair->own->before_count++] = definition_ref(pair->own->definition);
    next.state = PROMOTION_BACK;
    next.grace = true;
    next.partition = span->id;
    next.origin_shown = ++pair->origin->shown;
    if (!pair_commit(pair, pair->promotion, &next, err))
        return false;
    catalogue_stale_add(catalogue, pair->origin_before, place, true);
    return true;
}

bool catalogue_promotion_back(struct catalogue *catalogue, const struct container *tied,
                              const struct promotion *promotion, struct error *err)
{
    CLEANUP(pair_end) struct pair pair;

    if (!pair_of(catalogue, tied, promotion, &pair, err))
        return false;
    if (pair.promotion->state != PROMOTION_OUT)
        return error_set(err, ERROR_BAD_REQUEST, "the key is not promoted");
    return pair.promotion->grace ? turn(&pair, err) : come_back(&pair, err);
}

/* --- Forgetting ------------------------------------------------------------------------------ */

/* Who follows what they show cannot ask for the tie any more. */
static void untie(struct container *container, const struct promotion *promotion)
{
    if (container && promotion->state != PROMOTION_PREPARING)
        container->untied = ++container->shown;
}

/* Promises that were made through the container that gave the key up are found by the tie when they
 * are applied (item/agreements_settle.c), so they are settled before it goes. */
static bool promises_check(const struct pair *pair, struct error *err)
{
    uint32_t partition = pair->promotion->partition;
    const struct container *home = promotion_home(pair->promotion) == pair->promotion->own
                                       ? pair->own_before
                                       : pair->origin_before;
    const struct partition_span *span =
        home && partition ? partition_map_find_id(home->map, partition) : NULL;

    /* split, merged or moved since: that was after they were settled */
    return !span ||
           pledges_leave(commit_pledges(container_commit(home, span->node)), partition, 0) ||
           error_set(err, ERROR_PLEDGED,
                     "transactions over several nodes that write to the key are not settled yet");
}

bool catalogue_promotion_forget(struct catalogue *catalogue, const struct container *tied,
                                const struct promotion *promotion, struct error *err)
{
    CLEANUP(pair_end) struct pair pair;
    const struct partition_span *place;
    struct partition_map *map;

    if (!pair_of(catalogue, tied, promotion, &pair, err))
        return false;
    if (promotion_shares(pair.promotion))
        return bound(pair.promotion, err, "the promotion cannot be forgotten");
    if (pair.promotion->partition &&
        (!catalogue_stale_check(catalogue, pair.promotion->partition, err) ||
         !promises_check(&pair, err)))
        return false;
    if (pair.origin && pair.promotion->state == PROMOTION_OUT) {
        place = span_of(pair.origin_before->map, &pair.promotion->range);
        assert(place);
        if (!calm(pair.origin, err) ||
            !map_with(pair.origin_before, place, place, even_share(pair.origin), pair.change.arena,
                      &map, err))
            return false;
        map_set(pair.origin, map);
    }
    untie(pair.origin, pair.promotion);
    untie(pair.own, pair.promotion);
    return pair_commit(&pair, pair.promotion, NULL, err);
}

/* --- Looking --------------------------------------------------------------------------------- */

const struct promotion *container_promotion(const struct container *container,
                                            const struct partition_range *range)
{
    for (size_t i = 0; i < container->promotions.count; i++) {
        const struct promotion *promotion = container->promotions.list[i];

        if (slice_equal(promotion->range.min, range->min) &&
            slice_equal(promotion->range.max, range->max))
            return promotion;
    }
    return NULL;
}

bool catalogue_promotion_other(struct catalogue *catalogue, const struct container *container,
                               const struct promotion *promotion, struct container **ret_other,
                               struct error *err)
{
    CLEANUP(catalogue_look_end) struct catalogue_look look = catalogue_look_begin(catalogue);
    bool is_origin = promotion->origin == container->state.info.number;
    struct container *other =
        catalogue_find_container_number(look.root, container->account, container->database,
                                        is_origin ? promotion->own : promotion->origin);

    if (!is_there(other, is_origin ? promotion->own_id : promotion->origin_id, err))
        return false;
    *ret_other = container_ref(other);
    return true;
}
