/* Policies that queries look at, or that are kept for their clients: vectors, full text,
 * client-side encryption. They are kept as given, so all that is done here is to refuse what the
 * service refuses. */
#include "definition/definition_private.h"

#include "document/bson.h"
#include "search/vector.h"

enum { VECTOR_PATHS_MAX = 64, SHOWN_MAX = 60 };

#define SHOWN(text) (int)MIN((text).len, (size_t)SHOWN_MAX), (const char *)(text).data

static struct document_value member(struct slice object, struct slice name)
{
    struct document_value value;

    return object.data && document_find(object, name, &value) && value.type != DOCUMENT_NULL
               ? value
               : document_undefined();
}

static struct slice text_of(struct slice object, struct slice name)
{
    struct document_value value = member(object, name);

    return value.type == DOCUMENT_STRING ? value.text : SLICE("");
}

static struct slice object_of(struct slice object, struct slice name)
{
    struct document_value value = member(object, name);

    return value.type == DOCUMENT_OBJECT ? value.document : SLICE_NONE;
}

/* An array of objects that each have a path; may be left out. */
static bool rows_of(struct slice policy, struct slice name, const char *what, struct arena *arena,
                    struct slice *ret_array, struct error *err)
{
    struct document_value value = member(policy, name);
    struct document_iter iter;
    struct document_path path;

    *ret_array = SLICE_NONE;
    if (value.type == DOCUMENT_UNDEFINED)
        return true;
    if (value.type != DOCUMENT_ARRAY)
        return error_set(err, ERROR_BAD_REQUEST, "%s: %.*s is not an array", what, SLICE_ARG(name));
    document_iter_init(&iter, value.document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT)
            return error_set(err, ERROR_BAD_REQUEST, "%s: %.*s has something that is not an object",
                             what, SLICE_ARG(name));
        if (!document_path_parse(text_of(iter.value.document, SLICE("path")), DOCUMENT_PATH_KEY,
                                 arena, &path, err))
            return error_prefix(err, "%s", what);
    }
    *ret_array = value.document;
    return true;
}

/* The row of this path; SLICE_NONE: there is none. */
static struct slice row_find(struct slice rows, struct slice path)
{
    struct document_iter iter;

    if (!rows.data)
        return SLICE_NONE;
    document_iter_init(&iter, rows);
    while (document_iter_next(&iter))
        if (slice_equal(text_of(iter.value.document, SLICE("path")), path))
            return iter.value.document;
    return SLICE_NONE;
}

static bool is_one_of(struct slice text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal_nocase(text, slice_of_text(words[i])))
            return true;
    return false;
}

/* --- Vectors --------------------------------------------------------------------------------- */

static bool dimensions_check(struct slice embedding, int64_t max, struct error *err)
{
    struct document_value value = member(embedding, SLICE("dimensions"));
    int64_t dimensions = 0;

    if (value.type != DOCUMENT_UNDEFINED && !document_to_int64(&value, &dimensions))
        return error_set(err, ERROR_BAD_REQUEST,
                         "Vector Embedding Policy has Dimensions that are not a whole number");
    if (dimensions < 1)
        return error_set(err, ERROR_BAD_REQUEST,
                         "Vector Embedding Policy has invalid Dimensions:%lld, it should be "
                         "positive integer",
                         (long long)dimensions);
    if (dimensions > max)
        return error_set(err, ERROR_BAD_REQUEST,
                         "Vector Embedding Policy has Dimensions:%lld which is more than max:%lld",
                         (long long)dimensions, (long long)max);
    return true;
}

static bool embedding_check(struct slice embedding, struct error *err)
{
    enum search_vector_type known_type;
    enum search_metric known_metric;
    struct slice type = text_of(embedding, SLICE("dataType"));
    struct slice function = text_of(embedding, SLICE("distanceFunction"));

    if (!search_vector_type_find(type, &known_type))
        return error_set(err, ERROR_BAD_REQUEST,
                         "Vector Embedding Policy has an invalid DataType:%.*s", SHOWN(type));
    if (!search_metric_find(function, &known_metric))
        return error_set(err, ERROR_BAD_REQUEST,
                         "Vector Embedding Policy has an invalid DistanceFunction:%.*s",
                         SHOWN(function));
    return dimensions_check(embedding, SEARCH_DIMENSIONS_MAX, err);
}

/* What tunes another type of index would be taken for nothing. Containers of before may say it. */
static bool vector_options_check(struct slice index, struct error *err)
{
    struct slice type = text_of(index, SLICE("type"));

    if (member(index, SLICE("vectorIndexShardKey")).type != DOCUMENT_UNDEFINED)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "vectorIndexes: \"vectorIndexShardKey\" is not supported: there is one "
                         "graph for each physical partition");
    if (member(index, SLICE("indexingSearchListSize")).type != DOCUMENT_UNDEFINED &&
        !slice_equal(type, SLICE("diskANN")))
        return error_set(err, ERROR_BAD_REQUEST,
                         "vectorIndexes: \"indexingSearchListSize\" is for the type diskANN alone");
    if (member(index, SLICE("quantizationByteSize")).type != DOCUMENT_UNDEFINED &&
        slice_equal(type, SLICE("flat")))
        return error_set(err, ERROR_BAD_REQUEST,
                         "vectorIndexes: \"quantizationByteSize\" is not for the type flat");
    return true;
}

static bool vector_index_check(struct slice index, struct slice embeddings, struct error *err)
{
    struct slice path = text_of(index, SLICE("path"));
    struct slice embedding = row_find(embeddings, path);

    if (!embedding.data)
        return error_set(err, ERROR_BAD_REQUEST, "%.*s not matching in Embedding's path",
                         SHOWN(slice_skip(path, 1)));
    return !slice_equal(text_of(index, SLICE("type")), SLICE("flat")) ||
           dimensions_check(embedding, SEARCH_DIMENSIONS_FLAT_MAX, err);
}

static bool indexes_same(struct slice a, struct slice b)
{
    struct document_value left = member(a, SLICE("vectorIndexes"));
    struct document_value right = member(b, SLICE("vectorIndexes"));
    bool none_left = left.type != DOCUMENT_ARRAY || document_count(left.document) == 0;
    bool none_right = right.type != DOCUMENT_ARRAY || document_count(right.document) == 0;

    return none_left || none_right ? none_left == none_right
                                   : slice_equal(left.document, right.document);
}

/* Not too many, and each path once. */
static bool paths_check(struct slice rows, const char *what, struct error *err)
{
    struct document_iter iter;

    if (rows.data && document_count(rows) > VECTOR_PATHS_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "%s has more than %d paths", what,
                         VECTOR_PATHS_MAX);
    if (!rows.data)
        return true;
    document_iter_init(&iter, rows);
    while (document_iter_next(&iter)) {
        struct slice path = text_of(iter.value.document, SLICE("path"));

        if (row_find(rows, path).data != iter.value.document.data)
            return error_set(err, ERROR_BAD_REQUEST, "%s has the path \"%.*s\" twice", what,
                             SHOWN(path));
    }
    return true;
}

static bool vectors_check(struct slice body, const struct definition_fields *before,
                          struct arena *arena, struct error *err)
{
    struct slice given = object_of(body, SLICE("vectorEmbeddingPolicy"));
    struct slice policy =
        given.data || !before ? given : object_of(before->document, SLICE("vectorEmbeddingPolicy"));
    struct slice indexing = object_of(body, SLICE("indexingPolicy"));
    struct slice embeddings, indexes;
    struct document_iter iter;

    if (!rows_of(policy, SLICE("vectorEmbeddings"), "Vector Embedding Policy", arena, &embeddings,
                 err) ||
        !rows_of(indexing, SLICE("vectorIndexes"), "vectorIndexes", arena, &indexes, err) ||
        !paths_check(embeddings, "Vector Embedding Policy", err) ||
        !paths_check(indexes, "vectorIndexes", err))
        return false;
    if (embeddings.data) {
        document_iter_init(&iter, embeddings);
        while (document_iter_next(&iter))
            if (!embedding_check(iter.value.document, err))
                return false;
    }
    if (indexes.data) {
        document_iter_init(&iter, indexes);
        while (document_iter_next(&iter))
            if (!vector_index_check(iter.value.document, embeddings, err) ||
                (!before && !vector_options_check(iter.value.document, err)))
                return false;
    }
    if (before && !indexes_same(indexing, object_of(before->document, SLICE("indexingPolicy"))))
        return error_set(err, ERROR_BAD_REQUEST,
                         "Vector Indexing Policy cannot be changed in Collection Replace");
    return true;
}

/* --- Full text ------------------------------------------------------------------------------- */

static bool texts_check(struct slice body, struct arena *arena, struct error *err)
{
    struct slice policy = object_of(body, SLICE("fullTextPolicy"));
    struct slice indexing = object_of(body, SLICE("indexingPolicy"));
    struct slice paths, indexes;
    struct document_iter iter;

    if (!rows_of(policy, SLICE("fullTextPaths"), "Full Text Policy", arena, &paths, err) ||
        !rows_of(indexing, SLICE("fullTextIndexes"), "fullTextIndexes", arena, &indexes, err))
        return false;
    if (policy.data && !text_of(policy, SLICE("defaultLanguage")).len)
        return error_set(err, ERROR_BAD_REQUEST, "the full text policy has no defaultLanguage");
    if (!indexes.data)
        return true;
    document_iter_init(&iter, indexes);
    while (document_iter_next(&iter)) {
        struct slice path = text_of(iter.value.document, SLICE("path"));

        if (!row_find(paths, path).data)
            return error_set(err, ERROR_BAD_REQUEST,
                             "the full text index \"%.*s\" is not in the full text policy",
                             SHOWN(path));
    }
    return true;
}

/* --- Encryption ------------------------------------------------------------------------------ */

static bool encrypted_check(struct slice row, struct error *err)
{
    static const char *const types[] = {"Deterministic", "Randomized"};
    static const char *const algorithms[] = {"AEAD_AES_256_CBC_HMAC_SHA256"};
    struct slice path = text_of(row, SLICE("path"));

    if (!text_of(row, SLICE("clientEncryptionKeyId")).len)
        return error_set(err, ERROR_BAD_REQUEST,
                         "clientEncryptionPolicy: \"%.*s\" has no clientEncryptionKeyId",
                         SHOWN(path));
    if (!is_one_of(text_of(row, SLICE("encryptionType")), types, ARRAY_LEN(types)))
        return error_set(err, ERROR_BAD_REQUEST,
                         "clientEncryptionPolicy: the encryptionType of \"%.*s\" must be "
                         "Deterministic or Randomized",
                         SHOWN(path));
    if (!is_one_of(text_of(row, SLICE("encryptionAlgorithm")), algorithms, ARRAY_LEN(algorithms)))
        return error_set(err, ERROR_BAD_REQUEST,
                         "clientEncryptionPolicy: the encryptionAlgorithm of \"%.*s\" must be "
                         "AEAD_AES_256_CBC_HMAC_SHA256",
                         SHOWN(path));
    return true;
}

static bool encryption_check(struct slice body, struct arena *arena, struct error *err)
{
    struct slice policy = object_of(body, SLICE("clientEncryptionPolicy")), rows;
    struct document_value value = member(policy, SLICE("policyFormatVersion"));
    struct document_iter iter;
    int64_t version = 1;

    if (!policy.data)
        return true;
    if (value.type != DOCUMENT_UNDEFINED &&
        (!document_to_int64(&value, &version) || version < 1 || version > 2))
        return error_set(err, ERROR_BAD_REQUEST,
                         "clientEncryptionPolicy: policyFormatVersion must be 1 or 2");
    if (!rows_of(policy, SLICE("includedPaths"), "clientEncryptionPolicy", arena, &rows, err))
        return false;
    if (!rows.data)
        return error_set(err, ERROR_BAD_REQUEST, "clientEncryptionPolicy has no includedPaths");
    document_iter_init(&iter, rows);
    while (document_iter_next(&iter))
        if (!encrypted_check(iter.value.document, err))
            return false;
    return true;
}

bool definition_policies_check(struct slice body, const struct definition_fields *before,
                               struct arena *arena, struct error *err)
{
    return vectors_check(body, before, arena, err) && texts_check(body, arena, err) &&
           encryption_check(body, arena, err);
}
