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

/* Takes over failure and pinned.
 *
 * Of a file that RocksDB has not opened (it opens 16 when a store is opened, and no more than
 * max_open_files at a time), a get that may not read from files says that the key is there, with no
 * bytes: it may be there. So nothing can be told of an empty value that was read without files. */
static bool value_finish(char *failure, rocksdb_pinnableslice_t *pinned, enum engine_reach reach,
                         struct arena *arena, struct engine_value *ret_value, struct error *err)
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
    if (UNLIKELY(len == 0 && reach == ENGINE_READ_CACHED))
        *ret_value = (struct engine_value){.found = ENGINE_COLD};
    else
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

    return value_finish(failure, pinned, reach, arena, ret_value, err);
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

static_assert(sizeof(struct rocks_recall_seen) <= sizeof(uint64_t[3]), "a group has room for it");
static_assert((int)ENGINE_GROUP_MAX <= (int)ROCKS_RECALL_VALUE_MAX,
              "a group is kept as a value is");

bool rocks_group_find(struct engine_snapshot *snapshot, uint32_t partition, struct slice name,
                      struct arena *arena, struct engine_group *ret_group)
{
    struct rocks_recall_seen seen;
    bool found = rocks_recall_find(rocks_of(snapshot->engine)->recall, partition, name,
                                   moment_of(snapshot), arena, &ret_group->bytes, &seen);

    memcpy(ret_group->seen, &seen, sizeof seen);
    ret_group->served = found || seen.hash;
    return found;
}

void rocks_group_offer(struct engine_snapshot *snapshot, uint32_t partition, struct slice name,
                       struct slice bytes, const struct engine_group *group)
{
    struct rocks_recall_seen seen;

    memcpy(&seen, group->seen, sizeof seen);
    rocks_recall_keep(rocks_of(snapshot->engine)->recall, partition, name, bytes, &seen);
}

static bool keys_are_sorted(const struct slice *keys, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (slice_compare(keys[i - 1], keys[i]) > 0)
            return false;
    return true;
}

/* A question for several keys. */
struct multi {
    struct rocks_engine *rocks;
    struct engine_snapshot *snapshot; /* NULL: as of now */
    uint32_t partition;
    const struct slice *keys;
    size_t count;
    enum engine_reach reach;
    struct arena *arena;
    struct engine_value *ret_values;
};

/* Keys that are asked of RocksDB, and where their values belong. */
struct missed {
    const char **keys;
    size_t *key_lens, *places;
    struct rocks_recall_seen *seen;
    size_t count;
};

static struct missed missed_none(const struct multi *multi)
{
    return (struct missed){.keys = ARENA_ARRAY(multi->arena, const char *, multi->count),
                           .key_lens = ARENA_ARRAY(multi->arena, size_t, multi->count),
                           .places = ARENA_ARRAY(multi->arena, size_t, multi->count),
                           .seen =
                               ARENA_ARRAY(multi->arena, struct rocks_recall_seen, multi->count)};
}

static void missed_add(const struct multi *multi, struct missed *missed, size_t place)
{
    struct slice key = multi->keys[place];
    uint8_t *full = arena_alloc(multi->arena, ROCKS_PREFIX_LEN + key.len);

    bytes_put_be32(full, multi->partition);
    memcpy(full + ROCKS_PREFIX_LEN, key.data, key.len);
    missed->keys[missed->count] = (const char *)full;
    missed->key_lens[missed->count] = ROCKS_PREFIX_LEN + key.len;
    missed->places[missed->count] = place;
    missed->count++;
}

/* What was kept is taken; the rest is left over. */
static struct missed multi_recall(const struct multi *multi)
{
    struct missed missed = missed_none(multi);
    uint64_t moment = moment_of(multi->snapshot);

    for (size_t i = 0; i < multi->count; i++)
        if (rocks_recall_find(multi->rocks->recall, multi->partition, multi->keys[i], moment,
                              multi->arena, &multi->ret_values[i].bytes,
                              &missed.seen[missed.count]))
            multi->ret_values[i].found = ENGINE_FOUND;
        else
            missed_add(multi, &missed, i);
    return missed;
}

static bool multi_ask(const struct multi *multi, const struct missed *missed, struct error *err)
{
    rocksdb_pinnableslice_t **pinned =
        ARENA_ARRAY(multi->arena, rocksdb_pinnableslice_t *, missed->count);
    char **failures = ARENA_ARRAY(multi->arena, char *, missed->count);
    bool fine = true;

    if (!missed->count)
        return true;
    rocksdb_batched_multi_get_cf(
        multi->rocks->db, read_options(multi->rocks, multi->snapshot, multi->reach),
        multi->rocks->family, missed->count, missed->keys, missed->key_lens, pinned, failures,
        keys_are_sorted(multi->keys, multi->count));
    /* Every result is taken, whatever became of the others, for each must be released. */
    for (size_t i = 0; i < missed->count; i++) {
        struct engine_value *value = &multi->ret_values[missed->places[i]];

        fine = value_finish(failures[i], pinned[i], multi->reach, multi->arena, value, err) && fine;
        if (fine && value->found == ENGINE_FOUND)
            rocks_recall_keep(multi->rocks->recall, multi->partition,
                              multi->keys[missed->places[i]], value->bytes, &missed->seen[i]);
    }
    return fine;
}

bool rocks_multi_get(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
                     const struct slice *keys, size_t count, enum engine_reach reach,
                     struct arena *arena, struct engine_value *ret_values, struct error *err)
{
    struct rocks_engine *rocks = rocks_of(engine);
    const struct multi multi = {rocks, snapshot, partition, keys, count, reach, arena, ret_values};
    uint64_t writes = rocks_recall_writes(rocks->recall);
    struct missed missed = multi_recall(&multi);

    atomic_fetch_add_explicit(&rocks->reads, count, memory_order_relaxed);
    if (!multi_ask(&multi, &missed, err))
        return false;
    if (snapshot || count == 1 || missed.count == count ||
        rocks_recall_writes(rocks->recall) == writes)
        return true;
    /* Something was written between two of the looks: they may be of two moments. */
    missed = missed_none(&multi);
    memset(missed.seen, 0, count * sizeof *missed.seen);
    for (size_t i = 0; i < count; i++)
        missed_add(&multi, &missed, i);
    return multi_ask(&multi, &missed, err);
}
