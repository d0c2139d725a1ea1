/* One write of an item, from its target to its answer.
 *
 * Where blocking is fine it runs from top to bottom. On a loop it is begun, the committer makes it
 * durable, and the loop settles and answers: a write so waits for nothing but its commit, and any
 * number of them can be under way. What cannot be done that way moves to a worker; so does what
 * lost against another writer. */
#include "front/rest/query/patch.h"
#include "front/rest/target/items.h"

/* In the arena of the call. */
struct write {
    struct item_operation op;
    struct rest_call *call;
    struct rest_items items; /* owned while it is under way */
    struct net_task task;
};

/* Charge, status, headers and body; the error is answered by whoever ends the call. */
static void answer(struct write *write, bool fine, const struct error *err)
{
    rest_items_charged(write->call, &write->op.metered);
    if (fine)
        rest_item_written(write->call, &write->items, &write->op);
    else
        rest_item_refused(write->call, &write->items, &write->op, err);
}

/* On the loop. */
static void settle(struct net_task *task, struct net_loop *loop UNUSED)
{
    struct write *write = CONTAINER_OF(task, struct write, task);
    struct rest_call *call = write->call;
    struct error err;
    bool fine = item_operation_settle(&write->op, &err);

    if (!fine && item_operation_is_overtaken(&err)) {
        rest_items_close(&write->items);
        rest_call_move(call);
        return;
    }
    answer(write, fine, &err);
    rest_items_close(&write->items);
    rest_call_finish(call, fine, &err);
}

/* On the committer's thread. */
static void post(struct item_operation *op)
{
    struct write *write = CONTAINER_OF(op, struct write, op);
    atomic_uint *under_way = write->call->under_way;

    write->task.run = settle;
    write->task.owner = net_http_owner(write->call->http);
    net_loop_post(write->call->http->loop, &write->task);
    atomic_fetch_sub(under_way, 1); /* the loop is not needed any more by this thread */
}

static bool write_init(struct write *write, const struct rest_item_target *target,
                       enum item_verb verb, struct error *err)
{
    struct rest_call *call = write->call;
    struct item_operation *op = &write->op;

    op->space = &write->items.space;
    op->meters = call->services->meters;
    op->arena = call->arena;
    op->verb = verb;
    op->key = target->key;
    op->id = target->id;
    op->document = target->document;
    op->done = post;
    if (target->patch) {
        op->make = rest_patch_make;
        op->context = target->patch;
    }
    if (!rest_items_options(call, &op->options, err) ||
        !rest_items_metered(call, &op->metered, err))
        return false;
    rest_item_target_options(target, &op->options);
    return true;
}

static bool start(struct write *write, struct rest_items *items, struct error *err)
{
    struct rest_call *call = write->call;
    bool *pending = call->pending;
    atomic_uint *under_way = call->under_way;

    atomic_fetch_add(under_way, 1);
    switch (item_operation_start(&write->op, err)) {
    case ITEM_START_UNDER_WAY:
        items->container = NULL;
        *pending = true;
        return true;
    case ITEM_START_COLD:
        call->cold = true;
        break;
    default:
        answer(write, false, err);
    }
    atomic_fetch_sub(under_way, 1);
    return false;
}

bool rest_item_write(struct rest_call *call, struct rest_items *items,
                     const struct rest_item_target *target, enum item_verb verb, struct error *err)
{
    struct write *write = ARENA_NEW(call->arena, struct write);
    bool fine;

    write->call = call;
    write->items = *items;
    if (!write_init(write, target, verb, err))
        return false;
    if (!call->may_block)
        return start(write, items, err);
    fine = item_operation_run(&write->op, err);
    answer(write, fine, err);
    return fine;
}
