/* The owner's end. A lease that was given is an entry of a list until it is returned or over; the
 * entry outlives its connection, since a follower whose connection was cut reads on until its time
 * is over. Whoever calls leases back does so on a thread that may block: it posts a task to the
 * loop of each connection and waits for the answers, or for the time to pass. */
#include "peer/leases_private.h"

#include "base/bytes.h"
#include "base/memory.h"

struct peer_given {
    struct peer_leases *leases;
    struct peer_given *next;
    struct net_connection *connection; /* of its loop; NULL: closed */
    struct net_loop *loop;
    struct peer_frame_reader reader;
    uint64_t generation;
    int64_t until_ms; /* 0: it has none */
    bool task_posted;
    struct net_task task;
};

struct peer_leases *peer_leases_new(const struct peer_leases_options *options)
{
    struct peer_leases *leases = MEMORY_NEW(struct peer_leases);

    leases->options = *options;
    leases->generation = 1;
    mutex_init(&leases->lock);
    condition_init(&leases->changed);
    return leases;
}

static void given_free(struct peer_leases *leases, struct peer_given *given)
{
    struct peer_given **link = &leases->given;

    while (*link != given)
        link = &(*link)->next;
    *link = given->next;
    peer_frame_reader_done(&given->reader);
    memory_free(given);
}

void peer_leases_free(struct peer_leases *leases)
{
    if (!leases)
        return;
    assert(!leases->leasing);
    while (leases->given)
        given_free(leases, leases->given);
    condition_done(&leases->changed);
    mutex_done(&leases->lock);
    memory_free(leases);
}

void peer_leases_own(struct peer_leases *leases, bool waits)
{
    WITH_LOCK (&leases->lock) {
        leases->not_before_ms = waits ? clock_monotonic_ms() + leases->options.lease_ms : 0;
        leases->lease[1] = 0; /* its own, of the owner before */
    }
}

void peer_leases_metrics(struct peer_leases *leases, struct peer_leases_metrics *ret_metrics)
{
    WITH_LOCK (&leases->lock) {
        *ret_metrics = leases->metrics;
        ret_metrics->held = peer_leases_in_force(leases, clock_monotonic_ms());
    }
}

/* --- Calling back ----------------------------------------------------------------------------- */

static void recall_send(struct net_task *task, struct net_loop *loop UNUSED)
{
    struct peer_given *given = CONTAINER_OF(task, struct peer_given, task);
    struct net_connection *connection;
    uint64_t generation;

    WITH_LOCK (&given->leases->lock) {
        given->task_posted = false;
        connection = given->connection;
        generation = given->generation;
    }
    if (!connection)
        return;
    peer_frame_append(net_connection_output(connection),
                      &(struct peer_frame){.kind = PEER_FRAME_LEASE_RECALL, .id = generation});
    net_connection_flush(connection);
}

/* When the last of those that are given is over. Closed ones that are, are forgotten. */
static int64_t last_until(struct peer_leases *leases, int64_t now_ms)
{
    int64_t until_ms = leases->not_before_ms;
    struct peer_given *next;

    for (struct peer_given *given = leases->given; given; given = next) {
        next = given->next;
        if (given->until_ms > now_ms)
            until_ms = MAX(until_ms, given->until_ms);
        else if (!given->connection && !given->task_posted)
            given_free(leases, given);
    }
    return until_ms;
}

void peer_leases_recall(struct peer_leases *leases)
{
    int64_t begun_ms = clock_monotonic_ms();

    WITH_LOCK (&leases->lock) {
        int64_t until_ms;

        leases->changing++;
        leases->generation++;
        leases->metrics.recalls++;
        for (struct peer_given *given = leases->given; given; given = given->next)
            if (given->until_ms > begun_ms && given->connection && !given->task_posted) {
                given->task_posted = true;
                given->task = (struct net_task){.run = recall_send};
                net_loop_post(given->loop, &given->task);
            }
        while ((until_ms = last_until(leases, clock_monotonic_ms())) > clock_monotonic_ms())
            condition_wait_until(&leases->changed, &leases->lock, until_ms);
        leases->metrics.recall_ms += (uint64_t)(clock_monotonic_ms() - begun_ms);
    }
}

void peer_leases_recalled(struct peer_leases *leases)
{
    WITH_LOCK (&leases->lock) {
        assert(leases->changing > 0);
        leases->changing--;
    }
}

/* --- Giving ----------------------------------------------------------------------------------- */

static void *given_open(struct net_connection *connection, void *context)
{
    struct peer_given *given = MEMORY_NEW(struct peer_given);

    given->leases = context;
    given->connection = connection;
    given->loop = net_connection_loop(connection);
    peer_frame_reader_init(&given->reader, PEER_LEASE_FRAME_MAX);
    WITH_LOCK (&given->leases->lock) {
        (void)last_until(given->leases, clock_monotonic_ms()); /* forgets those that are over */
        given->next = given->leases->given;
        given->leases->given = given;
    }
    return given;
}

/* False: a change is being made. */
static bool given_give(struct peer_given *given)
{
    struct peer_leases *leases = given->leases;
    bool gives = false;

    WITH_LOCK (&leases->lock) {
        gives = leases->changing == 0;
        if (gives) {
            given->generation = leases->generation;
            given->until_ms = clock_monotonic_ms() + leases->options.lease_ms;
            leases->metrics.given++;
        }
    }
    return gives;
}

static bool ask_take(struct peer_given *given, const struct peer_frame *frame, struct error *err)
{
    const struct peer_leases_options *options = &given->leases->options;
    struct net_output *output = net_connection_output(given->connection);
    size_t rows = frame->payload.len / PEER_ASK_ROW;
    uint8_t head[PEER_LEASE_HEAD], row[PEER_LEASE_ROW];
    bool gives;

    if (frame->payload.len % PEER_ASK_ROW || rows > PEER_ROWS_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "an ask for a lease makes no sense");
    gives = given_give(given);
    peer_frame_append(output, &(struct peer_frame){.kind = PEER_FRAME_LEASE,
                                                   .flags = gives ? PEER_FRAME_FLAG : 0,
                                                   .id = frame->id,
                                                   .len = sizeof head + rows * sizeof row});
    bytes_put_be64(head, given->generation);
    bytes_put_be32(head + 8, (uint32_t)options->lease_ms);
    net_output_append(output, slice_of(head, sizeof head));
    for (size_t i = 0; i < rows; i++) {
        const uint8_t *asked = frame->payload.data + i * PEER_ASK_ROW;
        uint32_t partition = bytes_get_be32(asked);
        int64_t spent = (int64_t)(bytes_get_be64(asked + 4) & INT64_MAX),
                wanted = (int64_t)(bytes_get_be64(asked + 12) & INT64_MAX);

        bytes_put_be32(row, partition);
        bytes_put_be64(row + 4, (uint64_t)(options->lend ? options->lend(options->context,
                                                                         partition, spent, wanted)
                                                         : wanted));
        net_output_append(output, slice_of(row, sizeof row));
    }
    return true;
}

static void return_take(struct peer_given *given, uint64_t generation)
{
    WITH_LOCK (&given->leases->lock)
        if (given->generation == generation) {
            given->until_ms = 0;
            condition_broadcast(&given->leases->changed);
        }
}

static bool frame_take(struct peer_given *given, const struct peer_frame *frame, struct error *err)
{
    if (frame->kind == PEER_FRAME_LEASE_ASK)
        return ask_take(given, frame, err);
    if (frame->kind != PEER_FRAME_LEASE_RETURN)
        return error_set(err, ERROR_BAD_REQUEST, "it sends what only an owner sends");
    return_take(given, frame->id);
    return true;
}

static size_t given_bytes(struct net_connection *connection, void *state, struct slice bytes)
{
    struct peer_given *given = state;
    size_t taken = 0, count;
    struct peer_frame frame;
    struct error err;
    bool done = true;

    while (done && !net_connection_is_full(connection)) {
        if (!peer_frame_read(&given->reader, slice_skip(bytes, taken), &count, &done, &frame,
                             &err) ||
            (done && !frame_take(given, &frame, &err))) {
            log_event(given->leases->options.log, LOG_WARNING,
                      "a server's asking for a lease cannot be read",
                      LOG_TEXT("because", err.message));
            net_connection_finish(connection, false);
            return bytes.len;
        }
        taken += count;
    }
    net_connection_flush(connection);
    return taken;
}

static void given_deadline(struct net_connection *connection UNUSED, void *state UNUSED)
{
}

static void given_drain(struct net_connection *connection, void *state UNUSED)
{
    net_connection_finish(connection, false);
}

static void given_closed(struct net_connection *connection UNUSED, void *state)
{
    struct peer_given *given = state;
    struct peer_leases *leases = given->leases;

    WITH_LOCK (&leases->lock) {
        given->connection = NULL;
        if (given->until_ms <= clock_monotonic_ms() && !given->task_posted)
            given_free(leases, given);
    }
}

const struct net_protocol peer_lease_serving_protocol = {
    .name = "leases",
    .open = given_open,
    .bytes = given_bytes,
    .deadline = given_deadline,
    .drain = given_drain,
    .closed = given_closed,
};
