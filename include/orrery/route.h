/* Orrery: finding the shard, that is the physical partition, of a partition key value.
 *
 * For programs that keep a connection, a queue or a batch for each shard. They ask the server for
 * the shard list of a container (GET /_orrery/containers/DB/COLL/shards, docs/admin.md), read it
 * here, and find shards without asking again. The list has an ETag: asked with If-None-Match, the
 * server answers 304 as long as nothing has changed. A list that is out of date does no harm: the
 * server finds the right partition of a request with a key by itself.
 *
 * A list never changes once read, so any number of threads may use one. Nothing here talks to a
 * server. C and C++; link with -lorrery-client. */
#ifndef ORRERY_ROUTE_H
#define ORRERY_ROUTE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What went wrong, in words. Wherever one is taken, NULL will do. */
struct orrery_problem {
    char message[720];
};

struct orrery_shards; /* opaque, owned by the program */

/* One shard. Texts live as long as the list. */
struct orrery_shard {
    const char *id;       /* of the physical partition */
    const char *range_id; /* to send as x-ms-documentdb-partitionkeyrangeid */
    const char *node;     /* what the operator calls the node that holds it */
    const char *endpoint; /* where to send requests for it */
    const char *min;      /* its routing keys: from this one, in upper-case hex, */
    const char *max;      /* to before this one */
};

/* Reads the JSON of a shard list. NULL: it is none, or of a newer kind than this library knows. */
struct orrery_shards *orrery_shards_read(const char *json, size_t len,
                                         struct orrery_problem *problem);
void orrery_shards_free(struct orrery_shards *shards); /* NULL is fine */

/* Grows whenever partitions split, merge or move. */
uint64_t orrery_shards_version(const struct orrery_shards *shards);

/* In the order of routing keys; index is below the count. */
size_t orrery_shards_count(const struct orrery_shards *shards);
const struct orrery_shard *orrery_shards_at(const struct orrery_shards *shards, size_t index);

/* The shard of a partition key: a JSON array of one value for each path, as clients send it in
 * x-ms-documentdb-partitionkey: ["a"], [{}] where an item has none. NULL: the text is no such key.
 */
const struct orrery_shard *orrery_route(const struct orrery_shards *shards, const char *key,
                                        size_t len, struct orrery_problem *problem);

/* The first of the shards, which follow one another, that hold all keys beginning with these values
 * of a hierarchical one; of a whole key its shard, of [] all. */
const struct orrery_shard *orrery_route_all(const struct orrery_shards *shards, const char *prefix,
                                            size_t len, size_t *ret_count,
                                            struct orrery_problem *problem);

/* Writes the routing key of a key as upper-case hex and a NUL. Returns its length without the NUL,
 * as snprintf does, so that one of size or more was cut; 0: the text is no such key. */
size_t orrery_route_key(const struct orrery_shards *shards, const char *key, size_t len, char *hex,
                        size_t size, struct orrery_problem *problem);

#ifdef __cplusplus
}
#endif

#endif
