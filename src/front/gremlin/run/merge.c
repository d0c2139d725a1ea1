/* mergeV and mergeE: what a map describes is found, or made. The map searches by every entry;
 * option(onCreate) adds to what is made, option(onMatch) changes what is found, and for edges
 * option(outV) and option(inV) say which vertices Merge.outV and Merge.inV stand for. */
#include "front/gremlin/run/write_private.h"

/* A map that is given, or computed for each traverser. */
struct source_map {
    bool given;
    struct gremlin_value map; /* a map; null: an empty one */
    struct gremlin_part *part;
    enum gremlin_enum_word cardinality; /* of its values; 0: not said */
};

struct merge {
    struct gremlin_step step;
    bool edges;
    bool first;                                       /* it begins the traversal */
    struct source_map search, create, match, ends[2]; /* out, in */
};

static const enum gremlin_enum_word directions[] = {GREMLIN_DIRECTION_OUT, GREMLIN_DIRECTION_IN};
static const enum gremlin_enum_word end_words[] = {GREMLIN_MERGE_OUT_V, GREMLIN_MERGE_IN_V};
static const char *const end_texts[] = {"Out", "In"};

/* --- Maps ------------------------------------------------------------------------------------ */

/* The map for a traverser; an empty one for null. One reference. */
static bool map_get(struct gremlin_run *run, const struct merge *merge,
                    const struct source_map *source, const struct gremlin_walker *traverser,
                    struct gremlin_value *ret_map, struct error *err)
{
    struct gremlin_value map = gremlin_value_ref(source->map);
    bool found = true;

    if (source->part && !gremlin_part_value(run, source->part, traverser, &map, &found, err))
        return false;
    if (!found || gremlin_is_null(map)) {
        *ret_map = gremlin_map_new(run->heap);
        return true;
    }
    if (map.type != GREMLIN_MAP) {
        FAIL(err, "%s() takes maps: a %s cannot be cast to Map", merge->edges ? "mergeE" : "mergeV",
             gremlin_type_name(map.type));
        gremlin_value_unref(map);
        return false;
    }
    *ret_map = map;
    return true;
}

static enum gremlin_enum_word key_word(struct gremlin_value key)
{
    return key.type == GREMLIN_ENUM ? gremlin_word_canonical(key.word.word) : GREMLIN_WORD_COUNT;
}

static const struct gremlin_value *map_word(struct gremlin_value map, enum gremlin_enum_word word)
{
    const struct gremlin_table *table = gremlin_table(map);

    for (size_t i = 0; i < table->count; i++)
        if (key_word(table->rows[i].key) == word)
            return &table->rows[i].value;
    return NULL;
}

static bool key_check(const struct merge *merge, struct gremlin_value key, bool match,
                      struct error *err)
{
    const char *name = merge->edges ? "mergeE" : "mergeV";
    enum gremlin_enum_word word = key_word(key);

    if (gremlin_is_string(key)) {
        struct slice text = gremlin_bytes(key);

        if (!text.len)
            return FAIL(err, "Property key can not be the empty string");
        if (text.data[0] == '~')
            return FAIL(err, "Property key can not be a hidden key: %.*s", SLICE_ARG(text));
        return true;
    }
    if (match)
        return FAIL(err, "option(onMatch) expects keys in Map to be of String - check: %s",
                    gremlin_type_name(key.type));
    if (word == GREMLIN_T_ID || word == GREMLIN_T_LABEL ||
        (merge->edges && (word == GREMLIN_DIRECTION_OUT || word == GREMLIN_DIRECTION_IN)))
        return true;
    return FAIL(err, "%s() and option(onCreate) args expect keys in Map to be either String or %s",
                name, merge->edges ? "T or Direction" : "T");
}

static bool map_check(const struct merge *merge, struct gremlin_value map, bool match,
                      struct error *err)
{
    const struct gremlin_table *table = gremlin_table(map);

    for (size_t i = 0; i < table->count; i++)
        if (!key_check(merge, table->rows[i].key, match, err))
            return false;
    return true;
}

/* --- Searching ------------------------------------------------------------------------------- */

static struct gremlin_value plain_value(struct gremlin_value value)
{
    return value.type == GREMLIN_CARDINAL ? gremlin_cardinal(value)->value : value;
}

static bool id_matches(struct gremlin_run *run, struct gremlin_value id,
                       struct gremlin_value element)
{
    struct gremlin_value text;
    bool same;

    if (!gremlin_id_text(run->heap, &id, &text))
        return false;
    same = gremlin_equal(text, gremlin_element(element)->id);
    gremlin_value_unref(text);
    return same;
}

/* Does a stored element satisfy every entry? Ends of edges were looked at before. */
static bool element_matches(struct gremlin_run *run, struct gremlin_value element,
                            struct gremlin_value map, bool *ret_yes, struct error *err)
{
    const struct gremlin_table *table = gremlin_table(map);

    *ret_yes = true;
    for (size_t i = 0; i < table->count && *ret_yes; i++) {
        struct gremlin_value key = table->rows[i].key, wanted = plain_value(table->rows[i].value);
        struct gremlin_value list;
        struct slice name;

        if (key_word(key) == GREMLIN_T_ID) {
            *ret_yes = id_matches(run, wanted, element);
        } else if (key_word(key) == GREMLIN_T_LABEL) {
            *ret_yes = gremlin_equal(wanted, gremlin_element(element)->label);
        } else if (gremlin_is_string(key)) {
            name = gremlin_bytes(key);
            if (!gremlin_element_list(run, element, &name, 1, true, &list, err))
                return false;
            *ret_yes = false;
            for (size_t j = 0; j < gremlin_list(list)->count && !*ret_yes; j++)
                *ret_yes = gremlin_equal(wanted, gremlin_list(list)->items[j]);
            gremlin_value_unref(list);
        }
    }
    return true;
}

struct condition_list {
    struct gremlin_condition items[32];
    size_t count;
};

static void conditions_of(struct gremlin_value map, struct condition_list *conditions)
{
    const struct gremlin_table *table = gremlin_table(map);

    for (size_t i = 0; i < table->count && conditions->count < 32; i++) {
        struct gremlin_value key = table->rows[i].key;
        struct gremlin_condition condition = {.operand = plain_value(table->rows[i].value)};

        if (key_word(key) == GREMLIN_T_LABEL) {
            condition.kind = GREMLIN_CONDITION_LABEL;
        } else if (gremlin_is_string(key)) {
            condition.kind = GREMLIN_CONDITION_PROPERTY;
            condition.key = gremlin_bytes(key);
        } else {
            continue;
        }
        if (gremlin_condition_is_stored(&condition))
            conditions->items[conditions->count++] = condition;
    }
}

static bool end_matches(struct gremlin_value vertex, const struct gremlin_end *end)
{
    return gremlin_is_null(vertex) || gremlin_equal(gremlin_element(vertex)->id, end->id);
}

static bool found_gather(struct gremlin_run *run, struct gremlin_found *found,
                         struct gremlin_value map, const struct gremlin_value ends[2],
                         struct gremlin_value list, struct error *err)
{
    struct gremlin_page page;

    do {
        if (!gremlin_found_next(found, 0, &page, err))
            return false;
        for (size_t i = 0; i < page.count; i++) {
            bool yes;

            if (!query_work(&run->context, 1, err) ||
                !element_matches(run, page.elements[i], map, &yes, err))
                return false;
            if (yes && page.elements[i].type == GREMLIN_EDGE)
                yes = end_matches(ends[0], &gremlin_edge(page.elements[i])->out) &&
                      end_matches(ends[1], &gremlin_edge(page.elements[i])->in);
            if (yes)
                gremlin_list_add(list, page.elements[i]);
        }
    } while (page.count);
    return true;
}

/* Elements that a map describes, appended. ends: vertices of an edge; null: any. */
static bool search_all(struct gremlin_run *run, enum gremlin_element_kind kind,
                       struct gremlin_value map, const struct gremlin_value ends[2],
                       struct gremlin_value list, struct error *err)
{
    struct condition_list conditions = {0};
    const struct gremlin_value *id = map_word(map, GREMLIN_T_ID);
    struct gremlin_reference reference;
    struct gremlin_found *found = NULL;
    bool good;

    conditions_of(map, &conditions);
    if (id && !gremlin_reference_of(run->graph, id, &reference))
        return true;
    if (kind == GREMLIN_ELEMENT_EDGE && !id &&
        (!gremlin_is_null(ends[0]) || !gremlin_is_null(ends[1]))) {
        bool out = !gremlin_is_null(ends[0]);
        struct gremlin_expansion expansion = {
            .vertices = out ? &ends[0] : &ends[1],
            .vertex_count = 1,
            .reach = out ? GREMLIN_REACH_OUT : GREMLIN_REACH_IN,
            .want = GREMLIN_WANT_EDGES,
            .edge_conditions = conditions.items,
            .edge_condition_count = conditions.count,
        };

        good = gremlin_graph_expand(run->graph, &expansion, &found, err);
    } else {
        struct gremlin_search search = {.kind = kind,
                                        .references = id ? &reference : NULL,
                                        .reference_count = id ? 1 : 0,
                                        .conditions = conditions.items,
                                        .condition_count = conditions.count};

        good = gremlin_graph_search(run->graph, &search, &found, err);
    }
    good = good && found_gather(run, found, map, ends, list, err);
    gremlin_found_free(found);
    return good;
}

/* --- Making ---------------------------------------------------------------------------------- */

static bool map_assign(struct gremlin_run *run, struct gremlin_value map,
                       enum gremlin_enum_word cardinality, struct gremlin_resolved *resolved)
{
    const struct gremlin_table *table = gremlin_table(map);

    for (size_t i = 0; i < table->count; i++) {
        struct gremlin_value key = table->rows[i].key, value = table->rows[i].value;

        if (key_word(key) == GREMLIN_T_ID)
            gremlin_value_replace_take(&resolved->id, gremlin_value_ref(value));
        else if (key_word(key) == GREMLIN_T_LABEL)
            gremlin_value_replace_take(&resolved->label, gremlin_value_ref(value));
        else if (gremlin_is_string(key))
            gremlin_assignment_add(
                run, resolved,
                value.type == GREMLIN_CARDINAL ? gremlin_cardinal(value)->cardinality : cardinality,
                gremlin_bytes(key), plain_value(value));
    }
    return true;
}

/* Search and onCreate as one map: what is to be made. */
static bool create_map(struct gremlin_run *run, const struct merge *merge,
                       struct gremlin_value search, const struct gremlin_walker *traverser,
                       struct gremlin_value *ret_map, struct error *err)
{
    struct gremlin_value create, map = gremlin_map_new(run->heap);
    const struct gremlin_table *table = gremlin_table(search);

    for (size_t i = 0; i < table->count; i++)
        gremlin_map_put(map, table->rows[i].key, table->rows[i].value);
    *ret_map = map;
    if (!merge->create.given)
        return true;
    if (!map_get(run, merge, &merge->create, traverser, &create, err) ||
        !map_check(merge, create, false, err))
        return false;
    table = gremlin_table(create);
    for (size_t i = 0; i < table->count; i++) {
        struct gremlin_value key = table->rows[i].key;
        const struct gremlin_value *before =
            key.type == GREMLIN_ENUM ? map_word(map, key_word(key)) : NULL;

        if (before && !gremlin_equal(*before, table->rows[i].value) &&
            !(gremlin_is_element(*before) &&
              gremlin_equal(gremlin_element(*before)->id, table->rows[i].value))) {
            FAIL(err, "option(onCreate) cannot override values from merge() argument: (%s, %s)",
                 gremlin_value_shown(run, key), gremlin_value_shown(run, table->rows[i].value));
            gremlin_value_unref(create);
            return false;
        }
        if (!before)
            gremlin_map_put_take(map, key,
                                 gremlin_is_string(key) && merge->create.cardinality &&
                                         table->rows[i].value.type != GREMLIN_CARDINAL
                                     ? gremlin_cardinal_new(run->heap, merge->create.cardinality,
                                                            table->rows[i].value)
                                     : gremlin_value_ref(table->rows[i].value));
    }
    gremlin_value_unref(create);
    return true;
}

static struct slice label_of(const struct gremlin_resolved *resolved)
{
    return gremlin_is_string(resolved->label) ? gremlin_bytes(resolved->label) : SLICE("");
}

static bool vertex_make(struct gremlin_run *run, struct gremlin_value map,
                        enum gremlin_enum_word cardinality, struct gremlin_value *ret_vertex,
                        struct error *err)
{
    struct gremlin_resolved resolved = {0};
    struct gremlin_new_vertex made;
    bool good;

    map_assign(run, map, cardinality, &resolved);
    gremlin_strategy_write(run, &resolved);
    made = (struct gremlin_new_vertex){.label = label_of(&resolved),
                                       .id = resolved.id,
                                       .properties = resolved.items,
                                       .property_count = resolved.count};
    good = gremlin_graph_add_vertex(run->graph, &made, ret_vertex, err);
    gremlin_resolved_release(run, &resolved);
    return good;
}

static bool end_must(struct gremlin_run *run, struct gremlin_value map, size_t which,
                     struct gremlin_value known, struct gremlin_value *ret_vertex,
                     struct error *err)
{
    const struct gremlin_value *given = map_word(map, directions[which]);
    bool found;

    if (!gremlin_is_null(known)) {
        *ret_vertex = gremlin_value_ref(known);
        return true;
    }
    if (!given || gremlin_is_null(*given))
        return FAIL(err, "%s Vertex not specified - edge cannot be created", end_texts[which]);
    if (!gremlin_vertex_resolve(run, *given, ret_vertex, &found, err))
        return false;
    if (!found)
        return FAIL(err, "Vertex id could not be resolved from mergeE: %s",
                    gremlin_value_shown(run, *given));
    return true;
}

static bool edge_make(struct gremlin_run *run, struct gremlin_value map,
                      const struct gremlin_value ends[2], struct gremlin_value *ret_edge,
                      struct error *err)
{
    struct gremlin_value from = GREMLIN_NOTHING, to = GREMLIN_NOTHING;
    struct gremlin_resolved resolved = {0};
    bool good =
        end_must(run, map, 0, ends[0], &from, err) && end_must(run, map, 1, ends[1], &to, err);

    if (good) {
        struct gremlin_new_edge made;

        map_assign(run, map, 0, &resolved);
        gremlin_strategy_write(run, &resolved);
        made = (struct gremlin_new_edge){
            .label = gremlin_is_string(resolved.label) ? label_of(&resolved) : SLICE("edge"),
            .id = resolved.id,
            .from = from,
            .to = to,
            .properties = resolved.items,
            .property_count = resolved.count};
        good = gremlin_graph_add_edge(run->graph, &made, ret_edge, err);
        gremlin_resolved_release(run, &resolved);
    }
    gremlin_value_unref(from);
    gremlin_value_unref(to);
    return good;
}

/* --- Matching -------------------------------------------------------------------------------- */

/* onMatch of a merge that begins the traversal is asked of the element, otherwise of the traverser.
 */
static bool matched(struct gremlin_run *run, const struct merge *merge,
                    const struct gremlin_walker *traverser, struct gremlin_value element,
                    struct error *err)
{
    struct gremlin_resolved resolved = {0};
    struct gremlin_value map;
    struct gremlin_walker at;
    bool good;

    if (!merge->match.given)
        return true;
    if (merge->match.part && gremlin_is_element(traverser->value))
        return FAIL(err, "The incoming traverser for %s cannot be an Element",
                    merge->edges ? "MergeEdgeStep" : "MergeVertexStep");
    at = gremlin_walker_copy(traverser);
    if (merge->first) {
        gremlin_value_replace_take(&at.value, gremlin_value_ref(element));
        at.on_trail = false;
    }
    good = map_get(run, merge, &merge->match, &at, &map, err);
    gremlin_walker_done(&at);
    if (!good)
        return false;
    good = map_check(merge, map, true, err);
    if (good && gremlin_table(map)->count) {
        map_assign(run, map, merge->match.cardinality, &resolved);
        good = gremlin_graph_assign(run->graph, &element, resolved.items, resolved.count, err);
        gremlin_resolved_release(run, &resolved);
    }
    gremlin_value_unref(map);
    return good;
}

/* --- The step -------------------------------------------------------------------------------- */

/* The map that searches: an argument, a child's, or the traverser itself. */
static bool search_map(struct gremlin_run *run, const struct merge *merge,
                       const struct gremlin_walker *traverser, struct gremlin_value *ret_map,
                       struct error *err)
{
    struct source_map incoming = {.given = true, .map = traverser->value};

    if (merge->search.given)
        return map_get(run, merge, &merge->search, traverser, ret_map, err);
    return map_get(run, merge, &incoming, traverser, ret_map, err);
}

/* What Merge.outV or Merge.inV stands for: a vertex that the option gives, or describes. */
static bool end_option(struct gremlin_run *run, const struct merge *merge, size_t which,
                       const struct gremlin_walker *traverser, struct gremlin_value *ret_vertex,
                       struct error *err)
{
    static const char *const names[] = {"outV", "inV"};
    const struct source_map *source = &merge->ends[which];
    const struct gremlin_value none[2] = {GREMLIN_NOTHING, GREMLIN_NOTHING};
    struct gremlin_value value = gremlin_value_ref(source->map), list;
    bool found = true, good;

    if (!source->given)
        return FAIL(err, "option(%s) must be specified if it is used for Direction.%s",
                    names[which], which ? "IN" : "OUT");
    if (source->part && !gremlin_part_value(run, source->part, traverser, &value, &found, err))
        return false;
    if (found && value.type == GREMLIN_MAP) {
        list = gremlin_list_new(run->heap, 1);
        good = search_all(run, GREMLIN_ELEMENT_VERTEX, value, none, list, err);
        found = good && gremlin_list(list)->count > 0;
        if (found)
            *ret_vertex = gremlin_value_ref(gremlin_list(list)->items[0]);
        gremlin_value_unref(list);
    } else {
        good = !found || gremlin_vertex_resolve(run, value, ret_vertex, &found, err);
    }
    gremlin_value_unref(value);
    if (good && !found)
        return FAIL(err, "Vertex id could not be resolved from mergeE: option(%s)", names[which]);
    return good;
}

/* The vertices a map names. *ret_open: one that it names does not exist, so no edge matches. */
static bool ends_resolve(struct gremlin_run *run, const struct merge *merge,
                         struct gremlin_value map, const struct gremlin_walker *traverser,
                         struct gremlin_value ends[2], bool *ret_missing, struct error *err)
{
    for (size_t i = 0; i < 2; i++) {
        const struct gremlin_value *given = map_word(map, directions[i]);
        bool found = true;

        if (!given || gremlin_is_null(*given))
            continue;
        if (gremlin_is_word(*given, end_words[i])) {
            if (!end_option(run, merge, i, traverser, &ends[i], err))
                return false;
        } else if (!gremlin_vertex_resolve(run, *given, &ends[i], &found, err)) {
            return false;
        }
        *ret_missing |= !found;
    }
    return true;
}

static bool merge_one(struct gremlin_run *run, struct merge *merge,
                      const struct gremlin_walker *traverser, struct gremlin_value map,
                      struct gremlin_value ends[2], struct gremlin_walkers *out, struct error *err)
{
    struct gremlin_value list = gremlin_list_new(run->heap, 0), create = GREMLIN_NOTHING, made;
    bool missing = false;
    bool good =
        map_check(merge, map, false, err) &&
        (!merge->edges || ends_resolve(run, merge, map, traverser, ends, &missing, err)) &&
        (missing || search_all(run, merge->edges ? GREMLIN_ELEMENT_EDGE : GREMLIN_ELEMENT_VERTEX,
                               map, ends, list, err));

    if (good && !gremlin_list(list)->count) {
        good = create_map(run, merge, map, traverser, &create, err);
        /* onCreate may name the vertices that the search left open */
        if (good && merge->edges && gremlin_is_null(ends[0]) && gremlin_is_null(ends[1]))
            good = ends_resolve(run, merge, create, traverser, ends, &missing, err);
        good = good &&
               (merge->edges ? edge_make(run, create, ends, &made, err)
                             : vertex_make(run, create, merge->search.cardinality, &made, err));
        if (good)
            gremlin_walkers_push(run, out,
                                 gremlin_walker_split(run, traverser, made, &merge->step));
        gremlin_value_unref(create);
    } else {
        for (size_t i = 0; good && i < gremlin_list(list)->count; i++) {
            good = matched(run, merge, traverser, gremlin_list(list)->items[i], err);
            if (good)
                gremlin_walkers_push(
                    run, out,
                    gremlin_walker_split(run, traverser,
                                         gremlin_value_ref(gremlin_list(list)->items[i]),
                                         &merge->step));
        }
    }
    gremlin_value_unref(list);
    return good;
}

static bool merge_spread(struct gremlin_run *run, struct gremlin_step *step,
                         const struct gremlin_walker *traverser, struct gremlin_walkers *out,
                         struct error *err)
{
    struct merge *merge = (struct merge *)step;
    struct gremlin_value map, ends[2] = {GREMLIN_NOTHING, GREMLIN_NOTHING};
    bool good;

    run->outcome->wrote = true;
    if (!search_map(run, merge, traverser, &map, err))
        return false;
    good = merge_one(run, merge, traverser, map, ends, out, err);
    gremlin_value_unref(map);
    gremlin_value_unref(ends[0]);
    gremlin_value_unref(ends[1]);
    return good;
}

static const struct gremlin_step_kind step_merge = {
    .name = "merge", .flags = STEP_WRITES, .spread = merge_spread};

static bool source_compile(struct gremlin_compiler *compiler, struct merge *merge,
                           struct gremlin_value argument, struct source_map *source,
                           struct error *err)
{
    source->given = true;
    if (gremlin_argument_is_traversal(argument))
        return gremlin_step_child(compiler, &merge->step, argument,
                                  (struct gremlin_part_options){0}, &source->part, err);
    source->map = argument;
    return true;
}

static bool option_compile(struct gremlin_compiler *compiler, struct merge *merge,
                           const struct gremlin_instruction *in, struct error *err)
{
    const struct {
        enum gremlin_enum_word word;
        struct source_map *source;
    } options[] = {{GREMLIN_MERGE_ON_CREATE, &merge->create},
                   {GREMLIN_MERGE_ON_MATCH, &merge->match},
                   {GREMLIN_MERGE_OUT_V, &merge->ends[0]},
                   {GREMLIN_MERGE_IN_V, &merge->ends[1]}};

    if (in->count < 2 || in->count > 3)
        return REFUSE(err, "option() of a merge takes a Merge and a map or traversal");
    for (size_t i = 0; i < (merge->edges ? 4U : 2U); i++) {
        if (!gremlin_is_word(in->arguments[0], options[i].word))
            continue;
        if (in->count == 3) {
            if (!gremlin_argument_is_family(in->arguments[2], GREMLIN_ENUM_CARDINALITY))
                return REFUSE(err, "option(): the third argument is a Cardinality");
            options[i].source->cardinality = in->arguments[2].word.word;
        }
        /* A map that stands there is looked at even if it is never used. */
        if (i < 2 && in->arguments[1].type == GREMLIN_MAP &&
            !map_check(merge, in->arguments[1], i == 1, err))
            return false;
        return source_compile(compiler, merge, in->arguments[1], options[i].source, err);
    }
    return REFUSE(err, "The option() of a merge is not one it takes");
}

static bool merge_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw, bool edges,
                          struct error *err)
{
    struct merge *merge = STEP_ADD(compiler, raw, &step_merge, struct merge);

    merge->edges = edges;
    merge->first = !compiler->outer && compiler->index == 0;
    merge->step.local = true;
    if (!gremlin_write_allowed(compiler->run, raw->row->name, err))
        return false;
    if (raw->count && !source_compile(compiler, merge, raw->arguments[0], &merge->search, err))
        return false;
    if (raw->count && !gremlin_argument_is_traversal(raw->arguments[0]) &&
        !gremlin_is_null(raw->arguments[0]) && raw->arguments[0].type != GREMLIN_MAP)
        return gremlin_argument_wrong(raw, 0, "a map or a traversal", err);
    for (size_t i = 0; i < raw->option_count; i++)
        if (!option_compile(compiler, merge, raw->options[i], err))
            return false;
    return true;
}

bool compile_merge_v(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return merge_compile(compiler, raw, false, err);
}

bool compile_merge_e(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return merge_compile(compiler, raw, true, err);
}
