/* Splits, merges, moves and isolations of real containers, step by step and cut off at every write.
 */
#include "migrator_fixture.h"

#include "item/feed_read.h"
#include "migration/migrator_private.h"

/* --- What it does ---------------------------------------------------------------------------- */

static void a_split_keeps_every_item_and_everything_about_it(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *before = NULL;
    size_t count;
    const struct partition_span *spans;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 200, "a");
    before = opened(fixture);
    split(fixture, 0, 3);
    container_unref(TAKE(before));
    settle(fixture);
    verify(fixture, 200);
    before = opened(fixture);
    spans = partition_map_spans(container_map(before), &count);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < count; i++) {
        struct commit *commit = container_commit(before, spans[i].node);
        struct error err;
        uint64_t lsn;

        assert_int_equal(spans[i].parent_count, 1);
        assert_true(spans[i].share > 0.33 && spans[i].share < 0.34);
        assert_ok(commit_partition_lsn(commit, spans[i].id, &lsn, &err), &err);
        assert_true(lsn >= 200 && lsn <= 201); /* the first target was cleaned up */
    }
    assert_int_equal(fixture->published, 1);
    assert_int_equal(fixture->dropped, 1);
    items_put(fixture, 100, 250, "b");
    verify(fixture, 250);
    item_expect(fixture, 50, "a");
    item_expect(fixture, 150, "b");
}

static void what_is_tried_out_is_what_is_done_then(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *before = NULL;
    CLEANUP(container_unref) struct container *now = NULL;
    CLEANUP(migration_unref) struct migration *plan = NULL;
    CLEANUP(migration_unref) struct migration *again = NULL;
    const struct partition_span *targets, *same, *spans;
    size_t count, same_count;
    struct error err;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 200, "a");
    before = opened(fixture);
    spans = partition_map_spans(container_map(before), &count);
    assert_ok(migrator_split_plan(fixture->migrator, before, spans[0].id, 3, &plan, &err), &err);
    assert_ok(migrator_split_plan(fixture->migrator, before, spans[0].id, 3, &again, &err), &err);
    assert_false(migrator_split_plan(fixture->migrator, before, 999, 3, &again, &err));
    assert_int_equal(err.code, ERROR_PARTITION_UNKNOWN);
    targets = migration_targets(plan, &count);
    same = migration_targets(again, &same_count);
    assert_int_equal(count, 3);
    assert_int_equal(same_count, 3);
    assert_int_equal(same[0].id, targets[0].id); /* no id was taken */
    now = opened(fixture);
    assert_null(container_migration(now));
    assert_int_equal(partition_map_version(container_map(now)),
                     partition_map_version(container_map(before)));
    container_unref(TAKE(now));
    container_unref(TAKE(before));

    split(fixture, 0, 3);
    settle(fixture);
    verify(fixture, 200);
    now = opened(fixture);
    spans = partition_map_spans(container_map(now), &count);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < count; i++) {
        assert_true(slice_equal(spans[i].min, targets[i].min));
        assert_true(slice_equal(spans[i].max, targets[i].max));
        assert_int_equal(spans[i].id, targets[i].id);
    }
}

static void writes_during_the_copy_arrive_too(void **state)
{
    struct fixture *fixture = *state;
    struct error err;
    bool busy;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 100, "a");
    split(fixture, 0, 2);
    for (int i = 0; i < 30 && is_moving(fixture); i++) {
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
        items_put(fixture, i * 3, i * 3 + 1, "b");
        item_delete(fixture, i * 3 + 1);
        items_put(fixture, 1000 + i, 1001 + i, "c");
    }
    settle(fixture);
    for (int i = 0; i < 30; i++) {
        item_expect(fixture, i * 3, "b");
        item_expect(fixture, i * 3 + 1, NULL);
        item_expect(fixture, i * 3 + 2, "a");
    }
    verify(fixture, 100);
}

/* 1/2 and six times 1/12 add up to a little more than 1. */
static void partitions_of_any_shares_are_merged_into_one(void **state)
{
    struct fixture *fixture = *state;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 30, "a");
    split(fixture, 0, 2);
    settle(fixture);
    split(fixture, 1, 6);
    settle(fixture);
    assert_int_equal(span_count(fixture), 7);
    merge(fixture, 0, 7);
    settle(fixture);
    assert_int_equal(span_count(fixture), 1);
    verify(fixture, 30);
}

/* By turns. */
static void begin_split_or_merge(struct fixture *fixture)
{
    if (span_count(fixture) == 1)
        split(fixture, 0, 2);
    else
        merge(fixture, 0, 2);
}

/* What is behind the place copying has come to is left to copying, so little is to be caught up
 * with; what is before it is followed, so that it is not left for the end. */
static void journals_are_followed_while_copying(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    struct migrator_progress progress = {0};
    uint64_t followed = 0;
    struct error err;
    bool busy;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 300, "a");
    split(fixture, 0, 2);
    container = opened(fixture);
    for (int i = 0; progress.phase <= MIGRATOR_COPYING; i++) {
        followed = progress.keys;
        items_put(fixture, i % 300, i % 300 + 1, i / 300 % 2 ? "c" : "b");
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
        assert_true(migrator_progress(fixture->migrator, container, &progress));
    }
    assert_true(followed > 100);
    container_unref(TAKE(container));
    settle(fixture);
    verify(fixture, 300);
}

/* A load may be there although nothing says so: an entry that is deleted then must not stay in the
 * target, although copying would come to it again. */
static void what_a_lost_load_has_left_is_followed_too(void **state)
{
    struct fixture *fixture = *state;
    struct error err;
    bool busy;

    container_make(fixture, BODY, 400);
    for (unsigned nth = 1; nth <= 10; nth++) { /* those before the fence */
        items_put(fixture, 0, 60, nth % 2 ? "a" : "b");
        begin_split_or_merge(fixture);
        fault_engine_fail_nth(fixture->engines[0], FAULT_WRITES, nth, ERROR_STORE_UNAVAILABLE,
                              FAULT_WRITTEN);
        for (int i = 0; i < 1000 && migrator_round(fixture->migrator, &busy, &err); i++)
            ;
        restart(fixture);
        for (int i = 0; i < 60; i += 2)
            item_delete(fixture, i);
        items_put(fixture, 1000, 1150, "c"); /* so that the next load comes less far */
        settle(fixture);
        verify(fixture, 30 + 150);
        for (int i = 1000; i < 1150; i++)
            item_delete(fixture, i);
    }
}

static void a_merge_brings_neighbours_together(void **state)
{
    struct fixture *fixture = *state;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 150, "a");
    split(fixture, 0, 3);
    settle(fixture);
    assert_int_equal(span_count(fixture), 3);
    merge(fixture, 0, 3);
    settle(fixture);
    assert_int_equal(span_count(fixture), 1);
    verify(fixture, 150);
    items_put(fixture, 0, 160, "b");
    verify(fixture, 160);
}

#define BODY_VERSIONS                                                                              \
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2},"                          \
    "\"changeFeedPolicy\":{\"retentionDuration\":10}}"

static int64_t an_hour_later(void *context UNUSED)
{
    return clock_system.wall_ms(clock_system.context) + 3600000;
}

/* Trims the partition as if it were an hour later. */
static void trim(struct fixture *fixture, size_t index)
{
    const struct clock later = {.wall_ms = an_hour_later,
                                .monotonic_ms = clock_system.monotonic_ms};
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct item_space space = container_space(container, &later, fixture->gates);
    struct item_scope scope;
    struct error err;
    size_t count, removed;

    scope = item_space_span_scope(&space,
                                  &partition_map_spans(container_map(container), &count)[index]);
    assert_ok(feed_trim(&scope, 1000, &removed, &err), &err);
    assert_true(removed > 0);
}

/* Reads all versions of a range behind an LSN. */
static bool versions_read(struct fixture *fixture, struct slice min, struct slice max, uint64_t lsn,
                          struct error *err)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct item_space space = container_space(container, &clock_system, fixture->gates);
    struct feed_request request = {
        .mode = FEED_ALL_VERSIONS, .after_lsn = lsn, .routing_min = min, .routing_max = max};
    struct item_scope scope;
    struct feed_page page;
    size_t count;

    scope = item_space_span_scope(&space, partition_map_spans(container_map(container), &count));
    return feed_read(&scope, &request, fixture->arena, &page, err);
}

static void a_merge_leaves_readers_what_was_not_trimmed_in_their_range(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    struct slice bound;
    struct error err;
    uint64_t lsn;
    size_t count;

    container_make(fixture, BODY_VERSIONS, 400);
    items_put(fixture, 0, 100, "a");
    split(fixture, 0, 2);
    settle(fixture);
    container = opened(fixture);
    bound =
        arena_copy(fixture->arena, partition_map_spans(container_map(container), &count)[1].min);
    assert_ok(commit_partition_lsn(container_commit(container, 0), span_id(fixture, 1), &lsn, &err),
              &err);
    container_unref(TAKE(container));
    items_put(fixture, 0, 100, "b");
    items_put(fixture, 0, 100, "c");
    trim(fixture, 0);
    merge(fixture, 0, 2);
    settle(fixture);
    /* Who stands where the split was has missed something in the first range, nothing behind it. */
    assert_fails(versions_read(fixture, SLICE_NONE, bound, lsn, &err), &err, ERROR_FEED_RETENTION);
    assert_fails(versions_read(fixture, SLICE_NONE, SLICE_NONE, lsn, &err), &err,
                 ERROR_FEED_RETENTION);
    assert_ok(versions_read(fixture, bound, SLICE_NONE, lsn, &err), &err);
    split(fixture, 0, 2);
    settle(fixture);
    assert_fails(versions_read(fixture, SLICE_NONE, SLICE_NONE, lsn, &err), &err,
                 ERROR_FEED_RETENTION);
}

static void a_merge_leaves_what_the_throughput_needs(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    uint32_t ids[2];
    struct error err;

    container_make(fixture, BODY, 30000);
    container = opened(fixture);
    ids[0] = span_id(fixture, 0);
    ids[1] = span_id(fixture, 1);
    assert_fails(migrator_merge(fixture->migrator, container, ids, 2, &err), &err,
                 ERROR_BAD_REQUEST);
    assert_contains(err.message, "needs 3");
}

static void a_move_goes_to_the_other_node_and_back(void **state)
{
    struct fixture *fixture = *state;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 80, "a");
    for (int i = 0; i < 2; i++) {
        move(fixture, 0);
        items_put(fixture, 0, 10, i ? "c" : "b");
        settle(fixture);
        verify(fixture, 80);
    }
    item_expect(fixture, 3, "c");
}

static void a_key_gets_a_partition_of_its_own(void **state)
{
    struct fixture *fixture = *state;
    struct partition_key key;
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct partition_span *span;
    struct partition_range range;
    struct error err;
    size_t count;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 200, "a");
    key = key_named(fixture, "[\"k7\"]");
    container = opened(fixture);
    assert_ok(migrator_isolate(fixture->migrator, container, &key, 0.8, &err), &err);
    container_unref(TAKE(container));
    settle(fixture);
    verify(fixture, 200);
    container = opened(fixture);
    range = partition_route_range(&definition_fields(container_definition(container))->key, &key,
                                  arena);
    span = partition_map_overlap(container_map(container), range, &count);
    assert_int_equal(count, 1);
    assert_true(slice_equal(span->min, range.min) && slice_equal(span->max, range.max));
    assert_true(span->share > 0.79 && span->share < 0.81);
    assert_fails(migrator_isolate(fixture->migrator, container, &key, 0, &err), &err,
                 ERROR_BAD_REQUEST);
}

static void readers_of_the_old_map_finish_on_it(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *before = NULL;
    struct item_space space;
    struct partition_key key;
    struct document_value id = document_string(SLICE("5"));
    struct migrator_progress progress;
    struct error err;
    bool busy;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 50, "a");
    before = opened(fixture);
    space = container_space(before, &clock_system, fixture->gates);
    key = key_named(fixture, "[\"k0\"]");
    split(fixture, 0, 2);
    for (int i = 0; i < 100; i++)
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    assert_true(migrator_progress(fixture->migrator, before, &progress));
    assert_int_equal(progress.phase, MIGRATOR_DROPPING);
    assert_true(progress.pause_ms >= 0);
    assert_ok(
        item_operation_run(
            &(struct item_operation){
                .space = &space, .arena = fixture->arena, .verb = ITEM_READ, .key = key, .id = id},
            &err),
        &err);
    /* A writer among them goes on with the new map. */
    {
        struct transaction_result result = {0};

        assert_ok(item_put(fixture, before, 5, "b", &result, &err), &err);
        assert_true(result.item.header.origin != span_id(fixture, 0) ||
                    result.item.header.origin != span_id(fixture, 1));
    }
    item_expect(fixture, 5, "b");
    container_unref(TAKE(before));
    settle(fixture);
    verify(fixture, 50);
}

/* What a snapshot holds of a partition that has moved is what it was at the fence; of another it
 * may be later. So a transaction must not read both. */
static void a_transaction_does_not_enter_a_second_partition_by_an_old_map(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *before = NULL;
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct slice logicals[40];
    struct item_space space;
    struct item_scope scopes[2];
    size_t other = 0;
    struct error err;
    bool busy;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 100, "a");
    split(fixture, 0, 2);
    settle(fixture);
    before = opened(fixture);
    space = container_space(before, &clock_system, fixture->gates);
    for (int i = 0; i < 10; i++) {
        struct partition_key key = key_named(
            fixture, arena_text(fixture->arena, arena_printf(fixture->arena, "[\"k%d\"]", i)));

        logicals[i] = item_logical(&space.definition->key, &key, fixture->arena);
        if (item_space_scope(&space, logicals[i]).partition !=
            item_space_scope(&space, logicals[0]).partition)
            other = (size_t)i;
    }
    assert_true(other > 0);
    scopes[0] = item_space_scope(&space, logicals[0]);
    scopes[1] = item_space_scope(&space, logicals[other]);
    assert_ok(transaction_begin(&scopes[0], logicals[0], fixture->arena, &transaction, &err), &err);
    assert_ok(transaction_enter(transaction, &scopes[1], logicals[other], &err), &err);
    transaction_free(TAKE(transaction));
    split(fixture, 0, 2);
    for (int i = 0; i < 100; i++)
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    assert_ok(transaction_begin(&scopes[0], logicals[0], fixture->arena, &transaction, &err), &err);
    assert_fails(transaction_enter(transaction, &scopes[1], logicals[other], &err), &err,
                 ERROR_FENCED);
    assert_true(item_space_is_overtaken(&err));
}

static void a_cancelled_migration_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    struct error err;
    bool busy;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 50, "a");
    split(fixture, 0, 2);
    container = opened(fixture);
    assert_fails(migrator_move(fixture->migrator, container, span_id(fixture, 0), 1, &err), &err,
                 ERROR_BUSY);
    for (int i = 0; i < 3; i++)
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    items_put(fixture, 0, 20, "b");
    assert_ok(migrator_cancel(fixture->migrator, container, &err), &err);
    assert_fails(migrator_cancel(fixture->migrator, container, &err), &err, ERROR_BAD_REQUEST);
    container_unref(TAKE(container));
    assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    verify(fixture, 50);
    split(fixture, 0, 2);
    settle(fixture);
    verify(fixture, 50);
}

static void a_container_dropped_on_the_way_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct error err;
    bool busy;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 50, "a");
    split(fixture, 0, 2);
    for (int i = 0; i < 3; i++)
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    assert_ok(catalogue_container_drop(fixture->catalogue, SLICE("acme"), SLICE("shop"), SLICE("c"),
                                       SLICE_NONE, &err),
              &err);
    assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    restart(fixture);
    assert_ok(catalogue_purge(fixture->catalogue, &err), &err);
    assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    verify_no_others(fixture->cluster, NULL, 0);
}

static void copying_is_no_faster_than_it_may_be(void **state)
{
    struct fixture *fixture = *state;
    struct migrator_progress progress;
    CLEANUP(container_unref) struct container *container = NULL;
    struct error err;
    int64_t begun_ms, taken_ms;
    bool busy;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 100, "a");
    migrator_free(fixture->migrator);
    fixture->migrator = migrator_new(&(struct migrator_options){.catalogue = fixture->catalogue,
                                                                .clock = &fixture->clock,
                                                                .bytes_per_second = 10000,
                                                                .chunk_bytes = 2000,
                                                                .by_hand = true});
    split(fixture, 0, 2);
    begun_ms = fixture->now_ms;
    container = opened(fixture);
    do {
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
        assert_true(migrator_progress(fixture->migrator, container, &progress));
    } while (progress.phase != MIGRATOR_DROPPING);
    taken_ms = fixture->now_ms - begun_ms;
    assert_true(progress.bytes > 20000);
    assert_int_equal(progress.items, 100);
    assert_true(progress.bytes * 1000 / (uint64_t)taken_ms <= 10500);
}

/* --- Under writers --------------------------------------------------------------------------- */

/* Rounds of 16 keys are no match for four items written meanwhile, so the lag would grow for ever.
 * Under pressure writers come to less, as time does. */
static void writers_faster_than_catching_up_are_slowed_until_it_ends(void **state)
{
    struct fixture *fixture = *state;
    struct migrator_progress progress = {0};
    unsigned pressure = 0;
    struct error err;
    bool busy;
    int round = 0;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 100, "a");
    split(fixture, 0, 2);
    for (; round < 2000 && span_count(fixture) == 1; round++) {
        CLEANUP(container_unref) struct container *container = opened(fixture);

        items_put(fixture, 0, 4 >> progress.pressure, round % 2 ? "b" : "c");
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
        if (migrator_progress(fixture->migrator, container, &progress))
            pressure = MAX(pressure, progress.pressure);
    }
    assert_int_equal(span_count(fixture), 2);
    assert_in_range(pressure, 1, 3);
    settle(fixture);
    verify(fixture, 100);
}

/* --- Limits ---------------------------------------------------------------------------------- */

static void limits_settle(struct fixture *fixture)
{
    struct error err;
    bool busy = true;

    for (int i = 0; i < 20000 && (busy || is_moving(fixture)); i++)
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
}

static void a_partition_over_its_bytes_is_split(void **state)
{
    struct fixture *fixture = *state;

    fixture->limits.partition_bytes_max = 8000;
    restart(fixture);
    container_make(fixture, BODY, 400);
    for (int round = 0; round < 6; round++) {
        items_put(fixture, round * 50, round * 50 + 50, "a");
        for (int i = 0; i < 4; i++)
            limits_settle(fixture);
    }
    assert_true(span_count(fixture) >= 4);
    verify(fixture, 300);
}

static void looks_read_only_what_was_written_since(void **state)
{
    struct fixture *fixture = *state;
    struct error err;
    uint64_t before;
    bool busy;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 100, "a");
    split(fixture, 0, 4);
    settle(fixture);
    for (int i = 0; i < 5; i++)
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    before = fixture->migrator->sizes_read;
    for (int i = 0; i < 50; i++)
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    assert_int_equal(fixture->migrator->sizes_read, before);
    items_put(fixture, 7, 8, "b");
    for (int i = 0; i < 50; i++)
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    assert_int_equal(fixture->migrator->sizes_read, before + 1);
}

static void sizes_of_partitions_that_are_gone_are_forgotten(void **state UNUSED)
{
    struct migrator_sizes sizes = {0};

    for (uint32_t i = 1; i <= 1000; i++)
        *migrator_size_of(&sizes, i) = (struct migrator_size){i, i % 2, i, 10 * i};
    for (uint32_t i = 1; i <= 1000; i++)
        assert_int_equal(migrator_size_of(&sizes, i)->bytes, 10 * i);
    migrator_sizes_sweep(&sizes);
    assert_int_equal(sizes.count, 500);
    assert_int_equal(migrator_size_of(&sizes, 3)->bytes, 30);
    assert_int_equal(migrator_size_of(&sizes, 4)->bytes, 0);
    migrator_sizes_sweep(&sizes);
    assert_int_equal(sizes.count, 0);
    migrator_sizes_free(&sizes);
}

static void more_throughput_than_partitions_may_give_splits_them(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    struct catalogue_offer_change change = {.request = {.given = true, .ru = 45000}};
    struct offer offer;
    struct error err;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 50, "a");
    container = opened(fixture);
    assert_ok(catalogue_offer_replace(fixture->catalogue, SLICE("acme"),
                                      slice_of_text(container_offer(container)->rid), &change,
                                      &offer, &err),
              &err);
    container_unref(TAKE(container));
    limits_settle(fixture);
    limits_settle(fixture);
    assert_int_equal(span_count(fixture), 5);
    verify(fixture, 50);
}

static void decisions_follow_bytes_first_then_throughput(void **state UNUSED)
{
    struct migrator_figures figures[3] = {
        {.bytes = 50, .share = 0.2}, {.bytes = 120, .share = 0.5}, {.bytes = 300, .share = 0.3}};
    struct migrator_choice choice = migrator_decide(figures, 3, 100, 1, 10);

    assert_true(choice.wanted && choice.by_bytes);
    assert_int_equal(choice.span, 2);
    assert_int_equal(choice.pieces, 4);
    figures[2].whole = true;
    choice = migrator_decide(figures, 3, 100, 1, 10);
    assert_int_equal(choice.span, 1);
    assert_int_equal(choice.pieces, 2);
    assert_false(migrator_decide(figures, 3, 1000, 3, 10).wanted);
    choice = migrator_decide(figures, 3, 1000, 6, 10);
    assert_true(choice.wanted && !choice.by_bytes);
    assert_int_equal(choice.span, 1);
    assert_int_equal(choice.pieces, 3);
    figures[0].reach = 0.6;
    choice = migrator_decide(figures, 3, 1000, 6, 10);
    assert_int_equal(choice.span, 0);
    assert_int_equal(choice.pieces, 3);
    figures[0].reach = 0;
    choice = migrator_decide(figures, 3, 1000, 6, 4);
    assert_int_equal(choice.pieces, 2);
    assert_false(migrator_decide(figures, 3, 100, 6, 3).wanted);
    assert_int_equal(migrator_throttle_ms(1000000, 500000), 2000);
    assert_int_equal(migrator_throttle_ms(1000000, 0), 0);
}

/* --- Cut off --------------------------------------------------------------------------------- */

static void a_split_or_merge_cut_off_at_any_write_is_taken_up_again(void **state)
{
    container_make(*state, BODY, 400);
    cut_off_everywhere(*state, begin_split_or_merge);
}

static void begin_move(struct fixture *fixture)
{
    move(fixture, 0);
}

static void a_move_cut_off_at_any_write_is_taken_up_again(void **state)
{
    container_make(*state, BODY, 400);
    cut_off_everywhere(*state, begin_move);
}

static void a_migration_behind_its_fence_can_be_cancelled(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    struct error err;
    bool busy;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 30, "a");
    move(fixture, 0);
    container = opened(fixture);
    assert_ok(engine_partition_fence(container_engine(container, 0), span_id(fixture, 0), 2, &err),
              &err);
    restart(fixture);
    assert_ok(migrator_cancel(fixture->migrator, container, &err), &err);
    container_unref(TAKE(container));
    items_put(fixture, 0, 31, "b");
    assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    verify(fixture, 31);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_split_keeps_every_item_and_everything_about_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_tried_out_is_what_is_done_then, setup, teardown),
        cmocka_unit_test_setup_teardown(writes_during_the_copy_arrive_too, setup, teardown),
        cmocka_unit_test_setup_teardown(partitions_of_any_shares_are_merged_into_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(journals_are_followed_while_copying, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_lost_load_has_left_is_followed_too, setup, teardown),
        cmocka_unit_test_setup_teardown(a_merge_brings_neighbours_together, setup, teardown),
        cmocka_unit_test_setup_teardown(a_merge_leaves_readers_what_was_not_trimmed_in_their_range,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_merge_leaves_what_the_throughput_needs, setup, teardown),
        cmocka_unit_test_setup_teardown(a_move_goes_to_the_other_node_and_back, setup, teardown),
        cmocka_unit_test_setup_teardown(a_key_gets_a_partition_of_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(readers_of_the_old_map_finish_on_it, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_transaction_does_not_enter_a_second_partition_by_an_old_map, setup, teardown),
        cmocka_unit_test_setup_teardown(a_cancelled_migration_leaves_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_container_dropped_on_the_way_leaves_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(copying_is_no_faster_than_it_may_be, setup, teardown),
        cmocka_unit_test_setup_teardown(writers_faster_than_catching_up_are_slowed_until_it_ends,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_partition_over_its_bytes_is_split, setup, teardown),
        cmocka_unit_test_setup_teardown(looks_read_only_what_was_written_since, setup, teardown),
        cmocka_unit_test(sizes_of_partitions_that_are_gone_are_forgotten),
        cmocka_unit_test_setup_teardown(more_throughput_than_partitions_may_give_splits_them, setup,
                                        teardown),
        cmocka_unit_test(decisions_follow_bytes_first_then_throughput),
        cmocka_unit_test_setup_teardown(a_split_or_merge_cut_off_at_any_write_is_taken_up_again,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_move_cut_off_at_any_write_is_taken_up_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_migration_behind_its_fence_can_be_cancelled, setup,
                                        teardown),
    };

    return cmocka_run_group_tests_name("migration/migrator", tests, NULL, NULL);
}
