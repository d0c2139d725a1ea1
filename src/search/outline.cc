/* Each face that the shape may reach gets its edges projected from the centre of the Earth: straight
 * lines there, also where they leave the face, as long as no corner is as far as a quarter of the
 * Earth from the middle of the face. Cells are cut as long as there is room for what comes of it, the
 * largest first; those that are within the shape are not.
 *
 * Everything is tested with a margin that is larger than any error of the arithmetic, and smaller
 * than a millimetre: a cell more is found here and there, none less. */
#include "search/outline_private.h"

#include "search/shape_private.h"

#undef NDEBUG
#define NDEBUG 1

#include <algorithm>
#include <cmath>
#include <s2/s2cell_id.h>
#include <s2/s2coords.h>

namespace {

constexpr double RADIUS_MAX = 0.25;  /* of a shape, in radians; */
constexpr double FACE_REACH = 0.956; /* of a face around its middle. Their sum with another radius is
                                        less than a quarter of a circle */
constexpr double MARGIN = 1e-12;     /* of the side of a face, which is 2 */
constexpr int CIRCLE_CORNERS = 8;
constexpr int ACROSS = 1 << SEARCH_LEVEL_STEP; /* cells of the next level in a row */

struct line {
    double u0, v0, u1, v1, room; /* room: what a product may be off, and the margin */
};

struct rectangle {
    double u0, v0, u1, v1;
};

/* A face and the edges on it. */
struct flat {
    int face;
    std::vector<line> lines;
    rectangle bound;
    size_t ring_lines;
    uint64_t all; /* lines, a bit for each */
};

static_assert(SEARCH_OUTLINE_EDGES_MAX <= 64, "lines have a bit each");

struct piece {
    size_t flat;
    int i, j, level; /* of its first corner, in the smallest cells */
    uint64_t lines;  /* those that meet it, by bits: no others meet a part of it */
    bool whole;      /* it is not cut any more */
};

enum class meets { not_at_all, edge, within };

double uv_of(int ij)
{
    return S2::STtoUV(S2::IJtoSTMin(ij));
}

/* The bounds of cells in a row, each with those of the next. */
template <int COUNT> struct row {
    double uv[COUNT + 1];

    row(int ij, int size)
    {
        for (int i = 0; i <= COUNT; i++)
            uv[i] = uv_of(ij + i * size);
    }
};

template <int COUNT>
rectangle rectangle_of(const row<COUNT> &u, int i, const row<COUNT> &v, int j)
{
    return {u.uv[i] - MARGIN, v.uv[j] - MARGIN, u.uv[i + 1] + MARGIN, v.uv[j + 1] + MARGIN};
}

bool line_meets(const line &line, const rectangle &r)
{
    if (std::max(line.u0, line.u1) < r.u0 || std::min(line.u0, line.u1) > r.u1 ||
        std::max(line.v0, line.v1) < r.v0 || std::min(line.v0, line.v1) > r.v1)
        return false;

    double du = line.u1 - line.u0, dv = line.v1 - line.v0;
    double left = dv * (r.u0 - line.u0), right = dv * (r.u1 - line.u0);
    double below = du * (r.v0 - line.v0), above = du * (r.v1 - line.v0);
    double least = std::min(below, above) - std::max(left, right);
    double most = std::max(below, above) - std::min(left, right);

    return least <= line.room && most >= -line.room;
}

/* Is the middle of a rectangle that no edge meets inside? */
bool middle_is_inside(const flat &flat, const rectangle &r)
{
    double u = (r.u0 + r.u1) / 2, v = (r.v0 + r.v1) / 2;
    bool inside = false;

    for (size_t i = 0; i < flat.ring_lines; i++) {
        const line &line = flat.lines[i];

        if ((line.v0 > v) != (line.v1 > v) &&
            u < line.u0 + (v - line.v0) * (line.u1 - line.u0) / (line.v1 - line.v0))
            inside = !inside;
    }
    return inside;
}

/* Of these lines, which meet it? */
meets flat_meets(const flat &flat, uint64_t lines, const rectangle &r, uint64_t *ret_lines)
{
    uint64_t meeting = 0;

    if (flat.bound.u0 > r.u1 || flat.bound.u1 < r.u0 || flat.bound.v0 > r.v1 || flat.bound.v1 < r.v0)
        return meets::not_at_all;
    for (; lines; lines &= lines - 1) {
        int at = __builtin_ctzll(lines);

        if (line_meets(flat.lines[(size_t)at], r))
            meeting |= (uint64_t)1 << at;
    }
    *ret_lines = meeting;
    if (meeting)
        return meets::edge;
    return middle_is_inside(flat, r) ? meets::within : meets::not_at_all;
}

flat flat_of(const search_outline &outline, int face)
{
    flat flat = {face, {}, {HUGE_VAL, HUGE_VAL, -HUGE_VAL, -HUGE_VAL}, outline.ring_edges,
                 ~(uint64_t)0 >> (64 - outline.edges.size())};

    flat.lines.reserve(outline.edges.size());
    for (const auto &edge : outline.edges) {
        line line;

        S2::ValidFaceXYZtoUV(face, edge.first, &line.u0, &line.v0);
        S2::ValidFaceXYZtoUV(face, edge.second, &line.u1, &line.v1);
        line.room = MARGIN * (1 + std::abs(line.u1 - line.u0) + std::abs(line.v1 - line.v0));
        flat.bound.u0 = std::min({flat.bound.u0, line.u0, line.u1});
        flat.bound.u1 = std::max({flat.bound.u1, line.u0, line.u1});
        flat.bound.v0 = std::min({flat.bound.v0, line.v0, line.v1});
        flat.bound.v1 = std::max({flat.bound.v1, line.v0, line.v1});
        flat.lines.push_back(line);
    }
    return flat;
}

int ij_of(double uv)
{
    return S2::STtoIJ(S2::UVtoST(std::clamp(uv, -1.0, 1.0)));
}

/* False: it is not among the cells of the outline. */
bool piece_try(const flat &flat, uint64_t lines, const rectangle &r, piece *piece)
{
    meets how = flat_meets(flat, lines, r, &piece->lines);

    piece->whole = how == meets::within || piece->level == SEARCH_LEVELS;
    return how != meets::not_at_all;
}

/* The largest cells that are not larger than the bound: at most two in each direction. */
void pieces_begin(const std::vector<flat> &flats, size_t at, std::vector<piece> *pieces)
{
    const rectangle &bound = flats[at].bound;
    int i0 = ij_of(bound.u0 - MARGIN), i1 = ij_of(bound.u1 + MARGIN);
    int j0 = ij_of(bound.v0 - MARGIN), j1 = ij_of(bound.v1 + MARGIN);
    int level = SEARCH_LEVELS;

    while (level > 0 && (1 << (SEARCH_LEVELS - level)) < std::max(i1 - i0, j1 - j0))
        level -= SEARCH_LEVEL_STEP;
    int size = 1 << (SEARCH_LEVELS - level);
    for (int i = i0 & -size; i <= i1; i += size)
        for (int j = j0 & -size; j <= j1; j += size) {
            piece piece = {at, i, j, level, 0, false};

            if (piece_try(flats[at], flats[at].all, rectangle_of(row<1>(i, size), 0, row<1>(j, size), 0),
                          &piece))
                pieces->push_back(piece);
        }
}

/* The parts of a piece that are among the cells of the outline, but no more than room. */
size_t piece_cut(const flat &flat, const piece &whole, size_t room, piece parts[ACROSS * ACROSS])
{
    int level = whole.level + SEARCH_LEVEL_STEP, size = 1 << (SEARCH_LEVELS - level);
    row<ACROSS> u(whole.i, size), v(whole.j, size);
    size_t count = 0;

    for (int part = 0; part < ACROSS * ACROSS && count < room; part++) {
        int i = part / ACROSS, j = part % ACROSS;

        parts[count] = {whole.flat, whole.i + i * size, whole.j + j * size, level, 0, false};
        count += piece_try(flat, whole.lines, rectangle_of(u, i, v, j), &parts[count]);
    }
    return count;
}

/* Cuts the largest, if there is room for what comes of it. False: none is left. */
bool pieces_cut(const std::vector<flat> &flats, size_t max, std::vector<piece> *pieces)
{
    piece parts[ACROSS * ACROSS];
    auto largest = pieces->end();

    for (auto at = pieces->begin(); at != pieces->end(); at++)
        if (!at->whole && (largest == pieces->end() || at->level < largest->level))
            largest = at;
    if (largest == pieces->end())
        return false;
    /* the first that there is no room for ends the attempt */
    size_t room = max + 1 > pieces->size() ? max + 1 - pieces->size() : 0;
    size_t count = piece_cut(flats[largest->flat], *largest, room + 1, parts);

    if (count == 0 || count == ACROSS * ACROSS || count > room) {
        largest->whole = true;
    } else {
        *largest = parts[count - 1];
        pieces->insert(pieces->end(), parts, parts + count - 1);
    }
    return true;
}

} // namespace

void search_outline_circle(const S2Point &point, double radius, search_outline *ret_outline)
{
    /* the corners are so far out that edges touch the circle in their middle */
    double out = std::tan(radius) / std::cos(M_PI / CIRCLE_CORNERS);
    S2Point x = point.Ortho().Normalize(), y = point.CrossProd(x);
    S2Point before;

    for (int i = 0; i <= CIRCLE_CORNERS; i++) {
        double angle = 2 * M_PI * (i % CIRCLE_CORNERS) / CIRCLE_CORNERS;
        S2Point corner = (point + out * (std::cos(angle) * x + std::sin(angle) * y)).Normalize();

        if (i)
            ret_outline->edges.emplace_back(before, corner);
        before = corner;
    }
    ret_outline->ring_edges = CIRCLE_CORNERS;
}

bool search_outline_middle(const search_outline &outline, S2Point *ret_middle, double *ret_radius)
{
    S2Point sum(0, 0, 0);
    double least = 1;

    for (const auto &edge : outline.edges)
        sum += edge.first + edge.second;
    if (outline.edges.empty() || outline.edges.size() > SEARCH_OUTLINE_EDGES_MAX || !(sum.Norm() > 1e-3))
        return false;
    sum = sum.Normalize();
    for (const auto &edge : outline.edges)
        least = std::min({least, sum.DotProd(edge.first), sum.DotProd(edge.second)});
    *ret_middle = sum;
    *ret_radius = std::acos(std::max(least, -1.0));
    return *ret_radius <= RADIUS_MAX;
}

size_t search_outline_cells(const search_outline &outline, size_t max, uint64_t cells[SEARCH_CELLS_MAX])
{
    std::vector<flat> flats;
    std::vector<piece> pieces;
    S2Point middle;
    double radius;

    if (!search_outline_middle(outline, &middle, &radius))
        return 0;
    flats.reserve(S2CellId::kNumFaces);
    pieces.reserve(SEARCH_CELLS_MAX);
    for (int face = 0; face < S2CellId::kNumFaces; face++) {
        if (std::acos(std::clamp(middle.DotProd(S2::GetNorm(face)), -1.0, 1.0)) >
            FACE_REACH + radius)
            continue;
        flats.push_back(flat_of(outline, face));
        const rectangle &bound = flats.back().bound;
        if (bound.u0 > 1 + MARGIN || bound.u1 < -1 - MARGIN || bound.v0 > 1 + MARGIN ||
            bound.v1 < -1 - MARGIN)
            flats.pop_back();
        else
            pieces_begin(flats, flats.size() - 1, &pieces);
    }
    while (pieces_cut(flats, max, &pieces))
        continue;
    if (pieces.size() > SEARCH_CELLS_MAX)
        return 0;
    for (size_t i = 0; i < pieces.size(); i++)
        cells[i] = S2CellId::FromFaceIJ(flats[pieces[i].flat].face, pieces[i].i, pieces[i].j)
                       .parent(pieces[i].level)
                       .id();
    return pieces.size();
}
