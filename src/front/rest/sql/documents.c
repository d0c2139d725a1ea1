/* A plan is a subquery whose row is an item. Put another source before its own, which walks an
 * array of the documents into slot 0, and it is a subquery over all of them. */
#include "front/rest/sql/documents.h"

#include "document/bson.h"

bool sql_body_read(struct slice body, struct sql_body *ret_body, struct arena *arena,
                   struct sql_error *ret_error, struct error *err)
{
    struct sql_report report = {arena, ret_error, err};
    struct document_value query, parameters;

    if (!document_find(body, SLICE("query"), &query) || query.type != DOCUMENT_STRING)
        return sql_report_whole(&report, ERROR_BAD_QUERY,
                                "The body of a query must have the property 'query', a string.");
    if (!document_find(body, SLICE("parameters"), &parameters) ||
        parameters.type == DOCUMENT_NULL)
        parameters = document_array(SLICE_NONE);
    if (parameters.type != DOCUMENT_ARRAY)
        return sql_report_whole(&report, ERROR_BAD_QUERY,
                                "The 'parameters' of a query must be an array.");
    *ret_body = (struct sql_body){query.text, parameters.document};
    return true;
}

static bool documents_array(const struct slice *documents, size_t count,
                            struct query_context *context, struct document_value *ret_array,
                            struct error *err)
{
    size_t mark = query_build_begin(context), begin = document_begin(&context->scratch);
    struct slice bytes;

    for (size_t i = 0; i < count; i++) {
        char key[DOCUMENT_INDEX_SIZE];
        struct document_value document = document_object(documents[i]);

        document_append(&context->scratch, document_index_key((uint32_t)i, key), &document);
    }
    document_end(&context->scratch, begin);
    if (!query_build_end(context, mark, &bytes, err))
        return false;
    *ret_array = document_array(bytes);
    return true;
}

/* The plan as a subquery over the array. */
static struct query_subquery subquery_over(const struct query_plan *plan,
                                           const struct document_value *array,
                                           struct query_build *build)
{
    struct query_subquery query = plan->query;
    struct query_source *sources;

    if (plan->constant)
        return query;
    sources = ARENA_ARRAY(build->arena, struct query_source, query.source_count + 1);
    sources[0] = (struct query_source){.kind = QUERY_SOURCE_EACH,
                                       .expression = query_constant(build, *array),
                                       .slot = 0};
    if (query.source_count)
        memcpy(sources + 1, query.sources, query.source_count * sizeof *sources);
    query.sources = sources;
    query.source_count++;
    return query;
}

static bool rows_collect(const struct query_subquery *query, struct query_context *context,
                         struct sql_rows *ret_rows, struct error *err)
{
    struct query_rows *rows = query_subquery_open(query, context, err);
    struct document_value *values = NULL, value;
    size_t count = 0, room = 0;
    bool more;

    if (!rows)
        return false;
    for (;;) {
        if (!query_rows_next(rows, context, &more, &value, err))
            return false;
        if (!more)
            break;
        if (count == room) {
            struct document_value *grown;

            room = room ? room * 2 : 16;
            grown = query_alloc(context, room * sizeof *grown, err);
            if (!grown)
                return false;
            if (count)
                memcpy(grown, values, count * sizeof *grown);
            values = grown;
        }
        values[count++] = value;
    }
    *ret_rows = (struct sql_rows){values, count};
    return true;
}

bool sql_run_documents(const struct query_plan *plan, const struct slice *documents, size_t count,
                       const struct query_limits *limits, struct arena *arena,
                       struct sql_rows *ret_rows, struct error *err)
{
    CLEANUP(query_context_done) struct query_context context;
    struct query_build build = {.arena = arena};
    struct document_value array = document_array(SLICE_NONE);
    struct query_subquery query;

    query_context_init(&context, arena, limits, NULL);
    context.slot_count = plan->slot_count;
    context.slots = query_alloc(&context, plan->slot_count * sizeof *context.slots, err);
    if (!context.slots)
        return false;
    for (uint32_t i = 0; i < plan->slot_count; i++)
        context.slots[i] = (struct query_slot){.value = document_undefined()};
    if (!plan->constant && !documents_array(documents, count, &context, &array, err))
        return false;
    query = subquery_over(plan, &array, &build);
    return rows_collect(&query, &context, ret_rows, err);
}

bool sql_query_documents(struct slice body, const struct slice *documents, size_t count,
                         const struct query_limits *limits, struct arena *arena,
                         struct sql_rows *ret_rows, struct sql_error *ret_error, struct error *err)
{
    struct sql_prepared prepared;
    struct sql_body parts;

    return sql_body_read(body, &parts, arena, ret_error, err) &&
           sql_prepare(parts.text, parts.parameters, NULL, arena, &prepared, ret_error, err) &&
           sql_run_documents(&prepared.plan, documents, count, limits, arena, ret_rows, err);
}
