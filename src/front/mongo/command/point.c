#include "front/mongo/command/point.h"

#include "front/mongo/command/session.h"
#include "front/mongo/command/statement.h"
#include "front/mongo/command/told.h"

bool mongo_point_begin(struct mongo_call *call)
{
    if (call->may_block)
        return false;
    call->cold = true; /* unless it goes well */
    return (!call->logical || call->retry) && !call->transact && !call->explaining &&
           mongo_call_keep(call);
}

static void point_end(struct mongo_point *point, const struct error *err)
{
    struct mongo_call *call = point->call;

    mongo_call_charged(call, &point->op.metered);
    mongo_told_item(call, &point->collection, &point->op, err);
    point->answer(point, err);
    mongo_collection_close(&point->collection);
}

static bool runs_again(const struct error *err)
{
    return item_operation_is_overtaken(err) || mongo_is_overtaken(err);
}

/* On the loop. */
static void settle(struct net_task *task, struct net_loop *loop UNUSED)
{
    struct mongo_point *point = CONTAINER_OF(task, struct mongo_point, task);
    struct mongo_call *call = point->call;
    struct error err;
    bool fine = item_operation_settle(&point->op, &err);

    call->cold = !fine && runs_again(&err);
    if (!call->cold)
        point_end(point, fine ? NULL : &err);
    else
        mongo_collection_close(&point->collection);
    fine = mongo_session_leave(call, true, &err);
    if (call->cold)
        front_call_move(&call->front);
    else
        front_call_finish(&call->front, fine, &err);
}

/* On the committer's thread. */
static void post(struct item_operation *op)
{
    struct mongo_point *point = CONTAINER_OF(op, struct mongo_point, op);
    atomic_uint *count = point->call->under_way;

    point->task.run = settle;
    point->task.owner = net_owner_memory(point->call->owner);
    net_loop_post(point->call->loop, &point->task);
    atomic_fetch_sub(count, 1); /* the loop is not needed any more by this thread */
}

bool mongo_point_start(struct mongo_point *point, struct error *err)
{
    struct mongo_call *call = point->call;
    atomic_uint *count = call->under_way;
    bool *pending = call->pending;

    point->op.done = post;
    atomic_fetch_add(count, 1);
    switch (item_operation_start(&point->op, err)) {
    case ITEM_START_UNDER_WAY:
        call->cold = false;
        *pending = true;
        return true;
    case ITEM_START_COLD:
        break;
    default:
        call->cold = runs_again(err);
        if (!call->cold)
            point_end(point, err);
    }
    atomic_fetch_sub(count, 1);
    mongo_collection_close(&point->collection);
    return !call->cold;
}
