/* Documents of other collections: $lookup, $graphLookup and $unionWith.
 *
 * Equality of $lookup is that of filters: {foreignField: {$in: values of localField}}, so arrays
 * match by their elements and null what is missing, and the indexes of the other collection serve
 * as they do for find. */
#include "front/mongo/pipeline/pipeline_private.h"

/* --- Pairs ----------------------------------------------------------------------------------- */

struct pairing {
    struct query_pairing head;
    struct slice path;                        /* of the other collection's documents */
    const struct document_collator *collator; /* NULL: texts compare by their bytes */
};

/* {$or: [{path: {$in: values}}, {path: {$eq: pattern}}, ...]}: in $in a pattern would be one to
 * match with, not a value. */
static struct slice filter_of(struct slice path, struct slice values, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;
    size_t filter, list, part, in, array;
    uint32_t count = 0, parts = 1;

    buf_init(&buf, SIZE_MAX / 2);
    filter = document_begin(&buf);
    list = document_append_array_begin(&buf, SLICE("$or"));
    part = document_append_object_begin(&buf, SLICE("0"));
    in = document_append_object_begin(&buf, path);
    array = document_append_array_begin(&buf, SLICE("$in"));
    document_iter_init(&iter, values);
    while (document_iter_next(&iter))
        if (iter.value.type != DOCUMENT_REGEX)
            document_append(&buf, document_index_key(count++, text), &iter.value);
    document_end(&buf, array);
    document_end(&buf, in);
    document_end(&buf, part);
    document_iter_init(&iter, values);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_REGEX)
            continue;
        part = document_append_object_begin(&buf, document_index_key(parts++, text));
        in = document_append_object_begin(&buf, path);
        document_append(&buf, SLICE("$eq"), &iter.value);
        document_end(&buf, in);
        document_end(&buf, part);
    }
    document_end(&buf, list);
    document_end(&buf, filter);
    return arena_copy(arena, buf_slice(&buf));
}

static bool pairing_condition(const struct query_pairing *self, struct query_build *build,
                              const struct document_value *local,
                              const struct query_expression **ret_condition, const void **ret_row,
                              struct error *err)
{
    const struct pairing *pairing = (const struct pairing *)self;
    const struct mongo_match *match;

    *ret_condition = NULL;
    *ret_row = NULL;
    if (local->type != DOCUMENT_ARRAY || !document_count(local->document))
        return true;
    if (!mongo_match_parse(filter_of(pairing->path, local->document, build->arena),
                           &(struct mongo_match_options){.collator = pairing->collator}, build,
                           &match, err))
        return false;
    *ret_row = match;
    *ret_condition = mongo_match_expression(match, build);
    return true;
}

static bool pairing_belongs(const void *row, const struct document_value *foreign,
                            struct query_context *context, bool *ret_belongs, struct error *err)
{
    return mongo_match_holds(row, foreign, context, ret_belongs, err);
}

static const struct query_pairing *pairing_new(struct pipeline *p, struct slice path)
{
    struct pairing *pairing = ARENA_NEW(p->build->arena, struct pairing);

    pairing->path = arena_copy(p->build->arena, path);
    pairing->collator = p->collator;
    pairing->head = (struct query_pairing){pairing_condition, pairing_belongs,
                                           p->collator ? SLICE_NONE : pairing->path};
    return &pairing->head;
}

/* --- Values along a path --------------------------------------------------------------------- */

enum { VALUES_PATH_MAX = 100 };

struct values_data {
    uint32_t slot;
    const struct slice *names;
    size_t count;
    bool null_missing; /* where nothing is there, null is */
};

struct values {
    const struct values_data *data;
    struct query_context *context;
    uint32_t count;
    struct error *err;
};

static bool value_write(struct values *values, const struct document_value *value)
{
    char text[DOCUMENT_INDEX_SIZE];

    document_append(&values->context->scratch, document_index_key(values->count++, text), value);
    return query_work(values->context, 1, values->err);
}

static bool missing_write(struct values *values)
{
    const struct document_value null = document_null();

    return !values->data->null_missing || value_write(values, &null);
}

/* Arrays on the way are walked, and so is one at the end. */
static bool values_walk(struct values *values, const struct document_value *value, size_t at)
{
    const struct values_data *data = values->data;
    struct document_value inner;
    struct document_iter iter;

    if (value->type == DOCUMENT_ARRAY) {
        document_iter_init(&iter, value->document);
        while (document_iter_next(&iter)) {
            bool leaf = at == data->count;

            if (leaf ? !value_write(values, &iter.value)
                     : iter.value.type == DOCUMENT_OBJECT && !values_walk(values, &iter.value, at))
                return false;
        }
        return true;
    }
    if (at == data->count)
        return value->type == DOCUMENT_UNDEFINED ? missing_write(values)
                                                 : value_write(values, value);
    if (value->type != DOCUMENT_OBJECT || !document_find(value->document, data->names[at], &inner))
        return missing_write(values);
    return values_walk(values, &inner, at + 1);
}

static bool values_evaluate(const struct query_expression *expression,
                            struct query_context *context, struct document_value *ret_value,
                            struct error *err)
{
    struct values values = {
        .data = ((const struct pipeline_node *)expression)->data, .context = context, .err = err};
    size_t mark = query_build_begin(context), begin = document_begin(&context->scratch);
    struct document_value document = context->slots[values.data->slot].value;

    if (!values_walk(&values, &document, 0))
        return query_build_drop(context, mark);
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_value, err);
}

static const struct query_kind values_kind = {"values", values_evaluate, QUERY_STABLE};

/* The values a path of the document in a slot leads to, as an array. */
static const struct query_expression *values_of(struct pipeline *p, struct slice path,
                                                uint32_t slot, bool null_missing)
{
    struct values_data *data = ARENA_NEW(p->build->arena, struct values_data);
    const struct query_expression *root = query_variable(p->build, slot);
    struct slice rest = arena_copy(p->build->arena, path), head, tail,
                 *names = ARENA_ARRAY(p->build->arena, struct slice, path.len / 2 + 2);

    while (slice_split(rest, '.', &head, &tail)) {
        names[data->count++] = head;
        rest = tail;
    }
    names[data->count++] = rest;
    data->names = names;
    data->slot = slot;
    data->null_missing = null_missing;
    return pipeline_node(p->build, &values_kind, data, &root, 1);
}

/* --- Where from ------------------------------------------------------------------------------ */

/* "coll", or {db, coll}; value undefined: none. */
static bool from_read(struct pipeline *p, const struct document_value *value, const char *stage,
                      struct pipeline_other *other, struct error *err)
{
    struct document_value database, collection;
    const struct stage_field fields[] = {{"db", &database}, {"coll", &collection}};
    const struct stage_terms terms = {stage, MONGO_FAILED_TO_PARSE, MONGO_FAILED_TO_PARSE};

    other->database = p->options->database;
    other->collection = SLICE_NONE;
    if (value->type == DOCUMENT_UNDEFINED)
        return true;
    if (value->type == DOCUMENT_OBJECT) {
        if (!pipeline_fields(value, &terms, fields, ARRAY_LEN(fields), err))
            return false;
        if (database.type == DOCUMENT_STRING)
            other->database = arena_copy(p->build->arena, database.text);
    } else {
        collection = *value;
    }
    if (collection.type != DOCUMENT_STRING || !collection.text.len)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "%s 'from' must be a string, but found %s", stage,
                               mongo_type_name(collection.type));
    if (!slice_equal(other->database, p->options->database))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "%s with a collection of another database is not supported", stage);
    other->collection = arena_copy(p->build->arena, collection.text);
    return true;
}

/* --- $lookup --------------------------------------------------------------------------------- */

/* Variables of `let`: each is a slot of the other plan. */
static bool lets_compile(struct pipeline *p, const struct document_value *let,
                         struct query_lookup *lookup, struct pipeline_other *other,
                         struct error *err)
{
    struct arena *arena = p->build->arena;
    size_t count = 0;
    struct mongo_variable *variables;
    struct document_iter iter;
    struct query_let *lets;

    other->variables = p->variables;
    other->variable_count = p->variable_count;
    if (let->type == DOCUMENT_UNDEFINED)
        return true;
    if (let->type != DOCUMENT_OBJECT)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "$lookup argument 'let' must be an object, is type %s",
                               mongo_type_name(let->type));
    count = document_count(let->document);
    variables = ARENA_ARRAY(arena, struct mongo_variable, p->variable_count + count + 1);
    lets = ARENA_ARRAY(arena, struct query_let, count + 1);
    if (p->variable_count)
        memcpy(variables, p->variables, p->variable_count * sizeof *variables);
    document_iter_init(&iter, let->document);
    for (; document_iter_next(&iter); lookup->let_count++) {
        uint32_t slot = p->shared->slot_next;
        const struct query_expression *value;

        if (slot == SLOT_VARIABLES_MAX)
            return mongo_error_set(err, MONGO_BAD_VALUE,
                                   "a pipeline has more than %d variables of $lookup",
                                   SLOT_VARIABLES_MAX - SLOT_FREE);
        p->shared->slot_next++;
        if (!mongo_variable_name_check(iter.key, err) ||
            !pipeline_expression(p, &iter.value, &value, err))
            return false;
        lets[lookup->let_count] = (struct query_let){value, slot};
        variables[other->variable_count++] =
            (struct mongo_variable){arena_copy(arena, iter.key), query_variable(p->build, slot)};
    }
    lookup->lets = lets;
    other->variables = variables;
    return true;
}

struct lookup {
    struct document_value from, local, foreign, as, let, pipeline;
};

static bool string_check(const struct document_value *value, const char *name, struct error *err)
{
    return value->type == DOCUMENT_STRING || value->type == DOCUMENT_UNDEFINED ||
           mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                           "$lookup argument '%s' must be a string, is type %s", name,
                           mongo_type_name(value->type));
}

static bool lookup_check(const struct lookup *l, struct error *err)
{
    bool equal = l->local.type != DOCUMENT_UNDEFINED || l->foreign.type != DOCUMENT_UNDEFINED;
    bool piped = l->pipeline.type != DOCUMENT_UNDEFINED;

    if (!string_check(&l->local, "localField", err) ||
        !string_check(&l->foreign, "foreignField", err) || !string_check(&l->as, "as", err))
        return false;
    if (l->as.type == DOCUMENT_UNDEFINED)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE, "must specify 'as' field for a $lookup");
    if (equal && (l->local.type == DOCUMENT_UNDEFINED || l->foreign.type == DOCUMENT_UNDEFINED))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "$lookup requires both or neither of 'localField' and "
                               "'foreignField' to be specified");
    if (!equal && !piped)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "$lookup requires either 'pipeline' or both 'localField' and "
                               "'foreignField' to be specified");
    if (piped && l->pipeline.type != DOCUMENT_ARRAY)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "'pipeline' option must be specified as an array");
    if (l->let.type != DOCUMENT_UNDEFINED && !piped)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "$lookup with a 'let' argument must also specify 'pipeline'");
    if (l->from.type == DOCUMENT_UNDEFINED && !piped)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "must specify 'pipeline' when 'from' "
                               "is empty");
    return pipeline_path_check(l->as.text, err) &&
           (!equal ||
            (pipeline_path_check(l->local.text, err) && pipeline_path_check(l->foreign.text, err)));
}

/* The looked-up array becomes a field of the document. */
static bool beside_set(struct pipeline *p, struct slice path, const struct query_expression *value,
                       struct error *err)
{
    const struct query_expression *document;

    if (!mongo_shape_set(path, value, p->slot, p->build, &document, err))
        return false;
    pipeline_project(p, document);
    return true;
}

bool stage_lookup(struct pipeline *p, const struct document_value *specification, struct error *err)
{
    struct lookup l;
    const struct stage_field fields[] = {
        {"from", &l.from}, {"localField", &l.local}, {"foreignField", &l.foreign},
        {"as", &l.as},     {"let", &l.let},          {"pipeline", &l.pipeline}};
    const struct stage_terms terms = {"$lookup", MONGO_FAILED_TO_PARSE, MONGO_FAILED_TO_PARSE};
    struct query_lookup lookup = {.slot = SLOT_BESIDE};
    struct pipeline_other other = {0};
    struct query_plan *plan;

    if (!pipeline_fields(specification, &terms, fields, ARRAY_LEN(fields), err) ||
        !lookup_check(&l, err) || !from_read(p, &l.from, "$lookup", &other, err))
        return false;
    pipeline_settle(p);
    other.pipeline = l.pipeline.type == DOCUMENT_ARRAY ? l.pipeline.document : SLICE_NONE;
    if (!lets_compile(p, &l.let, &lookup, &other, err) ||
        !pipeline_other_compile(p, &other, &lookup.container, &plan, err))
        return false;
    if (l.local.type == DOCUMENT_STRING) {
        if (plan->constant)
            return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                                   "$lookup by 'localField' over a pipeline that begins with "
                                   "documents of its own is not supported");
        lookup.local = values_of(p, l.local.text, p->slot, true);
        lookup.foreign = mongo_expression_root(p->build, SLOT_ITEM);
        lookup.pairing = pairing_new(p, l.foreign.text);
    }
    lookup.plan = plan;
    pipeline_stage(p, QUERY_STAGE_LOOKUP)->lookup = lookup;
    return beside_set(p, l.as.text, query_variable(p->build, SLOT_BESIDE), err);
}

/* --- $unionWith ------------------------------------------------------------------------------ */

bool stage_union_with(struct pipeline *p, const struct document_value *specification,
                      struct error *err)
{
    struct document_value collection, pipeline = document_undefined();
    const struct stage_field fields[] = {{"coll", &collection}, {"pipeline", &pipeline}};
    const struct stage_terms terms = {"$unionWith", MONGO_FAILED_TO_PARSE, 40415};
    struct pipeline_other other = {.variables = p->variables, .variable_count = p->variable_count};
    struct query_union unite = {0};
    struct query_plan *plan;

    if (specification->type == DOCUMENT_STRING)
        collection = *specification;
    else if (!pipeline_fields(specification, &terms, fields, ARRAY_LEN(fields), err))
        return false;
    if (pipeline.type != DOCUMENT_UNDEFINED && pipeline.type != DOCUMENT_ARRAY)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "'pipeline' option must be specified as an array");
    if (!from_read(p, &collection, "$unionWith", &other, err))
        return false;
    other.pipeline = pipeline.type == DOCUMENT_ARRAY ? pipeline.document : SLICE_NONE;
    pipeline_settle(p);
    if (!pipeline_other_compile(p, &other, &unite.container, &plan, err))
        return false;
    unite.plan = plan;
    unite.slot = p->slot;
    pipeline_stage(p, QUERY_STAGE_UNION)->unite = unite;
    return true;
}

/* --- $graphLookup ---------------------------------------------------------------------------- */

/* [[document, depth], ...] becomes [document, ...], with the depth where it was asked for. */
struct graph_data {
    struct slice depth; /* field; absent: none */
};

static bool depth_append(struct query_context *context, struct slice field, struct slice key,
                         const struct document_value pair[2])
{
    struct buf *out = &context->scratch;
    struct document_iter iter;
    size_t begin;

    begin = document_append_object_begin(out, key);
    document_iter_init(&iter, pair[0].document);
    while (document_iter_next(&iter))
        if (!slice_equal(iter.key, field))
            document_append(out, iter.key, &iter.value);
    document_append(out, field, &pair[1]);
    document_end(out, begin);
    return true;
}

static bool graph_evaluate(const struct query_expression *expression, struct query_context *context,
                           struct document_value *ret_value, struct error *err)
{
    const struct graph_data *data = ((const struct pipeline_node *)expression)->data;
    size_t mark = query_build_begin(context), begin = document_begin(&context->scratch);
    const struct document_value *found = &context->slots[SLOT_BESIDE].value;
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;
    uint32_t count = 0;

    if (found->type == DOCUMENT_ARRAY) {
        document_iter_init(&iter, found->document);
        while (document_iter_next(&iter)) {
            struct slice key = document_index_key(count++, text);
            struct document_value pair[2] = {document_undefined(), document_undefined()};

            if (!query_work(context, 1 + (iter.value.document.len >> 6), err))
                return query_build_drop(context, mark);
            (void)document_find_index(iter.value.document, 0, &pair[0]);
            (void)document_find_index(iter.value.document, 1, &pair[1]);
            if (data->depth.data && pair[0].type == DOCUMENT_OBJECT)
                (void)depth_append(context, data->depth, key, pair);
            else
                document_append(&context->scratch, key, &pair[0]);
        }
    }
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_value, err);
}

static const struct query_kind graph_kind = {"graph", graph_evaluate, QUERY_STABLE};

/* What a search begins with: the elements of an array, or the value; null for nothing. */
static bool start_evaluate(const struct query_expression *expression, struct query_context *context,
                           struct document_value *ret_value, struct error *err)
{
    struct document_value value;
    size_t mark, begin;

    if (!query_evaluate(expression->children[0], context, &value, err))
        return false;
    *ret_value = value;
    if (value.type == DOCUMENT_ARRAY)
        return true;
    if (value.type == DOCUMENT_UNDEFINED)
        value = document_null();
    mark = query_build_begin(context);
    begin = document_begin(&context->scratch);
    document_append(&context->scratch, SLICE("0"), &value);
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_value, err);
}

static const struct query_kind start_kind = {"start", start_evaluate, QUERY_STABLE};

struct graph {
    struct document_value from, start, connect_from, connect_to, as, depth_max, depth, restriction;
};

static bool graph_path_check(const struct document_value *value, const char *name,
                             struct error *err)
{
    if (value->type != DOCUMENT_STRING)
        return mongo_error_set(err, 40103, "expected string as argument for %s, found: %s", name,
                               mongo_type_name(value->type));
    return pipeline_path_check(value->text, err);
}

static bool graph_check(const struct graph *g, uint64_t *ret_steps_max, struct error *err)
{
    int64_t depth;

    if (g->from.type == DOCUMENT_UNDEFINED || g->start.type == DOCUMENT_UNDEFINED ||
        g->connect_from.type == DOCUMENT_UNDEFINED || g->connect_to.type == DOCUMENT_UNDEFINED ||
        g->as.type == DOCUMENT_UNDEFINED)
        return mongo_error_set(err, 40105,
                               "$graphLookup requires 'from', 'as', 'startWith', "
                               "'connectFromField', and 'connectToField' to be specified.");
    if (!graph_path_check(&g->connect_from, "connectFromField", err) ||
        !graph_path_check(&g->connect_to, "connectToField", err) ||
        !graph_path_check(&g->as, "as", err))
        return false;
    if (g->depth.type != DOCUMENT_UNDEFINED) {
        if (!graph_path_check(&g->depth, "depthField", err))
            return false;
        if (memchr(g->depth.text.data, '.', g->depth.text.len))
            return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                                   "$graphLookup: a depthField with dots is not offered");
    }
    if (g->restriction.type != DOCUMENT_UNDEFINED && g->restriction.type != DOCUMENT_OBJECT)
        return mongo_error_set(err, 40185,
                               "$graphLookup 'restrictSearchWithMatch' must be an object, got %s",
                               mongo_type_name(g->restriction.type));
    *ret_steps_max = UINT64_MAX;
    if (g->depth_max.type == DOCUMENT_UNDEFINED)
        return true;
    if (!document_is_number(&g->depth_max))
        return mongo_error_set(err, 40100, "maxDepth requires numeric argument, found type: %s",
                               mongo_type_name(g->depth_max.type));
    if (!document_to_int64(&g->depth_max, &depth))
        return mongo_error_set(err, 40102, "maxDepth could not be represented as a long long");
    if (depth < 0)
        return mongo_error_set(err, 40101, "maxDepth requires a nonnegative argument, found: %lld",
                               (long long)depth);
    *ret_steps_max = (uint64_t)depth;
    return true;
}

/* [{$match: restriction}] as a pipeline of the other collection. */
static struct slice restriction_pipeline(struct pipeline *p, const struct document_value *match)
{
    CLEANUP(buf_done) struct buf buf;
    size_t list, stage;

    buf_init(&buf, SIZE_MAX / 2);
    if (match->type != DOCUMENT_OBJECT)
        return SLICE_NONE;
    list = document_begin(&buf);
    stage = document_append_object_begin(&buf, SLICE("0"));
    document_append(&buf, SLICE("$match"), match);
    document_end(&buf, stage);
    document_end(&buf, list);
    return arena_copy(p->build->arena, buf_slice(&buf));
}

bool stage_graph_lookup(struct pipeline *p, const struct document_value *specification,
                        struct error *err)
{
    struct graph g;
    const struct stage_field fields[] = {{"from", &g.from},
                                         {"startWith", &g.start},
                                         {"connectFromField", &g.connect_from},
                                         {"connectToField", &g.connect_to},
                                         {"as", &g.as},
                                         {"maxDepth", &g.depth_max},
                                         {"depthField", &g.depth},
                                         {"restrictSearchWithMatch", &g.restriction}};
    const struct stage_terms terms = {"$graphLookup", 40327, 40104};
    struct query_build *build = p->build;
    struct query_graph *search = ARENA_NEW(build->arena, struct query_graph);
    struct graph_data *data = ARENA_NEW(build->arena, struct graph_data);
    struct query_lookup lookup = {.slot = SLOT_BESIDE, .graph = search};
    struct pipeline_other other = {.variables = p->variables, .variable_count = p->variable_count};
    const struct query_expression *start, *item = mongo_expression_root(build, SLOT_ITEM), *found;
    struct query_plan *plan;

    if (!pipeline_fields(specification, &terms, fields, ARRAY_LEN(fields), err) ||
        !graph_check(&g, &search->steps_max, err) ||
        !from_read(p, &g.from, "$graphLookup", &other, err))
        return false;
    pipeline_settle(p);
    other.pipeline = restriction_pipeline(p, &g.restriction);
    if (!pipeline_expression(p, &g.start, &start, err) ||
        !pipeline_other_compile(p, &other, &lookup.container, &plan, err) ||
        !mongo_expression_path(SLICE("_id"), item, build, &search->identity, err))
        return false;
    if (plan->rest || plan->constant)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "$graphLookup over a view is not offered");
    search->next = values_of(p, g.connect_from.text, SLOT_ITEM, false);
    data->depth =
        g.depth.type == DOCUMENT_STRING ? arena_copy(build->arena, g.depth.text) : SLICE_NONE;
    lookup.plan = plan;
    lookup.local = pipeline_node(build, &start_kind, NULL, &start, 1);
    lookup.foreign = item;
    lookup.pairing = pairing_new(p, g.connect_to.text);
    pipeline_stage(p, QUERY_STAGE_LOOKUP)->lookup = lookup;
    found = query_variable(build, SLOT_BESIDE);
    return beside_set(p, g.as.text, pipeline_node(build, &graph_kind, data, &found, 1), err);
}
