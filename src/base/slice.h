/* Slice: bytes somebody else owns, passed by value. Never NUL-terminated, never written through.
 *
 * SLICE("text") makes one of a literal; slice_of(pointer, length) of anything else. A slice with
 * data NULL is "absent", which differs from empty only where a function says so. */
#pragma once

#include "base/attrs.h"

struct slice {
    const uint8_t *data;
    size_t len;
};

#define SLICE(literal) ((struct slice){(const uint8_t *)("" literal), sizeof(literal) - 1})
#define SLICE_NONE ((struct slice){NULL, 0})

/* For printf: printf("%.*s", SLICE_ARG(s)). */
#define SLICE_ARG(slice) (int)(slice).len, (const char *)(slice).data

static inline struct slice slice_of(const void *data, size_t len)
{
    return (struct slice){data, len};
}

static inline struct slice slice_of_text(const char *text)
{
    return (struct slice){(const uint8_t *)text, strlen(text)};
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* Bytewise, a prefix sorts first: below, at or above zero. */
static inline int slice_compare(struct slice a, struct slice b)
{
    size_t shorter = a.len < b.len ? a.len : b.len;
    int order = shorter ? memcmp(a.data, b.data, shorter) : 0;

    if (order)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

static inline bool slice_starts_with(struct slice s, struct slice prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.data, prefix.data, prefix.len) == 0);
}

static inline struct slice slice_skip(struct slice s, size_t count)
{
    assert(count <= s.len);
    return (struct slice){s.data + count, s.len - count};
}

static inline struct slice slice_first(struct slice s, size_t count)
{
    assert(count <= s.len);
    return (struct slice){s.data, count};
}

/* ASCII letters without case; other bytes as they are. */
bool slice_equal_nocase(struct slice a, struct slice b);

/* Without leading and trailing blanks and tabs. */
struct slice slice_trim(struct slice s);

/* Cuts s at the first byte c: ret_head before it, ret_tail after it. False (and nothing written)
 * when c does not occur. */
bool slice_split(struct slice s, uint8_t c, struct slice *ret_head, struct slice *ret_tail);

/* Decimal digits only: no sign, no blanks, no overflow. */
NODISCARD bool slice_to_uint64(struct slice s, uint64_t *ret_value);

/* A C string on the heap, to be freed with memory_free. */
char *slice_to_text(struct slice s);
