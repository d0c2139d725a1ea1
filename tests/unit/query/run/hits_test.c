#include "support/postgres.h"
#include "support/queries.h"

static void a_scope_holds_back_everything_else(void **state)
{
    struct queries *f = *state;
    struct query_plan plan = queries_plan(queries_path(f, "id"), NULL);
    struct queries_how how = {.scope = {.kind = QUERY_SCOPE_KEY}};

    queries_add_numbered(f, 21);
    for (size_t p = 0; p < QUERIES_POLICIES; p++) {
        queries_open(f,
                     &(struct test_space_options){.policy = queries_policies[p], .partitions = 4});
        queries_put(f);
        how.scope.key = test_space_key(&f->test, "[\"p2\"]");
        plan.query.filter = NULL;
        queries_are(queries_run(f, &plan, &how), "\"i002\" \"i009\" \"i016\"");
        plan.query.filter = queries_compare(f, "pk", QUERY_EQUAL, "\"p3\"");
        queries_are(queries_run(f, &plan, &how), "");
    }
}

/* Each half of the routing keys gives its own part of the order, and both give all of it. */
static void a_range_of_routing_keys_is_kept_in_any_order(void **state)
{
    struct queries *f = *state;

    queries_add_numbered(f, 60);
    for (size_t round = 0; round < 2 * QUERIES_POLICIES; round++) {
        struct query_order order = {queries_path(f, "b"), round % 2};
        struct query_plan plan = queries_plan(queries_path(f, "b"), NULL);
        struct queries_how how = {.scope = {.kind = QUERY_SCOPE_RANGE}}, one = {0};
        struct queries_rows *low, *high, *expected;

        plan.query.order = &order;
        plan.query.order_count = 1;
        queries_open(f, &(struct test_space_options){.policy = queries_policies[round / 2],
                                                     .partitions = 3});
        queries_put(f);
        how.scope.range = (struct partition_range){PARTITION_ROUTING_MIN, SLICE("\x20")};
        low = queries_run(f, &plan, &how);
        how.scope.range = (struct partition_range){SLICE("\x20"), PARTITION_ROUTING_MAX};
        high = queries_run(f, &plan, &how);
        expected = queries_expect(f, &plan);
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
        plan.query.filter = queries_compare(f, "pk", QUERY_EQUAL, "\"p2\"");
        queries_same(queries_run(f, &plan, &one), queries_expect(f, &plan));
    }
}

static void a_prefix_of_a_hierarchical_key_reaches_what_is_below(void **state)
{
    struct queries *f = *state;
    struct query_plan plan = queries_plan(queries_path(f, "id"), NULL);
    struct queries_how how = {.scope = {.kind = QUERY_SCOPE_KEY}};
    struct document_value level;

    queries_add_numbered(f, 60);
    queries_open(f, &(struct test_space_options){.paths = {"/pk", "/a"}, .partitions = 8});
    queries_put(f);
    level = value_of(f->arena, "\"p2\"");
    how.scope.key = partition_key_of(&f->test.definition.key, &level, 1);
    assert_int_equal(queries_run(f, &plan, &how)->count, 9);
    how.scope = (struct query_scope){0};
    plan.query.filter = queries_compare(f, "pk", QUERY_EQUAL, "\"p2\"");
    assert_int_equal(queries_run(f, &plan, &how)->count, 9);
    assert_true(how.last.metrics.partitions <= 2);
}

static void a_deleted_item_at_the_boundary_loses_nothing(void **state)
{
    struct queries *f = *state;
    struct query_order order = {queries_path(f, "b"), false};
    struct query_plan plan = queries_plan(queries_path(f, "b"), NULL);
    struct queries_rows rows = {.arena = f->arena};
    struct query_request request = {.space = &f->test.space,
                                    .order_unindexed = true,
                                    .limits = {.rows_max = 2},
                                    .arena = f->arena,
                                    .row = queries_row,
                                    .self = &rows};
    struct transaction_options options = {0};
    struct query_page page;
    struct error err;

    plan.query.order = &order;
    plan.query.order_count = 1;
    queries_add_numbered(f, 8);
    queries_open(f, &(struct test_space_options){.partitions = 4});
    queries_put(f);
    assert_ok(query_run(&plan, &request, &page, &err), &err);
    queries_are(&rows, "0 1");
    for (size_t i = 1; i < 3; i++) {
        struct partition_key key = partition_key_extract(&f->test.definition.key, f->documents[i]);
        struct document_value id;

        assert_true(document_find(f->documents[i], SLICE("id"), &id));
        assert_ok(item_operation_run(&(struct item_operation){.space = &f->test.space,
                                                              .arena = f->arena,
                                                              .verb = ITEM_DELETE,
                                                              .key = key,
                                                              .id = id,
                                                              .options = options},
                                     &err),
                  &err);
    }
    request.continuation = page.continuation;
    request.limits.rows_max = 100;
    assert_ok(query_run(&plan, &request, &page, &err), &err);
    queries_are(&rows, "0 1 3 4 5 6 7");
}

static struct slice routing_of(struct queries *f, uint8_t family, struct slice key,
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

static void move_entry(struct queries *f, const struct engine_entry *entry)
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
static void reshape(struct queries *f, const struct test_space_options *options)
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

static void check_reshaped(struct queries *f, struct query_plan *plan, const char *policy)
{
    static const size_t shapes[] = {4, 16, 2, 7, 1, 8};
    struct queries_rows *rows = arena_alloc_zero(f->arena, sizeof *rows);
    struct slice continuation = SLICE_NONE;
    size_t pages = 0;
    struct error err;

    rows->arena = f->arena;
    queries_open(f, &(struct test_space_options){.policy = policy, .partitions = 4});
    queries_put(f);
    do {
        struct query_request request = {.space = &f->test.space,
                                        .order_unindexed = true,
                                        .continuation = continuation,
                                        .limits = {.rows_max = 4},
                                        .arena = f->arena,
                                        .row = queries_row,
                                        .self = rows};
        struct query_page page;

        assert_ok(query_run(plan, &request, &page, &err), &err);
        continuation = page.continuation;
        if (++pages % 2 == 0)
            reshape(f, &(struct test_space_options){
                           .policy = policy, .partitions = shapes[pages / 2 % ARRAY_LEN(shapes)]});
    } while (continuation.len);
    queries_same_set(rows, queries_expect(f, plan));
}

static void splits_and_merges_between_pages_lose_and_repeat_nothing(void **state)
{
    struct queries *f = *state;
    struct query_order order = {queries_path(f, "c"), false};
    struct query_source source = {QUERY_SOURCE_EACH, queries_path(f, "tags"), NULL, 1};
    struct query_plan plan = queries_plan(queries_path(f, "id"), NULL);

    queries_add_numbered(f, 70);
    check_reshaped(f, &plan, NULL);
    plan.query.filter = queries_compare(f, "a", QUERY_GREATER, "1");
    check_reshaped(f, &plan, NULL);
    check_reshaped(f, &plan, queries_policies[1]);
    plan.query.sources = &source;
    plan.query.source_count = 1;
    check_reshaped(f, &plan, queries_policies[1]);
    check_reshaped(f, &plan, NULL);
    plan.query.source_count = 0;
    plan.query.order = &order;
    plan.query.order_count = 1;
    check_reshaped(f, &plan, NULL);
    check_reshaped(f, &plan, queries_policies[1]);
}

/* More partitions than the node has connections. */
static void a_postgresql_node_gives_the_same_rows(void **state)
{
    CLEANUP(postgres_free) struct postgres *postgres = postgres_start(false);
    struct queries *f = *state;
    struct query_order order = {queries_path(f, "b"), true};
    struct query_plan plan = queries_plan(queries_path(f, "b"), NULL);
    struct queries_how how = {0};

    queries_add_numbered(f, 40);
    queries_open_at(f, postgres_fresh_url(postgres),
                    &(struct test_space_options){.partitions = 16});
    queries_put(f);
    queries_same_set(queries_run(f, &plan, &how), queries_expect(f, &plan));
    plan.query.order = &order;
    plan.query.order_count = 1;
    queries_same(queries_run(f, &plan, &how), queries_expect(f, &plan));
    plan.query.filter = queries_compare(f, "c", QUERY_EQUAL, "\"t1\"");
    queries_same(queries_run(f, &plan, &how), queries_expect(f, &plan));
    queries_open(f, &(struct test_space_options){0}); /* lets go of the node */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_postgresql_node_gives_the_same_rows, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(a_scope_holds_back_everything_else, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(a_range_of_routing_keys_is_kept_in_any_order, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(a_prefix_of_a_hierarchical_key_reaches_what_is_below,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(a_deleted_item_at_the_boundary_loses_nothing, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(splits_and_merges_between_pages_lose_and_repeat_nothing,
                                        queries_setup, queries_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
