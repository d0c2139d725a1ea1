/* Shapes on the Earth. S2 (Google's library) has what is exact about points, lines and polygons of
 * a sphere: crossings, what lies within what, the nearest edges, cells. It takes latitude and
 * longitude as they are, as if the Earth were round, which is what both Cosmos DB and MongoDB do
 * with edges: they are great circles. Lengths and areas are those of the ellipsoid, by
 * GeographicLib, between the two places that are nearest on the sphere: where one of them is on a
 * line or polygon the nearest place of the ellipsoid may be another, by a part in some hundred
 * thousand of the distance.
 *
 * S2 is C++, and so is this file. Nothing in it throws but at the end of memory. Its assertions
 * are left to the library, which is compiled without: whatever came from outside is validated here
 * before anything else is asked of it. */
#include "search/outline_private.h"
#include "search/shape_private.h"

#undef NDEBUG
#define NDEBUG 1

/* gcc 12 does not follow an inlined vector of Abseil through a move. */
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/* Under sanitizers Abseil's containers have members more, which those in Debian's library have not:
 * we must see the same structures as it does. */
#include <absl/base/config.h>
#undef ABSL_HAVE_ADDRESS_SANITIZER
#undef ABSL_HAVE_HWADDRESS_SANITIZER
#undef ABSL_HAVE_LEAK_SANITIZER
#undef ABSL_HAVE_MEMORY_SANITIZER
#undef ABSL_HAVE_THREAD_SANITIZER

#include <GeographicLib/Geodesic.hpp>
#include <GeographicLib/PolygonArea.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <s2/mutable_s2shape_index.h>
#include <s2/s2boolean_operation.h>
#include <s2/s2cap.h>
#include <s2/s2closest_edge_query.h>
#include <s2/s2contains_point_query.h>
#include <s2/s2edge_distances.h>
#include <s2/s2error.h>
#include <s2/s2latlng.h>
#include <s2/s2loop.h>
#include <s2/s2point_vector_shape.h>
#include <s2/s2polygon.h>
#include <s2/s2polyline.h>
#include <s2/s2region_coverer.h>
#include <s2/s2shape_index_buffered_region.h>
#include <s2/s2shape_index_region.h>
#include <vector>

namespace {

/* The smallest radius of curvature of the ellipsoid, in metres: along the meridian at the equator.
 * No way of so many metres is a larger angle between latitudes and longitudes than those divided by
 * it. */
constexpr double RADIUS_MIN = 6335439;
/* The largest, at the poles: no way is longer than its angle on the sphere times this. */
constexpr double RADIUS_MAX = 6399594;
constexpr double MARGIN = 1 + 1e-6;

/* Radians, more than from the middle of a smallest cell to any point in it: six centimetres, where
 * such cells have one. */
constexpr double LEAF_ANGLE = 1e-8;

/* Radians of a circle that has an outline. */
constexpr double CIRCLE_MAX = 0.2;

/* Positions of what is widened edge by edge. Around more of them goes a circle: widening a dozen
 * takes two milliseconds, a thousand ten. */
constexpr size_t BUFFERED_MAX = 8;

/* Cosine of how far corners of a ring may be from its first one where covering it is quick: an eighth
 * of a radian, so that all are within the radius that outlines may have. */
constexpr double PLAIN_COSINE_MIN = 0.9922;

/* Corners of a ring that are tried for being convex, each with every edge. */
constexpr uint32_t CONVEX_POSITIONS_MAX = 17;

S2Point point_of(const search_position &position)
{
    return S2LatLng::FromDegrees(position.y, position.x).Normalized().ToPoint();
}

double metres_between(const search_position &a, const search_position &b, bool round)
{
    double metres;

    if (round)
        return point_of(a).Angle(point_of(b)) * SEARCH_RADIUS_ROUND;
    GeographicLib::Geodesic::WGS84().Inverse(a.y, a.x, b.y, b.x, metres);
    return metres;
}

search_position position_of(const S2Point &point)
{
    S2LatLng degrees(point);

    return {degrees.lng().degrees(), degrees.lat().degrees()};
}

/* Positions as points, those that repeat the one before them left out. */
std::vector<S2Point> points_of(const search_figure *figure, const search_part &part, bool ring)
{
    std::vector<S2Point> points;

    points.reserve(part.count);
    for (uint32_t i = 0; i < part.count; i++) {
        S2Point point = point_of(figure->positions[part.first + i]);

        if (points.empty() || points.back() != point)
            points.push_back(point);
    }
    if (ring && points.size() > 1 && points.front() == points.back())
        points.pop_back();
    return points;
}

bool refuse(search_reason *reason, const char *what, const std::string &why)
{
    snprintf(reason->text, sizeof reason->text, "The %s input is not valid: %s.", what,
             why.c_str());
    return false;
}

} // namespace

namespace {

/* How S2 takes a ring. */
std::unique_ptr<S2Loop> loop_of(const std::vector<S2Point> &points)
{
    auto loop = std::make_unique<S2Loop>();

    loop->set_s2debug_override(S2Debug::DISABLE);
    loop->Init(points);
    return loop;
}

} // namespace

/* A ring that is convex for sure is kept as its corners, and becomes what S2 takes when somebody asks
 * what corners do not tell. */
struct search_earth {
    search_position position; /* of a single point */
    bool single = false, round = false, smaller = false;
    std::vector<S2Point> points;
    std::vector<S2Point> corners;      /* of a convex ring, counterclockwise; none: it is not one, */
    std::vector<search_position> ring; /* and as it was given */
    std::vector<std::unique_ptr<S2Polyline>> lines;
    std::unique_ptr<S2Polygon> area;
    double metres = 0; /* square metres */
    size_t positions = 0;
    std::unique_ptr<MutableS2ShapeIndex> index;

    void ring_whole();

    const MutableS2ShapeIndex &shapes()
    {
        if (index)
            return *index;
        index = std::make_unique<MutableS2ShapeIndex>();
        if (!corners.empty() && !area)
            ring_whole();
        if (!points.empty())
            index->Add(std::make_unique<S2PointVectorShape>(points));
        for (const auto &line : lines)
            index->Add(std::make_unique<S2Polyline::Shape>(line.get()));
        if (area)
            index->Add(std::make_unique<S2Polygon::Shape>(area.get()));
        return *index;
    }
};

namespace {

bool loop_make(const search_figure *figure, const search_part &part, bool smaller,
               std::unique_ptr<S2Loop> *ret_loop, search_reason *reason)
{
    std::vector<S2Point> points = points_of(figure, part, true);
    S2Error error;

    if (points.size() < 3)
        return refuse(reason, "Polygon", "a ring has fewer than three different points");
    auto loop = loop_of(points);
    if (loop->FindValidationError(&error))
        return refuse(reason, "Polygon", error.text());
    if (smaller)
        loop->Normalize();
    *ret_loop = std::move(loop);
    return true;
}

/* Square metres of a ring: what is to the left of it, or the smaller side. */
double ring_area(const search_figure *figure, const search_part &part, bool smaller)
{
    GeographicLib::PolygonArea area(GeographicLib::Geodesic::WGS84());
    double perimeter, metres;

    for (uint32_t i = 0; i + 1 < part.count; i++)
        area.AddPoint(figure->positions[part.first + i].y, figure->positions[part.first + i].x);
    area.Compute(false, smaller, perimeter, metres);
    return smaller ? std::abs(metres) : metres;
}

/* A ring and its holes, parts[at] on. */
bool polygon_make(const search_figure *figure, size_t *at, double *metres,
                  std::unique_ptr<S2Polygon> *ret_polygon, search_reason *reason)
{
    std::vector<std::unique_ptr<S2Loop>> loops(1);
    auto polygon = std::make_unique<S2Polygon>();
    const search_part &outer = figure->parts[*at];
    S2Error error;

    if (!loop_make(figure, outer, figure->rules.smaller, &loops[0], reason))
        return false;
    *metres += ring_area(figure, outer, figure->rules.smaller);
    const S2Loop *ring = loops[0].get();
    for ((*at)++; *at < figure->part_count && figure->parts[*at].kind == SEARCH_HOLE; (*at)++) {
        loops.emplace_back();
        if (!loop_make(figure, figure->parts[*at], true, &loops.back(), reason))
            return false;
        *metres -= ring_area(figure, figure->parts[*at], true);
    }
    polygon->set_s2debug_override(S2Debug::DISABLE);
    polygon->InitNested(std::move(loops));
    /* a ring by itself was found valid */
    if (polygon->num_loops() > 1 && polygon->FindValidationError(&error))
        return refuse(reason, "Polygon", error.text());
    for (int i = 0; i < polygon->num_loops(); i++)
        if (polygon->loop(i)->depth() != (polygon->loop(i) == ring ? 0 : 1))
            return refuse(reason, "Polygon", "a hole is not within the first ring");
    *ret_polygon = std::move(polygon);
    return true;
}

bool line_make(const search_figure *figure, const search_part &part, search_earth *earth,
               search_reason *reason)
{
    std::vector<S2Point> points = points_of(figure, part, false);
    S2Error error;

    if (points.size() < 2) { /* a line that goes nowhere */
        earth->points.push_back(points[0]);
        return true;
    }
    auto line = std::make_unique<S2Polyline>();
    line->set_s2debug_override(S2Debug::DISABLE);
    line->Init(points);
    if (line->FindValidationError(&error))
        return refuse(reason, "LineString", error.text());
    earth->lines.push_back(std::move(line));
    return true;
}

bool parts_make(const search_figure *figure, search_earth *earth, search_reason *reason)
{
    std::vector<std::unique_ptr<S2Polygon>> polygons;

    for (size_t at = 0; at < figure->part_count;) {
        const search_part &part = figure->parts[at];

        if (part.kind == SEARCH_POINT) {
            earth->points.push_back(point_of(figure->positions[part.first]));
            at++;
        } else if (part.kind == SEARCH_LINE) {
            if (!line_make(figure, part, earth, reason))
                return false;
            at++;
        } else {
            polygons.emplace_back();
            if (!polygon_make(figure, &at, &earth->metres, &polygons.back(), reason))
                return false;
        }
    }
    if (polygons.size() == 1)
        earth->area = std::move(polygons[0]);
    else if (!polygons.empty())
        earth->area = S2Polygon::DestructiveUnion(std::move(polygons));
    return true;
}

/* --- Convex rings ---------------------------------------------------------------------------- */

/* On which side of the great circle from a to b, whose product is ab, a point is: > 0: on the left,
 * < 0: on the right, 0: arithmetic of single products does not tell. It is off by less than two units
 * of the last place (S2's bound for it), and corners of a metre are a thousand times as far apart. */
constexpr double SIDE_ERROR = 1e-15;

int side_of(const S2Point &ab, const S2Point &point)
{
    double product = ab.DotProd(point);

    return product > SIDE_ERROR ? 1 : product < -SIDE_ERROR ? -1 : 0;
}

/* Is every corner to the left of every edge that it is no end of? Then all edges are edges of the
 * corners' hull, so that none crosses another and the ring is what is to the left of all of them. */
bool is_convex(const std::vector<S2Point> &corners)
{
    for (size_t i = 0; i < corners.size(); i++) {
        size_t next = i + 1 == corners.size() ? 0 : i + 1;
        S2Point ab = corners[i].CrossProd(corners[next]);

        for (size_t k = 0; k < corners.size(); k++)
            if (k != i && k != next && side_of(ab, corners[k]) <= 0)
                return false;
    }
    return corners.size() >= 3;
}

/* False: the figure is something else, or may be, and is made the long way. */
bool convex_make(const search_figure *figure, search_earth *earth)
{
    const search_part &part = figure->parts[0];

    if (figure->part_count != 1 || part.kind != SEARCH_RING || part.count > CONVEX_POSITIONS_MAX)
        return false;
    std::vector<S2Point> corners = points_of(figure, part, true);
    if (!is_convex(corners)) {
        std::reverse(corners.begin(), corners.end());
        if (!figure->rules.smaller || !is_convex(corners))
            return false; /* one that goes the other way round is the rest of the Earth */
    }
    earth->corners = std::move(corners);
    earth->ring.assign(figure->positions + part.first, figure->positions + part.first + part.count);
    earth->smaller = figure->rules.smaller;
    return true;
}

/* > 0: the point is in it for sure, < 0: it is not. */
int convex_has(const std::vector<S2Point> &corners, const S2Point &point)
{
    int least = 1;

    for (size_t i = 0; i < corners.size() && least >= 0; i++)
        least = std::min(least, side_of(corners[i].CrossProd(
                                            corners[i + 1 == corners.size() ? 0 : i + 1]),
                                        point));
    return least;
}

/* --- Asking ---------------------------------------------------------------------------------- */

/* What is on the edge is in. */
S2BooleanOperation::Options closed()
{
    S2BooleanOperation::Options options;

    options.set_polygon_model(S2BooleanOperation::PolygonModel::CLOSED);
    options.set_polyline_model(S2BooleanOperation::PolylineModel::CLOSED);
    return options;
}

bool has_point(search_earth *earth, const S2Point &point)
{
    S2ContainsPointQueryOptions options(S2VertexModel::CLOSED);
    int side = earth->corners.empty() ? 0 : convex_has(earth->corners, point);

    if (side)
        return side > 0;
    S2ContainsPointQuery<MutableS2ShapeIndex> query(&earth->shapes(), options);

    return query.Contains(point);
}

std::unique_ptr<search_earth> earth_begin(const search_figure *figure)
{
    auto earth = std::make_unique<search_earth>();

    earth->round = figure->rules.round;
    earth->positions = figure->position_count;
    earth->single = figure->part_count == 1 && figure->parts[0].kind == SEARCH_POINT;
    return earth;
}

/* What needs nothing of S2's indexes. False: it is something else. */
bool plain_make(const search_figure *figure, search_earth *earth)
{
    if (!earth->single)
        return convex_make(figure, earth);
    earth->position = figure->positions[figure->parts[0].first];
    earth->points.push_back(point_of(earth->position));
    return true;
}

/* The only part of a figure. */
search_figure ring_figure(const search_earth *earth, search_part *part)
{
    search_figure figure = {};

    *part = {SEARCH_RING, 0, (uint32_t)earth->ring.size()};
    figure.positions = earth->ring.data();
    figure.position_count = earth->ring.size();
    figure.parts = part;
    figure.part_count = 1;
    return figure;
}

} // namespace

/* The same as of any other ring, which was found valid. */
void search_earth::ring_whole()
{
    std::vector<std::unique_ptr<S2Loop>> loops;
    search_part part;
    search_figure figure = ring_figure(this, &part);

    loops.push_back(loop_of(points_of(&figure, part, true)));
    if (smaller)
        loops[0]->Normalize();
    area = std::make_unique<S2Polygon>();
    area->set_s2debug_override(S2Debug::DISABLE);
    area->InitNested(std::move(loops));
}

struct search_earth *search_earth_new(const struct search_figure *figure,
                                      struct search_reason *ret_reason)
{
    auto earth = earth_begin(figure);

    if (!plain_make(figure, earth.get()) && !parts_make(figure, earth.get(), ret_reason))
        return nullptr;
    return earth.release();
}

struct search_earth *search_earth_new_plain(const struct search_figure *figure)
{
    auto earth = earth_begin(figure);

    return plain_make(figure, earth.get()) ? earth.release() : nullptr;
}

bool search_earth_is_plain(struct search_earth *earth, double distance)
{
    if (earth->single)
        return distance / RADIUS_MIN * MARGIN <= CIRCLE_MAX;
    for (const S2Point &corner : earth->corners)
        if (!(corner.DotProd(earth->corners[0]) > PLAIN_COSINE_MIN))
            return false;
    return !earth->corners.empty() && distance <= 0;
}

void search_earth_free(struct search_earth *earth)
{
    delete earth;
}

double search_earth_area(struct search_earth *earth)
{
    if (earth->corners.empty())
        return earth->metres;
    search_part part;
    search_figure figure = ring_figure(earth, &part);

    return ring_area(&figure, part, earth->smaller);
}

bool search_earth_within(struct search_earth *inner, struct search_earth *outer)
{
    if (inner->single)
        return has_point(outer, inner->points[0]);
    return S2BooleanOperation::Contains(outer->shapes(), inner->shapes(), closed());
}

bool search_earth_has(struct search_earth *earth, struct search_position point)
{
    return has_point(earth, point_of(point));
}

bool search_earth_intersects(struct search_earth *a, struct search_earth *b)
{
    if (a->single)
        return has_point(b, a->points[0]);
    if (b->single)
        return has_point(a, b->points[0]);
    return S2BooleanOperation::Intersects(a->shapes(), b->shapes(), closed());
}

namespace {

/* All of the Earth. */
std::vector<S2CellId> faces()
{
    std::vector<S2CellId> found;

    for (int face = 0; face < S2CellId::kNumFaces; face++)
        found.push_back(S2CellId::FromFace(face));
    return found;
}

} // namespace

double search_earth_between(struct search_position a, struct search_position b, bool round)
{
    return metres_between(a, b, round);
}

/* A way on the ellipsoid is, piece by piece, between the two radii times the same way on the sphere.
 * So the shortest one is at least the smaller radius times the shortest there, and at most the
 * larger times it. The margins are for rounding, a millimetre where points are close. */
void search_earth_bounds(struct search_position a, struct search_position b, double *ret_least,
                         double *ret_most)
{
    double angle = point_of(a).Angle(point_of(b));

    *ret_least = angle * RADIUS_MIN / MARGIN - 0.001;
    *ret_most = angle * RADIUS_MAX * MARGIN + 0.001;
}

bool search_earth_circle(struct search_position middle, double distance, bool round,
                         struct search_circle *ret_circle)
{
    double angle = distance / (round ? SEARCH_RADIUS_ROUND : RADIUS_MIN) * MARGIN + LEAF_ANGLE;

    if (!(distance >= 0 && angle < M_PI))
        return false;
    S2Point point = point_of(middle);
    double straight = 2 * std::sin(angle / 2);

    *ret_circle = {point.x(), point.y(), point.z(), straight * straight};
    return true;
}

bool search_earth_leaves_out(const struct search_circle *circle, uint64_t cell)
{
    S2CellId id(cell);

    return id.is_valid() && id.is_leaf() &&
           (id.ToPoint() - S2Point(circle->x, circle->y, circle->z)).Norm2() > circle->beyond;
}

double search_earth_distance_to(struct search_earth *earth, struct search_position position)
{
    if (earth->single)
        return metres_between(earth->position, position, earth->round);

    S2Point point = point_of(position);
    S2ClosestEdgeQuery query(&earth->shapes());
    S2ClosestEdgeQuery::PointTarget target(point);
    auto nearest = query.FindClosestEdge(&target);

    if (nearest.is_interior() || nearest.distance() == S1ChordAngle::Zero())
        return 0;
    return metres_between(position_of(query.Project(point, nearest)), position, earth->round);
}

double search_earth_distance(struct search_earth *a, struct search_earth *b)
{
    if (b->single)
        return search_earth_distance_to(a, b->position);
    if (a->single)
        return search_earth_distance_to(b, a->position);

    S2ClosestEdgeQuery from_a(&a->shapes()), from_b(&b->shapes());
    S2ClosestEdgeQuery::ShapeIndexTarget whole(&b->shapes());
    auto in_a = from_a.FindClosestEdge(&whole);

    if (in_a.is_interior() || in_a.distance() == S1ChordAngle::Zero())
        return 0;
    S2Shape::Edge edge_a = from_a.GetEdge(in_a);
    S2ClosestEdgeQuery::EdgeTarget target(edge_a.v0, edge_a.v1);
    auto in_b = from_b.FindClosestEdge(&target);

    if (in_b.is_interior() || in_b.distance() == S1ChordAngle::Zero())
        return 0;
    S2Shape::Edge edge_b = from_b.GetEdge(in_b);
    auto places = S2::GetEdgePairClosestPoints(edge_a.v0, edge_a.v1, edge_b.v0, edge_b.v1);

    return metres_between(position_of(places.first), position_of(places.second), a->round);
}

namespace {

/* The edges of a shape, or of what is within an angle of a point. False: it is too large, has too
 * many, or is the far side of its edges. */
bool outline_of(search_earth *earth, double angle, search_outline *ret_outline)
{
    S2Point middle;
    double radius;

    if (angle > 0) {
        if (!earth->single || angle > CIRCLE_MAX)
            return false;
        search_outline_circle(earth->points[0], angle, ret_outline);
        return true;
    }
    if (earth->single || earth->positions > SEARCH_OUTLINE_EDGES_MAX)
        return false; /* a point has one cell, and needs no outline */
    for (size_t i = 0; i < earth->corners.size(); i++)
        ret_outline->edges.emplace_back(
            earth->corners[i], earth->corners[i + 1 == earth->corners.size() ? 0 : i + 1]);
    for (int i = 0; earth->corners.empty() && earth->area && i < earth->area->num_loops(); i++)
        for (int j = 0; j < earth->area->loop(i)->num_vertices(); j++)
            ret_outline->edges.emplace_back(earth->area->loop(i)->vertex(j),
                                            earth->area->loop(i)->vertex(j + 1));
    ret_outline->ring_edges = ret_outline->edges.size();
    for (const auto &line : earth->lines)
        for (int i = 0; i + 1 < line->num_vertices(); i++)
            ret_outline->edges.emplace_back(line->vertex(i), line->vertex(i + 1));
    for (const S2Point &point : earth->points)
        ret_outline->edges.emplace_back(point, point);
    return search_outline_middle(*ret_outline, &middle, &radius) &&
           !(earth->corners.empty() && earth->area && earth->area->Contains(-middle));
}

} // namespace

size_t search_earth_near(struct search_earth *earth, double distance,
                         uint64_t cells[SEARCH_CELLS_MAX])
{
    search_outline outline;
    size_t count = 0;

    if (outline_of(earth, distance / RADIUS_MIN * MARGIN, &outline))
        count = search_outline_cells(outline, SEARCH_CELLS_OF_QUERY, cells);
    return count ? count : search_earth_cells(earth, distance, SEARCH_CELLS_OF_QUERY, cells);
}

size_t search_earth_cells(struct search_earth *earth, double distance, size_t max,
                          uint64_t cells[SEARCH_CELLS_MAX])
{
    double angle = distance / RADIUS_MIN * MARGIN;
    S2RegionCoverer coverer;
    std::vector<S2CellId> found;

    if (earth->single && distance <= 0) {
        cells[0] = S2CellId(earth->points[0]).id();
        return 1;
    }
    coverer.mutable_options()->set_max_cells((int)max);
    coverer.mutable_options()->set_level_mod(SEARCH_LEVEL_STEP);
    if (!(angle < M_PI)) {
        found = faces();
    } else if (distance <= 0) {
        auto region = MakeS2ShapeIndexRegion(&earth->shapes());

        coverer.GetCovering(region, &found);
    } else if (earth->single) {
        coverer.GetCovering(S2Cap(earth->points[0], S1Angle::Radians(angle)), &found);
    } else if (earth->shapes().num_shape_ids() > 1 || earth->positions > BUFFERED_MAX) {
        S2Cap around = MakeS2ShapeIndexRegion(&earth->shapes()).GetCapBound();

        coverer.GetCovering(around.Expanded(S1Angle::Radians(angle)), &found);
    } else {
        S2ShapeIndexBufferedRegion region(&earth->shapes(),
                                          S1ChordAngle(S1Angle::Radians(angle)));

        coverer.GetCovering(region, &found);
    }
    if (found.size() > SEARCH_CELLS_MAX) { /* the coverer may exceed its maximum */
        found = faces();
    }
    for (size_t i = 0; i < found.size(); i++)
        cells[i] = found[i].id();
    return found.size();
}
