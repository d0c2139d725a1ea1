#include "script/worker/channel.h"

#include "base/bytes.h"
#include "script/protocol.h"

#include <errno.h>
#include <unistd.h>

static bool read_whole(int descriptor, uint8_t *to, size_t len)
{
    while (len) {
        ssize_t got = read(descriptor, to, len);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        len -= (size_t)got;
    }
    return true;
}

bool channel_read(int descriptor, struct buf *frame)
{
    uint8_t header[PROTOCOL_HEADER];
    size_t len;

    buf_clear(frame);
    if (!read_whole(descriptor, header, sizeof header))
        return false;
    len = bytes_get_le32(header);
    if (len == 0 || len > PROTOCOL_TO_WORKER_MAX || !buf_reserve(frame, len + 1) ||
        !read_whole(descriptor, frame->data, len))
        return false;
    frame->len = len;
    frame->data[len] = 0;
    return true;
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
