/* GraphBinary to values. Every count is held against the bytes that are left before memory is
 * taken: no value takes less than two. */
#include "front/gremlin/format/binary_private.h"

#include "base/bytes.h"
#include "document/utf8.h"
#include "front/gremlin/value/big.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/special.h"
#include "front/gremlin/value/text.h"
#include "front/gremlin/value/traversal.h"

enum { ARGUMENTS_FEW = 8 };

static bool value_read(struct gremlin_binary *reader, struct gremlin_value *ret_value);
static bool bare_read(struct gremlin_binary *reader, uint8_t type, struct gremlin_value *ret_value);

bool gremlin_binary_refuse(struct gremlin_binary *reader, const char *what)
{
    return error_set(reader->err, ERROR_BAD_REQUEST, "%s is not as GraphBinary has it", what);
}

bool gremlin_binary_take(struct gremlin_binary *reader, size_t count, const uint8_t **ret_bytes)
{
    if ((size_t)(reader->end - reader->at) < count)
        return error_set(reader->err, ERROR_BAD_REQUEST,
                         "a message ends %zu bytes before a value does",
                         count - (size_t)(reader->end - reader->at));
    *ret_bytes = reader->at;
    reader->at += count;
    return true;
}

/* --- Parts ------------------------------------------------------------------------------------ */

static bool byte_read(struct gremlin_binary *reader, uint8_t *ret_byte)
{
    const uint8_t *bytes;

    if (!gremlin_binary_take(reader, 1, &bytes))
        return false;
    *ret_byte = *bytes;
    return true;
}

static bool int_read(struct gremlin_binary *reader, int32_t *ret_number)
{
    const uint8_t *bytes;

    if (!gremlin_binary_take(reader, 4, &bytes))
        return false;
    *ret_number = (int32_t)bytes_get_be32(bytes);
    return true;
}

static bool long_read(struct gremlin_binary *reader, int64_t *ret_number)
{
    const uint8_t *bytes;

    if (!gremlin_binary_take(reader, 8, &bytes))
        return false;
    *ret_number = (int64_t)bytes_get_be64(bytes);
    return true;
}

/* So many things of at least `least` bytes each. */
static bool count_read(struct gremlin_binary *reader, size_t least, size_t *ret_count)
{
    int32_t count;

    if (!int_read(reader, &count))
        return false;
    if (count < 0 || (size_t)count > (size_t)(reader->end - reader->at) / least)
        return error_set(reader->err, ERROR_BAD_REQUEST,
                         "a message has no room for the %d values it announces", count);
    *ret_count = (size_t)count;
    return true;
}

static bool text_read(struct gremlin_binary *reader, struct slice *ret_text)
{
    const uint8_t *bytes;
    size_t len = 0;

    if (!count_read(reader, 1, &len) || !gremlin_binary_take(reader, len, &bytes))
        return false;
    *ret_text = slice_of(bytes, len);
    if (len && utf8_valid_length(*ret_text) < len)
        return error_set(reader->err, ERROR_BAD_REQUEST, "a text is not UTF-8");
    return true;
}

static bool string_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    struct slice text;

    if (!text_read(reader, &text))
        return false;
    *ret_value = gremlin_string(reader->heap, text);
    return true;
}

/* --- Scalars ---------------------------------------------------------------------------------- */

static bool whole_read(struct gremlin_binary *reader, uint8_t type, struct gremlin_value *ret_value)
{
    const uint8_t *bytes;
    int64_t wide;
    int32_t narrow;

    switch (type) {
    case GREMLIN_BINARY_BYTE:
        if (!gremlin_binary_take(reader, 1, &bytes))
            return false;
        *ret_value = gremlin_integer(GREMLIN_BYTE, (int8_t)*bytes);
        return true;
    case GREMLIN_BINARY_SHORT:
        if (!gremlin_binary_take(reader, 2, &bytes))
            return false;
        *ret_value = gremlin_integer(GREMLIN_SHORT, (int16_t)bytes_get_be16(bytes));
        return true;
    case GREMLIN_BINARY_INT:
        if (!int_read(reader, &narrow))
            return false;
        *ret_value = gremlin_int(narrow);
        return true;
    default:
        if (!long_read(reader, &wide))
            return false;
        *ret_value = gremlin_integer(type == GREMLIN_BINARY_LONG   ? GREMLIN_LONG
                                     : type == GREMLIN_BINARY_DATE ? GREMLIN_DATE
                                                                   : GREMLIN_TIMESTAMP,
                                     wide);
        return true;
    }
}

static bool real_read(struct gremlin_binary *reader, uint8_t type, struct gremlin_value *ret_value)
{
    int64_t wide;
    int32_t narrow;
    double real;
    float single;

    if (type == GREMLIN_BINARY_FLOAT) {
        if (!int_read(reader, &narrow))
            return false;
        memcpy(&single, &narrow, sizeof single);
        *ret_value = gremlin_float(single);
        return true;
    }
    if (!long_read(reader, &wide))
        return false;
    memcpy(&real, &wide, sizeof real);
    *ret_value = gremlin_double(real);
    return true;
}

static bool char_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    size_t len = reader->at < reader->end ? utf8_length(reader->at, reader->end) : 0;
    uint32_t code;

    if (!len)
        return gremlin_binary_refuse(reader, "a character");
    code = len == 1 ? reader->at[0] : reader->at[0] & (0xFF >> (len + 1));
    for (size_t i = 1; i < len; i++)
        code = code << 6 | (reader->at[i] & 0x3F);
    reader->at += len;
    *ret_value = gremlin_integer(GREMLIN_CHAR, code);
    return true;
}

static bool bytes_read(struct gremlin_binary *reader, enum gremlin_type type,
                       struct gremlin_value *ret_value)
{
    const uint8_t *bytes;
    size_t len = 0;

    if (!count_read(reader, 1, &len) || !gremlin_binary_take(reader, len, &bytes))
        return false;
    *ret_value = gremlin_bytes_new(reader->heap, type, slice_of(bytes, len));
    return true;
}

static bool big_read(struct gremlin_binary *reader, bool decimal, struct gremlin_value *ret_value)
{
    const uint8_t *bytes;
    int32_t scale = 0;
    size_t len = 0;

    if ((decimal && !int_read(reader, &scale)) || !count_read(reader, 1, &len) ||
        !gremlin_binary_take(reader, len, &bytes))
        return false;
    if (decimal ? !gremlin_big_from_scaled(reader->heap, slice_of(bytes, len), scale, ret_value)
                : !gremlin_big_from_bytes(reader->heap, slice_of(bytes, len), ret_value))
        return error_set(reader->err, ERROR_BAD_REQUEST, "a big number has no or too many digits");
    return true;
}

static bool uuid_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    const uint8_t *bytes;

    if (!gremlin_binary_take(reader, 16, &bytes))
        return false;
    *ret_value = gremlin_bytes_new(reader->heap, GREMLIN_UUID, slice_of(bytes, 16));
    return true;
}

static bool class_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    struct slice text;

    if (!text_read(reader, &text))
        return false;
    *ret_value = gremlin_bytes_new(reader->heap, GREMLIN_CLASS, text);
    return true;
}

static bool date_time_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    int32_t year, offset;
    uint8_t month, day;
    int64_t nanoseconds;

    if (!int_read(reader, &year) || !byte_read(reader, &month) || !byte_read(reader, &day) ||
        !long_read(reader, &nanoseconds) || !int_read(reader, &offset))
        return false;
    if (year < -999999999 || year > 999999999 || month < 1 || month > 12 || day < 1 || day > 31 ||
        nanoseconds < 0 || nanoseconds >= 86400000000000 || offset < -64800 || offset > 64800)
        return gremlin_binary_refuse(reader, "an OffsetDateTime");
    *ret_value = gremlin_date_time_new(
        reader->heap, gremlin_days_of(year, month, day) * 86400 + nanoseconds / 1000000000 - offset,
        (int32_t)(nanoseconds % 1000000000), offset);
    return true;
}

static bool duration_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    int64_t seconds;
    int32_t nanoseconds;

    if (!long_read(reader, &seconds) || !int_read(reader, &nanoseconds))
        return false;
    if (nanoseconds < 0 || nanoseconds > 999999999)
        return gremlin_binary_refuse(reader, "a Duration");
    *ret_value = gremlin_duration_new(reader->heap, seconds, nanoseconds);
    return true;
}

/* --- Containers ------------------------------------------------------------------------------- */

static bool list_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value list = gremlin_list_new(reader->heap, 0);
    struct gremlin_value item;
    size_t count = 0;

    if (!count_read(reader, 2, &count))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!value_read(reader, &item))
            return false;
        gremlin_list_add_take(list, item);
    }
    *ret_value = gremlin_value_take(&list);
    return true;
}

/* Sets, bulk sets, maps: a key, and by type nothing, a bare long or a value. */
static bool table_read(struct gremlin_binary *reader, enum gremlin_type type,
                       struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref)
    struct gremlin_value table = gremlin_table_new(reader->heap, type, 0);
    size_t count = 0;

    if (!count_read(reader, type == GREMLIN_SET ? 2 : 4, &count))
        return false;
    for (size_t i = 0; i < count; i++) {
        CLEANUP(gremlin_value_unref) struct gremlin_value key = GREMLIN_NOTHING;
        struct gremlin_value value;
        int64_t bulk;

        if (!value_read(reader, &key))
            return false;
        if (type == GREMLIN_SET) {
            gremlin_set_add(table, key);
        } else if (type == GREMLIN_BULK_SET) {
            if (!long_read(reader, &bulk))
                return false;
            if (bulk <= 0)
                return gremlin_binary_refuse(reader, "a BulkSet");
            gremlin_bulk_set_add(table, key, bulk);
        } else {
            if (!value_read(reader, &value))
                return false;
            gremlin_map_put_take(table, key, value);
        }
    }
    *ret_value = gremlin_value_take(&table);
    return true;
}

static bool tree_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref)
    struct gremlin_value tree = gremlin_table_new(reader->heap, GREMLIN_TREE, 0);
    size_t count = 0;

    if (!count_read(reader, 6, &count))
        return false;
    if (reader->depth++ == GREMLIN_FORMAT_DEPTH)
        return error_set(reader->err, ERROR_TOO_DEEP, "values are nested deeper than %d",
                         GREMLIN_FORMAT_DEPTH);
    for (size_t i = 0; i < count; i++) {
        CLEANUP(gremlin_value_unref) struct gremlin_value key = GREMLIN_NOTHING;
        struct gremlin_value branch;

        if (!value_read(reader, &key) || !tree_read(reader, &branch))
            return false;
        gremlin_map_put_take(tree, key, branch);
    }
    reader->depth--;
    *ret_value = gremlin_value_take(&tree);
    return true;
}

/* --- Elements --------------------------------------------------------------------------------- */

/* Read and forgotten: owners of properties. */
static bool value_skip(struct gremlin_binary *reader)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value value = GREMLIN_NOTHING;

    return value_read(reader, &value);
}

/* A list of properties (objects), to slots; null: none. */
static bool slots_of_list(struct gremlin_binary *reader, struct gremlin_value list,
                          enum gremlin_type type, struct gremlin_properties **ret_properties)
{
    CLEANUP(gremlin_properties_unref) struct gremlin_properties *properties = NULL;

    *ret_properties = NULL;
    if (gremlin_is_null(list))
        return true;
    if (list.type != GREMLIN_LIST)
        return gremlin_binary_refuse(reader, "the properties of an element");
    properties = gremlin_properties_new(reader->heap, gremlin_list(list)->count);
    for (size_t i = 0; i < gremlin_list(list)->count; i++) {
        struct gremlin_value item = gremlin_list(list)->items[i];
        struct gremlin_slot slot = {};

        if (item.type != type)
            return gremlin_binary_refuse(reader, "the properties of an element");
        if (type == GREMLIN_PROPERTY) {
            slot.key = gremlin_value_ref(gremlin_property(item)->key);
            slot.value = gremlin_value_ref(gremlin_property(item)->value);
        } else {
            slot.key = gremlin_value_ref(gremlin_element(item)->label);
            slot.value = gremlin_value_ref(gremlin_vertex_property(item)->value);
            slot.id = gremlin_value_ref(gremlin_element(item)->id);
            slot.meta = gremlin_object_ref(gremlin_element(item)->properties);
        }
        gremlin_properties_add_take(properties, slot);
    }
    *ret_properties = TAKE(properties);
    return true;
}

static bool properties_read(struct gremlin_binary *reader, struct gremlin_value element,
                            enum gremlin_type type)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value list = GREMLIN_NOTHING;
    struct gremlin_properties *properties;

    if (!value_read(reader, &list) || !slots_of_list(reader, list, type, &properties))
        return false;
    if (properties)
        gremlin_element_set_take(element, properties);
    return true;
}

static bool vertex_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref)
    struct gremlin_value vertex =
        gremlin_vertex_new(reader->heap, GREMLIN_NOTHING, GREMLIN_NOTHING, GREMLIN_NOTHING);

    if (!value_read(reader, &gremlin_element(vertex)->id) ||
        !string_read(reader, &gremlin_element(vertex)->label) ||
        !properties_read(reader, vertex, GREMLIN_VERTEX_PROPERTY))
        return false;
    *ret_value = gremlin_value_take(&vertex);
    return true;
}

static bool edge_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    const struct gremlin_end none = {};
    CLEANUP(gremlin_value_unref)
    struct gremlin_value value = gremlin_edge_new(reader->heap, GREMLIN_NOTHING, GREMLIN_NOTHING,
                                                  GREMLIN_NOTHING, &none, &none);
    struct gremlin_edge *edge = gremlin_edge(value);

    if (!value_read(reader, &edge->element.id) || !string_read(reader, &edge->element.label) ||
        !value_read(reader, &edge->in.id) || !string_read(reader, &edge->in.label) ||
        !value_read(reader, &edge->out.id) || !string_read(reader, &edge->out.label) ||
        !value_skip(reader) || !properties_read(reader, value, GREMLIN_PROPERTY))
        return false;
    *ret_value = gremlin_value_take(&value);
    return true;
}

static bool vertex_property_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    const struct gremlin_slot none = {};
    CLEANUP(gremlin_value_unref)
    struct gremlin_value value = gremlin_vertex_property_new(reader->heap, &none, GREMLIN_NOTHING);
    struct gremlin_vertex_property *property = gremlin_vertex_property(value);

    if (!value_read(reader, &property->element.id) ||
        !string_read(reader, &property->element.label) || !value_read(reader, &property->value) ||
        !value_skip(reader) || !properties_read(reader, value, GREMLIN_PROPERTY))
        return false;
    *ret_value = gremlin_value_take(&value);
    return true;
}

static bool property_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref)
    struct gremlin_value value =
        gremlin_property_new(reader->heap, GREMLIN_NOTHING, GREMLIN_NOTHING, GREMLIN_NOTHING);

    if (!string_read(reader, &gremlin_property(value)->key) ||
        !value_read(reader, &gremlin_property(value)->value) || !value_skip(reader))
        return false;
    *ret_value = gremlin_value_take(&value);
    return true;
}

static bool path_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value labels = GREMLIN_NOTHING;
    CLEANUP(gremlin_value_unref) struct gremlin_value objects = GREMLIN_NOTHING;
    CLEANUP(gremlin_value_unref)
    struct gremlin_value path = gremlin_path_empty(reader->heap);

    if (!value_read(reader, &labels) || !value_read(reader, &objects))
        return false;
    if (labels.type != GREMLIN_LIST || objects.type != GREMLIN_LIST ||
        gremlin_list(labels)->count != gremlin_list(objects)->count)
        return gremlin_binary_refuse(reader, "a Path");
    for (size_t i = 0; i < gremlin_list(objects)->count; i++) {
        struct gremlin_value set = gremlin_list(labels)->items[i];

        if (set.type != GREMLIN_SET)
            return gremlin_binary_refuse(reader, "a Path");
        for (size_t j = 0; j < gremlin_table(set)->count; j++)
            if (!gremlin_is_string(gremlin_table(set)->rows[j].key))
                return gremlin_binary_refuse(reader, "a Path");
        if (!gremlin_table(set)->count)
            set = GREMLIN_NOTHING;
        gremlin_value_replace_take(
            &path, gremlin_value_of_take(gremlin_path_extend(
                       reader->heap, gremlin_path(path), gremlin_list(objects)->items[i], set)));
    }
    *ret_value = gremlin_value_take(&path);
    return true;
}

/* The vertices and edges of a graph have forms of their own (binary_write.c). */
static bool graph_properties(struct gremlin_binary *reader, enum gremlin_type type,
                             struct gremlin_properties **ret_properties)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value list = GREMLIN_NOTHING;

    return list_read(reader, &list) && slots_of_list(reader, list, type, ret_properties);
}

static bool graph_slot(struct gremlin_binary *reader, struct gremlin_properties *into)
{
    struct gremlin_slot *slot;

    gremlin_properties_add_take(into, (struct gremlin_slot){});
    slot = &into->slots[into->count - 1]; /* let go of with the others, whatever fails */
    return value_read(reader, &slot->id) && string_read(reader, &slot->key) &&
           value_read(reader, &slot->value) && value_skip(reader) &&
           graph_properties(reader, GREMLIN_PROPERTY, &slot->meta);
}

static bool graph_vertex(struct gremlin_binary *reader, struct gremlin_value set)
{
    CLEANUP(gremlin_value_unref)
    struct gremlin_value vertex =
        gremlin_vertex_new(reader->heap, GREMLIN_NOTHING, GREMLIN_NOTHING, GREMLIN_NOTHING);
    CLEANUP(gremlin_properties_unref)
    struct gremlin_properties *properties = gremlin_properties_new(reader->heap, 0);
    size_t count = 0;

    if (!value_read(reader, &gremlin_element(vertex)->id) ||
        !string_read(reader, &gremlin_element(vertex)->label) || !count_read(reader, 14, &count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!graph_slot(reader, properties))
            return false;
    gremlin_element_set_take(vertex, TAKE(properties));
    gremlin_set_add(set, vertex);
    return true;
}

/* The label of an edge's end, which is not written: the vertex is there, as a rule. */
static void end_complete(struct gremlin_binary *reader, struct gremlin_value vertices,
                         struct gremlin_end *end)
{
    CLEANUP(gremlin_value_unref)
    struct gremlin_value like =
        gremlin_vertex_new(reader->heap, end->id, GREMLIN_NOTHING, GREMLIN_NOTHING);
    const struct gremlin_row *row = gremlin_table_find(vertices, like);

    end->label = row ? gremlin_value_ref(gremlin_element(row->key)->label)
                     : gremlin_string(reader->heap, SLICE("vertex"));
}

static bool graph_edge(struct gremlin_binary *reader, const struct gremlin_subgraph *graph)
{
    const struct gremlin_end none = {};
    CLEANUP(gremlin_value_unref)
    struct gremlin_value value = gremlin_edge_new(reader->heap, GREMLIN_NOTHING, GREMLIN_NOTHING,
                                                  GREMLIN_NOTHING, &none, &none);
    struct gremlin_edge *edge = gremlin_edge(value);
    struct gremlin_properties *properties;

    if (!value_read(reader, &edge->element.id) || !string_read(reader, &edge->element.label) ||
        !value_read(reader, &edge->in.id) || !value_skip(reader) ||
        !value_read(reader, &edge->out.id) || !value_skip(reader) || !value_skip(reader) ||
        !graph_properties(reader, GREMLIN_PROPERTY, &properties))
        return false;
    gremlin_element_set_take(value, properties);
    end_complete(reader, graph->vertices, &edge->in);
    end_complete(reader, graph->vertices, &edge->out);
    gremlin_set_add(graph->edges, value);
    return true;
}

static bool graph_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref)
    struct gremlin_value graph = gremlin_subgraph_new(reader->heap);
    size_t count = 0;

    if (!count_read(reader, 10, &count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!graph_vertex(reader, gremlin_subgraph(graph)->vertices))
            return false;
    if (!count_read(reader, 20, &count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!graph_edge(reader, gremlin_subgraph(graph)))
            return false;
    *ret_value = gremlin_value_take(&graph);
    return true;
}

/* --- Arguments -------------------------------------------------------------------------------- */

static bool enum_read(struct gremlin_binary *reader, enum gremlin_enum_family family,
                      struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value text = GREMLIN_NOTHING;

    if (!value_read(reader, &text))
        return false;
    if (!gremlin_is_string(text) || !gremlin_word_find(family, gremlin_bytes(text), ret_value))
        return error_set(reader->err, ERROR_BAD_REQUEST, "no such word of \"%.*s\"",
                         SLICE_ARG(gremlin_family_name(family)));
    return true;
}

static bool predicate_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value values = GREMLIN_NOTHING;
    struct slice name;

    if (!text_read(reader, &name) || !list_read(reader, &values))
        return false;
    return gremlin_format_predicate(reader->heap, name, gremlin_list(values)->items,
                                    gremlin_list(values)->count, ret_value, reader->err);
}

static bool instructions_read(struct gremlin_binary *reader, struct gremlin_traversal *traversal,
                              struct gremlin_instructions *into)
{
    size_t count = 0, arguments = 0;

    if (!count_read(reader, 8, &count))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct gremlin_instruction *instruction;
        struct gremlin_value argument;
        struct slice name;

        if (!text_read(reader, &name) || !count_read(reader, 2, &arguments))
            return false;
        instruction = gremlin_traversal_add(traversal, into, name);
        for (size_t j = 0; j < arguments; j++) {
            if (!value_read(reader, &argument))
                return false;
            gremlin_instruction_add_take(traversal, instruction, argument);
        }
    }
    return true;
}

static bool bytecode_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref)
    struct gremlin_value value = gremlin_traversal_new(reader->heap, false);
    struct gremlin_traversal *traversal = gremlin_traversal(value);

    if (!instructions_read(reader, traversal, &traversal->steps) ||
        !instructions_read(reader, traversal, &traversal->sources))
        return false;
    *ret_value = gremlin_bytecode_finish_take(reader->heap, gremlin_value_take(&value));
    return true;
}

static bool lambda_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    struct slice language, script;
    int32_t arguments = 0;

    if (!text_read(reader, &language) || !text_read(reader, &script) ||
        !int_read(reader, &arguments))
        return false;
    *ret_value = gremlin_lambda_new(reader->heap, script, language, arguments);
    return true;
}

static bool binding_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    struct slice key;

    return text_read(reader, &key) && value_read(reader, ret_value);
}

static bool strategy_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value configuration = GREMLIN_NOTHING;
    struct slice name;

    if (!text_read(reader, &name) || !table_read(reader, GREMLIN_MAP, &configuration))
        return false;
    if (!gremlin_strategy_is_name(name))
        return gremlin_binary_refuse(reader, "the name of a strategy");
    *ret_value = gremlin_strategy_new(reader->heap, name, configuration);
    return true;
}

static bool traverser_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value value = GREMLIN_NOTHING;
    int64_t bulk;

    if (!long_read(reader, &bulk) || !value_read(reader, &value))
        return false;
    *ret_value = gremlin_traverser_new(reader->heap, value, bulk);
    return true;
}

/* --- By type ---------------------------------------------------------------------------------- */

static bool other_read(struct gremlin_binary *reader, uint8_t type, struct gremlin_value *ret_value)
{
    for (size_t i = 0; i < GREMLIN_ENUM_COUNT; i++)
        if (gremlin_family_code((enum gremlin_enum_family)i) == type)
            return enum_read(reader, (enum gremlin_enum_family)i, ret_value);
    if (gremlin_binary_is_temporal(type))
        return gremlin_binary_read_temporal(reader, type, ret_value);
    return error_set(reader->err, ERROR_NOT_SUPPORTED,
                     "the type 0x%02x of GraphBinary is not supported", type);
}

static bool bare_read(struct gremlin_binary *reader, uint8_t type, struct gremlin_value *ret_value)
{
    uint8_t byte;

    switch (type) {
    case GREMLIN_BINARY_BYTE:
    case GREMLIN_BINARY_SHORT:
    case GREMLIN_BINARY_INT:
    case GREMLIN_BINARY_LONG:
    case GREMLIN_BINARY_DATE:
    case GREMLIN_BINARY_TIMESTAMP:
        return whole_read(reader, type, ret_value);
    case GREMLIN_BINARY_FLOAT:
    case GREMLIN_BINARY_DOUBLE:
        return real_read(reader, type, ret_value);
    case GREMLIN_BINARY_STRING:
        return string_read(reader, ret_value);
    case GREMLIN_BINARY_CLASS:
        return class_read(reader, ret_value);
    case GREMLIN_BINARY_BOOLEAN:
        if (!byte_read(reader, &byte))
            return false;
        *ret_value = gremlin_boolean(byte);
        return byte <= 1 || gremlin_binary_refuse(reader, "a Boolean");
    case GREMLIN_BINARY_CHAR:
        return char_read(reader, ret_value);
    case GREMLIN_BINARY_UUID:
        return uuid_read(reader, ret_value);
    case GREMLIN_BINARY_BYTE_BUFFER:
        return bytes_read(reader, GREMLIN_BINARY, ret_value);
    case GREMLIN_BINARY_BIG_INTEGER:
    case GREMLIN_BINARY_BIG_DECIMAL:
        return big_read(reader, type == GREMLIN_BINARY_BIG_DECIMAL, ret_value);
    case GREMLIN_BINARY_OFFSET_DATE_TIME:
        return date_time_read(reader, ret_value);
    case GREMLIN_BINARY_DURATION:
        return duration_read(reader, ret_value);
    case GREMLIN_BINARY_LIST:
        return list_read(reader, ret_value);
    case GREMLIN_BINARY_SET:
        return table_read(reader, GREMLIN_SET, ret_value);
    case GREMLIN_BINARY_MAP:
        return table_read(reader, GREMLIN_MAP, ret_value);
    case GREMLIN_BINARY_BULK_SET:
        return table_read(reader, GREMLIN_BULK_SET, ret_value);
    case GREMLIN_BINARY_TREE:
        return tree_read(reader, ret_value);
    case GREMLIN_BINARY_VERTEX:
        return vertex_read(reader, ret_value);
    case GREMLIN_BINARY_EDGE:
        return edge_read(reader, ret_value);
    case GREMLIN_BINARY_VERTEX_PROPERTY:
        return vertex_property_read(reader, ret_value);
    case GREMLIN_BINARY_PROPERTY:
        return property_read(reader, ret_value);
    case GREMLIN_BINARY_PATH:
        return path_read(reader, ret_value);
    case GREMLIN_BINARY_GRAPH:
        return graph_read(reader, ret_value);
    case GREMLIN_BINARY_P:
    case GREMLIN_BINARY_TEXT_P:
        return predicate_read(reader, ret_value);
    case GREMLIN_BINARY_BYTECODE:
        return bytecode_read(reader, ret_value);
    case GREMLIN_BINARY_LAMBDA:
        return lambda_read(reader, ret_value);
    case GREMLIN_BINARY_BINDING:
        return binding_read(reader, ret_value);
    case GREMLIN_BINARY_STRATEGY:
        return strategy_read(reader, ret_value);
    case GREMLIN_BINARY_TRAVERSER:
        return traverser_read(reader, ret_value);
    default:
        return other_read(reader, type, ret_value);
    }
}

/* Fully qualified. ret_value is written on success alone, so that parts of objects can be read into
 * their places. */
static bool value_read(struct gremlin_binary *reader, struct gremlin_value *ret_value)
{
    struct gremlin_value value = GREMLIN_NOTHING;
    uint8_t type, flag;
    bool fine;

    if (!byte_read(reader, &type) || !byte_read(reader, &flag))
        return false;
    if (flag > 1)
        return gremlin_binary_refuse(reader, "the flag of a value");
    if (flag == 1) {
        *ret_value = GREMLIN_NOTHING;
        return true;
    }
    if (reader->depth == GREMLIN_FORMAT_DEPTH)
        return error_set(reader->err, ERROR_TOO_DEEP, "values are nested deeper than %d",
                         GREMLIN_FORMAT_DEPTH);
    if (gremlin_heap_failed(reader->heap))
        return gremlin_heap_error(reader->heap, reader->err);
    reader->depth++;
    fine = bare_read(reader, type, &value);
    reader->depth--;
    if (fine)
        *ret_value = value;
    return fine;
}

bool gremlin_binary_read_value(struct slice bytes, struct gremlin_heap *heap,
                               struct gremlin_value *ret_value, struct error *err)
{
    struct gremlin_binary reader = {
        .at = bytes.data, .end = bytes.data + bytes.len, .heap = heap, .err = err};
    CLEANUP(gremlin_value_unref) struct gremlin_value value = GREMLIN_NOTHING;

    if (!value_read(&reader, &value))
        return false;
    if (reader.at != reader.end)
        return error_set(err, ERROR_BAD_REQUEST, "there is something behind the value");
    *ret_value = gremlin_value_take(&value);
    return true;
}

/* --- Requests --------------------------------------------------------------------------------- */

bool gremlin_binary_read(struct slice message, struct gremlin_heap *heap,
                         struct gremlin_request *ret_request, struct error *err)
{
    struct gremlin_binary reader = {
        .at = message.data, .end = message.data + message.len, .heap = heap, .err = err};
    char id[GREMLIN_UUID_TEXT];
    const uint8_t *bytes;
    uint8_t version;

    if (!byte_read(&reader, &version) || !gremlin_binary_take(&reader, 16, &bytes))
        return false;
    gremlin_uuid_format(bytes, id);
    ret_request->id = gremlin_string(heap, slice_of(id, sizeof id));
    if (version != GREMLIN_BINARY_VERSION)
        return error_set(err, ERROR_NOT_SUPPORTED, "version 0x%02x of GraphBinary is not supported",
                         version);
    if (!string_read(&reader, &ret_request->op) || !string_read(&reader, &ret_request->processor) ||
        !table_read(&reader, GREMLIN_MAP, &ret_request->args))
        return false;
    if (reader.at != reader.end)
        return error_set(err, ERROR_BAD_REQUEST, "there is something behind the request");
    return true;
}
