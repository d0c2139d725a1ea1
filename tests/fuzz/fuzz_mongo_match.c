/* The bytes are a filter and a document, two lines of extended JSON. Holds that
 *  - what is refused says so with a code of MongoDB and a message;
 *  - what is taken can be asked of the document, directly and as an expression, with one answer;
 *  - what it implies can be worked out. */
#include "document/extended.h"
#include "document/json.h"
#include "front/mongo/match/match.h"
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

static void ask(struct slice filter, struct slice document, struct arena *arena)
{
    CLEANUP(query_context_done) struct query_context context = {0};
    struct query_build build = {.arena = arena, .order = DOCUMENT_ORDER_MONGO};
    struct query_slot slot = {.value = document_object(document)};
    struct query_limits limits = {.work_max = 1000000};
    struct query_implying implying = {.order = DOCUMENT_ORDER_MONGO, .arena = arena};
    const struct query_expression *expression;
    const struct mongo_match *match;
    bool direct, evaluated, answered;
    struct error err = {0};

    if (!mongo_match_parse(filter, NULL, &build, &match, &err)) {
        FUZZ_CHECK(mongo_error_code(&err) != 0 && err.message[0]);
        return;
    }
    query_context_init(&context, arena, &limits, NULL);
    context.order = DOCUMENT_ORDER_MONGO;
    context.slots = &slot;
    context.slot_count = 1;
    answered = mongo_match_holds(match, &slot.value, &context, &direct, &err);
    expression = mongo_match_expression(match, &build);
    FUZZ_CHECK(!build.failed);
    (void)query_imply(&implying, expression, true);
    context.work = 0;
    if (!query_holds(expression, &context, &evaluated, &err) || !answered)
        FUZZ_CHECK(err.code == ERROR_QUERY_LIMIT);
    else if (!memmem(filter.data, filter.len, "$sampleRate", 11))
        FUZZ_CHECK(direct == evaluated);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice first, second, filter, document;

    if (!slice_split(slice_of(data, size), '\n', &first, &second) ||
        !document_read(first, arena, &filter) || !document_read(second, arena, &document))
        return 0;
    ask(filter, document, arena);
    return 0;
}
