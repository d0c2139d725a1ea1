/* The sums of vectors, compiled once for each width of registers that the processor may have.
 *
 * All of them do the same arithmetic in the same order, so that they give the same bits: 64 lanes
 * as four vectors of 16, products rounded before they are added (this file is compiled without
 * fused operations), lanes added up in double precision by halves. A fused multiply-add would be
 * faster by some per cent where vectors are in the cache, which they rarely are, and other machines
 * would give other scores.
 *
 * Vectors of the compiler stand for registers: 64 bytes are one of AVX-512, two of AVX2 and four of
 * any other. */
#include "search/vector.h"

#include "base/bytes.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { LANES = 16, BLOCK = 64 };

typedef float lanes __attribute__((vector_size(64)));
typedef int32_t integers __attribute__((vector_size(64)));
typedef uint32_t naturals __attribute__((vector_size(64)));
typedef double doubles __attribute__((vector_size(128)));
typedef int8_t bytes_signed __attribute__((vector_size(16)));
typedef uint8_t bytes_plain __attribute__((vector_size(16)));
typedef uint16_t shorts __attribute__((vector_size(32)));
typedef int16_t shorts_signed __attribute__((vector_size(32)));
typedef uint16_t words __attribute__((vector_size(64)));

#define ALWAYS static inline __attribute__((always_inline))

ALWAYS void load_float32(const uint8_t *from, lanes *to)
{
    memcpy(to, from, sizeof *to);
}

/* As search_half_value: shifted to its place, and multiplied to its exponent. */
ALWAYS void load_float16(const uint8_t *from, lanes *to)
{
    shorts halves;
    naturals wide, bits;
    lanes values;

    memcpy(&halves, from, sizeof halves);
    wide = __builtin_convertvector(halves, naturals);
    bits = (wide & 0x7FFF) << 13;
    memcpy(&values, &bits, sizeof values);
    values *= 0x1p112f;
    memcpy(&bits, &values, sizeof bits);
    bits |= (wide & 0x8000) << 16;
    memcpy(to, &bits, sizeof *to);
}

ALWAYS void load_int8(const uint8_t *from, lanes *to)
{
    bytes_signed raw;
    integers wide;

    memcpy(&raw, from, sizeof raw);
    /* in two steps: gcc takes the elements apart where they become four times as wide */
    wide = __builtin_convertvector(__builtin_convertvector(raw, shorts_signed), integers);
    *to = __builtin_convertvector(wide, lanes);
}

ALWAYS void load_uint8(const uint8_t *from, lanes *to)
{
    bytes_plain raw;
    integers wide;

    memcpy(&raw, from, sizeof raw);
    wide = __builtin_convertvector(__builtin_convertvector(raw, shorts), integers);
    *to = __builtin_convertvector(wide, lanes);
}

ALWAYS double lanes_sum(const lanes *sums)
{
    doubles total = __builtin_convertvector(sums[0], doubles);
    double parts[LANES];

    total += __builtin_convertvector(sums[1], doubles);
    total += __builtin_convertvector(sums[2], doubles);
    total += __builtin_convertvector(sums[3], doubles);
    memcpy(parts, &total, sizeof parts);
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            parts[i] += parts[i + half];
    return parts[0];
}

/* Four vectors of 16 at a time. What is left over is filled up with zeroes, which add nothing. */
#define SUM(name, target, type, size, term)                                                        \
    target static double name(const float *vector, const uint8_t *stored, size_t count)            \
    {                                                                                              \
        lanes sums[4] = {{0}};                                                                     \
        float vector_rest[BLOCK];                                                                  \
        uint8_t stored_rest[BLOCK * (size)];                                                       \
                                                                                                   \
        while (count) {                                                                            \
            if (count < BLOCK) {                                                                   \
                memset(vector_rest, 0, sizeof vector_rest);                                        \
                memset(stored_rest, 0, sizeof stored_rest);                                        \
                memcpy(vector_rest, vector, count * sizeof *vector);                               \
                memcpy(stored_rest, stored, count *(size));                                        \
                vector = vector_rest;                                                              \
                stored = stored_rest;                                                              \
                count = BLOCK;                                                                     \
            }                                                                                      \
            for (int i = 0; i < 4; i++) {                                                          \
                lanes a, b;                                                                        \
                                                                                                   \
                load_float32((const uint8_t *)(vector + i * LANES), &a);                           \
                load_##type(stored + (size_t)i * LANES * (size), &b);                              \
                term;                                                                              \
                sums[i] += a;                                                                      \
            }                                                                                      \
            vector += BLOCK;                                                                       \
            stored += BLOCK * (size);                                                              \
            count -= BLOCK;                                                                        \
        }                                                                                          \
        return lanes_sum(sums);                                                                    \
    }

ALWAYS void words_load(const uint8_t *from, words *to)
{
    memcpy(to, from, sizeof *to);
}

/* Adds up products of neighbours, two in each sum of 32 bits. Numbers are below 256. */
ALWAYS void plain_pairs(const words *a, const words *b, naturals *sums)
{
    words products = *a * *b;
    naturals pairs;

    memcpy(&pairs, &products, sizeof pairs);
    *sums += (pairs & 0xFFFF) + (pairs >> 16);
}

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

/* What has an instruction of its own, which compilers do not find. */
ALWAYS AVX2 void avx2_pairs(const words *a, const words *b, naturals *sums)
{
    __m256i x[2], y[2], z[2];

    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    memcpy(z, sums, sizeof z);
    for (int i = 0; i < 2; i++)
        z[i] = _mm256_add_epi32(z[i], _mm256_madd_epi16(x[i], y[i]));
    memcpy(sums, z, sizeof z);
}

ALWAYS AVX512 void avx512_pairs(const words *a, const words *b, naturals *sums)
{
    __m512i x, y, z;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    memcpy(&z, sums, sizeof z);
    z = _mm512_add_epi32(z, _mm512_madd_epi16(x, y));
    memcpy(sums, &z, sizeof z);
}
#endif

/* 64 bytes of the code at a time: their even ones, then their odd ones. Of fewer bits than 8 the
 * same for each plane. What is left over is filled up with zeroes. */
#define CODES(isa, target)                                                                         \
    ALWAYS target void isa##_codes_add(const uint8_t *plane, const uint8_t *code, unsigned shift,  \
                                       unsigned bits, naturals *sums)                              \
    {                                                                                              \
        words a, b, low_a, low_b;                                                                  \
                                                                                                   \
        words_load(plane, &a);                                                                     \
        words_load(code, &b);                                                                      \
        if (bits < 8)                                                                              \
            b = b >> (uint16_t)shift & (uint16_t)(((1u << bits) - 1) * 0x101);                     \
        low_a = a & 0xFF;                                                                          \
        low_b = b & 0xFF;                                                                          \
        a >>= 8;                                                                                   \
        b >>= 8;                                                                                   \
        isa##_pairs(&low_a, &low_b, &sums[0]);                                                     \
        isa##_pairs(&a, &b, &sums[1]);                                                             \
    }                                                                                              \
                                                                                                   \
    ALWAYS target void isa##_plane(const uint8_t *plane, const uint8_t *code, size_t bytes,        \
                                   unsigned shift, unsigned bits, naturals *sums)                  \
    {                                                                                              \
        uint8_t plane_rest[BLOCK] = {0}, code_rest[BLOCK] = {0};                                   \
                                                                                                   \
        for (; bytes >= BLOCK; bytes -= BLOCK, plane += BLOCK, code += BLOCK)                      \
            isa##_codes_add(plane, code, shift, bits, sums);                                       \
        if (!bytes)                                                                                \
            return;                                                                                \
        memcpy(plane_rest, plane, bytes);                                                          \
        memcpy(code_rest, code, bytes);                                                            \
        isa##_codes_add(plane_rest, code_rest, shift, bits, sums);                                 \
    }                                                                                              \
                                                                                                   \
    target static uint32_t isa##_codes(const uint8_t *planes, const uint8_t *code, size_t bytes,   \
                                       unsigned bits)                                              \
    {                                                                                              \
        naturals sums[2] = {{0}};                                                                  \
        uint32_t parts[LANES], total = 0;                                                          \
                                                                                                   \
        if (bits == 8)                                                                             \
            isa##_plane(planes, code, bytes, 0, 8, sums);                                          \
        for (unsigned shift = 0; bits < 8 && shift < 8; shift += bits, planes += bytes)            \
            isa##_plane(planes, code, bytes, shift, bits, sums);                                   \
        sums[0] += sums[1];                                                                        \
        memcpy(parts, &sums[0], sizeof parts);                                                     \
        for (int i = 0; i < LANES; i++)                                                            \
            total += parts[i];                                                                     \
        return total;                                                                              \
    }

#define PRODUCT a *= b
#define DIFFERENCE a -= b, a *= a

#define KERNELS(isa, label, target)                                                                \
    SUM(isa##_dot_float32, target, float32, 4, PRODUCT)                                            \
    SUM(isa##_dot_float16, target, float16, 2, PRODUCT)                                            \
    SUM(isa##_dot_int8, target, int8, 1, PRODUCT)                                                  \
    SUM(isa##_dot_uint8, target, uint8, 1, PRODUCT)                                                \
    SUM(isa##_square_float32, target, float32, 4, DIFFERENCE)                                      \
    SUM(isa##_square_float16, target, float16, 2, DIFFERENCE)                                      \
    SUM(isa##_square_int8, target, int8, 1, DIFFERENCE)                                            \
    SUM(isa##_square_uint8, target, uint8, 1, DIFFERENCE)                                          \
    CODES(isa, target)                                                                             \
    static const struct search_kernels isa = {                                                     \
        label,                                                                                     \
        {isa##_dot_float32, isa##_dot_float16, isa##_dot_int8, isa##_dot_uint8},                   \
        {isa##_square_float32, isa##_square_float16, isa##_square_int8, isa##_square_uint8},       \
        isa##_codes};

KERNELS(plain, "plain", )

#ifdef __x86_64__
KERNELS(avx2, "AVX2", AVX2)
KERNELS(avx512, "AVX-512", AVX512)

static const struct search_kernels *const known[] = {&plain, &avx2, &avx512};

static size_t known_count(void)
{
    if (!__builtin_cpu_supports("avx2"))
        return 1;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")
               ? 3
               : 2;
}
#else
static const struct search_kernels *const known[] = {&plain};

static size_t known_count(void)
{
    return 1;
}
#endif

const struct search_kernels *search_kernels_best(void)
{
    return known[known_count() - 1];
}

const struct search_kernels *const *search_kernels_all(size_t *ret_count)
{
    *ret_count = known_count();
    return known;
}
