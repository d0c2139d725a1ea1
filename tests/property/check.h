/* Check: everything a partition should hold according to the model, against everything it holds. */
#pragma once

#include "property/model.h"

/* NULL: every key and value of every partition is as it should be, and no other is there. Else what
 * differs first, in the arena. Reads go through the engine as it is, faults and all. */
const char *check_difference(const struct model *model, struct arena *arena);
