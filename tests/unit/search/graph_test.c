/* The graph of codes: most of the best are found in it, of every metric and width of codes; equal
 * codes, few points, and points that nothing is like are found too. */
#include "search/graph.h"

#include "base/memory.h"
#include "base/random.h"
#include "support/check.h"

#include <math.h>
#include <stdlib.h>

enum { DIMENSIONS = 40, POINTS = 1500, BEST = 10, CLUSTERS = 25, SEARCHES = 20 };

/* Roughly normal. */
static float number(struct random *random)
{
    double sum = 0;

    for (int i = 0; i < 6; i++)
        sum += (double)random_next(random) / (double)UINT64_MAX - 0.5;
    return (float)(sum * 1.4);
}

struct data {
    struct search_graph_points points;
    float *vectors; /* points, and searches behind them */
    uint8_t *codes;
};

/* Around some places, as embeddings are. */
static void data_make(struct data *data, enum search_metric metric, unsigned bits, uint32_t count)
{
    static float places[CLUSTERS][DIMENSIONS];
    size_t size = search_code_size(DIMENSIONS, bits);
    struct random random;

    random_seed(&random, 11);
    for (int i = 0; i < CLUSTERS; i++)
        for (int j = 0; j < DIMENSIONS; j++)
            places[i][j] = number(&random);
    data->vectors = memory_alloc((count + SEARCHES) * DIMENSIONS * sizeof *data->vectors);
    data->codes = memory_alloc(count * size + 1);
    for (uint32_t i = 0; i < count + SEARCHES; i++) {
        uint64_t place = random_below(&random, CLUSTERS);

        for (int j = 0; j < DIMENSIONS; j++)
            data->vectors[i * DIMENSIONS + j] = places[place][j] + 0.6f * number(&random);
    }
    for (uint32_t i = 0; i < count; i++)
        search_code_make(data->vectors + i * DIMENSIONS, DIMENSIONS, bits, data->codes + i * size);
    data->points = (struct search_graph_points){
        {SEARCH_FLOAT32, metric, DIMENSIONS}, bits, data->codes, size, count};
}

static void data_free(struct data *data)
{
    memory_free(data->vectors);
    memory_free(data->codes);
}

static struct search_graph *graph_make(const struct search_graph_points *points)
{
    struct search_graph *graph = search_graph_new(points, SEARCH_GRAPH_LIST_DEFAULT);

    while (!search_graph_grow(graph, 300))
        assert_true(search_graph_grown(graph) < points->count);
    assert_int_equal(search_graph_grown(graph), points->count);
    return graph;
}

struct found {
    double distance;
    uint32_t point;
};

static int found_order(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    return x->distance < y->distance ? -1 : x->distance > y->distance;
}

/* How many of the best by their codes are found, in a list of so many. */
static int recalled(const struct data *data, const struct search_graph *graph, int search,
                    size_t list, uint64_t *looked)
{
    static struct found exact[POINTS];
    const float *elements = data->vectors + (data->points.count + (size_t)search) * DIMENSIONS;
    struct search_asked asked = search_asked_of(elements, &data->points.vectors);
    uint32_t points[SEARCH_GRAPH_FOUND_MAX];
    uint64_t steps;
    size_t count = search_graph_search(graph, elements, list, points, list, &steps);
    int found = 0;

    *looked += steps;
    for (uint32_t i = 0; i < data->points.count; i++)
        exact[i] =
            (struct found){search_asked_distance_code(&asked, data->codes + i * data->points.stride,
                                                      data->points.bits),
                           i};
    qsort(exact, data->points.count, sizeof *exact, found_order);
    for (int i = 0; i < BEST; i++)
        for (size_t j = 0; j < count; j++)
            found += exact[i].point == points[j];
    return found;
}

static void most_of_the_best_are_found(void **state UNUSED)
{
    static const unsigned widths[] = {8, 4, 2, 1};

    for (enum search_metric metric = 0; metric < SEARCH_METRICS; metric++) {
        for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
            struct search_graph *graph;
            struct data data;
            uint64_t looked = 0;
            int found = 0;

            data_make(&data, metric, widths[i], POINTS);
            graph = graph_make(&data.points);
            for (int j = 0; j < SEARCHES; j++)
                found += recalled(&data, graph, j, 100, &looked);
            /* codes of one bit are compared by what they stand for here, and by the length of
             * their vector there */
            assert_in_range(found, SEARCHES * BEST * (widths[i] > 1 ? 95 : 85) / 100,
                            SEARCHES * BEST);
            assert_true(looked < (uint64_t)SEARCHES * POINTS * 2 / 3);
            search_graph_free(graph);
            data_free(&data);
        }
    }
}

static void the_same_codes_give_the_same_graph(void **state UNUSED)
{
    struct data data;
    struct search_graph *graphs[2];

    data_make(&data, SEARCH_COSINE, 8, 1000);
    for (int i = 0; i < 2; i++)
        graphs[i] = graph_make(&data.points);
    for (int i = 0; i < SEARCHES; i++) {
        uint32_t points[2][50];
        uint64_t looked[2];

        for (int j = 0; j < 2; j++)
            assert_int_equal(search_graph_search(graphs[j],
                                                 data.vectors + (1000 + (size_t)i) * DIMENSIONS, 50,
                                                 points[j], 50, &looked[j]),
                             50);
        assert_memory_equal(points[0], points[1], sizeof points[0]);
        assert_int_equal(looked[0], looked[1]);
    }
    for (int i = 0; i < 2; i++)
        search_graph_free(graphs[i]);
    data_free(&data);
}

/* A list as long as there are points has every one of them: none is out of reach. */
static void assert_all_are_found(const struct search_graph_points *points, const float *elements)
{
    CLEANUP(search_graph_free) struct search_graph *graph = graph_make(points);
    CLEANUP(memory_free) bool *there = memory_alloc_zero(points->count + 1);
    uint32_t found[SEARCH_GRAPH_FOUND_MAX];
    uint64_t looked;

    assert_int_equal(
        search_graph_search(graph, elements, points->count, found, SEARCH_GRAPH_FOUND_MAX, &looked),
        points->count);
    for (uint32_t i = 0; i < points->count; i++) {
        assert_true(found[i] < points->count);
        assert_false(there[found[i]]);
        there[found[i]] = true;
    }
}

static void every_point_is_within_reach(void **state UNUSED)
{
    for (enum search_metric metric = 0; metric < SEARCH_METRICS; metric++) {
        struct data data;

        data_make(&data, metric, 8, 1200);
        assert_all_are_found(&data.points, data.vectors + (size_t)1200 * DIMENSIONS);
        data_free(&data);
    }
}

static void equal_codes_come_together(void **state UNUSED)
{
    for (enum search_metric metric = 0; metric < SEARCH_METRICS; metric++) {
        struct data data;
        size_t size;

        data_make(&data, metric, 8, 800);
        size = data.points.stride;
        for (uint32_t i = 1; i < 800; i++) /* three of four are one of seven */
            if (i % 4)
                memcpy(data.codes + i * size, data.codes + i % 7 * size, size);
        assert_all_are_found(&data.points, data.vectors + (size_t)800 * DIMENSIONS);
        for (uint32_t i = 1; i < 800; i++)
            memcpy(data.codes + i * size, data.codes, size);
        assert_all_are_found(&data.points, data.vectors);
        data_free(&data);
    }
}

static void few_points_are_a_graph_too(void **state UNUSED)
{
    for (uint32_t count = 0; count < 5; count++) {
        struct data data;

        data_make(&data, SEARCH_EUCLIDEAN, 4, count);
        assert_all_are_found(&data.points, data.vectors);
        data_free(&data);
    }
}

static void vectors_of_nothing_but_zeroes_are_found(void **state UNUSED)
{
    struct data data;

    data_make(&data, SEARCH_COSINE, 8, 500);
    memset(data.vectors, 0, DIMENSIONS * sizeof *data.vectors);
    search_code_make(data.vectors, DIMENSIONS, 8, data.codes);
    assert_all_are_found(&data.points, data.vectors);
    assert_all_are_found(&data.points, data.vectors + DIMENSIONS);
    data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(most_of_the_best_are_found),
        cmocka_unit_test(the_same_codes_give_the_same_graph),
        cmocka_unit_test(every_point_is_within_reach),
        cmocka_unit_test(equal_codes_come_together),
        cmocka_unit_test(few_points_are_a_graph_too),
        cmocka_unit_test(vectors_of_nothing_but_zeroes_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
