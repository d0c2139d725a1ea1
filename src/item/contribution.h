/* Contributions: what items of sources add to the groups of an aggregating view
 * (front/rest/views/), kept beside the rows of the view, in the partition of their group, and
 * changed in the commit that changes the row. No API reads these families; splits, merges and moves
 * carry them along by their logical partition, a re-key does not.
 *
 *     g | group                                        -> 'S' | generation, 4 | state of the group
 *     g | group | 00 | source, 4 | number, 8           -> 'C' | generation, 4 | its values
 *     g | group | 01 + nth | value | source, 4 | number, 8 -> 'V' | generation, 4 | that value
 *     e | source, 4 | number, 8 | group                -> where the item's contribution is
 *
 * A group is its logical partition, the generation of the view, 4, and a digest of its values, 16.
 * The third kind keeps the values of one aggregate in their order (document_key_append_cut of
 * CONTRIBUTION_KEY_MAX bytes), for those that want the least or the greatest. Another generation
 * begins where what is there can no longer be read: under another query or another partition key.
 */
#pragma once

#include "document/order.h"
#include "item/items.h"

enum {
    CONTRIBUTION_DIGEST_LEN = 16,
    CONTRIBUTION_KEY_MAX = 256,
    CONTRIBUTION_HEAD_LEN = 5,          /* of values: kind and generation */
    CONTRIBUTION_PLACE_PREFIX_LEN = 13, /* of 'e', before the logical partition */
    CONTRIBUTION_VALUES_MAX = 250,      /* aggregates whose values are kept in order */
};

enum contribution_kind {
    CONTRIBUTION_STATE = 'S',
    CONTRIBUTION_VALUES = 'C',
    CONTRIBUTION_ORDERED = 'V',
};

struct contribution_group {
    struct slice logical; /* item_logical of its partition key; borrowed */
    uint32_t generation;
    uint8_t digest[CONTRIBUTION_DIGEST_LEN];
};

/* Whose contribution it is. */
struct contribution_item {
    uint32_t source; /* number of the container */
    uint64_t number;
};

/* Keys with their families, and values, in the arena. */
struct slice contribution_state_key(const struct contribution_group *group, struct arena *arena);
struct slice contribution_values_key(const struct contribution_group *group,
                                     struct contribution_item item, struct arena *arena);
struct slice contribution_ordered_key(const struct contribution_group *group, uint8_t nth,
                                      const struct document_value *value,
                                      struct contribution_item item, struct arena *arena);
struct slice contribution_place_key(const struct contribution_group *group,
                                    struct contribution_item item, struct arena *arena);
struct slice contribution_value(enum contribution_kind kind, uint32_t generation,
                                struct slice bytes, struct arena *arena);

/* What is stored under such a key, without its head; data NULL: nothing. */
NODISCARD bool contribution_read(const struct item_scope *scope, struct engine_snapshot *snapshot,
                                 struct slice key, struct arena *arena, struct slice *ret_bytes,
                                 struct error *err);

/* Walks the contributions of a group (values), or what is kept in order of its nth aggregate. See
 * returns false to end it; fails by err->code. */
struct contribution_walk {
    bool (*see)(void *self, struct contribution_item item, struct slice bytes, struct error *err);
    void *self;
};
NODISCARD bool contributions_each(const struct item_scope *scope, struct engine_snapshot *snapshot,
                                  const struct contribution_group *group,
                                  const struct contribution_walk *walk, struct error *err);
NODISCARD bool contributions_in_order(const struct item_scope *scope,
                                      struct engine_snapshot *snapshot,
                                      const struct contribution_group *group, uint8_t nth,
                                      bool backwards, const struct contribution_walk *walk,
                                      struct error *err);

/* The groups of a generation that an item has contributions in: one, but for crashes between two
 * commits. In all partitions of the space; as many as there are, but no more than max. */
NODISCARD bool contributions_find(const struct item_space *space, uint32_t generation,
                                  struct contribution_item item, struct arena *arena,
                                  struct contribution_group *ret_groups, size_t max,
                                  size_t *ret_count, struct error *err);

/* A page of what is kept in one partition, in the order of logical partitions. What is of another
 * generation is removed on the way. */
struct contribution_page {
    struct contribution_item *items; /* whose contributions were passed; in the arena */
    size_t count;
    struct slice position; /* of the last entry; for the next page */
    bool more;
    size_t removed; /* entries of other generations */
};
NODISCARD bool contributions_page(const struct item_scope *scope, uint32_t generation,
                                  struct slice after, size_t max, struct arena *arena,
                                  struct contribution_page *ret_page, struct error *err);

/* Commits operations on such keys by themselves, without a row. */
NODISCARD bool contributions_commit(const struct item_scope *scope, const struct engine_op *ops,
                                    size_t count, struct error *err);
