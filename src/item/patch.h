/* Patch: a few changes to an item, sent instead of the whole of it.
 *
 *     add      sets a property; inserts an element before the index, or at the end (index = length,
 *              or -)
 *     set      as add, but an element that is there is overwritten
 *     replace  as set, but the target must be there
 *     remove   the target must be there; later elements move up
 *     incr     adds a number to the one at the path; where there is none, sets it
 *     move     removes the value at from, then adds it at path, which is not below from
 *
 * Paths are JSON pointers; the object or array that holds the target must be there. id, system
 * properties and whatever touches a partition key path are refused when the patch is parsed. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "document/names.h"
#include "document/path.h"

enum { PATCH_OPERATIONS_MAX = 10, PATCH_POINTER_STEPS_MAX = 128 };

enum patch_kind { PATCH_ADD, PATCH_SET, PATCH_REPLACE, PATCH_REMOVE, PATCH_INCR, PATCH_MOVE };

/* A JSON pointer: /a/0/b~1c. Its steps are unescaped; what each means depends on what it meets. */
struct patch_pointer {
    struct slice text;
    const struct slice *steps;
    size_t count; /* at least 1 */
};

struct patch_operation {
    enum patch_kind kind;
    struct patch_pointer path;
    struct patch_pointer from;   /* of move */
    struct document_value value; /* of add, set, replace and incr */
};

/* Parsed once, applied as often as the item changes under it. */
struct patch {
    const struct patch_operation *operations;
    size_t count;
    struct slice condition; /* "from c where ...", for the query engine; data NULL: none */
};

/* Parses a body, validated BSON: the array of operations, or an object with "operations" and
 * perhaps "condition". keys are the partition key paths. The patch lives in the arena and borrows
 * from body; names and keys: of the container. ERROR_BAD_REQUEST names the operation by its place.
 */
NODISCARD bool patch_parse(const struct document_value *body, const struct document_names *names,
                           const struct document_path *keys, size_t key_count, struct arena *arena,
                           const struct patch **ret_patch, struct error *err);

/* Appends to buf the item as it is after all operations. On failure buf is as it was.
 * ERROR_BAD_REQUEST: an operation does not fit the item; ERROR_TOO_DEEP: the result is nested
 * deeper than DOCUMENT_DEPTH_DEFAULT; ERROR_TOO_LARGE: it passes the maximum of buf. */
NODISCARD bool patch_apply(const struct patch *patch, struct slice item, struct buf *buf,
                           struct error *err);
