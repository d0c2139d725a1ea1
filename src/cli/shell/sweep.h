/* Sweep: every item that a condition holds for, deleted or patched.
 *
 * The items are looked for first, all of them, and changed afterwards: a patch may make the
 * condition true of an item that it was not true of, or put it where the query comes by again. Each
 * is changed only while it is as it was found; others are counted. */
#pragma once

#include "cli/shell/ask.h"

enum { SHELL_SWEEP_ITEMS_MAX = 1000000 };

struct shell_sweep {
    struct shell_server *server;
    struct slice database, container;
    struct slice condition;  /* what stands behind WHERE; the item is c */
    struct slice operations; /* of a patch: a JSON array; data NULL: they are deleted */
    bool dry;                /* only counted */
    bool quiet;              /* no bar and no sums */
    bool json;               /* the sums as JSON, to standard output */
};

/* *ret_found: items the condition holds for; *ret_failed: those that were refused, or were changed
 * by others in between. ERROR_LIMIT_REACHED: there are too many at once. */
NODISCARD bool shell_sweep_run(const struct shell_sweep *sweep, uint64_t *ret_found,
                               uint64_t *ret_failed, struct error *err);
