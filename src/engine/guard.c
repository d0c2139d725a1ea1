/* One thread per node watches it, so that a node that does not answer keeps no other's watch
 * waiting. A failed call is no proof: the store may have refused that call alone. So calls only
 * wake the keeper, and what it finds out itself is what counts.
 *
 * How a node comes back depends on what is wrong. A server that was away is asked again through the
 * engine that is open, which knows what it left in doubt. A store whose write failed half-way, or
 * that another process has taken meanwhile, is closed and opened anew; that waits until nobody is
 * inside. What is in memory: only would be lost by that, so it stays as it is. */
#include "engine/guard_private.h"

#include "base/memory.h"

enum {
    PROBE_MS = 100,
    SUSPECT_MS = 100,
    HANG_MS = 1000,
    WRITE_HANG_MS = 10000,
    BACKOFF_MS_MAX = 1000,
    SUSPECT_CALLS = 8,
    FAILOVER_CALLS = 16,
    FAULT_LOG_MS = 60000,
    IDLE_MS = 10000,
    ROOM_BYTES = 16 * 1024 * 1024,
};

_Thread_local const struct guard *guard_kept;
_Thread_local struct guard_wait guard_wait;

/* --- Those who wait -------------------------------------------------------------------------- */

static void hurry(void *context)
{
    struct guard *guard = context;

    if (atomic_load(&guard->down) || atomic_exchange(&guard->hurry, true))
        return;
    WITH_LOCK (&guard->lock)
        condition_signal(&guard->wake);
}

/* The first pause asks for a sign of life at once: the next one may be far off. Whoever brings the
 * node back has all the time that takes. */
static bool let_go(void *context, int64_t ms)
{
    struct guard *guard = context;
    struct guard_wait *wait = &guard_wait;
    uint64_t ping = atomic_load(&guard->ping);
    bool first = wait->waited_ms == 0;

    assert(ms >= 0);
    wait->waited_ms += ms;
    if (wait->asks == guard) /* the keeper decides whether it is down, with more patience */
        return wait->waited_ms >= guard->options.hang_ms;
    if (!guard->options.answer_ms || guard_kept == guard)
        return false;
    wait->silent_ms = ping && ping == wait->ping ? wait->silent_ms + ms : 0;
    wait->ping = ping;
    if (first && !ping)
        hurry(guard);
    if (wait->waited_ms < guard->options.answer_ms ||
        wait->silent_ms < guard->options.answer_ms / 2)
        return false;
    atomic_store(&guard->ping_silent, ping);
    return true;
}

/* --- Making one ------------------------------------------------------------------------------ */

static bool default_open(void *context UNUSED, struct slice url,
                         const struct engine_options *options, struct engine **ret_engine,
                         struct error *err)
{
    return engine_open(url, options, ret_engine, err);
}

static void options_settle(struct engine_guard_options *options)
{
    options->probe_ms = options->probe_ms ? options->probe_ms : PROBE_MS;
    options->suspect_ms = options->suspect_ms ? options->suspect_ms : SUSPECT_MS;
    options->hang_ms = options->hang_ms ? options->hang_ms : HANG_MS;
    options->write_hang_ms = options->write_hang_ms ? options->write_hang_ms : WRITE_HANG_MS;
    options->backoff_ms_max = options->backoff_ms_max ? options->backoff_ms_max : BACKOFF_MS_MAX;
    options->suspect_calls = options->suspect_calls ? options->suspect_calls : SUSPECT_CALLS;
    options->failover_calls = options->failover_calls ? options->failover_calls : FAILOVER_CALLS;
    options->inner.failover_ms = options->failover_ms;
    if (!options->open)
        options->open = default_open;
}

struct engine *engine_guard_new(const struct engine_guard_options *options)
{
    struct guard *guard = MEMORY_NEW(struct guard);
    struct buf shown;
    size_t len;

    guard->options = *options;
    options_settle(&guard->options);
    guard->name = slice_to_text(slice_of_text(options->name));
    guard->url = slice_to_text(options->url.data ? options->url : SLICE(""));
    guard->options.url = slice_of_text(guard->url);
    buf_init(&shown, BUF_DEFAULT_MAX);
    engine_url_mask(guard->options.url, &shown);
    guard->shown.data = buf_take(&shown, &len);
    guard->shown.len = len;
    guard->clock = options->inner.clock ? options->inner.clock : &clock_system;
    guard->options.inner.watch = (struct engine_watch){hurry, let_go, guard};
    guard->base.driver = &guard_driver;
    guard->base.name = guard->shown;
    guard->down = true;
    guard->broken = true;
    guard->since_ms = clock_read_wall_ms(guard->clock);
    error_set(&guard->reason, ERROR_NODE_DOWN, "it was not opened yet");
    mutex_init(&guard->lock);
    condition_init(&guard->wake);
    condition_init(&guard->back);
    return &guard->base;
}

struct engine *engine_guard_around(const struct engine_guard_options *options, struct engine *inner)
{
    struct engine *engine = engine_guard_new(options);
    struct guard *guard = guard_of(engine);

    assert(inner->driver != &guard_driver); /* a guard of a guard would count calls twice */
    memcpy(engine->node_id, engine_node_id(inner), sizeof engine->node_id);
    guard->inner = inner;
    guard->broken = false;
    guard->reason = (struct error){0};
    atomic_store(&guard->fails_over, engine_fails_over(inner));
    atomic_store(&guard->down, false);
    return engine;
}

void engine_guard_hang(struct engine *engine, struct engine_standbys *standbys)
{
    struct guard *guard = guard_of(engine);

    assert(!guard->standbys && !guard->kept);
    guard->standbys = standbys;
}

struct engine_standbys *engine_standbys_of(const struct engine *engine)
{
    return engine->driver == &guard_driver ? guard_of(engine)->standbys : NULL;
}

bool engine_guard_is_well(const struct engine *engine)
{
    struct guard *guard = guard_of(engine);

    return !atomic_load_explicit(&guard->down, memory_order_relaxed) &&
           !atomic_load_explicit(&guard->paused, memory_order_relaxed) && !guard_is_silent(guard) &&
           !guard_is_suspect(guard);
}

struct engine_watch engine_guard_watch(struct engine *engine)
{
    return guard_of(engine)->options.inner.watch;
}

/* --- Up and down ----------------------------------------------------------------------------- */

size_t guard_inside(const struct guard *guard)
{
    size_t count = 0;

    for (size_t i = 0; i < GUARD_DOORS; i++)
        count += atomic_load(&guard->doors[i].inside);
    return count;
}

void guard_doubt(struct guard *guard)
{
    if (atomic_exchange(&guard->doubt, true))
        return;
    WITH_LOCK (&guard->lock)
        condition_signal(&guard->wake);
}

/* --- Faults ---------------------------------------------------------------------------------- */

const char *engine_fault_name(enum engine_fault fault)
{
    static const char *const names[] = {
        [ENGINE_FAULT_UNREADABLE] = "unreadable", [ENGINE_FAULT_FULL] = "full"};

    assert(fault < ENGINE_FAULTS);
    return names[fault];
}

void guard_fault_begin(struct guard *guard, enum engine_fault fault, const struct error *err)
{
    static const char *const events[] = {[ENGINE_FAULT_UNREADABLE] = "node has unreadable blocks",
                                         [ENGINE_FAULT_FULL] = "node full"};
    struct guard_fault *own = &guard->faults[fault];
    int64_t now_ms = clock_read_monotonic_ms(guard->clock);
    struct engine_statistics statistics;
    struct error unused;
    bool tell = false;

    assert(fault < ENGINE_FAULTS && err->code != ERROR_NONE);
    atomic_fetch_add_explicit(&own->count, 1, memory_order_relaxed);
    if (atomic_exchange(&own->on, true))
        return;
    if (!engine_statistics(guard->inner, &statistics, &unused))
        statistics.bytes_free = UINT64_MAX;
    WITH_LOCK (&guard->lock) {
        guard->fault_reason = *err;
        if (fault == ENGINE_FAULT_FULL)
            guard->full_free = statistics.bytes_free;
        condition_signal(&guard->wake);
        tell = !own->logged_ms || now_ms - own->logged_ms >= FAULT_LOG_MS;
        if (tell)
            own->logged_ms = MAX(now_ms, (int64_t)1);
    }
    if (tell)
        log_event(guard->options.inner.log, LOG_ERROR, events[fault], LOG_TEXT("node", guard->name),
                  LOG_TEXT("because", err->message));
}

void guard_fault_end(struct guard *guard, enum engine_fault fault)
{
    assert(fault < ENGINE_FAULTS);
    if (atomic_exchange(&guard->faults[fault].on, false))
        log_event(guard->options.inner.log, LOG_INFO,
                  fault == ENGINE_FAULT_FULL ? "node has room again" : "node was opened anew",
                  LOG_TEXT("node", guard->name));
}

/* Nobody may write for a while after room was made. */
static void room_look(struct guard *guard)
{
    struct engine_statistics statistics;
    struct error err;
    bool more = false;

    if (!atomic_load_explicit(&guard->faults[ENGINE_FAULT_FULL].on, memory_order_relaxed) ||
        !engine_statistics(guard->inner, &statistics, &err))
        return;
    WITH_LOCK (&guard->lock)
        more = statistics.bytes_free > guard->full_free &&
               statistics.bytes_free - guard->full_free >= ROOM_BYTES;
    if (more)
        guard_fault_end(guard, ENGINE_FAULT_FULL);
}

static void go_down(struct guard *guard, const struct error *err)
{
    bool was_up;

    assert(err->code != ERROR_NONE);
    WITH_LOCK (&guard->lock) {
        guard->reason = *err;
        was_up = !atomic_exchange(&guard->down, true);
        if (was_up) {
            guard->downs++;
            guard->since_ms = clock_read_wall_ms(guard->clock);
            atomic_store(&guard->down_at_ms, clock_monotonic_ms());
            guard->backoff_ms = guard->options.probe_ms;
            guard->attempt_at_ms = clock_read_monotonic_ms(guard->clock) + guard->backoff_ms;
            condition_signal(&guard->wake); /* it has another pause now */
        }
    }
    if (!was_up)
        return;
    if (guard->inner)
        engine_interrupt(guard->inner, true);
    log_event(guard->options.inner.log, LOG_WARNING,
              guard->options.is_standby ? "standby down" : "node down",
              LOG_TEXT("node", guard->name), LOG_TEXT("because", err->message));
}

void engine_guard_take_down(struct engine *engine, const struct error *err)
{
    struct guard *guard = (struct guard *)engine;

    if (engine->driver != &guard_driver)
        return;
    /* As one who is inside: the keeper may not close the engine meanwhile. */
    atomic_fetch_add(&guard->doors[0].inside, 1);
    go_down(guard, err);
    atomic_fetch_sub(&guard->doors[0].inside, 1);
}

static void go_up(struct guard *guard)
{
    assert(guard->inner && !guard->broken);
    WITH_LOCK (&guard->lock) {
        atomic_store(&guard->doubt, false);
        atomic_store(&guard->hurry, false);
        atomic_store(&guard->fails_over, engine_fails_over(guard->inner));
        atomic_store(&guard->down, false);
        atomic_store(&guard->accepts, false);
        guard->since_ms = clock_read_wall_ms(guard->clock);
        condition_broadcast(&guard->back);
    }
    log_event(guard->options.inner.log, LOG_INFO,
              guard->options.is_standby ? "standby serves" : "node serves",
              LOG_TEXT("node", guard->name));
}

/* --- Opening --------------------------------------------------------------------------------- */

/* memory: has nothing to be opened again, and an engine that was handed in may have no URL. */
static bool can_reopen(const struct guard *guard)
{
    return guard->url[0] && (!guard->inner || strncmp(guard->url, "memory:", 7) != 0);
}

static bool inner_open(struct guard *guard, struct error *err)
{
    CLEANUP(engine_close) struct engine *inner = NULL;
    const char *id = guard->base.node_id;

    assert(!guard->inner);
    if (!guard->options.open(guard->options.open_context, guard->options.url, &guard->options.inner,
                             &inner, err))
        return false;
    if (id[0] && strcmp(id, engine_node_id(inner)) != 0)
        return error_set(err, ERROR_STORE_FOREIGN,
                         "the store is %s, and the node of this name was %s", engine_node_id(inner),
                         id);
    memcpy(guard->base.node_id, engine_node_id(inner), sizeof guard->base.node_id);
    guard->inner = TAKE(inner);
    guard->broken = false;
    guard_fault_end(guard, ENGINE_FAULT_UNREADABLE);
    return true;
}

bool engine_guard_open(struct engine *engine, struct error *err)
{
    struct guard *guard = guard_of(engine);

    if (!guard->inner && !inner_open(guard, err)) {
        WITH_LOCK (&guard->lock)
            guard->reason = *err;
        return false;
    }
    atomic_store(&guard->fails_over, engine_fails_over(guard->inner));
    atomic_store(&guard->down, false);
    return true;
}

void engine_guard_expect(struct engine *engine, const char *node_id)
{
    assert(strlen(node_id) < sizeof engine->node_id);
    (void)snprintf(engine->node_id, sizeof engine->node_id, "%s", node_id);
}

static bool inner_reopen(struct guard *guard, struct error *err)
{
    if (!can_reopen(guard))
        return error_set(err, ERROR_NODE_DOWN, "its last write failed, and it cannot be reopened");
    if (guard_inside(guard))
        return error_set(err, ERROR_BUSY, "it is reopened when the calls inside have ended");
    engine_close(TAKE(guard->inner));
    return inner_open(guard, err);
}

/* --- Signs of life --------------------------------------------------------------------------- */

static bool write_hangs(struct guard *guard, struct error *err)
{
    int64_t since_ms = atomic_load(&guard->write_since_ms);

    if (!since_ms ||
        clock_read_monotonic_ms(guard->clock) - since_ms <= guard->options.write_hang_ms)
        return false;
    error_set(err, ERROR_NODE_DOWN, "a write has not returned for %lld ms",
              (long long)guard->options.write_hang_ms);
    return true;
}

/* postgresql: finds out here about a write in doubt; what stays poisoned must be opened anew. */
static bool is_sound(struct guard *guard, struct error *err)
{
    struct engine_statistics statistics;

    if (!engine_statistics(guard->inner, &statistics, err))
        return false;
    if (!statistics.poisoned)
        return true;
    guard->broken = true;
    return error_set(err, ERROR_STORE_POISONED, "a write failed, and its outcome is not known");
}

/* While it is asked, calls see how long that takes. Finding out about a write in doubt is part of
 * it: it may wait for the same server. */
static bool ask(struct guard *guard, bool doubt, struct error *err)
{
    bool alive;

    assert(guard->inner && !guard_wait.asks);
    atomic_store(&guard->ping_since_ms, clock_read_monotonic_ms(guard->clock));
    atomic_store(&guard->ping, ++guard->pings);
    guard_wait = (struct guard_wait){.asks = guard};
    alive =
        engine_ping(guard->inner, guard->options.hang_ms, err) && (!doubt || is_sound(guard, err));
    guard_wait = (struct guard_wait){0};
    atomic_store(&guard->ping, 0);
    atomic_store(&guard->ping_since_ms, 0);
    return alive;
}

static void watch(struct guard *guard)
{
    bool doubt = atomic_exchange(&guard->doubt, false);
    struct error err;

    atomic_store(&guard->hurry, false);
    if (write_hangs(guard, &err) || !ask(guard, doubt, &err)) {
        go_down(guard, &err);
        return;
    }
    atomic_store(&guard->fails_over, engine_fails_over(guard->inner));
    room_look(guard);
}

/* --- Coming back ----------------------------------------------------------------------------- */

/* Opened so that it can be put in order; rejoin does that, and tells the store. */
static bool loss_reopen(struct guard *guard, struct error *err)
{
    bool opened;

    if (guard->inner && !guard->broken && engine_has_lost(guard->inner))
        return true;
    guard->options.inner.accept_loss = true;
    opened = inner_reopen(guard, err);
    guard->options.inner.accept_loss = false;
    return opened;
}

bool engine_guard_accept_loss(struct engine *engine, struct error *err)
{
    struct guard *guard = guard_of(engine);

    WITH_LOCK (&guard->lock) {
        if (!atomic_load(&guard->down) || guard->reason.code != ERROR_STORE_LOST)
            return error_set(err, ERROR_BAD_REQUEST, "node \"%s\" has lost nothing", guard->name);
        atomic_store(&guard->accepts, true);
        guard->attempt_at_ms = 0;
        condition_signal(&guard->wake);
    }
    return true;
}

static bool heal(struct guard *guard, struct error *err)
{
    if (write_hangs(guard, err))
        return false;
    if (atomic_load(&guard->accepts))
        return loss_reopen(guard, err);
    if (guard->broken || !guard->inner)
        return inner_reopen(guard, err);
    if (!engine_ping(guard->inner, guard->options.hang_ms, err))
        return false;
    engine_interrupt(guard->inner, false);
    if (is_sound(guard, err))
        return true;
    return guard->broken && inner_reopen(guard, err);
}

static bool bring_back(struct guard *guard, struct error *err)
{
    const struct guard *kept = guard_kept;
    bool back;

    assert(guard_kept != guard);
    guard_kept = guard;
    back = heal(guard, err) &&
           (!guard->hooks.rejoin || guard->hooks.rejoin(guard->hooks.context, err));
    guard_kept = kept;
    if (!back && guard->inner)
        engine_interrupt(guard->inner, true);
    return back;
}

static void attempt(struct guard *guard)
{
    struct error err;

    if (bring_back(guard, &err)) {
        go_up(guard);
        return;
    }
    WITH_LOCK (&guard->lock) {
        guard->reason = err;
        guard->backoff_ms =
            MIN(MAX(guard->backoff_ms, guard->options.probe_ms) * 2, guard->options.backoff_ms_max);
        if (err.code == ERROR_BUSY) /* those inside are soon gone */
            guard->backoff_ms = guard->options.probe_ms;
        guard->attempt_at_ms = clock_read_monotonic_ms(guard->clock) + guard->backoff_ms;
    }
}

void engine_guard_tend(struct engine *engine)
{
    struct guard *guard = guard_of(engine);

    bool due = false;

    if (!atomic_load(&guard->down)) {
        watch(guard);
        return;
    }
    WITH_LOCK (&guard->lock)
        due = clock_read_monotonic_ms(guard->clock) >= guard->attempt_at_ms;
    if (due)
        attempt(guard);
}

/* --- The keeper ------------------------------------------------------------------------------ */

/* A store of this process is not asked for signs of life: while it is well and nobody writes there
 * is nothing to look at, and an idle server sleeps. Whoever finds a fault wakes the keeper; a write
 * that hangs is noticed a pause later at most. */
static int64_t keeper_pause_ms(const struct guard *guard)
{
    int64_t probe_ms = guard->options.probe_ms;

    if (atomic_load(&guard->down) || !guard->inner || guard->inner->driver->ping ||
        atomic_load(&guard->write_since_ms) || atomic_load(&guard->faults[ENGINE_FAULT_FULL].on))
        return probe_ms;
    return MAX(MIN(guard->options.write_hang_ms, (int64_t)IDLE_MS), probe_ms);
}

/* False: stop. */
static bool keeper_wait(struct guard *guard)
{
    int64_t begun = clock_monotonic_ms();
    bool stopping = false;

    WITH_LOCK (&guard->lock) {
        while (!guard->stopping &&
               (atomic_load(&guard->down) ||
                (!atomic_load(&guard->doubt) && !atomic_load(&guard->hurry))) &&
               condition_wait_until(&guard->wake, &guard->lock, begun + keeper_pause_ms(guard)))
            ;
        stopping = guard->stopping;
    }
    return !stopping;
}

static void keeper_main(void *context)
{
    struct guard *guard = context;

    while (keeper_wait(guard))
        engine_guard_tend(&guard->base);
}

void engine_guard_keep(struct engine *engine, const struct engine_guard_hooks *hooks, bool by_hand)
{
    struct guard *guard = guard_of(engine);

    assert(!guard->kept);
    engine_standbys_keep(guard->standbys, guard->base.node_id);
    guard->kept = true;
    guard->stopping = false;
    guard->hooks = hooks ? *hooks : (struct engine_guard_hooks){0};
    guard->has_thread = !by_hand;
    if (guard->has_thread)
        thread_start(&guard->thread, "node", keeper_main, guard);
}

void engine_guard_leave(struct engine *engine)
{
    struct guard *guard = guard_of(engine);

    if (!guard->kept)
        return;
    engine_standbys_leave(guard->standbys);
    WITH_LOCK (&guard->lock) {
        guard->stopping = true;
        condition_signal(&guard->wake);
        condition_broadcast(&guard->back); /* nobody brings it back any more */
    }
    if (guard->has_thread)
        thread_join(&guard->thread);
    guard->kept = guard->has_thread = false;
}

/* --- The operator ---------------------------------------------------------------------------- */

void engine_guard_pause(struct engine *engine, bool on)
{
    engine_standbys_pause(guard_of(engine)->standbys, on);
    atomic_store(&guard_of(engine)->paused, on);
}

bool engine_guard_retire(struct engine *engine)
{
    struct guard *guard = guard_of(engine);

    assert(!guard->kept);
    atomic_store(&guard->retired, true);
    atomic_store(&guard->down, true);
    if (!engine_standbys_retire(guard->standbys) || guard_inside(guard))
        return false;
    engine_close(TAKE(guard->inner));
    return true;
}

bool engine_guard_status(const struct engine *engine, struct engine_guard_status *ret_status)
{
    struct guard *guard;
    int64_t since_ms;

    if (engine->driver != &guard_driver)
        return false;
    guard = guard_of(engine);
    since_ms = atomic_load(&guard->ping_since_ms);
    *ret_status = (struct engine_guard_status){
        .state = atomic_load(&guard->down) ? ENGINE_GUARD_DOWN : ENGINE_GUARD_SERVING,
        .paused = atomic_load(&guard->paused),
        .refused = atomic_load(&guard->refused),
        .waited = atomic_load(&guard->waited),
        .inside = guard_inside(guard),
    };
    if (ret_status->state == ENGINE_GUARD_SERVING && since_ms &&
        (guard_is_silent(guard) ||
         clock_read_monotonic_ms(guard->clock) - since_ms > guard->options.suspect_ms))
        ret_status->state = ENGINE_GUARD_SUSPECT;
    for (size_t i = 0; i < ENGINE_FAULTS; i++) {
        ret_status->faults[i] = atomic_load(&guard->faults[i].on);
        ret_status->fault_counts[i] = atomic_load(&guard->faults[i].count);
    }
    WITH_LOCK (&guard->lock) {
        memcpy(ret_status->fault_reason, guard->fault_reason.message,
               sizeof ret_status->fault_reason);
        ret_status->since_ms = guard->since_ms;
        ret_status->downs = guard->downs;
        ret_status->lost =
            ret_status->state == ENGINE_GUARD_DOWN && guard->reason.code == ERROR_STORE_LOST;
        memcpy(ret_status->reason, guard->reason.message, sizeof ret_status->reason);
    }
    return true;
}

const char *engine_guard_state_name(enum engine_guard_state state)
{
    static const char *const names[] = {[ENGINE_GUARD_SERVING] = "serving",
                                        [ENGINE_GUARD_SUSPECT] = "suspect",
                                        [ENGINE_GUARD_DOWN] = "down"};

    assert(state <= ENGINE_GUARD_DOWN);
    return names[state];
}
