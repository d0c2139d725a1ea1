#include "front/rest/call.h"

#include "document/json.h"
#include "front/rest/throughput.h"
#include "throughput/cost.h"

static void database_append(struct rest_call *call, const struct database *database)
{
    const struct catalogue_info *info = database_info(database);

    BUF_APPEND(&call->body, "{\"id\":");
    document_json_write_string(info->id, &call->body);
    rest_answer_system(call, info, arena_printf(call->arena, "dbs/%.*s/", SLICE_ARG(info->rid)));
    BUF_APPEND(&call->body, ",\"_colls\":\"colls/\",\"_users\":\"users/\"}");
}

static void database_answer(struct rest_call *call, const struct database *database,
                            uint16_t status)
{
    database_append(call, database);
    rest_answer_etag(call, database_info(database)->etag);
    call->status = status;
}

bool rest_databases_list(struct rest_call *call, struct error *err UNUSED)
{
    size_t count = account_database_count(call->account);

    call->charge_cru = cost_metadata(COST_METADATA_LIST);
    BUF_APPEND(&call->body, "{\"_rid\":\"\",\"Databases\":[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_append_byte(&call->body, ',');
        database_append(call, account_database(call->account, i));
    }
    buf_printf(&call->body, "],\"_count\":%zu}", count);
    rest_answer_header_int(call, SLICE("x-ms-item-count"), (int64_t)count);
    call->status = 200;
    return true;
}

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
                         "one of the specified inputs is invalid: id is missing or not a text");
    if (!catalogue_database_create(call->services->catalogue, call->account_id, id.text, &request,
                                   &database, err))
        return false;
    database_answer(call, database, 201);
    return true;
}

bool rest_databases_read(struct rest_call *call, struct error *err)
{
    CLEANUP(database_unref) struct database *database = NULL;

    call->charge_cru = cost_metadata(COST_METADATA_READ);
    if (!catalogue_database_open(call->services->catalogue, call->account_id, call->route.id,
                                 &database, err))
        return false;
    database_answer(call, database, 200);
    return true;
}

bool rest_databases_delete(struct rest_call *call, struct error *err)
{
    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    if (!catalogue_database_drop(call->services->catalogue, call->account_id, call->route.id,
                                 rest_call_header(call, REST_HEADER_IF_MATCH), err))
        return false;
    call->status = 204;
    return true;
}
