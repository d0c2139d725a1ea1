/* Operations run in waves. A wave holds at most one operation of each item and begins them in
 * order; it is over when all of its commits are. Nearly always there is one wave.
 *
 * The gates that order plain writes of a hot item are not taken: a thread may hold one of them
 * only. An operation that loses against another writer is run again as a plain one, at its gate.
 *
 * Claims (claim.h) are held to the end of the wave, and so taken without waiting: an operation that
 * does not get its claim is left for a wave of its own, in which nothing else is held. */
#include "item/bulk.h"

#include "base/thread.h"
#include "item/admission.h"
#include "item/alias.h"
#include "item/operation_private.h"
#include "throughput/cost.h"

/* The commits of a wave that are still to come. */
struct pending {
    struct mutex lock;
    struct condition none;
    size_t count; /* under lock */
};

struct run {
    struct meters *meters;
    const struct item_space *space;
    struct arena *arena;
    const struct bulk_options *options;
    size_t bytes;                /* of items in memory */
    size_t claims;               /* held */
    struct admission *admission; /* NULL: there is nothing to run */
    struct pending pending;
};

/* One operation on its way. */
struct flight {
    struct item_operation *op;
    struct run *run;
    struct slice item_key; /* what it is told apart by */
    struct slice new_key;  /* that the item gets; empty: the same */
    struct claim claim;
    bool is_claimed;
    bool in_wave;
};

static bool fail(struct flight *flight, const struct error *err)
{
    flight->op->err = *err;
    flight->op->ended = true;
    return false;
}

/* --- One operation -----------------------------------------------------------------------------
 */

/* Ends its claim, if it has one. */
static void flight_unclaim(struct flight *flight)
{
    if (!flight->is_claimed)
        return;
    flight->is_claimed = false;
    flight->run->claims--;
    claim_release(&flight->claim);
    item_operation_route(flight->op, flight->run->space);
}

static void flight_charge(struct flight *flight, bool fine)
{
    struct metered_call *metered = &flight->op->metered;

    item_operation_charge(flight->op, fine, &flight->op->err);
    metered->charge_cru = cost_add(metered->charge_cru, flight->claim.cru);
}

/* An item with a made key that gets another id is written alone: what is claimed then is not the id
 * that the operations of a wave are told apart by. */
static bool is_renamed(const struct flight *flight)
{
    return flight->op->options.new_id && flight->run->space->definition->key.synthetic;
}

static bool needs_claim(const struct flight *flight)
{
    return claim_is_needed(&flight->run->space->definition->key, &flight->op->key,
                           item_operation_purpose(flight->op));
}

/* Finds the whole key. *ret_ready false: another one has the claim, so it is for a later wave. */
static bool flight_claim(struct flight *flight, bool *ret_ready, struct error *err)
{
    struct item_operation *op = flight->op;
    struct run *run = flight->run;
    bool fine;

    *ret_ready = true;
    if (!needs_claim(flight))
        return true;
    flight->claim = (struct claim){.op = op, .id = &op->id, .purpose = item_operation_purpose(op)};
    fine = claim_take(&flight->claim, run->claims == 0, ret_ready, err);
    if (!fine || !*ret_ready) {
        claim_release(&flight->claim);
        op->metered.charge_cru = flight->claim.cru;
        return fine;
    }
    flight->is_claimed = true;
    run->claims++;
    op->options.id_is_free = true;
    item_operation_go_to(op, &flight->claim.space, &flight->claim.key);
    return true;
}

static void read_run(struct flight *flight)
{
    struct item_operation *op = flight->op;
    bool found = item_operation_apply(op, &op->err);

    if (found) {
        op->err.code = ERROR_NONE;
        flight->run->bytes += op->result.item.document.len;
    }
    flight_charge(flight, found);
    op->ended = true;
}

/* On the committer's thread, or on ours when there was nothing to commit. */
static void committed(struct transaction *transaction UNUSED, const struct error *err,
                      void *context)
{
    struct flight *flight = context;
    struct pending *pending = &flight->run->pending;

    flight->op->err = err ? *err : (struct error){0};
    WITH_LOCK (&pending->lock) {
        if (--pending->count == 0)
            condition_signal(&pending->none);
    }
}

static bool write_start(struct flight *flight)
{
    struct item_operation *op = flight->op;
    struct run *run = flight->run;
    struct item_scope scope = item_route_scope(&op->route);
    struct slice document;

    if (!transaction_begin_plain(&scope, op->route.logical, ENGINE_READ_ANY, run->arena,
                                 &op->transaction, &op->err) ||
        !item_operation_plan(op, op->transaction, &document, &op->err))
        return false;
    run->bytes +=
        transaction_work(op->transaction).bytes_read + (op->verb == ITEM_CHANGE ? document.len : 0);
    WITH_LOCK (&run->pending.lock) {
        run->pending.count++;
    }
    if (transaction_commit_start(op->transaction, committed, flight, &op->err))
        return true;
    WITH_LOCK (&run->pending.lock) {
        run->pending.count--;
    }
    return false;
}

/* Once more, waiting at the item's gate: another writer was first. */
static void write_again(struct flight *flight)
{
    struct item_operation *op = flight->op;
    bool written = item_operation_apply(op, &op->err);

    if (written)
        op->err.code = ERROR_NONE;
    op->ended = true;
    flight_charge(flight, written);
}

/* A commit that is over, or was never begun. */
static void write_end(struct flight *flight)
{
    struct item_operation *op = flight->op;
    bool written = op->err.code == ERROR_NONE;

    if (written) {
        op->result = transaction_result(op->transaction, 0);
        op->work = transaction_work(op->transaction);
    }
    transaction_free(TAKE(op->transaction));
    if (item_operation_is_overtaken(&op->err)) {
        write_again(flight);
    } else {
        op->ended = true;
        flight_charge(flight, written);
    }
    flight_unclaim(flight);
}

/* --- Waves -------------------------------------------------------------------------------------
 */

static bool has_room(const struct run *run, struct error *err)
{
    const struct bulk_options *options = run->options;

    if (options->bytes_max && run->bytes > options->bytes_max)
        return error_set(err, ERROR_BATCH_ANSWER_TOO_LARGE,
                         "the operations before this one have used up the memory of a request");
    return !options->grown || options->grown(options->context, err);
}

/* Is there an item already that it will write instead of a new one? Then that is where it spends.
 */
static bool flight_look(struct flight *flight, struct error *err)
{
    struct item_operation *op = flight->op;
    bool moved;

    if (!claim_look(&flight->claim, &moved, err)) {
        metering_drop(&op->metering);
        return false;
    }
    if (!moved)
        return true;
    metering_drop(&op->metering);
    item_operation_go_to(op, &flight->claim.space, &flight->claim.key);
    return item_operation_admit(op, err);
}

/* By a key in the terms of before a re-key, for it has to be found; with another id; or of a
 * bounded container, where each may remove what another writes. One by one. */
static void alone_run(struct flight *flight)
{
    struct item_operation *op = flight->op;

    if (item_operation_run(op, &op->err))
        op->err.code = ERROR_NONE;
    op->ended = true;
}

static bool flight_start(struct flight *flight)
{
    struct item_operation *op = flight->op;
    struct error err;
    bool ready;

    if (op->key.former || is_renamed(flight) ||
        (flight->run->space->definition->bound.bytes && op->verb != ITEM_READ)) {
        alone_run(flight);
        return false;
    }
    if (!has_room(flight->run, &err) || !flight_claim(flight, &ready, &err))
        return fail(flight, &err);
    if (!ready)
        return false;
    if ((op->verb != ITEM_READ &&
         !items_names_check(op->route.space, &op->key, items_id_written(&op->id, &op->options),
                            &err)) ||
        !item_operation_admit(op, &err)) {
        flight_unclaim(flight);
        return fail(flight, &err);
    }
    if (flight->is_claimed && !flight_look(flight, &err)) {
        flight_unclaim(flight);
        op->metered.charge_cru = flight->claim.cru;
        return fail(flight, &err);
    }
    if (op->verb == ITEM_READ) {
        read_run(flight);
        flight_unclaim(flight);
        return false;
    }
    flight->in_wave = true;
    if (!write_start(flight)) {
        flight->in_wave = false;
        write_end(flight);
    }
    return true;
}

static void pending_wait(struct pending *pending)
{
    WITH_LOCK (&pending->lock) {
        while (pending->count)
            condition_wait(&pending->none, &pending->lock);
    }
}

/* Both ids of an item that gets another one count. */
static bool is_same_item(const struct flight *a, const struct flight *b)
{
    if (slice_equal(a->item_key, b->item_key))
        return true;
    return (a->new_key.len &&
            (slice_equal(a->new_key, b->item_key) || slice_equal(a->new_key, b->new_key))) ||
           (b->new_key.len && slice_equal(b->new_key, a->item_key));
}

/* Whether an earlier operation on the same item is still under way or to come. */
static bool must_wait(const struct flight *flights, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if ((flights[i].in_wave || !flights[i].op->ended) &&
            is_same_item(&flights[i], &flights[at]))
            return true;
    return false;
}

static void wave_end(struct flight *flights, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (flights[i].in_wave) {
            flights[i].in_wave = false;
            write_end(&flights[i]);
        }
}

/* Starts what may be started and waits for it. False: there was nothing left to do. */
static bool wave_run(struct run *run, struct flight *flights, size_t count)
{
    bool left = false;

    for (size_t i = 0; i < count; i++) {
        if (flights[i].op->ended || must_wait(flights, i))
            continue;
        left = true;
        (void)flight_start(&flights[i]);
    }
    pending_wait(&run->pending);
    wave_end(flights, count);
    return left;
}

/* --- Joined ----------------------------------------------------------------------------------
 *
 * Operations that have to keep their order, or may remove what others write, do not wait for each
 * other's commits: as many as follow each other on one node are planned into one transaction. Each
 * sees those before it, and one that fails has planned nothing. Where the commit of all is lost
 * against somebody else, they are run one by one. */

enum { JOINED_BYTES_MAX = 1024 * 1024, ALONE = 16 };

struct joined {
    struct run *run;
    struct flight *flights;
    size_t *members; /* which of them are planned, in the order of the transaction's writes */
    size_t count, bytes;
    uint32_t node;
    struct transaction *transaction; /* NULL: none is planned yet */
};

/* A commit to a bounded container brings no more than fits: what it brings itself cannot go. */
static bool fits_bound(const struct joined *joined, const struct flight *flight)
{
    const struct definition_bound *bound = &joined->run->space->definition->bound;

    return !bound->bytes || !joined->count ||
           ((!bound->items || (int64_t)joined->count < bound->items) &&
            (int64_t)(joined->bytes + flight->op->document.len) <= bound->bytes / 2);
}

static bool may_join(const struct joined *joined, const struct flight *flight)
{
    const struct item_operation *op = flight->op;

    return op->verb != ITEM_READ && op->verb != ITEM_CHANGE && !op->key.former &&
           !op->options.new_id && !needs_claim(flight) && op->route.span->node == joined->node &&
           joined->bytes <= JOINED_BYTES_MAX && fits_bound(joined, flight);
}

/* Plans one that was admitted. */
static bool joined_plan(struct joined *joined, struct item_operation *op, struct error *err)
{
    struct item_scope scope = item_route_scope(&op->route);
    struct slice document;

    if (!joined->transaction
            ? !transaction_begin(&scope, op->route.logical, joined->run->arena,
                                 &joined->transaction, err)
            : !transaction_enter(joined->transaction, &scope, op->route.logical, err))
        return false;
    return (op->verb == ITEM_DELETE ||
            transaction_unique_check(joined->transaction, &op->id, op->document, err)) &&
           item_operation_plan(op, joined->transaction, &document, err);
}

/* *ret_lost: it cannot be told what becomes of it together with the others. False: it has failed.
 */
static bool joined_add(struct joined *joined, size_t at, bool *ret_lost)
{
    struct flight *flight = &joined->flights[at];
    struct item_operation *op = flight->op;
    struct error err;

    *ret_lost = false;
    if (!has_room(joined->run, &err) ||
        !items_names_check(op->route.space, &op->key, &op->id, &err) ||
        !item_operation_admit(op, &err))
        return fail(flight, &err);
    if (joined_plan(joined, op, &err)) {
        joined->members[joined->count++] = at;
        joined->bytes += op->document.len;
        return true;
    }
    *ret_lost = item_operation_is_overtaken(&err);
    if (*ret_lost) {
        metering_drop(&op->metering);
        return false;
    }
    op->err = err;
    op->ended = true;
    flight_charge(flight, false);
    return false;
}

/* Commits what is planned. False: nothing was done of it. */
static bool joined_commit(struct joined *joined)
{
    struct error err;

    if (!joined->count)
        return true;
    if (!transaction_commit(joined->transaction, &err)) {
        for (size_t i = 0; i < joined->count; i++)
            metering_drop(&joined->flights[joined->members[i]].op->metering);
        return false;
    }
    for (size_t i = 0; i < joined->count; i++) {
        struct flight *flight = &joined->flights[joined->members[i]];
        struct item_operation *op = flight->op;

        op->result = transaction_result(joined->transaction, i);
        op->work = (struct transaction_work){
            .write_cru = op->result.charge_cru, .writes = 1, .bytes_written = op->document.len};
        op->err.code = ERROR_NONE;
        op->ended = true;
        flight_charge(flight, true);
    }
    return true;
}

/* As many as can be, from the first on, which has not ended; it is left to others if that is none.
 * *ret_stop: one has failed, and those behind it are not to be run. */
static size_t joined_run(struct run *run, struct flight *flights, size_t count, bool *ret_stop)
{
    struct joined joined = {.run = run,
                            .flights = flights,
                            .members = ARENA_ARRAY(run->arena, size_t, count),
                            .node = flights[0].op->route.span->node};
    bool bounded = run->space->definition->bound.bytes != 0, lost = false, failed = false;
    struct item_gate *gate = NULL;
    size_t at = 0;

    if (!may_join(&joined, &flights[0]))
        return 0;
    if (bounded) {
        gate = item_gate_of(run->space->gates, joined.node, flights[0].op->route.logical);
        item_gate_enter(gate);
    }
    for (; at < count && !lost && !(failed && run->options->in_order); at++) {
        if (flights[at].op->ended) {
            failed = failed || flights[at].op->err.code != ERROR_NONE;
            continue;
        }
        if (!may_join(&joined, &flights[at]))
            break;
        failed = !joined_add(&joined, at, &lost) || failed;
    }
    if (lost)
        at--;
    if (!joined_commit(&joined)) {
        at = 0;
        failed = false;
    }
    transaction_free(joined.transaction);
    if (bounded)
        item_gate_leave(gate);
    *ret_stop = failed && !lost && run->options->in_order;
    return at;
}

/* One by one, or several in one commit. */
static void run_in_order(struct run *run, struct flight *flights, size_t count)
{
    size_t at = 0;

    while (at < count) {
        bool stop = false;
        size_t alone = MIN(at + ALONE, count);

        if (!flights[at].op->ended) {
            size_t done = joined_run(run, &flights[at], count - at, &stop);

            if (stop)
                return;
            at += done;
            if (done)
                continue;
        }
        for (; at < alone; at++) { /* what was lost together is run alone */
            while (wave_run(run, &flights[at], 1))
                continue;
            if (flights[at].op->err.code != ERROR_NONE && run->options->in_order)
                return;
        }
    }
}

/* --- Admission ---------------------------------------------------------------------------------
 */

static void operation_price(const struct flight *flight)
{
    const struct run *run = flight->run;
    const struct item_operation *op = flight->op;
    struct metering_request request = {
        .price_cru = item_operation_price(op), .partition = op->route.span->id, .pk = op->route.pk};
    size_t count;
    const struct partition_span *spans = partition_map_spans(run->space->map, &count);

    if (!op->key.former && !needs_claim(flight)) {
        admission_add(run->admission, &request);
        return;
    }
    request = (struct metering_request){.price_cru = cost_id_seek()};
    for (size_t i = 0; i < count; i++) {
        request.partition = spans[i].id;
        admission_add(run->admission, &request);
    }
}

/* Ends it, and counts that it was refused where its item would be. */
static void operation_refuse(struct flight *flight, int64_t wait_ms, const struct error *err)
{
    struct item_operation *op = flight->op;
    struct metering_request request = {.partition = op->route.span->id, .pk = op->route.pk};

    op->metered.wait_ms = wait_ms;
    (void)fail(flight, err);
    metering_refuse(op->meters, &request);
}

static void run_admit(struct run *run, struct flight *flights, size_t count, bool admitted)
{
    struct error err;
    int64_t wait_ms;

    for (size_t i = 0; i < count; i++) {
        struct item_operation *op = flights[i].op;

        if (op->ended)
            continue;
        if (!run->admission)
            run->admission = admission_new(run->meters, &op->metered, run->arena);
        if (!admitted)
            operation_price(&flights[i]);
        op->metered.admission = run->admission;
    }
    if (!run->admission || admission_ask(run->admission, &wait_ms, &err))
        return;
    for (size_t i = 0; i < count; i++)
        if (!flights[i].op->ended)
            operation_refuse(&flights[i], wait_ms, &err);
}

static void flight_init(struct flight *flight, struct run *run, struct item_operation *op)
{
    *flight = (struct flight){.op = op, .run = run};
    if (op->ended)
        return;
    assert(op->space == run->space && op->meters == run->meters && op->arena == run->arena);
    item_operation_route(op, run->space);
    flight->item_key =
        op->key.former_only ? alias_claim(op->key.former, &op->id, run->arena) : op->route.key;
    if (op->options.new_id && !op->key.former_only)
        flight->new_key = item_key(definition_names_of(run->space->definition), op->route.logical,
                                   op->options.new_id, run->arena);
}

/* Within a transaction there is nothing to wait for. */
static void run_within(struct item_operation *operations, size_t count,
                       const struct bulk_options *options)
{
    for (size_t i = 0; i < count; i++) {
        struct item_operation *op = &operations[i];
        bool fine;

        if (op->ended)
            continue;
        fine = (!options->grown || options->grown(options->context, &op->err)) &&
               item_operation_run(op, &op->err);
        if (fine)
            op->err.code = ERROR_NONE;
        op->ended = true;
        if (!fine && options->in_order)
            return;
    }
}

void bulk_run(struct item_operation *operations, size_t count, const struct bulk_options *options)
{
    struct item_operation *first = operations;
    struct run run = {.options = options};
    struct flight *flights;

    while (first < operations + count && first->ended)
        first++;
    if (first == operations + count)
        return;
    if (first->within || first->among) {
        run_within(operations, count, options);
        return;
    }
    run.meters = first->meters;
    run.space = first->space;
    run.arena = first->arena;
    flights = ARENA_ARRAY(run.arena, struct flight, count);
    for (size_t i = 0; i < count; i++)
        flight_init(&flights[i], &run, &operations[i]);
    run_admit(&run, flights, count, options->admitted);
    mutex_init(&run.pending.lock);
    condition_init(&run.pending.none);
    if (options->in_order || run.space->definition->bound.bytes)
        run_in_order(&run, flights, count);
    else
        while (wave_run(&run, flights, count))
            continue;
    condition_done(&run.pending.none);
    mutex_done(&run.pending.lock);
    if (run.admission)
        admission_end(run.admission);
}
