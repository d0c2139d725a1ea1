/* The stored bytes are made again from the model, family by family, from the layouts that the
 * headers write down (item/item.h, item/feed.h, the top of partition/numbering.c),
 * without the code that writes them. What entries an item has in the index is asked of
 * index_entries, which has tests of its own. */
#include "property/check.h"

#include "base/bytes.h"
#include "document/bson.h"
#include "partition/layout.h"
#include "support/check.h"

struct expected {
    struct slice key, value;
};

struct expectation {
    const struct model *model;
    uint32_t partition;
    struct arena *arena;
    struct buf entries; /* of struct expected */
};

static void expect(struct expectation *e, struct slice key, struct slice value)
{
    struct expected expected = {.key = key, .value = value};

    buf_append(&e->entries, &expected, sizeof expected);
}

/* Appended in the arena: bytes and numbers one after the other. */
static struct slice key_of(struct arena *arena, uint8_t family, struct slice a, struct slice b,
                           struct slice c)
{
    uint8_t *bytes = arena_alloc(arena, 1 + a.len + b.len + c.len);

    bytes[0] = family;
    if (a.len)
        memcpy(bytes + 1, a.data, a.len);
    if (b.len)
        memcpy(bytes + 1 + a.len, b.data, b.len);
    if (c.len)
        memcpy(bytes + 1 + a.len + b.len, c.data, c.len);
    return slice_of(bytes, 1 + a.len + b.len + c.len);
}

static struct slice number_of(struct arena *arena, uint64_t number)
{
    uint8_t *bytes = arena_alloc(arena, 8);

    bytes_put_be64(bytes, number);
    return slice_of(bytes, 8);
}

static void expect_item(struct expectation *e, unsigned key, unsigned id)
{
    const struct world *world = e->model->world;
    const struct model_item *item = &e->model->items[key][id];
    struct slice number = number_of(e->arena, item->header.number);
    uint8_t *header = arena_alloc(e->arena, ITEM_HEADER_LEN);
    struct slice value;

    item_header_encode(&item->header, header);
    value = slice_skip(
        key_of(e->arena, 0, slice_of(header, ITEM_HEADER_LEN), item->document, SLICE_NONE), 1);
    expect(e, key_of(e->arena, 'd', world->item_keys[key][id], SLICE_NONE, SLICE_NONE), value);
    expect(e, key_of(e->arena, 'r', number, SLICE_NONE, SLICE_NONE), world->item_keys[key][id]);
}

static void expect_index(struct expectation *e, unsigned key, unsigned id)
{
    const struct world *world = e->model->world;
    const struct model_item *item = &e->model->items[key][id];
    struct slice pk_id = slice_skip(world->item_keys[key][id], world->keys[key].routing.len);
    struct slice number = number_of(e->arena, item->header.number);
    struct index_entry *entries;
    struct error err;
    size_t count;

    if (item->header.flags & ITEM_NOT_INDEXED)
        return;
    assert_ok(index_entries(world_policy(world, item->header.policy_version), item->document,
                            e->arena, &entries, &count, &err),
              &err);
    for (size_t i = 0; i < count; i++)
        expect(e, key_of(e->arena, 'i', entries[i].bytes, world->keys[key].routing, number), pk_id);
}

static void expect_expiry(struct expectation *e, unsigned key, unsigned id)
{
    const struct world *world = e->model->world;
    const struct item_header *header = &e->model->items[key][id].header;
    struct slice number = number_of(e->arena, header->number);
    struct slice class = slice_of(header->ttl > 0 ? "\1" : "\0", 1);
    int64_t time_s = header->wall_ms / 1000 + MAX(header->ttl, 0);

    if (header->ttl < 0 || (header->ttl == 0 && world->config->default_ttl <= 0))
        return;
    expect(e,
           key_of(e->arena, 't',
                  slice_skip(
                      key_of(e->arena, 0, class, number_of(e->arena, (uint64_t)time_s), SLICE_NONE),
                      1),
                  world->keys[key].routing, number),
           world->item_keys[key][id]);
}

/* An item owns its unique keys for as long as it is stored, though its time be over. */
static void expect_unique(struct expectation *e, unsigned key, unsigned id)
{
    const struct world *world = e->model->world;
    const struct model_item *item = &e->model->items[key][id];

    for (size_t i = 0; i < world->definition.unique_key_count; i++)
        expect(e,
               key_of(e->arena, 'u', model_unique_key(world, key, i, item->document, e->arena),
                      SLICE_NONE, SLICE_NONE),
               number_of(e->arena, item->header.number));
}

static struct slice counter_of(struct arena *arena, int64_t bytes, int64_t items)
{
    uint8_t *value = arena_alloc_zero(arena, 32);

    bytes_put_be64(value, (uint64_t)bytes);
    bytes_put_be64(value + 8, (uint64_t)items);
    return slice_of(value, 32);
}

static void expect_sums(struct expectation *e)
{
    const struct world *world = e->model->world;
    int64_t bytes = 0, items = 0;
    bool touched = false;
    uint8_t *meta = arena_alloc(e->arena, 33);

    for (unsigned key = 0; key < WORLD_KEYS; key++) {
        int64_t key_bytes = e->model->logicals[key].bytes,
                key_items = e->model->logicals[key].items;

        if (world->keys[key].partition != e->partition || !e->model->logicals[key].touched)
            continue;
        touched = true;
        bytes += key_bytes;
        items += key_items;
        expect(e, key_of(e->arena, 'c', SLICE("l"), world->keys[key].logical, SLICE_NONE),
               counter_of(e->arena, key_bytes, key_items));
    }
    if (touched)
        expect(e, SLICE("ct"), counter_of(e->arena, bytes, items));
    meta[0] = 1;
    bytes_put_be64(meta + 1, e->model->partitions[e->partition].lsn);
    bytes_put_be64(meta + 9, (uint64_t)e->model->partitions[e->partition].wall_ms);
    bytes_put_be64(meta + 17, WORLD_FIRST_PARTITION + e->partition);
    bytes_put_be64(meta + 25, e->model->partitions[e->partition].counter);
    if (e->model->partitions[e->partition].lsn)
        expect(e, SLICE("m"), slice_of(meta, 33));
}

static void expect_feed(struct expectation *e)
{
    uint64_t trimmed = e->model->partitions[e->partition].trimmed_lsn;
    struct slice zeros = slice_of(arena_alloc_zero(e->arena, 16), 16);

    if (trimmed)
        expect(e, key_of(e->arena, 'f', zeros, SLICE_NONE, SLICE_NONE),
               key_of(e->arena, 1, number_of(e->arena, trimmed), SLICE_NONE, SLICE_NONE));
    for (size_t i = 0; i < e->model->record_count; i++) {
        const struct model_record *record = &e->model->records[i];
        struct slice item_key = e->model->world->item_keys[record->key][record->id];
        uint32_t origin = WORLD_FIRST_PARTITION + e->partition;
        uint8_t *key = arena_alloc(e->arena, 16), *value = arena_alloc_zero(e->arena, 38);

        if (record->partition != e->partition)
            continue;
        bytes_put_be64(key, record->lsn);
        bytes_put_be32(key + 8, origin);
        bytes_put_be32(key + 12, record->ordinal);
        value[0] = 1;
        value[1] = (uint8_t)record->kind;
        bytes_put_be64(value + 2, (uint64_t)record->wall_ms);
        bytes_put_be64(value + 10, record->number);
        bytes_put_be64(value + 18, record->previous_lsn);
        bytes_put_be32(value + 26, record->previous_lsn ? origin : 0);
        bytes_put_be32(value + 30, record->previous_ordinal);
        bytes_put_be32(value + 34, (uint32_t)item_key.len);
        expect(e, key_of(e->arena, 'f', slice_of(key, 16), SLICE_NONE, SLICE_NONE),
               slice_skip(key_of(e->arena, 0, slice_of(value, 38), item_key, record->image), 1));
    }
}

static int expected_compare(const void *left, const void *right)
{
    const struct expected *a = left, *b = right;

    return slice_compare(a->key, b->key);
}

static void expect_all(struct expectation *e)
{
    for (unsigned key = 0; key < WORLD_KEYS; key++)
        for (unsigned id = 0; id < WORLD_IDS; id++) {
            if (e->model->world->keys[key].partition != e->partition ||
                !e->model->items[key][id].stored)
                continue;
            expect_item(e, key, id);
            expect_index(e, key, id);
            expect_expiry(e, key, id);
            expect_unique(e, key, id);
        }
    expect_sums(e);
    expect_feed(e);
    if (e->entries.len)
        qsort(e->entries.data, e->entries.len / sizeof(struct expected), sizeof(struct expected),
              expected_compare);
}

/* --- Comparing ------------------------------------------------------------------------------- */

static const char *text_of(struct arena *arena, struct slice bytes)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < MIN(bytes.len, (size_t)120); i++)
        if (bytes.data[i] > ' ' && bytes.data[i] < 127)
            buf_append_byte(&text, bytes.data[i]);
        else
            buf_printf(&text, "<%02x>", bytes.data[i]);
    return arena_text(arena, buf_slice(&text));
}

static const char *say(struct expectation *e, const char *what, struct slice key)
{
    return (const char *)arena_printf(e->arena, "partition %u: %s: %s%c", e->partition, what,
                                      text_of(e->arena, key), 0)
        .data;
}

static const char *say_value(struct expectation *e, struct slice key, struct slice expected,
                             struct slice found)
{
    return (const char *)arena_printf(e->arena,
                                      "partition %u: %s has value\n#   %s\n# in place of\n#   %s%c",
                                      e->partition, text_of(e->arena, key),
                                      text_of(e->arena, found), text_of(e->arena, expected), 0)
        .data;
}

static const char *entries_compare(struct expectation *e, struct engine_iterator *iterator)
{
    const struct expected *next = (const struct expected *)(const void *)e->entries.data;
    /* No entries: no memory either, and nothing may be added to its address. */
    const struct expected *end = next ? next + e->entries.len / sizeof *next : NULL;

    for (;;) {
        struct engine_entry entry;
        struct error err;

        assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
        if (entry.found != ENGINE_FOUND)
            return next < end ? say(e, "missing", next->key) : NULL;
        if (next == end || slice_compare(entry.key, next->key) < 0)
            return say(e, "not expected", entry.key);
        if (!slice_equal(entry.key, next->key))
            return say(e, "missing", next->key);
        if (!slice_equal(entry.value, next->value))
            return say_value(e, next->key, next->value, entry.value);
        next++;
    }
}

static const char *partition_difference_of(const struct model *model, uint32_t partition,
                                           struct arena *arena)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct expectation e = {.model = model, .partition = partition, .arena = arena};
    const char *difference;
    struct error err;

    buf_init(&e.entries, BUF_DEFAULT_MAX);
    expect_all(&e);
    assert_ok(engine_iterator_new(model->world->engine, NULL, WORLD_FIRST_PARTITION + partition,
                                  (struct engine_range){0}, false, ENGINE_READ_ANY, &iterator,
                                  &err),
              &err);
    difference = entries_compare(&e, iterator);
    buf_done(&e.entries);
    return difference;
}

const char *check_difference(const struct model *model, struct arena *arena)
{
    const char *difference = NULL;

    for (uint32_t i = 0; !difference && i < model->world->config->partitions; i++)
        difference = partition_difference_of(model, i, arena);
    return difference;
}
