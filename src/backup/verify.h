/* Verify: whether what a partition stores agrees with itself.
 *
 * Items are what is given; numbers, entries of the index, the last record of the feed, expiry,
 * unique keys and sums are derived from them by the same code that writes them (item/write_set.h).
 * Each is looked up under the snapshot of a moment and compared, and entries are counted: where a
 * family has more than its items make, those that no item makes are named.
 *
 * The history of changes is compared with itself: records, their documents and their sums.
 *
 * What no other entry tells of cannot be checked against anything: a property of an item that no
 * index has, of a container that keeps only the latest versions. Stores notice damage of that kind
 * by their own checksums, where they have them. */
#pragma once

#include "backup/moment.h"

enum verify_kind {
    VERIFY_RECORD,    /* of the catalogue: it cannot be read, or its map leaves a gap */
    VERIFY_PARTITION, /* missing on its node, there without an owner, or of a wrong epoch */
    VERIFY_ITEM,      /* cannot be read, or is outside of its partition */
    VERIFY_MISSING,   /* an entry that an item makes */
    VERIFY_WRONG,     /* an entry with another value */
    VERIFY_SURPLUS,   /* an entry that no item makes */
    VERIFY_SUM,       /* a sum that is not that of its items */
    VERIFY_NUMBERING, /* numbers that would be given again */
    VERIFY_RESIDENCE, /* on a node that a resident placement rule does not allow */
};

/* "record", "partition", ... */
const char *verify_kind_name(enum verify_kind kind);

struct verify_finding {
    enum verify_kind kind;
    bool is_derived; /* it can be made anew from items */
    const char *node;
    uint32_t partition;
    const struct catalogue_kept_container *container; /* NULL: of none */
    struct slice key;                                 /* of the entry, with its family */
    struct slice message;
};

/* Whom findings are told; all is borrowed for the call. */
struct verify_sink {
    void (*tell)(void *context, const struct verify_finding *finding);
    void *context;
};

/* Maps, records and partitions of all nodes against each other. Gives the number of findings. */
NODISCARD bool verify_catalogue(const struct backup_moment *moment, const struct verify_sink *sink,
                                size_t *ret_count, struct error *err);

struct verify; /* opaque, owned: one partition being verified */

/* The moment outlives it. repair: what is derived is made anew where its node has a committer. */
struct verify *verify_new(const struct backup_moment *moment,
                          const struct backup_partition *partition, bool repair);
void verify_free(struct verify *verify); /* NULL is fine */
CLEANUP_FN(struct verify *, verify_free)

const struct backup_partition *verify_partition(const struct verify *verify);

struct verify_figures {
    uint64_t items, entries, bytes; /* looked at */
    uint64_t findings, repaired;
    uint64_t resident; /* items whose key a resident rule speaks of */
};
struct verify_figures verify_figures(const struct verify *verify);

/* Goes on for a while, about so many entries. *ret_finished: there is no more. */
NODISCARD bool verify_step(struct verify *verify, size_t entries_max,
                           const struct verify_sink *sink, bool *ret_finished, struct error *err);
