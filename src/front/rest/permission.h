/* Permissions on items. An id names an item within a logical partition only, so a permission on an
 * item that names no partition key would open that id under every key. */
#pragma once

#include "catalogue/catalogue.h"
#include "front/rest/reach.h"

/* The body of a permission that is to be kept: one on an item, by name and without a partition key,
 * gets the key of the one item of that id as its resourcePartitionKey. In the arena, or the body
 * itself. Blocks. ERROR_BAD_REQUEST: there is no such item, or there are several. */
NODISCARD bool rest_permission_bind(struct rest_call *call, struct slice body,
                                    struct slice *ret_body, struct error *err);

/* Is it on an item that may be several: by name, in a container with a partition key? Then it must
 * name one; permissions from before that was asked do not. */
bool rest_permission_needs_key(const struct rest_reach *permitted,
                               const struct container *container);
