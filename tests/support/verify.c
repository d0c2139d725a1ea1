/* What an item must have is asked of write_set_build, as if it were made now; so this is no test of
 * that, but of everything that copies entries about. */
#include "support/verify.h"

#include "base/bytes.h"
#include "catalogue/container_space.h"
#include "item/feed.h"
#include "item/write_set.h"
#include "partition/counters.h"
#include "partition/layout.h"
#include "support/check.h"

struct entries {
    struct slice *keys, *values;
    size_t count, capacity;
};

struct verifying {
    struct item_scope scope;
    const struct partition_span *span;
    struct arena *arena;
    struct verifying *all; /* of every span: some entries lie elsewhere than their items */
    size_t all_count;
    struct entries expected, found;
    struct entries sums; /* what items add to the state of kinds; one may be there several times */
    int64_t bytes, items;
};

static void entry_add(struct arena *arena, struct entries *entries, struct slice key,
                      struct slice value)
{
    if (entries->count == entries->capacity) {
        size_t capacity = entries->capacity ? entries->capacity * 2 : 1024;
        struct slice *keys = ARENA_ARRAY(arena, struct slice, capacity);
        struct slice *values = ARENA_ARRAY(arena, struct slice, capacity);

        if (entries->count) {
            memcpy(keys, entries->keys, entries->count * sizeof *keys);
            memcpy(values, entries->values, entries->count * sizeof *values);
        }
        entries->keys = keys;
        entries->values = values;
        entries->capacity = capacity;
    }
    entries->keys[entries->count] = arena_copy(arena, key);
    entries->values[entries->count++] = arena_copy(arena, value);
}

static int by_key(const void *left, const void *right, void *context)
{
    const struct entries *entries = context;

    return slice_compare(entries->keys[*(const size_t *)left],
                         entries->keys[*(const size_t *)right]);
}

static size_t *sorted(const struct entries *entries, struct arena *arena)
{
    size_t *order = ARENA_ARRAY(arena, size_t, entries->count + 1);

    for (size_t i = 0; i < entries->count; i++)
        order[i] = i;
    qsort_r(order, entries->count, sizeof *order, by_key, (void *)entries);
    return order;
}

static void expect_item(struct verifying *v, struct slice key, struct slice stored)
{
    struct item item;
    struct write_set_change change;
    struct write_set *set;
    struct commit_part part;
    struct item_key_parts parts;
    const struct write_placed *placed;
    size_t count;
    struct error err;

    assert_ok(item_decode(key, stored, &item, &err), &err);
    if (slice_compare(key, v->span->min) < 0 || slice_compare(key, v->span->max) >= 0)
        fail_msg("an item is in partition %u, whose span it is not in", v->span->id);
    change = (struct write_set_change){
        .key = key, .after = item.document, .ttl = item.header.ttl, .flags = item.header.flags};
    assert_ok(item_key_split(&v->scope.definition->key, key, &parts, &err), &err);
    assert_ok(write_set_build(&v->scope, &change, 1, v->arena, &set, &part, &err), &err);
    write_set_stamp(set, &(struct commit_stamp){.lsn = item.header.lsn,
                                                .first_number = item.header.number,
                                                .wall_ms = item.header.wall_ms});
    for (size_t i = 0; i < part.op_count; i++) {
        uint8_t family = part.ops[i].key.data[0];

        if (family == PARTITION_FAMILY_ITEM)
            entry_add(v->arena, &v->expected, part.ops[i].key, stored);
        else if (family != PARTITION_FAMILY_FEED)
            entry_add(v->arena, &v->expected, part.ops[i].key, part.ops[i].value);
    }
    placed = write_set_placed(set, &count);
    for (size_t i = 0; i < count; i++) {
        uint32_t partition = write_placed_span(&v->scope, &placed[i])->id;
        struct verifying *where = v->all;

        while (where->span->id != partition)
            where++;
        assert_true(where < v->all + v->all_count);
        entry_add(where->arena, &where->expected, placed[i].op.key, placed[i].op.value);
    }
    for (size_t i = 0; i < part.delta_count; i++)
        if (part.deltas[i].key.data[1] == 'k')
            entry_add(
                v->arena, &v->sums, part.deltas[i].key,
                slice_of((const void *)part.deltas[i].amounts, sizeof part.deltas[i].amounts));
    v->bytes += (int64_t)(1 + key.len + stored.len);
    v->items++;
}

/* The item's last word is in the feed; where versions are not kept, nothing else is. */
static void feed_verify(struct verifying *v)
{
    size_t last_words = 0;

    for (size_t i = 0; i < v->found.count; i++) {
        struct slice key = v->found.keys[i];
        struct feed_record record;
        struct error err;

        if (key.data[0] != PARTITION_FAMILY_FEED || bytes_get_be64(key.data + 1) == 0)
            continue;
        assert_ok(feed_record_decode(key, v->found.values[i], &record, &err), &err);
        for (size_t j = 0; j < v->expected.count; j++) {
            struct item item;

            if (v->expected.keys[j].data[0] != PARTITION_FAMILY_ITEM ||
                !slice_equal(slice_skip(v->expected.keys[j], 1), record.key))
                continue;
            assert_ok(item_decode(record.key, v->expected.values[j], &item, &err), &err);
            last_words += item.header.lsn == record.place.lsn &&
                          item.header.origin == record.place.origin &&
                          item.header.ordinal == record.place.ordinal;
            break;
        }
        if (slice_compare(record.key, v->span->min) < 0 ||
            slice_compare(record.key, v->span->max) >= 0)
            fail_msg("a feed record is in partition %u, whose span it is not in", v->span->id);
        if (!v->scope.definition->feed_retention_ms)
            v->items--; /* each accounts for one item: back to zero */
    }
    if (!v->scope.definition->feed_retention_ms && v->items != 0)
        fail_msg("partition %u has another number of feed records than of items", v->span->id);
    for (size_t j = 0; j < v->expected.count; j++)
        last_words -= v->expected.keys[j].data[0] == PARTITION_FAMILY_ITEM;
    if (last_words)
        fail_msg("an item of partition %u is not in the feed", v->span->id);
}

/* What is in all parts of the key that a span begins with the first part of; of any other span, in
 * it alone. The other parts have no sums of logical partitions. */
static void parts_sum(const struct verifying *v, int64_t *ret_bytes, int64_t *ret_items)
{
    const struct verifying *end = v->all + v->all_count;

    *ret_bytes = *ret_items = 0;
    if (v->span->cut == PARTITION_CUT_SPREAD)
        return;
    do {
        *ret_bytes += v->bytes;
        *ret_items += v->items;
    } while (++v < end && v->span->cut == PARTITION_CUT_SPREAD);
}

static void sums_verify(struct verifying *v)
{
    int64_t bytes = 0, items = 0, total[COUNTER_NUMBERS] = {0}, parts_bytes, parts_items;
    struct error err;

    for (size_t i = 0; i < v->found.count; i++) {
        struct slice key = v->found.keys[i];
        int64_t numbers[COUNTER_NUMBERS];

        if (key.data[0] != PARTITION_FAMILY_COUNTER)
            continue;
        assert_ok(counter_decode(v->found.values[i], numbers, &err), &err);
        if (key.data[1] == 't') {
            memcpy(total, numbers, sizeof total);
            continue;
        }
        if (key.data[1] == 'k')
            continue; /* state of a kind of index: states_verify */
        bytes += numbers[0];
        items += numbers[1];
    }
    parts_sum(v, &parts_bytes, &parts_items);
    if (bytes != parts_bytes || items != parts_items || total[0] != v->bytes ||
        total[1] != v->items)
        fail_msg("partition %u holds %lld bytes in %lld items; its logical partitions say %lld and "
                 "%lld, its sum %lld and %lld",
                 v->span->id, (long long)v->bytes, (long long)v->items, (long long)bytes,
                 (long long)items, (long long)total[0], (long long)total[1]);
}

static const char *text_of(struct arena *arena, struct slice key)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < MIN(key.len, (size_t)100); i++)
        if (key.data[i] > ' ' && key.data[i] < 127)
            buf_append_byte(&text, key.data[i]);
        else
            buf_printf(&text, "<%02x>", key.data[i]);
    return arena_text(arena, buf_slice(&text));
}

static void states_verify(struct verifying *v)
{
    size_t accounted = 0;

    for (size_t i = 0; i < v->found.count; i++) {
        struct slice key = v->found.keys[i];
        int64_t numbers[COUNTER_NUMBERS];
        struct error err;

        if (key.data[0] != PARTITION_FAMILY_COUNTER || key.data[1] != 'k')
            continue;
        assert_ok(counter_decode(v->found.values[i], numbers, &err), &err);
        for (size_t j = 0; j < v->sums.count; j++) {
            int64_t amounts[COUNTER_NUMBERS];

            if (!slice_equal(v->sums.keys[j], key))
                continue;
            memcpy(amounts, v->sums.values[j].data, sizeof amounts);
            for (size_t n = 0; n < COUNTER_NUMBERS; n++)
                numbers[n] -= amounts[n];
            accounted++;
        }
        for (size_t n = 0; n < COUNTER_NUMBERS; n++)
            if (numbers[n])
                fail_msg("partition %u: the sum %s is %lld more than its items say", v->span->id,
                         text_of(v->arena, key), (long long)numbers[n]);
    }
    if (accounted != v->sums.count)
        fail_msg("partition %u has lost a sum of a kind of index", v->span->id);
}

static bool is_derived(struct slice key)
{
    return strchr("dirtu", key.data[0]) != NULL;
}

static void derived_verify(struct verifying *v)
{
    size_t *expected = sorted(&v->expected, v->arena), at = 0;

    for (size_t i = 0; i < v->found.count; i++) {
        struct slice key = v->found.keys[i];

        if (!is_derived(key)) {
            if (!strchr(v->scope.definition->view.form ? "cefgm" : "cfm", key.data[0]))
                fail_msg("partition %u holds %s", v->span->id, text_of(v->arena, key));
            continue;
        }
        if (at == v->expected.count || !slice_equal(v->expected.keys[expected[at]], key))
            fail_msg("partition %u: found %s, expected %s", v->span->id, text_of(v->arena, key),
                     at == v->expected.count ? "nothing"
                                             : text_of(v->arena, v->expected.keys[expected[at]]));
        if (!slice_equal(v->expected.values[expected[at]], v->found.values[i]))
            fail_msg("partition %u: %s has another value", v->span->id, text_of(v->arena, key));
        at++;
    }
    if (at != v->expected.count)
        fail_msg("partition %u: %s is missing", v->span->id,
                 text_of(v->arena, v->expected.keys[expected[at]]));
}

static void span_read(struct verifying *v)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_entry entry;
    struct error err;

    assert_ok(engine_iterator_new(v->scope.engine, NULL, v->span->id, (struct engine_range){0},
                                  false, ENGINE_READ_ANY, &iterator, &err),
              &err);
    for (;;) {
        assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
        if (entry.found != ENGINE_FOUND)
            break;
        entry_add(v->arena, &v->found, entry.key, entry.value);
        if (entry.key.data[0] == PARTITION_FAMILY_ITEM)
            expect_item(v, slice_skip(v->found.keys[v->found.count - 1], 1),
                        v->found.values[v->found.count - 1]);
    }
}

static size_t span_verify(struct verifying *v)
{
    size_t items;

    derived_verify(v);
    sums_verify(v);
    states_verify(v);
    items = (size_t)v->items;
    feed_verify(v);
    return items;
}

size_t verify_container(struct container *container)
{
    struct item_space space = container_space(container, &clock_system, NULL);
    size_t count, items = 0;
    const struct partition_span *spans = partition_map_spans(space.map, &count);
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct verifying *all = ARENA_ARRAY(arena, struct verifying, count);

    assert_null(container_migration(container));
    for (size_t i = 0; i < count; i++)
        all[i] = (struct verifying){.scope = item_space_span_scope(&space, &spans[i]),
                                    .span = &spans[i],
                                    .arena = arena,
                                    .all = all,
                                    .all_count = count};
    for (size_t i = 0; i < count; i++)
        span_read(&all[i]);
    for (size_t i = 0; i < count; i++)
        items += span_verify(&all[i]);
    return items;
}

static bool is_owned(uint32_t id, struct container *const *containers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (partition_map_find_id(container_map(containers[i]), id))
            return true;
    return id == 1 || id == PARTITION_HISTORY;
}

void verify_no_others(struct cluster *cluster, struct container *const *containers, size_t count)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t n = 0; n < cluster_count(cluster); n++) {
        struct engine_partition *partitions;
        size_t partition_count;
        struct error err;

        assert_ok(engine_partition_list(cluster_at(cluster, n)->engine, arena, &partitions,
                                        &partition_count, &err),
                  &err);
        for (size_t i = 0; i < partition_count; i++)
            if (!is_owned(partitions[i].id, containers, count))
                fail_msg("node %zu holds partition %u, which nobody owns", n, partitions[i].id);
    }
}
