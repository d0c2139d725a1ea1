#include "front/rest/views/groups.h"

#include "front/rest/views/tally.h"
#include "item/contribution.h"
#include "item/operation.h"
#include "throughput/cost.h"

enum { PLACES_MAX = 8 }; /* of one item, in several groups: a crash may have left two */

/* What becomes of one item's share in one group. */
struct change {
    struct change *next;
    struct contribution_item item;
    struct slice arguments; /* data NULL: it goes */
};

/* One group that something changes in. */
struct group {
    struct group *next;
    struct contribution_group at;
    struct partition_key key;
    struct slice keys; /* values of the group */
    struct change *changes;
    size_t change_count;
};

struct work {
    struct rest_view_state *state;
    const struct front_services *services;
    struct item_space space;
    struct arena *arena;
    struct group *groups;
};

static struct work work_of(struct rest_view_state *state, const struct front_services *services,
                           struct container *view, struct arena *arena)
{
    struct work work = {.state = state,
                        .services = services,
                        .space = container_space(view, services->clock, services->gates),
                        .arena = arena};

    work.space.read_only = false;
    return work;
}

static void left_out(const struct work *work, struct slice what, const struct error *why)
{
    work->state->figures.left_out++;
    log_event(work->services->log, LOG_WARNING, "a group is left out of a view",
              LOG_INT("view", work->state->number), LOG_SLICE("of", what),
              LOG_TEXT("reason", why->message));
}

/* --- What changes where ---------------------------------------------------------------------- */

static bool is_same_group(const struct contribution_group *a, const struct contribution_group *b)
{
    return !memcmp(a->digest, b->digest, sizeof a->digest) && slice_equal(a->logical, b->logical);
}

static struct group *group_add(struct work *work, const struct contribution_group *at,
                               const struct partition_key *key, struct slice keys)
{
    struct group *group;

    for (group = work->groups; group; group = group->next)
        if (is_same_group(&group->at, at))
            return group;
    group = ARENA_NEW(work->arena, struct group);
    *group = (struct group){.next = work->groups, .at = *at, .key = *key, .keys = keys};
    work->groups = group;
    return group;
}

static void change_add(struct work *work, struct group *group, struct contribution_item item,
                       struct slice arguments)
{
    struct change *change = ARENA_NEW(work->arena, struct change);

    *change = (struct change){group->changes, item, arguments};
    group->changes = change;
    group->change_count++;
}

/* The partition key of a group, which follows from its values alone. */
static bool key_make(const struct work *work, struct slice keys, const uint8_t *digest,
                     struct partition_key *ret_key, struct error *err)
{
    struct slice row;

    if (!rest_view_query_group_row(work->state->query, keys, digest, NULL, work->arena, &row, err))
        return false;
    *ret_key = partition_key_extract(&work->space.definition->key, row);
    return true;
}

/* A group that an item has a contribution in; its values stand in its state. */
static bool place_open(struct work *work, const struct contribution_group *at,
                       struct group **ret_group, struct error *err)
{
    struct item_scope scope = item_space_scope(&work->space, at->logical);
    struct partition_key key;
    struct slice state, keys;

    if (!contribution_read(&scope, NULL, contribution_state_key(at, work->arena), work->arena,
                           &state, err))
        return false;
    if (!state.data)
        return error_set(err, ERROR_STORE_CORRUPT, "a contribution to a view is to no group");
    if (!rest_view_tally_keys(state, &keys, err) || !key_make(work, keys, at->digest, &key, err))
        return false;
    *ret_group = group_add(work, at, &key, keys);
    return true;
}

static bool is_fault(const struct error *err)
{
    return err->code != ERROR_QUERY_LIMIT && err->status >= 500;
}

/* The share of an item, if it has one that can be kept. */
static bool share_make(struct work *work, const struct rest_view_touched *touched,
                       struct rest_view_share *ret_share, struct partition_key *ret_key,
                       struct error *err)
{
    const struct partition_definition *definition = &work->space.definition->key;
    char text[RID_TEXT_SIZE];
    struct error why;

    *ret_share = (struct rest_view_share){0};
    if (!touched->document.data)
        return true;
    if (rest_view_query_share(work->state->query, touched->document, work->arena, ret_share,
                              &why) &&
        (!ret_share->in ||
         (key_make(work, ret_share->keys, ret_share->digest, ret_key, &why) &&
          partition_key_check(definition, ret_key, &work->space.key_limits, &why))))
        return true;
    if (is_fault(&why)) {
        *err = why;
        return false;
    }
    left_out(work, rid_format(touched->source, text), &why);
    *ret_share = (struct rest_view_share){0};
    return true;
}

static bool touched_plan(struct work *work, const struct rest_view_touched *touched,
                         struct error *err)
{
    const struct contribution_item item = {touched->source.owner, touched->source.number};
    struct contribution_group places[PLACES_MAX], now = {0};
    struct rest_view_share share;
    struct partition_key key;
    size_t count;

    if (!share_make(work, touched, &share, &key, err) ||
        !contributions_find(&work->space, work->state->generation, item, work->arena, places,
                            PLACES_MAX, &count, err))
        return false;
    if (share.in) {
        now = (struct contribution_group){
            .logical = item_logical(&work->space.definition->key, &key, work->arena),
            .generation = work->state->generation};
        memcpy(now.digest, share.digest, sizeof now.digest);
        change_add(work, group_add(work, &now, &key, share.keys), item, share.arguments);
    }
    for (size_t i = 0; i < count; i++) {
        struct group *group = NULL;

        if (share.in && is_same_group(&places[i], &now))
            continue;
        if (!place_open(work, &places[i], &group, err))
            return false;
        change_add(work, group, item, SLICE_NONE);
    }
    return true;
}

/* --- One group, in a transaction ------------------------------------------------------------- */

struct regroup {
    struct metered_transaction head;
    struct work *work;
    const struct group *group;
    bool without_row; /* it cannot be stored */
    bool changed, removed;

    /* of one attempt */
    struct contribution_group at;
    struct item_scope scope;
    struct engine_snapshot *snapshot;
    struct rest_view_tally *tally;
    const struct query_aggregate_call *calls;
    struct engine_op *ops;
    size_t op_count;
};

static void op_put(struct regroup *r, struct slice key, enum contribution_kind kind,
                   struct slice bytes)
{
    r->ops[r->op_count++] = (struct engine_op){
        ENGINE_PUT, key, contribution_value(kind, r->at.generation, bytes, r->head.arena)};
}

static void op_delete(struct regroup *r, struct slice key)
{
    r->ops[r->op_count++] = (struct engine_op){ENGINE_DELETE, key, SLICE_NONE};
}

/* The nth of an array; undefined behind its end, and of none. */
static struct document_value nth_of(struct slice array, size_t nth)
{
    struct document_iter iter;

    if (!array.data)
        return document_undefined();
    document_iter_init(&iter, array);
    while (document_iter_next(&iter))
        if (!nth--)
            return iter.value;
    return document_undefined();
}

static bool is_ordered(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_ARRAY &&
           value->type != DOCUMENT_OBJECT;
}

static struct slice value_bytes(const struct document_value *value, struct arena *arena)
{
    CLEANUP(buf_done) struct buf bytes;
    size_t begin;

    buf_init(&bytes, ENGINE_VALUE_MAX / 2);
    begin = document_begin(&bytes);
    document_append(&bytes, SLICE(""), value);
    document_end(&bytes, begin);
    return arena_copy(arena, buf_slice(&bytes));
}

/* No key is both put and deleted: within one commit the order of the two would not count. */
static void ordered_plan(struct regroup *r, size_t nth, struct contribution_item item,
                         struct slice before, struct slice after)
{
    struct document_value was = nth_of(before, nth), is = nth_of(after, nth);
    struct slice from = SLICE_NONE, to = SLICE_NONE;

    if (is_ordered(&was))
        from = contribution_ordered_key(&r->at, (uint8_t)nth, &was, item, r->head.arena);
    if (is_ordered(&is))
        to = contribution_ordered_key(&r->at, (uint8_t)nth, &is, item, r->head.arena);
    if (from.data && !(to.data && slice_equal(from, to)))
        op_delete(r, from);
    if (to.data)
        op_put(r, to, CONTRIBUTION_ORDERED, value_bytes(&is, r->head.arena));
}

static bool change_plan(struct regroup *r, const struct change *change, struct error *err)
{
    struct slice key = contribution_values_key(&r->at, change->item, r->head.arena), before;

    if (!contribution_read(&r->scope, r->snapshot, key, r->head.arena, &before, err))
        return false;
    if (before.data ? change->arguments.data && slice_equal(before, change->arguments)
                    : !change->arguments.data)
        return true;
    r->changed = true;
    if ((before.data && !rest_view_tally_take(r->tally, before, err)) ||
        (change->arguments.data && !rest_view_tally_add(r->tally, change->arguments, err)))
        return false;
    for (size_t i = 0; i < r->tally->part_count; i++)
        if (rest_view_tally_orders(r->calls[i].kind))
            ordered_plan(r, i, change->item, before, change->arguments);
    if (change->arguments.data)
        op_put(r, key, CONTRIBUTION_VALUES, change->arguments);
    else
        op_delete(r, key);
    key = contribution_place_key(&r->at, change->item, r->head.arena);
    if (!before.data)
        op_put(r, key, CONTRIBUTION_VALUES, SLICE_NONE);
    if (!change->arguments.data)
        op_delete(r, key);
    return true;
}

/* --- Parts that are made anew ---------------------------------------------------------------- */

struct remaking {
    struct regroup *regroup;
    size_t nth;
    struct slice tie; /* of the value that was seen first, in its order; data NULL: none was */
};

static bool is_changed(const struct regroup *r, struct contribution_item item)
{
    for (const struct change *c = r->group->changes; c; c = c->next)
        if (c->item.source == item.source && c->item.number == item.number)
            return true;
    return false;
}

static bool contribution_see(void *self, struct contribution_item item, struct slice bytes,
                             struct error *err)
{
    struct remaking *remaking = self;
    struct document_value value = nth_of(bytes, remaking->nth);

    return is_changed(remaking->regroup, item) ||
           rest_view_tally_add_one(remaking->regroup->tally, remaking->nth, &value, err);
}

/* The first in the order, and all that are cut alike: theirs does not tell which is less. */
static bool ordered_see(void *self, struct contribution_item item, struct slice bytes,
                        struct error *err)
{
    struct remaking *remaking = self;
    struct document_value value = nth_of(bytes, 0);
    CLEANUP(buf_done) struct buf key;
    bool cut;

    buf_init(&key, SIZE_MAX / 2);
    if (is_changed(remaking->regroup, item))
        return true;
    cut = document_key_append_cut(DOCUMENT_ORDER_SQL, &value, CONTRIBUTION_KEY_MAX, &key);
    if (remaking->tie.data && !slice_equal(remaking->tie, buf_slice(&key)))
        return false;
    remaking->tie = arena_copy(remaking->regroup->head.arena, buf_slice(&key));
    return rest_view_tally_extreme(remaking->regroup->tally, remaking->nth, &value, err) && cut;
}

static bool part_remake(struct regroup *r, size_t nth, struct error *err)
{
    struct remaking remaking = {.regroup = r, .nth = nth};
    bool orders = rest_view_tally_orders(r->calls[nth].kind), fine;

    rest_view_tally_renew(r->tally, nth);
    fine = orders
               ? contributions_in_order(&r->scope, r->snapshot, &r->at, (uint8_t)nth,
                                        r->calls[nth].kind == QUERY_MAX,
                                        &(struct contribution_walk){ordered_see, &remaking}, err)
               : contributions_each(&r->scope, r->snapshot, &r->at,
                                    &(struct contribution_walk){contribution_see, &remaking}, err);
    for (const struct change *c = r->group->changes; fine && c; c = c->next) {
        struct document_value value = nth_of(c->arguments, nth);

        fine = value.type == DOCUMENT_UNDEFINED ||
               (orders ? rest_view_tally_extreme(r->tally, nth, &value, err)
                       : rest_view_tally_add_one(r->tally, nth, &value, err));
    }
    return fine;
}

/* --- Its row --------------------------------------------------------------------------------- */

/* With what is beside it, in one commit; where the row stays as it is, that alone. */
static bool row_plan(struct regroup *r, struct transaction *transaction, struct error *err)
{
    const struct item *stored;
    struct document_value id;
    struct slice row = SLICE_NONE;
    bool same;

    if (!rest_view_query_group_row(r->work->state->query, r->tally->keys, r->at.digest, NULL,
                                   r->head.arena, &row, err) ||
        !row.data || !document_find(row, SLICE("id"), &id) ||
        !transaction_read(transaction, &id, &stored, err))
        return false;
    row = SLICE_NONE;
    if (r->tally->count && !r->without_row &&
        !rest_view_query_group_row(r->work->state->query, r->tally->keys, r->at.digest, r->tally,
                                   r->head.arena, &row, err))
        return false;
    same = stored ? row.data && slice_equal(stored->document, row) : !row.data;
    if (same)
        return item_scope_admits_write(&r->scope, r->at.logical, err) &&
               contributions_commit(&r->scope, r->ops, r->op_count, err);
    r->removed = !row.data;
    for (size_t i = 0; i < r->op_count; i++)
        transaction_beside(transaction, &r->ops[i]);
    return transaction_write(transaction, &id, row.data ? TRANSACTION_UPSERT : TRANSACTION_DELETE,
                             row, NULL, err);
}

/* As one item that holds what is kept, with an index entry for each. */
static int64_t beside_cost(const struct regroup *r)
{
    struct cost_write write = {.puts = true, .index_puts = r->op_count};

    for (size_t i = 0; i < r->op_count; i++)
        write.new_bytes += r->ops[i].key.len + r->ops[i].value.len;
    return cost_write(&write);
}

static bool regroup_plan(struct metered_transaction *self, struct transaction *transaction,
                         struct error *err)
{
    struct regroup *r = CONTAINER_OF(self, struct regroup, head);
    CLEANUP(rest_view_tally_done) struct rest_view_tally tally;
    size_t part_count;
    struct slice state_key, state;

    r->calls = rest_view_query_aggregates(r->work->state->query, &part_count);
    r->at = r->group->at;
    r->at.logical = item_logical(&self->space->definition->key, &r->group->key, self->arena);
    r->scope = item_space_scope(self->space, r->at.logical);
    r->scope.read_only = false;
    r->snapshot = transaction_snapshot(transaction);
    r->changed = r->removed = false;
    r->op_count = 0;
    r->ops = ARENA_ARRAY(self->arena, struct engine_op,
                         r->group->change_count * (2 * part_count + 3) + 1);
    rest_view_tally_init(&tally, r->calls, part_count, r->group->keys, self->arena);
    r->tally = &tally;
    state_key = contribution_state_key(&r->at, self->arena);
    if (!contribution_read(&r->scope, r->snapshot, state_key, self->arena, &state, err) ||
        (state.data && !rest_view_tally_load(&tally, state, err)))
        return false;
    for (const struct change *c = r->group->changes; c; c = c->next)
        if (!change_plan(r, c, err))
            return false;
    if (!r->changed && !r->without_row)
        return true;
    for (size_t i = 0; i < part_count; i++)
        if (tally.parts[i].stale && !part_remake(r, i, err))
            return false;
    if (tally.count)
        op_put(r, state_key, CONTRIBUTION_STATE, rest_view_tally_save(&tally, self->arena));
    else if (state.data)
        op_delete(r, state_key);
    self->reads_cru = cost_add(self->reads_cru, beside_cost(r));
    return row_plan(r, transaction, err);
}

/* What clients are refused an item for: the group is kept, and has no row. */
static bool is_unfit(const struct error *err)
{
    return err->code == ERROR_BAD_REQUEST || err->code == ERROR_TOO_LARGE ||
           err->code == ERROR_LOGICAL_PARTITION_FULL || err->code == ERROR_PARTITION_FULL;
}

static bool group_run(struct work *work, const struct group *group, struct error *err)
{
    struct front_view_report *figures = &work->state->figures;
    struct metered_call call = {0};
    struct regroup regroup = {
        .head = {.plan = regroup_plan, .own_arena = true}, .work = work, .group = group};
    bool done = metered_transaction_run(work->services->meters, &work->space, &group->key,
                                        &regroup.head, &call, work->arena, err);

    if (!done && is_unfit(err)) {
        left_out(work, SLICE("a group"), err);
        regroup.without_row = true;
        done = metered_transaction_run(work->services->meters, &work->space, &group->key,
                                       &regroup.head, &call, work->arena, err);
    }
    if (done && regroup.changed)
        *(regroup.removed ? &figures->removed : &figures->written) += 1;
    if (!done && (call.wait_ms || err->status == 429)) {
        figures->throttled++;
        work->state->wait_ms = clock_monotonic_ms() + MAX(call.wait_ms, (int64_t)1);
    }
    return done;
}

bool rest_view_groups_refresh(struct rest_view_state *state, const struct front_services *services,
                              struct container *view, const struct rest_view_touched *touched,
                              size_t count, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct work work = work_of(state, services, view, arena);

    for (size_t i = 0; i < count; i++)
        if (!touched_plan(&work, &touched[i], err))
            return false;
    for (const struct group *group = work.groups; group; group = group->next)
        if (!group_run(&work, group, err))
            return false;
    return true;
}

/* --- Rows of no group ------------------------------------------------------------------------ */

static bool digest_parse(struct slice text, uint8_t *ret_digest)
{
    if (text.len != REST_VIEW_GROUP_ID_LEN)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        const char *digits = "0123456789abcdef", *at = strchr(digits, text.data[i]);

        if (!at || !text.data[i])
            return false;
        ret_digest[i / 2] = (uint8_t)(ret_digest[i / 2] << 4 | (uint8_t)(at - digits));
    }
    return true;
}

static bool has_group(const struct work *work, const struct partition_key *key, struct slice id,
                      bool *ret_has, struct error *err)
{
    struct contribution_group group = {
        .logical = item_logical(&work->space.definition->key, key, work->arena),
        .generation = work->state->generation};
    struct item_scope scope = item_space_scope(&work->space, group.logical);
    struct slice state;

    *ret_has = false;
    if (!digest_parse(id, group.digest))
        return true;
    if (!contribution_read(&scope, NULL, contribution_state_key(&group, work->arena), work->arena,
                           &state, err))
        return false;
    *ret_has = state.data != NULL;
    return true;
}

bool rest_view_groups_prune(struct rest_view_state *state, const struct front_services *services,
                            struct container *view, const struct item *items, size_t count,
                            struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct work work = work_of(state, services, view, arena);

    for (size_t i = 0; i < count; i++) {
        struct item_operation op = {
            .space = &work.space,
            .meters = services->meters,
            .arena = arena,
            .verb = ITEM_DELETE,
            .key = partition_key_extract(&work.space.definition->key, items[i].document)};
        bool has = false;

        if (!document_find(items[i].document, SLICE("id"), &op.id) || op.id.type != DOCUMENT_STRING)
            continue;
        if (!has_group(&work, &op.key, op.id.text, &has, err))
            return false;
        if (has)
            continue;
        if (item_operation_run(&op, err)) {
            state->figures.removed++;
        } else if (err->code != ERROR_ITEM_MISSING) {
            if (op.metered.wait_ms)
                state->wait_ms = clock_monotonic_ms() + op.metered.wait_ms;
            return false;
        }
    }
    return true;
}
