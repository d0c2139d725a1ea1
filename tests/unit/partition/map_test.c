#include "partition/map.h"

#include "base/random.h"
#include "fixture.h"

/* Spans 0, 1, 2, ... between the bounds given, the last of which is NULL. */
static struct partition_map *map_with_bounds(const char *const *bounds)
{
    struct partition_span spans[16];
    struct partition_map *map;
    struct slice reached = PARTITION_ROUTING_MIN;
    size_t count = 0;
    struct error err;

    for (bool last = false; !last; count++) {
        last = !bounds[count];
        spans[count] = (struct partition_span){
            .id = (uint32_t)count,
            .epoch = 1,
            .min = reached,
            .max = last ? PARTITION_ROUTING_MAX : slice_of_text(bounds[count]),
        };
        reached = spans[count].max;
    }
    for (size_t i = 0; i < count; i++)
        spans[i].share = 1.0 / (double)count;
    assert_ok(partition_map_new(spans, count, 1, &map, &err), &err);
    return map;
}

#define MAP(...) map_with_bounds((const char *const[]){__VA_ARGS__, NULL})

static struct partition_map *map_even(const struct partition_definition *definition, size_t count)
{
    struct partition_map *map;
    struct error err;

    assert_ok(partition_map_new_even(&(struct partition_map_plan){.definition = definition,
                                                                  .count = count,
                                                                  .epoch = 1,
                                                                  .nodes = (const uint32_t[]){0},
                                                                  .node_count = 1},
                                     &map, &err),
              &err);
    return map;
}

static void find_gives_a_boundary_key_to_the_span_it_opens(void **state UNUSED)
{
    CLEANUP(partition_map_unref) struct partition_map *map = MAP("15", "2A");

    assert_int_equal(partition_map_find(map, SLICE(""))->id, 0);
    assert_int_equal(partition_map_find(map, SLICE("14~"))->id, 0);
    assert_int_equal(partition_map_find(map, SLICE("15"))->id, 1);
    assert_int_equal(partition_map_find(map, SLICE("2"))->id, 1);
    assert_int_equal(partition_map_find(map, SLICE("2A"))->id, 2);
    assert_int_equal(partition_map_find(map, SLICE("\xFE\xFF\xFF"))->id, 2);
}

static void bounds_that_begin_alike_are_told_apart(void **state UNUSED)
{
    CLEANUP(partition_map_unref)
    struct partition_map *map = MAP("1", "12345678", "12345678A", "12345678B", "12345679");

    assert_int_equal(partition_map_find(map, SLICE("0"))->id, 0);
    assert_int_equal(partition_map_find(map, SLICE("1\0"))->id, 1);
    assert_int_equal(partition_map_find(map, SLICE("1234567"))->id, 1);
    assert_int_equal(partition_map_find(map, SLICE("12345678"))->id, 2);
    assert_int_equal(partition_map_find(map, SLICE("12345678@"))->id, 2);
    assert_int_equal(partition_map_find(map, SLICE("12345678A"))->id, 3);
    assert_int_equal(partition_map_find(map, SLICE("12345678B~"))->id, 4);
    assert_int_equal(partition_map_find(map, SLICE("12345679"))->id, 5);
}

static void spans_are_found_by_id_while_they_live(void **state UNUSED)
{
    CLEANUP(partition_map_unref) struct partition_map *map = MAP("15", "2A");

    for (uint32_t id = 0; id < 3; id++)
        assert_int_equal(partition_map_find_id(map, id)->id, id);
    assert_null(partition_map_find_id(map, 3));
    assert_null(partition_map_find_id(map, UINT32_MAX));
}

static void a_range_overlaps_the_spans_it_reaches_into(void **state UNUSED)
{
    static const struct {
        const char *min, *max;
        uint32_t first;
        size_t count;
    } known[] = {
        {"", "\xFF", 0, 4}, {"b", "c", 1, 1},           {"b", "c1", 1, 2},  {"a", "b", 0, 1},
        {"a", "b1", 0, 2},  {"z", "\xFF", 3, 1},        {"c5", "c6", 2, 1}, {"c", "c", 0, 0},
        {"d", "a", 0, 0},   {"\xFF", "\xFF\xFF", 0, 0}, {"", "", 0, 0},     {"a", "\xFF\xFF", 0, 4},
    };
    CLEANUP(partition_map_unref) struct partition_map *map = MAP("b", "c", "d");

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct partition_range range = {slice_of_text(known[i].min), slice_of_text(known[i].max)};
        size_t count;
        const struct partition_span *first = partition_map_overlap(map, range, &count);

        assert_int_equal(count, known[i].count);
        if (count)
            assert_int_equal(first->id, known[i].first);
    }
}

static void spans_that_do_not_tile_are_refused(void **state UNUSED)
{
#define SPAN(id_, min_, max_)                                                                      \
    {                                                                                              \
        .id = id_, .min = SLICE(min_), .max = SLICE(max_), .share = 0.5                            \
    }
    static const struct {
        struct partition_span spans[2];
        size_t count;
        const char *message;
    } broken[] = {
        {{SPAN(0, "", "a"), SPAN(1, "b", "\xFF")}, 2, "span 1 does not begin where"},
        {{SPAN(0, "", "b"), SPAN(1, "a", "\xFF")}, 2, "span 1 does not begin where"},
        {{SPAN(0, "1", "a"), SPAN(1, "a", "\xFF")}, 2, "span 0 does not begin where"},
        {{SPAN(0, "", "a"), SPAN(1, "a", "b")}, 2, "do not end at the last key"},
        {{SPAN(0, "", "a"), SPAN(1, "a", "\xFF\xFF")}, 2, "do not end at the last key"},
        {{SPAN(0, "", ""), SPAN(1, "", "\xFF")}, 2, "is empty"},
        {{SPAN(0, "", "\xFF"), SPAN(1, "\xFF", "a")}, 2, "is empty"},
        {{SPAN(7, "", "a"), SPAN(7, "a", "\xFF")}, 2, "two spans have the id 7"},
        {{SPAN(0, "", "\xFF")}, 1, "shares of all spans add up to 0.5"},
        {{SPAN(0, "", "\xFF")}, 0, "do not end at the last key"},
    };

    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        struct partition_map *map = NULL;
        struct error err;

        assert_fails(partition_map_new(broken[i].spans, broken[i].count, 1, &map, &err), &err,
                     ERROR_RANGES_BROKEN);
        assert_contains(err.message, broken[i].message);
        assert_null(map);
    }
}

static void shares_outside_0_to_1_are_refused(void **state UNUSED)
{
    static const double wrong[] = {-0.5, 1.5, __builtin_nan("")};

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct partition_span spans[] = {SPAN(0, "", "a"), SPAN(1, "a", "\xFF")};
        struct partition_map *map;
        struct error err;

        spans[0].share = wrong[i];
        spans[1].share = 1 - wrong[i];
        assert_fails(partition_map_new(spans, 2, 1, &map, &err), &err, ERROR_RANGES_BROKEN);
    }
}

static void a_map_takes_spans_in_any_order_and_keeps_its_own_copy(void **state UNUSED)
{
    char bound[] = "m";
    uint32_t parents[] = {3, 4};
    struct partition_span spans[] = {
        {.id = 6,
         .node = 2,
         .epoch = 9,
         .share = 0.25,
         .min = slice_of(bound, 1),
         .max = PARTITION_ROUTING_MAX,
         .parents = parents,
         .parent_count = 2},
        {.id = 5,
         .node = 1,
         .epoch = 8,
         .share = 0.75,
         .min = PARTITION_ROUTING_MIN,
         .max = slice_of(bound, 1)},
    };
    CLEANUP(partition_map_unref) struct partition_map *map = NULL;
    const struct partition_span *last;
    struct error err;

    assert_ok(partition_map_new(spans, 2, 12, &map, &err), &err);
    bound[0] = 'a';
    parents[0] = 0;
    last = partition_map_find(map, SLICE("m"));
    assert_int_equal(last->id, 6);
    assert_int_equal(last->node, 2);
    assert_int_equal(last->epoch, 9);
    assert_true(last->share == 0.25);
    assert_int_equal(last->parent_count, 2);
    assert_int_equal(last->parents[0], 3);
    assert_int_equal(partition_map_find(map, SLICE("l"))->id, 5);
    assert_int_equal(partition_map_version(map), 12);
}

static void the_first_map_deals_ids_nodes_and_shares_evenly(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition definition = definition_of(arena, V2);
    CLEANUP(partition_map_unref) struct partition_map *map = NULL;
    static const uint32_t nodes[] = {4, 7, 9};
    const struct partition_span *spans;
    struct error err;
    size_t count;

    assert_ok(partition_map_new_even(&(struct partition_map_plan){.definition = &definition,
                                                                  .count = 5,
                                                                  .first_id = 100,
                                                                  .epoch = 1,
                                                                  .nodes = nodes,
                                                                  .node_count = 3},
                                     &map, &err),
              &err);
    spans = partition_map_spans(map, &count);
    assert_int_equal(count, 5);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(spans[i].id, 100 + i);
        assert_int_equal(spans[i].node, nodes[i % 3]);
        assert_int_equal(spans[i].epoch, 1);
        assert_true(spans[i].share == 0.2);
        assert_int_equal(spans[i].parent_count, 0);
    }
    assert_int_equal(partition_map_version(map), 1);
}

static void more_spans_than_the_limit_are_refused(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition definition = definition_of(arena, V1);
    CLEANUP(partition_map_unref)
    struct partition_map *largest = map_even(&definition, PARTITION_SPANS_MAX);
    struct partition_map *map;
    struct error err;

    assert_int_equal(partition_map_find(largest, SLICE("\xFE"))->id, PARTITION_SPANS_MAX - 1);
    assert_fails(
        partition_map_new_even(&(struct partition_map_plan){.definition = &definition,
                                                            .count = PARTITION_SPANS_MAX + 1,
                                                            .nodes = (const uint32_t[]){0},
                                                            .node_count = 1},
                               &map, &err),
        &err, ERROR_TOO_LARGE);
}

/* Looking at every span finds the same, single one as the search. */
static void every_key_is_in_exactly_one_span(void **state UNUSED)
{
    static const char *const definitions[] = {V1, V2, MULTI};
    CLEANUP(arena_free) struct arena *arena = arena_new(), *scratch = arena_new();
    CLEANUP(buf_done) struct buf buf;
    struct random random;

    buf_init(&buf, BUF_DEFAULT_MAX);
    random_seed(&random, 8);
    for (int round = 0; round < 60; round++) {
        struct partition_definition definition =
            definition_of(arena, definitions[round % (int)ARRAY_LEN(definitions)]);
        CLEANUP(partition_map_unref)
        struct partition_map *map = map_even(&definition, 1 + random_below(&random, 100));
        size_t count;
        const struct partition_span *spans = partition_map_spans(map, &count);

        for (int i = 0; i < 300; i++) {
            struct document_value values[PARTITION_PATHS_MAX];
            struct partition_key key;
            struct slice at;
            size_t owners = 0, overlapping;

            for (size_t c = 0; c < definition.path_count; c++)
                values[c] = value_random(&random, scratch, 0);
            key = partition_key_of(&definition, values, definition.path_count);
            buf_clear(&buf);
            partition_route(&definition, &key, &buf);
            at = buf_slice(&buf);
            for (size_t s = 0; s < count; s++) {
                if (slice_compare(spans[s].min, at) <= 0 && slice_compare(at, spans[s].max) < 0) {
                    owners++;
                    assert_ptr_equal(partition_map_find(map, at), &spans[s]);
                }
            }
            assert_int_equal(owners, 1);
            assert_ptr_equal(
                partition_map_overlap(map, partition_route_range(&definition, &key, scratch),
                                      &overlapping),
                partition_map_find(map, at));
            assert_int_equal(overlapping, 1);
            arena_reset(scratch);
        }
    }
}

/* The keys that tenants and devices have: a word and a number, and numbers alone. */
static void a_million_keys_spread_within_5_percent(void **state UNUSED)
{
    enum { KEYS = 1000000, SPANS = 64 };
    static const char *const definitions[] = {V1, V2};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    for (size_t d = 0; d < ARRAY_LEN(definitions); d++) {
        struct partition_definition definition = definition_of(arena, definitions[d]);
        CLEANUP(partition_map_unref) struct partition_map *map = map_even(&definition, SPANS);
        size_t keys[SPANS] = {0};

        for (int32_t i = 0; i < KEYS; i++) {
            char text[32] = "tenant-";
            int digits = snprintf(text + 7, sizeof text - 7, "%d", i);
            struct document_value value =
                i % 2 ? document_int32(i) : document_string(slice_of(text, 7 + (size_t)digits));
            struct partition_key key = partition_key_of(&definition, &value, 1);

            buf_clear(&buf);
            partition_route(&definition, &key, &buf);
            keys[partition_map_find(map, buf_slice(&buf))->id]++;
        }
        for (size_t s = 0; s < SPANS; s++)
            assert_in_range(keys[s], KEYS / SPANS * 95 / 100, KEYS / SPANS * 105 / 100);
    }
}

static void a_stored_map_reads_back_whole(void **state UNUSED)
{
    static const uint32_t parents[] = {0, 1, UINT32_MAX};
    const struct partition_span written[] = {
        {.id = 2,
         .node = 0,
         .epoch = 3,
         .share = 1.0 / 3,
         .min = PARTITION_ROUTING_MIN,
         .max = SLICE("\x05\x00\xC1"),
         .parents = parents,
         .parent_count = 3},
        {.id = UINT32_MAX,
         .node = UINT32_MAX,
         .epoch = UINT64_MAX,
         .share = 2.0 / 3,
         .cut = PARTITION_CUT_PLACED,
         .min = SLICE("\x05\x00\xC1"),
         .max = PARTITION_ROUTING_MAX},
    };
    CLEANUP(partition_map_unref) struct partition_map *map = NULL, *again = NULL;
    CLEANUP(buf_done) struct buf first, second;
    const struct partition_span *spans;
    struct error err;
    size_t count;

    buf_init(&first, BUF_DEFAULT_MAX);
    buf_init(&second, BUF_DEFAULT_MAX);
    assert_ok(partition_map_new(written, 2, UINT64_MAX, &map, &err), &err);
    partition_map_append(map, &first);
    assert_ok(partition_map_read(buf_slice(&first), &again, &err), &err);
    assert_true(partition_map_version(again) == UINT64_MAX);
    spans = partition_map_spans(again, &count);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(spans[i].id, written[i].id);
        assert_int_equal(spans[i].node, written[i].node);
        assert_true(spans[i].epoch == written[i].epoch);
        assert_true(spans[i].share == written[i].share);
        assert_int_equal(spans[i].cut, written[i].cut);
        assert_slice_equal(spans[i].min, written[i].min);
        assert_slice_equal(spans[i].max, written[i].max);
        assert_int_equal(spans[i].parent_count, written[i].parent_count);
    }
    assert_memory_equal(spans[0].parents, parents, sizeof parents);
    partition_map_append(again, &second);
    assert_slice_equal(buf_slice(&second), buf_slice(&first));
}

/* Of which others have the same routing key, as long texts of one beginning may. */
static void the_parts_of_a_spread_key_are_found(void **state UNUSED)
{
    struct partition_span spans[] = {
        {.id = 1, .min = PARTITION_ROUTING_MIN, .max = SLICE("r")},
        {.id = 2, .cut = PARTITION_CUT_ISOLATED, .min = SLICE("r"), .max = SLICE("rkf")},
        {.id = 3, .cut = PARTITION_CUT_SPREAD, .min = SLICE("rkf"), .max = SLICE("rkq")},
        {.id = 4, .cut = PARTITION_CUT_SPREAD, .min = SLICE("rkq"), .max = SLICE("r\xFF")},
        {.id = 5,
         .cut = PARTITION_CUT_ISOLATED,
         .min = SLICE("r\xFF"),
         .max = PARTITION_ROUTING_MAX},
    };
    static const struct {
        const char *logical;
        uint32_t first;
        size_t count;
    } cases[] = {{"ak", 1, 1}, {"rk", 2, 3}, {"ra", 2, 1}, {"rz", 4, 1}, {"sk", 5, 1}};
    CLEANUP(partition_map_unref) struct partition_map *map = NULL;
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(spans); i++) {
        spans[i].epoch = 1;
        spans[i].share = 0.2;
    }
    assert_ok(partition_map_new(spans, ARRAY_LEN(spans), 1, &map, &err), &err);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t count;

        assert_int_equal(partition_map_parts(map, slice_of_text(cases[i].logical), &count)->id,
                         cases[i].first);
        assert_int_equal(count, cases[i].count);
    }
}

/* Versions before format 2 would take the items of a part for ones out of place. */
static void a_map_with_a_spread_key_is_of_format_2_and_on_one_node(void **state UNUSED)
{
    struct partition_span spans[] = {
        {.id = 2, .epoch = 1, .share = 0.5, .min = PARTITION_ROUTING_MIN, .max = SLICE("kb")},
        {.id = 3,
         .epoch = 1,
         .share = 0.5,
         .cut = PARTITION_CUT_SPREAD,
         .min = SLICE("kb"),
         .max = PARTITION_ROUTING_MAX},
    };
    CLEANUP(partition_map_unref) struct partition_map *map = NULL, *again = NULL, *none = NULL;
    CLEANUP(buf_done) struct buf bytes;
    struct document_value format;
    struct error err;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    assert_ok(partition_map_new(spans, 2, 1, &map, &err), &err);
    assert_true(partition_map_is_spread(map));
    assert_true(partition_map_is_part(map, partition_map_find(map, SLICE("ka"))));
    assert_int_equal(partition_map_find(map, SLICE("kba"))->id, 3);
    partition_map_append(map, &bytes);
    assert_true(document_find(buf_slice(&bytes), SLICE("format"), &format));
    assert_int_equal(format.int32, 2);
    assert_ok(partition_map_read(buf_slice(&bytes), &again, &err), &err);
    assert_true(partition_map_is_spread(again));
    spans[1].node = 1;
    assert_fails(partition_map_new(spans, 2, 1, &none, &err), &err, ERROR_RANGES_BROKEN);
    spans[1].node = 0;
    spans[1].cut = PARTITION_CUT_NEEDED;
    spans[0].cut = PARTITION_CUT_SPREAD;
    assert_fails(partition_map_new(spans, 2, 1, &none, &err), &err, ERROR_RANGES_BROKEN);
}

/* Format 1, as it lies on disks: a change of these bytes needs format 2. */
static void stored_bytes_are_those_of_format_1(void **state UNUSED)
{
    CLEANUP(partition_map_unref) struct partition_map *map = NULL;
    static const uint32_t parents[] = {3};
    const struct partition_span span = {.id = 4,
                                        .node = 1,
                                        .epoch = 2,
                                        .share = 1,
                                        .min = PARTITION_ROUTING_MIN,
                                        .max = PARTITION_ROUTING_MAX,
                                        .parents = parents,
                                        .parent_count = 1};
    CLEANUP(buf_done) struct buf buf;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    assert_ok(partition_map_new(&span, 1, 7, &map, &err), &err);
    partition_map_append(map, &buf);
    /* clang-format off */
    assert_slice_equal(buf_slice(&buf), SLICE(
        "\x9C\0\0\0"
        "\x10" "format\0" "\1\0\0\0"
        "\x12" "version\0" "\7\0\0\0\0\0\0\0"
        "\x04" "spans\0" "\x73\0\0\0"
        "\x03" "0\0" "\x6B\0\0\0"
        "\x12" "id\0" "\4\0\0\0\0\0\0\0"
        "\x12" "node\0" "\1\0\0\0\0\0\0\0"
        "\x12" "epoch\0" "\2\0\0\0\0\0\0\0"
        "\x01" "share\0" "\0\0\0\0\0\0\xF0\x3F"
        "\x05" "min\0" "\0\0\0\0\0"
        "\x05" "max\0" "\1\0\0\0\0\xFF"
        "\x04" "parents\0" "\x10\0\0\0" "\x12" "0\0" "\3\0\0\0\0\0\0\0" "\0"
        "\0" "\0" "\0"));
    /* clang-format on */
}

/* Whatever one byte becomes: the map is refused or still a map, and nothing is read outside it. */
static void a_damaged_map_is_refused_or_still_tiles(void **state UNUSED)
{
    CLEANUP(partition_map_unref) struct partition_map *map = MAP("15", "2A");
    CLEANUP(buf_done) struct buf buf;
    struct partition_map *got;
    struct error err;
    size_t refused = 0;

    buf_init(&buf, BUF_DEFAULT_MAX);
    partition_map_append(map, &buf);
    for (size_t len = 0; len < buf.len; len++) {
        assert_fails(partition_map_read(slice_of(buf.data, len), &got, &err), &err,
                     ERROR_STORE_CORRUPT);
    }
    for (size_t bit = 0; bit < buf.len * 8; bit++) {
        buf.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (partition_map_read(buf_slice(&buf), &got, &err)) {
            partition_map_unref(got);
        } else {
            assert_true(err.code == ERROR_STORE_CORRUPT || err.code == ERROR_RANGES_BROKEN ||
                        err.code == ERROR_STORE_VERSION);
            refused++;
        }
        buf.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(refused > buf.len * 4); /* names, types, lengths and bounds are most of it */
}

static void a_map_of_a_newer_format_is_named_as_such(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_map *map;
    struct error err;

    assert_fails(partition_map_read(document_of(arena, "{\"format\":3}"), &map, &err), &err,
                 ERROR_STORE_VERSION);
    assert_fails(partition_map_read(document_of(arena, "{\"format\":0}"), &map, &err), &err,
                 ERROR_STORE_CORRUPT);
}

static void a_map_lives_until_its_last_reader_lets_go(void **state UNUSED)
{
    struct partition_map *map = MAP("15");
    struct partition_map *reader = partition_map_ref(map);

    assert_ptr_equal(reader, map);
    partition_map_unref(map);
    assert_int_equal(partition_map_find(reader, SLICE("15"))->id, 1); /* ASan would object */
    partition_map_unref(reader);
    partition_map_unref(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find_gives_a_boundary_key_to_the_span_it_opens),
        cmocka_unit_test(bounds_that_begin_alike_are_told_apart),
        cmocka_unit_test(spans_are_found_by_id_while_they_live),
        cmocka_unit_test(a_range_overlaps_the_spans_it_reaches_into),
        cmocka_unit_test(spans_that_do_not_tile_are_refused),
        cmocka_unit_test(shares_outside_0_to_1_are_refused),
        cmocka_unit_test(a_map_takes_spans_in_any_order_and_keeps_its_own_copy),
        cmocka_unit_test(the_first_map_deals_ids_nodes_and_shares_evenly),
        cmocka_unit_test(more_spans_than_the_limit_are_refused),
        cmocka_unit_test(every_key_is_in_exactly_one_span),
        cmocka_unit_test(a_million_keys_spread_within_5_percent),
        cmocka_unit_test(a_stored_map_reads_back_whole),
        cmocka_unit_test(the_parts_of_a_spread_key_are_found),
        cmocka_unit_test(a_map_with_a_spread_key_is_of_format_2_and_on_one_node),
        cmocka_unit_test(stored_bytes_are_those_of_format_1),
        cmocka_unit_test(a_damaged_map_is_refused_or_still_tiles),
        cmocka_unit_test(a_map_of_a_newer_format_is_named_as_such),
        cmocka_unit_test(a_map_lives_until_its_last_reader_lets_go),
    };
    return cmocka_run_group_tests_name("partition/map", tests, NULL, NULL);
}
