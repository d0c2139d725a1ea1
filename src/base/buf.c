#include "base/buf.h"

#include "base/bytes.h"
#include "base/memory.h"

#include <stdarg.h>

enum { CAPACITY_MIN = 64 };

void buf_init(struct buf *buf, size_t max)
{
    *buf = (struct buf){.max = max};
}

void buf_done(struct buf *buf)
{
    memory_free(buf->data);
    *buf = (struct buf){.max = buf->max};
}

bool buf_reserve_slow(struct buf *buf, size_t count)
{
    size_t wanted, capacity;

    if (__builtin_add_overflow(buf->len, count, &wanted) || wanted > buf->max) {
        buf->overflowed = true;
        return false;
    }
    capacity = MAX(buf->capacity, (size_t)CAPACITY_MIN);
    while (capacity < wanted)
        capacity *= 2;
    buf->capacity = MAX(MIN(capacity, buf->max), wanted);
    buf->data = memory_realloc(buf->data, buf->capacity);
    return true;
}

void buf_append_text(struct buf *buf, const char *text)
{
    buf_append(buf, text, strlen(text));
}

void buf_append_uint64(struct buf *buf, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    buf_append(buf, digits + at, sizeof digits - at);
}

void buf_append_int64(struct buf *buf, int64_t value)
{
    if (value < 0)
        buf_append_byte(buf, '-');
    buf_append_uint64(buf, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void buf_append_be32(struct buf *buf, uint32_t value)
{
    uint8_t bytes[4];

    bytes_put_be32(bytes, value);
    buf_append(buf, bytes, sizeof bytes);
}

void buf_append_be64(struct buf *buf, uint64_t value)
{
    uint8_t bytes[8];

    bytes_put_be64(bytes, value);
    buf_append(buf, bytes, sizeof bytes);
}

void buf_append_le32(struct buf *buf, uint32_t value)
{
    uint8_t bytes[4];

    bytes_put_le32(bytes, value);
    buf_append(buf, bytes, sizeof bytes);
}

void buf_append_le64(struct buf *buf, uint64_t value)
{
    uint8_t bytes[8];

    bytes_put_le64(bytes, value);
    buf_append(buf, bytes, sizeof bytes);
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args, again;
    int length;

    va_start(args, format);
    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, args);
    assert(length >= 0);
    /* One byte more than is kept: vsnprintf insists on its NUL. */
    if (buf_reserve(buf, (size_t)length + 1)) {
        vsnprintf((char *)buf->data + buf->len, (size_t)length + 1, format, again);
        buf->len += (size_t)length;
    }
    va_end(again);
    va_end(args);
}

void buf_consume(struct buf *buf, size_t count)
{
    assert(count <= buf->len);
    buf->len -= count;
    if (buf->len && count)
        memmove(buf->data, buf->data + count, buf->len);
}

uint8_t *buf_take(struct buf *buf, size_t *ret_len)
{
    uint8_t *data = buf->data;

    *ret_len = buf->len;
    *buf = (struct buf){.max = buf->max};
    return data;
}
