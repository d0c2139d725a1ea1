/* A look at what a re-key would meet. Keys are compared by their hashes, of all items while there
 * is room for them and then of one in two, one in four, ...: equal keys have equal hashes, so those
 * that meet are kept or left out together. */
#include "container/catalogue_migration.h"
#include "container/container_space.h"
#include "container/migrator_rekey.h"
#include "container/mover_private.h"
#include "container/scan.h"
#include "document/json.h"
#include "document/order.h"

#include <stdlib.h>
#include <xxhash.h>

enum {
    HASHES_MAX = 1 << 20,
    PAGE_ITEMS = 500,
    ENTRY_BYTES = 70, /* of an index entry on disk, roughly */
};

struct hashed {
    uint64_t hash, weight;
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
    struct migrator_estimate *estimate;
    struct buf *json;
    size_t shown;
    struct arena *arena; /* of a page */
};

static bool is_kept(const struct hashes *hashes, uint64_t hash)
{
    return !(hash & (((uint64_t)1 << hashes->shift) - 1));
}

static void hashes_add(struct hashes *hashes, struct slice key, uint64_t weight)
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
        hashes->list[hashes->count++] = (struct hashed){hash, weight};
}

static int hashed_compare(const void *a, const void *b)
{
    const struct hashed *x = a, *y = b;

    return (x->hash > y->hash) - (x->hash < y->hash);
}

/* How many came after the first of their hash; and of how many hashes the weights are above max. */
static uint64_t hashes_meet(struct hashes *hashes, uint64_t weight_max, uint64_t *ret_heavy)
{
    uint64_t met = 0, weight = 0;

    *ret_heavy = 0;
    if (hashes->count)
        qsort(hashes->list, hashes->count, sizeof *hashes->list, hashed_compare);
    for (size_t i = 0; i < hashes->count; i++) {
        bool again = i && hashes->list[i].hash == hashes->list[i - 1].hash;
        uint64_t before = again ? weight : 0;

        met += again;
        weight = before + hashes->list[i].weight;
        *ret_heavy += weight_max && before <= weight_max && weight > weight_max;
    }
    return met;
}

static void uniques_add(struct estimating *e, struct slice logical, struct slice document)
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
        hashes_add(&e->uniques, buf_slice(&key), 0);
    }
}

static void conflict_show(struct estimating *e, const struct item *item,
                          const struct mover_rekeyed *rekeyed)
{
    struct item_key_parts parts;
    struct document_value id, why;
    struct partition_key key;
    struct error err;

    if (e->shown == MIGRATOR_SHOWN_MAX || !item_key_split(e->from, item->key, &parts, &err) ||
        !document_key_read(DOCUMENT_ORDER_SQL, &parts.id, e->arena, &id, &err) ||
        !partition_key_read(e->from, &parts.pk_id, e->arena, &key, &err))
        return;
    buf_printf(e->json, "%s{\"kind\":\"%s\",\"id\":", e->shown++ ? "," : "",
               mover_obstacle_name(rekeyed->obstacle));
    document_json_write_value(&id, e->json);
    BUF_APPEND(e->json, ",\"from\":");
    partition_key_json(e->from, &key, e->json);
    if (rekeyed->obstacle == MOVER_KEY_INVALID) {
        why = document_string(slice_of(rekeyed->why, strlen(rekeyed->why)));
        BUF_APPEND(e->json, ",\"why\":");
        document_json_write_value(&why, e->json);
    }
    BUF_APPEND(e->json, "}");
}

static bool item_look(struct estimating *e, const struct item *item, struct error *err)
{
    uint64_t bytes = 1 + item->key.len + ITEM_HEADER_LEN + item->document.len;
    struct mover_rekeyed rekeyed;
    struct item_key_parts parts;
    struct index_entry *entries;
    size_t entry_count = 0;

    if (!mover_rekey_item(e->from, e->to, e->allows_missing, &e->space.key_limits, item, e->arena,
                          &rekeyed, err))
        return false;
    e->estimate->items++;
    e->estimate->bytes += bytes;
    e->estimate->invalid += rekeyed.obstacle == MOVER_KEY_INVALID;
    e->estimate->missing += rekeyed.obstacle == MOVER_KEY_MISSING;
    if (rekeyed.obstacle != MOVER_FINE) {
        conflict_show(e, item, &rekeyed);
        return true;
    }
    if (!(item->header.flags & ITEM_NOT_INDEXED) &&
        !index_entries(e->placed->policy, rekeyed.document, e->arena, &entries, &entry_count, err))
        return false;
    e->estimate->bytes_needed += bytes + entry_count * ENTRY_BYTES;
    if (!item_key_split(e->to, rekeyed.item_key, &parts, err))
        return false;
    hashes_add(&e->keys, rekeyed.item_key, 0);
    hashes_add(&e->logicals, parts.logical, bytes);
    uniques_add(e, parts.logical, rekeyed.document);
    return true;
}

static bool span_look(struct estimating *e, const struct partition_span *span, struct error *err)
{
    struct item_scope scope = item_space_span_scope(&e->space, span);
    CLEANUP(buf_done) struct buf position;
    struct scan_page page = {.more = true};

    buf_init(&position, BUF_DEFAULT_MAX);
    while (page.more) {
        struct scan_request request = {.after = buf_slice(&position), .items_max = PAGE_ITEMS};

        arena_reset(e->arena);
        if (clock_read_monotonic_ms(e->clock) >= e->until_ms) {
            e->estimate->complete = false;
            return true;
        }
        if (!scan_items(&scope, &request, e->arena, &page, err))
            return false;
        for (size_t i = 0; i < page.count; i++)
            if (!item_look(e, &page.items[i], err))
                return false;
        buf_clear(&position);
        buf_append_slice(&position, page.position);
    }
    return true;
}

static void figures_settle(struct estimating *e, uint64_t bytes_per_second, int64_t looked_ms)
{
    struct migrator_estimate *estimate = e->estimate;
    uint64_t unused, items = MAX(estimate->items, UINT64_C(1));
    double part = (double)MAX(estimate->items_total, estimate->items) / (double)items;

    estimate->same = hashes_meet(&e->keys, 0, &unused);
    estimate->unique = hashes_meet(&e->uniques, 0, &unused);
    (void)hashes_meet(&e->logicals, (uint64_t)MAX(e->space.logical_bytes_max, INT64_C(0)),
                      &estimate->logical_full);
    estimate->same_one_in = 1u << e->keys.shift;
    estimate->bytes_needed = (uint64_t)((double)estimate->bytes_needed * part);
    /* Writing an item and its entries costs several times what looking at it does. */
    estimate->duration_ms = (int64_t)((double)looked_ms * 4 * part);
    if (bytes_per_second)
        estimate->duration_ms =
            MAX(estimate->duration_ms,
                (int64_t)((double)estimate->bytes_total * 1000 / (double)bytes_per_second));
}

bool migrator_rekey_estimate(struct migrator *migrator, struct container *container,
                             const struct definition_rekey *rekey, bool allows_missing,
                             int64_t max_ms, struct buf *json,
                             struct migrator_estimate *ret_estimate, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(arena_free) struct arena *page = arena_new();
    CLEANUP(rekey_plan_done) struct rekey_plan plan = {0};
    int64_t begun_ms = clock_read_monotonic_ms(migrator->clock);
    struct estimating e = {.space = container_space(container, migrator->clock, NULL),
                           .from = &definition_fields(container_definition(container))->key,
                           .allows_missing = allows_missing,
                           .until_ms = begun_ms + max_ms,
                           .clock = migrator->clock,
                           .estimate = ret_estimate,
                           .json = json,
                           .arena = page};
    bool fine = true;
    size_t spans;
    const struct partition_span *span = partition_map_spans(container_map(container), &spans);

    *ret_estimate = (struct migrator_estimate){.complete = true};
    if (!rekey_plan_make(migrator->catalogue, container, rekey, arena, &plan, err))
        return false;
    e.placed = definition_fields(plan.definition);
    e.to = &e.placed->key;
    for (size_t i = 0; fine && ret_estimate->complete && i < spans; i++)
        fine = span_look(&e, &span[i], err);
    ret_estimate->partitions = plan.target_count;
    ret_estimate->items_total = plan.items;
    ret_estimate->bytes_total = plan.bytes;
    figures_settle(&e, migrator->options.bytes_per_second,
                   clock_read_monotonic_ms(migrator->clock) - begun_ms);
    memory_free(e.keys.list);
    memory_free(e.logicals.list);
    memory_free(e.uniques.list);
    return fine;
}
