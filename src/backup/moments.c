/* A short list under one lock; moments are taken and let go outside of it, since both wait for
 * nodes. One thread lets go of those that are idle, and sleeps while there are none. */
#include "backup/moments.h"

#include "base/clock.h"
#include "base/thread.h"

struct backup_moments {
    struct catalogue *catalogue;
    int64_t idle_ms;
    struct mutex lock; /* all below, and what of a held one is the table's */
    struct condition changed;
    struct backup_held *list;
    size_t count; /* with those being taken */
    bool stopping;
    struct thread thread;
};

static void held_free(struct backup_held *held)
{
    verify_free(held->verify);
    backup_moment_free(held->moment);
    memory_free(held);
}

static struct backup_held *idle_take(struct backup_moments *moments, int64_t now_ms)
{
    assert(mutex_is_held(&moments->lock));
    for (struct backup_held **place = &moments->list; *place; place = &(*place)->next) {
        struct backup_held *held = *place;

        if (held->busy || now_ms - held->idle_since_ms < moments->idle_ms)
            continue;
        *place = held->next;
        moments->count--;
        return held;
    }
    return NULL;
}

static void idle_run(void *context)
{
    struct backup_moments *moments = context;
    struct backup_held *idle;

    mutex_lock(&moments->lock);
    while (!moments->stopping) {
        idle = idle_take(moments, clock_monotonic_ms());
        if (idle) {
            mutex_unlock(&moments->lock);
            held_free(idle);
            mutex_lock(&moments->lock);
        } else if (!moments->list) {
            condition_wait(&moments->changed, &moments->lock);
        } else {
            (void)condition_wait_until(&moments->changed, &moments->lock,
                                       clock_monotonic_ms() + MIN(moments->idle_ms, INT64_C(1000)));
        }
    }
    mutex_unlock(&moments->lock);
}

struct backup_moments *backup_moments_new(struct catalogue *catalogue, int64_t idle_ms)
{
    struct backup_moments *moments = MEMORY_NEW(struct backup_moments);

    moments->catalogue = catalogue;
    moments->idle_ms = idle_ms ? idle_ms : BACKUP_MOMENT_IDLE_MS;
    mutex_init(&moments->lock);
    condition_init(&moments->changed);
    thread_start(&moments->thread, "moments", idle_run, moments);
    return moments;
}

void backup_moments_free(struct backup_moments *moments)
{
    if (!moments)
        return;
    WITH_LOCK (&moments->lock) {
        moments->stopping = true;
        condition_broadcast(&moments->changed);
    }
    thread_join(&moments->thread);
    while (moments->list) {
        struct backup_held *held = moments->list;

        assert(!held->busy);
        moments->list = held->next;
        held_free(held);
    }
    condition_done(&moments->changed);
    mutex_done(&moments->lock);
    memory_free(moments);
}

static bool place_take(struct backup_moments *moments, struct error *err)
{
    bool taken = false;

    WITH_LOCK (&moments->lock) {
        taken = moments->count < BACKUP_MOMENTS_MAX;
        moments->count += taken;
    }
    return taken || error_set(err, ERROR_LIMIT_REACHED,
                              "%d backups and verifications are under way: as many as there can be",
                              BACKUP_MOMENTS_MAX);
}

bool backup_moments_begin(struct backup_moments *moments, struct backup_held **ret_held,
                          struct error *err)
{
    struct backup_held *held;
    struct backup_moment *moment;

    if (!place_take(moments, err))
        return false;
    if (!backup_moment_take(moments->catalogue, &moment, err)) {
        WITH_LOCK (&moments->lock)
            moments->count--;
        return false;
    }
    held = MEMORY_NEW(struct backup_held);
    held->moment = moment;
    held->moments = moments;
    held->busy = true;
    random_uuid(held->id);
    WITH_LOCK (&moments->lock) {
        held->next = moments->list;
        moments->list = held;
        condition_broadcast(&moments->changed);
    }
    if (!backup_moment_keep(moment, moments->idle_ms, err)) {
        backup_held_leave(held);
        return false;
    }
    *ret_held = held;
    return true;
}

static struct backup_held **place_find(struct backup_moments *moments, struct slice id)
{
    struct backup_held **place = &moments->list;

    assert(mutex_is_held(&moments->lock));
    while (*place && !slice_equal(slice_of_text((*place)->id), id))
        place = &(*place)->next;
    return place;
}

static bool none(struct error *err)
{
    return error_set(err, ERROR_NOT_FOUND,
                     "there is no such moment: it was ended, or nobody asked for it in time");
}

static bool in_use(struct error *err)
{
    return error_set(err, ERROR_BUSY, "another request uses the moment");
}

bool backup_moments_use(struct backup_moments *moments, struct slice id,
                        struct backup_held **ret_held, struct error *err)
{
    struct backup_held *held = NULL;

    WITH_LOCK (&moments->lock) {
        held = *place_find(moments, id);
        if (!held)
            return none(err);
        if (held->busy)
            return in_use(err);
        held->busy = true;
    }
    if (!backup_moment_keep(held->moment, moments->idle_ms, err)) {
        backup_held_leave(held);
        return false;
    }
    *ret_held = held;
    return true;
}

void backup_held_leave(struct backup_held *held)
{
    if (!held)
        return;
    WITH_LOCK (&held->moments->lock) {
        assert(held->busy);
        held->busy = false;
        held->idle_since_ms = clock_monotonic_ms();
    }
}

bool backup_moments_end(struct backup_moments *moments, struct slice id, struct error *err)
{
    struct backup_held *held = NULL;

    WITH_LOCK (&moments->lock) {
        struct backup_held **place = place_find(moments, id);

        held = *place;
        if (!held)
            return none(err);
        if (held->busy)
            return in_use(err);
        *place = held->next;
        moments->count--;
    }
    held_free(held);
    return true;
}

size_t backup_moments_count(struct backup_moments *moments)
{
    size_t count = 0;

    WITH_LOCK (&moments->lock)
        count = moments->count;
    return count;
}
