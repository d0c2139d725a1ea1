/* Items created, read, replaced and patched through items.h, against RocksDB called bare.
 *
 * An item has about 1 KB and 20 indexed values; a replace changes three of them, a patch two.
 * Clients are threads, each doing one operation after another. Candidates:
 *
 *     ours   item_operation_run: routed, read under a snapshot, differences
 * found, validated, numbered, written by group commit bare   a rocksdb_get of the item, then the
 * very puts and deletes that ours makes of the operation, made ahead of time; a writer sorts all
 * that has queued up and writes it with one sync; the options are the engine's
 *
 * What reaches the device is asked of the kernel (write_bytes of /proc/self/io), for a fill of a
 * fresh node up to its closing. */
#include "base/bytes.h"
#include "base/thread.h"
#include "definition/names.h"
#include "document/bson.h"
#include "document/order.h"
#include "engine/rocks/rocks_private.h"
#include "item/patch.h"
#include "partition/layout.h"
#include "rounds.h"
#include "space.h"
#include "support/scratch.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CLIENTS_MAX = 64,
    TURNS = ROUNDS_DEFAULT + 1, /* one to warm up */
    ITEMS = 2000,               /* that are read, replaced and patched */
    READS = 40000,
    PARTITION = 1,
    META_BYTES = 33,
};

static void must_rocks(char *failure)
{
    if (!failure)
        return;
    fprintf(stderr, "items_bench: %s\n", failure);
    exit(1);
}

/* --- Operations, made ahead of time ---------------------------------------------------------- */

enum kind { CREATE, REPLACE, PATCH, READ };

/* One operation, as our client gives it and as it ends up in the engine. */
struct operation {
    struct bench_item item;
    const struct patch *patch;
    struct slice key; /* of the item, in RocksDB */
    struct engine_op *ops;
    size_t op_count;
};

struct plan {
    enum kind kind;
    struct arena *arena;
    struct operation *operations; /* of all turns */
    size_t per_turn;
    uint64_t item_bytes; /* BSON of all */
};

/* What the items of a plan are before its next operation on them. */
struct state {
    struct slice document;
    uint64_t lsn;
};

static struct slice engine_key(struct arena *arena, struct slice key)
{
    uint8_t *bytes = arena_alloc(arena, ROCKS_PREFIX_LEN + key.len);

    bytes_put_be32(bytes, PARTITION);
    memcpy(bytes + ROCKS_PREFIX_LEN, key.data, key.len);
    return slice_of(bytes, ROCKS_PREFIX_LEN + key.len);
}

static struct slice item_key_of(const struct bench_space *space, const struct bench_item *item,
                                struct slice *ret_logical, struct arena *arena)
{
    CLEANUP(buf_done) struct buf key;

    *ret_logical = item_logical(&space->definition.key, &item->key, arena);
    buf_init(&key, BUF_DEFAULT_MAX);
    buf_append_slice(&key, *ret_logical);
    document_key_append(DOCUMENT_ORDER_SQL, &item->id, &key);
    return arena_copy(arena, buf_slice(&key));
}

/* The write set of a change, copied with the engine's prefix, and the counter of the logical
 * partition; what a group writes once is added by the writer. */
static void operation_prepare(struct operation *operation, const struct bench_space *space,
                              uint64_t n, uint64_t lsn, struct state *state, struct arena *arena)
{
    struct slice logical;
    struct slice key = item_key_of(space, &operation->item, &logical, arena);
    struct item_scope scope = item_space_scope(&space->space, logical);
    struct item before = {.header = {.number = partition_number(PARTITION, n),
                                     .lsn = state->lsn,
                                     .origin = PARTITION,
                                     .policy_version = 1},
                          .key = key,
                          .document = state->document};
    struct write_set_change *change = ARENA_NEW(arena, struct write_set_change);
    static const uint8_t counter[32];
    struct write_set *set;
    struct commit_part part;
    struct error err;

    *change = (struct write_set_change){
        .key = key, .before = state->lsn ? &before : NULL, .after = operation->item.document};
    bench_must(write_set_build(&scope, change, 1, arena, &set, &part, &err), &err);
    write_set_stamp(set, &(struct commit_stamp){.lsn = lsn,
                                                .first_number = partition_number(PARTITION, n),
                                                .wall_ms = 1700000000000});
    operation->key = engine_key(arena, item_family_key(arena, PARTITION_FAMILY_ITEM, key));
    operation->ops = ARENA_ARRAY(arena, struct engine_op, part.op_count + 1);
    operation->op_count = part.op_count + 1;
    for (size_t i = 0; i < part.op_count; i++)
        operation->ops[i] = (struct engine_op){part.ops[i].kind, engine_key(arena, part.ops[i].key),
                                               part.ops[i].value};
    operation->ops[part.op_count] = (struct engine_op){
        ENGINE_PUT, engine_key(arena, part.deltas[0].key), slice_of(counter, sizeof counter)};
    *state = (struct state){.document = operation->item.document, .lsn = lsn};
}

/* [{set /amount}, {incr /count}] */
static const struct patch *patch_make(const struct bench_space *space, uint64_t salt,
                                      struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    const struct patch *patch;
    struct document_value body;
    struct error err;
    char index[DOCUMENT_INDEX_SIZE];
    size_t begin, inner;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    inner = document_append_object_begin(&buf, document_index_key(0, index));
    document_append_string(&buf, SLICE("op"), SLICE("set"));
    document_append_string(&buf, SLICE("path"), SLICE("/amount"));
    document_append_double(&buf, SLICE("value"), (double)salt + 0.25);
    document_end(&buf, inner);
    inner = document_append_object_begin(&buf, document_index_key(1, index));
    document_append_string(&buf, SLICE("op"), SLICE("incr"));
    document_append_string(&buf, SLICE("path"), SLICE("/count"));
    document_append_int32(&buf, SLICE("value"), 1);
    document_end(&buf, inner);
    document_end(&buf, begin);
    body = document_array(arena_copy(arena, buf_slice(&buf)));
    bench_must(patch_parse(&body, definition_names(DEFINITION_IDENTITY_ID),
                           space->definition.key.paths, space->definition.key.path_count, arena,
                           &patch, &err),
               &err);
    return patch;
}

static void operation_make(struct plan *plan, size_t at, const struct bench_space *space,
                           struct state *states, uint64_t first)
{
    struct operation *operation = &plan->operations[at];
    uint64_t n = plan->kind == CREATE ? first + at : at % ITEMS;
    struct state fresh = {0}, *state = plan->kind == CREATE ? &fresh : &states[n];
    struct error err;

    operation->item =
        bench_item_make(space, n, plan->kind == REPLACE ? first + at : 0, plan->arena);
    if (plan->kind == PATCH) {
        CLEANUP(buf_done) struct buf after;

        operation->patch = patch_make(space, first + at, plan->arena);
        buf_init(&after, BUF_DEFAULT_MAX);
        bench_must(patch_apply(operation->patch, state->document, &after, &err), &err);
        operation->item.document = arena_copy(plan->arena, buf_slice(&after));
    }
    operation_prepare(operation, space, n, first + at + 1, state, plan->arena);
    plan->item_bytes += operation->item.document.len;
}

/* first: the number of the first item to create; else any number higher than the ones before. */
static void plan_init(struct plan *plan, enum kind kind, const struct bench_space *space,
                      size_t turns, size_t per_turn, struct state *states, uint64_t first)
{
    *plan = (struct plan){.kind = kind, .arena = arena_new(), .per_turn = per_turn};
    plan->operations = ARENA_ARRAY(plan->arena, struct operation, turns * per_turn);
    memset(plan->operations, 0, turns * per_turn * sizeof *plan->operations);
    for (size_t i = 0; i < turns * per_turn; i++)
        operation_make(plan, i, space, states, first);
}

/* --- Clients --------------------------------------------------------------------------------- */

/* A candidate: how it does one operation, and where it stands in the plan. */
struct runner {
    const struct plan *plan;
    unsigned clients;
    size_t turn;
    atomic_size_t next, end;
    void (*run)(struct runner *runner, const struct operation *operation, struct arena *arena);
    struct bench_space *space;
    struct bare *bare;
};

static void client_main(void *context)
{
    struct runner *runner = context;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t at;

    while ((at = atomic_fetch_add(&runner->next, 1)) < atomic_load(&runner->end)) {
        arena_reset(arena);
        if (runner->plan->kind == READ)
            at = at * 7919 % ITEMS;
        runner->run(runner, &runner->plan->operations[at], arena);
    }
}

static void runner_turn(void *context)
{
    struct runner *runner = context;
    struct thread threads[CLIENTS_MAX];

    atomic_store(&runner->next, runner->turn * runner->plan->per_turn);
    atomic_store(&runner->end, (runner->turn + 1) * runner->plan->per_turn);
    for (unsigned i = 0; i < runner->clients; i++)
        thread_start(&threads[i], "client", client_main, runner);
    for (unsigned i = 0; i < runner->clients; i++)
        thread_join(&threads[i]);
    runner->turn++;
}

static void ours_run(struct runner *runner, const struct operation *operation, struct arena *arena)
{
    struct item_operation op = {.space = &runner->space->space,
                                .arena = arena,
                                .key = operation->item.key,
                                .id = operation->item.id};
    struct error err;

    switch (runner->plan->kind) {
    case CREATE:
    case REPLACE:
        op.verb = runner->plan->kind == CREATE ? ITEM_CREATE : ITEM_REPLACE;
        op.document = operation->item.document;
        break;
    case PATCH:
        op.verb = ITEM_CHANGE;
        op.make = item_make_patched;
        op.context = (void *)operation->patch;
        break;
    case READ:
        op.verb = ITEM_READ;
        break;
    }
    bench_must(item_operation_run(&op, &err), &err);
    rounds_keep(op.result.item.document.data);
}

/* --- Bare ------------------------------------------------------------------------------------ */

/* An operation that waits for its sync. */
struct waiting {
    const struct operation *operation;
    struct waiting *next;
    struct mutex lock;
    struct condition wake;
    bool done;
};

struct bare {
    rocksdb_options_t *options;
    rocksdb_t *db;
    rocksdb_readoptions_t *read;
    rocksdb_writeoptions_t *durable;
    rocksdb_writebatch_t *batch;
    struct mutex lock;
    struct condition wake;
    struct waiting *queue; /* under lock */
    bool stopping;
    uint64_t items, groups; /* written, by the thread */
    struct thread thread;
    const struct engine_op **sorted;
    size_t capacity;
};

static int op_compare(const void *left, const void *right)
{
    return slice_compare((*(const struct engine_op *const *)left)->key,
                         (*(const struct engine_op *const *)right)->key);
}

static void bare_write(struct bare *bare, const struct waiting *first)
{
    static const char meta_key[] = {0, 0, 0, PARTITION, PARTITION_FAMILY_META};
    static const char total_key[] = {0, 0, 0, PARTITION, PARTITION_FAMILY_COUNTER, 't'};
    static const char zeros[META_BYTES];
    char *failure = NULL;
    size_t count = 0;

    for (const struct waiting *at = first; at; at = at->next) {
        while (count + at->operation->op_count > bare->capacity) {
            bare->capacity = bare->capacity ? 2 * bare->capacity : 1024;
            bare->sorted = memory_realloc(bare->sorted,
                                          memory_array_size(bare->capacity, sizeof *bare->sorted));
        }
        for (size_t i = 0; i < at->operation->op_count; i++)
            bare->sorted[count++] = &at->operation->ops[i];
    }
    qsort(bare->sorted, count, sizeof *bare->sorted, op_compare);
    rocksdb_writebatch_clear(bare->batch);
    rocksdb_writebatch_put(bare->batch, meta_key, sizeof meta_key, zeros, META_BYTES);
    rocksdb_writebatch_put(bare->batch, total_key, sizeof total_key, zeros, 32);
    for (size_t i = 0; i < count; i++) {
        const struct engine_op *op = bare->sorted[i];

        if (op->kind == ENGINE_PUT)
            rocksdb_writebatch_put(bare->batch, (const char *)op->key.data, op->key.len,
                                   (const char *)op->value.data, op->value.len);
        else
            rocksdb_writebatch_delete(bare->batch, (const char *)op->key.data, op->key.len);
    }
    rocksdb_write(bare->db, bare->durable, bare->batch, &failure);
    must_rocks(failure);
    bare->groups++;
    for (const struct waiting *at = first; at; at = at->next)
        bare->items++;
}

static void bare_main(void *context)
{
    struct bare *bare = context;

    for (;;) {
        struct waiting *waiting, *next;

        mutex_lock(&bare->lock);
        while (!bare->queue && !bare->stopping)
            condition_wait(&bare->wake, &bare->lock);
        waiting = bare->queue;
        bare->queue = NULL;
        mutex_unlock(&bare->lock);
        if (!waiting)
            return;
        bare_write(bare, waiting);
        for (; waiting; waiting = next) {
            next = waiting->next; /* it is gone once its client knows */
            mutex_lock(&waiting->lock);
            waiting->done = true;
            condition_signal(&waiting->wake);
            mutex_unlock(&waiting->lock);
        }
    }
}

static void bare_wait(struct bare *bare, struct waiting *waiting)
{
    mutex_init(&waiting->lock);
    condition_init(&waiting->wake);
    mutex_lock(&bare->lock);
    waiting->next = bare->queue;
    bare->queue = waiting;
    condition_signal(&bare->wake);
    mutex_unlock(&bare->lock);
    mutex_lock(&waiting->lock);
    while (!waiting->done)
        condition_wait(&waiting->wake, &waiting->lock);
    mutex_unlock(&waiting->lock);
    condition_done(&waiting->wake);
    mutex_done(&waiting->lock);
}

static void bare_run(struct runner *runner, const struct operation *operation,
                     struct arena *arena UNUSED)
{
    struct waiting waiting = {.operation = operation};
    char *failure = NULL, *value;
    size_t len;

    value = rocksdb_get(runner->bare->db, runner->bare->read, (const char *)operation->key.data,
                        operation->key.len, &len, &failure);
    must_rocks(failure);
    rounds_keep(value);
    rocksdb_free(value);
    if (runner->plan->kind != READ)
        bare_wait(runner->bare, &waiting);
}

static void bare_open(struct bare *bare, const char *path)
{
    rocksdb_cache_t *cache = rocksdb_cache_create_lru(64 << 20);
    char *failure = NULL;
    struct error err;

    *bare = (struct bare){
        .options = rocks_options_new(rocks_sizes_of(0, &(struct rocks_sizes){0}).write_buffer,
                                     false, cache, &err)};
    bench_must(bare->options != NULL, &err);
    rocksdb_cache_destroy(cache);
    bare->db = rocksdb_open(bare->options, path, &failure);
    must_rocks(failure);
    bare->read = rocksdb_readoptions_create();
    bare->durable = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(bare->durable, 1);
    bare->batch = rocksdb_writebatch_create();
    mutex_init(&bare->lock);
    condition_init(&bare->wake);
    thread_start(&bare->thread, "bare", bare_main, bare);
}

static void bare_close(struct bare *bare)
{
    mutex_lock(&bare->lock);
    bare->stopping = true;
    condition_signal(&bare->wake);
    mutex_unlock(&bare->lock);
    thread_join(&bare->thread);
    rocksdb_writebatch_destroy(bare->batch);
    rocksdb_writeoptions_destroy(bare->durable);
    rocksdb_readoptions_destroy(bare->read);
    rocksdb_close(bare->db);
    rocksdb_options_destroy(bare->options);
    memory_free(bare->sorted);
    condition_done(&bare->wake);
    mutex_done(&bare->lock);
}

/* --- The comparisons ------------------------------------------------------------------------- */

struct benches {
    struct scratch scratch;
    struct bench_space space;
    struct bare bare;
    struct state states[ITEMS];
    uint64_t created;     /* items there are, and LSNs given in plans */
    struct plan plans[4]; /* kept: the states point into them */
    size_t plan_count;
};

static void compare(struct benches *benches, const struct plan *plan, const char *verb,
                    unsigned clients)
{
    struct runner ours = {
        .plan = plan, .clients = clients, .run = ours_run, .space = &benches->space};
    struct runner bare = {
        .plan = plan, .clients = clients, .run = bare_run, .bare = &benches->bare};
    struct rounds_candidate candidates[] = {{"ours", runner_turn, &ours},
                                            {"bare", runner_turn, &bare}};
    struct commit_statistics before = commit_statistics(benches->space.commit), after;
    uint64_t bare_items = benches->bare.items, bare_groups = benches->bare.groups;
    double work = (double)plan->per_turn;
    char name[120];

    rounds_run(candidates, ARRAY_LEN(candidates), ROUNDS_DEFAULT);
    snprintf(name, sizeof name, "items %s, %u clients", verb, clients);
    for (size_t i = 0; i < ARRAY_LEN(candidates); i++)
        rounds_print(name, &candidates[i]);
    after = commit_statistics(benches->space.commit);
    if (plan->kind != READ)
        printf("  items per group: ours %.1f, bare %.1f\n",
               (double)(after.batches - before.batches) / (double)(after.groups - before.groups),
               (double)(benches->bare.items - bare_items) /
                   (double)(benches->bare.groups - bare_groups));
    snprintf(name, sizeof name, "items %s per second, %u clients", verb, clients);
    rounds_ratio(name, rounds_per_wall_s(&candidates[0], work),
                 rounds_per_wall_s(&candidates[1], work), "bare RocksDB, same key operations");
    snprintf(name, sizeof name, "items %s per CPU second, %u clients", verb, clients);
    rounds_ratio(name, rounds_per_cpu_s(&candidates[0], work),
                 rounds_per_cpu_s(&candidates[1], work), "bare RocksDB, same key operations");
}

static void writes_compare(struct benches *benches, enum kind kind, const char *verb,
                           unsigned clients, size_t per_turn)
{
    struct plan *plan = &benches->plans[benches->plan_count++];

    plan_init(plan, kind, &benches->space, TURNS, per_turn, benches->states, benches->created);
    benches->created += TURNS * per_turn;
    compare(benches, plan, verb, clients);
}

/* The first items, which everything else than creation is about. */
static void items_fill(struct benches *benches)
{
    struct plan *plan = &benches->plans[benches->plan_count++];
    struct runner ours = {
        .plan = plan, .clients = CLIENTS_MAX, .run = ours_run, .space = &benches->space};
    struct runner bare = {
        .plan = plan, .clients = CLIENTS_MAX, .run = bare_run, .bare = &benches->bare};

    plan_init(plan, CREATE, &benches->space, 1, ITEMS, benches->states, 0);
    benches->created = ITEMS;
    runner_turn(&ours);
    runner_turn(&bare);
    for (size_t i = 0; i < ITEMS; i++)
        benches->states[i] =
            (struct state){.document = plan->operations[i].item.document, .lsn = i + 1};
}

static void reads_compare(struct benches *benches)
{
    struct plan plan = benches->plans[0];

    plan.kind = READ;
    plan.per_turn = READS;
    for (unsigned clients = 1; clients <= CLIENTS_MAX; clients *= 8)
        compare(benches, &plan, "read", clients);
}

static uint64_t device_bytes(void)
{
    FILE *file = fopen("/proc/self/io", "r");
    unsigned long long bytes = 0;
    char line[100];

    while (file && fgets(line, sizeof line, file))
        sscanf(line, "write_bytes: %llu", &bytes);
    if (file)
        fclose(file);
    return bytes;
}

/* Fills two fresh nodes with the same items, and closes them. */
static void bytes_compare(struct benches *benches)
{
    enum { FILL = 20000 };
    struct bench_space space;
    struct engine_statistics statistics;
    struct bare bare;
    struct plan plan;
    struct runner runner = {.plan = &plan, .clients = CLIENTS_MAX};
    uint64_t ours_bytes, bare_bytes;
    struct error err;
    char url[200];

    plan_init(&plan, CREATE, &benches->space, 1, FILL, NULL, 0);
    snprintf(url, sizeof url, "rocksdb:%s", scratch_path(&benches->scratch, "ours-bytes"));
    bench_space_open(&space, url, 1);
    ours_bytes = device_bytes();
    runner.run = ours_run;
    runner.space = &space;
    runner_turn(&runner);
    bench_must(engine_statistics(space.engine, &statistics, &err), &err);
    bench_space_close(&space);
    ours_bytes = device_bytes() - ours_bytes;
    bare_open(&bare, scratch_path(&benches->scratch, "bare-bytes"));
    bare_bytes = device_bytes();
    runner.run = bare_run;
    runner.bare = &bare;
    runner.turn = 0;
    runner_turn(&runner);
    bare_close(&bare);
    bare_bytes = device_bytes() - bare_bytes;
    printf("  %d items of %.0f bytes of BSON; %.2f bytes of keys and values for each of them\n",
           FILL, (double)plan.item_bytes / FILL,
           (double)statistics.bytes_written / (double)plan.item_bytes);
    rounds_ratio("bytes to the device per byte of item, 64 clients creating (less is better)",
                 (double)ours_bytes / (double)plan.item_bytes,
                 (double)bare_bytes / (double)plan.item_bytes, "bare RocksDB, same key operations");
    arena_free(plan.arena);
}

/* Each kind of write begins on fresh nodes: else it pays for the compactions of the one before. */
static void kind_compare(enum kind kind, const char *verb)
{
    struct benches *benches = MEMORY_NEW(struct benches);
    char url[200];

    scratch_init(&benches->scratch);
    snprintf(url, sizeof url, "rocksdb:%s", scratch_path(&benches->scratch, "ours"));
    bench_space_open(&benches->space, url, 1);
    bare_open(&benches->bare, scratch_path(&benches->scratch, "bare"));
    items_fill(benches);
    if (kind == READ) {
        reads_compare(benches);
        bytes_compare(benches);
    } else {
        writes_compare(benches, kind, verb, 1, 100);
        writes_compare(benches, kind, verb, 8, 400);
        writes_compare(benches, kind, verb, 64, 2400);
    }
    for (size_t i = 0; i < benches->plan_count; i++)
        arena_free(benches->plans[i].arena);
    bench_space_close(&benches->space);
    bare_close(&benches->bare);
    scratch_done(&benches->scratch);
    memory_free(benches);
}

int main(int argc, char **argv)
{
    static const struct {
        enum kind kind;
        const char *verb;
    } kinds[] = {{READ, "read"}, {CREATE, "created"}, {REPLACE, "replaced"}, {PATCH, "patched"}};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (argc < 2 || strcmp(argv[1], kinds[i].verb) == 0)
            kind_compare(kinds[i].kind, kinds[i].verb);
    return 0;
}
