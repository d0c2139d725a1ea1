/* The ledger of the Table API: every operation and every error code, as a page of the manual. */
#pragma once

#include "base/buf.h"

void table_ledger_print(struct buf *out);
