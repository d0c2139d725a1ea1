/* Output: bytes on their way to a socket, as a queue of chunks.
 *
 * Small pieces are copied together into chunks of a fixed size, which a loop keeps for the next
 * writer; large pieces travel in the memory they were made in and are released when sent. */
#pragma once

#include "base/slice.h"

#include <sys/uio.h>

/* How bytes handed over are given back, once and on the loop's thread. With fn NULL they are freed
 * with memory_free. */
struct net_release {
    void (*fn)(void *context);
    void *context;
};

struct net_chunk;

/* Unused chunks of one loop, at most a few. */
struct net_chunk_pool {
    struct net_chunk *free;
    size_t count;
};

void net_chunk_pool_done(struct net_chunk_pool *pool);

struct net_output {
    struct net_chunk *first, *last;
    size_t len; /* bytes queued */
    struct net_chunk_pool *pool;
};

void net_output_init(struct net_output *output, struct net_chunk_pool *pool);
void net_output_done(struct net_output *output);

/* At least size bytes in one piece to write into; commit tells how many were used. */
uint8_t *net_output_reserve(struct net_output *output, size_t size);
void net_output_commit(struct net_output *output, size_t count);

void net_output_append(struct net_output *output, struct slice bytes); /* copied */
void net_output_append_owned(struct net_output *output, struct slice bytes,
                             struct net_release release);

/* The first pieces, at most max; returns how many. */
size_t net_output_pieces(const struct net_output *output, struct iovec *ret_pieces, size_t max);

/* The first count bytes are sent. */
void net_output_consume(struct net_output *output, size_t count);
