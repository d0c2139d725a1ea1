/* The history of a node: records, cluster time, what is settled, trimming. */
#include "partition/history.h"

#include "base/bytes.h"
#include "partition/layout.h"
#include "support/check.h"
#include "support/fault_engine.h"

#include <sched.h>

/* A clock whose hands the test turns. */
static int64_t wall_now = 1000000;
static int64_t wall_read(void *context UNUSED)
{
    return wall_now;
}
static const struct clock hand = {.wall_ms = wall_read, .monotonic_ms = wall_read};

struct node {
    struct engine *engine;
    struct commit_clock *times;
    struct commit *commit;
};

static void node_open(struct node *node)
{
    const struct engine_options options = {0};
    struct error err;

    node->times = commit_clock_new(&hand);
    assert_ok(engine_open(SLICE("memory:"), &options, &node->engine, &err), &err);
    node->engine = fault_engine_new(node->engine);
    assert_ok(history_join(node->engine, node->times, &err), &err);
    node->commit = commit_new(
        &(struct commit_options){.engine = node->engine, .clock = &hand, .times = node->times});
    assert_ok(commit_partition_open(node->commit, PARTITION_HISTORY, HISTORY_EPOCH, &err), &err);
}

static void node_close(struct node *node)
{
    commit_free(node->commit);
    commit_clock_free(node->times);
    engine_close(node->engine);
}

struct telling {
    struct commit_batch batch;
    struct commit_part part;
    struct engine_op op;
};

static void telling_stamp(struct commit_batch *batch)
{
    struct telling *telling = CONTAINER_OF(batch, struct telling, batch);

    bytes_put_be64((uint8_t *)telling->op.key.data + HISTORY_KEY_TIME_AT, telling->part.stamp.time);
}

static void telling_make(struct telling *telling, struct slice payload, struct arena *arena)
{
    struct history_record record = {.kind = HISTORY_INSERT, .payload = payload};

    record.origin = (struct history_origin){.account = 1, .database = 2, .container = 3};
    telling->op = (struct engine_op){ENGINE_PUT, history_key_encode(record.place, arena),
                                     history_record_encode(&record, arena)};
    telling->part = history_part(&telling->op, 1, arena);
    telling->batch = (struct commit_batch){.parts = &telling->part,
                                           .part_count = 1,
                                           .moment = COMMIT_NOTHING_RELIED_ON,
                                           .stamp = telling_stamp};
}

/* Writes one record, and says when. */
static uint64_t tell(struct node *node, struct slice payload)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct telling telling;
    struct error err;

    telling_make(&telling, payload, arena);
    assert_ok(commit_run(node->commit, &telling.batch, &err), &err);
    return telling.part.stamp.time;
}

static size_t records_count(struct node *node)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_entry entry;
    struct error err;
    size_t count = 0;

    assert_ok(engine_iterator_new(node->engine, NULL, PARTITION_HISTORY,
                                  (struct engine_range){SLICE("h\0\0\0\0\0\0\0\1"), SLICE("i")},
                                  false, ENGINE_READ_ANY, &iterator, &err),
              &err);
    while (engine_iterator_next(iterator, &entry, &err) && entry.found == ENGINE_FOUND)
        count++;
    return count;
}

static void a_record_is_read_as_it_was_written(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct history_record record = {
        .place = {.time = 7ULL << 32 | 5, .origin = 11, .ordinal = 3},
        .kind = HISTORY_UPDATE,
        .wall_ms = 7123,
        .origin = {.account = 1,
                   .database = 2,
                   .container = 3,
                   .database_name = SLICE("shop"),
                   .container_name = SLICE("orders")},
        .payload = SLICE("\5\0\0\0\0")};
    struct slice key = history_key_encode(record.place, arena);
    struct slice value = history_record_encode(&record, arena);
    struct history_record read;
    struct error err;

    assert_ok(history_record_decode(key, value, &read, &err), &err);
    assert_int_equal(history_place_compare(read.place, record.place), 0);
    assert_int_equal(read.kind, HISTORY_UPDATE);
    assert_int_equal(read.wall_ms, 7123);
    assert_int_equal(read.origin.container, 3);
    assert_slice_equal(read.origin.database_name, SLICE("shop"));
    assert_slice_equal(read.origin.container_name, SLICE("orders"));
    assert_slice_equal(read.payload, record.payload);
    for (size_t len = 0; len + record.payload.len < value.len; len++)
        assert_fails(history_record_decode(key, slice_first(value, len), &read, &err), &err,
                     ERROR_STORE_CORRUPT);
}

static void time_grows_with_every_batch_and_follows_the_wall(void **state UNUSED)
{
    struct node node;
    uint64_t first, second, later;

    wall_now = 1000000;
    node_open(&node);
    first = tell(&node, SLICE(""));
    second = tell(&node, SLICE(""));
    wall_now += 5000;
    later = tell(&node, SLICE(""));
    wall_now -= 60000; /* the wall clock was set back */
    assert_int_equal(first >> 32, 1000);
    assert_true(second == first + 1);
    assert_int_equal(later >> 32, 1005);
    assert_true(tell(&node, SLICE("")) == later + 1);
    node_close(&node);
}

static void a_clock_begins_behind_what_a_node_has_written(void **state UNUSED)
{
    CLEANUP(commit_clock_free) struct commit_clock *another = NULL;
    struct node node;
    struct error err;
    uint64_t last;

    wall_now = 1000000;
    node_open(&node);
    last = tell(&node, SLICE(""));
    wall_now = 500000;
    another = commit_clock_new(&hand);
    assert_ok(history_join(node.engine, another, &err), &err);
    assert_true(commit_clock_now(another) >= last);
    node_close(&node);
}

static void nothing_is_settled_that_a_member_may_still_write(void **state UNUSED)
{
    CLEANUP(commit_clock_free) struct commit_clock *times = commit_clock_new(&hand);
    unsigned one = commit_clock_join(times), other = commit_clock_join(times);
    uint64_t early, late;

    commit_clock_begin(times, one);
    early = commit_clock_tick(times);
    commit_clock_begin(times, other);
    late = commit_clock_tick(times);
    commit_clock_end(times, other);
    assert_true(late > early);
    assert_true(commit_clock_settled(times) < early); /* late is visible, early is not */
    commit_clock_end(times, one);
    assert_true(commit_clock_settled(times) >= late);
    commit_clock_leave(times, one);
    commit_clock_leave(times, other);
}

static void what_is_noted_is_known_by_container_database_and_account(void **state UNUSED)
{
    CLEANUP(commit_clock_free) struct commit_clock *times = commit_clock_new(&hand);
    const struct history_origin origin = {
        .account = 1, .database_name = SLICE("shop"), .container_name = SLICE("orders")};

    history_note(times, &origin, 77);
    assert_int_equal(commit_clock_noted(times, history_hash(1, SLICE("shop"), SLICE("orders"))),
                     77);
    assert_int_equal(commit_clock_noted(times, history_hash(1, SLICE("shop"), SLICE(""))), 77);
    assert_int_equal(commit_clock_noted(times, history_hash(1, SLICE(""), SLICE(""))), 77);
    assert_int_equal(commit_clock_noted(times, history_hash(1, SLICE("shop"), SLICE("users"))), 0);
    history_note(times, &origin, 70);
    assert_int_equal(commit_clock_noted(times, history_hash(1, SLICE("shop"), SLICE("orders"))),
                     77);
}

static void calls_count(void *context)
{
    ++*(int *)context;
}

static void who_listens_is_told_of_every_group_with_changes(void **state UNUSED)
{
    struct node node;
    int calls = 0;

    node_open(&node);
    commit_clock_listen(node.times, calls_count, &calls);
    (void)tell(&node, SLICE(""));
    commit_clock_listen(node.times, NULL, NULL);
    assert_int_equal(calls, 1);
    (void)tell(&node, SLICE(""));
    assert_int_equal(calls, 1);
    node_close(&node);
}

static void what_is_older_than_the_retention_goes_and_is_marked(void **state UNUSED)
{
    const struct history_limits limits = {.retention_ms = 64000};
    struct node node;
    struct error err;
    uint64_t old, young, mark;
    bool removed;

    wall_now = 1000000;
    node_open(&node);
    old = tell(&node, SLICE("old"));
    wall_now += 64500;
    young = tell(&node, SLICE("young"));
    assert_ok(history_trim(node.engine, node.commit, &limits, wall_now, &removed, &err), &err);
    assert_false(removed); /* not worth it yet */
    wall_now += 2500;
    assert_ok(history_trim(node.engine, node.commit, &limits, wall_now, &removed, &err), &err);
    assert_true(removed);
    assert_ok(history_mark(node.engine, &mark, &err), &err);
    assert_true(mark >= old && mark < young);
    assert_int_equal(records_count(&node), 1);
    node_close(&node);
}

/* Its own records are not counted as removed by it. */
static void what_went_with_another_node_is_marked_too(void **state UNUSED)
{
    const struct history_limits limits = {.retention_ms = 1000000};
    struct node node;
    struct error err;
    struct history_size before, after;
    uint64_t mark, first, last;
    bool removed;

    wall_now = 2000000;
    node_open(&node);
    assert_ok(history_last(node.engine, &last, &err), &err);
    assert_int_equal(last, 0);
    first = tell(&node, SLICE(""));
    assert_ok(history_last(node.engine, &last, &err), &err);
    assert_true(last == first);
    assert_ok(history_size(node.engine, &before, &err), &err);
    assert_ok(history_gap(node.engine, node.commit, first + 5, &err), &err);
    assert_ok(history_gap(node.engine, node.commit, first + 2, &err),
              &err); /* it never goes back */
    assert_ok(history_mark(node.engine, &mark, &err), &err);
    assert_true(mark == first + 5);
    assert_ok(history_trim(node.engine, node.commit, &limits, wall_now, &removed, &err), &err);
    assert_false(removed);
    assert_ok(history_size(node.engine, &after, &err), &err);
    assert_int_equal(after.records, before.records);
    assert_int_equal(records_count(&node), 1);
    node_close(&node);
}

/* Whoever follows changes of all nodes goes no further than before a write in doubt. */
static void what_was_in_doubt_is_settled_though_nobody_writes(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct node node;
    struct telling telling;
    struct error err;
    int64_t since_ms;

    wall_now = 1000000;
    node_open(&node);
    (void)tell(&node, SLICE(""));
    telling_make(&telling, SLICE(""), arena);
    fault_engine_fail_nth(node.engine, FAULT_WRITES, 1, ERROR_STORE_IO, FAULT_NOT_WRITTEN);
    assert_fails(commit_run(node.commit, &telling.batch, &err), &err, ERROR_STORE_IO);
    assert_true(commit_clock_settled(node.times) < commit_clock_now(node.times));
    fault_engine_heal(node.engine);
    since_ms = clock_monotonic_ms();
    while (commit_clock_settled(node.times) < commit_clock_now(node.times) &&
           clock_monotonic_ms() - since_ms < 60 * 1000)
        sched_yield();
    assert_true(commit_clock_settled(node.times) == commit_clock_now(node.times));
    assert_false(commit_statistics(node.commit).poisoned);
    node_close(&node);
}

static void who_looks_is_woken_without_a_commit(void **state UNUSED)
{
    struct node node;
    int calls = 0;
    uint64_t before, passed;

    node_open(&node);
    commit_clock_listen(node.times, calls_count, &calls);
    before = commit_clock_settled(node.times);
    passed = commit_clock_pass(node.times);
    assert_true(passed > before && commit_clock_settled(node.times) >= passed);
    commit_clock_look(node.times);
    assert_int_equal(calls, 1);
    commit_clock_listen(node.times, NULL, NULL);
    node_close(&node);
}

static void what_is_too_much_makes_way_oldest_first(void **state UNUSED)
{
    static const uint8_t kilobyte[1024];
    const struct history_limits limits = {.retention_ms = 1000000, .bytes_max = 64 * 1024};
    struct node node;
    struct error err;
    struct history_size size;
    uint64_t mark, last = 0;
    bool removed;

    wall_now = 2000000;
    node_open(&node);
    for (int i = 0; i < 200; i++) {
        wall_now += 10;
        last = tell(&node, slice_of(kilobyte, sizeof kilobyte));
    }
    assert_ok(history_trim(node.engine, node.commit, &limits, wall_now, &removed, &err), &err);
    assert_true(removed);
    assert_ok(history_size(node.engine, &size, &err), &err);
    assert_true(size.bytes <= limits.bytes_max && size.bytes >= limits.bytes_max / 2);
    assert_int_equal(size.records, records_count(&node));
    assert_ok(history_mark(node.engine, &mark, &err), &err);
    assert_true(mark < last);
    node_close(&node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_read_as_it_was_written),
        cmocka_unit_test(time_grows_with_every_batch_and_follows_the_wall),
        cmocka_unit_test(a_clock_begins_behind_what_a_node_has_written),
        cmocka_unit_test(nothing_is_settled_that_a_member_may_still_write),
        cmocka_unit_test(what_was_in_doubt_is_settled_though_nobody_writes),
        cmocka_unit_test(what_is_noted_is_known_by_container_database_and_account),
        cmocka_unit_test(who_listens_is_told_of_every_group_with_changes),
        cmocka_unit_test(what_is_older_than_the_retention_goes_and_is_marked),
        cmocka_unit_test(what_went_with_another_node_is_marked_too),
        cmocka_unit_test(who_looks_is_woken_without_a_commit),
        cmocka_unit_test(what_is_too_much_makes_way_oldest_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
