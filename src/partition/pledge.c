/* Pledges are few (as many as transactions over nodes are under way) and their keys may be many, so
 * keys are in a table by hash; ranges are walked. All is under one lock, which the committer takes
 * only while there are pledges, and readers only while windows are open. The lock is the innermost
 * of all: nothing is called while it is held.
 *
 * Windows have numbers in the order they opened. A reader waits for those up to the last at its
 * arrival, so that it does not wait for ever where one follows another. */
#include "partition/pledge.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/thread.h"
#include "partition/commit.h"
#include "partition/layout.h"

#include <xxhash.h>

enum { FORMAT = 2, FORMAT_OLDEST = 1, BUCKETS = 1024 };

struct entry {
    const struct pledge *pledge;
    const struct pledge_item *item;
    struct entry *next; /* in its bucket */
};

struct window {
    struct pledge_id id;
    uint64_t partitions, number;
    bool home;
    struct window *next;
};

struct pledges_table {
    struct mutex lock; /* all below */
    struct condition changed;
    struct pledge *list;
    struct entry *buckets[BUCKETS];
    struct window *windows;
    uint64_t window_number; /* of the last one opened */
};

bool pledge_id_equal(struct pledge_id a, struct pledge_id b)
{
    return memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

/* --- Records --------------------------------------------------------------------------------- */

struct slice pledge_key(enum pledge_record kind, struct pledge_id id, struct arena *arena)
{
    uint8_t *key = arena_alloc(arena, PLEDGE_KEY_LEN);

    key[0] = PARTITION_FAMILY_PLEDGE;
    key[1] = (uint8_t)kind;
    memcpy(key + 2, id.bytes, PLEDGE_ID_LEN);
    return slice_of(key, PLEDGE_KEY_LEN);
}

struct engine_range pledge_records(enum pledge_record kind, struct arena *arena)
{
    const uint8_t min[] = {PARTITION_FAMILY_PLEDGE, (uint8_t)kind};
    const uint8_t max[] = {PARTITION_FAMILY_PLEDGE, (uint8_t)(kind + 1)};

    return (struct engine_range){.min = arena_copy(arena, slice_of(min, sizeof min)),
                                 .max = arena_copy(arena, slice_of(max, sizeof max))};
}

bool pledge_key_decode(struct slice key, struct pledge_id *ret_id, struct error *err)
{
    if (key.len != PLEDGE_KEY_LEN || key.data[0] != PARTITION_FAMILY_PLEDGE)
        return error_set(err, ERROR_STORE_CORRUPT, "a promise has a key of %zu bytes", key.len);
    memcpy(ret_id->bytes, key.data + 2, PLEDGE_ID_LEN);
    return true;
}

static void bytes_append(struct buf *buf, struct slice bytes)
{
    buf_append_be32(buf, (uint32_t)bytes.len);
    buf_append_slice(buf, bytes);
}

struct slice pledge_encode(const struct pledge *pledge, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, SIZE_MAX);
    buf_append_byte(&buf, FORMAT);
    buf_append_be32(&buf, pledge->home);
    buf_append_be64(&buf, (uint64_t)pledge->wall_ms);
    buf_append_be32(&buf, (uint32_t)pledge->item_count);
    for (size_t i = 0; i < pledge->item_count; i++) {
        buf_append_be32(&buf, pledge->items[i].partition);
        buf_append_byte(&buf, pledge->items[i].written);
        bytes_append(&buf, pledge->items[i].key);
    }
    buf_append_be32(&buf, (uint32_t)pledge->range_count);
    for (size_t i = 0; i < pledge->range_count; i++) {
        buf_append_be32(&buf, pledge->ranges[i].partition);
        bytes_append(&buf, pledge->ranges[i].range.min);
        bytes_append(&buf, pledge->ranges[i].range.max);
    }
    buf_append_slice(&buf, pledge->writes);
    return arena_copy(arena, buf_slice(&buf));
}

/* What is left of a record; short: a field was cut off. */
struct reader {
    struct slice rest;
    bool cut;
};

static struct slice take(struct reader *reader, size_t len)
{
    struct slice taken;

    reader->cut = reader->cut || reader->rest.len < len;
    if (reader->cut)
        return SLICE_NONE;
    taken = slice_first(reader->rest, len);
    reader->rest = slice_skip(reader->rest, len);
    return taken;
}

static uint32_t take_be32(struct reader *reader)
{
    struct slice bytes = take(reader, 4);

    return bytes.data ? bytes_get_be32(bytes.data) : 0;
}

static struct slice take_bytes(struct reader *reader)
{
    return take(reader, take_be32(reader));
}

/* How many of at least so many bytes each: no more than there is room for. */
static size_t take_count(struct reader *reader, size_t least)
{
    uint32_t count = take_be32(reader);

    reader->cut = reader->cut || count > reader->rest.len / least;
    return reader->cut ? 0 : count;
}

static void items_take(struct reader *reader, struct pledge *pledge)
{
    size_t count = take_count(reader, 9);

    pledge->items = ARENA_ARRAY(pledge->arena, struct pledge_item, count);
    for (size_t i = 0; i < count && !reader->cut; i++) {
        struct pledge_item *item = &pledge->items[pledge->item_count];
        struct slice written;

        item->partition = take_be32(reader);
        written = take(reader, 1);
        item->written = written.data && written.data[0];
        item->key = take_bytes(reader);
        pledge->item_count++;
    }
}

static void ranges_take(struct reader *reader, struct pledge *pledge)
{
    size_t count = take_count(reader, 12);

    pledge->ranges = ARENA_ARRAY(pledge->arena, struct pledge_range, count);
    for (size_t i = 0; i < count && !reader->cut; i++) {
        struct pledge_range *range = &pledge->ranges[pledge->range_count++];

        range->partition = take_be32(reader);
        range->range.min = take_bytes(reader);
        range->range.max = take_bytes(reader);
    }
}

static struct pledge *pledge_empty(struct pledge_id id)
{
    struct arena *arena = arena_new();
    struct pledge *pledge = ARENA_NEW(arena, struct pledge);

    pledge->arena = arena;
    pledge->id = id;
    return pledge;
}

void pledge_free(struct pledge *pledge)
{
    if (pledge)
        arena_free(pledge->arena);
}

bool pledge_decode(struct slice key, struct slice value, struct pledge **ret_pledge,
                   struct error *err)
{
    CLEANUP(pledge_free) struct pledge *pledge = NULL;
    struct reader reader = {0};
    struct slice format, wall;
    struct pledge_id id;

    if (!pledge_key_decode(key, &id, err))
        return false;
    pledge = pledge_empty(id);
    reader.rest = arena_copy(pledge->arena, value);
    format = take(&reader, 1);
    if (format.data && (format.data[0] < FORMAT_OLDEST || format.data[0] > FORMAT))
        return error_set(err, ERROR_STORE_VERSION, "a promise of format %u is newer than %d",
                         format.data[0], FORMAT);
    pledge->home = take_be32(&reader);
    wall = take(&reader, 8);
    pledge->wall_ms = wall.data ? (int64_t)bytes_get_be64(wall.data) : 0;
    items_take(&reader, pledge);
    ranges_take(&reader, pledge);
    if (reader.cut)
        return error_set(err, ERROR_STORE_CORRUPT, "a promise is cut short");
    pledge->writes = reader.rest;
    *ret_pledge = TAKE(pledge);
    return true;
}

/* --- One pledge ------------------------------------------------------------------------------ */

/* A key that is both read and written is there twice: to look for the other would cost more. */
static void item_note(struct pledge *pledge, uint32_t partition, struct slice key, bool written)
{
    pledge->items[pledge->item_count++] =
        (struct pledge_item){partition, written, arena_copy(pledge->arena, key)};
}

/* Entries may be put where no key is touched, and sums changed that are of a spread key: readers
 * there wait too, and so does a fence. No key is empty, so nobody meets that one. */
static void part_note(struct pledge *pledge, const struct commit_part *part)
{
    if (part->op_count || part->delta_count)
        item_note(pledge, part->partition, SLICE_NONE, true);
    for (size_t i = 0; i < part->touched_count; i++)
        item_note(pledge, part->partition, part->touched[i], true);
    for (size_t i = 0; i < part->relied_count; i++)
        item_note(pledge, part->partition, part->relied[i], false);
    for (size_t i = 0; i < part->scanned_count; i++)
        pledge->ranges[pledge->range_count++] = (struct pledge_range){
            part->partition,
            {arena_copy(pledge->arena, part->scanned[i].min),
             arena_copy(pledge->arena, part->scanned[i].max)},
        };
}

struct pledge *pledge_new(struct pledge_id id, uint32_t home, int64_t wall_ms,
                          const struct commit_batch *batch, struct slice writes)
{
    struct pledge *pledge = pledge_empty(id);
    size_t items = 0, ranges = 0;

    for (size_t p = 0; p < batch->part_count; p++) {
        items += 1 + batch->parts[p].touched_count + batch->parts[p].relied_count;
        ranges += batch->parts[p].scanned_count;
    }
    pledge->home = home;
    pledge->wall_ms = wall_ms;
    pledge->items = ARENA_ARRAY(pledge->arena, struct pledge_item, items);
    pledge->ranges = ARENA_ARRAY(pledge->arena, struct pledge_range, ranges);
    for (size_t p = 0; p < batch->part_count; p++)
        part_note(pledge, &batch->parts[p]);
    pledge->writes = arena_copy(pledge->arena, writes);
    return pledge;
}

/* --- The table ------------------------------------------------------------------------------- */

void pledges_init(struct pledges *pledges)
{
    *pledges = (struct pledges){.table = MEMORY_NEW(struct pledges_table)};
    mutex_init(&pledges->table->lock);
    condition_init(&pledges->table->changed);
}

static void entries_drop(struct pledges_table *table, const struct pledge *pledge)
{
    for (size_t b = 0; b < BUCKETS; b++)
        for (struct entry **place = &table->buckets[b]; *place;) {
            struct entry *entry = *place;

            if (entry->pledge != pledge) {
                place = &entry->next;
                continue;
            }
            *place = entry->next;
            memory_free(entry);
        }
}

void pledges_done(struct pledges *pledges)
{
    struct pledges_table *table = pledges->table;

    while (table->list) {
        struct pledge *pledge = table->list;

        table->list = pledge->next;
        entries_drop(table, pledge);
        pledge_free(pledge);
    }
    while (table->windows) {
        struct window *window = table->windows;

        table->windows = window->next;
        memory_free(window);
    }
    condition_done(&table->changed);
    mutex_done(&table->lock);
    memory_free(table);
}

static size_t bucket_of(uint32_t partition, struct slice key)
{
    return XXH3_64bits_withSeed(key.data, key.len, partition) % BUCKETS;
}

static struct pledge *pledge_find(const struct pledges_table *table, struct pledge_id id)
{
    struct pledge *pledge = table->list;

    assert(mutex_is_held(&table->lock));
    while (pledge && !pledge_id_equal(pledge->id, id))
        pledge = pledge->next;
    return pledge;
}

void pledges_add(struct pledges *pledges, struct pledge *pledge)
{
    struct pledges_table *table = pledges->table;

    WITH_LOCK (&table->lock) {
        if (pledge_find(table, pledge->id)) {
            pledge_free(TAKE(pledge));
        } else {
            pledge->next = table->list;
            table->list = pledge;
            for (size_t i = 0; i < pledge->item_count; i++) {
                struct entry *entry = MEMORY_NEW(struct entry);
                size_t bucket = bucket_of(pledge->items[i].partition, pledge->items[i].key);

                *entry = (struct entry){pledge, &pledge->items[i], table->buckets[bucket]};
                table->buckets[bucket] = entry;
            }
            atomic_fetch_add(&pledges->count, 1);
        }
    }
}

bool pledges_have(struct pledges *pledges, struct pledge_id id)
{
    bool have = false;

    WITH_LOCK (&pledges->table->lock)
        have = pledge_find(pledges->table, id) != NULL;
    return have;
}

void pledges_each(struct pledges *pledges, void (*tell)(const struct pledge *pledge, void *context),
                  void *context)
{
    WITH_LOCK (&pledges->table->lock)
        for (const struct pledge *pledge = pledges->table->list; pledge; pledge = pledge->next)
            tell(pledge, context);
}

/* --- Meeting --------------------------------------------------------------------------------- */

static bool range_has(struct engine_range range, struct slice key)
{
    return (!range.min.len || slice_compare(key, range.min) >= 0) &&
           (!range.max.len || slice_compare(key, range.max) < 0);
}

static bool written_meets(const struct pledges_table *table, uint32_t partition, struct slice key)
{
    for (const struct entry *entry = table->buckets[bucket_of(partition, key)]; entry;
         entry = entry->next)
        if (entry->item->partition == partition && slice_equal(entry->item->key, key))
            return true;
    for (const struct pledge *pledge = table->list; pledge; pledge = pledge->next)
        for (size_t i = 0; i < pledge->range_count; i++)
            if (pledge->ranges[i].partition == partition && range_has(pledge->ranges[i].range, key))
                return true;
    return false;
}

static bool relied_meets(const struct pledges_table *table, uint32_t partition, struct slice key)
{
    for (const struct entry *entry = table->buckets[bucket_of(partition, key)]; entry;
         entry = entry->next)
        if (entry->pledge->decided && entry->item->written && entry->item->partition == partition &&
            slice_equal(entry->item->key, key))
            return true;
    return false;
}

static bool scanned_meets(const struct pledges_table *table, uint32_t partition,
                          struct engine_range range)
{
    for (const struct pledge *pledge = table->list; pledge; pledge = pledge->next)
        for (size_t i = 0; pledge->decided && i < pledge->item_count; i++)
            if (pledge->items[i].written && pledge->items[i].partition == partition &&
                range_has(range, pledge->items[i].key))
                return true;
    return false;
}

static bool part_meets(const struct pledges_table *table, const struct commit_part *part)
{
    for (size_t i = 0; i < part->touched_count; i++)
        if (written_meets(table, part->partition, part->touched[i]))
            return true;
    for (size_t i = 0; i < part->relied_count; i++)
        if (relied_meets(table, part->partition, part->relied[i]))
            return true;
    for (size_t i = 0; i < part->scanned_count; i++)
        if (scanned_meets(table, part->partition, part->scanned[i]))
            return true;
    return false;
}

bool pledges_meet(struct pledges *pledges, const struct commit_batch *batch)
{
    bool meets = false;

    if (!atomic_load(&pledges->count))
        return false;
    WITH_LOCK (&pledges->table->lock)
        for (size_t p = 0; p < batch->part_count && !meets; p++)
            meets = part_meets(pledges->table, &batch->parts[p]);
    return meets;
}

/* --- Windows --------------------------------------------------------------------------------- */

static void windows_publish(struct pledges *pledges)
{
    uint64_t open = 0;

    assert(mutex_is_held(&pledges->table->lock));
    for (const struct window *window = pledges->table->windows; window; window = window->next)
        open |= window->partitions;
    atomic_store(&pledges->windows, open);
}

static void window_add(struct pledges *pledges, struct pledge_id id, uint64_t partitions, bool home)
{
    struct pledges_table *table = pledges->table;
    struct window *window = MEMORY_NEW(struct window);

    *window = (struct window){.id = id,
                              .partitions = partitions,
                              .number = ++table->window_number,
                              .home = home,
                              .next = table->windows};
    table->windows = window;
    windows_publish(pledges);
}

static void window_drop(struct pledges *pledges, struct pledge_id id)
{
    struct pledges_table *table = pledges->table;

    for (struct window **place = &table->windows; *place; place = &(*place)->next) {
        struct window *window = *place;

        if (!pledge_id_equal(window->id, id))
            continue;
        *place = window->next;
        memory_free(window);
        windows_publish(pledges);
        condition_broadcast(&table->changed);
        return;
    }
}

void pledges_window_open(struct pledges *pledges, struct pledge_id id, uint64_t partitions)
{
    WITH_LOCK (&pledges->table->lock)
        window_add(pledges, id, partitions, true);
}

void pledges_window_close(struct pledges *pledges, struct pledge_id id)
{
    WITH_LOCK (&pledges->table->lock)
        window_drop(pledges, id);
}

void pledges_decide(struct pledges *pledges, struct pledge_id id)
{
    WITH_LOCK (&pledges->table->lock) {
        struct pledge *pledge = pledge_find(pledges->table, id);
        uint64_t partitions = 0;

        if (pledge && !pledge->decided) {
            pledge->decided = true;
            for (size_t i = 0; i < pledge->item_count; i++)
                if (pledge->items[i].written)
                    partitions |= pledge_bit(pledge->items[i].partition);
            window_add(pledges, id, partitions, false);
        }
    }
}

void pledges_remove(struct pledges *pledges, struct pledge_id id)
{
    struct pledges_table *table = pledges->table;

    WITH_LOCK (&table->lock)
        for (struct pledge **place = &table->list; *place; place = &(*place)->next) {
            struct pledge *pledge = *place;

            if (!pledge_id_equal(pledge->id, id))
                continue;
            *place = pledge->next;
            entries_drop(table, pledge);
            pledge_free(pledge);
            atomic_fetch_sub(&pledges->count, 1);
            window_drop(pledges, id);
            condition_broadcast(&table->changed);
            break;
        }
}

static bool is_waited_for(const struct pledges_table *table, uint64_t partitions,
                          enum pledge_moment moment, uint64_t last)
{
    for (const struct window *window = table->windows; window; window = window->next)
        if (window->number <= last && (window->partitions & partitions) &&
            (moment == PLEDGE_BEFORE_READING || window->home))
            return true;
    return false;
}

bool pledges_await(struct pledges *pledges, uint64_t partitions, enum pledge_moment moment,
                   struct error *err)
{
    struct pledges_table *table = pledges->table;
    bool open = false;

    if (!(pledges_windows(pledges) & partitions))
        return true;
    WITH_LOCK (&table->lock) {
        int64_t until_ms = clock_monotonic_ms() + PLEDGE_WAIT_MS;
        uint64_t last = table->window_number;

        while ((open = is_waited_for(table, partitions, moment, last)) &&
               clock_monotonic_ms() < until_ms)
            (void)condition_wait_until(&table->changed, &table->lock, until_ms);
    }
    return !open || error_set(err, ERROR_PLEDGED,
                              "a transaction over several nodes is decided, and the node has not "
                              "applied it for %d s",
                              PLEDGE_WAIT_MS / 1000);
}

static bool is_pledged(const struct pledges_table *table, uint32_t partition)
{
    for (const struct pledge *pledge = table->list; pledge; pledge = pledge->next) {
        for (size_t i = 0; i < pledge->item_count; i++)
            if (pledge->items[i].partition == partition)
                return true;
        for (size_t i = 0; i < pledge->range_count; i++)
            if (pledge->ranges[i].partition == partition)
                return true;
    }
    return false;
}

bool pledges_leave(struct pledges *pledges, uint32_t partition, int64_t ms)
{
    struct pledges_table *table = pledges->table;
    bool left = false;

    WITH_LOCK (&table->lock) {
        int64_t until_ms = clock_monotonic_ms() + ms;

        while (!(left = !is_pledged(table, partition)) && clock_monotonic_ms() < until_ms)
            (void)condition_wait_until(&table->changed, &table->lock, until_ms);
    }
    return left;
}
