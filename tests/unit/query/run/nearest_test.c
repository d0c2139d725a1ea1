/* The most alike entries of a span: the best first, more where rows want more, and all in the end.
 */
#include "query/run/nearest.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "support/check.h"

enum { ENTRIES = 30000 };

/* Entries of one dimension: entry i is at i * 7919 modulo ENTRIES, far from 0 by that. */
static double place_of(uint64_t i)
{
    return (double)(i * 7919 % ENTRIES);
}

struct fixture {
    struct index_vector index;
    struct query_nearest nearest;
    struct query_near *near;
};

static void fixture_open(struct fixture *f, uint64_t wanted, bool filtered)
{
    static const float zero[] = {0};

    f->index = (struct index_vector){.vectors = {SEARCH_FLOAT32, SEARCH_EUCLIDEAN, 1}};
    f->nearest = (struct query_nearest){.asked = search_asked_of(zero, &f->index.vectors),
                                        .index = &f->index,
                                        .wanted = wanted,
                                        .first = filtered ? 4 * wanted : wanted,
                                        .filtered = filtered};
    f->near = query_near_new(&f->nearest);
}

/* Walks all entries; how many were given at once. */
static uint64_t walk(struct fixture *f)
{
    uint64_t given = 0;

    for (uint64_t i = 0; i < ENTRIES; i++) {
        uint8_t value[2 + 8 + 4] = {0};
        struct cursor_hit hit = {.value = slice_of(value, sizeof value), .number = i + 1};
        float place = (float)place_of(i);
        uint8_t key[8];
        bool now;

        bytes_put_be16(value, 12);
        search_vector_store(&place, 1, SEARCH_FLOAT32, value + 10);
        bytes_put_be64(key, i);
        hit.key = slice_of(key, sizeof key);
        query_near_take(f->near, &hit, &now);
        given += now;
    }
    query_near_sort(f->near);
    return given;
}

/* Those that are kept come from `from` on, one after the other. */
static uint64_t assert_next(struct fixture *f, uint64_t from)
{
    struct slice key;
    uint64_t number;

    while (query_near_next(f->near, &number, &key)) {
        assert_int_equal(bytes_get_be64(key.data), number - 1);
        assert_true(place_of(number - 1) == (double)from);
        from++;
    }
    return from;
}

static void as_many_come_as_are_wanted(void **state UNUSED)
{
    struct fixture f;

    fixture_open(&f, 25, false);
    assert_true(query_near_wants_walk(f.near, 0));
    assert_int_equal(walk(&f), 0);
    assert_int_equal(assert_next(&f, 0), 25);
    assert_false(query_near_wants_walk(f.near, 25));
    query_near_free(f.near);
}

static void more_come_where_rows_are_refused_and_all_in_the_end(void **state UNUSED)
{
    struct fixture f;

    fixture_open(&f, 25, true);
    assert_true(query_near_wants_walk(f.near, 0));
    (void)walk(&f);
    assert_int_equal(assert_next(&f, 0), 100);
    assert_true(query_near_wants_walk(f.near, 24));
    assert_int_equal(walk(&f), 0);
    assert_int_equal(assert_next(&f, 100), 100 + QUERY_NEAR_MAX);
    assert_true(query_near_wants_walk(f.near, 24));
    assert_true(query_near_streams(f.near));
    assert_int_equal(walk(&f), ENTRIES - QUERY_NEAR_MAX - 100);
    assert_int_equal(assert_next(&f, 0), 0);
    assert_false(query_near_wants_walk(f.near, 24));
    query_near_free(f.near);
}

static void few_entries_are_walked_once(void **state UNUSED)
{
    struct fixture f;

    fixture_open(&f, ENTRIES, false); /* no more than are kept: then the rest */
    assert_true(query_near_wants_walk(f.near, 0));
    (void)walk(&f);
    assert_int_equal(assert_next(&f, 0), QUERY_NEAR_MAX);
    query_near_free(f.near);
    fixture_open(&f, ENTRIES, false);
    assert_true(query_near_wants_walk(f.near, 0));
    query_near_sort(f.near); /* nothing was there */
    assert_int_equal(assert_next(&f, 0), 0);
    assert_false(query_near_wants_walk(f.near, 0));
    query_near_free(f.near);
}

static void entries_of_another_index_are_passed_over(void **state UNUSED)
{
    uint8_t value[] = {0, 1, 0};
    struct cursor_hit hit = {.value = slice_of(value, sizeof value), .number = 1};
    struct fixture f;
    bool now;

    fixture_open(&f, 5, false);
    assert_true(query_near_wants_walk(f.near, 0));
    query_near_take(f.near, &hit, &now);
    assert_false(now);
    query_near_sort(f.near);
    assert_int_equal(assert_next(&f, 0), 0);
    query_near_free(f.near);
}

/* What a graph has found, and not the best of all: the next walk has all others, better ones too.
 */
static void what_was_picked_comes_once(void **state UNUSED)
{
    struct fixture f;
    uint64_t given = 0, number;
    struct slice key;

    fixture_open(&f, 50, true);
    assert_true(query_near_wants_walk(f.near, 0));
    assert_int_equal(query_near_capacity(f.near), 200);
    query_near_pick(f.near);
    for (uint64_t i = 0; i < 150; i++) {
        uint8_t value[2 + 8 + 4] = {0}, name[8];
        float place = (float)place_of(i * 3);
        bool now;

        bytes_put_be16(value, 12);
        search_vector_store(&place, 1, SEARCH_FLOAT32, value + 10);
        bytes_put_be64(name, i * 3);
        query_near_take(f.near,
                        &(struct cursor_hit){.value = slice_of(value, sizeof value),
                                             .number = i * 3 + 1,
                                             .key = slice_of(name, sizeof name)},
                        &now);
        assert_false(now);
    }
    query_near_sort(f.near);
    for (given = 0; query_near_next(f.near, &number, &key); given++)
        assert_int_equal((number - 1) % 3, 0);
    assert_int_equal(given, 150);
    assert_true(query_near_wants_walk(f.near, 10));
    (void)walk(&f);
    for (given = 0; query_near_next(f.near, &number, &key); given++)
        assert_true((number - 1) % 3 || number > 450);
    assert_int_equal(given, QUERY_NEAR_MAX);
    assert_true(query_near_wants_walk(f.near, 10));
    assert_int_equal(walk(&f), ENTRIES - 150 - QUERY_NEAR_MAX);
    query_near_free(f.near);
}

static void a_few_more_are_kept_where_some_are_gone(void **state UNUSED)
{
    struct fixture f;

    fixture_open(&f, 100, false);
    query_near_expect_gone(f.near);
    assert_true(query_near_wants_walk(f.near, 0));
    (void)walk(&f);
    assert_int_equal(assert_next(&f, 0), 133);
    assert_false(query_near_wants_walk(f.near, 100));
    assert_true(query_near_wants_walk(f.near, 99));
    query_near_free(f.near);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_come_as_are_wanted),
        cmocka_unit_test(more_come_where_rows_are_refused_and_all_in_the_end),
        cmocka_unit_test(few_entries_are_walked_once),
        cmocka_unit_test(entries_of_another_index_are_passed_over),
        cmocka_unit_test(what_was_picked_comes_once),
        cmocka_unit_test(a_few_more_are_kept_where_some_are_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
