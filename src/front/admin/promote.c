/* A container of its own for a partition key value, and the way back: tried out, begun, looked at,
 * demoted, ended, forgotten. */
#include "front/admin/call.h"

#include "catalogue/container_usage.h"
#include "catalogue/promotion.h"
#include "document/bson.h"
#include "document/json.h"
#include "front/admin/migrations.h"
#include "load/offer_meters.h"

/* --- What is asked for ----------------------------------------------------------------------- */

struct asked {
    struct document_value key;  /* an array; undefined: not given */
    struct slice to;            /* data NULL: not given */
    struct offer_request offer; /* of a container that is to be made */
    bool dry_run;
};

static bool ru_take(const struct document_value *value, int64_t *ret_ru, struct error *err)
{
    return (document_to_int64(value, ret_ru) && *ret_ru > 0) ||
           error_set(err, ERROR_BAD_REQUEST, "throughput is a whole number of RU/s");
}

static bool member_take(const struct document_iter *iter, bool begins, struct asked *asked,
                        struct error *err)
{
    if (slice_equal(iter->key, SLICE("partitionKey")) && iter->value.type == DOCUMENT_ARRAY) {
        asked->key = iter->value;
        return true;
    }
    if (begins && slice_equal(iter->key, SLICE("to")) && iter->value.type == DOCUMENT_STRING) {
        asked->to = iter->value.text;
        return true;
    }
    if (begins && slice_equal(iter->key, SLICE("dryRun")) && iter->value.type == DOCUMENT_BOOL) {
        asked->dry_run = iter->value.boolean;
        return true;
    }
    if (begins && slice_equal(iter->key, SLICE("throughput"))) {
        asked->offer.given = true;
        return ru_take(&iter->value, &asked->offer.ru, err);
    }
    if (begins && slice_equal(iter->key, SLICE("maxThroughput"))) {
        asked->offer.autoscale_given = true;
        return ru_take(&iter->value, &asked->offer.autoscale_max, err);
    }
    return error_set(err, ERROR_BAD_REQUEST, "the body is %s; it has \"%.*s\"",
                     begins ? "{\"partitionKey\":[...],\"to\":CONTAINER,\"throughput\":RU or "
                              "\"maxThroughput\":RU,\"dryRun\":BOOL}"
                            : "{\"partitionKey\":[...]}",
                     (int)MIN(iter->key.len, (size_t)60), (const char *)iter->key.data);
}

static bool asked_read(struct admin_call *call, bool begins, struct asked *ret_asked,
                       struct error *err)
{
    struct document_iter iter;
    struct slice body;

    *ret_asked = (struct asked){.key = document_undefined()};
    if (!front_http_body(&call->over_http, &body, err))
        return false;
    document_iter_init(&iter, body);
    while (document_iter_next(&iter))
        if (!member_take(&iter, begins, ret_asked, err))
            return false;
    if (ret_asked->key.type == DOCUMENT_UNDEFINED)
        return error_set(err, ERROR_BAD_REQUEST, "the body has no member \"partitionKey\"");
    return !begins || ret_asked->to.len ||
           error_set(err, ERROR_BAD_REQUEST, "the body has no member \"to\"");
}

static bool key_read(struct admin_call *call, const struct container *container,
                     const struct asked *asked, struct partition_key *ret_key, struct error *err)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    document_json_write_value(&asked->key, &text);
    return partition_key_parse(&definition_fields(container_definition(container))->key,
                               arena_copy(call->arena, buf_slice(&text)), PARTITION_KEY_ANY,
                               call->arena, ret_key, err);
}

/* --- Shown ----------------------------------------------------------------------------------- */

static bool usage_append(struct admin_call *call, const struct container *home,
                         const struct promotion *promotion, struct error *err)
{
    size_t count;
    const struct partition_span *spans =
        partition_map_overlap(container_map(home), promotion->range, &count);
    struct container_usage sum = {0};

    if (promotion->state == PROMOTION_PREPARING)
        return true; /* it shares its partition with others */
    for (size_t i = 0; i < count; i++) {
        struct container_usage usage;

        if (!container_usage_partition(home, &spans[i], call->arena, &usage, err))
            return false;
        sum.bytes += usage.bytes;
        sum.items += usage.items;
    }
    if (promotion->state == PROMOTION_BACK && !promotion->grace)
        return true; /* it may have been merged with others */
    admin_number_append(&call->body, "items", sum.items);
    admin_number_append(&call->body, "bytes", sum.bytes);
    return true;
}

static bool promotion_show(struct admin_call *call, const struct container *container,
                           const struct promotion *promotion, struct error *err)
{
    CLEANUP(container_unref) struct container *other = NULL;
    const struct container *origin, *home;
    struct buf *out = &call->body;
    struct error ignored;
    struct slice obstacle;

    bool there = catalogue_promotion_other(call->services->catalogue, container, promotion, &other,
                                           &ignored);

    origin = promotion->origin == container_info(container)->number ? container : other;
    home = promotion_home(promotion) == container_info(container)->number ? container : other;
    BUF_APPEND(out, "{\"partitionKey\":");
    buf_append_slice(out, promotion->key);
    admin_text(out, "container", promotion->origin_id);
    admin_text(out, "to", promotion->own_id);
    admin_text(out, "state", slice_of_text(promotion_state_name(promotion->state)));
    buf_printf(out, ",\"grace\":%s", promotion_shares(promotion) ? "true" : "false");
    admin_number_append(out, "since", (uint64_t)(promotion->since_ms / 1000));
    if (!there)
        BUF_APPEND(out, ",\"dropped\":true");
    if (promotion->partition)
        admin_text(out, "partition", arena_printf(call->arena, "%u", promotion->partition));
    if (home && !usage_append(call, home, promotion, err))
        return false;
    obstacle = migrator_promotion_obstacle(call->services->migrator, promotion, call->arena);
    if (obstacle.len)
        admin_text(out, "waitsFor", obstacle);
    if (promotion->state == PROMOTION_PREPARING && origin && container_migration(origin)) {
        BUF_APPEND(out, ",\"migration\":");
        admin_migration_append(call, origin);
    }
    BUF_APPEND(out, "}");
    return true;
}

bool admin_promote_show(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    const struct promotion_list *promotions;

    if (!admin_migrator_need(call, err) || !admin_container_open(call, &container, err))
        return false;
    promotions = container_promotions(container);
    BUF_APPEND(&call->body, "{\"promotions\":[");
    for (size_t i = 0; i < promotions->count; i++) {
        if (i)
            BUF_APPEND(&call->body, ",");
        if (!promotion_show(call, container, promotions->list[i], err))
            return false;
    }
    BUF_APPEND(&call->body, "]}");
    call->status = 200;
    return true;
}

/* The promotion of this key as it is now. */
static bool answer(struct admin_call *call, const struct container *container,
                   const struct partition_key *key, uint16_t status, struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;
    struct partition_range range;
    const struct promotion *promotion;

    if (!catalogue_container_reopen(call->services->catalogue, container, &now, err))
        return false;
    range =
        partition_route_range(&definition_fields(container_definition(now))->key, key, call->arena);
    promotion = container_promotion(now, &range);
    call->status = promotion ? status : 204;
    return !promotion || promotion_show(call, now, promotion, err);
}

/* --- Promoting ------------------------------------------------------------------------------- */

/* The definition of the origin under another name. */
static struct slice body_like(struct admin_call *call, const struct container *origin,
                              struct slice id)
{
    CLEANUP(buf_done) struct buf body;
    struct document_iter iter;
    size_t begin;

    buf_init(&body, BUF_DEFAULT_MAX);
    begin = document_begin(&body);
    document_append_string(&body, SLICE("id"), id);
    document_iter_init(&iter, definition_fields(container_definition(origin))->document);
    while (document_iter_next(&iter))
        if (!slice_equal(iter.key, SLICE("id")))
            document_append(&body, iter.key, &iter.value);
    document_end(&body, begin);
    return arena_copy(call->arena, buf_slice(&body));
}

static bool throughput_check(const struct container *origin, const struct offer_request *offer,
                             struct error *err)
{
    int64_t ru = offer->autoscale_given ? offer->autoscale_max : offer->ru;

    if (!offer->given && !offer->autoscale_given)
        return true;
    return offer_partitions(container_limits(origin), (uint64_t)ru) == 1 ||
           error_set(err, ERROR_PROMOTION_UNFIT,
                     "%lld RU/s need more than one physical partition: promote the key with less, "
                     "and buy more when its grace period is over",
                     (long long)ru);
}

static struct slice account_of(const struct admin_call *call)
{
    struct slice account = admin_parameter(call, SLICE("account"));

    return account.data ? account : call->account.id;
}

/* *ret_own NULL: it is to be made. */
static bool own_find(struct admin_call *call, const struct asked *asked, struct container **ret_own,
                     struct error *err)
{

    *ret_own = NULL;
    if (catalogue_container_open(call->services->catalogue, account_of(call), call->names[0],
                                 asked->to, ret_own, err))
        return (!asked->offer.given && !asked->offer.autoscale_given) ||
               error_set(err, ERROR_BAD_REQUEST,
                         "container \"%.*s\" is there already, with throughput of its own",
                         (int)MIN(asked->to.len, (size_t)64), (const char *)asked->to.data);
    return err->code == ERROR_NOT_FOUND;
}

static bool own_make(struct admin_call *call, const struct container *origin,
                     const struct asked *asked, struct container **ret_own, struct error *err)
{

    return catalogue_container_create(call->services->catalogue, account_of(call), call->names[0],
                                      body_like(call, origin, asked->to), &asked->offer, ret_own,
                                      err) &&
           load_meters_apply(call->services->meters, *ret_own, call->services->burst_seconds, err);
}

static bool dry_run(struct admin_call *call, const struct container *origin,
                    const struct container *own, const struct partition_key *key, struct error *err)
{
    struct partition_range range = partition_route_range(
        &definition_fields(container_definition(origin))->key, key, call->arena);
    size_t count;
    const struct partition_span *span = partition_map_overlap(container_map(origin), range, &count);
    bool isolated =
        count == 1 && slice_equal(span->min, range.min) && slice_equal(span->max, range.max);
    struct container_usage usage, of_key;

    if (count != 1)
        return error_set(err, ERROR_PROMOTION_UNFIT,
                         "the key is in %zu physical partitions: merge them first", count);
    if (!container_usage_partition(origin, span, call->arena, &usage, err) ||
        !container_usage_range(origin, span, range, call->arena, &of_key, err))
        return false;
    buf_printf(&call->body, "{\"dryRun\":true,\"exists\":%s,\"isolated\":%s",
               own ? "true" : "false", isolated ? "true" : "false");
    admin_text(&call->body, "partition", arena_printf(call->arena, "%u", span->id));
    admin_number_append(&call->body, "items", usage.items);
    admin_number_append(&call->body, "bytes", usage.bytes);
    admin_number_append(&call->body, "keyItems", of_key.items);
    admin_number_append(&call->body, "keyBytes", of_key.bytes);
    admin_number_append(&call->body, "bytesToCopy", isolated ? 0 : usage.bytes);
    BUF_APPEND(&call->body, "}");
    call->status = 200;
    return true;
}

bool admin_promote_begin(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *origin = NULL;
    CLEANUP(container_unref) struct container *own = NULL;
    struct partition_key key;
    struct asked asked;

    if (!admin_migrator_need(call, err) || !admin_container_open(call, &origin, err) ||
        !asked_read(call, true, &asked, err) || !key_read(call, origin, &asked, &key, err) ||
        !throughput_check(origin, &asked.offer, err) || !own_find(call, &asked, &own, err))
        return false;
    if (!catalogue_promotion_check(call->services->catalogue, origin, own, &key, err))
        return admin_migration_refused(err);
    if (!admin_key_check(call, origin, &key, err))
        return false;
    if (asked.dry_run)
        return dry_run(call, origin, own, &key, err);
    if (!own && !own_make(call, origin, &asked, &own, err))
        return false;
    if (!migrator_promote(call->services->migrator, origin, own, &key, err))
        return admin_migration_refused(err);
    return answer(call, origin, &key, 202, err);
}

/* --- What follows ---------------------------------------------------------------------------- */

typedef bool tie_change(struct migrator *migrator, const struct container *tied,
                        const struct promotion *promotion, struct error *err);

static bool change(struct admin_call *call, tie_change *what, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct partition_range range;
    const struct promotion *promotion;
    struct partition_key key;
    struct asked asked;

    if (!admin_migrator_need(call, err) || !admin_container_open(call, &container, err) ||
        !asked_read(call, false, &asked, err) || !key_read(call, container, &asked, &key, err))
        return false;
    range = partition_route_range(&definition_fields(container_definition(container))->key, &key,
                                  call->arena);
    promotion = container_promotion(container, &range);
    if (!promotion)
        return error_set(err, ERROR_NOT_FOUND,
                         "that partition key of container \"%.*s\" is not promoted",
                         SLICE_ARG(container_info(container)->id));
    if (!what(call->services->migrator, container, promotion, err))
        return admin_migration_refused(err);
    return answer(call, container, &key, 200, err);
}

bool admin_promote_demote(struct admin_call *call, struct error *err)
{
    return change(call, migrator_demote, err);
}

bool admin_promote_end(struct admin_call *call, struct error *err)
{
    return change(call, migrator_promotion_end, err);
}

bool admin_promote_forget(struct admin_call *call, struct error *err)
{
    return change(call, migrator_promotion_forget, err);
}
