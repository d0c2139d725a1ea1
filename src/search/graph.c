/* Every point is on level 0, one of sixteen on level 1, and so on. A search goes down from the top:
 * on each level to the point that is the nearest there, on level 0 with a list of candidates, the
 * nearest first, each of which is asked for its neighbours in turn, until the list has none left
 * that was not asked.
 *
 * A point is linked to candidates that are nearer to it than to each other, so that links lead in
 * different directions; where that leaves room the next nearest fill it up. Three things are added
 * to what the papers have, because no row may be lost for good:
 *
 * - Equal codes are one point with twins, which come with it and have no links: thousands of them
 *   would otherwise know nobody but each other.
 * - Links are given up for better ones, and in the end a point may be left that none leads to. Such
 *   a point is adopted by one that it is linked to itself.
 * - Levels are a hash of the point's number: the same codes give the same graph.
 *
 * Distances are between what codes stand for: sums of products are whole numbers, over bytes, which
 * is several times as fast as over floats. What is asked for becomes a code of 8 bits for that. */
#include "search/graph.h"

#include "base/bytes.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

enum {
    LINKS = 16,        /* on levels above 0 */
    LINKS_GROUND = 32, /* on level 0 */
    LEVELS_MAX = 8,    /* above it; with sixteen times fewer points on each */
    SLOT = 1 + LINKS,  /* of a level above: how many, and which */
    SLOT_GROUND = 1 + LINKS_GROUND,
    AHEAD = 256, /* bytes of a code that are fetched before they are needed */
};

#define NOBODY UINT32_MAX

/* What a code's numbers stand for: low + step * number. */
struct head {
    float low, step, square; /* square: of its length */
    uint32_t sum;            /* of its numbers */
};

/* A vector that points are compared with. */
struct probe {
    struct head head;
    uint8_t *planes; /* as search_kernels.codes has them */
};

struct candidate {
    float distance;
    uint32_t point; /* the highest bit: it was asked for its neighbours */
};

#define ASKED UINT32_C(0x80000000)

struct list {
    struct candidate *all; /* the nearest first */
    size_t count, capacity;
};

struct search_graph {
    struct search_graph_points points;
    const struct search_kernels *kernels;
    size_t bytes; /* of a code behind its head */
    uint32_t list;
    uint32_t grown;
    uint32_t entry; /* where searches begin: on the highest level */
    unsigned entry_level;
    struct head *heads;
    uint32_t *ground;     /* SLOT_GROUND for each point */
    uint32_t *above;      /* SLOT for each level above of each point */
    uint32_t *above_at;   /* where those of a point begin, in slots; one more at the end */
    uint32_t *twin;       /* the next with the same code */
    uint32_t *adopted;    /* the first that a point leads to besides its links */
    uint32_t *adopted_by; /* the next of them */

    /* While it grows. */
    uint32_t *codes_seen; /* points by a hash of their code; a power of two */
    size_t codes_seen_size;
    uint64_t *visited;
    struct candidate *room; /* of the list */
    struct probe probe, other;
    uint8_t *chosen_planes; /* of each that was chosen */
};

static uint64_t mixed(uint64_t x)
{
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* One of sixteen is on the next level. */
static unsigned level_of(uint32_t point)
{
    uint64_t bits = mixed(point);
    unsigned level = 0;

    while (level < LEVELS_MAX && !(bits & 15)) {
        bits >>= 4;
        level++;
    }
    return level;
}

static size_t slots_above(uint32_t count)
{
    size_t slots = 0;

    for (uint32_t i = 0; i < count; i++)
        slots += level_of(i);
    return slots;
}

static size_t seen_size(uint32_t count)
{
    size_t size = 16;

    while (size < (size_t)count * 2)
        size *= 2;
    return size;
}

static size_t planes_size(const struct search_graph_points *points)
{
    return (search_code_size(points->vectors.dimensions, points->bits) - SEARCH_CODE_HEAD) *
           (8 / points->bits);
}

size_t search_graph_bytes(const struct search_graph_points *points)
{
    size_t each = sizeof(struct head) + (SLOT_GROUND + 4) * sizeof(uint32_t);

    return sizeof(struct search_graph) + each * points->count +
           slots_above(points->count) * SLOT * sizeof(uint32_t) +
           seen_size(points->count) * sizeof(uint32_t) + points->count / 8 +
           (LINKS_GROUND + 3) * planes_size(points) +
           SEARCH_GRAPH_LIST_MAX * sizeof(struct candidate);
}

struct search_graph *search_graph_new(const struct search_graph_points *points, uint32_t list)
{
    struct search_graph *graph = MEMORY_NEW(struct search_graph);
    size_t count = points->count;

    assert(count < ASKED && list <= SEARCH_GRAPH_LIST_MAX);
    graph->points = *points;
    graph->kernels = search_kernels_best();
    graph->bytes = search_code_size(points->vectors.dimensions, points->bits) - SEARCH_CODE_HEAD;
    graph->list = MAX(list, (uint32_t)LINKS);
    graph->entry = NOBODY;
    graph->heads = memory_alloc(memory_array_size(count + 1, sizeof *graph->heads));
    graph->ground = memory_alloc_zero(memory_array_size(count + 1, SLOT_GROUND * sizeof(uint32_t)));
    graph->above_at = memory_alloc(memory_array_size(count + 1, sizeof(uint32_t)));
    graph->above_at[0] = 0;
    for (uint32_t i = 0; i < count; i++)
        graph->above_at[i + 1] = graph->above_at[i] + level_of(i);
    graph->above = memory_alloc_zero(
        memory_array_size(graph->above_at[count] + (size_t)1, SLOT * sizeof(uint32_t)));
    graph->twin = memory_alloc(memory_array_size(count + 1, sizeof(uint32_t)));
    graph->adopted = memory_alloc(memory_array_size(count + 1, sizeof(uint32_t)));
    graph->adopted_by = memory_alloc(memory_array_size(count + 1, sizeof(uint32_t)));
    for (size_t i = 0; i < count; i++)
        graph->twin[i] = graph->adopted[i] = graph->adopted_by[i] = NOBODY;
    graph->codes_seen_size = seen_size(points->count);
    graph->codes_seen = memory_alloc(memory_array_size(graph->codes_seen_size, sizeof(uint32_t)));
    memset(graph->codes_seen, 0xFF, graph->codes_seen_size * sizeof(uint32_t));
    graph->visited = memory_alloc(count / 64 * 8 + 8);
    graph->room = memory_alloc(SEARCH_GRAPH_LIST_MAX * sizeof *graph->room);
    graph->probe.planes = memory_alloc(planes_size(points));
    graph->other.planes = memory_alloc(planes_size(points));
    graph->chosen_planes = memory_alloc((LINKS_GROUND + 1) * planes_size(points));
    return graph;
}

/* What is needed for growing alone. */
static void growing_free(struct search_graph *graph)
{
    memory_free(graph->codes_seen);
    memory_free(graph->visited);
    memory_free(graph->room);
    memory_free(graph->probe.planes);
    memory_free(graph->other.planes);
    memory_free(graph->chosen_planes);
    graph->codes_seen = NULL;
    graph->visited = NULL;
    graph->room = NULL;
    graph->probe.planes = graph->other.planes = graph->chosen_planes = NULL;
}

void search_graph_free(struct search_graph *graph)
{
    if (!graph)
        return;
    growing_free(graph);
    memory_free(graph->heads);
    memory_free(graph->ground);
    memory_free(graph->above);
    memory_free(graph->above_at);
    memory_free(graph->twin);
    memory_free(graph->adopted);
    memory_free(graph->adopted_by);
    memory_free(graph);
}

uint32_t search_graph_grown(const struct search_graph *graph)
{
    return graph->grown;
}

/* --- Distances ------------------------------------------------------------------------------- */

static const uint8_t *code_of(const struct search_graph *graph, uint32_t point)
{
    return graph->points.codes + point * graph->points.stride;
}

static float float_get(const uint8_t *from)
{
    uint32_t bits = bytes_get_le32(from);
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Takes a code apart: number i goes into plane i modulo how many there are. */
static void planes_fill(const struct search_graph *graph, const uint8_t *numbers, unsigned bits,
                        uint8_t *planes)
{
    unsigned each = 8 / graph->points.bits, of_byte = 8 / bits, mask = (1u << bits) - 1;
    size_t dimensions = graph->points.vectors.dimensions;

    if (bits == 8 && each == 1) {
        memcpy(planes, numbers, graph->bytes);
        return;
    }
    memset(planes, 0, graph->bytes * each);
    for (size_t i = 0; i < dimensions; i++)
        planes[i % each * graph->bytes + i / each] =
            (uint8_t)(numbers[i / of_byte] >> i % of_byte * bits & mask);
}

static struct head head_of(const struct search_graph *graph, const uint8_t *code,
                           const uint8_t *planes)
{
    size_t size = graph->bytes * (8 / graph->points.bits);
    struct head head = {.low = float_get(code), .step = float_get(code + 4)};
    double low = head.low, step = head.step, squares = 0;

    for (size_t i = 0; i < size; i++) {
        head.sum += planes[i];
        squares += (double)planes[i] * planes[i];
    }
    head.square = (float)(graph->points.vectors.dimensions * low * low + 2 * low * step * head.sum +
                          step * step * squares);
    return head;
}

static void probe_point(const struct search_graph *graph, uint32_t point, struct probe *probe)
{
    planes_fill(graph, code_of(graph, point) + SEARCH_CODE_HEAD, graph->points.bits, probe->planes);
    probe->head = graph->heads[point];
}

/* Less is more alike. */
static float distance_between(const struct search_graph *graph, const struct head *a,
                              const struct head *b, uint32_t products)
{
    double dot = (double)graph->points.vectors.dimensions * a->low * b->low +
                 (double)a->low * b->step * b->sum + (double)b->low * a->step * a->sum +
                 (double)a->step * b->step * products;

    switch (graph->points.vectors.metric) {
    case SEARCH_EUCLIDEAN:
        return (float)((double)a->square + b->square - 2 * dot);
    case SEARCH_COSINE:
        return a->square > 0 && b->square > 0
                   ? (float)(1 - dot / sqrt((double)a->square * b->square))
                   : 1;
    default:
        return (float)-dot;
    }
}

static float distance_to(const struct search_graph *graph, const struct probe *probe,
                         uint32_t point)
{
    return distance_between(graph, &probe->head, &graph->heads[point],
                            graph->kernels->codes(probe->planes,
                                                  code_of(graph, point) + SEARCH_CODE_HEAD,
                                                  graph->bytes, graph->points.bits));
}

static void fetch_ahead(const struct search_graph *graph, uint32_t point)
{
    const uint8_t *code = code_of(graph, point);

    __builtin_prefetch(&graph->heads[point]);
    for (size_t at = 0; at < AHEAD && at < graph->bytes; at += 64)
        __builtin_prefetch(code + at);
}

/* --- Searching ------------------------------------------------------------------------------- */

static uint32_t *links_of(const struct search_graph *graph, uint32_t point, unsigned level)
{
    return level ? graph->above + (size_t)(graph->above_at[point] + level - 1) * SLOT
                 : graph->ground + (size_t)point * SLOT_GROUND;
}

/* Puts a point at its place. False: the list is full of nearer ones. */
static bool list_put(struct list *list, float distance, uint32_t point, size_t *ret_at)
{
    size_t low = 0, high = list->count;

    if (list->count == list->capacity && distance >= list->all[list->count - 1].distance)
        return false;
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (list->all[middle].distance <= distance)
            low = middle + 1;
        else
            high = middle;
    }
    if (list->count < list->capacity)
        list->count++;
    memmove(list->all + low + 1, list->all + low, (list->count - low - 1) * sizeof *list->all);
    list->all[low] = (struct candidate){distance, point};
    *ret_at = low;
    return true;
}

static bool visit(uint64_t *visited, uint32_t point)
{
    uint64_t bit = UINT64_C(1) << point % 64;
    bool before = visited[point / 64] & bit;

    visited[point / 64] |= bit;
    return !before;
}

/* Puts a neighbour into the list, where it is near enough; *first: the nearest that was not asked
 * yet. */
static void neighbour_take(const struct search_graph *graph, const struct probe *probe,
                           uint32_t point, struct list *list, size_t *first)
{
    size_t at;

    if (list_put(list, distance_to(graph, probe, point), point, &at))
        *first = MIN(*first, at);
}

/* From what is in the list; visited has that. Returns how many points it looked at. */
static uint64_t level_search(const struct search_graph *graph, const struct probe *probe,
                             unsigned level, struct list *list, uint64_t *visited)
{
    uint64_t looked = 0;

    for (size_t first = 0; first < list->count;) {
        struct candidate *candidate = &list->all[first];
        const uint32_t *links;
        uint32_t point, fresh[LINKS_GROUND], count = 0;

        if (candidate->point & ASKED) {
            first++;
            continue;
        }
        point = candidate->point;
        candidate->point |= ASKED;
        links = links_of(graph, point, level);
        for (uint32_t i = 1; i <= links[0]; i++)
            if (visit(visited, links[i])) {
                fetch_ahead(graph, links[i]);
                fresh[count++] = links[i];
            }
        for (uint32_t i = 0; i < count; i++)
            neighbour_take(graph, probe, fresh[i], list, &first);
        looked += count;
        if (level)
            continue;
        for (uint32_t i = graph->adopted[point]; i != NOBODY; i = graph->adopted_by[i])
            if (visit(visited, i)) {
                neighbour_take(graph, probe, i, list, &first);
                looked++;
            }
    }
    for (size_t i = 0; i < list->count; i++)
        list->all[i].point &= ~ASKED;
    return looked;
}

/* To the nearest point of a level, one step after the other. */
static uint64_t level_descend(const struct search_graph *graph, const struct probe *probe,
                              unsigned level, struct candidate *at)
{
    uint64_t looked = 0;

    for (bool moved = true; moved;) {
        const uint32_t *links = links_of(graph, at->point, level);

        moved = false;
        for (uint32_t i = 1; i <= links[0]; i++) {
            float distance = distance_to(graph, probe, links[i]);

            if (distance < at->distance) {
                *at = (struct candidate){distance, links[i]};
                moved = true;
            }
        }
        looked += links[0];
    }
    return looked;
}

size_t search_graph_search(const struct search_graph *graph, const float *elements, size_t list,
                           uint32_t *ret_points, size_t max, uint64_t *ret_looked)
{
    CLEANUP(memory_free) uint64_t *visited = NULL;
    CLEANUP(memory_free) struct candidate *room = NULL;
    CLEANUP(memory_free) uint8_t *planes = NULL;
    uint8_t code[SEARCH_CODE_MAX];
    struct probe probe;
    struct candidate nearest;
    struct list found;
    size_t given = 0;

    *ret_looked = 0;
    assert(graph->grown == graph->points.count);
    if (graph->entry == NOBODY || !max)
        return 0;
    list = MIN(MAX(list, max), (size_t)SEARCH_GRAPH_FOUND_MAX);
    room = memory_alloc(list * sizeof *room);
    visited = memory_alloc_zero(graph->points.count / 64 * 8 + 8);
    planes = memory_alloc(planes_size(&graph->points));
    search_code_make(elements, graph->points.vectors.dimensions, 8, code);
    planes_fill(graph, code + SEARCH_CODE_HEAD, 8, planes);
    probe = (struct probe){head_of(graph, code, planes), planes};

    nearest = (struct candidate){distance_to(graph, &probe, graph->entry), graph->entry};
    for (unsigned level = graph->entry_level; level > 0; level--)
        *ret_looked += level_descend(graph, &probe, level, &nearest);
    found = (struct list){.all = room, .count = 1, .capacity = list};
    room[0] = nearest;
    visit(visited, nearest.point);
    *ret_looked += 1 + level_search(graph, &probe, 0, &found, visited);
    for (size_t i = 0; i < found.count; i++)
        for (uint32_t point = room[i].point; point != NOBODY && given < max;
             point = graph->twin[point])
            ret_points[given++] = point;
    return given;
}

/* --- Growing --------------------------------------------------------------------------------- */

/* Of candidates, the nearest first, chooses up to max that are nearer to the point than to one
 * another; then the nearest of the others. They become the first of the list, in that order. */
static size_t choose(struct search_graph *graph, struct candidate *candidates, size_t count,
                     size_t max)
{
    struct candidate others[SEARCH_GRAPH_LIST_MAX];
    size_t size = planes_size(&graph->points), chosen = 0, other_count = 0;

    if (count <= max)
        return count;
    for (size_t i = 0; i < count && chosen < max; i++) {
        uint32_t point = candidates[i].point;
        bool apart = true;

        for (size_t j = 0; j < chosen && apart; j++) {
            apart = distance_to(graph,
                                &(struct probe){graph->heads[candidates[j].point],
                                                graph->chosen_planes + j * size},
                                point) > candidates[i].distance;
        }
        if (!apart) {
            others[other_count++] = candidates[i];
            continue;
        }
        planes_fill(graph, code_of(graph, point) + SEARCH_CODE_HEAD, graph->points.bits,
                    graph->chosen_planes + chosen * size);
        candidates[chosen++] = candidates[i];
    }
    for (size_t i = 0; i < other_count && chosen < max; i++)
        candidates[chosen++] = others[i];
    return chosen;
}

static int candidate_order(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    return (x->point > y->point) - (x->point < y->point);
}

/* Lets a point lead to another, for a worse link if it has as many as it may. */
static void link_add(struct search_graph *graph, uint32_t from, uint32_t to, float distance,
                     unsigned level)
{
    uint32_t *links = links_of(graph, from, level), max = level ? LINKS : LINKS_GROUND;
    struct candidate candidates[LINKS_GROUND + 1];

    if (links[0] < max) {
        links[++links[0]] = to;
        return;
    }
    probe_point(graph, from, &graph->other);
    for (uint32_t i = 0; i < max; i++)
        candidates[i] =
            (struct candidate){distance_to(graph, &graph->other, links[i + 1]), links[i + 1]};
    candidates[max] = (struct candidate){distance, to};
    qsort(candidates, max + 1, sizeof *candidates, candidate_order);
    links[0] = (uint32_t)choose(graph, candidates, max + 1, max);
    for (uint32_t i = 0; i < links[0]; i++)
        links[i + 1] = candidates[i].point;
}

/* The first point with this code; NOBODY: it is the first itself, and is noted. */
static uint32_t twin_of(struct search_graph *graph, uint32_t point)
{
    size_t len = SEARCH_CODE_HEAD + graph->bytes;
    uint64_t hash = len;

    for (size_t i = 0; i < len; i += 8) {
        uint64_t part = 0;

        memcpy(&part, code_of(graph, point) + i, MIN(len - i, (size_t)8));
        hash = mixed(hash ^ part);
    }
    for (size_t at = hash & (graph->codes_seen_size - 1);;
         at = (at + 1) & (graph->codes_seen_size - 1)) {
        uint32_t seen = graph->codes_seen[at];

        if (seen == NOBODY) {
            graph->codes_seen[at] = point;
            return NOBODY;
        }
        if (memcmp(code_of(graph, seen), code_of(graph, point), len) == 0)
            return seen;
    }
}

static void point_add(struct search_graph *graph, uint32_t point)
{
    unsigned level = level_of(point);
    uint32_t twin = twin_of(graph, point);
    struct candidate nearest;

    if (twin != NOBODY) {
        graph->heads[point] = graph->heads[twin];
        graph->twin[point] = graph->twin[twin];
        graph->twin[twin] = point;
        return;
    }
    planes_fill(graph, code_of(graph, point) + SEARCH_CODE_HEAD, graph->points.bits,
                graph->probe.planes);
    graph->heads[point] = head_of(graph, code_of(graph, point), graph->probe.planes);
    graph->probe.head = graph->heads[point];
    if (graph->entry == NOBODY) {
        graph->entry = point;
        graph->entry_level = level;
        return;
    }
    nearest = (struct candidate){distance_to(graph, &graph->probe, graph->entry), graph->entry};
    for (unsigned at = graph->entry_level; at > level; at--)
        (void)level_descend(graph, &graph->probe, at, &nearest);
    for (unsigned at = MIN(level, graph->entry_level) + 1; at-- > 0;) {
        struct list list = {.all = graph->room, .count = 1, .capacity = graph->list};
        uint32_t *links = links_of(graph, point, at);

        memset(graph->visited, 0, graph->points.count / 64 * 8 + 8);
        list.all[0] = nearest;
        visit(graph->visited, nearest.point);
        (void)level_search(graph, &graph->probe, at, &list, graph->visited);
        nearest = list.all[0];
        links[0] = (uint32_t)choose(graph, list.all, list.count, LINKS);
        for (uint32_t i = 0; i < links[0]; i++)
            links[i + 1] = list.all[i].point;
        for (uint32_t i = 0; i < links[0]; i++)
            link_add(graph, list.all[i].point, point, list.all[i].distance, at);
    }
    if (level > graph->entry_level) {
        graph->entry = point;
        graph->entry_level = level;
    }
}

/* Marks all that the points of the stack lead to. */
static void reach(const struct search_graph *graph, uint32_t *stack, size_t count,
                  uint64_t *reached)
{
    while (count) {
        uint32_t point = stack[--count];
        const uint32_t *links = links_of(graph, point, 0);

        for (uint32_t i = 1; i <= links[0]; i++)
            if (visit(reached, links[i]))
                stack[count++] = links[i];
    }
}

/* Every point that no link leads to is adopted by one that is reached. Those that have links to
 * none of them are led to from where searches begin. */
static void orphans_adopt(struct search_graph *graph)
{
    CLEANUP(memory_free)
    uint32_t *stack =
        memory_alloc(memory_array_size(graph->points.count + (size_t)1, sizeof *stack));
    CLEANUP(memory_free) uint64_t *twins = memory_alloc_zero(graph->points.count / 64 * 8 + 8);
    uint64_t *reached = graph->visited;

    if (graph->entry == NOBODY)
        return;
    memset(reached, 0, graph->points.count / 64 * 8 + 8);
    for (uint32_t i = 0; i < graph->points.count; i++)
        if (graph->twin[i] != NOBODY)
            visit(twins, graph->twin[i]);
    visit(reached, graph->entry);
    stack[0] = graph->entry;
    reach(graph, stack, 1, reached);
    for (uint32_t i = 0; i < graph->points.count; i++) {
        const uint32_t *links = links_of(graph, i, 0);
        uint32_t parent = graph->entry;

        if (twins[i / 64] >> i % 64 & 1 || !visit(reached, i))
            continue;
        for (uint32_t j = links[0]; j > 0; j--)
            if (reached[links[j] / 64] >> links[j] % 64 & 1)
                parent = links[j];
        graph->adopted_by[i] = graph->adopted[parent];
        graph->adopted[parent] = i;
        stack[0] = i;
        reach(graph, stack, 1, reached);
    }
}

bool search_graph_grow(struct search_graph *graph, uint32_t points)
{
    if (graph->grown == graph->points.count && !graph->codes_seen)
        return true;
    for (; points && graph->grown < graph->points.count; points--)
        point_add(graph, graph->grown++);
    if (graph->grown < graph->points.count)
        return false;
    orphans_adopt(graph);
    growing_free(graph);
    return true;
}
