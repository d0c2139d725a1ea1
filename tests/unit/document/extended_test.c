/* Extended JSON: names that occur again are told apart, and mean the same document when they come
 * back. */
#include "document/extended.h"

#include "support/check.h"

/* An object with an int32 for each name, its place. */
static struct slice object_of(struct arena *arena, const char *const *names, size_t count)
{
    CLEANUP(buf_done) struct buf out;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    for (size_t i = 0; i < count; i++)
        document_append_int32(&out, slice_of_text(names[i]), (int32_t)i);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

static struct slice shown_of(struct arena *arena, struct slice object)
{
    const struct document_value value = document_object(object);
    CLEANUP(buf_done) struct buf out;
    struct document_value shown;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_extended_append(&out, SLICE("v"), &value);
    document_end(&out, begin);
    assert_true(document_find(buf_slice(&out), SLICE("v"), &shown));
    return arena_copy(arena, shown.document);
}

static void shown_and_read_back(const char *const *names, const char *const *expected, size_t count)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice object = object_of(arena, names, count), shown = shown_of(arena, object);
    struct document_value value = document_object(shown), back;
    struct error err;

    assert_true(slice_equal(shown, object_of(arena, expected, count)));
    assert_ok(document_extended_read(&value, arena, &back, &err), &err);
    assert_true(slice_equal(back.document, object));
}

static void names_that_occur_again_have_their_number(void **state UNUSED)
{
    static const char *const names[] = {"a", "b", "a", "", "a", ""};
    static const char *const expected[] = {"a", "b", "$again2:a", "", "$again3:a", "$again2:"};

    shown_and_read_back(names, expected, ARRAY_LEN(names));
}

static void names_that_look_like_a_number_have_a_one_before_them(void **state UNUSED)
{
    static const char *const names[] = {
        "$again2:a", "a",        "a",          "$again2:a", "$again1:$again2:a",
        "$again",    "$again:a", "$again02:a", "$again9"};
    static const char *const expected[] = {"$again1:$again2:a",
                                           "a",
                                           "$again2:a",
                                           "$again2:$again2:a",
                                           "$again1:$again1:$again2:a",
                                           "$again",
                                           "$again:a",
                                           "$again02:a",
                                           "$again9"};

    shown_and_read_back(names, expected, ARRAY_LEN(names));
}

static void many_names_are_told_apart_as_few_are(void **state UNUSED)
{
    enum { COUNT = 40 };
    const char *names[COUNT], *expected[COUNT];
    char texts[COUNT][8], numbered[COUNT][24];

    for (int i = 0; i < COUNT; i++) {
        snprintf(texts[i], sizeof texts[i], "n%d", i % 30);
        snprintf(numbered[i], sizeof numbered[i], i < 30 ? "n%d" : "$again2:n%d", i % 30);
        names[i] = texts[i];
        expected[i] = numbered[i];
    }
    shown_and_read_back(names, expected, COUNT);
}

static void numbers_that_are_not_their_own_are_refused(void **state UNUSED)
{
    static const char *const bad[][2] = {
        {"$again2:a", "b"}, {"a", "$again3:a"}, {"$again2:a", "a"}, {"a", "$again1:b"}};
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct document_value value = document_object(object_of(arena, bad[i], 2)), read;
        struct error err;

        assert_false(document_extended_read(&value, arena, &read, &err));
        assert_int_equal(err.code, ERROR_BAD_REQUEST);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_occur_again_have_their_number),
        cmocka_unit_test(names_that_look_like_a_number_have_a_one_before_them),
        cmocka_unit_test(many_names_are_told_apart_as_few_are),
        cmocka_unit_test(numbers_that_are_not_their_own_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
