/* Any JSON read as a figure: what is a shape lies within itself, and in its own cells. */
#include "document/bson.h"
#include "document/json.h"
#include "fuzz/fuzz.h"
#include "search/shape.h"

static void shape_try(const struct document_value *value, const struct search_rules *rules)
{
    static const struct search_grid grids[] = {
        [SEARCH_EARTH] = {.surface = SEARCH_EARTH},
        [SEARCH_PLANE] = {SEARCH_PLANE, -100, -100, 100, 100},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(search_shape_free) struct search_shape *shape = NULL;
    struct search_cell_range ranges[SEARCH_RANGES_MAX];
    uint64_t cells[SEARCH_CELLS_MAX];
    struct search_figure figure;
    struct search_reason reason;
    size_t range_count, cell_count, met = 0;

    if (!search_figure_read(value, rules, arena, &figure, &reason))
        return;
    FUZZ_CHECK(figure.part_count && figure.position_count >= figure.part_count);
    shape = search_shape_new(&figure, &reason);
    if (!shape)
        return;
    (void)search_shape_area(shape);
    (void)search_shape_within(shape, shape);
    (void)search_shape_distance(shape, shape);
    FUZZ_CHECK(search_shape_intersects(shape, shape));
    cell_count = search_shape_cells(shape, &grids[rules->surface], cells);
    FUZZ_CHECK(cell_count && cell_count <= SEARCH_CELLS_MAX);
    for (double far = 0; far < 1e9; far = far * 1000 + 1) {
        range_count = search_shape_near(shape, &grids[rules->surface], far, ranges);
        FUZZ_CHECK(range_count && range_count <= SEARCH_RANGES_MAX);
        for (size_t i = 0; i < cell_count; i++)
            for (size_t r = 0; r < range_count; r++)
                met += cells[i] >= ranges[r].first && cells[i] <= ranges[r].last;
        FUZZ_CHECK(met);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(buf_done) struct buf bson;
    struct document_value value;
    struct error err;

    buf_init(&bson, BUF_DEFAULT_MAX);
    if (size > 16384 || !document_json_read(slice_of(data, size), NULL, &bson, &err))
        return 0;
    value = document_object(buf_slice(&bson));
    for (int i = 0; i < 8; i++) {
        struct search_rules rules = {
            .surface = i & 1 ? SEARCH_PLANE : SEARCH_EARTH, .every_type = i & 2, .smaller = i & 4};

        shape_try(&value, &rules);
    }
    return 0;
}
