/* Which account is meant: the one named by the first segment of the path, else by the first label
 * of the host where the rest of it is localhost or the suffix the server was given, else the
 * default account. An account without keys of its own is opened by those of the default account. */
#include "front/rest/call.h"

#include "document/json.h"

enum { NAME_CHARS_MAX = 63 };

bool rest_account_name_check(struct slice name, struct error *err)
{
    static const char *const taken[] = {"dbs",   "offers",   "addresses", "media",
                                        "ready", "topology", "metrics"};
    bool good = name.len > 0 && name.len <= NAME_CHARS_MAX;

    for (size_t i = 0; good && i < name.len; i++) {
        uint8_t c = name.data[i], small = c | 0x20;

        good = (small >= 'a' && small <= 'z') || (c >= '0' && c <= '9') ||
               (i > 0 && (c == '-' || c == '_' || c == '.'));
    }
    for (size_t i = 0; good && i < ARRAY_LEN(taken); i++)
        good = !slice_equal(name, slice_of_text(taken[i]));
    return good || error_set(err, ERROR_BAD_REQUEST,
                             "an account cannot be called \"%.*s\": its name is up to %d letters, "
                             "digits, '-', '_' and '.', begins with a letter or digit and is no "
                             "word of the API",
                             (int)MIN(name.len, (size_t)NAME_CHARS_MAX), (const char *)name.data,
                             NAME_CHARS_MAX);
}

/* Host names have no case; the account is the one in small letters. */
static struct slice host_label(const struct rest_call *call)
{
    struct slice host = rest_call_header(call, REST_HEADER_HOST), label, rest, port;
    struct slice suffix =
        slice_of_text(call->options->host_suffix ? call->options->host_suffix : "");

    if (!slice_split(host, '.', &label, &rest))
        return SLICE_NONE;
    (void)(slice_split(rest, ':', &rest, &port));
    if (slice_equal_nocase(rest, SLICE("localhost")) ||
        (suffix.len && slice_equal_nocase(rest, suffix)))
        return rest_lower(label, call->arena);
    return SLICE_NONE;
}

bool rest_account_find(struct rest_call *call, struct error *err)
{
    struct catalogue *catalogue = call->services->catalogue;
    struct slice id = call->route.account.data ? call->route.account : host_label(call);

    if (!id.data)
        id = slice_of_text(CATALOGUE_ACCOUNT_DEFAULT);
    call->account_id = arena_copy(call->arena, id);
    if (!catalogue_account_open(catalogue, id, &call->account, err)) {
        if (err->code != ERROR_NOT_FOUND)
            return false;
        if (!call->options->accounts_by_use)
            return error_set(err, ERROR_ACCOUNT_MISSING,
                             "account \"%.*s\" does not exist: create it with orrery account "
                             "create, or let accounts be made by use with account.by_use",
                             (int)MIN(id.len, (size_t)64), (const char *)id.data);
        if (!rest_account_name_check(id, err))
            return false;
    }
    call->keys = call->account ? account_keys(call->account) : NULL;
    if (call->keys)
        return true;
    if (!catalogue_account_open(catalogue, slice_of_text(CATALOGUE_ACCOUNT_DEFAULT),
                                &call->keys_account, err))
        return false;
    call->keys = account_keys(call->keys_account);
    return true;
}

bool rest_account_make(struct rest_call *call, struct error *err)
{
    struct catalogue *catalogue = call->services->catalogue;

    if (call->account)
        return true;
    if (catalogue_account_create(catalogue, call->account_id, SLICE_NONE, &call->account, err))
        return true;
    return err->code == ERROR_NAME_TAKEN &&
           catalogue_account_open(catalogue, call->account_id, &call->account, err);
}

static const char *consistency_name(enum rest_consistency consistency)
{
    static const char *const names[] = {"Strong", "BoundedStaleness", "Session", "ConsistentPrefix",
                                        "Eventual"};

    return names[consistency];
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

static void location_append(struct rest_call *call, const char *property, struct slice endpoint)
{
    buf_printf(&call->body, ",\"%s\":[{\"name\":\"Orrery\",\"databaseAccountEndpoint\":", property);
    document_json_write_string(endpoint, &call->body);
    BUF_APPEND(&call->body, "}]");
}

/* The client's own words for where we are: whatever it reached us by must lead here again. */
struct slice rest_call_endpoint(struct rest_call *call)
{
    struct slice host = rest_call_header(call, REST_HEADER_HOST);

    return arena_printf(call->arena, "%s://%.*s%.*s/", call->http->tls ? "https" : "http",
                        SLICE_ARG(host), SLICE_ARG(call->route.prefix));
}

bool rest_account_read(struct rest_call *call, struct error *err UNUSED)
{
    struct slice endpoint = rest_call_endpoint(call);
    struct buf *body = &call->body;

    /* There are no media; old clients read how much of their room is used. */
    rest_answer_header_int(call, SLICE("x-ms-max-media-storage-usage-mb"), 0);
    rest_answer_header_int(call, SLICE("x-ms-media-storage-usage-mb"), 0);
    BUF_APPEND(body, "{\"_self\":\"\",\"id\":");
    document_json_write_string(call->account_id, body);
    BUF_APPEND(body, ",\"_rid\":");
    document_json_write_string(call->account_id, body);
    BUF_APPEND(body, ",\"media\":\"//media/\",\"addresses\":\"//addresses/\",\"_dbs\":\"//dbs/\"");
    location_append(call, "writableLocations", endpoint);
    location_append(call, "readableLocations", endpoint);
    BUF_APPEND(
        body,
        ",\"enableMultipleWriteLocations\":false,\"continuousBackupEnabled\":false,"
        "\"enableNRegionSynchronousCommit\":false,\"enablePerPartitionFailoverBehavior\":false,"
        "\"disableCrossRegionalHedging\":false,"
        "\"userReplicationPolicy\":{\"asyncReplication\":false,\"minReplicaSetSize\":1,"
        "\"maxReplicasetSize\":4},\"userConsistencyPolicy\":{\"defaultConsistencyLevel\":\"");
    buf_append_text(body, consistency_name(call->options->consistency));
    if (call->options->consistency == REST_BOUNDED_STALENESS)
        BUF_APPEND(body, "\",\"maxStalenessPrefix\":10,\"maxIntervalInSeconds\":5}");
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
