/* Two vectors by the bytes of their values, the one that was used longest ago makes way. What rows
 * bring passes through the one; what a query names is used with every row and stays in the other.
 * Bytes are kept of what comes a second time from where it came from before: what a query names
 * lies at one place, what rows bring mostly does not, and is many bytes to copy for nothing. */
#include "query/value/vectors.h"

#include "base/memory.h"

enum {
    KEPT = 2,
    ELEMENT_BYTES_MAX = 23, /* of a number in an array: type, name of four digits, decimal */
    BYTES_MAX = SEARCH_DIMENSIONS_MAX * ELEMENT_BYTES_MAX + 5,
};

struct kept {
    struct search_vectors vectors;
    struct buf bytes; /* of the value; none: it was not kept, and is not found again */
    uint64_t used;
    struct query_vector vector;
    float *elements;
};

struct query_vector_cache {
    struct kept list[KEPT];
    struct slice passed[KEPT]; /* where the last that were not kept lay: never read */
    uint64_t used;
};

static struct query_vector_cache *cache_new(void)
{
    struct query_vector_cache *cache = MEMORY_NEW(struct query_vector_cache);

    for (size_t i = 0; i < KEPT; i++) {
        buf_init(&cache->list[i].bytes, BYTES_MAX);
        cache->list[i].elements = memory_alloc(SEARCH_DIMENSIONS_MAX * sizeof(float));
    }
    return cache;
}

void query_vector_cache_free(struct query_vector_cache *cache)
{
    for (size_t i = 0; cache && i < KEPT; i++) {
        buf_done(&cache->list[i].bytes);
        memory_free(cache->list[i].elements);
    }
    memory_free(cache);
}

static bool kept_is(const struct kept *kept, struct slice bytes,
                    const struct search_vectors *vectors)
{
    return kept->bytes.len && kept->vectors.type == vectors->type &&
           kept->vectors.dimensions == vectors->dimensions &&
           slice_equal(buf_slice(&kept->bytes), bytes);
}

/* Did the one before, or that before it, lie there? If not it is noted. */
static bool comes_again(struct query_vector_cache *cache, struct slice bytes)
{
    for (size_t i = 0; i < KEPT; i++)
        if (cache->passed[i].data == bytes.data && cache->passed[i].len == bytes.len)
            return true;
    cache->passed[0] = cache->passed[1];
    cache->passed[1] = bytes;
    return false;
}

static void kept_make(struct query_vector_cache *cache, struct kept *kept,
                      const struct document_value *value, const struct search_vectors *vectors)
{
    kept->vectors = *vectors;
    buf_clear(&kept->bytes);
    if (comes_again(cache, value->document))
        buf_append_slice(&kept->bytes, value->document);
    kept->vector = (struct query_vector){0};
    if (!search_vector_read(value, vectors, kept->elements, &kept->vector.dimensions))
        return;
    kept->vector.elements = kept->elements;
    kept->vector.length =
        search_vector_length(search_kernels_best(), kept->elements, kept->vector.dimensions);
}

bool query_vector_get(struct query_context *context, const struct document_value *value,
                      const struct search_vectors *vectors, struct query_vector *ret_vector,
                      struct error *err)
{
    struct kept *kept;

    *ret_vector = (struct query_vector){0};
    if (value->type != DOCUMENT_ARRAY || value->document.len > BYTES_MAX)
        return true;
    if (!context->vectors)
        context->vectors = cache_new();
    kept = &context->vectors->list[0];
    for (size_t i = 0; i < KEPT; i++) {
        struct kept *other = &context->vectors->list[i];

        if (kept_is(other, value->document, vectors)) {
            other->used = ++context->vectors->used;
            *ret_vector = other->vector;
            return true;
        }
        if (other->used < kept->used)
            kept = other;
    }
    if (!query_work(context, value->document.len >> 3, err))
        return false;
    kept_make(context->vectors, kept, value, vectors);
    kept->used = ++context->vectors->used;
    *ret_vector = kept->vector;
    return true;
}
