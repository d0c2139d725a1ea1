#include "front/rest/call.h"

#include "document/json.h"

bool rest_call_body(struct rest_call *call, struct slice *ret_document, struct error *err)
{
    const struct document_limits limits = {.refuse_duplicates = true};
    CLEANUP(buf_done) struct buf document;

    buf_init(&document, BUF_DEFAULT_MAX);
    if (call->http->body.len == 0)
        return error_set(err, ERROR_BAD_REQUEST, "the request has no body");
    if (!document_json_read(call->http->body, &limits, &document, err))
        return false;
    *ret_document = arena_copy(call->arena, buf_slice(&document));
    return true;
}

bool rest_call_json(struct rest_call *call, struct slice text, uint32_t extra_depth,
                    struct document_value *ret_value, struct error *err)
{
    const struct document_limits limits = {.refuse_duplicates = true,
                                           .depth_max = DOCUMENT_DEPTH_DEFAULT + extra_depth};
    CLEANUP(buf_done) struct buf wrapped;
    struct document_value value;

    buf_init(&wrapped, BUF_DEFAULT_MAX);
    if (!document_json_read_value(text, &limits, &wrapped, &value, err))
        return false;
    (void)document_find(arena_copy(call->arena, buf_slice(&wrapped)), SLICE(""), ret_value);
    return true;
}

bool rest_call_body_value(struct rest_call *call, uint32_t extra_depth,
                          struct document_value *ret_value, struct error *err)
{
    if (call->http->body.len == 0)
        return error_set(err, ERROR_BAD_REQUEST, "the request has no body");
    return rest_call_json(call, call->http->body, extra_depth, ret_value, err);
}

struct slice rest_etag_bare(struct slice etag)
{
    if (etag.len >= 2 && etag.data[0] == '"' && etag.data[etag.len - 1] == '"')
        return slice_of(etag.data + 1, etag.len - 2);
    return etag;
}

struct slice rest_call_etag(const struct rest_call *call, enum rest_header header)
{
    return rest_etag_bare(rest_call_header(call, header));
}

bool rest_call_database(struct rest_call *call, struct database **ret_database, struct error *err)
{
    struct slice id = call->route.database;

    if (catalogue_database_open(call->services->catalogue, call->account_id, id, ret_database, err))
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

    if (!catalogue_container_open(call->services->catalogue, call->account_id, call->route.database,
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
    *ret_container = container;
    return true;
}
