/* Placement: which nodes the keys of a container may be on, by the operator's rules. Pure: nothing
 * here reads a store or begins a migration.
 *
 * A container carries a list of rules, `orrery.placement`. Of the rules that speak of a key the
 * first one counts; a rule that names no key speaks of all, and stands last.
 *
 *     {"key": ["acme"], "isolate": true, "nodes": ["west"]}    a tenant on a shard of its own
 *     {"keyLike": ["eu-*"], "region": "eu"}                    tenants kept in their region
 *     {"key": ["batch"], "tags": ["volatile"]}                 the restless apart,
 *     {"notTags": ["volatile"], "zone": "a"}                   and all others away from them
 *     {"keyLike": ["eu-*"], "region": "eu", "resident": true}  never anywhere else
 *
 * Everything a rule says of a node must hold for it. `key` and `keyLike` name the first components
 * of a key, or all of them; a pattern matches texts, * any characters and ? one.
 *
 * A rule of a key *claims* a range of routing keys. A span within a claim is governed by its rule.
 * A span in which a claim lies among others serves it too, as long as its node is allowed by both;
 * else the claim has to be isolated: given a span of its own, which can then be moved.
 *
 * Rules are carried out in the background. A *resident* rule holds at every moment instead: no map
 * is made, and no rule taken, under which a span with keys of it lies on another node. So where a
 * key goes is decided before its first write, and nothing has to be looked at when it comes. That
 * needs the keys of every rule of the container to lie in one range each, known from the definition
 * (placement_settle): single keys and the first components of a hierarchical one do under any
 * strategy, texts with a common beginning under range, or under lookup in a zone of their own
 * (partition/lookup.h). */
#pragma once

#include "cluster/node.h"
#include "partition/map.h"

enum { PLACEMENT_RULES_MAX = 64, PLACEMENT_WORDS_MAX = 16, PLACEMENT_PATTERN_MAX = 256 };

struct placement_words {
    struct slice list[PLACEMENT_WORDS_MAX];
    size_t count;
};

struct placement_rule {
    struct document_value key[PARTITION_PATHS_MAX]; /* patterns: texts */
    size_t key_count;                               /* 0: it speaks of all */
    bool like;                                      /* the key is of patterns */
    bool isolate;
    bool resident;
    bool ranged;               /* its keys lie in one range, which is in placement.ranges */
    struct slice region, zone; /* empty: any */
    struct placement_words tags, not_tags, nodes;
};

/* A range of keys that a rule speaks of. */
struct placement_range {
    struct partition_range range;
    const struct placement_rule *rule;
    struct partition_key key; /* to isolate by; of patterns: none */
};

struct placement {
    struct placement_rule *rules;
    size_t count;
    struct placement_range *ranges; /* of all rules that are ranged, in their order */
    size_t range_count;
    bool resident; /* some rule is */
};

/* Reads the rules of a container; they live in the arena and borrow from array.
 * ERROR_BAD_REQUEST names the rule and what is wrong with it. */
NODISCARD bool placement_parse(struct slice array, size_t path_count, struct arena *arena,
                               struct placement *ret_placement, struct error *err);

/* Finds the ranges of the rules under a partition key; they live in the arena. A pattern whose keys
 * are to be isolated one by one has none. ERROR_BAD_REQUEST: a rule is resident, and of one of them
 * it is not known where its keys lie; the message names it. */
NODISCARD bool placement_settle(struct placement *placement, const struct partition_definition *key,
                                struct arena *arena, struct error *err);

/* Does what is said of nodes hold for this one? NULL: there is no rule. */
bool placement_allows(const struct placement_rule *rule, const struct node_info *node);

/* The same of all nodes: a bit for each by its number. */
uint64_t placement_nodes(const struct placement_rule *rule, const struct node_table *table);

/* The rule for a whole key; NULL: none speaks of it. */
const struct placement_rule *placement_match(const struct placement *placement,
                                             const struct partition_key *key);

/* The rule that speaks of all keys; NULL: there is none. */
const struct placement_rule *placement_default(const struct placement *placement);

/* Does text fit the pattern? */
bool placement_like(struct slice pattern, struct slice text);

/* What is to become of a span. */
struct placement_verdict {
    uint64_t allowed;                      /* nodes it may be on as it is */
    const struct placement_rule *rule;     /* that governs it; NULL: none */
    const struct placement_range *isolate; /* in it, and to be taken out first; NULL: none */
};

/* Claims in the order of their rules. */
struct placement_verdict placement_judge(const struct placement *placement,
                                         const struct placement_range *claims, size_t claim_count,
                                         const struct node_table *table,
                                         const struct partition_span *span);

/* The resident rule that a span breaks on the node it is on; NULL: none. A span within the range of
 * a rule is that rule's; of one that holds more than a range, every resident rule has its say. */
const struct placement_rule *placement_breach(const struct placement *placement,
                                              const struct node_table *table,
                                              const struct partition_span *span);

/* --- New spans ------------------------------------------------------------------------------- */

/* Spans that are to be made so that rules hold from the beginning. */
struct placement_plan {
    const struct placement *placement;
    const struct cluster *cluster;
    const struct node_table *table;
    struct arena *arena;
    size_t given[CLUSTER_NODES_MAX]; /* spans so far, by number of the node */
};

/* Ascending bounds, with those besides that give ranges a span of their own which may not be on
 * every node that their neighbours may be on. *ret_bounds: in the arena. ERROR_LIMIT_REACHED: they
 * make more than spans_max. */
NODISCARD bool placement_plan_cut(const struct placement_plan *plan, const struct slice *bounds,
                                  size_t count, size_t spans_max, struct slice **ret_bounds,
                                  size_t *ret_count, struct error *err);

/* The node for a span: the one it names if it may be there, so that less is sent around; else the
 * one with the fewest so far. ERROR_NODE_DOWN: none that is allowed takes partitions. */
NODISCARD bool placement_plan_node(struct placement_plan *plan, const struct partition_span *span,
                                   uint32_t *ret_node, struct error *err);
