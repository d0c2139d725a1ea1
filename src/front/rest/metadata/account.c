#include "front/account.h"

#include "document/json.h"
#include "front/rest/call.h"

#include <inttypes.h>

/* What only looks finds an account that is empty. */
bool rest_account_is_made(const struct rest_call *call)
{
    switch (call->verb) {
    case REST_READ:
    case REST_LIST:
    case REST_CHANGES:
    case REST_QUERY:
    case REST_PLAN:
        return false;
    default:
        return !call->account.account && call->operation->access != REST_ACCESS_READ;
    }
}

bool rest_account_make(struct rest_call *call, struct error *err)
{
    return !rest_account_is_made(call) ||
           front_account_make(call->services, call->account.id, &call->account.account, err);
}

/* What the query engine takes; .NET and Java read it. */
static const char query_engine[] =
    "{\"maxSqlQueryInputLength\":524288,\"maxJoinsPerSqlQuery\":10,\"maxLogicalAndPerSqlQuery\":"
    "500,"
    "\"maxLogicalOrPerSqlQuery\":500,\"maxUdfRefPerSqlQuery\":10,\"maxInExpressionItemsCount\":"
    "16000,"
    "\"queryMaxInMemorySortDocumentCount\":500,\"maxQueryRequestTimeoutFraction\":0.9,"
    "\"sqlAllowNonFiniteNumbers\":false,\"sqlAllowAggregateFunctions\":true,\"sqlAllowSubQuery\":"
    "true,"
    "\"sqlAllowScalarSubQuery\":true,\"allowNewKeywords\":true,\"sqlAllowLike\":true,"
    "\"sqlAllowGroupByClause\":true,\"maxSpatialQueryCells\":12,\"spatialMaxGeometryPointCount\":"
    "256,"
    "\"sqlAllowTop\":true,\"enableSpatialIndexing\":true}";

static void location_append(struct buf *body, bool first, struct slice name, struct slice endpoint)
{
    buf_append_text(body, first ? "{\"name\":" : ",{\"name\":");
    document_json_write_string(name, body);
    BUF_APPEND(body, ",\"databaseAccountEndpoint\":");
    document_json_write_string(endpoint, body);
    BUF_APPEND(body, "}");
}

/* The server that is asked comes first, by the client's own words for it; then the others. */
static void locations_append(struct rest_call *call, const char *property, struct slice endpoint,
                             const struct front_location *others, size_t count)
{
    /* A balancer's name is none of them; and no two may be called the same. */
    struct slice name = count ? SLICE("Orrery entry") : SLICE("Orrery");

    for (size_t i = 0; i < count; i++)
        if (slice_equal(slice_of_text(others[i].endpoint), endpoint))
            name = slice_of_text(others[i].name);
    buf_printf(&call->body, ",\"%s\":[", property);
    location_append(&call->body, true, name, endpoint);
    for (size_t i = 0; i < count; i++)
        if (!slice_equal(slice_of_text(others[i].endpoint), endpoint))
            location_append(&call->body, false, slice_of_text(others[i].name),
                            slice_of_text(others[i].endpoint));
    BUF_APPEND(&call->body, "]");
}

/* As the client names the account in the path, if it does. */
static void prefix_add(struct front_location *location, struct slice prefix)
{
    size_t len = strlen(location->endpoint);

    while (len && location->endpoint[len - 1] == '/')
        len--;
    snprintf(location->endpoint + len, sizeof location->endpoint - len, "%.*s/", SLICE_ARG(prefix));
}

static const struct front_location *locations_find(struct rest_call *call, size_t *ret_count)
{
    const struct front_services *services = call->services;
    struct front_location *list;

    *ret_count = 0;
    if (!services->locations)
        return NULL;
    list = ARENA_ARRAY(call->arena, struct front_location, FRONT_LOCATIONS_MAX);
    *ret_count = services->locations(services->locations_context, list);
    for (size_t i = 0; i < *ret_count; i++)
        prefix_add(&list[i], call->route.prefix);
    return list;
}

bool rest_account_read(struct rest_call *call, struct error *err UNUSED)
{
    struct slice endpoint = front_gateway_endpoint(
        &call->over_gateway, rest_call_header(call, REST_HEADER_HOST), call->route.prefix);
    const struct front_consistency *consistency = &call->services->consistency;
    struct buf *body = &call->body;
    size_t count;
    const struct front_location *others = locations_find(call, &count);

    /* There are no media; old clients read how much of their room is used. */
    rest_answer_header_int(call, SLICE("x-ms-max-media-storage-usage-mb"), 0);
    rest_answer_header_int(call, SLICE("x-ms-media-storage-usage-mb"), 0);
    BUF_APPEND(body, "{\"_self\":\"\",\"id\":");
    document_json_write_string(call->account.id, body);
    BUF_APPEND(body, ",\"_rid\":");
    document_json_write_string(call->account.id, body);
    BUF_APPEND(body, ",\"media\":\"//media/\",\"addresses\":\"//addresses/\",\"_dbs\":\"//dbs/\"");
    locations_append(call, "writableLocations", endpoint, others, count);
    locations_append(call, "readableLocations", endpoint, others, count);
    /* Every server takes every write, and there is one order of them: no conflicts can arise. */
    buf_printf(body, ",\"enableMultipleWriteLocations\":%s", count > 1 ? "true" : "false");
    BUF_APPEND(
        body,
        ",\"continuousBackupEnabled\":false,"
        "\"enableNRegionSynchronousCommit\":false,\"enablePerPartitionFailoverBehavior\":false,"
        "\"disableCrossRegionalHedging\":false,"
        "\"userReplicationPolicy\":{\"asyncReplication\":false,\"minReplicaSetSize\":1,"
        "\"maxReplicasetSize\":4},\"userConsistencyPolicy\":{\"defaultConsistencyLevel\":\"");
    buf_append_text(body, item_level_name(consistency->level));
    if (consistency->level == ITEM_BOUNDED)
        buf_printf(body,
                   "\",\"maxStalenessPrefix\":%" PRIu64 ",\"maxIntervalInSeconds\":%" PRId64 "}",
                   consistency->staleness_operations, consistency->staleness_ms / 1000);
    else
        BUF_APPEND(body, "\"}");
    BUF_APPEND(body,
               ",\"systemReplicationPolicy\":{\"minReplicaSetSize\":1,\"maxReplicasetSize\":4},"
               "\"readPolicy\":{\"primaryReadCoefficient\":1,\"secondaryReadCoefficient\":1},"
               "\"queryEngineConfiguration\":");
    document_json_write_string(slice_of_text(query_engine), body);
    BUF_APPEND(body, "}");
    call->status = 200;
    return true;
}
