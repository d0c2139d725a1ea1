#include "front/rest/sql/computed.h"

#include "definition/names.h"
#include "document/bson.h"
#include "front/rest/sql/parser.h"
#include "front/rest/sql/resolve.h"

static bool definition_read(const struct document_value *entry, struct slice *ret_name,
                            struct slice *ret_query)
{
    struct document_value name, query;

    if (entry->type != DOCUMENT_OBJECT || !document_find(entry->document, SLICE("name"), &name) ||
        !document_find(entry->document, SLICE("query"), &query) || name.type != DOCUMENT_STRING ||
        query.type != DOCUMENT_STRING)
        return false;
    *ret_name = name.text;
    *ret_query = query.text;
    return true;
}

bool sql_computed_find(struct slice definitions, struct slice name, struct slice *ret_query)
{
    struct document_iter iter;
    struct slice found, query;

    if (!definitions.data)
        return false;
    document_iter_init(&iter, definitions);
    while (document_iter_next(&iter)) {
        if (definition_read(&iter.value, &found, &query) && slice_equal(found, name)) {
            *ret_query = query;
            return true;
        }
    }
    return false;
}

bool sql_computed_parse(struct slice text, struct arena *arena, struct sql_query **ret_query,
                        struct sql_error *ret_error, struct error *err)
{
    struct sql_query *query;

    if (!sql_parse(text, NULL, arena, &query, ret_error, err) ||
        !sql_resolve(query, arena, ret_error, err) ||
        !sql_resolve_computed(query, arena, ret_error, err))
        return false;
    *ret_query = query;
    return true;
}

static bool check_name(struct slice name, const struct slice *before, size_t count,
                       const struct sql_report *report)
{
    if (!name.len || memchr(name.data, 0, name.len))
        return sql_report_whole(report, ERROR_BAD_QUERY,
                                "The name of a computed property is empty or holds a NUL.");
    if (document_names_reserve(definition_names(DEFINITION_IDENTITY_ID), name))
        return sql_report_whole(report, ERROR_BAD_QUERY,
                                "The computed property '%.*s' has the name of a system property.",
                                SLICE_ARG(sql_excerpt(name)));
    for (size_t i = 0; i < count; i++)
        if (slice_equal(name, before[i]))
            return sql_report_whole(report, ERROR_BAD_QUERY,
                                    "The computed property '%.*s' is defined twice.",
                                    SLICE_ARG(sql_excerpt(name)));
    return true;
}

bool sql_computed_check(struct slice definitions, struct arena *arena, struct sql_error *ret_error,
                        struct error *err)
{
    struct sql_report report = {arena, ret_error, err};
    struct slice names[SQL_COMPUTED_MAX], text;
    struct document_iter iter;
    struct sql_query *query;
    size_t count = 0;

    document_iter_init(&iter, definitions);
    while (document_iter_next(&iter)) {
        if (count == SQL_COMPUTED_MAX)
            return sql_report_whole(&report, ERROR_BAD_QUERY,
                                    "A container has at most %d computed properties.",
                                    SQL_COMPUTED_MAX);
        if (!definition_read(&iter.value, &names[count], &text))
            return sql_report_whole(&report, ERROR_BAD_QUERY,
                                    "One of the specified inputs is invalid: a computed property "
                                    "must be an object with a name and a query.");
        if (!check_name(names[count], names, count, &report) ||
            !sql_computed_parse(text, arena, &query, ret_error, err))
            return false;
        count++;
    }
    return true;
}
