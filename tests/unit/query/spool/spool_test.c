#include "query/spool/spool.h"

#include "query/spool/cache.h"
#include "support/check.h"

static void add(struct query_spool *spool, const char *key, int32_t number)
{
    struct query_place place = {.key = slice_of_text(key), .number = (uint64_t)number};
    struct document_value value = document_int32(number);
    struct query_spool_row *row;
    struct error err;

    if (query_spool_wants(spool, &place))
        assert_ok(query_spool_add(spool, &place, SLICE_NONE, &value, false, &row, &err), &err);
}

static void finish(struct query_spool *spool)
{
    struct error err;

    assert_ok(query_spool_finish(spool, &err), &err);
}

enum { NONE = -1 };

static int32_t next(struct query_spool *spool)
{
    struct query_spool_row *row;
    struct error err;

    assert_ok(query_spool_next(spool, &row, &err), &err);
    return row ? row->value.int32 : NONE;
}

static bool has_more(struct query_spool *spool)
{
    struct error err;
    bool more;

    assert_ok(query_spool_has_more(spool, &more, &err), &err);
    return more;
}

static void rows_come_in_the_order_of_their_places(void **state UNUSED)
{
    CLEANUP(query_spool_free)
    struct query_spool *spool =
        query_spool_new(&(struct query_spool_options){.rows_max = UINT64_MAX});

    add(spool, "c", 1);
    add(spool, "a", 3);
    add(spool, "a", 2);
    finish(spool);
    assert_int_equal(next(spool), 2);
    assert_int_equal(next(spool), 3);
    assert_true(has_more(spool));
    assert_int_equal(next(spool), 1);
    assert_int_equal(next(spool), NONE);
    assert_false(query_spool_overflowed(spool));
}

static void a_full_spool_keeps_the_smallest_and_says_so(void **state UNUSED)
{
    CLEANUP(query_spool_free)
    struct query_spool *spool =
        query_spool_new(&(struct query_spool_options){.rows_max = UINT64_MAX, .bytes_max = 4000});

    for (int32_t i = 0; i < 1000; i++) {
        char key[8];

        snprintf(key, sizeof key, "%04d", (i * 7919) % 1000);
        add(spool, key, (i * 7919) % 1000);
    }
    finish(spool);
    assert_true(query_spool_overflowed(spool));
    assert_true(query_spool_bytes(spool) <= 4000 && query_spool_count(spool) > 5);
    for (int32_t i = 0; has_more(spool); i++)
        assert_int_equal(next(spool), i);
}

static void no_more_rows_are_kept_than_will_be_asked_for(void **state UNUSED)
{
    CLEANUP(query_spool_free)
    struct query_spool *spool = query_spool_new(&(struct query_spool_options){.rows_max = 3});

    for (int32_t i = 5000; i > 0; i--) {
        char key[8];

        snprintf(key, sizeof key, "%04d", i);
        add(spool, key, i);
    }
    finish(spool);
    assert_true(query_spool_count(spool) < 1000);
    assert_false(query_spool_overflowed(spool));
    assert_int_equal(next(spool), 1);
}

static void an_identity_moves_to_its_smallest_place(void **state UNUSED)
{
    CLEANUP(query_spool_free)
    struct query_spool *spool =
        query_spool_new(&(struct query_spool_options){.rows_max = UINT64_MAX, .identities = true});
    struct query_place late = {.key = SLICE("z")}, early = {.key = SLICE("a")};
    struct document_value value = document_int32(1), other = document_int32(2);
    struct query_spool_row *row;
    struct error err;

    assert_ok(query_spool_add(spool, &late, SLICE("x"), &value, false, &row, &err), &err);
    assert_ptr_equal(query_spool_find(spool, SLICE("x")), row);
    assert_ok(query_spool_add(spool, &(struct query_place){.key = SLICE("m")}, SLICE("y"), &other,
                              false, &row, &err),
              &err);
    assert_ok(
        query_spool_move(spool, query_spool_find(spool, SLICE("x")), &early, &value, false, &err),
        &err);
    finish(spool);
    assert_int_equal(next(spool), 1);
    assert_int_equal(next(spool), 2);
    assert_int_equal(next(spool), NONE);
}

static void what_must_be_whole_is_refused_when_it_does_not_fit(void **state UNUSED)
{
    CLEANUP(query_spool_free)
    struct query_spool *spool = query_spool_new(
        &(struct query_spool_options){.rows_max = UINT64_MAX, .bytes_max = 600, .whole = true});
    struct query_place place = {.key = SLICE("a")};
    struct document_value value = document_int32(1);
    struct query_spool_row *row;
    struct error err;
    bool added = true;

    for (int i = 0; i < 10 && added; i++)
        added = query_spool_add(spool, &place, SLICE_NONE, &value, false, &row, &err);
    assert_false(added);
    assert_int_equal(err.code, ERROR_QUERY_LIMIT);
}

static struct query_spool *small_spool(void)
{
    struct query_spool *spool =
        query_spool_new(&(struct query_spool_options){.rows_max = UINT64_MAX});

    add(spool, "a", 1);
    finish(spool);
    return spool;
}

static void a_result_is_taken_once_and_only_by_its_query(void **state UNUSED)
{
    CLEANUP(query_cache_free) struct query_cache *cache = query_cache_new(100000, 0);
    uint64_t number = query_cache_put(cache, 7, small_spool());
    struct query_spool *spool;

    assert_true(number != 0);
    assert_null(query_cache_take(cache, 8, number));
    assert_null(query_cache_take(cache, 7, number + 1));
    spool = query_cache_take(cache, 7, number);
    assert_non_null(spool);
    query_spool_free(spool);
    assert_null(query_cache_take(cache, 7, number));
}

static void the_oldest_result_makes_room(void **state UNUSED)
{
    struct query_spool *first = small_spool();
    CLEANUP(query_cache_free)
    struct query_cache *cache = query_cache_new(3 * query_spool_bytes(first), 0);
    uint64_t oldest = query_cache_put(cache, 1, first), last = 0;
    struct query_spool *spool;

    for (int i = 0; i < 3; i++)
        last = query_cache_put(cache, 1, small_spool());
    assert_null(query_cache_take(cache, 1, oldest));
    spool = query_cache_take(cache, 1, last);
    assert_non_null(spool);
    query_spool_free(spool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_in_the_order_of_their_places),
        cmocka_unit_test(a_full_spool_keeps_the_smallest_and_says_so),
        cmocka_unit_test(no_more_rows_are_kept_than_will_be_asked_for),
        cmocka_unit_test(an_identity_moves_to_its_smallest_place),
        cmocka_unit_test(what_must_be_whole_is_refused_when_it_does_not_fit),
        cmocka_unit_test(a_result_is_taken_once_and_only_by_its_query),
        cmocka_unit_test(the_oldest_result_makes_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
