/* Operations on one entity. */
#include "front/table/answer.h"
#include "front/table/select.h"
#include "front/table/write.h"
#include "front/traffic.h"

/* --- Reading --------------------------------------------------------------------------------- */

static void entity_answer(struct table_call *call, const struct table_space *space,
                          const struct table_selection *selection, const struct item *item)
{
    struct table_shape shape = table_call_shape(call, space);
    int64_t ticks = table_entity_ticks(&item->header);
    char etag[TABLE_ETAG_LEN];

    shape.selection = *selection;
    table_etag_write(ticks, etag);
    table_answer_header(call, SLICE("ETag"), slice_of(etag, sizeof etag));
    table_entity_append(&shape, item->document, ticks, true, &call->body);
    call->status = 200;
}

bool table_entities_get(struct table_call *call, struct error *err)
{
    CLEANUP(table_space_close) struct table_space space = {0};
    struct metered_call metered = table_call_metered(call);
    struct table_selection selection;
    struct document_value id;
    struct partition_key key;
    struct item item;
    bool found;

    if (!table_selection_parse(call, &selection, err) ||
        !table_space_open(call, call->route.table, &space, err))
        return false;
    key = table_write_key(&space, &call->route.keys);
    id = table_write_id(&call->route.keys);
    if (call->may_block)
        found = metered_read(call->services->meters, &space.space, &key, &id, &metered, call->arena,
                             &item, err);
    else
        found = metered_read_cached(call->services->meters, &space.space, &key, &id, &metered,
                                    call->arena, &item, &call->cold, err);
    if (call->cold)
        return false;
    table_call_charged(call, &metered);
    if (found || front_traffic_is_refusal(err))
        front_traffic_item(
            call->services, space.container,
            &(struct front_traffic_item){.kind = ADVISE_READ,
                                         .key = &key,
                                         .id = &id,
                                         .document = found ? item.document : SLICE_NONE,
                                         .cru = call->charge_cru,
                                         .attempt = table_call_attempt(call, found ? NULL : err)});
    if (!found)
        return false;
    entity_answer(call, &space, &selection, &item);
    return true;
}

/* --- Writing --------------------------------------------------------------------------------- */

static bool write_run(struct table_call *call, struct table_write *write, struct error *err)
{
    CLEANUP(table_space_close) struct table_space space = {0};
    struct transaction_result result;

    if (!table_space_open(call, call->route.table, &space, err) ||
        !table_write_complete(call, &space, write, err))
        return false;
    if (!call->may_block)
        return table_write_start(call, &space, write, err);
    if (!table_write_run(call, &space, write, &result, err)) {
        table_write_refused(call, &space, write, err);
        return false;
    }
    table_write_answer(call, &space, write, &result);
    return true;
}

bool table_entities_insert(struct table_call *call, struct error *err)
{
    struct table_write write = {.kind = TABLE_WRITE_INSERT};

    if (front_http_is_long(&call->over_http) ||
        !table_entity_read(call->http->body, &write.keys, call->arena, &write.document, err) ||
        !table_identity_check_keys(&call->identity, &write.keys, err))
        return false;
    return write_run(call, &write, err);
}

static bool update(struct table_call *call, enum table_write_kind kind, struct error *err)
{
    struct table_write write = {.kind = kind};

    if (front_http_is_long(&call->over_http))
        return false;
    write.keys = call->route.keys;
    if (!table_write_condition_read(call, &write, err) ||
        (!write.etag.data && !table_identity_check_add(&call->identity, err)) ||
        !table_entity_read(call->http->body, &write.keys, call->arena, &write.document, err))
        return false;
    return write_run(call, &write, err);
}

bool table_entities_replace(struct table_call *call, struct error *err)
{
    return update(call, TABLE_WRITE_REPLACE, err);
}

bool table_entities_merge(struct table_call *call, struct error *err)
{
    return update(call, TABLE_WRITE_MERGE, err);
}

bool table_entities_delete(struct table_call *call, struct error *err)
{
    struct table_write write = {.kind = TABLE_WRITE_DELETE};

    if (front_http_is_long(&call->over_http))
        return false;
    write.keys = call->route.keys;
    return table_write_condition_read(call, &write, err) && write_run(call, &write, err);
}
