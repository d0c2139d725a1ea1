/* Modifiers, and documents being changed, from within the folder. */
#pragma once

#include "front/mongo/update/update.h"

enum {
    UPDATE_COMPONENTS_MAX = 200,
    UPDATE_BACKFILL_MAX = 1500000, /* new elements that one index may ask for */
    UPDATE_FILTERS_MAX = 1000,
};

enum update_operator {
    UPDATE_SET,
    UPDATE_UNSET,
    UPDATE_INC,
    UPDATE_MUL,
    UPDATE_MIN,
    UPDATE_MAX,
    UPDATE_RENAME,
    UPDATE_SET_ON_INSERT,
    UPDATE_CURRENT_DATE,
    UPDATE_PUSH,
    UPDATE_ADD_TO_SET,
    UPDATE_POP,
    UPDATE_PULL,
    UPDATE_PULL_ALL,
    UPDATE_BIT,
    UPDATE_OPERATORS,
};

enum update_component_kind {
    UPDATE_NAME,
    UPDATE_POSITION, /* $ */
    UPDATE_EACH,     /* $[] */
    UPDATE_FILTERED, /* $[name] */
};

struct update_filter {
    struct slice name;
    const struct mongo_match *match;
    bool used;
};

struct update_component {
    enum update_component_kind kind;
    struct slice name;
    int64_t index; /* -1: the name is no array index */
    const struct update_filter *filter;
};

struct update_path {
    struct slice text;
    size_t count;
    const struct update_component *components;
};

/* A key of a $sort. */
struct update_sort {
    struct slice path; /* absent: the element itself */
    bool descending;
};

struct update_modifier {
    enum update_operator op;
    size_t number; /* in the order they were given */
    struct update_path path;
    struct document_value value;
    const struct update_path *from; /* of $rename; path is where to */

    /* $push, $addToSet, $pullAll */
    const struct document_value *values;
    size_t value_count;
    bool has_position, has_slice;
    int64_t position, slice;
    const struct update_sort *sorts;
    size_t sort_count;

    const struct mongo_match *match; /* $pull */
    bool timestamp;                  /* $currentDate */
    bool last;                       /* $pop */
};

struct mongo_update {
    const struct document_collator *collator; /* NULL: texts compare by their bytes */
    bool replacement, positional;
    struct slice document;                   /* of a replacement */
    const struct query_expression *pipeline; /* what becomes of the document in slot 0; or NULL */
    const struct update_modifier *modifiers; /* by path */
    size_t count;
};

/* --- Documents being changed ----------------------------------------------------------------- */

/* A field or element. Until something below it is asked for it is the bytes it came as. */
struct update_node {
    struct slice name;
    struct document_value value; /* of an expanded one the type alone */
    struct update_node **children;
    size_t count, capacity;
    uint32_t *places;   /* of children by the hash of their names, plus one; NULL: they are few */
    size_t place_count; /* a power of two */
    bool expanded;
    bool touched; /* a modifier has changed it or asked to */
    bool removed; /* of an object: not there any more */
};

struct update_node *update_node_new(struct arena *arena, struct slice name,
                                    struct document_value value);
bool update_node_is_nested(const struct update_node *node);
void update_node_expand(struct update_node *node, struct arena *arena);
/* By name of an object, by index of an array; NULL: there is none. */
struct update_node *update_node_child(struct update_node *node,
                                      const struct update_component *component,
                                      struct arena *arena);
void update_node_add(struct update_node *node, struct update_node *child, struct arena *arena);
void update_node_write(const struct update_node *node, struct buf *buf);
/* The value as it is now; in the arena where it had to be put together. */
struct document_value update_node_value(const struct update_node *node, struct arena *arena);

/* --- One modifier at one place --------------------------------------------------------------- */

/* Where the values of one application live, and what messages name. */
struct update_run {
    const struct mongo_update_input *input;
    const struct document_collator *collator; /* of the update */
    struct arena *arena;
    struct error *err;
    struct slice id_text; /* {_id: 1}, for messages */
};

/* Computes the new value of a field from the one it has; NULL: it is not there. *ret_there false:
 * nothing is to be there, or nothing to be done. */
NODISCARD bool update_value_compute(struct update_run *run, const struct update_modifier *modifier,
                                    const struct document_value *before, bool *ret_there,
                                    struct document_value *ret_after);
NODISCARD bool update_number_compute(struct update_run *run, const struct update_modifier *modifier,
                                     const struct document_value *before,
                                     struct document_value *ret_after);
NODISCARD bool update_bits_compute(struct update_run *run, const struct update_modifier *modifier,
                                   const struct document_value *before,
                                   struct document_value *ret_after);
NODISCARD bool update_array_compute(struct update_run *run, const struct update_modifier *modifier,
                                    const struct document_value *before, bool *ret_there,
                                    struct document_value *ret_after);

/* How two values compare for the update. */
NODISCARD bool update_values_order(struct update_run *run, const struct document_value *a,
                                   const struct document_value *b, int *ret_order);

/* The last name of a path, for messages. */
struct slice update_path_last(const struct update_path *path);

/* Applies all modifiers to the tree. */
NODISCARD bool update_modifiers_apply(struct update_run *run, const struct mongo_update *update,
                                      struct update_node *root);

/* Two values of the same type and bytes? */
bool update_values_same(const struct document_value *a, const struct document_value *b);

/* What became of the document before, as change streams tell it. */
void update_describe(struct slice before, struct slice after, struct arena *arena,
                     struct mongo_update_result *result);

bool update_path_parse(struct slice text, struct update_filter *filters, size_t filter_count,
                       struct arena *arena, struct update_path *ret_path, struct error *err);
/* Below, at or above zero: names as text, array indexes as numbers. */
int update_path_compare(const struct update_path *a, const struct update_path *b);
