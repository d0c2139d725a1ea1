/* A get through RocksDB takes some ten thousand instructions, most of them to find out which of its
 * files has the key; a hit here takes a few hundred.
 *
 * Cut into shards by the hash of partition and key, each with a lock, a table and two queues. What
 * is read for the first time goes to the short queue, and from its end to the long one only if it
 * was read again meanwhile: who goes over all items once does not push out what is read often. A
 * table of marks remembers what has left the short queue lately, so that what is read again a
 * little later goes to the long one at once. (That is S3-FIFO. A list by last use would have to be
 * changed by every hit, and one scan would empty it.)
 *
 * Never stale: a shard counts, by stripes of the hash, the writes that have begun and those under
 * way. While one is, values of its stripe are hidden and none is kept; what was read before it
 * began is not kept after it ended. So a value that is found was the last one when it was looked
 * for, or the write that replaces it was not visible to anybody yet.
 *
 * Snapshots are numbered before they are made, and a value knows which number was the last when the
 * write that left it had certainly ended. Every snapshot of a higher number shows that value, for
 * as long as it is the last; of a lower one it is not known, and RocksDB is asked. What is read by
 * a snapshot is kept only if no write of its stripe has ended since that was numbered.
 *
 * Several keys as of one moment, without a snapshot: they are looked for one by one, and the rest
 * is asked of RocksDB. That is one moment, the one in which RocksDB was asked, if no write has
 * hidden its keys since before the first look; else all are asked of RocksDB.
 *
 * Most writes are of keys that nobody ever reads one by one (entries of indexes). Whoever opens the
 * store says how those begin that are, and all others are passed over without a look. He also says
 * which keys are in groups: what is kept of a group stands here under its name, and everything
 * above holds of it, for a write of any of its keys counts as one of the name.
 *
 * Fair: a partition that holds more than an equal share makes room for its own values first. */
#include "engine/rocks/recall.h"

#include "base/memory.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <xxhash.h>

enum {
    SHARDS_MAX = 64,
    SHARD_BYTES_MIN = 256 * 1024, /* fewer shards rather than smaller ones */
    STRIPES = 64,                 /* of a shard */
    MARKS = 1024,                 /* of a shard */
    SLOTS = 256,                  /* partitions are told apart by as many */
    USES_MAX = 3,
    PASSED_MAX = 256, /* values of others that are passed over for room */
    BUCKETS_MIN = 16,
    SHORT_PART = 8, /* the short queue may have so much of a shard: one part in 8 */
};

struct value {
    struct value *next;          /* in its bucket */
    struct value *newer, *older; /* in its queue, a ring */
    uint64_t hash;
    uint64_t moment; /* snapshots after this one show it */
    uint32_t partition;
    uint32_t key_len, value_len;
    uint8_t uses;
    bool is_long, hidden; /* hidden: a write of it is under way */
    uint8_t bytes[];      /* key, value */
};

struct queue {
    struct value *oldest; /* NULL: empty; its `older` is the newest */
    size_t bytes;
};

struct stripe {
    uint32_t begun;     /* writes that have begun */
    uint32_t under_way; /* of them */
    uint64_t moment;    /* when the last of them ended */
};

struct shard {
    struct mutex lock; /* for all below */
    struct value **buckets;
    size_t bucket_count, count;
    struct queue queues[2]; /* the short one, the long one */
    struct stripe stripes[STRIPES];
    uint32_t changes, changing; /* of many keys at once */
    uint64_t change_moment;     /* when the last of them ended */
    uint32_t *marks;            /* made with the first value */
    uint64_t hits, misses;
};

struct rocks_recall {
    size_t shard_count;
    atomic_size_t shard_bytes_max;
    _Atomic uint64_t moment;                /* of the last snapshot */
    _Atomic uint64_t writes;                /* that have hidden all their keys */
    bool recalls[256];                      /* keys with this first byte */
    size_t (*group)(struct slice key);      /* NULL: there are no groups */
    atomic_size_t slots[SLOTS], slots_used; /* bytes by partition; how many are above 0 */
    struct shard shards[];
};

struct rocks_recall *rocks_recall_new(size_t bytes_max, const char *firsts,
                                      size_t (*group)(struct slice key))
{
    size_t shards = MIN(bytes_max / SHARD_BYTES_MIN, (size_t)SHARDS_MAX);
    struct rocks_recall *recall;

    if (bytes_max && !shards)
        shards = 1;
    recall =
        memory_alloc_zero(sizeof *recall + memory_array_size(shards, sizeof recall->shards[0]));
    recall->shard_count = shards;
    recall->group = group;
    recall->shard_bytes_max = shards ? bytes_max / shards : 0;
    for (size_t i = 0; i < shards; i++)
        mutex_init(&recall->shards[i].lock);
    if (!firsts)
        memset(recall->recalls, true, sizeof recall->recalls);
    for (; firsts && *firsts; firsts++)
        recall->recalls[(uint8_t)*firsts] = true;
    return recall;
}

void rocks_recall_resize(struct rocks_recall *recall, size_t bytes_max)
{
    if (recall->shard_count)
        atomic_store(&recall->shard_bytes_max, bytes_max / recall->shard_count);
}

/* --- Hashes, shards and shares --------------------------------------------------------------- */

static uint64_t key_hash(uint32_t partition, struct slice key)
{
    return XXH3_64bits_withSeed(key.data, key.len, partition);
}

static struct shard *shard_of(struct rocks_recall *recall, uint64_t hash)
{
    return &recall->shards[(hash >> 48) % recall->shard_count];
}

static struct stripe *stripe_of(struct shard *shard, uint64_t hash)
{
    return &shard->stripes[(hash >> 40) % STRIPES];
}

static atomic_size_t *slot_of(struct rocks_recall *recall, uint32_t partition)
{
    return &recall->slots[(partition * UINT32_C(0x9E3779B1) >> 16) % SLOTS];
}

static void slot_add(struct rocks_recall *recall, uint32_t partition, size_t bytes)
{
    if (!atomic_fetch_add_explicit(slot_of(recall, partition), bytes, memory_order_relaxed))
        atomic_fetch_add_explicit(&recall->slots_used, 1, memory_order_relaxed);
}

static void slot_take(struct rocks_recall *recall, uint32_t partition, size_t bytes)
{
    size_t before =
        atomic_fetch_sub_explicit(slot_of(recall, partition), bytes, memory_order_relaxed);

    assert(before >= bytes);
    if (before == bytes)
        atomic_fetch_sub_explicit(&recall->slots_used, 1, memory_order_relaxed);
}

/* Does it hold more than it would if all held the same? */
static bool is_above_share(struct rocks_recall *recall, uint32_t partition)
{
    size_t used = atomic_load_explicit(&recall->slots_used, memory_order_relaxed);
    size_t all = recall->shard_bytes_max * recall->shard_count;

    return atomic_load_explicit(slot_of(recall, partition), memory_order_relaxed) >
           all / MAX(used, (size_t)1);
}

/* --- One shard, under its lock --------------------------------------------------------------- */

static size_t value_bytes(size_t key_len, size_t value_len)
{
    return sizeof(struct value) + key_len + value_len;
}

static struct slice value_key(const struct value *value)
{
    return slice_of(value->bytes, value->key_len);
}

static struct value **value_link(struct shard *shard, uint64_t hash, uint32_t partition,
                                 struct slice key)
{
    struct value **link = &shard->buckets[hash & (shard->bucket_count - 1)];

    while (*link && ((*link)->hash != hash || (*link)->partition != partition ||
                     !slice_equal(value_key(*link), key)))
        link = &(*link)->next;
    return link;
}

static struct value *value_find(struct shard *shard, uint64_t hash, uint32_t partition,
                                struct slice key)
{
    return shard->bucket_count ? *value_link(shard, hash, partition, key) : NULL;
}

static void queue_add(struct shard *shard, struct value *value, bool is_long)
{
    struct queue *queue = &shard->queues[is_long];

    value->is_long = is_long;
    queue->bytes += value_bytes(value->key_len, value->value_len);
    if (!queue->oldest) {
        queue->oldest = value->newer = value->older = value;
        return;
    }
    value->newer = queue->oldest;
    value->older = queue->oldest->older;
    value->older->newer = value;
    queue->oldest->older = value;
}

static void queue_remove(struct shard *shard, struct value *value)
{
    struct queue *queue = &shard->queues[value->is_long];

    assert(queue->oldest);
    queue->bytes -= value_bytes(value->key_len, value->value_len);
    value->older->newer = value->newer;
    value->newer->older = value->older;
    if (queue->oldest == value)
        queue->oldest = value->newer == value ? NULL : value->newer;
}

static void value_forget(struct rocks_recall *recall, struct shard *shard, struct value *value)
{
    struct value **link = value_link(shard, value->hash, value->partition, value_key(value));

    assert(*link == value && shard->count > 0);
    *link = value->next;
    shard->count--;
    queue_remove(shard, value);
    slot_take(recall, value->partition, value_bytes(value->key_len, value->value_len));
    memory_free(value);
}

static uint32_t *mark_of(struct shard *shard, uint64_t hash)
{
    return &shard->marks[(hash >> 24) % MARKS];
}

/* The first value that is neither used nor of somebody who is spared; those before it have another
 * turn. */
static void room_make(struct rocks_recall *recall, struct shard *shard, uint32_t newcomer)
{
    bool is_long = shard->queues[0].bytes * SHORT_PART <= recall->shard_bytes_max;
    bool spares = is_above_share(recall, newcomer);

    if (!shard->queues[is_long].oldest)
        is_long = !is_long;
    for (unsigned passed = 0;; passed++) {
        struct value *value = shard->queues[is_long].oldest;
        bool is_spared = spares && passed < PASSED_MAX && value->partition != newcomer &&
                         !is_above_share(recall, value->partition);

        if (!value->uses && !is_spared) {
            if (!is_long)
                *mark_of(shard, value->hash) = (uint32_t)value->hash;
            value_forget(recall, shard, value);
            return;
        }
        queue_remove(shard, value);
        if (!is_spared && is_long)
            value->uses--;
        else if (!is_spared)
            value->uses = 0;
        queue_add(shard, value, is_long || !is_spared);
        if (!shard->queues[is_long].oldest)
            is_long = true;
    }
}

static void buckets_grow(struct shard *shard)
{
    size_t count = shard->bucket_count ? shard->bucket_count * 2 : BUCKETS_MIN;
    struct value **buckets = memory_alloc_zero(memory_array_size(count, sizeof *buckets));

    for (size_t i = 0; i < shard->bucket_count; i++)
        for (struct value *value = shard->buckets[i], *next; value; value = next) {
            struct value **bucket = &buckets[value->hash & (count - 1)];

            next = value->next;
            value->next = *bucket;
            *bucket = value;
        }
    memory_free(shard->buckets);
    shard->buckets = buckets;
    shard->bucket_count = count;
}

static void value_add(struct rocks_recall *recall, struct shard *shard,
                      const struct rocks_recall_seen *seen, uint32_t partition, struct slice key,
                      struct slice bytes, bool is_long)
{
    uint64_t hash = seen->hash;
    size_t size = value_bytes(key.len, bytes.len);
    struct value *value, **bucket;

    while (shard->count &&
           shard->queues[0].bytes + shard->queues[1].bytes + size > recall->shard_bytes_max)
        room_make(recall, shard, partition);
    if (shard->count >= shard->bucket_count)
        buckets_grow(shard);
    value = memory_alloc(size);
    *value = (struct value){.hash = hash,
                            .moment = seen->moment,
                            .partition = partition,
                            .key_len = (uint32_t)key.len,
                            .value_len = (uint32_t)bytes.len};
    memcpy(value->bytes, key.data, key.len);
    if (bytes.len)
        memcpy(value->bytes + key.len, bytes.data, bytes.len);
    bucket = &shard->buckets[hash & (shard->bucket_count - 1)];
    value->next = *bucket;
    *bucket = value;
    shard->count++;
    slot_add(recall, partition, size);
    queue_add(shard, value, is_long);
}

/* --- Reading --------------------------------------------------------------------------------- */

static bool is_recalled(const struct rocks_recall *recall, struct slice key)
{
    return key.len && recall->recalls[key.data[0]];
}

static size_t group_len(const struct rocks_recall *recall, struct slice key)
{
    return recall->group ? recall->group(key) : 0;
}

/* A key that is kept, or the name of a group. */
static bool may_be_here(const struct rocks_recall *recall, struct slice key)
{
    return is_recalled(recall, key) || (key.len && group_len(recall, key) == key.len);
}

/* One value has a small part of a shard at most. */
static bool fits(const struct rocks_recall *recall, struct slice key, struct slice value)
{
    return value.len <= ROCKS_RECALL_VALUE_MAX &&
           value_bytes(key.len, value.len) <= recall->shard_bytes_max / SHORT_PART;
}

uint64_t rocks_recall_moment(struct rocks_recall *recall)
{
    return atomic_fetch_add(&recall->moment, 1) + 1;
}

/* A write counts when all its keys are hidden. One that is counted before the first look shows none
 * of its keys here until RocksDB shows all of them; of one that is counted later a look may have
 * found what was there before. */
uint64_t rocks_recall_writes(const struct rocks_recall *recall)
{
    return atomic_load(&recall->writes);
}

bool rocks_recall_find(struct rocks_recall *recall, uint32_t partition, struct slice key,
                       uint64_t moment, struct arena *arena, struct slice *ret_value,
                       struct rocks_recall_seen *ret_seen)
{
    uint64_t hash;
    struct shard *shard;
    bool found = false;

    if (!recall->shard_count || !may_be_here(recall, key)) {
        *ret_seen = (struct rocks_recall_seen){0};
        return false;
    }
    hash = key_hash(partition, key);
    shard = shard_of(recall, hash);
    WITH_LOCK (&shard->lock) {
        struct value *value = value_find(shard, hash, partition, key);
        const struct stripe *stripe = stripe_of(shard, hash);

        found = value && !value->hidden && (!moment || value->moment < moment);
        if (found) {
            value->uses += value->uses < USES_MAX;
            *ret_value =
                arena_copy(arena, slice_of(value->bytes + value->key_len, value->value_len));
            shard->hits++;
        } else {
            shard->misses++;
        }
        *ret_seen = (struct rocks_recall_seen){
            .hash = hash,
            .moment = moment ? moment - 1 : atomic_load(&recall->moment),
            .writes = stripe->begun + shard->changes,
            .may_keep = !value && !stripe->under_way && !shard->changing &&
                        (!moment || (stripe->moment < moment && shard->change_moment < moment)),
        };
    }
    return found;
}

void rocks_recall_keep(struct rocks_recall *recall, uint32_t partition, struct slice key,
                       struct slice value, const struct rocks_recall_seen *seen)
{
    struct shard *shard;

    if (!seen->may_keep || !fits(recall, key, value))
        return;
    shard = shard_of(recall, seen->hash);
    WITH_LOCK (&shard->lock) {
        const struct stripe *stripe = stripe_of(shard, seen->hash);

        if (!shard->marks)
            shard->marks = memory_alloc_zero(memory_array_size(MARKS, sizeof *shard->marks));
        if (stripe->begun + shard->changes == seen->writes && !shard->changing &&
            !value_find(shard, seen->hash, partition, key))
            value_add(recall, shard, seen, partition, key, value,
                      *mark_of(shard, seen->hash) == (uint32_t)seen->hash);
    }
}

/* --- Writing --------------------------------------------------------------------------------- */

static void op_begin(struct rocks_recall *recall, uint32_t partition, const struct engine_op *op,
                     bool written UNUSED)
{
    uint64_t hash = key_hash(partition, op->key);
    struct shard *shard = shard_of(recall, hash);

    WITH_LOCK (&shard->lock) {
        struct value *value = value_find(shard, hash, partition, op->key);
        struct stripe *stripe = stripe_of(shard, hash);

        stripe->begun++;
        stripe->under_way++;
        if (value)
            value->hidden = true;
    }
}

/* Where two writes of a stripe are under way it is not known which of them was last. */
static void op_end(struct rocks_recall *recall, uint32_t partition, const struct engine_op *op,
                   bool written)
{
    uint64_t hash = key_hash(partition, op->key);
    struct shard *shard = shard_of(recall, hash);

    WITH_LOCK (&shard->lock) {
        struct value *value = value_find(shard, hash, partition, op->key);
        struct stripe *stripe = stripe_of(shard, hash);
        bool keeps = value && written && op->kind == ENGINE_PUT && stripe->under_way == 1 &&
                     !shard->changing && fits(recall, op->key, op->value);

        assert(stripe->under_way > 0);
        stripe->under_way--;
        stripe->moment = atomic_load(&recall->moment);
        if (keeps && value->value_len == op->value.len) {
            memcpy(value->bytes + value->key_len, op->value.data, op->value.len);
            value->moment = stripe->moment;
            value->hidden = false;
        } else if (value) {
            bool is_long = value->is_long;

            value_forget(recall, shard, value);
            if (keeps)
                value_add(recall, shard,
                          &(struct rocks_recall_seen){.hash = hash, .moment = stripe->moment},
                          partition, op->key, op->value, is_long);
        }
    }
}

/* Calls back for every operation on a key that may be here, and for the group of any. What is kept
 * of a group only goes: a deletion of it. */
static void ops_each(struct rocks_recall *recall, const struct engine_section *sections,
                     size_t count,
                     void (*each)(struct rocks_recall *recall, uint32_t partition,
                                  const struct engine_op *op, bool written),
                     bool written)
{
    if (!recall->shard_count)
        return;
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < sections[s].count; i++) {
            struct slice key = sections[s].ops[i].key;
            size_t name = group_len(recall, key);

            if (is_recalled(recall, key))
                each(recall, sections[s].partition, &sections[s].ops[i], written);
            if (name)
                each(recall, sections[s].partition,
                     &(struct engine_op){.kind = ENGINE_DELETE, .key = slice_first(key, name)},
                     written);
        }
}

void rocks_recall_write_begin(struct rocks_recall *recall, const struct engine_section *sections,
                              size_t count)
{
    ops_each(recall, sections, count, op_begin, false);
    atomic_fetch_add(&recall->writes, 1);
}

void rocks_recall_write_end(struct rocks_recall *recall, const struct engine_section *sections,
                            size_t count, bool written)
{
    ops_each(recall, sections, count, op_end, written);
}

static void partition_forget(struct rocks_recall *recall, struct shard *shard, uint32_t partition)
{
    for (size_t i = 0; i < shard->bucket_count; i++)
        for (struct value *value = shard->buckets[i], *next; value; value = next) {
            next = value->next;
            if (value->partition == partition)
                value_forget(recall, shard, value);
        }
}

void rocks_recall_change_begin(struct rocks_recall *recall, uint32_t partition)
{
    for (size_t i = 0; i < recall->shard_count; i++) {
        struct shard *shard = &recall->shards[i];

        WITH_LOCK (&shard->lock) {
            shard->changes++;
            shard->changing++;
            /* Nothing more is kept from here on, so a slot without bytes stays so. */
            if (atomic_load_explicit(slot_of(recall, partition), memory_order_relaxed))
                partition_forget(recall, shard, partition);
        }
    }
    atomic_fetch_add(&recall->writes, 1);
}

void rocks_recall_change_end(struct rocks_recall *recall)
{
    for (size_t i = 0; i < recall->shard_count; i++)
        WITH_LOCK (&recall->shards[i].lock) {
            assert(recall->shards[i].changing > 0);
            recall->shards[i].changing--;
            recall->shards[i].change_moment = atomic_load(&recall->moment);
        }
}

/* --- Care ------------------------------------------------------------------------------------ */

struct rocks_recall_figures rocks_recall_figures(struct rocks_recall *recall)
{
    struct rocks_recall_figures figures = {0};

    for (size_t i = 0; i < recall->shard_count; i++) {
        struct shard *shard = &recall->shards[i];

        WITH_LOCK (&shard->lock) {
            figures.hits += shard->hits;
            figures.misses += shard->misses;
            figures.values += shard->count;
            figures.bytes += shard->queues[0].bytes + shard->queues[1].bytes +
                             shard->bucket_count * sizeof *shard->buckets;
        }
    }
    return figures;
}

void rocks_recall_free(struct rocks_recall *recall)
{
    if (!recall)
        return;
    for (size_t i = 0; i < recall->shard_count; i++) {
        struct shard *shard = &recall->shards[i];

        for (unsigned which = 0; which < 2; which++)
            while (shard->queues[which].oldest)
                value_forget(recall, shard, shard->queues[which].oldest);
        assert(!shard->count);
        memory_free(shard->buckets);
        memory_free(shard->marks);
        mutex_done(&shard->lock);
    }
    memory_free(recall);
}
