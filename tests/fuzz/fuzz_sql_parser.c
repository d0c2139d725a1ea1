/* A query that is taken prints as a query that is taken as well and is the same. What resolves can
 * be asked for its paths, its key ranges and its plan, and the plan is JSON. */
#include "document/json.h"
#include "front/rest/sql/gateway_plan.h"
#include "front/rest/sql/key_ranges.h"
#include "front/rest/sql/parser.h"
#include "front/rest/sql/print.h"
#include "front/rest/sql/resolve.h"
#include "fuzz/fuzz.h"

static void check_error(const struct sql_error *error)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    sql_error_render(error, &text);
    FUZZ_CHECK(error->span.start <= error->span.end);
    FUZZ_CHECK(text.len > 0);
}

static void check_same(const struct sql_query *query, struct arena *arena)
{
    CLEANUP(buf_done) struct buf first, second;
    struct sql_limits limits = SQL_LIMITS_DEFAULT;
    struct sql_query *again;
    struct error err;

    buf_init(&first, BUF_DEFAULT_MAX);
    buf_init(&second, BUF_DEFAULT_MAX);
    limits.text_bytes_max = BUF_DEFAULT_MAX; /* parentheses make a text longer */
    sql_print(query, &first);
    if (query->select == SQL_SELECT_CONDITION)
        FUZZ_CHECK(sql_parse_condition(buf_slice(&first), &limits, arena, &again, NULL, &err));
    else
        FUZZ_CHECK(sql_parse(buf_slice(&first), &limits, arena, &again, NULL, &err));
    FUZZ_CHECK(sql_query_equal(query, again));
    sql_print(again, &second);
    FUZZ_CHECK(slice_equal(buf_slice(&first), buf_slice(&second)));
}

static void check_plan(const struct sql_query *query, struct arena *arena)
{
    static const struct slice paths[] = {SLICE("/a"), SLICE("/b")};
    struct partition_definition_parts parts = {
        .kind = SLICE("MultiHash"), .version = 2, .paths = paths, .path_count = 2};
    CLEANUP(buf_done) struct buf json, bson;
    struct partition_definition definition;
    struct error err;

    buf_init(&json, BUF_DEFAULT_MAX);
    buf_init(&bson, BUF_DEFAULT_MAX);
    FUZZ_CHECK(partition_definition_build(&parts, arena, &definition, &err));
    if (sql_gateway_plan(query, &(struct sql_gateway_place){.definition = &definition},
                         SLICE("NonValueAggregate, Aggregate, MultipleAggregates, Distinct, "
                               "DCount, GroupBy, MultipleOrderBy, OrderBy, OffsetAndLimit, Top, "
                               "ListAndSetAggregate, CountIf"),
                         arena, &json, NULL, &err))
        FUZZ_CHECK(document_json_read(buf_slice(&json), NULL, &bson, &err));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int condition = 0; condition < 2; condition++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct sql_query *query;
        struct sql_error error;
        struct error err;

        if (condition
                ? !sql_parse_condition(slice_of(data, size), NULL, arena, &query, &error, &err)
                : !sql_parse(slice_of(data, size), NULL, arena, &query, &error, &err)) {
            check_error(&error);
            continue;
        }
        check_same(query, arena);
        if (!sql_resolve(query, arena, &error, &err)) {
            check_error(&error);
            continue;
        }
        check_same(query, arena);
        if (!condition)
            check_plan(query, arena);
    }
    return 0;
}
