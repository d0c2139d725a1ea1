/* Hybrid rows: the binary form in which the .NET client sends batches and wants them answered.
 *
 * A body is a RecordIO stream: one segment row, then for every operation a record row and the row
 * of the operation. All numbers are little-endian; a varuint has 7 bits in each byte, lowest first,
 * the top bit saying that more follow.
 *
 *     row       81 | schema id, int32 | presence bits | fixed fields | variable fields | sparse
 * fields
 *
 * Presence bits: one for every fixed field that may be absent and every variable field, in the
 * order of the schema, lowest bit first, rounded up to bytes. A fixed field takes its room whether
 * present or not; a variable one that is present is a varuint length and the bytes. Sparse fields
 * fill the rest of the row: a type code, a path, the value. The path is a varuint: the place of a
 * name in the schema (0 is the empty name, then all its names from 1), or, from the count of names
 * on, that count plus the length of a name that follows. All fixed fields come before all variable
 * ones before all sparse ones, in the schemas too.
 *
 *     segment   2147473648: length int32 (may be absent): of this row
 *     record    2147473649: length int32, crc32 uint32 (neither may be absent): of the row behind
 * it operation 2145473648: operationType, resourceType int32; partitionKey utf8,
 *                           effectivePartitionKey binary, id utf8, binaryId binary, resourceBody
 *                           binary; sparse indexingDirective, ifMatch, ifNoneMatch utf8,
 *                           timeToLiveInSeconds int32, minimalReturnPreference bool
 *     result    2145473649: statusCode, subStatusCode int32; eTag utf8, resourceBody binary; sparse
 *                           retryAfterMilliseconds uint32, requestCharge float64 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum { HYBRID_ROW_VERSION = 0x81 };

/* One operation. Slices are borrowed from the body; data NULL: absent. */
struct hybrid_operation {
    int32_t operation_type;
    int32_t resource_type;
    struct slice partition_key; /* JSON text of the key array */
    struct slice effective_partition_key;
    struct slice id;
    struct slice binary_id;
    struct slice resource_body; /* JSON text */
    struct slice indexing_directive, if_match, if_none_match;
    int32_t ttl_seconds; /* 0: absent */
    bool minimal;
};

/* Where a reader stands in a body. */
struct hybrid_reader {
    struct slice rest;
};

/* Reads the segment. ERROR_BAD_REQUEST: the bytes are no such body. */
NODISCARD bool hybrid_reader_init(struct hybrid_reader *reader, struct slice body,
                                  struct error *err);

/* Reads the next operation; *ret_end: there is none, and *ret_operation is not written. Checksums
 * are checked. ERROR_BAD_REQUEST. */
NODISCARD bool hybrid_reader_next(struct hybrid_reader *reader,
                                  struct hybrid_operation *ret_operation, bool *ret_end,
                                  struct error *err);

struct hybrid_result {
    int32_t status, substatus;
    struct slice etag; /* with its quotes; data NULL: none */
    struct slice resource_body;
    uint32_t retry_after_ms; /* 0: none */
    double charge;
};

/* The segment an answer begins with, and one result of it. */
void hybrid_row_append_segment(struct buf *buf);
void hybrid_row_append_result(struct buf *buf, const struct hybrid_result *result);

/* CRC-32 as of ISO 3309. */
uint32_t hybrid_row_crc32(struct slice bytes);
