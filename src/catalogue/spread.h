/* Containers with keys that are spread over several partitions (PARTITION_CUT_SPREAD): what such a
 * container cannot have, and cannot be given while a key of it is spread. */
#pragma once

#include "catalogue/catalogue.h"

/* ERROR_NOT_SUPPORTED: the container has, or is, something that takes whole keys. */
NODISCARD bool catalogue_spread_lets_migrate(const struct container *container,
                                             const struct migration_request *request,
                                             struct error *err);

/* May a container with a spread key have this definition? ERROR_NOT_SUPPORTED. */
NODISCARD bool catalogue_spread_lets_replace(const struct container *container,
                                             const struct definition *definition,
                                             struct error *err);

/* ERROR_PROMOTION_UNFIT. */
NODISCARD bool catalogue_spread_lets_promote(const struct container *container, struct error *err);
