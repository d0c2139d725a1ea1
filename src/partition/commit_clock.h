/* Cluster time: one order over what all committers of a process write down in their histories
 * (history.h).
 *
 * A time is seconds since 1970 in the upper 32 bits and an increment in the lower, as MongoDB's
 * Timestamp. Every batch with changes gets one of its own when it is stamped. It never decreases
 * and is never behind the wall clock, nor behind what was found written (commit_clock_advance).
 *
 * A time is *settled* when nothing at or before it will appear any more: no committer is between
 * stamping a batch of that time and making it visible. Readers go no further than that.
 *
 * Besides, it knows when something of a kind was written last, by a hash of what the reader is
 * interested in: who waits need not look at what others write. Hashes may meet: then somebody
 * looks in vain.
 *
 * Any thread; nothing here waits but for a moment. */
#pragma once

#include "base/clock.h"

struct commit_clock; /* opaque, owned */

/* clock NULL: the system's; borrowed. */
struct commit_clock *commit_clock_new(const struct clock *clock);
void commit_clock_free(struct commit_clock *clock); /* NULL is fine; nobody is a member any more */
CLEANUP_FN(struct commit_clock *, commit_clock_free)

/* Now: at least every time that was given; those given later are above it. */
uint64_t commit_clock_now(struct commit_clock *clock);

/* No time up to this one is given any more. */
void commit_clock_advance(struct commit_clock *clock, uint64_t time);

/* Everything up to the result is visible, as far as it will ever be. */
uint64_t commit_clock_settled(struct commit_clock *clock);

/* When it began: what was noted before is not known. */
uint64_t commit_clock_started(const struct commit_clock *clock);

/* Something of this hash gets this time; and the last time that something did, 0: never. To be
 * noted before it is visible. */
void commit_clock_note(struct commit_clock *clock, uint64_t hash, uint64_t time);
uint64_t commit_clock_noted(const struct commit_clock *clock, uint64_t hash);

/* Called, on a committer's thread, whenever what is settled may have grown: must be quick. One
 * listener at a time; NULL: none. When this returns the listener before is not called any more. */
void commit_clock_listen(struct commit_clock *clock, void (*settled)(void *context), void *context);

/* A time that nothing has, above all that were given; and the listener called for it, once
 * something is noted with it: for who has made something visible beside the commit that told of it.
 */
uint64_t commit_clock_pass(struct commit_clock *clock);
void commit_clock_look(struct commit_clock *clock);

/* For committers. A member is between begin and end while it stamps and writes a group; ticks are
 * within. */
unsigned commit_clock_join(struct commit_clock *clock);
void commit_clock_leave(struct commit_clock *clock, unsigned member);
void commit_clock_begin(struct commit_clock *clock, unsigned member);
uint64_t commit_clock_tick(struct commit_clock *clock);
void commit_clock_end(struct commit_clock *clock, unsigned member);
