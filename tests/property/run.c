#include "property/run.h"

#include "property/check.h"
#include "property/operations.h"
#include "support/check.h"
#include "support/fault_engine.h"

enum { CHECK_EVERY = 20 };

struct kind {
    const char *name;
    unsigned weight;
    void (*run)(struct run *run);
};

static const struct kind kinds[] = {
#define RUN_KIND(kind, weight, function) {#kind, weight, function},
#include "property/kinds.def"
#undef RUN_KIND
};

void run_init(struct run *run, const struct world_config *config, const struct run_store *store,
              uint64_t seed)
{
    *run = (struct run){.store = store, .seed = seed, .arena = arena_new()};
    random_seed(&run->random, seed);
    world_init(&run->world, config, store->open(store->context));
    run->model = model_new(&run->world);
}

static void candidates_clear(struct run *run)
{
    for (size_t i = 0; i < run->candidate_count; i++)
        model_free(run->candidates[i]);
    run->candidate_count = 0;
}

void run_done(struct run *run)
{
    candidates_clear(run);
    model_free(run->model);
    world_done(&run->world);
    arena_free(run->arena);
}

void run_log(struct run *run, const char *format, ...)
{
    char *line = run->log[run->step % RUN_LOG_LINES];
    va_list args;
    size_t used = (size_t)snprintf(line, sizeof run->log[0], "%u fault %d ", run->step, run->fault);

    va_start(args, format);
    vsnprintf(line + used, sizeof run->log[0] - used, format, args);
    va_end(args);
}

void run_log_more(struct run *run, const char *format, ...)
{
    char *line = run->log[run->step % RUN_LOG_LINES];
    size_t used = strlen(line);
    va_list args;

    va_start(args, format);
    vsnprintf(line + used, sizeof run->log[0] - used, format, args);
    va_end(args);
}

void run_fail(struct run *run, const char *format, ...)
{
    char message[4000];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    print_message("# container %s, seed %llu, step %u: %s\n", run->world.config->name,
                  (unsigned long long)run->seed, run->step, message);
    for (unsigned i = RUN_LOG_LINES - 1; i < RUN_LOG_LINES; i--)
        if (run->step >= i)
            print_message("#   %s\n", run->log[(run->step - i) % RUN_LOG_LINES]);
    fail_msg("run again with ORRERY_TEST_SEED=%llu: %s", (unsigned long long)run->seed, message);
    abort(); /* fail_msg does not return */
}

void run_check(struct run *run)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const char *difference = check_difference(run->model, arena);

    if (difference)
        run_fail(run, "%s", difference);
}

/* --- Faults ---------------------------------------------------------------------------------- */

static void fault_plan(struct run *run)
{
    unsigned dice = run_below(&run[0], 100);
    enum fault_outcome outcome;

    run->fault = dice < 3    ? RUN_WRITE_LOST
                 : dice < 6  ? RUN_ANSWER_LOST
                 : dice < 8  ? RUN_HEALED
                 : dice < 10 ? RUN_READ_FAILS
                 : dice < 11 ? RUN_STORE_FULL
                             : RUN_NO_FAULT;
    run->hit = false;
    run->written = run->fault == RUN_ANSWER_LOST || (run->fault == RUN_HEALED && dice % 2);
    outcome = run->written ? FAULT_WRITTEN : FAULT_NOT_WRITTEN;
    switch (run->fault) {
    case RUN_WRITE_LOST:
    case RUN_ANSWER_LOST:
    case RUN_HEALED:
        fault_engine_fail_nth(run->world.engine, FAULT_WRITES, 1 + run_below(run, 10) / 9,
                              ERROR_STORE_IO, outcome);
        break;
    case RUN_READ_FAILS:
        fault_engine_fail_nth(run->world.engine, FAULT_READS, 1 + run_below(run, 6),
                              run_below(run, 2) ? ERROR_STORE_IO : ERROR_STORE_UNAVAILABLE,
                              FAULT_NOT_WRITTEN);
        break;
    case RUN_STORE_FULL:
        fault_engine_fill(run->world.engine, true);
        break;
    case RUN_NO_FAULT:
        break;
    }
}

bool run_is_fault(const struct run *run, const struct error *err)
{
    switch (run->fault) {
    case RUN_WRITE_LOST:
    case RUN_ANSWER_LOST:
    case RUN_HEALED:
        return err->code == ERROR_STORE_IO || err->code == ERROR_STORE_POISONED ||
               err->code == ERROR_WRITE_IN_DOUBT;
    case RUN_READ_FAILS:
        /* A committer that was poisoned before reads where it stands, and may fail to. */
        return err->code == ERROR_STORE_IO || err->code == ERROR_STORE_UNAVAILABLE ||
               err->code == ERROR_STORE_POISONED;
    case RUN_STORE_FULL:
        return err->code == ERROR_STORE_FULL;
    case RUN_NO_FAULT:
        break;
    }
    return false;
}

void run_restart(struct run *run)
{
    struct world *world = &run->world;

    world_stop(world);
    if (run->store->reopen) {
        engine_close(world->engine);
        world->engine = fault_engine_new(run->store->reopen(run->store->context));
    } else {
        fault_engine_restore_power(world->engine);
    }
    world_start(world, run_below(run, 4) == 0);
    run->crashes++;
}

/* The store must hold one of the candidates, whole. */
static void candidates_adopt(struct run *run)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const char *difference = "no candidate";

    for (size_t i = 0; i < run->candidate_count && difference; i++) {
        difference = check_difference(run->candidates[i], arena);
        if (!difference) {
            model_free(run->model);
            run->model = TAKE(run->candidates[i]);
        }
    }
    if (difference)
        run_fail(run, "after the fault neither before nor after: %s", difference);
}

static void fault_end(struct run *run)
{
    fault_engine_fail_nth(run->world.engine, FAULT_ALL, 0, ERROR_NONE, FAULT_NOT_WRITTEN);
    fault_engine_fill(run->world.engine, false);
    if (run->hit && (run->fault == RUN_WRITE_LOST || run->fault == RUN_ANSWER_LOST))
        run_restart(run);
    else if (run->hit)
        fault_engine_heal(run->world.engine);
    if (run->hit)
        candidates_adopt(run);
    candidates_clear(run);
    run->fault = RUN_NO_FAULT;
}

/* --- Settling -------------------------------------------------------------------------------- */

static void candidate_add(struct run *run, struct model *model)
{
    assert_true(run->candidate_count < RUN_CANDIDATES);
    run->candidates[run->candidate_count++] = model;
}

bool run_settle(struct run *run, bool ok, const struct error *err, enum error_code expected,
                struct model *after)
{
    if (!ok && run_is_fault(run, err)) {
        run->hit = true;
        if (run->written && expected == ERROR_NONE && run->fault != RUN_READ_FAILS) {
            candidate_add(run, after);
        } else {
            candidate_add(run, model_copy(run->model));
            model_free(after);
        }
        return false;
    }
    if (ok != (expected == ERROR_NONE) || (!ok && err->code != expected)) {
        model_free(after);
        run_fail(run, "wanted %s, got %s: %s", expected ? error_face(expected)->name : "success",
                 ok ? "success" : error_face(err->code)->name, ok ? "" : err->message);
    }
    run->refused[expected]++;
    if (ok) {
        model_free(run->model);
        run->model = after;
    } else {
        model_free(after);
    }
    return ok;
}

bool run_settle_read(struct run *run, bool ok, const struct error *err)
{
    if (!ok && run_is_fault(run, err)) {
        run->hit = true;
        candidates_clear(run);
        candidate_add(run, model_copy(run->model));
        return false;
    }
    if (!ok)
        run_fail(run, "wanted success, got %s: %s", error_face(err->code)->name, err->message);
    return true;
}

/* --- A step ---------------------------------------------------------------------------------- */

static enum run_kind kind_choose(struct run *run)
{
    unsigned sum = 0, dice;
    enum run_kind kind = 0;

    for (unsigned i = 0; i < RUN_KINDS; i++)
        sum += kinds[i].weight;
    for (dice = run_below(run, sum); dice >= kinds[kind].weight; kind++)
        dice -= kinds[kind].weight;
    return kind;
}

void run_step(struct run *run)
{
    enum run_kind kind = kind_choose(run);

    arena_reset(run->arena);
    run->step++;
    fault_plan(run);
    run_log(run, "%s", kinds[kind].name);
    kinds[kind].run(run);
    run->counts[kind]++;
    fault_end(run);
    run->world.now_ms += run_below(run, 300);
    if (run->step % CHECK_EVERY == 0)
        run_check(run);
}
