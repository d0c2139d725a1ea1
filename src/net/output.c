/* A singly linked list of chunks. A chunk either has its bytes behind it (16 KB, so that a TLS
 * record is filled by one) or points to bytes handed over. The pool keeps as many chunks as a busy
 * loop needs within one event; an idle connection holds none. */
#include "net/output.h"

#include "base/memory.h"

enum {
    CHUNK_SIZE = 16 * 1024,
    POOL_MAX = 32,
    /* Handed-over pieces shorter than this are copied: a chunk and an iovec cost more. */
    OWNED_MIN = 1024,
};

struct net_chunk {
    struct net_chunk *next;
    uint8_t *data;
    size_t at, len;  /* data[at] to data[len - 1] wait to be sent */
    size_t capacity; /* of bytes[]; 0: the bytes were handed over */
    struct net_release release;
    uint8_t bytes[];
};

void net_chunk_pool_done(struct net_chunk_pool *pool)
{
    while (pool->free) {
        struct net_chunk *chunk = pool->free;

        pool->free = chunk->next;
        memory_free(chunk);
    }
    pool->count = 0;
}

/* One for bytes behind it, at least capacity of them, or with capacity 0 for bytes handed over. */
static struct net_chunk *chunk_new(struct net_chunk_pool *pool, size_t capacity)
{
    struct net_chunk *chunk;

    if (capacity)
        capacity = MAX(capacity, (size_t)CHUNK_SIZE);
    if (capacity == CHUNK_SIZE && pool->free) {
        chunk = pool->free;
        pool->free = chunk->next;
        pool->count--;
    } else {
        chunk = memory_alloc(sizeof *chunk + capacity);
    }
    *chunk = (struct net_chunk){.capacity = capacity, .data = chunk->bytes};
    return chunk;
}

static void release_call(struct net_release release, const uint8_t *data)
{
    if (release.fn)
        release.fn(release.context);
    else
        memory_free((void *)data);
}

static void chunk_free(struct net_chunk *chunk, struct net_chunk_pool *pool)
{
    if (chunk->capacity == 0)
        release_call(chunk->release, chunk->data);
    if (chunk->capacity == CHUNK_SIZE && pool->count < POOL_MAX) {
        chunk->next = pool->free;
        pool->free = chunk;
        pool->count++;
    } else {
        memory_free(chunk);
    }
}

void net_output_init(struct net_output *output, struct net_chunk_pool *pool)
{
    *output = (struct net_output){.pool = pool};
}

void net_output_done(struct net_output *output)
{
    while (output->first) {
        struct net_chunk *chunk = output->first;

        output->first = chunk->next;
        chunk_free(chunk, output->pool);
    }
    net_output_init(output, output->pool);
}

static void chunk_append(struct net_output *output, struct net_chunk *chunk)
{
    if (output->last)
        output->last->next = chunk;
    else
        output->first = chunk;
    output->last = chunk;
}

uint8_t *net_output_reserve(struct net_output *output, size_t size)
{
    struct net_chunk *last = output->last;

    /* A chunk of handed-over bytes has no capacity and so no room. */
    if (!last || last->capacity < last->len + size) {
        last = chunk_new(output->pool, MAX(size, (size_t)1));
        chunk_append(output, last);
    }
    return last->data + last->len;
}

void net_output_commit(struct net_output *output, size_t count)
{
    assert(output->last->len + count <= output->last->capacity);
    output->last->len += count;
    output->len += count;
}

void net_output_append(struct net_output *output, struct slice bytes)
{
    if (bytes.len == 0)
        return;
    memcpy(net_output_reserve(output, bytes.len), bytes.data, bytes.len);
    net_output_commit(output, bytes.len);
}

void net_output_append_owned(struct net_output *output, struct slice bytes,
                             struct net_release release)
{
    struct net_chunk *chunk;

    if (bytes.len < OWNED_MIN) {
        net_output_append(output, bytes);
        release_call(release, bytes.data);
        return;
    }
    chunk = chunk_new(output->pool, 0);
    chunk->data = (uint8_t *)bytes.data; /* only ever read */
    chunk->len = bytes.len;
    chunk->release = release;
    chunk_append(output, chunk);
    output->len += bytes.len;
}

size_t net_output_pieces(const struct net_output *output, struct iovec *ret_pieces, size_t max)
{
    size_t count = 0;

    for (struct net_chunk *chunk = output->first; chunk && count < max; chunk = chunk->next) {
        if (chunk->len == chunk->at)
            continue;
        ret_pieces[count++] =
            (struct iovec){.iov_base = chunk->data + chunk->at, .iov_len = chunk->len - chunk->at};
    }
    return count;
}

void net_output_consume(struct net_output *output, size_t count)
{
    assert(count <= output->len);
    output->len -= count;
    while (output->first) {
        struct net_chunk *chunk = output->first;
        size_t sent = MIN(count, chunk->len - chunk->at);

        chunk->at += sent;
        count -= sent;
        if (chunk->at < chunk->len)
            return;
        output->first = chunk->next;
        if (!output->first)
            output->last = NULL;
        chunk_free(chunk, output->pool);
    }
}
