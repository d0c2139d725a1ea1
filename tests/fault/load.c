/* The load that is killed: each batch has LOAD_ENTRIES keys, overwrites the client's "last" and
 * adds one to a counter, through group commit. */
#include "fault/load.h"

#include "base/bytes.h"
#include "fault/loading.h"
#include "partition/commit.h"

static struct commit *commit;

static bool batch_commit(uint32_t client, uint32_t n, struct error *err)
{
    uint8_t keys[LOAD_ENTRIES + 1][LOAD_KEY_LEN], value[LOAD_VALUE_LEN];
    struct engine_op ops[LOAD_ENTRIES + 1];
    struct slice touched = slice_of(keys[LOAD_ENTRIES], LOAD_KEY_LEN);
    struct commit_delta delta = {.key = SLICE(LOAD_COUNTER_KEY), .amounts = {1}};
    struct commit_part part = {.partition = LOAD_PARTITION,
                               .epoch = 1,
                               .ops = ops,
                               .op_count = ARRAY_LEN(ops),
                               .touched = &touched,
                               .touched_count = 1,
                               .deltas = &delta,
                               .delta_count = 1};
    struct commit_batch batch = {
        .parts = &part, .part_count = 1, .moment = COMMIT_NOTHING_RELIED_ON};

    load_value(client, n, value);
    for (uint32_t i = 0; i < LOAD_ENTRIES; i++) {
        load_key('e', client, n, i, keys[i]);
        ops[i] = (struct engine_op){ENGINE_PUT, slice_of(keys[i], LOAD_KEY_LEN),
                                    slice_of(value, sizeof value)};
    }
    load_key('l', client, 0, 0, keys[LOAD_ENTRIES]);
    ops[LOAD_ENTRIES] = (struct engine_op){ENGINE_PUT, touched, slice_of(value, sizeof value)};
    return commit_run(commit, &batch, err);
}

static bool partition_open(struct engine *engine, struct error *err)
{
    if (!engine_partition_create(engine, LOAD_PARTITION, 1, err) &&
        err->code != ERROR_PARTITION_EXISTS)
        return false;
    commit = commit_new(&(struct commit_options){.engine = engine});
    return commit_partition_open(commit, LOAD_PARTITION, 1, err);
}

int main(int argc, char **argv)
{
    return loading_main(argc, argv, &(struct loading){partition_open, batch_commit});
}
