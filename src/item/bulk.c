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
#include "item/claim.h"
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
    struct bulk_operation *operation;
    struct run *run;
    struct slice logical, item_key;
    struct slice new_key;            /* that the item gets; empty: the same */
    struct transaction *transaction; /* while its commit is under way */
    struct metering metering;
    struct claim claim;
    const struct item_space *space; /* the run's, or the claim's */
    struct partition_key key;       /* whole, once it is begun */
    bool is_claimed;
    struct error err;
    bool in_wave;
};

static bool fail(struct flight *flight, const struct error *err)
{
    flight->operation->err = *err;
    flight->operation->ended = true;
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
}

static void flight_charge(struct flight *flight, int64_t cru)
{
    metering_end(&flight->metering, cru);
    flight->operation->metered.charge_cru =
        cost_add(flight->operation->metered.charge_cru, flight->claim.cru);
}

/* An item with a made key that gets another id is written alone: what is claimed then is not the id
 * that the operations of a wave are told apart by. */
static bool is_renamed(const struct flight *flight)
{
    return flight->operation->options.new_id && flight->run->space->definition->key.synthetic;
}

static enum claim_purpose purpose_of(const struct bulk_operation *operation)
{
    if (operation->is_read)
        return CLAIM_READ;
    return operation->make ? CLAIM_CHANGE : claim_purpose_of(operation->verb);
}

/* The key of its claim. */
static void flight_go_to(struct flight *flight, const struct partition_key *key)
{
    flight->key = *key;
    flight->logical =
        item_logical(&flight->space->definition->key, &flight->key, flight->run->arena);
    flight->operation->metered.key_found = true;
    flight->operation->metered.key = flight->key;
}

/* Finds the whole key. *ret_ready false: another one has the claim, so it is for a later wave. */
static bool flight_claim(struct flight *flight, bool *ret_ready, struct error *err)
{
    struct bulk_operation *operation = flight->operation;
    struct run *run = flight->run;
    bool fine;

    *ret_ready = true;
    flight->space = run->space;
    flight->key = operation->key;
    if (!claim_is_needed(&run->space->definition->key, &operation->key, purpose_of(operation)))
        return true;
    fine = claim_take(&flight->claim, run->meters, run->space, &operation->key, &operation->id,
                      purpose_of(operation), run->claims == 0, &operation->metered, run->arena,
                      ret_ready, err);
    if (!fine || !*ret_ready) {
        claim_release(&flight->claim);
        operation->metered.charge_cru = flight->claim.cru;
        return fine;
    }
    flight->is_claimed = true;
    run->claims++;
    flight->space = &flight->claim.space;
    operation->options.id_is_free = true;
    flight_go_to(flight, &flight->claim.key);
    return true;
}

static int64_t price_of(const struct bulk_operation *operation)
{
    struct cost_write known = {
        .removes = operation->make || operation->verb == TRANSACTION_DELETE,
        .puts = operation->make || operation->verb != TRANSACTION_DELETE,
        .new_bytes = operation->document.len,
    };

    return operation->is_read ? cost_read(0, operation->metered.strong) : cost_write(&known);
}

/* Notes what it will spend, on the partition it goes to. */
static bool begin(struct flight *flight, struct error *err)
{
    struct run *run = flight->run;
    struct metering_request request = {
        .partition = partition_map_find(flight->space->map, flight->logical)->id,
        .pk = metering_pk(&flight->key, run->arena),
    };

    return metering_begin(&flight->metering, run->meters, &request, &flight->operation->metered,
                          err);
}

static void read_run(struct flight *flight)
{
    struct bulk_operation *operation = flight->operation;
    struct run *run = flight->run;
    bool found = items_read(flight->space, &flight->key, &operation->id, run->arena,
                            &operation->item, &operation->err);
    uint64_t bytes = found ? operation->item.document.len : 0;

    if (found)
        operation->err.code = ERROR_NONE;
    run->bytes += bytes;
    flight->metering.bytes_out = bytes;
    flight_charge(flight, cost_read(bytes, operation->metered.strong));
    operation->ended = true;
}

static bool document_make(struct flight *flight, struct slice *ret_document, struct error *err)
{
    struct bulk_operation *operation = flight->operation;
    const struct item *item;

    *ret_document = operation->document;
    if (!operation->make)
        return true;
    if (!transaction_read(flight->transaction, &operation->id, &item, err))
        return false;
    if (!item)
        return error_set(err, ERROR_ITEM_MISSING,
                         "entity with the specified id does not exist in the system");
    return operation->make(item, operation->context, flight->run->arena, ret_document, err);
}

/* On the committer's thread, or on ours when there was nothing to commit. */
static void committed(struct transaction *transaction UNUSED, const struct error *err,
                      void *context)
{
    struct flight *flight = context;
    struct pending *pending = &flight->run->pending;

    flight->err = err ? *err : (struct error){0};
    WITH_LOCK (&pending->lock) {
        if (--pending->count == 0)
            condition_signal(&pending->none);
    }
}

static bool write_start(struct flight *flight, struct error *err)
{
    struct bulk_operation *operation = flight->operation;
    struct run *run = flight->run;
    struct item_scope scope = item_space_scope(flight->space, flight->logical);
    struct slice document;

    if (!transaction_begin(&scope, flight->logical, run->arena, &flight->transaction, err) ||
        !document_make(flight, &document, err) ||
        !transaction_write(flight->transaction, &operation->id, operation->verb, document,
                           &operation->options, err))
        return false;
    flight->metering.bytes_in = document.len;
    run->bytes +=
        transaction_work(flight->transaction).bytes_read + (operation->make ? document.len : 0);
    WITH_LOCK (&run->pending.lock) {
        run->pending.count++;
    }
    if (transaction_commit_start(flight->transaction, committed, flight, err))
        return true;
    WITH_LOCK (&run->pending.lock) {
        run->pending.count--;
    }
    return false;
}

/* Once more, waiting at the item's gate: another writer was first. */
static void write_again(struct flight *flight)
{
    struct bulk_operation *operation = flight->operation;
    struct run *run = flight->run;
    struct transaction_work work = {0};
    bool written;

    if (operation->make)
        written = items_change(flight->space, &flight->key, &operation->id, operation->make,
                               operation->context, &operation->options, run->arena,
                               &operation->result, &work, &operation->err);
    else
        written = items_write(flight->space, &flight->key, &operation->id, operation->verb,
                              operation->document, &operation->options, run->arena,
                              &operation->result, &work, &operation->err);
    if (written)
        operation->err.code = ERROR_NONE;
    operation->ended = true;
    flight_charge(flight, written ? work.write_cru : metering_refused_cru(&operation->err));
}

static bool lost_race(const struct error *err)
{
    return err->code == ERROR_CONFLICT || err->code == ERROR_SNAPSHOT_TOO_OLD ||
           item_space_is_overtaken(err); /* the next map is found by items_write */
}

/* A commit that is over, or was never begun. */
static void write_end(struct flight *flight)
{
    struct bulk_operation *operation = flight->operation;
    bool written = flight->err.code == ERROR_NONE;

    if (written)
        operation->result = transaction_result(flight->transaction, 0);
    if (!lost_race(&flight->err)) {
        flight_charge(flight, written ? transaction_work(flight->transaction).write_cru
                                      : metering_refused_cru(&flight->err));
        operation->err = flight->err;
        operation->ended = true;
    }
    transaction_free(TAKE(flight->transaction));
    if (!operation->ended)
        write_again(flight);
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
    struct run *run = flight->run;
    bool moved;

    if (!claim_look(&flight->claim, run->meters, &flight->operation->id, run->arena, &moved, err)) {
        metering_drop(&flight->metering);
        return false;
    }
    if (!moved)
        return true;
    metering_drop(&flight->metering);
    flight_go_to(flight, &flight->claim.key);
    return begin(flight, err);
}

/* By a key in the terms of before a re-key, for it has to be found; or with another id. One by one.
 */
static void alone_run(struct flight *flight)
{
    struct bulk_operation *operation = flight->operation;
    struct run *run = flight->run;
    bool fine;

    if (operation->is_read)
        fine = metered_read(run->meters, run->space, &operation->key, &operation->id,
                            &operation->metered, run->arena, &operation->item, &operation->err);
    else if (operation->make)
        fine = metered_change(run->meters, run->space, &operation->key, &operation->id,
                              operation->make, operation->context, &operation->options,
                              &operation->metered, run->arena, &operation->result, &operation->err);
    else
        fine = metered_write(run->meters, run->space, &operation->key, &operation->id,
                             operation->verb, operation->document, &operation->options,
                             &operation->metered, run->arena, &operation->result, &operation->err);
    if (fine)
        operation->err.code = ERROR_NONE;
    operation->ended = true;
}

static bool flight_start(struct flight *flight)
{
    struct error err;
    bool ready;

    if (flight->operation->key.former || is_renamed(flight)) {
        alone_run(flight);
        return false;
    }

    if (!has_room(flight->run, &err) || !flight_claim(flight, &ready, &err))
        return fail(flight, &err);
    if (!ready)
        return false;
    if ((!flight->operation->is_read &&
         !items_names_check(flight->space, &flight->key,
                            items_id_written(&flight->operation->id, &flight->operation->options),
                            &err)) ||
        !begin(flight, &err)) {
        flight_unclaim(flight);
        return fail(flight, &err);
    }
    if (flight->is_claimed && !flight_look(flight, &err)) {
        flight_unclaim(flight);
        flight->operation->metered.charge_cru = flight->claim.cru;
        return fail(flight, &err);
    }
    if (flight->operation->is_read) {
        read_run(flight);
        flight_unclaim(flight);
        return false;
    }
    flight->in_wave = true;
    if (!write_start(flight, &flight->err)) {
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
        if ((flights[i].in_wave || !flights[i].operation->ended) &&
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
        if (flights[i].operation->ended || must_wait(flights, i))
            continue;
        left = true;
        (void)flight_start(&flights[i]);
    }
    pending_wait(&run->pending);
    wave_end(flights, count);
    return left;
}

static void run_in_order(struct run *run, struct flight *flights, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void)wave_run(run, &flights[i], 1);
        if (flights[i].operation->err.code != ERROR_NONE)
            return;
    }
}

/* --- Admission ---------------------------------------------------------------------------------
 */

static void operation_price(const struct flight *flight)
{
    const struct run *run = flight->run;
    const struct bulk_operation *operation = flight->operation;
    struct metering_request request = {.price_cru = price_of(operation)};
    size_t count;
    const struct partition_span *spans = partition_map_spans(run->space->map, &count);

    if (!operation->key.former &&
        !claim_is_needed(&run->space->definition->key, &operation->key, purpose_of(operation))) {
        request.partition = partition_map_find(run->space->map, flight->logical)->id;
        request.pk = metering_pk(&operation->key, run->arena);
        admission_add(run->admission, &request);
        return;
    }
    request.price_cru = cost_id_seek();
    for (size_t i = 0; i < count; i++) {
        request.partition = spans[i].id;
        admission_add(run->admission, &request);
    }
}

/* Ends it, and counts that it was refused where its item would be. */
static void operation_refuse(struct flight *flight, int64_t wait_ms, const struct error *err)
{
    const struct run *run = flight->run;
    const struct partition_key *key = &flight->operation->key;
    struct metering_request request = {
        .partition = partition_map_find(run->space->map, flight->logical)->id,
        .pk = key->former_only ? SLICE_NONE : metering_pk(key, run->arena),
    };

    flight->operation->metered.wait_ms = wait_ms;
    (void)fail(flight, err);
    metering_refuse(run->meters, &request);
}

static void run_admit(struct run *run, struct flight *flights, size_t count, bool admitted)
{
    struct error err;
    int64_t wait_ms;

    for (size_t i = 0; i < count; i++) {
        struct bulk_operation *operation = flights[i].operation;

        if (operation->ended)
            continue;
        if (!run->admission)
            run->admission = admission_new(run->meters, &operation->metered, run->arena);
        if (!admitted)
            operation_price(&flights[i]);
        operation->metered.admission = run->admission;
    }
    if (!run->admission || admission_ask(run->admission, &wait_ms, &err))
        return;
    for (size_t i = 0; i < count; i++)
        if (!flights[i].operation->ended)
            operation_refuse(&flights[i], wait_ms, &err);
}

void bulk_run(struct meters *meters, const struct item_space *space,
              struct bulk_operation *operations, size_t count, const struct bulk_options *options,
              struct arena *arena)
{
    struct run run = {.meters = meters, .space = space, .arena = arena, .options = options};
    struct flight *flights = ARENA_ARRAY(arena, struct flight, count);
    const struct document_names *names = definition_names_of(space->definition);

    for (size_t i = 0; i < count; i++) {
        flights[i] = (struct flight){
            .operation = &operations[i], .run = &run, .logical = PARTITION_ROUTING_MIN};
        if (operations[i].ended)
            continue;
        if (operations[i].key.former_only) {
            flights[i].item_key = alias_claim(operations[i].key.former, &operations[i].id, arena);
            continue;
        }
        flights[i].logical = item_logical(&space->definition->key, &operations[i].key, arena);
        flights[i].item_key = item_key(names, flights[i].logical, &operations[i].id, arena);
        if (operations[i].options.new_id)
            flights[i].new_key =
                item_key(names, flights[i].logical, operations[i].options.new_id, arena);
    }
    run_admit(&run, flights, count, options->admitted);
    mutex_init(&run.pending.lock);
    condition_init(&run.pending.none);
    if (options->in_order)
        run_in_order(&run, flights, count);
    else
        while (wave_run(&run, flights, count))
            continue;
    condition_done(&run.pending.none);
    mutex_done(&run.pending.lock);
    if (run.admission)
        admission_end(run.admission);
}
