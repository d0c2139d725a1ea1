/* Dates as HTTP headers write them. */
#pragma once

#include "base/slice.h"

/* Reads "Thu, 27 Apr 2017 00:51:12 GMT", in any case; the name of the day is not checked. False:
 * it is none. */
NODISCARD bool front_date_parse(struct slice text, int64_t *ret_wall_ms);
