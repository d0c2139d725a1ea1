/* Restore: everything of a backup, into stores that are new. Parts of one go into a running server
 * instead, item by item (cli/restore_part.c). */
#pragma once

#include "backup/archive.h"

/* Where a node of the backup goes. */
struct backup_target {
    struct slice name; /* of the node in the backup */
    const char *url;   /* of a store that is not there yet, or holds nothing */
};

struct backup_restore_options {
    const struct backup_target *targets; /* one for each node */
    size_t target_count;
    void (*progress)(void *context, uint64_t bytes, uint64_t bytes_total); /* or NULL */
    void *context;
};

/* Cut off anywhere, no server takes what is there for a cluster: a directory has another name until
 * it is whole, and the catalogue comes last, in one write. ERROR_STORE_CORRUPT; ERROR_BAD_REQUEST:
 * a node has no target, or a store is not empty. */
NODISCARD bool backup_restore(struct backup_archive *archive,
                              const struct backup_restore_options *options, struct error *err);

/* Reads every chunk of the backup and compares it with its digest; nothing is written. */
NODISCARD bool backup_check(struct backup_archive *archive,
                            const struct backup_restore_options *options, struct error *err);
