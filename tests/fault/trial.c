#include "fault/trial.h"

#include "base/clock.h"
#include "support/check.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *load_program, *disk_faults;

void trial_programs(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s LOAD_PROGRAM DISK_FAULTS_LIBRARY\n", argv[0]);
        exit(2);
    }
    load_program = argv[1];
    disk_faults = argv[2];
    signal(SIGPIPE, SIG_IGN);
}

void trial_init(struct trial *trial,
                void (*check)(struct trial *trial, const uint32_t before[TRIAL_CLIENTS],
                              uint32_t first))
{
    const char *seed = getenv("ORRERY_TEST_SEED");

    *trial =
        (struct trial){.load_program = load_program, .disk_faults = disk_faults, .check = check};
    random_secret(&trial->seed, sizeof trial->seed);
    if (seed && !slice_to_uint64(slice_of_text(seed), &trial->seed))
        fail_msg("ORRERY_TEST_SEED is not a number");
    print_message("# seed %llu\n", (unsigned long long)trial->seed);
    random_seed(&trial->random, trial->seed);
    scratch_init(&trial->scratch);
    snprintf(trial->url, sizeof trial->url, "rocksdb:%s", scratch_path(&trial->scratch, "node"));
}

void trial_done(struct trial *trial)
{
    scratch_done(&trial->scratch);
}

static void child_exec(struct trial *trial, struct trial_fault fault, int out)
{
    char first[16], at[24], seed[24];

    snprintf(first, sizeof first, "%u", trial->next);
    snprintf(at, sizeof at, "%llu", (unsigned long long)fault.at);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)random_next(&trial->random) >> 1);
    if (fault.kind) {
        setenv("LD_PRELOAD", trial->disk_faults, 1);
        setenv("DISK_FAULTS_ROOT", scratch_path(&trial->scratch, "node"), 1);
        setenv("DISK_FAULTS_KIND", fault.kind, 1);
        setenv("DISK_FAULTS_AT", at, 1);
        setenv("DISK_FAULTS_SEED", seed, 1);
        /* AddressSanitizer wants to be the first library and cannot know why it is not. */
        setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1);
    }
    dup2(out, STDOUT_FILENO);
    execl(trial->load_program, trial->load_program, trial->url, "8", first, (char *)NULL);
    _exit(127);
}

static pid_t child_start(struct trial *trial, struct trial_fault fault, int *ret_out)
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
        assert_true(client < TRIAL_CLIENTS);
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

static int round_run(struct trial *trial, struct trial_fault fault, int64_t kill_after_ms)
{
    int out, status;
    pid_t child = child_start(trial, fault, &out);

    child_follow(trial, child, out, kill_after_ms);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

int trial_round(struct trial *trial, struct trial_fault fault, int64_t kill_after_ms)
{
    uint32_t before[TRIAL_CLIENTS], first = trial->next;
    int status;

    memcpy(before, trial->acknowledged, sizeof before);
    status = round_run(trial, fault, kill_after_ms);
    trial->check(trial, before, first);
    return status;
}

void trial_make(struct trial *trial)
{
    (void)trial_round(trial, (struct trial_fault){0}, 20);
}
