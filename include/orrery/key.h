/* orrery/key.h: the partition key that a container's synthetic definition gives a document, for
 * programs that want to know it before they ask, or without asking, the server. It is the server's
 * own code: what this library computes is what the server fills in.
 *
 * Everything is JSON text in UTF-8. A container is what it was created with, or as it is read back:
 *
 *     {"partitionKey": {"paths": ["/partitionKey"], "version": 2},
 *      "orrery": {"synthetic": {"kind": "concatenation", "target": "/partitionKey",
 *                               "sources": ["/deviceId", "/date"], "separator": "-"}}}
 *
 * A partition key comes as the text of the header x-ms-documentdb-partitionkey:
 * ["abc-123-2018"]; a definition that does not say "escape" escapes, as one that is created does.
 * docs/synthetic-keys.md describes the kinds, and how values become text.
 *
 * A struct orrery_key never changes and may be used by several threads at once. For C and C++; link
 * with -lorrery-client. */
#ifndef ORRERY_KEY_H
#define ORRERY_KEY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What calls return. */
enum orrery_key_status {
    ORRERY_KEY_OK = 0,
    ORRERY_KEY_REFUSED = 1, /* the message says why */
    ORRERY_KEY_SMALL = 2,   /* out is too small; *ret_length says what it takes */
};

enum { ORRERY_KEY_MESSAGE_SIZE = 720 };

/* Why a call refused; a text that is always ended. */
struct orrery_key_error {
    char message[ORRERY_KEY_MESSAGE_SIZE];
};

struct orrery_key; /* a container's definition, understood */

/* Reads a container. orrery_key_close frees it; NULL is fine there. */
int orrery_key_open(const char *container, size_t length, struct orrery_key **ret_key,
                    struct orrery_key_error *error);
void orrery_key_close(struct orrery_key *key);

/* How many suffixes it has; 0: none. */
unsigned orrery_key_suffixes(const struct orrery_key *key);

/* Text goes to out, with a NUL, if size is enough for it; *ret_length is without the NUL. */

/* The partition key of a document. suffix: of a random one, 1 to orrery_key_suffixes; 0: one is
 * drawn. */
int orrery_key_compute(const struct orrery_key *key, const char *document, size_t length,
                       unsigned suffix, char *out, size_t size, size_t *ret_length,
                       struct orrery_key_error *error);

/* The partition key of source values, a JSON array of them in the order of the definition (and of
 * the other components around them, if the key is hierarchical):
 * ["2018-08-09","1HGCM82633A004352"]. Refused with a random suffix, which they do not determine. */
int orrery_key_of_sources(const struct orrery_key *key, const char *values, size_t length,
                          char *out, size_t size, size_t *ret_length,
                          struct orrery_key_error *error);

/* The partition key of a base value, a JSON array with it, and a suffix from 1 to
 * orrery_key_suffixes: for readers who ask for all of them. */
int orrery_key_of_base(const struct orrery_key *key, const char *base, size_t length,
                       unsigned suffix, char *out, size_t size, size_t *ret_length,
                       struct orrery_key_error *error);

/* The key of a document and how it came about, as an object: partitionKey, open, synthetic,
 * effectivePartitionKey. */
int orrery_key_explain(const struct orrery_key *key, const char *document, size_t length, char *out,
                       size_t size, size_t *ret_length, struct orrery_key_error *error);

/* Which of so many equal partitions, from 0, a partition key (an array) is in: as a container that
 * was created with that many has them. */
int orrery_key_partition(const struct orrery_key *key, const char *partition_key, size_t length,
                         unsigned partitions, unsigned *ret_partition,
                         struct orrery_key_error *error);

#ifdef __cplusplus
}
#endif

#endif
