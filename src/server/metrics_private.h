/* Parts of the metrics, for the files that print them. */
#pragma once

#include "server/metrics.h"

/* The head of a family; and a family of one value. */
void metrics_family(struct buf *out, const char *name, const char *type, const char *help);
void metrics_single(struct buf *out, const char *name, const char *type, const char *help,
                    uint64_t value);

/* What was asked of containers and their physical partitions, what they store, and migrations. */
void metrics_containers_print(const struct metrics_sources *sources, struct buf *out);
