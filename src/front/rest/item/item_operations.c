/* Operations on one item. Where the partition key comes from: the header, which must agree with
 * what the item says; without a header the item's own for a create or upsert. A synthetic one may
 * be open until the operation is done (item/claim.h). */
#include "front/rest/procedure/scripts.h"
#include "front/rest/query/patch.h"
#include "front/rest/target/items.h"
#include "front/rest/token.h"
#include "front/traffic.h"
#include "partition/synthetic.h"

/* By the path: an id, or in a path made of _rids the item's own, which says where it is. */
bool rest_item_target_of_path(struct rest_call *call, const struct rest_items *items,
                              struct rest_item_target *ret_target, struct error *err)
{
    struct rid rid;
    struct item item;
    bool given;

    if (!rest_items_key_either(call, items, &ret_target->key, &given, err))
        return false;
    ret_target->id = document_string(call->route.id);
    if (slice_equal(call->route.owner, container_info(items->container)->rid) &&
        rid_parse(call->route.id, &rid) && rid.kind == RID_ITEM &&
        rid.owner == container_rid(items->container).owner) {
        if (!call->may_block) {
            call->cold = true;
            return false;
        }
        return items_read_number(&items->space, rid.number, call->arena, &item, err) &&
               rest_item_names(items, item.key, call->arena, &ret_target->key, &ret_target->id,
                               err) &&
               rest_token_check_key(call, &items->space.definition->key, &ret_target->key, err);
    }
    return given || partition_key_unnamed(&items->space.definition->key, &ret_target->key) ||
           rest_items_key_missing(err);
}

static bool target_of_body(struct rest_call *call, const struct rest_items *items,
                           struct rest_item_target *ret_target, struct error *err)
{
    const struct partition_definition *definition = &items->space.definition->key;
    struct partition_key header;
    struct slice body;
    bool given;

    if (!rest_call_body(call, &body, err) ||
        !rest_item_clean(definition_names_of(items->space.definition), body, call->arena,
                         &ret_target->document, &ret_target->id, err) ||
        !rest_item_size_check(items, ret_target->document, err) ||
        !rest_items_key_either(call, items, &header, &given, err))
        return false;
    return partition_key_derive(definition, ret_target->document, given ? &header : NULL,
                                call->arena, &ret_target->key, err);
}

/* The key an operation was done with, where the request did not name it whole. */
static void target_settle(struct rest_item_target *target, const struct metered_call *metered)
{
    if (metered->key_found)
        target->key = metered->key;
}

static void item_answer(struct rest_call *call, const struct rest_items *items,
                        const struct partition_key *key, const struct item *item, uint64_t lsn,
                        uint16_t status)
{
    rest_items_headers(call, items, rest_items_partition(items, key, call->arena), lsn);
    rest_answer_etag(call, rest_item_etag(item, call->arena));
    rest_answer_header_int(call, SLICE("x-ms-item-lsn"), (int64_t)item->header.lsn);
    call->status = status;
}

/* err NULL: it was carried out. */
static void traffic_tell(const struct rest_call *call, const struct rest_items *items,
                         const struct rest_item_target *target, enum advise_operation_kind kind,
                         struct slice document, const struct error *err)
{
    front_traffic_item(call->services, items->container,
                       &(struct front_traffic_item){.kind = kind,
                                                    .key = &target->key,
                                                    .id = &target->id,
                                                    .document = document,
                                                    .cru = call->charge_cru,
                                                    .attempt = rest_items_attempt(call, err)});
}

/* --- Reading --------------------------------------------------------------------------------- */

/* Where the item was read from, as it was asked for. */
static void location_show(struct rest_call *call)
{
    struct buf *lines = &call->lines;

    BUF_APPEND(lines, "Content-Location: ");
    buf_append_text(lines, call->http->tls ? "https://" : "http://");
    buf_append_slice(lines, rest_call_header(call, REST_HEADER_HOST));
    buf_append_slice(lines, call->http->path);
    BUF_APPEND(lines, "\r\n");
}

bool rest_items_read(struct rest_call *call, struct error *err)
{
    CLEANUP(rest_items_close) struct rest_items items = {0};
    struct slice known = rest_call_etag(call, REST_HEADER_IF_NONE_MATCH);
    struct metered_call metered;
    struct rest_item_target target = {0};
    struct item item;
    char etag[ITEM_ETAG_LEN];
    bool found;

    if (!rest_items_open(call, &items, err) || !rest_items_metered(call, &metered, err) ||
        !rest_item_target_of_path(call, &items, &target, err))
        return false;
    if (call->may_block)
        found = metered_read(call->services->meters, &items.space, &target.key, &target.id,
                             &metered, call->arena, &item, err);
    else
        found = metered_read_cached(call->services->meters, &items.space, &target.key, &target.id,
                                    &metered, call->arena, &item, &call->cold, err);
    if (call->cold)
        return false;
    rest_items_charged(call, &metered);
    target_settle(&target, &metered);
    if (!found) {
        rest_item_refused(call, &items, &target, ADVISE_READ, err);
        return false;
    }
    traffic_tell(call, &items, &target, ADVISE_READ, item.document, NULL);
    location_show(call);
    item_etag(&item.header, etag);
    if (known.data && slice_equal(known, slice_of(etag, sizeof etag))) {
        item_answer(call, &items, &target.key, &item, item.header.lsn, 304);
        return true;
    }
    rest_item_append(&items, &item, 0, &call->body);
    item_answer(call, &items, &target.key, &item, item.header.lsn, 200);
    return true;
}

/* --- Writing --------------------------------------------------------------------------------- */

enum advise_operation_kind rest_item_kind(enum transaction_verb verb)
{
    static const enum advise_operation_kind kinds[] = {[TRANSACTION_CREATE] = ADVISE_CREATE,
                                                       [TRANSACTION_UPSERT] = ADVISE_UPSERT,
                                                       [TRANSACTION_REPLACE] = ADVISE_REPLACE,
                                                       [TRANSACTION_DELETE] = ADVISE_DELETE};

    return kinds[verb];
}

void rest_item_written(struct rest_call *call, const struct rest_items *items,
                       const struct rest_item_target *target, enum transaction_verb verb,
                       const struct transaction_result *result)
{
    traffic_tell(call, items, target, rest_item_kind(verb),
                 verb == TRANSACTION_DELETE ? SLICE_NONE : result->item.document, NULL);
    if (verb == TRANSACTION_DELETE) {
        rest_items_headers(call, items, rest_items_partition(items, &target->key, call->arena),
                           result->lsn);
        call->status = 204;
        return;
    }
    if (!rest_items_minimal(call))
        rest_item_append(items, &result->item, 0, &call->body);
    item_answer(call, items, &target->key, &result->item, result->lsn, result->created ? 201 : 200);
}

void rest_item_refused(struct rest_call *call, const struct rest_items *items,
                       const struct rest_item_target *target, enum advise_operation_kind kind,
                       const struct error *err)
{
    if (front_traffic_is_refusal(err))
        traffic_tell(call, items, target, kind, target->document, err);
    if (err->code == ERROR_ITEM_MISSING || err->code == ERROR_ITEM_EXISTS ||
        err->code == ERROR_UNIQUE_KEY || err->code == ERROR_PRECONDITION_FAILED ||
        err->code == ERROR_PATCH_CONDITION)
        rest_items_headers(call, items, rest_items_partition(items, &target->key, call->arena), 0);
}

/* Longer bodies take longer to read than a loop has time for. */
enum { INLINE_BODY_MAX = 64 * 1024 };

/* On a loop: is this one for a worker from the start? Otherwise the request is kept. */
static bool too_long_for_loop(struct rest_call *call)
{
    if (call->may_block)
        return false;
    call->cold = call->http->body.len > INLINE_BODY_MAX;
    if (!call->cold)
        rest_call_keep(call);
    return call->cold;
}

/* Writes and answers; takes items over. */
static bool item_write(struct rest_call *call, struct rest_items *items,
                       struct rest_item_target *target, enum transaction_verb verb,
                       struct error *err)
{
    struct transaction_result result;
    struct transaction_options options;
    struct metered_call metered;
    bool written;

    if (!call->may_block)
        return rest_item_start(call, items, target, verb, err);
    if (!rest_items_options(call, &options, err) || !rest_items_metered(call, &metered, err)) {
        rest_items_close(items);
        return false;
    }
    rest_item_target_options(target, &options);
    written = metered_write(call->services->meters, &items->space, &target->key, &target->id, verb,
                            target->document, &options, &metered, call->arena, &result, err);
    rest_items_charged(call, &metered);
    target_settle(target, &metered);
    if (written)
        rest_item_written(call, items, target, verb, &result);
    else
        rest_item_refused(call, items, target, rest_item_kind(verb), err);
    rest_items_close(items);
    return written;
}

static bool item_post(struct rest_call *call, enum transaction_verb verb, struct error *err)
{
    CLEANUP(rest_items_close) struct rest_items items = {0};
    struct rest_item_target target = {0};

    if (rest_triggers_named(call))
        return rest_triggers_write(call, err);
    if (too_long_for_loop(call) || !rest_items_open(call, &items, err) ||
        !target_of_body(call, &items, &target, err))
        return false;
    return item_write(call, &items, &target, verb, err);
}

bool rest_items_create(struct rest_call *call, struct error *err)
{
    return item_post(call, TRANSACTION_CREATE, err);
}

bool rest_items_upsert(struct rest_call *call, struct error *err)
{
    return item_post(call, TRANSACTION_UPSERT, err);
}

bool rest_items_replace(struct rest_call *call, struct error *err)
{
    CLEANUP(rest_items_close) struct rest_items items = {0};
    struct rest_item_target target = {0}, body = {0};

    if (rest_triggers_named(call))
        return rest_triggers_write(call, err);
    if (too_long_for_loop(call) || !rest_items_open(call, &items, err) ||
        !rest_item_target_of_path(call, &items, &target, err) ||
        !target_of_body(call, &items, &body, err))
        return false;
    if (!slice_equal(body.id.text, target.id.text)) {
        if (!rest_token_check_rename(call, err))
            return false;
        target.new_id = body.id;
    }
    target.document = body.document;
    if (target.key.open || target.key.former)
        target.key = body.key; /* known better: the item has what it is made of */
    return item_write(call, &items, &target, TRANSACTION_REPLACE, err);
}

/* JavaScript sends no content type with a patch, others one of two; none is looked at. */
bool rest_items_patch(struct rest_call *call, struct error *err)
{
    CLEANUP(rest_items_close) struct rest_items items = {0};
    struct transaction_options options;
    struct transaction_result result;
    struct rest_item_target target = {0};
    struct metered_call metered;
    struct document_value body;
    struct rest_patch patch;
    bool written;

    if (rest_triggers_named(call))
        return rest_triggers_write(call, err);
    if (!rest_items_open(call, &items, err) ||
        !rest_item_target_of_path(call, &items, &target, err) ||
        !rest_call_body_value(call, 0, &body, err) ||
        !rest_patch_parse(call, &items, &body, &patch, err) ||
        !rest_items_options(call, &options, err) || !rest_items_metered(call, &metered, err))
        return false;
    written =
        metered_change(call->services->meters, &items.space, &target.key, &target.id,
                       rest_patch_make, &patch, &options, &metered, call->arena, &result, err);
    rest_items_charged(call, &metered);
    target_settle(&target, &metered);
    if (written)
        rest_item_written(call, &items, &target, TRANSACTION_REPLACE, &result);
    else
        rest_item_refused(call, &items, &target, ADVISE_REPLACE, err);
    return written;
}

bool rest_items_delete(struct rest_call *call, struct error *err)
{
    CLEANUP(rest_items_close) struct rest_items items = {0};
    struct rest_item_target target = {0};

    if (rest_triggers_named(call))
        return rest_triggers_write(call, err);
    if (too_long_for_loop(call) || !rest_items_open(call, &items, err) ||
        !rest_item_target_of_path(call, &items, &target, err))
        return false;
    return item_write(call, &items, &target, TRANSACTION_DELETE, err);
}
