/* The cases of tests/cases/mongo/match.json, and what cannot be said in one. */
#include "front/mongo/match/match.h"

#include "document/json.h"
#include "support/check.h"
#include "support/extended.h"

#include <stdio.h>

struct fixture {
    struct arena *arena;
    struct slice cases; /* an array */
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct document_value cases;

    f->arena = arena_new();
    assert_true(
        document_find(extended_file(f->arena, "cases/mongo/match.json"), SLICE("cases"), &cases));
    f->cases = cases.document;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    arena_free(f->arena);
    free(f);
    return 0;
}

static const char *shown(struct arena *arena, struct slice document)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    document_json_write(document, &buf);
    return arena_text(arena, buf_slice(&buf));
}

static struct slice filter_of(struct slice of)
{
    struct document_value filter;

    assert_true(document_find(of, SLICE("filter"), &filter));
    return filter.document;
}

/* Both ways of asking say the same. */
static bool holds(struct arena *arena, struct slice filter, struct slice document)
{
    CLEANUP(query_context_done) struct query_context context = {0};
    struct query_build build = {.arena = arena, .order = DOCUMENT_ORDER_MONGO};
    struct query_slot slot = {.value = document_object(document)};
    const struct query_expression *expression;
    const struct mongo_match *match;
    struct error err;
    bool direct, evaluated;

    query_context_init(&context, arena, NULL, NULL);
    context.order = DOCUMENT_ORDER_MONGO;
    context.slots = &slot;
    context.slot_count = 1;
    assert_ok(mongo_match_parse(filter, NULL, &build, &match, &err), &err);
    assert_ok(mongo_match_holds(match, &slot.value, &context, &direct, &err), &err);
    assert_ok(mongo_match_compile(filter, NULL, &build, &expression, &err), &err);
    assert_ok(query_holds(expression, &context, &evaluated, &err), &err);
    assert_int_equal(direct, evaluated);
    return direct;
}

static void documents_check(struct arena *arena, struct slice of, const char *list, bool expected)
{
    struct document_value documents;
    struct document_iter iter;

    if (!document_find(of, slice_of_text(list), &documents))
        return;
    document_iter_init(&iter, documents.document);
    while (document_iter_next(&iter))
        if (holds(arena, filter_of(of), iter.value.document) != expected)
            fail_msg("%s does %smatch %s", shown(arena, iter.value.document),
                     expected ? "not " : "", shown(arena, filter_of(of)));
}

static void filters_match_what_the_cases_say(void **state)
{
    struct fixture *f = *state;
    struct document_value code;
    struct document_iter iter;
    size_t count = 0;

    document_iter_init(&iter, f->cases);
    while (document_iter_next(&iter)) {
        if (document_find(iter.value.document, SLICE("code"), &code))
            continue;
        documents_check(f->arena, iter.value.document, "yes", true);
        documents_check(f->arena, iter.value.document, "no", false);
        count++;
    }
    assert_true(count > 100);
}

static void wrong_filters_are_refused_as_the_cases_say(void **state)
{
    struct fixture *f = *state;
    struct document_iter iter;
    size_t count = 0;

    document_iter_init(&iter, f->cases);
    while (document_iter_next(&iter)) {
        struct query_build build = {.arena = f->arena};
        struct slice of = iter.value.document;
        struct document_value code, text;
        const struct mongo_match *match;
        char name[MONGO_CODE_NAME_SIZE];
        struct error err;

        if (!document_find(of, SLICE("code"), &code))
            continue;
        if (mongo_match_parse(filter_of(of), NULL, &build, &match, &err))
            fail_msg("%s is not refused", shown(f->arena, filter_of(of)));
        if (mongo_error_code(&err) != code.int32)
            fail_msg("%s is refused with %d: %s", shown(f->arena, filter_of(of)),
                     mongo_error_code(&err), err.message);
        if (document_find(of, SLICE("message"), &text))
            assert_contains(err.message, arena_text(f->arena, text.text));
        if (document_find(of, SLICE("codeName"), &text))
            assert_slice_equal(slice_of_text(mongo_error_name(&err, name)), text.text);
        count++;
    }
    assert_true(count > 30);
}

static int64_t position(struct arena *arena, const char *filter, const char *document)
{
    CLEANUP(query_context_done) struct query_context context = {0};
    struct query_build build = {.arena = arena};
    struct document_value value =
        document_object(extended_document(arena, slice_of_text(document)));
    const struct mongo_match *match;
    struct error err;
    int64_t found;
    bool matches;

    query_context_init(&context, arena, NULL, NULL);
    assert_ok(mongo_match_parse(extended_document(arena, slice_of_text(filter)), NULL, &build,
                                &match, &err),
              &err);
    assert_ok(mongo_match_position(match, &value, &context, &matches, &found, &err), &err);
    return matches ? found : -2;
}

static void the_element_of_the_first_array_is_told(void **state)
{
    struct arena *arena = ((struct fixture *)*state)->arena;

    assert_int_equal(position(arena, "{\"a\":5}", "{\"a\":[1,5]}"), 1);
    assert_int_equal(position(arena, "{\"a\":5}", "{\"a\":5}"), -1);
    assert_int_equal(position(arena, "{\"a\":5}", "{\"a\":4}"), -2);
    assert_int_equal(position(arena, "{\"a.b\":5}", "{\"a\":[{\"b\":1},{\"b\":[4,4,5]}]}"), 1);
    assert_int_equal(position(arena, "{\"a\":{\"$elemMatch\":{\"$gt\":3}}}", "{\"a\":[1,2,4]}"), 2);
    assert_int_equal(position(arena, "{\"a\":5,\"b\":7}", "{\"a\":[5],\"b\":[1,7]}"), 1);
    assert_int_equal(position(arena, "{\"a\":5,\"b\":{\"$ne\":1}}", "{\"a\":[0,5],\"b\":[9,7]}"),
                     1);
    assert_int_equal(position(arena, "{\"a\":[1,5]}", "{\"a\":[1,5]}"), -1);
    assert_int_equal(
        position(arena, "{\"$or\":[{\"a\":5,\"b\":9},{\"b\":1}]}", "{\"a\":[0,5],\"b\":1}"), -1);
}

static void a_filter_that_is_too_deep_is_refused(void **state)
{
    struct fixture *f = *state;
    struct query_build build = {.arena = f->arena};
    CLEANUP(buf_done) struct buf json;
    const struct mongo_match *match;
    struct error err;

    buf_init(&json, BUF_DEFAULT_MAX);
    for (int i = 0; i < 60; i++)
        BUF_APPEND(&json, "{\"$and\":[");
    BUF_APPEND(&json, "{\"a\":{\"$not\":{\"$not\":{\"$not\":{\"$gt\":1}}}}}");
    for (int i = 0; i < 60; i++)
        BUF_APPEND(&json, "]}");
    assert_ok(mongo_match_parse(extended_document(f->arena, buf_slice(&json)), NULL, &build, &match,
                                &err),
              &err);
    buf_clear(&json);
    BUF_APPEND(&json, "{\"a\":");
    for (int i = 0; i < 120; i++)
        BUF_APPEND(&json, "{\"$not\":");
    BUF_APPEND(&json, "{\"$gt\":1}");
    for (int i = 0; i < 121; i++)
        BUF_APPEND(&json, "}");
    assert_fails(mongo_match_parse(extended_document(f->arena, buf_slice(&json)), NULL, &build,
                                   &match, &err),
                 &err, ERROR_MONGO);
    assert_contains(err.message, "exceeded maximum query tree depth");
}

static void texts_match_by_the_collator(void **state)
{
    struct fixture *f = *state;
    struct query_build build = {.arena = f->arena};
    const struct document_value document =
        document_object(extended_document(f->arena, SLICE("{\"a\":\"X\"}")));
    CLEANUP(query_context_done) struct query_context context = {0};
    struct mongo_match_options options = {0};
    struct mongo_equality *equalities;
    const struct mongo_match *match;
    struct error err;
    size_t count;
    bool holds;

    assert_ok(mongo_collator_find(
                  extended_document(f->arena, SLICE("{\"locale\":\"en\",\"strength\":2}")),
                  &options.collator, &err),
              &err);
    query_context_init(&context, f->arena, NULL, NULL);
    assert_ok(mongo_match_parse(extended_document(f->arena, SLICE("{\"a\":{\"$in\":[\"x\"]}}")),
                                &options, &build, &match, &err),
              &err);
    assert_ok(mongo_match_holds(match, &document, &context, &holds, &err), &err);
    assert_true(holds);
    /* an upsert begins with the text as it was given */
    assert_ok(mongo_match_equalities(match, f->arena, &equalities, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_true(slice_equal(equalities[0].value.text, SLICE("x")));
}

/* $expr through the interface of whoever knows expressions: here, that a field is true. */
static bool field_compile(void *self UNUSED, const struct document_value *expression,
                          struct query_build *build, const struct query_expression **ret_expression,
                          struct error *err UNUSED)
{
    *ret_expression =
        query_property_of(build, query_variable(build, 0), slice_skip(expression->text, 1));
    return true;
}

static void expressions_are_somebody_elses(void **state)
{
    struct fixture *f = *state;
    CLEANUP(query_context_done) struct query_context context = {0};
    struct query_build build = {.arena = f->arena};
    struct mongo_match_options options = {.expression = field_compile};
    struct slice filter = extended_document(f->arena, SLICE("{\"$expr\":\"$a\",\"b\":1}"));
    static const char *const documents[] = {"{\"a\":2,\"b\":1}", "{\"a\":0,\"b\":1}",
                                            "{\"a\":2,\"b\":2}", "{\"b\":1}"};
    const struct query_expression *expression;
    struct query_slot slot;
    struct error err;

    assert_ok(mongo_match_compile(filter, &options, &build, &expression, &err), &err);
    query_context_init(&context, f->arena, NULL, NULL);
    context.slots = &slot;
    context.slot_count = 1;
    for (size_t i = 0; i < ARRAY_LEN(documents); i++) {
        bool matches;

        slot = (struct query_slot){
            .value = document_object(extended_document(f->arena, slice_of_text(documents[i])))};
        assert_ok(query_holds(expression, &context, &matches, &err), &err);
        assert_int_equal(matches, i == 0);
    }
}

static void an_expensive_filter_ends_at_the_limit_of_work(void **state)
{
    struct fixture *f = *state;
    CLEANUP(query_context_done) struct query_context context = {0};
    struct query_limits limits = {.work_max = 50};
    struct query_build build = {.arena = f->arena};
    CLEANUP(buf_done) struct buf json;
    struct document_value document;
    const struct mongo_match *match;
    struct error err;
    bool matches;

    buf_init(&json, BUF_DEFAULT_MAX);
    BUF_APPEND(&json, "{\"a\":[0");
    for (int i = 0; i < 5000; i++)
        BUF_APPEND(&json, ",1");
    BUF_APPEND(&json, "]}");
    document = document_object(extended_document(f->arena, buf_slice(&json)));
    query_context_init(&context, f->arena, &limits, NULL);
    assert_ok(mongo_match_parse(extended_document(f->arena, SLICE("{\"a\":{\"$ne\":2}}")), NULL,
                                &build, &match, &err),
              &err);
    assert_fails(mongo_match_holds(match, &document, &context, &matches, &err), &err,
                 ERROR_QUERY_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_match_what_the_cases_say),
        cmocka_unit_test(wrong_filters_are_refused_as_the_cases_say),
        cmocka_unit_test(the_element_of_the_first_array_is_told),
        cmocka_unit_test(a_filter_that_is_too_deep_is_refused),
        cmocka_unit_test(texts_match_by_the_collator),
        cmocka_unit_test(expressions_are_somebody_elses),
        cmocka_unit_test(an_expensive_filter_ends_at_the_limit_of_work),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
