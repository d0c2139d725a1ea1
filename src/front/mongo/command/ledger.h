/* The page of the MongoDB API: which commands there are, and what errors are called. */
#pragma once

#include "base/buf.h"

void mongo_ledger_print(struct buf *out);
