/* The steps that settle a transaction over several nodes, each one commit of one node. They are
 * taken by whoever runs the transaction, or later by the settling thread: then a step may have been
 * written before, by a commit of which nothing is known, so the record is looked for first.
 *
 * A promise is always applied from its record, also right after it was made: so there is one way,
 * and what a crash leaves behind is no special case. The writes are planned again by the definition
 * of now. Since the keys are kept, they find what the promise found. */
#include "item/agreements_private.h"

#include "document/order.h"
#include "item/agreement_record.h"
#include "item/transaction_private.h"
#include "partition/history.h"
#include "partition/layout.h"

#include <time.h>

enum { ATTEMPTS_MAX = 200, ATTEMPT_PAUSE_NS = 5 * 1000 * 1000 };

/* --- Single steps ---------------------------------------------------------------------------- */

/* A commit of the node's history alone; op NULL: it only asks whether the node takes commits, and
 * so knows what became of those before. */
static bool history_run(const struct cluster_node *node, struct engine_op *op,
                        struct commit_agreed *agreed, struct error *err)
{
    struct commit_part part = {
        .partition = PARTITION_HISTORY, .epoch = HISTORY_EPOCH, .ops = op, .op_count = op ? 1 : 0};
    struct commit_batch batch = {
        .parts = &part, .part_count = 1, .moment = COMMIT_NOTHING_RELIED_ON, .agreed = agreed};

    return commit_run(node->commit, &batch, err);
}

static bool record_find(const struct cluster_node *node, enum pledge_record kind,
                        struct pledge_id id, bool *ret_found, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct commit_agreed asks = {.step = COMMIT_CONFIRM, .id = id};
    struct engine_value value;

    if (!history_run(node, NULL, &asks, err) ||
        !engine_get(node->engine, NULL, PARTITION_HISTORY, pledge_key(kind, id, arena),
                    ENGINE_READ_ANY, arena, &value, err))
        return false;
    *ret_found = value.found == ENGINE_FOUND;
    return true;
}

static struct engine_op record_delete(enum pledge_record kind, struct pledge_id id,
                                      struct arena *arena)
{
    return (struct engine_op){ENGINE_DELETE, pledge_key(kind, id, arena), SLICE_NONE};
}

bool agreement_undo(const struct cluster_node *node, struct pledge_id id, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct commit_agreed ends = {.step = COMMIT_END, .id = id};
    struct engine_op op = record_delete(PLEDGE_PROMISE, id, arena);

    return history_run(node, &op, &ends, err) || error_prefix(err, "node \"%s\"", node->name);
}

static bool decision_forget(const struct cluster_node *home, struct pledge_id id, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_op op = record_delete(PLEDGE_DECISION, id, arena);

    return history_run(home, &op, NULL, err) || error_prefix(err, "node \"%s\"", home->name);
}

void agreement_tell(struct agreements *agreements, struct pledge_id id, uint64_t nodes)
{
    for (size_t i = 0; i < cluster_count(agreements->options.cluster); i++) {
        const struct cluster_node *node = cluster_at(agreements->options.cluster, i);

        if (nodes >> node->number & 1)
            pledges_decide(commit_pledges(node->commit), id);
    }
}

/* --- Applying -------------------------------------------------------------------------------- */

/* A container that is written to; held until the end. */
struct place {
    struct agreement_write of; /* its numbers */
    bool is_there;
    struct item_space space;
    void *held;
    struct place *next;
};

struct applying {
    struct agreements *agreements;
    const struct cluster_node *node;
    struct arena *arena;
    struct place *places;
    struct transaction *transaction; /* owned; NULL: nothing is written yet */
};

static void applying_done(struct applying *applying)
{
    transaction_free(applying->transaction);
    for (const struct place *place = applying->places; place; place = place->next)
        if (place->is_there)
            applying->agreements->options.close(place->held);
}
CLEANUP_VALUE_FN(struct applying, applying_done)

static const struct place *container_place(struct applying *applying,
                                           const struct agreement_write *write)
{
    const struct agreements_options *options = &applying->agreements->options;
    const struct history_origin numbers = {
        .account = write->account, .database = write->database, .container = write->container};
    struct place *place = applying->places;

    while (place && (place->of.account != write->account || place->of.database != write->database ||
                     place->of.container != write->container))
        place = place->next;
    if (place)
        return place;
    place = ARENA_NEW(applying->arena, struct place);
    place->of = *write;
    place->is_there = options->open(options->context, &numbers, &place->space, &place->held);
    place->next = applying->places;
    applying->places = place;
    return place;
}

/* Where a grace period of a promotion has ended since the promise, the items are the other
 * container's alone: in the same partition, which is not migrated before it is settled. */
static const struct place *place_of(struct applying *applying, const struct agreement_write *write)
{
    const struct place *place = container_place(applying, write);
    struct agreement_write there = *write;

    if (!place->is_there || !place->space.promotions)
        return place;
    there.container = promotion_list_elsewhere(place->space.promotions, write->logical);
    return there.container ? container_place(applying, &there) : place;
}

static bool write_enter(struct applying *applying, const struct place *place,
                        const struct agreement_write *write, struct error *err)
{
    struct item_scope scope = item_space_scope(&place->space, write->logical);

    if (scope.commit != applying->node->commit)
        return error_set(err, ERROR_FENCED,
                         "what node \"%s\" has promised is on another node by now",
                         applying->node->name);
    scope.read_only = false;
    return (applying->transaction ||
            transaction_open_settling(&scope, applying->arena, &applying->transaction, err)) &&
           transaction_enter(applying->transaction, &scope, write->logical, err);
}

static bool write_plan(struct applying *applying, const struct agreement_write *write,
                       size_t *ret_nth, struct error *err)
{
    const struct place *place = place_of(applying, write);
    const struct transaction_options options = {.not_indexed = write->flags & ITEM_NOT_INDEXED,
                                                .description = write->description,
                                                .id_is_free = true};
    struct slice rest = slice_skip(write->key, write->logical.len);
    const struct item *item;
    struct document_value id;

    *ret_nth = SIZE_MAX;
    if (!place->is_there) /* it was dropped, and its items with it */
        return true;
    if (!document_key_read(definition_names_of(place->space.definition)->identity_order, &rest,
                           applying->arena, &id, err) ||
        !write_enter(applying, place, write, err) ||
        !transaction_read(applying->transaction, &id, &item, err))
        return false;
    if (write->deletes && !item) /* its time is over since */
        return true;
    *ret_nth = transaction_write_count(applying->transaction);
    return transaction_write(applying->transaction, &id,
                             write->deletes ? TRANSACTION_DELETE : TRANSACTION_UPSERT,
                             write->document, &options, err);
}

/* A record, say, of what became of the transaction. */
static bool beside_plan(struct applying *applying, const struct agreement_write *write,
                        struct error *err)
{
    const struct place *place = place_of(applying, write);
    struct engine_op *op = ARENA_NEW(applying->arena, struct engine_op);

    if (!place->is_there)
        return true;
    if (!write_enter(applying, place, write, err))
        return false;
    *op =
        (struct engine_op){write->flags ? ENGINE_DELETE : ENGINE_PUT, write->key, write->document};
    transaction_beside(applying->transaction, op);
    return true;
}

static bool apply_once(struct agreements *agreements, const struct cluster_node *node,
                       const struct pledge *pledge, struct arena *arena,
                       struct agreement_applied *ret_applied, struct error *err)
{
    CLEANUP(applying_done)
    struct applying applying = {.agreements = agreements, .node = node, .arena = arena};
    struct commit_agreed *ends = ARENA_NEW(arena, struct commit_agreed);
    struct engine_op *op = ARENA_NEW(arena, struct engine_op);
    struct slice writes = pledge->writes;
    struct agreement_write write;
    size_t count = 0;

    ret_applied->nth = ARENA_ARRAY(arena, size_t, pledge->item_count + 1);
    while (writes.len) {
        if (!agreement_write_next(&writes, &write, err))
            return false;
        assert(write.is_beside || count <= pledge->item_count); /* a write has a key that is kept */
        if (!(write.is_beside ? beside_plan(&applying, &write, err)
                              : write_plan(&applying, &write, &ret_applied->nth[count++], err)))
            return false;
    }
    *op = record_delete(PLEDGE_PROMISE, pledge->id, arena);
    *ends = (struct commit_agreed){.step = COMMIT_END, .id = pledge->id};
    if (!applying.transaction)
        return history_run(node, op, ends, err);
    applying.transaction->agreed = ends;
    applying.transaction->agreed_op = op;
    if (!transaction_prepare(applying.transaction, err) ||
        !commit_run(node->commit, &applying.transaction->batch, err))
        return false;
    ret_applied->transaction = TAKE(applying.transaction);
    return true;
}

/* A copy of what the table has, so that it may be let go of there. */
struct wanted {
    struct pledge_id id;
    struct arena *arena;
    struct pledge found;
    bool is_found;
};

static void pledge_copy(const struct pledge *pledge, void *context)
{
    struct wanted *wanted = context;

    if (!pledge_id_equal(pledge->id, wanted->id))
        return;
    wanted->is_found = true;
    wanted->found.id = pledge->id;
    wanted->found.item_count = pledge->item_count;
    wanted->found.writes = arena_copy(wanted->arena, pledge->writes);
}

bool agreement_apply(struct agreements *agreements, const struct cluster_node *node,
                     struct pledge_id id, struct arena *arena,
                     struct agreement_applied *ret_applied, struct error *err)
{
    struct wanted wanted = {.id = id, .arena = arena};
    struct agreement_applied applied = {0};

    pledges_each(commit_pledges(node->commit), pledge_copy, &wanted);
    if (!wanted.is_found)
        return error_set(err, ERROR_STORE_CORRUPT, "node \"%s\" has not promised what it should",
                         node->name);
    for (int i = 0; i < ATTEMPTS_MAX; i++) {
        if (apply_once(agreements, node, &wanted.found, arena, &applied, err)) {
            *ret_applied = applied;
            return true;
        }
        /* Somebody else may have written what goes with the items: expired ones, say. */
        if (err->code != ERROR_CONFLICT && err->code != ERROR_SNAPSHOT_TOO_OLD &&
            !item_space_is_overtaken(err))
            break;
        nanosleep(&(struct timespec){0, ATTEMPT_PAUSE_NS}, NULL);
    }
    return error_prefix(err, "node \"%s\"", node->name);
}

/* --- Settling -------------------------------------------------------------------------------- */

static bool node_serves(const struct agreements *agreements, uint32_t number,
                        const struct cluster_node **ret_node, struct error *err)
{
    const struct cluster_node *node = cluster_find(agreements->options.cluster, number);

    *ret_node = node;
    if (!node)
        return error_set(err, ERROR_NODE_DOWN, "node %u is not here", number);
    return engine_serves(node->engine, err) || error_prefix(err, "node \"%s\"", node->name);
}

static bool doubt_settle(struct agreements *agreements, struct agreement_entry *entry,
                         struct error *err)
{
    const struct cluster_node *home;
    bool decided;

    if (!node_serves(agreements, entry->home, &home, err) ||
        !record_find(home, PLEDGE_DECISION, entry->id, &decided, err))
        return false;
    if (decided)
        agreement_tell(agreements, entry->id, entry->nodes);
    if (entry->window)
        pledges_window_close(commit_pledges(home->commit), entry->id);
    entry->window = false;
    agreements_note(agreements, entry, decided ? AGREEMENT_APPLYING : AGREEMENT_UNDOING,
                    entry->nodes);
    return true;
}

/* One that is there twice over: the commit that removed it was not known to have. */
static bool promise_settle(struct agreements *agreements, const struct agreement_entry *entry,
                           const struct cluster_node *node, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct agreement_applied applied = {0};
    bool promised;

    if (!record_find(node, PLEDGE_PROMISE, entry->id, &promised, err))
        return error_prefix(err, "node \"%s\"", node->name);
    if (!promised) {
        pledges_remove(commit_pledges(node->commit), entry->id);
        return true;
    }
    if (entry->state == AGREEMENT_UNDOING)
        return agreement_undo(node, entry->id, err);
    if (!agreement_apply(agreements, node, entry->id, arena, &applied, err))
        return false;
    transaction_free(applied.transaction);
    return true;
}

static bool promises_settle(struct agreements *agreements, struct agreement_entry *entry,
                            struct error *err)
{
    bool all = true;

    for (uint32_t n = 0; n < CLUSTER_NODES_MAX; n++) {
        const struct cluster_node *node;

        if (!(entry->nodes >> n & 1))
            continue;
        if (node_serves(agreements, n, &node, err) && promise_settle(agreements, entry, node, err))
            agreements_note(agreements, entry, entry->state, entry->nodes & ~(UINT64_C(1) << n));
        else
            all = false;
    }
    return all;
}

bool agreement_settle(struct agreements *agreements, struct agreement_entry *entry,
                      struct error *err)
{
    const struct cluster_node *home;

    assert(!entry->owned);
    if (entry->state == AGREEMENT_DOUBT && !doubt_settle(agreements, entry, err))
        return false;
    if (!promises_settle(agreements, entry, err))
        return false;
    if (entry->state == AGREEMENT_UNDOING)
        return true;
    agreements_note(agreements, entry, AGREEMENT_DONE, 0);
    return node_serves(agreements, entry->home, &home, err) &&
           decision_forget(home, entry->id, err);
}
