/* Each step looks at the container as it is in the catalogue by then, and does what comes next. So
 * nothing has to be told when a process was killed, a commit's outcome was not known, or the
 * container was dropped: the next step finds out. After a failure the mover is made anew and reads
 * how far the stores are.
 *
 *     planned      the catalogue has the migration; targets are being made
 *     copying      chunk by chunk, as fast as bytes_per_second allows; writers go on, noted in the
 *                  journals of the sources
 *     catching up  rounds over the journals until one is short (lag_keys)
 *     fenced       writers wait: the rest is caught up with, then the new map is published
 *     dropping     readers of the old map finish; then the sources go
 *
 * Only the step from the fence to the new map is made in one go, because writers wait for it. All
 * others are short, and all migrations take turns in one thread: there are few, they compete for
 * the same disks, and the order of their steps can be played by hand in tests (migrator_round).
 *
 * Writers that are faster than the rounds would never let it come to the fence. They are held while
 * a round runs and get a part of its time behind it, half as much with each level of pressure, so
 * that any lag shrinks; a fence at any lag was weighed, and would make writers wait as long as the
 * lag is. A migration that fails behind its fence FAILURES_FENCED_MAX times is cancelled: waiting
 * writers matter more than it does.
 *
 * A run holds what is not in the catalogue (the mover, the old map, figures). It belongs to the
 * thread that has step_lock; lock is for the list of runs and what others look at. */
#include "catalogue/container_names.h"
#include "catalogue/container_space.h"
#include "catalogue/container_usage.h"
#include "catalogue/migration.h"
#include "migration/migrator_private.h"

enum {
    PAUSE_DEFAULT_MS = 1000,
    IDLE_MS = 15000, /* between looks while nothing happens */
    REST_MS = 20,    /* between looks whether a node has caught up with what it put off */
    LAG_DEFAULT = 512,
    ROUNDS_COMPARED = 16,      /* of catching up, after which they are compared with writers */
    PRESSURE_MAX = 6,          /* on writers that are faster */
    ROUNDS_PRESSED_MAX = 1000, /* at the highest; then the fence comes anyway */
    HOLD_MS = 250,             /* writers at most, in one round */
    FAILURES_FENCED_MAX = 10,  /* then the writers who wait are let go on as before */
    FENCED_RETRY_MS = 100,
    DROP_POLL_MS = 5, /* while the old map is held */
};

static const char *const phase_names[] = {
    [MIGRATOR_PLANNED] = "planned",         [MIGRATOR_COPYING] = "copying",
    [MIGRATOR_CATCHING_UP] = "catching up", [MIGRATOR_FENCED] = "fenced",
    [MIGRATOR_DROPPING] = "dropping",
};

const char *migrator_phase_name(enum migrator_phase phase)
{
    return phase_names[phase];
}

/* --- Runs ------------------------------------------------------------------------------------ */

static uint32_t run_id(const struct container *container)
{
    return migration_id(container_migration(container));
}

static struct migrator_run *run_find(const struct migrator *migrator,
                                     const struct container *container)
{
    struct migrator_run *run = migrator->runs;
    uint32_t id = run_id(container);

    while (run && run->id != id)
        run = run->next;
    return run;
}

/* What is to be copied; not known, it is shown as 0. */
static uint64_t bytes_in_sources(const struct container *container)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t count;
    const struct migration_source *sources =
        migration_sources(container_migration(container), &count);
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        const struct partition_span *span =
            partition_map_find_id(container_map(container), sources[i].id);
        struct container_usage usage;
        struct error err;

        if (span && container_usage_partition(container, span, arena, &usage, &err))
            bytes += usage.bytes;
    }
    return bytes;
}

static struct migrator_run *run_new(struct migrator *migrator, const struct container *container)
{
    struct migrator_run *run = MEMORY_NEW(struct migrator_run);

    run->id = run_id(container);
    run->begun_ms = clock_read_monotonic_ms(migrator->clock);
    run->progress = (struct migrator_progress){
        .id = run->id,
        .kind = migration_kind(container_migration(container)),
        .bytes_total = bytes_in_sources(container),
        .pause_ms = -1,
    };
    WITH_LOCK (&migrator->lock) {
        run->next = migrator->runs;
        migrator->runs = run;
    }
    return run;
}

/* With what it has borrowed. */
static void mover_drop(struct migrator_run *run)
{
    mover_free(TAKE(run->mover));
    container_unref(TAKE(run->container));
}

static void run_free(struct migrator_run *run)
{
    mover_drop(run);
    partition_map_unref(run->map);
    partition_map_unref(run->map_before);
    memory_free(run);
}

/* Those whose container, or migration, is no more. */
static void runs_sweep(struct migrator *migrator)
{
    struct migrator_run *gone = NULL;

    WITH_LOCK (&migrator->lock) {
        struct migrator_run **link = &migrator->runs;

        while (*link) {
            struct migrator_run *run = *link;

            if (run->seen) {
                link = &run->next;
                continue;
            }
            *link = run->next;
            run->next = gone;
            gone = run;
        }
    }
    while (gone) {
        struct migrator_run *next = gone->next;

        run_free(gone);
        gone = next;
    }
}

static void phase_set(struct migrator *migrator, struct migrator_run *run,
                      enum migrator_phase phase)
{
    WITH_LOCK (&migrator->lock)
        run->progress.phase = phase;
}

/* Adds what the mover has done since before. */
static uint64_t figures_add(struct migrator *migrator, struct migrator_run *run,
                            const struct mover_figures *before)
{
    struct mover_figures now = mover_figures(run->mover);
    uint64_t bytes = now.bytes - before->bytes, items = now.items - before->items;

    WITH_LOCK (&migrator->lock) {
        run->progress.bytes += bytes;
        run->progress.items += items;
        run->progress.keys += now.keys - before->keys;
        migrator->statistics.bytes += bytes;
        migrator->statistics.items += items;
    }
    return bytes;
}

/* --- Steps ----------------------------------------------------------------------------------- */

static bool mover_make(struct migrator *migrator, struct migrator_run *run,
                       const struct container *container, struct error *err)
{
    struct item_space space = container_space((struct container *)container, migrator->clock, NULL);
    struct mover_options options = {
        .space = &space,
        .cluster = catalogue_cluster(migrator->catalogue),
        .migration = container_migration(container),
        .definition = container_definition(container),
        .map = container_map(container),
        .chunk_bytes = migrator->options.chunk_bytes,
        .load_bytes = migrator->options.load_bytes,
        .round_keys = migrator->options.round_keys,
    };

    /* What items are made into follows from the definition, which may have been replaced. */
    if (run->mover && run->container &&
        container_definition(run->container) != container_definition(container))
        mover_drop(run);
    if (run->mover)
        return true;
    if (!mover_new(&options, &run->mover, err))
        return false;
    if (run->progress.kind == MIGRATION_REKEY)
        run->container = container_ref((struct container *)container);
    return true;
}

static void pause_note(struct migrator *migrator, struct migrator_run *run, int64_t since_ms)
{
    int64_t pause_ms = clock_read_monotonic_ms(migrator->clock) - since_ms;

    WITH_LOCK (&migrator->lock) {
        run->progress.pause_ms = pause_ms;
        migrator->statistics.pause_ms_last = pause_ms;
        migrator->statistics.pause_ms_max = MAX(migrator->statistics.pause_ms_max, pause_ms);
    }
}

/* Nothing is left to catch up with once a round finds nothing: nobody can write. */
static bool rest_catch_up(struct migrator_run *run, struct error *err)
{
    size_t keys;

    do
        if (!mover_catch_up(run->mover, &keys, err))
            return false;
    while (keys);
    return true;
}

static void conflicts_note(struct migrator *migrator, struct migrator_run *run)
{
    struct mover_conflicts conflicts = mover_conflicts(run->mover);

    WITH_LOCK (&migrator->lock) {
        run->progress.conflicts = conflicts.count;
        run->progress.logical_full = conflicts.logical_full;
    }
}

/* Behind the fence a conflict was found: writers go on under the old keys, and so does the
 * migration when it is settled. Readers may still hold the map from before. */
static bool fence_open(struct migrator *migrator, struct migrator_run *run,
                       const struct container *container, struct error *err)
{
    conflicts_note(migrator, run);
    mover_drop(run);
    if (!catalogue_migration_unfence(migrator->catalogue, container, err))
        return false;
    partition_map_unref(run->map_before);
    run->map_before = TAKE(run->map);
    run->not_before_ms = clock_read_monotonic_ms(migrator->clock) + migrator->options.pause_ms;
    phase_set(migrator, run, MIGRATOR_CATCHING_UP);
    return true;
}

/* Is there anything that keeps a re-key from being published? Then it waits: what is in the way may
 * be resolved meanwhile, and is looked at again. */
static bool rekey_is_blocked(struct migrator *migrator, struct migrator_run *run,
                             const struct container *container, bool *ret_blocked,
                             struct error *err)
{
    struct mover_conflicts conflicts;

    *ret_blocked = false;
    if (run->progress.kind != MIGRATION_REKEY)
        return true;
    if (!mover_count_full(run->mover, err))
        return false;
    conflicts_note(migrator, run);
    conflicts = mover_conflicts(run->mover);
    *ret_blocked = conflicts.count || conflicts.logical_full ||
                   (run->map_before && partition_map_is_shared(run->map_before));
    if (!*ret_blocked) {
        partition_map_unref(TAKE(run->map_before));
        return true;
    }
    if (mover_is_fenced(run->mover)) /* by a process before this one */
        return fence_open(migrator, run, container, err);
    run->not_before_ms = clock_read_monotonic_ms(migrator->clock) + migrator->options.pause_ms;
    return true;
}

/* In one step: writers wait from the fence to the new map. */
static bool fence_and_publish(struct migrator *migrator, struct migrator_run *run,
                              const struct container *container, struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;
    struct migrator_options *options = &migrator->options;
    int64_t since_ms = clock_read_monotonic_ms(migrator->clock);

    if (!mover_unpledge(run->mover, err))
        return false;
    if (!run->map)
        run->map = partition_map_ref(container_map(container));
    phase_set(migrator, run, MIGRATOR_FENCED);
    if (!mover_fence(run->mover, err) || !rest_catch_up(run, err))
        return false;
    if (!mover_finish(run->mover, err))
        return err->code == ERROR_REKEY_CONFLICTS ? fence_open(migrator, run, container, err)
                                                  : migrator_supersede(migrator, container, err);
    if (options->publishing)
        options->publishing(container, options->context);
    if (!catalogue_migration_publish(migrator->catalogue, container, err))
        return false;
    pause_note(migrator, run, since_ms);
    phase_set(migrator, run, MIGRATOR_DROPPING);
    if (options->published && catalogue_container_reopen(migrator->catalogue, container, &now, err))
        options->published(now, options->context);
    return true;
}

/* Writers that come to more than three quarters of what some rounds have caught up with get half
 * the time they had; those that come to less than a quarter get more. So a lag of any size shrinks.
 */
static bool pressure_adjust(struct migrator *migrator, struct migrator_run *run, struct error *err)
{
    struct mover_race race;
    uint64_t written, caught_up;

    if (run->rounds++ % ROUNDS_COMPARED)
        return true;
    if (!mover_race(run->mover, &race, err))
        return false;
    written = race.written - run->race.written;
    caught_up = race.caught_up - run->race.caught_up;
    if (run->race.caught_up && written > caught_up - caught_up / 4)
        run->pressure = MIN(run->pressure + 1, (unsigned)PRESSURE_MAX);
    else if (run->race.caught_up && run->pressure && written < caught_up / 4)
        run->pressure--;
    run->race = race;
    WITH_LOCK (&migrator->lock)
        run->progress.pressure = run->pressure;
    return true;
}

/* Under pressure writers are held while a round runs, and have a part of that time behind it. */
static bool catch_up_round(struct migrator *migrator, struct migrator_run *run, size_t *ret_keys,
                           struct error *err)
{
    int64_t begun_ms = clock_read_monotonic_ms(migrator->clock), ended_ms;
    bool fine;

    if (!run->pressure)
        return mover_catch_up(run->mover, ret_keys, err);
    if (!mover_hold(run->mover, HOLD_MS, err))
        return false;
    fine = mover_catch_up(run->mover, ret_keys, err);
    if (!mover_hold(run->mover, 0, err) || !fine)
        return false;
    ended_ms = clock_read_monotonic_ms(migrator->clock);
    run->not_before_ms = ended_ms + MAX((ended_ms - begun_ms) >> run->pressure, INT64_C(1));
    run->rounds_pressed += run->pressure == PRESSURE_MAX;
    return true;
}

static bool catch_up(struct migrator *migrator, struct migrator_run *run,
                     const struct container *container, struct error *err)
{
    size_t lag = migrator->options.lag_keys ? migrator->options.lag_keys : LAG_DEFAULT, keys = 0;
    bool blocked;

    if (!catch_up_round(migrator, run, &keys, err) || !pressure_adjust(migrator, run, err))
        return false;
    if (keys > lag && run->rounds_pressed < ROUNDS_PRESSED_MAX)
        return true;
    run->not_before_ms = 0;
    if (!rekey_is_blocked(migrator, run, container, &blocked, err))
        return false;
    if (blocked)
        return true;
    return fence_and_publish(migrator, run, container, err);
}

static bool step_moving(struct migrator *migrator, struct migrator_run *run,
                        const struct container *container, struct error *err)
{
    struct mover_figures before;
    bool fine, done = false;
    uint64_t bytes;

    if (!mover_make(migrator, run, container, err))
        return false;
    if (migrator_is_paused(migrator) && !run->map && !mover_is_fenced(run->mover)) {
        run->not_before_ms = clock_read_monotonic_ms(migrator->clock) + migrator->options.pause_ms;
        return true;
    }
    before = mover_figures(run->mover);
    if (run->progress.phase == MIGRATOR_PLANNED)
        phase_set(migrator, run, MIGRATOR_COPYING);
    if (run->progress.phase == MIGRATOR_COPYING &&
        mover_must_rest(run->mover, clock_read_monotonic_ms(migrator->clock))) {
        run->not_before_ms = clock_read_monotonic_ms(migrator->clock) + REST_MS;
        return true;
    }
    if (run->progress.phase == MIGRATOR_COPYING) {
        fine = mover_copy(run->mover, &done, err);
        if (fine && done)
            phase_set(migrator, run, MIGRATOR_CATCHING_UP);
    } else {
        fine = catch_up(migrator, run, container, err);
    }
    if (!run->mover) /* it was given up at an opened fence */
        return fine;
    bytes = figures_add(migrator, run, &before);
    if (run->progress.kind == MIGRATION_REKEY)
        conflicts_note(migrator, run);
    if (run->progress.phase == MIGRATOR_COPYING && !mover_is_fenced(run->mover))
        run->not_before_ms = clock_read_monotonic_ms(migrator->clock) +
                             migrator_throttle_ms(bytes, migrator->options.bytes_per_second);
    return fine;
}

static void sources_forget(struct migrator *migrator, const struct migration *migration)
{
    size_t count;
    const struct migration_source *sources = migration_sources(migration, &count);

    if (migration_keeps_sources(migration))
        return;
    for (size_t i = 0; migrator->options.dropped && i < count; i++)
        migrator->options.dropped(sources[i].id, migrator->options.context);
}

/* A cancelled one: some may have got a budget already. */
static void targets_forget(struct migrator *migrator, const struct migration *migration)
{
    size_t count;
    const struct partition_span *targets = migration_targets(migration, &count);

    for (size_t i = 0; migrator->options.dropped && i < count; i++)
        migrator->options.dropped(targets[i].id, migrator->options.context);
}

static void done_note(struct migrator *migrator, const struct migrator_run *run,
                      const struct container *container)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct container_names names = container_names(migrator->catalogue, container, arena);

    WITH_LOCK (&migrator->lock)
        migrator->statistics.done[run->progress.kind]++;
    migrator_outcome_note(migrator, run, container, false);
    log_event(migrator->options.log, LOG_INFO, "migration done",
              LOG_TEXT("kind", migration_kind_name(run->progress.kind)),
              LOG_SLICE("account", names.account), LOG_SLICE("database", names.database),
              LOG_SLICE("container", container_info(container)->id),
              LOG_INT("bytes", (int64_t)run->progress.bytes),
              LOG_INT("items", (int64_t)run->progress.items),
              LOG_INT("pause_ms", run->progress.pause_ms));
}

/* The targets of a copy are another container's by now, which may have been dropped, or is migrated
 * itself: then what reminds of copying goes with them. */
static bool run_clean(struct migrator_run *run, struct error *err)
{
    return mover_clean(run->mover, err) ||
           (run->progress.kind == MIGRATION_COPY &&
            (err->code == ERROR_FENCED || err->code == ERROR_PARTITION_UNKNOWN));
}

/* Readers of the old map finish on the sources. */
static bool step_dropping(struct migrator *migrator, struct migrator_run *run,
                          const struct container *container, struct error *err)
{
    CLEANUP(migration_unref)
    struct migration *migration = migration_ref(container_migration(container));

    phase_set(migrator, run, MIGRATOR_DROPPING);
    mover_drop(run); /* it holds the old map, too */
    if (run->map && partition_map_is_shared(run->map)) {
        run->not_before_ms = clock_read_monotonic_ms(migrator->clock) + DROP_POLL_MS;
        return true;
    }
    if (migrator->options.leaving && !migration_keeps_sources(migration))
        migrator->options.leaving(container, migrator->options.context);
    if (!mover_make(migrator, run, container, err) || !run_clean(run, err) ||
        !catalogue_migration_end(migrator->catalogue, container, err))
        return false;
    sources_forget(migrator, migration);
    done_note(migrator, run, container);
    run->seen = false;
    return true;
}

static bool step(struct migrator *migrator, struct migrator_run *run,
                 const struct container *container, struct error *err)
{
    switch (migration_state(container_migration(container))) {
    case MIGRATION_MOVING:
        return step_moving(migrator, run, container, err);
    case MIGRATION_DROPPING:
        return step_dropping(migrator, run, container, err);
    default:
        if (!catalogue_migration_end(migrator->catalogue, container, err))
            return false;
        targets_forget(migrator, container_migration(container));
        migrator_outcome_note(migrator, run, container, true);
        run->seen = false;
        return true;
    }
}

/* Tries again later, from what the stores hold. Whoever waits at the fence does not wait for ever.
 */
static void step_failed(struct migrator *migrator, struct migrator_run *run,
                        const struct container *container, const struct error *err)
{
    bool fenced = run->progress.phase == MIGRATOR_FENCED;
    struct error ignored, told = *err;

    container_names_prefix(migrator->catalogue, container, &told);
    log_error(migrator->options.log, "a step of a migration failed and is tried again", &told);
    mover_drop(run);
    run->not_before_ms = clock_read_monotonic_ms(migrator->clock) +
                         (fenced ? FENCED_RETRY_MS : migrator->options.pause_ms);
    run->failures_fenced += fenced;
    run->race = (struct mover_race){0}; /* the next mover may stand before this one */
    WITH_LOCK (&migrator->lock) {
        run->progress.failures++;
        (void)snprintf(run->progress.error, sizeof run->progress.error, "%s", err->message);
        if (run->progress.phase != MIGRATOR_DROPPING)
            run->progress.phase = MIGRATOR_PLANNED;
    }
    if (run->failures_fenced >= FAILURES_FENCED_MAX &&
        catalogue_migration_cancel(migrator->catalogue, container, &ignored))
        log_error(migrator->options.log, "a migration was cancelled behind its fence", &told);
}

/* What is at the fence is tried nevertheless: writers wait, and are let go on after some failures.
 */
static bool must_wait(const struct migrator *migrator, const struct migrator_run *run,
                      const struct container *container)
{
    const struct cluster *cluster = catalogue_cluster(migrator->catalogue);
    const struct migration *migration = container_migration(container);
    const struct migration_source *sources;
    const struct partition_span *targets;
    size_t source_count, target_count;
    bool serve = true;

    if (run->failures_fenced || run->progress.phase == MIGRATOR_FENCED)
        return false;
    sources = migration_sources(migration, &source_count);
    targets = migration_targets(migration, &target_count);
    for (size_t i = 0; i < source_count; i++)
        serve = serve && cluster_node_serves(cluster_find(cluster, sources[i].node));
    for (size_t i = 0; i < target_count; i++)
        serve = serve && cluster_node_serves(cluster_find(cluster, targets[i].node));
    return !serve;
}

/* One step of a container's migration. *busy: the next may come at once. */
static bool container_step(struct migrator *migrator, const struct container *container, bool *busy,
                           struct error *err)
{
    struct migrator_run *run = run_find(migrator, container);
    bool fine;

    if (!run)
        run = run_new(migrator, container);
    run->seen = true;
    if (run->not_before_ms > clock_read_monotonic_ms(migrator->clock))
        return true;
    if (must_wait(migrator, run, container)) { /* for a node that is down or paused */
        run->not_before_ms = clock_read_monotonic_ms(migrator->clock) + migrator->options.pause_ms;
        return true;
    }
    run->not_before_ms = 0;
    fine = step(migrator, run, container, err);
    run->seen = run->seen || !fine;
    if (!fine)
        step_failed(migrator, run, container, err);
    *busy = *busy || (run->seen && !run->not_before_ms);
    return fine;
}

/* --- Rounds ---------------------------------------------------------------------------------- */

struct container **migrator_containers(struct migrator *migrator,
                                       bool (*is_wanted)(const struct container *container),
                                       struct arena *arena, size_t *ret_count)
{
    size_t account_count, count = 0, capacity = 0;
    struct account **accounts = catalogue_accounts(migrator->catalogue, arena, &account_count);
    struct container **containers = NULL;

    for (size_t i = 0; i < account_count; i++) {
        for (size_t d = 0; d < account_database_count(accounts[i]); d++) {
            const struct database *database = account_database(accounts[i], d);

            for (size_t c = 0; c < database_container_count(database); c++) {
                struct container *container = database_container(database, c);

                if (!is_wanted(container))
                    continue;
                if (count == capacity) {
                    struct container **more =
                        ARENA_ARRAY(arena, struct container *, capacity * 2 + 8);

                    if (count)
                        memcpy(more, containers, count * sizeof *more);
                    containers = more;
                    capacity = capacity * 2 + 8;
                }
                containers[count++] = container_ref(container);
            }
        }
        account_unref(accounts[i]);
    }
    *ret_count = count;
    return containers;
}

static bool is_moving(const struct container *container)
{
    return container_migration(container) != NULL;
}

static bool round_run(struct migrator *migrator, bool *busy, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t count;
    struct container **containers = migrator_containers(migrator, is_moving, arena, &count);
    int64_t now_ms = clock_read_monotonic_ms(migrator->clock);
    bool fine = true, begun = false;

    for (struct migrator_run *run = migrator->runs; run; run = run->next)
        run->seen = false;
    for (size_t i = 0; i < count; i++) {
        fine = container_step(migrator, containers[i], busy, err) && fine;
        container_unref(containers[i]);
    }
    runs_sweep(migrator);
    migrator->waiting = count > 0;
    if (!migrator_is_paused(migrator))
        migrator_promotions_step(migrator, busy);
    if (migrator->options.splits_off || now_ms < migrator->look_at_ms ||
        migrator_is_paused(migrator))
        return fine;
    migrator->look_at_ms = now_ms + migrator->options.pause_ms;
    fine = migrator_look(migrator, &begun, err) && fine;
    *busy = *busy || begun;
    return fine;
}

bool migrator_round(struct migrator *migrator, bool *ret_busy, struct error *err)
{
    bool fine = false, busy = false;

    WITH_LOCK (&migrator->step_lock)
        fine = round_run(migrator, &busy, err);
    *ret_busy = busy;
    return fine;
}

/* How long until the next step is due, at most a pause. */
static int64_t step_in_ms(struct migrator *migrator)
{
    int64_t pause_ms = migrator->options.pause_ms, now_ms = clock_monotonic_ms();

    WITH_LOCK (&migrator->lock)
        for (const struct migrator_run *run = migrator->runs; run; run = run->next)
            pause_ms = MIN(pause_ms, MAX(run->not_before_ms - now_ms, INT64_C(0)));
    return pause_ms;
}

/* Whatever a look rests on is committed somewhere, so it waits for the bell, unless a migration or
 * a promotion is under way. False: stop. */
static bool migrator_wait(struct migrator *migrator, bool busy, bool fine)
{
    return sleeper_sleep(&migrator->sleeper, busy ? 0 : step_in_ms(migrator),
                         busy || !fine || migrator->waiting ? 0 : clock_monotonic_ms() + IDLE_MS);
}

static void migrator_main(void *context)
{
    struct migrator *migrator = context;
    bool busy = false, fine = false;

    while (migrator_wait(migrator, busy, fine)) {
        struct error err;

        sleeper_listen(&migrator->sleeper);
        fine = migrator_round(migrator, &busy, &err);
        if (!fine)
            log_error(migrator->options.log, "a round of migrations failed", &err);
    }
}

void migrator_wake(struct migrator *migrator)
{
    sleeper_wake(&migrator->sleeper);
}

/* --- The whole ------------------------------------------------------------------------------- */

struct migrator *migrator_new(const struct migrator_options *options)
{
    struct migrator *migrator = MEMORY_NEW(struct migrator);

    migrator->options = *options;
    migrator->catalogue = options->catalogue;
    migrator->clock = options->clock ? options->clock : &clock_system;
    if (!migrator->options.pause_ms)
        migrator->options.pause_ms = PAUSE_DEFAULT_MS;
    mutex_init(&migrator->step_lock);
    mutex_init(&migrator->lock);
    sleeper_init(&migrator->sleeper, options->bell);
    if (!options->by_hand)
        thread_start(&migrator->thread, "migrator", migrator_main, migrator);
    return migrator;
}

void migrator_free(struct migrator *migrator)
{
    if (!migrator)
        return;
    sleeper_stop(&migrator->sleeper);
    if (!migrator->options.by_hand)
        thread_join(&migrator->thread);
    while (migrator->runs) {
        struct migrator_run *run = migrator->runs;

        migrator->runs = run->next;
        run_free(run);
    }
    migrator_outcomes_free(migrator);
    migrator_sizes_free(&migrator->sizes);
    sleeper_done(&migrator->sleeper);
    mutex_done(&migrator->lock);
    mutex_done(&migrator->step_lock);
    memory_free(migrator);
}

bool migrator_cancel(struct migrator *migrator, const struct container *container,
                     struct error *err)
{
    bool cancelled = false;

    WITH_LOCK (&migrator->step_lock)
        cancelled = catalogue_migration_cancel(migrator->catalogue, container, err);
    WITH_LOCK (&migrator->lock)
        migrator->statistics.cancelled += cancelled;
    if (cancelled)
        migrator_wake(migrator); /* to remove what is left */
    return cancelled;
}

bool migrator_progress(struct migrator *migrator, const struct container *container,
                       struct migrator_progress *ret_progress)
{
    CLEANUP(container_unref) struct container *now = NULL;
    struct error err;

    if (!catalogue_container_reopen(migrator->catalogue, container, &now, &err) ||
        !container_migration(now))
        return false;
    *ret_progress = (struct migrator_progress){
        .id = run_id(now), .kind = migration_kind(container_migration(now)), .pause_ms = -1};
    WITH_LOCK (&migrator->lock) {
        const struct migrator_run *run = run_find(migrator, now);

        if (run) {
            *ret_progress = run->progress;
            ret_progress->elapsed_ms = clock_read_monotonic_ms(migrator->clock) - run->begun_ms;
        }
    }
    return true;
}

/* step_lock: whoever sees it paused meets no step that began before. */
void migrator_pause(struct migrator *migrator, bool paused)
{
    WITH_LOCK (&migrator->step_lock) {
        WITH_LOCK (&migrator->lock)
            migrator->paused = paused;
        for (struct migrator_run *run = migrator->runs; !paused && run; run = run->next)
            run->not_before_ms = 0;
    }
    if (!paused)
        migrator_wake(migrator);
}

bool migrator_is_paused(struct migrator *migrator)
{
    bool paused = false;

    WITH_LOCK (&migrator->lock)
        paused = migrator->paused;
    return paused;
}

struct migrator_statistics migrator_statistics(struct migrator *migrator)
{
    struct migrator_statistics statistics;

    WITH_LOCK (&migrator->lock)
        statistics = migrator->statistics;
    return statistics;
}
