/* Strings: parts, joining, case. Positions and lengths count UTF-16 units (text.h). A position that
 * is not a whole number makes the result undefined; one outside the text is moved to its edge. */
#include "document/bson.h"
#include "document/utf8.h"
#include "query/function/functions_private.h"
#include "query/value/text.h"

enum { REPLICATE_UNITS_MAX = 10000 };

/* A whole number, negative ones as 0. */
static bool position_of(const struct document_value *argument, uint64_t *ret_position)
{
    int64_t number;

    if (!document_to_int64(argument, &number))
        return false;
    *ret_position = number < 0 ? 0 : (uint64_t)number;
    return true;
}

static bool give_text(struct slice text, struct document_value *ret_value)
{
    *ret_value = document_string(text);
    return true;
}

/* --- Length and parts ------------------------------------------------------------------------ */

QUERY_FUNCTION(string_length)
{
    if (arguments[0].type == DOCUMENT_STRING)
        *ret_value = query_integer((int64_t)query_text_units(arguments[0].text));
    return true;
}

static bool cut(const struct document_value *text, uint64_t start, uint64_t length,
                struct query_context *context, struct document_value *ret_value, struct error *err)
{
    struct slice part;

    return query_text_cut(text->text, start, length, context, &part, err) &&
           give_text(part, ret_value);
}

QUERY_FUNCTION(string_left)
{
    uint64_t length;

    if (arguments[0].type != DOCUMENT_STRING || !position_of(&arguments[1], &length))
        return true;
    return cut(&arguments[0], 0, length, context, ret_value, err);
}

QUERY_FUNCTION(string_right)
{
    uint64_t length, units;

    if (arguments[0].type != DOCUMENT_STRING || !position_of(&arguments[1], &length))
        return true;
    units = query_text_units(arguments[0].text);
    length = MIN(length, units);
    return cut(&arguments[0], units - length, length, context, ret_value, err);
}

QUERY_FUNCTION(string_substring)
{
    uint64_t start, length;

    if (arguments[0].type != DOCUMENT_STRING || !position_of(&arguments[1], &start) ||
        !position_of(&arguments[2], &length))
        return true;
    return cut(&arguments[0], start, length, context, ret_value, err);
}

/* The text before or after the first or last place of a delimiter. Where that does not occur there
 * is no such part: undefined. */
static bool part_of(const struct document_value *arguments, bool last, bool after,
                    struct query_context *context, struct document_value *ret_value,
                    struct error *err)
{
    struct slice text, delimiter;
    size_t at;

    if (!query_all_strings(arguments, 2))
        return true;
    text = arguments[0].text;
    delimiter = arguments[1].text;
    if (!query_work(context, text.len >> 4, err))
        return false;
    at = last ? query_text_find_last(text, delimiter) : query_text_find(text, delimiter);
    if (at == SIZE_MAX)
        return true;
    return give_text(after ? slice_skip(text, at + delimiter.len) : slice_first(text, at),
                     ret_value);
}

QUERY_FUNCTION(string_before)
{
    return part_of(arguments, false, false, context, ret_value, err);
}

QUERY_FUNCTION(string_after)
{
    return part_of(arguments, false, true, context, ret_value, err);
}

QUERY_FUNCTION(string_before_last)
{
    return part_of(arguments, true, false, context, ret_value, err);
}

QUERY_FUNCTION(string_after_last)
{
    return part_of(arguments, true, true, context, ret_value, err);
}

/* --- Trimming -------------------------------------------------------------------------------- */

static bool is_space(uint32_t code)
{
    return (code >= 0x09 && code <= 0x0D) || code == ' ' || code == 0x85 || code == 0xA0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
           code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

/* Is the character one to trim: white space, or one of those given? */
static bool trims(uint32_t code, struct slice character, const struct slice *which)
{
    if (!which)
        return is_space(code);
    return query_text_find(*which, character) != SIZE_MAX;
}

static struct slice trim_left(struct slice text, const struct slice *which)
{
    while (text.len) {
        size_t len;
        uint32_t code = query_text_decode(text.data, text.data + text.len, &len);

        if (!trims(code, slice_first(text, len), which))
            break;
        text = slice_skip(text, len);
    }
    return text;
}

static struct slice trim_right(struct slice text, const struct slice *which)
{
    while (text.len) {
        size_t start = text.len - 1, len;
        uint32_t code;

        while (start > 0 && utf8_continues(text.data[start]))
            start--;
        code = query_text_decode(text.data + start, text.data + text.len, &len);
        if (!trims(code, slice_skip(text, start), which))
            break;
        text.len = start;
    }
    return text;
}

/* The given text as a whole, as often as it stands there. */
static struct slice strip_left(struct slice text, struct slice what)
{
    while (what.len && slice_starts_with(text, what))
        text = slice_skip(text, what.len);
    return text;
}

static struct slice strip_right(struct slice text, struct slice what)
{
    while (what.len && query_text_ends_with(text, what))
        text.len -= what.len;
    return text;
}

QUERY_FUNCTION(string_ltrim)
{
    if (!query_all_strings(arguments, count))
        return true;
    return give_text(count > 1 ? strip_left(arguments[0].text, arguments[1].text)
                               : trim_left(arguments[0].text, NULL),
                     ret_value);
}

QUERY_FUNCTION(string_rtrim)
{
    if (!query_all_strings(arguments, count))
        return true;
    return give_text(count > 1 ? strip_right(arguments[0].text, arguments[1].text)
                               : trim_right(arguments[0].text, NULL),
                     ret_value);
}

QUERY_FUNCTION(string_trim)
{
    const struct slice *which = count > 1 ? &arguments[1].text : NULL;

    if (!query_all_strings(arguments, count))
        return true;
    if (which && !query_work(context, arguments[0].text.len * which->len >> 4, err))
        return false;
    return give_text(trim_right(trim_left(arguments[0].text, which), which), ret_value);
}

/* --- Making new texts ------------------------------------------------------------------------ */

QUERY_FUNCTION(string_concat)
{
    size_t mark = query_build_begin(context);

    if (!query_all_strings(arguments, count))
        return true;
    for (size_t i = 0; i < count; i++)
        query_text_append(&context->scratch, mark, arguments[i].text);
    return query_text_end(context, mark, ret_value, err);
}

static bool convert(const struct document_value *argument, enum query_case to,
                    struct query_context *context, struct document_value *ret_value,
                    struct error *err)
{
    struct slice text;

    if (argument->type != DOCUMENT_STRING)
        return true;
    return query_text_convert(argument->text, to, context, &text, err) &&
           give_text(text, ret_value);
}

QUERY_FUNCTION(string_lower)
{
    return convert(&arguments[0], QUERY_CASE_LOWER, context, ret_value, err);
}

QUERY_FUNCTION(string_upper)
{
    return convert(&arguments[0], QUERY_CASE_UPPER, context, ret_value, err);
}

QUERY_FUNCTION(string_replace)
{
    size_t mark = query_build_begin(context), at;
    struct slice rest, what;

    if (!query_all_strings(arguments, 3))
        return true;
    rest = arguments[0].text;
    what = arguments[1].text;
    if (what.len == 0)
        return give_text(rest, ret_value);
    if (!query_work(context, rest.len >> 4, err))
        return false;
    while ((at = query_text_find(rest, what)) != SIZE_MAX) {
        query_text_append(&context->scratch, mark, slice_first(rest, at));
        query_text_append(&context->scratch, mark, arguments[2].text);
        rest = slice_skip(rest, at + what.len);
        if (!query_work(context, 1 + (arguments[2].text.len >> 4), err))
            return query_build_drop(context, mark);
    }
    query_text_append(&context->scratch, mark, rest);
    return query_text_end(context, mark, ret_value, err);
}

QUERY_FUNCTION(string_replicate)
{
    size_t mark = query_build_begin(context);
    uint64_t units;
    int64_t times;

    if (arguments[0].type != DOCUMENT_STRING || !document_to_int64(&arguments[1], &times) ||
        times < 0)
        return true;
    units = query_text_units(arguments[0].text);
    if (units && (uint64_t)times > REPLICATE_UNITS_MAX / units)
        return true;
    for (int64_t i = 0; units && i < times; i++)
        query_text_append(&context->scratch, mark, arguments[0].text);
    return query_text_end(context, mark, ret_value, err);
}

/* Character by character: the two units of one keep their order, or it would be another text. */
QUERY_FUNCTION(string_reverse)
{
    size_t mark = query_build_begin(context);
    struct slice text = arguments[0].text;

    if (arguments[0].type != DOCUMENT_STRING)
        return true;
    if (!query_work(context, text.len >> 2, err))
        return false;
    while (text.len) {
        size_t start = text.len - 1;

        while (start > 0 && utf8_continues(text.data[start]))
            start--;
        query_text_append(&context->scratch, mark, slice_skip(text, start));
        text.len = start;
    }
    return query_text_end(context, mark, ret_value, err);
}

/* --- Arrays of strings ----------------------------------------------------------------------- */

QUERY_FUNCTION(string_join)
{
    size_t mark = query_build_begin(context);
    struct document_iter iter;
    bool first = true;

    if (arguments[0].type != DOCUMENT_ARRAY || arguments[1].type != DOCUMENT_STRING)
        return true;
    document_iter_init(&iter, arguments[0].document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_STRING) {
            query_build_drop(context, mark);
            return true;
        }
        if (!first)
            query_text_append(&context->scratch, mark, arguments[1].text);
        query_text_append(&context->scratch, mark, iter.value.text);
        first = false;
    }
    return query_text_end(context, mark, ret_value, err);
}

QUERY_FUNCTION(string_split)
{
    size_t mark = query_build_begin(context), begin, at;
    struct slice rest, separator;
    uint32_t index = 0;

    if (!query_all_strings(arguments, 2))
        return true;
    rest = arguments[0].text;
    separator = arguments[1].text;
    if (!query_work(context, rest.len >> 3, err))
        return false;
    begin = document_begin(&context->scratch);
    for (;;) {
        char key[DOCUMENT_INDEX_SIZE];

        at = separator.len ? query_text_find(rest, separator) : SIZE_MAX;
        document_append_string(&context->scratch, document_index_key(index++, key),
                               at == SIZE_MAX ? rest : slice_first(rest, at));
        if (at == SIZE_MAX)
            break;
        rest = slice_skip(rest, at + separator.len);
    }
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_value, err);
}

static const struct query_function functions[] = {
    {"CONCAT", 2, QUERY_ARGUMENTS_ANY, false, QUERY_STABLE, string_concat},
    {"LastSubstringAfter", 2, 2, false, QUERY_STABLE, string_after_last},
    {"LastSubstringBefore", 2, 2, false, QUERY_STABLE, string_before_last},
    {"LEFT", 2, 2, false, QUERY_STABLE, string_left},
    {"LENGTH", 1, 1, false, QUERY_STABLE, string_length},
    {"LOWER", 1, 1, false, QUERY_STABLE, string_lower},
    {"LTRIM", 1, 2, false, QUERY_STABLE, string_ltrim},
    {"REPLACE", 3, 3, false, QUERY_STABLE, string_replace},
    {"REPLICATE", 2, 2, false, QUERY_STABLE, string_replicate},
    {"REVERSE", 1, 1, false, QUERY_STABLE, string_reverse},
    {"RIGHT", 2, 2, false, QUERY_STABLE, string_right},
    {"RTRIM", 1, 2, false, QUERY_STABLE, string_rtrim},
    {"StringJoin", 2, 2, false, QUERY_STABLE, string_join},
    {"StringSplit", 2, 2, false, QUERY_STABLE, string_split},
    {"SUBSTRING", 3, 3, false, QUERY_STABLE, string_substring},
    {"SubstringAfter", 2, 2, false, QUERY_STABLE, string_after},
    {"SubstringBefore", 2, 2, false, QUERY_STABLE, string_before},
    {"TRIM", 1, 2, false, QUERY_STABLE, string_trim},
    {"UPPER", 1, 1, false, QUERY_STABLE, string_upper},
};

const struct query_function_family query_functions_string = {functions, ARRAY_LEN(functions)};
