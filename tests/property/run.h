/* Run: one seeded sequence of operations on a world and its model, with faults in between. */
#pragma once

#include "property/model.h"

enum run_kind {
#define RUN_KIND(kind, weight, function) RUN_##kind,
#include "property/kinds.def"
#undef RUN_KIND
    RUN_KINDS
};

enum { RUN_LOG_LINES = 20, RUN_CANDIDATES = 16 };

/* Where the store comes from, and how it is opened again after a crash. */
struct run_store {
    struct engine *(*open)(void *context);
    struct engine *(*reopen)(void *context); /* after a crash; NULL: it lives on, as memory: does */
    void *context;
};

/* The fault that is planned for the present step. */
enum run_fault {
    RUN_NO_FAULT,
    RUN_WRITE_LOST,  /* the write fails and was not done; then a restart */
    RUN_ANSWER_LOST, /* the write was done and says it failed; then a restart */
    RUN_HEALED,      /* either, and the store finds out by itself without a restart */
    RUN_READ_FAILS,
    RUN_STORE_FULL,
};

struct run {
    struct world world;
    struct model *model; /* owned */
    struct random random;
    struct arena *arena; /* of the present step */
    const struct run_store *store;
    uint64_t seed;
    unsigned step;
    char log[RUN_LOG_LINES][400];

    enum run_fault fault;
    bool written;                             /* what becomes of the failing write */
    bool hit;                                 /* the fault was met */
    struct model *candidates[RUN_CANDIDATES]; /* owned: what the store may hold after it */
    size_t candidate_count;

    unsigned counts[RUN_KINDS], crashes;
    unsigned refused[ERROR_CODE_COUNT];
};

void run_init(struct run *run, const struct world_config *config, const struct run_store *store,
              uint64_t seed);
void run_done(struct run *run);

/* One operation and, now and then, a fault with it. */
void run_step(struct run *run);

/* Compares everything. */
void run_check(struct run *run);

/* The power goes: nothing but what is stored stays. */
void run_restart(struct run *run);

/* Ends the test with the seed and the last operations. */
NORETURN void run_fail(struct run *run, const char *format, ...) PRINTF_LIKE(2, 3);

/* Describes the present step in the log. */
void run_log(struct run *run, const char *format, ...) PRINTF_LIKE(2, 3);

/* Adds to that description. */
void run_log_more(struct run *run, const char *format, ...) PRINTF_LIKE(2, 3);

static inline unsigned run_below(struct run *run, unsigned limit)
{
    return (unsigned)random_below(&run->random, limit);
}

/* Was this failure the planned fault? */
bool run_is_fault(const struct run *run, const struct error *err);

/* Compares how a call ended with how it should have. expected ERROR_NONE: the model becomes
 * *after, which is taken over in any case. True: the call did what it should and succeeded. */
bool run_settle(struct run *run, bool ok, const struct error *err, enum error_code expected,
                struct model *after);

/* A read has succeeded, as it should. False: it met the fault. */
bool run_settle_read(struct run *run, bool ok, const struct error *err);
