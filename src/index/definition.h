/* Index definition: one index of a container, whatever language asked for it.
 *
 * Every language compiles what it calls an index to this: an indexing policy becomes one wildcard
 * definition and one for each composite index (policy.c), createIndexes of MongoDB one for each of
 * its documents. What entries an item has is a function of item and definition, by its kind
 * (struct index_kind).
 *
 * A definition never changes once made and lives in the arena it was made in. Its entries say which
 * order they are in and which way (format 2, at the top of policy.c), so they can be stepped over,
 * and a partition split, by those who know no definitions. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "document/collator.h"
#include "document/order.h"
#include "document/path.h"
#include "search/code.h"
#include "search/geometry.h"

/* Formats of entries. Those of policies are 1, with the text of the path in each; definitions of
 * their own have their number instead. */
enum { INDEX_FORMAT_POLICY = 1, INDEX_FORMAT_VERSION = 2 };

enum {
    INDEX_DEFINITIONS_MAX = 64, /* of a container, besides its policy */
    INDEX_NUMBERS = 256,        /* a definition that is gone keeps its number for a while */
    INDEX_PARTS_MAX = 32,       /* of one */
    INDEX_CONDITIONS_MAX = 32,  /* of a filter */
    INDEX_PROJECTION_MAX = 64,  /* paths of a wildcard */
    INDEX_NAME_MAX = 255,
    INDEX_CLAIMS_MAX = 1000, /* values of an item in all unique ones */
    INDEX_CLAIM_MAX = 512,   /* bytes of the values an item is alone with; longer ones are hashed */
    INDEX_EXPIRES_NEVER = -1,
};

/* The values at one path. */
struct index_part {
    struct document_path path; /* of properties; a name of digits also steps into an array */
    bool descending;
    bool hashed; /* not the value but a hash of it: equality alone is found */
    bool cells;  /* not the value but the cells that the figures there lie in (spatial) */
};

enum index_comparison {
    INDEX_EXISTS,
    INDEX_EQUAL,
    INDEX_LESS,
    INDEX_LESS_EQUAL,
    INDEX_GREATER,
    INDEX_GREATER_EQUAL,
    INDEX_TYPE,      /* values of the types whose numbers in BSON are the value, a list */
    INDEX_NOT_EQUAL, /* the value at the path is another, or there is none; elements do not count */
};

/* Of a partial index: only items that meet all its conditions have entries; of those that are
 * alternatives to each other one is enough. A condition is met if any value at its path meets it,
 * elements of an array at its end being such values; values of other types than its own never do.
 */
struct index_condition {
    uint32_t any; /* conditions with the same number are alternatives; 0: it is none */
    struct document_path path;
    enum index_comparison comparison;
    struct document_value value;
};

/* Who may not have the same values. */
enum index_unique { INDEX_UNIQUE_NOT, INDEX_UNIQUE_LOGICAL /* items of one logical partition */ };

/* How far a container is with an index. Its entries are kept from the first moment; plans use them,
 * and what it forbids is forbidden, once it is ready. Of one that failed nothing is kept. */
enum index_state { INDEX_READY, INDEX_BUILDING, INDEX_FAILED };

struct index_tree; /* the paths of a wildcard: policy_private.h */

/* Of an index of where things are: what is a figure, and which cells there are. */
struct index_spatial {
    struct search_rules rules;
    struct search_grid grid;
};

/* Of an index of full text besides a policy: texts at several paths, or everywhere, with weights.
 */
struct index_text {
    struct slice language; /* as search/analyser.h calls it; "none" is one */
    struct slice override; /* the field that names another for the object it is in, and below */
    bool all;              /* texts at any path, with all_weight where no part names it */
    double all_weight;
    const double *weights; /* one for each part */
};

/* Of an index of vectors: what they are, and what is kept of them. */
struct index_vector {
    struct search_vectors vectors;
    unsigned bits;       /* of the code for each dimension; 0: the vectors themselves */
    uint32_t graph_list; /* searched by a graph that is built with such a list; 0: by no graph */
};

struct index_definition {
    struct slice name;
    uint8_t format;
    uint8_t number; /* of its entries; no other definition of the container has it */
    const struct index_kind *kind;
    const struct index_part *parts; /* of a wildcard none */
    size_t part_count;
    const struct index_tree *tree;       /* of a wildcard */
    const struct index_spatial *spatial; /* of that kind */
    struct slice language;               /* of full text in a policy */
    const struct index_text *text;       /* of full text besides; NULL: of a policy, or other */
    const struct index_vector *vector;   /* of that kind */
    enum document_order order;
    const struct document_collator
        *collator;                 /* texts are in its comparison form; NULL: as they are */
    struct slice collator_version; /* whose sort keys the entries hold */
    bool stale; /* they are not those of this process: nothing can be written to it, no plan uses it
                 */
    bool multikey; /* elements of arrays have entries, and a property that is missing is null; if
                      not, an array is a value and a property that is missing undefined */
    bool counted;  /* arrays on the way of each part are counted: index_array_name */
    bool hidden;   /* kept, but not for plans */
    bool sparse;   /* items with none of its paths have no entry */
    enum index_unique unique;
    enum index_state state;
    int32_t expire_after_s; /* items go so long after the date at its path; INDEX_EXPIRES_NEVER */
    const struct index_condition *filter;
    size_t filter_count;
    const struct document_path *placed; /* entries lie with the partition key that stands there, in
                                           whichever partition that is; NULL: with their item */
    struct slice prefix; /* the beginning of its entries; the values follow, of a wildcard a path */
};

struct index_walk; /* collects the entries of an item: entries.c */

/* Sums that a kind keeps besides entries: something that is no function of one item, such as in how
 * many items a word occurs. */
enum { INDEX_SUM_NUMBERS = 4, INDEX_SUMS_MAX = 1024 /* of one item */, INDEX_SUM_NAME_MAX = 128 };

struct index_sum {
    struct slice name; /* in the arena; empty where there is only one */
    int64_t amounts[INDEX_SUM_NUMBERS];
};

/* The state of a kind is such sums, for each logical partition its own. A kind says what one item
 * adds; the rest follows from that, for every kind the same:
 *
 *   commit   what the new version adds less what the old one did goes with the item, as a sum of
 *            group commit: two writers do not conflict over it (item/write_set.c)
 *   split    a logical partition is never cut, so its sums move with its items (migration/mover.c);
 *            a re-key writes every item anew, and with it what it adds
 *   rebuild  an item that is indexed by an older policy added nothing: remaking its entries adds
 *            it, and takes it away where the definition is gone (item/transform.c)
 *
 * They are read by the key in item/write_set.c. */
struct index_state_functions {
    /* What this item adds; at most INDEX_SUMS_MAX, no name twice. ERROR_TOO_LARGE. */
    bool (*sums)(const struct index_definition *definition, struct slice item, struct arena *arena,
                 struct index_sum **ret_sums, size_t *ret_count, struct error *err);
};

/* A kind of index. */
struct index_kind {
    const char *name;
    /* Can it be so? ERROR_BAD_REQUEST, ERROR_NOT_SUPPORTED. */
    bool (*check)(const struct index_definition *definition, struct error *err);
    /* Puts the entries of an item. ERROR_BAD_REQUEST: it cannot be in such an index. */
    bool (*entries)(const struct index_definition *definition, struct slice item,
                    struct index_walk *walk, struct error *err);
    const struct index_state_functions *state; /* NULL: it has entries alone */
};

/* The sums of a definition that is `counted`: in how many items a part of it met an array. Where no
 * item did, each has one entry, and ranges of one path can be put together. The name of a sum is
 * the part and the number of segments that lead to the array. */
enum { INDEX_ARRAY_NAME_LEN = 2 };

struct index_array {
    uint8_t part, depth;
};

static inline bool index_array_read(struct slice name, struct index_array *ret_array)
{
    if (name.len != INDEX_ARRAY_NAME_LEN)
        return false;
    *ret_array = (struct index_array){name.data[0], name.data[1]};
    return true;
}

extern const struct index_kind index_kind_ordered;
extern const struct index_kind index_kind_wildcard;
extern const struct index_kind index_kind_spatial;
extern const struct index_kind index_kind_text;
extern const struct index_kind index_kind_vector;

/* What a language says of an index; what is zero or empty is not said. */
struct index_parts {
    struct slice name;
    uint8_t number;
    const struct index_kind *kind;  /* NULL: by what follows */
    const struct index_part *parts; /* none: a wildcard */
    size_t part_count;
    const struct document_path *include, *exclude; /* of a wildcard; each ends in "everything" */
    size_t include_count, exclude_count;           /* none included: all */
    const struct index_spatial *spatial;           /* of the part that has cells; NULL: none has */
    enum document_order order;
    const struct document_collator *collator; /* NULL: texts compare by their bytes */
    struct slice collator_version;            /* of the entries; empty: those of this process */
    bool multikey, counted, hidden, sparse;
    enum index_unique unique;
    enum index_state state;
    bool expires;
    int32_t expire_after_s;
    const struct index_condition *filter;
    size_t filter_count;
    const struct index_text *text;      /* NULL: it is none of full text */
    const struct document_path *placed; /* NULL: entries lie with their items */
};

/* Checks the parts, which must live as long as the arena. ERROR_BAD_REQUEST, ERROR_NOT_SUPPORTED.
 */
NODISCARD bool index_definition_build(const struct index_parts *parts, struct arena *arena,
                                      const struct index_definition **ret_definition,
                                      struct error *err);

/* The same from BSON, in the words of definition_read.c; what was understood is appended,
 * completed, as the element key of the document being written. number: for who says none. */
NODISCARD bool index_definition_read(const struct document_value *value, uint8_t number,
                                     struct arena *arena, struct slice key, struct buf *out,
                                     const struct index_definition **ret_definition,
                                     struct error *err);

/* A copy that lives in the arena, of an index of full text. */
const struct index_definition *index_definition_copy(const struct index_definition *definition,
                                                     struct arena *arena);

/* Shows every text of an item that an index besides a policy has, with its weight and language.
 * Stops and returns false as soon as take does. A language that is not known counts as none. */
bool index_text_each(const struct index_definition *definition, struct slice item,
                     bool (*take)(void *self, struct slice text, double weight,
                                  struct slice language),
                     void *self);

/* What the server says of an index in its document. */
struct index_words {
    uint8_t number;
    enum index_state state;
    struct slice failure;  /* BSON object; data NULL: none */
    struct slice collator; /* the version of its collator; data NULL: as the document says */
};

/* The document of a definition with other words of the server; NULL: with none. In the arena. */
struct slice index_definition_words(struct slice object, const struct index_words *words,
                                    struct arena *arena);

/* The words of its state. */
const char *index_state_name(enum index_state state);

/* Have figures the same cells in both? */
bool index_spatial_same(const struct index_spatial *a, const struct index_spatial *b);

/* Is the same kept of vectors in both? */
bool index_vector_same(const struct index_vector *a, const struct index_vector *b);

/* Are all entries of one entries of the other? The name does not matter, nor what plans are told.
 */
bool index_definition_same(const struct index_definition *a, const struct index_definition *b);

/* Of a wildcard: does every scalar at this path of properties have an entry? */
bool index_definition_covers(const struct index_definition *definition,
                             const struct document_path *path);

/* The beginning of the entries of one path of a wildcard, in the arena. */
struct slice index_definition_path_prefix(const struct index_definition *definition,
                                          const struct document_path *path, struct arena *arena);

/* Calls figure for each value at a path of properties that may be a figure: what stands there, or
 * the elements of an array that is no pair of numbers; arrays on the way are gone through. False,
 * if figure says so. */
struct index_figures {
    bool (*figure)(void *self, const struct document_value *value);
    void *self;
};
bool index_figures_visit(const struct document_path *path, struct slice item,
                         const struct index_figures *visitor);

/* What a hashed part has in place of a value that is no array, in comparison form. */
struct document_value index_value_hash(enum document_order order,
                                       const struct document_value *value);

struct index_entry {
    struct slice bytes; /* in the arena */
    struct slice said;  /* stored with it besides the key of the item (index_entry_said_len) */
};

/* The entries that an item has by one definition, sorted, without repetition. ERROR_TOO_LARGE, as
 * of index_entries. */
NODISCARD bool index_definition_entries(const struct index_definition *definition,
                                        struct slice item, struct arena *arena,
                                        struct index_entry **ret_entries, size_t *ret_count,
                                        struct error *err);

/* What an item is alone with in its logical partition by a unique definition: for each of its
 * entries the values, as bytes that are equal where they are. None where it has no entries. */
NODISCARD bool index_definition_claims(const struct index_definition *definition, struct slice item,
                                       struct arena *arena, struct index_entry **ret_claims,
                                       size_t *ret_count, struct error *err);

/* Called with the values of each entry of an item, one for each part: as the item has them, and in
 * the form that the definition compares, which is another where it has a collation. Both are good
 * during the call. */
struct index_visitor {
    void (*entry)(void *self, const struct document_value *values,
                  const struct document_value *forms);
    void *self;
};

/* Visits the entries that an item has by a definition of paths, in no order, one or more times
 * each. ERROR_TOO_LARGE, as of index_entries. */
NODISCARD bool index_definition_visit(const struct index_definition *definition, struct slice item,
                                      struct arena *arena, const struct index_visitor *visitor,
                                      struct error *err);

/* Appends what stands behind the prefix of an entry with these values. Of a bound it ends at the
 * first value that was cut, and true tells so: what is before it is not known to be in. */
bool index_definition_key(const struct index_definition *definition,
                          const struct document_value *forms, bool is_bound, struct buf *out);

/* Which entry comes first, by whole values. */
int index_definition_compare(const struct index_definition *definition,
                             const struct document_value *forms,
                             const struct document_value *other);
