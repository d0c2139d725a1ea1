/* Only one logical partition of a view is read. An item whose key in the view changes is removed
 * there and written elsewhere in two commits: who looks at both places may meet it twice or not at
 * all, who looks at one meets it as it was or as it is.
 *
 * Nothing is remembered between requests: a container without views is known by one flag of its
 * definition, and of the others a text is parsed once more. */
#include "front/rest/query/by_view.h"

#include "catalogue/views.h"
#include "document/bson.h"
#include "front/fan_out.h"
#include "front/rest/query/query.h"
#include "front/rest/sql/parser.h"
#include "front/rest/sql/resolve.h"
#include "front/rest/views/cover.h"
#include "front/rest/views/views.h"
#include "maintain/pauses.h"
#include "query/access/access.h"
#include "query/access/pins.h"

enum {
    TEXT_BYTES_MAX = 4 * 1024, /* of a query: longer ones are not parsed for each view */
    WAIT_MS = 5000,            /* of a page that goes on, for the view to catch up */
};

/* While views are looked at. */
struct looking {
    struct rest_call *call;
    const struct rest_by_view_asked *asked;
    struct rest_by_view *by;
    struct buf refused;
    uint32_t refused_count;
};

/* --- What of the request and its source stands against it --------------------------------------
 */

static bool has(const struct definition_fields *definition, struct slice policy)
{
    struct document_value value;

    return document_find(definition->document, policy, &value) &&
           (value.type == DOCUMENT_ARRAY || value.type == DOCUMENT_OBJECT) &&
           document_count(value.document);
}

/* What a query means by a property, or by a function, must be the same in both: it depends on
 * these. */
static bool has_meanings(const struct definition_fields *definition)
{
    return has(definition, SLICE("computedProperties")) ||
           has(definition, SLICE("fullTextPolicy")) ||
           has(definition, SLICE("vectorEmbeddingPolicy"));
}

static bool is_narrowed(const struct rest_call *call)
{
    static const enum rest_header headers[] = {REST_HEADER_PARTITION_KEY,
                                               REST_HEADER_PARTITION_RANGE_ID,
                                               REST_HEADER_START_EPK, REST_HEADER_END_EPK};

    for (size_t i = 0; i < ARRAY_LEN(headers); i++)
        if (rest_call_header(call, headers[i]).data)
            return true;
    return false;
}

/* Items expire in a source without anything being written. */
static bool is_possible(const struct rest_call *call, const struct rest_by_view_asked *asked)
{
    const struct definition_fields *source = asked->source->space.definition;

    return source->followed && call->services->views && call->options->queries.by_view &&
           !slice_equal_nocase(rest_call_header(call, REST_HEADER_USE_VIEWS), SLICE("false")) &&
           !is_narrowed(call) && !call->identity.key.data && !call->identity.one_item &&
           asked->source->level != ITEM_STRONG && !source->view.form &&
           source->default_ttl == DEFINITION_TTL_OFF && !has_meanings(source) &&
           !asked->plan->reference_count && asked->body->text.len <= TEXT_BYTES_MAX;
}

/* The physical partitions that a plan needs. */
static size_t spans_needed(const struct item_space *space, const struct query_plan *plan,
                           struct arena *arena)
{
    const struct partition_span *last = NULL;
    const struct query_key_range *ranges;
    size_t count, needed = 0;

    query_key_ranges(plan, &space->definition->key, arena, &ranges, &count);
    for (size_t i = 0; i < count; i++) {
        const struct partition_span *first = partition_map_find(space->map, ranges[i].min);
        size_t spans = 1;

        if (!ranges[i].point)
            first = partition_map_overlap(
                space->map, (struct partition_range){.min = ranges[i].min, .max = ranges[i].max},
                &spans);
        if (!spans)
            continue;
        needed += spans - (first == last);
        last = first + spans - 1;
    }
    return needed;
}

/* What is paused of the source is not shown by a view either. */
static bool is_paused(const struct item_space *space)
{
    const struct partition_range all = {.min = PARTITION_ROUTING_MIN, .max = PARTITION_ROUTING_MAX};
    size_t count;
    const struct partition_span *spans = partition_map_spans(space->map, &count);
    struct error ignored;

    for (size_t i = 0; i < count; i++)
        if (!item_space_admits_range(space, &spans[i], all, &ignored))
            return true;
    return false;
}

/* --- A view ------------------------------------------------------------------------------------
 */

static bool unfit(struct error *err, const char *why)
{
    return error_set(err, ERROR_VIEW_UNFIT, "%s", why);
}

static bool may_read(struct looking *looking, struct container *view, struct error *err)
{
    struct rest_call *call = looking->call;
    int64_t wait_ms;

    if (call->identity.kind == REST_IDENTITY_TOKEN && !call->identity.database)
        return error_set(err, ERROR_FORBIDDEN, "the resource token is not for the view");
    return pauses_check(call->services->pauses, view, false, &wait_ms, err);
}

/* Does the query give one value to the whole partition key of the view? */
static bool is_one_key(const struct item_space *space, const struct query_plan *plan,
                       struct arena *arena, const struct partition_span **ret_span)
{
    const struct query_key_range *ranges;
    size_t count;

    query_key_ranges(plan, &space->definition->key, arena, &ranges, &count);
    if (count != 1 || !ranges[0].point)
        return false;
    *ret_span = partition_map_find(space->map, ranges[0].min);
    return true;
}

/* Which items an order has depends on what is indexed. */
static bool orders_alike(const struct looking *looking, const struct item_space *space,
                         const struct query_plan *plan, struct arena *arena, struct error *err)
{
    const struct rest_by_view_asked *asked = looking->asked;
    struct query_request request = {.space = &asked->source->space,
                                    .order_unindexed = asked->order_unindexed};
    struct query_order_rules source, view;

    if (!query_order_check(asked->plan, &request, arena, &source, err))
        return false;
    request.space = space;
    return query_order_check(plan, &request, arena, &view, err) &&
           ((source.keeps_undefined == view.keeps_undefined &&
             source.keeps_nested == view.keeps_nested) ||
            unfit(err, "its indexing policy gives the order of the query other items"));
}

/* The query as one on the view. */
static bool plan_make(struct looking *looking, const struct rest_items *items, struct arena *arena,
                      struct query_plan *ret_plan, struct error *err)
{
    const struct rest_by_view_asked *asked = looking->asked;
    struct sql_compile_options options = rest_query_options(items);
    struct sql_query *query;

    if (!sql_parse(asked->body->text, NULL, arena, &query, NULL, err) ||
        !sql_bind(query, asked->body->parameters, arena, NULL, err) ||
        !sql_resolve(query, arena, NULL, err))
        return false;
    sql_bind_literally(query);
    if (query->order_by_rank)
        return unfit(err, "the query ranks");
    options.breath = front_breath(looking->call->services->workers);
    if (!rest_view_cover(&items->space.definition->view, query, arena, err) ||
        !sql_compile(query, &options, arena, ret_plan, NULL, err))
        return false;
    ret_plan->fingerprint = asked->plan->fingerprint;
    ret_plan->binding = asked->plan->binding;
    return true;
}

static bool definition_fits(const struct looking *looking, const struct rest_items *items,
                            struct error *err)
{
    const struct definition_fields *view = items->space.definition;
    const struct definition_fields *source = looking->asked->source->space.definition;

    return (view->plane == source->plane && !has_meanings(view)) ||
           unfit(err, "its definition gives functions or properties another meaning");
}

static bool level_allows(const struct looking *looking, const struct rest_view_standing *standing,
                         struct error *err)
{
    const struct front_consistency *own = &looking->call->services->consistency;
    const struct rest_items *source = looking->asked->source;
    bool enough = true;

    if (source->token_count)
        enough = standing->has_tokens;
    else if (source->level == ITEM_SESSION)
        enough = standing->has_all;
    if (source->level == ITEM_BOUNDED)
        enough = enough && standing->lag_ms <= own->staleness_ms &&
                 standing->lag_lsn <= own->staleness_operations;
    return enough || error_set(err, ERROR_VIEW_UNFIT,
                               "it is behind by %lld ms, and the consistency level is %s",
                               (long long)standing->lag_ms, item_level_name(source->level));
}

/* Of a page that goes on: where the view stood when it began counted then; now it has to catch up,
 * for the source cannot go on in its place. */
static bool catch_up(struct looking *looking, const struct container *view, struct error *err)
{
    struct rest_call *call = looking->call;
    struct rest_view_wait *wait = call->view_wait;

    if (!wait) {
        wait = ARENA_NEW(call->arena, struct rest_view_wait);
        wait->tokens = looking->asked->source->tokens;
        wait->token_count = looking->asked->source->token_count;
        call->view_wait = wait;
    }
    return rest_views_wait(call->services->views, view, WAIT_MS, wait, &call->front, err);
}

static bool standing_check(struct looking *looking, const struct container *view, struct error *err)
{
    const struct rest_items *source = looking->asked->source;
    struct rest_view_standing standing;

    rest_views_standing(looking->call->services->views, view, source->tokens, source->token_count,
                        &standing);
    looking->by->lag_ms = standing.lag_ms;
    if (looking->asked->view_rid.data)
        return level_allows(looking, &standing, err) || catch_up(looking, view, err);
    return (!standing.unfit || unfit(err, standing.unfit)) && level_allows(looking, &standing, err);
}

/* Everything that needs no look at the state of the view comes first. */
static bool view_try(struct looking *looking, struct container *view, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct rest_items items = {.space = front_space(looking->call->services, view),
                               .level = looking->asked->source->level};
    const struct partition_span *span;
    struct query_plan plan;

    if (!may_read(looking, view, err) || !definition_fits(looking, &items, err) ||
        !plan_make(looking, &items, arena, &plan, err))
        return false;
    if (!is_one_key(&items.space, &plan, arena, &span))
        return unfit(err, "the query does not give its partition key one value");
    if (!orders_alike(looking, &items.space, &plan, arena, err) ||
        !standing_check(looking, view, err))
        return false;
    items.container = container_ref(view);
    looking->by->items = items;
    looking->by->plan = plan;
    looking->by->span = span;
    looking->by->arena = TAKE(arena);
    return true;
}

/* --- All of them -------------------------------------------------------------------------------
 */

static void refused_note(struct looking *looking, const struct container *view,
                         const struct error *why)
{
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin = document_append_object_begin(&looking->refused,
                                                document_index_key(looking->refused_count++, text));

    document_append_string(&looking->refused, SLICE("id"), container_info(view)->id);
    document_append_string(&looking->refused, SLICE("reason"), slice_of_text(why->message));
    document_end(&looking->refused, begin);
}

static bool is_view_of(const struct container *view, const struct container *source)
{
    const struct definition_view *definition = &definition_fields(container_definition(view))->view;

    for (size_t i = 0; i < definition->source_count; i++)
        if (definition->source_rids[i].owner == container_info(source)->number)
            return true;
    return false;
}

static bool continued_find(struct looking *looking, const struct database *database,
                           struct error *err)
{
    for (size_t i = 0; i < database_container_count(database); i++) {
        struct container *view = database_container(database, i);

        if (!slice_equal(container_info(view)->rid, looking->asked->view_rid) ||
            !is_view_of(view, looking->asked->source->container))
            continue;
        if (view_try(looking, view, err))
            return true;
        return err->code == ERROR_VIEW_UNFIT
                   ? error_set(err, ERROR_BAD_CONTINUATION, "Invalid Continuation Token")
                   : false;
    }
    return error_set(err, ERROR_BAD_CONTINUATION, "Invalid Continuation Token");
}

static void views_look(struct looking *looking, const struct database *database)
{
    size_t begin = document_begin(&looking->refused);

    for (size_t i = 0; i < database_container_count(database); i++) {
        struct container *view = database_container(database, i);
        struct error why;

        if (!is_view_of(view, looking->asked->source->container))
            continue;
        if (view_try(looking, view, &why))
            break;
        refused_note(looking, view, &why);
    }
    document_end(&looking->refused, begin);
    if (!buf_overflowed(&looking->refused))
        looking->by->refused = arena_copy(looking->call->arena, buf_slice(&looking->refused));
}

static bool database_open(struct rest_call *call, struct database **ret_database, struct error *err)
{
    return catalogue_database_open(call->services->catalogue, call->account.id,
                                   call->route.database, ret_database, err);
}

bool rest_by_view_find(struct rest_call *call, const struct rest_by_view_asked *asked,
                       struct rest_by_view *ret_by, struct error *err)
{
    CLEANUP(database_unref) struct database *database = NULL;
    struct rest_by_view by = {0};
    struct looking looking = {.call = call, .asked = asked, .by = &by};
    bool goes_on = asked->view_rid.data != NULL, done = true;

    *ret_by = by;
    if (!is_possible(call, asked))
        return !goes_on || error_set(err, ERROR_BAD_CONTINUATION, "Invalid Continuation Token");
    by.instead = spans_needed(&asked->source->space, asked->plan, call->arena);
    if (!goes_on && (by.instead < 2 || rest_call_header(call, REST_HEADER_CONTINUATION).len ||
                     is_paused(&asked->source->space)))
        return true;
    if (!call->may_block) {
        call->cold = true;
        return error_set(err, ERROR_COLD, "a view may answer");
    }
    if (!database_open(call, &database, err))
        return false;
    buf_init(&looking.refused, 16 * 1024);
    if (goes_on)
        done = continued_find(&looking, database, err);
    else
        views_look(&looking, database);
    buf_done(&looking.refused);
    *ret_by = by;
    return done;
}

void rest_by_view_done(struct rest_by_view *by)
{
    rest_items_close(&by->items);
    arena_free(by->arena);
    *by = (struct rest_by_view){0};
}

struct slice rest_by_view_explain(const struct rest_by_view *by, struct slice explain,
                                  struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    struct document_iter iter;
    size_t begin, view;

    buf_init(&out, BUF_DEFAULT_MAX);
    if (!explain.len || (!by->items.container && !by->refused.data))
        return explain;
    begin = document_begin(&out);
    document_iter_init(&iter, explain);
    while (document_iter_next(&iter))
        buf_append(&out, iter.element, (size_t)(iter.at - iter.element));
    if (by->items.container) {
        view = document_append_object_begin(&out, SLICE("view"));
        document_append_string(&out, SLICE("id"), container_info(by->items.container)->id);
        document_append_int64(&out, SLICE("lagMs"), by->lag_ms);
        document_append_int64(&out, SLICE("insteadOfPartitions"), (int64_t)by->instead);
        document_end(&out, view);
    }
    if (by->refused.data) {
        struct document_value refused = document_array(by->refused);

        document_append(&out, SLICE("viewsNotUsed"), &refused);
    }
    document_end(&out, begin);
    return buf_overflowed(&out) ? explain : arena_copy(arena, buf_slice(&out));
}
