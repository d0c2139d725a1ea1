#include "query/run.h"

#include "document/json.h"
#include "query/cache.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/space.h"

#include <pthread.h>
#include <stdlib.h>

/* A container on a memory node, the documents in it, and a plan being built. */
struct fixture {
    struct test_space test;
    bool open;
    struct arena *arena;
    struct query_build build;
    struct slice documents[4000];
    size_t document_count;
    struct query_cache *cache;
};

static int setup(void **state)
{
    struct fixture *f = MEMORY_NEW(struct fixture);

    f->arena = arena_new();
    f->build.arena = f->arena;
    *state = f;
    return 0;
}

static void close_space(struct fixture *f)
{
    if (f->open)
        test_space_done(&f->test);
    f->open = false;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    close_space(f);
    query_cache_free(f->cache);
    arena_free(f->arena);
    memory_free(f);
    return 0;
}

static void open_space(struct fixture *f, const struct test_space_options *options)
{
    struct engine *engine;
    struct error err;

    close_space(f);
    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &engine, &err), &err);
    test_space_init(&f->test, engine, options);
    f->open = true;
}

static void put_document(struct fixture *f, struct slice document)
{
    struct partition_key key = partition_key_extract(&f->test.definition.key, document);
    struct transaction_options options = {0};
    struct transaction_result result;
    struct document_value id;
    struct error err;

    assert_true(document_find(document, SLICE("id"), &id));
    assert_ok(items_write(&f->test.space, &key, &id, TRANSACTION_CREATE, document, &options,
                          f->arena, &result, NULL, &err),
              &err);
}

static void put_all(struct fixture *f)
{
    for (size_t i = 0; i < f->document_count; i++)
        put_document(f, f->documents[i]);
}

static void add(struct fixture *f, const char *json)
{
    f->documents[f->document_count++] = document_of(f->arena, json);
}

/* --- Building -------------------------------------------------------------------------------- */

static const struct query_expression *path(struct fixture *f, const char *name)
{
    return query_property_of(&f->build, query_variable(&f->build, 0), slice_of_text(name));
}

static const struct query_expression *value(struct fixture *f, const char *json)
{
    return query_constant(&f->build, value_of(f->arena, json));
}

static const struct query_expression *compare(struct fixture *f, const char *name,
                                              enum query_comparison comparison, const char *json)
{
    return query_compare(&f->build, comparison, path(f, name), value(f, json));
}

static struct query_plan plan_of(const struct query_expression *select,
                                 const struct query_expression *filter)
{
    return (struct query_plan){.query = {.select = select, .filter = filter, .limit = UINT64_MAX},
                               .slot_count = 8};
}

/* --- Running --------------------------------------------------------------------------------- */

struct rows {
    struct arena *arena;
    char *texts[4000];
    size_t count;
};

static bool row_keep(void *self, const struct document_value *value, struct error *err UNUSED)
{
    CLEANUP(buf_done) struct buf json;
    struct rows *rows = self;

    buf_init(&json, BUF_DEFAULT_MAX);
    document_json_write_value(value, &json);
    assert_true(rows->count < ARRAY_LEN(rows->texts));
    rows->texts[rows->count++] = arena_text(rows->arena, buf_slice(&json));
    return true;
}

struct how {
    uint64_t page; /* rows of a page; 0: 3 */
    struct query_scope scope;
    size_t memory_max;
    bool cached;
    const struct query_executor *executor;
    size_t pages;            /* out */
    int64_t charge_cru;      /* out: of all pages */
    struct query_page last;  /* out */
    const char *explain_has; /* the first page's explanation contains this */
};

/* All pages, each with nothing but the continuation of the one before. */
static struct rows *run(struct fixture *f, const struct query_plan *plan, struct how *how)
{
    struct rows *rows = arena_alloc_zero(f->arena, sizeof *rows);
    struct slice continuation = SLICE_NONE;
    struct error err;

    rows->arena = f->arena;
    how->pages = 0;
    how->charge_cru = 0;
    if (f->build.failed)
        fail_msg("%s", f->build.error.message);
    if (how->cached && !f->cache)
        f->cache = query_cache_new(1 << 24);
    do {
        struct query_request request = {
            .space = &f->test.space,
            .container = rid_of_container(1, 2),
            .scope = how->scope,
            .continuation = continuation,
            .limits = {.rows_max = how->page ? how->page : 3, .memory_max = how->memory_max},
            .cache = how->cached ? f->cache : NULL,
            .executor = how->executor,
            .explain = true,
            .arena = f->arena,
            .row = row_keep,
            .self = rows,
        };

        assert_ok(query_run(plan, &request, &how->last, &err), &err);
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
        assert_true(++how->pages < 5000);
    } while (continuation.len);
    return rows;
}

/* What it should be: the plan over the documents themselves. */
static struct rows *expect(struct fixture *f, const struct query_plan *plan)
{
    struct rows *rows = arena_alloc_zero(f->arena, sizeof *rows);
    struct query_request request = {.limits = {.rows_max = 100000, .bytes_max = 1 << 30},
                                    .arena = f->arena,
                                    .row = row_keep,
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

static void assert_same(const struct rows *got, const struct rows *expected)
{
    for (size_t i = 0; i < got->count && i < expected->count; i++) {
        if (strcmp(got->texts[i], expected->texts[i]) != 0)
            fail_msg("row %zu is %s, not %s", i, got->texts[i], expected->texts[i]);
    }
    assert_int_equal(got->count, expected->count);
}

/* The same, but 0 and -0 may stand for each other. */
static void assert_same_numbers(const struct rows *got, const struct rows *expected)
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

static void assert_same_set(struct rows *got, struct rows *expected)
{
    qsort(got->texts, got->count, sizeof(char *), by_text);
    qsort(expected->texts, expected->count, sizeof(char *), by_text);
    assert_same(got, expected);
}

static void assert_rows(const struct rows *got, const char *joined)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < got->count; i++) {
        buf_append_text(&text, i ? " " : "");
        buf_append_text(&text, got->texts[i]);
    }
    assert_slice_equal(buf_slice(&text), slice_of_text(joined));
}

static void add_numbered(struct fixture *f, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char json[256];

        snprintf(json, sizeof json,
                 "{\"id\":\"i%03zu\",\"pk\":\"p%zu\",\"a\":%zu,\"b\":%zu,\"c\":\"t%zu\","
                 "\"tags\":[%zu,%zu]}",
                 i, i % 7, i % 5, i, i % 3, i % 4, (i + 1) % 4);
        add(f, json);
    }
}

static const char *const policies[] = {
    NULL,
    "{\"indexingMode\":\"none\"}",
    "{\"includedPaths\":[{\"path\":\"/a/?\"},{\"path\":\"/tags/[]/?\"}],"
    "\"excludedPaths\":[{\"path\":\"/*\"}],"
    "\"compositeIndexes\":[[{\"path\":\"/a\",\"order\":\"ascending\"},"
    "{\"path\":\"/b\",\"order\":\"descending\"}]]}",
};

/* Calls check for every kind of container with the documents in it. */
static void everywhere(struct fixture *f, void (*check)(struct fixture *f, void *context),
                       void *context)
{
    static const size_t partitions[] = {1, 16};

    for (size_t p = 0; p < ARRAY_LEN(policies); p++) {
        for (size_t i = 0; i < ARRAY_LEN(partitions); i++) {
            open_space(f, &(struct test_space_options){.policy = policies[p],
                                                       .partitions = partitions[i]});
            put_all(f);
            check(f, context);
        }
    }
}

static void check_set(struct fixture *f, void *plan)
{
    struct how how = {0};

    assert_same_set(run(f, plan, &how), expect(f, plan));
}

/* --- Tests ----------------------------------------------------------------------------------- */

static void every_item_comes_once_in_pages_of_three(void **state)
{
    struct fixture *f = *state;
    struct query_plan plan = plan_of(path(f, "id"), NULL);

    add_numbered(f, 50);
    everywhere(f, check_set, &plan);
}

static void one_partition_gives_items_as_they_were_created(void **state)
{
    struct fixture *f = *state;
    struct query_plan plan = plan_of(path(f, "id"), NULL);
    struct how how = {0};

    add_numbered(f, 40);
    open_space(f, &(struct test_space_options){0});
    put_all(f);
    assert_same(run(f, &plan, &how), expect(f, &plan));
    assert_int_equal(how.pages, 14);
}

static void a_page_filled_exactly_has_a_continuation(void **state)
{
    struct fixture *f = *state;
    struct query_plan plan = plan_of(path(f, "id"), NULL);
    struct how how = {.page = 2};

    add_numbered(f, 4);
    open_space(f, &(struct test_space_options){0});
    put_all(f);
    (void)run(f, &plan, &how);
    assert_int_equal(how.pages, 3);
}

static void filters_give_the_same_rows_with_and_without_an_index(void **state)
{
    struct fixture *f = *state;
    const struct query_expression *filters[] = {
        compare(f, "a", QUERY_EQUAL, "3"),
        compare(f, "b", QUERY_GREATER, "31"),
        compare(f, "b", QUERY_LESS_EQUAL, "8"),
        compare(f, "a", QUERY_NOT_EQUAL, "3"),
        compare(f, "c", QUERY_GREATER_EQUAL, "\"t1\""),
        query_between(&f->build, path(f, "b"), value(f, "10"), value(f, "20")),
        query_in(
            &f->build, path(f, "a"),
            (const struct query_expression *[]){value(f, "1"), value(f, "4"), value(f, "\"x\"")},
            3),
        query_and(&f->build, compare(f, "a", QUERY_EQUAL, "2"),
                  compare(f, "c", QUERY_EQUAL, "\"t1\"")),
        query_or(&f->build, compare(f, "a", QUERY_EQUAL, "2"), compare(f, "a", QUERY_EQUAL, "0")),
        query_or(&f->build, compare(f, "a", QUERY_EQUAL, "2"), compare(f, "b", QUERY_EQUAL, "0")),
        query_call(&f->build, query_function_find(SLICE("ARRAY_CONTAINS")),
                   (const struct query_expression *[]){path(f, "tags"), value(f, "2")}, 2),
        query_call(&f->build, query_function_find(SLICE("STARTSWITH")),
                   (const struct query_expression *[]){path(f, "id"), value(f, "\"i01\"")}, 2),
        query_like(&f->build, path(f, "id"), value(f, "\"i_2%\""), NULL),
        query_like(&f->build, path(f, "id"), value(f, "\"i0%5\""), NULL),
        compare(f, "pk", QUERY_EQUAL, "\"p3\""),
        query_and(&f->build, compare(f, "pk", QUERY_EQUAL, "\"p3\""),
                  compare(f, "a", QUERY_GREATER, "1")),
        query_and(&f->build, compare(f, "pk", QUERY_EQUAL, "\"p3\""),
                  compare(f, "id", QUERY_EQUAL, "\"i003\"")),
        query_in(&f->build, path(f, "pk"),
                 (const struct query_expression *[]){value(f, "\"p1\""), value(f, "\"p6\""),
                                                     value(f, "\"none\"")},
                 3),
        compare(f, "missing", QUERY_EQUAL, "1"),
        value(f, "false"),
    };

    add_numbered(f, 60);
    for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
        struct query_plan plan = plan_of(path(f, "id"), filters[i]);

        everywhere(f, check_set, &plan);
    }
}

static void check_ordered(struct fixture *f, void *context)
{
    struct query_plan *plan = context;
    struct how how = {0}, cached = {.cached = true}, small = {.memory_max = 2000};
    struct rows *expected = expect(f, plan);

    assert_same(run(f, plan, &how), expected);
    assert_same(run(f, plan, &cached), expected);
    assert_same(run(f, plan, &small), expected);
}

static void check_long(struct fixture *f, void *plan)
{
    struct how how = {0}, cached = {.cached = true};
    struct rows *expected = expect(f, plan);

    assert_same(run(f, plan, &how), expected);
    assert_same(run(f, plan, &cached), expected);
}

static void order_is_kept_across_pages_and_partitions(void **state)
{
    struct fixture *f = *state;

    add_numbered(f, 60);
    for (int descending = 0; descending < 2; descending++) {
        struct query_order order = {path(f, "b"), descending};
        struct query_plan plan = plan_of(path(f, "b"), NULL);

        plan.query.order = &order;
        plan.query.order_count = 1;
        everywhere(f, check_ordered, &plan);
        plan.query.filter = compare(f, "b", QUERY_GREATER, "10");
        everywhere(f, check_ordered, &plan);
        plan.query.filter = compare(f, "a", QUERY_EQUAL, "2");
        everywhere(f, check_ordered, &plan);
        plan.query.offset = 2;
        plan.query.limit = 7;
        everywhere(f, check_ordered, &plan);
    }
}

static void equal_order_values_neither_repeat_nor_go_missing(void **state)
{
    struct fixture *f = *state;
    struct query_order order = {path(f, "c"), true};
    struct query_plan plan = plan_of(path(f, "id"), NULL);

    plan.query.order = &order;
    plan.query.order_count = 1;
    add_numbered(f, 50);
    everywhere(f, check_set, &plan);
}

static void long_values_are_ordered_to_their_end(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < 40; i++) {
        char json[1024];
        size_t turned = (i * 17) % 40;

        snprintf(json, sizeof json, "{\"id\":\"%zu\",\"pk\":%zu,\"b\":\"%0*d%zu\"}", i, i,
                 turned % 3 ? 400 : 3, (int)(turned % 5), 100 + turned);
        add(f, json);
    }
    for (int descending = 0; descending < 2; descending++) {
        struct query_order order = {path(f, "b"), descending};
        struct query_plan plan = plan_of(path(f, "b"), NULL);

        plan.query.order = &order;
        plan.query.order_count = 1;
        everywhere(f, check_long, &plan);
    }
}

static void two_orders_need_their_composite_index(void **state)
{
    struct fixture *f = *state;
    struct query_order order[] = {{path(f, "a"), true}, {path(f, "b"), false}};
    struct query_plan plan = plan_of(path(f, "b"), NULL);
    struct rows rows = {.arena = f->arena};
    struct query_request request = {
        .space = &f->test.space, .arena = f->arena, .row = row_keep, .self = &rows};
    struct query_page page;
    struct how how = {.explain_has = "\"ordered\":true"};
    struct error err;

    plan.query.order = order;
    plan.query.order_count = 2;
    add_numbered(f, 30);
    open_space(f, &(struct test_space_options){.policy = policies[2], .partitions = 4});
    put_all(f);
    assert_same(run(f, &plan, &how), expect(f, &plan));
    plan.query.filter = compare(f, "a", QUERY_EQUAL, "2");
    assert_same(run(f, &plan, &how), expect(f, &plan));
    open_space(f, &(struct test_space_options){0});
    assert_fails(query_run(&plan, &request, &page, &err), &err, ERROR_BAD_REQUEST);
    assert_string_equal(err.message, "The order by query does not have a corresponding composite "
                                     "index that it can be served from.");
}

static void items_without_the_value_are_ordered_only_where_the_path_is_named(void **state)
{
    struct fixture *f = *state;
    struct query_order order = {path(f, "a"), false};
    struct query_plan plan = plan_of(path(f, "id"), NULL);
    struct how how = {0};

    plan.query.order = &order;
    plan.query.order_count = 1;
    add(f, "{\"id\":\"1\",\"pk\":\"x\",\"a\":2}");
    add(f, "{\"id\":\"2\",\"pk\":\"y\"}");
    add(f, "{\"id\":\"3\",\"pk\":\"z\",\"a\":1}");
    open_space(f, &(struct test_space_options){.partitions = 4});
    put_all(f);
    assert_rows(run(f, &plan, &how), "\"3\" \"1\"");
    open_space(f, &(struct test_space_options){.policy = policies[2], .partitions = 4});
    put_all(f);
    assert_rows(run(f, &plan, &how), "\"2\" \"3\" \"1\"");
}

static void arrays_and_objects_come_last_in_an_order(void **state)
{
    struct fixture *f = *state;
    struct query_order order = {path(f, "a"), false};
    struct query_plan plan = plan_of(path(f, "id"), NULL);
    struct how how = {0};

    plan.query.order = &order;
    plan.query.order_count = 1;
    add(f, "{\"id\":\"1\",\"pk\":\"x\",\"a\":{\"z\":1}}");
    add(f, "{\"id\":\"2\",\"pk\":\"y\",\"a\":[1]}");
    add(f, "{\"id\":\"3\",\"pk\":\"z\",\"a\":\"s\"}");
    add(f, "{\"id\":\"4\",\"pk\":\"z\",\"a\":null}");
    open_space(f, &(struct test_space_options){.partitions = 4});
    put_all(f);
    assert_rows(run(f, &plan, &how), "\"4\" \"3\" \"2\" \"1\"");
}

static void check_grouped(struct fixture *f, void *context)
{
    struct query_plan *plan = context;
    struct how how = {0}, cached = {.cached = true}, small = {.memory_max = 1500};
    struct rows *expected = expect(f, plan);

    assert_same(run(f, plan, &how), expected);
    assert_same(run(f, plan, &cached), expected);
    assert_same(run(f, plan, &small), expected);
}

static void groups_are_whole_however_they_are_paged(void **state)
{
    struct fixture *f = *state;
    struct query_group_key key = {path(f, "a"), 1};
    struct query_aggregate_call calls[] = {{QUERY_COUNT, value(f, "1"), 2},
                                           {QUERY_SUM, path(f, "b"), 3}};
    const struct query_expression *select =
        query_object(&f->build, (struct slice[]){SLICE("a"), SLICE("n"), SLICE("s")},
                     (const struct query_expression *[]){query_variable(&f->build, 1),
                                                         query_variable(&f->build, 2),
                                                         query_variable(&f->build, 3)},
                     3);
    struct query_plan plan = plan_of(select, NULL);

    plan.query.keys = &key;
    plan.query.key_count = 1;
    plan.query.aggregates = calls;
    plan.query.aggregate_count = 2;
    add_numbered(f, 61);
    everywhere(f, check_grouped, &plan);
    plan.query.offset = 1;
    plan.query.limit = 3;
    everywhere(f, check_grouped, &plan);
}

static void distinct_rows_come_once_over_all_pages(void **state)
{
    struct fixture *f = *state;
    struct query_order by_value = {path(f, "a"), true}, by_other = {path(f, "b"), false};
    struct query_plan plan = plan_of(path(f, "a"), NULL);

    add_numbered(f, 53);
    plan.query.distinct = true;
    everywhere(f, check_grouped, &plan);
    plan.query.order = &by_value;
    plan.query.order_count = 1;
    everywhere(f, check_grouped, &plan);
    plan.query.order = &by_other;
    for (size_t i = 0; i < 2; i++) {
        struct how how = {0};

        open_space(f, &(struct test_space_options){.partitions = i ? 16 : 1});
        put_all(f);
        assert_same(run(f, &plan, &how), expect(f, &plan));
    }
}

static void check_count(struct fixture *f, void *plan)
{
    struct how how = {0};

    assert_same(run(f, plan, &how), expect(f, plan));
    assert_int_equal(how.pages, 1);
}

static void aggregates_see_every_partition(void **state)
{
    struct fixture *f = *state;
    struct query_aggregate_call call = {QUERY_COUNT, value(f, "1"), 1};
    struct query_plan plan = plan_of(query_variable(&f->build, 1), NULL);

    plan.query.aggregates = &call;
    plan.query.aggregate_count = 1;
    add_numbered(f, 60);
    everywhere(f, check_count, &plan);
    plan.query.filter = compare(f, "a", QUERY_EQUAL, "3");
    everywhere(f, check_count, &plan);
    plan.query.filter = query_and(&f->build, compare(f, "pk", QUERY_EQUAL, "\"p3\""),
                                  compare(f, "a", QUERY_LESS, "3"));
    everywhere(f, check_count, &plan);
    call = (struct query_aggregate_call){QUERY_MAX, path(f, "b"), 1};
    everywhere(f, check_count, &plan);
}

static void counting_reads_no_items_where_the_index_says_all(void **state)
{
    struct fixture *f = *state;
    struct query_aggregate_call call = {QUERY_COUNT, value(f, "1"), 1};
    struct query_plan plan = plan_of(query_variable(&f->build, 1), NULL);
    struct how how = {0};

    plan.query.aggregates = &call;
    plan.query.aggregate_count = 1;
    add_numbered(f, 60);
    open_space(f, &(struct test_space_options){.partitions = 4});
    put_all(f);
    assert_rows(run(f, &plan, &how), "60");
    assert_int_equal(how.last.metrics.items_loaded, 0);
    assert_int_equal(how.last.metrics.index_entries, 0);
    plan.query.filter = compare(f, "a", QUERY_GREATER_EQUAL, "3");
    assert_rows(run(f, &plan, &how), "24");
    assert_int_equal(how.last.metrics.items_loaded, 0);
}

static void a_join_goes_on_within_an_item(void **state)
{
    struct fixture *f = *state;
    struct query_source source = {QUERY_SOURCE_EACH, path(f, "tags"), NULL, 1};
    const struct query_expression *select = query_array(
        &f->build, (const struct query_expression *[]){path(f, "id"), query_variable(&f->build, 1)},
        2);
    struct query_plan plan = plan_of(select, NULL);

    plan.query.sources = &source;
    plan.query.source_count = 1;
    add_numbered(f, 31);
    everywhere(f, check_set, &plan);
    plan.query.filter =
        query_compare(&f->build, QUERY_EQUAL, query_variable(&f->build, 1), value(f, "2"));
    everywhere(f, check_set, &plan);
}

static void a_scope_holds_back_everything_else(void **state)
{
    struct fixture *f = *state;
    struct query_plan plan = plan_of(path(f, "id"), NULL);
    struct how how = {.scope = {.kind = QUERY_SCOPE_KEY}};

    add_numbered(f, 21);
    for (size_t p = 0; p < ARRAY_LEN(policies); p++) {
        open_space(f, &(struct test_space_options){.policy = policies[p], .partitions = 4});
        put_all(f);
        how.scope.key = test_space_key(&f->test, "[\"p2\"]");
        plan.query.filter = NULL;
        assert_rows(run(f, &plan, &how), "\"i002\" \"i009\" \"i016\"");
        plan.query.filter = compare(f, "pk", QUERY_EQUAL, "\"p3\"");
        assert_rows(run(f, &plan, &how), "");
    }
}

/* Each half of the routing keys gives its own part of the order, and both give all of it. */
static void a_range_of_routing_keys_is_kept_in_any_order(void **state)
{
    struct fixture *f = *state;

    add_numbered(f, 60);
    for (size_t round = 0; round < 2 * ARRAY_LEN(policies); round++) {
        struct query_order order = {path(f, "b"), round % 2};
        struct query_plan plan = plan_of(path(f, "b"), NULL);
        struct how how = {.scope = {.kind = QUERY_SCOPE_RANGE}}, one = {0};
        struct rows *low, *high, *expected;

        plan.query.order = &order;
        plan.query.order_count = 1;
        open_space(f, &(struct test_space_options){.policy = policies[round / 2], .partitions = 3});
        put_all(f);
        how.scope.range = (struct partition_range){PARTITION_ROUTING_MIN, SLICE("\x20")};
        low = run(f, &plan, &how);
        how.scope.range = (struct partition_range){SLICE("\x20"), PARTITION_ROUTING_MAX};
        high = run(f, &plan, &how);
        expected = expect(f, &plan);
        assert_true(low->count > 0 && high->count > 0);
        assert_int_equal(low->count + high->count, expected->count);
        for (size_t i = 0, l = 0, h = 0; i < expected->count; i++) {
            if (l < low->count && strcmp(expected->texts[i], low->texts[l]) == 0)
                l++;
            else
                assert_string_equal(high->texts[h++], expected->texts[i]);
        }
        one.scope.kind = QUERY_SCOPE_KEY;
        one.scope.key = test_space_key(&f->test, "[\"p2\"]");
        plan.query.filter = compare(f, "pk", QUERY_EQUAL, "\"p2\"");
        assert_same(run(f, &plan, &one), expect(f, &plan));
    }
}

static void a_prefix_of_a_hierarchical_key_reaches_what_is_below(void **state)
{
    struct fixture *f = *state;
    struct query_plan plan = plan_of(path(f, "id"), NULL);
    struct how how = {.scope = {.kind = QUERY_SCOPE_KEY}};
    struct document_value level;

    add_numbered(f, 60);
    open_space(f, &(struct test_space_options){.paths = {"/pk", "/a"}, .partitions = 8});
    put_all(f);
    level = value_of(f->arena, "\"p2\"");
    how.scope.key = partition_key_of(&f->test.definition.key, &level, 1);
    assert_int_equal(run(f, &plan, &how)->count, 9);
    how.scope = (struct query_scope){0};
    plan.query.filter = compare(f, "pk", QUERY_EQUAL, "\"p2\"");
    assert_int_equal(run(f, &plan, &how)->count, 9);
    assert_true(how.last.metrics.partitions <= 2);
}

static void id_and_key_together_are_one_lookup(void **state)
{
    struct fixture *f = *state;
    struct query_plan plan =
        plan_of(path(f, "b"), query_and(&f->build, compare(f, "id", QUERY_EQUAL, "\"i010\""),
                                        compare(f, "pk", QUERY_EQUAL, "\"p3\"")));
    struct how how = {.explain_has = "\"kind\":\"point\""};

    add_numbered(f, 21);
    open_space(f, &(struct test_space_options){.partitions = 4});
    put_all(f);
    assert_rows(run(f, &plan, &how), "10");
    assert_true(how.charge_cru <= 280);
}

static void a_continuation_of_another_query_is_refused(void **state)
{
    struct fixture *f = *state;
    struct query_plan plan = plan_of(path(f, "id"), NULL);
    struct rows rows = {.arena = f->arena};
    struct query_request request = {.space = &f->test.space,
                                    .limits = {.rows_max = 2},
                                    .arena = f->arena,
                                    .row = row_keep,
                                    .self = &rows};
    struct query_page page;
    struct error err;

    add_numbered(f, 10);
    open_space(f, &(struct test_space_options){0});
    put_all(f);
    assert_ok(query_run(&plan, &request, &page, &err), &err);
    plan.fingerprint = 7;
    request.continuation = page.continuation;
    assert_fails(query_run(&plan, &request, &page, &err), &err, ERROR_BAD_REQUEST);
    plan.fingerprint = 0;
    for (size_t len = 1; len < request.continuation.len; len++) {
        struct query_request broken = request;

        broken.continuation.len = len;
        assert_fails(query_run(&plan, &broken, &page, &err), &err, ERROR_BAD_REQUEST);
    }
}

static void no_from_is_one_row_whatever_there_is(void **state)
{
    struct fixture *f = *state;
    struct query_plan plan = plan_of(value(f, "42"), NULL);
    struct how how = {0};

    plan.constant = true;
    open_space(f, &(struct test_space_options){.partitions = 16});
    assert_rows(run(f, &plan, &how), "42");
}

static void a_deleted_item_at_the_boundary_loses_nothing(void **state)
{
    struct fixture *f = *state;
    struct query_order order = {path(f, "b"), false};
    struct query_plan plan = plan_of(path(f, "b"), NULL);
    struct rows rows = {.arena = f->arena};
    struct query_request request = {.space = &f->test.space,
                                    .limits = {.rows_max = 2},
                                    .arena = f->arena,
                                    .row = row_keep,
                                    .self = &rows};
    struct transaction_options options = {0};
    struct transaction_result result;
    struct query_page page;
    struct error err;

    plan.query.order = &order;
    plan.query.order_count = 1;
    add_numbered(f, 8);
    open_space(f, &(struct test_space_options){.partitions = 4});
    put_all(f);
    assert_ok(query_run(&plan, &request, &page, &err), &err);
    assert_rows(&rows, "0 1");
    for (size_t i = 1; i < 3; i++) {
        struct partition_key key = partition_key_extract(&f->test.definition.key, f->documents[i]);
        struct document_value id;

        assert_true(document_find(f->documents[i], SLICE("id"), &id));
        assert_ok(items_write(&f->test.space, &key, &id, TRANSACTION_DELETE, SLICE_NONE, &options,
                              f->arena, &result, NULL, &err),
                  &err);
    }
    request.continuation = page.continuation;
    request.limits.rows_max = 100;
    assert_ok(query_run(&plan, &request, &page, &err), &err);
    assert_rows(&rows, "0 1 3 4 5 6 7");
}

/* --- Partitions that change ------------------------------------------------------------------- */

static struct slice routing_of(struct fixture *f, uint8_t family, struct slice key,
                               struct slice stored)
{
    struct slice rest, begin;
    struct error err;

    if (family == 'i') {
        rest = slice_skip(key, 1);
        assert_ok(index_entry_skip(&rest, &err), &err);
        return slice_first(rest, rest.len - 8);
    }
    begin = rest = family == 'd' ? slice_skip(key, 1) : stored;
    assert_ok(partition_route_skip(&f->test.definition.key, &rest, &err), &err);
    return slice_first(begin, begin.len - rest.len);
}

static void move_entry(struct fixture *f, const struct engine_entry *entry)
{
    struct engine_op op = {ENGINE_PUT, entry->key, entry->value};
    struct engine_section section = {.epoch = 1, .ops = &op, .count = 1};
    struct error err;

    section.partition = partition_map_find(f->test.space.map, routing_of(f, entry->key.data[0],
                                                                         entry->key, entry->value))
                            ->id;
    assert_ok(engine_write(f->test.engine, &section, 1, &err), &err);
}

/* The same items, with the same numbers, in another number of physical partitions: what splits and
 * merges come to. */
static void reshape(struct fixture *f, const struct test_space_options *options)
{
    static const char families[] = "dir";
    struct test_space old = f->test;
    size_t count;
    const struct partition_span *spans = partition_map_spans(old.space.map, &count);
    struct engine *engine;
    struct error err;

    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &engine, &err), &err);
    test_space_init(&f->test, engine, options);
    for (size_t i = 0; i < count * 3; i++) {
        CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
        uint8_t min[] = {(uint8_t)families[i % 3]}, max[] = {(uint8_t)(families[i % 3] + 1)};
        struct engine_range range = {slice_of(min, 1), slice_of(max, 1)};
        struct engine_entry entry;

        assert_ok(engine_iterator_new(old.engine, NULL, spans[i / 3].id, range, false,
                                      ENGINE_READ_ANY, &iterator, &err),
                  &err);
        for (;;) {
            assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
            if (entry.found != ENGINE_FOUND)
                break;
            move_entry(f, &entry);
        }
    }
    test_space_done(&old);
}

static void check_reshaped(struct fixture *f, struct query_plan *plan, const char *policy)
{
    static const size_t shapes[] = {4, 16, 2, 7, 1, 8};
    struct rows *rows = arena_alloc_zero(f->arena, sizeof *rows);
    struct slice continuation = SLICE_NONE;
    size_t pages = 0;
    struct error err;

    rows->arena = f->arena;
    open_space(f, &(struct test_space_options){.policy = policy, .partitions = 4});
    put_all(f);
    do {
        struct query_request request = {.space = &f->test.space,
                                        .continuation = continuation,
                                        .limits = {.rows_max = 4},
                                        .arena = f->arena,
                                        .row = row_keep,
                                        .self = rows};
        struct query_page page;

        assert_ok(query_run(plan, &request, &page, &err), &err);
        continuation = page.continuation;
        if (++pages % 2 == 0)
            reshape(f, &(struct test_space_options){
                           .policy = policy, .partitions = shapes[pages / 2 % ARRAY_LEN(shapes)]});
    } while (continuation.len);
    assert_same_set(rows, expect(f, plan));
}

static void splits_and_merges_between_pages_lose_and_repeat_nothing(void **state)
{
    struct fixture *f = *state;
    struct query_order order = {path(f, "c"), false};
    struct query_source source = {QUERY_SOURCE_EACH, path(f, "tags"), NULL, 1};
    struct query_plan plan = plan_of(path(f, "id"), NULL);

    add_numbered(f, 70);
    check_reshaped(f, &plan, NULL);
    plan.query.filter = compare(f, "a", QUERY_GREATER, "1");
    check_reshaped(f, &plan, NULL);
    check_reshaped(f, &plan, policies[1]);
    plan.query.sources = &source;
    plan.query.source_count = 1;
    check_reshaped(f, &plan, policies[1]);
    check_reshaped(f, &plan, NULL);
    plan.query.source_count = 0;
    plan.query.order = &order;
    plan.query.order_count = 1;
    check_reshaped(f, &plan, NULL);
    check_reshaped(f, &plan, policies[1]);
}

/* --- Limits and budgets ----------------------------------------------------------------------- */

static int64_t ticking_ms(void *context)
{
    return ++*(int64_t *)context;
}

/* The clock moves on with every look, so each page has to end early. */
static void a_page_that_takes_too_long_ends_early_and_goes_on(void **state)
{
    struct fixture *f = *state;
    struct query_aggregate_call calls[] = {{QUERY_SUM, path(f, "b"), 1},
                                           {QUERY_COUNT, value(f, "1"), 2}};
    struct query_plan plan =
        plan_of(query_array(&f->build,
                            (const struct query_expression *[]){query_variable(&f->build, 1),
                                                                query_variable(&f->build, 2)},
                            2),
                NULL);
    struct rows rows = {.arena = f->arena};
    struct slice continuation = SLICE_NONE;
    struct clock clock;
    size_t pages = 0;
    int64_t now = 0;
    struct error err;

    plan.query.aggregates = calls;
    plan.query.aggregate_count = 2;
    add_numbered(f, 900);
    open_space(f, &(struct test_space_options){.partitions = 4});
    put_all(f);
    clock = f->test.clock;
    clock.monotonic_ms = ticking_ms;
    clock.context = &now;
    clock.wall_ms = ticking_ms;
    f->test.space.clock = &clock;
    do {
        struct query_request request = {.space = &f->test.space,
                                        .continuation = continuation,
                                        .limits = {.pause_ms = now + 2},
                                        .arena = f->arena,
                                        .row = row_keep,
                                        .self = &rows};
        struct query_page page;

        assert_ok(query_run(&plan, &request, &page, &err), &err);
        continuation = page.continuation;
        assert_true(++pages < 100);
    } while (continuation.len);
    assert_true(pages > 3);
    assert_rows(&rows, "[404550,900]");
}

static void a_page_ends_when_it_has_cost_enough(void **state)
{
    struct fixture *f = *state;
    struct query_plan plan = plan_of(path(f, "id"), compare(f, "c", QUERY_EQUAL, "\"none\""));
    struct rows rows = {.arena = f->arena};
    struct query_request request = {.space = &f->test.space,
                                    .limits = {.cru_max = 300},
                                    .arena = f->arena,
                                    .row = row_keep,
                                    .self = &rows};
    struct query_page page;
    size_t pages = 0;
    struct error err;

    add_numbered(f, 600);
    open_space(f, &(struct test_space_options){.policy = policies[1]});
    put_all(f);
    do {
        assert_ok(query_run(&plan, &request, &page, &err), &err);
        assert_true(page.charge_cru < 600);
        request.continuation = page.continuation;
        assert_true(++pages < 100);
    } while (page.continuation.len);
    assert_true(pages > 2);
    assert_int_equal(rows.count, 0);
}

static void
an_exhausted_budget_refuses_the_first_partition_and_cuts_the_page_at_others(void **state)
{
    struct fixture *f = *state;
    CLEANUP(meters_free) struct meters *meters = NULL;
    struct query_plan plan = plan_of(path(f, "id"), NULL);
    struct rows rows = {.arena = f->arena};
    struct budget_options options = {.rate_cru = 300};
    struct metered_call call = {0};
    struct query_request request = {
        .space = &f->test.space, .call = &call, .arena = f->arena, .row = row_keep, .self = &rows};
    struct query_page page;
    struct error err;
    int64_t now = 0;
    struct clock clock;
    struct budget *spent;
    struct budget_grant grant;
    int64_t wait_ms;
    size_t seen;

    add_numbered(f, 40);
    open_space(f, &(struct test_space_options){.partitions = 4});
    put_all(f);
    clock = f->test.clock;
    clock.monotonic_ms = ticking_ms;
    clock.context = &now;
    f->test.space.clock = &clock;
    clock.wall_ms = ticking_ms;
    request.meters = meters = meters_new(&clock);
    meters_set_own(meters, 3, &options);
    spent = meter_budget(meters_find(meters, 3));
    assert_ok(
        budget_admit(spent, &(struct budget_request){.price_cru = 1}, now, &grant, &wait_ms, &err),
        &err);
    budget_settle(spent, &grant, 100000, now); /* the third partition owes */
    assert_ok(query_run(&plan, &request, &page, &err), &err);
    assert_true(page.continuation.len > 0);
    seen = rows.count;
    assert_true(seen > 0 && seen < 40);
    request.continuation = page.continuation;
    assert_ok(query_run(&plan, &request, &page, &err) || err.code == ERROR_TOO_MANY_REQUESTS, &err);
    if (err.code == ERROR_TOO_MANY_REQUESTS)
        assert_true(call.wait_ms > 0);
    now += 10000000;
    assert_ok(query_run(&plan, &request, &page, &err), &err);
    assert_same_set(&rows, expect(f, &plan));
}

static void memory_that_does_not_suffice_is_a_clear_error(void **state)
{
    struct fixture *f = *state;
    struct query_order order = {path(f, "b"), false};
    struct query_plan plan = plan_of(path(f, "a"), NULL);
    struct rows rows = {.arena = f->arena};
    struct query_request request = {.space = &f->test.space,
                                    .limits = {.memory_max = 300},
                                    .arena = f->arena,
                                    .row = row_keep,
                                    .self = &rows};
    struct query_page page;
    struct error err;

    plan.query.order = &order;
    plan.query.order_count = 1;
    plan.query.distinct = true;
    add_numbered(f, 40);
    open_space(f, &(struct test_space_options){0});
    put_all(f);
    assert_fails(query_run(&plan, &request, &page, &err), &err, ERROR_QUERY_LIMIT);
}

static void a_cancelled_query_stops(void **state)
{
    struct fixture *f = *state;
    struct query_plan plan = plan_of(path(f, "id"), compare(f, "a", QUERY_EQUAL, "\"none\""));
    atomic_bool cancelled = true;
    struct rows rows = {.arena = f->arena};
    struct query_request request = {.space = &f->test.space,
                                    .limits = {.cancelled = &cancelled},
                                    .arena = f->arena,
                                    .row = row_keep,
                                    .self = &rows};
    struct query_page page;
    struct error err;

    add_numbered(f, 2000);
    open_space(f, &(struct test_space_options){.policy = policies[1]});
    put_all(f);
    for (int i = 0; i < 3; i++)
        plan.query.filter = query_or(&f->build, plan.query.filter, plan.query.filter);
    assert_fails(query_run(&plan, &request, &page, &err), &err, ERROR_TIMED_OUT);
}

static void the_same_page_costs_the_same(void **state)
{
    struct fixture *f = *state;
    struct query_plan plan = plan_of(path(f, "id"), compare(f, "a", QUERY_GREATER, "1"));
    struct how first = {.page = 1000}, again = {.page = 1000}, small = {.page = 3};

    add_numbered(f, 200);
    open_space(f, &(struct test_space_options){.partitions = 4});
    put_all(f);
    (void)run(f, &plan, &first);
    (void)run(f, &plan, &again);
    (void)run(f, &plan, &small);
    assert_int_equal(first.charge_cru, again.charge_cru);
    assert_true(small.charge_cru < 2 * first.charge_cru);
}

static void two_frequent_values_are_intersected(void **state)
{
    struct fixture *f = *state;
    struct query_plan plan =
        plan_of(path(f, "id"), query_and(&f->build, compare(f, "x", QUERY_EQUAL, "1"),
                                         compare(f, "y", QUERY_EQUAL, "1")));
    struct how how = {.explain_has = "intersectedWith"};

    for (size_t i = 0; i < 1200; i++) {
        char json[128];

        snprintf(json, sizeof json, "{\"id\":\"%zu\",\"pk\":%zu,\"x\":%d,\"y\":%d}", i, i % 9,
                 i % 2 == 0, i % 3 == 0);
        add(f, json);
    }
    for (size_t i = 0; i < 2; i++) {
        open_space(f, &(struct test_space_options){.partitions = i ? 2 : 1});
        put_all(f);
        assert_same_set(run(f, &plan, &how), expect(f, &plan));
        assert_int_equal(how.last.metrics.items_loaded <= 3, true);
    }
}

struct task {
    pthread_t thread;
    void (*run)(void *context, size_t number);
    void *context;
    size_t number;
};

static void *task_run(void *argument)
{
    struct task *task = argument;

    task->run(task->context, task->number);
    return NULL;
}

static void run_in_threads(void *self, size_t count, void (*run)(void *context, size_t number),
                           void *context)
{
    struct task tasks[8];

    assert_true(count <= ARRAY_LEN(tasks));
    *(size_t *)self += count;
    for (size_t i = 0; i < count; i++) {
        tasks[i] = (struct task){.run = run, .context = context, .number = i};
        assert_int_equal(pthread_create(&tasks[i].thread, NULL, task_run, &tasks[i]), 0);
    }
    for (size_t i = 0; i < count; i++)
        pthread_join(tasks[i].thread, NULL);
}

/* The same rows with and without threads, with much memory and with little. */
static void check_threads(struct fixture *f, const struct query_plan *plan)
{
    size_t tasks = 0;
    struct query_executor executor = {run_in_threads, &tasks, 5};
    struct rows *expected = expect(f, plan);
    struct how alone = {.page = 500}, threads = {.page = 500, .executor = &executor};
    struct how small = {.page = 500, .executor = &executor, .memory_max = 60000};

    assert_same(run(f, plan, &alone), expected);
    assert_same(run(f, plan, &threads), expected);
    assert_int_equal(tasks, 5 * threads.pages);
    assert_int_equal(alone.charge_cru, threads.charge_cru);
    if (!plan->query.distinct)
        assert_same(run(f, plan, &small), expected);
}

static void threads_change_no_row_and_no_charge(void **state)
{
    struct fixture *f = *state;
    struct query_group_key key = {path(f, "b"), 1};
    struct query_aggregate_call calls[] = {{QUERY_COUNT, value(f, "1"), 2},
                                           {QUERY_SUM, path(f, "c"), 3}};
    const struct query_expression *results[] = {
        query_variable(&f->build, 1), query_variable(&f->build, 2), query_variable(&f->build, 3)};
    struct query_order order = {path(f, "b"), true};
    struct query_plan plan = plan_of(query_array(&f->build, results, 3), NULL);

    for (size_t i = 0; i < 2500; i++) {
        char json[128];

        snprintf(json, sizeof json, "{\"id\":\"%zu\",\"pk\":%zu,\"b\":%zu,\"c\":%zu.1}", i, i,
                 i * 7919 % 2503 / 2, i);
        add(f, json);
    }
    open_space(f, &(struct test_space_options){.policy = policies[1], .partitions = 16});
    put_all(f);
    plan.query.keys = &key;
    plan.query.key_count = 1;
    plan.query.aggregates = calls;
    plan.query.aggregate_count = 2;
    check_threads(f, &plan);
    plan.query.key_count = 0;
    check_threads(f, &plan);
    plan.query.aggregate_count = 0;
    plan.query.select = path(f, "b");
    plan.query.order = &order;
    plan.query.order_count = 1;
    check_threads(f, &plan);
    plan.query.order_count = 0;
    plan.query.distinct = true;
    check_threads(f, &plan);
}

static void explanations_name_the_index_that_is_missing(void **state)
{
    struct fixture *f = *state;
    struct query_plan plan = plan_of(path(f, "id"), compare(f, "b", QUERY_EQUAL, "3"));
    struct how how = {.explain_has = "\"advice\":[{\"path\":\"/b/?\",\"kind\":\"single\""};

    add_numbered(f, 10);
    open_space(f, &(struct test_space_options){.policy = policies[2]});
    put_all(f);
    (void)run(f, &plan, &how);
}

static void expired_items_are_not_there(void **state)
{
    struct fixture *f = *state;
    struct query_aggregate_call call = {QUERY_COUNT, value(f, "1"), 1};
    struct query_plan plan = plan_of(path(f, "id"), compare(f, "a", QUERY_EQUAL, "1"));
    struct how how = {0};

    add_numbered(f, 20);
    open_space(f, &(struct test_space_options){.default_ttl = 10});
    put_all(f);
    assert_int_equal(run(f, &plan, &how)->count, 4);
    f->test.wall_ms += 20000;
    assert_int_equal(run(f, &plan, &how)->count, 0);
    plan.query.select = query_variable(&f->build, 1);
    plan.query.aggregates = &call;
    plan.query.aggregate_count = 1;
    assert_rows(run(f, &plan, &how), "0");
    plan.query.filter = NULL;
    assert_rows(run(f, &plan, &how), "0");
}

/* --- At random ------------------------------------------------------------------------------- */

static const struct query_expression *random_filter(struct fixture *f, struct random *random,
                                                    unsigned depth)
{
    static const char *const names[] = {"a", "b", "pk", "id", "tags"};
    const char *name = names[random_below(random, ARRAY_LEN(names))];
    struct document_value constant;

    if (depth && random_below(random, 3)) {
        const struct query_expression *left = random_filter(f, random, depth - 1);
        const struct query_expression *right = random_filter(f, random, depth - 1);

        return random_below(random, 3) ? query_and(&f->build, left, right)
                                       : query_or(&f->build, left, right);
    }
    constant = value_random_json(random, f->arena, 1);
    if (random_below(random, 2) && f->document_count) {
        struct slice document = f->documents[random_below(random, f->document_count)];

        if (!document_find(document, slice_of_text(name), &constant))
            constant = document_null();
    }
    if (strcmp(name, "tags") == 0)
        return query_call(
            &f->build, query_function_find(SLICE("ARRAY_CONTAINS")),
            (const struct query_expression *[]){path(f, name), query_constant(&f->build, constant)},
            2);
    return query_compare(&f->build, (enum query_comparison)random_below(random, 6), path(f, name),
                         query_constant(&f->build, constant));
}

static struct slice random_document(struct fixture *f, struct random *random, size_t number)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value a = value_random_json(random, f->arena, 1);
    struct document_value b = value_random_json(random, f->arena, 0);
    size_t begin, tags;
    char id[16], pk[16], text[400];

    buf_init(&buf, BUF_DEFAULT_MAX);
    snprintf(id, sizeof id, "%zu", number);
    snprintf(pk, sizeof pk, "k%u", (unsigned)random_below(random, 5));
    begin = document_begin(&buf);
    document_append_string(&buf, SLICE("id"), slice_of_text(id));
    document_append_string(&buf, SLICE("pk"), slice_of_text(pk));
    document_append(&buf, SLICE("a"), &a);
    if (number % 3 == 0) {
        memset(text, 'x', sizeof text);
        text[sizeof text - 1] = (char)('a' + number % 7);
        document_append_string(&buf, SLICE("long"), slice_of(text, sizeof text));
    }
    if (random_below(random, 4))
        document_append(&buf, SLICE("b"), &b);
    tags = document_append_array_begin(&buf, SLICE("tags"));
    for (uint32_t i = 0; i < random_below(random, 4); i++) {
        struct document_value tag = value_random_json(random, f->arena, 0);
        char text[DOCUMENT_INDEX_SIZE];

        document_append(&buf, document_index_key(i, text), &tag);
    }
    document_end(&buf, tags);
    document_end(&buf, begin);
    return arena_copy(f->arena, buf_slice(&buf));
}

static void random_filters_do_not_depend_on_index_or_partitions(void **state)
{
    struct fixture *f = *state;
    struct random random;

    random_seed(&random, 5);
    for (size_t i = 0; i < 120; i++)
        f->documents[f->document_count++] = random_document(f, &random, i);
    for (size_t p = 0; p < 2 * ARRAY_LEN(policies); p++) {
        open_space(f, &(struct test_space_options){.policy = policies[p / 2],
                                                   .partitions = p % 2 ? 16 : 1});
        put_all(f);
        for (size_t round = 0; round < 150; round++) {
            struct query_plan plan = plan_of(path(f, "id"), random_filter(f, &random, 2));

            f->build.nodes = 0;
            check_set(f, &plan);
        }
    }
}

/* The key, 0 and -0 alike, for either may stand for the group; and how many there are. */
static const struct query_expression *group_select(struct fixture *f)
{
    const struct query_expression *key = query_variable(&f->build, 1);
    const struct query_expression *zero = value(f, "0");

    key = query_coalesce(&f->build,
                         query_conditional(&f->build,
                                           query_compare(&f->build, QUERY_EQUAL, key, zero), zero,
                                           query_constant(&f->build, document_undefined())),
                         key);
    return query_object(&f->build, (struct slice[]){SLICE("b"), SLICE("n")},
                        (const struct query_expression *[]){key, query_variable(&f->build, 2)}, 2);
}

static void check_random_aggregates(struct fixture *f, struct random *random)
{
    static const enum query_aggregate_kind kinds[] = {QUERY_COUNT, QUERY_MIN, QUERY_MAX, QUERY_SUM,
                                                      QUERY_AVG};
    static const char *const names[] = {"a", "b", "id", "pk", "long", "missing"};

    for (size_t i = 0; i < ARRAY_LEN(kinds) * ARRAY_LEN(names); i++) {
        const struct query_expression *argument = path(f, names[i / ARRAY_LEN(kinds)]);
        struct query_aggregate_call call = {kinds[i % ARRAY_LEN(kinds)], argument, 2};
        struct query_plan plan = plan_of(
            query_array(&f->build,
                        (const struct query_expression *[]){query_variable(&f->build, 2)}, 1),
            NULL);
        struct how how = {0};

        plan.query.aggregates = &call;
        plan.query.aggregate_count = 1;
        assert_same(run(f, &plan, &how), expect(f, &plan));
        plan.query.filter = random_filter(f, random, 0);
        assert_same(run(f, &plan, &how), expect(f, &plan));
        plan.query.filter = query_compare(&f->build, QUERY_GREATER, argument, value(f, "1"));
        assert_same(run(f, &plan, &how), expect(f, &plan));
        plan.query.aggregate_count = 0;
        plan.query.distinct = true;
        plan.query.select = argument;
        assert_same_numbers(run(f, &plan, &how), expect(f, &plan));
    }
}

/* Rows in order are the same but for ties; so order by something that has none. */
static void random_orders_groups_and_sets_do_not_either(void **state)
{
    struct fixture *f = *state;
    struct random random;

    random_seed(&random, 6);
    for (size_t i = 0; i < 80; i++)
        f->documents[f->document_count++] = random_document(f, &random, i);
    for (size_t p = 0; p < 2 * ARRAY_LEN(policies); p++) {
        open_space(f, &(struct test_space_options){.policy = policies[p / 2],
                                                   .partitions = p % 2 ? 16 : 1});
        put_all(f);
        check_random_aggregates(f, &random);
        for (size_t round = 0; round < 60; round++) {
            struct query_order order = {path(f, "id"), random_below(&random, 2)};
            struct query_group_key key = {path(f, "b"), 1};
            struct query_aggregate_call call = {QUERY_COUNT, value(f, "1"), 2};
            struct query_plan plan = plan_of(path(f, "id"), NULL);
            struct how how = {.cached = random_below(&random, 2),
                              .memory_max = random_below(&random, 2) ? 4000 : 0};

            if (random_below(&random, 2))
                plan.query.filter = random_filter(f, &random, 1);
            switch (random_below(&random, 3)) {
            case 0:
                plan.query.order = &order;
                plan.query.order_count = 1;
                break;
            case 1:
                plan.query.keys = &key;
                plan.query.key_count = 1;
                plan.query.aggregates = &call;
                plan.query.aggregate_count = 1;
                plan.query.select = group_select(f);
                break;
            default:
                plan.query.select = path(f, "pk");
                plan.query.distinct = true;
                break;
            }
            plan.query.offset = random_below(&random, 4);
            if (random_below(&random, 2))
                plan.query.limit = 1 + random_below(&random, 20);
            f->build.nodes = 0;
            assert_same(run(f, &plan, &how), expect(f, &plan));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_item_comes_once_in_pages_of_three, setup, teardown),
        cmocka_unit_test_setup_teardown(one_partition_gives_items_as_they_were_created, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_page_filled_exactly_has_a_continuation, setup, teardown),
        cmocka_unit_test_setup_teardown(filters_give_the_same_rows_with_and_without_an_index, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(order_is_kept_across_pages_and_partitions, setup, teardown),
        cmocka_unit_test_setup_teardown(equal_order_values_neither_repeat_nor_go_missing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(long_values_are_ordered_to_their_end, setup, teardown),
        cmocka_unit_test_setup_teardown(two_orders_need_their_composite_index, setup, teardown),
        cmocka_unit_test_setup_teardown(
            items_without_the_value_are_ordered_only_where_the_path_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(arrays_and_objects_come_last_in_an_order, setup, teardown),
        cmocka_unit_test_setup_teardown(groups_are_whole_however_they_are_paged, setup, teardown),
        cmocka_unit_test_setup_teardown(distinct_rows_come_once_over_all_pages, setup, teardown),
        cmocka_unit_test_setup_teardown(aggregates_see_every_partition, setup, teardown),
        cmocka_unit_test_setup_teardown(counting_reads_no_items_where_the_index_says_all, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_join_goes_on_within_an_item, setup, teardown),
        cmocka_unit_test_setup_teardown(a_scope_holds_back_everything_else, setup, teardown),
        cmocka_unit_test_setup_teardown(a_range_of_routing_keys_is_kept_in_any_order, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_prefix_of_a_hierarchical_key_reaches_what_is_below, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(id_and_key_together_are_one_lookup, setup, teardown),
        cmocka_unit_test_setup_teardown(a_continuation_of_another_query_is_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(no_from_is_one_row_whatever_there_is, setup, teardown),
        cmocka_unit_test_setup_teardown(a_deleted_item_at_the_boundary_loses_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(splits_and_merges_between_pages_lose_and_repeat_nothing,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_page_that_takes_too_long_ends_early_and_goes_on, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_page_ends_when_it_has_cost_enough, setup, teardown),
        cmocka_unit_test_setup_teardown(
            an_exhausted_budget_refuses_the_first_partition_and_cuts_the_page_at_others, setup,
            teardown),
        cmocka_unit_test_setup_teardown(memory_that_does_not_suffice_is_a_clear_error, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_cancelled_query_stops, setup, teardown),
        cmocka_unit_test_setup_teardown(the_same_page_costs_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(two_frequent_values_are_intersected, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_change_no_row_and_no_charge, setup, teardown),
        cmocka_unit_test_setup_teardown(explanations_name_the_index_that_is_missing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(expired_items_are_not_there, setup, teardown),
        cmocka_unit_test_setup_teardown(random_orders_groups_and_sets_do_not_either, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(random_filters_do_not_depend_on_index_or_partitions, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
