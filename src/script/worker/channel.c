#include "script/worker/channel.h"

#include "base/bytes.h"
#include "script/protocol.h"

#include <errno.h>
#include <unistd.h>

enum { READ_LEAST = 16 * 1024 };

/* Reads until there are `least` bytes, and up to `most` where more are there. */
static bool read_until(int descriptor, size_t least, size_t most, struct buf *frame)
{
    while (frame->len < least) {
        ssize_t got = read(descriptor, frame->data + frame->len, most - frame->len);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        frame->len += (size_t)got;
    }
    return true;
}

bool channel_read(int descriptor, bool alone, struct buf *frame)
{
    size_t len;

    buf_clear(frame);
    buf_reserve(frame, READ_LEAST);
    if (!read_until(descriptor, PROTOCOL_HEADER, alone ? READ_LEAST : PROTOCOL_HEADER, frame))
        return false;
    len = (size_t)bytes_get_le32(frame->data) + PROTOCOL_HEADER;
    if (len == PROTOCOL_HEADER || len > PROTOCOL_TO_WORKER_MAX || frame->len > len ||
        !buf_reserve(frame, len + 1 - frame->len) || !read_until(descriptor, len, len, frame))
        return false;
    frame->data[len] = 0;
    return true;
}

struct slice channel_frame(const struct buf *frame)
{
    return slice_skip(buf_slice(frame), PROTOCOL_HEADER);
}

bool channel_write(int descriptor, struct slice bytes)
{
    while (bytes.len) {
        ssize_t put = write(descriptor, bytes.data, bytes.len);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        bytes = slice_skip(bytes, (size_t)put);
    }
    return true;
}
