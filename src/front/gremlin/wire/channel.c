/* A message travels as a task of the loop, which is made with it. Its bytes count as waiting from
 * the moment it is sent until the socket has taken them. */
#include "front/gremlin/wire/channel.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

struct gremlin_channel {
    atomic_uint references;
    struct net_loop *loop;
    size_t waiting_max;
    struct gremlin_channel_target target; /* for the loop; context NULL: the connection is gone */
    atomic_bool gone;
    struct mutex lock; /* of what follows; a leaf */
    struct condition room;
    size_t waiting;
};

struct sending {
    struct net_task task;
    struct gremlin_channel *channel; /* a reference */
    struct gremlin_outgoing message;
    void (*then)(void *context);
    void *context;
};

struct gremlin_channel *gremlin_channel_new(struct net_loop *loop, size_t waiting_max,
                                            const struct gremlin_channel_target *target)
{
    struct gremlin_channel *channel = MEMORY_NEW(struct gremlin_channel);

    atomic_init(&channel->references, 1);
    channel->loop = loop;
    channel->waiting_max = waiting_max;
    channel->target = *target;
    mutex_init(&channel->lock);
    condition_init(&channel->room);
    return channel;
}

struct gremlin_channel *gremlin_channel_ref(struct gremlin_channel *channel)
{
    atomic_fetch_add_explicit(&channel->references, 1, memory_order_relaxed);
    return channel;
}

struct gremlin_channel *gremlin_channel_unref(struct gremlin_channel *channel)
{
    if (!channel || atomic_fetch_sub(&channel->references, 1) > 1)
        return NULL;
    condition_done(&channel->room);
    mutex_done(&channel->lock);
    memory_free(channel);
    return NULL;
}

const atomic_bool *gremlin_channel_gone(const struct gremlin_channel *channel)
{
    return &channel->gone;
}

void gremlin_channel_leave(struct gremlin_channel *channel)
{
    WITH_LOCK (&channel->lock) {
        atomic_store(&channel->gone, true);
        condition_broadcast(&channel->room);
    }
}

void gremlin_channel_cut(struct gremlin_channel *channel)
{
    channel->target.context = NULL;
    gremlin_channel_leave(channel);
}

/* --- On the loop -------------------------------------------------------------------------------
 */

static void sending_release(void *context)
{
    struct sending *sending = context;
    struct gremlin_channel *channel = sending->channel;

    WITH_LOCK (&channel->lock) {
        channel->waiting -= sending->message.len;
        condition_broadcast(&channel->room);
    }
    memory_free(sending->message.bytes);
    gremlin_channel_unref(channel);
    memory_free(sending);
}

static void sending_run(struct net_task *task, struct net_loop *loop UNUSED)
{
    struct sending *sending = CONTAINER_OF(task, struct sending, task);
    CLEANUP(gremlin_channel_unref)
    struct gremlin_channel *channel = gremlin_channel_ref(sending->channel);
    void (*then)(void *) = sending->then;
    void *context = sending->context;

    if (sending->message.bytes && channel->target.context)
        channel->target.send(channel->target.context, &sending->message,
                             (struct net_release){sending_release, sending});
    else
        sending_release(sending);
    if (then)
        then(context);
    if (channel->target.context)
        channel->target.sent(channel->target.context);
}

/* --- From elsewhere ----------------------------------------------------------------------------
 */

/* With the bytes counted already. */
static void sending_post(struct gremlin_channel *channel, const struct gremlin_outgoing *message,
                         void (*then)(void *context), void *context)
{
    struct sending *sending = MEMORY_NEW(struct sending);

    sending->channel = gremlin_channel_ref(channel);
    sending->message = *message;
    sending->then = then;
    sending->context = context;
    sending->task.run = sending_run;
    sending->task.owner = channel;
    net_loop_post(channel->loop, &sending->task);
}

static bool is_full(struct gremlin_channel *channel)
{
    bool full = false;

    WITH_LOCK (&channel->lock)
        full = channel->waiting >= channel->waiting_max && !atomic_load(&channel->gone);
    return full;
}

/* False: the time is over. */
static bool room_await(struct gremlin_channel *channel, int64_t deadline_ms)
{
    bool in_time = true;

    mutex_lock(&channel->lock);
    while (channel->waiting >= channel->waiting_max && !atomic_load(&channel->gone) && in_time) {
        if (deadline_ms)
            in_time = condition_wait_until(&channel->room, &channel->lock, deadline_ms);
        else
            condition_wait(&channel->room, &channel->lock);
    }
    mutex_unlock(&channel->lock);
    return in_time;
}

bool gremlin_channel_send(struct gremlin_channel *channel, struct net_workers *workers,
                          const struct gremlin_outgoing *message, int64_t deadline_ms,
                          struct error *err)
{
    bool in_time = true;

    if (is_full(channel)) {
        net_workers_rest(workers);
        in_time = room_await(channel, deadline_ms);
        net_workers_rested(workers);
    }
    if (in_time && !atomic_load(&channel->gone)) {
        gremlin_channel_end(channel, message, NULL, NULL);
        return true;
    }
    memory_free(message->bytes);
    return error_set(err, ERROR_TIMED_OUT,
                     in_time
                         ? "the client has gone"
                         : "the client did not take its results within the time of the request");
}

void gremlin_channel_end(struct gremlin_channel *channel, const struct gremlin_outgoing *message,
                         void (*then)(void *context), void *context)
{
    WITH_LOCK (&channel->lock)
        channel->waiting += message->len;
    sending_post(channel, message, then, context);
}
