/* Stands in for match/: equality of top-level fields, with the elements of arrays and with null for
 * what is missing. Everything else is refused by name. */
#include "front/mongo/command/filter.h"

#include "document/order.h"

struct equal_node {
    struct query_expression head;
    struct document_value value;
};

static bool is_equal(const struct document_value *a, const struct document_value *b)
{
    return document_compare(DOCUMENT_ORDER_MONGO, a, b) == 0;
}

static bool equal_evaluate(const struct query_expression *expression, struct query_context *context,
                           struct document_value *ret_value, struct error *err)
{
    const struct equal_node *node = (const struct equal_node *)expression;
    struct document_value value;
    struct document_iter iter;
    bool holds;

    if (!query_evaluate(expression->children[0], context, &value, err))
        return false;
    if (value.type == DOCUMENT_UNDEFINED)
        value = document_null();
    holds = is_equal(&value, &node->value);
    if (!holds && value.type == DOCUMENT_ARRAY) {
        document_iter_init(&iter, value.document);
        while (!holds && document_iter_next(&iter)) {
            if (!query_work(context, 1, err))
                return false;
            holds = is_equal(&iter.value, &node->value);
        }
    }
    *ret_value = document_bool(holds);
    return true;
}

static const struct query_kind equal_kind = {"equal", equal_evaluate, QUERY_STABLE};

static bool is_plain(const struct document_value *value)
{
    struct document_iter iter;

    if (value->type == DOCUMENT_REGEX)
        return false;
    if (value->type != DOCUMENT_OBJECT)
        return true;
    document_iter_init(&iter, value->document);
    return !document_iter_next(&iter) || iter.key.len == 0 || iter.key.data[0] != '$';
}

static const struct query_expression *equal_make(struct query_build *build, struct slice name,
                                                 struct document_value value)
{
    const struct query_expression *path =
        query_property_of(build, query_variable(build, 0), arena_copy(build->arena, name));
    const struct query_expression *constant = query_constant(build, value);
    struct equal_node *node = query_node(build, &equal_kind, sizeof *node, &path, 1);

    if (!build->failed)
        node->value = *query_constant_value(constant);
    return &node->head;
}

bool mongo_filter_compile(struct slice filter, struct query_build *build,
                          const struct query_expression **ret_filter, struct error *err)
{
    const struct query_expression *all = NULL;
    struct document_iter iter;

    *ret_filter = NULL;
    if (!filter.data)
        return true;
    document_iter_init(&iter, filter);
    while (document_iter_next(&iter)) {
        const struct query_expression *one;

        if ((iter.key.len && iter.key.data[0] == '$') || !is_plain(&iter.value) ||
            memchr(iter.key.data, '.', iter.key.len))
            return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                                   "only equality of top-level fields can be asked for yet, not "
                                   "'%.*s'",
                                   (int)MIN(iter.key.len, (size_t)64),
                                   (const char *)iter.key.data);
        one = equal_make(build, iter.key, iter.value);
        all = all ? query_and(build, all, one) : one;
    }
    if (build->failed)
        *err = build->error;
    *ret_filter = all;
    return !build->failed;
}

bool mongo_filter_is_id(struct slice filter, struct document_value *ret_id)
{
    struct document_iter iter;

    if (!filter.data)
        return false;
    document_iter_init(&iter, filter);
    if (!document_iter_next(&iter) || !slice_equal(iter.key, SLICE("_id")) ||
        !is_plain(&iter.value) || iter.value.type == DOCUMENT_ARRAY ||
        iter.value.type == DOCUMENT_UNDEFINED || iter.value.type == DOCUMENT_NULL)
        return false;
    *ret_id = iter.value;
    return !document_iter_next(&iter);
}

/* --- Lists ----------------------------------------------------------------------------------- */

struct listing {
    struct arena *arena;
    struct slice *documents;
    size_t count;
};

static bool listing_take(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct listing *listing = self;

    listing->documents[listing->count++] = arena_copy(listing->arena, value->document);
    return true;
}

bool mongo_filter_documents(struct mongo_call *call, struct slice filter, struct slice *documents,
                            size_t *count, struct error *err)
{
    struct query_build build = {
        .arena = call->arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_MONGO};
    struct listing listing = {call->arena, ARENA_ARRAY(call->arena, struct slice, *count + 1), 0};
    struct query_request request = {.limits = {.rows_max = *count + 1, .bytes_max = UINT64_MAX},
                                    .arena = call->arena,
                                    .row = listing_take,
                                    .self = &listing};
    const struct query_expression *where;
    struct query_plan plan;
    struct query_page page;

    if (!mongo_filter_compile(filter, &build, &where, err))
        return false;
    if (!where)
        return true;
    plan = (struct query_plan){.query = {.filter = where,
                                         .select = query_variable(&build, 0),
                                         .limit = UINT64_MAX},
                               .slot_count = 1,
                               .order = DOCUMENT_ORDER_MONGO,
                               .order_free = true};
    if (!query_run_documents(&plan, documents, *count, &request, &page, err))
        return false;
    memcpy(documents, listing.documents, listing.count * sizeof *documents);
    *count = listing.count;
    return true;
}
