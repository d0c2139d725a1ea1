#include "cli/time.h"

#include "base/clock.h"
#include "base/slice.h"

#include <time.h>

static bool span_read(const char *text, int direction, int64_t *ret_ms)
{
    static const struct {
        char letter;
        int64_t ms;
    } units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', 86400000}};
    size_t len = strlen(text);
    uint64_t count;

    for (size_t i = 0; i < ARRAY_LEN(units) && len > 1; i++)
        if (text[len - 1] == units[i].letter && slice_to_uint64(slice_of(text, len - 1), &count) &&
            count < 1000000) {
            *ret_ms = clock_wall_ms() + direction * (int64_t)count * units[i].ms;
            return true;
        }
    return false;
}

bool cli_time_read(const char *text, int direction, int64_t *ret_ms, struct error *err)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M",
                                        "%Y-%m-%d"};

    if (span_read(text, direction, ret_ms))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        struct tm tm = {0};
        const char *end = strptime(text, forms[i], &tm);

        if (end && !*end) {
            *ret_ms = (int64_t)timegm(&tm) * 1000;
            return true;
        }
    }
    return error_set(
        err, ERROR_BAD_REQUEST,
        "\"%s\" is no time: 2026-11-17, 2026-11-17T10:00:00 (UTC), or a span such as 30m, 2h, 7d",
        text);
}
