#include "advise/records.h"

#include "document/bson.h"
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

/* Reads, one in each millisecond, four in a transaction. */
static void make(struct arena *arena, int count, bool transactions, struct buf *out)
{
    buf_init(out, BUF_DEFAULT_MAX);
    for (int i = 0; i < count; i++) {
        struct slice json = arena_printf(
            arena, "{\"t\":%d,\"op\":\"read\",\"where\":{\"/id\":\"%d\"},\"weight\":2%s%d\"}", i, i,
            transactions ? ",\"transaction\":\"t" : ",\"other\":\"t", i / 4);

        buf_append_slice(out, document_of(arena, arena_text(arena, json)));
    }
}

static int64_t member_of(struct slice record, struct slice name)
{
    struct document_value value;
    int64_t number = 0;

    assert_true(document_find(record, name, &value) && document_to_int64(&value, &number));
    return number;
}

static void a_transaction_is_thinned_whole_or_not_at_all(void **state)
{
    CLEANUP(buf_done) struct buf all;
    CLEANUP(buf_done) struct buf thin;
    size_t count = 0;

    make(*state, 400, true, &all);
    buf_init(&thin, BUF_DEFAULT_MAX);
    records_thin(buf_slice(&all), 2, &thin);
    for (struct slice rest = buf_slice(&thin); rest.len; count++) {
        struct slice record = records_next(&rest);

        assert_int_equal(member_of(record, SLICE("t")) % 4, count % 4);
        assert_int_equal(member_of(record, SLICE("weight")), 8);
    }
    assert_in_range(count, 40, 200);
}

static void what_is_thinned_counts_as_much(void **state)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
    CLEANUP(buf_done) struct buf all;
    CLEANUP(buf_done) struct buf thin;

    make(*state, 400, false, &all);
    buf_init(&thin, BUF_DEFAULT_MAX);
    records_thin(buf_slice(&all), 3, &thin);
    assert_int_equal(records_read(buf_slice(&thin), workload), 50);
    assert_int_equal(advise_workload_operations_seen(workload), 800);
}

static void records_are_cut_by_time_and_by_number(void **state)
{
    CLEANUP(buf_done) struct buf all;
    CLEANUP(buf_done) struct buf before;
    CLEANUP(buf_done) struct buf lines;
    size_t count = 0;

    make(*state, 20, false, &all);
    buf_init(&before, BUF_DEFAULT_MAX);
    buf_init(&lines, BUF_DEFAULT_MAX);
    records_before(buf_slice(&all), 7, &before);
    for (struct slice rest = buf_slice(&before); rest.len; count++)
        assert_int_equal(member_of(records_next(&rest), SLICE("t")), count);
    assert_int_equal(count, 7);
    records_lines(buf_slice(&all), 2, &lines);
    assert_true(slice_starts_with(buf_slice(&lines), SLICE("{\"t\":18,")));
}

static void what_is_cut_off_is_noticed(void **state)
{
    CLEANUP(buf_done) struct buf all;

    make(*state, 3, false, &all);
    assert_true(records_are_whole(buf_slice(&all)));
    assert_true(records_are_whole(SLICE_NONE));
    for (size_t cut = 1; cut < 20; cut++)
        assert_false(records_are_whole(slice_first(buf_slice(&all), all.len - cut)));
    assert_false(records_are_whole(SLICE("\0\0\0\0\0")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transaction_is_thinned_whole_or_not_at_all),
        cmocka_unit_test(what_is_thinned_counts_as_much),
        cmocka_unit_test(records_are_cut_by_time_and_by_number),
        cmocka_unit_test(what_is_cut_off_is_noticed),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
