#include "fixture.h"

#include "front/rest/sql/functions.h"

static void sound_queries_are_taken(void **state UNUSED)
{
    static const char *const known[] = {
        "SELECT 1",
        "SELECT COUNT(1)",
        "SELECT * FROM anything",
        "SELECT VALUE x FROM anything AS x",
        "SELECT VALUE r FROM ROOT r",
        "SELECT VALUE root FROM root",
        "SELECT VALUE children FROM c.children",
        "SELECT VALUE x FROM x IN c.children",
        "SELECT VALUE c FROM c IN c.children",
        "SELECT c.id, t.name FROM c JOIN t IN c.tags JOIN s IN t.sizes",
        "SELECT VALUE r FROM c JOIN r IN root.tags",
        "SELECT VALUE z FROM c JOIN (SELECT VALUE s FROM s IN c.sizes WHERE s > c.min) z",
        "SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN c.tags) FROM c",
        "SELECT VALUE ARRAY(SELECT VALUE t.name FROM t IN c.tags WHERE t.x = c.x) FROM c",
        "SELECT * FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 'a')",
        "SELECT VALUE (SELECT VALUE t FROM t IN c.tags ORDER BY t.name) FROM c",
        "SELECT VALUE s.n FROM (SELECT COUNT(1) AS n FROM c) s",
        "SELECT COUNT(1) FROM (SELECT DISTINCT c.a FROM c)",
        "SELECT VALUE t FROM (SELECT VALUE c.a FROM c) t WHERE t > 1",
        "SELECT VALUE (SELECT VALUE c FROM c IN c.tags) FROM c",
        "SELECT c.a, COUNT(1) FROM c GROUP BY c.a",
        "SELECT VALUE COUNT(1) FROM c GROUP BY c.a",
        "SELECT LOWER(c.a) AS l, COUNT(1) AS n FROM c GROUP BY LOWER(c.a)",
        "SELECT UPPER(c.a), c.a.b, c['a'], 1, @p FROM c GROUP BY c.a",
        "SELECT c.a || c.b AS ab FROM c GROUP BY c.a, c.b",
        "SELECT COUNT(1) + MAX(c.a) * 2 AS x FROM c",
        "SELECT {'n': COUNT(1), 'k': c.a} AS o FROM c GROUP BY c.a",
        "SELECT VALUE (SELECT VALUE COUNT(t) FROM t IN c.a) FROM c GROUP BY c.a",
        "SELECT MAKELIST(c.a), MAKESET(c.a), COUNTIF(c.a > 1), SUM(c.a), AVG(c.a), MIN(c.a) FROM c",
        "SELECT * FROM c ORDER BY c.a",
        "SELECT * FROM c ORDER BY c.a.b DESC, c['d e'] ASC",
        "SELECT c.id FROM c JOIN t IN c.tags ORDER BY c.a",
        "SELECT * FROM c.child ORDER BY child.a",
        "SELECT VALUE COUNT(1) FROM c ORDER BY c.a",
        "SELECT TOP 0 * FROM c",
        "SELECT TOP @n * FROM c",
        "SELECT TOP 4294967295 * FROM c",
        "SELECT * FROM c OFFSET 0 LIMIT 4294967295",
        "SELECT * FROM c OFFSET @n LIMIT @n",
        "SELECT VALUE udf.f(c.a, 1) FROM c",
        "SELECT VALUE NOW() FROM c",
        "SELECT VALUE NOW('day', 1) FROM c",
        "SELECT c.a, 1, 2, c.b FROM c",
        /* as LINQ writes them */
        "SELECT VALUE root FROM root JOIN (SELECT VALUE EXISTS(SELECT VALUE v2 FROM root JOIN v2 "
        "IN "
        "root[\"tags\"] WHERE (v2 = \"a\"))) AS v1 WHERE v1",
        "SELECT VALUE {\"item\": root[\"x\"]} FROM root ORDER BY root[\"x\"] ASC OFFSET 0 LIMIT 5",
        "SELECT * FROM c WHERE c.a LIKE 'x' ESCAPE '\xE2\x82\xAC'",
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        resolved(arena, known[i],
                 "[{\"name\":\"@n\",\"value\":5.0},{\"name\":\"@p\",\"value\":\"x\"}]");
}

#define GROUP_FAULT(what)                                                                          \
    "Property reference '" what "' is invalid in the select list because it is not contained in "  \
    "either an aggregate function or the GROUP BY clause."
#define NAME_FAULT(what)                                                                           \
    "Identifier '" what "' is invalid in the select list because it is not contained in an "       \
    "aggregate function or the GROUP BY clause."
#define PATH_FAULT                                                                                 \
    "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document "     \
    "path."
#define AGGREGATE_FAULT                                                                            \
    "Cannot perform an aggregate function on an expression containing an aggregate or a subquery."

static void unsound_queries_are_refused_with_code_and_place(void **state UNUSED)
{
    static const struct {
        const char *text, *code;
        uint32_t start, end;
        const char *message;
    } known[] = {
        {"SELECT c.a", "SC2001", 7, 8, "Identifier 'c' could not be resolved."},
        {"SELECT d.a FROM c", "SC2001", 7, 8, "Identifier 'd' could not be resolved."},
        {"SELECT C.a FROM c", "SC2001", 7, 8, "Identifier 'C' could not be resolved."},
        {"SELECT c.a FROM c AS d", "SC2001", 7, 8, "Identifier 'c' could not be resolved."},
        {"SELECT root.a FROM c", "SC2001", 7, 11, "Identifier 'root' could not be resolved."},
        {"SELECT 1 FROM c WHERE x", "SC2001", 22, 23, "Identifier 'x' could not be resolved."},
        {"SELECT 1 FROM c GROUP BY x", "SC2001", 25, 26, "Identifier 'x' could not be resolved."},
        {"SELECT c.a AS x FROM c ORDER BY x", "SC2001", 32, 33,
         "Identifier 'x' could not be resolved."},
        {"SELECT 1 FROM c d JOIN t IN c.tags", "SC2001", 28, 29,
         "Identifier 'c' could not be resolved."},
        {"SELECT 1 FROM c JOIN t IN u.x JOIN u IN c.u", "SC2001", 26, 27,
         "Identifier 'u' could not be resolved."},
        {"SELECT VALUE (SELECT VALUE 1 FROM d) FROM c", "SC2001", 34, 35,
         "Identifier 'd' could not be resolved."},
        {"SELECT VALUE (SELECT VALUE 1 FROM c)", "SC2001", 34, 35,
         "Identifier 'c' could not be resolved."},
        {"SELECT t FROM c WHERE EXISTS(SELECT 1 FROM t IN c.tags)", "SC2001", 7, 8,
         "Identifier 't' could not be resolved."},
        {"SELECT BAD(1)", "SC2005", 7, 10, "'BAD' is not a recognized built-in function name."},
        {"SELECT HASH(1)", "SC2005", 7, 11, "'HASH' is not a recognized built-in function name."},
        {"SELECT n\xC3\xA9(1)", "SC2005", 7, 9,
         "'n\xC3\xA9' is not a recognized built-in function name."},
        {"SELECT startswith('a')", "SC2050", 7, 22,
         "The STARTSWITH function requires 2 to 3 argument(s)."},
        {"SELECT ABS()", "SC2050", 7, 12, "The ABS function requires 1 argument(s)."},
        {"SELECT ABS(1, 2)", "SC2050", 7, 16, "The ABS function requires 1 argument(s)."},
        {"SELECT PI(1)", "SC2050", 7, 12, "The PI function requires 0 argument(s)."},
        {"SELECT CONCAT('a')", "SC2050", 7, 18,
         "The CONCAT function requires at least 2 argument(s)."},
        {"SELECT NOW('day')", "SC2050", 7, 17, "The NOW function requires 0 to 2 argument(s)."},
        {"SELECT COUNT() FROM c", "SC2050", 7, 14, "The COUNT function requires 1 argument(s)."},
        {"SELECT *", "SC2040", 7, 8, "'SELECT *' is not valid if FROM clause is omitted."},
        {"SELECT * FROM c GROUP BY c.a", "SC2041", 7, 8,
         "'SELECT *' is not allowed with GROUP BY."},
        {"SELECT * FROM c JOIN t IN c.t", "SC2040", 7, 8,
         "'SELECT *' is only valid with a single input set."},
        {"SELECT c.a, c.b AS a FROM c", "", 12, 20, "The column name 'a' is used more than once."},
        {"SELECT c.a, d.a FROM c JOIN d IN c.d", "", 12, 15,
         "The column name 'a' is used more than once."},
        {"SELECT 1 AS $1, 2 FROM c", "", 16, 17, "The column name '$1' is used more than once."},
        {"SELECT VALUE {a: 1, b: 2, 'a': 3}", "", 26, 29,
         "The property name 'a' is used more than once."},
        {"SELECT 1 FROM c JOIN c IN c.t", "", 21, 29,
         "The alias 'c' is used by two sources of FROM."},
        {"SELECT TOP 1.5 * FROM c", "SC2060", 11, 14,
         "The count value provided for a TOP clause must be an integer."},
        {"SELECT TOP @s * FROM c", "SC2060", 11, 13,
         "The count value provided for a TOP clause must be an integer."},
        {"SELECT TOP @neg * FROM c", "SC2060", 11, 15,
         "The count value provided for a TOP clause must be an integer."},
        {"SELECT TOP 4294967296 * FROM c", "SC2060", 11, 21,
         "The count value provided for a TOP clause must be an integer."},
        {"SELECT * FROM c OFFSET 0 LIMIT 4294967296", "SC2061", 31, 41,
         "The LIMIT count value exceeds the maximum allowed value."},
        {"SELECT * FROM c OFFSET 4294967296 LIMIT 1", "SC2062", 23, 33,
         "The OFFSET count value exceeds the maximum allowed value."},
        {"SELECT TOP 1 * FROM c OFFSET 0 LIMIT 1", "", 29, 30,
         "TOP and OFFSET LIMIT cannot be used together."},
        {"SELECT SUM(COUNT(c.a)) FROM c", "SC2101", 7, 22, AGGREGATE_FAULT},
        {"SELECT SUM(1 + ABS(MAX(c.a))) FROM c", "SC2101", 7, 29, AGGREGATE_FAULT},
        {"SELECT SUM((SELECT VALUE 1)) FROM c", "SC2101", 7, 28, AGGREGATE_FAULT},
        {"SELECT COUNT(EXISTS(SELECT 1)) FROM c", "SC2101", 7, 30, AGGREGATE_FAULT},
        {"SELECT s.score, COUNT(1) FROM s", "SC2102", 7, 14, GROUP_FAULT("s.score")},
        {"SELECT c.a.b, COUNT(1) FROM c", "SC2102", 7, 12, GROUP_FAULT("c.a.b")},
        {"SELECT c.b FROM c GROUP BY c.a", "SC2102", 7, 10, GROUP_FAULT("c.b")},
        {"SELECT c.a FROM c GROUP BY c.a.b", "SC2102", 7, 10, GROUP_FAULT("c.a")},
        {"SELECT LOWER(c.b) FROM c GROUP BY c.a", "SC2102", 13, 16, GROUP_FAULT("c.b")},
        {"SELECT COUNT(1) + c.a AS x FROM c", "SC2102", 18, 21, GROUP_FAULT("c.a")},
        {"SELECT c.t[0] FROM c GROUP BY c.a", "SC2102", 7, 13, GROUP_FAULT("c.t[0]")},
        {"SELECT c, COUNT(1) FROM c", "SC2104", 7, 8, NAME_FAULT("c")},
        {"SELECT VALUE c FROM c GROUP BY c.a", "SC2104", 13, 14, NAME_FAULT("c")},
        {"SELECT VALUE (SELECT VALUE COUNT(t) FROM t IN c.b) FROM c GROUP BY c.a", "SC2102", 46, 49,
         GROUP_FAULT("c.b")},
        {"SELECT VALUE (SELECT VALUE MAX(c.b)) FROM c GROUP BY c.a", "SC2102", 31, 34,
         GROUP_FAULT("c.b")},
        {"SELECT 1 FROM c WHERE COUNT(1) > 1", "", 22, 30,
         "The aggregate function COUNT is not allowed in the WHERE clause."},
        {"SELECT 1 FROM c GROUP BY MAX(c.a)", "", 25, 33,
         "The aggregate function MAX is not allowed in the GROUP BY clause."},
        {"SELECT c.a FROM c ORDER BY SUM(c.a)", "", 27, 35,
         "The aggregate function SUM is not allowed in the ORDER BY clause."},
        {"SELECT * FROM c ORDER BY c", "2206", 0, 0, PATH_FAULT},
        {"SELECT * FROM c ORDER BY 1", "2206", 0, 0, PATH_FAULT},
        {"SELECT * FROM c ORDER BY LOWER(c.a)", "2206", 0, 0, PATH_FAULT},
        {"SELECT * FROM c ORDER BY c.a + 1", "2206", 0, 0, PATH_FAULT},
        {"SELECT * FROM c ORDER BY -c.a", "2206", 0, 0, PATH_FAULT},
        {"SELECT * FROM c ORDER BY c.tags[0]", "2206", 0, 0, PATH_FAULT},
        {"SELECT * FROM c ORDER BY @s", "2206", 0, 0, PATH_FAULT},
        {"SELECT * FROM (SELECT c.a FROM c) t ORDER BY t.a", "2206", 0, 0, PATH_FAULT},
        {"SELECT VALUE (SELECT VALUE t FROM t IN c.t ORDER BY t.x + 1) FROM c", "2206", 0, 0,
         PATH_FAULT},
        {"SELECT t.a FROM c JOIN t IN c.t ORDER BY t.a", "", 41, 44,
         "Order-by over correlated collections is not supported."},
        {"SELECT * FROM t IN c.t ORDER BY t.a", "", 32, 35,
         "Order-by over correlated collections is not supported."},
        {"SELECT c.a FROM c GROUP BY c.a ORDER BY c.b", "SC2102", 40, 43,
         "Property reference 'c.b' is invalid in the ORDER BY clause because it is not contained "
         "in either an aggregate function or the GROUP BY clause."},
        {"SELECT * FROM c ORDER BY RANK LOWER(c.a)", "", 30, 40,
         "The ORDER BY RANK clause requires a scoring function."},
        {"SELECT * FROM c ORDER BY RANK LOWER(c.a) DESC", "", 0, 0,
         "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed."},
        {"SELECT 1 FROM c WHERE c.a LIKE 'x' ESCAPE '!!'", "", 42, 46,
         "The ESCAPE of a LIKE must be a single character."},
        {"SELECT 1 FROM c WHERE c.a LIKE 'x' ESCAPE ''", "", 42, 44,
         "The ESCAPE of a LIKE must be a single character."},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct sql_query *query =
            bound(arena, known[i].text,
                  "[{\"name\":\"@s\",\"value\":\"x\"},{\"name\":\"@neg\",\"value\":-1}]");
        struct sql_error error = {0};
        struct error err;

        if (sql_resolve(query, arena, &error, &err))
            fail_msg("%s was taken", known[i].text);
        if (err.code != ERROR_BAD_QUERY ||
            !slice_equal(error.message, slice_of_text(known[i].message)) ||
            strcmp(error.code, known[i].code) != 0 || error.span.start != known[i].start ||
            error.span.end != known[i].end)
            fail_msg("%s: %s, %u to %u: %.*s", known[i].text, error.code, error.span.start,
                     error.span.end, SLICE_ARG(error.message));
    }
}

static void scores_are_for_ranks_alone(void **state UNUSED)
{
    static const char *const elsewhere[] = {
        "SELECT RRF(c.a, c.b) FROM c",
        "SELECT 1 FROM c WHERE fulltextscore(c.a, 'b') > 1",
        "SELECT * FROM c ORDER BY FullTextScore(c.a, 'b')",
        "SELECT TOP 1 * FROM c ORDER BY RANK ABS(FullTextScore(c.a, 'b'))",
        "SELECT TOP 1 * FROM c ORDER BY RANK RRF(ABS(FullTextScore(c.a, 'b')), 1)",
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++) {
        assert_fails(sql_resolve(parsed(arena, elsewhere[i]), arena, NULL, &err), &err,
                     ERROR_BAD_QUERY);
        assert_contains(err.message, "ORDER BY RANK");
    }
    assert_ok(sql_resolve(parsed(arena, "SELECT TOP 1 * FROM c ORDER BY RANK RRF(FullTextScore("
                                        "c.a, 'b'), FullTextScore(c.b, 'c'))"),
                          arena, NULL, &err),
              &err);
}

static void every_function_takes_its_least_and_most_arguments_and_no_others(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (int id = 0; id < SQL_FUNCTION_COUNT_ALL; id++) {
        const struct sql_function *function = sql_function((enum sql_function_id)id);
        bool any = function->arguments_max == SQL_ARGUMENTS_ANY;
        uint32_t most = any ? 20 : function->arguments_max;

        for (uint32_t count = 0; count <= most + 1; count++) {
            struct sql_query *query = parsed(arena, "SELECT VALUE 1 FROM c");
            struct sql_expr *call =
                sql_expr_call(arena, function, sql_expr_literal(arena, document_int32(1)));
            bool taken = count >= function->arguments_min && (any || count <= most) &&
                         !(id == SQL_FUNCTION_NOW && count == 1);
            struct sql_error error = {.code = ""};
            struct error err;

            call->call.arguments.count = 0;
            for (uint32_t i = 0; i < count; i++)
                sql_exprs_add(arena, &call->call.arguments,
                              sql_expr_literal(arena, document_int32(1)));
            query->items[0].expr = call;
            if (taken && function->kind == SQL_FUNCTION_KIND_SCORE)
                assert_fails(sql_resolve(query, arena, &error, &err), &err, ERROR_BAD_QUERY);
            else if (taken && function->kind != SQL_FUNCTION_KIND_REFUSED)
                assert_ok(sql_resolve(query, arena, &error, &err), &err);
            else if (taken)
                assert_fails(sql_resolve(query, arena, &error, &err), &err,
                             ERROR_QUERY_NOT_SUPPORTED);
            else
                assert_fails(sql_resolve(query, arena, &error, &err), &err, ERROR_BAD_QUERY);
            assert_string_equal(error.code, taken ? "" : "SC2050");
        }
        arena_reset(arena);
    }
}

static void columns_are_named_by_alias_last_step_or_number(void **state UNUSED)
{
    static const char *const names[] = {"a", "x", "$1", "y z", "$2", "d", "c", "$3"};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct sql_query *query = resolved(
        arena, "SELECT c.a, c.b AS x, 1, c['y z'], c.t[0], 'q' d, c, (SELECT VALUE 1) FROM c",
        NULL);

    assert_int_equal(query->item_count, ARRAY_LEN(names));
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_slice_equal(query->items[i].column, slice_of_text(names[i]));
}

static void names_know_their_sources(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct sql_query *query =
        resolved(arena, "SELECT t, (SELECT VALUE t FROM t IN c.u) AS u FROM c JOIN t IN c.t", NULL);
    const struct sql_query *inner = query->items[1].expr->subquery.query;

    assert_true(query->sources[0]->root);
    assert_false(query->sources[1]->root);
    assert_ptr_equal(first_of(query)->name.source, query->sources[1]);
    assert_ptr_equal(first_of(inner)->name.source, inner->sources[0]);
    assert_ptr_equal(inner->sources[0]->path->member.object->name.source, query->sources[0]);
    assert_int_equal(query->sources[0]->slot, 0);
    assert_int_equal(query->sources[1]->slot, 1);
    assert_int_equal(inner->sources[0]->slot, 2);
    assert_true(inner->correlated);
    assert_false(query->correlated);
}

static void aggregates_belong_to_the_query_they_are_selected_by(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct sql_query *query =
        resolved(arena, "SELECT (SELECT VALUE COUNT(t) FROM t IN c.t) AS n FROM c", NULL);

    assert_false(query->aggregates);
    assert_true(first_of(query)->subquery.query->aggregates);
    assert_false(first_of(query)->subquery.query->sources[0]->root);
    assert_false(sql_has_aggregate(first_of(query)));
    query = resolved(arena, "SELECT VALUE 1 + COUNT(1) FROM c", NULL);
    assert_true(query->aggregates);
    assert_true(sql_has_aggregate(first_of(query)));
    assert_false(sql_is_aggregate(first_of(query)));
}

static void amounts_are_read_from_literals_and_parameters(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct sql_query *query = parsed(arena, "SELECT * FROM c OFFSET 3 LIMIT @l");
    uint32_t number = 0;

    assert_true(sql_amount(query->offset, &number));
    assert_int_equal(number, 3);
    assert_false(sql_amount(query->limit, &number));
    query = bound(arena, "SELECT TOP @n * FROM c", "[{\"name\":\"@n\",\"value\":7.0}]");
    assert_true(sql_amount(query->top, &number));
    assert_int_equal(number, 7);
}

static void a_condition_is_resolved_like_a_query(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct sql_query *query;
    struct sql_error error;
    struct error err;

    assert_ok(sql_parse_condition(SLICE("FROM c WHERE c.a = 1"), NULL, arena, &query, &error, &err),
              &err);
    assert_ok(sql_resolve(query, arena, &error, &err), &err);
    assert_ok(sql_parse_condition(SLICE("FROM c WHERE d.a = 1"), NULL, arena, &query, &error, &err),
              &err);
    assert_fails(sql_resolve(query, arena, &error, &err), &err, ERROR_BAD_QUERY);
    assert_string_equal(error.code, "SC2001");
}

static void computed_properties_are_one_value_of_the_whole_item(void **state UNUSED)
{
    static const struct {
        const char *text;
        const char *message; /* NULL: taken */
    } known[] = {
        {"SELECT VALUE LOWER(c.name) FROM c", NULL},
        {"SELECT VALUE c.price * 0.9 FROM c", NULL},
        {"SELECT VALUE {a: r.a} FROM root r", NULL},
        {"SELECT LOWER(c.name) FROM c", "SELECT VALUE"},
        {"SELECT * FROM c", "SELECT VALUE"},
        {"SELECT VALUE 1", "FROM clause"},
        {"SELECT VALUE a FROM c.a", "FROM clause"},
        {"SELECT VALUE t FROM t IN c.t", "FROM clause"},
        {"SELECT VALUE c.a FROM c JOIN t IN c.t", "FROM clause"},
        {"SELECT VALUE c FROM (SELECT VALUE d FROM d) c", "FROM clause"},
        {"SELECT VALUE c.a FROM c WHERE c.b", "WHERE"},
        {"SELECT VALUE c.a FROM c GROUP BY c.a", "GROUP BY"},
        {"SELECT VALUE c.a FROM c ORDER BY c.a", "ORDER BY"},
        {"SELECT TOP 1 VALUE c.a FROM c", "TOP"},
        {"SELECT DISTINCT VALUE c.a FROM c", "DISTINCT"},
        {"SELECT VALUE c.a FROM c OFFSET 0 LIMIT 1", "OFFSET"},
        {"SELECT VALUE (SELECT VALUE 1) FROM c", "subquery"},
        {"SELECT VALUE [EXISTS(SELECT VALUE 1)] FROM c", "subquery"},
        {"SELECT VALUE COUNT(1) FROM c", "aggregate"},
        {"SELECT VALUE 1 + RAND() FROM c", "deterministic"},
        {"SELECT VALUE GetCurrentDateTime() FROM c", "deterministic"},
        {"SELECT VALUE udf.f(c.a) FROM c", "user-defined"},
        {"SELECT VALUE c[@p] FROM c", "parameters"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct sql_query *query =
            resolved(arena, known[i].text, "[{\"name\":\"@p\",\"value\":\"x\"}]");
        struct error err;

        if (!known[i].message) {
            assert_ok(sql_resolve_computed(query, arena, NULL, &err), &err);
            continue;
        }
        if (sql_resolve_computed(query, arena, NULL, &err))
            fail_msg("%s was taken", known[i].text);
        assert_contains(err.message, known[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_queries_are_taken),
        cmocka_unit_test(unsound_queries_are_refused_with_code_and_place),
        cmocka_unit_test(scores_are_for_ranks_alone),
        cmocka_unit_test(every_function_takes_its_least_and_most_arguments_and_no_others),
        cmocka_unit_test(columns_are_named_by_alias_last_step_or_number),
        cmocka_unit_test(names_know_their_sources),
        cmocka_unit_test(aggregates_belong_to_the_query_they_are_selected_by),
        cmocka_unit_test(amounts_are_read_from_literals_and_parameters),
        cmocka_unit_test(a_condition_is_resolved_like_a_query),
        cmocka_unit_test(computed_properties_are_one_value_of_the_whole_item),
    };
    return cmocka_run_group_tests_name("front/rest/sql/resolve", tests, NULL, NULL);
}
