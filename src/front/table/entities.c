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
    struct item_operation op = {.space = &space.space,
                                .meters = call->services->meters,
                                .arena = call->arena,
                                .verb = ITEM_READ,
                                .metered = table_call_metered(call)};
    struct table_selection selection;
    bool found;

    if (!table_selection_parse(call, &selection, err) ||
        !table_space_open(call, call->route.table, &space, err) ||
        !table_space_look(call, &space, err))
        return false;
    op.key = table_write_key(&space, &call->route.keys);
    op.id = table_write_id(&call->route.keys);
    if (call->may_block) {
        found = item_operation_run(&op, err);
    } else {
        enum item_start start = item_operation_start(&op, err);

        found = start == ITEM_START_ENDED;
        call->cold = start == ITEM_START_COLD;
    }
    if (call->cold)
        return false;
    if (op.route.span)
        table_space_served(call, &space, op.route.span, 1);
    table_call_charged(call, &op.metered);
    if (found || front_traffic_is_refusal(err))
        front_traffic_item(
            call->services, space.container,
            &(struct front_traffic_item){.kind = ADVISE_READ,
                                         .key = &op.key,
                                         .id = &op.id,
                                         .document = op.result.item.document,
                                         .cru = call->charge_cru,
                                         .attempt = table_call_attempt(call, found ? NULL : err)});
    if (!found)
        return false;
    entity_answer(call, &space, &selection, &op.result.item);
    return true;
}

/* --- Writing --------------------------------------------------------------------------------- */

typedef bool write_read(struct table_call *call, struct table_write *write, struct error *err);

/* What the call has been read as, or is now. */
static bool write_get(struct table_call *call, write_read *read, enum table_write_kind kind,
                      struct table_write *ret_write, struct error *err)
{
    struct table_write *write;

    if (!call->write) {
        write = ARENA_NEW(call->arena, struct table_write);
        write->kind = kind;
        if (!read(call, write, err))
            return false;
        call->write = write;
    }
    *ret_write = *call->write;
    return true;
}

static bool write_run(struct table_call *call, write_read *read, enum table_write_kind kind,
                      struct error *err)
{
    CLEANUP(table_space_close) struct table_space space = {0};
    struct transaction_result result;
    struct table_write write;

    if (front_http_is_long(&call->over_http) || !write_get(call, read, kind, &write, err) ||
        !table_space_open(call, call->route.table, &space, err) ||
        !table_write_complete(call, &space, &write, err))
        return false;
    if (!call->may_block)
        return table_write_start(call, &space, &write, err);
    if (!table_write_run(call, &space, &write, &result, err)) {
        table_write_refused(call, &space, &write, err);
        return false;
    }
    table_write_answer(call, &space, &write, &result);
    return true;
}

static bool insert_read(struct table_call *call, struct table_write *write, struct error *err)
{
    return table_entity_read(call->http->body, &write->keys, call->arena, &write->document, err) &&
           table_identity_check_keys(&call->identity, &write->keys, err);
}

bool table_entities_insert(struct table_call *call, struct error *err)
{
    return write_run(call, insert_read, TABLE_WRITE_INSERT, err);
}

static bool update_read(struct table_call *call, struct table_write *write, struct error *err)
{
    write->keys = call->route.keys;
    return table_write_condition_read(call, write, err) &&
           (write->etag.data || table_identity_check_add(&call->identity, err)) &&
           table_entity_read(call->http->body, &write->keys, call->arena, &write->document, err);
}

bool table_entities_replace(struct table_call *call, struct error *err)
{
    return write_run(call, update_read, TABLE_WRITE_REPLACE, err);
}

bool table_entities_merge(struct table_call *call, struct error *err)
{
    return write_run(call, update_read, TABLE_WRITE_MERGE, err);
}

static bool delete_read(struct table_call *call, struct table_write *write, struct error *err)
{
    write->keys = call->route.keys;
    return table_write_condition_read(call, write, err);
}

bool table_entities_delete(struct table_call *call, struct error *err)
{
    return write_run(call, delete_read, TABLE_WRITE_DELETE, err);
}
