/* Clock: the time as milliseconds, read in few places and handed on as `now_ms`.
 *
 * Deadlines and durations use the monotonic clock; stamps that people and clients see use the
 * wall clock. Tests hand in a struct clock of their own and turn its hands themselves. */
#pragma once

#include "base/slice.h"

struct clock {
    int64_t (*wall_ms)(void *context);
    int64_t (*monotonic_ms)(void *context);
    void *context;
};

/* The system's clocks. */
extern const struct clock clock_system;

int64_t clock_wall_ms(void);
int64_t clock_monotonic_ms(void);
uint64_t clock_monotonic_ns(void);

static inline int64_t clock_read_wall_ms(const struct clock *clock)
{
    return clock->wall_ms(clock->context);
}

static inline int64_t clock_read_monotonic_ms(const struct clock *clock)
{
    return clock->monotonic_ms(clock->context);
}

/* The monotonic clock to the microsecond; a clock handed in is only as fine as its milliseconds. */
int64_t clock_read_monotonic_us(const struct clock *clock);

/* "Thu, 27 Apr 2017 00:51:12 GMT", the 29 characters of RFC 9110, without a NUL. */
enum { CLOCK_HTTP_DATE_LEN = 29 };
void clock_http_date(int64_t wall_ms, char ret_text[CLOCK_HTTP_DATE_LEN]);

/* "2017-04-27T00:51:12.345Z", NUL-terminated. */
enum { CLOCK_ISO_SIZE = 25 };
void clock_iso(int64_t wall_ms, char ret_text[CLOCK_ISO_SIZE]);
