#include "net/workers.h"

#include "base/memory.h"
#include "base/thread.h"
#include "support/check.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

/* Work that waits at a gate the test opens. */
struct gate {
    struct mutex lock;
    struct condition changed;
    bool open;
    size_t waiting, finished, done;
    bool done_on_loop;
};

struct job {
    struct net_work work;
    struct gate *gate;
};

static void gate_init(struct gate *gate)
{
    *gate = (struct gate){.done_on_loop = true};
    mutex_init(&gate->lock);
    condition_init(&gate->changed);
}

static void gate_done(struct gate *gate)
{
    condition_done(&gate->changed);
    mutex_done(&gate->lock);
}
CLEANUP_VALUE_FN(struct gate, gate_done)

static void job_run(struct net_work *work)
{
    struct gate *gate = CONTAINER_OF(work, struct job, work)->gate;

    WITH_LOCK (&gate->lock) {
        gate->waiting++;
        condition_broadcast(&gate->changed);
        while (!gate->open)
            condition_wait(&gate->changed, &gate->lock);
        gate->finished++;
        condition_broadcast(&gate->changed);
    }
}

static void job_done(struct net_work *work, struct net_loop *loop)
{
    struct gate *gate = CONTAINER_OF(work, struct job, work)->gate;

    WITH_LOCK (&gate->lock) {
        gate->done++;
        gate->done_on_loop &= net_loop_is_current(loop) && loop == work->loop;
        condition_broadcast(&gate->changed);
    }
}

static void gate_open(struct gate *gate)
{
    WITH_LOCK (&gate->lock) {
        gate->open = true;
        condition_broadcast(&gate->changed);
    }
}

static void gate_wait_for(struct gate *gate, const size_t *counter, size_t wanted)
{
    WITH_LOCK (&gate->lock) {
        while (*counter < wanted)
            condition_wait(&gate->changed, &gate->lock);
    }
}

static struct net_workers *workers_make(size_t threads, size_t queue, int64_t idle_ms)
{
    return net_workers_new(&(struct net_workers_settings){
        .threads_max = threads, .queue_max = queue, .idle_ms = idle_ms});
}

static void done_comes_back_on_the_loop(void **state UNUSED)
{
    struct net_loops *loops = NULL;
    struct net_workers *workers = workers_make(2, 100, 1000);
    CLEANUP(gate_done) struct gate gate;
    struct job jobs[20] = {0};
    struct error err;

    gate_init(&gate);
    gate.open = true;
    assert_ok(net_loops_new(2, &loops, &err), &err);
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        jobs[i].gate = &gate;
        jobs[i].work.run = job_run;
        jobs[i].work.done = job_done;
        jobs[i].work.loop = net_loops_at(loops, i % 2);
        assert_ok(net_workers_submit(workers, &jobs[i].work, &err), &err);
    }
    gate_wait_for(&gate, &gate.done, ARRAY_LEN(jobs));
    assert_true(gate.done_on_loop);
    net_workers_free(workers);
    net_loops_free(loops);
}

static void a_full_queue_refuses_at_once(void **state UNUSED)
{
    struct net_workers *workers = workers_make(1, 2, 1000);
    CLEANUP(gate_done) struct gate gate;
    struct job jobs[4] = {0};
    struct net_workers_metrics metrics;
    struct error err;

    gate_init(&gate);
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        jobs[i].gate = &gate;
        jobs[i].work.run = job_run;
    }
    assert_ok(net_workers_submit(workers, &jobs[0].work, &err), &err);
    gate_wait_for(&gate, &gate.waiting, 1); /* it runs; the next two wait */
    assert_ok(net_workers_submit(workers, &jobs[1].work, &err), &err);
    assert_ok(net_workers_submit(workers, &jobs[2].work, &err), &err);
    assert_fails(net_workers_submit(workers, &jobs[3].work, &err), &err, ERROR_BUSY);
    net_workers_metrics(workers, &metrics);
    assert_int_equal(metrics.threads, 1);
    assert_int_equal(metrics.running, 1);
    assert_int_equal(metrics.queued, 2);
    assert_int_equal(metrics.refused, 1);
    gate_open(&gate);
    net_workers_free(workers); /* runs all that was taken */
    assert_int_equal(gate.finished, 3);
}

enum { SUBMITTERS = 6, EACH = 2000 };

struct submitter {
    struct net_workers *workers;
    struct thread thread;
    struct net_work work;
    atomic_size_t ran;
};

static void submitted_run(struct net_work *work)
{
    struct submitter *submitter = CONTAINER_OF(work, struct submitter, work);

    atomic_fetch_add(&submitter->ran, 1);
}

/* One after the other, each when the one before it has run. If nobody were told of one, it would
 * wait for as long as threads stay idle. */
static void submitter_run(void *context)
{
    struct submitter *submitter = context;
    struct error err;

    submitter->work.run = submitted_run;
    for (size_t i = 0; i < EACH; i++) {
        assert_ok(net_workers_submit(submitter->workers, &submitter->work, &err), &err);
        while (atomic_load(&submitter->ran) == i)
            sched_yield();
    }
}

/* With threads that stay, one or several, and with threads that end when they have nothing to do.
 */
static void work_of_many_threads_at_once_runs_once_each(void **state UNUSED)
{
    static const struct {
        size_t threads;
        int64_t idle_ms;
    } cases[] = {{1, 600000}, {4, 600000}, {2, 0}, {4, 1}};

    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        struct net_workers *workers = workers_make(cases[c].threads, 100, cases[c].idle_ms);
        struct submitter submitters[SUBMITTERS] = {0};
        struct net_workers_metrics metrics;

        for (size_t i = 0; i < SUBMITTERS; i++) {
            submitters[i].workers = workers;
            thread_start(&submitters[i].thread, "submitter", submitter_run, &submitters[i]);
        }
        for (size_t i = 0; i < SUBMITTERS; i++)
            thread_join(&submitters[i].thread);
        net_workers_metrics(workers, &metrics);
        assert_int_equal(metrics.submitted, SUBMITTERS * EACH);
        assert_int_equal(metrics.queued, 0);
        net_workers_free(workers);
        for (size_t i = 0; i < SUBMITTERS; i++)
            assert_int_equal(atomic_load(&submitters[i].ran), EACH);
    }
}

static void threads_start_only_when_work_waits(void **state UNUSED)
{
    struct net_workers *workers = workers_make(8, 100, 60000);
    CLEANUP(gate_done) struct gate gate;
    struct job jobs[3] = {0};
    struct net_workers_metrics metrics;
    struct error err;

    gate_init(&gate);
    net_workers_metrics(workers, &metrics);
    assert_int_equal(metrics.threads, 0);
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        jobs[i].gate = &gate;
        jobs[i].work.run = job_run;
        assert_ok(net_workers_submit(workers, &jobs[i].work, &err), &err);
        gate_wait_for(&gate, &gate.waiting, i + 1);
    }
    net_workers_metrics(workers, &metrics);
    assert_int_equal(metrics.threads, 3);
    gate_open(&gate);
    net_workers_free(workers);
}

static void idle_threads_end_and_new_ones_take_their_place(void **state UNUSED)
{
    struct net_workers *workers = workers_make(2, 100, 5);
    CLEANUP(gate_done) struct gate gate;
    struct net_workers_metrics metrics;
    struct job job = {.gate = &gate, .work.run = job_run};
    struct error err;

    gate_init(&gate);
    gate.open = true;
    for (size_t round = 1; round <= 3; round++) {
        assert_ok(net_workers_submit(workers, &job.work, &err), &err);
        gate_wait_for(&gate, &gate.finished, round);
        for (int i = 0; i < 10000; i++) {
            net_workers_metrics(workers, &metrics);
            if (metrics.threads == 0)
                break;
            usleep(1000);
        }
        assert_int_equal(metrics.threads, 0);
    }
    net_workers_free(workers);
}

/* --- Owners ---------------------------------------------------------------------------------- */

static void jobs_submit(struct net_workers *workers, struct job *jobs, size_t count,
                        struct net_owner *owner, uint64_t part)
{
    struct error err;

    for (size_t i = 0; i < count; i++) {
        jobs[i].work.owner = owner;
        jobs[i].work.part = part;
        if (!jobs[i].work.run)
            jobs[i].work.run = job_run;
        assert_ok(net_workers_submit(workers, &jobs[i].work, &err), &err);
    }
}

static void gates_set(struct job *jobs, size_t count, struct gate *gate)
{
    for (size_t i = 0; i < count; i++)
        jobs[i].gate = gate;
}

static void an_owner_leaves_threads_to_others_and_a_container_to_its_others(void **state UNUSED)
{
    struct net_workers *workers = workers_make(8, 100, 60000);
    struct net_owners *owners = net_owners_new(NULL, 1);
    struct net_owner *greedy = net_owners_find(owners, 1), *other = net_owners_find(owners, 2);
    CLEANUP(gate_done) struct gate gate, second, third;
    struct job jobs[20] = {0}, more[20] = {0}, others[2] = {0};
    struct net_workers_metrics metrics;

    gate_init(&gate);
    gate_init(&second);
    gate_init(&third);
    third.open = true;
    gates_set(jobs, ARRAY_LEN(jobs), &gate);
    gates_set(more, ARRAY_LEN(more), &second);
    gates_set(others, ARRAY_LEN(others), &third);
    jobs_submit(workers, jobs, ARRAY_LEN(jobs), greedy, 1);
    gate_wait_for(&gate, &gate.waiting, 5); /* three quarters of six */
    jobs_submit(workers, more, ARRAY_LEN(more), greedy, 2);
    gate_wait_for(&second, &second.waiting, 1); /* six of eight in all */
    jobs_submit(workers, others, ARRAY_LEN(others), other, 1);
    gate_wait_for(&third, &third.finished, 2);
    do { /* those that are finished are about to be counted so */
        usleep(1000);
        net_workers_metrics(workers, &metrics);
    } while (metrics.running > 6);
    assert_int_equal(metrics.running, 6);
    assert_int_equal(metrics.queued, 34);
    assert_int_equal(gate.waiting, 5);
    gate_open(&gate);
    gate_open(&second);
    net_workers_free(workers); /* limits hold nothing up that was taken */
    assert_int_equal(gate.finished + second.finished, 40);
    net_owners_free(owners);
}

/* The account is made while its requests arrive: those before it have another owner. */
static void an_account_and_its_guest_do_not_have_all_threads(void **state UNUSED)
{
    struct net_workers *workers = workers_make(8, 100, 60000);
    struct net_owners *owners = net_owners_new(NULL, 1);
    struct net_owner *guest = net_owners_find_guest(owners, UINT64_MAX);
    struct net_owner *account = net_owners_find(owners, 1), *other = net_owners_find(owners, 2);
    CLEANUP(gate_done) struct gate first, gate, third;
    struct job jobs[12] = {0}, more[20] = {0}, others[2] = {0};

    gate_init(&first);
    gate_init(&gate);
    gate_init(&third);
    third.open = true;
    gates_set(jobs, ARRAY_LEN(jobs), &first);
    gates_set(more, ARRAY_LEN(more), &gate);
    gates_set(others, ARRAY_LEN(others), &third);
    jobs_submit(workers, jobs, ARRAY_LEN(jobs), guest, 1);
    gate_wait_for(&first, &first.waiting, 1);
    jobs_submit(workers, more, 10, account, 1);
    jobs_submit(workers, more + 10, 10, account, 2);
    gate_wait_for(&gate, &gate.waiting, 6);
    jobs_submit(workers, others, ARRAY_LEN(others), other, 1);
    gate_wait_for(&third, &third.finished, 2);
    assert_int_equal(first.waiting, 1);
    gate_open(&first);
    gate_open(&gate);
    net_workers_free(workers);
    assert_int_equal(first.finished + gate.finished, 32);
    net_owners_free(owners);
}

static void an_owner_cannot_fill_the_queue(void **state UNUSED)
{
    struct net_workers *workers = workers_make(1, 8, 60000);
    struct net_owners *owners = net_owners_new(NULL, 1);
    CLEANUP(gate_done) struct gate gate;
    struct job jobs[9] = {0};
    struct error err;

    gate_init(&gate);
    gates_set(jobs, ARRAY_LEN(jobs), &gate);
    jobs_submit(workers, jobs, 1, net_owners_find(owners, 1), 1);
    gate_wait_for(&gate, &gate.waiting, 1);
    jobs_submit(workers, jobs + 1, 6, net_owners_find(owners, 1), 1);
    jobs[7].work.run = jobs[8].work.run = job_run;
    jobs[7].work.owner = net_owners_find(owners, 1);
    assert_fails(net_workers_submit(workers, &jobs[7].work, &err), &err, ERROR_BUSY);
    jobs[8].work.owner = net_owners_find(owners, 2);
    assert_ok(net_workers_submit(workers, &jobs[8].work, &err), &err);
    gate_open(&gate);
    net_workers_free(workers);
    assert_int_equal(gate.finished, 8);
    net_owners_free(owners);
}

/* Computes until its gate opens, and stops now and then as long queries do. */
struct busy_job {
    struct job job;
    struct net_workers *workers;
};

static bool gate_is_open(struct gate *gate)
{
    bool open = false;

    WITH_LOCK (&gate->lock) {
        open = gate->open;
    }
    return open;
}

static void busy_run(struct net_work *work)
{
    struct busy_job *busy = CONTAINER_OF(work, struct busy_job, job.work);

    while (!gate_is_open(busy->job.gate))
        net_workers_breathe(busy->workers);
    job_run(work);
}

/* Some turns' worth of processor time. */
static void burn(struct net_workers *workers)
{
    struct timespec begin, now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do {
        net_workers_breathe(workers);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < 30);
}

struct waiting_job {
    struct busy_job busy;
    struct gate *held; /* opened by another job of the owner, which needs a turn for it */
};

/* Computes, and then waits for what another does. */
static void waiting_run(struct net_work *work)
{
    struct waiting_job *waiting = CONTAINER_OF(work, struct waiting_job, busy.job.work);

    burn(waiting->busy.workers);
    WITH_LOCK (&waiting->held->lock) {
        waiting->held->waiting++;
        condition_broadcast(&waiting->held->changed);
        while (!waiting->held->open)
            condition_wait(&waiting->held->changed, &waiting->held->lock);
    }
    job_run(work);
}

static void holding_run(struct net_work *work)
{
    struct waiting_job *holding = CONTAINER_OF(work, struct waiting_job, busy.job.work);

    burn(holding->busy.workers);
    gate_open(holding->held);
    job_run(work);
}

static void a_turn_is_not_kept_by_a_thread_that_waits(void **state UNUSED)
{
    struct net_workers *workers = net_workers_new(&(struct net_workers_settings){
        .threads_max = 4, .queue_max = 100, .busy_max = 1, .idle_ms = 60000});
    struct net_owners *owners = net_owners_new(NULL, 1);
    CLEANUP(gate_done) struct gate held, done;
    struct waiting_job jobs[2] = {0};

    gate_init(&held);
    gate_init(&done);
    done.open = true;
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        jobs[i].held = &held;
        jobs[i].busy.workers = workers;
        jobs[i].busy.job.gate = &done;
        jobs[i].busy.job.work.run = i ? holding_run : waiting_run;
        jobs_submit(workers, &jobs[i].busy.job, 1, net_owners_find(owners, 1), i);
        gate_wait_for(&held, &held.waiting, 1);
    }
    gate_wait_for(&done, &done.finished, 2); /* or for ever */
    net_workers_free(workers);
    net_owners_free(owners);
}

static void an_owner_that_computes_takes_turns_with_itself(void **state UNUSED)
{
    struct net_workers *workers = net_workers_new(&(struct net_workers_settings){
        .threads_max = 16, .queue_max = 100, .busy_max = 1, .idle_ms = 60000});
    struct net_owners *owners = net_owners_new(NULL, 1);
    CLEANUP(gate_done) struct gate gate, quick;
    struct busy_job busy[6] = {0};
    struct job jobs[3] = {0};
    struct net_workers_metrics metrics = {0};

    gate_init(&gate);
    gate_init(&quick);
    quick.open = true;
    for (size_t i = 0; i < ARRAY_LEN(busy); i++) {
        busy[i].workers = workers;
        busy[i].job.gate = &gate;
        busy[i].job.work.run = busy_run;
        jobs_submit(workers, &busy[i].job, 1, net_owners_find(owners, 1), 1);
    }
    while (metrics.waiting + metrics.queued < ARRAY_LEN(busy) - 1) {
        usleep(1000);
        net_workers_metrics(workers, &metrics);
    }
    /* its own work that has not begun comes to its turn, and so does that of others */
    gates_set(jobs, ARRAY_LEN(jobs), &quick);
    jobs_submit(workers, jobs, 1, net_owners_find(owners, 1), 2);
    gate_wait_for(&quick, &quick.finished, 1);
    jobs_submit(workers, jobs + 1, 1, net_owners_find(owners, 2), 1);
    jobs_submit(workers, jobs + 2, 1, NULL, 0);
    gate_wait_for(&quick, &quick.finished, 3);
    gate_open(&gate);
    gate_wait_for(&gate, &gate.finished, ARRAY_LEN(busy));
    net_workers_free(workers);
    net_owners_free(owners);
}

static void an_owner_computes_on_every_core_until_another_asks(void **state UNUSED)
{
    struct net_workers *workers = net_workers_new(&(struct net_workers_settings){
        .threads_max = 16, .queue_max = 100, .busy_max = 1, .alone_max = 3, .idle_ms = 60000});
    struct net_owners *owners = net_owners_new(NULL, 1);
    CLEANUP(gate_done) struct gate gate;
    struct busy_job busy[6] = {0};
    struct net_workers_metrics metrics = {0};

    gate_init(&gate);
    for (size_t i = 0; i < ARRAY_LEN(busy); i++) {
        busy[i].workers = workers;
        busy[i].job.gate = &gate;
        busy[i].job.work.run = busy_run;
        jobs_submit(workers, &busy[i].job, 1, net_owners_find(owners, 1), 1);
    }
    while (metrics.waiting + metrics.queued != ARRAY_LEN(busy) - 3) {
        usleep(1000);
        net_workers_metrics(workers, &metrics);
    }
    while (metrics.waiting + metrics.queued != ARRAY_LEN(busy) - 1) {
        (void)net_owners_find(owners, 2); /* who asks again and again */
        usleep(1000);
        net_workers_metrics(workers, &metrics);
    }
    gate_open(&gate);
    gate_wait_for(&gate, &gate.finished, ARRAY_LEN(busy));
    net_workers_free(workers);
    net_owners_free(owners);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(done_comes_back_on_the_loop),
        cmocka_unit_test(a_full_queue_refuses_at_once),
        cmocka_unit_test(work_of_many_threads_at_once_runs_once_each),
        cmocka_unit_test(threads_start_only_when_work_waits),
        cmocka_unit_test(idle_threads_end_and_new_ones_take_their_place),
        cmocka_unit_test(an_owner_leaves_threads_to_others_and_a_container_to_its_others),
        cmocka_unit_test(an_account_and_its_guest_do_not_have_all_threads),
        cmocka_unit_test(an_owner_cannot_fill_the_queue),
        cmocka_unit_test(an_owner_that_computes_takes_turns_with_itself),
        cmocka_unit_test(an_owner_computes_on_every_core_until_another_asks),
        cmocka_unit_test(a_turn_is_not_kept_by_a_thread_that_waits),
    };
    return cmocka_run_group_tests_name("net/workers", tests, NULL, NULL);
}
