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
    struct traffic_wish wish =
        traffic_wants(traffic, container, &(struct traffic_attempt){.now_ms = now_ms});

    if (wish.weight)
        traffic_note(traffic, container, &wish, &parts);
    return wish.weight > 0;
}

/* An attempt at an operation; wait_ms 0: it is carried out. */
static void attempt(struct traffic *traffic, struct arena *arena, uint64_t ticket, int64_t now_ms,
                    int64_t wait_ms)
{
    struct advise_operation_parts parts = {.kind = ADVISE_CREATE,
                                           .cru = wait_ms ? 0 : 700,
                                           .bytes = 100,
                                           .failed = wait_ms > 0,
                                           .due_ms = now_ms + wait_ms,
                                           .item = document_of(arena, "{\"id\":\"a\"}")};
    struct traffic_wish wish = traffic_wants(
        traffic, 7,
        &(struct traffic_attempt){
            .ticket = ticket, .now_ms = now_ms, .refused = wait_ms > 0, .wait_ms = wait_ms});

    if (wish.weight)
        traffic_note(traffic, 7, &wish, &parts);
}

static const struct advise_operation *read_back(struct traffic *traffic,
                                                struct advise_workload *workload, size_t *ret_count)
{
    (void)traffic_read(traffic, 7, workload);
    advise_workload_finish(workload);
    return advise_workload_operations(workload, ret_count);
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
    assert_true(recorded <= 80 + 10 * 10); /* the first second was not known to be a rush */
    (void)traffic_read(traffic, 7, workload);
    advise_workload_finish(workload);
    (void)advise_workload_operations(workload, &count);
    assert_int_equal(count, recorded);
    assert_true(advise_workload_operations_seen(workload) > 10700);
    assert_true(advise_workload_operations_seen(workload) < 11300);
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

static void attempts_of_one_operation_are_one_record(void **state)
{
    CLEANUP(traffic_free) struct traffic *traffic = traffic_new(NULL);
    CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
    const struct advise_operation *operations;
    size_t count;

    assert_false(traffic_awaits(traffic, 7, 1000));
    attempt(traffic, *state, 11, 1000, 400);
    assert_true(traffic_awaits(traffic, 7, 1001));
    attempt(traffic, *state, 11, 1400, 300);
    attempt(traffic, *state, 11, 1710, 0);
    operations = read_back(traffic, workload, &count);
    assert_int_equal(count, 1);
    assert_int_equal(operations[0].time_ms, 1000);
    assert_int_equal(operations[0].refused, 2);
    assert_int_equal(operations[0].cru, 700);
    assert_false(operations[0].failed);
}

static void who_comes_too_early_or_late_wants_something_else(void **state)
{
    CLEANUP(traffic_free) struct traffic *traffic = traffic_new(NULL);
    CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
    const struct advise_operation *operations;
    size_t count;

    attempt(traffic, *state, 11, 1000, 400);
    attempt(traffic, *state, 11, 1100, 0);  /* the same item, by somebody else */
    attempt(traffic, *state, 11, 20000, 0); /* nobody waits that long */
    attempt(traffic, *state, 12, 20001, 0);
    operations = read_back(traffic, workload, &count);
    assert_int_equal(count, 4);
    assert_true(operations[0].failed);
    assert_int_equal(operations[0].refused, 1);
    assert_int_equal(operations[0].due_ms, 1400);
    assert_int_equal(operations[0].cru, 700); /* as the others of its kind */
    assert_false(operations[1].failed);
}

/* A retry of what was left out is left out, and one of what was recorded is not counted again. */
static void retries_do_not_change_how_many_operations_there_were(void **state)
{
    CLEANUP(traffic_free)
    struct traffic *traffic = traffic_new(&(struct traffic_options){.per_second_max = 10});
    CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
    const struct advise_operation *operations;
    size_t count;
    double refused = 0;

    for (uint64_t second = 0; second < 20; second++)
        for (uint64_t i = 0; i < 400; i++) {
            uint64_t ticket = ((second * 400 + i) * UINT64_C(0x9E3779B97F4A7C15)) | 1;

            attempt(traffic, *state, ticket, (int64_t)(second * 1000 + i), 500);
            attempt(traffic, *state, ticket, (int64_t)(second * 1000 + i + 500), 0);
        }
    operations = read_back(traffic, workload, &count);
    for (size_t i = 0; i < count; i++)
        refused += operations[i].refused * operations[i].weight;
    assert_true(advise_workload_operations_seen(workload) > 7700);
    assert_true(advise_workload_operations_seen(workload) < 8300);
    assert_true(refused > 7700 && refused < 8300);
}

static void a_transaction_is_recorded_whole_or_not_at_all(void **state)
{
    CLEANUP(traffic_free)
    struct traffic *traffic = traffic_new(&(struct traffic_options){.per_second_max = 10});
    size_t whole = 0;

    for (int i = 0; i < 1000; i++) {
        uint32_t weight = TRAFFIC_UNDECIDED, weights[3];

        for (int k = 0; k < 3; k++)
            weights[k] =
                traffic_wants(traffic, 7,
                              &(struct traffic_attempt){.now_ms = i * 5, .weight = &weight})
                    .weight;
        assert_int_equal(weights[0], weights[1]);
        assert_int_equal(weights[0], weights[2]);
        whole += weights[0] > 0;
    }
    assert_true(whole > 10 && whole < 200);
    (void)state;
}

static void no_more_refusals_are_kept_than_there_is_room_for(void **state)
{
    CLEANUP(traffic_free)
    struct traffic *traffic = traffic_new(&(struct traffic_options){.per_second_max = 10});

    for (uint64_t i = 0; i < 100000; i++)
        attempt(traffic, *state, (i * UINT64_C(0x9E3779B97F4A7C15)) | 1, 1000, 1000);
    attempt(traffic, *state, 1, 2500, 0);
    traffic_forget(traffic, 7);
    assert_false(traffic_awaits(traffic, 7, 2500));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_recorded_is_a_workload),
        cmocka_unit_test(hashed_values_say_nothing_but_stay_equal),
        cmocka_unit_test(a_rush_is_sampled_and_still_counts_whole),
        cmocka_unit_test(memory_is_bounded_and_the_last_stay),
        cmocka_unit_test(the_container_longest_unused_makes_way),
        cmocka_unit_test(attempts_of_one_operation_are_one_record),
        cmocka_unit_test(who_comes_too_early_or_late_wants_something_else),
        cmocka_unit_test(retries_do_not_change_how_many_operations_there_were),
        cmocka_unit_test(a_transaction_is_recorded_whole_or_not_at_all),
        cmocka_unit_test(no_more_refusals_are_kept_than_there_is_room_for),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
