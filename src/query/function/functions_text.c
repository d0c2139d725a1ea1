/* Full text: does a text hold a word or phrase, whichever form its words have? A phrase is there
 * where its terms stand next to each other; how texts become terms is the business of
 * search/analyser.h.
 *
 * The first argument is the language, which the container's policy has for the path: compilers put
 * it there (takes_language). */
#include "query/function/functions_private.h"

#include "search/analyser.h"

enum {
    BYTES_PER_WORK_SHIFT = 2, /* stems take some hundred nanoseconds */
    TERMS_MAX = 64,           /* of a phrase */
    PHRASES_MAX = 64,
};

/* A phrase looked for as its terms come by: Knuth, Morris and Pratt's way, so that no text makes it
 * look twice. */
struct phrase {
    struct slice terms[TERMS_MAX];
    uint8_t back[TERMS_MAX]; /* how many terms still fit where the one at this place does not */
    size_t count, at;
    bool found;
};

static struct search_analyser *analyser_of(struct query_context *context, struct slice language)
{
    if (context->analyser && !slice_equal(context->analyser_language, language)) {
        search_analyser_free(context->analyser);
        context->analyser = NULL;
    }
    if (!context->analyser) {
        context->analyser = search_analyser_new(language);
        context->analyser_language = language; /* of the plan, which outlives the page */
    }
    return context->analyser;
}

static bool phrase_read(struct phrase *phrase, struct slice text, struct search_analyser *analyser,
                        struct query_context *context, struct error *err)
{
    struct search_text words = {analyser, text};
    struct slice term;

    phrase->count = phrase->at = 0;
    phrase->found = false;
    if (!query_work(context, text.len >> BYTES_PER_WORK_SHIFT, err))
        return false;
    while (search_text_next(&words, &term)) {
        uint8_t *copy = query_alloc(context, term.len + 1, err);

        if (!copy)
            return false;
        if (phrase->count == TERMS_MAX)
            return error_set(err, ERROR_QUERY_LIMIT, "a phrase has more than %d words", TERMS_MAX);
        memcpy(copy, term.data, term.len);
        phrase->terms[phrase->count++] = slice_of(copy, term.len);
    }
    for (size_t i = 0, fits = 0; i < phrase->count; i++) {
        phrase->back[i] = (uint8_t)fits;
        while (fits && !slice_equal(phrase->terms[i], phrase->terms[fits]))
            fits = phrase->back[fits];
        fits += i && slice_equal(phrase->terms[i], phrase->terms[fits]);
    }
    return true;
}

static void phrase_take(struct phrase *phrase, struct slice term)
{
    if (phrase->found || !phrase->count)
        return;
    while (phrase->at && !slice_equal(term, phrase->terms[phrase->at]))
        phrase->at = phrase->back[phrase->at];
    phrase->at += slice_equal(term, phrase->terms[phrase->at]);
    phrase->found = phrase->at == phrase->count;
}

/* Looks for all phrases at once; found as far as that settles the answer. */
static bool phrases_find(const struct document_value *arguments, size_t count, bool all,
                         struct query_context *context, bool *ret_holds, struct error *err)
{
    struct search_analyser *analyser = analyser_of(context, arguments[0].text);
    struct phrase *phrases = query_alloc(context, count * sizeof *phrases, err);
    struct search_text words = {analyser, arguments[1].text};
    struct slice term;
    size_t found = 0;

    if (!phrases || !query_work(context, words.rest.len >> BYTES_PER_WORK_SHIFT, err))
        return false;
    for (size_t i = 2; i < count; i++)
        if (!phrase_read(&phrases[i - 2], arguments[i].text, analyser, context, err))
            return false;
    count -= 2;
    while (found < (all ? count : 1) && search_text_next(&words, &term)) {
        found = 0;
        for (size_t i = 0; i < count; i++) {
            phrase_take(&phrases[i], term);
            found += phrases[i].found;
        }
        if (!query_work(context, count - 1, err))
            return false;
    }
    *ret_holds = found >= (all ? count : 1);
    return true;
}

static bool contains(const struct document_value *arguments, size_t count, bool all,
                     struct query_context *context, struct document_value *ret_value,
                     struct error *err)
{
    bool holds;

    if (!query_all_strings(arguments, count) || !search_language_is_known(arguments[0].text))
        return true;
    if (count - 2 > PHRASES_MAX)
        return error_set(err, ERROR_QUERY_LIMIT, "more than %d phrases are looked for",
                         PHRASES_MAX);
    if (!phrases_find(arguments, count, all, context, &holds, err))
        return false;
    *ret_value = document_bool(holds);
    return true;
}

QUERY_FUNCTION(text_contains_all)
{
    return contains(arguments, count, true, context, ret_value, err);
}

QUERY_FUNCTION(text_contains_any)
{
    return contains(arguments, count, false, context, ret_value, err);
}

static const struct query_function functions[] = {
    {"FullTextContains", 3, 3, false, QUERY_STABLE, text_contains_all, .takes_language = true},
    {"FullTextContainsAll", 3, QUERY_ARGUMENTS_ANY, false, QUERY_STABLE, text_contains_all,
     .takes_language = true},
    {"FullTextContainsAny", 3, QUERY_ARGUMENTS_ANY, false, QUERY_STABLE, text_contains_any,
     .takes_language = true},
};

const struct query_function_family query_functions_text = {functions, ARRAY_LEN(functions)};
