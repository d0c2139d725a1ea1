#include "item/alias.h"

#include "document/order.h"
#include "item/locate.h"
#include "partition/former.h"
#include "throughput/cost.h"

enum {
    ENTRIES_AT_ONCE = 64,
    ENTRIES_MAX = 4096, /* of one id, in all partitions */
};

struct looking {
    const struct item_space *space;
    const struct partition_key *former;
    struct arena *arena;
    struct slice id_bytes;
    size_t entries;
    bool found;
    struct partition_key key;
};

static bool hit_look(struct looking *looking, const struct item_scope *scope,
                     const struct item_index_hit *hit, struct error *err)
{
    const struct partition_definition *definition = &looking->space->definition->key;
    struct item_key_parts parts;
    struct item item;

    if (!item_key_split(definition, hit->key, &parts, err))
        return false;
    if (!slice_equal(parts.id, looking->id_bytes))
        return true; /* ids that are alike as far as the index keeps them */
    if (!item_scan_fetch(scope, NULL, &hit->key, 1, looking->arena, &item, err))
        return false;
    if (!item.document.data || !partition_former_fits(definition->formerly, item.document,
                                                      looking->former, looking->arena))
        return true;
    looking->found = true;
    return partition_key_read(definition, &parts.pk_id, looking->arena, &looking->key, err);
}

static bool span_look(struct looking *looking, const struct partition_span *span,
                      const struct item_index_request *seek, struct error *err)
{
    struct item_scope scope = item_space_span_scope(looking->space, span);
    struct item_index_request request = *seek;
    struct item_index_page page;

    do {
        if (!item_scan_index(&scope, &request, looking->arena, &page, err))
            return false;
        looking->entries += page.count;
        if (looking->entries > ENTRIES_MAX)
            return error_set(err, ERROR_BAD_REQUEST,
                             "more than %d items have this id: name the partition key the "
                             "container has now",
                             ENTRIES_MAX);
        for (size_t i = 0; i < page.count && !looking->found; i++)
            if (!hit_look(looking, &scope, &page.hits[i], err))
                return false;
        request.after = page.position;
    } while (page.more && !looking->found);
    return true;
}

bool alias_find(struct item_operation *op, const struct partition_key *former,
                const struct document_value *id, struct partition_key *ret_key, bool *ret_found,
                struct error *err)
{
    struct arena *arena = op->arena;
    struct looking looking = {.space = op->space, .former = former, .arena = arena};
    const struct item_index_request seek =
        locate_seek(op->space->definition, id, ENTRIES_AT_ONCE, arena);
    CLEANUP(buf_done) struct buf bytes;
    size_t count;
    const struct partition_span *spans = partition_map_spans(op->space->map, &count);

    buf_init(&bytes, BUF_DEFAULT_MAX);
    item_id_append(definition_names_of(op->space->definition), id, &bytes);
    looking.id_bytes = arena_copy(arena, buf_slice(&bytes));
    for (size_t i = 0; i < count && !looking.found; i++) {
        if (!span_look(&looking, &spans[i], &seek, err))
            return false;
        metering_charge(op->meters, spans[i].id, cost_id_seek());
        op->metered.charge_cru = cost_add(op->metered.charge_cru, cost_id_seek());
    }
    *ret_found = looking.found;
    if (looking.found)
        *ret_key = looking.key;
    return true;
}

struct slice alias_claim(const struct partition_key *former, const struct document_value *id,
                         struct arena *arena)
{
    CLEANUP(buf_done) struct buf bytes;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    partition_key_append(former, &bytes);
    document_key_append(DOCUMENT_ORDER_SQL, id, &bytes);
    return arena_copy(arena, buf_slice(&bytes));
}
