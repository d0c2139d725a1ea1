/* Partition key: the values that name an item's logical partition.
 *
 * One value for each path of the definition. They are borrowed from the item or text they were read
 * from, or live in the arena that was handed in. A key may also be a prefix of a hierarchical one
 * (`partial`): it names all logical partitions that begin so, for queries; the empty prefix names
 * the whole container.
 *
 * Missing, null, false and 0 are four different keys. 1, 1.0 and decimal 1.00 are one, and so are 0
 * and -0, as everywhere in order.h. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "document/value.h"
#include "partition/definition.h"

struct partition_key {
    struct document_value components[PARTITION_PATHS_MAX];
    uint8_t count;
    bool partial; /* fewer components than the definition has paths */
    bool open;    /* of a synthetic key: its made component is not known yet, only perhaps the base
                     of it, which stands there instead; else undefined does. Whoever reads or
                     writes finds it out (item/claim.h) */
    bool nested;  /* the item has an array, or code with a scope, where a component should be: it
                     counts as undefined, and partition_key_check refuses it */

    /* Of a container that was re-keyed (former.h): the key in the terms of before, if the request
     * may have been meant so. former_only: in those of now it makes no sense. */
    const struct partition_key *former;
    bool former_only;
};

/* Bytes of text and binary that the components of one key may have together. Settings: the service
 * has these. */
struct partition_key_limits {
    size_t bytes_max; /* 2048; of version 1 too, though no more than 100 characters place it */
};

enum { PARTITION_KEY_BYTES_DEFAULT = 2048 };

/* The key an item has. Cannot fail: what is not there or an object is undefined, what cannot be a
 * key is noted (`nested`). Borrowed from item. */
struct partition_key partition_key_extract(const struct partition_definition *definition,
                                           struct slice item);

/* A key from values at hand, one for each path or, from the first, fewer. */
struct partition_key partition_key_of(const struct partition_definition *definition,
                                      const struct document_value *values, size_t count);

/* What must hold for a key under which something is written: no object or array, whole, and within
 * limits. ERROR_BAD_REQUEST. */
NODISCARD bool partition_key_check(const struct partition_definition *definition,
                                   const struct partition_key *key,
                                   const struct partition_key_limits *limits, struct error *err);

/* How many components a text must have. */
enum partition_key_need {
    PARTITION_KEY_WHOLE, /* all: point operations, scripts */
    PARTITION_KEY_ANY,   /* a prefix will do, even [] : queries and feeds */
};

/* Reads the JSON array of the header x-ms-documentdb-partitionkey; {} stands for undefined. For a
 * system key, [] and [{}] are the key of items without one. Text lives in the arena.
 * ERROR_BAD_REQUEST: not such an array, or not as many components as the definition has. */
NODISCARD bool partition_key_parse(const struct partition_definition *definition, struct slice text,
                                   enum partition_key_need need, struct arena *arena,
                                   struct partition_key *ret_key, struct error *err);

bool partition_key_equal(const struct partition_key *a, const struct partition_key *b);

/* Does the key begin with all components of prefix? */
bool partition_key_starts_with(const struct partition_key *key, const struct partition_key *prefix);

/* Appends the typed, order-preserving bytes of the components: the `pk` of a stored key, in the SQL
 * order of document/order.h, whatever API wrote it. Equal keys have equal bytes; the bytes of a
 * partial key begin those of every key it covers; no whole key begins another. */
void partition_key_append(const struct partition_key *key, struct buf *buf);

/* Reads those bytes from the start of *bytes and moves *bytes behind them. ERROR_STORE_CORRUPT. */
NODISCARD bool partition_key_read(const struct partition_definition *definition,
                                  struct slice *bytes, struct arena *arena,
                                  struct partition_key *ret_key, struct error *err);
NODISCARD bool partition_key_skip(const struct partition_definition *definition,
                                  struct slice *bytes, struct error *err);

/* Appends the key as partition_key_parse reads it: ["a",{},1]; [] for a system key nobody filled.
 * For messages, statistics and answers. */
void partition_key_json(const struct partition_definition *definition,
                        const struct partition_key *key, struct buf *buf);
