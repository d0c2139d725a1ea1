/* Explained: what the server says of how it ran a query, over all its pages, as an indented tree.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

#include <stdio.h>

struct shell_explained {
    struct slice plan; /* of the first page: the BSON of query/run/explain.c; empty: none came */
    uint64_t pages;
    double entries, loaded, matched, rows;
    double total, partitions, index, items, output; /* RU */
};

/* Takes a page's in. The first is kept, in the arena. */
void shell_explained_add(struct shell_explained *explained, struct slice document,
                         struct arena *arena);

void shell_explained_append(const struct shell_explained *explained, struct buf *out);
void shell_explained_print(const struct shell_explained *explained, FILE *to);
