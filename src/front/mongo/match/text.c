/* The search is taken apart once. Each text of a document is read once for words, with the rules of
 * its language, and once for each phrase.
 *
 * A word is compared as the index has it: in lower case, without accents, by its stem. Who asks for
 * case or accents has words of the search and of texts read with them; the index finds what may
 * match, and the filter looks again. */
#include "front/mongo/match/text.h"

#include "document/bson.h"
#include "front/mongo/text.h"
#include "index/policy.h"
#include "query/value/condition.h"
#include "search/analyser.h"

#include <math.h>
#include <utf8proc.h>

enum {
    WORDS_MAX = 256,    /* of a search, and as many phrases */
    BYTES_PER_WORK = 4, /* of text read */
};

struct words {
    struct slice list[WORDS_MAX];
    size_t count;
};

struct mongo_text {
    const struct index_definition *index; /* in the arena */
    struct slice language;
    bool case_sensitive, accent_sensitive;
    struct words words;   /* as texts are compared */
    struct words entries; /* the same as the index has them */
    struct words denied;
    struct words phrases, denied_phrases; /* in the form that texts are brought to */
};

static unsigned flags_of(const struct mongo_text *text)
{
    return (text->case_sensitive ? SEARCH_KEEP_CASE : 0u) |
           (text->accent_sensitive ? 0u : SEARCH_DROP_MARKS);
}

/* --- Taking a search apart ------------------------------------------------------------------- */

static bool word_add(struct words *words, struct slice word, struct query_build *build,
                     struct error *err)
{
    for (size_t i = 0; i < words->count; i++)
        if (slice_equal(words->list[i], word))
            return true;
    if (words->count == WORDS_MAX)
        return mongo_error_set(err, MONGO_BAD_VALUE, "$text: more than %d words are searched for",
                               WORDS_MAX);
    words->list[words->count++] = arena_copy(build->arena, word);
    return true;
}

static bool words_add(struct words *words, struct slice piece, struct slice language,
                      unsigned flags, struct query_build *build, struct error *err)
{
    CLEANUP(search_analyser_free)
    struct search_analyser *analyser = search_analyser_open(language, flags);
    struct search_text reading = {analyser, piece};
    struct slice word;

    while (search_text_next(&reading, &word))
        if (!word_add(words, word, build, err))
            return false;
    return true;
}

/* A text as phrases are looked for in it: every character by itself, for a phrase is a piece of
 * text. In the arena. */
static struct slice form_of(const struct mongo_text *text, struct slice bytes, struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    struct slice rest = bytes;

    buf_init(&out, 64 + 4 * bytes.len);
    while (rest.len) {
        utf8proc_int32_t point, parts[8];
        utf8proc_ssize_t len = utf8proc_iterate(rest.data, (utf8proc_ssize_t)rest.len, &point);
        utf8proc_ssize_t count = 1;
        utf8proc_uint8_t encoded[4];
        int last = 0;

        if (len <= 0) {
            buf_append_byte(&out, rest.data[0]);
            rest = slice_skip(rest, 1);
            continue;
        }
        rest = slice_skip(rest, (size_t)len);
        parts[0] = text->case_sensitive ? point : utf8proc_tolower(point);
        if (!text->accent_sensitive && point >= 0x80)
            count = utf8proc_decompose_char(parts[0], parts, ARRAY_LEN(parts),
                                            UTF8PROC_DECOMPOSE | UTF8PROC_STRIPMARK, &last);
        for (utf8proc_ssize_t i = 0; i < MIN(count, (utf8proc_ssize_t)ARRAY_LEN(parts)); i++)
            buf_append(&out, encoded, (size_t)utf8proc_encode_char(parts[i], encoded));
    }
    return arena_copy(arena, buf_slice(&out));
}

static bool phrase_take(struct mongo_text *text, struct slice phrase, bool denied,
                        struct query_build *build, struct error *err)
{
    if (!word_add(denied ? &text->denied_phrases : &text->phrases,
                  form_of(text, phrase, build->arena), build, err))
        return false;
    if (denied)
        return true;
    return words_add(&text->words, phrase, text->language, flags_of(text), build, err) &&
           words_add(&text->entries, phrase, text->language, SEARCH_DROP_MARKS, build, err);
}

static bool piece_take(struct mongo_text *text, struct slice piece, bool denied,
                       struct query_build *build, struct error *err)
{
    if (denied)
        return words_add(&text->denied, piece, text->language, flags_of(text), build, err);
    return words_add(&text->words, piece, text->language, flags_of(text), build, err) &&
           words_add(&text->entries, piece, text->language, SEARCH_DROP_MARKS, build, err);
}

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* A quote that nothing closes is none. */
static bool search_take(struct mongo_text *text, struct slice search, struct query_build *build,
                        struct error *err)
{
    size_t at = 0;

    while (at < search.len) {
        bool denied = search.data[at] == '-' && (at == 0 || is_blank(search.data[at - 1]));
        size_t begin = at + denied, end = begin;
        const uint8_t *close = NULL;

        if (begin < search.len && search.data[begin] == '"')
            close = memchr(search.data + begin + 1, '"', search.len - begin - 1);
        if (close) {
            end = (size_t)(close - search.data);
            if (!phrase_take(text, slice_of(search.data + begin + 1, end - begin - 1), denied,
                             build, err))
                return false;
            at = end + 1;
            continue;
        }
        while (end < search.len && !is_blank(search.data[end]) &&
               (search.data[end] != '"' || end == begin))
            end++;
        if (!piece_take(text, slice_of(search.data + begin, end - begin), denied, build, err))
            return false;
        at = MAX(end, begin + 1);
        while (at < search.len && is_blank(search.data[at]))
            at++;
    }
    return true;
}

static bool flag_read(const struct document_value *value, const char *name, bool *ret_flag,
                      struct error *err)
{
    if (value->type != DOCUMENT_BOOL)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "%s had the wrong type. Expected bool, found %s", name,
                               mongo_type_name(value->type));
    *ret_flag = value->boolean;
    return true;
}

static bool text_read(const struct document_value *value, const char *name, struct slice *ret_text,
                      struct error *err)
{
    if (value->type != DOCUMENT_STRING)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "%s had the wrong type. Expected string, found %s", name,
                               mongo_type_name(value->type));
    *ret_text = value->text;
    return true;
}

static bool fields_read(const struct document_value *value, struct mongo_text *text,
                        struct slice *ret_search, struct slice *ret_language, struct error *err)
{
    struct document_iter iter;
    bool searches = false;

    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        bool fine;

        if (slice_equal(iter.key, SLICE("$search"))) {
            fine = text_read(&iter.value, "$search", ret_search, err);
            searches = true;
        } else if (slice_equal(iter.key, SLICE("$language"))) {
            fine = text_read(&iter.value, "$language", ret_language, err);
        } else if (slice_equal(iter.key, SLICE("$caseSensitive"))) {
            fine = flag_read(&iter.value, "$caseSensitive", &text->case_sensitive, err);
        } else if (slice_equal(iter.key, SLICE("$diacriticSensitive"))) {
            fine = flag_read(&iter.value, "$diacriticSensitive", &text->accent_sensitive, err);
        } else {
            fine = mongo_error_set(err, MONGO_BAD_VALUE, "extra fields in $text");
        }
        if (!fine)
            return false;
    }
    return searches ||
           mongo_error_set(err, MONGO_TYPE_MISMATCH,
                           "$search had the wrong type. Expected string, found missing");
}

bool mongo_text_compile(const struct document_value *value, const struct index_definition *index,
                        struct query_build *build, const struct mongo_text **ret_text,
                        struct error *err)
{
    struct mongo_text *text = ARENA_NEW(build->arena, struct mongo_text);
    struct slice search = SLICE(""), language = SLICE_NONE;

    *text = (struct mongo_text){0};
    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(err, MONGO_BAD_VALUE, "$text expects an object");
    if (!fields_read(value, text, &search, &language, err))
        return false;
    if (!index)
        return mongo_error_set(err, MONGO_INDEX_NOT_FOUND, "text index required for $text query");
    text->index = index_definition_copy(index, build->arena);
    text->language = text->index->text->language;
    if (language.data) {
        text->language = search_language_code(language);
        if (!text->language.data)
            return mongo_error_set(err, MONGO_BAD_VALUE,
                                   "unsupported language: \"%.*s\" for text index version 3",
                                   (int)MIN(language.len, (size_t)60), (const char *)language.data);
    }
    if (!search_take(text, search, build, err))
        return false;
    *ret_text = text;
    return true;
}

/* --- Looking at a document ------------------------------------------------------------------- */

struct looking {
    const struct mongo_text *text;
    struct query_context *context;
    bool word, denied;       /* found: one of the words, one of those denied */
    bool phrases[WORDS_MAX]; /* which were found */
    bool denied_phrase;
    double score;
    struct error *err;
    bool scores; /* it is the score that is wanted */
};

static bool has(const struct words *words, struct slice word, size_t *ret_at)
{
    for (size_t i = 0; i < words->count; i++)
        if (slice_equal(words->list[i], word)) {
            *ret_at = i;
            return true;
        }
    return false;
}

/* How often each word of the search is in one text, the later times counting half of those before.
 */
struct counts {
    double freq[WORDS_MAX];
    double share[WORDS_MAX]; /* of the next time */
    uint32_t count[WORDS_MAX];
};

static bool is_raw(struct slice text, struct slice word)
{
    return slice_equal_nocase(text, word);
}

static void scores_add(struct looking *l, const struct counts *counts, struct slice text,
                       double weight, uint64_t tokens)
{
    const struct words *words = &l->text->entries;

    for (size_t i = 0; i < words->count; i++) {
        if (!counts->count[i])
            continue;
        l->score += weight * counts->freq[i] * (0.5 * counts->count[i] / (double)tokens + 0.5) *
                    (is_raw(text, words->list[i]) ? 1.1 : 1);
    }
}

static bool words_look(struct looking *l, struct slice text, double weight, struct slice language)
{
    CLEANUP(search_analyser_free)
    struct search_analyser *analyser =
        search_analyser_open(language, l->scores ? SEARCH_DROP_MARKS : flags_of(l->text));
    struct search_text reading = {analyser, text};
    struct counts counts = {0};
    struct slice word;
    uint64_t tokens = 0;
    size_t at;

    if (!query_work(l->context, text.len / BYTES_PER_WORK + 16, l->err))
        return false;
    while (search_text_next(&reading, &word)) {
        tokens++;
        if (l->scores) {
            if (has(&l->text->entries, word, &at)) {
                counts.share[at] = counts.count[at] ? counts.share[at] / 2 : 1;
                counts.freq[at] += counts.share[at];
                counts.count[at]++;
            }
        } else {
            l->word = l->word || has(&l->text->words, word, &at);
            l->denied = l->denied || has(&l->text->denied, word, &at);
        }
    }
    if (l->scores)
        scores_add(l, &counts, text, weight, tokens);
    return query_work(l->context, tokens * (l->text->words.count + 1) / 8, l->err);
}

static bool phrases_look(struct looking *l, struct slice text)
{
    const struct mongo_text *of = l->text;
    struct slice form;

    if (!of->phrases.count && !of->denied_phrases.count)
        return true;
    if (!query_work(l->context, text.len, l->err) ||
        !query_alloc(l->context, text.len / 8 + 1, l->err)) /* what the form takes is seen to fit */
        return false;
    form = form_of(of, text, l->context->arena);
    for (size_t i = 0; i < of->phrases.count; i++)
        l->phrases[i] = l->phrases[i] || memmem(form.data, form.len, of->phrases.list[i].data,
                                                of->phrases.list[i].len);
    for (size_t i = 0; i < of->denied_phrases.count && !l->denied_phrase; i++)
        l->denied_phrase = memmem(form.data, form.len, of->denied_phrases.list[i].data,
                                  of->denied_phrases.list[i].len);
    return query_memory_check(l->context, 0, l->err);
}

static bool text_look(void *self, struct slice text, double weight, struct slice language)
{
    struct looking *l = self;

    return words_look(l, text, weight, language) && (l->scores || phrases_look(l, text));
}

bool mongo_text_holds(const struct mongo_text *text, struct slice document,
                      struct query_context *context, bool *ret_holds, struct error *err)
{
    struct looking l = {.text = text, .context = context, .err = err};
    bool all = true;

    if (!index_text_each(text->index, document, text_look, &l))
        return false;
    for (size_t i = 0; i < text->phrases.count; i++)
        all = all && l.phrases[i];
    *ret_holds = l.word && !l.denied && !l.denied_phrase && all;
    return true;
}

bool mongo_text_score(const struct mongo_text *text, struct slice document,
                      struct query_context *context, double *ret_score, struct error *err)
{
    struct looking l = {.text = text, .context = context, .err = err, .scores = true};

    if (!index_text_each(text->index, document, text_look, &l))
        return false;
    *ret_score = l.score;
    return true;
}

/* --- In plans -------------------------------------------------------------------------------- */

struct score_node {
    struct query_expression head;
    const struct mongo_text *text;
};

static bool score_evaluate(const struct query_expression *expression, struct query_context *context,
                           struct document_value *ret_value, struct error *err)
{
    const struct score_node *node = (const struct score_node *)expression;
    struct document_value document;
    double score;

    if (!query_evaluate(expression->children[0], context, &document, err))
        return false;
    *ret_value = document_undefined();
    if (document.type != DOCUMENT_OBJECT)
        return true;
    if (!mongo_text_score(node->text, document.document, context, &score, err))
        return false;
    *ret_value = document_double(score);
    return true;
}

static const struct query_kind score_kind = {"text score", score_evaluate, QUERY_STABLE};

const struct query_expression *mongo_text_score_expression(const struct mongo_text *text,
                                                           uint32_t slot, struct query_build *build)
{
    const struct query_expression *document = query_variable(build, slot);
    struct score_node *node = query_node(build, &score_kind, sizeof *node, &document, 1);

    node->text = text;
    return &node->head;
}

const struct query_implied *mongo_text_imply(const struct mongo_text *text,
                                             const struct query_implying *implying)
{
    static const struct document_segment nowhere = {.kind = DOCUMENT_SEGMENT_PROPERTY,
                                                    .name = SLICE("$text")};
    const struct query_operand operand = {.is_path = true,
                                          .path = {.segments = &nowhere, .count = 1}};
    const struct query_words words = {.language = text->language,
                                      .index = text->index->name,
                                      .terms = text->entries.list,
                                      .count = text->entries.count};

    if (!text->words.count)
        return query_implied_never(implying); /* nothing but what is denied finds nothing */
    return query_implied_words(implying, &operand, &words);
}
