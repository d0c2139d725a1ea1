/* Looking for one text in another, with and without case. Without case both are turned to upper
 * case first, character by character, which is what an ordinal comparison without case does. */
#include "query/function/functions_private.h"
#include "query/value/text.h"

typedef bool text_test(struct slice text, struct slice part);

static bool contains(struct slice text, struct slice part)
{
    return query_text_find(text, part) != SIZE_MAX;
}

static bool test_text(text_test *test, struct slice text, struct slice part, bool any_case,
                      struct query_context *context, bool *ret_result, struct error *err)
{
    if (!query_work(context, text.len >> 4, err))
        return false;
    if (any_case && (!query_text_convert(text, QUERY_CASE_UPPER, context, &text, err) ||
                     !query_text_convert(part, QUERY_CASE_UPPER, context, &part, err)))
        return false;
    *ret_result = test(text, part);
    return true;
}

/* Two texts, and perhaps whether to do without case. */
static bool search(const struct document_value *arguments, size_t count, text_test *test,
                   struct query_context *context, struct document_value *ret_value,
                   struct error *err)
{
    bool result;

    if (!query_all_strings(arguments, 2) || (count > 2 && arguments[2].type != DOCUMENT_BOOL))
        return true;
    if (!test_text(test, arguments[0].text, arguments[1].text, count > 2 && arguments[2].boolean,
                   context, &result, err))
        return false;
    *ret_value = document_bool(result);
    return true;
}

QUERY_FUNCTION(search_contains)
{
    return search(arguments, count, contains, context, ret_value, err);
}

QUERY_FUNCTION(search_starts_with)
{
    return search(arguments, count, slice_starts_with, context, ret_value, err);
}

QUERY_FUNCTION(search_ends_with)
{
    return search(arguments, count, query_text_ends_with, context, ret_value, err);
}

QUERY_FUNCTION(search_equals)
{
    return search(arguments, count, slice_equal, context, ret_value, err);
}

/* The AND (all) or OR of CONTAINS with each further argument. */
static bool search_several(const struct document_value *arguments, size_t count, bool all,
                           bool any_case, struct query_context *context,
                           struct document_value *ret_value, struct error *err)
{
    enum query_truth truth = all ? QUERY_TRUE : QUERY_FALSE;

    if (arguments[0].type != DOCUMENT_STRING)
        return true;
    for (size_t i = 1; i < count; i++) {
        enum query_truth test = QUERY_UNKNOWN;
        bool found;

        if (arguments[i].type == DOCUMENT_STRING) {
            if (!test_text(contains, arguments[0].text, arguments[i].text, any_case, context,
                           &found, err))
                return false;
            test = found ? QUERY_TRUE : QUERY_FALSE;
        }
        if (!query_truth_combine(all, test, &truth))
            break;
    }
    *ret_value = query_truth_value(truth);
    return true;
}

QUERY_FUNCTION(search_all_ci)
{
    return search_several(arguments, count, true, true, context, ret_value, err);
}

QUERY_FUNCTION(search_all_cs)
{
    return search_several(arguments, count, true, false, context, ret_value, err);
}

QUERY_FUNCTION(search_any_ci)
{
    return search_several(arguments, count, false, true, context, ret_value, err);
}

QUERY_FUNCTION(search_any_cs)
{
    return search_several(arguments, count, false, false, context, ret_value, err);
}

/* --- Positions ------------------------------------------------------------------------------- */

static struct document_value unit_of(struct slice text, size_t at)
{
    if (at == SIZE_MAX)
        return document_int32(-1);
    return query_integer((int64_t)query_text_units(slice_first(text, at)));
}

/* The first place at or behind unit `start`, 0 unless given. */
QUERY_FUNCTION(search_index_of)
{
    struct slice text = arguments[0].text;
    size_t from = 0, at;
    int64_t start;
    bool inside;

    if (!query_all_strings(arguments, 2))
        return true;
    if (!query_work(context, text.len >> 4, err))
        return false;
    if (count > 2) {
        if (!document_to_int64(&arguments[2], &start))
            return true;
        from = query_text_offset(text, start < 0 ? 0 : (uint64_t)start, &inside);
        from += inside ? 4 : 0;
        if (start > 0 && (uint64_t)start > query_text_units(text)) {
            *ret_value = document_int32(-1);
            return true;
        }
    }
    at = query_text_find(slice_skip(text, from), arguments[1].text);
    *ret_value = unit_of(text, at == SIZE_MAX ? at : from + at);
    return true;
}

/* The last place at or before unit `start`, the end unless given. */
QUERY_FUNCTION(search_last_index_of)
{
    struct slice text = arguments[0].text, part = arguments[1].text;
    int64_t start;
    bool inside;

    if (!query_all_strings(arguments, 2))
        return true;
    if (!query_work(context, text.len >> 2, err))
        return false;
    if (count > 2) {
        if (!document_to_int64(&arguments[2], &start))
            return true;
        if (start < 0) {
            *ret_value = document_int32(-1);
            return true;
        }
        text.len = MIN(text.len, query_text_offset(text, (uint64_t)start, &inside) + part.len);
    }
    *ret_value = unit_of(text, query_text_find_last(text, part));
    return true;
}

/* With regard to case. */
static const struct query_implied *starts_with_imply(const struct query_operand *operands,
                                                     size_t count,
                                                     const struct query_implying *implying)
{
    const struct document_value *prefix = operands[1].constant;

    if (!prefix ||
        (count == 3 && (!operands[2].constant || operands[2].constant->type != DOCUMENT_BOOL ||
                        operands[2].constant->boolean)))
        return NULL;
    return prefix->type == DOCUMENT_STRING
               ? query_implied_prefix(implying, &operands[0], prefix->text)
               : query_implied_never(implying);
}

static const struct query_function functions[] = {
    {"CONTAINS", 2, 3, false, QUERY_STABLE, search_contains},
    {"CONTAINS_ALL_CI", 2, QUERY_ARGUMENTS_ANY, true, QUERY_STABLE, search_all_ci},
    {"CONTAINS_ALL_CS", 2, QUERY_ARGUMENTS_ANY, true, QUERY_STABLE, search_all_cs},
    {"CONTAINS_ANY_CI", 2, QUERY_ARGUMENTS_ANY, true, QUERY_STABLE, search_any_ci},
    {"CONTAINS_ANY_CS", 2, QUERY_ARGUMENTS_ANY, true, QUERY_STABLE, search_any_cs},
    {"ENDSWITH", 2, 3, false, QUERY_STABLE, search_ends_with},
    {"INDEX_OF", 2, 3, false, QUERY_STABLE, search_index_of},
    {"LastIndexOf", 2, 3, false, QUERY_STABLE, search_last_index_of},
    {"STARTSWITH", 2, 3, false, QUERY_STABLE, search_starts_with, starts_with_imply},
    {"StringEquals", 2, 3, false, QUERY_STABLE, search_equals},
};

const struct query_function_family query_functions_search = {functions, ARRAY_LEN(functions)};
