/* Grouping, aggregates and ordering within a subquery.
 *
 * First all combinations go into groups; without GROUP BY and aggregates each is a row of its own.
 * Then every group, or row, gives a value and its sort keys; these are sorted as one array. */
#include "query/expression/combinations.h"
#include "query/value/compare.h"
#include "query/value/set.h"
#include "query/value/value.h"

/* A value and, behind it, the keys it is sorted by. */
struct entry {
    size_t index; /* as it came: makes the sort stable */
    struct document_value value;
    struct document_value keys[];
};

struct entries {
    const struct query_subquery *query;
    struct entry **list;
    size_t count, capacity;
};

struct groups {
    const struct query_subquery *query;
    struct query_set keys;          /* arrays of the key values */
    struct query_aggregate *states; /* aggregate_count for each group; on the heap */
    size_t count, capacity;         /* groups */
    size_t bytes;                   /* of the heap that the states hold */
};

static void groups_done(struct groups *groups)
{
    for (size_t i = 0; i < groups->count * groups->query->aggregate_count; i++)
        query_aggregate_done(&groups->states[i]);
    memory_free(groups->states);
}
CLEANUP_VALUE_FN(struct groups, groups_done)

/* --- Entries --------------------------------------------------------------------------------- */

static bool entries_grow(struct entries *entries, struct query_context *context, struct error *err)
{
    size_t capacity = entries->capacity ? entries->capacity * 2 : 16;
    struct entry **list = query_alloc(context, capacity * sizeof *list, err);

    if (!list)
        return false;
    if (entries->count)
        memcpy(list, entries->list, entries->count * sizeof *list);
    entries->list = list;
    entries->capacity = capacity;
    return true;
}

/* Evaluates select and the sort keys for the variables as they stand. */
static bool entries_add(struct entries *entries, struct query_context *context, struct error *err)
{
    const struct query_subquery *query = entries->query;
    struct document_value value;
    struct entry *entry;

    if (!query_evaluate(query->select, context, &value, err))
        return false;
    if (!query_value_shows(&value) &&
        (value.type == DOCUMENT_UNDEFINED || !context->keep_nonfinite))
        return true;
    if (entries->count == entries->capacity && !entries_grow(entries, context, err))
        return false;
    entry = query_alloc(context, sizeof *entry + query->order_count * sizeof *entry->keys, err);
    if (!entry)
        return false;
    entry->value = value;
    entry->index = entries->count;
    for (size_t i = 0; i < query->order_count; i++) {
        if (!query_evaluate(query->order[i].expression, context, &entry->keys[i], err))
            return false;
    }
    entries->list[entries->count++] = entry;
    return true;
}

struct sorting {
    const struct query_subquery *query;
    enum document_order order;
};

static int entry_compare(const void *a, const void *b, void *context)
{
    const struct entry *left = *(struct entry *const *)a, *right = *(struct entry *const *)b;
    const struct sorting *sorting = context;
    const struct query_subquery *query = sorting->query;

    for (size_t i = 0; i < query->order_count; i++) {
        int order = document_compare(sorting->order, &left->keys[i], &right->keys[i]);

        if (order)
            return query->order[i].descending ? -order : order;
    }
    return (left->index > right->index) - (left->index < right->index);
}

static bool entries_finish(struct entries *entries, struct query_context *context,
                           struct query_values *ret_values, struct error *err)
{
    struct sorting sorting = {entries->query, context->order};
    unsigned levels = 64 - (unsigned)__builtin_clzll(entries->count | 1);

    if (!query_work(context, entries->count * levels, err))
        return false;
    if (entries->query->order_count && entries->count)
        qsort_r(entries->list, entries->count, sizeof *entries->list, entry_compare, &sorting);
    ret_values->count = entries->count;
    ret_values->values =
        query_alloc(context, (entries->count + 1) * sizeof *ret_values->values, err);
    if (!ret_values->values)
        return false;
    for (size_t i = 0; i < entries->count; i++)
        ret_values->values[i] = entries->list[i]->value;
    return true;
}

/* --- Groups ---------------------------------------------------------------------------------- */

/* The key values as one array. Undefined is kept: it is a group of its own. */
static bool group_key(const struct query_subquery *query, struct query_context *context,
                      struct document_value *ret_key, struct error *err)
{
    size_t mark = query_build_begin(context), begin = document_begin(&context->scratch);

    for (size_t i = 0; i < query->key_count; i++) {
        char text[DOCUMENT_INDEX_SIZE];
        struct document_value value;

        if (!query_evaluate(query->keys[i].expression, context, &value, err))
            return query_build_drop(context, mark);
        if (!query_build_append(context, document_index_key((uint32_t)i, text), &value, err))
            return query_build_drop(context, mark);
    }
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_key, err);
}

static void group_open(struct groups *groups, enum document_order order, size_t bytes_max)
{
    const struct query_subquery *query = groups->query;
    struct query_aggregate *states;

    if (groups->count == groups->capacity) {
        groups->capacity = groups->capacity ? groups->capacity * 2 : 4;
        groups->states = memory_realloc(
            groups->states,
            memory_array_size(groups->capacity, query->aggregate_count * sizeof *states + 1));
    }
    states = groups->states + groups->count * query->aggregate_count;
    for (size_t i = 0; i < query->aggregate_count; i++)
        query_aggregate_init(&states[i], query->aggregates[i].kind, order, bytes_max);
    groups->count++;
    for (size_t i = 0; i < query->aggregate_count; i++)
        groups->bytes += sizeof *states + query_aggregate_bytes(&states[i]);
}

static bool group_add_row(struct groups *groups, struct query_context *context, struct error *err)
{
    const struct query_subquery *query = groups->query;
    struct document_value key, value;
    bool is_new = false;
    size_t group = 0;

    if (query->key_count) {
        if (!group_key(query, context, &key, err))
            return false;
        group = query_set_add(&groups->keys, &key, &is_new);
        if (is_new)
            group_open(groups, context->order, context->limits.bytes_max);
    }
    for (size_t i = 0; i < query->aggregate_count; i++) {
        struct query_aggregate *state = &groups->states[group * query->aggregate_count + i];

        groups->bytes -= query_aggregate_bytes(state);
        if (!query_evaluate(query->aggregates[i].argument, context, &value, err) ||
            !query_aggregate_add(state, &value, err))
            return false;
        groups->bytes += query_aggregate_bytes(state);
    }
    return query_memory_check(context, groups->bytes, err);
}

static void slot_set(struct query_context *context, uint32_t slot, struct document_value value)
{
    assert(slot < context->slot_count);
    context->slots[slot] = (struct query_slot){.value = value};
}

/* Key values and results take their places, and the group becomes a row. */
static bool group_give(struct groups *groups, size_t group, struct entries *entries,
                       struct query_context *context, struct error *err)
{
    const struct query_subquery *query = groups->query;

    if (query->key_count) {
        struct document_iter iter;

        document_iter_init(&iter, groups->keys.values[group].document);
        for (size_t i = 0; i < query->key_count && document_iter_next(&iter); i++)
            slot_set(context, query->keys[i].slot, iter.value);
    }
    for (size_t i = 0; i < query->aggregate_count; i++) {
        struct query_aggregate *state = &groups->states[group * query->aggregate_count + i];
        struct document_value result = query_aggregate_finish(state);

        slot_set(context, query->aggregates[i].slot, query_value_copy(&result, context->arena));
    }
    return query_memory_check(context, groups->bytes, err) && entries_add(entries, context, err);
}

static bool collect_groups(const struct query_subquery *query, struct query_rows *rows,
                           struct query_context *context, struct entries *entries,
                           struct error *err)
{
    CLEANUP(groups_done) struct groups groups = {.query = query};
    bool more;

    query_set_init(&groups.keys, context->order, context->arena, 0);
    if (!query->key_count)
        group_open(&groups, context->order, context->limits.bytes_max);
    for (;;) {
        if (!query_subquery_combine(rows, context, &more, err))
            return false;
        if (!more)
            break;
        if (!group_add_row(&groups, context, err))
            return false;
    }
    for (size_t i = 0; i < groups.count; i++) {
        if (!group_give(&groups, i, entries, context, err))
            return false;
    }
    return true;
}

bool query_subquery_collect(const struct query_subquery *query, struct query_rows *rows,
                            struct query_context *context, struct query_values *ret_values,
                            struct error *err)
{
    struct entries entries = {.query = query};
    bool more = true;

    if (query->key_count || query->aggregate_count) {
        if (!collect_groups(query, rows, context, &entries, err))
            return false;
        return entries_finish(&entries, context, ret_values, err);
    }
    while (more) {
        if (!query_subquery_combine(rows, context, &more, err))
            return false;
        if (more && !entries_add(&entries, context, err))
            return false;
    }
    return entries_finish(&entries, context, ret_values, err);
}
