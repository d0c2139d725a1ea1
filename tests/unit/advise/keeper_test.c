/* A record of traffic that is written down and read back, on a clock the test turns. */
#include "advise/keeper.h"

#include "advise/records.h"
#include "base/bytes.h"
#include "catalogue/notes.h"
#include "document/bson.h"
#include "support/catalogue_bench.h"
#include "support/check.h"
#include "support/documents.h"

enum { CONTAINERS_MAX = 4 };

struct story {
    struct bench *bench;
    struct traffic *traffic;
    struct keeper *keeper;
    struct clock clock;
    int64_t now_ms;
    size_t bytes_max;
    bool hashed;
};

static int64_t now_of(void *context)
{
    return ((struct story *)context)->now_ms;
}

/* A process begins. */
static void begin(struct story *story)
{
    struct traffic_options options = {
        .containers_max = CONTAINERS_MAX, .per_second_max = 1000000, .hashed = story->hashed};
    struct error err;

    story->clock = (struct clock){now_of, now_of, story};
    if (story->hashed)
        assert_ok(keeper_seed(story->bench->catalogue, &options.seed, &err), &err);
    story->traffic = traffic_new(&options);
    story->keeper = keeper_new(&(struct keeper_options){.catalogue = story->bench->catalogue,
                                                        .traffic = story->traffic,
                                                        .bytes_max = story->bytes_max,
                                                        .hashed = story->hashed,
                                                        .clock = &story->clock,
                                                        .by_hand = true});
}

static void end(struct story *story)
{
    keeper_free(story->keeper);
    traffic_free(story->traffic);
}

static void restart(struct story *story)
{
    end(story);
    bench_reopen(story->bench);
    begin(story);
}

static struct story story_of(struct bench *bench)
{
    struct story story = {.bench = bench, .now_ms = 1000000, .bytes_max = 1024 * 1024};

    bench_account(bench, "a");
    bench_database(bench, "a", "d", 0);
    bench_container(bench, "a", "d", BENCH_BODY("c"), 400);
    return story;
}

static uint64_t number_of(const struct story *story, const char *container)
{
    CLEANUP(container_unref) struct container *found = NULL;
    struct error err;

    assert_ok(catalogue_container_open(story->bench->catalogue, SLICE("a"), SLICE("d"),
                                       slice_of_text(container), &found, &err),
              &err);
    return container_rid(found).owner;
}

/* So many creates, a second apart. */
static void ask(struct story *story, const char *container, size_t count)
{
    uint64_t number = number_of(story, container);

    for (size_t i = 0; i < count; i++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct slice item =
            arena_printf(arena, "{\"id\":\"secret%lld\"}", (long long)story->now_ms);
        struct traffic_wish wish = traffic_wants(
            story->traffic, number, &(struct traffic_attempt){.now_ms = story->now_ms});

        assert_int_equal(wish.weight, 1);
        traffic_note(
            story->traffic, number, &wish,
            &(struct advise_operation_parts){.kind = ADVISE_CREATE,
                                             .cru = 700,
                                             .item = document_of(arena, arena_text(arena, item))});
        story->now_ms += 1000;
    }
}

static void look(struct story *story)
{
    struct error err;

    assert_ok(keeper_round(story->keeper, &err), &err);
}

static struct slice known_of(struct story *story, const char *container)
{
    CLEANUP(buf_done) struct buf out;
    struct error err;

    buf_init(&out, SIZE_MAX / 2);
    assert_ok(keeper_copy(story->keeper, number_of(story, container), &out, &err), &err);
    return arena_copy(story->bench->arena, buf_slice(&out));
}

struct known {
    size_t records;
    uint64_t operations;
};

static struct known count_of(struct story *story, const char *container)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
    size_t records = records_read(known_of(story, container), workload);

    return (struct known){records, advise_workload_operations_seen(workload)};
}

/* Chunks and bytes of all containers. */
struct totals {
    size_t chunks, bytes;
};

static bool note_count(void *context, struct slice key, struct slice value)
{
    struct totals *totals = context;

    totals->chunks += bytes_get_be32(key.data + 1) != 0;
    totals->bytes += value.len;
    return true;
}

static struct totals stored(const struct story *story)
{
    struct totals totals = {0};
    struct error err;

    assert_ok(catalogue_notes_walk(story->bench->catalogue,
                                   (struct engine_range){SLICE("t"), SLICE("u")}, note_count,
                                   &totals, &err),
              &err);
    return totals;
}

static void what_was_asked_is_known_after_a_restart(void **state)
{
    struct story story = story_of(*state);

    begin(&story);
    ask(&story, "c", 30);
    look(&story);
    ask(&story, "c", 20); /* not written before the process ends */
    restart(&story);
    assert_int_equal(count_of(&story, "c").records, 50);
    ask(&story, "c", 1);
    look(&story); /* what memory has is not counted twice */
    assert_int_equal(count_of(&story, "c").records, 51);
    restart(&story);
    assert_int_equal(count_of(&story, "c").records, 51);
    end(&story);
}

static void a_failed_write_is_made_up_for(void **state)
{
    struct story story = story_of(*state);
    struct error err;

    begin(&story);
    ask(&story, "c", 30);
    fault_engine_fail_nth(story.bench->engine, FAULT_WRITES, 1, ERROR_STORE_FULL,
                          FAULT_NOT_WRITTEN);
    assert_false(keeper_round(story.keeper, &err));
    fault_engine_heal(story.bench->engine);
    look(&story);
    restart(&story);
    assert_int_equal(count_of(&story, "c").records, 30);
    end(&story);
}

static void an_idle_container_costs_no_write(void **state)
{
    struct story story = story_of(*state);

    begin(&story);
    ask(&story, "c", 3);
    look(&story);
    fault_engine_fail_nth(story.bench->engine, FAULT_WRITES, 1, ERROR_STORE_FULL,
                          FAULT_NOT_WRITTEN);
    look(&story);
    fault_engine_heal(story.bench->engine);
    end(&story);
}

/* A rush is thinned, and counts whole; an old chunk makes way for a new one. */
static void what_is_written_down_is_bounded_and_the_last_stay(void **state)
{
    struct story story = story_of(*state);
    struct known known;

    story.bytes_max = 3 * 64 * 1024;
    begin(&story);
    for (int i = 0; i < 6; i++) {
        struct totals totals;

        ask(&story, "c", 4000);
        look(&story);
        totals = stored(&story);
        assert_in_range(totals.chunks, 1, 3);
        assert_in_range(totals.bytes, 1, 3 * 64 * 1024);
    }
    restart(&story);
    known = count_of(&story, "c");
    assert_in_range(known.records, 600, 3000);
    assert_in_range(known.operations, 3 * 4000 - 100, 3 * 4000 + 100);
    end(&story);
}

static void hashed_values_are_the_same_after_a_restart(void **state)
{
    struct story story = story_of(*state);
    CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
    const struct advise_operation *operations;
    struct slice known;
    size_t count;

    story.hashed = true;
    begin(&story);
    ask(&story, "c", 1);
    restart(&story);
    known = known_of(&story, "c");
    assert_null(memmem(known.data, known.len, "secret", 6));
    (void)records_read(known, workload);
    traffic_item(story.traffic, workload,
                 document_of(story.bench->arena, "{\"id\":\"secret1000000\"}"), 10, 1);
    advise_workload_finish(workload);
    operations = advise_workload_operations(workload, &count);
    assert_int_equal(count, 1);
    assert_int_equal(operations[0].values[0], advise_workload_items(workload, &count)[0].values[0]);
    end(&story);
}

/* What was written down while values were to be seen is not shown when they are not to be. */
static void values_that_were_plain_are_forgotten_when_they_are_to_be_hashed(void **state)
{
    struct story story = story_of(*state);

    begin(&story);
    ask(&story, "c", 10);
    end(&story);
    story.hashed = true;
    begin(&story);
    assert_int_equal(count_of(&story, "c").records, 0);
    look(&story);
    assert_int_equal(stored(&story).chunks, 0);
    end(&story);
}

static void what_was_asked_of_a_container_goes_with_it(void **state)
{
    struct story story = story_of(*state);
    struct error err;

    bench_container(story.bench, "a", "d", BENCH_BODY("other"), 400);
    begin(&story);
    ask(&story, "c", 10);
    ask(&story, "other", 10);
    look(&story);
    assert_int_equal(stored(&story).chunks, 2);
    assert_ok(catalogue_container_drop(story.bench->catalogue, SLICE("a"), SLICE("d"), SLICE("c"),
                                       SLICE_NONE, &err),
              &err);
    look(&story);
    assert_int_equal(stored(&story).chunks, 1);
    assert_int_equal(count_of(&story, "other").records, 10);
    end(&story);
}

/* It is written down on the root, where items with resident keys may not be. */
static void of_resident_keys_nothing_is_written_down(void **state)
{
    struct story story = story_of(*state);
    CLEANUP(container_unref) struct container *after = NULL;
    struct slice body =
        document_of(story.bench->arena, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]},"
                                        "\"orrery\":{\"placement\":[{\"notTags\":[\"x\"],"
                                        "\"resident\":true}]}}");
    struct error err;

    begin(&story);
    ask(&story, "c", 10);
    look(&story);
    assert_int_equal(stored(&story).chunks, 1);
    assert_ok(catalogue_container_replace(story.bench->catalogue, SLICE("a"), SLICE("d"),
                                          SLICE("c"), body, SLICE_NONE, &after, &err),
              &err);
    ask(&story, "c", 10);
    look(&story); /* what there was goes, too */
    assert_int_equal(stored(&story).chunks, 0);
    assert_int_equal(count_of(&story, "c").records, 20); /* in memory */
    end(&story);
}

/* Only as many containers are written down as are followed: those used last. */
static void containers_not_used_for_longest_make_way(void **state)
{
    struct story story = story_of(*state);
    struct arena *arena = story.bench->arena;

    begin(&story);
    for (int i = 0; i < CONTAINERS_MAX + 3; i++) {
        struct slice name = arena_printf(arena, "n%d", i);
        struct slice json =
            arena_printf(arena, "{\"id\":\"n%d\",\"partitionKey\":{\"paths\":[\"/pk\"]}}", i);

        bench_container(story.bench, "a", "d", arena_text(arena, json), 400);
        story.now_ms += 20000; /* those before are idle */
        ask(&story, arena_text(arena, name), 1);
        look(&story);
    }
    look(&story);
    assert_int_equal(stored(&story).chunks, CONTAINERS_MAX);
    assert_int_equal(count_of(&story, "n6").records, 1);
    assert_int_equal(count_of(&story, "n0").records, 0);
    end(&story);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(what_was_asked_is_known_after_a_restart),
        ON(memory, a_failed_write_is_made_up_for),
        ON(memory, an_idle_container_costs_no_write),
        ON(memory, what_is_written_down_is_bounded_and_the_last_stay),
        ON(memory, hashed_values_are_the_same_after_a_restart),
        ON(memory, values_that_were_plain_are_forgotten_when_they_are_to_be_hashed),
        ON(memory, what_was_asked_of_a_container_goes_with_it),
        ON(memory, containers_not_used_for_longest_make_way),
        ON(memory, of_resident_keys_nothing_is_written_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
