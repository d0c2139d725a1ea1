/* The cases of tests/cases/mongo/projection.json, and computed fields through the interface. */
#include "front/mongo/projection/projection.h"

#include "document/json.h"
#include "support/check.h"
#include "support/extended.h"

struct fixture {
    struct arena *arena;
    struct query_context context;
    struct query_slot slot;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->arena = arena_new();
    query_context_init(&f->context, f->arena, NULL, NULL);
    f->context.slots = &f->slot;
    f->context.slot_count = 1;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    query_context_done(&f->context);
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

static struct document_value member(struct slice of, const char *name)
{
    struct document_value value;

    assert_true(document_find(of, slice_of_text(name), &value));
    return value;
}

/* As an expression of a row, as plans have it. */
static bool run(struct fixture *f, struct slice of, const struct mongo_match_options *options,
                struct document_value *ret_value, struct error *err)
{
    struct query_build build = {.arena = f->arena};
    const struct mongo_projection *projection;
    const struct mongo_match *match = NULL;
    struct document_value query;

    if (document_find(of, SLICE("query"), &query))
        assert_ok(mongo_match_parse(query.document, NULL, &build, &match, err), err);
    f->slot.value = member(of, "document");
    return mongo_projection_compile(member(of, "projection").document, options, match, &build,
                                    &projection, err) &&
           query_evaluate(mongo_projection_expression(projection, &build), &f->context, ret_value,
                          err);
}

static void case_check(struct fixture *f, struct slice of)
{
    struct document_value value, expected;
    char name[MONGO_CODE_NAME_SIZE];
    struct error err;

    if (!document_find(of, SLICE("code"), &expected)) {
        if (!run(f, of, NULL, &value, &err))
            fail_msg("%s fails: %s", shown(f->arena, of), err.message);
        if (!slice_equal(value.document, member(of, "shown").document))
            fail_msg("%s shows %s", shown(f->arena, of), shown(f->arena, value.document));
        return;
    }
    if (run(f, of, NULL, &value, &err))
        fail_msg("%s shows %s", shown(f->arena, of), shown(f->arena, value.document));
    if (mongo_error_code(&err) != expected.int32)
        fail_msg("%s fails with %d: %s", shown(f->arena, of), mongo_error_code(&err), err.message);
    if (document_find(of, SLICE("message"), &value))
        assert_contains(err.message, arena_text(f->arena, value.text));
    if (document_find(of, SLICE("codeName"), &value))
        assert_slice_equal(slice_of_text(mongo_error_name(&err, name)), value.text);
}

static void documents_show_what_the_cases_say(void **state)
{
    struct fixture *f = *state;
    struct document_value cases =
        member(extended_file(f->arena, "cases/mongo/projection.json"), "cases");
    struct document_iter iter;
    size_t count = 0;

    document_iter_init(&iter, cases.document);
    for (; document_iter_next(&iter); count++)
        case_check(f, iter.value.document);
    assert_true(count > 50);
}

/* "$b" is the field b: all that this test knows of expressions. */
static bool field_compile(void *self UNUSED, const struct document_value *expression,
                          struct query_build *build, const struct query_expression **ret_expression,
                          struct error *err UNUSED)
{
    *ret_expression =
        query_property_of(build, query_variable(build, 0), slice_skip(expression->text, 1));
    return true;
}

static void computes(struct fixture *f, const char *of, const char *expected)
{
    struct mongo_match_options options = {.expression = field_compile};
    struct document_value value;
    struct error err;

    assert_ok(run(f, extended_document(f->arena, slice_of_text(of)), &options, &value, &err), &err);
    assert_slice_equal(slice_of_text(shown(f->arena, value.document)), slice_of_text(expected));
}

static void computed_fields_come_behind_the_others(void **state)
{
    struct fixture *f = *state;

    computes(f, "{\"projection\":{\"x\":\"$b\",\"a\":1},\"document\":{\"_id\":1,\"a\":2,\"b\":3}}",
             "{\"_id\":1,\"a\":2,\"x\":3}");
    computes(f, "{\"projection\":{\"a\":\"$b\"},\"document\":{\"_id\":1,\"a\":2,\"b\":3}}",
             "{\"_id\":1,\"a\":3}");
    computes(f, "{\"projection\":{\"x.y\":\"$b\"},\"document\":{\"_id\":1,\"b\":3}}",
             "{\"_id\":1,\"x\":{\"y\":3}}");
    computes(
        f,
        "{\"projection\":{\"x\":{\"y\":\"$b\"}},\"document\":{\"_id\":1,\"x\":{\"z\":1},\"b\":3}}",
        "{\"_id\":1,\"x\":{\"y\":3}}");
    computes(f, "{\"projection\":{\"x\":\"$none\"},\"document\":{\"_id\":1}}", "{\"_id\":1}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(documents_show_what_the_cases_say, setup, teardown),
        cmocka_unit_test_setup_teardown(computed_fields_come_behind_the_others, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
