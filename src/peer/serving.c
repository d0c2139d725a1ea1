/* The owner's end of a way: requests of other servers' clients go to the front that they were sent
 * to, as if its clients had come themselves, and the answers back as they are there.
 *
 * A server that goes says so (LEAVING) with the id of the last request it has taken, and takes no
 * other one: what is still on the way then was never begun. It closes behind the last answer. */
#include "peer/doors_private.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "peer/frame.h"

/* More than the queue of the workers takes of one account, beyond which the front refuses: so it is
 * not one account that keeps the way from being read. */
enum { IN_FLIGHT_MAX = 16 * 1024 };

struct serving;

struct taken {
    struct serving *serving;
    struct taken *before, *next;
    uint64_t id;
    struct net_http_request *request; /* NULL: its handler has not returned yet */
};

struct serving {
    struct peer_door *door;
    struct net_connection *connection;
    struct peer_frame_reader reader;
    struct taken *first;
    uint32_t count;
    uint64_t last; /* id of the last request that was taken */
    bool leaving;
};

static void *serving_open(struct net_connection *connection, void *context)
{
    struct serving *serving = MEMORY_NEW(struct serving);

    serving->door = context;
    serving->connection = connection;
    peer_frame_reader_init(&serving->reader, PEER_FRAME_BYTES_MAX);
    net_connection_meter(connection, serving->door->doors->memory);
    return serving;
}

static void serving_leave(struct serving *serving)
{
    if (serving->leaving)
        return;
    serving->leaving = true;
    peer_frame_append(net_connection_output(serving->connection),
                      &(struct peer_frame){.kind = PEER_FRAME_LEAVING, .id = serving->last});
    if (!serving->count)
        net_connection_finish(serving->connection, true);
}

static struct taken *taken_new(struct serving *serving, uint64_t id)
{
    struct taken *taken = MEMORY_NEW(struct taken);

    taken->serving = serving;
    taken->id = id;
    taken->next = serving->first;
    if (taken->next)
        taken->next->before = taken;
    serving->first = taken;
    serving->count++;
    serving->last = id;
    return taken;
}

static void taken_free(struct taken *taken)
{
    struct serving *serving = taken->serving;

    if (taken->before)
        taken->before->next = taken->next;
    else
        serving->first = taken->next;
    if (taken->next)
        taken->next->before = taken->before;
    serving->count--;
    memory_free(taken);
}

static void taken_answer(void *context, struct net_http_answer *answer)
{
    struct taken *taken = context;
    struct serving *serving = taken->serving;
    struct net_connection *connection = serving->connection;
    struct net_output *output = net_connection_output(connection);
    uint8_t lines_len[4];

    bytes_put_be32(lines_len, (uint32_t)answer->lines.len);
    peer_frame_append(output, &(struct peer_frame){
                                  .kind = PEER_FRAME_ANSWER,
                                  .flags = answer->close ? PEER_FRAME_FLAG : 0,
                                  .number = answer->status,
                                  .id = taken->id,
                                  .len = sizeof lines_len + answer->lines.len + answer->body.len,
                              });
    net_output_append(output, slice_of(lines_len, sizeof lines_len));
    net_output_append(output, answer->lines);
    net_http_answer_body(answer, output);
    if (serving->count == IN_FLIGHT_MAX)
        net_connection_resume(connection);
    taken_free(taken);
    if (serving->leaving && !serving->count)
        net_connection_finish(connection, true);
    net_connection_flush(connection); /* which may be the end of it */
}

static bool request_take(struct serving *serving, const struct peer_frame *frame, struct error *err)
{
    struct net_http_passed passed = {
        .loop = net_connection_loop(serving->connection),
        .tls = frame->flags & PEER_FRAME_FLAG,
        .answer = taken_answer,
    };
    struct net_http_request *request;
    struct taken *taken;

    if (frame->number > frame->payload.len)
        return error_set(err, ERROR_BAD_REQUEST, "an address is longer than its frame");
    if (frame->id <= serving->last)
        return error_set(err, ERROR_BAD_REQUEST, "a request comes again");
    if (frame->number &&
        !net_address_parse(slice_first(frame->payload, frame->number), &passed.client, err))
        return false;
    passed.message = slice_skip(frame->payload, frame->number);
    taken = taken_new(serving, frame->id);
    passed.context = taken;
    atomic_fetch_add(&serving->door->doors->requests_taken, 1);
    request = net_http_pass(serving->door->local.context, &passed);
    if (request)
        taken->request = request;
    return true;
}

static void cancel_take(struct serving *serving, uint64_t id)
{
    for (struct taken *taken = serving->first; taken; taken = taken->next)
        if (taken->id == id) {
            net_http_abandon(taken->request);
            taken_free(taken);
            return;
        }
}

static bool frame_take(struct serving *serving, const struct peer_frame *frame, struct error *err)
{
    if (frame->kind == PEER_FRAME_REQUEST)
        return request_take(serving, frame, err);
    if (frame->kind != PEER_FRAME_CANCEL)
        return error_set(err, ERROR_BAD_REQUEST, "it sends what only an owner sends");
    cancel_take(serving, frame->id);
    if (serving->leaving && !serving->count)
        net_connection_finish(serving->connection, true);
    return true;
}

static size_t serving_bytes(struct net_connection *connection, void *state, struct slice bytes)
{
    struct serving *serving = state;
    struct peer_doors *doors = serving->door->doors;
    size_t taken = 0, count;
    struct peer_frame frame;
    struct error err;
    bool done = true;

    while (done && serving->count < IN_FLIGHT_MAX && !net_connection_is_full(connection)) {
        if (atomic_load(&doors->owning) != PEER_OURS)
            serving_leave(serving);
        if (!peer_frame_read(&serving->reader, slice_skip(bytes, taken), &count, &done, &frame,
                             &err) ||
            (done && !(serving->leaving && frame.kind == PEER_FRAME_REQUEST) &&
             !frame_take(serving, &frame, &err))) {
            log_event(doors->log, LOG_WARNING, "a server's requests cannot be read",
                      LOG_TEXT("because", err.message));
            net_connection_finish(connection, false);
            return bytes.len;
        }
        taken += count;
    }
    return taken;
}

static void serving_deadline(struct net_connection *connection UNUSED, void *state UNUSED)
{
}

static void serving_drain(struct net_connection *connection UNUSED, void *state)
{
    serving_leave(state);
}

static void serving_closed(struct net_connection *connection UNUSED, void *state)
{
    struct serving *serving = state;

    while (serving->first) {
        net_http_abandon(serving->first->request);
        taken_free(serving->first);
    }
    peer_frame_reader_done(&serving->reader);
    memory_free(serving);
}

const struct net_protocol peer_serving_protocol = {
    .name = "serving",
    .open = serving_open,
    .bytes = serving_bytes,
    .deadline = serving_deadline,
    .drain = serving_drain,
    .closed = serving_closed,
};
