/* Crashes under load: the load program is killed at random moments, or its disk fails, and then
 * the store is opened again and looked at. Every acknowledged batch must be there, whole; of the
 * others, each is there whole or not at all. */
#include "base/arena.h"
#include "engine/engine.h"
#include "fault/load.h"
#include "fault/trial.h"
#include "partition/counters.h"
#include "support/check.h"

#include <sys/wait.h>

/* --- Looking for damage ---------------------------------------------------------------------- */

static void entry_check(struct trial *trial, const struct engine_entry *entry)
{
    uint32_t client = bytes_get_be32(entry->key.data + 1);
    uint32_t batch = bytes_get_be32(entry->key.data + 5);
    uint8_t expected[LOAD_VALUE_LEN];

    assert_int_equal(entry->key.len, LOAD_KEY_LEN);
    assert_true(client < TRIAL_CLIENTS && batch < TRIAL_BATCHES_MAX);
    load_value(client, batch, expected);
    assert_slice_equal(entry->value, slice_of(expected, sizeof expected));
    trial->whole[client][batch]++;
}

static void entries_check(struct trial *trial, struct engine *engine)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_range range = {.min = SLICE("e"), .max = SLICE("f")};
    struct engine_entry entry;
    struct error err;

    assert_ok(engine_iterator_new(engine, NULL, LOAD_PARTITION, range, false, ENGINE_READ_ANY,
                                  &iterator, &err),
              &err);
    for (;;) {
        assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
        if (entry.found == ENGINE_ABSENT)
            return;
        entry_check(trial, &entry);
    }
}

/* All or nothing, and all that was acknowledged. Returns how many batches there are. */
static uint64_t batches_check(struct trial *trial, uint32_t client, uint32_t *ret_last)
{
    uint64_t present = 0;

    *ret_last = UINT32_MAX;
    for (uint32_t n = 0; n < trial->next; n++) {
        uint32_t found = trial->whole[client][n];

        if (found != 0 && found != LOAD_ENTRIES)
            fail_msg("client %u, batch %u: %u of %d entries", client, n, found, LOAD_ENTRIES);
        if (found) {
            present++;
            *ret_last = n;
        }
    }
    return present;
}

static void last_check(struct engine *engine, uint32_t client, uint32_t last, struct arena *arena)
{
    uint8_t key[LOAD_KEY_LEN], expected[LOAD_VALUE_LEN];
    struct engine_value value;
    struct error err;

    load_key('l', client, 0, 0, key);
    assert_ok(engine_get(engine, NULL, LOAD_PARTITION, slice_of(key, sizeof key), ENGINE_READ_ANY,
                         arena, &value, &err),
              &err);
    if (last == UINT32_MAX) {
        assert_int_equal(value.found, ENGINE_ABSENT);
        return;
    }
    load_value(client, last, expected);
    assert_slice_equal(value.bytes, slice_of(expected, sizeof expected));
}

static uint64_t counter_read(struct engine *engine, struct arena *arena)
{
    int64_t numbers[COUNTER_NUMBERS] = {0};
    struct engine_value value;
    struct error err;

    assert_ok(engine_get(engine, NULL, LOAD_PARTITION, SLICE(LOAD_COUNTER_KEY), ENGINE_READ_ANY,
                         arena, &value, &err),
              &err);
    if (value.found == ENGINE_FOUND)
        assert_ok(counter_decode(value.bytes, numbers, &err), &err);
    return (uint64_t)numbers[0];
}

/* Acknowledged numbers are noted as they come, so a gap between them is seen as well. */
static void acknowledged_check(struct trial *trial, const uint32_t before[TRIAL_CLIENTS],
                               uint32_t first)
{
    for (uint32_t client = 0; client < TRIAL_CLIENTS; client++)
        for (uint32_t n = first; n < trial->acknowledged[client]; n++)
            if (trial->acknowledged[client] > before[client] &&
                trial->whole[client][n] != LOAD_ENTRIES)
                fail_msg("client %u, batch %u was acknowledged and is lost", client, n);
}

static void store_check(struct trial *trial, const uint32_t before[TRIAL_CLIENTS], uint32_t first)
{
    CLEANUP(engine_close) struct engine *engine = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    uint64_t present = 0;
    struct error err;

    assert_ok(engine_open(slice_of_text(trial->url), &(struct engine_options){0}, &engine, &err),
              &err);
    for (uint32_t client = 0; client < TRIAL_CLIENTS; client++)
        trial->whole[client] =
            memset(ARENA_ARRAY(arena, uint32_t, trial->next), 0, trial->next * sizeof(uint32_t));
    entries_check(trial, engine);
    acknowledged_check(trial, before, first);
    for (uint32_t client = 0; client < TRIAL_CLIENTS; client++) {
        uint32_t last;

        present += batches_check(trial, client, &last);
        last_check(engine, client, last, arena);
    }
    assert_int_equal(counter_read(engine, arena), present);
}

/* --- The trials ------------------------------------------------------------------------------ */

enum { ROUNDS = 100 };

/* How many rounds there are of something that has so many every day: ORRERY_TEST_ROUNDS is for
 * kill -9, which has ROUNDS, and others have as much more. */
static unsigned rounds_of(unsigned every_day)
{
    const char *given = getenv("ORRERY_TEST_ROUNDS");
    uint64_t rounds = ROUNDS;

    if (given && (!slice_to_uint64(slice_of_text(given), &rounds) || !rounds || rounds > 1000000))
        fail_msg("ORRERY_TEST_ROUNDS is not a number from 1 to 1000000");
    return (unsigned)((every_day * rounds + ROUNDS - 1) / ROUNDS);
}

static void killed_in_rounds(unsigned rounds)
{
    CLEANUP(trial_done) struct trial trial;

    trial_init(&trial, store_check);
    for (unsigned round = 0; round < rounds; round++)
        (void)trial_round(&trial, (struct trial_fault){0},
                          1 + (int64_t)random_below(&trial.random, 40));
    print_message("# %llu batches acknowledged in %u rounds\n",
                  (unsigned long long)trial.total_acknowledged, rounds);
    assert_true(trial.total_acknowledged >= rounds);
}

/* Each store is looked at whole after every round, so now and then there is a new one. */
static void kill_9_loses_nothing_acknowledged_in_100_rounds(void **state UNUSED)
{
    for (unsigned left = rounds_of(ROUNDS); left; left -= MIN(left, (unsigned)ROUNDS))
        killed_in_rounds(MIN(left, (unsigned)ROUNDS));
}

static void cut_in_rounds(unsigned rounds)
{
    CLEANUP(trial_done) struct trial trial;
    unsigned cuts = 0;

    trial_init(&trial, store_check);
    trial_make(&trial);
    for (unsigned round = 0; round < rounds; round++) {
        /* Early events are the opening of the store itself. */
        struct trial_fault cut = {"cut", 1 + random_below(&trial.random, round % 3 ? 200 : 20)};
        int status = trial_round(&trial, cut, 5000);

        cuts += WIFEXITED(status) && WEXITSTATUS(status) == 99;
    }
    print_message("# %llu batches acknowledged, %u cuts\n",
                  (unsigned long long)trial.total_acknowledged, cuts);
    assert_true(cuts * 6 >= rounds * 5);
    assert_true(trial.total_acknowledged > rounds);
}

static void power_cuts_lose_nothing_acknowledged_in_60_rounds(void **state UNUSED)
{
    enum { CUTS = 60 };

    for (unsigned left = rounds_of(CUTS); left; left -= MIN(left, (unsigned)CUTS))
        cut_in_rounds(MIN(left, (unsigned)CUTS));
}

static void a_failing_disk_stops_writes_and_loses_nothing(void **state UNUSED)
{
    CLEANUP(trial_done) struct trial trial;

    trial_init(&trial, store_check);
    trial_make(&trial);
    for (int round = 0; round < 10; round++)
        (void)trial_round(
            &trial, (struct trial_fault){"error", 20 + random_below(&trial.random, 100)}, 5000);
    assert_true(trial.rounds_with_error >= 5);
}

static void a_full_disk_stops_writes_and_loses_nothing(void **state UNUSED)
{
    CLEANUP(trial_done) struct trial trial;

    trial_init(&trial, store_check);
    trial_make(&trial);
    for (int round = 0; round < 10; round++)
        (void)trial_round(
            &trial, (struct trial_fault){"full", 20 + random_below(&trial.random, 100)}, 5000);
    assert_true(trial.rounds_with_error >= 5);
}

static void a_slow_disk_only_makes_larger_groups(void **state UNUSED)
{
    CLEANUP(trial_done) struct trial trial;

    trial_init(&trial, store_check);
    trial_make(&trial);
    (void)trial_round(&trial, (struct trial_fault){"slow", 1}, 400);
    assert_int_equal(trial.rounds_with_error, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kill_9_loses_nothing_acknowledged_in_100_rounds),
        cmocka_unit_test(power_cuts_lose_nothing_acknowledged_in_60_rounds),
        cmocka_unit_test(a_failing_disk_stops_writes_and_loses_nothing),
        cmocka_unit_test(a_full_disk_stops_writes_and_loses_nothing),
        cmocka_unit_test(a_slow_disk_only_makes_larger_groups),
    };

    trial_programs(argc, argv);
    return cmocka_run_group_tests_name("crashes", tests, NULL, NULL);
}
