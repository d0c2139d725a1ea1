/* Indexes besides the policy: built, dropped and given up while the container is written to. */
#include "catalogue/indexes.h"

#include "item/cursor.h"
#include "item/expiry.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/indexed.h"
#include "support/verify.h"

#define BY_X                                                                                       \
    "{\"name\":\"x\",\"key\":[{\"path\":\"/x\",\"order\":\"descending\"},{\"path\":\"/y\"}]}"
#define ONE_X                                                                                      \
    "{\"name\":\"one\",\"key\":[{\"path\":\"/x\"}],\"sparse\":true,"                               \
    "\"unique\":\"logicalPartition\"}"

static int setup(void **state)
{
    struct indexed *indexed = MEMORY_NEW(struct indexed);

    indexed_init(indexed, NULL, 20000, 3);
    *state = indexed;
    return 0;
}

static int teardown(void **state)
{
    indexed_done(*state);
    memory_free(*state);
    return 0;
}

static void put(struct indexed *indexed, const char *pk, int id, int x)
{
    CLEANUP(container_unref) struct container *container = indexed_open(indexed);
    const char *json = arena_text(
        indexed->arena,
        arena_printf(indexed->arena, "{\"id\":\"%d\",\"pk\":\"%s\",\"x\":%d,\"y\":1}", id, pk, x));
    struct error err;

    assert_ok(indexed_put(indexed, container, json, &err), &err);
}

static void put_fails(struct indexed *indexed, const char *json, enum error_code code)
{
    CLEANUP(container_unref) struct container *container = indexed_open(indexed);
    struct error err;

    assert_false(indexed_put(indexed, container, json, &err));
    assert_int_equal(err.code, code);
}

static void items_make(struct indexed *indexed, int count)
{
    for (int i = 0; i < count; i++)
        put(indexed, i % 2 ? "a" : "b", i, i);
}

static size_t verified(struct indexed *indexed)
{
    CLEANUP(container_unref) struct container *container = indexed_open(indexed);

    return verify_container(container);
}

/* Stored keys of a family that go on with these bytes, over all partitions. */
static size_t stored(struct indexed *indexed, const char *from, size_t len)
{
    CLEANUP(container_unref) struct container *container = indexed_open(indexed);
    size_t span_count, count = 0;
    const struct partition_span *spans = partition_map_spans(container_map(container), &span_count);
    struct error err;

    for (size_t i = 0; i < span_count; i++) {
        CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
        struct slice min = slice_of(from, len);
        struct engine_range range = {.min = min, .max = cursor_prefix_end(indexed->arena, min)};
        struct engine_entry entry;

        assert_ok(engine_iterator_new(indexed->engine, NULL, spans[i].id, range, false,
                                      ENGINE_READ_ANY, &iterator, &err),
                  &err);
        for (;; count++) {
            assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
            if (entry.found != ENGINE_FOUND)
                break;
        }
    }
    return count;
}

#define NUMBERED "i\x02\x09"

static void assert_listed(struct indexed *indexed, const char *name, enum index_state expected)
{
    CLEANUP(container_unref) struct container *container = indexed_open(indexed);
    size_t count;
    struct catalogue_index *list =
        catalogue_indexes(container, indexed->caretaker, indexed->arena, &count);

    assert_int_equal(count, 1);
    assert_slice_equal(list[0].definition->name, slice_of_text(name));
    assert_int_equal(list[0].definition->state, expected);
    assert_int_equal(list[0].progress == 100, expected == INDEX_READY);
}

static void an_index_is_built_behind_what_is_written_meanwhile(void **state)
{
    struct indexed *indexed = *state;
    struct error err;

    items_make(indexed, 30);
    assert_ok(indexed_add(indexed, BY_X, &err), &err);
    assert_string_equal(indexed_state(indexed, "x"), "building");
    assert_int_equal(stored(indexed, NUMBERED, 3), 0);
    put(indexed, "a", 100, 7);
    assert_int_equal(stored(indexed, NUMBERED, 3), 1);
    put(indexed, "b", 0, 99); /* one that was there */
    assert_int_equal(stored(indexed, NUMBERED, 3), 2);
    assert_listed(indexed, "x", INDEX_BUILDING);
    indexed_settle(indexed);
    assert_listed(indexed, "x", INDEX_READY);
    assert_string_equal(indexed_state(indexed, "x"), "ready");
    assert_int_equal(stored(indexed, NUMBERED, 3), 31);
    assert_int_equal(verified(indexed), 31);
}

static void an_index_of_an_empty_container_is_ready_when_it_is_made_with_it(void **state UNUSED)
{
    struct indexed indexed;

    indexed_init(&indexed, "{\"indexes\":[" BY_X "," ONE_X "]}", 400, 3);
    assert_string_equal(indexed_state(&indexed, "x"), "ready");
    assert_string_equal(indexed_state(&indexed, "one"), "ready");
    put(&indexed, "a", 1, 5);
    put(&indexed, "b", 2, 5); /* another logical partition */
    put_fails(&indexed, "{\"id\":\"3\",\"pk\":\"a\",\"x\":5}", ERROR_UNIQUE_KEY);
    put(&indexed, "a", 1, 6);
    put(&indexed, "a", 3, 5); /* it is free again */
    indexed_restart(&indexed);
    put_fails(&indexed, "{\"id\":\"4\",\"pk\":\"a\",\"x\":6}", ERROR_UNIQUE_KEY);
    assert_int_equal(verified(&indexed), 3);
    indexed_done(&indexed);
}

static void a_dropped_index_leaves_nothing(void **state)
{
    struct indexed *indexed = *state;
    struct error err;

    assert_ok(indexed_add(indexed, BY_X, &err), &err);
    assert_ok(indexed_add(indexed, ONE_X, &err), &err);
    indexed_settle(indexed); /* of an empty container */
    items_make(indexed, 20);
    assert_int_equal(stored(indexed, NUMBERED, 3), 40);
    assert_int_equal(stored(indexed, "u\x40", 2), 20);
    assert_ok(indexed_drop(indexed, "one", &err), &err);
    assert_string_equal(indexed_state(indexed, "one"), "none");
    put(indexed, "a", 1000, 1); /* nobody minds */
    assert_ok(indexed_drop(indexed, "x", &err), &err);
    indexed_settle(indexed);
    assert_int_equal(stored(indexed, NUMBERED, 3), 0);
    assert_int_equal(stored(indexed, "u", 1), 0);
    assert_int_equal(verified(indexed), 21);
    assert_false(indexed_drop(indexed, "x", &err));
    assert_int_equal(err.code, ERROR_NOT_FOUND);
}

static void conflicts_of_a_unique_index_are_listed_and_it_is_given_up(void **state)
{
    struct indexed *indexed = *state;
    struct error err;

    items_make(indexed, 20);
    put(indexed, "a", 50, 7); /* as item 7 */
    assert_ok(indexed_add(indexed, ONE_X, &err), &err);
    put(indexed, "b", 51, 4); /* as item 4: refused by nobody */
    indexed_settle(indexed);
    assert_string_equal(indexed_state(indexed, "one"), "failed");
    assert_non_null(strstr(indexed_shown(indexed, "one"), "have the same values"));
    assert_non_null(strstr(indexed_shown(indexed, "one"), "\"values\":[7]"));
    assert_non_null(strstr(indexed_shown(indexed, "one"), "\"50\""));
    assert_int_equal(stored(indexed, NUMBERED, 3), 0);
    assert_int_equal(stored(indexed, "u", 1), 0);
    put(indexed, "a", 52, 7);
    assert_int_equal(verified(indexed), 23);
}

static void a_unique_index_is_held_once_it_is_ready(void **state)
{
    struct indexed *indexed = *state;
    struct error err;

    items_make(indexed, 20);
    assert_ok(indexed_add(indexed, ONE_X, &err), &err);
    indexed_round(indexed);
    indexed_restart(indexed); /* in the middle */
    indexed_settle(indexed);
    assert_string_equal(indexed_state(indexed, "one"), "ready");
    assert_int_equal(stored(indexed, "u\x40", 2), 20);
    put_fails(indexed, "{\"id\":\"50\",\"pk\":\"a\",\"x\":7}", ERROR_UNIQUE_KEY);
    put(indexed, "b", 50, 7);
    assert_int_equal(verified(indexed), 21);
}

/* A writer that still holds the container as it was leaves no entry out. */
static void who_writes_by_an_older_definition_begins_again(void **state)
{
    struct indexed *indexed = *state;
    CLEANUP(container_unref) struct container *old = indexed_open(indexed);
    struct error err;

    items_make(indexed, 10);
    assert_ok(indexed_add(indexed, ONE_X, &err), &err);
    indexed_settle(indexed);
    assert_ok(indexed_put(indexed, old, "{\"id\":\"90\",\"pk\":\"a\",\"x\":90}", &err), &err);
    assert_int_equal(stored(indexed, "u\x40", 2), 11);
    assert_false(indexed_put(indexed, old, "{\"id\":\"91\",\"pk\":\"a\",\"x\":90}", &err));
    assert_int_equal(err.code, ERROR_UNIQUE_KEY);
    assert_int_equal(verified(indexed), 11);
}

static void an_item_that_cannot_be_in_an_index_ends_its_building(void **state)
{
    struct indexed *indexed = *state;
    struct error err;

    items_make(indexed, 5);
    {
        CLEANUP(container_unref) struct container *container = indexed_open(indexed);

        assert_ok(indexed_put(indexed, container,
                              "{\"id\":\"p\",\"pk\":\"a\",\"x\":[1,2],\"y\":[3,4]}", &err),
                  &err);
    }
    assert_ok(indexed_add(indexed,
                          "{\"name\":\"m\",\"multikey\":true,\"key\":[{\"path\":\"/x\"},"
                          "{\"path\":\"/y\"}]}",
                          &err),
              &err);
    indexed_settle(indexed);
    assert_string_equal(indexed_state(indexed, "m"), "failed");
    assert_non_null(strstr(indexed_shown(indexed, "m"), "parallel arrays"));
    assert_int_equal(stored(indexed, NUMBERED, 3), 0);
    assert_int_equal(verified(indexed), 6);
}

static void adding_the_same_again_does_nothing_and_another_of_its_name_is_refused(void **state)
{
    struct indexed *indexed = *state;
    struct error err;

    assert_ok(indexed_add(indexed, BY_X, &err), &err);
    indexed_settle(indexed);
    assert_ok(indexed_add(indexed, BY_X, &err), &err);
    assert_string_equal(indexed_state(indexed, "x"), "ready");
    assert_false(indexed_add(indexed, "{\"name\":\"x\",\"key\":[{\"path\":\"/z\"}]}", &err));
    assert_int_equal(err.code, ERROR_NAME_TAKEN);
    assert_false(indexed_add(
        indexed, "{\"name\":\"z\",\"collation\":\"de\",\"key\":[{\"path\":\"/z\"}]}", &err));
    assert_int_equal(err.code, ERROR_BAD_REQUEST);
    assert_non_null(strstr(err.message, "collation"));
}

/* Entries of an index that is gone may still be stored: the next one has another number. */
static void numbers_are_not_given_again_before_their_entries_are_gone(void **state)
{
    struct indexed *indexed = *state;
    struct error err;

    items_make(indexed, 20);
    assert_ok(indexed_add(indexed, ONE_X, &err), &err);
    indexed_settle(indexed);
    assert_ok(indexed_drop(indexed, "one", &err), &err);
    assert_ok(indexed_add(indexed,
                          "{\"name\":\"two\",\"key\":[{\"path\":\"/x\"}],"
                          "\"unique\":\"logicalPartition\"}",
                          &err),
              &err);
    indexed_settle(indexed);
    assert_string_equal(indexed_state(indexed, "two"), "ready");
    assert_int_equal(verified(indexed), 20);
}

static void items_expire_by_the_date_or_the_seconds_at_the_path_of_an_index(void **state)
{
    struct indexed *indexed = *state;
    int64_t now_s = indexed->wall_ms / 1000;
    struct error err;

    for (int i = 0; i < 10; i++)
        put(indexed, "a", i, (int)now_s + 10 * i);
    {
        CLEANUP(container_unref) struct container *container = indexed_open(indexed);

        assert_ok(
            indexed_put(indexed, container, "{\"id\":\"t\",\"pk\":\"a\",\"x\":\"soon\"}", &err),
            &err);
    }
    assert_ok(indexed_add(indexed,
                          "{\"name\":\"ttl\",\"key\":[{\"path\":\"/x\",\"order\":\"descending\"}],"
                          "\"expireAfterSeconds\":5}",
                          &err),
              &err);
    indexed_settle(indexed);
    assert_int_equal(verified(indexed), 11);
    indexed->wall_ms += 36 * 1000;
    indexed_round(indexed); /* 0, 10, 20 and 30 seconds, and 5 more */
    assert_int_equal(verified(indexed), 7);
    indexed->wall_ms += 1000 * 1000;
    indexed_round(indexed);
    assert_int_equal(verified(indexed), 1); /* a text is no time */
}

/* When the next item of any partition goes. */
static int64_t next_expiry_ms(struct indexed *indexed)
{
    CLEANUP(container_unref) struct container *container = indexed_open(indexed);
    struct item_space space = container_space(container, &indexed->clock, NULL);
    size_t count;
    const struct partition_span *spans = partition_map_spans(space.map, &count);
    int64_t first_ms = INT64_MAX, next_ms;
    struct error err;

    for (size_t i = 0; i < count; i++) {
        struct item_scope scope = item_space_span_scope(&space, &spans[i]);

        assert_ok(expiry_next(&scope, &next_ms, &err), &err);
        first_ms = MIN(first_ms, next_ms);
    }
    return first_ms;
}

static void it_is_known_when_the_next_item_expires_by_an_index(void **state)
{
    struct indexed *indexed = *state;
    int64_t now_s = indexed->wall_ms / 1000;
    struct error err;

    for (int i = 0; i < 10; i++)
        put(indexed, "a", i, (int)now_s + 10 * i);
    assert_true(next_expiry_ms(indexed) == INT64_MAX);
    assert_ok(indexed_add(indexed,
                          "{\"name\":\"ttl\",\"key\":[{\"path\":\"/x\"}],"
                          "\"expireAfterSeconds\":5}",
                          &err),
              &err);
    indexed_settle(indexed);
    assert_int_equal(next_expiry_ms(indexed), (now_s + 5) * 1000);
    indexed->wall_ms += 36 * 1000;
    indexed_round(indexed); /* 0, 10, 20 and 30 seconds, and 5 more */
    assert_int_equal(next_expiry_ms(indexed), (now_s + 45) * 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_index_is_built_behind_what_is_written_meanwhile, setup,
                                        teardown),
        cmocka_unit_test(an_index_of_an_empty_container_is_ready_when_it_is_made_with_it),
        cmocka_unit_test_setup_teardown(a_dropped_index_leaves_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(conflicts_of_a_unique_index_are_listed_and_it_is_given_up,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_unique_index_is_held_once_it_is_ready, setup, teardown),
        cmocka_unit_test_setup_teardown(who_writes_by_an_older_definition_begins_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_item_that_cannot_be_in_an_index_ends_its_building, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            adding_the_same_again_does_nothing_and_another_of_its_name_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(numbers_are_not_given_again_before_their_entries_are_gone,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            items_expire_by_the_date_or_the_seconds_at_the_path_of_an_index, setup, teardown),
        cmocka_unit_test_setup_teardown(it_is_known_when_the_next_item_expires_by_an_index, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
