/* Whatever the JSON reader takes is valid BSON, prints as JSON that reads as an equal value, and
 * prints the same from then on. */
#include "document/json.h"
#include "document/order.h"
#include "fuzz/fuzz.h"

static void check_taken(struct slice wrapped, const struct document_value *value)
{
    /* The wrapping document is a level of its own. */
    struct document_limits limits = {.depth_max = DOCUMENT_DEPTH_DEFAULT + 1,
                                     .refuse_duplicates = true};
    CLEANUP(buf_done) struct buf text, bson, again;
    struct document_value back;
    struct error err;

    buf_init(&text, BUF_DEFAULT_MAX);
    buf_init(&bson, BUF_DEFAULT_MAX);
    buf_init(&again, BUF_DEFAULT_MAX);
    FUZZ_CHECK(document_validate(wrapped, &limits, &err));
    document_json_write_value(value, &text);
    FUZZ_CHECK(!buf_overflowed(&text));
    FUZZ_CHECK(document_json_read_value(buf_slice(&text), NULL, &bson, &back, &err));
    FUZZ_CHECK(document_compare(DOCUMENT_ORDER_MONGO, value, &back) == 0);
    FUZZ_CHECK(document_compare(DOCUMENT_ORDER_SQL, value, &back) == 0);
    document_json_write_value(&back, &again);
    FUZZ_CHECK(slice_equal(buf_slice(&text), buf_slice(&again)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(buf_done) struct buf bson, object;
    struct document_value value;
    struct error err;
    bool taken;

    buf_init(&bson, BUF_DEFAULT_MAX);
    buf_init(&object, BUF_DEFAULT_MAX);
    taken = document_json_read_value(slice_of(data, size), NULL, &bson, &value, &err);
    if (taken)
        check_taken(buf_slice(&bson), &value);
    else
        FUZZ_CHECK(err.code != ERROR_NONE && bson.len == 0);
    /* Read as a document it is the same, if it is an object. */
    FUZZ_CHECK(document_json_read(slice_of(data, size), NULL, &object, &err) ==
               (taken && value.type == DOCUMENT_OBJECT));
    if (object.len)
        FUZZ_CHECK(slice_equal(buf_slice(&object), value.document));
    return 0;
}
