/* Distances, areas and what lies within what, against published values and what anybody can see. */
#include "search/shape.h"

#include "base/random.h"
#include "support/check.h"
#include "support/documents.h"

#include <math.h>

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
                                 every = {
                                     .surface = SEARCH_EARTH, .every_type = true, .smaller = true};

static struct search_shape *shape_try(struct arena *arena, const struct search_rules *rules,
                                      const char *json, struct search_reason *reason)
{
    struct document_value value = value_of(arena, json);
    struct search_figure figure;

    return search_figure_read(&value, rules, arena, &figure, reason)
               ? search_shape_new(&figure, reason)
               : NULL;
}

static struct search_shape *shape_of(struct arena *arena, const struct search_rules *rules,
                                     const char *json)
{
    struct search_reason reason;
    struct search_shape *shape = shape_try(arena, rules, json, &reason);

    if (!shape)
        fail_msg("%s: %s", json, reason.text);
    return shape;
}

static double distance(struct arena *arena, const struct search_rules *rules, const char *a,
                       const char *b)
{
    CLEANUP(search_shape_free) struct search_shape *one = shape_of(arena, rules, a);
    CLEANUP(search_shape_free) struct search_shape *other = shape_of(arena, rules, b);
    double there = search_shape_distance(one, other), back = search_shape_distance(other, one);

    if (fabs(there - back) > 1e-9 * fmax(1, there))
        fail_msg("%s to %s: %.6f, and back %.6f", a, b, there, back);
    return there;
}

static double area(struct arena *arena, const struct search_rules *rules, const char *json)
{
    CLEANUP(search_shape_free) struct search_shape *shape = shape_of(arena, rules, json);

    return search_shape_area(shape);
}

static bool within(struct arena *arena, const struct search_rules *rules, const char *inner,
                   const char *outer)
{
    CLEANUP(search_shape_free) struct search_shape *one = shape_of(arena, rules, inner);
    CLEANUP(search_shape_free) struct search_shape *other = shape_of(arena, rules, outer);

    return search_shape_within(one, other);
}

static bool intersects(struct arena *arena, const struct search_rules *rules, const char *a,
                       const char *b)
{
    CLEANUP(search_shape_free) struct search_shape *one = shape_of(arena, rules, a);
    CLEANUP(search_shape_free) struct search_shape *other = shape_of(arena, rules, b);
    bool there = search_shape_intersects(one, other);

    assert_int_equal(there, search_shape_intersects(other, one));
    return there;
}

static void assert_near(double got, double expected, double slack)
{
    if (fabs(got - expected) > slack)
        fail_msg("%.9g is not within %g of %.9g", got, slack, expected);
}

#define POINT(x, y) "{\"type\":\"Point\",\"coordinates\":[" #x "," #y "]}"
#define LINE(...) "{\"type\":\"LineString\",\"coordinates\":[" __VA_ARGS__ "]}"
#define AREA(...) "{\"type\":\"Polygon\",\"coordinates\":[" __VA_ARGS__ "]}"
#define AREAS(...) "{\"type\":\"MultiPolygon\",\"coordinates\":[" __VA_ARGS__ "]}"

/* counter-clockwise */
#define SQUARE "[[0,0],[10,0],[10,10],[0,10],[0,0]]"
#define TURNED "[[0,0],[0,10],[10,10],[10,0],[0,0]]"
#define HOLE "[[4,4],[6,4],[6,6],[4,6],[4,4]]"

static void distances_are_those_of_the_manual_and_of_surveyors(void **state)
{
    /* the manual of Cosmos DB */
    assert_near(distance(*state, &earth, POINT(-122.12826822, 47.63980239),
                         POINT(-122.11758114, 47.66901087)),
                3345.27, 0.01);
    /* a degree of the equator, and a quarter of a meridian, by the definition of WGS 84 */
    assert_near(distance(*state, &earth, POINT(0, 0), POINT(1, 0)), 111319.491, 0.001);
    assert_near(distance(*state, &earth, POINT(0, 0), POINT(0, 90)), 10001965.729, 0.001);
    /* Vincenty's line: Flinders Peak to Buninyong, on WGS 84 */
    assert_near(distance(*state, &earth, POINT(144.42486788, -37.95103341),
                         POINT(143.92649552, -37.65282113)),
                54972.271, 0.005);
    assert_near(distance(*state, &earth, POINT(5, 5), POINT(5, 5)), 0, 0);
}

static void distances_over_the_date_line_are_short(void **state)
{
    assert_near(distance(*state, &earth, POINT(179.5, 0), POINT(-179.5, 0)), 111319.491, 0.001);
    assert_near(distance(*state, &earth, POINT(180, 10), POINT(-180, 10)), 0, 1e-6);
}

static void distances_to_lines_and_polygons_are_to_what_is_nearest(void **state)
{
    assert_near(distance(*state, &earth, POINT(5, 1), LINE("[0,0],[10,0]")), 110574.4, 1);
    assert_near(distance(*state, &earth, POINT(5, 5), AREA(SQUARE)), 0, 0);
    assert_near(distance(*state, &earth, POINT(11, 0), AREA(SQUARE)), 111319.5, 20);
    /* inside the hole: its nearest side is a degree away */
    assert_near(distance(*state, &earth, POINT(5, 5), AREA(SQUARE "," HOLE)), 110900, 700);
    assert_near(distance(*state, &earth, LINE("[0,0],[10,0]"), LINE("[0,1],[10,1]")), 110574, 20);
    assert_near(distance(*state, &earth, LINE("[0,-1],[0,1]"), LINE("[-1,0],[1,0]")), 0, 0);
    assert_near(distance(*state, &earth, AREA(SQUARE), LINE("[3,3],[4,4]")), 0, 0);
}

static void areas_are_those_of_the_manual(void **state)
{
    /* the manual has 735970283.0522614: GeographicLib is 7 parts in a thousand million above it */
    assert_near(area(*state, &earth, AREA("[[31.8,-5],[32,-5],[32,-4.7],[31.8,-4.7],[31.8,-5]]")),
                735970283.05, 10);
    assert_near(area(*state, &earth, POINT(1, 1)), 0, 0);
    assert_near(area(*state, &earth, LINE("[0,0],[10,0]")), 0, 0);
    assert_near(area(*state, &earth, AREAS("[" SQUARE "," HOLE "]")),
                area(*state, &earth, AREA(SQUARE)) - area(*state, &earth, AREA(HOLE)), 1);
}

static void a_clockwise_ring_is_all_the_rest(void **state)
{
    static const double all = 510065621724088; /* square metres of the ellipsoid of WGS 84 */

    assert_near(area(*state, &earth, AREA(SQUARE)) + area(*state, &earth, AREA(TURNED)), all, 1e3);
    assert_false(within(*state, &earth, POINT(5, 5), AREA(TURNED)));
    assert_true(within(*state, &earth, POINT(50, 50), AREA(TURNED)));
    /* but not where a language has the smaller side of any ring */
    assert_true(within(*state, &every, POINT(5, 5), AREA(TURNED)));
    assert_near(area(*state, &every, AREA(TURNED)), area(*state, &earth, AREA(SQUARE)), 1);
}

static void edges_belong_to_what_they_bound(void **state)
{
    assert_true(within(*state, &earth, POINT(0, 0), AREA(SQUARE)));
    assert_true(within(*state, &earth, AREA(SQUARE), AREA(SQUARE)));
    assert_true(within(*state, &earth, LINE("[0,0],[10,0]"), AREA(SQUARE)));
    assert_true(
        intersects(*state, &earth, AREA(SQUARE), AREA("[[10,0],[20,0],[20,10],[10,10],[10,0]]")));
    assert_true(within(*state, &plane, POINT(10, 5), AREA(SQUARE)));
    assert_true(within(*state, &plane, LINE("[0,0],[10,0]"), AREA(SQUARE)));
}

static void holes_are_cut_out_whichever_way_they_go(void **state)
{
    static const char *const holed[] = {AREA(SQUARE "," HOLE),
                                        AREA(SQUARE ",[[4,4],[4,6],[6,6],[6,4],[4,4]]")};

    for (size_t i = 0; i < ARRAY_LEN(holed); i++) {
        assert_false(within(*state, &earth, POINT(5, 5), holed[i]));
        assert_true(within(*state, &earth, POINT(3, 5), holed[i]));
        assert_false(intersects(*state, &earth, LINE("[4.5,5],[5.5,5]"), holed[i]));
        assert_true(intersects(*state, &earth, LINE("[3,5],[5.5,5]"), holed[i]));
        assert_false(within(*state, &earth, LINE("[3,5],[7,5]"), holed[i]));
        assert_false(within(*state, &plane, POINT(5, 5), holed[i]));
        assert_true(within(*state, &plane, POINT(3, 5), holed[i]));
    }
}

static void polygons_may_lie_over_the_date_line_and_the_poles(void **state)
{
    static const char *const date = AREA("[[170,-10],[-170,-10],[-170,10],[170,10],[170,-10]]");
    static const char *const pole = AREA("[[0,80],[90,80],[180,80],[-90,80],[0,80]]");

    assert_true(within(*state, &earth, POINT(180, 0), date));
    assert_true(within(*state, &earth, POINT(-175, 5), date));
    assert_false(within(*state, &earth, POINT(0, 0), date));
    assert_true(within(*state, &earth, POINT(33, 90), pole));
    assert_true(within(*state, &earth, POINT(-120, 85), pole));
    assert_false(within(*state, &earth, POINT(-120, 60), pole));
    assert_true(intersects(*state, &earth, date, LINE("[-160,0],[160,0]")));
    assert_near(distance(*state, &earth, POINT(10, 90), pole), 0, 0);
}

static void several_polygons_are_one_shape(void **state)
{
    static const char *const two =
        AREAS("[" SQUARE "],[[[5,5],[15,5],[15,15],[5,15],[5,5]]]"); /* they overlap */

    assert_true(within(*state, &earth, POINT(2, 2), two));
    assert_true(within(*state, &earth, POINT(12, 12), two));
    assert_true(within(*state, &earth, LINE("[2,2],[8,8],[12,12]"), two));
    assert_false(within(*state, &earth, POINT(12, 2), two));
    assert_true(within(*state, &plane, LINE("[2,2],[12,12]"), two));
    assert_true(intersects(*state, &every,
                           "{\"type\":\"GeometryCollection\",\"geometries\":[" POINT(
                               50, 50) "," LINE("[1,1],[2,2]") "]}",
                           AREA(SQUARE)));
}

static void a_plane_is_what_its_numbers_say(void **state)
{
    assert_near(distance(*state, &plane, POINT(0, 0), POINT(300, 400)), 500, 0);
    assert_near(distance(*state, &plane, POINT(12, 5), AREA(SQUARE)), 2, 0);
    assert_near(area(*state, &plane, AREA(SQUARE "," HOLE)), 96, 0);
    assert_near(area(*state, &plane, AREA(TURNED)), 100, 0);
    assert_true(intersects(*state, &plane, LINE("[-5,5],[50,5]"), AREA(SQUARE)));
    assert_false(intersects(*state, &plane, LINE("[11,0],[11,10]"), AREA(SQUARE)));
}

static void what_crosses_itself_is_no_shape(void **state)
{
    static const char *const crossing[] = {
        AREA("[[0,0],[10,10],[10,0],[0,10],[0,0]]"),
        AREA(SQUARE ",[[5,5],[15,5],[15,8],[5,8],[5,5]]"),
        AREA(SQUARE ",[[20,20],[22,20],[22,22],[20,22],[20,20]]"),
        AREA("[[0,0],[0,0],[0,0],[0,0]]"),
        AREA("[[0,0],[5,5],[0,0],[0,0]]"),
    };

    for (size_t i = 0; i < ARRAY_LEN(crossing); i++) {
        for (size_t surface = 0; surface < 2; surface++) {
            struct search_reason reason = {""};
            struct search_shape *shape =
                shape_try(*state, surface ? &plane : &earth, crossing[i], &reason);

            search_shape_free(shape);
            if (shape)
                fail_msg("%s is a shape", crossing[i]);
            assert_contains(reason.text, "not valid");
        }
    }
}

static void positions_that_repeat_do_no_harm(void **state)
{
    assert_true(within(*state, &earth, POINT(5, 5),
                       AREA("[[0,0],[10,0],[10,0],[10,10],[0,10],[0,0],[0,0]]")));
    assert_near(distance(*state, &earth, LINE("[3,0],[3,0]"), POINT(4, 0)), 111319.491, 0.001);
    assert_near(distance(*state, &plane, LINE("[3,0],[3,0]"), POINT(4, 0)), 1, 0);
}

/* --- Convex rings, which are asked without S2 ------------------------------------------------- */

enum { CORNERS_MAX = 40 };

static double chance(struct random *random, double from, double to)
{
    return from + (to - from) * (double)random_below(random, 1000001) / 1e6;
}

/* Corners of an ellipse around a place, some pushed in so that not every ring is convex. The last
 * position is there so often that its shape is made the long way, if asked for. */
static struct search_figure ring_of(struct random *random, const struct search_rules *rules,
                                    bool repeated, struct search_position *positions,
                                    struct search_part *part)
{
    size_t corners = 3 + random_below(random, 8), count = 0;
    double x = chance(random, -175, 175), y = chance(random, -80, 80);
    double size = pow(10, chance(random, -5, 0.6));
    bool clockwise = random_below(random, 2) && rules->smaller;

    for (size_t i = 0; i < corners; i++) {
        double angle = 2 * M_PI * (double)(clockwise ? corners - i : i) / (double)corners;
        double far = random_below(random, 12) ? size : size / 3;

        positions[count++] =
            (struct search_position){x + far * cos(angle), y + far * sin(angle) / 2};
    }
    do
        positions[count++] = positions[0];
    while (repeated && count < CORNERS_MAX);
    *part = (struct search_part){SEARCH_RING, 0, (uint32_t)count};
    return (struct search_figure){.rules = *rules,
                                  .positions = positions,
                                  .parts = part,
                                  .position_count = count,
                                  .part_count = 1};
}

static void rings_are_asked_alike_whether_they_are_convex_or_not(void **state UNUSED)
{
    size_t plain = 0, inside = 0;

    for (uint64_t seed = 0; seed < 600; seed++) {
        const struct search_rules *rules = seed % 2 ? &every : &earth;
        CLEANUP(search_shape_free) struct search_shape *one = NULL, *other = NULL, *quick = NULL;
        struct search_position positions[CORNERS_MAX], repeated[CORNERS_MAX];
        struct search_part part, repeated_part;
        struct search_figure figure, repeated_figure;
        struct search_reason reason;
        struct random random;

        random_seed(&random, seed);
        figure = ring_of(&random, rules, false, positions, &part);
        random_seed(&random, seed);
        repeated_figure = ring_of(&random, rules, true, repeated, &repeated_part);
        one = search_shape_new(&figure, &reason);
        other = search_shape_new(&repeated_figure, &reason);
        quick = search_shape_new_plain(&figure);
        assert_null(search_shape_new_plain(&repeated_figure));
        assert_int_equal(one != NULL, other != NULL);
        if (!one)
            continue;
        plain += quick != NULL;
        assert_true(search_shape_area(one) == search_shape_area(other));
        for (size_t i = 0; i < 40; i++) {
            /* corners and places on edges among them */
            struct search_position a = positions[random_below(&random, part.count)];
            struct search_position b = positions[random_below(&random, part.count)];
            double how = i % 4 ? chance(&random, -0.5, 1.5) : (double)(i % 3) / 2;
            struct search_position at = {a.x + (b.x - a.x) * how, a.y + (b.y - a.y) * how};

            if (fabs(at.x) > 180 || fabs(at.y) > 90)
                continue;
            assert_int_equal(search_shape_has(one, at), search_shape_has(other, at));
            if (quick)
                assert_int_equal(search_shape_has(quick, at), search_shape_has(other, at));
            assert_true(search_shape_distance_to(one, at) == search_shape_distance_to(other, at));
            inside += search_shape_has(one, at);
        }
    }
    assert_in_range(plain, 100, 599);
    assert_in_range(inside, 1000, 23000);
}

static struct search_shape *plain_of(struct arena *arena, const struct search_rules *rules,
                                     const char *json)
{
    struct document_value value = value_of(arena, json);
    struct search_figure figure;
    struct search_reason reason;

    assert_true(search_figure_read(&value, rules, arena, &figure, &reason));
    return search_shape_new_plain(&figure);
}

static void what_takes_long_is_not_plain(void **state)
{
    CLEANUP(search_shape_free) struct search_shape *point = plain_of(*state, &earth, POINT(5, 5));
    CLEANUP(search_shape_free)
    struct search_shape *square = plain_of(*state, &earth, AREA("[[0,0],[1,0],[1,1],[0,1],[0,0]]"));
    CLEANUP(search_shape_free)
    struct search_shape *large =
        plain_of(*state, &earth, AREA("[[0,0],[40,0],[40,40],[0,40],[0,0]]"));
    static const char *const others[] = {
        LINE("[0,0],[1,1]"),
        AREA("[[0,0],[0,1],[1,1],[1,0],[0,0]]") /* the rest of the Earth */,
        AREA("[[0,0],[9,0],[9,9],[0,9],[0,0]],[[1,1],[2,1],[2,2],[1,1]]"),
        AREA("[[0,0],[9,0],[1,1],[0,9],[0,0]]"),
        AREA("[[0,0],[9,9],[9,0],[0,9],[0,0]]"),
    };

    assert_non_null(point);
    assert_true(search_shape_is_plain(point, 0) && search_shape_is_plain(point, 50000));
    assert_false(search_shape_is_plain(point, 5e6));
    assert_non_null(square);
    assert_true(search_shape_is_plain(square, 0));
    assert_false(search_shape_is_plain(square, 1));
    assert_non_null(large);
    assert_false(search_shape_is_plain(large, 0));
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_null(plain_of(*state, &earth, others[i]));
    assert_null(plain_of(*state, &plane, POINT(5, 5)));
}

/* All over the Earth, some of them next to each other, opposite each other or at a pole. */
static struct search_position position_random(struct random *random,
                                              const struct search_position *a)
{
    double far = pow(10, -(double)random_below(random, 8)); /* degrees */
    struct search_position at = {(double)random_below(random, 360001) / 1000 - 180,
                                 (double)random_below(random, 180001) / 1000 - 90};

    if (a && random_below(random, 2)) {
        at.x = fmax(-180, fmin(180, a->x + far * ((double)random_below(random, 2001) / 1000 - 1)));
        at.y = fmax(-90, fmin(90, a->y + far * ((double)random_below(random, 2001) / 1000 - 1)));
    } else if (a && !random_below(random, 4)) {
        at.x = a->x > 0 ? a->x - 180 : a->x + 180;
        at.y = -a->y;
    }
    return at;
}

static void bounds_of_a_distance_are_on_both_sides_of_it(void **state UNUSED)
{
    struct random random;

    random_seed(&random, 42);
    for (size_t i = 0; i < 100000; i++) {
        struct search_position a = position_random(&random, NULL), b = position_random(&random, &a);
        double metres = search_points_distance(a, b, &earth), least, most;

        search_points_bounds(a, b, &least, &most);
        if (!(least < metres && metres < most) || most - least > 0.0103 * metres + 0.01)
            fail_msg("%.9f,%.9f to %.9f,%.9f: %.6f, between %.6f and %.6f", a.x, a.y, b.x, b.y,
                     metres, least, most);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(distances_are_those_of_the_manual_and_of_surveyors),
        TEST(bounds_of_a_distance_are_on_both_sides_of_it),
        TEST(distances_over_the_date_line_are_short),
        TEST(distances_to_lines_and_polygons_are_to_what_is_nearest),
        TEST(areas_are_those_of_the_manual),
        TEST(a_clockwise_ring_is_all_the_rest),
        TEST(edges_belong_to_what_they_bound),
        TEST(holes_are_cut_out_whichever_way_they_go),
        TEST(polygons_may_lie_over_the_date_line_and_the_poles),
        TEST(several_polygons_are_one_shape),
        TEST(a_plane_is_what_its_numbers_say),
        TEST(what_crosses_itself_is_no_shape),
        TEST(positions_that_repeat_do_no_harm),
        TEST(rings_are_asked_alike_whether_they_are_convex_or_not),
        TEST(what_takes_long_is_not_plain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
