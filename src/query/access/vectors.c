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
};

/* The constant that an argument is; undefined: it is none. */
static struct document_value constant_of(const struct query_expression *expression)
{
    return query_is_constant(expression) ? *query_constant_value(expression) : document_undefined();
}

/* The arguments of an order by vectors; NULL: it is none, or all vectors are to be compared. */
static const struct query_expression *const *order_vector(const struct query_plan *plan,
                                                          struct search_vectors *ret_vectors,
                                                          int64_t *ret_multiplier)
{
    const struct query_expression *order =
        plan->query.order_count == 1 ? plan->query.order[0].expression : NULL;
    struct document_value brute, multiplier, kind;
    int64_t packed;

    if (!order || order->kind != &query_kind_call ||
        !((const struct query_call *)order)->function->takes_vectors)
        return NULL;
    brute = constant_of(order->children[QUERY_VECTOR_BRUTE]);
    multiplier = constant_of(order->children[QUERY_VECTOR_MULTIPLIER]);
    kind = constant_of(order->children[QUERY_VECTOR_KIND]);
    return brute.type == DOCUMENT_BOOL && !brute.boolean &&
                   document_to_int64(&multiplier, ret_multiplier) &&
                   document_to_int64(&kind, &packed) && search_vectors_unpack(packed, ret_vectors)
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
    struct search_vectors vectors;
    struct document_value asked;
    struct document_path path;
    float *elements;
    uint32_t dimensions;
    int64_t multiplier;
    uint64_t rows =
        plan->query.limit > ROWS_MAX ? UINT64_MAX : plan->query.limit + plan->query.offset;

    if (access->kind != QUERY_ACCESS_SCAN || access->target_count != 1 ||
        access->targets[0].logical.len || rows > ROWS_MAX || plan->query.distinct)
        return NULL;
    children = order_vector(plan, &vectors, &multiplier);
    if (!children)
        return NULL;
    definition = sides_find(plan, space, children, arena, &path, &asked);
    if (!definition || definition->vector->vectors.type != vectors.type ||
        definition->vector->vectors.dimensions != vectors.dimensions)
        return NULL;
    elements = ARENA_ARRAY(arena, float, SEARCH_DIMENSIONS_MAX);
    if (!search_vector_read(&asked, &vectors, elements, &dimensions))
        return NULL; /* nothing is like it: the scan finds that out too */
    *nearest = (struct query_nearest){search_asked_of(elements, &vectors), definition->vector, rows,
                                      plan->query.filter != NULL || plan->query.source_count > 0};
    if (definition->vector->bits)
        nearest->wanted = MIN(rows * (uint64_t)multiplier, (uint64_t)WANTED_MAX);
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
