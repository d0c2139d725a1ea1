#include "engine/pg/pg_private.h"
#include "support/check.h"

static void passwords_are_masked_wherever_they_stand(void **state UNUSED)
{
    static const struct {
        const char *url, *name;
    } cases[] = {
        {"postgresql://host/db", "postgresql://host/db"},
        {"postgresql://user@host/db", "postgresql://user@host/db"},
        {"postgresql://user:pw@host:5432/db", "postgresql://user:***@host:5432/db"},
        {"postgres://user:p%40w@host", "postgres://user:***@host"},
        {"postgresql://user:a@b:c@host/db", "postgresql://user:***@host/db"},
        {"postgresql://host/db?password=pw&connect_timeout=3",
         "postgresql://host/db?password=***&connect_timeout=3"},
        {"postgresql://u:one@host/db?sslmode=require&sslpassword=two",
         "postgresql://u:***@host/db?sslmode=require&sslpassword=***"},
        {"postgresql://u:@host/db", "postgresql://u:@host/db"},
        {"postgresql://host/a@b:c", "postgresql://host/a@b:c"},
        {"postgresql:", "postgresql:"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(buf_done) struct buf name;

        buf_init(&name, BUF_DEFAULT_MAX);
        pg_url_mask(slice_of_text(cases[i].url), &name);
        assert_slice_equal(buf_slice(&name), slice_of_text(cases[i].name));
    }
}

static void a_message_becomes_one_line_without_the_password(void **state UNUSED)
{
    char line[80];

    pg_url_scrub(SLICE("postgresql://u:p%40w@host"),
                 "bad \"p%40w\" or p@w:\n\tIs the server running?\n", line, sizeof line);
    assert_string_equal(line, "bad \"\" or : Is the server running?");
    pg_url_scrub(SLICE_NONE, "two\n\nlines.\n", line, sizeof line);
    assert_string_equal(line, "two lines");
    pg_url_scrub(SLICE_NONE, "0123456789", line, 5);
    assert_string_equal(line, "0123");
}

static void options_of_ours_are_taken_out(void **state UNUSED)
{
    static const struct {
        const char *url, *plain;
        bool replicated;
    } cases[] = {
        {"postgresql://h/d", "postgresql://h/d", false},
        {"postgresql://a,b/d?replicated=require", "postgresql://a,b/d", true},
        {"postgresql://a,b/d?replicated=prefer&sslmode=require",
         "postgresql://a,b/d?sslmode=require", false},
        {"postgresql:///d?host=/x&replicated=require&port=1", "postgresql:///d?host=/x&port=1",
         true},
    };
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(buf_done) struct buf plain;
        bool replicated;

        buf_init(&plain, BUF_DEFAULT_MAX);
        assert_ok(pg_url_options(slice_of_text(cases[i].url), &plain, &replicated, &err), &err);
        assert_slice_equal(buf_slice(&plain), slice_of_text(cases[i].plain));
        assert_int_equal(replicated, cases[i].replicated);
    }
    CLEANUP(buf_done) struct buf plain;
    bool unset;

    buf_init(&plain, BUF_DEFAULT_MAX);
    assert_fails(pg_url_options(SLICE("postgresql://h/d?replicated="), &plain, &unset, &err), &err,
                 ERROR_STORE_URL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passwords_are_masked_wherever_they_stand),
        cmocka_unit_test(a_message_becomes_one_line_without_the_password),
        cmocka_unit_test(options_of_ours_are_taken_out),
    };
    return cmocka_run_group_tests_name("engine/pg/url", tests, NULL, NULL);
}
