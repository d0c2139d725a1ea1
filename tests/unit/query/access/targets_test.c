#include "query/access/access.h"

#include "partition/synthetic.h"
#include "support/queries.h"

#define JOINED "{\"kind\":\"concatenation\",\"target\":\"/pk\",\"sources\":[\"/a\",\"/b\"]}"
#define RANDOM "{\"kind\":\"randomSuffix\",\"target\":\"/pk\",\"base\":\"/a\",\"suffixes\":40}"
#define COMPUTED                                                                                   \
    "{\"kind\":\"computedSuffix\",\"target\":\"/pk\",\"base\":\"/a\",\"hashed\":\"/b\","           \
    "\"suffixes\":40}"

/* The targets of a filter in a container with such a key. */
static struct query_targets targets_of(struct queries *f, const char *synthetic,
                                       const struct query_expression *filter)
{
    struct query_plan plan = queries_plan(queries_path(f, "id"), filter);
    struct query_conditions conditions;
    struct query_request request;

    queries_open(f, &(struct test_space_options){.synthetic = synthetic, .partitions = 4});
    conditions = query_conditions_find(&plan, DOCUMENT_ORDER_SQL, f->arena);
    request = (struct query_request){.space = &f->test.space};
    return query_targets_find(&request, &conditions, f->arena);
}

static bool is_logical(struct queries *f, const struct query_target *target, const char *key)
{
    struct partition_key named = test_space_key(&f->test, key);

    return slice_equal(target->logical, item_logical(&f->test.definition.key, &named, f->arena));
}

static const struct query_expression *both(struct queries *f)
{
    return query_and(&f->build, queries_compare(f, "a", QUERY_EQUAL, "\"x\""),
                     queries_compare(f, "b", QUERY_EQUAL, "7"));
}

static void all_sources_lead_to_one_logical_partition(void **state)
{
    struct queries *f = *state;
    struct query_targets targets = targets_of(f, JOINED, both(f));

    assert_int_equal(targets.count, 1);
    assert_true(is_logical(f, &targets.list[0], "[\"x-7\"]"));
    assert_int_equal(targets.conjuncts, 0); /* 7 and "7" give the same key */
    targets = targets_of(f, COMPUTED, both(f));
    assert_int_equal(targets.count, 1);
    assert_true(is_logical(f, &targets.list[0], "[\"x\",7]"));
}

static void a_base_leads_to_its_suffixes_and_no_further(void **state)
{
    struct queries *f = *state;
    static const char *const kinds[] = {RANDOM, COMPUTED};

    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        struct query_targets targets =
            targets_of(f, kinds[k], queries_compare(f, "a", QUERY_EQUAL, "\"x\""));

        assert_int_equal(targets.count, 40);
        for (size_t i = 0; i < targets.count; i++)
            assert_true(targets.list[i].logical.len > 0);
        for (size_t i = 1; i < targets.count; i++)
            assert_true(slice_compare(targets.list[i - 1].range.max, targets.list[i].range.min) <=
                        0);
    }
}

static void less_than_the_sources_leads_everywhere(void **state)
{
    struct queries *f = *state;
    const struct {
        const char *synthetic;
        const struct query_expression *filter;
    } samples[] = {
        {JOINED, queries_compare(f, "a", QUERY_EQUAL, "\"x\"")},
        {COMPUTED, queries_compare(f, "b", QUERY_EQUAL, "7")},
        {RANDOM, queries_compare(f, "a", QUERY_GREATER, "\"x\"")},
    };

    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        struct query_targets targets = targets_of(f, samples[i].synthetic, samples[i].filter);

        assert_int_equal(targets.count, 1);
        assert_int_equal(targets.list[0].logical.len, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_sources_lead_to_one_logical_partition, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(a_base_leads_to_its_suffixes_and_no_further, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(less_than_the_sources_leads_everywhere, queries_setup,
                                        queries_teardown),
    };

    return cmocka_run_group_tests_name("query/access/targets", tests, NULL, NULL);
}
