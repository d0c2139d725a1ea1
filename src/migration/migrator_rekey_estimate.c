/* A look at what a re-key would meet. Keys are compared by their hashes, of all items while there
 * is room for them and then of one in two, one in four, ...: equal keys have equal hashes, so those
 * that meet are kept or left out together. Beside a hash stands the number of its item, by which it
 * is found again to be shown.
 *
 * How long it would take is measured: some items of every partition are copied (struct
 * migrator_rekey_sample). */
#include "base/bytes.h"
#include "catalogue/container_space.h"
#include "catalogue/migration.h"
#include "document/json.h"
#include "document/order.h"
#include "item/scan.h"
#include "migration/migrator_rekey.h"
#include "migration/mover_private.h"
#include "partition/layout.h"

#include <stdlib.h>
#include <xxhash.h>

enum {
    HASHES_MAX = 1 << 20,
    PAGE_ITEMS = 500,
    ENTRY_BYTES = 70, /* of an index entry on disk, roughly */
    SAMPLE_BYTES = 8 * 1024 * 1024,
    SAMPLE_TIME_PART = 4, /* of the time there is */
    /* Of a durable node: its log, and what it does in the background, against memory alone. */
    DURABLE_FACTOR = 2,
};

/* As they are listed. */
enum conflict_kind {
    KIND_INVALID,
    KIND_MISSING,
    KIND_SAME,
    KIND_UNIQUE,
    KIND_FULL,
    CONFLICT_KINDS
};
static const char *const kind_names[CONFLICT_KINDS] = {"invalidKey", "missingKey", "sameKeyAndId",
                                                       "sameUniqueKey", "logicalPartitionFull"};

struct hashed {
    uint64_t hash, number, weight;
};

struct hashes {
    struct hashed *list;
    size_t count;
    unsigned shift; /* hashes with so many low bits of zero are kept */
};

struct estimating {
    const struct partition_definition *from, *to;
    const struct definition_fields *placed;
    struct item_space space;
    bool allows_missing;
    int64_t until_ms;
    const struct clock *clock;
    struct hashes keys, logicals, uniques;
    struct migrator_rekey_sample sample;
    int64_t sample_ms, sample_until_ms; /* taken so far; at most */
    size_t sample_bytes_max;            /* of one partition */
    struct migrator_estimate *estimate;
    struct buf *json;
    size_t shown[CONFLICT_KINDS];
    struct arena *arena; /* of a page */
};

/* --- Showing --------------------------------------------------------------------------------- */

static bool conflict_show(struct estimating *e, enum conflict_kind kind, const struct item *item,
                          const struct mover_rekeyed *rekeyed, struct error *err)
{
    struct item_key_parts parts;
    struct document_value id, why;
    struct partition_key key;
    bool first = true;

    for (size_t i = 0; i < CONFLICT_KINDS; i++)
        first = first && !e->shown[i];
    if (e->shown[kind] == MIGRATOR_SHOWN_MAX)
        return true;
    if (!item_key_split(e->from, item->key, &parts, err) ||
        !document_key_read(definition_names_of(e->placed)->identity_order, &parts.id, e->arena, &id,
                           err) ||
        !partition_key_read(e->from, &parts.pk_id, e->arena, &key, err))
        return false;
    e->shown[kind]++;
    buf_printf(e->json, "%s{\"kind\":\"%s\",\"id\":", first ? "" : ",", kind_names[kind]);
    document_json_write_value(&id, e->json);
    BUF_APPEND(e->json, ",\"from\":");
    partition_key_json(e->from, &key, e->json);
    if (kind == KIND_INVALID) {
        why = document_string(slice_of(rekeyed->why, strlen(rekeyed->why)));
        BUF_APPEND(e->json, ",\"why\":");
        document_json_write_value(&why, e->json);
    } else {
        BUF_APPEND(e->json, ",\"to\":");
        partition_key_json(e->to, &rekeyed->key, e->json);
    }
    BUF_APPEND(e->json, "}");
    return true;
}

/* The item of a number, if it is in this partition. */
static bool number_find(struct estimating *e, const struct partition_span *span, uint64_t number,
                        struct item *ret_item, bool *ret_found, struct error *err)
{
    struct item_scope scope = item_space_span_scope(&e->space, span);
    struct engine_value value;
    uint8_t key[9] = {PARTITION_FAMILY_NUMBER};

    bytes_put_be64(key + 1, number);
    *ret_found = false;
    if (!engine_get(scope.engine, NULL, scope.partition, slice_of(key, sizeof key), ENGINE_READ_ANY,
                    e->arena, &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
        return true;
    if (!item_scan_fetch(&scope, NULL, &value.bytes, 1, e->arena, ret_item, err))
        return false;
    *ret_found = ret_item->document.data && ret_item->header.number == number;
    return true;
}

/* An item that is gone, or another by now, is left out. */
static bool number_show(struct estimating *e, enum conflict_kind kind, uint64_t number,
                        struct error *err)
{
    struct mover_rekeyed rekeyed;
    struct item item;
    bool found = false;
    size_t count;
    const struct partition_span *spans = partition_map_spans(e->space.map, &count);

    if (e->shown[kind] == MIGRATOR_SHOWN_MAX)
        return true;
    arena_reset(e->arena);
    for (size_t i = 0; i < count && !found; i++)
        if (!number_find(e, &spans[i], number, &item, &found, err))
            return false;
    if (!found)
        return true;
    if (!mover_rekey_item(e->from, e->to, e->allows_missing, &e->space.key_limits, &item, e->arena,
                          &rekeyed, err))
        return false;
    return rekeyed.obstacle != MOVER_FINE || conflict_show(e, kind, &item, &rekeyed, err);
}

/* --- Meeting --------------------------------------------------------------------------------- */

static bool is_kept(const struct hashes *hashes, uint64_t hash)
{
    return !(hash & (((uint64_t)1 << hashes->shift) - 1));
}

static void hashes_add(struct hashes *hashes, struct slice key, uint64_t number, uint64_t weight)
{
    uint64_t hash = XXH3_64bits(key.data, key.len);

    if (!hashes->list)
        hashes->list = memory_alloc(memory_array_size(HASHES_MAX, sizeof *hashes->list));
    if (!is_kept(hashes, hash))
        return;
    while (hashes->count == HASHES_MAX) {
        size_t kept = 0;

        hashes->shift++;
        for (size_t i = 0; i < hashes->count; i++)
            if (is_kept(hashes, hashes->list[i].hash))
                hashes->list[kept++] = hashes->list[i];
        hashes->count = kept;
    }
    if (is_kept(hashes, hash))
        hashes->list[hashes->count++] = (struct hashed){hash, number, weight};
}

static int hashed_compare(const void *a, const void *b)
{
    const struct hashed *x = a, *y = b;

    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Counts and shows what came after the first of its hash; and hashes whose weights are above max.
 */
static bool hashes_meet(struct estimating *e, struct hashes *hashes, enum conflict_kind kind,
                        uint64_t weight_max, uint64_t *ret_met, struct error *err)
{
    uint64_t weight = 0;

    *ret_met = 0;
    if (hashes->count)
        qsort(hashes->list, hashes->count, sizeof *hashes->list, hashed_compare);
    for (size_t i = 0; i < hashes->count; i++) {
        bool again = i && hashes->list[i].hash == hashes->list[i - 1].hash;
        uint64_t before = again ? weight : 0;
        bool meets = again;

        weight = before + hashes->list[i].weight;
        if (kind == KIND_FULL)
            meets = weight_max && before <= weight_max && weight > weight_max;
        *ret_met += meets;
        if (meets && !number_show(e, kind, hashes->list[i].number, err))
            return false;
    }
    return true;
}

static void uniques_add(struct estimating *e, uint64_t number, struct slice logical,
                        struct slice document)
{
    for (size_t u = 0; u < e->placed->unique_key_count; u++) {
        const struct definition_unique_key *unique = &e->placed->unique_keys[u];
        CLEANUP(buf_done) struct buf key;

        buf_init(&key, BUF_DEFAULT_MAX);
        buf_append_byte(&key, (uint8_t)u);
        buf_append_slice(&key, logical);
        for (size_t i = 0; i < unique->path_count; i++) {
            struct document_value value;

            if (!document_path_find(&unique->paths[i], document, &value))
                value = document_null();
            document_key_append(DOCUMENT_ORDER_SQL, &value, &key);
        }
        hashes_add(&e->uniques, buf_slice(&key), number, 0);
    }
}

/* --- Looking --------------------------------------------------------------------------------- */

/* ret_rekeyed: as it would be, in the arena. */
static bool item_look(struct estimating *e, const struct item *item,
                      struct mover_rekeyed *ret_rekeyed, struct error *err)
{
    uint64_t bytes = 1 + item->key.len + ITEM_HEADER_LEN + item->document.len;
    struct mover_rekeyed *rekeyed = ret_rekeyed;
    struct item_key_parts parts;
    struct index_entry *entries;
    size_t entry_count = 0;

    if (!mover_rekey_item(e->from, e->to, e->allows_missing, &e->space.key_limits, item, e->arena,
                          rekeyed, err))
        return false;
    e->estimate->items++;
    e->estimate->bytes += bytes;
    e->estimate->invalid += rekeyed->obstacle == MOVER_KEY_INVALID;
    e->estimate->missing += rekeyed->obstacle == MOVER_KEY_MISSING;
    if (rekeyed->obstacle != MOVER_FINE)
        return conflict_show(e,
                             rekeyed->obstacle == MOVER_KEY_INVALID ? KIND_INVALID : KIND_MISSING,
                             item, rekeyed, err);
    if (!(item->header.flags & ITEM_NOT_INDEXED) &&
        !index_entries(e->placed->policy, rekeyed->document, e->arena, &entries, &entry_count, err))
        return false;
    e->estimate->bytes_needed += bytes + entry_count * ENTRY_BYTES;
    if (!item_key_split(e->to, rekeyed->item_key, &parts, err))
        return false;
    hashes_add(&e->keys, rekeyed->item_key, item->header.number, 0);
    hashes_add(&e->logicals, parts.logical, item->header.number, bytes);
    uniques_add(e, item->header.number, parts.logical, rekeyed->document);
    return true;
}

/* Looks at the items of a page, and copies them if they are of the sample. */
static bool page_look(struct estimating *e, const struct item_scan_page *page, bool samples,
                      struct error *err)
{
    struct migrator_rekey_sampled *list =
        ARENA_ARRAY(e->arena, struct migrator_rekey_sampled, page->count + 1);
    size_t count = 0;

    for (size_t i = 0; i < page->count; i++) {
        list[count].item = page->items[i];
        if (!item_look(e, &page->items[i], &list[count].rekeyed, err))
            return false;
        count += list[count].rekeyed.obstacle == MOVER_FINE;
    }
    return !samples || migrator_rekey_sample_copy(&e->sample, list, count, err);
}

static bool span_look(struct estimating *e, const struct partition_span *span, struct error *err)
{
    struct item_scope scope = item_space_span_scope(&e->space, span);
    uint64_t sample_end = e->sample.bytes + e->sample_bytes_max;
    CLEANUP(buf_done) struct buf position;
    struct item_scan_page page = {.more = true};

    buf_init(&position, BUF_DEFAULT_MAX);
    while (page.more) {
        struct item_scan_request request = {.after = buf_slice(&position), .items_max = PAGE_ITEMS};
        int64_t begun_ms = clock_read_monotonic_ms(e->clock);
        bool samples = e->sample.bytes < sample_end && begun_ms < e->sample_until_ms;

        arena_reset(e->arena);
        if (begun_ms >= e->until_ms) {
            e->estimate->complete = false;
            return true;
        }
        if (!item_scan_items(&scope, &request, e->arena, &page, err) ||
            !page_look(e, &page, samples, err))
            return false;
        if (samples)
            e->sample_ms += clock_read_monotonic_ms(e->clock) - begun_ms;
        buf_clear(&position);
        buf_append_slice(&position, page.position);
    }
    return true;
}

static bool is_durable(const struct container *container, uint32_t node)
{
    struct engine_statistics statistics;
    struct error ignored;

    return !engine_statistics(container_engine(container, node), &statistics, &ignored) ||
           statistics.durable;
}

static void duration_settle(const struct estimating *e, bool durable, uint64_t bytes_per_second)
{
    struct migrator_estimate *estimate = e->estimate;
    double items = (double)MAX(estimate->items_total, estimate->items);
    double each_ms = (double)e->sample_ms / (double)MAX(e->sample.items, UINT64_C(1));

    estimate->sampled = e->sample.items;
    estimate->duration_ms = (int64_t)(each_ms * items * (durable ? DURABLE_FACTOR : 1));
    if (bytes_per_second)
        estimate->duration_ms =
            MAX(estimate->duration_ms,
                (int64_t)((double)estimate->bytes_total * 1000 / (double)bytes_per_second));
}

static bool figures_settle(struct estimating *e, struct error *err)
{
    struct migrator_estimate *estimate = e->estimate;
    uint64_t items = MAX(estimate->items, UINT64_C(1));
    uint64_t logical_max = (uint64_t)MAX(e->space.logical_bytes_max, INT64_C(0));

    estimate->same_one_in = 1u << e->keys.shift;
    estimate->bytes_needed =
        (uint64_t)((double)estimate->bytes_needed *
                   ((double)MAX(estimate->items_total, estimate->items) / (double)items));
    return hashes_meet(e, &e->keys, KIND_SAME, 0, &estimate->same, err) &&
           hashes_meet(e, &e->uniques, KIND_UNIQUE, 0, &estimate->unique, err) &&
           hashes_meet(e, &e->logicals, KIND_FULL, logical_max, &estimate->logical_full, err);
}

static bool spans_look(struct estimating *e, const struct container *container, struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);

    e->sample_bytes_max = SAMPLE_BYTES / count;
    for (size_t i = 0; e->estimate->complete && i < count; i++)
        if (!span_look(e, &spans[i], err))
            return false;
    return true;
}

bool migrator_rekey_estimate(struct migrator *migrator, struct container *container,
                             const struct definition_rekey *rekey, bool allows_missing,
                             int64_t max_ms, struct buf *json,
                             struct migrator_estimate *ret_estimate, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(arena_free) struct arena *page = arena_new();
    CLEANUP(migrator_rekey_plan_done) struct migrator_rekey_plan plan = {0};
    int64_t begun_ms = clock_read_monotonic_ms(migrator->clock);
    struct estimating e = {.space = container_space(container, migrator->clock, NULL),
                           .from = &definition_fields(container_definition(container))->key,
                           .allows_missing = allows_missing,
                           .until_ms = begun_ms + max_ms,
                           .sample_until_ms = begun_ms + MAX(max_ms / SAMPLE_TIME_PART, INT64_C(1)),
                           .clock = migrator->clock,
                           .estimate = ret_estimate,
                           .json = json,
                           .arena = page};
    bool fine;

    *ret_estimate = (struct migrator_estimate){.complete = true};
    if (!migrator_rekey_plan_make(migrator->catalogue, container, rekey, arena, &plan, err))
        return false;
    e.placed = definition_fields(plan.definition);
    e.to = &e.placed->key;
    ret_estimate->partitions = plan.target_count;
    ret_estimate->items_total = plan.items;
    ret_estimate->bytes_total = plan.bytes;
    fine = migrator_rekey_sample_init(&e.sample, &e.space, e.placed, err) &&
           spans_look(&e, container, err) && figures_settle(&e, err);
    duration_settle(&e, is_durable(container, plan.nodes[0]), migrator->options.bytes_per_second);
    migrator_rekey_sample_done(&e.sample);
    memory_free(e.keys.list);
    memory_free(e.logicals.list);
    memory_free(e.uniques.list);
    return fine;
}
