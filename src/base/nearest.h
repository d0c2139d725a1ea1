/* Nearest: which of several known names somebody meant by one that is not known.
 *
 * For messages only: `unknown setting "log.levle": did you mean "log.level"?` */
#pragma once

#include "base/slice.h"

enum { NEAREST_NAME_MAX = 64 }; /* bytes; longer names are near to nothing */

/* Insertions, deletions, replacements and swaps of neighbours that turn a into b; SIZE_MAX when
 * either is longer than NEAREST_NAME_MAX. */
size_t nearest_distance(struct slice a, struct slice b);

/* Follows the best candidate through a loop over names of any origin:
 *
 *     struct nearest nearest = nearest_to(wanted);
 *     for (...)
 *         nearest_offer(&nearest, name);
 *     if (nearest.name)  ...
 *
 * name stays NULL while no candidate is close: within a third of the wanted name's length. */
struct nearest {
    struct slice wanted;
    const char *name; /* borrowed from the caller of nearest_offer */
    size_t distance;
};

struct nearest nearest_to(struct slice wanted);
void nearest_offer(struct nearest *nearest, const char *name);
