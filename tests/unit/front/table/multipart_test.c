#include "front/table/multipart.h"

#include "support/check.h"

static int setup(void **state)
{
    *state = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

static const struct slice type = SLICE("multipart/mixed; charset=x; boundary=\"b\"");

#define CHANGESET "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n"
#define LONE "--b\r\nContent-Type: application/http\r\n\r\nGET /t HTTP/1.1\r\n\r\n"
#define PART "--c\r\ncontent-type: application/http\r\n\r\n"

static void requests_are_taken_apart(void **state)
{
    struct table_multipart multipart;
    struct error err;

    assert_ok(table_multipart_read(type,
                                   SLICE("preamble\r\n" CHANGESET PART
                                         "POST http://h/t HTTP/1.1\r\nA: 1\r\nb:2\r\n\r\n\r\n"
                                         "{\"x\":1}\r\n" PART
                                         "DELETE /t(k) HTTP/1.1\r\nIf-Match: *\r\n\r\n\r\n"
                                         "--c--\r\n--b--\r\n"),
                                   *state, &multipart, &err),
              &err);
    assert_true(multipart.changeset);
    assert_int_equal(multipart.count, 2);
    assert_slice_equal(multipart.parts[0].method, SLICE("POST"));
    assert_slice_equal(multipart.parts[0].target, SLICE("http://h/t"));
    assert_int_equal(multipart.parts[0].header_count, 2);
    assert_slice_equal(multipart.parts[0].headers[1].value, SLICE("2"));
    assert_slice_equal(multipart.parts[0].body, SLICE("{\"x\":1}"));
    assert_slice_equal(multipart.parts[1].method, SLICE("DELETE"));
    assert_int_equal(multipart.parts[1].body.len, 0);
}

static void a_body_may_hold_what_looks_like_a_boundary(void **state)
{
    struct table_multipart multipart;
    struct error err;

    assert_ok(table_multipart_read(type,
                                   SLICE("--b\nContent-Type: multipart/mixed;boundary=c\n\n"
                                         "--c\nContent-Type: application/http\n\n"
                                         "POST /t HTTP/1.1\n\n{\"x\":\"--c\"}\n--cd\n--c--\n--b--"),
                                   *state, &multipart, &err),
              &err);
    assert_int_equal(multipart.count, 1);
    assert_slice_equal(multipart.parts[0].body, SLICE("{\"x\":\"--c\"}\n--cd"));
}

static void a_query_stands_alone(void **state)
{
    struct table_multipart multipart;
    struct error err;

    assert_ok(table_multipart_read(type,
                                   SLICE("--b\r\nContent-Type: application/http\r\n\r\n"
                                         "GET /t() HTTP/1.1\r\n\r\n--b--"),
                                   *state, &multipart, &err),
              &err);
    assert_false(multipart.changeset);
    assert_slice_equal(multipart.parts[0].target, SLICE("/t()"));
}

static void what_is_broken_is_refused(void **state)
{
    static const char *const bodies[] = {
        "",
        "--b",
        "--b--",
        "--b\r\n\r\n--b--",
        CHANGESET "--b--",
        CHANGESET "--c--\r\n--b--",
        CHANGESET PART "GET\r\n--c--\r\n--b--",
        CHANGESET PART "GET /t HTTP/1.1\r\nbroken\r\n\r\n--c--\r\n--b--",
        CHANGESET PART "GET /t HTTP/1.1\r\n\r\n--b--",
        CHANGESET "--c\r\ncontent-type: text/plain\r\n\r\nGET /t HTTP/1.1\r\n\r\n--c--\r\n--b--",
        LONE LONE "--b--",
    };
    struct table_multipart multipart;
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
        assert_fails(table_multipart_read(type, slice_of_text(bodies[i]), *state, &multipart, &err),
                     &err, ERROR_BAD_REQUEST);
    assert_fails(
        table_multipart_read(SLICE("multipart/mixed"), SLICE("--b--"), *state, &multipart, &err),
        &err, ERROR_BAD_REQUEST);
    assert_fails(table_multipart_read(SLICE("text/plain; boundary=b"), SLICE("--b--"), *state,
                                      &multipart, &err),
                 &err, ERROR_BAD_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(requests_are_taken_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(a_body_may_hold_what_looks_like_a_boundary, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_query_stands_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_broken_is_refused, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
