/* Predicates against values. Comparing what does not compare is unknown; the caller says whether
 * that is false (3.8) or lasts through not() (3.7). */
#include "front/gremlin/value/predicate.h"

#include "query/value/regex.h"
#include "query/value/text.h"

static enum gremlin_truth truth(bool boolean)
{
    return boolean ? GREMLIN_TRUE : GREMLIN_FALSE;
}

/* --- Types ------------------------------------------------------------------------------------ */

bool gremlin_is_of_type(struct gremlin_value value, enum gremlin_enum_word type)
{
    switch (type) {
    case GREMLIN_GTYPE_BIGDECIMAL:
        return value.type == GREMLIN_BIG_DECIMAL;
    case GREMLIN_GTYPE_BIGINT:
        return value.type == GREMLIN_BIG_INTEGER;
    case GREMLIN_GTYPE_BINARY:
        return value.type == GREMLIN_BINARY;
    case GREMLIN_GTYPE_BOOLEAN:
        return value.type == GREMLIN_BOOLEAN;
    case GREMLIN_GTYPE_BYTE:
        return value.type == GREMLIN_BYTE;
    case GREMLIN_GTYPE_CHAR:
        return value.type == GREMLIN_CHAR;
    case GREMLIN_GTYPE_DATETIME:
        return value.type == GREMLIN_DATE_TIME || value.type == GREMLIN_DATE ||
               value.type == GREMLIN_TIMESTAMP;
    case GREMLIN_GTYPE_DOUBLE:
        return value.type == GREMLIN_DOUBLE;
    case GREMLIN_GTYPE_DURATION:
        return value.type == GREMLIN_DURATION;
    case GREMLIN_GTYPE_EDGE:
        return value.type == GREMLIN_EDGE;
    case GREMLIN_GTYPE_FLOAT:
        return value.type == GREMLIN_FLOAT;
    case GREMLIN_GTYPE_GRAPH:
        return value.type == GREMLIN_GRAPH;
    case GREMLIN_GTYPE_INT:
        return value.type == GREMLIN_INT;
    case GREMLIN_GTYPE_LIST:
        return value.type == GREMLIN_LIST;
    case GREMLIN_GTYPE_LONG:
        return value.type == GREMLIN_LONG;
    case GREMLIN_GTYPE_MAP:
        return value.type == GREMLIN_MAP || value.type == GREMLIN_TREE;
    case GREMLIN_GTYPE_NULL:
        return value.type == GREMLIN_NULL;
    case GREMLIN_GTYPE_NUMBER:
        return gremlin_is_number(value);
    case GREMLIN_GTYPE_PATH:
        return value.type == GREMLIN_PATH;
    case GREMLIN_GTYPE_PROPERTY:
        return value.type == GREMLIN_PROPERTY || value.type == GREMLIN_VERTEX_PROPERTY;
    case GREMLIN_GTYPE_SET:
        return value.type == GREMLIN_SET || value.type == GREMLIN_BULK_SET;
    case GREMLIN_GTYPE_SHORT:
        return value.type == GREMLIN_SHORT;
    case GREMLIN_GTYPE_STRING:
        return value.type == GREMLIN_STRING;
    case GREMLIN_GTYPE_TREE:
        return value.type == GREMLIN_TREE;
    case GREMLIN_GTYPE_UUID:
        return value.type == GREMLIN_UUID;
    case GREMLIN_GTYPE_VERTEX:
        return value.type == GREMLIN_VERTEX;
    case GREMLIN_GTYPE_VPROPERTY:
        return value.type == GREMLIN_VERTEX_PROPERTY;
    default:
        return false;
    }
}

/* The names of Java's classes that typeOf('Integer') means, where they are not the words. */
static const struct {
    const char *name;
    enum gremlin_enum_word word;
} type_names[] = {
    {"BigDecimal", GREMLIN_GTYPE_BIGDECIMAL},
    {"BigInteger", GREMLIN_GTYPE_BIGINT},
    {"ByteBuffer", GREMLIN_GTYPE_BINARY},
    {"Boolean", GREMLIN_GTYPE_BOOLEAN},
    {"Byte", GREMLIN_GTYPE_BYTE},
    {"Character", GREMLIN_GTYPE_CHAR},
    {"OffsetDateTime", GREMLIN_GTYPE_DATETIME},
    {"Double", GREMLIN_GTYPE_DOUBLE},
    {"Duration", GREMLIN_GTYPE_DURATION},
    {"Edge", GREMLIN_GTYPE_EDGE},
    {"Float", GREMLIN_GTYPE_FLOAT},
    {"Graph", GREMLIN_GTYPE_GRAPH},
    {"Integer", GREMLIN_GTYPE_INT},
    {"List", GREMLIN_GTYPE_LIST},
    {"Long", GREMLIN_GTYPE_LONG},
    {"Map", GREMLIN_GTYPE_MAP},
    {"Number", GREMLIN_GTYPE_NUMBER},
    {"Path", GREMLIN_GTYPE_PATH},
    {"Property", GREMLIN_GTYPE_PROPERTY},
    {"Set", GREMLIN_GTYPE_SET},
    {"Short", GREMLIN_GTYPE_SHORT},
    {"String", GREMLIN_GTYPE_STRING},
    {"Tree", GREMLIN_GTYPE_TREE},
    {"Vertex", GREMLIN_GTYPE_VERTEX},
    {"VertexProperty", GREMLIN_GTYPE_VPROPERTY},
};

/* The word that typeOf was given, as one or by name. */
static bool type_of_value(struct gremlin_value value, enum gremlin_enum_word *ret_word)
{
    struct gremlin_value word;

    if (value.type == GREMLIN_ENUM && value.word.family == GREMLIN_ENUM_GTYPE) {
        *ret_word = (enum gremlin_enum_word)value.word.word;
        return true;
    }
    if (value.type != GREMLIN_STRING && value.type != GREMLIN_CLASS)
        return false;
    if (gremlin_word_find(GREMLIN_ENUM_GTYPE, gremlin_bytes(value), &word)) {
        *ret_word = (enum gremlin_enum_word)word.word.word;
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(type_names); i++)
        if (slice_equal(gremlin_bytes(value), slice_of_text(type_names[i].name))) {
            *ret_word = type_names[i].word;
            return true;
        }
    return false;
}

/* --- Comparisons ------------------------------------------------------------------------------ */

enum relation { LESS, LESS_OR_EQUAL, GREATER, GREATER_OR_EQUAL };

static enum gremlin_truth related(struct gremlin_value a, enum relation relation,
                                  struct gremlin_value b)
{
    int order;

    if (!gremlin_comparable(a, b, &order))
        return GREMLIN_UNKNOWN;
    switch (relation) {
    case LESS:
        return truth(order < 0);
    case LESS_OR_EQUAL:
        return truth(order <= 0);
    case GREATER:
        return truth(order > 0);
    default:
        return truth(order >= 0);
    }
}

static bool is_among(const struct gremlin_predicate *predicate, struct gremlin_value value)
{
    for (size_t i = 0; i < predicate->count; i++)
        if (gremlin_equal(value, predicate->values[i]))
            return true;
    return false;
}

/* --- Texts ------------------------------------------------------------------------------------ */

static bool regex_test(struct slice pattern, struct slice text, struct query_context *context,
                       bool *ret_found, struct error *err)
{
    struct query_regex *regex = query_regex_get(context, pattern, SLICE(""));
    struct query_regex_match match;

    if (!regex)
        return error_set(err, ERROR_GREMLIN_COMPILE, "\"%.*s\" is no regular expression",
                         (int)MIN(pattern.len, (size_t)200), (const char *)pattern.data);
    return query_regex_find(context, regex, text, 0, ret_found, &match, err);
}

/* What is no text satisfies none of them, the negated ones neither. */
static bool text_test(const struct gremlin_predicate *predicate, struct gremlin_value value,
                      struct query_context *context, enum gremlin_truth *ret_truth,
                      struct error *err)
{
    bool found = false, negated = false;
    struct slice text, part;

    *ret_truth = GREMLIN_UNKNOWN;
    if (value.type != GREMLIN_STRING || predicate->values[0].type != GREMLIN_STRING)
        return true;
    text = gremlin_bytes(value);
    part = gremlin_bytes(predicate->values[0]);
    switch (predicate->name) {
    case GREMLIN_P_NOT_CONTAINING:
    case GREMLIN_P_NOT_STARTING_WITH:
    case GREMLIN_P_NOT_ENDING_WITH:
    case GREMLIN_P_NOT_REGEX:
        negated = true;
        break;
    default:
        break;
    }
    switch (predicate->name) {
    case GREMLIN_P_CONTAINING:
    case GREMLIN_P_NOT_CONTAINING:
        found = query_text_find(text, part) != SIZE_MAX;
        break;
    case GREMLIN_P_STARTING_WITH:
    case GREMLIN_P_NOT_STARTING_WITH:
        found = slice_starts_with(text, part);
        break;
    case GREMLIN_P_ENDING_WITH:
    case GREMLIN_P_NOT_ENDING_WITH:
        found = query_text_ends_with(text, part);
        break;
    default:
        if (!regex_test(part, text, context, &found, err))
            return false;
    }
    *ret_truth = truth(found != negated);
    return true;
}

/* --- All -------------------------------------------------------------------------------------- */

static bool nested_test(const struct gremlin_predicate *predicate, struct gremlin_value value,
                        struct query_context *context, enum gremlin_truth *ret_truth,
                        struct error *err)
{
    bool all = predicate->name == GREMLIN_P_AND;
    enum gremlin_truth result = all ? GREMLIN_TRUE : GREMLIN_FALSE;

    for (size_t i = 0; i < predicate->count; i++) {
        enum gremlin_truth one;

        if (!gremlin_predicate_test(gremlin_predicate(predicate->values[i]), value, context, &one,
                                    err))
            return false;
        result = all ? gremlin_truth_and(result, one) : gremlin_truth_or(result, one);
        if (result == (all ? GREMLIN_FALSE : GREMLIN_TRUE))
            break;
    }
    *ret_truth = result;
    return true;
}

bool gremlin_predicate_test(const struct gremlin_predicate *predicate, struct gremlin_value value,
                            struct query_context *context, enum gremlin_truth *ret_truth,
                            struct error *err)
{
    const struct gremlin_value *values = predicate->values;
    enum gremlin_enum_word word;

    switch (predicate->name) {
    case GREMLIN_P_EQ:
        *ret_truth = truth(gremlin_equal(value, values[0]));
        return true;
    case GREMLIN_P_NEQ:
        *ret_truth = truth(!gremlin_equal(value, values[0]));
        return true;
    case GREMLIN_P_LT:
        *ret_truth = related(value, LESS, values[0]);
        return true;
    case GREMLIN_P_LTE:
        *ret_truth = related(value, LESS_OR_EQUAL, values[0]);
        return true;
    case GREMLIN_P_GT:
        *ret_truth = related(value, GREATER, values[0]);
        return true;
    case GREMLIN_P_GTE:
        *ret_truth = related(value, GREATER_OR_EQUAL, values[0]);
        return true;
    case GREMLIN_P_INSIDE:
        *ret_truth =
            gremlin_truth_and(related(value, GREATER, values[0]), related(value, LESS, values[1]));
        return true;
    case GREMLIN_P_OUTSIDE:
        *ret_truth =
            gremlin_truth_or(related(value, LESS, values[0]), related(value, GREATER, values[1]));
        return true;
    case GREMLIN_P_BETWEEN:
        *ret_truth = gremlin_truth_and(related(value, GREATER_OR_EQUAL, values[0]),
                                       related(value, LESS, values[1]));
        return true;
    case GREMLIN_P_WITHIN:
        *ret_truth = truth(is_among(predicate, value));
        return true;
    case GREMLIN_P_WITHOUT:
        *ret_truth = truth(!is_among(predicate, value));
        return true;
    case GREMLIN_P_TYPE_OF:
        *ret_truth = truth(type_of_value(values[0], &word) && gremlin_is_of_type(value, word));
        return true;
    case GREMLIN_P_NOT:
        if (!gremlin_predicate_test(gremlin_predicate(values[0]), value, context, ret_truth, err))
            return false;
        *ret_truth = gremlin_truth_not(*ret_truth);
        return true;
    case GREMLIN_P_AND:
    case GREMLIN_P_OR:
        return nested_test(predicate, value, context, ret_truth, err);
    default:
        return text_test(predicate, value, context, ret_truth, err);
    }
}

bool gremlin_predicate_check(const struct gremlin_predicate *predicate,
                             struct query_context *context, struct error *err)
{
    struct slice name = gremlin_predicate_text(predicate->name);
    enum gremlin_enum_word word;

    if (gremlin_predicate_of_text(predicate->name) && predicate->values[0].type != GREMLIN_STRING)
        return error_set(err, ERROR_GREMLIN_COMPILE, "predicate \"%.*s\" takes a string",
                         SLICE_ARG(name));
    switch (predicate->name) {
    case GREMLIN_P_TYPE_OF:
        if (!type_of_value(predicate->values[0], &word))
            return error_set(err, ERROR_GREMLIN_COMPILE, "typeOf() takes the name of a type");
        return true;
    case GREMLIN_P_REGEX:
    case GREMLIN_P_NOT_REGEX: {
        bool found;

        return regex_test(gremlin_bytes(predicate->values[0]), SLICE(""), context, &found, err);
    }
    case GREMLIN_P_NOT:
    case GREMLIN_P_AND:
    case GREMLIN_P_OR:
        for (size_t i = 0; i < predicate->count; i++)
            if (!gremlin_predicate_check(gremlin_predicate(predicate->values[i]), context, err))
                return false;
        return true;
    default:
        return true;
    }
}
