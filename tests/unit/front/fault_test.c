#include "front/fault.h"

#include "support/check.h"

static void assert_hidden(const char *text, const char *expected)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    assert_slice_equal(front_paths_hide(slice_of_text(text), arena), slice_of_text(expected));
}

static void paths_are_hidden_up_to_their_blank_or_quote(void **state UNUSED)
{
    assert_hidden("node \"far\" is down (the server does not answer)",
                  "node \"far\" is down (the server does not answer)");
    assert_hidden("opening \"/var/lib/my data/LOCK\": in use", "opening \"(path)\": in use");
    assert_hidden("while appending to file: /data/000012.sst: no space left",
                  "while appending to file: (path) no space left");
    assert_hidden("connection on socket \"/run/pg/.s.5432\" failed (data/x)",
                  "connection on socket \"(path)\" failed ((path))");
    assert_hidden("node \"a\" and \"b\" and /c", "node \"a\" and \"b\" and (path)");
}

static const char *told(struct front_faults *faults, enum error_code code, const char *message)
{
    static char text[240];
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct front_services services = {.clock = &clock_system, .faults = faults};
    struct error err;
    struct slice slice;

    error_set(&err, code, "%s", message);
    slice = front_fault_tell(&services, &err, "id", arena);
    (void)snprintf(text, sizeof text, "%.*s", SLICE_ARG(slice));
    return text;
}

static void a_failed_store_tells_nothing_of_itself(void **state UNUSED)
{
    static const enum error_code codes[] = {ERROR_STORE_IO, ERROR_STORE_FULL, ERROR_STORE_CORRUPT,
                                            ERROR_SYSTEM, ERROR_SPILL};
    struct front_faults faults = {0};

    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        assert_string_equal(told(&faults, codes[i], "writing \"/data/x\": no space"),
                            error_face(codes[i])->meaning);
    assert_string_equal(told(&faults, ERROR_NODE_DOWN, "node \"a\" is down (/data/x)"),
                        "node \"a\" is down ((path))");
    assert_int_equal(atomic_load(&faults.left_out), 5); /* one line a second */
}

static void what_the_client_did_wrong_is_told_in_full(void **state UNUSED)
{
    struct front_faults faults = {0};

    assert_string_equal(told(&faults, ERROR_BAD_REQUEST, "the path \"/a/b\" is none"),
                        "the path \"/a/b\" is none");
    assert_string_equal(told(&faults, ERROR_NOT_SUPPORTED, "a/b"), "a/b");
    assert_int_equal(atomic_load(&faults.logged_ms), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_hidden_up_to_their_blank_or_quote),
        cmocka_unit_test(a_failed_store_tells_nothing_of_itself),
        cmocka_unit_test(what_the_client_did_wrong_is_told_in_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
