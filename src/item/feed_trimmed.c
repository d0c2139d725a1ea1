#include "item/feed_trimmed.h"

#include "base/bytes.h"
#include "item/feed.h"

enum { FORMAT_ONE = 1, FORMAT_RANGES = 2 };

static bool broken(struct error *err)
{
    return error_set(err, ERROR_STORE_CORRUPT, "a mark of the feed has no known format");
}

static bool range_decode(struct slice *rest, struct feed_trimmed_range *ret_range)
{
    size_t len = rest->len < 2 ? SIZE_MAX : bytes_get_be16(rest->data);

    if (len == SIZE_MAX || rest->len < 2 + len + 8)
        return false;
    ret_range->min = slice_of(rest->data + 2, len);
    ret_range->lsn = bytes_get_be64(rest->data + 2 + len);
    *rest = slice_skip(*rest, 2 + len + 8);
    return true;
}

bool feed_trimmed_decode(struct slice value, struct feed_trimmed *ret_trimmed, struct error *err)
{
    struct slice rest = value.len ? slice_skip(value, 1) : value;

    ret_trimmed->count = 0;
    if (value.len == FEED_MARK_LEN && value.data[0] == FORMAT_ONE) {
        ret_trimmed->ranges[ret_trimmed->count++] =
            (struct feed_trimmed_range){SLICE(""), bytes_get_be64(rest.data)};
        return true;
    }
    if (value.len < 2 || value.data[0] != FORMAT_RANGES)
        return broken(err);
    while (rest.len) {
        struct feed_trimmed_range *range = &ret_trimmed->ranges[ret_trimmed->count];

        if (ret_trimmed->count == FEED_TRIMMED_RANGES_MAX || !range_decode(&rest, range) ||
            (ret_trimmed->count ? slice_compare(range[-1].min, range->min) >= 0 : range->min.len))
            return broken(err);
        ret_trimmed->count++;
    }
    return true;
}

struct slice feed_trimmed_encode(const struct feed_trimmed *trimmed, struct arena *arena)
{
    size_t len = 1;
    uint8_t *bytes, *at;

    if (feed_trimmed_within(trimmed, SLICE_NONE, SLICE_NONE) == 0)
        return SLICE_NONE;
    if (trimmed->count == 1) {
        bytes = arena_alloc(arena, FEED_MARK_LEN);
        feed_mark_encode(trimmed->ranges[0].lsn, bytes);
        return slice_of(bytes, FEED_MARK_LEN);
    }
    for (size_t i = 0; i < trimmed->count; i++)
        len += 2 + trimmed->ranges[i].min.len + 8;
    bytes = at = arena_alloc(arena, len);
    *at++ = FORMAT_RANGES;
    for (size_t i = 0; i < trimmed->count; i++) {
        struct slice min = trimmed->ranges[i].min;

        assert(min.len <= UINT16_MAX);
        bytes_put_be16(at, (uint16_t)min.len);
        if (min.len)
            memcpy(at + 2, min.data, min.len);
        bytes_put_be64(at + 2 + min.len, trimmed->ranges[i].lsn);
        at += 2 + min.len + 8;
    }
    assert(at == bytes + len);
    return slice_of(bytes, len);
}

uint64_t feed_trimmed_within(const struct feed_trimmed *trimmed, struct slice min, struct slice max)
{
    uint64_t lsn = 0;

    for (size_t i = 0; i < trimmed->count; i++) {
        bool ends_before = min.data && i + 1 < trimmed->count &&
                           slice_compare(trimmed->ranges[i + 1].min, min) <= 0;
        bool begins_behind = max.data && slice_compare(trimmed->ranges[i].min, max) >= 0;

        if (!ends_before && !begins_behind)
            lsn = MAX(lsn, trimmed->ranges[i].lsn);
    }
    return lsn;
}

void feed_trimmed_note(struct feed_trimmed *trimmed, struct slice key, uint64_t lsn)
{
    size_t at = 0;

    assert(trimmed->count <= FEED_TRIMMED_RANGES_MAX);
    if (trimmed->count == 0)
        trimmed->ranges[trimmed->count++] = (struct feed_trimmed_range){SLICE(""), 0};
    while (at + 1 < trimmed->count && slice_compare(trimmed->ranges[at + 1].min, key) <= 0)
        at++;
    trimmed->ranges[at].lsn = MAX(trimmed->ranges[at].lsn, lsn);
}

/* What follows is of this LSN. */
static void range_add(struct feed_trimmed *trimmed, struct slice min, uint64_t lsn)
{
    struct feed_trimmed_range *last = trimmed->count ? &trimmed->ranges[trimmed->count - 1] : NULL;

    assert(!last || slice_compare(last->min, min) <= 0);
    if (!last)
        min = SLICE("");
    if (last && last->lsn == lsn)
        return;
    if (trimmed->count == FEED_TRIMMED_RANGES_MAX)
        last->lsn = MAX(last->lsn, lsn);
    else
        trimmed->ranges[trimmed->count++] = (struct feed_trimmed_range){min, lsn};
}

void feed_trimmed_join(struct feed_trimmed *trimmed, const struct feed_trimmed *other,
                       struct slice min, struct slice max)
{
    assert(slice_compare(min, max) < 0);
    if (other->count == 0)
        range_add(trimmed, min, 0);
    for (size_t i = 0; i < other->count; i++) {
        struct slice from =
            slice_compare(other->ranges[i].min, min) > 0 ? other->ranges[i].min : min;

        if (slice_compare(from, max) >= 0 ||
            (i + 1 < other->count && slice_compare(other->ranges[i + 1].min, min) <= 0))
            continue;
        range_add(trimmed, from, other->ranges[i].lsn);
    }
}
