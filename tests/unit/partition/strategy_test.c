#include "partition/strategy.h"

#include "base/random.h"
#include "document/order.h"
#include "fixture.h"
#include "partition/lookup.h"

static struct slice route(struct arena *arena, const struct partition_definition *definition,
                          const struct partition_key *key)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    partition_route(definition, key, &buf);
    return arena_copy(arena, buf_slice(&buf));
}

/* The definition with one of the strategies, the directory with a few of the values that random
 * keys have. */
static void strategy_set(struct arena *arena, enum partition_strategy_kind strategy,
                         struct partition_definition *definition)
{
    static const char *const values[] = {"[null]", "[true]", "[\"\"]", "[\"a\"]", "[0]", "[1]"};
    struct partition_lookup *lookup = ARENA_NEW(arena, struct partition_lookup);
    struct partition_line *lines = ARENA_ARRAY(arena, struct partition_line, ARRAY_LEN(values));
    struct error err;

    definition->strategy = strategy;
    if (strategy != PARTITION_STRATEGY_LOOKUP)
        return;
    *lookup = (struct partition_lookup){.shards = 300, .hashes = true};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        struct partition_definition v2 = definition_of(arena, V2);
        struct partition_key key = key_of(arena, &v2, values[i]);

        lines[lookup->line_count++] = (struct partition_line){
            .component = partition_component(&key.components[0], arena), .shard = (uint32_t)i * 50};
    }
    assert_ok(partition_lookup_settle(lookup, lines, &err), &err);
    definition->lookup = lookup;
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

static struct partition_definition definition_any(struct random *random, struct arena *arena,
                                                  const char *const *texts, size_t count)
{
    struct partition_definition definition =
        definition_of(arena, texts[random_below(random, (uint32_t)count)]);

    strategy_set(arena, (enum partition_strategy_kind)random_below(random, 3), &definition);
    return definition;
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
            definition_any(&random, arena, definitions, ARRAY_LEN(definitions));
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
            definition_any(&random, arena, definitions, ARRAY_LEN(definitions));
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

/* --- Range ----------------------------------------------------------------------------------- */

/* Text around the cut, of characters of every length, so that many agree for long. */
static struct document_value text_random(struct random *random, struct arena *arena)
{
    static const char *const characters[] = {
        "a", "b", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xEF\xBF\xBD", "\x01"};
    size_t count = random_below(random, 4) ? random_below(random, 6) : random_below(random, 200);
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < count; i++) {
        bool common = count > 6 && i < count - 1 && random_below(random, 50);

        buf_append_slice(&buf, slice_of_text(characters[common ? 0 : random_below(random, 7)]));
    }
    return document_string(arena_copy(arena, buf_slice(&buf)));
}

static struct document_value ordered_random(struct random *random, struct arena *arena)
{
    switch (random_below(random, 4)) {
    case 0:
        return text_random(random, arena);
    case 1:
        return document_double(((double)random_below(random, 2001) - 1000) / 8);
    case 2:
        return document_double(random_below(random, 2) ? -0.0 : 0.0);
    default:
        return value_random_json(random, arena, 0);
    }
}

enum { CUT = 128 }; /* strategy_private.h */

static bool is_long(const struct document_value *value)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    document_key_append(DOCUMENT_ORDER_SQL, value, &buf);
    return buf.len > CUT;
}

static void range_keeps_the_order_of_values(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new(), *scratch = arena_new();
    struct partition_definition definition = definition_of(arena, V2);
    struct random random;
    int longs = 0;

    strategy_set(arena, PARTITION_STRATEGY_RANGE, &definition);
    random_seed(&random, 5);
    for (int round = 0; round < 40000; round++) {
        struct document_value a = ordered_random(&random, scratch),
                              b = ordered_random(&random, scratch);
        struct partition_key key_a = partition_key_of(&definition, &a, 1),
                             key_b = partition_key_of(&definition, &b, 1);
        struct slice at_a = route(scratch, &definition, &key_a),
                     at_b = route(scratch, &definition, &key_b);
        int order =
            document_compare(DOCUMENT_ORDER_SQL, &key_a.components[0], &key_b.components[0]);
        bool agree = at_a.len > CUT && at_b.len > CUT && !memcmp(at_a.data, at_b.data, CUT);

        assert_true(at_a.len <= CUT + 16);
        longs += is_long(&key_a.components[0]);
        if (order == 0)
            assert_slice_equal(at_a, at_b);
        else if (!agree) /* as far as the cut reaches */
            assert_int_equal(order < 0, slice_compare(at_a, at_b) < 0);
        else
            assert_false(slice_equal(at_a, at_b));
        arena_reset(scratch);
    }
    assert_true(longs > 500);
}

/* What lies between two values lies in the range between them, whatever else does. */
static void what_lies_between_two_values_is_in_the_range_between_them(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new(), *scratch = arena_new();
    struct partition_definition definition = definition_of(arena, MULTI);
    struct random random;
    int outside = 0;

    strategy_set(arena, PARTITION_STRATEGY_RANGE, &definition);
    assert_true(partition_route_is_ordered(&definition));
    random_seed(&random, 6);
    for (int round = 0; round < 20000; round++) {
        struct document_value values[PARTITION_PATHS_MAX], low, high;
        size_t at = random_below(&random, 3);
        struct partition_key key, prefix;
        struct partition_range range;
        CLEANUP(buf_done) struct buf min, max;
        bool within;

        for (size_t i = 0; i < ARRAY_LEN(values); i++)
            values[i] = ordered_random(&random, scratch);
        low = ordered_random(&random, scratch);
        high = ordered_random(&random, scratch);
        key = partition_key_of(&definition, values, 3);
        prefix = partition_key_of(&definition, values, at);
        buf_init(&min, BUF_DEFAULT_MAX);
        buf_init(&max, BUF_DEFAULT_MAX);
        document_key_append(DOCUMENT_ORDER_SQL, &low, &min);
        document_key_append(DOCUMENT_ORDER_SQL, &high, &max);
        range = partition_route_between(&definition, &prefix, buf_slice(&min), buf_slice(&max),
                                        scratch);
        within = document_compare(DOCUMENT_ORDER_SQL, &low, &key.components[at]) <= 0 &&
                 document_compare(DOCUMENT_ORDER_SQL, &key.components[at], &high) < 0;
        if (within)
            assert_true(range_holds(range, route(scratch, &definition, &key)));
        outside += !within && !range_holds(range, route(scratch, &definition, &key));
        arena_reset(scratch);
    }
    assert_true(outside > 1000);
}

static void a_range_is_cut_first_where_its_creator_said(void **state UNUSED)
{
    static const struct slice bounds[] = {SLICE("b"), SLICE("d"), SLICE("f")};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition definition = definition_of(arena, V2);
    struct slice points[9];

    strategy_set(arena, PARTITION_STRATEGY_RANGE, &definition);
    assert_int_equal(partition_route_split_points(&definition, 10, arena, points), 0);
    definition.bounds = bounds;
    definition.bound_count = ARRAY_LEN(bounds);
    assert_int_equal(partition_route_split_points(&definition, 10, arena, points), 3);
    assert_slice_equal(points[2], SLICE("f"));
    assert_int_equal(partition_route_split_points(&definition, 2, arena, points), 1);
    assert_slice_equal(points[0], SLICE("d"));
}

/* --- Bounds within keys ---------------------------------------------------------------------- */

static void a_bound_within_a_key_tells_the_key(void **state UNUSED)
{
    static const enum partition_strategy_kind strategies[] = {
        PARTITION_STRATEGY_HASH, PARTITION_STRATEGY_RANGE, PARTITION_STRATEGY_LOOKUP};
    CLEANUP(arena_free) struct arena *arena = arena_new(), *scratch = arena_new();
    struct random random;

    random_seed(&random, 11);
    for (size_t s = 0; s < ARRAY_LEN(strategies); s++) {
        struct partition_definition definition = definition_of(arena, MULTI);

        strategy_set(arena, strategies[s], &definition);
        for (int round = 0; round < 2000; round++) {
            struct partition_key key = key_random(&random, scratch, &definition);
            CLEANUP(buf_done) struct buf bound;
            struct slice logical, pk;
            size_t routed, whole;
            struct error err;

            buf_init(&bound, BUF_DEFAULT_MAX);
            partition_route(&definition, &key, &bound);
            routed = bound.len;
            partition_key_append(&key, &bound);
            whole = bound.len;
            BUF_APPEND(&bound, "i");
            assert_true(partition_route_is_bound(&definition, buf_slice(&bound)));
            assert_ok(partition_route_cut(&definition, buf_slice(&bound), &logical, &pk, &err),
                      &err);
            assert_slice_equal(logical, slice_first(buf_slice(&bound), whole));
            assert_slice_equal(pk, slice_of(bound.data + routed, whole - routed));
            arena_reset(scratch);
        }
    }
}

/* --- Lookup ---------------------------------------------------------------------------------- */

static uint32_t shard_of(struct arena *arena, const struct partition_definition *definition,
                         const char *text)
{
    struct partition_key key = key_of(arena, definition, text);
    struct slice at = partition_route_range(definition, &key, arena).min;

    return (uint32_t)at.data[0] << 8 | at.data[1];
}

static void the_directory_says_the_shard_and_a_rule_says_the_others(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition definition = definition_of(arena, MULTI);
    struct partition_lookup fixed;
    uint32_t other;

    strategy_set(arena, PARTITION_STRATEGY_LOOKUP, &definition);
    assert_int_equal(shard_of(arena, &definition, "[\"a\"]"), 150);
    assert_int_equal(shard_of(arena, &definition, "[\"a\",\"x\",9]"), 150);
    assert_int_equal(shard_of(arena, &definition, "[-0.0,\"x\",9]"), 200);
    assert_int_equal(shard_of(arena, &definition, "[1]"), 250);
    other = shard_of(arena, &definition, "[\"other\"]");
    assert_true(other < 300);
    assert_int_equal(shard_of(arena, &definition, "[\"other\",1,2]"), other);
    fixed = *definition.lookup;
    fixed.hashes = false;
    fixed.preset = 7;
    definition.lookup = &fixed;
    assert_int_equal(shard_of(arena, &definition, "[\"other\"]"), 7);
    assert_int_equal(shard_of(arena, &definition, "[\"a\"]"), 150);
}

static void shards_are_never_split_by_expectation(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition definition = definition_of(arena, V2);
    struct slice *points = ARENA_ARRAY(arena, struct slice, 1000);

    strategy_set(arena, PARTITION_STRATEGY_LOOKUP, &definition);
    assert_int_equal(partition_route_split_points(&definition, 3, arena, points), 2);
    assert_slice_equal(points[0], SLICE("\x00\x64"));
    assert_slice_equal(points[1], SLICE("\x00\xC8"));
    assert_int_equal(partition_route_split_points(&definition, 1000, arena, points), 299);
    for (size_t i = 0; i < 299; i++) {
        assert_int_equal(points[i].len, 2);
        assert_int_equal((points[i].data[0] << 8) + points[i].data[1], i + 1);
    }
}

static void a_routing_key_tells_the_one_under_another_directory(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new(), *scratch = arena_new();
    struct partition_definition from = definition_of(arena, MULTI), to = from;
    struct partition_lookup *lookup = ARENA_NEW(arena, struct partition_lookup);
    struct random random;

    strategy_set(arena, PARTITION_STRATEGY_LOOKUP, &from);
    *lookup = *from.lookup;
    lookup->line_count = 2; /* the others follow the rule */
    to.strategy = from.strategy;
    to.lookup = lookup;
    random_seed(&random, 7);
    for (int round = 0; round < 5000; round++) {
        struct partition_key key = key_random(&random, scratch, &from);
        CLEANUP(buf_done) struct buf old, new;
        struct slice rest;
        struct error err;

        buf_init(&old, BUF_DEFAULT_MAX);
        buf_init(&new, BUF_DEFAULT_MAX);
        partition_route(&from, &key, &old);
        BUF_APPEND(&old, "rest");
        rest = buf_slice(&old);
        assert_ok(partition_reroute(&from, &to, &rest, &new, &err), &err);
        assert_slice_equal(rest, SLICE("rest"));
        assert_slice_equal(buf_slice(&new), route(scratch, &to, &key));
        arena_reset(scratch);
    }
}

static bool zones_set(struct arena *arena, struct partition_lookup *lookup,
                      const struct partition_zone *zones, size_t count, struct error *err)
{
    struct partition_zone *copy = ARENA_ARRAY(arena, struct partition_zone, count);

    memcpy(copy, zones, count * sizeof *copy);
    return partition_lookup_zones_settle(lookup, copy, count, arena, err);
}

static void keys_of_a_zone_are_in_its_shards_and_no_others_are(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    static const struct partition_zone zones[] = {
        {.beginning = SLICE("us-"), .first = 12, .last = 12},
        {.beginning = SLICE("eu-"), .first = 3, .last = 6},
    };
    static const char *const texts[] = {"eu-", "us-", "eu", "us", "a", "z", ""};
    struct partition_lookup lookup = {.shards = 16, .hashes = true};
    bool met[16] = {false};
    struct random random;
    struct error err;

    assert_ok(zones_set(arena, &lookup, zones, 2, &err), &err);
    random_seed(&random, 11);
    for (int i = 0; i < 20000; i++) {
        struct slice text = arena_printf(
            arena, "%s%llx%s", texts[random_below(&random, ARRAY_LEN(texts))],
            (unsigned long long)random_below(&random, 1000),
            random_below(&random, 3)
                ? ""
                : "a tail of more bytes than a component "
                  "keeps, so that what it is told by is its beginning and a hash of all of "
                  "it, and nothing else");
        struct document_value value = document_string(text);
        uint32_t shard = partition_lookup_shard(&lookup, partition_component(&value, arena));

        met[shard] = true;
        assert_int_equal(shard >= 3 && shard <= 6, slice_starts_with(text, SLICE("eu-")));
        assert_int_equal(shard == 12, slice_starts_with(text, SLICE("us-")));
    }
    for (size_t i = 0; i < ARRAY_LEN(met); i++)
        assert_true(met[i]);
}

static void zones_that_cannot_be_are_refused_by_name(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    static const struct {
        struct partition_zone zones[2];
        const char *message;
    } cases[] = {
        {{{.beginning = SLICE("a"), .first = 0, .last = 3},
          {.beginning = SLICE("b"), .first = 3, .last = 4}},
         "share shard 3"},
        {{{.beginning = SLICE("a"), .first = 0, .last = 1},
          {.beginning = SLICE("ab"), .first = 3, .last = 4}},
         "could be of zone"},
        {{{.beginning = SLICE("a"), .first = 0, .last = 1},
          {.beginning = SLICE("b"), .first = 3, .last = 8}},
         "there are 8"},
        {{{.beginning = SLICE("a"), .first = 2, .last = 1},
          {.beginning = SLICE("b"), .first = 3, .last = 4}},
         "shards 2 to 1"},
        {{{.beginning = SLICE("a"), .first = 0, .last = 3},
          {.beginning = SLICE("b"), .first = 4, .last = 7}},
         "leave no shard"},
        {{{.beginning = SLICE("a"), .first = 0, .last = 3},
          {.beginning = SLICE("b"), .first = 5, .last = 5}},
         "shard 5 is of a zone"},
    };
    struct partition_line line = {.shard = 4};
    struct partition_lookup lookup;
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        lookup = (struct partition_lookup){.shards = 8, .preset = 5, .hashes = i < 5};
        assert_fails(zones_set(arena, &lookup, cases[i].zones, 2, &err), &err, ERROR_BAD_REQUEST);
        assert_contains(err.message, cases[i].message);
    }
    lookup = (struct partition_lookup){.shards = 8, .hashes = true};
    assert_ok(zones_set(arena, &lookup, cases[5].zones, 2, &err), &err);
    lookup.line_count = 1;
    line.component = partition_component(
        &(struct document_value){.type = DOCUMENT_STRING, .text = SLICE("a1")}, arena);
    assert_fails(partition_lookup_settle(&lookup, &line, &err), &err, ERROR_BAD_REQUEST);
    assert_contains(err.message, "of another zone");
    line.shard = 2;
    assert_ok(partition_lookup_settle(&lookup, &line, &err), &err);
    assert_int_equal(partition_lookup_shard(&lookup, line.component), 2);
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
        cmocka_unit_test(range_keeps_the_order_of_values),
        cmocka_unit_test(what_lies_between_two_values_is_in_the_range_between_them),
        cmocka_unit_test(a_range_is_cut_first_where_its_creator_said),
        cmocka_unit_test(a_bound_within_a_key_tells_the_key),
        cmocka_unit_test(the_directory_says_the_shard_and_a_rule_says_the_others),
        cmocka_unit_test(keys_of_a_zone_are_in_its_shards_and_no_others_are),
        cmocka_unit_test(zones_that_cannot_be_are_refused_by_name),
        cmocka_unit_test(shards_are_never_split_by_expectation),
        cmocka_unit_test(a_routing_key_tells_the_one_under_another_directory),
    };
    return cmocka_run_group_tests_name("partition/strategy", tests, NULL, NULL);
}
