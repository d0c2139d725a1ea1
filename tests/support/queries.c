#include "support/queries.h"

#include "document/json.h"
#include "query/position.h"

#include <stdlib.h>

int queries_setup(void **state)
{
    struct queries *f = MEMORY_NEW(struct queries);

    f->arena = arena_new();
    f->build.arena = f->arena;
    *state = f;
    return 0;
}

static void queries_close(struct queries *f)
{
    if (f->open)
        test_space_done(&f->test);
    f->open = false;
}

int queries_teardown(void **state)
{
    struct queries *f = *state;

    queries_close(f);
    query_cache_free(f->cache);
    arena_free(f->arena);
    memory_free(f);
    return 0;
}

void queries_open(struct queries *f, const struct test_space_options *options)
{
    queries_open_at(f, "memory:", options);
}

void queries_open_at(struct queries *f, const char *url, const struct test_space_options *options)
{
    struct engine *engine;
    struct error err;

    queries_close(f);
    assert_ok(engine_open(slice_of_text(url), &(struct engine_options){.connections_max = 4},
                          &engine, &err),
              &err);
    test_space_init(&f->test, engine, options);
    f->open = true;
}

static void put_document(struct queries *f, struct slice document)
{
    struct partition_key key = partition_key_extract(&f->test.definition.key, document);
    struct transaction_options options = {0};
    struct document_value id;
    struct error err;

    assert_true(document_find(document, SLICE("id"), &id));
    assert_ok(item_operation_run(&(struct item_operation){.space = &f->test.space,
                                                          .arena = f->arena,
                                                          .verb = ITEM_CREATE,
                                                          .key = key,
                                                          .id = id,
                                                          .document = document,
                                                          .options = options},
                                 &err),
              &err);
}

void queries_put(struct queries *f)
{
    for (size_t i = 0; i < f->document_count; i++)
        put_document(f, f->documents[i]);
}

void queries_add(struct queries *f, const char *json)
{
    f->documents[f->document_count++] = document_of(f->arena, json);
}

/* --- Building -------------------------------------------------------------------------------- */

const struct query_expression *queries_path(struct queries *f, const char *name)
{
    return query_property_of(&f->build, query_variable(&f->build, 0), slice_of_text(name));
}

const struct query_expression *queries_value(struct queries *f, const char *json)
{
    return query_constant(&f->build, value_of(f->arena, json));
}

const struct query_expression *queries_compare(struct queries *f, const char *name,
                                               enum query_comparison comparison, const char *json)
{
    return query_compare(&f->build, comparison, queries_path(f, name), queries_value(f, json));
}

struct query_plan queries_plan(const struct query_expression *select,
                               const struct query_expression *filter)
{
    return (struct query_plan){.query = {.select = select, .filter = filter, .limit = UINT64_MAX},
                               .slot_count = 8};
}

/* --- Running --------------------------------------------------------------------------------- */

bool queries_row(void *self, const struct document_value *value, struct error *err UNUSED)
{
    CLEANUP(buf_done) struct buf json;
    struct queries_rows *rows = self;

    buf_init(&json, BUF_DEFAULT_MAX);
    document_json_write_value(value, &json);
    assert_true(rows->count < ARRAY_LEN(rows->texts));
    rows->texts[rows->count++] = arena_text(rows->arena, buf_slice(&json));
    return true;
}

/* The continuation, but for where its result lies in the cache: every page that is kept lies
 * elsewhere. */
static struct slice continuation_of(const struct query_plan *plan, const struct query_page *page,
                                    struct arena *arena)
{
    struct query_position position;
    struct error err;

    if (!page->continuation.len)
        return SLICE_NONE;
    assert_ok(query_position_load(page->continuation, query_plan_binding(plan), &position, &err),
              &err);
    position.cached = 0;
    return query_position_save(&position, query_plan_binding(plan), arena);
}

/* A first page that a loop can make is the one a worker makes. */
static void short_check(struct queries *f, const struct query_plan *plan,
                        const struct query_request *request, const struct query_page *page)
{
    const struct queries_rows *rows = request->self;
    struct queries_rows *again = arena_alloc_zero(f->arena, sizeof *again);
    struct query_request short_request = *request;
    struct query_page short_page;
    struct error err;

    if (request->continuation.len || !query_plan_is_short(plan))
        return;
    again->arena = f->arena;
    short_request.is_short = true;
    short_request.executor = NULL;
    short_request.self = again;
    if (!query_run(plan, &short_request, &short_page, &err)) {
        assert_int_equal(err.code, ERROR_COLD);
        return;
    }
    f->short_count++;
    queries_same(again, rows);
    assert_slice_equal(continuation_of(plan, &short_page, f->arena),
                       continuation_of(plan, page, f->arena));
    assert_int_equal(short_page.charge_cru, page->charge_cru);
}

/* All pages, each with nothing but the continuation of the one before. */
struct queries_rows *queries_run(struct queries *f, const struct query_plan *plan,
                                 struct queries_how *how)
{
    struct queries_rows *rows = arena_alloc_zero(f->arena, sizeof *rows);
    struct slice continuation = SLICE_NONE;
    size_t page = how->page ? how->page : 3, given = 0;
    bool full = false;
    struct error err;

    rows->arena = f->arena;
    how->pages = 0;
    how->charge_cru = 0;
    how->spilled_bytes = 0;
    if (f->build.failed)
        fail_msg("%s", f->build.error.message);
    if (how->cached && !f->cache)
        f->cache = query_cache_new(1 << 24, UINT64_MAX);
    do {
        struct query_request request = {
            .space = &f->test.space,
            .container = rid_of_container(1, 2),
            .scope = how->scope,
            .continuation = continuation,
            .limits = {.rows_max = page, .memory_max = how->memory_max},
            .cache = how->cached ? f->cache : NULL,
            .spill = how->spill,
            .executor = how->executor,
            .udf = how->udf,
            .members = how->members,
            .order_unindexed = true,
            .explain = true,
            .arena = f->arena,
            .row = queries_row,
            .self = rows,
        };

        assert_ok(query_run(plan, &request, &how->last, &err), &err);
        short_check(f, plan, &request, &how->last);
        /* A full page goes on only where there is more. */
        assert_true(!full || rows->count > given);
        full = rows->count - given == page;
        given = rows->count;
        if (how->explain_has && how->pages == 0) {
            CLEANUP(buf_done) struct buf json;
            struct document_value explained = document_object(how->last.explain);

            buf_init(&json, BUF_DEFAULT_MAX);
            document_json_write_value(&explained, &json);
            buf_append_byte(&json, 0);
            assert_contains((char *)json.data, how->explain_has);
        }
        continuation = how->last.continuation;
        assert_true(continuation.len <= QUERY_CONTINUATION_MAX);
        how->charge_cru += how->last.charge_cru;
        how->spilled_bytes += how->last.metrics.spilled_bytes;
        assert_true(++how->pages < 5000);
    } while (continuation.len);
    return rows;
}

/* What it should be: the plan over the documents themselves. */
struct queries_rows *queries_expect(struct queries *f, const struct query_plan *plan)
{
    struct queries_rows *rows = arena_alloc_zero(f->arena, sizeof *rows);
    struct query_request request = {.limits = {.rows_max = 100000, .bytes_max = 1 << 30},
                                    .arena = f->arena,
                                    .row = queries_row,
                                    .self = rows};
    struct query_page page;
    struct error err;

    rows->arena = f->arena;
    assert_ok(query_run_documents(plan, f->documents, f->document_count, &request, &page, &err),
              &err);
    return rows;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void queries_same(const struct queries_rows *got, const struct queries_rows *expected)
{
    for (size_t i = 0; i < got->count && i < expected->count; i++) {
        if (strcmp(got->texts[i], expected->texts[i]) != 0)
            fail_msg("row %zu is %s, not %s", i, got->texts[i], expected->texts[i]);
    }
    assert_int_equal(got->count, expected->count);
}

/* The same, but 0 and -0 may stand for each other. */
void queries_same_numbers(const struct queries_rows *got, const struct queries_rows *expected)
{
    for (size_t i = 0; i < got->count && i < expected->count; i++) {
        const char *a = got->texts[i], *b = expected->texts[i];

        if (strcmp(a, "-0") == 0)
            a++;
        if (strcmp(b, "-0") == 0)
            b++;
        if (strcmp(a, b) != 0)
            fail_msg("row %zu is %s, not %s", i, a, b);
    }
    assert_int_equal(got->count, expected->count);
}

void queries_same_set(struct queries_rows *got, struct queries_rows *expected)
{
    qsort(got->texts, got->count, sizeof(char *), by_text);
    qsort(expected->texts, expected->count, sizeof(char *), by_text);
    queries_same(got, expected);
}

void queries_are(const struct queries_rows *got, const char *joined)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < got->count; i++) {
        buf_append_text(&text, i ? " " : "");
        buf_append_text(&text, got->texts[i]);
    }
    assert_slice_equal(buf_slice(&text), slice_of_text(joined));
}

void queries_add_numbered(struct queries *f, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char json[256];

        snprintf(json, sizeof json,
                 "{\"id\":\"i%03zu\",\"pk\":\"p%zu\",\"a\":%zu,\"b\":%zu,\"c\":\"t%zu\","
                 "\"tags\":[%zu,%zu]}",
                 i, i % 7, i % 5, i, i % 3, i % 4, (i + 1) % 4);
        queries_add(f, json);
    }
}

const char *const queries_policies[QUERIES_POLICIES] = {
    NULL,
    "{\"indexingMode\":\"none\"}",
    "{\"includedPaths\":[{\"path\":\"/a/?\"},{\"path\":\"/tags/[]/?\"}],"
    "\"excludedPaths\":[{\"path\":\"/*\"}],"
    "\"compositeIndexes\":[[{\"path\":\"/a\",\"order\":\"ascending\"},"
    "{\"path\":\"/b\",\"order\":\"descending\"}]]}",
};

/* Calls check for every kind of container with the documents in it. */
void queries_everywhere(struct queries *f, void (*check)(struct queries *f, void *context),
                        void *context)
{
    static const size_t partitions[] = {1, 16};

    for (size_t p = 0; p < QUERIES_POLICIES; p++) {
        for (size_t i = 0; i < ARRAY_LEN(partitions); i++) {
            queries_open(f, &(struct test_space_options){.policy = queries_policies[p],
                                                         .partitions = partitions[i]});
            queries_put(f);
            check(f, context);
        }
    }
}

void queries_check_set(struct queries *f, void *plan)
{
    struct queries_how how = {0};

    queries_same_set(queries_run(f, plan, &how), queries_expect(f, plan));
}
