/* The bytes are an object with the expression as its field e, and a document: two lines of extended
 * JSON. Holds that
 *  - what is refused, when it is compiled or evaluated, says so with a code of MongoDB and a
 * message;
 *  - what it comes to is valid BSON, and leaves nothing behind in the scratch of the context;
 *  - what it implies can be worked out. */
#include "document/extended.h"
#include "document/json.h"
#include "front/mongo/expression/accumulate.h"
#include "fuzz/fuzz.h"
#include "query/expression/imply.h"

static bool document_read(struct slice json, struct arena *arena, struct slice *ret_document)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value given, meant;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    if (!document_json_read(json, NULL, &buf, &err))
        return false;
    given = document_object(arena_copy(arena, buf_slice(&buf)));
    if (!document_extended_read(&given, arena, &meant, &err) || meant.type != DOCUMENT_OBJECT)
        return false;
    *ret_document = meant.document;
    return true;
}

static void value_check(const struct document_value *value)
{
    const struct document_limits limits = {.depth_max = DOCUMENT_DEPTH_MAX, .bytes_max = 64 << 20};
    CLEANUP(buf_done) struct buf buf;
    size_t begin;
    struct error err;

    buf_init(&buf, 64 << 20);
    if (value->type == DOCUMENT_UNDEFINED)
        return;
    begin = document_begin(&buf);
    document_append(&buf, SLICE("v"), value);
    document_end(&buf, begin);
    FUZZ_CHECK(document_validate(buf_slice(&buf), &limits, &err));
}

static void ask(const struct query_expression *expression, struct slice document,
                struct arena *arena)
{
    CLEANUP(query_context_done) struct query_context context = {0};
    struct query_slot slots[2] = {{.value = document_object(document)},
                                  {.value = document_undefined()}};
    struct query_limits limits = {.work_max = 200000};
    struct query_implying implying = {.order = DOCUMENT_ORDER_MONGO, .arena = arena};
    struct document_value value;
    struct error err = {0};

    query_context_init(&context, arena, &limits, NULL);
    context.order = DOCUMENT_ORDER_MONGO;
    context.keep_nonfinite = true;
    context.slots = slots;
    context.slot_count = 2;
    (void)query_imply(&implying, expression, true);
    if (query_evaluate(expression, &context, &value, &err))
        value_check(&value);
    else
        FUZZ_CHECK(mongo_error_code(&err) != 0 && err.message[0]);
    FUZZ_CHECK(context.scratch.len == 0 && !context.locals);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_build build = {
        .arena = arena, .order = DOCUMENT_ORDER_MONGO, .keep_nonfinite = true};
    struct slice first, second, holder, document;
    const struct query_expression *expression;
    struct mongo_accumulator accumulator;
    struct document_value value;
    struct document_iter iter;
    struct error err = {0};

    if (!slice_split(slice_of(data, size), '\n', &first, &second) ||
        !document_read(first, arena, &holder) || !document_read(second, arena, &document) ||
        !document_find(holder, SLICE("e"), &value))
        return 0;
    if (value.type == DOCUMENT_OBJECT) {
        document_iter_init(&iter, value.document);
        if (document_iter_next(&iter) &&
            mongo_accumulator_compile(iter.key, &iter.value, NULL, 1, &build, &accumulator, &err))
            ask(accumulator.call.argument, document, arena);
        build.failed = false;
    }
    if (mongo_expression_compile(&value, NULL, &build, &expression, &err))
        ask(expression, document, arena);
    else
        FUZZ_CHECK(mongo_error_code(&err) != 0 && err.message[0]);
    return 0;
}
