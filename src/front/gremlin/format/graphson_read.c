/* GraphSON 1 to 3 to values. All versions are read alike: an object with "@type" and "@value" is
 * what its type says, any other object a map, any array a list, whatever version the request
 * names; drivers mix them. */
#include "front/gremlin/format/graphson_private.h"

#include "document/json_number.h"
#include "document/utf8.h"
#include "front/gremlin/value/big.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/special.h"
#include "front/gremlin/value/text.h"
#include "front/gremlin/value/traversal.h"

#include <math.h>
#include <openssl/evp.h>

bool gremlin_graphson_refuse(struct gremlin_graphson *reader, const char *type)
{
    return error_set(reader->err, ERROR_BAD_REQUEST, "what stands in a %s is none", type);
}

static bool is_kind(const struct gremlin_graphson *reader, uint32_t at,
                    enum gremlin_token_kind kind)
{
    return reader->tokens.items[at].kind == kind;
}

/* --- Scalars ---------------------------------------------------------------------------------- */

/* Bare numbers: an int or long where they are whole and fit, otherwise a double. */
static bool number_read(struct gremlin_graphson *reader, uint32_t at,
                        struct gremlin_value *ret_value)
{
    struct slice text = gremlin_token_text(&reader->tokens, at);
    struct json_number number;
    struct json_fault fault;

    if (!json_number_read(text.data, text.data + text.len, &number, &fault))
        return error_set(reader->err, ERROR_BAD_JSON, "a number that no double can hold");
    *ret_value = number.type == DOCUMENT_DOUBLE ? gremlin_double(number.real)
                                                : gremlin_whole(number.integer);
    return true;
}

/* A whole number as text, as the driver for JavaScript sends longs: {"@value": "27"}. */
static bool whole_text_read(struct slice text, struct gremlin_value *ret_value)
{
    bool negative = text.len && text.data[0] == '-';
    uint64_t magnitude;

    if (!slice_to_uint64(negative ? slice_skip(text, 1) : text, &magnitude) ||
        magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    *ret_value = gremlin_long(negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude);
    return true;
}

static bool whole_read(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type,
                       struct gremlin_value *ret_value)
{
    static const int64_t max[] = {
        [GREMLIN_BYTE] = INT8_MAX,  [GREMLIN_SHORT] = INT16_MAX, [GREMLIN_INT] = INT32_MAX,
        [GREMLIN_LONG] = INT64_MAX, [GREMLIN_DATE] = INT64_MAX,  [GREMLIN_TIMESTAMP] = INT64_MAX};
    struct gremlin_value number;
    int64_t whole;
    bool read;

    if (is_kind(reader, at, GREMLIN_TOKEN_STRING))
        read = whole_text_read(gremlin_token_text(&reader->tokens, at), &number);
    else
        read = is_kind(reader, at, GREMLIN_TOKEN_NUMBER) && number_read(reader, at, &number);
    if (!read || !gremlin_number_long(number, &whole) || whole > max[type] ||
        whole < -max[type] - 1 || (number.type == GREMLIN_DOUBLE && number.real != (double)whole))
        return gremlin_graphson_refuse(reader, gremlin_type_name(type));
    *ret_value = gremlin_integer(type, whole);
    return true;
}

static bool real_read(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type,
                      struct gremlin_value *ret_value)
{
    struct gremlin_value number;
    double real;

    if (is_kind(reader, at, GREMLIN_TOKEN_STRING)) {
        if (gremlin_token_is(&reader->tokens, at, SLICE("NaN")))
            real = (double)NAN;
        else if (gremlin_token_is(&reader->tokens, at, SLICE("Infinity")))
            real = (double)INFINITY;
        else if (gremlin_token_is(&reader->tokens, at, SLICE("-Infinity")))
            real = -(double)INFINITY;
        else
            return gremlin_graphson_refuse(reader, gremlin_type_name(type));
    } else {
        if (!is_kind(reader, at, GREMLIN_TOKEN_NUMBER) || !number_read(reader, at, &number))
            return gremlin_graphson_refuse(reader, gremlin_type_name(type));
        real = gremlin_number_double(number);
    }
    *ret_value = type == GREMLIN_FLOAT ? gremlin_float((float)real) : gremlin_double(real);
    return true;
}

/* Big numbers are bare numbers upstream, strings from some drivers. */
static bool big_read(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type,
                     struct gremlin_value *ret_value)
{
    struct slice text = gremlin_token_text(&reader->tokens, at);

    if ((!is_kind(reader, at, GREMLIN_TOKEN_NUMBER) &&
         !is_kind(reader, at, GREMLIN_TOKEN_STRING)) ||
        !(type == GREMLIN_BIG_INTEGER ? gremlin_big_integer(reader->heap, text, ret_value)
                                      : gremlin_big_decimal(reader->heap, text, ret_value)))
        return gremlin_graphson_refuse(reader, gremlin_type_name(type));
    return true;
}

bool gremlin_graphson_text(struct gremlin_graphson *reader, uint32_t at, const char *of,
                           struct gremlin_value *ret_value)
{
    if (!at || !is_kind(reader, at, GREMLIN_TOKEN_STRING))
        return gremlin_graphson_refuse(reader, of);
    *ret_value = gremlin_token_string(&reader->tokens, at, reader->heap);
    return true;
}

static bool uuid_read(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type UNUSED,
                      struct gremlin_value *ret_value)
{
    uint8_t bytes[16];

    if (!is_kind(reader, at, GREMLIN_TOKEN_STRING) ||
        !gremlin_uuid_parse(gremlin_token_text(&reader->tokens, at), bytes))
        return gremlin_graphson_refuse(reader, "UUID");
    *ret_value = gremlin_bytes_new(reader->heap, GREMLIN_UUID, slice_of(bytes, sizeof bytes));
    return true;
}

static bool class_read(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type UNUSED,
                       struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value text = GREMLIN_NOTHING;

    if (!gremlin_graphson_text(reader, at, "Class", &text))
        return false;
    *ret_value = gremlin_bytes_new(reader->heap, GREMLIN_CLASS, gremlin_bytes(text));
    return true;
}

static bool char_read(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type UNUSED,
                      struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value text = GREMLIN_NOTHING;
    const uint8_t *data;
    size_t len;
    uint32_t code;

    if (!gremlin_graphson_text(reader, at, "Char", &text))
        return false;
    data = gremlin_bytes(text).data;
    len = gremlin_bytes(text).len;
    if (!len || utf8_length(data, data + len) != len)
        return gremlin_graphson_refuse(reader, "Char");
    code = len == 1 ? data[0] : data[0] & (0xFF >> (len + 1));
    for (size_t i = 1; i < len; i++)
        code = code << 6 | (data[i] & 0x3F);
    *ret_value = gremlin_integer(GREMLIN_CHAR, code);
    return true;
}

static bool binary_read(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type UNUSED,
                        struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value text = GREMLIN_NOTHING;
    CLEANUP(memory_free) uint8_t *bytes = NULL;
    struct slice base64;
    size_t padding = 0;
    int len;

    if (!gremlin_graphson_text(reader, at, "ByteBuffer", &text))
        return false;
    base64 = gremlin_bytes(text);
    bytes = memory_alloc(base64.len / 4 * 3 + 1);
    len = EVP_DecodeBlock(bytes, base64.data, (int)base64.len);
    if (base64.len % 4 || len < 0)
        return gremlin_graphson_refuse(reader, "ByteBuffer");
    while (padding < 2 && padding < base64.len && base64.data[base64.len - 1 - padding] == '=')
        padding++;
    *ret_value =
        gremlin_bytes_new(reader->heap, GREMLIN_BINARY, slice_of(bytes, (size_t)len - padding));
    return true;
}

static bool duration_read(struct gremlin_graphson *reader, uint32_t at,
                          enum gremlin_type type UNUSED, struct gremlin_value *ret_value)
{
    int64_t seconds;
    int32_t nanoseconds;

    if (!is_kind(reader, at, GREMLIN_TOKEN_STRING) ||
        !gremlin_duration_parse(gremlin_token_text(&reader->tokens, at), &seconds, &nanoseconds))
        return gremlin_graphson_refuse(reader, "Duration");
    *ret_value = gremlin_duration_new(reader->heap, seconds, nanoseconds);
    return true;
}

static bool date_time_read(struct gremlin_graphson *reader, uint32_t at,
                           enum gremlin_type type UNUSED, struct gremlin_value *ret_value)
{
    int64_t seconds;
    int32_t nanoseconds, offset;

    if (!is_kind(reader, at, GREMLIN_TOKEN_STRING) ||
        !gremlin_date_time_parse(gremlin_token_text(&reader->tokens, at), &seconds, &nanoseconds,
                                 &offset))
        return gremlin_graphson_refuse(reader, "OffsetDateTime");
    *ret_value = gremlin_date_time_new(reader->heap, seconds, nanoseconds, offset);
    return true;
}

/* --- Containers ------------------------------------------------------------------------------- */

static bool list_read(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type UNUSED,
                      struct gremlin_value *ret_value)
{
    const struct gremlin_token *token = &reader->tokens.items[at];
    CLEANUP(gremlin_value_unref) struct gremlin_value list = GREMLIN_NOTHING;
    struct gremlin_value item;

    if (token->kind != GREMLIN_TOKEN_ARRAY)
        return gremlin_graphson_refuse(reader, "List");
    list = gremlin_list_new(reader->heap, token->count);
    for (uint32_t i = at + 1; i < token->next; i = reader->tokens.items[i].next) {
        if (!gremlin_graphson_value(reader, i, &item))
            return false;
        gremlin_list_add_take(list, item);
    }
    *ret_value = gremlin_value_take(&list);
    return true;
}

static bool set_read(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type UNUSED,
                     struct gremlin_value *ret_value)
{
    const struct gremlin_token *token = &reader->tokens.items[at];
    CLEANUP(gremlin_value_unref) struct gremlin_value set = gremlin_set_new(reader->heap);

    if (token->kind != GREMLIN_TOKEN_ARRAY)
        return gremlin_graphson_refuse(reader, "Set");
    for (uint32_t i = at + 1; i < token->next; i = reader->tokens.items[i].next) {
        CLEANUP(gremlin_value_unref) struct gremlin_value item = GREMLIN_NOTHING;

        if (!gremlin_graphson_value(reader, i, &item))
            return false;
        gremlin_set_add(set, item);
    }
    *ret_value = gremlin_value_take(&set);
    return true;
}

/* g:Map of version 3 and g:BulkSet: key, value, key, value in one array. */
static bool pairs_read(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type,
                       struct gremlin_value *ret_value)
{
    const struct gremlin_token *token = &reader->tokens.items[at];
    CLEANUP(gremlin_value_unref)
    struct gremlin_value table = gremlin_table_new(reader->heap, type, 0);
    struct gremlin_value value;
    uint32_t i = at + 1;

    if (token->kind != GREMLIN_TOKEN_ARRAY || token->count % 2)
        return gremlin_graphson_refuse(reader, gremlin_type_name(type));
    while (i < token->next) {
        CLEANUP(gremlin_value_unref) struct gremlin_value key = GREMLIN_NOTHING;

        if (!gremlin_graphson_value(reader, i, &key))
            return false;
        i = reader->tokens.items[i].next;
        if (!gremlin_graphson_value(reader, i, &value))
            return false;
        i = reader->tokens.items[i].next;
        if (type == GREMLIN_MAP) {
            gremlin_map_put_take(table, key, value);
        } else if (gremlin_is_whole(value) && value.integer > 0) {
            gremlin_bulk_set_add(table, key, value.integer);
        } else {
            gremlin_value_unref(value);
            return gremlin_graphson_refuse(reader, "BulkSet");
        }
    }
    *ret_value = gremlin_value_take(&table);
    return true;
}

bool gremlin_graphson_object(struct gremlin_graphson *reader, uint32_t at,
                             struct gremlin_value *ret_value)
{
    const struct gremlin_token *token = &reader->tokens.items[at];
    CLEANUP(gremlin_value_unref)
    struct gremlin_value map = gremlin_table_new(reader->heap, GREMLIN_MAP, token->count);
    struct gremlin_value value;

    for (uint32_t i = at + 1; i < token->next; i = reader->tokens.items[i + 1].next) {
        CLEANUP(gremlin_value_unref)
        struct gremlin_value key = gremlin_token_string(&reader->tokens, i, reader->heap);

        if (!gremlin_graphson_value(reader, i + 1, &value))
            return false;
        gremlin_map_put_take(map, key, value);
    }
    *ret_value = gremlin_value_take(&map);
    return true;
}

static bool map_read(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type,
                     struct gremlin_value *ret_value)
{
    if (is_kind(reader, at, GREMLIN_TOKEN_OBJECT))
        return gremlin_graphson_object(reader, at, ret_value);
    return pairs_read(reader, at, type, ret_value);
}

/* --- Arguments -------------------------------------------------------------------------------- */

static bool predicate_read(struct gremlin_graphson *reader, uint32_t at,
                           enum gremlin_type type UNUSED, struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value name = GREMLIN_NOTHING;
    CLEANUP(gremlin_value_unref) struct gremlin_value value = GREMLIN_NOTHING;
    uint32_t value_at;

    if (!is_kind(reader, at, GREMLIN_TOKEN_OBJECT))
        return gremlin_graphson_refuse(reader, "P");
    value_at = gremlin_token_member(&reader->tokens, at, SLICE("value"));
    if (!gremlin_graphson_text(
            reader, gremlin_token_member(&reader->tokens, at, SLICE("predicate")), "P", &name) ||
        (value_at && !gremlin_graphson_value(reader, value_at, &value)))
        return false;
    return gremlin_format_predicate(reader->heap, gremlin_bytes(name), &value, 1, ret_value,
                                    reader->err);
}

static bool lambda_read(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type UNUSED,
                        struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value script = GREMLIN_NOTHING;
    CLEANUP(gremlin_value_unref) struct gremlin_value language = GREMLIN_NOTHING;
    CLEANUP(gremlin_value_unref) struct gremlin_value arguments = GREMLIN_NOTHING;
    uint32_t arguments_at;

    if (!is_kind(reader, at, GREMLIN_TOKEN_OBJECT))
        return gremlin_graphson_refuse(reader, "Lambda");
    arguments_at = gremlin_token_member(&reader->tokens, at, SLICE("arguments"));
    if (!gremlin_graphson_text(reader, gremlin_token_member(&reader->tokens, at, SLICE("script")),
                               "Lambda", &script) ||
        !gremlin_graphson_text(reader, gremlin_token_member(&reader->tokens, at, SLICE("language")),
                               "Lambda", &language) ||
        (arguments_at && !gremlin_graphson_value(reader, arguments_at, &arguments)))
        return false;
    *ret_value = gremlin_lambda_new(reader->heap, gremlin_bytes(script), gremlin_bytes(language),
                                    gremlin_is_whole(arguments) ? (int32_t)arguments.integer : -1);
    return true;
}

/* [["V","1"],["out"]] */
static bool instructions_read(struct gremlin_graphson *reader, uint32_t at,
                              struct gremlin_traversal *traversal,
                              struct gremlin_instructions *into)
{
    const struct gremlin_token *token = &reader->tokens.items[at];

    if (token->kind != GREMLIN_TOKEN_ARRAY)
        return gremlin_graphson_refuse(reader, "Bytecode");
    for (uint32_t i = at + 1; i < token->next; i = reader->tokens.items[i].next) {
        const struct gremlin_token *step = &reader->tokens.items[i];
        CLEANUP(gremlin_value_unref) struct gremlin_value name = GREMLIN_NOTHING;
        struct gremlin_instruction *instruction;
        struct gremlin_value argument;

        if (step->kind != GREMLIN_TOKEN_ARRAY || !step->count)
            return gremlin_graphson_refuse(reader, "Bytecode");
        if (!gremlin_graphson_text(reader, i + 1, "Bytecode", &name))
            return false;
        instruction = gremlin_traversal_add(traversal, into, gremlin_bytes(name));
        for (uint32_t j = i + 2; j < step->next; j = reader->tokens.items[j].next) {
            if (!gremlin_graphson_value(reader, j, &argument))
                return false;
            gremlin_instruction_add_take(traversal, instruction, argument);
        }
    }
    return true;
}

static bool bytecode_read(struct gremlin_graphson *reader, uint32_t at,
                          enum gremlin_type type UNUSED, struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref)
    struct gremlin_value value = gremlin_traversal_new(reader->heap, false);
    struct gremlin_traversal *traversal = gremlin_traversal(value);
    uint32_t sources, steps;

    if (!is_kind(reader, at, GREMLIN_TOKEN_OBJECT))
        return gremlin_graphson_refuse(reader, "Bytecode");
    sources = gremlin_token_member(&reader->tokens, at, SLICE("source"));
    steps = gremlin_token_member(&reader->tokens, at, SLICE("step"));
    if (sources && !instructions_read(reader, sources, traversal, &traversal->sources))
        return false;
    if (steps && !instructions_read(reader, steps, traversal, &traversal->steps))
        return false;
    *ret_value = gremlin_bytecode_finish_take(reader->heap, gremlin_value_take(&value));
    return true;
}

static bool binding_read(struct gremlin_graphson *reader, uint32_t at,
                         enum gremlin_type type UNUSED, struct gremlin_value *ret_value)
{
    uint32_t value = is_kind(reader, at, GREMLIN_TOKEN_OBJECT)
                         ? gremlin_token_member(&reader->tokens, at, SLICE("value"))
                         : 0;

    return value ? gremlin_graphson_value(reader, value, ret_value)
                 : gremlin_graphson_refuse(reader, "Binding");
}

/* {"fqcn":..., "conf":{...}} since 3.5; the configuration itself before. */
static bool strategy_read(struct gremlin_graphson *reader, uint32_t at, struct slice name,
                          struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value configuration = GREMLIN_NOTHING;
    uint32_t conf = at;

    if (is_kind(reader, at, GREMLIN_TOKEN_OBJECT) &&
        gremlin_token_member(&reader->tokens, at, SLICE("conf")))
        conf = gremlin_token_member(&reader->tokens, at, SLICE("conf"));
    else if (is_kind(reader, at, GREMLIN_TOKEN_OBJECT) &&
             gremlin_token_member(&reader->tokens, at, SLICE("fqcn")))
        conf = 0;
    if (!conf)
        configuration = gremlin_map_new(reader->heap);
    else if (!gremlin_graphson_value(reader, conf, &configuration))
        return false;
    if (configuration.type != GREMLIN_MAP)
        return gremlin_graphson_refuse(reader, "TraversalStrategy");
    *ret_value = gremlin_strategy_new(reader->heap, name, configuration);
    return true;
}

/* --- By type ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum gremlin_type type;
    bool (*read)(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type,
                 struct gremlin_value *ret_value);
} types[] = {
    {"g:Int32", GREMLIN_INT, whole_read},
    {"g:Int64", GREMLIN_LONG, whole_read},
    {"g:Double", GREMLIN_DOUBLE, real_read},
    {"g:Float", GREMLIN_FLOAT, real_read},
    {"g:List", GREMLIN_LIST, list_read},
    {"g:Set", GREMLIN_SET, set_read},
    {"g:Map", GREMLIN_MAP, map_read},
    {"g:Bytecode", GREMLIN_TRAVERSAL, bytecode_read},
    {"g:P", GREMLIN_PREDICATE, predicate_read},
    {"g:TextP", GREMLIN_PREDICATE, predicate_read},
    {"g:UUID", GREMLIN_UUID, uuid_read},
    {"g:Date", GREMLIN_DATE, whole_read},
    {"g:Timestamp", GREMLIN_TIMESTAMP, whole_read},
    {"g:Class", GREMLIN_CLASS, class_read},
    {"g:Binding", GREMLIN_NULL, binding_read},
    {"g:Lambda", GREMLIN_LAMBDA, lambda_read},
    {"g:BulkSet", GREMLIN_BULK_SET, pairs_read},
    {"g:Vertex", GREMLIN_VERTEX, gremlin_graphson_vertex},
    {"g:Edge", GREMLIN_EDGE, gremlin_graphson_edge},
    {"g:VertexProperty", GREMLIN_VERTEX_PROPERTY, gremlin_graphson_vertex_property},
    {"g:Property", GREMLIN_PROPERTY, gremlin_graphson_property},
    {"g:Path", GREMLIN_PATH, gremlin_graphson_path},
    {"g:Tree", GREMLIN_TREE, gremlin_graphson_tree},
    {"tinker:graph", GREMLIN_GRAPH, gremlin_graphson_subgraph},
    {"g:Traverser", GREMLIN_TRAVERSER, gremlin_graphson_traverser},
    {"g:TraversalMetrics", GREMLIN_METRICS, gremlin_graphson_report},
    {"g:TraversalExplanation", GREMLIN_EXPLANATION, gremlin_graphson_report},
    {"gx:Byte", GREMLIN_BYTE, whole_read},
    {"gx:Int16", GREMLIN_SHORT, whole_read},
    {"gx:BigInteger", GREMLIN_BIG_INTEGER, big_read},
    {"gx:BigDecimal", GREMLIN_BIG_DECIMAL, big_read},
    {"gx:Char", GREMLIN_CHAR, char_read},
    {"gx:ByteBuffer", GREMLIN_BINARY, binary_read},
    {"gx:Duration", GREMLIN_DURATION, duration_read},
    {"gx:OffsetDateTime", GREMLIN_DATE_TIME, date_time_read},
};

static const char *const temporals[] = {
    "Instant", "LocalDate", "LocalDateTime", "LocalTime",     "MonthDay",   "OffsetTime",
    "Period",  "Year",      "YearMonth",     "ZonedDateTime", "ZoneOffset", "InetAddress",
};

static bool temporal_read(struct gremlin_graphson *reader, uint32_t at, struct slice name,
                          struct gremlin_value *ret_value)
{
    struct slice text = gremlin_token_text(&reader->tokens, at);

    /* Year is a number upstream, the others text */
    if ((!is_kind(reader, at, GREMLIN_TOKEN_STRING) &&
         !is_kind(reader, at, GREMLIN_TOKEN_NUMBER)) ||
        reader->tokens.items[at].escaped)
        return gremlin_graphson_refuse(reader, "Temporal");
    *ret_value = gremlin_temporal_new(reader->heap, name, text);
    return true;
}

/* Types that are found by a part of their name: enumerations, strategies, other dates. */
static bool named_read(struct gremlin_graphson *reader, struct slice type, uint32_t at,
                       struct gremlin_value *ret_value)
{
    struct slice name, space = SLICE_NONE;
    enum gremlin_enum_family family;

    if (!slice_split(type, ':', &space, &name))
        name = type;
    if (slice_equal(space, SLICE("g")) && gremlin_family_find(name, &family)) {
        if (!is_kind(reader, at, GREMLIN_TOKEN_STRING) ||
            !gremlin_word_find(family, gremlin_token_text(&reader->tokens, at), ret_value))
            return error_set(reader->err, ERROR_BAD_REQUEST, "no such word of \"%.*s\"",
                             SLICE_ARG(name));
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(temporals); i++)
        if (slice_equal(name, slice_of_text(temporals[i])))
            return temporal_read(reader, at, name, ret_value);
    if (gremlin_strategy_is_name(name))
        return strategy_read(reader, at, name, ret_value);
    return error_set(reader->err, ERROR_NOT_SUPPORTED, "the type \"%.*s\" is not supported",
                     (int)MIN(type.len, (size_t)100), (const char *)type.data);
}

static bool typed_read(struct gremlin_graphson *reader, uint32_t type_at, uint32_t value_at,
                       struct gremlin_value *ret_value)
{
    struct slice type = gremlin_token_text(&reader->tokens, type_at);

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (slice_equal(type, slice_of_text(types[i].name)))
            return types[i].read(reader, value_at, types[i].type, ret_value);
    return named_read(reader, type, value_at, ret_value);
}

static bool object_read(struct gremlin_graphson *reader, uint32_t at,
                        struct gremlin_value *ret_value)
{
    uint32_t type = gremlin_token_member(&reader->tokens, at, SLICE("@type"));
    uint32_t value = type ? gremlin_token_member(&reader->tokens, at, SLICE("@value")) : 0;

    if (type && value && is_kind(reader, type, GREMLIN_TOKEN_STRING) &&
        !reader->tokens.items[type].escaped)
        return typed_read(reader, type, value, ret_value);
    return gremlin_graphson_object(reader, at, ret_value);
}

bool gremlin_graphson_value(struct gremlin_graphson *reader, uint32_t at,
                            struct gremlin_value *ret_value)
{
    bool fine = true;

    if (reader->depth == GREMLIN_FORMAT_DEPTH)
        return error_set(reader->err, ERROR_TOO_DEEP, "values are nested deeper than %d",
                         GREMLIN_FORMAT_DEPTH);
    if (gremlin_heap_failed(reader->heap))
        return gremlin_heap_error(reader->heap, reader->err);
    reader->depth++;
    switch (reader->tokens.items[at].kind) {
    case GREMLIN_TOKEN_NULL:
        *ret_value = GREMLIN_NOTHING;
        break;
    case GREMLIN_TOKEN_TRUE:
    case GREMLIN_TOKEN_FALSE:
        *ret_value = gremlin_boolean(is_kind(reader, at, GREMLIN_TOKEN_TRUE));
        break;
    case GREMLIN_TOKEN_NUMBER:
        fine = number_read(reader, at, ret_value);
        break;
    case GREMLIN_TOKEN_STRING:
        *ret_value = gremlin_token_string(&reader->tokens, at, reader->heap);
        break;
    case GREMLIN_TOKEN_ARRAY:
        fine = list_read(reader, at, GREMLIN_LIST, ret_value);
        break;
    default:
        fine = object_read(reader, at, ret_value);
    }
    reader->depth--;
    return fine;
}

bool gremlin_graphson_read_value(struct slice bytes, struct gremlin_heap *heap,
                                 struct gremlin_value *ret_value, struct error *err)
{
    struct gremlin_graphson reader = {.heap = heap, .err = err};
    bool fine;

    if (!gremlin_tokens_init(&reader.tokens, bytes, heap, err))
        return false;
    fine = gremlin_graphson_value(&reader, 0, ret_value);
    gremlin_tokens_done(&reader.tokens);
    return fine;
}

/* --- Requests --------------------------------------------------------------------------------- */

/* The id of a text that is no JSON: what stands in quotes behind "requestId", at once or as the
 * value of a type. */
static void id_search(struct slice text, struct gremlin_heap *heap, struct gremlin_value *ret_id)
{
    static const char name[] = "\"requestId\"", value[] = "\"@value\"";
    const uint8_t *at = text.len ? memmem(text.data, text.len, name, sizeof name - 1) : NULL;
    const uint8_t *end, *close;

    if (!at)
        return;
    end = text.data + text.len;
    at += sizeof name - 1;
    while (at < end && (*at == ' ' || *at == ':' || *at == '\n' || *at == '\t' || *at == '\r'))
        at++;
    if (at < end && *at == '{') {
        at = memmem(at, MIN((size_t)(end - at), (size_t)100), value, sizeof value - 1);
        if (!at)
            return;
        at += sizeof value - 1;
        while (at < end && (*at == ' ' || *at == ':'))
            at++;
    }
    if (at >= end || *at++ != '"')
        return;
    close = memchr(at, '"', MIN((size_t)(end - at), (size_t)128));
    if (close && utf8_valid_length(slice_of(at, (size_t)(close - at))) == (size_t)(close - at) &&
        !memchr(at, '\\', (size_t)(close - at)))
        *ret_id = gremlin_string(heap, slice_of(at, (size_t)(close - at)));
}

static bool id_read(struct gremlin_graphson *reader, uint32_t at, struct gremlin_value *ret_id)
{
    if (is_kind(reader, at, GREMLIN_TOKEN_OBJECT))
        at = gremlin_token_member(&reader->tokens, at, SLICE("@value"));
    if (!at || is_kind(reader, at, GREMLIN_TOKEN_NULL))
        return true;
    return gremlin_graphson_text(reader, at, "requestId", ret_id);
}

static bool member_text(struct gremlin_graphson *reader, struct slice name, const char *of,
                        struct gremlin_value *ret_value)
{
    uint32_t at = gremlin_token_member(&reader->tokens, 0, name);

    if (!at || is_kind(reader, at, GREMLIN_TOKEN_NULL))
        return true;
    return gremlin_graphson_text(reader, at, of, ret_value);
}

static bool request_read(struct gremlin_graphson *reader, struct gremlin_request *request)
{
    uint32_t id, args;

    if (!is_kind(reader, 0, GREMLIN_TOKEN_OBJECT))
        return error_set(reader->err, ERROR_BAD_REQUEST, "a request is an object");
    id = gremlin_token_member(&reader->tokens, 0, SLICE("requestId"));
    args = gremlin_token_member(&reader->tokens, 0, SLICE("args"));
    if ((id && !id_read(reader, id, &request->id)) ||
        !member_text(reader, SLICE("op"), "op", &request->op) ||
        !member_text(reader, SLICE("processor"), "processor", &request->processor) ||
        (args && !gremlin_graphson_value(reader, args, &request->args)))
        return false;
    if (!gremlin_is_null(request->args) && request->args.type != GREMLIN_MAP)
        return error_set(reader->err, ERROR_BAD_REQUEST, "\"args\" of a request is a map");
    return true;
}

bool gremlin_graphson_read(struct slice message, struct gremlin_heap *heap,
                           struct gremlin_request *ret_request, struct error *err)
{
    struct gremlin_graphson reader = {.heap = heap, .err = err};
    bool fine;

    if (!gremlin_tokens_init(&reader.tokens, message, heap, err)) {
        id_search(message, heap, &ret_request->id);
        return false;
    }
    fine = request_read(&reader, ret_request);
    gremlin_tokens_done(&reader.tokens);
    return fine;
}
