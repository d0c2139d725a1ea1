/* The order of a write buffer's entries, against a sorted array, and while others read. */
#include "base/arena.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "engine/rocks/tree.h"
#include "support/check.h"

#include <stdatomic.h>

enum { KEY_MAX = 6000 };

static void *give(void *context, size_t bytes)
{
    return arena_alloc(context, bytes);
}

struct fixture {
    struct arena *arena;
    struct rocks_tree tree;
};

static int setup(void **state)
{
    struct fixture *fixture = MEMORY_NEW(struct fixture);

    fixture->arena = arena_new();
    rocks_tree_init(&fixture->tree, give, fixture->arena);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    arena_free(fixture->arena);
    memory_free(fixture);
    return 0;
}

/* An internal key: the user's and a tag. */
static struct slice internal(struct arena *arena, struct slice key, uint64_t tag)
{
    uint8_t *bytes = arena_alloc(arena, key.len + ROCKS_TREE_TAG);

    memcpy(bytes, key.data, key.len);
    bytes_put_le64(bytes + key.len, tag);
    return slice_of(bytes, key.len + ROCKS_TREE_TAG);
}

/* With its length before it, as RocksDB writes it. */
static size_t entry_write(struct slice key, uint8_t *to)
{
    size_t len = key.len, at = 0;

    for (; len >= 0x80; len >>= 7)
        to[at++] = (uint8_t)(len | 0x80);
    to[at++] = (uint8_t)len;
    memcpy(to + at, key.data, key.len);
    return at + key.len;
}

static struct slice entry_key(const struct rocks_entry *entry)
{
    const uint8_t *at = entry->bytes;
    size_t len = *at & 0x7F;

    for (unsigned shift = 7; *at++ & 0x80; shift += 7)
        len |= (size_t)(*at & 0x7F) << shift;
    return slice_of(at, len);
}

static bool insert(struct fixture *fixture, struct slice key)
{
    struct rocks_entry *entry = rocks_tree_entry_new(&fixture->tree, key.len + 5);

    entry_write(key, entry->bytes);
    return rocks_tree_insert(&fixture->tree, entry);
}

static bool contains(struct fixture *fixture, struct slice key)
{
    uint8_t bytes[KEY_MAX + ROCKS_TREE_TAG + 5];

    entry_write(key, bytes);
    return rocks_tree_contains(&fixture->tree, bytes);
}

/* RocksDB's order, written the plain way. */
static int internal_compare(const void *a, const void *b)
{
    const struct slice *one = a, *other = b;
    struct slice first = slice_of(one->data, one->len - ROCKS_TREE_TAG);
    struct slice second = slice_of(other->data, other->len - ROCKS_TREE_TAG);
    int order = slice_compare(first, second);
    uint64_t tag = bytes_get_le64(one->data + first.len);
    uint64_t other_tag = bytes_get_le64(other->data + second.len);

    return order ? order : (tag < other_tag) - (tag > other_tag);
}

static void assert_at(const struct rocks_entry *entry, const struct slice *expected)
{
    if (!expected) {
        assert_null(entry);
        return;
    }
    assert_non_null(entry);
    assert_true(slice_equal(entry_key(entry), *expected));
}

/* Seeks of a key that stands at place of the sorted array, or would. */
static void assert_seeks(struct fixture *fixture, const struct slice *sorted, size_t count,
                         struct slice key)
{
    size_t low = 0, high = count;
    bool there;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (internal_compare(&sorted[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    there = low < count && internal_compare(&sorted[low], &key) == 0;
    assert_at(rocks_tree_seek(&fixture->tree, key.data, key.len),
              low < count ? &sorted[low] : NULL);
    assert_at(rocks_tree_seek_back(&fixture->tree, key.data, key.len), there ? &sorted[low]
                                                                       : low ? &sorted[low - 1]
                                                                             : NULL);
    assert_int_equal(contains(fixture, key), there);
}

static void assert_holds(struct fixture *fixture, const struct slice *sorted, size_t count)
{
    const struct rocks_entry *at = NULL;

    for (size_t i = 0; i < count; i++) {
        at = rocks_tree_next(&fixture->tree, at);
        assert_at(at, &sorted[i]);
    }
    assert_null(count ? rocks_tree_next(&fixture->tree, at) : at);
    at = NULL;
    for (size_t i = count; i-- > 0;) {
        at = rocks_tree_prev(&fixture->tree, at);
        assert_at(at, &sorted[i]);
    }
    assert_null(count ? rocks_tree_prev(&fixture->tree, at) : at);
    for (size_t i = 0; i < count; i++)
        assert_seeks(fixture, sorted, count, sorted[i]);
}

static struct slice random_key(struct random *random, unsigned letters, size_t len_max,
                               struct arena *arena)
{
    size_t len = random_below(random, len_max + 1);
    uint8_t *bytes = arena_alloc(arena, len + 1);

    /* Both ends of what a byte can be. */
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)(random_below(random, letters) - letters / 2);
    return slice_of(bytes, len);
}

static void entries_are_in_the_order_of_keys_and_of_one_key_the_newest_is_first(void **state)
{
    /* Few letters make keys of which one begins another, many make wide nodes. */
    static const unsigned letters[] = {1, 2, 3, 5, 17, 50, 256};
    enum { COUNT = 1500 };
    struct random random;

    (void)state;
    random_seed(&random, 19);
    for (size_t round = 0; round < ARRAY_LEN(letters) * 3; round++) {
        unsigned symbols = letters[round % ARRAY_LEN(letters)];
        size_t len_max = round < ARRAY_LEN(letters) ? 3 : 12 * (round / ARRAY_LEN(letters));
        struct slice *sorted;
        void *own;

        setup(&own);
        sorted = ARENA_ARRAY(((struct fixture *)own)->arena, struct slice, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            struct arena *arena = ((struct fixture *)own)->arena;

            sorted[i] = internal(arena, random_key(&random, symbols, len_max, arena), i << 8 | 1);
            assert_true(insert(own, sorted[i]));
        }
        qsort(sorted, COUNT, sizeof *sorted, internal_compare);
        assert_holds(own, sorted, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            struct arena *arena = ((struct fixture *)own)->arena;

            assert_seeks(own, sorted, COUNT,
                         internal(arena, random_key(&random, symbols, len_max + 1, arena),
                                  random_below(&random, COUNT << 8)));
        }
        teardown(&own);
    }
}

static void an_empty_tree_has_neither_first_nor_last(void **state)
{
    struct fixture *fixture = *state;

    assert_holds(fixture, NULL, 0);
    assert_seeks(fixture, NULL, 0, internal(fixture->arena, SLICE("a"), 7));
}

static void keys_that_each_begin_the_next_are_found_however_long_they_get(void **state)
{
    struct fixture *fixture = *state;
    enum { COUNT = 3000 };
    struct slice sorted[COUNT];
    uint8_t bytes[COUNT];

    memset(bytes, 'a', sizeof bytes);
    for (size_t i = 0; i < COUNT; i++)
        sorted[i] = internal(fixture->arena, slice_of(bytes, i), 1);
    for (size_t i = 0; i < COUNT; i += 2)
        assert_true(insert(fixture, sorted[i]));
    for (size_t i = COUNT - 1; i < COUNT; i -= 2)
        assert_true(insert(fixture, sorted[i]));
    assert_holds(fixture, sorted, COUNT);
}

static void of_many_versions_the_one_of_any_moment_is_found(void **state)
{
    struct fixture *fixture = *state;
    enum { COUNT = 4000 };
    struct slice sorted[COUNT + 2];

    /* Tags are even; neighbours stand on both sides. */
    sorted[0] = internal(fixture->arena, SLICE("a"), 5);
    sorted[COUNT + 1] = internal(fixture->arena, SLICE("bb"), 5);
    assert_true(insert(fixture, sorted[0]) && insert(fixture, sorted[COUNT + 1]));
    for (size_t i = 0; i < COUNT; i++) {
        sorted[COUNT - i] = internal(fixture->arena, SLICE("b"), 10 + 2 * i);
        assert_true(insert(fixture, sorted[COUNT - i]));
    }
    assert_holds(fixture, sorted, COUNT + 2);
    for (size_t i = 0; i <= COUNT; i++)
        assert_seeks(fixture, sorted, COUNT + 2, internal(fixture->arena, SLICE("b"), 9 + 2 * i));
}

static void versions_that_come_out_of_turn_are_in_their_turn(void **state)
{
    struct fixture *fixture = *state;
    enum { COUNT = 300 };
    struct slice sorted[COUNT];
    struct random random;

    random_seed(&random, 20);
    for (size_t i = 0; i < COUNT; i++)
        sorted[i] = internal(fixture->arena, i % 3 ? SLICE("key") : SLICE("kez"), 1000 - 2 * i);
    for (size_t i = COUNT; i-- > 1;) {
        size_t other = random_below(&random, i + 1);
        struct slice kept = sorted[i];

        sorted[i] = sorted[other];
        sorted[other] = kept;
    }
    for (size_t i = 0; i < COUNT; i++)
        assert_true(insert(fixture, sorted[i]));
    for (size_t i = 0; i < COUNT; i++)
        assert_false(insert(fixture, sorted[i])); /* the same key and tag again */
    qsort(sorted, COUNT, sizeof *sorted, internal_compare);
    assert_holds(fixture, sorted, COUNT);
    for (uint64_t tag = 1; tag < 1002; tag += 2)
        assert_seeks(fixture, sorted, COUNT, internal(fixture->arena, SLICE("key"), tag));
}

/* --- One writes, others read ----------------------------------------------------------------- */

enum { WRITTEN = 12000, READERS = 3, VERSIONED = 16 /* one key in so many is written again */ };

struct shared {
    struct fixture *fixture;
    struct slice keys[WRITTEN]; /* in the order in which they are inserted */
    atomic_size_t inserted;
};

struct reader {
    struct shared *shared;
    uint64_t seed;
    size_t passes, failures;
};

static bool is_at(const struct rocks_entry *entry, struct slice key)
{
    return entry && slice_equal(entry_key(entry), key);
}

/* Everything that was there before is found by its key, walks are in order, and leave nothing of it
 * out. */
static bool reader_pass(struct shared *shared, struct random *random)
{
    const struct rocks_tree *tree = &shared->fixture->tree;
    size_t there = atomic_load_explicit(&shared->inserted, memory_order_acquire);
    size_t forwards = 0, backwards = 0;
    const struct rocks_entry *at = NULL, *next;
    bool fine = true;

    for (size_t i = 0; there && i < 200; i++) {
        struct slice key = shared->keys[random_below(random, there)];

        fine &= is_at(rocks_tree_seek(tree, key.data, key.len), key) &&
                is_at(rocks_tree_seek_back(tree, key.data, key.len), key);
    }
    for (; (next = rocks_tree_next(tree, at)) != NULL; at = next, forwards++) {
        struct slice key = at ? entry_key(at) : SLICE_NONE, behind = entry_key(next);

        fine &= !at || internal_compare(&key, &behind) < 0;
    }
    for (at = NULL; (at = rocks_tree_prev(tree, at)) != NULL;)
        backwards++;
    return fine && forwards >= there && backwards >= there;
}

static void reader_run(void *context)
{
    struct reader *reader = context;
    struct random random;
    bool last;

    random_seed(&random, reader->seed);
    do {
        last = atomic_load(&reader->shared->inserted) == WRITTEN;
        reader->failures += !reader_pass(reader->shared, &random);
        reader->passes++;
    } while (!last);
}

static void readers_find_all_that_was_inserted_before_they_began(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct shared *shared = ARENA_NEW(arena, struct shared);
    struct reader readers[READERS];
    struct thread threads[READERS];
    struct random random;

    random_seed(&random, 21);
    shared->fixture = fixture;
    for (size_t i = 0; i < WRITTEN; i++) {
        struct slice key =
            i % VERSIONED ? random_key(&random, i % 2 ? 256 : 3, 9, arena) : SLICE("counter");

        shared->keys[i] = internal(arena, key, (i + 1) << 8 | 1);
    }
    for (size_t i = 0; i < READERS; i++) {
        readers[i] = (struct reader){.shared = shared, .seed = i};
        thread_start(&threads[i], "reader", reader_run, &readers[i]);
    }
    for (size_t i = 0; i < WRITTEN; i++) {
        assert_true(insert(fixture, shared->keys[i]));
        atomic_store_explicit(&shared->inserted, i + 1, memory_order_release);
    }
    for (size_t i = 0; i < READERS; i++) {
        thread_join(&threads[i]);
        assert_true(readers[i].passes > 0);
        assert_int_equal(readers[i].failures, 0);
    }
    qsort(shared->keys, WRITTEN, sizeof *shared->keys, internal_compare);
    assert_holds(fixture, shared->keys, WRITTEN);
}

#define CLAIM(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_in_the_order_of_keys_and_of_one_key_the_newest_is_first),
        CLAIM(an_empty_tree_has_neither_first_nor_last),
        CLAIM(keys_that_each_begin_the_next_are_found_however_long_they_get),
        CLAIM(of_many_versions_the_one_of_any_moment_is_found),
        CLAIM(versions_that_come_out_of_turn_are_in_their_turn),
        CLAIM(readers_find_all_that_was_inserted_before_they_began),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
