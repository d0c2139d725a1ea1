#include "front/table/filter.h"

#include "front/table/route.h"
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

static const struct table_filter_place place = {SLICE("PartitionKey"), SLICE("id"), true};

/* Does the filter hold for the item? */
static bool holds(struct arena *arena, const char *text, const char *item)
{
    struct query_slot slot = {.value = document_object(document_of(arena, item))};
    struct query_build build = {.arena = arena};
    const struct query_expression *expression;
    const struct table_filter *filter;
    struct query_context context;
    struct error err;
    bool result;

    assert_ok(table_filter_parse(slice_of_text(text), arena, &filter, &err), &err);
    expression = table_filter_compile(filter, &place, &build);
    assert_false(build.failed);
    query_context_init(&context, arena, NULL, NULL);
    context.slots = &slot;
    context.slot_count = 1;
    assert_ok(query_holds(expression, &context, &result, &err), &err);
    query_context_done(&context);
    return result;
}

static void operators_and_precedence_are_those_of_odata(void **state)
{
    const char *item = "{\"id\":\"r\",\"PartitionKey\":\"p\",\"a\":5,\"b\":\"x\",\"t\":true}";

    assert_true(holds(*state, "a eq 5", item));
    assert_true(holds(*state, "  a  ge  5L  ", item));
    assert_true(holds(*state, "5.0 le a", item));
    assert_true(holds(*state, "a ne 6 and b eq 'x'", item));
    assert_true(holds(*state, "a eq 6 and a eq 6 or b eq 'x'", item));
    assert_false(holds(*state, "a eq 6 and (a eq 6 or b eq 'x')", item));
    assert_true(holds(*state, "not a eq 6 and t", item));
    assert_true(holds(*state, "not (a eq 5 and b eq 'y')", item));
    assert_true(holds(*state, "RowKey eq 'r' and PartitionKey lt 'q'", item));
    assert_true(holds(*state, "true", item));
    assert_true(holds(*state, "t eq True and t ne FALSE", item));
    assert_false(holds(*state, "1 gt 2", item));
}

static void what_is_missing_or_of_another_type_is_false(void **state)
{
    static const char *const operators[] = {"eq", "ne", "gt", "ge", "lt", "le"};
    const char *item = "{\"id\":\"r\",\"a\":5,\"b\":\"x\"}";

    for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
        static const char *const parts[] = {"c %s 5",    "b %s 5",   "a %s 'x'",
                                            "a %s true", "b %s X''", "a %s datetime'2024-01-01'"};

        for (size_t j = 0; j < ARRAY_LEN(parts); j++) {
            struct slice text = arena_printf(*state, parts[j], operators[i]);
            struct slice denied = arena_printf(*state, "not (%.*s)", SLICE_ARG(text));

            assert_false(holds(*state, arena_text(*state, text), item));
            assert_true(holds(*state, arena_text(*state, denied), item));
        }
    }
}

static void quotes_in_texts_are_doubled(void **state)
{
    assert_true(holds(*state, "b eq 'it''s'", "{\"b\":\"it's\"}"));
    assert_true(holds(*state, "b eq ''", "{\"b\":\"\"}"));
}

static void a_point_is_both_keys_and_nothing_else(void **state)
{
    static const struct {
        const char *text;
        bool point;
    } cases[] = {
        {"PartitionKey eq 'a' and RowKey eq 'b'", true},
        {"(RowKey eq 'b') and (PartitionKey eq 'a')", true},
        {"PartitionKey eq 'a'", false},
        {"PartitionKey eq 'a' and RowKey eq 'b' and c eq 1", false},
        {"PartitionKey eq 'a' and RowKey ge 'b'", false},
        {"PartitionKey eq 'a' or RowKey eq 'b'", false},
        {"PartitionKey eq 'a' and RowKey eq 5", false},
        {"RowKey eq 'a' and RowKey eq 'b'", false},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct table_filter *filter;
        struct table_keys keys;
        struct error err;

        assert_ok(table_filter_parse(slice_of_text(cases[i].text), *state, &filter, &err), &err);
        assert_int_equal(table_filter_is_point(filter, &keys), cases[i].point);
        if (cases[i].point) {
            assert_slice_equal(keys.partition, SLICE("a"));
            assert_slice_equal(keys.row, SLICE("b"));
        }
    }
}

static void what_is_no_filter_is_refused(void **state)
{
    static const char *const texts[] = {
        "",         "a eq",    "a eq b",         "a EQ 5",      "(a eq 5",         "a eq 5)",
        "a eq 'x",  "a eq 5x", "a eq X'1'",      "a eq guid''", "a eq datetime''", "'x'",
        "a eq 5 b", "not",     "a eq 1.5L",      "a lk 5",      "a eq 'x' and",    "and",
        "a eq --5", "a eq 5.", "f(a) eq 'x' or", "a in (1,2)",  "a eq 1e999",      "a eq null 5",
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const struct table_filter *filter;
        struct error err;

        assert_fails(table_filter_parse(slice_of_text(texts[i]), *state, &filter, &err), &err,
                     ERROR_BAD_QUERY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(operators_and_precedence_are_those_of_odata, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_missing_or_of_another_type_is_false, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(quotes_in_texts_are_doubled, setup, teardown),
        cmocka_unit_test_setup_teardown(a_point_is_both_keys_and_nothing_else, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_filter_is_refused, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
