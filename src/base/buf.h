/* Buf: bytes that grow, up to a maximum named at the start.
 *
 * Appending past the maximum leaves the content alone and marks the buffer; the writer looks once
 * at the end (buf_overflowed) and answers 413. So no append needs its own check. */
#pragma once

#include "base/slice.h"

struct buf {
    uint8_t *data; /* owned */
    size_t len, capacity;
    size_t max;
    bool overflowed;
};

enum { BUF_DEFAULT_MAX = 64 * 1024 * 1024 };

void buf_init(struct buf *buf, size_t max);
void buf_done(struct buf *buf);
CLEANUP_VALUE_FN(struct buf, buf_done)

/* Forgets the content and the overflow, keeps the memory. */
static inline void buf_clear(struct buf *buf)
{
    buf->len = 0;
    buf->overflowed = false;
}

static inline struct slice buf_slice(const struct buf *buf)
{
    return slice_of(buf->data, buf->len);
}

static inline bool buf_overflowed(const struct buf *buf)
{
    return buf->overflowed;
}

/* Makes room for count more bytes. False when that passes the maximum. */
bool buf_reserve_slow(struct buf *buf, size_t count);
static inline bool buf_reserve(struct buf *buf, size_t count)
{
    if (LIKELY(buf->capacity - buf->len >= count))
        return true;
    return buf_reserve_slow(buf, count);
}

static inline void buf_append(struct buf *buf, const void *data, size_t len)
{
    if (LIKELY(len && buf_reserve(buf, len))) {
        memcpy(buf->data + buf->len, data, len);
        buf->len += len;
    }
}

static inline void buf_append_slice(struct buf *buf, struct slice s)
{
    buf_append(buf, s.data, s.len);
}

static inline void buf_append_byte(struct buf *buf, uint8_t byte)
{
    if (LIKELY(buf_reserve(buf, 1)))
        buf->data[buf->len++] = byte;
}

#define BUF_APPEND(buf, literal) buf_append((buf), "" literal, sizeof(literal) - 1)

void buf_append_text(struct buf *buf, const char *text);
void buf_append_uint64(struct buf *buf, uint64_t value); /* decimal */
void buf_append_int64(struct buf *buf, int64_t value);
void buf_append_be32(struct buf *buf, uint32_t value);
void buf_append_be64(struct buf *buf, uint64_t value);
void buf_append_le32(struct buf *buf, uint32_t value);
void buf_append_le64(struct buf *buf, uint64_t value);
void buf_printf(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);

/* Drops the first count bytes and moves the rest down. */
void buf_consume(struct buf *buf, size_t count);

/* Gives the bytes away to the caller, who frees them with memory_free; the buffer is empty. */
uint8_t *buf_take(struct buf *buf, size_t *ret_len);
