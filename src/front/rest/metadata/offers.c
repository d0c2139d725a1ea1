/* An offer is replaced whole: a client reads it, changes a number in its content and sends it back,
 * so what it did not change must be what it is. */
#include "catalogue/container_usage.h"
#include "document/bson.h"
#include "front/rest/metadata/metadata.h"
#include "load/offer_meters.h"
#include "throughput/cost.h"

/* --- Whose it is ----------------------------------------------------------------------------- */

static struct database *database_of(const struct account *account, const struct offer *offer)
{
    size_t count = account_database_count(account);

    for (size_t i = 0; i < count; i++)
        if (database_info(account_database(account, i))->number == offer->database)
            return account_database(account, i);
    return NULL;
}

/* Calls visit for the containers that live on the offer: the one it is for, or all that share it.
 */
static bool containers_visit(const struct account *account, const struct offer *offer,
                             bool (*visit)(struct container *container, void *context,
                                           struct error *err),
                             void *context, struct error *err)
{
    const struct database *database = database_of(account, offer);
    size_t count = database ? database_container_count(database) : 0;

    for (size_t i = 0; i < count; i++) {
        struct container *container = database_container(database, i);

        if (container_offer(container)->number == offer->number && !visit(container, context, err))
            return false;
    }
    return true;
}

static const struct container *container_of(const struct account *account,
                                            const struct offer *offer)
{
    const struct database *database = offer->shared ? NULL : database_of(account, offer);
    size_t count = database ? database_container_count(database) : 0;

    for (size_t i = 0; i < count; i++)
        if (container_info(database_container(database, i))->number == offer->container)
            return database_container(database, i);
    return NULL;
}

struct sum {
    struct rest_call *call;
    uint64_t bytes;
};

static bool bytes_visit(struct container *container, void *context, struct error *err)
{
    struct sum *sum = context;
    struct container_usage usage;

    if (!container_usage_all(container, sum->call->arena, &usage, err))
        return false;
    sum->bytes += usage.bytes;
    return true;
}

static bool bytes_of(struct rest_call *call, const struct offer *offer, uint64_t *ret_bytes,
                     struct error *err)
{
    struct sum sum = {.call = call};

    if (!containers_visit(call->account.account, offer, bytes_visit, &sum, err))
        return false;
    *ret_bytes = sum.bytes;
    return true;
}

/* --- As a document --------------------------------------------------------------------------- */

static void autoscale_append(struct buf *document, const struct offer *offer)
{
    size_t settings = document_append_object_begin(document, SLICE("offerAutopilotSettings"));

    document_append_int32(document, SLICE("tier"), 0);
    document_append_int32(document, SLICE("maximumTierThroughput"), 0);
    document_append_bool(document, SLICE("autoUpgrade"), false);
    document_append_int64(document, SLICE("maxThroughput"), (int64_t)offer->ru);
    if (offer->increment_given) {
        size_t policy = document_append_object_begin(document, SLICE("autoUpgradePolicy"));
        size_t throughput = document_append_object_begin(document, SLICE("throughputPolicy"));

        document_append_int64(document, SLICE("incrementPercent"), offer->increment_percent);
        document_end(document, throughput);
        document_end(document, policy);
    }
    document_end(document, settings);
}

static void content_append(struct rest_call *call, struct buf *document, const struct offer *offer)
{
    size_t content = document_append_object_begin(document, SLICE("content")), floor;

    document_append_int64(document, SLICE("offerThroughput"),
                          (int64_t)load_meters_now(call->services->meters, offer,
                                                   offer->kind == OFFER_AUTOSCALE
                                                       ? container_of(call->account.account, offer)
                                                       : NULL));
    document_append_bool(document, SLICE("offerIsRUPerMinuteThroughputEnabled"),
                         offer->ru_per_minute);
    if (offer->kind == OFFER_AUTOSCALE)
        autoscale_append(document, offer);
    floor = document_append_object_begin(document, SLICE("offerMinimumThroughputParameters"));
    document_append_int64(document, SLICE("maxThroughputEverProvisioned"),
                          (int64_t)offer->ru_max_ever);
    document_append_int64(document, SLICE("maxConsumedStorageEverInKB"),
                          (int64_t)(offer->bytes_max_ever / 1024));
    document_end(document, floor);
    document_append_int64(document, SLICE("offerLastReplaceTimestamp"), offer->ts_ms / 1000);
    document_end(document, content);
}

static void resource_append(struct rest_call *call, struct buf *document, const struct offer *offer)
{
    struct rid rid = offer->shared ? rid_of_database(offer->database)
                                   : rid_of_container(offer->database, offer->container);
    char text[RID_TEXT_SIZE];

    document_append_string(
        document, SLICE("resource"),
        offer->shared ? rest_metadata_database_self(call, offer->database)
                      : rest_metadata_container_self(call, offer->database, offer->container));
    document_append_string(document, SLICE("offerResourceId"), rid_format(rid, text));
}

static struct slice offer_document(struct rest_call *call, const struct offer *offer)
{
    CLEANUP(buf_done) struct buf document;
    size_t begin;

    buf_init(&document, BUF_DEFAULT_MAX);
    begin = document_begin(&document);
    document_append_string(&document, SLICE("offerVersion"),
                           offer->tier ? SLICE("V1") : SLICE("V2"));
    document_append_string(&document, SLICE("offerType"),
                           offer->tier ? arena_printf(call->arena, "S%u", offer->tier)
                                       : SLICE("Invalid"));
    resource_append(call, &document, offer);
    content_append(call, &document, offer);
    document_append_string(&document, SLICE("id"), slice_of_text(offer->rid));
    document_append_string(&document, SLICE("_rid"), slice_of_text(offer->rid));
    document_append_string(&document, SLICE("_self"),
                           arena_printf(call->arena, "offers/%s/", offer->rid));
    document_append_string(&document, SLICE("_etag"), slice_of_text(offer->etag));
    document_append_int64(&document, SLICE("_ts"), offer->ts_ms / 1000);
    document_end(&document, begin);
    return arena_copy(call->arena, buf_slice(&document));
}

/* Fewer partitions than it needs: the rest comes when they have split. */
static bool pending_visit(struct container *container, void *context, struct error *err UNUSED)
{
    uint32_t needed =
        offer_partitions_needed(container_limits(container), container_offer(container));
    size_t count;

    (void)partition_map_spans(container_map(container), &count);
    *(bool *)context |= !container_is_fixed(container) && count < needed;
    return true;
}

static bool offer_answer(struct rest_call *call, const struct account *account,
                         const struct offer *offer, uint64_t bytes, struct error *err)
{
    uint64_t minimum;
    bool pending = false;

    if (!catalogue_offer_minimum(call->services->catalogue, call->account.id,
                                 slice_of_text(offer->rid), bytes, &minimum, err))
        return false;
    if (!containers_visit(account, offer, pending_visit, &pending, err))
        return false;
    rest_answer_header(call, SLICE("x-ms-offer-replace-pending"),
                       pending ? SLICE("true") : SLICE("false"));
    rest_answer_header_int(call, SLICE("x-ms-cosmos-min-throughput"), (int64_t)minimum);
    rest_metadata_answer(call, 200, offer_document(call, offer), slice_of_text(offer->etag), 0);
    return true;
}

/* --- The feed -------------------------------------------------------------------------------- */

static uint64_t feed_number(const void *context, size_t index)
{
    return ((const struct offer *)context)[index].number;
}

static struct slice feed_document(struct rest_call *call, const void *context, size_t index)
{
    return offer_document(call, (const struct offer *)context + index);
}

static bool feed_open(struct rest_call *call, struct rest_feed *ret_feed, struct error *err)
{
    struct offer *offers = NULL;
    size_t count = 0;

    call->charge_cru = cost_metadata(COST_METADATA_LIST);
    if (call->account.account && !catalogue_offers(call->services->catalogue, call->account.id,
                                                   call->arena, &offers, &count, err))
        return false;
    *ret_feed = (struct rest_feed){
        .name = SLICE("Offers"),
        .owner = SLICE(""),
        .rid = rid_of_offer(0),
        .count = count,
        .context = offers,
        .number = feed_number,
        .document = feed_document,
    };
    return true;
}

bool rest_offers_list(struct rest_call *call, struct error *err)
{
    struct rest_feed feed;

    return feed_open(call, &feed, err) && rest_feed_list(call, &feed, err);
}

bool rest_offers_query(struct rest_call *call, struct error *err)
{
    struct rest_feed feed;

    return feed_open(call, &feed, err) && rest_feed_query(call, &feed, err);
}

bool rest_offers_read(struct rest_call *call, struct error *err)
{
    struct offer offer;
    uint64_t bytes;

    call->charge_cru = cost_metadata(COST_METADATA_READ);
    return catalogue_offer_read(call->services->catalogue, call->account.id, call->route.id, &offer,
                                err) &&
           bytes_of(call, &offer, &bytes, err) &&
           offer_answer(call, call->account.account, &offer, bytes, err);
}

/* --- Replacing ------------------------------------------------------------------------------- */

/* A property that says which offer it is must say this one. */
static bool identity_check(struct slice body, const char *name, struct slice expected, bool needed,
                           struct error *err)
{
    struct document_value value;

    if (!document_find(body, slice_of_text(name), &value)) {
        if (!needed)
            return true;
        return error_set(err, ERROR_BAD_REQUEST,
                         "One of the specified inputs is invalid: the offer has no %s", name);
    }
    if (value.type != DOCUMENT_STRING || !slice_equal(value.text, expected))
        return error_set(err, ERROR_BAD_REQUEST,
                         "One of the specified inputs is invalid: the %s of the offer cannot be "
                         "changed",
                         name);
    return true;
}

static bool identities_check(struct rest_call *call, struct slice body, const struct offer *offer,
                             struct error *err)
{
    struct slice rid = slice_of_text(offer->rid);
    struct slice resource =
        offer->shared ? rest_metadata_database_self(call, offer->database)
                      : rest_metadata_container_self(call, offer->database, offer->container);

    return identity_check(body, "id", rid, true, err) &&
           identity_check(body, "_rid", rid, false, err) &&
           identity_check(body, "resource", resource, false, err);
}

static bool whole(struct slice content, const char *name, bool *ret_given, int64_t *ret_number,
                  struct error *err)
{
    struct document_value value;

    *ret_given = document_find(content, slice_of_text(name), &value) && value.type != DOCUMENT_NULL;
    if (*ret_given && !document_to_int64(&value, ret_number))
        return error_set(err, ERROR_BAD_REQUEST, "%s of the offer is not a whole number", name);
    return true;
}

static bool autoscale_read(struct slice settings, struct offer_request *request, struct error *err)
{
    struct document_value policy, throughput;
    int64_t percent = 0;
    bool given;

    if (!whole(settings, "maxThroughput", &request->autoscale_given, &request->autoscale_max, err))
        return false;
    if (!request->autoscale_given)
        return error_set(err, ERROR_BAD_REQUEST, "offerAutopilotSettings has no maxThroughput");
    if (!document_find(settings, SLICE("autoUpgradePolicy"), &policy) ||
        policy.type != DOCUMENT_OBJECT ||
        !document_find(policy.document, SLICE("throughputPolicy"), &throughput) ||
        throughput.type != DOCUMENT_OBJECT)
        return true;
    if (!whole(throughput.document, "incrementPercent", &given, &percent, err))
        return false;
    if (percent < 0 || percent > 100)
        return error_set(err, ERROR_BAD_REQUEST, "incrementPercent must be 0 to 100");
    request->increment_given = given;
    request->increment_percent = (uint32_t)percent;
    return true;
}

static bool content_read(struct slice content, struct offer_request *request, struct error *err)
{
    struct document_value settings, minute;

    if (!whole(content, "offerThroughput", &request->given, &request->ru, err))
        return false;
    if (document_find(content, SLICE("offerIsRUPerMinuteThroughputEnabled"), &minute))
        request->ru_per_minute = minute.type == DOCUMENT_BOOL && minute.boolean;
    if (!document_find(content, SLICE("offerAutopilotSettings"), &settings) ||
        settings.type == DOCUMENT_NULL)
        return true;
    if (settings.type != DOCUMENT_OBJECT)
        return error_set(err, ERROR_BAD_REQUEST, "offerAutopilotSettings is not an object");
    return autoscale_read(settings.document, request, err);
}

/* Legacy offers are changed by their type, unless it is their number that differs. */
static void tier_read(struct slice body, const struct offer *offer, struct offer_request *request)
{
    bool other_ru = request->given && request->ru != (int64_t)offer->ru;
    struct document_value type, version;

    if (!document_find(body, SLICE("offerVersion"), &version) || version.type != DOCUMENT_STRING ||
        !slice_equal(version.text, SLICE("V1")))
        return;
    if (document_find(body, SLICE("offerType"), &type) && type.type == DOCUMENT_STRING &&
        type.text.len == 2 && type.text.data[0] == 'S' && type.text.data[1] >= '1' &&
        type.text.data[1] <= '3' && (!other_ru || type.text.data[1] - '0' != offer->tier)) {
        request->given = true;
        request->tier = (uint8_t)(type.text.data[1] - '0');
    }
}

/* A migration decides the numbers itself: -1 stands for that, and what the offer has already is
 * what it was read with. */
static bool migration_read(const struct rest_call *call, const struct offer *offer,
                           struct catalogue_offer_change *change, struct error *err)
{
    const struct offer_request *request = &change->request;
    bool up = rest_headers_true(&call->headers, REST_HEADER_OFFER_TO_AUTOPILOT);
    bool down = rest_headers_true(&call->headers, REST_HEADER_OFFER_TO_MANUAL);
    int64_t amount = request->autoscale_given ? request->autoscale_max : request->ru;

    if (up && down)
        return error_set(err, ERROR_BAD_REQUEST,
                         "an offer cannot migrate to autoscale and to manual throughput at once");
    if (!up && !down)
        return true;
    if (amount != -1 && amount != 0 && amount != (int64_t)offer->ru)
        return error_set(err, ERROR_BAD_REQUEST,
                         "a migration decides the throughput itself: name -1, and replace the "
                         "offer again for another");
    change->migration = up ? OFFER_TO_AUTOSCALE : OFFER_TO_MANUAL;
    return true;
}

static bool change_read(struct rest_call *call, const struct offer *offer,
                        struct catalogue_offer_change *change, struct error *err)
{
    struct document_value content;
    struct slice body;

    if (!rest_call_body(call, &body, err) || !identities_check(call, body, offer, err))
        return false;
    if (document_find(body, SLICE("content"), &content)) {
        if (content.type != DOCUMENT_OBJECT)
            return error_set(err, ERROR_BAD_REQUEST, "the content of the offer is not an object");
        if (!content_read(content.document, &change->request, err))
            return false;
    }
    tier_read(body, offer, &change->request);
    change->if_match = rest_call_header(call, REST_HEADER_IF_MATCH);
    return migration_read(call, offer, change, err) && bytes_of(call, offer, &change->bytes, err);
}

static bool apply_visit(struct container *container, void *context, struct error *err)
{
    struct rest_call *call = context;

    return load_meters_apply(call->services->meters, container, call->services->burst_seconds, err);
}

bool rest_offers_replace(struct rest_call *call, struct error *err)
{
    CLEANUP(account_unref) struct account *account = NULL;
    struct catalogue *catalogue = call->services->catalogue;
    struct catalogue_offer_change change = {0};
    struct offer offer;

    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    return catalogue_offer_read(catalogue, call->account.id, call->route.id, &offer, err) &&
           change_read(call, &offer, &change, err) &&
           catalogue_offer_replace(catalogue, call->account.id, call->route.id, &change, &offer,
                                   err) &&
           catalogue_account_open(catalogue, call->account.id, &account, err) &&
           containers_visit(account, &offer, apply_visit, call, err) &&
           offer_answer(call, account, &offer, change.bytes, err);
}
