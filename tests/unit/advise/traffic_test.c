#include "advise/traffic.h"

#include "support/check.h"
#include "support/documents.h"

static int setup(void **state)
{
    *state = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

static bool ask(struct traffic *traffic, struct arena *arena, uint64_t container, int64_t now_ms,
                const char *item)
{
    struct advise_operation_parts parts = {.kind = ADVISE_CREATE,
                                           .time_ms = now_ms,
                                           .cru = 629,
                                           .bytes = 100,
                                           .item = document_of(arena, item)};
    uint32_t weight = traffic_wants(traffic, container, now_ms);

    if (weight)
        traffic_note(traffic, container, weight, &parts);
    return weight > 0;
}

static size_t lines_of(struct traffic *traffic, uint64_t container, struct buf *out)
{
    size_t lines = 0;

    traffic_lines(traffic, container, SIZE_MAX, out);
    for (size_t i = 0; i < out->len; i++)
        lines += out->data[i] == '\n';
    return lines;
}

static void what_is_recorded_is_a_workload(void **state)
{
    CLEANUP(traffic_free) struct traffic *traffic = traffic_new(NULL);
    CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
    const struct advise_operation *operations;
    const struct document_value *value;
    size_t count;

    assert_true(ask(traffic, *state, 7, 1000, "{\"id\":\"a\",\"x\":{\"y\":\"Ulm\"},\"l\":[1]}"));
    assert_int_equal(traffic_read(traffic, 7, workload), 1);
    traffic_item(traffic, workload, document_of(*state, "{\"id\":\"a\",\"x\":{\"y\":\"Ulm\"}}"), 10,
                 1);
    advise_workload_finish(workload);
    operations = advise_workload_operations(workload, &count);
    assert_int_equal(operations[0].cru, 629);
    assert_int_equal(operations[0].time_ms, 1000);
    value = advise_workload_value(
        workload, operations[0].values[advise_workload_path(workload, SLICE("/x/y"))]);
    assert_slice_equal(value->text, SLICE("Ulm"));
    assert_int_equal(advise_workload_items(workload, &count)[0].values[0], operations[0].values[0]);
}

static void hashed_values_say_nothing_but_stay_equal(void **state)
{
    CLEANUP(traffic_free)
    struct traffic *traffic = traffic_new(&(struct traffic_options){.hashed = true});
    CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
    CLEANUP(buf_done) struct buf lines;
    size_t count;

    buf_init(&lines, BUF_DEFAULT_MAX);
    assert_true(ask(traffic, *state, 7, 1000, "{\"id\":\"secret\"}"));
    assert_int_equal(lines_of(traffic, 7, &lines), 1);
    buf_append_byte(&lines, 0);
    assert_null(strstr((const char *)lines.data, "secret"));
    (void)traffic_read(traffic, 7, workload);
    traffic_item(traffic, workload, document_of(*state, "{\"id\":\"secret\"}"), 10, 1);
    advise_workload_finish(workload);
    assert_int_equal(advise_workload_items(workload, &count)[0].values[0],
                     advise_workload_operations(workload, &count)[0].values[0]);
}

static void a_rush_is_sampled_and_still_counts_whole(void **state)
{
    CLEANUP(traffic_free)
    struct traffic *traffic = traffic_new(&(struct traffic_options){.per_second_max = 10});
    CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
    size_t recorded = 0, count;

    for (int second = 0; second < 11; second++)
        for (int i = 0; i < 1000; i++)
            recorded += ask(traffic, *state, 7, second * 1000, "{\"id\":\"a\"}");
    assert_true(recorded <= 40 + 10 * 10);
    (void)traffic_read(traffic, 7, workload);
    advise_workload_finish(workload);
    (void)advise_workload_operations(workload, &count);
    assert_int_equal(count, recorded);
    assert_true(advise_workload_operations_seen(workload) > 9000);
    assert_true(advise_workload_operations_seen(workload) < 12000);
}

static void memory_is_bounded_and_the_last_stay(void **state)
{
    CLEANUP(traffic_free)
    struct traffic *traffic =
        traffic_new(&(struct traffic_options){.bytes_max = 2000, .per_second_max = 10000});
    CLEANUP(buf_done) struct buf lines;
    char item[64];

    buf_init(&lines, BUF_DEFAULT_MAX);
    for (int i = 0; i < 500; i++) {
        (void)snprintf(item, sizeof item, "{\"id\":\"i%d\"}", i);
        assert_true(ask(traffic, *state, 7, i, item));
    }
    assert_true(lines_of(traffic, 7, &lines) < 40);
    buf_append_byte(&lines, 0);
    assert_non_null(strstr((const char *)lines.data, "i499"));
    assert_null(strstr((const char *)lines.data, "\"i0\""));
}

static void the_container_longest_unused_makes_way(void **state)
{
    CLEANUP(traffic_free)
    struct traffic *traffic = traffic_new(&(struct traffic_options){.containers_max = 2});
    CLEANUP(buf_done) struct buf lines;

    buf_init(&lines, BUF_DEFAULT_MAX);
    assert_true(ask(traffic, *state, 1, 1000, "{\"id\":\"a\"}"));
    assert_true(ask(traffic, *state, 2, 2000, "{\"id\":\"a\"}"));
    assert_true(ask(traffic, *state, 1, 3000, "{\"id\":\"a\"}"));
    assert_false(ask(traffic, *state, 3, 4000, "{\"id\":\"a\"}")); /* both are in use */
    assert_true(ask(traffic, *state, 3, 12500, "{\"id\":\"a\"}"));
    assert_int_equal(lines_of(traffic, 2, &lines), 0);
    assert_int_equal(lines_of(traffic, 1, &lines), 2);
    traffic_forget(traffic, 1);
    buf_clear(&lines);
    assert_int_equal(lines_of(traffic, 1, &lines), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_recorded_is_a_workload),
        cmocka_unit_test(hashed_values_say_nothing_but_stay_equal),
        cmocka_unit_test(a_rush_is_sampled_and_still_counts_whole),
        cmocka_unit_test(memory_is_bounded_and_the_last_stay),
        cmocka_unit_test(the_container_longest_unused_makes_way),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
