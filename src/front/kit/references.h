/* References: reference containers that one query joins, opened, checked and held for its page.
 *
 *     front_references_init(&references, call, database);
 *     ... compile; front_references_open for each that the query names ...
 *     front_references_take(&references, plan, &request.reference, err)
 *     ... run ...
 *     front_references_pay(&references, partition)
 *     front_references_done(&references);
 *
 * Each container needs the right of who asks: allowed is asked for it, before anything is told of
 * it. */
#pragma once

#include "front/kit/call.h"
#include "query/reference/copies.h"

struct front_reference {
    struct container *container; /* a reference */
    struct item_space space;
    struct query_copy_taken taken;
    bool identified;
};

struct front_references {
    const struct front_call *call;
    struct slice database; /* where containers are that name none */
    /* container NULL: there is none of that name. ERROR_FORBIDDEN. NULL: who asks may read all. */
    bool (*allowed)(void *self, const struct container *container, struct error *err);
    void *self;
    size_t count;
    struct front_reference list[QUERY_REFERENCES_MAX];
    int64_t filled_cru; /* what filling copies has cost */
    int64_t lag_ms;     /* the longest since when a copy is not known to be exact */
};

void front_references_init(struct front_references *references, const struct front_call *call,
                           struct slice database);
void front_references_done(struct front_references *references);
CLEANUP_VALUE_FN(struct front_references, front_references_done)

/* As sql_compile_options.reference; self is the references. ERROR_BAD_QUERY: there is none of that
 * name, or it is no reference container. ERROR_FORBIDDEN, ERROR_PAUSED. */
NODISCARD bool front_references_open(void *self, struct slice database, struct slice container,
                                     const struct definition_fields **ret_fields,
                                     struct error *err);

/* Their copies, in the order in which they were opened, which is that of the plan. May block. */
NODISCARD bool front_references_take(struct front_references *references,
                                     const struct query_plan *plan,
                                     struct query_reference_host *ret_host, struct error *err);

/* The copy of one such container, whoever asked whether it may be read. May block. */
NODISCARD bool front_reference_take(const struct front_call *call, struct container *container,
                                    const struct item_space *space,
                                    struct query_copy_taken *ret_taken, struct error *err);

/* Whoever finds a copy out of date pays for the next: the partition its query was on. What it came
 * to. */
int64_t front_references_pay(const struct front_references *references, uint32_t partition);
