/* The walk over the stages. Each appends stages of the core; a stage that is several of MongoDB's
 * own ($sortByCount) appends what those would. */
#include "front/mongo/pipeline/pipeline_private.h"

#include "front/mongo/pipeline/order.h"

#include <xxhash.h>

enum stage_flags {
    STAGE_FIRST = 1,
    STAGE_LAST = 2,
    STAGE_TOP = 4,
    STAGE_NO_FACET = 8,
    STAGE_SOURCE = 16,
    STAGE_ALONE = 32,
    STAGE_UPDATE = 64,
};

struct stage_row {
    const char *name;
    bool (*compile)(struct pipeline *p, const struct document_value *specification,
                    struct error *err);
    unsigned flags;
    const char *why; /* it is refused */
};

enum {
    FIRST = STAGE_FIRST,
    LAST = STAGE_LAST,
    TOP = STAGE_TOP,
    NO_FACET = STAGE_NO_FACET,
    SOURCE = STAGE_SOURCE,
    ALONE = STAGE_ALONE,
    UPDATE = STAGE_UPDATE,
};

static const struct stage_row rows[] = {
#define STAGE(name, function, flags) {name, function, flags, NULL},
#define STAGE_REFUSED(name, why) {name, NULL, 0, why},
#include "front/mongo/pipeline/stages.def"
#undef STAGE
#undef STAGE_REFUSED
};

const char *mongo_pipeline_stage(size_t number, const char **ret_why)
{
    if (number >= ARRAY_LEN(rows))
        return NULL;
    *ret_why = rows[number].why;
    return rows[number].name;
}

static const struct stage_row *row_find(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (slice_equal(name, slice_of_text(rows[i].name)))
            return &rows[i];
    return NULL;
}

/* --- Appending ------------------------------------------------------------------------------- */

struct query_stage *pipeline_stage(struct pipeline *p, enum query_stage_kind kind)
{
    struct query_stage *stage;

    if (p->count == p->capacity) {
        const struct query_stage *before = p->stages;

        p->capacity = p->capacity ? 2 * p->capacity : 16;
        p->stages = ARENA_ARRAY(p->build->arena, struct query_stage, p->capacity);
        if (p->count)
            memcpy(p->stages, before, p->count * sizeof *before);
    }
    ++p->shared->stages;
    stage = &p->stages[p->count++];
    *stage = (struct query_stage){.kind = kind};
    return stage;
}

void pipeline_project(struct pipeline *p, const struct query_expression *document)
{
    uint32_t slot = p->slot == p->turns[0] ? p->turns[1] : p->turns[0];

    pipeline_stage(p, QUERY_STAGE_PROJECT)->project = (struct query_project){document, slot};
    p->slot = slot;
    p->build->searched = NULL; /* scores are of the document as it is stored */
}

const struct query_expression *pipeline_root(struct pipeline *p)
{
    return p->slot == SLOT_ITEM ? mongo_expression_root(p->build, SLOT_ITEM)
                                : query_variable(p->build, p->slot);
}

void pipeline_settle(struct pipeline *p)
{
    const void *searched = p->build->searched;

    if (p->slot == SLOT_ITEM)
        pipeline_project(p, pipeline_root(p));
    p->build->searched = searched;
}

struct mongo_expression_options pipeline_scope(const struct pipeline *p)
{
    return (struct mongo_expression_options){p->slot, p->variables, p->variable_count, p->collator};
}

bool pipeline_expression(struct pipeline *p, const struct document_value *specification,
                         const struct query_expression **ret_expression, struct error *err)
{
    const struct mongo_expression_options scope = pipeline_scope(p);

    return mongo_expression_compile(specification, &scope, p->build, ret_expression, err);
}

const struct query_expression *pipeline_or_null(struct query_build *build,
                                                const struct query_expression *value)
{
    return query_coalesce(build, value, query_constant(build, document_null()));
}

const struct query_expression *pipeline_node(struct query_build *build,
                                             const struct query_kind *kind, const void *data,
                                             const struct query_expression *const *children,
                                             size_t count)
{
    struct pipeline_node *node = query_node(build, kind, sizeof *node, children, count);

    if (!build->failed)
        node->data = data;
    return &node->head;
}

bool pipeline_fields(const struct document_value *specification, const struct stage_terms *terms,
                     const struct stage_field *fields, size_t count, struct error *err)
{
    struct document_iter iter;

    for (size_t i = 0; i < count; i++)
        *fields[i].value = document_undefined();
    if (specification->type != DOCUMENT_OBJECT)
        return mongo_error_set(err, terms->code_object,
                               "the %s stage specification must be an object, but found %s",
                               terms->name, mongo_type_name(specification->type));
    document_iter_init(&iter, specification->document);
    while (document_iter_next(&iter)) {
        size_t i = 0;

        while (i < count && !slice_equal(iter.key, slice_of_text(fields[i].name)))
            i++;
        if (i == count)
            return mongo_error_set(err, terms->code_unknown, "unrecognized option to %s: %.*s",
                                   terms->name, (int)MIN(iter.key.len, (size_t)80),
                                   (const char *)iter.key.data);
        *fields[i].value = iter.value;
    }
    return true;
}

bool pipeline_is_field_name(struct slice name)
{
    return name.len && name.data[0] != '$' && !memchr(name.data, '.', name.len) &&
           !memchr(name.data, 0, name.len);
}

bool pipeline_path_check(struct slice path, struct error *err)
{
    struct slice rest = path, head, tail;
    bool last;

    if (!path.len)
        return mongo_error_set(err, 40352, "FieldPath cannot be constructed with empty string");
    do {
        last = !slice_split(rest, '.', &head, &tail);
        if (last)
            head = rest;
        if (!head.len)
            return mongo_error_set(err, 15998, "FieldPath field names may not be empty strings.");
        if (head.data[0] == '$')
            return mongo_error_set(err, 16410,
                                   "FieldPath field names may not start with '$'. Consider using "
                                   "$getField or $setField.");
        if (memchr(head.data, 0, head.len))
            return mongo_error_set(err, 16411, "FieldPath field names may not contain '\\0'.");
        rest = tail;
    } while (!last);
    return true;
}

/* --- Stages ---------------------------------------------------------------------------------- */

static bool place_check(const struct pipeline *p, const struct stage_row *row, struct error *err)
{
    if (p->in_facet && (row->flags & STAGE_NO_FACET))
        return mongo_error_set(err, 40600, "%s is not allowed to be used within a $facet stage",
                               row->name);
    if (p->nesting && (row->flags & STAGE_TOP))
        return mongo_error_set(err, 51047, "%s is not allowed within a $lookup's sub-pipeline",
                               row->name);
    if ((row->flags & STAGE_FIRST) && (p->position || p->in_facet))
        return mongo_error_set(err, 40602, "%s is only valid as the first stage in a pipeline",
                               row->name);
    if ((row->flags & STAGE_LAST) && p->position + 1 < p->length)
        return mongo_error_set(err, 40601, "%s can only be the final stage in the pipeline",
                               row->name);
    if (p->nesting || p->in_facet || p->position || !(row->flags & STAGE_SOURCE))
        return true;
    if ((row->flags & STAGE_ALONE) && p->options->collection.data)
        return mongo_error_set(err, MONGO_INVALID_NAMESPACE,
                               "%s can only be run with {aggregate: 1}", row->name);
    return true;
}

static bool stage_read(const struct document_value *value, struct slice *ret_name,
                       struct document_value *ret_specification, struct error *err)
{
    struct document_iter iter;

    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "Each element of the 'pipeline' array must be an object");
    document_iter_init(&iter, value->document);
    if (!document_iter_next(&iter))
        return mongo_error_set(err, 40323,
                               "A pipeline stage specification object must contain exactly one "
                               "field.");
    *ret_name = iter.key;
    *ret_specification = iter.value;
    if (document_iter_next(&iter))
        return mongo_error_set(err, 40323,
                               "A pipeline stage specification object must contain exactly one "
                               "field.");
    return true;
}

static bool row_of(struct slice name, const struct stage_row **ret_row, struct error *err)
{
    *ret_row = row_find(name);
    if (!*ret_row)
        return mongo_error_set(err, 40324, "Unrecognized pipeline stage name: '%.*s'",
                               (int)MIN(name.len, (size_t)80), (const char *)name.data);
    return !(*ret_row)->why ||
           mongo_error_set(err, MONGO_NOT_IMPLEMENTED, "%s: %s", (*ret_row)->name, (*ret_row)->why);
}

static bool stage_append(struct pipeline *p, const struct document_value *value, struct error *err)
{
    struct document_value specification;
    const struct stage_row *row;
    struct slice name;

    if (!stage_read(value, &name, &specification, err) || !row_of(name, &row, err) ||
        !place_check(p, row, err))
        return false;
    if (!p->position && !p->options->collection.data && !p->nesting && !p->in_facet &&
        !(row->flags & STAGE_ALONE))
        return mongo_error_set(err, MONGO_INVALID_NAMESPACE,
                               "{aggregate: 1} is not valid for '%s'; a collection is required.",
                               row->name);
    p->stage_name = slice_of_text(row->name);
    if (!row->compile(p, &specification, err))
        return false;
    if (p->build->failed) {
        *err = p->build->error;
        return false;
    }
    if (p->shared->stages > PIPELINE_CHAIN_MAX)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "Pipeline length must be no longer than %d stages",
                               MONGO_PIPELINE_STAGES_MAX);
    return true;
}

bool pipeline_append(struct pipeline *p, struct slice stages, struct error *err)
{
    const struct document_value *list;
    size_t count;

    if (document_count(stages) > MONGO_PIPELINE_STAGES_MAX)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "Pipeline length must be no longer than %d stages",
                               MONGO_PIPELINE_STAGES_MAX);
    list = mongo_pipeline_reorder(stages, p->build->arena, &count);
    p->length = p->position + count;
    for (size_t i = 0; i < count; i++, p->position++)
        if (!stage_append(p, &list[i], err))
            return false;
    return true;
}

/* --- Plans ----------------------------------------------------------------------------------- */

static uint64_t fingerprint_of(struct slice pipeline, const struct mongo_pipeline_options *options)
{
    const struct slice parts[] = {pipeline,     options->database,  options->collection,
                                  options->let, options->collation, options->prefix};
    uint64_t print = 17;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        print = XXH3_64bits_withSeed(parts[i].len ? parts[i].data : (const uint8_t *)"",
                                     parts[i].len, print * 31 + parts[i].len);
    return print;
}

static bool pipeline_plan(struct pipeline *p, struct query_plan *plan, struct error *err)
{
    struct query_chain chain = {p->stages, p->count, pipeline_root(p)};

    *plan = (struct query_plan){.slot_count = SLOT_RESULTS,
                                .order = DOCUMENT_ORDER_MONGO,
                                .order_free = true,
                                .constant = p->constant};
    query_chain_plan(p->build, &chain, plan);
    if (p->build->failed)
        *err = p->build->error;
    return !p->build->failed;
}

/* Within one pipeline everything compares by one collation. */
static bool view_collation_check(const struct pipeline *p, struct slice name,
                                 const struct mongo_pipeline_view *view, struct error *err)
{
    const struct document_collator *collator;

    if (!mongo_collator_find(view->collation, &collator, err))
        return false;
    return collator == p->collator ||
           mongo_error_set(err, MONGO_OPTION_NOT_SUPPORTED_ON_VIEW,
                           "the collation of the view %.*s is another than that of the pipeline",
                           (int)MIN(name.len, (size_t)64), (const char *)name.data);
}

bool pipeline_other_compile(struct pipeline *p, const struct pipeline_other *other,
                            struct slice *ret_container, struct query_plan **ret_plan,
                            struct error *err)
{
    struct arena *arena = p->build->arena;
    struct mongo_pipeline_options options = *p->options;
    struct pipeline inner = {.build = p->build,
                             .options = &options,
                             .collator = p->collator,
                             .turns = {SLOT_DOCUMENT, SLOT_OTHER},
                             .variables = other->variables,
                             .variable_count = other->variable_count,
                             .shared = p->shared,
                             .nesting = p->nesting + 1};

    if (inner.nesting > PIPELINE_NESTING_MAX)
        return mongo_error_set(err, MONGO_MAX_SUB_PIPELINE_DEPTH,
                               "Maximum number of nested sub-pipelines exceeded. "
                               "Limit is %d",
                               PIPELINE_NESTING_MAX);
    p->build->searched = NULL; /* documents of another collection have no score */
    options.database = other->database;
    options.collection = other->collection;
    *ret_container = other->collection.data
                         ? arena_printf(arena, "%.*s.%.*s", SLICE_ARG(other->database),
                                        SLICE_ARG(other->collection))
                         : SLICE("");
    if (other->collection.data && options.host.view) {
        struct mongo_pipeline_view view = {0};

        if (!options.host.view(options.host.self, other->database, other->collection, arena, &view,
                               err))
            return false;
        if (view.pipeline.data) {
            *ret_container =
                arena_printf(arena, "%.*s.%.*s", SLICE_ARG(other->database), SLICE_ARG(view.base));
            if (!view_collation_check(p, other->collection, &view, err) ||
                !pipeline_append(&inner, view.pipeline, err))
                return false;
        }
    }
    if (other->pipeline.data && !pipeline_append(&inner, other->pipeline, err))
        return false;
    if (!other->collection.data && !inner.constant)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "a sub-pipeline without a collection must start with $documents");
    *ret_plan = ARENA_NEW(arena, struct query_plan);
    if (!pipeline_plan(&inner, *ret_plan, err))
        return false;
    (*ret_plan)->fingerprint = p->shared->stages + 1;
    (*ret_plan)->slot_count = QUERY_SLOTS_MAX;
    return true;
}

bool mongo_pipeline_compile(struct slice pipeline, const struct mongo_pipeline_options *options,
                            struct query_build *build, struct mongo_pipeline *ret_pipeline,
                            struct error *err)
{
    struct pipeline_shared shared = {.slot_next = SLOT_FREE, .slot_max = SLOT_RESULTS};
    struct mongo_expression_options outer = {.variables = options->variables,
                                             .variable_count = options->variable_count};
    struct pipeline p = {.build = build,
                         .options = options,
                         .turns = {SLOT_DOCUMENT, SLOT_OTHER},
                         .shared = &shared};
    struct mongo_pipeline made = {0};

    if (!mongo_collator_find(options->collation, &p.collator, err))
        return false;
    outer.collator = p.collator;
    if (!mongo_expression_let(options->let, &outer, build, &p.variables, &p.variable_count, err))
        return false;
    if (options->prefix.data && !pipeline_append(&p, options->prefix, err))
        return false;
    if (!pipeline_append(&p, pipeline, err))
        return false;
    if (!options->collection.data && !p.constant)
        return mongo_error_set(err, MONGO_INVALID_NAMESPACE,
                               "{aggregate: 1} is not valid for an empty pipeline.");
    if (!pipeline_plan(&p, &made.plan, err))
        return false;
    made.plan.slot_count = shared.slot_max;
    made.plan.fingerprint = fingerprint_of(pipeline, options);
    made.collectionless = p.constant;
    made.target = p.target;
    made.near = p.near;
    *ret_pipeline = made;
    return true;
}

/* --- Updates --------------------------------------------------------------------------------- */

/* Stages one after the other would need a row; here each is an expression over a slot that the one
 * before it has filled. */
struct update_node {
    struct query_expression head;
    uint32_t slot;
};

static bool update_evaluate(const struct query_expression *expression,
                            struct query_context *context, struct document_value *ret_value,
                            struct error *err)
{
    const struct update_node *node = (const struct update_node *)expression;
    struct query_slot before = context->slots[node->slot];
    struct document_value value = before.value;
    bool fine = true;

    for (uint32_t i = 0; fine && i < expression->child_count; i++) {
        fine = query_evaluate(expression->children[i], context, &value, err);
        context->slots[node->slot] = (struct query_slot){.value = value};
    }
    context->slots[node->slot] = before;
    *ret_value = value;
    return fine;
}

static const struct query_kind update_kind = {"update", update_evaluate, QUERY_STABLE};

bool mongo_pipeline_update(struct slice pipeline, const struct mongo_expression_options *options,
                           struct query_build *build, const struct query_expression **ret_document,
                           struct error *err)
{
    struct pipeline_shared shared = {.slot_next = SLOT_FREE, .slot_max = SLOT_RESULTS};
    const struct mongo_pipeline_options none = {.database = SLICE("")};
    const struct query_expression **steps;
    struct update_node *node;
    struct document_iter iter;
    size_t count = document_count(pipeline), at = 0;

    if (count > MONGO_PIPELINE_STAGES_MAX)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "Pipeline length must be no longer than %d stages",
                               MONGO_PIPELINE_STAGES_MAX);
    steps = ARENA_ARRAY(build->arena, const struct query_expression *, count + 2);
    document_iter_init(&iter, pipeline);
    while (document_iter_next(&iter)) {
        struct pipeline p = {.build = build,
                             .options = &none,
                             .slot = options->slot,
                             .turns = {options->slot, options->slot},
                             .variables = options->variables,
                             .variable_count = options->variable_count,
                             .shared = &shared};
        struct document_value specification;
        const struct stage_row *row;
        struct slice name;

        if (!stage_read(&iter.value, &name, &specification, err) || !row_of(name, &row, err))
            return false;
        if (!(row->flags & STAGE_UPDATE))
            return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                                   "%s is not allowed to be used within an update", row->name);
        p.stage_name = slice_of_text(row->name);
        if (!row->compile(&p, &specification, err))
            return false;
        assert(p.count == 1 && p.stages[0].kind == QUERY_STAGE_PROJECT);
        steps[at++] = p.stages[0].project.select;
    }
    if (!at)
        steps[at++] = mongo_expression_root(build, options->slot);
    node = query_node(build, &update_kind, sizeof *node, steps, at);
    if (build->failed) {
        *err = build->error;
        return false;
    }
    node->slot = options->slot;
    *ret_document = &node->head;
    return true;
}
