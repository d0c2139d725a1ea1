/* Partition key definition: which properties of an item make its partition key, and how the key
 * becomes a routing key.
 *
 * A definition never changes once made. Its paths live in the arena it was made in; the struct
 * itself may be copied. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "document/path.h"

enum { PARTITION_PATHS_MAX = 3 };

/* What clients are shown: kind and version of the service. */
enum partition_kind {
    PARTITION_HASH_V1,    /* "Hash", version 1 or none: one path */
    PARTITION_HASH_V2,    /* "Hash", version 2: one path */
    PARTITION_MULTI_HASH, /* "MultiHash", version 2: up to three paths, each hashed alone */
};

/* How the server places keys (strategy.h). */
enum partition_strategy_kind {
    PARTITION_STRATEGY_HASH,
    PARTITION_STRATEGY_RANGE,
    PARTITION_STRATEGY_LOOKUP,
};

struct partition_lookup;    /* of PARTITION_STRATEGY_LOOKUP: lookup.h */
struct partition_synthetic; /* synthetic.h */

struct partition_definition {
    enum partition_kind kind;
    enum partition_strategy_kind strategy;
    bool system_key;    /* a fixed container made without a key: /_partitionKey, filled by nobody */
    bool version_given; /* of version 1, which is also that of who says none: it is shown again */
    uint8_t path_count;
    struct document_path paths[PARTITION_PATHS_MAX];
    struct slice texts[PARTITION_PATHS_MAX];     /* the paths as they were given */
    const struct partition_synthetic *synthetic; /* how one of them is made; NULL: none is */

    /* Of PARTITION_STRATEGY_RANGE: routing keys that the first map is cut at, ascending. */
    const struct slice *bounds;
    size_t bound_count;
    const struct partition_lookup *lookup;

    /* How keys were made before the container was re-keyed, while clients that still speak of keys
     * so are understood; its paths and synthetic alone count. NULL: there is nobody to be. */
    const struct partition_definition *formerly;
};

/* What a creator said. */
struct partition_definition_parts {
    struct slice kind;         /* absent: Hash */
    int64_t version;           /* 0: not given, which is 1 for Hash */
    const struct slice *paths; /* with system_key they may be left out */
    size_t path_count;
    bool system_key;
};

/* Checks the parts and parses the paths into the arena. ERROR_BAD_REQUEST in the words of the
 * service. */
NODISCARD bool partition_definition_build(const struct partition_definition_parts *parts,
                                          struct arena *arena,
                                          struct partition_definition *ret_definition,
                                          struct error *err);

/* The same from the BSON of {"paths": [...], "kind": "Hash", "version": 2, "systemKey": false}, as
 * clients send it and as partition_definition_append wrote it. Other properties are ignored. */
NODISCARD bool partition_definition_read(struct slice document, struct arena *arena,
                                         struct partition_definition *ret_definition,
                                         struct error *err);

/* Appends that object as the element key of the BSON document being written: kind always, version
 * only if it is not 1, systemKey only if true. */
void partition_definition_append(const struct partition_definition *definition, struct slice key,
                                 struct buf *buf);

/* Equal in kind and paths; paths count by what they mean, not by their quotes. The strategy is not
 * looked at: it is read apart (definition/strategy.c). */
bool partition_definition_equal(const struct partition_definition *a,
                                const struct partition_definition *b);
