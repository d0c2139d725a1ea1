/* The server-side API as scripts see it: src/script/worker/api.js. */
#include "script/script.h"

#include "support/check.h"
#include "support/script_bench.h"

#define assert_answers(bench, source, expected)                                                    \
    do {                                                                                           \
        assert_ok(script_bench_run((bench), (source), NULL), &(bench)->err);                       \
        assert_slice_equal((bench)->result.response_body, SLICE(expected));                        \
    } while (0)

/* Five items: id "i0" to "i4", with n, and tags of it. */
static void fill(struct script_bench *bench)
{
    assert_ok(
        script_bench_run(bench,
                         "function () { for (let i = 0; i < 5; i++) __.createDocument("
                         "__.getSelfLink(), {id: 'i' + i, n: (i * 3) % 5, tags: [i, [i + 1]]})"
                         " }",
                         NULL),
        &bench->err);
    assert_int_equal(bench->count, 5);
}

static void the_context_has_its_parts(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_answers(&bench,
                   "function () { const c = getContext(), l = c.getCollection();"
                   " c.getResponse().setBody([l === __, l.getSelfLink(), l.getAltLink(),"
                   "  __.request === c.getRequest(), __.response === c.getResponse(),"
                   "  ErrorCodes.NotFound, c.getRequest().getBody()]) }",
                   "[true,\"dbs/AAA=/colls/AAB=/\",\"dbs/d/colls/c\",true,true,404,[]]");
}

static void values_of_the_response_are_set_and_appended(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_answers(
        &bench,
        "function () { const r = __.response; r.setBody('a'); r.appendValue('Body', 'b');"
        " r.appendBody(1); r.setValue('x', 'y'); r.appendValue('x', 'z');"
        " r.setBody(r.getBody() + r.getValue('x') + r.getValue('no') + "
        "r.getMaxResourceQuota()) }",
        "\"ab1yzundefined\"");
    assert_int_equal(bench.result.response_value_count, 1);
    assert_slice_equal(bench.result.response_values[0].json, SLICE("\"yz\""));
}

static void a_procedure_cannot_change_its_request(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_fails(script_bench_run(&bench, "function () { __.request.setBody(1) }", NULL),
                 &bench.err, ERROR_SCRIPT_FAILED);
    assert_int_equal(bench.result.error_number, 400);
}

static void a_document_is_read_replaced_and_deleted_by_link(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    fill(&bench);
    assert_answers(
        &bench,
        "function () { const link = __.getAltLink() + '/docs/i1', out = [];"
        " __.readDocument(link, (e, d, o) => { out.push(d.n, o.etag, o.requestCharge);"
        "  __.replaceDocument(link, {id: 'i1', n: 9}, {etag: 'v0'}, (e) => { out.push(e.number,"
        "   e.body); __.replaceDocument(link, {id: 'i1', n: 9}, {etag: o.etag}, (e, d) => {"
        "    out.push(d.n); __.deleteDocument(link, {}, (e, d, o) => { out.push(e, d);"
        "     __.readDocument(link, (e) => { out.push(e.number); __.response.setBody(out) "
        "})})})})})"
        "}",
        "[3,\"v1\",5.29,412,\"the etag is another\",9,null,null,404]");
    assert_int_equal(bench.count, 4);
}

static void wrong_arguments_are_thrown_at_the_caller(void **state UNUSED)
{
    static const char *const sources[] = {
        "function () { __.createDocument() }",
        "function () { __.createDocument(__.getSelfLink(), 'text') }",
        "function () { __.createDocument(__.getSelfLink(), [1]) }",
        "function () { __.createDocument(__.getSelfLink(), {}, {}, 5) }",
        "function () { __.createDocument(__.getSelfLink(), {}, 5, () => 1) }",
        "function () { __.readDocument({}) }",
        "function () { __.queryDocuments(__.getSelfLink(), 5) }",
        "function () { __.patchDocument('x', 'y') }",
        "function () { __.filter('x') }",
    };
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        assert_fails(script_bench_run(&bench, sources[i], NULL), &bench.err, ERROR_SCRIPT_FAILED);
        assert_int_equal(bench.result.error_number, 400);
    }
    assert_int_equal(bench.operations, 0);
    assert_fails(script_bench_run(&bench, "function () { __.createAttachment('x', {}) }", NULL),
                 &bench.err, ERROR_SCRIPT_FAILED);
    assert_int_equal(bench.result.error_number, 501);
}

static void queries_page_with_a_continuation(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    fill(&bench);
    assert_answers(&bench,
                   "function () { const pages = []; const more = (continuation) =>"
                   " __.queryDocuments(__.getSelfLink(), {query: 'SELECT * FROM c WHERE c.n > @n',"
                   "  parameters: [{name: '@n', value: 0}]}, {pageSize: 2, continuation},"
                   "  (e, feed, o) => { pages.push(feed.length); if (o.continuation)"
                   "   more(o.continuation); else __.response.setBody(pages) }); more() }",
                   "[2,2,1]");
}

static void fluent_queries_filter_map_and_pluck(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    fill(&bench);
    assert_answers(&bench,
                   "function () { const r = __.filter(d => d.n > 2, (e, f) => "
                   "__.response.setBody([r.isAccepted, f.map(d => d.id)])) }",
                   "[true,[\"i1\",\"i3\"]]");
    assert_answers(&bench, "function () { __.pluck('n') }", "[0,3,1,4,2]");
    assert_answers(&bench, "function () { __.map(d => d.n + 1) }", "[1,4,2,5,3]");
    assert_answers(
        &bench, "function () { __.chain().filter(d => d.n < 3).pluck('tags').flatten().value() }",
        "[0,1,2,3,4,5]");
    assert_answers(
        &bench,
        "function () { __.chain().filter(d => d.n < 3).pluck('tags').flatten(true).value()"
        " }",
        "[0,[1],2,[3],4,[5]]");
}

static void fluent_queries_sort_over_all_pages(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    fill(&bench);
    assert_answers(&bench, "function () { __.chain().sortBy(d => d.n).pluck('id').value() }",
                   "[\"i0\",\"i2\",\"i4\",\"i1\",\"i3\"]");
    assert_answers(&bench,
                   "function () { __.chain().filter(d => d.n).sortByDescending('n').pluck('n')"
                   ".value({pageSize: 2}, (e, f) => __.response.setBody(f)) }",
                   "[4,3,2,1]");
}

static void fluent_queries_unwind_arrays(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    fill(&bench);
    assert_answers(&bench,
                   "function () { __.chain().filter(d => d.n === 3).unwind(d => d.tags, (d, t) => "
                   "[d.id, t]).value() }",
                   "[[\"i1\",1],[\"i1\",[2]]]");
    assert_answers(
        &bench,
        "function () { __.chain().filter(d => d.n === 3).unwind('tags').map(p => p.inner)"
        ".value() }",
        "[1,[2]]");
}

static void fluent_queries_page_by_results(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    fill(&bench);
    assert_answers(&bench,
                   "function () { const pages = []; const more = (continuation) => __.filter("
                   "d => d.n !== 3, {pageSize: 2, continuation}, (e, f, o) => {"
                   " pages.push(f.map(d => d.n)); if (o.continuation) more(o.continuation);"
                   " else __.response.setBody(pages) }); more() }",
                   "[[0,1],[4,2]]");
}

static void an_exception_in_a_callback_ends_the_run(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_fails(script_bench_run(&bench,
                                  "function () { __.readDocument(__.getAltLink() + '/docs/x',"
                                  " (e) => { throw new Error(e.body) }) }",
                                  NULL),
                 &bench.err, ERROR_SCRIPT_FAILED);
    assert_slice_equal(bench.result.error_message, SLICE("Error: there is no such item"));
}

static void modern_syntax_works(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_answers(
        &bench,
        "async ({a = 1, ...rest} = {}) => { class P { #x = 2; get x() { return this.#x } "
        "static s = 3 } function* g() { yield* [4, 5] } const o = null;"
        " const m = new Map([['k', 6]]); label: for (const v of g()) { if (v) break label "
        "} __.response.setBody([a, new P().x, P.s, ...g(), m.get('k'), o?.x ?? 7, "
        "2 ** 3, `${9}`, [10, [11]].flat().at(-1), Object.fromEntries([['z', 12n < 13]]), "
        "'ab'.replaceAll('a', 'b'), /(?<y>\\d)/u.exec('5').groups.y]) }",
        "[1,2,3,4,5,6,7,8,\"9\",11,{\"z\":true},\"bb\",\"5\"]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_context_has_its_parts),
        cmocka_unit_test(values_of_the_response_are_set_and_appended),
        cmocka_unit_test(a_procedure_cannot_change_its_request),
        cmocka_unit_test(a_document_is_read_replaced_and_deleted_by_link),
        cmocka_unit_test(wrong_arguments_are_thrown_at_the_caller),
        cmocka_unit_test(queries_page_with_a_continuation),
        cmocka_unit_test(fluent_queries_filter_map_and_pluck),
        cmocka_unit_test(fluent_queries_sort_over_all_pages),
        cmocka_unit_test(fluent_queries_unwind_arrays),
        cmocka_unit_test(fluent_queries_page_by_results),
        cmocka_unit_test(an_exception_in_a_callback_ends_the_run),
        cmocka_unit_test(modern_syntax_works),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
