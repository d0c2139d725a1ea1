#include "server/certificate_names.h"

#include "base/buf.h"
#include "support/check.h"

static bool make(struct slice extra, struct arena *arena, struct certificate_names *ret_names,
                 struct error *err)
{
    const struct certificate_names_source source = {.extra = extra};

    return certificate_names_make(&source, arena, ret_names, err);
}

/* The names as one text. */
static const char *joined(struct arena *arena, const char *extra, const char *host)
{
    const struct certificate_names_source source = {.host = slice_of_text(host),
                                                    .extra = slice_of_text(extra)};
    struct certificate_names names;
    CLEANUP(buf_done) struct buf text;
    struct error err;

    buf_init(&text, BUF_DEFAULT_MAX);
    assert_ok(certificate_names_make(&source, arena, &names, &err), &err);
    for (size_t i = 0; i < names.count; i++) {
        buf_append_text(&text, i > 0 ? " " : "");
        buf_append_slice(&text, names.list[i].text);
    }
    return arena_text(arena, buf_slice(&text));
}

static void a_certificate_is_always_for_this_machine(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    assert_string_equal(joined(arena, "", "box"), "localhost *.localhost 127.0.0.1 ::1 box");
    assert_string_equal(joined(arena, "", ""), "localhost *.localhost 127.0.0.1 ::1");
}

static void a_machine_without_a_proper_name_is_left_out(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    assert_string_equal(joined(arena, "", "my box!"), "localhost *.localhost 127.0.0.1 ::1");
}

static void extra_names_come_in_small_letters_and_once(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    assert_string_equal(joined(arena,
                               " DB.Example , *.db.example,db.example,10.0.0.7, FE80::1 ,"
                               "fe80:0::1,localhost,a_b",
                               "db.example"),
                        "localhost *.localhost 127.0.0.1 ::1 db.example *.db.example 10.0.0.7 "
                        "fe80::1 a_b");
}

static void accounts_are_hosts_below_their_suffix(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct certificate_names_source source = {.account_suffix = SLICE("db.example")};
    struct certificate_names names;
    struct error err;

    assert_ok(certificate_names_make(&source, arena, &names, &err), &err);
    assert_int_equal(names.count, 5);
    assert_slice_equal(names.list[4].text, SLICE("*.db.example"));
    source.account_suffix = SLICE(".db.example");
    assert_fails(certificate_names_make(&source, arena, &names, &err), &err, ERROR_CONFIGURATION);
    assert_contains(err.message, "account.host_suffix");
}

static void addresses_are_known_as_such(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct certificate_names names;
    struct error err;

    assert_ok(make(SLICE("10.0.0.7,db"), arena, &names, &err), &err);
    assert_int_equal(names.list[0].address_len, 0);
    assert_int_equal(names.list[2].address_len, 4);
    assert_int_equal(names.list[3].address_len, 16);
    assert_memory_equal(names.list[4].address, "\x0a\x00\x00\x07", 4);
    assert_int_equal(names.list[5].address_len, 0);
}

static void what_is_no_name_is_refused_by_name(void **state UNUSED)
{
    static const char *const wrong[] = {
        "a b", "a..b", "-a",          "a-",       ".a",          "a.",        "*",     "*.",
        "a.*", "*a.b", "*.*.b",       "1.2.3",    "a,,b",        "300.1.1.1", "[::1]", "a:8081",
        "a,",  ",",    "caf\xc3\xa9", "http://a", "a.example/x", "10.0.0.0/8"};
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct certificate_names names;
        struct error err;

        assert_fails(make(slice_of_text(wrong[i]), arena, &names, &err), &err, ERROR_CONFIGURATION);
        assert_contains(err.message, "tls.names");
    }
}

static void long_names_and_labels_are_refused(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct certificate_names names;
    struct error err;
    char text[256];

    memset(text, 'a', sizeof text);
    assert_ok(make(slice_of(text, 63), arena, &names, &err), &err);
    assert_fails(make(slice_of(text, 64), arena, &names, &err), &err, ERROR_CONFIGURATION);
    for (size_t i = 50; i < sizeof text; i += 50)
        text[i] = '.';
    assert_ok(make(slice_of(text, 253), arena, &names, &err), &err);
    assert_fails(make(slice_of(text, 254), arena, &names, &err), &err, ERROR_CONFIGURATION);
}

static void more_names_than_the_limit_are_refused(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf text;
    struct certificate_names names;
    struct error err;

    buf_init(&text, BUF_DEFAULT_MAX);
    for (int i = 0; i < CERTIFICATE_NAMES_MAX - 4; i++)
        buf_printf(&text, "%sn%d", i > 0 ? "," : "", i);
    assert_ok(make(buf_slice(&text), arena, &names, &err), &err);
    BUF_APPEND(&text, ",one-more");
    assert_fails(make(buf_slice(&text), arena, &names, &err), &err, ERROR_CONFIGURATION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_certificate_is_always_for_this_machine),
        cmocka_unit_test(a_machine_without_a_proper_name_is_left_out),
        cmocka_unit_test(extra_names_come_in_small_letters_and_once),
        cmocka_unit_test(accounts_are_hosts_below_their_suffix),
        cmocka_unit_test(addresses_are_known_as_such),
        cmocka_unit_test(what_is_no_name_is_refused_by_name),
        cmocka_unit_test(long_names_and_labels_are_refused),
        cmocka_unit_test(more_names_than_the_limit_are_refused),
    };
    return cmocka_run_group_tests_name("server/certificate_names", tests, NULL, NULL);
}
