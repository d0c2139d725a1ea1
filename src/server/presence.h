/* Presence: the note a running server leaves for the commands of its own user, so that they find
 * its endpoint, its directory and whether it takes the public key without being told.
 *
 * A note holds no secret. It stands in a directory of the user's own
 * ($XDG_STATE_HOME/orrery/servers, else ~/.local/state/orrery/servers) and is locked for as long as
 * its server lives: one that is not locked was left behind by a server that was killed, and is not
 * believed. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

enum { PRESENCE_NOTES_MAX = 64 }; /* that are looked at */

struct presence_note {
    const char *endpoint;  /* "http://127.0.0.1:8081": where this machine reaches it */
    const char *directory; /* with the file of keys and the authority; "": it keeps none */
    bool dev;              /* takes the public emulator key */
};

struct presence; /* opaque, owned: a note that is left */

/* Leaves a note, and clears away those of servers that are gone. ERROR_SYSTEM: there is no place
 * for it, which is no reason not to serve. */
NODISCARD bool presence_leave(const struct presence_note *note, struct presence **ret_presence,
                              struct error *err);
void presence_take_back(struct presence *presence); /* NULL is fine */
CLEANUP_FN(struct presence *, presence_take_back)

/* The notes of servers that run, in arena, in no order; 0 where nobody ever left one. */
size_t presence_list(struct arena *arena, struct presence_note notes[PRESENCE_NOTES_MAX]);
