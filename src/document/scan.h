/* Scanning text sixteen bytes at a time for the few bytes that need a closer look.
 *
 * Both functions say how many of the sixteen bytes at `at` come before the first such byte (16 if
 * there is none). SSE2 is part of every x86-64; elsewhere eight bytes are taken at once in a plain
 * register, which costs about twice as much and is tested on every machine. */
#pragma once

#include "base/bytes.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { SCAN_STEP = 16 };

#define SCAN_ONES 0x0101010101010101u
#define SCAN_HIGHS 0x8080808080808080u

/* High bits set where a byte of word is zero; exact up to and including the first such byte, which
 * is the one asked for (little-endian). */
static inline uint64_t scan_zeros(uint64_t word)
{
    return (word - SCAN_ONES) & ~word & SCAN_HIGHS;
}

static inline uint64_t scan_load(const uint8_t *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof word);
    return le64toh(word);
}

static inline unsigned scan_first(uint64_t low, uint64_t high)
{
    if (low)
        return (unsigned)__builtin_ctzll(low) / 8;
    return high ? 8 + (unsigned)__builtin_ctzll(high) / 8 : SCAN_STEP;
}

/* Bytes below 0x20: with the high bit clear and zero in bits 5 and 6. */
static inline uint64_t scan_controls(uint64_t word)
{
    return scan_zeros(word & 0xE0E0E0E0E0E0E0E0u);
}

static inline uint64_t scan_read_word(uint64_t word)
{
    return (word & SCAN_HIGHS) | scan_controls(word) | scan_zeros(word ^ SCAN_ONES * '"') |
           scan_zeros(word ^ SCAN_ONES * '\\');
}

static inline uint64_t scan_write_word(uint64_t word)
{
    return scan_controls(word) | scan_zeros(word ^ SCAN_ONES * '"') |
           scan_zeros(word ^ SCAN_ONES * '\\') | scan_zeros(word ^ SCAN_ONES * 0xED);
}

static inline unsigned scan_read_portable(const uint8_t *at)
{
    return scan_first(scan_read_word(scan_load(at)), scan_read_word(scan_load(at + 8)));
}

static inline unsigned scan_write_portable(const uint8_t *at)
{
    return scan_first(scan_write_word(scan_load(at)), scan_write_word(scan_load(at + 8)));
}

/* Reading a JSON string: stops at a quote, a backslash, a control byte, and any byte above 0x7F. */
static inline unsigned scan_read(const uint8_t *at)
{
#ifdef __SSE2__
    __m128i bytes = _mm_loadu_si128((const __m128i *)at);
    /* The comparison is signed, so it catches 0x80 and above with the controls. */
    __m128i special = _mm_or_si128(_mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20)),
                                   _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                                                _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))));

    return (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(special) | 1u << SCAN_STEP);
#else
    return scan_read_portable(at);
#endif
}

/* Writing a JSON string: stops at what must be escaped, and at 0xED, which may begin a surrogate.
 */
static inline unsigned scan_write(const uint8_t *at)
{
#ifdef __SSE2__
    __m128i bytes = _mm_loadu_si128((const __m128i *)at);
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
    __m128i special =
        _mm_or_si128(_mm_or_si128(control, _mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)0xED))),
                     _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                                  _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))));

    return (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(special) | 1u << SCAN_STEP);
#else
    return scan_write_portable(at);
#endif
}
