#include "front/gremlin/language/script.h"

#include "front/gremlin/value/container.h"
#include "support/check.h"
#include "support/gremlin_text.h"

#include <stdlib.h>

static struct gremlin_heap *heap;
static struct gremlin_value bindings, variables;

static int set_up(void **state UNUSED)
{
    struct gremlin_value key;

    heap = gremlin_heap_new(&(struct gremlin_heap_options){0});
    bindings = gremlin_map_new(heap);
    variables = gremlin_map_new(heap);
    key = gremlin_string(heap, SLICE("x"));
    gremlin_map_put(bindings, key, gremlin_int(42));
    gremlin_value_unref(key);
    key = gremlin_string(heap, SLICE("value"));
    gremlin_map_put_take(bindings, key, gremlin_string(heap, SLICE("bound")));
    gremlin_value_unref(key);
    key = gremlin_string(heap, SLICE("id"));
    gremlin_map_put_take(bindings, key, gremlin_string(heap, SLICE("7")));
    gremlin_value_unref(key);
    key = gremlin_string(heap, SLICE("kept"));
    gremlin_map_put_take(variables, key, gremlin_string(heap, SLICE("session")));
    gremlin_value_unref(key);
    return 0;
}

static int tear_down(void **state UNUSED)
{
    gremlin_value_unref(bindings);
    gremlin_value_unref(variables);
    gremlin_heap_free(heap);
    return 0;
}

static struct gremlin_script_request request_of(const char *text)
{
    return (struct gremlin_script_request){.text = slice_of_text(text),
                                           .limits = GREMLIN_SCRIPT_LIMITS,
                                           .heap = heap,
                                           .bindings = &bindings,
                                           .variables = &variables,
                                           .now_ms = 1700000000000};
}

static void statement_write(const struct gremlin_statement *statement, struct buf *buf)
{
    if (statement->name.data)
        buf_printf(buf, "%.*s = ", SLICE_ARG(statement->name));
    if (statement->traversal)
        gremlin_text_traversal(statement->traversal, buf);
    else
        gremlin_text_value(statement->value, buf);
}

static void script_write(const char *text, struct buf *buf)
{
    CLEANUP(gremlin_script_free) struct gremlin_script *script = NULL;
    struct gremlin_script_request request = request_of(text);
    struct gremlin_statement statement;
    struct error err;
    bool first = true;

    if (!gremlin_script_open(&request, &script, &err))
        fail_msg("%s: %s", text, err.message);
    for (;;) {
        assert_ok(gremlin_script_next(script, &variables, &statement, &err), &err);
        if (!statement.present)
            return;
        if (!first)
            BUF_APPEND(buf, "; ");
        first = false;
        statement_write(&statement, buf);
    }
}

static void means(const char *text, const char *expected)
{
    CLEANUP(buf_done) struct buf buf;
    CLEANUP(buf_done) struct buf again;
    char *written;

    buf_init(&buf, BUF_DEFAULT_MAX);
    buf_init(&again, BUF_DEFAULT_MAX);
    script_write(text, &buf);
    if (!slice_equal(buf_slice(&buf), slice_of_text(expected)))
        fail_msg("%s is %.*s, not %s", text, SLICE_ARG(buf_slice(&buf)), expected);
    written = slice_to_text(buf_slice(&buf));
    if (!strchr(written, '='))
        script_write(written, &again);
    if (again.len && !slice_equal(buf_slice(&again), buf_slice(&buf)))
        fail_msg("%s comes back as %.*s", written, SLICE_ARG(buf_slice(&again)));
    memory_free(written);
}

/* The same as g.inject(argument), to test values. */
static void value_means(const char *value, const char *expected)
{
    char text[600], whole[600];

    (void)snprintf(text, sizeof text, "g.inject(%s)", value);
    (void)snprintf(whole, sizeof whole, "g.inject(%s)", expected);
    means(text, whole);
}

static void refused(const char *text, enum error_code code, const char *part)
{
    CLEANUP(gremlin_script_free) struct gremlin_script *script = NULL;
    struct gremlin_script_request request = request_of(text);
    size_t used = gremlin_heap_used(heap);
    struct error err;

    if (gremlin_script_open(&request, &script, &err))
        fail_msg("%s is not refused", text);
    if (err.code != code || !strstr(err.message, part))
        fail_msg("%s is refused with: %s", text, err.message);
    if (gremlin_heap_used(heap) != used)
        fail_msg("%s leaves values behind", text);
}

static void fails(const char *text, const char *part)
{
    refused(text, ERROR_GREMLIN_SCRIPT, part);
}

static void traversals_are_steps_with_arguments(void **state UNUSED)
{
    means("g.V()", "g.V()");
    means("g.V().out('knows').values(\"name\")", "g.V().out('knows').values('name')");
    means("g.V(1, 2L).in().as('a')", "g.V(1, 2L).in().as('a')");
    means(" g . V ( ) \n . out ( ) \n", "g.V().out()");
    means("g.V() // all\n.count() /* how\nmany */", "g.V().count()");
    means("g.V();", "g.V()");
    means("g.E('a').outV()", "g.E('a').outV()");
    means("g.addV('p').property('a', 1).property('b', null)",
          "g.addV('p').property('a', 1).property('b', null)");
    means("g.V(['pk', 'id'], ['a', x])", "g.V(['pk', 'id'], ['a', 42])");
}

static void nested_traversals_begin_with_or_without_their_name(void **state UNUSED)
{
    means("g.V().where(__.out().count())", "g.V().where(__.out().count())");
    means("g.V().where(out().count())", "g.V().where(__.out().count())");
    means("g.V(1).addE('k').to(g.V(2))", "g.V(1).addE('k').to(__.V(2))");
    means("g.V().union(in(), as('a'), not(is(1)), __.in())",
          "g.V().union(__.in(), __.as('a'), __.not(__.is(1)), __.in())");
    means("g.V().repeat(__.start())", "g.V().repeat(__.start())");
    means("g.V().choose(values('age').is(gt(3)), constant(1), __.identity())",
          "g.V().choose(__.values('age').is(P.gt(3)), __.constant(1), __.identity())");
}

static void words_are_enumerations_where_their_step_takes_them(void **state UNUSED)
{
    means("g.V().order().by(id, desc)", "g.V().order().by(T.id, Order.desc)");
    means("g.V().by(label).by(values).by(asc)",
          "g.V().by(T.label).by(Column.values).by(Order.asc)");
    means("g.V().limit(local, 1).count(Scope.local)",
          "g.V().limit(Scope.local, 1).count(Scope.local)");
    means("g.V().has(id, id).has(label, value)", "g.V().has(T.id, '7').has(T.label, 'bound')");
    means("g.V(id)", "g.V('7')");
    means("g.addV('x').property(id, id).property('a', value)",
          "g.addV('x').property(T.id, '7').property('a', 'bound')");
    means("g.addV('x').property(list, 'a', 1).property(single, id, value)",
          "g.addV('x').property(Cardinality.list, 'a', 1).property(Cardinality.single, T.id, "
          "'bound')");
    means("g.addV('x').property(VertexProperty.Cardinality.set, 'a', 1)",
          "g.addV('x').property(Cardinality.set, 'a', 1)");
    means("g.V().select(last, 'a').select(keys).select(Column.values)",
          "g.V().select(Pop.last, 'a').select(Column.keys).select(Column.values)");
    means("g.V().toE(OUT, 'x').toV(Direction.IN).to(OUT)",
          "g.V().toE(Direction.OUT, 'x').toV(Direction.IN).to(Direction.OUT)");
    means("g.withSack(1, sum).V().sack(mult).barrier(normSack)",
          "g.withSack(1, Operator.sum).V().sack(Operator.mult).barrier(Barrier.normSack)");
    means("g.V().barrier(SackFunctions.Barrier.normSack)", "g.V().barrier(Barrier.normSack)");
    means("g.V().option(none, out()).option(Pick.any, in()).option(onMatch, [:])",
          "g.V().option(Pick.none, __.out()).option(Pick.any, __.in()).option(Merge.onMatch, [:])");
    means("g.V().order().by('a', decr).by(Order.incr)",
          "g.V().order().by('a', Order.decr).by(Order.incr)");
    means("g.inject(x, kept).dateAdd(DT.hour, 2).dateAdd(day, 1)",
          "g.inject(42, 'session').dateAdd(DT.hour, 2).dateAdd(DT.day, 1)");
    means("g.inject(label)", "g.inject(T.label)");
    means("g.V().order().by(org.apache.tinkerpop.gremlin.process.traversal.Order.desc)",
          "g.V().order().by(Order.desc)");
    means("g.V().valueMap().with(WithOptions.tokens, WithOptions.ids)",
          "g.V().valueMap().with('~tinkerpop.valueMap.tokens', 1)");
}

static void numbers_have_types_and_widen(void **state UNUSED)
{
    value_means("1, -1, +1, 2147483647, -2147483648", "1, -1, 1, 2147483647, -2147483648");
    value_means("2147483648, -2147483649, 9223372036854775807, -9223372036854775808",
                "2147483648L, -2147483649L, 9223372036854775807L, -9223372036854775808L");
    value_means("9223372036854775808", "9223372036854775808n");
    value_means("1b, 2s, 3i, 4l, 5L, 6n, 7g, 1B", "1b, 2s, 3, 4L, 5L, 6n, 7n, 1b");
    value_means("1.5, 1f, 2.5F, 3d, 4.0D, 5m, 0.5M", "1.5d, 1f, 2.5f, 3d, 4d, 5m, 0.5m");
    value_means("1e3, 1.5E-2, .5, 1_000", "1000d, 0.015d, 0.5d, 1000");
    value_means("0x1F, 0xffL, 017, 0, 00, 0b, 0x10n", "31, 255L, 15, 0, 0, 0b, 16n");
    value_means("NaN, Infinity, -Infinity, +Infinity", "NaN, Infinity, -Infinity, Infinity");
    value_means("Integer.MAX_VALUE, Long.MIN_VALUE", "2147483647, -9223372036854775808L");
    fails("g.inject(128b)", "does not fit its type @ line 1, column 10.");
    fails("g.inject(2147483648i)", "does not fit its type");
    fails("g.inject(1.5L)", "is no number");
    fails("g.inject(1x)", "is no number");
    fails("g.inject(0xfffffffffffffffffn)", "larger");
}

static void strings_know_escapes(void **state UNUSED)
{
    value_means("'a', \"b\", ''", "'a', 'b', ''");
    value_means("'it\\'s', \"it's\", \"\\\"\"", "'it\\'s', 'it\\'s', '\"'");
    value_means("'\\t\\n\\u00e4\\101\\\\'", "'\\u0009\\u000a\xC3\xA4"
                                            "A\\\\'");
    value_means("'\\ud83d\\ude00'", "'\xF0\x9F\x98\x80'");
    value_means("'\\ud800'", "'\\ud800'");
    value_means("\"$x \\$y\"", "'$x $y'");
    value_means("'''it's'''", "'it\\'s'");
    value_means("\"\"\"say \"hi\" now\"\"\"", "'say \"hi\" now'");
    fails("g.inject('abc)", "the string has no end @ line 1, column 10.");
    fails("g.inject('\\q')", "escape");
    fails("g.inject('\\u12')", "escape");
}

static void collections_may_be_nested(void **state UNUSED)
{
    value_means("[], [1, [2]], [:], {}, {1, 1, 2}", "[], [1, [2]], [:], {}, {1, 2}");
    value_means("[a: 1, \"b\": 2, (T.id): 3, (x): 4, 5: 6, T.label: 7]",
                "[('a'): 1, ('b'): 2, (T.id): 3, (42): 4, (5): 6, (T.label): 7]");
    value_means("[label: 1, id: 2]", "[('label'): 1, ('id'): 2]");
    value_means("1..3, 3..1, [1..2], 1L..2", "[1, 2, 3], [3, 2, 1], [[1, 2]], [1L, 2L]");
    value_means("'a'..'c'", "['a', 'b', 'c']");
    value_means("[1, 2] as Set", "{1, 2}");
    value_means("(String) null, (1)", "null, 1");
    means("g.mergeV([label: 'p', id: 1, name: 'a']).option(onCreate, [(T.id): 2])",
          "g.mergeV([(T.label): 'p', (T.id): 1, ('name'): 'a']).option(Merge.onCreate, [(T.id): "
          "2])");
    means(
        "g.mergeE([from: 1, (Direction.IN): Merge.inV, OUT: outV])",
        "g.mergeE([(Direction.from): 1, (Direction.IN): Merge.inV, (Direction.OUT): Merge.outV])");
    means("g.mergeV([a: list('x'), b: Cardinality.single(1)])",
          "g.mergeV([('a'): Cardinality.list('x'), ('b'): Cardinality.single(1)])");
    refused("g.inject(1..100000)", ERROR_GREMLIN_SCRIPT_LIMIT, "at most 65536");
    fails("g.inject(1..'a')", "a range goes from one whole number");
    fails("g.inject('ab'..'c')", "a range goes from one whole number");
}

static void predicates_are_joined_from_left_to_right(void **state UNUSED)
{
    means("g.V().has('a', gt(1))", "g.V().has('a', P.gt(1))");
    means("g.V().has('a', P.gt(1).and(lt(5)).or(P.eq(9)))",
          "g.V().has('a', P.gt(1).and(P.lt(5)).or(P.eq(9)))");
    means("g.V().has('a', P.gt(1).negate())", "g.V().has('a', P.not(P.gt(1)))");
    means("g.V().has('a', not(eq(1)))", "g.V().has('a', P.not(P.eq(1)))");
    means("g.V().has('a', not(not(within(1, 2))))",
          "g.V().has('a', P.not(P.not(P.within([1, 2]))))");
    means("g.V().not(has('a'))", "g.V().not(__.has('a'))");
    means("g.V().filter(not(out()))", "g.V().filter(__.not(__.out()))");
    means("g.V().has('a', within()).has('b', without([1]))",
          "g.V().has('a', P.within([])).has('b', P.without([1]))");
    means("g.V().has('a', between(1, 2)).has('b', P.inside(1, 2)).is(outside(1, 2))",
          "g.V().has('a', P.between(1, 2)).has('b', P.inside(1, 2)).is(P.outside(1, 2))");
    means("g.V().has('a', startingWith('m').and(TextP.notEndingWith('o')))",
          "g.V().has('a', TextP.startingWith('m').and(TextP.notEndingWith('o')))");
    means("g.V().has('a', regex('^a')).has('b', typeOf(GType.INT))",
          "g.V().has('a', TextP.regex('^a')).has('b', P.typeOf(GType.INT))");
    fails("g.V().has('a', P.foo(1))", "Unable to find any method 'foo' @ line 1, column 18.");
    fails("g.V().has('a', gt(1).out())", "Unable to find any method 'out'");
    fails("g.V().has('a', gt(1, 2))", "@ line 1, column 16.");
}

static void sources_come_before_the_first_step(void **state UNUSED)
{
    means("g.withSideEffect('a', [1]).V()", "g.withSideEffect('a', [1]).V()");
    means("g.withSideEffect('a', 1, sum).withPath().withBulk(false).V()",
          "g.withSideEffect('a', 1, Operator.sum).withPath().withBulk(false).V()");
    means("g.with('evaluationTimeout', 500).with('x').V()",
          "g.withStrategies(OptionsStrategy.build().with('evaluationTimeout', "
          "500).create()).withStrategies(OptionsStrategy.build().with('x', true).create()).V()");
    means("g.V().with('a', 1)", "g.V().with('a', 1)");
    means("g.tx().commit()", "g.tx().commit()");
    fails("g.tx().foo()", "Unable to find any method 'foo'");
    fails("g.tx()", "tx() is followed by");
    fails("g.out()", "the step 'out' cannot begin a traversal @ line 1, column 3.");
    fails("g.withSack(1)", "the traversal has no step");
    fails("g.V().withSack(1)", "Unable to find any method 'withSack'");
}

static void strategies_have_three_forms(void **state UNUSED)
{
    static const char *const forms[] = {
        "g.withStrategies(SubgraphStrategy(vertices: hasLabel('a'))).V()",
        "g.withStrategies(new SubgraphStrategy(vertices: __.hasLabel('a'))).V()",
        "g.withStrategies(SubgraphStrategy.build().vertices(hasLabel('a')).create()).V()",
    };

    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        means(forms[i], "g.withStrategies(SubgraphStrategy.build().with('vertices', "
                        "__.hasLabel('a')).create()).V()");
    means("g.withStrategies(ReadOnlyStrategy, ReadOnlyStrategy.instance(), new "
          "ReadOnlyStrategy()).V()",
          "g.withStrategies(ReadOnlyStrategy, ReadOnlyStrategy, ReadOnlyStrategy).V()");
    means("g.withoutStrategies(ReadOnlyStrategy).V()", "g.withoutStrategies(ReadOnlyStrategy).V()");
    means("g.withStrategies(PartitionStrategy.build().partitionKey('pk').readPartitions('a', "
          "'b').create()).V()",
          "g.withStrategies(PartitionStrategy.build().with('partitionKey', "
          "'pk').with('readPartitions', ['a', 'b']).create()).V()");
    means(
        "g.withStrategies(ProjectionStrategy.build().IncludeSystemProperties('_ts').create()).V()",
        "g.withStrategies(ProjectionStrategy.build().with('IncludeSystemProperties', "
        "'_ts').create()).V()");
    fails("g.withStrategies(SubgraphStrategy.build().vertices(out())).V()", "ends with create()");
    fails("g.withStrategies(SubgraphStrategy(out())).V()", "written with their names");
    fails("g.V().out(a: 1)", "only strategies take arguments by name");
}

static void values_are_made_by_name(void **state UNUSED)
{
    value_means("datetime('2024-01-01T00:00:00Z')", "new Date(1704067200000L)");
    value_means("datetime(), new Date(), new Date(5), new java.util.Date()",
                "new Date(1700000000000L), new Date(1700000000000L), new Date(5L), new "
                "Date(1700000000000L)");
    value_means("UUID('00000000-0000-0000-0000-00000000000A')",
                "UUID('00000000-0000-0000-0000-00000000000a')");
    value_means("java.util.UUID.fromString('00000000-0000-0000-0000-00000000000a')",
                "UUID('00000000-0000-0000-0000-00000000000a')");
    value_means("new Vertex(1, 'p'), new ReferenceVertex('a')",
                "new Vertex(1, 'p'), new Vertex('a', 'vertex')");
    value_means("true, false, null", "true, false, null");
    fails("g.inject(datetime('now'))", "'datetime' takes");
    fails("g.inject(UUID('x'))", "'UUID' takes");
    fails("g.inject(new Foo())", "objects of the class 'Foo' cannot be made");
}

static void terminals_end_a_statement(void **state UNUSED)
{
    means("g.V().next()", "g.V().next(1L)");
    means("g.V().next(3)", "g.V().next(3L)");
    means("g.V().toList()", "g.V()");
    means("g.V().toSet()", "g.V().toSet()");
    means("g.V().toBulkSet()", "g.V().toBulkSet()");
    means("g.V().iterate()", "g.V().iterate()");
    means("g.V().hasNext()", "g.V().hasNext()");
    means("g.V().tryNext()", "g.V().tryNext()");
    means("g.V().explain()", "g.V().explain()");
    fails("g.V().next().out()", "Unable to find any method 'next'");
    fails("g.V().where(out().next())", "Unable to find any method 'next'");
    fails("g.V().next(-1)", "next() takes");
    fails("g.V().iterate(1)", "does not take these arguments");
}

static void statements_are_separated_and_assigned(void **state UNUSED)
{
    means("g.V(); g.E();", "g.V(); g.E()");
    means("g.V()\ng.E()", "g.V(); g.E()");
    means("a = 1; def b = 'x'", "a = 1; b = 'x'");
    means("a = g.V().next()", "a = g.V().next(1L)");
    means("x", "42");
    means("[1, x]", "[1, 42]");
    fails("g.V() g.E()",
          "expected '.', ';' or the end of the script, found 'g' @ line 1, column 7.");
    fails("g = 1", "cannot be assigned to");
    fails("", "the script has no statement");
    fails(" ; ", "the script has no statement");
    fails("out()", "a statement is a traversal that begins with 'g'");
    fails("g", "the traversal has no step");
}

/* What an earlier statement assigns is known when the later one's turn comes. */
static void a_later_statement_sees_what_an_earlier_one_assigned(void **state UNUSED)
{
    struct gremlin_script_request request = request_of("v = g.V('1').next(); g.V(v).out(kept)");
    CLEANUP(gremlin_script_free) struct gremlin_script *script = NULL;
    CLEANUP(gremlin_value_unref) struct gremlin_value now = gremlin_map_new(heap);
    struct gremlin_value key;
    struct gremlin_statement statement;
    CLEANUP(buf_done) struct buf buf;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    assert_ok(gremlin_script_open(&request, &script, &err), &err);
    assert_int_equal(gremlin_script_count(script), 2);
    assert_ok(gremlin_script_next(script, &variables, &statement, &err), &err);
    assert_slice_equal(statement.name, SLICE("v"));
    assert_true(statement.terminated);
    key = gremlin_string(heap, SLICE("v"));
    gremlin_map_put_take(now, key, gremlin_string(heap, SLICE("found")));
    gremlin_value_unref(key);
    key = gremlin_string(heap, SLICE("kept"));
    gremlin_map_put_take(now, key, gremlin_string(heap, SLICE("session")));
    gremlin_value_unref(key);
    assert_ok(gremlin_script_next(script, &now, &statement, &err), &err);
    statement_write(&statement, &buf);
    assert_slice_equal(buf_slice(&buf), SLICE("g.V('found').out('session')"));
    assert_ok(gremlin_script_next(script, &now, &statement, &err), &err);
    assert_false(statement.present);
}

static void closures_and_foreign_code_are_refused_by_name(void **state UNUSED)
{
    fails("g.V().map{it.get()}", "closures are not supported");
    fails("g.V().map { it.get() }", "closures are not supported");
    fails("g.V().filter({it.get().value('a') > 3})", "closures are not supported");
    fails("g.V().filter({ x -> true })", "closures are not supported");
    fails("g.V().map(x -> x)", "closures are not supported");
    fails("g.V().sideEffect({System.exit(1)})", "");
    fails("g.V().map(Lambda.function('it'))", "lambdas are not supported");
    fails("System.exit(1)", "Unable to resolve symbol 'System'");
    fails("java.lang.Runtime.getRuntime()", "Unable to resolve symbol 'Runtime'");
    fails("'a'.length()", "methods of values are not supported");
    fails("x.toString()", "methods of values are not supported");
    fails("foo()", "Unable to find any method 'foo' @ line 1, column 1.");
}

static void faults_say_where_they_are(void **state UNUSED)
{
    fails("g.V().foo()",
          "Gremlin Query Compilation Error: Unable to find any method 'foo' @ line 1, column 7.");
    fails("g.V()\n .out()\n .foo(1)", "'foo' @ line 3, column 3.");
    fails("g.V('\xC3\xA4').foo()", "'foo' @ line 1, column 10.");
    fails("g.V(nowhere)",
          "Unable to resolve symbol 'nowhere' in the current context @ line 1, column 5.");
    fails("g.V(", "Gremlin Query Syntax Error: expected a value, a traversal or a name, found the "
                  "end of the script @ line 1, column 5.");
    fails("g.V(1", "expected ',' or ')', found the end of the script");
    fails("g.V(1 2)", "expected ',' or ')', found '2' @ line 1, column 7.");
    fails("g.V().out", "expected '(' after the name of the step 'out'");
    fails("g.V().", "expected the name of a step");
    fails("g.V()..out()", "");
    fails("g.V([1, 2)", "expected ',' or ']', found ')'");
    fails("g.V([a: 1, 2])", "expected ':', found ']'");
    fails("g.V(#)", "unexpected character '#'");
    fails("g.V() /* x", "the comment has no end");
    fails("g.V().order().by(Order.foo)", "'Order' has no 'foo'");
    fails("g.V(\xFF)", "not UTF-8");
    fails("g.V(-'a')", "expected a number, found a string");
}

static void limits_hold(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    for (int i = 0; i < 100; i++)
        BUF_APPEND(&buf, "[");
    buf_append_byte(&buf, 0);
    refused((const char *)buf.data, ERROR_GREMLIN_SCRIPT_LIMIT,
            "nested deeper than the limit of 64");
    buf_clear(&buf);
    BUF_APPEND(&buf, "g.V()");
    for (int i = 0; i < 400; i++)
        BUF_APPEND(&buf, ".out()");
    buf_append_byte(&buf, 0);
    refused((const char *)buf.data, ERROR_GREMLIN_SCRIPT_LIMIT, "limit of 400 operators");
    buf_clear(&buf);
    for (int i = 0; i < 70000; i++)
        BUF_APPEND(&buf, " ");
    buf_append_byte(&buf, 0);
    refused((const char *)buf.data, ERROR_GREMLIN_SCRIPT_LIMIT, "more than the limit of 65536");
}

static void dates_keep_their_offset_if_wanted(void **state UNUSED)
{
    struct gremlin_script_request request =
        request_of("g.inject(datetime('2024-01-01T00:00:00+02:00'))");
    CLEANUP(gremlin_script_free) struct gremlin_script *script = NULL;
    struct gremlin_statement statement;
    struct error err;

    request.offset_dates = true;
    assert_ok(gremlin_script_open(&request, &script, &err), &err);
    assert_ok(gremlin_script_next(script, NULL, &statement, &err), &err);
    assert_int_equal(statement.traversal->steps.items[0].arguments[0].type, GREMLIN_DATE_TIME);
    assert_int_equal(gremlin_date_time(statement.traversal->steps.items[0].arguments[0])->offset,
                     7200);
}

/* What a tree of `text` gives with x bound to a number. */
static int64_t bound_in(const struct gremlin_syntax *syntax, int32_t x)
{
    CLEANUP(gremlin_script_free) struct gremlin_script *script = NULL;
    CLEANUP(gremlin_value_unref) struct gremlin_value map = gremlin_map_new(heap);
    struct gremlin_value key = gremlin_string(heap, SLICE("x"));
    struct gremlin_script_request request = request_of("");
    struct gremlin_statement statement;
    struct error err;

    gremlin_map_put(map, key, gremlin_int(x));
    gremlin_value_unref(key);
    request.syntax = syntax;
    request.bindings = &map;
    assert_ok(gremlin_script_open(&request, &script, &err), &err);
    assert_ok(gremlin_script_next(script, NULL, &statement, &err), &err);
    return statement.traversal->steps.items[1].arguments[1].integer;
}

static void a_tree_serves_any_bindings_and_outlives_its_text(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct gremlin_script_limits limits = GREMLIN_SCRIPT_LIMITS;
    char text[] = "g.V().has('age', x).out('knows')";
    const struct gremlin_syntax *syntax;
    struct gremlin_script_request request = request_of("");
    struct gremlin_script *script;
    struct gremlin_value none = gremlin_map_new(heap);
    struct error err;

    assert_ok(gremlin_script_parse(slice_of_text(text), &limits, arena, &syntax, &err), &err);
    memset(text, 'z', sizeof text - 1);
    assert_int_equal(bound_in(syntax, 5), 5);
    assert_int_equal(bound_in(syntax, 7), 7);
    /* whether a name is bound is seen each time */
    request.syntax = syntax;
    request.bindings = &none;
    assert_false(gremlin_script_open(&request, &script, &err));
    assert_int_equal(err.code, ERROR_GREMLIN_SCRIPT);
    assert_int_equal(bound_in(syntax, 9), 9);
    gremlin_value_unref(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_serves_any_bindings_and_outlives_its_text),
        cmocka_unit_test(traversals_are_steps_with_arguments),
        cmocka_unit_test(nested_traversals_begin_with_or_without_their_name),
        cmocka_unit_test(words_are_enumerations_where_their_step_takes_them),
        cmocka_unit_test(numbers_have_types_and_widen),
        cmocka_unit_test(strings_know_escapes),
        cmocka_unit_test(collections_may_be_nested),
        cmocka_unit_test(predicates_are_joined_from_left_to_right),
        cmocka_unit_test(sources_come_before_the_first_step),
        cmocka_unit_test(strategies_have_three_forms),
        cmocka_unit_test(values_are_made_by_name),
        cmocka_unit_test(terminals_end_a_statement),
        cmocka_unit_test(statements_are_separated_and_assigned),
        cmocka_unit_test(a_later_statement_sees_what_an_earlier_one_assigned),
        cmocka_unit_test(closures_and_foreign_code_are_refused_by_name),
        cmocka_unit_test(faults_say_where_they_are),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(dates_keep_their_offset_if_wanted),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
