/* Sorted names and bisection: a body of 2 MB can hold tens of thousands of parameters, and a query
 * can name each of them. */
#include "front/rest/sql/parser.h"

#include "document/bson.h"
#include "document/order.h"

#include <stdlib.h>

struct binding {
    struct slice name;
    struct document_value value;
};

static int binding_compare(const void *a, const void *b)
{
    const struct binding *x = a, *y = b;

    return slice_compare(x->name, y->name);
}

static bool binding_read(const struct document_iter *entry, struct binding *ret_binding,
                         const struct sql_report *report)
{
    struct document_value name;

    if (entry->value.type != DOCUMENT_OBJECT ||
        !document_find(entry->value.document, SLICE("name"), &name) || name.type != DOCUMENT_STRING)
        return sql_report_whole(report, ERROR_BAD_QUERY,
                                "A parameter of the query must be an object with a name.");
    if (name.text.len < 2 || name.text.data[0] != '@')
        return sql_report_whole(report, ERROR_BAD_QUERY,
                                "The parameter name '%.*s' does not begin with '@'.",
                                SLICE_ARG(sql_excerpt(name.text)));
    ret_binding->name = name.text;
    if (!document_find(entry->value.document, SLICE("value"), &ret_binding->value))
        ret_binding->value = document_undefined();
    return true;
}

static bool bindings_read(struct slice parameters, struct arena *arena,
                          struct binding **ret_bindings, size_t *ret_count,
                          const struct sql_report *report)
{
    size_t room = document_count(parameters), count = 0;
    struct binding *bindings = ARENA_ARRAY(arena, struct binding, room + 1);
    struct document_iter iter;

    document_iter_init(&iter, parameters);
    while (count < room && document_iter_next(&iter))
        if (!binding_read(&iter, &bindings[count++], report))
            return false;
    qsort(bindings, count, sizeof *bindings, binding_compare);
    for (size_t i = 1; i < count; i++)
        if (slice_equal(bindings[i].name, bindings[i - 1].name) &&
            document_compare(DOCUMENT_ORDER_SQL, &bindings[i].value, &bindings[i - 1].value) != 0)
            return sql_report_whole(report, ERROR_BAD_QUERY,
                                    "The parameter '%.*s' is given two different values.",
                                    SLICE_ARG(sql_excerpt(bindings[i].name)));
    *ret_bindings = bindings;
    *ret_count = count;
    return true;
}

bool sql_bind(struct sql_query *query, struct slice parameters, struct arena *arena,
              struct sql_error *ret_error, struct error *err)
{
    struct sql_report report = {arena, ret_error, err};
    struct binding *bindings = NULL;
    size_t count = 0;

    if (parameters.data && !bindings_read(parameters, arena, &bindings, &count, &report))
        return false;
    for (uint32_t i = 0; i < query->parameters.count; i++) {
        struct sql_expr *expr = query->parameters.items[i];
        struct binding key = {.name = expr->parameter.name};
        const struct binding *found =
            count ? bsearch(&key, bindings, count, sizeof key, binding_compare) : NULL;

        if (!found)
            return sql_report_at(&report, "SC2001", expr->span,
                                 "Identifier '%.*s' could not be resolved.",
                                 SLICE_ARG(sql_excerpt(expr->parameter.name)));
        expr->parameter.value = &found->value;
    }
    return true;
}

void sql_bind_literally(struct sql_query *query)
{
    for (uint32_t i = 0; i < query->parameters.count; i++) {
        struct sql_expr *expr = query->parameters.items[i];
        struct document_value value;

        if (expr->kind != SQL_EXPR_PARAMETER || !expr->parameter.value)
            continue;
        value = *expr->parameter.value;
        expr->kind = SQL_EXPR_LITERAL;
        expr->literal = value;
    }
}
