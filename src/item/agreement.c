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
#include "engine/reader.h"
#include "item/agreement_record.h"
#include "item/agreements_private.h"
#include "item/transaction_private.h"
#include "partition/commit_still.h"
#include "partition/history.h"
#include "partition/layout.h"

enum {
    PROMISES_MS_MAX = 10000,
    MOMENT_MS_MAX = 5000, /* until a moment is taken */
    KEPT_MS_FIRST = 20,   /* nodes are kept still while another one comes to rest */
    RESTLESS_MAX = 3,
};

struct met {
    uint32_t partition;
    struct met *next;
};

struct agreement_member {
    uint32_t number;                 /* of the node */
    const struct cluster_node *node; /* once it is committed */
    struct transaction *transaction;
    const struct engine *engine; /* that it reads */
    struct commit *commit;
    struct agreement_applied applied; /* of all but the home */
    bool is_home, promised;
    bool is_early;   /* others have later snapshots: of what is met, nothing may have changed */
    struct met *met; /* partitions */
    struct agreement_member *next; /* by number */
};

struct agreement {
    struct agreements *agreements;
    struct arena *arena;
    struct agreement_member *members, *here;
    struct pledge_id id;
    struct agreement_entry *entry; /* while it is committed */
    uint64_t told;                 /* nodes whose promises are recorded */
    bool one_moment;               /* agreement_meet was called */
    const struct history_record *announced;
    size_t announced_count;
    bool has_announced;
    enum agreement_outcome outcome;
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

static void member_add(struct agreement *agreement, const struct item_scope *scope,
                       struct transaction *transaction)
{
    struct agreement_member **place = &agreement->members;
    struct agreement_member *member = ARENA_NEW(agreement->arena, struct agreement_member);

    while (*place && (*place)->number < scope->node)
        place = &(*place)->next;
    assert(!*place || (*place)->number != scope->node);
    *member = (struct agreement_member){.number = scope->node,
                                        .transaction = transaction,
                                        .engine = engine_reader_behind(scope->engine),
                                        .commit = scope->commit,
                                        .next = *place};
    *place = member;
}

static struct agreement_member *member_of(const struct agreement *agreement, uint32_t number)
{
    struct agreement_member *member = agreement->members;

    while (member && member->number != number)
        member = member->next;
    return member;
}

static bool member_find(struct agreement *agreement, const struct item_scope *scope,
                        struct agreement_member **ret_member, struct error *err)
{
    struct transaction *transaction;

    *ret_member = member_of(agreement, scope->node);
    if (*ret_member)
        return true;
    if (agreement->one_moment) /* it did not serve when the others were met */
        return engine_serves(engine_reader_behind(scope->engine), err) &&
               error_set(err, ERROR_CONFLICT,
                         "a partition is on a node that the transaction has not met");
    if (!transaction_open(scope, agreement->arena, &transaction, err))
        return false;
    member_add(agreement, scope, transaction);
    *ret_member = member_of(agreement, scope->node);
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

struct agreement_member *agreement_next(const struct agreement *agreement,
                                        const struct agreement_member *member)
{
    return member ? member->next : agreement->members;
}

struct transaction *agreement_member_transaction(const struct agreement_member *member)
{
    return member->transaction;
}

const struct engine *agreement_member_engine(const struct agreement_member *member)
{
    return member->engine;
}

uint64_t agreement_nodes(const struct agreement *agreement)
{
    uint64_t nodes = 0;

    for (const struct agreement_member *m = agreement->members; m; m = m->next)
        nodes |= UINT64_C(1) << m->number;
    return nodes;
}

void agreement_announce(struct agreement *agreement, const struct history_record *records,
                        size_t count)
{
    agreement->announced = records;
    agreement->announced_count = count;
}

bool agreement_has_announced(const struct agreement *agreement)
{
    return agreement->has_announced;
}

enum agreement_outcome agreement_outcome(const struct agreement *agreement)
{
    return agreement->outcome;
}

/* --- One moment of several nodes ------------------------------------------------------------- */

/* A node while the moment is taken. */
struct taken {
    struct item_scope scope; /* of any of its partitions, or of none */
    bool is_member, still;
    uint64_t groups;
    struct transaction *transaction; /* owned; of one that is new */
};

struct taking {
    struct agreement *agreement;
    const struct item_scope *scopes;
    size_t scope_count;
    struct taken list[CLUSTER_NODES_MAX]; /* by number */
    size_t count;
    size_t slow;     /* of these, the one that was waited for the last time */
    int64_t kept_ms; /* how long others are kept still while one is waited for */
};

static bool node_is_in(const struct taking *taking, uint32_t number, const struct item_scope **ret)
{
    for (size_t i = 0; i < taking->scope_count; i++)
        if (taking->scopes[i].node == number) {
            *ret = &taking->scopes[i];
            return true;
        }
    return false;
}

/* Members, nodes of the partitions, and those that may come later; of these two, what serves: a
 * node that is away must not keep a transaction from the others. */
static void nodes_list(struct taking *taking, uint64_t also)
{
    const struct cluster *cluster = taking->agreement->agreements->options.cluster;

    for (uint32_t n = 0; n < CLUSTER_NODES_MAX; n++) {
        const struct agreement_member *member = member_of(taking->agreement, n);
        struct taken *taken = &taking->list[taking->count];
        const struct cluster_node *node;
        const struct item_scope *scope;
        struct error ignored;

        *taken = (struct taken){.is_member = member != NULL};
        if (member)
            taken->scope = (struct item_scope){.node = n, .commit = member->commit};
        else if (node_is_in(taking, n, &scope) &&
                 engine_serves(engine_reader_behind(scope->engine), &ignored))
            taken->scope = *scope;
        else if (!node_is_in(taking, n, &scope) && also >> n & 1 &&
                 (node = cluster_find(cluster, n)) && cluster_node_is_member(node) &&
                 engine_serves(node->engine, &ignored))
            taken->scope = (struct item_scope){.node = n,
                                               .engine = node->engine,
                                               .commit = node->commit,
                                               .clock = taking->scopes[0].clock};
        else
            continue;
        taking->count++;
    }
}

/* Is any of the nodes that serve new? If not, err says why the first one does not. */
static bool any_is_new(const struct taking *taking, struct error *err)
{
    for (size_t i = 0; i < taking->count; i++)
        if (!taking->list[i].is_member)
            return true;
    for (size_t i = 0; i < taking->scope_count; i++)
        if (!engine_serves(engine_reader_behind(taking->scopes[i].engine), err))
            return false;
    return error_set(err, ERROR_CONFLICT, "a node serves again since the transaction came to it");
}

static bool is_taken(const struct taking *taking, uint32_t node)
{
    for (size_t i = 0; i < taking->count; i++)
        if (taking->list[i].scope.node == node)
            return true;
    return false;
}

static bool windows_await(const struct taking *taking, struct error *err)
{
    for (size_t i = 0; i < taking->scope_count; i++)
        if (is_taken(taking, taking->scopes[i].node) &&
            !pledges_await(commit_pledges(taking->scopes[i].commit),
                           pledge_bit(taking->scopes[i].partition), PLEDGE_BEFORE_READING, err))
            return false;
    return true;
}

/* Is what an earlier snapshot has of a partition what a later one of the node would have, while
 * that is kept still? What another node shows already has a window here until it is written. */
static bool partition_holds(const struct agreement_member *member, uint64_t groups,
                            uint32_t partition)
{
    return !(pledges_windows(commit_pledges(member->commit)) & pledge_bit(partition)) &&
           !commit_still_wrote(member->commit, groups, member->transaction->moment, partition);
}

/* Has something changed, under the eyes of those that were met before? */
static bool earlier_hold(const struct taking *taking, struct error *err)
{
    for (size_t i = 0; i < taking->count; i++) {
        const struct taken *taken = &taking->list[i];
        const struct agreement_member *member = member_of(taking->agreement, taken->scope.node);

        for (const struct met *met = member ? member->met : NULL; met; met = met->next)
            if (!partition_holds(member, taken->groups, met->partition))
                return error_set(err, ERROR_CONFLICT,
                                 "what the transaction has read was changed before it came to "
                                 "another node");
    }
    return true;
}

static bool still_take(struct taking *taking, struct error *err)
{
    if (!earlier_hold(taking, err))
        return false;
    for (size_t i = 0; i < taking->count; i++) {
        struct taken *taken = &taking->list[i];

        if (!taken->is_member && !transaction_open_still(&taken->scope, taking->agreement->arena,
                                                         &taken->transaction, err))
            return false;
    }
    return true;
}

/* All nodes come to rest. The one that took long the last time is waited for while no other is kept
 * still, so that a slow node is not felt by the writers of the others; these are waited for in the
 * order of their numbers, and not for long. False: one did not come to rest, and is `slow` now. */
static bool nodes_keep(struct taking *taking)
{
    size_t first = taking->slow;
    bool still =
        commit_still_begin(taking->list[first].scope.commit,
                           clock_monotonic_ms() + COMMIT_STILL_MS_MAX, &taking->list[first].groups);
    int64_t until_ms = clock_monotonic_ms() + taking->kept_ms;

    taking->list[first].still = still;
    for (size_t i = 0; i < taking->count && still; i++) {
        struct taken *taken = &taking->list[i];

        if (i == first)
            continue;
        taken->still = still = commit_still_begin(taken->scope.commit, until_ms, &taken->groups);
        if (!still)
            taking->slow = i;
    }
    return still;
}

/* False: a node has written meanwhile. */
static bool nodes_let_go(struct taking *taking)
{
    bool still = true;

    for (size_t i = 0; i < taking->count; i++) {
        struct taken *taken = &taking->list[i];

        if (taken->still)
            still &= commit_still_end(taken->scope.commit, taken->groups);
        taken->still = false;
    }
    return still;
}

/* While no node writes. *ret_again: one did, or took too long to come to rest. */
static bool moment_take(struct taking *taking, bool *ret_again, struct error *err)
{
    bool kept = nodes_keep(taking), fine, still;

    fine = kept ? still_take(taking, err)
                : error_set(err, ERROR_CONFLICT, "a node takes long to write what it is writing");
    still = nodes_let_go(taking);
    *ret_again = !kept || !still;
    if (!kept) /* several that are slow need more of each other's time */
        taking->kept_ms = MIN(2 * taking->kept_ms, (int64_t)COMMIT_STILL_MS_MAX / 2);
    if (!still && fine)
        fine = error_set(err, ERROR_CONFLICT, "a node took long to give a snapshot");
    return fine;
}

static bool windows_are_shut(const struct taking *taking, struct error *err)
{
    for (size_t i = 0; i < taking->scope_count; i++)
        for (size_t n = 0; n < taking->count; n++) {
            const struct transaction *transaction = taking->list[n].transaction;

            if (transaction && taking->list[n].scope.node == taking->scopes[i].node &&
                transaction->windows & pledge_bit(taking->scopes[i].partition))
                return error_set(
                    err, ERROR_CONFLICT,
                    "a transaction over several nodes was being applied to the partition");
        }
    return true;
}

static void taken_drop(struct taking *taking)
{
    for (size_t i = 0; i < taking->count; i++)
        transaction_free(TAKE(taking->list[i].transaction));
}

/* One node alone needs no moment with others. */
static bool node_take(struct taking *taking, struct error *err)
{
    return transaction_open(&taking->list[0].scope, taking->agreement->arena,
                            &taking->list[0].transaction, err);
}

/* Nodes that only may come later are not waited for, nor are their errors anybody's. False: there
 * are none left. */
static bool later_drop(struct taking *taking)
{
    const struct item_scope *scope;
    size_t count = 0;

    for (size_t i = 0; i < taking->count; i++) {
        const struct taken *taken = &taking->list[i];

        assert(!taken->transaction);
        if (taken->is_member || node_is_in(taking, taken->scope.node, &scope))
            taking->list[count++] = *taken;
    }
    if (count == taking->count)
        return false;
    taking->count = count;
    taking->slow = 0;
    return true;
}

static bool nodes_take(struct taking *taking, struct error *err)
{
    int64_t until_ms = clock_monotonic_ms() + MOMENT_MS_MAX;
    int restless = 0;

    taking->kept_ms = KEPT_MS_FIRST;
    do {
        bool again = false;

        if (!windows_await(taking, err))
            return false;
        if (taking->count == 1 ? node_take(taking, err) : moment_take(taking, &again, err)) {
            if (windows_are_shut(taking, err))
                return true;
            taken_drop(taking);
            continue;
        }
        taken_drop(taking);
        if (again && ++restless % RESTLESS_MAX)
            continue;
        if (!later_drop(taking) && !again)
            return false;
    } while (clock_monotonic_ms() < until_ms);
    return false;
}

static void members_add(struct taking *taking)
{
    for (struct agreement_member *m = taking->agreement->members; m; m = m->next)
        m->is_early = true;
    for (size_t i = 0; i < taking->count; i++)
        if (taking->list[i].transaction)
            member_add(taking->agreement, &taking->list[i].scope,
                       TAKE(taking->list[i].transaction));
}

static bool partition_is_met(const struct agreement_member *member, uint32_t partition)
{
    const struct met *met = member->met;

    while (met && met->partition != partition)
        met = met->next;
    return met;
}

/* Of a snapshot that is older than others a partition is of their moment if nothing was written to
 * it since. */
static bool early_holds(const struct agreement_member *member, uint32_t partition,
                        struct error *err)
{
    uint64_t groups;
    bool holds = false;

    if (commit_still_begin(member->commit, clock_monotonic_ms() + MOMENT_MS_MAX, &groups)) {
        holds = partition_holds(member, groups, partition);
        (void)commit_still_end(member->commit, groups);
    }
    return holds ||
           error_set(err, ERROR_CONFLICT, "a partition was written to since the transaction began");
}

static bool partition_meet(struct agreement *agreement, const struct item_scope *scope,
                           struct error *err)
{
    struct agreement_member *member = member_of(agreement, scope->node);
    struct met *met;

    if (!member || partition_is_met(member, scope->partition))
        return true; /* a node that did not serve is asked for by nobody, or refuses them */
    if (member->transaction->windows & pledge_bit(scope->partition))
        return error_set(err, ERROR_CONFLICT,
                         "a transaction over several nodes was being applied to the partition");
    if (member->is_early && !early_holds(member, scope->partition, err))
        return false;
    met = ARENA_NEW(agreement->arena, struct met);
    *met = (struct met){scope->partition, member->met};
    member->met = met;
    return true;
}

static bool all_are_members(const struct taking *taking)
{
    for (size_t i = 0; i < taking->scope_count; i++)
        if (!member_of(taking->agreement, taking->scopes[i].node))
            return false;
    return true;
}

bool agreement_meet(struct agreement *agreement, const struct item_scope *scopes, size_t count,
                    uint64_t also, struct error *err)
{
    struct taking taking = {.agreement = agreement, .scopes = scopes, .scope_count = count};
    struct error refused;

    assert(count && (agreement->one_moment || !agreement->members));
    agreement->one_moment = true;
    if (!all_are_members(&taking)) {
        nodes_list(&taking, also);
        if (any_is_new(&taking, &refused)) {
            if (!nodes_take(&taking, err))
                return false;
            members_add(&taking);
        } else if (!agreement->members) {
            *err = refused;
            return false;
        }
    }
    for (size_t i = 0; i < count; i++)
        if (!partition_meet(agreement, &scopes[i], err))
            return false;
    return true;
}

/* --- Steps ----------------------------------------------------------------------------------- */

static bool writes(const struct agreement_member *member)
{
    return transaction_write_count(member->transaction) > 0;
}

/* Of one moment: something that it has only read must not change. */
static bool relies(const struct agreement_member *member)
{
    const struct transaction *transaction = member->transaction;

    for (size_t i = 0; i < transaction->seen_count; i++)
        if (transaction->seen[i]->is_relied)
            return true;
    return transaction->scanned;
}

static bool takes_part(const struct agreement *agreement, const struct agreement_member *member)
{
    return !agreement->one_moment || writes(member) || relies(member);
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
    transaction->agreed_moment = agreement->one_moment;
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
    home->transaction->agreed_moment = agreement->one_moment;
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
        if (m != home && takes_part(agreement, m) &&
            !member_promise(agreement, m, home->number, err))
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
        agreement->outcome = AGREEMENT_UNKNOWN;
        read_only_release(agreement);
        agreement->entry->window = true;
        agreements_note(agreement->agreements, agreement->entry, AGREEMENT_DOUBT, agreement->told);
        agreements_leave(agreement->agreements, TAKE(agreement->entry), err);
        return false;
    }
    read_only_release(agreement);
    agreement->outcome = AGREEMENT_DECIDED;
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

/* On one node it is decided by that node's commit alone. */
static bool alone_commit(struct agreement *agreement, struct agreement_member *member,
                         struct error *err)
{
    bool done;

    member->is_home = true;
    done = transaction_commit(member->transaction, err);
    if (!done && (err->code == ERROR_STORE_IO || err->code == ERROR_STORE_CORRUPT ||
                  err->code == ERROR_WRITE_IN_DOUBT))
        agreement->outcome = AGREEMENT_UNKNOWN;
    return done;
}

static bool is_alone(const struct agreement *agreement, const struct agreement_member *home)
{
    for (const struct agreement_member *m = agreement->members; m; m = m->next)
        if (m != home && takes_part(agreement, m))
            return false;
    return true;
}

bool agreement_commit(struct agreement *agreement, struct error *err)
{
    struct agreement_member *first = agreement->members, *home;
    bool done;

    if (!first)
        return true;
    if (!members_settle(agreement, err))
        return false;
    home = home_choose(agreement);
    if (agreement->one_moment && !home)
        return true; /* what was read was of one moment when it was */
    if (home)
        transaction_tell(home->transaction, agreement->announced, agreement->announced_count);
    if (!first->next || (home && is_alone(agreement, home)))
        done = alone_commit(agreement, home ? home : first, err);
    else
        done = home ? run(agreement, home, err) : all_confirm(agreement, err);
    agreement->has_announced = home && (done || agreement->outcome == AGREEMENT_DECIDED) &&
                               transaction_has_told(home->transaction);
    return done;
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
