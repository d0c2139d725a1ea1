#include "front/rest/views/query.h"

#include "definition/names.h"
#include "document/bson.h"
#include "front/rest/sql/compile.h"
#include "front/rest/sql/functions.h"
#include "front/rest/sql/parser.h"
#include "front/rest/sql/resolve.h"
#include "query/run.h"
#include "query/value/value.h"

#include <openssl/sha.h>

enum { ROW_WORK_MAX = 1000 * 1000 }; /* units of evaluation: some milliseconds */

struct rest_view_query {
    struct arena *arena; /* owns this structure and the plan */
    struct query_plan plan;
    struct slice *aggregated; /* columns that depend on aggregates */
    size_t aggregated_count;
    struct slice *columns; /* all, under the names that they have in the query */
    size_t column_count;
};

/* --- What may be said ------------------------------------------------------------------------ */

struct check {
    bool own; /* orrery.view, which may say more */
    struct error *err;
};

static bool unfit(const struct check *check, const char *what)
{
    return error_set(check->err, ERROR_VIEW_UNFIT, "the query of a view has no %s", what);
}

static const struct document_names *usual_names(void)
{
    return definition_names(DEFINITION_IDENTITY_ID);
}

static bool is_system(struct slice name)
{
    return document_names_system(usual_names(), name) != DOCUMENT_SYSTEM_COUNT;
}

static bool is_kept(const struct sql_expr *expr)
{
    enum query_aggregate_kind kind;

    return query_aggregate_find(slice_of_text(expr->call.function->name), &kind) &&
           rest_view_tally_keeps(kind);
}

static bool expr_check(struct sql_expr *expr, void *context)
{
    struct check *check = context;

    switch (expr->kind) {
    case SQL_EXPR_PARAMETER:
        return unfit(check, "parameters");
    case SQL_EXPR_UDF:
        return unfit(check, "user-defined functions");
    case SQL_EXPR_SUBQUERY:
        return unfit(check, "subqueries");
    case SQL_EXPR_CALL:
        if (sql_is_aggregate(expr) && !is_kept(expr))
            return error_set(check->err, ERROR_VIEW_UNFIT,
                             "the query of a view does not call %s, which cannot be kept up to "
                             "date item by item",
                             expr->call.function->name);
        if (!expr->call.function->stable)
            return error_set(check->err, ERROR_VIEW_UNFIT,
                             "the query of a view calls no function such as %s, which says "
                             "something else each time",
                             expr->call.function->name);
        break;
    case SQL_EXPR_MEMBER:
        if (expr->member.object->kind == SQL_EXPR_NAME && is_system(expr->member.name))
            return error_set(check->err, ERROR_VIEW_UNFIT,
                             "the query of a view does not name the system property \"%.*s\"",
                             (int)MIN(expr->member.name.len, (size_t)100),
                             (const char *)expr->member.name.data);
        break;
    default:
        break;
    }
    return sql_expr_each(expr, expr_check, context);
}

/* `c.name`, under its own name. */
static bool is_property(const struct sql_select_item *item)
{
    return !item->alias.len && item->expr->kind == SQL_EXPR_MEMBER &&
           item->expr->member.object->kind == SQL_EXPR_NAME;
}

static bool service_check(const struct sql_query *query, const struct check *check)
{
    if (query->where)
        return unfit(check, "WHERE, but in orrery.view");
    for (uint32_t i = 0; query->select == SQL_SELECT_LIST && i < query->item_count; i++)
        if (!is_property(&query->items[i]))
            return unfit(check, "expressions and no AS, but in orrery.view: it selects "
                                "properties, as c.name");
    return true;
}

static bool columns_check(const struct sql_query *query, const struct check *check)
{
    for (uint32_t i = 0; query->select == SQL_SELECT_LIST && i < query->item_count; i++)
        if (is_system(query->items[i].column))
            return error_set(check->err, ERROR_VIEW_UNFIT,
                             "the query of a view names no column \"%.*s\": that is a system "
                             "property of its items",
                             SLICE_ARG(query->items[i].column));
    return true;
}

static bool query_check(const struct sql_query *query, struct check *check)
{
    if (query->select != SQL_SELECT_LIST && query->select != SQL_SELECT_STAR)
        return unfit(check, "SELECT VALUE");
    if (query->source_count != 1 || query->sources[0]->iterates || query->sources[0]->subquery ||
        query->sources[0]->path->kind != SQL_EXPR_NAME)
        return unfit(check, "FROM but the whole container, and no JOIN");
    if (query->distinct)
        return unfit(check, "DISTINCT");
    if (query->top || query->offset || query->limit)
        return unfit(check, "TOP, OFFSET and LIMIT");
    if (query->order_count || query->order_by_rank)
        return unfit(check, "ORDER BY");
    if (query->aggregates && !query->group_by.count)
        return unfit(check, "aggregates without GROUP BY");
    if (query->group_by.count && !check->own)
        return unfit(check, "GROUP BY, but in orrery.view");
    return sql_query_each(query, expr_check, check) && columns_check(query, check) &&
           (check->own || service_check(query, check));
}

/* --- From its text to its plan --------------------------------------------------------------- */

static void columns_find(struct rest_view_query *query, const struct sql_query *tree,
                         struct arena *arena)
{
    query->aggregated = ARENA_ARRAY(arena, struct slice, tree->item_count + 1);
    query->columns = ARENA_ARRAY(arena, struct slice, tree->item_count + 1);
    for (uint32_t i = 0; tree->select == SQL_SELECT_LIST && i < tree->item_count; i++) {
        query->columns[query->column_count++] = tree->items[i].column;
        if (sql_has_aggregate(tree->items[i].expr))
            query->aggregated[query->aggregated_count++] = tree->items[i].column;
    }
}

bool rest_view_query_new(const struct definition_view *view, struct rest_view_query **ret_query,
                         struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct rest_view_query *query = ARENA_NEW(arena, struct rest_view_query);
    struct check check = {.own = view->form == DEFINITION_VIEW_OWN, .err = err};
    struct slice text = arena_copy(arena, view->query);
    struct sql_query *tree;

    if (!sql_parse(text, NULL, arena, &tree, NULL, err) || !sql_resolve(tree, arena, NULL, err) ||
        !query_check(tree, &check) || !sql_compile(tree, NULL, arena, &query->plan, NULL, err))
        return false;
    columns_find(query, tree, arena);
    if (query->plan.query.aggregate_count > CONTRIBUTION_VALUES_MAX)
        return error_set(err, ERROR_VIEW_UNFIT, "the query of a view has more than %d aggregates",
                         CONTRIBUTION_VALUES_MAX);
    query->arena = TAKE(arena);
    *ret_query = query;
    return true;
}

void rest_view_query_free(struct rest_view_query *query)
{
    if (query)
        arena_free(query->arena);
}

/* --- Rows ------------------------------------------------------------------------------------ */

struct taken {
    struct arena *arena;
    struct document_value row; /* undefined: none yet */
};

static bool row_take(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct taken *taken = self;

    taken->row = query_value_copy(value, taken->arena);
    return true;
}

/* Its id names the source's item, whose own id has another name here, as in the service. */
static struct slice row_write(struct slice row, struct slice id, struct arena *arena)
{
    static const struct slice identity = SLICE("id"), own = SLICE("_id");
    CLEANUP(buf_done) struct buf out;
    struct document_value value;
    struct document_iter iter;
    bool renamed = document_find(row, identity, &value);
    size_t begin;

    buf_init(&out, SIZE_MAX / 2);
    begin = document_begin(&out);
    document_append_string(&out, identity, id);
    document_iter_init(&iter, row);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, identity))
            document_append(&out, own, &iter.value);
        else if (!is_system(iter.key) && !(renamed && slice_equal(iter.key, own)))
            buf_append(&out, iter.element, (size_t)(iter.at - iter.element));
    }
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

bool rest_view_query_row(const struct rest_view_query *query, struct slice document,
                         struct slice id, struct arena *arena, struct slice *ret_row,
                         struct error *err)
{
    struct taken taken = {.arena = arena, .row = document_undefined()};
    const struct query_request request = {
        .limits = {.work_max = ROW_WORK_MAX}, .arena = arena, .row = row_take, .self = &taken};
    struct query_page page;

    if (!query_run_documents(&query->plan, &document, 1, &request, &page, err))
        return false;
    *ret_row = SLICE_NONE;
    if (taken.row.type == DOCUMENT_OBJECT)
        *ret_row = row_write(taken.row.document, id, arena);
    return true;
}

/* --- Groups ---------------------------------------------------------------------------------- */

bool rest_view_query_is_grouped(const struct rest_view_query *query)
{
    return query->plan.query.key_count > 0;
}

const struct query_aggregate_call *rest_view_query_aggregates(const struct rest_view_query *query,
                                                              size_t *ret_count)
{
    *ret_count = query->plan.query.aggregate_count;
    return query->plan.query.aggregates;
}

bool rest_view_query_path_check(const struct rest_view_query *query, struct slice path,
                                struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_path parsed;
    struct error ignored;

    if (!rest_view_query_is_grouped(query) ||
        !document_path_parse(path, DOCUMENT_PATH_KEY, arena, &parsed, &ignored) || !parsed.count)
        return true; /* what is no path is refused by who reads the definition */
    for (size_t n = 0; n < query->aggregated_count; n++)
        if (slice_equal(parsed.segments[0].name, query->aggregated[n]))
            return error_set(err, ERROR_VIEW_UNFIT,
                             "the partition key of a view with GROUP BY does not depend on an "
                             "aggregate, as \"%.*s\" does",
                             (int)MIN(path.len, (size_t)100), (const char *)path.data);
    return true;
}

static bool has_column(const struct rest_view_query *query, struct slice name)
{
    for (size_t n = 0; n < query->column_count; n++)
        if (slice_equal(name, query->columns[n]))
            return true;
    return false;
}

/* All rows have an id; a column of that name is `_id` in them (row_write). */
bool rest_view_query_has_path(const struct rest_view_query *query, struct slice path)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_path parsed;
    struct error ignored;
    struct slice name;

    if (!rest_view_query_is_grouped(query) ||
        !document_path_parse(path, DOCUMENT_PATH_KEY, arena, &parsed, &ignored) || !parsed.count)
        return true;
    name = parsed.segments[0].name;
    return slice_equal(name, SLICE("id")) || has_column(query, name) ||
           (slice_equal(name, SLICE("_id")) && has_column(query, SLICE("id")));
}

bool rest_view_query_key_check(const struct rest_view_query *query,
                               const struct partition_definition *key, struct error *err)
{
    for (uint32_t i = 0; i < key->path_count; i++)
        if (!rest_view_query_path_check(query, key->texts[i], err))
            return false;
    return true;
}

static void row_begin(const struct rest_view_query *query, struct query_context *context,
                      struct arena *arena)
{
    query_context_init(context, arena, &(struct query_limits){.work_max = ROW_WORK_MAX}, NULL);
    context->order = query->plan.order;
    context->slots = ARENA_ARRAY(arena, struct query_slot, query->plan.slot_count);
    context->slot_count = query->plan.slot_count;
    for (size_t i = 0; i < context->slot_count; i++)
        context->slots[i] = (struct query_slot){.value = document_undefined()};
}

static void array_end(struct buf *array, size_t begin, struct arena *arena, struct slice *ret_bytes)
{
    document_end(array, begin);
    *ret_bytes = arena_copy(arena, buf_slice(array));
    buf_clear(array);
}

static bool keys_evaluate(const struct rest_view_query *query, struct query_context *context,
                          struct buf *array, struct rest_view_share *share, struct error *err)
{
    CLEANUP(buf_done) struct buf identity;
    uint8_t digest[SHA256_DIGEST_LENGTH];
    size_t begin = document_begin(array);

    buf_init(&identity, SIZE_MAX / 2);
    for (uint32_t i = 0; i < query->plan.query.key_count; i++) {
        char text[DOCUMENT_INDEX_SIZE];
        struct document_value value;

        if (!query_evaluate(query->plan.query.keys[i].expression, context, &value, err))
            return false;
        document_key_append(query->plan.order, &value, &identity);
        document_append(array, document_index_key(i, text), &value);
    }
    array_end(array, begin, context->arena, &share->keys);
    SHA256(identity.data, identity.len, digest);
    memcpy(share->digest, digest, sizeof share->digest);
    return true;
}

static bool arguments_evaluate(const struct rest_view_query *query, struct query_context *context,
                               struct buf *array, struct rest_view_share *share, struct error *err)
{
    size_t begin = document_begin(array);

    for (uint32_t i = 0; i < query->plan.query.aggregate_count; i++) {
        const struct query_aggregate_call *call = &query->plan.query.aggregates[i];
        char text[DOCUMENT_INDEX_SIZE];
        struct document_value value;

        if (!query_evaluate(call->argument, context, &value, err))
            return false;
        value = rest_view_tally_argument(call->kind, &value);
        document_append(array, document_index_key(i, text), &value);
    }
    array_end(array, begin, context->arena, &share->arguments);
    return true;
}

bool rest_view_query_share(const struct rest_view_query *query, struct slice document,
                           struct arena *arena, struct rest_view_share *ret_share,
                           struct error *err)
{
    CLEANUP(query_context_done) struct query_context context;
    CLEANUP(buf_done) struct buf array;
    struct rest_view_share share = {.in = true};

    buf_init(&array, SIZE_MAX / 2);
    row_begin(query, &context, arena);
    context.slots[0].value = document_object(document);
    if ((query->plan.query.filter &&
         !query_holds(query->plan.query.filter, &context, &share.in, err)) ||
        (share.in && (!keys_evaluate(query, &context, &array, &share, err) ||
                      !arguments_evaluate(query, &context, &array, &share, err))))
        return false;
    *ret_share = share;
    return true;
}

static struct slice group_id(const uint8_t *digest, struct arena *arena)
{
    char *text = arena_alloc(arena, REST_VIEW_GROUP_ID_LEN);

    for (size_t i = 0; i < CONTRIBUTION_DIGEST_LEN; i++) {
        text[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    return slice_of(text, REST_VIEW_GROUP_ID_LEN);
}

bool rest_view_query_group_row(const struct rest_view_query *query, struct slice keys,
                               const uint8_t *digest, struct rest_view_tally *tally,
                               struct arena *arena, struct slice *ret_row, struct error *err)
{
    CLEANUP(query_context_done) struct query_context context;
    const struct query_subquery *plan = &query->plan.query;
    struct document_value value;
    struct document_iter iter;

    row_begin(query, &context, arena);
    document_iter_init(&iter, keys);
    for (size_t i = 0; i < plan->key_count && document_iter_next(&iter); i++)
        context.slots[plan->keys[i].slot].value = iter.value;
    for (size_t i = 0; tally && i < plan->aggregate_count; i++)
        context.slots[plan->aggregates[i].slot].value = rest_view_tally_result(tally, i);
    if (!query_evaluate(plan->select, &context, &value, err))
        return false;
    *ret_row = SLICE_NONE;
    if (value.type == DOCUMENT_OBJECT)
        *ret_row = row_write(value.document, group_id(digest, arena), arena);
    return true;
}
