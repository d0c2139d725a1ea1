/* Overlay: what a transaction has planned to write, as a reader of its snapshot is to see it.
 *
 * It has the very engine operations the commit would write, with provisional numbers: items,
 * numbers, index entries. Readers of a partition merge them with what is stored, key by key, so
 * that every way of reading sees them: by key, by number, by any index, and as counters.
 *
 * It lives in the arena it was built in, and changes only by what is put to it and taken from it
 * (view_section_put, view_section_take), while nobody reads. */
#pragma once

#include "base/arena.h"
#include "engine/engine.h"
#include "item/view_bound.h"
#include "partition/commit.h"

/* What is planned in one partition. */
struct view_section {
    uint32_t partition;
    struct engine_op *ops; /* by key, each key once */
    size_t op_count, op_capacity;
    struct commit_delta *deltas; /* several of one key add up */
    size_t delta_count, delta_capacity;
    size_t delta_merged; /* were left when those of one key were made one */
    uint32_t numbers;    /* of new items, that were given out */
};

struct view_overlay {
    struct view_section *sections;
    size_t count;
};

/* Sorts the operations of a part, of two with one key the later; in the arena. */
struct view_section view_section_of(const struct commit_part *part, struct arena *arena);

/* Takes operations out again, by key: those that are the very ones that were put, while what others
 * have put under the same key since stays. */
void view_section_take(struct view_section *section, const struct engine_op *ops, size_t count);
/* Puts operations in, by key and each key once, in place of what has the same key. */
void view_section_put(struct view_section *section, const struct engine_op *ops, size_t count,
                      struct arena *arena);
/* Adds to the sums, or, where taken, takes from them. */
void view_section_sum(struct view_section *section, const struct commit_delta *deltas, size_t count,
                      bool taken, struct arena *arena);

/* NULL: nothing is planned there. */
const struct view_section *view_overlay_find(const struct view_overlay *overlay,
                                             uint32_t partition);

/* What is planned for a key; NULL: nothing. */
const struct engine_op *view_section_get(const struct view_section *section, struct slice key);

/* --- Walking --------------------------------------------------------------------------------- */

/* An engine iterator with what is planned merged into it. section NULL: the iterator alone, at its
 * own cost. */
struct view_walk {
    struct engine_iterator *iterator; /* owned */
    const struct view_section *section;
    struct view_bound *bound;
    struct engine_range range; /* of the section; copied */
    bool backwards;
    size_t at;       /* the next operation; backwards: one behind it */
    bool has_stored; /* stored is read and not given */
    struct engine_entry stored;
    struct arena *arena; /* of the range; NULL: no section */
};

struct view_walk_options {
    struct engine *engine;
    struct engine_snapshot *snapshot;
    uint32_t partition;
    struct engine_range range;
    bool backwards;
    enum engine_reach reach; /* without a bound */
    const struct view_section *section;
    struct view_bound *bound; /* borrowed; NULL: it may block, and go on as long as it likes */
};

/* The contracts of engine_iterator_new, _next, _seek and _free; ERROR_COLD with a bound. */
NODISCARD bool view_walk_open(struct view_walk *walk, const struct view_walk_options *options,
                              struct error *err);
NODISCARD bool view_walk_next_slow(struct view_walk *walk, struct engine_entry *ret_entry,
                                   struct error *err);
NODISCARD bool view_walk_seek(struct view_walk *walk, struct slice key, struct error *err);
void view_walk_done(struct view_walk *walk);
CLEANUP_VALUE_FN(struct view_walk, view_walk_done)

NODISCARD static inline bool view_walk_next(struct view_walk *walk, struct engine_entry *ret_entry,
                                            struct error *err)
{
    if (LIKELY(!walk->section && !walk->bound))
        return engine_iterator_next(walk->iterator, ret_entry, err);
    return view_walk_next_slow(walk, ret_entry, err);
}
