/* Full-text indexes: what a filter says of the words of a text becomes terms to look up.
 *
 * Of terms that must all be there any one leads to all items: each is offered, and the one with the
 * fewest entries is walked. Where one of several is enough they are walked together, and an item
 * with more than one of them is taken at the first (query_entry_is_first). Texts with more terms
 * than an index has of one are in every walk. Entries do not know what is next to what: the filter
 * is always evaluated. */
#include "query/access/access_private.h"

#include "index/policy.h"

enum { OFFERED_MAX = 4 }; /* terms of a filter that are counted */

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

static void terms_offer(const struct query_condition *part,
                        const struct index_definition *definition, const struct slice *terms,
                        size_t count, struct arena *arena, struct query_index_uses *uses)
{
    struct cursor_range *list = ARENA_ARRAY(arena, struct cursor_range, count + 1);
    struct query_index_use *use = query_index_use_add(uses, arena);

    for (size_t i = 0; i < count; i++)
        list[i] = term_range(definition, part->words->language, terms[i], arena);
    list[count] = term_range(definition, part->words->language, SLICE(""), arena);
    use->prefix = definition->text ? definition->prefix : index_text_prefix(&part->path, arena);
    use->order = definition->order;
    use->ranges = query_ranges_union(list, count + 1, arena);
    use->conjuncts = part->conjuncts;
    use->name = arena_join(
        arena,
        (struct slice[]){SLICE("terms of "),
                         definition->text ? definition->name : query_path_name(&part->path, arena)},
        2);
    use->definition = definition;
    use->repeats = count > 1 || definition->text; /* of several texts of an item */
}

void query_text_uses_find(const struct item_space *space, struct query_filter *filter,
                          struct query_index_uses *uses)
{
    const struct query_conditions *conditions = query_filter_in(filter, query_paths_order(space));
    size_t offered = 0;

    for (size_t i = 0; i < conditions->part_count && offered < OFFERED_MAX; i++) {
        const struct query_condition *part = &conditions->parts[i];
        const struct index_definition *definition;

        if (!part->words)
            continue;
        definition = part->words->index.data ? text_named(space, part->words->index)
                                             : query_text_at(space, &part->path);
        if (!definition ||
            (!definition->text && !slice_equal(slice_first(definition->language, 2),
                                               slice_first(part->words->language, 2))))
            continue;
        if (!part->words->all) {
            terms_offer(part, definition, part->words->terms, part->words->count, filter->arena,
                        uses);
            offered++;
        }
        for (size_t t = 0; part->words->all && t < part->words->count && offered < OFFERED_MAX;
             t++, offered++)
            terms_offer(part, definition, &part->words->terms[t], 1, filter->arena, uses);
    }
}
