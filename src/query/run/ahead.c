/* The calls of a plan are kept in the order they depend on each other, inner ones first, so that
 * arguments find the results they are made of. Those of the filter come before the others, with the
 * verdict of the filter in between. */
#include "query/run/ahead.h"

enum {
    CALLS_MAX = 16,  /* more are made row by row */
    ROWS_FIRST = 16, /* who wants only a few rows shall not wait for many */
    ROWS_MAX = 512,
    BYTES_MAX = 1 << 20, /* of the items of a batch */
};

struct ahead_row {
    struct query_hit hit;
    struct query_item item;
    bool wanted; /* not turned away by the filter so far */
    bool failed; /* judging it did: err */
    struct error err;
};

/* Of one call for one row. */
struct ahead_result {
    bool made;
    bool failed; /* one of its arguments did: err */
    struct document_value value;
    uint64_t bytes; /* of its arguments */
    struct error err;
};

struct query_ahead {
    const struct query_plan *plan;
    const struct query_udf_host *host;
    const struct document_names *names;
    struct rid container;
    const struct query_expression *calls[CALLS_MAX];
    size_t filter_calls, call_count; /* the first so many are the filter's */
    bool judges;

    struct arena *arena; /* of the batch */
    struct ahead_row *rows;
    struct ahead_result *results[CALLS_MAX]; /* by row; NULL: not made */
    size_t row_count, row_at, rows_wanted;
    bool ended, held;
    struct error err;
    bool failed;                     /* fetching did, behind the last row */
    const struct ahead_row *present; /* NULL: none */
};

/* --- Which calls ----------------------------------------------------------------------------- */

static bool has_call(const struct query_expression *expression)
{
    if (expression->kind == &query_kind_udf_call)
        return true;
    for (size_t i = 0; i < expression->child_count; i++)
        if (has_call(expression->children[i]))
            return true;
    return false;
}

/* Of the item alone: other slots are filled row by row of it. */
static void calls_collect(struct query_ahead *ahead, const struct query_expression *expression)
{
    if (!expression)
        return;
    for (size_t i = 0; i < expression->child_count; i++)
        calls_collect(ahead, expression->children[i]);
    if (expression->kind != &query_kind_udf_call || (expression->slots_used & ~(uint64_t)1) ||
        ahead->call_count == CALLS_MAX)
        return;
    for (size_t i = 0; i < ahead->call_count; i++)
        if (ahead->calls[i] == expression)
            return;
    ahead->calls[ahead->call_count++] = expression;
}

static void plan_collect(struct query_ahead *ahead)
{
    const struct query_subquery *query = &ahead->plan->query;

    calls_collect(ahead, query->filter);
    ahead->filter_calls = ahead->call_count;
    for (size_t i = 0; i < query->source_count; i++)
        calls_collect(ahead, query->sources[i].expression);
    for (size_t i = 0; i < query->key_count; i++)
        calls_collect(ahead, query->keys[i].expression);
    for (size_t i = 0; i < query->aggregate_count; i++)
        calls_collect(ahead, query->aggregates[i].argument);
    for (size_t i = 0; i < query->order_count; i++)
        calls_collect(ahead, query->order[i].expression);
    /* Behind groups and aggregates there is no item to select from. */
    if (!query->key_count && !query->aggregate_count)
        calls_collect(ahead, query->select);
    ahead->judges = query->filter && !query->source_count;
}

struct query_ahead *query_ahead_new(const struct query_plan *plan,
                                    const struct query_udf_host *host,
                                    const struct document_names *names, struct rid container)
{
    struct query_ahead *ahead;

    if (!host->call_many)
        return NULL;
    ahead = MEMORY_NEW(struct query_ahead);
    ahead->plan = plan;
    ahead->host = host;
    ahead->names = names;
    ahead->container = container;
    ahead->rows_wanted = ROWS_FIRST;
    plan_collect(ahead);
    if (!ahead->call_count) {
        memory_free(ahead);
        return NULL;
    }
    ahead->arena = arena_new();
    return ahead;
}

void query_ahead_free(struct query_ahead *ahead)
{
    if (!ahead)
        return;
    arena_free(ahead->arena);
    memory_free(ahead);
}

/* --- A batch --------------------------------------------------------------------------------- */

static void row_keep(struct query_ahead *ahead, const struct query_hit *hit)
{
    struct ahead_row *row = &ahead->rows[ahead->row_count++];

    *row = (struct ahead_row){.hit = *hit, .wanted = true};
    row->hit.place.key = arena_copy(ahead->arena, hit->place.key);
    row->hit.place.routing = arena_copy(ahead->arena, hit->place.routing);
    row->hit.item.key = arena_copy(ahead->arena, hit->item.key);
    row->hit.item.document = arena_copy(ahead->arena, hit->item.document);
}

/* An error that is met ahead is told when the rows before it are done. */
static void rows_fetch(struct query_ahead *ahead, struct query_hits *feed)
{
    size_t bytes = 0;
    bool more;

    ahead->rows = ARENA_ARRAY(ahead->arena, struct ahead_row, ahead->rows_wanted);
    while (ahead->row_count < ahead->rows_wanted && bytes < BYTES_MAX) {
        struct query_hit hit;

        ahead->failed = !query_hits_next(feed, &hit, &more, &ahead->held, &ahead->err);
        ahead->ended = ahead->failed || !more;
        if (ahead->ended)
            return;
        row_keep(ahead, &hit);
        bytes += hit.item.document.len;
    }
    ahead->rows_wanted = MIN(ahead->rows_wanted * 2, (size_t)ROWS_MAX);
}

static void row_enter(struct query_ahead *ahead, struct ahead_row *row,
                      struct query_context *context)
{
    struct query_slot *slot = &context->slots[0];

    ahead->present = row;
    if (row->hit.item.document.data)
        query_item_bind(&row->item, &row->hit.item, ahead->names, ahead->container, slot);
    else
        *slot = (struct query_slot){.value = document_undefined()};
}

/* What an argument fails with, the row will fail with when it is its turn. */
static bool arguments_evaluate(const struct query_expression *call, struct query_context *context,
                               struct document_value *arguments, struct ahead_result *result)
{
    for (size_t i = 0; i < call->child_count && !result->failed; i++)
        result->failed = !query_evaluate(call->children[i], context, &arguments[i], &result->err);
    return !result->failed;
}

/* One call, for all rows that are still wanted. */
static bool call_make(struct query_ahead *ahead, size_t number, struct query_context *context,
                      struct error *err)
{
    const struct query_expression *call = ahead->calls[number];
    size_t width = call->child_count, count = 0;
    struct ahead_result *results = ARENA_ARRAY(ahead->arena, struct ahead_result, ahead->row_count);
    struct ahead_result **asked =
        ARENA_ARRAY(ahead->arena, struct ahead_result *, ahead->row_count);
    struct document_value *arguments =
        ARENA_ARRAY(ahead->arena, struct document_value, ahead->row_count * width + 1);
    struct document_value *values =
        ARENA_ARRAY(ahead->arena, struct document_value, ahead->row_count);
    bool made = false;

    for (size_t i = 0; i < ahead->row_count; i++) {
        results[i] = (struct ahead_result){0};
        if (!ahead->rows[i].wanted || ahead->rows[i].failed)
            continue;
        row_enter(ahead, &ahead->rows[i], context);
        if (!arguments_evaluate(call, context, arguments + count * width, &results[i]))
            continue;
        results[i].bytes = query_udf_bytes(arguments + count * width, width);
        asked[count++] = &results[i];
    }
    ahead->results[number] = results;
    if (count &&
        !ahead->host->call_many(ahead->host->self, ((const struct query_udf_call *)call)->name,
                                arguments, width, count, context, values, &made, err))
        return false;
    for (size_t i = 0; made && i < count; i++) {
        asked[i]->made = true;
        asked[i]->value = values[i];
    }
    return true;
}

/* The parts of the filter that need no call turn most rows away for nothing. */
static bool cheap_parts_hold(const struct query_expression *filter, struct query_context *context,
                             bool *ret_holds, struct error *err)
{
    *ret_holds = true;
    if (filter->kind != &query_kind_and)
        return true;
    for (size_t i = 0; *ret_holds && i < filter->child_count; i++)
        if (!has_call(filter->children[i]) &&
            !query_holds(filter->children[i], context, ret_holds, err))
            return false;
    return true;
}

static void rows_judge(struct query_ahead *ahead, struct query_context *context, bool whole)
{
    const struct query_expression *filter = ahead->plan->query.filter;

    for (size_t i = 0; i < ahead->row_count; i++) {
        struct ahead_row *row = &ahead->rows[i];
        bool judged;

        if (!row->wanted || row->failed)
            continue;
        row_enter(ahead, row, context);
        judged = whole ? query_holds(filter, context, &row->wanted, &row->err)
                       : cheap_parts_hold(filter, context, &row->wanted, &row->err);
        row->failed = !judged;
    }
}

static bool calls_make(struct query_ahead *ahead, size_t from, size_t to,
                       struct query_context *context, struct error *err)
{
    for (size_t i = from; i < to; i++)
        if (!call_make(ahead, i, context, err))
            return false;
    return true;
}

static bool batch_make(struct query_ahead *ahead, struct query_hits *feed,
                       struct query_context *context, struct error *err)
{
    struct arena *rows = context->arena;
    bool made;

    arena_reset(ahead->arena);
    ahead->row_count = ahead->row_at = 0;
    memset(ahead->results, 0, sizeof ahead->results);
    rows_fetch(ahead, feed);
    /* What the rows of the batch are made of lives as long as it does. */
    context->arena = ahead->arena;
    if (ahead->judges)
        rows_judge(ahead, context, false);
    made = calls_make(ahead, 0, ahead->filter_calls, context, err);
    if (made && ahead->judges)
        rows_judge(ahead, context, true);
    made = made && calls_make(ahead, ahead->filter_calls, ahead->call_count, context, err);
    context->arena = rows;
    query_ahead_leave(ahead);
    return made;
}

/* --- Row by row ------------------------------------------------------------------------------ */

bool query_ahead_next(struct query_ahead *ahead, struct query_hits *feed,
                      struct query_context *context, struct query_hit *ret_hit, bool *ret_more,
                      bool *ret_held, bool *ret_judged, bool *ret_holds, struct error *err)
{
    struct ahead_row *row;

    if (ahead->row_at == ahead->row_count && !ahead->ended &&
        !batch_make(ahead, feed, context, err))
        return false;
    *ret_more = ahead->row_at < ahead->row_count;
    if (!*ret_more) {
        *ret_held = ahead->held;
        if (ahead->failed)
            *err = ahead->err;
        return !ahead->failed;
    }
    row = &ahead->rows[ahead->row_at++];
    if (row->failed) {
        *err = row->err;
        return false;
    }
    ahead->present = row;
    *ret_hit = row->hit;
    *ret_judged = ahead->judges;
    *ret_holds = row->wanted;
    return true;
}

bool query_ahead_find(const struct query_ahead *ahead, const struct query_expression *call,
                      bool *ret_found, struct document_value *ret_value, uint64_t *ret_bytes,
                      struct error *err)
{
    const struct ahead_result *result = NULL;

    *ret_found = false;
    if (!ahead->present)
        return true;
    for (size_t i = 0; i < ahead->call_count && !result; i++)
        if (ahead->calls[i] == call && ahead->results[i])
            result = &ahead->results[i][ahead->present - ahead->rows];
    if (result && result->failed) {
        *err = result->err;
        return false;
    }
    *ret_found = result && result->made;
    if (*ret_found) {
        *ret_value = result->value;
        *ret_bytes = result->bytes;
    }
    return true;
}

void query_ahead_leave(struct query_ahead *ahead)
{
    ahead->present = NULL;
}
