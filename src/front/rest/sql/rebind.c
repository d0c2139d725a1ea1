#include "front/rest/sql/rebind.h"

#include "document/bson.h"

enum { TEXT_BYTES_MAX = 4096, BOUND_MAX = 64 };

/* --- What a plan depends on ------------------------------------------------------------------ */

struct parameter {
    struct slice name;
    struct document_value value;
};

/* Parameters as they were sent. False: one is of another shape, or there are too many. */
static bool parameters_read(struct slice parameters, struct parameter *list, size_t *ret_count)
{
    struct document_iter iter;
    size_t count = 0;

    *ret_count = 0;
    if (!parameters.len)
        return true;
    document_iter_init(&iter, parameters);
    while (document_iter_next(&iter)) {
        struct document_value name;

        if (count == SQL_REBIND_PARAMETERS_MAX || iter.value.type != DOCUMENT_OBJECT ||
            !document_find(iter.value.document, SLICE("name"), &name) ||
            name.type != DOCUMENT_STRING)
            return false;
        list[count].name = name.text;
        if (!document_find(iter.value.document, SLICE("value"), &list[count].value))
            list[count].value = document_undefined();
        for (size_t i = 0; i < count; i++)
            if (slice_equal(list[i].name, name.text))
                return false;
        count++;
    }
    *ret_count = count;
    return true;
}

static void part_append(struct buf *key, struct slice part)
{
    buf_append_be32(key, (uint32_t)part.len);
    buf_append_slice(key, part);
}

bool sql_rebind_key(struct slice text, struct slice parameters,
                    const struct sql_compile_options *options, struct buf *key)
{
    struct parameter list[SQL_REBIND_PARAMETERS_MAX];
    size_t count;

    if (text.len > TEXT_BYTES_MAX || options->computed.len > TEXT_BYTES_MAX ||
        options->full_text.len > TEXT_BYTES_MAX || options->vectors.len > TEXT_BYTES_MAX ||
        !parameters_read(parameters, list, &count))
        return false;
    part_append(key, text);
    part_append(key, options->computed);
    part_append(key, sql_names(options)->identity);
    part_append(key, options->full_text);
    part_append(key, options->vectors);
    part_append(key, options->plane ? SLICE("plane") : SLICE(""));
    for (size_t i = 0; i < count; i++) {
        part_append(key, list[i].name);
        buf_append_byte(key, (uint8_t)list[i].value.type);
    }
    return !buf_overflowed(key);
}

/* --- Whether values can be changed ----------------------------------------------------------- */

static bool is_bound(const struct sql_prepared *prepared, const struct query_expression *node)
{
    for (const struct sql_bound *b = prepared->bound; b; b = b->next)
        if (&b->node->head == node)
            return true;
    return false;
}

/* Does a node only look at the value, each time it is evaluated? */
static bool only_looks(const struct query_expression *node)
{
    return node->kind == &query_kind_comparison || node->kind == &query_kind_between ||
           node->kind == &query_kind_call;
}

static size_t bound_below(const struct sql_prepared *prepared, const struct query_expression *node)
{
    size_t count = 0;

    if (!node || node->kind == &query_kind_in || node->kind == &query_kind_like ||
        node->kind == &query_kind_subquery || node->kind == &query_kind_udf_call)
        return 0;
    for (uint32_t i = 0; i < node->child_count; i++) {
        const struct query_expression *child = node->children[i];

        count += query_is_constant(child) ? only_looks(node) && is_bound(prepared, child)
                                          : bound_below(prepared, child);
    }
    return count;
}

/* Constants of parameters that are at such places. One node is in one place: it was made for it. Of
 * groups the filter alone counts: which expression is one of their keys was found by comparing. */
static size_t bound_count(const struct sql_prepared *prepared)
{
    const struct query_subquery *query = &prepared->plan.query;
    size_t count = bound_below(prepared, query->filter);

    if (query->key_count)
        return count;
    count += bound_below(prepared, query->select);
    for (size_t i = 0; i < query->aggregate_count; i++)
        count += bound_below(prepared, query->aggregates[i].argument);
    for (size_t i = 0; i < query->order_count; i++)
        count += bound_below(prepared, query->order[i].expression);
    return count;
}

static bool is_noted(const struct sql_prepared *prepared, const struct sql_expr *parameter)
{
    for (const struct sql_bound *b = prepared->bound; b; b = b->next)
        if (b->parameter == parameter)
            return true;
    return false;
}

bool sql_rebind_is_possible(const struct sql_prepared *prepared)
{
    const struct sql_exprs *parameters = &prepared->query->parameters;
    size_t made = 0;

    for (const struct sql_bound *b = prepared->bound; b; b = b->next)
        made++;
    if (prepared->ranking || made > BOUND_MAX || parameters->count > BOUND_MAX ||
        (prepared->plan.rest && parameters->count))
        return false;
    for (uint32_t i = 0; i < parameters->count; i++)
        if (!is_noted(prepared, parameters->items[i]))
            return false;
    return bound_count(prepared) == made;
}

/* --- Changing them --------------------------------------------------------------------------- */

void sql_rebind(struct sql_prepared *prepared, struct slice text, struct slice parameters,
                const struct sql_compile_options *options)
{
    struct parameter list[SQL_REBIND_PARAMETERS_MAX];
    size_t count;
    bool read = parameters_read(parameters, list, &count);

    assert(read);
    for (struct sql_bound *b = prepared->bound; b; b = b->next) {
        struct slice name = b->parameter->parameter.name;
        size_t at = 0;

        while (at < count && !slice_equal(list[at].name, name))
            at++;
        assert(at < count && list[at].value.type == b->node->value.type);
        b->node->value = list[at].value;
        b->parameter->parameter.value = &b->node->value;
    }
    prepared->plan.fingerprint = sql_fingerprint(text, parameters, options);
}
