/* Edits of a directory, step by step and cut off at every write; and the other migrations of
 * containers that are not hashed. */
#include "migrator_fixture.h"

#include "document/order.h"
#include "item/feed_read.h"
#include "partition/lookup.h"

/* Keys k0, k1, ... in shards 0 to 7, two physical partitions. */
#define SCHEMA                                                                                     \
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2},"                          \
    "\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/email\"]}]},\"defaultTtl\":-1,"
#define LOOKUP                                                                                     \
    SCHEMA "\"orrery\":{\"strategy\":{\"kind\":\"lookup\",\"shards\":8,\"default\":1,"             \
           "\"directory\":[{\"key\":[\"k0\"],\"shard\":0},{\"key\":[\"k2\"],\"shard\":6}]}}}"
#define RANGE SCHEMA "\"orrery\":{\"strategy\":{\"kind\":\"range\",\"bounds\":[\"k1\",\"k2\"]}}}"

static void edits_make(struct fixture *fixture, const struct definition_directory_change *edits,
                       size_t count)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct error err;

    assert_ok(migrator_reroute(fixture->migrator, container, edits, count, &err), &err);
}

static void edit(struct fixture *fixture, const char *key, uint32_t shard)
{
    edits_make(fixture,
               &(struct definition_directory_change){.value = document_string(slice_of_text(key)),
                                                     .shard = shard},
               1);
}

static uint32_t shard_of(struct fixture *fixture, const char *key)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct document_value value = document_string(slice_of_text(key));

    return partition_lookup_shard(definition_fields(container_definition(container))->key.lookup,
                                  partition_component(&value, fixture->arena));
}

/* Its etag as text, and the LSN it has in the feed. */
static struct item item_read(struct fixture *fixture, int i)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct item_space space = container_space(container, &clock_system, fixture->gates);
    struct slice json = arena_printf(fixture->arena, "[\"k%d\"]", i / 10);
    struct item_operation read = {
        .space = &space,
        .arena = fixture->arena,
        .verb = ITEM_READ,
        .id = document_string(arena_printf(fixture->arena, "%d", i)),
    };
    struct error err;

    assert_ok(partition_key_parse(&space.definition->key, json, PARTITION_KEY_WHOLE, fixture->arena,
                                  &read.key, &err),
              &err);
    assert_ok(item_operation_run(&read, &err), &err);
    return read.result.item;
}

static void a_key_is_carried_to_its_new_shard(void **state)
{
    struct fixture *fixture = *state;
    char before[ITEM_ETAG_LEN], after[ITEM_ETAG_LEN];
    struct item was, is;

    container_make(fixture, LOOKUP, 20000);
    assert_int_equal(span_count(fixture), 2);
    items_put(fixture, 0, 40, "a");
    was = item_read(fixture, 5);
    edit(fixture, "k0", 7);
    assert_int_equal(shard_of(fixture, "k0"), 0);
    settle(fixture);
    assert_int_equal(shard_of(fixture, "k0"), 7);
    verify(fixture, 40);
    is = item_read(fixture, 5);
    item_etag(&was.header, before);
    item_etag(&is.header, after);
    assert_memory_equal(before, after, ITEM_ETAG_LEN);
    assert_int_equal(was.header.number, is.header.number);
    assert_int_equal(fixture->published, 1);
    assert_int_equal(fixture->dropped, 2);
    items_put(fixture, 0, 10, "b");
    item_expect(fixture, 5, "b");
    item_expect(fixture, 25, "a");
    verify(fixture, 40);
}

/* The plan of an edit; sources and targets are counted, none where nothing would move. */
static void tried(struct fixture *fixture, const char *key, uint32_t shard, size_t sources,
                  size_t targets)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    CLEANUP(definition_unref) struct definition *definition = NULL;
    CLEANUP(migration_unref) struct migration *plan = NULL;
    struct definition_directory_change change = {.value = document_string(slice_of_text(key)),
                                                 .shard = shard};
    size_t count = 0;
    struct error err;

    assert_ok(
        migrator_reroute_plan(fixture->migrator, container, &change, 1, &definition, &plan, &err),
        &err);
    assert_int_equal(partition_lookup_shard(definition_fields(definition)->key.lookup,
                                            partition_component(&change.value, fixture->arena)),
                     shard);
    assert_true(!plan == (sources == 0));
    if (plan) {
        assert_int_equal(migration_kind(plan), MIGRATION_REROUTE);
        (void)migration_sources(plan, &count);
        assert_int_equal(count, sources);
        (void)migration_targets(plan, &count);
        assert_int_equal(count, targets);
    }
    assert_false(is_moving(fixture));
}

static void an_edit_is_tried_out_and_nothing_begins(void **state)
{
    struct fixture *fixture = *state;
    const struct definition_directory_change edits[] = {
        {.value = document_string(SLICE("k9")), .shard = 3},
    };
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(definition_unref) struct definition *definition = NULL;
    CLEANUP(migration_unref) struct migration *plan = NULL;
    struct error err;

    container_make(fixture, LOOKUP, 20000);
    items_put(fixture, 0, 40, "a");
    tried(fixture, "k0", 7, 2, 2);
    tried(fixture, "k0", 1, 1, 1);
    tried(fixture, "unused", 7, 1, 0);
    tried(fixture, "k1", 1, 0, 0); /* its line would say what the default says */
    assert_int_equal(shard_of(fixture, "k0"), 0);
    assert_int_equal(fixture->published, 0);

    /* what would be refused is refused: keys are being placed elsewhere */
    edit(fixture, "k0", 7);
    container = opened(fixture);
    assert_false(
        migrator_reroute_plan(fixture->migrator, container, edits, 1, &definition, &plan, &err));
    assert_int_equal(err.code, ERROR_BUSY);
    container_unref(TAKE(container)); /* who holds the map holds up its end */
    settle(fixture);
    verify(fixture, 40);
}

static void many_keys_are_carried_at_once_and_lines_removed(void **state)
{
    struct fixture *fixture = *state;
    const struct definition_directory_change edits[] = {
        {.value = document_string(SLICE("k0")), .shard = 5},
        {.value = document_string(SLICE("k1")), .shard = 6},
        {.value = document_string(SLICE("k2")), .removes = true},
        {.value = document_string(SLICE("k9")), .shard = 3},
    };

    container_make(fixture, LOOKUP, 40000);
    assert_int_equal(span_count(fixture), 4);
    items_put(fixture, 0, 40, "a");
    edits_make(fixture, edits, ARRAY_LEN(edits));
    settle(fixture);
    verify(fixture, 40);
    assert_int_equal(shard_of(fixture, "k1"), 6);
    assert_int_equal(shard_of(fixture, "k2"), 1);
    for (int i = 0; i < 40; i++)
        item_expect(fixture, i, "a");
}

static void writes_of_the_key_on_its_way_arrive_too(void **state)
{
    struct fixture *fixture = *state;
    struct error err;
    bool busy;

    container_make(fixture, LOOKUP, 20000);
    items_put(fixture, 0, 60, "a");
    edit(fixture, "k0", 7);
    for (int i = 0; is_moving(fixture) && fixture->published == 0; i++) {
        items_put(fixture, i % 12, i % 12 + 1, "b");
        if (i < 8)
            item_delete(fixture, i);
        if (i < 10)
            items_put(fixture, 60 + i, 61 + i, "c");
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    }
    settle(fixture);
    items_put(fixture, 0, 12, "d");
    verify(fixture, 70);
}

/* The usual edit: nobody has used the key yet. */
static void a_key_nobody_used_is_placed_without_copying(void **state)
{
    struct fixture *fixture = *state;
    uint32_t first;

    container_make(fixture, LOOKUP, 20000);
    items_put(fixture, 0, 10, "a");
    first = span_id(fixture, 0);
    edit(fixture, "new", 7);
    settle(fixture);
    assert_int_equal(shard_of(fixture, "new"), 7);
    assert_int_equal(span_id(fixture, 0), first);
    assert_int_equal(fixture->published, 1);
    assert_int_equal(fixture->dropped, 0);
    assert_int_equal(migrator_statistics(fixture->migrator).bytes, 0);
    items_put(fixture, 0, 30, "b");
    verify(fixture, 30);
}

static void a_line_that_says_what_the_rule_says_moves_nothing(void **state)
{
    struct fixture *fixture = *state;

    container_make(fixture, LOOKUP, 20000);
    items_put(fixture, 10, 20, "a");
    edit(fixture, "k1", 1);
    assert_false(is_moving(fixture));
    assert_int_equal(shard_of(fixture, "k1"), 1);
    verify(fixture, 10);
}

/* Somebody uses the key between the look and the fence. */
static void a_key_that_comes_to_be_used_is_carried_after_all(void **state)
{
    struct fixture *fixture = *state;

    container_make(fixture, LOOKUP, 20000);
    edit(fixture, "k3", 7);
    items_put(fixture, 30, 40, "a");
    settle(fixture);
    assert_int_equal(shard_of(fixture, "k3"), 7);
    item_expect(fixture, 35, "a");
    verify(fixture, 10);
    items_put(fixture, 30, 45, "b");
    verify(fixture, 15);
}

static void only_what_can_be_edited_is(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    const struct definition_directory_change line = {.value = document_string(SLICE("k0")),
                                                     .shard = 7};
    struct definition_directory_change beyond = line;
    struct error err;

    fixture->limits.directory_lines_max = 3;
    restart(fixture);
    container_make(fixture, LOOKUP, 20000);
    items_put(fixture, 0, 10, "a");
    container = opened(fixture);
    beyond.shard = 8;
    assert_fails(migrator_reroute(fixture->migrator, container, &beyond, 1, &err), &err,
                 ERROR_BAD_REQUEST);
    assert_fails(migrator_reroute(fixture->migrator, container,
                                  (struct definition_directory_change[]){
                                      {.value = document_double(1)}, {.value = document_double(2)}},
                                  2, &err),
                 &err, ERROR_LIMIT_REACHED);
    edit(fixture, "k0", 7);
    assert_fails(migrator_reroute(fixture->migrator, container, &line, 1, &err), &err, ERROR_BUSY);
    container_unref(TAKE(container));
    settle(fixture);
    verify(fixture, 10);
}

/* Two edits at a time: the second was made from a directory without the first. */
static void an_edit_made_from_an_old_directory_is_refused(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *old = NULL;
    CLEANUP(container_unref) struct container *now = NULL;
    CLEANUP(definition_unref) struct definition *definition = NULL;
    const struct definition_directory_change line = {.value = document_string(SLICE("k1")),
                                                     .shard = 7};
    uint32_t source;
    struct error err;

    container_make(fixture, LOOKUP, 20000);
    items_put(fixture, 0, 20, "a");
    old = opened(fixture);
    assert_ok(definition_directory_edit(container_definition(old), &line, 1, &definition, &err),
              &err);
    edit(fixture, "k3", 1); /* as the rule has it: done at once */
    source = span_id(fixture, 0);
    assert_fails(catalogue_migration_begin(fixture->catalogue, old,
                                           &(struct migration_request){.kind = MIGRATION_REROUTE,
                                                                       .sources = &source,
                                                                       .source_count = 1,
                                                                       .target_count = 1,
                                                                       .definition = definition},
                                           &now, &err),
                 &err, ERROR_BUSY);
    assert_fails(catalogue_directory_note(fixture->catalogue, old, definition, &err), &err,
                 ERROR_BUSY);
    assert_int_equal(shard_of(fixture, "k1"), 1);
}

static void a_cancelled_edit_leaves_the_directory_as_it_was(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    struct error err;
    bool busy;

    container_make(fixture, LOOKUP, 20000);
    items_put(fixture, 0, 30, "a");
    edit(fixture, "k0", 7);
    assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    container = opened(fixture);
    assert_ok(migrator_cancel(fixture->migrator, container, &err), &err);
    container_unref(TAKE(container));
    settle(fixture);
    assert_int_equal(shard_of(fixture, "k0"), 0);
    verify(fixture, 30);
}

/* --- The feed -------------------------------------------------------------------------------- */

/* A reader with a position in every partition, who goes on after the edit: bit i: item i was
 * seen. */
static uint64_t feed_follow(struct fixture *fixture, uint64_t *positions)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct item_space space = container_space(container, &clock_system, fixture->gates);
    uint64_t seen = 0;
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);

    for (size_t i = 0; i < count; i++) {
        struct item_scope scope = item_space_span_scope(&space, &spans[i]);
        struct feed_page page;
        struct error err;

        do {
            assert_ok(feed_read(&scope,
                                &(struct feed_request){.mode = FEED_LATEST,
                                                       .after_lsn = positions[i],
                                                       .changes_max = 3},
                                fixture->arena, &page, &err),
                      &err);
            for (size_t c = 0; c < page.count; c++) {
                struct document_value x;

                assert_true(document_find(page.changes[c].current.document, SLICE("x"), &x));
                seen |= (uint64_t)1 << x.int32;
            }
            positions[i] = page.lsn;
        } while (page.more);
    }
    return seen;
}

static void no_reader_of_the_feed_misses_a_key_that_moves(void **state)
{
    struct fixture *fixture = *state;
    uint64_t positions[2] = {0};

    container_make(fixture, LOOKUP, 20000);
    items_put(fixture, 20, 30, "a"); /* k2, in the second partition, is far ahead */
    for (int i = 0; i < 20; i++)
        items_put(fixture, 20, 30, "b");
    items_put(fixture, 0, 5, "a");
    assert_int_equal(feed_follow(fixture, positions), 0x3FF0001F);
    items_put(fixture, 5, 10, "a"); /* not read before the key goes there */
    edit(fixture, "k0", 7);
    settle(fixture);
    assert_int_equal(feed_follow(fixture, positions) & 0x3E0, 0x3E0);
    assert_int_equal(feed_follow(fixture, positions), 0);
    items_put(fixture, 3, 4, "c");
    assert_int_equal(feed_follow(fixture, positions), 8);
    edit(fixture, "k0", 0);
    settle(fixture);
    (void)feed_follow(fixture, positions);
    items_put(fixture, 4, 5, "c");
    assert_int_equal(feed_follow(fixture, positions), 16);
    verify(fixture, 20);
}

/* --- Other migrations ------------------------------------------------------------------------ */

static void every_migration(struct fixture *fixture)
{
    struct partition_key key = key_named(fixture, "[\"k1\"]");
    CLEANUP(container_unref) struct container *container = NULL;
    struct error err;

    items_put(fixture, 0, 60, "a");
    split(fixture, 0, 2);
    settle(fixture);
    verify(fixture, 60);
    merge(fixture, 0, 2);
    settle(fixture);
    verify(fixture, 60);
    move(fixture, 0);
    settle(fixture);
    container = opened(fixture);
    assert_ok(migrator_isolate(fixture->migrator, container, &key, 0, &err), &err);
    container_unref(TAKE(container));
    settle(fixture);
    items_put(fixture, 0, 60, "b");
    verify(fixture, 60);
}

static void containers_of_ranges_split_merge_move_and_isolate(void **state)
{
    struct fixture *fixture = *state;

    container_make(fixture, SCHEMA "\"orrery\":{\"strategy\":\"range\"}}", 400);
    assert_int_equal(span_count(fixture), 1);
    every_migration(fixture);
}

static void containers_with_a_directory_split_merge_move_and_isolate(void **state)
{
    struct fixture *fixture = *state;

    container_make(fixture, LOOKUP, 400);
    every_migration(fixture);
}

static void a_range_begins_with_the_bounds_it_was_given(void **state)
{
    struct fixture *fixture = *state;

    container_make(fixture, RANGE, 400);
    assert_int_equal(span_count(fixture), 3);
    items_put(fixture, 0, 30, "a");
    verify(fixture, 30);
}

static void throughput_splits_a_range_where_its_data_is(void **state)
{
    struct fixture *fixture = *state;
    struct error err;
    bool busy;

    container_make(fixture, SCHEMA "\"orrery\":{\"strategy\":\"range\"}}", 20000);
    assert_int_equal(span_count(fixture), 1);
    assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    assert_false(is_moving(fixture));
    items_put(fixture, 0, 60, "a");
    fixture->now_ms += 100000; /* it was found indivisible for a while */
    assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    assert_true(is_moving(fixture));
    settle(fixture);
    assert_int_equal(span_count(fixture), 2);
    verify(fixture, 60);
}

/* --- Cut off --------------------------------------------------------------------------------- */

static void begin_edit(struct fixture *fixture)
{
    edit(fixture, "k1", shard_of(fixture, "k1") == 1 ? 7 : 1);
}

static void an_edit_cut_off_at_any_write_is_taken_up_again(void **state)
{
    container_make(*state, LOOKUP, 20000);
    cut_off_everywhere(*state, begin_edit);
}

static void begin_placing(struct fixture *fixture)
{
    edit(fixture, "nobody", shard_of(fixture, "nobody") == 1 ? 7 : 1);
}

static void placing_cut_off_at_any_write_is_taken_up_again(void **state)
{
    container_make(*state, LOOKUP, 20000);
    cut_off_everywhere(*state, begin_placing);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_key_is_carried_to_its_new_shard),
        STORY(an_edit_is_tried_out_and_nothing_begins),
        STORY(many_keys_are_carried_at_once_and_lines_removed),
        STORY(writes_of_the_key_on_its_way_arrive_too),
        STORY(a_key_nobody_used_is_placed_without_copying),
        STORY(a_line_that_says_what_the_rule_says_moves_nothing),
        STORY(a_key_that_comes_to_be_used_is_carried_after_all),
        STORY(only_what_can_be_edited_is),
        STORY(an_edit_made_from_an_old_directory_is_refused),
        STORY(a_cancelled_edit_leaves_the_directory_as_it_was),
        STORY(no_reader_of_the_feed_misses_a_key_that_moves),
        STORY(containers_of_ranges_split_merge_move_and_isolate),
        STORY(containers_with_a_directory_split_merge_move_and_isolate),
        STORY(a_range_begins_with_the_bounds_it_was_given),
        STORY(throughput_splits_a_range_where_its_data_is),
        STORY(an_edit_cut_off_at_any_write_is_taken_up_again),
        STORY(placing_cut_off_at_any_write_is_taken_up_again),
    };

    return cmocka_run_group_tests_name("migration/migrator_directory", tests, NULL, NULL);
}
