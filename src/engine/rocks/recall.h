/* Recall: values that were read by key lately, above RocksDB's own path to them.
 *
 * What a hit gives is what RocksDB would give at that moment: whoever writes says so before RocksDB
 * sees the write and after, and in between the keys concerned are neither found here nor taken in.
 *
 *     struct rocks_recall_seen seen;
 *     if (rocks_recall_find(recall, partition, key, moment, arena, &value, &seen))
 *         return value;
 *     ... read it from RocksDB, as of now or of the snapshot of that moment ...
 *     rocks_recall_keep(recall, partition, key, value, &seen);
 *
 *     rocks_recall_write_begin(recall, sections, count);
 *     ... RocksDB writes ...
 *     rocks_recall_write_end(recall, sections, count, written);
 *
 * Memory is bounded and divided among partitions: one that holds more than its share makes room
 * first. All functions may be called by any thread.
 *
 * What is kept of a group is found and kept by the group's name in the place of a key; whatever is
 * written of the group ends it. */
#pragma once

#include "engine/engine.h"

struct rocks_recall; /* opaque, owned */

enum { ROCKS_RECALL_VALUE_MAX = 16 * 1024 }; /* longer ones are not kept */

/* firsts: of keys with one of these first bytes; NULL: of all. group: how much of a key names the
 * group it is in, of which something may be kept under that name as under a key; NULL: there are
 * none. bytes_max 0: keeps nothing. */
struct rocks_recall *rocks_recall_new(size_t bytes_max, const char *firsts,
                                      size_t (*group)(struct slice key));
void rocks_recall_free(struct rocks_recall *recall); /* NULL is fine */

/* It may have so much from now on; what is above goes with what comes next. Not from nothing. */
void rocks_recall_resize(struct rocks_recall *recall, size_t bytes_max);

/* A number for a snapshot of RocksDB, to be asked for before that is made. Never 0. */
uint64_t rocks_recall_moment(struct rocks_recall *recall);

/* How many writes have begun. If as many had before the first of several looks as now, what they
 * found is as of now. */
uint64_t rocks_recall_writes(const struct rocks_recall *recall);

/* What a look found out, for keeping what is read next. */
struct rocks_recall_seen {
    uint64_t hash, moment;
    uint32_t writes; /* of its stripe, that had begun */
    bool may_keep;
};

/* True: it is there, and is what a snapshot of that moment shows; 0: as of now. The value is copied
 * into the arena. */
bool rocks_recall_find(struct rocks_recall *recall, uint32_t partition, struct slice key,
                       uint64_t moment, struct arena *arena, struct slice *ret_value,
                       struct rocks_recall_seen *ret_seen);

/* Keeps what was read after a look, unless the key may have been written since. */
void rocks_recall_keep(struct rocks_recall *recall, uint32_t partition, struct slice key,
                       struct slice value, const struct rocks_recall_seen *seen);

/* Around a write, whatever becomes of it: begin forgets the keys, end lets them in again and keeps
 * the new values of those that were forgotten. written false: it is not known what is stored. */
void rocks_recall_write_begin(struct rocks_recall *recall, const struct engine_section *sections,
                              size_t count);
void rocks_recall_write_end(struct rocks_recall *recall, const struct engine_section *sections,
                            size_t count, bool written);

/* Around a change of many keys of a partition that are not named one by one. */
void rocks_recall_change_begin(struct rocks_recall *recall, uint32_t partition);
void rocks_recall_change_end(struct rocks_recall *recall);

struct rocks_recall_figures {
    uint64_t hits, misses;
    size_t bytes, values;
};
struct rocks_recall_figures rocks_recall_figures(struct rocks_recall *recall);
