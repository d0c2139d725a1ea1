/* Full text: does a text hold a word or phrase, whichever form its words have, and how well does it
 * fit several? A phrase is there where its terms stand next to each other; how texts become terms
 * is the business of search/analyser.h.
 *
 * Scores are BM25's. What they need of all texts (how many there are, their words, in how many of
 * them a phrase is) comes as arguments: whoever asks has added it up over the whole container, so a
 * score does not depend on where an item lies.
 *
 * The first argument is the language, which the container's policy has for the path: compilers put
 * it there (takes_language). */
#include "query/function/functions_private.h"

#include "search/analyser.h"
#include "search/score.h"

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
    uint64_t hits; /* how often it was there, none in another */
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
    phrase->hits = 0;
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
    if (!phrase->count)
        return;
    while (phrase->at && !slice_equal(term, phrase->terms[phrase->at]))
        phrase->at = phrase->back[phrase->at];
    phrase->at += slice_equal(term, phrase->terms[phrase->at]);
    if (phrase->at == phrase->count) {
        phrase->hits++;
        phrase->at = 0;
    }
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
            if (!phrases[i].hits)
                phrase_take(&phrases[i], term);
            found += phrases[i].hits > 0;
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

/* --- What is implied ------------------------------------------------------------------------- */

struct implying_words {
    struct query_words words;
    struct slice *terms;
    uint64_t *groups;
    struct search_analyser *analyser;
    struct arena *arena;
};

/* The bit of a term; 0: there is no room for it. */
static uint64_t term_bit(struct implying_words *w, struct slice term)
{
    size_t at = 0;

    while (at < w->words.count && !slice_equal(w->terms[at], term))
        at++;
    if (at == QUERY_TERMS_MAX)
        return 0;
    if (at == w->words.count)
        w->terms[w->words.count++] = arena_copy(w->arena, term);
    return (uint64_t)1 << at;
}

/* All terms of the phrase, as far as one may be long; 0: it has none, or *ret_room false: they are
 * too many. */
static uint64_t phrase_terms(struct implying_words *w, struct slice phrase, bool *ret_room)
{
    struct search_text text = {w->analyser, phrase};
    struct slice term;
    uint64_t group = 0, bit = 1;
    size_t count = 0;

    while (bit && count < TERMS_MAX && search_text_next(&text, &term)) {
        bit = term_bit(w, term);
        group |= bit;
        count++;
    }
    *ret_room = bit != 0;
    w->words.exact &= count <= 1;
    return group;
}

/* One term of the phrase, the longest, for that is likely to be rare. */
static uint64_t phrase_term(struct implying_words *w, struct slice phrase)
{
    struct search_text text = {w->analyser, phrase};
    struct slice longest = SLICE_NONE, term;

    for (size_t i = 0; i < TERMS_MAX && search_text_next(&text, &term); i++)
        if (term.len > longest.len)
            longest = arena_copy(w->arena, term);
    return longest.len ? term_bit(w, longest) : 0;
}

/* A group for each phrase that has terms. False: there is no room for all terms. */
static bool phrases_group(struct implying_words *w, const struct query_operand *phrases,
                          size_t count, bool whole)
{
    w->words.count = w->words.group_count = 0;
    w->words.exact = whole;
    for (size_t i = 0; i < count; i++) {
        struct slice phrase = phrases[i].constant->text;
        bool room = true;
        uint64_t group = whole ? phrase_terms(w, phrase, &room) : phrase_term(w, phrase);

        if (!room)
            return false;
        if (group)
            w->groups[w->words.group_count++] = group;
    }
    return true;
}

/* Language, path and phrases. */
static const struct query_implied *words_implied(const struct query_operand *operands, size_t count,
                                                 bool all, const struct query_implying *implying)
{
    CLEANUP(search_analyser_free) struct search_analyser *analyser = NULL;
    struct implying_words w = {.arena = implying->arena};

    static_assert((int)PHRASES_MAX <= (int)QUERY_TERMS_MAX, "each phrase has room for a term");
    if (!operands[0].constant || operands[0].constant->type != DOCUMENT_STRING ||
        !operands[1].is_path || operands[1].elements || operands[1].through ||
        count - 2 > PHRASES_MAX)
        return NULL;
    for (size_t i = 2; i < count; i++)
        if (!operands[i].constant || operands[i].constant->type != DOCUMENT_STRING)
            return NULL;
    w.words.language = operands[0].constant->text;
    w.analyser = analyser = search_analyser_new(w.words.language);
    if (!analyser)
        return NULL;
    w.words.terms = w.terms = ARENA_ARRAY(implying->arena, struct slice, QUERY_TERMS_MAX);
    w.words.groups = w.groups = ARENA_ARRAY(implying->arena, uint64_t, count);
    if (!phrases_group(&w, operands + 2, count - 2, true))
        (void)phrases_group(&w, operands + 2, count - 2, false);
    if (!w.words.group_count || (all && w.words.group_count < count - 2))
        return query_implied_never(implying); /* a phrase of nothing is nowhere */
    for (size_t i = 1; all && i < w.words.group_count; i++)
        w.groups[0] |= w.groups[i];
    if (all)
        w.words.group_count = 1;
    return query_implied_words(implying, &operands[1], &w.words);
}

static const struct query_implied *all_implied(const struct query_operand *operands, size_t count,
                                               const struct query_implying *implying)
{
    return words_implied(operands, count, true, implying);
}

static const struct query_implied *any_implied(const struct query_operand *operands, size_t count,
                                               const struct query_implying *implying)
{
    return words_implied(operands, count, false, implying);
}

/* --- Scores ---------------------------------------------------------------------------------- */

/* How many terms the text has; what is no text has none. */
QUERY_FUNCTION(text_words)
{
    struct search_text words;
    struct slice term;
    int64_t terms = 0;

    if (arguments[0].type != DOCUMENT_STRING || !search_language_is_known(arguments[0].text))
        return true;
    if (arguments[1].type == DOCUMENT_STRING) {
        words = (struct search_text){analyser_of(context, arguments[0].text), arguments[1].text};
        if (!query_work(context, words.rest.len >> BYTES_PER_WORK_SHIFT, err))
            return false;
        while (search_text_next(&words, &term))
            terms++;
    }
    *ret_value = document_int64(terms);
    return true;
}

/* What is known of all texts. */
struct corpus {
    double texts, words;
    struct slice hits; /* an array: in how many texts each phrase is */
};

static bool corpus_read(const struct document_value *arguments, struct corpus *ret_corpus)
{
    if (!document_to_double(&arguments[0], &ret_corpus->texts) ||
        !document_to_double(&arguments[1], &ret_corpus->words) ||
        arguments[2].type != DOCUMENT_ARRAY)
        return false;
    ret_corpus->hits = arguments[2].document;
    return ret_corpus->texts >= 0 && ret_corpus->words >= 0;
}

static bool phrases_read(struct slice list, struct search_analyser *analyser,
                         struct query_context *context, struct phrase **ret_phrases,
                         size_t *ret_count, struct error *err)
{
    size_t count = document_count(list), at = 0;
    struct document_iter iter;

    if (count > PHRASES_MAX)
        return error_set(err, ERROR_QUERY_LIMIT, "more than %d phrases are looked for",
                         PHRASES_MAX);
    *ret_phrases = query_alloc(context, (count + 1) * sizeof **ret_phrases, err);
    if (!*ret_phrases)
        return false;
    document_iter_init(&iter, list);
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_STRING &&
            !phrase_read(&(*ret_phrases)[at++], iter.value.text, analyser, context, err))
            return false;
    *ret_count = at == count ? count : 0; /* what is no text is looked for in vain */
    return true;
}

/* The score of one text of so many terms, in which phrases have been counted. */
static double score_of(const struct phrase *phrases, size_t count, double terms,
                       const struct corpus *corpus)
{
    double mean = corpus->texts > 0 ? corpus->words / corpus->texts : 0, score = 0, hits;
    struct document_iter iter;

    document_iter_init(&iter, corpus->hits);
    for (size_t i = 0; i < count && document_iter_next(&iter); i++) {
        double often = (double)phrases[i].hits;

        if (phrases[i].hits && mean > 0 && document_to_double(&iter.value, &hits))
            score +=
                search_score_part(search_score_weight(corpus->texts, hits), often, terms, mean);
    }
    return score;
}

/* Is the score asked for that the entries of the item have told? */
static bool is_known(const struct query_known_score *known, const struct document_value *arguments,
                     const struct corpus *corpus)
{
    return known->text && known->text == arguments[1].text.data && known->texts == corpus->texts &&
           known->words == corpus->words && slice_equal(known->language, arguments[0].text) &&
           slice_equal(known->phrases, arguments[2].document) &&
           slice_equal(known->hits, corpus->hits);
}

/* The arguments are those of enum query_score_argument. */
QUERY_FUNCTION(text_score)
{
    struct search_analyser *analyser;
    struct search_text words;
    struct phrase *phrases = NULL;
    struct corpus corpus;
    struct slice term;
    uint64_t terms = 0;
    size_t phrase_count = 0;

    if (arguments[0].type != DOCUMENT_STRING || !search_language_is_known(arguments[0].text) ||
        arguments[2].type != DOCUMENT_ARRAY || !corpus_read(&arguments[3], &corpus))
        return true;
    *ret_value = document_double(0);
    if (arguments[1].type != DOCUMENT_STRING)
        return true;
    if (is_known(&context->known_score, arguments, &corpus)) {
        *ret_value = document_double(context->known_score.score);
        return true;
    }
    analyser = analyser_of(context, arguments[0].text);
    words = (struct search_text){analyser, arguments[1].text};
    if (!phrases_read(arguments[2].document, analyser, context, &phrases, &phrase_count, err) ||
        !query_work(context, words.rest.len >> BYTES_PER_WORK_SHIFT, err))
        return false;
    while (search_text_next(&words, &term)) {
        terms++;
        for (size_t i = 0; i < phrase_count; i++)
            phrase_take(&phrases[i], term);
        if (!query_work(context, phrase_count, err))
            return false;
    }
    *ret_value = document_double(score_of(phrases, phrase_count, (double)terms, &corpus));
    return true;
}

static const struct query_function functions[] = {
    {"FullTextContains", 3, 3, false, QUERY_STABLE, text_contains_all, all_implied,
     .takes_language = true},
    {"FullTextContainsAll", 3, QUERY_ARGUMENTS_ANY, false, QUERY_STABLE, text_contains_all,
     all_implied, .takes_language = true},
    {"FullTextContainsAny", 3, QUERY_ARGUMENTS_ANY, false, QUERY_STABLE, text_contains_any,
     any_implied, .takes_language = true},
    {"_FullTextScore", 6, 6, true, QUERY_STABLE, text_score, .takes_language = true,
     .text = QUERY_TEXT_SCORE},
    {"_FullTextWordCount", 2, 2, true, QUERY_STABLE, text_words, .takes_language = true,
     .text = QUERY_TEXT_WORDS},
};

const struct query_function_family query_functions_text = {functions, ARRAY_LEN(functions)};
