/* Planned writes are kept per item, in the order of their first mention; a second write of an item
 * changes the plan for it. Only the plan's beginning (as stored) and end matter to the write set.
 */
#include "container/transaction.h"

#include "base/bytes.h"
#include "document/bson.h"
#include "document/order.h"
#include "partition/layout.h"
#include "partition/strategy.h"
#include "partition/synthetic.h"
#include "throughput/cost.h"

#include <xxhash.h>

enum {
    WRITES_MAX = 65536,
    BUCKETS = 256, /* of what it has seen: a large transaction stays near linear */
};

/* A logical partition the transaction is or was in. */
struct place {
    struct item_scope scope;
    struct slice logical;
};

/* What is committed to one physical partition. */
struct section {
    const struct item_scope *scope;
    struct change *changes;
    size_t change_count;
    struct write_set *set;
};

/* One item the transaction has looked at or wants to write. */
struct seen {
    const struct place *place;
    struct slice key;   /* item key */
    struct item stored; /* as of the snapshot, if any */
    bool is_stored;     /* physically there */
    bool is_over;       /* but expired */
    bool is_written;    /* planned */
    bool is_relied;     /* must not change meanwhile */
    struct slice after; /* data NULL: deleted */
    uint8_t flags;
    int32_t ttl;
    bool expired;
    struct item view;      /* what the transaction sees now, when written */
    struct change *change; /* at commit */
    size_t index;          /* in transaction->seen */
    size_t last_planned;   /* in transaction->planned, when written */
    struct seen *next;     /* in its bucket */
};

struct planned {
    size_t seen;
    bool created;
};

/* A range that must not change before the commit. */
struct scanned {
    const struct place *place;
    struct engine_range range;
    struct scanned *next;
};

struct transaction {
    const struct place *first, *place; /* where it began, and where it is */
    struct arena *arena;
    struct engine_snapshot *snapshot; /* of the whole node */
    uint64_t moment;
    int64_t now_ms;

    struct seen **seen;
    size_t seen_count, seen_capacity;
    struct seen *buckets[BUCKETS];
    struct planned *planned;
    size_t planned_count, planned_capacity;
    struct scanned *scanned;
    struct transaction_work work;
    const struct change *refused; /* whose unique key somebody else owns */

    struct section *sections; /* one for each part */
    struct commit_part *parts;
    size_t part_count;
    struct commit_batch batch;
    void (*done)(struct transaction *transaction, const struct error *err, void *context);
    void *context;
};

static const struct place *place_new(struct arena *arena, const struct item_scope *scope,
                                     struct slice logical)
{
    struct place *place = ARENA_NEW(arena, struct place);

    place->scope = *scope;
    place->logical = arena_copy(arena, logical);
    return place;
}

bool transaction_begin(const struct item_scope *scope, struct slice logical, struct arena *arena,
                       struct transaction **ret_transaction, struct error *err)
{
    struct transaction *transaction;

    if (scope->promotions && !promotion_list_admits(scope->promotions, logical, err))
        return false;
    transaction = MEMORY_NEW(struct transaction);
    transaction->arena = arena;
    transaction->first = transaction->place = place_new(arena, scope, logical);
    transaction->now_ms = clock_read_wall_ms(scope->clock);
    transaction->moment = commit_moment(scope->commit);
    if (!engine_snapshot_new(scope->engine, &transaction->snapshot, err)) {
        memory_free(transaction);
        return false;
    }
    *ret_transaction = transaction;
    return true;
}

void transaction_free(struct transaction *transaction)
{
    if (!transaction)
        return;
    engine_snapshot_free(transaction->snapshot);
    memory_free(transaction->seen);
    memory_free(transaction->planned);
    memory_free(transaction);
}

bool transaction_enter(struct transaction *transaction, const struct item_scope *scope,
                       struct slice logical, struct error *err)
{
    if (scope->commit != transaction->first->scope.commit)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "a transaction cannot span partitions on different nodes");
    /* If the map is the last one now, nobody has written by a later one before the snapshot was
     * taken; else one of the two may be what a migration has left behind. */
    if (scope->partition != transaction->first->scope.partition && scope->is_current &&
        !scope->is_current(scope->nodes))
        return error_set(err, ERROR_FENCED,
                         "a partition has been split, merged or moved meanwhile");
    if (scope->promotions && !promotion_list_admits(scope->promotions, logical, err))
        return false;
    transaction->place = place_new(transaction->arena, scope, logical);
    return true;
}

struct engine_snapshot *transaction_snapshot(const struct transaction *transaction)
{
    return transaction->snapshot;
}

int64_t transaction_now_ms(const struct transaction *transaction)
{
    return transaction->now_ms;
}

/* --- Seeing ---------------------------------------------------------------------------------- */

static struct slice key_of(struct transaction *transaction, const struct document_value *id)
{
    return item_key(transaction->place->logical, id, transaction->arena);
}

static struct seen **bucket_of(struct transaction *transaction, const struct place *place,
                               struct slice key)
{
    uint64_t hash = XXH3_64bits_withSeed(key.data, key.len, place->scope.partition);

    return &transaction->buckets[hash % BUCKETS];
}

/* Of that place: containers may have equal keys. */
static struct seen *seen_find(struct transaction *transaction, const struct place *place,
                              struct slice key)
{
    struct seen *seen = *bucket_of(transaction, place, key);

    while (seen &&
           (seen->place->scope.partition != place->scope.partition || !slice_equal(seen->key, key)))
        seen = seen->next;
    return seen;
}

static void seen_add(struct transaction *transaction, struct seen *seen)
{
    struct seen **bucket = bucket_of(transaction, seen->place, seen->key);

    if (transaction->seen_count == transaction->seen_capacity) {
        transaction->seen_capacity =
            transaction->seen_capacity ? transaction->seen_capacity * 2 : 8;
        transaction->seen =
            memory_realloc(transaction->seen,
                           memory_array_size(transaction->seen_capacity, sizeof(struct seen *)));
    }
    seen->index = transaction->seen_count;
    transaction->seen[transaction->seen_count++] = seen;
    seen->next = *bucket;
    *bucket = seen;
}

static bool seen_load(struct transaction *transaction, struct seen *seen, struct error *err)
{
    const struct item_scope *scope = &seen->place->scope;
    struct slice key = item_family_key(transaction->arena, PARTITION_FAMILY_ITEM, seen->key);
    struct engine_value value;

    if (!engine_get(scope->engine, transaction->snapshot, scope->partition, key, ENGINE_READ_ANY,
                    transaction->arena, &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
        return true;
    if (!item_decode(seen->key, value.bytes, &seen->stored, err))
        return false;
    transaction->work.bytes_read += seen->stored.document.len;
    seen->is_stored = true;
    seen->is_over =
        item_is_over(&seen->stored.header, scope->definition->default_ttl, transaction->now_ms);
    return true;
}

static bool seen_get_at(struct transaction *transaction, const struct place *place,
                        struct slice key, struct seen **ret_seen, struct error *err)
{
    struct seen *seen = seen_find(transaction, place, key);

    if (!seen) {
        if (transaction->seen_count == WRITES_MAX)
            return error_set(err, ERROR_TOO_LARGE, "a transaction touches more than %d items",
                             WRITES_MAX);
        seen = ARENA_NEW(transaction->arena, struct seen);
        seen->key = key;
        seen->place = place;
        if (!seen_load(transaction, seen, err))
            return false;
        seen_add(transaction, seen);
    }
    *ret_seen = seen;
    return true;
}

static bool seen_get(struct transaction *transaction, const struct document_value *id,
                     struct seen **ret_seen, struct error *err)
{
    return seen_get_at(transaction, transaction->place, key_of(transaction, id), ret_seen, err);
}

/* NULL: there is none, as far as this transaction can see. */
static const struct item *seen_item(const struct seen *seen)
{
    if (seen->is_written)
        return seen->after.data ? &seen->view : NULL;
    return seen->is_stored && !seen->is_over ? &seen->stored : NULL;
}

bool transaction_read(struct transaction *transaction, const struct document_value *id,
                      const struct item **ret_item, struct error *err)
{
    struct seen *seen;

    if (!seen_get(transaction, id, &seen, err))
        return false;
    *ret_item = seen_item(seen);
    return true;
}

static struct seen *seen_provisional(const struct transaction *transaction, uint64_t number)
{
    uint64_t first = partition_number(TRANSACTION_NUMBER_SOURCE, 0);

    return number >= first && number - first < transaction->seen_count
               ? transaction->seen[number - first]
               : NULL;
}

bool transaction_find_number(struct transaction *transaction, uint64_t number,
                             struct document_value *ret_id, bool *ret_found, struct error *err)
{
    const struct item_scope *scope = &transaction->place->scope;
    const struct seen *seen = seen_provisional(transaction, number);
    struct engine_value value = {0};
    struct slice item_key = SLICE_NONE, id;
    uint8_t key[9] = {PARTITION_FAMILY_NUMBER};

    *ret_found = false;
    bytes_put_be64(key + 1, number);
    if (seen)
        item_key = seen->key;
    else if (!engine_get(scope->engine, transaction->snapshot, scope->partition,
                         slice_of(key, sizeof key), ENGINE_READ_ANY, transaction->arena, &value,
                         err))
        return false;
    else if (value.found == ENGINE_FOUND)
        item_key = value.bytes;
    if (!slice_starts_with(item_key, transaction->place->logical))
        return true;
    id = slice_skip(item_key, transaction->place->logical.len);
    *ret_found = true;
    return document_key_read(DOCUMENT_ORDER_SQL, &id, transaction->arena, ret_id, err);
}

bool transaction_number(const struct transaction *transaction, uint64_t provisional,
                        uint64_t *ret_number)
{
    const struct seen *seen = seen_provisional(transaction, provisional);

    if (!seen || !seen->change || !seen->after.data)
        return false;
    *ret_number = seen->change->header.number;
    return true;
}

void transaction_rely(struct transaction *transaction, const struct document_value *id)
{
    struct seen *seen = seen_find(transaction, transaction->place, key_of(transaction, id));

    assert(seen);
    seen->is_relied = true;
}

/* --- Scanning -------------------------------------------------------------------------------- */

static int seen_compare(const void *left, const void *right)
{
    return slice_compare((*(const struct seen *const *)left)->key,
                         (*(const struct seen *const *)right)->key);
}

/* What the transaction has written here behind a position, by key. */
static const struct seen **written_after(struct transaction *transaction, struct slice after,
                                         size_t *ret_count)
{
    const struct seen **written =
        ARENA_ARRAY(transaction->arena, const struct seen *, transaction->seen_count);
    size_t count = 0;

    for (size_t i = 0; i < transaction->seen_count; i++) {
        const struct seen *seen = transaction->seen[i];

        if (seen->is_written &&
            seen->place->scope.partition == transaction->place->scope.partition &&
            slice_starts_with(seen->key, transaction->place->logical) &&
            slice_compare(seen->key, after) > 0)
            written[count++] = seen;
    }
    qsort(written, count, sizeof *written, seen_compare);
    *ret_count = count;
    return written;
}

/* All keys of the logical partition behind a position. Ids begin with neither 00 nor FF. */
static struct engine_range logical_range(struct transaction *transaction, struct slice after)
{
    struct arena *arena = transaction->arena;
    struct slice logical = transaction->place->logical;
    struct slice from = after.len ? after : logical;
    uint8_t *min = arena_alloc(arena, 2 + from.len), *max = arena_alloc(arena, 2 + logical.len);

    min[0] = max[0] = PARTITION_FAMILY_ITEM;
    memcpy(min + 1, from.data, from.len);
    min[1 + from.len] = 0;
    memcpy(max + 1, logical.data, logical.len);
    max[1 + logical.len] = 0xFF;
    return (struct engine_range){.min = slice_of(min, 2 + from.len),
                                 .max = slice_of(max, 2 + logical.len)};
}

static void scanned_note(struct transaction *transaction, struct engine_range range,
                         const struct transaction_page *page)
{
    struct scanned *scanned = ARENA_NEW(transaction->arena, struct scanned);

    /* A page that ended early looked no further than its last item. */
    if (page->more) {
        struct slice last =
            item_family_key(transaction->arena, PARTITION_FAMILY_ITEM, page->position);
        uint8_t *max = arena_alloc(transaction->arena, last.len + 1);

        memcpy(max, last.data, last.len);
        max[last.len] = 0;
        range.max = slice_of(max, last.len + 1);
    }
    *scanned =
        (struct scanned){.place = transaction->place, .range = range, .next = transaction->scanned};
    transaction->scanned = scanned;
}

/* The next stored item; *ret_item.document.data NULL: there is none. */
static bool stored_next(struct transaction *transaction, struct engine_iterator *iterator,
                        struct item *ret_item, struct error *err)
{
    struct engine_entry entry;

    do {
        *ret_item = (struct item){0};
        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (!item_decode(arena_copy(transaction->arena, slice_skip(entry.key, 1)),
                         arena_copy(transaction->arena, entry.value), ret_item, err))
            return false;
        transaction->work.bytes_read += ret_item->document.len;
    } while (item_is_over(&ret_item->header, transaction->place->scope.definition->default_ttl,
                          transaction->now_ms));
    return true;
}

/* Both lists are sorted; where both have a key, what was written counts. */
static bool scan_merge(struct transaction *transaction, struct engine_iterator *iterator,
                       const struct seen **written, size_t written_count, size_t max,
                       struct transaction_page *page, struct error *err)
{
    struct item stored;
    size_t w = 0;

    if (!stored_next(transaction, iterator, &stored, err))
        return false;
    while (stored.document.data || w < written_count) {
        int order = !stored.document.data ? 1
                    : w == written_count  ? -1
                                          : slice_compare(stored.key, written[w]->key);
        const struct item *item = order < 0 ? &stored : seen_item(written[w]);

        if (item && page->count == max) {
            page->more = true;
            return true;
        }
        if (item) {
            page->items[page->count++] = *item;
            page->position = item->key;
        }
        w += order >= 0;
        if (order <= 0 && !stored_next(transaction, iterator, &stored, err))
            return false;
    }
    return true;
}

bool transaction_scan(struct transaction *transaction, struct slice after, size_t max, bool rely,
                      struct transaction_page *ret_page, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    const struct item_scope *scope = &transaction->place->scope;
    struct engine_range range = logical_range(transaction, after);
    struct transaction_page page = {.position = after};
    size_t written_count;
    const struct seen **written = written_after(transaction, after, &written_count);

    page.items = ARENA_ARRAY(transaction->arena, struct item, max);
    if (!engine_iterator_new(scope->engine, transaction->snapshot, scope->partition, range, false,
                             ENGINE_READ_ANY, &iterator, err) ||
        !scan_merge(transaction, iterator, written, written_count, max, &page, err))
        return false;
    if (rely)
        scanned_note(transaction, range, &page);
    *ret_page = page;
    return true;
}

/* --- Planning -------------------------------------------------------------------------------- */

/* Of what the transaction itself has written, the etag is provisional. */
static bool etag_fits(const struct item *item, struct slice etag)
{
    char text[ITEM_ETAG_LEN];

    if (slice_equal(etag, SLICE("*")))
        return item != NULL;
    if (!item)
        return false;
    item_etag(&item->header, text);
    return slice_equal(etag, slice_of(text, sizeof text));
}

static bool precondition_check(const struct item *item, const struct transaction_options *options,
                               bool missing_is_fine, struct error *err)
{
    if (options->if_match.len && !(missing_is_fine && !item) && !etag_fits(item, options->if_match))
        return error_set(err, ERROR_PRECONDITION_FAILED,
                         "the item has changed: its etag is not the one of if-match");
    if (options->if_none_match.len && etag_fits(item, options->if_none_match))
        return error_set(err, ERROR_PRECONDITION_FAILED,
                         "the item exists with the etag of if-none-match");
    return true;
}

/* -1 or a positive number of seconds; anything else is refused. */
static bool ttl_of(struct slice document, int32_t *ret_ttl, struct error *err)
{
    struct document_value value;
    int64_t ttl;

    *ret_ttl = 0;
    if (!document_find(document, SLICE("ttl"), &value))
        return true;
    if (!document_to_int64(&value, &ttl) || (ttl != -1 && (ttl < 1 || ttl > INT32_MAX)))
        return error_set(err, ERROR_BAD_REQUEST,
                         "the ttl of an item must be -1 or a positive whole number of seconds");
    *ret_ttl = (int32_t)ttl;
    return true;
}

static bool verb_check(enum transaction_verb verb, const struct item *item, struct error *err)
{
    if (verb == TRANSACTION_CREATE && item)
        return error_set(err, ERROR_ITEM_EXISTS,
                         "entity with the specified id already exists in the system");
    if ((verb == TRANSACTION_REPLACE || verb == TRANSACTION_DELETE) && !item)
        return error_set(err, ERROR_ITEM_MISSING,
                         "entity with the specified id does not exist in the system");
    return true;
}

static void plan_note(struct transaction *transaction, struct seen *seen, bool created)
{
    if (transaction->planned_count == transaction->planned_capacity) {
        transaction->planned_capacity =
            transaction->planned_capacity ? transaction->planned_capacity * 2 : 8;
        transaction->planned =
            memory_realloc(transaction->planned, memory_array_size(transaction->planned_capacity,
                                                                   sizeof *transaction->planned));
    }
    seen->last_planned = transaction->planned_count;
    transaction->planned[transaction->planned_count++] =
        (struct planned){.seen = seen->index, .created = created};
}

/* Under a random suffix an id is unique within its base, which only a claim can promise; and the
 * index on id is how it is found. */
static bool random_suffix_check(const struct item *item, const struct transaction_options *options,
                                struct error *err)
{
    if (options->not_indexed)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "an item cannot be left out of the index in a container with a random "
                         "suffix: it is found by it");
    return item || options->id_is_free ||
           error_set(err, ERROR_NOT_SUPPORTED,
                     "a transaction cannot create items in a container with a random suffix: their "
                     "ids are unique across all suffixes");
}

/* For every write of every API: here nobody passes by. */
static bool synthetic_apply(struct transaction *transaction, const struct item *item,
                            const struct transaction_options *options, struct slice *document,
                            struct error *err)
{
    const struct partition_definition *definition = &transaction->place->scope.definition->key;
    struct slice rest = transaction->place->logical;
    struct partition_key key;

    if (partition_synthetic_is_random(definition) && !random_suffix_check(item, options, err))
        return false;
    return partition_route_skip(definition, &rest, err) &&
           partition_key_read(definition, &rest, transaction->arena, &key, err) &&
           partition_synthetic_fill(definition, &key, item ? item->document : SLICE_NONE, *document,
                                    transaction->arena, document, err);
}

static struct item_header header_provisional(const struct transaction *transaction,
                                             const struct seen *seen, const struct item *before)
{
    return (struct item_header){
        .number = before ? before->header.number
                         : partition_number(TRANSACTION_NUMBER_SOURCE, (uint32_t)seen->index),
        .lsn = TRANSACTION_LSN_PROVISIONAL,
        .ordinal = (uint32_t)transaction->planned_count,
        .wall_ms = transaction->now_ms,
    };
}

bool transaction_write(struct transaction *transaction, const struct document_value *id,
                       enum transaction_verb verb, struct slice document,
                       const struct transaction_options *options, struct error *err)
{
    static const struct transaction_options none;
    const struct item *item;
    struct seen *seen;
    int32_t ttl = 0;

    if (!options)
        options = &none;
    if (!seen_get(transaction, id, &seen, err))
        return false;
    item = seen_item(seen);
    if (!verb_check(verb, item, err) ||
        !precondition_check(item, options, verb == TRANSACTION_UPSERT, err) ||
        (verb != TRANSACTION_DELETE && !ttl_of(document, &ttl, err)))
        return false;
    if (transaction->place->scope.definition->key.synthetic && verb != TRANSACTION_DELETE &&
        !synthetic_apply(transaction, item, options, &document, err))
        return false;
    seen->view = (struct item){.header = header_provisional(transaction, seen, item),
                               .key = seen->key,
                               .document = document};
    seen->is_written = true;
    seen->after = verb == TRANSACTION_DELETE ? SLICE_NONE : document;
    seen->ttl = ttl;
    seen->flags = options->not_indexed ? ITEM_NOT_INDEXED : 0;
    seen->expired = false;
    transaction->work.writes++;
    transaction->work.bytes_written += document.len;
    plan_note(transaction, seen, !item);
    return true;
}

bool transaction_remove_expired(struct transaction *transaction, const struct document_value *id,
                                struct error *err)
{
    struct seen *seen;

    if (!seen_get(transaction, id, &seen, err))
        return false;
    if (!seen->is_stored || !seen->is_over || seen->is_written)
        return true;
    seen->is_written = true;
    seen->after = SLICE_NONE;
    seen->expired = true;
    transaction->work.writes++;
    plan_note(transaction, seen, false);
    return true;
}

/* --- Committing ------------------------------------------------------------------------------ */

static bool is_changed(const struct seen *seen)
{
    /* Made and unmade again: nothing to do. */
    return seen->is_written && (seen->is_stored || seen->after.data);
}

static struct section *section_of(struct transaction *transaction, const struct item_scope *scope)
{
    for (size_t i = 0; i < transaction->part_count; i++)
        if (transaction->sections[i].scope->partition == scope->partition)
            return &transaction->sections[i];
    transaction->sections[transaction->part_count] = (struct section){
        .scope = scope,
        .changes = ARENA_ARRAY(transaction->arena, struct change, transaction->seen_count),
    };
    return &transaction->sections[transaction->part_count++];
}

static void changes_collect(struct transaction *transaction, size_t places)
{
    transaction->part_count = 0;
    transaction->sections = ARENA_ARRAY(transaction->arena, struct section, places);
    for (size_t i = 0; i < transaction->seen_count; i++) {
        struct seen *seen = transaction->seen[i];
        struct section *section;

        if (!is_changed(seen))
            continue;
        section = section_of(transaction, &seen->place->scope);
        seen->change = &section->changes[section->change_count++];
        *seen->change = (struct change){
            .key = seen->key,
            .before = seen->is_stored ? &seen->stored : NULL,
            .before_is_over = seen->is_over,
            .after = seen->after,
            .ttl = seen->ttl,
            .flags = seen->flags,
            .expired = seen->expired,
        };
    }
}

/* What is relied on goes to the part of its partition; if nothing is written there, to a part of
 * its own without operations. */
static struct commit_part *part_of(struct transaction *transaction, const struct place *place)
{
    struct commit_part *part;

    for (size_t i = 0; i < transaction->part_count; i++)
        if (transaction->parts[i].partition == place->scope.partition)
            return &transaction->parts[i];
    part = &transaction->parts[transaction->part_count];
    transaction->sections[transaction->part_count++] = (struct section){0};
    *part = (struct commit_part){.partition = place->scope.partition, .epoch = place->scope.epoch};
    return part;
}

static void scanned_add(struct transaction *transaction, const struct scanned *scanned)
{
    struct commit_part *part = part_of(transaction, scanned->place);
    struct engine_range *ranges =
        ARENA_ARRAY(transaction->arena, struct engine_range, part->scanned_count + 1);

    if (part->scanned_count)
        memcpy(ranges, part->scanned, part->scanned_count * sizeof *ranges);
    ranges[part->scanned_count++] = scanned->range;
    part->scanned = ranges;
}

static void relied_add(struct transaction *transaction, const struct seen *seen)
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

static const struct place *place_of(const struct transaction *transaction,
                                    const struct change *change)
{
    size_t i = 0;

    while (transaction->seen[i]->change != change)
        i++;
    return transaction->seen[i]->place;
}

static bool owner_see(struct transaction *transaction, const struct place *place, uint64_t number,
                      struct seen **ret_owner, struct error *err)
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
    return seen_get_at(transaction, place, value.bytes, ret_owner, err);
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
static bool owner_yield(struct transaction *transaction, const struct place *place, uint64_t number,
                        bool *evicted, struct error *err)
{
    struct seen *owner;

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

static bool claim_check(struct transaction *transaction, const struct section *section,
                        const struct write_set_claim *claim, bool *evicted, struct error *err)
{
    uint64_t owner;
    bool owned;

    if (!claim_owner(transaction, section->scope, section->set, claim->key, &owned, &owner, err))
        return false;
    if (!owned)
        return true;
    return owner_yield(transaction, place_of(transaction, claim->change), owner, evicted, err);
}

static bool claims_check(struct transaction *transaction, const struct section *section,
                         bool *evicted, struct error *err)
{
    size_t count;
    const struct write_set_claim *claims = write_set_claims(section->set, &count);

    for (size_t i = 0; i < count; i++)
        if (!claim_check(transaction, section, &claims[i], evicted, err)) {
            transaction->refused = claims[i].change;
            return false;
        }
    return true;
}

bool transaction_unique_check(struct transaction *transaction, const struct document_value *id,
                              struct slice document, struct error *err)
{
    const struct place *place = transaction->place;
    const struct write_set_claim *claims;
    struct commit_part part;
    struct write_set *set;
    struct seen *seen, *other;
    struct change change;
    size_t count;

    if (place->scope.definition->unique_key_count == 0)
        return true;
    if (!seen_get(transaction, id, &seen, err))
        return false;
    change = (struct change){.key = seen->key,
                             .before = seen->is_stored ? &seen->stored : NULL,
                             .before_is_over = seen->is_over,
                             .after = document};
    if (!write_set_build(&place->scope, &change, 1, transaction->arena, &set, &part, err))
        return false;
    claims = write_set_claims(set, &count);
    for (size_t i = 0; i < count; i++) {
        uint64_t owner;
        bool owned;

        if (!claim_owner(transaction, &place->scope, set, claims[i].key, &owned, &owner, err) ||
            (owned && !owner_see(transaction, place, owner, &other, err)))
            return false;
        if (owned && other->is_stored && !other->is_over && !other->is_written)
            return error_set(err, ERROR_UNIQUE_KEY, "unique index constraint violation");
    }
    return true;
}

static void transaction_stamp(struct commit_batch *batch)
{
    struct transaction *transaction = CONTAINER_OF(batch, struct transaction, batch);

    for (size_t i = 0; i < transaction->part_count; i++)
        if (transaction->sections[i].set)
            write_set_stamp(transaction->sections[i].set, &transaction->parts[i].stamp);
}

/* Builds all write sets; anew if that brought up items to be removed with them. */
static bool sections_build(struct transaction *transaction, struct error *err)
{
    bool evicted;

    do {
        size_t places = transaction->seen_count;

        for (const struct scanned *scanned = transaction->scanned; scanned; scanned = scanned->next)
            places++;
        evicted = false;
        changes_collect(transaction, places);
        transaction->parts = ARENA_ARRAY(transaction->arena, struct commit_part, places);
        for (size_t i = 0; i < transaction->part_count; i++) {
            struct section *section = &transaction->sections[i];

            if (!write_set_build(section->scope, section->changes, section->change_count,
                                 transaction->arena, &section->set, &transaction->parts[i], err) ||
                !claims_check(transaction, section, &evicted, err))
                return false;
        }
    } while (evicted);
    return true;
}

static void work_count(struct transaction *transaction)
{
    for (size_t i = 0; i < transaction->part_count; i++) {
        const struct section *section = &transaction->sections[i];

        for (size_t c = 0; c < section->change_count; c++)
            transaction->work.index_entries +=
                section->changes[c].index_puts + section->changes[c].index_deletes;
        transaction->work.write_cru =
            cost_add(transaction->work.write_cru, write_set_cost(section->set));
    }
}

static bool commit_prepare(struct transaction *transaction, struct error *err)
{
    if (!sections_build(transaction, err))
        return false;
    work_count(transaction);
    for (size_t i = 0; transaction->part_count && i < transaction->seen_count; i++)
        if (transaction->seen[i]->is_relied)
            relied_add(transaction, transaction->seen[i]);
    for (const struct scanned *scanned = transaction->scanned; scanned && transaction->part_count;
         scanned = scanned->next)
        scanned_add(transaction, scanned);
    transaction->batch = (struct commit_batch){
        .parts = transaction->parts,
        .part_count = transaction->part_count,
        .moment = transaction->moment,
        .stamp = transaction_stamp,
    };
    /* A postgresql: snapshot holds a connection: let go before waiting for the commit. */
    engine_snapshot_free(TAKE(transaction->snapshot));
    return true;
}

bool transaction_commit(struct transaction *transaction, struct error *err)
{
    if (transaction->planned_count == 0)
        return true;
    return commit_prepare(transaction, err) &&
           (transaction->part_count == 0 ||
            commit_run(transaction->first->scope.commit, &transaction->batch, err));
}

static void commit_done(struct commit_batch *batch, const struct error *err)
{
    struct transaction *transaction = CONTAINER_OF(batch, struct transaction, batch);

    transaction->done(transaction, err, transaction->context);
}

bool transaction_commit_start(struct transaction *transaction,
                              void (*done)(struct transaction *transaction, const struct error *err,
                                           void *context),
                              void *context, struct error *err)
{
    if (transaction->planned_count && !commit_prepare(transaction, err))
        return false;
    if (transaction->part_count == 0) {
        done(transaction, NULL, context);
        return true;
    }
    transaction->done = done;
    transaction->context = context;
    transaction->batch.done = commit_done;
    return commit_submit(transaction->first->scope.commit, &transaction->batch, err);
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
    return lsn_in(transaction, transaction->first->scope.partition);
}

struct transaction_work transaction_work(const struct transaction *transaction)
{
    return transaction->work;
}

struct transaction_result transaction_result(const struct transaction *transaction, size_t nth)
{
    const struct planned *planned = &transaction->planned[nth];
    const struct seen *seen = transaction->seen[planned->seen];
    struct transaction_result result = {.created = planned->created,
                                        .lsn = lsn_in(transaction, seen->place->scope.partition)};

    assert(nth < transaction->planned_count);
    if (seen->change && seen->last_planned == nth)
        result.charge_cru = write_set_change_cost(seen->change);
    if (seen->after.data)
        result.item = (struct item){
            .header = seen->change->header, .key = seen->key, .document = seen->after};
    else
        result.item = seen->stored;
    return result;
}

bool transaction_refused(const struct transaction *transaction, size_t *ret_nth)
{
    for (size_t i = 0; transaction->refused && i < transaction->seen_count; i++)
        if (transaction->seen[i]->change == transaction->refused) {
            *ret_nth = transaction->seen[i]->last_planned;
            return true;
        }
    return false;
}
