/* The items with the best scores of a span: the best first, more where rows want more, all in the
 * end; those whose score is not known in any case. */
#include "query/run/scored.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "support/check.h"

enum { ITEMS = 30000, SIZE = 10 };

struct fixture {
    struct query_scoring scoring;
    struct query_scored *scored;
};

static void fixture_open(struct fixture *f, uint64_t wanted, bool filtered)
{
    f->scoring = (struct query_scoring){.texts = ITEMS,
                                        .words = (double)ITEMS * SIZE,
                                        .weights = {1},
                                        .phrase_count = 1,
                                        .wanted = wanted,
                                        .filtered = filtered};
    f->scored = query_scored_new(&f->scoring);
}

/* How often item i has the term: each number of times once, so that scores are all different. */
static uint32_t often_of(uint64_t i)
{
    return (uint32_t)(ITEMS - i * 7919 % ITEMS);
}

/* Walks all items, every `unknown`th with a score that is not known; how many were given at once.
 */
static uint64_t walk(struct fixture *f, uint64_t unknown)
{
    uint64_t given = 0;

    for (uint64_t i = 0; i < ITEMS; i++) {
        struct query_posting posting = {.has = 1, .size = SIZE, .often = {often_of(i)}};
        struct query_scored_item item;
        uint8_t key[8];
        bool now;

        bytes_put_be64(key, i);
        posting.hit = (struct cursor_hit){.number = i + 1, .key = slice_of(key, sizeof key)};
        posting.unsure = unknown && i % unknown == 0;
        query_scored_take(f->scored, &posting, &item, &now);
        given += now;
    }
    query_scored_sort(f->scored);
    return given;
}

/* Those that are kept have the term `from` times, then once less each. */
static uint64_t assert_next(struct fixture *f, uint64_t from)
{
    struct query_scored_item item;

    while (query_scored_next(f->scored, &item)) {
        assert_int_equal(bytes_get_be64(item.key.data), item.number - 1);
        assert_int_equal(often_of(item.number - 1), from);
        from--;
    }
    return from;
}

static void as_many_come_as_are_wanted(void **state UNUSED)
{
    struct fixture f;

    fixture_open(&f, 25, false);
    assert_true(query_scored_wants_walk(f.scored, 0));
    assert_int_equal(walk(&f, 0), 0);
    assert_int_equal(assert_next(&f, ITEMS), ITEMS - 25);
    assert_false(query_scored_wants_walk(f.scored, 25));
    query_scored_free(f.scored);
}

static void more_come_where_few_make_a_row(void **state UNUSED)
{
    struct fixture f;
    uint64_t from;

    fixture_open(&f, 25, true);
    assert_true(query_scored_wants_walk(f.scored, 0));
    assert_int_equal(walk(&f, 0), 0);
    from = assert_next(&f, ITEMS);
    assert_int_equal(from, ITEMS - 100);
    assert_true(query_scored_wants_walk(f.scored, 3));
    assert_int_equal(walk(&f, 0), 0);
    from = assert_next(&f, from);
    assert_int_equal(from, ITEMS - 100 - QUERY_SCORED_MAX);
    assert_true(query_scored_wants_walk(f.scored, 24));
    assert_true(query_scored_streams(f.scored));
    assert_int_equal(walk(&f, 0), from);
    assert_false(query_scored_wants_walk(f.scored, 24));
    query_scored_free(f.scored);
}

/* Rows that were made of them may be worse than others: they do not count. */
static void what_is_not_known_comes_besides(void **state UNUSED)
{
    struct query_scored_item item;
    struct fixture f;
    uint64_t known = 0, unknown = 0;

    fixture_open(&f, 25, true);
    assert_true(query_scored_wants_walk(f.scored, 0));
    assert_int_equal(walk(&f, 1000), 0);
    while (query_scored_next(f.scored, &item)) {
        bool is_known = (item.number - 1) % 1000 != 0;

        assert_false(is_known && unknown < ITEMS / 1000); /* they come first */
        known += is_known;
        unknown += !is_known;
    }
    assert_int_equal(known, 100);
    assert_int_equal(unknown, ITEMS / 1000);
    assert_true(query_scored_wants_walk(f.scored, 54));
    query_scored_free(f.scored);
    fixture_open(&f, 25, true);
    assert_true(query_scored_wants_walk(f.scored, 0));
    (void)walk(&f, 1000);
    while (query_scored_next(f.scored, &item))
        continue;
    assert_false(query_scored_wants_walk(f.scored, 55));
    query_scored_free(f.scored);
}

/* A short walk leaves nothing to look for. */
static void nothing_is_walked_twice_that_was_kept_whole(void **state UNUSED)
{
    struct query_posting posting = {
        .has = 1, .size = SIZE, .often = {2}, .hit = {.number = 1, .key = SLICE("k")}};
    struct query_scored_item item;
    struct fixture f;
    bool now;

    fixture_open(&f, 25, true);
    assert_true(query_scored_wants_walk(f.scored, 0));
    query_scored_take(f.scored, &posting, &item, &now);
    assert_false(now);
    query_scored_sort(f.scored);
    assert_true(query_scored_next(f.scored, &item));
    assert_false(query_scored_next(f.scored, &item));
    assert_false(query_scored_wants_walk(f.scored, 0));
    query_scored_free(f.scored);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_come_as_are_wanted),
        cmocka_unit_test(more_come_where_few_make_a_row),
        cmocka_unit_test(what_is_not_known_comes_besides),
        cmocka_unit_test(nothing_is_walked_twice_that_was_kept_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
