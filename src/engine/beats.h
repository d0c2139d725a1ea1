/* Beats: the small commits by which a primary proves itself, numbered, and when each was sent.
 *
 * A copy of the node that shows beat n has everything that was acknowledged before n was sent: a
 * standby replays commits in their order. So one number, read in the same snapshot as the data,
 * tells how old the snapshot can be at most, by one clock, without arithmetic on positions in the
 * WAL.
 *
 * Numbers are given once: no two beats of this process have the same, and those of another process
 * are left behind by a jump. When the node moves to another primary, or is opened anew, only beats
 * sent from then on count: a standby that still follows the old primary never shows one of them. */
#pragma once

#include "base/attrs.h"

#include <stddef.h>
#include <stdint.h>

struct engine_beats; /* opaque, owned by its maker; any thread */

enum {
    ENGINE_BEATS_JUMP = 1 << 20, /* between processes: more than one can lose by a failover */
    ENGINE_BEATS_KEPT = 8192,    /* the last ones whose time is known exactly */
};

/* every_ms: a primary sends one so often. */
struct engine_beats *engine_beats_new(int64_t every_ms);
void engine_beats_free(struct engine_beats *beats); /* NULL is fine */
CLEANUP_FN(struct engine_beats *, engine_beats_free)

int64_t engine_beats_every_ms(const struct engine_beats *beats);

/* The node was opened and stands at beat `found`. */
void engine_beats_begin(struct engine_beats *beats, uint64_t found, int64_t now_ms);

/* Another primary is written to: what was sent before proves nothing any more. */
void engine_beats_move(struct engine_beats *beats, int64_t now_ms);

/* The number of a beat that is sent now, if may_send says so, which is asked with the numbers held
 * still. now_ms: read before. 0: it may not. */
uint64_t engine_beats_next(struct engine_beats *beats, int64_t now_ms,
                           bool (*may_send)(void *context), void *context);

/* When the beat was sent, at the earliest: exactly of those kept, else when the node moved last.
 * False: it is none of ours, or of before that. */
NODISCARD bool engine_beats_sent(struct engine_beats *beats, uint64_t number, int64_t *ret_ms);
