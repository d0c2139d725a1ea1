#include "throughput/cost.h"

#include "support/check.h"

enum { KB = 1024 };

/* Within a tolerance in hundredths of an RU. */
static void assert_about(int64_t got_cru, int64_t expected_cru, int64_t tolerance_cru)
{
    if (got_cru < expected_cru - tolerance_cru || got_cru > expected_cru + tolerance_cru)
        fail_msg("%lld, not %lld +- %lld", (long long)got_cru, (long long)expected_cru,
                 (long long)tolerance_cru);
}

static int64_t insert(uint64_t bytes, uint64_t entries)
{
    return cost_write(
        &(struct cost_write){.puts = true, .new_bytes = bytes, .index_puts = entries});
}

static void reads_cost_as_published(void **state UNUSED)
{
    assert_int_equal(cost_read(KB, false), 100);
    assert_int_equal(cost_read(100 * KB, false), 1000);
    assert_int_equal(cost_read(0, false), 100); /* a miss */
    assert_int_equal(cost_read(KB, true), 200);
    assert_int_equal(cost_read(100 * KB, true), 2000);
    assert_about(cost_read(50 * KB, false), 550, 10); /* close to linear between */
}

static void writes_without_an_index_cost_as_published(void **state UNUSED)
{
    int64_t one = insert(KB, 0);

    assert_true(one >= 529 && one <= 550);
    assert_int_equal(insert(100 * KB, 0), 5000);
}

static void an_indexed_property_costs_a_fraction(void **state UNUSED)
{
    int64_t each = insert(KB, 1) - insert(KB, 0);

    assert_true(each >= 20 && each <= 40);
    assert_about(insert(KB, 12), 1000, 50); /* ten properties, id and _ts */
}

static void a_replace_costs_about_two_inserts_and_a_delete_about_one(void **state UNUSED)
{
    struct cost_write replace = {.removes = true,
                                 .puts = true,
                                 .old_bytes = KB,
                                 .new_bytes = KB,
                                 .index_puts = 12,
                                 .index_deletes = 12};
    struct cost_write delete = {.removes = true, .old_bytes = KB, .index_deletes = 12};

    assert_about(cost_write(&replace), 2 * insert(KB, 12), 10);
    assert_about(cost_write(&delete), insert(KB, 12), 10);
}

static void a_replace_pays_only_for_the_entries_it_touches(void **state UNUSED)
{
    struct cost_write all = {true, true, KB, KB, 12, 12};
    struct cost_write one = {true, true, KB, KB, 1, 1};

    assert_int_equal(cost_write(&all) - cost_write(&one), 22 * 38);
}

static void a_refused_write_costs_what_it_read(void **state UNUSED)
{
    assert_int_equal(cost_write_refused(0), 100);
    assert_int_equal(cost_write_refused(100 * KB), cost_read(100 * KB, false));
}

static void a_query_costs_at_least_its_partitions(void **state UNUSED)
{
    int64_t empty = cost_query(&(struct cost_query){.partitions_begun = 1});
    struct cost_query one = {.partitions_begun = 1,
                             .index_lookups = 1,
                             .index_entries = 1,
                             .items_loaded = 1,
                             .loaded_bytes = KB,
                             .output_bytes = KB};

    assert_true(empty >= 230 && empty <= 280);
    assert_true(cost_query(&one) > empty && cost_query(&one) <= 280);
    assert_int_equal(cost_query(&(struct cost_query){.partitions_begun = 7}), 7 * empty);
    one.strong = true;
    assert_about(cost_query(&one), 2 * 264, 1);
}

static void a_thousand_items_cost_35_to_60_in_one_page_or_many(void **state UNUSED)
{
    struct cost_query whole = {.partitions_begun = 1,
                               .index_entries = 1000,
                               .items_loaded = 1000,
                               .loaded_bytes = 1000 * KB,
                               .output_bytes = 1000 * KB};
    int64_t one_page = cost_query(&whole);
    int64_t pages = 0;

    assert_true(one_page >= 3500 && one_page <= 6000);
    for (int i = 0; i < 10; i++)
        pages = cost_add(pages, cost_query(&(struct cost_query){.partitions_begun = i == 0,
                                                                .partitions_resumed = i > 0,
                                                                .index_entries = 100,
                                                                .items_loaded = 100,
                                                                .loaded_bytes = 100 * KB,
                                                                .output_bytes = 100 * KB}));
    assert_about(pages, one_page, one_page * 3 / 100);
}

static void a_page_is_never_free(void **state UNUSED)
{
    assert_true(cost_query(&(struct cost_query){0}) > 0);
    assert_int_equal(cost_feed(0, 0), 100);
}

static void metadata_costs_1_to_5(void **state UNUSED)
{
    assert_int_equal(cost_metadata(COST_METADATA_READ), 100);
    assert_int_equal(cost_metadata(COST_METADATA_LIST), 200);
    assert_int_equal(cost_metadata(COST_METADATA_WRITE), 500);
}

static void a_script_costs_more_the_more_it_calls(void **state UNUSED)
{
    assert_int_equal(cost_script(0, 0), 100);
    assert_int_equal(cost_script(10, 0) - cost_script(0, 0), 50);
    assert_int_equal(cost_script(0, 10 * KB) - cost_script(0, 0), 100);
}

static void more_work_never_costs_less(void **state UNUSED)
{
    int64_t read = 0, write = 0;

    for (uint64_t bytes = 0; bytes < 2 * KB * KB; bytes += 997) {
        assert_true(cost_read(bytes, false) >= read);
        assert_true(insert(bytes, 3) >= write);
        read = cost_read(bytes, false);
        write = insert(bytes, 3);
    }
}

static void extreme_inputs_saturate(void **state UNUSED)
{
    struct cost_write write = {true, true, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    struct cost_query query = {UINT32_MAX, UINT32_MAX, UINT64_MAX, UINT64_MAX,
                               UINT64_MAX, UINT64_MAX, UINT64_MAX, true};

    assert_true(cost_write(&write) == COST_MAX_CRU);
    assert_true(cost_query(&query) == COST_MAX_CRU);
    assert_true(cost_script(UINT64_MAX, UINT64_MAX) == COST_MAX_CRU);
    assert_true(cost_read(UINT64_MAX, true) <= COST_MAX_CRU);
    assert_true(cost_add(COST_MAX_CRU, COST_MAX_CRU) == COST_MAX_CRU);
}

static void evaluation_is_paid_above_what_comes_with_the_page(void **state UNUSED)
{
    struct cost_query page = {.partitions_begun = 1};

    assert_int_equal(cost_work_surplus(&page, 20000), 0);
    assert_int_equal(cost_work_surplus(&page, 21000), 1000);
    assert_int_equal(cost_work(20000), 0);
    assert_int_equal(cost_work(21000), 10); /* a tenth of an RU for a thousand */
    page.items_loaded = 10;
    page.loaded_bytes = 10 * 1024;
    page.index_entries = 10;
    assert_int_equal(cost_work_surplus(&page, 35120), 0);
    assert_int_equal(cost_work_surplus(&page, 35121), 1);
    page.work = 1000000;
    assert_true(cost_query(&page) > 10000);
    assert_int_equal(cost_work_surplus(&page, UINT64_MAX), UINT64_MAX - 35120);
    assert_true(cost_work(UINT64_MAX) == COST_MAX_CRU);
}

static void a_charge_is_shown_with_two_decimals(void **state UNUSED)
{
    char text[COST_TEXT_SIZE];

    cost_text(629, text);
    assert_string_equal(text, "6.29");
    cost_text(100, text);
    assert_string_equal(text, "1.00");
    cost_text(5, text);
    assert_string_equal(text, "0.05");
    cost_text(COST_MAX_CRU, text);
    assert_string_equal(text, "10000000000000.00");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_cost_as_published),
        cmocka_unit_test(writes_without_an_index_cost_as_published),
        cmocka_unit_test(an_indexed_property_costs_a_fraction),
        cmocka_unit_test(a_replace_costs_about_two_inserts_and_a_delete_about_one),
        cmocka_unit_test(a_replace_pays_only_for_the_entries_it_touches),
        cmocka_unit_test(a_refused_write_costs_what_it_read),
        cmocka_unit_test(a_query_costs_at_least_its_partitions),
        cmocka_unit_test(a_thousand_items_cost_35_to_60_in_one_page_or_many),
        cmocka_unit_test(a_page_is_never_free),
        cmocka_unit_test(metadata_costs_1_to_5),
        cmocka_unit_test(a_script_costs_more_the_more_it_calls),
        cmocka_unit_test(more_work_never_costs_less),
        cmocka_unit_test(extreme_inputs_saturate),
        cmocka_unit_test(evaluation_is_paid_above_what_comes_with_the_page),
        cmocka_unit_test(a_charge_is_shown_with_two_decimals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
