/* Values in comparison form, within the limits of a query. */
#include "document/bson.h"
#include "front/mongo/collation/collation.h"
#include "query/value/value.h"

enum { STACK_KEY = 1024, BYTES_PER_WORK = 8, BYTES_PER_UNIT = 8, TEXT_MAX = INT32_MAX / 4 };

struct collate_node {
    struct query_expression head; /* the child: the value */
    const struct document_collator *collator;
};

static bool is_text(const struct document_value *value)
{
    return value->type == DOCUMENT_STRING || value->type == DOCUMENT_SYMBOL;
}

/* --- Texts ------------------------------------------------------------------------------------ */

static bool text_collate(const struct document_collator *collator, struct slice text,
                         struct query_context *context, struct slice *ret_text, struct error *err)
{
    uint8_t stack[STACK_KEY], *made;
    size_t len;

    if (!query_work(context, 1 + text.len / BYTES_PER_WORK, err))
        return false;
    if (text.len > TEXT_MAX)
        return error_set(err, ERROR_QUERY_LIMIT, "collation: a text is too long");
    /* the key that is being made, and the text in ICU's units */
    if (text.len > STACK_KEY && !query_memory_check(context, text.len * BYTES_PER_UNIT, err))
        return false;
    len = document_collator_key(collator, text, stack, sizeof stack);
    made = query_alloc(context, len + 1, err);
    if (!made)
        return false;
    if (len <= sizeof stack)
        memcpy(made, stack, len);
    else
        (void)document_collator_key(collator, text, made, len);
    *ret_text = slice_of(made, len);
    return true;
}

/* --- Values ----------------------------------------------------------------------------------- */

static bool members_collate(const struct document_collator *collator,
                            const struct document_value *value, struct query_context *context,
                            struct document_value *ret_value, struct error *err)
{
    size_t mark = query_build_begin(context), begin = document_begin(&context->scratch);
    struct document_iter iter;
    struct document_value inner;

    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter))
        if (!mongo_collate(collator, &iter.value, context, &inner, err) ||
            !query_build_append(context, iter.key, &inner, err))
            return query_build_drop(context, mark);
    return query_build_close(context, mark, begin, value->type, ret_value, err);
}

bool mongo_collate(const struct document_collator *collator, const struct document_value *value,
                   struct query_context *context, struct document_value *ret_value,
                   struct error *err)
{
    struct slice text = SLICE_NONE;

    bool nested = value->type == DOCUMENT_OBJECT || value->type == DOCUMENT_ARRAY;

    if (!query_work(context, 1 + (nested ? value->document.len / BYTES_PER_WORK : 0), err))
        return false;
    if (collator && is_text(value)) {
        if (!text_collate(collator, value->text, context, &text, err))
            return false;
        *ret_value = document_string(text);
        return true;
    }
    if (collator && nested && document_collate_matters(value))
        return members_collate(collator, value, context, ret_value, err);
    *ret_value = *value;
    return true;
}

bool mongo_collate_constant(const struct document_collator *collator,
                            const struct document_value *value, struct arena *arena,
                            struct document_value *ret_value, struct error *err)
{
    CLEANUP(arena_free) struct arena *temporary = arena_new();
    CLEANUP(query_context_done) struct query_context context = {0};
    struct document_value made;

    query_context_init(&context, temporary, NULL, NULL);
    context.keep_nonfinite = true;
    if (!mongo_collate(collator, value, &context, &made, err))
        return false;
    *ret_value = query_value_copy(&made, arena);
    return true;
}

bool mongo_collate_compare(const struct document_collator *collator, const struct document_value *a,
                           const struct document_value *b, struct query_context *context,
                           int *ret_order, struct error *err)
{
    struct document_value left, right;

    if (!mongo_collate(collator, a, context, &left, err) ||
        !mongo_collate(collator, b, context, &right, err))
        return false;
    *ret_order = document_compare(DOCUMENT_ORDER_MONGO, &left, &right);
    return true;
}

/* --- As an expression ------------------------------------------------------------------------- */

static bool collate_evaluate(const struct query_expression *expression,
                             struct query_context *context, struct document_value *ret_value,
                             struct error *err)
{
    struct document_value value;

    return query_evaluate(expression->children[0], context, &value, err) &&
           mongo_collate(((const struct collate_node *)expression)->collator, &value, context,
                         ret_value, err);
}

static bool pair_evaluate(const struct query_expression *expression, struct query_context *context,
                          struct document_value *ret_value, struct error *err)
{
    struct document_value value, form;
    size_t mark, begin;

    if (!query_evaluate(expression->children[0], context, &value, err))
        return false;
    *ret_value = value;
    if (value.type == DOCUMENT_UNDEFINED)
        return true;
    if (!mongo_collate(((const struct collate_node *)expression)->collator, &value, context, &form,
                       err))
        return false;
    mark = query_build_begin(context);
    begin = document_begin(&context->scratch);
    if (!query_build_append(context, SLICE("0"), &form, err) ||
        !query_build_append(context, SLICE("1"), &value, err))
        return query_build_drop(context, mark);
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_value, err);
}

static bool unpair_evaluate(const struct query_expression *expression,
                            struct query_context *context, struct document_value *ret_value,
                            struct error *err)
{
    struct document_value pair;

    if (!query_evaluate(expression->children[0], context, &pair, err))
        return false;
    *ret_value = document_undefined();
    if (pair.type == DOCUMENT_ARRAY)
        (void)document_find_index(pair.document, 1, ret_value);
    return true;
}

static const struct query_kind pair_kind = {"collated pair", pair_evaluate, QUERY_STABLE};
static const struct query_kind unpair_kind = {"value of a pair", unpair_evaluate, QUERY_STABLE};
static const struct query_kind collate_kind = {"collate", collate_evaluate, QUERY_STABLE};

static const struct query_expression *node_of(const struct query_kind *kind,
                                              const struct document_collator *collator,
                                              const struct query_expression *expression,
                                              struct query_build *build)
{
    struct collate_node *node = query_node(build, kind, sizeof *node, &expression, 1);

    if (!build->failed)
        node->collator = collator;
    return &node->head;
}

const struct query_expression *mongo_collate_expression(const struct document_collator *collator,
                                                        const struct query_expression *expression,
                                                        struct query_build *build)
{
    return collator ? node_of(&collate_kind, collator, expression, build) : expression;
}

const struct query_expression *mongo_collate_pair(const struct document_collator *collator,
                                                  const struct query_expression *expression,
                                                  struct query_build *build)
{
    return node_of(&pair_kind, collator, expression, build);
}

const struct query_expression *mongo_collate_unpair(const struct query_expression *pair,
                                                    struct query_build *build)
{
    return node_of(&unpair_kind, NULL, pair, build);
}
