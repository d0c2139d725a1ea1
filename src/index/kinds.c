/* Composite, spatial, vector and full-text indexes as a policy lists them. Composite and spatial
 * ones become definitions; those of vectors do when it is known what the vectors are; of full-text
 * ones the shape is checked. All are shown as they were given. What they must agree with
 * elsewhere in the container (its embeddings, its full-text policy, geography or geometry) is
 * checked where those are known. */
#include "document/bson.h"
#include "index/policy_private.h"
#include "search/graph.h"

#include <math.h>

static bool wrong(struct error *err, const char *list, const char *what)
{
    return error_set(err, ERROR_BAD_REQUEST, "%s: %s", list, what);
}

/* The property of that name and type; false if it is not there or something else. */
static bool member(const struct document_value *of, struct slice name, enum document_type type,
                   struct document_value *ret_value)
{
    return of->type == DOCUMENT_OBJECT && document_find(of->document, name, ret_value) &&
           ret_value->type == type;
}

static bool has(const struct document_value *of, struct slice name)
{
    struct document_value value;

    return of->type == DOCUMENT_OBJECT && document_find(of->document, name, &value) &&
           value.type != DOCUMENT_NULL;
}

static bool is_one_of(struct slice text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(text, slice_of_text(words[i])))
            return true;
    }
    return false;
}

static bool member_path(const struct document_value *of, enum document_path_use use,
                        const char *list, struct arena *arena, struct document_path *ret_path,
                        struct error *err)
{
    struct document_value text;

    if (!member(of, SLICE("path"), DOCUMENT_STRING, &text))
        return wrong(err, list, "an index has no \"path\"");
    return document_path_parse(text.text, use, arena, ret_path, err) ||
           error_prefix(err, "%s", list);
}

/* --- Composite ------------------------------------------------------------------------------- */

static bool order_parse(const struct document_value *of, bool *ret_descending, struct error *err)
{
    struct document_value order;

    *ret_descending = false;
    if (!has(of, SLICE("order")))
        return true;
    if (!member(of, SLICE("order"), DOCUMENT_STRING, &order) ||
        (!slice_equal_nocase(order.text, SLICE("ascending")) &&
         !slice_equal_nocase(order.text, SLICE("descending"))))
        return wrong(err, "compositeIndexes", "an order is neither ascending nor descending");
    *ret_descending = slice_equal_nocase(order.text, SLICE("descending"));
    return true;
}

/* A definition of format 1, known by the text of its paths. */
static bool composite_parse(const struct document_value *value, struct arena *arena,
                            const struct index_definition **ret_definition, struct error *err)
{
    size_t count = value->type == DOCUMENT_ARRAY ? document_count(value->document) : 0, at = 0;
    struct index_definition *definition = ARENA_NEW(arena, struct index_definition);
    struct index_part *parts;
    struct document_iter iter;

    if (count < 2 || count > INDEX_COMPOSITE_PATHS_MAX)
        return error_set(err, ERROR_BAD_REQUEST,
                         "compositeIndexes: an index is an array of 2 to %d paths",
                         INDEX_COMPOSITE_PATHS_MAX);
    parts = ARENA_ARRAY(arena, struct index_part, count);
    document_iter_init(&iter, value->document);
    for (; at < count && document_iter_next(&iter); at++) {
        parts[at] = (struct index_part){0};
        if (!member_path(&iter.value, DOCUMENT_PATH_KEY, "compositeIndexes", arena, &parts[at].path,
                         err) ||
            !order_parse(&iter.value, &parts[at].descending, err))
            return false;
    }
    *definition = (struct index_definition){.format = INDEX_FORMAT_POLICY,
                                            .kind = &index_kind_ordered,
                                            .parts = parts,
                                            .part_count = count,
                                            .order = DOCUMENT_ORDER_SQL,
                                            .expire_after_s = INDEX_EXPIRES_NEVER,
                                            .prefix = index_composite_prefix(parts, count, arena)};
    *ret_definition = definition;
    return true;
}

static bool composites_have(const struct index_definition *const *composites, size_t count,
                            struct slice prefix)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(composites[i]->prefix, prefix))
            return true;
    }
    return false;
}

bool index_composites_parse(const struct document_value *list, struct arena *arena,
                            const struct index_definition ***ret_definitions, size_t *ret_count,
                            struct error *err)
{
    const struct index_definition *composites[INDEX_COMPOSITE_TOTAL_MAX / 2 + 1], **kept;
    size_t count = 0, paths = 0;
    struct document_iter iter;

    *ret_count = 0;
    *ret_definitions = NULL;
    if (list->type == DOCUMENT_UNDEFINED)
        return true;
    document_iter_init(&iter, list->document);
    while (document_iter_next(&iter)) {
        if (!composite_parse(&iter.value, arena, &composites[count], err))
            return false;
        paths += composites[count]->part_count;
        if (paths > INDEX_COMPOSITE_TOTAL_MAX)
            return error_set(err, ERROR_BAD_REQUEST,
                             "compositeIndexes: there are more than %d paths",
                             INDEX_COMPOSITE_TOTAL_MAX);
        if (!composites_have(composites, count, composites[count]->prefix))
            count++;
    }
    kept = ARENA_ARRAY(arena, const struct index_definition *, count);
    memcpy(kept, composites, count * sizeof *kept);
    *ret_definitions = kept;
    *ret_count = count;
    return true;
}

static void composite_show(const struct document_value *value, struct slice key, struct buf *buf)
{
    size_t list = document_append_array_begin(buf, key);
    struct document_iter iter;

    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        size_t index = document_append_object_begin(buf, iter.key);
        struct document_value path, order;
        bool descending = member(&iter.value, SLICE("order"), DOCUMENT_STRING, &order) &&
                          slice_equal_nocase(order.text, SLICE("descending"));

        if (member(&iter.value, SLICE("path"), DOCUMENT_STRING, &path))
            document_append(buf, SLICE("path"), &path);
        document_append_string(buf, SLICE("order"),
                               descending ? SLICE("descending") : SLICE("ascending"));
        document_end(buf, index);
    }
    document_end(buf, list);
}

void index_composites_show(const struct document_value *list, struct buf *buf)
{
    size_t begin = document_append_array_begin(buf, SLICE("compositeIndexes"));
    struct document_iter iter;

    document_iter_init(&iter, list->document);
    while (document_iter_next(&iter))
        composite_show(&iter.value, iter.key, buf);
    document_end(buf, begin);
}

/* --- Spatial --------------------------------------------------------------------------------- */

static bool spatial_types_check(const struct document_value *of, struct error *err)
{
    static const char *const known[] = {"Point", "Polygon", "MultiPolygon", "LineString"};
    struct document_value types;
    struct document_iter iter;

    if (!has(of, SLICE("types")))
        return true;
    if (!member(of, SLICE("types"), DOCUMENT_ARRAY, &types))
        return wrong(err, "spatialIndexes", "\"types\" is not an array");
    document_iter_init(&iter, types.document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_STRING ||
            !is_one_of(iter.value.text, known, ARRAY_LEN(known)))
            return wrong(err, "spatialIndexes",
                         "a type is none of Point, Polygon, MultiPolygon and LineString");
    }
    return true;
}

/* Of a plane: no two corners may be so close that numbers do not tell the cells between them apart.
 */
static bool spatial_box_parse(const struct document_value *of, struct index_spatial *spatial,
                              struct error *err)
{
    static const char *const sides[] = {"xmin", "ymin", "xmax", "ymax"};
    double numbers[ARRAY_LEN(sides)];
    struct document_value box, side;

    if (!has(of, SLICE("boundingBox")))
        return true;
    if (!member(of, SLICE("boundingBox"), DOCUMENT_OBJECT, &box))
        return wrong(err, "spatialIndexes", "\"boundingBox\" is not an object");
    for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
        if (!document_find(box.document, slice_of_text(sides[i]), &side) ||
            !document_to_double(&side, &numbers[i]) || !isfinite(numbers[i]))
            return wrong(err, "spatialIndexes", "a bounding box has four numbers");
    }
    if (!(numbers[0] < numbers[2] && numbers[1] < numbers[3]))
        return wrong(err, "spatialIndexes", "a bounding box has its minimum below its maximum");
    spatial->rules.surface = SEARCH_PLANE;
    spatial->grid =
        (struct search_grid){SEARCH_PLANE, numbers[0], numbers[1], numbers[2], numbers[3]};
    return true;
}

/* All figures at a path have entries, whatever types are named: what a query finds does not depend
 * on its index. */
static bool spatial_parse(const struct document_value *value, struct arena *arena,
                          struct index_definition *definition, struct error *err)
{
    struct index_part *part = ARENA_NEW(arena, struct index_part);
    struct index_spatial *spatial = ARENA_NEW(arena, struct index_spatial);

    *part = (struct index_part){0};
    *spatial = (struct index_spatial){0};
    if (!member_path(value, DOCUMENT_PATH_INDEX, "spatialIndexes", arena, &part->path, err) ||
        !spatial_types_check(value, err) || !spatial_box_parse(value, spatial, err))
        return false;
    if (part->path.count &&
        part->path.segments[part->path.count - 1].kind == DOCUMENT_SEGMENT_TUPLE)
        return wrong(err, "spatialIndexes", "a path does not end in a tuple");
    *definition = (struct index_definition){.format = INDEX_FORMAT_POLICY,
                                            .kind = &index_kind_spatial,
                                            .parts = part,
                                            .part_count = 1,
                                            .spatial = spatial,
                                            .order = DOCUMENT_ORDER_SQL,
                                            .expire_after_s = INDEX_EXPIRES_NEVER};
    return true;
}

bool index_spatial_parse(const struct document_value *list, struct arena *arena,
                         const struct index_definition ***ret_definitions, size_t *ret_count,
                         struct error *err)
{
    const struct index_definition **definitions;
    struct document_iter iter;
    size_t count = 0;

    *ret_definitions = NULL;
    *ret_count = 0;
    if (list->type == DOCUMENT_UNDEFINED)
        return true;
    if (document_count(list->document) > INDEX_SPATIAL_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "spatialIndexes: there are more than %d paths",
                         INDEX_SPATIAL_MAX);
    definitions = ARENA_ARRAY(arena, const struct index_definition *, INDEX_SPATIAL_MAX);
    document_iter_init(&iter, list->document);
    while (document_iter_next(&iter)) {
        struct index_definition *definition = ARENA_NEW(arena, struct index_definition);

        if (!spatial_parse(&iter.value, arena, definition, err))
            return false;
        definitions[count++] = definition;
    }
    *ret_definitions = definitions;
    *ret_count = count;
    return true;
}

/* --- Vector and full-text -------------------------------------------------------------------- */

static bool whole_within(const struct document_value *of, struct slice name, int64_t min,
                         int64_t max, struct error *err)
{
    struct document_value value;
    int64_t number;

    if (!has(of, name))
        return true;
    if (!document_find(of->document, name, &value) || !document_to_int64(&value, &number) ||
        number < min || number > max)
        return error_set(err, ERROR_BAD_REQUEST,
                         "vectorIndexes: \"%.*s\" is not a whole number of %d to %d",
                         SLICE_ARG(name), (int)min, (int)max);
    return true;
}

static bool shard_key_check(const struct document_value *of, struct arena *arena, struct error *err)
{
    struct document_value key;
    struct document_iter iter;
    struct document_path path;

    if (!has(of, SLICE("vectorIndexShardKey")))
        return true;
    if (!member(of, SLICE("vectorIndexShardKey"), DOCUMENT_ARRAY, &key))
        return wrong(err, "vectorIndexes", "\"vectorIndexShardKey\" is not an array");
    document_iter_init(&iter, key.document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_STRING)
            return wrong(err, "vectorIndexes", "a shard key is not a path");
        if (!document_path_parse(iter.value.text, DOCUMENT_PATH_KEY, arena, &path, err))
            return error_prefix(err, "vectorIndexes");
    }
    return true;
}

static bool vector_parse(const struct document_value *index, struct arena *arena,
                         struct index_vector_listed *ret_listed, struct error *err)
{
    static const char *const known[] = {"flat", "quantizedFlat", "diskANN"};
    struct document_value type, path, number;
    int64_t size = 0, list = SEARCH_GRAPH_LIST_DEFAULT;

    if (!member_path(index, DOCUMENT_PATH_KEY, "vectorIndexes", arena, &ret_listed->path, err))
        return false;
    if (!member(index, SLICE("type"), DOCUMENT_STRING, &type))
        return wrong(err, "vectorIndexes", "an index has no \"type\"");
    if (!is_one_of(type.text, known, ARRAY_LEN(known)))
        return error_set(err, ERROR_BAD_REQUEST, "Index Type::%.*s is invalid",
                         (int)MIN(type.text.len, (size_t)60), (const char *)type.text.data);
    if (!whole_within(index, SLICE("quantizationByteSize"), 1, 512, err) ||
        !whole_within(index, SLICE("indexingSearchListSize"), SEARCH_GRAPH_LIST_MIN,
                      SEARCH_GRAPH_LIST_MAX, err) ||
        !shard_key_check(index, arena, err))
        return false;
    if (member(index, SLICE("path"), DOCUMENT_STRING, &path))
        ret_listed->text = path.text;
    if (document_find(index->document, SLICE("quantizationByteSize"), &number))
        (void)document_to_int64(&number, &size);
    if (document_find(index->document, SLICE("indexingSearchListSize"), &number))
        (void)document_to_int64(&number, &list);
    ret_listed->flat = slice_equal(type.text, SLICE("flat"));
    ret_listed->code_bytes = (uint32_t)size;
    if (slice_equal(type.text, SLICE("diskANN")))
        ret_listed->graph_list = (uint32_t)list;
    return true;
}

bool index_vectors_parse(const struct document_value *list, struct arena *arena,
                         const struct index_vector_listed **ret_listed, size_t *ret_count,
                         struct error *err)
{
    struct index_vector_listed *listed;
    struct document_iter iter;
    size_t count = 0;

    *ret_listed = NULL;
    *ret_count = 0;
    if (list->type == DOCUMENT_UNDEFINED)
        return true;
    listed = ARENA_ARRAY(arena, struct index_vector_listed, document_count(list->document) + 1);
    document_iter_init(&iter, list->document);
    while (document_iter_next(&iter)) {
        listed[count] = (struct index_vector_listed){0};
        if (!vector_parse(&iter.value, arena, &listed[count++], err))
            return false;
    }
    *ret_listed = listed;
    *ret_count = count;
    return true;
}

bool index_texts_parse(const struct document_value *list, struct arena *arena,
                       const struct index_definition ***ret_definitions, size_t *ret_count,
                       struct error *err)
{
    const struct index_definition **definitions;
    struct document_iter iter;
    size_t count = 0;

    *ret_definitions = NULL;
    *ret_count = 0;
    if (list->type == DOCUMENT_UNDEFINED)
        return true;
    definitions = ARENA_ARRAY(arena, const struct index_definition *, INDEX_TEXTS_MAX);
    document_iter_init(&iter, list->document);
    while (document_iter_next(&iter)) {
        struct index_definition *definition = ARENA_NEW(arena, struct index_definition);
        struct index_part *part = ARENA_NEW(arena, struct index_part);
        size_t same = 0;

        *part = (struct index_part){0};
        if (!member_path(&iter.value, DOCUMENT_PATH_KEY, "fullTextIndexes", arena, &part->path,
                         err))
            return false;
        /* a text is read once, and policies of before there was a limit stay good */
        while (same < count && !index_paths_same(&definitions[same]->parts[0].path, &part->path))
            same++;
        if (same < count || count == INDEX_TEXTS_MAX)
            continue;
        *definition = (struct index_definition){.format = INDEX_FORMAT_POLICY,
                                                .kind = &index_kind_text,
                                                .parts = part,
                                                .part_count = 1,
                                                .order = DOCUMENT_ORDER_SQL,
                                                .expire_after_s = INDEX_EXPIRES_NEVER};
        definitions[count++] = definition;
    }
    *ret_definitions = definitions;
    *ret_count = count;
    return true;
}
