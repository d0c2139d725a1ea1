/* One lock over lists and counts, never held while a process is started, spoken to or ended. All
 * workers are started by one thread, the starter, which lives as long as the pool: workers are told
 * to end with the thread that made them, so that a server that is killed leaves none behind.
 *
 * Nothing is started before the first run; from then on a spare is kept ready, because starting
 * one takes tens of milliseconds. A worker never changes its domain. When all places are taken by
 * other domains, the idle one that has waited longest makes room.
 *
 * Who may have one is a matter of shares (share.h): those who wait are ranked by how many their
 * account has, and go on as soon as more workers are not busy than wait before them. A limit alone,
 * first come first served, was weighed: then those who send most get most of what the limit of
 * others leaves. */
#include "script/pool.h"

#include "base/memory.h"
#include "base/thread.h"
#include "script/share.h"
#include "script/worker/sandbox.h"

#include <stdatomic.h>
#include <unistd.h>

enum {
    START_MS = 10000,      /* a worker that is not ready by then never will be */
    START_TRIES = 2,       /* a first failure may be an accident */
    START_PAUSE_MS = 1000, /* after so many that failed in a row */
    REPLY_GRACE_MS = 250,  /* a script is told to end itself this long before it is killed */
};

/* Somebody in take_waiting, on the stack of its thread. */
struct waiter {
    struct waiter *next;
    struct share_party *party;
    uint64_t number; /* who came first */
    bool nested;
};

/* A party that holds a place. */
struct script_place {
    struct share_party *party;
};

struct script_pool {
    struct script_options options;
    char *program; /* owned */

    struct mutex lock;
    struct condition changed; /* for those who wait for a worker */
    struct condition wanted;  /* for the starter */
    struct share share;
    struct waiter *waiters;
    uint64_t waiter_count; /* ever */
    uint32_t places;       /* taken */
    struct process *idle;  /* of some domain, the one used last comes first */
    uint32_t idle_count;
    struct process *spares; /* of nobody yet */
    uint32_t spare_count;
    uint32_t total; /* idle, spare, busy and being started */
    uint32_t busy, waiting;
    uint32_t hidden; /* of the worker started last: bits of worker/sandbox.h */
    bool used;       /* there was a run, so spares are worth their memory */
    bool stopping;
    int64_t start_after_ms; /* starts keep failing; not before this */
    struct error start_failure;
    uint64_t start_failures; /* in all, so that each waiter counts those that came after it */
    uint32_t start_streak;   /* since the last that went well */

    struct thread starter;
    atomic_uint_least64_t runs, failures, timeouts, crashes, started, killed;
};

static void starter_run(void *context);

/* --- Making and ending ----------------------------------------------------------------------- */

static char *program_beside_us(void)
{
    char path[4096];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path);
    CLEANUP(arena_free) struct arena *arena = arena_new();

    while (len > 0 && path[len - 1] != '/')
        len--;
    return slice_to_text(arena_printf(arena, "%.*sorrery-js", len > 0 ? (int)len : 0, path));
}

static struct script_options options_filled(const struct script_options *given)
{
    struct script_options options = given ? *given : (struct script_options){0};

    options.workers_max = options.workers_max ? options.workers_max : 8;
    options.spares = options.spares ? options.spares : 1;
    options.calls_per_worker = options.calls_per_worker ? options.calls_per_worker : 100000;
    options.time_ms = options.time_ms ? options.time_ms : 5000;
    options.margin_ms = options.margin_ms ? options.margin_ms : options.time_ms / 10;
    options.wait_ms = options.wait_ms ? options.wait_ms : 1000;
    options.memory_bytes = options.memory_bytes ? options.memory_bytes : 256ul << 20;
    options.output_bytes = options.output_bytes ? options.output_bytes : 4ul << 20;
    options.log_bytes = options.log_bytes ? options.log_bytes : 16ul << 10;
    return options;
}

struct script_pool *script_pool_new(const struct script_options *options)
{
    struct script_pool *pool = MEMORY_NEW(struct script_pool);

    pool->options = options_filled(options);
    pool->program = pool->options.program ? slice_to_text(slice_of_text(pool->options.program))
                                          : program_beside_us();
    pool->options.program = pool->program;
    mutex_init(&pool->lock);
    condition_init(&pool->changed);
    condition_init(&pool->wanted);
    thread_start(&pool->starter, "script-starter", starter_run, pool);
    return pool;
}

static void processes_free(struct process *list)
{
    while (list) {
        struct process *next = list->next;

        process_free(list);
        list = next;
    }
}

void script_pool_free(struct script_pool *pool)
{
    if (!pool)
        return;
    WITH_LOCK (&pool->lock) {
        assert(pool->busy == 0 && pool->waiting == 0 && pool->places == 0);
        pool->stopping = true;
        condition_broadcast(&pool->wanted);
    }
    thread_join(&pool->starter);
    processes_free(pool->idle);
    processes_free(pool->spares);
    condition_done(&pool->changed);
    condition_done(&pool->wanted);
    mutex_done(&pool->lock);
    memory_free(pool->program);
    memory_free(pool);
}

const struct script_options *pool_options(const struct script_pool *pool)
{
    return &pool->options;
}

/* --- The starter ----------------------------------------------------------------------------- */

/* Is there a reason and a place for another worker? The lock is held. */
static bool start_due(const struct script_pool *pool)
{
    uint32_t wanted = MAX(pool->waiting, pool->used ? pool->options.spares : 0);

    return pool->spare_count < wanted && pool->total < pool->options.workers_max;
}

static void start_one(struct script_pool *pool)
{
    struct process *process = NULL;
    struct error err = {0};
    bool fine;

    pool->total++;
    mutex_unlock(&pool->lock);
    fine = process_start(pool->program, pool->options.memory_bytes, clock_monotonic_ms() + START_MS,
                         &process, &err);
    mutex_lock(&pool->lock);
    if (fine) {
        atomic_fetch_add(&pool->started, 1);
        pool->start_streak = 0;
        pool->hidden = process->hidden;
        process->next = pool->spares;
        pool->spares = process;
        pool->spare_count++;
    } else {
        pool->total--;
        pool->start_failure = err;
        pool->start_failures++;
        if (++pool->start_streak >= START_TRIES)
            pool->start_after_ms = clock_monotonic_ms() + START_PAUSE_MS;
    }
    condition_broadcast(&pool->changed);
}

static void starter_run(void *context)
{
    struct script_pool *pool = context;

    WITH_LOCK (&pool->lock) {
        while (!pool->stopping) {
            if (!start_due(pool))
                condition_wait(&pool->wanted, &pool->lock);
            else if (clock_monotonic_ms() < pool->start_after_ms)
                condition_wait_until(&pool->wanted, &pool->lock, pool->start_after_ms);
            else
                start_one(pool);
        }
    }
}

/* --- Lists ----------------------------------------------------------------------------------- */

static struct process *idle_take(struct script_pool *pool, struct slice domain)
{
    for (struct process **at = &pool->idle; *at; at = &(*at)->next) {
        struct process *process = *at;

        if (slice_equal(process->domain, domain)) {
            *at = process->next;
            pool->idle_count--;
            return process;
        }
    }
    return NULL;
}

static struct process *spare_take(struct script_pool *pool, struct slice domain)
{
    struct process *process = pool->spares;
    uint8_t *copy;

    if (!process)
        return NULL;
    pool->spares = process->next;
    pool->spare_count--;
    copy = memory_alloc(domain.len);
    if (domain.len)
        memcpy(copy, domain.data, domain.len);
    process->domain = slice_of(copy, domain.len);
    return process;
}

/* The idle worker unused for longest, out of the list and the count. */
static struct process *idle_evict(struct script_pool *pool)
{
    struct process **last = &pool->idle, *process;

    if (!*last)
        return NULL;
    while ((*last)->next)
        last = &(*last)->next;
    process = *last;
    *last = NULL;
    pool->idle_count--;
    pool->total--;
    return process;
}

/* --- Whose turn it is ------------------------------------------------------------------------ */

static bool waiter_may(const struct script_pool *pool, const struct waiter *waiter)
{
    return share_allows_process(&pool->share, waiter->party, waiter->nested,
                                pool->options.workers_max);
}

/* Are there as many workers that are not busy, or could be started, as wait before this one? */
static bool is_turn(const struct script_pool *pool, const struct waiter *waiter)
{
    uint32_t before = 0;

    if (!waiter_may(pool, waiter))
        return false;
    for (const struct waiter *other = pool->waiters; other; other = other->next) {
        int order = other == waiter ? 1 : share_compare(other->party, waiter->party);

        if ((order < 0 || (order == 0 && other->number < waiter->number)) &&
            waiter_may(pool, other))
            before++;
    }
    return before < pool->options.workers_max - pool->busy;
}

static void waiter_enter(struct script_pool *pool, struct waiter *waiter)
{
    waiter->number = pool->waiter_count++;
    waiter->next = pool->waiters;
    pool->waiters = waiter;
    pool->waiting++;
}

static void waiter_leave(struct script_pool *pool, struct waiter *waiter)
{
    struct waiter **at = &pool->waiters;

    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
    pool->waiting--;
    if (pool->waiting)
        condition_broadcast(&pool->changed); /* the ranks of others have changed */
}

/* --- Taking and giving ----------------------------------------------------------------------- */

static void process_discard(struct process *process, struct process **gone)
{
    process->next = *gone;
    *gone = process;
}

/* One that is there now, for whose turn it is; NULL: none, but one may be on its way. */
static struct process *take_now(struct script_pool *pool, struct slice domain,
                                struct process **ret_gone)
{
    for (;;) {
        struct process *process = idle_take(pool, domain);

        if (!process)
            process = spare_take(pool, domain);
        if (!process || process_alive(process))
            return process;
        pool->total--;
        process_discard(process, ret_gone);
    }
}

/* Is a worker being started, or about to be? The lock is held. */
static bool is_starting(const struct script_pool *pool)
{
    return (start_due(pool) && !pool->start_streak) ||
           pool->total > pool->busy + pool->idle_count + pool->spare_count;
}

/* An idle worker of another domain makes room, unless one is being started already. */
static void room_make(struct script_pool *pool, struct process **ret_gone)
{
    if (pool->total >= pool->options.workers_max && pool->idle && !is_starting(pool))
        process_discard(idle_evict(pool), ret_gone);
    condition_signal(&pool->wanted);
}

/* Waits under the lock until there is a worker for the domain. Those found dead, and those that
 * made room, are handed to the caller, who ends them without the lock. */
static bool take_waiting(struct script_pool *pool, const struct waiter *waiter, struct slice domain,
                         int64_t deadline_ms, struct process **ret_process,
                         struct process **ret_gone, struct error *err)
{
    uint64_t failures = pool->start_failures;

    for (;;) {
        bool turn = is_turn(pool, waiter);
        int64_t until_ms;

        if (turn && (*ret_process = take_now(pool, domain, ret_gone)))
            return true;
        if (pool->start_failures >= failures + START_TRIES) {
            *err = pool->start_failure;
            return false;
        }
        if (turn)
            room_make(pool, ret_gone);
        /* Nobody is before it where one is on its way: however long a busy machine takes to start
         * it, that is no sign of too many scripts. */
        until_ms = turn && is_starting(pool) ? deadline_ms + START_MS : deadline_ms;
        if (!condition_wait_until(&pool->changed, &pool->lock, until_ms) &&
            clock_monotonic_ms() >= until_ms)
            return pool->start_streak && pool->total == 0
                       ? (*err = pool->start_failure, false)
                       : error_set(err, ERROR_BUSY,
                                   "no process for scripts became free: of %u one account may use "
                                   "%u now; try again shortly",
                                   pool->options.workers_max,
                                   share_of(pool->options.workers_max, pool->share.accounts));
    }
}

bool pool_take(struct script_pool *pool, const struct script_party *who,
               struct process **ret_process, struct error *err)
{
    struct process *gone = NULL, *process = NULL;
    int64_t deadline_ms = clock_monotonic_ms() + pool->options.wait_ms;
    struct waiter waiter = {.nested = who->nested};
    bool taken = false;

    WITH_LOCK (&pool->lock) {
        pool->used = true;
        waiter.party = share_open(&pool->share, who);
        waiter_enter(pool, &waiter);
        taken = take_waiting(pool, &waiter, who->database, deadline_ms, &process, &gone, err);
        if (taken) {
            pool->busy++;
            process->party = waiter.party;
            process->nested = who->nested;
            share_add_process(waiter.party, who->nested, 1);
        } else {
            share_close(&pool->share, waiter.party);
        }
        waiter_leave(pool, &waiter);
        if (start_due(pool))
            condition_signal(&pool->wanted);
    }
    processes_free(gone);
    if (!taken)
        return false;
    process->calls++;
    *ret_process = process;
    return true;
}

/* The lock is held. */
static void party_release(struct script_pool *pool, struct share_party *party, bool nested)
{
    share_add_process(party, nested, -1);
    share_close(&pool->share, party);
}

void pool_give(struct script_pool *pool, struct process *process, bool spent)
{
    bool over = spent || process->calls >= pool->options.calls_per_worker;
    struct share_party *party = TAKE(process->party);
    bool nested = process->nested;

    if (over)
        process_free(process);
    if (spent)
        atomic_fetch_add(&pool->killed, 1);
    WITH_LOCK (&pool->lock) {
        pool->busy--;
        party_release(pool, party, nested);
        if (over) {
            pool->total--;
            condition_signal(&pool->wanted);
        } else {
            process->next = pool->idle;
            pool->idle = process;
            pool->idle_count++;
        }
        if (pool->waiting)
            condition_broadcast(&pool->changed);
    }
}

/* --- Places ---------------------------------------------------------------------------------- */

bool script_place_take(struct script_pool *pool, const struct script_party *who,
                       struct script_place **ret_place, struct error *err)
{
    struct script_place *place = MEMORY_NEW(struct script_place);
    uint32_t max = pool->options.places_max;
    bool fits = false;

    WITH_LOCK (&pool->lock) {
        place->party = share_open(&pool->share, who);
        fits = !max || (pool->places < max && share_allows_place(&pool->share, place->party, max));
        if (fits) {
            pool->places++;
            share_add_place(place->party, 1);
        } else {
            share_close(&pool->share, place->party);
        }
    }
    if (fits) {
        *ret_place = place;
        return true;
    }
    memory_free(place);
    return error_set(err, ERROR_BUSY, "as many scripts of this account or database run as may");
}

void script_place_give(struct script_pool *pool, struct script_place *place)
{
    WITH_LOCK (&pool->lock) {
        pool->places--;
        share_add_place(place->party, -1);
        share_close(&pool->share, place->party);
    }
    memory_free(place);
}

/* --- Limits and counts ----------------------------------------------------------------------- */

int64_t pool_limits(const struct script_pool *pool, int64_t deadline_ms,
                    struct message_run_limits *ret_limits)
{
    const struct script_options *options = &pool->options;
    int64_t now = clock_monotonic_ms(), end = now + options->time_ms, left;

    if (deadline_ms && deadline_ms < end)
        end = deadline_ms;
    left = MAX(end - now, (int64_t)1);
    *ret_limits = (struct message_run_limits){
        .time_ms = (uint32_t)left,
        .accept_ms = (uint32_t)MAX(left - options->margin_ms, (int64_t)0),
        .output_max = (uint32_t)options->output_bytes,
        .log_max = (uint32_t)options->log_bytes,
    };
    return now + left + REPLY_GRACE_MS;
}

void pool_count(struct script_pool *pool, enum error_code code)
{
    atomic_fetch_add(&pool->runs, 1);
    if (code == ERROR_SCRIPT_TIMED_OUT)
        atomic_fetch_add(&pool->timeouts, 1);
    else if (code == ERROR_SCRIPT_CRASHED)
        atomic_fetch_add(&pool->crashes, 1);
    else if (code != ERROR_NONE)
        atomic_fetch_add(&pool->failures, 1);
}

void script_pool_statistics(struct script_pool *pool, struct script_statistics *ret_statistics)
{
    *ret_statistics = (struct script_statistics){
        .runs = atomic_load(&pool->runs),
        .failures = atomic_load(&pool->failures),
        .timeouts = atomic_load(&pool->timeouts),
        .crashes = atomic_load(&pool->crashes),
        .workers_started = atomic_load(&pool->started),
        .workers_killed = atomic_load(&pool->killed),
    };
    WITH_LOCK (&pool->lock) {
        ret_statistics->workers = pool->total;
        ret_statistics->workers_busy = pool->busy;
        ret_statistics->namespaces = pool->hidden & SANDBOX_NAMESPACES;
        ret_statistics->empty_root = pool->hidden & SANDBOX_ROOT;
        ret_statistics->other_user = pool->hidden & SANDBOX_USER;
    }
}
