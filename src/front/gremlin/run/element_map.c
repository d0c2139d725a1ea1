/* Elements as maps: valueMap, propertyMap, elementMap; and project. */
#include "front/gremlin/run/compile_private.h"

/* What with(WithOptions.tokens, ...) asks for. */
enum { TOKEN_IDS = 1, TOKEN_LABELS = 2, TOKEN_KEYS = 4, TOKEN_VALUES = 8, TOKEN_ALL = 15 };

enum map_form { MAP_VALUES, MAP_PROPERTIES, MAP_ELEMENT };

struct element_map {
    struct gremlin_step step;
    enum map_form form;
    const struct slice *keys;
    size_t count;
    int64_t tokens;
    bool none; /* only nulls were asked for */
};

static void put_word(struct gremlin_value map, enum gremlin_enum_word word,
                     struct gremlin_value value)
{
    gremlin_map_put(map, gremlin_word(word), value);
}

static void tokens_put(struct gremlin_value map, struct gremlin_value object, int64_t tokens)
{
    struct gremlin_element *element = gremlin_element(object);

    if (tokens & TOKEN_IDS)
        put_word(map, GREMLIN_T_ID, element->id);
    if (object.type == GREMLIN_VERTEX_PROPERTY) {
        if (tokens & TOKEN_KEYS)
            put_word(map, GREMLIN_T_KEY, element->label);
        if (tokens & TOKEN_VALUES)
            put_word(map, GREMLIN_T_VALUE, gremlin_vertex_property(object)->value);
    } else if (tokens & TOKEN_LABELS) {
        put_word(map, GREMLIN_T_LABEL, element->label);
    }
}

static void end_put(struct gremlin_run *run, struct gremlin_value map, enum gremlin_enum_word word,
                    const struct gremlin_end *end)
{
    struct gremlin_value below = gremlin_map_new(run->heap);

    put_word(below, GREMLIN_T_ID, end->id);
    put_word(below, GREMLIN_T_LABEL, end->label);
    gremlin_map_put_take(map, gremlin_word(word), below);
}

/* Several values of a key of a vertex: a list, or the first. */
static void property_put(struct gremlin_run *run, const struct element_map *step,
                         struct gremlin_value map, struct gremlin_value object,
                         const struct gremlin_slot *slot)
{
    struct gremlin_value value;
    struct gremlin_row *row;
    bool new;

    if (step->form == MAP_PROPERTIES)
        value = object.type == GREMLIN_VERTEX
                    ? gremlin_vertex_property_new(run->heap, slot, object)
                    : gremlin_property_new(run->heap, slot->key, slot->value, object);
    else
        value = gremlin_value_ref(slot->value);
    row = gremlin_table_row(map, slot->key, &new);
    if (object.type != GREMLIN_VERTEX || step->form == MAP_ELEMENT) {
        if (new)
            row->value = value;
        else
            gremlin_value_unref(value);
        return;
    }
    if (new)
        row->value = gremlin_list_new(run->heap, 1);
    gremlin_list_add_take(row->value, value);
}

/* by() changes the values of properties; what yields nothing is left out. */
static bool bys_put(struct gremlin_run *run, struct gremlin_step *step,
                    const struct gremlin_walker *traverser, struct gremlin_value from,
                    struct gremlin_value map, size_t tokens, struct error *err)
{
    const struct gremlin_table *table = gremlin_table(from);

    for (size_t i = 0; i < table->count; i++) {
        struct gremlin_value value;
        bool found;

        if (i < tokens) {
            gremlin_map_put(map, table->rows[i].key, table->rows[i].value);
            continue;
        }
        if (!gremlin_by_apply_value(run, gremlin_step_by(step, i - tokens), traverser,
                                    table->rows[i].value, &value, &found, err))
            return false;
        if (found)
            gremlin_map_put_take(map, table->rows[i].key, value);
    }
    return true;
}

static bool element_map_fill(struct gremlin_run *run, const struct element_map *step,
                             struct gremlin_value object, struct gremlin_value map,
                             size_t *ret_tokens, struct error *err)
{
    struct gremlin_properties *found;

    if (gremlin_element(object)->reference &&
        !gremlin_graph_load(run->graph, &object, 1, NULL, err))
        return false;
    tokens_put(map, object, step->tokens);
    if (step->form == MAP_ELEMENT && object.type == GREMLIN_EDGE) {
        end_put(run, map, GREMLIN_DIRECTION_IN, &gremlin_edge(object)->in);
        end_put(run, map, GREMLIN_DIRECTION_OUT, &gremlin_edge(object)->out);
    }
    *ret_tokens = gremlin_table(map)->count;
    if (step->none)
        return true;
    found = gremlin_properties_new(run->heap, 0);
    if (!gremlin_element_select(object, step->keys, step->count, found, err)) {
        gremlin_properties_unref(found);
        return false;
    }
    for (size_t i = 0; i < found->count; i++)
        if (run->filters == NULL || gremlin_property_passes(run, object, &found->slots[i]))
            property_put(run, step, map, object, &found->slots[i]);
    gremlin_properties_unref(found);
    return true;
}

static bool element_map_one(struct gremlin_run *run, struct gremlin_step *step,
                            struct gremlin_walker *traverser, bool *ret_keep UNUSED,
                            struct error *err)
{
    struct gremlin_value map, object = traverser->value;
    size_t tokens;

    if (!gremlin_is_element(object))
        return FAIL(err, "%.*s() takes elements: a %s cannot be cast to Element",
                    SLICE_ARG(step->instruction->name), gremlin_type_name(object.type));
    map = gremlin_map_new(run->heap);
    if (!element_map_fill(run, (struct element_map *)step, object, map, &tokens, err))
        return false;
    if (step->by_count) {
        struct gremlin_value changed = gremlin_map_new(run->heap);

        if (!bys_put(run, step, traverser, map, changed, tokens, err))
            return false;
        gremlin_value_replace_take(&map, changed);
    }
    gremlin_walker_set(run, traverser, map, step);
    return true;
}

static const struct gremlin_step_kind step_element_map = {.name = "elementMap",
                                                          .one = element_map_one};

static bool with_tokens(const struct gremlin_instruction *with, struct element_map *step,
                        struct error *err)
{
    if (!with->count || with->count > 2 ||
        !gremlin_is_text(with->arguments[0], SLICE("~tinkerpop.valueMap.tokens")))
        return REFUSE(err, "with(): only WithOptions.tokens is taken here");
    step->tokens = TOKEN_ALL;
    if (with->count == 2 && with->arguments[1].type == GREMLIN_BOOLEAN)
        step->tokens = with->arguments[1].boolean ? TOKEN_ALL : 0;
    else if (with->count == 2 && (!gremlin_is_number(with->arguments[1]) ||
                                  !gremlin_number_long(with->arguments[1], &step->tokens)))
        return REFUSE(err, "with(WithOptions.tokens, ...) takes one of the WithOptions");
    return true;
}

static bool element_map_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                                enum map_form form, struct error *err)
{
    struct element_map *step = STEP_ADD(compiler, raw, &step_element_map, struct element_map);
    size_t from = 0;

    step->form = form;
    step->tokens = form == MAP_ELEMENT ? TOKEN_ALL : 0;
    if (raw->count && raw->arguments[0].type == GREMLIN_BOOLEAN) {
        step->tokens = raw->arguments[0].boolean ? TOKEN_ALL : step->tokens;
        from = 1;
    }
    for (size_t i = 0; i < raw->with_count; i++)
        if (!with_tokens(raw->with[i], step, err))
            return false;
    if (!gremlin_argument_texts(compiler, raw, from, &step->keys, &step->count, err))
        return false;
    step->none = raw->count > from && !step->count;
    return true;
}

bool compile_value_map(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                       struct error *err)
{
    return element_map_compile(compiler, raw, MAP_VALUES, err);
}

bool compile_property_map(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                          struct error *err)
{
    return element_map_compile(compiler, raw, MAP_PROPERTIES, err);
}

bool compile_element_map(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                         struct error *err)
{
    return element_map_compile(compiler, raw, MAP_ELEMENT, err);
}

/* --- project --------------------------------------------------------------------------------- */

struct project {
    struct gremlin_step step;
    const struct slice *keys;
    size_t count;
};

static bool project_one(struct gremlin_run *run, struct gremlin_step *step,
                        struct gremlin_walker *traverser, bool *ret_keep UNUSED, struct error *err)
{
    const struct project *project = (struct project *)step;
    struct gremlin_value map = gremlin_map_new(run->heap);

    for (size_t i = 0; i < project->count; i++) {
        struct gremlin_value key, value;
        bool found;

        if (!gremlin_by_apply(run, gremlin_step_by(step, i), traverser, &value, &found, err)) {
            gremlin_value_unref(map);
            return false;
        }
        if (!found)
            continue;
        key = gremlin_string(run->heap, project->keys[i]);
        gremlin_map_put_take(map, key, value);
        gremlin_value_unref(key);
    }
    gremlin_walker_set(run, traverser, map, step);
    return true;
}

static const struct gremlin_step_kind step_project = {.name = "project", .one = project_one};

bool compile_project(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct project *project = STEP_ADD(compiler, raw, &step_project, struct project);

    if (!gremlin_argument_texts(compiler, raw, 0, &project->keys, &project->count, err))
        return false;
    for (size_t i = 0; i < project->count; i++)
        for (size_t j = 0; j < i; j++)
            if (slice_equal(project->keys[i], project->keys[j]))
                return REFUSE(err, "keys must be unique in ProjectStep");
    return true;
}
