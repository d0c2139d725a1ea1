#include "peer/frame.h"

#include "base/bytes.h"
#include "base/memory.h"

void peer_frame_append(struct net_output *output, const struct peer_frame *frame)
{
    uint8_t head[PEER_FRAME_HEAD_BYTES];

    assert(frame->len <= UINT32_MAX);
    bytes_put_be32(head, (uint32_t)frame->len);
    head[4] = (uint8_t)frame->kind;
    head[5] = frame->flags;
    bytes_put_be16(head + 6, frame->number);
    bytes_put_be64(head + 8, frame->id);
    net_output_append(output, slice_of(head, sizeof head));
}

void peer_frame_reader_init(struct peer_frame_reader *reader, size_t len_max)
{
    *reader = (struct peer_frame_reader){.len_max = len_max};
}

void peer_frame_reader_done(struct peer_frame_reader *reader)
{
    memory_free(TAKE(reader->payload));
}

uint8_t *peer_frame_payload_take(struct peer_frame_reader *reader)
{
    return TAKE(reader->payload);
}

static bool head_read(const uint8_t *head, size_t len_max, struct peer_frame *ret_frame,
                      struct error *err)
{
    *ret_frame = (struct peer_frame){
        .kind = (enum peer_frame_kind)head[4],
        .flags = head[5],
        .number = bytes_get_be16(head + 6),
        .id = bytes_get_be64(head + 8),
        .len = bytes_get_be32(head),
    };
    if (head[4] < PEER_FRAME_REQUEST || head[4] > PEER_FRAME_LEASE_RETURN)
        return error_set(err, ERROR_BAD_REQUEST, "there is no frame of kind %u", head[4]);
    if (ret_frame->len > len_max)
        return error_set(err, ERROR_BAD_REQUEST, "a frame of %zu bytes is longer than %zu",
                         ret_frame->len, len_max);
    return true;
}

/* The rest of a payload that did not come whole. */
static void payload_read(struct peer_frame_reader *reader, struct slice bytes, size_t *ret_taken,
                         bool *ret_done, struct peer_frame *ret_frame)
{
    size_t count = MIN(bytes.len, reader->frame.len - reader->payload_len);

    if (count)
        memcpy(reader->payload + reader->payload_len, bytes.data, count);
    reader->payload_len += count;
    *ret_taken += count;
    if (reader->payload_len < reader->frame.len)
        return;
    reader->in_payload = false;
    *ret_frame = reader->frame;
    ret_frame->payload = slice_of(reader->payload, reader->payload_len);
    *ret_done = true;
}

bool peer_frame_read(struct peer_frame_reader *reader, struct slice bytes, size_t *ret_taken,
                     bool *ret_done, struct peer_frame *ret_frame, struct error *err)
{
    *ret_taken = 0;
    *ret_done = false;
    if (!reader->in_payload) {
        peer_frame_reader_done(reader); /* of the frame before */
        if (bytes.len < PEER_FRAME_HEAD_BYTES)
            return true;
        if (!head_read(bytes.data, reader->len_max, &reader->frame, err))
            return false;
        *ret_taken = PEER_FRAME_HEAD_BYTES;
        bytes = slice_skip(bytes, PEER_FRAME_HEAD_BYTES);
        if (bytes.len >= reader->frame.len) {
            *ret_frame = reader->frame;
            ret_frame->payload = slice_first(bytes, reader->frame.len);
            *ret_taken += reader->frame.len;
            *ret_done = true;
            return true;
        }
        reader->in_payload = true;
        reader->payload = memory_alloc(reader->frame.len);
        reader->payload_len = 0;
    }
    payload_read(reader, bytes, ret_taken, ret_done, ret_frame);
    return true;
}
