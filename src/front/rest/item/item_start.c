/* Writes without a worker: the loop begins them, the committer makes them durable, the loop
 * answers. A write so waits for nothing but its commit, and any number of them can be under way.
 * What cannot be done that way runs again from its beginning on a worker; so does what lost against
 * another writer. */
#include "front/rest/target/items.h"

/* In the arena of the call. */
struct write_under_way {
    struct net_task task;
    struct rest_call *call;
    struct rest_items items; /* owned */
    struct rest_item_target target;
    enum transaction_verb verb;
    struct transaction_options options;
    struct metered_call metered;
    struct transaction_result result;
    bool fine;
    struct error err;
};

static bool runs_again(const struct error *err)
{
    return err->code == ERROR_CONFLICT || err->code == ERROR_SNAPSHOT_TOO_OLD ||
           item_space_is_overtaken(err);
}

/* On the loop. */
static void write_answer(struct net_task *task, struct net_loop *loop UNUSED)
{
    struct write_under_way *way = CONTAINER_OF(task, struct write_under_way, task);
    struct rest_call *call = way->call;
    struct rest_items items = way->items;
    struct error err = way->err;
    bool fine = way->fine;

    if (!fine && runs_again(&err)) {
        rest_items_close(&items);
        rest_call_move(call);
        return;
    }
    rest_items_charged(call, &way->metered);
    if (fine)
        rest_item_written(call, &items, &way->target, way->verb, &way->result);
    else
        rest_item_refused(call, &items, &way->target, rest_item_kind(way->verb), &err);
    rest_items_close(&items);
    rest_call_finish(call, fine, &err);
}

/* On the committer's thread. */
static void write_done(const struct transaction_result *result,
                       const struct transaction_work *work UNUSED, const struct error *err,
                       void *context)
{
    struct write_under_way *way = context;
    atomic_uint *under_way = way->call->under_way;

    way->fine = !err;
    if (err)
        way->err = *err;
    else
        way->result = *result;
    way->task.run = write_answer;
    net_loop_post(way->call->http->loop, &way->task);
    atomic_fetch_sub(under_way, 1); /* the loop is not needed any more by this thread */
}

static bool options_of(struct write_under_way *way, struct error *err)
{
    if (!rest_items_options(way->call, &way->options, err) ||
        !rest_items_metered(way->call, &way->metered, err))
        return false;
    rest_item_target_options(&way->target, &way->options);
    return true;
}

bool rest_item_start(struct rest_call *call, struct rest_items *items,
                     const struct rest_item_target *target, enum transaction_verb verb,
                     struct error *err)
{
    struct write_under_way *way = ARENA_NEW(call->arena, struct write_under_way);
    bool *pending = call->pending, begun = false;
    atomic_uint *under_way = call->under_way;

    way->call = call;
    way->items = *items;
    items->container = NULL;
    way->target = *target;
    way->verb = verb;
    atomic_fetch_add(under_way, 1);
    if (!options_of(way, err) ||
        !metered_write_start(call->services->meters, &way->items.space, &way->target.key,
                             &way->target.id, verb, way->target.document, &way->options,
                             &way->metered, call->arena, write_done, way, &begun, err)) {
        atomic_fetch_sub(under_way, 1);
        rest_items_charged(call, &way->metered);
        rest_item_refused(call, &way->items, &way->target, rest_item_kind(verb), err);
        rest_items_close(&way->items);
        return false;
    }
    if (begun) {
        *pending = true;
        return true;
    }
    atomic_fetch_sub(under_way, 1);
    rest_items_close(&way->items);
    call->cold = true;
    return false;
}
