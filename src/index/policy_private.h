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
    INDEX_ESCAPE_NUMBER = 0x09,
    INDEX_ESCAPE_CELLS = 0x0A,
    INDEX_ESCAPE_VECTOR = 0x0B,
    INDEX_ESCAPE_TERMS = 0x0C,
    INDEX_SHAPE_COUNT = 0x3F, /* values of an entry of format 2 */
    INDEX_SHAPE_MONGO = 0x40, /* they are in MongoDB's order */
    INDEX_SHAPE_PATH = 0x80,  /* a path comes before them */
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
struct slice index_composite_prefix(const struct index_part *parts, size_t count,
                                    struct arena *arena);

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

struct index_tree {
    const struct document_names *names; /* NULL: nothing is always indexed, nor ever left out */
    bool elements_hidden;               /* [] is not in the path of what is below */
    struct index_node *root;
    size_t node_count;
};

/* An index of vectors as a policy lists it: what the vectors are is said elsewhere. */
struct index_vector_listed {
    struct slice text; /* of the path, as it was written */
    struct document_path path;
    bool flat;
    uint32_t code_bytes; /* at most; 0: not said */
    uint32_t graph_list; /* 0: it has no graph */
};

struct index_policy {
    bool none;
    struct index_tree *tree;
    const struct index_definition *const *definitions; /* the first is the wildcard of tree */
    size_t definition_count, besides_count;            /* the last ones are besides */
    const struct index_definition *const *spatial; /* as listed; among the definitions once items
                                                      have their entries */
    size_t spatial_count;
    const struct index_definition *const *texts; /* as listed, without their languages; among the
                                                    definitions with them, the same */
    size_t text_count;
    const struct index_vector_listed *vectors; /* as listed */
    size_t vector_count;
    const struct index_composite *composites; /* those of definitions that are such */
    size_t composite_count;
    bool places; /* one of those besides has entries that lie elsewhere than their item */
};

/* Adds a path of the policy. ERROR_BAD_REQUEST: it is in the tree with the other rule. */
NODISCARD bool index_tree_add(struct index_tree *tree, const struct document_path *path,
                              enum index_rule rule, struct arena *arena, struct error *err);

/* Makes the tree ready for walking: adds what always is indexed, sorts, sums up. */
void index_tree_finish(struct index_tree *tree, struct arena *arena);

/* The child for this property; NULL if the policy does not name it. */
const struct index_node *index_node_child(const struct index_node *node, struct slice name);

/* --- Collecting entries ---------------------------------------------------------------------- */

enum {
    INDEX_KEY_SLACK = 640, /* what a cut key may take while it is written: a byte or two for each
                              level of nesting, and one number */
};

/* Which parts of a definition met arrays, instead of entries. */
struct index_arrays {
    struct arena *arena;
    struct index_sum *sums; /* NULL: none yet */
    size_t count;
};
/* Why a walk has ended before its time. */
enum index_full {
    INDEX_FULL_NOT,
    INDEX_FULL_ENTRIES,
    INDEX_FULL_BYTES,
    INDEX_FULL_WORK,
    INDEX_FULL_TEXT, /* a text is too long for its collation */
};

struct index_walk {
    const struct index_definition *definition; /* whose entries are being put */
    struct arena *arena;
    struct buf out; /* lends the present piece of the arena */
    size_t piece;   /* size of the next piece */
    struct index_entry *entries;
    size_t count, capacity;
    uint32_t *repeats; /* places of entries + 1, by hash; NULL while there are few */
    uint32_t *seen;    /* for each node of a tree the last object that had it */
    uint32_t object;   /* objects are numbered as they are walked */
    size_t bytes;      /* of all entries */
    uint64_t work;     /* steps so far */
    enum index_full full;
    struct index_arrays *arrays; /* arrays are noted, nothing is put; NULL: the other way round */
    bool claims;                 /* whole values are put, without the definition's prefix */
    const uint64_t *cells;       /* of the part that has cells */
    size_t cell_count;
    const struct index_visitor
        *visitor; /* values are shown to it, nothing is put; NULL: to nobody */
    struct index_path path;
};

/* Where the next entry begins in out; there is room for `room` bytes. */
size_t index_walk_begin(struct index_walk *walk, size_t room);
void index_walk_end(struct index_walk *walk, size_t begin);

/* Counts steps; the walk is full when there were too many. */
static inline void index_walk_work(struct index_walk *walk, uint64_t steps)
{
    walk->work += steps;
    if (UNLIKELY(walk->work > INDEX_WORK_MAX && !walk->full))
        walk->full = INDEX_FULL_WORK;
}

/* What it takes to go through so many bytes, in steps. */
static inline uint64_t index_bytes_work(size_t bytes)
{
    return 1 + bytes / 16;
}

/* What it takes to put a value into a key: objects are sorted by name, however little of them is
 * kept. */
static inline uint64_t index_value_work(const struct document_value *value)
{
    bool nested = value->type == DOCUMENT_OBJECT || value->type == DOCUMENT_ARRAY;

    return nested ? index_bytes_work(value->document.len) : 1;
}

/* The value as the definition compares it: by its collation, if it has one. */
struct document_value index_walk_collate(struct index_walk *walk,
                                         const struct document_value *value);

/* Has the item entries at all: does it meet the filter? Nothing is said once the walk is full. */
bool index_walk_takes(struct index_walk *walk, struct slice item);

/* The entries of a definition of paths; of one with cells the walk has them. */
bool index_ordered_entries(const struct index_definition *definition, struct slice item,
                           struct index_walk *walk, struct error *err);

bool index_paths_same(const struct document_path *a, const struct document_path *b);

/* Are the first segments of a path those of the other? */
bool index_path_begins(const struct document_path *path, const struct document_path *with);

/* What stands before the path in entries of a kind that has an escape of its own, and with it. */
void index_escape_append(uint8_t escape, struct buf *buf);
struct slice index_escape_prefix(uint8_t escape, const struct document_path *path,
                                 struct arena *arena);

/* The policy with these definitions too, before those that are besides it. */
const struct index_policy *index_policy_insert(const struct index_policy *policy,
                                               const struct index_definition *const *definitions,
                                               size_t count, struct arena *arena);

/* --- Other kinds of index, as a policy lists them -------------------------------------------- */

/* Each takes the list, or undefined if there is none. ERROR_BAD_REQUEST. */
NODISCARD bool index_composites_parse(const struct document_value *list, struct arena *arena,
                                      const struct index_definition ***ret_definitions,
                                      size_t *ret_count, struct error *err);
NODISCARD bool index_spatial_parse(const struct document_value *list, struct arena *arena,
                                   const struct index_definition ***ret_definitions,
                                   size_t *ret_count, struct error *err);
NODISCARD bool index_vectors_parse(const struct document_value *list, struct arena *arena,
                                   const struct index_vector_listed **ret_listed, size_t *ret_count,
                                   struct error *err);
NODISCARD bool index_texts_parse(const struct document_value *list, struct arena *arena,
                                 const struct index_definition ***ret_definitions,
                                 size_t *ret_count, struct error *err);

/* Appends "compositeIndexes" with every order filled in. */
void index_composites_show(const struct document_value *list, struct buf *buf);
