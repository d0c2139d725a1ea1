#include "net/address.h"

#include "support/check.h"

static void addresses_read_and_print_alike(void **state UNUSED)
{
    static const struct {
        const char *text, *printed;
        uint16_t port;
    } cases[] = {
        {"127.0.0.1:8081", "127.0.0.1:8081", 8081}, {"[::1]:8081", "[::1]:8081", 8081},
        {"[::]:65535", "[::]:65535", 65535},        {"0.0.0.0:0", "0.0.0.0:0", 0},
        {"*:10255", "0.0.0.0:10255", 10255},        {"localhost:1", "127.0.0.1:1", 1},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[NET_ADDRESS_TEXT_SIZE];
        struct net_address address;
        struct error err;

        assert_ok(net_address_parse(slice_of_text(cases[i].text), &address, &err), &err);
        net_address_text(&address, text);
        assert_string_equal(text, cases[i].printed);
        assert_int_equal(net_address_port(&address), cases[i].port);
    }
}

static void anything_else_is_refused_with_its_name(void **state UNUSED)
{
    static const char *const cases[] = {
        "",       "8081",        "127.0.0.1",     "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
        "::1:80", "[::1:80",     "[]:80",         "example:80", "127.0.0.1:80x",   "1.2.3:80",
        ":8081",  "[1.2.3.4]:1", "127.0.0.1 :80",
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct net_address address;
        struct error err;

        assert_fails(net_address_parse(slice_of_text(cases[i]), &address, &err), &err,
                     ERROR_ADDRESS);
        assert_contains(err.message, cases[i]);
    }
}

static void an_unknown_address_prints_as_such(void **state UNUSED)
{
    char text[NET_ADDRESS_TEXT_SIZE];

    net_address_host(&(struct net_address){0}, text);
    assert_string_equal(text, "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_read_and_print_alike),
        cmocka_unit_test(anything_else_is_refused_with_its_name),
        cmocka_unit_test(an_unknown_address_prints_as_such),
    };
    return cmocka_run_group_tests_name("net/address", tests, NULL, NULL);
}
