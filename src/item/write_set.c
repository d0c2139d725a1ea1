/* Keys and values are built once, in the arena, with zeros where the commit will write; a list of
 * those places is kept. Entries of the index are compared without the parts that cannot differ. */
#include "item/write_set.h"

#include "base/bytes.h"
#include "document/bson.h"
#include "document/order.h"
#include "partition/difference.h"
#include "partition/layout.h"
#include "throughput/cost.h"

enum point_kind {
    POINT_NUMBER, /* of the change */
    POINT_LSN,
    POINT_WALL_MS,
    POINT_WALL_S, /* plus add */
    POINT_TIME,   /* of the history */
};

/* A place to be filled in. */
struct point {
    uint8_t *at;
    enum point_kind kind;
    uint32_t change;
    int32_t add;
};

enum { CLAIMS_TOGETHER_MAX = 8 * INDEX_CLAIMS_MAX }; /* of all items of a transaction */

struct write_set {
    struct write_set_change *changes;
    size_t change_count;
    uint32_t origin;
    struct arena *arena;

    struct engine_op *ops;
    size_t op_count, op_capacity;
    struct point *points;
    size_t point_count, point_capacity;
    struct slice *touched;
    size_t touched_count;
    struct write_set_unique *claims, *released;
    size_t looked_at; /* values of items in unique indexes */
    size_t claim_count, released_count;
    size_t claim_capacity, released_capacity, touched_capacity;
    struct commit_delta *deltas;
    size_t delta_count, delta_capacity;
    struct engine_op *history;
    size_t history_count, history_capacity;
    struct write_placed *placed;
    size_t placed_count, placed_capacity;
};

/* Where a change stands in building. */
struct builder {
    struct write_set *set;
    const struct item_scope *scope;
    struct write_set_change *change;
    uint32_t index;              /* of the change */
    bool keeps_number;           /* before and after are the same item */
    struct item_key_parts parts; /* of the key */
};

/* New ones, and those that are gone before anybody else could see them: clients were told of both.
 */
static bool wants_number(const struct write_set_change *change)
{
    return !change->is_carried && !change->reindexed &&
           (!change->before || (change->before_is_over && change->after.data));
}

/* --- Lists that grow in the arena ------------------------------------------------------------ */

static void *grown(struct arena *arena, void *old, size_t count, size_t *capacity, size_t size)
{
    void *bigger;

    if (count < *capacity)
        return old;
    *capacity = *capacity ? *capacity * 2 : 32;
    bigger = arena_alloc(arena, memory_array_size(*capacity, size));
    if (count)
        memcpy(bigger, old, count * size);
    return bigger;
}

static void op_add(struct write_set *set, struct engine_op op)
{
    set->ops = grown(set->arena, set->ops, set->op_count, &set->op_capacity, sizeof *set->ops);
    set->ops[set->op_count++] = op;
}

static void put(struct write_set *set, struct slice key, struct slice value)
{
    op_add(set, (struct engine_op){ENGINE_PUT, key, value});
}

static void delete (struct write_set *set, struct slice key)
{
    op_add(set, (struct engine_op){ENGINE_DELETE, key, SLICE_NONE});
}

static void touched_add(struct write_set *set, struct slice key)
{
    set->touched = grown(set->arena, set->touched, set->touched_count, &set->touched_capacity,
                         sizeof *set->touched);
    set->touched[set->touched_count++] = key;
}

static void point_add(struct write_set *set, struct slice bytes, size_t at, enum point_kind kind,
                      uint32_t change, int32_t add)
{
    assert(at <= INT32_MAX && change < set->change_count);
    set->points =
        grown(set->arena, set->points, set->point_count, &set->point_capacity, sizeof *set->points);
    set->points[set->point_count++] = (struct point){
        .at = (uint8_t *)bytes.data + at, .kind = kind, .change = change, .add = add};
}

/* The number of a new item; of one that is carried it is known. */
static void number_leave_open(struct builder *b, struct slice bytes, size_t at)
{
    if (!b->change->is_carried)
        point_add(b->set, bytes, at, POINT_NUMBER, b->index, 0);
}

static struct slice number_bytes(struct arena *arena, uint64_t number)
{
    uint8_t *bytes = arena_alloc(arena, 8);

    bytes_put_be64(bytes, number);
    return slice_of(bytes, 8);
}

/* --- Item and number ------------------------------------------------------------------------- */

/* Entries are remade: the item stays the version it is. */
static void header_keep(struct builder *b)
{
    assert(b->change->before);
    b->change->header = b->change->before->header;
    b->change->header.flags = b->change->flags;
    b->change->header.policy_version = b->scope->policy_version;
}

/* A migration brings it along. */
static void header_carry(struct builder *b)
{
    b->change->header = b->change->carried;
    b->change->header.flags = b->change->flags;
    b->change->header.policy_version = b->scope->policy_version;
}

static void header_open(struct builder *b)
{
    assert(wants_number(b->change) || b->change->before);
    b->change->header = (struct item_header){
        .flags = b->change->flags,
        .number = wants_number(b->change) ? 0 : b->change->before->header.number,
        .origin = b->scope->partition,
        .ordinal = b->change->ordinal,
        .ttl = b->change->ttl,
        .policy_version = b->scope->policy_version,
    };
}

/* It is deleted, or gets another id: then who writes it under the one it had is told of a conflict,
 * as is who makes another one of the id it gets. */
static void key_leave(struct builder *b)
{
    struct slice left = b->change->from.data ? b->change->from : b->change->key;
    struct slice key = item_family_key(b->set->arena, PARTITION_FAMILY_ITEM, left);

    touched_add(b->set, key);
    if (!b->change->is_succeeded)
        delete (b->set, key);
}

static void item_build(struct builder *b)
{
    struct write_set_change *change = b->change;
    struct slice key = item_family_key(b->set->arena, PARTITION_FAMILY_ITEM, change->key);
    uint8_t *stored;

    if (change->reindexed)
        header_keep(b);
    else if (change->is_carried)
        header_carry(b);
    else
        header_open(b);
    if (change->from.data || !change->after.data)
        key_leave(b);
    if (!change->after.data)
        return;
    touched_add(b->set, key);
    stored = arena_alloc(b->set->arena, ITEM_HEADER_LEN + change->after.len);
    item_header_encode(&change->header, stored);
    memcpy(stored + ITEM_HEADER_LEN, change->after.data, change->after.len);
    put(b->set, key, slice_of(stored, ITEM_HEADER_LEN + change->after.len));
    if (change->reindexed || change->is_carried)
        return;
    if (!b->keeps_number)
        point_add(b->set, slice_of(stored, 0), 2, POINT_NUMBER, b->index, 0);
    point_add(b->set, slice_of(stored, 0), 10, POINT_LSN, b->index, 0);
    point_add(b->set, slice_of(stored, 0), 26, POINT_WALL_MS, b->index, 0);
}

static void number_build(struct builder *b)
{
    struct arena *arena = b->set->arena;

    if (b->keeps_number) {
        if (b->change->from.data)
            put(b->set,
                item_family_key(arena, PARTITION_FAMILY_NUMBER,
                                number_bytes(arena, b->change->before->header.number)),
                b->change->key);
        return;
    }
    if (b->change->before)
        delete (b->set, item_family_key(arena, PARTITION_FAMILY_NUMBER,
                                        number_bytes(arena, b->change->before->header.number)));
    if (b->change->after.data) {
        struct slice key = item_family_key(arena, PARTITION_FAMILY_NUMBER,
                                           number_bytes(arena, b->change->header.number));

        put(b->set, key, b->change->key);
        number_leave_open(b, key, 1);
    }
}

/* --- Index ----------------------------------------------------------------------------------- */

/* i | entry | routing key | number -> pk and id, what the entry says; of format 2 nothing, the
 * number leads to the key */
static struct slice index_key(struct builder *b, struct slice entry, uint64_t number)
{
    size_t len = 1 + entry.len + b->parts.routing.len + 8;
    uint8_t *key = arena_alloc(b->set->arena, len);

    key[0] = PARTITION_FAMILY_INDEX;
    memcpy(key + 1, entry.data, entry.len);
    memcpy(key + 1 + entry.len, b->parts.routing.data, b->parts.routing.len);
    bytes_put_be64(key + len - 8, number);
    return slice_of(key, len);
}

static const struct index_policy *policy_of(const struct item_scope *scope,
                                            const struct item_header *header)
{
    uint32_t first = scope->policy_version - (uint32_t)scope->policies_before_count;

    if (header->policy_version < first || header->policy_version >= scope->policy_version)
        return scope->policy;
    return scope->policies_before[header->policy_version - first];
}

static bool entries_of(struct builder *b, const struct index_policy *policy, uint8_t flags,
                       struct slice document, struct index_entry **ret_entries, size_t *ret_count,
                       struct error *err)
{
    *ret_count = 0;
    *ret_entries = NULL;
    if (!document.data || flags & ITEM_NOT_INDEXED)
        return true;
    return index_entries(policy, document, b->set->arena, ret_entries, ret_count, err);
}

static struct slice entry_value(const struct builder *b, struct slice entry, struct slice said)
{
    assert(said.len == index_entry_said_len(entry));
    if (index_entry_is_numbered(entry))
        return SLICE("");
    return said.len ? arena_join(b->set->arena, (struct slice[]){b->parts.pk_id, said}, 2)
                    : b->parts.pk_id;
}

/* others: no value is what it will be. */
static struct partition_entry *entries_as_sets(struct builder *b, struct index_entry *entries,
                                               size_t count, bool others)
{
    struct partition_entry *set = ARENA_ARRAY(b->set->arena, struct partition_entry, count);

    for (size_t i = 0; i < count; i++)
        set[i] = (struct partition_entry){
            .key = entries[i].bytes,
            .value = others && !index_entry_is_numbered(entries[i].bytes) ? SLICE("another")
                                                                          : entries[i].said};
    return set;
}

/* The same item before and after: of the entries in both, the value changes with the id, and with
 * what they say. */
static void index_build_difference(struct builder *b, struct index_entry *old, size_t old_count,
                                   struct index_entry *new, size_t new_count)
{
    struct engine_op *ops = ARENA_ARRAY(b->set->arena, struct engine_op, old_count + new_count);
    bool renamed = b->change->from.data != NULL;
    size_t count = partition_difference(entries_as_sets(b, old, old_count, renamed), old_count,
                                        entries_as_sets(b, new, new_count, false), new_count, ops);
    uint64_t number = b->change->before->header.number;

    assert(b->keeps_number);
    for (size_t i = 0; i < count; i++) {
        struct slice key = index_key(b, ops[i].key, number);

        if (ops[i].kind == ENGINE_PUT)
            put(b->set, key, entry_value(b, ops[i].key, ops[i].value));
        else
            delete (b->set, key);
    }
}

/* --- Entries that lie elsewhere --- */

struct placed_list {
    struct write_placed *list;
    size_t count;
};

/* Takes those of a version out of its entries. */
static bool placed_take(struct builder *b, const struct index_policy *policy, struct slice document,
                        uint64_t number, struct index_entry *entries, size_t *count,
                        struct placed_list *ret_placed, struct error *err)
{
    size_t kept = 0;

    *ret_placed = (struct placed_list){ARENA_ARRAY(b->set->arena, struct write_placed, *count), 0};
    for (size_t i = 0; i < *count; i++) {
        const struct index_definition *index = index_policy_placed(policy, entries[i].bytes);

        if (!index)
            entries[kept++] = entries[i];
        else if (!write_placed_make(&b->scope->definition->key, index, document, entries[i].bytes,
                                    number, b->set->arena, &ret_placed->list[ret_placed->count++],
                                    err))
            return false;
    }
    *count = kept;
    return true;
}

static bool placed_has(const struct placed_list *placed, struct slice key)
{
    for (size_t i = 0; i < placed->count; i++)
        if (slice_equal(placed->list[i].op.key, key))
            return true;
    return false;
}

static void placed_add(struct builder *b, struct write_placed placed, enum engine_op_kind kind)
{
    struct write_set *set = b->set;

    placed.op.kind = kind;
    if (kind == ENGINE_DELETE) {
        placed.op.value = SLICE_NONE;
        b->change->index_deletes++;
    } else {
        b->change->index_puts++;
    }
    set->placed = grown(set->arena, set->placed, set->placed_count, &set->placed_capacity,
                        sizeof *set->placed);
    set->placed[set->placed_count++] = placed;
}

static bool placed_build(struct builder *b, struct index_entry *old, size_t *old_count,
                         struct index_entry *new, size_t *new_count, struct error *err)
{
    const struct item *before = b->change->before;
    struct placed_list gone = {0}, come = {0};

    if (before && !placed_take(b, policy_of(b->scope, &before->header), before->document,
                               before->header.number, old, old_count, &gone, err))
        return false;
    if (!placed_take(b, b->scope->policy, b->change->after,
                     b->keeps_number ? before->header.number : b->change->header.number, new,
                     new_count, &come, err))
        return false;
    for (size_t i = 0; i < gone.count; i++)
        if (!b->keeps_number || !placed_has(&come, gone.list[i].op.key))
            placed_add(b, gone.list[i], ENGINE_DELETE);
    for (size_t i = 0; i < come.count; i++) {
        if (b->keeps_number && placed_has(&gone, come.list[i].op.key))
            continue;
        placed_add(b, come.list[i], ENGINE_PUT);
        if (!b->keeps_number)
            number_leave_open(b, come.list[i].op.key, come.list[i].op.key.len - 8);
    }
    return true;
}

static bool index_build(struct builder *b, struct error *err)
{
    const struct item *before = b->change->before;
    struct index_entry *old = NULL, *new;
    size_t old_count = 0, new_count;

    if (before && !entries_of(b, policy_of(b->scope, &before->header), before->header.flags,
                              before->document, &old, &old_count, err))
        return false;
    if (!entries_of(b, b->scope->policy, b->change->flags, b->change->after, &new, &new_count, err))
        return false;
    if ((index_policy_places(b->scope->policy) ||
         (before && index_policy_places(policy_of(b->scope, &before->header)))) &&
        !placed_build(b, old, &old_count, new, &new_count, err))
        return false;
    if (b->keeps_number) {
        index_build_difference(b, old, old_count, new, new_count);
        return true;
    }
    for (size_t i = 0; i < old_count; i++)
        delete (b->set, index_key(b, old[i].bytes, before->header.number));
    for (size_t i = 0; i < new_count; i++) {
        struct slice key = index_key(b, new[i].bytes, b->change->header.number);

        put(b->set, key, entry_value(b, new[i].bytes, new[i].said));
        number_leave_open(b, key, key.len - 8);
    }
    return true;
}

/* --- Feed ------------------------------------------------------------------------------------ */

static struct slice feed_key(struct arena *arena, struct feed_place place)
{
    uint8_t *key = arena_alloc(arena, FEED_KEY_LEN);

    feed_key_encode(place, key);
    return slice_of(key, FEED_KEY_LEN);
}

static enum feed_kind kind_of(const struct builder *b, bool keeps_versions)
{
    const struct write_set_change *change = b->change;

    if (!change->after.data)
        return change->expired ? FEED_EXPIRE : FEED_DELETE;
    if (keeps_versions && change->step_count)
        return change->steps[change->step_count - 1].after.data ? FEED_REPLACE : FEED_CREATE;
    return b->keeps_number ? FEED_REPLACE : FEED_CREATE;
}

/* Of an item that is carried the last version is all there is to tell. */
static void feed_carry(struct builder *b)
{
    const struct item_header *header = &b->change->header;
    const struct item *before = b->change->before;
    struct feed_place place = {header->lsn, header->origin, header->ordinal};
    struct feed_record record = {.place = place,
                                 .kind = FEED_CREATE,
                                 .wall_ms = header->wall_ms,
                                 .number = header->number,
                                 .key = b->change->key};

    assert(b->change->is_carried);
    if (before)
        delete (b->set, feed_key(b->set->arena,
                                 (struct feed_place){before->header.lsn, before->header.origin,
                                                     before->header.ordinal}));
    if (!b->change->after.data)
        return;
    if (b->scope->definition->feed_retention_ms > 0)
        record.image = b->change->after;
    put(b->set, feed_key(b->set->arena, place), feed_record_encode(&record, b->set->arena));
}

/* Adds a record of this commit. Its place is filled in by the commit; so is that of the record
 * before it, if it is of the same one. */
static void feed_add(struct builder *b, const struct feed_record *record, uint32_t ordinal)
{
    struct slice key = feed_key(
        b->set->arena, (struct feed_place){.origin = b->scope->partition, .ordinal = ordinal});
    struct slice value = feed_record_encode(record, b->set->arena);

    put(b->set, key, value);
    point_add(b->set, key, 1, POINT_LSN, b->index, 0);
    point_add(b->set, value, FEED_VALUE_WALL_AT, POINT_WALL_MS, b->index, 0);
    if (wants_number(b->change))
        point_add(b->set, value, FEED_VALUE_NUMBER_AT, POINT_NUMBER, b->index, 0);
    if (record->previous.lsn == 0 && record->previous.origin)
        point_add(b->set, value, FEED_VALUE_PREVIOUS_AT, POINT_LSN, b->index, 0);
}

/* The versions that nobody but the transaction has seen, each behind the one before it. */
static void feed_steps_build(struct builder *b, struct feed_record *last)
{
    for (size_t i = 0; i < b->change->step_count; i++) {
        const struct write_set_step *step = &b->change->steps[i];
        bool was_there = i == 0 ? b->change->before && !b->change->before_is_over
                                : b->change->steps[i - 1].after.data != NULL;
        struct feed_record record = {.kind = !step->after.data ? FEED_DELETE
                                             : was_there       ? FEED_REPLACE
                                                               : FEED_CREATE,
                                     .key = step->key,
                                     .number = last->number,
                                     .previous = last->previous,
                                     .image = step->after};

        feed_add(b, &record, step->ordinal);
        last->previous =
            (struct feed_place){.origin = b->scope->partition, .ordinal = step->ordinal};
    }
}

static void feed_build(struct builder *b)
{
    const struct item *before = b->change->before;
    bool keeps_versions = b->scope->definition->feed_retention_ms > 0;
    struct feed_record record = {.kind = kind_of(b, keeps_versions), .key = b->change->key};

    if (before) {
        record.previous = (struct feed_place){.lsn = before->header.lsn,
                                              .origin = before->header.origin,
                                              .ordinal = before->header.ordinal};
        record.number = before->header.number;
        if (!keeps_versions)
            delete (b->set, feed_key(b->set->arena, record.previous));
    }
    if (!b->change->after.data && !keeps_versions)
        return;
    if (keeps_versions) {
        record.image = b->change->after;
        feed_steps_build(b, &record);
    }
    feed_add(b, &record, b->change->ordinal);
}

/* --- History --------------------------------------------------------------------------------- */

/* What one version of an item is to be told of. */
struct telling {
    enum history_kind kind;
    uint32_t ordinal;
    struct slice before, after; /* data NULL: none */
    struct slice description;
};

/* {_id}, behind the fields of the partition key where there is one. */
static void document_key_append_to(const struct builder *b, struct slice document, struct buf *out)
{
    const struct partition_definition *key = &b->scope->definition->key;
    struct slice identity = definition_names_of(b->scope->definition)->identity;
    size_t begin = document_append_object_begin(out, SLICE("k"));
    struct document_value value;
    bool has_identity = false;

    for (size_t i = 0; !key->system_key && i < key->path_count; i++) {
        CLEANUP(buf_done) struct buf name;

        buf_init(&name, DOCUMENT_PATH_BYTES_MAX);
        for (size_t s = 0; s < key->paths[i].count; s++) {
            if (s)
                buf_append_byte(&name, '.');
            buf_append_slice(&name, key->paths[i].segments[s].name);
        }
        if (document_path_find(&key->paths[i], document, &value))
            document_append(out, buf_slice(&name), &value);
        has_identity |= slice_equal(buf_slice(&name), identity);
    }
    if (!has_identity && document_find(document, identity, &value))
        document_append(out, identity, &value);
    document_end(out, begin);
}

static void part_append(struct buf *out, struct slice name, struct slice document)
{
    const struct document_value value = document_object(document);

    if (document.data)
        document_append(out, name, &value);
}

static void history_put(struct builder *b, uint32_t ordinal, const struct history_record *record,
                        struct slice *ret_value)
{
    struct write_set *set = b->set;
    struct slice key = history_key_encode(
        (struct history_place){.origin = b->scope->partition, .ordinal = ordinal}, set->arena);
    struct slice value = history_record_encode(record, set->arena);

    set->history = grown(set->arena, set->history, set->history_count, &set->history_capacity,
                         sizeof *set->history);
    set->history[set->history_count++] = (struct engine_op){ENGINE_PUT, key, value};
    point_add(set, key, HISTORY_KEY_TIME_AT, POINT_TIME, b->index, 0);
    point_add(set, value, HISTORY_VALUE_WALL_AT, POINT_WALL_MS, b->index, 0);
    b->change->history_bytes += key.len + value.len;
    *ret_value = value;
}

static void history_add(struct builder *b, const struct telling *telling)
{
    const struct history_origin *origin = &b->scope->history;
    struct history_record record = {.kind = telling->kind, .origin = *origin};
    struct slice value;
    CLEANUP(buf_done) struct buf payload;
    size_t begin;

    buf_init(&payload, ENGINE_VALUE_MAX);
    begin = document_begin(&payload);
    document_key_append_to(b, telling->after.data ? telling->after : telling->before, &payload);
    if (telling->kind == HISTORY_INSERT || telling->kind == HISTORY_REPLACE)
        part_append(&payload, SLICE("d"), telling->after);
    if (telling->kind == HISTORY_UPDATE)
        part_append(&payload, SLICE("u"), telling->description);
    if (origin->images) {
        if (telling->kind != HISTORY_INSERT)
            part_append(&payload, SLICE("b"), telling->before);
        if (telling->kind == HISTORY_UPDATE)
            part_append(&payload, SLICE("a"), telling->after);
    }
    document_end(&payload, begin);
    record.payload = buf_slice(&payload);
    history_put(b, telling->ordinal, &record, &value);
}

/* Two places for each version: before it what was over, or was known by another id, goes. */
static uint32_t history_ordinal(uint32_t ordinal, bool goes)
{
    return ordinal << 1 | !goes;
}

/* Which items followers have to look at: above all ordinals of what is told. */
static const uint32_t touched_ordinal = UINT32_C(1) << 31;

static void touched_tell(struct builder *b, bool was)
{
    const struct write_set_change *change = b->change;
    const struct history_record record = {
        .kind = HISTORY_TOUCHED,
        .origin = b->scope->history,
        .payload = number_bytes(b->set->arena, was ? change->before->header.number : 0)};
    struct slice value;

    history_put(b, touched_ordinal | history_ordinal(change->ordinal, was), &record, &value);
    if (!was)
        point_add(b->set, value, value.len - record.payload.len, POINT_NUMBER, b->index, 0);
}

/* The item that was there, and the one that is there where that is another. */
static void touched_build(struct builder *b)
{
    if (b->change->before)
        touched_tell(b, true);
    if (b->change->after.data && wants_number(b->change))
        touched_tell(b, false);
}

static void version_tell(struct builder *b, uint32_t ordinal, struct slice before,
                         struct slice after, struct slice description)
{
    history_add(b, &(struct telling){.kind = !after.data        ? HISTORY_DELETE
                                             : !before.data     ? HISTORY_INSERT
                                             : description.data ? HISTORY_UPDATE
                                                                : HISTORY_REPLACE,
                                     .ordinal = history_ordinal(ordinal, false),
                                     .before = before,
                                     .after = after,
                                     .description = description});
}

static void history_build(struct builder *b)
{
    const struct write_set_change *change = b->change;
    struct slice before = change->before ? change->before->document : SLICE_NONE;
    uint32_t first = change->step_count ? change->steps[0].ordinal : change->ordinal;

    b->change->history_bytes = 0;
    if (b->scope->history.followed)
        touched_build(b);
    if (!b->scope->history.kept)
        return;
    if (before.data && ((change->before_is_over && !change->expired) || change->from.data)) {
        history_add(b, &(struct telling){.kind = HISTORY_DELETE,
                                         .ordinal = history_ordinal(first, true),
                                         .before = before});
        before = SLICE_NONE;
    }
    for (size_t i = 0; i < change->step_count; i++) {
        const struct write_set_step *step = &change->steps[i];

        if (before.data || step->after.data)
            version_tell(b, step->ordinal, before, step->after, step->description);
        before = step->after;
    }
    if (before.data || change->after.data)
        version_tell(b, change->ordinal, before, change->after, change->description);
}

/* --- Expiry ---------------------------------------------------------------------------------- */

enum { EXPIRY_BY_DEFAULT = 0, EXPIRY_BY_OWN = 1 };

/* t | class | time | routing key | number */
static struct slice expiry_key(struct builder *b, uint8_t class, int64_t time_s, uint64_t number)
{
    size_t len = 1 + 1 + 8 + b->parts.routing.len + 8;
    uint8_t *key = arena_alloc(b->set->arena, len);

    key[0] = PARTITION_FAMILY_EXPIRY;
    key[1] = class;
    bytes_put_be64(key + 2, (uint64_t)time_s);
    memcpy(key + 10, b->parts.routing.data, b->parts.routing.len);
    bytes_put_be64(key + len - 8, number);
    return slice_of(key, len);
}

static void expiry_build(struct builder *b)
{
    const struct item *before = b->change->before;
    struct write_set_change *change = b->change;

    /* Where entries are remade, only one by default can come or go. */
    if (change->reindexed &&
        (change->ttl > 0 || !((before->header.flags ^ change->flags) & ITEM_EXPIRY_BY_DEFAULT)))
        return;
    if (before && before->header.flags & ITEM_EXPIRY_BY_DEFAULT)
        delete (b->set, expiry_key(b, EXPIRY_BY_DEFAULT, before->header.wall_ms / 1000,
                                   before->header.number));
    if (before && before->header.ttl > 0)
        delete (b->set,
                expiry_key(b, EXPIRY_BY_OWN, before->header.wall_ms / 1000 + before->header.ttl,
                           before->header.number));
    if (!change->after.data)
        return;
    if (change->ttl > 0 || change->flags & ITEM_EXPIRY_BY_DEFAULT) {
        uint8_t class = change->ttl > 0 ? EXPIRY_BY_OWN : EXPIRY_BY_DEFAULT;
        int64_t time_s = change->header.wall_ms / 1000 + MAX(change->ttl, 0);
        struct slice key = expiry_key(b, class, time_s, change->header.number);

        put(b->set, key, change->key);
        if (change->reindexed || change->is_carried)
            return;
        point_add(b->set, key, 2, POINT_WALL_S, b->index, change->ttl > 0 ? change->ttl : 0);
        if (!b->keeps_number)
            point_add(b->set, key, key.len - 8, POINT_NUMBER, b->index, 0);
    }
}

/* --- Unique keys ----------------------------------------------------------------------------- */

/* u | which | routing key | pk | values; a missing value counts as null. */
static struct slice unique_key(struct builder *b, size_t which, struct slice document)
{
    const struct definition_unique_key *unique = &b->scope->definition->unique_keys[which];
    CLEANUP(buf_done) struct buf key;

    assert(which < b->scope->definition->unique_key_count);
    buf_init(&key, ENGINE_KEY_MAX);
    buf_append_byte(&key, PARTITION_FAMILY_UNIQUE);
    buf_append_byte(&key, (uint8_t)which);
    buf_append_slice(&key, b->parts.logical);
    for (size_t i = 0; i < unique->path_count; i++) {
        struct document_value value;

        if (!document_path_find(&unique->paths[i], document, &value))
            value = document_null();
        document_key_append(DOCUMENT_ORDER_SQL, &value, &key);
    }
    return arena_copy(b->set->arena, buf_slice(&key));
}

static bool claim_add(struct builder *b, struct slice key, struct slice conflict, struct error *err)
{
    struct write_set *set = b->set;

    for (size_t i = 0; i < set->claim_count; i++)
        if (slice_equal(set->claims[i].key, key)) {
            if (conflict.data)
                break; /* who checks the claims sees the first as the owner of the second */
            return error_set(err, ERROR_UNIQUE_KEY,
                             "two items of the transaction have the same unique key");
        }
    set->claims =
        grown(set->arena, set->claims, set->claim_count, &set->claim_capacity, sizeof *set->claims);
    set->claims[set->claim_count++] =
        (struct write_set_unique){.key = key, .conflict = conflict, .change = b->change};
    return true;
}

/* The item is to own the key; conflict: what is put where another does; data NULL: it is refused.
 */
static bool claim_put(struct builder *b, struct slice key, struct slice conflict, struct error *err)
{
    struct slice value = number_bytes(b->set->arena, b->change->header.number);

    if (!claim_add(b, key, conflict, err))
        return false;
    put(b->set, key, value);
    if (!b->keeps_number)
        number_leave_open(b, value, 0);
    touched_add(b->set, key);
    return true;
}

static void claim_release(struct builder *b, struct slice key)
{
    struct write_set *set = b->set;

    set->released = grown(set->arena, set->released, set->released_count, &set->released_capacity,
                          sizeof *set->released);
    set->released[set->released_count++] =
        (struct write_set_unique){.key = key, .change = b->change};
}

static bool unique_build_one(struct builder *b, size_t which, struct error *err)
{
    const struct item *before = b->change->before;
    struct slice old = before ? unique_key(b, which, before->document) : SLICE_NONE;
    struct slice new = b->change->after.data ? unique_key(b, which, b->change->after) : SLICE_NONE;

    if (new.data &&new.len == ENGINE_KEY_MAX)
        return error_set(err, ERROR_TOO_LARGE, "the values of a unique key are too long");
    if (b->keeps_number && slice_equal(old, new))
        return true;
    if (old.data)
        claim_release(b, old);
    if (old.data && !slice_equal(old, new))
        delete (b->set, old);
    return !new.data || claim_put(b, new, SLICE_NONE, err);
}

static bool unique_build(struct builder *b, struct error *err)
{
    for (size_t i = 0; i < b->scope->definition->unique_key_count; i++)
        if (!unique_build_one(b, i, err))
            return false;
    return true;
}

/* --- Unique indexes --------------------------------------------------------------------------
 *
 *     u | 40 | routing key | pk | number of the index | values        -> number of the item
 *     u | 41 | routing key | pk | number of the index | values | id   -> number of the item
 *
 * The first is owned like a unique key. While an index is built nothing is refused: who finds the
 * first one owned by another item puts the second, which stays, whatever becomes of the items,
 * until the index has failed (catalogue/indexes.c). */

static struct commit_delta *delta_of(struct write_set *set, struct slice key);

/* What one item has by one version of the policy: keys to own, sorted within an index. */
struct claim_list {
    struct slice *keys;
    const struct index_definition **definitions;
    size_t count, capacity, definition_capacity;
};

static void claim_list_add(struct builder *b, const struct index_definition *definition,
                           const struct index_entry *claims, size_t count, struct claim_list *list)
{
    struct arena *arena = b->set->arena;

    for (size_t i = 0; i < count; i++) {
        struct slice key =
            arena_join(arena,
                       (struct slice[]){SLICE("u\x40"), b->parts.logical,
                                        slice_of(&definition->number, 1), claims[i].bytes},
                       4);

        list->keys = grown(arena, list->keys, list->count, &list->capacity, sizeof *list->keys);
        list->definitions = grown(arena, list->definitions, list->count, &list->definition_capacity,
                                  sizeof *list->definitions);
        list->definitions[list->count] = definition;
        list->keys[list->count++] = key;
    }
}

static bool claims_of(struct builder *b, const struct index_policy *policy, struct slice document,
                      struct claim_list *ret_list, struct error *err)
{
    size_t count, claim_count;
    const struct index_definition *const *list = index_policy_besides(policy, &count);

    *ret_list = (struct claim_list){0};
    for (size_t i = 0; document.data && i < count; i++) {
        struct index_entry *claims;

        if (list[i]->unique == INDEX_UNIQUE_NOT)
            continue;
        if (!index_definition_claims(list[i], document, b->set->arena, &claims, &claim_count, err))
            return false;
        claim_list_add(b, list[i], claims, claim_count, ret_list);
    }
    return true;
}

static bool claim_list_has(const struct claim_list *list, struct slice key)
{
    for (size_t i = 0; i < list->count; i++)
        if (slice_equal(list->keys[i], key))
            return true;
    return false;
}

static struct slice conflict_key(struct builder *b, struct slice key)
{
    uint8_t *conflict;
    struct slice bytes = arena_join(b->set->arena, (struct slice[]){key, b->parts.id}, 2);

    conflict = (uint8_t *)bytes.data;
    conflict[1] = WRITE_SET_CONFLICT;
    return bytes;
}

/* Claims are compared one by one, here and where their owners are looked for. */
static bool claims_count(struct builder *b, const struct claim_list *old,
                         const struct claim_list *new, struct error *err)
{
    if (new->count > INDEX_CLAIMS_MAX)
        return error_set(err, ERROR_TOO_LARGE,
                         "item has more than %d values in unique indexes of orrery.indexes",
                         INDEX_CLAIMS_MAX);
    b->set->looked_at += old->count + new->count;
    if (b->set->change_count > 1 && b->set->looked_at > CLAIMS_TOGETHER_MAX)
        return error_set(err, ERROR_TOO_LARGE,
                         "the items of a transaction have more than %d values in unique indexes of "
                         "orrery.indexes, before and after",
                         CLAIMS_TOGETHER_MAX);
    return true;
}

static bool unique_indexes_build(struct builder *b, struct error *err)
{
    const struct item *before = b->change->before;
    const struct index_policy *was = before ? policy_of(b->scope, &before->header) : NULL;
    struct claim_list old = {0}, new;
    size_t count, was_count = 0;

    (void)index_policy_besides(b->scope->policy, &count);
    if (was)
        (void)index_policy_besides(was, &was_count);
    if (!count && !was_count)
        return true;
    if ((was && !claims_of(b, was, before->document, &old, err)) ||
        !claims_of(b, b->scope->policy, b->change->after, &new, err) ||
        !claims_count(b, &old, &new, err))
        return false;
    for (size_t i = 0; i < old.count; i++) {
        bool stays = claim_list_has(&new, old.keys[i]);

        if (b->keeps_number && stays)
            continue;
        claim_release(b, old.keys[i]);
        if (!stays)
            delete (b->set, old.keys[i]);
    }
    for (size_t i = 0; i < new.count; i++) {
        bool building = new.definitions[i]->state == INDEX_BUILDING;

        if (b->keeps_number && claim_list_has(&old, new.keys[i]))
            continue;
        if (!claim_put(b, new.keys[i], building ? conflict_key(b, new.keys[i]) : SLICE_NONE, err))
            return false;
        b->set->claims[b->set->claim_count - 1].index = new.definitions[i];
    }
    return true;
}

void write_set_conflict(struct write_set *set, const struct write_set_unique *claim)
{
    for (size_t i = 0; i < set->op_count; i++)
        if (set->ops[i].kind == ENGINE_PUT && set->ops[i].key.data == claim->key.data)
            set->ops[i].key = claim->conflict;
}

/* --- State of kinds -------------------------------------------------------------------------- */

/* c | k | routing key | pk | number of the index | name */
static void sums_add(struct builder *b, const struct index_definition *definition,
                     const struct index_sum *sums, size_t count, int sign)
{
    for (size_t i = 0; i < count; i++) {
        struct commit_delta *delta = delta_of(
            b->set, arena_join(b->set->arena,
                               (struct slice[]){SLICE("ck"), b->parts.logical,
                                                slice_of(&definition->number, 1), sums[i].name},
                               4));

        for (size_t n = 0; n < INDEX_SUM_NUMBERS; n++)
            delta->amounts[n] += sign * sums[i].amounts[n];
    }
}

static bool document_sum(struct builder *b, const struct index_policy *policy,
                         struct slice document, int sign, struct error *err)
{
    size_t count, sum_count;
    const struct index_definition *const *list = index_policy_definitions(policy, &count);

    static_assert((int)INDEX_SUM_NUMBERS == (int)COUNTER_NUMBERS, "sums are kept as counters");
    for (size_t i = 0; document.data && i < count; i++) {
        struct index_sum *sums;

        if (!list[i]->kind->state ||
            (list[i]->format == INDEX_FORMAT_POLICY && !list[i]->language.len))
            continue;
        if (!list[i]->kind->state->sums(list[i], document, b->set->arena, &sums, &sum_count, err))
            return false;
        sums_add(b, list[i], sums, sum_count, sign);
    }
    return true;
}

/* What the version after adds, less what the one before did, by the policy it is indexed with. */
static bool states_build(struct builder *b, struct error *err)
{
    const struct item *before = b->change->before;

    return (!before ||
            document_sum(b, policy_of(b->scope, &before->header), before->document, -1, err)) &&
           document_sum(b, b->scope->policy, b->change->after, 1, err);
}

/* One item lets go of a unique key and another takes it: only the put stays. */
static void unique_settle(struct write_set *set)
{
    size_t kept = 0;

    for (size_t i = 0; i < set->op_count; i++) {
        bool taken = false;

        if (set->ops[i].kind == ENGINE_DELETE && set->ops[i].key.data[0] == PARTITION_FAMILY_UNIQUE)
            for (size_t c = 0; c < set->claim_count && !taken; c++)
                taken = slice_equal(set->claims[c].key, set->ops[i].key);
        if (!taken)
            set->ops[kept++] = set->ops[i];
    }
    assert(kept <= set->op_count);
    set->op_count = kept;
}

/* --- Counters -------------------------------------------------------------------------------- */

static int64_t stored_bytes(struct slice key, size_t document_len)
{
    return (int64_t)(1 + key.len + ITEM_HEADER_LEN + document_len);
}

static struct slice counter_key(struct arena *arena, uint8_t kind, struct slice logical)
{
    uint8_t *key = arena_alloc(arena, 2 + logical.len);

    key[0] = PARTITION_FAMILY_COUNTER;
    key[1] = kind;
    if (logical.len)
        memcpy(key + 2, logical.data, logical.len);
    return slice_of(key, 2 + logical.len);
}

static struct commit_delta *delta_of(struct write_set *set, struct slice key)
{
    for (size_t i = 0; i < set->delta_count; i++)
        if (slice_equal(set->deltas[i].key, key))
            return &set->deltas[i];
    set->deltas =
        grown(set->arena, set->deltas, set->delta_count, &set->delta_capacity, sizeof *set->deltas);
    set->deltas[set->delta_count] = (struct commit_delta){.key = key};
    return &set->deltas[set->delta_count++];
}

static int64_t logical_bytes_max(const struct builder *b)
{
    size_t parts = 1;

    if (b->scope->map && partition_map_is_spread(b->scope->map))
        (void)partition_map_parts(b->scope->map, b->parts.logical, &parts);
    return parts > 1 ? b->scope->spread_bytes_max : b->scope->logical_bytes_max;
}

static void counters_build(struct builder *b)
{
    int64_t bytes = 0, items = 0;
    struct commit_delta *delta;

    if (b->change->before) {
        bytes -= stored_bytes(b->change->from.data ? b->change->from : b->change->key,
                              b->change->before->document.len);
        items--;
    }
    if (b->change->after.data) {
        bytes += stored_bytes(b->change->key, b->change->after.len);
        items++;
    }
    delta = delta_of(b->set, counter_key(b->set->arena, 'l', b->parts.logical));
    delta->amounts[0] += bytes;
    delta->amounts[1] += items;
    delta->first_max = logical_bytes_max(b);
    delta = delta_of(b->set, counter_key(b->set->arena, 't', SLICE_NONE));
    delta->amounts[0] += bytes;
    delta->amounts[1] += items;
    delta->first_max = b->scope->partition_bytes_max;
    delta->full = b->scope->definition->reference ? ERROR_REFERENCE_FULL : ERROR_PARTITION_FULL;
}

/* --- All of it ------------------------------------------------------------------------------- */

static bool change_check(const struct item_scope *scope, const struct write_set_change *change,
                         struct error *err)
{
    if (change->after.data && scope->item_bytes_max && change->after.len > scope->item_bytes_max)
        return error_set(err, ERROR_TOO_LARGE, "an item of %zu bytes is over the limit of %zu",
                         change->after.len, scope->item_bytes_max);
    return true;
}

static bool family_is_index(uint8_t family)
{
    return family == PARTITION_FAMILY_INDEX || family == PARTITION_FAMILY_UNIQUE ||
           family == PARTITION_FAMILY_EXPIRY;
}

/* Counts what the change added to the list of operations, for the charge. */
static void index_count(struct builder *b, size_t first_op)
{
    for (size_t i = first_op; i < b->set->op_count; i++) {
        if (!family_is_index(b->set->ops[i].key.data[0]))
            continue;
        if (b->set->ops[i].kind == ENGINE_PUT)
            b->change->index_puts++;
        else
            b->change->index_deletes++;
    }
}

static bool change_build(struct builder *b, struct error *err)
{
    assert(b->change->key.len > 0);
    assert(b->change->after.data || b->change->before || b->change->step_count);
    assert(!b->change->reindexed || (b->change->before && b->change->after.data));
    if (!change_check(b->scope, b->change, err) ||
        !item_key_split(&b->scope->definition->key, b->change->key, &b->parts, err))
        return false;
    b->keeps_number = b->change->before && !b->change->before_is_over && b->change->after.data;
    if (b->change->after.data && b->change->ttl == 0 && b->scope->definition->default_ttl > 0)
        b->change->flags |= ITEM_EXPIRY_BY_DEFAULT;
    item_build(b);
    number_build(b);
    if (!index_build(b, err))
        return false;
    expiry_build(b);
    if (!unique_indexes_build(b, err) || !states_build(b, err))
        return false;
    if (b->change->reindexed)
        return true;
    if (b->change->is_carried)
        feed_carry(b);
    else
        feed_build(b);
    if (!b->change->is_carried)
        history_build(b);
    counters_build(b);
    return unique_build(b, err);
}

static uint32_t numbers_wanted(const struct write_set *set)
{
    uint32_t count = 0;

    for (size_t i = 0; i < set->change_count; i++)
        count += wants_number(&set->changes[i]);
    return count;
}

bool write_set_build(const struct item_scope *scope, struct write_set_change *changes, size_t count,
                     struct arena *arena, struct write_set **ret_set, struct commit_part *ret_part,
                     struct error *err)
{
    struct write_set *set = ARENA_NEW(arena, struct write_set);

    assert(count > 0 && scope->partition > 0 && scope->epoch > 0);
    set->changes = changes;
    set->change_count = count;
    set->arena = arena;
    set->origin = scope->partition;
    set->touched_capacity = count * (2 + scope->definition->unique_key_count);
    set->touched = ARENA_ARRAY(arena, struct slice, set->touched_capacity);
    set->delta_capacity = 2 * count;
    set->deltas = ARENA_ARRAY(arena, struct commit_delta, set->delta_capacity);
    for (size_t i = 0; i < count; i++) {
        struct builder builder = {
            .set = set, .scope = scope, .change = &changes[i], .index = (uint32_t)i};
        size_t first_op = set->op_count;

        if (!change_build(&builder, err))
            return false;
        index_count(&builder, first_op);
    }
    if (set->claim_count)
        unique_settle(set);
    *ret_part = (struct commit_part){
        .partition = scope->partition,
        .epoch = scope->epoch,
        .writers = scope->writers,
        .ops = set->ops,
        .op_count = set->op_count,
        .relied = set->touched,
        .relied_count = set->touched_count,
        .touched = set->touched,
        .touched_count = set->touched_count,
        .deltas = set->deltas,
        .delta_count = set->delta_count,
        .number_count = numbers_wanted(set),
    };
    *ret_set = set;
    return true;
}

void write_set_add(struct write_set *set, const struct engine_op *op, struct commit_part *part)
{
    if (op->kind == ENGINE_PUT)
        put(set, op->key, op->value);
    else
        delete (set, op->key);
    part->ops = set->ops;
    part->op_count = set->op_count;
}

int64_t write_set_change_cost(const struct write_set_change *change)
{
    struct cost_write write = {
        .removes = change->before != NULL,
        .puts = change->after.data != NULL,
        .old_bytes = change->before ? change->before->document.len : 0,
        .new_bytes = change->after.len,
        .index_puts = change->index_puts,
        .index_deletes = change->index_deletes,
        .history_bytes = change->history_bytes,
    };

    return cost_write(&write);
}

void write_set_stamp(struct write_set *set, const struct commit_stamp *stamp)
{
    uint64_t number = stamp->first_number;

    assert(stamp->lsn > 0);
    for (size_t i = 0; i < set->change_count; i++) {
        struct write_set_change *change = &set->changes[i];

        if (change->reindexed || change->is_carried)
            continue;
        if (wants_number(change))
            change->header.number = number++;
        change->header.lsn = stamp->lsn;
        change->header.wall_ms = stamp->wall_ms;
    }
    for (size_t i = 0; i < set->point_count; i++) {
        const struct point *point = &set->points[i];

        switch (point->kind) {
        case POINT_NUMBER:
            bytes_put_be64(point->at, set->changes[point->change].header.number);
            break;
        case POINT_LSN:
            bytes_put_be64(point->at, stamp->lsn);
            break;
        case POINT_WALL_MS:
            bytes_put_be64(point->at, (uint64_t)stamp->wall_ms);
            break;
        case POINT_WALL_S:
            bytes_put_be64(point->at, (uint64_t)(stamp->wall_ms / 1000 + point->add));
            break;
        case POINT_TIME: /* of another part of the batch */
            break;
        }
    }
}

const struct engine_op *write_set_history(const struct write_set *set, size_t *ret_count)
{
    *ret_count = set ? set->history_count : 0;
    return set ? set->history : NULL;
}

const struct write_placed *write_set_placed(const struct write_set *set, size_t *ret_count)
{
    *ret_count = set ? set->placed_count : 0;
    return set ? set->placed : NULL;
}

void write_set_history_stamp(struct write_set *set, uint64_t time)
{
    for (size_t i = 0; i < set->point_count; i++)
        if (set->points[i].kind == POINT_TIME)
            bytes_put_be64(set->points[i].at, time);
}

const struct write_set_unique *write_set_uniques(const struct write_set *set, size_t *ret_count)
{
    *ret_count = set->claim_count;
    return set->claims;
}

bool write_set_releases(const struct write_set *set, struct slice key, uint64_t number)
{
    for (size_t i = 0; i < set->released_count; i++)
        if (set->released[i].change->before->header.number == number &&
            slice_equal(set->released[i].key, key))
            return true;
    return false;
}
