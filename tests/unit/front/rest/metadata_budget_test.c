#include "front/rest/metadata_budget.h"

#include "support/check.h"

static void an_account_that_spent_its_second_waits(void **state UNUSED)
{
    CLEANUP(rest_metadata_budgets_free)
    struct rest_metadata_budgets *budgets = rest_metadata_budgets_new(10);
    struct rest_metadata_ticket ticket;
    int64_t wait_ms = 0;
    struct error err;
    size_t admitted = 0;

    while (rest_metadata_admit(budgets, 1, 200, 5000, &ticket, &wait_ms, &err)) {
        rest_metadata_settle(budgets, &ticket, 200, 5000);
        assert_true(++admitted < 100);
    }
    assert_int_equal(err.code, ERROR_METADATA_THROTTLED);
    assert_int_equal(err.status, 429);
    assert_int_equal(err.substatus, 3210);
    assert_true(wait_ms >= 1 && wait_ms <= 1000);
    assert_true(admitted >= 5);
    assert_ok(rest_metadata_admit(budgets, 2, 200, 5000, &ticket, &wait_ms, &err), &err);
    rest_metadata_settle(budgets, &ticket, 200, 5000);
    assert_ok(rest_metadata_admit(budgets, 1, 200, 5000 + 1000, &ticket, &wait_ms, &err), &err);
    rest_metadata_settle(budgets, &ticket, 200, 6000);
}

static void an_empty_ticket_settles_nothing(void **state UNUSED)
{
    CLEANUP(rest_metadata_budgets_free)
    struct rest_metadata_budgets *budgets = rest_metadata_budgets_new(10);
    struct rest_metadata_ticket ticket = {0}, real;
    struct error err;
    int64_t wait_ms;

    assert_ok(rest_metadata_admit(budgets, 1, 100, 5000, &real, &wait_ms, &err), &err);
    rest_metadata_settle(budgets, &ticket, 1000000, 5000);
    assert_null(ticket.account);
    rest_metadata_settle(budgets, &real, 100, 5000);
    assert_null(real.account);
    rest_metadata_settle(budgets, &real, 1000000, 5000); /* it holds nothing any more */
    assert_ok(rest_metadata_admit(budgets, 1, 100, 5000, &real, &wait_ms, &err), &err);
    rest_metadata_settle(budgets, &real, 100, 5000);
}

static void the_idlest_account_makes_room_and_those_at_work_stay(void **state UNUSED)
{
    static struct rest_metadata_ticket tickets[REST_METADATA_ACCOUNTS_MAX];
    CLEANUP(rest_metadata_budgets_free)
    struct rest_metadata_budgets *budgets = rest_metadata_budgets_new(10);
    struct rest_metadata_ticket more;
    struct error err;
    int64_t wait_ms;

    for (uint32_t i = 0; i < REST_METADATA_ACCOUNTS_MAX; i++)
        assert_ok(rest_metadata_admit(budgets, i, 100, i, &tickets[i], &wait_ms, &err), &err);
    assert_fails(rest_metadata_admit(budgets, 70000, 100, 9000, &more, &wait_ms, &err), &err,
                 ERROR_BUSY);
    rest_metadata_settle(budgets, &tickets[17], 100, 9000);
    assert_ok(rest_metadata_admit(budgets, 70000, 100, 9000, &more, &wait_ms, &err), &err);
    assert_fails(rest_metadata_admit(budgets, 17, 100, 9000, &tickets[17], &wait_ms, &err), &err,
                 ERROR_BUSY);
    rest_metadata_settle(budgets, &more, 100, 9000);
    for (uint32_t i = 0; i < REST_METADATA_ACCOUNTS_MAX; i++)
        rest_metadata_settle(budgets, &tickets[i], 100, 9000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_account_that_spent_its_second_waits),
        cmocka_unit_test(an_empty_ticket_settles_nothing),
        cmocka_unit_test(the_idlest_account_makes_room_and_those_at_work_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
