/* Child cache: bodies of scripts that were read of late, so many bytes of them and no more.
 *
 * Scripts are the only children that may be large: 512 KB each, some hundred of them in a
 * container. What the catalogue keeps of one in memory is its name and what triggers are chosen by;
 * the rest is in its record, and read when somebody wants it. */
#pragma once

#include "catalogue/child.h"

struct child_cache; /* opaque, for any number of threads */

struct child_cache *child_cache_new(size_t bytes_max);
void child_cache_free(struct child_cache *cache); /* NULL is fine */

/* The whole child of that number as of that LSN, with a reference; NULL: it is not here. */
struct catalogue_child *child_cache_find(struct child_cache *cache, uint32_t number, uint64_t lsn);

/* Takes a reference of its own. What was used longest ago makes room. */
void child_cache_put(struct child_cache *cache, struct catalogue_child *whole);
