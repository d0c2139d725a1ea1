/* Indexes of vectors: an order by how alike a path is to a vector becomes a walk of the entries
 * that have the vectors of that path, of which the best ones are read.
 *
 * It is taken instead of a scan of all items. Where a filter names a partition key, or has an index
 * of its own, that is asked first, and what it finds is compared one by one. */
#include "query/access/access_private.h"

#include "index/policy.h"
#include "query/function/function.h"

enum {
    ROWS_MAX = 2000,    /* of a plan */
    WANTED_MAX = 20000, /* entries of a span that are looked at closely */
    LIST_TIMES = 10,    /* candidates of a graph for each row, where the query does not say */
    FILTER_TIMES = 6,   /* entries that a filter of the highest priority is tried on besides */
};

/* The constant that an argument is; undefined: it is none. */
static struct document_value constant_of(const struct query_expression *expression)
{
    return query_is_constant(expression) ? *query_constant_value(expression) : document_undefined();
}

/* What a query says of how it is searched. */
struct tuning {
    struct search_vectors vectors;
    int64_t list, compared; /* times as many as rows; 0: not said */
    int64_t priority;       /* of a filter, in thousandths */
};

static bool whole_of(const struct query_expression *expression, int64_t *ret_number)
{
    struct document_value value = constant_of(expression);

    return document_to_int64(&value, ret_number);
}

/* The arguments of an order by vectors; NULL: it is none, or all vectors are to be compared. */
static const struct query_expression *const *order_vector(const struct query_plan *plan,
                                                          struct tuning *ret_tuning)
{
    const struct query_expression *order =
        plan->query.order_count == 1 ? plan->query.order[0].expression : NULL;
    struct document_value brute;
    int64_t packed;

    if (!order || order->kind != &query_kind_call ||
        !((const struct query_call *)order)->function->takes_vectors)
        return NULL;
    brute = constant_of(order->children[QUERY_VECTOR_BRUTE]);
    return brute.type == DOCUMENT_BOOL && !brute.boolean &&
                   whole_of(order->children[QUERY_VECTOR_LIST], &ret_tuning->list) &&
                   whole_of(order->children[QUERY_VECTOR_COMPARED], &ret_tuning->compared) &&
                   whole_of(order->children[QUERY_VECTOR_PRIORITY], &ret_tuning->priority) &&
                   whole_of(order->children[QUERY_VECTOR_KIND], &packed) &&
                   search_vectors_unpack(packed, &ret_tuning->vectors)
               ? order->children
               : NULL;
}

/* The index that has the vectors at a path of all items. */
static const struct index_definition *vectors_at(const struct item_space *space,
                                                 const struct document_path *path)
{
    const struct index_definition *definition =
        index_policy_vector_at(space->definition->policy, path);

    for (size_t i = 0; definition && i < space->policies_before_count; i++) {
        const struct index_definition *before =
            index_policy_vector_at(space->policies_before[i], path);

        if (!before || !index_vector_same(before->vector, definition->vector))
            return NULL;
    }
    return definition;
}

/* Which of the two arguments is a path that has an index; the other is asked for. */
static const struct index_definition *
sides_find(const struct query_plan *plan, const struct item_space *space,
           const struct query_expression *const *children, struct arena *arena,
           struct document_path *ret_path, struct document_value *ret_asked)
{
    for (int side = QUERY_VECTOR_FIRST; side <= QUERY_VECTOR_SECOND; side++) {
        int other = QUERY_VECTOR_FIRST + QUERY_VECTOR_SECOND - side;
        const struct index_definition *definition;
        bool elements;

        if (!query_path_find(plan, children[side], arena, ret_path, &elements) || elements ||
            !query_is_constant(children[other]))
            continue;
        *ret_asked = constant_of(children[other]);
        definition = vectors_at(space, ret_path);
        if (definition)
            return definition;
    }
    return NULL;
}

/* How many entries for each row are compared by their items. Where the query does not say, the
 * coarser a code, the more of them; a list is gone through as far as that is needed. */
static int64_t compared_times(const struct index_vector *index, const struct tuning *tuning)
{
    int64_t usual = index->bits == 8 ? 2 : index->bits == 4 ? 5 : 10;

    if (tuning->compared)
        return tuning->compared;
    if (!tuning->list)
        return usual;
    return index->graph_list && index->bits == 8 ? MIN(tuning->list, usual) : tuning->list;
}

/* A filter is tried on more entries the higher its priority; 4 times as many by default. */
static void nearest_tune(struct query_nearest *nearest, const struct tuning *tuning, uint64_t rows)
{
    const struct index_vector *index = nearest->index;
    int64_t compared = compared_times(index, tuning);
    int64_t list = tuning->list ? tuning->list : LIST_TIMES;

    nearest->wanted = index->bits ? MIN(rows * (uint64_t)compared, (uint64_t)WANTED_MAX) : rows;
    nearest->first = nearest->wanted;
    if (nearest->filtered)
        nearest->first += nearest->wanted * FILTER_TIMES * (uint64_t)tuning->priority / 1000;
    if (index->graph_list && tuning->vectors.metric == index->vectors.metric)
        nearest->list = MAX(rows * (uint64_t)list, nearest->first);
}

const struct query_index_use *query_vectors_use(const struct query_plan *plan,
                                                const struct item_space *space,
                                                const struct query_access *access,
                                                struct arena *arena)
{
    const struct query_expression *const *children;
    struct query_index_use *use = ARENA_NEW(arena, struct query_index_use);
    struct query_nearest *nearest = ARENA_NEW(arena, struct query_nearest);
    struct cursor_range *all = ARENA_NEW(arena, struct cursor_range);
    const struct index_definition *definition;
    struct tuning tuning;
    struct document_value asked;
    struct document_path path;
    float *elements;
    uint32_t dimensions;
    uint64_t rows =
        plan->query.limit > ROWS_MAX ? UINT64_MAX : plan->query.limit + plan->query.offset;

    if (access->kind != QUERY_ACCESS_SCAN || access->target_count != 1 ||
        access->targets[0].logical.len || rows > ROWS_MAX || plan->query.distinct)
        return NULL;
    children = order_vector(plan, &tuning);
    if (!children)
        return NULL;
    definition = sides_find(plan, space, children, arena, &path, &asked);
    if (!definition || definition->vector->vectors.type != tuning.vectors.type ||
        definition->vector->vectors.dimensions != tuning.vectors.dimensions)
        return NULL;
    elements = ARENA_ARRAY(arena, float, SEARCH_DIMENSIONS_MAX);
    if (!search_vector_read(&asked, &tuning.vectors, elements, &dimensions))
        return NULL; /* nothing is like it: the scan finds that out too */
    *nearest = (struct query_nearest){.asked = search_asked_of(elements, &tuning.vectors),
                                      .index = definition->vector,
                                      .definition = definition,
                                      .filtered = plan->query.filter != NULL ||
                                                  plan->query.source_count > 0};
    nearest_tune(nearest, &tuning, rows);
    *all = (struct cursor_range){SLICE(""), SLICE("\xFF")};
    *use = (struct query_index_use){
        .prefix = definition->prefix,
        .value_count = 1,
        .order = DOCUMENT_ORDER_SQL,
        .ranges = {.list = all, .count = 1},
        .name = arena_join(
            arena, (struct slice[]){SLICE("vectors of "), query_path_name(&path, arena)}, 2),
        .nearest = nearest,
    };
    return use;
}
