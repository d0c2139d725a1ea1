#include "front/browser.h"

#include "support/check.h"

static const struct slice names[] = {SLICE("localhost"), SLICE("*.localhost"), SLICE("db.example"),
                                     SLICE("10.0.0.7")};
static const struct front_hosts loopback = {names, ARRAY_LEN(names), false};
static const struct front_hosts anywhere = {names, ARRAY_LEN(names), true};

static void a_host_is_served_by_its_name_in_any_case_and_with_any_port(void **state UNUSED)
{
    static const char *const good[] = {"localhost",  "LOCALHOST:8081", "team-a.localhost:1",
                                       "db.example", "127.0.0.1:8081", "127.1.2.3",
                                       "[::1]:8081", "10.0.0.7:80",    "[::ffff:127.0.0.1]"};

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_true(front_hosts_have(&loopback, slice_of_text(good[i])));
}

static void a_host_that_others_can_lead_here_is_not(void **state UNUSED)
{
    static const char *const bad[] = {"",
                                      ":8081",
                                      "evil.example",
                                      "localhost.evil.example",
                                      "evillocalhost",
                                      "x.db.example",
                                      "0.0.0.0",
                                      "192.0.2.1:8081",
                                      "[2001:db8::1]",
                                      "[::1",
                                      ".localhost.",
                                      "127.0.0.1.evil.example"};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(front_hosts_have(&loopback, slice_of_text(bad[i])));
}

static void an_address_cannot_be_led_elsewhere(void **state UNUSED)
{
    assert_true(front_hosts_have(&anywhere, SLICE("192.0.2.1:8081")));
    assert_true(front_hosts_have(&anywhere, SLICE("[2001:db8::1]")));
    assert_false(front_hosts_have(&anywhere, SLICE("evil.example")));
}

/* A request with one header besides Host. */
static struct net_http_request request_with(struct net_http_header headers[2], const char *name,
                                            const char *value)
{
    headers[0] = (struct net_http_header){SLICE("Host"), SLICE("localhost:8081")};
    headers[1] = (struct net_http_header){slice_of_text(name), slice_of_text(value)};
    return (struct net_http_request){.headers = headers, .header_count = 2};
}

static bool foreign(const char *name, const char *value)
{
    struct net_http_header headers[2];
    struct net_http_request request = request_with(headers, name, value);

    return front_request_is_foreign(&request);
}

static void a_request_is_foreign_if_its_origin_is_another_than_its_host(void **state UNUSED)
{
    assert_false(foreign("User-Agent", "curl"));
    assert_false(foreign("Origin", "http://localhost:8081"));
    assert_false(foreign("Sec-Fetch-Site", "same-origin"));
    assert_false(foreign("Sec-Fetch-Site", "none"));
    assert_true(foreign("Origin", "https://localhost:8081"));
    assert_true(foreign("Origin", "http://localhost:3000"));
    assert_true(foreign("Origin", "null"));
    assert_true(foreign("Origin", ""));
    assert_true(foreign("Sec-Fetch-Site", "cross-site"));
    assert_true(foreign("Sec-Fetch-Site", "same-site"));
}

static bool form(const char *type)
{
    struct net_http_header headers[2];
    struct net_http_request request = request_with(headers, "Content-Type", type);

    return front_request_is_form(&request);
}

static void a_form_is_known_by_its_content_type(void **state UNUSED)
{
    assert_true(form("text/plain;charset=UTF-8"));
    assert_true(form("Application/X-WWW-Form-Urlencoded"));
    assert_true(form("multipart/form-data; boundary=x"));
    assert_false(form("application/json;odata=nometadata"));
    assert_false(form("multipart/mixed; boundary=x"));
    assert_false(form(""));
}

static void origins_are_listed_whole(void **state UNUSED)
{
    struct slice list = SLICE("https://app.example, http://localhost:3000");
    struct error err;

    assert_ok(front_origins_check(list, &err), &err);
    assert_true(front_origin_listed(list, SLICE("https://app.example")));
    assert_true(front_origin_listed(list, SLICE("http://LOCALHOST:3000")));
    assert_false(front_origin_listed(list, SLICE("https://app.example.evil")));
    assert_false(front_origin_listed(list, SLICE("http://app.example")));
    assert_false(front_origin_listed(SLICE(""), SLICE("https://app.example")));
    assert_true(front_origin_listed(SLICE("*"), SLICE("null")));
}

static void what_is_no_origin_is_refused(void **state UNUSED)
{
    static const char *const bad[] = {"app.example", "https://app.example/", "https://",
                                      "https://a.example,,", "://a"};
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_fails(front_origins_check(slice_of_text(bad[i]), &err), &err, ERROR_CONFIGURATION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_is_served_by_its_name_in_any_case_and_with_any_port),
        cmocka_unit_test(a_host_that_others_can_lead_here_is_not),
        cmocka_unit_test(an_address_cannot_be_led_elsewhere),
        cmocka_unit_test(a_request_is_foreign_if_its_origin_is_another_than_its_host),
        cmocka_unit_test(a_form_is_known_by_its_content_type),
        cmocka_unit_test(origins_are_listed_whole),
        cmocka_unit_test(what_is_no_origin_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
