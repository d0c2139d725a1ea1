#include "front/rest/call.h"

#include "container/container_meters.h"
#include "document/json.h"
#include "front/rest/throughput.h"
#include "throughput/cost.h"

static void container_append(struct rest_call *call, const struct container *container)
{
    const struct catalogue_info *info = container_info(container);
    struct slice document = definition_fields(container_definition(container))->document;
    char database_rid[RID_TEXT_SIZE];
    struct slice database =
        rid_format(rid_of_database(container_database_number(container)), database_rid);

    document_json_write(document, &call->body);
    call->body.len--; /* the closing brace */
    rest_answer_system(call, info,
                       arena_printf(call->arena, "dbs/%.*s/colls/%.*s/", SLICE_ARG(database),
                                    SLICE_ARG(info->rid)));
    BUF_APPEND(&call->body, ",\"_docs\":\"docs/\",\"_sprocs\":\"sprocs/\",\"_triggers\":"
                            "\"triggers/\",\"_udfs\":\"udfs/\",\"_conflicts\":\"conflicts/\"}");
}

static void container_answer(struct rest_call *call, const struct container *container,
                             uint16_t status)
{
    container_append(call, container);
    rest_answer_etag(call, container_info(container)->etag);
    call->status = status;
}

/* Throughput follows what was bought. */
static bool container_apply(struct rest_call *call, const struct container *container,
                            struct error *err)
{
    return container_meters_apply(call->services->meters, container, call->services->burst_seconds,
                                  err);
}

bool rest_containers_list(struct rest_call *call, struct error *err)
{
    CLEANUP(database_unref) struct database *database = NULL;
    size_t count;

    call->charge_cru = cost_metadata(COST_METADATA_LIST);
    if (!catalogue_database_open(call->services->catalogue, call->account_id, call->route.database,
                                 &database, err))
        return false;
    count = database_container_count(database);
    BUF_APPEND(&call->body, "{\"_rid\":");
    document_json_write_string(database_info(database)->rid, &call->body);
    BUF_APPEND(&call->body, ",\"DocumentCollections\":[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_append_byte(&call->body, ',');
        container_append(call, database_container(database, i));
    }
    buf_printf(&call->body, "],\"_count\":%zu}", count);
    rest_answer_header_int(call, SLICE("x-ms-item-count"), (int64_t)count);
    call->status = 200;
    return true;
}

bool rest_containers_create(struct rest_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct offer_request request;
    struct slice body;

    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    if (!rest_call_body(call, &body, err) || !rest_throughput_request(call, &request, err) ||
        !catalogue_container_create(call->services->catalogue, call->account_id,
                                    call->route.database, body, &request, &container, err) ||
        !container_apply(call, container, err))
        return false;
    container_answer(call, container, 201);
    return true;
}

bool rest_containers_read(struct rest_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;

    call->charge_cru = cost_metadata(COST_METADATA_READ);
    if (!catalogue_container_open(call->services->catalogue, call->account_id, call->route.database,
                                  call->route.id, &container, err))
        return false;
    container_answer(call, container, 200);
    return true;
}

bool rest_containers_replace(struct rest_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct slice body;

    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    if (!rest_call_body(call, &body, err) ||
        !catalogue_container_replace(call->services->catalogue, call->account_id,
                                     call->route.database, call->route.id, body,
                                     rest_call_header(call, REST_HEADER_IF_MATCH), &container, err))
        return false;
    container_answer(call, container, 200);
    return true;
}

bool rest_containers_delete(struct rest_call *call, struct error *err)
{
    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    if (!catalogue_container_drop(call->services->catalogue, call->account_id, call->route.database,
                                  call->route.id, rest_call_header(call, REST_HEADER_IF_MATCH),
                                  err))
        return false;
    call->status = 204;
    return true;
}
