/* Eight bits go from the least value to the greatest; where there are fewer, values far out would
 * take the room of all others, so the range is some deviations around the mean, and what is outside
 * is put at its ends. */
#include "search/code.h"

#include "base/bytes.h"

#include <math.h>

static void float_put(uint8_t *to, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    bytes_put_le32(to, bits);
}

static float float_get(const uint8_t *from)
{
    uint32_t bits = bytes_get_le32(from);
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

unsigned search_code_bits(uint32_t dimensions, size_t bytes)
{
    for (unsigned bits = 8; bits > 1; bits /= 2)
        if ((size_t)dimensions * bits <= bytes * 8)
            return bits;
    return 1;
}

size_t search_code_size(uint32_t dimensions, unsigned bits)
{
    return SEARCH_CODE_HEAD + ((size_t)dimensions * bits + 7) / 8;
}

/* The values that the lowest and the highest bits stand for. */
static void ends_of(const float *vector, uint32_t dimensions, unsigned bits, double *ret_low,
                    double *ret_high)
{
    /* where normal values lose least: of 1, 2 and 4 bits */
    double deviations = bits == 1 ? 0.8 : bits == 2 ? 1.5 : 2.6;
    double low = vector[0], high = vector[0], sum = 0, squares = 0, mean, deviation;

    for (uint32_t i = 0; i < dimensions; i++) {
        low = fmin(low, vector[i]);
        high = fmax(high, vector[i]);
        sum += vector[i];
    }
    mean = sum / dimensions;
    for (uint32_t i = 0; i < dimensions; i++)
        squares += (vector[i] - mean) * (vector[i] - mean);
    deviation = sqrt(squares / dimensions);
    if (bits < 8) {
        low = fmax(low, mean - deviations * deviation);
        high = fmin(high, mean + deviations * deviation);
    }
    *ret_low = low;
    *ret_high = high;
}

void search_code_make(const float *vector, uint32_t dimensions, unsigned bits, uint8_t *to)
{
    unsigned most = (1u << bits) - 1;
    double low, high, length = 0;
    float first, step;

    assert(dimensions > 0);
    ends_of(vector, dimensions, bits, &low, &high);
    for (uint32_t i = 0; i < dimensions; i++)
        length += (double)vector[i] * vector[i];
    first = (float)low;
    step = (float)((high - low) / most);
    memset(to, 0, search_code_size(dimensions, bits));
    float_put(to, first);
    float_put(to + 4, step);
    float_put(to + 8, (float)sqrt(length));
    to += SEARCH_CODE_HEAD;
    for (uint32_t i = 0; i < dimensions; i++) {
        double at = step > 0 ? rint(((double)vector[i] - first) / step) : 0;
        unsigned code = at < 0 ? 0 : at > most ? most : (unsigned)at;

        to[(size_t)i * bits / 8] |= (uint8_t)(code << i * bits % 8);
    }
}

struct search_asked search_asked_of(const float *elements, const struct search_vectors *vectors)
{
    struct search_asked asked = {*vectors, elements, 0, 0};

    asked.length = search_vector_length(search_kernels_best(), elements, vectors->dimensions);
    for (uint32_t i = 0; i < vectors->dimensions; i++)
        asked.sum += elements[i];
    return asked;
}

double search_asked_distance(const struct search_asked *asked, const uint8_t *stored, double length)
{
    double score = search_vector_score(search_kernels_best(), &asked->vectors, asked->elements,
                                       asked->length, stored, length, asked->vectors.dimensions);

    return search_metric_is_similarity(asked->vectors.metric) ? -score : score;
}

/* The bits as bytes, one for each dimension. */
static const uint8_t *unpacked(const uint8_t *code, uint32_t dimensions, unsigned bits, uint8_t *to)
{
    unsigned most = (1u << bits) - 1, each = 8 / bits;

    if (bits == 8)
        return code;
    for (uint32_t i = 0; i < dimensions; i += each) {
        unsigned byte = code[i / each];

        for (unsigned j = 0; j < each; j++, byte >>= bits)
            to[i + j] = byte & most;
    }
    return to;
}

double search_asked_distance_code(const struct search_asked *asked, const uint8_t *code,
                                  unsigned bits)
{
    uint8_t room[SEARCH_DIMENSIONS_MAX + 8];
    uint32_t dimensions = asked->vectors.dimensions;
    double low = float_get(code), step = float_get(code + 4), length = float_get(code + 8), dot;

    code = unpacked(code + SEARCH_CODE_HEAD, dimensions, bits, room);
    dot = low * asked->sum +
          step * search_kernels_best()->dot[SEARCH_UINT8](asked->elements, code, dimensions);
    switch (asked->vectors.metric) {
    case SEARCH_EUCLIDEAN:
        return sqrt(fmax(asked->length * asked->length + length * length - 2 * dot, 0));
    case SEARCH_COSINE:
        return length > 0 && asked->length > 0 ? -dot / (length * asked->length) : 0;
    default:
        return -dot;
    }
}
