/* Indexes of where things are: an item has an entry for each cell that a figure in it lies in.
 *
 * Of a policy they are of format 1, with the path of the figure in each entry (policy.c): an index
 * of everything below a path has figures at many. What is no valid figure has no entry, for no
 * query that asks where something is can mean it. How large a figure may be is the business of
 * search/figure.h; making the shape of one is counted as steps of the walk.
 *
 * Of a definition of MongoDB (2dsphere, 2d) they are of format 2: those of an index of paths
 * (ordered.c) that has cells in place of the values of one part. All figures at that path, through
 * arrays, have their cells there, whatever the other parts are; an item without any has no entry.
 * What stands there and is no figure is refused: its index promises to know every one. */
#include "index/policy_private.h"

#include "document/bson.h"
#include "search/shape.h"

enum {
    POINT_WORK = 256,    /* steps for a point */
    FIGURE_WORK = 16384, /* for any other figure: validated, and covered by cells */
    POSITION_WORK = 256, /* and for each of its positions */
    CELL_ROOM = 64,      /* bytes of a cell as the value of an entry, and more */
    PREFIX_ROOM = 2 + INDEX_PATH_MAX + INDEX_PATH_TAIL,
};

struct document_value index_cell_value(uint64_t cell, char text[INDEX_CELL_SIZE])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = INDEX_CELL_SIZE - 1; i-- > 0; cell >>= 4)
        text[i] = digits[cell & 15];
    text[INDEX_CELL_SIZE - 1] = '\0';
    return document_string(slice_of(text, INDEX_CELL_SIZE - 1));
}

/* Behind a byte that says it is a text, and before the zero that ends it (document/key.c). */
bool index_cell_read(struct slice value, uint64_t *ret_cell)
{
    uint64_t cell = 0;

    if (value.len < INDEX_CELL_SIZE + 1 || value.data[INDEX_CELL_SIZE])
        return false;
    for (size_t i = 1; i < INDEX_CELL_SIZE; i++) {
        uint8_t digit = value.data[i];

        if (digit >= '0' && digit <= '9')
            cell = cell << 4 | (uint64_t)(digit - '0');
        else if (digit >= 'a' && digit <= 'f')
            cell = cell << 4 | (uint64_t)(digit - 'a' + 10);
        else
            return false;
    }
    *ret_cell = cell;
    return true;
}

struct slice index_spatial_prefix(const struct document_path *path, struct arena *arena)
{
    return index_escape_prefix(INDEX_ESCAPE_CELLS, path, arena);
}

/* --- Entries of a policy --------------------------------------------------------------------- */

static void cell_put(struct index_walk *w, uint64_t cell)
{
    size_t begin = index_walk_begin(w, PREFIX_ROOM + CELL_ROOM);
    char text[INDEX_CELL_SIZE];
    struct document_value value = index_cell_value(cell, text);

    if (w->definition->prefix.len) {
        buf_append_slice(&w->out, w->definition->prefix);
    } else {
        index_escape_append(INDEX_ESCAPE_CELLS, &w->out);
        index_path_write(&w->path, &w->out);
    }
    document_key_append_cut(w->definition->order, &value, INDEX_VALUE_MAX, &w->out);
    index_walk_end(w, begin);
}

/* Is it a figure at all? Most objects are none, and are seen to be by their first look. */
static bool looks_like_figure(const struct document_value *value)
{
    struct document_value type, coordinates;

    return value->type == DOCUMENT_OBJECT && document_find(value->document, SLICE("type"), &type) &&
           type.type == DOCUMENT_STRING &&
           document_find(value->document, SLICE("coordinates"), &coordinates) &&
           coordinates.type == DOCUMENT_ARRAY;
}

static void figure_put(struct index_walk *w, const struct document_value *value)
{
    CLEANUP(arena_free) struct arena *arena = NULL;
    CLEANUP(search_shape_free) struct search_shape *shape = NULL;
    const struct index_spatial *spatial = w->definition->spatial;
    uint64_t cells[SEARCH_CELLS_MAX];
    struct search_figure figure;
    struct search_reason reason;
    size_t count;

    if (!looks_like_figure(value))
        return;
    arena = arena_new();
    index_walk_work(w, index_bytes_work(value->document.len));
    if (!search_figure_read(value, &spatial->rules, arena, &figure, &reason))
        return;
    index_walk_work(w, figure.position_count == 1
                           ? POINT_WORK
                           : FIGURE_WORK + figure.position_count * POSITION_WORK);
    if (w->full)
        return;
    shape = search_shape_new(&figure, &reason);
    if (!shape)
        return;
    count = search_shape_cells(shape, &spatial->grid, cells);
    for (size_t i = 0; i < count && !w->full; i++)
        cell_put(w, cells[i]);
}

static void all_put(struct index_walk *w, const struct document_value *value)
{
    struct index_path_mark mark = w->path.mark;
    struct document_iter iter;
    bool array = value->type == DOCUMENT_ARRAY;

    index_walk_work(w, 1);
    if (w->full || (value->type != DOCUMENT_OBJECT && !array))
        return;
    if (mark.len)
        figure_put(w, value);
    document_iter_init(&iter, value->document);
    while (!w->full && document_iter_next(&iter)) {
        if (array)
            index_path_push_elements(&w->path);
        else
            index_path_push_name(&w->path, iter.key);
        all_put(w, &iter.value);
        w->path.mark = mark;
    }
}

static void path_put(struct index_walk *w, const struct document_value *value, size_t at)
{
    const struct document_path *path = &w->definition->parts[0].path;
    struct index_path_mark mark = w->path.mark;
    struct document_value below;
    struct document_iter iter;

    index_walk_work(w, 1);
    if (w->full)
        return;
    if (at == path->count) {
        if (path->end == DOCUMENT_PATH_END_ALL)
            all_put(w, value);
        else
            figure_put(w, value);
        return;
    }
    if (path->segments[at].kind == DOCUMENT_SEGMENT_PROPERTY) {
        if (value->type != DOCUMENT_OBJECT ||
            !document_find(value->document, path->segments[at].name, &below))
            return;
        index_path_push_name(&w->path, path->segments[at].name);
        path_put(w, &below, at + 1);
    } else if (value->type == DOCUMENT_ARRAY) {
        index_path_push_elements(&w->path);
        document_iter_init(&iter, value->document);
        while (!w->full && document_iter_next(&iter))
            path_put(w, &iter.value, at + 1);
    }
    w->path.mark = mark;
}

/* --- Of a definition ------------------------------------------------------------------------- */

static bool is_position(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.data[i] < '0' || name.data[i] > '9')
            return false;
    return name.len > 0;
}

static bool figures_at(const struct document_value *value, const struct index_figures *visitor)
{
    struct document_iter iter;
    bool first = true;

    if (value->type == DOCUMENT_NULL || value->type == DOCUMENT_UNDEFINED)
        return true;
    if (value->type != DOCUMENT_ARRAY)
        return visitor->figure(visitor->self, value);
    document_iter_init(&iter, value->document);
    for (; document_iter_next(&iter); first = false) {
        if (first && document_is_number(&iter.value))
            return visitor->figure(visitor->self, value);
        if (!visitor->figure(visitor->self, &iter.value))
            return false;
    }
    return true;
}

/* As deep as the path is long. */
static bool figures_below(const struct document_path *path, size_t at,
                          const struct document_value *value, const struct index_figures *visitor)
{
    struct document_value below;
    struct document_iter iter;

    if (at == path->count)
        return figures_at(value, visitor);
    if (value->type == DOCUMENT_OBJECT)
        return !document_find(value->document, path->segments[at].name, &below) ||
               figures_below(path, at + 1, &below, visitor);
    if (value->type != DOCUMENT_ARRAY)
        return true;
    if (is_position(path->segments[at].name) &&
        document_find(value->document, path->segments[at].name, &below) &&
        !figures_below(path, at + 1, &below, visitor))
        return false;
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT && !figures_below(path, at, &iter.value, visitor))
            return false;
    return true;
}

bool index_figures_visit(const struct document_path *path, struct slice item,
                         const struct index_figures *visitor)
{
    struct document_value root = document_object(item);

    return figures_below(path, 0, &root, visitor);
}

/* The cells of an item, so far. */
struct gathering {
    struct index_walk *walk;
    struct error *err;
    uint64_t *cells; /* in the arena of the walk */
    size_t count, room;
};

static bool is_outside(const struct search_grid *grid, const struct search_figure *figure)
{
    for (size_t i = 0; i < figure->position_count; i++) {
        const struct search_position *position = &figure->positions[i];

        if (position->x < grid->x_min || position->x > grid->x_max || position->y < grid->y_min ||
            position->y > grid->y_max)
            return true;
    }
    return false;
}

/* A plane of MongoDB has points alone. */
static bool figure_check(const struct index_spatial *spatial, const struct search_figure *figure,
                         struct error *err)
{
    if (spatial->grid.surface != SEARCH_PLANE)
        return true;
    if (figure->position_count != 1)
        return error_set(err, ERROR_NO_FIGURE,
                         "Can't extract geo keys: location object expected, location array not in "
                         "correct format");
    return !is_outside(&spatial->grid, figure) ||
           error_set(err, ERROR_OUTSIDE_BOX, "point not in interval of [ %g, %g ]",
                     spatial->grid.x_min, spatial->grid.x_max);
}

static void cells_add(struct gathering *g, const uint64_t *cells, size_t count)
{
    if (g->count + count > g->room) {
        uint64_t *longer;

        g->room = 2 * (g->count + count);
        longer = ARENA_ARRAY(g->walk->arena, uint64_t, g->room);
        if (g->count)
            memcpy(longer, g->cells, g->count * sizeof *longer);
        g->cells = longer;
    }
    memcpy(g->cells + g->count, cells, count * sizeof *cells);
    g->count += count;
}

static bool figure_gather(void *self, const struct document_value *value)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(search_shape_free) struct search_shape *shape = NULL;
    struct gathering *g = self;
    const struct index_spatial *spatial = g->walk->definition->spatial;
    struct search_reason reason = {"geo element must be an array or object"};
    uint64_t cells[SEARCH_CELLS_MAX];
    struct search_figure figure;

    index_walk_work(g->walk, index_value_work(value));
    if (g->walk->full)
        return false;
    if (search_figure_read(value, &spatial->rules, arena, &figure, &reason)) {
        if (!figure_check(spatial, &figure, g->err))
            return false;
        index_walk_work(g->walk, figure.position_count == 1
                                     ? POINT_WORK
                                     : FIGURE_WORK + figure.position_count * POSITION_WORK);
        if (g->walk->full)
            return false;
        shape = search_shape_new(&figure, &reason);
    }
    if (!shape)
        return error_set(g->err, ERROR_NO_FIGURE, "Can't extract geo keys: %s", reason.text);
    cells_add(g, cells, search_shape_cells(shape, &spatial->grid, cells));
    return true;
}

static bool definition_entries(const struct index_definition *definition, struct slice item,
                               struct index_walk *w, struct error *err)
{
    struct gathering g = {.walk = w, .err = err};
    const struct index_figures visitor = {figure_gather, &g};
    size_t part = 0;

    while (!definition->parts[part].cells)
        part++;
    if (!index_figures_visit(&definition->parts[part].path, item, &visitor))
        return w->full; /* which whoever walks finds out */
    if (!g.count)
        return true;
    w->cells = g.cells;
    w->cell_count = g.count;
    return index_ordered_entries(definition, item, w, err);
}

/* --- The kind -------------------------------------------------------------------------------- */

static bool spatial_entries(const struct index_definition *definition, struct slice item,
                            struct index_walk *w, struct error *err)
{
    struct document_value root = document_object(item);

    if (definition->format != INDEX_FORMAT_POLICY)
        return definition_entries(definition, item, w, err);
    index_path_init(&w->path);
    path_put(w, &root, 0);
    return true;
}

static bool spatial_check(const struct index_definition *definition, struct error *err)
{
    if (definition->order != DOCUMENT_ORDER_MONGO || !definition->multikey || definition->counted)
        return error_set(err, ERROR_BAD_REQUEST,
                         "cells take \"multikey\" and the order \"mongo\", and arrays are not "
                         "counted");
    for (size_t i = 0; i < definition->part_count; i++)
        if (definition->parts[i].hashed ||
            (definition->parts[i].cells && definition->parts[i].descending))
            return error_set(err, ERROR_BAD_REQUEST,
                             "cells are ascending, and no part beside them is hashed");
    if (definition->unique != INDEX_UNIQUE_NOT)
        return error_set(err, ERROR_BAD_REQUEST, "a spatial index cannot be unique");
    if (definition->expire_after_s != INDEX_EXPIRES_NEVER)
        return error_set(err, ERROR_BAD_REQUEST, "items cannot expire by a spatial index");
    return true;
}

const struct index_kind index_kind_spatial = {
    .name = "spatial", .check = spatial_check, .entries = spatial_entries};

/* --- Of a policy ----------------------------------------------------------------------------- */

bool index_policy_has_spatial(const struct index_policy *policy)
{
    return policy->spatial_count != 0;
}

const struct index_policy *index_policy_with_cells(const struct index_policy *policy,
                                                   struct arena *arena)
{
    if (policy->none || !policy->spatial_count)
        return policy;
    return index_policy_insert(policy, policy->spatial, policy->spatial_count, arena);
}

/* Has a definition the figures at this path? */
static bool has_path(const struct document_path *of, const struct document_path *path)
{
    if (of->count > path->count || (of->count < path->count && of->end != DOCUMENT_PATH_END_ALL))
        return false;
    return index_path_begins(path, of);
}

const struct index_definition *index_policy_spatial_at(const struct index_policy *policy,
                                                       const struct document_path *path)
{
    for (size_t i = 0; i < policy->definition_count; i++) {
        const struct index_definition *definition = policy->definitions[i];

        if (definition->kind == &index_kind_spatial && definition->format == INDEX_FORMAT_POLICY &&
            has_path(&definition->parts[0].path, path))
            return definition;
    }
    return NULL;
}
