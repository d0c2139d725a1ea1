/* An atomic batch by a key of before a re-key: its items have keys of their own by now, and the
 * batch can be done only where they are one. */
#include "front/rest/item/batch.h"
#include "item/alias.h"
#include "item/shown.h"
#include "partition/synthetic.h"

struct settling {
    struct rest_call *call;
    const struct rest_items *items;
    struct metered_call *metered;
    const struct partition_key *named;
    struct partition_key key;
    bool known;
};

static bool key_join(struct settling *s, const struct partition_key *key, struct error *err)
{
    if (s->known && !partition_key_equal(&s->key, key))
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "the container was re-keyed: the items of this batch are in different "
                         "logical partitions by now");
    s->key = *key;
    s->key.former = NULL;
    s->known = true;
    return true;
}

static bool brings_item(const struct rest_batch_operation *operation)
{
    return operation->kind != REST_BATCH_PATCH && operation->body.type == DOCUMENT_OBJECT;
}

/* The items a batch brings say their key themselves. *ret_now: one was named in the terms of now.
 */
static bool items_settle(struct settling *s, const struct rest_batch *batch, bool *ret_now,
                         struct error *err)
{
    *ret_now = false;
    for (size_t i = 0; i < batch->count; i++) {
        struct partition_key own;

        if (!brings_item(&batch->operations[i]))
            continue;
        if (!partition_key_derive(&s->items->space.definition->key,
                                  batch->operations[i].body.document, s->named, s->call->arena,
                                  &own, err) ||
            !key_join(s, &own, err))
            return false;
        *ret_now |= !own.former;
    }
    return true;
}

/* Under the key in the terms of now; nobody pays for this look. */
static bool is_there(const struct settling *s, const struct document_value *id)
{
    struct item_operation read = {.space = &s->items->space,
                                  .arena = s->call->arena,
                                  .verb = ITEM_READ,
                                  .key = *s->named,
                                  .id = *id};
    struct error missing;

    read.key.former = NULL;
    return item_operation_run(&read, &missing);
}

/* Those it only names have to be found; what is not there is missing under any key. */
static bool names_settle(struct settling *s, const struct rest_batch *batch, struct error *err)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct rest_batch_operation *operation = &batch->operations[i];
        struct document_value id = item_id_of_text(definition_names_of(s->items->space.definition),
                                                   operation->id_given, s->call->arena);
        struct item_operation finding = {.space = &s->items->space,
                                         .meters = s->call->services->meters,
                                         .arena = s->call->arena,
                                         .metered = *s->metered};
        struct partition_key found_key;
        bool found;

        if (brings_item(operation) || !operation->id_given.data)
            continue;
        if (!s->named->former_only && is_there(s, &id)) {
            if (!key_join(s, s->named, err))
                return false;
            continue;
        }
        if (!alias_find(&finding, s->named->former, &id, &found_key, &found, err) ||
            (found && !key_join(s, &found_key, err)))
            return false;
        *s->metered = finding.metered;
    }
    return true;
}

bool rest_batch_former(struct rest_call *call, const struct rest_items *items,
                       const struct rest_batch *batch, struct metered_call *metered,
                       struct partition_key *key, struct error *err)
{
    struct partition_key named = *key;
    struct settling s = {.call = call, .items = items, .metered = metered, .named = &named};
    bool now;

    if (!items_settle(&s, batch, &now, err) || (!now && !names_settle(&s, batch, err)))
        return false;
    if (s.known)
        *key = s.key;
    else if (named.former_only)
        return error_set(err, ERROR_ITEM_MISSING,
                         "entity with the specified id does not exist in the system");
    key->former = NULL;
    return true;
}
