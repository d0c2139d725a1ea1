/* Ready: which partitions serve, for balancers and people. */
#pragma once

#include "base/buf.h"
#include "catalogue/catalogue.h"

/* Appends a JSON object: the nodes with their states, and of the partitions that do not serve how
 * many there are and the first of them. False: some do not. Waits for no node. */
bool ready_print(struct catalogue *catalogue, struct buf *out);
