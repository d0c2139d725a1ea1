/* What changed, by comparing the documents before and after: fields by name, elements by place.
 *
 * Modifiers could say it as they work, but then a replaced object and one changed in three fields
 * would have to be told apart by each of them; comparing finds the smallest description for all,
 * pipelines included. It costs a walk over what both documents have, and nothing below values whose
 * bytes are the same. */
#include "front/mongo/update/update_private.h"

/* One step of a path, as it stands in its text. */
struct step {
    size_t at, len;
    bool index;     /* of an array */
    bool ambiguous; /* a field whose name has a dot in it, or is a number */
};

struct description {
    struct buf updated, removed, truncated;
    struct buf paths; /* those that can be read in two ways */
    uint32_t removed_count, truncated_count, path_count;
    struct buf path;
    struct step steps[DOCUMENT_DEPTH_MAX + 2];
    size_t step_count, ambiguous_count;
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

static bool is_ambiguous(struct slice name)
{
    bool digits = name.len > 0;

    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] == '.')
            return true;
        digits = digits && name.data[i] >= '0' && name.data[i] <= '9';
    }
    return digits;
}

static void path_push(struct description *description, struct slice name, bool index)
{
    struct step *step = &description->steps[description->step_count];

    assert(description->step_count < ARRAY_LEN(description->steps));
    if (description->step_count++)
        buf_append_byte(&description->path, '.');
    *step = (struct step){.at = description->path.len,
                          .len = name.len,
                          .index = index,
                          .ambiguous = !index && is_ambiguous(name)};
    description->ambiguous_count += step->ambiguous;
    buf_append_slice(&description->path, name);
}

static void path_pop(struct description *description)
{
    const struct step *step = &description->steps[--description->step_count];

    description->ambiguous_count -= step->ambiguous;
    description->path.len = step->at - (description->step_count > 0);
}

/* The path, of which something is told: its steps one by one, where the text does not say them. */
static struct slice path_told(struct description *description)
{
    struct slice path = buf_slice(&description->path);
    char key[DOCUMENT_INDEX_SIZE];
    size_t list;

    if (!description->ambiguous_count)
        return path;
    description->path_count++;
    list = document_append_array_begin(&description->paths, path);
    for (size_t i = 0; i < description->step_count; i++) {
        const struct step *step = &description->steps[i];
        struct slice name = slice_of(path.data + step->at, step->len);
        uint64_t number = 0;

        for (size_t d = 0; step->index && d < name.len; d++)
            number = 10 * number + (name.data[d] - '0');
        if (step->index)
            document_append_int32(&description->paths, document_index_key((uint32_t)i, key),
                                  (int32_t)number);
        else
            document_append_string(&description->paths, document_index_key((uint32_t)i, key), name);
    }
    document_end(&description->paths, list);
    return path;
}

static void text_append(struct buf *array, uint32_t *count, struct slice text)
{
    char key[DOCUMENT_INDEX_SIZE];

    document_append_string(array, document_index_key((*count)++, key), text);
}

/* Of what stands behind the path. */
static void values_compare(struct description *description, const struct document_value *before,
                           const struct document_value *after)
{
    if (before && before->type == after->type && before->type == DOCUMENT_OBJECT)
        objects_compare(description, before->document, after->document);
    else if (before && before->type == after->type && before->type == DOCUMENT_ARRAY)
        arrays_compare(description, before->document, after->document);
    else
        document_append(&description->updated, path_told(description), after);
}

/* before NULL: there was none. */
static void parts_compare(struct description *description, struct slice name, bool index,
                          const struct document_value *before, const struct document_value *after)
{
    if (before && update_values_same(before, after))
        return;
    path_push(description, name, index);
    values_compare(description, before, after);
    path_pop(description);
}

static void objects_compare(struct description *description, struct slice before,
                            struct slice after)
{
    struct document_iter iter;
    struct document_value other;

    document_iter_init(&iter, after);
    while (document_iter_next(&iter))
        parts_compare(description, iter.key, false,
                      document_find(before, iter.key, &other) ? &other : NULL, &iter.value);
    document_iter_init(&iter, before);
    while (document_iter_next(&iter)) {
        if (document_find(after, iter.key, &other))
            continue;
        path_push(description, iter.key, false);
        text_append(&description->removed, &description->removed_count, path_told(description));
        path_pop(description);
    }
}

static void truncated_append(struct description *description, size_t size)
{
    char key[DOCUMENT_INDEX_SIZE];
    size_t begin = document_append_object_begin(
        &description->truncated, document_index_key(description->truncated_count++, key));

    document_append_string(&description->truncated, SLICE("field"), path_told(description));
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
        parts_compare(description, document_index_key(i, key), true, more ? &x.value : NULL,
                      &y.value);
    }
}

void update_describe(struct slice before, struct slice after, struct arena *arena,
                     struct mongo_update_result *result)
{
    struct description description = {0};
    struct buf *buffers[] = {&description.updated, &description.removed, &description.truncated,
                             &description.paths};
    struct slice *results[] = {&result->updated_fields, &result->removed_fields,
                               &result->truncated_arrays, &result->disambiguated_paths};
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
    if (!description.path_count)
        result->disambiguated_paths = SLICE_NONE;
    buf_done(&description.path);
}
