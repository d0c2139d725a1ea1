#include "contract/engine_contract.h"

#include "base/bytes.h"
#include "base/random.h"
#include "base/thread.h"
#include "support/check.h"
#include "support/scratch.h"

#include <stdatomic.h>

static const struct contract_subject *subject;

/* One store with one or more partitions, opened for one test. */
struct store {
    struct engine *engine;
    struct arena *arena;
    char url[400];
};

static void store_open(struct store *store)
{
    struct error err;

    assert_ok(
        engine_open(slice_of_text(store->url), &(struct engine_options){0}, &store->engine, &err),
        &err);
}

static int setup(void **state)
{
    struct store *store = MEMORY_NEW(struct store);
    struct error err;

    snprintf(store->url, sizeof store->url, "%s", subject->fresh_url(subject->context));
    store->arena = arena_new();
    store_open(store);
    assert_ok(engine_partition_create(store->engine, 1, 1, &err), &err);
    assert_ok(engine_partition_create(store->engine, 2, 5, &err), &err);
    *state = store;
    return 0;
}

static int teardown(void **state)
{
    struct store *store = *state;

    engine_close(store->engine);
    arena_free(store->arena);
    memory_free(store);
    return 0;
}

static struct engine_op put(const char *key, const char *value)
{
    return (struct engine_op){ENGINE_PUT, slice_of_text(key), slice_of_text(value)};
}

static struct engine_op del(const char *key)
{
    return (struct engine_op){ENGINE_DELETE, slice_of_text(key), SLICE_NONE};
}

static void write_ops(struct store *store, uint32_t partition, uint64_t epoch,
                      struct engine_op *ops, size_t count)
{
    struct engine_section section = {
        .partition = partition, .epoch = epoch, .ops = ops, .count = count};
    struct error err;

    assert_ok(engine_write(store->engine, &section, 1, &err), &err);
}

#define WRITE(store, partition, epoch, ...)                                                        \
    write_ops((store), (partition), (epoch), (struct engine_op[]){__VA_ARGS__},                    \
              sizeof((struct engine_op[]){__VA_ARGS__}) / sizeof(struct engine_op))

static struct engine_value get_in(struct store *store, struct engine_snapshot *snapshot,
                                  uint32_t partition, const char *key)
{
    struct engine_value value;
    struct error err;

    assert_ok(engine_get(store->engine, snapshot, partition, slice_of_text(key), ENGINE_READ_ANY,
                         store->arena, &value, &err),
              &err);
    return value;
}

static void assert_stored(struct store *store, uint32_t partition, const char *key,
                          const char *expected)
{
    struct engine_value value = get_in(store, NULL, partition, key);

    assert_int_equal(value.found, ENGINE_FOUND);
    assert_slice_equal(value.bytes, slice_of_text(expected));
}

static void assert_absent(struct store *store, uint32_t partition, const char *key)
{
    assert_int_equal(get_in(store, NULL, partition, key).found, ENGINE_ABSENT);
}

/* The keys of a range, joined by blanks. */
static const char *keys_in(struct store *store, struct engine_snapshot *snapshot,
                           uint32_t partition, struct engine_range range, bool backwards)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_entry entry;
    struct error err;
    struct slice text = SLICE("");

    assert_ok(engine_iterator_new(store->engine, snapshot, partition, range, backwards,
                                  ENGINE_READ_ANY, &iterator, &err),
              &err);
    for (;;) {
        assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
        if (entry.found == ENGINE_ABSENT)
            break;
        assert_int_equal(entry.found, ENGINE_FOUND);
        text = arena_printf(store->arena, "%.*s%s%.*s", SLICE_ARG(text), text.len ? " " : "",
                            SLICE_ARG(entry.key));
    }
    return arena_text(store->arena, text);
}

static struct engine_range range_of(const char *min, const char *max)
{
    return (struct engine_range){.min = min ? slice_of_text(min) : SLICE_NONE,
                                 .max = max ? slice_of_text(max) : SLICE_NONE};
}

/* --- Writing and reading --------------------------------------------------------------------- */

static void what_is_put_is_got_and_what_is_deleted_is_gone(void **state)
{
    struct store *store = *state;

    WRITE(store, 1, 1, put("a", "1"), put("b", "2"));
    assert_stored(store, 1, "a", "1");
    WRITE(store, 1, 1, del("a"), put("b", "3"), del("never there"));
    assert_absent(store, 1, "a");
    assert_stored(store, 1, "b", "3");
}

static void an_empty_value_is_not_an_absent_one(void **state)
{
    struct store *store = *state;
    struct engine_value value;

    WRITE(store, 1, 1, put("empty", ""));
    value = get_in(store, NULL, 1, "empty");
    assert_int_equal(value.found, ENGINE_FOUND);
    assert_int_equal(value.bytes.len, 0);
}

static void keys_and_values_are_any_bytes(void **state)
{
    struct store *store = *state;
    struct engine_op ops[] = {
        {ENGINE_PUT, SLICE("\0"), SLICE("\0\1\2")},
        {ENGINE_PUT, SLICE("\0\0"), SLICE("\xff\xfe'\\\"")},
        {ENGINE_PUT, SLICE("\xff\xff"), SLICE("high")},
    };
    struct engine_value value;
    struct error err;

    write_ops(store, 1, 1, ops, ARRAY_LEN(ops));
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        assert_ok(engine_get(store->engine, NULL, 1, ops[i].key, ENGINE_READ_ANY, store->arena,
                             &value, &err),
                  &err);
        assert_int_equal(value.found, ENGINE_FOUND);
        assert_slice_equal(value.bytes, ops[i].value);
    }
}

static void partitions_are_apart(void **state)
{
    struct store *store = *state;
    struct engine_section sections[] = {
        {.partition = 1, .epoch = 1, .ops = (struct engine_op[]){put("k", "one")}, .count = 1},
        {.partition = 2, .epoch = 5, .ops = (struct engine_op[]){put("k", "two")}, .count = 1},
    };
    struct error err;

    assert_ok(engine_write(store->engine, sections, 2, &err), &err);
    assert_stored(store, 1, "k", "one");
    assert_stored(store, 2, "k", "two");
    assert_string_equal(keys_in(store, NULL, 1, range_of(NULL, NULL), false), "k");
}

static void large_values_come_back_whole(void **state)
{
    struct store *store = *state;
    size_t len = 3 * 1024 * 1024;
    CLEANUP(memory_free) uint8_t *bytes = memory_alloc(len);
    struct engine_op op = {ENGINE_PUT, SLICE("large"), slice_of(bytes, len)};
    struct random random;

    random_seed(&random, 7);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)random_next(&random);
    write_ops(store, 1, 1, &op, 1);
    assert_true(slice_equal(get_in(store, NULL, 1, "large").bytes, op.value));
}

static void a_key_over_the_limit_is_refused_and_nothing_written(void **state)
{
    struct store *store = *state;
    CLEANUP(memory_free) char *key = memory_alloc_zero(ENGINE_KEY_MAX + 1);
    struct engine_op ops[] = {put("a", "1"),
                              {ENGINE_PUT, slice_of(key, ENGINE_KEY_MAX + 1), SLICE("x")}};
    struct engine_section section = {.partition = 1, .epoch = 1, .ops = ops, .count = 2};
    struct error err;

    memset(key, 'x', ENGINE_KEY_MAX);
    assert_fails(engine_write(store->engine, &section, 1, &err), &err, ERROR_TOO_LARGE);
    assert_absent(store, 1, "a");
}

static void multi_get_answers_in_the_order_asked(void **state)
{
    struct store *store = *state;
    struct slice keys[] = {SLICE("c"), SLICE("missing"), SLICE("a"), SLICE("c")};
    struct engine_value values[ARRAY_LEN(keys)];
    struct error err;

    WRITE(store, 1, 1, put("a", "1"), put("b", "2"), put("c", "3"));
    assert_ok(engine_multi_get(store->engine, NULL, 1, keys, ARRAY_LEN(keys), ENGINE_READ_ANY,
                               store->arena, values, &err),
              &err);
    assert_slice_equal(values[0].bytes, SLICE("3"));
    assert_int_equal(values[1].found, ENGINE_ABSENT);
    assert_slice_equal(values[2].bytes, SLICE("1"));
    assert_slice_equal(values[3].bytes, SLICE("3"));
}

static void a_cached_read_is_right_or_says_cold(void **state)
{
    struct store *store = *state;
    struct engine_value value;
    struct error err;

    WRITE(store, 1, 1, put("a", "1"));
    assert_ok(engine_get(store->engine, NULL, 1, SLICE("a"), ENGINE_READ_CACHED, store->arena,
                         &value, &err),
              &err);
    if (value.found != ENGINE_COLD) {
        assert_int_equal(value.found, ENGINE_FOUND);
        assert_slice_equal(value.bytes, SLICE("1"));
    }
}

/* --- Ranges ---------------------------------------------------------------------------------- */

static void a_range_includes_its_min_and_not_its_max(void **state)
{
    struct store *store = *state;

    WRITE(store, 1, 1, put("a", ""), put("b", ""), put("ba", ""), put("c", ""), put("d", ""));
    assert_string_equal(keys_in(store, NULL, 1, range_of("b", "d"), false), "b ba c");
    assert_string_equal(keys_in(store, NULL, 1, range_of("b", "d"), true), "c ba b");
    assert_string_equal(keys_in(store, NULL, 1, range_of(NULL, "b"), false), "a");
    assert_string_equal(keys_in(store, NULL, 1, range_of("bb", NULL), true), "d c");
    assert_string_equal(keys_in(store, NULL, 1, range_of("x", NULL), false), "");
    assert_string_equal(keys_in(store, NULL, 1, range_of("c", "b"), false), "");
}

static void an_iterator_crosses_many_pages_both_ways(void **state)
{
    enum { COUNT = 3000 };
    struct store *store = *state;
    struct engine_op *ops = ARENA_ARRAY(store->arena, struct engine_op, COUNT);
    struct error err;

    for (int i = 0; i < COUNT; i++)
        ops[i] = (struct engine_op){ENGINE_PUT, arena_printf(store->arena, "%08d", i),
                                    arena_printf(store->arena, "value %d", i)};
    write_ops(store, 1, 1, ops, COUNT);
    for (int backwards = 0; backwards < 2; backwards++) {
        CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
        struct engine_entry entry;

        assert_ok(engine_iterator_new(store->engine, NULL, 1, range_of(NULL, NULL), backwards,
                                      ENGINE_READ_ANY, &iterator, &err),
                  &err);
        for (int i = 0; i < COUNT; i++) {
            const struct engine_op *op = &ops[backwards ? COUNT - 1 - i : i];

            assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
            assert_int_equal(entry.found, ENGINE_FOUND);
            assert_slice_equal(entry.key, op->key);
            assert_slice_equal(entry.value, op->value);
        }
        assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
        assert_int_equal(entry.found, ENGINE_ABSENT);
        assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
        assert_int_equal(entry.found, ENGINE_ABSENT);
    }
}

static void seek_moves_within_the_bounds(void **state)
{
    struct store *store = *state;
    CLEANUP(engine_iterator_free) struct engine_iterator *forward = NULL;
    CLEANUP(engine_iterator_free) struct engine_iterator *backward = NULL;
    struct engine_entry entry;
    struct error err;

    WRITE(store, 1, 1, put("a", ""), put("c", ""), put("e", ""), put("g", ""));
    assert_ok(engine_iterator_new(store->engine, NULL, 1, range_of("b", "g"), false,
                                  ENGINE_READ_ANY, &forward, &err),
              &err);
    assert_ok(engine_iterator_seek(forward, SLICE("d"), &err), &err);
    assert_ok(engine_iterator_next(forward, &entry, &err), &err);
    assert_slice_equal(entry.key, SLICE("e"));
    assert_ok(engine_iterator_seek(forward, SLICE("a"), &err), &err);
    assert_ok(engine_iterator_next(forward, &entry, &err), &err);
    assert_slice_equal(entry.key, SLICE("c"));
    assert_ok(engine_iterator_next(forward, &entry, &err), &err);
    assert_slice_equal(entry.key, SLICE("e"));
    assert_ok(engine_iterator_next(forward, &entry, &err), &err);
    assert_int_equal(entry.found, ENGINE_ABSENT);

    assert_ok(engine_iterator_new(store->engine, NULL, 1, range_of("b", "g"), true, ENGINE_READ_ANY,
                                  &backward, &err),
              &err);
    assert_ok(engine_iterator_seek(backward, SLICE("d"), &err), &err);
    assert_ok(engine_iterator_next(backward, &entry, &err), &err);
    assert_slice_equal(entry.key, SLICE("c"));
    assert_ok(engine_iterator_seek(backward, SLICE("z"), &err), &err);
    assert_ok(engine_iterator_next(backward, &entry, &err), &err);
    assert_slice_equal(entry.key, SLICE("e"));
}

static void an_iterator_sees_one_moment(void **state)
{
    struct store *store = *state;
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_entry entry;
    struct error err;

    WRITE(store, 1, 1, put("a", ""), put("c", ""));
    assert_ok(engine_iterator_new(store->engine, NULL, 1, range_of(NULL, NULL), false,
                                  ENGINE_READ_ANY, &iterator, &err),
              &err);
    assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
    WRITE(store, 1, 1, put("b", ""), del("c"));
    assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
    assert_slice_equal(entry.key, SLICE("c"));
}

static void a_dropped_range_is_gone_and_its_neighbours_stay(void **state)
{
    struct store *store = *state;
    struct error err;

    WRITE(store, 1, 1, put("a", ""), put("b", ""), put("c", ""), put("d", ""));
    assert_ok(engine_range_drop(store->engine, 1, 1, range_of("b", "d"), &err), &err);
    assert_string_equal(keys_in(store, NULL, 1, range_of(NULL, NULL), false), "a d");
    assert_ok(engine_range_drop(store->engine, 1, 1, range_of("d", "b"), &err), &err);
    assert_fails(engine_range_drop(store->engine, 1, 9, range_of(NULL, NULL), &err), &err,
                 ERROR_FENCED);
    assert_string_equal(keys_in(store, NULL, 1, range_of(NULL, NULL), false), "a d");
    assert_ok(engine_range_drop(store->engine, 1, 1, range_of(NULL, NULL), &err), &err);
    assert_string_equal(keys_in(store, NULL, 1, range_of(NULL, NULL), false), "");
}

static void what_is_loaded_is_there_with_what_was_written(void **state)
{
    struct store *store = *state;
    struct engine_op first[] = {put("b", "loaded"), put("d", "")}, second[] = {put("b", "again")};
    struct engine_section sections[] = {
        {.partition = 1, .epoch = 1, .ops = first, .count = ARRAY_LEN(first)},
        {.partition = 2, .epoch = 5, .ops = second, .count = ARRAY_LEN(second)},
    };
    struct error err;

    if (!engine_can_load(store->engine))
        return;
    WRITE(store, 1, 1, put("a", ""), put("b", "old"), put("c", ""));
    assert_ok(engine_load(store->engine, sections, 2, &err), &err);
    assert_string_equal(keys_in(store, NULL, 1, range_of(NULL, NULL), false), "a b c d");
    assert_slice_equal(get_in(store, NULL, 1, "b").bytes, SLICE("loaded"));
    assert_slice_equal(get_in(store, NULL, 2, "b").bytes, SLICE("again"));
    WRITE(store, 1, 1, put("b", "new"), del("d"));
    assert_slice_equal(get_in(store, NULL, 1, "b").bytes, SLICE("new"));
    assert_string_equal(keys_in(store, NULL, 1, range_of(NULL, NULL), false), "a b c");
    sections[0].epoch = 9;
    assert_fails(engine_load(store->engine, sections, 1, &err), &err, ERROR_FENCED);
    assert_true(sections[0].fenced);
    if (!subject->survives_close)
        return;
    engine_close(TAKE(store->engine));
    store_open(store);
    assert_slice_equal(get_in(store, NULL, 2, "b").bytes, SLICE("again"));
}

/* --- Snapshots ------------------------------------------------------------------------------- */

static void a_snapshot_does_not_see_later_writes(void **state)
{
    struct store *store = *state;
    CLEANUP(engine_snapshot_free) struct engine_snapshot *snapshot = NULL;
    struct error err;

    WRITE(store, 1, 1, put("a", "old"), put("b", "old"));
    assert_ok(engine_snapshot_new(store->engine, &snapshot, &err), &err);
    WRITE(store, 1, 1, put("a", "new"), del("b"), put("c", "new"));
    assert_slice_equal(get_in(store, snapshot, 1, "a").bytes, SLICE("old"));
    assert_int_equal(get_in(store, snapshot, 1, "c").found, ENGINE_ABSENT);
    assert_string_equal(keys_in(store, snapshot, 1, range_of(NULL, NULL), false), "a b");
    assert_string_equal(keys_in(store, NULL, 1, range_of(NULL, NULL), false), "a c");
}

static void a_snapshot_covers_all_partitions(void **state)
{
    struct store *store = *state;
    CLEANUP(engine_snapshot_free) struct engine_snapshot *snapshot = NULL;
    struct error err;

    WRITE(store, 2, 5, put("x", "old"));
    assert_ok(engine_snapshot_new(store->engine, &snapshot, &err), &err);
    WRITE(store, 2, 5, put("x", "new"));
    assert_slice_equal(get_in(store, snapshot, 2, "x").bytes, SLICE("old"));
}

/* --- Fences ---------------------------------------------------------------------------------- */

static void a_write_with_one_fenced_section_writes_nothing(void **state)
{
    struct store *store = *state;
    struct engine_section sections[] = {
        {.partition = 1, .epoch = 1, .ops = (struct engine_op[]){put("k", "in")}, .count = 1},
        {.partition = 2, .epoch = 4, .ops = (struct engine_op[]){put("k", "out")}, .count = 1},
        {.partition = 77, .epoch = 1, .ops = (struct engine_op[]){put("k", "out")}, .count = 1},
    };
    struct error err;

    assert_fails(engine_write(store->engine, sections, ARRAY_LEN(sections), &err), &err,
                 ERROR_FENCED);
    assert_false(sections[0].fenced);
    assert_true(sections[1].fenced);
    assert_true(sections[2].fenced);
    assert_absent(store, 1, "k");
    assert_absent(store, 2, "k");
    assert_ok(engine_write(store->engine, sections, 1, &err), &err);
    assert_stored(store, 1, "k", "in");
}

static void raising_the_epoch_shuts_out_the_old_one(void **state)
{
    struct store *store = *state;
    struct engine_section late = {
        .partition = 1, .epoch = 1, .ops = (struct engine_op[]){put("k", "late")}, .count = 1};
    struct error err;

    assert_ok(engine_partition_fence(store->engine, 1, 2, &err), &err);
    assert_fails(engine_write(store->engine, &late, 1, &err), &err, ERROR_FENCED);
    assert_absent(store, 1, "k");
    WRITE(store, 1, 2, put("k", "new owner"));
    assert_fails(engine_partition_fence(store->engine, 1, 2, &err), &err, ERROR_FENCED);
    assert_fails(engine_partition_fence(store->engine, 99, 2, &err), &err, ERROR_PARTITION_UNKNOWN);
}

struct racer {
    struct store *store;
    atomic_bool stop;
    uint64_t acknowledged; /* the last number written under epoch 1 */
};

static void race_writer(void *context)
{
    struct racer *racer = context;

    for (uint64_t i = 1; !atomic_load(&racer->stop); i++) {
        uint8_t number[8];
        struct engine_op op = {ENGINE_PUT, SLICE("counter"), slice_of(number, sizeof number)};
        struct engine_section section = {.partition = 1, .epoch = 1, .ops = &op, .count = 1};
        struct error err;

        bytes_put_be64(number, i);
        if (!engine_write(racer->store->engine, &section, 1, &err))
            return;
        racer->acknowledged = i;
    }
}

static void a_fence_waits_for_the_writes_it_must_not_overtake(void **state)
{
    struct store *store = *state;
    struct racer racer = {.store = store};
    struct engine_value after_fence;
    struct thread thread;
    struct error err;

    thread_start(&thread, "race writer", race_writer, &racer);
    while (get_in(store, NULL, 1, "counter").found != ENGINE_FOUND)
        ;
    assert_ok(engine_partition_fence(store->engine, 1, 2, &err), &err);
    after_fence = get_in(store, NULL, 1, "counter");
    atomic_store(&racer.stop, true);
    thread_join(&thread);
    /* All that was acknowledged was visible when the fence returned, and nothing came after. */
    assert_int_equal(bytes_get_be64(after_fence.bytes.data), racer.acknowledged);
    assert_slice_equal(get_in(store, NULL, 1, "counter").bytes, after_fence.bytes);
}

/* --- Partitions ------------------------------------------------------------------------------ */

static void partitions_are_listed_by_number(void **state)
{
    struct store *store = *state;
    struct engine_partition *partitions;
    struct error err;
    size_t count;

    assert_ok(engine_partition_create(store->engine, 300, 1, &err), &err);
    assert_ok(engine_partition_create(store->engine, 20, 3, &err), &err);
    assert_fails(engine_partition_create(store->engine, 20, 3, &err), &err, ERROR_PARTITION_EXISTS);
    assert_ok(engine_partition_list(store->engine, store->arena, &partitions, &count, &err), &err);
    assert_int_equal(count, 4);
    assert_int_equal(partitions[0].id, 1);
    assert_int_equal(partitions[2].id, 20);
    assert_int_equal(partitions[2].epoch, 3);
    assert_int_equal(partitions[3].id, 300);
}

static void a_dropped_partition_takes_no_writes_and_can_be_made_again_empty(void **state)
{
    struct store *store = *state;
    struct engine_section late = {
        .partition = 1, .epoch = 1, .ops = (struct engine_op[]){put("b", "late")}, .count = 1};
    struct error err;

    WRITE(store, 1, 1, put("a", "1"));
    WRITE(store, 2, 5, put("a", "stays"));
    assert_ok(engine_partition_drop(store->engine, 1, &err), &err);
    assert_ok(engine_partition_drop(store->engine, 1, &err), &err);
    assert_fails(engine_write(store->engine, &late, 1, &err), &err, ERROR_FENCED);
    assert_ok(engine_partition_create(store->engine, 1, 8, &err), &err);
    assert_string_equal(keys_in(store, NULL, 1, range_of(NULL, NULL), false), "");
    assert_stored(store, 2, "a", "stays");
}

static void the_highest_partition_number_works_like_any(void **state)
{
    struct store *store = *state;
    struct error err;

    assert_ok(engine_partition_create(store->engine, ENGINE_PARTITION_MAX, 1, &err), &err);
    WRITE(store, ENGINE_PARTITION_MAX, 1, put("a", ""),
          {ENGINE_PUT, SLICE("\xff\xff\xff"), SLICE("")});
    assert_int_equal(strlen(keys_in(store, NULL, ENGINE_PARTITION_MAX, range_of(NULL, NULL), true)),
                     5);
    assert_ok(engine_partition_drop(store->engine, ENGINE_PARTITION_MAX, &err), &err);
}

static void a_node_joins_one_cluster_for_good(void **state)
{
    struct store *store = *state;
    struct slice id;
    struct error err;

    assert_ok(engine_cluster_id(store->engine, store->arena, &id, &err), &err);
    assert_int_equal(id.len, 0);
    assert_ok(engine_cluster_join(store->engine, SLICE("c-1"), &err), &err);
    assert_ok(engine_cluster_join(store->engine, SLICE("c-1"), &err), &err);
    assert_fails(engine_cluster_join(store->engine, SLICE("c-2"), &err), &err, ERROR_STORE_FOREIGN);
    assert_ok(engine_cluster_id(store->engine, store->arena, &id, &err), &err);
    assert_slice_equal(id, SLICE("c-1"));
}

/* --- Life ------------------------------------------------------------------------------------ */

static void a_store_opened_again_has_everything(void **state)
{
    struct store *store = *state;
    struct engine_partition *partitions;
    char node_id[40];
    struct error err;
    size_t count;

    if (!subject->survives_close)
        return;
    WRITE(store, 1, 1, put("a", "1"));
    assert_ok(engine_partition_fence(store->engine, 1, 7, &err), &err);
    snprintf(node_id, sizeof node_id, "%s", engine_node_id(store->engine));
    engine_close(TAKE(store->engine));
    store_open(store);
    assert_string_equal(engine_node_id(store->engine), node_id);
    assert_stored(store, 1, "a", "1");
    assert_ok(engine_partition_list(store->engine, store->arena, &partitions, &count, &err), &err);
    assert_int_equal(count, 2);
    assert_int_equal(partitions[0].epoch, 7);
}

static void a_store_in_use_is_refused(void **state)
{
    struct store *store = *state;
    struct engine *second;
    struct error err;

    if (!subject->survives_close)
        return;
    assert_fails(engine_open(slice_of_text(store->url), &(struct engine_options){0}, &second, &err),
                 &err, ERROR_STORE_IN_USE);
    WRITE(store, 1, 1, put("still", "works"));
}

static void a_backup_is_a_store_as_of_its_moment(void **state)
{
    struct store *store = *state;
    CLEANUP(scratch_done) struct scratch scratch;
    CLEANUP(engine_close) struct engine *copy = NULL;
    struct engine_value value;
    struct error err;
    char url[400];

    scratch_init(&scratch);
    WRITE(store, 1, 1, put("a", "before"));
    if (!subject->can_back_up) {
        assert_fails(
            engine_backup(store->engine, slice_of_text(scratch_path(&scratch, "copy")), &err), &err,
            ERROR_NOT_SUPPORTED);
        return;
    }
    assert_ok(engine_backup(store->engine, slice_of_text(scratch_path(&scratch, "copy")), &err),
              &err);
    assert_fails(engine_backup(store->engine, slice_of_text(scratch_path(&scratch, "copy")), &err),
                 &err, ERROR_STORE_IO);
    WRITE(store, 1, 1, put("a", "after"));
    snprintf(url, sizeof url, "rocksdb:%s", scratch_path(&scratch, "copy"));
    assert_ok(engine_open(slice_of_text(url), &(struct engine_options){0}, &copy, &err), &err);
    assert_ok(engine_get(copy, NULL, 1, SLICE("a"), ENGINE_READ_ANY, store->arena, &value, &err),
              &err);
    assert_slice_equal(value.bytes, SLICE("before"));
}

static void statistics_count_what_was_done(void **state)
{
    struct store *store = *state;
    struct engine_statistics before, after;
    struct error err;

    assert_ok(engine_statistics(store->engine, &before, &err), &err);
    WRITE(store, 1, 1, put("a", "0123456789"));
    assert_stored(store, 1, "a", "0123456789");
    assert_ok(engine_statistics(store->engine, &after, &err), &err);
    assert_int_equal(after.writes, before.writes + 1);
    assert_true(after.reads > before.reads);
    assert_true(after.bytes_written >= before.bytes_written + 11);
    assert_int_equal(after.durable, subject->survives_close);
    assert_false(after.poisoned);
}

static void the_size_of_a_range_can_be_asked(void **state)
{
    struct store *store = *state;
    uint64_t bytes = UINT64_MAX;
    struct error err;

    WRITE(store, 1, 1, put("a", "1"));
    assert_ok(engine_range_size(store->engine, 1, range_of(NULL, NULL), &bytes, &err), &err);
    assert_true(bytes < 100 * 1024 * 1024);
}

/* --- Many threads ---------------------------------------------------------------------------- */

struct pair_writer {
    struct store *store;
    uint32_t partition;
    uint64_t epoch;
    atomic_bool *stop;
};

/* Both keys always change together. */
static void pair_write(void *context)
{
    struct pair_writer *writer = context;

    for (unsigned i = 0; !atomic_load(writer->stop); i++) {
        char value[16];
        struct engine_op ops[2];
        struct engine_section section = {
            .partition = writer->partition, .epoch = writer->epoch, .ops = ops, .count = 2};
        struct error err;

        snprintf(value, sizeof value, "%u", i);
        ops[0] = put("left", value);
        ops[1] = put("right", value);
        assert_ok(engine_write(writer->store->engine, &section, 1, &err), &err);
    }
}

static void readers_never_see_half_a_batch(void **state)
{
    struct store *store = *state;
    atomic_bool stop = false;
    struct pair_writer writers[] = {{store, 1, 1, &stop}, {store, 2, 5, &stop}};
    struct thread threads[ARRAY_LEN(writers)];
    /* What is kept in memory for readers makes it a matter of microseconds, so it is tried often
     * where reading is not a round trip. */
    int rounds = subject->has_snapshot_deadline ? 200 : 20000;
    struct error err;

    WRITE(store, 1, 1, put("left", "0"), put("right", "0"));
    WRITE(store, 2, 5, put("left", "0"), put("right", "0"));
    for (size_t i = 0; i < ARRAY_LEN(writers); i++)
        thread_start(&threads[i], "pair writer", pair_write, &writers[i]);
    for (int round = 0; round < rounds; round++) {
        uint32_t partition = round % 2 ? 1 : 2;
        struct slice keys[] = {SLICE("left"), SLICE("right")};
        struct engine_value values[2];

        assert_ok(engine_multi_get(store->engine, NULL, partition, keys, 2, ENGINE_READ_ANY,
                                   store->arena, values, &err),
                  &err);
        assert_slice_equal(values[0].bytes, values[1].bytes);
        arena_reset(store->arena);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < ARRAY_LEN(writers); i++)
        thread_join(&threads[i]);
}

struct counting {
    struct store *store;
    atomic_uint answered; /* what the last write that was answered put */
    atomic_bool stop;
};

static void counting_write(void *context)
{
    struct counting *counting = context;

    for (unsigned i = 1; !atomic_load(&counting->stop); i++) {
        char value[16];

        /* Longer now and then, and gone now and then. */
        snprintf(value, sizeof value, i % 3 ? "%u" : "%015u", i);
        if (i % 7 == 0)
            WRITE(counting->store, 1, 1, del("count"));
        WRITE(counting->store, 1, 1, put("count", value));
        atomic_store(&counting->answered, i);
    }
}

/* Whatever an engine keeps in memory for readers: reading by key is never behind what was answered,
 * nor behind what another way of reading has shown. */
static void a_read_sees_every_write_that_was_answered_before(void **state)
{
    struct store *store = *state;
    struct counting counting = {.store = store};
    struct thread thread;
    unsigned shown = 0;

    WRITE(store, 1, 1, put("count", "0"));
    thread_start(&thread, "counting", counting_write, &counting);
    for (int round = 0; round < 2000; round++) {
        struct slice key = SLICE("count");
        unsigned answered = MAX(atomic_load(&counting.answered), shown);
        struct engine_value value;
        struct error err;

        if (round % 2)
            value = get_in(store, NULL, 1, "count");
        else
            assert_ok(engine_multi_get(store->engine, NULL, 1, &key, 1, ENGINE_READ_ANY,
                                       store->arena, &value, &err),
                      &err);
        if (value.found == ENGINE_FOUND) {
            shown = (unsigned)strtoul(arena_text(store->arena, value.bytes), NULL, 10);
            assert_true(shown >= answered);
        }
        arena_reset(store->arena);
    }
    atomic_store(&counting.stop, true);
    thread_join(&thread);
}

/* Random batches against a table in memory: everything agrees at every step. */
static void random_batches_agree_with_a_model(void **state)
{
    enum { KEYS = 40, STEPS = 150 };
    struct store *store = *state;
    char model[KEYS][24] = {{0}};
    struct random random;
    uint64_t seed = 20260801;

    random_seed(&random, seed);
    for (int step = 0; step < STEPS; step++) {
        struct engine_op ops[KEYS];
        size_t count = 0;

        for (int key = 0; key < KEYS; key++) {
            struct slice name = arena_printf(store->arena, "key%02d", key);

            if (random_below(&random, 4))
                continue;
            if (random_below(&random, 3) == 0) {
                model[key][0] = '\0';
                ops[count++] = (struct engine_op){ENGINE_DELETE, name, SLICE_NONE};
            } else {
                snprintf(model[key], sizeof model[key], "%d/%d", step, key);
                ops[count++] = (struct engine_op){ENGINE_PUT, name, slice_of_text(model[key])};
            }
        }
        write_ops(store, 1, 1, ops, count);
        for (int key = 0; key < KEYS; key++) {
            const char *name = arena_text(store->arena, arena_printf(store->arena, "key%02d", key));
            struct engine_value value = get_in(store, NULL, 1, name);

            assert_int_equal(value.found, model[key][0] ? ENGINE_FOUND : ENGINE_ABSENT);
            if (model[key][0])
                assert_slice_equal(value.bytes, slice_of_text(model[key]));
        }
        arena_reset(store->arena);
    }
}

#define CONTRACT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int engine_contract_run(const struct contract_subject *of)
{
    const struct CMUnitTest tests[] = {
        CONTRACT(what_is_put_is_got_and_what_is_deleted_is_gone),
        CONTRACT(an_empty_value_is_not_an_absent_one),
        CONTRACT(keys_and_values_are_any_bytes),
        CONTRACT(partitions_are_apart),
        CONTRACT(large_values_come_back_whole),
        CONTRACT(a_key_over_the_limit_is_refused_and_nothing_written),
        CONTRACT(multi_get_answers_in_the_order_asked),
        CONTRACT(a_cached_read_is_right_or_says_cold),
        CONTRACT(a_range_includes_its_min_and_not_its_max),
        CONTRACT(an_iterator_crosses_many_pages_both_ways),
        CONTRACT(seek_moves_within_the_bounds),
        CONTRACT(an_iterator_sees_one_moment),
        CONTRACT(a_dropped_range_is_gone_and_its_neighbours_stay),
        CONTRACT(what_is_loaded_is_there_with_what_was_written),
        CONTRACT(a_snapshot_does_not_see_later_writes),
        CONTRACT(a_snapshot_covers_all_partitions),
        CONTRACT(a_write_with_one_fenced_section_writes_nothing),
        CONTRACT(raising_the_epoch_shuts_out_the_old_one),
        CONTRACT(a_fence_waits_for_the_writes_it_must_not_overtake),
        CONTRACT(partitions_are_listed_by_number),
        CONTRACT(a_dropped_partition_takes_no_writes_and_can_be_made_again_empty),
        CONTRACT(the_highest_partition_number_works_like_any),
        CONTRACT(a_node_joins_one_cluster_for_good),
        CONTRACT(a_store_opened_again_has_everything),
        CONTRACT(a_store_in_use_is_refused),
        CONTRACT(a_backup_is_a_store_as_of_its_moment),
        CONTRACT(statistics_count_what_was_done),
        CONTRACT(the_size_of_a_range_can_be_asked),
        CONTRACT(readers_never_see_half_a_batch),
        CONTRACT(a_read_sees_every_write_that_was_answered_before),
        CONTRACT(random_batches_agree_with_a_model),
    };

    subject = of;
    return cmocka_run_group_tests_name(of->name, tests, NULL, NULL);
}
