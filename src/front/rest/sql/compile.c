/* Queries: sources, clauses, and the subqueries in FROM that span items. */
#include "front/rest/sql/compile.h"

#include "front/rest/sql/compile_private.h"
#include "front/rest/sql/parser.h"
#include "front/rest/sql/print.h"
#include "front/rest/sql/ranking.h"
#include "front/rest/sql/resolve.h"
#include "front/rest/sql/vectors.h"
#include "query/stage/chain.h"

#include <xxhash.h>

static void compile_query(struct sql_compiler *compiler, struct sql_level *level,
                          bool from_container, struct query_subquery *query);

static const struct query_expression *undefined(struct sql_compiler *compiler)
{
    return query_constant(&compiler->build, document_undefined());
}

/* --- Sources -----------------------------------------------------------------------------------
 */

static void alias_set(struct sql_compiler *compiler, const struct sql_source *source,
                      const struct query_expression *expression)
{
    if (source->slot >= compiler->alias_room) {
        uint32_t room = MAX(source->slot + 1, compiler->alias_room * 2);
        const struct query_expression **aliases = arena_alloc_zero(
            compiler->build.arena, memory_array_size(room, sizeof(*compiler->aliases)));

        if (compiler->alias_room)
            memcpy(aliases, compiler->aliases, compiler->alias_room * sizeof *aliases);
        compiler->aliases = aliases;
        compiler->alias_room = room;
    }
    compiler->aliases[source->slot] = expression;
}

static void source_add(struct query_subquery *query, struct query_source *room,
                       struct query_source source)
{
    room[query->source_count++] = source;
    query->sources = room;
}

/* A source is one or two of the engine's, or none for the item itself: x IN (SELECT ...) walks the
 * arrays that the subquery gives. */
static void compile_source(struct sql_compiler *compiler, struct sql_level *level,
                           const struct sql_source *source, bool from_container,
                           struct query_subquery *query, struct query_source *room)
{
    struct query_build *build = &compiler->build;
    uint32_t slot = compiler->slots++;
    struct query_source made = {.kind = QUERY_SOURCE_VALUE, .slot = slot};
    const struct query_step *steps;
    size_t step_count;
    uint32_t base;

    if (source->subquery) {
        struct sql_level inner = {.outer = level, .query = source->subquery};
        struct query_subquery rows = {0};

        compile_query(compiler, &inner, from_container, &rows);
        made.kind = QUERY_SOURCE_ROWS;
        made.rows = query_subquery_new(build, &rows);
        source_add(query, room, made);
        made.expression = query_variable(build, slot);
        made.slot = source->iterates ? compiler->slots++ : slot;
    } else if (source->reference.data) {
        made.expression = sql_compile_reference(compiler, level, source);
    } else {
        made.expression = sql_compile_expr(compiler, level, source->path);
    }
    if (source->iterates)
        made.kind = QUERY_SOURCE_EACH;
    alias_set(compiler, source, query_variable(build, made.slot));
    if (!source->iterates && source->path &&
        query_is_path(made.expression, &base, &steps, &step_count)) {
        alias_set(compiler, source, made.expression);
        if (base == 0 && step_count == 0)
            return; /* the item is always there */
    }
    if (source->path || source->iterates)
        source_add(query, room, made);
}

static void compile_sources(struct sql_compiler *compiler, struct sql_level *level,
                            bool from_container, struct query_subquery *query)
{
    struct query_source *room = ARENA_ARRAY(compiler->build.arena, struct query_source,
                                            2 * (size_t)level->query->source_count + 1);

    for (uint32_t i = 0; i < level->query->source_count; i++)
        compile_source(compiler, level, level->query->sources[i], from_container && i == 0, query,
                       room);
}

/* --- Clauses -----------------------------------------------------------------------------------
 */

static void compile_groups(struct sql_compiler *compiler, struct sql_level *level,
                           struct query_subquery *query)
{
    const struct sql_exprs *list = &level->query->group_by;
    struct query_group_key *keys;

    if (!list->count)
        return;
    keys = ARENA_ARRAY(compiler->build.arena, struct query_group_key, list->count);
    level->key_slot = compiler->slots;
    compiler->slots += list->count;
    for (uint32_t i = 0; i < list->count; i++) {
        keys[i].expression = sql_compile_expr(compiler, level, list->items[i]);
        keys[i].slot = level->key_slot + i;
    }
    query->keys = keys;
    query->key_count = list->count;
}

static const struct query_expression *compile_columns(struct sql_compiler *compiler,
                                                      struct sql_level *level)
{
    const struct sql_query *query = level->query;
    struct arena *arena = compiler->build.arena;
    struct slice *names = ARENA_ARRAY(arena, struct slice, query->item_count + 1);
    const struct query_expression **values =
        ARENA_ARRAY(arena, const struct query_expression *, query->item_count + 1);

    for (uint32_t i = 0; i < query->item_count; i++) {
        names[i] = query->items[i].column;
        values[i] = sql_compile_expr(compiler, level, query->items[i].expr);
    }
    return query_object(&compiler->build, names, values, query->item_count);
}

static const struct query_expression *compile_select(struct sql_compiler *compiler,
                                                     struct sql_level *level)
{
    const struct sql_query *query = level->query;
    const struct query_expression *select;

    level->selecting = true;
    switch (query->select) {
    case SQL_SELECT_STAR:
        select = compiler->aliases[query->sources[0]->slot];
        break;
    case SQL_SELECT_VALUE:
        select = sql_compile_expr(compiler, level, query->items[0].expr);
        break;
    case SQL_SELECT_LIST:
        select = compile_columns(compiler, level);
        break;
    default: /* a condition asks for nothing but whether there is a row */
        select = query_constant(&compiler->build, document_bool(true));
        break;
    }
    level->selecting = false;
    return select;
}

/* What is one row in the end has no order, and the rows it comes from need none. */
static void compile_order(struct sql_compiler *compiler, struct sql_level *level,
                          struct query_subquery *query)
{
    const struct sql_query *from = level->query;
    struct query_order *order;

    if (!from->order_count || (from->aggregates && !from->group_by.count))
        return;
    level->selecting = from->group_by.count > 0; /* groups, not the rows they are of */
    order = ARENA_ARRAY(compiler->build.arena, struct query_order, from->order_count);
    for (uint32_t i = 0; i < from->order_count; i++)
        order[i] = (struct query_order){sql_compile_expr(compiler, level, from->order_by[i].expr),
                                        from->order_by[i].descending};
    level->selecting = false;
    query->order = order;
    query->order_count = from->order_count;
}

static void compile_amounts(struct sql_compiler *compiler, const struct sql_query *from,
                            struct query_subquery *query)
{
    uint32_t limit = 0, offset = 0;
    const struct sql_expr *most = from->top ? from->top : from->limit;

    if ((most && !sql_amount(most, &limit)) || (from->offset && !sql_amount(from->offset, &offset)))
        query_build_fail(&compiler->build, ERROR_BAD_QUERY,
                         "a TOP, OFFSET or LIMIT has no whole number");
    query->limit = most ? limit : UINT64_MAX;
    query->offset = offset;
}

/* --- Subqueries in FROM that span items ----------------------------------------------------------
 */

static bool spans_rows(const struct sql_query *query)
{
    return query->distinct || query->aggregates || query->group_by.count || query->order_count ||
           query->top || query->offset;
}

/* The subquery that the query reads instead of the container, if it needs more than one item at a
 * time. */
static const struct sql_query *spanning_source(const struct sql_query *query)
{
    const struct sql_query *inner = query->source_count ? query->sources[0]->subquery : NULL;

    if (!inner)
        return NULL;
    return spans_rows(inner) || spanning_source(inner) ? inner : NULL;
}

/* Aggregates over what is distinct: the values are collected as a set, in one row; that row is
 * then the array which the query around it walks. */
static void compile_over_distinct(struct sql_compiler *compiler, struct sql_level *level,
                                  const struct sql_query *inner, struct query_subquery *query)
{
    struct query_build *build = &compiler->build;
    struct sql_level below = {.outer = level, .query = inner};
    struct query_source *each = ARENA_NEW(build->arena, struct query_source);
    struct query_aggregate_call *set = ARENA_NEW(build->arena, struct query_aggregate_call);
    struct query_subquery rest = {0};

    compile_sources(compiler, &below, true, query);
    if (inner->where)
        query->filter = sql_compile_expr(compiler, &below, inner->where);
    *set = (struct query_aggregate_call){.kind = QUERY_MAKE_SET, .slot = compiler->slots++};
    set->argument = compile_select(compiler, &below);
    query->aggregates = set;
    query->aggregate_count = 1;

    *each = (struct query_source){.kind = QUERY_SOURCE_EACH,
                                  .expression = query_variable(build, set->slot),
                                  .slot = compiler->slots++};
    alias_set(compiler, level->query->sources[0], query_variable(build, each->slot));
    rest.sources = each;
    rest.source_count = 1;
    if (level->query->where)
        rest.filter = sql_compile_expr(compiler, level, level->query->where);
    rest.select = compile_select(compiler, level);
    rest.aggregates = level->aggregates;
    rest.aggregate_count = level->aggregate_count;
    rest.limit = UINT64_MAX;
    query->select = query_subquery(build, QUERY_SCALAR, query_subquery_new(build, &rest));
}

/* A condition and projection of groups: the alias is what the groups select, and a group that the
 * condition does not accept gives nothing. */
static void compile_over_groups(struct sql_compiler *compiler, struct sql_level *level,
                                const struct sql_query *inner, struct query_subquery *query)
{
    struct query_build *build = &compiler->build;
    struct sql_level below = {.outer = level, .query = inner};
    const struct query_function *defined = query_function_find(SLICE("IS_DEFINED"));
    const struct query_expression *group, *accepted;

    compile_sources(compiler, &below, true, query);
    if (inner->where)
        query->filter = sql_compile_expr(compiler, &below, inner->where);
    compile_groups(compiler, &below, query);
    group = compile_select(compiler, &below);
    query->aggregates = below.aggregates;
    query->aggregate_count = below.aggregate_count;

    alias_set(compiler, level->query->sources[0], group);
    accepted = query_call(build, defined, &group, 1);
    if (level->query->where)
        accepted =
            query_and(build, accepted, sql_compile_expr(compiler, level, level->query->where));
    query->select =
        query_conditional(build, accepted, compile_select(compiler, level), undefined(compiler));
    query->distinct = level->query->distinct;
}

static void compile_spanning(struct sql_compiler *compiler, struct sql_level *level,
                             const struct sql_query *inner, struct query_subquery *query)
{
    const struct sql_query *outer = level->query;
    bool known = outer->source_count == 1 && !outer->sources[0]->iterates && !inner->top &&
                 !inner->offset && !inner->order_count && !outer->group_by.count &&
                 !outer->order_count && !spanning_source(inner);
    bool groups = inner->aggregates || inner->group_by.count;

    if (known && groups && !inner->distinct && !outer->aggregates)
        compile_over_groups(compiler, level, inner, query);
    else if (known && !groups && inner->distinct && outer->aggregates)
        compile_over_distinct(compiler, level, inner, query);
    else
        query->select =
            sql_compile_refuse(compiler, outer->sources[0]->span,
                               "A subquery in FROM that orders, groups or cuts the items "
                               "of the container is not supported in this query.");
}

/* --- Queries -----------------------------------------------------------------------------------
 */

static void compile_query(struct sql_compiler *compiler, struct sql_level *level,
                          bool from_container, struct query_subquery *query)
{
    const struct sql_query *from = level->query;
    const struct sql_query *spanning = from_container ? spanning_source(from) : NULL;

    compile_amounts(compiler, from, query);
    if (spanning) {
        compile_spanning(compiler, level, spanning, query);
        return;
    }
    compile_sources(compiler, level, from_container, query);
    if (from->where)
        query->filter = sql_compile_expr(compiler, level, from->where);
    compile_groups(compiler, level, query);
    query->select = compile_select(compiler, level);
    compile_order(compiler, level, query);
    query->aggregates = level->aggregates;
    query->aggregate_count = level->aggregate_count;
    query->distinct = from->distinct;
}

const struct query_subquery *sql_compile_subquery(struct sql_compiler *compiler,
                                                  const struct sql_level *outer,
                                                  const struct sql_query *query)
{
    struct sql_level level = {.outer = outer, .query = query};
    struct query_subquery made = {0};

    compile_query(compiler, &level, false, &made);
    return query_subquery_new(&compiler->build, &made);
}

/* The first fault of the build, told like those of the text; one that the compiler has seen itself
 * is told already. */
static bool build_fault(const struct sql_compiler *compiler, const struct sql_report *report)
{
    const struct error *error = &compiler->build.error;

    if (error->code == ERROR_QUERY_NOT_SUPPORTED || error->code == ERROR_BAD_QUERY) {
        *report->err = *error;
        return false;
    }
    return sql_report_whole(report, error->code, "%s", error->message);
}

/* Groups in an order: the groups are the query of the plan, the rest are stages. */
static void plan_order_groups(struct sql_compiler *compiler, struct query_plan *plan)
{
    struct query_build *build = &compiler->build;
    struct query_subquery *query = &plan->query;
    size_t count = query->key_count + query->aggregate_count;
    uint32_t *bound = ARENA_ARRAY(build->arena, uint32_t, count), slot = compiler->slots++;
    const struct query_expression *row = query_variable(build, slot);
    struct query_stage stages[5] = {
        {.kind = QUERY_STAGE_SORT, .sort = {query->order, query->order_count}},
        {.kind = QUERY_STAGE_PROJECT, .project = {query->select, slot}},
    };
    struct query_chain chain = {stages, 2, row};

    if (compiler->slots > QUERY_SLOTS_MAX)
        return; /* told by the caller */
    if (query->distinct)
        stages[chain.count++] =
            (struct query_stage){.kind = QUERY_STAGE_DISTINCT, .distinct = {&row, 1}};
    if (query->offset)
        stages[chain.count++] =
            (struct query_stage){.kind = QUERY_STAGE_SKIP, .amount = query->offset};
    if (query->limit != UINT64_MAX)
        stages[chain.count++] =
            (struct query_stage){.kind = QUERY_STAGE_LIMIT, .amount = query->limit};
    for (size_t i = 0; i < query->key_count; i++)
        bound[i] = query->keys[i].slot;
    for (size_t i = 0; i < query->aggregate_count; i++)
        bound[query->key_count + i] = query->aggregates[i].slot;
    query->order_count = 0;
    query->distinct = false;
    query->offset = 0;
    query->limit = UINT64_MAX;
    query_chain_behind(build, &chain, bound, count, plan);
}

bool sql_compile(const struct sql_query *query, const struct sql_compile_options *options,
                 struct arena *arena, struct query_plan *ret_plan, struct sql_error *ret_error,
                 struct error *err)
{
    static const struct sql_compile_options none;
    struct sql_report report = {arena, ret_error, err};
    struct sql_compiler compiler = {.build = {.arena = arena,
                                              .order = DOCUMENT_ORDER_SQL,
                                              .breath = options ? options->breath : none.breath},
                                    .report = &report,
                                    .options = options ? options : &none,
                                    .slots = 1};
    struct sql_level level = {.query = query};
    struct query_plan plan = {.constant = query->source_count == 0, .order = DOCUMENT_ORDER_SQL};

    compile_query(&compiler, &level, true, &plan.query);
    if (plan.query.key_count && plan.query.order_count && !compiler.build.failed)
        plan_order_groups(&compiler, &plan);
    if (compiler.slots > QUERY_SLOTS_MAX)
        query_build_fail(&compiler.build, ERROR_TOO_LARGE, "the query has more than %d variables",
                         QUERY_SLOTS_MAX);
    if (compiler.build.failed)
        return build_fault(&compiler, &report);
    plan.slot_count = compiler.slots;
    plan.order_defined = sql_orders_by_vector(query);
    plan.references = compiler.references;
    plan.reference_count = compiler.reference_count;
    *ret_plan = plan;
    return true;
}

static bool udf_is_known(void *self UNUSED, struct slice name UNUSED)
{
    return true;
}

static bool reference_is_known(void *self UNUSED, struct slice database UNUSED,
                               struct slice container UNUSED,
                               const struct definition_fields **ret_fields,
                               struct error *err UNUSED)
{
    *ret_fields = NULL;
    return true;
}

void sql_compile_filter(const struct sql_query *query, struct arena *arena,
                        struct query_plan *ret_plan)
{
    static const struct sql_compile_options options = {.udf_known = udf_is_known,
                                                       .reference = reference_is_known};
    struct error ignored;
    struct sql_report report = {arena, NULL, &ignored};
    struct sql_compiler compiler = {.build = {.arena = arena, .order = DOCUMENT_ORDER_SQL},
                                    .report = &report,
                                    .options = &options,
                                    .slots = 1};
    struct sql_level level = {.query = query};
    struct query_plan plan = {.constant = query->source_count == 0, .order = DOCUMENT_ORDER_SQL};

    compile_sources(&compiler, &level, true, &plan.query);
    if (query->where)
        plan.query.filter = sql_compile_expr(&compiler, &level, query->where);
    if (compiler.build.failed || compiler.slots > QUERY_SLOTS_MAX)
        plan.query = (struct query_subquery){0};
    *ret_plan = plan;
}

/* --- From the text -----------------------------------------------------------------------------
 */

uint64_t sql_fingerprint(struct slice text, struct slice parameters,
                         const struct sql_compile_options *options)
{
    struct slice computed = options ? options->computed : SLICE_NONE;
    XXH64_hash_t hash = XXH3_64bits(text.data, text.len);

    hash = XXH3_64bits_withSeed(parameters.data, parameters.len, hash);
    return XXH3_64bits_withSeed(computed.data, computed.len, hash);
}

/* A stream in an order goes on behind a place, whatever is asked of the rows from there on: its
 * binding is the query without WHERE, and with the names of parameters instead of their values.
 * Whether a row of DISTINCT or GROUP BY was given before depends on the filter: those have none. */
static uint64_t binding(const struct sql_query *query, struct slice computed)
{
    CLEANUP(buf_done) struct buf text;
    struct sql_query stream = *query;
    uint64_t hash;

    buf_init(&text, BUF_DEFAULT_MAX);
    if (!query->order_count || query->distinct || query->aggregates || query->group_by.count)
        return 0;
    stream.where = NULL;
    sql_print(&stream, &text);
    if (buf_overflowed(&text))
        return 0;
    hash = XXH3_64bits_withSeed(computed.data, computed.len, XXH3_64bits(text.data, text.len));
    return hash ? hash : 1;
}

/* Between two steps of which each looks at all of the query. */
static bool breathe(const struct sql_compile_options *options)
{
    if (options && options->breath.take)
        options->breath.take(options->breath.self);
    return true;
}

/* What is ranked has no plan of its own before the sums of its scores are known. */
static bool ranking_compile(struct sql_prepared *prepared,
                            const struct sql_compile_options *options, struct arena *arena,
                            struct sql_error *ret_error, struct error *err)
{
    struct sql_report report = {arena, ret_error, err};
    struct sql_query unordered = *prepared->query;
    struct sql_ranking *ranking = ARENA_NEW(arena, struct sql_ranking);

    unordered.order_count = 0;
    unordered.order_by_rank = false;
    if (!sql_ranking_read(prepared->query, ranking, &report))
        return false;
    if (!options->ranks)
        return sql_report_unsupported(&report, prepared->query->order_by[0].expr->span,
                                      "ORDER BY RANK is not supported here.");
    prepared->ranking = ranking;
    return sql_compile(&unordered, options, arena, &prepared->plan, ret_error, err);
}

static bool compile(struct sql_prepared *prepared, const struct sql_compile_options *options,
                    struct arena *arena, struct sql_error *ret_error, struct error *err)
{
    return prepared->query->order_by_rank
               ? ranking_compile(prepared, options, arena, ret_error, err)
               : sql_compile(prepared->query, options, arena, &prepared->plan, ret_error, err);
}

bool sql_prepare(struct slice text, struct slice parameters,
                 const struct sql_compile_options *options, struct arena *arena,
                 struct sql_prepared *ret_prepared, struct sql_error *ret_error, struct error *err)
{
    struct sql_prepared prepared = {0};
    struct sql_report report = {arena, ret_error, err};
    struct sql_compile_options noting = options ? *options : (struct sql_compile_options){0};

    noting.bound = &prepared.bound;
    if (!sql_parse(text, NULL, arena, &prepared.query, ret_error, err) || !breathe(options) ||
        !sql_bind(prepared.query, parameters, arena, ret_error, err) ||
        !sql_resolve(prepared.query, arena, ret_error, err) || !breathe(options) ||
        !sql_vectors_orient(prepared.query, noting.vectors, arena, &report) ||
        !compile(&prepared, &noting, arena, ret_error, err))
        return false;
    prepared.plan.fingerprint = sql_fingerprint(text, parameters, options);
    prepared.plan.binding = binding(prepared.query, options ? options->computed : SLICE_NONE);
    *ret_prepared = prepared;
    return true;
}
