/* $type, $mod, $size, $regex and bits: reading what they are given. */
#include "front/mongo/match/match_private.h"
#include "front/mongo/text.h"
#include "query/value/regex.h"

#include <math.h>

enum { BITS_PER_BYTE = 8, LONG_BITS = 64, POSITIONS_MAX = 1 << 20 };

/* --- Types ------------------------------------------------------------------------------------ */

uint32_t match_type_bit(enum document_type type)
{
    if (type == DOCUMENT_MIN_KEY)
        return 1u << 30;
    if (type == DOCUMENT_MAX_KEY)
        return 1u << 31;
    return 1u << type;
}

static uint32_t number_types(void)
{
    return match_type_bit(DOCUMENT_DOUBLE) | match_type_bit(DOCUMENT_INT32) |
           match_type_bit(DOCUMENT_INT64) | match_type_bit(DOCUMENT_DECIMAL128);
}

static const uint8_t type_list[] = {
    DOCUMENT_DOUBLE,    DOCUMENT_STRING,    DOCUMENT_OBJECT,          DOCUMENT_ARRAY,
    DOCUMENT_BINARY,    DOCUMENT_UNDEFINED, DOCUMENT_OBJECT_ID,       DOCUMENT_BOOL,
    DOCUMENT_DATE,      DOCUMENT_NULL,      DOCUMENT_REGEX,           DOCUMENT_DB_POINTER,
    DOCUMENT_CODE,      DOCUMENT_SYMBOL,    DOCUMENT_CODE_WITH_SCOPE, DOCUMENT_INT32,
    DOCUMENT_TIMESTAMP, DOCUMENT_INT64,     DOCUMENT_DECIMAL128,      DOCUMENT_MIN_KEY,
    DOCUMENT_MAX_KEY,
};

bool match_type_named(struct slice alias, uint32_t *ret_types)
{
    if (slice_equal(alias, SLICE("number"))) {
        *ret_types = number_types();
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(type_list); i++)
        if (slice_equal(alias, slice_of_text(mongo_type_name(type_list[i])))) {
            *ret_types = match_type_bit(type_list[i]);
            return true;
        }
    return false;
}

static bool type_numbered(int64_t number, uint32_t *ret_types)
{
    for (size_t i = 0; i < ARRAY_LEN(type_list); i++) {
        int64_t code = type_list[i] == DOCUMENT_MIN_KEY ? -1 : type_list[i];

        if (code == number) {
            *ret_types = match_type_bit(type_list[i]);
            return true;
        }
    }
    return false;
}

static bool types_add(struct match_parse *parse, const struct document_value *value,
                      uint32_t *types)
{
    uint32_t found;
    int64_t number;

    if (value->type == DOCUMENT_STRING) {
        if (!match_type_named(value->text, &found))
            return mongo_error_set(parse->err, MONGO_BAD_VALUE, "Unknown type name alias: %.*s",
                                   SLICE_ARG(value->text));
    } else if (!document_is_number(value)) {
        return mongo_error_set(parse->err, MONGO_TYPE_MISMATCH,
                               "type must be represented as a number or a string");
    } else if (!document_to_int64(value, &number) || !type_numbered(number, &found)) {
        return mongo_error_set(parse->err, MONGO_BAD_VALUE, "Invalid numerical type code: %.*s",
                               SLICE_ARG(mongo_text_value(value, parse->build->arena)));
    }
    *types |= found;
    return true;
}

struct match_node *match_parse_type(struct match_parse *parse, const struct match_path *path,
                                    const struct document_value *value)
{
    struct match_node *node = match_node_new(parse, MATCH_TYPE, path);
    struct document_iter iter;

    if (value->type != DOCUMENT_ARRAY)
        return types_add(parse, value, &node->type.types) ? node : NULL;
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter))
        if (!types_add(parse, &iter.value, &node->type.types))
            return NULL;
    if (!node->type.types) {
        mongo_error_set(parse->err, MONGO_FAILED_TO_PARSE, "$type must match at least one type");
        return NULL;
    }
    return node;
}

/* --- $mod and $size --------------------------------------------------------------------------- */

static bool mod_number(struct match_parse *parse, const struct document_value *value,
                       const char *which, int64_t *ret_number)
{
    double number;

    if (!document_is_number(value))
        return mongo_error_set(parse->err, MONGO_BAD_VALUE, "malformed mod, %s not a number",
                               which);
    if (document_to_int64(value, ret_number))
        return true;
    (void)document_to_double(value, &number);
    if (!isfinite(number) || fabs(number) >= 0x1p63)
        return mongo_error_set(parse->err, MONGO_BAD_VALUE,
                               "malformed mod, %s value is invalid :: caused by :: Unable to "
                               "coerce NaN/Inf to integral type",
                               which);
    *ret_number = (int64_t)number;
    return true;
}

struct match_node *match_parse_mod(struct match_parse *parse, const struct match_path *path,
                                   const struct document_value *value)
{
    struct match_node *node = match_node_new(parse, MATCH_MOD, path);
    struct document_value divisor, remainder;
    size_t count;

    if (value->type != DOCUMENT_ARRAY) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "malformed mod, needs to be an array");
        return NULL;
    }
    count = document_count(value->document);
    if (count != 2) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "malformed mod, %s elements",
                        count < 2 ? "not enough" : "too many");
        return NULL;
    }
    if (!document_find_index(value->document, 0, &divisor) ||
        !document_find_index(value->document, 1, &remainder) ||
        !mod_number(parse, &divisor, "divisor", &node->mod.divisor) ||
        !mod_number(parse, &remainder, "remainder", &node->mod.remainder))
        return NULL;
    if (node->mod.divisor == 0) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "divisor cannot be 0");
        return NULL;
    }
    return node;
}

struct match_node *match_parse_size(struct match_parse *parse, const struct match_path *path,
                                    const struct document_value *value)
{
    struct match_node *node = match_node_new(parse, MATCH_SIZE, path);
    struct slice text = mongo_text_value(value, parse->build->arena);

    if (!document_is_number(value) || !document_to_int64(value, &node->size)) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE,
                        "Failed to parse $size. Expected %s in: $size: %.*s",
                        document_is_number(value) ? "an integer" : "a number", SLICE_ARG(text));
        return NULL;
    }
    if (node->size < 0) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE,
                        "Failed to parse $size. Expected a non-negative number in: $size: %.*s",
                        SLICE_ARG(text));
        return NULL;
    }
    return node;
}

/* --- Regular expressions ---------------------------------------------------------------------- */

static bool regex_is_valid(struct slice pattern, struct slice modifiers)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(query_context_done) struct query_context context = {0};

    query_context_init(&context, arena, NULL, NULL);
    return query_regex_get(&context, pattern, modifiers) != NULL;
}

struct match_node *match_parse_regex(struct match_parse *parse, const struct match_path *path,
                                     struct slice pattern, struct slice options)
{
    struct match_node *node = match_node_new(parse, MATCH_REGEX, path);
    uint8_t *modifiers = arena_alloc(parse->build->arena, options.len + 1);
    size_t kept = 0;

    for (size_t i = 0; i < options.len; i++) {
        if (!memchr("imsxu", options.data[i], 5)) {
            mongo_error_set(parse->err, 51108, "invalid flag in regex options: %c",
                            options.data[i]);
            return NULL;
        }
        if (options.data[i] != 'u') /* text is UTF-8 anyway */
            modifiers[kept++] = options.data[i];
    }
    if (memchr(pattern.data ? (const char *)pattern.data : "", 0, pattern.len)) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE,
                        "Regular expression cannot contain an embedded null byte");
        return NULL;
    }
    node->regex.pattern = arena_copy(parse->build->arena, pattern);
    node->regex.options = arena_copy(parse->build->arena, options);
    node->regex.modifiers = slice_of(modifiers, kept);
    if (!regex_is_valid(pattern, node->regex.modifiers)) {
        mongo_error_set(parse->err, 51091, "Regular expression is invalid: %.*s",
                        (int)MIN(pattern.len, (size_t)200), (const char *)pattern.data);
        return NULL;
    }
    return node;
}

/* --- Bits ------------------------------------------------------------------------------------- */

struct positions {
    struct match_parse *parse;
    uint32_t *list;
    size_t count;
};

static void bytes_read(struct positions *positions, struct slice bytes)
{
    for (size_t i = 0; i < bytes.len * BITS_PER_BYTE; i++)
        if (bytes.data[i / BITS_PER_BYTE] >> i % BITS_PER_BYTE & 1)
            positions->list[positions->count++] = (uint32_t)i;
}

static bool list_read(struct positions *positions, struct slice name, struct slice array)
{
    struct document_iter iter;
    int64_t position;

    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        if (!document_to_int64(&iter.value, &position) || position < 0 || position > INT32_MAX)
            return mongo_error_set(
                positions->parse->err, MONGO_BAD_VALUE,
                "Failed to parse bit position. Expected a non-negative number in: %.*s: %.*s",
                SLICE_ARG(name),
                SLICE_ARG(mongo_text_value(&iter.value, positions->parse->build->arena)));
        positions->list[positions->count++] = (uint32_t)position;
    }
    return true;
}

static bool mask_read(struct positions *positions, struct slice name,
                      const struct document_value *value)
{
    int64_t mask;

    if (!document_to_int64(value, &mask) || mask < 0)
        return mongo_error_set(
            positions->parse->err, MONGO_FAILED_TO_PARSE, "Expected %s in: %.*s: %.*s",
            document_to_int64(value, &mask) ? "a non-negative number" : "an integer",
            SLICE_ARG(name), SLICE_ARG(mongo_text_value(value, positions->parse->build->arena)));
    for (uint32_t i = 0; i < LONG_BITS; i++)
        if ((uint64_t)mask >> i & 1)
            positions->list[positions->count++] = i;
    return true;
}

struct match_node *match_parse_bits(struct match_parse *parse, const struct match_path *path,
                                    struct slice name, enum match_bits how,
                                    const struct document_value *value)
{
    struct match_node *node = match_node_new(parse, MATCH_BITS, path);
    struct positions positions = {.parse = parse};
    size_t room = LONG_BITS;

    if (value->type == DOCUMENT_ARRAY)
        room = document_count(value->document) + 1;
    else if (value->type == DOCUMENT_BINARY)
        room = value->binary.bytes.len * BITS_PER_BYTE + 1;
    if (room > POSITIONS_MAX) {
        mongo_error_set(parse->err, MONGO_BAD_VALUE, "%.*s has more than %d bits", SLICE_ARG(name),
                        POSITIONS_MAX);
        return NULL;
    }
    positions.list = ARENA_ARRAY(parse->build->arena, uint32_t, room);
    if (value->type == DOCUMENT_BINARY) {
        bytes_read(&positions, value->binary.bytes);
    } else if (value->type == DOCUMENT_ARRAY) {
        if (!list_read(&positions, name, value->document))
            return NULL;
    } else if (document_is_number(value)) {
        if (!mask_read(&positions, name, value))
            return NULL;
    } else {
        mongo_error_set(parse->err, MONGO_BAD_VALUE,
                        "%.*s takes an Array, a number, or a BinData but received: %.*s",
                        SLICE_ARG(name), SLICE_ARG(mongo_text_value(value, parse->build->arena)));
        return NULL;
    }
    node->bits.how = how;
    node->bits.positions = positions.list;
    node->bits.count = positions.count;
    return node;
}
