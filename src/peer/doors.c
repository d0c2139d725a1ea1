/* A passage is a client's connection and the link that it is passed on by, both on one loop: so
 * that neither needs a lock, and each touches the other directly.
 *
 *     WAITING --an owner is known--> DIALLING --it answers TAKEN--> OPEN
 *        ^------ it does not, or answers otherwise -----'
 *
 * While it waits nothing is taken from the client: the bytes stay where they are, and are given
 * again every LOOK_MS. When OPEN each side's bytes go to the other's output, as far as that is not
 * full; what is left is given again when it has room.
 *
 * Flushing the other side may close it, which tells the passage so and frees that side's state;
 * this side, being within a callback, only takes note. So nothing of the other side is touched
 * behind a flush of it. */
#include "peer/doors_private.h"

#include "base/memory.h"
#include "peer/leases.h"

enum { LOOK_MS = 20, OPEN_LOOK_MS = 250 };

enum passage_state { WAITING, DIALLING, OPEN };

struct passage;

struct link {
    struct passage *passage; /* NULL: let go of */
    struct net_connection *connection;
};

struct passage {
    struct peer_door *door;
    enum passage_state state;
    struct net_connection *client; /* whose protocol's state it is */
    struct link *link;             /* NULL: there is none */
    uint64_t incarnation;          /* of the server it is passed on to */
    int64_t waits_since_ms;        /* 0: it does not */
    int64_t quiet_since_ms;
    bool client_waits, link_waits; /* bytes of it were left, for the other was full */
    bool asked;                    /* the last bytes were the client's: it is owed an answer */
    bool leaves;                   /* the server stops */
    bool ended;                    /* the client's side is closing */
};

struct peer_doors *peer_doors_new(const struct peer_doors_options *options)
{
    struct peer_doors *doors = MEMORY_NEW(struct peer_doors);

    doors->log = options->log;
    doors->tls = net_tls_context_ref(options->tls);
    doors->wait_ms = options->wait_ms;
    doors->drain_ms = options->drain_ms;
    doors->memory = options->memory;
    doors->leases = options->leases;
    for (size_t i = 0; doors->memory && i < PEER_SHARES; i++)
        memory_meter_init(&doors->shares[i], doors->memory, doors->memory->max / 4);
    mutex_init(&doors->lock);
    for (int i = 0; i < PEER_FRONTS; i++)
        doors->doors[i] = (struct peer_door){.doors = doors, .front = (enum peer_front)i};
    return doors;
}

void peer_doors_free(struct peer_doors *doors)
{
    if (!doors)
        return;
    assert(atomic_load(&doors->open) == 0);
    for (int i = 0; i < PEER_FRONTS; i++)
        peer_askers_free(doors->doors[i].askers);
    net_tls_context_unref(doors->tls);
    mutex_done(&doors->lock);
    memory_free(doors);
}

void peer_doors_front(struct peer_doors *doors, enum peer_front front,
                      const struct peer_front_local *local)
{
    assert(atomic_load(&doors->owning) != PEER_OURS);
    doors->doors[front].local = *local;
}

void peer_doors_requests(struct peer_doors *doors, enum peer_front front, struct net_loops *loops,
                         const struct peer_requests *requests)
{
    struct peer_door *door = &doors->doors[front];

    door->requests = *requests;
    door->askers = peer_askers_new(door, net_loops_count(loops));
}

void *peer_doors_door(struct peer_doors *doors, enum peer_front front)
{
    return &doors->doors[front];
}

void peer_doors_ours(struct peer_doors *doors)
{
    atomic_store(&doors->incarnation, 0);
    atomic_store(&doors->owning, PEER_OURS);
}

void peer_doors_theirs(struct peer_doors *doors, uint64_t incarnation,
                       const struct net_address *address)
{
    WITH_LOCK (&doors->lock)
        doors->address = *address;
    atomic_store(&doors->incarnation, incarnation);
    atomic_store(&doors->owning, PEER_THEIRS);
}

void peer_doors_nobodys(struct peer_doors *doors)
{
    atomic_store(&doors->owning, PEER_NOBODYS);
}

void peer_doors_leave(struct peer_doors *doors)
{
    atomic_store(&doors->leaving, true);
}

struct net_address peer_doors_address(struct peer_doors *doors, uint64_t *ret_incarnation)
{
    struct net_address address;

    *ret_incarnation = atomic_load(&doors->incarnation);
    WITH_LOCK (&doors->lock)
        address = doors->address;
    return address;
}

void peer_doors_metrics(const struct peer_doors *doors, struct peer_doors_metrics *ret_metrics)
{
    *ret_metrics = (struct peer_doors_metrics){
        .passed_on = atomic_load(&doors->passed_on),
        .taken = atomic_load(&doors->taken),
        .refused = atomic_load(&doors->refused),
        .given_up = atomic_load(&doors->given_up),
        .cut = atomic_load(&doors->cut),
        .open = atomic_load(&doors->open),
        .requests = atomic_load(&doors->requests),
        .requests_repeated = atomic_load(&doors->requests_repeated),
        .requests_lost = atomic_load(&doors->requests_lost),
        .requests_refused = atomic_load(&doors->requests_refused),
        .requests_waiting = atomic_load(&doors->requests_waiting),
        .requests_taken = atomic_load(&doors->requests_taken),
    };
}

/* --- The link -------------------------------------------------------------------------------- */

/* Lets go of the link: it closes by itself, at the latest when its time is over. */
static void link_drop(struct passage *passage)
{
    struct link *link = passage->link;

    if (passage->state == OPEN)
        atomic_fetch_sub(&passage->door->doors->open, 1);
    passage->state = WAITING;
    passage->link = NULL;
    if (!link)
        return;
    link->passage = NULL;
    net_connection_finish(link->connection, false);
    net_connection_flush(link->connection);
}

/* The client has to find out what became of what it asked. */
static void client_end(struct passage *passage)
{
    passage->ended = true;
    net_connection_finish(passage->client, passage->asked);
    net_connection_flush(passage->client);
}

static void *link_open(struct net_connection *connection, void *context)
{
    struct link *link = MEMORY_NEW(struct link);

    link->connection = connection;
    link->passage = context;
    link->passage->link = link;
    return link;
}

/* The answer to the hello. Any but TAKEN: it is tried again, until somebody owns. */
static size_t verdict_take(struct passage *passage, struct slice bytes)
{
    struct peer_doors *doors = passage->door->doors;
    int64_t now_ms = net_connection_now_ms(passage->link->connection);
    enum peer_verdict verdict;

    if (bytes.len < PEER_ANSWER_BYTES)
        return 0;
    if (!peer_answer_read(bytes.data, &verdict) || verdict != PEER_TAKEN) {
        link_drop(passage);
        return bytes.len;
    }
    passage->state = OPEN;
    passage->waits_since_ms = 0;
    passage->quiet_since_ms = now_ms;
    atomic_fetch_add(&doors->passed_on, 1);
    atomic_fetch_add(&doors->open, 1);
    net_connection_deadline(passage->client, now_ms + OPEN_LOOK_MS);
    net_connection_resume(passage->client);
    net_connection_flush(passage->client);
    return PEER_ANSWER_BYTES;
}

static size_t link_bytes(struct net_connection *connection, void *state, struct slice bytes)
{
    struct link *link = state;
    struct passage *passage = link->passage;

    if (!passage || passage->ended)
        return bytes.len;
    if (passage->state == DIALLING)
        return verdict_take(passage, bytes);
    passage->link_waits = net_connection_is_full(passage->client);
    if (passage->link_waits)
        return 0;
    passage->asked = false;
    passage->quiet_since_ms = net_connection_now_ms(connection);
    net_output_append(net_connection_output(passage->client), bytes);
    net_connection_flush(passage->client);
    return bytes.len;
}

static void link_room(struct net_connection *connection UNUSED, void *state)
{
    struct passage *passage = ((struct link *)state)->passage;

    if (!passage || !passage->client_waits)
        return;
    passage->client_waits = false;
    net_connection_resume(passage->client);
    net_connection_flush(passage->client);
}

static void link_deadline(struct net_connection *connection UNUSED, void *state UNUSED)
{
}

/* The client's side decides. */
static void link_drain(struct net_connection *connection, void *state)
{
    if (!((struct link *)state)->passage)
        net_connection_finish(connection, false);
}

static void link_closed(struct net_connection *connection UNUSED, void *state)
{
    struct link *link = state;
    struct passage *passage = link->passage;

    memory_free(link);
    if (!passage)
        return;
    passage->link = NULL;
    if (passage->state == OPEN) {
        atomic_fetch_sub(&passage->door->doors->open, 1);
        passage->state = WAITING;
        atomic_fetch_add(&passage->door->doors->cut, 1);
        client_end(passage);
    } else {
        passage->state = WAITING; /* the client's timer tries again */
    }
}

static const struct net_protocol link_protocol = {
    .name = "peer link",
    .open = link_open,
    .bytes = link_bytes,
    .room = link_room,
    .deadline = link_deadline,
    .drain = link_drain,
    .closed = link_closed,
};

/* --- The client ------------------------------------------------------------------------------ */

static void hello_send(struct passage *passage)
{
    CLEANUP(buf_done) struct buf bytes, subject;
    struct peer_hello hello = {
        .front = passage->door->front,
        .tls = net_connection_is_tls(passage->client),
        .hops = 1,
        .client = *net_connection_peer(passage->client),
    };

    buf_init(&bytes, PEER_HELLO_BYTES_MAX);
    buf_init(&subject, PEER_SUBJECT_BYTES_MAX);
    if (net_connection_subject(passage->client, &subject) && !buf_overflowed(&subject))
        hello.subject = buf_slice(&subject);
    peer_hello_append(&bytes, &hello);
    net_output_append(net_connection_output(passage->link->connection), buf_slice(&bytes));
}

/* Where the owner is; the link is made when it answers. */
static void passage_dial(struct passage *passage)
{
    struct peer_doors *doors = passage->door->doors;
    struct net_address address = peer_doors_address(doors, &passage->incarnation);

    if (!net_connection_dial(passage->client, &address, doors->tls, &link_protocol, passage))
        return;
    passage->state = DIALLING;
    hello_send(passage);
}

/* No owner was found in time. */
static void passage_give_up(struct passage *passage)
{
    struct peer_doors *doors = passage->door->doors;

    atomic_fetch_add(&doors->given_up, 1);
    net_output_append(net_connection_output(passage->client), passage->door->local.refusal);
    passage->ended = true;
    net_connection_finish(passage->client, true);
    link_drop(passage);
}

static void *door_open(struct net_connection *connection, void *context)
{
    struct passage *passage = MEMORY_NEW(struct passage);

    passage->door = context;
    passage->client = connection;
    return passage;
}

/* Waits for an owner, or passes on to the one there is. */
static void passage_seek(struct passage *passage)
{
    struct peer_doors *doors = passage->door->doors;
    int64_t now_ms = net_connection_now_ms(passage->client);

    if (!passage->waits_since_ms)
        passage->waits_since_ms = now_ms;
    if (now_ms - passage->waits_since_ms > doors->wait_ms) {
        passage_give_up(passage);
        return;
    }
    if (passage->link && passage->incarnation != atomic_load(&doors->incarnation))
        link_drop(passage); /* it hangs, and owns no more */
    if (!passage->link && atomic_load(&doors->owning) == PEER_THEIRS)
        passage_dial(passage);
    net_connection_deadline(passage->client, now_ms + LOOK_MS);
}

static size_t door_bytes(struct net_connection *client, void *state, struct slice bytes)
{
    struct passage *passage = state;
    struct peer_door *door = passage->door;
    struct peer_doors *doors = door->doors;

    if (passage->ended || passage->leaves)
        return passage->ended ? bytes.len : 0;
    if (passage->state == OPEN) {
        struct net_connection *link = passage->link->connection;

        passage->client_waits = net_connection_is_full(link);
        if (passage->client_waits)
            return 0;
        passage->asked = true;
        passage->quiet_since_ms = net_connection_now_ms(client);
        net_output_append(net_connection_output(link), bytes);
        net_connection_flush(link);
        return bytes.len;
    }
    if (atomic_load(&doors->owning) == PEER_OURS) {
        struct peer_front_local local = door->local;

        net_connection_become(client, local.protocol, local.context);
    } else if (door->requests.http) {
        net_connection_become(client, &net_http_protocol, door->requests.http);
    } else {
        passage_seek(passage);
    }
    return 0;
}

static void door_room(struct net_connection *client UNUSED, void *state)
{
    struct passage *passage = state;

    if (!passage->link || !passage->link_waits)
        return;
    passage->link_waits = false;
    net_connection_resume(passage->link->connection);
    net_connection_flush(passage->link->connection);
}

/* A connection has no end of its own that we could see: while the server stops, one that was
 * answered and has been quiet for a while is taken to be idle. */
static void leave_look(struct passage *passage, int64_t now_ms)
{
    int64_t drain_ms = passage->door->doors->drain_ms;

    if (passage->state == OPEN && (passage->asked || now_ms - passage->quiet_since_ms < drain_ms)) {
        net_connection_deadline(passage->client, now_ms + LOOK_MS);
        return;
    }
    passage->ended = true;
    net_connection_finish(passage->client, false);
    link_drop(passage);
}

static void door_deadline(struct net_connection *client, void *state)
{
    struct passage *passage = state;
    struct peer_doors *doors = passage->door->doors;
    int64_t now_ms = net_connection_now_ms(client);

    if (passage->leaves) {
        leave_look(passage, now_ms);
    } else if (passage->state != OPEN) {
        net_connection_resume(client); /* the bytes are given again */
        net_connection_deadline(client, now_ms + LOOK_MS);
    } else if (passage->incarnation != atomic_load(&doors->incarnation)) {
        atomic_fetch_add(&doors->cut, 1);
        link_drop(passage);
        client_end(passage);
    } else {
        net_connection_deadline(client, now_ms + OPEN_LOOK_MS);
    }
}

static void door_drain(struct net_connection *client, void *state)
{
    struct passage *passage = state;

    passage->leaves = true;
    leave_look(passage, net_connection_now_ms(client));
}

static void door_closed(struct net_connection *client UNUSED, void *state)
{
    struct passage *passage = state;

    link_drop(passage);
    memory_free(passage);
}

const struct net_protocol peer_door_protocol = {
    .name = "door",
    .open = door_open,
    .bytes = door_bytes,
    .room = door_room,
    .deadline = door_deadline,
    .drain = door_drain,
    .closed = door_closed,
};

/* --- The gate -------------------------------------------------------------------------------- */

static void *gate_open(struct net_connection *connection UNUSED, void *context)
{
    return context;
}

static void gate_answer(struct net_connection *connection, enum peer_verdict verdict)
{
    uint8_t answer[PEER_ANSWER_BYTES];

    peer_answer_write(verdict, answer);
    net_output_append(net_connection_output(connection), slice_of(answer, sizeof answer));
}

static size_t gate_refuse(struct peer_doors *doors, struct net_connection *connection,
                          enum peer_verdict verdict, size_t taken)
{
    atomic_fetch_add(&doors->refused, 1);
    gate_answer(connection, verdict);
    net_connection_finish(connection, false);
    return taken;
}

static size_t gate_bytes(struct net_connection *connection, void *state, struct slice bytes)
{
    struct peer_doors *doors = state;
    struct peer_front_local local;
    enum peer_verdict verdict;
    struct peer_hello hello;
    struct error err;
    size_t taken;

    if (!peer_hello_read(bytes, &hello, &taken, &verdict, &err)) {
        log_event(doors->log, LOG_WARNING, "a server was refused",
                  LOG_TEXT("because", err.message));
        return gate_refuse(doors, connection, verdict, bytes.len);
    }
    if (!taken)
        return 0;
    if (atomic_load(&doors->owning) != PEER_OURS)
        return gate_refuse(doors, connection, PEER_NOT_OWNER, bytes.len);
    if (hello.leases && !doors->leases)
        return gate_refuse(doors, connection, PEER_FRONT_OFF, bytes.len);
    if (hello.leases) {
        gate_answer(connection, PEER_TAKEN);
        net_connection_become(connection, &peer_lease_serving_protocol, doors->leases);
        return taken;
    }
    local = doors->doors[hello.front].local;
    if (!local.protocol || (hello.requests && !local.handle))
        return gate_refuse(doors, connection, PEER_FRONT_OFF, bytes.len);
    gate_answer(connection, PEER_TAKEN);
    if (hello.requests) {
        net_connection_become(connection, &peer_serving_protocol, &doors->doors[hello.front]);
        return taken;
    }
    atomic_fetch_add(&doors->taken, 1);
    net_connection_stand_for(connection, &hello.client, hello.tls, hello.subject);
    net_connection_become(connection, local.protocol, local.context);
    return taken;
}

static void gate_deadline(struct net_connection *connection UNUSED, void *state UNUSED)
{
}

static void gate_drain(struct net_connection *connection, void *state UNUSED)
{
    net_connection_finish(connection, false);
}

static void gate_closed(struct net_connection *connection UNUSED, void *state UNUSED)
{
}

const struct net_protocol peer_gate_protocol = {
    .name = "gate",
    .open = gate_open,
    .bytes = gate_bytes,
    .deadline = gate_deadline,
    .drain = gate_drain,
    .closed = gate_closed,
};
