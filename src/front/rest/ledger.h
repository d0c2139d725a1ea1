/* Ledger: the page docs/compatibility.md, made from operations.def and headers.def. */
#pragma once

#include "base/buf.h"

/* The NoSQL API: every operation and request header, and what becomes of it. */
void rest_ledger_print(struct buf *out);
