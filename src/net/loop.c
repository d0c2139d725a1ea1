/* libevent waits; what is ours is the way in from other threads. Posted tasks form a stack that
 * any thread pushes onto with one compare-and-swap and the loop takes whole with one exchange, then
 * reverses. Only the push that finds it empty writes the eventfd, so a burst costs one system call.
 *
 * The eventfd is watched edge-triggered and never read: each write is a new edge, and its counter
 * would need five hundred years of writes to fill.
 *
 * Timers are ours as well: a heap of them and one timerfd, set to the earliest. With timers of
 * libevent every epoll_wait would carry a timeout, and the kernel would set up and cancel a timer
 * of its own around each sleep, which costs 8 % of a request on a lone connection.
 *
 * A timer keeps the wanted time apart from the time it is queued for. Most deadlines are renewed
 * long before they come; that costs a store, and at the queued time the timer looks how much is
 * left. In the same way the timerfd is never set later, only earlier. */
#include "net/loop_private.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "net/haste.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
    /* So many tasks are run before descriptors are looked at again. */
    ROUND_TASKS = 8,
    ROWS = 16, /* at most 32 */
};

/* Tasks that wait for a round, oldest first: those of some owners, by hash. */
struct task_row {
    struct net_task *first, *last;
};

struct net_loop {
    struct net_loops *loops;
    size_t index;
    struct event_base *base;
    struct thread thread;
    _Atomic(pthread_t) self; /* set by the thread itself; nobody else can equal it */
    bool started;

    _Atomic(struct net_task *) posted; /* newest first */
    struct task_row rows[ROWS];        /* of them, those that wait for a round */
    uint32_t rows_used;                /* a bit for each that is not empty */
    unsigned row_next;
    atomic_size_t load;
    int wake_fd;
    struct event wake_event;
    struct net_task stop_task;

    int timer_fd;
    struct event timer_event;
    int64_t timer_fd_ms;       /* what timer_fd is set to; NET_TIMER_NEVER: nothing */
    struct net_timer **timers; /* a heap by queued_ms, the earliest first */
    size_t timer_count, timer_capacity;

    int nice;       /* while it does not come first */
    bool may_first; /* the system lets it */
    struct net_haste haste;

    struct net_chunk_pool chunks;
    uint8_t *scratch;
    time_t date_second;
    char date[CLOCK_HTTP_DATE_LEN];
};

struct net_loops {
    size_t count;
    struct net_loop loops[];
};

struct net_timer {
    struct net_loop *loop;
    int64_t at_ms;     /* wanted; NET_TIMER_NEVER: off */
    int64_t queued_ms; /* NET_TIMER_NEVER: not in the heap */
    size_t place;      /* in the heap */
    void (*fire)(void *context);
    void *context;
};

static bool loop_init(struct net_loop *loop, struct error *err);
static void loop_done(struct net_loop *loop);
static void loop_run(void *context);
static void tasks_run(struct net_loop *loop);
static void woken(evutil_socket_t fd, short what, void *context);
static void stop(struct net_task *task, struct net_loop *loop);
static void timers_due(evutil_socket_t fd, short what, void *context);

size_t net_cores_usable(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    return (size_t)MAX(CPU_COUNT(&set), 1);
}

bool net_loops_new(size_t count, struct net_loops **ret_loops, struct error *err)
{
    CLEANUP(net_loops_free) struct net_loops *loops = NULL;

    if (count == 0)
        count = net_cores_usable();
    loops = memory_alloc_zero(sizeof *loops + memory_array_size(count, sizeof(struct net_loop)));
    loops->count = count;
    for (size_t i = 0; i < count; i++) {
        loops->loops[i].loops = loops;
        loops->loops[i].index = i;
        loops->loops[i].wake_fd = loops->loops[i].timer_fd = -1;
    }
    for (size_t i = 0; i < count; i++)
        if (!loop_init(&loops->loops[i], err))
            return false;
    for (size_t i = 0; i < count; i++) {
        thread_start(&loops->loops[i].thread, "loop", loop_run, &loops->loops[i]);
        loops->loops[i].started = true;
    }
    *ret_loops = TAKE(loops);
    return true;
}

static bool loop_init(struct net_loop *loop, struct error *err)
{
    struct event_config *config = event_config_new();

    if (config) {
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV);
        loop->base = event_base_new_with_config(config);
        event_config_free(config);
    }
    if (!loop->base)
        return error_set_errno(err, ERROR_SYSTEM, "cannot make an event loop");
    loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (loop->wake_fd < 0)
        return error_set_errno(err, ERROR_SYSTEM, "cannot make an eventfd");
    loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (loop->timer_fd < 0)
        return error_set_errno(err, ERROR_SYSTEM, "cannot make a timerfd");
    loop->scratch = memory_alloc(NET_SCRATCH_SIZE);
    event_assign(&loop->wake_event, loop->base, loop->wake_fd, EV_READ | EV_PERSIST | EV_ET, woken,
                 loop);
    event_assign(&loop->timer_event, loop->base, loop->timer_fd, EV_READ | EV_PERSIST | EV_ET,
                 timers_due, loop);
    if (event_add(&loop->wake_event, NULL) != 0 || event_add(&loop->timer_event, NULL) != 0)
        return error_set_errno(err, ERROR_SYSTEM, "cannot watch an eventfd");
    return true;
}

void net_loops_free(struct net_loops *loops)
{
    if (!loops)
        return;
    for (size_t i = 0; i < loops->count; i++) {
        struct net_loop *loop = &loops->loops[i];

        if (loop->started) {
            loop->stop_task.run = stop;
            net_loop_post(loop, &loop->stop_task);
        }
    }
    for (size_t i = 0; i < loops->count; i++)
        if (loops->loops[i].started)
            thread_join(&loops->loops[i].thread);
    for (size_t i = 0; i < loops->count; i++)
        loop_done(&loops->loops[i]);
    memory_free(loops);
}

static void loop_done(struct net_loop *loop)
{
    if (loop->base)
        event_base_free(loop->base);
    if (loop->wake_fd >= 0)
        close(loop->wake_fd);
    if (loop->timer_fd >= 0)
        close(loop->timer_fd);
    memory_free(loop->timers);
    net_chunk_pool_done(&loop->chunks);
    memory_free(loop->scratch);
}

struct hastening {
    struct net_loop *loop;
    int nice;
    bool first;
    struct error *err;
    bool done;
};

static void loop_hasten(void *context)
{
    struct hastening *wanted = context;
    struct net_loop *loop = wanted->loop;

    loop->nice = wanted->nice;
    wanted->done = thread_hasten(wanted->nice, wanted->err) && wanted->done;
    loop->may_first = wanted->done && wanted->first && thread_go_first(true, loop->nice);
    loop->haste.first = loop->may_first;
}

bool net_loops_hasten(struct net_loops *loops, int nice, bool first, struct error *err)
{
    struct hastening wanted = {.nice = nice, .first = first, .err = err, .done = true};

    for (size_t i = 0; i < loops->count; i++) {
        wanted.loop = &loops->loops[i];
        net_loop_call(wanted.loop, loop_hasten, &wanted);
    }
    return wanted.done;
}

static int64_t coarse_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static uint64_t own_cpu_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

void net_loop_mind_others(struct net_loop *loop)
{
    int64_t now_ms;

    if (!loop->may_first)
        return;
    now_ms = coarse_ms();
    if (net_haste_is_due(&loop->haste, now_ms) &&
        net_haste_look(&loop->haste, now_ms, own_cpu_ns()) &&
        !thread_go_first(loop->haste.first, loop->nice))
        loop->may_first = false; /* the right was taken away */
}

size_t net_loops_count(const struct net_loops *loops)
{
    return loops->count;
}

struct net_loop *net_loops_at(struct net_loops *loops, size_t index)
{
    assert(index < loops->count);
    return &loops->loops[index];
}

size_t net_loop_index(const struct net_loop *loop)
{
    return loop->index;
}

bool net_loop_is_current(const struct net_loop *loop)
{
    return atomic_load_explicit(&loop->self, memory_order_relaxed) == pthread_self();
}

static void loop_run(void *context)
{
    struct net_loop *loop = context;

    atomic_store_explicit(&loop->self, pthread_self(), memory_order_relaxed);
    event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY);
    /* A task may post another; all of them belong to what was there before the end. */
    while (loop->rows_used || atomic_load_explicit(&loop->posted, memory_order_relaxed))
        tasks_run(loop);
}

static void stop(struct net_task *task UNUSED, struct net_loop *loop)
{
    event_base_loopbreak(loop->base);
}

static void wake(struct net_loop *loop)
{
    uint64_t one = 1;
    ssize_t written = write(loop->wake_fd, &one, sizeof one);

    assert(written == sizeof one);
}

void net_loop_post(struct net_loop *loop, struct net_task *task)
{
    struct net_task *before = atomic_load_explicit(&loop->posted, memory_order_relaxed);

    do {
        task->next = before;
    } while (!atomic_compare_exchange_weak_explicit(&loop->posted, &before, task,
                                                    memory_order_release, memory_order_relaxed));
    if (!before)
        wake(loop);
}

static void woken(evutil_socket_t fd UNUSED, short what UNUSED, void *context)
{
    tasks_run(context);
}

static unsigned row_of(const struct net_task *task)
{
    return (unsigned)((uint64_t)(uintptr_t)task->owner * 0x9E3779B97F4A7C15 >> 32) % ROWS;
}

static void row_append(struct net_loop *loop, struct net_task *task)
{
    unsigned at = row_of(task);
    struct task_row *row = &loop->rows[at];

    task->next = NULL;
    if (row->first)
        row->last->next = task;
    else
        row->first = task;
    row->last = task;
    loop->rows_used |= (uint32_t)1 << at;
}

/* The oldest of the row whose turn it is. There must be one. */
static struct net_task *rows_next(struct net_loop *loop)
{
    struct task_row *row;
    struct net_task *task;

    while (!(loop->rows_used & (uint32_t)1 << loop->row_next))
        loop->row_next = (loop->row_next + 1) % ROWS;
    row = &loop->rows[loop->row_next];
    task = row->first;
    row->first = task->next;
    if (!row->first)
        loop->rows_used &= ~((uint32_t)1 << loop->row_next);
    loop->row_next = (loop->row_next + 1) % ROWS;
    return task;
}

/* What was posted goes behind what waits already. */
static void tasks_take(struct net_loop *loop)
{
    struct net_task *task =
        atomic_exchange_explicit(&loop->posted, (struct net_task *)NULL, memory_order_acquire);
    struct net_task *oldest = NULL;

    while (task) {
        struct net_task *next = task->next;

        task->next = oldest;
        oldest = task;
        task = next;
    }
    while (oldest) {
        struct net_task *next = oldest->next;

        row_append(loop, oldest);
        oldest = next;
    }
}

/* Runs some of what is there now, of each owner in turn: answers to one account that asks without
 * end do not stand before those to others. The rest, and what these tasks post, waits for the next
 * round, so that descriptors get their turn. */
static void tasks_run(struct net_loop *loop)
{
    net_loop_mind_others(loop);
    tasks_take(loop);
    for (unsigned i = 0; i < ROUND_TASKS && loop->rows_used; i++) {
        struct net_task *task = rows_next(loop);

        task->run(task, loop); /* which may be gone after this */
    }
    if (loop->rows_used)
        wake(loop);
}

struct call {
    struct net_task task;
    void (*run)(void *context);
    void *context;
    struct mutex lock;
    struct condition finished;
    bool done;
};

static void call_run(struct net_task *task, struct net_loop *loop UNUSED)
{
    struct call *call = CONTAINER_OF(task, struct call, task);

    call->run(call->context);
    /* Signalled under the lock: the caller may destroy both as soon as it holds it. */
    WITH_LOCK (&call->lock) {
        call->done = true;
        condition_signal(&call->finished);
    }
}

void net_loop_call(struct net_loop *loop, void (*run)(void *context), void *context)
{
    struct call call = {.task = {.run = call_run}, .run = run, .context = context};

    assert(!net_loop_is_current(loop));
    mutex_init(&call.lock);
    condition_init(&call.finished);
    net_loop_post(loop, &call.task);
    WITH_LOCK (&call.lock) {
        while (!call.done)
            condition_wait(&call.finished, &call.lock);
    }
    condition_done(&call.finished);
    mutex_done(&call.lock);
}

/* time() reads the coarse clock without entering the kernel, so asking each time is cheaper than
 * a timer would be and lets an idle loop sleep. */
struct slice net_loop_date(struct net_loop *loop)
{
    time_t now = time(NULL);

    if (UNLIKELY(now != loop->date_second)) {
        loop->date_second = now;
        clock_http_date((int64_t)now * 1000, loop->date);
    }
    return slice_of(loop->date, sizeof loop->date);
}

/* Timers: a binary heap; every timer knows its place in it. */

static void timer_place(struct net_loop *loop, struct net_timer *timer, size_t place)
{
    loop->timers[place] = timer;
    timer->place = place;
}

/* Moves the timer from a free place to where it belongs. */
static void timer_sift(struct net_loop *loop, struct net_timer *timer, size_t place)
{
    while (place > 0 && loop->timers[(place - 1) / 2]->queued_ms > timer->queued_ms) {
        timer_place(loop, loop->timers[(place - 1) / 2], place);
        place = (place - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * place + 1;

        if (child + 1 < loop->timer_count &&
            loop->timers[child + 1]->queued_ms < loop->timers[child]->queued_ms)
            child++;
        if (child >= loop->timer_count || loop->timers[child]->queued_ms >= timer->queued_ms)
            break;
        timer_place(loop, loop->timers[child], place);
        place = child;
    }
    timer_place(loop, timer, place);
}

static void timer_unqueue(struct net_timer *timer)
{
    struct net_loop *loop = timer->loop;
    struct net_timer *last;

    if (timer->queued_ms == NET_TIMER_NEVER)
        return;
    timer->queued_ms = NET_TIMER_NEVER;
    last = loop->timers[--loop->timer_count];
    if (last != timer)
        timer_sift(loop, last, timer->place);
}

static void timer_queue(struct net_timer *timer)
{
    struct net_loop *loop = timer->loop;

    timer_unqueue(timer);
    if (loop->timer_count == loop->timer_capacity) {
        loop->timer_capacity = MAX(2 * loop->timer_capacity, (size_t)16);
        loop->timers = memory_realloc(
            loop->timers, memory_array_size(loop->timer_capacity, sizeof *loop->timers));
    }
    timer->queued_ms = timer->at_ms;
    loop->timer_count++;
    timer_sift(loop, timer, loop->timer_count - 1);
}

/* Sets the timerfd to the earliest timer, unless it comes before that anyway. */
static void timer_fd_set(struct net_loop *loop)
{
    struct itimerspec at = {0};
    int64_t first_ms;

    if (loop->timer_count == 0)
        return;
    first_ms = loop->timers[0]->queued_ms;
    if (loop->timer_fd_ms != NET_TIMER_NEVER && loop->timer_fd_ms <= first_ms)
        return;
    loop->timer_fd_ms = first_ms;
    at.it_value.tv_sec = first_ms / 1000;
    at.it_value.tv_nsec = first_ms % 1000 * 1000000;
    timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

struct net_timer *net_timer_new(struct net_loop *loop, void (*fire)(void *context), void *context)
{
    struct net_timer *timer = MEMORY_NEW(struct net_timer);

    timer->loop = loop;
    timer->fire = fire;
    timer->context = context;
    return timer;
}

void net_timer_free(struct net_timer *timer)
{
    if (!timer)
        return;
    timer_unqueue(timer);
    memory_free(timer);
}

void net_timer_set(struct net_timer *timer, int64_t at_ms)
{
    timer->at_ms = at_ms;
    if (at_ms == NET_TIMER_NEVER ||
        (timer->queued_ms != NET_TIMER_NEVER && timer->queued_ms <= at_ms))
        return;
    timer_queue(timer);
    timer_fd_set(timer->loop);
}

/* Only those due when we begin: a timer that sets itself to now waits for the next round. */
static void timers_due(evutil_socket_t fd UNUSED, short what UNUSED, void *context)
{
    struct net_loop *loop = context;
    int64_t now_ms = clock_monotonic_ms();
    size_t budget = loop->timer_count;

    net_loop_mind_others(loop);
    loop->timer_fd_ms = NET_TIMER_NEVER;
    while (budget-- > 0 && loop->timer_count && loop->timers[0]->queued_ms <= now_ms) {
        struct net_timer *timer = loop->timers[0];

        if (timer->at_ms == NET_TIMER_NEVER) {
            timer_unqueue(timer);
        } else if (timer->at_ms > now_ms) {
            timer_queue(timer);
        } else {
            timer_unqueue(timer);
            timer->at_ms = NET_TIMER_NEVER;
            timer->fire(timer->context); /* which may free the timer */
        }
    }
    timer_fd_set(loop);
}

struct event_base *net_loop_base(struct net_loop *loop)
{
    return loop->base;
}

struct net_chunk_pool *net_loop_chunks(struct net_loop *loop)
{
    return &loop->chunks;
}

uint8_t *net_loop_scratch(struct net_loop *loop)
{
    return loop->scratch;
}

size_t net_loop_load(const struct net_loop *loop)
{
    return atomic_load_explicit(&loop->load, memory_order_relaxed);
}

void net_loop_load_change(struct net_loop *loop, int by)
{
    atomic_fetch_add_explicit(&loop->load, (size_t)by, memory_order_relaxed);
}
