/* What is printed is read as the same tree: for queries made at random, of every kind of node. */
#include "fixture.h"

#include "base/random.h"
#include "document/bson.h"

struct maker {
    struct random random;
    struct arena *arena;
};

static unsigned pick(struct maker *maker, unsigned count)
{
    return (unsigned)(random_next(&maker->random) % count);
}

static struct sql_expr *make_expr(struct maker *maker, unsigned depth);
static struct sql_query *make_query(struct maker *maker, unsigned depth);

static struct slice make_name(struct maker *maker)
{
    static const char *const names[] = {
        "c", "a", "x1", "_rid", "first", "rank", "r\xC3\xA9sum\xC3\xA9"};

    return slice_of_text(names[pick(maker, ARRAY_LEN(names))]);
}

static struct slice make_text(struct maker *maker)
{
    static const char *const texts[] = {"",   "a",   "value", "it's \"so\"",     "\n\t\\/",
                                        "1a", "a b", "\x01",  "\xC3\xA9",        "\xED\xA0\xBD",
                                        "--", "@p",  "c",     "\xF0\x9F\x98\x80"};

    return slice_of_text(texts[pick(maker, ARRAY_LEN(texts))]);
}

static struct sql_expr *make_literal(struct maker *maker)
{
    double real =
        (double)(random_next(&maker->random) >> pick(maker, 60)) / (1 + pick(maker, 1000));

    switch (pick(maker, 8)) {
    case 0:
        return sql_expr_literal(maker->arena, document_undefined());
    case 1:
        return sql_expr_literal(maker->arena, document_null());
    case 2:
        return sql_expr_literal(maker->arena, document_bool(pick(maker, 2)));
    case 3:
        return sql_expr_literal(maker->arena, document_int32((int32_t)pick(maker, INT32_MAX)));
    case 4:
        return sql_expr_literal(maker->arena,
                                document_int64((int64_t)INT32_MAX + 1 + pick(maker, UINT32_MAX)));
    case 5:
        return sql_expr_literal(maker->arena, document_double(real));
    default:
        return sql_expr_literal(maker->arena, document_string(make_text(maker)));
    }
}

static void make_list(struct maker *maker, struct sql_exprs *list, unsigned least, unsigned depth)
{
    unsigned count = least + pick(maker, 3);

    for (unsigned i = 0; i < count; i++)
        sql_exprs_add(maker->arena, list, make_expr(maker, depth));
}

/* A chain of AND does not begin with another: the parser would make them one. */
static void make_chain(struct maker *maker, struct sql_expr *expr, unsigned depth)
{
    make_list(maker, &expr->items, 2, depth);
    while (expr->items.items[0]->kind == expr->kind)
        expr->items.items[0] = make_expr(maker, depth);
}

static void make_index(struct maker *maker, struct sql_expr *expr, unsigned depth)
{
    expr->index.object = make_expr(maker, depth);
    do {
        expr->index.index = make_expr(maker, depth);
    } while (expr->index.index->kind == SQL_EXPR_LITERAL &&
             expr->index.index->literal.type == DOCUMENT_STRING);
}

static void make_object(struct maker *maker, struct sql_expr *expr, unsigned depth)
{
    for (unsigned i = pick(maker, 3); i > 0; i--)
        sql_expr_object_add(maker->arena, expr, make_text(maker), make_expr(maker, depth));
}

static void make_like(struct maker *maker, struct sql_expr *expr, unsigned depth)
{
    expr->like.operand = make_expr(maker, depth);
    expr->like.pattern = make_expr(maker, depth);
    expr->like.negated = pick(maker, 2);
    if (pick(maker, 2))
        expr->like.escape = sql_expr_literal(maker->arena, document_string(SLICE("!")));
}

static void make_operands(struct maker *maker, struct sql_expr *expr, unsigned depth)
{
    switch (expr->kind) {
    case SQL_EXPR_PARAMETER:
        expr->parameter.name = SLICE("@p_1");
        break;
    case SQL_EXPR_NAME:
        expr->name.name = make_name(maker);
        break;
    case SQL_EXPR_MEMBER:
        expr->member.object = make_expr(maker, depth);
        expr->member.name = pick(maker, 2) ? make_text(maker) : make_name(maker);
        break;
    case SQL_EXPR_INDEX:
        make_index(maker, expr, depth);
        break;
    case SQL_EXPR_ARRAY:
        make_list(maker, &expr->items, 0, depth);
        break;
    case SQL_EXPR_AND:
    case SQL_EXPR_OR:
        make_chain(maker, expr, depth);
        break;
    case SQL_EXPR_OBJECT:
        make_object(maker, expr, depth);
        break;
    case SQL_EXPR_CALL:
    case SQL_EXPR_UDF:
        expr->call.name = make_name(maker);
        make_list(maker, &expr->call.arguments, 0, depth);
        break;
    case SQL_EXPR_SUBQUERY:
        expr->subquery.kind = pick(maker, SQL_SUBQUERY_LAST + 1);
        expr->subquery.query = make_query(maker, depth);
        break;
    case SQL_EXPR_UNARY:
        expr->unary.op = pick(maker, SQL_UNARY_NOT + 1);
        expr->unary.operand = make_expr(maker, depth);
        break;
    case SQL_EXPR_BINARY:
        expr->binary.op = pick(maker, SQL_BINARY_COUNT);
        expr->binary.left = make_expr(maker, depth);
        expr->binary.right = make_expr(maker, depth);
        break;
    case SQL_EXPR_CONDITIONAL:
        expr->conditional.condition = make_expr(maker, depth);
        expr->conditional.then = make_expr(maker, depth);
        expr->conditional.otherwise = make_expr(maker, depth);
        break;
    case SQL_EXPR_BETWEEN:
        expr->between.operand = make_expr(maker, depth);
        expr->between.low = make_expr(maker, depth);
        expr->between.high = make_expr(maker, depth);
        expr->between.negated = pick(maker, 2);
        break;
    case SQL_EXPR_IN:
        expr->in.operand = make_expr(maker, depth);
        expr->in.negated = pick(maker, 2);
        make_list(maker, &expr->in.items, 1, depth);
        break;
    default:
        make_like(maker, expr, depth);
    }
}

static struct sql_expr *make_expr(struct maker *maker, unsigned depth)
{
    struct sql_expr *expr;

    if (depth == 0)
        return make_literal(maker);
    expr = sql_expr_new(maker->arena, 1 + pick(maker, SQL_EXPR_LIKE), (struct sql_span){0, 0});
    make_operands(maker, expr, depth - 1);
    sql_expr_settle(expr);
    return expr;
}

static struct sql_expr *make_path(struct maker *maker)
{
    struct sql_expr *path = sql_expr_new(maker->arena, SQL_EXPR_NAME, (struct sql_span){0, 0});

    path->name.name = make_name(maker);
    sql_expr_settle(path);
    for (unsigned i = pick(maker, 3); i > 0; i--)
        path = sql_expr_member(maker->arena, path, make_text(maker));
    return path;
}

static struct sql_source *make_source(struct maker *maker, unsigned depth)
{
    struct sql_source *source = ARENA_NEW(maker->arena, struct sql_source);

    source->iterates = pick(maker, 2);
    source->alias_given = true;
    source->alias = make_name(maker);
    if (pick(maker, 2))
        source->path = make_path(maker);
    else
        source->subquery = make_query(maker, depth);
    return source;
}

static void make_select(struct maker *maker, struct sql_query *query, unsigned depth)
{
    query->distinct = pick(maker, 2);
    query->select = pick(maker, 3);
    if (pick(maker, 3) == 0)
        query->top = sql_expr_literal(maker->arena, document_int32(7));
    query->items = ARENA_ARRAY(maker->arena, struct sql_select_item, 3);
    if (query->select == SQL_SELECT_STAR)
        return;
    query->item_count = query->select == SQL_SELECT_VALUE ? 1 : 1 + pick(maker, 3);
    for (uint32_t i = 0; i < query->item_count; i++)
        query->items[i] =
            (struct sql_select_item){.expr = make_expr(maker, depth),
                                     .alias = pick(maker, 2) ? make_name(maker) : SLICE("")};
}

static struct sql_query *make_query(struct maker *maker, unsigned depth)
{
    struct sql_query *query = ARENA_NEW(maker->arena, struct sql_query);
    unsigned below = depth ? depth - 1 : 0;

    make_select(maker, query, below);
    query->sources = ARENA_ARRAY(maker->arena, struct sql_source *, 2);
    for (query->source_count = 0; depth && query->source_count < 2 && pick(maker, 2);)
        query->sources[query->source_count++] = make_source(maker, below);
    if (pick(maker, 2))
        query->where = make_expr(maker, below);
    if (pick(maker, 3) == 0)
        make_list(maker, &query->group_by, 1, below);
    query->order_by = ARENA_ARRAY(maker->arena, struct sql_order_item, 2);
    for (query->order_count = 0; query->order_count < 2 && pick(maker, 2); query->order_count++)
        query->order_by[query->order_count] =
            (struct sql_order_item){.expr = make_expr(maker, below), .descending = pick(maker, 2)};
    if (pick(maker, 3) == 0) {
        query->offset = sql_expr_literal(maker->arena, document_int32(0));
        query->limit = sql_expr_literal(maker->arena, document_int64(4294967295));
    }
    sql_query_settle(query);
    return query;
}

static void what_is_printed_reads_as_the_same_tree(void **state UNUSED)
{
    struct sql_limits limits = SQL_LIMITS_DEFAULT;
    struct maker maker = {.arena = arena_new()};

    limits.joins_max = limits.udf_calls_max = limits.and_max = limits.or_max = 2000;
    random_seed(&maker.random, 20260811);
    for (unsigned i = 0; i < 3000; i++) {
        struct sql_query *query = make_query(&maker, 1 + i % 5), *again = NULL;
        const char *text = printed(maker.arena, query);
        struct error err;

        if (!sql_parse(slice_of_text(text), &limits, maker.arena, &again, NULL, &err))
            fail_msg("%s: %s", text, err.message);
        if (!sql_query_equal(query, again))
            fail_msg("%s\nreads as\n%s", text, printed(maker.arena, again));
        assert_string_equal(printed(maker.arena, again), text);
        arena_reset(maker.arena);
    }
    arena_free(maker.arena);
}

static void functions_print_as_the_manual_writes_them(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    assert_string_equal(
        printed(arena,
                resolved(arena, "select lower(c.a), datetimepart('yyyy', c.b) from c", NULL)),
        "SELECT LOWER(c.a), DateTimePart(\"yyyy\", c.b) FROM c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_printed_reads_as_the_same_tree),
        cmocka_unit_test(functions_print_as_the_manual_writes_them),
    };
    return cmocka_run_group_tests_name("front/rest/sql/print", tests, NULL, NULL);
}
