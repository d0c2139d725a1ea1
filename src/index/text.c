/* Indexes of full text: an item has an entry for each term of the text at the path.
 *
 * The language is part of each entry, before the term, so that a container that changes the
 * language of a path has other entries, and none is taken for what it is not. A text with more
 * terms than TERMS_MAX has one entry, of no term: it may hold any, and every walk includes it. So
 * no text is too long to be written, and the filter, which is always evaluated, says what is in it.
 * What is no text has no entry, for no query that looks for words can mean it.
 *
 * An entry of a policy says how often its text has the term and how many terms that has, so that
 * scores need no text. It is not part of the key, where it would stand before the items and so take
 * them out of the order that intersections and unions of several terms go by; a text that gets
 * longer has all its entries written again. */
#include "index/policy_private.h"

#include "document/bson.h"
#include "search/analyser.h"

#include <xxhash.h>

enum {
    TERMS_MAX = 4096,   /* of a text, each once */
    TERMS_TABLE = 8192, /* a power of two above them */
    SAID_MAX = 0xFFFFFF,
    BYTES_A_STEP = 4, /* of text: stems take some hundred nanoseconds */
    PREFIX_ROOM = 2 + INDEX_PATH_MAX + INDEX_PATH_TAIL,
    TERM_ROOM = INDEX_TERM_SIZE + INDEX_KEY_SLACK,
};

/* --- The language of a path ------------------------------------------------------------------ */

static bool path_is(struct slice text, const struct document_path *path, struct arena *arena)
{
    struct document_path other;
    struct error ignored;

    return document_path_parse(text, DOCUMENT_PATH_KEY, arena, &other, &ignored) &&
           other.count == path->count && index_path_begins(path, &other);
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

struct slice index_text_prefix(const struct document_path *path, struct arena *arena)
{
    return index_escape_prefix(INDEX_ESCAPE_TERMS, path, arena);
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

static void said_append(uint64_t number, struct buf *out)
{
    number = MIN(number, (uint64_t)SAID_MAX);
    buf_append_byte(out, (uint8_t)(number >> 16));
    buf_append_byte(out, (uint8_t)(number >> 8));
    buf_append_byte(out, (uint8_t)number);
}

void index_term_said(struct slice said, uint32_t *ret_often, uint32_t *ret_terms)
{
    const uint8_t *at = said.data;

    assert(said.len == INDEX_TERM_SAID);
    *ret_often = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
    *ret_terms = (uint32_t)at[3] << 16 | (uint32_t)at[4] << 8 | at[5];
}

/* A term that a text of so many has so often. */
static void term_put(struct index_walk *w, struct slice term, uint64_t often, uint64_t terms)
{
    size_t begin = index_walk_begin(w, PREFIX_ROOM + TERM_ROOM + INDEX_TERM_SAID);
    size_t count = w->count;
    uint8_t bytes[INDEX_TERM_SIZE];
    struct document_value value = document_string(term);

    if (w->definition->text) {
        buf_append_slice(&w->out, w->definition->prefix);
    } else {
        value = index_term_value(w->definition->language, term, bytes);
        index_escape_append(INDEX_ESCAPE_TERMS, &w->out);
        index_path_write(&w->path, &w->out);
    }
    document_key_append_cut(w->definition->order, &value, INDEX_VALUE_MAX, &w->out);
    index_walk_end(w, begin);
    if (w->definition->text || w->count == count)
        return;
    begin = w->out.len;
    said_append(often, &w->out);
    said_append(terms, &w->out);
    w->entries[count].said = slice_of(w->out.data + begin, INDEX_TERM_SAID);
}

/* Terms of a text, each once. */
struct terms {
    struct slice *list;
    uint32_t *often; /* how often the text has each */
    uint32_t *table; /* one more than the number of a term, by hash; 0: none */
    size_t count;
    uint64_t all; /* of the text, each as often as it is there */
};

/* False: there are too many. */
static bool term_add(struct terms *terms, struct slice term, struct arena *arena)
{
    size_t at = XXH3_64bits(term.data, term.len) & (TERMS_TABLE - 1);

    terms->all++;
    for (; terms->table[at]; at = (at + 1) & (TERMS_TABLE - 1))
        if (slice_equal(terms->list[terms->table[at] - 1], term)) {
            terms->often[terms->table[at] - 1]++;
            return true;
        }
    if (terms->count == TERMS_MAX)
        return false;
    terms->often[terms->count] = 1;
    terms->list[terms->count++] = arena_copy(arena, term);
    terms->table[at] = (uint32_t)terms->count;
    return true;
}

static void text_put(struct index_walk *w, struct slice text, struct slice language, unsigned flags)
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
    analyser = search_analyser_open(language, flags);
    if (!analyser)
        return; /* a language that no query is answered in */
    arena = arena_new();
    words.analyser = analyser;
    terms.list = ARENA_ARRAY(arena, struct slice, TERMS_MAX);
    terms.often = ARENA_ARRAY(arena, uint32_t, TERMS_MAX);
    terms.table = arena_alloc_zero(arena, TERMS_TABLE * sizeof *terms.table);
    while (few && search_text_next(&words, &term))
        few = term_add(&terms, term, arena);
    if (!few) {
        term_put(w, SLICE(""), 0, 0);
        return;
    }
    for (size_t i = 0; i < terms.count && !w->full; i++)
        term_put(w, terms.list[i], terms.often[i], terms.all);
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

/* --- Besides a policy ------------------------------------------------------------------------ */

struct each {
    const struct index_definition *definition;
    bool (*take)(void *self, struct slice text, double weight, struct slice language);
    void *self;
    struct slice *unknown; /* gets a language that is none; NULL: it counts as "none" */
};

static struct slice language_in(const struct each *each, struct slice object, struct slice language)
{
    struct document_value named;

    if (!document_find(object, each->definition->text->override, &named) ||
        named.type != DOCUMENT_STRING)
        return language;
    language = search_language_code(named.text);
    if (!language.data && each->unknown)
        *each->unknown = named.text;
    return language.data ? language : SLICE("none");
}

/* Paths go through arrays, as all of MongoDB's do. */
static bool path_each(const struct each *each, const struct document_value *value,
                      const struct document_path *path, size_t at, double weight,
                      struct slice language)
{
    struct document_value below;
    struct document_iter iter;

    if (value->type == DOCUMENT_ARRAY) {
        document_iter_init(&iter, value->document);
        while (document_iter_next(&iter))
            if (iter.value.type != DOCUMENT_ARRAY &&
                !path_each(each, &iter.value, path, at, weight, language))
                return false;
        return true;
    }
    if (at == path->count)
        return value->type != DOCUMENT_STRING ||
               each->take(each->self, value->text, weight, language);
    if (value->type != DOCUMENT_OBJECT)
        return true;
    language = language_in(each, value->document, language);
    return !document_find(value->document, path->segments[at].name, &below) ||
           path_each(each, &below, path, at + 1, weight, language);
}

/* The weight of what stands at these names, if a part says one. */
static double weight_at(const struct index_definition *definition, const struct slice *names,
                        size_t count)
{
    for (size_t i = 0; i < definition->part_count; i++) {
        const struct document_path *path = &definition->parts[i].path;
        size_t same = 0;

        while (path->count == count && same < count &&
               slice_equal(path->segments[same].name, names[same]))
            same++;
        if (path->count == count && same == count)
            return definition->text->weights[i];
    }
    return definition->text->all_weight;
}

static bool all_each(const struct each *each, const struct document_value *value,
                     struct slice *names, size_t depth, struct slice language)
{
    struct document_iter iter;
    bool object = value->type == DOCUMENT_OBJECT;

    if (value->type == DOCUMENT_STRING)
        return each->take(each->self, value->text, weight_at(each->definition, names, depth),
                          language);
    if (!object && value->type != DOCUMENT_ARRAY)
        return true;
    if (object)
        language = language_in(each, value->document, language);
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        if (object && depth < DOCUMENT_DEPTH_MAX)
            names[depth] = iter.key;
        if (object && slice_equal(iter.key, each->definition->text->override))
            continue;
        if (!all_each(each, &iter.value, names, MIN(depth + object, (size_t)DOCUMENT_DEPTH_MAX),
                      language))
            return false;
    }
    return true;
}

static bool texts_each(const struct each *each, struct slice item)
{
    const struct index_definition *definition = each->definition;
    const struct document_value root = document_object(item);
    struct slice names[DOCUMENT_DEPTH_MAX + 1];

    if (definition->text->all)
        return all_each(each, &root, names, 0, definition->text->language);
    for (size_t i = 0; i < definition->part_count; i++)
        if (!path_each(each, &root, &definition->parts[i].path, 0, definition->text->weights[i],
                       definition->text->language))
            return false;
    return true;
}

bool index_text_each(const struct index_definition *definition, struct slice item,
                     bool (*take)(void *self, struct slice text, double weight,
                                  struct slice language),
                     void *self)
{
    const struct each each = {definition, take, self, NULL};

    return texts_each(&each, item);
}

const struct index_definition *index_definition_copy(const struct index_definition *definition,
                                                     struct arena *arena)
{
    struct index_definition *copy = ARENA_NEW(arena, struct index_definition);
    struct index_part *parts = ARENA_ARRAY(arena, struct index_part, definition->part_count + 1);
    struct index_text *text = ARENA_NEW(arena, struct index_text);
    double *weights = ARENA_ARRAY(arena, double, definition->part_count + 1);

    for (size_t i = 0; i < definition->part_count; i++) {
        const struct document_path *path = &definition->parts[i].path;
        struct document_segment *segments =
            ARENA_ARRAY(arena, struct document_segment, path->count + 1);

        for (size_t s = 0; s < path->count; s++)
            segments[s] = (struct document_segment){
                .kind = path->segments[s].kind, .name = arena_copy(arena, path->segments[s].name)};
        parts[i] = (struct index_part){.path = {.segments = segments, .count = path->count}};
        weights[i] = definition->text->weights[i];
    }
    *text = *definition->text;
    text->language = arena_copy(arena, text->language);
    text->override = arena_copy(arena, text->override);
    text->weights = weights;
    *copy = (struct index_definition){.name = arena_copy(arena, definition->name),
                                      .format = definition->format,
                                      .number = definition->number,
                                      .kind = definition->kind,
                                      .parts = parts,
                                      .part_count = definition->part_count,
                                      .order = definition->order,
                                      .text = text};
    return copy;
}

static bool beside_take(void *self, struct slice text, double weight UNUSED, struct slice language)
{
    struct index_walk *w = self;

    text_put(w, text, language, SEARCH_DROP_MARKS);
    return !w->full;
}

static bool text_entries(const struct index_definition *definition, struct slice item,
                         struct index_walk *w, struct error *err)
{
    const struct document_path *path;
    struct slice text, unknown = SLICE_NONE;

    if (definition->text) {
        const struct each each = {definition, beside_take, w, &unknown};

        (void)texts_each(&each, item);
        return !unknown.data ||
               error_set(err, ERROR_BAD_REQUEST, "language override unsupported: %.*s",
                         (int)MIN(unknown.len, (size_t)60), (const char *)unknown.data);
    }
    path = &definition->parts[0].path;

    if (!text_find(definition, item, &text))
        return true;
    index_path_init(&w->path);
    for (size_t i = 0; i < path->count; i++)
        index_path_push_name(&w->path, path->segments[i].name);
    text_put(w, text, definition->language, 0);
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
    if (definition->text || !text_find(definition, item, &words.rest))
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
    return index_policy_insert(policy, texts, policy->text_count, arena);
}

const struct index_definition *index_policy_text_at(const struct index_policy *policy,
                                                    const struct document_path *path)
{
    for (size_t i = 0; i < policy->definition_count; i++) {
        const struct index_definition *definition = policy->definitions[i];

        if (definition->kind == &index_kind_text && definition->format == INDEX_FORMAT_POLICY &&
            definition->parts[0].path.count == path->count &&
            index_path_begins(path, &definition->parts[0].path))
            return definition;
    }
    return NULL;
}
