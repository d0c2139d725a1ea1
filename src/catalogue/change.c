/* A change reads the published state, decides, and writes its records and the head in one batch of
 * group commit. Every batch relies on the head and writes it, so that of two changes made from one
 * state only the first passes, whatever lock they hold or do not.
 *
 * When the outcome of a commit is not known, the published state stays and the catalogue is in
 * doubt: the next change first gets a write of its own through, which no engine takes before it
 * has found out what became of the last, and then loads everything again. */
#include "base/bytes.h"
#include "catalogue/catalogue_private.h"
#include "catalogue/withheld.h"
#include "document/bson.h"

static bool outcome_unknown(const struct error *err)
{
    return err->code == ERROR_STORE_IO || err->code == ERROR_WRITE_IN_DOUBT ||
           err->code == ERROR_STORE_POISONED;
}

static struct commit_part part_of(const struct catalogue *catalogue, struct engine_op *ops,
                                  size_t count)
{
    return (struct commit_part){
        .partition = CATALOGUE_PARTITION, .epoch = catalogue->epoch, .ops = ops, .op_count = count};
}

static bool doubt_settle(struct catalogue *catalogue, struct error *err)
{
    struct engine_op op = {ENGINE_PUT, catalogue_record_barrier_key(), SLICE("")};
    struct commit_part part = part_of(catalogue, &op, 1);
    struct commit_batch batch = {
        .parts = &part, .part_count = 1, .moment = COMMIT_NOTHING_RELIED_ON};
    bool settled;

    if (catalogue->recall)
        catalogue->recall(catalogue->recall_context);
    settled = commit_run(catalogue->commit, &batch, err) && catalogue_load(catalogue, err);
    if (catalogue->recall)
        catalogue->recalled(catalogue->recall_context);
    if (!settled)
        return false;
    catalogue->in_doubt = false;
    return true;
}

bool catalogue_change_begin(struct catalogue *catalogue, struct catalogue_change *change,
                            struct error *err)
{
    *change = (struct catalogue_change){.catalogue = catalogue, .arena = arena_new()};
    change->tellings_end = &change->tellings;
    mutex_lock(&catalogue->change_lock);
    if (catalogue->in_doubt && !doubt_settle(catalogue, err))
        return false;
    change->root = catalogue_root(catalogue);
    return true;
}

/* Who waits for changes was woken by the commit, and may have looked before the new state was
 * published: it is woken again, now that a dropped collection is gone. */
static void tellings_wake(const struct catalogue_change *change)
{
    struct commit_clock *clock = commit_times(change->catalogue->commit);
    uint64_t time = commit_clock_pass(clock);

    for (const struct catalogue_telling *telling = change->tellings; telling;
         telling = telling->next)
        history_note(clock, &telling->record.origin, time);
    commit_clock_look(clock);
}

void catalogue_change_end(struct catalogue_change *change)
{
    if (change->told)
        tellings_wake(change);
    if (change->recalled)
        change->catalogue->recalled(change->catalogue->recall_context);
    catalogue_state_unref(change->root);
    mutex_unlock(&change->catalogue->change_lock);
    arena_free(change->arena);
}

void catalogue_change_put(struct catalogue_change *change, struct slice key, struct slice document)
{
    assert(change->count < CHANGE_OPS_MAX);
    change->ops[change->count++] =
        (struct engine_op){ENGINE_PUT, key, catalogue_record_value(document, change->arena)};
}

void catalogue_change_put_record(struct catalogue_change *change,
                                 struct catalogue_record_address address, struct slice document)
{
    catalogue_change_put(change, catalogue_record_key(address, change->arena), document);
}

void catalogue_change_delete_record(struct catalogue_change *change,
                                    struct catalogue_record_address address)
{
    assert(change->count < CHANGE_OPS_MAX);
    change->ops[change->count++] = (struct engine_op){
        .kind = ENGINE_DELETE, .key = catalogue_record_key(address, change->arena)};
}

void catalogue_change_put_offer(struct catalogue_change *change,
                                struct catalogue_record_address owner, const struct offer *offer)
{
    owner.kind = RECORD_OFFER;
    catalogue_change_put_record(change, owner, catalogue_record_offer_write(offer, change->arena));
}

/* --- Telling --------------------------------------------------------------------------------- */

static struct catalogue_telling *telling_add(struct catalogue_change *change,
                                             enum history_kind kind, struct history_origin origin,
                                             struct slice payload)
{
    struct catalogue_telling *telling = ARENA_NEW(change->arena, struct catalogue_telling);

    telling->record = (struct history_record){
        .place = {.origin = CATALOGUE_PARTITION, .ordinal = (uint32_t)change->telling_count++},
        .kind = kind,
        .origin = origin,
        .payload = payload};
    telling->record.origin.database_name = arena_copy(change->arena, origin.database_name);
    telling->record.origin.container_name = arena_copy(change->arena, origin.container_name);
    telling->key = history_key_encode(telling->record.place, change->arena);
    telling->value = history_record_encode(&telling->record, change->arena);
    *change->tellings_end = telling;
    change->tellings_end = &telling->next;
    return telling;
}

/* What is withheld is told when it is released. */
static bool is_withheld(struct catalogue_change *change, const struct container *container,
                        const struct history_record *record)
{
    const struct catalogue_state *account =
        catalogue_state_find_number(change->root, container->account);
    const struct catalogue_name name = {account ? account->info.id : SLICE(""),
                                        record->origin.database_name,
                                        record->origin.container_name};

    return catalogue_withheld_tell(change->catalogue, &name, record);
}

void catalogue_change_tell(struct catalogue_change *change, enum history_kind kind,
                           const struct container *container, struct slice payload)
{
    const struct history_record record = {
        .kind = kind, .origin = container_history(container), .payload = payload};

    if (record.origin.kept && !is_withheld(change, container, &record))
        (void)telling_add(change, kind, record.origin, payload);
}

/* Readers of either name want to know. */
void catalogue_change_tell_renamed(struct catalogue_change *change,
                                   const struct container *container, struct slice name,
                                   const struct container *dropped)
{
    struct history_origin origin = container_history(container);
    CLEANUP(buf_done) struct buf payload;
    size_t begin;

    buf_init(&payload, BUF_DEFAULT_MAX);
    if (!origin.kept)
        return;
    begin = document_begin(&payload);
    document_append_string(&payload, SLICE("t"), name);
    if (dropped)
        document_append_int64(&payload, SLICE("x"), dropped->state.info.number);
    document_end(&payload, begin);
    telling_add(change, HISTORY_RENAME, origin, buf_slice(&payload))->renamed =
        arena_copy(change->arena, name);
}

/* Each of its collections goes, then the database; one without collections is none. */
void catalogue_change_tell_database_dropped(struct catalogue_change *change,
                                            const struct database *database)
{
    struct history_origin of_database = {0};

    for (size_t i = 0; i < database->state.child_count; i++) {
        const struct container *container = catalogue_state_container(database->state.children[i]);
        struct history_origin origin = container_history(container);

        if (!origin.kept ||
            is_withheld(change, container,
                        &(struct history_record){.kind = HISTORY_DROP, .origin = origin}))
            continue;
        (void)telling_add(change, HISTORY_DROP, origin, SLICE_NONE);
        of_database = origin;
    }
    of_database.container = 0;
    of_database.container_name = SLICE("");
    if (of_database.kept)
        (void)telling_add(change, HISTORY_DROP_DATABASE, of_database, SLICE_NONE);
}

static void tellings_stamp(struct catalogue_change *change)
{
    const struct commit_stamp *stamp = &change->parts[1].stamp;

    for (struct catalogue_telling *telling = change->tellings; telling; telling = telling->next) {
        struct history_origin renamed = telling->record.origin;

        bytes_put_be64((uint8_t *)telling->key.data + HISTORY_KEY_TIME_AT, stamp->time);
        bytes_put_be64((uint8_t *)telling->value.data + HISTORY_VALUE_WALL_AT,
                       (uint64_t)change->parts[0].stamp.wall_ms);
        history_note(commit_times(change->catalogue->commit), &telling->record.origin, stamp->time);
        renamed.container_name = telling->renamed;
        if (telling->renamed.data)
            history_note(commit_times(change->catalogue->commit), &renamed, stamp->time);
    }
}

static struct commit_part tellings_part(struct catalogue_change *change)
{
    struct engine_op *ops = ARENA_ARRAY(change->arena, struct engine_op, change->telling_count);
    size_t count = 0;

    for (struct catalogue_telling *telling = change->tellings; telling; telling = telling->next)
        ops[count++] = (struct engine_op){ENGINE_PUT, telling->key, telling->value};
    return history_part(ops, count, change->arena);
}

/* --- Committing ------------------------------------------------------------------------------ */

static void batch_stamp(struct commit_batch *batch)
{
    struct catalogue_change *change = CONTAINER_OF(batch, struct catalogue_change, batch);

    for (size_t i = 0; i < change->count; i++)
        if (change->ops[i].kind == ENGINE_PUT)
            catalogue_record_stamp(change->ops[i].value, &change->parts[0].stamp);
    tellings_stamp(change);
}

bool catalogue_change_commit(struct catalogue_change *change, struct error *err)
{
    struct catalogue *catalogue = change->catalogue;
    struct slice head = catalogue_record_head_key();

    /* Servers that read by the state as it is are asked to stop before there can be another. */
    if (catalogue->recall && !change->recalled) {
        catalogue->recall(catalogue->recall_context);
        change->recalled = true;
    }
    catalogue_change_put(change, head,
                         catalogue_record_head_write(&catalogue->head, change->arena));
    change->part = part_of(catalogue, change->ops, change->count);
    change->part.relied = change->part.touched = &head;
    change->part.relied_count = change->part.touched_count = 1;
    change->parts[0] = change->part;
    if (change->telling_count)
        change->parts[1] = tellings_part(change);
    change->batch = (struct commit_batch){.parts = change->parts,
                                          .part_count = change->telling_count ? 2 : 1,
                                          .moment = commit_moment(catalogue->commit),
                                          .stamp = batch_stamp};
    if (commit_run(catalogue->commit, &change->batch, err)) {
        change->part.stamp = change->parts[0].stamp;
        change->told = change->telling_count;
        return true;
    }
    catalogue->in_doubt |= outcome_unknown(err);
    return false;
}

/* The parent with one child changed; a copy whose only reference is the caller's. */
static struct catalogue_state *with_child(const struct catalogue_state *parent,
                                          struct catalogue_state *child, uint32_t number)
{
    struct catalogue_state *copy = catalogue_state_copy(parent);

    if (child)
        catalogue_state_child_set(copy, child);
    else
        catalogue_state_child_remove(copy, number);
    return copy;
}

void catalogue_change_publish(struct catalogue_change *change,
                              struct catalogue_record_address address,
                              struct catalogue_state *child)
{
    struct catalogue_state *account = catalogue_state_find_number(change->root, address.account);

    catalogue_state_since(child, change->root);
    if (address.kind == RECORD_CONTAINER)
        child = with_child(catalogue_state_find_number(account, address.database), child,
                           address.container);
    if (address.kind != RECORD_ACCOUNT)
        child = with_child(account, child, address.database);
    catalogue_publish(change->catalogue, with_child(change->root, child, address.account));
}

void catalogue_change_publish_pair(struct catalogue_change *change, struct container *first,
                                   struct container *second)
{
    const struct catalogue_state *account =
        catalogue_state_find_number(change->root, first->account);
    struct catalogue_state *database =
        catalogue_state_copy(catalogue_state_find_number(account, first->database));
    uint32_t number = first->account;

    catalogue_state_since(&first->state, change->root);
    catalogue_state_child_set(database, &first->state);
    if (second) {
        catalogue_state_since(&second->state, change->root);
        catalogue_state_child_set(database, &second->state);
    }
    catalogue_publish(change->catalogue,
                      with_child(change->root, with_child(account, database, 0), number));
}

void catalogue_change_publish_renamed(struct catalogue_change *change, const struct container *gone,
                                      struct container *container)
{
    const struct catalogue_state *account =
        catalogue_state_find_number(change->root, container->account);
    struct catalogue_state *database =
        catalogue_state_copy(catalogue_state_find_number(account, container->database));

    if (gone)
        catalogue_state_child_remove(database, gone->state.info.number);
    catalogue_state_since(&container->state, change->root);
    catalogue_state_child_set(database, catalogue_state_ref(&container->state));
    catalogue_publish(change->catalogue, with_child(change->root, with_child(account, database, 0),
                                                    container->account));
}
