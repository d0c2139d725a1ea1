/* What the parser makes of a text is looked at through the printer: parentheses everywhere. */
#include "fixture.h"

static void expressions_bind_by_precedence(void **state UNUSED)
{
    static const struct {
        const char *text, *printed;
    } known[] = {
        {"1 + 2 * 3", "(1 + (2 * 3))"},
        {"1 * 2 + 3", "((1 * 2) + 3)"},
        {"(1 + 2) * 3", "((1 + 2) * 3)"},
        {"1 - 2 - 3", "((1 - 2) - 3)"},
        {"8 / 4 % 3", "((8 / 4) % 3)"},
        {"1 + 2 << 3", "((1 + 2) << 3)"},
        {"1 << 2 >> 3 >>> 4", "(((1 << 2) >> 3) >>> 4)"},
        {"1 < 2 = true", "((1 < 2) = true)"},
        {"1 <= 2 != 3 > 4", "((1 <= 2) != (3 > 4))"},
        {"1 <> 2", "(1 != 2)"},
        {"1 & 2 = 3", "(1 & (2 = 3))"},
        {"1 | 2 ^ 3 & 4", "(1 | (2 ^ (3 & 4)))"},
        {"'a' || 'b' || 'c'", "((\"a\" || \"b\") || \"c\")"},
        {"'a' || 1 | 2", "(\"a\" || (1 | 2))"},
        {"a.x = 1 AND a.y = 2", "((a.x = 1) AND (a.y = 2))"},
        {"a.x OR a.y AND a.z", "(a.x OR (a.y AND a.z))"},
        {"a.x AND a.y OR a.z", "((a.x AND a.y) OR a.z)"},
        {"a.x AND a.y AND a.z", "(a.x AND a.y AND a.z)"},
        {"(a.x AND a.y) AND a.z", "(a.x AND a.y AND a.z)"},
        {"a.x AND (a.y AND a.z)", "(a.x AND (a.y AND a.z))"},
        {"a.x OR (a.y OR a.z)", "(a.x OR (a.y OR a.z))"},
        {"a.x ?? a.y ?? 0", "((a.x ?? a.y) ?? 0)"},
        {"a.x ?? a.y OR a.z", "(a.x ?? (a.y OR a.z))"},
        {"a.x ? 1 : 2", "(a.x ? 1 : 2)"},
        {"a.x ?? a.y ? 1 : 2", "((a.x ?? a.y) ? 1 : 2)"},
        {"a.x ? a.y ? 1 : 2 : 3", "(a.x ? (a.y ? 1 : 2) : 3)"},
        {"a.x ? 1 : a.y ? 2 : 3", "(a.x ? 1 : (a.y ? 2 : 3))"},
        {"NOT a.x", "(NOT a.x)"},
        {"!a.x", "(NOT a.x)"},
        {"NOT NOT a.x", "(NOT (NOT a.x))"},
        {"NOT a.x AND a.y", "((NOT a.x) AND a.y)"},
        {"NOT a.x = 1", "((NOT a.x) = 1)"},
        {"-a.x", "(-a.x)"},
        {"- -1", "(-(-1))"},
        {"+-~1", "(+(-(~1)))"},
        {"-1 + 2", "((-1) + 2)"},
        {"1 - -2", "(1 - (-2))"},
        {"-a.x.y[0]", "(-a.x.y[0])"},
        {"a.x BETWEEN 1 AND 2", "(a.x BETWEEN 1 AND 2)"},
        {"a.x NOT BETWEEN 1 AND 2", "(a.x NOT BETWEEN 1 AND 2)"},
        {"a.x BETWEEN 1 AND 2 AND a.y", "((a.x BETWEEN 1 AND 2) AND a.y)"},
        {"a.x + 1 BETWEEN 1 + 1 AND 2 << 1", "((a.x + 1) BETWEEN (1 + 1) AND (2 << 1))"},
        {"a.x IN (1)", "(a.x IN (1))"},
        {"a.x IN (1, 'b', a.y)", "(a.x IN (1, \"b\", a.y))"},
        {"a.x NOT IN (1, 2) OR a.y", "((a.x NOT IN (1, 2)) OR a.y)"},
        {"a.x IN (1) = true", "((a.x IN (1)) = true)"},
        {"NOT a.x IN (1)", "((NOT a.x) IN (1))"},
        {"a.x = a.y IN (1)", "((a.x = a.y) IN (1))"},
        {"a.x || a.y IN ('a')", "((a.x || a.y) IN (\"a\"))"},
        {"a.x || a.y LIKE 'a' || '%'", "((a.x || a.y) LIKE (\"a\" || \"%\"))"},
        {"a.x | 1 BETWEEN a.y & 1 AND 2 = 2 AND a.z",
         "(((a.x | 1) BETWEEN (a.y & 1) AND (2 = 2)) AND a.z)"},
        {"a.x IN (1) OR a.y IN (2) AND a.z", "((a.x IN (1)) OR ((a.y IN (2)) AND a.z))"},
        {"a.x LIKE 'a%'", "(a.x LIKE \"a%\")"},
        {"a.x NOT LIKE 'a!%' ESCAPE '!'", "(a.x NOT LIKE \"a!%\" ESCAPE \"!\")"},
        {"a.x LIKE 'a%' AND a.y", "((a.x LIKE \"a%\") AND a.y)"},
        {"a.x LIKE CONCAT('a', '%')", "(a.x LIKE CONCAT(\"a\", \"%\"))"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        const char *text =
            (char *)arena_printf(arena, "SELECT VALUE %s FROM a%c", known[i].text, 0).data;
        const char *wanted =
            (char *)arena_printf(arena, "SELECT VALUE %s FROM a%c", known[i].printed, 0).data;

        assert_string_equal(printed(arena, parsed(arena, text)), wanted);
    }
}

static void operands_are_of_every_kind(void **state UNUSED)
{
    static const struct {
        const char *text, *printed;
    } known[] = {
        {"undefined", "undefined"},
        {"NULL", "null"},
        {"True", "true"},
        {"false", "false"},
        {"0x1F", "31"},
        {"1.50", "1.5"},
        {"[.5, 1 + .5]", "[0.5, (1 + 0.5)]"},
        {"1.0", "1.0"},
        {"1e21", "1e+21"},
        {"9223372036854775808", "9223372036854775808.0"},
        {"'it\\'s'", "\"it's\""},
        {"@p", "@p"},
        {"[]", "[]"},
        {"[1, [2, 'a']]", "[1, [2, \"a\"]]"},
        {"{}", "{}"},
        {"{a: 1, 'b c': 2, \"value\": {select: 3}}",
         "{\"a\": 1, \"b c\": 2, \"value\": {\"select\": 3}}"},
        {"c", "c"},
        {"c.a.b", "c.a.b"},
        {"c['a'].b", "c.a.b"},
        {"c[\"a b\"]", "c[\"a b\"]"},
        {"c.value.order[\"from\"]", "c[\"value\"][\"order\"][\"from\"]"},
        {"c.tags[0].x", "c.tags[0].x"},
        {"c.tags[c.i + 1]", "c.tags[(c.i + 1)]"},
        {"c.tags[@p]", "c.tags[@p]"},
        {"c[(\"a\")]", "c.a"},
        {"c['']", "c[\"\"]"},
        {"c['1a']", "c[\"1a\"]"},
        {"c.\xC3\xA9t\xC3\xA9", "c.\xC3\xA9t\xC3\xA9"},
        {"[1,2][0]", "[1, 2][0]"},
        {"{a: 1}.a", "{\"a\": 1}.a"},
        {"'abc'.x", "\"abc\".x"},
        {"lower(c.a)", "lower(c.a)"},
        {"PI()", "PI()"},
        {"LEFT(c.a, 1)", "LEFT(c.a, 1)"},
        {"CONCAT('a', 'b').c", "CONCAT(\"a\", \"b\").c"},
        {"udf.f()", "udf.f()"},
        {"UDF.order(c, 1)", "udf.order(c, 1)"},
        {"(SELECT VALUE 1)", "(SELECT VALUE 1)"},
        {"(SELECT VALUE c.a).b", "(SELECT VALUE c.a).b"},
        {"EXISTS(SELECT 1)", "EXISTS(SELECT 1)"},
        {"NOT exists (SELECT 1)", "(NOT EXISTS(SELECT 1))"},
        {"array(SELECT VALUE t FROM t IN c.tags)", "ARRAY(SELECT VALUE t FROM t IN c.tags)"},
        {"ALL(SELECT VALUE true)", "ALL(SELECT VALUE true)"},
        {"First (SELECT VALUE 1)", "FIRST(SELECT VALUE 1)"},
        {"LAST(SELECT VALUE 1)", "LAST(SELECT VALUE 1)"},
        {"last(c.a)", "last(c.a)"},
        {"first.all", "first.all"},
        {"((((1))))", "1"},
        {"COUNT(1)", "COUNT(1)"},
        {"c /* here */ . -- there\n a", "c.a"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        const char *text =
            (char *)arena_printf(arena, "SELECT VALUE %s FROM c%c", known[i].text, 0).data;
        const char *wanted =
            (char *)arena_printf(arena, "SELECT VALUE %s FROM c%c", known[i].printed, 0).data;

        assert_string_equal(printed(arena, parsed(arena, text)), wanted);
    }
}

static void queries_have_every_clause(void **state UNUSED)
{
    static const struct {
        const char *text, *printed; /* NULL: the same */
    } known[] = {
        {"SELECT 1", NULL},
        {"select*from c", "SELECT * FROM c"},
        {"SELECT DISTINCT TOP 5 VALUE c.n FROM c", NULL},
        {"SELECT TOP @n * FROM c", NULL},
        {"SELECT DISTINCT * FROM c", NULL},
        {"SELECT c.a, c.b b, c.d AS e FROM c", "SELECT c.a, c.b AS b, c.d AS e FROM c"},
        {"SELECT VALUE c.a AS b FROM c", NULL},
        {"SELECT VALUE c.a b FROM c", "SELECT VALUE c.a AS b FROM c"},
        {"SELECT * FROM root", NULL},
        {"SELECT * FROM ROOT r", "SELECT * FROM ROOT AS r"},
        {"SELECT * FROM c AS d", NULL},
        {"SELECT * FROM c.a.b", NULL},
        {"SELECT * FROM c.a['b c'][0] x", "SELECT * FROM c.a[\"b c\"][0] AS x"},
        {"SELECT * FROM x IN c.tags", NULL},
        {"SELECT * FROM x IN @p", NULL},
        {"SELECT * FROM @p.a p", "SELECT * FROM @p.a AS p"},
        {"SELECT * FROM x IN (SELECT VALUE c.tags FROM c)", NULL},
        {"SELECT * FROM (SELECT VALUE c.a FROM c) x",
         "SELECT * FROM (SELECT VALUE c.a FROM c) AS x"},
        {"SELECT * FROM (SELECT VALUE c.a FROM c)", NULL},
        {"SELECT r FROM c JOIN r in reference('a') JOIN s IN REFERENCE(\"d\\u0062\", 'x\"') ",
         "SELECT r FROM c JOIN r IN REFERENCE(\"a\") JOIN s IN REFERENCE(\"db\", \"x\\\"\")"},
        {"SELECT r FROM c JOIN r IN reference", "SELECT r FROM c JOIN r IN reference"},
        {"SELECT c FROM c JOIN t IN c.tags JOIN (SELECT VALUE s FROM s IN c.sizes WHERE s > 1) z",
         "SELECT c FROM c JOIN t IN c.tags JOIN (SELECT VALUE s FROM s IN c.sizes WHERE (s > 1)) "
         "AS z"},
        {"SELECT * FROM c WHERE c.a", NULL},
        {"SELECT c.a FROM c GROUP BY c.a", NULL},
        {"SELECT c.a FROM c group by c.a, LOWER(c.b)",
         "SELECT c.a FROM c GROUP BY c.a, LOWER(c.b)"},
        {"SELECT * FROM c ORDER BY c.a", NULL},
        {"SELECT * FROM c ORDER BY c.a ASC, c.b DESC", "SELECT * FROM c ORDER BY c.a, c.b DESC"},
        {"SELECT * FROM c ORDER BY RANK FullTextScore(c.a, 'b')",
         "SELECT * FROM c ORDER BY RANK FullTextScore(c.a, \"b\")"},
        {"SELECT * FROM c ORDER BY rank", NULL},
        {"SELECT * FROM c ORDER BY rank.a DESC", NULL},
        {"SELECT * FROM c OFFSET 1 LIMIT 2", NULL},
        {"SELECT * FROM c OFFSET @o LIMIT @l", NULL},
        {"SELECT VALUE 1 WHERE true", NULL},
        {"SELECT c.a FROM c WHERE c.b = 1 GROUP BY c.a ORDER BY c.a OFFSET 0 LIMIT 10",
         "SELECT c.a FROM c WHERE (c.b = 1) GROUP BY c.a ORDER BY c.a OFFSET 0 LIMIT 10"},
        {"SELECT all, first, last, rank, root FROM all", NULL},
        {"SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c AS payload FROM c WHERE (true) ORDER "
         "BY c.a",
         "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c AS payload FROM c WHERE true ORDER "
         "BY "
         "c.a"},
        {" \t\r\n SELECT 1 -- that is all", "SELECT 1"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        assert_string_equal(printed(arena, parsed(arena, known[i].text)),
                            known[i].printed ? known[i].printed : known[i].text);
}

static void what_is_no_query_is_refused_near_where_it_fails(void **state UNUSED)
{
    static const struct {
        const char *text;
        uint32_t start, end;
        const char *near;
    } known[] = {
        {"", 0, 0, ""},
        {"SELECT", 0, 6, "SELECT"},
        {"SELEC * FROM c", 0, 5, "SELEC"},
        {"SELECT FROM c", 7, 11, "FROM"},
        {"SELECT VALUE * FROM c", 13, 14, "*"},
        {"SELECT c.* FROM c", 9, 10, "*"},
        {"SELECT *, c.a FROM c", 8, 9, ","},
        {"SELECT * FROM", 9, 13, "FROM"},
        {"SELECT * FROM c;", 15, 16, ";"},
        {"SELECT * FROM c c d", 18, 19, "d"},
        {"SELECT * FROM c WHERE", 16, 21, "WHERE"},
        {"SELECT * FROM c WHERE c.a =", 26, 27, "="},
        {"SELECT * FROM c WHERE c.a = = 1", 28, 29, "="},
        {"SELECT * FROM c WHERE (c.a = 1", 29, 30, "1"},
        {"SELECT * FROM c WHERE c.a = 1)", 29, 30, ")"},
        {"SELECT * FROM c WHERE c.a IN ()", 30, 31, ")"},
        {"SELECT * FROM c WHERE c.a IN 1", 29, 30, "1"},
        {"SELECT * FROM c WHERE c.a IN (1,)", 32, 33, ")"},
        {"SELECT * FROM c WHERE c.a BETWEEN 1", 34, 35, "1"},
        {"SELECT * FROM c WHERE c.a BETWEEN 1 OR 2", 36, 38, "OR"},
        {"SELECT * FROM c WHERE c.a LIKE", 26, 30, "LIKE"},
        {"SELECT * FROM c WHERE c.a LIKE 'a' ESCAPE 1", 42, 43, "1"},
        {"SELECT * FROM c WHERE c.a NOT 1", 26, 29, "NOT"},
        {"SELECT * FROM c WHERE c.a ? 1", 28, 29, "1"},
        {"SELECT * FROM c WHERE EXISTS(1)", 29, 30, "1"},
        {"SELECT * FROM c WHERE ARRAY(c.a)", 28, 29, "c"},
        {"SELECT * FROM c WHERE EXISTS", 22, 28, "EXISTS"},
        {"SELECT * FROM c WHERE udf()", 25, 26, "("},
        {"SELECT * FROM c WHERE udf.f", 26, 27, "f"},
        {"SELECT * FROM c WHERE c.", 23, 24, "."},
        {"SELECT * FROM c WHERE c.1", 24, 25, "1"},
        {"SELECT * FROM c WHERE c[1", 24, 25, "1"},
        {"SELECT * FROM c WHERE {a 1}", 25, 26, "1"},
        {"SELECT * FROM c WHERE {1: 1}", 23, 24, "1"},
        {"SELECT * FROM c WHERE {a: 1,}", 28, 29, "}"},
        {"SELECT * FROM c WHERE [1,]", 25, 26, "]"},
        {"SELECT * FROM c WHERE f(1,)", 26, 27, ")"},
        {"SELECT * FROM c GROUP c.a", 22, 23, "c"},
        {"SELECT * FROM c ORDER BY", 22, 24, "BY"},
        {"SELECT * FROM c ORDER BY c.a,", 28, 29, ","},
        {"SELECT * FROM c ORDER BY c.a ASC DESC", 33, 37, "DESC"},
        {"SELECT * FROM c ORDER BY RANK f(1) = 2", 30, 38, "RANK"},
        {"SELECT * FROM c ORDER BY RANK f(1), g(2)", 34, 35, ","},
        {"SELECT * FROM c OFFSET 1", 23, 24, "1"},
        {"SELECT * FROM c LIMIT 1", 16, 21, "LIMIT"},
        {"SELECT * FROM c OFFSET -1 LIMIT 1", 23, 24, "-"},
        {"SELECT * FROM c OFFSET 'a' LIMIT 1", 23, 26, "'a'"},
        {"SELECT TOP c.a * FROM c", 11, 12, "c"},
        {"SELECT TOP -1 * FROM c", 11, 12, "-"},
        {"SELECT TOP * FROM c", 11, 12, "*"},
        {"SELECT c.a AS value FROM c", 14, 19, "value"},
        {"SELECT c.a AS 'b' FROM c", 14, 17, "'b'"},
        {"SELECT c.a 'b' FROM c", 11, 14, "'b'"},
        {"SELECT * FROM order", 14, 19, "order"},
        {"SELECT * FROM 'c'", 14, 17, "'c'"},
        {"SELECT * FROM c JOIN", 16, 20, "JOIN"},
        {"SELECT * FROM x IN", 16, 18, "IN"},
        {"SELECT * FROM x IN [1]", 19, 20, "["},
        {"SELECT * FROM (c)", 15, 16, "c"},
        {"SELECT * FROM c WHERE 'it''s' = c.a", 26, 29, "'s'"},
        {"SELECT * FROM c WHERE ({documentdb-formattableorderbyquery-filter})", 34, 35, "-"},
        {"INSERT INTO c", 0, 6, "INSERT"},
        {"from c where true", 0, 4, "from"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct sql_query *query = NULL;
        struct sql_error error = {0};
        struct error err = {0};

        if (sql_parse(slice_of_text(known[i].text), NULL, arena, &query, &error, &err))
            fail_msg("%s was taken", known[i].text);
        assert_int_equal(err.code, ERROR_BAD_QUERY);
        assert_string_equal(error.code, "SC1001");
        if (error.span.start != known[i].start || error.span.end != known[i].end)
            fail_msg("%s: at %u to %u: %s", known[i].text, error.span.start, error.span.end,
                     err.message);
        assert_contains(err.message,
                        (char *)arena_printf(arena, "near '%s'.%c", known[i].near, 0).data);
        assert_null(query);
    }
}

static void a_reference_has_names_as_texts(void **state UNUSED)
{
    static const char *const known[] = {
        "SELECT * FROM c JOIN x IN REFERENCE()",    "SELECT * FROM c JOIN x IN REFERENCE(c.name)",
        "SELECT * FROM c JOIN x IN REFERENCE(1)",   "SELECT * FROM c JOIN x IN REFERENCE('')",
        "SELECT * FROM c JOIN x IN REFERENCE('a'",  "SELECT * FROM c JOIN x IN REFERENCE('a').b",
        "SELECT * FROM c JOIN REFERENCE('a') AS x",
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct sql_error error = {0};
        struct sql_query *query;
        struct error err;

        assert_fails(sql_parse(slice_of_text(known[i]), NULL, arena, &query, &error, &err), &err,
                     ERROR_BAD_QUERY);
        assert_string_equal(error.code, "SC1001");
    }
}

static void a_path_of_from_has_fixed_steps(void **state UNUSED)
{
    static const char *const known[] = {
        "SELECT * FROM c[c.a]",
        "SELECT * FROM x IN c.tags[1 + 1]",
        "SELECT * FROM c JOIN x IN c.tags[1.5]",
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct sql_query *query;
        struct error err;

        assert_fails(sql_parse(slice_of_text(known[i]), NULL, arena, &query, NULL, &err), &err,
                     ERROR_BAD_QUERY);
        assert_contains(err.message, "path in FROM");
    }
}

static void an_object_takes_no_name_with_a_nul(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct sql_query *query;
    struct error err;

    assert_fails(sql_parse(SLICE("SELECT VALUE {'a\\u0000': 1}"), NULL, arena, &query, NULL, &err),
                 &err, ERROR_BAD_QUERY);
    assert_contains(err.message, "NUL");
}

static void sources_are_named_by_alias_or_last_step(void **state UNUSED)
{
    static const struct {
        const char *text, *alias;
        bool given, iterates;
    } known[] = {
        {"SELECT 1 FROM c", "c", false, false},
        {"SELECT 1 FROM c d", "d", true, false},
        {"SELECT 1 FROM c.a.b", "b", false, false},
        {"SELECT 1 FROM c.a['b']", "b", false, false},
        {"SELECT 1 FROM c.a['b c']", "", false, false},
        {"SELECT 1 FROM c.\xC3\xA9t\xC3\xA9", "\xC3\xA9t\xC3\xA9", false, false},
        {"SELECT 1 FROM c.order", "", false, false},
        {"SELECT 1 FROM c.a[0]", "", false, false},
        {"SELECT 1 FROM c.a[0] AS e", "e", true, false},
        {"SELECT 1 FROM t IN c.a", "t", true, true},
        {"SELECT 1 FROM (SELECT 1)", "", false, false},
        {"SELECT 1 FROM (SELECT 1) s", "s", true, false},
        {"SELECT 1 FROM s IN (SELECT VALUE [1])", "s", true, true},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        const struct sql_source *source = parsed(arena, known[i].text)->sources[0];

        assert_slice_equal(source->alias, slice_of_text(known[i].alias));
        assert_int_equal(source->alias_given, known[i].given);
        assert_int_equal(source->iterates, known[i].iterates);
    }
}

static void nodes_know_their_place_in_the_text(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct sql_query *query =
        parsed(arena, "SELECT LOWER(c.a) x FROM c WHERE c.b = 1 AND c.d");

    assert_int_equal(query->span.start, 0);
    assert_int_equal(query->span.end, 48);
    assert_int_equal(first_of(query)->span.start, 7);
    assert_int_equal(first_of(query)->span.end, 17);
    assert_int_equal(query->items[0].span.end, 19);
    assert_int_equal(query->where->span.start, 33);
    assert_int_equal(query->where->span.end, 48);
    assert_int_equal(query->where->items.items[1]->span.start, 45);
}

/* A text of head, count times piece, and tail. */
static struct slice repeated(struct arena *arena, const char *head, const char *piece, size_t count,
                             const char *tail)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    buf_append_text(&text, head);
    for (size_t i = 0; i < count; i++)
        buf_append_text(&text, piece);
    buf_append_text(&text, tail);
    return arena_copy(arena, buf_slice(&text));
}

static void limits_hold_to_the_one(void **state UNUSED)
{
    static const struct {
        const char *head, *piece, *tail;
        size_t max;
        const char *message;
    } known[] = {
        {"SELECT 1 FROM c", " JOIN t IN c.t", "", 10, "10 JOINs"},
        {"SELECT 1 FROM c WHERE c.a", " AND c.a", "", 4000, "4000 AND operators"},
        {"SELECT 1 FROM c WHERE c.a", " OR c.a", "", 2000, "2000 OR operators"},
        {"SELECT 1 FROM c WHERE c.a IN (1", ",1", ")", 15999, "16000 items of an IN"},
        {"SELECT [1", ",udf.f()", "]", 10, "10 calls of user-defined functions"},
        {"SELECT 1", "+1", "", 398, "400 levels deep"},
        {"SELECT c", ".a", " FROM c", 398, "400 levels deep"},
        {"SELECT ", "-", "1", 398, "levels deep"},
        {"SELECT * FROM c ORDER BY c.a", ",c.a", "", 63, "64 ORDER BY items"},
        {"SELECT 1 FROM c GROUP BY c.a", ",c.a", "", 63, "64 GROUP BY items"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct sql_query *query;
        struct error err;
        /* "- -" and not "--", which would be a comment. */
        const char *piece = known[i].piece[0] == '-' ? "- " : known[i].piece;

        if (!sql_parse(repeated(arena, known[i].head, piece, known[i].max, known[i].tail), NULL,
                       arena, &query, NULL, &err))
            fail_msg("%s, %zu times: %s", known[i].piece, known[i].max, err.message);
        assert_fails(
            sql_parse(repeated(arena, known[i].head, piece, known[i].max + 1, known[i].tail), NULL,
                      arena, &query, NULL, &err),
            &err, ERROR_BAD_QUERY);
        assert_contains(err.message, known[i].message);
    }
}

static void a_text_over_the_limit_is_not_read(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct sql_limits limits = SQL_LIMITS_DEFAULT;
    struct sql_query *query;
    struct error err;

    limits.text_bytes_max = 8;
    assert_ok(sql_parse(SLICE("SELECT 1"), &limits, arena, &query, NULL, &err), &err);
    assert_fails(sql_parse(SLICE("SELECT 1 "), &limits, arena, &query, NULL, &err), &err,
                 ERROR_BAD_QUERY);
    assert_contains(err.message, "exceeds the maximum of 8");
    assert_int_equal(SQL_LIMITS_DEFAULT.text_bytes_max, 512 * 1024);
}

/* However deep the text goes, the stack does not overflow: it is refused, in each way to nest. */
static void nesting_without_end_is_refused(void **state UNUSED)
{
    static const struct {
        const char *head, *piece;
    } known[] = {
        {"SELECT ", "("},
        {"SELECT ", "["},
        {"SELECT ", "{a:"},
        {"SELECT ", "- "},
        {"SELECT ", "NOT "},
        {"SELECT ", "f("},
        {"SELECT ", "udf.f("},
        {"SELECT ", "c["},
        {"SELECT ", "1 ? "},
        {"SELECT ", "1 ? 1 : "},
        {"SELECT ", "1 + ("},
        {"SELECT ", "1 IN ("},
        {"SELECT ", "c.a BETWEEN ("},
        {"", "SELECT ("},
        {"", "SELECT EXISTS("},
        {"", "SELECT 1 WHERE ("},
        {"", "SELECT * FROM ("},
        {"", "SELECT * FROM c JOIN ("},
        {"", "SELECT 1 FROM c ORDER BY ("},
        {"", "SELECT 1 FROM c GROUP BY ARRAY("},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        size_t times = (500 * 1024) / strlen(known[i].piece);
        struct sql_query *query;
        struct error err;

        assert_fails(sql_parse(repeated(arena, known[i].head, known[i].piece, times, ""), NULL,
                               arena, &query, NULL, &err),
                     &err, ERROR_BAD_QUERY);
        arena_reset(arena);
    }
}

/* Generated queries put each condition into parentheses with all before it. */
static void five_hundred_conditions_in_parentheses_are_taken(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice opened = repeated(arena, "SELECT * FROM c WHERE ", "(", 500, "(c.a = 1)");
    struct slice text = repeated(arena, arena_text(arena, opened), " OR (c.a = 1))", 500, "");
    struct sql_query *query;
    struct error err;

    assert_ok(sql_parse(text, NULL, arena, &query, NULL, &err), &err);
    assert_int_equal(query->where->kind, SQL_EXPR_OR);
    assert_int_equal(query->where->items.count, 501);
    assert_int_equal(query->where->height, 4);
}

/* As the .NET library reads a thousand items of a container with three levels of keys. */
static void reading_a_thousand_items_by_key_is_one_query(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice text =
        repeated(arena, "SELECT * FROM c WHERE ( ",
                 "( c.id = @i AND c[\"a\"] = @a AND c[\"b\"] = @b AND c[\"d\"] = @d ) OR ", 999,
                 "( c.id = @i AND c[\"a\"] = @a AND c[\"b\"] = @b AND c[\"d\"] = @d ) )");
    struct sql_query *query;
    struct error err;

    assert_ok(sql_parse(text, NULL, arena, &query, NULL, &err), &err);
    assert_int_equal(query->where->items.count, 1000);
    assert_int_equal(query->parameters.count, 4000);
}

static void a_condition_is_from_and_where_alone(void **state UNUSED)
{
    static const char *const refused[] = {
        "",
        "from c",
        "where true",
        "c.a = 1",
        "SELECT * from c where true",
        "from c where",
        "from c join t in c.t where true",
        "from c where true order by c.a",
        "from c where true group by c.a",
        "from c where true 1",
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct sql_query *query;
    struct error err = {0};

    assert_ok(sql_parse_condition(SLICE("from c where c.taskNum = 3 AND IS_DEFINED(c.x)"), NULL,
                                  arena, &query, NULL, &err),
              &err);
    assert_int_equal(query->select, SQL_SELECT_CONDITION);
    assert_string_equal(printed(arena, query),
                        "FROM c WHERE ((c.taskNum = 3) AND IS_DEFINED(c.x))");
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        assert_fails(
            sql_parse_condition(slice_of_text(refused[i]), NULL, arena, &query, NULL, &err), &err,
            ERROR_BAD_QUERY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_bind_by_precedence),
        cmocka_unit_test(operands_are_of_every_kind),
        cmocka_unit_test(queries_have_every_clause),
        cmocka_unit_test(what_is_no_query_is_refused_near_where_it_fails),
        cmocka_unit_test(a_reference_has_names_as_texts),
        cmocka_unit_test(a_path_of_from_has_fixed_steps),
        cmocka_unit_test(an_object_takes_no_name_with_a_nul),
        cmocka_unit_test(sources_are_named_by_alias_or_last_step),
        cmocka_unit_test(nodes_know_their_place_in_the_text),
        cmocka_unit_test(limits_hold_to_the_one),
        cmocka_unit_test(a_text_over_the_limit_is_not_read),
        cmocka_unit_test(nesting_without_end_is_refused),
        cmocka_unit_test(five_hundred_conditions_in_parentheses_are_taken),
        cmocka_unit_test(reading_a_thousand_items_by_key_is_one_query),
        cmocka_unit_test(a_condition_is_from_and_where_alone),
    };
    return cmocka_run_group_tests_name("front/rest/sql/parser", tests, NULL, NULL);
}
