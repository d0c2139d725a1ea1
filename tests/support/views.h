/* Views as they should be: what the query of a view makes of all items of its sources, from
 * scratch, against what the view holds. */
#pragma once

#include "catalogue/catalogue.h"
#include "item/items.h"

enum { VIEWS_ITEMS_MAX = 4096 };

/* All items of a container, in the arena. */
struct item *views_items(struct container *container, struct arena *arena, size_t *ret_count);

/* The view of that name holds the rows of its query, each once, and nothing else; its entries agree
 * with them. Ends the test where they differ. Of what is followed by now: views are brought up to
 * date before. */
void views_expect(struct catalogue *catalogue, struct slice account, struct slice database,
                  const char *id);
