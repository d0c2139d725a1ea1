/* One object becomes another, or several: tokens and properties of elements, items of collections,
 * constants, and what is put in from outside. */
#include "front/gremlin/run/compile_private.h"

/* --- Tokens ---------------------------------------------------------------------------------- */

struct token {
    struct gremlin_step step;
    struct gremlin_enum word;
};

static bool token_one(struct gremlin_run *run, struct gremlin_step *step,
                      struct gremlin_walker *traverser, bool *ret_keep, struct error *err)
{
    struct gremlin_value value;

    if (!gremlin_is_element(traverser->value) && traverser->value.type != GREMLIN_PROPERTY)
        return FAIL(err, "%.*s() takes elements: a %s cannot be cast to Element",
                    SLICE_ARG(step->instruction->name), gremlin_type_name(traverser->value.type));
    if (!gremlin_value_of_token(run, traverser->value, ((struct token *)step)->word, &value,
                                ret_keep, err))
        return false;
    if (*ret_keep)
        gremlin_walker_set(run, traverser, value, step);
    return true;
}

static const struct gremlin_step_kind step_token = {
    .name = "token", .flags = STEP_HEADS, .one = token_one};

#define TOKEN(name, word_)                                                                         \
    bool name(struct gremlin_compiler *compiler, struct gremlin_raw *raw,                          \
              struct error *err UNUSED)                                                            \
    {                                                                                              \
        STEP_ADD(compiler, raw, &step_token, struct token)->word =                                 \
            (struct gremlin_enum){GREMLIN_ENUM_T, word_};                                          \
        return true;                                                                               \
    }
TOKEN(compile_id, GREMLIN_T_ID)
TOKEN(compile_label, GREMLIN_T_LABEL)
TOKEN(compile_key, GREMLIN_T_KEY)
TOKEN(compile_value, GREMLIN_T_VALUE)

/* --- identity, constant, element ------------------------------------------------------------- */

static bool identity_one(struct gremlin_run *run UNUSED, struct gremlin_step *step UNUSED,
                         struct gremlin_walker *traverser UNUSED, bool *ret_keep UNUSED,
                         struct error *err UNUSED)
{
    return true;
}

const struct gremlin_step_kind step_identity = {
    .name = "identity", .flags = STEP_FILTERS | STEP_SEES, .one = identity_one};

bool compile_identity(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                      struct error *err UNUSED)
{
    STEP_ADD(compiler, raw, &step_identity, struct gremlin_step);
    return true;
}

struct constant {
    struct gremlin_step step;
    struct gremlin_value value;
};

static bool constant_one(struct gremlin_run *run, struct gremlin_step *step,
                         struct gremlin_walker *traverser, bool *ret_keep UNUSED,
                         struct error *err UNUSED)
{
    gremlin_walker_set(run, traverser, gremlin_value_ref(((struct constant *)step)->value), step);
    return true;
}

static const struct gremlin_step_kind step_constant = {
    .name = "constant", .flags = STEP_HEADS, .one = constant_one};

bool gremlin_add_constant(struct gremlin_compiler *compiler, const struct gremlin_raw *raw,
                          struct gremlin_value value)
{
    STEP_ADD(compiler, raw, &step_constant, struct constant)->value = value;
    return true;
}

bool compile_constant(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                      struct error *err UNUSED)
{
    return gremlin_add_constant(compiler, raw, raw->arguments[0]);
}

static bool element_one(struct gremlin_run *run, struct gremlin_step *step,
                        struct gremlin_walker *traverser, bool *ret_keep, struct error *err)
{
    struct gremlin_value owner, object = traverser->value;

    if (object.type == GREMLIN_VERTEX_PROPERTY)
        owner = gremlin_vertex_property(object)->vertex;
    else if (object.type == GREMLIN_PROPERTY)
        owner = gremlin_property(object)->owner;
    else
        return FAIL(err, "element() takes properties: a %s cannot be cast to Property",
                    gremlin_type_name(object.type));
    *ret_keep = !gremlin_is_null(owner);
    if (*ret_keep)
        gremlin_walker_set(run, traverser, gremlin_value_ref(owner), step);
    return true;
}

static const struct gremlin_step_kind step_element = {.name = "element", .one = element_one};

bool compile_element(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                     struct error *err UNUSED)
{
    STEP_ADD(compiler, raw, &step_element, struct gremlin_step);
    return true;
}

/* --- values, properties ---------------------------------------------------------------------- */

struct properties {
    struct gremlin_step step;
    const struct slice *keys;
    size_t count;
    bool values;
    bool none; /* only nulls were asked for */
};

static bool properties_spread(struct gremlin_run *run, struct gremlin_step *step,
                              const struct gremlin_walker *traverser, struct gremlin_walkers *out,
                              struct error *err)
{
    const struct properties *properties = (struct properties *)step;
    struct gremlin_value list;

    if (!gremlin_is_element(traverser->value))
        return FAIL(err, "%.*s() takes elements: a %s cannot be cast to Element",
                    SLICE_ARG(step->instruction->name), gremlin_type_name(traverser->value.type));
    if (properties->none)
        return true;
    if (!gremlin_element_list(run, traverser->value, properties->keys, properties->count,
                              properties->values, &list, err))
        return false;
    for (size_t i = 0; i < gremlin_list(list)->count; i++)
        gremlin_walkers_push(run, out,
                             gremlin_walker_split(run, traverser,
                                                  gremlin_value_ref(gremlin_list(list)->items[i]),
                                                  step));
    gremlin_value_unref(list);
    return true;
}

static bool element_unread(struct gremlin_value value)
{
    return (value.type == GREMLIN_VERTEX || value.type == GREMLIN_EDGE) &&
           (gremlin_element(value)->reference || !gremlin_element(value)->stored);
}

/* Elements that are not read yet are read for the whole batch. */
static bool properties_load(struct gremlin_run *run, struct gremlin_walkers *batch,
                            struct error *err)
{
    size_t count = 0;
    struct gremlin_value *elements;
    bool good;

    for (size_t i = 0; i < batch->count; i++)
        count += element_unread(batch->items[i].value);
    if (count < 2)
        return true;
    elements = gremlin_heap_alloc(run->heap, count * sizeof *elements);
    count = 0;
    for (size_t i = 0; i < batch->count; i++)
        if (element_unread(batch->items[i].value))
            elements[count++] = batch->items[i].value;
    good = gremlin_graph_load(run->graph, elements, count, NULL, err);
    gremlin_heap_release(run->heap, elements, count * sizeof *elements);
    return good;
}

static bool properties_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                            struct gremlin_walkers *out, struct error *err)
{
    size_t from = out->count;

    while (out->count == from) {
        gremlin_walkers_clear(&step->pending);
        if (!gremlin_step_pull(run, step->previous, want, &step->pending, err))
            return false;
        if (!step->pending.count)
            return true;
        if (!properties_load(run, &step->pending, err))
            return false;
        for (size_t i = 0; i < step->pending.count; i++)
            if (!properties_spread(run, step, &step->pending.items[i], out, err))
                return false;
    }
    return true;
}

static const struct gremlin_step_kind step_properties = {.name = "properties",
                                                         .pull = properties_pull};

static bool properties_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                               bool values, struct error *err)
{
    struct properties *properties = STEP_ADD(compiler, raw, &step_properties, struct properties);

    properties->values = values;
    if (!gremlin_argument_texts(compiler, raw, 0, &properties->keys, &properties->count, err))
        return false;
    properties->none = raw->count && !properties->count;
    return true;
}

bool compile_values(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return properties_compile(compiler, raw, true, err);
}

bool compile_properties(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                        struct error *err)
{
    return properties_compile(compiler, raw, false, err);
}

/* --- unfold, index --------------------------------------------------------------------------- */

static bool unfold_spread(struct gremlin_run *run, struct gremlin_step *step,
                          const struct gremlin_walker *traverser, struct gremlin_walkers *out,
                          struct error *err)
{
    struct gremlin_cursor cursor = {0};
    struct gremlin_value item;
    int64_t bulk;

    if (!gremlin_is_collection(traverser->value)) {
        gremlin_walkers_push(
            run, out,
            gremlin_walker_split(run, traverser, gremlin_value_ref(traverser->value), step));
        return true;
    }
    while (gremlin_collection_next(traverser->value, &cursor, &item, &bulk)) {
        struct gremlin_walker split = gremlin_walker_split(run, traverser, item, step);

        if (run->bulks)
            split.bulk *= (uint64_t)bulk;
        for (int64_t i = run->bulks ? bulk : 1; i < bulk; i++)
            gremlin_walkers_push(run, out, gremlin_walker_copy(&split));
        gremlin_walkers_push(run, out, split);
        if (gremlin_heap_failed(run->heap)) {
            gremlin_collection_done(&cursor);
            return gremlin_heap_error(run->heap, err);
        }
    }
    return true;
}

static const struct gremlin_step_kind step_unfold = {.name = "unfold", .spread = unfold_spread};

bool compile_unfold(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                    struct error *err UNUSED)
{
    STEP_ADD(compiler, raw, &step_unfold, struct gremlin_step);
    return true;
}

struct index {
    struct gremlin_step step;
    bool map;
};

static bool index_one(struct gremlin_run *run, struct gremlin_step *step,
                      struct gremlin_walker *traverser, bool *ret_keep UNUSED,
                      struct error *err UNUSED)
{
    bool map = ((struct index *)step)->map;
    struct gremlin_value items = gremlin_value_listed(run, traverser->value);
    struct gremlin_value indexed =
        map ? gremlin_map_new(run->heap) : gremlin_list_new(run->heap, 0);

    for (size_t i = 0; i < gremlin_list(items)->count; i++) {
        struct gremlin_value pair, item = gremlin_list(items)->items[i];

        if (map) {
            gremlin_map_put(indexed, gremlin_int((int32_t)i), item);
            continue;
        }
        pair = gremlin_list_new(run->heap, 2);
        gremlin_list_add(pair, item);
        gremlin_list_add(pair, gremlin_int((int32_t)i));
        gremlin_list_add_take(indexed, pair);
    }
    gremlin_value_unref(items);
    gremlin_walker_set(run, traverser, indexed, step);
    return true;
}

static const struct gremlin_step_kind step_index = {.name = "index", .one = index_one};

bool compile_index(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct index *index = STEP_ADD(compiler, raw, &step_index, struct index);

    for (size_t i = 0; i < raw->with_count; i++) {
        const struct gremlin_instruction *with = raw->with[i];
        int64_t kind;

        if (with->count != 2 ||
            !gremlin_is_text(with->arguments[0], SLICE("~tinkerpop.index.indexer")) ||
            !gremlin_is_number(with->arguments[1]) ||
            !gremlin_number_long(with->arguments[1], &kind) || kind < 0 || kind > 1)
            return REFUSE(err, "index() takes with(WithOptions.indexer, list or map)");
        index->map = kind == 1;
    }
    return true;
}

/* --- loops ----------------------------------------------------------------------------------- */

struct loops {
    struct gremlin_step step;
    unsigned depth;
    bool outside; /* of any repeat() */
};

static bool loops_one(struct gremlin_run *run, struct gremlin_step *step,
                      struct gremlin_walker *traverser, bool *ret_keep UNUSED,
                      struct error *err UNUSED)
{
    const struct loops *loops = (struct loops *)step;

    gremlin_walker_set(run, traverser,
                       gremlin_int(loops->outside ? 0 : (int32_t)traverser->loops[loops->depth]),
                       step);
    return true;
}

static const struct gremlin_step_kind step_loops = {
    .name = "loops", .flags = STEP_HEADS, .one = loops_one};

bool compile_loops(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct loops *loops = STEP_ADD(compiler, raw, &step_loops, struct loops);
    const struct gremlin_loop_scope *scope = compiler->loops;
    struct slice name;

    if (raw->count) {
        if (!gremlin_argument_text(raw, 0, &name, err))
            return false;
        while (scope && !slice_equal(scope->name, name))
            scope = scope->outer;
        if (!scope)
            return REFUSE(err, "Loop name not defined: %.*s", SLICE_ARG(name));
    }
    loops->outside = !scope;
    loops->depth = scope ? scope->depth : 0;
    return true;
}

/* --- inject, fail ---------------------------------------------------------------------------- */

struct inject {
    struct gremlin_step step;
    const struct gremlin_value *values;
    size_t count;
    bool first; /* there is no incoming stream */
};

static bool inject_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                        struct gremlin_walkers *out, struct error *err)
{
    const struct inject *inject = (struct inject *)step;

    if (!step->emitted) {
        step->emitted = true;
        for (size_t i = 0; i < inject->count; i++) {
            struct gremlin_walker injected = {.bulk = 1, .sack = gremlin_value_ref(run->sack_seed)};

            gremlin_walker_set(run, &injected, gremlin_value_ref(inject->values[i]), step);
            gremlin_walkers_push(run, out, injected);
        }
        if (inject->count)
            return true;
    }
    if (inject->first)
        return true;
    return gremlin_step_pull(run, step->previous, want, out, err);
}

static const struct gremlin_step_kind step_inject = {.name = "inject", .pull = inject_pull};

/* Is the step the first of all, or the first of a branch of a union() that is? */
static bool nothing_comes_in(const struct gremlin_compiler *compiler)
{
    while (compiler->index == 0 && compiler->outer) {
        compiler = compiler->outer;
        if (!gremlin_raw_is(&compiler->raws[compiler->index], "union"))
            return false;
    }
    return compiler->index == 0;
}

bool compile_inject(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct inject *inject = STEP_ADD(compiler, raw, &step_inject, struct inject);

    inject->values = raw->arguments;
    inject->count = raw->count;
    inject->first = nothing_comes_in(compiler);
    for (size_t i = 0; i < raw->count; i++)
        if (gremlin_argument_is_traversal(raw->arguments[i]))
            return gremlin_argument_wrong(raw, i, "a value", err);
    return true;
}

struct fail {
    struct gremlin_step step;
    struct slice message;
};

static bool fail_one(struct gremlin_run *run, struct gremlin_step *step,
                     struct gremlin_walker *traverser UNUSED, bool *ret_keep UNUSED,
                     struct error *err)
{
    struct slice message = ((struct fail *)step)->message;

    run->outcome->failed_step = true;
    gremlin_value_replace_take(&run->outcome->fail_message, gremlin_string(run->heap, message));
    return error_set(err, ERROR_GREMLIN_FAIL, "fail() Step Triggered: %.*s",
                     (int)(message.len < 600 ? message.len : 600), (const char *)message.data);
}

static const struct gremlin_step_kind step_fail = {
    .name = "fail", .flags = STEP_FILTERS | STEP_SIDE_EFFECT, .one = fail_one};

bool compile_fail(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct fail *fail = STEP_ADD(compiler, raw, &step_fail, struct fail);

    fail->message = SLICE("fail() step triggered");
    return !raw->count || gremlin_argument_text(raw, 0, &fail->message, err);
}
