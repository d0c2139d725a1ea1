/* Balancer: keeps partitions where they belong. One thread that looks, every so often, and asks the
 * migrator for what is missing, a few migrations at a time:
 *
 *     a node drains                   its partitions move away
 *     a placement rule does not hold  keys get a span of their own, spans move to allowed nodes
 *     a rebalance was asked for       bytes and heat are spread until nothing more is to be gained
 *
 * The first two are always at work. All three are only flags and rules in the catalogue: what is to
 * be done is found out anew with every look, so a restart, a failed node or a change of mind in
 * between needs no care. */
#pragma once

#include "balance/rebalance.h"
#include "item/meters.h"
#include "migration/migrator.h"

struct balancer; /* opaque, owned */

struct balancer_options {
    struct catalogue *catalogue; /* borrowed; outlives it, as all below */
    struct migrator *migrator;
    struct meters *meters;     /* for heat; NULL: none */
    const struct clock *clock; /* NULL: the system's */
    struct log *log;           /* NULL: silent */
    struct bell *bell;         /* rung by commits; borrowed. NULL: looks never wait for it */
    int64_t pause_ms;          /* between looks while things happen; 0: 1000 */
    size_t moves_max;          /* migrations at a time; 0: 4 */
    bool by_hand;              /* no thread: the test calls balancer_round */
};

struct balancer *balancer_new(const struct balancer_options *options);
void balancer_free(struct balancer *balancer); /* NULL is fine */
CLEANUP_FN(struct balancer *, balancer_free)

/* One look; *ret_begun: how many migrations it began. */
NODISCARD bool balancer_round(struct balancer *balancer, size_t *ret_begun, struct error *err);

/* Something has changed: look now. */
void balancer_wake(struct balancer *balancer);

/* --- What it would do ------------------------------------------------------------------------ */

/* A partition as it is planned with. */
struct balancer_span {
    struct container *container; /* borrowed from the world */
    struct slice account, database;
    const struct partition_span *span;
    struct rebalance_span figures;
    const struct placement_range *isolate; /* to be taken out of it first; NULL: nothing */
};

/* Everything at one moment: to be freed with balancer_world_done. */
struct balancer_world {
    struct arena *arena;
    struct node_table *table;
    struct rebalance_node nodes[CLUSTER_NODES_MAX];
    size_t node_count;
    struct balancer_span *spans;
    struct rebalance_span *figures; /* the same, as the planner takes them */
    size_t span_count;
    struct container **containers; /* references */
    size_t container_count;
    size_t migrating; /* containers with a migration under way */
    bool patterns;    /* some rule is of patterns: looking is not cheap */
    bool rules;       /* some container has any */
};

NODISCARD bool balancer_world_read(struct balancer *balancer, struct balancer_world *ret_world,
                                   struct error *err);
void balancer_world_done(struct balancer_world *world);
CLEANUP_VALUE_FN(struct balancer_world, balancer_world_done)

/* must_only: what drains and rules ask for, without spreading. In the world's arena. */
void balancer_world_plan(struct balancer_world *world, bool must_only,
                         struct rebalance_plan *ret_plan);

/* --- How it goes ----------------------------------------------------------------------------- */

enum { BALANCER_PROBLEMS_MAX = 64 };

/* What cannot be satisfied now. */
struct balancer_problem {
    uint32_t partition;
    char container[64]; /* its name, cut */
    char text[200];
};

struct balancer_status {
    bool rebalancing;
    uint64_t moves_done, moves_planned; /* of the present rebalance, or the last one */
    uint64_t begun;                     /* migrations since the process began */
    size_t problem_count;
    struct balancer_problem problems[BALANCER_PROBLEMS_MAX];
};

/* memory_free it. */
struct balancer_status *balancer_status(struct balancer *balancer);

/* Begins to spread, or stops; remembered across restarts. What is under way is finished. */
NODISCARD bool balancer_rebalance(struct balancer *balancer, bool on, struct error *err);
