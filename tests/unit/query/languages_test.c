/* What another language than SQL brings: kinds that say by themselves what they imply, and an order
 * of its own. `traverse` is MongoDB's comparison: true for a value, and for an array that has such
 * an element. */
#include "query/expression/imply.h"
#include "query/value/compare.h"
#include "support/queries.h"

#include <stdlib.h>

/* --- A kind that looks into arrays ------------------------------------------------------------ */

struct traverse_node {
    struct query_expression head; /* children: path, constant */
    enum query_comparison comparison;
};

static bool compares(const struct query_context *context, enum query_comparison comparison,
                     const struct document_value *a, const struct document_value *b)
{
    int order;

    if (comparison == QUERY_EQUAL)
        return query_values_equal(context->order, a, b) == QUERY_TRUE;
    if (!query_values_order(context->order, a, b, &order))
        return false;
    return comparison == QUERY_LESS ? order < 0 : order > 0;
}

static bool traverse_evaluate(const struct query_expression *expression,
                              struct query_context *context, struct document_value *ret_value,
                              struct error *err)
{
    const struct traverse_node *node = (const struct traverse_node *)expression;
    struct document_value value, constant;
    struct document_iter iter;
    bool holds;

    if (!query_evaluate(expression->children[0], context, &value, err) ||
        !query_evaluate(expression->children[1], context, &constant, err))
        return false;
    holds = compares(context, node->comparison, &value, &constant);
    if (value.type == DOCUMENT_ARRAY) {
        document_iter_init(&iter, value.document);
        while (!holds && document_iter_next(&iter))
            holds = compares(context, node->comparison, &iter.value, &constant);
    }
    *ret_value = document_bool(holds);
    return true;
}

static const struct query_implied *side_imply(const struct query_implying *implying,
                                              enum query_comparison comparison,
                                              const struct query_operand *operand,
                                              const struct document_value *value)
{
    if (comparison == QUERY_EQUAL)
        return query_implied_points(implying, operand, value, 1);
    return comparison == QUERY_LESS ? query_implied_below(implying, operand, value, false)
                                    : query_implied_above(implying, operand, value, false);
}

static const struct query_implied *traverse_imply(const struct query_expression *expression,
                                                  const struct query_implying *implying, bool truth)
{
    enum query_comparison comparison = ((const struct traverse_node *)expression)->comparison;
    struct query_operand path = query_operand_of(implying, expression->children[0]);
    struct query_operand value = query_operand_of(implying, expression->children[1]);
    struct query_operand each = query_operand_elements(implying, &path);
    const struct query_implied *sides[2];

    if (!truth || !value.constant)
        return NULL;
    sides[0] = side_imply(implying, comparison, &path, value.constant);
    sides[1] = side_imply(implying, comparison, &each, value.constant);
    return query_implied_any(implying, sides, 2);
}

static const struct query_kind traverse = {"traverse", traverse_evaluate, QUERY_STABLE,
                                           traverse_imply};

static const struct query_expression *traverses(struct queries *f, const char *name,
                                                enum query_comparison comparison,
                                                struct document_value value)
{
    const struct query_expression *children[] = {queries_path(f, name),
                                                 query_constant(&f->build, value)};
    struct traverse_node *node = query_node(&f->build, &traverse, sizeof *node, children, 2);

    node->comparison = comparison;
    return &node->head;
}

/* --- Unions ----------------------------------------------------------------------------------- */

/* a is a number or an array of two, b another number; both are 7 for some. */
static void add_mixed(struct queries *f, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char json[160];

        if (i % 3)
            snprintf(json, sizeof json, "{\"id\":\"%zu\",\"pk\":\"k%zu\",\"a\":%zu,\"b\":%zu}", i,
                     i % 5, i % 40, i % 35);
        else
            snprintf(json, sizeof json,
                     "{\"id\":\"%zu\",\"pk\":\"k%zu\",\"a\":[%zu,%zu,\"x\"],\"b\":%zu}", i, i % 5,
                     i % 40, i % 20, i % 35);
        queries_add(f, json);
    }
}

static void a_value_or_an_element_is_two_seeks(void **state)
{
    struct queries *f = *state;
    struct query_plan plan =
        queries_plan(queries_path(f, "id"), traverses(f, "a", QUERY_EQUAL, document_int32(7)));
    struct queries_how how = {.page = 1000, .explain_has = "\"path\":\"/a/? OR /a/[]/?\""};
    struct queries_rows *rows, *expected;

    add_mixed(f, 400);
    queries_open(f, &(struct test_space_options){0});
    queries_put(f);
    expected = queries_expect(f, &plan);
    rows = queries_run(f, &plan, &how);
    assert_int_equal(how.last.metrics.index_lookups, 2);
    assert_int_equal(how.last.metrics.items_loaded, expected->count);
    queries_same_set(rows, expected);
    how = (struct queries_how){.page = 1, .explain_has = "\"filterSettled\":true"};
    queries_same_set(queries_run(f, &plan, &how), expected);
    assert_int_equal(how.pages, expected->count);
}

static void one_of_two_indexed_paths_is_counted_without_items(void **state)
{
    struct queries *f = *state;
    const struct query_expression *filter = query_or(
        &f->build, queries_compare(f, "a", QUERY_EQUAL, "7"),
        query_in(&f->build, queries_path(f, "b"),
                 (const struct query_expression *[]){queries_value(f, "7"), queries_value(f, "9")},
                 2));
    struct query_aggregate_call call = {QUERY_COUNT, queries_value(f, "1"), 1};
    struct query_plan plan = queries_plan(query_variable(&f->build, 1), filter);
    struct queries_how how = {.explain_has = "\"union\":[{\"path\":\"/a/?\""};
    struct queries_rows *rows;

    plan.query.aggregates = &call;
    plan.query.aggregate_count = 1;
    add_mixed(f, 400);
    for (size_t i = 0; i < 2; i++) {
        queries_open(f, &(struct test_space_options){.partitions = i ? 4 : 1});
        queries_put(f);
        rows = queries_run(f, &plan, &how);
        assert_int_equal(how.last.metrics.items_loaded, 0);
        queries_same(rows, queries_expect(f, &plan));
    }
}

static void an_order_is_kept_where_a_union_leads_to_the_items(void **state)
{
    struct queries *f = *state;
    struct query_order order = {queries_path(f, "id"), true};
    struct query_plan plan = queries_plan(
        queries_path(f, "id"), query_or(&f->build, queries_compare(f, "a", QUERY_EQUAL, "7"),
                                        queries_compare(f, "b", QUERY_GREATER, "32")));
    struct queries_how how = {.explain_has = "\"path\":\"/a/? OR /b/?\""};

    plan.query.order = &order;
    plan.query.order_count = 1;
    add_mixed(f, 400);
    queries_open(f, &(struct test_space_options){.partitions = 4});
    queries_put(f);
    queries_same(queries_run(f, &plan, &how), queries_expect(f, &plan));
}

static void of_what_must_all_be_so_one_index_serves(void **state)
{
    struct queries *f = *state;
    const struct query_expression *both =
        query_and(&f->build, queries_compare(f, "b", QUERY_GREATER, "1"),
                  queries_compare(f, "a", QUERY_EQUAL, "8"));
    struct query_plan plan =
        queries_plan(queries_path(f, "id"),
                     query_or(&f->build, queries_compare(f, "b", QUERY_EQUAL, "7"), both));
    struct queries_how how = {.explain_has = "\"path\":\"/b/? OR /a/?\""};

    add_mixed(f, 200);
    queries_open(f, &(struct test_space_options){0});
    queries_put(f);
    queries_same_set(queries_run(f, &plan, &how), queries_expect(f, &plan));
}

static void a_union_of_half_the_items_is_a_scan(void **state)
{
    struct queries *f = *state;
    struct query_plan plan = queries_plan(
        queries_path(f, "id"), query_or(&f->build, queries_compare(f, "a", QUERY_EQUAL, "7"),
                                        queries_compare(f, "b", QUERY_LESS, "30")));
    struct queries_how how = {.explain_has = "\"kind\":\"scan\""};

    add_mixed(f, 200);
    queries_open(f, &(struct test_space_options){0});
    queries_put(f);
    queries_same_set(queries_run(f, &plan, &how), queries_expect(f, &plan));
}

/* The first partition has few in the range; of the second, far more than are gathered at once. */
static void a_long_range_is_gathered_in_several_walks(void **state)
{
    struct queries *f = *state;
    struct query_plan plan =
        queries_plan(queries_path(f, "id"), traverses(f, "a", QUERY_GREATER, document_int32(5)));
    struct queries_how how = {.page = 700, .explain_has = "\"path\":\"/a/? OR /a/[]/?\""};

    for (size_t i = 0; i < 2600; i++) {
        char json[100];

        snprintf(json, sizeof json,
                 i % 2 ? "{\"id\":\"%s%zu\",\"a\":[%zu,6,%zu]}"
                       : "{\"id\":\"%s%zu\",\"a\":%zu,\"b\":%zu}",
                 i < 100 ? "a" : "b", i, i < 100 ? i % 6 : 6 + i % 9, i % 7);
        queries_add(f, json);
    }
    queries_open(f,
                 &(struct test_space_options){.paths = {"/id"}, .partitions = 2, .bounds = {"b"}});
    queries_put(f);
    queries_same_set(queries_run(f, &plan, &how), queries_expect(f, &plan));
    assert_true(how.pages >= 3);
}

/* --- At random -------------------------------------------------------------------------------- */

static struct document_value random_value(struct random *random)
{
    static const char *const texts[] = {"", "a", "b", "\xEF\xBF\xBD", "\xF0\x9F\x98\x80"};

    switch (random_below(random, 6)) {
    case 0:
        return document_null();
    case 1:
        return document_bool(random_below(random, 2));
    case 2:
        return document_string(slice_of_text(texts[random_below(random, ARRAY_LEN(texts))]));
    case 3:
        return document_double((double)random_below(random, 8) + 0.5);
    default:
        return document_int32((int32_t)random_below(random, 12));
    }
}

static void append_random(struct random *random, struct buf *buf, struct slice key, unsigned depth)
{
    struct document_value value = random_value(random);
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin;

    if (depth && random_below(random, 3) == 0) {
        begin = document_append_array_begin(buf, key);
        for (uint32_t i = 0; i < random_below(random, 4); i++)
            append_random(random, buf, document_index_key(i, text), depth - 1);
        document_end(buf, begin);
        return;
    }
    document_append(buf, key, &value);
}

static void add_random(struct queries *f, struct random *random, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CLEANUP(buf_done) struct buf buf;
        char id[16], pk[16];
        size_t begin;

        buf_init(&buf, BUF_DEFAULT_MAX);
        snprintf(id, sizeof id, "%03zu", i);
        snprintf(pk, sizeof pk, "k%u", (unsigned)random_below(random, 5));
        begin = document_begin(&buf);
        document_append_string(&buf, SLICE("id"), slice_of_text(id));
        document_append_string(&buf, SLICE("pk"), slice_of_text(pk));
        append_random(random, &buf, SLICE("a"), 2);
        if (random_below(random, 4))
            append_random(random, &buf, SLICE("b"), 1);
        document_end(&buf, begin);
        f->documents[f->document_count++] = arena_copy(f->arena, buf_slice(&buf));
    }
}

static const struct query_expression *random_filter(struct queries *f, struct random *random,
                                                    unsigned depth)
{
    static const char *const names[] = {"a", "b", "pk"};
    static const enum query_comparison comparisons[] = {QUERY_EQUAL, QUERY_LESS, QUERY_GREATER};
    const char *name = names[random_below(random, ARRAY_LEN(names))];
    enum query_comparison comparison =
        random_below(random, 2) ? QUERY_EQUAL : comparisons[random_below(random, 3)];
    struct document_value value = random_value(random);

    if (depth && random_below(random, 4)) {
        const struct query_expression *left = random_filter(f, random, depth - 1);
        const struct query_expression *right = random_filter(f, random, depth - 1);

        if (random_below(random, 8) == 0)
            return query_not(&f->build, query_or(&f->build, left, right));
        return random_below(random, 3) ? query_or(&f->build, left, right)
                                       : query_and(&f->build, left, right);
    }
    if (strcmp(name, "pk") == 0)
        value = document_string(SLICE("k3"));
    if (random_below(random, 2))
        return traverses(f, name, comparison, value);
    return query_compare(&f->build, comparison, queries_path(f, name),
                         query_constant(&f->build, value));
}

static void random_filters_of_any_kind_find_the_same_rows(void **state)
{
    struct queries *f = *state;
    struct random random;
    size_t united = 0;

    random_seed(&random, 16);
    add_random(f, &random, 150);
    for (size_t p = 0; p < 2 * 2 * QUERIES_POLICIES; p++) {
        f->build.order = p % 2 ? DOCUMENT_ORDER_MONGO : DOCUMENT_ORDER_SQL;
        queries_open(f, &(struct test_space_options){.policy = queries_policies[p / 4],
                                                     .partitions = p / 2 % 2 ? 16 : 1});
        queries_put(f);
        for (size_t round = 0; round < 120; round++) {
            struct query_aggregate_call call = {QUERY_COUNT, queries_value(f, "1"), 1};
            struct query_order order = {queries_path(f, "id"), random_below(&random, 2)};
            struct query_plan plan =
                queries_plan(queries_path(f, "id"), random_filter(f, &random, 2));
            struct queries_how how = {.page = 1 + random_below(&random, 20),
                                      .cached = random_below(&random, 2)};

            plan.order = f->build.order;
            f->build.nodes = 0;
            queries_same_set(queries_run(f, &plan, &how), queries_expect(f, &plan));
            united += how.last.explain.len &&
                      memmem(how.last.explain.data, how.last.explain.len, "union", 5) != NULL;
            plan.query.order = &order;
            plan.query.order_count = 1;
            queries_same(queries_run(f, &plan, &how), queries_expect(f, &plan));
            plan.query.order_count = 0;
            plan.query.aggregates = &call;
            plan.query.aggregate_count = 1;
            plan.query.select = query_variable(&f->build, 1);
            queries_same(queries_run(f, &plan, &how), queries_expect(f, &plan));
        }
    }
    assert_true(united > 50);
    query_cache_free(TAKE(f->cache));
}

/* --- MongoDB's order -------------------------------------------------------------------------- */

static const char *const nested[] = {"[]", "[1,2]", "[true]", "{}", "{\"x\":1}", "{\"x\":\"y\"}"};

/* A value of every type that differs from the others; text twice where the orders disagree. */
static struct document_value value_nth(struct queries *f, size_t n)
{
    static const uint8_t id[DOCUMENT_OBJECT_ID_SIZE] = {1, 2, 3};
    struct document_value value;

    switch (n % 16) {
    case 0:
        return document_null();
    case 1:
        return document_bool(n % 32 > 15);
    case 2:
        return document_string(SLICE("\xEF\xBF\xBD"));
    case 3:
        return document_string(SLICE("\xF0\x9F\x98\x80"));
    case 4:
        return document_double(2.5);
    case 5:
        value = document_value_of_type(DOCUMENT_DATE);
        value.timestamp = 1000;
        return value;
    case 6:
        value = document_value_of_type(DOCUMENT_OBJECT_ID);
        value.id = id;
        return value;
    case 7:
        return document_int64(INT64_C(1) << 53);
    case 8:
    case 9:
    case 10:
    case 11:
    case 12:
    case 13:
        return value_of(f->arena, nested[n % 16 - 8]);
    case 14:
        return document_string(SLICE("b"));
    default:
        return document_int32(-1);
    }
}

static void add_every_type(struct queries *f, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CLEANUP(buf_done) struct buf buf;
        struct document_value value = value_nth(f, i * 7);
        char id[16];
        size_t begin;

        buf_init(&buf, BUF_DEFAULT_MAX);
        snprintf(id, sizeof id, "%03zu", i);
        begin = document_begin(&buf);
        document_append_string(&buf, SLICE("id"), slice_of_text(id));
        document_append_string(&buf, SLICE("pk"), slice_of(id + 2, 1));
        document_append(&buf, SLICE("a"), &value);
        document_end(&buf, begin);
        f->documents[f->document_count++] = arena_copy(f->arena, buf_slice(&buf));
    }
}

/* Every document once, each where the order has it; equal ones may stand in any order. */
static void check_sorted(struct queries *f, const struct queries_rows *rows,
                         enum document_order order, bool descending)
{
    struct document_value before = document_undefined(), value;
    bool seen[400] = {0};

    assert_int_equal(rows->count, f->document_count);
    for (size_t i = 0; i < rows->count; i++) {
        size_t number = (size_t)strtoul(rows->texts[i] + 1, NULL, 10);
        int compared;

        assert_false(seen[number]);
        seen[number] = true;
        assert_true(document_find(f->documents[number], SLICE("a"), &value));
        compared = i ? document_compare(order, &before, &value) : 0;
        assert_true(descending ? compared >= 0 : compared <= 0);
        before = value;
    }
}

static void values_of_all_types_are_sorted_in_the_plans_order(void **state)
{
    struct queries *f = *state;

    add_every_type(f, 90);
    for (size_t p = 0; p < 2 * QUERIES_POLICIES; p++) {
        queries_open(f, &(struct test_space_options){.policy = queries_policies[p / 2],
                                                     .partitions = p % 2 ? 8 : 1});
        queries_put(f);
        for (unsigned round = 0; round < 8; round++) {
            struct query_order order = {queries_path(f, "a"), round & 1};
            struct query_plan plan = queries_plan(queries_path(f, "id"), NULL);
            struct queries_how how = {.cached = round & 2, .memory_max = round & 2 ? 3000 : 0};

            plan.order = round & 4 ? DOCUMENT_ORDER_SQL : DOCUMENT_ORDER_MONGO;
            plan.order_free = true;
            plan.query.order = &order;
            plan.query.order_count = 1;
            check_sorted(f, queries_run(f, &plan, &how), plan.order, round & 1);
        }
    }
    query_cache_free(TAKE(f->cache));
}

static void groups_are_told_apart_in_the_plans_order(void **state)
{
    struct queries *f = *state;
    struct query_group_key key = {queries_path(f, "a"), 1};
    struct query_aggregate_call call = {QUERY_COUNT, queries_value(f, "1"), 2};
    struct query_plan plan = queries_plan(query_variable(&f->build, 2), NULL);
    struct queries_how how = {.page = 1};

    queries_add(f, "{\"id\":\"1\",\"a\":{\"x\":1,\"y\":2}}");
    queries_add(f, "{\"id\":\"2\",\"a\":{\"y\":2,\"x\":1}}");
    queries_add(f, "{\"id\":\"3\",\"a\":{\"x\":1.0,\"y\":2}}");
    queries_open(f, &(struct test_space_options){.partitions = 4});
    queries_put(f);
    plan.query.keys = &key;
    plan.query.key_count = 1;
    plan.query.aggregates = &call;
    plan.query.aggregate_count = 1;
    queries_are(queries_run(f, &plan, &how), "3");
    plan.order = DOCUMENT_ORDER_MONGO; /* the order of properties counts */
    queries_are(queries_run(f, &plan, &how), "2 1");
    plan.query.key_count = plan.query.aggregate_count = 0;
    plan.query.distinct = true;
    plan.query.select = queries_path(f, "a");
    assert_int_equal(queries_run(f, &plan, &how)->count, 2);
    plan.order = DOCUMENT_ORDER_SQL;
    assert_int_equal(queries_run(f, &plan, &how)->count, 1);
}

static void the_least_and_the_greatest_are_those_of_the_plans_order(void **state)
{
    struct queries *f = *state;
    struct query_aggregate_call calls[] = {{QUERY_MIN, queries_path(f, "a"), 1},
                                           {QUERY_MAX, queries_path(f, "a"), 2}};
    const struct query_expression *results[] = {query_variable(&f->build, 1),
                                                query_variable(&f->build, 2)};
    struct query_plan plan = queries_plan(query_array(&f->build, results, 2), NULL);
    struct queries_how how = {0};

    plan.query.aggregates = calls;
    plan.query.aggregate_count = ARRAY_LEN(calls);
    queries_add(f, "{\"id\":\"1\",\"a\":true}");
    queries_add(f, "{\"id\":\"2\",\"a\":\"\xEF\xBF\xBD\"}");
    queries_add(f, "{\"id\":\"3\",\"a\":\"\xF0\x9F\x98\x80\"}");
    for (size_t i = 0; i < 2; i++) {
        queries_open(f, &(struct test_space_options){.partitions = 1 + 3 * i});
        queries_put(f);
        plan.order = DOCUMENT_ORDER_SQL;
        queries_are(queries_run(f, &plan, &how), "[true,\"\xEF\xBF\xBD\"]");
        plan.order = DOCUMENT_ORDER_MONGO;
        queries_are(queries_run(f, &plan, &how), "[\"\xEF\xBF\xBD\",true]");
    }
    queries_add(f, "{\"id\":\"4\",\"a\":[1]}");
    queries_add(f, "{\"id\":\"5\",\"a\":7}");
    queries_open(f, &(struct test_space_options){.partitions = 4});
    queries_put(f);
    queries_are(queries_run(f, &plan, &how), "[7,true]");
    plan.order = DOCUMENT_ORDER_SQL; /* an array spoils both */
    queries_are(queries_run(f, &plan, &how), "[]");
}

static void texts_are_compared_in_the_plans_order_with_any_index(void **state)
{
    struct queries *f = *state;
    struct query_plan plan;
    struct queries_how how = {0};

    queries_add(f, "{\"id\":\"1\",\"a\":\"\xEF\xBF\xBD\"}");
    queries_add(f, "{\"id\":\"2\",\"a\":\"\xF0\x9F\x98\x80\"}");
    plan = queries_plan(queries_path(f, "id"),
                        queries_compare(f, "a", QUERY_GREATER, "\"\xEF\xBF\xBD\""));
    for (size_t i = 0; i < QUERIES_POLICIES; i++) {
        queries_open(f, &(struct test_space_options){.policy = queries_policies[i]});
        queries_put(f);
        plan.order = DOCUMENT_ORDER_SQL;
        queries_are(queries_run(f, &plan, &how), "");
        plan.order = DOCUMENT_ORDER_MONGO;
        queries_are(queries_run(f, &plan, &how), "\"2\"");
    }
}

/* --- Indexes in an order of their own ----------------------------------------------------------
 */

static const char *const by_a =
    "{\"name\":\"by a\",\"key\":[{\"path\":\"/a\"}],\"order\":\"mongo\"}";
static const char *const by_a_and_b =
    "{\"name\":\"by a and b\",\"key\":[{\"path\":\"/a\"},"
    "{\"path\":\"/b\",\"order\":\"descending\"}],\"order\":\"mongo\"}";
static const char *const by_a_in_sql = "{\"name\":\"by a in SQL\",\"key\":[{\"path\":\"/a\"}]}";
static const char nothing[] = "{\"indexingMode\":\"none\"}";

static struct query_plan sorted_plan(struct queries *f, struct query_order *order, size_t count)
{
    struct query_plan plan = queries_plan(queries_path(f, "id"), NULL);

    plan.order = f->build.order;
    plan.order_free = true;
    plan.query.order = order;
    plan.query.order_count = count;
    return plan;
}

static void an_index_in_the_plans_order_gives_it(void **state)
{
    struct queries *f = *state;

    f->build.order = DOCUMENT_ORDER_MONGO;
    add_every_type(f, 90);
    for (size_t p = 0; p < 4; p++) {
        queries_open(f, &(struct test_space_options){.policy = p & 2 ? nothing : NULL,
                                                     .indexes = {by_a},
                                                     .partitions = p & 1 ? 8 : 1});
        queries_put(f);
        for (unsigned descending = 0; descending < 2; descending++) {
            struct query_order order = {queries_path(f, "a"), descending};
            struct query_plan plan = sorted_plan(f, &order, 1);
            struct queries_how how = {.explain_has = "\"path\":\"by a\""};

            check_sorted(f, queries_run(f, &plan, &how), DOCUMENT_ORDER_MONGO, descending);
            plan.order = DOCUMENT_ORDER_SQL; /* which it does not have */
            how = (struct queries_how){.page = 50};
            check_sorted(f, queries_run(f, &plan, &how), DOCUMENT_ORDER_SQL, descending);
        }
    }
}

/* Texts that part where UTF-16 units and bytes disagree, and numbers of all types. */
static const char *const mixed_values[] = {
    "1",
    "2.5",
    "3",
    "-7",
    "\"\xEF\xBF\xBD\"",
    "\"\xF0\x9F\x98\x80\"",
    "\"a\"",
    "true",
    "null",
    "false",
    "[1,2]",
    "{\"x\":1}",
    "\"b\"",
};

static void add_pairs(struct queries *f, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char json[200];

        snprintf(json, sizeof json, "{\"id\":\"%03zu\",\"pk\":\"k%zu\",\"a\":%s,\"b\":%s}", i,
                 i % 5, mixed_values[i % ARRAY_LEN(mixed_values)],
                 mixed_values[i / 3 % ARRAY_LEN(mixed_values)]);
        queries_add(f, json);
    }
}

static void ranges_are_served_by_an_index_where_the_orders_agree(void **state)
{
    static const struct {
        const char *index, *value, *served_by; /* NULL: a type and no more */
        enum query_comparison comparison;
    } cases[] = {
        {by_a, "\"\xEF\xBF\xBD\"", "\"filterSettled\":true", QUERY_GREATER},
        {by_a, "\"\xF0\x9F\x98\x80\"", "\"filterSettled\":true", QUERY_LESS},
        {by_a, "2", "\"filterSettled\":true", QUERY_GREATER},
        {by_a, "true", "\"filterSettled\":true", QUERY_LESS},
        {by_a_in_sql, "2", "\"filterSettled\":true", QUERY_GREATER},
        {by_a_in_sql, "true", "\"filterSettled\":true", QUERY_LESS},
        {by_a_in_sql, "\"a\"", "\"filterSettled\":true", QUERY_EQUAL},
        {by_a_in_sql, "\"\xEF\xBF\xBD\"", "\"filterSettled\":false", QUERY_GREATER},
        {by_a_in_sql, "\"\xF0\x9F\x98\x80\"", "\"filterSettled\":false", QUERY_LESS},
    };
    struct queries *f = *state;

    f->build.order = DOCUMENT_ORDER_MONGO;
    add_pairs(f, 120);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct query_plan plan = queries_plan(
            queries_path(f, "id"), queries_compare(f, "a", cases[i].comparison, cases[i].value));
        struct queries_how how = {.explain_has = cases[i].served_by};

        plan.order = DOCUMENT_ORDER_MONGO;
        queries_open(f, &(struct test_space_options){
                            .policy = nothing, .indexes = {cases[i].index}, .partitions = 4});
        queries_put(f);
        queries_same_set(queries_run(f, &plan, &how), queries_expect(f, &plan));
        how.explain_has = "\"path\":\"by a";
        queries_same_set(queries_run(f, &plan, &how), queries_expect(f, &plan));
    }
}

/* Whole values are compared, however much of them an index has. */
static void check_pairs_sorted(struct queries *f, const struct queries_rows *rows,
                               const struct query_order *order)
{
    bool seen[200] = {0};

    assert_int_equal(rows->count, f->document_count);
    seen[strtoul(rows->texts[0] + 1, NULL, 10)] = true;
    for (size_t i = 1; i < rows->count; i++) {
        struct document_value x[2], y[2];
        size_t before = (size_t)strtoul(rows->texts[i - 1] + 1, NULL, 10);
        size_t number = (size_t)strtoul(rows->texts[i] + 1, NULL, 10);
        int compared = 0;

        for (size_t part = 0; part < 2 && !compared; part++) {
            struct slice name = part ? SLICE("b") : SLICE("a");

            assert_true(document_find(f->documents[before], name, &x[part]));
            assert_true(document_find(f->documents[number], name, &y[part]));
            compared = document_compare(f->build.order, &x[part], &y[part]);
            compared = order[part].descending ? -compared : compared;
        }
        assert_false(seen[number]);
        seen[number] = true;
        if (compared > 0)
            fail_msg("row %zu, %s, does not come after %s", i, rows->texts[i], rows->texts[i - 1]);
    }
}

static void sorts_in_mixed_directions_come_from_an_index_or_from_the_partitions(void **state)
{
    struct queries *f = *state;

    add_pairs(f, 130);
    for (size_t i = 130; i < 160; i++) { /* cut by the index in the first value and in the second */
        char json[1200], tail[300];

        memset(tail, 'x', 290);
        snprintf(tail + 290, sizeof tail - 290, "%02zu", i * 7 % 10);
        snprintf(json, sizeof json, "{\"id\":\"%03zu\",\"pk\":\"k%zu\",\"a\":\"%s\",\"b\":\"%s\"}",
                 i, i % 3, i % 2 ? tail : "short", i % 3 ? tail : "other");
        queries_add(f, json);
    }
    f->build.order = DOCUMENT_ORDER_MONGO;
    for (size_t p = 0; p < 8; p++) {
        const char *index = p & 1 ? by_a_and_b : NULL;

        queries_open(f, &(struct test_space_options){.policy = p & 4 ? nothing : NULL,
                                                     .indexes = {index},
                                                     .partitions = p & 2 ? 8 : 1});
        queries_put(f);
        for (unsigned way = 0; way < 4; way++) {
            struct query_order order[] = {{queries_path(f, "a"), way & 1},
                                          {queries_path(f, "b"), way & 2}};
            bool served = index && (order[0].descending != order[1].descending);
            struct query_plan plan = sorted_plan(f, order, 2);

            for (uint64_t page = 1; page < 200; page = page * 5 + 2) {
                struct queries_how how = {
                    .page = page,
                    .explain_has = served && page < 20 ? "\"path\":\"by a and b\"" : NULL};

                check_pairs_sorted(f, queries_run(f, &plan, &how), order);
            }
            plan.query.limit = 5; /* of which no more is read than needed */
            struct queries_how how = {.page = 5};
            assert_int_equal(queries_run(f, &plan, &how)->count, 5);
            if (served)
                assert_true(how.last.metrics.items_loaded <= 20);
        }
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, queries_setup, queries_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_value_or_an_element_is_two_seeks),
        TEST(one_of_two_indexed_paths_is_counted_without_items),
        TEST(an_order_is_kept_where_a_union_leads_to_the_items),
        TEST(of_what_must_all_be_so_one_index_serves),
        TEST(a_union_of_half_the_items_is_a_scan),
        TEST(a_long_range_is_gathered_in_several_walks),
        TEST(random_filters_of_any_kind_find_the_same_rows),
        TEST(values_of_all_types_are_sorted_in_the_plans_order),
        TEST(groups_are_told_apart_in_the_plans_order),
        TEST(the_least_and_the_greatest_are_those_of_the_plans_order),
        TEST(texts_are_compared_in_the_plans_order_with_any_index),
        TEST(an_index_in_the_plans_order_gives_it),
        TEST(ranges_are_served_by_an_index_where_the_orders_agree),
        TEST(sorts_in_mixed_directions_come_from_an_index_or_from_the_partitions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
