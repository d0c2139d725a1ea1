/* What changed, by comparing the documents before and after: fields by name, elements by place.
 *
 * Modifiers could say it as they work, but then a replaced object and one changed in three fields
 * would have to be told apart by each of them; comparing finds the smallest description for all,
 * pipelines included. It costs a walk over what both documents have, and nothing below values whose
 * bytes are the same. */
#include "front/mongo/update/update_private.h"

struct description {
    struct buf updated, removed, truncated;
    uint32_t removed_count, truncated_count;
    struct buf path;
};

bool update_values_same(const struct document_value *a, const struct document_value *b)
{
    CLEANUP(buf_done) struct buf x = {0};
    CLEANUP(buf_done) struct buf y = {0};

    if (a->type != b->type)
        return false;
    switch (a->type) {
    case DOCUMENT_OBJECT:
    case DOCUMENT_ARRAY:
        return slice_equal(a->document, b->document);
    case DOCUMENT_STRING:
        return slice_equal(a->text, b->text);
    case DOCUMENT_INT32:
        return a->int32 == b->int32;
    case DOCUMENT_INT64:
    case DOCUMENT_DATE:
        return a->int64 == b->int64;
    default:
        break;
    }
    buf_init(&x, BUF_DEFAULT_MAX);
    buf_init(&y, BUF_DEFAULT_MAX);
    document_append(&x, SLICE(""), a);
    document_append(&y, SLICE(""), b);
    return slice_equal(buf_slice(&x), buf_slice(&y));
}

static void objects_compare(struct description *description, struct slice before,
                            struct slice after);
static void arrays_compare(struct description *description, struct slice before,
                           struct slice after);

static size_t path_push(struct description *description, struct slice name)
{
    size_t mark = description->path.len;

    if (mark)
        buf_append_byte(&description->path, '.');
    buf_append_slice(&description->path, name);
    return mark;
}

static void text_append(struct buf *array, uint32_t *count, struct slice text)
{
    char key[DOCUMENT_INDEX_SIZE];

    document_append_string(array, document_index_key((*count)++, key), text);
}

static void values_compare(struct description *description, struct slice name,
                           const struct document_value *before, const struct document_value *after)
{
    size_t mark;

    if (before && update_values_same(before, after))
        return;
    mark = path_push(description, name);
    if (before && before->type == after->type && before->type == DOCUMENT_OBJECT)
        objects_compare(description, before->document, after->document);
    else if (before && before->type == after->type && before->type == DOCUMENT_ARRAY)
        arrays_compare(description, before->document, after->document);
    else
        document_append(&description->updated, buf_slice(&description->path), after);
    description->path.len = mark;
}

static void objects_compare(struct description *description, struct slice before,
                            struct slice after)
{
    struct document_iter iter;
    struct document_value other;

    document_iter_init(&iter, after);
    while (document_iter_next(&iter))
        values_compare(description, iter.key,
                       document_find(before, iter.key, &other) ? &other : NULL, &iter.value);
    document_iter_init(&iter, before);
    while (document_iter_next(&iter)) {
        size_t mark;

        if (document_find(after, iter.key, &other))
            continue;
        mark = path_push(description, iter.key);
        text_append(&description->removed, &description->removed_count,
                    buf_slice(&description->path));
        description->path.len = mark;
    }
}

static void truncated_append(struct description *description, size_t size)
{
    char key[DOCUMENT_INDEX_SIZE];
    size_t begin = document_append_object_begin(
        &description->truncated, document_index_key(description->truncated_count++, key));

    document_append_string(&description->truncated, SLICE("field"), buf_slice(&description->path));
    document_append_int32(&description->truncated, SLICE("newSize"), (int32_t)size);
    document_end(&description->truncated, begin);
}

static void arrays_compare(struct description *description, struct slice before, struct slice after)
{
    struct document_iter x, y;
    size_t size = document_count(after);
    bool more = true;

    if (document_count(before) > size)
        truncated_append(description, size);
    document_iter_init(&x, before);
    document_iter_init(&y, after);
    for (uint32_t i = 0; document_iter_next(&y); i++) {
        char key[DOCUMENT_INDEX_SIZE];

        more = more && document_iter_next(&x);
        values_compare(description, document_index_key(i, key), more ? &x.value : NULL, &y.value);
    }
}

void update_describe(struct slice before, struct slice after, struct arena *arena,
                     struct mongo_update_result *result)
{
    struct description description = {0};
    struct buf *buffers[] = {&description.updated, &description.removed, &description.truncated};
    struct slice *results[] = {&result->updated_fields, &result->removed_fields,
                               &result->truncated_arrays};
    size_t begins[ARRAY_LEN(buffers)];

    buf_init(&description.path, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < ARRAY_LEN(buffers); i++) {
        buf_init(buffers[i], BUF_DEFAULT_MAX);
        begins[i] = document_begin(buffers[i]);
    }
    objects_compare(&description, before, after);
    for (size_t i = 0; i < ARRAY_LEN(buffers); i++) {
        document_end(buffers[i], begins[i]);
        *results[i] = arena_copy(arena, buf_slice(buffers[i]));
        buf_done(buffers[i]);
    }
    buf_done(&description.path);
}
