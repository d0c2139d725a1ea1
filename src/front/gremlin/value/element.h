/* Elements: vertices, edges, vertex properties, properties; and paths.
 *
 * An element is known by its id alone wherever values are compared (and by its partition key, where
 * both sides have one). Its properties may be unknown (a reference, as drivers send them back to
 * us), its own, or its source's: then they are asked for each time and decoded no further than
 * needed, so that a traversal that only counts never decodes, and what the graph writes shows.
 *
 * Properties are handed out as plain slots; objects for them (vertex properties, properties) are
 * made when a step asks, and hold their owner. So there is no circle of references. */
#pragma once

#include "front/gremlin/value/value.h"

/* One property of an element. */
struct gremlin_slot {
    struct gremlin_value key; /* a string */
    struct gremlin_value value;
    struct gremlin_value id;         /* of a vertex's property; null otherwise */
    struct gremlin_properties *meta; /* properties of the property; NULL: none. Held. */
};

/* Properties in the order of their element; several values of one key of a vertex are several
 * slots. Counted like other objects; nobody changes those of an element, others take their place.
 * Also what properties are gathered in: make one, select into it, clear it, use it again. */
struct gremlin_properties {
    struct gremlin_object object;
    uint32_t count, capacity;
    struct gremlin_slot *slots;
};

struct gremlin_properties *gremlin_properties_new(struct gremlin_heap *heap, size_t capacity);
/* Takes the references of the slot. */
void gremlin_properties_add_take(struct gremlin_properties *properties, struct gremlin_slot slot);
void gremlin_properties_clear(struct gremlin_properties *properties); /* for use once more */
static inline void gremlin_properties_unref(struct gremlin_properties *properties)
{
    gremlin_object_unref(properties);
}
CLEANUP_FN(struct gremlin_properties *, gremlin_properties_unref)

struct gremlin_element;

/* Where an element's properties come from, if they are not its own. */
struct gremlin_source {
    /* Adds the properties of these keys (count 0: all) to `into`, in the element's order. */
    bool (*select)(const struct gremlin_element *element, const struct slice *keys, size_t count,
                   struct gremlin_properties *into, struct error *err);
    /* What the element was read as, to be put aside (pack.h); data NULL: nothing yet. Borrowed. */
    struct slice (*stored)(const struct gremlin_element *element);
    /* Gives an element that was put aside its source again, and what it was read as. */
    void (*restore)(struct gremlin_value element, void *owner, struct slice stored);
};

/* What a source remembers of an element: the first member of its own structure, made with
 * gremlin_object_new(heap, GREMLIN_STORED, sizeof(its own)), all of whose memory is the heap's.
 * done lets go of what it holds when the last element has gone; it is not called when the whole
 * heap goes. */
struct gremlin_stored {
    struct gremlin_object object;
    uint32_t size;                               /* of the whole structure */
    void (*done)(struct gremlin_stored *stored); /* NULL: it holds nothing */
};

struct gremlin_element {
    struct gremlin_object object;
    struct gremlin_value id;
    struct gremlin_value label;            /* a string; of a vertex property, its key */
    struct gremlin_value partition;        /* the partition key's value; null: not known */
    struct gremlin_properties *properties; /* its own; NULL: none. Held. */
    bool reference;                        /* its properties are not known */
    const struct gremlin_source *source;   /* NULL: properties are its own */
    struct gremlin_stored *stored;         /* the source's; NULL: nothing yet. Held. */
    void *owner;                           /* the source's, too */
};

struct gremlin_vertex {
    struct gremlin_element element;
};

struct gremlin_end {
    struct gremlin_value id, label, partition;
};

struct gremlin_edge {
    struct gremlin_element element;
    struct gremlin_end out, in; /* out: where it begins */
};

struct gremlin_vertex_property {
    struct gremlin_element element; /* its properties are the meta-properties */
    struct gremlin_value value;
    struct gremlin_value vertex; /* null: not known. Held. */
};

struct gremlin_property {
    struct gremlin_object object;
    struct gremlin_value key, value;
    struct gremlin_value owner; /* an edge or vertex property; null: not known. Held. */
};

/* References to id, label and partition are taken by none of these. The properties are absent
 * (reference) until gremlin_element_set. */
struct gremlin_value gremlin_vertex_new(struct gremlin_heap *heap, struct gremlin_value id,
                                        struct gremlin_value label, struct gremlin_value partition);
struct gremlin_value gremlin_edge_new(struct gremlin_heap *heap, struct gremlin_value id,
                                      struct gremlin_value label, struct gremlin_value partition,
                                      const struct gremlin_end *out, const struct gremlin_end *in);
/* A property of a slot. owner may be null. */
struct gremlin_value gremlin_vertex_property_new(struct gremlin_heap *heap,
                                                 const struct gremlin_slot *slot,
                                                 struct gremlin_value vertex);
struct gremlin_value gremlin_property_new(struct gremlin_heap *heap, struct gremlin_value key,
                                          struct gremlin_value value, struct gremlin_value owner);

/* Gives the element these properties as its own, in the place of others; takes the reference. NULL:
 * it has none, and that is known. */
void gremlin_element_set_take(struct gremlin_value element, struct gremlin_properties *properties);
/* The element's properties are asked of the source. Takes the reference of stored (may be NULL). */
void gremlin_element_set_source_take(struct gremlin_value element,
                                     const struct gremlin_source *source, void *owner,
                                     struct gremlin_stored *stored);

/* Adds the slots of these keys (count 0: of all) to `into`, with references of its own. What run/
 * and formats call, for vertices, edges and vertex properties. A reference adds nothing. */
NODISCARD bool gremlin_element_select(struct gremlin_value element, const struct slice *keys,
                                      size_t count, struct gremlin_properties *into,
                                      struct error *err);

static inline struct gremlin_element *gremlin_element(struct gremlin_value value)
{
    return (struct gremlin_element *)value.object;
}

static inline struct gremlin_edge *gremlin_edge(struct gremlin_value value)
{
    return (struct gremlin_edge *)value.object;
}

static inline struct gremlin_vertex_property *gremlin_vertex_property(struct gremlin_value value)
{
    return (struct gremlin_vertex_property *)value.object;
}

static inline struct gremlin_property *gremlin_property(struct gremlin_value value)
{
    return (struct gremlin_property *)value.object;
}

/* Vertex, edge or vertex property: what has an id. */
static inline bool gremlin_is_element(struct gremlin_value value)
{
    return value.type >= GREMLIN_VERTEX && value.type <= GREMLIN_VERTEX_PROPERTY;
}

/* --- Paths ------------------------------------------------------------------------------------ */

/* A path is its last node; nodes lead back to the first and are shared by all paths that go on from
 * them, so that going on costs one node. The empty path is a node of length 0. */
struct gremlin_path {
    struct gremlin_object object;
    struct gremlin_path *before; /* NULL: the first. Held. */
    struct gremlin_value value;
    struct gremlin_value labels; /* a set of strings; null: none */
    uint32_t length;             /* nodes up to here */
};

/* The path that goes on from `before` (NULL or empty: begins). labels: a set or null; shared. */
struct gremlin_path *gremlin_path_extend(struct gremlin_heap *heap, struct gremlin_path *before,
                                         struct gremlin_value value, struct gremlin_value labels);
/* The same path whose last node has these labels too. */
struct gremlin_path *gremlin_path_label(struct gremlin_heap *heap, struct gremlin_path *path,
                                        struct gremlin_value labels);
struct gremlin_value gremlin_path_empty(struct gremlin_heap *heap);
/* Fills nodes[0 .. path->length) from the first to the last. Borrowed. */
void gremlin_path_nodes(const struct gremlin_path *path, const struct gremlin_path **ret_nodes);

static inline struct gremlin_path *gremlin_path(struct gremlin_value value)
{
    return (struct gremlin_path *)value.object;
}

static inline void gremlin_path_unref(struct gremlin_path *path)
{
    gremlin_object_unref(path);
}
CLEANUP_FN(struct gremlin_path *, gremlin_path_unref)
