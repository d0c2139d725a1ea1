/* Pile: traversers that are put aside and come back in order: that of their keys, and where those
 * are equal, or there are none, that in which they came.
 *
 * A pile that has taken the memory a barrier may have (gremlin_run_options.spill_at) is written to
 * disk as a sorted run, and the runs are merged when it is read. Where nothing may be spilled, or
 * no more, it stays in memory, and the limit of the heap ends the request. A pile may be read again
 * after gremlin_pile_finish, and may take more before that. For one step of one run. */
#pragma once

#include "front/gremlin/run/run_private.h"
#include "query/spool/spill.h"

struct gremlin_pile_file;  /* a run on disk */
struct gremlin_pile_merge; /* runs that are being read */

struct gremlin_pile {
    size_t width;                /* keys of each traverser */
    const struct gremlin_by *by; /* of each key, which way it is sorted; NULL: ascending */

    struct gremlin_walkers walkers; /* those in memory, as they came */
    struct gremlin_value *keys;     /* width of each */
    uint64_t *places;
    size_t room;        /* of keys and places */
    uint32_t *sorted;   /* which comes first, second ...; NULL: as they came */
    size_t at;          /* of those, the next to be given */
    uint64_t arrived;   /* ever */
    size_t used_before; /* of the heap, when the first of them came */

    struct query_spill_file *file;   /* a reference; NULL: nothing was spilled */
    struct gremlin_pile_file *files; /* owned */
    size_t file_count, file_room;
    struct gremlin_pile_merge *merge; /* owned; NULL: it is not being read from disk */
};

/* All zeroes is an empty pile without keys. */
static inline void gremlin_pile_init(struct gremlin_pile *pile, size_t width,
                                     const struct gremlin_by *by)
{
    *pile = (struct gremlin_pile){.width = width, .by = by};
}
void gremlin_pile_done(struct gremlin_run *run, struct gremlin_pile *pile);

static inline bool gremlin_pile_is_empty(const struct gremlin_pile *pile)
{
    return !pile->arrived;
}

/* Takes the traverser and its keys over, on failure too. ERROR_SPILL, and limits. */
NODISCARD bool gremlin_pile_add_take(struct gremlin_run *run, struct gremlin_pile *pile,
                                     struct gremlin_walker traverser,
                                     const struct gremlin_value *keys, struct error *err);

/* Sets it up to be read, from the first. */
NODISCARD bool gremlin_pile_finish(struct gremlin_run *run, struct gremlin_pile *pile,
                                   struct error *err);

/* The next; the caller owns it, and the keys, unless ret_keys is NULL. *ret_found false: there are
 * no more. ERROR_SPILL. */
NODISCARD bool gremlin_pile_next(struct gremlin_run *run, struct gremlin_pile *pile,
                                 struct gremlin_walker *ret_traverser,
                                 struct gremlin_value *ret_keys, bool *ret_found,
                                 struct error *err);

/* Appends about `want` of the next. */
NODISCARD bool gremlin_pile_pull(struct gremlin_run *run, struct gremlin_pile *pile, size_t want,
                                 struct gremlin_walkers *out, struct error *err);

/* Has what a step keeps since then (of gremlin_heap_used) taken its memory, and could it be put
 * aside? */
bool gremlin_run_should_spill(const struct gremlin_run *run, size_t used_before);
