#include "property/moving.h"

#include "catalogue/container_space.h"
#include "catalogue/migration.h"
#include "catalogue/node.h"
#include "catalogue/placed.h"
#include "document/bson.h"
#include "engine/guard.h"
#include "item/expiry.h"
#include "property/beside.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/fault_engine.h"
#include "support/verify.h"

static int64_t time_passes(void *context)
{
    return atomic_fetch_add(&((struct moving *)context)->now_ms, 5) + 5;
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
        .chunk_bytes = 3000 + moving_below(moving, 3000),
        .load_bytes = 3000 + moving_below(moving, 20000),
        .round_keys = 20 + moving_below(moving, 60),
        .lag_keys =
            1 + moving_below(moving, 200), /* beyond a round: several are left behind the fence */
        .pause_ms = 1,
        .splits_off = true,
        .by_hand = true,
    });
    moving->caretaker = caretaker_new(
        &(struct caretaker_options){.catalogue = moving->catalogue, .slice = 10, .by_hand = true});
    beside_start(moving->beside, moving);
}

static void stop(struct moving *moving)
{
    for (size_t i = 0; i < MOVING_NODES && moving->guards[i]; i++)
        engine_guard_leave(moving->guards[i]);
    beside_stop(moving->beside);
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

struct container *moving_container(struct moving *moving, const char *id)
{
    struct container *container;
    struct error err;

    if (catalogue_container_open(moving->catalogue, SLICE("default"), SLICE("d"), slice_of_text(id),
                                 &container, &err))
        return container;
    assert_int_equal(err.code, ERROR_NOT_FOUND);
    return NULL;
}

static struct container *opened(struct moving *moving)
{
    struct container *container = moving_container(moving, "c");

    assert_non_null(container);
    return container;
}

/* The nth container there can be; NULL: there are no more. */
static const char *id_of(const struct moving *moving, size_t nth)
{
    return nth == 0 ? "c" : beside_id(moving->beside, nth - 1);
}

bool moving_container_make(struct moving *moving, struct slice body, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct offer_request request = {.given = true, .ru = 400};

    return catalogue_container_create(moving->catalogue, SLICE("default"), SLICE("d"), body,
                                      &request, &container, err);
}

static void container_make(struct moving *moving)
{
    CLEANUP(account_unref) struct account *account = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    struct error err;

    assert_ok(catalogue_account_create(moving->catalogue, SLICE("default"),
                                       document_of(moving->arena, "{}"), &account, &err),
              &err);
    assert_ok(catalogue_database_create(moving->catalogue, SLICE("default"), SLICE("d"), NULL,
                                        &database, &err),
              &err);
    assert_ok(moving_container_make(moving, document_of(moving->arena, moving->bodies[0]), &err),
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
    moving_feed_begin(moving);
}

void moving_keep_beside(struct moving *moving)
{
    moving->beside = beside_new(moving);
    beside_start(moving->beside, moving);
}

void moving_done(struct moving *moving)
{
    stop(moving);
    beside_free(moving->beside);
    for (size_t i = 0; i < MOVING_NODES; i++)
        engine_close(node_of(moving, i));
    moving_feed_end(moving);
    item_gates_free(moving->gates);
    arena_free(moving->arena);
}

static bool is_behind_fence(struct moving *moving, const struct container *container)
{
    const struct migration_source *sources;
    size_t count;

    if (!container || !container_migration(container) ||
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

/* Is a source of a migration behind a fence? Writers would wait for the migrator, which only this
 * thread runs. The id of its container; NULL: none is. */
static const char *fenced(struct moving *moving)
{
    const char *id;

    for (size_t i = 0; (id = id_of(moving, i)); i++) {
        CLEANUP(container_unref) struct container *container = moving_container(moving, id);

        if (is_behind_fence(moving, container))
            return id;
    }
    return NULL;
}

static bool is_moving(struct moving *moving)
{
    const char *id;

    for (size_t i = 0; (id = id_of(moving, i)); i++) {
        CLEANUP(container_unref) struct container *container = moving_container(moving, id);

        if (container && container_migration(container))
            return true;
    }
    return false;
}

static void settle(struct moving *moving)
{
    struct error err;
    bool busy;

    for (int i = 0; i < 20000 && is_moving(moving); i++) {
        assert_ok(migrator_round(moving->migrator, &busy, &err), &err);
        if (i % 100 == 99)
            beside_go_on(moving->beside);
    }
    if (!is_moving(moving))
        return;
    for (size_t i = 0; id_of(moving, i); i++) {
        CLEANUP(container_unref)
        struct container *container = moving_container(moving, id_of(moving, i));

        struct migrator_progress progress = {0};

        if (container && container_migration(container) &&
            migrator_progress(moving->migrator, container, &progress))
            fail_msg("seed %llu step %u: a %s of %s is never done, with %llu conflicts: %s",
                     (unsigned long long)moving->seed, moving->step,
                     migration_kind_name(progress.kind), id_of(moving, i),
                     (unsigned long long)progress.conflicts, progress.error);
    }
}

/* --- A node that fails ----------------------------------------------------------------------- */

static void node_leave(struct moving *moving)
{
    if (!moving->store->takes_away || moving->away)
        return;
    moving->store->takes_away(moving->store->context, moving->engines[1], true);
    moving->away = true;
    moving->failures++;
    if (moving_below(moving, 2)) /* else the first call finds out */
        engine_guard_tend(moving->guards[1]);
}

/* Writers would wait at a fence that the failure has left behind. */
void moving_return(struct moving *moving)
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
    if (fenced(moving))
        settle(moving);
}

static void fault_forget(struct moving *moving)
{
    for (size_t i = 0; i < MOVING_NODES && moving->store->faults; i++)
        if (moving->engines[i])
            fault_engine_fail_nth(moving->engines[i], FAULT_WRITES, 0, ERROR_NONE,
                                  FAULT_NOT_WRITTEN);
}

/* Of several failures in one round the last is told: the refusal of the node that is away may hide
 * a fault of the other, which is as a killed process leaves it until the end of the step. */
static bool is_poisoned(struct moving *moving)
{
    struct engine_statistics statistics;
    struct error err;

    if (!moving->store->faults)
        return false;
    assert_ok(engine_statistics(moving->engines[0], &statistics, &err), &err);
    return statistics.poisoned;
}

/* Nothing was done, and the failure is what was told. */
bool moving_is_refusal(struct moving *moving, const struct error *err)
{
    if (err->code != ERROR_NODE_DOWN || !moving->away)
        return false;
    moving->refused++;
    fault_forget(moving); /* what has not come by now would meet those who settle */
    if (!is_poisoned(moving) && fenced(moving))
        moving_return(moving);
    return true;
}

void moving_restart(struct moving *moving)
{
    moving->crashes++;
    stop(moving);
    for (size_t i = 0; i < MOVING_NODES && moving->store->faults; i++)
        if (moving->engines[i])
            fault_engine_heal(moving->engines[i]);
    start(moving);
    if (fenced(moving))
        moving_return(moving);
    if (fenced(moving)) {
        moving->fenced_crashes++;
        if (moving_below(moving, 4) == 0) {
            CLEANUP(container_unref)
            struct container *container = moving_container(moving, fenced(moving));
            struct error err;

            assert_ok(migrator_cancel(moving->migrator, container, &err), &err);
            moving->cancelled++;
        }
        if (fenced(moving))
            settle(moving);
    }
}

/* --- Items ----------------------------------------------------------------------------------- */

/* Mostly small numbers, so that not every sum is spoiled; else of all kinds. */
const char *moving_value(struct random *random)
{
    static const char *const values[] = {
        "1",    "2",   "-7",     "0.1",   "0.2",       "1e300",
        "12.5", "3.0", "-1e300", "1e308", "\"text\"",  "[1,2]",
        "null", "{}",  "1e-300", "true",  "\"other\"", "9007199254740993"};

    return values[random_below(random, random_below(random, 3) ? 5 : ARRAY_LEN(values))];
}

static struct slice document_make(struct moving *moving, unsigned key, unsigned id,
                                  uint32_t version)
{
    struct slice text =
        arena_printf(moving->arena,
                     "{\"id\":\"i%u\",\"pk\":\"k%u\",\"v\":%u,\"n\":%u,\"tags\":[\"t%u\",\"u%u\"],"
                     "\"email\":\"e%u.%u\",\"fill\":\"%0*d\",\"to\":\"k%u\",\"w\":%s%s}",
                     id, key, version, moving_below(moving, 9), moving_below(moving, 3),
                     moving_below(moving, 5), id, moving_below(moving, 2),
                     (int)moving_below(moving, 60) + 1, 7, moving_below(moving, MOVING_KEYS),
                     moving_value(&moving->random), moving_below(moving, 3) ? "" : ",\"ttl\":9999");

    return document_of(moving->arena, arena_text(moving->arena, text));
}

static struct partition_key key_of(struct moving *moving, unsigned key)
{
    struct document_value value = document_string(arena_printf(moving->arena, "k%u", key));

    return (struct partition_key){.components = {value}, .count = 1};
}

uint32_t moving_version(const struct item *item)
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
        return moving_version(&op.result.item);
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

bool moving_is_fault(const struct error *err)
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
    if (moving_is_refusal(moving, &err))
        return;
    if (!moving_is_fault(&err))
        fail_msg("seed %llu step %u: %s: %s", (unsigned long long)moving->seed, moving->step,
                 error_face(err.code)->name, err.message);
    container_unref(TAKE(container));
    moving_restart(moving);
    moving_return(moving);
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
    unsigned ids[TOGETHER] = {moving_below(moving, 3), 3 + moving_below(moving, 2),
                              5 + moving_below(moving, 3)};
    uint32_t version = ++moving->version, found = 0;
    struct error err;
    bool done;

    while (!(done = together_try(moving, &space, key, ids, version, &err)) &&
           item_space_try_again(&space, &err))
        ;
    item_space_release(&space);
    if (!done && moving_is_refusal(moving, &err))
        return;
    if (!done && err.code == ERROR_UNIQUE_KEY)
        return;
    if (!done && !moving_is_fault(&err))
        fail_msg("seed %llu step %u: %s: %s", (unsigned long long)moving->seed, moving->step,
                 error_face(err.code)->name, err.message);
    if (!done) {
        container_unref(TAKE(container));
        moving_restart(moving);
        moving_return(moving);
    }
    for (size_t i = 0; i < TOGETHER; i++) {
        item_settle(moving, key, ids[i], version);
        found += moving->items[key][ids[i]].version == version;
    }
    if (found != TOGETHER && (done || found))
        fail_msg("seed %llu step %u: %u of %d items were written", (unsigned long long)moving->seed,
                 moving->step, found, TOGETHER);
}

/* --- Migrations ------------------------------------------------------------------------------ */

/* Up to three keys to any shards, or to where the rule places them. */
static bool reroute_try(struct moving *moving, const struct container *container, struct error *err)
{
    struct definition_directory_change edits[3];
    unsigned keys[3], count = 1 + moving_below(moving, 3);
    bool fine;

    for (unsigned i = 0; i < count; i++) {
        keys[i] = moving_below(moving, MOVING_KEYS);
        edits[i] = (struct definition_directory_change){
            .value = key_of(moving, keys[i]).components[0],
            .shard = moving_below(moving, 8),
            .removes = moving_below(moving, 5) == 0,
        };
    }
    fine = migrator_reroute(moving->migrator, container, edits, count, err);
    /* After a fault it may have begun. */
    for (unsigned i = 0; (fine || moving_is_fault(err)) && i < count; i++)
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

    for (unsigned key = 0; (fine || moving_is_fault(err)) && key < MOVING_KEYS; key++)
        for (unsigned id = 0; id < MOVING_IDS; id++)
            moving->items[key][id].again++;
    return fine;
}

/* One of the keys that are spread. */
static bool gather_try(struct moving *moving, const struct container *container, struct error *err)
{
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    unsigned from = moving_below(moving, MOVING_KEYS);

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

bool moving_migrate(struct moving *moving, const struct container *container,
                    enum migration_kind kind, struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    unsigned at = moving_below(moving, (unsigned)count);
    struct partition_key key = key_of(moving, moving_below(moving, MOVING_KEYS));
    uint32_t ids[MERGED_MAX];
    unsigned merged;

    switch (kind) {
    case MIGRATION_SPLIT:
        return migrator_split(moving->migrator, container, spans[at].id,
                              2 + moving_below(moving, 2), NULL, err);
    case MIGRATION_MERGE:
        at = moving_below(moving, (unsigned)count - 1);
        merged = MIN(2 + moving_below(moving, MERGED_MAX - 1), (unsigned)count - at);
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
        return migrator_spread(moving->migrator, container, &key, 2 + moving_below(moving, 3), NULL,
                               err);
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
    case MIGRATION_SPREAD: /* with no unique keys, indexes besides the policy, nor views */
        return count <= 8 && !moving->beside && !strstr(moving->bodies[0], "unique") &&
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
    enum migration_kind kind = (enum migration_kind)moving_below(moving, MIGRATION_KINDS);
    bool rarest = moving_below(moving, 2);

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
    CLEANUP(container_unref) struct container *container = opened(moving);
    enum migration_kind kind = kind_choose(moving);
    bool spread = is_spread(moving);
    struct error err;

    if (moving_migrate(moving, container, kind, &err)) {
        moving->migrations[kind]++;
        return;
    }
    container_unref(TAKE(container));
    if (moving_is_refusal(moving, &err))
        return;
    if (moving_is_fault(&err)) {
        moving_restart(moving);
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
    unsigned rounds = 1 + moving_below(moving, 6);
    struct error err;
    bool busy;

    for (unsigned i = 0; i < rounds; i++)
        if (!migrator_round(moving->migrator, &busy, &err)) {
            if (moving_is_refusal(moving, &err))
                return;
            if (!moving_is_fault(&err))
                fail_msg("seed %llu step %u: %s: %s", (unsigned long long)moving->seed,
                         moving->step, error_face(err.code)->name, err.message);
            moving_restart(moving);
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
    if (moving_is_refusal(moving, &err))
        return;
    if (moving_is_fault(&err))
        moving_restart(moving);
    else
        assert_true(err.code == ERROR_BAD_REQUEST || err.code == ERROR_BUSY);
}

/* --- The index policy ------------------------------------------------------------------------ */

static void policy_change(struct moving *moving)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct error err;

    if (catalogue_container_replace(
            moving->catalogue, SLICE("default"), SLICE("d"), SLICE("c"),
            document_of(moving->arena, moving->bodies[moving_below(moving, 2)]), SLICE_NONE,
            &container, &err)) {
        moving->policies++;
        return;
    }
    if (moving_is_fault(&err))
        moving_restart(moving);
    else
        assert_int_equal(err.code, ERROR_BUSY);
}

static void care(struct moving *moving)
{
    struct error err;
    size_t done;

    if (caretaker_round(moving->caretaker, &done, &err) || moving_is_refusal(moving, &err))
        return;
    if (!moving_is_fault(&err))
        fail_msg("seed %llu step %u: %s: %s", (unsigned long long)moving->seed, moving->step,
                 error_face(err.code)->name, err.message);
    moving_restart(moving);
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
    struct engine *engine = moving->engines[moving_below(moving, MOVING_NODES)];

    if (moving->store->faults && moving_below(moving, 6) == 0 && engine)
        fault_engine_fail_nth(engine, FAULT_WRITES, 1 + moving_below(moving, 6), ERROR_STORE_IO,
                              moving_below(moving, 2) ? FAULT_WRITTEN : FAULT_NOT_WRITTEN);
}

static void fault_notice(struct moving *moving)
{
    if (moving->away && is_poisoned(moving))
        moving_restart(moving);
}

void moving_step(struct moving *moving)
{
    unsigned dice = moving_below(moving, 100);

    arena_reset(moving->arena);
    moving->step++;
    if (moving->store->takes_away && moving_below(moving, 100) < 4) {
        if (moving->away)
            moving_return(moving);
        else
            node_leave(moving);
    }
    fault_plan(moving);
    if (moving->beside && moving_below(moving, 3) == 0)
        beside_step(moving->beside);
    else if (dice < 5)
        items_write(moving, moving_below(moving, MOVING_KEYS));
    else if (dice < 50)
        item_write(moving, moving_below(moving, MOVING_KEYS), moving_below(moving, MOVING_IDS),
                   moving_below(moving, 4) == 0);
    else if (dice < 62)
        migration_begin(moving);
    else if (dice < 92)
        migration_go_on(moving);
    else if (dice < 93)
        migration_cancel(moving);
    else if (dice < 94)
        moving_restart(moving);
    else if (dice < 95)
        policy_change(moving);
    else if (dice < 97)
        care(moving);
    fault_forget(moving);
    fault_notice(moving);
    if (dice >= 97 && !moving->away)
        moving_feed_follow(moving);
    if (moving->step % 200 == 0)
        moving_check(moving);
}

/* No node holds what is of no container. */
static void partitions_check(struct moving *moving)
{
    struct container *containers[1 + BESIDE_CONTAINERS_MAX];
    size_t count = 0;
    const char *id;

    for (size_t i = 0; (id = id_of(moving, i)); i++) {
        containers[count] = moving_container(moving, id);
        count += containers[count] != NULL;
    }
    verify_no_others(moving->cluster, containers, count);
    while (count)
        container_unref(containers[--count]);
}

/* Every item is what was written last, everything agrees, and the feed has shown the last version
 * of each. */
void moving_check(struct moving *moving)
{
    CLEANUP(container_unref) struct container *container = NULL;
    size_t items = 0;

    moving_return(moving);
    settle(moving);
    care_settle(moving);
    moving_feed_follow(moving);
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
    beside_check(moving->beside);
    partitions_check(moving);
}
