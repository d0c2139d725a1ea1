/* Index policy: which values of an item are indexed, and the entries an item therefore has.
 *
 * An entry is a path and a value. Its key (layout in index_policy.c, format version 1), without the
 * family byte before it and without routing key and number behind it:
 *
 *     path, escaped and terminated | value, as document_key_append_cut orders it
 *
 * Every scalar leaf has an entry; a leaf inside an array is reached by [] in the path; an empty
 * object or array has one for its type. Composite indexes have entries of their own. A policy
 * never changes once made. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "document/path.h"

struct index_policy; /* opaque, lives in the arena it was parsed into */

/* Bytes of a value kept in an entry; what is longer is cut and looked up in the item. */
enum { INDEX_VALUE_MAX = 256, INDEX_ENTRIES_MAX = 20000 };

/* Parses the indexingPolicy of a container (BSON object; SLICE_NONE: the default policy) and
 * appends to completed the policy as the service shows it: defaults filled in, the excluded
 * "_etag" path appended (facts: sections 6 and 19). ERROR_BAD_REQUEST. */
NODISCARD bool index_policy_parse(struct slice policy, struct arena *arena, struct buf *completed,
                                  const struct index_policy **ret_policy, struct error *err);

bool index_policy_is_none(const struct index_policy *policy); /* nothing but id and _ts */

/* One entry of an item: the bytes described above. */
struct index_entry {
    struct slice bytes; /* in the arena */
};

/* All entries of an item (its BSON without system properties), sorted, without repetition. id is
 * always indexed. ERROR_TOO_LARGE: more than INDEX_ENTRIES_MAX. */
NODISCARD bool index_entries(const struct index_policy *policy, struct slice item,
                             struct arena *arena, struct index_entry **ret_entries,
                             size_t *ret_count, struct error *err);

/* Is this path (a scalar, or everything below) served by the index? */
bool index_policy_covers(const struct index_policy *policy, const struct document_path *path);

/* The common beginning of all entries of a path, for scans: appended to buf. */
void index_path_append(const struct document_path *path, struct buf *buf);
