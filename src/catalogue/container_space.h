/* How the items of a container of the catalogue are got at: its map, its nodes, its limits. */
#pragma once

#include "catalogue/catalogue.h"
#include "item/items.h"

/* Borrowed while the container is held; gates may be NULL. */
struct item_space container_space(struct container *container, const struct clock *clock,
                                  struct item_gates *gates);
