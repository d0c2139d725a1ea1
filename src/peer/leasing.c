/* The follower's end: one connection to the owner, beside that of the first client whose read a
 * lease would have served. It asks at every tick while reads come, and for nothing while they do
 * not: so a server that nobody reads from delays no change. It is closed when none have come for a
 * minute.
 *
 * Whether a lease is in force is asked with each read, twice, from any thread: everything that says
 * so is behind one lock, held for a few loads. */
#include "peer/leases_private.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "peer/doors_private.h"

enum {
    TICK_MS = 100,
    IDLE_MS = 60 * 1000,
    DIAL_PAUSE_MS = 200,
    WANTED_LEAST_CRU = 1000,
};

struct peer_leasing {
    struct peer_leases *leases;
    struct peer_doors *doors;
    struct net_connection *connection;
    struct peer_frame_reader reader;
    uint64_t incarnation; /* of the server it leads to */
    bool open;            /* that one has answered the hello */
    uint64_t asks, answered;
    int64_t asked_ms; /* the last one */
    int64_t used_ms;  /* when reads were last seen to come */
};

/* --- In force --------------------------------------------------------------------------------- */

bool peer_leases_in_force(const struct peer_leases *leases, int64_t now_ms)
{
    int64_t lasts_ms = leases->options.lease_ms * 9 / 10;

    if (leases->options.unproved)
        return leases->loaded[1];
    return leases->lease[1] && leases->lease[0] == leases->seen_incarnation &&
           now_ms < leases->asked_ms + lasts_ms && now_ms < leases->seen_ms + lasts_ms &&
           leases->lease[0] == leases->loaded[0] && leases->lease[1] == leases->loaded[1];
}

bool peer_leases_take(struct peer_leases *leases, uint64_t ret_pass[2])
{
    bool taken = false;

    WITH_LOCK (&leases->lock) {
        leases->used = true;
        taken = peer_leases_in_force(leases, clock_monotonic_ms());
        memcpy(ret_pass, leases->loaded, sizeof leases->loaded);
    }
    return taken;
}

bool peer_leases_hold(struct peer_leases *leases, const uint64_t pass[2])
{
    bool held = false;

    WITH_LOCK (&leases->lock)
        held =
            leases->options.unproved || (peer_leases_in_force(leases, clock_monotonic_ms()) &&
                                         memcmp(pass, leases->loaded, sizeof leases->loaded) == 0);
    return held;
}

void peer_leases_seen(struct peer_leases *leases, uint64_t incarnation, int64_t sent_ms)
{
    WITH_LOCK (&leases->lock) {
        leases->seen_incarnation = incarnation;
        leases->seen_ms = sent_ms;
    }
}

bool peer_leases_wanted(struct peer_leases *leases, uint64_t ret_pass[2])
{
    bool wanted = false;

    WITH_LOCK (&leases->lock) {
        wanted = leases->lease[1] &&
                 memcmp(leases->lease, leases->loaded, sizeof leases->loaded) != 0 &&
                 !(leases->options.unproved && leases->loaded[1]);
        memcpy(ret_pass, leases->lease, sizeof leases->lease);
    }
    return wanted;
}

void peer_leases_loaded(struct peer_leases *leases, const uint64_t pass[2])
{
    WITH_LOCK (&leases->lock)
        memcpy(leases->loaded, pass, sizeof leases->loaded);
}

/* --- Throughput that was lent ----------------------------------------------------------------- */

/* NULL: there is no room for another partition. */
static struct peer_lent *lent_of(struct peer_leases *leases, uint32_t partition)
{
    for (uint32_t i = 0; i < 16; i++) {
        struct peer_lent *lent = &leases->lent[(partition + i) % PEER_LENT_SLOTS];

        if (lent->partition == partition)
            return lent;
        if (!lent->partition) {
            *lent = (struct peer_lent){.partition = partition};
            return lent;
        }
    }
    return NULL;
}

bool peer_leases_admit(struct peer_leases *leases, uint32_t partition, int64_t price_cru)
{
    bool admitted = false;

    WITH_LOCK (&leases->lock) {
        struct peer_lent *lent = lent_of(leases, partition);

        admitted = lent && lent->left_cru >= price_cru && clock_monotonic_ms() < lent->until_ms;
        if (admitted)
            lent->left_cru -= price_cru;
        else if (lent)
            lent->denied_cru += price_cru;
    }
    return admitted;
}

void peer_leases_settle(struct peer_leases *leases, uint32_t partition, int64_t price_cru,
                        int64_t charge_cru)
{
    WITH_LOCK (&leases->lock) {
        struct peer_lent *lent = lent_of(leases, partition);

        if (lent) {
            lent->left_cru -= charge_cru - price_cru;
            lent->spent_cru += charge_cru;
        }
    }
}

/* What is to be told, as rows of an ask. Partitions that nobody reads any more are forgotten. */
static size_t rows_take(struct peer_leases *leases, int64_t now_ms, struct buf *rows)
{
    size_t count = 0;

    for (size_t i = 0; i < PEER_LENT_SLOTS && count < PEER_ROWS_MAX; i++) {
        struct peer_lent *lent = &leases->lent[i];
        uint8_t row[PEER_ASK_ROW];

        if (!lent->partition || (!lent->spent_cru && !lent->denied_cru))
            continue;
        bytes_put_be32(row, lent->partition);
        bytes_put_be64(row + 4, (uint64_t)lent->spent_cru);
        bytes_put_be64(row + 12, (uint64_t)MAX(2 * (lent->spent_cru + lent->denied_cru),
                                               (int64_t)WANTED_LEAST_CRU));
        buf_append(rows, row, sizeof row);
        lent->spent_cru = lent->denied_cru = 0;
        count++;
    }
    for (size_t i = 0; now_ms - leases->asked_ms > 60 * 1000 && i < PEER_LENT_SLOTS; i++)
        leases->lent[i] = (struct peer_lent){0};
    return count;
}

static void lent_take(struct peer_leases *leases, struct slice rows, int64_t now_ms)
{
    for (; rows.len >= PEER_LEASE_ROW; rows = slice_skip(rows, PEER_LEASE_ROW)) {
        struct peer_lent *lent = lent_of(leases, bytes_get_be32(rows.data));

        if (!lent)
            continue;
        /* what was spent while it was on its way is of it */
        lent->left_cru = (int64_t)bytes_get_be64(rows.data + 4) - lent->spent_cru;
        lent->until_ms = now_ms + PEER_LENT_MS;
    }
}

/* --- The connection --------------------------------------------------------------------------- */

static void ask_send(struct peer_leasing *leasing, int64_t now_ms)
{
    struct peer_leases *leases = leasing->leases;
    CLEANUP(buf_done) struct buf rows;

    buf_init(&rows, PEER_LEASE_FRAME_MAX);
    WITH_LOCK (&leases->lock) {
        leases->used = false;
        leases->metrics.asked++;
        (void)rows_take(leases, now_ms, &rows);
    }
    leasing->asked_ms = clock_monotonic_ms();
    peer_frame_append(
        net_connection_output(leasing->connection),
        &(struct peer_frame){.kind = PEER_FRAME_LEASE_ASK, .id = ++leasing->asks, .len = rows.len});
    net_output_append(net_connection_output(leasing->connection), buf_slice(&rows));
}

static void *leasing_open(struct net_connection *connection, void *context)
{
    struct peer_leasing *leasing = context;

    leasing->connection = connection;
    return leasing;
}

static bool lease_take(struct peer_leasing *leasing, const struct peer_frame *frame)
{
    struct peer_leases *leases = leasing->leases;
    struct slice payload = frame->payload;
    bool other = false;

    if (payload.len < PEER_LEASE_HEAD || (payload.len - PEER_LEASE_HEAD) % PEER_LEASE_ROW ||
        frame->id != leasing->asks)
        return false;
    leasing->answered = frame->id;
    WITH_LOCK (&leases->lock) {
        lent_take(leases, slice_skip(payload, PEER_LEASE_HEAD), clock_monotonic_ms());
        if (frame->flags & PEER_FRAME_FLAG) {
            leases->lease[0] = leasing->incarnation;
            leases->lease[1] = bytes_get_be64(payload.data);
            leases->asked_ms = leasing->asked_ms;
            leases->metrics.granted++;
            other = memcmp(leases->lease, leases->loaded, sizeof leases->loaded) != 0;
        }
    }
    if (other && leases->options.granted)
        leases->options.granted(leases->options.context);
    return true;
}

static void recall_take(struct peer_leasing *leasing, uint64_t generation)
{
    struct peer_leases *leases = leasing->leases;

    WITH_LOCK (&leases->lock) {
        leases->lease[1] = 0;
        leases->metrics.recalled++;
    }
    peer_frame_append(net_connection_output(leasing->connection),
                      &(struct peer_frame){.kind = PEER_FRAME_LEASE_RETURN, .id = generation});
    /* the next one is asked for soon: the change is made by then */
    net_connection_deadline(leasing->connection, clock_monotonic_ms() + TICK_MS / 4);
}

static bool leasing_frame(struct peer_leasing *leasing, const struct peer_frame *frame)
{
    if (frame->kind == PEER_FRAME_LEASE)
        return lease_take(leasing, frame);
    if (frame->kind != PEER_FRAME_LEASE_RECALL)
        return false;
    recall_take(leasing, frame->id);
    return true;
}

static size_t leasing_bytes(struct net_connection *connection, void *state, struct slice bytes)
{
    struct peer_leasing *leasing = state;
    size_t taken = 0, count;
    enum peer_verdict verdict;
    struct peer_frame frame;
    struct error err;
    bool done = true;

    if (!leasing->open) {
        if (bytes.len < PEER_ANSWER_BYTES)
            return 0;
        leasing->open = peer_answer_read(bytes.data, &verdict) && verdict == PEER_TAKEN;
        if (!leasing->open) {
            net_connection_finish(connection, false);
            return bytes.len;
        }
        taken = PEER_ANSWER_BYTES;
        ask_send(leasing, net_connection_now_ms(connection));
        net_connection_deadline(connection, net_connection_now_ms(connection) + TICK_MS);
    }
    while (done) {
        if (!peer_frame_read(&leasing->reader, slice_skip(bytes, taken), &count, &done, &frame,
                             &err) ||
            (done && !leasing_frame(leasing, &frame))) {
            net_connection_finish(connection, false);
            return bytes.len;
        }
        taken += count;
    }
    net_connection_flush(connection);
    return taken;
}

/* An ask that is not answered is the last one: the owner hangs, and what it answers late is counted
 * from when it was asked. */
static void leasing_deadline(struct net_connection *connection, void *state)
{
    struct peer_leasing *leasing = state;
    struct peer_leases *leases = leasing->leases;
    int64_t now_ms = net_connection_now_ms(connection);
    bool used;

    if (leasing->incarnation != atomic_load(&leasing->doors->incarnation) ||
        atomic_load(&leasing->doors->leaving)) {
        net_connection_finish(connection, false);
        return;
    }
    WITH_LOCK (&leases->lock)
        used = leases->used;
    if (leasing->open && used && leasing->answered == leasing->asks) {
        ask_send(leasing, now_ms);
        net_connection_flush(connection);
    }
    if (used || !leasing->used_ms)
        leasing->used_ms = now_ms;
    if (now_ms - leasing->used_ms > IDLE_MS)
        net_connection_finish(connection, false);
    else
        net_connection_deadline(connection, now_ms + TICK_MS);
}

static void leasing_drain(struct net_connection *connection, void *state UNUSED)
{
    net_connection_finish(connection, false);
}

static void leasing_closed(struct net_connection *connection UNUSED, void *state)
{
    struct peer_leasing *leasing = state;
    struct peer_leases *leases = leasing->leases;

    WITH_LOCK (&leases->lock) {
        assert(leases->leasing == leasing);
        leases->leasing = NULL;
        leases->lease[1] = 0;
        leases->dial_ms = clock_monotonic_ms() + DIAL_PAUSE_MS;
    }
    peer_frame_reader_done(&leasing->reader);
    memory_free(leasing);
}

static const struct net_protocol leasing_protocol = {
    .name = "leasing",
    .open = leasing_open,
    .bytes = leasing_bytes,
    .deadline = leasing_deadline,
    .drain = leasing_drain,
    .closed = leasing_closed,
};

static struct peer_leasing *leasing_new(struct peer_leases *leases)
{
    struct peer_leasing *leasing = NULL;

    WITH_LOCK (&leases->lock)
        if (!leases->leasing && clock_monotonic_ms() >= leases->dial_ms) {
            leasing = MEMORY_NEW(struct peer_leasing);
            leasing->leases = leases;
            peer_frame_reader_init(&leasing->reader, PEER_LEASE_FRAME_MAX);
            leases->leasing = leasing;
        }
    return leasing;
}

void peer_leases_want(struct peer_leases *leases, struct peer_doors *doors,
                      struct net_connection *client)
{
    struct peer_hello hello = {.front = PEER_REST, .leases = true, .hops = 1};
    CLEANUP(buf_done) struct buf bytes;
    struct peer_leasing *leasing;
    struct net_address address;

    buf_init(&bytes, PEER_HELLO_BYTES_MAX);
    if (!client || atomic_load(&doors->owning) != PEER_THEIRS || atomic_load(&doors->leaving))
        return;
    leasing = leasing_new(leases);
    if (!leasing)
        return;
    leasing->doors = doors;
    address = peer_doors_address(doors, &leasing->incarnation);
    if (!net_connection_dial(client, &address, doors->tls, &leasing_protocol, leasing)) {
        leasing_closed(NULL, leasing);
        return;
    }
    peer_hello_append(&bytes, &hello);
    net_output_append(net_connection_output(leasing->connection), buf_slice(&bytes));
}
