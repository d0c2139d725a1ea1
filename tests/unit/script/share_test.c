#include "script/share.h"

#include "support/check.h"

static struct share_party *open_as(struct share *share, const char *account, const char *database)
{
    struct script_party who = {.account = slice_of_text(account),
                               .database = slice_of_text(database)};

    return share_open(share, &who);
}

static void nobody_has_all(void **state UNUSED)
{
    for (uint32_t total = 2; total < 70; total++)
        for (uint32_t n = 1; n < 80; n++) {
            assert_in_range(share_of(total, n), 1, total - 1);
            if (n <= total)
                assert_true(share_of(total, n) * n + n >= total - total / 4 - 1);
        }
    assert_int_equal(share_of(1, 1), 1);
    assert_int_equal(share_of(8, 1), 6);
    assert_int_equal(share_of(8, 2), 4);
    assert_int_equal(share_of(8, 3), 3);
}

/* Takes processes until it may not have another. */
static uint32_t take_all(struct share *share, struct share_party *party, uint32_t total)
{
    uint32_t taken = 0;

    while (share_allows_process(share, party, false, total)) {
        share_add_process(party, false, 1);
        taken++;
    }
    return taken;
}

static void accounts_and_then_their_databases_share(void **state UNUSED)
{
    struct share share = {0};
    struct share_party *a1 = open_as(&share, "a", "1"), *a2, *b1;

    assert_int_equal(take_all(&share, a1, 8), 5); /* of the 6 that the account may have */
    a2 = open_as(&share, "a", "2");
    assert_int_equal(take_all(&share, a2, 8), 1); /* the account has its 6 */
    b1 = open_as(&share, "b", "1");
    assert_int_equal(share.accounts, 2);
    assert_true(share_compare(b1, a2) < 0);
    assert_true(share_compare(a2, a1) < 0);
    assert_true(take_all(&share, b1, 8) >= 2);
    while (a1->busy)
        share_add_process(a1, false, -1);
    assert_int_equal(take_all(&share, a1, 8), 2); /* half of the half that its account may have */
    while (a1->busy)
        share_add_process(a1, false, -1);
    share_add_process(a2, false, -1);
    while (b1->busy)
        share_add_process(b1, false, -1);
    share_close(&share, a1);
    share_close(&share, a2);
    share_close(&share, b1);
    assert_null(share.parties);
    assert_int_equal(share.accounts, 0);
}

static void a_script_waiting_for_its_own_function_is_let_through_once(void **state UNUSED)
{
    struct share share = {0};
    struct share_party *party = open_as(&share, "a", "1");

    assert_int_equal(take_all(&share, party, 2), 1);
    assert_true(share_allows_process(&share, party, true, 2));
    share_add_process(party, true, 1);
    assert_false(share_allows_process(&share, party, true, 2));
    assert_false(share_allows_process(&share, party, false, 2));
    share_add_process(party, true, -1);
    share_add_process(party, false, -1);
    share_close(&share, party);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_has_all),
        cmocka_unit_test(accounts_and_then_their_databases_share),
        cmocka_unit_test(a_script_waiting_for_its_own_function_is_let_through_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
