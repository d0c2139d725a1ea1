#include "base/bell.h"

#include "base/clock.h"
#include "support/check.h"

enum { LONG_MS = 600 * 1000 }; /* longer than any test lasts */

/* A thread that sleeps once, for long unless something wakes it. */
struct dreamer {
    struct sleeper sleeper;
    int64_t pause_ms;
    bool went_on;
    struct thread thread;
};

static void dream(void *context)
{
    struct dreamer *dreamer = context;

    dreamer->went_on =
        sleeper_sleep(&dreamer->sleeper, dreamer->pause_ms, clock_monotonic_ms() + LONG_MS);
}

static void dreamer_init(struct dreamer *dreamer, struct bell *bell, int64_t pause_ms)
{
    dreamer->pause_ms = pause_ms;
    sleeper_init(&dreamer->sleeper, bell);
}

/* Ends only if it was woken in time: it would sleep for ten minutes. */
static bool dreamer_end(struct dreamer *dreamer)
{
    thread_join(&dreamer->thread);
    sleeper_done(&dreamer->sleeper);
    return dreamer->went_on;
}

static void a_ring_wakes_every_sleeper_that_listens(void **state UNUSED)
{
    CLEANUP(bell_free) struct bell *bell = bell_new();
    struct dreamer dreamers[2];

    for (size_t i = 0; i < ARRAY_LEN(dreamers); i++) {
        dreamer_init(&dreamers[i], bell, 1);
        sleeper_listen(&dreamers[i].sleeper);
        thread_start(&dreamers[i].thread, "dreamer", dream, &dreamers[i]);
    }
    bell_ring(bell);
    for (size_t i = 0; i < ARRAY_LEN(dreamers); i++)
        assert_true(dreamer_end(&dreamers[i]));
}

static void a_ring_between_listening_and_sleeping_is_not_missed(void **state UNUSED)
{
    CLEANUP(bell_free) struct bell *bell = bell_new();
    struct dreamer dreamer;

    dreamer_init(&dreamer, bell, 1);
    sleeper_listen(&dreamer.sleeper);
    bell_ring(bell);
    thread_start(&dreamer.thread, "dreamer", dream, &dreamer);
    assert_true(dreamer_end(&dreamer));
}

static void a_ring_before_listening_counts_no_more(void **state UNUSED)
{
    CLEANUP(bell_free) struct bell *bell = bell_new();
    struct sleeper sleeper;

    sleeper_init(&sleeper, bell);
    sleeper_listen(&sleeper);
    bell_ring(bell);
    assert_true(sleeper.rung);
    sleeper_listen(&sleeper);
    assert_false(sleeper.rung);
    bell_ring(NULL);
    assert_false(sleeper.rung);
    sleeper_done(&sleeper);
}

static void without_a_bell_a_sleep_is_a_pause(void **state UNUSED)
{
    struct dreamer dreamer;

    dreamer_init(&dreamer, NULL, 1);
    sleeper_listen(&dreamer.sleeper);
    thread_start(&dreamer.thread, "dreamer", dream, &dreamer);
    assert_true(dreamer_end(&dreamer));
}

static void waking_and_stopping_end_a_pause(void **state UNUSED)
{
    CLEANUP(bell_free) struct bell *bell = bell_new();
    struct dreamer dreamer;

    dreamer_init(&dreamer, bell, LONG_MS);
    thread_start(&dreamer.thread, "dreamer", dream, &dreamer);
    sleeper_wake(&dreamer.sleeper);
    assert_true(dreamer_end(&dreamer));
    dreamer_init(&dreamer, bell, LONG_MS);
    thread_start(&dreamer.thread, "dreamer", dream, &dreamer);
    sleeper_stop(&dreamer.sleeper);
    assert_false(dreamer_end(&dreamer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_wakes_every_sleeper_that_listens),
        cmocka_unit_test(a_ring_between_listening_and_sleeping_is_not_missed),
        cmocka_unit_test(a_ring_before_listening_counts_no_more),
        cmocka_unit_test(without_a_bell_a_sleep_is_a_pause),
        cmocka_unit_test(waking_and_stopping_end_a_pause),
    };
    return cmocka_run_group_tests_name("base/bell", tests, NULL, NULL);
}
