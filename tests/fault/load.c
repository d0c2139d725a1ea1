/* The load that is killed: clients that commit numbered batches through group commit and tell on
 * standard output which ones were acknowledged.
 *
 *     load URL CLIENTS FIRST
 *
 * Client c writes batches n = FIRST, FIRST + 1, ...: each has LOAD_ENTRIES keys, overwrites the
 * client's "last" and adds one to a counter. A line "c n" means: batch n of client c is durable.
 * It ends by itself when writing fails, with the line "error CODE". */
#include "fault/load.h"

#include "base/bytes.h"
#include "base/thread.h"
#include "partition/commit.h"

#include <unistd.h>

struct client {
    struct commit *commit;
    uint32_t number, first;
};

static void say(const char *line)
{
    size_t len = strlen(line);

    if (write(STDOUT_FILENO, line, len) != (ssize_t)len)
        _exit(1);
}

static void client_commit(struct client *client, uint32_t n)
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
    struct error err;
    char line[64];

    load_value(client->number, n, value);
    for (uint32_t i = 0; i < LOAD_ENTRIES; i++) {
        load_key('e', client->number, n, i, keys[i]);
        ops[i] = (struct engine_op){ENGINE_PUT, slice_of(keys[i], LOAD_KEY_LEN),
                                    slice_of(value, sizeof value)};
    }
    load_key('l', client->number, 0, 0, keys[LOAD_ENTRIES]);
    ops[LOAD_ENTRIES] = (struct engine_op){ENGINE_PUT, touched, slice_of(value, sizeof value)};
    if (!commit_run(client->commit, &batch, &err)) {
        snprintf(line, sizeof line, "error %s\n", error_face(err.code)->name);
        say(line);
        _exit(3);
    }
    snprintf(line, sizeof line, "%u %u\n", client->number, n);
    say(line);
}

static void client_run(void *context)
{
    struct client *client = context;

    for (uint32_t n = client->first;; n++)
        client_commit(client, n);
}

static uint32_t number_of(const char *text)
{
    uint64_t number = 0;

    if (!slice_to_uint64(slice_of_text(text), &number))
        _exit(2);
    return (uint32_t)number;
}

int main(int argc, char **argv)
{
    struct client clients[LOAD_CLIENTS_MAX];
    struct thread threads[LOAD_CLIENTS_MAX];
    struct engine *engine;
    struct commit *commit;
    struct error err;
    uint32_t count;

    if (argc != 4 || (count = number_of(argv[2])) > LOAD_CLIENTS_MAX)
        return 2;
    if (!engine_open(slice_of_text(argv[1]),
                     &(struct engine_options){.write_buffer_bytes = 1 << 20}, &engine, &err)) {
        fprintf(stderr, "load: %s\n", err.message);
        return 4;
    }
    if (!engine_partition_create(engine, LOAD_PARTITION, 1, &err) &&
        err.code != ERROR_PARTITION_EXISTS) {
        fprintf(stderr, "load: %s\n", err.message);
        return 5;
    }
    commit = commit_new(&(struct commit_options){.engine = engine});
    if (!commit_partition_open(commit, LOAD_PARTITION, 1, &err)) {
        fprintf(stderr, "load: %s\n", err.message);
        return 6;
    }
    for (uint32_t i = 0; i < count; i++) {
        clients[i] = (struct client){commit, i, number_of(argv[3])};
        thread_start(&threads[i], "client", client_run, &clients[i]);
    }
    for (uint32_t i = 0; i < count; i++)
        thread_join(&threads[i]);
    return 0;
}
