#include "advise/advise.h"

#include "support/check.h"
#include "support/documents.h"

enum { ITEMS = 2000, ITEM_BYTES = 500 };

/* Orders of customers, found by customer and, so many of a hundred, by e-mail address; so many
 * writes for each hundred queries. */
static struct advise_workload *orders(struct arena *arena, uint32_t by_email, uint32_t writes)
{
    struct advise_workload *workload = advise_workload_new();
    int64_t at = 1700000000000;

    for (uint32_t i = 0; i < ITEMS; i++) {
        struct slice item = document_of(
            arena, arena_text(arena, arena_printf(arena,
                                                  "{\"id\":\"o%u\",\"tenant\":\"t%u\",\"email\":"
                                                  "\"e%u@x\",\"tags\":[\"a\"],\"n\":%u}",
                                                  i, i % 997, i % 613, i % 10)));

        advise_workload_item(workload, item, ITEM_BYTES, at + i);
    }
    for (uint32_t i = 0; i < ITEMS; i++) {
        bool email = i * 37 % 100 < by_email;
        struct slice where = document_of(
            arena, arena_text(arena, arena_printf(arena, "{\"%s\":\"%s%u%s\"}",
                                                  email ? "/email" : "/tenant", email ? "e" : "t",
                                                  i * 7 % (email ? 613 : 997), email ? "@x" : "")));

        advise_workload_operation(
            workload, &(struct advise_operation_parts){.kind = ADVISE_QUERY,
                                                       .time_ms = at + i * 10,
                                                       .cru = email ? 280 + 15 * 230 : 280,
                                                       .bytes = 500,
                                                       .where = where});
        if (i * 53 % 100 < writes)
            advise_workload_operation(
                workload,
                &(struct advise_operation_parts){
                    .kind = ADVISE_CREATE,
                    .time_ms = at + i * 10,
                    .cru = 700,
                    .bytes = ITEM_BYTES,
                    .item = document_of(
                        arena, arena_text(arena, arena_printf(arena,
                                                              "{\"id\":\"n%u\",\"tenant\":\"t%u\","
                                                              "\"email\":\"e%u@x\"}",
                                                              i, i % 997, i % 613)))});
    }
    advise_workload_finish(workload);
    return workload;
}

static struct advise_report report_of(const struct advise_workload *workload,
                                      const struct advise_view *views, size_t view_count,
                                      struct arena *arena)
{
    struct advise_key tenant = {.kind = ADVISE_PROPERTY, .path_count = 1};
    struct advise_options options = {
        .current = &tenant,
        .current_partitions = 16,
        .target = {.database = SLICE("shop"), .container = SLICE("orders")},
        .views = views,
        .view_count = view_count};

    tenant.paths[0] = (uint8_t)advise_workload_path(workload, SLICE("/tenant"));
    return advise_report_make(workload, &options, arena);
}

static void a_property_that_the_key_does_not_serve_gets_an_index_table(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(advise_workload_free) struct advise_workload *workload = orders(arena, 40, 20);
    struct advise_report report = report_of(workload, NULL, 0, arena);
    const struct advise_table *table;
    struct document_value value;
    struct slice definition;

    assert_int_equal(report.table_count, 1);
    table = &report.tables[0];
    assert_slice_equal(table->name, SLICE("/email"));
    assert_null(table->view.data);
    /* 800 queries of 2,400 operations, 34.5 RU less each, and 400 writes of 7 RU, in 20 seconds */
    assert_true(table->queries > 0.32 && table->queries < 0.34);
    assert_true(table->saved_ru > 1350 && table->saved_ru < 1410);
    assert_true(table->cost_ru > 135 && table->cost_ru < 145);
    assert_true(table->bytes == ITEMS * ITEM_BYTES);
    definition = document_of(arena, arena_text(arena, table->definition));
    assert_true(document_find(definition, SLICE("id"), &value));
    assert_slice_equal(value.text, SLICE("orders-by-email"));
    assert_true(document_find(definition, SLICE("materializedViewDefinition"), &value));
}

static void what_costs_more_than_it_saves_is_not_proposed(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(advise_workload_free) struct advise_workload *rare = orders(arena, 2, 100);
    CLEANUP(advise_workload_free) struct advise_workload *none = orders(arena, 0, 20);

    assert_int_equal(report_of(rare, NULL, 0, arena).table_count, 0);
    assert_int_equal(report_of(none, NULL, 0, arena).table_count, 0);
}

static void a_view_that_is_there_is_named_and_not_proposed_again(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(advise_workload_free) struct advise_workload *workload = orders(arena, 40, 20);
    const struct advise_view views[] = {{SLICE("by-n"), SLICE("/n")},
                                        {SLICE("by-email"), SLICE("/email")},
                                        {SLICE("gone"), SLICE("/gone")}};
    struct advise_report report = report_of(workload, views, ARRAY_LEN(views), arena);
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    assert_int_equal(report.table_count, 1);
    assert_slice_equal(report.tables[0].view, SLICE("by-email"));
    assert_true(report.tables[0].saved_ru > 1350);
    assert_null(report.tables[0].definition.data);
    advise_report_text(workload, &report, &text);
    buf_append_byte(&text, '\0');
    assert_non_null(strstr((const char *)text.data, "Index table there is, by /email"));
    buf_clear(&text);
    advise_report_json(workload, &report, &text);
    assert_true(document_count(document_of(arena, arena_text(arena, buf_slice(&text)))) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_property_that_the_key_does_not_serve_gets_an_index_table),
        cmocka_unit_test(what_costs_more_than_it_saves_is_not_proposed),
        cmocka_unit_test(a_view_that_is_there_is_named_and_not_proposed_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
