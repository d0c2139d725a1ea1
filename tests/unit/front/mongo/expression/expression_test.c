/* The cases of tests/cases/mongo/expression.json: an expression, a document it looks at, and what
 * it comes to, types included; or the code and the words it is refused with. Each is asked of a
 * slot, and, in `is` cases, as a field of an object as well, where what is missing is left out. */
#include "front/mongo/expression/expression.h"

#include "document/json.h"
#include "front/mongo/expression/accumulate.h"
#include "query/value/value.h"
#include "support/check.h"
#include "support/extended.h"

struct fixture {
    struct arena *arena;
    struct query_context context;
    struct query_slot slots[2];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->arena = arena_new();
    query_context_init(&f->context, f->arena, NULL, NULL);
    f->context.slots = f->slots;
    f->context.slot_count = ARRAY_LEN(f->slots);
    f->context.order = DOCUMENT_ORDER_MONGO;
    f->context.keep_nonfinite = true;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    query_context_done(&f->context);
    arena_free(f->arena);
    free(f);
    return 0;
}

static const char *shown(struct arena *arena, const struct document_value *value)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    if (value->type == DOCUMENT_UNDEFINED)
        buf_append_text(&buf, "missing");
    else
        document_json_write_value(value, &buf);
    return arena_text(arena, buf_slice(&buf));
}

static struct slice extended_text(struct arena *arena, const char *json)
{
    return extended_document(arena, slice_of_text(json));
}

static struct query_build build_of(struct fixture *f)
{
    return (struct query_build){
        .arena = f->arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_MONGO};
}

static bool run(struct fixture *f, const struct document_value *expression,
                struct document_value *ret_value, struct error *err)
{
    const struct query_expression *compiled;
    struct query_build build = build_of(f);

    return mongo_expression_compile(expression, NULL, &build, &compiled, err) &&
           query_evaluate(compiled, &f->context, ret_value, err);
}

/* Equal bytes: of the same type, with the same digits. */
static bool same(struct fixture *f, const struct document_value *a, const struct document_value *b)
{
    struct buf bytes[2];
    bool equal;

    (void)f;
    for (size_t i = 0; i < 2; i++) {
        size_t begin;

        buf_init(&bytes[i], BUF_DEFAULT_MAX);
        begin = document_begin(&bytes[i]);
        document_append(&bytes[i], SLICE("v"), i ? b : a);
        document_end(&bytes[i], begin);
    }
    equal = slice_equal(buf_slice(&bytes[0]), buf_slice(&bytes[1]));
    buf_done(&bytes[0]);
    buf_done(&bytes[1]);
    return equal;
}

static unsigned case_check(struct fixture *f, struct slice of)
{
    struct document_value expression, document, expected, value = document_undefined();
    struct document_value whole = document_object(of), text;
    struct error err = {0};
    bool done;

    assert_true(document_find(of, SLICE("e"), &expression));
    f->slots[0].value = document_find(of, SLICE("doc"), &document)
                            ? document
                            : document_object(SLICE("\5\0\0\0\0"));
    done = run(f, &expression, &value, &err);
    if (document_find(of, SLICE("code"), &expected)) {
        if (done) {
            print_error("%s gives %s\n", shown(f->arena, &whole), shown(f->arena, &value));
            return 1;
        }
        if (mongo_error_code(&err) != expected.int32) {
            print_error("%s fails with %d %s\n", shown(f->arena, &whole), mongo_error_code(&err),
                        err.message);
            return 1;
        }
        if (document_find(of, SLICE("text"), &text) &&
            !strstr(err.message, arena_text(f->arena, text.text))) {
            print_error("%s says %s\n", shown(f->arena, &whole), err.message);
            return 1;
        }
        return 0;
    }
    if (!done) {
        print_error("%s fails with %d %s\n", shown(f->arena, &whole), mongo_error_code(&err),
                    err.message);
        return 1;
    }
    if (!document_find(of, SLICE("is"), &expected))
        expected = document_undefined();
    if (same(f, &value, &expected))
        return 0;
    print_error("%s gives %s\n", shown(f->arena, &whole), shown(f->arena, &value));
    return 1;
}

static void every_case_gives_what_the_manual_says(void **state)
{
    struct fixture *f = *state;
    struct document_value cases;
    struct document_iter iter;
    unsigned wrong = 0, count = 0;
    struct slice all = extended_file(f->arena, "cases/mongo/expression.json");

    assert_true(document_find(all, SLICE("cases"), &cases));
    document_iter_init(&iter, cases.document);
    for (; document_iter_next(&iter); count++)
        wrong += case_check(f, iter.value.document);
    if (wrong)
        fail_msg("%u of %u cases", wrong, count);
    assert_in_range(count, 1200, UINT32_MAX);
}

/* --- Variables and paths ---------------------------------------------------------------------- */

static struct document_value computed(struct fixture *f, const char *json,
                                      const struct mongo_expression_options *options)
{
    struct document_value expression, value;
    const struct query_expression *compiled;
    struct query_build build = build_of(f);
    struct error err;

    assert_true(document_find(extended_text(f->arena, json), SLICE("e"), &expression));
    assert_ok(mongo_expression_compile(&expression, options, &build, &compiled, &err), &err);
    assert_ok(query_evaluate(compiled, &f->context, &value, &err), &err);
    return value;
}

static void variables_are_handed_in_and_shadowed(void **state)
{
    struct fixture *f = *state;
    struct query_build build = build_of(f);
    const struct mongo_variable variables[] = {
        {SLICE("x"), query_constant(&build, document_int32(4))},
        {SLICE("y"), query_variable(&build, 1)}};
    const struct mongo_expression_options options = {.variables = variables, .variable_count = 2};

    f->slots[1].value = document_int32(10);
    assert_int_equal(computed(f, "{\"e\": {\"$add\": [\"$$x\", \"$$y\"]}}", &options).int32, 14);
    assert_int_equal(
        computed(
            f,
            "{\"e\": {\"$let\": {\"vars\": {\"x\": 1}, \"in\": {\"$add\": [\"$$x\", \"$$y\"]}}}}",
            &options)
            .int32,
        11);
}

static void a_constant_map_is_folded_and_one_of_a_variable_is_not(void **state)
{
    struct fixture *f = *state;
    struct document_value expression;
    const struct query_expression *compiled;
    struct query_build build = build_of(f);
    struct error err;

    assert_true(
        document_find(extended_text(f->arena, "{\"e\": {\"$map\": {\"input\": [1, 2], \"in\": "
                                              "{\"$add\": [\"$$this\", {\"$add\": [1, 2]}]}}}}"),
                      SLICE("e"), &expression));
    assert_ok(mongo_expression_compile(&expression, NULL, &build, &compiled, &err), &err);
    assert_true(query_is_constant(compiled));
    assert_true(document_find(
        extended_text(
            f->arena,
            "{\"e\": {\"$map\": {\"input\": \"$a\", \"in\": {\"$add\": [\"$$this\", 1]}}}}"),
        SLICE("e"), &expression));
    assert_ok(mongo_expression_compile(&expression, NULL, &build, &compiled, &err), &err);
    assert_false(query_is_constant(compiled));
    assert_int_equal(compiled->slots_used, 1);
}

static void work_and_memory_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct document_value expression, value;
    struct error err;

    f->context.limits.work_max = 1000;
    f->context.work_check = 1000;
    assert_true(document_find(extended_text(f->arena, "{\"e\": {\"$range\": [0, 100000000]}}"),
                              SLICE("e"), &expression));
    assert_false(run(f, &expression, &value, &err));
    assert_int_equal(err.code, ERROR_QUERY_LIMIT);
    assert_int_equal(f->context.scratch.len, 0);
}

/* --- Accumulators ----------------------------------------------------------------------------- */

/* Over the documents, in two parts that are merged. */
static struct document_value accumulated(struct fixture *f, const char *json, const char *documents)
{
    struct query_build build = build_of(f);
    struct query_aggregate parts[2];
    struct mongo_accumulator made;
    struct document_iter iter;
    struct document_value value, list;
    struct error err;
    uint64_t number = 0;

    document_iter_init(&iter, extended_text(f->arena, json));
    assert_true(document_iter_next(&iter));
    assert_ok(mongo_accumulator_compile(iter.key, &iter.value, NULL, 1, &build, &made, &err), &err);
    for (size_t i = 0; i < 2; i++)
        query_aggregate_init(&parts[i], made.call.kind, DOCUMENT_ORDER_MONGO, 1 << 20);
    assert_true(document_find(extended_text(f->arena, documents), SLICE("d"), &list));
    document_iter_init(&iter, list.document);
    while (document_iter_next(&iter)) {
        struct query_aggregate *part = &parts[++number % 2];

        f->slots[0].value = iter.value;
        assert_ok(query_evaluate(made.call.argument, &f->context, &value, &err), &err);
        part->at = number;
        assert_ok(query_aggregate_add(part, &value, &err), &err);
    }
    assert_ok(query_aggregate_merge(&parts[0], &parts[1], &err), &err);
    value = query_aggregate_finish(&parts[0]);
    f->slots[1].value = query_value_copy(&value, f->arena);
    for (size_t i = 0; i < 2; i++)
        query_aggregate_done(&parts[i]);
    assert_ok(query_evaluate(made.result, &f->context, &value, &err), &err);
    return value;
}

static void accumulators_give_what_group_shows(void **state)
{
    static const char *const documents = "{\"d\": [{\"a\": 3, \"t\": \"x\"}, {\"a\": 1}, {\"t\": "
                                         "\"y\"}, {\"a\": \"no\", \"t\": \"x\"}, "
                                         "{\"a\": 2, \"t\": null}]}";
    static const char *const cases[][2] = {
        {"{\"$sum\": \"$a\"}", "6"},
        {"{\"$sum\": \"$none\"}", "0"},
        {"{\"$sum\": {\"$toLong\": \"$b\"}}", "0"},
        {"{\"$avg\": \"$a\"}", "2.0"},
        {"{\"$avg\": \"$none\"}", "null"},
        {"{\"$min\": \"$a\"}", "1"},
        {"{\"$max\": \"$a\"}", "\"no\""},
        {"{\"$count\": {}}", "5"},
        {"{\"$first\": \"$a\"}", "3"},
        {"{\"$last\": \"$a\"}", "2"},
        {"{\"$first\": \"$none\"}", "null"},
        {"{\"$push\": \"$a\"}", "[3, 1, \"no\", 2]"},
        {"{\"$addToSet\": \"$t\"}", "[\"x\", \"y\", null]"},
        {"{\"$stdDevPop\": \"$none\"}", "null"},
        {"{\"$mergeObjects\": \"$$ROOT\"}", "{\"a\": 2, \"t\": null}"},
        {"{\"$firstN\": {\"n\": 2, \"input\": \"$t\"}}", "[\"x\", null]"},
        {"{\"$lastN\": {\"n\": 2, \"input\": \"$a\"}}", "[\"no\", 2]"},
        {"{\"$minN\": {\"n\": 2, \"input\": \"$a\"}}", "[1, 2]"},
        {"{\"$maxN\": {\"n\": 2, \"input\": \"$a\"}}", "[\"no\", 3]"},
        {"{\"$top\": {\"sortBy\": {\"a\": -1}, \"output\": \"$t\"}}", "\"x\""},
        {"{\"$topN\": {\"n\": 2, \"sortBy\": {\"a\": 1}, \"output\": [\"$a\", \"$t\"]}}",
         "[[null, \"y\"], [1, null]]"},
        {"{\"$bottom\": {\"sortBy\": {\"a\": 1}, \"output\": \"$a\"}}", "\"no\""},
        {"{\"$bottomN\": {\"n\": 2, \"sortBy\": {\"a\": 1}, \"output\": \"$a\"}}", "[3, \"no\"]"},
        {"{\"$median\": {\"input\": \"$a\", \"method\": \"approximate\"}}", "2.0"},
        {"{\"$percentile\": {\"input\": \"$a\", \"p\": [0, 1], \"method\": \"approximate\"}}",
         "[1.0, 3.0]"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct document_value value = accumulated(f, cases[i][0], documents), expected;
        char json[256];

        snprintf(json, sizeof json, "{\"v\": %s}", cases[i][1]);
        assert_true(document_find(extended_text(f->arena, json), SLICE("v"), &expected));
        if (!same(f, &value, &expected))
            fail_msg("%s gives %s", cases[i][0], shown(f->arena, &value));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_case_gives_what_the_manual_says, setup, teardown),
        cmocka_unit_test_setup_teardown(variables_are_handed_in_and_shadowed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_constant_map_is_folded_and_one_of_a_variable_is_not,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(work_and_memory_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(accumulators_give_what_group_shows, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
