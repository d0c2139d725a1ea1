#include "query/expression/subquery.h"

#include "support/check.h"
#include "support/documents.h"
#include "support/expressions.h"

static const char *const item = "{\"t\":[3,1,2,1],\"o\":[{\"n\":\"a\",\"v\":[1,2]},{\"n\":\"b\","
                                "\"v\":[]},{\"n\":\"a\",\"v\":[5]},"
                                "{\"v\":[7]}],\"s\":\"x\",\"f\":[true,true,false]}";

/* One subquery as text. Slots: x, y for sources, 8 and up for keys and aggregates. */
struct plan {
    const char *each[2]; /* x IN, y IN */
    const char *value;   /* value AS x, in place of the first */
    const char *filter;
    const char *key; /* into slot z */
    enum query_aggregate_kind aggregate;
    const char *argument; /* of the aggregate, into slot y */
    const char *order;
    bool descending;
    const char *select;
    bool distinct;
    uint64_t offset, limit; /* 0: all */
};

enum { SLOT_X = 1, SLOT_Y = 2, SLOT_Z = 3 };

static const struct query_subquery *subquery_of(struct query_build *build, const struct plan *plan)
{
    struct query_source sources[2];
    struct query_group_key key;
    struct query_aggregate_call aggregate;
    struct query_order order;
    struct query_subquery query = {.distinct = plan->distinct,
                                   .offset = plan->offset,
                                   .limit = plan->limit ? plan->limit : UINT64_MAX};

    for (int i = 0; i < 2 && plan->each[i]; i++)
        sources[query.source_count++] =
            (struct query_source){.kind = QUERY_SOURCE_EACH,
                                  .expression = expression_of(build, plan->each[i], NULL),
                                  .slot = i == 0 ? SLOT_X : SLOT_Y};
    if (plan->value)
        sources[query.source_count++] =
            (struct query_source){.kind = QUERY_SOURCE_VALUE,
                                  .expression = expression_of(build, plan->value, NULL),
                                  .slot = SLOT_X};
    query.sources = sources;
    if (plan->filter)
        query.filter = expression_of(build, plan->filter, NULL);
    if (plan->key) {
        key = (struct query_group_key){expression_of(build, plan->key, NULL), SLOT_Z};
        query.keys = &key;
        query.key_count = 1;
    }
    if (plan->argument) {
        aggregate = (struct query_aggregate_call){
            plan->aggregate, expression_of(build, plan->argument, NULL), SLOT_Y};
        query.aggregates = &aggregate;
        query.aggregate_count = 1;
    }
    if (plan->order) {
        order = (struct query_order){expression_of(build, plan->order, NULL), plan->descending};
        query.order = &order;
        query.order_count = 1;
    }
    query.select = expression_of(build, plan->select, NULL);
    return query_subquery_new(build, &query);
}

static const char *result(enum query_quantifier quantifier, const struct plan *plan,
                          struct arena *arena)
{
    CLEANUP(query_context_done) struct query_context context;
    struct query_slot slots[EXPRESSION_SLOTS];
    struct query_build build = {.arena = arena};
    const struct query_expression *node =
        query_subquery(&build, quantifier, subquery_of(&build, plan));
    struct document_value value;
    struct error err = {0};

    for (size_t i = 0; i < EXPRESSION_SLOTS; i++)
        slots[i] = (struct query_slot){.value = document_undefined()};
    slots[0].value = value_of(arena, item);
    query_context_init(&context, arena, NULL, NULL);
    context.slots = slots;
    context.slot_count = EXPRESSION_SLOTS;
    assert_false(build.failed);
    if (!query_evaluate(node, &context, &value, &err))
        return error_face(err.code)->name;
    assert_int_equal(context.scratch.len, 0);
    return expression_print(&value, arena);
}

static void subqueries_filter_join_order_and_cut(void **state UNUSED)
{
    static const struct {
        struct plan plan;
        const char *expected;
    } cases[] = {
        {{.select = "1"}, "[1]"},
        {{.select = "c.none"}, "[]"},
        {{.filter = "false", .select = "1"}, "[]"},
        {{.each = {"c.t"}, .select = "x"}, "[3,1,2,1]"},
        {{.each = {"c.s"}, .select = "x"}, "[]"},
        {{.each = {"c.none"}, .select = "x"}, "[]"},
        {{.each = {"c.t"}, .filter = "gt(x, 1)", .select = "x"}, "[3,2]"},
        {{.each = {"c.t"}, .filter = "x", .select = "x"}, "[]"},
        {{.each = {"c.o"}, .select = "x.n"}, "['a','b','a']"},
        {{.each = {"c.o"}, .select = "object('n', x.n)"}, "[{'n':'a'},{'n':'b'},{'n':'a'},{}]"},
        {{.each = {"c.o", "x.v"}, .select = "array(x.n, y)"}, "[['a',1],['a',2],['a',5],[7]]"},
        {{.each = {"c.t", "c.t"}, .filter = "lt(x, y)", .select = "array(x, y)"},
         "[[1,3],[1,2],[2,3],[1,3],[1,2]]"},
        {{.value = "c.s", .select = "x"}, "['x']"},
        {{.value = "c.none", .select = "1"}, "[]"},
        {{.value = "c.t", .select = "x"}, "[[3,1,2,1]]"},
        {{.each = {"c.t"}, .select = "x", .distinct = true}, "[3,1,2]"},
        {{.each = {"c.t"}, .select = "x", .order = "x"}, "[1,1,2,3]"},
        {{.each = {"c.t"}, .select = "x", .order = "x", .descending = true}, "[3,2,1,1]"},
        {{.each = {"c.o"}, .select = "x.v", .order = "x.n"}, "[[7],[1,2],[5],[]]"},
        {{.each = {"c.o"}, .select = "x.v", .order = "x.n", .descending = true},
         "[[],[1,2],[5],[7]]"},
        {{.each = {"c.t"}, .select = "x", .limit = 2}, "[3,1]"},
        {{.each = {"c.t"}, .select = "x", .offset = 1, .limit = 2}, "[1,2]"},
        {{.each = {"c.t"}, .select = "x", .offset = 9, .limit = 2}, "[]"},
        {{.each = {"c.t"}, .select = "x", .order = "x", .distinct = true, .offset = 1}, "[2,3]"},
        {{.each = {"c.t"}, .select = "SQRT(sub(1.5, x))", .limit = 1}, "[0.7071067811865476]"},
        {{.each = {"c.t"}, .argument = "x", .aggregate = QUERY_SUM, .select = "y"}, "[7]"},
        {{.each = {"c.t"}, .argument = "1", .aggregate = QUERY_COUNT, .select = "add(y, 1)"},
         "[5]"},
        {{.each = {"c.none"}, .argument = "1", .aggregate = QUERY_COUNT, .select = "y"}, "[0]"},
        {{.each = {"c.none"}, .argument = "1", .aggregate = QUERY_SUM, .select = "y"}, "[]"},
        {{.each = {"c.o"}, .argument = "x.n", .aggregate = QUERY_MAX, .select = "y"}, "['b']"},
        {{.each = {"c.o"}, .argument = "x.n", .aggregate = QUERY_MAKE_SET, .select = "y"},
         "[['a','b']]"},
        {{.each = {"c.o"},
          .key = "x.n",
          .argument = "1",
          .aggregate = QUERY_COUNT,
          .select = "object('n', z, 'count', y)"},
         "[{'n':'a','count':2},{'n':'b','count':1},{'count':1}]"},
        {{.each = {"c.t"}, .key = "x", .select = "z", .order = "z"}, "[1,2,3]"},
        {{.each = {"c.t"},
          .key = "x",
          .argument = "x",
          .aggregate = QUERY_SUM,
          .select = "y",
          .order = "y",
          .descending = true,
          .limit = 2},
         "[3,2]"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *got = result(QUERY_ARRAY, &cases[i].plan, arena);

        if (strcmp(got, cases[i].expected) != 0)
            fail_msg("subquery %zu gives %s, not %s", i, got, cases[i].expected);
    }
}

static void quantifiers_make_one_value_of_rows(void **state UNUSED)
{
    static const struct plan none = {.each = {"c.none"}, .select = "x"},
                             several = {.each = {"c.t"}, .select = "x"},
                             one = {.each = {"c.t"}, .select = "x", .filter = "eq(x, 2)"},
                             flags = {.each = {"c.f"}, .select = "x"},
                             yes = {.each = {"c.f"}, .select = "x", .limit = 2},
                             undefined = {.each = {"c.t"}, .select = "x.y"},
                             nulls = {.each = {"c.t"}, .select = "null"};
    static const struct {
        enum query_quantifier quantifier;
        const struct plan *plan;
        const char *expected;
    } cases[] = {
        {QUERY_SCALAR, &none, "undefined"},
        {QUERY_SCALAR, &one, "2"},
        {QUERY_SCALAR, &several, "BAD_REQUEST"},
        {QUERY_SCALAR, &undefined, "undefined"},
        {QUERY_EXISTS, &none, "false"},
        {QUERY_EXISTS, &one, "true"},
        {QUERY_EXISTS, &undefined, "false"},
        {QUERY_EXISTS, &nulls, "true"},
        {QUERY_FIRST, &none, "undefined"},
        {QUERY_FIRST, &several, "3"},
        {QUERY_LAST, &none, "undefined"},
        {QUERY_LAST, &several, "1"},
        {QUERY_ALL, &none, "true"},
        {QUERY_ALL, &yes, "true"},
        {QUERY_ALL, &flags, "false"},
        {QUERY_ALL, &several, "false"},
        {QUERY_ARRAY, &undefined, "[]"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_string_equal(result(cases[i].quantifier, cases[i].plan, arena), cases[i].expected);
}

/* JOIN (SELECT VALUE v FROM v IN x.v WHERE v > 1) AS y, within x IN c.o */
static void subqueries_can_be_sources_of_others(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(query_context_done) struct query_context context;
    struct query_slot slots[8];
    struct query_build build = {.arena = arena};
    const struct query_source inner_source = {.expression = expression_of(&build, "x.v", NULL),
                                              .slot = SLOT_Z};
    const struct query_subquery inner = {
        .sources = &inner_source,
        .source_count = 1,
        .filter = expression_of(&build, "gt(z, 1)", NULL),
        .select = expression_of(&build, "z", NULL),
        .limit = UINT64_MAX,
    };
    const struct query_source sources[] = {
        {.expression = expression_of(&build, "c.o", NULL), .slot = SLOT_X},
        {.kind = QUERY_SOURCE_ROWS, .rows = query_subquery_new(&build, &inner), .slot = SLOT_Y},
    };
    const struct query_subquery outer = {
        .sources = sources,
        .source_count = 2,
        .select = expression_of(&build, "array(x.n, y)", NULL),
        .limit = UINT64_MAX,
    };
    const struct query_expression *node =
        query_subquery(&build, QUERY_ARRAY, query_subquery_new(&build, &outer));
    struct document_value value;
    struct error err = {0};

    for (size_t i = 0; i < ARRAY_LEN(slots); i++)
        slots[i] = (struct query_slot){.value = document_undefined()};
    slots[0].value = value_of(arena, item);
    query_context_init(&context, arena, NULL, NULL);
    context.slots = slots;
    context.slot_count = ARRAY_LEN(slots);
    assert_false(build.failed);
    assert_int_equal(node->slots_used, 0xF);
    assert_ok(query_evaluate(node, &context, &value, &err), &err);
    assert_string_equal(expression_print(&value, arena), "[['a',2],['a',5],[7]]");
}

/* A cross product of six arrays of thirty: 729 million rows, were there no limit. */
static void large_products_meet_the_limits(void **state UNUSED)
{
    static const struct query_limits limits[] = {{.work_max = 100000}, {.bytes_max = 1 << 20}};
    static const enum error_code code = ERROR_QUERY_LIMIT;

    for (size_t round = 0; round < ARRAY_LEN(limits); round++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        CLEANUP(query_context_done) struct query_context context;
        struct query_slot slots[16];
        struct query_build build = {.arena = arena};
        struct query_source sources[6];
        struct query_subquery query = {.sources = sources, .source_count = 6, .limit = UINT64_MAX};
        struct document_value value;
        struct error err = {0};

        for (size_t i = 0; i < ARRAY_LEN(slots); i++)
            slots[i] = (struct query_slot){.value = document_undefined()};
        slots[0].value =
            value_of(arena, "[1,2,3,4,5,6,7,8,9,10,1,2,3,4,5,6,7,8,9,10,1,2,3,4,5,6,7,8,9,10]");
        for (uint32_t i = 0; i < 6; i++)
            sources[i] =
                (struct query_source){.expression = query_variable(&build, 0), .slot = i + 1};
        query.select = query_variable(&build, 6);
        query_context_init(&context, arena, &limits[round], NULL);
        context.slots = slots;
        context.slot_count = ARRAY_LEN(slots);
        assert_fails(
            query_evaluate(query_subquery(&build, QUERY_ARRAY, query_subquery_new(&build, &query)),
                           &context, &value, &err),
            &err, code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subqueries_filter_join_order_and_cut),
        cmocka_unit_test(quantifiers_make_one_value_of_rows),
        cmocka_unit_test(subqueries_can_be_sources_of_others),
        cmocka_unit_test(large_products_meet_the_limits),
    };
    return cmocka_run_group_tests_name("query/expression/subquery", tests, NULL, NULL);
}
