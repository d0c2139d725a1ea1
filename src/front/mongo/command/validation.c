/* A document that fails is explained by asking each part of the validator for itself, as a filter
 * of its own: so the explanation cannot say otherwise than the matcher does. It costs only whoever
 * fails, and is bounded in bytes and depth. */
#include "front/mongo/command/validation.h"

#include "base/clock.h"
#include "front/mongo/command/terms.h"
#include "front/mongo/expression/expression.h"

enum { INFO_BYTES_MAX = 32 * 1024, VALUE_BYTES_MAX = 1024, DEPTH_MAX = 16 };

/* --- Matching -------------------------------------------------------------------------------- */

static bool match_compile(struct slice filter, const struct document_collator *collator,
                          struct arena *arena, const struct mongo_match **ret_match,
                          struct error *err)
{
    struct mongo_expression_options expressions = {.collator = collator};
    const struct mongo_match_options options = {
        .collator = collator, .expression = mongo_expression_hook, .expression_self = &expressions};
    struct query_build build = {
        .arena = arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_MONGO};

    if (!mongo_match_parse(filter, &options, &build, ret_match, err))
        return false;
    if (build.failed) {
        *err = build.error;
        return false;
    }
    return !build.script || mongo_error_set(err, MONGO_QUERY_FEATURE_NOT_ALLOWED,
                                            "%s is not allowed in this context", build.script);
}

static bool match_ask(const struct mongo_call *call, const struct mongo_match *match,
                      struct slice document, struct arena *arena, bool *ret_holds,
                      struct error *err)
{
    CLEANUP(query_context_done) struct query_context context;
    struct query_slot slot = {.value = document_object(document)};

    query_context_init(&context, arena, NULL, call->services->clock);
    context.slots = &slot;
    context.slot_count = 1;
    context.order = DOCUMENT_ORDER_MONGO;
    context.keep_nonfinite = true;
    return mongo_match_holds(match, &slot.value, &context, ret_holds, err);
}

bool mongo_validation_prepare(struct mongo_call *call, const struct mongo_collection *collection,
                              bool bypass, struct mongo_validation *ret_validation,
                              struct error *err)
{
    const struct mongo_terms *terms = &collection->terms;

    *ret_validation = (struct mongo_validation){
        .call = call, .filter = terms->validator, .level = terms->level, .warn = terms->warn};
    if (bypass || !terms->validator.data || !document_count(terms->validator) ||
        terms->level == MONGO_LEVEL_OFF)
        return true;
    if (!mongo_collator_find(terms->collation, &ret_validation->collator, err))
        return false;
    /* the collection may be opened anew under the command */
    ret_validation->filter = arena_copy(call->arena, terms->validator);
    return match_compile(ret_validation->filter, ret_validation->collator, call->arena,
                         &ret_validation->match, err);
}

bool mongo_validation_holds(const struct mongo_validation *validation, struct slice document,
                            struct arena *arena, bool *ret_holds, struct error *err)
{
    *ret_holds = true;
    return !validation->match ||
           match_ask(validation->call, validation->match, document, arena, ret_holds, err);
}

/* --- Explaining ------------------------------------------------------------------------------ */

struct explaining {
    const struct mongo_call *call;
    const struct document_collator *collator;
    struct arena *arena;
    struct buf *out;
    int depth;
};

static bool is_full(const struct explaining *explaining)
{
    return explaining->out->len > INFO_BYTES_MAX || explaining->depth > DEPTH_MAX;
}

/* Does the filter hold for the document? What cannot be told counts as held: it is not the fault.
 */
static bool part_holds(const struct explaining *explaining, struct slice filter,
                       struct slice document)
{
    const struct mongo_match *match;
    struct error unused;
    bool holds = true;

    return !match_compile(filter, explaining->collator, explaining->arena, &match, &unused) ||
           !match_ask(explaining->call, match, document, explaining->arena, &holds, &unused) ||
           holds;
}

/* {name: value}, in the arena. */
static struct slice object_of(const struct explaining *explaining, struct slice name,
                              const struct document_value *value)
{
    CLEANUP(buf_done) struct buf out;
    size_t begin;

    buf_init(&out, MONGO_BSON_BYTES_MAX);
    begin = document_begin(&out);
    document_append(&out, name, value);
    document_end(&out, begin);
    return arena_copy(explaining->arena, buf_slice(&out));
}

static void considered_append(const struct explaining *explaining,
                              const struct document_value *value)
{
    struct slice whole = object_of(explaining, SLICE("v"), value);

    if (whole.len <= VALUE_BYTES_MAX)
        document_append(explaining->out, SLICE("consideredValue"), value);
}

static void specified_append(const struct explaining *explaining, struct slice name,
                             const struct document_value *value)
{
    const struct document_value whole = document_object(object_of(explaining, name, value));

    if (whole.document.len <= VALUE_BYTES_MAX)
        document_append(explaining->out, SLICE("specifiedAs"), &whole);
}

/* --- Schemas --------------------------------------------------------------------------------- */

static void schema_explain(struct explaining *explaining, struct slice schema,
                           const struct document_value *value, struct slice list_name);

/* A schema of one keyword, with the keywords that change what it says. */
static struct slice keyword_schema(const struct explaining *explaining, struct slice schema,
                                   struct slice keyword, const struct document_value *said)
{
    static const struct {
        struct slice keyword, companion;
    } companions[] = {
        {SLICE("minimum"), SLICE("exclusiveMinimum")},
        {SLICE("maximum"), SLICE("exclusiveMaximum")},
        {SLICE("additionalItems"), SLICE("items")},
        {SLICE("additionalProperties"), SLICE("patternProperties")},
    };
    CLEANUP(buf_done) struct buf out;
    struct document_value companion;
    size_t begin;

    buf_init(&out, MONGO_BSON_BYTES_MAX);
    begin = document_begin(&out);
    document_append(&out, keyword, said);
    for (size_t i = 0; i < ARRAY_LEN(companions); i++)
        if (slice_equal(companions[i].keyword, keyword) &&
            document_find(schema, companions[i].companion, &companion))
            document_append(&out, companions[i].companion, &companion);
    if (slice_equal(keyword, SLICE("additionalProperties")) &&
        document_find(schema, SLICE("properties"), &companion) &&
        companion.type == DOCUMENT_OBJECT) {
        size_t properties = document_append_object_begin(&out, SLICE("properties"));
        struct document_iter iter;

        document_iter_init(&iter, companion.document);
        while (document_iter_next(&iter))
            document_end(&out, document_append_object_begin(&out, iter.key));
        document_end(&out, properties);
    }
    document_end(&out, begin);
    return arena_copy(explaining->arena, buf_slice(&out));
}

static bool schema_holds(const struct explaining *explaining, struct slice schema,
                         const struct document_value *value)
{
    struct document_value nested = document_object(schema);

    nested = document_object(object_of(explaining, SLICE("v"), &nested));
    nested = document_object(object_of(explaining, SLICE("properties"), &nested));
    return part_holds(explaining, object_of(explaining, SLICE("$jsonSchema"), &nested),
                      object_of(explaining, SLICE("v"), value));
}

static void properties_explain(struct explaining *explaining, const struct document_value *said,
                               const struct document_value *value)
{
    struct document_value description, one;
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;
    uint32_t count = 0;
    size_t list;

    list = document_append_array_begin(explaining->out, SLICE("propertiesNotSatisfied"));
    document_iter_init(&iter, said->document);
    while (!is_full(explaining) && document_iter_next(&iter)) {
        size_t entry;

        if (iter.value.type != DOCUMENT_OBJECT || !document_find(value->document, iter.key, &one) ||
            schema_holds(explaining, iter.value.document, &one))
            continue;
        entry = document_append_object_begin(explaining->out, document_index_key(count++, text));
        document_append_string(explaining->out, SLICE("propertyName"), iter.key);
        if (document_find(iter.value.document, SLICE("description"), &description))
            document_append(explaining->out, SLICE("description"), &description);
        schema_explain(explaining, iter.value.document, &one, SLICE("details"));
        document_end(explaining->out, entry);
    }
    document_end(explaining->out, list);
}

static void missing_append(struct explaining *explaining, const struct document_value *said,
                           const struct document_value *value)
{
    size_t list = document_append_array_begin(explaining->out, SLICE("missingProperties"));
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;
    struct document_value one;
    uint32_t count = 0;

    document_iter_init(&iter, said->document);
    while (!is_full(explaining) && document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_STRING &&
            !document_find(value->document, iter.value.text, &one))
            document_append(explaining->out, document_index_key(count++, text), &iter.value);
    document_end(explaining->out, list);
}

static void additional_append(struct explaining *explaining, struct slice schema,
                              const struct document_value *value)
{
    size_t list = document_append_array_begin(explaining->out, SLICE("additionalProperties"));
    struct document_value properties, one;
    bool has = document_find(schema, SLICE("properties"), &properties) &&
               properties.type == DOCUMENT_OBJECT;
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;
    uint32_t count = 0;

    document_iter_init(&iter, value->document);
    while (!is_full(explaining) && document_iter_next(&iter))
        if (!has || !document_find(properties.document, iter.key, &one))
            document_append_string(explaining->out, document_index_key(count++, text), iter.key);
    document_end(explaining->out, list);
}

static const char *keyword_reason(struct slice keyword)
{
    static const struct {
        struct slice keyword;
        const char *reason;
    } reasons[] = {
        {SLICE("bsonType"), "type did not match"},
        {SLICE("type"), "type did not match"},
        {SLICE("enum"), "value was not found in enum"},
        {SLICE("pattern"), "regular expression did not match"},
        {SLICE("minLength"), "specified string length was not satisfied"},
        {SLICE("maxLength"), "specified string length was not satisfied"},
        {SLICE("minItems"), "array did not match specified length"},
        {SLICE("maxItems"), "array did not match specified length"},
        {SLICE("minProperties"), "specified number of properties was not satisfied"},
        {SLICE("maxProperties"), "specified number of properties was not satisfied"},
        {SLICE("uniqueItems"), "found a duplicate item"},
        {SLICE("multipleOf"), "considered value is not a multiple of the specified value"},
        {SLICE("not"), "child expression matched"},
    };

    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (slice_equal(reasons[i].keyword, keyword))
            return reasons[i].reason;
    return "comparison failed";
}

static void keyword_explain(struct explaining *explaining, struct slice schema,
                            const struct document_iter *said, const struct document_value *value)
{
    bool object = value->type == DOCUMENT_OBJECT;

    document_append_string(explaining->out, SLICE("operatorName"), said->key);
    if (object && slice_equal(said->key, SLICE("properties")) &&
        said->value.type == DOCUMENT_OBJECT) {
        properties_explain(explaining, &said->value, value);
        return;
    }
    specified_append(explaining, said->key, &said->value);
    if (object && slice_equal(said->key, SLICE("required")) && said->value.type == DOCUMENT_ARRAY) {
        missing_append(explaining, &said->value, value);
    } else if (object && slice_equal(said->key, SLICE("additionalProperties"))) {
        additional_append(explaining, schema, value);
    } else {
        document_append_string(explaining->out, SLICE("reason"),
                               slice_of_text(keyword_reason(said->key)));
        considered_append(explaining, value);
        if (slice_equal(said->key, SLICE("bsonType")) || slice_equal(said->key, SLICE("type")))
            document_append_string(explaining->out, SLICE("consideredType"),
                                   slice_of_text(mongo_type_name(value->type)));
    }
}

/* A list of the keywords that do not hold. */
static void schema_explain(struct explaining *explaining, struct slice schema,
                           const struct document_value *value, struct slice list_name)
{
    static const struct slice passive[] = {SLICE("description"), SLICE("title"),
                                           SLICE("exclusiveMinimum"), SLICE("exclusiveMaximum")};
    size_t list = document_append_array_begin(explaining->out, list_name), entry;
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;
    uint32_t count = 0;

    explaining->depth++;
    document_iter_init(&iter, schema);
    while (!is_full(explaining) && document_iter_next(&iter)) {
        bool skip = false;

        for (size_t i = 0; i < ARRAY_LEN(passive); i++)
            skip = skip || slice_equal(iter.key, passive[i]);
        if (skip || schema_holds(explaining,
                                 keyword_schema(explaining, schema, iter.key, &iter.value), value))
            continue;
        entry = document_append_object_begin(explaining->out, document_index_key(count++, text));
        keyword_explain(explaining, schema, &iter, value);
        document_end(explaining->out, entry);
    }
    explaining->depth--;
    document_end(explaining->out, list);
}

/* --- Filters --------------------------------------------------------------------------------- */

static void clause_explain(struct explaining *explaining, struct slice name,
                           const struct document_value *condition, struct slice document);

/* The operator of {$gt: 5}; of a plain value it is $eq. */
static struct slice operator_of(const struct document_value *condition)
{
    struct document_iter iter;

    if (condition->type != DOCUMENT_OBJECT)
        return SLICE("$eq");
    document_iter_init(&iter, condition->document);
    return document_iter_next(&iter) && iter.key.len && iter.key.data[0] == '$' ? iter.key
                                                                                : SLICE("$eq");
}

static void clauses_explain(struct explaining *explaining, const struct document_value *clauses,
                            struct slice document)
{
    size_t list = document_append_array_begin(explaining->out, SLICE("clausesNotSatisfied"));
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;
    uint32_t count = 0;

    document_iter_init(&iter, clauses->document);
    for (int32_t index = 0; !is_full(explaining) && document_iter_next(&iter); index++) {
        size_t entry, details;
        struct document_iter first;

        if (iter.value.type != DOCUMENT_OBJECT ||
            part_holds(explaining, iter.value.document, document))
            continue;
        entry = document_append_object_begin(explaining->out, document_index_key(count++, text));
        document_append_int32(explaining->out, SLICE("index"), index);
        details = document_append_object_begin(explaining->out, SLICE("details"));
        document_iter_init(&first, iter.value.document);
        if (document_iter_next(&first))
            clause_explain(explaining, first.key, &first.value, document);
        document_end(explaining->out, details);
        document_end(explaining->out, entry);
    }
    document_end(explaining->out, list);
}

static void clause_explain(struct explaining *explaining, struct slice name,
                           const struct document_value *condition, struct slice document)
{
    const struct document_value whole = document_object(document);
    struct document_value value;

    explaining->depth++;
    if (slice_equal(name, SLICE("$jsonSchema")) && condition->type == DOCUMENT_OBJECT) {
        document_append_string(explaining->out, SLICE("operatorName"), name);
        if (document_find(condition->document, SLICE("title"), &value))
            document_append(explaining->out, SLICE("title"), &value);
        if (document_find(condition->document, SLICE("description"), &value))
            document_append(explaining->out, SLICE("description"), &value);
        schema_explain(explaining, condition->document, &whole, SLICE("schemaRulesNotSatisfied"));
    } else if (name.len && name.data[0] == '$') {
        document_append_string(explaining->out, SLICE("operatorName"), name);
        if (condition->type == DOCUMENT_ARRAY && !slice_equal(name, SLICE("$nor")))
            clauses_explain(explaining, condition, document);
        else
            specified_append(explaining, name, condition);
    } else {
        bool there = document_find(document, name, &value);

        document_append_string(explaining->out, SLICE("operatorName"), operator_of(condition));
        specified_append(explaining, name, condition);
        document_append_string(explaining->out, SLICE("reason"),
                               there || memchr(name.data, '.', name.len)
                                   ? SLICE("comparison failed")
                                   : SLICE("field was missing"));
        if (there)
            considered_append(explaining, &value);
    }
    explaining->depth--;
}

/* Of several conditions those that fail, as clauses of $and. */
static void filter_explain(struct explaining *explaining, struct slice filter,
                           struct slice document)
{
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;
    uint32_t count = 0;
    size_t list, entry, details;

    document_iter_init(&iter, filter);
    if (document_count(filter) == 1) {
        (void)document_iter_next(&iter);
        clause_explain(explaining, iter.key, &iter.value, document);
        return;
    }
    document_append_string(explaining->out, SLICE("operatorName"), SLICE("$and"));
    list = document_append_array_begin(explaining->out, SLICE("clausesNotSatisfied"));
    for (int32_t index = 0; !is_full(explaining) && document_iter_next(&iter); index++) {
        if (part_holds(explaining, object_of(explaining, iter.key, &iter.value), document))
            continue;
        entry = document_append_object_begin(explaining->out, document_index_key(count++, text));
        document_append_int32(explaining->out, SLICE("index"), index);
        details = document_append_object_begin(explaining->out, SLICE("details"));
        clause_explain(explaining, iter.key, &iter.value, document);
        document_end(explaining->out, details);
        document_end(explaining->out, entry);
    }
    document_end(explaining->out, list);
}

/* {failingDocumentId, details}, in the call's arena. */
static struct slice info_make(const struct mongo_validation *validation, struct slice document,
                              struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    struct explaining explaining = {
        .call = validation->call, .collator = validation->collator, .arena = arena, .out = &out};
    struct document_value id = document_null();
    size_t begin, details;

    buf_init(&out, MONGO_BSON_BYTES_MAX);
    begin = document_begin(&out);
    (void)document_find(document, SLICE("_id"), &id);
    document_append(&out, SLICE("failingDocumentId"), &id);
    details = document_append_object_begin(&out, SLICE("details"));
    filter_explain(&explaining, validation->filter, document);
    document_end(&out, details);
    document_end(&out, begin);
    return arena_copy(validation->call->arena, buf_slice(&out));
}

/* --- Checking -------------------------------------------------------------------------------- */

/* Once for a command, however many of its documents fail. */
static void warning_log(const struct mongo_validation *validation)
{
    struct mongo_call *call = validation->call;

    if (call->warned)
        return;
    call->warned = true;
    log_event(call->services->log, LOG_INFO, "document would fail validation",
              LOG_SLICE("account", call->account.id), LOG_SLICE("database", call->message.database),
              LOG_SLICE("command", call->name));
}

bool mongo_validation_check(const struct mongo_validation *validation, struct slice document,
                            struct slice before, struct arena *arena, struct error *err)
{
    bool holds, held = true;

    if (!mongo_validation_holds(validation, document, arena, &holds, err))
        return false;
    if (!holds && before.data && validation->level == MONGO_LEVEL_MODERATE &&
        !mongo_validation_holds(validation, before, arena, &held, err))
        return false;
    if (holds || !held)
        return true;
    if (validation->warn) {
        warning_log(validation);
        return true;
    }
    validation->call->error_info =
        validation->brief ? SLICE_NONE : info_make(validation, document, arena);
    return mongo_error_set(err, MONGO_DOCUMENT_VALIDATION_FAILURE, "Document failed validation");
}
