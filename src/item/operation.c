/* How an operation comes to its end, from the outside in:
 *
 *     run          by a key of before a re-key: find the key of now (alias.h)
 *     run_claimed  by a key that is not known whole: claim and find it (claim.h)
 *     run_once     by a whole key: route, ask the budget, apply, charge
 *     apply        read; or wait at the gate, and attempt until nobody else was first
 *     attempt      one transaction by one map
 *
 * The first two are rare, and each is skipped by one comparison. Where the key leads is worked out
 * by whoever changes the key or the space, and by nobody else: item_operation_route is called once
 * for nearly every operation.
 *
 * An operation that is started does run_once in two halves, on the loop, with the commit between
 * them. Between the halves it belongs to the committer, whose thread only opens the gate and calls
 * done: settling takes locks of budgets and statistics, for which no other write should wait. */
#include "item/operation_private.h"

#include "item/agreement.h"
#include "item/alias.h"
#include "partition/synthetic.h"
#include "throughput/cost.h"

#include <xxhash.h>

enum {
    ATTEMPTS_MAX =
        1000, /* each loses only to one that won, so this many means something is wrong */
};

static bool missing(struct error *err)
{
    return error_set(err, ERROR_ITEM_MISSING,
                     "entity with the specified id does not exist in the system");
}

static const struct document_value *id_written(const struct item_operation *op)
{
    return items_id_written(&op->id, &op->options);
}

/* --- Where ----------------------------------------------------------------------------------- */

void item_operation_route(struct item_operation *op, const struct item_space *space)
{
    op->route = item_space_route(space, &op->key, &op->id, op->arena);
}

void item_operation_go_to(struct item_operation *op, const struct item_space *space,
                          const struct partition_key *key)
{
    op->key = *key;
    item_operation_route(op, space);
}

/* --- Carrying it out ------------------------------------------------------------------------- */

static bool read_apply(struct item_operation *op, enum engine_reach reach, bool *ret_cold,
                       struct error *err)
{
    const struct item_route *route = &op->route;
    const struct item_space *space = route->space;
    struct item_scope scope;
    struct engine_value value;
    struct item item;

    *ret_cold = false;
    if (!item_space_admits(space, route->logical, err))
        return false;
    scope.engine = item_space_engine(space, route->span);
    scope.commit = space->commit(space->nodes, route->span->node);
    scope.partition = route->span->id;
    if (!item_scope_get(&scope, route->stored, reach, op->arena, &value, err))
        return false;
    *ret_cold = value.found == ENGINE_COLD;
    if (*ret_cold)
        return true;
    if (value.found != ENGINE_FOUND)
        return missing(err);
    if (!item_decode(route->key, value.bytes, &item, err))
        return false;
    if (item_is_over(&item.header, space->definition->default_ttl,
                     clock_read_wall_ms(space->clock)))
        return missing(err);
    op->result.item = item;
    return true;
}

static bool document_make(struct item_operation *op, struct transaction *transaction,
                          struct slice *ret_document, struct error *err)
{
    const struct item *item;

    if (!transaction_read(transaction, &op->id, &item, err))
        return false;
    if (!item)
        return missing(err);
    return op->make(item, op->context, op->arena, ret_document, err);
}

bool item_operation_plan(struct item_operation *op, struct transaction *transaction,
                         struct slice *ret_document, struct error *err)
{
    static const enum transaction_verb verbs[] = {
        [ITEM_CREATE] = TRANSACTION_CREATE,  [ITEM_REPLACE] = TRANSACTION_REPLACE,
        [ITEM_UPSERT] = TRANSACTION_UPSERT,  [ITEM_DELETE] = TRANSACTION_DELETE,
        [ITEM_CHANGE] = TRANSACTION_REPLACE,
    };

    assert(op->verb != ITEM_READ);
    *ret_document = op->document;
    if (op->verb == ITEM_CHANGE && !document_make(op, transaction, ret_document, err))
        return false;
    return transaction_write(transaction, &op->id, verbs[op->verb], *ret_document, &op->options,
                             err);
}

static bool attempt(struct item_operation *op, const struct item_route *route, struct error *err)
{
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct item_scope scope = item_route_scope(route);
    struct slice document;

    if (!transaction_begin_plain(&scope, route->logical, ENGINE_READ_ANY, op->arena, &transaction,
                                 err) ||
        !item_operation_plan(op, transaction, &document, err) ||
        !transaction_commit(transaction, err))
        return false;
    op->result = transaction_result(transaction, 0);
    op->work = transaction_work(transaction);
    return true;
}

/* With another map another definition may have come, so each is routed by; op->route stays that of
 * the space the caller knows. */
static bool attempts(struct item_operation *op, struct error *err)
{
    CLEANUP(item_space_release) struct item_space next = {0};
    struct item_route route = op->route;

    for (int i = 0; i < ATTEMPTS_MAX; i++) {
        bool overtaken;

        if (attempt(op, &route, err))
            return true;
        overtaken = item_space_is_overtaken(err);
        if (overtaken && route.space != &next) {
            next = *route.space;
            next.renewed = false;
        }
        if (!item_space_try_again(&next, err))
            return false;
        if (overtaken)
            route = item_space_route(&next, &op->key, &op->id, op->arena);
    }
    return false;
}

/* What is written to a bounded container may remove what others write: it has one gate. */
static struct item_gate *gate_of(const struct item_operation *op)
{
    const struct item_route *route = &op->route;

    return item_gate_of(route->space->gates, route->span->node,
                        route->space->definition->bound.bytes ? route->logical : route->key);
}

bool item_operation_apply(struct item_operation *op, struct error *err)
{
    struct item_gate *gate;
    bool fine, cold;

    assert(op->route.space && !op->key.open);
    if (op->verb == ITEM_READ)
        return read_apply(op, ENGINE_READ_ANY, &cold, err);
    if (!items_names_check(op->route.space, &op->key, id_written(op), err))
        return false;
    gate = gate_of(op);
    item_gate_enter(gate);
    fine = attempts(op, err);
    item_gate_leave(gate);
    return fine;
}

/* --- Paying ---------------------------------------------------------------------------------- */

int64_t item_operation_price(const struct item_operation *op)
{
    struct cost_write known = {
        .removes = op->verb == ITEM_DELETE || op->verb == ITEM_CHANGE,
        .puts = op->verb != ITEM_DELETE,
        .new_bytes = op->document.len,
    };

    return op->verb == ITEM_READ ? cost_read(0, op->metered.strong) : cost_write(&known);
}

/* The same for every attempt of one request, so that it finds the place it was given. */
static uint64_t ticket_of(const struct item_operation *op)
{
    const struct document_value *id = id_written(op);
    uint64_t seed = id->type == DOCUMENT_STRING ? XXH3_64bits(id->text.data, id->text.len) : 1;

    return XXH3_64bits_withSeed(op->route.pk.data, op->route.pk.len, seed) | 1;
}

bool item_operation_admit(struct item_operation *op, struct error *err)
{
    struct metering_request request = {.partition = op->route.span->id, .pk = op->route.pk};

    op->work = (struct transaction_work){0};
    if (op->meters) {
        request.price_cru = item_operation_price(op);
        request.ticket = ticket_of(op);
    }
    return metering_begin(&op->metering, op->meters, &request, &op->metered, err);
}

void item_operation_charge(struct item_operation *op, bool fine, const struct error *err)
{
    struct metering *metering = &op->metering;

    if (op->verb == ITEM_READ) {
        metering->bytes_out = fine ? op->result.item.document.len : 0;
        metering_end(metering, cost_read(metering->bytes_out, op->metered.strong));
        return;
    }
    metering->bytes_in = op->verb == ITEM_CHANGE ? op->work.bytes_written : op->document.len;
    metering_end(metering, fine ? op->work.write_cru : metering_refused_cru(err));
}

/* What was charged before, for looking or for a first attempt, goes with what follows. */
static void charge_carry(struct item_operation *op, int64_t before_cru)
{
    op->metered.charge_cru = cost_add(op->metered.charge_cru, before_cru);
}

/* --- By a key that is not known whole -------------------------------------------------------- */

enum claim_purpose item_operation_purpose(const struct item_operation *op)
{
    switch (op->verb) {
    case ITEM_READ:
        return CLAIM_READ;
    case ITEM_CREATE:
    case ITEM_UPSERT:
        return CLAIM_CREATE;
    default:
        return CLAIM_CHANGE;
    }
}

static bool is_claimed(const struct item_operation *op)
{
    return claim_is_needed(&op->space->definition->key, &op->key, item_operation_purpose(op));
}

/* What it was charged goes to the operation, also when it failed. */
static bool claim_begin(struct claim *claim, struct error *err)
{
    struct item_operation *op = claim->op;
    bool taken, fine = claim_take(claim, true, &taken, err);

    op->metered.charge_cru = claim->cru;
    if (fine)
        item_operation_go_to(op, &claim->space, &claim->key);
    return fine;
}

/* Admitted, a creation looks for the item: if that is elsewhere, it is that partition that has to
 * admit it. */
static bool claim_follow(struct item_operation *op, struct claim *claim, struct error *err)
{
    bool moved, fine = claim_look(claim, &moved, err);

    if (fine && !moved)
        return true;
    metering_drop(&op->metering);
    op->metered.charge_cru = claim->cru;
    if (!fine)
        return false;
    item_operation_go_to(op, &claim->space, &claim->key);
    return item_operation_admit(op, err);
}

/* claim NULL: none is needed. */
static bool run_once(struct item_operation *op, struct claim *claim, struct error *err)
{
    bool fine;

    if (!item_operation_admit(op, err) || (claim && !claim_follow(op, claim, err)))
        return false;
    fine = item_operation_apply(op, err);
    item_operation_charge(op, fine, err);
    if (claim)
        charge_carry(op, claim->cru);
    return fine;
}

/* Under a random suffix the id an item gets must be free under its base. Only that is claimed, and
 * not the id it has as well: two that exchange ids would wait for each other. The item is found
 * without a claim, so that one who moves it to another suffix meanwhile makes this a 404. */
static bool run_renamed(struct item_operation *op, struct error *err)
{
    CLEANUP(claim_release)
    struct claim found = {.op = op, .id = &op->id, .purpose = CLAIM_READ};
    CLEANUP(claim_release)
    struct claim claim = {.op = op, .id = op->options.new_id, .purpose = CLAIM_CREATE};
    bool fine;

    if (op->key.open && !claim_begin(&found, err))
        return false;
    op->options.id_is_free = true;
    fine = claim_begin(&claim, err) && run_once(op, &claim, err);
    charge_carry(op, found.cru);
    return fine;
}

static bool run_with_claim(struct item_operation *op, struct error *err)
{
    CLEANUP(claim_release)
    struct claim claim = {.op = op, .id = &op->id, .purpose = item_operation_purpose(op)};

    if (!claim_begin(&claim, err))
        return false;
    op->options.id_is_free = true;
    return run_once(op, &claim, err);
}

static bool run_claimed(struct item_operation *op, struct error *err)
{
    if (op->options.new_id && partition_synthetic_is_random(&op->space->definition->key))
        return run_renamed(op, err);
    if (is_claimed(op))
        return run_with_claim(op, err);
    item_operation_route(op, op->space);
    return run_once(op, NULL, err);
}

/* --- By a key of before a re-key ------------------------------------------------------------- */

/* An operation on an item that must be there. Terms of now come first, unless they make no sense.
 */
static bool run_found(struct item_operation *op, struct error *err)
{
    const struct partition_key *former = op->key.former;
    struct partition_key key;
    int64_t before_cru;
    bool found, fine;

    if (!op->key.former_only) {
        if (run_claimed(op, err))
            return true;
        if (err->code != ERROR_ITEM_MISSING)
            return false;
    }
    if (!alias_find(op, former, &op->id, &key, &found, err))
        return false;
    if (!found)
        return missing(err);
    op->key = key;
    before_cru = op->metered.charge_cru;
    fine = run_claimed(op, err);
    charge_carry(op, before_cru);
    return fine;
}

/* Somebody who knows the definition before creates an item, or may: there is none under the former
 * key, or it is the one that has the key of now. */
static bool former_is_free(struct item_operation *op, const struct document_value *name,
                           struct error *err)
{
    struct partition_key other;
    bool found;

    if (!alias_find(op, op->key.former, name, &other, &found, err))
        return false;
    if (!found || partition_key_equal(&other, &op->key))
        return true;
    if (op->verb == ITEM_CREATE || name != &op->id)
        return error_set(err, ERROR_ITEM_EXISTS, "entity with the specified id already exists");
    return error_set(err, ERROR_KEY_MISMATCH,
                     "the container was re-keyed: the item has another partition key by now, and "
                     "that cannot be changed by writing it");
}

/* With an item, its key of now is known. */
static bool run_brought(struct item_operation *op, struct error *err)
{
    const struct document_value *name = id_written(op);
    struct slice claim = alias_claim(op->key.former, name, op->arena);
    bool claims = op->space->gates && !partition_synthetic_is_random(&op->space->definition->key);
    bool fine;

    if (claims)
        item_gates_claim(op->space->gates, claim);
    fine = former_is_free(op, name, err);
    if (fine) {
        int64_t before_cru = op->metered.charge_cru;

        fine = run_claimed(op, err);
        charge_carry(op, before_cru);
    }
    if (claims)
        item_gates_unclaim(op->space->gates, claim);
    return fine;
}

static bool brings_item(const struct item_operation *op)
{
    return op->verb == ITEM_CREATE || op->verb == ITEM_REPLACE || op->verb == ITEM_UPSERT;
}

/* --- Within a transaction -------------------------------------------------------------------- */

static bool read_within(struct item_operation *op, struct error *err)
{
    const struct item *item;

    if (!transaction_read(op->within, &op->id, &item, err))
        return false;
    op->metered.charge_cru = cost_read(item ? item->document.len : 0, op->metered.strong);
    metering_charge(op->meters, op->route.span->id, op->metered.charge_cru);
    if (!item)
        return missing(err);
    op->result = (struct transaction_result){.item = *item};
    return true;
}

static bool write_within(struct item_operation *op, struct error *err)
{
    struct slice document;
    bool late;

    if (!items_names_check(op->route.space, &op->key, id_written(op), err) ||
        !transaction_is_late(op->within, &op->id, &late, err))
        return false;
    if (late)
        return error_set(err, ERROR_CONFLICT, "another transaction wrote the same item first");
    if (op->options.description.data)
        op->options.description =
            arena_copy(transaction_arena(op->within), op->options.description);
    if (op->document.data) {
        op->document = arena_copy(transaction_arena(op->within), op->document);
        if (!transaction_unique_check(op->within, id_written(op), op->document, err))
            return false;
    }
    if (!item_operation_plan(op, op->within, &document, err))
        return false;
    op->result = (struct transaction_result){.item = {.document = document}};
    return true;
}

static bool run_within(struct item_operation *op, struct error *err)
{
    struct item_scope scope;

    item_operation_route(op, op->space);
    if (op->key.open || op->key.former)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "within a transaction the whole partition key of an item must be known");
    scope = item_route_scope(&op->route);
    if (op->among) {
        if (!agreement_enter(op->among, &scope, op->route.logical, err))
            return false;
        op->within = agreement_transaction(op->among);
    } else if (!transaction_enter(op->within, &scope, op->route.logical, err)) {
        return false;
    }
    return op->verb == ITEM_READ ? read_within(op, err) : write_within(op, err);
}

bool item_operation_run(struct item_operation *op, struct error *err)
{
    bool fine;

    if (UNLIKELY(op->within || op->among))
        return run_within(op, err);

    assert((op->verb == ITEM_CHANGE) == (op->make != NULL));
    if (LIKELY(!op->key.former))
        fine = run_claimed(op, err);
    else
        fine = brings_item(op) ? run_brought(op, err) : run_found(op, err);
    if (op->route.space != op->space) /* its claim is gone, or there was no key to go by */
        item_operation_route(op, op->space);
    return fine;
}

/* --- Without blocking ------------------------------------------------------------------------ */

bool item_operation_is_overtaken(const struct error *err)
{
    return err->code == ERROR_CONFLICT || err->code == ERROR_SNAPSHOT_TOO_OLD ||
           item_space_is_overtaken(err);
}

static enum item_start start_cold(struct item_operation *op)
{
    metering_drop(&op->metering);
    return ITEM_START_COLD;
}

static enum item_start start_failed(struct item_operation *op, const struct error *err)
{
    if (item_operation_is_overtaken(err))
        return start_cold(op);
    item_operation_charge(op, false, err);
    return ITEM_START_FAILED;
}

static enum item_start read_start(struct item_operation *op, struct error *err)
{
    bool cold, fine = read_apply(op, ENGINE_READ_CACHED, &cold, err);

    if (cold || (!fine && op->key.former && err->code == ERROR_ITEM_MISSING) ||
        (fine && op->result.item.document.len > ITEM_START_BYTES_MAX))
        return start_cold(op);
    item_operation_charge(op, fine, err);
    return fine ? ITEM_START_ENDED : ITEM_START_FAILED;
}

/* May so many bytes be indexed on a loop? Each index besides the policy goes through them again. */
static bool is_short(const struct item_scope *scope, size_t bytes)
{
    size_t besides;

    (void)index_policy_besides(scope->policy, &besides);
    return bytes * (1 + besides) <= ITEM_START_BYTES_MAX;
}

/* On the committer's thread. */
static void committed(struct transaction *transaction UNUSED, const struct error *err,
                      void *context)
{
    struct item_operation *op = context;

    if (err)
        op->err = *err;
    item_gate_leave(op->gate);
    op->done(op);
}

static void write_drop(struct item_operation *op)
{
    item_gate_leave(op->gate);
    transaction_free(TAKE(op->transaction));
}

static enum item_start write_start(struct item_operation *op, struct error *err)
{
    struct item_scope scope = item_route_scope(&op->route);
    struct slice document;

    if (!items_names_check(op->space, &op->key, id_written(op), err))
        return start_failed(op, err);
    op->gate = gate_of(op);
    if (!is_short(&scope, op->document.len) || !item_gate_try(op->gate))
        return start_cold(op);
    op->err.code = ERROR_NONE;
    if (!transaction_begin_plain(&scope, op->route.logical, ENGINE_READ_CACHED, op->arena,
                                 &op->transaction, err) ||
        !item_operation_plan(op, op->transaction, &document, err)) {
        bool cold = op->transaction && transaction_is_cold(op->transaction);

        write_drop(op);
        return cold ? start_cold(op) : start_failed(op, err);
    }
    if (!is_short(&scope, transaction_work(op->transaction).bytes_read)) {
        write_drop(op);
        return start_cold(op);
    }
    if (!transaction_commit_start(op->transaction, committed, op, err)) {
        write_drop(op);
        return start_failed(op, err);
    }
    return ITEM_START_UNDER_WAY;
}

enum item_start item_operation_start(struct item_operation *op, struct error *err)
{
    item_operation_route(op, op->space);
    if (op->key.former_only || op->verb == ITEM_CHANGE || is_claimed(op))
        return ITEM_START_COLD;
    if (op->verb != ITEM_READ &&
        (op->key.former || op->options.new_id || definition_is_unique(op->space->definition) ||
         op->space->definition->bound.bytes))
        return ITEM_START_COLD;
    if (!item_operation_admit(op, err))
        return ITEM_START_FAILED;
    return op->verb == ITEM_READ ? read_start(op, err) : write_start(op, err);
}

bool item_operation_settle(struct item_operation *op, struct error *err)
{
    bool fine = op->err.code == ERROR_NONE;

    assert(op->transaction && !op->ended);
    op->ended = true;
    if (fine) {
        op->result = transaction_result(op->transaction, 0);
        op->work = transaction_work(op->transaction);
    } else {
        *err = op->err;
    }
    transaction_free(TAKE(op->transaction));
    if (!fine && item_operation_is_overtaken(err))
        metering_drop(&op->metering);
    else
        item_operation_charge(op, fine, err);
    return fine;
}

/* --- Patching and moving --------------------------------------------------------------------- */

bool item_make_patched(const struct item *item, void *patch, struct arena *arena,
                       struct slice *ret_document, struct error *err)
{
    CLEANUP(buf_done) struct buf after;

    buf_init(&after, BUF_DEFAULT_MAX);
    if (!patch_apply(patch, item->document, &after, err))
        return false;
    *ret_document = arena_copy(arena, buf_slice(&after));
    return true;
}

static bool move_attempt(struct item_operation *op, const struct item_route *from,
                         const struct item_route *to, struct error *err)
{
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct item_scope source = item_route_scope(from), target = item_route_scope(to);

    if (!transaction_begin(&source, from->logical, op->arena, &transaction, err) ||
        !transaction_write(transaction, &op->id, TRANSACTION_DELETE, SLICE_NONE, &op->options,
                           err) ||
        !transaction_enter(transaction, &target, to->logical, err) ||
        !transaction_write(transaction, &op->id, TRANSACTION_CREATE, op->document, NULL, err) ||
        !transaction_commit(transaction, err))
        return false;
    op->result = transaction_result(transaction, 1);
    op->work = transaction_work(transaction);
    return true;
}

static void work_add(struct transaction_work *work, const struct transaction_work *more)
{
    work->write_cru = cost_add(work->write_cru, more->write_cru);
    work->writes += more->writes;
    work->index_entries += more->index_entries;
    work->bytes_read += more->bytes_read;
    work->bytes_written += more->bytes_written;
}

/* The values are on different nodes. */
static bool move_agree(struct item_operation *op, const struct item_route *from,
                       const struct item_route *to, struct agreements *agreements,
                       struct error *err)
{
    CLEANUP(agreement_free) struct agreement *agreement = agreement_new(agreements, op->arena);
    struct item_scope source = item_route_scope(from), target = item_route_scope(to);
    const struct agreement_member *member = NULL;

    if (!agreement_enter(agreement, &source, from->logical, err) ||
        !transaction_write(agreement_transaction(agreement), &op->id, TRANSACTION_DELETE,
                           SLICE_NONE, &op->options, err) ||
        !agreement_enter(agreement, &target, to->logical, err) ||
        !transaction_write(agreement_transaction(agreement), &op->id, TRANSACTION_CREATE,
                           op->document, NULL, err) ||
        !agreement_commit(agreement, err))
        return false;
    op->result = agreement_result(agreement_member(agreement), 0);
    op->work = (struct transaction_work){0};
    while ((member = agreement_next(agreement, member))) {
        struct transaction_work work = transaction_work(agreement_member_transaction(member));

        work_add(&op->work, &work);
    }
    return true;
}

bool item_operation_move(struct item_operation *op, const struct partition_key *to,
                         struct agreements *agreements, struct error *err)
{
    CLEANUP(item_space_release) struct item_space now = *op->space;
    struct item_route target = item_space_route(&now, to, &op->id, op->arena), source;

    now.renewed = false;
    item_operation_route(op, op->space);
    if (!items_names_check(op->space, to, &op->id, err))
        return false;
    if (slice_equal(op->route.logical, target.logical))
        return error_set(err, ERROR_BAD_REQUEST, "the item has that partition key already");
    source = op->route;
    for (int i = 0; i < ATTEMPTS_MAX; i++) {
        bool agrees = agreements && source.span->node != target.span->node;

        if (agrees ? move_agree(op, &source, &target, agreements, err)
                   : move_attempt(op, &source, &target, err))
            return true;
        if (!item_space_try_again(&now, err))
            return false;
        source = item_space_route(&now, &op->key, &op->id, op->arena);
        target = item_space_route(&now, to, &op->id, op->arena);
    }
    return false;
}
