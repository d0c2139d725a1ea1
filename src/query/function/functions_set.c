/* Arrays as sets: values once each, in the order of their first appearance. */
#include "document/bson.h"
#include "query/function/functions_private.h"
#include "query/value/set.h"

static bool set_of(struct slice array, struct query_context *context, struct query_set *ret_set,
                   struct error *err)
{
    struct document_iter iter;
    bool is_new;

    if (!query_work(context, array.len >> 2, err))
        return false;
    query_set_init(ret_set, context->order, context->arena, 0);
    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        query_set_add(ret_set, &iter.value, &is_new);
        if (is_new && !query_memory_check(context, 0, err))
            return false;
    }
    return true;
}

/* Both arguments as sets. False with *ret_usable set: an error; clear: they are no arrays. */
static bool two_sets(const struct document_value *arguments, struct query_context *context,
                     struct query_set ret_sets[2], bool *ret_usable, struct error *err)
{
    *ret_usable = arguments[0].type == DOCUMENT_ARRAY && arguments[1].type == DOCUMENT_ARRAY;
    return *ret_usable && set_of(arguments[0].document, context, &ret_sets[0], err) &&
           set_of(arguments[1].document, context, &ret_sets[1], err);
}

/* The values of a set that are, or are not, in the other; other NULL: all of them. */
static void values_append(struct query_context *context, const struct query_set *set,
                          const struct query_set *other, bool in_other, uint32_t *index)
{
    for (size_t i = 0; i < set->count; i++) {
        char key[DOCUMENT_INDEX_SIZE];

        if (!other || (query_set_find(other, &set->values[i]) != SIZE_MAX) == in_other)
            document_append(&context->scratch, document_index_key((*index)++, key),
                            &set->values[i]);
    }
}

enum operation { DIFFERENCE, INTERSECT, UNION };

static bool combine(const struct document_value *arguments, enum operation operation,
                    struct query_context *context, struct document_value *ret_value,
                    struct error *err)
{
    size_t mark = query_build_begin(context), begin;
    struct query_set sets[2];
    uint32_t index = 0;
    bool usable;

    if (!two_sets(arguments, context, sets, &usable, err))
        return !usable;
    begin = document_begin(&context->scratch);
    values_append(context, &sets[0], operation == UNION ? NULL : &sets[1], operation == INTERSECT,
                  &index);
    if (operation == UNION)
        values_append(context, &sets[1], &sets[0], false, &index);
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_value, err);
}

QUERY_FUNCTION(set_difference)
{
    return combine(arguments, DIFFERENCE, context, ret_value, err);
}

QUERY_FUNCTION(set_intersect)
{
    return combine(arguments, INTERSECT, context, ret_value, err);
}

QUERY_FUNCTION(set_union)
{
    return combine(arguments, UNION, context, ret_value, err);
}

QUERY_FUNCTION(set_equal)
{
    struct query_set sets[2];
    bool usable, equal;

    if (!two_sets(arguments, context, sets, &usable, err))
        return !usable;
    equal = sets[0].count == sets[1].count;
    for (size_t i = 0; equal && i < sets[0].count; i++)
        equal = query_set_find(&sets[1], &sets[0].values[i]) != SIZE_MAX;
    *ret_value = document_bool(equal);
    return true;
}

static const struct query_function functions[] = {
    {"SetDifference", 2, 2, false, QUERY_STABLE, set_difference},
    {"SetEqual", 2, 2, false, QUERY_STABLE, set_equal},
    {"SetIntersect", 2, 2, false, QUERY_STABLE, set_intersect},
    {"SetUnion", 2, 2, false, QUERY_STABLE, set_union},
};

const struct query_function_family query_functions_set = {functions, ARRAY_LEN(functions)};
