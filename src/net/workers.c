/* Queues under one lock, which only workers wait for. A loop that waited for it would wait for a
 * worker that holds it and has no processor (found with strace: a millisecond and more while one
 * account sends long texts). So work is put on a stack that takes no lock. If the lock is free, the
 * loop sorts the stack into the queues and starts who is needed; if not, it rings for a worker that
 * sleeps, which does so. If none sleeps, those that run do so before they end or sleep; only while
 * another thread may be started, which is done under the lock, a loop waits for it. In each case
 * the stack is written before the counts are read (idle, threads), and those who sleep or end write
 * the count before they look at the stack: one of the two sees the other.
 *
 * There are far more threads than processors, for most work waits for a store. So handing out
 * threads fairly is not enough: an owner whose work computes could keep every processor busy with a
 * few of them, and the kernel would give each of its threads as much as another owner's only one.
 * Therefore only busy_max of an owner's threads may compute at a time; others stop where they
 * breathe. A thread computes if it has used a millisecond of processor time and hardly ever waited
 * meanwhile, by its own doing: what is read from stores waits all the time and is never held back
 * so, and it makes no difference how much else runs on the machine. Besides, the processor time of
 * each owner is followed, for work too short to breathe: while it is high, as few threads of it may
 * begin anything.
 *
 * A thread that computes may come to wait for something else: for a process that runs a script, or
 * for what another thread of its owner holds, which may be waiting for its turn. It cannot say so
 * from where it waits. So whoever is next looks at whether those that compute get any further, and
 * takes the turn of one that does not.
 *
 * All that is for others. While an owner is alone it may use every core (alone_max); when somebody
 * else asks, those of its threads that are too many stop where they breathe next.
 *
 * Within an owner work that has begun and work that has not take turns. What may begin or go on
 * changes with time alone as well, when load is forgotten; so every wait is for a few milliseconds
 * and then looks again, and a wake-up that went to the wrong thread does no harm.
 *
 * A thread occupies a slot. When it ends for want of work it leaves the slot marked as ended, and
 * whoever starts the next thread there joins it first, which does not wait. */
#include "net/workers.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "net/owner_private.h"

#include <sys/resource.h>
#include <time.h>

enum {
    LOOK_MS = 10,           /* between two looks at whether something may go on */
    HALVING_MS = 50,        /* an owner's load falls to half in this time */
    BREATH_NS = 1000000,    /* processor time between two looks of work that runs long */
    WAITS_MAX = 8,          /* in that time, of a thread that computes */
    TURN_NS = 10 * 1000000, /* after so much others of its owner come first */
    IDLE_LOOKS_MAX = 5      /* that find no progress of a thread that should compute: it waits */
};

enum slot_state { SLOT_EMPTY, SLOT_RUNNING, SLOT_ENDED };

struct slot {
    struct net_workers *workers;
    enum slot_state state; /* under the lock of workers */
    struct thread thread;
    /* The thread's own, while it has work. */
    struct net_owner *owner;
    struct net_lane *lane;
    uint64_t cpu_ns;  /* of the thread, as far as its owner was told */
    uint64_t turn_ns; /* the same when its turn began */
    long waits;       /* how often it had waited by then */
    bool computing;   /* counted in its owner; under the lock */
    /* While it computes, as others see it; under the lock. */
    clockid_t clock;     /* of the processor time of the thread */
    uint64_t seen_ns;    /* of it, at the last look */
    uint32_t idle_looks; /* in a row that found no more */
};

struct net_workers {
    struct net_workers_settings settings;
    _Atomic(struct net_work *) arrived; /* newest first; closed at the end */
    struct net_work closed;
    struct thread_bell work_came;
    atomic_size_t pending; /* work that has not begun */
    atomic_size_t idle;    /* threads that sleep, or are about to; written under the lock */
    atomic_size_t threads; /* written under the lock */
    atomic_uint_least64_t submitted, refused;
    struct mutex lock; /* for everything below */
    struct net_owner house;
    struct net_owner *first, *last; /* owners with work that waits, in turn */
    bool stopping;
    size_t called; /* of those that are idle, that were told to look */
    bool watched;  /* one of them looks every LOOK_MS at whether something may begin */
    struct net_workers_metrics metrics;
    struct slot slots[]; /* settings.threads_max */
};

static _Thread_local struct slot *current; /* of a worker's thread */

static void arrived_sort(struct net_workers *workers, struct net_work *stack);
static void worker_run(void *context);
static void worker_start(struct net_workers *workers);
static void worker_call(struct net_workers *workers);
static bool work_take(struct slot *slot, struct net_work **ret_work);
static void work_finish(struct net_work *work);
static void slot_leave(struct slot *slot);

struct net_workers_settings net_workers_settings_default(void)
{
    return (struct net_workers_settings){
        .threads_max = 32,
        .queue_max = 4096,
        .busy_max = MAX(net_cores_usable(), (size_t)2) - 1,
        .alone_max = net_cores_usable(),
        .idle_ms = 10 * 1000,
    };
}

struct net_workers *net_workers_new(const struct net_workers_settings *settings)
{
    struct net_workers *workers = memory_alloc_zero(
        sizeof *workers + memory_array_size(settings->threads_max, sizeof(struct slot)));

    assert(settings->threads_max > 0);
    workers->settings = *settings;
    workers->settings.busy_max = MAX(settings->busy_max, (size_t)1);
    workers->settings.alone_max = MAX(settings->alone_max, workers->settings.busy_max);
    workers->house.house = true;
    mutex_init(&workers->lock);
    for (size_t i = 0; i < settings->threads_max; i++)
        workers->slots[i].workers = workers;
    return workers;
}

/* Once the workers are stopping, no slot comes into use any more. */
static bool slot_is_used(struct slot *slot)
{
    bool used = false;

    WITH_LOCK (&slot->workers->lock) {
        used = slot->state != SLOT_EMPTY;
    }
    return used;
}

void net_workers_free(struct net_workers *workers)
{
    if (!workers)
        return;
    WITH_LOCK (&workers->lock) {
        arrived_sort(workers, atomic_exchange(&workers->arrived, &workers->closed));
        if (workers->metrics.queued)
            worker_call(workers); /* whoever brought it may not have had the lock yet */
        workers->stopping = true;
        thread_bell_ring(&workers->work_came, true);
    }
    for (size_t i = 0; i < workers->settings.threads_max; i++)
        if (slot_is_used(&workers->slots[i]))
            thread_join(&workers->slots[i].thread);
    assert(!workers->metrics.queued && !workers->first && !workers->pending);
    mutex_done(&workers->lock);
    memory_free(workers);
}

/* --- What an owner may ----------------------------------------------------------------------- */

/* Three quarters, but never none. */
static size_t most_of(size_t count)
{
    return count > 1 ? count - MAX(count / 4, (size_t)1) : count;
}

/* What one owner may have of so many. */
static size_t owner_part(const struct net_owner *owner, size_t count)
{
    return owner->guest ? MAX(count / 8, (size_t)1) : most_of(count);
}

static void load_add(struct net_owner *owner, uint64_t cpu_ns, int64_t now_ms)
{
    int64_t halvings = (now_ms - owner->load_at_ms) / HALVING_MS;

    if (halvings > 0) {
        owner->load_ns = halvings < 32 ? owner->load_ns >> halvings : 0;
        owner->load_at_ms += halvings * HALVING_MS;
    }
    owner->load_ns += cpu_ns;
}

/* Threads of it that may compute at a time. */
static size_t busy_max(const struct net_workers *workers, const struct net_owner *owner)
{
    return net_owner_is_alone(owner) ? workers->settings.alone_max : workers->settings.busy_max;
}

/* Does it keep half of the processors busy that it may? One that is always busy adds up to two
 * halvings' worth. */
static bool is_busy(const struct net_workers *workers, struct net_owner *owner, int64_t now_ms)
{
    if (owner->house || workers->stopping)
        return false;
    load_add(owner, 0, now_ms);
    return owner->load_ns >= (uint64_t)busy_max(workers, owner) * HALVING_MS * (uint64_t)1000000;
}

/* The lane whose turn it is, of those that may have another thread. NULL: none. */
static struct net_lane *lane_find(const struct net_workers *workers, struct net_owner *owner)
{
    size_t owner_max = owner_part(owner, workers->settings.threads_max);
    size_t lane_max = most_of(owner_max);
    bool free = owner->house || workers->stopping;

    if (!free && owner->running >= owner_max)
        return NULL;
    for (unsigned i = 0; i < NET_LANES; i++) {
        struct net_lane *lane = &owner->lanes[(owner->lane_next + i) % NET_LANES];

        if (lane->first && (free || lane->running < lane_max))
            return lane;
    }
    return NULL;
}

/* May work of it begin? */
static struct net_lane *startable(const struct net_workers *workers, struct net_owner *owner,
                                  int64_t now_ms)
{
    if (is_busy(workers, owner, now_ms) &&
        (owner->active >= busy_max(workers, owner) || (owner->waiter_first && !owner->favours_new)))
        return NULL;
    return lane_find(workers, owner);
}

/* --- Taking work ----------------------------------------------------------------------------- */

static void owner_append(struct net_workers *workers, struct net_owner *owner)
{
    owner->next = NULL;
    if (workers->last)
        workers->last->next = owner;
    else
        workers->first = owner;
    workers->last = owner;
}

static void work_append(struct net_workers *workers, struct net_owner *owner, struct net_work *work)
{
    struct net_lane *lane = &owner->lanes[work->part % NET_LANES];

    work->next = NULL;
    if (lane->first)
        lane->last->next = work;
    else
        lane->first = work;
    lane->last = work;
    if (owner->queued++ == 0)
        owner_append(workers, owner);
    workers->metrics.queued++;
}

/* Into the queues, oldest first. Under the lock. */
static void arrived_sort(struct net_workers *workers, struct net_work *stack)
{
    struct net_work *oldest = NULL;

    while (stack) {
        struct net_work *next = stack->next;

        stack->next = oldest;
        oldest = stack;
        stack = next;
    }
    while (oldest) {
        struct net_work *next = oldest->next;

        work_append(workers, oldest->owner ? oldest->owner : &workers->house, oldest);
        oldest = next;
    }
}

/* What has come without the lock. Under it; the stack is closed under it, too. */
static void arrived_take(struct net_workers *workers)
{
    struct net_work *newest = atomic_load(&workers->arrived);

    if (newest && newest != &workers->closed)
        arrived_sort(workers, atomic_exchange(&workers->arrived, (struct net_work *)NULL));
}

/* False: the stack is closed. */
static bool arrived_push(struct net_workers *workers, struct net_work *work)
{
    struct net_work *before = atomic_load(&workers->arrived);

    do {
        if (before == &workers->closed)
            return false;
        work->next = before;
    } while (!atomic_compare_exchange_weak(&workers->arrived, &before, work));
    return true;
}

/* One more has not begun, if that is no more than max. */
static bool pending_add(atomic_size_t *pending, size_t max)
{
    if (atomic_fetch_add(pending, 1) < max)
        return true;
    atomic_fetch_sub(pending, 1);
    return false;
}

static bool pending_admit(struct net_workers *workers, struct net_owner *owner, struct error *err)
{
    size_t max = workers->settings.queue_max;

    if (!pending_add(&workers->pending, max))
        return error_set(err, ERROR_BUSY, "%zu requests already wait for a worker", max);
    if (owner && !pending_add(&owner->pending, owner_part(owner, max))) {
        atomic_fetch_sub(&workers->pending, 1);
        return error_set(err, ERROR_BUSY, "%zu requests already wait for a worker",
                         owner_part(owner, max));
    }
    return true;
}

static void pending_remove(struct net_workers *workers, struct net_owner *owner)
{
    atomic_fetch_sub(&workers->pending, 1);
    if (owner && !owner->house)
        atomic_fetch_sub(&owner->pending, 1);
}

/* Work of the owner has come: it is queued, and a thread is called if it may begin. Under the lock.
 */
static void owner_serve(struct net_workers *workers, struct net_owner *owner)
{
    arrived_take(workers);
    /* One that is on its way calls the next when it has taken its own: waking costs a loop more
     * than all else here. */
    if (owner->queued && !workers->called && startable(workers, owner, clock_monotonic_ms()))
        worker_call(workers);
}

bool net_workers_submit(struct net_workers *workers, struct net_work *work, struct error *err)
{
    struct net_owner *owner = work->owner ? work->owner : &workers->house;

    assert(!work->done || work->loop);
    if (!pending_admit(workers, work->owner, err)) {
        atomic_fetch_add(&workers->refused, 1);
        return false;
    }
    if (!arrived_push(workers, work)) {
        pending_remove(workers, work->owner);
        atomic_fetch_add(&workers->refused, 1);
        return error_set(err, ERROR_SHUTTING_DOWN, "the server is stopping");
    }
    /* From here on it may have run, and be gone. */
    atomic_fetch_add(&workers->submitted, 1);
    if (!mutex_try_lock(&workers->lock)) {
        if (atomic_load(&workers->idle)) {
            thread_bell_ring(&workers->work_came, false);
            return true;
        }
        if (atomic_load(&workers->threads) == workers->settings.threads_max)
            return true; /* the next that is done takes it */
        mutex_lock(&workers->lock);
    }
    owner_serve(workers, owner);
    mutex_unlock(&workers->lock);
    return true;
}

/* A thread looks for work: one that waits and was not called yet, or else another. Under the lock.
 */
static void worker_call(struct net_workers *workers)
{
    if (workers->idle > workers->called) {
        workers->called++;
        thread_bell_ring(&workers->work_came, false);
    } else if (!workers->stopping && workers->threads < workers->settings.threads_max) {
        worker_start(workers);
    }
}

/* Under the lock: an ended thread holds it no more, so joining one cannot wait for us. */
static void worker_start(struct net_workers *workers)
{
    for (size_t i = 0; i < workers->settings.threads_max; i++) {
        struct slot *slot = &workers->slots[i];

        if (slot->state == SLOT_RUNNING)
            continue;
        if (slot->state == SLOT_ENDED)
            thread_join(&slot->thread);
        slot->state = SLOT_RUNNING;
        workers->threads++;
        thread_start(&slot->thread, "worker", worker_run, slot);
        return;
    }
}

/* Has something come for a thread that is about to end? Then it stays. */
static bool worker_goes_on(struct net_workers *workers)
{
    arrived_take(workers);
    if (workers->stopping || !workers->metrics.queued)
        return false;
    workers->threads++;
    return true;
}

static void worker_run(void *context)
{
    struct slot *slot = context;
    struct net_workers *workers = slot->workers;
    struct net_work *work;

    current = slot;
    mutex_lock(&workers->lock);
    if (pthread_getcpuclockid(pthread_self(), &slot->clock) != 0)
        slot->clock = CLOCK_MONOTONIC; /* always gets further */
    do {
        while (work_take(slot, &work)) {
            workers->metrics.running++;
            mutex_unlock(&workers->lock);
            work_finish(work);
            mutex_lock(&workers->lock);
            workers->metrics.running--;
            slot_leave(slot);
        }
        workers->threads--;
    } while (worker_goes_on(workers));
    slot->state = SLOT_ENDED;
    mutex_unlock(&workers->lock);
}

static uint64_t thread_cpu_ns(void)
{
    struct timespec spent;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return (uint64_t)spent.tv_sec * 1000000000 + (uint64_t)spent.tv_nsec;
}

/* How often the thread has waited for something other than a processor. */
static long thread_waits(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

/* The owner whose turn it is has work that may begin: the slot takes it, and the owner goes to the
 * end of the row. NULL: nothing may begin now. */
static struct net_work *work_begin(struct slot *slot)
{
    struct net_workers *workers = slot->workers;
    int64_t now_ms = clock_monotonic_ms();
    struct net_owner **link = &workers->first, *owner, *before = NULL;
    struct net_lane *lane = NULL;
    struct net_work *work;

    for (; (owner = *link); before = owner, link = &owner->next)
        if ((lane = startable(workers, owner, now_ms)))
            break;
    if (!owner)
        return NULL;
    *link = owner->next;
    if (workers->last == owner)
        workers->last = before;
    work = lane->first;
    lane->first = work->next;
    workers->metrics.queued--;
    pending_remove(workers, owner);
    if (--owner->queued)
        owner_append(workers, owner);
    owner->lane_next = (unsigned)(lane - owner->lanes + 1) % NET_LANES;
    owner->favours_new = false;
    owner->running++;
    owner->active++;
    lane->running++;
    slot->owner = owner;
    slot->lane = lane;
    slot->cpu_ns = slot->turn_ns = thread_cpu_ns();
    slot->waits = thread_waits();
    return work;
}

/* Is there more that may begin now? */
static bool more_startable(const struct net_workers *workers)
{
    int64_t now_ms = workers->first ? clock_monotonic_ms() : 0;

    for (struct net_owner *owner = workers->first; owner; owner = owner->next)
        if (startable(workers, owner, now_ms))
            return true;
    return false;
}

/* Waits until something may have changed. Work that may not begin yet is looked at again and again
 * by one thread alone. */
static bool work_await(struct net_workers *workers, int64_t until_ms)
{
    uint32_t noted = thread_bell_note(&workers->work_came);
    bool watches, in_time = true;

    workers->idle++;
    arrived_take(workers);
    if (!more_startable(workers)) {
        watches = workers->metrics.queued && !workers->watched;
        workers->watched |= watches;
        if (watches)
            until_ms = MIN(until_ms, clock_monotonic_ms() + LOOK_MS);
        mutex_unlock(&workers->lock);
        in_time = thread_bell_sleep(&workers->work_came, noted, until_ms);
        mutex_lock(&workers->lock);
        arrived_take(workers);
        if (watches)
            workers->watched = false;
        if (workers->called)
            workers->called--;
    }
    workers->idle--;
    return in_time;
}

/* The next piece of work; false after idle_ms without any, or at the end. Under the lock. */
static bool work_take(struct slot *slot, struct net_work **ret_work)
{
    struct net_workers *workers = slot->workers;
    int64_t until_ms = clock_monotonic_ms() + workers->settings.idle_ms;

    arrived_take(workers);
    while (!(*ret_work = work_begin(slot))) {
        if (!workers->metrics.queued && workers->stopping)
            return false;
        if (!work_await(workers, until_ms) && !workers->metrics.queued &&
            clock_monotonic_ms() >= until_ms)
            return false;
    }
    /* somebody else takes what is left, or watches it */
    if ((!workers->called && more_startable(workers)) ||
        (workers->metrics.queued && !workers->watched && workers->idle > workers->called))
        worker_call(workers);
    return true;
}

static void done_on_loop(struct net_task *task, struct net_loop *loop)
{
    struct net_work *work = CONTAINER_OF(task, struct net_work, task);

    work->done(work, loop);
}

static void work_finish(struct net_work *work)
{
    /* Without a done, run may have freed the work. */
    bool has_done = work->done != NULL;

    work->run(work);
    if (has_done) {
        work->task.run = done_on_loop;
        work->task.owner = work->owner;
        net_loop_post(work->loop, &work->task);
    }
}

/* --- Turns ----------------------------------------------------------------------------------- */

/* A thread computes no more: another may. Under the lock. */
static void owner_wake(struct net_workers *workers, struct net_owner *owner)
{
    if (owner->waiter_first)
        condition_signal(&owner->waiter_first->changed);
    if (workers->metrics.queued)
        worker_call(workers);
}

static void slot_account(struct slot *slot, int64_t now_ms)
{
    uint64_t cpu_ns = thread_cpu_ns();

    load_add(slot->owner, cpu_ns - slot->cpu_ns, now_ms);
    slot->cpu_ns = cpu_ns;
}

static void slot_compute(struct slot *slot, bool computing)
{
    if (slot->computing && !computing)
        slot->owner->computing--;
    else if (!slot->computing && computing)
        slot->owner->computing++;
    slot->computing = computing;
    slot->idle_looks = 0;
}

static void slot_leave(struct slot *slot)
{
    struct net_owner *owner = slot->owner;

    slot_account(slot, clock_monotonic_ms());
    slot_compute(slot, false);
    assert(owner->running && owner->active && slot->lane->running);
    owner->running--;
    owner->active--;
    slot->lane->running--;
    slot->owner = NULL;
    owner_wake(slot->workers, owner);
}

/* Is there work of the owner that a thread would begin, if this one stood back? */
static bool has_rivals(const struct net_workers *workers, struct net_owner *owner)
{
    return owner->waiter_first ||
           (owner->queued && lane_find(workers, owner) &&
            (workers->idle || workers->threads < workers->settings.threads_max));
}

static bool may_go_on(const struct net_workers *workers, struct net_owner *owner,
                      const struct net_waiter *waiter)
{
    bool new_first =
        owner->favours_new && owner->queued && workers->idle && lane_find(workers, owner) != NULL;

    return owner->waiter_first == waiter &&
           (workers->stopping || (owner->computing < busy_max(workers, owner) && !new_first));
}

/* Those that should compute and do not get any further wait for something: they do not count any
 * more, until they breathe again. */
static void owner_look(struct net_workers *workers, const struct net_owner *owner)
{
    for (size_t i = 0; i < workers->settings.threads_max; i++) {
        struct slot *slot = &workers->slots[i];
        struct timespec spent;
        uint64_t now_ns;

        if (slot->owner != owner || !slot->computing || clock_gettime(slot->clock, &spent) != 0)
            continue;
        now_ns = (uint64_t)spent.tv_sec * 1000000000 + (uint64_t)spent.tv_nsec;
        slot->idle_looks = now_ns == slot->seen_ns ? slot->idle_looks + 1 : 0;
        slot->seen_ns = now_ns;
        if (slot->idle_looks >= IDLE_LOOKS_MAX)
            slot_compute(slot, false);
    }
}

static void turn_await(struct slot *slot)
{
    struct net_workers *workers = slot->workers;
    struct net_owner *owner = slot->owner;
    struct net_waiter waiter = {0};

    condition_init(&waiter.changed);
    slot_compute(slot, false);
    owner->active--;
    workers->metrics.waiting++;
    if (owner->waiter_first)
        owner->waiter_last->next = &waiter;
    else
        owner->waiter_first = &waiter;
    owner->waiter_last = &waiter;
    owner_wake(workers, owner);
    while (!may_go_on(workers, owner, &waiter)) {
        if (owner->waiter_first == &waiter) {
            if (!condition_wait_until(&waiter.changed, &workers->lock,
                                      clock_monotonic_ms() + LOOK_MS))
                owner_look(workers, owner);
        } else
            condition_wait(&waiter.changed, &workers->lock);
    }
    condition_done(&waiter.changed);
    owner->waiter_first = waiter.next;
    workers->metrics.waiting--;
    owner->active++;
    owner->favours_new = true;
    slot_compute(slot, true);
    slot->turn_ns = slot->cpu_ns;
    if (owner->waiter_first)
        condition_signal(&owner->waiter_first->changed); /* it is first now */
}

static struct slot *slot_of(struct net_workers *workers)
{
    struct slot *slot = current;

    return slot && slot->workers == workers && slot->owner && !slot->owner->house ? slot : NULL;
}

void net_workers_breathe(struct net_workers *workers)
{
    struct slot *slot = slot_of(workers);
    long waits;

    if (!slot || thread_cpu_ns() - slot->cpu_ns < BREATH_NS)
        return;
    waits = thread_waits();
    WITH_LOCK (&workers->lock) {
        struct net_owner *owner = slot->owner;

        slot_account(slot, clock_monotonic_ms());
        if (waits - slot->waits > WAITS_MAX) {
            slot_compute(slot, false);
            owner_wake(workers, owner);
        } else if (!slot->computing && owner->computing < busy_max(workers, owner)) {
            slot_compute(slot, true);
        } else if (!slot->computing || owner->computing > busy_max(workers, owner) ||
                   (slot->cpu_ns - slot->turn_ns >= TURN_NS && has_rivals(workers, owner))) {
            turn_await(slot);
        }
    }
    slot->waits = thread_waits();
}

void net_workers_rest(struct net_workers *workers)
{
    struct slot *slot = slot_of(workers);

    if (!slot)
        return;
    WITH_LOCK (&workers->lock) {
        slot_account(slot, clock_monotonic_ms());
        slot_compute(slot, false);
        slot->owner->active--;
        owner_wake(workers, slot->owner);
    }
}

void net_workers_rested(struct net_workers *workers)
{
    struct slot *slot = slot_of(workers);

    if (!slot)
        return;
    WITH_LOCK (&workers->lock) {
        slot->owner->active++;
    }
}

void net_workers_metrics(struct net_workers *workers, struct net_workers_metrics *ret_metrics)
{
    WITH_LOCK (&workers->lock) {
        *ret_metrics = workers->metrics;
    }
    ret_metrics->threads = atomic_load(&workers->threads);
    ret_metrics->queued = atomic_load(&workers->pending);
    ret_metrics->submitted = atomic_load(&workers->submitted);
    ret_metrics->refused = atomic_load(&workers->refused);
}
