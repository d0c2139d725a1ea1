/* From a chain to a plan. Skips and limits go before lookups, which neither add nor take rows, and
 * filters before sorts; then stages are taken over by the query of the plan as long as its order of
 * evaluation allows: sources and filter, groups or order, select, distinct, offset and limit. A
 * sort by several keys that all go the same way is one by the tuple of them: that is exact, while
 * several orders are cut as composite indexes cut them. */
#include "query/stage/chain.h"

#include "query/stage/tuple.h"

/* --- Slots ----------------------------------------------------------------------------------- */

struct slots {
    uint64_t words[QUERY_SLOTS_MAX / 64];
};

static void slots_add(struct slots *slots, uint32_t slot)
{
    assert(slot < QUERY_SLOTS_MAX);
    slots->words[slot / 64] |= (uint64_t)1 << slot % 64;
}

static bool slots_has(const struct slots *slots, uint32_t slot)
{
    return slots->words[slot / 64] >> slot % 64 & 1;
}

static void slots_use(struct slots *slots, const struct query_expression *expression)
{
    if (!expression)
        return;
    slots->words[0] |= expression->slots_used;
    for (size_t i = 1; (expression->slots_used >> 63) && i < ARRAY_LEN(slots->words); i++)
        slots->words[i] = UINT64_MAX; /* it does not say which */
}

static void chain_uses(const struct query_chain *chain, struct slots *uses);

static void window_uses(const struct query_window *window, struct slots *uses)
{
    for (size_t i = 0; i < window->key_count; i++)
        slots_use(uses, window->keys[i]);
    for (size_t i = 0; i < window->order_count; i++)
        slots_use(uses, window->order[i].expression);
    for (size_t i = 0; i < window->output_count; i++) {
        slots_use(uses, window->outputs[i].argument);
        slots_use(uses, window->outputs[i].otherwise);
    }
}

/* What its expressions look at. */
static void stage_uses(const struct query_stage *stage, struct slots *uses)
{
    switch (stage->kind) {
    case QUERY_STAGE_MATCH:
        slots_use(uses, stage->match);
        break;
    case QUERY_STAGE_UNWIND:
        slots_use(uses, stage->unwind.array);
        break;
    case QUERY_STAGE_PROJECT:
        slots_use(uses, stage->project.select);
        break;
    case QUERY_STAGE_GROUP:
        for (size_t i = 0; i < stage->group.key_count; i++)
            slots_use(uses, stage->group.keys[i].expression);
        for (size_t i = 0; i < stage->group.aggregate_count; i++)
            slots_use(uses, stage->group.aggregates[i].argument);
        break;
    case QUERY_STAGE_SORT:
        for (size_t i = 0; i < stage->sort.count; i++)
            slots_use(uses, stage->sort.order[i].expression);
        break;
    case QUERY_STAGE_DISTINCT:
        for (size_t i = 0; i < stage->distinct.count; i++)
            slots_use(uses, stage->distinct.keys[i]);
        break;
    case QUERY_STAGE_LOOKUP:
        slots_use(uses, stage->lookup.local);
        for (size_t i = 0; i < stage->lookup.let_count; i++)
            slots_use(uses, stage->lookup.lets[i].expression);
        break;
    case QUERY_STAGE_FACET:
        for (size_t i = 0; i < stage->facet.count; i++)
            chain_uses(&stage->facet.chains[i], uses);
        break;
    case QUERY_STAGE_WINDOW:
        window_uses(&stage->window, uses);
        break;
    case QUERY_STAGE_SKIP:
    case QUERY_STAGE_LIMIT:
    case QUERY_STAGE_UNION:
        break;
    }
}

static void chain_uses(const struct query_chain *chain, struct slots *uses)
{
    for (size_t i = 0; i < chain->count; i++)
        stage_uses(&chain->stages[i], uses);
    slots_use(uses, chain->select);
}

/* What is bound behind it, where this was before. */
static void stage_binds(const struct query_stage *stage, struct slots *bound)
{
    switch (stage->kind) {
    case QUERY_STAGE_UNWIND:
        slots_add(bound, stage->unwind.slot);
        if (stage->unwind.indexed)
            slots_add(bound, stage->unwind.index_slot);
        break;
    case QUERY_STAGE_PROJECT:
        *bound = (struct slots){0};
        slots_add(bound, stage->project.slot);
        break;
    case QUERY_STAGE_GROUP:
        *bound = (struct slots){0};
        for (size_t i = 0; i < stage->group.key_count; i++)
            slots_add(bound, stage->group.keys[i].slot);
        for (size_t i = 0; i < stage->group.aggregate_count; i++)
            slots_add(bound, stage->group.aggregates[i].slot);
        break;
    case QUERY_STAGE_LOOKUP:
        slots_add(bound, stage->lookup.slot);
        break;
    case QUERY_STAGE_FACET:
        *bound = (struct slots){0};
        for (size_t i = 0; i < stage->facet.count; i++)
            slots_add(bound, stage->facet.slots[i]);
        break;
    case QUERY_STAGE_WINDOW:
        for (size_t i = 0; i < stage->window.output_count; i++)
            slots_add(bound, stage->window.outputs[i].slot);
        break;
    default:
        break;
    }
}

static size_t slots_list(const struct slots *bound, const struct slots *used, struct arena *arena,
                         const uint32_t **ret_list)
{
    uint32_t *list = ARENA_ARRAY(arena, uint32_t, QUERY_SLOTS_MAX);
    size_t count = 0;

    for (uint32_t slot = 0; slot < QUERY_SLOTS_MAX; slot++)
        if (slots_has(bound, slot) && slots_has(used, slot))
            list[count++] = slot;
    *ret_list = list;
    return count;
}

/* --- Copies ---------------------------------------------------------------------------------- */

static void *copy(struct query_build *build, const void *list, size_t size)
{
    void *bytes = arena_alloc(build->arena, size + 1);

    if (size)
        memcpy(bytes, list, size);
    return bytes;
}
#define COPY(build, list, count) copy((build), (list), memory_array_size((count), sizeof *(list)))

static struct query_chain chain_prepare(struct query_build *build, const struct query_chain *chain,
                                        struct slots bound);

static void facet_copy(struct query_build *build, struct query_facet *facet,
                       const struct slots *bound)
{
    struct query_chain *chains = ARENA_ARRAY(build->arena, struct query_chain, facet->count + 1);
    struct slots uses = {0};

    for (size_t i = 0; i < facet->count; i++) {
        chain_uses(&facet->chains[i], &uses);
        chains[i] = chain_prepare(build, &facet->chains[i], *bound);
    }
    facet->input_count = slots_list(bound, &uses, build->arena, &facet->inputs);
    facet->chains = chains;
    facet->slots = COPY(build, facet->slots, facet->count);
}

static void stage_copy(struct query_build *build, struct query_stage *stage,
                       const struct slots *bound)
{
    switch (stage->kind) {
    case QUERY_STAGE_GROUP:
        stage->group.keys = COPY(build, stage->group.keys, stage->group.key_count);
        stage->group.aggregates =
            COPY(build, stage->group.aggregates, stage->group.aggregate_count);
        break;
    case QUERY_STAGE_SORT:
        stage->sort.order = COPY(build, stage->sort.order, stage->sort.count);
        break;
    case QUERY_STAGE_DISTINCT:
        stage->distinct.keys = COPY(build, stage->distinct.keys, stage->distinct.count);
        break;
    case QUERY_STAGE_LOOKUP:
        assert(!stage->lookup.graph || stage->lookup.pairing);
        stage->lookup.container = arena_copy(build->arena, stage->lookup.container);
        stage->lookup.lets = COPY(build, stage->lookup.lets, stage->lookup.let_count);
        break;
    case QUERY_STAGE_FACET:
        facet_copy(build, &stage->facet, bound);
        break;
    case QUERY_STAGE_UNION:
        stage->unite.container = arena_copy(build->arena, stage->unite.container);
        break;
    case QUERY_STAGE_WINDOW:
        stage->window.keys = COPY(build, stage->window.keys, stage->window.key_count);
        stage->window.order = COPY(build, stage->window.order, stage->window.order_count);
        stage->window.outputs = COPY(build, stage->window.outputs, stage->window.output_count);
        break;
    default:
        break;
    }
}

static bool is_amount(const struct query_stage *stage)
{
    return stage->kind == QUERY_STAGE_SKIP || stage->kind == QUERY_STAGE_LIMIT;
}

/* Should the second go before the first? */
static bool goes_before(const struct query_stage *first, const struct query_stage *second)
{
    return (first->kind == QUERY_STAGE_LOOKUP && is_amount(second)) ||
           (first->kind == QUERY_STAGE_SORT && second->kind == QUERY_STAGE_MATCH &&
            second->match->stability != QUERY_UNSTABLE);
}

static void stages_swap(struct query_stage *stages, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j && goes_before(&stages[j - 1], &stages[j]); j--) {
            struct query_stage stage = stages[j];

            stages[j] = stages[j - 1];
            stages[j - 1] = stage;
        }
}

static void union_check(struct query_build *build, const struct query_union *unite,
                        const struct slots *bound)
{
    struct slots alone = {0};

    slots_add(&alone, unite->slot);
    if (memcmp(&alone, bound, sizeof alone) != 0)
        query_build_fail(build, ERROR_BAD_REQUEST, "a union of rows that have several slots");
}

/* The chain, copied, in the order it is run, with what is kept behind each stage. */
static struct query_chain chain_prepare(struct query_build *build, const struct query_chain *chain,
                                        struct slots bound)
{
    struct query_stage *stages = ARENA_ARRAY(build->arena, struct query_stage, chain->count + 1);
    struct slots *behind = ARENA_ARRAY(build->arena, struct slots, chain->count + 1);
    struct slots used = {0};

    if (chain->count > QUERY_STAGES_MAX) {
        query_build_fail(build, ERROR_BAD_REQUEST, "a query has more than %d stages",
                         QUERY_STAGES_MAX);
        return (struct query_chain){.select = chain->select};
    }
    for (size_t i = 0; i < chain->count; i++)
        stages[i] = chain->stages[i];
    stages_swap(stages, chain->count);
    for (size_t i = 0; i < chain->count; i++) {
        if (stages[i].kind == QUERY_STAGE_UNION)
            union_check(build, &stages[i].unite, &bound);
        stage_copy(build, &stages[i], &bound);
        stage_binds(&stages[i], &bound);
        behind[i] = bound;
    }
    slots_use(&used, chain->select);
    for (size_t i = chain->count; i-- > 0;) {
        stages[i].kept_count = slots_list(&behind[i], &used, build->arena, &stages[i].kept);
        stage_uses(&stages[i], &used);
    }
    return (struct query_chain){stages, chain->count, chain->select};
}

/* --- Into the query -------------------------------------------------------------------------- */

struct push {
    struct query_build *build;
    struct query_plan *plan;
    struct query_subquery *query;
    const struct query_stage *stages;
    size_t count, at;
    const struct query_stage *project; /* the select of the query */
};

static const struct query_stage *next(const struct push *push, enum query_stage_kind kind)
{
    if (push->at == push->count || push->stages[push->at].kind != kind)
        return NULL;
    return &push->stages[push->at];
}

static void push_rows(struct push *push)
{
    struct query_subquery *query = push->query;
    struct query_source *sources =
        ARENA_ARRAY(push->build->arena, struct query_source, push->count + 1);
    const struct query_stage *stage;

    query->sources = sources;
    for (;; push->at++) {
        if ((stage = next(push, QUERY_STAGE_MATCH)))
            query->filter =
                query->filter ? query_and(push->build, query->filter, stage->match) : stage->match;
        else if ((stage = next(push, QUERY_STAGE_UNWIND)) && !stage->unwind.keep_empty &&
                 !stage->unwind.indexed)
            sources[query->source_count++] =
                (struct query_source){.kind = QUERY_SOURCE_EACH,
                                      .expression = stage->unwind.array,
                                      .slot = stage->unwind.slot};
        else
            return;
    }
}

static void push_sort(struct push *push, const struct query_sort *sort)
{
    push->query->order = sort->order;
    push->query->order_count = sort->count;
    push->plan->order_free = true;
    push->at++;
}

static bool is_slot(const struct query_expression *expression, uint32_t slot)
{
    return expression->kind == &query_kind_variable &&
           ((const struct query_variable *)expression)->slot == slot;
}

static void push_amounts(struct push *push)
{
    struct query_subquery *query = push->query;
    const struct query_stage *stage;

    for (;; push->at++) {
        if ((stage = next(push, QUERY_STAGE_LIMIT))) {
            query->limit = MIN(query->limit, stage->amount);
        } else if ((stage = next(push, QUERY_STAGE_SKIP))) {
            if (stage->amount > UINT64_MAX - query->offset)
                return;
            query->offset += stage->amount;
            if (query->limit != UINT64_MAX)
                query->limit -= MIN(query->limit, stage->amount);
        } else {
            return;
        }
    }
}

static void push_all(struct push *push)
{
    struct query_subquery *query = push->query;
    const struct query_stage *stage;

    push_rows(push);
    if ((stage = next(push, QUERY_STAGE_GROUP)) &&
        (stage->group.key_count || stage->group.aggregate_count)) {
        query->keys = stage->group.keys;
        query->key_count = stage->group.key_count;
        query->aggregates = stage->group.aggregates;
        query->aggregate_count = stage->group.aggregate_count;
        push->at++;
    } else if ((stage = next(push, QUERY_STAGE_SORT)) && stage->sort.count) {
        push_sort(push, &stage->sort);
    }
    if ((push->project = next(push, QUERY_STAGE_PROJECT)))
        push->at++;
    if (push->project && !query->order_count && (stage = next(push, QUERY_STAGE_DISTINCT)) &&
        stage->distinct.count == 1 &&
        is_slot(stage->distinct.keys[0], push->project->project.slot)) {
        query->distinct = true;
        push->at++;
    }
    push_amounts(push);
}

/* --- The plan -------------------------------------------------------------------------------- */

/* Does it have a value in every row? */
static bool is_always(const struct query_expression *select)
{
    return select->kind == &query_kind_object || select->kind == &query_kind_array;
}

/* May the query give what the chain gives? Rows that have no value are passed over by it before it
 * counts them, by a chain after that. */
static bool gives_all(const struct push *push, const struct query_expression *select)
{
    const struct query_subquery *query = push->query;

    if (push->at < push->count)
        return false;
    if (push->project)
        return is_slot(select, push->project->project.slot);
    return is_always(select) || (!query->offset && query->limit == UINT64_MAX);
}

/* What is looked at from the next stage on. */
static void rest_slots(const struct push *push, const struct query_chain *chain,
                       struct query_rest *rest)
{
    struct slots bound = {.words = {1}}, used = {0};

    for (size_t i = 0; i < push->at; i++)
        stage_binds(&push->stages[i], &bound);
    chain_uses(&rest->chain, &used);
    slots_use(&used, chain->select);
    rest->slot_count = slots_list(&bound, &used, push->build->arena, &rest->slots);
}

void query_chain_plan(struct query_build *build, const struct query_chain *chain,
                      struct query_plan *plan)
{
    struct query_chain prepared = chain_prepare(build, chain, (struct slots){.words = {1}});
    struct push push = {.build = build,
                        .plan = plan,
                        .query = &plan->query,
                        .stages = prepared.stages,
                        .count = prepared.count};
    struct query_rest *rest;

    plan->query = (struct query_subquery){.limit = UINT64_MAX};
    push_all(&push);
    if (push.project)
        plan->query.select = push.project->project.select;
    if (gives_all(&push, chain->select)) {
        if (!push.project)
            plan->query.select = chain->select;
        return;
    }
    rest = ARENA_NEW(build->arena, struct query_rest);
    rest->chain =
        (struct query_chain){prepared.stages + push.at, prepared.count - push.at, prepared.select};
    plan->rest = rest;
    if (push.project) {
        rest->single = true;
        rest->slots = &push.project->project.slot;
        rest->slot_count = 1;
        return;
    }
    rest_slots(&push, chain, rest);
    rest->single = rest->slot_count == 1 && rest->slots[0] == 0;
    plan->query.select =
        rest->single ? query_variable(build, 0) : query_tuple(build, rest->slots, rest->slot_count);
}

void query_chain_behind(struct query_build *build, const struct query_chain *chain,
                        const uint32_t *bound, size_t count, struct query_plan *plan)
{
    struct query_rest *rest = ARENA_NEW(build->arena, struct query_rest);
    struct slots all = {0}, used = {0};

    for (size_t i = 0; i < count; i++)
        slots_add(&all, bound[i]);
    rest->chain = chain_prepare(build, chain, all);
    chain_uses(&rest->chain, &used);
    rest->slot_count = slots_list(&all, &used, build->arena, &rest->slots);
    plan->query.select = query_tuple(build, rest->slots, rest->slot_count);
    plan->rest = rest;
}
