#include "script/protocol.h"

#include "base/bytes.h"
#include "document/utf8.h"

enum { ABSENT = 0xFFFFFFFFu };

size_t protocol_begin(struct buf *buf, enum protocol_type type)
{
    size_t begin = buf->len;

    buf_append_le32(buf, 0);
    buf_append_byte(buf, (uint8_t)type);
    return begin;
}

void protocol_end(struct buf *buf, size_t begin)
{
    if (!buf_overflowed(buf))
        bytes_put_le32(buf->data + begin, (uint32_t)(buf->len - begin - PROTOCOL_HEADER));
}

void protocol_put_byte(struct buf *buf, uint8_t value)
{
    buf_append_byte(buf, value);
}

void protocol_put_number(struct buf *buf, uint32_t value)
{
    buf_append_le32(buf, value);
}

void protocol_put_long(struct buf *buf, uint64_t value)
{
    buf_append_le64(buf, value);
}

void protocol_put_text(struct buf *buf, struct slice text)
{
    if (!text.data) {
        buf_append_le32(buf, ABSENT);
        return;
    }
    if (text.len >= buf->max) {
        buf->overflowed = true;
        return;
    }
    buf_append_le32(buf, (uint32_t)text.len);
    buf_append_slice(buf, text);
}

void protocol_set_length(struct buf *buf, size_t begin)
{
    if (!buf_overflowed(buf))
        bytes_put_le32(buf->data + begin, (uint32_t)(buf->len - begin - 4));
}

/* The next len bytes, or NULL, and then the frame is broken for good. */
static const uint8_t *take(struct protocol_reader *reader, size_t len)
{
    const uint8_t *at = reader->rest.data;

    if (reader->broken || reader->rest.len < len) {
        reader->broken = true;
        return NULL;
    }
    reader->rest = slice_skip(reader->rest, len);
    return at;
}

uint8_t protocol_open(struct protocol_reader *reader, struct slice frame)
{
    *reader = (struct protocol_reader){.rest = frame};
    return protocol_get_byte(reader);
}

uint8_t protocol_get_byte(struct protocol_reader *reader)
{
    const uint8_t *at = take(reader, 1);

    return at ? *at : 0;
}

uint32_t protocol_get_number(struct protocol_reader *reader)
{
    const uint8_t *at = take(reader, 4);

    return at ? bytes_get_le32(at) : 0;
}

uint64_t protocol_get_long(struct protocol_reader *reader)
{
    const uint8_t *at = take(reader, 8);

    return at ? bytes_get_le64(at) : 0;
}

struct slice protocol_get_text(struct protocol_reader *reader)
{
    uint32_t len = protocol_get_number(reader);
    const uint8_t *at;

    if (reader->broken || len == ABSENT)
        return SLICE_NONE;
    at = take(reader, len);
    return at ? slice_of(at, len) : SLICE_NONE;
}

uint32_t protocol_get_count(struct protocol_reader *reader, uint32_t max, size_t least)
{
    uint32_t count = protocol_get_number(reader);

    if (reader->broken || count > max || (uint64_t)count * least > reader->rest.len) {
        reader->broken = true;
        return 0;
    }
    return count;
}

bool protocol_whole(const struct protocol_reader *reader)
{
    return !reader->broken && reader->rest.len == 0;
}

bool protocol_is_text(struct slice text)
{
    return utf8_valid_length(text) == text.len;
}
