/* Plain subqueries stream: a value is made when it is asked for, so EXISTS and FIRST stop early.
 * Grouping, aggregates and ordering need all rows first; their values are collected in the arena
 * and given out from there.
 *
 * Sources are walked depth first: the last one moves fastest, and a source is opened anew for each
 * row of those before it, whose variables it may use. */
#include "query/expression/subquery.h"

#include "query/expression/imply.h"

#include "query/expression/combinations.h"
#include "query/value/compare.h"
#include "query/value/set.h"
#include "query/value/value.h"

struct source_state {
    struct document_iter iter;    /* of an array */
    struct document_value single; /* of a value, until it is taken */
    struct query_rows *rows;      /* of a subquery */
};

struct subquery_rows {
    struct query_rows rows;
    const struct query_subquery *query;
    struct source_state *sources;
    bool started;
    bool collects; /* values were, or are to be, collected */
    bool collected;
    struct query_values values;
    size_t at; /* next of the collected */
    uint64_t skipped, given;
    struct query_set distinct;
};

/* --- Sources --------------------------------------------------------------------------------- */

static bool source_open(struct subquery_rows *self, size_t level, struct query_context *context,
                        struct error *err)
{
    const struct query_source *source = &self->query->sources[level];
    struct source_state *state = &self->sources[level];
    struct document_value value;

    *state = (struct source_state){.single = document_undefined()};
    if (source->kind == QUERY_SOURCE_ROWS) {
        state->rows = query_subquery_open(source->rows, context, err);
        return state->rows != NULL;
    }
    if (!query_evaluate(source->expression, context, &value, err))
        return false;
    if (source->kind == QUERY_SOURCE_VALUE)
        state->single = value;
    else if (value.type == DOCUMENT_ARRAY)
        document_iter_init(&state->iter, value.document);
    return true;
}

static bool source_next(struct subquery_rows *self, size_t level, struct query_context *context,
                        bool *ret_more, struct error *err)
{
    const struct query_source *source = &self->query->sources[level];
    struct source_state *state = &self->sources[level];
    struct query_slot *slot = &context->slots[source->slot];

    assert(source->slot < context->slot_count);
    if (!query_work(context, 1, err))
        return false;
    *slot = (struct query_slot){.value = document_undefined()};
    switch (source->kind) {
    case QUERY_SOURCE_EACH:
        *ret_more = document_iter_next(&state->iter);
        if (*ret_more)
            slot->value = state->iter.value;
        return true;
    case QUERY_SOURCE_VALUE:
        *ret_more = state->single.type != DOCUMENT_UNDEFINED;
        slot->value = state->single;
        state->single = document_undefined();
        return true;
    default:
        return query_rows_next(state->rows, context, ret_more, &slot->value, err);
    }
}

/* The next combination of all sources. */
static bool sources_next(struct subquery_rows *self, struct query_context *context, bool *ret_more,
                         struct error *err)
{
    size_t count = self->query->source_count, level = count ? count - 1 : 0;

    *ret_more = !self->started;
    if (count == 0) {
        self->started = true;
        return true;
    }
    if (!self->started) {
        self->started = true;
        level = 0;
        if (!source_open(self, level, context, err))
            return false;
    }
    for (;;) {
        if (!source_next(self, level, context, ret_more, err))
            return false;
        if (*ret_more) {
            if (++level == count)
                return true;
            if (!source_open(self, level, context, err))
                return false;
        } else if (level-- == 0) {
            return true;
        }
    }
}

bool query_subquery_combine(struct query_rows *rows, struct query_context *context, bool *ret_more,
                            struct error *err)
{
    struct subquery_rows *self = CONTAINER_OF(rows, struct subquery_rows, rows);
    bool holds = false;

    do {
        if (!sources_next(self, context, ret_more, err))
            return false;
        if (!*ret_more || !self->query->filter)
            return true;
        if (!query_holds(self->query->filter, context, &holds, err))
            return false;
    } while (!holds);
    return true;
}

/* --- Rows ------------------------------------------------------------------------------------ */

/* The next value before DISTINCT and the cut. */
static bool value_next(struct subquery_rows *self, struct query_context *context, bool *ret_more,
                       struct document_value *ret_value, struct error *err)
{
    if (self->collects) {
        if (!self->collected &&
            !query_subquery_collect(self->query, &self->rows, context, &self->values, err))
            return false;
        self->collected = true;
        *ret_more = self->at < self->values.count;
        if (*ret_more)
            *ret_value = self->values.values[self->at++];
        return true;
    }
    do {
        if (!query_subquery_combine(&self->rows, context, ret_more, err))
            return false;
        if (*ret_more && !query_evaluate(self->query->select, context, ret_value, err))
            return false;
    } while (*ret_more && !query_value_shows(ret_value) && !context->keep_nonfinite);
    return true;
}

static bool rows_next(struct query_rows *rows, struct query_context *context, bool *ret_more,
                      struct document_value *ret_value, struct error *err)
{
    struct subquery_rows *self = CONTAINER_OF(rows, struct subquery_rows, rows);
    const struct query_subquery *query = self->query;

    for (;;) {
        bool is_new = true;

        *ret_more = self->given < query->limit;
        if (!*ret_more)
            return true;
        if (!value_next(self, context, ret_more, ret_value, err))
            return false;
        if (!*ret_more)
            return true;
        if (query->distinct) {
            query_set_add(&self->distinct, ret_value, &is_new);
            if (!query_memory_check(context, 0, err))
                return false;
        }
        if (!is_new || ret_value->type == DOCUMENT_UNDEFINED)
            continue;
        if (self->skipped < query->offset) {
            self->skipped++;
            continue;
        }
        self->given++;
        return true;
    }
}

struct query_rows *query_subquery_open(const struct query_subquery *subquery,
                                       struct query_context *context, struct error *err)
{
    size_t sources = subquery->source_count * sizeof(struct source_state);
    struct subquery_rows *self = query_alloc(context, sizeof *self + sources, err);

    if (!self)
        return NULL;
    *self = (struct subquery_rows){.rows = {rows_next}, .query = subquery};
    self->sources = (struct source_state *)(self + 1);
    self->collects = subquery->key_count || subquery->aggregate_count || subquery->order_count;
    if (subquery->distinct)
        query_set_init(&self->distinct, context->order, context->arena, 0);
    return &self->rows;
}

/* --- The node -------------------------------------------------------------------------------- */

static bool collect_array(struct query_rows *rows, struct query_context *context,
                          struct document_value *ret_value, struct error *err)
{
    size_t mark = query_build_begin(context), begin = document_begin(&context->scratch);

    for (uint32_t index = 0;; index++) {
        char text[DOCUMENT_INDEX_SIZE];
        struct document_value value;
        bool more;

        if (!query_rows_next(rows, context, &more, &value, err))
            return query_build_drop(context, mark);
        if (!more)
            break;
        if (!query_build_append(context, document_index_key(index, text), &value, err))
            return query_build_drop(context, mark);
    }
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_value, err);
}

/* FIRST, LAST, ALL and scalar: how far to go, and what the values come to. */
static bool collect_one(enum query_quantifier quantifier, struct query_rows *rows,
                        struct query_context *context, struct document_value *ret_value,
                        struct error *err)
{
    struct document_value value, kept = document_undefined();
    bool more, all = true;
    uint64_t count = 0;

    for (;; count++) {
        if (!query_rows_next(rows, context, &more, &value, err))
            return false;
        if (!more)
            break;
        if (quantifier == QUERY_SCALAR && count == 1)
            return error_set(err, ERROR_BAD_REQUEST,
                             "a subquery that stands for one value gives more than one");
        kept = value;
        all &= value.type == DOCUMENT_BOOL && value.boolean;
        if (quantifier == QUERY_FIRST || quantifier == QUERY_EXISTS ||
            (quantifier == QUERY_ALL && !all)) {
            count++;
            break;
        }
    }
    if (quantifier == QUERY_EXISTS)
        kept = document_bool(count > 0);
    else if (quantifier == QUERY_ALL)
        kept = document_bool(all);
    *ret_value = kept;
    return true;
}

static bool subquery_evaluate(const struct query_expression *expression,
                              struct query_context *context, struct document_value *ret_value,
                              struct error *err)
{
    const struct query_subquery_node *node = (const struct query_subquery_node *)expression;
    struct query_rows *rows = query_subquery_open(node->subquery, context, err);

    if (!rows)
        return false;
    if (node->quantifier == QUERY_ARRAY)
        return collect_array(rows, context, ret_value, err);
    return collect_one(node->quantifier, rows, context, ret_value, err);
}

/* EXISTS(SELECT ... FROM x IN c.array WHERE ...): the first part of its filter that counts values
 * of elements. The item has such an element; whether the rest holds for it is left to evaluation.
 */
static const struct query_implied *subquery_imply(const struct query_expression *expression,
                                                  const struct query_implying *implying, bool truth)
{
    const struct query_subquery_node *node = (const struct query_subquery_node *)expression;
    const struct query_expression *filter = node->subquery->filter;
    struct query_implying inside = *implying;
    const struct query_implied *implied;

    if (!truth || implying->inner || node->quantifier != QUERY_EXISTS || !filter)
        return NULL;
    inside.inner = node->subquery;
    implied = query_imply(&inside, filter, true);
    for (size_t i = 0; implied && i < MAX(implied->count, (size_t)1); i++) {
        const struct query_implied *part =
            implied->kind == QUERY_IMPLIED_ALL ? implied->parts[i] : implied;

        if (part && part->kind == QUERY_IMPLIED_CONDITION && part->condition.elements &&
            part->condition.points)
            return query_implied_inexact(implying, part);
        if (implied->kind != QUERY_IMPLIED_ALL)
            break;
    }
    return NULL;
}

const struct query_kind query_kind_subquery = {"subquery", subquery_evaluate, QUERY_STABLE,
                                               subquery_imply};

/* --- Building -------------------------------------------------------------------------------- */

#define COPY_PART(build, query, part, count)                                                       \
    ((query)->count ? memcpy(arena_alloc((build)->arena, (query)->count * sizeof *(query)->part),  \
                             (query)->part, (query)->count * sizeof *(query)->part)                \
                    : NULL)

const struct query_subquery *query_subquery_new(struct query_build *build,
                                                const struct query_subquery *subquery)
{
    struct query_subquery *copy = ARENA_NEW(build->arena, struct query_subquery);

    *copy = *subquery;
    copy->sources = COPY_PART(build, subquery, sources, source_count);
    copy->keys = COPY_PART(build, subquery, keys, key_count);
    copy->aggregates = COPY_PART(build, subquery, aggregates, aggregate_count);
    copy->order = COPY_PART(build, subquery, order, order_count);
    if (!copy->select)
        copy->select = query_build_fail(build, ERROR_BAD_REQUEST, "a subquery selects nothing");
    return copy;
}

/* Every expression inside becomes a child, so that depth, slots and stability count them. */
const struct query_expression *query_subquery(struct query_build *build,
                                              enum query_quantifier quantifier,
                                              const struct query_subquery *subquery)
{
    size_t room = subquery->source_count + subquery->key_count + subquery->aggregate_count +
                  subquery->order_count + 2;
    const struct query_expression **children =
        ARENA_ARRAY(build->arena, const struct query_expression *, room);
    struct query_subquery_node *node;
    uint32_t slots[4 * QUERY_SLOTS_MAX];
    size_t count = 0, slot_count = 0;

    if (room > ARRAY_LEN(slots))
        return query_build_fail(build, ERROR_TOO_LARGE, "a subquery has more than %zu parts",
                                ARRAY_LEN(slots));
    for (size_t i = 0; i < subquery->source_count; i++) {
        const struct query_source *source = &subquery->sources[i];

        children[count++] = source->kind == QUERY_SOURCE_ROWS
                                ? query_subquery(build, QUERY_ARRAY, source->rows)
                                : source->expression;
        slots[slot_count++] = source->slot;
    }
    if (subquery->filter)
        children[count++] = subquery->filter;
    for (size_t i = 0; i < subquery->key_count; i++) {
        children[count++] = subquery->keys[i].expression;
        slots[slot_count++] = subquery->keys[i].slot;
    }
    for (size_t i = 0; i < subquery->aggregate_count; i++) {
        children[count++] = subquery->aggregates[i].argument;
        slots[slot_count++] = subquery->aggregates[i].slot;
    }
    for (size_t i = 0; i < subquery->order_count; i++)
        children[count++] = subquery->order[i].expression;
    children[count++] = subquery->select;
    node = query_node(build, &query_kind_subquery, sizeof *node, children, count);
    node->quantifier = quantifier;
    node->subquery = subquery;
    for (size_t i = 0; i < slot_count; i++) {
        if (slots[i] >= QUERY_SLOTS_MAX)
            return query_build_fail(build, ERROR_TOO_LARGE, "the query has more than %d variables",
                                    QUERY_SLOTS_MAX);
        node->head.slots_used |= (uint64_t)1 << MIN(slots[i], 63u);
    }
    return query_fold(build, &node->head);
}
