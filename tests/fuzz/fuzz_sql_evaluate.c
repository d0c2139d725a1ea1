/* A query that compiles is run over fixed documents within its limits. Its rows are values that can
 * be stored and printed, and pages of two rows give as many rows as one page of all. */
#include "document/json.h"
#include "front/rest/sql/documents.h"
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

enum { DOCUMENTS = 5, PAGES_MAX = 1000, WORK_MAX = 300000, MEMORY_MAX = 4 * 1024 * 1024 };

static const char *const texts[DOCUMENTS] = {
    "{\"id\":\"1\",\"a\":1,\"s\":\"x\",\"t\":[1,2,3],\"o\":{\"p\":null},\"d\":\"2020-01-02\"}",
    "{\"id\":\"2\",\"a\":2.5,\"s\":\"\\u00e4\",\"t\":[],\"k\":[{\"n\":1},{\"n\":\"y\"}]}",
    "{\"id\":\"3\",\"a\":\"1\",\"s\":\"\",\"t\":[[1],{\"a\":[]}],\"o\":{\"p\":{\"q\":true}}}",
    "{\"id\":\"4\",\"a\":null,\"b\":false}",
    "{\"id\":\"5\",\"a\":9223372036854775807,\"s\":\"\\ud83d\\ude00\",\"b\":true}",
};

static void documents_read(struct slice documents[DOCUMENTS], struct arena *arena)
{
    for (int i = 0; i < DOCUMENTS; i++) {
        CLEANUP(buf_done) struct buf bson;
        struct error err;

        buf_init(&bson, BUF_DEFAULT_MAX);
        FUZZ_CHECK(document_json_read(slice_of_text(texts[i]), NULL, &bson, &err));
        documents[i] = arena_copy(arena, buf_slice(&bson));
    }
}

static bool row_check(void *count, const struct document_value *value, struct error *err)
{
    CLEANUP(buf_done) struct buf bson, json;
    struct document_limits limits = {.depth_max = DOCUMENT_DEPTH_MAX};
    size_t begin;

    buf_init(&bson, BUF_DEFAULT_MAX);
    buf_init(&json, BUF_DEFAULT_MAX);
    begin = document_begin(&bson);
    document_append(&bson, SLICE("row"), value);
    document_end(&bson, begin);
    FUZZ_CHECK(value->type != DOCUMENT_UNDEFINED);
    if (!document_validate(buf_slice(&bson), &limits, err))
        FUZZ_CHECK(err->code == ERROR_TOO_DEEP || err->code == ERROR_TOO_LARGE);
    else
        document_json_write_value(value, &json);
    ++*(size_t *)count;
    return true;
}

/* All pages; false: a limit was met. */
static bool run(const struct query_plan *plan, const struct slice *documents, uint64_t page_rows,
                struct arena *arena, size_t *ret_rows)
{
    struct query_request request = {
        .limits = {.rows_max = page_rows, .work_max = WORK_MAX, .memory_max = MEMORY_MAX},
        .arena = arena,
        .row = row_check,
        .self = ret_rows};
    struct query_page page;
    struct error err;

    *ret_rows = 0;
    for (int i = 0; i < PAGES_MAX; i++) {
        if (!query_run_documents(plan, documents, DOCUMENTS, &request, &page, &err))
            return false;
        FUZZ_CHECK(page.continuation.len <= QUERY_CONTINUATION_MAX);
        if (!page.continuation.len)
            return true;
        request.continuation = page.continuation;
    }
    return false;
}

/* Might it give another answer each time? */
static bool is_fickle(struct slice text)
{
    static const char *const words[] = {"rand", "current", "now", "ago"};

    for (size_t i = 0; i < text.len; i++)
        for (size_t j = 0; j < ARRAY_LEN(words); j++) {
            struct slice word = slice_of_text(words[j]);

            if (text.len - i >= word.len &&
                slice_equal_nocase(slice_first(slice_skip(text, i), word.len), word))
                return true;
        }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice documents[DOCUMENTS], text = slice_of(data, size);
    struct sql_prepared prepared;
    struct sql_error fault = {0};
    size_t whole, paged;
    struct error err;

    if (!sql_prepare(text, SLICE_NONE, NULL, arena, &prepared, &fault, &err)) {
        FUZZ_CHECK(err.message[0]);
        return 0;
    }
    documents_read(documents, arena);
    if (run(&prepared.plan, documents, 1000000, arena, &whole) &&
        run(&prepared.plan, documents, 2, arena, &paged) && !is_fickle(text))
        FUZZ_CHECK(whole == paged);
    return 0;
}
