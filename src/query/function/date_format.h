/* Dates in a form of the user's: the custom format specifiers of .NET, invariant culture, UTC. */
#pragma once

#include "base/buf.h"
#include "query/function/date.h"

/* Appends the date. Runs of these letters stand for parts:
 *
 *     d dd ddd dddd    day; name of the weekday      h hh H HH    hour of 12, of 24
 *     M MM MMM MMMM    month; its name               m mm s ss    minute, second
 *     y yy yyy yyyy    year                          t tt         A or P, AM or PM
 *     f .. fffffff     digits of the fraction; F leaves out zeros at the end
 *     z zz zzz K       the offset, always that of UTC
 *
 * \ takes the next character as it is, quotes all up to the next, and so is any other character. */
void query_date_format(int64_t ticks, struct slice format, struct buf *buf);
