/* Vectors: reading them, half precision, and sums that are the same on every processor. */
#include "search/vector.h"

#include "base/random.h"
#include "support/check.h"
#include "support/documents.h"

#include <math.h>

static int setup(void **state)
{
    *state = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

static double uniform(struct random *random)
{
    return (double)random_next(random) / (double)UINT64_MAX * 2 - 1;
}

static void all_kernels_give_the_same_bits(void **state UNUSED)
{
    static const uint32_t counts[] = {1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 505, 768, 1536, 4096};
    struct random random;
    static float asked[SEARCH_DIMENSIONS_MAX], other[SEARCH_DIMENSIONS_MAX];
    static uint8_t bytes[SEARCH_DIMENSIONS_MAX * 4 + 1];
    size_t count;
    const struct search_kernels *const *kernels = search_kernels_all(&count);

    random_seed(&random, 7);
    assert_ptr_equal(search_kernels_best(), kernels[count - 1]);
    for (enum search_vector_type type = 0; type < SEARCH_VECTOR_TYPES; type++) {
        for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
            uint8_t *stored = bytes + (i & 1); /* at any alignment */

            for (uint32_t j = 0; j < counts[i]; j++) {
                asked[j] = (float)uniform(&random);
                other[j] =
                    type == SEARCH_FLOAT32 || type == SEARCH_FLOAT16
                        ? (float)uniform(&random)
                        : (float)(int)((type == SEARCH_INT8 ? 0 : 128) + 127 * uniform(&random));
            }
            search_vector_store(other, counts[i], type, stored);
            for (size_t k = 1; k < count; k++) {
                double dot = kernels[k]->dot[type](asked, stored, counts[i]);
                double square = kernels[k]->square[type](asked, stored, counts[i]);

                assert_true(dot == kernels[0]->dot[type](asked, stored, counts[i]));
                assert_true(square == kernels[0]->square[type](asked, stored, counts[i]));
            }
        }
    }
}

/* Against the sum over each number by itself, with codes of every width. */
static void sums_over_codes_are_exact(void **state UNUSED)
{
    static const uint32_t counts[] = {1, 2, 7, 9, 63, 64, 65, 130, 505, 768, 4096};
    static uint8_t numbers[SEARCH_DIMENSIONS_MAX], planes[SEARCH_DIMENSIONS_MAX + 8];
    static uint8_t code[SEARCH_DIMENSIONS_MAX + 1];
    struct random random;
    size_t count;
    const struct search_kernels *const *kernels = search_kernels_all(&count);

    random_seed(&random, 9);
    for (unsigned bits = 8; bits; bits /= 2) {
        for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
            uint32_t each = 8 / bits, bytes = (counts[i] + each - 1) / each, sum = 0;
            uint8_t *packed = code + (i & 1); /* at any alignment */

            memset(code, 0, sizeof code);
            memset(planes, 0, sizeof planes);
            for (uint32_t j = 0; j < counts[i]; j++) {
                unsigned number = bits == 8 && i % 3 == 0
                                      ? 255
                                      : (unsigned)random_below(&random, UINT64_C(1) << bits);

                numbers[j] = i % 3 == 0 ? 255 : (uint8_t)random_next(&random);
                planes[j % each * bytes + j / each] = numbers[j];
                packed[j / each] |= (uint8_t)(number << j % each * bits);
                sum += number * numbers[j];
            }
            for (size_t k = 0; k < count; k++)
                assert_int_equal(kernels[k]->codes(planes, packed, bytes, bits), sum);
        }
    }
}

/* Against sums in double precision, and exactly for whole numbers. */
static void sums_are_right(void **state UNUSED)
{
    struct random random;
    static float asked[SEARCH_DIMENSIONS_MAX], back[SEARCH_DIMENSIONS_MAX];
    static uint8_t stored[SEARCH_DIMENSIONS_MAX * 4];
    const struct search_kernels *kernels = search_kernels_best();

    random_seed(&random, 11);
    for (enum search_vector_type type = 0; type < SEARCH_VECTOR_TYPES; type++) {
        bool whole = type == SEARCH_INT8 || type == SEARCH_UINT8;
        double dot = 0, square = 0, room = 1e-3;

        for (uint32_t i = 0; i < SEARCH_DIMENSIONS_MAX; i++) {
            asked[i] = whole ? (float)(int)(127 * uniform(&random)) : (float)uniform(&random);
            back[i] = whole ? (float)(int)(60 + 60 * uniform(&random)) : (float)uniform(&random);
        }
        search_vector_store(back, SEARCH_DIMENSIONS_MAX, type, stored);
        search_vector_load(stored, SEARCH_DIMENSIONS_MAX, type, back);
        for (uint32_t i = 0; i < SEARCH_DIMENSIONS_MAX; i++) {
            dot += (double)asked[i] * back[i];
            square += ((double)asked[i] - back[i]) * ((double)asked[i] - back[i]);
        }
        if (whole)
            room = 0;
        assert_true(fabs(kernels->dot[type](asked, stored, SEARCH_DIMENSIONS_MAX) - dot) <= room);
        assert_true(fabs(kernels->square[type](asked, stored, SEARCH_DIMENSIONS_MAX) - square) <=
                    room);
    }
}

static void halves_are_rounded_to_even(void **state UNUSED)
{
    static const struct {
        float number;
        uint16_t half;
    } known[] = {
        {0.0f, 0},
        {-0.0f, 0x8000},
        {1.0f, 0x3C00},
        {-2.0f, 0xC000},
        {65504.0f, 0x7BFF},
        {65519.0f, 0x7BFF},
        {65520.0f, 0x7C00},
        {1e9f, 0x7C00},
        {0x1p-14f, 0x0400},
        {0x1p-24f, 0x0001},
        {0x1p-25f, 0x0000},
        {0x1.8p-25f, 0x0001},
        {0x1.8p-24f, 0x0002},
        {0x1.004p0f, 0x3C01},
        {0x1.002p0f, 0x3C00},
        {0x1.006p0f, 0x3C02},
        {0x1.ffcp-15f, 0x0400},
        {(float)INFINITY, 0x7C00},
    };

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        assert_int_equal(search_half_of(known[i].number), known[i].half);
    /* every half that is a number comes back as itself */
    for (uint32_t half = 0; half < 0x10000; half++) {
        float value = search_half_value((uint16_t)half);

        if ((half & 0x7C00) == 0x7C00 && (half & 0x3FF))
            assert_true(isnan(value));
        else
            assert_int_equal(search_half_of(value), half);
    }
}

static bool reads(struct arena *arena, const char *json, enum search_vector_type type,
                  uint32_t dimensions, float *to)
{
    struct search_vectors vectors = {type, SEARCH_COSINE, dimensions};
    struct document_value value = value_of(arena, json);
    uint32_t count = 0;

    return search_vector_read(&value, &vectors, to, &count) && count > 0;
}

static void what_is_no_vector_of_its_kind_is_not_read(void **state)
{
    float to[SEARCH_DIMENSIONS_MAX];

    assert_true(reads(*state, "[1, 2.5, -3]", SEARCH_FLOAT32, 0, to));
    assert_true(to[1] == 2.5f && to[2] == -3.0f);
    assert_true(reads(*state, "[1, 2.5, -3]", SEARCH_FLOAT32, 3, to));
    assert_false(reads(*state, "[1, 2.5, -3]", SEARCH_FLOAT32, 2, to));
    assert_false(reads(*state, "[1, 2.5, -3]", SEARCH_FLOAT32, 4, to));
    assert_false(reads(*state, "[]", SEARCH_FLOAT32, 0, to));
    assert_false(reads(*state, "{}", SEARCH_FLOAT32, 0, to));
    assert_false(reads(*state, "\"1\"", SEARCH_FLOAT32, 0, to));
    assert_false(reads(*state, "[1, null]", SEARCH_FLOAT32, 0, to));
    assert_false(reads(*state, "[1, \"2\"]", SEARCH_FLOAT32, 0, to));
    assert_false(reads(*state, "[[1]]", SEARCH_FLOAT32, 0, to));
    assert_false(reads(*state, "[1e300]", SEARCH_FLOAT32, 0, to)); /* infinite there */
    assert_true(reads(*state, "[0.1]", SEARCH_FLOAT16, 0, to));
    assert_true(to[0] == 0x1.998p-4f);
    assert_false(reads(*state, "[65520]", SEARCH_FLOAT16, 0, to));
    assert_true(reads(*state, "[-128, 127]", SEARCH_INT8, 0, to));
    assert_false(reads(*state, "[128]", SEARCH_INT8, 0, to));
    assert_false(reads(*state, "[0.5]", SEARCH_INT8, 0, to));
    assert_true(reads(*state, "[0, 255]", SEARCH_UINT8, 0, to));
    assert_false(reads(*state, "[-1]", SEARCH_UINT8, 0, to));
    assert_false(reads(*state, "[256]", SEARCH_UINT8, 0, to));
}

/* Doubles come in runs: whole numbers among them, one that is none at any place, and one too many.
 */
static void long_vectors_are_read_whole(void **state)
{
    static const uint32_t counts[] = {1, 2, 9, 10, 63, 64, 65, 127, 128, 129, 768, 4096};
    static float to[SEARCH_DIMENSIONS_MAX];

    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        for (uint32_t whole = 1; whole < 200; whole = whole * 3 + 1) {
            CLEANUP(buf_done) struct buf json;

            buf_init(&json, BUF_DEFAULT_MAX);
            for (uint32_t j = 0; j < counts[i]; j++)
                buf_printf(&json, j % whole ? "%s%u.5" : "%s%u", j ? "," : "[", j);
            buf_printf(&json, "]%c", 0);
            memset(to, 0, sizeof to);
            assert_true(reads(*state, (char *)json.data, SEARCH_FLOAT32, 0, to));
            for (uint32_t j = 0; j < counts[i]; j++)
                assert_true(to[j] == (float)j + (j % whole ? 0.5f : 0));
            assert_true(reads(*state, (char *)json.data, SEARCH_FLOAT32, counts[i], to));
            if (counts[i] < SEARCH_DIMENSIONS_MAX)
                assert_false(reads(*state, (char *)json.data, SEARCH_FLOAT32, counts[i] + 1, to));
            if (counts[i] > 1)
                assert_false(reads(*state, (char *)json.data, SEARCH_FLOAT32, counts[i] - 1, to));
            json.len -= 2;
            buf_printf(&json, ",1e300]%c", 0);
            assert_false(reads(*state, (char *)json.data, SEARCH_FLOAT32, 0, to));
        }
}

static void what_vectors_are_is_one_number(void **state UNUSED)
{
    struct search_vectors vectors = {SEARCH_UINT8, SEARCH_EUCLIDEAN, 4096}, back;

    assert_true(search_vectors_unpack(search_vectors_pack(&vectors), &back));
    assert_memory_equal(&vectors, &back, sizeof back);
    assert_false(search_vectors_unpack(-1, &back));
    assert_false(search_vectors_unpack(SEARCH_VECTOR_TYPES, &back));
    assert_false(search_vectors_unpack(SEARCH_METRICS << 8, &back));
    assert_false(search_vectors_unpack((int64_t)4097 << 16, &back));
}

static void scores_follow_the_metric(void **state UNUSED)
{
    const struct search_kernels *kernels = search_kernels_best();
    struct search_vectors vectors = {SEARCH_FLOAT32, SEARCH_COSINE, 2};
    const float a[] = {3, 4}, b[] = {4, 3}, zero[] = {0, 0};

    assert_true(search_vector_score(kernels, &vectors, a, 5, (const uint8_t *)b, 5, 2) == 0.96);
    assert_true(search_vector_score(kernels, &vectors, a, 5, (const uint8_t *)zero, 0, 2) == 0);
    vectors.metric = SEARCH_DOT_PRODUCT;
    assert_true(search_vector_score(kernels, &vectors, a, 0, (const uint8_t *)b, 0, 2) == 24);
    vectors.metric = SEARCH_EUCLIDEAN;
    assert_true(search_vector_score(kernels, &vectors, a, 0, (const uint8_t *)zero, 0, 2) == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kernels_give_the_same_bits),
        cmocka_unit_test(sums_over_codes_are_exact),
        cmocka_unit_test(sums_are_right),
        cmocka_unit_test(halves_are_rounded_to_even),
        cmocka_unit_test(what_is_no_vector_of_its_kind_is_not_read),
        cmocka_unit_test(long_vectors_are_read_whole),
        cmocka_unit_test(what_vectors_are_is_one_number),
        cmocka_unit_test(scores_follow_the_metric),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
