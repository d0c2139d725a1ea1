/* Continuations are sealed by the front, but what opens one must not rely on that: any bytes behind
 * the first one, which picks the query, are run as a continuation over a few documents. */
#include "document/json.h"
#include "fuzz/fuzz.h"
#include "query/run.h"

struct fixture {
    struct arena *arena;
    struct slice documents[4];
    struct query_plan plans[6];
    struct query_aggregate_call calls[3];
    struct query_group_key key;
    struct query_order order;
    struct query_source source;
};

static struct slice document_make(struct arena *arena, const char *json)
{
    CLEANUP(buf_done) struct buf buf;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    if (!document_json_read(slice_of_text(json), NULL, &buf, &err))
        abort();
    return arena_copy(arena, buf_slice(&buf));
}

static void plans_make(struct fixture *f)
{
    struct query_build build = {.arena = f->arena};
    const struct query_expression *item = query_variable(&build, 0);
    const struct query_expression *a = query_property_of(&build, item, SLICE("a"));
    const struct query_expression *tags = query_property_of(&build, item, SLICE("tags"));

    f->calls[0] = (struct query_aggregate_call){QUERY_AVG, a, 1};
    f->calls[1] = (struct query_aggregate_call){QUERY_MAX, a, 1};
    f->calls[2] = (struct query_aggregate_call){QUERY_MAKE_SET, a, 1};
    f->key = (struct query_group_key){a, 2};
    f->order = (struct query_order){a, true};
    f->source = (struct query_source){QUERY_SOURCE_EACH, tags, NULL, 3};
    for (size_t i = 0; i < ARRAY_LEN(f->plans); i++)
        f->plans[i] =
            (struct query_plan){.query = {.select = a, .limit = UINT64_MAX}, .slot_count = 4};
    f->plans[1].query.sources = &f->source;
    f->plans[1].query.source_count = 1;
    f->plans[2].query.aggregates = f->calls;
    f->plans[2].query.aggregate_count = ARRAY_LEN(f->calls);
    f->plans[2].query.select = query_variable(&build, 1);
    f->plans[3].query.keys = &f->key;
    f->plans[3].query.key_count = 1;
    f->plans[3].query.select = query_variable(&build, 2);
    f->plans[4].query.order = &f->order;
    f->plans[4].query.order_count = 1;
    f->plans[5].query.distinct = true;
}

static bool row_drop(void *self, const struct document_value *value, struct error *err)
{
    (void)self;
    (void)value;
    (void)err;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fixture f;
    struct query_request request = {.limits = {.rows_max = 2}, .row = row_drop};
    struct query_page page;
    struct error err;

    if (!f.arena) {
        f.arena = arena_new();
        f.documents[0] = document_make(f.arena, "{\"id\":\"1\",\"a\":1,\"tags\":[1,2,3]}");
        f.documents[1] = document_make(f.arena, "{\"id\":\"2\",\"a\":\"x\",\"tags\":[4]}");
        f.documents[2] = document_make(f.arena, "{\"id\":\"3\",\"a\":2.5}");
        f.documents[3] = document_make(f.arena, "{\"id\":\"4\",\"tags\":[]}");
        plans_make(&f);
    }
    if (size == 0)
        return 0;
    request.arena = arena_new();
    request.continuation = slice_of(data + 1, size - 1);
    (void)!query_run_documents(&f.plans[data[0] % ARRAY_LEN(f.plans)], f.documents,
                               ARRAY_LEN(f.documents), &request, &page, &err);
    arena_free(request.arena);
    return 0;
}
