/* Searches from item to item. One step asks for all items that pair with any of the values the
 * step before has come to, so a search takes as many queries as steps, whatever its width. Items
 * that were found and values that were asked for are kept in sets, in one arena whose size is
 * bounded as all temporaries of a query are. */
#include "query/stage/flow_private.h"
#include "query/stage/tuple.h"
#include "query/value/set.h"
#include "query/value/value.h"

struct search {
    struct query_stages *run;
    struct arena *arena;    /* of the sets and what they hold */
    struct query_set found; /* identities */
    struct query_set asked; /* values, those of the next step last */
    uint64_t step;
    bool (*row)(void *self, const struct document_value *value, struct error *err);
    void *self;
};

static bool value_reach(struct search *search, const struct document_value *value,
                        struct error *err)
{
    bool is_new = query_set_find(&search->asked, value) == SIZE_MAX;
    struct document_value kept;

    if (!query_work(&search->run->context, 1, err))
        return false;
    if (!is_new)
        return true;
    kept = query_value_copy(value, search->arena);
    query_set_add(&search->asked, &kept, &is_new);
    return query_memory_check(&search->run->context, arena_used(search->arena), err);
}

static bool values_reach(struct search *search, const struct document_value *values,
                         struct error *err)
{
    struct document_iter iter;

    if (values->type != DOCUMENT_ARRAY)
        return true;
    document_iter_init(&iter, values->document);
    while (document_iter_next(&iter))
        if (!value_reach(search, &iter.value, err))
            return false;
    return true;
}

/* The item as it is given: [item, step]. */
static bool item_give(struct search *search, const struct document_value *item, struct error *err)
{
    struct query_context *context = &search->run->context;
    size_t mark = query_build_begin(context), begin = document_begin(&context->scratch);
    struct document_value pair;

    document_append(&context->scratch, SLICE("0"), item);
    document_append_int64(&context->scratch, SLICE("1"), (int64_t)search->step);
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, &pair, err) &&
           search->row(search->self, &pair, err);
}

/* A tuple of identity, values and item. */
static bool search_row(void *self, const struct document_value *tuple, struct error *err)
{
    struct search *search = self;
    struct document_value parts[3], identity;
    struct document_iter iter;
    bool is_new;

    document_iter_init(&iter, tuple->document);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        parts[i] = document_iter_next(&iter) ? iter.value : document_undefined();
    if (!query_work(&search->run->context, 1, err))
        return false;
    if (query_set_find(&search->found, &parts[0]) != SIZE_MAX)
        return true;
    identity = query_value_copy(&parts[0], search->arena);
    query_set_add(&search->found, &identity, &is_new);
    return values_reach(search, &parts[1], err) && item_give(search, &parts[2], err) &&
           query_memory_check(&search->run->context, arena_used(search->arena), err);
}

/* The values of a step as one array. */
static struct document_value step_values(const struct search *search, size_t from, size_t to,
                                         struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin;

    buf_init(&buf, SIZE_MAX / 2);
    begin = document_begin(&buf);
    for (size_t i = from; i < to; i++)
        document_append(&buf, document_index_key((uint32_t)(i - from), text),
                        &search->asked.values[i]);
    document_end(&buf, begin);
    return document_array(arena_copy(arena, buf_slice(&buf)));
}

static bool step_run(struct search *search, const struct query_lookup *lookup,
                     const struct query_binding *lets, size_t from, size_t to, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_plan plan = *lookup->plan;
    struct query_build build = {
        .arena = arena, .order = plan.order, .keep_nonfinite = plan.order == DOCUMENT_ORDER_MONGO};
    const struct document_value values = step_values(search, from, to, arena);
    const struct query_expression *condition, *tuple[3];
    const void *pair;

    if (!lookup->pairing->condition(lookup->pairing, &build, &values, &condition, &pair, err))
        return false;
    if (!condition)
        return true;
    tuple[0] = lookup->graph->identity;
    tuple[1] = lookup->graph->next;
    tuple[2] = plan.query.select;
    plan.query.filter =
        plan.query.filter ? query_and(&build, condition, plan.query.filter) : condition;
    plan.query.select = query_tuple_of(&build, tuple, ARRAY_LEN(tuple));
    if (build.failed) {
        *err = build.error;
        return false;
    }
    return query_other_run(search->run, lookup->container, &plan, lets, lookup->let_count,
                           search_row, search, err);
}

bool query_graph_search(struct query_stages *run, const struct query_lookup *lookup,
                        const struct document_value *from, const struct query_binding *lets,
                        bool (*row)(void *self, const struct document_value *value,
                                    struct error *err),
                        void *self, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct search search = {.run = run, .arena = arena, .row = row, .self = self};
    size_t done = 0;

    assert(!lookup->plan->rest);
    query_set_init(&search.found, lookup->plan->order, arena, 0);
    query_set_init(&search.asked, lookup->plan->order, arena, 0);
    if (!values_reach(&search, from, err))
        return false;
    for (; done < search.asked.count && search.step <= lookup->graph->steps_max; search.step++) {
        size_t end = search.asked.count;

        if (!step_run(&search, lookup, lets, done, end, err))
            return false;
        done = end;
    }
    return true;
}
