#include "front/mongo/command/await.h"

enum { AWAIT_MS = 1000, AWAIT_MS_MAX = 24 * 3600 * 1000 };

bool mongo_await_begin(struct mongo_call *call, struct error *err)
{
    struct document_value value;
    int64_t ms = 0;

    if (call->wait.until_ms)
        return true;
    if (document_find(call->message.body, SLICE("maxTimeMS"), &value) &&
        value.type != DOCUMENT_NULL && value.type != DOCUMENT_UNDEFINED &&
        (!document_to_int64(&value, &ms) || ms < 0 || ms > INT32_MAX))
        return mongo_error_set(err, MONGO_BAD_VALUE, "maxTimeMS must be a whole number from 0 on");
    ms = ms ? MIN(ms, (int64_t)AWAIT_MS_MAX) : AWAIT_MS;
    call->wait.until_ms = clock_read_monotonic_ms(call->services->clock) + ms;
    return true;
}

bool mongo_await_may(const struct mongo_call *call, const struct front_cursor *cursor)
{
    return !atomic_load(&cursor->cancelled) && !mongo_waits_are_over(call->mongo->waits) &&
           !(call->cancelled && atomic_load(call->cancelled)) &&
           clock_read_monotonic_ms(call->services->clock) < call->wait.until_ms;
}

bool mongo_await_killed(uint64_t id, struct error *err)
{
    return mongo_error_set(err, MONGO_CURSOR_KILLED, "cursor id %llu was killed",
                           (unsigned long long)id);
}

bool mongo_await_check(const struct front_cursor *cursor, struct error *err)
{
    return !atomic_load(&cursor->cancelled) || mongo_await_killed(cursor->id, err);
}

/* Who kills a cursor wakes those that are listed as waiting for it. Whoever killed this one before
 * it was listed is noticed here, and who does so later finds it on the list. */
static void park(struct front_call *front)
{
    struct mongo_call *call = CONTAINER_OF(front, struct mongo_call, front);
    struct mongo *mongo = call->mongo;
    uint64_t id = call->wait.cursor;

    mongo_account_leave(call);
    mongo_waits_add(mongo->waits, &call->wait, front); /* from here on it may be gone */
    if (!front_cursors_is_open(mongo->cursors, id))
        mongo_waits_kill(mongo->waits, id);
}

void mongo_await_park(struct mongo_call *call, struct front_cursor *cursor, uint64_t hash,
                      uint64_t after, struct error *err)
{
    call->wait.hash = hash;
    call->wait.after = after;
    call->wait.cursor = cursor->id;
    call->wait.cancelled = call->cancelled;
    call->park = park;
    front_cursors_put_back(call->mongo->cursors, cursor,
                           call->wait.until_ms + call->options->cursor_ms, cursor->bytes);
    err->code = ERROR_NONE; /* nothing has failed */
}
