/* What happens to a container without anybody writing to it: time, expiry, trimming, another index
 * policy, power cuts. */
#include "base/thread.h"
#include "item/expiry.h"
#include "item/feed_read.h"
#include "item/transform.h"
#include "property/operations.h"
#include "support/check.h"
#include "support/fault_engine.h"

void care_time_passes(struct run *run)
{
    int64_t ms = (int64_t)run_below(run, 8000);

    if (run->world.config->clock_may_step_back && run_below(run, 4) == 0)
        ms = -ms;
    run_log(run, "%lld ms pass", (long long)ms);
    run->world.now_ms += ms;
}

/* The models after each of the commits of a call that makes several; one of them is what a fault
 * leaves behind. */
struct stages {
    struct model *models[RUN_CANDIDATES];
    size_t count;
};

static void stage_add(struct stages *stages, const struct model *model)
{
    assert_true(stages->count < RUN_CANDIDATES);
    stages->models[stages->count++] = model_copy(model);
}

/* The call ended; all its stages but the last are only for a fault. */
static bool stages_settle(struct run *run, struct stages *stages, bool ok, const struct error *err)
{
    struct model *last = stages->models[stages->count - 1];

    if (!ok && run_is_fault(run, err)) {
        run->hit = true;
        for (size_t i = 0; i < stages->count; i++)
            run->candidates[run->candidate_count++] = stages->models[i];
        return false;
    }
    for (size_t i = 0; i + 1 < stages->count; i++)
        model_free(stages->models[i]);
    return run_settle(run, ok, err, ERROR_NONE, last);
}

void care_sweep(struct run *run)
{
    CLEANUP(model_free) struct model *model = model_copy(run->model);
    uint32_t partition = run->world.keys[run_below(run, WORLD_KEYS)].partition;
    struct item_scope scope = world_scope(&run->world, partition);
    size_t max = 1 + run_below(run, 8), removed, expected = 0;
    struct stages stages = {.count = 0};
    struct error err;

    run_log(run, "sweep of partition %u, at most %zu", partition, max);
    stage_add(&stages, model);
    while (expected < max && model_sweep_one(model, partition)) {
        expected++;
        stage_add(&stages, model);
    }
    if (stages_settle(run, &stages, expiry_sweep(&scope, max, &removed, &err), &err) &&
        removed != expected)
        run_fail(run, "a sweep removes %zu items in place of %zu", removed, expected);
}

void care_feed_trim(struct run *run)
{
    struct model *after = model_copy(run->model);
    uint32_t partition = run->world.keys[run_below(run, WORLD_KEYS)].partition;
    struct item_scope scope = world_scope(&run->world, partition);
    size_t max = 1 + run_below(run, 30), removed, expected = model_trim(after, partition, max);
    struct error err;

    run_log(run, "trim of partition %u, at most %zu", partition, max);
    if (run_settle(run, feed_trim(&scope, max, &removed, &err), &err, ERROR_NONE, after) &&
        removed != expected)
        run_fail(run, "trimming removes %zu records in place of %zu", removed, expected);
}

/* --- Transforming the index ------------------------------------------------------------------ */

/* The policy changes, then each step remakes a few items, with other operations in between. */
void care_transform(struct run *run)
{
    struct world *world = &run->world;
    CLEANUP(model_free) struct model *model = NULL;
    struct stages stages = {.count = 0};
    struct transform_step step;
    struct item_scope scope;
    struct slice after = SLICE_NONE;
    uint32_t partition;
    size_t max = 1 + run_below(run, 8), looked_at = 0, remade = 0;
    struct error err;

    if (world->policies_behind == 0 ||
        (run_below(run, 40) == 0 && world->policies_behind < CONTAINER_POLICIES_BEFORE_MAX))
        world_policy_change(world);
    model = model_copy(run->model);
    partition = world->transform_partition;
    scope = world_scope(world, partition);
    run_log(run, "transform of partition %u to policy %u, %zu items", partition,
            world->policy_version, max);
    stage_add(&stages, model);
    after = world->transform_position;
    while (looked_at < max && model_transform_next(model, partition, &after, &remade)) {
        looked_at++;
        if (stages.count <= remade)
            stage_add(&stages, model);
    }
    if (!stages_settle(
            run, &stages,
            transform_run(&scope, world->transform_position, max, run->arena, &step, &err), &err))
        return;
    if (step.looked_at != looked_at || step.remade != remade)
        run_fail(run, "a transform looks at %zu items and remakes %zu in place of %zu and %zu",
                 step.looked_at, step.remade, looked_at, remade);
    world_policy_progress(world, step.position, step.finished);
}

/* --- Power ----------------------------------------------------------------------------------- */

/* A commit somebody waits for. */
struct waiting {
    struct mutex lock;
    struct condition wake;
    unsigned finished;
    bool ok[2];
};

struct waiter {
    struct waiting *waiting;
    unsigned which;
};

static void transaction_finished(struct transaction *transaction UNUSED, const struct error *err,
                                 void *context)
{
    const struct waiter *waiter = context;

    WITH_LOCK (&waiter->waiting->lock) {
        waiter->waiting->ok[waiter->which] = !err;
        waiter->waiting->finished++;
        condition_signal(&waiter->waiting->wake);
    }
}

/* Begins an upsert and hands it to the committer. Says what the model makes of it. */
static struct transaction *upsert_start(struct run *run, unsigned key, unsigned id,
                                        struct waiter *waiter, struct model *after,
                                        enum error_code *ret_expected)
{
    CLEANUP(model_transaction_done) struct model_transaction foretold = {0};
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct world *world = &run->world;
    struct item_scope scope = item_space_scope(&world->space, world->keys[key].logical);
    struct slice document = world_document(world, &run->random, key, id, 0);
    struct error err;

    model_begin(&foretold, run->model);
    *ret_expected = model_write(&foretold, key, id, TRANSACTION_UPSERT, document, NULL);
    if (*ret_expected == ERROR_NONE)
        *ret_expected = model_commit(&foretold, after);
    if (*ret_expected != ERROR_NONE)
        return NULL;
    assert_ok(transaction_begin(&scope, world->keys[key].logical, run->arena, &transaction, &err),
              &err);
    assert_ok(
        transaction_write(transaction, &world->ids[id], TRANSACTION_UPSERT, document, NULL, &err),
        &err);
    assert_ok(transaction_commit_start(transaction, transaction_finished, waiter, &err), &err);
    return TAKE(transaction);
}

/* One write is on its way to the disk and another waits behind it when the power goes. The first is
 * there or not; the second is not, and neither is acknowledged. */
void care_power_cut(struct run *run)
{
    CLEANUP(transaction_free) struct transaction *first = NULL, *second = NULL;
    CLEANUP(model_free) struct model *after = model_copy(run->model), *unused = NULL;
    struct engine *engine = run->world.engine;
    struct waiting waiting = {.finished = 0};
    struct waiter waiters[2] = {{&waiting, 0}, {&waiting, 1}};
    bool written = run_below(run, 2);
    enum error_code expected;
    unsigned started = 0;

    run_log(run, "power cut, the write in flight is %s", written ? "kept" : "lost");
    fault_engine_fail_nth(engine, FAULT_ALL, 0, ERROR_NONE, FAULT_NOT_WRITTEN);
    fault_engine_fill(engine, false);
    mutex_init(&waiting.lock);
    condition_init(&waiting.wake);
    fault_engine_hold_writes(engine);
    first = upsert_start(run, run_below(run, WORLD_KEYS), run_below(run, WORLD_IDS), &waiters[0],
                         after, &expected);
    if (first) {
        started++;
        fault_engine_wait_held(engine);
        unused = model_copy(run->model);
        second = upsert_start(run, run_below(run, WORLD_KEYS), run_below(run, WORLD_IDS),
                              &waiters[1], unused, &expected);
        started += second != NULL;
    }
    fault_engine_cut_power(engine, written ? FAULT_WRITTEN : FAULT_NOT_WRITTEN);
    WITH_LOCK (&waiting.lock)
        while (waiting.finished < started)
            condition_wait(&waiting.wake, &waiting.lock);
    condition_done(&waiting.wake);
    mutex_done(&waiting.lock);
    if (waiting.ok[0] || waiting.ok[1])
        run_fail(run, "a write was acknowledged while the power was off");
    transaction_free(TAKE(first));
    transaction_free(TAKE(second));
    run_restart(run);
    if (started && written) {
        model_free(run->model);
        run->model = TAKE(after);
    }
    run_check(run);
}
