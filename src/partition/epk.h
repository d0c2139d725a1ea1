/* Effective partition key (EPK): the bytes that hashing makes of a partition key, bit for bit as
 * the client libraries of Cosmos DB compute them.
 *
 * Clients see it in upper-case hex, and compare that as text; the server keeps the bytes, whose
 * order is the same. Every EPK lies in [PARTITION_EPK_MIN, PARTITION_EPK_MAX), and none is the
 * beginning of another of the same kind. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "document/value.h"
#include "partition/definition.h"

#define PARTITION_EPK_MIN SLICE("")
#define PARTITION_EPK_MAX SLICE("\xFF")

enum {
    PARTITION_EPK_LEVEL_SIZE = 16, /* of version 2, and of each level of MultiHash */
    PARTITION_EPK_V1_MAX = 10 + 1 + 101,
    PARTITION_ROUTING_KEY_MAX = 8192, /* bytes, of any strategy and of any bound */
};

/* The version of what hashing makes of types that JSON lacks (top of epk.c). Known to no client, so
 * it is ours to keep: another version is another kind. */
enum { PARTITION_EPK_OTHER_TYPES_VERSION = 1 };

/* Appends the EPK of the values. MultiHash of fewer values than levels is the common beginning of
 * all EPKs below. -0.0 and 0 differ here; routing (strategy.h) makes them one. Objects and arrays
 * count as undefined. buf needs room for the input too: the values and 2 bytes for each. */
void partition_epk_append(enum partition_kind kind, const struct document_value *values,
                          size_t count, struct buf *buf);

/* Moves *bytes behind the EPK of that many levels at its start. ERROR_STORE_CORRUPT. */
NODISCARD bool partition_epk_skip(enum partition_kind kind, size_t levels, struct slice *bytes,
                                  struct error *err);

/* Below, at or above zero. JavaScript clients drop zero bytes at the end of an EPK of version 1;
 * they do not count there. For EPKs that clients send; ours among themselves compare bytewise. */
int partition_epk_compare(enum partition_kind kind, struct slice a, struct slice b);

/* Appends the upper-case hex. */
void partition_epk_hex(struct slice epk, struct buf *buf);

/* The bytes of hex, of either case, in the arena. ERROR_BAD_REQUEST. */
NODISCARD bool partition_epk_from_hex(struct slice hex, struct arena *arena, struct slice *ret_epk,
                                      struct error *err);

/* The n - 1 bounds, ascending, that cut the space of EPKs into n spans which hashed keys reach
 * equally often; ret_points has room for them, the bytes live in the arena. 1 <= n <= 2^24. */
void partition_epk_split_points(enum partition_kind kind, size_t n, struct arena *arena,
                                struct slice *ret_points);
