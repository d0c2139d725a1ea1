#include "front/gremlin/command/arguments.h"

#include "front/gremlin/value/container.h"
#include "front/gremlin/value/text.h"

enum {
    BATCH_DEFAULT = 64,
    SHOWN_MAX = 64,
    SESSION_NAME_MAX = 256,
};

/* --- One argument ------------------------------------------------------------------------------
 */

static struct slice text_of(struct gremlin_value value)
{
    return gremlin_is_string(value) ? gremlin_bytes(value) : SLICE_NONE;
}

static bool text_read(struct gremlin_value args, struct slice name, struct slice *ret_text,
                      struct error *err)
{
    const struct gremlin_value *value = gremlin_map_get_text(args, name);

    *ret_text = SLICE_NONE;
    if (!value || gremlin_is_null(*value))
        return true;
    *ret_text = text_of(*value);
    return ret_text->data ||
           error_set(err, ERROR_BAD_REQUEST, "the argument [%.*s] must be a string, not a %s",
                     SLICE_ARG(name), gremlin_type_name(value->type));
}

static bool flag_read(struct gremlin_value args, struct slice name, bool *flag, struct error *err)
{
    const struct gremlin_value *value = gremlin_map_get_text(args, name);

    if (!value || gremlin_is_null(*value))
        return true;
    if (value->type != GREMLIN_BOOLEAN)
        return error_set(err, ERROR_BAD_REQUEST, "the argument [%.*s] must be true or false",
                         SLICE_ARG(name));
    *flag = value->boolean;
    return true;
}

/* Stays as it is where the argument is not there. */
static bool number_read(struct gremlin_value args, struct slice name, int64_t *number,
                        struct error *err)
{
    const struct gremlin_value *value = gremlin_map_get_text(args, name);

    if (!value || gremlin_is_null(*value))
        return true;
    if (gremlin_is_number(*value) && gremlin_number_long(*value, number) && *number >= 0)
        return true;
    return error_set(err, ERROR_BAD_REQUEST, "the argument [%.*s] must be a whole number from 0 on",
                     SLICE_ARG(name));
}

/* --- Those of a request ------------------------------------------------------------------------
 */

static bool bindings_read(struct gremlin_value args, struct gremlin_asked *asked, struct error *err)
{
    const struct gremlin_value *value = gremlin_map_get_text(args, SLICE("bindings"));
    const struct gremlin_table *table;

    if (!value || gremlin_is_null(*value))
        return true;
    if (value->type != GREMLIN_MAP)
        return error_set(err, ERROR_BAD_REQUEST, "the argument [bindings] must be a map, not a %s",
                         gremlin_type_name(value->type));
    table = gremlin_table(*value);
    for (size_t i = 0; i < table->count; i++)
        if (!gremlin_is_string(table->rows[i].key))
            return error_set(err, ERROR_BAD_REQUEST,
                             "the argument [bindings] has a key that is no string but a %s",
                             gremlin_type_name(table->rows[i].key.type));
    asked->bindings = value;
    return true;
}

/* One name for the source, and what it stands for. */
static bool aliases_read(struct gremlin_value args, struct gremlin_asked *asked, struct error *err)
{
    const struct gremlin_value *value = gremlin_map_get_text(args, SLICE("aliases"));
    const struct gremlin_row *row;

    asked->source = SLICE("g");
    if (!value || gremlin_is_null(*value))
        value = gremlin_map_get_text(args, SLICE("rebindings"));
    if (!value || gremlin_is_null(*value))
        return true;
    if (value->type != GREMLIN_MAP || gremlin_table(*value)->count > 1)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the argument [aliases] must be a map of one name to a traversal source");
    if (!gremlin_table(*value)->count)
        return true;
    row = &gremlin_table(*value)->rows[0];
    asked->source = text_of(row->key);
    asked->alias = text_of(row->value);
    if (!asked->source.len || !asked->alias.len)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the argument [aliases] must map one name to another");
    return true;
}

static bool language_check(struct gremlin_value args, struct error *err)
{
    struct slice language;

    if (!text_read(args, SLICE("language"), &language, err))
        return false;
    return !language.len || slice_equal(language, SLICE("gremlin-groovy")) ||
           slice_equal(language, SLICE("gremlin-lang")) ||
           slice_equal(language, SLICE("gremlin-java")) || /* of bytecode in old drivers */
           error_set(err, ERROR_BAD_REQUEST,
                     "scripts in the language \"%.*s\" are not run: gremlin-groovy and "
                     "gremlin-lang are",
                     (int)MIN(language.len, (size_t)SHOWN_MAX), (const char *)language.data);
}

static bool materialize_read(struct gremlin_value args, struct gremlin_asked *asked,
                             struct error *err)
{
    struct slice mode;

    if (!text_read(args, SLICE("materializeProperties"), &mode, err))
        return false;
    asked->tokens = slice_equal(mode, SLICE("tokens"));
    return asked->tokens || !mode.data || slice_equal(mode, SLICE("all")) ||
           error_set(err, ERROR_BAD_REQUEST,
                     "the argument [materializeProperties] must be \"all\" or \"tokens\"");
}

static bool limits_read(const struct gremlin *gremlin, struct gremlin_value args,
                        struct gremlin_asked *asked, struct error *err)
{
    const struct gremlin_options *options = &gremlin->options;
    int64_t batch = BATCH_DEFAULT, time = options->evaluation_ms;

    if (!number_read(args, SLICE("batchSize"), &batch, err) ||
        !number_read(args, SLICE("scriptEvaluationTimeout"), &time, err) ||
        !number_read(args, SLICE("evaluationTimeout"), &time, err))
        return false;
    if (batch < 1 || batch > GREMLIN_BATCH_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "the argument [batchSize] must be from 1 to %d",
                         GREMLIN_BATCH_MAX);
    asked->batch = (size_t)batch;
    /* 0 is: without end, which there is none of */
    asked->evaluation_ms =
        time ? MIN(time, options->evaluation_ms_max) : options->evaluation_ms_max;
    return true;
}

static bool session_read(struct gremlin_value args, bool wanted, struct gremlin_asked *asked,
                         struct error *err)
{
    const struct gremlin_value *value = gremlin_map_get_text(args, SLICE("session"));
    bool managed = true;

    if (!wanted)
        return true;
    if (value && (gremlin_is_string(*value) || value->type == GREMLIN_UUID))
        asked->session = gremlin_bytes(*value);
    if (!asked->session.len || asked->session.len > SESSION_NAME_MAX)
        return error_set(err, ERROR_BAD_REQUEST,
                         "a request for the processor [session] needs the argument [session], a "
                         "text of up to %d bytes",
                         SESSION_NAME_MAX);
    if (!flag_read(args, SLICE("manageTransaction"), &managed, err))
        return false;
    asked->open_ended = !managed;
    return true;
}

bool gremlin_arguments_read(const struct gremlin *gremlin, struct gremlin_value args,
                            struct gremlin_asked *ret_asked, struct error *err)
{
    const struct gremlin_value *code = gremlin_map_get_text(args, SLICE("gremlin"));
    struct gremlin_asked asked = {
        .op = ret_asked->op, .session = ret_asked->session, .open_ended = ret_asked->open_ended};

    if (!code || gremlin_is_null(*code))
        return error_set(err, ERROR_BAD_REQUEST,
                         "a request with an op of eval or bytecode requires a [gremlin] argument");
    if (asked.op == GREMLIN_OP_EVAL && !gremlin_is_string(*code))
        return error_set(err, ERROR_BAD_REQUEST,
                         "the argument [gremlin] of eval must be a string, not a %s",
                         gremlin_type_name(code->type));
    if (asked.op == GREMLIN_OP_BYTECODE && code->type != GREMLIN_TRAVERSAL)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the argument [gremlin] of bytecode must be bytecode, not a %s",
                         gremlin_type_name(code->type));
    if (asked.op == GREMLIN_OP_EVAL)
        asked.script = gremlin_bytes(*code);
    else
        asked.traversal = (const struct gremlin_traversal *)code->object;
    if (!bindings_read(args, &asked, err) || !aliases_read(args, &asked, err) ||
        !language_check(args, err) || !materialize_read(args, &asked, err) ||
        !limits_read(gremlin, args, &asked, err))
        return false;
    if (asked.op == GREMLIN_OP_BYTECODE && !asked.alias.data)
        return error_set(err, ERROR_BAD_REQUEST,
                         "a request with an op of bytecode requires the argument [aliases] with "
                         "the name of a traversal source");
    *ret_asked = asked;
    return true;
}

/* --- What is asked for -------------------------------------------------------------------------
 */

struct op_row {
    const char *name;
    enum gremlin_op op;
    const char *refused; /* NULL: it is carried out */
};

static const struct op_row ops[] = {
#define GREMLIN_OP(name, constant, processors, meaning) {name, GREMLIN_OP_##constant, NULL},
#define GREMLIN_OP_REFUSED(name, processors, why) {name, 0, why},
#include "front/gremlin/command/ops.def"
#undef GREMLIN_OP
#undef GREMLIN_OP_REFUSED
};

static bool op_find(struct slice name, struct slice processor, enum gremlin_op *ret_op,
                    struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        if (!slice_equal(name, slice_of_text(ops[i].name)))
            continue;
        if (ops[i].refused)
            return error_set(err, ERROR_BAD_REQUEST, "the op [%s] is not supported: %s",
                             ops[i].name, ops[i].refused);
        *ret_op = ops[i].op;
        return true;
    }
    return error_set(err, ERROR_BAD_REQUEST,
                     "message with op code [%.*s] of processor [%.*s] is "
                     "not recognized",
                     (int)MIN(name.len, (size_t)SHOWN_MAX), (const char *)name.data,
                     (int)MIN(processor.len, (size_t)SHOWN_MAX), (const char *)processor.data);
}

static bool processor_check(struct slice processor, struct error *err)
{
    return !processor.len || slice_equal(processor, SLICE("traversal")) ||
           slice_equal(processor, SLICE("session")) ||
           error_set(err, ERROR_BAD_REQUEST, "there is no op processor [%.*s]",
                     (int)MIN(processor.len, (size_t)SHOWN_MAX), (const char *)processor.data);
}

bool gremlin_asked_read(const struct gremlin *gremlin, const struct gremlin_request *request,
                        struct gremlin_asked *ret_asked, uint16_t *ret_code, struct error *err)
{
    struct slice op = text_of(request->op), processor = text_of(request->processor);
    struct gremlin_asked asked = {0};
    bool session = slice_equal(processor, SLICE("session"));

    *ret_code = 498;
    if (!op_find(op, processor, &asked.op, err) || !processor_check(processor, err))
        return false;
    *ret_code = 499;
    if (asked.op == GREMLIN_OP_AUTHENTICATION) {
        *ret_code = 401;
        if (!text_read(request->args, SLICE("sasl"), &asked.sasl, err))
            return false;
        if (!asked.sasl.data)
            return error_set(err, ERROR_BAD_REQUEST,
                             "a request with an op of authentication requires a [sasl] argument");
    } else if (!session_read(request->args, session || asked.op == GREMLIN_OP_CLOSE, &asked, err)) {
        return false;
    } else if (asked.op != GREMLIN_OP_CLOSE &&
               !gremlin_arguments_read(gremlin, request->args, &asked, err)) {
        return false;
    }
    *ret_asked = asked;
    return true;
}
