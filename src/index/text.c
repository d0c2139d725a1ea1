/* Indexes of full text: an item has an entry for each term of the text at the path.
 *
 * The language is part of each entry, before the term, so that a container that changes the
 * language of a path has other entries, and none is taken for what it is not. A text with more
 * terms than TERMS_MAX has one entry, of no term: it may hold any, and every walk includes it. So
 * no text is too long to be written, and the filter, which is always evaluated, says what is in it.
 * What is no text has no entry, for no query that looks for words can mean it. */
#include "index/policy_private.h"

#include "document/bson.h"
#include "search/analyser.h"

#include <xxhash.h>

enum {
    TERMS_MAX = 4096,   /* of a text, each once */
    TERMS_TABLE = 8192, /* a power of two above them */
    BYTES_A_STEP = 4,   /* of text: stems take some hundred nanoseconds */
    PREFIX_ROOM = 2 + INDEX_PATH_MAX + INDEX_PATH_TAIL,
    TERM_ROOM = INDEX_TERM_SIZE + INDEX_KEY_SLACK,
};

/* --- The language of a path ------------------------------------------------------------------ */

static bool path_is(struct slice text, const struct document_path *path, struct arena *arena)
{
    struct document_path other;
    struct error ignored;

    if (!document_path_parse(text, DOCUMENT_PATH_KEY, arena, &other, &ignored) ||
        other.count != path->count)
        return false;
    for (size_t i = 0; i < path->count; i++)
        if (path->segments[i].kind != other.segments[i].kind ||
            !slice_equal(path->segments[i].name, other.segments[i].name))
            return false;
    return true;
}

struct slice index_text_language(struct slice policy, const struct document_path *path,
                                 struct arena *arena)
{
    struct slice language = SLICE("en-US");
    struct document_value value, text;
    struct document_iter iter;

    if (!policy.data)
        return language;
    if (document_find(policy, SLICE("defaultLanguage"), &value) && value.type == DOCUMENT_STRING)
        language = value.text;
    if (!path || !document_find(policy, SLICE("fullTextPaths"), &value) ||
        value.type != DOCUMENT_ARRAY)
        return language;
    document_iter_init(&iter, value.document);
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT &&
            document_find(iter.value.document, SLICE("path"), &text) &&
            text.type == DOCUMENT_STRING && path_is(text.text, path, arena) &&
            document_find(iter.value.document, SLICE("language"), &text) &&
            text.type == DOCUMENT_STRING)
            language = text.text;
    return language;
}

/* --- Entries --------------------------------------------------------------------------------- */

static void mark_append(struct buf *buf)
{
    buf_append_byte(buf, INDEX_MARK_ESCAPE);
    buf_append_byte(buf, INDEX_ESCAPE_TERMS);
}

struct slice index_text_prefix(const struct document_path *path, struct arena *arena)
{
    CLEANUP(buf_done) struct buf prefix;

    buf_init(&prefix, BUF_DEFAULT_MAX);
    mark_append(&prefix);
    index_path_append(path, &prefix);
    return arena_copy(arena, buf_slice(&prefix));
}

struct document_value index_term_value(struct slice language, struct slice term,
                                       uint8_t bytes[INDEX_TERM_SIZE])
{
    assert(language.len >= 2 && term.len <= SEARCH_TERM_MAX);
    memcpy(bytes, language.data, 2);
    bytes[2] = ' ';
    if (term.len)
        memcpy(bytes + 3, term.data, term.len);
    return document_string(slice_of(bytes, 3 + term.len));
}

static void term_put(struct index_walk *w, struct slice term)
{
    size_t begin = index_walk_begin(w, PREFIX_ROOM + TERM_ROOM);
    uint8_t bytes[INDEX_TERM_SIZE];
    struct document_value value = index_term_value(w->definition->language, term, bytes);

    mark_append(&w->out);
    index_path_write(&w->path, &w->out);
    document_key_append_cut(w->definition->order, &value, INDEX_VALUE_MAX, &w->out);
    index_walk_end(w, begin);
}

/* Terms of a text, each once. */
struct terms {
    struct slice *list;
    uint32_t *table; /* one more than the number of a term, by hash; 0: none */
    size_t count;
};

/* False: there are too many. */
static bool term_add(struct terms *terms, struct slice term, struct arena *arena)
{
    size_t at = XXH3_64bits(term.data, term.len) & (TERMS_TABLE - 1);

    for (; terms->table[at]; at = (at + 1) & (TERMS_TABLE - 1))
        if (slice_equal(terms->list[terms->table[at] - 1], term))
            return true;
    if (terms->count == TERMS_MAX)
        return false;
    terms->list[terms->count++] = arena_copy(arena, term);
    terms->table[at] = (uint32_t)terms->count;
    return true;
}

static void text_put(struct index_walk *w, struct slice text)
{
    CLEANUP(search_analyser_free) struct search_analyser *analyser = NULL;
    CLEANUP(arena_free) struct arena *arena = NULL;
    struct search_text words = {.rest = text};
    struct terms terms = {0};
    struct slice term;
    bool few = true;

    index_walk_work(w, 1 + text.len / BYTES_A_STEP);
    if (w->full)
        return;
    analyser = search_analyser_new(w->definition->language);
    if (!analyser)
        return; /* a language that no query is answered in */
    arena = arena_new();
    words.analyser = analyser;
    terms.list = ARENA_ARRAY(arena, struct slice, TERMS_MAX);
    terms.table = arena_alloc_zero(arena, TERMS_TABLE * sizeof *terms.table);
    while (few && search_text_next(&words, &term))
        few = term_add(&terms, term, arena);
    if (!few) {
        term_put(w, SLICE(""));
        return;
    }
    for (size_t i = 0; i < terms.count && !w->full; i++)
        term_put(w, terms.list[i]);
}

/* The text of an item at the path of the index. */
static bool text_find(const struct index_definition *definition, struct slice item,
                      struct slice *ret_text)
{
    const struct document_path *path = &definition->parts[0].path;
    struct document_value value = document_object(item);

    for (size_t i = 0; i < path->count; i++)
        if (value.type != DOCUMENT_OBJECT ||
            !document_find(value.document, path->segments[i].name, &value))
            return false;
    *ret_text = value.text;
    return value.type == DOCUMENT_STRING;
}

static bool text_entries(const struct index_definition *definition, struct slice item,
                         struct index_walk *w, struct error *err UNUSED)
{
    const struct document_path *path = &definition->parts[0].path;
    struct slice text;

    if (!text_find(definition, item, &text))
        return true;
    index_path_init(&w->path);
    for (size_t i = 0; i < path->count; i++)
        index_path_push_name(&w->path, path->segments[i].name);
    text_put(w, text);
    return true;
}

/* --- Sums ------------------------------------------------------------------------------------ */

/* Policies have no numbers for their definitions: path and language, hashed. */
struct slice index_text_sum_name(const struct index_definition *definition, struct arena *arena)
{
    struct slice bytes =
        arena_join(arena,
                   (struct slice[]){
                       index_text_prefix(&definition->parts[0].path, arena),
                       slice_first(definition->language, MIN(definition->language.len, (size_t)2))},
                   2);
    XXH128_canonical_t hash;

    XXH128_canonicalFromHash(&hash, XXH3_128bits(bytes.data, bytes.len));
    return arena_copy(arena, slice_of(hash.digest, sizeof hash.digest));
}

static bool text_sums(const struct index_definition *definition, struct slice item,
                      struct arena *arena, struct index_sum **ret_sums, size_t *ret_count,
                      struct error *err UNUSED)
{
    CLEANUP(search_analyser_free) struct search_analyser *analyser = NULL;
    struct search_text words;
    struct slice term;

    *ret_sums = ARENA_NEW(arena, struct index_sum);
    *ret_count = 0;
    if (!text_find(definition, item, &words.rest))
        return true;
    analyser = search_analyser_new(definition->language);
    if (!analyser)
        return true;
    words.analyser = analyser;
    **ret_sums = (struct index_sum){.name = index_text_sum_name(definition, arena),
                                    .amounts = {[INDEX_TEXT_TEXTS] = 1}};
    while (search_text_next(&words, &term))
        (*ret_sums)->amounts[INDEX_TEXT_WORDS]++;
    *ret_count = 1;
    return true;
}

static const struct index_state_functions text_state = {.sums = text_sums};

static bool text_check(const struct index_definition *definition, struct error *err)
{
    if (definition->unique != INDEX_UNIQUE_NOT)
        return error_set(err, ERROR_BAD_REQUEST, "a text index cannot be unique");
    if (definition->expire_after_s != INDEX_EXPIRES_NEVER)
        return error_set(err, ERROR_BAD_REQUEST, "items cannot expire by a text index");
    return true;
}

const struct index_kind index_kind_text = {
    .name = "text", .check = text_check, .entries = text_entries, .state = &text_state};

/* --- Of a policy ----------------------------------------------------------------------------- */

bool index_policy_has_texts(const struct index_policy *policy)
{
    return policy->text_count != 0;
}

const struct index_policy *index_policy_with_terms(const struct index_policy *policy,
                                                   struct slice full_text, struct arena *arena)
{
    const struct index_definition **texts;

    if (policy->none || !policy->text_count)
        return policy;
    texts = ARENA_ARRAY(arena, const struct index_definition *, policy->text_count);
    for (size_t i = 0; i < policy->text_count; i++) {
        struct index_definition *definition = ARENA_NEW(arena, struct index_definition);

        *definition = *policy->texts[i];
        definition->language =
            arena_copy(arena, index_text_language(full_text, &definition->parts[0].path, arena));
        texts[i] = definition;
    }
    return index_policy_with_own(policy, texts, policy->text_count, arena);
}

const struct index_definition *index_policy_text_at(const struct index_policy *policy,
                                                    const struct document_path *path)
{
    for (size_t i = 0; i < policy->definition_count; i++) {
        const struct index_definition *definition = policy->definitions[i];
        const struct document_path *of = definition->parts ? &definition->parts[0].path : NULL;
        size_t same = 0;

        if (definition->kind != &index_kind_text || definition->format != INDEX_FORMAT_POLICY ||
            of->count != path->count)
            continue;
        while (same < of->count && of->segments[same].kind == path->segments[same].kind &&
               slice_equal(of->segments[same].name, path->segments[same].name))
            same++;
        if (same == of->count)
            return definition;
    }
    return NULL;
}
