#include "front/kit/references.h"

#include "front/kit/queries.h"
#include "item/metering.h"
#include "maintain/pauses.h"

void front_references_init(struct front_references *references, const struct front_call *call,
                           struct slice database)
{
    *references = (struct front_references){.call = call, .database = database};
}

void front_references_done(struct front_references *references)
{
    for (size_t i = 0; i < references->count; i++) {
        query_copy_unref(references->list[i].taken.copy);
        container_unref(references->list[i].container);
    }
    references->count = 0;
}

static bool refused(struct error *err, struct slice container, const char *why)
{
    return error_set(err, ERROR_BAD_QUERY, "REFERENCE: container \"%.*s\" %s",
                     (int)MIN(container.len, (size_t)64), (const char *)container.data, why);
}

/* Whether it is there is told to nobody who may not read it. */
static bool container_open(struct front_references *references, struct slice database,
                           struct slice name, struct container **ret_container, struct error *err)
{
    const struct front_services *services = references->call->services;
    CLEANUP(container_unref) struct container *container = NULL;
    struct error missing = {0};
    int64_t wait_ms;
    bool found = catalogue_container_open(services->catalogue, references->call->account.id,
                                          database.data ? database : references->database, name,
                                          &container, &missing);

    assert(found == (container != NULL));
    if (references->allowed && !references->allowed(references->self, container, err))
        return false;
    if (!container)
        return refused(err, name, "does not exist");
    if (!definition_fields(container_definition(container))->reference)
        return refused(err, name,
                       "is no reference container: its definition lacks "
                       "\"orrery\": {\"reference\": true}");
    if (!pauses_check(services->pauses, container, false, &wait_ms, err))
        return false;
    *ret_container = TAKE(container);
    return true;
}

bool front_references_open(void *self, struct slice database, struct slice container,
                           const struct definition_fields **ret_fields, struct error *err)
{
    struct front_references *references = self;
    struct front_reference *one = &references->list[references->count];

    if (references->count == QUERY_REFERENCES_MAX)
        return error_set(err, ERROR_BAD_QUERY, "a query has at most %d REFERENCE",
                         QUERY_REFERENCES_MAX);
    *one = (struct front_reference){0};
    if (!container_open(references, database, container, &one->container, err))
        return false;
    one->space = front_space(references->call->services, one->container);
    references->count++;
    *ret_fields = one->space.definition;
    return true;
}

static bool find(void *self, size_t number, const struct document_value *keys, size_t count,
                 struct query_context *context, struct document_value *ret_items, struct error *err)
{
    const struct front_references *references = self;
    const struct front_reference *one = &references->list[number];

    assert(number < references->count && one->taken.copy);
    return query_copy_find(one->taken.copy, keys, count, one->identified, context, ret_items, err);
}

bool front_reference_take(const struct front_call *call, struct container *container,
                          const struct item_space *space, struct query_copy_taken *ret_taken,
                          struct error *err)
{
    const struct front_services *services = call->services;
    const struct query_copy_home home = {
        .space = space,
        .rid = container_rid(container),
        .number = container_info(container)->number,
        .bytes_max = container_limits(container)->reference_bytes_max,
        /* no breath: others of the account may wait for this thread */
        .limits = {.deadline_ms = clock_read_monotonic_ms(services->clock) +
                                  front_queries_deadline_ms(services->queries),
                   .cancelled = call->cancelled},
    };

    assert(call->may_block);
    return query_copies_take(front_queries_copies(services->queries), &home, ret_taken, err);
}

bool front_references_take(struct front_references *references, const struct query_plan *plan,
                           struct query_reference_host *ret_host, struct error *err)
{
    assert(plan->reference_count == references->count);
    *ret_host = (struct query_reference_host){0};
    for (size_t i = 0; i < references->count; i++) {
        struct front_reference *one = &references->list[i];

        if (!front_reference_take(references->call, one->container, &one->space, &one->taken, err))
            return false;
        one->identified = plan->references[i].identified;
        references->filled_cru += one->taken.filled_cru;
        references->lag_ms = MAX(references->lag_ms, one->taken.lag_ms);
    }
    if (references->count)
        *ret_host = (struct query_reference_host){find, references};
    return true;
}

int64_t front_references_pay(const struct front_references *references, uint32_t partition)
{
    if (references->filled_cru)
        metering_charge(references->call->services->meters, partition, references->filled_cru);
    return references->filled_cru;
}
