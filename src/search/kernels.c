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

enum { LANES = 16, BLOCK = 64 };

typedef float lanes __attribute__((vector_size(64)));
typedef int32_t integers __attribute__((vector_size(64)));
typedef uint32_t naturals __attribute__((vector_size(64)));
typedef double doubles __attribute__((vector_size(128)));
typedef int8_t bytes_signed __attribute__((vector_size(16)));
typedef uint8_t bytes_plain __attribute__((vector_size(16)));
typedef uint16_t shorts __attribute__((vector_size(32)));
typedef int16_t shorts_signed __attribute__((vector_size(32)));

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
    static const struct search_kernels isa = {                                                     \
        label,                                                                                     \
        {isa##_dot_float32, isa##_dot_float16, isa##_dot_int8, isa##_dot_uint8},                   \
        {isa##_square_float32, isa##_square_float16, isa##_square_int8, isa##_square_uint8}};

KERNELS(plain, "plain", )

#ifdef __x86_64__
KERNELS(avx2, "AVX2", __attribute__((target("avx2"))))
KERNELS(avx512, "AVX-512", __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))))

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
