#include "partition/pledge.h"

#include "base/thread.h"
#include "partition/commit.h"
#include "support/check.h"

enum { P = 7, Q = 8 };

static struct pledge_id id_of(uint8_t n)
{
    return (struct pledge_id){.bytes = {n}};
}

/* A part that writes w, has read r, and the range [s, t). */
static struct slice written = SLICE("w"), relied[] = {SLICE("w"), SLICE("r")};
static struct engine_range scanned = {SLICE("s"), SLICE("t")};

static struct commit_batch batch_of(struct commit_part *part)
{
    *part = (struct commit_part){.partition = P,
                                 .epoch = 1,
                                 .touched = &written,
                                 .touched_count = 1,
                                 .relied = relied,
                                 .relied_count = 2,
                                 .scanned = &scanned,
                                 .scanned_count = 1};
    return (struct commit_batch){.parts = part, .part_count = 1};
}

static struct pledge *pledge_made(uint8_t n)
{
    struct commit_part part;
    struct commit_batch batch = batch_of(&part);

    return pledge_new(id_of(n), 3, 1234, &batch, SLICE("writes"));
}

static bool meets(struct pledges *pledges, uint32_t partition, struct slice key, bool writes)
{
    struct commit_part part = {.partition = partition, .epoch = 1};
    struct commit_batch batch = {.parts = &part, .part_count = 1};

    if (writes) {
        part.touched = &key;
        part.touched_count = 1;
    } else {
        part.relied = &key;
        part.relied_count = 1;
    }
    return pledges_meet(pledges, &batch);
}

static bool scan_meets(struct pledges *pledges, struct slice min, struct slice max)
{
    struct engine_range range = {min, max};
    struct commit_part part = {.partition = P, .epoch = 1, .scanned = &range, .scanned_count = 1};
    struct commit_batch batch = {.parts = &part, .part_count = 1};

    return pledges_meet(pledges, &batch);
}

static void a_record_says_what_was_promised(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(pledge_free) struct pledge *made = pledge_made(1), *read = NULL;
    struct slice key = pledge_key(PLEDGE_PROMISE, made->id, arena);
    struct slice value = pledge_encode(made, arena);
    struct error err;

    assert_ok(pledge_decode(key, value, &read, &err), &err);
    assert_true(pledge_id_equal(read->id, made->id));
    assert_int_equal(read->home, 3);
    assert_int_equal(read->wall_ms, 1234);
    assert_int_equal(read->item_count, 3);
    assert_true(read->items[0].written && !read->items[1].written && !read->items[2].written);
    assert_slice_equal(read->items[2].key, SLICE("r"));
    assert_int_equal(read->range_count, 1);
    assert_slice_equal(read->ranges[0].range.max, SLICE("t"));
    assert_slice_equal(read->writes, SLICE("writes"));
}

static void a_damaged_record_is_refused(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(pledge_free) struct pledge *made = pledge_made(1);
    struct slice key = pledge_key(PLEDGE_PROMISE, made->id, arena);
    struct slice value = pledge_encode(made, arena);
    struct pledge *read;
    struct error err;
    uint8_t *newer;

    for (size_t len = 0; len < value.len - made->writes.len; len++) {
        assert_false(pledge_decode(key, slice_first(value, len), &read, &err));
        assert_int_equal(err.code, ERROR_STORE_CORRUPT);
    }
    assert_false(pledge_decode(slice_first(key, key.len - 1), value, &read, &err));
    assert_int_equal(err.code, ERROR_STORE_CORRUPT);
    newer = (uint8_t *)arena_copy(arena, value).data;
    newer[0] = 1; /* of before entries lay beside items: the same in all else */
    assert_ok(pledge_decode(key, slice_of(newer, value.len), &read, &err), &err);
    pledge_free(read);
    newer[0] = 3;
    assert_false(pledge_decode(key, slice_of(newer, value.len), &read, &err));
    assert_int_equal(err.code, ERROR_STORE_VERSION);
}

static void keys_are_kept_from_writers_until_they_are_let_go(void **state UNUSED)
{
    struct pledges pledges;

    pledges_init(&pledges);
    assert_false(meets(&pledges, P, SLICE("w"), true));
    pledges_add(&pledges, pledge_made(1));
    pledges_add(&pledges, pledge_made(1)); /* once is enough */
    assert_int_equal(atomic_load(&pledges.count), 1);
    assert_true(meets(&pledges, P, SLICE("w"), true));
    assert_true(meets(&pledges, P, SLICE("r"), true));  /* it was read */
    assert_true(meets(&pledges, P, SLICE("s1"), true)); /* in a range that was */
    assert_false(meets(&pledges, P, SLICE("t"), true));
    assert_false(meets(&pledges, Q, SLICE("w"), true));
    assert_true(pledges_leave(&pledges, Q, 0));
    assert_false(pledges_leave(&pledges, P, 1));
    pledges_remove(&pledges, id_of(2));
    assert_true(pledges_have(&pledges, id_of(1)));
    pledges_remove(&pledges, id_of(1));
    assert_false(meets(&pledges, P, SLICE("w"), true));
    assert_true(pledges_leave(&pledges, P, 0));
    pledges_done(&pledges);
}

/* As in the first part of a spread key, which has the sums of all. */
static void a_part_with_sums_alone_is_kept_and_has_a_window(void **state UNUSED)
{
    struct commit_delta delta = {.key = SLICE("clk"), .amounts = {5, 1}};
    struct commit_part parts[2] = {
        {.partition = Q, .epoch = 1, .touched = &written, .touched_count = 1},
        {.partition = P, .epoch = 1, .deltas = &delta, .delta_count = 1}};
    struct commit_batch batch = {.parts = parts, .part_count = 2};
    struct pledges pledges;

    assert_true(pledge_bit(P) != pledge_bit(Q));
    pledges_init(&pledges);
    pledges_add(&pledges, pledge_new(id_of(1), 3, 1234, &batch, SLICE("writes")));
    assert_false(meets(&pledges, P, SLICE("w"), true));
    assert_false(pledges_leave(&pledges, P, 1));
    pledges_decide(&pledges, id_of(1));
    assert_true(pledges_windows(&pledges) == (pledge_bit(P) | pledge_bit(Q)));
    pledges_remove(&pledges, id_of(1));
    assert_true(pledges_windows(&pledges) == 0);
    pledges_done(&pledges);
}

static void whoever_only_read_comes_before_what_is_not_decided(void **state UNUSED)
{
    struct pledges pledges;

    pledges_init(&pledges);
    pledges_add(&pledges, pledge_made(1));
    assert_false(meets(&pledges, P, SLICE("w"), false));
    assert_false(scan_meets(&pledges, SLICE("v"), SLICE("x")));
    pledges_decide(&pledges, id_of(1));
    assert_true(meets(&pledges, P, SLICE("w"), false));
    assert_false(meets(&pledges, P, SLICE("r"), false)); /* that is not written */
    assert_true(scan_meets(&pledges, SLICE("v"), SLICE("x")));
    assert_false(scan_meets(&pledges, SLICE("x"), SLICE("y")));
    pledges_done(&pledges);
}

/* --- Windows --------------------------------------------------------------------------------- */

struct reader {
    struct pledges *pledges;
    struct thread thread;
    enum pledge_moment moment;
    bool passed;
    struct error err;
};

static void reader_main(void *context)
{
    struct reader *reader = context;

    reader->passed = pledges_await(reader->pledges, pledge_bit(P), reader->moment, &reader->err);
}

static void readers_pass_when_the_windows_that_they_found_have_closed(void **state UNUSED)
{
    struct pledges pledges;
    struct reader reader = {.pledges = &pledges, .moment = PLEDGE_BEFORE_READING};
    struct error err;

    pledges_init(&pledges);
    pledges_window_open(&pledges, id_of(1), pledge_bit(P));
    assert_true(pledges_windows(&pledges) & pledge_bit(P));
    thread_start(&reader.thread, "reader", reader_main, &reader);
    pledges_window_open(&pledges, id_of(2), pledge_bit(Q));
    pledges_window_close(&pledges, id_of(1));
    thread_join(&reader.thread);
    assert_ok(reader.passed, &reader.err);
    assert_int_equal(pledges_windows(&pledges), pledge_bit(Q));
    assert_ok(pledges_await(&pledges, pledge_bit(P), PLEDGE_BEFORE_READING, &err), &err);
    pledges_done(&pledges);
}

static void who_has_read_waits_for_homes_alone(void **state UNUSED)
{
    struct pledges pledges;
    struct reader reader = {.pledges = &pledges, .moment = PLEDGE_AFTER_READING};
    struct error err;

    pledges_init(&pledges);
    pledges_add(&pledges, pledge_made(1));
    pledges_decide(&pledges, id_of(1));
    assert_ok(pledges_await(&pledges, pledge_bit(P), PLEDGE_AFTER_READING, &err), &err);
    pledges_window_open(&pledges, id_of(2), pledge_bit(P));
    thread_start(&reader.thread, "reader", reader_main, &reader);
    pledges_window_close(&pledges, id_of(2));
    thread_join(&reader.thread);
    assert_ok(reader.passed, &reader.err);
    pledges_remove(&pledges, id_of(1));
    assert_int_equal(pledges_windows(&pledges), 0);
    pledges_done(&pledges);
}

static void a_window_that_stays_open_is_told(void **state UNUSED)
{
    struct pledges pledges;
    struct error err;

    pledges_init(&pledges);
    pledges_window_open(&pledges, id_of(1), PLEDGE_EVERY_PARTITION);
    assert_false(pledges_await(&pledges, pledge_bit(P), PLEDGE_BEFORE_READING, &err));
    assert_int_equal(err.code, ERROR_PLEDGED);
    pledges_done(&pledges);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_says_what_was_promised),
        cmocka_unit_test(a_damaged_record_is_refused),
        cmocka_unit_test(keys_are_kept_from_writers_until_they_are_let_go),
        cmocka_unit_test(a_part_with_sums_alone_is_kept_and_has_a_window),
        cmocka_unit_test(whoever_only_read_comes_before_what_is_not_decided),
        cmocka_unit_test(readers_pass_when_the_windows_that_they_found_have_closed),
        cmocka_unit_test(who_has_read_waits_for_homes_alone),
        cmocka_unit_test(a_window_that_stays_open_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
