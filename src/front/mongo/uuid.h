/* The UUID of a collection, which stays with it: of the numbers it is known by, which are never
 * used again. */
#pragma once

#include "catalogue/catalogue.h"

/* Appends it as the field `name`. */
void mongo_uuid_append(const struct container *container, struct slice name, struct buf *out);
void mongo_uuid_append_numbers(uint32_t account, uint32_t database, uint32_t container,
                               struct slice name, struct buf *out);
