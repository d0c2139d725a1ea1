#include "front/mongo/expression/javascript.h"

#include "document/json.h"
#include "front/mongo/expression/expression_private.h"
#include "mongo_prelude.h"

enum { CODE_BYTES_MAX = 256 * 1024 }; /* it goes with every batch */

/* --- Texts ------------------------------------------------------------------------------------ */

/* Code without a scope, or a string. */
static bool code_read(const struct document_value *value, const char *what, int code,
                      struct slice *ret_text, struct error *err)
{
    if (value->type != DOCUMENT_STRING && value->type != DOCUMENT_CODE)
        return mongo_error_set(err, code, "%s must be a string or code, but found %s", what,
                               mongo_type_name(value->type));
    if (value->text.len > CODE_BYTES_MAX)
        return mongo_error_set(err, MONGO_BAD_VALUE, "%s is longer than %d bytes", what,
                               CODE_BYTES_MAX);
    *ret_text = value->text;
    return true;
}

/* The prelude, called with the kind and the texts; one with data NULL is null. */
static struct slice source_of(struct arena *arena, const char *kind, const struct slice *texts,
                              size_t count)
{
    CLEANUP(buf_done) struct buf source;

    buf_init(&source, BUF_DEFAULT_MAX);
    buf_append_slice(&source, slice_of_text(mongo_prelude_text));
    BUF_APPEND(&source, "(");
    document_json_write_string(slice_of_text(kind), &source);
    BUF_APPEND(&source, ",");
    for (size_t i = 0; i < count; i++) {
        buf_append_byte(&source, i ? ',' : '[');
        if (texts[i].data)
            document_json_write_string(texts[i], &source);
        else
            BUF_APPEND(&source, "null");
    }
    BUF_APPEND(&source, "])");
    assert(!buf_overflowed(&source));
    return arena_copy(arena, buf_slice(&source));
}

/* --- $where ----------------------------------------------------------------------------------- */

bool mongo_where_hook(void *self UNUSED, const struct document_value *code,
                      struct query_build *build, const struct query_expression **ret_expression,
                      struct error *err)
{
    const struct query_expression *document = mongo_expression_root(build, 0);
    struct slice text;

    if (!code_read(code, "$where", MONGO_BAD_VALUE, &text, err))
        return false;
    build->script = "$where";
    *ret_expression =
        query_udf_call(build, source_of(build->arena, "where", &text, 1), &document, 1);
    return true;
}

/* --- $function -------------------------------------------------------------------------------- */

/* Where arguments use variables that are bound within the expression, nobody can evaluate them
 * ahead: such a call is a node of this folder, and made when it is its turn. */
static bool call_compute(struct expression_call *call)
{
    struct query_context *context = call->context;

    if (!context->udf.call)
        return mongo_error_set(call->err, MONGO_NOT_IMPLEMENTED,
                               "$function is not available here: JavaScript is not run");
    if (!context->udf.call(context->udf.self, call->node->settings->text, call->arguments, 1,
                           context, call->ret, call->err))
        return false;
    context->udf_bytes += query_udf_bytes(call->arguments, 1) + query_value_bytes(call->ret);
    return true;
}

static const struct expression_operator op_call = {"$function", .compute = call_compute,
                                                   .unstable = true};

static const struct query_expression *call_make(struct expression_compile *compile,
                                                struct slice source,
                                                const struct query_expression *argument)
{
    struct expression_node *node = expression_node_new(compile, &op_call, &argument, 1);
    struct document_value *text;

    if (node->lowest == EXPRESSION_NEVER)
        return query_udf_call(compile->build, source, &argument, 1);
    text = ARENA_NEW(compile->build->arena, struct document_value);
    *text = document_string(source);
    node->settings = text;
    return &node->head;
}

static bool lang_check(struct expression_compile *compile, const struct document_value *lang)
{
    if (lang->type == DOCUMENT_UNDEFINED)
        return mongo_error_set(compile->err, 4660802, "The lang field must be specified.");
    if (lang->type != DOCUMENT_STRING || !slice_equal(lang->text, SLICE("js")))
        return mongo_error_set(compile->err, 4660803,
                               "Currently the only supported language specifier is 'js'.");
    return true;
}

EXPRESSION_PARSE(expression_function_parse)
{
    struct document_value body = document_undefined(), args = body, lang = body;
    const struct query_expression *argument;
    struct document_iter iter;
    struct slice text;

    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err, 4660800,
                               "%s requires an object as an argument, found: %s", op->name,
                               mongo_type_name(value->type));
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("body")))
            body = iter.value;
        else if (slice_equal(iter.key, SLICE("args")))
            args = iter.value;
        else if (slice_equal(iter.key, SLICE("lang")))
            lang = iter.value;
        else
            return mongo_error_set(compile->err, MONGO_FAILED_TO_PARSE,
                                   "%s found an unknown argument: %.*s", op->name,
                                   SLICE_ARG(iter.key));
    }
    if (body.type == DOCUMENT_UNDEFINED)
        return mongo_error_set(compile->err, 4660800, "The body function must be specified.");
    if (args.type == DOCUMENT_UNDEFINED)
        return mongo_error_set(compile->err, 4660801, "The args field must be specified.");
    if (!lang_check(compile, &lang) ||
        !code_read(&body, "body of $function", 4660800, &text, compile->err) ||
        !expression_compile_value(compile, &args, &argument))
        return false;
    if (query_is_constant(argument) && query_constant_value(argument)->type != DOCUMENT_ARRAY)
        return mongo_error_set(compile->err, 31266, "The args field must be of type array");
    compile->build->script = "$function";
    *ret = call_make(compile, source_of(compile->build->arena, "function", &text, 1), argument);
    return true;
}

/* --- $accumulator ----------------------------------------------------------------------------- */

enum accumulator_field {
    FIELD_INIT,
    FIELD_ACCUMULATE,
    FIELD_MERGE,
    FIELD_FINALIZE,
    FIELD_INIT_ARGS,
    FIELD_ACCUMULATE_ARGS,
    FIELD_LANG,
    FIELDS,
};

static const char *const field_names[FIELDS] = {"init",     "accumulate",     "merge", "finalize",
                                                "initArgs", "accumulateArgs", "lang"};

static bool fields_read(struct expression_compile *compile, const struct document_value *argument,
                        struct document_value fields[FIELDS])
{
    struct document_iter iter;

    for (size_t i = 0; i < FIELDS; i++)
        fields[i] = document_undefined();
    if (argument->type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err, 4544703,
                               "$accumulator expects an object as an argument; found: %s",
                               mongo_type_name(argument->type));
    document_iter_init(&iter, argument->document);
    while (document_iter_next(&iter)) {
        size_t i = 0;

        while (i < FIELDS && !slice_equal(iter.key, slice_of_text(field_names[i])))
            i++;
        if (i == FIELDS)
            return mongo_error_set(compile->err, 4544706,
                                   "$accumulator got an unexpected field: %.*s",
                                   SLICE_ARG(iter.key));
        fields[i] = iter.value;
    }
    for (size_t i = 0; i < FIELDS; i++)
        if (fields[i].type == DOCUMENT_UNDEFINED && i != FIELD_FINALIZE && i != FIELD_INIT_ARGS &&
            i != FIELD_LANG)
            return mongo_error_set(compile->err, 4544707, "$accumulator '%s' must be specified",
                                   field_names[i]);
    return lang_check(compile, &fields[FIELD_LANG]);
}

/* What init is called with, as JSON: the same for all groups. */
static bool init_args_read(struct expression_compile *compile, const struct document_value *value,
                           struct slice *ret_json)
{
    const struct query_expression *made;
    CLEANUP(buf_done) struct buf json;

    buf_init(&json, CODE_BYTES_MAX);
    *ret_json = SLICE("[]");
    if (value->type == DOCUMENT_UNDEFINED)
        return true;
    if (!expression_compile_value(compile, value, &made))
        return false;
    if (!query_is_constant(made))
        return mongo_error_set(compile->err, MONGO_NOT_IMPLEMENTED,
                               "'initArgs' of $accumulator has to be constant here");
    if (query_constant_value(made)->type != DOCUMENT_ARRAY)
        return mongo_error_set(compile->err, 4544711,
                               "$accumulator initArgs must evaluate to an array: %s",
                               mongo_type_name(query_constant_value(made)->type));
    document_json_write_value(query_constant_value(made), &json);
    if (buf_overflowed(&json))
        return mongo_error_set(compile->err, MONGO_BAD_VALUE,
                               "initArgs of $accumulator is longer than %d bytes", CODE_BYTES_MAX);
    *ret_json = arena_copy(compile->build->arena, buf_slice(&json));
    return true;
}

bool expression_script_accumulate(struct expression_compile *compile,
                                  const struct document_value *argument,
                                  const struct query_expression *list,
                                  const struct query_expression **ret_argument,
                                  const struct query_expression **ret_result)
{
    struct document_value fields[FIELDS];
    struct slice texts[FIELD_INIT_ARGS + 1] = {0};

    if (!fields_read(compile, argument, fields))
        return false;
    for (size_t i = FIELD_INIT; i <= FIELD_FINALIZE; i++)
        if (fields[i].type != DOCUMENT_UNDEFINED &&
            !code_read(&fields[i], field_names[i], 4544701, &texts[i], compile->err))
            return false;
    if (!init_args_read(compile, &fields[FIELD_INIT_ARGS], &texts[FIELD_INIT_ARGS]) ||
        !expression_compile_value(compile, &fields[FIELD_ACCUMULATE_ARGS], ret_argument))
        return false;
    compile->build->script = "$accumulator";
    *ret_result = query_udf_call(
        compile->build, source_of(compile->build->arena, "accumulator", texts, ARRAY_LEN(texts)),
        &list, 1);
    return true;
}
