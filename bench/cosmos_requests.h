/* Cosmos requests: what a client library of Cosmos DB sends, every one signed with the account key.
 *
 * Items are those of space.h, in a container of the database bench: item n has its own id, and ten
 * of them share a partition key. */
#pragma once

#include "base/buf.h"

enum { COSMOS_TEMPLATES = 256 };

/* The containers differ in what they index. */
enum cosmos_container {
    COSMOS_INDEXED, /* every path: the policy a container has that names none */
    COSMOS_KEYED,   /* nothing but partition key and id */
    COSMOS_CONTAINERS,
};

/* What is done with one item. A replace and a patch change one value of it, which is indexed where
 * anything is. */
enum cosmos_verb { COSMOS_READ, COSMOS_CREATE, COSMOS_REPLACE, COSMOS_PATCH, COSMOS_VERBS };

struct cosmos_requests; /* opaque, owned */

/* key is base64, as connection strings have it. */
struct cosmos_requests *cosmos_requests_new(const char *key);
void cosmos_requests_free(struct cosmos_requests *requests);

/* From now on the values of items differ from item to item, where they were those of 256: an index
 * has as many values as items. */
void cosmos_requests_distinct(struct cosmos_requests *requests);

/* Each appends one request. throughput is RU/s of the container. */
void cosmos_database_create(struct cosmos_requests *requests, struct buf *out);
void cosmos_container_create(struct cosmos_requests *requests, enum cosmos_container container,
                             unsigned throughput, struct buf *out);
void cosmos_item_create(struct cosmos_requests *requests, enum cosmos_container container,
                        uint64_t n, struct buf *out);
void cosmos_item_read(struct cosmos_requests *requests, enum cosmos_container container, uint64_t n,
                      struct buf *out);
/* change is a number that no change before had. */
void cosmos_item_replace(struct cosmos_requests *requests, enum cosmos_container container,
                         uint64_t n, uint64_t change, struct buf *out);
void cosmos_item_patch(struct cosmos_requests *requests, enum cosmos_container container,
                       uint64_t n, uint64_t change, struct buf *out);
/* Items first to first + count - 1 of the indexed container in one bulk request, each alone. */
void cosmos_items_create(struct cosmos_requests *requests, uint64_t first, size_t count,
                         struct buf *out);
/* The same item of the indexed container by a query for its id, in its partition key. */
void cosmos_item_query(struct cosmos_requests *requests, uint64_t n, struct buf *out);

/* The parts of item n, for a server that speaks something else; NUL-terminated, valid until the
 * next call. */
struct cosmos_item {
    const char *tenant, *id;
    struct slice json; /* about 1 KB; a NUL follows */
};

struct cosmos_item cosmos_item_parts(struct cosmos_requests *requests, uint64_t n);

/* The same with one value that the change has, which is a JSON string. */
struct cosmos_item cosmos_item_changed(struct cosmos_requests *requests, uint64_t n,
                                       uint64_t change);
#define COSMOS_CHANGED_NAME "company"
enum { COSMOS_CHANGE_SIZE = 16 };
void cosmos_change_json(uint64_t change, char ret_json[COSMOS_CHANGE_SIZE]);
