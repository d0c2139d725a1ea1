#include "script/script.h"

#include "support/check.h"
#include "support/script_bench.h"

#define assert_answers(bench, source, arguments, expected)                                         \
    do {                                                                                           \
        assert_ok(script_bench_run((bench), (source), (arguments)), &(bench)->err);                \
        assert_slice_equal((bench)->result.response_body, SLICE(expected));                        \
    } while (0)

static void a_procedure_is_given_its_arguments_and_answers(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_answers(&bench, "function (a, b) { getContext().getResponse().setBody(a.x + b); }",
                   "[{\"x\":1},41]", "42");
    assert_int_equal(bench.batches, 0);
}

static void a_body_that_is_never_set_is_absent(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_ok(script_bench_run(&bench, "function () {}", NULL), &bench.err);
    assert_null(bench.result.response_body.data);
}

static void all_forms_of_a_function_are_taken(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_answers(&bench, "function named(a) { __.response.setBody(a) }", "[1]", "1");
    assert_answers(&bench, " function (a) { __.response.setBody(a) } ; \n", "[2]", "2");
    assert_answers(&bench, "(a) => { __.response.setBody(a) }", "[3]", "3");
    assert_answers(&bench, "async (a) => { await 0; __.response.setBody(a) }", "[4]", "4");
    assert_answers(&bench,
                   "// first\nfunction f(a) { __.response.setBody(g(a)) }\n"
                   "function g(a) { return a + 1 } // last",
                   "[4]", "5");
    assert_answers(&bench,
                   "class { static #x = 6; static y() { return this.#x } }"
                   ".y.constructor('__.response.setBody(6)')",
                   NULL, "6");
}

static void what_is_no_function_fails_by_name(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_fails(script_bench_run(&bench, "function (", NULL), &bench.err, ERROR_SCRIPT_FAILED);
    assert_contains(bench.err.message, "SyntaxError");
    assert_true(bench.result.compile_failed);
    assert_fails(script_bench_run(&bench, "42", NULL), &bench.err, ERROR_SCRIPT_FAILED);
    assert_contains(bench.err.message, "not a function");
    assert_fails(script_bench_run(&bench, "", NULL), &bench.err, ERROR_SCRIPT_FAILED);
    assert_answers(&bench, "function () { __.response.setBody('still here') }", NULL,
                   "\"still here\"");
}

static void an_exception_carries_number_message_and_stack(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_fails(script_bench_run(&bench,
                                  "function outer() { inner(); function inner() {\n"
                                  " const e = new Error('no good'); e.number = 4711; throw e } }",
                                  NULL),
                 &bench.err, ERROR_SCRIPT_FAILED);
    assert_int_equal(bench.err.status, 400);
    assert_int_equal(bench.result.error_number, 4711);
    assert_false(bench.result.compile_failed);
    assert_slice_equal(bench.result.error_message, SLICE("Error: no good"));
    assert_contains(arena_text(bench.arena, bench.result.error_stack), "inner");
    assert_contains(bench.err.message, "no good");

    assert_fails(script_bench_run(&bench, "function () { throw 'a text' }", NULL), &bench.err,
                 ERROR_SCRIPT_FAILED);
    assert_slice_equal(bench.result.error_message, SLICE("a text"));
    assert_fails(script_bench_run(&bench, "function () { throw {number: 404, body: 'b'} }", NULL),
                 &bench.err, ERROR_SCRIPT_FAILED);
    assert_int_equal(bench.result.error_number, 404);
    assert_slice_equal(bench.result.error_message, SLICE("b"));
}

static void nothing_a_script_catches_undoes_an_abort(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_fails(script_bench_run(&bench,
                                  "function () { try { getContext().abort({number: 499, body: "
                                  "'stop'}) } catch (e) {} __.response.setBody(1) }",
                                  NULL),
                 &bench.err, ERROR_SCRIPT_FAILED);
    assert_int_equal(bench.result.error_number, 499);
    assert_null(bench.result.response_body.data);
}

static void operations_issued_together_travel_as_one_message(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_answers(
        &bench,
        "function () { let seen = []; for (let i = 0; i < 50; i++)"
        " __.createDocument(__.getSelfLink(), {id: 'i' + i}, (e, d) => { seen.push(d.id);"
        "  if (seen.length === 50) __.response.setBody(seen[0] + seen[49]) }) }",
        NULL, "\"i0i49\"");
    assert_int_equal(bench.count, 50);
    assert_int_equal(bench.batches, 1);
    assert_int_equal(bench.result.counts.operations, 50);
}

static void many_operations_keep_their_order_across_batches(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_answers(&bench,
                   "function () { let last = -1, wrong = 0, n = 0; for (let i = 0; i < 400; i++)"
                   " __.createDocument(__.getSelfLink(), {id: 'i' + i, i}, (e, d) => {"
                   "  if (d.i !== last + 1) wrong++; last = d.i; n++;"
                   "  __.response.setBody([n, wrong]) }) }",
                   NULL, "[400,0]");
    assert_int_equal(bench.batches, 4);
}

static void callbacks_may_ask_further(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_answers(
        &bench,
        "function (docs) { let n = 0; const next = () => { if (n === docs.length)"
        "  return __.response.setBody(n);"
        " if (!__.createDocument(__.getSelfLink(), docs[n], (e) => { if (e) throw e; n++;"
        "  next() })) __.response.setBody(n) }; next() }",
        "[[{\"id\":\"a\"},{\"id\":\"b\"},{\"id\":\"c\"}]]", "3");
    assert_int_equal(bench.batches, 3);
}

static void promises_are_settled_before_the_end(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_answers(&bench,
                   "async function () { const make = (d) => new Promise((ok, no) =>"
                   "  __.createDocument(__.getAltLink(), d, (e, r) => e ? no(e) : ok(r)));"
                   " const a = await make({id: 'a'}); const [b, c] = await Promise.all("
                   "  [make({id: 'b'}), make({id: 'c'})]);"
                   " __.response.setBody(a.id + b.id + c.id) }",
                   NULL, "\"abc\"");
    assert_int_equal(bench.batches, 2);
    assert_fails(script_bench_run(&bench,
                                  "async function () { await 1; const e = new Error('later');"
                                  " e.number = 7; throw e }",
                                  NULL),
                 &bench.err, ERROR_SCRIPT_FAILED);
    assert_int_equal(bench.result.error_number, 7);
}

static void an_error_without_callback_ends_the_run(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_fails(script_bench_run(
                     &bench, "function () { __.readDocument(__.getAltLink() + '/docs/no') }", NULL),
                 &bench.err, ERROR_SCRIPT_FAILED);
    assert_int_equal(bench.result.error_number, 404);
}

static void operations_are_not_accepted_once_the_host_says_so(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    bench.accepted_max = 3;
    assert_answers(&bench,
                   "function () { let n = 0; const next = () => { if (!__.createDocument("
                   "__.getSelfLink(), {id: 'i' + n}, () => { n++; next() }))"
                   " __.response.setBody(n) }; next() }",
                   NULL, "3");
}

static void operations_are_not_accepted_near_the_end_of_time(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_options options = {.time_ms = 1500, .margin_ms = 1499};

    script_bench_init(&bench, &options);
    assert_answers(&bench,
                   "function () { const end = Date.now() + 20; while (Date.now() < end);"
                   " __.response.setBody(__.readDocuments(__.getSelfLink())) }",
                   NULL, "false");
    assert_int_equal(bench.operations, 0);
}

static void what_the_host_fails_with_is_what_the_caller_gets(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    bench.fail_at = 2;
    assert_fails(script_bench_run(&bench,
                                  "function () { __.createDocument(__.getSelfLink(), {id: 'a'});"
                                  " __.createDocument(__.getSelfLink(), {id: 'b'}) }",
                                  NULL),
                 &bench.err, ERROR_CONFLICT);
    bench.fail_at = 0;
    assert_answers(&bench, "function () { __.response.setBody(1) }", NULL, "1");
}

static void a_script_that_may_not_write_is_told_so(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_request request;

    script_bench_init(&bench, NULL);
    request = script_bench_make(&bench, SCRIPT_PROCEDURE,
                                "function () { const seen = []; const note = (e) => {"
                                " seen.push(e ? e.number : 0); __.response.setBody(seen) };"
                                " __.readDocuments(__.getSelfLink(), note);"
                                " __.createDocument(__.getSelfLink(), {id: 'a'}, note);"
                                " __.readDocuments(__.getSelfLink(), note) }");
    request.may_write = false;
    assert_ok(script_bench_request(&bench, &request), &bench.err);
    assert_slice_equal(bench.result.response_body, SLICE("[0,403,0]"));
    assert_int_equal(bench.count, 0);
}

static void a_pre_trigger_changes_the_request(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_request request;
    struct script_value value = {SLICE("x-ms-thing"), SLICE("\"old\"")};

    script_bench_init(&bench, NULL);
    request = script_bench_make(&bench, SCRIPT_PRE_TRIGGER,
                                "function () { const r = getContext().getRequest(); const b = "
                                "r.getBody(); b.stamp = r.getOperationType() + "
                                "r.getValue('x-ms-thing'); r.setBody(b); r.setValue('n', 5) }");
    request.operation = SLICE("Create");
    request.request_body = SLICE("{\"id\":\"a\"}");
    request.request_values = &value;
    request.request_value_count = 1;
    assert_ok(script_bench_request(&bench, &request), &bench.err);
    assert_slice_equal(bench.result.request_body, SLICE("{\"id\":\"a\",\"stamp\":\"Createold\"}"));
    assert_int_equal(bench.result.request_value_count, 2);
    assert_slice_equal(bench.result.request_values[1].name, SLICE("n"));
    assert_slice_equal(bench.result.request_values[1].json, SLICE("5"));

    request.key = request.source = SLICE("function () { __.response.setBody(1) }");
    assert_fails(script_bench_request(&bench, &request), &bench.err, ERROR_SCRIPT_FAILED);
}

static void a_post_trigger_sees_request_and_response(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_request request;

    script_bench_init(&bench, NULL);
    request = script_bench_make(
        &bench, SCRIPT_POST_TRIGGER,
        "function () { const c = getContext(); __.createDocument(__.getSelfLink(),"
        " {id: 'meta', of: c.getResponse().getBody()._etag + c.getRequest().getBody().id}) }");
    request.request_body = SLICE("{\"id\":\"a\"}");
    request.response_body = SLICE("{\"id\":\"a\",\"_etag\":\"e\"}");
    assert_ok(script_bench_request(&bench, &request), &bench.err);
    assert_null(bench.result.response_body.data);
    assert_string_equal(bench.items[0].json, "{\"id\":\"meta\",\"of\":\"ea\"}");
}

static void the_log_is_kept_formatted_and_cut(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_options options = {.log_bytes = 64};
    struct script_request request;

    script_bench_init(&bench, &options);
    assert_ok(script_bench_run(&bench,
                               "function () { console.log('%s is %d%% of %j', 'x', 5.7, {a: 1}, "
                               "'more'); console.log([1, 2]) }",
                               NULL),
              &bench.err);
    assert_slice_equal(bench.result.log, SLICE("x is 5% of {\"a\":1} more\n[1,2]\n"));
    assert_false(bench.result.log_cut);
    assert_fails(script_bench_run(&bench,
                                  "function () { console.log('kept'); console.log('x'.repeat(99)); "
                                  "console.log('after'); throw 1 }",
                                  NULL),
                 &bench.err, ERROR_SCRIPT_FAILED);
    assert_slice_equal(bench.result.log, SLICE("kept\n"));
    assert_true(bench.result.log_cut);
    request = script_bench_make(&bench, SCRIPT_PROCEDURE, "function () { console.log('x') }");
    request.logging = false;
    assert_ok(script_bench_request(&bench, &request), &bench.err);
    assert_null(bench.result.log.data);
}

static void an_answer_over_the_limit_is_refused(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    struct script_options options = {.output_bytes = 1000};

    script_bench_init(&bench, &options);
    assert_fails(
        script_bench_run(&bench, "function () { __.response.setBody('x'.repeat(2000)) }", NULL),
        &bench.err, ERROR_SCRIPT_LIMIT);
    assert_answers(&bench, "function () { __.response.setBody(1) }", NULL, "1");
}

static void the_same_run_counts_the_same(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;
    const char *source = "function () { __.upsertDocument(__.getSelfLink(), {id: 'a', v: 1},"
                         " () => __.readDocuments(__.getSelfLink(), (e, f) =>"
                         "  __.response.setBody(f))) }";
    struct script_counts first;

    script_bench_init(&bench, NULL);
    assert_ok(script_bench_run(&bench, source, "[1]"), &bench.err);
    first = bench.result.counts;
    assert_int_equal(first.operations, 2);
    assert_int_equal(first.operation_bytes,
                     2 * strlen("dbs/AAA=/colls/AAB=/") + strlen("{\"id\":\"a\",\"v\":1}"));
    assert_int_equal(first.input_bytes, strlen(source) + 3);
    assert_ok(script_bench_run(&bench, source, "[1]"), &bench.err);
    assert_memory_equal(&bench.result.counts, &first, sizeof first);
}

static void text_of_all_kinds_survives_the_way_there_and_back(void **state UNUSED)
{
    CLEANUP(script_bench_done) struct script_bench bench;

    script_bench_init(&bench, NULL);
    assert_answers(&bench, "function (a) { __.response.setBody(a) }",
                   "[\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \\u0000 \\ud800\"]",
                   "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \\u0000 \\ud800\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_procedure_is_given_its_arguments_and_answers),
        cmocka_unit_test(a_body_that_is_never_set_is_absent),
        cmocka_unit_test(all_forms_of_a_function_are_taken),
        cmocka_unit_test(what_is_no_function_fails_by_name),
        cmocka_unit_test(an_exception_carries_number_message_and_stack),
        cmocka_unit_test(nothing_a_script_catches_undoes_an_abort),
        cmocka_unit_test(operations_issued_together_travel_as_one_message),
        cmocka_unit_test(many_operations_keep_their_order_across_batches),
        cmocka_unit_test(callbacks_may_ask_further),
        cmocka_unit_test(promises_are_settled_before_the_end),
        cmocka_unit_test(an_error_without_callback_ends_the_run),
        cmocka_unit_test(operations_are_not_accepted_once_the_host_says_so),
        cmocka_unit_test(operations_are_not_accepted_near_the_end_of_time),
        cmocka_unit_test(what_the_host_fails_with_is_what_the_caller_gets),
        cmocka_unit_test(a_script_that_may_not_write_is_told_so),
        cmocka_unit_test(a_pre_trigger_changes_the_request),
        cmocka_unit_test(a_post_trigger_sees_request_and_response),
        cmocka_unit_test(the_log_is_kept_formatted_and_cut),
        cmocka_unit_test(an_answer_over_the_limit_is_refused),
        cmocka_unit_test(the_same_run_counts_the_same),
        cmocka_unit_test(text_of_all_kinds_survives_the_way_there_and_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
