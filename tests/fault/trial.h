/* Trial: a load program that is killed at random moments, or whose disk fails, again and again on
 * the same store, and what it said until then. */
#pragma once

#include "base/random.h"
#include "support/scratch.h"

#include <stdint.h>
#include <sys/types.h>

enum { TRIAL_CLIENTS = 8, TRIAL_BATCHES_MAX = 1 << 20 };

struct trial {
    const char *load_program, *disk_faults;
    struct scratch scratch;
    char url[300];
    struct random random;
    uint64_t seed;
    uint32_t next;                        /* first batch number of the next round */
    uint32_t acknowledged[TRIAL_CLIENTS]; /* highest number, + 1 */
    uint32_t *whole[TRIAL_CLIENTS];       /* per client: entries found of each batch */
    uint64_t total_acknowledged;
    unsigned rounds_with_error;
    void (*check)(struct trial *trial, const uint32_t before[TRIAL_CLIENTS], uint32_t first);
};

/* How the disk under the load is to fail; kind NULL: not at all. */
struct trial_fault {
    const char *kind;
    uint64_t at;
};

/* The programs are the first two arguments of a test. check looks at the store after each round:
 * before is what had been acknowledged, first the first batch of the round. */
void trial_programs(int argc, char **argv);
void trial_init(struct trial *trial,
                void (*check)(struct trial *trial, const uint32_t before[TRIAL_CLIENTS],
                              uint32_t first));
void trial_done(struct trial *trial);
CLEANUP_VALUE_FN(struct trial, trial_done)

/* Runs the load until it ends, or is killed so long after its first word (0: never), and looks.
 * Returns how it ended, as wait says it. */
int trial_round(struct trial *trial, struct trial_fault fault, int64_t kill_after_ms);

/* The first batch ever written makes the store. */
void trial_make(struct trial *trial);
