/* sack(), math() and format(): what is computed on the way. */
#include "front/gremlin/run/compile_private.h"
#include "front/gremlin/value/arithmetic.h"

#include <math.h>

/* --- Sacks ----------------------------------------------------------------------------------- */

struct sack {
    struct gremlin_step step;
    struct gremlin_enum operator;
};

static bool sack_read_one(struct gremlin_run *run, struct gremlin_step *step,
                          struct gremlin_walker *traverser, bool *ret_keep UNUSED,
                          struct error *err UNUSED)
{
    gremlin_walker_set(run, traverser, gremlin_value_ref(traverser->sack), step);
    return true;
}

static bool sack_write_one(struct gremlin_run *run, struct gremlin_step *step,
                           struct gremlin_walker *traverser, bool *ret_keep, struct error *err)
{
    struct gremlin_value value, result;
    bool good;

    if (!gremlin_by_apply(run, gremlin_step_by(step, 0), traverser, &value, ret_keep, err))
        return false;
    if (!*ret_keep)
        return true;
    good = gremlin_operator_apply(run->heap, ((struct sack *)step)->operator.word, traverser->sack,
                                  value, &result, err);
    gremlin_value_unref(value);
    if (good)
        gremlin_value_replace_take(&traverser->sack, result);
    return good;
}

static const struct gremlin_step_kind step_sack_read = {
    .name = "sack", .flags = STEP_HEADS, .one = sack_read_one};
static const struct gremlin_step_kind step_sack_write = {
    .name = "sack", .flags = STEP_FILTERS, .one = sack_write_one};

bool compile_sack(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct sack *sack =
        STEP_ADD(compiler, raw, raw->count ? &step_sack_write : &step_sack_read, struct sack);

    compiler->run->sacks = true;
    if (!raw->count)
        return !raw->by_count || REFUSE(err, "sack() that reads takes no by()");
    if (!gremlin_argument_is_family(raw->arguments[0], GREMLIN_ENUM_OPERATOR))
        return gremlin_argument_wrong(raw, 0, "an Operator", err);
    if (raw->by_count > 1)
        return REFUSE(err, "sack() takes one by()");
    sack->operator= raw->arguments[0].word;
    return true;
}

static bool sack_join(struct gremlin_run *run, struct gremlin_walker *into,
                      const struct gremlin_walker *other, struct error *err)
{
    struct gremlin_value result;

    if (!gremlin_operator_apply(run->heap, run->sack_merge.word, into->sack, other->sack, &result,
                                err))
        return false;
    gremlin_value_replace_take(&into->sack, result);
    into->bulk = run->one_bulk ? 1 : into->bulk + other->bulk;
    return true;
}

bool gremlin_sacks_merge(struct gremlin_run *run, struct gremlin_walkers *batch, struct error *err)
{
    struct gremlin_value index;
    size_t kept = 0;
    bool good = true;

    if (!run->sack_merges || run->trail_mode == TRAIL_FULL) {
        gremlin_walkers_merge(run, batch, 0);
        return true;
    }
    index = gremlin_map_new(run->heap);
    for (size_t i = 0; i < batch->count; i++) {
        struct gremlin_walker item = batch->items[i];
        struct gremlin_row *row;
        bool new;

        batch->items[i] = (struct gremlin_walker){0};
        row = gremlin_table_row(index, item.value, &new);
        if (good && !new && batch->items[row->value.integer].trail == item.trail) {
            good = sack_join(run, &batch->items[row->value.integer], &item, err);
            gremlin_walker_done(&item);
            continue;
        }
        row->value = gremlin_long((int64_t)kept);
        batch->items[kept++] = item;
    }
    batch->count = kept;
    gremlin_value_unref(index);
    return good;
}

/* --- math ------------------------------------------------------------------------------------ */

enum { VARIABLES_MAX = 32, EXPRESSION_DEPTH_MAX = 64 };

enum math_kind { MATH_NUMBER, MATH_VARIABLE, MATH_CALL, MATH_BINARY, MATH_NEGATE };

struct math_node {
    enum math_kind kind;
    double number;
    size_t variable;
    double (*call)(double);
    char operator;
    struct math_node *left, *right;
};

struct math {
    struct gremlin_step step;
    struct math_node *root;
    struct slice variables[VARIABLES_MAX];
    size_t count;
};

static double sign_of(double number)
{
    return number > 0 ? 1 : number < 0 ? -1 : number;
}

static const struct {
    const char *name;
    double (*call)(double);
} functions[] = {
    {"abs", fabs},       {"acos", acos}, {"asin", asin},   {"atan", atan}, {"cbrt", cbrt},
    {"ceil", ceil},      {"cos", cos},   {"cosh", cosh},   {"exp", exp},   {"expm1", expm1},
    {"floor", floor},    {"log", log},   {"log10", log10}, {"log2", log2}, {"log1p", log1p},
    {"sin", sin},        {"sinh", sinh}, {"sqrt", sqrt},   {"tan", tan},   {"tanh", tanh},
    {"signum", sign_of},
};

struct math_parser {
    struct gremlin_compiler *compiler;
    struct math *math;
    struct slice text;
    size_t at;
    unsigned depth;
    struct error *err;
};

static struct math_node *parse_sum(struct math_parser *parser);

static void blanks(struct math_parser *parser)
{
    while (parser->at < parser->text.len &&
           (parser->text.data[parser->at] == ' ' || parser->text.data[parser->at] == '\t' ||
            parser->text.data[parser->at] == '\n'))
        parser->at++;
}

static int look(struct math_parser *parser)
{
    blanks(parser);
    return parser->at < parser->text.len ? parser->text.data[parser->at] : -1;
}

static struct math_node *math_fault(struct math_parser *parser)
{
    REFUSE(parser->err, "math(): \"%.*s\" cannot be read at character %zu", SLICE_ARG(parser->text),
           parser->at + 1);
    return NULL;
}

static struct math_node *math_new(struct math_parser *parser, enum math_kind kind)
{
    struct math_node *node = ARENA_NEW(parser->compiler->run->arena, struct math_node);

    node->kind = kind;
    return node;
}

static bool is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

static struct math_node *parse_number(struct math_parser *parser)
{
    char digits[64];
    size_t len = 0;
    struct math_node *node;
    char *end;

    while (parser->at < parser->text.len && len < sizeof digits - 1) {
        uint8_t c = parser->text.data[parser->at];
        bool exponent =
            (c == '+' || c == '-') && len && (digits[len - 1] == 'e' || digits[len - 1] == 'E');

        if (!((c >= '0' && c <= '9') || c == '.' || exponent ||
              ((c == 'e' || c == 'E') && parser->at + 1 < parser->text.len &&
               strchr("0123456789+-", parser->text.data[parser->at + 1]))))
            break;
        digits[len++] = (char)c;
        parser->at++;
    }
    digits[len] = 0;
    node = math_new(parser, MATH_NUMBER);
    node->number = strtod(digits, &end);
    return *end ? math_fault(parser) : node;
}

static struct math_node *parse_primary(struct math_parser *parser);

static struct math_node *parse_word(struct math_parser *parser)
{
    size_t begin = parser->at;
    struct math *math = parser->math;
    struct math_node *node;
    struct slice name;

    while (parser->at < parser->text.len &&
           (is_letter(parser->text.data[parser->at]) ||
            (parser->text.data[parser->at] >= '0' && parser->text.data[parser->at] <= '9')))
        parser->at++;
    name = slice_of(parser->text.data + begin, parser->at - begin);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (slice_equal(name, slice_of_text(functions[i].name))) {
            node = math_new(parser, MATH_CALL);
            node->call = functions[i].call;
            node->left = parse_primary(parser);
            return node->left ? node : NULL;
        }
    if (slice_equal(name, SLICE("pi")) || slice_equal(name, SLICE("e"))) {
        node = math_new(parser, MATH_NUMBER);
        node->number = name.len == 1 ? M_E : M_PI;
        return node;
    }
    node = math_new(parser, MATH_VARIABLE);
    for (node->variable = 0; node->variable < math->count; node->variable++)
        if (slice_equal(math->variables[node->variable], name))
            return node;
    if (math->count == VARIABLES_MAX)
        return math_fault(parser);
    math->variables[math->count++] = slice_keep(parser->compiler, name);
    return node;
}

static struct math_node *parse_primary(struct math_parser *parser)
{
    int c = look(parser);
    struct math_node *node;

    if (parser->depth >= EXPRESSION_DEPTH_MAX)
        return math_fault(parser);
    if (c == '(') {
        parser->at++;
        parser->depth++;
        node = parse_sum(parser);
        parser->depth--;
        if (!node)
            return NULL;
        if (look(parser) != ')')
            return math_fault(parser);
        parser->at++;
        return node;
    }
    if (c == '-' || c == '+') {
        struct math_node *operand;

        parser->at++;
        parser->depth++;
        operand = parse_primary(parser);
        parser->depth--;
        if (!operand || c == '+')
            return operand;
        node = math_new(parser, MATH_NEGATE);
        node->left = operand;
        return node;
    }
    if ((c >= '0' && c <= '9') || c == '.')
        return parse_number(parser);
    return is_letter(c) ? parse_word(parser) : math_fault(parser);
}

static struct math_node *math_join(struct math_parser *parser, char operator,
                                   struct math_node * left, struct math_node *right)
{
    struct math_node *node = math_new(parser, MATH_BINARY);

    node->operator= operator;
    node->left = left;
    node->right = right;
    return left && right ? node : NULL;
}

static struct math_node *parse_power(struct math_parser *parser)
{
    struct math_node *left = parse_primary(parser);

    if (!left || look(parser) != '^')
        return left;
    parser->at++;
    if (++parser->depth >= EXPRESSION_DEPTH_MAX)
        return math_fault(parser);
    struct math_node *right = parse_power(parser);

    parser->depth--;
    return math_join(parser, '^', left, right);
}

static struct math_node *parse_product(struct math_parser *parser)
{
    struct math_node *left = parse_power(parser);

    for (int c = look(parser); left && (c == '*' || c == '/' || c == '%'); c = look(parser)) {
        parser->at++;
        left = math_join(parser, (char)c, left, parse_power(parser));
    }
    return left;
}

static struct math_node *parse_sum(struct math_parser *parser)
{
    struct math_node *left = parse_product(parser);

    for (int c = look(parser); left && (c == '+' || c == '-'); c = look(parser)) {
        parser->at++;
        left = math_join(parser, (char)c, left, parse_product(parser));
    }
    return left;
}

static double math_compute(const struct math_node *node, const double *values)
{
    double left, right;

    switch (node->kind) {
    case MATH_NUMBER:
        return node->number;
    case MATH_VARIABLE:
        return values[node->variable];
    case MATH_CALL:
        return node->call(math_compute(node->left, values));
    case MATH_NEGATE:
        return -math_compute(node->left, values);
    case MATH_BINARY:
        break;
    }
    left = math_compute(node->left, values);
    right = math_compute(node->right, values);
    switch (node->operator) {
    case '+':
        return left + right;
    case '-':
        return left - right;
    case '*':
        return left * right;
    case '/':
        return left / right;
    case '%':
        return fmod(left, right);
    default:
        return pow(left, right);
    }
}

static bool math_variable(struct gremlin_run *run, struct gremlin_step *step,
                          const struct gremlin_walker *traverser, size_t index, double *ret_number,
                          bool *ret_found, struct error *err)
{
    const struct math *math = (struct math *)step;
    struct slice name = math->variables[index];
    struct gremlin_value object, value;
    bool good;

    if (slice_equal(name, SLICE("_"))) {
        object = gremlin_value_ref(traverser->value);
    } else {
        if (!gremlin_scope_value(run, traverser, name, GREMLIN_POP_LAST, &object, ret_found, err))
            return false;
        if (!*ret_found)
            return FAIL(err, "math(): there is no %.*s", SLICE_ARG(name));
    }
    good = gremlin_by_apply_value(run, gremlin_step_by(step, index), traverser, object, &value,
                                  ret_found, err);
    gremlin_value_unref(object);
    if (!good || !*ret_found)
        return good;
    if (gremlin_is_number(value))
        *ret_number = gremlin_number_double(value);
    else
        good = FAIL(err,
                    "math(): the variable %.*s for math() step must resolve to a Number - it "
                    "is instead of type %s",
                    SLICE_ARG(name), gremlin_type_name(value.type));
    gremlin_value_unref(value);
    return good;
}

static bool math_one(struct gremlin_run *run, struct gremlin_step *step,
                     struct gremlin_walker *traverser, bool *ret_keep, struct error *err)
{
    const struct math *math = (struct math *)step;
    double values[VARIABLES_MAX];

    for (size_t i = 0; i < math->count; i++) {
        if (!math_variable(run, step, traverser, i, &values[i], ret_keep, err))
            return false;
        if (!*ret_keep)
            return true;
    }
    gremlin_walker_set(run, traverser, gremlin_double(math_compute(math->root, values)), step);
    return true;
}

static const struct gremlin_step_kind step_math = {
    .name = "math", .flags = STEP_NEEDS_LABELS, .one = math_one};

bool compile_math(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct math *math = STEP_ADD(compiler, raw, &step_math, struct math);
    struct math_parser parser = {.compiler = compiler, .math = math, .err = err};

    if (!gremlin_argument_text(raw, 0, &parser.text, err))
        return false;
    math->root = parse_sum(&parser);
    if (!math->root)
        return false;
    return look(&parser) == -1 || math_fault(&parser) != NULL;
}

/* --- format ---------------------------------------------------------------------------------- */

struct format {
    struct gremlin_step step;
    struct slice text;
};

/* A property of the element, a key of the map, or what the name stands for. */
static bool format_value(struct gremlin_run *run, const struct gremlin_walker *traverser,
                         struct slice name, struct gremlin_value *ret_value, bool *ret_found,
                         struct error *err)
{
    if (gremlin_is_element(traverser->value)) {
        if (!gremlin_value_of_key(run, traverser->value, name, ret_value, ret_found, err))
            return false;
        if (*ret_found)
            return true;
    }
    return gremlin_scope_value(run, traverser, name, GREMLIN_POP_LAST, ret_value, ret_found, err);
}

static bool format_put(struct gremlin_run *run, struct gremlin_step *step,
                       const struct gremlin_walker *traverser, struct slice name, size_t *by,
                       struct buf *text, bool *ret_found, struct error *err)
{
    struct gremlin_value value;

    if (slice_equal(name, SLICE("_"))) {
        if (!gremlin_by_apply(run, gremlin_step_by(step, (*by)++), traverser, &value, ret_found,
                              err))
            return false;
    } else if (!format_value(run, traverser, name, &value, ret_found, err)) {
        return false;
    }
    if (*ret_found) {
        gremlin_value_write_text(value, text);
        gremlin_value_unref(value);
    }
    return true;
}

static bool format_write(struct gremlin_run *run, struct gremlin_step *step,
                         const struct gremlin_walker *traverser, struct buf *text, bool *ret_found,
                         struct error *err)
{
    struct slice rest = ((struct format *)step)->text;
    size_t by = 0;

    *ret_found = true;
    while (rest.len && *ret_found) {
        size_t end = 2;

        if (!slice_starts_with(rest, SLICE("%{"))) {
            buf_append_byte(text, rest.data[0]);
            rest = slice_skip(rest, 1);
            continue;
        }
        while (end < rest.len && rest.data[end] != '}')
            end++;
        if (end == rest.len) {
            buf_append_slice(text, rest);
            break;
        }
        if (!format_put(run, step, traverser, slice_of(rest.data + 2, end - 2), &by, text,
                        ret_found, err))
            return false;
        rest = slice_skip(rest, end + 1);
    }
    return true;
}

static bool format_one(struct gremlin_run *run, struct gremlin_step *step,
                       struct gremlin_walker *traverser, bool *ret_keep, struct error *err)
{
    struct buf text;
    bool good;

    buf_init(&text, TEXT_MAX);
    good = format_write(run, step, traverser, &text, ret_keep, err);
    if (good && buf_overflowed(&text))
        good = error_set(err, ERROR_QUERY_LIMIT, "format(): a text of more than %d bytes",
                         (int)TEXT_MAX);
    if (good && *ret_keep)
        gremlin_walker_set(run, traverser, gremlin_string(run->heap, buf_slice(&text)), step);
    buf_done(&text);
    return good;
}

static const struct gremlin_step_kind step_format = {
    .name = "format", .flags = STEP_NEEDS_LABELS, .one = format_one};

bool compile_format(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct format *format = STEP_ADD(compiler, raw, &step_format, struct format);

    return gremlin_argument_text(raw, 0, &format->text, err);
}
