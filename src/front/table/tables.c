/* Tables: containers of the database TablesDB, which is made with the first of them. */
#include "document/json.h"
#include "front/table/answer.h"
#include "front/table/filter.h"
#include "front/table/select.h"
#include "front/table/write.h"
#include "front/throughput.h"
#include "load/offer_meters.h"
#include "throughput/cost.h"

/* Order over all partitions comes from the composite index, and so do ranges of PartitionKey.
 * RowKey is the id, which has an index of its own; digits of dates below a millisecond are compared
 * after the date was found. */
static const char definition_format[] =
    "{\"id\":\"%.*s\",\"partitionKey\":{\"paths\":[\"/PartitionKey\"],\"kind\":\"Hash\","
    "\"version\":2},\"indexingPolicy\":{\"indexingMode\":\"consistent\",\"automatic\":true,"
    "\"includedPaths\":[{\"path\":\"/*\"}],\"excludedPaths\":[{\"path\":\"/\\\"_etag\\\"/?\"},"
    "{\"path\":\"/PartitionKey/?\"},{\"path\":\"/RowKey/?\"},{\"path\":\"/\\\"$ticks\\\"/"
    "*\"}],\"compositeIndexes\":[["
    "{\"path\":\"/PartitionKey\",\"order\":\"ascending\"},"
    "{\"path\":\"/id\",\"order\":\"ascending\"}]]}}";

/* --- Showing --------------------------------------------------------------------------------- */

/* The members of a table; alone: with odata.metadata, for it is the whole answer. */
static void table_append(struct table_call *call, struct slice name, bool alone)
{
    struct buf *out = &call->body;
    struct slice root = table_call_root(call);

    BUF_APPEND(out, "{");
    if (call->level != TABLE_LEVEL_NONE && alone)
        buf_printf(out, "\"odata.metadata\":\"%.*s/$metadata#Tables/@Element\",", SLICE_ARG(root));
    if (call->level == TABLE_LEVEL_FULL)
        buf_printf(out,
                   "\"odata.type\":\"%.*s.Tables\",\"odata.id\":\"%.*s/Tables('%.*s')\","
                   "\"odata.editLink\":\"Tables('%.*s')\",",
                   SLICE_ARG(table_call_account(call)), SLICE_ARG(root), SLICE_ARG(name),
                   SLICE_ARG(name));
    BUF_APPEND(out, "\"TableName\":");
    document_json_write_string(name, out);
    BUF_APPEND(out, "}");
}

/* --- Making and dropping --------------------------------------------------------------------- */

static bool name_read(struct table_call *call, struct slice *ret_name, struct error *err)
{
    CLEANUP(buf_done) struct buf body;
    struct document_value name;

    buf_init(&body, BUF_DEFAULT_MAX);
    if (call->http->body.len == 0)
        return error_set(err, ERROR_BAD_REQUEST, "the request has no body");
    if (!document_json_read(call->http->body, NULL, &body, err))
        return false;
    if (!document_find(buf_slice(&body), SLICE("TableName"), &name) || name.type != DOCUMENT_STRING)
        return error_set(err, ERROR_TABLE_KEYS_MISSING, "TableName is missing or no text");
    *ret_name = arena_copy(call->arena, name.text);
    return table_name_check(*ret_name, err);
}

/* The database, made if need be, with no table of that name in any letter case. */
static bool database_prepare(struct table_call *call, struct slice name, struct error *err)
{
    CLEANUP(database_unref) struct database *database = NULL;
    struct catalogue *catalogue = call->services->catalogue;
    struct slice id = SLICE(FRONT_TABLE_DATABASE);

    if (!catalogue_database_open(catalogue, call->account.id, id, &database, err)) {
        if (err->code != ERROR_NOT_FOUND)
            return false;
        if (!catalogue_database_create(catalogue, call->account.id, id, NULL, &database, err) &&
            (err->code != ERROR_NAME_TAKEN ||
             !catalogue_database_open(catalogue, call->account.id, id, &database, err)))
            return false;
    }
    return !table_container_find(database, name) ||
           error_set(err, ERROR_TABLE_EXISTS, "table \"%.*s\" exists already", SLICE_ARG(name));
}

static bool container_make(struct table_call *call, struct slice name, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(buf_done) struct buf body;
    struct slice text = arena_printf(call->arena, definition_format, SLICE_ARG(name));
    const struct front_throughput asked = {
        .ru = table_call_header(call, SLICE("x-ms-offer-throughput")),
        .autoscale = table_call_header(call, SLICE("x-ms-cosmos-offer-autopilot-settings"))};
    struct offer_request request;

    buf_init(&body, BUF_DEFAULT_MAX);
    if (!front_throughput_read(&asked, &request, err) ||
        !document_json_read(text, NULL, &body, err) ||
        !catalogue_container_create(call->services->catalogue, call->account.id,
                                    SLICE(FRONT_TABLE_DATABASE), buf_slice(&body), &request,
                                    &container, err)) {
        if (err->code == ERROR_NAME_TAKEN)
            return error_set(err, ERROR_TABLE_EXISTS, "table \"%.*s\" exists already",
                             SLICE_ARG(name));
        return false;
    }
    return load_meters_apply(call->services->meters, container, call->services->burst_seconds, err);
}

bool table_tables_create(struct table_call *call, struct error *err)
{
    struct slice name, link;
    bool said, content = table_call_wants_content(call, &said);

    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    if (!name_read(call, &name, err) || !database_prepare(call, name, err) ||
        !container_make(call, name, err))
        return false;
    link = arena_printf(call->arena, "%.*s/Tables('%.*s')", SLICE_ARG(table_call_root(call)),
                        SLICE_ARG(name));
    table_answer_header(call, SLICE("Location"), link);
    if (said)
        table_answer_header(call, SLICE("Preference-Applied"),
                            content ? SLICE("return-content") : SLICE("return-no-content"));
    if (content)
        table_append(call, name, true);
    else
        table_answer_header(call, SLICE("DataServiceId"), link);
    call->status = content ? 201 : 204;
    return true;
}

/* Of a table itself what is missing is a resource. */
static bool one_open(struct table_call *call, struct table_space *ret_space, struct error *err)
{
    if (table_space_open(call, call->route.table, ret_space, err))
        return true;
    if (err->code == ERROR_TABLE_MISSING)
        return error_set(err, ERROR_NOT_FOUND, "there is no such table");
    return false;
}

bool table_tables_read(struct table_call *call, struct error *err)
{
    CLEANUP(table_space_close) struct table_space space = {0};

    call->charge_cru = cost_metadata(COST_METADATA_READ);
    if (!one_open(call, &space, err))
        return false;
    table_append(call, space.name, true);
    call->status = 200;
    return true;
}

bool table_tables_delete(struct table_call *call, struct error *err)
{
    CLEANUP(table_space_close) struct table_space space = {0};

    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    if (!one_open(call, &space, err) ||
        !catalogue_container_drop(call->services->catalogue, call->account.id,
                                  SLICE(FRONT_TABLE_DATABASE), space.name, SLICE_NONE, err))
        return false;
    call->status = 204;
    return true;
}

/* --- Listing --------------------------------------------------------------------------------- */

struct listing {
    struct table_call *call;
    const struct query_expression *filter; /* NULL: none */
    struct query_context context;
    struct query_slot slot;
    size_t top, rows;
};

static bool filter_prepare(struct listing *l, struct error *err)
{
    const struct table_filter_place place = {SLICE("PartitionKey"), SLICE("RowKey"), false};
    struct slice text = table_parameter(&l->call->parameters, SLICE("$filter"));
    struct query_build build = {.arena = l->call->arena};
    const struct table_filter *filter;

    if (slice_trim(text).len == 0)
        return true;
    if (!table_filter_parse(text, l->call->arena, &filter, err))
        return false;
    l->filter = table_filter_compile(filter, &place, &build);
    if (build.failed)
        *err = build.error;
    return !build.failed;
}

static bool table_wanted(struct listing *l, struct slice name, bool *ret_wanted, struct error *err)
{
    CLEANUP(buf_done) struct buf document;
    size_t begin;

    buf_init(&document, BUF_DEFAULT_MAX);
    *ret_wanted = true;
    if (!l->filter)
        return true;
    begin = document_begin(&document);
    document_append_string(&document, SLICE("TableName"), name);
    document_end(&document, begin);
    l->slot = (struct query_slot){
        .value = document_object(arena_copy(l->call->arena, buf_slice(&document)))};
    return query_holds(l->filter, &l->context, ret_wanted, err);
}

/* From the table on that the continuation names, in the order of names. */
static bool tables_append(struct listing *l, struct database *database, struct error *err)
{
    struct slice next = table_parameter(&l->call->parameters, SLICE("NextTableName"));

    for (size_t i = 0; i < database_container_count(database); i++) {
        const struct container *container = database_container(database, i);
        struct slice name = container_info(container)->id;
        bool wanted;

        if (!table_container_fits(container) || (next.data && slice_compare(name, next) < 0))
            continue;
        if (!table_wanted(l, name, &wanted, err))
            return false;
        if (!wanted)
            continue;
        if (l->rows == l->top) {
            table_answer_header(l->call, SLICE("x-ms-continuation-NextTableName"), name);
            return true;
        }
        if (l->rows++)
            buf_append_byte(&l->call->body, ',');
        table_append(l->call, name, false);
    }
    return true;
}

bool table_tables_list(struct table_call *call, struct error *err)
{
    CLEANUP(database_unref) struct database *database = NULL;
    struct listing l = {.call = call};
    struct error missing;
    bool fine = true;

    call->charge_cru = cost_metadata(COST_METADATA_LIST);
    if (!table_options_check(call, err) || !table_top_parse(call, &l.top, err) ||
        !filter_prepare(&l, err))
        return false;
    query_context_init(&l.context, call->arena, NULL, call->services->clock);
    l.context.slots = &l.slot;
    l.context.slot_count = 1;
    BUF_APPEND(&call->body, "{");
    if (call->level != TABLE_LEVEL_NONE)
        buf_printf(&call->body, "\"odata.metadata\":\"%.*s/$metadata#Tables\",",
                   SLICE_ARG(table_call_root(call)));
    BUF_APPEND(&call->body, "\"value\":[");
    if (l.top && catalogue_database_open(call->services->catalogue, call->account.id,
                                         SLICE(FRONT_TABLE_DATABASE), &database, &missing))
        fine = tables_append(&l, database, err);
    BUF_APPEND(&call->body, "]}");
    query_context_done(&l.context);
    call->status = 200;
    return fine;
}
