/* Paths of updates: a.b, a.0, a.$, a.$[], a.$[name]. */
#include "front/mongo/update/update_private.h"

static int64_t index_of(struct slice name)
{
    uint64_t number;

    if (!name.len || name.len > 9 || (name.data[0] == '0' && name.len > 1) ||
        !slice_to_uint64(name, &number))
        return -1;
    return (int64_t)number;
}

/* $[name]: the filter of that name. */
static bool filter_find(struct slice text, struct slice path, struct update_filter *filters,
                        size_t count, const struct update_filter **ret_filter, struct error *err)
{
    struct slice name = slice_of(text.data + 2, text.len - 3);

    for (size_t i = 0; i < count; i++)
        if (slice_equal(filters[i].name, name)) {
            filters[i].used = true;
            *ret_filter = &filters[i];
            return true;
        }
    return mongo_error_set(err, MONGO_BAD_VALUE,
                           "No array filter found for identifier '%.*s' in path '%.*s'",
                           SLICE_ARG(name), SLICE_ARG(path));
}

static bool component_parse(struct slice name, struct slice path, struct update_filter *filters,
                            size_t filter_count, struct update_component *ret_component,
                            struct error *err)
{
    *ret_component = (struct update_component){.name = name, .index = index_of(name)};
    if (!name.len)
        return mongo_error_set(err, MONGO_EMPTY_FIELD_NAME,
                               "The update path '%.*s' contains an empty field name, which is not "
                               "allowed.",
                               SLICE_ARG(path));
    if (name.data[0] != '$')
        return true;
    if (name.len == 1) {
        ret_component->kind = UPDATE_POSITION;
        return true;
    }
    if (slice_equal(name, SLICE("$[]"))) {
        ret_component->kind = UPDATE_EACH;
        return true;
    }
    if (name.len > 3 && name.data[1] == '[' && name.data[name.len - 1] == ']') {
        ret_component->kind = UPDATE_FILTERED;
        return filter_find(name, path, filters, filter_count, &ret_component->filter, err);
    }
    if (slice_equal(name, SLICE("$ref")) || slice_equal(name, SLICE("$id")) ||
        slice_equal(name, SLICE("$db")))
        return true;
    return mongo_error_set(err, MONGO_DOLLAR_PREFIXED_FIELD_NAME,
                           "The dollar ($) prefixed field '%.*s' in '%.*s' is not allowed in the "
                           "context of an update's replacement document. Consider using an "
                           "aggregation pipeline with $replaceWith.",
                           SLICE_ARG(name), SLICE_ARG(path));
}

/* `$` stands once, and never first. */
static bool positions_check(const struct update_path *path, struct error *err)
{
    size_t positions = 0;

    for (size_t i = 0; i < path->count; i++)
        positions += path->components[i].kind == UPDATE_POSITION;
    if (path->components[0].kind != UPDATE_NAME)
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               path->components[0].kind == UPDATE_POSITION
                                   ? "Cannot have positional (i.e. '$') element in the first "
                                     "position in path '%.*s'"
                                   : "Cannot have array filter identifier (i.e. '$[<id>]') element "
                                     "in the first position in path '%.*s'",
                               SLICE_ARG(path->text));
    if (positions > 1)
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "Too many positional (i.e. '$') elements found in path '%.*s'",
                               SLICE_ARG(path->text));
    return true;
}

bool update_path_parse(struct slice text, struct update_filter *filters, size_t filter_count,
                       struct arena *arena, struct update_path *ret_path, struct error *err)
{
    struct update_path path = {.text = arena_copy(arena, text)};
    struct update_component *components;
    struct slice rest = path.text;
    size_t count = 1;

    if (!text.len)
        return mongo_error_set(err, MONGO_EMPTY_FIELD_NAME, "An empty update path is not valid.");
    for (size_t i = 0; i < text.len; i++)
        count += text.data[i] == '.';
    if (count > UPDATE_COMPONENTS_MAX)
        return mongo_error_set(err, MONGO_OVERFLOW, "The update path has more than %d components",
                               UPDATE_COMPONENTS_MAX);
    components = ARENA_ARRAY(arena, struct update_component, count);
    while (path.count < count) {
        struct slice name, tail = SLICE_NONE;

        if (!slice_split(rest, '.', &name, &tail))
            name = rest;
        if (!component_parse(name, path.text, filters, filter_count, &components[path.count], err))
            return false;
        path.count++;
        rest = tail;
    }
    path.components = components;
    if (!positions_check(&path, err))
        return false;
    *ret_path = path;
    return true;
}

int update_path_compare(const struct update_path *a, const struct update_path *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        const struct update_component *x = &a->components[i], *y = &b->components[i];
        int order;

        /* Indexes before names, or "10" < "1a" < "2" < "10" would go in a circle. */
        if (x->index >= 0 || y->index >= 0)
            order = x->index < 0   ? 1
                    : y->index < 0 ? -1
                                   : (x->index > y->index) - (x->index < y->index);
        else
            order = slice_compare(x->name, y->name);
        if (order)
            return order;
    }
    return (a->count > b->count) - (a->count < b->count);
}

struct slice update_path_last(const struct update_path *path)
{
    return path->components[path->count - 1].name;
}
