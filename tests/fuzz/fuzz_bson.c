/* What the validator takes can be walked, printed, compared and encoded; neighbours in a document
 * compare as their keys do. The walker and the key reader stay inside any bytes at all. */
#include "document/json.h"
#include "document/order.h"
#include "fuzz/fuzz.h"

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

static void walk_anything(struct slice bytes)
{
    struct document_iter iter;

    document_iter_init(&iter, bytes);
    while (document_iter_next(&iter))
        continue;
    for (int order = DOCUMENT_ORDER_SQL; order <= DOCUMENT_ORDER_MONGO; order++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct slice key = bytes;
        struct document_value value;
        struct error err;
        bool cut;

        while (key.len && document_key_read(order, &key, arena, &value, &err))
            continue;
        key = bytes;
        while (key.len && document_key_skip_cut(order, 10, &key, &cut, &err))
            continue;
    }
}

static void check_neighbours(enum document_order order, struct slice document)
{
    CLEANUP(buf_done) struct buf before, key;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value last = document_value_of_type(DOCUMENT_MIN_KEY);
    struct document_iter iter;

    buf_init(&before, BUF_DEFAULT_MAX);
    buf_init(&key, BUF_DEFAULT_MAX);
    document_key_append(order, &last, &before);
    document_iter_init(&iter, document);
    while (document_iter_next(&iter)) {
        struct document_value back;
        struct slice rest;
        struct error err;
        struct buf swapped;
        int compared = sign(document_compare(order, &last, &iter.value));

        buf_clear(&key);
        document_key_append(order, &iter.value, &key);
        FUZZ_CHECK(compared == sign(slice_compare(buf_slice(&before), buf_slice(&key))));
        FUZZ_CHECK(compared == -sign(document_compare(order, &iter.value, &last)));
        FUZZ_CHECK(document_compare(order, &iter.value, &iter.value) == 0);
        rest = buf_slice(&key);
        FUZZ_CHECK(document_key_read(order, &rest, arena, &back, &err) && rest.len == 0);
        if (iter.value.type == DOCUMENT_OBJECT || iter.value.type == DOCUMENT_ARRAY)
            check_neighbours(order, iter.value.document);
        else if (iter.value.type != DOCUMENT_CODE_WITH_SCOPE)
            FUZZ_CHECK(document_compare(order, &iter.value, &back) == 0);
        last = iter.value;
        swapped = before;
        before = key;
        key = swapped;
    }
    FUZZ_CHECK(!iter.broken);
}

/* Its JSON is JSON, unless it names a property twice or extended JSON nests too deep. */
static void check_printed(struct slice document)
{
    struct document_limits limits = {.depth_max = DOCUMENT_DEPTH_MAX};
    CLEANUP(buf_done) struct buf text, bson, again;
    struct error err;

    buf_init(&text, BUF_DEFAULT_MAX);
    buf_init(&bson, BUF_DEFAULT_MAX);
    buf_init(&again, BUF_DEFAULT_MAX);
    document_json_write(document, &text);
    FUZZ_CHECK(!buf_overflowed(&text));
    if (!document_json_read(buf_slice(&text), &limits, &bson, &err)) {
        FUZZ_CHECK(err.code == ERROR_DUPLICATE_PROPERTY || err.code == ERROR_TOO_DEEP);
        return;
    }
    document_json_write(buf_slice(&bson), &again);
    FUZZ_CHECK(slice_equal(buf_slice(&text), buf_slice(&again)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct document_limits limits = {.depth_max = DOCUMENT_DEPTH_MONGO};
    struct slice bytes = slice_of(data, size);
    struct error err;

    walk_anything(bytes);
    if (!document_validate(bytes, &limits, &err))
        return 0;
    check_printed(bytes);
    check_neighbours(DOCUMENT_ORDER_SQL, bytes);
    check_neighbours(DOCUMENT_ORDER_MONGO, bytes);
    return 0;
}
