/* $facet: several pipelines over the same documents. */
#include "front/mongo/pipeline/pipeline_private.h"

static bool facet_check(const struct document_iter *iter, struct error *err)
{
    if (!pipeline_is_field_name(iter->key))
        return mongo_error_set(err, iter->key.len && iter->key.data[0] == '$' ? 16410 : 40169,
                               "a $facet output field name may not be empty, begin with '$' or "
                               "contain '.': '%.*s'",
                               (int)MIN(iter->key.len, (size_t)80), (const char *)iter->key.data);
    if (iter->value.type != DOCUMENT_ARRAY)
        return mongo_error_set(err, 40170, "arguments to $facet must be arrays, %.*s is type %s",
                               (int)MIN(iter->key.len, (size_t)80), (const char *)iter->key.data,
                               mongo_type_name(iter->value.type));
    return true;
}

bool stage_facet(struct pipeline *p, const struct document_value *specification, struct error *err)
{
    struct arena *arena = p->build->arena;
    const struct query_expression **values;
    struct document_iter iter;
    struct query_chain *chains;
    struct slice *names;
    uint32_t *slots;
    size_t count, at = 0;

    if (specification->type != DOCUMENT_OBJECT || !document_count(specification->document))
        return mongo_error_set(err, 40169, "the $facet specification must be a non-empty object");
    count = document_count(specification->document);
    chains = ARENA_ARRAY(arena, struct query_chain, count);
    slots = ARENA_ARRAY(arena, uint32_t, count);
    names = ARENA_ARRAY(arena, struct slice, count);
    values = ARENA_ARRAY(arena, const struct query_expression *, count);
    pipeline_settle(p);
    document_iter_init(&iter, specification->document);
    for (; document_iter_next(&iter); at++) {
        struct pipeline inner = *p;

        if (!facet_check(&iter, err) || !pipeline_result_slot(p, at, &slots[at], err))
            return false;
        inner.stages = NULL;
        inner.count = inner.capacity = inner.position = 0;
        inner.turns[0] = SLOT_FACET;
        inner.turns[1] = SLOT_FACET_OTHER;
        inner.in_facet = true;
        if (!pipeline_append(&inner, iter.value.document, err))
            return false;
        chains[at] =
            (struct query_chain){inner.stages, inner.count, query_variable(p->build, inner.slot)};
        names[at] = arena_copy(arena, iter.key);
        values[at] = query_variable(p->build, slots[at]);
    }
    pipeline_stage(p, QUERY_STAGE_FACET)->facet = (struct query_facet){chains, slots, at};
    pipeline_project(p, query_object(p->build, names, values, at));
    return true;
}
