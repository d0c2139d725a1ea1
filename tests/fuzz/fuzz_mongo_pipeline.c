/* The bytes are a line of extended JSON: {"p": [stages], "d": [documents]}. Holds that
 *  - what is refused, when it is compiled or when it is run, says so with a code of MongoDB and a
 *    message;
 *  - what is compiled and run gives valid documents, the same ones page by page. */
#include "document/extended.h"
#include "document/json.h"
#include "front/mongo/pipeline/pipeline.h"
#include "fuzz/fuzz.h"
#include "query/run.h"

enum { DOCUMENTS_MAX = 16, WORK_MAX = 200000, ROWS_MAX = 2000 };

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

static bool row_take(void *self, const struct document_value *value, struct error *err UNUSED)
{
    const struct document_limits limits = {.depth_max = DOCUMENT_DEPTH_MAX,
                                           .bytes_max = SIZE_MAX / 4};
    struct error broken;

    FUZZ_CHECK(value->type == DOCUMENT_OBJECT);
    FUZZ_CHECK(document_validate(value->document, &limits, &broken));
    ++*(size_t *)self;
    return true;
}

/* Other collections have no documents. */
static bool other_open(void *self UNUSED, struct slice container UNUSED,
                       struct query_request *request, struct error *err UNUSED)
{
    request->space = NULL;
    return true;
}

static bool pages_run(const struct query_plan *plan, const struct slice *documents, size_t count,
                      uint64_t rows_max, size_t *ret_rows)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_request request = {.limits = {.rows_max = rows_max, .work_max = WORK_MAX},
                                    .arena = arena,
                                    .other = other_open,
                                    .row = row_take,
                                    .self = ret_rows};
    struct query_page page = {0};
    struct error err = {0};

    *ret_rows = 0;
    do {
        request.continuation = page.continuation;
        if (!query_run_documents(plan, documents, count, &request, &page, &err)) {
            FUZZ_CHECK(mongo_error_code(&err) != 0 && err.message[0]);
            return false;
        }
    } while (page.continuation.len && *ret_rows < ROWS_MAX);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_build build = {
        .arena = arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_MONGO};
    const struct mongo_pipeline_options options = {.database = SLICE("d"),
                                                   .collection = SLICE("c")};
    struct slice documents[DOCUMENTS_MAX], given;
    struct document_value stages, list;
    struct mongo_pipeline pipeline;
    struct document_iter iter;
    size_t count = 0, whole, parts;
    struct error err = {0};

    if (!document_read(slice_of(data, size), arena, &given) ||
        !document_find(given, SLICE("p"), &stages) || stages.type != DOCUMENT_ARRAY)
        return 0;
    if (document_find(given, SLICE("d"), &list) && list.type == DOCUMENT_ARRAY) {
        document_iter_init(&iter, list.document);
        while (count < DOCUMENTS_MAX && document_iter_next(&iter))
            if (iter.value.type == DOCUMENT_OBJECT)
                documents[count++] = iter.value.document;
    }
    if (!mongo_pipeline_compile(stages.document, &options, &build, &pipeline, &err)) {
        FUZZ_CHECK(mongo_error_code(&err) != 0 && err.message[0]);
        return 0;
    }
    if (pages_run(&pipeline.plan, documents, count, ROWS_MAX, &whole) && whole < ROWS_MAX &&
        pages_run(&pipeline.plan, documents, count, 2, &parts))
        FUZZ_CHECK(parts == whole);
    return 0;
}
