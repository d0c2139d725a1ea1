#include "front/mongo/command/filter.h"

#include "front/mongo/expression/expression.h"
#include "front/mongo/match/match.h"

bool mongo_filter_compile(struct slice filter, struct query_build *build,
                          const struct query_expression **ret_filter, struct error *err)
{
    const struct mongo_match_options options = {.expression = mongo_expression_hook};

    *ret_filter = NULL;
    if (filter.data && document_count(filter) &&
        !mongo_match_compile(filter, &options, build, ret_filter, err))
        return false;
    return !build->script || mongo_error_set(err, MONGO_QUERY_FEATURE_NOT_ALLOWED,
                                             "%s is not allowed in this context", build->script);
}

bool mongo_filter_is_plain(const struct document_value *value)
{
    struct document_iter iter;

    if (value->type == DOCUMENT_REGEX || value->type == DOCUMENT_ARRAY ||
        value->type == DOCUMENT_UNDEFINED || value->type == DOCUMENT_NULL)
        return false;
    if (value->type != DOCUMENT_OBJECT)
        return true;
    document_iter_init(&iter, value->document);
    return !document_iter_next(&iter) || iter.key.len == 0 || iter.key.data[0] != '$';
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
    plan = (struct query_plan){
        .query = {.filter = where, .select = query_variable(&build, 0), .limit = UINT64_MAX},
        .slot_count = 1,
        .order = DOCUMENT_ORDER_MONGO,
        .order_free = true};
    if (!query_run_documents(&plan, documents, *count, &request, &page, err))
        return false;
    memcpy(documents, listing.documents, listing.count * sizeof *documents);
    *count = listing.count;
    return true;
}
