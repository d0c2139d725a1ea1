/* Attempts: who fails too often has to wait, and nobody else. */
#include "support/check.h"

#include "front/mongo/auth/attempts.h"

static struct net_address address_of(const char *text)
{
    struct net_address address;
    struct error err;

    assert_ok(net_address_parse(slice_of_text(text), &address, &err), &err);
    return address;
}

static int setup(void **state)
{
    *state = mongo_attempts_new(1);
    return 0;
}

static int teardown(void **state)
{
    mongo_attempts_free(*state);
    return 0;
}

static void an_address_that_fails_too_often_has_to_wait(void **state)
{
    struct net_address here = address_of("10.0.0.1:1"), there = address_of("10.0.0.2:1");

    for (int i = 0; i < MONGO_ATTEMPTS_ADDRESS; i++) {
        assert_true(mongo_attempts_allow(*state, &here, SLICE("ann"), 1000));
        mongo_attempts_failed(*state, &here, SLICE("ann"), 1000);
    }
    assert_false(mongo_attempts_allow(*state, &here, SLICE("ann"), 1000));
    assert_false(mongo_attempts_allow(*state, &here, SLICE("bob"), 1000));
    assert_true(mongo_attempts_allow(*state, &there, SLICE("ann"), 1000));
    /* the port is another for every connection */
    here.v4.sin_port = 7;
    assert_false(mongo_attempts_allow(*state, &here, SLICE("ann"), 1000));
    assert_true(mongo_attempts_allow(*state, &here, SLICE("ann"), 1000 + MONGO_ATTEMPTS_BACK_MS));
}

static void success_makes_up_for_failures(void **state)
{
    struct net_address here = address_of("10.0.0.1:1");

    for (int i = 0; i < MONGO_ATTEMPTS_ADDRESS; i++)
        mongo_attempts_failed(*state, &here, SLICE("ann"), 1000);
    mongo_attempts_succeeded(*state, &here, SLICE("ann"), 1000);
    assert_true(mongo_attempts_allow(*state, &here, SLICE("ann"), 1000));
    assert_true(mongo_attempts_allow(*state, &here, SLICE("bob"), 1000));
}

static void success_does_not_make_up_for_guesses_at_others(void **state)
{
    struct net_address here = address_of("10.0.0.1:1");

    for (int i = 0; i < MONGO_ATTEMPTS_ADDRESS; i++) {
        mongo_attempts_failed(*state, &here, SLICE("ann"), 1000);
        mongo_attempts_succeeded(*state, &here, SLICE("guesser"), 1000);
    }
    assert_false(mongo_attempts_allow(*state, &here, SLICE("ann"), 1000));
}

static void who_is_known_at_an_address_does_not_wait_for_others_there(void **state)
{
    struct net_address here = address_of("10.0.0.1:1"), there = address_of("10.0.0.2:1");
    int64_t now = 1000;

    mongo_attempts_succeeded(*state, &here, SLICE("ann"), now);
    for (int i = 0; i < 10 * MONGO_ATTEMPTS_ADDRESS; i++)
        mongo_attempts_failed(*state, &here, SLICE("bob"), now);
    assert_true(mongo_attempts_allow(*state, &here, SLICE("ann"), now));
    assert_false(mongo_attempts_allow(*state, &here, SLICE("bob"), now));
    assert_false(mongo_attempts_allow(*state, &here, SLICE("cid"), now));
    /* guesses at its own name count, but its success elsewhere does not matter */
    for (int i = 0; i < MONGO_ATTEMPTS_PAIR; i++)
        mongo_attempts_failed(*state, &here, SLICE("ann"), now);
    assert_false(mongo_attempts_allow(*state, &here, SLICE("ann"), now));
    mongo_attempts_succeeded(*state, &there, SLICE("ann"), now);
    assert_false(mongo_attempts_allow(*state, &here, SLICE("ann"), now));
    now += (int64_t)MONGO_ATTEMPTS_PAIR * MONGO_ATTEMPTS_BACK_MS;
    assert_true(mongo_attempts_allow(*state, &here, SLICE("ann"), now));
    /* and it is not known for ever */
    now = 1000 + MONGO_ATTEMPTS_KNOWN_MS;
    for (int i = 0; i < MONGO_ATTEMPTS_ADDRESS; i++)
        mongo_attempts_failed(*state, &here, SLICE("bob"), now);
    assert_false(mongo_attempts_allow(*state, &here, SLICE("ann"), now));
}

static void a_name_that_many_guess_at_is_closed_to_those_who_failed(void **state)
{
    struct net_address clean = address_of("10.0.0.1:1"), guesser = address_of("10.1.0.0:1");

    for (int i = 0; i < MONGO_ATTEMPTS_NAME; i++) {
        guesser.v4.sin_addr.s_addr = htonl(0x0A010000u + (uint32_t)i);
        mongo_attempts_failed(*state, &guesser, SLICE("ann"), 1000);
    }
    assert_false(mongo_attempts_allow(*state, &guesser, SLICE("ann"), 1000));
    assert_true(mongo_attempts_allow(*state, &guesser, SLICE("somebody else"), 1000));
    assert_true(mongo_attempts_allow(*state, &clean, SLICE("ann"), 1000));
}

static void a_network_of_ipv6_counts_as_one_address(void **state)
{
    struct net_address one = address_of("[2001:db8:1:2::1]:1");
    struct net_address other = address_of("[2001:db8:1:2:ffff::9]:2");
    struct net_address next = address_of("[2001:db8:1:3::1]:1");

    for (int i = 0; i < MONGO_ATTEMPTS_ADDRESS; i++)
        mongo_attempts_failed(*state, &one, SLICE("ann"), 1000);
    assert_false(mongo_attempts_allow(*state, &other, SLICE("ann"), 1000));
    assert_true(mongo_attempts_allow(*state, &next, SLICE("ann"), 1000));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_address_that_fails_too_often_has_to_wait),
        TEST(success_makes_up_for_failures),
        TEST(success_does_not_make_up_for_guesses_at_others),
        TEST(who_is_known_at_an_address_does_not_wait_for_others_there),
        TEST(a_name_that_many_guess_at_is_closed_to_those_who_failed),
        TEST(a_network_of_ipv6_counts_as_one_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
