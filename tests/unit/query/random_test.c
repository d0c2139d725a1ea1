#include "support/faulty_disk.h"
#include "support/queries.h"

static const struct query_expression *random_filter(struct queries *f, struct random *random,
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
        return query_call(&f->build, query_function_find(SLICE("ARRAY_CONTAINS")),
                          (const struct query_expression *[]){queries_path(f, name),
                                                              query_constant(&f->build, constant)},
                          2);
    return query_compare(&f->build, (enum query_comparison)random_below(random, 6),
                         queries_path(f, name), query_constant(&f->build, constant));
}

static struct slice random_document(struct queries *f, struct random *random, size_t number)
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

/* Three ways to keep the same items: in one partition, hashed into many, and by ranges of id. */
static struct test_space_options random_space(size_t nth)
{
    struct test_space_options options = {.policy = queries_policies[nth / 3], .partitions = 1};

    if (nth % 3 == 1)
        options.partitions = 16;
    if (nth % 3 == 2)
        options = (struct test_space_options){.paths = {"/id"},
                                              .policy = options.policy,
                                              .partitions = 6,
                                              .bounds = {"1", "104", "2", "5", "77"}};
    return options;
}

static void random_filters_do_not_depend_on_index_or_partitions(void **state)
{
    struct queries *f = *state;
    struct random random;

    random_seed(&random, 5);
    for (size_t i = 0; i < 120; i++)
        f->documents[f->document_count++] = random_document(f, &random, i);
    for (size_t p = 0; p < 3 * QUERIES_POLICIES; p++) {
        struct test_space_options options = random_space(p);

        queries_open(f, &options);
        queries_put(f);
        for (size_t round = 0; round < 150; round++) {
            struct query_plan plan =
                queries_plan(queries_path(f, "id"), random_filter(f, &random, 2));

            f->build.nodes = 0;
            queries_check_set(f, &plan);
        }
    }
    assert_true(f->short_count > 100); /* loops could have made these */
}

/* The key, 0 and -0 alike, for either may stand for the group; and how many there are. */
static const struct query_expression *group_select(struct queries *f)
{
    const struct query_expression *key = query_variable(&f->build, 1);
    const struct query_expression *zero = queries_value(f, "0");

    key = query_coalesce(&f->build,
                         query_conditional(&f->build,
                                           query_compare(&f->build, QUERY_EQUAL, key, zero), zero,
                                           query_constant(&f->build, document_undefined())),
                         key);
    return query_object(&f->build, (struct slice[]){SLICE("b"), SLICE("n")},
                        (const struct query_expression *[]){key, query_variable(&f->build, 2)}, 2);
}

static void check_random_aggregates(struct queries *f, struct random *random)
{
    static const enum query_aggregate_kind kinds[] = {QUERY_COUNT, QUERY_MIN, QUERY_MAX, QUERY_SUM,
                                                      QUERY_AVG};
    static const char *const names[] = {"a", "b", "id", "pk", "long", "missing"};

    for (size_t i = 0; i < ARRAY_LEN(kinds) * ARRAY_LEN(names); i++) {
        const struct query_expression *argument = queries_path(f, names[i / ARRAY_LEN(kinds)]);
        struct query_aggregate_call call = {kinds[i % ARRAY_LEN(kinds)], argument, 2};
        struct query_plan plan = queries_plan(
            query_array(&f->build,
                        (const struct query_expression *[]){query_variable(&f->build, 2)}, 1),
            NULL);
        struct queries_how how = {0};

        plan.query.aggregates = &call;
        plan.query.aggregate_count = 1;
        queries_same(queries_run(f, &plan, &how), queries_expect(f, &plan));
        plan.query.filter = random_filter(f, random, 0);
        queries_same(queries_run(f, &plan, &how), queries_expect(f, &plan));
        plan.query.filter =
            query_compare(&f->build, QUERY_GREATER, argument, queries_value(f, "1"));
        queries_same(queries_run(f, &plan, &how), queries_expect(f, &plan));
        plan.query.aggregate_count = 0;
        plan.query.distinct = true;
        plan.query.select = argument;
        queries_same_numbers(queries_run(f, &plan, &how), queries_expect(f, &plan));
    }
}

/* Rows in order are the same but for ties; so order by something that has none. */
static void random_orders_groups_and_sets_do_not_either(void **state)
{
    struct queries *f = *state;
    struct faulty_disk disk;
    struct random random;

    faulty_disk_init(&disk);
    CLEANUP(query_spill_free) struct query_spill *spill = faulty_disk_spill(&disk, 1 << 30);
    random_seed(&random, 6);
    for (size_t i = 0; i < 80; i++)
        f->documents[f->document_count++] = random_document(f, &random, i);
    for (size_t p = 0; p < 3 * QUERIES_POLICIES; p++) {
        struct test_space_options options = random_space(p);

        queries_open(f, &options);
        queries_put(f);
        check_random_aggregates(f, &random);
        for (size_t round = 0; round < 60; round++) {
            struct query_order order = {queries_path(f, "id"), random_below(&random, 2)};
            struct query_group_key key = {queries_path(f, "b"), 1};
            struct query_aggregate_call call = {QUERY_COUNT, queries_value(f, "1"), 2};
            struct query_plan plan = queries_plan(queries_path(f, "id"), NULL);
            struct queries_how how = {.cached = random_below(&random, 2),
                                      .memory_max = random_below(&random, 2) ? 4000 : 0,
                                      .spill = random_below(&random, 2) ? spill : NULL};

            disk.written = 0;
            disk.full_at = random_below(&random, 2) ? 1 + random_below(&random, 10000) : 0;
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
                plan.query.select = queries_path(f, "pk");
                plan.query.distinct = true;
                break;
            }
            plan.query.offset = random_below(&random, 4);
            if (random_below(&random, 2))
                plan.query.limit = 1 + random_below(&random, 20);
            f->build.nodes = 0;
            queries_same(queries_run(f, &plan, &how), queries_expect(f, &plan));
        }
    }
    assert_true(disk.files > 20);
    query_cache_free(TAKE(f->cache));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_filters_do_not_depend_on_index_or_partitions,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(random_orders_groups_and_sets_do_not_either, queries_setup,
                                        queries_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
