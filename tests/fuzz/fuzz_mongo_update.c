/* The bytes are an update, a document and, if there is a third, array filters as the only member of
 * an object: lines of extended JSON. Holds that
 *  - what is refused says so with a code of MongoDB and a message;
 *  - what comes of a document is a valid one with the same _id, and says that it changed if and
 * only if it did. */
#include "document/extended.h"
#include "document/json.h"
#include "front/mongo/update/update.h"
#include "fuzz/fuzz.h"

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

static void id_check(struct slice before, struct slice after)
{
    struct document_value old, now;

    if (document_find(before, SLICE("_id"), &old)) {
        FUZZ_CHECK(document_find(after, SLICE("_id"), &now));
        FUZZ_CHECK(document_compare(DOCUMENT_ORDER_MONGO, &old, &now) == 0);
    }
}

static void apply(const struct document_value *update, const struct mongo_update_options *options,
                  struct slice document, struct arena *arena)
{
    CLEANUP(query_context_done) struct query_context context = {0};
    struct query_limits limits = {.work_max = 1000000};
    struct document_limits depth = {.depth_max = DOCUMENT_DEPTH_MONGO};
    struct mongo_update_input input = {
        .document = document, .position = 0, .now_ms = 1, .context = &context};
    struct query_build build = {.arena = arena};
    struct mongo_update_result result;
    const struct mongo_update *compiled;
    struct error err = {0};

    query_context_init(&context, arena, &limits, NULL);
    if (!mongo_update_compile(update, options, &build, &compiled, &err) ||
        !mongo_update_apply(compiled, &input, arena, &result, &err)) {
        FUZZ_CHECK(mongo_error_code(&err) != 0 && err.message[0]);
        return;
    }
    FUZZ_CHECK(result.changed != slice_equal(result.document, document));
    if (result.changed)
        FUZZ_CHECK(document_validate(result.document, &depth, &err));
    id_check(document, result.document);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct mongo_update_options options = {0};
    struct document_value update, filters;
    struct slice first, rest, second, third, document;

    if (!slice_split(slice_of(data, size), '\n', &first, &rest) ||
        !document_read(first, arena, &update.document))
        return 0;
    second = rest;
    if (slice_split(rest, '\n', &second, &third)) {
        if (!document_read(third, arena, &third) || !document_find(third, SLICE("f"), &filters) ||
            filters.type != DOCUMENT_ARRAY)
            return 0;
        options.array_filters = filters.document;
    } else {
        second = rest;
    }
    if (!document_read(second, arena, &document))
        return 0;
    update.type = DOCUMENT_OBJECT;
    apply(&update, &options, document, arena);
    return 0;
}
