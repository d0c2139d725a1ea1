/* The UUID of a collection, which stays with it: of the numbers it is known by, which are never
 * used again. */
#pragma once

#include "catalogue/catalogue.h"

/* Appends it as the field `name`. */
void mongo_uuid_append(const struct container *container, struct slice name, struct buf *out);
