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
#include "definition/view.h"
#include "document/path.h"
#include "index/policy.h"
#include "partition/key.h"

enum {
    DEFINITION_UNIQUE_KEYS_MAX = 10,
    DEFINITION_UNIQUE_PATHS_MAX = 16, /* in all */
    DEFINITION_TTL_OFF = 0,           /* items' own ttl is ignored */
    DEFINITION_CELLS_FORMAT = 1,      /* of entries of spatial indexes */
    DEFINITION_TERMS_FORMAT = 1,      /* of those of full-text indexes */
    DEFINITION_VECTORS_FORMAT = 1,    /* of entries of vector indexes */
    DEFINITION_TTL_OWN = -1,          /* only items with a ttl of their own expire */
};

/* How much a bounded container holds: whoever writes more removes the oldest items with it. */
struct definition_bound {
    int64_t bytes; /* as its counter has them; 0: it is not bounded */
    int64_t items; /* 0: as many as the bytes let in */
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
    const struct index_policy *policy;             /* with all indexes that have not failed */
    const struct index_definition *const *indexes; /* besides the policy: indexes.c */
    size_t index_count;
    const struct definition_unique_key *unique_keys;
    size_t unique_key_count;
    bool has_unique_index;      /* among those of its policy */
    int32_t default_ttl;        /* seconds above 0, or DEFINITION_TTL_OFF, DEFINITION_TTL_OWN */
    int64_t feed_retention_ms;  /* of all versions and deletes; 0: latest versions only */
    uint64_t rekeyed_lsn;       /* of the catalogue, when its keys last became others; 0: never */
    struct placement placement; /* rules for the nodes its keys may be on */
    struct definition_throughput throughput; /* how its owner divides what was bought */
    bool cells;                              /* its policy's spatial indexes have entries */
    bool terms;                              /* so have its full-text indexes */
    bool vectors;                            /* and so have those of vectors */
    bool plane;         /* coordinates in its items are in a plane, not on the Earth */
    struct slice mongo; /* BSON: orrery.mongo, for the MongoDB API alone; data NULL: none */
    bool change_images; /* of it: changes are kept with the documents before and after them */
    struct definition_bound bound; /* of it: a capped collection's */
    struct definition_view view;   /* what it is kept from, if it is a view */
    bool followed;                 /* there are, or may be, views of it */
    bool reference;                /* queries of others may join its items */
    struct slice document; /* BSON: all properties, defaults filled in, no system properties */
};

/* Parses and checks the BSON body of a create (before NULL) or replace. ERROR_BAD_REQUEST in the
 * words of the service: wrong paths, too many unique keys, a changed partition key, ... */
NODISCARD bool definition_new(struct slice body, struct definition *before,
                              struct definition **ret_definition, struct error *err);

/* The same for a replace, where entries of definitions before that one may still be stored: an
 * index that is new gets none of the numbers that are taken. */
NODISCARD bool definition_replaced(struct slice body, struct definition *before,
                                   const bool taken[INDEX_NUMBERS],
                                   struct definition **ret_definition, struct error *err);
/* The body of a create as it is meant today, where definitions on disk that say the same may mean
 * something else: synthetic keys escape (partition/synthetic.h). In the arena, or the body itself.
 */
struct slice definition_fresh(struct slice body, struct arena *arena);

/* The same definition under another id. */
NODISCARD bool definition_renamed(const struct definition *definition, struct slice id,
                                  struct definition **ret_definition, struct error *err);

/* The document of a definition with another orrery.mongo (SLICE_NONE: none), for a replace; in the
 * arena. */
struct slice definition_with_mongo(const struct definition_fields *fields, struct slice mongo,
                                   struct arena *arena);

struct definition *definition_ref(struct definition *definition);
void definition_unref(struct definition *definition); /* NULL is fine */
CLEANUP_FN(struct definition *, definition_unref)

const struct definition_fields *definition_fields(const struct definition *definition);

/* The index of this name; NULL: there is none. */
const struct index_definition *definition_index(const struct definition_fields *fields,
                                                struct slice name);
/* What a client is shown of it, with number, state and, of one that failed, why. */
struct slice definition_index_document(const struct definition_fields *fields, struct slice name);

/* Are the entries of all their indexes the same? */
bool definition_indexes_same(const struct definition_fields *a, const struct definition_fields *b);

/* Copies of a definition's document that say something else of its indexes, for definition_replaced
 * and, with states, definition_new; in the arena. */
struct slice definition_with_index(const struct definition_fields *fields, struct slice index,
                                   struct arena *arena);
struct slice definition_without_index(const struct definition_fields *fields, struct slice name,
                                      struct arena *arena);
/* array: the elements of `orrery.indexes`. */
struct slice definition_with_indexes(const struct definition_fields *fields, struct slice array,
                                     struct arena *arena);
/* words: of each index in its order that has changed. */
struct slice definition_with_states(const struct definition_fields *fields,
                                    const struct index_words *words, const bool *changed,
                                    struct arena *arena);

/* Do its items own values, by unique keys or indexes? */
static inline bool definition_is_unique(const struct definition_fields *fields)
{
    return fields->unique_key_count || fields->has_unique_index;
}

static inline const struct document_names *definition_names_of(const struct definition_fields *of)
{
    return definition_names(of->identity);
}
