/* Writing: addV, addE, property, drop. property() steps right behind addV() or addE() belong to the
 * new element: partition key and id must be there when it is stored. */
#include "front/gremlin/run/write_private.h"

bool gremlin_write_allowed(struct gremlin_run *run, const char *what, struct error *err)
{
    if (run->options->read_only || run->strategy_read_only)
        return error_set(err, ERROR_FORBIDDEN,
                         "The provided traversal has a mutating step and "
                         "thus is not read only: %s()",
                         what);
    return true;
}

/* --- Settings -------------------------------------------------------------------------------- */

struct gremlin_setting *gremlin_settings_add(struct gremlin_compiler *compiler,
                                             struct gremlin_settings *settings)
{
    if (settings->count == settings->capacity) {
        size_t capacity = settings->capacity ? settings->capacity * 2 : 8;
        struct gremlin_setting *grown =
            ARENA_ARRAY(compiler->run->arena, struct gremlin_setting, capacity);

        if (settings->count)
            memcpy(grown, settings->items, settings->count * sizeof *grown);
        settings->items = grown;
        settings->capacity = capacity;
    }
    settings->items[settings->count] = (struct gremlin_setting){0};
    return &settings->items[settings->count++];
}

static bool setting_value(struct gremlin_compiler *compiler, struct gremlin_step *step,
                          struct gremlin_setting *setting, struct gremlin_value value,
                          struct error *err)
{
    if (value.type == GREMLIN_CARDINAL) {
        setting->cardinality = gremlin_cardinal(value)->cardinality;
        value = gremlin_cardinal(value)->value;
    }
    setting->value = value;
    if (!gremlin_argument_is_traversal(value))
        return true;
    return gremlin_step_child(compiler, step, value, (struct gremlin_part_options){0},
                              &setting->part, err);
}

static bool key_reserved(const struct gremlin_run *run, struct slice key)
{
    if (run->reserved.type != GREMLIN_LIST)
        return slice_equal(key, SLICE("id")) || slice_equal(key, SLICE("label"));
    for (size_t i = 0; i < gremlin_list(run->reserved)->count; i++)
        if (gremlin_is_text(gremlin_list(run->reserved)->items[i], key))
            return true;
    return false;
}

static bool setting_key(struct gremlin_compiler *compiler, struct gremlin_setting *setting,
                        struct gremlin_value key, bool is_new, struct error *err)
{
    bool id = gremlin_is_word(key, GREMLIN_T_ID) ||
              (compiler->run->options->cloud && gremlin_is_text(key, SLICE("id")));

    if (id || gremlin_is_word(key, GREMLIN_T_LABEL)) {
        if (!is_new)
            return REFUSE(err, "property(): T.%s can only be set right behind addV() or addE()",
                          id ? "id" : "label");
        setting->kind = id ? SETS_ID : SETS_LABEL;
        return true;
    }
    if (!gremlin_is_string(key))
        return REFUSE(err, "property(): the key must be a string, T.id or T.label, not a %s",
                      gremlin_type_name(key.type));
    setting->key = slice_keep(compiler, gremlin_bytes(key));
    if (compiler->run->verify_keys && key_reserved(compiler->run, setting->key))
        return REFUSE(err,
                      "The provided traversal contains a step that is setting a property key to a "
                      "reserved word: %.*s",
                      SLICE_ARG(setting->key));
    if (!setting->key.len)
        return REFUSE(err, "Property key can not be the empty string");
    if (setting->key.data[0] == '~')
        return REFUSE(err, "Property key can not be a hidden key: %.*s", SLICE_ARG(setting->key));
    return true;
}

static bool setting_meta(struct gremlin_compiler *compiler, struct gremlin_step *step,
                         struct gremlin_setting *setting, const struct gremlin_value *meta,
                         size_t count, struct error *err)
{
    if (count % 2)
        return REFUSE(err, "The provided key/value array length must be a multiple of two");
    setting->meta = meta;
    setting->meta_count = count / 2;
    setting->meta_parts = ARENA_ARRAY(compiler->run->arena, struct gremlin_part *, count + 1);
    for (size_t i = 0; i < setting->meta_count; i++) {
        setting->meta_parts[i] = NULL;
        if (!gremlin_is_string(meta[i * 2]))
            return REFUSE(err, "property(): keys of meta-properties are strings");
        if (gremlin_argument_is_traversal(meta[i * 2 + 1]) &&
            !gremlin_step_child(compiler, step, meta[i * 2 + 1], (struct gremlin_part_options){0},
                                &setting->meta_parts[i], err))
            return false;
    }
    return true;
}

static bool settings_of_map(struct gremlin_compiler *compiler, struct gremlin_step *step,
                            struct gremlin_value map, enum gremlin_enum_word cardinality,
                            struct gremlin_settings *settings, bool is_new, struct error *err)
{
    const struct gremlin_table *table = gremlin_table(map);

    for (size_t i = 0; i < table->count; i++) {
        struct gremlin_setting *setting = gremlin_settings_add(compiler, settings);

        setting->cardinality = cardinality;
        if (!setting_key(compiler, setting, table->rows[i].key, is_new, err) ||
            !setting_value(compiler, step, setting, table->rows[i].value, err))
            return false;
    }
    return true;
}

bool gremlin_settings_of(struct gremlin_compiler *compiler, struct gremlin_step *step,
                         const struct gremlin_raw *raw, struct gremlin_settings *settings,
                         bool is_new, struct error *err)
{
    enum gremlin_enum_word cardinality = 0;
    size_t from = 0;
    struct gremlin_setting *setting;

    if (gremlin_argument_is_family(raw->arguments[0], GREMLIN_ENUM_CARDINALITY)) {
        cardinality = raw->arguments[0].word.word;
        from = 1;
    } else if (gremlin_is_null(raw->arguments[0]) && raw->count > 2) {
        from = 1;
    }
    if (raw->count == from + 1 && raw->arguments[from].type == GREMLIN_MAP)
        return settings_of_map(compiler, step, raw->arguments[from], cardinality, settings, is_new,
                               err);
    if (raw->count == from + 1 && gremlin_is_null(raw->arguments[from]))
        return true;
    if (raw->count < from + 2)
        return gremlin_argument_wrong(raw, from, "a key with a value, or a map", err);
    setting = gremlin_settings_add(compiler, settings);
    setting->cardinality = cardinality;
    return setting_key(compiler, setting, raw->arguments[from], is_new, err) &&
           setting_value(compiler, step, setting, raw->arguments[from + 1], err) &&
           setting_meta(compiler, step, setting, raw->arguments + from + 2, raw->count - from - 2,
                        err);
}

/* --- Resolving them -------------------------------------------------------------------------- */

bool gremlin_assignment_add(struct gremlin_run *run, struct gremlin_resolved *resolved,
                            enum gremlin_enum_word cardinality, struct slice key,
                            struct gremlin_value value)
{
    if (resolved->count == resolved->room) {
        size_t room = resolved->room ? resolved->room * 2 : 8;

        resolved->items =
            gremlin_heap_grow(run->heap, resolved->items, resolved->room * sizeof *resolved->items,
                              room * sizeof *resolved->items);
        resolved->room = room;
    }
    resolved->items[resolved->count++] = (struct gremlin_assignment){
        .cardinality = cardinality, .key = key, .value = gremlin_value_ref(value)};
    return true;
}

void gremlin_resolved_release(struct gremlin_run *run, struct gremlin_resolved *resolved)
{
    for (size_t i = 0; i < resolved->count; i++) {
        struct gremlin_assignment *item = &resolved->items[i];

        gremlin_value_unref(item->value);
        for (size_t j = 0; j < item->meta_count; j++)
            gremlin_value_unref(item->meta[j].value);
        if (item->meta)
            gremlin_heap_release(run->heap, (void *)item->meta,
                                 item->meta_count * sizeof *item->meta);
    }
    if (resolved->items)
        gremlin_heap_release(run->heap, resolved->items, resolved->room * sizeof *resolved->items);
    gremlin_value_unref(resolved->id);
    gremlin_value_unref(resolved->label);
    *resolved = (struct gremlin_resolved){0};
}

static bool part_must(struct gremlin_run *run, struct gremlin_part *part,
                      struct gremlin_value constant, const struct gremlin_walker *traverser,
                      struct gremlin_value *ret_value, struct error *err)
{
    bool found = true;

    if (!part) {
        *ret_value = gremlin_value_ref(constant);
        return true;
    }
    if (!gremlin_part_value(run, part, traverser, ret_value, &found, err))
        return false;
    if (!found)
        return FAIL(err, "The provided traverser does not map to a value: %s->%s",
                    gremlin_value_shown(run, traverser->value), gremlin_part_shown(run, part));
    return true;
}

static bool meta_resolve(struct gremlin_run *run, const struct gremlin_setting *setting,
                         const struct gremlin_walker *traverser, struct gremlin_assignment *into,
                         struct error *err)
{
    struct gremlin_pair *pairs;

    if (!setting->meta_count)
        return true;
    pairs = gremlin_heap_alloc(run->heap, setting->meta_count * sizeof *pairs);
    memset(pairs, 0, setting->meta_count * sizeof *pairs);
    into->meta = pairs;
    into->meta_count = setting->meta_count;
    for (size_t i = 0; i < setting->meta_count; i++) {
        pairs[i].key = gremlin_bytes(setting->meta[i * 2]);
        if (!part_must(run, setting->meta_parts[i], setting->meta[i * 2 + 1], traverser,
                       &pairs[i].value, err))
            return false;
    }
    return true;
}

bool gremlin_settings_resolve(struct gremlin_run *run, const struct gremlin_settings *settings,
                              const struct gremlin_walker *traverser,
                              struct gremlin_resolved *ret_resolved, struct error *err)
{
    for (size_t i = 0; i < settings->count; i++) {
        const struct gremlin_setting *setting = &settings->items[i];
        struct gremlin_value value;

        if (!part_must(run, setting->part, setting->value, traverser, &value, err))
            return false;
        if (setting->kind == SETS_ID) {
            gremlin_value_replace_take(&ret_resolved->id, value);
            continue;
        }
        if (setting->kind == SETS_LABEL) {
            gremlin_value_replace_take(&ret_resolved->label, value);
            continue;
        }
        gremlin_assignment_add(run, ret_resolved, setting->cardinality, setting->key, value);
        gremlin_value_unref(value);
        if (!meta_resolve(run, setting, traverser, &ret_resolved->items[ret_resolved->count - 1],
                          err))
            return false;
    }
    return true;
}

/* --- addV ------------------------------------------------------------------------------------ */

struct add {
    struct gremlin_step step;
    struct gremlin_value label; /* null: "vertex" */
    struct gremlin_part *label_part;
    struct gremlin_settings settings;
    /* of addE */
    struct gremlin_value ends[2]; /* from, to: a label, a vertex or an id; null: the traverser */
    struct gremlin_part *end_parts[2];
    bool end_given[2];
};

static bool label_resolve(struct gremlin_run *run, const struct add *add,
                          const struct gremlin_walker *traverser, struct gremlin_resolved *resolved,
                          struct error *err)
{
    struct gremlin_value label;

    if (!gremlin_is_null(resolved->label) && gremlin_is_null(add->label))
        label = gremlin_value_ref(resolved->label);
    else if (!part_must(run, add->label_part, add->label, traverser, &label, err))
        return false;
    if (!gremlin_is_null(label) && !gremlin_is_string(label)) {
        gremlin_value_unref(label);
        return FAIL(err, "a label must be a string, not a %s", gremlin_type_name(label.type));
    }
    gremlin_value_replace_take(&resolved->label, label);
    return true;
}

static struct slice label_text(const struct gremlin_resolved *resolved)
{
    return gremlin_is_null(resolved->label) ? SLICE("") : gremlin_bytes(resolved->label);
}

static bool add_v_one(struct gremlin_run *run, struct gremlin_step *step,
                      struct gremlin_walker *traverser, bool *ret_keep UNUSED, struct error *err)
{
    const struct add *add = (struct add *)step;
    struct gremlin_resolved resolved = {0};
    struct gremlin_value vertex;
    bool good;

    run->outcome->wrote = true;
    good = gremlin_settings_resolve(run, &add->settings, traverser, &resolved, err) &&
           label_resolve(run, add, traverser, &resolved, err);
    if (good) {
        struct gremlin_new_vertex made = {.label = label_text(&resolved),
                                          .id = resolved.id,
                                          .properties = resolved.items,
                                          .property_count = resolved.count};

        good = gremlin_graph_add_vertex(run->graph, &made, &vertex, err);
    }
    if (good)
        gremlin_walker_set(run, traverser, vertex, step);
    gremlin_resolved_release(run, &resolved);
    return good;
}

static const struct gremlin_step_kind step_add_v = {
    .name = "addV", .flags = STEP_WRITES | STEP_HEADS, .one = add_v_one};

/* property() steps right behind belong to what is added. */
static bool fold_settings(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                          struct add *add, struct error *err)
{
    while (gremlin_raw_is(gremlin_raw_next(compiler), "property")) {
        const struct gremlin_raw *next = gremlin_raw_next(compiler);

        if (!gremlin_settings_of(compiler, &add->step, next, &add->settings, true, err))
            return false;
        if (!gremlin_is_null(next->labels)) {
            if (gremlin_is_null(raw->labels))
                raw->labels = gremlin_set_new(compiler->run->heap);
            for (size_t i = 0; i < gremlin_table(next->labels)->count; i++)
                gremlin_set_add(raw->labels, gremlin_table(next->labels)->rows[i].key);
        }
        compiler->index++;
    }
    return gremlin_add_strategy_settings(compiler, &add->settings, err);
}

static bool label_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                          struct add *add, struct error *err)
{
    if (!raw->count)
        return true;
    if (gremlin_argument_is_traversal(raw->arguments[0]))
        return gremlin_step_child(compiler, &add->step, raw->arguments[0],
                                  (struct gremlin_part_options){0}, &add->label_part, err);
    if (!gremlin_is_string(raw->arguments[0]) && !gremlin_is_null(raw->arguments[0]))
        return gremlin_argument_wrong(raw, 0, "a label or a traversal", err);
    add->label = raw->arguments[0];
    return true;
}

bool compile_add_v(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct add *add = STEP_ADD(compiler, raw, &step_add_v, struct add);

    add->step.local = true;
    return gremlin_write_allowed(compiler->run, "addV", err) &&
           label_compile(compiler, raw, add, err) && fold_settings(compiler, raw, add, err);
}

/* --- addE ------------------------------------------------------------------------------------ */

bool gremlin_vertex_resolve(struct gremlin_run *run, struct gremlin_value value,
                            struct gremlin_value *ret_vertex, bool *ret_found, struct error *err)
{
    struct gremlin_reference reference;
    struct gremlin_search search = {
        .kind = GREMLIN_ELEMENT_VERTEX, .references = &reference, .reference_count = 1, .limit = 1};
    struct gremlin_found *found;
    struct gremlin_page page;
    bool good;

    *ret_found = false;
    if (value.type == GREMLIN_VERTEX && !gremlin_element(value)->reference) {
        *ret_found = true;
        *ret_vertex = gremlin_value_ref(value);
        return true;
    }
    if (gremlin_is_null(value) || !gremlin_reference_of(run->graph, &value, &reference))
        return true;
    if (!gremlin_graph_search(run->graph, &search, &found, err))
        return false;
    good = gremlin_found_next(found, 1, &page, err);
    if (good && page.count) {
        *ret_found = true;
        *ret_vertex = gremlin_value_ref(page.elements[0]);
    }
    gremlin_found_free(found);
    return good;
}

static const char *const end_names[] = {"from", "to"};

static bool end_value(struct gremlin_run *run, const struct add *add,
                      const struct gremlin_walker *traverser, size_t which, struct slice label,
                      struct gremlin_value *ret_value, struct error *err)
{
    bool found = true;

    *ret_value = GREMLIN_NOTHING;
    if (add->end_parts[which]) {
        if (!gremlin_part_value(run, add->end_parts[which], traverser, ret_value, &found, err))
            return false;
        if (!found)
            return FAIL(err,
                        "addE(%.*s) failed because the %s() traversal (which should give a "
                        "Vertex) failed with: The provided traverser does not map to a value: "
                        "%s->%s",
                        SLICE_ARG(label), end_names[which],
                        gremlin_value_shown(run, traverser->value),
                        gremlin_part_shown(run, add->end_parts[which]));
        return true;
    }
    if (!add->end_given[which]) {
        *ret_value = gremlin_value_ref(traverser->value);
        return true;
    }
    if (!gremlin_is_string(add->ends[which])) {
        *ret_value = gremlin_value_ref(add->ends[which]);
        return true;
    }
    if (!gremlin_scope_value(run, traverser, gremlin_bytes(add->ends[which]), GREMLIN_POP_LAST,
                             ret_value, &found, err))
        return false;
    if (!found)
        return FAIL(err,
                    "addE(%.*s) failed because the %s() traversal (which should give a Vertex) "
                    "failed with: The provided traverser does not map to a value: %s->select(%.*s)",
                    SLICE_ARG(label), end_names[which], gremlin_value_shown(run, traverser->value),
                    SLICE_ARG(gremlin_bytes(add->ends[which])));
    return true;
}

static bool end_resolve(struct gremlin_run *run, const struct add *add,
                        const struct gremlin_walker *traverser, size_t which, struct slice label,
                        struct gremlin_value *ret_vertex, struct error *err)
{
    struct gremlin_value value;
    bool found = false, id;

    if (!end_value(run, add, traverser, which, label, &value, err))
        return false;
    id = run->v38 && add->end_given[which] && !gremlin_is_null(value);
    if (value.type == GREMLIN_VERTEX || id) {
        bool good = gremlin_vertex_resolve(run, value, ret_vertex, &found, err);

        if (!good) {
            gremlin_value_unref(value);
            return false;
        }
    }
    if (!found)
        FAIL(err, "addE(%.*s) could not find a Vertex for %s() - encountered: %s", SLICE_ARG(label),
             end_names[which], gremlin_is_null(value) ? "null" : gremlin_type_name(value.type));
    gremlin_value_unref(value);
    return found;
}

static bool add_e_one(struct gremlin_run *run, struct gremlin_step *step,
                      struct gremlin_walker *traverser, bool *ret_keep UNUSED, struct error *err)
{
    const struct add *add = (struct add *)step;
    struct gremlin_resolved resolved = {0};
    struct gremlin_value from = GREMLIN_NOTHING, to = GREMLIN_NOTHING, edge;
    bool good;

    run->outcome->wrote = true;
    good = gremlin_settings_resolve(run, &add->settings, traverser, &resolved, err) &&
           label_resolve(run, add, traverser, &resolved, err) &&
           end_resolve(run, add, traverser, 0, label_text(&resolved), &from, err) &&
           end_resolve(run, add, traverser, 1, label_text(&resolved), &to, err);
    if (good) {
        struct gremlin_new_edge made = {.label = label_text(&resolved),
                                        .id = resolved.id,
                                        .from = from,
                                        .to = to,
                                        .properties = resolved.items,
                                        .property_count = resolved.count};

        good = gremlin_graph_add_edge(run->graph, &made, &edge, err);
    }
    if (good)
        gremlin_walker_set(run, traverser, edge, step);
    gremlin_value_unref(from);
    gremlin_value_unref(to);
    gremlin_resolved_release(run, &resolved);
    return good;
}

static const struct gremlin_step_kind step_add_e = {
    .name = "addE", .flags = STEP_WRITES | STEP_HEADS, .one = add_e_one};
static const struct gremlin_step_kind step_add_e_labels = {
    .name = "addE", .flags = STEP_WRITES | STEP_HEADS | STEP_NEEDS_LABELS, .one = add_e_one};

static bool end_compile(struct gremlin_compiler *compiler, struct add *add, size_t which,
                        const struct gremlin_instruction *in, struct error *err)
{
    if (!in)
        return true;
    if (in->count != 1)
        return REFUSE(err, "%s() takes one argument", end_names[which]);
    add->end_given[which] = true;
    add->ends[which] = in->arguments[0];
    if (gremlin_argument_is_traversal(in->arguments[0]))
        return gremlin_step_child(compiler, &add->step, in->arguments[0],
                                  (struct gremlin_part_options){0}, &add->end_parts[which], err);
    return true;
}

static bool end_is_label(const struct gremlin_instruction *in)
{
    return in && in->count == 1 && gremlin_is_string(in->arguments[0]);
}

bool compile_add_e(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    bool labels = end_is_label(raw->from) || end_is_label(raw->to);
    struct add *add =
        STEP_ADD(compiler, raw, labels ? &step_add_e_labels : &step_add_e, struct add);

    add->step.local = true;
    if (!gremlin_write_allowed(compiler->run, "addE", err) ||
        !label_compile(compiler, raw, add, err) || !end_compile(compiler, add, 0, raw->from, err) ||
        !end_compile(compiler, add, 1, raw->to, err))
        return false;
    if (!fold_settings(compiler, raw, add, err))
        return false;
    /* addE().property().from().to(): modulators that stand behind property() */
    return true;
}

/* --- property -------------------------------------------------------------------------------- */

struct property {
    struct gremlin_step step;
    struct gremlin_settings settings;
};

static bool property_fits(struct gremlin_value object, const struct gremlin_resolved *resolved,
                          struct error *err)
{
    if (!gremlin_is_element(object))
        return FAIL(err, "property() takes elements: a %s cannot be cast to Element",
                    gremlin_type_name(object.type));
    if (object.type == GREMLIN_VERTEX)
        return true;
    for (size_t i = 0; i < resolved->count; i++)
        if (resolved->items[i].meta_count)
            return FAIL(err,
                        "Property meta-properties can only be set for a Vertex but the "
                        "traversal encountered %s",
                        gremlin_type_name(object.type));
        else if (resolved->items[i].cardinality)
            return FAIL(err,
                        "Property cardinality can only be set for a Vertex but the traversal "
                        "encountered %s",
                        gremlin_type_name(object.type));
    return true;
}

static bool property_one(struct gremlin_run *run, struct gremlin_step *step,
                         struct gremlin_walker *traverser, bool *ret_keep UNUSED, struct error *err)
{
    struct gremlin_resolved resolved = {0};
    bool good;

    run->outcome->wrote = true;
    good = gremlin_settings_resolve(run, &((struct property *)step)->settings, traverser, &resolved,
                                    err) &&
           property_fits(traverser->value, &resolved, err) &&
           (!resolved.count || gremlin_graph_assign(run->graph, &traverser->value, resolved.items,
                                                    resolved.count, err));
    gremlin_resolved_release(run, &resolved);
    return good;
}

static const struct gremlin_step_kind step_property = {
    .name = "property", .flags = STEP_WRITES | STEP_FILTERS, .one = property_one};

bool compile_property(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct property *property = STEP_ADD(compiler, raw, &step_property, struct property);

    property->step.local = true;
    return gremlin_write_allowed(compiler->run, "property", err) &&
           gremlin_settings_of(compiler, &property->step, raw, &property->settings, false, err);
}

/* --- drop ------------------------------------------------------------------------------------ */

static bool drop_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want UNUSED,
                      struct gremlin_walkers *out UNUSED, struct error *err)
{
    struct gremlin_value *things;
    size_t count;
    bool good = true;

    gremlin_walkers_clear(&step->pending);
    if (!gremlin_step_drain(run, step, &step->pending, err))
        return false;
    count = step->pending.count;
    if (!count)
        return true;
    run->outcome->wrote = true;
    things = gremlin_heap_alloc(run->heap, count * sizeof *things);
    for (size_t i = 0; good && i < count; i++) {
        things[i] = step->pending.items[i].value;
        good = gremlin_is_element(things[i]) || things[i].type == GREMLIN_PROPERTY;
        if (!good)
            FAIL(err, "drop() takes elements and properties, not a %s",
                 gremlin_type_name(things[i].type));
    }
    good = good && gremlin_graph_drop(run->graph, things, count, err);
    gremlin_heap_release(run->heap, things, count * sizeof *things);
    gremlin_walkers_clear(&step->pending);
    return good;
}

static const struct gremlin_step_kind step_drop = {
    .name = "drop", .flags = STEP_WRITES | STEP_BARRIER | STEP_HEADS, .pull = drop_pull};

bool compile_drop(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    STEP_ADD(compiler, raw, &step_drop, struct gremlin_step);
    return gremlin_write_allowed(compiler->run, "drop", err);
}
