#include "item/operation.h"
#include "query/expression/imply.h"
#include "query/run/members.h"
#include "support/queries.h"

static const struct query_expression *exists_tag(struct queries *f, const char *tag)
{
    struct query_source source = {QUERY_SOURCE_EACH, queries_path(f, "tags"), NULL, 3};
    struct query_subquery inner = {.sources = &source,
                                   .source_count = 1,
                                   .filter = query_compare(&f->build, QUERY_EQUAL,
                                                           query_variable(&f->build, 3),
                                                           queries_value(f, tag)),
                                   .select = queries_value(f, "1"),
                                   .limit = UINT64_MAX};

    return query_subquery(&f->build, QUERY_EXISTS, query_subquery_new(&f->build, &inner));
}

static void filters_give_the_same_rows_with_and_without_an_index(void **state)
{
    struct queries *f = *state;
    const struct query_expression *filters[] = {
        queries_compare(f, "a", QUERY_EQUAL, "3"),
        queries_compare(f, "b", QUERY_GREATER, "31"),
        queries_compare(f, "b", QUERY_LESS_EQUAL, "8"),
        queries_compare(f, "a", QUERY_NOT_EQUAL, "3"),
        queries_compare(f, "c", QUERY_GREATER_EQUAL, "\"t1\""),
        query_between(&f->build, queries_path(f, "b"), queries_value(f, "10"),
                      queries_value(f, "20")),
        query_in(&f->build, queries_path(f, "a"),
                 (const struct query_expression *[]){queries_value(f, "1"), queries_value(f, "4"),
                                                     queries_value(f, "\"x\"")},
                 3),
        query_and(&f->build, queries_compare(f, "a", QUERY_EQUAL, "2"),
                  queries_compare(f, "c", QUERY_EQUAL, "\"t1\"")),
        query_or(&f->build, queries_compare(f, "a", QUERY_EQUAL, "2"),
                 queries_compare(f, "a", QUERY_EQUAL, "0")),
        query_or(&f->build, queries_compare(f, "a", QUERY_EQUAL, "2"),
                 queries_compare(f, "b", QUERY_EQUAL, "0")),
        query_call(
            &f->build, query_function_find(SLICE("ARRAY_CONTAINS")),
            (const struct query_expression *[]){queries_path(f, "tags"), queries_value(f, "2")}, 2),
        query_call(
            &f->build, query_function_find(SLICE("STARTSWITH")),
            (const struct query_expression *[]){queries_path(f, "id"), queries_value(f, "\"i01\"")},
            2),
        query_like(&f->build, queries_path(f, "id"), queries_value(f, "\"i_2%\""), NULL),
        query_like(&f->build, queries_path(f, "id"), queries_value(f, "\"i0%5\""), NULL),
        queries_compare(f, "pk", QUERY_EQUAL, "\"p3\""),
        query_and(&f->build, queries_compare(f, "pk", QUERY_EQUAL, "\"p3\""),
                  queries_compare(f, "a", QUERY_GREATER, "1")),
        query_and(&f->build, queries_compare(f, "pk", QUERY_EQUAL, "\"p3\""),
                  queries_compare(f, "id", QUERY_EQUAL, "\"i003\"")),
        query_in(&f->build, queries_path(f, "pk"),
                 (const struct query_expression *[]){queries_value(f, "\"p1\""),
                                                     queries_value(f, "\"p6\""),
                                                     queries_value(f, "\"none\"")},
                 3),
        queries_compare(f, "missing", QUERY_EQUAL, "1"),
        query_call(&f->build, query_function_find(SLICE("ARRAY_CONTAINS")),
                   (const struct query_expression *[]){queries_value(f, "[\"p1\",\"p5\"]"),
                                                       queries_path(f, "pk")},
                   2),
        query_call(&f->build, query_function_find(SLICE("IS_BOOL")),
                   (const struct query_expression *[]){queries_path(f, "pk")}, 1),
        exists_tag(f, "2"),
        query_and(&f->build, exists_tag(f, "2"), exists_tag(f, "3")),
        queries_value(f, "false"),
    };

    queries_add_numbered(f, 60);
    for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
        struct query_plan plan = queries_plan(queries_path(f, "id"), filters[i]);

        queries_everywhere(f, queries_check_set, &plan);
    }
}

static void counting_reads_no_items_where_the_index_says_all(void **state)
{
    struct queries *f = *state;
    struct query_aggregate_call call = {QUERY_COUNT, queries_value(f, "1"), 1};
    struct query_plan plan = queries_plan(query_variable(&f->build, 1), NULL);
    struct queries_how how = {0};

    plan.query.aggregates = &call;
    plan.query.aggregate_count = 1;
    queries_add_numbered(f, 60);
    queries_open(f, &(struct test_space_options){.partitions = 4});
    queries_put(f);
    queries_are(queries_run(f, &plan, &how), "60");
    assert_int_equal(how.last.metrics.items_loaded, 0);
    assert_int_equal(how.last.metrics.index_entries, 0);
    plan.query.filter = queries_compare(f, "a", QUERY_GREATER_EQUAL, "3");
    queries_are(queries_run(f, &plan, &how), "24");
    assert_int_equal(how.last.metrics.items_loaded, 0);
}

static void id_and_key_together_are_one_lookup(void **state)
{
    struct queries *f = *state;
    struct query_plan plan =
        queries_plan(queries_path(f, "b"),
                     query_and(&f->build, queries_compare(f, "id", QUERY_EQUAL, "\"i010\""),
                               queries_compare(f, "pk", QUERY_EQUAL, "\"p3\"")));
    struct queries_how how = {.explain_has = "\"kind\":\"point\""};

    queries_add_numbered(f, 21);
    queries_open(f, &(struct test_space_options){.partitions = 4});
    queries_put(f);
    queries_are(queries_run(f, &plan, &how), "10");
    assert_true(how.charge_cru <= 280);
}

static void the_same_page_costs_the_same(void **state)
{
    struct queries *f = *state;
    struct query_plan plan =
        queries_plan(queries_path(f, "id"), queries_compare(f, "a", QUERY_GREATER, "1"));
    struct queries_how first = {.page = 1000}, again = {.page = 1000}, small = {.page = 3};

    queries_add_numbered(f, 200);
    queries_open(f, &(struct test_space_options){.partitions = 4});
    queries_put(f);
    (void)queries_run(f, &plan, &first);
    (void)queries_run(f, &plan, &again);
    (void)queries_run(f, &plan, &small);
    assert_int_equal(first.charge_cru, again.charge_cru);
    assert_true(small.charge_cru < 2 * first.charge_cru);
}

static void many_keys_cost_one_lookup_each(void **state)
{
    struct queries *f = *state;
    const struct query_expression *keys[7];
    struct query_plan plan;
    struct queries_how how = {.page = 100};

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        char json[16];

        snprintf(json, sizeof json, "\"p%zu\"", i);
        keys[i] = queries_value(f, json);
    }
    plan = queries_plan(queries_path(f, "id"),
                        query_in(&f->build, queries_path(f, "pk"), keys, ARRAY_LEN(keys)));
    queries_add_numbered(f, 40);
    for (size_t i = 0; i < QUERIES_POLICIES; i++) {
        queries_open(f, &(struct test_space_options){.policy = queries_policies[i]});
        queries_put(f);
        queries_same_set(queries_run(f, &plan, &how), queries_expect(f, &plan));
        assert_true(how.last.metrics.index_lookups <= ARRAY_LEN(keys));
        assert_int_equal(how.last.metrics.items_loaded, 40);
    }
}

static void counting_one_key_reads_nothing(void **state)
{
    struct queries *f = *state;
    struct query_aggregate_call call = {QUERY_COUNT, queries_value(f, "1"), 1};
    struct query_plan plan =
        queries_plan(query_variable(&f->build, 1), queries_compare(f, "pk", QUERY_EQUAL, "\"p3\""));
    struct queries_how how = {0};

    plan.query.aggregates = &call;
    plan.query.aggregate_count = 1;
    queries_add_numbered(f, 40);
    queries_open(f, &(struct test_space_options){.partitions = 4});
    queries_put(f);
    queries_are(queries_run(f, &plan, &how), "6");
    assert_int_equal(how.last.metrics.items_loaded + how.last.metrics.index_entries, 0);
}

static void exists_over_an_array_goes_by_its_index(void **state)
{
    struct queries *f = *state;
    struct query_plan plan = queries_plan(queries_path(f, "id"), exists_tag(f, "2"));
    struct queries_how how = {.explain_has = "\"path\":\"/tags/[]/?\""};

    queries_add_numbered(f, 20);
    queries_open(f, &(struct test_space_options){0});
    queries_put(f);
    queries_same_set(queries_run(f, &plan, &how), queries_expect(f, &plan));
}

static void two_frequent_values_are_intersected(void **state)
{
    struct queries *f = *state;
    struct query_plan plan = queries_plan(
        queries_path(f, "id"), query_and(&f->build, queries_compare(f, "x", QUERY_EQUAL, "1"),
                                         queries_compare(f, "y", QUERY_EQUAL, "1")));
    struct queries_how how = {.explain_has = "intersectedWith"};

    for (size_t i = 0; i < 1200; i++) {
        char json[128];

        snprintf(json, sizeof json, "{\"id\":\"%zu\",\"pk\":%zu,\"x\":%d,\"y\":%d}", i, i % 9,
                 i % 2 == 0, i % 3 == 0);
        queries_add(f, json);
    }
    for (size_t i = 0; i < 2; i++) {
        queries_open(f, &(struct test_space_options){.partitions = i ? 2 : 1});
        queries_put(f);
        queries_same_set(queries_run(f, &plan, &how), queries_expect(f, &plan));
        assert_int_equal(how.last.metrics.items_loaded <= 3, true);
    }
}

/* 3,000 documents: x of every second, y of every third, w of every fifth; z of none of these but
 * the last one; b rises. */
static void frequent_put(struct queries *f, unsigned partitions)
{
    for (size_t i = 0; i < 3000 && f->document_count < 3000; i++) {
        char json[160];

        snprintf(json, sizeof json,
                 "{\"id\":\"%zu\",\"pk\":%zu,\"x\":%d,\"y\":%d,\"w\":%d,\"b\":%zu%s}", i, i % 9,
                 i % 2 == 0, i % 3 == 0, i % 5 == 0, i, i == 2999 ? ",\"z\":1" : "");
        queries_add(f, json);
    }
    queries_open(f, &(struct test_space_options){.partitions = partitions});
    queries_put(f);
}

static const struct query_expression *is_one(struct queries *f, const char *name)
{
    return queries_compare(f, name, QUERY_EQUAL, "1");
}

/* What any of several has is intersected with a frequent value, member by member. */
static void unions_are_intersected_with_a_frequent_value(void **state)
{
    struct queries *f = *state;
    struct query_plan plan = queries_plan(
        queries_path(f, "id"),
        query_and(&f->build, query_or(&f->build, is_one(f, "w"), is_one(f, "z")), is_one(f, "x")));

    plan.query.filter = query_and(&f->build, plan.query.filter, is_one(f, "y"));
    for (unsigned partitions = 1; partitions <= 2; partitions++) {
        struct queries_how how = {.explain_has = "intersectedWith"};

        /* 100 of 3,000 are all of it; of two of them 300 at most */
        frequent_put(f, partitions);
        queries_same_set(queries_run(f, &plan, &how), queries_expect(f, &plan));
        how = (struct queries_how){.page = 1000};
        queries_same_set(queries_run(f, &plan, &how), queries_expect(f, &plan));
        assert_in_range(how.last.metrics.items_loaded, 100, 300);
    }
}

/* More entries than are counted at first, of all indexes: the one with fewer is still found. */
static void ranges_that_lead_to_fewer_items_are_taken(void **state)
{
    struct queries *f = *state;
    const struct query_expression *few =
        query_or(&f->build, queries_compare(f, "b", QUERY_LESS, "280"),
                 queries_compare(f, "z", QUERY_GREATER, "1"));
    struct query_plan plans[] = {
        queries_plan(queries_path(f, "id"), query_and(&f->build, few, is_one(f, "x"))),
        queries_plan(queries_path(f, "id"),
                     query_and(&f->build, queries_compare(f, "b", QUERY_LESS, "280"),
                               queries_compare(f, "x", QUERY_GREATER, "0"))),
    };

    frequent_put(f, 1);
    for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
        struct queries_how how = {.page = 1000};

        queries_same_set(queries_run(f, &plans[i], &how), queries_expect(f, &plans[i]));
        assert_in_range(how.last.metrics.items_loaded, 140, 280);
        how = (struct queries_how){.page = 7};
        queries_same_set(queries_run(f, &plans[i], &how), queries_expect(f, &plans[i]));
    }
}

static struct query_plan counting(struct queries *f, struct query_aggregate_call *call,
                                  const struct query_expression *filter)
{
    struct query_plan plan = queries_plan(query_variable(&f->build, 1), filter);

    *call = (struct query_aggregate_call){QUERY_COUNT, queries_value(f, "1"), 1};
    plan.query.aggregates = call;
    plan.query.aggregate_count = 1;
    return plan;
}

static void counts_of_several_values_read_no_items(void **state)
{
    struct queries *f = *state;
    struct query_aggregate_call call;
    const struct query_expression *any = query_or(&f->build, is_one(f, "w"), is_one(f, "z"));
    struct query_plan plan = counting(
        f, &call, query_and(&f->build, any, query_and(&f->build, is_one(f, "x"), is_one(f, "y"))));

    for (unsigned partitions = 1; partitions <= 2; partitions++) {
        struct queries_how how = {0};

        frequent_put(f, partitions);
        queries_are(queries_run(f, &plan, &how), "100");
        assert_int_equal(how.last.metrics.items_loaded, 0);
        /* no more than a few times what the shortest list has, which is 601 */
        assert_true(how.last.metrics.index_entries < 8 * 601);
    }
}

/* --- What is not there -------------------------------------------------------------------------
 */

static bool no_y_evaluate(const struct query_expression *expression, struct query_context *context,
                          struct document_value *ret_value, struct error *err)
{
    struct document_value y;
    int64_t number;

    if (!query_evaluate(expression->children[0], context, &y, err))
        return false;
    *ret_value = document_bool(!document_to_int64(&y, &number) || number != 1);
    return true;
}

static const struct query_implied *no_y_imply(const struct query_expression *expression,
                                              const struct query_implying *implying, bool truth)
{
    static const struct document_value one = {.type = DOCUMENT_INT32, .int32 = 1};
    struct query_operand y = query_operand_of(implying, expression->children[0]);

    return truth ? query_implied_absent(implying, &y, &one, 1)
                 : query_implied_points(implying, &y, &one, 1);
}

static const struct query_kind no_y_kind = {"no y", no_y_evaluate, QUERY_STABLE, no_y_imply};

static void counts_without_a_value_read_no_items(void **state)
{
    struct queries *f = *state;
    const struct query_expression *y = queries_path(f, "y");
    const struct query_expression *no_y =
        query_node(&f->build, &no_y_kind, sizeof(struct query_expression), &y, 1);
    const struct query_expression *filters[] = {
        query_and(&f->build, is_one(f, "x"), no_y),
        query_and(&f->build, query_or(&f->build, is_one(f, "w"), is_one(f, "z")), no_y),
        query_and(&f->build, query_or(&f->build, is_one(f, "w"), is_one(f, "z")),
                  query_and(&f->build, no_y, is_one(f, "x"))),
    };
    static const char *const counts[] = {"1000", "401", "200"};

    for (unsigned partitions = 1; partitions <= 2; partitions++) {
        frequent_put(f, partitions);
        for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
            struct query_aggregate_call call;
            struct query_plan plan = counting(f, &call, filters[i]),
                              rows = queries_plan(queries_path(f, "id"), filters[i]);
            struct queries_how how = {.explain_has = "without"};

            queries_are(queries_run(f, &plan, &how), counts[i]);
            assert_int_equal(how.last.metrics.items_loaded, 0);
            how = (struct queries_how){0};
            queries_same_set(queries_run(f, &rows, &how), queries_expect(f, &rows));
        }
    }
}

static void explanations_name_the_index_that_is_missing(void **state)
{
    struct queries *f = *state;
    struct query_plan plan =
        queries_plan(queries_path(f, "id"), queries_compare(f, "b", QUERY_EQUAL, "3"));
    struct queries_how how = {
        .explain_has = "\"advice\":[{\"kind\":\"single\",\"path\":\"/b/?\",\"itemsSpared\":9,"};

    queries_add_numbered(f, 10);
    queries_open(f, &(struct test_space_options){.policy = queries_policies[2]});
    queries_put(f);
    (void)queries_run(f, &plan, &how);
}

static void explanations_advise_composite_indexes_and_orders(void **state)
{
    struct queries *f = *state;
    struct query_order order = {queries_path(f, "c"), false};
    struct query_plan plan = queries_plan(
        queries_path(f, "id"), query_and(&f->build, queries_compare(f, "b", QUERY_GREATER, "5"),
                                         queries_compare(f, "a", QUERY_EQUAL, "1")));
    struct queries_how how = {.page = 100,
                              .explain_has = "{\"kind\":\"composite\",\"paths\":[\"/a/?\","
                                             "\"/b/?\"],\"itemsSpared\":1,"};

    queries_add_numbered(f, 20);
    queries_open(f, &(struct test_space_options){0});
    queries_put(f);
    (void)queries_run(f, &plan, &how);
    plan.query.filter = NULL;
    plan.query.order = &order;
    plan.query.order_count = 1;
    queries_open(f, &(struct test_space_options){.policy = queries_policies[2]});
    queries_put(f);
    how.explain_has = "{\"kind\":\"order\",\"path\":\"/c/?\",\"itemsSpared\":0,";
    (void)queries_run(f, &plan, &how);
}

static void document_write(struct queries *f, enum item_verb verb, struct slice document)
{
    struct document_value id;
    struct error err;

    assert_true(document_find(document, SLICE("id"), &id));
    assert_ok(item_operation_run(&(struct item_operation){.space = &f->test.space,
                                                          .arena = f->arena,
                                                          .verb = verb,
                                                          .key = partition_key_extract(
                                                              &f->test.definition.key, document),
                                                          .id = id,
                                                          .document = document},
                                 &err),
              &err);
}

static int number_of(struct slice document, const char *name)
{
    struct document_value value;
    int64_t number;

    assert_true(document_find(document, slice_of_text(name), &value));
    assert_true(document_to_int64(&value, &number));
    return (int)number;
}

/* Of some documents x, y and w become what they were not; one is made anew, and so has another
 * number. */
static void numbers_turn(struct queries *f, size_t from)
{
    for (size_t i = from; i < from + 20; i++) {
        struct slice *document = &f->documents[(i * 31) % 2999];
        struct document_value id;
        char json[200];

        assert_true(document_find(*document, SLICE("id"), &id));
        snprintf(json, sizeof json,
                 "{\"id\":\"%.*s\",\"pk\":%d,\"x\":%d,\"y\":%d,\"w\":%d,\"b\":%d}",
                 (int)id.text.len, (const char *)id.text.data, number_of(*document, "pk"),
                 !number_of(*document, "x"), !number_of(*document, "y"), !number_of(*document, "w"),
                 number_of(*document, "b"));
        if (i == from)
            document_write(f, ITEM_DELETE, *document);
        *document = document_of(f->arena, json);
        document_write(f, ITEM_UPSERT, *document);
    }
}

/* w or z, and x, without y. */
static struct query_plan no_y_plan(struct queries *f, struct query_aggregate_call *call)
{
    const struct query_expression *y = queries_path(f, "y");
    const struct query_expression *no_y =
        query_node(&f->build, &no_y_kind, sizeof(struct query_expression), &y, 1);

    return counting(f, call,
                    query_and(&f->build, query_or(&f->build, is_one(f, "w"), is_one(f, "z")),
                              query_and(&f->build, no_y, is_one(f, "x"))));
}

/* Whether items have a value is asked of the store, or known from queries before; and of what was
 * written since it is asked again. Rows and charges are the same. */
static void what_intersections_were_told_changes_no_row_and_no_charge(void **state)
{
    struct queries *f = *state;
    struct query_aggregate_call call;
    struct query_plan plan = no_y_plan(f, &call);

    for (unsigned partitions = 1; partitions <= 2; partitions++) {
        CLEANUP(query_members_free) struct query_members *members = query_members_new(1 << 20);

        frequent_put(f, partitions);
        for (size_t round = 0; round < 6; round++) {
            struct queries_how asked = {0}, first = {.members = members},
                               again = {.members = members};
            const char *expected = queries_run(f, &plan, &asked)->texts[0];

            queries_are(queries_run(f, &plan, &first), expected);
            queries_are(queries_run(f, &plan, &again), expected);
            assert_int_equal(first.charge_cru, asked.charge_cru);
            assert_int_equal(again.charge_cru, asked.charge_cru);
            assert_int_equal(again.last.metrics.index_entries, asked.last.metrics.index_entries);
            assert_true(query_members_bytes(members) > 0);
            queries_same_set(queries_run(f, &plan, &again), queries_expect(f, &plan));
            numbers_turn(f, round * 7);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(unions_are_intersected_with_a_frequent_value, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(ranges_that_lead_to_fewer_items_are_taken, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(counts_of_several_values_read_no_items, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(counts_without_a_value_read_no_items, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(what_intersections_were_told_changes_no_row_and_no_charge,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(explanations_advise_composite_indexes_and_orders,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(many_keys_cost_one_lookup_each, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(counting_one_key_reads_nothing, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(filters_give_the_same_rows_with_and_without_an_index,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(counting_reads_no_items_where_the_index_says_all,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(id_and_key_together_are_one_lookup, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(the_same_page_costs_the_same, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(exists_over_an_array_goes_by_its_index, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(two_frequent_values_are_intersected, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(explanations_name_the_index_that_is_missing, queries_setup,
                                        queries_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
