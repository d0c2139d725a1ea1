/* Durable writes through group commit, and point reads, against RocksDB called bare.
 *
 * The workload is a document of 1 KB with 20 index entries, written atomically and durably. Clients
 * are slots of one driver thread that submits the next document when the last one is durable, as
 * the event loops of the server do. Candidates:
 *
 *     ours      commit_submit: validated, numbered, sorted, written by the engine
 *     bare      the same driver and the same grouping (all that has queued up), the keys sorted,
 * put into a RocksDB batch and written with one sync; the options are the engine's one sync  the
 * same documents, each written with a sync of its own
 */
#include "base/bytes.h"
#include "base/random.h"
#include "base/thread.h"
#include "engine/rocks/rocks_private.h"
#include "partition/commit.h"
#include "partition/difference.h"
#include "rounds.h"
#include "support/scratch.h"

#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
    ENTRIES = 20,
    DOCUMENT_BYTES = 1024,
    INDEX_KEY_BYTES = 60,
    CLIENTS_MAX = 64,
    PARTITION = 1,
};

static void must(bool done, const struct error *err)
{
    if (done)
        return;
    fprintf(stderr, "commit_bench: %s\n", err->message);
    exit(1);
}

static void must_rocks(char *failure)
{
    if (!failure)
        return;
    fprintf(stderr, "commit_bench: %s\n", failure);
    exit(1);
}

/* --- One document with its index entries ----------------------------------------------------- */

struct document {
    uint8_t key[24], body[DOCUMENT_BYTES];
    uint8_t index_keys[ENTRIES][INDEX_KEY_BYTES];
    struct engine_op ops[ENTRIES + 1];
};

static void document_make(struct document *document, struct random *random)
{
    document->key[0] = 'd';
    for (size_t at = 1; at + 8 <= sizeof document->key; at += 8)
        bytes_put_be64(document->key + at, random_next(random));
    for (size_t at = 0; at + 8 <= sizeof document->body; at += 8)
        bytes_put_be64(document->body + at, at % 32 ? at : random_next(random));
    document->ops[0] = (struct engine_op){ENGINE_PUT, slice_of(document->key, sizeof document->key),
                                          slice_of(document->body, sizeof document->body)};
    for (size_t i = 0; i < ENTRIES; i++) {
        uint8_t *key = document->index_keys[i];

        /* family, path, value, routing key, number */
        memset(key, 'p', INDEX_KEY_BYTES);
        key[0] = 'i';
        key[1] = (uint8_t)i;
        bytes_put_be64(key + 16, random_next(random));
        bytes_put_be64(key + 40, random_next(random));
        document->ops[i + 1] =
            (struct engine_op){ENGINE_PUT, slice_of(key, INDEX_KEY_BYTES), SLICE("")};
    }
}

/* --- The driver ------------------------------------------------------------------------------ */

struct slot {
    struct driver *driver;
    struct document document;
    struct slice touched;
    struct commit_part part;
    struct commit_batch batch;
    struct slot *next; /* finished, or in the bare queue */
};

/* Submits a slot's document; slot_finished must be called when it is durable. */
struct driver {
    void (*submit)(struct driver *driver, struct slot *slot);
    unsigned clients, documents;
    struct random random;
    struct slot *slots;

    struct mutex lock;
    struct condition wake;
    struct slot *finished; /* under lock */

    struct commit *commit;
    struct bare *bare;
};

static void slot_finished(struct slot *slot)
{
    struct driver *driver = slot->driver;
    bool was_empty;

    mutex_lock(&driver->lock);
    was_empty = !driver->finished;
    slot->next = driver->finished;
    driver->finished = slot;
    if (was_empty)
        condition_signal(&driver->wake);
    mutex_unlock(&driver->lock);
}

static void driver_start(struct driver *driver, struct slot *slot)
{
    document_make(&slot->document, &driver->random);
    driver->submit(driver, slot);
}

/* One turn: `documents` documents over `clients` slots. */
static void driver_turn(void *context)
{
    struct driver *driver = context;
    unsigned started = 0, done = 0;

    for (unsigned i = 0; i < driver->clients && started < driver->documents; i++, started++)
        driver_start(driver, &driver->slots[i]);
    while (done < driver->documents) {
        struct slot *slot, *next;

        mutex_lock(&driver->lock);
        while (!driver->finished)
            condition_wait(&driver->wake, &driver->lock);
        slot = driver->finished;
        driver->finished = NULL;
        mutex_unlock(&driver->lock);
        for (; slot; slot = next) {
            next = slot->next;
            done++;
            if (started < driver->documents) {
                started++;
                driver_start(driver, slot);
            }
        }
    }
}

static void driver_init(struct driver *driver, void (*submit)(struct driver *, struct slot *),
                        uint64_t seed)
{
    *driver = (struct driver){.submit = submit};
    driver->slots = memory_alloc_zero(CLIENTS_MAX * sizeof *driver->slots);
    for (unsigned i = 0; i < CLIENTS_MAX; i++)
        driver->slots[i].driver = driver;
    random_seed(&driver->random, seed);
    mutex_init(&driver->lock);
    condition_init(&driver->wake);
}

/* --- Ours ------------------------------------------------------------------------------------ */

static void ours_done(struct commit_batch *batch, const struct error *err)
{
    if (err)
        must(false, err);
    slot_finished(CONTAINER_OF(batch, struct slot, batch));
}

static void ours_submit(struct driver *driver, struct slot *slot)
{
    struct error err;

    slot->touched = slot->document.ops[0].key;
    slot->part = (struct commit_part){.partition = PARTITION,
                                      .epoch = 1,
                                      .ops = slot->document.ops,
                                      .op_count = ENTRIES + 1,
                                      .relied = &slot->touched,
                                      .relied_count = 1,
                                      .touched = &slot->touched,
                                      .touched_count = 1,
                                      .number_count = 1};
    slot->batch = (struct commit_batch){.parts = &slot->part,
                                        .part_count = 1,
                                        .moment = commit_moment(driver->commit),
                                        .done = ours_done};
    must(commit_submit(driver->commit, &slot->batch, &err), &err);
}

/* --- Bare ------------------------------------------------------------------------------------ */

struct bare {
    rocksdb_t *db;
    rocksdb_writeoptions_t *durable;
    rocksdb_writebatch_t *batch;
    struct mutex lock;
    struct condition wake;
    struct slot *queue; /* under lock */
    bool stopping;
    bool group;
    struct thread thread;
    const struct engine_op *sorted[CLIENTS_MAX * (ENTRIES + 1)];
};

static int op_compare(const void *left, const void *right)
{
    return slice_compare((*(const struct engine_op *const *)left)->key,
                         (*(const struct engine_op *const *)right)->key);
}

/* A whole group, or one document, as one synced batch. */
static void bare_write(struct bare *bare, struct slot *first, struct slot *end)
{
    char key[4 + INDEX_KEY_BYTES] = {0, 0, 0, PARTITION};
    char *failure = NULL;
    size_t count = 0;

    for (struct slot *slot = first; slot != end; slot = slot->next)
        for (size_t i = 0; i <= ENTRIES; i++)
            bare->sorted[count++] = &slot->document.ops[i];
    qsort(bare->sorted, count, sizeof bare->sorted[0], op_compare);
    rocksdb_writebatch_clear(bare->batch);
    for (size_t i = 0; i < count; i++) {
        const struct engine_op *op = bare->sorted[i];

        memcpy(key + 4, op->key.data, op->key.len);
        rocksdb_writebatch_put(bare->batch, key, 4 + op->key.len, (const char *)op->value.data,
                               op->value.len);
    }
    rocksdb_write(bare->db, bare->durable, bare->batch, &failure);
    must_rocks(failure);
}

static void bare_main(void *context)
{
    struct bare *bare = context;

    for (;;) {
        struct slot *slot, *next;

        mutex_lock(&bare->lock);
        while (!bare->queue && !bare->stopping)
            condition_wait(&bare->wake, &bare->lock);
        slot = bare->queue;
        bare->queue = NULL;
        mutex_unlock(&bare->lock);
        if (!slot)
            return;
        if (bare->group)
            bare_write(bare, slot, NULL);
        for (; slot; slot = next) {
            next = slot->next;
            if (!bare->group)
                bare_write(bare, slot, next);
            slot_finished(slot);
        }
    }
}

static void bare_submit(struct driver *driver, struct slot *slot)
{
    struct bare *bare = driver->bare;
    bool was_empty;

    mutex_lock(&bare->lock);
    was_empty = !bare->queue;
    slot->next = bare->queue;
    bare->queue = slot;
    if (was_empty)
        condition_signal(&bare->wake);
    mutex_unlock(&bare->lock);
}

static void bare_init(struct bare *bare, const char *path, bool group)
{
    rocksdb_cache_t *cache = rocksdb_cache_create_lru(64 << 20);
    struct error err;
    rocksdb_options_t *options = rocks_options_new(
        rocks_sizes_of(0, &(struct rocks_sizes){0}).write_buffer, false, cache, &err);
    char *failure = NULL;

    must(options != NULL, &err);
    *bare = (struct bare){.group = group};
    bare->db = rocksdb_open(options, path, &failure);
    must_rocks(failure);
    bare->durable = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(bare->durable, 1);
    bare->batch = rocksdb_writebatch_create();
    mutex_init(&bare->lock);
    condition_init(&bare->wake);
    thread_start(&bare->thread, "bare", bare_main, bare);
}

static void bare_stop(struct bare *bare)
{
    mutex_lock(&bare->lock);
    bare->stopping = true;
    condition_signal(&bare->wake);
    mutex_unlock(&bare->lock);
    thread_join(&bare->thread);
    rocksdb_close(bare->db);
}

/* --- The device itself ----------------------------------------------------------------------- */

static void device_print(const struct scratch *scratch)
{
    enum { SYNCS = 101 };
    double times[SYNCS];
    char page[24 * 1024] = {1};
    int fd = open(scratch_path(scratch, "device"), O_WRONLY | O_CREAT, 0600);

    for (int i = 0; i < SYNCS; i++) {
        uint64_t start;

        if (write(fd, page, sizeof page) != sizeof page)
            exit(1);
        start = clock_monotonic_ns();
        fdatasync(fd);
        times[i] = (double)(clock_monotonic_ns() - start) / 1000;
        for (int at = i; at > 0 && times[at] < times[at - 1]; at--) {
            double swap = times[at];

            times[at] = times[at - 1];
            times[at - 1] = swap;
        }
    }
    close(fd);
    printf("  device: fdatasync after 24 KB takes %.0f us (median; %.0f to %.0f)\n",
           times[SYNCS / 2], times[0], times[SYNCS - 1]);
}

/* --- The comparisons ------------------------------------------------------------------------- */

struct benches {
    struct scratch scratch;
    struct engine *engine;
    struct commit *commit;
    struct driver ours, bare, single;
    struct bare bare_store, single_store;
};

static void benches_init(struct benches *benches)
{
    struct error err;
    char url[200];

    scratch_init(&benches->scratch);
    snprintf(url, sizeof url, "rocksdb:%s", scratch_path(&benches->scratch, "ours"));
    must(engine_open(slice_of_text(url), &(struct engine_options){0}, &benches->engine, &err),
         &err);
    must(engine_partition_create(benches->engine, PARTITION, 1, &err), &err);
    benches->commit = commit_new(&(struct commit_options){.engine = benches->engine});
    must(commit_partition_open(benches->commit, PARTITION, 1, &err), &err);
    driver_init(&benches->ours, ours_submit, 1);
    driver_init(&benches->bare, bare_submit, 1);
    driver_init(&benches->single, bare_submit, 1);
    bare_init(&benches->bare_store, scratch_path(&benches->scratch, "bare"), true);
    bare_init(&benches->single_store, scratch_path(&benches->scratch, "single"), false);
    benches->ours.commit = benches->commit;
    benches->bare.bare = &benches->bare_store;
    benches->single.bare = &benches->single_store;
}

static void benches_done(struct benches *benches)
{
    commit_free(benches->commit);
    engine_close(benches->engine);
    bare_stop(&benches->bare_store);
    bare_stop(&benches->single_store);
    scratch_done(&benches->scratch);
}

static void writes_compare(struct benches *benches, unsigned clients, unsigned documents)
{
    struct rounds_candidate candidates[] = {
        {"ours", driver_turn, &benches->ours},
        {"bare, same grouping", driver_turn, &benches->bare},
        {"one sync per write", driver_turn, &benches->single},
    };
    struct driver *drivers[] = {&benches->ours, &benches->bare, &benches->single};
    uint64_t groups = commit_statistics(benches->commit).groups;
    uint64_t batches = commit_statistics(benches->commit).batches;
    char name[120];

    for (size_t i = 0; i < ARRAY_LEN(drivers); i++) {
        drivers[i]->clients = clients;
        drivers[i]->documents = i == 2 ? documents / 8 : documents;
    }
    snprintf(name, sizeof name, "durable writes, %u clients", clients);
    rounds_run(candidates, ARRAY_LEN(candidates), ROUNDS_DEFAULT);
    for (size_t i = 0; i < ARRAY_LEN(candidates); i++)
        rounds_print(name, &candidates[i]);
    groups = commit_statistics(benches->commit).groups - groups;
    batches = commit_statistics(benches->commit).batches - batches;
    printf("  ours: %.1f documents per group; processor %.0f %% of one core\n",
           (double)batches / (double)groups,
           100 * candidates[0].cpu.median_ns / candidates[0].wall.median_ns);
    device_print(&benches->scratch);
    snprintf(name, sizeof name, "durable writes, %u clients, documents/s", clients);
    rounds_ratio(name, rounds_per_wall_s(&candidates[0], documents),
                 rounds_per_wall_s(&candidates[1], documents), "bare RocksDB, same grouping");
    rounds_ratio(name, rounds_per_wall_s(&candidates[0], documents),
                 rounds_per_wall_s(&candidates[2], documents / 8), "one sync per write");
    snprintf(name, sizeof name, "durable writes, %u clients, documents per CPU second", clients);
    rounds_ratio(name, rounds_per_cpu_s(&candidates[0], documents),
                 rounds_per_cpu_s(&candidates[1], documents), "bare RocksDB, same grouping");
}

/* Overwrites of known documents: all entries again, or only those that changed. */
struct overwriter {
    struct commit *commit;
    struct random random;
    struct document *documents;
    unsigned count, changed, turns;
    bool everything;
    uint64_t entries, overwrites;
};

static void overwrite(struct overwriter *own, struct document *document)
{
    struct document before = *document;
    struct partition_entry old_entries[ENTRIES], new_entries[ENTRIES];
    struct engine_op ops[2 * ENTRIES + 1];
    struct commit_part part = {.partition = PARTITION, .epoch = 1, .ops = ops};
    struct commit_batch batch = {
        .parts = &part, .part_count = 1, .moment = COMMIT_NOTHING_RELIED_ON};
    struct error err;
    size_t count = 0;

    for (unsigned i = 0; i < own->changed; i++)
        bytes_put_be64(document->index_keys[i * (ENTRIES / own->changed)] + 16,
                       random_next(&own->random));
    for (size_t i = 0; i < ENTRIES; i++) {
        old_entries[i] =
            (struct partition_entry){slice_of(before.index_keys[i], INDEX_KEY_BYTES), SLICE("")};
        new_entries[i] =
            (struct partition_entry){slice_of(document->index_keys[i], INDEX_KEY_BYTES), SLICE("")};
    }
    if (own->everything)
        for (size_t i = 0; i < ENTRIES; i++) {
            if (memcmp(before.index_keys[i], document->index_keys[i], INDEX_KEY_BYTES) != 0)
                ops[count++] = (struct engine_op){ENGINE_DELETE, old_entries[i].key, SLICE_NONE};
            ops[count++] = (struct engine_op){ENGINE_PUT, new_entries[i].key, SLICE("")};
        }
    else
        count = partition_difference(old_entries, ENTRIES, new_entries, ENTRIES, ops);
    own->entries += count;
    own->overwrites++;
    ops[count++] = document->ops[0];
    part.op_count = count;
    must(commit_run(own->commit, &batch, &err), &err);
}

static void overwrite_turn(void *context)
{
    struct overwriter *own = context;

    for (unsigned i = 0; i < own->count; i++)
        overwrite(own, &own->documents[i]);
}

static void overwrites_compare(void)
{
    enum { DOCUMENTS = 200 };
    CLEANUP(engine_close) struct engine *engine = NULL;
    struct overwriter own[2];
    struct rounds_candidate candidates[] = {{"only what changed", overwrite_turn, &own[0]},
                                            {"every entry", overwrite_turn, &own[1]}};
    struct commit *commit;
    struct error err;

    /* In memory: the cost of the entries, not of the disk. */
    must(engine_open(SLICE("memory:"), &(struct engine_options){0}, &engine, &err), &err);
    must(engine_partition_create(engine, PARTITION, 1, &err), &err);
    commit = commit_new(&(struct commit_options){.engine = engine});
    must(commit_partition_open(commit, PARTITION, 1, &err), &err);
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        own[i] = (struct overwriter){
            .commit = commit, .count = DOCUMENTS, .changed = 2, .everything = i == 1};
        random_seed(&own[i].random, 100 + i);
        own[i].documents = memory_alloc_zero(DOCUMENTS * sizeof(struct document));
        for (unsigned d = 0; d < DOCUMENTS; d++)
            document_make(&own[i].documents[d], &own[i].random);
        overwrite_turn(&own[i]);
        own[i].entries = own[i].overwrites = 0;
    }
    rounds_run(candidates, 2, ROUNDS_DEFAULT);
    rounds_print("overwrites changing 2 of 20 values", &candidates[0]);
    rounds_print("overwrites changing 2 of 20 values", &candidates[1]);
    rounds_ratio("index operations per overwrite that changes 2 of 20 values (less is better)",
                 (double)own[0].entries / (double)own[0].overwrites,
                 (double)own[1].entries / (double)own[1].overwrites, "every entry again");
    rounds_ratio("overwrites changing 2 of 20 values per CPU second",
                 rounds_per_cpu_s(&candidates[0], DOCUMENTS),
                 rounds_per_cpu_s(&candidates[1], DOCUMENTS), "every entry again");
    commit_free(commit);
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        memory_free(own[i].documents);
}

/* --- Point reads ----------------------------------------------------------------------------- */

enum { READ_KEYS = 20000, READS_PER_TURN = 20000 };

struct reader {
    struct engine *engine;
    rocksdb_t *db;
    rocksdb_readoptions_t *options;
    struct arena *arena;
    struct random random;
};

static void read_key(struct random *random, uint8_t ret_key[28])
{
    bytes_put_be32(ret_key, PARTITION);
    memset(ret_key + 4, 'd', 24);
    bytes_put_be32(ret_key + 8, (uint32_t)random_below(random, READ_KEYS));
}

static void read_ours(void *context)
{
    struct reader *reader = context;

    for (int i = 0; i < READS_PER_TURN; i++) {
        struct engine_value value;
        uint8_t key[28];
        struct error err;

        read_key(&reader->random, key);
        arena_reset(reader->arena);
        must(engine_get(reader->engine, NULL, PARTITION, slice_of(key + 4, 24), ENGINE_READ_CACHED,
                        reader->arena, &value, &err),
             &err);
        rounds_keep(value.bytes.data);
    }
}

static void read_bare(void *context)
{
    struct reader *reader = context;

    for (int i = 0; i < READS_PER_TURN; i++) {
        char *failure = NULL, *value;
        uint8_t key[28];
        size_t len;

        read_key(&reader->random, key);
        value =
            rocksdb_get(reader->db, reader->options, (const char *)key, sizeof key, &len, &failure);
        must_rocks(failure);
        rounds_keep(value);
        rocksdb_free(value);
    }
}

static void reads_fill(struct engine *engine)
{
    struct random random;
    uint8_t body[DOCUMENT_BYTES];

    random_seed(&random, 3);
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (uint8_t)random_next(&random);
    for (uint32_t k = 0; k < READ_KEYS; k += 500) {
        uint8_t keys[500][24];
        struct engine_op ops[500];
        struct engine_section section = {
            .partition = PARTITION, .epoch = 1, .ops = ops, .count = 500};
        struct error err;

        for (uint32_t i = 0; i < 500; i++) {
            memset(keys[i], 'd', 24);
            bytes_put_be32(keys[i] + 4, k + i);
            ops[i] =
                (struct engine_op){ENGINE_PUT, slice_of(keys[i], 24), slice_of(body, sizeof body)};
        }
        must(engine_write(engine, &section, 1, &err), &err);
    }
}

static void reads_compare(struct benches *benches)
{
    CLEANUP(engine_close) struct engine *engine = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct reader reader = {.arena = arena};
    struct rounds_candidate candidates[] = {{"ours", read_ours, &reader},
                                            {"bare rocksdb_get", read_bare, &reader}};
    struct error err;
    char url[200];

    snprintf(url, sizeof url, "rocksdb:%s", scratch_path(&benches->scratch, "reads"));
    must(engine_open(slice_of_text(url), &(struct engine_options){0}, &engine, &err), &err);
    must(engine_partition_create(engine, PARTITION, 1, &err), &err);
    reads_fill(engine);
    reader.engine = engine;
    reader.db = rocks_of(engine)->db;
    reader.options = rocksdb_readoptions_create();
    random_seed(&reader.random, 4);
    read_bare(&reader);
    read_bare(&reader);
    rounds_run(candidates, 2, ROUNDS_DEFAULT);
    rounds_print("point reads of 1 KB, warm", &candidates[0]);
    rounds_print("point reads of 1 KB, warm", &candidates[1]);
    rounds_ratio("point reads of 1 KB, warm, per CPU second",
                 rounds_per_cpu_s(&candidates[0], READS_PER_TURN),
                 rounds_per_cpu_s(&candidates[1], READS_PER_TURN), "bare rocksdb_get");
    rocksdb_readoptions_destroy(reader.options);
}

int main(void)
{
    struct benches benches;

    benches_init(&benches);
    writes_compare(&benches, 1, 160);
    writes_compare(&benches, 8, 800);
    writes_compare(&benches, 64, 4000);
    overwrites_compare();
    reads_compare(&benches);
    benches_done(&benches);
    return 0;
}
