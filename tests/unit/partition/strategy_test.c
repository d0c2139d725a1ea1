#include "partition/strategy.h"

#include "base/random.h"
#include "fixture.h"

static struct slice route(struct arena *arena, const struct partition_definition *definition,
                          const struct partition_key *key)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    partition_route(definition, key, &buf);
    return arena_copy(arena, buf_slice(&buf));
}

static bool range_holds(struct partition_range range, struct slice bytes)
{
    return slice_compare(range.min, bytes) <= 0 && slice_compare(bytes, range.max) < 0;
}

static void hashing_routes_by_the_effective_partition_key(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition v1 = definition_of(arena, V1), v2 = definition_of(arena, V2);
    struct partition_key key = key_of(arena, &v2, "[\"a\"]");

    assert_slice_equal(route(arena, &v1, &key), SLICE("\x05\xC1\xD7\x85\x93\x65\x2C\x08\x62\x00"));
    assert_slice_equal(route(arena, &v2, &key),
                       SLICE("\x3A\x53\x81\xE1\x11\x4E\xB8\xD3\xFC\xC9\x07\x95\x04\x5B\x49\xB7"));
}

/* The libraries hash them apart; they are one logical partition nevertheless. */
static void zero_and_minus_zero_are_in_one_place(void **state UNUSED)
{
    static const char *const definitions[] = {V1, V2};
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(definitions); i++) {
        struct partition_definition definition = definition_of(arena, definitions[i]);
        struct partition_key zero = key_of(arena, &definition, "[0]"),
                             minus = key_of(arena, &definition, "[-0.0]");

        assert_slice_equal(route(arena, &definition, &zero), route(arena, &definition, &minus));
    }
}

static void routing_appends_and_leaves_alone_what_is_there(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition definition = definition_of(arena, MULTI);
    struct partition_key key = key_of(arena, &definition, "[\"a\",null,3]");
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    BUF_APPEND(&buf, "d");
    partition_route(&definition, &key, &buf);
    assert_int_equal(buf.data[0], 'd');
    assert_slice_equal(slice_skip(buf_slice(&buf), 1), route(arena, &definition, &key));
}

/* Few values, so that equal keys and keys with equal beginnings are common. */
static struct partition_key key_random(struct random *random, struct arena *arena,
                                       const struct partition_definition *definition)
{
    struct document_value values[PARTITION_PATHS_MAX];

    for (size_t i = 0; i < definition->path_count; i++)
        values[i] = value_random(random, arena, 0);
    return partition_key_of(definition, values, definition->path_count);
}

/* The rules of strategy.h, for any two keys of any types. */
static void a_strategy_keeps_its_rules(void **state UNUSED)
{
    static const char *const definitions[] = {V1, V2, MULTI, SYSTEM};
    CLEANUP(arena_free) struct arena *arena = arena_new(), *scratch = arena_new();
    struct random random;

    random_seed(&random, 3);
    for (int round = 0; round < 40000; round++) {
        struct partition_definition definition =
            definition_of(arena, definitions[random_below(&random, ARRAY_LEN(definitions))]);
        struct partition_key a = key_random(&random, scratch, &definition),
                             b = key_random(&random, scratch, &definition);
        struct slice at_a = route(scratch, &definition, &a), at_b = route(scratch, &definition, &b);
        size_t levels = random_below(&random, definition.path_count + 1);
        struct partition_key prefix = partition_key_of(&definition, a.components, levels);
        struct partition_range below = partition_route_range(&definition, &prefix, scratch),
                               itself = partition_route_range(&definition, &a, scratch);

        if (partition_key_equal(&a, &b))
            assert_slice_equal(at_a, at_b);
        if (!slice_equal(at_a, at_b))
            assert_false(slice_starts_with(at_a, at_b));
        assert_true(at_a.len > 0 && at_a.data[0] < 0xFF);
        assert_true(range_holds(below, at_a));
        if (partition_key_starts_with(&b, &prefix))
            assert_true(range_holds(below, at_b));
        assert_true(range_holds(itself, at_a));
        assert_int_equal(range_holds(itself, at_b), slice_equal(at_a, at_b));
        arena_reset(scratch);
        arena_reset(arena);
    }
}

/* What is stored under a key: the range of the key holds it, and the routing key is found again
 * at its front. */
static void stored_keys_stay_in_the_range_of_their_key(void **state UNUSED)
{
    static const char *const definitions[] = {V1, V2, MULTI};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf buf;
    struct random random;

    buf_init(&buf, BUF_DEFAULT_MAX);
    random_seed(&random, 4);
    for (int round = 0; round < 3000; round++) {
        struct partition_definition definition =
            definition_of(arena, definitions[random_below(&random, ARRAY_LEN(definitions))]);
        struct partition_key key = key_random(&random, arena, &definition), again;
        struct slice rest;
        struct error err;

        buf_clear(&buf);
        partition_route(&definition, &key, &buf);
        partition_key_append(&key, &buf);
        assert_true(range_holds(partition_route_range(&definition, &key, arena), buf_slice(&buf)));
        rest = buf_slice(&buf);
        assert_ok(partition_route_skip(&definition, &rest, &err), &err);
        assert_ok(partition_key_read(&definition, &rest, arena, &again, &err), &err);
        assert_true(partition_key_equal(&key, &again));
        assert_int_equal(rest.len, 0);
        arena_reset(arena);
    }
}

static void the_range_of_a_prefix_is_that_of_the_service(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition definition = definition_of(arena, MULTI);
    struct partition_key redmond = key_of(arena, &definition, "[\"redmond\"]"),
                         nothing = key_of(arena, &definition, "[]");
    struct partition_range range = partition_route_range(&definition, &redmond, arena);

    assert_slice_equal(range.min,
                       SLICE("\x22\xE3\x42\xF3\x8A\x48\x6A\x08\x84\x63\xDF\xF7\x83\x8A\x59\x63"));
    assert_slice_equal(
        range.max, SLICE("\x22\xE3\x42\xF3\x8A\x48\x6A\x08\x84\x63\xDF\xF7\x83\x8A\x59\x63\xFF"));
    range = partition_route_range(&definition, &nothing, arena);
    assert_slice_equal(range.min, PARTITION_ROUTING_MIN);
    assert_slice_equal(range.max, PARTITION_ROUTING_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashing_routes_by_the_effective_partition_key),
        cmocka_unit_test(zero_and_minus_zero_are_in_one_place),
        cmocka_unit_test(routing_appends_and_leaves_alone_what_is_there),
        cmocka_unit_test(a_strategy_keeps_its_rules),
        cmocka_unit_test(stored_keys_stay_in_the_range_of_their_key),
        cmocka_unit_test(the_range_of_a_prefix_is_that_of_the_service),
    };
    return cmocka_run_group_tests_name("partition/strategy", tests, NULL, NULL);
}
