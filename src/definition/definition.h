/* Definition: what a container is, parsed once from what its creator said.
 *
 * A definition never changes once made and is shared by reference; replacing a container's
 * properties publishes another. The BSON document it was made from is kept, so that what a client
 * gave comes back as given, completed by the defaults of the service. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "cluster/placement.h"
#include "definition/names.h"
#include "definition/throughput.h"
#include "document/path.h"
#include "index/policy.h"
#include "partition/key.h"

enum {
    DEFINITION_UNIQUE_KEYS_MAX = 10,
    DEFINITION_UNIQUE_PATHS_MAX = 16, /* in all */
    DEFINITION_TTL_OFF = 0,           /* items' own ttl is ignored */
    DEFINITION_TTL_OWN = -1,          /* only items with a ttl of their own expire */
};

/* The values at these paths, together, occur once in a logical partition. */
struct definition_unique_key {
    const struct document_path *paths;
    size_t path_count;
};

struct definition; /* opaque but for the fields below; shared, reference-counted */

struct definition_fields {
    struct slice id;                   /* the user's name for it */
    enum definition_identity identity; /* which properties of its items have a meaning */
    struct partition_definition key;
    const struct index_policy *policy;
    const struct definition_unique_key *unique_keys;
    size_t unique_key_count;
    int32_t default_ttl;        /* seconds above 0, or DEFINITION_TTL_OFF, DEFINITION_TTL_OWN */
    int64_t feed_retention_ms;  /* of all versions and deletes; 0: latest versions only */
    uint64_t rekeyed_lsn;       /* of the catalogue, when its keys last became others; 0: never */
    struct placement placement; /* rules for the nodes its keys may be on */
    struct definition_throughput throughput; /* how its owner divides what was bought */
    struct slice document; /* BSON: all properties, defaults filled in, no system properties */
};

/* Parses and checks the BSON body of a create (before NULL) or replace. ERROR_BAD_REQUEST in the
 * words of the service: wrong paths, too many unique keys, a changed partition key, ... */
NODISCARD bool definition_new(struct slice body, struct definition *before,
                              struct definition **ret_definition, struct error *err);
/* The body of a create as it is meant today, where definitions on disk that say the same may mean
 * something else: synthetic keys escape (partition/synthetic.h). In the arena, or the body itself.
 */
struct slice definition_fresh(struct slice body, struct arena *arena);

struct definition *definition_ref(struct definition *definition);
void definition_unref(struct definition *definition); /* NULL is fine */
CLEANUP_FN(struct definition *, definition_unref)

const struct definition_fields *definition_fields(const struct definition *definition);

static inline const struct document_names *definition_names_of(const struct definition_fields *of)
{
    return definition_names(of->identity);
}
