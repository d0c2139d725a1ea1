#include "front/rest/call.h"

#include "maintain/pauses.h"

struct slice rest_call_etag(const struct rest_call *call, enum rest_header header)
{
    return front_http_etag_bare(rest_call_header(call, header));
}

bool rest_call_database(struct rest_call *call, struct database **ret_database, struct error *err)
{
    struct slice id = call->route.database;

    if (catalogue_database_open(call->services->catalogue, call->account.id, id, ret_database, err))
        return true;
    if (err->code == ERROR_NOT_FOUND)
        return error_set(err, ERROR_OWNER_NOT_FOUND, "database \"%.*s\" does not exist",
                         (int)MIN(id.len, (size_t)64), (const char *)id.data);
    return false;
}

bool rest_call_container(struct rest_call *call, struct container **ret_container,
                         struct error *err)
{
    struct slice intended = rest_call_header(call, REST_HEADER_INTENDED_CONTAINER);
    struct container *container;

    if (!catalogue_container_open(call->services->catalogue, call->account.id, call->route.database,
                                  call->route.owner, &container, err)) {
        if (err->code == ERROR_NOT_FOUND)
            return error_set(err, ERROR_OWNER_NOT_FOUND, "container \"%.*s\" does not exist",
                             (int)MIN(call->route.owner.len, (size_t)64),
                             (const char *)call->route.owner.data);
        return false;
    }
    if (call->identity.container && call->identity.container != container_info(container)->number) {
        container_unref(container);
        return error_set(err, ERROR_FORBIDDEN,
                         "the container was made anew since the resource token was looked at");
    }
    if (intended.data && !slice_equal(intended, container_info(container)->rid)) {
        container_unref(container);
        return error_set(err, ERROR_CONTAINER_OTHER,
                         "the container was made anew since the client looked it up");
    }
    front_call_observe(&call->front, container);
    if (!pauses_check(call->services->pauses, container,
                      observed_operation_changes(call->observed.operation), &call->wait_ms, err)) {
        container_unref(container);
        return false;
    }
    *ret_container = container;
    return true;
}
