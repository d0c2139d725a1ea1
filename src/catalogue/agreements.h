/* The transactions over several nodes of a catalogue's cluster (item/agreements.h). They are
 * recovered when it is opened, and before a node that was away serves again. */
#pragma once

#include "catalogue/catalogue.h"
#include "item/agreements.h"

/* Lives as long as the catalogue. */
struct agreements *catalogue_agreements(const struct catalogue *catalogue);
