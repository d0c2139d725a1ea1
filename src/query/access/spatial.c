/* Spatial indexes: what a filter says of where things are becomes ranges of cells.
 *
 * An item has an entry for each cell that its figure lies in, and may have figures at several
 * places of an array, so of its entries within the walk the first stands for it
 * (query_entry_is_first). Cells say roughly where something is: the filter is always evaluated.
 *
 * Cells that cover a circle have about as much outside of it. The smallest cells are those of
 * points, and tell where these are to a centimetre: entries of points that are not in the circle
 * are passed over, by the walk and by who looks for an item's first entry, so that their items are
 * not read. */
#include "query/access/access_private.h"

#include "document/bson.h"
#include "index/policy.h"
#include "query/value/shapes.h"

enum {
    REGIONS_MAX = 2, /* of a filter that are looked at: a figure may take milliseconds to cover */
    REGION_WORK = 2000, /* units for one */
    POSITION_WORK = 64, /* and for each of its positions */
};

/* The index that has the figures at a path of all items, those too that an older policy made the
 * entries of. */
static const struct index_definition *spatial_at(const struct item_space *space,
                                                 const struct document_path *path)
{
    const struct index_definition *definition =
        index_policy_spatial_at(space->definition->policy, path);

    for (size_t i = 0; definition && i < space->policies_before_count; i++) {
        const struct index_definition *before =
            index_policy_spatial_at(space->policies_before[i], path);

        /* another path that leads there as well has the same entries */
        if (!before || !index_spatial_same(before->spatial, definition->spatial))
            return NULL;
    }
    return definition;
}

/* How far is asked for: by distance, no further than rows are looked for by now. */
static double region_distance(const struct query_region *region, const struct query_filter *filter)
{
    return region->ordered ? MIN(region->distance, filter->within) : region->distance;
}

const struct search_circle *query_region_circle(const struct query_region *region,
                                                const struct query_filter *filter)
{
    struct search_circle *circle = ARENA_NEW(filter->arena, struct search_circle);
    struct search_position middle;

    return region->rules.surface == SEARCH_EARTH &&
                   search_point_read(region->figure, &region->rules, &middle) &&
                   search_circle_make(middle, region_distance(region, filter), &region->rules,
                                      circle)
               ? circle
               : NULL;
}

bool query_entry_is_out(const struct query_index_use *use, struct slice value)
{
    uint64_t cell;

    return use->circle && index_cell_read(value, &cell) &&
           search_circle_leaves_out(use->circle, cell);
}

bool query_region_ranges(const struct query_region *region, const struct index_spatial *spatial,
                         enum document_order order, struct query_filter *filter,
                         struct query_ranges *ret_ranges)
{
    struct arena *arena = filter->arena;
    double distance = region_distance(region, filter);
    struct search_cell_range *cells =
        ARENA_ARRAY(arena, struct search_cell_range, SEARCH_RANGES_MAX);
    const struct search_reason *reason;
    struct cursor_range *list;
    struct search_shape *shape;
    size_t count;

    if (region->figure->type != DOCUMENT_OBJECT &&
        !(region->rules.every_type && region->figure->type == DOCUMENT_ARRAY))
        return false;
    /* the filter asks the same shape, and finds it there */
    if (!query_shape_get(filter->context, region->figure, &region->rules, &shape, &reason,
                         &filter->error) ||
        (shape && filter->context->limits.brief && !search_shape_is_plain(shape, distance) &&
         !view_bound_cold(&filter->error))) {
        filter->failed = true;
        return false;
    }
    if (!shape)
        return false;
    filter->work += REGION_WORK + POSITION_WORK * search_shape_positions(shape);
    count = search_shape_near(shape, &spatial->grid, distance, cells);
    list = ARENA_ARRAY(arena, struct cursor_range, count + 1);
    for (size_t i = 0; i < count; i++) {
        char first_text[INDEX_CELL_SIZE], last_text[INDEX_CELL_SIZE];
        struct document_value first = index_cell_value(cells[i].first, first_text);
        struct document_value last = index_cell_value(cells[i].last, last_text);
        bool exact;

        list[i] = query_ranges_point(order, &first, &exact, arena).list[0];
        if (cells[i].last != cells[i].first)
            list[i].max = query_ranges_point(order, &last, &exact, arena).list[0].max;
    }
    *ret_ranges = query_ranges_union(list, count, arena);
    return true;
}

const struct document_path *query_one_place(const struct document_path *path, struct arena *arena)
{
    struct document_path *copy = ARENA_NEW(arena, struct document_path);

    for (size_t i = 0; i < path->count; i++)
        if (path->segments[i].kind != DOCUMENT_SEGMENT_PROPERTY)
            return NULL;
    *copy = *path;
    return copy;
}

/* A point is in one cell, so that there is nothing to compare its entry with. Most figures are
 * points, and finding the cells of one again costs more than asking whether it is where it should
 * be. */
bool query_entry_is_only(const struct query_index_use *use, struct slice document)
{
    struct document_value figure, type;

    return use->place && document_path_find(use->place, document, &figure) &&
           figure.type == DOCUMENT_OBJECT && document_find(figure.document, SLICE("type"), &type) &&
           type.type == DOCUMENT_STRING && slice_equal(type.text, SLICE("Point"));
}

void query_spatial_uses_find(const struct item_space *space, struct query_filter *filter,
                             struct query_index_uses *uses)
{
    const struct query_conditions *conditions = query_filter_in(filter, query_paths_order(space));
    size_t regions = 0;

    for (size_t i = 0; i < conditions->part_count && regions < REGIONS_MAX; i++) {
        const struct query_condition *part = &conditions->parts[i];
        const struct index_definition *definition;
        struct query_index_use *use;
        struct query_ranges ranges;

        if (!part->region)
            continue;
        definition = spatial_at(space, &part->path);
        if (!definition || definition->spatial->rules.surface != part->region->rules.surface)
            continue;
        regions++;
        if (!query_region_ranges(part->region, definition->spatial, DOCUMENT_ORDER_SQL, filter,
                                 &ranges))
            continue;
        use = query_index_use_add(uses, filter->arena);
        use->prefix = index_spatial_prefix(&part->path, filter->arena);
        use->order = DOCUMENT_ORDER_SQL;
        use->ranges = ranges;
        use->conjuncts = part->conjuncts;
        use->name = arena_join(
            filter->arena,
            (struct slice[]){SLICE("cells of "), query_path_name(&part->path, filter->arena)}, 2);
        use->definition = definition;
        use->repeats = true;
        use->place = query_one_place(&part->path, filter->arena);
        use->circle = query_region_circle(part->region, filter);
    }
}
