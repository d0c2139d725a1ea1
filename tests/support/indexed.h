/* Indexed: one container of a catalogue in memory, with a caretaker that is turned by hand, for
 * tests of indexes. The clock stands still until the test turns it. */
#pragma once

#include "catalogue/caretaker.h"
#include "catalogue/container_space.h"
#include "catalogue/indexes.h"
#include "item/operation.h"

struct indexed {
    struct engine *engine;
    struct cluster *cluster;
    struct catalogue *catalogue;
    struct caretaker *caretaker;
    struct arena *arena;
    struct clock clock;
    int64_t wall_ms;
    size_t slice;
};

/* A container "c" with the partition key /pk, its items in so many slices; orrery: JSON, or NULL.
 * ru: 20000 has two partitions. */
void indexed_init(struct indexed *indexed, const char *orrery, int64_t ru, size_t slice);
void indexed_done(struct indexed *indexed);

/* The process ends, and another begins with what is stored. */
void indexed_restart(struct indexed *indexed);

struct container *indexed_open(struct indexed *indexed); /* a reference */

/* One upsert or delete (document NULL), from any thread. */
bool indexed_put(struct indexed *indexed, struct container *container, const char *document,
                 struct error *err);
bool indexed_delete(struct indexed *indexed, struct container *container, const char *pk,
                    const char *id, struct error *err);

bool indexed_add(struct indexed *indexed, const char *json, struct error *err);
bool indexed_drop(struct indexed *indexed, const char *name, struct error *err);
void indexed_round(struct indexed *indexed);
/* Rounds until nothing is being remade. */
void indexed_settle(struct indexed *indexed);

/* "ready", "building", "failed" or "none". */
const char *indexed_state(struct indexed *indexed, const char *name);
/* The JSON of an index as it is shown, in the arena. */
const char *indexed_shown(struct indexed *indexed, const char *name);
