/* Views beside their sources: random writes, splits, moves and re-keys, crashes at any write of any
 * node; at each quiet point a view is what its query makes of its sources. */
#include "front/rest/views/views.h"

#include "catalogue/promotion.h"
#include "catalogue/views.h"
#include "support/views.h"
#include "unit/migration/migrator_fixture.h"

#define SOURCE "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2}}"
#define VIEW(id, key, sources, query)                                                              \
    "{\"id\":\"" id "\",\"partitionKey\":{\"paths\":[\"" key "\"],\"version\":2},"                 \
    "\"orrery\":{\"view\":{\"sources\":[" sources "],\"query\":\"" query "\"}}}"

/* A fixture and what keeps its views. */
struct world {
    struct fixture *fixture;
    struct rest_views *views;
    int64_t lag_ms_max;
    uint64_t random;
};

static uint32_t drawn(struct world *world, uint32_t below)
{
    world->random = world->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(world->random >> 33) % below;
}

static void views_start(struct world *world)
{
    world->views = rest_views_new(
        &(struct rest_views_options){.services = {.catalogue = world->fixture->catalogue,
                                                  .gates = world->fixture->gates,
                                                  .clock = &clock_system},
                                     .lag_ms_max = world->lag_ms_max,
                                     .by_hand = true});
}

static void world_restart(struct world *world)
{
    rest_views_free(TAKE(world->views));
    restart(world->fixture);
    views_start(world);
}

static void world_init(struct world *world, struct fixture *fixture, uint64_t seed)
{
    *world = (struct world){.fixture = fixture, .lag_ms_max = INT64_MAX / 2, .random = seed};
    container_make(fixture, SOURCE, 1000);
    views_start(world);
}

static struct container *opened_as(struct world *world, const char *id)
{
    struct container *container;
    struct error err;

    assert_ok(catalogue_container_open(world->fixture->catalogue, SLICE("acme"), SLICE("shop"),
                                       slice_of_text(id), &container, &err),
              &err);
    return container;
}

static void views_settle(struct world *world)
{
    struct error err;
    bool more = true;

    for (int i = 0; more && i < 10000; i++)
        assert_ok(rest_views_round(world->views, &more, &err), &err);
    assert_false(more);
    /* a view of a view hears of what the round before has written */
    assert_ok(rest_views_round(world->views, &more, &err), &err);
    for (int i = 0; more && i < 10000; i++)
        assert_ok(rest_views_round(world->views, &more, &err), &err);
}

/* What the query says of all sources, from scratch. */
static void view_expect(struct world *world, const char *id)
{
    views_expect(world->fixture->catalogue, SLICE("acme"), SLICE("shop"), id);
}

/* Entries that are kept of a view beside its rows. */
static size_t beside_count(struct container *view, char family)
{
    struct item_space space = container_space(view, &clock_system, NULL);
    size_t spans_count, count = 0;
    const struct partition_span *spans = partition_map_spans(space.map, &spans_count);
    const uint8_t min = (uint8_t)family, max = (uint8_t)(family + 1);
    struct error err;

    for (size_t i = 0; i < spans_count; i++) {
        CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
        struct item_scope scope = item_space_span_scope(&space, &spans[i]);
        struct engine_entry entry;

        assert_ok(engine_iterator_new(scope.engine, NULL, scope.partition,
                                      (struct engine_range){slice_of(&min, 1), slice_of(&max, 1)},
                                      false, ENGINE_READ_ANY, &iterator, &err),
                  &err);
        do {
            assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
            count += entry.found == ENGINE_FOUND;
        } while (entry.found == ENGINE_FOUND);
    }
    return count;
}

/* Values of all kinds, sums of which must be exact: of 0.1 and 1e300, texts, arrays, nothing. */
static bool value_write(struct world *world, int i, struct error *err)
{
    static const char *const values[] = {"1",     "2",        "-7",        "0.1",
                                         "0.2",   "1e300",    "-1e300",    "1e-300",
                                         "12.75", "\"text\"", "\"other\"", "[1,2]",
                                         "null",  "true",     "{}",        "9007199254740993",
                                         "3.0",   "1e308",    "1e308",     "\"\\u00e9long\""};
    CLEANUP(container_unref) struct container *container = opened(world->fixture);
    struct item_space space = container_space(container, &clock_system, world->fixture->gates);
    struct arena *arena = world->fixture->arena;
    uint32_t drawn_value = drawn(world, ARRAY_LEN(values) + 4);
    /* mostly small numbers, so that not every group is spoiled */
    const char *value = drawn(world, 3)                   ? values[drawn(world, 5)]
                        : drawn_value < ARRAY_LEN(values) ? values[drawn_value]
                                                          : NULL;
    struct slice text = arena_printf(
        arena, "{\"id\":\"%d\",\"pk\":\"k%d\",\"x\":%d%s%s,\"w\":\"%c\",\"long\":\"%0300d%c\"}", i,
        i / 10, i, value ? ",\"v\":" : "", value ? value : "", (char)('a' + drawn(world, 6)), 1,
        (char)('a' + drawn(world, 9)));
    struct slice document = document_of(arena, arena_text(arena, text));

    return item_operation_run(
        &(struct item_operation){.space = &space,
                                 .arena = arena,
                                 .verb = ITEM_UPSERT,
                                 .key = partition_key_extract(&space.definition->key, document),
                                 .id = document_string(arena_printf(arena, "%d", i)),
                                 .document = document},
        err);
}

static bool item_drop(struct world *world, int i, struct error *err)
{
    CLEANUP(container_unref) struct container *container = opened(world->fixture);
    struct item_space space = container_space(container, &clock_system, world->fixture->gates);
    struct arena *arena = world->fixture->arena;
    struct slice document = document_of(
        arena, arena_text(arena, arena_printf(arena, "{\"pk\":\"k%d\",\"x\":%d}", i / 10, i)));

    return item_operation_run(
        &(struct item_operation){.space = &space,
                                 .arena = arena,
                                 .verb = ITEM_DELETE,
                                 .key = partition_key_extract(&space.definition->key, document),
                                 .id = document_string(arena_printf(arena, "%d", i))},
        err);
}

static bool item_write(struct world *world, int i, struct error *err)
{
    CLEANUP(container_unref) struct container *container = opened(world->fixture);
    char word[8] = {(char)('a' + drawn(world, 6)), 0};
    struct transaction_result result;

    return item_put(world->fixture, container, i, word, &result, err);
}

/* --- Stories --------------------------------------------------------------------------------- */

static void a_view_is_filled_and_follows(void **state)
{
    struct world world;
    struct front_view_report report;
    struct error err;
    bool more;

    world_init(&world, *state, 1);
    items_put(*state, 0, 300, "a");
    container_make(
        *state, VIEW("v", "/w", "\"c\"", "SELECT c.id, c.w, c.x FROM c WHERE c.x % 3 != 1"), 1000);
    for (int i = 0; i < 3; i++) /* new, and two pages of three */
        assert_ok(rest_views_round(world.views, &more, &err), &err);
    items_put(*state, 50, 100, "b"); /* behind and before where it is */
    items_put(*state, 280, 320, "c");
    item_delete(*state, 7);
    item_delete(*state, 299);
    views_settle(&world);
    view_expect(&world, "v");
    items_put(*state, 0, 20, "z"); /* 7 is another item now */
    item_delete(*state, 8);
    CLEANUP(container_unref) struct container *view = opened_as(&world, "v");

    assert_true(rest_views_report(world.views, view, &report));
    assert_true(report.lag_ms > 0);
    views_settle(&world);
    view_expect(&world, "v");
    assert_true(rest_views_report(world.views, view, &report));
    assert_int_equal(report.lag_ms, 0);
    rest_views_free(world.views);
}

static void what_was_removed_from_the_history_is_not_missed(void **state)
{
    struct world world;
    struct front_view_report report;
    struct error err;

    world_init(&world, *state, 1);
    items_put(*state, 0, 40, "a");
    container_make(*state, VIEW("v", "/w", "\"c\"", "SELECT c.id, c.w FROM c"), 1000);
    views_settle(&world);
    items_put(*state, 20, 60, "b");
    item_delete(*state, 3);
    item_delete(*state, 30);
    for (size_t i = 0; i < cluster_count(world.fixture->cluster); i++) {
        const struct cluster_node *node = cluster_at(world.fixture->cluster, i);
        bool removed;

        assert_ok(history_trim(node->engine, node->commit,
                               &(struct history_limits){.retention_ms = 1},
                               clock_read_wall_ms(&clock_system) + 3600 * 1000, &removed, &err),
                  &err);
    }
    views_settle(&world);
    view_expect(&world, "v");
    CLEANUP(container_unref) struct container *view = opened_as(&world, "v");

    assert_true(rest_views_report(world.views, view, &report));
    assert_int_equal(report.rebuilds, 1);
    rest_views_free(world.views);
}

static void a_view_that_is_too_far_behind_is_built_again(void **state)
{
    struct world world;
    struct front_view_report report;

    world_init(&world, *state, 1);
    container_make(*state, VIEW("v", "/w", "\"c\"", "SELECT c.id, c.w FROM c"), 1000);
    views_settle(&world);
    rest_views_free(TAKE(world.views));
    world.lag_ms_max = -1;
    views_start(&world);
    items_put(*state, 0, 20, "b");
    for (int i = 0; i < 20; i++) {
        struct error err;
        bool more;

        assert_ok(rest_views_round(world.views, &more, &err), &err);
    }
    view_expect(&world, "v");
    CLEANUP(container_unref) struct container *view = opened_as(&world, "v");

    assert_true(rest_views_report(world.views, view, &report));
    assert_true(report.rebuilds >= 1);
    rest_views_free(world.views);
}

static void a_source_without_views_is_followed_no_more(void **state)
{
    struct world world;
    struct error err;

    world_init(&world, *state, 1);
    container_make(*state, VIEW("v", "/w", "\"c\"", "SELECT c.id FROM c"), 1000);
    views_settle(&world);
    assert_fails(catalogue_container_drop(world.fixture->catalogue, SLICE("acme"), SLICE("shop"),
                                          SLICE("c"), SLICE_NONE, &err),
                 &err, ERROR_VIEW_BOUND);
    assert_ok(catalogue_container_drop(world.fixture->catalogue, SLICE("acme"), SLICE("shop"),
                                       SLICE("v"), SLICE_NONE, &err),
              &err);
    views_settle(&world);
    CLEANUP(container_unref) struct container *source = opened(*state);

    assert_false(definition_fields(container_definition(source))->followed);
    assert_false(container_history(source).followed);
    assert_ok(catalogue_container_drop(world.fixture->catalogue, SLICE("acme"), SLICE("shop"),
                                       SLICE("c"), SLICE_NONE, &err),
              &err);
    rest_views_free(world.views);
}

#define GROUPED                                                                                    \
    "SELECT c.w, COUNT(1) AS n, COUNT(c.v) AS d, SUM(c.v) AS s, AVG(c.v) AS a, MIN(c.v) AS low, "  \
    "MAX(c.v) AS high, MIN(c.long) AS l, MAX(c.long) AS h, COUNTIF(c.v > 1) AS more FROM c "       \
    "WHERE c.x % 7 != 3 GROUP BY c.w"

static void groups_are_kept_and_vanish(void **state)
{
    struct world world;
    struct error err;

    world_init(&world, *state, 3);
    for (int i = 0; i < 150; i++)
        assert_ok(value_write(&world, i, &err), &err);
    container_make(*state, VIEW("g", "/w", "\"c\"", GROUPED), 1000);
    container_make(*state,
                   VIEW("p", "/v", "\"c\"",
                        "SELECT c.v, c.w, COUNT(1) AS n, SUM(c.x) AS s FROM c GROUP BY c.v, c.w"),
                   1000);
    views_settle(&world);
    view_expect(&world, "g");
    for (int i = 0; i < 400; i++)
        assert_ok(value_write(&world, (int)drawn(&world, 150), &err), &err);
    views_settle(&world);
    view_expect(&world, "g");
    for (int i = 0; i < 150; i++) {
        assert_ok(item_drop(&world, i, &err), &err);
        if (i % 10 == 0) {
            views_settle(&world);
            view_expect(&world, "g");
        }
    }
    views_settle(&world);
    view_expect(&world, "g");
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(container_unref) struct container *view = opened_as(&world, "g");
    size_t count;

    (void)views_items(view, arena, &count);
    assert_int_equal(count, 0);
    assert_int_equal(beside_count(view, 'g'), 0);
    assert_int_equal(beside_count(view, 'e'), 0);
    rest_views_free(world.views);
}

static void groups_are_found_again_after_their_history_was_removed(void **state)
{
    struct world world;
    struct front_view_report report;
    struct error err;

    world_init(&world, *state, 4);
    for (int i = 0; i < 60; i++)
        assert_ok(value_write(&world, i, &err), &err);
    container_make(*state, VIEW("g", "/w", "\"c\"", GROUPED), 1000);
    views_settle(&world);
    for (int i = 0; i < 30; i++)
        assert_ok(i % 2 ? value_write(&world, i, &err) : item_drop(&world, i, &err), &err);
    for (size_t i = 0; i < cluster_count(world.fixture->cluster); i++) {
        const struct cluster_node *node = cluster_at(world.fixture->cluster, i);
        bool removed;

        assert_ok(history_trim(node->engine, node->commit,
                               &(struct history_limits){.retention_ms = 1},
                               clock_read_wall_ms(&clock_system) + 3600 * 1000, &removed, &err),
                  &err);
    }
    views_settle(&world);
    view_expect(&world, "g");
    CLEANUP(container_unref) struct container *view = opened_as(&world, "g");

    assert_true(rest_views_report(world.views, view, &report));
    assert_int_equal(report.rebuilds, 1);
    rest_views_free(world.views);
}

/* One thing at random; whatever fails is said in err. */
static bool step(struct world *world, struct error *err)
{
    struct fixture *fixture = world->fixture;
    uint32_t what = drawn(world, 100);
    bool flag;

    if (what < 50)
        return drawn(world, 2) ? item_write(world, (int)drawn(world, 80), err)
                               : value_write(world, (int)drawn(world, 80), err);
    if (what < 65)
        return item_drop(world, (int)drawn(world, 80), err);
    if (what < 80)
        return rest_views_round(world->views, &flag, err);
    if (what < 92)
        return migrator_round(fixture->migrator, &flag, err);

    CLEANUP(container_unref)
    struct container *container =
        opened_as(world, (const char *const[]){"c", "v", "g", "c"}[drawn(world, 4)]);
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    const struct partition_span *span = &spans[drawn(world, (uint32_t)count)];

    if (container_migration(container))
        return true;
    if (what < 96)
        return migrator_move(fixture->migrator, container, span->id, 1 - span->node, err);
    if (count < 4)
        return migrator_split(fixture->migrator, container, span->id, 2, NULL, err);
    return true;
}

static void quiet(struct world *world)
{
    static const char *const ids[] = {"c", "v", "s", "u", "g", "t"};
    struct error err;
    bool busy;

    /* a fault that has not come yet comes no more */
    for (size_t n = 0; n < ARRAY_LEN(world->fixture->engines); n++)
        fault_engine_fail_nth(world->fixture->engines[n], FAULT_WRITES, 0, ERROR_NONE,
                              FAULT_NOT_WRITTEN);
    world_restart(world);
    for (int i = 0; i < 3000; i++) {
        bool moving = false;

        for (size_t n = 0; n < ARRAY_LEN(ids); n++) {
            CLEANUP(container_unref) struct container *container = opened_as(world, ids[n]);

            moving |= container_migration(container) != NULL;
        }
        if (!moving)
            break;
        assert_ok(migrator_round(world->fixture->migrator, &busy, &err), &err);
    }
    views_settle(world);
    for (size_t n = 1; n < ARRAY_LEN(ids); n++)
        view_expect(world, ids[n]);
}

static void views_are_what_their_queries_say_after_whatever_happened(void **state)
{
    struct world world;

    world_init(&world, *state, 20261117);
    items_put(*state, 0, 30, "a");
    container_make(
        *state, VIEW("v", "/w", "\"c\"", "SELECT c.id, c.w, c.x FROM c WHERE c.x % 3 != 1"), 1000);
    container_make(*state,
                   "{\"id\":\"s\",\"partitionKey\":{\"paths\":[\"/x\"],\"version\":2},"
                   "\"materializedViewDefinition\":{\"sourceCollectionId\":\"c\",\"definition\":"
                   "\"SELECT c.x, c.w FROM c\"}}",
                   1000);
    container_make(*state, VIEW("u", "/id", "\"v\",\"c\"", "SELECT c.w, c.x + 1 AS y FROM c"),
                   1000);
    container_make(*state, VIEW("g", "/w", "\"c\"", GROUPED), 1000);
    container_make(*state,
                   VIEW("t", "/w", "\"v\",\"c\"",
                        "SELECT c.w, c.x % 4 AS r, MAX(c.x) AS m, COUNT(1) AS n FROM c "
                        "GROUP BY c.w, c.x % 4"),
                   1000);
    for (int round = 0; round < 12; round++) {
        struct error err;

        for (int i = 0; i < 120; i++) {
            if (i == 60)
                fault_engine_fail_nth(world.fixture->engines[drawn(&world, 2)], FAULT_WRITES,
                                      1 + drawn(&world, 40), ERROR_STORE_IO,
                                      drawn(&world, 2) ? FAULT_WRITTEN : FAULT_NOT_WRITTEN);
            if (!step(&world, &err) && err.code == ERROR_STORE_IO)
                break; /* the node is as a killed process leaves it */
        }
        quiet(&world);
        arena_reset(world.fixture->arena);
    }
    rest_views_free(world.views);
}

static void a_rekey_of_either_side_leaves_the_view_right(void **state)
{
    struct world world;
    struct definition_rekey rekey = {0};
    struct error err;
    bool busy;

    world_init(&world, *state, 5);
    items_put(*state, 0, 60, "a");
    container_make(*state, VIEW("v", "/w", "\"c\"", "SELECT c.id, c.w, c.x FROM c"), 1000);
    container_make(*state,
                   VIEW("g", "/w", "\"c\"",
                        "SELECT c.w, c.x % 5 AS r, SUM(c.x) AS s, MIN(c.x) AS m FROM c "
                        "GROUP BY c.w, c.x % 5"),
                   1000);
    for (int round = 0; round < 7; round++) {
        /* the last two place the same keys otherwise */
        static const char *const keys[] = {"/x", "/x", "/w", "/_id", "/r", NULL, NULL};
        static const char *const of[] = {"c", "v", "c", "v", "g", "g", "c"};
        CLEANUP(container_unref) struct container *container = opened_as(&world, of[round]);

        if (keys[round])
            rekey.partition_key = document_of(
                world.fixture->arena,
                arena_text(world.fixture->arena,
                           arena_printf(world.fixture->arena, "{\"paths\":[\"%s\"],\"version\":2}",
                                        keys[round])));
        else
            rekey = (struct definition_rekey){
                .strategy = document_of(world.fixture->arena, "{\"strategy\":\"range\"}")};
        assert_ok(migrator_rekey(world.fixture->migrator, container, &rekey, false, &err), &err);
        container_unref(TAKE(container)); /* whose map must not be held at the end */
        for (int i = 0; i < 2000; i++) {
            CLEANUP(container_unref)
            struct container *now = opened_as(&world, of[round]);

            if (!container_migration(now))
                break;
            if (i < 100) /* later it is left to catch up */
                (void)item_write(&world, (int)drawn(&world, 80), &err);
            assert_ok(migrator_round(world.fixture->migrator, &busy, &err), &err);
            if (i % 3 == 0)
                assert_ok(rest_views_round(world.views, &busy, &err), &err);
        }
        views_settle(&world);
        view_expect(&world, "v");
        view_expect(&world, "g");
        CLEANUP(container_unref) struct container *after = opened_as(&world, of[round]);

        if (keys[round])
            assert_ok(migrator_grace_end(world.fixture->migrator, after, &err), &err);
    }
    rest_views_free(world.views);
}

/* Until nothing of the container moves any more; views are not looked at meanwhile. */
static void migration_end(struct world *world, const char *id)
{
    bool moving = true, busy;
    struct error err;

    for (int i = 0; moving && i < 2000; i++) {
        CLEANUP(container_unref) struct container *container = opened_as(world, id);

        moving = container_migration(container) != NULL;
        container_unref(TAKE(container)); /* whose map must not be held at the end */
        assert_ok(migrator_round(world->fixture->migrator, &busy, &err), &err);
    }
    assert_false(moving);
}

static void placed_by(struct world *world, const char *id, const char *strategy)
{
    CLEANUP(container_unref) struct container *container = opened_as(world, id);
    struct definition_rekey rekey = {.strategy = document_of(world->fixture->arena, strategy)};
    struct error err;

    assert_ok(migrator_rekey(world->fixture->migrator, container, &rekey, false, &err), &err);
    container_unref(TAKE(container));
    migration_end(world, id);
}

/* The second re-key leaves the definition as it was before the first, but what had been kept of the
 * groups is gone. */
static void groups_that_two_rekeys_placed_as_before_are_made_anew(void **state)
{
    struct front_view_report report;
    struct world world;

    world_init(&world, *state, 6);
    items_put(*state, 0, 60, "a");
    container_make(*state,
                   VIEW("g", "/w", "\"c\"", "SELECT c.w, SUM(c.x) AS s FROM c GROUP BY c.w"), 1000);
    views_settle(&world);
    for (int times = 0; times < 2; times++) {
        placed_by(&world, "g", "{\"strategy\":\"range\"}");
        placed_by(&world, "g", "{\"strategy\":\"hash\"}");
        items_put(*state, 0, 60, times ? "c" : "b"); /* all of them leave their group */
        views_settle(&world);
        view_expect(&world, "g");
    }
    CLEANUP(container_unref) struct container *view = opened_as(&world, "g");

    assert_int_equal(beside_count(view, 'e'), 60);
    assert_true(rest_views_report(world.views, view, &report));
    assert_int_equal(report.rebuilds, 2);
    rest_views_free(world.views);
}

static void rekey_try(struct world *world, const char *id, const char *path, bool may_lack,
                      bool expected)
{
    CLEANUP(container_unref) struct container *view = opened_as(world, id);
    struct arena *arena = world->fixture->arena;
    struct slice key =
        document_of(arena, arena_text(arena, arena_printf(arena, "{\"paths\":[\"%s\"]}", path)));
    struct error err;

    if (expected)
        assert_ok(rest_views_key_check(view, key, may_lack, &err), &err);
    else
        assert_fails(rest_views_key_check(view, key, may_lack, &err), &err, ERROR_VIEW_UNFIT);
}

/* There are no rows yet that could show it. */
static void a_rekey_to_what_rows_of_groups_never_have_is_refused(void **state)
{
    struct world world;

    world_init(&world, *state, 8);
    container_make(
        *state,
        VIEW("g", "/w", "\"c\"", "SELECT c.w, c.id, SUM(c.x) AS s FROM c GROUP BY c.w, c.id"),
        1000);
    container_make(*state, VIEW("v", "/w", "\"c\"", "SELECT c.w FROM c"), 1000);
    rekey_try(&world, "g", "/x", false, false); /* of the source alone */
    rekey_try(&world, "g", "/x", true, true);
    rekey_try(&world, "g", "/s", true, false); /* an aggregate */
    rekey_try(&world, "g", "/w", false, true);
    rekey_try(&world, "g", "/id", false, true);
    rekey_try(&world, "g", "/_id", false, true);
    rekey_try(&world, "v", "/x", false, true);
    rest_views_free(world.views);
}

static void query_put(struct world *world, const char *body)
{
    CLEANUP(container_unref) struct container *after = NULL;
    struct error err;

    assert_ok(catalogue_container_replace(world->fixture->catalogue, SLICE("acme"), SLICE("shop"),
                                          SLICE("g"), document_of(world->fixture->arena, body),
                                          SLICE_NONE, &after, &err),
              &err);
}

/* Its number is given to the next query, if the process ends before it was written down. */
static void a_generation_that_is_not_written_down_is_not_used(void **state)
{
    struct world world;
    struct error err;
    size_t kept;
    bool more;

    world_init(&world, *state, 7);
    items_put(*state, 0, 60, "a");
    container_make(*state,
                   VIEW("g", "/w", "\"c\"", "SELECT c.w, COUNT(1) AS s FROM c GROUP BY c.w"), 1000);
    views_settle(&world);
    query_put(&world, VIEW("g", "/w", "\"c\"", "SELECT c.w, MAX(c.x) AS s FROM c GROUP BY c.w"));
    {
        CLEANUP(container_unref) struct container *view = opened_as(&world, "g");

        /* notes are on the first node, the view is on the other */
        assert_int_equal(partition_map_spans(container_map(view), &kept)->node, 1);
        kept = beside_count(view, 'g');
        fault_engine_fill(world.fixture->engines[0], true);
        for (int i = 0; i < 10; i++)
            assert_fails(rest_views_round(world.views, &more, &err), &err, ERROR_STORE_FULL);
        assert_int_equal(beside_count(view, 'g'), kept);
        fault_engine_fill(world.fixture->engines[0], false);
    }
    world_restart(&world);
    query_put(&world, VIEW("g", "/w", "\"c\"", "SELECT c.w, SUM(c.x) AS s FROM c GROUP BY c.w"));
    views_settle(&world);
    view_expect(&world, "g");
    rest_views_free(world.views);
}

/* --- Keys that are promoted ------------------------------------------------------------------ */

enum { PROMOTED_KEYS = 3 }; /* k0 to k2, to containers o0 to o2, of which o0 and o1 have views */

#define OWN_FORMAT "{\"id\":\"%s\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2}}"

static const char *own_name(uint32_t nth)
{
    return (const char *const[PROMOTED_KEYS]){"o0", "o1", "o2"}[nth];
}

static const struct promotion *tie_of(struct world *world, const struct container *origin,
                                      uint32_t nth, struct partition_key *ret_key)
{
    struct partition_range range;

    *ret_key =
        key_named(world->fixture, (const char *const[]){"[\"k0\"]", "[\"k1\"]", "[\"k2\"]"}[nth]);
    range = partition_route_range(&definition_fields(container_definition(origin))->key, ret_key,
                                  world->fixture->arena);
    return container_promotion(origin, &range);
}

/* A container that may be written to by key kN: the source, or the key's own. */
static struct container *through(struct world *world, uint32_t key)
{
    CLEANUP(container_unref) struct container *origin = opened(world->fixture);
    const struct promotion *tie = NULL;
    struct partition_key value;

    if (key < PROMOTED_KEYS)
        tie = tie_of(world, origin, key, &value);
    if (tie && tie->state != PROMOTION_PREPARING && drawn(world, 2))
        return opened_as(world, own_name(key));
    return TAKE(origin);
}

static bool write_through(struct world *world, struct error *err)
{
    int i = (int)drawn(world, 60);
    CLEANUP(container_unref) struct container *container = through(world, (uint32_t)i / 10);
    struct arena *arena = world->fixture->arena;
    struct item_space space = container_space(container, &clock_system, world->fixture->gates);
    char word[8] = {(char)('a' + drawn(world, 6)), 0};
    struct transaction_result result;
    struct slice document;

    if (drawn(world, 3))
        return item_put(world->fixture, container, i, word, &result, err);
    document =
        document_of(arena, arena_text(arena, arena_printf(arena, "{\"pk\":\"k%d\"}", i / 10)));
    return item_operation_run(
        &(struct item_operation){.space = &space,
                                 .arena = arena,
                                 .verb = ITEM_DELETE,
                                 .key = partition_key_extract(&space.definition->key, document),
                                 .id = document_string(arena_printf(arena, "%d", i))},
        err);
}

/* A container that was a key's is dropped, and another made; a fault may come between the two. */
static bool own_renew(struct world *world, const char *id, struct error *err)
{
    CLEANUP(container_unref) struct container *made = NULL;
    struct offer_request request = {.given = true, .ru = 1000};

    return (catalogue_container_drop(world->fixture->catalogue, SLICE("acme"), SLICE("shop"),
                                     slice_of_text(id), SLICE_NONE, err) ||
            err->code == ERROR_NOT_FOUND) &&
           catalogue_container_create(
               world->fixture->catalogue, SLICE("acme"), SLICE("shop"),
               document_of(world->fixture->arena,
                           arena_text(world->fixture->arena,
                                      arena_printf(world->fixture->arena, OWN_FORMAT, id))),
               &request, &made, err);
}

/* The next thing that can be done with a key, or another that is refused. */
static bool promotion_step(struct world *world, struct error *err)
{
    struct migrator *migrator = world->fixture->migrator;
    CLEANUP(container_unref) struct container *origin = opened(world->fixture);
    CLEANUP(container_unref) struct container *own = NULL;
    uint32_t nth = drawn(world, PROMOTED_KEYS);
    struct partition_key key;
    const struct promotion *tie = tie_of(world, origin, nth, &key);

    if (!tie && nth == PROMOTED_KEYS - 1 && !own_renew(world, own_name(nth), err))
        return false;
    own = opened_as(world, own_name(nth));
    if (!tie)
        return migrator_promote(migrator, origin, own, &key, err);
    switch (drawn(world, 5)) {
    case 0:
        return migrator_promote(migrator, origin, own, &key, err);
    case 1:
    case 2:
        return migrator_promotion_end(migrator, origin, tie, err);
    case 3:
        return migrator_demote(migrator, origin, tie, err);
    default:
        return nth != PROMOTED_KEYS - 1 || migrator_promotion_forget(migrator, origin, tie, err);
    }
}

static bool promoted_step(struct world *world, unsigned *done, struct error *err)
{
    uint32_t what = drawn(world, 100);
    bool flag;

    if (what < 55)
        return write_through(world, err);
    if (what < 70)
        return rest_views_round(world->views, &flag, err);
    if (what < 88)
        return migrator_round(world->fixture->migrator, &flag, err);
    if (!promotion_step(world, err))
        return false;
    *done += 1;
    return true;
}

static void promoted_quiet(struct world *world, bool restarts)
{
    static const char *const views[] = {"v", "g", "w0", "w1", "b"};
    struct error err;
    bool busy;

    for (size_t n = 0; n < ARRAY_LEN(world->fixture->engines); n++)
        fault_engine_fail_nth(world->fixture->engines[n], FAULT_WRITES, 0, ERROR_NONE,
                              FAULT_NOT_WRITTEN);
    if (restarts) /* what it knows is known again, and a node that has failed writes again */
        world_restart(world);
    for (int i = 0; i < 200; i++)
        assert_ok(migrator_round(world->fixture->migrator, &busy, &err), &err);
    views_settle(world);
    for (size_t n = 0; n < ARRAY_LEN(views); n++)
        view_expect(world, views[n]);
}

static void views_have_what_their_sources_show_of_promoted_keys(void **state)
{
    struct world world;
    unsigned done = 0;

    world_init(&world, *state, 20261118);
    for (uint32_t i = 0; i < PROMOTED_KEYS; i++)
        container_make(*state,
                       arena_text(world.fixture->arena,
                                  arena_printf(world.fixture->arena, OWN_FORMAT, own_name(i))),
                       1000);
    items_put(*state, 0, 60, "a");
    container_make(
        *state, VIEW("v", "/w", "\"c\"", "SELECT c.id, c.w, c.x FROM c WHERE c.x % 3 != 1"), 1000);
    container_make(
        *state,
        VIEW("g", "/w", "\"c\"",
             "SELECT c.w, COUNT(1) AS n, SUM(c.x) AS s, MAX(c.x) AS m FROM c GROUP BY c.w"),
        1000);
    container_make(*state, VIEW("w0", "/w", "\"o0\"", "SELECT c.id, c.w FROM c"), 1000);
    container_make(
        *state,
        VIEW("w1", "/w", "\"o1\"", "SELECT c.w, COUNT(1) AS n, MIN(c.x) AS m FROM c GROUP BY c.w"),
        1000);
    container_make(*state, VIEW("b", "/x", "\"c\",\"o0\",\"o1\"", "SELECT c.x, c.w FROM c"), 1000);
    for (int round = 0; round < 40; round++) {
        struct error err;

        for (int i = 0; i < 150; i++) {
            if (i == 60 && round % 2)
                fault_engine_fail_nth(world.fixture->engines[drawn(&world, 2)], FAULT_WRITES,
                                      1 + drawn(&world, 60), ERROR_STORE_IO,
                                      drawn(&world, 2) ? FAULT_WRITTEN : FAULT_NOT_WRITTEN);
            if (!promoted_step(&world, &done, &err) && err.code == ERROR_STORE_IO) {
                world_restart(&world); /* the node is as a killed process leaves it */
                break;
            }
        }
        promoted_quiet(&world, round % 2 || round % 4 == 0);
        arena_reset(world.fixture->arena);
    }
    assert_true(done > 60);
    rest_views_free(world.views);
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_view_is_filled_and_follows),
        STORY(what_was_removed_from_the_history_is_not_missed),
        STORY(a_view_that_is_too_far_behind_is_built_again),
        STORY(a_source_without_views_is_followed_no_more),
        STORY(groups_are_kept_and_vanish),
        STORY(groups_are_found_again_after_their_history_was_removed),
        STORY(views_are_what_their_queries_say_after_whatever_happened),
        STORY(a_rekey_of_either_side_leaves_the_view_right),
        STORY(groups_that_two_rekeys_placed_as_before_are_made_anew),
        STORY(a_rekey_to_what_rows_of_groups_never_have_is_refused),
        STORY(a_generation_that_is_not_written_down_is_not_used),
        STORY(views_have_what_their_sources_show_of_promoted_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
