/* GeoJSON as it is read, and what is said of what is none. */
#include "search/figure.h"

#include "document/bson.h"
#include "support/check.h"
#include "support/documents.h"

static int setup(void **state)
{
    *state = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

static const struct search_rules earth = {.surface = SEARCH_EARTH},
                                 plane = {.surface = SEARCH_PLANE},
                                 every = {.surface = SEARCH_EARTH, .every_type = true};

static struct search_figure figure_of(struct arena *arena, const struct search_rules *rules,
                                      const char *json)
{
    struct document_value value = value_of(arena, json);
    struct search_figure figure = {0};
    struct search_reason reason;

    if (!search_figure_read(&value, rules, arena, &figure, &reason))
        fail_msg("%s: %s", json, reason.text);
    return figure;
}

static void assert_none(struct arena *arena, const struct search_rules *rules, const char *json,
                        const char *words)
{
    struct document_value value = value_of(arena, json);
    struct search_reason reason = {""};
    struct search_figure figure;

    if (search_figure_read(&value, rules, arena, &figure, &reason))
        fail_msg("%s is a figure", json);
    assert_contains(reason.text, words);
}

static void figures_are_read_into_positions_and_parts(void **state)
{
    struct search_figure figure = figure_of(
        *state, &earth,
        "{\"type\":\"MultiPolygon\",\"coordinates\":[[[[0,0],[9,0],[9,9],[0,0]],[[1,1],[2,1],[2,2],"
        "[1,1]]],[[[20,20],[30,20],[30,30],[20,20]]]]}");

    assert_int_equal(figure.part_count, 3);
    assert_int_equal(figure.position_count, 12);
    assert_int_equal(figure.parts[0].kind, SEARCH_RING);
    assert_int_equal(figure.parts[1].kind, SEARCH_HOLE);
    assert_int_equal(figure.parts[2].kind, SEARCH_RING);
    assert_int_equal(figure.parts[2].first, 8);
    assert_true(figure.positions[8].x == 20 && figure.positions[9].x == 30);
}

static void a_third_number_of_a_position_is_none_of_ours(void **state)
{
    struct search_figure figure =
        figure_of(*state, &earth, "{\"coordinates\":[1.5,2,300],\"type\":\"Point\",\"more\":1}");

    assert_int_equal(figure.position_count, 1);
    assert_true(figure.positions[0].x == 1.5 && figure.positions[0].y == 2);
}

static void degrees_are_bounded_on_the_earth_alone(void **state)
{
    assert_none(*state, &earth, "{\"type\":\"Point\",\"coordinates\":[133.75,-184.38]}",
                "Latitude values must be between -90 and 90 degrees.");
    assert_none(*state, &earth, "{\"type\":\"Point\",\"coordinates\":[-181,0]}",
                "Longitude values must be between -180 and 180 degrees.");
    (void)figure_of(*state, &earth, "{\"type\":\"Point\",\"coordinates\":[180,-90]}");
    (void)figure_of(*state, &plane, "{\"type\":\"Point\",\"coordinates\":[133.75,-184.38]}");
}

static void what_is_no_figure_is_told_why(void **state)
{
    static const char *const samples[][2] = {
        {"5", "not a GeoJSON object"},
        {"[1,2]", "not a GeoJSON object"},
        {"{}", "no type"},
        {"{\"type\":5}", "no type"},
        {"{\"type\":\"Circle\",\"coordinates\":[1,2]}", "'Circle' is not supported"},
        {"{\"type\":\"MultiPoint\",\"coordinates\":[[1,2]]}", "'MultiPoint' is not supported"},
        {"{\"type\":\"Point\"}", "no coordinates"},
        {"{\"type\":\"Point\",\"coordinates\":5}", "at least two numbers"},
        {"{\"type\":\"Point\",\"coordinates\":[5]}", "at least two numbers"},
        {"{\"type\":\"Point\",\"coordinates\":[\"1\",2]}", "at least two numbers"},
        {"{\"type\":\"LineString\",\"coordinates\":[[1,2]]}", "fewer than two points"},
        {"{\"type\":\"LineString\",\"coordinates\":[1,2]}", "at least two numbers"},
        {"{\"type\":\"Polygon\",\"coordinates\":[]}", "no ring"},
        {"{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[1,0],[0,0]]]}", "ring number 1 has fewer"},
        {"{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[9,0],[9,9],[0,0]],[[1,1],[2,1],[2,2],"
         "[1,2]]]}",
         "start and end points of the ring number 2 are not the same"},
        {"{\"type\":\"MultiPolygon\",\"coordinates\":[]}", "no coordinates"},
        {"{\"type\":\"MultiPolygon\",\"coordinates\":{\"a\":1}}", "must be an array"},
    };

    for (size_t i = 0; i < ARRAY_LEN(samples); i++)
        assert_none(*state, &earth, samples[i][0], samples[i][1]);
}

static void other_languages_have_more_types_and_pairs(void **state)
{
    assert_int_equal(figure_of(*state, &every, "[1,2]").parts[0].kind, SEARCH_POINT);
    assert_int_equal(figure_of(*state, &every, "{\"lng\":1,\"lat\":2}").parts[0].kind,
                     SEARCH_POINT);
    assert_int_equal(
        figure_of(*state, &every, "{\"type\":\"MultiPoint\",\"coordinates\":[[1,2],[3,4]]}")
            .part_count,
        2);
    assert_int_equal(
        figure_of(*state, &every,
                  "{\"type\":\"GeometryCollection\",\"geometries\":[{\"type\":\"Point\","
                  "\"coordinates\":[1,2]},{\"type\":\"MultiLineString\",\"coordinates\":[[[1,2],"
                  "[3,4]],[[5,6],[7,8]]]}]}")
            .part_count,
        3);
    assert_none(*state, &every, "{\"type\":\"GeometryCollection\",\"geometries\":[]}",
                "no geometry");
    assert_none(*state, &every, "{\"type\":\"GeometryCollection\",\"geometries\":[5]}",
                "must be an object");
}

/* A line of so many points. */
static struct document_value line_of(struct arena *arena, size_t count)
{
    CLEANUP(buf_done) struct buf buf;
    char index[DOCUMENT_INDEX_SIZE];
    size_t begin, list;

    buf_init(&buf, 1 << 28);
    begin = document_begin(&buf);
    document_append_string(&buf, SLICE("type"), SLICE("LineString"));
    list = document_append_array_begin(&buf, SLICE("coordinates"));
    for (size_t i = 0; i < count; i++) {
        size_t position = document_append_array_begin(&buf, document_index_key((uint32_t)i, index));

        document_append_double(&buf, SLICE("0"), (double)(i % 1000) / 10);
        document_append_double(&buf, SLICE("1"), (double)(i % 800) / 10);
        document_end(&buf, position);
    }
    document_end(&buf, list);
    document_end(&buf, begin);
    return document_object(arena_copy(arena, buf_slice(&buf)));
}

static void a_figure_of_a_million_points_is_given_up_at_its_limit(void **state)
{
    struct document_value most = line_of(*state, SEARCH_POSITIONS_MAX);
    struct document_value more = line_of(*state, SEARCH_POSITIONS_MAX + 1);
    struct document_value million = line_of(*state, 1000000);
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct search_figure figure;
    struct search_reason reason;

    assert_true(search_figure_read(&most, &earth, arena, &figure, &reason));
    assert_false(search_figure_read(&more, &earth, arena, &figure, &reason));
    assert_contains(reason.text, "more than 4096 points");
    arena_reset(arena);
    assert_false(search_figure_read(&million, &every, arena, &figure, &reason));
    assert_true(arena_used(arena) < 4 * SEARCH_POSITIONS_MAX_EVERY * sizeof *figure.positions);
}

static void collections_are_nested_only_so_deep(void **state)
{
    CLEANUP(buf_done) struct buf json;

    buf_init(&json, 1 << 16);
    for (size_t i = 0; i < SEARCH_COLLECTION_DEPTH_MAX + 1; i++)
        BUF_APPEND(&json, "{\"type\":\"GeometryCollection\",\"geometries\":[");
    BUF_APPEND(&json, "{\"type\":\"Point\",\"coordinates\":[1,2]}");
    for (size_t i = 0; i < SEARCH_COLLECTION_DEPTH_MAX + 1; i++)
        BUF_APPEND(&json, "]}");
    buf_append_byte(&json, 0);
    assert_none(*state, &every, (const char *)json.data, "nested more than");
}

static void points_are_read_by_themselves_as_figures_are(void **state)
{
    static const char *const list[] = {
        "{\"type\":\"Point\",\"coordinates\":[1,2]}",
        "{\"coordinates\":[1,2,3],\"type\":\"Point\"}",
        "{\"type\":\"Point\",\"coordinates\":[181,2]}",
        "{\"type\":\"Point\",\"coordinates\":[1,91]}",
        "{\"type\":\"Point\",\"coordinates\":[1]}",
        "{\"type\":\"Point\",\"coordinates\":[1,\"2\"]}",
        "{\"type\":\"Point\"}",
        "{\"type\":\"point\",\"coordinates\":[1,2]}",
        "{\"type\":5,\"coordinates\":[1,2]}",
        "{\"type\":\"MultiPoint\",\"coordinates\":[[1,2]]}",
        "{\"type\":\"LineString\",\"coordinates\":[[1,2],[3,4]]}",
        "{\"x\":1,\"y\":2}",
        "{\"x\":1,\"type\":\"Point\",\"coordinates\":[1,2]}",
        "[1,2]",
        "[1,2,3]",
        "[1]",
        "5",
    };
    const struct search_rules *const rules[] = {&earth, &plane, &every};
    size_t points = 0;

    for (size_t i = 0; i < ARRAY_LEN(list) * ARRAY_LEN(rules); i++) {
        const struct search_rules *by = rules[i % ARRAY_LEN(rules)];
        struct document_value value = value_of(*state, list[i / ARRAY_LEN(rules)]);
        struct search_position position;
        struct search_figure figure;
        struct search_reason reason;

        if (!search_point_read(&value, by, &position)) {
            /* what it leaves out is no point, or one of several */
            assert_true(!search_figure_read(&value, by, *state, &figure, &reason) ||
                        figure.position_count > 1 || strstr(list[i / ARRAY_LEN(rules)], "Multi"));
            continue;
        }
        assert_true(search_figure_read(&value, by, *state, &figure, &reason));
        assert_int_equal(figure.part_count, 1);
        assert_int_equal(figure.parts[0].kind, SEARCH_POINT);
        assert_true(position.x == figure.positions[0].x && position.y == figure.positions[0].y);
        points++;
    }
    assert_int_equal(points, 13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(figures_are_read_into_positions_and_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(a_third_number_of_a_position_is_none_of_ours, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(degrees_are_bounded_on_the_earth_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_figure_is_told_why, setup, teardown),
        cmocka_unit_test_setup_teardown(other_languages_have_more_types_and_pairs, setup, teardown),
        cmocka_unit_test_setup_teardown(a_figure_of_a_million_points_is_given_up_at_its_limit,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(collections_are_nested_only_so_deep, setup, teardown),
        cmocka_unit_test_setup_teardown(points_are_read_by_themselves_as_figures_are, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
