#include "document/bson.h"
#include "front/rest/metadata/metadata.h"
#include "front/rest/metadata/throughput.h"
#include "throughput/cost.h"

static struct slice database_document(struct rest_call *call, const struct database *database)
{
    const struct catalogue_info *info = database_info(database);
    CLEANUP(buf_done) struct buf document;
    size_t begin;

    buf_init(&document, BUF_DEFAULT_MAX);
    begin = document_begin(&document);
    document_append_string(&document, SLICE("id"), info->id);
    rest_metadata_system(&document, info, rest_metadata_database_self(call, info->number));
    document_append_string(&document, SLICE("_colls"), SLICE("colls/"));
    document_append_string(&document, SLICE("_users"), SLICE("users/"));
    document_end(&document, begin);
    return arena_copy(call->arena, buf_slice(&document));
}

static void database_answer(struct rest_call *call, const struct database *database,
                            uint16_t status)
{
    rest_metadata_owner(call, database, NULL);
    rest_metadata_answer(call, status, database_document(call, database),
                         database_info(database)->etag, database_info(database)->lsn);
}

/* --- The feed -------------------------------------------------------------------------------- */

static uint64_t feed_number(const void *context, size_t index)
{
    return database_info(account_database(context, index))->number;
}

static struct slice feed_document(struct rest_call *call, const void *context, size_t index)
{
    return database_document(call, account_database(context, index));
}

static struct rest_feed feed_of(const struct rest_call *call)
{
    return (struct rest_feed){
        .name = SLICE("Databases"),
        .owner = SLICE(""),
        .rid = rid_of_database(0),
        .count = call->account.account ? account_database_count(call->account.account) : 0,
        .context = call->account.account,
        .number = feed_number,
        .document = feed_document,
    };
}

bool rest_databases_list(struct rest_call *call, struct error *err)
{
    struct rest_feed feed = feed_of(call);

    call->charge_cru = cost_metadata(COST_METADATA_LIST);
    return rest_feed_list(call, &feed, err);
}

bool rest_databases_query(struct rest_call *call, struct error *err)
{
    struct rest_feed feed = feed_of(call);

    call->charge_cru = cost_metadata(COST_METADATA_LIST);
    return rest_feed_query(call, &feed, err);
}

/* --- One of them ----------------------------------------------------------------------------- */

bool rest_databases_create(struct rest_call *call, struct error *err)
{
    CLEANUP(database_unref) struct database *database = NULL;
    struct offer_request request;
    struct document_value id;
    struct slice body;

    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    if (!rest_call_body(call, &body, err) || !rest_throughput_request(call, &request, err))
        return false;
    if (!document_find(body, SLICE("id"), &id) || id.type != DOCUMENT_STRING)
        return error_set(err, ERROR_BAD_REQUEST,
                         "One of the specified inputs is invalid: the database has no id");
    if (!catalogue_database_create(call->services->catalogue, call->account.id, id.text, &request,
                                   &database, err))
        return false;
    database_answer(call, database, 201);
    return true;
}

bool rest_databases_read(struct rest_call *call, struct error *err)
{
    CLEANUP(database_unref) struct database *database = NULL;

    call->charge_cru = cost_metadata(COST_METADATA_READ);
    if (!call->account.account) /* it is made by use, and not by looking */
        return error_set(err, ERROR_NOT_FOUND, "database \"%.*s\" does not exist",
                         (int)MIN(call->route.id.len, (size_t)64),
                         (const char *)call->route.id.data);
    if (!catalogue_database_open(call->services->catalogue, call->account.id, call->route.id,
                                 &database, err))
        return false;
    database_answer(call, database, 200);
    return true;
}

bool rest_databases_delete(struct rest_call *call, struct error *err)
{
    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    if (!catalogue_database_drop(call->services->catalogue, call->account.id, call->route.id,
                                 rest_call_header(call, REST_HEADER_IF_MATCH), err))
        return false;
    call->status = 204;
    return true;
}
