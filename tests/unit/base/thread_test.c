/* Whether the system lets a thread come first depends on who runs the test. Both answers are
 * tested: where it does, what was asked for holds; where it does not, nothing has changed. */
#include "base/thread.h"

#include "support/check.h"

#include <sched.h>
#include <sys/resource.h>

enum { WANTED = -5 };

struct runner {
    struct thread thread, child;
    bool hastened;
    struct error err;
    int nice_before, nice, child_nice;
    bool first, back;
    int policy_first, policy_back, child_policy;
};

static int nice_of_this(void)
{
    return getpriority(PRIO_PROCESS, 0);
}

static void child_run(void *context)
{
    struct runner *runner = context;

    runner->child_nice = nice_of_this();
    runner->child_policy = sched_getscheduler(0);
}

static void runner_run(void *context)
{
    struct runner *runner = context;

    runner->nice_before = nice_of_this();
    runner->hastened = thread_hasten(WANTED, &runner->err);
    runner->nice = nice_of_this();
    thread_start(&runner->child, "child", child_run, runner);
    thread_join(&runner->child);
}

static void a_hastened_thread_comes_first_and_those_it_starts_do_not(void **state UNUSED)
{
    struct runner runner = {0};
    int before = nice_of_this();

    thread_start(&runner.thread, "runner", runner_run, &runner);
    thread_join(&runner.thread);
    assert_int_equal(nice_of_this(), before); /* of this thread, which is another */
    if (runner.hastened) {
        assert_int_equal(runner.nice, WANTED);
        assert_int_equal(runner.child_nice, 0);
    } else {
        assert_int_equal(runner.err.code, ERROR_SYSTEM);
        assert_non_null(strstr(runner.err.message, "niceness of -5"));
        assert_int_equal(runner.nice, runner.nice_before);
        assert_int_equal(runner.child_nice, runner.nice_before);
    }
}

static void policy_run(void *context)
{
    struct runner *runner = context;

    runner->first = thread_go_first(true, 0);
    runner->policy_first = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
    thread_start(&runner->child, "child", child_run, runner);
    thread_join(&runner->child);
    runner->back = thread_go_first(false, 0);
    runner->policy_back = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

static void a_thread_goes_first_and_back_and_those_it_starts_are_ordinary(void **state UNUSED)
{
    struct runner runner = {0};

    thread_start(&runner.thread, "runner", policy_run, &runner);
    thread_join(&runner.thread);
    assert_int_equal(runner.policy_first, runner.first ? SCHED_RR : SCHED_OTHER);
    assert_int_equal(runner.child_policy, SCHED_OTHER);
    assert_int_equal(runner.policy_back, SCHED_OTHER);
    if (runner.first)
        assert_true(runner.back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hastened_thread_comes_first_and_those_it_starts_do_not),
        cmocka_unit_test(a_thread_goes_first_and_back_and_those_it_starts_are_ordinary),
    };
    return cmocka_run_group_tests_name("base/thread", tests, NULL, NULL);
}
