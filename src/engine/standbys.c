#include "engine/standbys.h"

#include "base/memory.h"
#include "engine/guard.h"

#include <stdatomic.h>

struct standby {
    char name[ENGINE_STANDBY_NAME_SIZE]; /* host and port */
    struct engine *guard;                /* owned */
    atomic_uint_fast64_t reads;
};

struct engine_standbys {
    struct engine_beats *beats; /* owned */
    size_t count;
    struct standby list[ENGINE_STANDBYS_MAX];
    atomic_size_t turn;
    atomic_bool trusted, kept;
    atomic_uint_fast64_t fallbacks[ENGINE_FALLBACKS];
};

const char *engine_fallback_name(enum engine_fallback fallback)
{
    static const char *const names[] = {
        [ENGINE_FALLBACK_AWAY] = "away",   [ENGINE_FALLBACK_FAILED] = "failed",
        [ENGINE_FALLBACK_BEAT] = "beat",   [ENGINE_FALLBACK_EPOCH] = "epoch",
        [ENGINE_FALLBACK_OLD] = "old",     [ENGINE_FALLBACK_BEHIND] = "behind",
        [ENGINE_FALLBACK_AHEAD] = "ahead",
    };

    assert(fallback < ENGINE_FALLBACKS);
    return names[fallback];
}

/* --- Beginning and end ----------------------------------------------------------------------- */

/* A name stands in headers and logs. */
static void name_set(struct standby *standby, struct slice host)
{
    size_t len = MIN(host.len, sizeof standby->name - 1);

    for (size_t i = 0; i < len; i++)
        standby->name[i] = host.data[i] > ' ' && host.data[i] < 0x7F && host.data[i] != ';' &&
                                   host.data[i] != ',' && host.data[i] != '"'
                               ? (char)host.data[i]
                               : '_';
    standby->name[len] = '\0';
}

static void standby_add(struct engine_standbys *standbys,
                        const struct engine_guard_options *pattern, struct slice host)
{
    struct standby *standby = &standbys->list[standbys->count];
    struct engine_guard_options options = *pattern;
    char name[ENGINE_STANDBY_NAME_SIZE + 64];

    name_set(standby, host);
    (void)snprintf(name, sizeof name, "%.60s/%s", pattern->name, standby->name);
    options.name = name;
    options.is_standby = true;
    options.inner.standby = (uint32_t)standbys->count + 1;
    options.inner.beats = NULL;
    options.inner.accept_loss = false;
    options.failover_ms = 0; /* the primary answers instead */
    options.unpaused_partition = 0;
    standby->guard = engine_guard_new(&options);
    standbys->count++;
}

struct engine_standbys *engine_standbys_new(const struct engine_guard_options *pattern,
                                            int64_t beat_ms)
{
    struct engine_standbys *standbys = NULL;
    CLEANUP(buf_done) struct buf host;

    buf_init(&host, BUF_DEFAULT_MAX);
    for (uint32_t nth = 1; nth <= ENGINE_STANDBYS_MAX; nth++) {
        buf_clear(&host);
        if (!engine_standby_host(pattern->url, nth, &host))
            break;
        if (!standbys) {
            standbys = MEMORY_NEW(struct engine_standbys);
            standbys->beats = engine_beats_new(beat_ms);
        }
        standby_add(standbys, pattern, buf_slice(&host));
    }
    return standbys;
}

void engine_standbys_free(struct engine_standbys *standbys)
{
    if (!standbys)
        return;
    for (size_t i = 0; i < standbys->count; i++)
        engine_close(standbys->list[i].guard);
    engine_beats_free(standbys->beats);
    memory_free(standbys);
}

/* --- With the node --------------------------------------------------------------------------- */

void engine_standbys_keep(struct engine_standbys *standbys, const char *node_id)
{
    if (!standbys || atomic_exchange(&standbys->kept, true))
        return;
    for (size_t i = 0; i < standbys->count; i++) {
        engine_guard_expect(standbys->list[i].guard, node_id);
        engine_guard_keep(standbys->list[i].guard, NULL, false);
    }
}

void engine_standbys_leave(struct engine_standbys *standbys)
{
    for (size_t i = 0; standbys && i < standbys->count; i++)
        engine_guard_leave(standbys->list[i].guard);
    if (standbys)
        atomic_store(&standbys->kept, false);
}

void engine_standbys_pause(struct engine_standbys *standbys, bool on)
{
    for (size_t i = 0; standbys && i < standbys->count; i++)
        engine_guard_pause(standbys->list[i].guard, on);
}

bool engine_standbys_retire(struct engine_standbys *standbys)
{
    bool all = true;

    for (size_t i = 0; standbys && i < standbys->count; i++)
        all = engine_guard_retire(standbys->list[i].guard) && all;
    return all;
}

/* --- Looking --------------------------------------------------------------------------------- */

struct engine_beats *engine_standbys_beats(const struct engine_standbys *standbys)
{
    return standbys->beats;
}

size_t engine_standbys_count(const struct engine_standbys *standbys)
{
    return standbys->count;
}

struct engine *engine_standbys_at(const struct engine_standbys *standbys, size_t index)
{
    assert(index < standbys->count);
    return standbys->list[index].guard;
}

const char *engine_standbys_name(const struct engine_standbys *standbys, size_t index)
{
    assert(index < standbys->count);
    return standbys->list[index].name;
}

struct engine *engine_standbys_pick(struct engine_standbys *standbys, bool alone, size_t *ret_index)
{
    size_t turn = atomic_fetch_add_explicit(&standbys->turn, 1, memory_order_relaxed);
    struct engine *slow = NULL;

    for (size_t i = 0; i < standbys->count; i++) {
        size_t index = (turn + i) % standbys->count;
        struct engine *guard = standbys->list[index].guard;
        struct error ignored;

        if (engine_guard_is_well(guard)) {
            *ret_index = index;
            return guard;
        }
        if (alone && !slow && engine_serves(guard, &ignored)) {
            *ret_index = index;
            slow = guard;
        }
    }
    return slow;
}

bool engine_standbys_age(const struct engine_standbys *standbys, size_t index, int64_t now_ms,
                         int64_t *ret_ms)
{
    struct engine_statistics statistics;
    struct error ignored;
    int64_t sent_ms;

    assert(index < standbys->count);
    if (!engine_serves(standbys->list[index].guard, &ignored) ||
        !engine_statistics(standbys->list[index].guard, &statistics, &ignored) ||
        !engine_beats_sent(standbys->beats, statistics.beat, &sent_ms))
        return false;
    *ret_ms = MAX(now_ms - sent_ms, (int64_t)0);
    return true;
}

/* --- Counting -------------------------------------------------------------------------------- */

void engine_standbys_served(struct engine_standbys *standbys, size_t index)
{
    assert(index < standbys->count);
    atomic_fetch_add_explicit(&standbys->list[index].reads, 1, memory_order_relaxed);
}

void engine_standbys_fell_back(struct engine_standbys *standbys, enum engine_fallback why)
{
    assert(why < ENGINE_FALLBACKS);
    atomic_fetch_add_explicit(&standbys->fallbacks[why], 1, memory_order_relaxed);
}

uint64_t engine_standbys_reads(const struct engine_standbys *standbys, size_t index)
{
    assert(index < standbys->count);
    return atomic_load_explicit(&standbys->list[index].reads, memory_order_relaxed);
}

uint64_t engine_standbys_fallbacks(const struct engine_standbys *standbys, enum engine_fallback why)
{
    assert(why < ENGINE_FALLBACKS);
    return atomic_load_explicit(&standbys->fallbacks[why], memory_order_relaxed);
}

void engine_standbys_trust(struct engine_standbys *standbys, bool blindly)
{
    atomic_store(&standbys->trusted, blindly);
}

bool engine_standbys_are_trusted(const struct engine_standbys *standbys)
{
    return atomic_load_explicit(&standbys->trusted, memory_order_relaxed);
}
