#include "property/moving.h"

#include "catalogue/container_space.h"
#include "catalogue/migration.h"
#include "catalogue/node.h"
#include "catalogue/placed.h"
#include "document/bson.h"
#include "engine/guard.h"
#include "item/expiry.h"
#include "item/feed_read.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/fault_engine.h"
#include "support/verify.h"

static unsigned below(struct moving *moving, unsigned limit)
{
    return (unsigned)random_below(&moving->random, limit);
}

static int64_t time_passes(void *context)
{
    return ((struct moving *)context)->now_ms += 5;
}

/* --- Starting and stopping ------------------------------------------------------------------- */

/* The guard opens a store anew after a write of unknown outcome. */
static bool guard_open(void *context, struct slice url, const struct engine_options *options UNUSED,
                       struct engine **ret_engine, struct error *err)
{
    struct moving *moving = context;
    size_t node = slice_equal(url, SLICE("node:1"));

    if (!moving->store->reopen(moving->store->context, node, ret_engine, err))
        return false;
    moving->engines[node] = *ret_engine;
    return true;
}

static struct engine *guard_new(struct moving *moving, size_t node)
{
    return engine_guard_new(&(struct engine_guard_options){
        .name = node ? "b" : "a",
        .url = node ? SLICE("node:1") : SLICE("node:0"),
        .inner = {.clock = &moving->clock},
        .probe_ms = 1,
        .hang_ms = 1000,
        .write_hang_ms = INT64_MAX / 2,
        .open = guard_open,
        .open_context = moving,
    });
}

/* Engines that live on stay behind the guards they have. */
static void guards_open(struct moving *moving)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = MEMORY_NEW(struct node_table);
    struct error err;

    for (size_t i = 0; i < MOVING_NODES && !moving->store->reopen; i++)
        if (!moving->guards[i]) {
            moving->engines[i] = moving->store->open(moving->store->context, i);
            moving->guards[i] = engine_guard_around(
                &(struct engine_guard_options){.name = i ? "b" : "a",
                                               .inner = {.clock = &moving->clock},
                                               .write_hang_ms = INT64_MAX / 2,
                                               .probe_ms = 1},
                moving->engines[i]);
        }
    for (size_t i = 0; i < MOVING_NODES && moving->store->reopen; i++) {
        moving->guards[i] = guard_new(moving, i);
        if (engine_guard_open(moving->guards[i], &err))
            continue;
        assert_int_equal(i, 1);
        assert_true(moving->away);
        assert_ok(catalogue_nodes_peek(moving->guards[0], table, &err), &err);
        engine_guard_expect(moving->guards[1], node_table_find(table, SLICE("b"))->id);
    }
    moving->away_at_start += moving->away;
}

static bool on_rejoin(void *context, struct error *err)
{
    struct moving *moving = context;

    return catalogue_node_rejoin(moving->catalogue, 1, err);
}

static struct engine *node_of(struct moving *moving, size_t node)
{
    return moving->guards[node] ? moving->guards[node] : moving->engines[node];
}

static void start(struct moving *moving)
{
    struct error err;

    if (moving->store->takes_away)
        guards_open(moving);
    for (size_t i = 0; i < MOVING_NODES && !moving->store->takes_away; i++)
        if (!moving->engines[i])
            moving->engines[i] = moving->store->open(moving->store->context, i);
    moving->cluster = cluster_new(NULL);
    for (size_t i = 0; i < MOVING_NODES; i++)
        assert_ok(cluster_add(moving->cluster, i ? "b" : "a", node_of(moving, i), &err), &err);
    assert_ok(catalogue_open(
                  &(struct catalogue_options){.cluster = moving->cluster, .purge_by_hand = true},
                  &moving->catalogue, &err),
              &err);
    for (size_t i = 0; i < MOVING_NODES && moving->guards[i]; i++)
        engine_guard_keep(moving->guards[i],
                          i ? &(struct engine_guard_hooks){on_rejoin, moving} : NULL, true);
    moving->migrator = migrator_new(&(struct migrator_options){
        .catalogue = moving->catalogue,
        .clock = &moving->clock,
        .chunk_bytes = 3000 + below(moving, 3000),
        .load_bytes = 3000 + below(moving, 20000),
        .round_keys = 20 + below(moving, 60),
        .lag_keys = 1 + below(moving, 200), /* beyond a round: several are left behind the fence */
        .pause_ms = 1,
        .splits_off = true,
        .by_hand = true,
    });
    moving->caretaker = caretaker_new(
        &(struct caretaker_options){.catalogue = moving->catalogue, .slice = 10, .by_hand = true});
}

static void stop(struct moving *moving)
{
    for (size_t i = 0; i < MOVING_NODES && moving->guards[i]; i++)
        engine_guard_leave(moving->guards[i]);
    caretaker_free(TAKE(moving->caretaker));
    migrator_free(TAKE(moving->migrator));
    catalogue_close(TAKE(moving->catalogue));
    cluster_free(TAKE(moving->cluster));
    for (size_t i = 0; i < MOVING_NODES && moving->store->reopens; i++) {
        if (moving->guards[i])
            engine_close(TAKE(moving->guards[i]));
        else
            engine_close(moving->engines[i]);
        moving->engines[i] = NULL;
    }
}

static struct container *opened(struct moving *moving)
{
    struct container *container;
    struct error err;

    assert_ok(catalogue_container_open(moving->catalogue, SLICE("default"), SLICE("d"), SLICE("c"),
                                       &container, &err),
              &err);
    return container;
}

static void position_add(struct moving *moving, struct slice min, struct slice max, uint64_t lsn)
{
    struct moving_position *position = &moving->positions[moving->position_count++];

    assert_true(moving->position_count < MOVING_RANGES_MAX);
    position->min = slice_of(slice_to_text(min), min.len);
    position->max = slice_of(slice_to_text(max), max.len);
    position->lsn = lsn;
}

static void container_make(struct moving *moving)
{
    CLEANUP(account_unref) struct account *account = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    CLEANUP(container_unref) struct container *container = NULL;
    struct offer_request request = {.given = true, .ru = 400};
    struct error err;

    assert_ok(catalogue_account_create(moving->catalogue, SLICE("default"),
                                       document_of(moving->arena, "{}"), &account, &err),
              &err);
    assert_ok(catalogue_database_create(moving->catalogue, SLICE("default"), SLICE("d"), NULL,
                                        &database, &err),
              &err);
    assert_ok(catalogue_container_create(moving->catalogue, SLICE("default"), SLICE("d"),
                                         document_of(moving->arena, moving->bodies[0]), &request,
                                         &container, &err),
              &err);
}

void moving_init(struct moving *moving, const struct moving_store *store, const char *const *bodies,
                 uint64_t seed)
{
    *moving = (struct moving){.store = store, .seed = seed, .arena = arena_new(), .bodies = bodies};
    random_seed(&moving->random, seed);
    moving->clock = (struct clock){
        .wall_ms = clock_system.wall_ms, .monotonic_ms = time_passes, .context = moving};
    moving->gates = item_gates_new();
    start(moving);
    container_make(moving);
    position_add(moving, PARTITION_ROUTING_MIN, PARTITION_ROUTING_MAX, 0);
}

static void positions_clear(struct moving_position *positions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        memory_free((void *)positions[i].min.data);
        memory_free((void *)positions[i].max.data);
    }
}

void moving_done(struct moving *moving)
{
    stop(moving);
    for (size_t i = 0; i < MOVING_NODES; i++)
        engine_close(node_of(moving, i));
    positions_clear(moving->positions, moving->position_count);
    item_gates_free(moving->gates);
    arena_free(moving->arena);
}

/* Is a source of a migration behind a fence? Writers would wait for the migrator, which only this
 * thread runs. */
static bool is_fenced(struct moving *moving)
{
    CLEANUP(container_unref) struct container *container = opened(moving);
    const struct migration_source *sources;
    size_t count;

    if (!container_migration(container) ||
        migration_state(container_migration(container)) != MIGRATION_MOVING)
        return false;
    sources = migration_sources(container_migration(container), &count);
    for (size_t i = 0; i < count; i++) {
        struct engine_partition *partitions;
        size_t partition_count;
        struct error err;

        if (!engine_partition_list(container_engine(container, sources[i].node), moving->arena,
                                   &partitions, &partition_count, &err)) {
            assert_int_equal(err.code, ERROR_NODE_DOWN);
            continue;
        }
        for (size_t j = 0; j < partition_count; j++)
            if (partitions[j].id == sources[i].id && partitions[j].epoch > sources[i].epoch)
                return true;
    }
    return false;
}

static bool is_moving(struct moving *moving)
{
    CLEANUP(container_unref) struct container *container = opened(moving);

    return container_migration(container) != NULL;
}

static void settle(struct moving *moving)
{
    struct error err;
    bool busy;

    for (int i = 0; i < 100000 && is_moving(moving); i++)
        assert_ok(migrator_round(moving->migrator, &busy, &err), &err);
    assert_false(is_moving(moving));
}

/* --- A node that fails ----------------------------------------------------------------------- */

static void node_leave(struct moving *moving)
{
    if (!moving->store->takes_away || moving->away)
        return;
    moving->store->takes_away(moving->store->context, moving->engines[1], true);
    moving->away = true;
    moving->failures++;
    if (below(moving, 2)) /* else the first call finds out */
        engine_guard_tend(moving->guards[1]);
}

/* Writers would wait at a fence that the failure has left behind. */
static void node_return(struct moving *moving)
{
    struct error err;

    if (!moving->away)
        return;
    engine_guard_tend(moving->guards[1]); /* it has been noticed by now */
    moving->store->takes_away(moving->store->context, moving->engines[1], false);
    moving->away = false;
    for (int i = 0; i < 10000 && !engine_serves(moving->guards[1], &err); i++)
        engine_guard_tend(moving->guards[1]);
    assert_ok(engine_serves(moving->guards[1], &err), &err);
    if (is_fenced(moving))
        settle(moving);
}

/* Nothing was done, and the failure is what was told. */
static bool is_refusal(struct moving *moving, const struct error *err)
{
    if (err->code != ERROR_NODE_DOWN || !moving->away)
        return false;
    moving->refused++;
    if (is_fenced(moving))
        node_return(moving);
    return true;
}

static void restart(struct moving *moving)
{
    moving->crashes++;
    stop(moving);
    for (size_t i = 0; i < MOVING_NODES && moving->store->faults; i++)
        if (moving->engines[i])
            fault_engine_heal(moving->engines[i]);
    start(moving);
    if (is_fenced(moving))
        node_return(moving);
    if (is_fenced(moving)) {
        moving->fenced_crashes++;
        if (below(moving, 4) == 0) {
            CLEANUP(container_unref) struct container *container = opened(moving);
            struct error err;

            assert_ok(migrator_cancel(moving->migrator, container, &err), &err);
            moving->cancelled++;
        } else {
            settle(moving);
        }
    }
}

/* --- Items ----------------------------------------------------------------------------------- */

static struct slice document_make(struct moving *moving, unsigned key, unsigned id,
                                  uint32_t version)
{
    struct slice text =
        arena_printf(moving->arena,
                     "{\"id\":\"i%u\",\"pk\":\"k%u\",\"v\":%u,\"n\":%u,\"tags\":[\"t%u\",\"u%u\"],"
                     "\"email\":\"e%u.%u\",\"fill\":\"%0*d\",\"to\":\"k%u\"%s}",
                     id, key, version, below(moving, 9), below(moving, 3), below(moving, 5), id,
                     below(moving, 2), (int)below(moving, 60) + 1, 7, below(moving, MOVING_KEYS),
                     below(moving, 3) ? "" : ",\"ttl\":9999");

    return document_of(moving->arena, arena_text(moving->arena, text));
}

static struct partition_key key_of(struct moving *moving, unsigned key)
{
    struct document_value value = document_string(arena_printf(moving->arena, "k%u", key));

    return (struct partition_key){.components = {value}, .count = 1};
}

static uint32_t version_of(const struct item *item)
{
    struct document_value value;
    int64_t version;

    assert_true(document_find(item->document, SLICE("v"), &value));
    assert_true(document_to_int64(&value, &version));
    return (uint32_t)version;
}

/* What is stored, asked of the container; 0: nothing. */
static uint32_t version_read(struct moving *moving, unsigned key, unsigned id)
{
    CLEANUP(container_unref) struct container *container = opened(moving);
    struct item_space space = container_space(container, &clock_system, moving->gates);
    struct item_operation op = {.space = &space,
                                .arena = moving->arena,
                                .verb = ITEM_READ,
                                .key = key_of(moving, key),
                                .id = document_string(arena_printf(moving->arena, "i%u", id))};
    struct error err;

    if (item_operation_run(&op, &err))
        return version_of(&op.result.item);
    assert_int_equal(err.code, ERROR_ITEM_MISSING);
    return 0;
}

/* A write that met a fault was done or not: whatever it was, the table follows. */
static void item_settle(struct moving *moving, unsigned key, unsigned id, uint32_t version)
{
    struct moving_item *item = &moving->items[key][id];
    uint32_t found = version_read(moving, key, id);

    if (found != version && found != (item->stored ? item->version : 0))
        fail_msg("seed %llu step %u: k%u i%u has version %u", (unsigned long long)moving->seed,
                 moving->step, key, id, found);
    item->stored = found != 0;
    if (found)
        item->version = found;
}

static bool is_fault(const struct error *err)
{
    return err->code == ERROR_STORE_IO || err->code == ERROR_STORE_POISONED ||
           err->code == ERROR_WRITE_IN_DOUBT || err->code == ERROR_STORE_UNAVAILABLE;
}

static void item_write(struct moving *moving, unsigned key, unsigned id, bool deletes)
{
    CLEANUP(container_unref) struct container *container = opened(moving);
    struct item_space space = container_space(container, &clock_system, moving->gates);
    struct moving_item *item = &moving->items[key][id];
    struct partition_key pk = key_of(moving, key);
    struct document_value value = document_string(arena_printf(moving->arena, "i%u", id));
    uint32_t version = deletes ? 0 : ++moving->version;
    struct slice document = deletes ? SLICE_NONE : document_make(moving, key, id, version);
    struct error err;

    if (item_operation_run(&(struct item_operation){.space = &space,
                                                    .arena = moving->arena,
                                                    .verb = deletes ? ITEM_DELETE : ITEM_UPSERT,
                                                    .key = pk,
                                                    .id = value,
                                                    .document = document},
                           &err)) {
        assert_true(!deletes || item->stored);
        item->stored = !deletes;
        if (version)
            item->version = version;
        return;
    }
    if (err.code == ERROR_ITEM_MISSING && deletes) {
        assert_false(item->stored);
        return;
    }
    if (is_refusal(moving, &err))
        return;
    if (!is_fault(&err))
        fail_msg("seed %llu step %u: %s: %s", (unsigned long long)moving->seed, moving->step,
                 error_face(err.code)->name, err.message);
    container_unref(TAKE(container));
    restart(moving);
    node_return(moving);
    item_settle(moving, key, id, version);
}

/* --- Several items of a key, all or none ------------------------------------------------------ */

enum { TOGETHER = 3 };

static bool together_try(struct moving *moving, const struct item_space *space, unsigned key,
                         const unsigned *ids, uint32_t version, struct error *err)
{
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct partition_key pk = key_of(moving, key);
    struct slice logical = item_logical(&space->definition->key, &pk, moving->arena);
    struct item_scope scope = item_space_scope(space, logical);

    if (!transaction_begin(&scope, logical, moving->arena, &transaction, err))
        return false;
    for (size_t i = 0; i < TOGETHER; i++) {
        struct document_value id = document_string(arena_printf(moving->arena, "i%u", ids[i]));

        if (!transaction_write(transaction, &id, TRANSACTION_UPSERT,
                               document_make(moving, key, ids[i], version), NULL, err))
            return false;
    }
    return transaction_commit(transaction, err);
}

static void items_write(struct moving *moving, unsigned key)
{
    CLEANUP(container_unref) struct container *container = opened(moving);
    struct item_space space = container_space(container, &clock_system, moving->gates);
    unsigned ids[TOGETHER] = {below(moving, 3), 3 + below(moving, 2), 5 + below(moving, 3)};
    uint32_t version = ++moving->version, found = 0;
    struct error err;
    bool done;

    while (!(done = together_try(moving, &space, key, ids, version, &err)) &&
           item_space_try_again(&space, &err))
        ;
    item_space_release(&space);
    if (!done && is_refusal(moving, &err))
        return;
    if (!done && err.code == ERROR_UNIQUE_KEY)
        return;
    if (!done && !is_fault(&err))
        fail_msg("seed %llu step %u: %s: %s", (unsigned long long)moving->seed, moving->step,
                 error_face(err.code)->name, err.message);
    if (!done) {
        container_unref(TAKE(container));
        restart(moving);
        node_return(moving);
    }
    for (size_t i = 0; i < TOGETHER; i++) {
        item_settle(moving, key, ids[i], version);
        found += moving->items[key][ids[i]].version == version;
    }
    if (found != TOGETHER && (done || found))
        fail_msg("seed %llu step %u: %u of %d items were written", (unsigned long long)moving->seed,
                 moving->step, found, TOGETHER);
}

/* --- The feed -------------------------------------------------------------------------------- */

static void change_see(struct moving *moving, const struct feed_change *change)
{
    unsigned key, id;
    struct document_value text;
    struct moving_item *item;
    uint32_t version;

    if (change->kind == FEED_DELETE || !change->current.document.data)
        return;
    assert_true(document_find(change->current.document, SLICE("pk"), &text));
    assert_int_equal(sscanf(arena_text(moving->arena, text.text), "k%u", &key), 1);
    assert_true(document_find(change->current.document, SLICE("id"), &text));
    assert_int_equal(sscanf(arena_text(moving->arena, text.text), "i%u", &id), 1);
    item = &moving->items[key][id];
    version = version_of(&change->current);
    if (version <= item->seen && item->again) {
        item->again--;
        moving->repeats++;
    } else if (version <= item->seen) {
        fail_msg("seed %llu step %u: the feed showed version %u of k%u i%u after version %u",
                 (unsigned long long)moving->seed, moving->step, version, key, id, item->seen);
    }
    item->seen = version;
    moving->changes_seen++;
}

static struct slice later(struct slice a, struct slice b)
{
    return slice_compare(a, b) >= 0 ? a : b;
}

static struct slice earlier(struct slice a, struct slice b)
{
    return slice_compare(a, b) <= 0 ? a : b;
}

/* Reads a range of one partition to its end. */
static uint64_t range_read(struct moving *moving, const struct item_scope *scope, struct slice min,
                           struct slice max, uint64_t lsn, bool all_versions)
{
    struct feed_request request = {.mode = all_versions ? FEED_ALL_VERSIONS : FEED_LATEST,
                                   .after_lsn = lsn,
                                   .routing_min = min,
                                   .routing_max = max,
                                   .changes_max = 7};
    struct feed_page page;
    struct error err;

    do {
        assert_ok(feed_read(scope, &request, moving->arena, &page, &err), &err);
        for (size_t i = 0; i < page.count; i++)
            change_see(moving, &page.changes[i]);
        request.after_lsn = page.lsn;
    } while (page.more);
    return page.lsn;
}

/* As clients do: whoever stood in a partition that is no more goes on in what came of it, with the
 * part of the keys it had. */
static void feed_follow(struct moving *moving)
{
    CLEANUP(container_unref) struct container *container = opened(moving);
    struct item_space space = container_space(container, &clock_system, moving->gates);
    struct moving_position before[MOVING_RANGES_MAX];
    size_t count = moving->position_count;

    memcpy(before, moving->positions, sizeof before);
    moving->position_count = 0;
    for (size_t i = 0; i < count; i++) {
        size_t spans;
        const struct partition_span *span = partition_map_overlap(
            space.map, (struct partition_range){before[i].min, before[i].max}, &spans);

        for (size_t s = 0; s < spans; s++) {
            struct item_scope scope = item_space_span_scope(&space, &span[s]);
            struct slice min = later(before[i].min, span[s].min);
            struct slice max = earlier(before[i].max, span[s].max);
            uint64_t lsn = range_read(moving, &scope, min, max, before[i].lsn,
                                      space.definition->feed_retention_ms > 0);

            position_add(moving, min, max, lsn);
        }
    }
    positions_clear(before, count);
}

/* --- Migrations ------------------------------------------------------------------------------ */

/* Up to three keys to any shards, or to where the rule places them. */
static bool reroute_try(struct moving *moving, const struct container *container, struct error *err)
{
    struct definition_directory_change edits[3];
    unsigned keys[3], count = 1 + below(moving, 3);
    bool fine;

    for (unsigned i = 0; i < count; i++) {
        keys[i] = below(moving, MOVING_KEYS);
        edits[i] = (struct definition_directory_change){
            .value = key_of(moving, keys[i]).components[0],
            .shard = below(moving, 8),
            .removes = below(moving, 5) == 0,
        };
    }
    fine = migrator_reroute(moving->migrator, container, edits, count, err);
    /* After a fault it may have begun. */
    for (unsigned i = 0; (fine || is_fault(err)) && i < count; i++)
        for (unsigned id = 0; id < MOVING_IDS; id++)
            moving->items[keys[i]][id].again++;
    return fine;
}

/* Hashed keys become ordered ones, and back; all items are seen in the feed again. */
static bool rekey_try(struct moving *moving, const struct container *container, struct error *err)
{
    bool hashed =
        definition_fields(container_definition(container))->key.strategy == PARTITION_STRATEGY_HASH;
    struct definition_rekey rekey = {
        .strategy = document_of(moving->arena,
                                hashed ? "{\"strategy\":\"range\"}" : "{\"strategy\":\"hash\"}")};
    bool fine = migrator_rekey(moving->migrator, container, &rekey, false, err);

    for (unsigned key = 0; (fine || is_fault(err)) && key < MOVING_KEYS; key++)
        for (unsigned id = 0; id < MOVING_IDS; id++)
            moving->items[key][id].again++;
    return fine;
}

/* One of the keys that are spread. */
static bool gather_try(struct moving *moving, const struct container *container, struct error *err)
{
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    unsigned from = below(moving, MOVING_KEYS);

    for (unsigned i = 0; i < MOVING_KEYS; i++) {
        struct partition_key key = key_of(moving, (from + i) % MOVING_KEYS);
        size_t count;

        (void)partition_map_overlap(container_map(container),
                                    partition_route_range(definition, &key, moving->arena), &count);
        if (count > 1)
            return migrator_gather(moving->migrator, container, &key, NULL, err);
    }
    fail_msg("seed %llu step %u: no key is spread", (unsigned long long)moving->seed, moving->step);
    return false;
}

enum { MERGED_MAX = 4 };

static bool migration_try(struct moving *moving, enum migration_kind kind, struct error *err)
{
    CLEANUP(container_unref) struct container *container = opened(moving);
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    unsigned at = below(moving, (unsigned)count);
    struct partition_key key = key_of(moving, below(moving, MOVING_KEYS));
    uint32_t ids[MERGED_MAX];
    unsigned merged;

    switch (kind) {
    case MIGRATION_SPLIT:
        return migrator_split(moving->migrator, container, spans[at].id, 2 + below(moving, 2), NULL,
                              err);
    case MIGRATION_MERGE:
        at = below(moving, (unsigned)count - 1);
        merged = MIN(2 + below(moving, MERGED_MAX - 1), (unsigned)count - at);
        for (unsigned i = 0; i < merged; i++)
            ids[i] = spans[at + merged - 1 - i].id; /* the other way round is fine */
        return migrator_merge(moving->migrator, container, ids, merged, err);
    case MIGRATION_MOVE:
        return migrator_move(moving->migrator, container, spans[at].id, 1 - spans[at].node, err);
    case MIGRATION_REROUTE:
        return reroute_try(moving, container, err);
    case MIGRATION_REKEY:
        return rekey_try(moving, container, err);
    case MIGRATION_SPREAD:
        return migrator_spread(moving->migrator, container, &key, 2 + below(moving, 3), NULL, err);
    case MIGRATION_GATHER:
        return gather_try(moving, container, err);
    default:
        return migrator_isolate(moving->migrator, container, &key, 0.7, err);
    }
}

static bool kind_is_possible(const struct moving *moving, const struct container *container,
                             enum migration_kind kind)
{
    size_t count;

    (void)partition_map_spans(container_map(container), &count);
    switch (kind) {
    case MIGRATION_REROUTE:
        return definition_fields(container_definition(container))->key.lookup != NULL;
    case MIGRATION_REKEY:
        /* Bodies that name a strategy could not be put in place of one that was re-keyed, and
         * readers of all versions have to begin anew. */
        return !strstr(moving->bodies[0], "strategy") &&
               !strstr(moving->bodies[0], "changeFeedPolicy");
    case MIGRATION_MERGE:
        return count > 1;
    case MIGRATION_GATHER:
        return partition_map_is_spread(container_map(container));
    case MIGRATION_SPREAD: /* with no unique keys, nor indexes besides the policy */
        return count <= 8 && !strstr(moving->bodies[0], "unique") &&
               !strstr(moving->bodies[0], "indexes");
    case MIGRATION_MOVE: /* else entries would be on another node than their items */
        return count <= 8 && !container_places(container);
    default:
        return count <= 8;
    }
}

/* Any that is possible, or the rarest so far: chance alone would take long to come to all. */
static enum migration_kind kind_choose(struct moving *moving)
{
    CLEANUP(container_unref) struct container *container = opened(moving);
    enum migration_kind kind = (enum migration_kind)below(moving, MIGRATION_KINDS);
    bool rarest = below(moving, 2);

    while (!kind_is_possible(moving, container, kind))
        kind = (enum migration_kind)((kind + 1) % MIGRATION_KINDS);
    for (unsigned i = 0; rarest && i < MIGRATION_KINDS; i++)
        if (moving->migrations[i] < moving->migrations[kind] &&
            kind_is_possible(moving, container, (enum migration_kind)i))
            kind = (enum migration_kind)i;
    return kind;
}

static bool is_spread(struct moving *moving)
{
    CLEANUP(container_unref) struct container *container = opened(moving);

    return partition_map_is_spread(container_map(container));
}

static void migration_begin(struct moving *moving)
{
    enum migration_kind kind = kind_choose(moving);
    bool spread = is_spread(moving);
    struct error err;

    if (migration_try(moving, kind, &err)) {
        moving->migrations[kind]++;
        return;
    }
    if (is_refusal(moving, &err))
        return;
    if (is_fault(&err)) {
        restart(moving);
        return;
    }
    /* Parts of a key are gathered before anything else becomes of them. */
    if (err.code != ERROR_BUSY && err.code != ERROR_BAD_REQUEST &&
        !(err.code == ERROR_NOT_SUPPORTED && spread))
        fail_msg("seed %llu step %u: %s: %s", (unsigned long long)moving->seed, moving->step,
                 error_face(err.code)->name, err.message);
}

static void migration_go_on(struct moving *moving)
{
    unsigned rounds = 1 + below(moving, 6);
    struct error err;
    bool busy;

    for (unsigned i = 0; i < rounds; i++)
        if (!migrator_round(moving->migrator, &busy, &err)) {
            if (is_refusal(moving, &err))
                return;
            if (!is_fault(&err))
                fail_msg("seed %llu step %u: %s: %s", (unsigned long long)moving->seed,
                         moving->step, error_face(err.code)->name, err.message);
            restart(moving);
            return;
        }
}

static void migration_cancel(struct moving *moving)
{
    CLEANUP(container_unref) struct container *container = opened(moving);
    struct error err;

    if (migrator_cancel(moving->migrator, container, &err)) {
        moving->cancelled++;
        return;
    }
    container_unref(TAKE(container));
    if (is_refusal(moving, &err))
        return;
    if (is_fault(&err))
        restart(moving);
    else
        assert_true(err.code == ERROR_BAD_REQUEST || err.code == ERROR_BUSY);
}

/* --- The index policy ------------------------------------------------------------------------ */

static void policy_change(struct moving *moving)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct error err;

    if (catalogue_container_replace(moving->catalogue, SLICE("default"), SLICE("d"), SLICE("c"),
                                    document_of(moving->arena, moving->bodies[below(moving, 2)]),
                                    SLICE_NONE, &container, &err)) {
        moving->policies++;
        return;
    }
    if (is_fault(&err))
        restart(moving);
    else
        assert_int_equal(err.code, ERROR_BUSY);
}

static void care(struct moving *moving)
{
    struct error err;
    size_t done;

    if (caretaker_round(moving->caretaker, &done, &err) || is_refusal(moving, &err))
        return;
    if (!is_fault(&err))
        fail_msg("seed %llu step %u: %s: %s", (unsigned long long)moving->seed, moving->step,
                 error_face(err.code)->name, err.message);
    restart(moving);
}

/* Until all entries are of the present policy. */
static void care_settle(struct moving *moving)
{
    for (int i = 0; i < 1000; i++) {
        CLEANUP(container_unref) struct container *container = opened(moving);
        struct definition *const *before;

        if (container_policies_before(container, &before) == 0)
            return;
        container_unref(TAKE(container));
        care(moving);
    }
    fail_msg("seed %llu: the index is never remade", (unsigned long long)moving->seed);
}

/* --- A step ---------------------------------------------------------------------------------- */

static void fault_plan(struct moving *moving)
{
    struct engine *engine = moving->engines[below(moving, MOVING_NODES)];

    if (moving->store->faults && below(moving, 6) == 0 && engine)
        fault_engine_fail_nth(engine, FAULT_WRITES, 1 + below(moving, 6), ERROR_STORE_IO,
                              below(moving, 2) ? FAULT_WRITTEN : FAULT_NOT_WRITTEN);
}

static void fault_forget(struct moving *moving)
{
    for (size_t i = 0; i < MOVING_NODES && moving->store->faults; i++)
        if (moving->engines[i])
            fault_engine_fail_nth(moving->engines[i], FAULT_WRITES, 0, ERROR_NONE,
                                  FAULT_NOT_WRITTEN);
}

void moving_step(struct moving *moving)
{
    unsigned dice = below(moving, 100);

    arena_reset(moving->arena);
    moving->step++;
    if (moving->store->takes_away && below(moving, 100) < 4) {
        if (moving->away)
            node_return(moving);
        else
            node_leave(moving);
    }
    fault_plan(moving);
    if (dice < 5)
        items_write(moving, below(moving, MOVING_KEYS));
    else if (dice < 50)
        item_write(moving, below(moving, MOVING_KEYS), below(moving, MOVING_IDS),
                   below(moving, 4) == 0);
    else if (dice < 62)
        migration_begin(moving);
    else if (dice < 92)
        migration_go_on(moving);
    else if (dice < 93)
        migration_cancel(moving);
    else if (dice < 94)
        restart(moving);
    else if (dice < 95)
        policy_change(moving);
    else if (dice < 97)
        care(moving);
    fault_forget(moving);
    if (dice >= 97 && !moving->away)
        feed_follow(moving);
    if (moving->step % 200 == 0)
        moving_check(moving);
}

/* Every item is what was written last, everything agrees, and the feed has shown the last version
 * of each. */
void moving_check(struct moving *moving)
{
    CLEANUP(container_unref) struct container *container = NULL;
    size_t items = 0;

    node_return(moving);
    settle(moving);
    care_settle(moving);
    feed_follow(moving);
    for (unsigned key = 0; key < MOVING_KEYS; key++)
        for (unsigned id = 0; id < MOVING_IDS; id++) {
            const struct moving_item *item = &moving->items[key][id];

            if (version_read(moving, key, id) != (item->stored ? item->version : 0))
                fail_msg("seed %llu step %u: k%u i%u is not what was written",
                         (unsigned long long)moving->seed, moving->step, key, id);
            if (item->stored && item->seen != item->version)
                fail_msg("seed %llu step %u: the feed has not shown version %u of k%u i%u",
                         (unsigned long long)moving->seed, moving->step, item->version, key, id);
            items += item->stored;
        }
    container = opened(moving);
    assert_int_equal(verify_container(container), items);
    verify_no_others(moving->cluster, &container, 1);
}
