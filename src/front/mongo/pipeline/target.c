/* $out and $merge: where the documents go. What is done with them is the command's. */
#include "front/mongo/pipeline/pipeline_private.h"

/* "coll" or {db, coll}. */
static bool into_read(struct pipeline *p, const struct document_value *value, const char *stage,
                      int code, struct error *err)
{
    struct document_value database = document_undefined(), collection = *value;
    const struct stage_field fields[] = {{"db", &database}, {"coll", &collection}};
    const struct stage_terms terms = {stage, code, 40415};
    struct mongo_target *target = &p->target;

    if (value->type == DOCUMENT_OBJECT &&
        !pipeline_fields(value, &terms, fields, ARRAY_LEN(fields), err))
        return false;
    if (collection.type != DOCUMENT_STRING)
        return mongo_error_set(err, code, "%s requires a string or object argument, but found %s",
                               stage, mongo_type_name(value->type));
    if (database.type != DOCUMENT_UNDEFINED && database.type != DOCUMENT_STRING)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "BSON field '%s.db' is the wrong type '%s', expected type 'string'",
                               stage, mongo_type_name(database.type));
    target->database = database.type == DOCUMENT_STRING ? arena_copy(p->build->arena, database.text)
                                                        : p->options->database;
    target->collection = arena_copy(p->build->arena, collection.text);
    return true;
}

bool stage_out(struct pipeline *p, const struct document_value *specification, struct error *err)
{
    struct document_value series;

    if (specification->type == DOCUMENT_OBJECT &&
        document_find(specification->document, SLICE("timeseries"), &series))
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "$out: time-series collections are not offered");
    p->target.kind = MONGO_TARGET_OUT;
    return into_read(p, specification, "$out", 16990, err);
}

static bool on_add(struct pipeline *p, const struct document_value *value, struct error *err)
{
    struct mongo_target *target = &p->target;

    if (value->type != DOCUMENT_STRING)
        return mongo_error_set(err, 51134,
                               "$merge 'on' array elements must be strings, but found %s",
                               mongo_type_name(value->type));
    if (!pipeline_path_check(value->text, err))
        return false;
    for (size_t i = 0; i < target->on_count; i++)
        if (slice_equal(target->on[i], value->text))
            return mongo_error_set(err, 31465, "Found a duplicate field '%.*s' in $merge.on",
                                   (int)MIN(value->text.len, (size_t)80),
                                   (const char *)value->text.data);
    if (target->on_count == MONGO_MERGE_ON_MAX)
        return mongo_error_set(err, MONGO_BAD_VALUE, "$merge 'on' has more than %d fields",
                               MONGO_MERGE_ON_MAX);
    target->on[target->on_count++] = arena_copy(p->build->arena, value->text);
    return true;
}

static bool on_read(struct pipeline *p, const struct document_value *value, struct error *err)
{
    struct document_iter iter;

    if (value->type == DOCUMENT_UNDEFINED)
        return true;
    if (value->type == DOCUMENT_STRING)
        return on_add(p, value, err);
    if (value->type != DOCUMENT_ARRAY)
        return mongo_error_set(err, 51186,
                               "$merge 'on' field must be either a string or an array of strings, "
                               "but found %s",
                               mongo_type_name(value->type));
    if (!document_count(value->document))
        return mongo_error_set(err, 51187,
                               "If explicitly specifying $merge 'on', must include at least one "
                               "field");
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter))
        if (!on_add(p, &iter.value, err))
            return false;
    return true;
}

static bool word_find(const struct document_value *value, const char *name,
                      const char *const *words, size_t count, unsigned *ret_word, struct error *err)
{
    if (value->type != DOCUMENT_STRING)
        return mongo_error_set(err, 51191, "$merge '%s' field must be a string, but found %s", name,
                               mongo_type_name(value->type));
    for (unsigned i = 0; i < count; i++)
        if (slice_equal(value->text, slice_of_text(words[i]))) {
            *ret_word = i;
            return true;
        }
    return mongo_error_set(err, MONGO_BAD_VALUE,
                           "Enumeration value '%.*s' for field '$merge.%s' is not a valid value.",
                           (int)MIN(value->text.len, (size_t)40), (const char *)value->text.data,
                           name);
}

static bool modes_read(struct pipeline *p, const struct document_value *matched,
                       const struct document_value *unmatched, struct error *err)
{
    static const char *const matches[] = {"replace", "keepExisting", "merge", "fail"};
    static const char *const others[] = {"insert", "discard", "fail"};
    struct mongo_target *target = &p->target;
    unsigned word;

    target->matched = MONGO_MATCHED_MERGE;
    target->unmatched = MONGO_UNMATCHED_INSERT;
    if (matched->type == DOCUMENT_ARRAY) {
        target->matched = MONGO_MATCHED_PIPELINE;
        target->pipeline = arena_copy(p->build->arena, matched->document);
    } else if (matched->type != DOCUMENT_UNDEFINED) {
        if (!word_find(matched, "whenMatched", matches, ARRAY_LEN(matches), &word, err))
            return false;
        target->matched = (enum mongo_when_matched)word;
    }
    if (unmatched->type != DOCUMENT_UNDEFINED) {
        if (!word_find(unmatched, "whenNotMatched", others, ARRAY_LEN(others), &word, err))
            return false;
        target->unmatched = (enum mongo_when_not_matched)word;
    }
    if ((target->matched == MONGO_MATCHED_KEEP || target->matched == MONGO_MATCHED_FAIL) &&
        target->unmatched != MONGO_UNMATCHED_INSERT)
        return mongo_error_set(err, 51181,
                               "Combination of $merge modes 'whenMatched: %s' and "
                               "'whenNotMatched: %s' is not supported",
                               matches[target->matched], others[target->unmatched]);
    return true;
}

bool stage_merge(struct pipeline *p, const struct document_value *specification, struct error *err)
{
    struct document_value into = *specification, on = document_undefined(), let = on, matched = on,
                          unmatched = on;
    const struct stage_field fields[] = {{"into", &into},
                                         {"on", &on},
                                         {"let", &let},
                                         {"whenMatched", &matched},
                                         {"whenNotMatched", &unmatched}};
    const struct stage_terms terms = {"$merge", 51182, 40415};

    p->target.kind = MONGO_TARGET_MERGE;
    if (specification->type == DOCUMENT_OBJECT &&
        !pipeline_fields(specification, &terms, fields, ARRAY_LEN(fields), err))
        return false;
    if (into.type == DOCUMENT_UNDEFINED)
        return mongo_error_set(err, 40414,
                               "BSON field '$merge.into' is missing but a required field");
    if (!into_read(p, &into, "$merge", 51178, err) || !on_read(p, &on, err) ||
        !modes_read(p, &matched, &unmatched, err))
        return false;
    if (let.type == DOCUMENT_UNDEFINED)
        return true;
    if (let.type != DOCUMENT_OBJECT)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "BSON field '$merge.let' is the wrong type '%s', expected type "
                               "'object'",
                               mongo_type_name(let.type));
    if (p->target.matched != MONGO_MATCHED_PIPELINE)
        return mongo_error_set(err, 51199,
                               "Cannot use 'let' variables with 'whenMatched: replace' or another "
                               "mode that is no pipeline");
    p->target.let = arena_copy(p->build->arena, let.document);
    return true;
}
