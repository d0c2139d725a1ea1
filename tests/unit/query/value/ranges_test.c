#include "query/value/ranges.h"

#include "index/policy.h"
#include "support/check.h"
#include "support/documents.h"

struct fixture {
    struct arena *arena;
    struct random random;
};

static int setup(void **state)
{
    struct fixture *f = MEMORY_NEW(struct fixture);

    f->arena = arena_new();
    random_seed(&f->random, 3);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    arena_free(f->arena);
    memory_free(f);
    return 0;
}

static bool has(struct query_ranges ranges, struct slice bytes)
{
    for (size_t i = 0; i < ranges.count; i++) {
        if (slice_compare(bytes, ranges.list[i].min) >= 0 &&
            slice_compare(bytes, ranges.list[i].max) < 0)
            return true;
    }
    return false;
}

/* The bytes of a stored entry: the key of the value, and something behind it. */
static struct slice entry_of(struct fixture *f, const struct document_value *value, bool inverted)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    document_key_append_cut(DOCUMENT_ORDER_SQL, value, INDEX_VALUE_MAX, &buf);
    for (size_t i = 0; inverted && i < buf.len; i++)
        buf.data[i] = (uint8_t)~buf.data[i];
    buf_append_byte(&buf, (uint8_t)random_below(&f->random, 255));
    buf_append_byte(&buf, 0);
    return arena_copy(f->arena, buf_slice(&buf));
}

static bool is_scalar(const struct document_value *value)
{
    return value->type != DOCUMENT_OBJECT && value->type != DOCUMENT_ARRAY;
}

static bool same_rank(struct fixture *f, const struct document_value *a,
                      const struct document_value *b)
{
    return entry_of(f, a, false).data[0] == entry_of(f, b, false).data[0];
}

static void ranges_hold_what_a_comparison_is_true_for(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 20000; i++) {
        struct document_value bound = value_random_json(&f->random, f->arena, 0);
        struct document_value value = value_random_json(&f->random, f->arena, 0);
        int order = document_compare(DOCUMENT_ORDER_SQL, &value, &bound);
        struct slice entry = entry_of(f, &value, false);
        bool same = same_rank(f, &value, &bound), exact;

        if (!is_scalar(&bound) || !is_scalar(&value))
            continue;
        assert_int_equal(
            has(query_ranges_point(DOCUMENT_ORDER_SQL, &bound, &exact, f->arena), entry),
            order == 0);
        assert_int_equal(
            has(query_ranges_below(DOCUMENT_ORDER_SQL, &bound, false, &exact, f->arena), entry),
            same && order < 0);
        assert_int_equal(
            has(query_ranges_below(DOCUMENT_ORDER_SQL, &bound, true, &exact, f->arena), entry),
            same && order <= 0);
        assert_int_equal(
            has(query_ranges_above(DOCUMENT_ORDER_SQL, &bound, false, &exact, f->arena), entry),
            same && order > 0);
        assert_int_equal(
            has(query_ranges_above(DOCUMENT_ORDER_SQL, &bound, true, &exact, f->arena), entry),
            same && order >= 0);
    }
}

static void inverted_ranges_hold_the_same_values(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 20000; i++) {
        struct document_value low = value_random_json(&f->random, f->arena, 0);
        struct document_value high = value_random_json(&f->random, f->arena, 0);
        struct document_value value = value_random_json(&f->random, f->arena, 0);
        struct query_ranges ranges;
        bool exact;

        if (!is_scalar(&low) || !is_scalar(&high) || !is_scalar(&value))
            continue;
        ranges = query_ranges_intersect(
            query_ranges_above(DOCUMENT_ORDER_SQL, &low, random_below(&f->random, 2), &exact,
                               f->arena),
            query_ranges_below(DOCUMENT_ORDER_SQL, &high, random_below(&f->random, 2), &exact,
                               f->arena),
            f->arena);
        assert_int_equal(has(ranges, entry_of(f, &value, false)),
                         has(query_ranges_invert(ranges, f->arena), entry_of(f, &value, true)));
    }
}

static void a_union_is_sorted_and_apart(void **state)
{
    struct fixture *f = *state;
    struct cursor_range list[] = {{SLICE("m"), SLICE("p")},
                                  {SLICE("a"), SLICE("c")},
                                  {SLICE("b"), SLICE("e")},
                                  {SLICE("e"), SLICE("f")},
                                  {SLICE("x"), SLICE("x")}};
    struct query_ranges ranges = query_ranges_union(list, ARRAY_LEN(list), f->arena);

    assert_int_equal(ranges.count, 2);
    assert_slice_equal(ranges.list[0].min, SLICE("a"));
    assert_slice_equal(ranges.list[0].max, SLICE("f"));
    assert_slice_equal(ranges.list[1].min, SLICE("m"));
    assert_int_equal(query_ranges_intersect(ranges, (struct query_ranges){0}, f->arena).count, 0);
}

static void long_values_are_never_missed_though_not_exact(void **state)
{
    struct fixture *f = *state;
    char text[400];
    struct document_value longer = document_string(slice_of(text, 400));
    struct document_value shorter = document_string(slice_of(text, 390));
    bool exact;

    memset(text, 'x', sizeof text);
    assert_true(has(query_ranges_below(DOCUMENT_ORDER_SQL, &longer, false, &exact, f->arena),
                    entry_of(f, &shorter, false)));
    assert_false(exact);
    assert_true(has(query_ranges_above(DOCUMENT_ORDER_SQL, &shorter, false, &exact, f->arena),
                    entry_of(f, &longer, false)));
    assert_true(has(query_ranges_prefix(DOCUMENT_ORDER_SQL, longer.text, &exact, f->arena),
                    entry_of(f, &longer, false)));
    assert_false(exact);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ranges_hold_what_a_comparison_is_true_for, setup, teardown),
        cmocka_unit_test_setup_teardown(inverted_ranges_hold_the_same_values, setup, teardown),
        cmocka_unit_test_setup_teardown(a_union_is_sorted_and_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(long_values_are_never_missed_though_not_exact, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
