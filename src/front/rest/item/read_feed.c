#include "front/rest/item/read_feed.h"

#include "base/buf.h"
#include "base/bytes.h"

enum { FORMAT = 1 };

void rest_read_feed_init(struct rest_read_feed *feed, struct partition_range range)
{
    *feed = (struct rest_read_feed){.parts = {{.range = range}}, .count = 1};
}

static void first_drop(struct rest_read_feed *feed)
{
    feed->count--;
    memmove(feed->parts, feed->parts + 1, feed->count * sizeof *feed->parts);
}

bool rest_read_feed_advance(struct rest_read_feed *feed, struct slice bound, uint64_t number)
{
    assert(feed->count);
    if (slice_compare(bound, feed->parts[0].range.max) < 0) {
        if (feed->count == REST_READ_FEED_PARTS_MAX)
            return false;
        memmove(feed->parts + 1, feed->parts, feed->count * sizeof *feed->parts);
        feed->count++;
        feed->parts[0].range.max = bound;
        feed->parts[1].range.min = bound;
    }
    feed->parts[0].after = number;
    return true;
}

void rest_read_feed_finish(struct rest_read_feed *feed, struct slice bound)
{
    assert(feed->count);
    if (slice_compare(bound, feed->parts[0].range.max) < 0)
        feed->parts[0].range.min = bound;
    else
        first_drop(feed);
}

struct slice rest_read_feed_encode(const struct rest_read_feed *feed, struct arena *arena)
{
    CLEANUP(buf_done) struct buf bytes;
    uint8_t length[2];

    buf_init(&bytes, BUF_DEFAULT_MAX);
    buf_append_byte(&bytes, FORMAT);
    bytes_put_be16(length, (uint16_t)feed->parts[0].range.min.len);
    buf_append(&bytes, length, sizeof length);
    buf_append_slice(&bytes, feed->parts[0].range.min);
    for (size_t i = 0; i < feed->count; i++) {
        buf_append_be64(&bytes, feed->parts[i].after);
        bytes_put_be16(length, (uint16_t)feed->parts[i].range.max.len);
        buf_append(&bytes, length, sizeof length);
        buf_append_slice(&bytes, feed->parts[i].range.max);
    }
    return arena_copy(arena, buf_slice(&bytes));
}

static bool bound_read(struct slice *bytes, struct slice *ret_bound)
{
    size_t len;

    if (bytes->len < 2)
        return false;
    len = bytes_get_be16(bytes->data);
    *bytes = slice_skip(*bytes, 2);
    if (bytes->len < len)
        return false;
    *ret_bound = slice_first(*bytes, len);
    *bytes = slice_skip(*bytes, len);
    return true;
}

bool rest_read_feed_decode(struct slice bytes, struct rest_read_feed *ret_feed)
{
    struct rest_read_feed feed = {.count = 0};
    struct slice min;

    if (bytes.len < 1 || bytes.data[0] != FORMAT)
        return false;
    bytes = slice_skip(bytes, 1);
    if (!bound_read(&bytes, &min))
        return false;
    while (bytes.len) {
        struct rest_read_feed_part *part = &feed.parts[feed.count];

        if (feed.count++ == REST_READ_FEED_PARTS_MAX || bytes.len < 8)
            return false;
        part->after = bytes_get_be64(bytes.data);
        bytes = slice_skip(bytes, 8);
        part->range.min = min;
        if (!bound_read(&bytes, &part->range.max) ||
            slice_compare(part->range.min, part->range.max) >= 0)
            return false;
        min = part->range.max;
    }
    *ret_feed = feed;
    return feed.count > 0;
}
