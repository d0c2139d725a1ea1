/* Table requests: what a client library of Azure tables sends, every one signed with the account
 * key (SharedKeyLite).
 *
 * Entities have about 1 KB and eight properties; ten of them share a PartitionKey. Batches are 100
 * entities of a partition of their own. */
#pragma once

#include "base/buf.h"

#define TABLE_REQUESTS_ACCOUNT "devstoreaccount1"

enum { TABLE_BATCH_ENTITIES = 100, TABLE_PARTITION_ENTITIES = 10 };

struct table_requests; /* opaque, owned */

struct table_requests *table_requests_new(void);
void table_requests_free(struct table_requests *requests);

/* Each appends one request. throughput is RU/s of the table, where the server knows it. */
void table_request_create(struct table_requests *requests, const char *table, unsigned throughput,
                          struct buf *out);
void table_request_insert(struct table_requests *requests, const char *table, uint64_t n,
                          struct buf *out);

/* Of an entity of the table bench. */
void table_request_get(struct table_requests *requests, uint64_t n, struct buf *out);

/* The entities of the partition of entity n whose count is even: half of them. */
void table_request_query(struct table_requests *requests, uint64_t n, struct buf *out);

/* Batch n of inserts. */
void table_request_batch(struct table_requests *requests, const char *table, uint64_t n,
                         struct buf *out);
