#include "base/slice.h"

#include "base/memory.h"

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

bool slice_equal_nocase(struct slice a, struct slice b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.data[i]) != lower(b.data[i]))
            return false;
    return true;
}

struct slice slice_trim(struct slice s)
{
    while (s.len && (s.data[0] == ' ' || s.data[0] == '\t'))
        s = slice_skip(s, 1);
    while (s.len && (s.data[s.len - 1] == ' ' || s.data[s.len - 1] == '\t'))
        s.len--;
    return s;
}

bool slice_split(struct slice s, uint8_t c, struct slice *ret_head, struct slice *ret_tail)
{
    const uint8_t *at = s.len ? memchr(s.data, c, s.len) : NULL;
    size_t head;

    if (!at)
        return false;
    head = (size_t)(at - s.data);
    *ret_head = slice_first(s, head);
    *ret_tail = slice_skip(s, head + 1);
    return true;
}

bool slice_to_uint64(struct slice s, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] < '0' || s.data[i] > '9')
            return false;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(s.data[i] - '0'), &value))
            return false;
    }
    *ret_value = value;
    return true;
}

char *slice_to_text(struct slice s)
{
    char *text = memory_alloc(s.len + 1);

    if (s.len)
        memcpy(text, s.data, s.len);
    text[s.len] = '\0';
    return text;
}
