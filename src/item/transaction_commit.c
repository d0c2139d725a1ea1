/* From what was planned to what is stored: a change for every item that was written, built into the
 * write sets of the partitions they are in. */
#include "item/transaction_private.h"

#include "base/bytes.h"
#include "item/write_record.h"
#include "partition/layout.h"
#include "throughput/cost.h"

static struct transaction_section *section_of(struct transaction *transaction,
                                              const struct item_scope *scope)
{
    for (size_t i = 0; i < transaction->part_count; i++)
        if (transaction->sections[i].scope->partition == scope->partition)
            return &transaction->sections[i];
    /* Of what is seen each may have an item that goes and one that comes. */
    transaction->sections[transaction->part_count] = (struct transaction_section){
        .scope = scope,
        .changes = ARENA_ARRAY(transaction->arena, struct write_set_change,
                               2 * transaction->seen_count + transaction->entity_count),
    };
    return &transaction->sections[transaction->part_count++];
}

static struct write_set_change *change_add(struct transaction *transaction,
                                           const struct transaction_seen *seen,
                                           struct write_set_change change)
{
    struct transaction_section *section = section_of(transaction, &seen->place->scope);

    assert(section->change_count <
           2 * transaction->seen_count + transaction->entity_count); /* as section_of allots */
    section->changes[section->change_count] = change;
    return &section->changes[section->change_count++];
}

/* The versions of an item that the transaction made and replaced or deleted itself. */
static void steps_add(const struct transaction *transaction,
                      const struct transaction_entity *entity, struct arena *arena,
                      struct write_set_change *change)
{
    struct write_set_step *steps;
    size_t count = 0;

    for (size_t i = transaction->planned[entity->last].before; i != NO_WRITE_BEFORE;
         i = transaction->planned[i].before)
        count++;
    if (count == 0)
        return;
    steps = ARENA_ARRAY(arena, struct write_set_step, count);
    change->steps = steps;
    change->step_count = count;
    for (size_t i = transaction->planned[entity->last].before; i != NO_WRITE_BEFORE;
         i = transaction->planned[i].before)
        steps[--count] =
            (struct write_set_step){.ordinal = (uint32_t)i,
                                    .key = transaction->planned[i].seen->key,
                                    .after = transaction->planned[i].after,
                                    .description = transaction->planned[i].description};
    assert(count == 0);
}

/* It is somewhere, or deleted, perhaps before anybody else could see it. */
struct write_set_change transaction_change_of(const struct transaction *transaction,
                                              const struct transaction_entity *entity,
                                              struct arena *arena)
{
    const struct transaction_planned *last = &transaction->planned[entity->last];
    const struct transaction_seen *stored = entity->stored;
    const struct transaction_seen *at = last->seen;
    struct write_set_change change = {.key = at->key,
                                      .before = stored ? &stored->stored : NULL,
                                      .ordinal = (uint32_t)entity->last};

    assert(entity->last < transaction->planned_count && last->entity == entity);
    assert(!entity->at || entity->at == at);
    if (entity->at) {
        change.after = last->after;
        change.ttl = last->ttl;
        change.flags = last->flags;
        change.description = last->description;
    }
    if (stored && at != stored)
        change.from = stored->key;
    if (!entity->at || change.from.data)
        change.is_succeeded = (stored ? stored : at)->here != NULL;
    if (entity->at && !stored && at->is_stored && at->is_over) {
        change.before = &at->stored; /* what was over goes with it */
        change.before_is_over = true;
    }
    steps_add(transaction, entity, arena, &change);
    return change;
}

static void entity_collect(struct transaction *transaction, struct transaction_entity *entity)
{
    struct write_set_change change = transaction_change_of(transaction, entity, transaction->arena);

    entity->change = change_add(transaction, transaction->planned[entity->last].seen, change);
}

/* Something stored that is over and in the way: of a unique key, or of an item that was here for a
 * while or comes from elsewhere; or one that makes room for newer ones. One that is made here takes
 * its place by itself. */
static bool must_go(const struct transaction_seen *seen)
{
    return seen->is_stored && (seen->is_over || seen->makes_room) && seen->is_written &&
           !(seen->here && !seen->here->stored);
}

void transaction_changes_collect(struct transaction *transaction, size_t places)
{
    uint32_t ordinal = (uint32_t)transaction->planned_count;

    transaction->part_count = 0;
    transaction->sections = ARENA_ARRAY(transaction->arena, struct transaction_section, places + 1);
    for (size_t i = 0; i < transaction->entity_count; i++)
        entity_collect(transaction, transaction->entities[i]);
    for (size_t i = 0; i < transaction->seen_count; i++) {
        const struct transaction_seen *seen = transaction->seen[i];

        if (must_go(seen))
            (void)change_add(transaction, seen,
                             (struct write_set_change){.key = seen->key,
                                                       .before = &seen->stored,
                                                       .before_is_over = !seen->makes_room,
                                                       .is_succeeded = seen->here != NULL,
                                                       .expired = !seen->makes_room,
                                                       .makes_room = seen->makes_room,
                                                       .ordinal = ordinal++});
    }
    assert(transaction->part_count <= places);
}

/* What is relied on goes to the part of its partition; if nothing is written there, to a part of
 * its own without operations. */
static struct commit_part *part_of(struct transaction *transaction,
                                   const struct transaction_place *place)
{
    struct commit_part *part;

    for (size_t i = 0; i < transaction->part_count; i++)
        if (transaction->parts[i].partition == place->scope.partition)
            return &transaction->parts[i];
    part = &transaction->parts[transaction->part_count];
    transaction->sections[transaction->part_count++] = (struct transaction_section){0};
    *part = (struct commit_part){.partition = place->scope.partition, .epoch = place->scope.epoch};
    return part;
}

static void scanned_add(struct transaction *transaction, const struct transaction_scanned *scanned)
{
    struct commit_part *part = part_of(transaction, scanned->place);
    struct engine_range *ranges =
        ARENA_ARRAY(transaction->arena, struct engine_range, part->scanned_count + 1);

    if (part->scanned_count)
        memcpy(ranges, part->scanned, part->scanned_count * sizeof *ranges);
    ranges[part->scanned_count++] = scanned->range;
    part->scanned = ranges;
}

static void relied_add(struct transaction *transaction, const struct transaction_seen *seen)
{
    struct commit_part *part = part_of(transaction, seen->place);
    struct slice *relied;

    relied = ARENA_ARRAY(transaction->arena, struct slice, part->relied_count + 1);
    if (part->relied_count)
        memcpy(relied, part->relied, part->relied_count * sizeof *relied);
    relied[part->relied_count++] =
        item_family_key(transaction->arena, PARTITION_FAMILY_ITEM, seen->key);
    part->relied = relied;
}

static const struct transaction_place *place_of(const struct transaction *transaction,
                                                const struct write_set_change *change)
{
    size_t i = 0;

    while (transaction->entities[i]->change != change)
        i++;
    assert(i < transaction->entity_count && transaction->entities[i]->at);
    return transaction->entities[i]->at->place;
}

static bool owner_see(struct transaction *transaction, const struct transaction_place *place,
                      uint64_t number, struct transaction_seen **ret_owner, struct error *err)
{
    const struct item_scope *scope = &place->scope;
    uint8_t key[9] = {PARTITION_FAMILY_NUMBER};
    struct engine_value value;

    bytes_put_be64(key + 1, number);
    if (!engine_get(scope->engine, transaction->snapshot, scope->partition,
                    slice_of(key, sizeof key), ENGINE_READ_ANY, transaction->arena, &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
        return error_set(err, ERROR_STORE_CORRUPT, "a unique key is owned by no item");
    return transaction_see(transaction, place, value.bytes, ret_owner, err);
}

/* Who owns a unique key that is claimed. *ret_owned false: nobody, or somebody who lets go of it.
 */
static bool claim_owner(struct transaction *transaction, const struct item_scope *scope,
                        const struct write_set *set, struct slice key, bool *ret_owned,
                        uint64_t *ret_owner, struct error *err)
{
    struct engine_value value;

    *ret_owned = false;
    if (!engine_get(scope->engine, transaction->snapshot, scope->partition, key, ENGINE_READ_ANY,
                    transaction->arena, &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
        return true;
    if (value.bytes.len != 8)
        return error_set(err, ERROR_STORE_CORRUPT, "a unique key has no owner");
    *ret_owner = bytes_get_be64(value.bytes.data);
    *ret_owned = !write_set_releases(set, key, *ret_owner);
    return true;
}

/* Somebody else owns a unique key that is claimed. If the owner's time is over, it is removed with
 * this transaction: so a stored item owns its unique keys for as long as it is stored, and whoever
 * removes it may remove them. */
static bool owner_yield(struct transaction *transaction, const struct transaction_place *place,
                        uint64_t number, bool *evicted, struct error *err)
{
    struct transaction_seen *owner;

    if (!owner_see(transaction, place, number, &owner, err))
        return false;
    if (owner->is_written && owner->expired)
        return true; /* another claim has seen to it */
    if (!owner->is_stored || !owner->is_over || owner->is_written)
        return error_set(err, ERROR_UNIQUE_KEY, "unique index constraint violation");
    owner->is_written = true;
    owner->after = SLICE_NONE;
    owner->expired = true;
    *evicted = true;
    return true;
}

/* Does another item of the transaction claim the same before it? Only where that is no error. */
static bool claimed_before(const struct write_set_unique *claims, size_t nth)
{
    for (size_t i = 0; claims[nth].conflict.data && i < nth; i++)
        if (slice_equal(claims[i].key, claims[nth].key))
            return true;
    return false;
}

/* With the index between quotes, where it has a name. */
static bool claim_refuse(const struct write_set_unique *claim, struct error *err)
{
    if (!claim->index)
        return error_set(err, ERROR_UNIQUE_KEY, "unique index constraint violation");
    return error_set(err, ERROR_UNIQUE_KEY, "unique index constraint violation: index \"%.*s\"",
                     SLICE_ARG(claim->index->name));
}

static bool claim_check(struct transaction *transaction, const struct transaction_section *section,
                        const struct write_set_unique *claims, size_t nth, bool *evicted,
                        struct error *err)
{
    const struct write_set_unique *claim = &claims[nth];
    uint64_t owner;
    bool owned;

    if (claimed_before(claims, nth)) {
        write_set_conflict(section->set, claim);
        return true;
    }
    if (!claim_owner(transaction, section->scope, section->set, claim->key, &owned, &owner, err))
        return false;
    if (!owned ||
        owner_yield(transaction, place_of(transaction, claim->change), owner, evicted, err))
        return true;
    if (err->code != ERROR_UNIQUE_KEY)
        return false;
    if (!claim->conflict.data)
        return claim_refuse(claim, err);
    write_set_conflict(section->set, claim); /* the index is being built: nothing is refused */
    return true;
}

static bool claims_check(struct transaction *transaction, const struct transaction_section *section,
                         bool *evicted, struct error *err)
{
    size_t count;
    const struct write_set_unique *claims = write_set_uniques(section->set, &count);

    for (size_t i = 0; i < count; i++)
        if (!claim_check(transaction, section, claims, i, evicted, err)) {
            transaction->refused = claims[i].change;
            return false;
        }
    return true;
}

bool transaction_unique_check(struct transaction *transaction, const struct document_value *id,
                              struct slice document, struct error *err)
{
    const struct transaction_place *place = transaction->place;
    const struct write_set_unique *claims;
    struct commit_part part;
    struct write_set *set;
    struct transaction_seen *seen, *other;
    struct write_set_change change;
    size_t count;

    if (!definition_is_unique(place->scope.definition))
        return true;
    if (!transaction_see(transaction, place,
                         item_key(definition_names_of(place->scope.definition), place->logical, id,
                                  transaction->arena),
                         &seen, err))
        return false;
    change = (struct write_set_change){.key = seen->key,
                                       .before = seen->is_stored ? &seen->stored : NULL,
                                       .before_is_over = seen->is_over,
                                       .after = document};
    if (!write_set_build(&place->scope, &change, 1, transaction->arena, &set, &part, err))
        return false;
    claims = write_set_uniques(set, &count);
    for (size_t i = 0; i < count; i++) {
        uint64_t owner;
        bool owned;

        if (!claim_owner(transaction, &place->scope, set, claims[i].key, &owned, &owner, err) ||
            (owned && !owner_see(transaction, place, owner, &other, err)))
            return false;
        if (owned && !claims[i].conflict.data && other->is_stored && !other->is_over &&
            !other->is_written)
            return claim_refuse(&claims[i], err);
    }
    return true;
}

void transaction_tell(struct transaction *transaction, const struct history_record *records,
                      size_t count)
{
    transaction->told = records;
    transaction->told_count = count;
}

bool transaction_has_told(const struct transaction *transaction)
{
    return transaction->told_ops;
}

/* Of containers: by their origin they stand before all items of the same commit. */
static void told_encode(struct transaction *transaction, struct engine_op *ops)
{
    for (size_t i = 0; i < transaction->told_count; i++)
        ops[i] = (struct engine_op){
            ENGINE_PUT,
            history_key_encode((struct history_place){.ordinal = (uint32_t)i}, transaction->arena),
            history_record_encode(&transaction->told[i], transaction->arena)};
    transaction->told_ops = ops;
}

static void told_stamp(const struct transaction *transaction, uint64_t time, int64_t wall_ms)
{
    for (size_t i = 0; i < transaction->told_count; i++) {
        const struct engine_op *op = &transaction->told_ops[i];

        bytes_put_be64((uint8_t *)op->key.data + HISTORY_KEY_TIME_AT, time);
        bytes_put_be64((uint8_t *)op->value.data + HISTORY_VALUE_WALL_AT, (uint64_t)wall_ms);
        history_note(commit_times(transaction->commit), &transaction->told[i].origin, time);
    }
}

/* What the write sets add to the history of the node, as a part of its own. */
static void history_collect(struct transaction *transaction)
{
    struct engine_op *ops;
    size_t total = transaction->part_count ? transaction->told_count : 0, count;

    for (size_t i = 0; i < transaction->part_count; i++) {
        (void)write_set_history(transaction->sections[i].set, &count);
        total += count;
    }
    transaction->history = NULL;
    if (!total && !transaction->agreed_op)
        return;
    ops = ARENA_ARRAY(transaction->arena, struct engine_op, total + 1);
    if (total)
        told_encode(transaction, ops);
    total = total ? transaction->told_count : 0;
    for (size_t i = 0; i < transaction->part_count; i++) {
        const struct engine_op *part = write_set_history(transaction->sections[i].set, &count);

        if (count)
            memcpy(&ops[total], part, count * sizeof *ops);
        total += count;
    }
    transaction->history = &transaction->parts[transaction->part_count];
    *transaction->history = history_part(ops, total, transaction->arena);
    if (transaction->agreed_op) /* no record of the history: it is not among those counted */
        ops[transaction->history->op_count++] = *transaction->agreed_op;
    transaction->sections[transaction->part_count++] = (struct transaction_section){0};
}

/* Noted before it is visible, so that who waits does not miss it. */
static void history_stamp(struct transaction *transaction)
{
    uint64_t time = transaction->history->stamp.time;

    if (transaction->told_ops)
        told_stamp(transaction, time, transaction->history->stamp.wall_ms);
    for (size_t i = 0; i < transaction->part_count; i++) {
        const struct transaction_section *section = &transaction->sections[i];

        if (!section->set || !history_is_kept(&section->scope->history))
            continue;
        write_set_history_stamp(section->set, time);
        history_note(commit_times(section->scope->commit), &section->scope->history, time);
    }
}

static void transaction_stamp(struct commit_batch *batch)
{
    struct transaction *transaction = CONTAINER_OF(batch, struct transaction, batch);

    for (size_t i = 0; i < transaction->part_count; i++)
        if (transaction->sections[i].set)
            write_set_stamp(transaction->sections[i].set, &transaction->parts[i].stamp);
    if (transaction->history)
        history_stamp(transaction);
}

/* Does it belong to all parts of a key, and lie with the first? */
static bool is_of_whole_key(const struct transaction_record *record)
{
    return record->record && transaction_is_spread(&record->place->scope);
}

static struct engine_op record_op(const struct transaction *transaction,
                                  const struct transaction_record *r)
{
    return (struct engine_op){ENGINE_PUT,
                              write_record_key(r->record, r->place->logical, transaction->arena),
                              write_record_value(r->record, transaction->arena)};
}

/* The records of what is written in a partition. */
static void records_build(const struct transaction *transaction,
                          const struct transaction_section *section, struct commit_part *part)
{
    for (const struct transaction_record *r = transaction->records; r; r = r->next) {
        if (r->place->scope.partition != section->scope->partition || is_of_whole_key(r))
            continue;
        if (r->op) {
            write_set_add(section->set, r->op, part);
        } else {
            struct engine_op op = record_op(transaction, r);

            write_set_add(section->set, &op, part);
        }
    }
}

/* Partitions that may have a part, but for that of the history. */
static size_t places_count(const struct transaction *transaction)
{
    size_t places = transaction->seen_count;

    for (const struct transaction_scanned *scanned = transaction->scanned; scanned;
         scanned = scanned->next)
        places++;
    for (const struct transaction_record *r = transaction->records; r; r = r->next)
        places++;
    return places;
}

/* Builds all write sets; anew if that brought up items to be removed with them. */
static bool sections_build(struct transaction *transaction, struct error *err)
{
    bool evicted;

    do {
        size_t places = places_count(transaction);

        evicted = false;
        transaction_changes_collect(transaction, places);
        transaction->parts = ARENA_ARRAY(transaction->arena, struct commit_part, places + 1);
        for (size_t i = 0; i < transaction->part_count; i++) {
            struct transaction_section *section = &transaction->sections[i];

            if (!write_set_build(section->scope, section->changes, section->change_count,
                                 transaction->arena, &section->set, &transaction->parts[i], err) ||
                !claims_check(transaction, section, &evicted, err) ||
                (section->scope->definition->bound.bytes &&
                 !transaction_bound_keep(transaction, section, &evicted, err)))
                return false;
            records_build(transaction, section, &transaction->parts[i]);
        }
    } while (evicted);
    return true;
}

/* Of what was promised, an item may be over since: what was to be put beside it is, all the same.
 */
static void records_keep(struct transaction *transaction)
{
    for (const struct transaction_record *r = transaction->records; r; r = r->next) {
        struct commit_part *part = part_of(transaction, r->place);
        struct engine_op *ops;

        if (transaction->sections[part - transaction->parts].set)
            continue;  /* they are among its operations */
        assert(r->op); /* as promises keep them */
        ops = ARENA_ARRAY(transaction->arena, struct engine_op, part->op_count + 1);
        if (part->op_count)
            memcpy(ops, part->ops, part->op_count * sizeof *ops);
        ops[part->op_count++] = *r->op;
        part->ops = ops;
    }
}

/* Room for more parts than there are sections. */
static void parts_grow(struct transaction *transaction, size_t more)
{
    size_t had = transaction->part_count, places = places_count(transaction) + had + more + 1;
    struct transaction_section *sections =
        ARENA_ARRAY(transaction->arena, struct transaction_section, places);
    struct commit_part *parts = ARENA_ARRAY(transaction->arena, struct commit_part, places);

    memcpy(sections, transaction->sections, had * sizeof *sections);
    memcpy(parts, transaction->parts, had * sizeof *parts);
    memset(sections + had, 0, (places - had) * sizeof *sections);
    transaction->sections = sections;
    transaction->parts = parts;
}

/* --- What belongs to a whole key that is spread ---------------------------------------------- */

/* The part of the batch for the first part of a key. */
static struct commit_part *home_of(struct transaction *transaction, const struct item_scope *scope,
                                   struct slice logical)
{
    const struct partition_span *span = partition_map_find(scope->map, logical);

    for (size_t i = 0; i < transaction->part_count; i++)
        if (transaction->parts[i].partition == span->id)
            return &transaction->parts[i];
    assert(span->node == scope->node);
    transaction->parts[transaction->part_count] = (struct commit_part){
        .partition = span->id, .epoch = span->epoch, .writers = scope->writers};
    return &transaction->parts[transaction->part_count++];
}

static void delta_add(struct commit_part *part, const struct commit_delta *delta,
                      struct arena *arena)
{
    struct commit_delta *deltas;

    for (size_t i = 0; i < part->delta_count; i++)
        if (slice_equal(part->deltas[i].key, delta->key)) {
            for (size_t n = 0; n < COUNTER_NUMBERS; n++)
                part->deltas[i].amounts[n] += delta->amounts[n];
            return;
        }
    deltas = ARENA_ARRAY(arena, struct commit_delta, part->delta_count + 1);
    if (part->delta_count)
        memcpy(deltas, part->deltas, part->delta_count * sizeof *deltas);
    deltas[part->delta_count++] = *delta;
    part->deltas = deltas;
}

/* Sums of a logical partition are kept in its first part, whichever part an item is in: so a limit
 * counts over all of them, and to spread a key or to gather it changes no sum. */
static void sums_send(struct transaction *transaction, size_t nth)
{
    const struct item_scope *scope = transaction->sections[nth].scope;
    struct commit_part *from = &transaction->parts[nth];
    size_t kept = 0;

    for (size_t i = 0; i < from->delta_count; i++) {
        struct commit_delta delta = from->deltas[i];
        struct slice logical = slice_skip(delta.key, 2); /* empty: of the physical partition */
        struct commit_part *home = logical.len ? home_of(transaction, scope, logical) : from;

        if (home == from)
            from->deltas[kept++] = delta;
        else
            delta_add(home, &delta, transaction->arena);
    }
    from->delta_count = kept;
}

static void record_send(struct transaction *transaction, const struct transaction_record *record)
{
    struct commit_part *home = home_of(transaction, &record->place->scope, record->place->logical);
    struct engine_op *ops = ARENA_ARRAY(transaction->arena, struct engine_op, home->op_count + 1);

    if (home->op_count)
        memcpy(ops, home->ops, home->op_count * sizeof *ops);
    ops[home->op_count++] = record_op(transaction, record);
    home->ops = ops;
}

static void homes_collect(struct transaction *transaction)
{
    size_t sections = transaction->part_count, more = 0;

    for (size_t i = 0; i < sections; i++)
        if (transaction->sections[i].set && transaction_is_spread(transaction->sections[i].scope))
            more += transaction->parts[i].delta_count;
    for (const struct transaction_record *r = transaction->records; r; r = r->next)
        more += is_of_whole_key(r);
    if (!more)
        return;
    parts_grow(transaction, more);
    for (size_t i = 0; i < sections; i++)
        if (transaction->sections[i].set && transaction_is_spread(transaction->sections[i].scope))
            sums_send(transaction, i);
    for (const struct transaction_record *r = transaction->records; r; r = r->next)
        if (is_of_whole_key(r))
            record_send(transaction, r);
}

/* --- Entries that lie elsewhere than their items --------------------------------------------- */

static bool placed_collect(struct transaction *transaction, struct error *err)
{
    size_t sections = transaction->part_count, total = 0, count;

    for (size_t i = 0; i < sections; i++) {
        (void)write_set_placed(transaction->sections[i].set, &count);
        total += count;
    }
    if (!total)
        return true;
    parts_grow(transaction, total);
    for (size_t i = 0; i < sections; i++) {
        const struct transaction_section *grown = transaction->sections;
        struct commit_part *parts = transaction->parts;
        const struct write_placed *placed = write_set_placed(grown[i].set, &count);

        if (!write_placed_parts(grown[i].scope, placed, count, parts, &transaction->part_count,
                                transaction->arena, err))
            return false;
    }
    return true;
}

/* --- Charging --------------------------------------------------------------------------------
 */

/* What a write costs that turned one version into another, both of this transaction. */
static bool step_price(const struct transaction_place *place, struct write_set_change *step,
                       int64_t *ret_cru, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct commit_part part;
    struct write_set *set;

    if (!write_set_build(&place->scope, step, 1, arena, &set, &part, err))
        return false;
    *ret_cru = write_set_change_cost(step);
    return true;
}

/* Each of several writes of an item is charged as the write it was, one after the other. */
static bool steps_price(struct transaction *transaction, const struct transaction_entity *entity,
                        struct error *err)
{
    const struct write_set_change *change = entity->change;
    const struct item *before = change->before;
    struct item versions[2];

    for (size_t n = 0; n <= change->step_count; n++) {
        struct transaction_planned *planned =
            &transaction->planned[n < change->step_count ? change->steps[n].ordinal : entity->last];
        struct write_set_change step = {.key = planned->seen->key,
                                        .before = before,
                                        .before_is_over = n == 0 && change->before_is_over,
                                        .after = planned->after,
                                        .ttl = planned->ttl,
                                        .flags = planned->flags};
        struct item *version = &versions[n % 2];

        if (before && !slice_equal(before->key, step.key))
            step.from = before->key;
        if (!step_price(planned->seen->place, &step, &planned->charge_cru, err))
            return false;
        *version =
            (struct item){.header = {.flags = step.flags,
                                     .ttl = step.ttl,
                                     .policy_version = planned->seen->place->scope.policy_version},
                          .key = step.key,
                          .document = step.after};
        before = step.after.data ? version : NULL;
    }
    return true;
}

static bool entities_price(struct transaction *transaction, struct error *err)
{
    for (size_t i = 0; i < transaction->entity_count; i++) {
        const struct transaction_entity *entity = transaction->entities[i];

        assert(entity->change);
        if (entity->change->step_count == 0)
            transaction->planned[entity->last].charge_cru = write_set_change_cost(entity->change);
        else if (!steps_price(transaction, entity, err))
            return false;
    }
    return true;
}

static bool work_count(struct transaction *transaction, struct error *err)
{
    struct transaction_work *work = &transaction->work;

    if (!entities_price(transaction, err))
        return false;
    for (size_t i = 0; i < transaction->planned_count; i++)
        work->write_cru = cost_add(work->write_cru, transaction->planned[i].charge_cru);
    for (size_t i = 0; i < transaction->part_count; i++) {
        const struct transaction_section *section = &transaction->sections[i];

        for (size_t c = 0; c < section->change_count; c++) {
            const struct write_set_change *change = &section->changes[c];

            work->index_entries += change->index_puts + change->index_deletes;
            if (change->expired || change->makes_room)
                work->write_cru = cost_add(work->write_cru, write_set_change_cost(change));
        }
    }
    return true;
}

/* A pause may have begun since the writes were planned: by requests before this one, say. */
static bool writes_are_admitted(const struct transaction *transaction, struct error *err)
{
    const struct transaction_place *last = NULL;

    for (size_t i = 0; i < transaction->planned_count; i++) {
        const struct transaction_place *place = transaction->planned[i].seen->place;

        if (place != last && !item_scope_admits_write(&place->scope, place->logical, err))
            return false;
        last = place;
    }
    return true;
}

bool transaction_prepare(struct transaction *transaction, struct error *err)
{
    bool relies_on_all = transaction->agreed && !transaction->agreed_moment, relies;

    assert(transaction->is_open); /* committed once */
    if (!writes_are_admitted(transaction, err) || !sections_build(transaction, err) ||
        !work_count(transaction, err) || !placed_collect(transaction, err))
        return false;
    homes_collect(transaction);
    if (transaction->agreed && transaction->agreed->step == COMMIT_END)
        records_keep(transaction);
    history_collect(transaction);
    relies = transaction->part_count || transaction->agreed;
    for (size_t i = 0; relies && i < transaction->seen_count; i++)
        if (transaction->seen[i]->is_relied || relies_on_all)
            relied_add(transaction, transaction->seen[i]);
    for (const struct transaction_scanned *scanned = transaction->scanned; scanned && relies;
         scanned = scanned->next)
        scanned_add(transaction, scanned);
    transaction->batch = (struct commit_batch){
        .parts = transaction->parts,
        .part_count = transaction->part_count,
        .moment = transaction->moment,
        .stamp = transaction_stamp,
        .agreed = transaction->agreed,
    };
    /* A postgresql: snapshot holds a connection: let go before waiting for the commit. */
    engine_snapshot_free(TAKE(transaction->snapshot));
    transaction->is_open = false;
    return true;
}

bool transaction_commit(struct transaction *transaction, struct error *err)
{
    if (transaction->planned_count == 0)
        return true;
    return transaction_prepare(transaction, err) &&
           (transaction->part_count == 0 ||
            commit_run(transaction->commit, &transaction->batch, err));
}

static void commit_done(struct commit_batch *batch, const struct error *err)
{
    struct transaction *transaction = CONTAINER_OF(batch, struct transaction, batch);

    assert(transaction->done);
    transaction->done(transaction, err, transaction->context);
}

bool transaction_commit_start(struct transaction *transaction,
                              void (*done)(struct transaction *transaction, const struct error *err,
                                           void *context),
                              void *context, struct error *err)
{
    assert(done);
    if (transaction->planned_count && !transaction_prepare(transaction, err))
        return false;
    if (transaction->part_count == 0) {
        done(transaction, NULL, context);
        return true;
    }
    transaction->done = done;
    transaction->context = context;
    transaction->batch.done = commit_done;
    return commit_submit(transaction->commit, &transaction->batch, err);
}

static uint64_t lsn_in(const struct transaction *transaction, uint32_t partition)
{
    for (size_t i = 0; i < transaction->part_count; i++)
        if (transaction->parts[i].partition == partition)
            return transaction->parts[i].stamp.lsn;
    return 0;
}

uint64_t transaction_lsn(const struct transaction *transaction)
{
    return !transaction->first ? 0 : lsn_in(transaction, transaction->first->scope.partition);
}

struct transaction_work transaction_work(const struct transaction *transaction)
{
    return transaction->work;
}

/* --- Results ---------------------------------------------------------------------------------
 */

/* The item as a write left it; of a delete as it was before. */
static struct item version_of(const struct transaction *transaction, size_t nth)
{
    const struct transaction_planned *planned = &transaction->planned[nth];
    const struct transaction_entity *entity = planned->entity;
    struct item item = {.key = planned->seen->key, .document = planned->after};

    if (!entity)
        return planned->seen->stored;
    if (!planned->after.data)
        return planned->before == NO_WRITE_BEFORE ? entity->stored->stored
                                                  : version_of(transaction, planned->before);
    item.header = entity->change->header;
    item.header.ordinal = (uint32_t)nth;
    return item;
}

struct transaction_result transaction_result(const struct transaction *transaction, size_t nth)
{
    const struct transaction_planned *planned = &transaction->planned[nth];

    assert(nth < transaction->planned_count);
    return (struct transaction_result){
        .item = version_of(transaction, nth),
        .created = planned->created,
        .lsn = lsn_in(transaction, planned->seen->place->scope.partition),
        .charge_cru = planned->charge_cru,
    };
}

struct transaction_result transaction_outcome(const struct transaction *transaction, size_t nth)
{
    const struct transaction_planned *planned = &transaction->planned[nth];
    struct transaction_result result = transaction_result(transaction, nth);

    if (planned->entity) {
        result.item = version_of(transaction, planned->entity->last);
        if (!planned->entity->at)
            result.item.document = SLICE_NONE;
    }
    return result;
}

size_t transaction_write_count(const struct transaction *transaction)
{
    return transaction->planned_count;
}

uint32_t transaction_partition(const struct transaction *transaction, size_t nth)
{
    assert(nth < transaction->planned_count);
    return transaction->planned[nth].seen->place->scope.partition;
}

bool transaction_refused(const struct transaction *transaction, size_t *ret_nth)
{
    for (size_t i = 0; transaction->refused && i < transaction->entity_count; i++)
        if (transaction->entities[i]->change == transaction->refused) {
            *ret_nth = transaction->entities[i]->last;
            return true;
        }
    return false;
}
