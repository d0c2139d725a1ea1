/* Transactions over several partitions on a real store that is killed, or whose disk fails: all of
 * what was acknowledged is there and told, and nothing by halves. */
#include "fault/transfers.h"
#include "fault/trial.h"
#include "support/check.h"

#include <sys/wait.h>

static void store_check(struct trial *trial, const uint32_t before[TRIAL_CLIENTS], uint32_t first)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct transfer *transfers;
    struct test_space test;
    struct engine *engine;
    struct error err;
    size_t count, lost = 0;
    bool *told;

    assert_ok(engine_open(slice_of_text(trial->url), &(struct engine_options){0}, &engine, &err),
              &err);
    test_space_init(&test, engine, &transfer_options);
    transfers = transfers_check(&test, arena, &count);
    told = arena_alloc_zero(arena, (size_t)TRIAL_CLIENTS * (trial->next + 1));
    for (size_t i = 0; i < count; i++) {
        assert_true(transfers[i].client < TRIAL_CLIENTS && transfers[i].n < trial->next);
        told[(size_t)transfers[i].client * trial->next + transfers[i].n] = true;
    }
    for (uint32_t client = 0; client < TRIAL_CLIENTS; client++)
        for (uint32_t n = first;
             trial->acknowledged[client] > before[client] && n < trial->acknowledged[client]; n++)
            lost += !told[(size_t)client * trial->next + n];
    assert_int_equal(lost, 0);
    test_space_done(&test);
}

static void kill_9_leaves_whole_transactions_in_40_rounds(void **state UNUSED)
{
    CLEANUP(trial_done) struct trial trial;

    trial_init(&trial, store_check);
    for (int round = 0; round < 40; round++)
        (void)trial_round(&trial, (struct trial_fault){0},
                          1 + (int64_t)random_below(&trial.random, 40));
    print_message("# %llu transactions acknowledged\n",
                  (unsigned long long)trial.total_acknowledged);
    assert_true(trial.total_acknowledged > 40);
}

static void power_cuts_leave_whole_transactions_in_40_rounds(void **state UNUSED)
{
    CLEANUP(trial_done) struct trial trial;
    unsigned cuts = 0;

    trial_init(&trial, store_check);
    trial_make(&trial);
    for (int round = 0; round < 40; round++) {
        struct trial_fault cut = {"cut", 1 + random_below(&trial.random, round % 3 ? 200 : 20)};
        int status = trial_round(&trial, cut, 5000);

        cuts += WIFEXITED(status) && WEXITSTATUS(status) == 99;
    }
    print_message("# %llu transactions acknowledged, %u cuts\n",
                  (unsigned long long)trial.total_acknowledged, cuts);
    assert_true(cuts >= 30);
}

static void a_failing_disk_leaves_whole_transactions(void **state UNUSED)
{
    CLEANUP(trial_done) struct trial trial;

    trial_init(&trial, store_check);
    trial_make(&trial);
    for (int round = 0; round < 10; round++)
        (void)trial_round(&trial,
                          (struct trial_fault){round % 2 ? "error" : "full",
                                               20 + random_below(&trial.random, 100)},
                          5000);
    assert_true(trial.rounds_with_error >= 5);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kill_9_leaves_whole_transactions_in_40_rounds),
        cmocka_unit_test(power_cuts_leave_whole_transactions_in_40_rounds),
        cmocka_unit_test(a_failing_disk_leaves_whole_transactions),
    };

    trial_programs(argc, argv);
    return cmocka_run_group_tests_name("crashes of transactions", tests, NULL, NULL);
}
