/* Traversals as scripts on TinkerPop's toy graphs, results as text: what each family of steps does,
 * and that limits, cancelling and refusals end a run as they should. */
#include "front/gremlin/run/run.h"

#include "support/check.h"
#include "support/gremlin_runs.h"

struct one {
    const char *script, *results;
};

static void check_all(struct graph_bench *bench, const char *container, const struct one *cases,
                      size_t count, enum gremlin_version version)
{
    const struct gremlin_run_options options = {.version = version, .seed = 7};

    for (size_t i = 0; i < count; i++) {
        struct gremlin_ran ran = gremlin_runs(bench, container, cases[i].script, &options);

        if (strcmp(ran.text, cases[i].results) != 0)
            fail_msg("%s\n  gives %s\n  not   %s", cases[i].script, ran.text, cases[i].results);
    }
}

static struct graph_bench *modern(void **state, unsigned partitions)
{
    struct graph_bench *bench = *state;

    (void)partitions;
    graph_bench_container(bench, "modern", NULL, 1);
    gremlin_runs_all(bench, "modern", gremlin_runs_modern);
    return bench;
}

static void elements_are_found_filtered_and_expanded_in_their_order(void **state)
{
    static const struct one cases[] = {
        {"g.V().count()", "6"},
        {"g.V('4','1','1','nobody').values('name')", "josh | marko | marko"},
        {"g.V(['4','1']).values('name')", "josh | marko"},
        {"g.V('1').out('knows').values('name')", "vadas | josh"},
        {"g.V('1').out().out().values('name')", "ripple | lop"},
        {"g.V('3').in('created').values('name').order()", "josh | marko | peter"},
        {"g.V('1').outE().count()", "3"},
        {"g.V('1').bothE().otherV().values('name').order()", "josh | lop | vadas"},
        {"g.V().has('age',gt(30)).values('name')", "josh | peter"},
        {"g.V().has('name',within('lop','josh')).id()", "3 | 4"},
        {"g.V().hasLabel('person').hasNot('lang').has('age',between(27,30)).values('name')",
         "marko | vadas"},
        {"g.V().has('age',not(lte(29).and(not(eq(27))))).values('name')", "vadas | josh | peter"},
        {"g.V().and(out('knows'),has('age',29)).values('name')", "marko"},
        {"g.V().has('name','marko').or().has('name','lop')", "v[1] | v[3]"},
        {"g.V().not(out()).values('name')", "vadas | lop | ripple"},
        {"g.V().where(out('created').count().is(gt(1))).values('name')", "josh"},
        {"g.V().as('a').out('created').in('created').where(neq('a')).dedup().values('name')"
         ".order()",
         "josh | marko | peter"},
        {"g.V().as('a').out().as('b').where('a',gt('b')).by('age').select('b').values('name')",
         "vadas"},
        {"g.V('1').out().simplePath().count()", "3"},
        {"g.V().values('age').is(lt(30))", "29 | 27"},
        {"g.V().limit(2)", "v[1] | v[2]"},
        {"g.V().range(1,3).values('name')", "vadas | lop"},
        {"g.V().tail(2).values('name')", "ripple | peter"},
        {"g.V().out().dedup().values('name').order()", "josh | lop | ripple | vadas"},
    };

    check_all(modern(state, 1), "modern", cases, ARRAY_LEN(cases), GREMLIN_VERSION_3_7);
}

static void objects_become_others_maps_and_groups(void **state)
{
    static const struct one cases[] = {
        {"g.V('1').valueMap()", "{name=[marko], age=[29]}"},
        {"g.V('1').valueMap('age').by(unfold())", "{age=29}"},
        {"g.E('7').elementMap()",
         "{id=7, label=knows, IN={id=2, label=person}, OUT={id=1, label=person}, weight=0.5}"},
        {"g.V('1').project('n','x').by('name').by('nothing')", "{n=marko}"},
        {"g.V('1').out('created').path().by('name')", "path[marko, lop]"},
        {"g.V().as('a').out('created').as('b').select('a','b').by('name').limit(1)",
         "{a=marko, b=lop}"},
        {"g.V().groupCount().by(label)", "{person=4, software=2}"},
        {"g.V().group().by(label).by(values('age').sum())", "{person=123}"},
        {"g.V().order().by('age',desc).values('name')", "peter | josh | marko | vadas"},
        {"g.V().values('age').fold().order(local).by(desc)", "[35, 32, 29, 27]"},
        {"g.V().values('age').sum()", "123"},
        {"g.V().values('age').mean()", "30.75"},
        {"g.V().values('nothing').sum()", ""},
        {"g.V().values('nothing').count()", "0"},
        {"g.inject(1,2,3).fold(0,sum)", "6"},
        {"g.V('1').out().tree().by('name')", "{marko={vadas={}, josh={}, lop={}}}"},
        {"g.V('1').aggregate('x').out('knows').where(without('x')).count()", "2"},
        {"g.V().hasLabel('software').aggregate('x').cap('x').unfold().values('name')",
         "lop | ripple"},
        {"g.withSack(1.0d).V('1').outE('created').sack(mult).by('weight').inV().sack()", "0.4"},
        {"g.V('1').math('_ * 2 - 1').by('age')", "57.0"},
        {"g.V('1').format('%{name} is %{_}').by('age')", "marko is 29"},
        {"g.V('1').values('name').concat(' ','x').toUpper()", "MARKO X"},
        {"g.inject('a,b').split(',').conjoin('-')", "a-b"},
        {"g.inject([1,2,2]).intersect([2,3])", "[2]"},
        {"g.V().match(__.as('a').out('created').as('b'),__.as('b').in('created').as('c'),"
         "__.as('a').out('knows').as('c')).select('a','c').by('name')",
         "{a=marko, c=josh}"},
    };

    check_all(modern(state, 1), "modern", cases, ARRAY_LEN(cases), GREMLIN_VERSION_3_7);
}

static void branches_and_rounds_keep_to_their_children(void **state)
{
    static const struct one cases[] = {
        {"g.V('1').union(values('name'),values('age'))", "marko | 29"},
        {"g.V().union(out().count())", "6"},
        {"g.V().local(out().count())", "3 | 0 | 0 | 2 | 0 | 1"},
        {"g.V().coalesce(out('knows'),in('created')).dedup().values('name').order()",
         "josh | marko | peter | vadas"},
        {"g.V('2').optional(out()).values('name')", "vadas"},
        {"g.V().choose(hasLabel('person'),constant('p'),constant('s')).groupCount()", "{p=4, s=2}"},
        {"g.V().hasLabel('person').choose(values('age')).option(27,constant('young'))"
         ".option(Pick.none,constant('old'))",
         "old | young | old | old"},
        {"g.V('1').repeat(out()).times(2).path().by('name')",
         "path[marko, josh, ripple] | path[marko, josh, lop]"},
        {"g.V('1').repeat(out()).emit().values('name')", "vadas | josh | lop | ripple | lop"},
        {"g.V('1').emit().repeat(out('knows')).values('name')", "marko | vadas | josh"},
        {"g.V('1').repeat(out()).until(outE().count().is(0)).values('name')",
         "vadas | lop | ripple | lop"},
        {"g.V('1').repeat(groupCount('m').by(loops()).out()).times(3).cap('m')", "{0=1, 1=3, 2=2}"},
        {"g.V().repeat(both()).times(10).as('a').out().as('b').select('a','b').count()", "43958"},
    };

    check_all(modern(state, 1), "modern", cases, ARRAY_LEN(cases), GREMLIN_VERSION_3_7);
}

static void what_is_written_is_seen(void **state)
{
    static const struct one cases[] = {
        {"g.addV('p').property(id,'a').property('k',1)", "v[a]"},
        {"g.V('a').property('k',2).values('k')", "2"},
        {"g.V('a').property(list,'l','x','since',1).property(list,'l','y').values('l')", "x | y"},
        {"g.V('a').properties('l').hasValue('x').property('since',9).values('since')", "9"},
        {"g.V('a').properties('l').hasValue('x').values('since')", "9"},
        {"g.addV('p').property(id,'b').as('b').V('a').addE('to').to('b').property('w',1)"
         ".elementMap('w')",
         NULL},
        {"g.V('a').out('to').id()", "b"},
        {"g.mergeV([(T.id):'a']).option(Merge.onMatch,[k:3]).values('k')", "3"},
        {"g.mergeV([(T.id):'c',(T.label):'p']).option(Merge.onCreate,[k:4]).values('k')", "4"},
        {"g.V('a').outE().drop()", ""},
        {"g.E().count()", "0"},
        {"g.V('b').fold().coalesce(unfold(),addV('p').property(id,'b')).count()", "1"},
        {"g.V('d').fold().coalesce(unfold(),addV('p').property(id,'d')).id()", "d"},
        {"g.V().drop()", ""},
        {"g.V().count()", "0"},
        {"g.addE('x').from(__.V('no')).to(__.V('no'))",
         "addE(x) failed because the from() traversal (which should give a Vertex) failed with: "
         "The provided traverser does not map to a value: null->[source]"},
    };
    struct graph_bench *bench = *state;

    graph_bench_container(bench, "empty", NULL, 1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct gremlin_ran ran = gremlin_runs(bench, "empty", cases[i].script, NULL);

        if (cases[i].results ? strcmp(ran.text, cases[i].results) != 0 : !ran.good)
            fail_msg("%s\n  gives %s\n  not   %s", cases[i].script, ran.text, cases[i].results);
    }
}

static void versions_differ_where_the_facts_say(void **state)
{
    static const struct one seven[] = {
        {"g.inject([1,2]).limit(local,1)", "1"},
        {"g.V('1').choose(label()).option('x',constant(1))", ""},
        {"g.V().has('age',not(lt('x'))).count()", "0"},
    };
    static const struct one eight[] = {
        {"g.inject([1,2]).limit(local,1)", "[1]"},
        {"g.V('1').choose(label()).option('x',constant(1))", "v[1]"},
        {"g.V().values('age').is(not(lt('x'))).count()", "4"},
    };
    struct graph_bench *bench = modern(state, 1);

    check_all(bench, "modern", seven, ARRAY_LEN(seven), GREMLIN_VERSION_3_7);
    check_all(bench, "modern", eight, ARRAY_LEN(eight), GREMLIN_VERSION_3_8);
}

static void what_is_not_offered_is_refused_by_name(void **state)
{
    struct graph_bench *bench = modern(state, 1);
    struct gremlin_ran ran;

    ran = gremlin_runs(bench, "modern", "g.V().pageRank()", NULL);
    assert_false(ran.good);
    assert_non_null(strstr(ran.text, "pageRank"));
    ran = gremlin_runs(bench, "modern", "g.V().times(2).out()", NULL);
    assert_false(ran.good);
    assert_non_null(strstr(ran.text, "The repeat()-traversal was not defined"));
    ran = gremlin_runs(bench, "modern", "g.V().fail('oh no')", NULL);
    assert_false(ran.good);
    assert_int_equal(ran.outcome.status, 595);
    assert_true(ran.outcome.failed_step);
}

static void limits_and_cancelling_end_a_run(void **state)
{
    struct graph_bench *bench = modern(state, 1);
    atomic_bool cancelled = true;
    struct gremlin_run_options options = {.limits = {.loops_max = 32}};
    struct gremlin_ran ran;

    ran = gremlin_runs(bench, "modern", "g.V().repeat(both()).until(has('name','x')).count()",
                       &options);
    assert_false(ran.good);
    assert_int_equal(ran.err.code, ERROR_QUERY_LIMIT);
    options = (struct gremlin_run_options){.limits = {.work_max = 100000}};
    ran = gremlin_runs(bench, "modern", "g.V().repeat(both()).path()", &options);
    assert_false(ran.good);
    assert_int_equal(ran.err.code, ERROR_QUERY_LIMIT);
    options = (struct gremlin_run_options){.limits = {.results_max = 3}};
    ran = gremlin_runs(bench, "modern", "g.V()", &options);
    assert_false(ran.good);
    options = (struct gremlin_run_options){.cancelled = &cancelled};
    ran = gremlin_runs(bench, "modern", "g.V().repeat(both()).times(1000).count()", &options);
    assert_false(ran.good);
    assert_int_equal(ran.err.code, ERROR_TIMED_OUT);
    options = (struct gremlin_run_options){.read_only = true};
    ran = gremlin_runs(bench, "modern", "g.V('1').property('x',1)", &options);
    assert_false(ran.good);
    assert_int_equal(ran.err.code, ERROR_FORBIDDEN);
}

static void strategies_change_what_is_seen(void **state)
{
    static const struct one cases[] = {
        {"g.withStrategies(SubgraphStrategy(vertices: __.hasLabel('person'))).V().count()", "4"},
        {"g.withStrategies(SubgraphStrategy(vertices: __.hasLabel('person'))).V('1').out().count()",
         "2"},
        {"g.withStrategies(SubgraphStrategy(edges: __.has('weight',1.0d))).V('1').out()"
         ".values('name')",
         "josh"},
    };
    struct graph_bench *bench = modern(state, 1);
    struct gremlin_ran ran;

    check_all(bench, "modern", cases, ARRAY_LEN(cases), GREMLIN_VERSION_3_7);
    ran = gremlin_runs(bench, "modern", "g.withStrategies(ReadOnlyStrategy).addV('x')", NULL);
    assert_false(ran.good);
    ran = gremlin_runs(bench, "modern", "g.withStrategies(VertexProgramStrategy).V()", NULL);
    assert_false(ran.good);
}

int main(void)
{
#define ON_A_BENCH(test)                                                                           \
    cmocka_unit_test_setup_teardown(test, graph_bench_setup, graph_bench_teardown)
    const struct CMUnitTest tests[] = {
        ON_A_BENCH(elements_are_found_filtered_and_expanded_in_their_order),
        ON_A_BENCH(objects_become_others_maps_and_groups),
        ON_A_BENCH(branches_and_rounds_keep_to_their_children),
        ON_A_BENCH(what_is_written_is_seen),
        ON_A_BENCH(versions_differ_where_the_facts_say),
        ON_A_BENCH(what_is_not_offered_is_refused_by_name),
        ON_A_BENCH(limits_and_cancelling_end_a_run),
        ON_A_BENCH(strategies_change_what_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
