/* $push, $addToSet, $pop, $pull and $pullAll: an array in, an array out. Elements are looked at as
 * they lie in the document before; nothing is copied until the result is put together. */
#include "front/mongo/text.h"
#include "front/mongo/update/update_private.h"

#include <stdlib.h>

/* The elements of an array, in the arena, with room for more. */
struct elements {
    struct document_value *list;
    size_t count;
};

static struct elements elements_of(struct update_run *run, const struct document_value *array,
                                   size_t more)
{
    struct document_iter iter;
    struct elements elements = {0};
    size_t count = array ? document_count(array->document) : 0;

    elements.list = ARENA_ARRAY(run->arena, struct document_value, count + more + 1);
    if (!count)
        return elements;
    document_iter_init(&iter, array->document);
    while (elements.count < count && document_iter_next(&iter))
        elements.list[elements.count++] = iter.value;
    return elements;
}

static bool elements_write(struct update_run *run, const struct elements *elements,
                           struct document_value *ret_array)
{
    CLEANUP(buf_done) struct buf buf;
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin;

    buf_init(&buf, MONGO_DOCUMENT_BYTES_MAX + 1024);
    begin = document_begin(&buf);
    for (size_t i = 0; i < elements->count; i++)
        document_append(&buf, document_index_key((uint32_t)i, text), &elements->list[i]);
    document_end(&buf, begin);
    if (buf_overflowed(&buf))
        return mongo_error_set(run->err, 17419, "Resulting document after update is larger than %d",
                               MONGO_DOCUMENT_BYTES_MAX);
    *ret_array = document_array(arena_copy(run->arena, buf_slice(&buf)));
    return true;
}

/* --- $push ------------------------------------------------------------------------------------ */

/* The value at a dotted path of an element; missing is null. */
static struct document_value key_of(const struct document_value *element, struct slice path)
{
    struct document_value value = *element;
    struct slice name, rest = path;
    bool more = true;

    if (!path.data)
        return value;
    while (more) {
        more = slice_split(rest, '.', &name, &rest);
        if (!more)
            name = rest;
        if (value.type != DOCUMENT_OBJECT || !document_find(value.document, name, &value))
            return document_null();
    }
    return value;
}

struct sorting {
    const struct update_modifier *modifier;
    const struct document_value *keys; /* of each element, one for each part of the order */
};

static int elements_compare(const void *a, const void *b, void *context)
{
    const struct sorting *sorting = context;
    const uint32_t *x = a, *y = b;

    for (size_t i = 0; i < sorting->modifier->sort_count; i++) {
        const struct update_sort *sort = &sorting->modifier->sorts[i];
        const struct document_value *left = &sorting->keys[*x * sorting->modifier->sort_count + i];
        const struct document_value *right = &sorting->keys[*y * sorting->modifier->sort_count + i];
        int order = document_compare(DOCUMENT_ORDER_MONGO, left, right);

        if (order)
            return sort->descending ? -order : order;
    }
    return *x < *y ? -1 : *x > *y; /* equal ones stay as they are */
}

static bool elements_sort(struct update_run *run, const struct update_modifier *modifier,
                          struct elements *elements)
{
    struct document_value *keys =
        ARENA_ARRAY(run->arena, struct document_value, elements->count * modifier->sort_count + 1);
    struct sorting sorting = {modifier, keys};
    uint32_t *places = ARENA_ARRAY(run->arena, uint32_t, elements->count + 1);
    struct document_value *sorted =
        ARENA_ARRAY(run->arena, struct document_value, elements->count + 1);

    for (size_t i = 0; i < elements->count; i++) {
        places[i] = (uint32_t)i;
        for (size_t s = 0; s < modifier->sort_count; s++) {
            struct document_value *key = &keys[i * modifier->sort_count + s];

            *key = key_of(&elements->list[i], modifier->sorts[s].path);
            if (run->collator &&
                !mongo_collate(run->collator, key, run->input->context, key, run->err))
                return false;
        }
    }
    if (elements->count > 1)
        qsort_r(places, elements->count, sizeof *places, elements_compare, &sorting);
    for (size_t i = 0; i < elements->count; i++)
        sorted[i] = elements->list[places[i]];
    elements->list = sorted;
    return true;
}

static void elements_insert(const struct update_modifier *modifier, struct elements *elements)
{
    size_t at = elements->count, count = modifier->value_count;

    if (modifier->has_position && modifier->position >= 0)
        at = (size_t)MIN((uint64_t)modifier->position, (uint64_t)elements->count);
    else if (modifier->has_position)
        at = elements->count - (size_t)MIN(-(uint64_t)modifier->position, elements->count);
    memmove(elements->list + at + count, elements->list + at,
            (elements->count - at) * sizeof *elements->list);
    if (count)
        memcpy(elements->list + at, modifier->values, count * sizeof *elements->list);
    elements->count += count;
}

static void elements_cut(int64_t slice, struct elements *elements)
{
    uint64_t keep = slice < 0 ? -(uint64_t)slice : (uint64_t)slice;

    if (keep >= elements->count)
        return;
    if (slice < 0)
        elements->list += elements->count - keep;
    elements->count = (size_t)keep;
}

static bool push_compute(struct update_run *run, const struct update_modifier *modifier,
                         const struct document_value *before, struct document_value *ret_after)
{
    struct elements elements;

    if (before && before->type != DOCUMENT_ARRAY)
        return mongo_error_set(run->err, MONGO_BAD_VALUE,
                               "The field '%.*s' must be an array but is of type %s in document "
                               "%.*s",
                               SLICE_ARG(modifier->path.text), mongo_type_name(before->type),
                               SLICE_ARG(run->id_text));
    elements = elements_of(run, before, modifier->value_count);
    elements_insert(modifier, &elements);
    if (modifier->sort_count && !elements_sort(run, modifier, &elements))
        return false;
    if (modifier->has_slice)
        elements_cut(modifier->slice, &elements);
    return elements_write(run, &elements, ret_after);
}

/* --- $addToSet -------------------------------------------------------------------------------- */

static bool has(struct update_run *run, const struct document_value *list, size_t count,
                const struct document_value *value, bool *ret_has)
{
    int order = 1;

    for (size_t i = 0; i < count && order; i++)
        if (!update_values_order(run, &list[i], value, &order))
            return false;
    *ret_has = order == 0;
    return true;
}

static bool add_to_set_compute(struct update_run *run, const struct update_modifier *modifier,
                               const struct document_value *before,
                               struct document_value *ret_after)
{
    struct elements elements;
    size_t count;

    if (before && before->type != DOCUMENT_ARRAY)
        return mongo_error_set(run->err, MONGO_BAD_VALUE,
                               "Cannot apply $addToSet to non-array field. Field named '%.*s' has "
                               "non-array type %s",
                               SLICE_ARG(update_path_last(&modifier->path)),
                               mongo_type_name(before->type));
    elements = elements_of(run, before, modifier->value_count);
    count = elements.count;
    for (size_t i = 0; i < modifier->value_count; i++) {
        bool there;

        if (!query_work(run->input->context, elements.count, run->err) ||
            !has(run, elements.list, elements.count, &modifier->values[i], &there))
            return false;
        if (!there)
            elements.list[elements.count++] = modifier->values[i];
    }
    if (before && elements.count == count) {
        *ret_after = *before;
        return true;
    }
    return elements_write(run, &elements, ret_after);
}

/* --- Taking away ------------------------------------------------------------------------------ */

static bool pop_compute(struct update_run *run, const struct update_modifier *modifier,
                        const struct document_value *before, struct document_value *ret_after)
{
    struct elements elements;

    if (before->type != DOCUMENT_ARRAY)
        return mongo_error_set(run->err, MONGO_TYPE_MISMATCH,
                               "Path '%.*s' contains an element of non-array type '%s'",
                               SLICE_ARG(modifier->path.text), mongo_type_name(before->type));
    elements = elements_of(run, before, 0);
    if (!elements.count) {
        *ret_after = *before;
        return true;
    }
    elements.count--;
    if (!modifier->last)
        elements.list++;
    return elements_write(run, &elements, ret_after);
}

static bool is_pulled(struct update_run *run, const struct update_modifier *modifier,
                      const struct document_value *element, bool *ret_pulled)
{
    if (modifier->op == UPDATE_PULL)
        return mongo_match_holds(modifier->match, element, run->input->context, ret_pulled,
                                 run->err);
    return query_work(run->input->context, modifier->value_count, run->err) &&
           has(run, modifier->values, modifier->value_count, element, ret_pulled);
}

static bool pull_compute(struct update_run *run, const struct update_modifier *modifier,
                         const struct document_value *before, struct document_value *ret_after)
{
    struct elements elements;
    size_t kept = 0, count;

    if (before->type != DOCUMENT_ARRAY)
        return mongo_error_set(run->err, MONGO_BAD_VALUE,
                               "Cannot apply $pull to a non-array value");
    elements = elements_of(run, before, 0);
    count = elements.count;
    for (size_t i = 0; i < count; i++) {
        bool pulled;

        if (!is_pulled(run, modifier, &elements.list[i], &pulled))
            return false;
        if (!pulled)
            elements.list[kept++] = elements.list[i];
    }
    elements.count = kept;
    if (kept == count) {
        *ret_after = *before;
        return true;
    }
    return elements_write(run, &elements, ret_after);
}

bool update_array_compute(struct update_run *run, const struct update_modifier *modifier,
                          const struct document_value *before, bool *ret_there,
                          struct document_value *ret_after)
{
    *ret_there = true;
    if (modifier->op == UPDATE_PUSH)
        return push_compute(run, modifier, before, ret_after);
    if (modifier->op == UPDATE_ADD_TO_SET)
        return add_to_set_compute(run, modifier, before, ret_after);
    if (!before) {
        *ret_there = false;
        return true;
    }
    if (modifier->op == UPDATE_POP)
        return pop_compute(run, modifier, before, ret_after);
    return pull_compute(run, modifier, before, ret_after);
}
