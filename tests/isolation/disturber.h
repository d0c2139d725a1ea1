/* Disturber: changes everything about a world while clients work in it: splits, merges, moves,
 * isolations, edits of the directory, other strategies, failures of a node, writes of unknown
 * outcome, crashes. */
#pragma once

#include "isolation/world.h"

/* Those that change the container itself: all but copies and those that cut keys, which are the
 * last kinds. */
enum { DISTURBER_KINDS = MIGRATION_COPY };

/* The container it knows how to change: partitioned by /pk, with a directory.
 * The keys are those of clients.h. */
#define DISTURBER_STRATEGY "{\"kind\":\"lookup\",\"shards\":8}"
#define DISTURBER_CONTAINER                                                                        \
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2},"                          \
    "\"orrery\":{\"strategy\":" DISTURBER_STRATEGY "}}"

/* One that lies on both nodes from the start, with enough throughput. */
#define DISTURBER_SPREAD "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2}}"
enum { DISTURBER_SPREAD_RU = 20000 };

/* How often each thing is to happen. */
struct disturber_plan {
    bool still;          /* nothing migrates: the container lies on both nodes, and stays so */
    unsigned migrations; /* of each kind, done */
    unsigned spreads;    /* keys are spread and gathered so often, on both nodes; and nothing else
                          * migrates */
    unsigned failures, faults, crashes;
};

struct disturber {
    struct world *world;
    struct disturber_plan plan;
    struct random random;
    unsigned begun, cancelled; /* migrations */
};

/* Works until everything has happened often enough; then world->is_over. On the thread that made
 * the world: a server it starts again goes with the thread that did. */
void disturber_run(struct disturber *disturber, struct world *world,
                   const struct disturber_plan *plan, uint64_t seed);
