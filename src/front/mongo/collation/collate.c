/* Values in comparison form.
 *
 * A sort key is bytes that memcmp orders; texts are UTF-8, and so must be what stands for one in
 * values that are kept and sent on. So each byte of the key is one code point: bytes from 0x80 on
 * take two, and the order stays. */
#include "document/bson.h"
#include "front/mongo/collation/collation_private.h"
#include "query/value/value.h"

#include <stdlib.h>
#include <unicode/ustring.h>

enum { STACK_UNITS = 256, STACK_KEY = 1024, BYTES_PER_WORK = 8, REPLACEMENT = 0xFFFD };

struct collate_node {
    struct query_expression head; /* the child: the value */
    const struct mongo_collator *collator;
};

static bool is_text(const struct document_value *value)
{
    return value->type == DOCUMENT_STRING || value->type == DOCUMENT_SYMBOL;
}

bool mongo_collate_matters(const struct document_value *value)
{
    struct document_iter iter;

    if (is_text(value))
        return true;
    if (value->type != DOCUMENT_OBJECT && value->type != DOCUMENT_ARRAY)
        return false;
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter))
        if (mongo_collate_matters(&iter.value))
            return true;
    return false;
}

/* --- Texts ------------------------------------------------------------------------------------ */

static bool key_encode(const uint8_t *key, size_t len, struct query_context *context,
                       struct slice *ret_text, struct error *err)
{
    size_t wide = 0, at = 0;
    uint8_t *text;

    for (size_t i = 0; i < len; i++)
        wide += key[i] >> 7;
    text = query_alloc(context, len + wide + 1, err);
    if (!text)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (key[i] < 0x80) {
            text[at++] = key[i];
        } else {
            text[at++] = (uint8_t)(0xC0 | key[i] >> 6);
            text[at++] = (uint8_t)(0x80 | (key[i] & 0x3F));
        }
    }
    *ret_text = slice_of(text, at);
    return true;
}

static bool units_collate(const struct mongo_collator *collator, const UChar *units, int32_t count,
                          struct query_context *context, struct slice *ret_text, struct error *err)
{
    uint8_t stack[STACK_KEY], *key = stack;
    int32_t len = ucol_getSortKey(collator->icu, units, count, stack, sizeof stack);
    bool fine;

    if (len > (int32_t)sizeof stack) {
        if (!query_memory_check(context, (size_t)len, err))
            return false;
        key = malloc((size_t)len);
        if (!key)
            return error_set(err, ERROR_MEMORY_FULL, "collation: no memory for a sort key");
        len = ucol_getSortKey(collator->icu, units, count, key, len);
    }
    /* the key ends in a zero; no length at all is ICU's own lack of memory */
    fine = len > 0 ? key_encode(key, (size_t)len - 1, context, ret_text, err)
                   : error_set(err, ERROR_MEMORY_FULL, "collation: no sort key could be made");
    if (key != stack)
        free(key);
    return fine;
}

static bool text_collate(const struct mongo_collator *collator, struct slice text,
                         struct query_context *context, struct slice *ret_text, struct error *err)
{
    UErrorCode status = U_ZERO_ERROR;
    UChar stack[STACK_UNITS], *units = stack;
    int32_t count = 0;
    bool fine;

    if (!query_work(context, 1 + text.len / BYTES_PER_WORK, err))
        return false;
    if (text.len > STACK_UNITS) {
        if (text.len > INT32_MAX / 4 || !query_memory_check(context, text.len * sizeof *units, err))
            return text.len <= INT32_MAX / 4
                       ? false
                       : error_set(err, ERROR_QUERY_LIMIT, "collation: a text is too long");
        units = malloc(text.len * sizeof *units);
        if (!units)
            return error_set(err, ERROR_MEMORY_FULL, "collation: no memory for a text");
    }
    /* there are never more units than bytes */
    u_strFromUTF8WithSub(units, (int32_t)MAX(text.len, (size_t)STACK_UNITS), &count,
                         text.len ? (const char *)text.data : "", (int32_t)text.len, REPLACEMENT,
                         NULL, &status);
    fine = U_SUCCESS(status)
               ? units_collate(collator, units, count, context, ret_text, err)
               : mongo_error_set(err, MONGO_INTERNAL_ERROR, "collation: %s", u_errorName(status));
    if (units != stack)
        free(units);
    return fine;
}

/* --- Values ----------------------------------------------------------------------------------- */

static bool members_collate(const struct mongo_collator *collator,
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

bool mongo_collate(const struct mongo_collator *collator, const struct document_value *value,
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
    if (collator && nested && mongo_collate_matters(value))
        return members_collate(collator, value, context, ret_value, err);
    *ret_value = *value;
    return true;
}

bool mongo_collate_constant(const struct mongo_collator *collator,
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

bool mongo_collate_compare(const struct mongo_collator *collator, const struct document_value *a,
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
                                              const struct mongo_collator *collator,
                                              const struct query_expression *expression,
                                              struct query_build *build)
{
    struct collate_node *node = query_node(build, kind, sizeof *node, &expression, 1);

    if (!build->failed)
        node->collator = collator;
    return &node->head;
}

const struct query_expression *mongo_collate_expression(const struct mongo_collator *collator,
                                                        const struct query_expression *expression,
                                                        struct query_build *build)
{
    return collator ? node_of(&collate_kind, collator, expression, build) : expression;
}

const struct query_expression *mongo_collate_pair(const struct mongo_collator *collator,
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
