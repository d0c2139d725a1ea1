/* Arguments and results that are no data of a graph. */
#include "front/gremlin/value/special.h"

#include "front/gremlin/value/container.h"

struct gremlin_value gremlin_traverser_new(struct gremlin_heap *heap, struct gremlin_value value,
                                           int64_t bulk)
{
    struct gremlin_traverser *traverser =
        gremlin_object_new(heap, GREMLIN_TRAVERSER, sizeof *traverser);

    traverser->value = gremlin_value_ref(value);
    traverser->bulk = bulk;
    return gremlin_value_of_take(traverser);
}

struct gremlin_value gremlin_report_new(struct gremlin_heap *heap, enum gremlin_type type,
                                        struct gremlin_value map)
{
    struct gremlin_report *report = gremlin_object_new(heap, type, sizeof *report);

    assert(type == GREMLIN_METRICS || type == GREMLIN_EXPLANATION);
    report->map = gremlin_value_ref(map);
    return gremlin_value_of_take(report);
}

/* --- Predicates ------------------------------------------------------------------------------- */

struct predicate_row {
    const char *text;
    bool of_text;
};

static const struct predicate_row predicates[] = {
#define GREMLIN_PREDICATE_ROW(name, text, of_text) {text, of_text},
#include "front/gremlin/value/predicates.def"
#undef GREMLIN_PREDICATE_ROW
};

struct slice gremlin_predicate_text(enum gremlin_predicate_name name)
{
    return slice_of_text(predicates[name].text);
}

bool gremlin_predicate_of_text(enum gremlin_predicate_name name)
{
    return predicates[name].of_text;
}

static bool predicate_find(struct slice text, enum gremlin_predicate_name *ret_name)
{
    for (size_t i = 0; i < GREMLIN_P_COUNT; i++)
        if (slice_equal(text, slice_of_text(predicates[i].text))) {
            *ret_name = (enum gremlin_predicate_name)i;
            return true;
        }
    return false;
}

/* What within and without are given as one collection is what they are given. */
static bool is_spread(enum gremlin_predicate_name name, const struct gremlin_value *values,
                      size_t count)
{
    if (count != 1 || (values->type != GREMLIN_LIST && values->type != GREMLIN_SET))
        return false;
    return name == GREMLIN_P_WITHIN || name == GREMLIN_P_WITHOUT || name == GREMLIN_P_INSIDE ||
           name == GREMLIN_P_OUTSIDE || name == GREMLIN_P_BETWEEN || name == GREMLIN_P_AND ||
           name == GREMLIN_P_OR;
}

static bool counts_are_right(enum gremlin_predicate_name name, const struct gremlin_value *values,
                             size_t count, struct error *err)
{
    bool nested = name == GREMLIN_P_AND || name == GREMLIN_P_OR || name == GREMLIN_P_NOT;

    switch (name) {
    case GREMLIN_P_WITHIN:
    case GREMLIN_P_WITHOUT:
        return true;
    case GREMLIN_P_INSIDE:
    case GREMLIN_P_OUTSIDE:
    case GREMLIN_P_BETWEEN:
        if (count != 2)
            return error_set(err, ERROR_GREMLIN_COMPILE, "predicate \"%s\" takes two values",
                             predicates[name].text);
        return true;
    case GREMLIN_P_AND:
    case GREMLIN_P_OR:
        break;
    default:
        if (count != 1)
            return error_set(err, ERROR_GREMLIN_COMPILE, "predicate \"%s\" takes one value",
                             predicates[name].text);
    }
    for (size_t i = 0; nested && i < count; i++)
        if (values[i].type != GREMLIN_PREDICATE)
            return error_set(err, ERROR_GREMLIN_COMPILE, "predicate \"%s\" takes predicates",
                             predicates[name].text);
    return true;
}

static struct gremlin_predicate *predicate_new(struct gremlin_heap *heap,
                                               enum gremlin_predicate_name name, size_t count)
{
    struct gremlin_predicate *predicate = gremlin_object_new(
        heap, GREMLIN_PREDICATE, sizeof *predicate + count * sizeof(struct gremlin_value));

    assert(count <= UINT32_MAX);
    predicate->name = name;
    predicate->count = (uint32_t)count;
    predicate->listed = false;
    return predicate;
}

bool gremlin_predicate_new(struct gremlin_heap *heap, struct slice text,
                           const struct gremlin_value *values, size_t count,
                           struct gremlin_value *ret_value, struct error *err)
{
    struct gremlin_predicate *predicate;
    enum gremlin_predicate_name name;
    const struct gremlin_table *set = NULL;
    bool listed = count != 1;

    if (!predicate_find(text, &name))
        return error_set(err, ERROR_GREMLIN_COMPILE, "there is no predicate \"%.*s\"",
                         (int)MIN(text.len, (size_t)64), (const char *)text.data);
    if (is_spread(name, values, count)) {
        listed = true;
        if (values->type == GREMLIN_LIST) {
            count = gremlin_list(*values)->count;
            values = gremlin_list(*values)->items;
        } else {
            set = gremlin_table(*values);
            count = set->count;
        }
    }
    predicate = predicate_new(heap, name, count);
    predicate->listed = listed;
    for (size_t i = 0; i < count; i++)
        predicate->values[i] = gremlin_value_ref(set ? set->rows[i].key : values[i]);
    if (!counts_are_right(name, predicate->values, count, err)) {
        gremlin_object_unref(predicate);
        return false;
    }
    *ret_value = gremlin_value_of_take(predicate);
    return true;
}

/* --- Arguments -------------------------------------------------------------------------------- */

bool gremlin_strategy_is_name(struct slice name)
{
    static const char end[] = "Strategy";
    size_t last = 0;

    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.data[i], letter = c | 0x20;

        if (c == '.')
            last = i + 1;
        else if ((letter < 'a' || letter > 'z') && (c < '0' || c > '9') && c != '_' && c != '$')
            return false;
    }
    return name.len - last > sizeof end - 1 &&
           slice_equal(slice_skip(name, name.len - (sizeof end - 1)), slice_of_text(end));
}

struct gremlin_value gremlin_strategy_new(struct gremlin_heap *heap, struct slice name,
                                          struct gremlin_value configuration)
{
    struct gremlin_strategy *strategy =
        gremlin_object_new(heap, GREMLIN_STRATEGY, sizeof *strategy);

    for (size_t i = name.len; i; i--)
        if (name.data[i - 1] == '.') {
            name = slice_skip(name, i);
            break;
        }
    strategy->name = gremlin_string(heap, name);
    strategy->configuration = gremlin_value_ref(configuration);
    return gremlin_value_of_take(strategy);
}

struct gremlin_value gremlin_lambda_new(struct gremlin_heap *heap, struct slice script,
                                        struct slice language, int32_t arguments)
{
    struct gremlin_lambda *lambda = gremlin_object_new(heap, GREMLIN_LAMBDA, sizeof *lambda);

    lambda->script = gremlin_string(heap, script);
    lambda->language = gremlin_string(heap, language);
    lambda->arguments = arguments;
    return gremlin_value_of_take(lambda);
}

struct gremlin_value gremlin_cardinal_new(struct gremlin_heap *heap,
                                          enum gremlin_enum_word cardinality,
                                          struct gremlin_value value)
{
    struct gremlin_cardinal *cardinal =
        gremlin_object_new(heap, GREMLIN_CARDINAL, sizeof *cardinal);

    cardinal->cardinality = cardinality;
    cardinal->value = gremlin_value_ref(value);
    return gremlin_value_of_take(cardinal);
}
