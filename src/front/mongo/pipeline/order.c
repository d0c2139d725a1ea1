/* A $match goes before a $sort, and before stages that leave the fields alone which it looks at.
 * Where there is any doubt it stays: a filter with $expr, $text or the like, paths with computed or
 * nested specifications. */
#include "front/mongo/pipeline/order.h"

enum { NAMES_MAX = 64, DEPTH_MAX = 20 };

/* First components of paths. */
struct names {
    struct slice list[NAMES_MAX];
    size_t count;
};

static struct slice first_of(struct slice path)
{
    struct slice head, tail;

    return slice_split(path, '.', &head, &tail) ? head : path;
}

static bool names_add(struct names *names, struct slice path)
{
    if (names->count == NAMES_MAX)
        return false;
    names->list[names->count++] = first_of(path);
    return true;
}

static bool names_have(const struct names *names, struct slice name)
{
    for (size_t i = 0; i < names->count; i++)
        if (slice_equal(names->list[i], name))
            return true;
    return false;
}

/* The fields a filter looks at. False: it cannot be said. */
static bool filter_names(struct slice filter, struct names *names, unsigned depth)
{
    struct document_iter iter, inner;

    document_iter_init(&iter, filter);
    while (document_iter_next(&iter)) {
        bool logic = slice_equal(iter.key, SLICE("$and")) || slice_equal(iter.key, SLICE("$or")) ||
                     slice_equal(iter.key, SLICE("$nor"));

        if (iter.key.len && iter.key.data[0] != '$') {
            if (!names_add(names, iter.key))
                return false;
            continue;
        }
        if (!logic || depth == DEPTH_MAX || iter.value.type != DOCUMENT_ARRAY)
            return false;
        document_iter_init(&inner, iter.value.document);
        while (document_iter_next(&inner))
            if (inner.value.type != DOCUMENT_OBJECT ||
                !filter_names(inner.value.document, names, depth + 1))
                return false;
    }
    return true;
}

static bool is_shown(const struct document_value *value)
{
    double number;

    if (value->type == DOCUMENT_BOOL)
        return value->boolean;
    return document_is_number(value) && document_to_double(value, &number) && number != 0;
}

/* {a: 1, b: 1} shows fields as they are; the filter must ask for those alone. */
static bool project_lets(struct slice specification, const struct names *names)
{
    struct names shown = {0};
    struct document_iter iter;
    bool id = true;

    document_iter_init(&iter, specification);
    while (document_iter_next(&iter)) {
        bool plain = !memchr(iter.key.data, '.', iter.key.len);

        if (slice_equal(iter.key, SLICE("_id"))) {
            id = is_shown(&iter.value);
            if (!id && !document_is_number(&iter.value) && iter.value.type != DOCUMENT_BOOL)
                return false;
            continue;
        }
        if (!plain || !is_shown(&iter.value))
            continue; /* computed, cut or left out: not among those that are shown */
        if (!names_add(&shown, iter.key))
            return false;
    }
    if (id && !names_add(&shown, SLICE("_id")))
        return false;
    for (size_t i = 0; i < names->count; i++)
        if (!names_have(&shown, names->list[i]))
            return false;
    return true;
}

static bool add_lets(struct slice specification, const struct names *names)
{
    struct document_iter iter;

    document_iter_init(&iter, specification);
    while (document_iter_next(&iter))
        if (names_have(names, first_of(iter.key)))
            return false;
    return true;
}

static bool unset_lets(const struct document_value *paths, const struct names *names)
{
    struct document_iter iter;

    if (paths->type == DOCUMENT_STRING)
        return !names_have(names, first_of(paths->text));
    if (paths->type != DOCUMENT_ARRAY)
        return false;
    document_iter_init(&iter, paths->document);
    while (document_iter_next(&iter))
        if (iter.value.type != DOCUMENT_STRING || names_have(names, first_of(iter.value.text)))
            return false;
    return true;
}

static bool stage_is(const struct document_value *stage, struct slice *ret_name,
                     struct document_value *ret_specification)
{
    struct document_iter iter;

    if (stage->type != DOCUMENT_OBJECT)
        return false;
    document_iter_init(&iter, stage->document);
    if (!document_iter_next(&iter))
        return false;
    *ret_name = iter.key;
    *ret_specification = iter.value;
    return !document_iter_next(&iter);
}

static bool goes_before(const struct document_value *first, const struct document_value *second)
{
    struct document_value before, filter;
    struct slice name, match;
    struct names names = {0};

    if (!stage_is(second, &match, &filter) || !slice_equal(match, SLICE("$match")) ||
        filter.type != DOCUMENT_OBJECT || !stage_is(first, &name, &before) ||
        !filter_names(filter.document, &names, 0))
        return false;
    if (slice_equal(name, SLICE("$sort")))
        return true;
    if (slice_equal(name, SLICE("$unset")))
        return unset_lets(&before, &names);
    if (before.type != DOCUMENT_OBJECT)
        return false;
    if (slice_equal(name, SLICE("$addFields")) || slice_equal(name, SLICE("$set")))
        return add_lets(before.document, &names);
    return slice_equal(name, SLICE("$project")) && project_lets(before.document, &names);
}

const struct document_value *mongo_pipeline_reorder(struct slice pipeline, struct arena *arena,
                                                    size_t *ret_count)
{
    size_t count = document_count(pipeline), at = 0;
    struct document_value *list = ARENA_ARRAY(arena, struct document_value, count + 1);
    struct document_iter iter;

    document_iter_init(&iter, pipeline);
    while (at < count && document_iter_next(&iter))
        list[at++] = iter.value;
    for (size_t i = 1; i < at; i++)
        for (size_t j = i; j && goes_before(&list[j - 1], &list[j]); j--) {
            struct document_value stage = list[j];

            list[j] = list[j - 1];
            list[j - 1] = stage;
        }
    *ret_count = at;
    return list;
}
