/* Regular expressions. A pattern that is none, a modifier or a group that does not exist:
 * undefined. A pattern that takes too many steps is an error, for nobody could say what it would
 * have given. */
#include "document/bson.h"
#include "document/utf8.h"
#include "query/function/functions_private.h"
#include "query/value/regex.h"

/* text, pattern, modifiers (perhaps), group (perhaps). NULL: undefined. */
static struct query_regex *regex_of(const struct document_value *arguments, size_t count,
                                    struct query_context *context, uint64_t *ret_group)
{
    int64_t group = 0;

    if (!query_all_strings(arguments, MIN(count, (size_t)3)))
        return NULL;
    if (count > 3 && (!document_to_int64(&arguments[3], &group) || group < 0))
        return NULL;
    *ret_group = (uint64_t)group;
    return query_regex_get(context, arguments[1].text, count > 2 ? arguments[2].text : SLICE(""));
}

QUERY_FUNCTION(regex_match)
{
    struct query_regex_match match;
    struct query_regex *regex;
    uint64_t group;
    bool found;

    regex = regex_of(arguments, count, context, &group);
    if (!regex)
        return true;
    if (!query_regex_find(context, regex, arguments[0].text, 0, &found, &match, err))
        return false;
    *ret_value = document_bool(found);
    return true;
}

/* The text of a group; false when it took no part, or does not exist. */
static bool group_text(const struct query_regex_match *match, uint64_t group, struct slice text,
                       struct slice *ret_part)
{
    size_t from, to;

    if (group >= match->group_count)
        return false;
    from = match->places[2 * group];
    to = match->places[2 * group + 1];
    if (from == SIZE_MAX || to == SIZE_MAX || from > to)
        return false;
    *ret_part = slice_of(text.data + from, to - from);
    return true;
}

QUERY_FUNCTION(regex_extract)
{
    struct query_regex_match match;
    struct query_regex *regex;
    struct slice part;
    uint64_t group;
    bool found;

    regex = regex_of(arguments, count, context, &group);
    if (!regex)
        return true;
    if (!query_regex_find(context, regex, arguments[0].text, 0, &found, &match, err))
        return false;
    if (found && group_text(&match, group, arguments[0].text, &part))
        *ret_value = document_string(part);
    return true;
}

/* Where to look on: behind the match, and behind one more character if it was empty. */
static size_t next_start(struct slice text, const struct query_regex_match *match, size_t from)
{
    size_t end = MAX(match->places[1], from);

    if (match->places[1] > match->places[0])
        return end;
    end++;
    while (end < text.len && utf8_continues(text.data[end]))
        end++;
    return end;
}

QUERY_FUNCTION(regex_extract_all)
{
    size_t mark = query_build_begin(context), from = 0, begin;
    struct slice text = arguments[0].text, part;
    struct query_regex *regex;
    uint32_t index = 0;
    uint64_t group;

    regex = regex_of(arguments, count, context, &group);
    if (!regex)
        return true;
    begin = document_begin(&context->scratch);
    while (from <= text.len) {
        struct query_regex_match match;
        char key[DOCUMENT_INDEX_SIZE];
        bool found;

        if (!query_regex_find(context, regex, text, from, &found, &match, err))
            return query_build_drop(context, mark);
        if (!found)
            break;
        if (group >= match.group_count) {
            query_build_drop(context, mark);
            return true;
        }
        if (group_text(&match, group, text, &part))
            document_append_string(&context->scratch, document_index_key(index++, key), part);
        from = next_start(text, &match, from);
    }
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_value, err);
}

static const struct query_function functions[] = {
    {"RegexExtract", 2, 4, false, QUERY_STABLE, regex_extract},
    {"RegexExtractAll", 2, 4, false, QUERY_STABLE, regex_extract_all},
    {"RegexMatch", 2, 3, false, QUERY_STABLE, regex_match},
};

const struct query_function_family query_functions_regex = {functions, ARRAY_LEN(functions)};
