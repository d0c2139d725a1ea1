/* Candidate: a partition key a container could have, and which ones are worth looking at. */
#pragma once

#include "advise/workload.h"

enum advise_key_kind {
    ADVISE_PROPERTY,
    ADVISE_HIERARCHICAL,    /* two or three paths */
    ADVISE_CONCATENATION,   /* synthetic: two or three properties in one text */
    ADVISE_RANDOM_SUFFIX,   /* synthetic: a property and a random number 1..n */
    ADVISE_COMPUTED_SUFFIX, /* synthetic: a property and a number 1..n of the hash of another */
    ADVISE_ONE_KEY,         /* all items under one value */
};
enum { ADVISE_KEY_KINDS = 6, ADVISE_KEY_PATHS_MAX = 3, ADVISE_CANDIDATES_MAX = 256 };
const char *advise_key_kind_name(enum advise_key_kind kind);

struct advise_key {
    enum advise_key_kind kind;
    uint8_t path_count;
    uint8_t paths[ADVISE_KEY_PATHS_MAX]; /* of the workload */
    uint8_t hashed;                      /* of a computed suffix: the path it is of */
    uint32_t suffixes;                   /* n; 0: none */
    bool unnamed;                        /* no request but writes names all of its paths */
};

/* Appends what a person calls it: /tenant, /tenant + /user, ... */
void advise_key_describe(const struct advise_workload *workload, const struct advise_key *key,
                         struct buf *out);

/* Appends the JSON members of a container's definition: "partitionKey" and, where it is synthetic,
 * "orrery". */
void advise_key_define(const struct advise_workload *workload, const struct advise_key *key,
                       struct buf *out);

/* Where a command is to be carried out; data NULL: not known. */
struct advise_target {
    struct slice database, container;
    bool fixed; /* it cannot have another key: there is no command */
};

/* The command that gives a container this key, as a shell takes it; empty where there is none. */
struct slice advise_key_command(const struct advise_workload *workload,
                                const struct advise_key *key, const struct advise_target *target,
                                struct arena *arena);

/* A number that names the logical partition of an item with these values. chance: of a random
 * suffix. */
uint64_t advise_key_of(const struct advise_key *key, const advise_value *values, uint64_t chance);

/* How much of the key somebody knows who knows these paths. */
enum advise_known {
    ADVISE_KNOWN_NOTHING, /* all partitions must be asked */
    ADVISE_KNOWN_PREFIX,  /* the first levels of a hierarchical key */
    ADVISE_KNOWN_BASE,    /* all but the suffix: as many keys as there are suffixes */
    ADVISE_KNOWN_WHOLE,   /* one logical partition */
};
enum advise_known advise_key_known(const struct advise_key *key, uint64_t given);

/* The keys worth looking at, in the arena. */
size_t advise_candidates(const struct advise_workload *workload, struct arena *arena,
                         struct advise_key **ret_keys);

/* A key from paths as a person names them: one path, or up to three with hierarchical. -1 where the
 * workload has not seen a path. ERROR_BAD_REQUEST. */
NODISCARD bool advise_key_parse(const struct advise_workload *workload, struct slice text,
                                struct advise_key *ret_key, struct error *err);
