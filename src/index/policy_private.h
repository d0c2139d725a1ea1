/* The policy from within: a tree of the paths it names, walked together with a document, and the
 * bytes of paths in entries. */
#pragma once

#include "document/order.h"
#include "index/policy.h"

/* Bytes with a meaning in the path of an entry (index_policy.c). */
enum {
    INDEX_MARK_END = 0x00,
    INDEX_MARK_BELOW = 0x01,
    INDEX_MARK_ESCAPE = 0x02,
    INDEX_ESCAPE_ELEMENTS = 0x03,
    INDEX_ESCAPE_COMPOSITE = 0x04,
    INDEX_ESCAPE_TUPLE = 0x05,
    INDEX_ESCAPE_HASH = 0x06,
    INDEX_ESCAPE_COMPOSITE_HASH = 0x07,
    INDEX_ESCAPE_TUPLE_HASH = 0x08,
    INDEX_MARK_ASCENDING = 0x01,
    INDEX_MARK_DESCENDING = 0x02,
    INDEX_HASH_SIZE = 16,
    INDEX_PATH_TAIL = 2 + INDEX_HASH_SIZE + 1, /* what may follow INDEX_PATH_MAX bytes */
};

/* --- Paths ----------------------------------------------------------------------------------- */

/* How far a path has come: copy it to return to that place. */
struct index_path_mark {
    size_t len;  /* of bytes that are written out */
    bool hashed; /* the segments behind them are in the hash alone */
    uint8_t hash[INDEX_HASH_SIZE];
};

/* A path being walked: every segment is followed by INDEX_MARK_BELOW. */
struct index_path {
    struct index_path_mark mark;
    uint8_t bytes[INDEX_PATH_MAX];
};

void index_path_init(struct index_path *path);
void index_path_push_name(struct index_path *path, struct slice name);
void index_path_push_elements(struct index_path *path);
void index_path_push(struct index_path *path, const struct document_segment *segment);

/* Appends the path with its end; it has at least one segment. */
void index_path_write(const struct index_path *path, struct buf *buf);

/* The prefix of a tuple's entries: the path of segments, the last of which is the tuple. */
struct slice index_tuple_prefix(const struct document_path *path, struct arena *arena);
struct slice index_composite_prefix(const struct index_composite *composite, struct arena *arena);

/* --- The tree -------------------------------------------------------------------------------- */

enum index_rule { INDEX_RULE_NONE, INDEX_RULE_INCLUDE, INDEX_RULE_EXCLUDE };

struct index_tuple {
    const struct document_segment *segment; /* its members */
    struct slice prefix;                    /* of its entries */
    struct index_tuple *next;
};

struct index_node {
    struct slice name;           /* of the property that leads here from the parent */
    uint32_t number;             /* nodes are numbered from 0 */
    enum index_rule scalar, all; /* of the path with ? and with an asterisk */
    bool named;                  /* a scalar path was included: undefined is indexed too */
    bool may_include;            /* something at or below is included by a rule of its own */
    bool may_exclude;
    bool may_miss; /* something to index if there is no value here */
    size_t child_count;
    struct index_node **children; /* sorted by name */
    struct index_node *elements;  /* [] */
    struct index_tuple *tuples;
    struct index_node *first, *next; /* children while the tree grows, and siblings */
};

struct index_policy {
    bool none;
    struct index_node *root;
    size_t node_count;
    const struct index_composite *composites;
    size_t composite_count;
};

/* Adds a path of the policy. ERROR_BAD_REQUEST: it is in the tree with the other rule. */
NODISCARD bool index_tree_add(struct index_policy *policy, const struct document_path *path,
                              enum index_rule rule, struct arena *arena, struct error *err);

/* Makes the tree ready for walking: adds what always is indexed, sorts, sums up. */
void index_tree_finish(struct index_policy *policy, struct arena *arena);

/* The child for this property; NULL if the policy does not name it. */
const struct index_node *index_node_child(const struct index_node *node, struct slice name);

/* --- Other kinds of index, as a policy lists them -------------------------------------------- */

/* Each takes the list, or undefined if there is none. ERROR_BAD_REQUEST. */
NODISCARD bool index_composites_parse(const struct document_value *list,
                                      struct index_policy *policy, struct arena *arena,
                                      struct error *err);
NODISCARD bool index_spatial_check(const struct document_value *list, struct arena *arena,
                                   struct error *err);
NODISCARD bool index_vectors_check(const struct document_value *list, struct arena *arena,
                                   struct error *err);
NODISCARD bool index_texts_check(const struct document_value *list, struct arena *arena,
                                 struct error *err);

/* Appends "compositeIndexes" with every order filled in. */
void index_composites_show(const struct document_value *list, struct buf *buf);
