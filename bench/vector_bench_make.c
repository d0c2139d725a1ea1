/* Vectors for vector_bench.py, the same every time, and which of them are the most alike to those
 * that are asked for:
 *
 *     vector_bench_make VECTORS DIMENSIONS ASKED DIRECTORY
 *
 * writes DIRECTORY/vectors and DIRECTORY/asked, rows of floats; DIRECTORY/exact, for each that is
 * asked for ten numbers of vectors, the best first by their cosine; and DIRECTORY/items, one item a
 * line for `orrery import`. Vectors lie around 200 places, as embeddings do, and their numbers have
 * four digits behind the point: what is read from items is what the rows have. */
#include "base/memory.h"
#include "load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PLACES = 200, BEST = 10, DIGITS = 10000, KEYS = 16, KEY_ITEMS = 50, PATH_SIZE = 4096 };

struct made {
    uint64_t state;
    size_t dimensions;
    float *places;
};

/* splitmix64 */
static uint64_t bits_next(struct made *made)
{
    uint64_t x = made->state += UINT64_C(0x9E3779B97F4A7C15);

    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* About normal: twelve parts of two draws, each between 0 and 1. */
static double normal(struct made *made)
{
    uint64_t a = bits_next(made), b = bits_next(made);
    uint64_t sum = 0;

    for (unsigned i = 0; i < 60; i += 10)
        sum += (a >> i & 1023) + (b >> i & 1023);
    return (double)sum / 1023 - 6;
}

static float rounded(double number)
{
    return (float)(rint(number * DIGITS) / DIGITS);
}

static void vector_next(struct made *made, float *to)
{
    const float *place = made->places + bits_next(made) % PLACES * made->dimensions;

    for (size_t i = 0; i < made->dimensions; i++)
        to[i] = rounded(place[i] + normal(made));
}

static FILE *file_begin(const char *directory, const char *name)
{
    char path[PATH_SIZE];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    file = fopen(path, "wb");
    if (!file)
        load_fail("%s cannot be written", path);
    return file;
}

static void file_end(FILE *file)
{
    if (ferror(file) || fclose(file))
        load_fail("a file could not be written");
}

static void rows_write(const char *directory, const char *name, const float *rows, size_t count)
{
    FILE *file = file_begin(directory, name);

    (void)fwrite(rows, sizeof *rows, count, file);
    file_end(file);
}

static void items_write(const char *directory, const float *vectors, size_t count,
                        size_t dimensions)
{
    FILE *file = file_begin(directory, "items");

    for (size_t i = 0; i < count; i++) {
        (void)fprintf(file, "{\"id\":\"%zu\",\"pk\":\"%zu\",\"v\":[", i, i / KEY_ITEMS % KEYS);
        for (size_t j = 0; j < dimensions; j++)
            (void)fprintf(file, "%s%.4f", j ? "," : "", (double)vectors[i * dimensions + j]);
        (void)fputs("]}\n", file);
    }
    file_end(file);
}

/* --- What is exact --------------------------------------------------------------------------- */

struct best {
    double score;
    int32_t number;
};

static double dot(const float *a, const float *b, size_t count)
{
    float sums[16] = {0};
    double sum = 0;
    size_t i = 0;

    for (; i + 16 <= count; i += 16)
        for (size_t j = 0; j < 16; j++)
            sums[j] += a[i + j] * b[i + j];
    for (; i < count; i++)
        sum += (double)a[i] * b[i];
    for (size_t j = 0; j < 16; j++)
        sum += sums[j];
    return sum;
}

static void best_put(struct best *list, double score, int32_t number)
{
    size_t at = BEST;

    if (score <= list[BEST - 1].score)
        return;
    for (; at > 1 && list[at - 2].score < score; at--)
        list[at - 1] = list[at - 2];
    list[at - 1] = (struct best){score, number};
}

static void exact_write(const char *directory, const float *vectors, size_t count,
                        const float *asked, size_t asked_count, size_t dimensions)
{
    struct best *best = memory_alloc(memory_array_size(asked_count * BEST, sizeof *best));
    FILE *file = file_begin(directory, "exact");

    for (size_t i = 0; i < asked_count * BEST; i++)
        best[i] = (struct best){-INFINITY, -1};
    for (size_t i = 0; i < count; i++) {
        const float *vector = vectors + i * dimensions;
        double length = sqrt(dot(vector, vector, dimensions));

        for (size_t j = 0; j < asked_count; j++) /* whose own length changes no order */
            best_put(best + j * BEST, dot(vector, asked + j * dimensions, dimensions) / length,
                     (int32_t)i);
    }
    for (size_t i = 0; i < asked_count * BEST; i++)
        (void)fwrite(&best[i].number, sizeof best[i].number, 1, file);
    file_end(file);
    memory_free(best);
}

int main(int argc, char **argv)
{
    struct made made = {.state = 1};
    size_t count, asked_count;
    float *vectors, *asked;

    if (argc != 5)
        load_fail("usage: vector_bench_make VECTORS DIMENSIONS ASKED DIRECTORY");
    count = strtoul(argv[1], NULL, 10);
    made.dimensions = strtoul(argv[2], NULL, 10);
    asked_count = strtoul(argv[3], NULL, 10);
    if (count < BEST || !made.dimensions || !asked_count)
        load_fail("there are at least %d vectors, of one dimension, and one is asked for", BEST);
    made.places = memory_alloc(memory_array_size(PLACES * made.dimensions, sizeof(float)));
    for (size_t i = 0; i < PLACES * made.dimensions; i++)
        made.places[i] = (float)normal(&made);
    vectors = memory_alloc(memory_array_size(count * made.dimensions, sizeof(float)));
    asked = memory_alloc(memory_array_size(asked_count * made.dimensions, sizeof(float)));
    for (size_t i = 0; i < count; i++)
        vector_next(&made, vectors + i * made.dimensions);
    for (size_t i = 0; i < asked_count; i++)
        vector_next(&made, asked + i * made.dimensions);
    rows_write(argv[4], "vectors", vectors, count * made.dimensions);
    rows_write(argv[4], "asked", asked, asked_count * made.dimensions);
    items_write(argv[4], vectors, count, made.dimensions);
    exact_write(argv[4], vectors, count, asked, asked_count, made.dimensions);
    memory_free(vectors);
    memory_free(asked);
    memory_free(made.places);
    return 0;
}
