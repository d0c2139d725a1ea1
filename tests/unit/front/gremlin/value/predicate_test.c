#include "front/gremlin/value/predicate.h"

#include "support/check.h"
#include "support/gremlin_values.h"

#include <math.h>

struct bench {
    struct gremlin_heap *heap;
    struct arena *arena;
    struct query_context context;
};

static int bench_open(void **state)
{
    struct bench *bench = MEMORY_NEW(struct bench);

    bench->heap = gremlin_test_heap();
    bench->arena = arena_new();
    query_context_init(&bench->context, bench->arena, NULL, NULL);
    *state = bench;
    return 0;
}

static int bench_close(void **state)
{
    struct bench *bench = *state;

    query_context_done(&bench->context);
    arena_free(bench->arena);
    gremlin_heap_free(bench->heap);
    memory_free(bench);
    return 0;
}

static struct gremlin_value text(struct bench *bench, const char *s)
{
    return gremlin_string(bench->heap, slice_of_text(s));
}

static struct gremlin_value predicate(struct bench *bench, const char *name, struct gremlin_value a,
                                      struct gremlin_value b, size_t count)
{
    struct gremlin_value values[2] = {a, b}, value;
    struct error err = {};

    assert_ok(gremlin_predicate_new(bench->heap, slice_of_text(name), values, count, &value, &err),
              &err);
    return value;
}

static enum gremlin_truth test(struct bench *bench, struct gremlin_value tested,
                               struct gremlin_value value)
{
    enum gremlin_truth truth;
    struct error err = {};

    assert_ok(
        gremlin_predicate_test(gremlin_predicate(tested), value, &bench->context, &truth, &err),
        &err);
    return truth;
}

static enum gremlin_truth one(struct bench *bench, const char *name, struct gremlin_value operand,
                              struct gremlin_value value)
{
    return test(bench, predicate(bench, name, operand, GREMLIN_NOTHING, 1), value);
}

static void comparisons_have_three_answers(void **state)
{
    struct bench *bench = *state;
    struct gremlin_value less = predicate(bench, "lt", gremlin_int(5), GREMLIN_NOTHING, 1);

    assert_int_equal(test(bench, less, gremlin_double(4.5)), GREMLIN_TRUE);
    assert_int_equal(test(bench, less, gremlin_int(5)), GREMLIN_FALSE);
    assert_int_equal(test(bench, less, text(bench, "4")), GREMLIN_UNKNOWN);
    assert_int_equal(one(bench, "not", less, text(bench, "4")), GREMLIN_UNKNOWN);
    assert_int_equal(one(bench, "not", less, gremlin_int(4)), GREMLIN_FALSE);
    assert_int_equal(one(bench, "lte", gremlin_int(5), gremlin_int(5)), GREMLIN_TRUE);
    assert_int_equal(one(bench, "gt", gremlin_double((double)NAN), gremlin_int(5)),
                     GREMLIN_UNKNOWN);
    assert_int_equal(one(bench, "eq", gremlin_int(1), gremlin_double(1)), GREMLIN_TRUE);
    assert_int_equal(one(bench, "neq", gremlin_int(1), text(bench, "1")), GREMLIN_TRUE);
    assert_int_equal(one(bench, "eq", GREMLIN_NOTHING, GREMLIN_NOTHING), GREMLIN_TRUE);
}

static void ranges_are_open_where_they_are(void **state)
{
    struct bench *bench = *state;
    struct gremlin_value between = predicate(bench, "between", gremlin_int(1), gremlin_int(3), 2);
    struct gremlin_value inside = predicate(bench, "inside", gremlin_int(1), gremlin_int(3), 2);
    struct gremlin_value outside = predicate(bench, "outside", gremlin_int(1), gremlin_int(3), 2);

    assert_int_equal(test(bench, between, gremlin_int(1)), GREMLIN_TRUE);
    assert_int_equal(test(bench, between, gremlin_int(3)), GREMLIN_FALSE);
    assert_int_equal(test(bench, inside, gremlin_int(1)), GREMLIN_FALSE);
    assert_int_equal(test(bench, inside, gremlin_int(2)), GREMLIN_TRUE);
    assert_int_equal(test(bench, outside, gremlin_int(1)), GREMLIN_FALSE);
    assert_int_equal(test(bench, outside, gremlin_int(4)), GREMLIN_TRUE);
}

static void collections_of_values(void **state)
{
    struct bench *bench = *state;
    struct gremlin_value within = predicate(bench, "within", gremlin_int(1), text(bench, "a"), 2);
    struct gremlin_value without = predicate(bench, "without", gremlin_int(1), text(bench, "a"), 2);

    assert_int_equal(test(bench, within, gremlin_long(1)), GREMLIN_TRUE);
    assert_int_equal(test(bench, within, text(bench, "b")), GREMLIN_FALSE);
    assert_int_equal(test(bench, without, text(bench, "a")), GREMLIN_FALSE);
    assert_int_equal(test(bench, without, gremlin_int(2)), GREMLIN_TRUE);
}

static void texts(void **state)
{
    struct bench *bench = *state;
    struct gremlin_value marko = text(bench, "marko");

    assert_int_equal(one(bench, "startingWith", text(bench, "mar"), marko), GREMLIN_TRUE);
    assert_int_equal(one(bench, "notStartingWith", text(bench, "mar"), marko), GREMLIN_FALSE);
    assert_int_equal(one(bench, "endingWith", text(bench, "ko"), marko), GREMLIN_TRUE);
    assert_int_equal(one(bench, "notEndingWith", text(bench, "mar"), marko), GREMLIN_TRUE);
    assert_int_equal(one(bench, "containing", text(bench, "ark"), marko), GREMLIN_TRUE);
    assert_int_equal(one(bench, "notContaining", text(bench, "ARK"), marko), GREMLIN_TRUE);
    assert_int_equal(one(bench, "regex", text(bench, "^m.*o$"), marko), GREMLIN_TRUE);
    assert_int_equal(one(bench, "regex", text(bench, "rk"), marko), GREMLIN_TRUE);
    assert_int_equal(one(bench, "notRegex", text(bench, "x+"), marko), GREMLIN_TRUE);
    assert_int_equal(one(bench, "containing", text(bench, "1"), gremlin_int(1)), GREMLIN_UNKNOWN);
}

static void nested_and_types(void **state)
{
    struct bench *bench = *state;
    struct gremlin_value less = predicate(bench, "lt", gremlin_int(5), GREMLIN_NOTHING, 1);
    struct gremlin_value more = predicate(bench, "gt", gremlin_int(2), GREMLIN_NOTHING, 1);
    struct gremlin_value both = predicate(bench, "and", less, more, 2);
    struct gremlin_value either = predicate(bench, "or", less, more, 2);

    assert_int_equal(test(bench, both, gremlin_int(3)), GREMLIN_TRUE);
    assert_int_equal(test(bench, both, gremlin_int(7)), GREMLIN_FALSE);
    assert_int_equal(test(bench, either, gremlin_int(7)), GREMLIN_TRUE);
    assert_int_equal(one(bench, "typeOf", gremlin_word(GREMLIN_GTYPE_NUMBER), gremlin_int(7)),
                     GREMLIN_TRUE);
    assert_int_equal(one(bench, "typeOf", text(bench, "Integer"), gremlin_long(7)), GREMLIN_FALSE);
}

static void what_cannot_be_tested_is_refused_beforehand(void **state)
{
    struct bench *bench = *state;
    struct error err = {};

    assert_fails(gremlin_predicate_check(gremlin_predicate(predicate(
                                             bench, "regex", text(bench, "("), GREMLIN_NOTHING, 1)),
                                         &bench->context, &err),
                 &err, ERROR_GREMLIN_COMPILE);
    assert_fails(
        gremlin_predicate_check(
            gremlin_predicate(predicate(bench, "containing", gremlin_int(1), GREMLIN_NOTHING, 1)),
            &bench->context, &err),
        &err, ERROR_GREMLIN_COMPILE);
    assert_fails(
        gremlin_predicate_check(gremlin_predicate(predicate(
                                    bench, "typeOf", text(bench, "Nonsense"), GREMLIN_NOTHING, 1)),
                                &bench->context, &err),
        &err, ERROR_GREMLIN_COMPILE);
    assert_ok(gremlin_predicate_check(
                  gremlin_predicate(predicate(bench, "eq", gremlin_int(1), GREMLIN_NOTHING, 1)),
                  &bench->context, &err),
              &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparisons_have_three_answers),
        cmocka_unit_test(ranges_are_open_where_they_are),
        cmocka_unit_test(collections_of_values),
        cmocka_unit_test(texts),
        cmocka_unit_test(nested_and_types),
        cmocka_unit_test(what_cannot_be_tested_is_refused_beforehand),
    };

    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
