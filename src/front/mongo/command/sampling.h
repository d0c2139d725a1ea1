/* Sampling: of how many operations a second the advisor is told, by collection, as
 * configureQueryAnalyzer says it. Of a collection that nobody has named it is told of all. Kept
 * beside the catalogue; any thread. */
#pragma once

#include "catalogue/catalogue.h"

enum { MONGO_SAMPLING_MAX = 1024 }; /* collections that are named */

struct mongo_sampling; /* opaque, owned */

/* Reads what is kept; what cannot be read counts as not named. */
struct mongo_sampling *mongo_sampling_new(struct catalogue *catalogue);
void mongo_sampling_free(struct mongo_sampling *sampling); /* NULL is fine */

/* What was said of a collection last; false: nothing. 0: of no operation. */
bool mongo_sampling_find(struct mongo_sampling *sampling, uint32_t container, double *ret_rate);

/* Durable on return. ERROR_BUSY: too many are named. */
NODISCARD bool mongo_sampling_set(struct mongo_sampling *sampling, uint32_t container, double rate,
                                  struct error *err);

/* Is the advisor to be told of an operation of now? Counts it, if so. *ret_named: because somebody
 * has named the collection. */
bool mongo_sampling_takes(struct mongo_sampling *sampling, uint32_t container, int64_t now_ms,
                          bool *ret_named);
