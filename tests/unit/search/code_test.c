/* Codes of vectors: sizes, and that what is the most alike is found among the best by code. */
#include "search/code.h"

#include "base/random.h"
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

enum { DIMENSIONS = 96, VECTORS = 600, BEST = 10, CLUSTERS = 20 };

static double uniform(struct random *random)
{
    return (double)random_next(random) / (double)UINT64_MAX * 2 - 1;
}

static void bits_are_as_many_as_fit(void **state UNUSED)
{
    assert_int_equal(search_code_bits(768, 768), 8);
    assert_int_equal(search_code_bits(768, 767), 4);
    assert_int_equal(search_code_bits(768, 192), 2);
    assert_int_equal(search_code_bits(768, 96), 1);
    assert_int_equal(search_code_bits(768, 1), 1);
    assert_int_equal(search_code_bits(4096, 512), 1);
    assert_int_equal(search_code_size(768, 8), SEARCH_CODE_HEAD + 768);
    assert_int_equal(search_code_size(3, 4), SEARCH_CODE_HEAD + 2);
    assert_int_equal(search_code_size(9, 1), SEARCH_CODE_HEAD + 2);
    assert_int_equal(search_code_size(SEARCH_DIMENSIONS_MAX, 8), SEARCH_CODE_MAX);
}

struct found {
    double distance;
    int which;
};

static int found_order(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    return x->distance < y->distance ? -1 : x->distance > y->distance;
}

static float vectors[VECTORS][DIMENSIONS];

/* Around some places, as embeddings are. */
static void vectors_make(struct random *random)
{
    static float places[CLUSTERS][DIMENSIONS];

    for (int i = 0; i < CLUSTERS; i++)
        for (int j = 0; j < DIMENSIONS; j++)
            places[i][j] = (float)uniform(random);
    for (int i = 0; i < VECTORS; i++)
        for (int j = 0; j < DIMENSIONS; j++)
            vectors[i][j] = places[i % CLUSTERS][j] + (float)(0.4 * uniform(random));
}

/* How many of the best are among so many by code. */
static int recalled(enum search_metric metric, unsigned bits, const float *elements, int among)
{
    struct search_vectors kind = {SEARCH_FLOAT32, metric, DIMENSIONS};
    struct search_asked asked = search_asked_of(elements, &kind);
    static struct found exact[VECTORS], rough[VECTORS];
    int count = 0;

    for (int i = 0; i < VECTORS; i++) {
        uint8_t code[SEARCH_CODE_MAX];
        double length = search_vector_length(search_kernels_best(), vectors[i], DIMENSIONS);

        search_code_make(vectors[i], DIMENSIONS, bits, code);
        exact[i] =
            (struct found){search_asked_distance(&asked, (const uint8_t *)vectors[i], length), i};
        rough[i] = (struct found){search_asked_distance_code(&asked, code, bits), i};
        if (bits == 8)
            assert_true(fabs(exact[i].distance - rough[i].distance) <
                        0.15 * (1 + fabs(exact[i].distance)));
    }
    qsort(exact, VECTORS, sizeof *exact, found_order);
    qsort(rough, VECTORS, sizeof *rough, found_order);
    for (int i = 0; i < BEST; i++)
        for (int j = 0; j < among; j++)
            count += exact[i].which == rough[j].which;
    return count;
}

static void the_best_are_among_the_best_by_code(void **state UNUSED)
{
    static const struct {
        unsigned bits;
        int among, least; /* of the best of 20 searches */
    } cases[] = {{8, 20, 199}, {4, 40, 190}, {2, 100, 180}, {1, 100, 140}};
    struct random random;

    random_seed(&random, 3);
    vectors_make(&random);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (enum search_metric metric = 0; metric < SEARCH_METRICS; metric++) {
            int found = 0;

            for (int j = 0; j < 20; j++) {
                float asked[DIMENSIONS];

                for (int k = 0; k < DIMENSIONS; k++)
                    asked[k] = vectors[j][k] + (float)(0.2 * uniform(&random));
                found += recalled(metric, cases[i].bits, asked, cases[i].among);
            }
            assert_in_range(found, cases[i].least, 20 * BEST);
        }
    }
}

static void vectors_of_one_value_have_codes_too(void **state UNUSED)
{
    static const float same[4] = {2, 2, 2, 2}, zero[4];
    struct search_vectors kind = {SEARCH_FLOAT32, SEARCH_EUCLIDEAN, 4};
    struct search_asked asked = search_asked_of(same, &kind);

    for (unsigned bits = 8; bits; bits /= 2) {
        uint8_t code[SEARCH_CODE_MAX];

        search_code_make(same, 4, bits, code);
        assert_true(search_asked_distance_code(&asked, code, bits) < 1e-3);
        search_code_make(zero, 4, bits, code);
        assert_true(fabs(search_asked_distance_code(&asked, code, bits) - 4) < 1e-3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_as_many_as_fit),
        cmocka_unit_test(the_best_are_among_the_best_by_code),
        cmocka_unit_test(vectors_of_one_value_have_codes_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
