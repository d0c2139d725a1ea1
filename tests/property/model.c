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
    *planned = (struct model_planned){.key = key, .id = id, .own = NO_ENTITY, .here = NO_ENTITY};
    return planned;
}

static const struct model_item *view_of(const struct model_transaction *transaction,
                                        const struct model_planned *planned)
{
    if (planned->written)
        return planned->here != NO_ENTITY ? &planned->view : NULL;
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

static int entity_new(struct model_transaction *transaction, unsigned key, unsigned id, bool stored)
{
    assert(transaction->entity_count < MODEL_PLANNED_MAX);
    transaction->entities[transaction->entity_count] = (struct model_entity){
        .key = key, .id = id, .stored_id = id, .stored = stored, .there = stored, .last = -1};
    return (int)transaction->entity_count++;
}

static int entity_of(struct model_transaction *transaction, struct model_planned *planned,
                     bool exists)
{
    if (exists && planned->written)
        return planned->here;
    if (!exists && planned->own != NO_ENTITY && !transaction->entities[planned->own].there)
        return planned->own;
    if (exists)
        return planned->own = entity_new(transaction, planned->key, planned->id, true);
    return entity_new(transaction, planned->key, planned->id, false);
}

static void step_add(struct model_transaction *transaction, struct model_step step)
{
    struct model_entity *entity = &transaction->entities[step.entity];

    assert(transaction->step_count < MODEL_PLANNED_MAX);
    step.before = entity->last;
    entity->last = (int)transaction->step_count;
    entity->there = step.after.data != NULL;
    entity->id = step.id;
    transaction->steps[transaction->step_count++] = step;
}

static enum error_code write_to(struct model_transaction *transaction, unsigned key, unsigned id,
                                unsigned new_id, enum transaction_verb verb, struct slice document,
                                const struct transaction_options *options)
{
    static const struct transaction_options none;
    struct model_planned *planned = planned_of(transaction, key, id), *to;
    const struct model_item *item = view_of(transaction, planned);
    enum error_code code = write_check(item, verb, options ? options : &none);
    struct model_item view = {.stored = true, .document = document};
    struct model_step step = {.id = new_id,
                              .after = verb == TRANSACTION_DELETE ? SLICE_NONE : document,
                              .flags = options && options->not_indexed ? ITEM_NOT_INDEXED : 0};

    if (item)
        view.header = item->header;
    if (code == ERROR_NONE && verb != TRANSACTION_DELETE)
        code = ttl_of(document, &view.header.ttl);
    if (code != ERROR_NONE)
        return code;
    to = planned_of(transaction, key, new_id);
    if (to != planned && view_of(transaction, to))
        return ERROR_ITEM_EXISTS;
    view.header.flags = step.flags;
    step.ttl = view.header.ttl;
    step.entity = entity_of(transaction, planned, item != NULL);
    step_add(transaction, step);
    planned->written = to->written = true;
    planned->here = NO_ENTITY;
    to->expired = false;
    to->here = step.after.data ? step.entity : NO_ENTITY;
    to->view = view;
    return ERROR_NONE;
}

enum error_code model_write(struct model_transaction *transaction, unsigned key, unsigned id,
                            enum transaction_verb verb, struct slice document,
                            const struct transaction_options *options)
{
    return write_to(transaction, key, id, id, verb, document, options);
}

enum error_code model_rename(struct model_transaction *transaction, unsigned key, unsigned id,
                             unsigned new_id, struct slice document,
                             const struct transaction_options *options)
{
    return write_to(transaction, key, id, new_id, TRANSACTION_REPLACE, document, options);
}

void model_remove_expired(struct model_transaction *transaction, unsigned key, unsigned id)
{
    struct model_planned *planned = planned_of(transaction, key, id);
    const struct model_item *item = &transaction->snapshot->items[key][id];

    if (!item->stored || !model_is_over(transaction->snapshot->world, item) || planned->written)
        return;
    planned->written = planned->expired = true;
}

/* --- Committing ------------------------------------------------------------------------------ */

/* What is stored but over, and must go: swept, in the way of a unique key, or of an item that had
 * its id for a while or gets it. */
static bool is_evicted(const struct model_transaction *transaction,
                       const struct model_planned *planned)
{
    const struct model_item *item = &transaction->snapshot->items[planned->key][planned->id];

    return item->stored && model_is_over(transaction->snapshot->world, item) && planned->written &&
           (planned->here == NO_ENTITY || transaction->entities[planned->here].stored);
}

/* Without any the commit has nothing to do, and nothing to rely on. */
static bool has_changes(const struct model_transaction *transaction)
{
    for (size_t i = 0; i < transaction->planned_count; i++)
        if (is_evicted(transaction, &transaction->planned[i]))
            return true;
    return transaction->entity_count > 0;
}

/* What an item was before: itself, or what was over in its place. NULL: nothing. */
static const struct model_item *before_of(const struct model_transaction *transaction,
                                          const struct model_entity *entity)
{
    const struct model_item *items = transaction->snapshot->items[entity->key];

    if (entity->stored)
        return &items[entity->stored_id];
    return entity->there && items[entity->id].stored &&
                   model_is_over(transaction->snapshot->world, &items[entity->id])
               ? &items[entity->id]
               : NULL;
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
    for (size_t i = 0; i < transaction->entity_count; i++) {
        const struct model_entity *entity = &transaction->entities[i];
        unsigned key = entity->key, id = entity->id;
        struct slice after = transaction->steps[entity->last].after;

        for (size_t u = 0; entity->there && u < world->definition.unique_key_count; u++) {
            struct slice wanted = model_unique_key(world, key, u, after, arena);
            const struct model_item *before =
                entity->stored ? &transaction->snapshot->items[key][entity->stored_id] : NULL;

            if (before &&
                slice_equal(model_unique_key(world, key, u, before->document, arena), wanted))
                continue;
            claims[(*ret_count)++] = wanted;
            owners_evict(transaction, key, id, u, wanted, arena);
        }
        for (size_t u = 0; entity->there && u < world->definition.unique_key_count; u++)
            if (unique_clashes(transaction, key, id, u,
                               model_unique_key(world, key, u, after, arena), arena))
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

        if ((is_evicted(transaction, planned) || planned->relied) &&
            model->items[planned->key][planned->id].touched_at > moment)
            return true;
    }
    for (size_t i = 0; i < transaction->entity_count; i++) {
        const struct model_entity *entity = &transaction->entities[i];

        if (model->items[entity->key][entity->stored_id].touched_at > moment &&
            (entity->stored || entity->stored_id == entity->id))
            return true;
        if (model->items[entity->key][entity->id].touched_at > moment &&
            (entity->there || !entity->stored))
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
                         const struct model_entity *entity)
{
    const struct world *world = transaction->snapshot->world;
    const struct model_item *before = before_of(transaction, entity);
    int64_t growth = 0;

    if (before)
        growth -= stored_bytes(world, entity->key, entity->stored ? entity->stored_id : entity->id,
                               before->document.len);
    if (entity->there)
        growth += stored_bytes(world, entity->key, entity->id,
                               transaction->steps[entity->last].after.len);
    return growth;
}

static int64_t eviction_growth(const struct model_transaction *transaction,
                               const struct model_planned *planned)
{
    return -stored_bytes(transaction->snapshot->world, planned->key, planned->id,
                         transaction->snapshot->items[planned->key][planned->id].document.len);
}

static bool is_full(const struct model_transaction *transaction, const struct model *model)
{
    int64_t max = model->world->config->logical_bytes_max;

    for (unsigned key = 0; key < WORLD_KEYS; key++) {
        int64_t growth = 0;

        for (size_t i = 0; i < transaction->entity_count; i++)
            if (transaction->entities[i].key == key)
                growth += growth_of(transaction, &transaction->entities[i]);
        for (size_t i = 0; i < transaction->planned_count; i++)
            if (transaction->planned[i].key == key &&
                is_evicted(transaction, &transaction->planned[i]))
                growth += eviction_growth(transaction, &transaction->planned[i]);
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

static void former_record_remove(struct model *model, uint32_t partition,
                                 const struct model_item *before)
{
    for (size_t i = 0; i < model->record_count; i++)
        if (is_of_item(&model->records[i], partition, before)) {
            record_remove(model, i);
            return;
        }
}

/* The last version of an item, and where all are kept those before it. */
static void records_apply(const struct model_transaction *transaction,
                          const struct model_entity *entity, struct model *model,
                          const struct item_header *stamp)
{
    const struct model_item *before = before_of(transaction, entity);
    bool keeps_versions = model->world->config->feed_retention_ms > 0;
    bool exists = before && entity->stored;
    int order[MODEL_PLANNED_MAX], count = 0;
    struct model_record record = {
        .partition = model->world->keys[entity->key].partition,
        .lsn = stamp->lsn,
        .wall_ms = stamp->wall_ms,
        .key = entity->key,
        .number = stamp->number,
        .previous_lsn = before ? before->header.lsn : 0,
        .previous_ordinal = before ? before->header.ordinal : 0,
    };

    if (before && !keeps_versions)
        former_record_remove(model, record.partition, before);
    for (int i = entity->last; i >= 0 && (keeps_versions || count == 0);
         i = transaction->steps[i].before)
        order[count++] = i;
    while (count-- > 0) {
        const struct model_step *step = &transaction->steps[order[count]];

        record.kind = !step->after.data ? FEED_DELETE : exists ? FEED_REPLACE : FEED_CREATE;
        record.ordinal = (uint32_t)order[count];
        record.id = step->id;
        record.image = keeps_versions ? step->after : SLICE_NONE;
        if (keeps_versions || step->after.data)
            record_add(model, &record);
        exists = step->after.data != NULL;
        record.previous_lsn = record.lsn;
        record.previous_ordinal = record.ordinal;
    }
}

static void entity_apply(const struct model_transaction *transaction,
                         const struct model_entity *entity, struct model *model)
{
    const struct world *world = model->world;
    const struct model_step *last = &transaction->steps[entity->last];
    const struct model_item *before = before_of(transaction, entity);
    uint32_t partition = world->keys[entity->key].partition;
    struct item_header header = {
        .flags = last->flags,
        .number = entity->stored ? before->header.number : 0,
        .lsn = model->partitions[partition].lsn,
        .origin = WORLD_FIRST_PARTITION + partition,
        .ordinal = (uint32_t)entity->last,
        .wall_ms = model->partitions[partition].wall_ms,
        .ttl = last->ttl,
        .policy_version = world->space.policy_version,
    };

    if (!entity->stored)
        header.number = (uint64_t)(WORLD_FIRST_PARTITION + partition) << 32 |
                        model->partitions[partition].counter++;
    if (header.ttl == 0 && world->config->default_ttl > 0)
        header.flags |= ITEM_EXPIRY_BY_DEFAULT;
    model->logicals[entity->key].touched = true;
    model->logicals[entity->key].bytes += growth_of(transaction, entity);
    model->logicals[entity->key].items += entity->there - (before != NULL);
    records_apply(transaction, entity, model, &header);
    if (entity->there)
        model->items[entity->key][entity->id] =
            (struct model_item){.stored = true, .header = header, .document = last->after};
}

static void eviction_apply(const struct model_transaction *transaction,
                           const struct model_planned *planned, struct model *model,
                           uint32_t ordinal)
{
    const struct model_item *before = &transaction->snapshot->items[planned->key][planned->id];
    uint32_t partition = model->world->keys[planned->key].partition;
    struct model_record record = {.partition = partition,
                                  .lsn = model->partitions[partition].lsn,
                                  .ordinal = ordinal,
                                  .wall_ms = model->partitions[partition].wall_ms,
                                  .key = planned->key,
                                  .id = planned->id,
                                  .kind = FEED_EXPIRE,
                                  .number = before->header.number,
                                  .previous_lsn = before->header.lsn,
                                  .previous_ordinal = before->header.ordinal};

    model->logicals[planned->key].touched = true;
    model->logicals[planned->key].bytes += eviction_growth(transaction, planned);
    model->logicals[planned->key].items--;
    if (model->world->config->feed_retention_ms > 0)
        record_add(model, &record);
    else
        former_record_remove(model, partition, before);
}

/* What is touched is empty until somebody is put there. */
static void item_touch(struct model *model, unsigned key, unsigned id)
{
    model->items[key][id] = (struct model_item){0};
}

static void partition_stamp(struct model *model, uint32_t partition)
{
    model->partitions[partition].lsn++;
    model->partitions[partition].wall_ms =
        MAX(model->partitions[partition].wall_ms, model->world->now_ms);
}

/* Everything that leaves its place does so before anything is put somewhere. */
static void places_clear(const struct model_transaction *transaction, struct model *model)
{
    for (size_t i = 0; i < transaction->entity_count; i++) {
        const struct model_entity *entity = &transaction->entities[i];

        if (entity->stored)
            item_touch(model, entity->key, entity->stored_id);
        if (entity->there)
            item_touch(model, entity->key, entity->id);
    }
    for (size_t i = 0; i < transaction->planned_count; i++)
        if (is_evicted(transaction, &transaction->planned[i]))
            item_touch(model, transaction->planned[i].key, transaction->planned[i].id);
}

static void places_note(const struct model_transaction *transaction, struct model *model)
{
    for (size_t i = 0; i < transaction->entity_count; i++) {
        const struct model_entity *entity = &transaction->entities[i];

        if (entity->stored)
            model->items[entity->key][entity->stored_id].touched_at = model->sequence;
        if (entity->there || !entity->stored)
            model->items[entity->key][entity->id].touched_at = model->sequence;
    }
    for (size_t i = 0; i < transaction->planned_count; i++)
        if (is_evicted(transaction, &transaction->planned[i]))
            model->items[transaction->planned[i].key][transaction->planned[i].id].touched_at =
                model->sequence;
}

static int record_compare(const void *left, const void *right)
{
    const struct model_record *a = left, *b = right;

    if (a->partition != b->partition)
        return a->partition < b->partition ? -1 : 1;
    if (a->lsn != b->lsn)
        return a->lsn < b->lsn ? -1 : 1;
    return (a->ordinal > b->ordinal) - (a->ordinal < b->ordinal);
}

static void transaction_apply(const struct model_transaction *transaction, struct model *model)
{
    uint32_t ordinal = (uint32_t)transaction->step_count;
    bool stamped[WORLD_PARTITIONS] = {false};

    if (!has_changes(transaction))
        return;
    model->sequence++;
    for (size_t i = 0; i < transaction->planned_count; i++) {
        const struct model_planned *planned = &transaction->planned[i];
        uint32_t partition = model->world->keys[planned->key].partition;

        if (!planned->written || stamped[partition])
            continue;
        partition_stamp(model, partition);
        stamped[partition] = true;
    }
    places_clear(transaction, model);
    for (size_t i = 0; i < transaction->entity_count; i++)
        entity_apply(transaction, &transaction->entities[i], model);
    for (size_t i = 0; i < transaction->planned_count; i++)
        if (is_evicted(transaction, &transaction->planned[i]))
            eviction_apply(transaction, &transaction->planned[i], model, ordinal++);
    places_note(transaction, model);
    if (model->record_count)
        qsort(model->records, model->record_count, sizeof *model->records, record_compare);
}

bool model_evicts_across(const struct model_transaction *transaction)
{
    const struct world *world = transaction->snapshot->world;
    const struct model_planned *first = NULL;

    for (size_t i = 0; i < transaction->planned_count; i++) {
        const struct model_planned *planned = &transaction->planned[i];

        if (!is_evicted(transaction, planned))
            continue;
        if (first && world->keys[first->key].partition != world->keys[planned->key].partition)
            return true;
        first = planned;
    }
    return false;
}

enum error_code model_commit(struct model_transaction *transaction, struct model *model)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice claims[3 * MODEL_PLANNED_MAX];
    size_t claim_count;
    enum error_code code;

    for (size_t i = 0; i < transaction->step_count; i++)
        if (transaction->steps[i].after.len > model->world->space.item_bytes_max)
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
    transaction.step_count++; /* it is a write like others, if of no item that lives */
    return model_commit(&transaction, model) == ERROR_NONE;
}

/* The place of the version before a record; record_count: it is gone, or there was none. */
static size_t previous_find(const struct model *model, const struct model_record *of)
{
    for (size_t i = 0; i < model->record_count && of->previous_lsn; i++)
        if (model->records[i].partition == of->partition &&
            model->records[i].lsn == of->previous_lsn &&
            model->records[i].ordinal == of->previous_ordinal)
            return i;
    return model->record_count;
}

/* A version goes when the one behind it is older than the retention, a delete when it is itself,
 * and one that nothing leads to after twice that time. */
size_t model_trim(struct model *model, uint32_t partition, size_t max)
{
    int64_t retention_ms = model->world->config->feed_retention_ms;
    int64_t horizon = model->world->now_ms - retention_ms;
    bool *goes = memory_alloc_zero(model->record_count + 1);
    size_t removed = 0;

    for (size_t i = 0; i < model->record_count && removed < max; i++) {
        const struct model_record *record = &model->records[i];
        size_t previous = previous_find(model, record);
        bool is_delete = record->kind == FEED_DELETE || record->kind == FEED_EXPIRE;

        if (record->partition != partition || record->wall_ms >= horizon)
            continue;
        if (previous < model->record_count && !goes[previous]) {
            goes[previous] = true;
            removed++;
        }
        if (!goes[i] && (is_delete || (record->wall_ms < horizon - retention_ms &&
                                       !is_of_item(record, partition,
                                                   &model->items[record->key][record->id])))) {
            goes[i] = true;
            removed++;
        }
    }
    for (size_t i = model->record_count; i-- > 0;)
        if (goes[i]) {
            model->partitions[partition].trimmed_lsn =
                MAX(model->partitions[partition].trimmed_lsn, model->records[i].lsn);
            record_remove(model, i);
        }
    memory_free(goes);
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
