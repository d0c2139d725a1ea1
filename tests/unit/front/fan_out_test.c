#include "front/fan_out.h"

#include "base/memory.h"
#include "base/thread.h"
#include "support/check.h"

#include <stdatomic.h>

enum { TASKS = 40 };

struct tally {
    atomic_uint runs[TASKS];
};

static void tally_task(void *context, size_t number)
{
    atomic_fetch_add(&((struct tally *)context)->runs[number], 1);
}

static void check_once_each(const struct query_executor *executor)
{
    for (size_t count = 1; count <= TASKS; count++) {
        struct tally tally = {0};

        executor->run(executor->self, count, tally_task, &tally);
        for (size_t i = 0; i < TASKS; i++)
            assert_int_equal(tally.runs[i], i < count);
    }
}

static void every_task_is_run_once(void **state UNUSED)
{
    struct net_workers_settings settings = net_workers_settings_default();
    CLEANUP(net_workers_free) struct net_workers *workers = net_workers_new(&settings);
    const struct front_helpers helpers = {.workers = workers, .width = 4};
    struct query_executor executor = front_fan_out(&helpers);

    assert_int_equal(executor.width, 4);
    check_once_each(&executor);
}

/* Work that keeps the only worker until the test lets it go. */
struct holding {
    struct net_work work;
    struct mutex lock;
    struct condition changed;
    bool held, let_go;
};

static void holding_run(struct net_work *work)
{
    struct holding *holding = CONTAINER_OF(work, struct holding, work);

    WITH_LOCK (&holding->lock) {
        holding->held = true;
        condition_broadcast(&holding->changed);
        while (!holding->let_go)
            condition_wait(&holding->changed, &holding->lock);
    }
}

static void a_caller_without_free_workers_does_all_itself(void **state UNUSED)
{
    struct net_workers_settings settings = net_workers_settings_default();
    struct holding holding = {.work = {.run = holding_run}};
    struct net_workers *workers;
    struct front_helpers helpers;
    struct query_executor executor;
    struct error err;

    settings.threads_max = 1;
    settings.queue_max = 2; /* what is left over stays behind in it */
    workers = net_workers_new(&settings);
    helpers = (struct front_helpers){.workers = workers, .width = 4};
    executor = front_fan_out(&helpers);
    mutex_init(&holding.lock);
    condition_init(&holding.changed);
    assert_ok(net_workers_submit(workers, &holding.work, &err), &err);
    WITH_LOCK (&holding.lock) {
        while (!holding.held)
            condition_wait(&holding.changed, &holding.lock);
    }
    check_once_each(&executor);
    WITH_LOCK (&holding.lock) {
        holding.let_go = true;
        condition_broadcast(&holding.changed);
    }
    net_workers_free(workers); /* hands that came too late are run, and find nothing to do */
    condition_done(&holding.changed);
    mutex_done(&holding.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_is_run_once),
        cmocka_unit_test(a_caller_without_free_workers_does_all_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
