/* Cells against brute force: whatever two shapes do to each other, their cells must say that they
 * may. Shapes are made at random, of every kind, over the date line and the poles too; in a plane
 * what GEOS says of the same texts, without index or preparation, is the measure.
 *
 * A failure prints the seed; SEARCH_SEED=n tries that one again. SEARCH_SHAPES says how many shapes
 * there are: 10,000 unless it does. */
#include "search/shape.h"

#include "base/memory.h"
#include "base/random.h"
#include "document/json.h"
#include "support/check.h"
#include "support/documents.h"

#include <geos_c.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHAPES = 10000, QUERIES = 16, CORNERS_MAX = 12 };

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t number;

    return text && slice_to_uint64(slice_of_text(text), &number) ? number : otherwise;
}

static uint64_t seed_of(void)
{
    uint64_t seed;

    random_secret(&seed, sizeof seed);
    return number_of("SEARCH_SEED", seed >> 20);
}

static double between(struct random *random, double min, double max)
{
    return min + (max - min) * (double)(random_next(random) >> 11) / 9007199254740992.0;
}

/* A figure as GeoJSON and as well-known text. */
struct drawn {
    char json[2048], text[2048];
    struct search_shape *shape;
    uint64_t cells[SEARCH_CELLS_MAX];
    size_t cell_count;
};

struct world {
    struct search_rules rules;
    struct search_grid grid;
    double x, y; /* half of its sides */
};

static const struct world earth = {
    .rules = {.surface = SEARCH_EARTH}, .grid = {.surface = SEARCH_EARTH}, .x = 180, .y = 90};
static const struct world plane = {
    .rules = {.surface = SEARCH_PLANE},
    .grid = {.surface = SEARCH_PLANE, -800, -900, 1000, 950}, /* some of it is outside */
    .x = 1000,
    .y = 1000};

static void position_add(struct drawn *drawn, const struct world *world, bool first, double x,
                         double y)
{
    size_t json = strlen(drawn->json), text = strlen(drawn->text);

    if (world->rules.surface == SEARCH_EARTH) {
        y = fmax(-90, fmin(90, y));
        x = remainder(x, 360);
    }
    snprintf(drawn->json + json, sizeof drawn->json - json, "%s[%.17g,%.17g]", first ? "" : ",", x,
             y);
    snprintf(drawn->text + text, sizeof drawn->text - text, "%s%.17g %.17g", first ? "" : ",", x,
             y);
}

static void both_add(struct drawn *drawn, const char *json, const char *text)
{
    size_t json_at = strlen(drawn->json), text_at = strlen(drawn->text);

    snprintf(drawn->json + json_at, sizeof drawn->json - json_at, "%s", json);
    snprintf(drawn->text + text_at, sizeof drawn->text - text_at, "%s", text);
}

/* Corners around a middle, counter-clockwise, so that a ring never crosses itself. */
static void ring_add(struct drawn *drawn, const struct world *world, struct random *random,
                     double x, double y, double size)
{
    size_t corners = 3 + random_next(random) % (CORNERS_MAX - 3);
    double turn = between(random, 0, 2 * M_PI), first_x = 0, first_y = 0;

    for (size_t i = 0; i < corners; i++) {
        double angle = turn + 2 * M_PI * (double)i / (double)corners;
        double radius = size * between(random, 0.3, 1);
        double at_x = x + radius * cos(angle), at_y = y + radius * sin(angle);

        if (!i) {
            first_x = at_x;
            first_y = at_y;
        }
        position_add(drawn, world, !i, at_x, at_y);
    }
    position_add(drawn, world, false, first_x, first_y);
}

static void draw_at(struct drawn *drawn, const struct world *world, struct random *random, double x,
                    double y, double size)
{
    uint64_t kind = random_next(random) % 4;

    *drawn = (struct drawn){0};
    if (kind == 0) {
        both_add(drawn, "{\"type\":\"Polygon\",\"coordinates\":[[", "POLYGON((");
        ring_add(drawn, world, random, x, y, size);
        both_add(drawn, "]]}", "))");
    } else if (kind == 1) {
        size_t count = 2 + random_next(random) % CORNERS_MAX;

        both_add(drawn, "{\"type\":\"LineString\",\"coordinates\":[", "LINESTRING(");
        for (size_t i = 0; i < count; i++)
            position_add(drawn, world, !i, x + between(random, -size, size),
                         y + between(random, -size, size));
        both_add(drawn, "]}", ")");
    } else {
        both_add(drawn, "{\"type\":\"Point\",\"coordinates\":", "POINT(");
        position_add(drawn, world, true, x, y);
        both_add(drawn, "}", ")");
    }
}

static void draw(struct drawn *drawn, const struct world *world, struct random *random, double size)
{
    double x = between(random, -world->x, world->x), y = between(random, -world->y, world->y);

    draw_at(drawn, world, random, x, y, size);
}

static void shape_make(struct drawn *drawn, const struct world *world)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value value = value_of(arena, drawn->json);
    struct search_reason reason;
    struct search_figure figure;

    if (!search_figure_read(&value, &world->rules, arena, &figure, &reason))
        fail_msg("%s: %s", drawn->json, reason.text);
    drawn->shape = search_shape_new(&figure, &reason); /* NULL: it degenerates at a pole */
    if (drawn->shape)
        drawn->cell_count = search_shape_cells(drawn->shape, &world->grid, drawn->cells);
}

static bool ranges_have(const struct search_cell_range *ranges, size_t count, uint64_t cell)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (ranges[middle].last < cell)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && ranges[low].first <= cell;
}

/* circle: what is asked for, whose points outside are passed over; NULL: it is none. */
static bool is_hit(const struct drawn *drawn, const struct search_cell_range *ranges, size_t count,
                   const struct search_circle *circle)
{
    for (size_t i = 0; i < drawn->cell_count; i++)
        if (ranges_have(ranges, count, drawn->cells[i]) &&
            !(circle && search_circle_leaves_out(circle, drawn->cells[i])))
            return true;
    return false;
}

/* What is so close to a point; NULL: it is none, or everything is. */
static const struct search_circle *circle_of(const struct drawn *drawn, const struct world *world,
                                             double far, struct search_circle *circle)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value value = value_of(arena, drawn->json);
    struct search_position middle;

    return far > 0 && world->rules.surface == SEARCH_EARTH &&
                   search_point_read(&value, &world->rules, &middle) &&
                   search_circle_make(middle, far, &world->rules, circle)
               ? circle
               : NULL;
}

static void silent(const char *message UNUSED, void *self UNUSED)
{
}

/* What GEOS says of two texts. */
static void geos_check(const struct drawn *a, const struct drawn *b, uint64_t seed)
{
    GEOSContextHandle_t geos = GEOS_init_r();
    GEOSWKTReader *reader = GEOSWKTReader_create_r(geos);
    GEOSGeometry *one = GEOSWKTReader_read_r(geos, reader, a->text);
    GEOSGeometry *other = GEOSWKTReader_read_r(geos, reader, b->text);
    double distance;

    (void)GEOSContext_setErrorMessageHandler_r(geos, silent, NULL);
    assert_non_null(one);
    assert_non_null(other);
    if ((GEOSIntersects_r(geos, one, other) == 1) != search_shape_intersects(a->shape, b->shape) ||
        (GEOSCovers_r(geos, other, one) == 1) != search_shape_within(a->shape, b->shape) ||
        GEOSDistance_r(geos, one, other, &distance) != 1 ||
        fabs(distance - search_shape_distance(a->shape, b->shape)) > 1e-9)
        fail_msg("seed %llu: GEOS says something else of %s and %s", (unsigned long long)seed,
                 a->text, b->text);
    GEOSGeom_destroy_r(geos, one);
    GEOSGeom_destroy_r(geos, other);
    GEOSWKTReader_destroy_r(geos, reader);
    GEOS_finish_r(geos);
}

/* Sizes from a millionth of the world to a third of it. */
static double size_random(struct random *random, const struct world *world)
{
    return world->y * pow(10, between(random, -6, -0.5));
}

static void compare(const struct world *world, uint64_t seed, size_t count)
{
    struct drawn *shapes = memory_alloc(memory_array_size(count, sizeof *shapes));
    struct search_cell_range ranges[SEARCH_RANGES_MAX];
    struct random random;

    random_seed(&random, seed);
    for (size_t i = 0; i < count; i++) {
        draw(&shapes[i], world, &random, size_random(&random, world));
        shape_make(&shapes[i], world);
    }
    for (size_t q = 0; q < QUERIES; q++) {
        struct drawn query;
        struct search_circle circle;
        const struct search_circle *within;
        double far = q % 2 ? size_random(&random, world) : 0;
        size_t range_count;

        if (world->rules.surface == SEARCH_EARTH)
            far *= 100000; /* degrees, roughly, as metres */
        draw(&query, world, &random, size_random(&random, world));
        shape_make(&query, world);
        if (!query.shape)
            continue;
        range_count = search_shape_near(query.shape, &world->grid, far, ranges);
        within = circle_of(&query, world, far, &circle);
        assert_true(range_count <= SEARCH_RANGES_MAX);
        for (size_t i = 0; i < count; i++) {
            bool hit, meets;

            if (!shapes[i].shape)
                continue;
            hit = is_hit(&shapes[i], ranges, range_count, within);
            meets = far > 0 ? search_shape_distance(shapes[i].shape, query.shape) <= far
                            : search_shape_intersects(shapes[i].shape, query.shape);
            if (!far && search_shape_within(shapes[i].shape, query.shape) && !meets)
                fail_msg("seed %llu: %s is within %s and does not meet it",
                         (unsigned long long)seed, shapes[i].json, query.json);
            if (meets && !hit)
                fail_msg("seed %llu: the cells of %s and %s (%g) are apart",
                         (unsigned long long)seed, shapes[i].json, query.json, far);
            if (world->rules.surface == SEARCH_PLANE && i % 10 == 0)
                geos_check(&shapes[i], &query, seed);
        }
        search_shape_free(query.shape);
    }
    for (size_t i = 0; i < count; i++)
        search_shape_free(shapes[i].shape);
    memory_free(shapes);
}

/* Some thousands at a time, so that many do not take much memory. */
static void compare_all(const struct world *world)
{
    uint64_t count = number_of("SEARCH_SHAPES", SHAPES), seed = seed_of();

    for (; count; count -= MIN(count, (uint64_t)SHAPES))
        compare(world, seed++, (size_t)MIN(count, (uint64_t)SHAPES));
}

static void cells_on_the_earth_leave_nothing_out(void **state UNUSED)
{
    compare_all(&earth);
}

static void cells_of_a_plane_leave_nothing_out(void **state UNUSED)
{
    compare_all(&plane);
}

/* What queries mostly ask for, and what is close to it, where the faces of S2's cube meet as well
 * as anywhere: an edge, a corner, a pole, the date line. */
static void cells_of_small_shapes_leave_nothing_out(void **state UNUSED)
{
    static const double places[][2] = {{45, 0},  {-135, 10}, {45, 35.264389682754654},   {0, 45},
                                       {90, 45}, {180, -20}, {-45, -35.264389682754654}, {30, 90},
                                       {0, -90}};
    enum { ROUNDS = 600, AROUND = 60 };
    struct search_cell_range ranges[SEARCH_RANGES_MAX];
    uint64_t seed = seed_of();
    struct random random;

    random_seed(&random, seed);
    for (size_t round = 0; round < ROUNDS; round++) {
        size_t place = round % (ARRAY_LEN(places) * 2);
        bool anywhere = place >= ARRAY_LEN(places);
        double x = anywhere ? between(&random, -180, 180) : places[place][0];
        double y = anywhere ? between(&random, -80, 80) : places[place][1];
        double size = pow(10, between(&random, -5, 1.2)), metres = 0;
        struct drawn query;
        struct search_circle circle;
        const struct search_circle *within;
        size_t range_count;

        draw_at(&query, &earth, &random, x + between(&random, -size, size),
                y + between(&random, -size, size), size);
        shape_make(&query, &earth);
        if (!query.shape)
            continue;
        if (search_shape_positions(query.shape) == 1 || round % 7 == 0)
            metres = size * 100000;
        range_count = search_shape_near(query.shape, &earth.grid, metres, ranges);
        within = circle_of(&query, &earth, metres, &circle);
        for (size_t i = 0; i < AROUND; i++) {
            struct drawn other;
            bool meets;

            draw_at(&other, &earth, &random, x + between(&random, -2 * size, 2 * size),
                    y + between(&random, -2 * size, 2 * size), size / 8);
            shape_make(&other, &earth);
            if (!other.shape)
                continue;
            meets = metres > 0 ? search_shape_distance(other.shape, query.shape) <= metres
                               : search_shape_intersects(other.shape, query.shape);
            if (meets && !is_hit(&other, ranges, range_count, within))
                fail_msg("seed %llu: the cells of %s and %s (%g) are apart",
                         (unsigned long long)seed, other.json, query.json, metres);
            search_shape_free(other.shape);
        }
        search_shape_free(query.shape);
    }
}

/* Of 90 by 90 points a square has 11 by 11. */
static void cells_are_not_far_from_what_is_so(void **state UNUSED)
{
    static const struct world *const worlds[] = {&earth, &plane};

    for (size_t w = 0; w < ARRAY_LEN(worlds); w++) {
        struct search_cell_range ranges[SEARCH_RANGES_MAX];
        struct drawn query = {
            .json = "{\"type\":\"Polygon\",\"coordinates\":[[[20,20],[30,20],[30,30],[20,30],"
                    "[20,20]]]}"};
        size_t range_count, hits = 0;

        shape_make(&query, worlds[w]);
        range_count = search_shape_near(query.shape, &worlds[w]->grid, 0, ranges);
        for (int i = 0; i < 90 * 90; i++) {
            struct drawn point = {0};

            snprintf(point.json, sizeof point.json, "{\"type\":\"Point\",\"coordinates\":[%d,%d]}",
                     i % 90, i / 90);
            shape_make(&point, worlds[w]);
            hits += is_hit(&point, ranges, range_count, NULL);
            search_shape_free(point.shape);
        }
        search_shape_free(query.shape);
        assert_in_range(hits, 11 * 11, 3 * 11 * 11);
    }
}

/* On the ellipsoid and on the sphere: all that are within stay, and of the others none that is a
 * hundredth further away. */
static void circles_leave_out_the_points_that_are_not_in_them(void **state UNUSED)
{
    static const struct world sphere = {
        .rules = {.surface = SEARCH_EARTH, .every_type = true, .round = true},
        .grid = {.surface = SEARCH_EARTH}};
    static const struct world *const worlds[] = {&earth, &sphere};
    uint64_t seed = seed_of();
    struct random random;

    random_seed(&random, seed);
    for (size_t i = 0; i < 20000; i++) {
        const struct world *world = worlds[i % 2];
        double size = pow(10, between(&random, -5, 1)), x = between(&random, -170, 170);
        double y = between(&random, -80, 80), metres, far;
        struct search_position middle = {x, y}, at = {x + between(&random, -size, size),
                                                      fmax(-90, fmin(90, y + size))};
        struct search_circle circle;
        struct drawn point = {0};
        bool out;

        snprintf(point.json, sizeof point.json,
                 "{\"type\":\"Point\",\"coordinates\":[%.15g,%.15g]}", at.x, at.y);
        shape_make(&point, world);
        metres = search_points_distance(middle, at, &world->rules);
        far = metres * between(&random, 0.97, 1.03);
        assert_true(search_circle_make(middle, far, &world->rules, &circle));
        out = search_circle_leaves_out(&circle, point.cells[0]);
        if (metres <= far ? out : !out && metres > far * 1.011 + 0.1)
            fail_msg("seed %llu: %s is %.3f m from %.9f,%.9f, and %s %.3f m",
                     (unsigned long long)seed, point.json, metres, x, y,
                     out ? "left out of" : "not left out of", far);
        search_shape_free(point.shape);
    }
    assert_false(search_circle_make((struct search_position){0, 0}, 3e7, &earth.rules,
                                    &(struct search_circle){0}));
    assert_false(search_circle_make((struct search_position){0, 0}, NAN, &earth.rules,
                                    &(struct search_circle){0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_on_the_earth_leave_nothing_out),
        cmocka_unit_test(cells_of_a_plane_leave_nothing_out),
        cmocka_unit_test(cells_of_small_shapes_leave_nothing_out),
        cmocka_unit_test(cells_are_not_far_from_what_is_so),
        cmocka_unit_test(circles_leave_out_the_points_that_are_not_in_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
