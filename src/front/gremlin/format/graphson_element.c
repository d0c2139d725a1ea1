/* Vertices, edges, properties, paths and trees as GraphSON has them. */
#include "front/gremlin/format/graphson_private.h"

#include "front/gremlin/value/container.h"
#include "front/gremlin/value/special.h"

static bool is_kind(const struct gremlin_graphson *reader, uint32_t at,
                    enum gremlin_token_kind kind)
{
    return reader->tokens.items[at].kind == kind;
}

static bool is_object(struct gremlin_graphson *reader, uint32_t at, const char *type)
{
    return is_kind(reader, at, GREMLIN_TOKEN_OBJECT) || gremlin_graphson_refuse(reader, type);
}

/* A member's value; null if it is absent. */
static bool member(struct gremlin_graphson *reader, uint32_t object, struct slice name,
                   struct gremlin_value *ret_value)
{
    uint32_t at = gremlin_token_member(&reader->tokens, object, name);

    return !at || gremlin_graphson_value(reader, at, ret_value);
}

/* A label, or a key: text. Absent: "vertex" and its like, as references of old drivers lack it. */
static bool label_read(struct gremlin_graphson *reader, uint32_t object, struct slice name,
                       const char *otherwise, struct gremlin_value *ret_value)
{
    uint32_t at = gremlin_token_member(&reader->tokens, object, name);

    if (!at || is_kind(reader, at, GREMLIN_TOKEN_NULL)) {
        *ret_value = gremlin_string(reader->heap, slice_of_text(otherwise));
        return true;
    }
    return gremlin_graphson_text(reader, at, "label", ret_value);
}

/* What stands inside a type, if there is one. */
static uint32_t inside(struct gremlin_graphson *reader, uint32_t at)
{
    uint32_t value;

    if (!is_kind(reader, at, GREMLIN_TOKEN_OBJECT) ||
        !gremlin_token_member(&reader->tokens, at, SLICE("@type")))
        return at;
    value = gremlin_token_member(&reader->tokens, at, SLICE("@value"));
    return value ? value : at;
}

/* {"since":V}: meta-properties, and properties of edges, where V may be a g:Property. */
static bool bare_properties(struct gremlin_graphson *reader, uint32_t at,
                            struct gremlin_properties **ret_properties)
{
    const struct gremlin_token *token = &reader->tokens.items[at];
    CLEANUP(gremlin_properties_unref) struct gremlin_properties *properties = NULL;

    if (!is_object(reader, at, "properties"))
        return false;
    properties = gremlin_properties_new(reader->heap, token->count);
    for (uint32_t i = at + 1; i < token->next; i = reader->tokens.items[i + 1].next) {
        struct gremlin_slot slot = {};
        CLEANUP(gremlin_value_unref) struct gremlin_value value = GREMLIN_NOTHING;

        if (!gremlin_graphson_value(reader, i + 1, &value))
            return false;
        slot.key = gremlin_token_string(&reader->tokens, i, reader->heap);
        if (value.type == GREMLIN_PROPERTY)
            slot.value = gremlin_value_ref(gremlin_property(value)->value);
        else
            slot.value = gremlin_value_take(&value);
        gremlin_properties_add_take(properties, slot);
    }
    *ret_properties = TAKE(properties);
    return true;
}

/* {"id":V,"value":V,"label":"name","properties":{...}}: what a slot holds. Its references are the
 * caller's, also on failure. */
static bool slot_read(struct gremlin_graphson *reader, uint32_t at, struct gremlin_slot *slot)
{
    uint32_t meta;

    at = inside(reader, at);
    if (!is_object(reader, at, "VertexProperty"))
        return false;
    meta = gremlin_token_member(&reader->tokens, at, SLICE("properties"));
    if (gremlin_is_null(slot->key) &&
        !label_read(reader, at, SLICE("label"), "vertexProperty", &slot->key))
        return false;
    return member(reader, at, SLICE("id"), &slot->id) &&
           member(reader, at, SLICE("value"), &slot->value) &&
           (!meta || bare_properties(reader, meta, &slot->meta));
}

static void slot_done(struct gremlin_slot *slot)
{
    gremlin_value_unref(slot->key);
    gremlin_value_unref(slot->value);
    gremlin_value_unref(slot->id);
    gremlin_object_unref(slot->meta);
}

CLEANUP_VALUE_FN(struct gremlin_slot, slot_done)

/* {"name":[VertexProperty, ...], ...} */
static bool vertex_properties(struct gremlin_graphson *reader, uint32_t at,
                              struct gremlin_properties **ret_properties)
{
    const struct gremlin_token *token = &reader->tokens.items[at];
    CLEANUP(gremlin_properties_unref) struct gremlin_properties *properties = NULL;

    if (!is_object(reader, at, "properties"))
        return false;
    properties = gremlin_properties_new(reader->heap, token->count);
    for (uint32_t i = at + 1; i < token->next; i = reader->tokens.items[i + 1].next) {
        uint32_t list = inside(reader, i + 1);

        if (!is_kind(reader, list, GREMLIN_TOKEN_ARRAY))
            return gremlin_graphson_refuse(reader, "properties");
        for (uint32_t j = list + 1; j < reader->tokens.items[list].next;
             j = reader->tokens.items[j].next) {
            CLEANUP(slot_done)
            struct gremlin_slot slot = {.key =
                                            gremlin_token_string(&reader->tokens, i, reader->heap)};

            if (!slot_read(reader, j, &slot))
                return false;
            gremlin_properties_add_take(properties, slot);
            slot = (struct gremlin_slot){};
        }
    }
    *ret_properties = TAKE(properties);
    return true;
}

static bool element_fill(struct gremlin_graphson *reader, uint32_t at, struct gremlin_value element)
{
    uint32_t found = gremlin_token_member(&reader->tokens, at, SLICE("properties"));
    struct gremlin_properties *properties;

    if (!found || is_kind(reader, found, GREMLIN_TOKEN_NULL))
        return true;
    if (element.type == GREMLIN_VERTEX ? !vertex_properties(reader, found, &properties)
                                       : !bare_properties(reader, found, &properties))
        return false;
    gremlin_element_set_take(element, properties);
    return true;
}

bool gremlin_graphson_vertex(struct gremlin_graphson *reader, uint32_t at,
                             enum gremlin_type type UNUSED, struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value id = GREMLIN_NOTHING;
    CLEANUP(gremlin_value_unref) struct gremlin_value label = GREMLIN_NOTHING;
    CLEANUP(gremlin_value_unref) struct gremlin_value vertex = GREMLIN_NOTHING;

    if (!is_object(reader, at, "Vertex") || !member(reader, at, SLICE("id"), &id) ||
        !label_read(reader, at, SLICE("label"), "vertex", &label))
        return false;
    vertex = gremlin_vertex_new(reader->heap, id, label, GREMLIN_NOTHING);
    if (!element_fill(reader, at, vertex))
        return false;
    *ret_value = gremlin_value_take(&vertex);
    return true;
}

bool gremlin_graphson_edge(struct gremlin_graphson *reader, uint32_t at,
                           enum gremlin_type type UNUSED, struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value id = GREMLIN_NOTHING;
    CLEANUP(gremlin_value_unref) struct gremlin_value label = GREMLIN_NOTHING;
    CLEANUP(gremlin_value_unref) struct gremlin_value edge = GREMLIN_NOTHING;
    const struct gremlin_end none = {};
    struct gremlin_edge *made;

    if (!is_object(reader, at, "Edge") || !member(reader, at, SLICE("id"), &id) ||
        !label_read(reader, at, SLICE("label"), "edge", &label))
        return false;
    edge = gremlin_edge_new(reader->heap, id, label, GREMLIN_NOTHING, &none, &none);
    made = gremlin_edge(edge);
    if (!member(reader, at, SLICE("outV"), &made->out.id) ||
        !member(reader, at, SLICE("inV"), &made->in.id) ||
        !label_read(reader, at, SLICE("outVLabel"), "vertex", &made->out.label) ||
        !label_read(reader, at, SLICE("inVLabel"), "vertex", &made->in.label) ||
        !element_fill(reader, at, edge))
        return false;
    *ret_value = gremlin_value_take(&edge);
    return true;
}

bool gremlin_graphson_vertex_property(struct gremlin_graphson *reader, uint32_t at,
                                      enum gremlin_type type UNUSED,
                                      struct gremlin_value *ret_value)
{
    CLEANUP(slot_done) struct gremlin_slot slot = {};

    if (!slot_read(reader, at, &slot))
        return false;
    *ret_value = gremlin_vertex_property_new(reader->heap, &slot, GREMLIN_NOTHING);
    return true;
}

bool gremlin_graphson_property(struct gremlin_graphson *reader, uint32_t at,
                               enum gremlin_type type UNUSED, struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value key = GREMLIN_NOTHING;
    CLEANUP(gremlin_value_unref) struct gremlin_value value = GREMLIN_NOTHING;

    if (!is_object(reader, at, "Property") ||
        !gremlin_graphson_text(reader, gremlin_token_member(&reader->tokens, at, SLICE("key")),
                               "Property", &key) ||
        !member(reader, at, SLICE("value"), &value))
        return false;
    *ret_value = gremlin_property_new(reader->heap, key, value, GREMLIN_NOTHING);
    return true;
}

/* --- Paths, trees, graphs --------------------------------------------------------------------- */

/* The labels of one object: a list or set of strings, to a set; none: null. */
static bool labels_read(struct gremlin_graphson *reader, uint32_t at,
                        struct gremlin_value *ret_labels)
{
    uint32_t list = inside(reader, at);
    CLEANUP(gremlin_value_unref) struct gremlin_value set = GREMLIN_NOTHING;

    if (!is_kind(reader, list, GREMLIN_TOKEN_ARRAY))
        return gremlin_graphson_refuse(reader, "Path");
    for (uint32_t i = list + 1; i < reader->tokens.items[list].next;
         i = reader->tokens.items[i].next) {
        CLEANUP(gremlin_value_unref) struct gremlin_value label = GREMLIN_NOTHING;

        if (!gremlin_graphson_text(reader, i, "Path", &label))
            return false;
        if (gremlin_is_null(set))
            set = gremlin_set_new(reader->heap);
        gremlin_set_add(set, label);
    }
    *ret_labels = gremlin_value_take(&set);
    return true;
}

bool gremlin_graphson_path(struct gremlin_graphson *reader, uint32_t at,
                           enum gremlin_type type UNUSED, struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value path = GREMLIN_NOTHING;
    uint32_t labels, objects, label, end;

    if (!is_object(reader, at, "Path"))
        return false;
    labels = gremlin_token_member(&reader->tokens, at, SLICE("labels"));
    objects = gremlin_token_member(&reader->tokens, at, SLICE("objects"));
    if (!labels || !objects)
        return gremlin_graphson_refuse(reader, "Path");
    labels = inside(reader, labels);
    objects = inside(reader, objects);
    if (!is_kind(reader, labels, GREMLIN_TOKEN_ARRAY) ||
        !is_kind(reader, objects, GREMLIN_TOKEN_ARRAY) ||
        reader->tokens.items[labels].count != reader->tokens.items[objects].count)
        return gremlin_graphson_refuse(reader, "Path");
    path = gremlin_path_empty(reader->heap);
    label = labels + 1;
    end = reader->tokens.items[objects].next;
    for (uint32_t i = objects + 1; i < end; i = reader->tokens.items[i].next) {
        CLEANUP(gremlin_value_unref) struct gremlin_value value = GREMLIN_NOTHING;
        CLEANUP(gremlin_value_unref) struct gremlin_value set = GREMLIN_NOTHING;

        if (!gremlin_graphson_value(reader, i, &value) || !labels_read(reader, label, &set))
            return false;
        gremlin_value_replace_take(&path, gremlin_value_of_take(gremlin_path_extend(
                                              reader->heap, gremlin_path(path), value, set)));
        label = reader->tokens.items[label].next;
    }
    *ret_value = gremlin_value_take(&path);
    return true;
}

/* [{"key":V,"value":g:Tree}, ...] */
bool gremlin_graphson_tree(struct gremlin_graphson *reader, uint32_t at,
                           enum gremlin_type type UNUSED, struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref)
    struct gremlin_value tree = gremlin_table_new(reader->heap, GREMLIN_TREE, 0);
    const struct gremlin_token *token = &reader->tokens.items[at];

    if (token->kind != GREMLIN_TOKEN_ARRAY)
        return gremlin_graphson_refuse(reader, "Tree");
    for (uint32_t i = at + 1; i < token->next; i = reader->tokens.items[i].next) {
        CLEANUP(gremlin_value_unref) struct gremlin_value key = GREMLIN_NOTHING;
        CLEANUP(gremlin_value_unref) struct gremlin_value branch = GREMLIN_NOTHING;

        if (!is_object(reader, i, "Tree") || !member(reader, i, SLICE("key"), &key) ||
            !member(reader, i, SLICE("value"), &branch))
            return false;
        if (branch.type != GREMLIN_TREE)
            return gremlin_graphson_refuse(reader, "Tree");
        gremlin_map_put(tree, key, branch);
    }
    *ret_value = gremlin_value_take(&tree);
    return true;
}

static bool members_read(struct gremlin_graphson *reader, uint32_t at, struct slice name,
                         enum gremlin_type type, struct gremlin_value set)
{
    uint32_t list = gremlin_token_member(&reader->tokens, at, name);

    if (!list || !is_kind(reader, list, GREMLIN_TOKEN_ARRAY))
        return gremlin_graphson_refuse(reader, "graph");
    for (uint32_t i = list + 1; i < reader->tokens.items[list].next;
         i = reader->tokens.items[i].next) {
        CLEANUP(gremlin_value_unref) struct gremlin_value element = GREMLIN_NOTHING;

        if (!gremlin_graphson_value(reader, i, &element))
            return false;
        if (element.type != type)
            return gremlin_graphson_refuse(reader, "graph");
        gremlin_set_add(set, element);
    }
    return true;
}

bool gremlin_graphson_subgraph(struct gremlin_graphson *reader, uint32_t at,
                               enum gremlin_type type UNUSED, struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref)
    struct gremlin_value graph = gremlin_subgraph_new(reader->heap);

    if (!is_object(reader, at, "graph") ||
        !members_read(reader, at, SLICE("vertices"), GREMLIN_VERTEX,
                      gremlin_subgraph(graph)->vertices) ||
        !members_read(reader, at, SLICE("edges"), GREMLIN_EDGE, gremlin_subgraph(graph)->edges))
        return false;
    *ret_value = gremlin_value_take(&graph);
    return true;
}

bool gremlin_graphson_traverser(struct gremlin_graphson *reader, uint32_t at,
                                enum gremlin_type type UNUSED, struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value bulk = GREMLIN_NOTHING;
    CLEANUP(gremlin_value_unref) struct gremlin_value value = GREMLIN_NOTHING;

    if (!is_object(reader, at, "Traverser") || !member(reader, at, SLICE("bulk"), &bulk) ||
        !member(reader, at, SLICE("value"), &value))
        return false;
    if (!gremlin_is_whole(bulk))
        return gremlin_graphson_refuse(reader, "Traverser");
    *ret_value = gremlin_traverser_new(reader->heap, value, bulk.integer);
    return true;
}

bool gremlin_graphson_report(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type,
                             struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value map = GREMLIN_NOTHING;

    if (!gremlin_graphson_value(reader, at, &map))
        return false;
    *ret_value = gremlin_report_new(reader->heap, type, map);
    return true;
}
