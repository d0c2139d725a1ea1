#include "front/rest/sql/documents.h"

#include "document/bson.h"
#include "query/value/value.h"

bool sql_body_read(struct slice body, struct sql_body *ret_body, struct arena *arena,
                   struct sql_error *ret_error, struct error *err)
{
    struct sql_report report = {arena, ret_error, err};
    struct document_value query, parameters;

    if (!document_find(body, SLICE("query"), &query) || query.type != DOCUMENT_STRING)
        return sql_report_whole(&report, ERROR_BAD_QUERY,
                                "The body of a query must have the property 'query', a string.");
    if (!document_find(body, SLICE("parameters"), &parameters) || parameters.type == DOCUMENT_NULL)
        parameters = document_array(SLICE_NONE);
    if (parameters.type != DOCUMENT_ARRAY)
        return sql_report_whole(&report, ERROR_BAD_QUERY,
                                "The 'parameters' of a query must be an array.");
    *ret_body = (struct sql_body){query.text, parameters.document};
    return true;
}

struct collection {
    struct arena *arena;
    struct sql_rows rows;
    size_t room;
};

static bool row_keep(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct collection *collection = self;
    struct sql_rows *rows = &collection->rows;

    if (rows->count == collection->room) {
        struct document_value *grown;

        collection->room = collection->room ? collection->room * 2 : 16;
        grown = ARENA_ARRAY(collection->arena, struct document_value, collection->room);
        if (rows->count)
            memcpy(grown, rows->values, rows->count * sizeof *grown);
        rows->values = grown;
    }
    rows->values[rows->count++] = query_value_copy(value, collection->arena);
    return true;
}

bool sql_query_documents(struct slice body, const struct slice *documents, size_t count,
                         const struct query_page_limits *limits, struct slice continuation,
                         struct arena *arena, struct sql_rows *ret_rows,
                         struct slice *ret_continuation, struct sql_error *ret_error,
                         struct error *err)
{
    struct collection collection = {.arena = arena};
    struct query_request request = {.continuation = continuation,
                                    .limits = *limits,
                                    .arena = arena,
                                    .row = row_keep,
                                    .self = &collection};
    struct sql_prepared prepared;
    struct query_page page;
    struct sql_body parts;

    if (!sql_body_read(body, &parts, arena, ret_error, err) ||
        !sql_prepare(parts.text, parts.parameters, NULL, arena, &prepared, ret_error, err) ||
        !query_run_documents(&prepared.plan, documents, count, &request, &page, err))
        return false;
    *ret_rows = collection.rows;
    ret_rows->work = page.metrics.work;
    *ret_continuation = page.continuation;
    return true;
}
