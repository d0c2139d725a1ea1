/* A list, newest first, under one lock, which is held for a few steps: there are as many blocks as
 * partitions that are searched. A block in the making reserves what it grows by; where that is more
 * than all may have, the oldest that nobody uses make way. */
#include "query/run/blocks.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/thread.h"

#include <stdatomic.h>

enum { ENTRIES_FIRST = 256, BLOCKS_MAX = 4096 };

struct query_block {
    atomic_uint refs;
    struct query_blocks *blocks;
    struct query_block_key key; /* prefix owned */
    bool listed;
    struct query_block *newer, *older;

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
};

struct query_blocks *query_blocks_new(size_t bytes_max)
{
    struct query_blocks *blocks = MEMORY_NEW(struct query_blocks);

    mutex_init(&blocks->lock);
    blocks->bytes_max = bytes_max;
    return blocks;
}

static void block_free(struct query_block *block)
{
    memory_free(block->values);
    memory_free(block->numbers);
    memory_free(block->ends);
    memory_free(block->keys);
    memory_free((void *)block->key.prefix.data);
    memory_free(block);
}

static void block_unlink(struct query_blocks *blocks, struct query_block *block)
{
    *(block->newer ? &block->newer->older : &blocks->newest) = block->older;
    *(block->older ? &block->older->newer : &blocks->oldest) = block->newer;
    block->newer = block->older = NULL;
    block->listed = false;
    blocks->count--;
}

static void block_link(struct query_blocks *blocks, struct query_block *block)
{
    block->older = blocks->newest;
    *(blocks->newest ? &blocks->newest->newer : &blocks->oldest) = block;
    blocks->newest = block;
    block->listed = true;
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
    blocks->bytes -= block->bytes;
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

    if (!blocks)
        return;
    while (blocks->newest)
        block_drop(blocks, blocks->newest, &freed);
    freed_free(freed);
    assert(!blocks->bytes);
    mutex_done(&blocks->lock);
    memory_free(blocks);
}

/* --- Finding --------------------------------------------------------------------------------- */

static bool same_index(const struct query_block_key *a, const struct query_block_key *b)
{
    return a->node == b->node && a->partition == b->partition && slice_equal(a->prefix, b->prefix);
}

struct query_block *query_blocks_find(struct query_blocks *blocks,
                                      const struct query_block_key *key)
{
    struct query_block *found = NULL;

    WITH_LOCK (&blocks->lock) {
        for (found = blocks->newest; found; found = found->older)
            if (same_index(&found->key, key) && found->key.epoch == key->epoch &&
                found->key.lsn == key->lsn)
                break;
        if (found) {
            atomic_fetch_add(&found->refs, 1);
            block_unlink(blocks, found);
            block_link(blocks, found);
        }
    }
    return found;
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
            blocks->bytes -= block->bytes;
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

/* --- Making ---------------------------------------------------------------------------------- */

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
    return block;
}

/* Room for so many bytes more, of all; the oldest make way. */
static bool reserve(struct query_block *block, size_t bytes)
{
    struct query_blocks *blocks = block->blocks;
    struct query_block *freed = NULL;
    bool there = false;

    WITH_LOCK (&blocks->lock) {
        while (blocks->oldest && blocks->bytes + bytes > blocks->bytes_max)
            block_drop(blocks, blocks->oldest, &freed);
        there = blocks->bytes + bytes <= blocks->bytes_max;
        if (there) {
            blocks->bytes += bytes;
            block->bytes += bytes;
        }
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

/* One of before of the same index is of no use any more. */
void query_blocks_put(struct query_blocks *blocks, struct query_block *block)
{
    struct query_block *freed = NULL;

    WITH_LOCK (&blocks->lock) {
        for (struct query_block *at = blocks->newest, *next; at; at = next) {
            next = at->older;
            if (same_index(&at->key, &block->key))
                block_drop(blocks, at, &freed);
        }
        while (blocks->count >= BLOCKS_MAX)
            block_drop(blocks, blocks->oldest, &freed);
        atomic_fetch_add(&block->refs, 1);
        block_link(blocks, block);
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
