#include "query/value/aggregate.h"

#include "support/check.h"
#include "support/documents.h"
#include "support/expressions.h"

enum { BYTES_MAX = 1 << 20 };

/* The elements of a JSON array; the text "undefined" stands for undefined. */
static void add_all(struct query_aggregate *state, struct arena *arena, const char *json)
{
    struct document_value array = value_of(arena, json);
    struct document_iter iter;
    struct error err = {0};

    document_iter_init(&iter, array.document);
    while (document_iter_next(&iter)) {
        if (iter.value.type == DOCUMENT_STRING && slice_equal(iter.value.text, SLICE("undefined")))
            iter.value = document_undefined();
        assert_ok(query_aggregate_add(state, &iter.value, &err), &err);
    }
}

static const char *through_bson(struct query_aggregate *state, struct arena *arena)
{
    CLEANUP(query_aggregate_done) struct query_aggregate loaded;
    CLEANUP(buf_done) struct buf buf;
    struct document_value value;
    struct error err = {0};
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    query_aggregate_save(state, SLICE("s"), &buf);
    document_end(&buf, begin);
    assert_ok(document_validate(buf_slice(&buf), NULL, &err), &err);
    assert_true(document_find(buf_slice(&buf), SLICE("s"), &value));
    assert_ok(
        query_aggregate_load(&loaded, state->kind, DOCUMENT_ORDER_SQL, &value, BYTES_MAX, &err),
        &err);
    value = query_aggregate_finish(&loaded);
    return expression_print(&value, arena);
}

struct aggregate_case {
    const char *name, *left, *right, *expected;
};

static const struct aggregate_case cases[] = {
    {"COUNT", "[]", "[]", "0"},
    {"COUNT", "[1,null,\"a\"]", "[{},\"undefined\"]", "4"},
    {"COUNTIF", "[true,false,1]", "[true,\"undefined\",null]", "2"},
    {"SUM", "[]", "[]", "undefined"},
    {"SUM", "[1,2]", "[3]", "6"},
    {"SUM", "[1,\"undefined\"]", "[]", "1"},
    {"SUM", "[1]", "[\"x\"]", "undefined"},
    {"SUM", "[null]", "[1]", "undefined"},
    {"SUM", "[0.5]", "[1]", "1.5"},
    {"SUM", "[9223372036854775807]", "[1]", "9223372036854775808"},
    {"SUM", "[1e100,1]", "[-1e100]", "1"},
    {"AVG", "[]", "[\"undefined\"]", "undefined"},
    {"AVG", "[1,2]", "[3,4]", "2.5"},
    {"AVG", "[2]", "[4]", "3"},
    {"AVG", "[2]", "[true]", "undefined"},
    {"$stdDevPop", "[2,4,4,4]", "[5,5,7,9]", "2"},
    {"$stdDevPop", "[1000000004,1000000007]", "[1000000013,1000000016]", "4.743416490252569"},
    {"$stdDevPop", "[3]", "[]", "0"},
    {"$stdDevPop", "[]", "[]", "undefined"},
    {"$stdDevPop", "[1]", "[\"x\"]", "undefined"},
    {"$stdDevSamp", "[2,4,4,4]", "[5,5,7,9]", "2.138089935299395"},
    {"$stdDevSamp", "[1000000004,1000000007]", "[1000000013,1000000016]", "5.477225575051661"},
    {"$stdDevSamp", "[0.1,0.1]", "[0.1]", "0"},
    {"$stdDevSamp", "[3]", "[]", "undefined"},
    {"MIN", "[]", "[]", "undefined"},
    {"MIN", "[3,1]", "[2]", "1"},
    {"MIN", "[\"b\"]", "[\"a\"]", "'a'"},
    {"MIN", "[\"a\",1,true]", "[null]", "null"},
    {"MIN", "[\"a\",1]", "[false]", "false"},
    {"MIN", "[1]", "[[]]", "undefined"},
    {"MIN", "[{}]", "[1]", "undefined"},
    {"MIN", "[\"undefined\"]", "[5]", "5"},
    {"MAX", "[3,1]", "[2]", "3"},
    {"MAX", "[\"\"]", "[1]", "''"},
    {"MAX", "[null]", "[true]", "true"},
    {"MAX", "[\"a\",\"abc\"]", "[\"ab\",5]", "'abc'"},
    {"MAX", "[1]", "[{\"a\":1}]", "undefined"},
    {"MAKELIST", "[]", "[]", "[]"},
    {"MAKELIST", "[1,\"undefined\",1]", "[{\"a\":2}]", "[1,1,{'a':2}]"},
    {"MAKESET", "[]", "[]", "[]"},
    {"MAKESET", "[1,2,1.0]", "[2,\"a\",{\"x\":1,\"y\":2},{\"y\":2,\"x\":1}]",
     "[1,2,'a',{'x':1,'y':2}]"},
};

/* SQL knows no standard deviations by name. */
static enum query_aggregate_kind kind_of(const char *name)
{
    enum query_aggregate_kind kind = QUERY_STD_DEV_SAMP;

    if (name[0] == '$') {
        assert_false(query_aggregate_find(slice_of_text(name), &kind));
        return strcmp(name, "$stdDevPop") == 0 ? QUERY_STD_DEV_POP : kind;
    }
    assert_true(query_aggregate_find(slice_of_text(name), &kind));
    return kind;
}

static void results_are_the_same_whole_merged_and_reloaded(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(query_aggregate_done) struct query_aggregate whole = {0};
        CLEANUP(query_aggregate_done) struct query_aggregate left = {0};
        CLEANUP(query_aggregate_done) struct query_aggregate right = {0};
        enum query_aggregate_kind kind = kind_of(cases[i].name);
        struct document_value value;
        struct error err = {0};

        query_aggregate_init(&whole, kind, DOCUMENT_ORDER_SQL, BYTES_MAX);
        query_aggregate_init(&left, kind, DOCUMENT_ORDER_SQL, BYTES_MAX);
        query_aggregate_init(&right, kind, DOCUMENT_ORDER_SQL, BYTES_MAX);
        add_all(&whole, arena, cases[i].left);
        value = query_aggregate_finish(&whole); /* and more may follow */
        add_all(&whole, arena, cases[i].right);
        add_all(&left, arena, cases[i].left);
        add_all(&right, arena, cases[i].right);
        assert_ok(query_aggregate_merge(&left, &right, &err), &err);
        value = query_aggregate_finish(&whole);
        if (strcmp(expression_print(&value, arena), cases[i].expected) != 0)
            fail_msg("%s of case %zu is %s", cases[i].name, i, expression_print(&value, arena));
        value = query_aggregate_finish(&left);
        if (strcmp(expression_print(&value, arena), cases[i].expected) != 0)
            fail_msg("merged, %s of case %zu is %s", cases[i].name, i,
                     expression_print(&value, arena));
        assert_string_equal(through_bson(&left, arena), cases[i].expected);
    }
}

static void a_value_counts_as_often_as_it_is_said_to(void **state UNUSED)
{
    static const char *const names[] = {"COUNT", "COUNTIF", "SUM",      "AVG",
                                        "MIN",   "MAX",     "MAKELIST", "MAKESET"};
    static const char *const values[] = {"true", "2.5", "\"a\"", "undefined"};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct error err = {0};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CLEANUP(query_aggregate_done) struct query_aggregate once, times;
        struct document_value of_once, of_times;
        enum query_aggregate_kind kind;

        assert_true(query_aggregate_find(slice_of_text(names[i]), &kind));
        query_aggregate_init(&once, kind, DOCUMENT_ORDER_SQL, BYTES_MAX);
        query_aggregate_init(&times, kind, DOCUMENT_ORDER_SQL, BYTES_MAX);
        for (size_t v = 0; v < ARRAY_LEN(values); v++) {
            struct document_value value = strcmp(values[v], "undefined") == 0
                                              ? document_undefined()
                                              : value_of(arena, values[v]);

            for (size_t n = 0; n < v + 2; n++)
                assert_ok(query_aggregate_add(&once, &value, &err), &err);
            assert_ok(query_aggregate_add_times(&times, &value, v + 2, &err), &err);
            assert_ok(query_aggregate_add_times(&times, &value, 0, &err), &err);
        }
        of_once = query_aggregate_finish(&once);
        of_times = query_aggregate_finish(&times);
        assert_string_equal(expression_print(&of_times, arena), expression_print(&of_once, arena));
    }
}

static void what_a_state_keeps_is_bounded(void **state UNUSED)
{
    static const enum query_aggregate_kind kinds[] = {QUERY_MAKE_LIST, QUERY_MAKE_SET, QUERY_MAX};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        CLEANUP(query_aggregate_done) struct query_aggregate aggregate;
        struct error err = {0};
        bool more = true;
        int added = 0;

        query_aggregate_init(&aggregate, kinds[i], DOCUMENT_ORDER_SQL, 10000);
        for (; more && added < 1000; added++) {
            struct document_value value =
                document_string(arena_printf(arena, "%0*d", added * 20 + 100, 0));

            more = query_aggregate_add(&aggregate, &value, &err);
        }
        assert_false(more);
        assert_int_equal(err.code, ERROR_QUERY_LIMIT);
        assert_true(query_aggregate_bytes(&aggregate) < 40000);
    }
}

static void foreign_states_are_refused(void **state UNUSED)
{
    static const char *const texts[] = {
        "1",
        "{}",
        "{\"a\":\"SUM\",\"n\":1,\"x\":false}",
        "{\"a\":\"COUNT\",\"n\":3000000000,\"x\":false,\"v\":{}}",
        "{\"a\":\"SUM\",\"n\":-3000000000,\"x\":false,\"v\":{}}",
        "{\"a\":\"SUM\",\"n\":3000000000,\"x\":false,\"v\":{\"h\":1}}",
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CLEANUP(query_aggregate_done) struct query_aggregate aggregate = {0};
        struct document_value value = value_of(arena, texts[i]);
        struct error err = {0};

        assert_fails(query_aggregate_load(&aggregate, QUERY_SUM, DOCUMENT_ORDER_SQL, &value,
                                          BYTES_MAX, &err),
                     &err, ERROR_BAD_REQUEST);
    }
}

static void names_are_found_without_case(void **state UNUSED)
{
    enum query_aggregate_kind kind;

    assert_true(query_aggregate_find(SLICE("MakeSet"), &kind));
    assert_int_equal(kind, QUERY_MAKE_SET);
    assert_false(query_aggregate_find(SLICE("MEDIAN"), &kind));
}

/* Under MongoDB's order: what a decimal is part of is one. */
static void decimals_are_summed_as_decimals_by_mongodb_alone(void **state UNUSED)
{
    static const char *const expected[] = {"0.30", "0.15"};

    for (int average = 0; average < 2; average++) {
        for (int order = DOCUMENT_ORDER_SQL; order <= DOCUMENT_ORDER_MONGO; order++) {
            CLEANUP(query_aggregate_done) struct query_aggregate state_of;
            struct document_decimal decimal;
            struct document_value value;
            char text[DECIMAL_TEXT_MAX + 1];
            struct error err = {0};

            query_aggregate_init(&state_of, average ? QUERY_AVG : QUERY_SUM,
                                 (enum document_order)order, BYTES_MAX);
            assert_true(decimal_from_text(SLICE("0.10"), &decimal, NULL));
            value = document_decimal_value(decimal);
            assert_ok(query_aggregate_add(&state_of, &value, &err), &err);
            assert_true(decimal_from_text(SLICE("0.2"), &decimal, NULL));
            value = document_decimal_value(decimal);
            assert_ok(query_aggregate_add(&state_of, &value, &err), &err);
            value = query_aggregate_finish(&state_of);
            if (order == DOCUMENT_ORDER_SQL) {
                assert_int_equal(value.type, DOCUMENT_DOUBLE);
                continue;
            }
            assert_int_equal(value.type, DOCUMENT_DECIMAL128);
            text[decimal_to_text(value.decimal, text)] = 0;
            assert_string_equal(text, expected[average]);
        }
    }
}

/* Of values that come out of order, in parts, one of which was saved. */
static struct document_value end_of(enum query_aggregate_kind kind)
{
    static const uint64_t places[] = {7, 2, 9, 4};
    struct query_aggregate parts[2], loaded;
    struct document_value saved, result;
    struct buf buf;
    struct error err;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < 2; i++)
        query_aggregate_init(&parts[i], kind, DOCUMENT_ORDER_MONGO, BYTES_MAX);
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct document_value value = document_int64((int64_t)places[i]);

        parts[i % 2].at = places[i];
        assert_ok(query_aggregate_add(&parts[i % 2], &value, &err), &err);
    }
    begin = document_begin(&buf);
    query_aggregate_save(&parts[1], SLICE("s"), &buf);
    document_end(&buf, begin);
    assert_true(document_find(buf_slice(&buf), SLICE("s"), &saved));
    assert_ok(query_aggregate_load(&loaded, kind, DOCUMENT_ORDER_MONGO, &saved, BYTES_MAX, &err),
              &err);
    assert_ok(query_aggregate_merge(&loaded, &parts[0], &err), &err);
    result = query_aggregate_finish(&loaded);
    query_aggregate_done(&loaded);
    for (size_t i = 0; i < 2; i++)
        query_aggregate_done(&parts[i]);
    buf_done(&buf);
    return result;
}

static void first_and_last_go_by_place(void **state UNUSED)
{
    assert_int_equal(end_of(QUERY_TAKE_FIRST).int64, 2);
    assert_int_equal(end_of(QUERY_TAKE_LAST).int64, 9);
}

static void in_mongos_order_a_sum_of_longs_is_a_long_and_an_average_a_double(void **state UNUSED)
{
    const struct document_value values[] = {document_int64(1), document_int32(3)};
    const enum query_aggregate_kind kinds[] = {QUERY_SUM, QUERY_AVG};
    const enum document_type types[] = {DOCUMENT_INT64, DOCUMENT_DOUBLE};

    for (size_t i = 0; i < 2; i++) {
        CLEANUP(query_aggregate_done) struct query_aggregate state_of;
        struct error err;

        query_aggregate_init(&state_of, kinds[i], DOCUMENT_ORDER_MONGO, BYTES_MAX);
        for (size_t j = 0; j < 2; j++)
            assert_ok(query_aggregate_add(&state_of, &values[j], &err), &err);
        assert_int_equal(query_aggregate_finish(&state_of).type, types[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_the_same_whole_merged_and_reloaded),
        cmocka_unit_test(first_and_last_go_by_place),
        cmocka_unit_test(in_mongos_order_a_sum_of_longs_is_a_long_and_an_average_a_double),
        cmocka_unit_test(decimals_are_summed_as_decimals_by_mongodb_alone),
        cmocka_unit_test(a_value_counts_as_often_as_it_is_said_to),
        cmocka_unit_test(what_a_state_keeps_is_bounded),
        cmocka_unit_test(foreign_states_are_refused),
        cmocka_unit_test(names_are_found_without_case),
    };
    return cmocka_run_group_tests_name("query/value/aggregate", tests, NULL, NULL);
}
