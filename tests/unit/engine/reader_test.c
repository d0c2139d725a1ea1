/* A reader before a primary and a standby that shows what the test wants, and fails when it says.
 */
#include "engine/reader.h"

#include "engine/guard.h"
#include "support/check.h"
#include "support/fault_engine.h"

struct bench {
    struct engine *primary, *standby; /* owned by their guards */
    struct engine *guard, *reader;
    struct engine_standbys *standbys; /* the guard's */
    uint64_t beat;
    uint32_t refused; /* a partition the judge does not take; 0: it takes all */
    char served[64];  /* by whom, in order: P and S */
    struct arena *arena;
};

static struct engine *store_new(const char *value)
{
    struct engine_op ops[] = {{ENGINE_PUT, SLICE("k"), slice_of_text(value)},
                              {ENGINE_PUT, SLICE("m"), SLICE("meta")}};
    struct engine_section section = {.partition = 1, .epoch = 1, .ops = ops, .count = 2};
    struct engine *memory;
    struct error err;

    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &memory, &err), &err);
    for (uint32_t id = 1; id <= 2; id++) {
        assert_ok(engine_partition_create(memory, id, 1, &err), &err);
        section.partition = id;
        assert_ok(engine_write(memory, &section, 1, &err), &err);
    }
    return fault_engine_new(memory);
}

/* The first host is the primary. */
static bool standby_open(void *context, struct slice url UNUSED,
                         const struct engine_options *options, struct engine **ret_engine,
                         struct error *err)
{
    struct bench *bench = context;

    if (options->standby != 2)
        return error_set(err, ERROR_STORE_UNAVAILABLE, "it is the primary");
    *ret_engine = bench->standby = store_new("old");
    return true;
}

static bool judge(void *context, const struct engine_seen *seen, enum engine_fallback *ret_why)
{
    const struct bench *bench = context;

    assert_slice_equal(seen->meta, SLICE("meta"));
    assert_int_equal(seen->sent_ms, 100);
    *ret_why = ENGINE_FALLBACK_BEHIND;
    return seen->partition != bench->refused;
}

static void tell(void *context, uint32_t partition UNUSED, uint32_t standby,
                 const struct engine_seen *seen UNUSED)
{
    struct bench *bench = context;

    size_t len = strlen(bench->served);

    assert_true(len + 1 < sizeof bench->served);
    bench->served[len] = standby ? 'S' : 'P';
}

static bool yes(void *context UNUSED)
{
    return true;
}

static int bench_new(void **state)
{
    struct bench *bench = MEMORY_NEW(struct bench);
    struct engine_guard_options options = {.name = "a",
                                           .url = SLICE("postgresql://one,two/x"),
                                           .open = standby_open,
                                           .open_context = bench};
    struct engine_beats *beats;
    struct error err;

    bench->arena = arena_new();
    bench->standbys = engine_standbys_new(&options, 500);
    assert_non_null(bench->standbys);
    assert_int_equal(engine_standbys_count(bench->standbys), 2);
    assert_string_equal(engine_standbys_name(bench->standbys, 1), "two");
    beats = engine_standbys_beats(bench->standbys);
    engine_beats_begin(beats, 0, 50);
    bench->beat = engine_beats_next(beats, 100, yes, NULL);
    bench->primary = store_new("new");
    bench->guard = engine_guard_around(&options, bench->primary);
    engine_guard_hang(bench->guard, bench->standbys);
    assert_ok(engine_guard_open(engine_standbys_at(bench->standbys, 1), &err), &err);
    fault_engine_show(bench->standby,
                      &(struct engine_proof){.standby = true, .epoch = 1, .beat = bench->beat});
    bench->reader = engine_reader_new(&(struct engine_reader_options){.primary = bench->guard,
                                                                      .meta = SLICE("m"),
                                                                      .judge = judge,
                                                                      .tell = tell,
                                                                      .context = bench});
    *state = bench;
    return 0;
}

static int bench_free(void **state)
{
    struct bench *bench = *state;

    engine_close(bench->reader);
    engine_close(bench->guard);
    arena_free(bench->arena);
    memory_free(bench);
    return 0;
}

static struct slice get(struct bench *bench, struct engine_snapshot *snapshot, uint32_t partition)
{
    struct engine_value value;
    struct error err;

    assert_ok(engine_get(bench->reader, snapshot, partition, SLICE("k"), ENGINE_READ_ANY,
                         bench->arena, &value, &err),
              &err);
    assert_int_equal(value.found, ENGINE_FOUND);
    return value.bytes;
}

static void what_a_standby_proves_it_answers(void **state)
{
    struct bench *bench = *state;

    assert_slice_equal(get(bench, NULL, 1), SLICE("old"));
    assert_string_equal(bench->served, "S");
    assert_int_equal(engine_standbys_reads(bench->standbys, 1), 1);
}

static void what_is_not_proved_the_primary_answers(void **state)
{
    struct bench *bench = *state;

    bench->refused = 1;
    assert_slice_equal(get(bench, NULL, 1), SLICE("new"));
    assert_string_equal(bench->served, "P");
    assert_int_equal(engine_standbys_fallbacks(bench->standbys, ENGINE_FALLBACK_BEHIND), 1);
}

static void a_beat_that_is_not_known_proves_nothing(void **state)
{
    struct bench *bench = *state;

    fault_engine_show(bench->standby,
                      &(struct engine_proof){.standby = true, .epoch = 1, .beat = bench->beat + 1});
    assert_slice_equal(get(bench, NULL, 1), SLICE("new"));
    assert_int_equal(engine_standbys_fallbacks(bench->standbys, ENGINE_FALLBACK_BEAT), 1);
}

static void a_standby_that_was_promoted_is_none(void **state)
{
    struct bench *bench = *state;

    fault_engine_show(bench->standby,
                      &(struct engine_proof){.standby = false, .epoch = 1, .beat = bench->beat});
    assert_slice_equal(get(bench, NULL, 1), SLICE("new"));
    assert_int_equal(engine_standbys_fallbacks(bench->standbys, ENGINE_FALLBACK_BEAT), 1);
}

static void a_standby_that_fails_is_replaced_by_the_primary(void **state)
{
    struct bench *bench = *state;

    fault_engine_unplug(bench->standby, true);
    assert_slice_equal(get(bench, NULL, 1), SLICE("new"));
    assert_int_equal(engine_standbys_fallbacks(bench->standbys, ENGINE_FALLBACK_FAILED), 1);
}

static void each_partition_of_a_snapshot_is_proved_by_itself(void **state)
{
    struct bench *bench = *state;
    CLEANUP(engine_snapshot_free) struct engine_snapshot *snapshot = NULL;
    struct error err;

    bench->refused = 2;
    assert_ok(engine_snapshot_new(bench->reader, &snapshot, &err), &err);
    assert_slice_equal(get(bench, snapshot, 1), SLICE("old"));
    assert_slice_equal(get(bench, snapshot, 2), SLICE("new"));
    assert_slice_equal(get(bench, snapshot, 1), SLICE("old"));
    assert_string_equal(bench->served, "SP");
}

static void a_standby_lost_in_the_middle_is_told_and_not_asked_again(void **state)
{
    struct bench *bench = *state;
    struct engine_snapshot *snapshot = NULL;
    struct engine_value value;
    struct error err;

    assert_ok(engine_snapshot_new(bench->reader, &snapshot, &err), &err);
    assert_slice_equal(get(bench, snapshot, 1), SLICE("old"));
    fault_engine_fail_nth(bench->standby, FAULT_READS, 1, ERROR_STORE_UNAVAILABLE,
                          FAULT_NOT_WRITTEN);
    assert_false(engine_get(bench->reader, snapshot, 1, SLICE("k"), ENGINE_READ_ANY, bench->arena,
                            &value, &err));
    assert_true(engine_reader_may_repeat(&err));
    engine_snapshot_free(snapshot);
    assert_ok(engine_snapshot_new(bench->reader, &snapshot, &err), &err);
    assert_slice_equal(get(bench, snapshot, 1), SLICE("new"));
    engine_snapshot_free(snapshot);
}

static void an_iterator_lost_in_the_middle_is_told(void **state)
{
    struct bench *bench = *state;
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_entry entry;
    struct error err;

    assert_ok(engine_iterator_new(bench->reader, NULL, 1, (struct engine_range){0}, false,
                                  ENGINE_READ_ANY, &iterator, &err),
              &err);
    assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
    assert_slice_equal(entry.value, SLICE("old"));
    fault_engine_fail_nth(bench->standby, FAULT_READS, 1, ERROR_STORE_UNAVAILABLE,
                          FAULT_NOT_WRITTEN);
    assert_false(engine_iterator_next(iterator, &entry, &err));
    assert_true(engine_reader_may_repeat(&err));
}

static void several_keys_and_iterators_are_answered_by_a_standby_too(void **state)
{
    struct bench *bench = *state;
    const struct slice keys[] = {SLICE("k"), SLICE("none")};
    struct engine_value values[2];
    struct error err;

    assert_ok(engine_multi_get(bench->reader, NULL, 1, keys, 2, ENGINE_READ_ANY, bench->arena,
                               values, &err),
              &err);
    assert_slice_equal(values[0].bytes, SLICE("old"));
    assert_int_equal(values[1].found, ENGINE_ABSENT);
    bench->refused = 1;
    assert_ok(engine_multi_get(bench->reader, NULL, 1, keys, 2, ENGINE_READ_ANY, bench->arena,
                               values, &err),
              &err);
    assert_slice_equal(values[0].bytes, SLICE("new"));
    assert_string_equal(bench->served, "SP");
}

static void a_node_that_is_paused_is_not_read_from_its_standbys(void **state)
{
    struct bench *bench = *state;
    struct engine_value value;
    struct error err;

    engine_guard_pause(bench->guard, true);
    assert_false(engine_get(bench->reader, NULL, 1, SLICE("k"), ENGINE_READ_ANY, bench->arena,
                            &value, &err));
    assert_int_equal(err.code, ERROR_NODE_PAUSED);
    engine_guard_pause(bench->guard, false);
    assert_slice_equal(get(bench, NULL, 1), SLICE("old"));
}

static void without_a_primary_a_standby_goes_on(void **state)
{
    struct bench *bench = *state;
    struct error down, err;

    error_set(&down, ERROR_STORE_UNAVAILABLE, "gone");
    engine_guard_take_down(bench->guard, &down);
    assert_slice_equal(get(bench, NULL, 1), SLICE("old"));
    assert_ok(engine_serves(bench->reader, &err), &err);
    error_set(&down, ERROR_STORE_LOST, "gone for good");
    engine_guard_take_down(bench->guard, &down);
    assert_false(engine_serves(bench->reader, &err)); /* and shows nothing that may be lost */
    assert_int_equal(err.code, ERROR_STORE_LOST);
}

static void nothing_is_read_from_a_standby_on_a_loop(void **state)
{
    struct bench *bench = *state;
    struct engine_value value;
    struct error err;

    assert_ok(engine_get(bench->reader, NULL, 1, SLICE("k"), ENGINE_READ_CACHED, bench->arena,
                         &value, &err),
              &err);
    assert_int_equal(value.found, ENGINE_COLD);
    assert_string_equal(bench->served, "");
    assert_ptr_equal(engine_reader_behind(bench->reader), bench->guard);
}

/* --- Beside the server that owns the node ------------------------------------------------------
 */

static bool judge_beside(void *context, const struct engine_seen *seen,
                         enum engine_fallback *ret_why)
{
    const struct bench *bench = context;

    *ret_why = ENGINE_FALLBACK_EPOCH;
    return seen->epoch == 1 && seen->partition != bench->refused;
}

static struct engine *reader_alone(struct bench *bench, bool trusted)
{
    fault_engine_show(bench->primary, &(struct engine_proof){.epoch = 1});
    return engine_reader_new(&(struct engine_reader_options){.primary = bench->guard,
                                                             .alone = true,
                                                             .trusted = trusted,
                                                             .meta = SLICE("m"),
                                                             .judge = judge_beside,
                                                             .tell = tell,
                                                             .context = bench});
}

static void alone_the_primary_answers_what_it_proves_and_nobody_the_rest(void **state)
{
    struct bench *bench = *state;
    CLEANUP(engine_close) struct engine *reader = reader_alone(bench, false);
    CLEANUP(engine_snapshot_free) struct engine_snapshot *snapshot = NULL;
    struct engine_iterator *iterator;
    struct engine_value value;
    struct error err;

    assert_ok(engine_get(reader, NULL, 1, SLICE("k"), ENGINE_READ_ANY, bench->arena, &value, &err),
              &err);
    assert_slice_equal(value.bytes, SLICE("new"));
    assert_string_equal(bench->served, "S");
    bench->refused = 2;
    assert_fails(
        engine_get(reader, NULL, 2, SLICE("k"), ENGINE_READ_ANY, bench->arena, &value, &err), &err,
        ERROR_UNPROVED);
    assert_ok(engine_snapshot_new(reader, &snapshot, &err), &err);
    assert_ok(
        engine_get(reader, snapshot, 1, SLICE("k"), ENGINE_READ_ANY, bench->arena, &value, &err),
        &err);
    assert_fails(
        engine_get(reader, snapshot, 2, SLICE("k"), ENGINE_READ_ANY, bench->arena, &value, &err),
        &err, ERROR_UNPROVED);
    assert_fails(engine_iterator_new(reader, NULL, 2, (struct engine_range){0}, false,
                                     ENGINE_READ_ANY, &iterator, &err),
                 &err, ERROR_UNPROVED);
    assert_string_equal(bench->served, "SS");
}

static void alone_a_server_that_became_a_standby_or_another_epoch_proves_nothing(void **state)
{
    struct bench *bench = *state;
    CLEANUP(engine_close) struct engine *reader = reader_alone(bench, false);
    struct engine_value value;
    struct error err;

    fault_engine_show(bench->primary, &(struct engine_proof){.epoch = 2});
    assert_fails(
        engine_get(reader, NULL, 1, SLICE("k"), ENGINE_READ_ANY, bench->arena, &value, &err), &err,
        ERROR_UNPROVED);
    fault_engine_show(bench->primary, &(struct engine_proof){.epoch = 1, .standby = true});
    assert_fails(
        engine_get(reader, NULL, 1, SLICE("k"), ENGINE_READ_ANY, bench->arena, &value, &err), &err,
        ERROR_UNPROVED);
}

/* For tests of checkers: they must have something to object to. */
static void alone_and_trusted_anything_goes(void **state)
{
    struct bench *bench = *state;
    CLEANUP(engine_close) struct engine *reader = reader_alone(bench, true);
    struct engine_value value;
    struct error err;

    fault_engine_show(bench->primary, &(struct engine_proof){.epoch = 2});
    assert_ok(engine_get(reader, NULL, 1, SLICE("k"), ENGINE_READ_ANY, bench->arena, &value, &err),
              &err);
}

int main(void)
{
#define BENCH_TEST(name) cmocka_unit_test_setup_teardown(name, bench_new, bench_free)
    const struct CMUnitTest tests[] = {
        BENCH_TEST(what_a_standby_proves_it_answers),
        BENCH_TEST(what_is_not_proved_the_primary_answers),
        BENCH_TEST(a_beat_that_is_not_known_proves_nothing),
        BENCH_TEST(a_standby_that_was_promoted_is_none),
        BENCH_TEST(a_standby_that_fails_is_replaced_by_the_primary),
        BENCH_TEST(each_partition_of_a_snapshot_is_proved_by_itself),
        BENCH_TEST(a_standby_lost_in_the_middle_is_told_and_not_asked_again),
        BENCH_TEST(an_iterator_lost_in_the_middle_is_told),
        BENCH_TEST(several_keys_and_iterators_are_answered_by_a_standby_too),
        BENCH_TEST(a_node_that_is_paused_is_not_read_from_its_standbys),
        BENCH_TEST(without_a_primary_a_standby_goes_on),
        BENCH_TEST(nothing_is_read_from_a_standby_on_a_loop),
        BENCH_TEST(alone_the_primary_answers_what_it_proves_and_nobody_the_rest),
        BENCH_TEST(alone_a_server_that_became_a_standby_or_another_epoch_proves_nothing),
        BENCH_TEST(alone_and_trusted_anything_goes),
    };

    return cmocka_run_group_tests_name("engine/reader", tests, NULL, NULL);
}
