/* Copy: the items of a reference container as they were at one moment, in memory, found by key.
 *
 * Immutable and shared by reference: any thread of any query reads it without a lock. Items are
 * kept as queries see them, with their system properties. Those without a value for a part of their
 * key are left out: no equality is true of them. */
#pragma once

#include "base/arena.h"
#include "document/path.h"
#include "query/value/context.h"

enum { QUERY_COPY_PATHS_MAX = 4 };

struct query_copy; /* opaque, shared, reference-counted */

/* Items that become a copy. */
struct query_copy_builder {
    const struct document_path *paths; /* of the partition key; none: all items are in one */
    size_t path_count;
    struct slice identity; /* the property that names an item in its partition */
    size_t bytes_max;      /* of the items, without what the server adds to each */
    bool by_value;         /* query_copy_narrow is asked of it: in MongoDB's order */
    struct arena *arena;   /* owned; of the entries below */
    struct copy_entry *entries;
    size_t count, capacity;
    size_t bytes;
    bool left_out; /* some had no key */
};

void query_copy_builder_init(struct query_copy_builder *builder);
void query_copy_builder_done(struct query_copy_builder *builder);
CLEANUP_VALUE_FN(struct query_copy_builder, query_copy_builder_done)

/* ERROR_REFERENCE_FULL. */
NODISCARD bool query_copy_builder_add(struct query_copy_builder *builder, struct slice item,
                                      struct error *err);

/* What was added, as a copy; the caller owns one reference. */
struct query_copy *query_copy_new(const struct query_copy_builder *builder);
struct query_copy *query_copy_ref(struct query_copy *copy);
void query_copy_unref(struct query_copy *copy); /* NULL is fine */
CLEANUP_FN(struct query_copy *, query_copy_unref)

size_t query_copy_bytes(const struct query_copy *copy);
size_t query_copy_items(const struct query_copy *copy);

/* All items of the container, in the order in which they were added; NULL: the copy lacks some that
 * have no key. Of the copy. */
const struct slice *query_copy_documents(const struct query_copy *copy, size_t *ret_count);

/* Values that an item is wanted for: one of those in an array of the list is, at the path, what it
 * has there or an element of that, by MongoDB's rule of equality. */
struct query_wanted {
    struct slice path;
    const struct document_value *const *arrays; /* borrowed; what is no array wants nothing */
    size_t count;
    struct arena *arena; /* for what is found, until the plan that wants it has run */
};

/* Those of query_copy_documents that may be wanted, in their order; in the arena. Few of them may
 * not be: whoever asks looks again. False: that cannot be told for this path, and all may be. */
bool query_copy_narrow(const struct query_copy *copy, const struct query_wanted *wanted,
                       const struct slice **ret_documents, size_t *ret_count);

/* The items that may have these values, as an array; undefined: none. identified: the last value is
 * the identity, and those before it the partition key. Few of them may have others: whoever joins
 * them looks at the values again. The array is of the copy, or in the arena of the context. */
NODISCARD bool query_copy_find(const struct query_copy *copy, const struct document_value *keys,
                               size_t count, bool identified, struct query_context *context,
                               struct document_value *ret_items, struct error *err);
