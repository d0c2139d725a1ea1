/* Indexes that are added and dropped at random while items are written, in small slices, with
 * restarts in between. A model of the items says what a unique index must refuse, and at the end
 * support/verify.h accounts for every stored entry. Then the same with threads. */
#include "base/random.h"
#include "base/thread.h"
#include "support/check.h"
#include "support/indexed.h"
#include "support/verify.h"

enum { KEYS = 3, IDS = 12, VALUES = 40, STEPS = 300, RUNS = 12, WRITERS = 3 };

/* How many values x has, run after run: with few of them a unique index fails, with many it becomes
 * ready. */
static const int values_of_runs[] = {VALUES, 8 * VALUES, 100 * VALUES};

static const char *const definitions[][2] = {
    {"one", "{\"name\":\"one\",\"key\":[{\"path\":\"/x\"}],\"unique\":\"logicalPartition\"}"},
    {"each", "{\"name\":\"each\",\"order\":\"mongo\",\"multikey\":true,\"arrays\":\"counted\","
             "\"sparse\":true,"
             "\"key\":[{\"path\":\"/tags\"}]}"},
    {"down", "{\"name\":\"down\",\"key\":[{\"path\":\"/x\",\"order\":\"descending\"},"
             "{\"path\":\"/y\"}]}"},
    {"some", "{\"name\":\"some\",\"key\":[{\"path\":\"/y\"}],\"filter\":[{\"path\":\"/x\","
             "\"comparison\":\"greater\",\"value\":10}]}"},
    {"hash", "{\"name\":\"hash\",\"hidden\":true,\"key\":[{\"path\":\"/y\",\"hashed\":true}]}"},
    {"else", "{\"name\":\"else\",\"placed\":\"/to\",\"key\":[{\"path\":\"/x\"},{\"path\":\"/id\"},"
             "{\"path\":\"/pk\"}]}"},
    {"elsewhere", "{\"name\":\"elsewhere\",\"placed\":\"/to\",\"key\":[{\"path\":\"/y\"}],"
                  "\"filter\":[{\"path\":\"/x\",\"comparison\":\"less\",\"value\":30}]}"},
    {"wild", "{\"name\":\"wild\",\"wildcard\":{\"exclude\":[\"/tags/*\"]}}"},
};

struct run {
    struct indexed indexed;
    struct random random;
    int x[KEYS][IDS]; /* of the items there are; -1: none */
    int values;       /* that x may have */
    bool wanted;      /* the unique index was added and not dropped */
    bool conflicted;  /* since then two items had the same x at some time */
    size_t refused, failed, readied;
};

static bool has_conflict(const struct run *run)
{
    for (int k = 0; k < KEYS; k++)
        for (int a = 0; a < IDS; a++)
            for (int b = 0; b < a; b++)
                if (run->x[k][a] >= 0 && run->x[k][a] == run->x[k][b])
                    return true;
    return false;
}

static bool would_conflict(const struct run *run, int key, int id, int x)
{
    for (int other = 0; other < IDS; other++)
        if (other != id && run->x[key][other] == x)
            return true;
    return false;
}

static const char *item_text(struct random *random, int key, int id, int x, struct arena *arena)
{
    return arena_text(
        arena, arena_printf(arena,
                            "{\"id\":\"%d\",\"pk\":\"k%d\",\"x\":%d,\"y\":\"%d\","
                            "\"tags\":[%d,%d],\"to\":\"k%d\"}",
                            id, key, x, (int)random_below(random, 5), (int)random_below(random, 5),
                            (int)random_below(random, 5), (int)random_below(random, 9)));
}

static void step_put(struct run *run)
{
    CLEANUP(container_unref) struct container *container = indexed_open(&run->indexed);
    int key = (int)random_below(&run->random, KEYS), id = (int)random_below(&run->random, IDS);
    int x = (int)random_below(&run->random, (uint64_t)run->values);
    bool ready = !strcmp(indexed_state(&run->indexed, "one"), "ready"), refused;
    int other = (int)random_below(&run->random, IDS);
    struct error err;

    if (ready && run->x[key][other] >= 0 && random_below(&run->random, 4) == 0)
        x = run->x[key][other]; /* by chance alone hardly any would be refused */
    refused = ready && would_conflict(run, key, id, x);
    if (indexed_put(&run->indexed, container,
                    item_text(&run->random, key, id, x, run->indexed.arena), &err)) {
        if (refused)
            fail_msg("a second item with x = %d is written to k%d", x, key);
        run->x[key][id] = x;
    } else if (!refused || err.code != ERROR_UNIQUE_KEY) {
        fail_msg("item %d of k%d with x = %d is refused: %s", id, key, x, err.message);
    }
    run->refused += refused;
}

static void step_delete(struct run *run)
{
    CLEANUP(container_unref) struct container *container = indexed_open(&run->indexed);
    int key = (int)random_below(&run->random, KEYS), id = (int)random_below(&run->random, IDS);
    char pk[8], name[8];
    struct error err;

    (void)snprintf(pk, sizeof pk, "k%d", key);
    (void)snprintf(name, sizeof name, "%d", id);
    assert_int_equal(indexed_delete(&run->indexed, container, pk, name, &err),
                     run->x[key][id] >= 0);
    run->x[key][id] = -1;
}

static void step_define(struct run *run)
{
    /* every other time the unique one: it has to come and go often enough to fail and be ready */
    size_t which =
        random_below(&run->random, 2) ? 0 : random_below(&run->random, ARRAY_LEN(definitions));
    const char *name = definitions[which][0];
    bool there = strcmp(indexed_state(&run->indexed, name), "none") != 0;
    struct error err;
    bool fine = there ? indexed_drop(&run->indexed, name, &err)
                      : indexed_add(&run->indexed, definitions[which][1], &err);

    if (!fine && err.code != ERROR_BUSY)
        fail_msg("%s: %s", name, err.message);
    if (fine && which == 0) {
        run->wanted = !there;
        run->conflicted = false;
    }
}

static void unique_check(struct run *run)
{
    const char *now = indexed_state(&run->indexed, "one");

    run->conflicted = run->conflicted || has_conflict(run);
    if (!strcmp(now, "ready") && has_conflict(run))
        fail_msg("the unique index is ready and two items have the same x");
    if (!strcmp(now, "failed") && !run->conflicted)
        fail_msg("the unique index failed, but no two items ever had the same x");
    assert_int_equal(!strcmp(now, "none"), !run->wanted);
}

static void step(struct run *run)
{
    switch (random_below(&run->random, 20)) {
    case 0:
        step_define(run);
        break;
    case 1:
        indexed_restart(&run->indexed);
        break;
    case 2:
    case 3:
    case 4:
        indexed_round(&run->indexed);
        break;
    case 5:
    case 6:
    case 7:
    case 8:
        step_delete(run);
        break;
    default:
        step_put(run);
    }
    unique_check(run);
}

static void run_end(struct run *run)
{
    const char *now;
    size_t items = 0;

    indexed_settle(&run->indexed);
    unique_check(run);
    now = indexed_state(&run->indexed, "one");
    run->readied += !strcmp(now, "ready");
    run->failed += !strcmp(now, "failed");
    for (int k = 0; k < KEYS; k++)
        for (int i = 0; i < IDS; i++)
            items += run->x[k][i] >= 0;
    {
        CLEANUP(container_unref) struct container *container = indexed_open(&run->indexed);

        assert_int_equal(verify_container(container), items);
    }
}

static uint64_t seed_of_run(void)
{
    const char *given = getenv("ORRERY_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)clock_system.wall_ms(NULL);

    print_message("seed %llu\n", (unsigned long long)seed);
    return seed;
}

static void indexes_agree_with_items_however_they_were_made(void **state UNUSED)
{
    uint64_t seed = seed_of_run();
    size_t refused = 0, failed = 0, readied = 0;

    for (uint64_t n = 0; n < RUNS; n++) {
        struct run run = {0};

        random_seed(&run.random, seed + n);
        memset(run.x, -1, sizeof run.x);
        run.values = values_of_runs[n % ARRAY_LEN(values_of_runs)];
        indexed_init(&run.indexed, NULL, 20000, 1 + random_below(&run.random, 4));
        for (int i = 0; i < STEPS; i++) {
            step(&run);
            if (i % 60 == 59)
                run_end(&run);
        }
        refused += run.refused;
        failed += run.failed;
        readied += run.readied;
        indexed_done(&run.indexed);
    }
    print_message("%zu writes refused, %zu unique indexes failed, %zu ready\n", refused, failed,
                  readied);
    assert_true(refused > 0 && failed > 0 && readied > 0);
}

/* --- Threads --------------------------------------------------------------------------------- */

struct writer {
    struct indexed *indexed;
    struct thread thread;
    uint64_t seed;
    atomic_bool *stopping;
    size_t written, refused;
};

/* Each holds on to the container for a while, so that it writes by old definitions too. */
static void writer_run(void *context)
{
    struct writer *writer = context;
    struct random random;

    random_seed(&random, writer->seed);
    while (!atomic_load(writer->stopping)) {
        CLEANUP(container_unref) struct container *container = indexed_open(writer->indexed);

        for (int i = 0; i < 50 && !atomic_load(writer->stopping); i++) {
            CLEANUP(arena_free) struct arena *arena = arena_new();
            int key = (int)random_below(&random, KEYS), id = (int)random_below(&random, IDS);
            char pk[8], name[8];
            struct error err;
            bool fine;

            (void)snprintf(pk, sizeof pk, "k%d", key);
            (void)snprintf(name, sizeof name, "%d", id);
            fine = random_below(&random, 4) == 0
                       ? indexed_delete(writer->indexed, container, pk, name, &err)
                       : indexed_put(
                             writer->indexed, container,
                             item_text(&random, key, id, (int)random_below(&random, 400), arena),
                             &err);
            if (!fine && err.code != ERROR_UNIQUE_KEY && err.code != ERROR_ITEM_MISSING)
                fail_msg("a write fails: %s", err.message);
            writer->written += fine;
            writer->refused += !fine && err.code == ERROR_UNIQUE_KEY;
        }
    }
}

static void writers_and_builders_at_once_leave_what_the_items_say(void **state UNUSED)
{
    struct writer writers[WRITERS];
    struct indexed indexed;
    atomic_bool stopping = false;
    struct random random;
    size_t ready = 0, refused = 0, written = 0;
    struct error err;

    random_seed(&random, seed_of_run());
    indexed_init(&indexed, NULL, 20000, 4);
    for (size_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){
            .indexed = &indexed, .seed = random_next(&random), .stopping = &stopping};
        thread_start(&writers[i].thread, "writer", writer_run, &writers[i]);
    }
    for (int i = 0; i < 40; i++) {
        size_t which = i % 2 ? random_below(&random, ARRAY_LEN(definitions)) : 0;
        bool there = strcmp(indexed_state(&indexed, definitions[which][0]), "none") != 0;

        if (there ? !indexed_drop(&indexed, definitions[which][0], &err)
                  : !indexed_add(&indexed, definitions[which][1], &err))
            assert_int_equal(err.code, ERROR_BUSY);
        if (i % 4 == 3)
            indexed_settle(&indexed);
        else
            indexed_round(&indexed);
        ready += !strcmp(indexed_state(&indexed, "one"), "ready");
    }
    /* To the end with a unique index, if the items let it. */
    if (strcmp(indexed_state(&indexed, "one"), "ready") != 0) {
        if (strcmp(indexed_state(&indexed, "one"), "none") != 0)
            assert_ok(indexed_drop(&indexed, "one", &err), &err);
        assert_ok(indexed_add(&indexed, definitions[0][1], &err), &err);
    }
    indexed_settle(&indexed);
    atomic_store(&stopping, true);
    for (size_t i = 0; i < WRITERS; i++) {
        thread_join(&writers[i].thread);
        refused += writers[i].refused;
        written += writers[i].written;
    }
    {
        CLEANUP(container_unref) struct container *container = indexed_open(&indexed);

        (void)verify_container(container);
    }
    print_message("%zu writes, %zu refused, the unique index was ready %zu times, at the end %s\n",
                  written, refused, ready, indexed_state(&indexed, "one"));
    assert_true(written > 0);
    indexed_done(&indexed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indexes_agree_with_items_however_they_were_made),
        cmocka_unit_test(writers_and_builders_at_once_leave_what_the_items_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
