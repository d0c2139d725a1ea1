/* Indexes of vectors: an item has one entry, with the vector at the path or a code of it, so that a
 * search reads vectors and nothing else of items.
 *
 *     02 0B | path | length of what follows (2 bytes, big-endian) | bytes
 *
 *     of a flat index        length of the vector (double, little-endian) | elements, as their type
 *                            stores them (search/vector.h)
 *     of the others          its code (search/code.h)
 *
 * What is no vector of the policy's kind has no entry, and no score either. Entries are in the
 * order of their bytes, which means nothing: whoever searches walks them all. */
#include "index/policy_private.h"

#include "base/bytes.h"
#include "document/bson.h"
#include "search/code.h"

enum {
    LENGTH_SIZE = 2,
    FLAT_HEAD = 8,
    PREFIX_ROOM = 2 + INDEX_PATH_MAX + INDEX_PATH_TAIL,
};

static struct slice prefix_of(const struct document_path *path, struct arena *arena)
{
    CLEANUP(buf_done) struct buf prefix;

    buf_init(&prefix, BUF_DEFAULT_MAX);
    buf_append_byte(&prefix, INDEX_MARK_ESCAPE);
    buf_append_byte(&prefix, INDEX_ESCAPE_VECTOR);
    index_path_append(path, &prefix);
    return arena_copy(arena, buf_slice(&prefix));
}

bool index_vector_length(struct slice bytes, size_t *ret_length)
{
    if (bytes.len < LENGTH_SIZE)
        return false;
    *ret_length = LENGTH_SIZE + (size_t)bytes_get_be16(bytes.data);
    return *ret_length <= bytes.len;
}

size_t index_vector_size(const struct index_vector *vector)
{
    return vector->bits ? search_code_size(vector->vectors.dimensions, vector->bits)
                        : FLAT_HEAD + vector->vectors.dimensions *
                                          search_vector_element(vector->vectors.type);
}

bool index_vector_distance(const struct index_vector *vector, const struct search_asked *asked,
                           struct slice value, double *ret_distance)
{
    const uint8_t *bytes = value.data + LENGTH_SIZE;
    uint64_t bits;
    double length;

    if (value.len != LENGTH_SIZE + index_vector_size(vector))
        return false;
    if (vector->bits) {
        *ret_distance = search_asked_distance_code(asked, bytes, vector->bits);
        return true;
    }
    bits = bytes_get_le64(bytes);
    memcpy(&length, &bits, sizeof length);
    *ret_distance = search_asked_distance(asked, bytes + FLAT_HEAD, length);
    return true;
}

/* --- Entries --------------------------------------------------------------------------------- */

static void flat_put(const float *elements, const struct index_vector *vector, uint8_t *to)
{
    uint32_t dimensions = vector->vectors.dimensions;
    double length = search_vector_length(search_kernels_best(), elements, dimensions);
    uint64_t bits;

    memcpy(&bits, &length, sizeof bits);
    bytes_put_le64(to, bits);
    search_vector_store(elements, dimensions, vector->vectors.type, to + FLAT_HEAD);
}

/* What stands behind the prefix. */
static void value_append(const float *elements, const struct index_vector *vector, struct buf *to)
{
    uint8_t bytes[FLAT_HEAD + SEARCH_DIMENSIONS_MAX * sizeof(float)], head[LENGTH_SIZE];
    size_t size = index_vector_size(vector);

    assert(size <= sizeof bytes && size <= UINT16_MAX);
    if (vector->bits)
        search_code_make(elements, vector->vectors.dimensions, vector->bits, bytes);
    else
        flat_put(elements, vector, bytes);
    bytes_put_be16(head, (uint16_t)size);
    buf_append(to, head, sizeof head);
    buf_append(to, bytes, size);
}

static void vector_put(struct index_walk *w, const struct document_value *value)
{
    const struct index_vector *vector = w->definition->vector;
    float elements[SEARCH_DIMENSIONS_MAX];
    uint32_t dimensions;
    size_t begin;

    index_walk_work(w, index_value_work(value));
    if (w->full || !search_vector_read(value, &vector->vectors, elements, &dimensions))
        return;
    index_walk_work(w, dimensions);
    begin = index_walk_begin(w, PREFIX_ROOM + LENGTH_SIZE + index_vector_size(vector));
    buf_append_slice(&w->out, w->definition->prefix);
    value_append(elements, vector, &w->out);
    index_walk_end(w, begin);
}

bool index_vector_value(const struct index_definition *definition, struct slice item,
                        struct buf *to)
{
    const struct document_path *path = &definition->parts[0].path;
    struct document_value value = document_object(item);
    float elements[SEARCH_DIMENSIONS_MAX];
    uint32_t dimensions;

    for (size_t i = 0; i < path->count; i++)
        if (value.type != DOCUMENT_OBJECT ||
            !document_find(value.document, path->segments[i].name, &value))
            return false;
    if (!search_vector_read(&value, &definition->vector->vectors, elements, &dimensions))
        return false;
    value_append(elements, definition->vector, to);
    return true;
}

static bool vector_entries(const struct index_definition *definition, struct slice item,
                           struct index_walk *w, struct error *err UNUSED)
{
    const struct document_path *path = &definition->parts[0].path;
    struct document_value value = document_object(item);

    for (size_t i = 0; i < path->count; i++) {
        index_walk_work(w, 1);
        if (w->full || value.type != DOCUMENT_OBJECT ||
            !document_find(value.document, path->segments[i].name, &value))
            return true;
    }
    vector_put(w, &value);
    return true;
}

static bool vector_check(const struct index_definition *definition, struct error *err)
{
    return definition->vector ||
           error_set(err, ERROR_NOT_SUPPORTED, "an index of vectors is a part of a policy");
}

const struct index_kind index_kind_vector = {
    .name = "vector", .check = vector_check, .entries = vector_entries};

/* --- Of a policy ----------------------------------------------------------------------------- */

bool index_vector_same(const struct index_vector *a, const struct index_vector *b)
{
    return a->bits == b->bits && a->vectors.type == b->vectors.type &&
           a->vectors.dimensions == b->vectors.dimensions;
}

bool index_policy_has_vectors(const struct index_policy *policy)
{
    return policy->vector_count != 0;
}

static bool text_is(struct slice row, struct slice name, struct slice *ret_text)
{
    struct document_value value;

    if (!document_find(row, name, &value) || value.type != DOCUMENT_STRING)
        return false;
    *ret_text = value.text;
    return true;
}

/* What the vectors at a path are. False: nothing that could be indexed is said of them. */
static bool vectors_find(struct slice embeddings, struct slice path,
                         struct search_vectors *ret_vectors)
{
    struct document_iter iter;

    document_iter_init(&iter, embeddings);
    while (document_iter_next(&iter)) {
        struct document_value dimensions;
        struct slice text;
        int64_t count;

        if (iter.value.type != DOCUMENT_OBJECT ||
            !text_is(iter.value.document, SLICE("path"), &text) || !slice_equal(text, path))
            continue;
        if (!text_is(iter.value.document, SLICE("dataType"), &text) ||
            !search_vector_type_find(text, &ret_vectors->type) ||
            !text_is(iter.value.document, SLICE("distanceFunction"), &text) ||
            !search_metric_find(text, &ret_vectors->metric) ||
            !document_find(iter.value.document, SLICE("dimensions"), &dimensions) ||
            !document_to_int64(&dimensions, &count) || count < 1 || count > SEARCH_DIMENSIONS_MAX)
            return false;
        ret_vectors->dimensions = (uint32_t)count;
        return true;
    }
    return false;
}

static const struct index_definition *definition_of(const struct index_vector_listed *listed,
                                                    const struct search_vectors *vectors,
                                                    struct arena *arena)
{
    struct index_definition *definition = ARENA_NEW(arena, struct index_definition);
    struct index_vector *vector = ARENA_NEW(arena, struct index_vector);
    struct index_part *part = ARENA_NEW(arena, struct index_part);

    vector->vectors = *vectors;
    if (!listed->flat)
        vector->bits = listed->code_bytes
                           ? search_code_bits(vectors->dimensions, listed->code_bytes)
                           : SEARCH_CODE_BITS_DEFAULT;
    vector->graph_list = listed->graph_list;
    part->path = listed->path;
    *definition = (struct index_definition){.format = INDEX_FORMAT_POLICY,
                                            .kind = &index_kind_vector,
                                            .parts = part,
                                            .part_count = 1,
                                            .vector = vector,
                                            .order = DOCUMENT_ORDER_SQL,
                                            .expire_after_s = INDEX_EXPIRES_NEVER,
                                            .prefix = prefix_of(&listed->path, arena)};
    return definition;
}

const struct index_policy *index_policy_with_vectors(const struct index_policy *policy,
                                                     struct slice embeddings, struct arena *arena)
{
    const struct index_definition **made =
        ARENA_ARRAY(arena, const struct index_definition *, policy->vector_count + 1);
    size_t count = 0;

    for (size_t i = 0; i < policy->vector_count; i++) {
        struct search_vectors vectors;

        if (vectors_find(embeddings, policy->vectors[i].text, &vectors) &&
            (!policy->vectors[i].flat || vectors.dimensions <= SEARCH_DIMENSIONS_FLAT_MAX))
            made[count++] = definition_of(&policy->vectors[i], &vectors, arena);
    }
    return index_policy_insert(policy, made, count, arena);
}

/* The same properties; how a path ends is a matter of who wrote it. */
static bool leads_to(const struct document_path *own, const struct document_path *path)
{
    if (own->count != path->count)
        return false;
    for (size_t i = 0; i < own->count; i++)
        if (path->segments[i].kind != DOCUMENT_SEGMENT_PROPERTY ||
            !slice_equal(own->segments[i].name, path->segments[i].name))
            return false;
    return true;
}

const struct index_definition *index_policy_vector_at(const struct index_policy *policy,
                                                      const struct document_path *path)
{
    for (size_t i = 0; i < policy->definition_count; i++) {
        const struct index_definition *definition = policy->definitions[i];

        if (definition->kind == &index_kind_vector && leads_to(&definition->parts[0].path, path))
            return definition;
    }
    return NULL;
}
