/* The migrator from within: migrator.c has the steps and the thread, migrator_request.c what is
 * begun, by hand or by limits, migrator_directory.c edits of directories, migrator_rekey.c other
 * partition keys, migrator_promotion.c keys with containers of their own, migrator_shares.c what
 * becomes of the throughput, migrator_heat.c what heat asks for, migrator_spread.c keys over
 * several partitions, migrator_decide.c the decisions.
 */
#pragma once

#include "base/bell.h"
#include "load/profile.h"
#include "migration/migrator.h"
#include "migration/mover.h"

/* A migration as this process carries it out. What must outlive the process is in the catalogue
 * and in the targets. */
struct migrator_run {
    uint32_t id; /* migration_id: tells it from every other, before or after it */
    struct migrator_progress progress; /* under lock */
    struct mover *mover;               /* NULL: to be made, anew after a failure */
    struct container *container;       /* a reference, of a rekey: what its mover borrows */
    struct partition_map *map;         /* a reference: what the sources are in, once fenced */
    struct partition_map *map_before;  /* a reference: the same, before a fence was opened again */
    unsigned rounds;                   /* of catching up */
    unsigned pressure; /* on writers meanwhile: they have a 2^pressure-th of the time; 0: all of it
                        */
    unsigned rounds_pressed; /* at the highest */
    struct mover_race race;  /* when it was last compared */
    unsigned failures_fenced;
    int64_t begun_ms;      /* monotonic */
    int64_t not_before_ms; /* throttled, or after a failure */
    bool seen;             /* in this round */
    struct migrator_run *next;
};

/* A partition that could not be split. */
struct migrator_whole {
    uint32_t partition;
    int64_t until_ms;
};

enum { MIGRATOR_WHOLES = 64 };

/* How large a partition was when it was last looked at. Its LSN tells whether it may be another
 * size by now. */
struct migrator_size {
    uint32_t partition; /* 0: an empty place; no partition of a container has it */
    bool seen;          /* in this look */
    uint64_t lsn, bytes;
};

/* A hash table of them, open addressing; grown, and cleared of partitions that are gone, by looks.
 */
struct migrator_sizes {
    struct migrator_size *places;
    size_t capacity, count; /* capacity: 0 or a power of two */
};

/* What was there when nothing had to be done, so that looking again would find the same. */
struct migrator_calm {
    bool valid;
    uint64_t commits; /* of all nodes */
};

/* One that is over, as it is remembered. */
struct migrator_ended {
    struct arena *arena; /* owns the ids; NULL: an empty place */
    struct migrator_outcome outcome;
};

struct migrator {
    struct migrator_options options;
    struct catalogue *catalogue;
    const struct clock *clock;

    struct sleeper sleeper;
    bool waiting;           /* its thread's: for something that rings no bell */
    struct mutex step_lock; /* held for a step: who cancels must not meet one */
    int64_t look_at_ms;     /* under step_lock, as the next two */
    struct migrator_whole wholes[MIGRATOR_WHOLES]; /* round and round */
    size_t whole_next;
    struct migrator_sizes sizes;
    struct migrator_calm calm;
    uint64_t sizes_read; /* counters that had to be read, for tests */

    struct mutex lock; /* under it: the rest, for a moment; taken after step_lock */
    bool paused;
    struct migrator_run *runs; /* changed under both locks */
    struct migrator_statistics statistics;
    struct migrator_ended ended[MIGRATOR_OUTCOMES]; /* round and round */
    size_t ended_count;
    uint32_t obstacle_own; /* the own container of the promotion that was last tried in vain */
    char obstacle[MIGRATOR_ERROR_MAX];
    struct thread thread;
};

/* What is remembered of a migration: migrator_outcome.c. */
void migrator_outcome_note(struct migrator *migrator, const struct migrator_run *run,
                           const struct container *container, bool cancelled);
void migrator_outcomes_free(struct migrator *migrator);

/* Sizes: migrator_sizes.c. The place of a partition, made if it is new; until the next call. */
struct migrator_size *migrator_size_of(struct migrator_sizes *sizes, uint32_t partition);
/* Forgets those that were not seen since the last sweep. */
void migrator_sizes_sweep(struct migrator_sizes *sizes);
void migrator_sizes_free(struct migrator_sizes *sizes);

/* The containers that something is to be done with, each with a reference; in the arena. Trees of
 * states are not held meanwhile: they hold old maps. */
struct container **migrator_containers(struct migrator *migrator,
                                       bool (*is_wanted)(const struct container *container),
                                       struct arena *arena, size_t *ret_count);

/* Carries on promotions in preparation, and drops what others left: migrator_promotion.c. Under
 * step_lock. */
void migrator_promotions_step(struct migrator *migrator, bool *busy);

/* Splits what limits ask for. Under step_lock. */
NODISCARD bool migrator_look(struct migrator *migrator, bool *ret_begun, struct error *err);

/* A reroute without targets found that it needs them: begins one with targets in its place. False
 * with the error as it is: it is not that. Under step_lock. */
NODISCARD bool migrator_supersede(struct migrator *migrator, const struct container *container,
                                  struct error *err);

/* Begins what a request says, and wakes the thread. The throughput is divided by migrator_divide;
 * alike: evenly over all partitions there will be, but for what each spends. */
NODISCARD bool migrator_begin(struct migrator *migrator, const struct container *container,
                              const struct migration_request *request, bool alike,
                              struct error *err);

/* Gives the request the shares of all spans there will be; in the arena (migrator_shares.c). */
NODISCARD bool migrator_divide(const struct migrator *migrator, const struct container *container,
                               struct migration_request *request, bool alike, struct arena *arena,
                               struct error *err);

/* The heat of a span, as far as it is known. */
NODISCARD bool migrator_profile(const struct migrator *migrator, const struct container *container,
                                const struct partition_span *span, struct arena *arena,
                                struct load_profile *ret_profile, bool *ret_known,
                                struct error *err);

/* There is something to do. */
void migrator_wake(struct migrator *migrator);
