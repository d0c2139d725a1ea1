#include "net/owner.h"

#include "support/check.h"

static void a_number_finds_the_same_owner_again(void **state UNUSED)
{
    struct memory_meter server;
    CLEANUP(net_owners_free) struct net_owners *owners = NULL;
    struct net_owner *first;

    memory_meter_init(&server, NULL, 1000);
    owners = net_owners_new(&server, 100);
    first = net_owners_find(owners, 7);
    for (uint64_t i = 0; i < 5000; i++)
        assert_non_null(net_owners_find(owners, i));
    assert_ptr_equal(net_owners_find(owners, 7), first);
    assert_ptr_not_equal(net_owners_find(owners, 7 + 1024), first);
}

static void what_an_owner_holds_is_part_of_what_the_server_holds(void **state UNUSED)
{
    struct memory_meter server;
    CLEANUP(net_owners_free) struct net_owners *owners = NULL;
    struct memory_meter *one, *other;

    memory_meter_init(&server, NULL, 1000);
    owners = net_owners_new(&server, 100);
    one = net_owner_memory(net_owners_find(owners, 1));
    other = net_owner_memory(net_owners_find(owners, 2));
    assert_true(memory_meter_change(one, 0, 100));
    assert_false(memory_meter_change(one, 100, 101));
    assert_true(memory_meter_change(other, 0, 100));
    assert_int_equal(memory_meter_used(&server), 200);
    memory_meter_set(one, 100, 0);
    memory_meter_set(other, 100, 0);
    assert_null(net_owner_memory(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_finds_the_same_owner_again),
        cmocka_unit_test(what_an_owner_holds_is_part_of_what_the_server_holds),
    };
    return cmocka_run_group_tests_name("net/owner", tests, NULL, NULL);
}
