/* The same rows with and without spilling, whatever the disk does. */
#include "support/faulty_disk.h"
#include "support/queries.h"

enum { DOCUMENTS = 400 };

/* Numbers of all sizes, texts, and items without a value; many values occur several times. */
static void documents_add(struct queries *f)
{
    struct random random;

    random_seed(&random, 11);
    for (size_t i = 0; i < DOCUMENTS; i++) {
        static const char *const values[] = {"%u", "-%u.25", "\"text %u\"", "%u.5", "\"%u\""};
        char value[32], b[64], json[256];
        unsigned number = (unsigned)random_below(&random, 90);

        snprintf(value, sizeof value, values[number % ARRAY_LEN(values)], number);
        snprintf(b, sizeof b, ",\"b\":%s", value);
        snprintf(json, sizeof json, "{\"id\":\"%zu\",\"pk\":%zu,\"a\":%zu,\"n\":%u.1%s}", i, i % 13,
                 i * 7919 % 2503, number, i % 9 ? b : "");
        queries_add(f, json);
    }
}

struct plans {
    struct query_plan list[8];
    size_t count;
    struct query_group_key key;
    struct query_aggregate_call calls[6];
    struct query_order by_a, by_b;
};

static struct query_plan *plan_add(struct plans *plans, const struct query_expression *select)
{
    plans->list[plans->count] = queries_plan(select, NULL);
    plans->list[plans->count].fingerprint = 100 + plans->count;
    return &plans->list[plans->count++];
}

static void plan_group(struct queries *f, struct plans *plans, struct query_plan *plan,
                       size_t aggregates)
{
    static const enum query_aggregate_kind kinds[] = {QUERY_COUNT, QUERY_SUM, QUERY_AVG, QUERY_MIN,
                                                      QUERY_MAX};

    plans->key = (struct query_group_key){queries_path(f, "b"), 1};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        plans->calls[i] = (struct query_aggregate_call){
            kinds[i], queries_path(f, i % 2 ? "n" : "a"), (uint32_t)(2 + i)};
    plan->query.keys = &plans->key;
    plan->query.key_count = 1;
    plan->query.aggregates = plans->calls;
    plan->query.aggregate_count = aggregates;
}

static void plans_make(struct queries *f, struct plans *plans)
{
    const struct query_expression *results[6];
    struct query_plan *plan;

    *plans = (struct plans){0};
    plans->by_a = (struct query_order){queries_path(f, "a"), true};
    plans->by_b = (struct query_order){queries_path(f, "b"), false};
    for (uint32_t i = 0; i < ARRAY_LEN(results); i++)
        results[i] = query_variable(&f->build, i + 1);

    plan = plan_add(plans, queries_path(f, "id")); /* sorted, */
    plan->query.order = &plans->by_a;
    plan->query.order_count = 1;
    plan = plan_add(plans, queries_path(f, "id")); /* with a limit that does not fit, */
    plan->query.order = &plans->by_a;
    plan->query.order_count = 1;
    plan->query.offset = 7;
    plan->query.limit = 120;
    plan = plan_add(plans, query_array(&f->build, results, 6)); /* grouped, */
    plan_group(f, plans, plan, 5);
    plan = plan_add(plans, query_variable(&f->build, 2)); /* groups made distinct, */
    plan_group(f, plans, plan, 1);
    plan->query.distinct = true;
    plan = plan_add(plans, queries_path(f, "b")); /* distinct, */
    plan->query.distinct = true;
    plan = plan_add(plans, queries_path(f, "b")); /* by itself, */
    plan->query.distinct = true;
    plan->query.order = &plans->by_b;
    plan->query.order_count = 1;
    plan = plan_add(plans, queries_path(f, "b")); /* and by something else */
    plan->query.distinct = true;
    plan->query.order = &plans->by_a;
    plan->query.order_count = 1;
}

/* Of plans that have to see all rows at once: without room on disk they need memory. */
static bool is_whole(const struct plans *plans, const struct query_plan *plan)
{
    return plan->query.distinct && (plan->query.key_count || plan->query.order == &plans->by_a);
}

static int spill_setup(void **state)
{
    struct queries *f;

    queries_setup(state);
    f = *state;
    documents_add(f);
    queries_open(f, &(struct test_space_options){.policy = queries_policies[1], .partitions = 4});
    queries_put(f);
    return 0;
}

static void spilled_rows_are_the_same_for_every_page_size(void **state)
{
    static const uint64_t pages[] = {1, 2, 3, 7, 64, 1000};
    struct queries *f = *state;
    struct plans plans;

    plans_make(f, &plans);
    for (size_t i = 0; i < plans.count; i++) {
        struct queries_rows *expected = queries_expect(f, &plans.list[i]);

        for (size_t j = 0; j < ARRAY_LEN(pages); j++) {
            struct faulty_disk disk;

            faulty_disk_init(&disk);
            CLEANUP(query_spill_free) struct query_spill *spill = faulty_disk_spill(&disk, 1 << 30);
            struct queries_how how = {
                .page = pages[j], .memory_max = 3000, .cached = true, .spill = spill};

            queries_same(queries_run(f, &plans.list[i], &how), expected);
            assert_true(how.spilled_bytes > 0);
            query_cache_free(TAKE(f->cache));
        }
    }
}

static void one_pass_suffices_where_the_rest_is_cached(void **state)
{
    struct queries *f = *state;
    struct faulty_disk disk;
    struct plans plans;

    plans_make(f, &plans);
    faulty_disk_init(&disk);
    CLEANUP(query_spill_free) struct query_spill *spill = faulty_disk_spill(&disk, 1 << 30);
    struct queries_how spilled = {.page = 50, .memory_max = 3000, .cached = true, .spill = spill};
    struct queries_how passes = {.page = 50, .memory_max = 3000, .cached = true};

    queries_same(queries_run(f, &plans.list[0], &spilled), queries_run(f, &plans.list[0], &passes));
    assert_int_equal(disk.files, 1);
    assert_int_equal(spilled.last.metrics.items_loaded, 0);
    assert_true(spilled.charge_cru < passes.charge_cru);
    assert_int_equal(passes.spilled_bytes, 0);
    query_cache_free(TAKE(f->cache));
}

static void lists_and_sets_keep_the_order_they_have_in_memory(void **state)
{
    struct queries *f = *state;
    struct query_group_key key = {queries_path(f, "pk"), 1};
    struct query_aggregate_call calls[] = {{QUERY_MAKE_LIST, queries_path(f, "id"), 2},
                                           {QUERY_MAKE_SET, queries_path(f, "n"), 3}};
    const struct query_expression *results[] = {
        query_variable(&f->build, 1), query_variable(&f->build, 2), query_variable(&f->build, 3)};
    struct query_plan plan = queries_plan(query_array(&f->build, results, 3), NULL);
    struct faulty_disk disk;

    plan.query.keys = &key;
    plan.query.key_count = 1;
    plan.query.aggregates = calls;
    plan.query.aggregate_count = 2;
    faulty_disk_init(&disk);
    CLEANUP(query_spill_free) struct query_spill *spill = faulty_disk_spill(&disk, 1 << 30);
    struct queries_how in_memory = {0}, spilled = {.memory_max = 10000, .spill = spill};

    queries_same(queries_run(f, &plan, &spilled), queries_run(f, &plan, &in_memory));
    assert_true(spilled.spilled_bytes > 0);
}

static void check_disk(struct queries *f, struct faulty_disk *disk, uint64_t bytes_max)
{
    CLEANUP(query_spill_free) struct query_spill *spill = faulty_disk_spill(disk, bytes_max);
    struct plans plans;

    plans_make(f, &plans);
    for (size_t i = 0; i < plans.count; i++) {
        struct queries_how how = {.page = 40, .memory_max = 6000, .cached = true, .spill = spill};

        disk->written = 0;
        if (is_whole(&plans, &plans.list[i]))
            continue;
        queries_same(queries_run(f, &plans.list[i], &how), queries_expect(f, &plans.list[i]));
        query_cache_free(TAKE(f->cache));
    }
}

static void a_disk_that_fails_changes_no_row(void **state)
{
    static const uint64_t full_at[] = {1, 3000, 10000, 20000, 30000};
    struct queries *f = *state;
    struct faulty_disk disk;

    faulty_disk_init(&disk);
    disk.cannot_open = true;
    check_disk(f, &disk, 1 << 30);
    for (size_t i = 0; i < ARRAY_LEN(full_at); i++) {
        faulty_disk_init(&disk);
        disk.full_at = full_at[i];
        check_disk(f, &disk, 1 << 30);
        faulty_disk_init(&disk);
        check_disk(f, &disk, full_at[i]);
    }
}

static void what_must_be_whole_is_refused_where_neither_memory_nor_disk_suffices(void **state)
{
    struct queries *f = *state;
    struct faulty_disk disk;
    struct plans plans;
    size_t refused = 0;

    plans_make(f, &plans);
    faulty_disk_init(&disk);
    CLEANUP(query_spill_free) struct query_spill *spill = faulty_disk_spill(&disk, 1000);
    for (size_t i = 0; i < plans.count; i++) {
        struct queries_rows rows = {.arena = f->arena};
        struct query_request request = {.space = &f->test.space,
                                        .limits = {.memory_max = 3000},
                                        .spill = spill,
                                        .order_unindexed = true,
                                        .arena = f->arena,
                                        .row = queries_row,
                                        .self = &rows};
        struct query_page page;
        struct error err;

        if (!is_whole(&plans, &plans.list[i]))
            continue;
        assert_fails(query_run(&plans.list[i], &request, &page, &err), &err, ERROR_QUERY_LIMIT);
        refused++;
    }
    assert_int_equal(refused, 2);
}

/* Parts one after the other: the order of threads makes no difference (run_spool_test.c). */
static void run_in_turn(void *self UNUSED, size_t count, void (*task)(void *context, size_t number),
                        void *context)
{
    for (size_t i = 0; i < count; i++)
        task(context, i);
}

static void parts_spill_each_to_a_file_of_its_own(void **state)
{
    static const struct query_executor executor = {.run = run_in_turn, .width = 3};
    struct queries *f = *state;
    struct plans plans;

    while (f->document_count < 2500) {
        char json[128];

        snprintf(json, sizeof json, "{\"id\":\"%zu\",\"pk\":%zu,\"a\":%zu,\"b\":%zu,\"n\":1}",
                 f->document_count, f->document_count, f->document_count * 7919 % 2503,
                 f->document_count % 700);
        queries_add(f, json);
    }
    queries_open(f, &(struct test_space_options){.policy = queries_policies[1], .partitions = 8});
    queries_put(f);
    plans_make(f, &plans);
    for (size_t i = 0; i < plans.count; i++) {
        struct faulty_disk disk;

        faulty_disk_init(&disk);
        CLEANUP(query_spill_free) struct query_spill *spill = faulty_disk_spill(&disk, 1 << 30);
        struct queries_how how = {.page = 900,
                                  .memory_max = 20000,
                                  .cached = true,
                                  .spill = spill,
                                  .executor = &executor};

        queries_same(queries_run(f, &plans.list[i], &how), queries_expect(f, &plans.list[i]));
        assert_true(disk.files >= 3);
        query_cache_free(TAKE(f->cache));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(spilled_rows_are_the_same_for_every_page_size, spill_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(one_pass_suffices_where_the_rest_is_cached, spill_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(lists_and_sets_keep_the_order_they_have_in_memory,
                                        spill_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(a_disk_that_fails_changes_no_row, spill_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(
            what_must_be_whole_is_refused_where_neither_memory_nor_disk_suffices, spill_setup,
            queries_teardown),
        cmocka_unit_test_setup_teardown(parts_spill_each_to_a_file_of_its_own, spill_setup,
                                        queries_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
