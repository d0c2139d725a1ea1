/* Crashes under load: the load program is killed at random moments, or its disk fails, and then
 * the store is opened again and looked at. Every acknowledged batch must be there, whole; of the
 * others, each is there whole or not at all. */
#include "base/arena.h"
#include "base/random.h"
#include "engine/engine.h"
#include "fault/load.h"
#include "partition/counters.h"
#include "support/check.h"
#include "support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLIENTS = 8, BATCHES_MAX = 1 << 20 };

static const char *load_program, *disk_faults;

struct trial {
    struct scratch scratch;
    char url[300];
    struct random random;
    uint64_t seed;
    uint32_t next;                  /* first batch number of the next round */
    uint32_t acknowledged[CLIENTS]; /* highest number, + 1 */
    uint32_t *whole[CLIENTS];       /* per client: entries found of each batch */
    uint64_t total_acknowledged;
    unsigned rounds_with_error;
};

static void trial_init(struct trial *trial)
{
    const char *seed = getenv("ORRERY_TEST_SEED");

    *trial = (struct trial){.next = 0};
    random_secret(&trial->seed, sizeof trial->seed);
    if (seed && !slice_to_uint64(slice_of_text(seed), &trial->seed))
        fail_msg("ORRERY_TEST_SEED is not a number");
    print_message("# seed %llu\n", (unsigned long long)trial->seed);
    random_seed(&trial->random, trial->seed);
    scratch_init(&trial->scratch);
    snprintf(trial->url, sizeof trial->url, "rocksdb:%s", scratch_path(&trial->scratch, "node"));
}

static void trial_done(struct trial *trial)
{
    scratch_done(&trial->scratch);
}
CLEANUP_VALUE_FN(struct trial, trial_done)

/* How the disk under the load is to fail; kind NULL: not at all. */
struct fault {
    const char *kind;
    uint64_t at;
};

static void child_exec(struct trial *trial, struct fault fault, int out)
{
    char first[16], at[24], seed[24];

    snprintf(first, sizeof first, "%u", trial->next);
    snprintf(at, sizeof at, "%llu", (unsigned long long)fault.at);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)random_next(&trial->random) >> 1);
    if (fault.kind) {
        setenv("LD_PRELOAD", disk_faults, 1);
        setenv("DISK_FAULTS_ROOT", scratch_path(&trial->scratch, "node"), 1);
        setenv("DISK_FAULTS_KIND", fault.kind, 1);
        setenv("DISK_FAULTS_AT", at, 1);
        setenv("DISK_FAULTS_SEED", seed, 1);
        /* AddressSanitizer wants to be the first library and cannot know why it is not. */
        setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1);
    }
    dup2(out, STDOUT_FILENO);
    execl(load_program, load_program, trial->url, "8", first, (char *)NULL);
    _exit(127);
}

static pid_t child_start(struct trial *trial, struct fault fault, int *ret_out)
{
    int ends[2];
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        child_exec(trial, fault, ends[1]);
    close(ends[1]);
    *ret_out = ends[0];
    return child;
}

static void line_take(struct trial *trial, const char *line, uint32_t *highest)
{
    unsigned client, n;

    if (sscanf(line, "%u %u", &client, &n) == 2) {
        assert_true(client < CLIENTS);
        trial->acknowledged[client] = n + 1;
        trial->total_acknowledged++;
        *highest = MAX(*highest, n);
    } else if (strncmp(line, "error ", 6) == 0) {
        trial->rounds_with_error++;
    } else {
        fail_msg("the load said \"%s\"", line);
    }
}

/* Reads what the child says, and kills it after kill_after_ms (0: never) counted from its first
 * word. The last line may be cut short; the one before the cut is whole. */
static void child_follow(struct trial *trial, pid_t child, int out, int64_t kill_after_ms)
{
    char text[65536];
    size_t len = 0;
    int64_t deadline = 0;
    uint32_t highest = trial->next;

    for (;;) {
        int64_t now = clock_monotonic_ms();
        struct pollfd ready = {.fd = out, .events = POLLIN};
        ssize_t got;
        char *end;

        if (deadline && now >= deadline) {
            kill(child, SIGKILL);
            deadline = 0;
            kill_after_ms = 0;
        }
        if (poll(&ready, 1, deadline ? (int)(deadline - now) : -1) == 0)
            continue;
        got = read(out, text + len, sizeof text - 1 - len);
        if (got <= 0)
            break;
        if (kill_after_ms && !deadline)
            deadline = clock_monotonic_ms() + kill_after_ms;
        len += (size_t)got;
        text[len] = '\0';
        for (char *line = text; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = '\0';
            line_take(trial, line, &highest);
            if (!strchr(end + 1, '\n')) {
                len -= (size_t)(end + 1 - text);
                memmove(text, end + 1, len);
                break;
            }
        }
    }
    close(out);
    trial->next = highest + 10;
}

static int round_run(struct trial *trial, struct fault fault, int64_t kill_after_ms)
{
    int out, status;
    pid_t child = child_start(trial, fault, &out);

    child_follow(trial, child, out, kill_after_ms);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* --- Looking for damage ---------------------------------------------------------------------- */

static void entry_check(struct trial *trial, const struct engine_entry *entry)
{
    uint32_t client = bytes_get_be32(entry->key.data + 1);
    uint32_t batch = bytes_get_be32(entry->key.data + 5);
    uint8_t expected[LOAD_VALUE_LEN];

    assert_int_equal(entry->key.len, LOAD_KEY_LEN);
    assert_true(client < CLIENTS && batch < BATCHES_MAX);
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
static void acknowledged_check(struct trial *trial, const uint32_t before[CLIENTS], uint32_t first)
{
    for (uint32_t client = 0; client < CLIENTS; client++)
        for (uint32_t n = first; n < trial->acknowledged[client]; n++)
            if (trial->acknowledged[client] > before[client] &&
                trial->whole[client][n] != LOAD_ENTRIES)
                fail_msg("client %u, batch %u was acknowledged and is lost", client, n);
}

static void store_check(struct trial *trial, const uint32_t before[CLIENTS], uint32_t first)
{
    CLEANUP(engine_close) struct engine *engine = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    uint64_t present = 0;
    struct error err;

    assert_ok(engine_open(slice_of_text(trial->url), &(struct engine_options){0}, &engine, &err),
              &err);
    for (uint32_t client = 0; client < CLIENTS; client++)
        trial->whole[client] =
            memset(ARENA_ARRAY(arena, uint32_t, trial->next), 0, trial->next * sizeof(uint32_t));
    entries_check(trial, engine);
    acknowledged_check(trial, before, first);
    for (uint32_t client = 0; client < CLIENTS; client++) {
        uint32_t last;

        present += batches_check(trial, client, &last);
        last_check(engine, client, last, arena);
    }
    assert_int_equal(counter_read(engine, arena), present);
}

static void round_and_check(struct trial *trial, struct fault fault, int64_t kill_after_ms)
{
    uint32_t before[CLIENTS], first = trial->next;

    memcpy(before, trial->acknowledged, sizeof before);
    round_run(trial, fault, kill_after_ms);
    store_check(trial, before, first);
}

/* The first batch ever written makes the store. */
static void store_make(struct trial *trial)
{
    round_and_check(trial, (struct fault){0}, 20);
}

/* --- The trials ------------------------------------------------------------------------------ */

static void kill_9_loses_nothing_acknowledged_in_100_rounds(void **state UNUSED)
{
    CLEANUP(trial_done) struct trial trial;

    trial_init(&trial);
    for (int round = 0; round < 100; round++)
        round_and_check(&trial, (struct fault){0}, 1 + (int64_t)random_below(&trial.random, 40));
    print_message("# %llu batches acknowledged\n", (unsigned long long)trial.total_acknowledged);
    assert_true(trial.total_acknowledged > 100);
}

static void power_cuts_lose_nothing_acknowledged_in_60_rounds(void **state UNUSED)
{
    CLEANUP(trial_done) struct trial trial;
    unsigned cuts = 0;

    trial_init(&trial);
    store_make(&trial);
    for (int round = 0; round < 60; round++) {
        uint32_t before[CLIENTS], first = trial.next;
        /* Early events are the opening of the store itself. */
        struct fault cut = {"cut", 1 + random_below(&trial.random, round % 3 ? 200 : 20)};
        int status;

        memcpy(before, trial.acknowledged, sizeof before);
        status = round_run(&trial, cut, 5000);
        cuts += WIFEXITED(status) && WEXITSTATUS(status) == 99;
        store_check(&trial, before, first);
    }
    print_message("# %llu batches acknowledged, %u cuts\n",
                  (unsigned long long)trial.total_acknowledged, cuts);
    assert_true(cuts >= 50);
    assert_true(trial.total_acknowledged > 100);
}

static void a_failing_disk_stops_writes_and_loses_nothing(void **state UNUSED)
{
    CLEANUP(trial_done) struct trial trial;

    trial_init(&trial);
    store_make(&trial);
    for (int round = 0; round < 10; round++)
        round_and_check(&trial, (struct fault){"error", 20 + random_below(&trial.random, 100)},
                        5000);
    assert_true(trial.rounds_with_error >= 5);
}

static void a_full_disk_stops_writes_and_loses_nothing(void **state UNUSED)
{
    CLEANUP(trial_done) struct trial trial;

    trial_init(&trial);
    store_make(&trial);
    for (int round = 0; round < 10; round++)
        round_and_check(&trial, (struct fault){"full", 20 + random_below(&trial.random, 100)},
                        5000);
    assert_true(trial.rounds_with_error >= 5);
}

static void a_slow_disk_only_makes_larger_groups(void **state UNUSED)
{
    CLEANUP(trial_done) struct trial trial;

    trial_init(&trial);
    store_make(&trial);
    round_and_check(&trial, (struct fault){"slow", 1}, 400);
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

    if (argc != 3) {
        fprintf(stderr, "usage: %s LOAD_PROGRAM DISK_FAULTS_LIBRARY\n", argv[0]);
        return 2;
    }
    load_program = argv[1];
    disk_faults = argv[2];
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("crashes", tests, NULL, NULL);
}
