/* A list, newest first, under one lock, which is held for a few steps: there are as many blocks as
 * partitions that are searched. A block in the making reserves what it grows by; where that is more
 * than all may have, the oldest of the account that has most make way. An account that has most,
 * and nothing to give up, gets no more: small ones are not pushed out by one that is large.
 *
 * While a graph is built of a block, one of before of the same index that has a graph stays and
 * serves, with its changes; where there is not room for both it goes, and the block is gone through
 * until its own graph is there. */
#include "query/run/blocks.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "index/policy.h"
#include "partition/layout.h"

#include <stdatomic.h>

enum {
    ENTRIES_FIRST = 256,
    BLOCKS_MAX = 4096,
    CHANGES_LEAST = 1024, /* of a block, however small it is; */
    CHANGES_MOST = 65536, /* however large */
    CHANGES_SHARE = 4,    /* and of so many entries one: more are too many */
    RENEW_SHARE = 4,      /* of those: so many are reason for another block */
    GRAPH_LEAST = 1000,   /* entries for which a graph is worth it */
    GRAPH_STEP = 16,      /* points between two looks whether it is still wanted */
    IDLE_MS = 15 * 60 * 1000,
    LOOK_MS = 60 * 1000,
};

enum graph_state { GRAPH_NONE, GRAPH_WAITING, GRAPH_BUILDING, GRAPH_READY };

/* An account that has, or had, blocks. There are as many as accounts that ever searched. */
struct holder {
    const void *account;
    size_t bytes, listed; /* of its blocks, those that are in use or in the making included */
    struct holder *next;
};

struct query_block {
    atomic_uint refs;
    struct query_blocks *blocks;
    struct holder *holder;
    struct query_block_key key; /* prefix owned */
    bool listed;
    struct query_block *newer, *older;
    int64_t used_ms;
    bool renewing; /* a search walks the entries for another */
    enum graph_state state;
    _Atomic uint32_t grown;
    _Atomic(struct search_graph *) graph; /* owned; never changes once it is there */
    struct query_changes *changes;        /* owned; NULL: it is being made */

    size_t count, capacity;
    size_t value_len;
    uint8_t *values;   /* count of value_len */
    uint64_t *numbers; /* one each */
    size_t *ends;      /* of each key, in keys */
    uint8_t *keys;
    size_t keys_len, keys_capacity;
    size_t bytes; /* reserved */
};

struct query_blocks {
    struct mutex lock;
    size_t bytes_max, bytes, count;
    struct query_block *newest, *oldest;
    struct holder *holders; /* owned */

    struct thread builder;
    struct condition work; /* for it */
    bool building, stopping;
    uint64_t built_total;
    uintptr_t built_account; /* whose turn was last */
};

static void builder_run(void *context);

struct query_blocks *query_blocks_new(size_t bytes_max)
{
    struct query_blocks *blocks = MEMORY_NEW(struct query_blocks);

    mutex_init(&blocks->lock);
    condition_init(&blocks->work);
    blocks->bytes_max = bytes_max;
    return blocks;
}

static void block_free(struct query_block *block)
{
    search_graph_free(atomic_load(&block->graph));
    query_changes_free(block->changes);
    memory_free(block->values);
    memory_free(block->numbers);
    memory_free(block->ends);
    memory_free(block->keys);
    memory_free((void *)block->key.prefix.data);
    memory_free(block);
}

/* With the lock: what it holds is more, or less. */
static void bytes_add(struct query_block *block, size_t bytes)
{
    block->bytes += bytes;
    block->holder->bytes += bytes;
    block->blocks->bytes += bytes;
}

static void bytes_take(struct query_block *block, size_t bytes)
{
    block->bytes -= bytes;
    block->holder->bytes -= bytes;
    block->blocks->bytes -= bytes;
}

static void block_unlink(struct query_blocks *blocks, struct query_block *block)
{
    *(block->newer ? &block->newer->older : &blocks->newest) = block->older;
    *(block->older ? &block->older->newer : &blocks->oldest) = block->newer;
    block->newer = block->older = NULL;
    block->listed = false;
    block->holder->listed--;
    blocks->count--;
}

static void block_link(struct query_blocks *blocks, struct query_block *block)
{
    block->older = blocks->newest;
    *(blocks->newest ? &blocks->newest->newer : &blocks->oldest) = block;
    blocks->newest = block;
    block->listed = true;
    block->holder->listed++;
    blocks->count++;
}

/* With the lock: takes it off the list and gives up the list's reference. Freed by whoever has the
 * last one, which may be the caller: *ret_freed. */
static void block_drop(struct query_blocks *blocks, struct query_block *block,
                       struct query_block **freed)
{
    block_unlink(blocks, block);
    if (atomic_fetch_sub(&block->refs, 1) != 1)
        return;
    bytes_take(block, block->bytes);
    block->older = *freed;
    *freed = block;
}

static void freed_free(struct query_block *freed)
{
    while (freed) {
        struct query_block *next = freed->older;

        block_free(freed);
        freed = next;
    }
}

void query_blocks_free(struct query_blocks *blocks)
{
    struct query_block *freed = NULL;

    bool building = false;

    if (!blocks)
        return;
    WITH_LOCK (&blocks->lock) {
        blocks->stopping = true;
        building = blocks->building;
        condition_signal(&blocks->work);
    }
    if (building)
        thread_join(&blocks->builder);
    while (blocks->newest)
        block_drop(blocks, blocks->newest, &freed);
    freed_free(freed);
    assert(!blocks->bytes);
    for (struct holder *holder = blocks->holders, *next; holder; holder = next) {
        next = holder->next;
        memory_free(holder);
    }
    condition_done(&blocks->work);
    mutex_done(&blocks->lock);
    memory_free(blocks);
}

/* --- Finding --------------------------------------------------------------------------------- */

static bool same_vectors(const struct index_vector *a, const struct index_vector *b)
{
    return index_vector_same(a, b) && a->vectors.metric == b->vectors.metric &&
           a->graph_list == b->graph_list;
}

static bool same_index(const struct query_block_key *a, const struct query_block_key *b)
{
    return a->node == b->node && a->partition == b->partition && a->epoch == b->epoch &&
           a->default_ttl == b->default_ttl && slice_equal(a->prefix, b->prefix) &&
           same_vectors(&a->index, &b->index);
}

/* An LSN of another era is of another history. */
static bool serves(const struct query_block *block, const struct query_block_key *key)
{
    return same_index(&block->key, key) && block->key.lsn <= key->lsn &&
           partition_lsn_era(block->key.lsn) == partition_lsn_era(key->lsn);
}

static size_t changes_max(size_t entries)
{
    return MIN(MAX(entries / CHANGES_SHARE, (size_t)CHANGES_LEAST), (size_t)CHANGES_MOST);
}

/* With the lock: one that a graph is being built of is left alone, or none would ever be. */
static bool wants_renewal(const struct query_block *block)
{
    return !block->renewing && (block->state == GRAPH_NONE || block->state == GRAPH_READY) &&
           query_changes_count(block->changes) > changes_max(block->count) / RENEW_SHARE;
}

/* With the lock: the one with a graph, or the newest. */
static struct query_block *block_find(struct query_blocks *blocks,
                                      const struct query_block_key *key)
{
    struct query_block *found = NULL;

    for (struct query_block *block = blocks->newest; block; block = block->older)
        if (serves(block, key) &&
            (!found || (block->state == GRAPH_READY && found->state != GRAPH_READY)))
            found = block;
    return found;
}

struct query_block *query_blocks_find(struct query_blocks *blocks,
                                      const struct query_block_key *key, bool *ret_renew)
{
    struct query_block *found = NULL;

    *ret_renew = false;
    WITH_LOCK (&blocks->lock) {
        found = block_find(blocks, key);
        if (found) {
            atomic_fetch_add(&found->refs, 1);
            block_unlink(blocks, found);
            block_link(blocks, found);
            found->used_ms = clock_monotonic_ms();
            *ret_renew = wants_renewal(found);
            found->renewing |= *ret_renew;
        }
    }
    return found;
}

void query_blocks_drop(struct query_blocks *blocks, struct query_block *block)
{
    WITH_LOCK (&blocks->lock) {
        if (block->listed) {
            block_unlink(blocks, block);
            /* the caller has another */
            (void)atomic_fetch_sub(&block->refs, 1);
        }
    }
}

void query_block_unref(struct query_block *block)
{
    struct query_blocks *blocks = block ? block->blocks : NULL;
    bool last = false;

    if (!block)
        return;
    WITH_LOCK (&blocks->lock) {
        last = atomic_fetch_sub(&block->refs, 1) == 1;
        if (last)
            bytes_take(block, block->bytes);
    }
    if (last)
        block_free(block);
}

bool query_block_at(const struct query_block *block, size_t place, struct cursor_hit *ret_hit)
{
    size_t begin;

    if (place >= block->count)
        return false;
    begin = place ? block->ends[place - 1] : 0;
    *ret_hit = (struct cursor_hit){
        .value = slice_of(block->values + place * block->value_len, block->value_len),
        .number = block->numbers[place],
        .key = slice_of(block->keys + begin, block->ends[place] - begin)};
    return true;
}

uint64_t query_block_lsn(const struct query_block *block)
{
    return block->key.lsn;
}

/* --- Making ---------------------------------------------------------------------------------- */

/* With the lock. */
static struct holder *holder_of(struct query_blocks *blocks, const void *account)
{
    struct holder *holder = blocks->holders;

    while (holder && holder->account != account)
        holder = holder->next;
    if (holder)
        return holder;
    holder = MEMORY_NEW(struct holder);
    *holder = (struct holder){.account = account, .next = blocks->holders};
    return blocks->holders = holder;
}

struct query_block *query_block_begin(struct query_blocks *blocks,
                                      const struct query_block_key *key)
{
    struct query_block *block;
    uint8_t *prefix;

    if (!blocks->bytes_max)
        return NULL;
    block = MEMORY_NEW(struct query_block);
    prefix = memory_alloc(key->prefix.len + 1);
    memcpy(prefix, key->prefix.data, key->prefix.len);
    block->refs = 1;
    block->blocks = blocks;
    block->key = *key;
    block->key.prefix = slice_of(prefix, key->prefix.len);
    WITH_LOCK (&blocks->lock)
        block->holder = holder_of(blocks, key->account);
    return block;
}

static size_t bytes_of(const struct holder *holder)
{
    return holder->bytes;
}

static size_t blocks_of(const struct holder *holder)
{
    return holder->listed;
}

/* With the lock: the oldest block, but one, of the account that has most. NULL: that is the account
 * of this one, which has no other. */
static struct query_block *victim_find(struct query_blocks *blocks, const struct query_block *but,
                                       size_t (*measure)(const struct holder *))
{
    const struct holder *most = but->holder;

    for (const struct holder *holder = blocks->holders; holder; holder = holder->next)
        if (holder->listed && measure(holder) > measure(most))
            most = holder;
    for (struct query_block *at = blocks->oldest; at; at = at->newer)
        if (at != but && at->holder == most)
            return at;
    return NULL;
}

/* With the lock: others make way for so many bytes more of a block, which count for its account
 * already. */
static void make_way(struct query_blocks *blocks, const struct query_block *but,
                     struct query_block **freed)
{
    struct query_block *victim;

    while (blocks->bytes > blocks->bytes_max &&
           (victim = victim_find(blocks, but, bytes_of)) != NULL)
        block_drop(blocks, victim, freed);
}

/* Room for so many bytes more, of all. */
static bool reserve(struct query_block *block, size_t bytes)
{
    struct query_blocks *blocks = block->blocks;
    struct query_block *freed = NULL;
    bool there = false;

    WITH_LOCK (&blocks->lock) {
        bytes_add(block, bytes);
        make_way(blocks, block, &freed);
        there = blocks->bytes <= blocks->bytes_max;
        if (!there)
            bytes_take(block, bytes);
    }
    freed_free(freed);
    return there;
}

static bool entries_grow(struct query_block *block)
{
    size_t each = block->value_len + sizeof *block->numbers + sizeof *block->ends;
    size_t more = block->capacity ? block->capacity / 2 : ENTRIES_FIRST;
    size_t capacity = block->capacity + more;

    if (!reserve(block, more * each))
        return false;
    block->values = memory_realloc(block->values, memory_array_size(capacity, block->value_len));
    block->numbers =
        memory_realloc(block->numbers, memory_array_size(capacity, sizeof *block->numbers));
    block->ends = memory_realloc(block->ends, memory_array_size(capacity, sizeof *block->ends));
    block->capacity = capacity;
    return true;
}

static bool keys_grow(struct query_block *block, size_t len)
{
    size_t more = MAX(block->keys_capacity / 2, len + (size_t)4096);

    if (!reserve(block, more))
        return false;
    block->keys_capacity += more;
    block->keys = memory_realloc(block->keys, block->keys_capacity);
    return true;
}

bool query_block_add(struct query_block *block, const struct cursor_hit *hit)
{
    if (!block->count)
        block->value_len = hit->value.len;
    if (hit->value.len != block->value_len ||
        (block->count == block->capacity && !entries_grow(block)) ||
        (block->keys_capacity - block->keys_len < hit->key.len && !keys_grow(block, hit->key.len)))
        return false;
    memcpy(block->values + block->count * block->value_len, hit->value.data, block->value_len);
    memcpy(block->keys + block->keys_len, hit->key.data, hit->key.len);
    block->keys_len += hit->key.len;
    block->numbers[block->count] = hit->number;
    block->ends[block->count++] = block->keys_len;
    return true;
}

/* What was allotted for entries that did not come. */
static void block_fit(struct query_blocks *blocks, struct query_block *block)
{
    size_t each = block->value_len + sizeof *block->numbers + sizeof *block->ends;
    size_t spare = (block->capacity - block->count) * each + block->keys_capacity - block->keys_len;

    if (block->count) {
        block->values =
            memory_realloc(block->values, memory_array_size(block->count, block->value_len));
        block->numbers =
            memory_realloc(block->numbers, memory_array_size(block->count, sizeof *block->numbers));
        block->ends =
            memory_realloc(block->ends, memory_array_size(block->count, sizeof *block->ends));
        block->keys = memory_realloc(block->keys, MAX(block->keys_len, (size_t)1));
        block->capacity = block->count;
        block->keys_capacity = block->keys_len;
        WITH_LOCK (&blocks->lock)
            bytes_take(block, spare);
    }
}

/* With the lock: those of before of the same index; one with a graph stays until there is another.
 */
static void older_drop(struct query_blocks *blocks, const struct query_block *block,
                       struct query_block **freed)
{
    for (struct query_block *at = blocks->newest, *next; at; at = next) {
        next = at->older;
        if (at != block && same_index(&at->key, &block->key) &&
            (at->state != GRAPH_READY || block->state == GRAPH_NONE || block->state == GRAPH_READY))
            block_drop(blocks, at, freed);
    }
}

/* With the lock: a search of before may have walked longer than others. */
static bool younger_is_there(const struct query_blocks *blocks, const struct query_block *block)
{
    for (const struct query_block *at = blocks->newest; at; at = at->older)
        if (same_index(&at->key, &block->key) && at->key.lsn >= block->key.lsn)
            return true;
    return false;
}

void query_blocks_put(struct query_blocks *blocks, struct query_block *block)
{
    struct query_block *freed = NULL;

    block_fit(blocks, block);
    block->changes = query_changes_new(block->key.lsn, changes_max(block->count));
    WITH_LOCK (&blocks->lock) {
        if (younger_is_there(blocks, block))
            return;
        if (block->key.index.graph_list && block->count >= GRAPH_LEAST &&
            block->count < INT32_MAX && block->value_len > index_vector_size(&block->key.index))
            block->state = GRAPH_WAITING;
        older_drop(blocks, block, &freed);
        while (blocks->count >= BLOCKS_MAX) {
            struct query_block *victim = victim_find(blocks, block, blocks_of);

            block_drop(blocks, victim ? victim : blocks->oldest, &freed);
        }
        atomic_fetch_add(&block->refs, 1);
        block_link(blocks, block);
        block->used_ms = clock_monotonic_ms();
        if (block->state == GRAPH_WAITING && !blocks->building && !blocks->stopping) {
            blocks->building = true;
            thread_start(&blocks->builder, "vector-graphs", builder_run, blocks);
        }
        condition_signal(&blocks->work);
    }
    freed_free(freed);
}

size_t query_blocks_bytes(struct query_blocks *blocks)
{
    size_t bytes = 0;

    WITH_LOCK (&blocks->lock)
        bytes = blocks->bytes;
    return bytes;
}

/* --- Changes --------------------------------------------------------------------------------- */

static void block_grown(void *self, size_t bytes)
{
    struct query_block *block = self, *freed = NULL;
    struct query_blocks *blocks = block->blocks;

    WITH_LOCK (&blocks->lock) {
        bytes_add(block, bytes);
        make_way(blocks, block, &freed);
    }
    freed_free(freed);
}

bool query_block_since(struct query_block *block, const struct view *view, uint64_t lsn,
                       const struct index_definition *index, struct query_since *ret_since,
                       enum query_since_state *ret_state, struct error *err)
{
    return query_changes_since(block->changes, view, lsn, index, block_grown, block, ret_since,
                               ret_state, err);
}

/* --- Graphs ---------------------------------------------------------------------------------- */

const struct search_graph *query_block_graph(const struct query_block *block)
{
    return atomic_load_explicit(&block->graph, memory_order_acquire);
}

/* With the lock. */
static void idle_drop(struct query_blocks *blocks, int64_t now_ms, struct query_block **freed)
{
    for (struct query_block *at = blocks->oldest, *next; at; at = next) {
        next = at->newer;
        if (now_ms - at->used_ms >= IDLE_MS)
            block_drop(blocks, at, freed);
    }
}

void query_blocks_tidy(struct query_blocks *blocks, int64_t now_ms)
{
    struct query_block *freed = NULL;

    WITH_LOCK (&blocks->lock)
        idle_drop(blocks, now_ms, &freed);
    freed_free(freed);
}

/* With the lock: the next to be built, referenced; NULL: none is waiting. The newest of the account
 * whose turn it is: accounts take turns in the order of their addresses, which is as good as any.
 */
static struct query_block *waiting_take(struct query_blocks *blocks)
{
    struct query_block *next = NULL;
    uintptr_t least = 0;

    for (struct query_block *block = blocks->newest; block; block = block->older) {
        uintptr_t away = (uintptr_t)block->key.account - blocks->built_account - 1; /* wraps */

        if (block->state != GRAPH_WAITING || (next && away >= least))
            continue;
        next = block;
        least = away;
    }
    if (next) {
        next->state = GRAPH_BUILDING;
        blocks->built_account = (uintptr_t)next->key.account;
        atomic_fetch_add(&next->refs, 1);
    }
    return next;
}

/* Is it still wanted? */
static bool may_go_on(struct query_blocks *blocks, const struct query_block *block)
{
    bool may = false;

    WITH_LOCK (&blocks->lock)
        may = !blocks->stopping && block->listed;
    return may;
}

/* A value begins with its length; the code stands behind it. */
static struct search_graph_points points_of(const struct query_block *block)
{
    size_t head = block->value_len - index_vector_size(&block->key.index);

    return (struct search_graph_points){.vectors = block->key.index.vectors,
                                        .bits = block->key.index.bits,
                                        .codes = block->values + head,
                                        .stride = block->value_len,
                                        .count = (uint32_t)block->count};
}

static void graph_build(struct query_blocks *blocks, struct query_block *block)
{
    struct search_graph_points points = points_of(block);
    struct search_graph *graph = NULL;
    struct query_block *freed = NULL;
    size_t bytes = search_graph_bytes(&points);
    bool reserved = reserve(block, bytes), whole = false;

    if (reserved) {
        graph = search_graph_new(&points, block->key.index.graph_list);
        while (!whole && may_go_on(blocks, block)) {
            whole = search_graph_grow(graph, GRAPH_STEP);
            atomic_store_explicit(&block->grown, search_graph_grown(graph), memory_order_relaxed);
        }
    }
    if (whole)
        atomic_store_explicit(&block->graph, graph, memory_order_release);
    else
        search_graph_free(graph);
    WITH_LOCK (&blocks->lock) {
        block->state = whole ? GRAPH_READY : GRAPH_NONE;
        blocks->built_total += whole;
        if (!whole && reserved)
            bytes_take(block, bytes);
        if (whole)
            older_drop(blocks, block, &freed);
    }
    freed_free(freed);
}

static void builder_run(void *context)
{
    struct query_blocks *blocks = context;

    thread_recede();
    for (;;) {
        struct query_block *block = NULL, *freed = NULL;
        bool stopping = false;

        WITH_LOCK (&blocks->lock) {
            block = waiting_take(blocks);
            if (!block && !blocks->stopping) {
                int64_t now_ms = clock_monotonic_ms();

                idle_drop(blocks, now_ms, &freed);
                (void)condition_wait_until(&blocks->work, &blocks->lock, now_ms + LOOK_MS);
            }
            stopping = blocks->stopping;
        }
        freed_free(freed);
        if (block && !stopping)
            graph_build(blocks, block);
        query_block_unref(block);
        if (stopping)
            return;
    }
}

void query_blocks_graphs(struct query_blocks *blocks, uint32_t node, uint32_t partition,
                         struct slice prefix, struct query_graphs_state *state)
{
    WITH_LOCK (&blocks->lock) {
        for (const struct query_block *block = blocks->newest; block; block = block->older) {
            if (prefix.data && (block->key.node != node || block->key.partition != partition ||
                                !slice_equal(block->key.prefix, prefix)))
                continue;
            if (block->state == GRAPH_NONE)
                continue;
            state->ready += block->state == GRAPH_READY;
            state->building += block->state != GRAPH_READY;
            state->points_in += atomic_load_explicit(&block->grown, memory_order_relaxed);
            state->points_all += block->count;
            state->changes += query_changes_count(block->changes);
        }
        if (!prefix.data)
            state->built_total += blocks->built_total;
    }
}
