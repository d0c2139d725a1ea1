#include "net/loop.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "support/check.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PER_THREAD = 20000, THREADS = 3 };

struct numbered {
    struct net_task task;
    size_t thread, number;
    struct tally *tally;
};

/* What the loop's thread has seen; only it writes. */
struct tally {
    size_t next[THREADS];
    bool in_order;
    atomic_size_t count;
};

struct poster {
    struct thread thread;
    struct net_loop *loop;
    struct numbered *tasks;
};

static void numbered_run(struct net_task *task, struct net_loop *loop)
{
    struct numbered *numbered = CONTAINER_OF(task, struct numbered, task);
    struct tally *tally = numbered->tally;

    tally->in_order &= net_loop_is_current(loop);
    tally->in_order &= tally->next[numbered->thread]++ == numbered->number;
    atomic_fetch_add(&tally->count, 1);
}

static void poster_run(void *context)
{
    struct poster *poster = context;

    for (size_t i = 0; i < PER_THREAD; i++)
        net_loop_post(poster->loop, &poster->tasks[i].task);
}

static struct net_loops *loops_make(size_t count)
{
    struct net_loops *loops = NULL;
    struct error err;

    assert_ok(net_loops_new(count, &loops, &err), &err);
    return loops;
}

static void tasks_of_each_thread_run_once_and_in_order(void **state UNUSED)
{
    struct net_loops *loops = loops_make(1);
    struct poster posters[THREADS];
    struct tally tally = {.in_order = true};

    for (size_t t = 0; t < THREADS; t++) {
        posters[t].loop = net_loops_at(loops, 0);
        posters[t].tasks = memory_alloc_zero(PER_THREAD * sizeof(struct numbered));
        for (size_t i = 0; i < PER_THREAD; i++)
            posters[t].tasks[i] = (struct numbered){
                .task.run = numbered_run, .thread = t, .number = i, .tally = &tally};
        thread_start(&posters[t].thread, "poster", poster_run, &posters[t]);
    }
    for (size_t t = 0; t < THREADS; t++)
        thread_join(&posters[t].thread);
    net_loops_free(loops); /* runs what is posted first */
    assert_int_equal(atomic_load(&tally.count), THREADS * PER_THREAD);
    assert_true(tally.in_order);
    for (size_t t = 0; t < THREADS; t++)
        memory_free(posters[t].tasks);
}

/* Notes when it ran, among all. */
struct placed {
    struct net_task task;
    atomic_size_t *next;
    size_t place;
};

static void placed_run(struct net_task *task, struct net_loop *loop UNUSED)
{
    struct placed *placed = CONTAINER_OF(task, struct placed, task);

    placed->place = atomic_load(placed->next);
    atomic_fetch_add(placed->next, 1);
}

enum { FLOOD = 1000 };

struct flood {
    struct net_loop *loop;
    struct placed tasks[FLOOD], other;
};

/* On the loop itself: so that all of them wait before the first is run. */
static void flood_post(void *context)
{
    struct flood *flood = context;

    for (size_t i = 0; i < FLOOD; i++)
        net_loop_post(flood->loop, &flood->tasks[i].task);
    net_loop_post(flood->loop, &flood->other.task);
}

static void a_task_does_not_wait_behind_all_of_another_owner(void **state UNUSED)
{
    static const char owners[64];
    struct net_loops *loops = loops_make(1);
    struct flood *flood = memory_alloc_zero(sizeof *flood);
    size_t behind = 0;

    /* Owners share rows by chance: of many others all but a few have one of their own. */
    for (size_t o = 1; o < ARRAY_LEN(owners); o++) {
        atomic_size_t next = 0;

        flood->loop = net_loops_at(loops, 0);
        for (size_t i = 0; i < FLOOD; i++)
            flood->tasks[i] =
                (struct placed){.task = {.run = placed_run, .owner = &owners[0]}, .next = &next};
        flood->other =
            (struct placed){.task = {.run = placed_run, .owner = &owners[o]}, .next = &next};
        net_loop_call(flood->loop, flood_post, flood);
        while (atomic_load(&next) <= FLOOD)
            usleep(100);
        behind += flood->other.place == FLOOD;
        assert_true(flood->other.place <= 2 || flood->other.place == FLOOD);
    }
    assert_true(behind < ARRAY_LEN(owners) / 4);
    net_loops_free(loops);
    memory_free(flood);
}

static void note_thread(void *context)
{
    *(pthread_t *)context = pthread_self();
}

static void every_loop_has_its_own_thread(void **state UNUSED)
{
    CLEANUP(net_loops_free) struct net_loops *loops = loops_make(3);
    pthread_t seen[3];

    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(net_loop_index(net_loops_at(loops, i)), i);
        net_loop_call(net_loops_at(loops, i), note_thread, &seen[i]);
        assert_false(net_loop_is_current(net_loops_at(loops, i)));
    }
    assert_int_not_equal(seen[0], seen[1]);
    assert_int_not_equal(seen[1], seen[2]);
    assert_int_not_equal(seen[0], pthread_self());
}

static void zero_asks_for_a_loop_for_each_core(void **state UNUSED)
{
    CLEANUP(net_loops_free) struct net_loops *loops = loops_make(0);

    assert_true(net_loops_count(loops) >= 1);
}

/* Timers note in which order they fired. */
struct timed {
    struct net_loop *loop;
    struct net_timer *timers[4];
    struct timed_one {
        struct timed *timed;
        size_t number;
        int64_t at_ms, fired_ms;
    } ones[4];
    atomic_size_t fired;
    size_t order[4];
};

static void timed_fire(void *context)
{
    struct timed_one *one = context;

    one->fired_ms = clock_monotonic_ms();
    one->timed->order[atomic_load(&one->timed->fired)] = one->number;
    atomic_fetch_add(&one->timed->fired, 1);
}

/* 0 at 40 ms; 1 at 20; 2 set to 10 and then moved to 60; 3 set to 10 and then switched off. */
static void timed_begin(void *context)
{
    static const int64_t at[4] = {40, 20, 10, 10};
    struct timed *timed = context;
    int64_t now_ms = clock_monotonic_ms();

    for (size_t i = 0; i < 4; i++) {
        timed->ones[i] = (struct timed_one){.timed = timed, .number = i, .at_ms = now_ms + at[i]};
        timed->timers[i] = net_timer_new(timed->loop, timed_fire, &timed->ones[i]);
        net_timer_set(timed->timers[i], now_ms + at[i]);
    }
    timed->ones[2].at_ms = now_ms + 60;
    net_timer_set(timed->timers[2], now_ms + 60);
    net_timer_set(timed->timers[3], NET_TIMER_NEVER);
}

static void timed_end(void *context)
{
    struct timed *timed = context;

    for (size_t i = 0; i < 4; i++)
        net_timer_free(timed->timers[i]);
}

static void timers_fire_in_order_and_never_early(void **state UNUSED)
{
    CLEANUP(net_loops_free) struct net_loops *loops = loops_make(1);
    struct timed timed = {.loop = net_loops_at(loops, 0)};

    net_loop_call(timed.loop, timed_begin, &timed);
    for (int i = 0; i < 10000 && atomic_load(&timed.fired) < 3; i++)
        usleep(1000);
    net_loop_call(timed.loop, timed_end, &timed);
    assert_int_equal(atomic_load(&timed.fired), 3);
    assert_int_equal(timed.order[0], 1);
    assert_int_equal(timed.order[1], 0);
    assert_int_equal(timed.order[2], 2);
    for (size_t i = 0; i < 3; i++)
        assert_true(timed.ones[i].fired_ms >= timed.ones[i].at_ms);
}

enum { MANY = 500 };

struct many {
    struct net_loop *loop;
    struct net_timer *timers[MANY];
    atomic_size_t fired;
};

static void many_fire(void *context)
{
    atomic_fetch_add((atomic_size_t *)context, 1);
}

/* Sets them crosswise and frees every third before it can fire. */
static void many_begin(void *context)
{
    struct many *many = context;
    int64_t now_ms = clock_monotonic_ms();

    for (size_t i = 0; i < MANY; i++) {
        many->timers[i] = net_timer_new(many->loop, many_fire, &many->fired);
        net_timer_set(many->timers[i], now_ms + 1000);
        net_timer_set(many->timers[i], now_ms + 5 + (int64_t)(i * 7919 % 50));
    }
    for (size_t i = 0; i < MANY; i += 3) {
        net_timer_free(many->timers[i]);
        many->timers[i] = NULL;
    }
}

static void many_end(void *context)
{
    struct many *many = context;

    for (size_t i = 0; i < MANY; i++)
        net_timer_free(many->timers[i]);
}

static void freed_timers_never_fire_and_all_others_do(void **state UNUSED)
{
    CLEANUP(net_loops_free) struct net_loops *loops = loops_make(1);
    struct many many = {.loop = net_loops_at(loops, 0)};
    size_t expected = MANY - (MANY + 2) / 3;

    net_loop_call(many.loop, many_begin, &many);
    for (int i = 0; i < 10000 && atomic_load(&many.fired) < expected; i++)
        usleep(1000);
    net_loop_call(many.loop, many_end, &many);
    assert_int_equal(atomic_load(&many.fired), expected);
}

struct date_question {
    struct net_loop *loop;
    struct slice date;
};

static void read_date(void *context)
{
    struct date_question *question = context;

    question->date = net_loop_date(question->loop);
}

static void the_date_is_an_http_date(void **state UNUSED)
{
    CLEANUP(net_loops_free) struct net_loops *loops = loops_make(1);
    struct date_question question = {.loop = net_loops_at(loops, 0)};

    net_loop_call(question.loop, read_date, &question);
    assert_int_equal(question.date.len, CLOCK_HTTP_DATE_LEN);
    assert_memory_equal(question.date.data + 25, " GMT", 4);
}

/* Every wake-up of a thread is a voluntary switch. */
static void count_switches(void *context)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    *(long *)context = usage.ru_nvcsw;
}

static void an_idle_loop_does_not_wake(void **state UNUSED)
{
    CLEANUP(net_loops_free) struct net_loops *loops = loops_make(1);
    long before, after;

    net_loop_call(net_loops_at(loops, 0), count_switches, &before);
    usleep(300 * 1000);
    net_loop_call(net_loops_at(loops, 0), count_switches, &after);
    assert_true(after - before <= 2); /* one of them to answer this question */
}

static void read_nice(void *context)
{
    *(int *)context = getpriority(PRIO_PROCESS, 0);
}

/* Whether the system permits it depends on who runs this. */
static void every_loop_is_hastened_or_none_is(void **state UNUSED)
{
    CLEANUP(net_loops_free) struct net_loops *loops = loops_make(3);
    struct error err;
    int before = getpriority(PRIO_PROCESS, 0);
    bool hastened = net_loops_hasten(loops, -7, true, &err);

    for (size_t i = 0; i < 3; i++) {
        int nice = 0;

        net_loop_call(net_loops_at(loops, i), read_nice, &nice);
        assert_int_equal(nice, hastened ? -7 : before);
    }
    assert_int_equal(getpriority(PRIO_PROCESS, 0), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_of_each_thread_run_once_and_in_order),
        cmocka_unit_test(a_task_does_not_wait_behind_all_of_another_owner),
        cmocka_unit_test(every_loop_has_its_own_thread),
        cmocka_unit_test(zero_asks_for_a_loop_for_each_core),
        cmocka_unit_test(timers_fire_in_order_and_never_early),
        cmocka_unit_test(freed_timers_never_fire_and_all_others_do),
        cmocka_unit_test(the_date_is_an_http_date),
        cmocka_unit_test(an_idle_loop_does_not_wake),
        cmocka_unit_test(every_loop_is_hastened_or_none_is),
    };
    return cmocka_run_group_tests_name("net/loop", tests, NULL, NULL);
}
