/* Why there is no second item: every creation under a base and id happens while it is claimed, and
 * what was created before the claim is seen by the seeks that follow it. That needs the map to be
 * the last one when the claim begins: a partition of an older map may lack what was written since.
 * A map that is replaced later does no harm, for meanwhile nobody else creates this id. */
#include "item/claim.h"

#include "base/random.h"
#include "document/order.h"
#include "item/locate.h"
#include "partition/synthetic.h"
#include "throughput/cost.h"

enum {
    /* Entries of one id looked at in a partition. Who uses one id under more bases than this has
     * every suffix of the base looked at instead. */
    ENTRIES_MAX = 64,
    FOUND_MAX = 2, /* of one more it is only of interest that there are several */
};

bool claim_is_needed(const struct partition_definition *definition, const struct partition_key *key,
                     enum claim_purpose purpose)
{
    return definition->synthetic &&
           (key->open ||
            (purpose == CLAIM_CREATE && definition->synthetic->kind == PARTITION_RANDOM_SUFFIX));
}

static bool missing(struct error *err)
{
    return error_set(err, ERROR_ITEM_MISSING,
                     "entity with the specified id does not exist in the system");
}

/* --- Paying ---------------------------------------------------------------------------------- */

/* One for each physical partition: all of them are admitted, or none. */
struct seeks {
    struct metering *list;
    size_t count;
};

static bool seeks_begin(struct seeks *seeks, const struct claim *claim, struct error *err)
{
    struct item_operation *op = claim->op;
    size_t count;
    const struct partition_span *spans = partition_map_spans(claim->space.map, &count);

    *seeks = (struct seeks){.list = ARENA_ARRAY(op->arena, struct metering, count)};
    for (; seeks->count < count; seeks->count++) {
        struct metering_request request = {.partition = spans[seeks->count].id,
                                           .price_cru = cost_id_seek()};

        if (metering_begin(&seeks->list[seeks->count], op->meters, &request, &op->metered, err))
            continue;
        while (seeks->count > 0)
            metering_drop(&seeks->list[--seeks->count]);
        return false;
    }
    return true;
}

static int64_t seeks_end(struct seeks *seeks)
{
    int64_t cru = 0;

    for (size_t i = 0; i < seeks->count; i++) {
        metering_end(&seeks->list[i], cost_id_seek());
        cru = cost_add(cru, cost_id_seek());
    }
    return cru;
}

/* --- Looking --------------------------------------------------------------------------------- */

/* Items with an id and a key that closes the one wanted. */
struct looking {
    const struct item_space *space;
    const struct partition_key *wanted;
    const struct document_value *id;
    struct arena *arena;
    struct slice id_bytes;
    struct partition_key found[FOUND_MAX];
    size_t count;
};

/* Is this entry's item one of them? It may have expired. */
static bool hit_take(struct looking *looking, const struct item_scope *scope,
                     const struct item_index_hit *hit, struct error *err)
{
    const struct partition_definition *definition = &looking->space->definition->key;
    struct item_key_parts parts;
    struct partition_key key;
    struct item item;

    if (!item_key_split(definition, hit->key, &parts, err))
        return false;
    if (!slice_equal(parts.id, looking->id_bytes))
        return true;
    if (!partition_key_read(definition, &parts.pk_id, looking->arena, &key, err))
        return false;
    if (!partition_key_closes(definition, &key, looking->wanted))
        return true;
    if (!item_scan_fetch(scope, NULL, &hit->key, 1, looking->arena, &item, err))
        return false;
    if (item.document.data && looking->count < FOUND_MAX)
        looking->found[looking->count++] = key;
    return true;
}

static bool span_look(struct looking *looking, const struct item_scope *scope,
                      const struct item_index_request *seek, bool *ret_gave_up, struct error *err)
{
    struct item_index_request request = *seek;
    bool known =
        looking->wanted->components[looking->space->definition->key.synthetic->target].type ==
        DOCUMENT_STRING;
    struct item_index_page page;

    do {
        if (!item_scan_index(scope, &request, looking->arena, &page, err))
            return false;
        for (size_t i = 0; i < page.count; i++)
            if (!hit_take(looking, scope, &page.hits[i], err))
                return false;
        if (page.more && known && looking->count == 0) {
            *ret_gave_up = true;
            return true;
        }
        request.after = page.position;
    } while (page.more && looking->count < FOUND_MAX && !known);
    return true;
}

/* The other way: every suffix of the base. */
static bool suffixes_look(struct looking *looking, struct error *err)
{
    struct items_reference *references;
    struct partition_key *keys;
    struct item *items;
    size_t count;

    if (!partition_synthetic_keys(&looking->space->definition->key, looking->wanted, looking->arena,
                                  &keys, &count, err))
        return false;
    references = ARENA_ARRAY(looking->arena, struct items_reference, count);
    items = ARENA_ARRAY(looking->arena, struct item, count);
    for (size_t i = 0; i < count; i++)
        references[i] = (struct items_reference){.key = keys[i], .id = *looking->id};
    if (!items_read_many(looking->space, references, count, looking->arena, items, err))
        return false;
    looking->count = 0;
    for (size_t i = 0; i < count && looking->count < FOUND_MAX; i++)
        if (items[i].document.data)
            looking->found[looking->count++] = keys[i];
    return true;
}

static bool look(struct looking *looking, struct error *err)
{
    const struct item_index_request seek =
        locate_seek(looking->space->definition, looking->id, ENTRIES_MAX, looking->arena);
    CLEANUP(buf_done) struct buf value;
    bool gave_up = false;
    size_t count;
    const struct partition_span *spans = partition_map_spans(looking->space->map, &count);

    buf_init(&value, BUF_DEFAULT_MAX);
    document_key_append(definition_names_of(looking->space->definition)->identity_order,
                        looking->id, &value);
    looking->id_bytes = arena_copy(looking->arena, buf_slice(&value));
    for (size_t i = 0; i < count && !gave_up && looking->count < FOUND_MAX; i++) {
        struct item_scope scope = item_space_span_scope(looking->space, &spans[i]);

        if (!span_look(looking, &scope, &seek, &gave_up, err))
            return false;
    }
    return !gave_up || suffixes_look(looking, err);
}

static bool single(const struct looking *looking, struct partition_key *ret_key, bool *ret_found,
                   struct error *err)
{
    if (looking->count > 1)
        return error_set(err, ERROR_BAD_REQUEST,
                         "several items have this id: name the value that the partition key is "
                         "made of");
    *ret_found = looking->count == 1;
    if (*ret_found)
        *ret_key = looking->found[0];
    return true;
}

static struct looking looking_of(const struct claim *claim, const struct partition_key *wanted)
{
    return (struct looking){
        .space = &claim->space, .wanted = wanted, .id = claim->id, .arena = claim->op->arena};
}

/* The key of the one item there is. Each partition admits its seek, and charges it. */
static bool find(struct claim *claim, const struct partition_key *wanted,
                 struct partition_key *ret_key, struct error *err)
{
    struct looking looking = looking_of(claim, wanted);
    struct seeks seeks;
    bool done, found = false;

    if (!seeks_begin(&seeks, claim, err))
        return false;
    done = look(&looking, err);
    claim->cru = cost_add(claim->cru, seeks_end(&seeks));
    return done && single(&looking, ret_key, &found, err) && (found || missing(err));
}

/* --- Claiming -------------------------------------------------------------------------------- */

/* The open form of a whole key: with its base. */
static struct partition_key opened(const struct partition_definition *definition,
                                   const struct partition_key *key)
{
    struct partition_key open = *key;
    struct document_value *made = &open.components[definition->synthetic->target];
    struct slice base;
    uint32_t number;

    if (!open.open && made->type == DOCUMENT_STRING &&
        partition_synthetic_split(definition->synthetic, made->text, &base, &number)) {
        *made = document_string(base);
        open.open = true;
    }
    return open;
}

static struct slice claim_bytes(const struct partition_key *open, const struct document_value *id,
                                struct arena *arena)
{
    CLEANUP(buf_done) struct buf bytes;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    partition_key_append(open, &bytes);
    document_key_append(DOCUMENT_ORDER_SQL, id, &bytes);
    return arena_copy(arena, buf_slice(&bytes));
}

static bool hold(struct claim *claim, const struct partition_key *open, bool wait, bool *ret_held,
                 struct error *err)
{
    struct slice bytes = claim_bytes(open, claim->id, claim->op->arena);

    *ret_held = true;
    if (wait)
        item_gates_claim(claim->op->space->gates, bytes);
    else if (!item_gates_claim_try(claim->op->space->gates, bytes)) {
        *ret_held = false;
        return true;
    }
    claim->held = bytes;
    while (claim->space.is_current && !claim->space.is_current(claim->space.nodes))
        if (!item_space_renew(&claim->space, err))
            return false;
    return true;
}

static bool draw(struct claim *claim, const struct partition_key *open, struct arena *arena,
                 struct error *err)
{
    const struct partition_definition *definition = &claim->space.definition->key;
    const struct partition_synthetic *synthetic = definition->synthetic;
    uint64_t drawn;

    random_secret(&drawn, sizeof drawn);
    claim->key = *open;
    claim->key.open = false;
    return partition_synthetic_suffixed(synthetic, &open->components[synthetic->target],
                                        (uint32_t)(drawn % synthetic->suffixes) + 1, arena,
                                        &claim->key.components[synthetic->target], err);
}

/* What the key of a key that is not random must have been. */
static bool key_settle(struct claim *claim, const struct partition_key *key, struct error *err)
{
    const struct partition_synthetic *synthetic = claim->space.definition->key.synthetic;

    if (key->components[synthetic->target].type != DOCUMENT_UNDEFINED ||
        synthetic->missing != PARTITION_MISSING_UNDEFINED)
        return error_set(err, ERROR_BAD_REQUEST,
                         "PartitionKey value must be supplied for this operation: whole, or as the "
                         "%u values it is made of",
                         synthetic->source_count);
    claim->key = *key;
    claim->key.open = false;
    return true;
}

bool claim_take(struct claim *claim, bool wait, bool *ret_taken, struct error *err)
{
    const struct item_operation *op = claim->op;
    const struct partition_definition *definition = &op->space->definition->key;
    uint8_t target = definition->synthetic->target;
    struct partition_key open = opened(definition, &op->key);
    enum claim_purpose purpose = claim->purpose;

    *claim = (struct claim){
        .op = claim->op, .id = claim->id, .purpose = purpose, .space = *op->space, .key = op->key};
    claim->space.renewed = false;
    *ret_taken = true;
    if (definition->synthetic->kind != PARTITION_RANDOM_SUFFIX)
        return key_settle(claim, &op->key, err);
    if (!open.open) /* undefined, which has no suffixes */
        return true;
    if (purpose == CLAIM_CHANGE && open.components[target].type == DOCUMENT_UNDEFINED) {
        /* Whose turn it is depends on the base, so that is looked for first. */
        if (!find(claim, &open, &claim->key, err))
            return false;
        open = opened(&claim->space.definition->key, &claim->key);
        if (!open.open)
            return true;
    }
    if (purpose == CLAIM_READ)
        return find(claim, &open, &claim->key, err);
    if (!hold(claim, &open, wait, ret_taken, err) || !*ret_taken)
        return !*ret_taken;
    if (purpose == CLAIM_CHANGE)
        return find(claim, &open, &claim->key, err);
    claim->creates = true;
    claim->wanted = op->key;
    return !op->key.open || draw(claim, &open, op->arena, err);
}

bool claim_look(struct claim *claim, bool *ret_moved, struct error *err)
{
    const struct partition_definition *definition = &claim->space.definition->key;
    struct partition_key open, there;
    struct looking looking = looking_of(claim, &open);
    size_t count;
    const struct partition_span *spans = partition_map_spans(claim->space.map, &count);
    bool found = false;

    *ret_moved = false;
    if (!claim->creates)
        return true;
    open = opened(definition, &claim->wanted);
    for (size_t i = 0; i < count; i++) {
        metering_charge(claim->op->meters, spans[i].id, cost_id_seek());
        claim->cru = cost_add(claim->cru, cost_id_seek());
    }
    if (!look(&looking, err) || !single(&looking, &there, &found, err))
        return false;
    if (!found)
        return true;
    *ret_moved = !partition_key_equal(&claim->key, &there);
    claim->key = there;
    return claim->wanted.open || !*ret_moved ||
           error_set(err, ERROR_ITEM_EXISTS,
                     "entity with the specified id already exists in the system, with another "
                     "suffix");
}

void claim_release(struct claim *claim)
{
    if (claim->held.data)
        item_gates_unclaim(claim->op->space->gates, claim->held);
    claim->held = SLICE_NONE;
    item_space_release(&claim->space);
}
