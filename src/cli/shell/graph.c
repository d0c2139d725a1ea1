/* Values of GraphSON have types that JSON lacks; what JSON cannot tell apart gets the tag that the
 * stored form has for it. Vertices that were seen are kept by id, with label and partition key. */
#include "cli/shell/graph.h"

#include "base/arena.h"
#include "base/random.h"
#include "document/json.h"
#include "document/order.h"

#include <math.h>
#include <xxhash.h>

enum { SLOTS_FIRST = 1024, NAME_SHOWN_MAX = 64 };

struct known {
    struct slice id, label;
    struct document_value key; /* undefined: the container has none */
    struct known *next;
};

struct shell_graph {
    struct arena *arena;
    struct slice key, key_from;
    struct known **slots;
    size_t slot_count, count;
};

struct shell_graph *shell_graph_new(struct slice key, const char *key_from)
{
    struct shell_graph *graph = MEMORY_NEW(struct shell_graph);

    graph->arena = arena_new();
    graph->key = arena_copy(graph->arena, key);
    graph->key_from = key_from ? slice_of_text(key_from) : SLICE_NONE;
    graph->slot_count = SLOTS_FIRST;
    graph->slots = memory_alloc_zero(graph->slot_count * sizeof *graph->slots);
    return graph;
}

void shell_graph_free(struct shell_graph *graph)
{
    if (!graph)
        return;
    memory_free(graph->slots);
    arena_free(graph->arena);
    memory_free(graph);
}

/* --- Vertices that are known
 * ----------------------------------------------------------------------- */

static uint64_t hash_of(struct slice id)
{
    return XXH3_64bits(id.data ? id.data : (const uint8_t *)"", id.len);
}

static struct known *known_find(const struct shell_graph *graph, struct slice id)
{
    struct known *known = graph->slots[hash_of(id) & (graph->slot_count - 1)];

    while (known && !slice_equal(known->id, id))
        known = known->next;
    return known;
}

static void known_grow(struct shell_graph *graph)
{
    size_t count = 2 * graph->slot_count;
    struct known **slots = memory_alloc_zero(memory_array_size(count, sizeof *slots));

    for (size_t i = 0; i < graph->slot_count; i++) {
        for (struct known *known = graph->slots[i], *next; known; known = next) {
            struct known **slot = &slots[hash_of(known->id) & (count - 1)];

            next = known->next;
            known->next = *slot;
            *slot = known;
        }
    }
    memory_free(graph->slots);
    graph->slots = slots;
    graph->slot_count = count;
}

static void known_add(struct shell_graph *graph, struct slice id, struct slice label,
                      struct document_value key)
{
    struct known *known = ARENA_NEW(graph->arena, struct known), **slot;

    if (graph->count++ >= graph->slot_count)
        known_grow(graph);
    known->id = arena_copy(graph->arena, id);
    known->label = arena_copy(graph->arena, label);
    known->key = key;
    if (key.type == DOCUMENT_STRING)
        known->key.text = arena_copy(graph->arena, key.text);
    slot = &graph->slots[hash_of(id) & (graph->slot_count - 1)];
    known->next = *slot;
    *slot = known;
}

/* --- Values
 * ------------------------------------------------------------------------------------------ */

struct typed {
    struct document_value value;
    struct slice tag; /* len 0: none */
};

static bool refuse(struct slice type, struct error *err)
{
    return error_set(err, ERROR_BAD_REQUEST, "a value of type \"%.*s\" is not taken",
                     (int)MIN(type.len, (size_t)NAME_SHOWN_MAX), (const char *)type.data);
}

static bool number_typed(struct slice type, const struct document_value *value,
                         struct typed *ret_typed, struct error *err)
{
    double real;
    int64_t whole;

    ret_typed->value = *value;
    if (slice_equal(type, SLICE("g:Int32")))
        return true;
    if (slice_equal(type, SLICE("g:Int64")))
        ret_typed->tag = SLICE("long");
    else if (slice_equal(type, SLICE("gx:Int16")))
        ret_typed->tag = SLICE("short");
    else if (slice_equal(type, SLICE("gx:Byte")))
        ret_typed->tag = SLICE("byte");
    else if (slice_equal(type, SLICE("g:Date")))
        ret_typed->tag = SLICE("date");
    else if (slice_equal(type, SLICE("g:Timestamp")))
        ret_typed->tag = SLICE("timestamp");
    else if (slice_equal(type, SLICE("g:Float")))
        ret_typed->tag = SLICE("float");
    else if (slice_equal(type, SLICE("g:Double")) && document_to_double(value, &real))
        ret_typed->tag = document_to_int64(value, &whole) ? SLICE("double") : SLICE_NONE;
    else
        return refuse(type, err);
    return true;
}

static bool text_typed(struct slice type, const struct document_value *value,
                       struct typed *ret_typed, struct error *err)
{
    ret_typed->value = *value;
    if (slice_equal(type, SLICE("g:UUID")))
        ret_typed->tag = SLICE("uuid");
    else if (slice_equal(type, SLICE("gx:Char")))
        ret_typed->tag = SLICE("char");
    else if (slice_equal(type, SLICE("gx:Duration")))
        ret_typed->tag = SLICE("duration");
    else if (slice_equal(type, SLICE("g:Class")))
        ret_typed->tag = SLICE("class");
    else
        return refuse(type, err); /* NaN and infinities of g:Double, too: JSON has none */
    return true;
}

/* {"@type", "@value"}, or plain JSON. */
static bool value_read(const struct document_value *value, struct typed *ret_typed,
                       struct error *err)
{
    struct document_value type, inner;

    *ret_typed = (struct typed){.value = *value};
    if (value->type != DOCUMENT_OBJECT || !document_find(value->document, SLICE("@type"), &type) ||
        !document_find(value->document, SLICE("@value"), &inner))
        return true;
    if (type.type != DOCUMENT_STRING)
        return error_set(err, ERROR_BAD_REQUEST, "\"@type\" has to be a text");
    if (document_is_number(&inner))
        return number_typed(type.text, &inner, ret_typed, err);
    if (inner.type == DOCUMENT_STRING)
        return text_typed(type.text, &inner, ret_typed, err);
    return refuse(type.text, err);
}

static bool id_read(struct slice record, const char *name, struct arena *arena,
                    struct slice *ret_id, struct error *err)
{
    struct document_value value;
    struct typed typed;
    int64_t number;

    if (!document_find(record, slice_of_text(name), &value))
        return error_set(err, ERROR_BAD_REQUEST, "it has no \"%s\"", name);
    if (!value_read(&value, &typed, err))
        return false;
    if (typed.value.type == DOCUMENT_STRING) {
        *ret_id = typed.value.text;
        return true;
    }
    if (!document_to_int64(&typed.value, &number))
        return error_set(err, ERROR_BAD_REQUEST, "\"%s\" has to be a text or a whole number", name);
    *ret_id = arena_printf(arena, "%lld", (long long)number);
    return true;
}

static struct slice label_read(struct slice record, struct slice otherwise)
{
    struct document_value value;

    return document_find(record, SLICE("label"), &value) && value.type == DOCUMENT_STRING
               ? value.text
               : otherwise;
}

/* --- Records
 * ------------------------------------------------------------------------------------------ */

static bool is_edge(struct slice record)
{
    struct document_value from, to;

    return document_find(record, SLICE("from"), &from) && document_find(record, SLICE("to"), &to);
}

static bool is_graphson(struct slice record)
{
    struct document_value value;

    return (document_find(record, SLICE("properties"), &value) ||
            document_find(record, SLICE("outE"), &value) ||
            document_find(record, SLICE("inE"), &value)) &&
           value.type == DOCUMENT_OBJECT;
}

/* The first value of a vertex's property. */
static bool property_find(struct slice record, struct slice name, struct document_value *ret_value)
{
    struct document_value properties, list, entry;

    if (!is_graphson(record))
        return document_find(record, name, ret_value);
    return document_find(record, SLICE("properties"), &properties) &&
           properties.type == DOCUMENT_OBJECT && document_find(properties.document, name, &list) &&
           list.type == DOCUMENT_ARRAY && document_find_index(list.document, 0, &entry) &&
           entry.type == DOCUMENT_OBJECT &&
           document_find(entry.document, SLICE("value"), ret_value);
}

static bool key_read(const struct shell_graph *graph, struct slice record, struct slice id,
                     struct document_value *ret_key, struct error *err)
{
    struct document_value value;
    struct typed typed;

    *ret_key = document_undefined();
    if (!graph->key.len)
        return true;
    if (!property_find(record, graph->key, &value)) {
        if (slice_equal(graph->key_from, SLICE("id")))
            value = document_string(id);
        else if (slice_equal(graph->key_from, SLICE("label")))
            value = document_string(label_read(record, SLICE("vertex")));
        else if (!graph->key_from.len || !property_find(record, graph->key_from, &value))
            return error_set(err, ERROR_BAD_REQUEST,
                             "the vertex \"%.*s\" has no value for the partition key \"%.*s\": "
                             "--key-from says what else it is to be",
                             (int)MIN(id.len, (size_t)NAME_SHOWN_MAX), (const char *)id.data,
                             SLICE_ARG(graph->key));
    }
    if (!value_read(&value, &typed, err))
        return false;
    *ret_key = typed.value;
    return ret_key->type == DOCUMENT_STRING || ret_key->type == DOCUMENT_BOOL ||
           document_is_number(ret_key) ||
           error_set(err, ERROR_BAD_REQUEST,
                     "the partition key \"%.*s\" has to be a text, a number or a boolean",
                     SLICE_ARG(graph->key));
}

bool shell_graph_learn(struct shell_graph *graph, struct slice record, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value key;
    struct slice id;

    if (is_edge(record))
        return true;
    if (!id_read(record, "id", arena, &id, err) || !key_read(graph, record, id, &key, err))
        return false;
    if (known_find(graph, id))
        return error_set(err, ERROR_BAD_REQUEST, "there are two vertices with the id \"%.*s\"",
                         (int)MIN(id.len, (size_t)NAME_SHOWN_MAX), (const char *)id.data);
    known_add(graph, id, label_read(record, SLICE("vertex")), key);
    return true;
}

/* --- Items
 * --------------------------------------------------------------------------------------------- */

struct making {
    struct shell_graph *graph;
    struct arena *arena;
    bool (*take)(void *self, struct slice json, struct error *err);
    void *self;
};

static bool give(struct making *m, struct slice document, struct error *err)
{
    CLEANUP(buf_done) struct buf json;

    buf_init(&json, BUF_DEFAULT_MAX);
    document_json_write(document, &json);
    return m->take(m->self, buf_slice(&json), err);
}

static bool is_own(struct slice name)
{
    return slice_equal(name, SLICE("id")) || slice_equal(name, SLICE("label")) ||
           slice_equal(name, SLICE("from")) || slice_equal(name, SLICE("to"));
}

static bool entry_append(struct buf *out, struct slice at, const struct document_value *value,
                         const struct document_value *meta, struct error *err)
{
    char id[RANDOM_UUID_SIZE];
    struct typed typed;
    size_t entry = document_append_object_begin(out, at), inner;

    if (!value_read(value, &typed, err))
        return false;
    random_uuid(id);
    document_append_string(out, SLICE("id"), slice_of(id, RANDOM_UUID_SIZE - 1));
    document_append(out, SLICE("_value"), &typed.value);
    if (typed.tag.len)
        document_append_string(out, SLICE("_type"), typed.tag);
    for (int tags = 0; meta && tags < 2; tags++) {
        struct document_iter iter;

        inner = document_append_object_begin(out, tags ? SLICE("_metaTypes") : SLICE("_meta"));
        document_iter_init(&iter, meta->document);
        while (document_iter_next(&iter)) {
            if (!value_read(&iter.value, &typed, err))
                return false;
            if (!tags)
                document_append(out, iter.key, &typed.value);
            else if (typed.tag.len)
                document_append_string(out, iter.key, typed.tag);
        }
        document_end(out, inner);
    }
    document_end(out, entry);
    return true;
}

/* {name: [{id, value, properties}]} */
static bool properties_append(struct making *m, struct slice properties, struct buf *out,
                              struct error *err)
{
    struct document_iter iter, values;

    document_iter_init(&iter, properties);
    while (document_iter_next(&iter)) {
        uint32_t at = 0;
        size_t list;

        if (slice_equal(iter.key, m->graph->key) || iter.value.type != DOCUMENT_ARRAY)
            continue;
        list = document_append_array_begin(out, iter.key);
        document_iter_init(&values, iter.value.document);
        while (document_iter_next(&values)) {
            struct document_value value, meta;
            char text[DOCUMENT_INDEX_SIZE];
            bool has_meta;

            if (values.value.type != DOCUMENT_OBJECT ||
                !document_find(values.value.document, SLICE("value"), &value))
                return error_set(err, ERROR_BAD_REQUEST, "a property has no \"value\"");
            has_meta = document_find(values.value.document, SLICE("properties"), &meta) &&
                       meta.type == DOCUMENT_OBJECT;
            if (!entry_append(out, document_index_key(at++, text), &value, has_meta ? &meta : NULL,
                              err))
                return false;
        }
        document_end(out, list);
    }
    return true;
}

/* The columns of a row. */
static bool columns_append(struct making *m, struct slice record, struct buf *out,
                           struct error *err)
{
    struct document_iter iter;

    document_iter_init(&iter, record);
    while (document_iter_next(&iter)) {
        size_t list;

        if (is_own(iter.key) || slice_equal(iter.key, m->graph->key))
            continue;
        list = document_append_array_begin(out, iter.key);
        if (!entry_append(out, SLICE("0"), &iter.value, NULL, err))
            return false;
        document_end(out, list);
    }
    return true;
}

static bool vertex_make(struct making *m, const struct known *known, struct slice record,
                        struct error *err)
{
    CLEANUP(buf_done) struct buf out;
    struct document_value properties;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_string(&out, SLICE("id"), known->id);
    document_append_string(&out, SLICE("label"), known->label);
    if (m->graph->key.len)
        document_append(&out, m->graph->key, &known->key);
    if (!is_graphson(record)) {
        if (!columns_append(m, record, &out, err))
            return false;
    } else if (document_find(record, SLICE("properties"), &properties) &&
               properties.type == DOCUMENT_OBJECT &&
               !properties_append(m, properties.document, &out, err)) {
        return false;
    }
    document_end(&out, begin);
    return give(m, buf_slice(&out), err);
}

/* An edge with its properties in an object, or among the columns of a row. */
struct edge {
    struct slice id, label;
    const struct known *from, *to;
    struct slice properties; /* data NULL: none */
    bool columns;
};

static bool edge_properties(struct making *m, const struct edge *edge, bool tags, struct buf *out,
                            struct error *err)
{
    struct document_iter iter;

    if (!edge->properties.data)
        return true;
    document_iter_init(&iter, edge->properties);
    while (document_iter_next(&iter)) {
        struct typed typed;

        if ((edge->columns && is_own(iter.key)) || slice_equal(iter.key, m->graph->key))
            continue;
        if (!value_read(&iter.value, &typed, err))
            return false;
        if (!tags)
            document_append(out, iter.key, &typed.value);
        else if (typed.tag.len)
            document_append_string(out, iter.key, typed.tag);
    }
    return true;
}

static bool keys_are_same(const struct known *a, const struct known *b)
{
    return document_compare(DOCUMENT_ORDER_SQL, &a->key, &b->key) == 0;
}

static bool edge_make(struct making *m, const struct edge *edge, struct error *err)
{
    CLEANUP(buf_done) struct buf out;
    const struct known *same = known_find(m->graph, edge->id);
    struct slice id = edge->id;
    size_t begin, types;

    if (same && keys_are_same(same, edge->from))
        id = arena_printf(m->arena, "edge-%.*s", SLICE_ARG(edge->id));
    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_string(&out, SLICE("id"), id);
    document_append_string(&out, SLICE("label"), edge->label);
    document_append_bool(&out, SLICE("_isEdge"), true);
    document_append_string(&out, SLICE("_vertexId"), edge->from->id);
    document_append_string(&out, SLICE("_vertexLabel"), edge->from->label);
    document_append_string(&out, SLICE("_sink"), edge->to->id);
    document_append_string(&out, SLICE("_sinkLabel"), edge->to->label);
    if (m->graph->key.len) {
        document_append(&out, SLICE("_sinkPartition"), &edge->to->key);
        document_append(&out, m->graph->key, &edge->from->key);
    }
    if (!edge_properties(m, edge, false, &out, err))
        return false;
    types = document_append_object_begin(&out, SLICE("_types"));
    if (!edge_properties(m, edge, true, &out, err))
        return false;
    document_end(&out, types);
    document_end(&out, begin);
    return give(m, buf_slice(&out), err);
}

static bool end_find(const struct making *m, struct slice id, const struct known **ret_known,
                     struct error *err)
{
    *ret_known = known_find(m->graph, id);
    return *ret_known || error_set(err, ERROR_BAD_REQUEST,
                                   "an edge leads to the vertex \"%.*s\", which is not "
                                   "in the file",
                                   (int)MIN(id.len, (size_t)NAME_SHOWN_MAX), (const char *)id.data);
}

static bool out_edge_make(struct making *m, const struct known *from, struct slice label,
                          struct slice record, struct error *err)
{
    struct edge edge = {.label = label, .from = from};
    struct document_value properties;
    struct slice to;

    if (!id_read(record, "id", m->arena, &edge.id, err) ||
        !id_read(record, "inV", m->arena, &to, err) || !end_find(m, to, &edge.to, err))
        return false;
    if (document_find(record, SLICE("properties"), &properties) &&
        properties.type == DOCUMENT_OBJECT)
        edge.properties = properties.document;
    return edge_make(m, &edge, err);
}

/* {label: [{id, inV, properties}]} */
static bool out_edges_make(struct making *m, const struct known *from, struct slice edges,
                           struct error *err)
{
    struct document_iter iter, list;

    document_iter_init(&iter, edges);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_ARRAY)
            return error_set(err, ERROR_BAD_REQUEST, "\"outE\" has to hold lists of edges");
        document_iter_init(&list, iter.value.document);
        while (document_iter_next(&list))
            if (list.value.type != DOCUMENT_OBJECT ||
                !out_edge_make(m, from, iter.key, list.value.document, err))
                return err->code != ERROR_NONE
                           ? false
                           : error_set(err, ERROR_BAD_REQUEST, "an edge has to be an object");
    }
    return true;
}

static bool row_edge_make(struct making *m, struct slice record, struct error *err)
{
    struct edge edge = {
        .label = label_read(record, SLICE("edge")), .properties = record, .columns = true};
    char uuid[RANDOM_UUID_SIZE];
    struct document_value value;
    struct slice from, to;

    if (!document_find(record, SLICE("id"), &value)) {
        random_uuid(uuid);
        edge.id = arena_copy(m->arena, slice_of(uuid, RANDOM_UUID_SIZE - 1));
    } else if (!id_read(record, "id", m->arena, &edge.id, err)) {
        return false;
    }
    return id_read(record, "from", m->arena, &from, err) &&
           id_read(record, "to", m->arena, &to, err) && end_find(m, from, &edge.from, err) &&
           end_find(m, to, &edge.to, err) && edge_make(m, &edge, err);
}

bool shell_graph_items(struct shell_graph *graph, struct slice record,
                       bool (*take)(void *self, struct slice json, struct error *err), void *self,
                       struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct making m = {graph, arena, take, self};
    struct document_value edges;
    const struct known *known;
    struct slice id;

    if (is_edge(record))
        return row_edge_make(&m, record, err);
    if (!id_read(record, "id", arena, &id, err))
        return false;
    known = known_find(graph, id);
    if (!known)
        return error_set(err, ERROR_BAD_REQUEST, "the file has changed while it was read");
    if (!vertex_make(&m, known, record, err))
        return false;
    return !document_find(record, SLICE("outE"), &edges) || edges.type != DOCUMENT_OBJECT ||
           !is_graphson(record) || out_edges_make(&m, known, edges.document, err);
}
