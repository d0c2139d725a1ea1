/* Times on the command line. */
#pragma once

#include "base/error.h"

/* "2026-11-17", "2026-11-17T10:00" or with seconds, in UTC; or a span from now, "30m": direction -1
 * ago, 1 to come. Milliseconds since 1970. ERROR_BAD_REQUEST. */
NODISCARD bool cli_time_read(const char *text, int direction, int64_t *ret_ms, struct error *err);
