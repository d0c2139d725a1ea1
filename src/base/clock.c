#include "base/clock.h"

static int64_t read_ms(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t clock_wall_ms(void)
{
    return read_ms(CLOCK_REALTIME);
}

int64_t clock_monotonic_ms(void)
{
    return read_ms(CLOCK_MONOTONIC);
}

uint64_t clock_monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int64_t system_wall_ms(void *context UNUSED)
{
    return clock_wall_ms();
}

static int64_t system_monotonic_ms(void *context UNUSED)
{
    return clock_monotonic_ms();
}

const struct clock clock_system = {.wall_ms = system_wall_ms, .monotonic_ms = system_monotonic_ms};

int64_t clock_read_monotonic_us(const struct clock *clock)
{
    if (LIKELY(clock == &clock_system))
        return (int64_t)(clock_monotonic_ns() / 1000);
    return clock_read_monotonic_ms(clock) * 1000;
}

/* strftime would follow the locale; the names of HTTP dates never change. */
void clock_http_date(int64_t wall_ms, char ret_text[CLOCK_HTTP_DATE_LEN])
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm utc;
    char text[64];

    gmtime_r(&seconds, &utc);
    snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[utc.tm_wday],
             utc.tm_mday, months[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min,
             utc.tm_sec);
    memcpy(ret_text, text, CLOCK_HTTP_DATE_LEN);
}

void clock_iso(int64_t wall_ms, char ret_text[CLOCK_ISO_SIZE])
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm utc;
    char text[64];

    gmtime_r(&seconds, &utc);
    snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", utc.tm_year + 1900,
             utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
             (int)(wall_ms % 1000));
    memcpy(ret_text, text, CLOCK_ISO_SIZE);
}
