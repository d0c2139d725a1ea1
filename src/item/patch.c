/* Applying a patch: each operation copies the item with one change, between two buffers in turn,
 * the last into the caller's. An item is at most a few megabytes and mostly one kilobyte, and all
 * of it that is not on the way to the target is copied as raw bytes, so a tree of values would cost
 * more than it saves.
 *
 * A change at a pointer goes down from document to document. At each level everything before the
 * element on the way is copied, then it, changed, then what is behind it. Behind an inserted or
 * removed element of an array the keys are counted anew. */
#include "item/patch.h"

#include "document/bson.h"

#include <math.h>

/* What becomes of the target. */
enum change { CHANGE_ADD, CHANGE_SET, CHANGE_REPLACE, CHANGE_REMOVE };

struct edit {
    enum change change;
    const struct patch_pointer *at;
    const struct document_value *value; /* not for CHANGE_REMOVE */
    struct buf *out;
    struct error *err;
};

/* Where a step leads in a document. */
struct transaction_place {
    const uint8_t *begin, *end; /* of the element, or both where a new one goes */
    bool found;
    uint32_t index; /* in an array */
    struct slice key;
    struct document_value value; /* if found */
};

static bool apply_operation(const struct patch_operation *operation, struct slice item,
                            struct buf *step, struct buf *out, struct error *err);
static bool edit_document(const struct edit *edit, const struct document_value *document,
                          size_t level);

bool patch_apply(const struct patch *patch, struct slice item, struct buf *buf, struct error *err)
{
    CLEANUP(buf_done) struct buf even, odd, step;
    const struct buf before = *buf;

    buf_init(&even, buf->max);
    buf_init(&odd, buf->max);
    buf_init(&step, buf->max);
    for (size_t i = 0; i < patch->count; i++) {
        struct buf *out = i + 1 == patch->count ? buf : i % 2 ? &odd : &even;

        if (out != buf)
            buf_clear(out);
        if (!apply_operation(&patch->operations[i], item, &step, out, err)) {
            buf->len = before.len;
            buf->overflowed = before.overflowed;
            return error_prefix(err, "patch operation %zu", i + 1);
        }
        item = buf_slice(out);
    }
    return true;
}

/* --- Finding --------------------------------------------------------------------------------- */

static bool refuse(struct error *err, const struct patch_pointer *pointer, const char *what)
{
    return error_set(err, ERROR_BAD_REQUEST, "path '%.*s': %s",
                     (int)MIN(pointer->text.len, (size_t)100), (const char *)pointer->text.data,
                     what);
}

static bool place_in_object(struct slice document, struct slice name,
                            struct transaction_place *ret_place)
{
    struct document_iter iter;

    *ret_place = (struct transaction_place){.key = name};
    document_iter_init(&iter, document);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, name)) {
            ret_place->found = true;
            ret_place->begin = iter.element;
            ret_place->end = iter.at;
            ret_place->value = iter.value;
            return true;
        }
    }
    ret_place->begin = ret_place->end = document.data + document.len - 1;
    return true;
}

/* An index: decimal, without zeros before it. */
static bool index_parse(struct slice step, uint64_t *ret_index)
{
    return slice_to_uint64(step, ret_index) && (step.len == 1 || step.data[0] != '0');
}

static bool place_in_array(const struct edit *edit, struct slice document, struct slice step,
                           struct transaction_place *ret_place)
{
    bool at_end = slice_equal(step, SLICE("-"));
    uint64_t index = UINT64_MAX;
    struct document_iter iter;
    uint32_t count = 0;

    if (!at_end && !index_parse(step, &index))
        return refuse(edit->err, edit->at, "an array has no such element");
    *ret_place = (struct transaction_place){0};
    document_iter_init(&iter, document);
    for (; document_iter_next(&iter); count++) {
        if (count == index) {
            *ret_place = (struct transaction_place){.begin = iter.element,
                                                    .end = iter.at,
                                                    .found = true,
                                                    .index = count,
                                                    .value = iter.value};
            return true;
        }
    }
    if (!at_end && index > count)
        return refuse(edit->err, edit->at, "the index is behind the end of the array");
    ret_place->begin = ret_place->end = document.data + document.len - 1;
    ret_place->index = count;
    return true;
}

static bool place_find(const struct edit *edit, const struct document_value *document, size_t level,
                       struct transaction_place *ret_place)
{
    struct slice step = edit->at->steps[level];

    if (document->type == DOCUMENT_OBJECT)
        return place_in_object(document->document, step, ret_place);
    return place_in_array(edit, document->document, step, ret_place);
}

static bool is_nested(const struct document_value *value)
{
    return value->type == DOCUMENT_OBJECT || value->type == DOCUMENT_ARRAY;
}

/* The value at a pointer. False, with nothing said, where there is none. */
static bool pointer_find(const struct patch_pointer *pointer, struct slice item,
                         struct document_value *ret_value)
{
    struct document_value value = document_object(item);
    uint64_t index;

    for (size_t i = 0; i < pointer->count; i++) {
        struct slice step = pointer->steps[i];

        if (value.type == DOCUMENT_OBJECT) {
            if (!document_find(value.document, step, &value))
                return false;
        } else if (value.type != DOCUMENT_ARRAY || !index_parse(step, &index) ||
                   !document_find_index(value.document, index, &value)) {
            return false;
        }
    }
    *ret_value = value;
    return true;
}

/* --- Copying with a change ------------------------------------------------------------------- */

static void copy(const struct edit *edit, const uint8_t *begin, const uint8_t *end)
{
    buf_append(edit->out, begin, (size_t)(end - begin));
}

/* The elements from `at` on, counted from index. */
static void copy_counted(const struct edit *edit, struct slice document, const uint8_t *at,
                         uint32_t index)
{
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;

    document_iter_init(&iter, document);
    iter.at = at;
    while (document_iter_next(&iter))
        document_append(edit->out, document_index_key(index++, text), &iter.value);
}

/* The target and what is behind it, to the end of the document's elements. */
static bool change_target(const struct edit *edit, const struct document_value *document,
                          const struct transaction_place *place)
{
    bool array = document->type == DOCUMENT_ARRAY;
    const uint8_t *end = document->document.data + document->document.len - 1;
    bool inserts = array && edit->change == CHANGE_ADD;
    char text[DOCUMENT_INDEX_SIZE];

    if (!place->found && (edit->change == CHANGE_REPLACE || edit->change == CHANGE_REMOVE))
        return refuse(edit->err, edit->at, "there is nothing");
    if (edit->change != CHANGE_REMOVE)
        document_append(edit->out, array ? document_index_key(place->index, text) : place->key,
                        edit->value);
    if (inserts)
        copy_counted(edit, document->document, place->begin, place->index + 1);
    else if (array && edit->change == CHANGE_REMOVE)
        copy_counted(edit, document->document, place->end, place->index);
    else
        copy(edit, place->end, end);
    return true;
}

/* The element on the way and what is behind it. */
static bool change_below(const struct edit *edit, const struct document_value *document,
                         const struct transaction_place *place, size_t level)
{
    const uint8_t *end = document->document.data + document->document.len - 1;

    if (!place->found || !is_nested(&place->value))
        return refuse(edit->err, edit->at, "the object or array that holds it is not there");
    copy(edit, place->begin, place->value.document.data); /* type and key */
    if (!edit_document(edit, &place->value, level + 1))
        return false;
    copy(edit, place->end, end);
    return true;
}

static bool edit_document(const struct edit *edit, const struct document_value *document,
                          size_t level)
{
    size_t begin = document_begin(edit->out);
    struct transaction_place place;

    if (!place_find(edit, document, level, &place))
        return false;
    copy(edit, document->document.data + 4, place.begin);
    if (level + 1 == edit->at->count ? !change_target(edit, document, &place)
                                     : !change_below(edit, document, &place, level))
        return false;
    document_end(edit->out, begin);
    return true;
}

/* Levels of nesting a value has, at most `most` of them looked at. */
static size_t depth_of(const struct document_value *value, size_t most)
{
    struct document_iter iter;
    size_t deepest = 0;

    if (!is_nested(value))
        return 0;
    document_iter_init(&iter, value->document);
    while (deepest < most && document_iter_next(&iter))
        deepest = MAX(deepest, depth_of(&iter.value, most - 1));
    return deepest + 1;
}

static bool edit_item(struct edit edit, struct slice item)
{
    struct document_value root = document_object(item);

    if (edit.change != CHANGE_REMOVE &&
        edit.at->count + depth_of(edit.value, DOCUMENT_DEPTH_DEFAULT) > DOCUMENT_DEPTH_DEFAULT)
        return error_set(edit.err, ERROR_TOO_DEEP, "the item would be nested deeper than %d levels",
                         DOCUMENT_DEPTH_DEFAULT);
    if (!edit_document(&edit, &root, 0))
        return false;
    if (buf_overflowed(edit.out))
        return error_set(edit.err, ERROR_TOO_LARGE, "the item would be larger than %zu bytes",
                         edit.out->max);
    return true;
}

/* --- Operations ------------------------------------------------------------------------------ */

/* Whole numbers stay whole, and in 32 bits as long as they were and fit. */
static bool add_numbers(const struct document_value *a, const struct document_value *b,
                        struct document_value *ret_sum)
{
    bool whole = a->type != DOCUMENT_DOUBLE && b->type != DOCUMENT_DOUBLE;
    int64_t left, right, sum;
    double x, y;

    if (whole && document_to_int64(a, &left) && document_to_int64(b, &right) &&
        !__builtin_add_overflow(left, right, &sum)) {
        bool small = a->type == DOCUMENT_INT32 && sum >= INT32_MIN && sum <= INT32_MAX;

        *ret_sum = small ? document_int32((int32_t)sum) : document_int64(sum);
        return true;
    }
    if (!document_to_double(a, &x) || !document_to_double(b, &y) || !isfinite(x + y))
        return false;
    *ret_sum = document_double(x + y);
    return true;
}

static bool increment(const struct patch_operation *operation, struct slice item, struct buf *out,
                      struct error *err)
{
    struct document_value value, sum = operation->value;

    if (pointer_find(&operation->path, item, &value)) {
        if (!document_is_number(&value) || value.type == DOCUMENT_DECIMAL128)
            return refuse(err, &operation->path, "what is there is not a number to add to");
        if (!add_numbers(&value, &operation->value, &sum))
            return refuse(err, &operation->path, "the sum is not a finite number");
    }
    return edit_item((struct edit){CHANGE_SET, &operation->path, &sum, out, err}, item);
}

/* The value stays where it is in item while the item without it is made in step. */
static bool move(const struct patch_operation *operation, struct slice item, struct buf *step,
                 struct buf *out, struct error *err)
{
    struct document_value value;

    if (!pointer_find(&operation->from, item, &value))
        return refuse(err, &operation->from, "there is nothing to move");
    buf_clear(step);
    return edit_item((struct edit){CHANGE_REMOVE, &operation->from, NULL, step, err}, item) &&
           edit_item((struct edit){CHANGE_ADD, &operation->path, &value, out, err},
                     buf_slice(step));
}

static bool apply_operation(const struct patch_operation *operation, struct slice item,
                            struct buf *step, struct buf *out, struct error *err)
{
    static const enum change changes[] = {
        [PATCH_ADD] = CHANGE_ADD,
        [PATCH_SET] = CHANGE_SET,
        [PATCH_REPLACE] = CHANGE_REPLACE,
        [PATCH_REMOVE] = CHANGE_REMOVE,
    };

    if (operation->kind == PATCH_INCR)
        return increment(operation, item, out, err);
    if (operation->kind == PATCH_MOVE)
        return move(operation, item, step, out, err);
    return edit_item(
        (struct edit){changes[operation->kind], &operation->path, &operation->value, out, err},
        item);
}
