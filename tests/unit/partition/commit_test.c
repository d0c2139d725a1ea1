#include "partition/commit.h"

#include "base/bytes.h"
#include "base/random.h"
#include "base/thread.h"
#include "partition/commit_still.h"
#include "partition/journal.h"
#include "partition/layout.h"
#include "support/check.h"
#include "support/fault_engine.h"

#include <stdatomic.h>
#include <unistd.h>

/* A memory node behind the fault engine, with partitions 1 and 2 open. */
struct bench {
    struct engine *engine;
    struct commit *commit;
    struct arena *arena;
    int64_t wall_ms;
    struct clock clock;
};

static int64_t bench_wall_ms(void *context)
{
    return ((struct bench *)context)->wall_ms;
}

static void bench_start(struct bench *bench, struct commit_options options)
{
    struct error err;

    options.engine = bench->engine;
    options.clock = &bench->clock;
    bench->commit = commit_new(&options);
    assert_ok(commit_partition_open(bench->commit, 1, 1, &err), &err);
    assert_ok(commit_partition_open(bench->commit, 2, 1, &err), &err);
}

static int setup(void **state)
{
    struct bench *bench = MEMORY_NEW(struct bench);
    struct engine *inner;
    struct error err;

    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &inner, &err), &err);
    bench->engine = fault_engine_new(inner);
    bench->arena = arena_new();
    bench->wall_ms = 1000;
    bench->clock = (struct clock){
        .wall_ms = bench_wall_ms, .monotonic_ms = clock_system.monotonic_ms, .context = bench};
    assert_ok(engine_partition_create(bench->engine, 1, 1, &err), &err);
    assert_ok(engine_partition_create(bench->engine, 2, 1, &err), &err);
    bench_start(bench, (struct commit_options){0});
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;

    commit_free(bench->commit);
    engine_close(bench->engine);
    arena_free(bench->arena);
    memory_free(bench);
    return 0;
}

/* A transaction that puts one key of a partition and relies on it. */
struct one_put {
    struct engine_op op;
    struct slice key;
    struct commit_part part;
    struct commit_batch batch;
};

static struct commit_batch *one_put(struct one_put *tx, uint32_t partition, const char *key,
                                    const char *value, uint64_t moment)
{
    *tx = (struct one_put){.key = slice_of_text(key)};
    tx->op = (struct engine_op){ENGINE_PUT, tx->key, slice_of_text(value)};
    tx->part = (struct commit_part){.partition = partition,
                                    .epoch = 1,
                                    .ops = &tx->op,
                                    .op_count = 1,
                                    .relied = &tx->key,
                                    .relied_count = 1,
                                    .touched = &tx->key,
                                    .touched_count = 1};
    tx->batch = (struct commit_batch){.parts = &tx->part, .part_count = 1, .moment = moment};
    return &tx->batch;
}

static struct engine_value stored(struct bench *bench, uint32_t partition, const char *key)
{
    struct engine_value value;
    struct error err;

    assert_ok(engine_get(bench->engine, NULL, partition, slice_of_text(key), ENGINE_READ_ANY,
                         bench->arena, &value, &err),
              &err);
    return value;
}

static void a_batch_is_stored_and_numbered(void **state)
{
    struct bench *bench = *state;
    struct one_put tx;
    struct error err;

    one_put(&tx, 1, "a", "1", commit_moment(bench->commit));
    tx.part.number_count = 3;
    assert_ok(commit_run(bench->commit, &tx.batch, &err), &err);
    assert_slice_equal(stored(bench, 1, "a").bytes, SLICE("1"));
    assert_int_equal(tx.part.stamp.lsn, 1);
    assert_int_equal(tx.part.stamp.first_number, (uint64_t)1 << 32);
    assert_int_equal(tx.part.stamp.wall_ms, 1000);

    one_put(&tx, 1, "b", "2", commit_moment(bench->commit));
    tx.part.number_count = 1;
    assert_ok(commit_run(bench->commit, &tx.batch, &err), &err);
    assert_int_equal(tx.part.stamp.lsn, 2);
    assert_int_equal(tx.part.stamp.first_number, ((uint64_t)1 << 32) + 3);
}

static void first_committer_wins(void **state)
{
    struct bench *bench = *state;
    struct one_put first, second;
    uint64_t moment = commit_moment(bench->commit);
    struct error err;

    assert_ok(commit_run(bench->commit, one_put(&first, 1, "a", "first", moment), &err), &err);
    assert_fails(commit_run(bench->commit, one_put(&second, 1, "a", "second", moment), &err), &err,
                 ERROR_CONFLICT);
    assert_slice_equal(stored(bench, 1, "a").bytes, SLICE("first"));
    one_put(&second, 1, "a", "second", commit_moment(bench->commit));
    assert_ok(commit_run(bench->commit, &second.batch, &err), &err);
    assert_slice_equal(stored(bench, 1, "a").bytes, SLICE("second"));
}

static void keys_of_other_partitions_do_not_conflict(void **state)
{
    struct bench *bench = *state;
    struct one_put first, second;
    uint64_t moment = commit_moment(bench->commit);
    struct error err;

    assert_ok(commit_run(bench->commit, one_put(&first, 1, "a", "1", moment), &err), &err);
    assert_ok(commit_run(bench->commit, one_put(&second, 2, "a", "2", moment), &err), &err);
}

static void a_scanned_range_conflicts_with_a_write_into_it(void **state)
{
    struct bench *bench = *state;
    struct one_put writer, scanner;
    uint64_t moment = commit_moment(bench->commit);
    struct engine_range range = {.min = SLICE("k"), .max = SLICE("l")};
    struct error err;

    assert_ok(commit_run(bench->commit, one_put(&writer, 1, "k5", "new", moment), &err), &err);
    one_put(&scanner, 1, "total", "0", moment);
    scanner.part.scanned = &range;
    scanner.part.scanned_count = 1;
    assert_fails(commit_run(bench->commit, &scanner.batch, &err), &err, ERROR_CONFLICT);
    range = (struct engine_range){.min = SLICE("m"), .max = SLICE("n")};
    assert_ok(commit_run(bench->commit, &scanner.batch, &err), &err);
}

static void a_moment_out_of_reach_is_told_to_run_again(void **state)
{
    struct bench *bench = *state;
    struct one_put tx;
    struct error err;

    commit_free(TAKE(bench->commit));
    bench_start(bench, (struct commit_options){.recent_keys_max = 4});
    for (int i = 0; i < 10; i++)
        assert_ok(commit_run(bench->commit,
                             one_put(&tx, 1, "other", "x", commit_moment(bench->commit)), &err),
                  &err);
    assert_fails(commit_run(bench->commit, one_put(&tx, 1, "a", "1", 0), &err), &err,
                 ERROR_SNAPSHOT_TOO_OLD);
    one_put(&tx, 1, "a", "1", COMMIT_NOTHING_RELIED_ON);
    assert_ok(commit_run(bench->commit, &tx.batch, &err), &err);
}

/* A client that does not wait. */
struct async_put {
    struct one_put tx;
    atomic_int done; /* 0 not yet, 1 durable, -1 refused */
    enum error_code code;
};

static void async_done(struct commit_batch *batch, const struct error *err)
{
    struct async_put *put = CONTAINER_OF(batch, struct async_put, tx.batch);

    put->code = err ? err->code : ERROR_NONE;
    atomic_store(&put->done, err ? -1 : 1);
}

static void async_submit(struct bench *bench, struct async_put *put, uint32_t partition,
                         const char *key, const char *value, uint64_t moment)
{
    struct error err;

    memset(put, 0, sizeof *put);
    one_put(&put->tx, partition, key, value, moment);
    put->tx.batch.done = async_done;
    assert_ok(commit_submit(bench->commit, &put->tx.batch, &err), &err);
}

static int async_wait(struct async_put *put)
{
    while (!atomic_load(&put->done))
        sched_yield();
    return atomic_load(&put->done);
}

/* Everything submitted while a write stands at the gate becomes one group. */
static void what_queues_up_during_a_write_is_one_group(void **state)
{
    struct bench *bench = *state;
    struct async_put first, others[10];
    uint64_t moment = commit_moment(bench->commit);
    unsigned writes;

    fault_engine_hold_writes(bench->engine);
    async_submit(bench, &first, 1, "first", "x", moment);
    fault_engine_wait_held(bench->engine);
    writes = fault_engine_count(bench->engine, FAULT_WRITES);
    for (int i = 0; i < 10; i++)
        async_submit(bench, &others[i], 1 + i % 2,
                     arena_text(bench->arena, arena_printf(bench->arena, "k%d", i)), "x", moment);
    assert_int_equal(atomic_load(&first.done), 0);
    fault_engine_release_writes(bench->engine);
    for (int i = 0; i < 10; i++)
        assert_int_equal(async_wait(&others[i]), 1);
    assert_int_equal(async_wait(&first), 1);
    assert_int_equal(fault_engine_count(bench->engine, FAULT_WRITES), writes + 1);
    assert_int_equal(commit_statistics(bench->commit).groups, 2);
    assert_int_equal(commit_statistics(bench->commit).batches, 11);
}

static void batches_of_one_group_are_judged_against_each_other(void **state)
{
    struct bench *bench = *state;
    struct async_put gate, a, b;
    uint64_t moment = commit_moment(bench->commit);

    fault_engine_hold_writes(bench->engine);
    async_submit(bench, &gate, 1, "gate", "x", moment);
    fault_engine_wait_held(bench->engine);
    async_submit(bench, &a, 1, "k", "a", moment);
    async_submit(bench, &b, 1, "k", "b", moment);
    fault_engine_release_writes(bench->engine);
    assert_int_equal(async_wait(&a), 1);
    assert_int_equal(async_wait(&b), -1);
    assert_int_equal(b.code, ERROR_CONFLICT);
    assert_slice_equal(stored(bench, 1, "k").bytes, SLICE("a"));
    async_wait(&gate);
}

/* The group in flight counts as committed for those that come after. */
static void a_write_in_flight_wins_against_later_ones(void **state)
{
    struct bench *bench = *state;
    struct async_put flying, later;
    uint64_t moment = commit_moment(bench->commit);

    fault_engine_hold_writes(bench->engine);
    async_submit(bench, &flying, 1, "k", "flying", moment);
    fault_engine_wait_held(bench->engine);
    assert_int_equal(commit_moment(bench->commit), moment);
    async_submit(bench, &later, 1, "k", "later", moment);
    fault_engine_release_writes(bench->engine);
    assert_int_equal(async_wait(&flying), 1);
    assert_int_equal(async_wait(&later), -1);
}

static void blind_writes_of_one_key_keep_their_order(void **state)
{
    struct bench *bench = *state;
    struct async_put gate, puts[20];
    static char values[20][8];

    fault_engine_hold_writes(bench->engine);
    async_submit(bench, &gate, 1, "gate", "x", 0);
    fault_engine_wait_held(bench->engine);
    for (int i = 0; i < 20; i++) {
        snprintf(values[i], sizeof values[i], "%d", i);
        async_submit(bench, &puts[i], 1, "k", values[i], COMMIT_NOTHING_RELIED_ON);
    }
    fault_engine_release_writes(bench->engine);
    for (int i = 0; i < 20; i++)
        assert_int_equal(async_wait(&puts[i]), 1);
    assert_slice_equal(stored(bench, 1, "k").bytes, SLICE("19"));
    async_wait(&gate);
}

static void a_fenced_partition_goes_on_under_its_new_epoch(void **state)
{
    struct bench *bench = *state;
    struct one_put tx;
    uint64_t lsn;
    struct error err;

    assert_ok(commit_run(bench->commit, one_put(&tx, 2, "k", "1", 0), &err), &err);
    assert_ok(engine_partition_fence(bench->engine, 2, 2, &err), &err);
    one_put(&tx, 2, "k", "late", commit_moment(bench->commit));
    assert_fails(commit_run(bench->commit, &tx.batch, &err), &err, ERROR_FENCED);
    assert_slice_equal(stored(bench, 2, "k").bytes, SLICE("1"));
    assert_ok(commit_partition_lsn(bench->commit, 2, &lsn, &err), &err);
    assert_int_equal(lsn, 1);
    assert_ok(commit_partition_open(bench->commit, 2, 2, &err), &err);
    one_put(&tx, 2, "k", "new", commit_moment(bench->commit));
    tx.part.epoch = 2;
    assert_ok(commit_run(bench->commit, &tx.batch, &err), &err);
    assert_int_equal(tx.part.stamp.lsn, 2);
    commit_partition_close(bench->commit, 2);
    assert_fails(commit_run(bench->commit, &tx.batch, &err), &err, ERROR_PARTITION_UNKNOWN);
}

static void a_partition_is_not_opened_again_under_an_older_epoch(void **state)
{
    struct bench *bench = *state;
    struct one_put tx;
    struct error err;

    assert_ok(engine_partition_fence(bench->engine, 2, 3, &err), &err);
    assert_ok(commit_partition_open(bench->commit, 2, 3, &err), &err);
    assert_fails(commit_partition_open(bench->commit, 2, 2, &err), &err, ERROR_FENCED);
    one_put(&tx, 2, "k", "1", commit_moment(bench->commit));
    tx.part.epoch = 3;
    assert_ok(commit_run(bench->commit, &tx.batch, &err), &err);
}

/* What the store holds is not ours to assert: format 1 | lsn | wall_ms | source | counter. */
static void a_numbering_out_of_range_is_damage(void **state)
{
    enum { SOURCE_AT = 17, COUNTER_AT = 25, LEN = 33 };
    struct bench *bench = *state;
    const uint8_t family = PARTITION_FAMILY_META;
    uint8_t meta[LEN] = {1};
    struct engine_op op = {ENGINE_PUT, slice_of(&family, 1), slice_of(meta, LEN)};
    struct engine_section section = {.partition = 2, .epoch = 1, .ops = &op, .count = 1};
    struct error err;

    bytes_put_be64(meta + SOURCE_AT, UINT64_C(1) << PARTITION_NUMBER_SOURCE_BITS);
    assert_ok(engine_write(bench->engine, &section, 1, &err), &err);
    assert_fails(commit_partition_open(bench->commit, 2, 1, &err), &err, ERROR_STORE_CORRUPT);
    bytes_put_be64(meta + SOURCE_AT, 2);
    bytes_put_be64(meta + COUNTER_AT, UINT64_C(1) << PARTITION_NUMBER_COUNTER_BITS);
    assert_ok(engine_write(bench->engine, &section, 1, &err), &err);
    assert_fails(commit_partition_open(bench->commit, 2, 1, &err), &err, ERROR_STORE_CORRUPT);
    bytes_put_be64(meta + COUNTER_AT, 7);
    assert_ok(engine_write(bench->engine, &section, 1, &err), &err);
    assert_ok(commit_partition_open(bench->commit, 2, 1, &err), &err);
}

static void a_group_with_a_fenced_batch_keeps_the_rest(void **state)
{
    struct bench *bench = *state;
    struct async_put gate, in, out;
    uint64_t moment = commit_moment(bench->commit);
    struct error err;

    assert_ok(engine_partition_fence(bench->engine, 2, 2, &err), &err);
    fault_engine_hold_writes(bench->engine);
    async_submit(bench, &gate, 1, "gate", "x", moment);
    fault_engine_wait_held(bench->engine);
    async_submit(bench, &out, 2, "k", "out", moment);
    async_submit(bench, &in, 1, "k", "in", moment);
    fault_engine_release_writes(bench->engine);
    assert_int_equal(async_wait(&in), 1);
    assert_int_equal(async_wait(&out), -1);
    assert_int_equal(out.code, ERROR_FENCED);
    assert_slice_equal(stored(bench, 1, "k").bytes, SLICE("in"));
    assert_int_equal(in.tx.part.stamp.lsn, 2);
    async_wait(&gate);
}

static void a_batch_over_two_partitions_is_all_or_nothing(void **state)
{
    struct bench *bench = *state;
    struct engine_op ops[] = {{ENGINE_PUT, SLICE("k"), SLICE("one")},
                              {ENGINE_PUT, SLICE("k"), SLICE("two")}};
    struct commit_part parts[] = {{.partition = 1, .epoch = 1, .ops = &ops[0], .op_count = 1},
                                  {.partition = 2, .epoch = 1, .ops = &ops[1], .op_count = 1}};
    struct commit_batch batch = {
        .parts = parts, .part_count = 2, .moment = COMMIT_NOTHING_RELIED_ON};
    struct error err;

    assert_ok(commit_run(bench->commit, &batch, &err), &err);
    assert_slice_equal(stored(bench, 1, "k").bytes, SLICE("one"));
    assert_slice_equal(stored(bench, 2, "k").bytes, SLICE("two"));
    assert_ok(engine_partition_fence(bench->engine, 2, 2, &err), &err);
    ops[0].value = SLICE("changed");
    assert_fails(commit_run(bench->commit, &batch, &err), &err, ERROR_FENCED);
    assert_slice_equal(stored(bench, 1, "k").bytes, SLICE("one"));
}

static void a_full_store_refuses_and_recovers(void **state)
{
    struct bench *bench = *state;
    struct one_put tx;
    struct error err;

    fault_engine_fill(bench->engine, true);
    for (int i = 0; i < 3; i++)
        assert_fails(commit_run(bench->commit,
                                one_put(&tx, 1, "a", "1", commit_moment(bench->commit)), &err),
                     &err, ERROR_STORE_FULL);
    fault_engine_fill(bench->engine, false);
    one_put(&tx, 1, "a", "1", commit_moment(bench->commit));
    assert_ok(commit_run(bench->commit, &tx.batch, &err), &err);
    assert_int_equal(tx.part.stamp.lsn, 1);
}

/* What a store lets go of while it writes is told apart from what it refuses afterwards. */
static void a_write_whose_outcome_the_store_does_not_know_is_in_doubt(void **state)
{
    struct bench *bench = *state;
    struct one_put tx;
    struct error err;

    fault_engine_fail_nth(bench->engine, FAULT_WRITES, 1, ERROR_STORE_POISONED, FAULT_WRITTEN);
    assert_fails(commit_run(bench->commit, one_put(&tx, 1, "a", "1", 0), &err), &err,
                 ERROR_WRITE_IN_DOUBT);
    assert_int_equal(err.status, 408);
    assert_fails(commit_run(bench->commit, one_put(&tx, 1, "b", "1", 0), &err), &err,
                 ERROR_STORE_POISONED);
    assert_int_equal(err.status, 503);
}

/* Whether the write happened or not, the numbering goes on from what is really there. */
static void unknown_outcome(struct bench *bench, enum fault_outcome outcome, uint64_t next_lsn)
{
    struct one_put tx;
    struct error err;

    assert_ok(commit_run(bench->commit, one_put(&tx, 1, "a", "1", 0), &err), &err);
    fault_engine_fail_nth(bench->engine, FAULT_WRITES, 1, ERROR_STORE_IO, outcome);
    assert_fails(
        commit_run(bench->commit, one_put(&tx, 1, "b", "2", commit_moment(bench->commit)), &err),
        &err, ERROR_STORE_IO);
    for (int i = 0; i < 3; i++)
        assert_fails(commit_run(bench->commit,
                                one_put(&tx, 1, "c", "3", commit_moment(bench->commit)), &err),
                     &err, ERROR_STORE_POISONED);
    assert_true(commit_statistics(bench->commit).poisoned);
    fault_engine_heal(bench->engine);
    one_put(&tx, 1, "c", "3", commit_moment(bench->commit));
    assert_ok(commit_run(bench->commit, &tx.batch, &err), &err);
    assert_int_equal(tx.part.stamp.lsn, next_lsn);
    assert_false(commit_statistics(bench->commit).poisoned);
}

static void a_write_of_unknown_outcome_poisons_until_the_engine_knows(void **state)
{
    unknown_outcome(*state, FAULT_WRITTEN, 3);
}

static void a_write_that_was_lost_leaves_no_gap_in_the_numbering(void **state)
{
    unknown_outcome(*state, FAULT_NOT_WRITTEN, 2);
}

static void time_never_runs_backwards_in_a_partition(void **state)
{
    struct bench *bench = *state;
    struct one_put tx;
    struct error err;

    assert_ok(commit_run(bench->commit, one_put(&tx, 1, "a", "1", 0), &err), &err);
    bench->wall_ms = 500;
    one_put(&tx, 1, "a", "2", commit_moment(bench->commit));
    assert_ok(commit_run(bench->commit, &tx.batch, &err), &err);
    assert_int_equal(tx.part.stamp.wall_ms, 1000);
    /* Not even over a restart. */
    commit_free(TAKE(bench->commit));
    bench_start(bench, (struct commit_options){0});
    one_put(&tx, 1, "a", "3", commit_moment(bench->commit));
    assert_ok(commit_run(bench->commit, &tx.batch, &err), &err);
    assert_int_equal(tx.part.stamp.wall_ms, 1000);
}

static const struct slice counter_key = {(const uint8_t *)"ccount", 6};

static int64_t counter_stored(struct bench *bench, uint32_t partition)
{
    struct engine_value value = stored(bench, partition, "ccount");
    int64_t numbers[COUNTER_NUMBERS];
    struct error err;

    if (value.found == ENGINE_ABSENT)
        return 0;
    assert_ok(counter_decode(value.bytes, numbers, &err), &err);
    return numbers[0];
}

static void counters_add_up_without_conflict_and_keep_their_limit(void **state)
{
    struct bench *bench = *state;
    struct commit_delta delta = {.key = counter_key, .amounts = {10, 1}, .first_max = 35};
    struct one_put tx;
    struct error err;

    for (int i = 0; i < 3; i++) {
        one_put(&tx, 1, arena_text(bench->arena, arena_printf(bench->arena, "k%d", i)), "x", 0);
        tx.part.deltas = &delta;
        tx.part.delta_count = 1;
        assert_ok(commit_run(bench->commit, &tx.batch, &err), &err);
    }
    one_put(&tx, 1, "k9", "x", 0);
    tx.part.deltas = &delta;
    tx.part.delta_count = 1;
    assert_fails(commit_run(bench->commit, &tx.batch, &err), &err, ERROR_LOGICAL_PARTITION_FULL);
    assert_int_equal(counter_stored(bench, 1), 30);
    delta.amounts[0] = -10;
    assert_ok(commit_run(bench->commit, &tx.batch, &err), &err);
    assert_int_equal(counter_stored(bench, 1), 20);
    /* A refused group leaves the sum alone. */
    fault_engine_fail_nth(bench->engine, FAULT_WRITES, 1, ERROR_STORE_FULL, FAULT_NOT_WRITTEN);
    tx.batch.moment = COMMIT_NOTHING_RELIED_ON;
    assert_fails(commit_run(bench->commit, &tx.batch, &err), &err, ERROR_STORE_FULL);
    assert_ok(commit_run(bench->commit, &tx.batch, &err), &err);
    assert_int_equal(counter_stored(bench, 1), 10);
}

static void stamp_into_op(struct commit_batch *batch)
{
    struct one_put *tx = CONTAINER_OF(batch, struct one_put, batch);

    bytes_put_be64((uint8_t *)tx->op.key.data + 1, tx->part.stamp.lsn);
}

static void stamps_reach_the_keys(void **state)
{
    struct bench *bench = *state;
    uint8_t key[9] = {'f'};
    struct one_put tx;
    struct engine_value value;
    struct error err;

    one_put(&tx, 1, "ignored", "fed", COMMIT_NOTHING_RELIED_ON);
    tx.op.key = slice_of(key, sizeof key);
    tx.batch.stamp = stamp_into_op;
    assert_ok(commit_run(bench->commit, &tx.batch, &err), &err);
    assert_ok(engine_get(bench->engine, NULL, 1, SLICE("f\0\0\0\0\0\0\0\1"), ENGINE_READ_ANY,
                         bench->arena, &value, &err),
              &err);
    assert_int_equal(value.found, ENGINE_FOUND);
}

static void a_full_queue_answers_busy(void **state)
{
    struct bench *bench = *state;
    struct async_put puts[3];
    struct one_put extra;
    struct error err;

    commit_free(TAKE(bench->commit));
    bench_start(bench, (struct commit_options){.queue_max = 3});
    fault_engine_hold_writes(bench->engine);
    for (int i = 0; i < 3; i++)
        async_submit(bench, &puts[i], 1, "k", "x", COMMIT_NOTHING_RELIED_ON);
    one_put(&extra, 1, "k", "x", 0)->done = async_done;
    assert_fails(commit_submit(bench->commit, &extra.batch, &err), &err, ERROR_BUSY);
    fault_engine_release_writes(bench->engine);
    for (int i = 0; i < 3; i++)
        assert_int_equal(async_wait(&puts[i]), 1);
}

static void freeing_finishes_what_is_queued(void **state)
{
    struct bench *bench = *state;
    struct async_put puts[50];

    for (int i = 0; i < 50; i++)
        async_submit(bench, &puts[i], 1, "k", "x", COMMIT_NOTHING_RELIED_ON);
    commit_free(TAKE(bench->commit));
    for (int i = 0; i < 50; i++)
        assert_int_equal(atomic_load(&puts[i].done), 1);
}

/* Transactions that read a number, add one and write it back: none may be lost. */
struct incrementer {
    struct bench *bench;
    unsigned rounds, retries;
};

static void increment(void *context)
{
    struct incrementer *own = context;
    struct bench *bench = own->bench;
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (unsigned i = 0; i < own->rounds;) {
        uint64_t moment = commit_moment(bench->commit);
        struct engine_value value;
        struct one_put tx;
        uint8_t number[8] = {0};
        struct error err;

        arena_reset(arena);
        assert_ok(
            engine_get(bench->engine, NULL, 1, SLICE("sum"), ENGINE_READ_ANY, arena, &value, &err),
            &err);
        bytes_put_be64(number,
                       (value.found == ENGINE_FOUND ? bytes_get_be64(value.bytes.data) : 0) + 1);
        one_put(&tx, 1, "sum", "", moment);
        tx.op.value = slice_of(number, sizeof number);
        if (commit_run(bench->commit, &tx.batch, &err)) {
            i++;
        } else {
            assert_int_equal(err.code, ERROR_CONFLICT);
            own->retries++;
        }
    }
}

static uint64_t sum_after_increments(struct bench *bench, unsigned threads, unsigned rounds)
{
    struct incrementer own[8];
    struct thread handles[8];

    for (unsigned i = 0; i < threads; i++) {
        own[i] = (struct incrementer){.bench = bench, .rounds = rounds};
        thread_start(&handles[i], "increment", increment, &own[i]);
    }
    for (unsigned i = 0; i < threads; i++)
        thread_join(&handles[i]);
    return bytes_get_be64(stored(bench, 1, "sum").bytes.data);
}

static void no_increment_is_lost_between_threads(void **state)
{
    struct bench *bench = *state;

    assert_int_equal(sum_after_increments(bench, 8, 200), 8 * 200);
}

static void without_validation_increments_are_lost(void **state)
{
    struct bench *bench = *state;

    commit_free(TAKE(bench->commit));
    bench_start(bench, (struct commit_options){.validation_off = true});
    assert_true(sum_after_increments(bench, 8, 200) < 8 * 200);
}

#define COMMIT_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* --- The journal ----------------------------------------------------------------------------- */

/* What the journal of a partition notes, one group per line. */
static const char *journal_text(struct bench *bench, uint32_t partition)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    CLEANUP(buf_done) struct buf text;
    struct error err;

    buf_init(&text, BUF_DEFAULT_MAX);
    assert_ok(engine_iterator_new(bench->engine, NULL, partition,
                                  journal_range((struct journal_position){0}, bench->arena), false,
                                  ENGINE_READ_ANY, &iterator, &err),
              &err);
    for (;;) {
        struct journal_position position;
        struct engine_entry entry;
        struct journal_note note;

        assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
        if (entry.found != ENGINE_FOUND)
            break;
        assert_ok(journal_key_decode(entry.key, &position, &err), &err);
        buf_printf(&text, "%llu:", (unsigned long long)position.lsn);
        while (entry.value.len) {
            assert_ok(journal_next(&entry.value, &note, &err), &err);
            buf_printf(&text, " %.*s", SLICE_ARG(note.key));
            if (note.known && note.value.found == ENGINE_ABSENT)
                buf_append_text(&text, " gone");
            if (note.known && note.key.data[0] != PARTITION_FAMILY_COUNTER &&
                note.value.found == ENGINE_FOUND)
                buf_printf(&text, "=%.*s", SLICE_ARG(note.value.bytes));
        }
        buf_append_text(&text, "\n");
    }
    return arena_text(bench->arena, buf_slice(&text));
}

static void a_tapped_partition_notes_what_its_commits_touch(void **state)
{
    struct bench *bench = *state;
    struct one_put tx;
    struct error err;

    assert_ok(commit_run(bench->commit, one_put(&tx, 1, "da", "1", 0), &err), &err);
    assert_ok(commit_partition_tap(bench->commit, 1, true, &err), &err);
    assert_ok(commit_run(bench->commit, one_put(&tx, 1, "db", "1", 1), &err), &err);
    tx.op.kind = ENGINE_DELETE;
    tx.batch.moment = 2;
    assert_ok(commit_run(bench->commit, &tx.batch, &err), &err);
    assert_ok(commit_run(bench->commit, one_put(&tx, 2, "dz", "1", 3), &err), &err);
    assert_string_equal(journal_text(bench, 1), "2: db=1\n3: db gone\n");
    assert_string_equal(journal_text(bench, 2), "");
    assert_ok(commit_partition_tap(bench->commit, 1, false, &err), &err);
    assert_ok(commit_run(bench->commit, one_put(&tx, 1, "dc", "1", 4), &err), &err);
    assert_string_equal(journal_text(bench, 1), "2: db=1\n3: db gone\n");
    assert_fails(commit_partition_tap(bench->commit, 9, true, &err), &err, ERROR_PARTITION_UNKNOWN);
}

static void sums_of_logical_partitions_are_noted_those_of_the_whole_are_not(void **state)
{
    struct bench *bench = *state;
    struct commit_delta deltas[] = {{.key = SLICE("cl1"), .amounts = {5, 1}},
                                    {.key = SLICE("ct"), .amounts = {5, 1}}};
    struct one_put tx;
    struct error err;

    assert_ok(commit_partition_tap(bench->commit, 1, true, &err), &err);
    one_put(&tx, 1, "da", "1", 0);
    tx.part.deltas = deltas;
    tx.part.delta_count = 2;
    assert_ok(commit_run(bench->commit, &tx.batch, &err), &err);
    assert_string_equal(journal_text(bench, 1), "1: da=1 cl1\n");
}

/* Turning the tap waits for the group that began without it, and turns nobody away. */
static void a_tap_waits_for_the_group_in_flight(void **state)
{
    struct bench *bench = *state;
    struct one_put tx;
    struct error err;

    assert_ok(commit_partition_tap(bench->commit, 1, true, &err), &err);
    for (int i = 0; i < 50; i++) {
        assert_ok(
            commit_run(bench->commit, one_put(&tx, 1, "dk", "1", COMMIT_NOTHING_RELIED_ON), &err),
            &err);
        assert_ok(commit_partition_tap(bench->commit, 1, i % 2, &err), &err);
    }
    /* Tapped for the first, and then for every second of them. */
    assert_int_equal(strlen(journal_text(bench, 1)) > 0, true);
    assert_non_null(strstr(journal_text(bench, 1), "1: dk=1\n"));
    assert_null(strstr(journal_text(bench, 1), "2: dk\n4: dk"));
    assert_non_null(strstr(journal_text(bench, 1), "49: dk=1\n"));
    assert_null(strstr(journal_text(bench, 1), "50: dk=1\n"));
}

static void a_part_may_say_where_its_partition_is_numbered_from(void **state)
{
    struct bench *bench = *state;
    struct commit_numbering numbering = {.lsn = 41, .wall_ms = 5000};
    struct one_put tx;
    struct error err;

    assert_ok(commit_run(bench->commit, one_put(&tx, 1, "da", "1", 0), &err), &err);
    one_put(&tx, 1, "db", "1", 1)->parts[0].numbering = &numbering;
    assert_ok(commit_run(bench->commit, &tx.batch, &err), &err);
    assert_int_equal(tx.part.stamp.lsn, 42);
    assert_int_equal(tx.part.stamp.wall_ms, 5000);
    assert_ok(commit_run(bench->commit, one_put(&tx, 1, "dc", "1", 2), &err), &err);
    assert_int_equal(tx.part.stamp.lsn, 43);
    commit_free(bench->commit);
    bench_start(bench, (struct commit_options){0});
    assert_ok(commit_partition_numbering(bench->commit, 1, &numbering, &err), &err);
    assert_int_equal(numbering.lsn, 43);
}

/* The end of a migration is the first write to a node that has just recovered. */
static void a_numbering_that_is_said_holds_when_all_are_read_anew(void **state)
{
    struct bench *bench = *state;
    struct commit_numbering numbering = {.lsn = 41, .wall_ms = 5000};
    struct one_put tx, other;
    struct error err;

    assert_ok(commit_run(bench->commit, one_put(&tx, 1, "da", "1", 0), &err), &err);
    fault_engine_fail_nth(bench->engine, FAULT_WRITES, 1, ERROR_STORE_IO, FAULT_NOT_WRITTEN);
    assert_fails(commit_run(bench->commit, one_put(&other, 2, "da", "1", 1), &err), &err,
                 ERROR_STORE_IO);
    fault_engine_heal(bench->engine);
    one_put(&tx, 1, "db", "1", 1)->parts[0].numbering = &numbering;
    assert_ok(commit_run(bench->commit, &tx.batch, &err), &err);
    assert_int_equal(tx.part.stamp.lsn, 42);
}

/* Nobody has the LSN of a batch that failed. */
static void a_numbering_that_was_not_written_is_forgotten(void **state)
{
    struct bench *bench = *state;
    struct commit_numbering numbering = {.lsn = 41, .wall_ms = 5000};
    struct one_put tx;
    struct error err;

    fault_engine_fill(bench->engine, true);
    one_put(&tx, 1, "da", "1", 0)->parts[0].numbering = &numbering;
    assert_fails(commit_run(bench->commit, &tx.batch, &err), &err, ERROR_STORE_FULL);
    fault_engine_fill(bench->engine, false);
    assert_ok(commit_run(bench->commit, one_put(&tx, 1, "db", "1", 0), &err), &err);
    assert_int_equal(tx.part.stamp.lsn, 1);
}

/* --- Holding --------------------------------------------------------------------------------- */

struct told {
    struct one_put tx;
    atomic_bool done;
};

static void told_done(struct commit_batch *batch, const struct error *err)
{
    assert_null(err);
    atomic_store(&CONTAINER_OF(batch, struct told, tx.batch)->done, true);
}

static void batches_for_a_held_partition_wait_and_others_pass_them_by(void **state)
{
    struct bench *bench = *state;
    struct told first = {0}, second = {0};
    struct one_put tx;
    struct error err;

    assert_ok(commit_partition_hold(bench->commit, 1, 1000, &err), &err);
    one_put(&first.tx, 1, "da", "1", COMMIT_NOTHING_RELIED_ON)->done = told_done;
    one_put(&second.tx, 1, "da", "2", COMMIT_NOTHING_RELIED_ON)->done = told_done;
    assert_ok(commit_submit(bench->commit, &first.tx.batch, &err), &err);
    assert_ok(commit_submit(bench->commit, &second.tx.batch, &err), &err);
    for (int i = 0; i < 3; i++)
        assert_ok(
            commit_run(bench->commit, one_put(&tx, 2, "dz", "1", COMMIT_NOTHING_RELIED_ON), &err),
            &err);
    assert_false(atomic_load(&first.done) || atomic_load(&second.done));
    assert_int_equal(commit_statistics(bench->commit).queued, 2);
    assert_ok(commit_partition_hold(bench->commit, 1, 0, &err), &err);
    assert_ok(commit_run(bench->commit, one_put(&tx, 1, "db", "1", COMMIT_NOTHING_RELIED_ON), &err),
              &err);
    assert_true(atomic_load(&first.done) && atomic_load(&second.done));
    assert_int_equal(first.tx.part.stamp.lsn + 1, second.tx.part.stamp.lsn);
    assert_fails(commit_partition_hold(bench->commit, 9, 1, &err), &err, ERROR_PARTITION_UNKNOWN);
}

static void a_hold_ends_by_itself_and_with_the_committer(void **state)
{
    struct bench *bench = *state;
    struct told last = {0};
    struct one_put tx;
    struct error err;

    assert_ok(commit_partition_hold(bench->commit, 1, 5, &err), &err);
    assert_ok(commit_run(bench->commit, one_put(&tx, 1, "da", "1", COMMIT_NOTHING_RELIED_ON), &err),
              &err);
    assert_ok(commit_partition_hold(bench->commit, 1, 1000, &err), &err);
    one_put(&last.tx, 1, "db", "1", COMMIT_NOTHING_RELIED_ON)->done = told_done;
    assert_ok(commit_submit(bench->commit, &last.tx.batch, &err), &err);
    commit_free(TAKE(bench->commit));
    assert_true(atomic_load(&last.done));
    bench_start(bench, (struct commit_options){0});
}

/* --- Keeping it still ------------------------------------------------------------------------ */

enum { FAR_MS = 60000, KEPT_MS = 50 };

static void one_put_main(void *context)
{
    struct bench *bench = context;
    struct one_put tx;
    struct error err;

    one_put(&tx, 1, "still", "1", commit_moment(bench->commit));
    assert_ok(commit_run(bench->commit, &tx.batch, &err), &err);
}

static void a_group_waits_for_those_who_keep_still_and_then_comes_first(void **state)
{
    struct bench *bench = *state;
    uint64_t moment = commit_moment(bench->commit), groups, again;
    struct thread writer;
    int64_t ended_ms;
    bool none, wrote;

    assert_true(commit_still_begin(bench->commit, clock_monotonic_ms() + FAR_MS, &groups));
    assert_true(commit_still_begin(bench->commit, 0, &again)); /* not alone */
    assert_int_equal(groups, again);
    assert_true(commit_still_end(bench->commit, again));
    thread_start(&writer, "writer", one_put_main, bench);
    while (commit_still_begin(bench->commit, 0, &again)) /* until the group waits */
        assert_true(commit_still_end(bench->commit, again));
    wrote = commit_still_wrote(bench->commit, groups, moment, 1);
    usleep(KEPT_MS * 1000);
    ended_ms = clock_monotonic_ms();
    none = commit_still_end(bench->commit, groups);
    thread_join(&writer);
    assert_slice_equal(stored(bench, 1, "still").bytes, SLICE("1"));
    if (none) /* else this thread was kept from its processor for longer than a group waits */
        assert_false(wrote);

    /* Now it is the writers' turn, for some times as long as they have waited. */
    assert_true(commit_still_begin(bench->commit, clock_monotonic_ms() + FAR_MS, &again));
    if (none)
        assert_true(clock_monotonic_ms() >= ended_ms + COMMIT_STILL_RESTS * (KEPT_MS - 1));
    assert_true(commit_still_wrote(bench->commit, again, moment, 1));
    assert_false(commit_still_wrote(bench->commit, again, moment, 2));
    assert_true(commit_still_end(bench->commit, again));
}

static void who_keeps_still_for_too_long_is_told_and_holds_up_one_group(void **state)
{
    struct bench *bench = *state;
    uint64_t moment = commit_moment(bench->commit), first, second;

    assert_true(commit_still_begin(bench->commit, clock_monotonic_ms() + FAR_MS, &first));
    one_put_main(bench);                                              /* goes on by itself */
    assert_true(commit_still_wrote(bench->commit, first, moment, 2)); /* for all it knows */
    assert_true(commit_still_begin(bench->commit, clock_monotonic_ms() + FAR_MS, &second));
    assert_int_equal(second, first + 1);
    assert_false(commit_still_end(bench->commit, first)); /* and takes nothing from the other */
    assert_false(commit_still_wrote(bench->commit, second, moment, 2));
    assert_true(commit_still_end(bench->commit, second));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        COMMIT_TEST(a_batch_is_stored_and_numbered),
        COMMIT_TEST(first_committer_wins),
        COMMIT_TEST(a_write_whose_outcome_the_store_does_not_know_is_in_doubt),
        COMMIT_TEST(keys_of_other_partitions_do_not_conflict),
        COMMIT_TEST(a_scanned_range_conflicts_with_a_write_into_it),
        COMMIT_TEST(a_moment_out_of_reach_is_told_to_run_again),
        COMMIT_TEST(what_queues_up_during_a_write_is_one_group),
        COMMIT_TEST(batches_of_one_group_are_judged_against_each_other),
        COMMIT_TEST(a_write_in_flight_wins_against_later_ones),
        COMMIT_TEST(blind_writes_of_one_key_keep_their_order),
        COMMIT_TEST(a_fenced_partition_goes_on_under_its_new_epoch),
        COMMIT_TEST(a_partition_is_not_opened_again_under_an_older_epoch),
        COMMIT_TEST(a_numbering_out_of_range_is_damage),
        COMMIT_TEST(a_group_with_a_fenced_batch_keeps_the_rest),
        COMMIT_TEST(a_batch_over_two_partitions_is_all_or_nothing),
        COMMIT_TEST(a_full_store_refuses_and_recovers),
        COMMIT_TEST(a_write_of_unknown_outcome_poisons_until_the_engine_knows),
        COMMIT_TEST(a_write_that_was_lost_leaves_no_gap_in_the_numbering),
        COMMIT_TEST(time_never_runs_backwards_in_a_partition),
        COMMIT_TEST(counters_add_up_without_conflict_and_keep_their_limit),
        COMMIT_TEST(stamps_reach_the_keys),
        COMMIT_TEST(a_full_queue_answers_busy),
        COMMIT_TEST(freeing_finishes_what_is_queued),
        COMMIT_TEST(no_increment_is_lost_between_threads),
        COMMIT_TEST(without_validation_increments_are_lost),
        cmocka_unit_test_setup_teardown(a_tapped_partition_notes_what_its_commits_touch, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            sums_of_logical_partitions_are_noted_those_of_the_whole_are_not, setup, teardown),
        cmocka_unit_test_setup_teardown(a_tap_waits_for_the_group_in_flight, setup, teardown),
        cmocka_unit_test_setup_teardown(a_part_may_say_where_its_partition_is_numbered_from, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_numbering_that_is_said_holds_when_all_are_read_anew,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_numbering_that_was_not_written_is_forgotten, setup,
                                        teardown),
        COMMIT_TEST(batches_for_a_held_partition_wait_and_others_pass_them_by),
        COMMIT_TEST(a_hold_ends_by_itself_and_with_the_committer),
        COMMIT_TEST(a_group_waits_for_those_who_keep_still_and_then_comes_first),
        COMMIT_TEST(who_keeps_still_for_too_long_is_told_and_holds_up_one_group),
    };
    return cmocka_run_group_tests_name("partition/commit", tests, NULL, NULL);
}
