#include "query/spool/spill.h"

#include "query/spool/cache.h"
#include "support/check.h"
#include "support/faulty_disk.h"
#include "support/scratch.h"

#include <dirent.h>

/* Adds rows with the numbers from 0 in an order that goes back and forth. */
static void fill(struct query_spool *spool, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        int32_t number = (int32_t)((int64_t)i * 7919 % count);
        struct document_value value = document_int32(number);
        struct query_place place;
        struct query_spool_row *row;
        struct error err;
        char key[16];

        snprintf(key, sizeof key, "%06d", number);
        place = (struct query_place){.key = slice_of_text(key)};
        if (query_spool_wants(spool, &place))
            assert_ok(query_spool_add(spool, &place, SLICE_NONE, &value, false, &row, &err), &err);
    }
}

static void expect(struct query_spool *spool, int32_t from, int32_t to)
{
    struct query_spool_row *row;
    struct error err;

    for (int32_t i = from; i < to; i++) {
        assert_ok(query_spool_next(spool, &row, &err), &err);
        assert_non_null(row);
        assert_int_equal(row->value.int32, i);
    }
}

static struct query_spool *spool_on(struct query_spill *spill, size_t bytes_max)
{
    CLEANUP(query_spill_budget_unref)
    struct query_spill_budget *budget = query_spill_budget_new(spill);

    return query_spool_new(&(struct query_spool_options){
        .rows_max = UINT64_MAX, .bytes_max = bytes_max, .spill = budget});
}

static uint64_t bytes_on(const struct query_spill *spill)
{
    struct query_spill_metrics metrics;

    query_spill_metrics(spill, &metrics);
    return metrics.bytes;
}

static uint64_t failures_on(const struct query_spill *spill)
{
    struct query_spill_metrics metrics;

    query_spill_metrics(spill, &metrics);
    return metrics.failures;
}

static void rows_of_many_runs_come_in_order(void **state UNUSED)
{
    struct faulty_disk disk;
    struct query_spool_row *row;
    struct error err;

    faulty_disk_init(&disk);
    CLEANUP(query_spill_free) struct query_spill *spill = faulty_disk_spill(&disk, 1 << 30);
    CLEANUP(query_spool_free) struct query_spool *spool = spool_on(spill, 4000);

    disk.write_max = 777;
    fill(spool, 10007);
    assert_ok(query_spool_finish(spool, &err), &err);
    assert_false(query_spool_overflowed(spool));
    assert_int_equal(query_spool_count(spool), 0);
    expect(spool, 0, 10007);
    assert_ok(query_spool_next(spool, &row, &err), &err);
    assert_null(row);
    assert_int_equal(disk.files, 1);
    /* merged in levels: each row more than once, but not once for each run */
    assert_in_range(disk.written / (10007 * (uint64_t)60), 1, 12);
}

static void the_disk_is_given_back(void **state UNUSED)
{
    struct faulty_disk disk;
    struct query_spool *spool;
    struct error err;

    faulty_disk_init(&disk);
    CLEANUP(query_spill_free) struct query_spill *spill = faulty_disk_spill(&disk, 1 << 30);

    spool = spool_on(spill, 4000);
    fill(spool, 5003);
    assert_ok(query_spool_finish(spool, &err), &err);
    assert_in_range(bytes_on(spill), 1, disk.written / 2);
    assert_int_equal(query_spool_spilled(spool), bytes_on(spill));
    query_spool_free(spool);
    assert_int_equal(bytes_on(spill), 0);
    assert_int_equal(failures_on(spill), 0);
}

/* What is there stays good: the rows up to the bound are given, and it is said that there are more.
 */
static void check_overflow(struct faulty_disk *disk, uint64_t bytes_max)
{
    CLEANUP(query_spill_free) struct query_spill *spill = faulty_disk_spill(disk, bytes_max);
    CLEANUP(query_spool_free) struct query_spool *spool = spool_on(spill, 20000);
    int32_t given = 0;
    struct error err;
    bool more;

    fill(spool, 5003);
    assert_ok(query_spool_finish(spool, &err), &err);
    assert_true(query_spool_overflowed(spool));
    for (;; given++) {
        assert_ok(query_spool_has_more(spool, &more, &err), &err);
        if (!more)
            break;
        expect(spool, given, given + 1);
    }
    assert_in_range(given, 1, 5002);
    assert_int_equal(failures_on(spill), 1);
}

static void what_cannot_be_written_is_left_out(void **state UNUSED)
{
    struct faulty_disk disk;

    faulty_disk_init(&disk);
    disk.cannot_open = true;
    check_overflow(&disk, 1 << 30);
    faulty_disk_init(&disk);
    disk.full_at = 100000;
    check_overflow(&disk, 1 << 30);
    faulty_disk_init(&disk);
    disk.full_at = 1;
    check_overflow(&disk, 1 << 30);
    faulty_disk_init(&disk);
    check_overflow(&disk, 100000);
    check_overflow(&disk, 1);
}

static void what_cannot_be_read_back_is_an_error(void **state UNUSED)
{
    for (size_t until = 1; until < 40; until++) {
        struct faulty_disk disk;
        struct query_spool_row *row;
        struct error err;
        bool fine;

        faulty_disk_init(&disk);
        CLEANUP(query_spill_free) struct query_spill *spill = faulty_disk_spill(&disk, 1 << 30);
        CLEANUP(query_spool_free) struct query_spool *spool = spool_on(spill, 100000);

        fill(spool, 5003);
        disk.reads = 0;
        disk.reads_until = until;
        fine = query_spool_finish(spool, &err);
        for (int32_t i = 0; fine && i < 5003; i++)
            fine = query_spool_next(spool, &row, &err);
        if (disk.reads < until)
            break;
        assert_false(fine);
        assert_int_equal(err.code, ERROR_SPILL);
    }
}

static void queries_share_what_all_may_take(void **state UNUSED)
{
    struct faulty_disk disk;
    struct query_spill *spill;
    struct query_spool *first, *second;
    struct error err;

    faulty_disk_init(&disk);
    spill = query_spill_new(&(struct query_spill_options){
        .directory = "", .query_bytes_max = 1 << 20, .total_bytes_max = 1000000, .io = &disk.io});
    first = spool_on(spill, 50000);
    second = spool_on(spill, 50000);
    fill(first, 8009);
    fill(second, 8009);
    assert_ok(query_spool_finish(first, &err), &err);
    assert_ok(query_spool_finish(second, &err), &err);
    assert_false(query_spool_overflowed(first));
    assert_true(query_spool_overflowed(second));
    assert_true(bytes_on(spill) <= 1000000);
    expect(first, 0, 8009);
    query_spool_free(first);
    query_spool_free(second);
    query_spill_free(spill);
}

static void a_result_too_large_for_the_cache_waits_on_disk(void **state UNUSED)
{
    struct faulty_disk disk;
    uint64_t number;
    struct error err;

    faulty_disk_init(&disk);
    CLEANUP(query_spill_free) struct query_spill *spill = faulty_disk_spill(&disk, 1 << 30);
    CLEANUP(query_cache_free) struct query_cache *cache = query_cache_new(200000, UINT64_MAX);
    CLEANUP(query_spool_free) struct query_spool *spool = spool_on(spill, 1 << 30);

    fill(spool, 5003);
    assert_ok(query_spool_finish(spool, &err), &err);
    expect(spool, 0, 100);
    assert_int_equal(disk.written, 0);
    number = query_cache_put(cache, 1, TAKE(spool));
    assert_true(number != 0 && disk.written > 0);
    spool = query_cache_take(cache, 1, number);
    assert_non_null(spool);
    expect(spool, 100, 5003);
}

static void results_that_wait_on_disk_make_room_for_newer_ones(void **state UNUSED)
{
    struct faulty_disk disk;
    uint64_t numbers[3];
    struct query_spool *spool;
    struct error err;

    faulty_disk_init(&disk);
    CLEANUP(query_spill_free) struct query_spill *spill = faulty_disk_spill(&disk, 1 << 30);
    CLEANUP(query_cache_free) struct query_cache *cache = query_cache_new(1 << 24, 500000);

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        spool = spool_on(spill, 20000);
        fill(spool, 3001);
        assert_ok(query_spool_finish(spool, &err), &err);
        numbers[i] = query_cache_put(cache, 1, spool);
    }
    assert_null(query_cache_take(cache, 1, numbers[0]));
    assert_true(bytes_on(spill) <= 500000);
    spool = query_cache_take(cache, 1, numbers[2]);
    assert_non_null(spool);
    query_spool_free(spool);
}

static size_t entries_of(const char *path)
{
    DIR *directory = opendir(path);
    size_t count = 0;

    assert_non_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count - 2;
}

static void files_have_no_name(void **state UNUSED)
{
    CLEANUP(scratch_done) struct scratch scratch;
    struct error err;

    scratch_init(&scratch);
    CLEANUP(query_spill_free)
    struct query_spill *spill = query_spill_new(&(struct query_spill_options){
        .directory = scratch.path, .query_bytes_max = 1 << 30, .total_bytes_max = 1 << 30});
    CLEANUP(query_spool_free) struct query_spool *spool = spool_on(spill, 20000);

    fill(spool, 3001);
    assert_ok(query_spool_finish(spool, &err), &err);
    assert_true(bytes_on(spill) > 0);
    assert_int_equal(entries_of(scratch.path), 0);
    expect(spool, 0, 3001);
}

static void nothing_is_spilled_where_the_limit_is_0(void **state UNUSED)
{
    struct faulty_disk disk;

    faulty_disk_init(&disk);
    CLEANUP(query_spill_free) struct query_spill *spill = faulty_disk_spill(&disk, 0);

    assert_null(query_spill_budget_new(spill));
    assert_null(query_spill_budget_new(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_many_runs_come_in_order),
        cmocka_unit_test(the_disk_is_given_back),
        cmocka_unit_test(what_cannot_be_written_is_left_out),
        cmocka_unit_test(what_cannot_be_read_back_is_an_error),
        cmocka_unit_test(queries_share_what_all_may_take),
        cmocka_unit_test(a_result_too_large_for_the_cache_waits_on_disk),
        cmocka_unit_test(results_that_wait_on_disk_make_room_for_newer_ones),
        cmocka_unit_test(files_have_no_name),
        cmocka_unit_test(nothing_is_spilled_where_the_limit_is_0),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
