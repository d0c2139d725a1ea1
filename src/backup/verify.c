/* Items are read in key order, some hundred keys of what they make are looked up together. A
 * logical partition is a run of items, so its sums are added up on the way. */
#include "backup/verify_private.h"

#include "base/bytes.h"
#include "document/bson.h"
#include "item/feed.h"
#include "partition/layout.h"
#include "partition/strategy.h"

#include <stdarg.h>
#include <stdlib.h>

enum { LOOKED_UP_TOGETHER = 1024, LOOKED_UP_BYTES = 4 << 20, META_LEN = 33 };

const char *verify_kind_name(enum verify_kind kind)
{
    static const char *const names[] = {
        [VERIFY_RECORD] = "record",
        [VERIFY_PARTITION] = "partition",
        [VERIFY_ITEM] = "item",
        [VERIFY_MISSING] = "missing",
        [VERIFY_WRONG] = "wrong",
        [VERIFY_SURPLUS] = "surplus",
        [VERIFY_SUM] = "sum",
        [VERIFY_NUMBERING] = "numbering",
        [VERIFY_RESIDENCE] = "residence",
    };

    return names[kind];
}

/* --- The catalogue --------------------------------------------------------------------------- */

struct telling {
    const struct backup_moment *moment;
    const struct verify_sink *sink;
    size_t count;
};

static void told(struct telling *telling, struct verify_finding finding, const char *format, ...)
    PRINTF_LIKE(3, 4);
static void told(struct telling *telling, struct verify_finding finding, const char *format, ...)
{
    char text[ERROR_MESSAGE_SIZE];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    finding.message = slice_of_text(text);
    telling->count++;
    telling->sink->tell(telling->sink->context, &finding);
}

static void missing_tell(void *context, const struct catalogue_kept_container *of,
                         const struct partition_span *span)
{
    told(context,
         (struct verify_finding){
             .kind = VERIFY_PARTITION, .partition = span->id, .node = "", .container = of},
         "node %u holds no partition %u, which the map of the container names", span->node,
         span->id);
}

static bool is_owned(const struct backup_moment *moment, uint32_t id)
{
    for (size_t i = 0; i < moment->kept.owned_count; i++)
        if (moment->kept.owned[i] == id)
            return true;
    return false;
}

static void orphans_tell(struct telling *telling)
{
    const struct backup_moment *moment = telling->moment;

    for (size_t i = 0; moment->has_catalogue && i < moment->node_count; i++) {
        const struct backup_node *node = &moment->nodes[i];

        for (size_t p = 0; p < node->partition_count; p++) {
            uint32_t id = node->partitions[p].id;

            if (id != CATALOGUE_KEPT_PARTITION && id != PARTITION_HISTORY && !is_owned(moment, id))
                told(telling,
                     (struct verify_finding){
                         .kind = VERIFY_PARTITION, .partition = id, .node = node->name},
                     "partition %u belongs to no container; a start of the server drops it", id);
        }
    }
}

/* A fence is raised by the end of a migration, which then publishes another map. */
static void epochs_tell(struct telling *telling)
{
    const struct backup_moment *moment = telling->moment;

    for (size_t i = 0; i < moment->partition_count; i++) {
        const struct backup_partition *partition = &moment->partitions[i];
        bool moving = partition->container && container_migration(partition->container->container);

        if (!partition->span || partition->epoch == partition->span->epoch ||
            (moving && partition->epoch > partition->span->epoch))
            continue;
        told(telling,
             (struct verify_finding){.kind = VERIFY_PARTITION,
                                     .partition = partition->id,
                                     .node = partition->node->name,
                                     .container = partition->container},
             "partition %u is at epoch %llu, and the map of its container says %llu", partition->id,
             (unsigned long long)partition->epoch, (unsigned long long)partition->span->epoch);
    }
}

bool verify_catalogue(const struct backup_moment *moment, const struct verify_sink *sink,
                      size_t *ret_count, struct error *err)
{
    struct telling telling = {moment, sink, 0};
    size_t breaches;

    for (size_t i = 0; i < moment->kept.damage_count; i++)
        told(&telling,
             (struct verify_finding){.kind = VERIFY_RECORD,
                                     .partition = CATALOGUE_KEPT_PARTITION,
                                     .node = moment->nodes[0].name,
                                     .key = moment->kept.damages[i].key},
             "%.*s", SLICE_ARG(moment->kept.damages[i].message));
    (void)backup_moment_missing(moment, missing_tell, &telling);
    orphans_tell(&telling);
    epochs_tell(&telling);
    if (!verify_resident_maps(moment, sink, &breaches, err))
        return false;
    *ret_count = telling.count + breaches;
    return true;
}

/* --- One partition --------------------------------------------------------------------------- */

static void scope_init(struct verify *verify)
{
    const struct backup_partition *partition = verify->partition;
    struct container *container = partition->container->container;
    const struct definition_fields *fields = definition_fields(container_definition(container));
    struct item_scope *scope = &verify->scope;

    verify->before_count = container_policies_before(container, &verify->before);
    *scope = (struct item_scope){
        .engine = partition->node->engine,
        .commit = partition->node->commit,
        .partition = partition->id,
        .epoch = partition->epoch,
        .definition = fields,
        .policy = fields->policy,
        .policy_version = container_policy_version(container),
        .writers = container_writers(container),
        .clock = NULL,
        .map = container_map(container),
        .node = partition->span ? partition->span->node : 0,
    };
    verify->versions_from = scope->policy_version - (uint32_t)verify->before_count;
    for (size_t i = 0; i < fields->index_count; i++)
        verify->claims_change |= fields->indexes[i]->unique != INDEX_UNIQUE_NOT &&
                                 fields->indexes[i]->state == INDEX_BUILDING;
}

static void numbering_read(struct verify *verify)
{
    struct slice meta = verify->partition->numbering;

    if (meta.len != META_LEN)
        return;
    verify->numbering_lsn = bytes_get_be64(meta.data + 1);
    verify->numbering_counter = bytes_get_be64(meta.data + 25);
}

struct verify *verify_new(const struct backup_moment *moment,
                          const struct backup_partition *partition, bool repair)
{
    struct verify *verify = MEMORY_NEW(struct verify);

    verify->moment = moment;
    verify->partition = partition;
    verify->repair = repair && partition->node->commit;
    verify->arena = arena_new();
    verify->sums_arena = arena_new();
    buf_init(&verify->position, ENGINE_KEY_MAX + 1);
    if (partition->container) {
        scope_init(verify);
        numbering_read(verify);
    } else {
        /* the catalogue is read whole */
        verify->phase =
            partition->id == PARTITION_HISTORY ? VERIFY_PHASE_HISTORY : VERIFY_PHASE_DONE;
    }
    return verify;
}

void verify_free(struct verify *verify)
{
    if (!verify)
        return;
    buf_done(&verify->position);
    catalogue_nodes_free(verify->table);
    arena_free(verify->sums_arena);
    arena_free(verify->arena);
    memory_free(verify);
}

const struct backup_partition *verify_partition(const struct verify *verify)
{
    return verify->partition;
}

struct verify_figures verify_figures(const struct verify *verify)
{
    return verify->figures;
}

void verify_tell(struct verify *verify, enum verify_kind kind, struct slice key, const char *format,
                 ...)
{
    struct verify_finding finding = {
        .kind = kind,
        .is_derived =
            verify->partition->container && (kind == VERIFY_MISSING || kind == VERIFY_WRONG ||
                                             kind == VERIFY_SURPLUS || kind == VERIFY_SUM),
        .node = verify->partition->node->name,
        .partition = verify->partition->id,
        .container = verify->partition->container,
        .key = key,
    };
    char text[ERROR_MESSAGE_SIZE];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    finding.message = slice_of_text(text);
    verify->figures.findings++;
    verify->sink->tell(verify->sink->context, &finding);
}

/* --- One item -------------------------------------------------------------------------------- */

/* As things were when the item was indexed: what was switched on since has not reached it. */
static struct item_scope scope_of(const struct verify *verify, const struct item_header *header)
{
    struct item_scope scope = verify->scope;
    uint32_t version = header->policy_version;

    if (version >= verify->versions_from && version < scope.policy_version) {
        scope.definition = definition_fields(verify->before[version - verify->versions_from]);
        scope.policy = scope.definition->policy;
    }
    scope.policy_version = version;
    return scope;
}

static bool header_check(const struct item_header *header, struct error *err)
{
    if (header->flags & ~(ITEM_NOT_INDEXED | ITEM_EXPIRY_BY_DEFAULT))
        return error_set(err, ERROR_STORE_CORRUPT, "it has flags that nobody knows");
    if (header->ttl < -1)
        return error_set(err, ERROR_STORE_CORRUPT, "its time to live is %d s", header->ttl);
    return header->policy_version ||
           error_set(err, ERROR_STORE_CORRUPT, "it is indexed by no version of a policy");
}

bool verify_item_build(const struct verify *verify, struct slice key, struct slice stored,
                       struct arena *arena, struct verify_item *ret_item, struct error *err)
{
    struct item_scope scope;

    *ret_item = (struct verify_item){0};
    if (!item_decode(key, stored, &ret_item->item, err) ||
        !document_validate(ret_item->item.document, NULL, err))
        return false;
    if (!header_check(&ret_item->item.header, err))
        return false;
    if (ret_item->item.header.policy_version > verify->scope.policy_version)
        return error_set(err, ERROR_STORE_CORRUPT,
                         "it is indexed by version %u of a policy that has %u",
                         ret_item->item.header.policy_version, verify->scope.policy_version);
    scope = scope_of(verify, &ret_item->item.header);
    ret_item->change = (struct write_set_change){
        .key = key,
        .after = ret_item->item.document,
        .ttl = ret_item->item.header.ttl,
        .flags = ret_item->item.header.flags,
        .is_carried = true,
        .carried = ret_item->item.header,
    };
    return write_set_build(&scope, &ret_item->change, 1, arena, &ret_item->set, &ret_item->part,
                           err);
}

/* Which version came before only the feed knows: it can be told whether it may be. */
static bool previous_fits(const struct feed_record *record)
{
    const struct feed_place *previous = &record->previous;

    return previous->lsn ? partition_lsn_era(previous->lsn) <= partition_lsn_era(record->place.lsn)
                         : !previous->origin && !previous->ordinal;
}

/* The image is there where all versions were kept when it was written. */
static bool feed_fits(const struct engine_op *op, struct slice stored,
                      const struct item_header *header)
{
    struct feed_record made, found;
    struct error ignored;

    return feed_record_decode(op->key, op->value, &made, &ignored) &&
           feed_record_decode(op->key, stored, &found, &ignored) &&
           slice_equal(made.key, found.key) && found.number == header->number &&
           found.wall_ms == header->wall_ms && previous_fits(&found) &&
           (found.kind == FEED_CREATE || found.kind == FEED_REPLACE) &&
           (!found.image.len || !made.image.len || slice_equal(found.image, made.image));
}

bool verify_value_fits(const struct engine_op *op, struct slice stored,
                       const struct item_header *header)
{
    return op->key.data[0] == PARTITION_FAMILY_FEED ? feed_fits(op, stored, header)
                                                    : slice_equal(op->value, stored);
}

static bool is_in_span(const struct verify *verify, struct slice key)
{
    const struct partition_span *span = verify->partition->span;

    return slice_compare(key, span->min) >= 0 &&
           (!span->max.len || slice_compare(key, span->max) < 0);
}

static void numbering_check(struct verify *verify, const struct item *item, struct slice key)
{
    const struct item_header *header = &item->header;
    uint64_t source = header->number >> PARTITION_NUMBER_COUNTER_BITS;
    uint64_t counter = header->number & (((uint64_t)1 << PARTITION_NUMBER_COUNTER_BITS) - 1);

    if (source == verify->partition->id && counter >= verify->numbering_counter)
        verify_tell(verify, VERIFY_NUMBERING, key,
                    "the item has number %llu, which the partition would give again",
                    (unsigned long long)counter);
    else if (header->origin == verify->partition->id &&
             partition_lsn_era(header->lsn) == partition_lsn_era(verify->numbering_lsn) &&
             header->lsn > verify->numbering_lsn)
        verify_tell(verify, VERIFY_NUMBERING, key,
                    "the item was written by lsn %llu, and the partition is at %llu",
                    (unsigned long long)header->lsn, (unsigned long long)verify->numbering_lsn);
}

/* --- Looking up ------------------------------------------------------------------------------ */

/* Entries that items make, looked up together. */
struct lookup {
    struct engine_op *op;
    const struct verify_item *item;
    struct engine_value value;
};

struct lookups {
    struct lookup *list;
    size_t count, capacity, bytes;
};

static int lookup_compare(const void *left, const void *right)
{
    return slice_compare(((const struct lookup *)left)->op->key,
                         ((const struct lookup *)right)->op->key);
}

static void lookup_add(struct verify *verify, struct lookups *lookups, struct engine_op *op,
                       const struct verify_item *item)
{
    if (lookups->count == lookups->capacity) {
        size_t capacity = lookups->capacity ? lookups->capacity * 2 : 256;
        struct lookup *list = ARENA_ARRAY(verify->arena, struct lookup, capacity);

        if (lookups->count)
            memcpy(list, lookups->list, lookups->count * sizeof *list);
        lookups->list = list;
        lookups->capacity = capacity;
    }
    lookups->list[lookups->count++] = (struct lookup){.op = op, .item = item};
    lookups->bytes += op->key.len + op->value.len;
}

static bool lookup_check(struct verify *verify, const struct lookup *lookup, struct error *err)
{
    const struct engine_op *op = lookup->op;

    if (lookup->value.found == ENGINE_FOUND) {
        verify->figures.bytes += op->key.len + lookup->value.bytes.len;
        if (verify_value_fits(op, lookup->value.bytes, &lookup->item->item.header))
            return true;
        verify_tell(verify, VERIFY_WRONG, op->key,
                    "the entry has another value than its item makes");
    } else {
        verify->missing[op->key.data[0]]++;
        verify_tell(verify, VERIFY_MISSING, op->key, "an entry that its item makes is missing");
    }
    return !verify->repair || verify_repair_item(verify, lookup->item->item.key, SLICE_NONE, err);
}

static bool lookups_run(struct verify *verify, struct lookups *lookups, struct error *err)
{
    struct slice *keys = ARENA_ARRAY(verify->arena, struct slice, lookups->count);
    struct engine_value *values = ARENA_ARRAY(verify->arena, struct engine_value, lookups->count);

    if (!lookups->count)
        return true;
    qsort(lookups->list, lookups->count, sizeof *lookups->list, lookup_compare);
    for (size_t i = 0; i < lookups->count; i++)
        keys[i] = lookups->list[i].op->key;
    if (!engine_multi_get(verify->scope.engine, verify->partition->node->snapshot,
                          verify->partition->id, keys, lookups->count, ENGINE_READ_ANY,
                          verify->arena, values, err))
        return false;
    for (size_t i = 0; i < lookups->count; i++) {
        lookups->list[i].value = values[i];
        if (!lookup_check(verify, &lookups->list[i], err))
            return false;
    }
    verify->figures.entries += lookups->count;
    return true;
}

/* --- Sums ------------------------------------------------------------------------------------ */

static bool is_zero(const int64_t *numbers)
{
    for (size_t i = 0; i < COUNTER_NUMBERS; i++)
        if (numbers[i])
            return false;
    return true;
}

static bool sum_compare(struct verify *verify, struct slice key, const int64_t *expected,
                        struct error *err)
{
    int64_t stored[COUNTER_NUMBERS] = {0}, lacks[COUNTER_NUMBERS];
    struct engine_value value;
    bool same = true, fits = true;

    if (!engine_get(verify->scope.engine, verify->partition->node->snapshot, verify->partition->id,
                    key, ENGINE_READ_ANY, verify->arena, &value, err))
        return false;
    if (value.found == ENGINE_FOUND && !counter_decode(value.bytes, stored, err)) {
        verify_tell(verify, VERIFY_SUM, key, "the sum cannot be read");
        return true; /* and cannot be added to: commits refuse it by name */
    }
    for (size_t i = 0; i < COUNTER_NUMBERS; i++) {
        fits &= !__builtin_sub_overflow(expected[i], stored[i], &lacks[i]);
        same &= expected[i] == stored[i];
    }
    if (same)
        return true;
    verify->missing[PARTITION_FAMILY_COUNTER] += is_zero(stored);
    verify_tell(verify, VERIFY_SUM, key, "the sum is %lld, %lld and its items make %lld, %lld",
                (long long)stored[0], (long long)stored[1], (long long)expected[0],
                (long long)expected[1]);
    return !verify->repair || !fits || verify_repair_sum(verify, key, lacks, err);
}

static bool is_spread(const struct verify *verify, struct slice logical)
{
    size_t count;

    (void)partition_map_parts(verify->scope.map, logical, &count);
    return count > 1;
}

/* Adds what a part holds of a logical partition. */
static bool part_sum(const struct verify *verify, uint32_t partition, struct slice logical,
                     int64_t *sums, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct slice min = item_family_key(verify->arena, PARTITION_FAMILY_ITEM, logical);
    struct slice max = arena_join(verify->arena, (const struct slice[]){min, SLICE("\xFF")}, 2);
    struct engine_entry entry;

    if (!engine_iterator_new(verify->scope.engine, verify->partition->node->snapshot, partition,
                             (struct engine_range){min, max}, false, ENGINE_READ_ONCE, &iterator,
                             err))
        return false;
    for (;;) {
        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        sums[0] += (int64_t)(entry.key.len + entry.value.len);
        sums[1]++;
    }
}

/* The first part of a spread key has the sum of all of them. */
static bool spread_check(struct verify *verify, struct error *err)
{
    const struct partition_definition *definition = &verify->scope.definition->key;
    const struct partition_span *span =
        partition_map_find_id(verify->scope.map, verify->partition->id);
    int64_t sums[COUNTER_NUMBERS] = {0};
    const struct partition_span *parts;
    struct slice logical, pk;
    size_t count;

    if (!span || span->cut == PARTITION_CUT_SPREAD ||
        !partition_map_is_part(verify->scope.map, span))
        return true;
    if (!partition_route_cut(definition, span->max, &logical, &pk, err))
        return false;
    parts = partition_map_parts(verify->scope.map, logical, &count);
    for (size_t i = 0; i < count; i++)
        if (!part_sum(verify, parts[i].id, logical, sums, err))
            return false;
    verify->expected[PARTITION_FAMILY_COUNTER] += !is_zero(sums);
    return sum_compare(verify,
                       arena_join(verify->arena, (const struct slice[]){SLICE("cl"), logical}, 2),
                       sums, err);
}

/* The logical partition at hand has come to its end. */
static bool sums_flush(struct verify *verify, struct error *err)
{
    for (size_t i = 0; i < verify->sum_count; i++) {
        if (is_spread(verify, slice_skip(verify->sums[i].key, 2)))
            continue; /* spread_check */
        verify->expected[PARTITION_FAMILY_COUNTER] += !is_zero(verify->sums[i].amounts);
        if (!sum_compare(verify, verify->sums[i].key, verify->sums[i].amounts, err))
            return false;
    }
    verify->sum_count = 0;
    verify->logical = SLICE_NONE;
    arena_reset(verify->sums_arena);
    verify->sums = ARENA_ARRAY(verify->sums_arena, struct verify_sum, VERIFY_SUMS_MAX);
    return true;
}

static bool sum_add(struct verify *verify, const struct commit_delta *delta, struct error *err)
{
    size_t place = 0;

    if (delta->key.len == 2) { /* of the physical partition */
        for (size_t i = 0; i < COUNTER_NUMBERS; i++)
            verify->total[i] += delta->amounts[i];
        return true;
    }
    while (place < verify->sum_count && !slice_equal(verify->sums[place].key, delta->key))
        place++;
    if (place == VERIFY_SUMS_MAX)
        return error_set(err, ERROR_TOO_LARGE,
                         "a logical partition has more sums than can be verified");
    if (place == verify->sum_count)
        verify->sums[verify->sum_count++] =
            (struct verify_sum){.key = arena_copy(verify->sums_arena, delta->key)};
    for (size_t i = 0; i < COUNTER_NUMBERS; i++)
        verify->sums[place].amounts[i] += delta->amounts[i];
    return true;
}

static bool sums_add(struct verify *verify, const struct verify_item *item, struct error *err)
{
    struct item_key_parts parts;

    if (!item_key_split(&verify->scope.definition->key, item->item.key, &parts, err))
        return false;
    if (!slice_equal(parts.logical, verify->logical)) {
        if (!sums_flush(verify, err))
            return false;
        verify->logical = arena_copy(verify->sums_arena, parts.logical);
    }
    for (size_t i = 0; i < item->part.delta_count; i++)
        if (!sum_add(verify, &item->part.deltas[i], err))
            return false;
    return true;
}

/* --- Forwards -------------------------------------------------------------------------------- */

static bool item_take(struct verify *verify, struct slice key, struct slice stored,
                      struct lookups *lookups, struct error *err)
{
    struct verify_item *item = ARENA_NEW(verify->arena, struct verify_item);
    struct slice item_key = arena_copy(verify->arena, slice_skip(key, 1));
    struct error damage;

    verify->figures.items++;
    verify->figures.bytes += key.len + stored.len;
    if (!is_in_span(verify, item_key))
        verify_tell(verify, VERIFY_ITEM, key, "the item is outside of the span of its partition");
    if (!verify_item_build(verify, item_key, arena_copy(verify->arena, stored), verify->arena, item,
                           &damage)) {
        verify_tell(verify, VERIFY_ITEM, key, "the item is damaged: %s", damage.message);
        return true;
    }
    numbering_check(verify, &item->item, key);
    verify_resident_item(verify, key);
    for (size_t i = 0; i < item->part.op_count; i++) {
        struct engine_op *op = &item->part.ops[i];
        uint8_t family = op->key.data[0];

        if (family == PARTITION_FAMILY_ITEM) {
            if (!slice_equal(op->value, stored))
                verify_tell(verify, VERIFY_ITEM, key,
                            "the header of the item is not what its document and policy make");
            continue;
        }
        if (family == PARTITION_FAMILY_UNIQUE && verify->claims_change)
            continue;
        verify->expected[family]++;
        lookup_add(verify, lookups, op, item);
    }
    return verify_placed_check(verify, item, err) && sums_add(verify, item, err);
}

static struct engine_range range_behind(const struct verify *verify, uint8_t family,
                                        struct arena *arena)
{
    uint8_t *max = arena_alloc(arena, 1), *min = arena_alloc(arena, 1);

    *min = family;
    *max = (uint8_t)(family + 1);
    return (struct engine_range){
        .min = verify->position.len
                   ? arena_join(arena,
                                (struct slice[]){buf_slice(&verify->position), slice_of("", 1)}, 2)
                   : slice_of(min, 1),
        .max = slice_of(max, 1)};
}

static bool total_check(struct verify *verify, struct error *err)
{
    verify->expected[PARTITION_FAMILY_COUNTER] += !is_zero(verify->total);
    return sum_compare(verify, SLICE("ct"), verify->total, err);
}

static bool items_step(struct verify *verify, size_t *looked, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct lookups lookups = {0};
    struct engine_entry entry = {0};

    if (!verify_resident_begin(verify, err) || (!verify->position.len && !sums_flush(verify, err)))
        return false;
    if (!engine_iterator_new(verify->scope.engine, verify->partition->node->snapshot,
                             verify->partition->id,
                             range_behind(verify, PARTITION_FAMILY_ITEM, verify->arena), false,
                             ENGINE_READ_ONCE, &iterator, err))
        return false;
    while (lookups.count < LOOKED_UP_TOGETHER && lookups.bytes < LOOKED_UP_BYTES) {
        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            break;
        buf_clear(&verify->position);
        buf_append_slice(&verify->position, entry.key);
        if (!item_take(verify, entry.key, entry.value, &lookups, err))
            return false;
    }
    *looked = lookups.count + 1;
    if (!lookups_run(verify, &lookups, err))
        return false;
    if (entry.found == ENGINE_FOUND)
        return true;
    buf_clear(&verify->position);
    verify->phase = VERIFY_PHASE_COUNT;
    return sums_flush(verify, err) && spread_check(verify, err) && total_check(verify, err);
}

/* --- Counting -------------------------------------------------------------------------------- */

static bool is_derived_family(uint8_t family)
{
    return family == PARTITION_FAMILY_NUMBER || family == PARTITION_FAMILY_INDEX ||
           family == PARTITION_FAMILY_EXPIRY || family == PARTITION_FAMILY_UNIQUE ||
           family == PARTITION_FAMILY_FEED || family == PARTITION_FAMILY_COUNTER;
}

static bool is_left_alone(uint8_t family)
{
    return family == PARTITION_FAMILY_ITEM || family == PARTITION_FAMILY_JOURNAL ||
           family == PARTITION_FAMILY_META || family == PARTITION_FAMILY_PROGRESS ||
           family == PARTITION_FAMILY_RECORD || family == PARTITION_FAMILY_GROUP ||
           family == PARTITION_FAMILY_PLACE;
}

/* Sums that are zero stay where their last item went; conflicts stay until their index has failed;
 * of the feed only records count that may be a last word. */
static bool counts(const struct verify *verify, const struct engine_entry *entry)
{
    int64_t numbers[COUNTER_NUMBERS];
    struct feed_record record;
    struct error ignored;

    switch (entry->key.data[0]) {
    case PARTITION_FAMILY_COUNTER:
        return !counter_decode(entry->value, numbers, &ignored) || !is_zero(numbers);
    case PARTITION_FAMILY_UNIQUE:
        return !verify->claims_change &&
               (entry->key.len < 2 || entry->key.data[1] != WRITE_SET_CONFLICT);
    case PARTITION_FAMILY_FEED:
        if (entry->key.len == FEED_KEY_LEN && bytes_get_be64(entry->key.data + 1) == 0)
            return false; /* a mark */
        return !feed_record_decode(entry->key, entry->value, &record, &ignored) ||
               (!verify->scope.definition->feed_retention_ms && !record.image.len &&
                record.kind != FEED_DELETE && record.kind != FEED_EXPIRE);
    default:
        return true;
    }
}

static bool count_step(struct verify *verify, size_t entries_max, size_t *looked, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_range range = {0};
    struct engine_entry entry = {0};

    if (verify->position.len)
        range.min = arena_join(verify->arena,
                               (struct slice[]){buf_slice(&verify->position), slice_of("", 1)}, 2);
    if (!engine_iterator_new(verify->scope.engine, verify->partition->node->snapshot,
                             verify->partition->id, range, false, ENGINE_READ_ONCE, &iterator, err))
        return false;
    for (*looked = 0; *looked < entries_max; (*looked)++) {
        uint8_t family, behind;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            break;
        family = entry.key.data[0];
        behind = (uint8_t)(family + 1);
        buf_clear(&verify->position);
        buf_append_slice(&verify->position, entry.key);
        if (is_left_alone(family)) {
            if (!engine_iterator_seek(iterator, slice_of(&behind, 1), err))
                return false;
        } else if (!is_derived_family(family)) {
            verify_tell(verify, VERIFY_SURPLUS, entry.key, "no entry has a key of this kind");
        } else if (verify_is_placed(verify, entry.key)) {
            if (!verify_placed_look(verify, entry.key, err))
                return false;
        } else {
            verify->found[family] += counts(verify, &entry);
        }
    }
    if (entry.found != ENGINE_FOUND) {
        buf_clear(&verify->position);
        verify->phase = VERIFY_PHASE_SURPLUS;
    }
    return true;
}

/* Of the feed, where all versions are kept, only what cannot be read was counted. */
static bool has_surplus(const struct verify *verify, size_t family)
{
    uint64_t right = verify->expected[family] - verify->missing[family];

    if (family != PARTITION_FAMILY_FEED)
        return verify->found[family] != right;
    return verify->found[family] > (verify->scope.definition->feed_retention_ms ? 0 : right);
}

static bool surplus_step(struct verify *verify, size_t entries_max, size_t *looked,
                         struct error *err)
{
    for (size_t family = 0; family < VERIFY_FAMILIES; family++) {
        bool finished;

        if (!is_derived_family((uint8_t)family) || !has_surplus(verify, family))
            continue;
        if (!verify_surplus_step(verify, (uint8_t)family, entries_max, looked, &finished, err))
            return false;
        if (finished) { /* and so the next one comes to its turn */
            verify->found[family] = verify->expected[family] = verify->missing[family] = 0;
            buf_clear(&verify->position);
        }
        return true;
    }
    verify->phase = VERIFY_PHASE_DONE;
    return true;
}

bool verify_step(struct verify *verify, size_t entries_max, const struct verify_sink *sink,
                 bool *ret_finished, struct error *err)
{
    size_t looked_at = 0;
    bool good = true;

    verify->sink = sink;
    while (good && verify->phase != VERIFY_PHASE_DONE && looked_at < entries_max) {
        size_t looked = 1;

        arena_reset(verify->arena);
        switch (verify->phase) {
        case VERIFY_PHASE_ITEMS:
            good = items_step(verify, &looked, err);
            break;
        case VERIFY_PHASE_COUNT:
            good = count_step(verify, entries_max, &looked, err);
            break;
        case VERIFY_PHASE_HISTORY:
            good = verify_history_step(verify, entries_max, &looked, err);
            break;
        default:
            good = surplus_step(verify, entries_max, &looked, err);
            break;
        }
        looked_at += MAX(looked, (size_t)1);
    }
    verify->sink = NULL;
    *ret_finished = verify->phase == VERIFY_PHASE_DONE;
    return good || error_prefix(err, "partition %u on node \"%s\"", verify->partition->id,
                                verify->partition->node->name);
}
