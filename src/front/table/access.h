/* Access policies: stored with a table, named by shared access signatures. They are the member
 * accessPolicies of what a container is beyond the service (orrery). */
#pragma once

#include "catalogue/catalogue.h"

enum { TABLE_POLICIES_MAX = 5 };

/* Texts as they were given; empty: not said. Borrowed from the container. */
struct table_access_policy {
    struct slice id, start, expiry, permission;
};

/* All of them, in the order given. */
size_t table_access_list(const struct container *container,
                         struct table_access_policy ret_policies[TABLE_POLICIES_MAX]);

bool table_access_find(const struct container *container, struct slice id,
                       struct table_access_policy *ret_policy);
