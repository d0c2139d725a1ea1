/* Faults: what a client is told when the server or its surroundings failed.
 *
 * What a store, a file or the system said of it names directories and machines that are nobody's
 * business outside. Clients are told what the error means and what to do; the log keeps the words.
 */
#pragma once

#include "front/front.h"

/* Shared by all fronts: how often lines were written and left out. */
struct front_faults {
    atomic_int_fast64_t logged_ms; /* when the last line was written; 0: never */
    atomic_uint_fast64_t left_out; /* since then */
};

/* The message of an error for a client; borrowed from err, static, or in the arena. Where it is
 * another than err's, that is logged with the request's id, at most once a second. */
struct slice front_fault_tell(const struct front_services *services, const struct error *err,
                              const char *request_id, struct arena *arena);

/* The text with "(path)" in the place of whatever has a slash in it, up to its blank or quote. In
 * the arena, or the text itself. */
struct slice front_paths_hide(struct slice text, struct arena *arena);
