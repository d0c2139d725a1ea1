#include "front/text.h"

int front_hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool front_percent_decode(struct slice text, struct arena *arena, struct slice *ret_text)
{
    uint8_t *decoded;
    size_t len = 0;

    if (text.len == 0 || !memchr(text.data, '%', text.len)) {
        *ret_text = text;
        return true;
    }
    decoded = arena_alloc(arena, text.len);
    for (size_t i = 0; i < text.len; i++) {
        int high, low;

        if (text.data[i] != '%') {
            decoded[len++] = text.data[i];
            continue;
        }
        if (text.len - i < 3 || (high = front_hex_digit(text.data[i + 1])) < 0 ||
            (low = front_hex_digit(text.data[i + 2])) < 0)
            return false;
        decoded[len++] = (uint8_t)(high << 4 | low);
        i += 2;
    }
    *ret_text = slice_of(decoded, len);
    return true;
}

void front_percent_encode(struct slice text, struct buf *out)
{
    static const char hex[] = "0123456789ABCDEF";

    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.data[i];

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            (c && strchr("-_.!~*'();/?:@&=+$,#", c))) {
            buf_append_byte(out, c);
        } else {
            buf_append_byte(out, '%');
            buf_append_byte(out, (uint8_t)hex[c >> 4]);
            buf_append_byte(out, (uint8_t)hex[c & 15]);
        }
    }
}

struct slice front_slashes_drop(struct slice path)
{
    while (path.len && path.data[path.len - 1] == '/')
        path.len--;
    return path;
}

struct slice front_lower(struct slice text, struct arena *arena)
{
    uint8_t *bytes = arena_alloc(arena, MAX(text.len, (size_t)1));

    for (size_t i = 0; i < text.len; i++)
        bytes[i] = text.data[i] >= 'A' && text.data[i] <= 'Z' ? text.data[i] | 0x20 : text.data[i];
    return slice_of(bytes, text.len);
}
