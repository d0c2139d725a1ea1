/* The cases of tests/cases/mongo/update.json, and what cannot be said in one. */
#include "front/mongo/update/update.h"

#include "document/json.h"
#include "support/check.h"
#include "support/extended.h"

#include <stdio.h>

static const struct mongo_update_input now = {
    .position = -1, .now_ms = 1700000000000, .now_timestamp = UINT64_C(1700000000) << 32 | 1};

struct fixture {
    struct arena *arena;
    struct query_context context;
    struct slice cases; /* an array */
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct document_value cases;

    f->arena = arena_new();
    query_context_init(&f->context, f->arena, NULL, NULL);
    f->context.limits.bytes_max = (size_t)1 << 30;
    assert_true(
        document_find(extended_file(f->arena, "cases/mongo/update.json"), SLICE("cases"), &cases));
    f->cases = cases.document;
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

static bool has(struct slice of, const char *name, struct document_value *ret_value)
{
    return document_find(of, slice_of_text(name), ret_value);
}

/* The document after, or absent. */
static bool run(struct fixture *f, struct slice of, struct mongo_update_result *ret_result,
                struct error *err)
{
    struct query_build build = {.arena = f->arena, .order = DOCUMENT_ORDER_MONGO};
    struct document_value value, update, new_id = document_string(SLICE("new"));
    struct mongo_update_options options = {0};
    struct mongo_update_input input = now;
    const struct mongo_update *compiled;
    const struct mongo_match *match = NULL;
    bool holds;

    input.context = &f->context;
    if (has(of, "filters", &value))
        options.array_filters = value.document;
    options.multi = has(of, "multi", &value);
    assert_true(has(of, "update", &update));
    if (!mongo_update_compile(&update, &options, &build, &compiled, err))
        return false;
    if (has(of, "query", &value))
        assert_ok(mongo_match_parse(value.document, NULL, &build, &match, err), err);
    if (has(of, "upsert", &value)) {
        *ret_result = (struct mongo_update_result){.changed = true};
        return mongo_update_upsert(compiled, match, &input, &new_id, f->arena,
                                   &ret_result->document, err);
    }
    assert_true(has(of, "before", &value));
    input.document = value.document;
    if (match) {
        assert_ok(mongo_match_position(match, &value, &f->context, &holds, &input.position, err),
                  err);
        assert_true(holds);
    }
    return mongo_update_apply(compiled, &input, f->arena, ret_result, err);
}

static void member_is(struct fixture *f, struct slice of, const char *name, struct slice got)
{
    struct document_value expected;

    if (has(of, name, &expected) && !slice_equal(expected.document, got))
        fail_msg("%s of %s is %s", name, shown(f->arena, of), shown(f->arena, got));
}

static void documents_become_what_the_cases_say(void **state)
{
    struct fixture *f = *state;
    struct document_iter iter;
    size_t count = 0;

    document_iter_init(&iter, f->cases);
    while (document_iter_next(&iter)) {
        struct slice of = iter.value.document;
        struct mongo_update_result result;
        struct document_value value;
        struct error err;

        if (has(of, "code", &value))
            continue;
        if (!run(f, of, &result, &err))
            fail_msg("%s fails: %s", shown(f->arena, of), err.message);
        if (has(of, "same", &value) == result.changed)
            fail_msg("%s changes it to %s", shown(f->arena, of), shown(f->arena, result.document));
        member_is(f, of, "after", result.document);
        member_is(f, of, "updated", result.updated_fields);
        member_is(f, of, "removed", result.removed_fields);
        member_is(f, of, "truncated", result.truncated_arrays);
        count++;
    }
    assert_true(count > 100);
}

static void wrong_updates_are_refused_as_the_cases_say(void **state)
{
    struct fixture *f = *state;
    struct document_iter iter;
    size_t count = 0;

    document_iter_init(&iter, f->cases);
    while (document_iter_next(&iter)) {
        struct slice of = iter.value.document;
        struct mongo_update_result result;
        struct document_value code, text;
        char name[MONGO_CODE_NAME_SIZE];
        struct error err;

        if (!has(of, "code", &code))
            continue;
        if (run(f, of, &result, &err))
            fail_msg("%s gives %s", shown(f->arena, of), shown(f->arena, result.document));
        if (mongo_error_code(&err) != code.int32)
            fail_msg("%s fails with %d: %s", shown(f->arena, of), mongo_error_code(&err),
                     err.message);
        if (has(of, "message", &text))
            assert_contains(err.message, arena_text(f->arena, text.text));
        if (has(of, "codeName", &text))
            assert_slice_equal(slice_of_text(mongo_error_name(&err, name)), text.text);
        count++;
    }
    assert_true(count > 40);
}

static bool apply(struct fixture *f, const char *before, const char *update,
                  struct mongo_update_result *ret_result, struct error *err)
{
    struct query_build build = {.arena = f->arena};
    struct document_value value =
        document_object(extended_document(f->arena, slice_of_text(update)));
    struct mongo_update_input input = now;
    const struct mongo_update *compiled;

    input.context = &f->context;
    input.document = extended_document(f->arena, slice_of_text(before));
    return mongo_update_compile(&value, NULL, &build, &compiled, err) &&
           mongo_update_apply(compiled, &input, f->arena, ret_result, err);
}

static void a_document_that_becomes_too_deep_is_refused(void **state)
{
    struct fixture *f = *state;
    CLEANUP(buf_done) struct buf update;
    struct mongo_update_result result;
    struct error err;

    buf_init(&update, BUF_DEFAULT_MAX);
    BUF_APPEND(&update, "{\"$set\":{\"a");
    for (int i = 0; i < 190; i++)
        BUF_APPEND(&update, ".a");
    BUF_APPEND(&update, "\":1}}");
    buf_append_byte(&update, 0);
    assert_fails(apply(f, "{\"_id\":1}", (const char *)update.data, &result, &err), &err,
                 ERROR_TOO_DEEP);
    assert_int_equal(mongo_error_code(&err), MONGO_OVERFLOW);
}

static void a_document_that_becomes_too_large_is_refused(void **state)
{
    struct fixture *f = *state;
    struct query_build build = {.arena = f->arena};
    struct mongo_update_input input = now;
    const struct mongo_update *compiled;
    struct mongo_update_result result;
    CLEANUP(buf_done) struct buf buf;
    struct document_value update, text;
    struct error err;
    size_t begin, inner;

    text = document_string(slice_of(arena_alloc_zero(f->arena, MONGO_DOCUMENT_BYTES_MAX),
                                    MONGO_DOCUMENT_BYTES_MAX - 100));
    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_append_int32(&buf, SLICE("_id"), 1);
    document_append(&buf, SLICE("t"), &text);
    document_end(&buf, begin);
    input.document = arena_copy(f->arena, buf_slice(&buf));
    input.context = &f->context;
    buf_clear(&buf);
    text.text.len = 200;
    begin = document_begin(&buf);
    inner = document_append_object_begin(&buf, SLICE("$set"));
    document_append(&buf, SLICE("u"), &text);
    document_end(&buf, inner);
    document_end(&buf, begin);
    update = document_object(buf_slice(&buf));
    assert_ok(mongo_update_compile(&update, NULL, &build, &compiled, &err), &err);
    assert_false(mongo_update_apply(compiled, &input, f->arena, &result, &err));
    assert_int_equal(mongo_error_code(&err), 17419);
}

static void the_document_before_stays_as_it_was(void **state)
{
    struct fixture *f = *state;
    struct mongo_update_result result;
    struct error err;

    assert_ok(apply(f, "{\"_id\":1,\"a\":{\"b\":[1,2]}}",
                    "{\"$push\":{\"a.b\":3},\"$set\":{\"a.c\":1}}", &result, &err),
              &err);
    assert_slice_equal(slice_of_text(shown(f->arena, result.document)),
                       SLICE("{\"_id\":1,\"a\":{\"b\":[1,2,3],\"c\":1}}"));
    assert_slice_equal(slice_of_text(shown(f->arena, result.updated_fields)),
                       SLICE("{\"a.b.2\":3,\"a.c\":1}"));
}

/* Beyond some thirty fields they are found by hash. */
static void objects_of_many_fields_are_changed_by_name(void **state)
{
    struct fixture *f = *state;
    CLEANUP(buf_done) struct buf before;
    CLEANUP(buf_done) struct buf update;
    CLEANUP(buf_done) struct buf after;
    struct mongo_update_result result;
    struct error err;

    buf_init(&before, BUF_DEFAULT_MAX);
    buf_init(&update, BUF_DEFAULT_MAX);
    buf_init(&after, BUF_DEFAULT_MAX);
    BUF_APPEND(&before, "{\"_id\":1,\"a\":{\"z\":0");
    BUF_APPEND(&update, "{\"$unset\":{\"a.z\":1");
    BUF_APPEND(&after, "{\"_id\":1,\"a\":{");
    for (int i = 0; i < 60; i++) { /* every third goes, the others are changed */
        buf_printf(&before, ",\"f%02d\":%d", i, i);
        if (i % 3 == 0)
            buf_printf(&update, ",\"a.f%02d\":1", i);
    }
    BUF_APPEND(&update, "},\"$set\":{\"b\":1");
    for (int i = 0; i < 100; i++) {
        if (i >= 60 || i % 3) {
            buf_printf(&update, ",\"a.f%02d\":%d", i, 2 * i);
            buf_printf(&after, "%s\"f%02d\":%d", i == 1 ? "" : ",", i, 2 * i);
        }
    }
    BUF_APPEND(&before, "}}");
    BUF_APPEND(&update, "}}");
    BUF_APPEND(&after, "},\"b\":1}");
    buf_append_byte(&before, 0);
    buf_append_byte(&update, 0);
    assert_ok(apply(f, (const char *)before.data, (const char *)update.data, &result, &err), &err);
    assert_slice_equal(slice_of_text(shown(f->arena, result.document)), buf_slice(&after));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_become_what_the_cases_say),
        cmocka_unit_test(wrong_updates_are_refused_as_the_cases_say),
        cmocka_unit_test(a_document_that_becomes_too_deep_is_refused),
        cmocka_unit_test(a_document_that_becomes_too_large_is_refused),
        cmocka_unit_test(the_document_before_stays_as_it_was),
        cmocka_unit_test(objects_of_many_fields_are_changed_by_name),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
