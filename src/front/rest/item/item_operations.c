/* Operations on one item. Where the partition key comes from: the header, which must agree with
 * what the item says; without a header the item's own for a create or upsert. A synthetic one may
 * be open until the operation is done (item/claim.h). */
#include "front/item.h"
#include "front/rest/procedure/scripts.h"
#include "front/rest/query/patch.h"
#include "front/rest/target/items.h"
#include "front/rest/token.h"
#include "front/traffic.h"
#include "item/shown.h"
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
    ret_target->id =
        item_id_of_text(definition_names_of(items->space.definition), call->route.id, call->arena);
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
        !front_item_clean(definition_names_of(items->space.definition), body, call->arena,
                          &ret_target->document, &ret_target->id, err) ||
        !rest_item_size_check(items, ret_target->document, err) ||
        !rest_items_key_either(call, items, &header, &given, err))
        return false;
    return partition_key_derive(definition, ret_target->document, given ? &header : NULL,
                                call->arena, &ret_target->key, err);
}

static bool target_of_both(struct rest_call *call, const struct rest_items *items,
                           struct rest_item_target *ret_target, struct error *err)
{
    struct rest_item_target body = {0};

    if (!rest_item_target_of_path(call, items, ret_target, err) ||
        !target_of_body(call, items, &body, err))
        return false;
    if (!item_id_same(definition_names_of(items->space.definition), &body.id, &ret_target->id)) {
        if (!rest_token_check_rename(call, err))
            return false;
        ret_target->new_id = body.id;
    }
    ret_target->document = body.document;
    if (ret_target->key.open || ret_target->key.former)
        ret_target->key = body.key; /* known better: the item has what it is made of */
    return true;
}

typedef bool target_read(struct rest_call *call, const struct rest_items *items,
                         struct rest_item_target *ret_target, struct error *err);

/* What the call has been read as, or is now. */
static bool target_get(struct rest_call *call, const struct rest_items *items, target_read *read,
                       const struct rest_item_target **ret_target, struct error *err)
{
    uint32_t container = container_info(items->container)->number;
    uint64_t map_version = partition_map_version(items->space.map);
    struct rest_item_target *target;

    *ret_target = call->target;
    if (call->target && call->target->container == container &&
        call->target->map_version == map_version)
        return true;
    target = ARENA_NEW(call->arena, struct rest_item_target);
    if (!read(call, items, target, err))
        return false;
    target->container = container;
    target->map_version = map_version;
    *ret_target = target;
    if (call->kept)
        call->target = target;
    return true;
}

static void item_answer(struct rest_call *call, const struct rest_items *items,
                        const struct item_operation *op, uint64_t lsn, uint16_t status)
{
    const struct item *item = &op->result.item;

    rest_items_headers(call, items, op->route.span->id, lsn);
    rest_answer_etag(call, rest_item_etag(item, call->arena));
    rest_answer_header_int(call, SLICE("x-ms-item-lsn"), (int64_t)item->header.lsn);
    call->status = status;
}

/* err NULL: it was carried out. */
static void traffic_tell(const struct rest_call *call, const struct rest_items *items,
                         const struct item_operation *op, struct slice document,
                         const struct error *err)
{
    static const enum advise_operation_kind kinds[] = {
        [ITEM_READ] = ADVISE_READ,       [ITEM_CREATE] = ADVISE_CREATE,
        [ITEM_REPLACE] = ADVISE_REPLACE, [ITEM_UPSERT] = ADVISE_UPSERT,
        [ITEM_DELETE] = ADVISE_DELETE,   [ITEM_CHANGE] = ADVISE_REPLACE,
    };

    front_traffic_item(call->services, items->container,
                       &(struct front_traffic_item){.kind = kinds[op->verb],
                                                    .key = &op->key,
                                                    .id = &op->id,
                                                    .document = document,
                                                    .cru = call->charge_cru,
                                                    .attempt = rest_items_attempt(call, err)});
}

/* --- Reading --------------------------------------------------------------------------------- */

void rest_items_location(struct rest_call *call)
{
    struct buf *lines = &call->lines;

    BUF_APPEND(lines, "Content-Location: ");
    buf_append_text(lines, call->http->tls ? "https://" : "http://");
    buf_append_slice(lines, rest_call_header(call, REST_HEADER_HOST));
    buf_append_slice(lines, call->http->path);
    BUF_APPEND(lines, "\r\n");
}

/* False with call->cold: it is for a worker. */
static bool read_run(struct rest_call *call, struct item_operation *op, struct error *err)
{
    enum item_start start;

    if (call->may_block)
        return item_operation_run(op, err);
    start = item_operation_start(op, err);
    call->cold = start == ITEM_START_COLD;
    return start == ITEM_START_ENDED;
}

bool rest_items_read(struct rest_call *call, struct error *err)
{
    CLEANUP(rest_items_close) struct rest_items items = {0};
    struct slice known = rest_call_etag(call, REST_HEADER_IF_NONE_MATCH);
    struct item_operation op = {.space = &items.space,
                                .meters = call->services->meters,
                                .arena = call->arena,
                                .verb = ITEM_READ};
    struct rest_item_target target = {0};
    char etag[ITEM_ETAG_LEN];
    bool found;

    if (!rest_items_open(call, &items, err))
        return false;
    rest_items_look(call, &items);
    if (!rest_items_metered(call, &op.metered, err) ||
        !rest_item_target_of_path(call, &items, &target, err))
        return false;
    op.key = target.key;
    op.id = target.id;
    found = read_run(call, &op, err);
    if (call->cold)
        return false;
    rest_items_charged(call, &op.metered);
    if (op.route.span)
        rest_items_served(call, &items, op.route.span, 1);
    if (!found) {
        rest_item_refused(call, &items, &op, err);
        return false;
    }
    traffic_tell(call, &items, &op, op.result.item.document, NULL);
    rest_items_location(call);
    item_etag(&op.result.item.header, etag);
    if (known.data && slice_equal(known, slice_of(etag, sizeof etag))) {
        item_answer(call, &items, &op, op.result.item.header.lsn, 304);
        return true;
    }
    rest_item_append(&items, &op.result.item, 0, &call->body);
    item_answer(call, &items, &op, op.result.item.header.lsn, 200);
    return true;
}

/* --- Writing --------------------------------------------------------------------------------- */

void rest_item_written(struct rest_call *call, const struct rest_items *items,
                       const struct item_operation *op)
{
    const struct transaction_result *result = &op->result;

    traffic_tell(call, items, op, op->verb == ITEM_DELETE ? SLICE_NONE : result->item.document,
                 NULL);
    if (op->verb == ITEM_DELETE) {
        rest_items_headers(call, items, op->route.span->id, result->lsn);
        call->status = 204;
        return;
    }
    if (!rest_items_minimal(call))
        rest_item_append(items, &result->item, 0, &call->body);
    item_answer(call, items, op, result->lsn, result->created ? 201 : 200);
}

void rest_item_refused(struct rest_call *call, const struct rest_items *items,
                       const struct item_operation *op, const struct error *err)
{
    if (front_traffic_is_refusal(err))
        traffic_tell(call, items, op, op->document, err);
    if (err->code == ERROR_ITEM_MISSING || err->code == ERROR_ITEM_EXISTS ||
        err->code == ERROR_UNIQUE_KEY || err->code == ERROR_PRECONDITION_FAILED ||
        err->code == ERROR_PATCH_CONDITION)
        rest_items_headers(call, items, op->route.span->id, 0);
}

static bool item_write(struct rest_call *call, target_read *read, enum item_verb verb,
                       struct error *err)
{
    CLEANUP(rest_items_close) struct rest_items items = {0};
    const struct rest_item_target *target;

    if (rest_triggers_named(call))
        return rest_triggers_write(call, err);
    if (front_http_is_long(&call->over_http) || !rest_items_open(call, &items, err) ||
        !target_get(call, &items, read, &target, err))
        return false;
    return rest_item_write(call, &items, target, verb, err);
}

bool rest_items_create(struct rest_call *call, struct error *err)
{
    return item_write(call, target_of_body, ITEM_CREATE, err);
}

bool rest_items_upsert(struct rest_call *call, struct error *err)
{
    return item_write(call, target_of_body, ITEM_UPSERT, err);
}

bool rest_items_replace(struct rest_call *call, struct error *err)
{
    return item_write(call, target_of_both, ITEM_REPLACE, err);
}

bool rest_items_delete(struct rest_call *call, struct error *err)
{
    return item_write(call, rest_item_target_of_path, ITEM_DELETE, err);
}

/* JavaScript sends no content type with a patch, others one of two; none is looked at. */
bool rest_items_patch(struct rest_call *call, struct error *err)
{
    CLEANUP(rest_items_close) struct rest_items items = {0};
    struct rest_item_target target = {0};
    struct document_value body;
    struct rest_patch patch;

    if (rest_triggers_named(call))
        return rest_triggers_write(call, err);
    if (!rest_items_open(call, &items, err) ||
        !rest_item_target_of_path(call, &items, &target, err) ||
        !rest_call_body_value(call, 0, &body, err) ||
        !rest_patch_parse(call, &items, &body, &patch, err))
        return false;
    target.patch = &patch;
    return rest_item_write(call, &items, &target, ITEM_CHANGE, err);
}
