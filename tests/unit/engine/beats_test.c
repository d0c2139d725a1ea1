#include "engine/beats.h"
#include "support/check.h"

static bool yes(void *context UNUSED)
{
    return true;
}

static bool no(void *context UNUSED)
{
    return false;
}

static struct engine_beats *begun(uint64_t found)
{
    struct engine_beats *beats = engine_beats_new(500);

    engine_beats_begin(beats, found, 1000);
    return beats;
}

static void a_beat_is_dated_by_when_it_was_sent(void **state UNUSED)
{
    CLEANUP(engine_beats_free) struct engine_beats *beats = begun(7);
    uint64_t first = engine_beats_next(beats, 1100, yes, NULL);
    uint64_t second = engine_beats_next(beats, 1600, yes, NULL);
    int64_t sent_ms;

    assert_true(engine_beats_sent(beats, first, &sent_ms));
    assert_int_equal(sent_ms, 1100);
    assert_true(engine_beats_sent(beats, second, &sent_ms));
    assert_int_equal(sent_ms, 1600);
}

static void beats_of_another_process_are_not_known(void **state UNUSED)
{
    CLEANUP(engine_beats_free) struct engine_beats *beats = begun(7);
    uint64_t first = engine_beats_next(beats, 1100, yes, NULL);
    int64_t sent_ms;

    assert_true(first > 7 + ENGINE_BEATS_JUMP);
    assert_false(engine_beats_sent(beats, 7, &sent_ms));
    assert_false(engine_beats_sent(beats, 8, &sent_ms));
    assert_false(engine_beats_sent(beats, first + 1, &sent_ms));
}

static void beats_of_before_a_move_prove_nothing(void **state UNUSED)
{
    CLEANUP(engine_beats_free) struct engine_beats *beats = begun(7);
    uint64_t before = engine_beats_next(beats, 1100, yes, NULL), after;
    int64_t sent_ms;

    engine_beats_move(beats, 1200);
    assert_false(engine_beats_sent(beats, before, &sent_ms));
    after = engine_beats_next(beats, 1300, yes, NULL);
    assert_true(after > before);
    assert_true(engine_beats_sent(beats, after, &sent_ms));
    assert_int_equal(sent_ms, 1300);
}

static void a_beat_that_may_not_be_sent_takes_no_number(void **state UNUSED)
{
    CLEANUP(engine_beats_free) struct engine_beats *beats = begun(7);
    uint64_t first = engine_beats_next(beats, 1100, yes, NULL);

    assert_int_equal(engine_beats_next(beats, 1200, no, NULL), 0);
    assert_int_equal(engine_beats_next(beats, 1300, yes, NULL), first + 1);
}

static void opening_the_node_again_gives_no_number_twice(void **state UNUSED)
{
    CLEANUP(engine_beats_free) struct engine_beats *beats = begun(7);
    uint64_t first = engine_beats_next(beats, 1100, yes, NULL);
    int64_t sent_ms;

    engine_beats_begin(beats, 7, 2000); /* the beat was lost by a failover */
    assert_true(engine_beats_next(beats, 2100, yes, NULL) > first);
    assert_false(engine_beats_sent(beats, first, &sent_ms));
}

/* Not when it was sent, but since when it can have been. */
static void a_beat_that_is_not_kept_any_more_is_as_old_as_it_can_be(void **state UNUSED)
{
    CLEANUP(engine_beats_free) struct engine_beats *beats = begun(7);
    uint64_t first = engine_beats_next(beats, 1100, yes, NULL);
    int64_t sent_ms;

    for (int i = 0; i < ENGINE_BEATS_KEPT; i++)
        (void)engine_beats_next(beats, 1200 + i, yes, NULL);
    assert_true(engine_beats_sent(beats, first, &sent_ms));
    assert_int_equal(sent_ms, 1000);
    assert_true(engine_beats_sent(beats, first + 1, &sent_ms));
    assert_int_equal(sent_ms, 1200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_beat_is_dated_by_when_it_was_sent),
        cmocka_unit_test(beats_of_another_process_are_not_known),
        cmocka_unit_test(beats_of_before_a_move_prove_nothing),
        cmocka_unit_test(a_beat_that_may_not_be_sent_takes_no_number),
        cmocka_unit_test(opening_the_node_again_gives_no_number_twice),
        cmocka_unit_test(a_beat_that_is_not_kept_any_more_is_as_old_as_it_can_be),
    };

    return cmocka_run_group_tests_name("engine/beats", tests, NULL, NULL);
}
