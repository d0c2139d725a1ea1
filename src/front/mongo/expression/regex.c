/* $regexMatch, $regexFind and $regexFindAll: where a match is, in code points, and its groups. */
#include "query/value/regex.h"
#include "front/mongo/expression/expression_private.h"

enum { MODIFIERS_MAX = 8 };

struct search {
    struct slice text, pattern;
    char modifiers[MODIFIERS_MAX];
    size_t modifier_count;
};

static bool modifiers_read(struct expression_call *call, struct slice options,
                           struct search *search)
{
    for (size_t i = 0; i < options.len; i++) {
        if (options.data[i] == 'u') /* all text is UTF-8 */
            continue;
        if (!memchr("imsx", options.data[i], 4))
            return mongo_error_set(call->err, 51108, "%s invalid flag in regex options: %c",
                                   call->node->op->name, options.data[i]);
        if (!memchr(search->modifiers, options.data[i], search->modifier_count))
            search->modifiers[search->modifier_count++] = (char)options.data[i];
    }
    return true;
}

/* *ret_search false: what is looked for, or in, is not there. */
static bool search_read(struct expression_call *call, struct search *search, bool *ret_search)
{
    const struct document_value *input = &call->arguments[0], *regex = &call->arguments[1];
    const struct document_value *options = &call->arguments[2];
    const char *name = call->node->op->name;
    struct slice flags = SLICE_NONE;

    *search = (struct search){0};
    if (!expression_is_nullish(input) && input->type != DOCUMENT_STRING)
        return mongo_error_set(call->err, 51104, "%s needs 'input' to be of type string", name);
    if (!expression_is_nullish(regex) && regex->type != DOCUMENT_STRING &&
        regex->type != DOCUMENT_REGEX)
        return mongo_error_set(call->err, 51105, "%s needs 'regex' to be of type string or regex",
                               name);
    if (!expression_is_nullish(options)) {
        if (options->type != DOCUMENT_STRING)
            return mongo_error_set(call->err, 51106, "%s needs 'options' to be of type string",
                                   name);
        if (regex->type == DOCUMENT_REGEX && regex->regex.options.len)
            return mongo_error_set(call->err, 51107,
                                   "%s found regex option(s) specified in both 'regex' and "
                                   "'option' fields",
                                   name);
        flags = options->text;
    }
    *ret_search = !expression_is_nullish(input) && !expression_is_nullish(regex);
    if (!*ret_search)
        return true;
    search->text = input->text;
    search->pattern = regex->type == DOCUMENT_REGEX ? regex->regex.pattern : regex->text;
    if (search->pattern.len && memchr(search->pattern.data, 0, search->pattern.len))
        return mongo_error_set(call->err, 51109,
                               "%s: regular expression cannot contain an embedded null byte", name);
    if (regex->type == DOCUMENT_REGEX && regex->regex.options.len)
        flags = regex->regex.options;
    return modifiers_read(call, flags, search);
}

static int32_t points_between(struct slice text, size_t from, size_t to)
{
    int32_t count = 0;

    for (; from < to; from++)
        count += (text.data[from] & 0xC0) != 0x80;
    return count;
}

/* {match, idx, captures} */
static bool match_make(struct expression_call *call, const struct search *search,
                       const struct query_regex_match *match, int32_t at,
                       struct document_value *ret_value)
{
    struct query_context *context = call->context;
    size_t mark = query_build_begin(context), begin = document_begin(&context->scratch), captures;

    document_append_string(
        &context->scratch, SLICE("match"),
        slice_of(search->text.data + match->places[0], match->places[1] - match->places[0]));
    document_append_int32(&context->scratch, SLICE("idx"), at);
    captures = document_append_array_begin(&context->scratch, SLICE("captures"));
    for (size_t i = 1; i < match->group_count; i++) {
        char text[DOCUMENT_INDEX_SIZE];
        struct slice key = document_index_key((uint32_t)i - 1, text);

        if (match->places[2 * i] == SIZE_MAX)
            document_append_null(&context->scratch, key);
        else
            document_append_string(&context->scratch, key,
                                   slice_of(search->text.data + match->places[2 * i],
                                            match->places[2 * i + 1] - match->places[2 * i]));
    }
    document_end(&context->scratch, captures);
    return query_build_close(context, mark, begin, DOCUMENT_OBJECT, ret_value, call->err);
}

static bool next_find(struct expression_call *call, const struct search *search, size_t from,
                      bool *ret_found, struct query_regex_match *ret_match)
{
    struct query_regex *regex = query_regex_get(
        call->context, search->pattern, slice_of(search->modifiers, search->modifier_count));

    if (!regex)
        return mongo_error_set(call->err, 51111, "Invalid Regex in %s: %.*s", call->node->op->name,
                               SLICE_ARG(search->pattern));
    return query_regex_find(call->context, regex, search->text, from, ret_found, ret_match,
                            call->err);
}

static bool all_find(struct expression_call *call, const struct search *search)
{
    struct expression_array all;
    size_t from = 0, counted = 0;
    int32_t at = 0;

    expression_array_begin(&all, call->context);
    do {
        struct query_regex_match match;
        struct document_value found_one;
        size_t begin, end;
        bool found;

        if (!next_find(call, search, from, &found, &match))
            return expression_array_drop(&all);
        if (!found)
            break;
        begin = match.places[0];
        end = match.places[1];
        at += points_between(search->text, counted, begin);
        counted = begin;
        if (!match_make(call, search, &match, at, &found_one) ||
            !query_work(call->context, (end - from) / 16 + 1, call->err))
            return expression_array_drop(&all);
        if (!expression_array_add(&all, &found_one, call->err))
            return false;
        from = end;
        if (begin == end) /* of nothing: go on behind the next character */
            for (from++; from < search->text.len && (search->text.data[from] & 0xC0) == 0x80;)
                from++;
    } while (from < search->text.len);
    return expression_array_end(&all, call->ret, call->err);
}

/* number: 0 match, 1 find, 2 find all. */
EXPRESSION_COMPUTE(expression_regex)
{
    struct query_regex_match match;
    struct search search;
    bool asked = false, found = false;

    if (!search_read(call, &search, &asked))
        return false;
    if (!asked) {
        if (call->node->number == 2)
            return expression_array_of(call->context, NULL, 0, call->ret, call->err);
        return expression_give(call, call->node->number ? document_null() : document_bool(false));
    }
    if (call->node->number == 2)
        return all_find(call, &search);
    if (!next_find(call, &search, 0, &found, &match))
        return false;
    if (call->node->number == 0)
        return expression_give(call, document_bool(found));
    return found ? match_make(call, &search, &match,
                              points_between(search.text, 0, match.places[0]), call->ret)
                 : expression_give_null(call);
}
