/* Paths of the port that REST and administration share: segments, and the account that may stand
 * before them. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

enum { FRONT_PATH_SEGMENTS_MAX = 12 };

/* A path as its segments, as sent and percent-decoded; borrowed or in the arena. */
struct front_path {
    struct slice raw[FRONT_PATH_SEGMENTS_MAX], decoded[FRONT_PATH_SEGMENTS_MAX];
    size_t count;
    struct slice account; /* of the prefix /{account}, which is no segment; data NULL: none */
    struct slice prefix;  /* the same as sent, with its slash: "/name" */
};

/* Takes a path apart. Slashes at its end mean nothing. ERROR_BAD_REQUEST: a broken escape, an empty
 * segment. ERROR_NOT_FOUND: too many. */
NODISCARD bool front_path_split(struct slice path, struct arena *arena, struct front_path *ret_path,
                                struct error *err);

/* Whether a path, or what stands behind the account in it, begins with the word. Cheap: most
 * requests are asked. */
bool front_path_begins(struct slice path, struct slice word);

/* Whether it is /_orrery/word/..., with an account before it or not: a door of another API on the
 * port. */
bool front_path_is_door(struct slice path, struct slice word);

/* The parts with slashes between them; in the arena. */
struct slice front_path_join(const struct slice *parts, size_t count, struct arena *arena);
