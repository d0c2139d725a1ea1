/* Pending: collections that open transactions have made. They are there for the transaction alone
 * until it commits; to others there is nothing. Any thread. */
#pragma once

#include "base/attrs.h"

#include <stdint.h>

struct mongo_pending; /* opaque, owned */

struct mongo_pending *mongo_pending_new(void);
void mongo_pending_free(struct mongo_pending *pending); /* NULL is fine */

/* The container of this number is this owner's; and no longer. */
void mongo_pending_add(struct mongo_pending *pending, uint32_t container, const void *owner);
void mongo_pending_remove(struct mongo_pending *pending, uint32_t container);

/* Whose it is; NULL: nobody's, and so everybody's. */
const void *mongo_pending_owner(struct mongo_pending *pending, uint32_t container);
