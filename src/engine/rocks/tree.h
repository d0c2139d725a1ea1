/* A write buffer's entries in order: the structure behind RocksDB's memtable (memtable.cc).
 *
 * An entry is what RocksDB makes of a write: the length of its internal key as a varint, the key
 * (the user's key and a tag of 8 bytes, little-endian: sequence number and kind), and what follows,
 * which is nobody's business here. Entries are in the order of their user keys, bytewise, and of
 * one user key the highest tag comes first.
 *
 * One thread inserts at a time. Any number of threads read meanwhile, without locks. They find
 * every entry whose insertion ended before they began; those that are inserted meanwhile may be
 * found or not. Nothing is ever removed: all memory goes with whoever gave it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ROCKS_TREE_TAG = 8, ROCKS_TREE_KEY_MAX = 65535 - ROCKS_TREE_TAG }; /* bytes */

struct rocks_entry {
    struct rocks_entry *next, *prev; /* in order; the neighbours' too change while others read */
    void *more;                      /* tree.c says what */
    uint8_t bytes[];                 /* as RocksDB wrote them */
};

struct rocks_tree {
    /* Gives memory, aligned to 8 bytes, that lives as long as the tree. */
    void *(*give)(void *context, size_t bytes);
    void *context;
    uintptr_t root;
    struct rocks_entry ends; /* before the first entry and behind the last */
};

void rocks_tree_init(struct rocks_tree *tree, void *(*give)(void *context, size_t bytes),
                     void *context);

/* Room for an entry of so many bytes, which the caller fills in before it is inserted. */
struct rocks_entry *rocks_tree_entry_new(struct rocks_tree *tree, size_t bytes);

/* False: an entry with the same key and tag is there, and this one is not. */
bool rocks_tree_insert(struct rocks_tree *tree, struct rocks_entry *entry);

/* The first entry at or behind an internal key, and the last at or before it; NULL: none. */
const struct rocks_entry *rocks_tree_seek(const struct rocks_tree *tree, const uint8_t *key,
                                          size_t len);
const struct rocks_entry *rocks_tree_seek_back(const struct rocks_tree *tree, const uint8_t *key,
                                               size_t len);

/* Is there an entry with the key of this one, of which only the bytes are given? */
bool rocks_tree_contains(const struct rocks_tree *tree, const uint8_t *bytes);

/* From one entry to its neighbour, from NULL to the first and the last; NULL: there is none. */
const struct rocks_entry *rocks_tree_next(const struct rocks_tree *tree,
                                          const struct rocks_entry *entry);
const struct rocks_entry *rocks_tree_prev(const struct rocks_tree *tree,
                                          const struct rocks_entry *entry);

#ifdef __cplusplus
}
#endif
