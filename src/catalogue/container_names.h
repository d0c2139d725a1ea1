/* Container names: what people call a container's account and database, for log lines and reports.
 * A container itself knows only their numbers. */
#pragma once

#include "catalogue/catalogue.h"

struct container_names {
    struct slice account, database; /* in an arena; empty: it is gone */
};

/* Goes through the accounts: for what happens now and then. */
struct container_names container_names(struct catalogue *catalogue,
                                       const struct container *container, struct arena *arena);

/* Puts "container "shop/orders"" before the message, for a line that is about that container. */
void container_names_prefix(struct catalogue *catalogue, const struct container *container,
                            struct error *err);
