#include "front/date.h"

enum { DATE_LEN = 29 };

static bool digits(const uint8_t *at, size_t count, int *ret_number)
{
    *ret_number = 0;
    for (size_t i = 0; i < count; i++) {
        if (at[i] < '0' || at[i] > '9')
            return false;
        *ret_number = *ret_number * 10 + (at[i] - '0');
    }
    return true;
}

static int month_of(const uint8_t *at)
{
    static const char names[] = "janfebmaraprmayjunjulaugsepoctnovdec";

    for (int month = 0; month < 12; month++)
        if ((at[0] | 0x20) == names[month * 3] && (at[1] | 0x20) == names[month * 3 + 1] &&
            (at[2] | 0x20) == names[month * 3 + 2])
            return month + 1;
    return 0;
}

/* Days from 1970-01-01, by counting years from March so that the leap day comes last. */
static int64_t days_of(int year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t shifted = month <= 2 ? month + 9 : month - 3;
    int64_t in_year = (153 * shifted + 2) / 5 + day - 1;

    return y * 365 + y / 4 - y / 100 + y / 400 + in_year - 719468;
}

bool front_date_parse(struct slice text, int64_t *ret_wall_ms)
{
    int day, month, year, hour, minute, second;

    if (text.len != DATE_LEN || text.data[3] != ',' || text.data[4] != ' ' || text.data[7] != ' ' ||
        text.data[11] != ' ' || text.data[16] != ' ' || text.data[19] != ':' ||
        text.data[22] != ':' || !slice_equal_nocase(slice_skip(text, 25), SLICE(" GMT")))
        return false;
    month = month_of(text.data + 8);
    if (!digits(text.data + 5, 2, &day) || !month || !digits(text.data + 12, 4, &year) ||
        !digits(text.data + 17, 2, &hour) || !digits(text.data + 20, 2, &minute) ||
        !digits(text.data + 23, 2, &second))
        return false;
    if (day < 1 || day > 31 || year < 1 || hour > 23 || minute > 59 || second > 60)
        return false;
    *ret_wall_ms =
        ((days_of(year, month, day) * 24 + hour) * 60 + minute) * 60000LL + second * 1000LL;
    return true;
}
