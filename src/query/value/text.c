#include "query/value/text.h"

#include "document/utf8.h"

#include <utf8proc.h>

bool query_text_is_ascii(struct slice text)
{
    size_t i = 0;

    for (; i + 8 <= text.len; i += 8) {
        uint64_t eight;

        memcpy(&eight, text.data + i, sizeof eight);
        if (eight & 0x8080808080808080)
            return false;
    }
    for (; i < text.len; i++) {
        if (text.data[i] & 0x80)
            return false;
    }
    return true;
}

uint32_t query_text_decode(const uint8_t *at, const uint8_t *end, size_t *ret_len)
{
    size_t len = utf8_length(at, end);

    *ret_len = len ? len : 1;
    switch (len) {
    case 2:
        return (uint32_t)(at[0] & 0x1F) << 6 | (at[1] & 0x3F);
    case 3:
        return (uint32_t)(at[0] & 0x0F) << 12 | (uint32_t)(at[1] & 0x3F) << 6 | (at[2] & 0x3F);
    case 4:
        return (uint32_t)(at[0] & 0x07) << 18 | (uint32_t)(at[1] & 0x3F) << 12 |
               (uint32_t)(at[2] & 0x3F) << 6 | (at[3] & 0x3F);
    default:
        return at[0];
    }
}

/* --- Positions ------------------------------------------------------------------------------- */

/* Every byte that begins a character is a unit, and of four bytes two. */
uint64_t query_text_units(struct slice text)
{
    uint64_t units = 0;

    for (size_t i = 0; i < text.len; i++)
        units += (text.data[i] & 0xC0) != 0x80 ? 1u + (text.data[i] >= 0xF0) : 0;
    return units;
}

size_t query_text_offset(struct slice text, uint64_t unit, bool *ret_inside)
{
    const uint8_t *at = text.data, *end = text.data + text.len;

    *ret_inside = false;
    while (at < end && unit > 0) {
        size_t len;
        uint32_t code = query_text_decode(at, end, &len);
        unsigned units = code >= 0x10000 ? 2 : 1;

        if (units > unit) {
            *ret_inside = true;
            break;
        }
        unit -= units;
        at += len;
    }
    return (size_t)(at - text.data);
}

/* Half of the four-byte character at `at`, as a surrogate of its own. */
static void surrogate_append(struct buf *buf, const uint8_t *at, const uint8_t *end, bool low)
{
    uint8_t bytes[4];
    size_t len;
    uint32_t code = query_text_decode(at, end, &len) - 0x10000;

    len = utf8_encode(low ? 0xDC00 | (code & 0x3FF) : 0xD800 | code >> 10, bytes);
    buf_append(buf, bytes, len);
}

/* The rare case: at least one end of the part is inside a character. */
static bool cut_inside(struct slice text, size_t from, bool from_inside, size_t to, bool to_inside,
                       struct query_context *context, struct slice *ret_part, struct error *err)
{
    const uint8_t *end = text.data + text.len;
    size_t mark = query_build_begin(context);

    if (from_inside) {
        surrogate_append(&context->scratch, text.data + from, end, true);
        from += 4;
    }
    if (to > from)
        buf_append(&context->scratch, text.data + from, to - from);
    if (to_inside)
        surrogate_append(&context->scratch, text.data + to, end, false);
    return query_build_end(context, mark, ret_part, err);
}

bool query_text_cut(struct slice text, uint64_t start, uint64_t count,
                    struct query_context *context, struct slice *ret_part, struct error *err)
{
    bool from_inside = false, to_inside = false;
    uint64_t stop;
    size_t from, to;

    if (__builtin_add_overflow(start, count, &stop))
        stop = UINT64_MAX;
    if (!query_work(context, text.len >> 4, err))
        return false;
    if (count == 0 || text.len == 0) {
        *ret_part = SLICE("");
        return true;
    }
    if (query_text_is_ascii(text)) {
        from = MIN((uint64_t)text.len, start);
        to = MIN((uint64_t)text.len, stop);
    } else {
        from = query_text_offset(text, start, &from_inside);
        to = query_text_offset(text, stop, &to_inside);
    }
    if (from_inside || to_inside)
        return cut_inside(text, from, from_inside, to, to_inside, context, ret_part, err);
    *ret_part = slice_of(text.data + from, to - from);
    return true;
}

/* --- Joining --------------------------------------------------------------------------------- */

static uint32_t surrogate_bits(const uint8_t *at)
{
    return ((uint32_t)(at[1] & 0x0F) << 6 | (at[2] & 0x3F));
}

void query_text_append(struct buf *buf, size_t mark, struct slice part)
{
    if (part.len >= 3 && buf->len >= mark + 3) {
        const uint8_t *last = buf->data + buf->len - 3, *end = buf->data + buf->len;

        if (utf8_is_high_surrogate(last, end) &&
            utf8_is_low_surrogate(part.data, part.data + part.len)) {
            uint32_t code = 0x10000 + (surrogate_bits(last) << 10 | surrogate_bits(part.data));
            uint8_t bytes[4];
            size_t len = utf8_encode(code, bytes);

            buf->len -= 3;
            buf_append(buf, bytes, len);
            part = slice_skip(part, 3);
        }
    }
    buf_append_slice(buf, part);
}

bool query_text_end(struct query_context *context, size_t mark, struct document_value *ret_value,
                    struct error *err)
{
    struct slice text;

    if (!query_build_end(context, mark, &text, err))
        return false;
    *ret_value = document_string(text);
    return true;
}

/* --- Case ------------------------------------------------------------------------------------ */

static bool changes_ascii(uint8_t byte, enum query_case to)
{
    return to == QUERY_CASE_LOWER ? byte >= 'A' && byte <= 'Z' : byte >= 'a' && byte <= 'z';
}

static void convert_append(struct buf *buf, struct slice text, enum query_case to)
{
    const uint8_t *at = text.data, *end = text.data + text.len;

    while (at < end) {
        uint8_t bytes[4];
        size_t len;
        uint32_t code;

        if (*at < 0x80) {
            buf_append_byte(buf, changes_ascii(*at, to) ? *at ^ 0x20 : *at);
            at++;
            continue;
        }
        code = query_text_decode(at, end, &len);
        if (len > 1) {
            code = (uint32_t)(to == QUERY_CASE_LOWER ? utf8proc_tolower((utf8proc_int32_t)code)
                                                     : utf8proc_toupper((utf8proc_int32_t)code));
            buf_append(buf, bytes, utf8_encode(code, bytes));
        } else {
            buf_append_byte(buf, *at);
        }
        at += len;
    }
}

bool query_text_convert(struct slice text, enum query_case to, struct query_context *context,
                        struct slice *ret_text, struct error *err)
{
    size_t mark = query_build_begin(context), same = 0;

    if (!query_work(context, text.len >> 2, err))
        return false;
    while (same < text.len && text.data[same] < 0x80 && !changes_ascii(text.data[same], to))
        same++;
    if (same == text.len) {
        *ret_text = text;
        return true;
    }
    convert_append(&context->scratch, text, to);
    return query_build_end(context, mark, ret_text, err);
}

/* --- Finding --------------------------------------------------------------------------------- */

size_t query_text_find(struct slice text, struct slice part)
{
    const uint8_t *found;

    if (part.len == 0)
        return 0;
    if (part.len > text.len)
        return SIZE_MAX;
    found = memmem(text.data, text.len, part.data, part.len);
    return found ? (size_t)(found - text.data) : SIZE_MAX;
}

size_t query_text_find_last(struct slice text, struct slice part)
{
    if (part.len == 0)
        return text.len;
    for (size_t at = text.len; at >= part.len; at--) {
        const uint8_t *from = text.data + at - part.len;

        if (*from == *part.data && memcmp(from, part.data, part.len) == 0)
            return at - part.len;
    }
    return SIZE_MAX;
}

bool query_text_ends_with(struct slice text, struct slice part)
{
    return text.len >= part.len && slice_equal(slice_skip(text, text.len - part.len), part);
}
