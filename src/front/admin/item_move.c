/* One item under another partition key value, in one transaction: what a client can only do by a
 * delete and a create, with a moment in between. */
#include "front/admin/call.h"

#include "catalogue/agreements.h"
#include "catalogue/container_space.h"
#include "document/bson.h"
#include "document/json.h"
#include "front/item.h"
#include "item/operation.h"
#include "item/shown.h"
#include "partition/synthetic.h"

struct asked {
    struct document_value id;
    struct slice from_text; /* JSON */
    struct slice document;
    struct transaction_options options;
};

static bool shape(struct error *err)
{
    return error_set(err, ERROR_BAD_REQUEST,
                     "the body is {\"id\":\"...\",\"partitionKey\":[...],\"document\":{...},"
                     "\"ifMatch\":\"...\"}: the item, the key it has, and what it shall be");
}

static bool asked_read(struct admin_call *call, struct asked *asked, struct error *err)
{
    CLEANUP(buf_done) struct buf text;
    struct document_value value;
    struct document_iter iter;
    struct slice body;

    buf_init(&text, BUF_DEFAULT_MAX);
    *asked = (struct asked){0};
    if (!front_http_body(&call->over_http, &body, err))
        return false;
    document_iter_init(&iter, body);
    while (document_iter_next(&iter)) {
        value = iter.value;
        if (slice_equal(iter.key, SLICE("id")) && value.type == DOCUMENT_STRING)
            asked->id = value;
        else if (slice_equal(iter.key, SLICE("partitionKey")) && value.type == DOCUMENT_ARRAY)
            document_json_write_value(&value, &text);
        else if (slice_equal(iter.key, SLICE("document")) && value.type == DOCUMENT_OBJECT)
            asked->document = value.document;
        else if (slice_equal(iter.key, SLICE("ifMatch")) && value.type == DOCUMENT_STRING)
            asked->options.if_match = value.text;
        else
            return shape(err);
    }
    if (asked->id.type != DOCUMENT_STRING || !text.len || !asked->document.data)
        return shape(err);
    asked->from_text = arena_copy(call->arena, buf_slice(&text));
    return true;
}

static bool whole(const struct partition_key *key, struct error *err)
{
    return !key->open || error_set(err, ERROR_NOT_SUPPORTED,
                                   "an item is moved by its whole partition key: name the suffix "
                                   "in partitionKey and in the document");
}

/* The new key is what the document says it is. */
static bool keys_read(struct admin_call *call, const struct item_space *space, struct asked *asked,
                      struct partition_key *ret_from, struct partition_key *ret_to,
                      struct error *err)
{
    const struct partition_definition *definition = &space->definition->key;
    struct document_value own;

    if (!front_item_clean(definition_names_of(space->definition), asked->document, call->arena,
                          &asked->document, &own, err))
        return false;
    asked->id =
        item_id_of_text(definition_names_of(space->definition), asked->id.text, call->arena);
    if (!item_id_same(definition_names_of(space->definition), &own, &asked->id))
        return error_set(err, ERROR_BAD_REQUEST, "the id of an item cannot be changed");
    if (!partition_key_parse(definition, asked->from_text, PARTITION_KEY_WHOLE, call->arena,
                             ret_from, err) ||
        !whole(ret_from, err) ||
        !partition_key_derive(definition, asked->document, NULL, call->arena, ret_to, err) ||
        !whole(ret_to, err))
        return false;
    if (partition_synthetic_is_random(definition))
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "an item with a random suffix is not moved: its id is unique across all "
                         "suffixes of its base");
    if (partition_key_equal(ret_from, ret_to))
        return error_set(err, ERROR_BAD_REQUEST,
                         "the document has the partition key that the item has: replace it");
    return items_names_check(space, ret_to, &asked->id, err);
}

bool admin_item_move(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    const struct partition_definition *definition;
    struct item_operation move = {.arena = call->arena};
    struct partition_key from, to;
    char etag[ITEM_ETAG_LEN];
    struct item_space space;
    struct asked asked;

    if (!admin_container_open(call, &container, err) || !asked_read(call, &asked, err))
        return false;
    space = container_space(container, call->services->clock, call->services->gates);
    definition = &space.definition->key;
    if (!keys_read(call, &space, &asked, &from, &to, err))
        return false;
    move.space = &space;
    move.key = from;
    move.id = asked.id;
    move.document = asked.document;
    move.options = asked.options;
    if (!item_operation_move(&move, &to, catalogue_agreements(call->services->catalogue), err))
        return false;
    item_etag(&move.result.item.header, etag);
    BUF_APPEND(&call->body, "{");
    admin_text(&call->body, "id", asked.id.text);
    BUF_APPEND(&call->body, ",\"from\":");
    partition_key_json(definition, &from, &call->body);
    BUF_APPEND(&call->body, ",\"to\":");
    partition_key_json(definition, &to, &call->body);
    admin_text(&call->body, "etag", slice_of(etag, sizeof etag));
    BUF_APPEND(&call->body, "}");
    call->status = 200;
    return true;
}
