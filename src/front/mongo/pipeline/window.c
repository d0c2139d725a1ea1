/* $setWindowFields. Accumulators are those of groups, over the documents of a frame; what is
 * computed from neighbours is made of first and last, of lists of pairs [place, value], or folded
 * from document to document. */
#include "front/mongo/pipeline/window.h"

#include <math.h>

/* --- Numbers --------------------------------------------------------------------------------- */

static bool place_number(const struct document_value *value, double *ret_number)
{
    if (value->type == DOCUMENT_DATE) {
        *ret_number = (double)value->int64;
        return true;
    }
    return document_to_double(value, ret_number);
}

static bool pair_read(const struct document_value *pair, double *ret_x, double *ret_y)
{
    struct document_value x, y;

    return pair->type == DOCUMENT_ARRAY && document_find_index(pair->document, 0, &x) &&
           document_find_index(pair->document, 1, &y) && place_number(&x, ret_x) &&
           place_number(&y, ret_y);
}

bool pipeline_unit(struct slice name, int64_t *ret_ms, int64_t *ret_months)
{
    static const struct {
        const char *name;
        int64_t ms, months;
    } units[] = {{"millisecond", 1, 0}, {"second", 1000, 0},  {"minute", 60000, 0},
                 {"hour", 3600000, 0},  {"day", 86400000, 0}, {"week", 604800000, 0},
                 {"month", 0, 1},       {"quarter", 0, 3},    {"year", 0, 12}};

    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (slice_equal(name, slice_of_text(units[i].name))) {
            *ret_ms = units[i].ms;
            *ret_months = units[i].months;
            return true;
        }
    return false;
}

/* --- Outputs --------------------------------------------------------------------------------- */

static const struct query_bound unbounded = {QUERY_BOUND_UNBOUNDED, 0};
static const struct query_bound current = {QUERY_BOUND_OFFSET, 0};

bool pipeline_window_output(struct pipeline *p, struct pipeline_window *window,
                            struct query_window_output output,
                            const struct query_expression **ret_value, struct error *err)
{
    if (!pipeline_result_slot(p, window->output_count, &output.slot, err))
        return false;
    window->outputs[window->output_count++] = output;
    *ret_value = query_variable(p->build, output.slot);
    return true;
}

/* [place, value], undefined where the value is nothing (data: then it is left out). */
static bool pair_evaluate(const struct query_expression *expression, struct query_context *context,
                          struct document_value *ret_value, struct error *err)
{
    size_t mark, begin;
    struct document_value x, y;

    *ret_value = document_undefined();
    if (!query_evaluate(expression->children[0], context, &x, err) ||
        !query_evaluate(expression->children[1], context, &y, err))
        return false;
    if (x.type == DOCUMENT_UNDEFINED || y.type == DOCUMENT_UNDEFINED || y.type == DOCUMENT_NULL)
        return true;
    mark = query_build_begin(context);
    begin = document_begin(&context->scratch);
    document_append(&context->scratch, SLICE("0"), &x);
    document_append(&context->scratch, SLICE("1"), &y);
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_value, err);
}

static const struct query_kind pair_kind = {"pair", pair_evaluate, QUERY_STABLE};

static const struct query_expression *pair_of(struct pipeline *p, const struct query_expression *x,
                                              const struct query_expression *y)
{
    const struct query_expression *children[] = {x, y};

    return pipeline_node(p->build, &pair_kind, NULL, children, 2);
}

/* --- Folds ----------------------------------------------------------------------------------- */

static bool is_nothing(const struct document_value *value)
{
    return value->type == DOCUMENT_UNDEFINED || value->type == DOCUMENT_NULL;
}

static bool locf_evaluate(const struct query_expression *expression UNUSED,
                          struct query_context *context, struct document_value *ret_value,
                          struct error *err UNUSED)
{
    *ret_value = context->slots[SLOT_INDEX].value;
    if (is_nothing(ret_value))
        *ret_value = context->slots[SLOT_BESIDE].value;
    return true;
}

static bool moving_evaluate(const struct query_expression *expression,
                            struct query_context *context, struct document_value *ret_value,
                            struct error *err UNUSED)
{
    const double *alpha = ((const struct pipeline_node *)expression)->data;
    const struct document_value *before = &context->slots[SLOT_BESIDE].value,
                                *value = &context->slots[SLOT_INDEX].value;
    double a, b;

    *ret_value = *before;
    if (!document_is_number(value))
        return true;
    *ret_value = *value;
    if (document_to_double(before, &a) && document_to_double(value, &b))
        *ret_value = document_double(b * *alpha + a * (1 - *alpha));
    return true;
}

static const struct query_kind locf_kind = {"locf", locf_evaluate, QUERY_STABLE};
static const struct query_kind moving_kind = {"moving", moving_evaluate, QUERY_STABLE};

static bool fold_output(struct pipeline *p, struct pipeline_window *window,
                        const struct query_kind *kind, const void *data,
                        const struct query_expression *input,
                        const struct query_expression **ret_value, struct error *err)
{
    const struct query_expression *children[] = {query_variable(p->build, SLOT_BESIDE),
                                                 query_variable(p->build, SLOT_INDEX)};
    const struct query_window_output output = {
        .kind = QUERY_WINDOW_FOLD,
        .argument = input,
        .fold = pipeline_node(p->build, kind, data, children, 2),
        .fold_slot = SLOT_BESIDE,
        .fold_argument = SLOT_INDEX,
    };

    if (!pipeline_window_output(p, window, output, ret_value, err))
        return false;
    *ret_value = pipeline_or_null(p->build, *ret_value);
    return true;
}

bool pipeline_window_locf(struct pipeline *p, struct pipeline_window *window,
                          const struct query_expression *input,
                          const struct query_expression **ret_value, struct error *err)
{
    return fold_output(p, window, &locf_kind, NULL, input, ret_value, err);
}

/* --- On a line ------------------------------------------------------------------------------- */

/* children: the value, the pair before, the pair behind, the place. */
static bool line_evaluate(const struct query_expression *expression, struct query_context *context,
                          struct document_value *ret_value, struct error *err)
{
    struct document_value parts[4];
    double x0, y0, x1, y1, x;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (!query_evaluate(expression->children[i], context, &parts[i], err))
            return false;
    *ret_value = parts[0];
    if (!is_nothing(&parts[0]))
        return document_is_number(&parts[0]) ||
               mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "Value to be filled must be numeric or nullish");
    *ret_value = document_null();
    if (pair_read(&parts[1], &x0, &y0) && pair_read(&parts[2], &x1, &y1) &&
        place_number(&parts[3], &x) && x1 > x0)
        *ret_value = document_double(y0 + (y1 - y0) * ((x - x0) / (x1 - x0)));
    return true;
}

static const struct query_kind line_kind = {"line", line_evaluate, QUERY_STABLE};

bool pipeline_window_linear(struct pipeline *p, struct pipeline_window *window,
                            const struct query_expression *input,
                            const struct query_expression **ret_value, struct error *err)
{
    struct query_window_output output = {.kind = QUERY_WINDOW_AGGREGATE};
    const struct query_expression *children[4] = {input};

    if (!window->by)
        return mongo_error_set(err, 605001,
                               "$linearFill must be specified with a top level sortBy expression "
                               "with exactly one element");
    output.argument = pair_of(p, window->by, input);
    output.aggregate = QUERY_MAX; /* the pair with the greatest place, of those so far */
    output.from = unbounded;
    output.to = current;
    if (!pipeline_window_output(p, window, output, &children[1], err))
        return false;
    output.aggregate = QUERY_MIN;
    output.from = current;
    output.to = unbounded;
    if (!pipeline_window_output(p, window, output, &children[2], err))
        return false;
    children[3] = window->by;
    *ret_value = pipeline_node(p->build, &line_kind, NULL, children, 4);
    return true;
}

/* --- Of pairs -------------------------------------------------------------------------------- */

struct unit {
    double ms; /* of one; 0: places are plain numbers */
    bool sample;
};

static bool derivative_evaluate(const struct query_expression *expression,
                                struct query_context *context, struct document_value *ret_value,
                                struct error *err)
{
    const struct unit *unit = ((const struct pipeline_node *)expression)->data;
    struct document_value first, last;
    double x0, y0, x1, y1;

    *ret_value = document_null();
    if (!query_evaluate(expression->children[0], context, &first, err) ||
        !query_evaluate(expression->children[1], context, &last, err))
        return false;
    if (pair_read(&first, &x0, &y0) && pair_read(&last, &x1, &y1) && x1 != x0)
        *ret_value = document_double((y1 - y0) / ((x1 - x0) / (unit->ms ? unit->ms : 1)));
    return true;
}

static bool integral_evaluate(const struct query_expression *expression,
                              struct query_context *context, struct document_value *ret_value,
                              struct error *err)
{
    const struct unit *unit = ((const struct pipeline_node *)expression)->data;
    double sum = 0, x0 = 0, y0 = 0, x, y;
    struct document_value list;
    struct document_iter iter;
    bool any = false;

    if (!query_evaluate(expression->children[0], context, &list, err))
        return false;
    *ret_value = document_null();
    if (list.type != DOCUMENT_ARRAY)
        return true;
    document_iter_init(&iter, list.document);
    while (document_iter_next(&iter)) {
        if (!query_work(context, 1, err))
            return false;
        if (!pair_read(&iter.value, &x, &y))
            continue;
        if (any)
            sum += (x - x0) / (unit->ms ? unit->ms : 1) * (y + y0) / 2;
        x0 = x;
        y0 = y;
        any = true;
    }
    if (any)
        *ret_value = document_double(sum);
    return true;
}

static bool covariance_evaluate(const struct query_expression *expression,
                                struct query_context *context, struct document_value *ret_value,
                                struct error *err)
{
    const struct unit *unit = ((const struct pipeline_node *)expression)->data;
    double mean_x = 0, mean_y = 0, sum = 0, x, y;
    struct document_value list;
    struct document_iter iter;
    uint64_t count = 0;

    if (!query_evaluate(expression->children[0], context, &list, err))
        return false;
    *ret_value = document_null();
    if (list.type != DOCUMENT_ARRAY)
        return true;
    document_iter_init(&iter, list.document);
    while (document_iter_next(&iter)) {
        double from_mean;

        if (!query_work(context, 1, err))
            return false;
        if (!pair_read(&iter.value, &x, &y))
            continue;
        count++;
        from_mean = x - mean_x;
        mean_x += from_mean / (double)count;
        mean_y += (y - mean_y) / (double)count;
        sum += from_mean * (y - mean_y);
    }
    if (count > unit->sample)
        *ret_value = document_double(sum / (double)(count - unit->sample));
    return true;
}

static const struct query_kind derivative_kind = {"derivative", derivative_evaluate, QUERY_STABLE};
static const struct query_kind integral_kind = {"integral", integral_evaluate, QUERY_STABLE};
static const struct query_kind covariance_kind = {"covariance", covariance_evaluate, QUERY_STABLE};

/* --- Frames ---------------------------------------------------------------------------------- */

struct frame {
    bool given;
    enum query_frame_by by;
    struct query_bound from, to;
    bool dates; /* of a range: offsets are in milliseconds */
};

static bool bound_read(const struct document_value *value, bool lower, double scale,
                       struct query_bound *ret_bound, struct error *err)
{
    double number;

    if (value->type == DOCUMENT_STRING && slice_equal(value->text, SLICE("unbounded"))) {
        *ret_bound = unbounded;
        return true;
    }
    if (value->type == DOCUMENT_STRING && slice_equal(value->text, SLICE("current"))) {
        *ret_bound = current;
        return true;
    }
    if (!document_to_double(value, &number))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "Window bounds must be 'unbounded', 'current', or a number");
    if (!scale && number != trunc(number))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "Numeric document-based bounds must be an integer");
    *ret_bound = (struct query_bound){QUERY_BOUND_OFFSET, number * (scale ? scale : 1)};
    (void)lower;
    return true;
}

static bool bounds_read(const struct document_value *array, double scale, struct frame *frame,
                        struct error *err)
{
    struct document_value low, high;

    if (array->type != DOCUMENT_ARRAY || document_count(array->document) != 2 ||
        !document_find_index(array->document, 0, &low) ||
        !document_find_index(array->document, 1, &high))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "Window bounds must be a 2-element array");
    if (!bound_read(&low, true, scale, &frame->from, err) ||
        !bound_read(&high, false, scale, &frame->to, err))
        return false;
    if (frame->from.kind == QUERY_BOUND_OFFSET && frame->to.kind == QUERY_BOUND_OFFSET &&
        frame->from.offset > frame->to.offset)
        return mongo_error_set(err, 5339900, "Lower bound must not exceed upper bound");
    return true;
}

static bool unit_read(const struct document_value *unit, int64_t *ret_ms, struct error *err)
{
    int64_t months;

    *ret_ms = 0;
    if (unit->type == DOCUMENT_UNDEFINED)
        return true;
    if (unit->type != DOCUMENT_STRING || !pipeline_unit(unit->text, ret_ms, &months))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE, "unknown time unit value");
    return *ret_ms || mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                                      "units of a window longer than a week are not offered");
}

static bool frame_read(const struct pipeline_window *window, const struct document_value *value,
                       struct frame *frame, struct error *err)
{
    struct document_value documents, range, unit;
    const struct stage_field fields[] = {
        {"documents", &documents}, {"range", &range}, {"unit", &unit}};
    const struct stage_terms terms = {"window", MONGO_FAILED_TO_PARSE, MONGO_FAILED_TO_PARSE};
    int64_t ms;

    *frame = (struct frame){.from = unbounded, .to = unbounded};
    if (value->type == DOCUMENT_UNDEFINED)
        return true;
    if (!pipeline_fields(value, &terms, fields, ARRAY_LEN(fields), err))
        return false;
    frame->given = true;
    if (documents.type != DOCUMENT_UNDEFINED) {
        if (range.type != DOCUMENT_UNDEFINED || unit.type != DOCUMENT_UNDEFINED)
            return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                                   "Window bounds can specify either 'documents' or 'range', not "
                                   "both, and 'unit' with a range alone");
        if (!bounds_read(&documents, 0, frame, err))
            return false;
        return window->sort.data ||
               (frame->from.kind == QUERY_BOUND_UNBOUNDED &&
                frame->to.kind == QUERY_BOUND_UNBOUNDED) ||
               mongo_error_set(err, 5339901, "Document-based bounds require a sortBy");
    }
    if (range.type == DOCUMENT_UNDEFINED)
        return unit.type == DOCUMENT_UNDEFINED ||
               mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "'unit' option requires a range-based window");
    if (!unit_read(&unit, &ms, err) || !bounds_read(&range, ms ? (double)ms : 1, frame, err))
        return false;
    if (!window->by)
        return mongo_error_set(err, 5339902, "Range-based window require sortBy a single field");
    frame->by = QUERY_FRAME_RANGE;
    frame->dates = ms != 0;
    return true;
}

/* --- Functions ------------------------------------------------------------------------------- */

struct function {
    struct slice name;
    struct document_value argument;
    struct frame frame;
};

static struct query_window_output framed(const struct function *function,
                                         enum query_window_kind kind,
                                         const struct query_expression *argument)
{
    return (struct query_window_output){.kind = kind,
                                        .argument = argument,
                                        .by = function->frame.by,
                                        .from = function->frame.from,
                                        .to = function->frame.to};
}

static bool sort_needed(const struct pipeline_window *window, const struct function *function,
                        bool single, struct error *err)
{
    if (single ? window->by != NULL : window->sort.data != NULL)
        return true;
    return mongo_error_set(err, single ? 5371603 : 5371602,
                           "%.*s must be specified with a top level sortBy expression%s",
                           SLICE_ARG(function->name), single ? " with exactly one element" : "");
}

static bool rank_output(struct pipeline *p, struct pipeline_window *window,
                        const struct function *function, enum query_window_kind kind,
                        const struct query_expression **ret_value, struct error *err)
{
    if (function->argument.type != DOCUMENT_OBJECT || document_count(function->argument.document))
        return mongo_error_set(err, 5371603, "%.*s must be specified with '{}' as the value",
                               SLICE_ARG(function->name));
    if (function->frame.given)
        return mongo_error_set(err, 5371601, "Rank style window functions take no other arguments");
    return sort_needed(window, function, false, err) &&
           pipeline_window_output(p, window, (struct query_window_output){.kind = kind}, ret_value,
                                  err);
}

static bool shift_output(struct pipeline *p, struct pipeline_window *window,
                         const struct function *function, const struct query_expression **ret_value,
                         struct error *err)
{
    struct document_value output, by, otherwise;
    const struct stage_field fields[] = {{"output", &output}, {"by", &by}, {"default", &otherwise}};
    const struct stage_terms terms = {"$shift", MONGO_FAILED_TO_PARSE, MONGO_FAILED_TO_PARSE};
    struct query_window_output made = {.kind = QUERY_WINDOW_SHIFT};

    if (!pipeline_fields(&function->argument, &terms, fields, ARRAY_LEN(fields), err))
        return false;
    if (output.type == DOCUMENT_UNDEFINED || by.type == DOCUMENT_UNDEFINED)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "$shift requires 'output' and 'by' to be specified");
    if (!document_is_number(&by) || !document_to_int64(&by, &made.shift))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE, "'$shift:by' field must be an integer");
    if (function->frame.given)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE, "$shift does not accept a 'window'");
    if (!sort_needed(window, function, false, err) ||
        !pipeline_expression(p, &output, &made.argument, err))
        return false;
    made.argument = pipeline_or_null(p->build, made.argument);
    made.otherwise = query_constant(p->build, document_null());
    if (otherwise.type != DOCUMENT_UNDEFINED) {
        if (!pipeline_expression(p, &otherwise, &made.otherwise, err))
            return false;
        if (!query_is_constant(made.otherwise))
            return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                                   "'$shift:default' expression must yield a constant value");
        made.otherwise = pipeline_or_null(p->build, made.otherwise);
    }
    return pipeline_window_output(p, window, made, ret_value, err);
}

static bool moving_output(struct pipeline *p, struct pipeline_window *window,
                          const struct function *function,
                          const struct query_expression **ret_value, struct error *err)
{
    struct document_value input, n, alpha;
    const struct stage_field fields[] = {{"input", &input}, {"N", &n}, {"alpha", &alpha}};
    const struct stage_terms terms = {"$expMovingAvg", MONGO_FAILED_TO_PARSE,
                                      MONGO_FAILED_TO_PARSE};
    double *weight = ARENA_NEW(p->build->arena, double);
    const struct query_expression *value;
    int64_t count;

    if (!pipeline_fields(&function->argument, &terms, fields, ARRAY_LEN(fields), err))
        return false;
    if (input.type == DOCUMENT_UNDEFINED ||
        (n.type == DOCUMENT_UNDEFINED) == (alpha.type == DOCUMENT_UNDEFINED))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "$expMovingAvg sub object must have exactly two fields: An 'input' "
                               "field, and either an 'N' field or an 'alpha' field");
    if (function->frame.given)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "$expMovingAvg does not accept a 'window' field");
    if (n.type != DOCUMENT_UNDEFINED) {
        if (!document_to_int64(&n, &count) || count <= 0)
            return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                                   "'N' field must be an integer greater than zero");
        *weight = 2.0 / ((double)count + 1);
    } else if (!document_to_double(&alpha, weight) || *weight <= 0 || *weight >= 1) {
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "'alpha' must be between 0 and 1 (exclusive)");
    }
    return sort_needed(window, function, false, err) &&
           pipeline_expression(p, &input, &value, err) &&
           fold_output(p, window, &moving_kind, weight, value, ret_value, err);
}

/* $derivative and $integral: {input, unit}. */
static bool pairs_output(struct pipeline *p, struct pipeline_window *window,
                         const struct function *function, bool derivative,
                         const struct query_expression **ret_value, struct error *err)
{
    struct document_value input, name;
    const struct stage_field fields[] = {{"input", &input}, {"unit", &name}};
    const struct stage_terms terms = {derivative ? "$derivative" : "$integral",
                                      MONGO_FAILED_TO_PARSE, MONGO_FAILED_TO_PARSE};
    struct unit *unit = ARENA_NEW(p->build->arena, struct unit);
    const struct query_expression *value, *pair, *children[2];
    struct query_window_output output;
    int64_t ms;

    if (!pipeline_fields(&function->argument, &terms, fields, ARRAY_LEN(fields), err) ||
        !unit_read(&name, &ms, err) || !sort_needed(window, function, true, err))
        return false;
    if (input.type == DOCUMENT_UNDEFINED)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE, "%s requires an 'input' expression",
                               terms.name);
    if (derivative && !function->frame.given)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "$derivative requires explicit window bounds");
    unit->ms = (double)ms;
    if (!pipeline_expression(p, &input, &value, err))
        return false;
    pair = pair_of(p, window->by, value);
    output = framed(function, derivative ? QUERY_WINDOW_FIRST : QUERY_WINDOW_AGGREGATE, pair);
    output.aggregate = QUERY_MAKE_LIST;
    window->ordered |= !derivative;
    if (!pipeline_window_output(p, window, output, &children[0], err))
        return false;
    if (!derivative) {
        *ret_value = pipeline_node(p->build, &integral_kind, unit, children, 1);
        return true;
    }
    output.kind = QUERY_WINDOW_LAST;
    if (!pipeline_window_output(p, window, output, &children[1], err))
        return false;
    *ret_value = pipeline_node(p->build, &derivative_kind, unit, children, 2);
    return true;
}

static bool covariance_output(struct pipeline *p, struct pipeline_window *window,
                              const struct function *function, bool sample,
                              const struct query_expression **ret_value, struct error *err)
{
    struct unit *unit = ARENA_NEW(p->build->arena, struct unit);
    const struct query_expression *x, *y, *list;
    struct query_window_output output;
    struct document_value one, two;

    if (function->argument.type != DOCUMENT_ARRAY ||
        document_count(function->argument.document) != 2 ||
        !document_find_index(function->argument.document, 0, &one) ||
        !document_find_index(function->argument.document, 1, &two))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "%.*s must be specified with an array of two expressions",
                               SLICE_ARG(function->name));
    unit->sample = sample;
    if (!pipeline_expression(p, &one, &x, err) || !pipeline_expression(p, &two, &y, err))
        return false;
    output = framed(function, QUERY_WINDOW_AGGREGATE, pair_of(p, x, y));
    output.aggregate = QUERY_MAKE_LIST;
    if (!pipeline_window_output(p, window, output, &list, err))
        return false;
    *ret_value = pipeline_node(p->build, &covariance_kind, unit, &list, 1);
    return true;
}

static bool accumulator_output(struct pipeline *p, struct pipeline_window *window,
                               const struct function *function,
                               const struct query_expression **ret_value, struct error *err)
{
    const struct mongo_expression_options scope = pipeline_scope(p);
    struct mongo_accumulator accumulator;
    struct query_window_output output;
    const struct query_expression *ignored;
    uint32_t slot;

    if (!mongo_accumulator_exists(function->name) ||
        slice_equal(function->name, SLICE("$accumulator")))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE, "Unrecognized window function, %.*s",
                               (int)MIN(function->name.len, (size_t)80),
                               (const char *)function->name.data);
    if (!pipeline_result_slot(p, window->output_count, &slot, err) ||
        !mongo_accumulator_compile(function->name, &function->argument, &scope, slot, p->build,
                                   &accumulator, err))
        return false;
    output = framed(function, QUERY_WINDOW_AGGREGATE, accumulator.call.argument);
    output.aggregate = accumulator.call.kind;
    window->ordered |= accumulator.ordered;
    if (!pipeline_window_output(p, window, output, &ignored, err))
        return false;
    *ret_value = accumulator.result;
    return true;
}

/* $first and $last of a frame, in the order of the window. */
static bool edge_output(struct pipeline *p, struct pipeline_window *window,
                        const struct function *function, bool first,
                        const struct query_expression **ret_value, struct error *err)
{
    const struct query_expression *value;

    if (!sort_needed(window, function, false, err) ||
        !pipeline_expression(p, &function->argument, &value, err) ||
        !pipeline_window_output(
            p, window, framed(function, first ? QUERY_WINDOW_FIRST : QUERY_WINDOW_LAST, value),
            ret_value, err))
        return false;
    *ret_value = pipeline_or_null(p->build, *ret_value);
    return true;
}

static bool filled_output(struct pipeline *p, struct pipeline_window *window,
                          const struct function *function, bool linear,
                          const struct query_expression **ret_value, struct error *err)
{
    const struct query_expression *value;

    if (function->frame.given)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE, "%.*s does not accept a 'window'",
                               SLICE_ARG(function->name));
    if (!pipeline_expression(p, &function->argument, &value, err))
        return false;
    return linear ? pipeline_window_linear(p, window, value, ret_value, err)
                  : pipeline_window_locf(p, window, value, ret_value, err);
}

static bool function_output(struct pipeline *p, struct pipeline_window *window,
                            const struct function *f, const struct query_expression **ret_value,
                            struct error *err)
{
    if (slice_equal(f->name, SLICE("$rank")))
        return rank_output(p, window, f, QUERY_WINDOW_RANK, ret_value, err);
    if (slice_equal(f->name, SLICE("$denseRank")))
        return rank_output(p, window, f, QUERY_WINDOW_DENSE_RANK, ret_value, err);
    if (slice_equal(f->name, SLICE("$documentNumber")))
        return rank_output(p, window, f, QUERY_WINDOW_ROW_NUMBER, ret_value, err);
    if (slice_equal(f->name, SLICE("$shift")))
        return shift_output(p, window, f, ret_value, err);
    if (slice_equal(f->name, SLICE("$expMovingAvg")))
        return moving_output(p, window, f, ret_value, err);
    if (slice_equal(f->name, SLICE("$derivative")))
        return pairs_output(p, window, f, true, ret_value, err);
    if (slice_equal(f->name, SLICE("$integral")))
        return pairs_output(p, window, f, false, ret_value, err);
    if (slice_equal(f->name, SLICE("$covariancePop")))
        return covariance_output(p, window, f, false, ret_value, err);
    if (slice_equal(f->name, SLICE("$covarianceSamp")))
        return covariance_output(p, window, f, true, ret_value, err);
    if (slice_equal(f->name, SLICE("$first")) || slice_equal(f->name, SLICE("$last")))
        return edge_output(p, window, f, f->name.data[1] == 'f', ret_value, err);
    if (slice_equal(f->name, SLICE("$linearFill")))
        return filled_output(p, window, f, true, ret_value, err);
    if (slice_equal(f->name, SLICE("$locf")))
        return filled_output(p, window, f, false, ret_value, err);
    return accumulator_output(p, window, f, ret_value, err);
}

static bool field_read(struct pipeline *p, struct pipeline_window *window, struct slice path,
                       const struct document_value *value, struct error *err)
{
    struct document_value frame = document_undefined();
    struct function function = {0};
    struct document_iter iter;

    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE, "The field '%.*s' must be an object",
                               SLICE_ARG(path));
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("window"))) {
            frame = iter.value;
        } else if (function.name.data || !iter.key.len || iter.key.data[0] != '$') {
            return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                                   "Window function found an unknown argument: %.*s",
                                   (int)MIN(iter.key.len, (size_t)80), (const char *)iter.key.data);
        } else {
            function.name = iter.key;
            function.argument = iter.value;
        }
    }
    if (!function.name.data)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE, "Expected a $-prefixed window function");
    if (window->field_count == SLOT_RESULTS_MAX)
        return mongo_error_set(err, MONGO_BAD_VALUE, "a stage has too many results");
    window->paths[window->field_count] = arena_copy(p->build->arena, path);
    return pipeline_path_check(path, err) && frame_read(window, &frame, &function.frame, err) &&
           function_output(p, window, &function, &window->values[window->field_count++], err);
}

/* --- The stage ------------------------------------------------------------------------------- */

bool pipeline_window_sort(struct pipeline *p, struct pipeline_window *window,
                          const struct document_value *sort, struct error *err)
{
    struct document_iter iter;

    if (sort->type == DOCUMENT_UNDEFINED)
        return true;
    if (sort->type != DOCUMENT_OBJECT)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH, "sortBy must be an object");
    if (!document_count(sort->document))
        return true;
    window->sort = arena_copy(p->build->arena, sort->document);
    if (document_count(sort->document) != 1)
        return true;
    document_iter_init(&iter, window->sort);
    (void)document_iter_next(&iter);
    return pipeline_path_check(iter.key, err) &&
           mongo_expression_path(iter.key, pipeline_root(p), p->build, &window->by, err);
}

/* Ranges are of numbers: dates become milliseconds. */
static bool ranged_evaluate(const struct query_expression *expression,
                            struct query_context *context, struct document_value *ret_value,
                            struct error *err)
{
    if (!query_evaluate(expression->children[0], context, ret_value, err))
        return false;
    if (ret_value->type == DOCUMENT_DATE)
        *ret_value = document_int64(ret_value->int64);
    else if (!document_is_number(ret_value))
        return mongo_error_set(
            err, 5429414,
            "Invalid range: Expected the sortBy field to be a number, but it "
            "was %s",
            ret_value->type == DOCUMENT_UNDEFINED ? "missing" : mongo_type_name(ret_value->type));
    return true;
}

static const struct query_kind ranged_kind = {"ranged", ranged_evaluate, QUERY_STABLE};

static bool is_ranged(const struct pipeline_window *window)
{
    for (size_t i = 0; i < window->output_count; i++)
        if (window->outputs[i].by == QUERY_FRAME_RANGE)
            return true;
    return false;
}

bool pipeline_window_stage(struct pipeline *p, struct pipeline_window *window, struct error *err)
{
    struct arena *arena = p->build->arena;
    struct query_window made = {.output_count = window->output_count};
    struct query_window_output *outputs =
        ARENA_ARRAY(arena, struct query_window_output, window->output_count + 1);
    const struct query_order *order = NULL;
    const struct query_expression **keys;

    if (window->sort.data && !mongo_sort_compile(window->sort, p->collator, p->slot, p->build,
                                                 &order, &made.order_count, err))
        return false;
    if (window->ordered && made.order_count)
        pipeline_stage(p, QUERY_STAGE_SORT)->sort = (struct query_sort){order, made.order_count};
    if (is_ranged(window)) {
        struct query_order *ranged = ARENA_NEW(arena, struct query_order);

        *ranged = (struct query_order){pipeline_node(p->build, &ranged_kind, NULL, &window->by, 1),
                                       order[0].descending};
        order = ranged;
    }
    if (window->key) {
        keys = ARENA_ARRAY(arena, const struct query_expression *, 1);
        keys[0] = mongo_collate_expression(p->collator, window->key, p->build);
        made.keys = keys;
        made.key_count = 1;
    }
    memcpy(outputs, window->outputs, window->output_count * sizeof *outputs);
    made.order = order;
    made.outputs = outputs;
    pipeline_stage(p, QUERY_STAGE_WINDOW)->window = made;
    return true;
}

bool pipeline_window_append(struct pipeline *p, struct pipeline_window *window, struct error *err)
{
    const struct query_expression *document;

    if (window->output_count && !pipeline_window_stage(p, window, err))
        return false;
    if (!mongo_shape_set_all(window->paths, window->values, window->field_count, p->slot, p->build,
                             &document, err))
        return false;
    pipeline_project(p, document);
    return true;
}

bool stage_set_window_fields(struct pipeline *p, const struct document_value *specification,
                             struct error *err)
{
    struct document_value by, sort, output;
    const struct stage_field fields[] = {
        {"partitionBy", &by}, {"sortBy", &sort}, {"output", &output}};
    const struct stage_terms terms = {"$setWindowFields", MONGO_FAILED_TO_PARSE, 40415};
    struct pipeline_window *window = ARENA_NEW(p->build->arena, struct pipeline_window);
    struct document_iter iter;

    if (!pipeline_fields(specification, &terms, fields, ARRAY_LEN(fields), err))
        return false;
    if (output.type != DOCUMENT_OBJECT)
        return mongo_error_set(err, output.type == DOCUMENT_UNDEFINED ? 40414 : 14,
                               "BSON field '$setWindowFields.output' is missing or no object");
    pipeline_settle(p);
    if (!pipeline_window_sort(p, window, &sort, err))
        return false;
    if (by.type != DOCUMENT_UNDEFINED) {
        if (!pipeline_expression(p, &by, &window->key, err))
            return false;
        window->key = pipeline_or_null(p->build, window->key);
    }
    document_iter_init(&iter, output.document);
    while (document_iter_next(&iter))
        if (!field_read(p, window, iter.key, &iter.value, err))
            return false;
    return !window->field_count || pipeline_window_append(p, window, err);
}
