#include "query/value/context.h"

#include "support/check.h"
#include "support/documents.h"
#include "support/expressions.h"

/* A clock whose hands the test turns. */
static int64_t hand_ms;

static int64_t read_hand(void *context UNUSED)
{
    return hand_ms;
}

static const struct clock test_clock = {read_hand, read_hand, NULL};

struct bench {
    struct arena *arena;
    struct query_slot slot;
    struct query_build build;
    struct query_context context;
};

static void bench_init(struct bench *bench, const struct query_limits *limits)
{
    *bench = (struct bench){.arena = arena_new()};
    bench->build.arena = bench->arena;
    query_context_init(&bench->context, bench->arena, limits, &test_clock);
    bench->context.slots = &bench->slot;
    bench->context.slot_count = 1;
    bench->slot.value = value_of(bench->arena, "{\"s\":\"0123456789\",\"a\":[1,2,3,4,5,6,7,8]}");
}

static void bench_done(struct bench *bench)
{
    query_context_done(&bench->context);
    arena_free(bench->arena);
}
CLEANUP_VALUE_FN(struct bench, bench_done)

static bool run(struct bench *bench, const char *text, struct error *err)
{
    struct document_value value;

    return query_evaluate(expression_of(&bench->build, text, NULL), &bench->context, &value, err);
}

static void memory_has_a_limit(void **state UNUSED)
{
    static const struct query_limits limits = {.bytes_max = 200000};
    CLEANUP(bench_done) struct bench bench;
    struct error err = {0};

    bench_init(&bench, &limits);
    assert_ok(run(&bench, "REPLICATE(c.s, 1000)", &err), &err);
    assert_fails(run(&bench, "REPLACE(REPLICATE(c.s, 1000), '1', REPLICATE(c.s, 1000))", &err),
                 &err, ERROR_QUERY_LIMIT);
    assert_contains(err.message, "200000 bytes");
    assert_int_equal(bench.context.scratch.len, 0);
    assert_ok(run(&bench, "cat(c.s, c.s)", &err), &err); /* the context is as good as before */
}

static void work_has_a_limit(void **state UNUSED)
{
    static const struct query_limits limits = {.work_max = 1000};
    CLEANUP(bench_done) struct bench bench;
    struct error err = {0};
    int count = 0;

    bench_init(&bench, &limits);
    while (run(&bench, "eq(c.s, 'x')", &err) && count < 10000)
        count++;
    assert_int_equal(err.code, ERROR_QUERY_LIMIT);
    assert_contains(err.message, "1000 units");
    assert_true(count > 100 && count < 1000);
}

static void a_deadline_is_seen_before_long(void **state UNUSED)
{
    static const struct query_limits limits = {.deadline_ms = 50};
    CLEANUP(bench_done) struct bench bench;
    struct error err = {0};

    hand_ms = 49;
    bench_init(&bench, &limits);
    for (int i = 0; i < 20000; i++)
        assert_ok(run(&bench, "c.s", &err), &err);
    hand_ms = 50;
    for (int i = 0; run(&bench, "c.s", &err); i++)
        assert_true(i < 20000);
    assert_int_equal(err.code, ERROR_TIMED_OUT);
}

static void a_query_can_be_cancelled(void **state UNUSED)
{
    CLEANUP(bench_done) struct bench bench;
    atomic_bool cancelled = false;
    struct error err = {0};

    bench_init(&bench, NULL);
    bench.context.cancelled = &cancelled;
    for (int i = 0; i < 20000; i++)
        assert_ok(run(&bench, "c.s", &err), &err);
    cancelled = true;
    for (int i = 0; run(&bench, "c.s", &err); i++)
        assert_true(i < 20000);
    assert_int_equal(err.code, ERROR_TIMED_OUT);
}

/* Paths and comparisons take nothing from the arena. */
static void comparing_properties_allocates_nothing(void **state UNUSED)
{
    CLEANUP(bench_done) struct bench bench;
    const struct query_expression *filter;
    struct error err = {0};
    size_t used;
    bool holds;

    bench_init(&bench, NULL);
    filter = expression_of(&bench.build,
                           "and(eq(c.s, '0123456789'), gt(c.a[3], 3), in(c.a[0], 1, 2),"
                           " like(c.s, '%9'), not(eq(c.b, 1)))",
                           NULL);
    used = arena_used(bench.arena);
    for (int i = 0; i < 1000; i++)
        assert_ok(query_holds(filter, &bench.context, &holds, &err), &err);
    assert_int_equal(arena_used(bench.arena), used);
}

static void user_functions_need_a_host(void **state UNUSED)
{
    CLEANUP(bench_done) struct bench bench;
    struct error err = {0};

    bench_init(&bench, NULL);
    assert_fails(run(&bench, "udf_tax(1)", &err), &err, ERROR_QUERY_NOT_SUPPORTED);
    assert_contains(err.message, "\"tax\"");
}

static bool host_call(void *self, struct slice name, const struct document_value *arguments,
                      size_t count, struct query_context *context, struct document_value *ret_value,
                      struct error *err)
{
    (void)context;
    ++*(int *)self;
    if (slice_equal(name, SLICE("fail")))
        return error_set(err, ERROR_BAD_REQUEST, "it failed");
    *ret_value =
        count > 1 && arguments[1].type == DOCUMENT_UNDEFINED ? document_int32(-1) : arguments[0];
    return true;
}

static void user_functions_get_their_arguments(void **state UNUSED)
{
    CLEANUP(bench_done) struct bench bench;
    struct document_value value;
    struct error err = {0};
    int calls = 0;

    bench_init(&bench, NULL);
    bench.context.udf = (struct query_udf_host){host_call, &calls};
    assert_ok(query_evaluate(expression_of(&bench.build, "udf_first(c.a[2])", NULL), &bench.context,
                             &value, &err),
              &err);
    assert_int_equal(value.int32, 3);
    assert_ok(query_evaluate(expression_of(&bench.build, "udf_first(1, c.none)", NULL),
                             &bench.context, &value, &err),
              &err);
    assert_int_equal(value.int32, -1);
    assert_fails(run(&bench, "array(1, udf_fail(1))", &err), &err, ERROR_BAD_REQUEST);
    assert_int_equal(bench.context.scratch.len, 0);
    assert_int_equal(calls, 3);
}

static void numbers_that_are_not_finite_stay_where_wanted(void **state UNUSED)
{
    CLEANUP(bench_done) struct bench bench;
    struct document_value value;
    struct error err = {0};

    bench_init(&bench, NULL);
    bench.context.keep_nonfinite = true;
    assert_ok(
        query_evaluate(expression_of(&bench.build, "array(SQRT(neg(c.a[0])), 1, c.none)", NULL),
                       &bench.context, &value, &err),
        &err);
    assert_int_equal(document_count(value.document), 2);
    bench.build.keep_nonfinite = true;
    assert_ok(query_evaluate(expression_of(&bench.build, "array(NaN)", NULL), &bench.context,
                             &value, &err),
              &err);
    assert_int_equal(document_count(value.document), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_has_a_limit),
        cmocka_unit_test(work_has_a_limit),
        cmocka_unit_test(a_deadline_is_seen_before_long),
        cmocka_unit_test(a_query_can_be_cancelled),
        cmocka_unit_test(comparing_properties_allocates_nothing),
        cmocka_unit_test(user_functions_need_a_host),
        cmocka_unit_test(user_functions_get_their_arguments),
        cmocka_unit_test(numbers_that_are_not_finite_stay_where_wanted),
    };
    return cmocka_run_group_tests_name("query/value/context", tests, NULL, NULL);
}
