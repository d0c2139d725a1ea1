#include "front/kit/call.h"

#include "engine/reader.h"
#include "front/front.h"
#include "front/owner.h"

#include <time.h>

enum { REKEYED_MAX = 3 }; /* times a request is read again */

void front_calls_wait(atomic_uint *under_way)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    while (atomic_load(under_way))
        nanosleep(&pause, NULL);
}

bool front_call_hold(struct front_call *call, size_t bytes, struct error *err)
{
    if (!front_owner_hold(call->owner, bytes, err))
        return false;
    call->held += bytes;
    return true;
}

void front_call_breathe(const struct front_call *call)
{
    if (call->may_block)
        net_workers_breathe(call->services->workers);
}

static void call_tell(struct front_call *call, bool fine, const struct error *err)
{
    struct observed_request request = {.observed = call->observed,
                                       .account = call->account.id,
                                       .status = 200,
                                       .charge_cru = call->charge_cru,
                                       .may_block = call->may_block};

    call->kind->describe(call, &request);
    request.time_us = (call->ended_ns - MIN(request.started_ns, call->ended_ns)) / 1000;
    if (!fine) {
        request.status = err->status;
        request.substatus = err->substatus;
        request.error = error_face(err->code)->name;
    }
    observer_tell(call->services->observer, &request, fine ? ERROR_NONE : err->code);
}

void front_call_finish(struct front_call *call, bool fine, const struct error *err)
{
    call->ended_ns = clock_monotonic_ns();
    if (call->services->observer && call->kind->describe)
        call_tell(call, fine, err);
    front_owner_let_go(call->owner, call->held);
    if (call->kind->settle)
        call->kind->settle(call);
    front_account_done(&call->account);
    if (fine)
        call->kind->answer(call);
    else
        call->kind->refuse(call, err);
}

void front_call_keep(struct front_call *call)
{
    if (call->kept)
        return;
    call->kept = true;
    call->transport->keep(call);
    if (call->kind->kept)
        call->kind->kept(call);
}

/* What the request says of keys means something else once its container has got another partition
 * key. Nothing was done then, and it is read again. Nor was anything done but reading where a
 * standby was lost in the middle: then it is read from the primary. */
static bool call_run(struct front_call *call, struct error *err)
{
    bool fine = call->kind->run(call, err);

    for (int i = 0; !fine && err->code == ERROR_REKEYED && i < REKEYED_MAX; i++) {
        call->transport->restart(call);
        fine = call->kind->run(call, err);
    }
    if (!fine && engine_reader_may_repeat(err) && !call->primary) {
        call->primary = true;
        call->transport->restart(call);
        fine = call->kind->run(call, err);
    }
    return fine;
}

/* Who waits holds no memory but that of the request. */
static void call_park(struct front_call *call)
{
    void (*park)(struct front_call * call) = call->park;

    call->park = NULL;
    front_owner_let_go(call->owner, call->held);
    call->held = 0;
    park(call);
}

static void work_run(struct net_work *work)
{
    struct front_call *call = CONTAINER_OF(work, struct front_call, work);
    struct error err;
    bool fine;

    call->may_block = true;
    call->cancelled = call->transport->cancel_flag(call);
    if (call->cancelled && atomic_load(call->cancelled))
        fine = error_set(&err, ERROR_TIMED_OUT, "the client has gone");
    else
        fine = front_call_hold(call, call->work_bytes, &err) && call_run(call, &err);
    if (call->park)
        call_park(call);
    else
        front_call_finish(call, fine, &err);
}

void front_call_move(struct front_call *call)
{
    struct error err;

    assert(call->kept);
    call->transport->restart(call);
    call->cold = false;
    call->work = (struct net_work){
        .run = work_run, .loop = call->loop, .owner = call->owner, .part = call->kind->part(call)};
    if (!net_workers_submit(call->services->workers, &call->work, &err))
        front_call_finish(call, false, &err);
}

void front_call_run(struct front_call *call, bool blocks)
{
    bool fine, pending = false;
    struct error err;

    if (!blocks) {
        call->pending = &pending;
        fine = call->kind->run(call, &err);
        if (pending)
            return;
        if (!call->cold) {
            front_call_finish(call, fine, &err);
            return;
        }
    }
    front_call_keep(call);
    front_call_move(call);
}
