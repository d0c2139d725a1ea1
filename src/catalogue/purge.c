/* What was dropped is covered by a tombstone, and stays on disk until the purger has been there:
 * it drops the partitions of a scope, then deletes its records in bounded batches, the tombstone
 * with the last. Each step may be done twice, so a purge cut off anywhere is simply begun again. */
#include "catalogue/catalogue_private.h"

enum { PURGE_CHUNK = 256, PURGE_RETRY_MS = 1000 };

void catalogue_purge_queue(struct catalogue *catalogue, struct slice scope)
{
    struct catalogue_purge *purge = MEMORY_NEW(struct catalogue_purge), **tail = &catalogue->queue;

    assert(scope.len <= sizeof purge->scope);
    purge->len = scope.len;
    memcpy(purge->scope, scope.data, scope.len);
    WITH_LOCK (&catalogue->queue_lock) {
        while (*tail)
            tail = &(*tail)->next;
        *tail = purge;
        condition_signal(&catalogue->wake);
    }
}

static struct catalogue_purge *queue_first(struct catalogue *catalogue)
{
    struct catalogue_purge *first = NULL;

    WITH_LOCK (&catalogue->queue_lock)
        first = catalogue->queue;
    return first;
}

static void queue_pop(struct catalogue *catalogue)
{
    WITH_LOCK (&catalogue->queue_lock) {
        struct catalogue_purge *first = catalogue->queue;

        catalogue->queue = first->next;
        memory_free(first);
    }
}

void catalogue_purge_queue_clear(struct catalogue *catalogue)
{
    while (queue_first(catalogue))
        queue_pop(catalogue);
}

size_t catalogue_purges_left(struct catalogue *catalogue)
{
    size_t count = 0;

    WITH_LOCK (&catalogue->queue_lock)
        for (struct catalogue_purge *purge = catalogue->queue; purge; purge = purge->next)
            count++;
    return count;
}

static bool is_stopping(struct catalogue *catalogue)
{
    bool stopping = false;

    WITH_LOCK (&catalogue->queue_lock)
        stopping = catalogue->stopping;
    return stopping;
}

/* The first key behind all that begin with prefix. */
static struct slice prefix_end(struct slice prefix, struct arena *arena)
{
    uint8_t *end = arena_alloc(arena, prefix.len);

    memcpy(end, prefix.data, prefix.len);
    for (size_t i = prefix.len; i-- > 0;)
        if (++end[i])
            return slice_of(end, i + 1);
    return SLICE_NONE;
}

static bool container_purge(struct catalogue *catalogue, const struct catalogue_record *record,
                            struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct catalogue_record_partition *partitions;
    size_t count;

    if (!catalogue_record_container_partitions(record, arena, &partitions, &count, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct cluster_node *node = cluster_find(catalogue->cluster, partitions[i].node);

        if (!node)
            return error_set(err, ERROR_CONFIGURATION, "node %u is not here", partitions[i].node);
        if (!catalogue_partition_remove(node, partitions[i].id, err))
            return error_prefix(err, "node \"%s\"", node->name);
    }
    return true;
}

/* The next records of a scope, each with its partitions dropped; ops has room for PURGE_CHUNK. */
static bool chunk_read(struct catalogue *catalogue, struct slice scope, struct arena *arena,
                       struct engine_op *ops, size_t *ret_count, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_range range = {scope, prefix_end(scope, arena)};
    struct engine_entry entry;
    struct catalogue_record record;
    size_t count = 0;

    if (!engine_iterator_new(catalogue->engine, NULL, CATALOGUE_PARTITION, range, false,
                             ENGINE_READ_ANY, &iterator, err))
        return false;
    while (count < PURGE_CHUNK) {
        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            break;
        if (!catalogue_record_read(entry.key, entry.value, &record, err) ||
            (record.address.kind == RECORD_CONTAINER && !container_purge(catalogue, &record, err)))
            return false;
        ops[count++] =
            (struct engine_op){.kind = ENGINE_DELETE, .key = arena_copy(arena, entry.key)};
    }
    *ret_count = count;
    return true;
}

static bool scope_purge(struct catalogue *catalogue, struct slice scope, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_op *ops = ARENA_ARRAY(arena, struct engine_op, PURGE_CHUNK + 1);
    size_t count;

    do {
        struct commit_part part = {
            .partition = CATALOGUE_PARTITION, .epoch = catalogue->epoch, .ops = ops};
        struct commit_batch batch = {
            .parts = &part, .part_count = 1, .moment = COMMIT_NOTHING_RELIED_ON};

        if (is_stopping(catalogue))
            return error_set(err, ERROR_SHUTTING_DOWN, "the catalogue is being closed");
        if (!chunk_read(catalogue, scope, arena, ops, &count, err))
            return false;
        part.op_count = count;
        if (count < PURGE_CHUNK)
            ops[part.op_count++] = (struct engine_op){
                .kind = ENGINE_DELETE, .key = catalogue_record_tombstone_key(scope, arena)};
        if (!commit_run(catalogue->commit, &batch, err))
            return false;
    } while (count == PURGE_CHUNK);
    return true;
}

static bool is_held(struct catalogue *catalogue)
{
    bool held = false;

    WITH_LOCK (&catalogue->queue_lock)
        held = catalogue->held > 0;
    return held;
}

/* Waits for the purge that runs: from here on what was dropped stays. */
void catalogue_purge_hold(struct catalogue *catalogue)
{
    WITH_LOCK (&catalogue->purging_lock)
        WITH_LOCK (&catalogue->queue_lock)
            catalogue->held++;
}

void catalogue_purge_release(struct catalogue *catalogue)
{
    WITH_LOCK (&catalogue->queue_lock) {
        assert(catalogue->held > 0);
        catalogue->held--;
        condition_signal(&catalogue->wake);
    }
}

/* What is on a node that is away waits, and does not keep the others waiting. */
static bool is_away(const struct error *err)
{
    return err->code == ERROR_NODE_DOWN || err->code == ERROR_NODE_PAUSED;
}

bool catalogue_purge(struct catalogue *catalogue, struct error *err)
{
    bool all = true;

    WITH_LOCK (&catalogue->purging_lock) {
        size_t left = is_held(catalogue) ? 0 : catalogue_purges_left(catalogue);
        struct catalogue_purge *first;

        for (; left > 0 && (first = queue_first(catalogue)) != NULL; left--) {
            struct slice scope = slice_of(first->scope, first->len);

            if (!scope_purge(catalogue, scope, err)) {
                if (!is_away(err))
                    return error_prefix(err, "purging what was dropped");
                catalogue_purge_queue(catalogue, scope);
                all = false;
            }
            queue_pop(catalogue);
        }
    }
    return all;
}

/* Waits until there is something to purge. False: stop. */
static bool work_wait(struct catalogue *catalogue)
{
    bool go_on = false;

    WITH_LOCK (&catalogue->queue_lock) {
        while (!catalogue->stopping && (!catalogue->queue || catalogue->held))
            condition_wait(&catalogue->wake, &catalogue->queue_lock);
        go_on = !catalogue->stopping;
    }
    return go_on;
}

static void retry_wait(struct catalogue *catalogue)
{
    int64_t deadline_ms = clock_monotonic_ms() + PURGE_RETRY_MS;

    WITH_LOCK (&catalogue->queue_lock)
        while (!catalogue->stopping &&
               condition_wait_until(&catalogue->wake, &catalogue->queue_lock, deadline_ms))
            ;
}

static void purge_run(void *context)
{
    struct catalogue *catalogue = context;
    struct error err;

    while (work_wait(catalogue))
        if (!catalogue_purge(catalogue, &err) && err.code != ERROR_SHUTTING_DOWN) {
            if (!is_away(&err))
                log_error(catalogue->log, "purge failed", &err);
            retry_wait(catalogue);
        }
}

void catalogue_purge_start(struct catalogue *catalogue, bool by_hand)
{
    catalogue->has_thread = !by_hand;
    if (catalogue->has_thread)
        thread_start(&catalogue->thread, "purge", purge_run, catalogue);
}

void catalogue_purge_stop(struct catalogue *catalogue)
{
    WITH_LOCK (&catalogue->queue_lock) {
        catalogue->stopping = true;
        condition_broadcast(&catalogue->wake);
    }
    if (catalogue->has_thread)
        thread_join(&catalogue->thread);
    catalogue_purge_queue_clear(catalogue);
}
