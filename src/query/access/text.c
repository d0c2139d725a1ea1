/* Full-text indexes: what a filter says of the words of a text becomes terms to look up, and so
 * does an order by their score.
 *
 * The entries of all terms of a filter are walked together (run/postings.h): what they have in
 * common, or what any of them has. Entries do not know what is next to what: where phrases are
 * single words they tell all, otherwise the filter is evaluated; and so it is for texts with more
 * terms than an index has of one, which are in every walk. Indexes besides a policy have entries of
 * several texts of an item in many languages: any of the words leads to it, at the first of its
 * entries (query_entry_is_first), and the filter is evaluated. */
#include "query/access/access_private.h"

#include "index/policy.h"
#include "query/expression/imply.h"
#include "query/function/function.h"
#include "search/analyser.h"
#include "search/score.h"

enum {
    OFFERED_MAX = 4,   /* parts of a filter that are offered */
    SCORED_MAX = 2000, /* rows of an order by score that are had from entries */
};

const struct index_definition *query_text_at(const struct item_space *space,
                                             const struct document_path *path)
{
    const struct index_definition *definition =
        index_policy_text_at(space->definition->policy, path);

    for (size_t i = 0; definition && i < space->policies_before_count; i++) {
        const struct index_definition *before =
            index_policy_text_at(space->policies_before[i], path);

        if (!before || !index_definition_same(before, definition))
            return NULL;
    }
    return definition;
}

/* One besides the policy, by its name. */
static const struct index_definition *text_named(const struct item_space *space, struct slice name)
{
    size_t count;
    const struct index_definition *const *list =
        index_policy_besides(space->definition->policy, &count);

    for (size_t i = 0; i < count; i++)
        if (list[i]->text && slice_equal(list[i]->name, name))
            return list[i]->state == INDEX_READY && !list[i]->hidden &&
                           query_definition_is_whole(space, list[i])
                       ? list[i]
                       : NULL;
    return NULL;
}

static struct cursor_range term_range(const struct index_definition *definition,
                                      struct slice language, struct slice term, struct arena *arena)
{
    uint8_t bytes[INDEX_TERM_SIZE];
    struct document_value value =
        definition->text ? document_string(term) : index_term_value(language, term, bytes);
    bool exact;

    return query_ranges_point(definition->order, &value, &exact, arena).list[0];
}

/* --- What a filter says ---------------------------------------------------------------------- */

/* Terms that are looked for together in the texts at one path. */
struct sought {
    const struct index_definition *definition;
    struct document_path path;
    struct slice language;
    struct slice *terms;
    size_t count;
    uint64_t *groups;
    size_t group_count;
    uint64_t conjuncts;
    bool exact;
};

static struct query_index_use use_of(const struct sought *sought, struct arena *arena)
{
    const struct index_definition *definition = sought->definition;
    struct query_terms *terms = ARENA_NEW(arena, struct query_terms);
    struct cursor_range *list = ARENA_ARRAY(arena, struct cursor_range, sought->count + 1);
    struct query_index_use use = {.value_count = 1,
                                  .order = definition->order,
                                  .conjuncts = sought->conjuncts,
                                  .exact = sought->exact,
                                  .definition = definition};

    for (size_t i = 0; i < sought->count; i++)
        list[i] = term_range(definition, sought->language, sought->terms[i], arena);
    list[sought->count] = term_range(definition, sought->language, SLICE(""), arena);
    use.ranges = query_ranges_union(list, sought->count + 1, arena);
    if (definition->text) {
        use.prefix = definition->prefix;
        use.name = arena_join(arena, (struct slice[]){SLICE("terms of "), definition->name}, 2);
        use.repeats = true; /* of several texts, and words, of an item */
        return use;
    }
    *terms = (struct query_terms){
        .ranges = list,
        .count = sought->count,
        .groups = sought->groups,
        .group_count = sought->group_count,
    };
    use.terms = terms;
    use.prefix = index_text_prefix(&sought->path, arena);
    use.name = arena_join(
        arena, (struct slice[]){SLICE("terms of "), query_path_name(&sought->path, arena)}, 2);
    return use;
}

static const struct index_definition *definition_for(const struct item_space *space,
                                                     const struct query_condition *part)
{
    const struct index_definition *definition = part->words->index.data
                                                    ? text_named(space, part->words->index)
                                                    : query_text_at(space, &part->path);

    return definition && (definition->text || slice_equal(slice_first(definition->language, 2),
                                                          slice_first(part->words->language, 2)))
               ? definition
               : NULL;
}

static void sought_begin(struct sought *sought, const struct query_condition *part,
                         const struct index_definition *definition, struct arena *arena)
{
    const struct query_words *words = part->words;

    *sought = (struct sought){
        .definition = definition,
        .path = part->path,
        .language = words->language,
        .terms = ARENA_ARRAY(arena, struct slice, MAX(words->count, (size_t)QUERY_TERMS_MAX)),
        .count = words->count,
        .groups = ARENA_ARRAY(arena, uint64_t, words->group_count + 1),
        .group_count = words->group_count,
        .conjuncts = part->conjuncts,
        .exact = part->exact};
    memcpy(sought->terms, words->terms, words->count * sizeof *words->terms);
    if (words->group_count)
        memcpy(sought->groups, words->groups, words->group_count * sizeof *words->groups);
}

/* Two parts that each want all of some terms want all of both. False: there is no room for them. */
static bool sought_join(struct sought *sought, const struct query_condition *part)
{
    const struct query_words *words = part->words;
    struct sought joined = *sought;
    uint64_t group = joined.groups[0];

    for (size_t i = 0; i < words->count; i++) {
        size_t at = 0;

        if (!(words->groups[0] >> i & 1))
            continue;
        while (at < joined.count && !slice_equal(joined.terms[at], words->terms[i]))
            at++;
        if (at == QUERY_TERMS_MAX)
            return false;
        if (at == joined.count)
            joined.terms[joined.count++] = words->terms[i];
        group |= (uint64_t)1 << at;
    }
    joined.groups[0] = group;
    joined.exact &= part->exact;
    joined.conjuncts |= part->conjuncts;
    *sought = joined;
    return true;
}

static bool joins(const struct sought *sought, const struct query_condition *part,
                  const struct index_definition *definition)
{
    return sought->definition == definition && sought->group_count == 1 &&
           part->words->group_count == 1 && slice_equal(sought->language, part->words->language);
}

void query_text_uses_find(const struct item_space *space, struct query_filter *filter,
                          struct query_index_uses *uses)
{
    const struct query_conditions *conditions = query_filter_in(filter, query_paths_order(space));
    struct sought list[OFFERED_MAX];
    size_t offered = 0;

    for (size_t i = 0; i < conditions->part_count; i++) {
        const struct query_condition *part = &conditions->parts[i];
        const struct index_definition *definition =
            part->words ? definition_for(space, part) : NULL;
        bool joined = false;

        for (size_t j = 0; definition && j < offered && !joined; j++)
            joined = joins(&list[j], part, definition) && sought_join(&list[j], part);
        if (definition && !joined && offered < OFFERED_MAX)
            sought_begin(&list[offered++], part, definition, filter->arena);
    }
    for (size_t i = 0; i < offered; i++)
        *query_index_use_add(uses, filter->arena) = use_of(&list[i], filter->arena);
}

const struct query_index_use *query_words_use(const struct query_plan *plan,
                                              const struct item_space *space,
                                              const struct query_expression *expression,
                                              struct arena *arena)
{
    struct query_implying implying = {.ways = QUERY_WAYS_PATHS,
                                      .order = plan->order,
                                      .entries = query_paths_order(space),
                                      .query = &plan->query,
                                      .arena = arena};
    const struct query_implied *implied = query_imply(&implying, expression, true);
    const struct index_definition *definition;
    struct query_index_use *use;
    struct sought sought;

    if (!implied || implied->kind != QUERY_IMPLIED_CONDITION || !implied->condition.words ||
        implied->condition.words->index.data || space->definition->default_ttl)
        return NULL;
    definition = definition_for(space, &implied->condition);
    if (!definition)
        return NULL;
    sought_begin(&sought, &implied->condition, definition, arena);
    use = ARENA_NEW(arena, struct query_index_use);
    *use = use_of(&sought, arena);
    return use;
}

/* --- What an order says ---------------------------------------------------------------------- */

/* The constant that an argument is; undefined: it is none. */
static struct document_value argument(const struct query_expression *call,
                                      enum query_score_argument which)
{
    const struct query_expression *expression = call->children[which];

    return query_is_constant(expression) ? *query_constant_value(expression) : document_undefined();
}

static const struct query_expression *order_score(const struct query_plan *plan)
{
    const struct query_order *order = plan->query.order_count == 1 ? plan->query.order : NULL;

    return order && order->descending && order->expression->kind == &query_kind_call &&
                   ((const struct query_call *)order->expression)->function->text ==
                       QUERY_TEXT_SCORE
               ? order->expression
               : NULL;
}

/* What the arguments say of all texts. False: that is not known now, or no text has a score. */
static bool corpus_read(const struct query_expression *call, struct query_scoring *scoring)
{
    struct document_value language = argument(call, QUERY_SCORE_LANGUAGE),
                          phrases = argument(call, QUERY_SCORE_PHRASES),
                          texts = argument(call, QUERY_SCORE_TEXTS),
                          words = argument(call, QUERY_SCORE_WORDS),
                          hits = argument(call, QUERY_SCORE_HITS);

    if (language.type != DOCUMENT_STRING || phrases.type != DOCUMENT_ARRAY ||
        hits.type != DOCUMENT_ARRAY || !document_to_double(&texts, &scoring->texts) ||
        !document_to_double(&words, &scoring->words) || !(scoring->texts > 0) ||
        !(scoring->words > 0))
        return false;
    scoring->language = language.text;
    scoring->phrases = phrases.document;
    scoring->hits = hits.document;
    return true;
}

/* Each phrase as the one term that it is, with its weight. False: one has several, or none. */
static bool phrases_read(struct query_scoring *scoring, struct sought *sought, struct arena *arena)
{
    CLEANUP(search_analyser_free)
    struct search_analyser *analyser = search_analyser_new(scoring->language);
    struct document_iter phrases, hits;
    double often;

    document_iter_init(&phrases, scoring->phrases);
    document_iter_init(&hits, scoring->hits);
    while (analyser && document_iter_next(&phrases)) {
        struct search_text text = {analyser, phrases.value.text};
        struct slice term, copy;
        size_t at = 0;

        if (scoring->phrase_count == QUERY_TERMS_MAX || phrases.value.type != DOCUMENT_STRING ||
            !document_iter_next(&hits) || !document_to_double(&hits.value, &often) ||
            !search_text_next(&text, &term))
            return false;
        copy = arena_copy(arena, term);
        if (search_text_next(&text, &term))
            return false;
        while (at < sought->count && !slice_equal(sought->terms[at], copy))
            at++;
        if (at == sought->count) {
            sought->groups[sought->group_count++] = (uint64_t)1 << at;
            sought->terms[sought->count++] = copy;
        }
        scoring->terms[scoring->phrase_count] = (uint8_t)at;
        scoring->weights[scoring->phrase_count++] = search_score_weight(scoring->texts, often);
    }
    return scoring->phrase_count > 0;
}

/* Does the filter ask an index for any of the same terms, and so leave no item that has none? */
static bool asks_the_same(const struct query_index_use *asked, const struct query_index_use *use)
{
    if (!asked->terms || asked->terms->count != use->terms->count ||
        asked->terms->group_count != use->terms->group_count ||
        !slice_equal(asked->prefix, use->prefix))
        return false;
    for (size_t i = 0; i < use->terms->count; i++)
        if (asked->terms->groups[i] != use->terms->groups[i] ||
            !slice_equal(asked->terms->ranges[i].min, use->terms->ranges[i].min))
            return false;
    return true;
}

const struct query_index_use *query_scores_use(const struct query_plan *plan,
                                               const struct item_space *space,
                                               const struct query_access *access,
                                               struct arena *arena)
{
    const struct query_expression *call = order_score(plan);
    struct query_scoring *scoring;
    struct query_index_use *use;
    struct query_terms *terms;
    struct sought sought = {0};
    uint64_t rows =
        plan->query.limit > SCORED_MAX ? UINT64_MAX : plan->query.limit + plan->query.offset;
    bool scans = access->kind == QUERY_ACCESS_SCAN, elements;

    if (!call || plan->query.distinct || plan->query.source_count || rows > SCORED_MAX || !rows ||
        access->target_count != 1 || access->with_count || space->definition->default_ttl ||
        !(scans || (access->kind == QUERY_ACCESS_INDEX && access->index->terms)))
        return NULL;
    scoring = ARENA_NEW(arena, struct query_scoring);
    if (!corpus_read(call, scoring) ||
        !query_path_find(plan, call->children[QUERY_SCORE_TEXT], arena, &scoring->path,
                         &elements) ||
        elements)
        return NULL;
    sought.definition = query_text_at(space, &scoring->path);
    if (!sought.definition || !slice_equal(slice_first(sought.definition->language, 2),
                                           slice_first(scoring->language, 2)))
        return NULL;
    sought.path = scoring->path;
    sought.language = scoring->language;
    sought.terms = ARENA_ARRAY(arena, struct slice, QUERY_TERMS_MAX);
    sought.groups = ARENA_ARRAY(arena, uint64_t, QUERY_TERMS_MAX);
    if (!phrases_read(scoring, &sought, arena))
        return NULL;
    use = ARENA_NEW(arena, struct query_index_use);
    *use = use_of(&sought, arena);
    if (!scans && !asks_the_same(access->index, use))
        return NULL;
    terms = ARENA_NEW(arena, struct query_terms);
    *terms = *use->terms;
    terms->scoring = scoring;
    use->terms = terms;
    scoring->wanted = rows;
    scoring->filtered = plan->query.filter && !access->exact;
    scoring->whole = scans;
    return use;
}
