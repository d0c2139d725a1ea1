/* The three steps, one node after the other, on the caller's thread. What goes wrong before the
 * decision is undone here; what goes wrong behind it, or leaves the outcome unknown, is left to the
 * settling thread (agreements.h), and the caller is told so.
 *
 * The home is the node with the lowest number of those that are written to and outlive the process;
 * without such a one, of those that are written to. Nodes that are only read from promise in memory
 * alone: a promise without a decision is undone anyhow, and there is nothing to apply. If the home
 * is the only one that is written to, there is nothing to be recorded at all. */
#include "item/agreement.h"

#include "base/random.h"
#include "item/agreement_record.h"
#include "item/agreements_private.h"
#include "item/transaction_private.h"
#include "partition/history.h"
#include "partition/layout.h"

enum { PROMISES_MS_MAX = 10000 };

struct agreement_member {
    uint32_t number;                 /* of the node */
    const struct cluster_node *node; /* once it is committed */
    struct transaction *transaction;
    struct agreement_applied applied; /* of all but the home */
    bool is_home, promised;
    struct agreement_member *next; /* by number */
};

struct agreement {
    struct agreements *agreements;
    struct arena *arena;
    struct agreement_member *members, *here;
    struct pledge_id id;
    struct agreement_entry *entry; /* while it is committed */
    uint64_t told;                 /* nodes whose promises are recorded */
};

struct agreement *agreement_new(struct agreements *agreements, struct arena *arena)
{
    struct agreement *agreement = MEMORY_NEW(struct agreement);

    agreement->agreements = agreements;
    agreement->arena = arena;
    return agreement;
}

void agreement_free(struct agreement *agreement)
{
    if (!agreement)
        return;
    for (struct agreement_member *member = agreement->members; member; member = member->next) {
        transaction_free(member->transaction);
        transaction_free(member->applied.transaction);
    }
    memory_free(agreement);
}

/* --- Planning -------------------------------------------------------------------------------- */

static bool member_find(struct agreement *agreement, const struct item_scope *scope,
                        struct agreement_member **ret_member, struct error *err)
{
    struct agreement_member **place = &agreement->members, *member;

    while (*place && (*place)->number < scope->node)
        place = &(*place)->next;
    if (!*place || (*place)->number != scope->node) {
        struct transaction *transaction;

        if (!transaction_open(scope, agreement->arena, &transaction, err))
            return false;
        member = ARENA_NEW(agreement->arena, struct agreement_member);
        *member = (struct agreement_member){
            .number = scope->node, .transaction = transaction, .next = *place};
        *place = member;
    }
    *ret_member = *place;
    return true;
}

bool agreement_enter(struct agreement *agreement, const struct item_scope *scope,
                     struct slice logical, struct error *err)
{
    struct agreement_member *member;

    if (!member_find(agreement, scope, &member, err) ||
        !transaction_enter(member->transaction, scope, logical, err))
        return false;
    agreement->here = member;
    return true;
}

struct agreement_member *agreement_member(const struct agreement *agreement)
{
    return agreement->here;
}

struct transaction *agreement_transaction(const struct agreement *agreement)
{
    return agreement->here->transaction;
}

/* --- Steps ----------------------------------------------------------------------------------- */

static bool writes(const struct agreement_member *member)
{
    return transaction_write_count(member->transaction) > 0;
}

static uint64_t bit(const struct agreement_member *member)
{
    return UINT64_C(1) << member->number;
}

static bool outlives_process(const struct agreement_member *member)
{
    return !slice_starts_with(engine_name(member->node->engine), SLICE("memory:"));
}

/* NULL: nothing is written. */
static struct agreement_member *home_choose(struct agreement *agreement)
{
    struct agreement_member *home = NULL;

    for (struct agreement_member *m = agreement->members; m; m = m->next)
        if (writes(m) && (!home || (!outlives_process(home) && outlives_process(m))))
            home = m;
    if (home)
        home->is_home = true;
    return home;
}

static bool members_settle(struct agreement *agreement, struct error *err)
{
    for (struct agreement_member *m = agreement->members; m; m = m->next) {
        m->node = cluster_find(agreement->agreements->options.cluster, m->number);
        if (!m->node)
            return error_set(err, ERROR_NODE_DOWN, "node %u is not here", m->number);
    }
    return true;
}

static struct commit_agreed *step_new(const struct agreement *agreement, enum commit_step step)
{
    struct commit_agreed *agreed = ARENA_NEW(agreement->arena, struct commit_agreed);

    agreed->step = step;
    agreed->id = agreement->id;
    return agreed;
}

/* The parts as they will be applied, but without operations; what is told of them comes then. */
static void parts_strip(struct transaction *transaction)
{
    size_t count = 0;

    transaction->batch.stamp = NULL;
    for (size_t i = 0; i < transaction->part_count; i++) {
        struct commit_part part = transaction->parts[i];

        if (part.partition == PARTITION_HISTORY)
            continue;
        part.ops = NULL;
        part.op_count = 0;
        part.number_count = 0;
        transaction->parts[count++] = part;
    }
    transaction->batch.part_count = count;
}

static bool member_promise(struct agreement *agreement, struct agreement_member *member,
                           uint32_t home, struct error *err)
{
    CLEANUP(buf_done) struct buf kept;
    struct commit_agreed *agreed = step_new(agreement, COMMIT_PROMISE);
    struct engine_op *record = ARENA_NEW(agreement->arena, struct engine_op);
    struct transaction *transaction = member->transaction;
    bool promised;

    buf_init(&kept, ENGINE_VALUE_MAX / 2);
    transaction->agreed = agreed;
    if (writes(member))
        transaction->agreed_op = record; /* for the room of its part */
    if (!agreement_writes_append(transaction, &kept, err) || !transaction_prepare(transaction, err))
        return false;
    if (buf_overflowed(&kept))
        return error_set(err, ERROR_TOO_LARGE,
                         "a transaction over several nodes writes more than %d MB on one of them",
                         ENGINE_VALUE_MAX / 2 / 1024 / 1024);
    if (!transaction->part_count) /* it was looked at, and nothing of it was read */
        return true;
    agreed->pledge = pledge_new(agreement->id, home, agreement->entry->since_ms,
                                &transaction->batch, buf_slice(&kept));
    parts_strip(transaction);
    if (kept.len) {
        *record = (struct engine_op){ENGINE_PUT,
                                     pledge_key(PLEDGE_PROMISE, agreement->id, agreement->arena),
                                     pledge_encode(agreed->pledge, agreement->arena)};
        transaction->parts[transaction->batch.part_count++] = (struct commit_part){
            .partition = PARTITION_HISTORY, .epoch = HISTORY_EPOCH, .ops = record, .op_count = 1};
        agreements_note(agreement->agreements, agreement->entry, AGREEMENT_PROMISING,
                        agreement->told | bit(member)); /* it may be there from now on */
    }
    promised = commit_run(member->node->commit, &transaction->batch, err);
    pledge_free(TAKE(agreed->pledge)); /* of one that was not queued */
    member->promised = promised || agreed->unknown;
    if (kept.len && member->promised)
        agreement->told |= bit(member);
    return promised || error_prefix(err, "node \"%s\"", member->node->name);
}

static void decided(void *context)
{
    const struct agreement *agreement = context;

    agreement_tell(agreement->agreements, agreement->id, agreement->told);
}

static bool home_decide(struct agreement *agreement, struct agreement_member *home,
                        bool *ret_unknown, struct error *err)
{
    struct commit_agreed *agreed = step_new(agreement, COMMIT_DECIDE);
    struct engine_op op = {ENGINE_PUT, pledge_key(PLEDGE_DECISION, agreement->id, agreement->arena),
                           SLICE_NONE};
    bool done;

    op.value = agreement_decision_encode(
        (struct agreement_decision){.nodes = agreement->told,
                                    .wall_ms = agreement->entry->since_ms},
        agreement->arena);
    agreed->decided = decided;
    agreed->context = agreement;
    home->transaction->agreed = agreed;
    if (agreement->told)
        home->transaction->agreed_op = &op;
    done = transaction_prepare(home->transaction, err) &&
           commit_run(home->node->commit, &home->transaction->batch, err);
    *ret_unknown = agreed->unknown;
    return done || error_prefix(err, "node \"%s\"", home->node->name);
}

/* --- All of it ------------------------------------------------------------------------------- */

/* Promises in memory alone are simply let go of. */
static void read_only_release(struct agreement *agreement)
{
    for (struct agreement_member *m = agreement->members; m; m = m->next)
        if (m->promised && !(agreement->told & bit(m))) {
            pledges_remove(commit_pledges(m->node->commit), agreement->id);
            m->promised = false;
        }
}

static void all_undo(struct agreement *agreement, const struct error *why)
{
    const struct error *left = NULL;
    uint64_t nodes = agreement->told;
    struct error err;

    read_only_release(agreement);
    agreements_note(agreement->agreements, agreement->entry, AGREEMENT_UNDOING, nodes);
    for (struct agreement_member *m = agreement->members; m; m = m->next) {
        if (!(nodes & bit(m)))
            continue;
        if (agreement_undo(m->node, agreement->id, &err))
            nodes &= ~bit(m);
        else
            left = why;
    }
    agreements_note(agreement->agreements, agreement->entry, AGREEMENT_UNDOING, nodes);
    agreements_leave(agreement->agreements, TAKE(agreement->entry), left);
}

static bool others_promise(struct agreement *agreement, const struct agreement_member *home,
                           struct error *err)
{
    int64_t since_ms = clock_monotonic_ms();

    for (struct agreement_member *m = agreement->members; m; m = m->next)
        if (m != home && !member_promise(agreement, m, home->number, err))
            return false;
    return clock_monotonic_ms() - since_ms < PROMISES_MS_MAX ||
           error_set(err, ERROR_BUSY,
                     "the nodes of the transaction took more than %d s to promise their parts",
                     PROMISES_MS_MAX / 1000);
}

static bool others_apply(struct agreement *agreement, struct error *err)
{
    uint64_t nodes = agreement->told;
    bool all = true;

    agreements_note(agreement->agreements, agreement->entry, AGREEMENT_APPLYING, nodes);
    for (struct agreement_member *m = agreement->members; m; m = m->next) {
        if (!(agreement->told & bit(m)))
            continue;
        if (agreement_apply(agreement->agreements, m->node, agreement->id, agreement->arena,
                            &m->applied, err)) {
            nodes &= ~bit(m);
            agreements_note(agreement->agreements, agreement->entry, AGREEMENT_APPLYING, nodes);
        } else {
            all = false;
        }
    }
    if (!agreement->told)
        agreements_note(agreement->agreements, agreement->entry, AGREEMENT_UNDOING, 0);
    else if (all)
        agreements_note(agreement->agreements, agreement->entry, AGREEMENT_DONE, 0);
    agreements_leave(agreement->agreements, TAKE(agreement->entry), all ? NULL : err);
    if (all)
        return true;
    struct error why = *err;

    return error_set(err, ERROR_WRITE_IN_DOUBT,
                     "the transaction is decided and will be done, as soon as it can be: %s",
                     why.message);
}

static bool run(struct agreement *agreement, struct agreement_member *home, struct error *err)
{
    bool unknown = false;

    random_secret(agreement->id.bytes, sizeof agreement->id.bytes);
    agreement->entry = agreements_begin(agreement->agreements, agreement->id, home->number);
    if (!others_promise(agreement, home, err)) {
        all_undo(agreement, err);
        return false;
    }
    if (!home_decide(agreement, home, &unknown, err)) {
        if (!unknown) {
            all_undo(agreement, err);
            return false;
        }
        read_only_release(agreement);
        agreement->entry->window = true;
        agreements_note(agreement->agreements, agreement->entry, AGREEMENT_DOUBT, agreement->told);
        agreements_leave(agreement->agreements, TAKE(agreement->entry), err);
        return false;
    }
    read_only_release(agreement);
    return others_apply(agreement, err);
}

/* All snapshots have been taken: what is unchanged on every node after that was of one moment. */
static bool all_confirm(struct agreement *agreement, struct error *err)
{
    for (struct agreement_member *m = agreement->members; m; m = m->next) {
        m->transaction->agreed = step_new(agreement, COMMIT_CONFIRM);
        if (!transaction_prepare(m->transaction, err) ||
            (m->transaction->part_count &&
             !commit_run(m->node->commit, &m->transaction->batch, err)))
            return error_prefix(err, "node \"%s\"", m->node->name);
    }
    return true;
}

bool agreement_commit(struct agreement *agreement, struct error *err)
{
    struct agreement_member *first = agreement->members, *home;

    if (!first)
        return true;
    if (!first->next) {
        first->is_home = true;
        return transaction_commit(first->transaction, err);
    }
    if (!members_settle(agreement, err))
        return false;
    home = home_choose(agreement);
    return home ? run(agreement, home, err) : all_confirm(agreement, err);
}

struct transaction_result agreement_result(const struct agreement_member *member, size_t nth)
{
    size_t applied;

    if (member->is_home)
        return transaction_result(member->transaction, nth);
    applied = member->applied.nth[nth];
    return applied == SIZE_MAX ? (struct transaction_result){0}
                               : transaction_result(member->applied.transaction, applied);
}
