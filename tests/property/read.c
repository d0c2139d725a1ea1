/* Reading: single items, scans, the index, the feed. Pages of any size must together give what the
 * model gives at once. */
#include "document/order.h"
#include "property/operations.h"
#include "support/check.h"

#include "item/feed_read.h"

static void item_compare(struct run *run, const char *where, const struct item *item,
                         const struct model_item *expected)
{
    uint8_t found[ITEM_HEADER_LEN], wanted[ITEM_HEADER_LEN];

    if (!item->document.data != !expected)
        run_fail(run, "%s: an item %s", where, expected ? "is not found" : "should not be there");
    if (!expected)
        return;
    item_header_encode(&item->header, found);
    item_header_encode(&expected->header, wanted);
    if (memcmp(found, wanted, sizeof found) != 0 ||
        !slice_equal(item->document, expected->document))
        run_fail(run, "%s: another version of the item", where);
}

void read_item(struct run *run)
{
    struct world *world = &run->world;
    unsigned key = run_below(run, WORLD_KEYS), id = run_below(run, WORLD_IDS);
    struct item_operation op = {.space = &world->space,
                                .arena = run->arena,
                                .verb = ITEM_READ,
                                .key = world->keys[key].key,
                                .id = world->ids[id]};
    struct error err;
    bool ok;

    run_log(run, "read key %u id %u", key, id);
    ok = item_operation_run(&op, &err);
    if ((ok || err.code != ERROR_ITEM_MISSING) && !run_settle_read(run, ok, &err))
        return;
    item_compare(run, "read", &op.result.item, model_find(run->model, key, id));
}

void read_number(struct run *run)
{
    struct world *world = &run->world;
    unsigned key = run_below(run, WORLD_KEYS), id = run_below(run, WORLD_IDS);
    const struct model_item *expected = model_find(run->model, key, id);
    uint64_t number = expected ? expected->header.number : UINT64_C(12) << 32 | 4000000;
    struct item item = {0};
    struct error err;
    bool ok;

    run_log(run, "read number %llx", (unsigned long long)number);
    ok = items_read_number(&world->space, number, run->arena, &item, &err);
    if ((ok || err.code != ERROR_ITEM_MISSING) && !run_settle_read(run, ok, &err))
        return;
    item_compare(run, "read by number", &item, expected);
}

void read_many(struct run *run)
{
    struct world *world = &run->world;
    size_t count = run_below(run, 20);
    struct items_reference *references = ARENA_ARRAY(run->arena, struct items_reference, count + 1);
    struct item *items = ARENA_ARRAY(run->arena, struct item, count + 1);
    unsigned keys[20], ids[20];
    struct error err;

    for (size_t i = 0; i < count; i++) {
        keys[i] = run_below(run, WORLD_KEYS);
        ids[i] = run_below(run, WORLD_IDS);
        references[i] = (struct items_reference){world->keys[keys[i]].key, world->ids[ids[i]]};
    }
    run_log(run, "read %zu at once", count);
    if (!run_settle_read(
            run, items_read_many(&world->space, references, count, run->arena, items, &err), &err))
        return;
    for (size_t i = 0; i < count; i++)
        item_compare(run, "read many", &items[i], model_find(run->model, keys[i], ids[i]));
}

/* --- Scans ----------------------------------------------------------------------------------- */

/* An item of the model on its way into an order. */
struct listed {
    const struct world *world;
    unsigned key, id;
    const struct model_item *item;
    struct document_value value; /* of an index scan */
};

struct list {
    struct listed entries[WORLD_KEYS * WORLD_IDS];
    size_t count;
};

/* What of a partition is asked for. */
struct filter {
    uint32_t partition;
    int key; /* one logical partition; -1: all */
    struct slice routing_min, routing_max;
};

static struct filter filter_random(struct run *run)
{
    struct filter filter = {.key = -1};
    unsigned key = run_below(run, WORLD_KEYS);
    struct slice routing = run->world.keys[run_below(run, WORLD_KEYS)].routing;

    filter.partition = run->world.keys[key].partition;
    switch (run_below(run, 4)) {
    case 0:
        filter.key = (int)key;
        break;
    case 1:
        filter.routing_min = routing;
        break;
    case 2:
        filter.routing_max = routing;
        break;
    default:
        break;
    }
    return filter;
}

static bool filter_takes(const struct world *world, const struct filter *filter, unsigned key)
{
    struct slice routing = world->keys[key].routing;

    return world->keys[key].partition == filter->partition &&
           (filter->key < 0 || (unsigned)filter->key == key) &&
           (!filter->routing_min.data || slice_compare(routing, filter->routing_min) >= 0) &&
           (!filter->routing_max.data || slice_compare(routing, filter->routing_max) < 0);
}

static int compare_by_key(const void *left, const void *right)
{
    const struct listed *a = left, *b = right;

    return slice_compare(a->world->item_keys[a->key][a->id], b->world->item_keys[b->key][b->id]);
}

static int compare_by_number(const void *left, const void *right)
{
    uint64_t a = ((const struct listed *)left)->item->header.number;
    uint64_t b = ((const struct listed *)right)->item->header.number;

    return (a > b) - (a < b);
}

static int compare_by_value(const void *left, const void *right)
{
    const struct listed *a = left, *b = right;
    int order = document_compare(DOCUMENT_ORDER_SQL, &a->value, &b->value);

    if (order == 0)
        order = slice_compare(a->world->keys[a->key].routing, b->world->keys[b->key].routing);
    return order ? order : compare_by_number(left, right);
}

static void list_items(const struct run *run, const struct filter *filter, struct list *list)
{
    list->count = 0;
    for (unsigned key = 0; key < WORLD_KEYS; key++)
        for (unsigned id = 0; id < WORLD_IDS; id++)
            if (filter_takes(&run->world, filter, key) && model_find(run->model, key, id))
                list->entries[list->count++] = (struct listed){.world = &run->world,
                                                               .key = key,
                                                               .id = id,
                                                               .item = &run->model->items[key][id]};
}

static void list_sort(struct list *list, bool backwards,
                      int (*compare)(const void *left, const void *right))
{
    qsort(list->entries, list->count, sizeof list->entries[0], compare);
    for (size_t i = 0; backwards && i < list->count / 2; i++) {
        struct listed swap = list->entries[i];

        list->entries[i] = list->entries[list->count - 1 - i];
        list->entries[list->count - 1 - i] = swap;
    }
}

static void scan_random(struct run *run, enum item_scan_order order)
{
    struct filter filter = filter_random(run);
    struct item_scope scope = world_scope(&run->world, filter.partition);
    struct item_scan_request request = {
        .order = order,
        .backwards = run_below(run, 2),
        .logical = filter.key < 0 ? SLICE_NONE : run->world.keys[filter.key].logical,
        .routing_min = filter.routing_min,
        .routing_max = filter.routing_max,
        .items_max = run_below(run, 10),
        .bytes_max = run_below(run, 3) ? 0 : 1 + run_below(run, 1000),
    };
    struct item_scan_page page = {.more = true};
    struct list list;
    size_t at = 0;
    struct error err;

    run_log(run, "scan order %d of partition %u key %d backwards %d, %zu a page", order,
            filter.partition, filter.key, request.backwards, request.items_max);
    list_items(run, &filter, &list);
    list_sort(&list, request.backwards, order == SCAN_BY_KEY ? compare_by_key : compare_by_number);
    for (unsigned pages = 0; page.more; pages++) {
        if (!run_settle_read(run, item_scan_items(&scope, &request, run->arena, &page, &err), &err))
            return;
        if (request.items_max && page.count > request.items_max)
            run_fail(run, "a page of %zu is too long", page.count);
        if (pages > 3 * WORLD_KEYS * WORLD_IDS)
            run_fail(run, "the scan does not end");
        for (size_t i = 0; i < page.count; i++, at++) {
            if (at == list.count)
                run_fail(run, "a scan gives more than there is");
            if (!slice_equal(page.items[i].key,
                             run->world.item_keys[list.entries[at].key][list.entries[at].id]))
                run_fail(run, "item %zu of a scan is another one", at);
            item_compare(run, "scan", &page.items[i], list.entries[at].item);
        }
        request.after = page.position;
    }
    if (at != list.count)
        run_fail(run, "a scan gives %zu items of %zu", at, list.count);
}

void read_scan_by_key(struct run *run)
{
    scan_random(run, SCAN_BY_KEY);
}

void read_scan_by_number(struct run *run)
{
    scan_random(run, SCAN_BY_NUMBER);
}

/* --- The index ------------------------------------------------------------------------------- */

/* Scalars at n of the indexed items, also of those whose time is over: an index scan leaves it to
 * item_scan_fetch to see that. */
static void list_values(const struct run *run, const struct filter *filter,
                        const struct document_value *min, const struct document_value *max,
                        struct list *list)
{
    list->count = 0;
    for (unsigned key = 0; key < WORLD_KEYS; key++)
        for (unsigned id = 0; id < WORLD_IDS; id++) {
            const struct model_item *item = &run->model->items[key][id];
            struct document_value value;

            if (!filter_takes(&run->world, filter, key) || !item->stored ||
                item->header.flags & ITEM_NOT_INDEXED ||
                !document_find(item->document, SLICE("n"), &value) ||
                value.type == DOCUMENT_OBJECT || value.type == DOCUMENT_ARRAY ||
                document_compare(DOCUMENT_ORDER_SQL, &value, min) < 0 ||
                document_compare(DOCUMENT_ORDER_SQL, &value, max) >= 0)
                continue;
            list->entries[list->count++] = (struct listed){
                .world = &run->world, .key = key, .id = id, .item = item, .value = value};
        }
}

static struct slice value_bytes(struct run *run, const struct document_value *value)
{
    CLEANUP(buf_done) struct buf bytes;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    document_key_append_cut(DOCUMENT_ORDER_SQL, value, INDEX_VALUE_MAX, &bytes);
    return arena_copy(run->arena, buf_slice(&bytes));
}

static struct slice path_bytes(struct run *run, struct slice text)
{
    CLEANUP(buf_done) struct buf bytes;
    struct document_path path;
    struct error err;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    assert_ok(document_path_parse(text, DOCUMENT_PATH_INDEX, run->arena, &path, &err), &err);
    index_path_append(&path, &bytes);
    return arena_copy(run->arena, buf_slice(&bytes));
}

static void hit_compare(struct run *run, const struct item_index_hit *hit,
                        const struct listed *expected)
{
    if (hit->number != expected->item->header.number ||
        !slice_equal(hit->key, run->world.item_keys[expected->key][expected->id]) ||
        !slice_equal(hit->value, value_bytes(run, &expected->value)))
        run_fail(run,
                 "an index scan finds item %llx where %llx (%u/%u) should be; the same key: %d, "
                 "the same value: %d",
                 (unsigned long long)hit->number, (unsigned long long)expected->item->header.number,
                 expected->key, expected->id,
                 slice_equal(hit->key, run->world.item_keys[expected->key][expected->id]),
                 slice_equal(hit->value, value_bytes(run, &expected->value)));
}

/* An item without the value may have an entry of undefined, and empty objects and arrays have one
 * of their type: the scan is for what lies between. */
void read_scan_index(struct run *run)
{
    struct filter filter = {.partition = run->world.keys[run_below(run, WORLD_KEYS)].partition,
                            .key = -1};
    struct item_scope scope = world_scope(&run->world, filter.partition);
    struct document_value low =
        run_below(run, 2) ? document_int32((int32_t)run_below(run, 12)) : document_null();
    struct document_value high = document_int32((int32_t)run_below(run, 12));
    struct document_value arrays = document_array(slice_of("\5\0\0\0\0", 5));
    bool has_high = run_below(run, 2);
    struct item_index_request request = {
        .path = path_bytes(run, SLICE("/n/?")),
        .min = value_bytes(run, &low),
        .max = value_bytes(run, has_high ? &high : &arrays),
        .backwards = run_below(run, 2),
        .entries_max = run_below(run, 8),
    };
    struct item_index_page page = {.more = true};
    struct list list;
    size_t at = 0;
    struct error err;

    if (run_below(run, 3) == 0)
        filter.key = (int)run_below(run, WORLD_KEYS);
    if (filter.key >= 0)
        request.logical = run->world.keys[filter.key].logical;
    run_log(run, "index scan of partition %u key %d low %d high %d backwards %d, %zu a page",
            filter.partition, filter.key, low.type == DOCUMENT_NULL ? -1 : low.int32,
            has_high ? high.int32 : -1, request.backwards, request.entries_max);
    list_values(run, &filter, &low, has_high ? &high : &arrays, &list);
    list_sort(&list, request.backwards, compare_by_value);
    while (page.more) {
        if (!run_settle_read(run, item_scan_index(&scope, &request, run->arena, &page, &err), &err))
            return;
        for (size_t i = 0; i < page.count; i++, at++) {
            if (at == list.count)
                run_fail(run, "an index scan gives more than there is: number %llx",
                         (unsigned long long)page.hits[i].number);
            hit_compare(run, &page.hits[i], &list.entries[at]);
        }
        request.after = page.position;
    }
    if (at != list.count)
        run_fail(run, "an index scan gives %zu entries of %zu", at, list.count);
}

/* --- The feed -------------------------------------------------------------------------------- */

static bool is_last_word(const struct model *model, const struct model_record *record)
{
    const struct model_item *item = model_find(model, record->key, record->id);

    return item && item->header.lsn == record->lsn && item->header.ordinal == record->ordinal;
}

/* The next record the reader should be given, from *at on. */
static const struct model_record *record_next(struct run *run, const struct filter *filter,
                                              const struct feed_request *request, size_t *at)
{
    for (; *at < run->model->record_count; (*at)++) {
        const struct model_record *record = &run->model->records[*at];

        if (record->lsn > request->after_lsn && filter_takes(&run->world, filter, record->key) &&
            (request->mode == FEED_ALL_VERSIONS || is_last_word(run->model, record)))
            return &run->model->records[(*at)++];
    }
    return NULL;
}

static struct slice image_before(const struct run *run, const struct model_record *record)
{
    for (size_t i = 0; i < run->model->record_count; i++) {
        const struct model_record *other = &run->model->records[i];

        if (record->previous_lsn && other->partition == record->partition &&
            other->lsn == record->previous_lsn && other->ordinal == record->previous_ordinal)
            return other->image;
    }
    return SLICE_NONE;
}

static void change_compare(struct run *run, enum feed_mode mode, const struct feed_change *change,
                           const struct model_record *record)
{
    struct slice document =
        mode == FEED_LATEST ? run->model->items[record->key][record->id].document : record->image;

    if (change->kind != record->kind || change->lsn != record->lsn ||
        change->wall_ms != record->wall_ms || change->number != record->number ||
        change->previous_lsn != record->previous_lsn ||
        !slice_equal(change->key, run->world.item_keys[record->key][record->id]))
        run_fail(run, "the feed gives another change: lsn %llu in place of %llu",
                 (unsigned long long)change->lsn, (unsigned long long)record->lsn);
    if (!slice_equal(change->current.document, document))
        run_fail(run, "the feed gives another version at lsn %llu",
                 (unsigned long long)change->lsn);
    if (mode == FEED_ALL_VERSIONS && !slice_equal(change->previous, image_before(run, record)))
        run_fail(run, "the feed gives another version before lsn %llu",
                 (unsigned long long)change->lsn);
}

static void feed_pages(struct run *run, const struct filter *filter, struct feed_request *request)
{
    struct item_scope scope = world_scope(&run->world, filter->partition);
    struct feed_request asked = *request;
    struct feed_page page = {.more = true};
    size_t at = 0;

    while (page.more) {
        struct error err;

        if (!run_settle_read(run, feed_read(&scope, &asked, run->arena, &page, &err), &err))
            return;
        if (page.more && page.lsn <= asked.after_lsn)
            run_fail(run, "the feed does not go on");
        for (size_t i = 0; i < page.count; i++) {
            const struct model_record *record = record_next(run, filter, request, &at);

            if (!record)
                run_fail(run, "the feed gives more than there is");
            if (page.changes[i].lsn <= asked.after_lsn || page.changes[i].lsn > page.lsn)
                run_fail(run, "a page of the feed cuts a transaction");
            change_compare(run, request->mode, &page.changes[i], record);
        }
        asked.after_lsn = page.lsn;
    }
    if (record_next(run, filter, request, &at))
        run_fail(run, "the feed ends early");
}

/* All versions can be read by who has seen this much: what was trimmed, and what is over its time
 * and may be trimmed at any moment. */
static uint64_t kept_after(const struct run *run, uint32_t partition)
{
    const struct model *model = run->model;
    int64_t retention_ms = run->world.config->feed_retention_ms;
    uint64_t lsn = model->partitions[partition].trimmed_lsn;

    if (retention_ms == 0)
        return UINT64_MAX;
    for (size_t i = 0; i < model->record_count; i++)
        if (model->records[i].partition == partition &&
            model->records[i].wall_ms < run->world.now_ms - retention_ms)
            lsn = MAX(lsn, model->records[i].lsn);
    return lsn;
}

static void feed_random(struct run *run, enum feed_mode mode)
{
    struct filter filter = filter_random(run);
    uint64_t last = run->model->partitions[filter.partition].lsn;
    struct feed_request request = {
        .mode = mode,
        .after_lsn = run_below(run, 2) ? 0 : random_below(&run->random, last + 2),
        .logical = filter.key < 0 ? SLICE_NONE : run->world.keys[filter.key].logical,
        .routing_min = filter.routing_min,
        .routing_max = filter.routing_max,
        .changes_max = run_below(run, 6),
        .bytes_max = run_below(run, 3) ? 0 : 1 + run_below(run, 3000),
    };

    /* Mostly from where they are kept. */
    if (mode == FEED_ALL_VERSIONS && run->world.config->feed_retention_ms && run_below(run, 2))
        request.after_lsn = MAX(request.after_lsn, kept_after(run, filter.partition));
    run_log(run, "feed mode %d of partition %u key %d after %llu, %zu a page", mode,
            filter.partition, filter.key, (unsigned long long)request.after_lsn,
            request.changes_max);
    if (mode == FEED_ALL_VERSIONS && request.after_lsn < kept_after(run, filter.partition)) {
        struct item_scope scope = world_scope(&run->world, filter.partition);
        struct feed_page page;
        struct error err;

        if (feed_read(&scope, &request, run->arena, &page, &err))
            run_fail(run, "all versions are read from where they are not kept");
        if (err.code != ERROR_FEED_RETENTION)
            run_settle_read(run, false, &err);
        return;
    }
    feed_pages(run, &filter, &request);
}

void read_feed_latest(struct run *run)
{
    feed_random(run, FEED_LATEST);
}

void read_feed_all_versions(struct run *run)
{
    feed_random(run, FEED_ALL_VERSIONS);
}

/* Everything up to the LSN is not later than the time, everything behind it is. */
void read_feed_from_time(struct run *run)
{
    uint32_t partition = run->world.keys[run_below(run, WORLD_KEYS)].partition;
    struct item_scope scope = world_scope(&run->world, partition);
    int64_t time_ms = run->world.now_ms - run_below(run, 60000);
    struct error err;
    uint64_t lsn;

    if (run->model->record_count && run_below(run, 2))
        time_ms = run->model->records[run_below(run, (unsigned)run->model->record_count)].wall_ms;
    run_log(run, "feed of partition %u from time %lld", partition, (long long)time_ms);
    if (!run_settle_read(run, feed_lsn_at(&scope, time_ms, &lsn, &err), &err))
        return;
    for (size_t i = 0; i < run->model->record_count; i++) {
        const struct model_record *record = &run->model->records[i];

        if (record->partition == partition && (record->lsn <= lsn) != (record->wall_ms <= time_ms))
            run_fail(run, "the feed from a time starts after lsn %llu, wrongly for lsn %llu",
                     (unsigned long long)lsn, (unsigned long long)record->lsn);
    }
}
