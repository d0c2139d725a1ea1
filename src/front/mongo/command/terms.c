#include "front/mongo/command/terms.h"

#include "front/mongo/text.h"

enum { CAPPED_BYTES_MAX_GIB = 1024, VIEW_STAGES_MAX = 1000 };

static bool is_given(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_NULL;
}

/* --- Checks ---------------------------------------------------------------------------------- */

static bool wrong_type(struct slice name, const struct document_value *value, const char *expected,
                       struct error *err)
{
    return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                           "BSON field 'create.%.*s' is the wrong type '%s', expected type '%s'",
                           SLICE_ARG(name), mongo_type_name(value->type), expected);
}

static bool object_take(struct slice name, const struct document_value *value,
                        struct slice *ret_object, struct error *err)
{
    if (value->type != DOCUMENT_OBJECT)
        return wrong_type(name, value, "object", err);
    *ret_object = value->document;
    return true;
}

static bool number_take(struct slice name, const struct document_value *value, int64_t *ret_number,
                        struct error *err)
{
    double real;

    if (!document_is_number(value))
        return wrong_type(name, value, "long", err);
    if (document_to_int64(value, ret_number))
        return true;
    if (!document_to_double(value, &real) || !(real > -9e18 && real < 9e18))
        return mongo_error_set(err, MONGO_BAD_VALUE, "create.%.*s is out of range",
                               SLICE_ARG(name));
    *ret_number = (int64_t)real;
    return true;
}

static bool validator_take(struct mongo_terms *terms, struct slice name,
                           const struct document_value *value, struct error *err)
{
    return object_take(name, value, &terms->validator, err);
}

static bool word_wrong(const char *option, const struct document_value *value, struct error *err)
{
    struct slice text = value->type == DOCUMENT_STRING ? value->text : SLICE("");

    return mongo_error_set(err, MONGO_BAD_VALUE,
                           "Enumeration value '%.*s' for field 'create.%s' is not a valid value.",
                           (int)MIN(text.len, (size_t)64), (const char *)text.data, option);
}

static bool level_take(struct mongo_terms *terms, struct slice name,
                       const struct document_value *value, struct error *err)
{
    static const char *const words[] = {[MONGO_LEVEL_STRICT] = "strict",
                                        [MONGO_LEVEL_MODERATE] = "moderate",
                                        [MONGO_LEVEL_OFF] = "off"};

    if (value->type != DOCUMENT_STRING)
        return wrong_type(name, value, "string", err);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (slice_equal(value->text, slice_of_text(words[i]))) {
            terms->level = (enum mongo_validation_level)i;
            return true;
        }
    return word_wrong("validationLevel", value, err);
}

static bool action_take(struct mongo_terms *terms, struct slice name,
                        const struct document_value *value, struct error *err)
{
    if (value->type != DOCUMENT_STRING)
        return wrong_type(name, value, "string", err);
    terms->warn = slice_equal(value->text, SLICE("warn"));
    return terms->warn || slice_equal(value->text, SLICE("error")) ||
           word_wrong("validationAction", value, err);
}

static bool view_on_take(struct mongo_terms *terms, struct slice name,
                         const struct document_value *value, struct error *err)
{
    if (value->type != DOCUMENT_STRING)
        return wrong_type(name, value, "string", err);
    terms->view_on = value->text;
    return value->text.len || mongo_error_set(err, MONGO_BAD_VALUE, "'viewOn' cannot be empty");
}

static bool pipeline_take(struct mongo_terms *terms, struct slice name,
                          const struct document_value *value, struct error *err)
{
    struct document_iter iter;

    if (value->type != DOCUMENT_ARRAY)
        return wrong_type(name, value, "array", err);
    terms->pipeline = value->document;
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter))
        if (iter.value.type != DOCUMENT_OBJECT)
            return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                                   "Each element of the 'pipeline' array must be an object");
    return document_count(value->document) <= VIEW_STAGES_MAX ||
           mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                           "Pipeline length must be no longer than %d stages.", VIEW_STAGES_MAX);
}

static bool capped_take(struct mongo_terms *terms, struct slice name,
                        const struct document_value *value, struct error *err)
{
    double number = 0;

    if (value->type != DOCUMENT_BOOL && !document_to_double(value, &number))
        return wrong_type(name, value, "bool", err);
    terms->capped = value->type == DOCUMENT_BOOL ? value->boolean : number != 0;
    return true;
}

static bool size_take(struct mongo_terms *terms, struct slice name,
                      const struct document_value *value, struct error *err)
{
    return number_take(name, value, &terms->size, err);
}

static bool max_take(struct mongo_terms *terms, struct slice name,
                     const struct document_value *value, struct error *err)
{
    if (!number_take(name, value, &terms->max, err))
        return false;
    terms->max = MAX(terms->max, (int64_t)0); /* below 1: as many as the size lets in */
    return true;
}

static bool collation_take(struct mongo_terms *terms, struct slice name,
                           const struct document_value *value, struct error *err)
{
    struct document_value locale;

    return object_take(name, value, &terms->collation, err) &&
           ((document_find(value->document, SLICE("locale"), &locale) &&
             locale.type == DOCUMENT_STRING) ||
            mongo_error_set(err, MONGO_IDL_FAILED_TO_PARSE,
                            "BSON field 'create.collation.locale' is missing but a required "
                            "field"));
}

static bool images_take(struct mongo_terms *terms, struct slice name,
                        const struct document_value *value, struct error *err)
{
    struct document_value enabled;
    struct slice object;

    if (!object_take(name, value, &object, err))
        return false;
    if (!document_find(object, SLICE("enabled"), &enabled) || enabled.type != DOCUMENT_BOOL)
        return mongo_error_set(err, MONGO_IDL_FAILED_TO_PARSE,
                               "BSON field 'create.changeStreamPreAndPostImages.enabled' is "
                               "missing but a required field");
    terms->images = enabled.boolean;
    return true;
}

static bool timeseries_refuse(struct mongo_terms *terms UNUSED, struct slice name,
                              const struct document_value *value UNUSED, struct error *err)
{
    return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                           "create: %.*s is not offered: time-series collections are not, use a "
                           "collection with an index on the time",
                           SLICE_ARG(name));
}

static bool clustered_refuse(struct mongo_terms *terms UNUSED, struct slice name,
                             const struct document_value *value UNUSED, struct error *err)
{
    return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                           "create: %.*s is not offered: every collection is stored by its _id",
                           SLICE_ARG(name));
}

static bool expires_refuse(struct mongo_terms *terms UNUSED, struct slice name UNUSED,
                           const struct document_value *value UNUSED, struct error *err)
{
    return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                           "'expireAfterSeconds' is only supported on time-series collections or "
                           "when the 'clusteredIndex' option is specified");
}

static bool engine_refuse(struct mongo_terms *terms UNUSED, struct slice name,
                          const struct document_value *value, struct error *err)
{
    return (value->type == DOCUMENT_OBJECT && !document_count(value->document)) ||
           mongo_error_set(err, MONGO_INVALID_OPTIONS,
                           "create: %.*s: there are no options of a storage engine here",
                           SLICE_ARG(name));
}

static const struct {
    struct slice name;
    bool (*take)(struct mongo_terms *terms, struct slice name, const struct document_value *value,
                 struct error *err);
} options[] = {
    {SLICE("capped"), capped_take},
    {SLICE("size"), size_take},
    {SLICE("max"), max_take},
    {SLICE("validator"), validator_take},
    {SLICE("validationLevel"), level_take},
    {SLICE("validationAction"), action_take},
    {SLICE("viewOn"), view_on_take},
    {SLICE("pipeline"), pipeline_take},
    {SLICE("collation"), collation_take},
    {SLICE("changeStreamPreAndPostImages"), images_take},
    {SLICE("timeseries"), timeseries_refuse},
    {SLICE("clusteredIndex"), clustered_refuse},
    {SLICE("expireAfterSeconds"), expires_refuse},
    {SLICE("storageEngine"), engine_refuse},
    {SLICE("indexOptionDefaults"), engine_refuse},
};

/* --- Which go together ----------------------------------------------------------------------- */

static bool view_check(const struct mongo_terms *terms, struct error *err)
{
    if (terms->pipeline.data && !terms->view_on.data)
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "'pipeline' requires 'viewOn' to also be specified");
    if (!terms->view_on.data)
        return true;
    if (terms->capped || terms->validator.data || terms->images)
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "the options capped, validator and changeStreamPreAndPostImages "
                               "are not of views");
    return true;
}

static bool capped_check(const struct mongo_terms *terms, struct error *err)
{
    if (!terms->capped)
        return (!terms->size && !terms->max) ||
               mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "the 'size' and 'max' fields need 'capped' to be true");
    if (terms->size <= 0)
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "the 'size' field is required when 'capped' is true");
    return terms->size >> 30 <= CAPPED_BYTES_MAX_GIB ||
           mongo_error_set(err, MONGO_BAD_VALUE,
                           "the size of a capped collection is at most %d GiB",
                           CAPPED_BYTES_MAX_GIB);
}

static bool options_walk(struct slice document, struct mongo_terms *terms, struct error *err)
{
    struct document_iter iter;

    document_iter_init(&iter, document);
    while (document_iter_next(&iter)) {
        size_t at = 0;

        while (at < ARRAY_LEN(options) && !slice_equal(options[at].name, iter.key))
            at++;
        if (at == ARRAY_LEN(options))
            return mongo_error_set(err, MONGO_IDL_UNKNOWN_FIELD,
                                   "BSON field 'create.%.*s' is an unknown field.",
                                   (int)MIN(iter.key.len, (size_t)64), (const char *)iter.key.data);
        if (is_given(&iter.value) && !options[at].take(terms, iter.key, &iter.value, err))
            return false;
    }
    return true;
}

bool mongo_terms_read(struct slice document, struct mongo_terms *ret_terms, struct error *err)
{
    struct mongo_terms terms = {.options = document};

    if (document.len > MONGO_TERMS_BYTES_MAX)
        return mongo_error_set(err, MONGO_BSON_OBJECT_TOO_LARGE,
                               "the options of a collection are at most %d bytes long",
                               MONGO_TERMS_BYTES_MAX);
    if (!options_walk(document, &terms, err) || !view_check(&terms, err) ||
        !capped_check(&terms, err))
        return false;
    *ret_terms = terms;
    return true;
}

/* --- Stored ---------------------------------------------------------------------------------- */

bool mongo_terms_of(const struct container *container, struct mongo_terms *ret_terms,
                    struct error *err)
{
    struct slice stored = definition_fields(container_definition(container))->mongo;
    struct document_value version, value;
    int64_t number;

    *ret_terms = (struct mongo_terms){0};
    if (!stored.data || !document_count(stored))
        return true;
    if (!document_find(stored, SLICE("v"), &version) || !document_to_int64(&version, &number) ||
        number != MONGO_TERMS_VERSION || !document_find(stored, SLICE("options"), &value) ||
        value.type != DOCUMENT_OBJECT)
        return error_set(err, ERROR_STORE_VERSION,
                         "orrery.mongo of container \"%.*s\" was written by a later version",
                         SLICE_ARG(container_info(container)->id));
    return mongo_terms_read(value.document, ret_terms, err);
}

struct slice mongo_terms_stored(struct slice document, struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    const struct document_value value = document_object(document);
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_int32(&out, SLICE("v"), MONGO_TERMS_VERSION);
    document_append(&out, SLICE("options"), &value);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}
