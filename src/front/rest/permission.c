#include "front/rest/permission.h"

#include "catalogue/container_space.h"
#include "document/bson.h"
#include "front/rest/call.h"
#include "item/locate.h"
#include "item/shown.h"

enum { FOUND_MAX = 2 }; /* of more it is only of interest that there are several */

bool rest_permission_needs_key(const struct rest_reach *permitted,
                               const struct container *container)
{
    return permitted->resource == REST_ITEMS && !permitted->by_rid &&
           !definition_fields(container_definition(container))->key.system_key;
}

static bool refused(struct error *err, const char *why)
{
    return error_set(err, ERROR_BAD_REQUEST,
                     "One of the specified inputs is invalid: the permission is on an item and has "
                     "no resourcePartitionKey, but %s",
                     why);
}

static bool key_find(struct rest_call *call, struct container *container, struct slice id,
                     struct partition_key *ret_key, struct error *err)
{
    const struct item_space space =
        container_space(container, call->services->clock, call->services->gates);
    const struct document_value value =
        item_id_of_text(definition_names_of(space.definition), id, call->arena);
    struct partition_key found[FOUND_MAX];
    size_t count;

    if (!locate_keys(&space, &value, FOUND_MAX, call->arena, found, &count, err))
        return false;
    if (count == 0)
        return refused(err, "there is no item of that id");
    if (count > 1)
        return refused(err, "several items have that id");
    *ret_key = found[0];
    return true;
}

/* As clients write it: undefined is an empty object. */
static void key_append(const struct partition_key *key, struct buf *out)
{
    size_t array = document_append_array_begin(out, SLICE("resourcePartitionKey"));
    char index[DOCUMENT_INDEX_SIZE];

    for (uint32_t i = 0; i < key->count; i++) {
        struct slice name = document_index_key(i, index);

        if (key->components[i].type == DOCUMENT_UNDEFINED)
            document_end(out, document_append_object_begin(out, name));
        else
            document_append(out, name, &key->components[i]);
    }
    document_end(out, array);
}

static struct slice body_with_key(struct rest_call *call, struct slice body,
                                  const struct partition_key *key)
{
    CLEANUP(buf_done) struct buf bound;
    struct document_iter iter;
    size_t begin;

    buf_init(&bound, BUF_DEFAULT_MAX);
    begin = document_begin(&bound);
    document_iter_init(&iter, body);
    while (document_iter_next(&iter))
        buf_append(&bound, iter.element, (size_t)(iter.at - iter.element));
    key_append(key, &bound);
    document_end(&bound, begin);
    return arena_copy(call->arena, buf_slice(&bound));
}

bool rest_permission_bind(struct rest_call *call, struct slice body, struct slice *ret_body,
                          struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct document_value resource, said;
    struct rest_reach permitted;
    struct partition_key key;
    bool item;

    *ret_body = body;
    if (document_find(body, SLICE("resourcePartitionKey"), &said) ||
        !document_find(body, SLICE("resource"), &resource) || resource.type != DOCUMENT_STRING)
        return true; /* what is wrong with it is found by who keeps it */
    permitted = rest_reach_of_item_link(call, resource.text, &container, &item);
    if (!item)
        return true;
    if (!permitted.database || !container)
        return refused(err, "there is no such container");
    if (!rest_permission_needs_key(&permitted, container))
        return true;
    if (!key_find(call, container, permitted.id, &key, err))
        return false;
    *ret_body = body_with_key(call, body, &key);
    return true;
}
