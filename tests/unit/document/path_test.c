#include "document/path.h"

#include "support/check.h"
#include "support/documents.h"

static struct slice canonical(struct arena *arena, const char *text, enum document_path_use use)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_path path;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    assert_ok(document_path_parse(slice_of_text(text), use, arena, &path, &err), &err);
    document_path_append(&path, &buf);
    return arena_copy(arena, buf_slice(&buf));
}

static void paths_print_in_their_canonical_form(void **state UNUSED)
{
    static const struct {
        const char *text, *printed;
    } samples[] = {
        {"/a", "/a"},
        {"/a/b_2/0", "/a/b_2/0"},
        {"/\"a\"/\"b c\"", "/a/\"b c\""},
        {"/\"\"", "/\"\""},
        {"/\"a/b\"/\"q\\\"\\\\\"", "/\"a/b\"/\"q\\\"\\\\\""},
        {"/n\xC3\xA4me", "/n\xC3\xA4me"},
        {"/'a'/'l\" 1*()'/'le/vel2'/'it\\'s'", "/a/\"l\\\" 1*()\"/\"le/vel2\"/\"it's\""},
        {"/*", "/*"},
        {"/", "/*"},
        {"/?", "/?"},
        {"/a/?", "/a/?"},
        {"/a/*", "/a/*"},
        {"/a/[]/b/?", "/a/[]/b/?"},
        {"/\"_etag\"/?", "/_etag/?"},
        {"/events/[]/{name,  at/day }/?", "/events/[]/{name, at/day}/?"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        struct slice first = canonical(arena, samples[i].text, DOCUMENT_PATH_INDEX);

        assert_slice_equal(first, slice_of_text(samples[i].printed));
        assert_slice_equal(canonical(arena, arena_text(arena, first), DOCUMENT_PATH_INDEX), first);
    }
}

static void names_in_keys_have_dashes_without_quotes(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_path path;
    struct error err;

    assert_slice_equal(canonical(arena, "/a/first-name", DOCUMENT_PATH_KEY),
                       SLICE("/a/\"first-name\""));
    assert_fails(
        document_path_parse(SLICE("/first-name/?"), DOCUMENT_PATH_INDEX, arena, &path, &err), &err,
        ERROR_BAD_REQUEST);
    assert_contains(err.message, "needs quotes");
}

static void keys_take_properties_alone(void **state UNUSED)
{
    static const struct {
        const char *text, *message;
    } samples[] = {
        {"", "position '0'"},         {"id", "position '0'"},      {"/", "position '1'"},
        {"/a/", "position '3'"},      {"//a", "position '1'"},     {"/a/*", "position '3'"},
        {"/*", "position '1'"},       {"/a/?", "position '3'"},    {"/a/[]", "position '3'"},
        {"/{a,b}/?", "position '1'"}, {"/a b", "position '2'"},    {"/'a", "position '3'"},
        {"/\"a", "position '3'"},     {"/\"a\"b", "position '4'"}, {"/\"a\\n\"", "position '4'"},
        {"/a\"", "position '2'"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        struct document_path path;
        struct error err;

        assert_fails(document_path_parse(slice_of_text(samples[i].text), DOCUMENT_PATH_KEY, arena,
                                         &path, &err),
                     &err, ERROR_BAD_REQUEST);
        assert_contains(err.message, samples[i].message);
    }
    assert_slice_equal(canonical(arena, "/a/\"b c\"", DOCUMENT_PATH_KEY), SLICE("/a/\"b c\""));
}

static void index_paths_end_where_they_end(void **state UNUSED)
{
    static const char *const texts[] = {
        "/a/*/b",    "/a/?/b",   "/a/**",      "/a/[",    "/a/[0]",
        "/{a,b}",    "/{a,b}/*", "/{a,b}/c/?", "/{}/?",   "/{a,{b}}/?",
        "/{a,[]}/?", "/{a/*}/?", "/{a",        "/{a,}/?", "/a//b",
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct document_path path;
        struct error err;

        if (document_path_parse(slice_of_text(texts[i]), DOCUMENT_PATH_INDEX, arena, &path, &err))
            fail_msg("%s was taken", texts[i]);
        assert_int_equal(err.code, ERROR_BAD_REQUEST);
    }
}

static void length_and_nesting_are_limited(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf buf;
    struct document_path path;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    for (int i = 0; i < DOCUMENT_PATH_SEGMENTS_MAX; i++)
        BUF_APPEND(&buf, "/a");
    assert_ok(document_path_parse(buf_slice(&buf), DOCUMENT_PATH_KEY, arena, &path, &err), &err);
    BUF_APPEND(&buf, "/a");
    assert_fails(document_path_parse(buf_slice(&buf), DOCUMENT_PATH_KEY, arena, &path, &err), &err,
                 ERROR_BAD_REQUEST);
    buf_clear(&buf);
    BUF_APPEND(&buf, "/");
    for (int i = 0; i < DOCUMENT_PATH_BYTES_MAX; i++)
        BUF_APPEND(&buf, "{");
    assert_fails(document_path_parse(buf_slice(&buf), DOCUMENT_PATH_INDEX, arena, &path, &err),
                 &err, ERROR_BAD_REQUEST);
}

static void find_gives_the_value_at_the_path(void **state UNUSED)
{
    static const struct {
        const char *path, *value; /* NULL: nothing there */
    } samples[] = {
        {"/id", "1"},          {"/a/b", "\"deep\""},   {"/a/\"x y\"", "2"}, {"/list/0", "10"},
        {"/list/2/z", "3"},    {"/list/3", NULL},      {"/list/z", NULL},   {"/missing", NULL},
        {"/id/x", NULL},       {"/a/missing", NULL},   {"/none", "null"},   {"/none/x", NULL},
        {"/a/0", "\"named\""}, {"/\"\"", "\"empty\""},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice document = document_of(
        arena, "{\"id\":1,\"list\":[10,20,{\"z\":3}],\"a\":{\"c\":[],\"b\":\"deep\",\"x y\":2,"
               "\"0\":\"named\"},\"none\":null,\"\":\"empty\"}");

    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        struct document_path path;
        struct document_value value, expected;
        struct error err;

        assert_ok(document_path_parse(slice_of_text(samples[i].path), DOCUMENT_PATH_KEY, arena,
                                      &path, &err),
                  &err);
        if (document_path_find(&path, document, &value) != (samples[i].value != NULL))
            fail_msg("%s was %sfound", samples[i].path, samples[i].value ? "not " : "");
        if (!samples[i].value)
            continue;
        expected = value_of(arena, samples[i].value);
        assert_int_equal(value.type, expected.type);
        if (value.type == DOCUMENT_STRING)
            assert_slice_equal(value.text, expected.text);
        else if (value.type == DOCUMENT_INT32)
            assert_int_equal(value.int32, expected.int32);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_print_in_their_canonical_form),
        cmocka_unit_test(names_in_keys_have_dashes_without_quotes),
        cmocka_unit_test(keys_take_properties_alone),
        cmocka_unit_test(index_paths_end_where_they_end),
        cmocka_unit_test(length_and_nesting_are_limited),
        cmocka_unit_test(find_gives_the_value_at_the_path),
    };
    return cmocka_run_group_tests_name("document/path", tests, NULL, NULL);
}
