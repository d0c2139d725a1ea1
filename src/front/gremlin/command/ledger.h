#pragma once

#include "base/buf.h"

/* The ledger of the Gremlin API, as a page of the manual. */
void gremlin_ledger_print(struct buf *out);
