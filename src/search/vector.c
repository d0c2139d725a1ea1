#include "search/vector.h"

#include "base/bytes.h"
#include "document/bson.h"

#include <float.h>
#include <math.h>

enum { READ_AT_ONCE = 64 };

static const char *const type_names[SEARCH_VECTOR_TYPES] = {"float32", "float16", "int8", "uint8"};
static const char *const metric_names[SEARCH_METRICS] = {"cosine", "dotproduct", "euclidean"};

/* --- Names ----------------------------------------------------------------------------------- */

static bool name_find(struct slice name, const char *const *names, unsigned count, unsigned *ret_at)
{
    for (unsigned i = 0; i < count; i++) {
        if (!slice_equal_nocase(name, slice_of_text(names[i])))
            continue;
        *ret_at = i;
        return true;
    }
    return false;
}

bool search_vector_type_find(struct slice name, enum search_vector_type *ret_type)
{
    unsigned at;

    if (!name_find(name, type_names, SEARCH_VECTOR_TYPES, &at))
        return false;
    *ret_type = (enum search_vector_type)at;
    return true;
}

bool search_metric_find(struct slice name, enum search_metric *ret_metric)
{
    unsigned at;

    if (!name_find(name, metric_names, SEARCH_METRICS, &at))
        return false;
    *ret_metric = (enum search_metric)at;
    return true;
}

const char *search_vector_type_name(enum search_vector_type type)
{
    return type_names[type];
}

const char *search_metric_name(enum search_metric metric)
{
    return metric_names[metric];
}

/* dimensions (16 bits) | metric (8) | type (8) */
uint32_t search_vectors_pack(const struct search_vectors *vectors)
{
    return vectors->dimensions << 16 | (uint32_t)vectors->metric << 8 | (uint32_t)vectors->type;
}

bool search_vectors_unpack(int64_t packed, struct search_vectors *ret_vectors)
{
    uint32_t type = packed & 0xFF, metric = packed >> 8 & 0xFF;

    if (packed < 0 || packed >> 16 > SEARCH_DIMENSIONS_MAX || type >= SEARCH_VECTOR_TYPES ||
        metric >= SEARCH_METRICS)
        return false;
    *ret_vectors = (struct search_vectors){(enum search_vector_type)type,
                                           (enum search_metric)metric, (uint32_t)(packed >> 16)};
    return true;
}

/* --- Numbers --------------------------------------------------------------------------------- */

uint16_t search_half_of(float number)
{
    uint32_t bits, sign, exponent, mantissa, shift, half, rest, middle;

    memcpy(&bits, &number, sizeof bits);
    sign = bits >> 16 & 0x8000;
    exponent = bits >> 23 & 0xFF;
    mantissa = bits & 0x7FFFFF;
    if (exponent == 0xFF)
        return (uint16_t)(sign | 0x7C00 | (mantissa ? 0x200 : 0));
    if (exponent < 102) /* below half of the smallest one */
        return (uint16_t)sign;
    mantissa |= 0x800000;
    shift = exponent < 113 ? 126 - exponent : 13; /* subnormal ones lose more bits */
    half = mantissa >> shift;
    if (exponent >= 113)
        half += (exponent - 113) << 10; /* the implied bit counts as one exponent */
    rest = mantissa & ((1u << shift) - 1);
    middle = 1u << (shift - 1);
    half += rest > middle || (rest == middle && (half & 1));
    return (uint16_t)(sign | MIN(half, 0x7C00u));
}

float search_half_value(uint16_t half)
{
    uint32_t bits = (uint32_t)(half & 0x7FFF) << 13;
    float value;

    if (bits >= 0x7C00u << 13)
        bits |= 0x7F800000u; /* not finite */
    memcpy(&value, &bits, sizeof value);
    if (bits < 0x7C00u << 13)
        value *= 0x1p112f; /* exact, of subnormal ones too */
    return half & 0x8000 ? -value : value;
}

size_t search_vector_element(enum search_vector_type type)
{
    static const size_t sizes[SEARCH_VECTOR_TYPES] = {4, 2, 1, 1};

    return sizes[type];
}

/* A number as its type keeps it. False: the type has none like it. */
static bool element_of(double number, enum search_vector_type type, float *ret_element)
{
    float element = (float)number;

    switch (type) {
    case SEARCH_FLOAT16:
        element = search_half_value(search_half_of(element));
        break;
    case SEARCH_INT8:
        if (number < INT8_MIN || number > INT8_MAX || number != trunc(number))
            return false;
        break;
    case SEARCH_UINT8:
        if (number < 0 || number > UINT8_MAX || number != trunc(number))
            return false;
        break;
    default:
        break;
    }
    *ret_element = element;
    return isfinite(element);
}

/* Single precision is what most vectors have, and the loop for it has no branches. */
static bool elements_of(const double *numbers, size_t count, enum search_vector_type type,
                        float *to)
{
    bool fine = true;

    if (type != SEARCH_FLOAT32) {
        for (size_t i = 0; i < count && fine; i++)
            fine = element_of(numbers[i], type, &to[i]);
        return fine;
    }
    for (size_t i = 0; i < count; i++) {
        to[i] = (float)numbers[i];
        fine &= fabsf(to[i]) <= FLT_MAX; /* false of NaN */
    }
    return fine;
}

bool search_vector_read(const struct document_value *value, const struct search_vectors *vectors,
                        float *to, uint32_t *ret_dimensions)
{
    uint32_t max = vectors->dimensions ? vectors->dimensions : SEARCH_DIMENSIONS_MAX, count = 0;
    double numbers[READ_AT_ONCE];
    struct document_iter iter;

    assert(max <= SEARCH_DIMENSIONS_MAX);
    if (value->type != DOCUMENT_ARRAY)
        return false;
    document_iter_init(&iter, value->document);
    for (;;) {
        size_t read =
            document_iter_doubles(&iter, numbers, MIN(max - count, (uint32_t)READ_AT_ONCE));

        /* what is no double, or the last one */
        if (read < READ_AT_ONCE && document_iter_next(&iter)) {
            if (count + read == max || !document_to_double(&iter.value, &numbers[read]))
                return false;
            read++;
        }
        if (!read)
            break;
        if (!elements_of(numbers, read, vectors->type, &to[count]))
            return false;
        count += (uint32_t)read;
    }
    if (!count || (vectors->dimensions && count != vectors->dimensions))
        return false;
    *ret_dimensions = count;
    return true;
}

void search_vector_store(const float *vector, uint32_t dimensions, enum search_vector_type type,
                         uint8_t *to)
{
    for (uint32_t i = 0; i < dimensions; i++) {
        uint32_t bits;
        uint16_t half;

        switch (type) {
        case SEARCH_FLOAT32:
            memcpy(&bits, &vector[i], sizeof bits);
            bytes_put_le32(to + 4 * (size_t)i, bits);
            break;
        case SEARCH_FLOAT16:
            half = htole16(search_half_of(vector[i]));
            memcpy(to + 2 * (size_t)i, &half, sizeof half);
            break;
        default:
            to[i] = (uint8_t)(int)vector[i];
            break;
        }
    }
}

void search_vector_load(const uint8_t *from, uint32_t dimensions, enum search_vector_type type,
                        float *to)
{
    for (uint32_t i = 0; i < dimensions; i++) {
        uint32_t bits;
        uint16_t half;

        switch (type) {
        case SEARCH_FLOAT32:
            bits = bytes_get_le32(from + 4 * (size_t)i);
            memcpy(&to[i], &bits, sizeof bits);
            break;
        case SEARCH_FLOAT16:
            memcpy(&half, from + 2 * (size_t)i, sizeof half);
            to[i] = search_half_value(le16toh(half));
            break;
        case SEARCH_INT8:
            to[i] = (int8_t)from[i];
            break;
        default:
            to[i] = from[i];
            break;
        }
    }
}

/* --- Scores ---------------------------------------------------------------------------------- */

double search_vector_length(const struct search_kernels *kernels, const float *vector,
                            uint32_t dimensions)
{
    return sqrt(kernels->dot[SEARCH_FLOAT32](vector, (const uint8_t *)vector, dimensions));
}

double search_vector_score(const struct search_kernels *kernels,
                           const struct search_vectors *vectors, const float *asked,
                           double asked_length, const uint8_t *stored, double stored_length,
                           uint32_t dimensions)
{
    double lengths, score;

    if (vectors->metric == SEARCH_EUCLIDEAN)
        return sqrt(kernels->square[vectors->type](asked, stored, dimensions));
    score = kernels->dot[vectors->type](asked, stored, dimensions);
    if (vectors->metric == SEARCH_DOT_PRODUCT)
        return score;
    lengths = asked_length * stored_length;
    if (!(lengths > 0))
        return 0;
    score /= lengths;
    return score > 1 ? 1 : score < -1 ? -1 : score;
}
