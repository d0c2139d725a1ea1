/* Paths alone are matched, not expressions that a view has computed: a column leaves out what is
 * not finite, so that `c.a / c.b AS ratio` is not always what the query would compute. Conditions
 * are matched as they are written: `c.open = true` is not `c.open`. Whoever writes the view knows
 * the query it is for. */
#include "front/rest/views/cover.h"

#include "definition/names.h"
#include "document/path.h"
#include "front/rest/sql/parser.h"
#include "front/rest/sql/resolve.h"

struct covering {
    const struct sql_query *view;
    const struct sql_source *root; /* of the query: the container */
    const struct sql_expr *root_path;
    bool renamed; /* one of the view's columns is "id", which is "_id" in its rows */
    struct arena *arena;
    struct error *err;
};

static bool unfit(struct covering *covering, const char *why)
{
    return error_set(covering->err, ERROR_VIEW_UNFIT, "%s", why);
}

static bool is_system(struct slice name)
{
    return document_names_system(definition_names(DEFINITION_IDENTITY_ID), name) !=
           DOCUMENT_SYSTEM_COUNT;
}

/* The name that a column has in rows (views/query.c); data NULL: it is in none. */
static struct slice column_in_rows(const struct covering *covering, struct slice column)
{
    if (slice_equal(column, SLICE("id")))
        return SLICE("_id");
    if (is_system(column) || (covering->renamed && slice_equal(column, SLICE("_id"))))
        return SLICE_NONE;
    return column;
}

static bool is_root(const struct covering *covering, const struct sql_expr *expr)
{
    return expr->kind == SQL_EXPR_NAME && expr->name.source == covering->root;
}

/* c.a.b, of names alone. */
static bool is_path(const struct sql_expr *expr)
{
    while (expr->kind == SQL_EXPR_MEMBER)
        expr = expr->member.object;
    return expr->kind == SQL_EXPR_NAME;
}

/* The column that has what a path of the query leads to; data NULL: none has. */
static struct slice column_of(const struct covering *covering, const struct sql_expr *path)
{
    const struct sql_query *view = covering->view;

    if (view->select == SQL_SELECT_STAR)
        return is_root(covering, path->member.object) ? column_in_rows(covering, path->member.name)
                                                      : SLICE_NONE;
    for (uint32_t i = 0; i < view->item_count; i++)
        if (is_path(view->items[i].expr) && sql_expr_equal(view->items[i].expr, path))
            return column_in_rows(covering, view->items[i].column);
    return SLICE_NONE;
}

static bool query_map(struct covering *covering, const struct sql_query *query);

static bool expr_map(struct sql_expr *expr, void *context)
{
    struct covering *covering = context;
    struct slice column;

    if (expr == covering->root_path)
        return true;
    switch (expr->kind) {
    case SQL_EXPR_NAME:
        if (!is_root(covering, expr) && expr->name.source)
            return true;
        return unfit(covering, "the query needs the item as a whole, of which a row of the view "
                               "does not have the system properties");
    case SQL_EXPR_MEMBER:
        column = is_path(expr) && is_root(covering, sql_expr_start(expr))
                     ? column_of(covering, expr)
                     : SLICE_NONE;
        if (column.data) {
            expr->member.object = sql_expr_start(expr);
            expr->member.name = column;
            sql_expr_settle(expr);
            return true;
        }
        if (is_root(covering, expr->member.object))
            return error_set(covering->err, ERROR_VIEW_UNFIT, "it does not keep \"%.*s\"",
                             (int)MIN(expr->member.name.len, (size_t)100),
                             (const char *)expr->member.name.data);
        break;
    case SQL_EXPR_UDF:
        return unfit(covering, "user-defined functions are its source's");
    case SQL_EXPR_SUBQUERY:
        return query_map(covering, expr->subquery.query);
    default:
        break;
    }
    return sql_expr_each(expr, expr_map, context);
}

static bool query_map(struct covering *covering, const struct sql_query *query)
{
    if (query->select == SQL_SELECT_STAR)
        return unfit(covering, "the query needs the item as a whole, of which a row of the view "
                               "does not have the system properties");
    for (uint32_t i = 0; i < query->source_count; i++) {
        const struct sql_source *source = query->sources[i];

        if (source->subquery && !query_map(covering, source->subquery))
            return false;
        if (source->path && sql_expr_start(source->path)->kind != SQL_EXPR_NAME)
            return unfit(covering, "the query reads from a parameter");
    }
    return sql_query_each(query, expr_map, covering);
}

/* --- What the view leaves out ----------------------------------------------------------------- */

/* The alias of the container may be another in the two texts. */
static bool alias_take(struct sql_expr *expr, void *context)
{
    const struct covering *covering = context;

    if (expr->kind == SQL_EXPR_NAME && expr->name.source == covering->view->sources[0])
        expr->name.name = covering->root->alias;
    return sql_expr_each(expr, alias_take, context);
}

static bool conjunct_drop(struct sql_query *query, const struct sql_expr *conjunct)
{
    struct sql_expr *where = query->where;

    if (!where)
        return false;
    if (sql_expr_equal(where, conjunct)) {
        query->where = NULL;
        return true;
    }
    for (uint32_t i = 0; where->kind == SQL_EXPR_AND && i < where->items.count; i++) {
        if (!sql_expr_equal(where->items.items[i], conjunct))
            continue;
        memmove(&where->items.items[i], &where->items.items[i + 1],
                (where->items.count - i - 1) * sizeof *where->items.items);
        if (--where->items.count == 1)
            query->where = where->items.items[0];
        return true;
    }
    return false;
}

/* A condition that is in the view's filter and in the query's is true for every row. */
static bool filter_drop(const struct covering *covering, struct sql_query *query)
{
    const struct sql_expr *filter = covering->view->where;

    if (!filter)
        return true;
    if (filter->kind != SQL_EXPR_AND)
        return conjunct_drop(query, filter);
    for (uint32_t i = 0; i < filter->items.count; i++)
        if (!conjunct_drop(query, filter->items.items[i]))
            return false;
    return true;
}

static bool is_whole_container(const struct sql_query *query)
{
    return query->source_count && !query->sources[0]->iterates && !query->sources[0]->subquery &&
           query->sources[0]->path->kind == SQL_EXPR_NAME;
}

/* The view's tree, if its rows are single items of one source. */
static bool view_read(struct covering *covering, const struct definition_view *view)
{
    struct sql_query *tree;

    if (view->source_count != 1)
        return unfit(covering, "it has several sources");
    if (!sql_parse(arena_copy(covering->arena, view->query), NULL, covering->arena, &tree, NULL,
                   covering->err) ||
        !sql_resolve(tree, covering->arena, NULL, covering->err))
        return false;
    if (tree->group_by.count)
        return unfit(covering, "its rows are groups");
    covering->view = tree;
    covering->renamed = tree->select == SQL_SELECT_STAR;
    for (uint32_t i = 0; i < tree->item_count; i++)
        covering->renamed |= slice_equal(tree->items[i].column, SLICE("id"));
    return true;
}

bool rest_view_cover(const struct definition_view *view, struct sql_query *query,
                     struct arena *arena, struct error *err)
{
    struct covering covering = {.arena = arena, .err = err};

    if (!view_read(&covering, view))
        return false;
    if (!is_whole_container(query))
        return unfit(&covering, "the query does not read whole items");
    covering.root = query->sources[0];
    covering.root_path = query->sources[0]->path;
    (void)sql_query_each(covering.view, alias_take, &covering);
    if (!filter_drop(&covering, query))
        return unfit(&covering, "the query does not have the condition that it is filtered by");
    if (!query_map(&covering, query))
        return false;
    sql_query_settle(query);
    return true;
}

/* --- What it is an index of --------------------------------------------------------------------
 */

/* c.a.b as segments, with those of a path behind its first. */
static struct slice path_text(const struct sql_expr *expr, const struct document_path *key,
                              struct arena *arena)
{
    CLEANUP(buf_done) struct buf text;
    struct document_segment *segments;
    struct document_path path = {.count = key->count - 1};
    size_t names = 0;

    buf_init(&text, BUF_DEFAULT_MAX);
    for (const struct sql_expr *at = expr; at->kind == SQL_EXPR_MEMBER; at = at->member.object)
        names++;
    path.count += names;
    segments = ARENA_ARRAY(arena, struct document_segment, path.count + 1);
    memcpy(segments + names, key->segments + 1, (key->count - 1) * sizeof *segments);
    for (; expr->kind == SQL_EXPR_MEMBER; expr = expr->member.object)
        segments[--names] =
            (struct document_segment){.kind = DOCUMENT_SEGMENT_PROPERTY, .name = expr->member.name};
    path.segments = segments;
    document_path_append(&path, &text);
    return arena_copy(arena, buf_slice(&text));
}

bool rest_view_cover_path(const struct definition_view *view,
                          const struct partition_definition *key, struct arena *arena,
                          struct slice *ret_path)
{
    struct error ignored;
    struct covering covering = {.arena = arena, .err = &ignored};
    struct sql_expr *whole;
    struct slice first;

    if (key->path_count != 1 || !key->paths[0].count || !view_read(&covering, view) ||
        covering.view->where)
        return false;
    first = key->paths[0].segments[0].name;
    if (covering.view->select == SQL_SELECT_STAR) {
        whole = sql_expr_name(arena, covering.view->sources[0]);
        if (slice_equal(first, SLICE("_id")))
            first = SLICE("id");
        *ret_path = path_text(sql_expr_member(arena, whole, first), &key->paths[0], arena);
        return true;
    }
    for (uint32_t i = 0; i < covering.view->item_count; i++) {
        const struct sql_select_item *item = &covering.view->items[i];

        if (!is_path(item->expr) || !slice_equal(column_in_rows(&covering, item->column), first))
            continue;
        *ret_path = path_text(item->expr, &key->paths[0], arena);
        return true;
    }
    return false;
}
