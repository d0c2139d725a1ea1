#include "front/table/cors.h"

#include "front/table/answer.h"
#include "front/table/properties.h"

static struct slice text_of(const struct xml_node *rule, const char *name)
{
    const struct xml_node *child = xml_child(rule, name);

    return child ? child->text : SLICE("");
}

/* Is the word in a list with commas? A star stands for all; at the end of a word, where that is
 * allowed, for whatever follows. */
static bool listed(struct slice list, struct slice word, bool prefixes)
{
    struct slice one;

    while (list.len) {
        if (!slice_split(list, ',', &one, &list)) {
            one = list;
            list = SLICE_NONE;
        }
        one = slice_trim(one);
        if (slice_equal(one, SLICE("*")) || slice_equal_nocase(one, word))
            return true;
        if (prefixes && one.len && one.data[one.len - 1] == '*' && word.len >= one.len - 1 &&
            slice_equal_nocase(slice_first(one, one.len - 1), slice_first(word, one.len - 1)))
            return true;
    }
    return false;
}

static bool all_listed(struct slice list, struct slice words)
{
    struct slice word;

    while (words.len) {
        if (!slice_split(words, ',', &word, &words)) {
            word = words;
            words = SLICE_NONE;
        }
        if (!listed(list, slice_trim(word), true))
            return false;
    }
    return true;
}

/* The first rule that allows it; NULL: none does. headers: those a preflight asks about. */
static const struct xml_node *rule_find(struct table_call *call, struct slice origin,
                                        struct slice method, struct slice headers)
{
    const struct xml_node *stored = table_properties_stored(call);
    const struct xml_node *cors = stored ? xml_child(stored, "Cors") : NULL;

    for (const struct xml_node *rule = cors ? cors->first : NULL; rule; rule = rule->next)
        if (listed(text_of(rule, "AllowedOrigins"), origin, false) &&
            listed(text_of(rule, "AllowedMethods"), method, false) &&
            all_listed(text_of(rule, "AllowedHeaders"), headers))
            return rule;
    return NULL;
}

static void origin_answer(struct table_call *call, const struct xml_node *rule, struct slice origin)
{
    bool all = slice_equal(text_of(rule, "AllowedOrigins"), SLICE("*"));

    table_answer_header(call, SLICE("Access-Control-Allow-Origin"), all ? SLICE("*") : origin);
    if (!all)
        table_answer_header(call, SLICE("Vary"), SLICE("Origin"));
}

bool table_cors_preflight(struct table_call *call, struct error *err)
{
    struct slice origin = table_call_header(call, SLICE("origin"));
    struct slice method = table_call_header(call, SLICE("access-control-request-method"));
    struct slice headers = table_call_header(call, SLICE("access-control-request-headers"));
    const struct xml_node *rule;

    if (!origin.len || !method.len)
        return error_set(err, ERROR_TABLE_HEADER_MISSING,
                         "a preflight has Origin and Access-Control-Request-Method");
    rule = rule_find(call, origin, method, headers);
    if (!rule)
        return error_set(err, ERROR_TABLE_CORS, "set CORS rules with the service properties");
    table_answer_header(call, SLICE("Access-Control-Allow-Methods"), method);
    if (headers.len)
        table_answer_header(call, SLICE("Access-Control-Allow-Headers"), headers);
    table_answer_header(call, SLICE("Access-Control-Max-Age"), text_of(rule, "MaxAgeInSeconds"));
    call->status = 200;
    return true; /* who may read the answer is added as to every other */
}

bool table_cors_allows(struct table_call *call)
{
    struct slice origin = table_call_header(call, SLICE("origin"));

    return origin.len && rule_find(call, origin, call->http->method, SLICE_NONE);
}

void table_cors_answer(struct table_call *call)
{
    struct slice origin = table_call_header(call, SLICE("origin")), method = call->http->method;
    struct slice exposed;
    const struct xml_node *rule;

    if (!origin.len)
        return;
    if (slice_equal(method, SLICE("OPTIONS")))
        method = table_call_header(call, SLICE("access-control-request-method"));
    rule = rule_find(call, origin, method, SLICE_NONE);
    if (!rule)
        return;
    exposed = text_of(rule, "ExposedHeaders");
    origin_answer(call, rule, origin);
    if (exposed.len)
        table_answer_header(call, SLICE("Access-Control-Expose-Headers"), exposed);
}
