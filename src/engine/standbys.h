/* Standbys of a node: the hosts that may be read from in place of its primary, each behind a guard
 * of its own, so that one that hangs or is gone keeps no read waiting.
 *
 * There is one for every host of the node's URL, since after a failover it is another that is the
 * primary; the host that is the primary just now does not serve as a standby. They hang on the
 * node's guard and go with it. Reading from them is for reader.h. */
#pragma once

#include "engine/beats.h"
#include "engine/engine.h"

enum { ENGINE_STANDBYS_MAX = 8, ENGINE_STANDBY_NAME_SIZE = 128 };

/* Why a read that would have done with a standby was answered by the primary. */
enum engine_fallback {
    ENGINE_FALLBACK_AWAY,   /* no standby serves */
    ENGINE_FALLBACK_FAILED, /* it did not answer, or cancelled the read */
    ENGINE_FALLBACK_BEAT,   /* it is no standby, or shows no beat of the present primary */
    ENGINE_FALLBACK_EPOCH,  /* the partition is not there, or under another epoch */
    ENGINE_FALLBACK_OLD,    /* older than the level, or the container's definition, allows */
    ENGINE_FALLBACK_BEHIND, /* it lacks writes that the session, or the level, asks for */
    ENGINE_FALLBACK_AHEAD,  /* it has a write that was not acknowledged yet */
    ENGINE_FALLBACKS
};
const char *engine_fallback_name(enum engine_fallback fallback);

struct engine_standbys; /* opaque */

/* For the node that a URL names; NULL: it has no standbys. pattern: what the guard of each is made
 * with, but for its name and which host it is. The beats of the node are to be handed to its engine
 * (engine_options). */
struct engine_guard_options;
struct engine_standbys *engine_standbys_new(const struct engine_guard_options *pattern,
                                            int64_t beat_ms);
void engine_standbys_free(struct engine_standbys *standbys); /* NULL is fine */

struct engine_beats *engine_standbys_beats(const struct engine_standbys *standbys);

/* Those of a guarded node, borrowed; NULL: it has none. */
struct engine_standbys *engine_standbys_of(const struct engine *engine);

size_t engine_standbys_count(const struct engine_standbys *standbys);
struct engine *engine_standbys_at(const struct engine_standbys *standbys,
                                  size_t index); /* a guard */
const char *engine_standbys_name(const struct engine_standbys *standbys, size_t index);

/* One that serves now and gives its signs of life in time, of several another each time; or else,
 * where there is nobody but them to ask, one that serves. NULL: none does. */
struct engine *engine_standbys_pick(struct engine_standbys *standbys, bool alone,
                                    size_t *ret_index);

/* How old what it shows can be, in ms, as it was when it last gave a sign of life. False: not
 * known. */
NODISCARD bool engine_standbys_age(const struct engine_standbys *standbys, size_t index,
                                   int64_t now_ms, int64_t *ret_ms);

/* Counting, for figures. */
void engine_standbys_served(struct engine_standbys *standbys, size_t index);
void engine_standbys_fell_back(struct engine_standbys *standbys, enum engine_fallback why);
uint64_t engine_standbys_reads(const struct engine_standbys *standbys, size_t index);
uint64_t engine_standbys_fallbacks(const struct engine_standbys *standbys,
                                   enum engine_fallback why);

/* For tests of checkers alone: what a standby shows is taken without its proofs. */
void engine_standbys_trust(struct engine_standbys *standbys, bool blindly);
bool engine_standbys_are_trusted(const struct engine_standbys *standbys);

/* With the guard they hang on. */
void engine_standbys_keep(struct engine_standbys *standbys, const char *node_id);
void engine_standbys_leave(struct engine_standbys *standbys);
void engine_standbys_pause(struct engine_standbys *standbys, bool on);
NODISCARD bool engine_standbys_retire(struct engine_standbys *standbys);
