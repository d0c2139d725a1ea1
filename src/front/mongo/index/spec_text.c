/* Indexes of text: their fields with weights, and the languages of documents. */
#include "front/mongo/index/spec_private.h"

#include "search/analyser.h"

/* A wildcard of everything stands for all fields, which may have weights of their own. */
static bool text_is_all(const struct mongo_index_reading *r)
{
    struct document_value all;

    return document_find(r->key.document, SLICE("$**"), &all) ||
           (r->weights.type == DOCUMENT_OBJECT &&
            document_find(r->weights.document, SLICE("$**"), &all));
}

static bool weights_check(const struct mongo_index_reading *r)
{
    struct document_iter iter;
    double weight;

    if (!mongo_index_is_given(&r->weights))
        return true;
    if (r->weights.type != DOCUMENT_OBJECT)
        return mongo_index_cannot(r, "text index option 'weights' must be an object");
    document_iter_init(&iter, r->weights.document);
    while (document_iter_next(&iter)) {
        if (!mongo_index_field_check(r, iter.key))
            return false;
        if (!document_to_double(&iter.value, &weight) || !(weight >= 1 && weight < 1000000000))
            return mongo_index_cannot(
                r, "text index weight must be in the exclusive interval (0,1000000000)");
    }
    return document_count(r->weights.document) <= INDEX_PARTS_MAX ||
           mongo_index_cannot(r, "a text index has at most 32 fields");
}

/* {_fts: "text", _ftsx: 1}: what the key of such an index is in the end. */
static struct slice text_key(const struct mongo_index_reading *r)
{
    CLEANUP(buf_done) struct buf out;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_string(&out, SLICE("_fts"), SLICE("text"));
    document_append_int32(&out, SLICE("_ftsx"), 1);
    document_end(&out, begin);
    return arena_copy(r->arena, buf_slice(&out));
}

bool mongo_index_text_check(struct mongo_index_reading *r)
{
    struct document_iter iter;
    int64_t version;

    if (r->texts != r->parts)
        return mongo_error_set(r->err, MONGO_NOT_IMPLEMENTED,
                               "createIndexes: text indexes with other keys before or behind are "
                               "not offered yet");
    document_iter_init(&iter, r->key.document);
    while (document_iter_next(&iter))
        if (mongo_index_is_wildcard(iter.key) && !slice_equal(iter.key, SLICE("$**")))
            return mongo_index_cannot(r, "a text index is of fields, or of all with \"$**\"");
    if (!weights_check(r))
        return false;
    if (mongo_index_is_given(&r->text_version) &&
        (!document_to_int64(&r->text_version, &version) || version != 3))
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "bad index type: a text index has textIndexVersion 3");
    if (mongo_index_is_given(&r->language) &&
        (r->language.type != DOCUMENT_STRING || !search_language_code(r->language.text).data))
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "default_language is not valid: it is one of %s",
                               "english, french, german, italian, portuguese, spanish, none");
    if (mongo_index_is_given(&r->override) &&
        (r->override.type != DOCUMENT_STRING || !r->override.text.len ||
         r->override.text.data[0] == '$'))
        return mongo_index_cannot(r, "language_override is not valid");
    if (mongo_index_is_given(&r->unique) && mongo_index_flag(&r->unique))
        return mongo_index_cannot(r, "Index type 'text' does not support the unique option");
    if (mongo_index_is_given(&r->expires))
        return mongo_index_cannot(r, "Index type 'text' cannot be a TTL index");
    r->wildcards = 0;
    r->spec->key = text_key(r);
    return true;
}

/* Each field of the key and of the weights, once, with its weight. */
static bool text_field(const struct mongo_index_reading *r, size_t number, struct slice *ret_field,
                       double *ret_weight)
{
    const struct document_value *lists[] = {&r->key, &r->weights};
    size_t at = 0;

    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct document_value other;
        struct document_iter iter;

        if (lists[i]->type != DOCUMENT_OBJECT)
            continue;
        document_iter_init(&iter, lists[i]->document);
        while (document_iter_next(&iter)) {
            if ((i && document_find(r->key.document, iter.key, &other)) || at++ != number)
                continue;
            *ret_field = iter.key;
            *ret_weight = 1;
            if (r->weights.type == DOCUMENT_OBJECT &&
                document_find(r->weights.document, iter.key, &other))
                (void)document_to_double(&other, ret_weight);
            return true;
        }
    }
    return false;
}

static struct slice language_of(const struct mongo_index_reading *r)
{
    return mongo_index_is_given(&r->language) ? r->language.text : SLICE("english");
}

static struct slice override_of(const struct mongo_index_reading *r)
{
    return mongo_index_is_given(&r->override) ? r->override.text : SLICE("language");
}

void mongo_index_text_show(const struct mongo_index_reading *r, struct buf *out)
{
    size_t weights = document_append_object_begin(out, SLICE("weights"));
    struct slice field;
    double weight;

    for (size_t i = 0; text_field(r, i, &field, &weight); i++)
        document_append_int32(out, field, (int32_t)weight);
    document_end(out, weights);
    document_append_string(out, SLICE("default_language"), language_of(r));
    document_append_string(out, SLICE("language_override"), override_of(r));
    document_append_int32(out, SLICE("textIndexVersion"), 3);
}

/* The members key and text of the definition. */
void mongo_index_text_append(const struct mongo_index_reading *r, struct buf *out)
{
    char index[DOCUMENT_INDEX_SIZE];
    struct slice field;
    double weight, all = 1;
    uint32_t count = 0;
    size_t list = 0, text;

    for (size_t i = 0; text_field(r, i, &field, &weight); i++) {
        size_t part;

        if (slice_equal(field, SLICE("$**"))) {
            all = weight;
            continue;
        }
        if (!count)
            list = document_append_array_begin(out, SLICE("key"));
        part = document_append_object_begin(out, document_index_key(count++, index));
        document_append_string(out, SLICE("path"), mongo_index_path(field, r->arena));
        document_end(out, part);
    }
    if (count)
        document_end(out, list);
    text = document_append_object_begin(out, SLICE("text"));
    document_append_string(out, SLICE("language"), search_language_code(language_of(r)));
    document_append_string(out, SLICE("override"), override_of(r));
    if (count) {
        list = document_append_array_begin(out, SLICE("weights"));
        count = 0;
        for (size_t i = 0; text_field(r, i, &field, &weight); i++)
            if (!slice_equal(field, SLICE("$**")))
                document_append_double(out, document_index_key(count++, index), weight);
        document_end(out, list);
    }
    if (text_is_all(r))
        document_append_double(out, SLICE("all"), all);
    document_end(out, text);
}
