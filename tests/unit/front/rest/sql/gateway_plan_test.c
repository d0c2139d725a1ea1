#include "front/rest/sql/gateway_plan.h"

#include "fixture.h"

#include "document/json.h"

#define FILTER "({documentdb-formattableorderbyquery-filter})"
#define EVERYTHING                                                                                 \
    "NonValueAggregate, Aggregate, CompositeAggregate, MultipleAggregates, Distinct, DCount, "     \
    "GroupBy, MultipleOrderBy, OrderBy, OffsetAndLimit, Top, NonStreamingOrderBy, "                \
    "ListAndSetAggregate, CountIf"

static bool plan(struct arena *arena, const char *text, const char *features,
                 struct slice *ret_json, struct sql_error *ret_error, struct error *err)
{
    CLEANUP(buf_done) struct buf json;
    struct partition_definition definition;
    const struct sql_query *query =
        resolved(arena, text, "[{\"name\":\"@o\",\"value\":3},{\"name\":\"@l\",\"value\":4}]");

    buf_init(&json, BUF_DEFAULT_MAX);
    if (!partition_definition_read(document_of(arena, "{\"paths\":[\"/key\"],\"version\":2}"),
                                   arena, &definition, err) ||
        !sql_gateway_plan(query, &(struct sql_gateway_place){.definition = &definition},
                          slice_of_text(features), arena, &json, ret_error, err))
        return false;
    *ret_json = arena_copy(arena, buf_slice(&json));
    return true;
}

/* The queryInfo of a plan; the whole of it is JSON with every property clients read. */
static struct slice info_of(struct arena *arena, const char *text)
{
    static const char *const names[] = {"distinctType",
                                        "top",
                                        "offset",
                                        "limit",
                                        "orderBy",
                                        "orderByExpressions",
                                        "groupByExpressions",
                                        "groupByAliases",
                                        "aggregates",
                                        "groupByAliasToAggregateType",
                                        "rewrittenQuery",
                                        "hasSelectValue",
                                        "dCountInfo",
                                        "hasNonStreamingOrderBy"};
    struct document_value info, value;
    struct slice json;
    struct error err;

    if (!plan(arena, text, EVERYTHING, &json, NULL, &err))
        fail_msg("%s: %s", text, err.message);
    assert_true(
        document_find(document_of(arena, arena_text(arena, json)), SLICE("queryInfo"), &info));
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_true(document_find(info.document, slice_of_text(names[i]), &value));
    assert_int_equal(document_count(info.document), ARRAY_LEN(names));
    return info.document;
}

static void assert_property(struct arena *arena, const char *text, struct slice info,
                            const char *name, const char *wanted)
{
    CLEANUP(buf_done) struct buf json;
    struct document_value value;

    buf_init(&json, BUF_DEFAULT_MAX);
    assert_true(document_find(info, slice_of_text(name), &value));
    document_json_write_value(&value, &json);
    if (!slice_equal(buf_slice(&json), slice_of_text(wanted)))
        fail_msg("%s: %s is %s", text, name, arena_text(arena, buf_slice(&json)));
}

static void queries_are_rewritten_for_the_client_to_merge(void **state UNUSED)
{
    static const struct {
        const char *text, *rewritten; /* "": the text as it is */
    } known[] = {
        {"SELECT * FROM c", ""},
        {"SELECT c.a FROM c WHERE c.b = 1", ""},
        {"SELECT 1", ""},
        {"SELECT VALUE t FROM c JOIN t IN c.tags", ""},
        {"SELECT VALUE r.a FROM c JOIN r IN REFERENCE('x') WHERE r.id = c.x", ""},
        {"SELECT * FROM c ORDER BY c.a",
         "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c AS payload FROM c WHERE " FILTER
         " ORDER BY c.a"},
        {"SELECT c.x, c.y FROM c WHERE c.z > 1 ORDER BY c.a DESC, c.b",
         "SELECT c._rid, [{\"item\": c.a}, {\"item\": c.b}] AS orderByItems, {\"x\": c.x, \"y\": "
         "c.y} AS payload FROM c WHERE ((c.z > 1) AND " FILTER ") ORDER BY c.a DESC, c.b"},
        {"SELECT c.x AS \xC3\xBC, 1, c['a b'] FROM c ORDER BY c.a",
         "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, {\"\xC3\xBC\": c.x, \"$1\": 1, \"a "
         "b\": "
         "c[\"a b\"]} AS payload FROM c WHERE " FILTER " ORDER BY c.a"},
        {"SELECT VALUE c.x FROM c ORDER BY c.a",
         "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c.x AS payload FROM c WHERE (" FILTER
         " AND IS_DEFINED(c.x)) ORDER BY c.a"},
        {"SELECT VALUE c.x FROM c WHERE c.y ORDER BY c.a",
         "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c.x AS payload FROM c WHERE ((c.y "
         "AND " FILTER ") AND IS_DEFINED(c.x)) ORDER BY c.a"},
        {"SELECT TOP 10 * FROM c ORDER BY c.a",
         "SELECT TOP 10 c._rid, [{\"item\": c.a}] AS orderByItems, c AS payload FROM c "
         "WHERE " FILTER " ORDER BY c.a"},
        {"SELECT TOP @l * FROM r ORDER BY r.a",
         "SELECT TOP @l r._rid, [{\"item\": r.a}] AS orderByItems, r AS payload FROM r "
         "WHERE " FILTER " ORDER BY r.a"},
        {"SELECT t FROM root r JOIN t IN REFERENCE('x') WHERE t.id = r.x ORDER BY r.a",
         "SELECT r._rid, [{\"item\": r.a}] AS orderByItems, {\"t\": t} AS payload FROM root AS r "
         "JOIN t IN REFERENCE(\"x\") WHERE ((t.id = r.x) AND " FILTER ") ORDER BY r.a"},
        {"SELECT t FROM root r JOIN t IN r.t ORDER BY r.a",
         "SELECT r._rid, [{\"item\": r.a}] AS orderByItems, {\"t\": t} AS payload FROM root AS r "
         "JOIN t IN r.t WHERE " FILTER " ORDER BY r.a"},
        {"SELECT * FROM c ORDER BY c.a OFFSET 1 LIMIT 2",
         "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c AS payload FROM c WHERE " FILTER
         " ORDER BY c.a OFFSET 0 LIMIT 3"},
        {"SELECT TOP 5 * FROM c", ""},
        {"SELECT DISTINCT TOP 5 VALUE c.n FROM c", "SELECT DISTINCT VALUE c.n FROM c"},
        {"SELECT TOP 5 VALUE COUNT(1) FROM c", "SELECT VALUE [{\"item\": COUNT(1)}] FROM c"},
        {"SELECT TOP 5 c.t FROM c GROUP BY c.t",
         "SELECT [{\"item\": c.t}] AS groupByItems, {\"t\": c.t} AS payload FROM c GROUP BY c.t"},
        {"SELECT * FROM c OFFSET 1 LIMIT 2", "SELECT * FROM c OFFSET 0 LIMIT 3"},
        {"SELECT * FROM c OFFSET @o LIMIT @l", "SELECT * FROM c OFFSET 0 LIMIT 7"},
        {"SELECT * FROM c OFFSET 4000000000 LIMIT 4000000000",
         "SELECT * FROM c OFFSET 0 LIMIT 4294967295"},
        {"SELECT * FROM c WHERE c.key = 1 OFFSET 1 LIMIT 2", ""},
        {"SELECT * FROM c WHERE c.key = 1 ORDER BY c.a OFFSET 1 LIMIT 2", ""},
        {"SELECT TOP 5 VALUE c.b FROM c WHERE c.key = 1 ORDER BY c.a", ""},
        {"SELECT VALUE MIN(c.b) FROM c WHERE c.key = 1",
         "SELECT VALUE [{\"item\": MIN(c.b), \"item2\": {\"min\": MIN(c.b), \"count\": "
         "COUNT(c.b)}}] "
         "FROM c WHERE (c.key = 1)"},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.key = 5 OFFSET 1 LIMIT 2",
         "SELECT VALUE [{\"item\": COUNT(1)}] FROM c WHERE (c.key = 5)"},
        {"SELECT c.name FROM c WHERE c.key = 5 GROUP BY c.name OFFSET 1 LIMIT 2",
         "SELECT [{\"item\": c.name}] AS groupByItems, {\"name\": c.name} AS payload FROM c WHERE "
         "(c.key = 5) GROUP BY c.name"},
        {"SELECT * FROM c WHERE c.key IN (1, 2) OFFSET 1 LIMIT 2",
         "SELECT * FROM c WHERE (c.key IN (1, 2)) OFFSET 0 LIMIT 3"},
        {"SELECT DISTINCT c.a FROM c OFFSET 1 LIMIT 2", "SELECT DISTINCT c.a FROM c"},
        {"SELECT DISTINCT c.a FROM c", ""},
        {"SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a",
         "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c.a AS payload FROM c WHERE (" FILTER
         " AND IS_DEFINED(c.a)) ORDER BY c.a"},
        {"SELECT DISTINCT TOP 3 c.a FROM c ORDER BY c.b",
         "SELECT c._rid, [{\"item\": c.b}] AS orderByItems, {\"a\": c.a} AS payload FROM c "
         "WHERE " FILTER " ORDER BY c.b"},
        {"SELECT VALUE COUNT(1) FROM c", "SELECT VALUE [{\"item\": COUNT(1)}] FROM c"},
        {"SELECT VALUE SUM(c.a) FROM c", "SELECT VALUE [{\"item\": SUM(c.a)}] FROM c"},
        {"SELECT VALUE MAKELIST(c.a) FROM c", "SELECT VALUE [{\"item\": MAKELIST(c.a)}] FROM c"},
        {"SELECT VALUE MAKESET(c.a) FROM c", "SELECT VALUE [{\"item\": MAKESET(c.a)}] FROM c"},
        {"SELECT VALUE COUNTIF(c.a > 1) FROM c",
         "SELECT VALUE [{\"item\": COUNTIF((c.a > 1))}] FROM c"},
        {"SELECT VALUE AVG(c.a) FROM c",
         "SELECT VALUE [{\"item\": {\"sum\": SUM(c.a), \"count\": COUNT(c.a)}}] FROM c"},
        {"SELECT VALUE MIN(c.a) FROM c",
         "SELECT VALUE [{\"item\": MIN(c.a), \"item2\": {\"min\": MIN(c.a), \"count\": "
         "COUNT(c.a)}}] FROM c"},
        {"SELECT VALUE max(c.a) FROM c WHERE c.b",
         "SELECT VALUE [{\"item\": MAX(c.a), \"item2\": {\"max\": MAX(c.a), \"count\": "
         "COUNT(c.a)}}] FROM c WHERE c.b"},
        {"SELECT COUNT(1) AS n, AVG(c.a) FROM c",
         "SELECT {\"n\": {\"item\": COUNT(1)}, \"$1\": {\"item\": {\"sum\": SUM(c.a), \"count\": "
         "COUNT(c.a)}}} AS payload FROM c"},
        {"SELECT COUNT(1), 'x' AS k FROM c",
         "SELECT {\"$1\": {\"item\": COUNT(1)}, \"k\": \"x\"} AS payload FROM c"},
        {"SELECT c.t, COUNT(1) AS n FROM c GROUP BY c.t",
         "SELECT [{\"item\": c.t}] AS groupByItems, {\"t\": c.t, \"n\": {\"item\": COUNT(1)}} AS "
         "payload FROM c GROUP BY c.t"},
        {"SELECT VALUE COUNT(1) FROM c GROUP BY c.t, LOWER(c.u)",
         "SELECT [{\"item\": c.t}, {\"item\": LOWER(c.u)}] AS groupByItems, [{\"item\": COUNT(1)}] "
         "AS payload FROM c GROUP BY c.t, LOWER(c.u)"},
        {"SELECT VALUE c.t FROM c GROUP BY c.t OFFSET 1 LIMIT 1",
         "SELECT [{\"item\": c.t}] AS groupByItems, c.t AS payload FROM c GROUP BY c.t"},
        {"SELECT DISTINCT c.t, COUNT(1) AS n FROM c GROUP BY c.t",
         "SELECT [{\"item\": c.t}] AS groupByItems, {\"t\": c.t, \"n\": {\"item\": COUNT(1)}} AS "
         "payload FROM c GROUP BY c.t"},
        {"SELECT VALUE COUNT(1) FROM c ORDER BY c.a",
         "SELECT VALUE [{\"item\": COUNT(1)}] FROM c ORDER BY c.a"},
        {"SELECT COUNT(1) AS n FROM (SELECT DISTINCT c.a FROM c WHERE c.b) AS d",
         "SELECT DISTINCT c.a FROM c WHERE c.b"},
        {"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c)",
         "SELECT DISTINCT VALUE c.a FROM c"},
        {"SELECT VALUE COUNT(1) FROM (SELECT VALUE c.a FROM c)",
         "SELECT VALUE [{\"item\": COUNT(1)}] FROM (SELECT VALUE c.a FROM c)"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct document_value rewritten;

        assert_true(
            document_find(info_of(arena, known[i].text), SLICE("rewrittenQuery"), &rewritten));
        if (!slice_equal(rewritten.text, slice_of_text(known[i].rewritten)))
            fail_msg("%s is rewritten as\n%.*s", known[i].text, SLICE_ARG(rewritten.text));
    }
}

static void the_plan_says_what_is_left_to_do(void **state UNUSED)
{
    static const struct {
        const char *text, *name, *json;
    } known[] = {
        {"SELECT * FROM c", "distinctType", "\"None\""},
        {"SELECT * FROM c", "top", "null"},
        {"SELECT * FROM c", "offset", "null"},
        {"SELECT * FROM c", "limit", "null"},
        {"SELECT * FROM c", "orderBy", "[]"},
        {"SELECT * FROM c", "aggregates", "[]"},
        {"SELECT * FROM c", "groupByAliasToAggregateType", "{}"},
        {"SELECT * FROM c", "hasSelectValue", "false"},
        {"SELECT * FROM c", "dCountInfo", "null"},
        {"SELECT * FROM c", "hasNonStreamingOrderBy", "false"},
        {"SELECT VALUE c.a FROM c", "hasSelectValue", "true"},
        {"SELECT DISTINCT c.a FROM c", "distinctType", "\"Unordered\""},
        {"SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a", "distinctType", "\"Ordered\""},
        {"SELECT DISTINCT c.a FROM c ORDER BY c['a']", "distinctType", "\"Ordered\""},
        {"SELECT DISTINCT c.a, c.b FROM c ORDER BY c.b, c.a", "distinctType", "\"Ordered\""},
        {"SELECT DISTINCT c.a, c.b FROM c ORDER BY c.a", "distinctType", "\"Unordered\""},
        {"SELECT DISTINCT c.a FROM c ORDER BY c.b", "distinctType", "\"Unordered\""},
        {"SELECT DISTINCT * FROM c ORDER BY c.b", "distinctType", "\"Unordered\""},
        {"SELECT TOP 10 * FROM c", "top", "10"},
        {"SELECT TOP @o * FROM c ORDER BY c.a", "top", "3"},
        {"SELECT DISTINCT TOP 5 VALUE c.n FROM c", "top", "5"},
        {"SELECT * FROM c OFFSET 1 LIMIT 2", "offset", "1"},
        {"SELECT * FROM c OFFSET @o LIMIT @l", "limit", "4"},
        {"SELECT * FROM c WHERE c.key = 1 OFFSET 1 LIMIT 2", "offset", "null"},
        {"SELECT * FROM c WHERE c.key = 1 ORDER BY c.a OFFSET 1 LIMIT 2", "limit", "null"},
        {"SELECT * FROM c WHERE c.key = 1 ORDER BY c.a OFFSET 1 LIMIT 2", "orderBy", "[]"},
        {"SELECT TOP 5 * FROM c WHERE c.key = 1 ORDER BY c.a", "top", "5"},
        {"SELECT DISTINCT c.a FROM c WHERE c.key = 1 OFFSET 1 LIMIT 2", "limit", "2"},
        {"SELECT * FROM c ORDER BY c.a, c['b c'] DESC", "orderBy",
         "[\"Ascending\",\"Descending\"]"},
        {"SELECT * FROM c ORDER BY c.a, c['b c'] DESC", "orderByExpressions",
         "[\"c.a\",\"c[\\\"b c\\\"]\"]"},
        {"SELECT VALUE COUNT(1) FROM c ORDER BY c.a", "orderBy", "[]"},
        {"SELECT VALUE AVG(c.a) FROM c", "aggregates", "[\"Average\"]"},
        {"SELECT VALUE COUNT(1) FROM c", "aggregates", "[\"Count\"]"},
        {"SELECT VALUE COUNTIF(c.a) FROM c", "aggregates", "[\"CountIf\"]"},
        {"SELECT VALUE MAX(c.a) FROM c", "aggregates", "[\"Max\"]"},
        {"SELECT VALUE MIN(c.a) FROM c", "aggregates", "[\"Min\"]"},
        {"SELECT VALUE SUM(c.a) FROM c", "aggregates", "[\"Sum\"]"},
        {"SELECT VALUE MAKELIST(c.a) FROM c", "aggregates", "[\"MakeList\"]"},
        {"SELECT VALUE MAKESET(c.a) FROM c", "aggregates", "[\"MakeSet\"]"},
        {"SELECT VALUE COUNT(1) FROM c", "groupByAliases", "[]"},
        {"SELECT COUNT(1) AS n, 1, SUM(c.a) FROM c", "groupByAliases", "[\"n\",\"$1\",\"$2\"]"},
        {"SELECT COUNT(1) AS n, 1, SUM(c.a) FROM c", "groupByAliasToAggregateType",
         "{\"n\":\"Count\",\"$1\":null,\"$2\":\"Sum\"}"},
        {"SELECT COUNT(1) AS n, SUM(c.a) FROM c", "aggregates", "[]"},
        {"SELECT COUNT(1) AS n FROM c", "groupByExpressions", "[]"},
        {"SELECT c.t, COUNT(1) AS n FROM c GROUP BY c.t", "groupByExpressions", "[\"c.t\"]"},
        {"SELECT c.t, COUNT(1) AS n FROM c GROUP BY c.t", "groupByAliases", "[\"t\",\"n\"]"},
        {"SELECT c.t, COUNT(1) AS n FROM c GROUP BY c.t", "groupByAliasToAggregateType",
         "{\"t\":null,\"n\":\"Count\"}"},
        {"SELECT VALUE COUNT(1) FROM c GROUP BY c.t", "aggregates", "[\"Count\"]"},
        {"SELECT VALUE COUNT(1) FROM c GROUP BY c.t", "groupByAliases", "[]"},
        {"SELECT VALUE c.t FROM c GROUP BY c.t", "aggregates", "[]"},
        {"SELECT COUNT(1) AS n FROM (SELECT DISTINCT c.a FROM c)", "dCountInfo",
         "{\"dCountAlias\":\"n\"}"},
        {"SELECT COUNT(1) FROM (SELECT DISTINCT c.a FROM c)", "dCountInfo",
         "{\"dCountAlias\":\"$1\"}"},
        {"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.a FROM c)", "dCountInfo",
         "{\"dCountAlias\":\"\"}"},
        {"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.a FROM c)", "distinctType",
         "\"Unordered\""},
        {"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.a FROM c)", "aggregates", "[]"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        assert_property(arena, known[i].text, info_of(arena, known[i].text), known[i].name,
                        known[i].json);
}

static void the_whole_plan_is_as_the_service_writes_it(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice json;
    struct error err;

    assert_ok(plan(arena, "SELECT * FROM c", "", &json, NULL, &err), &err);
    assert_slice_equal(
        json,
        SLICE(
            "{\"partitionedQueryExecutionInfoVersion\":2,\"queryInfo\":{\"distinctType\":\"None\","
            "\"top\":null,\"offset\":null,\"limit\":null,\"orderBy\":[],\"orderByExpressions\":[],"
            "\"groupByExpressions\":[],\"groupByAliases\":[],\"aggregates\":[],"
            "\"groupByAliasToAggregateType\":{},\"rewrittenQuery\":\"\",\"hasSelectValue\":false,"
            "\"dCountInfo\":null,\"hasNonStreamingOrderBy\":false},\"queryRanges\":[{\"min\":\"\","
            "\"max\":\"FF\",\"isMinInclusive\":true,\"isMaxInclusive\":false}]}"));
}

static void ranges_are_points_spans_or_one_that_is_empty(void **state UNUSED)
{
    static const struct {
        const char *text, *ranges;
    } known[] = {
        {"SELECT * FROM c WHERE c.key = 5",
         "\"queryRanges\":[{\"min\":\"19C08621B135968252FB34B4CF66F811\",\"max\":"
         "\"19C08621B135968252FB34B4CF66F811\",\"isMinInclusive\":true,\"isMaxInclusive\":true}]}"},
        {"SELECT * FROM c WHERE IS_BOOL(c.key)",
         "\"queryRanges\":[{\"min\":\"0E711127C5B5A8E4726AC6DD306A3E59\",\"max\":"
         "\"0E711127C5B5A8E4726AC6DD306A3E59\",\"isMinInclusive\":true,\"isMaxInclusive\":true},"
         "{\"min\":\"2FE1BE91E90A3439635E0E9E37361EF2\",\"max\":"
         "\"2FE1BE91E90A3439635E0E9E37361EF2\",\"isMinInclusive\":true,\"isMaxInclusive\":true}]}"},
        {"SELECT 1", "\"queryRanges\":[{\"min\":\"\",\"max\":\"\",\"isMinInclusive\":true,"
                     "\"isMaxInclusive\":false}]}"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct slice json;
        struct error err;

        assert_ok(plan(arena, known[i].text, "", &json, NULL, &err), &err);
        assert_contains(arena_text(arena, json), known[i].ranges);
    }
}

static void a_feature_the_client_lacks_is_named(void **state UNUSED)
{
    static const struct {
        const char *text, *features, *missing; /* NULL: none */
    } known[] = {
        {"SELECT * FROM c", "", NULL},
        {"SELECT * FROM c", "None", NULL},
        {"SELECT * FROM c ORDER BY c.a", "", "OrderBy"},
        {"SELECT * FROM c ORDER BY c.a", "Aggregate,orderby , Top", NULL},
        {"SELECT * FROM c ORDER BY c.a, c.b", "OrderBy", "MultipleOrderBy"},
        {"SELECT * FROM c ORDER BY c.a, c.b", "Top", "OrderBy, MultipleOrderBy"},
        {"SELECT TOP 1 * FROM c", "OrderBy", "Top"},
        {"SELECT * FROM c OFFSET 0 LIMIT 1", "", "OffsetAndLimit"},
        {"SELECT * FROM c WHERE c.key = 1 OFFSET 0 LIMIT 1", "", NULL},
        {"SELECT DISTINCT c.a FROM c", "", "Distinct"},
        {"SELECT VALUE COUNT(1) FROM c", "", "Aggregate"},
        {"SELECT VALUE COUNT(1) FROM c", "Aggregate", NULL},
        {"SELECT COUNT(1) FROM c", "Aggregate", "NonValueAggregate"},
        {"SELECT COUNT(1), MAX(c.x) FROM c", "Aggregate, Distinct, OrderBy",
         "NonValueAggregate, MultipleAggregates"},
        {"SELECT VALUE COUNTIF(c.a) FROM c", "Aggregate", "CountIf"},
        {"SELECT VALUE MAKELIST(c.a) FROM c", "Aggregate", "ListAndSetAggregate"},
        {"SELECT VALUE MAKESET(c.a) FROM c", "Aggregate", "ListAndSetAggregate"},
        {"SELECT c.a FROM c GROUP BY c.a", "", "GroupBy"},
        {"SELECT c.a FROM c GROUP BY c.a", "GroupBy", NULL},
        {"SELECT c.a, COUNT(1) FROM c GROUP BY c.a", "GroupBy, Aggregate", NULL},
        {"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.a FROM c)", "Distinct, Aggregate",
         "DCount"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct sql_error error;
        struct slice json;
        struct error err;

        if (!known[i].missing) {
            assert_ok(plan(arena, known[i].text, known[i].features, &json, &error, &err), &err);
            continue;
        }
        if (plan(arena, known[i].text, known[i].features, &json, &error, &err))
            fail_msg("%s with %s was planned", known[i].text, known[i].features);
        assert_int_equal(err.code, ERROR_BAD_QUERY);
        assert_slice_equal(error.message,
                           arena_printf(arena,
                                        "Query contains the following features, which the calling "
                                        "client does not support: %s",
                                        known[i].missing));
    }
}

static void compositions_of_aggregates_are_refused(void **state UNUSED)
{
    static const char *const known[] = {
        "SELECT VALUE COUNT(1) + 1 FROM c",
        "SELECT VALUE {n: COUNT(1)} FROM c",
        "SELECT COUNT(1) / 2 AS half FROM c",
        "SELECT c.a, [COUNT(1)] AS n FROM c GROUP BY c.a",
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct sql_error error;
        struct slice json;
        struct error err;

        assert_fails(plan(arena, known[i], EVERYTHING, &json, &error, &err), &err, ERROR_BAD_QUERY);
        assert_slice_equal(
            error.message,
            SLICE("Compositions of aggregates and other expressions are not allowed."));
        assert_false(error.located);
    }
}

static void what_no_client_can_merge_is_refused(void **state UNUSED)
{
    static const char *const known[] = {
        "SELECT * FROM (SELECT DISTINCT c.a FROM c) d",
        "SELECT VALUE SUM(d.n) FROM (SELECT COUNT(1) AS n FROM c GROUP BY c.a) d",
        "SELECT * FROM (SELECT TOP 5 * FROM c) d",
        "SELECT * FROM (SELECT VALUE e FROM (SELECT VALUE COUNT(1) FROM c) e) d",
        "SELECT COUNT(1) FROM (SELECT DISTINCT VALUE e FROM (SELECT TOP 1 c.a FROM c) e)",
        "SELECT COUNT(1) FROM (SELECT DISTINCT c.a FROM c) d WHERE d.a > 1",
        "SELECT * FROM c.child ORDER BY child.a",
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct slice json;
        struct error err;

        assert_fails(plan(arena, known[i], EVERYTHING, &json, NULL, &err), &err,
                     ERROR_QUERY_NOT_SUPPORTED);
    }
}

/* What a plan tells a client to send, the server has to understand. */
static void rewritten_queries_are_queries(void **state UNUSED)
{
    static const char *const known[] = {
        "SELECT c.x, c.y FROM c WHERE c.z > 1 OR c.w ORDER BY c.a DESC, c.b",
        "SELECT VALUE c['x y'] FROM c ORDER BY c['value'] OFFSET 3 LIMIT 4294967295",
        "SELECT COUNT(1) AS n, AVG(c.a), MIN(c.b), MAX(c.b) FROM c",
        "SELECT LOWER(c.t) AS l, MAKESET(c.u) FROM c JOIN u IN c.u GROUP BY LOWER(c.t)",
        "SELECT VALUE AVG(c.a) FROM c GROUP BY c.b",
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct document_value rewritten;
        CLEANUP(buf_done) struct buf text;
        const char *found;

        buf_init(&text, BUF_DEFAULT_MAX);
        assert_true(document_find(info_of(arena, known[i]), SLICE("rewrittenQuery"), &rewritten));
        buf_append_slice(&text, rewritten.text);
        buf_append_byte(&text, 0);
        found = strstr((char *)text.data, SQL_ORDER_FILTER);
        if (found) {
            size_t at = (size_t)(found - (char *)text.data);
            struct slice tail =
                arena_copy(arena, slice_skip(buf_slice(&text), at + strlen(SQL_ORDER_FILTER)));

            text.len = at;
            BUF_APPEND(&text, "(c.a > 5)");
            buf_append_slice(&text, tail);
        }
        resolved(arena, (char *)text.data, NULL);
    }
}

static void rankings_have_a_query_for_each_score(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice json;
    struct error err;

    assert_ok(plan(arena,
                   "SELECT TOP 10 c.id AS x FROM c WHERE c.n > 1 ORDER BY RANK "
                   "FullTextScore(c.text, 'swim', 'pool')",
                   "HybridSearch, NonStreamingOrderBy", &json, NULL, &err),
              &err);
#define SUMS                                                                                       \
    "{documentdb-formattablehybridsearchquery-totaldocumentcount}, "                               \
    "{documentdb-formattablehybridsearchquery-totalwordcount-0}, "                                 \
    "{documentdb-formattablehybridsearchquery-hitcountsarray-0}"
#define SCORE "_FullTextScore(c.text, [\\\"swim\\\", \\\"pool\\\"], " SUMS ")"
    assert_contains(arena_text(arena, json),
                    "\"globalStatisticsQuery\":\"SELECT COUNT(1) AS documentCount, "
                    "[{\\\"totalWordCount\\\": (SUM(_FullTextWordCount(c.text)) ?? 0), "
                    "\\\"hitCounts\\\": [COUNTIF(FullTextContains(c.text, \\\"swim\\\")), "
                    "COUNTIF(FullTextContains(c.text, \\\"pool\\\"))]}] AS fullTextStatistics "
                    "FROM c\"");
    assert_contains(arena_text(arena, json),
                    "\"rewrittenQuery\":\"SELECT TOP 10 c._rid, [{\\\"item\\\": " SCORE
                    "}] AS orderByItems, {\\\"payload\\\": {\\\"x\\\": c.id}, "
                    "\\\"componentScores\\\": [(" SCORE " ?? -1)]} AS payload FROM c WHERE (");
    assert_contains(arena_text(arena, json), " AND " FILTER ") ORDER BY " SCORE " DESC\"");
    assert_contains(arena_text(arena, json), "\"componentWeights\":[],\"skip\":0,\"take\":10,"
                                             "\"requiresGlobalStatistics\":true}");
    assert_fails(plan(arena, "SELECT TOP 1 * FROM c ORDER BY RANK FullTextScore(c.a, 'b')",
                      EVERYTHING, &json, NULL, &err),
                 &err, ERROR_BAD_QUERY);
    assert_contains(err.message, "HybridSearch");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rankings_have_a_query_for_each_score),
        cmocka_unit_test(queries_are_rewritten_for_the_client_to_merge),
        cmocka_unit_test(the_plan_says_what_is_left_to_do),
        cmocka_unit_test(the_whole_plan_is_as_the_service_writes_it),
        cmocka_unit_test(ranges_are_points_spans_or_one_that_is_empty),
        cmocka_unit_test(a_feature_the_client_lacks_is_named),
        cmocka_unit_test(compositions_of_aggregates_are_refused),
        cmocka_unit_test(what_no_client_can_merge_is_refused),
        cmocka_unit_test(rewritten_queries_are_queries),
    };
    return cmocka_run_group_tests_name("front/rest/sql/gateway_plan", tests, NULL, NULL);
}
