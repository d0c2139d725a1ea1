/* Reads of single items by a server that does not own the nodes (rest.h, rest_follow).
 *
 * It says yes, and nothing else: an item that it has read by a map, a definition and keys that are
 * the present ones, in a snapshot that proves it. Whatever else there is to say, that an item is
 * missing, a signature wrong or the throughput used up, the owner says. So what is not handled here
 * is not refused here, and a follower that knows too little is never wrong, only slower. */
#include "front/rest/target/items.h"
#include "item/shown.h"

static bool unproved(struct error *err, const char *why)
{
    return error_set(err, ERROR_UNPROVED, "%s", why);
}

/* A client that sends no token may have written all the same: it is not known what it has to
 * see. */
static bool level_check(const struct rest_items *items, struct error *err)
{
    return (items->level > ITEM_SESSION || (items->level == ITEM_SESSION && items->token_count)) ||
           unproved(err, "the level is the owner's to serve");
}

/* Views tell how far they are behind, and keys with throughput of their own are for their budget to
 * judge. */
static bool container_check(const struct rest_call *call, const struct rest_items *items,
                            struct error *err)
{
    const struct definition_fields *definition = items->space.definition;

    if (definition->view.form != DEFINITION_VIEW_NONE)
        return unproved(err, "it is a view");
    if (definition_throughput_is_said(&definition->throughput))
        return unproved(err, "keys have throughput of their own");
    return !slice_equal(call->route.owner, container_info(items->container)->rid) ||
           unproved(err, "it is asked for by _rid");
}

static void item_answer(struct rest_call *call, const struct rest_items *items,
                        const struct item_operation *op)
{
    const struct item *item = &op->result.item;
    struct slice known = rest_call_etag(call, REST_HEADER_IF_NONE_MATCH);
    char etag[ITEM_ETAG_LEN];

    item_etag(&item->header, etag);
    rest_items_location(call);
    call->status = known.data && slice_equal(known, slice_of(etag, sizeof etag)) ? 304 : 200;
    if (call->status == 200)
        rest_item_append(items, item, 0, &call->body);
    rest_items_headers(call, items, op->route.span->id, item->header.lsn);
    rest_answer_etag(call, rest_item_etag(item, call->arena));
    rest_answer_header_int(call, SLICE("x-ms-item-lsn"), (int64_t)item->header.lsn);
}

bool rest_items_follow(struct rest_call *call, struct error *err)
{
    CLEANUP(rest_items_close) struct rest_items items = {0};
    struct item_operation op = {.space = &items.space,
                                .meters = call->services->meters,
                                .arena = call->arena,
                                .verb = ITEM_READ};
    struct rest_item_target target = {0};

    if (call->primary)
        return unproved(err, "the node was lost in the middle");
    if (!rest_items_open(call, &items, err) || !level_check(&items, err) ||
        !container_check(call, &items, err) || !rest_items_metered(call, &op.metered, err) ||
        !rest_item_target_of_path(call, &items, &target, err))
        return false;
    if (target.key.open || target.key.former || target.key.former_only)
        return unproved(err, "the key is not known whole");
    rest_items_look(call, &items);
    op.key = target.key;
    op.id = target.id;
    if (!item_operation_run(&op, err))
        return false;
    rest_items_charged(call, &op.metered);
    rest_items_served(call, &items, op.route.span, 1);
    item_answer(call, &items, &op);
    return true;
}
