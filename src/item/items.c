#include "item/items.h"

#include "base/bytes.h"
#include "item/reading.h"
#include "partition/layout.h"
#include "partition/strategy.h"

enum { ROUTE_BYTES_USUAL = 256 }; /* so that most routes are made with one allocation */

/* --- Finding the place ----------------------------------------------------------------------- */

struct engine *item_space_engine(const struct item_space *space, const struct partition_span *span)
{
    struct engine *engine = space->engine(space->nodes, span->node);

    return space->reading ? item_reading_engine(space->reading, engine) : engine;
}

struct item_scope item_space_span_scope(const struct item_space *space,
                                        const struct partition_span *span)
{
    return (struct item_scope){
        .engine = item_space_engine(space, span),
        .commit = space->commit(space->nodes, span->node),
        .partition = span->id,
        .node = span->node,
        .epoch = span->epoch,
        .definition = space->definition,
        .policy = space->definition->policy,
        .policy_version = space->policy_version,
        .writers = space->writers,
        .policies_before = space->policies_before,
        .policies_before_count = space->policies_before_count,
        .logical_bytes_max = space->logical_bytes_max,
        .spread_bytes_max = space->spread_bytes_max,
        .partition_bytes_max = space->partition_bytes_max,
        .item_bytes_max = space->item_bytes_max,
        .clock = space->clock,
        .map = space->map,
        .is_current = space->is_current,
        .nodes = space->nodes,
        .promotions = space->promotions,
        .holds = space->holds,
        .history = space->history,
        .read_only = space->read_only,
    };
}

bool item_space_admits(const struct item_space *space, struct slice logical, struct error *err)
{
    if (space->promotions && !promotion_list_admits(space->promotions, logical, err))
        return false;
    return !space->holds || !atomic_load_explicit(&space->holds->count, memory_order_relaxed) ||
           item_holds_admit(
               space->holds,
               &(struct item_hold_question){.nodes = space->nodes,
                                            .node = partition_map_find(space->map, logical)->node,
                                            .min = logical},
               err);
}

bool item_space_admits_range(const struct item_space *space, const struct partition_span *span,
                             struct partition_range range, struct error *err)
{
    struct item_hold_question question = {
        .nodes = space->nodes, .node = span->node, .min = range.min, .max = range.max};

    if (slice_compare(question.min, span->min) < 0)
        question.min = span->min;
    if (slice_compare(question.max, span->max) > 0)
        question.max = span->max;
    return item_holds_admit(space->holds, &question, err);
}

struct item_scope item_space_scope(const struct item_space *space, struct slice logical)
{
    return item_space_span_scope(space, partition_map_find(space->map, logical));
}

struct item_route item_space_route(const struct item_space *space, const struct partition_key *key,
                                   const struct document_value *id, struct arena *arena)
{
    const struct partition_definition *definition = &space->definition->key;
    struct item_route route = {.space = space, .logical = PARTITION_ROUTING_MIN};
    size_t routed_len, logical_len;
    CLEANUP(buf_done) struct buf bytes;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    if (key->former_only || key->count != definition->path_count) {
        route.span = partition_map_find(space->map, route.logical);
        return route;
    }
    buf_reserve(&bytes, ROUTE_BYTES_USUAL);
    buf_append_byte(&bytes, PARTITION_FAMILY_ITEM);
    partition_route(definition, key, &bytes);
    routed_len = bytes.len;
    partition_key_append(key, &bytes);
    logical_len = bytes.len;
    if (id)
        item_id_append(definition_names_of(space->definition), id, &bytes);
    route.stored = arena_copy(arena, buf_slice(&bytes));
    route.key = slice_skip(route.stored, 1);
    route.logical = slice_of(route.key.data, logical_len - 1);
    route.pk = slice_of(route.stored.data + routed_len, logical_len - routed_len);
    /* A stored key lies between the same bounds as its routing key alone, unless those are within
     * the key (PARTITION_CUT_SPREAD); without an id it leads to the first part. */
    route.span = partition_map_find(space->map, route.key);
    return route;
}

bool item_space_is_overtaken(const struct error *err)
{
    return err->code == ERROR_FENCED || err->code == ERROR_PARTITION_UNKNOWN;
}

static bool rekeyed_check(const struct item_space *space, struct error *err)
{
    return !space->rekeyed ||
           error_set(err, ERROR_REKEYED, "the container was given another partition key meanwhile");
}

bool item_space_renew(struct item_space *space, struct error *err)
{
    return space->renew && space->renew(space, err) && rekeyed_check(space, err);
}

void item_space_release(struct item_space *space)
{
    if (space->release)
        space->release(space);
}

bool item_space_try_again(struct item_space *space, struct error *err)
{
    if (item_space_is_overtaken(err))
        return item_space_renew(space, err);
    return err->code == ERROR_CONFLICT || err->code == ERROR_SNAPSHOT_TOO_OLD;
}

/* --- Reading --------------------------------------------------------------------------------- */

static bool missing(struct error *err)
{
    return error_set(err, ERROR_ITEM_MISSING,
                     "entity with the specified id does not exist in the system");
}

bool items_read_number(const struct item_space *space, uint64_t number, struct arena *arena,
                       struct item *ret_item, struct error *err)
{
    uint8_t key[9] = {PARTITION_FAMILY_NUMBER};
    size_t count;
    const struct partition_span *spans = partition_map_spans(space->map, &count);

    bytes_put_be64(key + 1, number);
    for (size_t i = 0; i < count; i++) {
        struct item_scope scope = item_space_span_scope(space, &spans[i]);
        struct engine_value value;
        struct item item;

        if (!item_scope_get(&scope, slice_of(key, sizeof key), ENGINE_READ_ANY, arena, &value, err))
            return false;
        if (value.found != ENGINE_FOUND)
            continue;
        if (!item_scan_fetch(&scope, NULL, &value.bytes, 1, arena, &item, err))
            return false;
        if (!item.document.data || item.header.number != number)
            break;
        *ret_item = item;
        return true;
    }
    return missing(err);
}

/* A reference on its way to its partition. */
struct wanted {
    struct slice key;
    const struct partition_span *span;
    size_t place; /* in the caller's order */
};

static int wanted_compare(const void *left, const void *right)
{
    const struct wanted *a = left, *b = right;

    if (a->span != b->span)
        return a->span < b->span ? -1 : 1;
    return slice_compare(a->key, b->key);
}

static bool wanted_fetch(const struct item_space *space, struct engine_snapshot *snapshot,
                         const struct wanted *wanted, size_t count, struct arena *arena,
                         struct item *ret_items, struct error *err)
{
    struct item_scope scope = item_space_span_scope(space, wanted->span);
    struct slice *keys = ARENA_ARRAY(arena, struct slice, count);
    struct item *items = ARENA_ARRAY(arena, struct item, count);

    for (size_t i = 0; i < count; i++)
        keys[i] = wanted[i].key;
    if (!item_scan_fetch(&scope, snapshot, keys, count, arena, items, err))
        return false;
    for (size_t i = 0; i < count; i++)
        ret_items[wanted[i].place] = items[i];
    return true;
}

/* Of a container with a spread key: the parts of it, which are on one node, are of one moment. */
static bool wanted_snapshot(const struct item_space *space, const struct wanted *first,
                            const struct wanted *wanted, size_t count,
                            struct engine_snapshot **snapshot, struct error *err)
{
    struct item_scope scope = item_space_span_scope(space, first->span);
    uint64_t partitions = 0;

    if (*snapshot && first[-1].span->node == first->span->node)
        return true;
    engine_snapshot_free(TAKE(*snapshot));
    for (size_t i = 0; i < count; i++)
        if (wanted[i].span->node == first->span->node)
            partitions |= pledge_bit(wanted[i].span->id);
    return item_scope_snapshot_of(&scope, partitions, snapshot, err);
}

bool items_read_many(const struct item_space *space, const struct items_reference *references,
                     size_t count, struct arena *arena, struct item *ret_items, struct error *err)
{
    CLEANUP(engine_snapshot_free) struct engine_snapshot *snapshot = NULL;
    struct wanted *wanted = ARENA_ARRAY(arena, struct wanted, count);

    for (size_t i = 0; i < count; i++) {
        struct slice logical = item_logical(&space->definition->key, &references[i].key, arena);

        if (!item_space_admits(space, logical, err))
            return false;
        wanted[i] = (struct wanted){.key = item_key(definition_names_of(space->definition), logical,
                                                    &references[i].id, arena),
                                    .place = i};
        wanted[i].span = partition_map_find(space->map, wanted[i].key);
    }
    qsort(wanted, count, sizeof *wanted, wanted_compare);
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && wanted[end].span == wanted[begin].span;)
            end++;
        if (partition_map_is_spread(space->map) &&
            !wanted_snapshot(space, &wanted[begin], wanted, count, &snapshot, err))
            return false;
        if (!wanted_fetch(space, snapshot, &wanted[begin], end - begin, arena, ret_items, err))
            return false;
    }
    return true;
}

/* --- Writing --------------------------------------------------------------------------------- */

/* Only what is written is held to the limits: what cannot be stored is simply not found. */
bool items_names_check(const struct item_space *space, const struct partition_key *key,
                       const struct document_value *id, struct error *err)
{
    if (space->key_limits.bytes_max &&
        !partition_key_check(&space->definition->key, key, &space->key_limits, err))
        return false;
    if (space->id_bytes_max && id->type == DOCUMENT_STRING && id->text.len > space->id_bytes_max)
        return error_set(err, ERROR_BAD_REQUEST, "an id of %zu bytes is over the limit of %zu",
                         id->text.len, space->id_bytes_max);
    return true;
}
