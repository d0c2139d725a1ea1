/* A container without a partition key can be made by clients of before 2018-12-31 alone. They do
 * not know the key the service shows for it, and are not shown it. */
#include "catalogue/caretaker.h"
#include "catalogue/withheld.h"
#include "definition/strategy.h"
#include "document/bson.h"
#include "front/rest/metadata/container_figures.h"
#include "front/rest/metadata/metadata.h"
#include "front/rest/metadata/throughput.h"
#include "front/rest/query/query.h"
#include "front/rest/views/views.h"
#include "load/offer_meters.h"
#include "throughput/cost.h"

/* --- As a document --------------------------------------------------------------------------- */

static bool client_is_keyless(const struct rest_call *call)
{
    return rest_call_version_before(call, SLICE("2018-12-31"));
}

static void properties_append(struct rest_call *call, const struct container *container,
                              struct buf *document)
{
    const struct definition_fields *fields = definition_fields(container_definition(container));
    bool keyless = fields->key.system_key && client_is_keyless(call);
    struct document_iter iter;

    document_iter_init(&iter, fields->document);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("orrery")))
            definition_orrery_show(iter.value.document, document);
        else if (!keyless || !slice_equal(iter.key, SLICE("partitionKey")))
            buf_append(document, iter.element, (size_t)(iter.at - iter.element));
    }
}

static bool document_make(struct rest_call *call, const struct container *container,
                          bool statistics, struct slice *ret_document, struct error *err)
{
    const struct catalogue_info *info = container_info(container);
    CLEANUP(buf_done) struct buf document;
    size_t begin;

    buf_init(&document, BUF_DEFAULT_MAX);
    begin = document_begin(&document);
    properties_append(call, container, &document);
    rest_metadata_system(
        &document, info,
        rest_metadata_container_self(call, container_database_number(container), info->number));
    document_append_string(&document, SLICE("_docs"), SLICE("docs/"));
    document_append_string(&document, SLICE("_sprocs"), SLICE("sprocs/"));
    document_append_string(&document, SLICE("_triggers"), SLICE("triggers/"));
    document_append_string(&document, SLICE("_udfs"), SLICE("udfs/"));
    document_append_string(&document, SLICE("_conflicts"), SLICE("conflicts/"));
    if (statistics && !rest_container_statistics(call, container, &document, err))
        return false;
    document_end(&document, begin);
    *ret_document = arena_copy(call->arena, buf_slice(&document));
    return true;
}

static bool container_answer(struct rest_call *call, const struct database *database,
                             const struct container *container, uint16_t status, struct error *err)
{
    bool statistics = rest_headers_true(&call->headers, REST_HEADER_POPULATE_STATISTICS);
    struct slice document;

    if (!document_make(call, container, statistics && status == 200, &document, err))
        return false;
    rest_metadata_owner(call, database, NULL);
    rest_metadata_answer(call, status, document, container_info(container)->etag,
                         container_info(container)->lsn);
    return true;
}

/* --- The feed -------------------------------------------------------------------------------- */

/* The containers of a database that are there for everybody. */
struct listed {
    const struct container **list;
    size_t count;
};

static struct listed listed_of(struct rest_call *call, const struct database *database)
{
    struct listed listed = {.list = ARENA_ARRAY(call->arena, const struct container *,
                                                database_container_count(database) + 1)};

    for (size_t i = 0; i < database_container_count(database); i++) {
        const struct container *container = database_container(database, i);
        const struct catalogue_name name = {call->account.id, database_info(database)->id,
                                            container_info(container)->id};

        if (!catalogue_is_withheld(call->services->catalogue, &name))
            listed.list[listed.count++] = container;
    }
    return listed;
}

static uint64_t feed_number(const void *context, size_t index)
{
    const struct listed *listed = context;

    return container_info(listed->list[index])->number;
}

static struct slice feed_document(struct rest_call *call, const void *context, size_t index)
{
    const struct listed *listed = context;
    struct slice document = SLICE_NONE;
    struct error unused;

    if (!document_make(call, listed->list[index], false, &document, &unused))
        assert(!"without statistics nothing is read");
    return document;
}

static bool feed_answer(struct rest_call *call,
                        bool (*answer)(struct rest_call *call, const struct rest_feed *feed,
                                       struct error *err),
                        struct error *err)
{
    CLEANUP(database_unref) struct database *database = NULL;
    struct listed listed;
    struct rest_feed feed = {
        .name = SLICE("DocumentCollections"), .number = feed_number, .document = feed_document};

    call->charge_cru = cost_metadata(COST_METADATA_LIST);
    if (!rest_call_database(call, &database, err))
        return false;
    feed.owner = database_info(database)->rid;
    feed.rid = rid_of_container(database_info(database)->number, 0);
    listed = listed_of(call, database);
    feed.count = listed.count;
    feed.context = &listed;
    rest_metadata_owner(call, database, NULL);
    return answer(call, &feed, err);
}

bool rest_containers_list(struct rest_call *call, struct error *err)
{
    return feed_answer(call, rest_feed_list, err);
}

bool rest_containers_query(struct rest_call *call, struct error *err)
{
    return feed_answer(call, rest_feed_query, err);
}

/* --- One of them ----------------------------------------------------------------------------- */

static bool key_check(const struct rest_call *call, struct slice body, struct error *err)
{
    struct document_value key;

    if ((document_find(body, SLICE("partitionKey"), &key) && key.type != DOCUMENT_NULL) ||
        client_is_keyless(call))
        return true;
    return error_set(err, ERROR_PARTITION_KEY_NEEDED,
                     "a container needs a partition key definition, such as {\"paths\":[\"/id\"]}");
}

static bool views_wake(struct rest_call *call)
{
    if (call->services->views)
        rest_views_wake(call->services->views);
    return true;
}

bool rest_containers_create(struct rest_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    struct offer_request request;
    struct slice body;

    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    return rest_call_body(call, &body, err) && rest_throughput_request(call, &request, err) &&
           key_check(call, body, err) && rest_query_computed_check(call, body, err) &&
           rest_views_check(body, err) && rest_call_database(call, &database, err) &&
           catalogue_container_create(call->services->catalogue, call->account.id,
                                      call->route.database, body, &request, &container, err) &&
           load_meters_apply(call->services->meters, container, call->services->burst_seconds,
                             err) &&
           views_wake(call) && container_answer(call, database, container, 201, err);
}

/* How far the index is; of a lazy one, which is kept like any other, in a header more. */
static void progress_answer(struct rest_call *call, struct container *container)
{
    struct caretaker *caretaker = call->services->caretaker;
    unsigned progress = caretaker ? caretaker_progress(caretaker, container) : 100;
    struct document_value policy, mode;

    rest_answer_header_int(call, SLICE("x-ms-documentdb-collection-index-transformation-progress"),
                           progress);
    if (document_find(definition_fields(container_definition(container))->document,
                      SLICE("indexingPolicy"), &policy) &&
        document_find(policy.document, SLICE("indexingMode"), &mode) &&
        slice_equal(mode.text, SLICE("lazy")))
        rest_answer_header_int(call, SLICE("x-ms-documentdb-collection-lazy-indexing-progress"),
                               progress);
}

bool rest_containers_read(struct rest_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(database_unref) struct database *database = NULL;

    call->charge_cru = cost_metadata(COST_METADATA_READ);
    if (!rest_call_database(call, &database, err) ||
        !catalogue_container_open(call->services->catalogue, call->account.id, call->route.database,
                                  call->route.id, &container, err))
        return false;
    if (rest_headers_true(&call->headers, REST_HEADER_POPULATE_QUOTA) &&
        !rest_container_quota(call, container, err))
        return false;
    progress_answer(call, container);
    return container_answer(call, database, container, 200, err);
}

/* A view may get another query. */
static bool view_check(struct rest_call *call, struct slice body, struct error *err)
{
    CLEANUP(container_unref) struct container *before = NULL;

    return catalogue_container_open(call->services->catalogue, call->account.id,
                                    call->route.database, call->route.id, &before, err) &&
           rest_views_replace_check(before, body, err);
}

bool rest_containers_replace(struct rest_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    struct slice body;

    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    return rest_call_body(call, &body, err) && rest_query_computed_check(call, body, err) &&
           rest_call_database(call, &database, err) && view_check(call, body, err) &&
           catalogue_container_replace(
               call->services->catalogue, call->account.id, call->route.database, call->route.id,
               body, rest_call_header(call, REST_HEADER_IF_MATCH), &container, err) &&
           load_meters_apply(call->services->meters, container, call->services->burst_seconds,
                             err) &&
           views_wake(call) && container_answer(call, database, container, 200, err);
}

bool rest_containers_delete(struct rest_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;

    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    if (!catalogue_container_open(call->services->catalogue, call->account.id, call->route.database,
                                  call->route.id, &container, err) ||
        !catalogue_container_drop(call->services->catalogue, call->account.id, call->route.database,
                                  call->route.id, rest_call_header(call, REST_HEADER_IF_MATCH),
                                  err))
        return false;
    if (call->services->traffic) /* what was asked of it goes with it */
        traffic_forget(call->services->traffic, container_rid(container).owner);
    call->status = 204;
    return views_wake(call);
}
