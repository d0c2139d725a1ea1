#include "property/model.h"

#include "document/bson.h"
#include "document/order.h"

struct model *model_new(const struct world *world)
{
    struct model *model = MEMORY_NEW(struct model);

    model->world = world;
    return model;
}

struct model *model_copy(const struct model *model)
{
    struct model *copy = MEMORY_NEW(struct model);

    *copy = *model;
    copy->record_capacity = model->record_count + 32;
    copy->records = memory_alloc(memory_array_size(copy->record_capacity, sizeof *copy->records));
    if (model->record_count)
        memcpy(copy->records, model->records, model->record_count * sizeof *copy->records);
    return copy;
}

void model_free(struct model *model)
{
    if (!model)
        return;
    memory_free(model->records);
    memory_free(model);
}

bool model_is_over(const struct world *world, const struct model_item *item)
{
    int64_t ttl = item->header.ttl ? item->header.ttl : world->config->default_ttl;

    if (world->config->default_ttl == DEFINITION_TTL_OFF || ttl < 0)
        return false;
    return item->header.wall_ms / 1000 + ttl <= world->now_ms / 1000;
}

const struct model_item *model_find(const struct model *model, unsigned key, unsigned id)
{
    const struct model_item *item = &model->items[key][id];

    return item->stored && !model_is_over(model->world, item) ? item : NULL;
}

struct slice model_unique_key(const struct world *world, unsigned key, size_t which,
                              struct slice document, struct arena *arena)
{
    const struct definition_unique_key *unique = &world->definition.unique_keys[which];
    CLEANUP(buf_done) struct buf bytes;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    buf_append_byte(&bytes, (uint8_t)which);
    buf_append_slice(&bytes, world->keys[key].logical);
    for (size_t i = 0; i < unique->path_count; i++) {
        struct document_value value;

        if (!document_path_find(&unique->paths[i], document, &value))
            value = document_null();
        document_key_append(DOCUMENT_ORDER_SQL, &value, &bytes);
    }
    return arena_copy(arena, buf_slice(&bytes));
}

/* --- Planning -------------------------------------------------------------------------------- */

void model_begin(struct model_transaction *transaction, const struct model *model)
{
    *transaction = (struct model_transaction){.snapshot = model_copy(model)};
}

void model_transaction_done(struct model_transaction *transaction)
{
    model_free(transaction->snapshot);
    transaction->snapshot = NULL;
}

static struct model_planned *planned_of(struct model_transaction *transaction, unsigned key,
                                        unsigned id)
{
    struct model_planned *planned;

    for (size_t i = 0; i < transaction->planned_count; i++) {
        planned = &transaction->planned[i];
        if (planned->key == key && planned->id == id)
            return planned;
    }
    assert(transaction->planned_count < MODEL_PLANNED_MAX);
    planned = &transaction->planned[transaction->planned_count++];
    *planned = (struct model_planned){.key = key, .id = id};
    return planned;
}

static const struct model_item *view_of(const struct model_transaction *transaction,
                                        const struct model_planned *planned)
{
    if (planned->written)
        return planned->after.data ? &planned->view : NULL;
    return model_find(transaction->snapshot, planned->key, planned->id);
}

const struct model_item *model_read(struct model_transaction *transaction, unsigned key,
                                    unsigned id)
{
    return view_of(transaction, planned_of(transaction, key, id));
}

void model_rely(struct model_transaction *transaction, unsigned key, unsigned id)
{
    planned_of(transaction, key, id)->relied = true;
}

void model_rely_all(struct model_transaction *transaction, unsigned key)
{
    transaction->relied_keys[key] = true;
}

static bool etag_is(const struct model_item *item, struct slice etag)
{
    char text[ITEM_ETAG_LEN];

    if (!item)
        return false;
    item_etag(&item->header, text);
    return slice_equal(etag, SLICE("*")) || slice_equal(etag, slice_of(text, sizeof text));
}

static enum error_code ttl_of(struct slice document, int32_t *ret_ttl)
{
    struct document_value value;

    *ret_ttl = 0;
    if (!document_find(document, SLICE("ttl"), &value))
        return ERROR_NONE;
    if (value.type != DOCUMENT_INT32 || value.int32 == 0 || value.int32 < -1)
        return ERROR_BAD_REQUEST;
    *ret_ttl = value.int32;
    return ERROR_NONE;
}

static enum error_code write_check(const struct model_item *item, enum transaction_verb verb,
                                   const struct transaction_options *options)
{
    if (verb == TRANSACTION_CREATE && item)
        return ERROR_ITEM_EXISTS;
    if ((verb == TRANSACTION_REPLACE || verb == TRANSACTION_DELETE) && !item)
        return ERROR_ITEM_MISSING;
    if (options->if_match.len && !etag_is(item, options->if_match) &&
        !(verb == TRANSACTION_UPSERT && !item))
        return ERROR_PRECONDITION_FAILED;
    if (options->if_none_match.len && etag_is(item, options->if_none_match))
        return ERROR_PRECONDITION_FAILED;
    return ERROR_NONE;
}

enum error_code model_write(struct model_transaction *transaction, unsigned key, unsigned id,
                            enum transaction_verb verb, struct slice document,
                            const struct transaction_options *options)
{
    static const struct transaction_options none;
    struct model_planned *planned = planned_of(transaction, key, id);
    const struct model_item *item = view_of(transaction, planned);
    enum error_code code = write_check(item, verb, options ? options : &none);
    struct model_item view = {.stored = true, .document = document};

    if (item)
        view.header = item->header;
    if (code == ERROR_NONE && verb != TRANSACTION_DELETE)
        code = ttl_of(document, &view.header.ttl);
    if (code != ERROR_NONE)
        return code;
    view.header.flags = options && options->not_indexed ? ITEM_NOT_INDEXED : 0;
    planned->written = true;
    planned->expired = false;
    planned->after = verb == TRANSACTION_DELETE ? SLICE_NONE : document;
    planned->view = view;
    return ERROR_NONE;
}

void model_remove_expired(struct model_transaction *transaction, unsigned key, unsigned id)
{
    struct model_planned *planned = planned_of(transaction, key, id);
    const struct model_item *item = &transaction->snapshot->items[key][id];

    if (!item->stored || !model_is_over(transaction->snapshot->world, item) || planned->written)
        return;
    planned->written = planned->expired = true;
    planned->after = SLICE_NONE;
}

/* --- Committing ------------------------------------------------------------------------------ */

static bool is_changed(const struct model_transaction *transaction,
                       const struct model_planned *planned)
{
    return planned->written &&
           (planned->after.data || transaction->snapshot->items[planned->key][planned->id].stored);
}

/* Without any the commit has nothing to do, and nothing to rely on. */
static bool has_changes(const struct model_transaction *transaction)
{
    for (size_t i = 0; i < transaction->planned_count; i++)
        if (is_changed(transaction, &transaction->planned[i]))
            return true;
    return false;
}

/* The item stays the one it was, and does not become another of the same name. */
static bool is_kept(const struct model_transaction *transaction,
                    const struct model_planned *planned)
{
    return planned->after.data && model_find(transaction->snapshot, planned->key, planned->id);
}

static const struct model_planned *plan_for(const struct model_transaction *transaction,
                                            unsigned key, unsigned id)
{
    for (size_t i = 0; i < transaction->planned_count; i++)
        if (transaction->planned[i].key == key && transaction->planned[i].id == id)
            return &transaction->planned[i];
    return NULL;
}

const struct model_item *model_view(const struct model_transaction *transaction, unsigned key,
                                    unsigned id)
{
    const struct model_planned *planned = plan_for(transaction, key, id);

    return planned ? view_of(transaction, planned) : model_find(transaction->snapshot, key, id);
}

/* Would another item of the logical partition have these values too? */
static bool unique_clashes(const struct model_transaction *transaction, unsigned key, unsigned id,
                           size_t which, struct slice wanted, struct arena *arena)
{
    const struct world *world = transaction->snapshot->world;

    for (unsigned other = 0; other < WORLD_IDS; other++) {
        const struct model_item *item = model_view(transaction, key, other);

        if (other != id && item &&
            slice_equal(model_unique_key(world, key, which, item->document, arena), wanted))
            return true;
    }
    return false;
}

/* Who owned it and is over goes with the transaction. */
static void owners_evict(struct model_transaction *transaction, unsigned key, unsigned id,
                         size_t which, struct slice wanted, struct arena *arena)
{
    const struct world *world = transaction->snapshot->world;

    for (unsigned other = 0; other < WORLD_IDS; other++) {
        const struct model_item *item = &transaction->snapshot->items[key][other];

        if (other != id && item->stored && model_is_over(world, item) &&
            slice_equal(model_unique_key(world, key, which, item->document, arena), wanted))
            model_remove_expired(transaction, key, other);
    }
}

/* Lists what the transaction takes for its own and did not own before. */
static enum error_code claims_collect(struct model_transaction *transaction, struct slice *claims,
                                      size_t *ret_count, struct arena *arena)
{
    const struct world *world = transaction->snapshot->world;

    *ret_count = 0;
    for (size_t i = 0; i < transaction->planned_count; i++) {
        const struct model_planned *planned = &transaction->planned[i];
        unsigned key = planned->key, id = planned->id;

        for (size_t u = 0;
             planned->written && planned->after.data && u < world->definition.unique_key_count;
             u++) {
            struct slice wanted = model_unique_key(world, key, u, planned->after, arena);
            const struct model_item *before = model_find(transaction->snapshot, key, id);

            if (before &&
                slice_equal(model_unique_key(world, key, u, before->document, arena), wanted))
                continue;
            claims[(*ret_count)++] = wanted;
            owners_evict(transaction, key, id, u, wanted, arena);
        }
        for (size_t u = 0;
             planned->written && planned->after.data && u < world->definition.unique_key_count; u++)
            if (unique_clashes(transaction, key, id, u,
                               model_unique_key(world, key, u, planned->after, arena), arena))
                return ERROR_UNIQUE_KEY;
    }
    return ERROR_NONE;
}

static bool has_conflict(const struct model_transaction *transaction, const struct model *model,
                         const struct slice *claims, size_t claim_count)
{
    uint64_t moment = transaction->snapshot->sequence;

    for (size_t i = 0; i < transaction->planned_count; i++) {
        const struct model_planned *planned = &transaction->planned[i];

        if ((is_changed(transaction, planned) || planned->relied) &&
            model->items[planned->key][planned->id].touched_at > moment)
            return true;
    }
    for (unsigned key = 0; key < WORLD_KEYS; key++)
        for (unsigned id = 0; id < WORLD_IDS; id++)
            if (transaction->relied_keys[key] && model->items[key][id].touched_at > moment)
                return true;
    for (size_t c = 0; c < claim_count; c++)
        for (size_t i = 0; i < MIN(model->claim_count, (size_t)MODEL_CLAIMS); i++)
            if (model->claims[i].sequence > moment && slice_equal(model->claims[i].key, claims[c]))
                return true;
    return false;
}

static int64_t stored_bytes(const struct world *world, unsigned key, unsigned id, size_t len)
{
    return (int64_t)(1 + world->item_keys[key][id].len + ITEM_HEADER_LEN + len);
}

static int64_t growth_of(const struct model_transaction *transaction,
                         const struct model_planned *planned)
{
    const struct world *world = transaction->snapshot->world;
    const struct model_item *before = &transaction->snapshot->items[planned->key][planned->id];
    int64_t growth = 0;

    if (before->stored)
        growth -= stored_bytes(world, planned->key, planned->id, before->document.len);
    if (planned->after.data)
        growth += stored_bytes(world, planned->key, planned->id, planned->after.len);
    return growth;
}

static bool is_full(const struct model_transaction *transaction, const struct model *model)
{
    int64_t max = model->world->config->logical_bytes_max;

    for (unsigned key = 0; key < WORLD_KEYS; key++) {
        int64_t growth = 0;

        for (size_t i = 0; i < transaction->planned_count; i++)
            if (transaction->planned[i].key == key &&
                is_changed(transaction, &transaction->planned[i]))
                growth += growth_of(transaction, &transaction->planned[i]);
        if (max && growth > 0 && model->logicals[key].bytes + growth > max)
            return true;
    }
    return false;
}

static void record_remove(struct model *model, size_t at)
{
    memmove(&model->records[at], &model->records[at + 1],
            (model->record_count - at - 1) * sizeof *model->records);
    model->record_count--;
}

static void record_add(struct model *model, const struct model_record *record)
{
    if (model->record_count == model->record_capacity) {
        model->record_capacity = model->record_capacity ? model->record_capacity * 2 : 64;
        model->records = memory_realloc(
            model->records, memory_array_size(model->record_capacity, sizeof *model->records));
    }
    model->records[model->record_count++] = *record;
}

static bool is_of_item(const struct model_record *record, uint32_t partition,
                       const struct model_item *item)
{
    return item->stored && record->partition == partition && record->lsn == item->header.lsn &&
           record->ordinal == item->header.ordinal;
}

static void record_apply(struct model *model, const struct model_planned *planned,
                         const struct model_item *before, const struct item_header *stamp,
                         bool kept)
{
    bool keeps_versions = model->world->config->feed_retention_ms > 0;
    struct model_record record = {
        .partition = model->world->keys[planned->key].partition,
        .lsn = stamp->lsn,
        .ordinal = stamp->ordinal,
        .wall_ms = stamp->wall_ms,
        .key = planned->key,
        .id = planned->id,
        .number = planned->after.data ? stamp->number : before->header.number,
    };

    if (planned->after.data)
        record.kind = kept ? FEED_REPLACE : FEED_CREATE;
    else
        record.kind = planned->expired ? FEED_EXPIRE : FEED_DELETE;
    if (before->stored) {
        record.previous_lsn = before->header.lsn;
        record.previous_ordinal = before->header.ordinal;
    }
    for (size_t i = 0; !keeps_versions && i < model->record_count; i++)
        if (is_of_item(&model->records[i], record.partition, before)) {
            record_remove(model, i);
            break;
        }
    if (keeps_versions)
        record.image = planned->after;
    if (keeps_versions || planned->after.data)
        record_add(model, &record);
}

static void change_apply(const struct model_transaction *transaction,
                         const struct model_planned *planned, struct model *model, uint32_t ordinal)
{
    const struct world *world = model->world;
    uint32_t partition = world->keys[planned->key].partition;
    struct model_item *item = &model->items[planned->key][planned->id], before = *item;
    bool kept = is_kept(transaction, planned);
    struct item_header header = {
        .flags = planned->view.header.flags,
        .number = kept ? before.header.number : 0,
        .lsn = model->partitions[partition].lsn,
        .origin = WORLD_FIRST_PARTITION + partition,
        .ordinal = ordinal,
        .wall_ms = model->partitions[partition].wall_ms,
        .ttl = planned->view.header.ttl,
        .policy_version = world->space.policy_version,
    };

    if (planned->after.data && !kept)
        header.number = (uint64_t)(WORLD_FIRST_PARTITION + partition) << 32 |
                        model->partitions[partition].counter++;
    if (header.ttl == 0 && world->config->default_ttl > 0)
        header.flags |= ITEM_EXPIRY_BY_DEFAULT;
    model->logicals[planned->key].touched = true;
    model->logicals[planned->key].bytes += growth_of(transaction, planned);
    model->logicals[planned->key].items += (planned->after.data != NULL) - before.stored;
    record_apply(model, planned, &before, &header, kept);
    *item = (struct model_item){.touched_at = model->sequence};
    if (planned->after.data) {
        item->stored = true;
        item->header = header;
        item->document = planned->after;
    }
}

static void partition_stamp(struct model *model, uint32_t partition)
{
    model->partitions[partition].lsn++;
    model->partitions[partition].wall_ms =
        MAX(model->partitions[partition].wall_ms, model->world->now_ms);
}

static void transaction_apply(const struct model_transaction *transaction, struct model *model)
{
    uint32_t ordinals[WORLD_PARTITIONS] = {0};
    bool stamped[WORLD_PARTITIONS] = {false};

    if (!has_changes(transaction))
        return;
    model->sequence++;
    for (size_t i = 0; i < transaction->planned_count; i++) {
        const struct model_planned *planned = &transaction->planned[i];
        uint32_t partition = model->world->keys[planned->key].partition;

        if (!is_changed(transaction, planned))
            continue;
        if (!stamped[partition])
            partition_stamp(model, partition);
        stamped[partition] = true;
        change_apply(transaction, planned, model, ordinals[partition]++);
    }
}

enum error_code model_commit(struct model_transaction *transaction, struct model *model)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice claims[3 * MODEL_PLANNED_MAX];
    size_t claim_count;
    enum error_code code;

    for (size_t i = 0; i < transaction->planned_count; i++)
        if (transaction->planned[i].written &&
            transaction->planned[i].after.len > model->world->space.item_bytes_max)
            return ERROR_TOO_LARGE;
    code = claims_collect(transaction, claims, &claim_count, arena);
    if (code != ERROR_NONE)
        return code;
    if (has_changes(transaction) && has_conflict(transaction, model, claims, claim_count))
        return ERROR_CONFLICT;
    if (is_full(transaction, model))
        return ERROR_LOGICAL_PARTITION_FULL;
    transaction_apply(transaction, model);
    for (size_t i = 0; i < claim_count; i++)
        model->claims[model->claim_count++ % MODEL_CLAIMS] = (struct model_claim){
            .sequence = model->sequence, .key = arena_copy(model->world->arena, claims[i])};
    return ERROR_NONE;
}

/* --- Care ------------------------------------------------------------------------------------ */

/* Items with a time to live of their own come first, then the others, each by time. */
static bool is_swept_before(const struct world *world, unsigned key_a, const struct model_item *a,
                            unsigned key_b, const struct model_item *b)
{
    int order;

    if ((a->header.ttl > 0) != (b->header.ttl > 0))
        return a->header.ttl > 0;
    if (a->header.wall_ms / 1000 + a->header.ttl != b->header.wall_ms / 1000 + b->header.ttl)
        return a->header.wall_ms / 1000 + a->header.ttl < b->header.wall_ms / 1000 + b->header.ttl;
    order = slice_compare(world->keys[key_a].routing, world->keys[key_b].routing);
    return order ? order < 0 : a->header.number < b->header.number;
}

bool model_sweep_one(struct model *model, uint32_t partition)
{
    CLEANUP(model_transaction_done) struct model_transaction transaction = {0};
    const struct world *world = model->world;
    const struct model_item *first = NULL;
    unsigned first_key = 0, first_id = 0;

    for (unsigned key = 0; key < WORLD_KEYS; key++)
        for (unsigned id = 0; id < WORLD_IDS; id++) {
            const struct model_item *item = &model->items[key][id];

            if (world->keys[key].partition != partition || !item->stored ||
                !model_is_over(world, item) ||
                (first && !is_swept_before(world, key, item, first_key, first)))
                continue;
            first = item;
            first_key = key;
            first_id = id;
        }
    if (!first)
        return false;
    model_begin(&transaction, model);
    model_remove_expired(&transaction, first_key, first_id);
    return model_commit(&transaction, model) == ERROR_NONE;
}

size_t model_trim(struct model *model, uint32_t partition, size_t max)
{
    int64_t horizon = model->world->now_ms - model->world->config->feed_retention_ms;
    size_t removed = 0;

    for (size_t i = 0; i < model->record_count && removed < max;) {
        const struct model_record *record = &model->records[i];

        if (record->partition == partition && record->wall_ms < horizon &&
            !is_of_item(record, partition, &model->items[record->key][record->id])) {
            model->partitions[partition].trimmed_lsn =
                MAX(model->partitions[partition].trimmed_lsn, record->lsn);
            record_remove(model, i);
            removed++;
        } else {
            i++;
        }
    }
    if (removed)
        partition_stamp(model, partition);
    return removed;
}

bool model_transform_next(struct model *model, uint32_t partition, struct slice *position,
                          size_t *remade)
{
    const struct world *world = model->world;
    struct model_item *next = NULL;
    struct slice next_key = SLICE_NONE;

    for (unsigned key = 0; key < WORLD_KEYS; key++)
        for (unsigned id = 0; id < WORLD_IDS; id++) {
            struct slice item_key = world->item_keys[key][id];

            if (world->keys[key].partition != partition || !model->items[key][id].stored ||
                slice_compare(item_key, *position) <= 0 ||
                (next && slice_compare(item_key, next_key) > 0))
                continue;
            next = &model->items[key][id];
            next_key = item_key;
        }
    if (!next)
        return false;
    *position = next_key;
    if (next->header.policy_version != world->policy_version) {
        next->header.policy_version = world->policy_version;
        next->touched_at = ++model->sequence;
        partition_stamp(model, partition);
        ++*remade;
    }
    return true;
}
