/* Point reads. Values are pinned in the block cache while they are copied into the caller's arena:
 * one copy of a kilobyte costs a hundredth of the look-up, and nobody has to unpin anything. */
#include "engine/rocks/rocks_private.h"

#include "base/bytes.h"

enum { KEY_ON_STACK = 512 };

/* RocksDB has no status for this in C but the text. */
static bool failure_is_cold(const char *failure)
{
    return strncmp(failure, "Result incomplete", strlen("Result incomplete")) == 0;
}

static const rocksdb_readoptions_t *
read_options(struct rocks_engine *rocks, struct engine_snapshot *snapshot, enum engine_reach reach)
{
    if (snapshot) {
        struct rocks_snapshot *own = CONTAINER_OF(snapshot, struct rocks_snapshot, snapshot);

        return reach == ENGINE_READ_CACHED ? own->read_cached : own->read_any;
    }
    return reach == ENGINE_READ_CACHED ? rocks->read_cached : rocks->read_any;
}

bool rocks_snapshot_new(struct engine *engine, struct engine_snapshot **ret_snapshot,
                        struct error *err UNUSED)
{
    enum { BLOCK_CACHE_TIER = 1 };
    struct rocks_engine *rocks = rocks_of(engine);
    struct rocks_snapshot *snapshot = MEMORY_NEW(struct rocks_snapshot);

    snapshot->snapshot.engine = engine;
    snapshot->moment = rocks_recall_moment(rocks->recall);
    snapshot->native = rocksdb_create_snapshot(rocks->db);
    snapshot->read_any = rocksdb_readoptions_create();
    snapshot->read_cached = rocksdb_readoptions_create();
    rocksdb_readoptions_set_snapshot(snapshot->read_any, snapshot->native);
    rocksdb_readoptions_set_snapshot(snapshot->read_cached, snapshot->native);
    rocksdb_readoptions_set_read_tier(snapshot->read_cached, BLOCK_CACHE_TIER);
    *ret_snapshot = &snapshot->snapshot;
    return true;
}

void rocks_snapshot_free(struct engine_snapshot *handle)
{
    struct rocks_snapshot *snapshot = CONTAINER_OF(handle, struct rocks_snapshot, snapshot);

    rocksdb_readoptions_destroy(snapshot->read_any);
    rocksdb_readoptions_destroy(snapshot->read_cached);
    rocksdb_release_snapshot(rocks_of(handle->engine)->db, snapshot->native);
    memory_free(snapshot);
}

static struct slice key_with_prefix(uint32_t partition, struct slice key, uint8_t *stack,
                                    struct arena *arena)
{
    size_t len = ROCKS_PREFIX_LEN + key.len;
    uint8_t *bytes = len <= KEY_ON_STACK ? stack : arena_alloc(arena, len);

    bytes_put_be32(bytes, partition);
    memcpy(bytes + ROCKS_PREFIX_LEN, key.data, key.len);
    return slice_of(bytes, len);
}

/* Takes over failure and pinned. */
static bool value_finish(char *failure, rocksdb_pinnableslice_t *pinned, struct arena *arena,
                         struct engine_value *ret_value, struct error *err)
{
    size_t len;
    const char *bytes;

    if (UNLIKELY(failure)) {
        if (!failure_is_cold(failure))
            return rocks_error(err, failure, "reading");
        rocksdb_free(failure);
        *ret_value = (struct engine_value){.found = ENGINE_COLD};
        return true;
    }
    if (!pinned) {
        *ret_value = (struct engine_value){.found = ENGINE_ABSENT};
        return true;
    }
    bytes = rocksdb_pinnableslice_value(pinned, &len);
    *ret_value = (struct engine_value){.found = ENGINE_FOUND,
                                       .bytes = arena_copy(arena, slice_of(bytes, len))};
    rocksdb_pinnableslice_destroy(pinned);
    return true;
}

static bool get_stored(struct rocks_engine *rocks, struct engine_snapshot *snapshot,
                       uint32_t partition, struct slice key, enum engine_reach reach,
                       struct arena *arena, struct engine_value *ret_value, struct error *err)
{
    uint8_t stack[KEY_ON_STACK];
    struct slice full = key_with_prefix(partition, key, stack, arena);
    char *failure = NULL;
    rocksdb_pinnableslice_t *pinned =
        rocksdb_get_pinned(rocks->db, read_options(rocks, snapshot, reach), (const char *)full.data,
                           full.len, &failure);

    return value_finish(failure, pinned, arena, ret_value, err);
}

/* By which values that were kept are told to be the snapshot's; 0: as of now. */
static uint64_t moment_of(struct engine_snapshot *snapshot)
{
    return snapshot ? CONTAINER_OF(snapshot, struct rocks_snapshot, snapshot)->moment : 0;
}

bool rocks_get(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
               struct slice key, enum engine_reach reach, struct arena *arena,
               struct engine_value *ret_value, struct error *err)
{
    struct rocks_engine *rocks = rocks_of(engine);
    struct rocks_recall_seen seen = {0};

    atomic_fetch_add_explicit(&rocks->reads, 1, memory_order_relaxed);
    if (rocks_recall_find(rocks->recall, partition, key, moment_of(snapshot), arena,
                          &ret_value->bytes, &seen)) {
        ret_value->found = ENGINE_FOUND;
        return true;
    }
    if (!get_stored(rocks, snapshot, partition, key, reach, arena, ret_value, err))
        return false;
    if (ret_value->found == ENGINE_FOUND)
        rocks_recall_keep(rocks->recall, partition, key, ret_value->bytes, &seen);
    return true;
}

static bool keys_are_sorted(const struct slice *keys, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (slice_compare(keys[i - 1], keys[i]) > 0)
            return false;
    return true;
}

/* Keys that are asked of RocksDB, and where their values belong. */
struct missed {
    const char **keys;
    size_t *key_lens, *places;
    struct rocks_recall_seen *seen;
    size_t count;
};

/* What was kept is taken; the rest is left over. */
static struct missed multi_recall(struct rocks_engine *rocks, uint64_t moment, uint32_t partition,
                                  const struct slice *keys, size_t count, struct arena *arena,
                                  struct engine_value *ret_values)
{
    struct missed missed = {.keys = ARENA_ARRAY(arena, const char *, count),
                            .key_lens = ARENA_ARRAY(arena, size_t, count),
                            .places = ARENA_ARRAY(arena, size_t, count),
                            .seen = ARENA_ARRAY(arena, struct rocks_recall_seen, count)};

    for (size_t i = 0; i < count; i++) {
        size_t at = missed.count;
        uint8_t *full;

        if (rocks_recall_find(rocks->recall, partition, keys[i], moment, arena,
                              &ret_values[i].bytes, &missed.seen[at])) {
            ret_values[i].found = ENGINE_FOUND;
            continue;
        }
        full = arena_alloc(arena, ROCKS_PREFIX_LEN + keys[i].len);
        bytes_put_be32(full, partition);
        memcpy(full + ROCKS_PREFIX_LEN, keys[i].data, keys[i].len);
        missed.keys[at] = (const char *)full;
        missed.key_lens[at] = ROCKS_PREFIX_LEN + keys[i].len;
        missed.places[at] = i;
        missed.count++;
    }
    return missed;
}

bool rocks_multi_get(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
                     const struct slice *keys, size_t count, enum engine_reach reach,
                     struct arena *arena, struct engine_value *ret_values, struct error *err)
{
    struct rocks_engine *rocks = rocks_of(engine);
    struct missed missed =
        multi_recall(rocks, moment_of(snapshot), partition, keys, count, arena, ret_values);
    rocksdb_pinnableslice_t **pinned = ARENA_ARRAY(arena, rocksdb_pinnableslice_t *, count);
    char **failures = ARENA_ARRAY(arena, char *, count);
    bool fine = true;

    atomic_fetch_add_explicit(&rocks->reads, count, memory_order_relaxed);
    if (!missed.count)
        return true;
    rocksdb_batched_multi_get_cf(rocks->db, read_options(rocks, snapshot, reach), rocks->family,
                                 missed.count, missed.keys, missed.key_lens, pinned, failures,
                                 keys_are_sorted(keys, count));
    /* Every result is taken, whatever became of the others, for each must be released. */
    for (size_t i = 0; i < missed.count; i++) {
        struct engine_value *value = &ret_values[missed.places[i]];

        fine = value_finish(failures[i], pinned[i], arena, value, err) && fine;
        if (fine && value->found == ENGINE_FOUND)
            rocks_recall_keep(rocks->recall, partition, keys[missed.places[i]], value->bytes,
                              &missed.seen[i]);
    }
    return fine;
}
