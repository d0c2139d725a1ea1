#include "query/access/cover.h"

struct reading {
    const struct query_plan *plan;
    struct arena *arena;
    bool found, broken;
    struct document_path path;
    struct slice prefix;
};

/* Notes what the expression reads of the item. */
static void read_expression(struct reading *r, const struct query_expression *expression)
{
    struct document_path path;
    struct slice prefix;
    bool elements;

    if (r->broken || !(expression->slots_used & 1))
        return;
    if (expression->kind == &query_kind_subquery || expression->kind == &query_kind_variable) {
        r->broken = true;
        return;
    }
    if (!query_path_find(r->plan, expression, r->arena, &path, &elements)) {
        for (size_t i = 0; i < expression->child_count; i++)
            read_expression(r, expression->children[i]);
        return;
    }
    prefix = query_path_prefix(&path, r->arena);
    if (r->found && !slice_equal(prefix, r->prefix))
        r->broken = true;
    r->found = true;
    r->path = path;
    r->prefix = prefix;
}

static bool is_the_path(const struct reading *r, const struct query_expression *expression)
{
    struct document_path path;
    bool elements;

    return query_path_find(r->plan, expression, r->arena, &path, &elements) &&
           slice_equal(query_path_prefix(&path, r->arena), r->prefix);
}

static bool is_defined_constant(const struct query_expression *expression)
{
    return query_is_constant(expression) &&
           query_constant_value(expression)->type != DOCUMENT_UNDEFINED;
}

/* Aggregates take no notice of what is undefined; COUNT(1) does, and can be put right after. */
static void alone_find(const struct reading *r, struct query_cover *cover)
{
    const struct query_subquery *query = &r->plan->query;

    if (query->filter || query->order_count)
        return;
    for (size_t i = 0; i < query->aggregate_count; i++) {
        if (is_the_path(r, query->aggregates[i].argument))
            continue;
        if (!query->key_count || query->aggregates[i].kind != QUERY_COUNT ||
            !is_defined_constant(query->aggregates[i].argument))
            return;
    }
    if (query->key_count)
        cover->alone = query->key_count == 1 && is_the_path(r, query->keys[0].expression);
    else if (query->aggregate_count)
        cover->alone = true;
    else
        cover->alone = query->distinct && is_the_path(r, query->select);
    cover->counts_missing = cover->alone && query->key_count;
}

struct query_cover query_cover_find(const struct query_plan *plan, struct arena *arena)
{
    const struct query_subquery *query = &plan->query;
    struct reading r = {.plan = plan, .arena = arena};
    struct query_cover cover = {0};

    if (query->source_count || plan->constant || plan->order_free)
        return cover;
    for (size_t i = 0; i < query->key_count; i++)
        read_expression(&r, query->keys[i].expression);
    for (size_t i = 0; i < query->aggregate_count; i++)
        read_expression(&r, query->aggregates[i].argument);
    for (size_t i = 0; i < query->order_count; i++)
        read_expression(&r, query->order[i].expression);
    read_expression(&r, query->select);
    if (r.broken || !r.found)
        return cover;
    cover.possible = true;
    cover.path = r.path;
    cover.prefix = r.prefix;
    alone_find(&r, &cover);
    return cover;
}

bool query_cover_holds(const struct query_cover *cover, const struct query_plan *plan,
                       const struct query_access *access, const struct item_space *space)
{
    return cover->possible && access->kind == QUERY_ACCESS_INDEX && !access->with_count &&
           !access->without && !access->index->member_count && access->index->value_count == 1 &&
           slice_equal(access->index->prefix, cover->prefix) &&
           (!plan->query.filter || access->exact) && space->definition->default_ttl == 0;
}

bool query_cover_is_key(const struct query_cover *cover, const struct query_access *access,
                        const struct item_space *space)
{
    const struct document_names *names = definition_names_of(space->definition);

    return cover->possible && access->kind == QUERY_ACCESS_INDEX && access->index->terms &&
           access->exact && cover->path.count == 1 && names->identity_order == DOCUMENT_ORDER_SQL &&
           slice_equal(cover->path.segments[0].name, names->identity) &&
           space->definition->default_ttl == 0;
}

bool query_cover_item(const struct query_cover *cover, enum document_order entries,
                      struct slice key, struct arena *arena, struct slice *ret_document,
                      struct error *err)
{
    CLEANUP(buf_done) struct buf buf;
    size_t begins[DOCUMENT_PATH_SEGMENTS_MAX + 1];
    size_t depth = 0, last = cover->path.count - 1;
    struct document_value value;

    buf_init(&buf, BUF_DEFAULT_MAX);
    if (!document_key_read(entries, &key, arena, &value, err))
        return false;
    begins[depth++] = document_begin(&buf);
    for (size_t i = 0; i < last; i++)
        begins[depth++] = document_append_object_begin(&buf, cover->path.segments[i].name);
    if (value.type == DOCUMENT_ARRAY || value.type == DOCUMENT_OBJECT)
        value.document = slice_of("\x05\0\0\0", 5); /* only empty ones have entries */
    if (value.type != DOCUMENT_UNDEFINED)
        document_append(&buf, cover->path.segments[last].name, &value);
    while (depth)
        document_end(&buf, begins[--depth]);
    *ret_document = arena_copy(arena, buf_slice(&buf));
    return true;
}
