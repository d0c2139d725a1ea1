#include "front/rest/views/refresh.h"

#include "front/rest/views/groups.h"
#include "item/bulk.h"
#include "item/locate.h"

enum { COPIES_MAX = 8 }; /* of one item, under several keys: a crash may have left two */

/* One batch on its way; everything is in the arena. */
struct batch {
    struct rest_view_state *state;
    const struct front_services *services;
    struct item_space space;
    struct arena *arena;
    struct item_operation *ops;
    size_t count;
    bool *is_row; /* of each operation: it brings what the query made */
};

static struct item_operation *op_add(struct batch *batch, enum item_verb verb,
                                     const struct partition_key *key,
                                     const struct document_value *id, struct slice document)
{
    struct item_operation *op = &batch->ops[batch->count];

    batch->is_row[batch->count++] = document.data != NULL;
    *op = (struct item_operation){.space = &batch->space,
                                  .meters = batch->services->meters,
                                  .arena = batch->arena,
                                  .verb = verb,
                                  .key = *key,
                                  .id = *id,
                                  .document = document};
    return op;
}

static bool keys_same(const struct batch *batch, const struct partition_key *a,
                      const struct partition_key *b)
{
    const struct partition_definition *definition = &batch->space.definition->key;

    return slice_equal(item_logical(definition, a, batch->arena),
                       item_logical(definition, b, batch->arena));
}

/* Is the item under this key what it should be already? */
static bool is_same(const struct batch *batch, const struct partition_key *key,
                    const struct document_value *id, struct slice row, bool *ret_same,
                    struct error *err)
{
    const struct items_reference reference = {*key, *id};
    struct item item;

    if (!items_read_many(&batch->space, &reference, 1, batch->arena, &item, err))
        return false;
    *ret_same = item.document.data && slice_equal(item.document, row);
    return true;
}

static void left_out(struct batch *batch, const struct rest_view_touched *touched,
                     const struct error *why)
{
    char text[RID_TEXT_SIZE];

    batch->state->figures.left_out++;
    batch->state->gaps = true; /* written down before what is read of the history is passed */
    batch->state->changed = true;
    log_event(batch->services->log, LOG_WARNING, "an item is left out of a view",
              LOG_INT("view", batch->state->number),
              LOG_SLICE("item", rid_format(touched->source, text)),
              LOG_TEXT("reason", why->message));
}

/* The row of an item, if it makes one that can be stored. */
static bool row_make(struct batch *batch, const struct rest_view_touched *touched, struct slice id,
                     struct slice *ret_row, struct partition_key *ret_key, struct error *err)
{
    const struct partition_definition *definition = &batch->space.definition->key;
    struct error why;

    *ret_row = SLICE_NONE;
    if (!touched->document.data)
        return true;
    if (!rest_view_query_row(batch->state->query, touched->document, id, batch->arena, ret_row,
                             &why)) {
        if (why.code != ERROR_QUERY_LIMIT && why.status >= 500) {
            *err = why;
            return false;
        }
        left_out(batch, touched, &why);
        *ret_row = SLICE_NONE;
        return true;
    }
    if (!ret_row->data)
        return true;
    *ret_key = partition_key_extract(definition, *ret_row);
    if (partition_key_check(definition, ret_key, &batch->space.key_limits, &why) &&
        (!batch->space.item_bytes_max || ret_row->len <= batch->space.item_bytes_max))
        return true;
    if (ret_row->len > batch->space.item_bytes_max && batch->space.item_bytes_max)
        (void)error_set(&why, ERROR_TOO_LARGE, "the item is too large");
    left_out(batch, touched, &why);
    *ret_row = SLICE_NONE;
    return true;
}

static bool touched_plan(struct batch *batch, const struct rest_view_touched *touched,
                         struct error *err)
{
    struct partition_key found[COPIES_MAX], key;
    char text[RID_TEXT_SIZE];
    struct slice name = arena_copy(batch->arena, rid_format(touched->source, text)), row;
    const struct document_value id = document_string(name);
    bool same = false;
    size_t count;

    if (!row_make(batch, touched, name, &row, &key, err) ||
        !locate_keys(&batch->space, &id, COPIES_MAX, batch->arena, found, &count, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!row.data || !keys_same(batch, &found[i], &key))
            (void)op_add(batch, ITEM_DELETE, &found[i], &id, SLICE_NONE);
        else if (!is_same(batch, &key, &id, row, &same, err))
            return false;
    }
    if (row.data && !same)
        (void)op_add(batch, ITEM_UPSERT, &key, &id, row);
    return true;
}

/* What clients are refused an item for: such a row is in no view. */
static bool is_unfit(const struct error *err)
{
    return err->code == ERROR_BAD_REQUEST || err->code == ERROR_TOO_LARGE ||
           err->code == ERROR_LOGICAL_PARTITION_FULL || err->code == ERROR_PARTITION_FULL;
}

static bool op_settle(struct batch *batch, const struct item_operation *op, bool is_row,
                      struct error *err)
{
    struct front_view_report *figures = &batch->state->figures;
    const struct rest_view_touched unknown = {0};

    if (op->err.code == ERROR_NONE) {
        *(is_row ? &figures->written : &figures->removed) += 1;
        return true;
    }
    if (!is_row && op->err.code == ERROR_ITEM_MISSING)
        return true;
    if (is_row && is_unfit(&op->err)) {
        struct rest_view_touched touched = unknown;

        if (!rid_parse(op->id.text, &touched.source))
            assert(!"ids of a view are rids");
        left_out(batch, &touched, &op->err);
        return true;
    }
    if (op->metered.wait_ms || op->err.status == 429) {
        figures->throttled++;
        batch->state->wait_ms = clock_monotonic_ms() + MAX(op->metered.wait_ms, (int64_t)1);
    }
    *err = op->err;
    return false;
}

bool rest_view_refresh(struct rest_view_state *state, const struct front_services *services,
                       struct container *view, const struct rest_view_touched *touched,
                       size_t count, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct batch batch = {
        .state = state,
        .services = services,
        .space = container_space(view, services->clock, services->gates),
        .arena = arena,
        .ops = ARENA_ARRAY(arena, struct item_operation, count * (COPIES_MAX + 1) + 1),
        .is_row = ARENA_ARRAY(arena, bool, count *(COPIES_MAX + 1) + 1)};

    if (rest_view_query_is_grouped(state->query))
        return rest_view_groups_refresh(state, services, view, touched, count, err);
    batch.space.read_only = false;
    for (size_t i = 0; i < count; i++)
        if (!touched_plan(&batch, &touched[i], err))
            return false;
    if (!batch.count)
        return true;
    bulk_run(batch.ops, batch.count, &(struct bulk_options){0});
    for (size_t i = 0; i < batch.count; i++)
        if (!op_settle(&batch, &batch.ops[i], batch.is_row[i], err))
            return false;
    return true;
}
