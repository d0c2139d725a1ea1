/* Stages that look at one document at a time, and those that order, count and choose them. */
#include "front/mongo/pipeline/pipeline_private.h"

#include "base/random.h"

#include <xxhash.h>

/* --- $match ---------------------------------------------------------------------------------- */

bool stage_match(struct pipeline *p, const struct document_value *specification, struct error *err)
{
    struct mongo_expression_options *scope =
        ARENA_NEW(p->build->arena, struct mongo_expression_options);
    bool first = !p->position && !p->nesting && !p->in_facet && !p->options->prefix.data;
    const struct mongo_match_options options = {.slot = p->slot,
                                                .collator = p->collator,
                                                .searches = first,
                                                .text = p->options->text,
                                                .expression = mongo_expression_hook,
                                                .expression_self = scope};
    const struct query_expression *match;
    struct document_value search;

    *scope = pipeline_scope(p);
    if (specification->type != DOCUMENT_OBJECT)
        return mongo_error_set(err, 15959, "the match filter must be an expression in an object");
    if (!document_count(specification->document))
        return true;
    if (!first && document_find(specification->document, SLICE("$text"), &search))
        return mongo_error_set(err, 17313,
                               "$match with $text is only allowed as the first pipeline stage");
    if (!mongo_match_compile(specification->document, &options, p->build, &match, err))
        return false;
    pipeline_stage(p, QUERY_STAGE_MATCH)->match = match;
    return true;
}

/* --- $sort, $skip, $limit -------------------------------------------------------------------- */

bool pipeline_sort(struct pipeline *p, struct slice sort, struct error *err)
{
    const struct query_order *order;
    size_t count;

    if (!mongo_sort_compile(sort, p->collator, p->slot, p->build, &order, &count, err))
        return false;
    if (count)
        pipeline_stage(p, QUERY_STAGE_SORT)->sort = (struct query_sort){order, count};
    pipeline_settle(p);
    return true;
}

bool stage_sort(struct pipeline *p, const struct document_value *specification, struct error *err)
{
    if (specification->type != DOCUMENT_OBJECT)
        return mongo_error_set(err, 15973, "the $sort key specification must be an object");
    if (!document_count(specification->document))
        return mongo_error_set(err, 15976, "$sort stage must have at least one sort key");
    return pipeline_sort(p, specification->document, err);
}

static bool amount_read(const struct document_value *specification, const char *name, int code,
                        int64_t *ret_amount, struct error *err)
{
    if (document_is_number(specification) && document_to_int64(specification, ret_amount) &&
        *ret_amount >= 0)
        return true;
    return mongo_error_set(err, code,
                           document_is_number(specification)
                               ? "invalid argument to %s stage: Expected a non-negative whole "
                                 "number"
                               : "invalid argument to %s stage: Expected a number",
                           name);
}

bool stage_limit(struct pipeline *p, const struct document_value *specification, struct error *err)
{
    int64_t amount;

    if (!amount_read(specification, "$limit", 5107201, &amount, err))
        return false;
    if (!amount)
        return mongo_error_set(err, 15958, "the limit must be positive");
    pipeline_settle(p);
    pipeline_stage(p, QUERY_STAGE_LIMIT)->amount = (uint64_t)amount;
    return true;
}

bool stage_skip(struct pipeline *p, const struct document_value *specification, struct error *err)
{
    int64_t amount;

    if (!amount_read(specification, "$skip", 5107200, &amount, err))
        return false;
    pipeline_settle(p);
    if (amount)
        pipeline_stage(p, QUERY_STAGE_SKIP)->amount = (uint64_t)amount;
    return true;
}

/* --- $sample --------------------------------------------------------------------------------- */

/* Documents are put in the order of a hash that nobody knows before; so the sample is the same on
 * all of its pages, whoever computes them. */
static bool chance_evaluate(const struct query_expression *expression,
                            struct query_context *context, struct document_value *ret_value,
                            struct error *err)
{
    const uint64_t *seed = ((const struct pipeline_node *)expression)->data;
    struct document_value value;

    if (!query_evaluate(expression->children[0], context, &value, err) ||
        !query_work(context, value.document.len >> 6, err))
        return false;
    *ret_value = document_int64(
        (int64_t)XXH3_64bits_withSeed(value.document.data, value.document.len, *seed));
    return true;
}

static const struct query_kind chance_kind = {"chance", chance_evaluate, QUERY_STABLE};

bool stage_sample(struct pipeline *p, const struct document_value *specification, struct error *err)
{
    struct document_value size;
    const struct stage_field fields[] = {{"size", &size}};
    const struct stage_terms terms = {"$sample", 28745, 28748};
    uint64_t *seed = ARENA_NEW(p->build->arena, uint64_t);
    const struct query_expression *root;
    struct query_order *order;
    int64_t amount;

    if (!pipeline_fields(specification, &terms, fields, 1, err))
        return false;
    if (size.type == DOCUMENT_UNDEFINED)
        return mongo_error_set(err, 28749, "$sample stage must specify a size");
    if (!document_is_number(&size))
        return mongo_error_set(err, 28746, "size argument to $sample must be a number");
    if (!document_to_int64(&size, &amount) || amount <= 0)
        return mongo_error_set(err, 28747, "size argument to $sample must be a positive integer");
    random_secret(seed, sizeof *seed);
    root = pipeline_root(p);
    order = ARENA_NEW(p->build->arena, struct query_order);
    order->expression = pipeline_node(p->build, &chance_kind, seed, &root, 1);
    pipeline_stage(p, QUERY_STAGE_SORT)->sort = (struct query_sort){order, 1};
    pipeline_settle(p);
    pipeline_stage(p, QUERY_STAGE_LIMIT)->amount = (uint64_t)amount;
    return true;
}

/* --- Documents anew -------------------------------------------------------------------------- */

static bool shape_append(struct pipeline *p, const struct document_value *specification,
                         bool adding, struct error *err)
{
    const struct mongo_expression_options scope = pipeline_scope(p);
    const char *name = adding && p->stage_name.len == 4 ? "$set"
                       : adding                         ? "$addFields"
                                                        : "$project";
    const struct query_expression *document;

    if (specification->type != DOCUMENT_OBJECT)
        return adding ? mongo_error_set(err, 40272,
                                        "%s specification stage must be an object, got "
                                        "%s",
                                        name, mongo_type_name(specification->type))
                      : mongo_error_set(err, 15969, "$project specification must be an object");
    if (adding
            ? !mongo_shape_add(specification->document, name, &scope, p->build, &document, err)
            : !mongo_shape_project(specification->document, name, &scope, p->build, &document, err))
        return false;
    pipeline_project(p, document);
    return true;
}

bool stage_project(struct pipeline *p, const struct document_value *specification,
                   struct error *err)
{
    return shape_append(p, specification, false, err);
}

bool stage_add_fields(struct pipeline *p, const struct document_value *specification,
                      struct error *err)
{
    return shape_append(p, specification, true, err);
}

bool stage_unset(struct pipeline *p, const struct document_value *specification, struct error *err)
{
    const struct mongo_expression_options scope = pipeline_scope(p);
    const struct query_expression *document;

    if (!mongo_shape_unset(specification, &scope, p->build, &document, err))
        return false;
    pipeline_project(p, document);
    return true;
}

/* The value of the child, which has to be an object. */
static bool root_evaluate(const struct query_expression *expression, struct query_context *context,
                          struct document_value *ret_value, struct error *err)
{
    const char *what = ((const struct pipeline_node *)expression)->data;
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, 256);
    if (!query_evaluate(expression->children[0], context, ret_value, err))
        return false;
    if (ret_value->type == DOCUMENT_OBJECT)
        return true;
    if (ret_value->type == DOCUMENT_UNDEFINED)
        buf_append(&text, "MISSING", 7);
    else
        mongo_text_append(&text, ret_value, 80);
    return mongo_error_set(
        err, 40228,
        "%s must evaluate to an object, but resulting value was: %.*s. Type of "
        "resulting value: '%s'.",
        what, (int)text.len, (const char *)text.data,
        ret_value->type == DOCUMENT_UNDEFINED ? "missing" : mongo_type_name(ret_value->type));
}

static const struct query_kind root_kind = {"root", root_evaluate, QUERY_STABLE};

static bool root_replace(struct pipeline *p, const struct document_value *expression,
                         const char *what, struct error *err)
{
    const struct query_expression *value;

    if (!pipeline_expression(p, expression, &value, err))
        return false;
    pipeline_project(p, pipeline_node(p->build, &root_kind, what, &value, 1));
    return true;
}

bool stage_replace_root(struct pipeline *p, const struct document_value *specification,
                        struct error *err)
{
    struct document_value root;
    const struct stage_field fields[] = {{"newRoot", &root}};
    const struct stage_terms terms = {"$replaceRoot", 40229, 40415};

    if (!pipeline_fields(specification, &terms, fields, 1, err))
        return false;
    if (root.type == DOCUMENT_UNDEFINED)
        return mongo_error_set(err, 40414,
                               "BSON field '$replaceRoot.newRoot' is missing but a required field");
    return root_replace(p, &root, "'newRoot' expression ", err);
}

bool stage_replace_with(struct pipeline *p, const struct document_value *specification,
                        struct error *err)
{
    return root_replace(p, specification, "'replacement document' ", err);
}

/* --- $redact --------------------------------------------------------------------------------- */

struct redact {
    uint32_t slot;
    const struct query_expression *decision;
    struct query_context *context;
    struct error *err;
};

static bool object_redact(struct redact *redact, const struct document_value *object,
                          struct slice key, bool *ret_kept, unsigned depth);

static bool array_redact(struct redact *redact, struct slice array, struct slice key,
                         unsigned depth)
{
    struct buf *out = &redact->context->scratch;
    size_t begin = document_append_array_begin(out, key);
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;
    uint32_t written = 0;

    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        struct slice place = document_index_key(written, text);
        bool kept = true;

        if (!query_work(redact->context, 1, redact->err))
            return false;
        if (iter.value.type == DOCUMENT_OBJECT) {
            if (!object_redact(redact, &iter.value, place, &kept, depth + 1))
                return false;
        } else if (iter.value.type == DOCUMENT_ARRAY) {
            if (!array_redact(redact, iter.value.document, place, depth + 1))
                return false;
        } else {
            document_append(out, place, &iter.value);
        }
        written += kept;
    }
    document_end(out, begin);
    return true;
}

static bool fields_redact(struct redact *redact, struct slice object, unsigned depth)
{
    struct document_iter iter;

    document_iter_init(&iter, object);
    while (document_iter_next(&iter)) {
        bool kept;

        if (!query_work(redact->context, 1, redact->err))
            return false;
        if (iter.value.type == DOCUMENT_OBJECT) {
            if (!object_redact(redact, &iter.value, iter.key, &kept, depth + 1))
                return false;
        } else if (iter.value.type == DOCUMENT_ARRAY) {
            if (!array_redact(redact, iter.value.document, iter.key, depth + 1))
                return false;
        } else {
            document_append(&redact->context->scratch, iter.key, &iter.value);
        }
    }
    return true;
}

/* key absent: the document itself, whose fields are appended as they are. */
static bool object_redact(struct redact *redact, const struct document_value *object,
                          struct slice key, bool *ret_kept, unsigned depth)
{
    struct query_context *context = redact->context;
    struct document_value decision;
    size_t begin;

    context->slots[redact->slot] = (struct query_slot){.value = *object};
    if (!query_evaluate(redact->decision, context, &decision, redact->err))
        return false;
    *ret_kept = false;
    if (decision.type == DOCUMENT_STRING && slice_equal(decision.text, SLICE("prune")))
        return true;
    if (decision.type != DOCUMENT_STRING || (!slice_equal(decision.text, SLICE("keep")) &&
                                             !slice_equal(decision.text, SLICE("descend"))))
        return mongo_error_set(redact->err, 17053,
                               "$redact's expression should not return anything aside from the "
                               "variables $$KEEP, $$DESCEND, and $$PRUNE, but returned something "
                               "else");
    *ret_kept = true;
    if (slice_equal(decision.text, SLICE("keep"))) {
        document_append(&context->scratch, key, object);
        return true;
    }
    begin = document_append_object_begin(&context->scratch, key);
    if (!fields_redact(redact, object->document, depth))
        return false;
    document_end(&context->scratch, begin);
    return true;
}

struct redact_data {
    uint32_t slot;
};

static bool redact_evaluate(const struct query_expression *expression,
                            struct query_context *context, struct document_value *ret_value,
                            struct error *err)
{
    const struct redact_data *data = ((const struct pipeline_node *)expression)->data;
    struct redact redact = {data->slot, expression->children[0], context, err};
    struct query_slot before = context->slots[data->slot], root = context->slots[SLOT_INDEX];
    size_t mark = query_build_begin(context), begin;
    struct document_value wrapped, document = before.value;
    bool kept, fine;

    *ret_value = document_undefined();
    context->slots[SLOT_INDEX] = (struct query_slot){.value = document};
    begin = document_begin(&context->scratch);
    fine = object_redact(&redact, &document, SLICE("d"), &kept, 1);
    context->slots[data->slot] = before;
    context->slots[SLOT_INDEX] = root;
    if (!fine)
        return query_build_drop(context, mark);
    if (!query_build_close(context, mark, begin, DOCUMENT_OBJECT, &wrapped, err))
        return false;
    if (kept)
        (void)document_find(wrapped.document, SLICE("d"), ret_value);
    return true;
}

static const struct query_kind redact_kind = {"redact", redact_evaluate, QUERY_STABLE};

bool stage_redact(struct pipeline *p, const struct document_value *specification, struct error *err)
{
    static const struct {
        const char *name, *value;
    } decisions[] = {{"DESCEND", "descend"}, {"PRUNE", "prune"}, {"KEEP", "keep"}};
    struct mongo_variable *variables =
        ARENA_ARRAY(p->build->arena, struct mongo_variable, p->variable_count + 4);
    struct redact_data *data = ARENA_NEW(p->build->arena, struct redact_data);
    const struct query_expression *children[2];
    struct mongo_expression_options scope;

    pipeline_settle(p);
    scope = pipeline_scope(p);
    if (p->variable_count)
        memcpy(variables, p->variables, p->variable_count * sizeof *variables);
    for (size_t i = 0; i < ARRAY_LEN(decisions); i++)
        variables[scope.variable_count++] = (struct mongo_variable){
            slice_of_text(decisions[i].name),
            query_constant(p->build, document_string(slice_of_text(decisions[i].value)))};
    variables[scope.variable_count++] =
        (struct mongo_variable){SLICE("ROOT"), query_variable(p->build, SLOT_INDEX)};
    scope.variables = variables;
    data->slot = p->slot;
    if (!mongo_expression_compile(specification, &scope, p->build, &children[0], err))
        return false;
    children[1] = pipeline_root(p);
    pipeline_project(p, pipeline_node(p->build, &redact_kind, data, children, 2));
    return true;
}

/* --- $unwind --------------------------------------------------------------------------------- */

struct nested {
    uint32_t slot;
    const struct slice *names;
    size_t count;
};

static bool nested_evaluate(const struct query_expression *expression,
                            struct query_context *context, struct document_value *ret_value,
                            struct error *err UNUSED)
{
    const struct nested *nested = ((const struct pipeline_node *)expression)->data;
    struct document_value value = context->slots[nested->slot].value;

    for (size_t i = 0; i < nested->count; i++)
        if (value.type != DOCUMENT_OBJECT ||
            !document_find(value.document, nested->names[i], &value))
            value = document_undefined();
    *ret_value = value;
    return true;
}

static const struct query_kind nested_kind = {"nested", nested_evaluate, QUERY_STABLE};

const struct query_expression *pipeline_nested(struct pipeline *p, struct slice path)
{
    struct nested *nested = ARENA_NEW(p->build->arena, struct nested);
    const struct query_expression *root = query_variable(p->build, p->slot);
    struct slice rest = arena_copy(p->build->arena, path), head, tail, *names;

    names = ARENA_ARRAY(p->build->arena, struct slice, path.len / 2 + 2);
    while (slice_split(rest, '.', &head, &tail)) {
        names[nested->count++] = head;
        rest = tail;
    }
    names[nested->count++] = rest;
    nested->names = names;
    nested->slot = p->slot;
    return pipeline_node(p->build, &nested_kind, nested, &root, 1);
}

/* What is no array is one of a single element; null and what is missing are none. */
static bool elements_evaluate(const struct query_expression *expression,
                              struct query_context *context, struct document_value *ret_value,
                              struct error *err)
{
    size_t mark = query_build_begin(context), begin;
    struct document_value value;

    if (!query_evaluate(expression->children[0], context, &value, err))
        return false;
    *ret_value = value;
    if (value.type == DOCUMENT_ARRAY || value.type == DOCUMENT_UNDEFINED ||
        value.type == DOCUMENT_NULL)
        return true;
    begin = document_begin(&context->scratch);
    document_append(&context->scratch, SLICE("0"), &value);
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_value, err);
}

/* The element; of a document that was kept without one null, if that stood there. */
static bool element_evaluate(const struct query_expression *expression,
                             struct query_context *context, struct document_value *ret_value,
                             struct error *err)
{
    struct document_value before;

    *ret_value = context->slots[SLOT_BESIDE].value;
    if (ret_value->type != DOCUMENT_UNDEFINED)
        return true;
    if (!query_evaluate(expression->children[0], context, &before, err))
        return false;
    if (before.type == DOCUMENT_NULL)
        *ret_value = before;
    return true;
}

/* Its number in the array; null where there was none. */
static bool number_evaluate(const struct query_expression *expression,
                            struct query_context *context, struct document_value *ret_value,
                            struct error *err)
{
    const struct document_value *index = &context->slots[SLOT_INDEX].value;
    struct document_value before;
    int64_t number;

    if (!query_evaluate(expression->children[0], context, &before, err))
        return false;
    *ret_value = document_null();
    if (before.type == DOCUMENT_ARRAY && document_to_int64(index, &number) && number >= 0)
        *ret_value = document_int64(number);
    return true;
}

/* children: what stood there, the document if that was something, the document if it was not. */
static bool unwound_evaluate(const struct query_expression *expression,
                             struct query_context *context, struct document_value *ret_value,
                             struct error *err)
{
    struct document_value before;

    if (!query_evaluate(expression->children[0], context, &before, err))
        return false;
    return query_evaluate(expression->children[before.type == DOCUMENT_UNDEFINED ? 2 : 1], context,
                          ret_value, err);
}

static const struct query_kind elements_kind = {"elements", elements_evaluate, QUERY_STABLE};
static const struct query_kind element_kind = {"element", element_evaluate, QUERY_STABLE};
static const struct query_kind number_kind = {"number", number_evaluate, QUERY_STABLE};
static const struct query_kind unwound_kind = {"unwound", unwound_evaluate, QUERY_STABLE};

static bool unwind_read(const struct document_value *specification, struct slice *ret_path,
                        struct slice *ret_index, bool *ret_keep, struct error *err)
{
    struct document_value path = *specification, index = document_undefined(), keep = index;
    const struct stage_field fields[] = {
        {"path", &path}, {"includeArrayIndex", &index}, {"preserveNullAndEmptyArrays", &keep}};
    const struct stage_terms terms = {"$unwind", 15981, 28811};

    if (specification->type != DOCUMENT_STRING &&
        !pipeline_fields(specification, &terms, fields, ARRAY_LEN(fields), err))
        return false;
    if (path.type == DOCUMENT_UNDEFINED)
        return mongo_error_set(err, 28812, "no path specified to $unwind stage");
    if (path.type != DOCUMENT_STRING)
        return mongo_error_set(err, 28808,
                               "expected a string as the path for $unwind stage, got %s",
                               mongo_type_name(path.type));
    if (!path.text.len || path.text.data[0] != '$')
        return mongo_error_set(err, 28818,
                               "path option to $unwind stage should be prefixed with "
                               "a '$': %.*s",
                               (int)MIN(path.text.len, (size_t)80), (const char *)path.text.data);
    if (keep.type != DOCUMENT_UNDEFINED && keep.type != DOCUMENT_BOOL)
        return mongo_error_set(err, 28809,
                               "expected a boolean for the preserveNullAndEmptyArrays option to "
                               "$unwind stage, got %s",
                               mongo_type_name(keep.type));
    if (index.type != DOCUMENT_UNDEFINED && (index.type != DOCUMENT_STRING || !index.text.len))
        return mongo_error_set(err, 28810,
                               "expected a non-empty string for the includeArrayIndex  option to "
                               "$unwind stage, got %s",
                               mongo_type_name(index.type));
    if (index.type == DOCUMENT_STRING && index.text.data[0] == '$')
        return mongo_error_set(err, 28822,
                               "includeArrayIndex option to $unwind stage should not be prefixed "
                               "with a '$': %.*s",
                               (int)MIN(index.text.len, (size_t)80), (const char *)index.text.data);
    *ret_path = slice_skip(path.text, 1);
    *ret_index = index.type == DOCUMENT_STRING ? index.text : SLICE_NONE;
    *ret_keep = keep.type == DOCUMENT_BOOL && keep.boolean;
    return pipeline_path_check(*ret_path, err) &&
           (!ret_index->data || pipeline_path_check(*ret_index, err));
}

bool stage_unwind(struct pipeline *p, const struct document_value *specification, struct error *err)
{
    const struct query_expression *before, *children[3], *values[2];
    struct query_build *build = p->build;
    struct slice paths[2];
    struct query_unwind unwind = {.slot = SLOT_BESIDE, .index_slot = SLOT_INDEX};
    size_t count = 1;

    if (!unwind_read(specification, &paths[0], &paths[1], &unwind.keep_empty, err))
        return false;
    unwind.indexed = paths[1].data;
    if (unwind.keep_empty || unwind.indexed)
        pipeline_settle(p);
    before = pipeline_nested(p, paths[0]);
    unwind.array = pipeline_node(build, &elements_kind, NULL, &before, 1);
    pipeline_stage(p, QUERY_STAGE_UNWIND)->unwind = unwind;

    children[0] = before;
    children[1] = query_variable(build, SLOT_BESIDE);
    values[0] = pipeline_node(build, &element_kind, NULL, children, 2);
    if (unwind.indexed) {
        children[1] = query_variable(build, SLOT_INDEX);
        values[count++] = pipeline_node(build, &number_kind, NULL, children, 2);
    }
    if (!mongo_shape_set_all(paths, values, count, p->slot, build, &children[1], err))
        return false;
    children[2] = pipeline_root(p);
    if (unwind.indexed && !mongo_shape_set(paths[1], values[1], p->slot, build, &children[2], err))
        return false;
    pipeline_project(p, pipeline_node(build, &unwound_kind, NULL, children, 3));
    return true;
}

/* --- Documents of their own ------------------------------------------------------------------ */

/* Each element of the array is a document. */
static bool documents_append(struct pipeline *p, const struct query_expression *array)
{
    const struct query_expression *element = query_variable(p->build, SLOT_BESIDE);

    p->constant = true;
    pipeline_stage(p, QUERY_STAGE_UNWIND)->unwind =
        (struct query_unwind){.array = array, .slot = SLOT_BESIDE};
    pipeline_project(p,
                     pipeline_node(p->build, &root_kind, "an element of $documents", &element, 1));
    return true;
}

static bool array_evaluate(const struct query_expression *expression, struct query_context *context,
                           struct document_value *ret_value, struct error *err)
{
    if (!query_evaluate(expression->children[0], context, ret_value, err))
        return false;
    return ret_value->type == DOCUMENT_ARRAY ||
           mongo_error_set(err, 5858203, "an array is expected");
}

static const struct query_kind array_kind = {"array", array_evaluate, QUERY_STABLE};

bool stage_documents(struct pipeline *p, const struct document_value *specification,
                     struct error *err)
{
    const struct query_expression *array;

    if (!pipeline_expression(p, specification, &array, err))
        return false;
    return documents_append(p, pipeline_node(p->build, &array_kind, NULL, &array, 1));
}

bool stage_source(struct pipeline *p, const struct document_value *specification, struct error *err)
{
    const struct mongo_pipeline_host *host = &p->options->host;
    struct slice array;

    if (!host->source)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED, "%.*s is not offered here",
                               SLICE_ARG(p->stage_name));
    if (!host->source(host->self, p->stage_name, specification, p->options, p->build->arena, &array,
                      err))
        return false;
    return documents_append(p, query_constant_borrowed(p->build, document_array(array)));
}

/* Behind $changeStream it is taken off the pipeline before that is compiled: events are split when
 * they are answered. */
bool stage_split_event(struct pipeline *p UNUSED, const struct document_value *specification UNUSED,
                       struct error *err)
{
    return mongo_error_set(err, MONGO_ILLEGAL_OPERATION,
                           "$changeStreamSplitLargeEvent can only be used in a $changeStream "
                           "pipeline");
}
