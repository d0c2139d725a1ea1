#include "fixture.h"

static void trees_differ_in_what_they_say_and_not_in_where(void **state UNUSED)
{
    static const char *const same[][2] = {
        {"SELECT c.a FROM c", "select   c [ 'a' ] from c"},
        {"SELECT lower(c.a) FROM c", "SELECT LOWER(c.a) FROM c"},
        {"SELECT * FROM c WHERE (c.a AND c.b) AND c.d",
         "SELECT * FROM c WHERE c.a AND c.b AND c.d"},
        {"SELECT 0x10", "SELECT 16"},
        {"SELECT * FROM c ORDER BY c.a ASC", "SELECT * FROM c ORDER BY c.a"},
    };
    /* No two of these are equal. */
    static const char *const different[] = {
        "SELECT 1",
        "SELECT 1.0",
        "SELECT '1'",
        "SELECT VALUE 1",
        "SELECT DISTINCT 1",
        "SELECT TOP 1 1",
        "SELECT TOP 2 1",
        "SELECT 1, 2",
        "SELECT 1 AS a",
        "SELECT 1 WHERE true",
        "SELECT 1 WHERE false",
        "SELECT 1 FROM c",
        "SELECT 1 FROM c AS c",
        "SELECT 1 FROM c AS d",
        "SELECT 1 FROM c IN c",
        "SELECT 1 FROM c.c",
        "SELECT 1 FROM (SELECT 1)",
        "SELECT 1 FROM (SELECT 2)",
        "SELECT 1 GROUP BY 1",
        "SELECT 1 ORDER BY 1",
        "SELECT 1 ORDER BY 1 DESC",
        "SELECT 1 OFFSET 0 LIMIT 1",
        "SELECT 1 OFFSET 0 LIMIT 2",
        "SELECT undefined",
        "SELECT null",
        "SELECT true",
        "SELECT @a",
        "SELECT @b",
        "SELECT c.a",
        "SELECT c[0]",
        "SELECT c[1]",
        "SELECT [1]",
        "SELECT [1, 2]",
        "SELECT {a: 1}",
        "SELECT {b: 1}",
        "SELECT {a: 2}",
        "SELECT f(1)",
        "SELECT udf.f(1)",
        "SELECT udf.F(1)",
        "SELECT EXISTS(SELECT 1)",
        "SELECT ARRAY(SELECT 1)",
        "SELECT -1",
        "SELECT +1",
        "SELECT 1 + 1",
        "SELECT 1 - 1",
        "SELECT 1 AND 1",
        "SELECT 1 OR 1",
        "SELECT 1 AND (1 AND 1)",
        "SELECT 1 AND 1 AND 1",
        "SELECT 1 ? 2 : 3",
        "SELECT 1 BETWEEN 2 AND 3",
        "SELECT 1 NOT BETWEEN 2 AND 3",
        "SELECT 1 IN (2)",
        "SELECT 1 NOT IN (2)",
        "SELECT 1 LIKE 'a'",
        "SELECT 1 NOT LIKE 'a'",
        "SELECT 1 LIKE 'a' ESCAPE 'b'",
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(same); i++)
        if (!sql_query_equal(parsed(arena, same[i][0]), parsed(arena, same[i][1])))
            fail_msg("%s differs from %s", same[i][0], same[i][1]);
    for (size_t i = 0; i < ARRAY_LEN(different); i++)
        for (size_t j = 0; j < ARRAY_LEN(different); j++)
            if (sql_query_equal(parsed(arena, different[i]), parsed(arena, different[j])) !=
                (i == j))
                fail_msg("%s and %s", different[i], different[j]);
}

static bool count_one(struct sql_expr *child UNUSED, void *context)
{
    unsigned *left = context;

    return --*left > 0;
}

static void a_visitor_can_stop(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct sql_query *query = parsed(arena, "SELECT [1, 2, 3]");
    unsigned left = 2;

    assert_false(sql_expr_each(first_of(query), count_one, &left));
    assert_int_equal(left, 0);
    left = 4;
    assert_true(sql_expr_each(first_of(query), count_one, &left));
    assert_int_equal(left, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_differ_in_what_they_say_and_not_in_where),
        cmocka_unit_test(a_visitor_can_stop),
    };
    return cmocka_run_group_tests_name("front/rest/sql/ast", tests, NULL, NULL);
}
