/* The core against a model: random operations, faults and crashes from a seed, and everything
 * compared. ORRERY_TEST_SEED repeats a run, ORRERY_TEST_STEPS makes it longer or shorter. */
#include "property/check.h"
#include "property/run.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/fault_engine.h"
#include "support/postgres.h"
#include "support/scratch.h"

enum {
    STEPS_MEMORY = 4000, /* for each container */
    STEPS_ROCKSDB = 600,
    STEPS_POSTGRESQL = 300,
    KIND_MIN = 100, /* of each kind, over the containers in memory */
    CRASHES_MIN = 100,
    REFUSED_MIN = 100, /* for each reason */
};

/* What the runs in memory did together. */
struct total {
    unsigned steps, crashes;
    unsigned counts[RUN_KINDS];
    unsigned refused[ERROR_CODE_COUNT];
};

struct fixture {
    uint64_t seed;
    unsigned steps_wanted; /* 0: as usual */
    struct total total;
};

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t number;

    if (!text || !slice_to_uint64(slice_of_text(text), &number))
        return otherwise;
    return number;
}

static void run_all(struct fixture *fixture, const struct world_config *config,
                    const struct run_store *store, unsigned steps, struct total *total)
{
    struct run run;

    run_init(&run, config, store, fixture->seed);
    if (fixture->steps_wanted)
        steps = fixture->steps_wanted;
    while (run.step < steps)
        run_step(&run);
    run_check(&run);
    if (total) {
        total->steps += run.step;
        total->crashes += run.crashes;
        for (unsigned i = 0; i < RUN_KINDS; i++)
            total->counts[i] += run.counts[i];
        for (unsigned i = 0; i < ERROR_CODE_COUNT; i++)
            total->refused[i] += run.refused[i];
    }
    print_message("# %s: %u steps, %u crashes, seed %llu\n", config->name, run.step, run.crashes,
                  (unsigned long long)run.seed);
    run_done(&run);
}

/* --- Memory ---------------------------------------------------------------------------------- */

static struct engine *memory_open(void *context UNUSED)
{
    static const struct engine_options options;
    struct engine *engine;
    struct error err;

    assert_ok(engine_open(SLICE("memory:"), &options, &engine, &err), &err);
    return engine;
}

static const struct run_store memory = {.open = memory_open};

static void a_plain_container_is_what_the_model_says(void **state)
{
    struct fixture *fixture = *state;

    run_all(fixture, &world_plain, &memory, STEPS_MEMORY, &fixture->total);
}

static void a_hierarchical_container_is_what_the_model_says(void **state)
{
    struct fixture *fixture = *state;

    run_all(fixture, &world_hierarchical, &memory, STEPS_MEMORY, &fixture->total);
}

static void a_container_of_mortal_items_is_what_the_model_says(void **state)
{
    struct fixture *fixture = *state;

    run_all(fixture, &world_own_ttl, &memory, STEPS_MEMORY, &fixture->total);
}

static const char *const kind_names[] = {
#define RUN_KIND(kind, weight, function) #kind,
#include "property/kinds.def"
#undef RUN_KIND
};

static void the_runs_did_everything_often_enough(void **state)
{
    static const enum error_code refusals[] = {
        ERROR_ITEM_EXISTS, ERROR_ITEM_MISSING, ERROR_PRECONDITION_FAILED,
        ERROR_UNIQUE_KEY,  ERROR_CONFLICT,     ERROR_LOGICAL_PARTITION_FULL,
    };
    const struct fixture *fixture = *state;
    const struct total *total = &fixture->total;

    if (fixture->steps_wanted)
        skip();
    print_message("# %u steps, %u crashes\n", total->steps, total->crashes);
    for (unsigned i = 0; i < RUN_KINDS; i++)
        print_message("#   %-20s %u\n", kind_names[i], total->counts[i]);
    for (unsigned i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        print_message("#   refused with %-24s %u\n", error_face(refusals[i])->name,
                      total->refused[refusals[i]]);
    assert_true(total->steps >= 10000);
    assert_true(total->crashes >= CRASHES_MIN);
    for (unsigned i = 0; i < RUN_KINDS; i++)
        assert_true(total->counts[i] >= KIND_MIN);
    for (unsigned i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        assert_true(total->refused[refusals[i]] >= REFUSED_MIN);
}

/* What no engine may do, to see that the comparison would see it. */
static void half_a_write_is_noticed(void **state)
{
    static const struct transaction_options none;
    const struct fixture *fixture = *state;
    struct run run;
    struct model *after;
    CLEANUP(model_transaction_done) struct model_transaction foretold = {0};
    struct slice document;
    struct error err;

    run_init(&run, &world_plain, &memory, fixture->seed);
    document = document_of(run.world.arena, "{\"id\":\"a\",\"pk\":\"a\",\"n\":1}");
    after = model_copy(run.model);
    model_begin(&foretold, run.model);
    assert_int_equal(model_write(&foretold, 0, 1, TRANSACTION_CREATE, document, &none), ERROR_NONE);
    assert_int_equal(model_commit(&foretold, after), ERROR_NONE);
    fault_engine_fail_nth(run.world.engine, FAULT_WRITES, 1, ERROR_STORE_IO, FAULT_TORN);
    assert_fails(item_operation_run(&(struct item_operation){.space = &run.world.space,
                                                             .arena = run.arena,
                                                             .verb = ITEM_CREATE,
                                                             .key = run.world.keys[0].key,
                                                             .id = run.world.ids[1],
                                                             .document = document,
                                                             .options = none},
                                    &err),
                 &err, ERROR_STORE_IO);
    run_restart(&run);
    assert_non_null(check_difference(run.model, run.arena));
    assert_non_null(check_difference(after, run.arena));
    model_free(after);
    run_done(&run);
}

/* --- RocksDB --------------------------------------------------------------------------------- */

static struct engine *rocksdb_open(void *context)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct scratch *scratch = context;
    static const struct engine_options options;
    struct engine *engine;
    struct error err;

    assert_ok(engine_open(arena_printf(arena, "rocksdb:%s", scratch_path(scratch, "node")),
                          &options, &engine, &err),
              &err);
    return engine;
}

static void a_rocksdb_node_opened_again_is_what_the_model_says(void **state)
{
    CLEANUP(scratch_done) struct scratch scratch;
    struct run_store store = {.open = rocksdb_open, .reopen = rocksdb_open, .context = &scratch};

    scratch_init(&scratch);
    run_all(*state, &world_hierarchical, &store, STEPS_ROCKSDB, NULL);
}

/* --- PostgreSQL ------------------------------------------------------------------------------ */

struct server {
    struct postgres *postgres;
    char url[256];
    unsigned crashes;
};

static struct engine *postgresql_open(void *context)
{
    const struct server *server = context;
    static const struct engine_options options;
    struct engine *engine;
    struct error err;

    assert_ok(engine_open(slice_of_text(server->url), &options, &engine, &err), &err);
    return engine;
}

/* Now and then the server itself is killed. */
static struct engine *postgresql_reopen(void *context)
{
    struct server *server = context;

    if (server->crashes++ % 4 == 0) {
        postgres_stop(server->postgres, POSTGRES_STOP_KILL);
        postgres_restart(server->postgres);
    }
    return postgresql_open(server);
}

static void a_postgresql_node_is_what_the_model_says(void **state)
{
    CLEANUP(postgres_free) struct postgres *postgres = postgres_start(false);
    struct server server = {.postgres = postgres};
    struct run_store store = {
        .open = postgresql_open, .reopen = postgresql_reopen, .context = &server};

    snprintf(server.url, sizeof server.url, "%s", postgres_fresh_url(postgres));
    run_all(*state, &world_hierarchical, &store, STEPS_POSTGRESQL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_container_is_what_the_model_says),
        cmocka_unit_test(a_hierarchical_container_is_what_the_model_says),
        cmocka_unit_test(a_container_of_mortal_items_is_what_the_model_says),
        cmocka_unit_test(the_runs_did_everything_often_enough),
        cmocka_unit_test(half_a_write_is_noticed),
        cmocka_unit_test(a_rocksdb_node_opened_again_is_what_the_model_says),
        cmocka_unit_test(a_postgresql_node_is_what_the_model_says),
    };
    struct fixture fixture = {.steps_wanted = (unsigned)number_from("ORRERY_TEST_STEPS", 0)};
    uint64_t random;

    random_secret(&random, sizeof random);
    fixture.seed = number_from("ORRERY_TEST_SEED", random % 1000000000);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        ((struct CMUnitTest *)tests)[i].initial_state = &fixture;
    return cmocka_run_group_tests_name("the core against a model", tests, NULL, NULL);
}
