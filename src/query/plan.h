/* Plan: a query over the items of a container, as a language compiled it. Immutable, in the arena
 * of its expressions, and shared by all threads and pages that run it.
 *
 * It is a subquery (query/expression/subquery.h) whose row is an item: slot 0 stands for the item
 * with its system properties, sources join its arrays to it, and the rest is evaluated in the same
 * order: sources, filter, groups and aggregates or order, select, distinct, offset and limit. A
 * plan says what is wanted and nothing of how: access paths, partitions and pages are query_run's.
 */
#pragma once

#include "document/order.h"
#include "query/expression/reference.h"
#include "query/expression/subquery.h"

struct query_rest; /* query/stage/chain.h */

struct query_plan {
    struct query_subquery query; /* select is never NULL */
    uint32_t slot_count;         /* of a row; slot 0 is the item */
    bool constant;               /* no FROM: one row, once, whatever there is */

    /* By which values are compared, sorted, grouped and told apart, everywhere in the plan; the
     * builds of its expressions have the same (struct query_build). Indexes and partition keys have
     * orders of their own: what they say of values is used as far as the two agree. */
    enum document_order order;

    /* Any order may be asked for, and undefined is a value in it like others. Without it the rules
     * of Cosmos DB hold: several properties need a composite index, and items without a value
     * come only where the policy names the path. */
    bool order_free;

    /* Items without a value of the order are left out, whichever way it goes. */
    bool order_defined;

    /* The first condition of the filter is the one that says most, as far as its author knows:
     * where its index has few entries, those of others are not counted. */
    bool first_leads;

    /* Containers whose items its references find, by number. */
    const struct query_reference *references;
    size_t reference_count;

    /* Stages over the rows of this plan; what they give are the rows of the whole. NULL: none. */
    const struct query_rest *rest;

    /* Of the text and its parameters: a continuation of another plan is refused, and results that
     * are kept between pages are found by it. */
    uint64_t fingerprint;

    /* Of a stream in an order, what its continuations are bound to instead: such a stream goes on
     * behind a place with any filter. 0: the fingerprint. */
    uint64_t binding;
};

static inline uint64_t query_plan_binding(const struct query_plan *plan)
{
    return plan->binding ? plan->binding : plan->fingerprint;
}
