/* UTF-8 as documents hold it: the standard form, plus single surrogates in three bytes, because
 * JSON can write one alone ("\ud800") and it must come back the same. A high and a low surrogate in
 * a row are the four-byte form of one character, never two times three bytes. */
#pragma once

#include "base/slice.h"

static inline bool utf8_continues(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

/* The length of the character that begins at `at`, 0 if it is not well-formed. at < end. */
static inline size_t utf8_length(const uint8_t *at, const uint8_t *end)
{
    size_t room = (size_t)(end - at);

    if (at[0] < 0x80)
        return 1;
    if (at[0] < 0xE0)
        return at[0] >= 0xC2 && room >= 2 && utf8_continues(at[1]) ? 2 : 0;
    if (at[0] < 0xF0) {
        if (room < 3 || !utf8_continues(at[1]) || !utf8_continues(at[2]))
            return 0;
        return at[0] > 0xE0 || at[1] >= 0xA0 ? 3 : 0;
    }
    if (room < 4 || at[0] > 0xF4 || !utf8_continues(at[1]) || !utf8_continues(at[2]) ||
        !utf8_continues(at[3]))
        return 0;
    if ((at[0] == 0xF0 && at[1] < 0x90) || (at[0] == 0xF4 && at[1] >= 0x90))
        return 0;
    return 4;
}

static inline bool utf8_is_high_surrogate(const uint8_t *at, const uint8_t *end)
{
    return end - at >= 3 && at[0] == 0xED && (at[1] & 0xF0) == 0xA0;
}

static inline bool utf8_is_low_surrogate(const uint8_t *at, const uint8_t *end)
{
    return end - at >= 3 && at[0] == 0xED && (at[1] & 0xF0) == 0xB0;
}

/* The bytes before the first that is out of place; text.len if all are well. */
static inline size_t utf8_valid_length(struct slice text)
{
    const uint8_t *at = text.data, *end = text.len ? text.data + text.len : at;

    while (at < end) {
        uint64_t eight;
        size_t length;

        if (end - at >= 8) {
            memcpy(&eight, at, 8);
            if (!(eight & 0x8080808080808080)) {
                at += 8;
                continue;
            }
        }
        length = utf8_length(at, end);
        if (!length || (utf8_is_high_surrogate(at, end) && utf8_is_low_surrogate(at + 3, end)))
            break;
        at += length;
    }
    return (size_t)(at - text.data);
}

/* Writes the character (at most 4 bytes) and gives its length. */
static inline size_t utf8_encode(uint32_t code, uint8_t *to)
{
    if (code < 0x80) {
        to[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (uint8_t)(0xC0 | code >> 6);
        to[1] = (uint8_t)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (uint8_t)(0xE0 | code >> 12);
        to[1] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
        to[2] = (uint8_t)(0x80 | (code & 0x3F));
        return 3;
    }
    to[0] = (uint8_t)(0xF0 | code >> 18);
    to[1] = (uint8_t)(0x80 | (code >> 12 & 0x3F));
    to[2] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
    to[3] = (uint8_t)(0x80 | (code & 0x3F));
    return 4;
}
