/* Values kept above RocksDB: never stale, bounded, fair. */
#include "base/bytes.h"
#include "engine/rocks/recall.h"
#include "support/check.h"

enum { BYTES = 256 * 1024 }; /* one shard */

struct fixture {
    struct rocks_recall *recall;
    struct arena *arena;
};

static int setup(void **state)
{
    struct fixture *fixture = MEMORY_NEW(struct fixture);

    fixture->recall = rocks_recall_new(BYTES, "d", NULL);
    fixture->arena = arena_new();
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    rocks_recall_free(fixture->recall);
    arena_free(fixture->arena);
    memory_free(fixture);
    return 0;
}

static bool look(struct fixture *fixture, uint32_t partition, const char *key,
                 struct slice *ret_value, struct rocks_recall_seen *ret_seen)
{
    return rocks_recall_find(fixture->recall, partition, slice_of_text(key), 0, fixture->arena,
                             ret_value, ret_seen);
}

/* As a snapshot of that moment sees it; NULL: the store has to be asked. */
static const char *seen_at(struct fixture *fixture, const char *key, uint64_t moment,
                           struct rocks_recall_seen *ret_seen)
{
    struct slice value;

    if (!rocks_recall_find(fixture->recall, 1, slice_of_text(key), moment, fixture->arena, &value,
                           ret_seen))
        return NULL;
    return arena_text(fixture->arena, value);
}

static bool has(struct fixture *fixture, uint32_t partition, const char *key)
{
    struct rocks_recall_seen seen;
    struct slice value;

    return look(fixture, partition, key, &value, &seen);
}

static void assert_value(struct fixture *fixture, const char *key, const char *expected)
{
    struct rocks_recall_seen seen;
    struct slice value;

    assert_true(look(fixture, 1, key, &value, &seen));
    assert_slice_equal(value, slice_of_text(expected));
}

/* As a get does that found it in the store. */
static void read_value(struct fixture *fixture, uint32_t partition, const char *key,
                       struct slice stored)
{
    struct rocks_recall_seen seen;
    struct slice value;

    if (!look(fixture, partition, key, &value, &seen))
        rocks_recall_keep(fixture->recall, partition, slice_of_text(key), stored, &seen);
}

static struct engine_section section_of(struct engine_op *op)
{
    return (struct engine_section){.partition = 1, .epoch = 1, .ops = op, .count = 1};
}

static struct engine_op put(const char *key, const char *value)
{
    return (struct engine_op){ENGINE_PUT, slice_of_text(key), slice_of_text(value)};
}

static void write_op(struct fixture *fixture, struct engine_op op, bool written)
{
    struct engine_section section = section_of(&op);

    rocks_recall_write_begin(fixture->recall, &section, 1);
    rocks_recall_write_end(fixture->recall, &section, 1, written);
}

static void what_was_read_is_found_under_its_own_key_and_partition_alone(void **state)
{
    struct fixture *fixture = *state;

    read_value(fixture, 1, "da", SLICE("1"));
    assert_value(fixture, "da", "1");
    assert_false(has(fixture, 2, "da"));
    assert_false(has(fixture, 1, "db"));
}

static void keys_that_begin_otherwise_are_not_kept(void **state)
{
    struct fixture *fixture = *state;

    read_value(fixture, 1, "ia", SLICE("1"));
    assert_false(has(fixture, 1, "ia"));
}

static void a_write_replaces_what_is_kept_and_adds_nothing(void **state)
{
    struct fixture *fixture = *state;

    read_value(fixture, 1, "da", SLICE("1"));
    write_op(fixture, put("da", "2"), true);
    assert_value(fixture, "da", "2");
    write_op(fixture, put("da", "longer"), true);
    assert_value(fixture, "da", "longer");
    write_op(fixture, put("db", "1"), true);
    assert_false(has(fixture, 1, "db"));
    write_op(fixture, (struct engine_op){ENGINE_DELETE, SLICE("da"), SLICE_NONE}, true);
    assert_false(has(fixture, 1, "da"));
}

static void snapshots_see_what_was_last_before_them_or_ask_the_store(void **state)
{
    struct fixture *fixture = *state;
    struct rocks_recall_seen seen, ignored;
    uint64_t first, second, third;

    first = rocks_recall_moment(fixture->recall);
    read_value(fixture, 1, "da", SLICE("1"));
    assert_null(seen_at(fixture, "da", first, &seen)); /* was it written since? nobody knows */
    second = rocks_recall_moment(fixture->recall);
    assert_string_equal(seen_at(fixture, "da", second, &seen), "1");
    write_op(fixture, put("da", "2"), true);
    assert_null(seen_at(fixture, "da", second, &seen));
    third = rocks_recall_moment(fixture->recall);
    assert_string_equal(seen_at(fixture, "da", third, &seen), "2");
    assert_value(fixture, "da", "2");

    /* what a snapshot reads is kept, unless it was written since */
    assert_null(seen_at(fixture, "db", third, &seen));
    rocks_recall_keep(fixture->recall, 1, SLICE("db"), SLICE("old"), &seen);
    assert_string_equal(seen_at(fixture, "db", third, &ignored), "old");
    assert_null(seen_at(fixture, "dc", third, &seen));
    write_op(fixture, put("dc", "new"), true);
    rocks_recall_keep(fixture->recall, 1, SLICE("dc"), SLICE("old"), &seen);
    assert_false(has(fixture, 1, "dc"));
    assert_null(seen_at(fixture, "dc", third, &seen)); /* it has ended before this look */
    rocks_recall_keep(fixture->recall, 1, SLICE("dc"), SLICE("old"), &seen);
    assert_false(has(fixture, 1, "dc"));

    /* a change of many keys is as good as a write of each */
    rocks_recall_change_begin(fixture->recall, 1);
    rocks_recall_change_end(fixture->recall);
    assert_null(seen_at(fixture, "de", third, &seen));
    rocks_recall_keep(fixture->recall, 1, SLICE("de"), SLICE("old"), &seen);
    assert_false(has(fixture, 1, "de"));
}

static void a_write_that_failed_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;

    read_value(fixture, 1, "da", SLICE("1"));
    write_op(fixture, put("da", "2"), false);
    assert_false(has(fixture, 1, "da"));
}

static void while_a_write_is_under_way_its_key_is_neither_found_nor_kept(void **state)
{
    struct fixture *fixture = *state;
    struct engine_op op = put("da", "2");
    struct engine_section section = section_of(&op);

    read_value(fixture, 1, "da", SLICE("1"));
    rocks_recall_write_begin(fixture->recall, &section, 1);
    assert_false(has(fixture, 1, "da"));
    read_value(fixture, 1, "da", SLICE("1"));
    assert_false(has(fixture, 1, "da"));
    rocks_recall_write_end(fixture->recall, &section, 1, true);
    assert_value(fixture, "da", "2");
}

static void what_was_read_before_a_write_is_not_kept_after_it(void **state)
{
    struct fixture *fixture = *state;
    struct rocks_recall_seen before, during;
    struct engine_op op = put("da", "2");
    struct engine_section section = section_of(&op);
    struct slice value;

    assert_false(look(fixture, 1, "da", &value, &before));
    rocks_recall_write_begin(fixture->recall, &section, 1);
    assert_false(look(fixture, 1, "da", &value, &during));
    rocks_recall_write_end(fixture->recall, &section, 1, true);
    rocks_recall_keep(fixture->recall, 1, SLICE("da"), SLICE("1"), &before);
    rocks_recall_keep(fixture->recall, 1, SLICE("da"), SLICE("1"), &during);
    assert_false(has(fixture, 1, "da"));
}

static void of_two_writes_at_once_neither_is_kept(void **state)
{
    struct fixture *fixture = *state;
    struct engine_op first = put("da", "2"), second = put("da", "3");
    struct engine_section one = section_of(&first), two = section_of(&second);

    read_value(fixture, 1, "da", SLICE("1"));
    rocks_recall_write_begin(fixture->recall, &one, 1);
    rocks_recall_write_begin(fixture->recall, &two, 1);
    rocks_recall_write_end(fixture->recall, &two, 1, true);
    assert_false(has(fixture, 1, "da"));
    rocks_recall_write_end(fixture->recall, &one, 1, true);
    assert_false(has(fixture, 1, "da"));
}

static void a_change_of_a_partition_forgets_it_and_no_other(void **state)
{
    struct fixture *fixture = *state;
    struct rocks_recall_seen before;
    struct slice value;

    read_value(fixture, 1, "da", SLICE("1"));
    read_value(fixture, 2, "da", SLICE("2"));
    assert_false(look(fixture, 1, "db", &value, &before));
    rocks_recall_change_begin(fixture->recall, 1);
    read_value(fixture, 1, "dc", SLICE("3"));
    rocks_recall_change_end(fixture->recall);
    rocks_recall_keep(fixture->recall, 1, SLICE("db"), SLICE("1"), &before);
    assert_false(has(fixture, 1, "da"));
    assert_false(has(fixture, 1, "db"));
    assert_false(has(fixture, 1, "dc"));
    assert_true(has(fixture, 2, "da"));
}

static const char *numbered(struct fixture *fixture, unsigned n)
{
    return arena_text(fixture->arena, arena_printf(fixture->arena, "d%u", n));
}

static void memory_is_bounded_and_a_scan_does_not_push_out_what_is_read_often(void **state)
{
    struct fixture *fixture = *state;
    struct slice kilobyte = slice_of(memory_alloc_zero(1024), 1024);

    for (int round = 0; round < 3; round++)
        for (unsigned n = 0; n < 20; n++)
            read_value(fixture, 1, numbered(fixture, n), kilobyte);
    for (unsigned n = 1000; n < 6000; n++)
        read_value(fixture, 1, numbered(fixture, n), kilobyte);
    assert_true(rocks_recall_figures(fixture->recall).bytes <= BYTES + 64 * 1024);
    assert_true(rocks_recall_figures(fixture->recall).values > 100);
    for (unsigned n = 0; n < 20; n++)
        assert_true(has(fixture, 1, numbered(fixture, n)));
    memory_free((void *)kilobyte.data);
}

/* Even one who reads everything twice, so that it counts as often. */
static void a_partition_that_wants_all_leaves_others_their_share(void **state)
{
    struct fixture *fixture = *state;
    struct slice kilobyte = slice_of(memory_alloc_zero(1024), 1024);
    unsigned left = 0;

    for (int round = 0; round < 2; round++)
        for (unsigned n = 0; n < 50; n++)
            read_value(fixture, 2, numbered(fixture, n), kilobyte);
    for (unsigned n = 1000; n < 6000; n++)
        for (int round = 0; round < 4; round++)
            read_value(fixture, 1, numbered(fixture, n), kilobyte);
    for (unsigned n = 0; n < 50; n++)
        left += has(fixture, 2, numbered(fixture, n));
    assert_true(left >= 40);
    memory_free((void *)kilobyte.data);
}

static void values_that_are_too_long_are_not_kept(void **state)
{
    struct fixture *fixture = *state;
    size_t len = ROCKS_RECALL_VALUE_MAX + 1;
    struct slice value = slice_of(memory_alloc_zero(len), len);

    read_value(fixture, 1, "da", value);
    assert_false(has(fixture, 1, "da"));
    memory_free((void *)value.data);
}

static void with_no_memory_nothing_is_kept(void **state UNUSED)
{
    struct fixture none = {.recall = rocks_recall_new(0, NULL, NULL), .arena = arena_new()};

    read_value(&none, 1, "da", SLICE("1"));
    assert_false(has(&none, 1, "da"));
    write_op(&none, put("da", "2"), true);
    rocks_recall_change_begin(none.recall, 1);
    rocks_recall_change_end(none.recall);
    rocks_recall_free(none.recall);
    arena_free(none.arena);
}

/* Keys that begin with i are in the group of their first three bytes. */
static size_t group_of(struct slice key)
{
    return key.len >= 3 && key.data[0] == 'i' ? 3 : 0;
}

static void what_is_kept_of_a_group_goes_with_a_write_of_any_of_its_keys(void **state)
{
    struct fixture *fixture = *state;
    struct engine_op inside = put("iaa42", "new"), outside = put("iab42", "new");
    struct engine_section section = section_of(&inside);
    struct rocks_recall_seen seen;
    struct slice value;

    rocks_recall_free(fixture->recall);
    fixture->recall = rocks_recall_new(BYTES, "d", group_of);
    read_value(fixture, 1, "iaa", SLICE("all of it"));
    read_value(fixture, 1, "iaa4", SLICE("no name of a group"));
    assert_false(has(fixture, 1, "iaa4"));
    assert_false(has(fixture, 2, "iaa"));
    write_op(fixture, outside, true);
    write_op(fixture, put("d", "new"), true);
    assert_value(fixture, "iaa", "all of it");

    rocks_recall_write_begin(fixture->recall, &section, 1);
    assert_false(look(fixture, 1, "iaa", &value, &seen));
    rocks_recall_keep(fixture->recall, 1, SLICE("iaa"), SLICE("before"), &seen);
    rocks_recall_write_end(fixture->recall, &section, 1, true);
    assert_false(look(fixture, 1, "iaa", &value, &seen));

    /* what was read before a write is not kept behind it */
    write_op(fixture, (struct engine_op){.kind = ENGINE_DELETE, .key = SLICE("iaa7")}, true);
    rocks_recall_keep(fixture->recall, 1, SLICE("iaa"), SLICE("before"), &seen);
    assert_false(has(fixture, 1, "iaa"));
    read_value(fixture, 1, "iaa", SLICE("behind"));
    assert_value(fixture, "iaa", "behind");
}

static void a_snapshot_finds_of_a_group_only_what_it_shows(void **state)
{
    struct fixture *fixture = *state;
    struct rocks_recall_seen early, late;
    uint64_t before, after;

    rocks_recall_free(fixture->recall);
    fixture->recall = rocks_recall_new(BYTES, "d", group_of);
    before = rocks_recall_moment(fixture->recall);
    write_op(fixture, put("iaa1", "new"), true);
    after = rocks_recall_moment(fixture->recall);
    assert_null(seen_at(fixture, "iaa", before, &early));
    rocks_recall_keep(fixture->recall, 1, SLICE("iaa"), SLICE("old"), &early);
    assert_null(seen_at(fixture, "iaa", after, &late));
    rocks_recall_keep(fixture->recall, 1, SLICE("iaa"), SLICE("new"), &late);
    assert_string_equal(seen_at(fixture, "iaa", after, &late), "new");
    assert_null(seen_at(fixture, "iaa", before, &early));
}

#define CLAIM(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(what_was_read_is_found_under_its_own_key_and_partition_alone),
        CLAIM(keys_that_begin_otherwise_are_not_kept),
        CLAIM(a_write_replaces_what_is_kept_and_adds_nothing),
        CLAIM(snapshots_see_what_was_last_before_them_or_ask_the_store),
        CLAIM(a_write_that_failed_leaves_nothing),
        CLAIM(while_a_write_is_under_way_its_key_is_neither_found_nor_kept),
        CLAIM(what_was_read_before_a_write_is_not_kept_after_it),
        CLAIM(of_two_writes_at_once_neither_is_kept),
        CLAIM(a_change_of_a_partition_forgets_it_and_no_other),
        CLAIM(memory_is_bounded_and_a_scan_does_not_push_out_what_is_read_often),
        CLAIM(a_partition_that_wants_all_leaves_others_their_share),
        CLAIM(values_that_are_too_long_are_not_kept),
        CLAIM(with_no_memory_nothing_is_kept),
        CLAIM(what_is_kept_of_a_group_goes_with_a_write_of_any_of_its_keys),
        CLAIM(a_snapshot_finds_of_a_group_only_what_it_shows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
