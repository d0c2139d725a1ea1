/* Random expressions over random documents: compiled, they come to what an evaluator says that
 * reads them as they are written; and as $expr of a filter they find the same documents with every
 * index and with none, over one partition and sixteen. */
#include "front/mongo/expression/expression.h"
#include "front/mongo/match/match.h"
#include "query/value/value.h"
#include "support/queries.h"

#include <math.h>

/* --- The naive evaluator ---------------------------------------------------------------------- */

struct naive {
    struct arena *arena;
    struct slice document;
    bool failed;
};

static struct document_value naive_value(struct naive *n, const struct document_value *expression);

static bool is(const struct document_iter *iter, const char *name)
{
    return slice_equal(iter->key, slice_of_text(name));
}

static bool nullish(const struct document_value *value)
{
    return value->type == DOCUMENT_NULL || value->type == DOCUMENT_UNDEFINED;
}

static bool truth(const struct document_value *value)
{
    if (nullish(value) || (value->type == DOCUMENT_BOOL && !value->boolean))
        return false;
    if (value->type == DOCUMENT_INT32)
        return value->int32 != 0;
    if (value->type == DOCUMENT_INT64)
        return value->int64 != 0;
    return value->type != DOCUMENT_DOUBLE || value->number != 0;
}

static struct document_value refuse(struct naive *n)
{
    n->failed = true;
    return document_null();
}

static struct document_value array_of(struct naive *n, const struct document_value *values,
                                      size_t count)
{
    CLEANUP(buf_done) struct buf buf;
    const struct document_value null = document_null();
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    for (uint32_t i = 0; i < count; i++)
        document_append(&buf, document_index_key(i, text),
                        values[i].type == DOCUMENT_UNDEFINED ? &null : &values[i]);
    document_end(&buf, begin);
    return document_array(arena_copy(n->arena, buf_slice(&buf)));
}

static size_t elements(struct slice array, struct document_value list[64])
{
    struct document_iter iter;
    size_t count = 0;

    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        assert_true(count < 64);
        list[count++] = iter.value;
    }
    return count;
}

/* a, then .x of it: of an array, of each element that is an object and has it. */
static struct document_value naive_path(struct naive *n, struct slice path)
{
    struct document_value value = document_object(n->document), list[64];
    struct slice name, rest = path, tail = SLICE_NONE;
    bool more = true;

    for (; more; rest = tail) {
        more = slice_split(rest, '.', &name, &tail);
        if (!more)
            name = rest;
        if (value.type == DOCUMENT_ARRAY) {
            size_t count = elements(value.document, list), kept = 0;

            assert_false(more); /* paths of this test have no more steps than two */
            for (size_t i = 0; i < count; i++)
                if (list[i].type == DOCUMENT_OBJECT &&
                    document_find(list[i].document, name, &list[kept]))
                    kept++;
            return array_of(n, list, kept);
        }
        if (value.type != DOCUMENT_OBJECT || !document_find(value.document, name, &value))
            return document_undefined();
    }
    return value;
}

static int rank(const struct document_value *value)
{
    return value->type == DOCUMENT_DOUBLE ? 2 : value->type == DOCUMENT_INT64 ? 1 : 0;
}

/* In halves, so that all is whole: the numbers of this test are multiples of 1/2. */
static struct document_value naive_arithmetic(struct naive *n, char op,
                                              const struct document_value *a,
                                              const struct document_value *b)
{
    double x, y, result;
    int wide;

    if (nullish(a) || (op == '-' && nullish(b)))
        return document_null();
    if (!document_to_double(a, &x)) /* before the second is looked at */
        return refuse(n);
    if (nullish(b))
        return document_null();
    if (!document_to_double(b, &y))
        return refuse(n);
    result = op == '+' ? x + y : op == '-' ? x - y : x * y;
    wide = MAX(rank(a), rank(b));
    if (wide == 2 || fabs(result) > 0x1p52)
        return document_double(result);
    if (wide == 1 || result < INT32_MIN || result > INT32_MAX)
        return document_int64((int64_t)result);
    return document_int32((int32_t)result);
}

static struct document_value naive_list(struct naive *n, const struct document_iter *op,
                                        const struct document_value *a, size_t count)
{
    struct document_value list[64];
    size_t length;

    if (is(op, "$size")) {
        if (a[0].type != DOCUMENT_ARRAY)
            return refuse(n);
        return document_int32((int32_t)document_count(a[0].document));
    }
    if (is(op, "$in")) {
        if (a[1].type != DOCUMENT_ARRAY)
            return refuse(n);
        length = elements(a[1].document, list);
        for (size_t i = 0; i < length; i++)
            if (document_compare(DOCUMENT_ORDER_MONGO, &a[0], &list[i]) == 0)
                return document_bool(true);
        return document_bool(false);
    }
    if (is(op, "$concatArrays")) {
        length = 0;
        for (size_t i = 0; i < count; i++) {
            if (nullish(&a[i]))
                return document_null();
            if (a[i].type != DOCUMENT_ARRAY)
                return refuse(n);
        }
        for (size_t i = 0; i < count; i++)
            length += elements(a[i].document, list + length);
        return array_of(n, list, length);
    }
    if (nullish(&a[0]))
        return document_null();
    if (a[0].type != DOCUMENT_ARRAY)
        return refuse(n);
    length = elements(a[0].document, list);
    if (is(op, "$arrayElemAt")) {
        int64_t at = a[1].int32 < 0 ? (int64_t)length + a[1].int32 : a[1].int32;

        return at < 0 || at >= (int64_t)length ? document_undefined() : list[at];
    }
    if (is(op, "$reverseArray")) {
        struct document_value turned[64];

        for (size_t i = 0; i < length; i++)
            turned[i] = list[length - 1 - i];
        return array_of(n, turned, length);
    }
    assert_true(is(op, "$slice"));
    if (a[1].int32 < 0)
        return array_of(n, list + MAX((int64_t)length + a[1].int32, 0),
                        MIN(length, (size_t)-a[1].int32));
    return array_of(n, list, MIN(length, (size_t)a[1].int32));
}

static struct document_value naive_compare(const struct document_iter *op,
                                           const struct document_value *a)
{
    int order = document_compare(DOCUMENT_ORDER_MONGO, &a[0], &a[1]);

    if (is(op, "$cmp"))
        return document_int32((order > 0) - (order < 0));
    return document_bool(is(op, "$eq")    ? order == 0
                         : is(op, "$ne")  ? order != 0
                         : is(op, "$lt")  ? order < 0
                         : is(op, "$lte") ? order <= 0
                         : is(op, "$gt")  ? order > 0
                                          : order >= 0);
}

static struct document_value naive_operator(struct naive *n, const struct document_iter *op)
{
    struct document_value given[64], a[8];
    size_t count = elements(op->value.document, given);
    bool stops = is(op, "$and") || is(op, "$or");

    assert_true(count <= ARRAY_LEN(a));
    if (is(op, "$cond")) {
        struct document_value chosen = naive_value(n, &given[0]);

        return n->failed ? chosen : naive_value(n, &given[truth(&chosen) ? 1 : 2]);
    }
    for (size_t i = 0; i < count; i++) {
        a[i] = naive_value(n, &given[i]);
        if (n->failed)
            return a[i];
        if (stops && truth(&a[i]) == is(op, "$or"))
            return document_bool(is(op, "$or"));
        if (is(op, "$ifNull") && (!nullish(&a[i]) || i + 1 == count))
            return a[i];
    }
    if (stops)
        return document_bool(is(op, "$and"));
    if (is(op, "$not"))
        return document_bool(!truth(&a[0]));
    if (is(op, "$isArray"))
        return document_bool(a[0].type == DOCUMENT_ARRAY);
    if (is(op, "$add"))
        return naive_arithmetic(n, '+', &a[0], &a[1]);
    if (is(op, "$subtract"))
        return naive_arithmetic(n, '-', &a[0], &a[1]);
    if (is(op, "$multiply"))
        return naive_arithmetic(n, '*', &a[0], &a[1]);
    if (is(op, "$size") || is(op, "$in") || is(op, "$concatArrays") || is(op, "$arrayElemAt") ||
        is(op, "$reverseArray") || is(op, "$slice"))
        return naive_list(n, op, a, count);
    return naive_compare(op, a);
}

static struct document_value naive_value(struct naive *n, const struct document_value *expression)
{
    struct document_value list[64];
    struct document_iter iter;
    size_t count;

    if (expression->type == DOCUMENT_STRING && expression->text.len &&
        expression->text.data[0] == '$')
        return naive_path(n, slice_skip(expression->text, 1));
    if (expression->type == DOCUMENT_ARRAY) {
        count = elements(expression->document, list);
        for (size_t i = 0; i < count && !n->failed; i++)
            list[i] = naive_value(n, &list[i]);
        return n->failed ? document_null() : array_of(n, list, count);
    }
    if (expression->type != DOCUMENT_OBJECT)
        return *expression;
    document_iter_init(&iter, expression->document);
    assert_true(document_iter_next(&iter));
    return naive_operator(n, &iter);
}

/* --- Chance ----------------------------------------------------------------------------------- */

static struct document_value scalar_random(struct random *random)
{
    switch (random_below(random, 8)) {
    case 0:
        return document_null();
    case 1:
        return document_bool(random_below(random, 2));
    case 2:
        return document_string(random_below(random, 2) ? SLICE("a") : SLICE("b"));
    case 3:
        return document_double((double)random_below(random, 9) / 2 - 2);
    case 4:
        return document_int64((int64_t)random_below(random, 5));
    default:
        return document_int32((int32_t)random_below(random, 6) - 1);
    }
}

static void append_random(struct random *random, struct buf *buf, struct slice key, unsigned depth)
{
    struct document_value value = scalar_random(random);
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin;

    switch (depth ? random_below(random, 4) : 3) {
    case 0:
        begin = document_append_array_begin(buf, key);
        for (uint32_t i = 0, count = (uint32_t)random_below(random, 4); i < count; i++)
            append_random(random, buf, document_index_key(i, text), depth - 1);
        document_end(buf, begin);
        return;
    case 1:
        begin = document_append_object_begin(buf, key);
        append_random(random, buf, SLICE("x"), 0);
        document_end(buf, begin);
        return;
    default:
        document_append(buf, key, &value);
    }
}

static void add_random(struct queries *f, struct random *random, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CLEANUP(buf_done) struct buf buf;
        char id[16];
        size_t begin;

        buf_init(&buf, BUF_DEFAULT_MAX);
        snprintf(id, sizeof id, "%03zu", i);
        begin = document_begin(&buf);
        document_append_string(&buf, SLICE("id"), slice_of_text(id));
        append_random(random, &buf, SLICE("pk"), 0);
        append_random(random, &buf, SLICE("a"), 2);
        if (random_below(random, 4))
            append_random(random, &buf, SLICE("b"), 2);
        document_end(&buf, begin);
        f->documents[f->document_count++] = arena_copy(f->arena, buf_slice(&buf));
    }
}

static void expression_random(struct random *random, struct buf *buf, struct slice key,
                              unsigned depth);

static void append_operator(struct random *random, struct buf *buf, unsigned depth)
{
    static const struct {
        const char *name;
        uint8_t count;
        bool index; /* the last argument is a small number */
    } operators[] = {{"$add", 2},
                     {"$subtract", 2},
                     {"$multiply", 2},
                     {"$eq", 2},
                     {"$eq", 2},
                     {"$ne", 2},
                     {"$lt", 2},
                     {"$lte", 2},
                     {"$gt", 2},
                     {"$gte", 2},
                     {"$cmp", 2},
                     {"$and", 2},
                     {"$and", 3},
                     {"$or", 2},
                     {"$not", 1},
                     {"$cond", 3},
                     {"$ifNull", 2},
                     {"$in", 2},
                     {"$size", 1},
                     {"$concatArrays", 2},
                     {"$reverseArray", 1},
                     {"$isArray", 1},
                     {"$arrayElemAt", 2, true},
                     {"$slice", 2, true}};
    size_t which = random_below(random, ARRAY_LEN(operators));
    size_t list = document_append_array_begin(buf, slice_of_text(operators[which].name));
    char text[DOCUMENT_INDEX_SIZE];

    for (uint32_t i = 0; i < operators[which].count; i++) {
        if (operators[which].index && i == 1)
            document_append_int32(buf, document_index_key(i, text),
                                  (int32_t)random_below(random, 6) - 3);
        else
            expression_random(random, buf, document_index_key(i, text), depth - 1);
    }
    document_end(buf, list);
}

static void expression_random(struct random *random, struct buf *buf, struct slice key,
                              unsigned depth)
{
    static const char *const paths[] = {"$a", "$a", "$b", "$pk", "$a.x", "$b.x", "$none"};
    struct document_value value;
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin;

    switch (random_below(random, depth ? 8 : 4)) {
    case 0:
    case 1:
        document_append_string(buf, key, slice_of_text(paths[random_below(random, 7)]));
        return;
    case 2:
        value = scalar_random(random);
        document_append(buf, key, &value);
        return;
    case 3:
        begin = document_append_array_begin(buf, key);
        for (uint32_t i = 0, count = (uint32_t)random_below(random, 4); i < count; i++) {
            value = scalar_random(random);
            document_append(buf, document_index_key(i, text), &value);
        }
        document_end(buf, begin);
        return;
    default:
        begin = document_append_object_begin(buf, key);
        append_operator(random, buf, depth);
        document_end(buf, begin);
    }
}

/* What indexes can serve. */
static void append_equality(struct random *random, struct buf *buf, unsigned depth)
{
    static const char *const paths[] = {"$a", "$b", "$pk", "$a.x"};
    struct document_value value = scalar_random(random);
    size_t begin, inner;

    if (depth && random_below(random, 2)) {
        begin = document_append_array_begin(buf,
                                            random_below(random, 2) ? SLICE("$and") : SLICE("$or"));
        for (uint32_t i = 0; i < 2; i++) {
            char text[DOCUMENT_INDEX_SIZE];

            inner = document_append_object_begin(buf, document_index_key(i, text));
            append_equality(random, buf, depth - 1);
            document_end(buf, inner);
        }
        document_end(buf, begin);
        return;
    }
    begin = document_append_array_begin(buf, SLICE("$eq"));
    document_append_string(buf, SLICE("0"), slice_of_text(paths[random_below(random, 4)]));
    document_append(buf, SLICE("1"), &value);
    document_end(buf, begin);
}

static struct document_value expression_new(struct queries *f, struct random *random, bool filter)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value made = document_undefined();
    struct slice bytes;
    size_t begin, inner = 0;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    if (filter) {
        inner = document_append_object_begin(&buf, SLICE("$expr"));
        if (random_below(random, 2))
            append_equality(random, &buf, 2);
        else
            append_operator(random, &buf, 3);
        document_end(&buf, inner);
    } else {
        expression_random(random, &buf, SLICE("$expr"), 4);
    }
    document_end(&buf, begin);
    bytes = arena_copy(f->arena, buf_slice(&buf));
    assert_true(document_find(bytes, SLICE("$expr"), &made));
    return filter ? document_object(bytes) : made;
}

/* --- Claims ----------------------------------------------------------------------------------- */

static bool same_bytes(const struct document_value *a, const struct document_value *b)
{
    return a->type == b->type && document_compare(DOCUMENT_ORDER_MONGO, a, b) == 0;
}

static void random_expressions_come_to_what_a_naive_evaluator_says(void **state)
{
    struct queries *f = *state;
    size_t failures = 0, values = 0;
    struct random random;

    random_seed(&random, 5);
    add_random(f, &random, 60);
    for (size_t round = 0; round < 4000; round++) {
        CLEANUP(query_context_done) struct query_context context = {0};
        struct naive naive = {.arena = f->arena};
        struct document_value expression = expression_new(f, &random, false), got, expected;
        struct query_slot slot = {0};
        const struct query_expression *compiled;
        struct query_build build = {
            .arena = f->arena, .order = DOCUMENT_ORDER_MONGO, .keep_nonfinite = true};
        struct error err;
        bool done;

        naive.document = f->documents[random_below(&random, f->document_count)];
        slot.value = document_object(naive.document);
        query_context_init(&context, f->arena, NULL, NULL);
        context.order = DOCUMENT_ORDER_MONGO;
        context.slots = &slot;
        context.slot_count = 1;
        assert_ok(mongo_expression_compile(&expression, NULL, &build, &compiled, &err), &err);
        done = query_evaluate(compiled, &context, &got, &err);
        expected = naive_value(&naive, &expression);
        /* all arguments are evaluated before a null among them decides: more may fail */
        if (!done) {
            failures++;
            continue;
        }
        assert_false(naive.failed);
        assert_true(same_bytes(&got, &expected));
        values++;
    }
    assert_true(values > 1500);
    assert_true(failures > 100);
}

static void random_filters_find_the_same_with_every_index(void **state)
{
    struct queries *f = *state;
    size_t found = 0, served = 0;
    struct random random;

    random_seed(&random, 23);
    add_random(f, &random, 120);
    for (size_t p = 0; p < 2 * QUERIES_POLICIES; p++) {
        queries_open(f, &(struct test_space_options){.policy = queries_policies[p / 2],
                                                     .partitions = p % 2 ? 16 : 1});
        queries_put(f);
        for (size_t round = 0; round < 150; round++) {
            const struct mongo_match_options options = {.expression = mongo_expression_hook};
            struct document_value filter = expression_new(f, &random, true), expression, id;
            struct queries_rows *expected = ARENA_NEW(f->arena, struct queries_rows);
            struct queries_how how = {.page = 1 + random_below(&random, 60)};
            const struct query_expression *where;
            struct query_plan plan;
            struct error err;
            bool failed = false;

            assert_true(document_find(filter.document, SLICE("$expr"), &expression));
            expected->arena = f->arena;
            for (size_t i = 0; i < f->document_count; i++) {
                struct naive naive = {.arena = f->arena, .document = f->documents[i]};
                struct document_value value = naive_value(&naive, &expression);

                failed |= naive.failed;
                if (!truth(&value))
                    continue;
                assert_true(document_find(f->documents[i], SLICE("id"), &id));
                assert_true(queries_row(expected, &id, &err));
            }
            if (failed) /* whether a document that fails is looked at is the planner's to say */
                continue;
            f->build.nodes = 0;
            f->build.order = DOCUMENT_ORDER_MONGO;
            assert_ok(mongo_match_compile(filter.document, &options, &f->build, &where, &err),
                      &err);
            plan = queries_plan(queries_path(f, "id"), where);
            plan.order = DOCUMENT_ORDER_MONGO;
            queries_same_set(queries_run(f, &plan, &how), expected);
            found += expected->count;
            served += how.last.explain.len &&
                      memmem(how.last.explain.data, how.last.explain.len, "/?", 2);
        }
    }
    assert_true(found > 1000);
    assert_true(served > 50);
}

static void an_equality_is_a_seek(void **state)
{
    const struct mongo_match_options options = {.expression = mongo_expression_hook};
    struct queries *f = *state;
    struct queries_how how = {.page = 1000, .explain_has = "\"path\":\"/a/?\""};
    const struct query_expression *where;
    struct query_plan plan;
    struct error err;

    queries_add_numbered(f, 200);
    queries_open(f, &(struct test_space_options){0});
    queries_put(f);
    f->build.order = DOCUMENT_ORDER_MONGO;
    assert_ok(mongo_match_compile(document_of(f->arena, "{\"$expr\":{\"$eq\":[\"$a\",7]}}"),
                                  &options, &f->build, &where, &err),
              &err);
    plan = queries_plan(queries_path(f, "id"), where);
    plan.order = DOCUMENT_ORDER_MONGO;
    queries_same_set(queries_run(f, &plan, &how), queries_expect(f, &plan));
    assert_int_equal(how.last.metrics.index_lookups, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_expressions_come_to_what_a_naive_evaluator_says,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(random_filters_find_the_same_with_every_index,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(an_equality_is_a_seek, queries_setup, queries_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
