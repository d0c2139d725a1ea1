/* Transactions of a graph: a part for each node its container is on, of one moment and committed
 * together (item/agreement.h), taken when something is first read or written at the graph's moment.
 * What was written is remembered by item key, so that
 * elements at hand show it; queries see it through the overlay of their node. */
#include "front/gremlin/graph/graph_private.h"

#include "catalogue/agreements.h"
#include "engine/reader.h"
#include "item/agreement.h"
#include "item/view_overlay.h"
#include "throughput/cost.h"

#include <xxhash.h>

enum { WRITTEN_FIRST = 64 };

/* --- Parts --------------------------------------------------------------------------------------
 */

static struct memory_meter *meter_of(const struct gremlin_graph *graph)
{
    return net_owner_memory(graph->call.owner);
}

/* What the transactions hold is on the account's meter, and below the limit of one request. */
static bool hold(struct gremlin_graph *graph, struct error *err)
{
    size_t used = graph->written_arena ? arena_used(graph->written_arena) : 0, all;

    if (graph->transact_arena)
        used += arena_used(graph->transact_arena);
    all = used;
    for (const struct gremlin_part *part = graph->parts; part; part = part->next)
        all += transaction_overlay_bytes(part->transaction);
    if (used > graph->options.limits.transaction_bytes_max)
        return error_set(err, ERROR_TOO_LARGE,
                         "the request writes more than the %zu bytes that one transaction may hold",
                         graph->options.limits.transaction_bytes_max);
    if (!memory_meter_change(meter_of(graph), graph->held, all))
        return error_set(err, ERROR_MEMORY_FULL, "the account holds as much memory as it may");
    graph->held = all;
    return true;
}

/* The partitions of a node are read at one moment with all that the graph reads; those of its other
 * nodes too, as far as they serve. */
static bool node_meet(struct gremlin_graph *graph, uint32_t node, struct item_scope *ret_scope,
                      struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t span_count, count = 0;
    const struct partition_span *spans = partition_map_spans(graph->space.map, &span_count);
    struct item_scope *scopes = ARENA_ARRAY(arena, struct item_scope, span_count);
    uint64_t nodes = 0;

    for (size_t i = 0; i < span_count; i++) {
        nodes |= UINT64_C(1) << spans[i].node;
        if (spans[i].node == node)
            scopes[count++] = item_space_span_scope(&graph->space, &spans[i]);
    }
    assert(count);
    if (!graph->agreement) {
        graph->transact_arena = arena_new();
        graph->agreement = agreement_new(catalogue_agreements(graph->options.services->catalogue),
                                         graph->transact_arena);
    }
    *ret_scope = scopes[0];
    return agreement_meet(graph->agreement, scopes, count, nodes, err);
}

/* A node that did not serve was not met. */
static bool node_find(const struct gremlin_graph *graph, const struct item_scope *scope,
                      struct transaction **ret_transaction, struct error *err)
{
    const struct engine *engine = engine_reader_behind(scope->engine);
    const struct agreement_member *member = NULL;

    while ((member = agreement_next(graph->agreement, member)))
        if (agreement_member_engine(member) == engine) {
            *ret_transaction = agreement_member_transaction(member);
            return true;
        }
    return engine_serves(engine, err) &&
           error_set(err, ERROR_CONFLICT,
                     "a node of the graph serves again, since the moment that "
                     "the request reads");
}

bool gremlin_part_of(struct gremlin_graph *graph, uint32_t node, struct gremlin_part **ret_part,
                     struct error *err)
{
    struct gremlin_part *part = graph->parts;
    struct transaction *transaction = NULL;
    struct item_scope scope;

    while (part && part->node != node)
        part = part->next;
    if (part) {
        *ret_part = part;
        return true;
    }
    if (!node_meet(graph, node, &scope, err) || !node_find(graph, &scope, &transaction, err))
        return false;
    part = MEMORY_NEW(struct gremlin_part);
    *part = (struct gremlin_part){.node = node,
                                  .engine = scope.engine,
                                  .transaction = transaction,
                                  .arena = graph->transact_arena,
                                  .next = graph->parts};
    graph->parts = part;
    graph->reads_moment = true;
    *ret_part = part;
    return true;
}

bool gremlin_part_enter(struct gremlin_graph *graph, const struct partition_key *key,
                        struct gremlin_part **ret_part, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice logical = item_logical(&graph->space.definition->key, key, arena);
    struct item_scope scope = item_space_scope(&graph->space, logical);
    const struct partition_span *span = partition_map_find(graph->space.map, logical);

    return gremlin_part_of(graph, span->node, ret_part, err) &&
           transaction_enter((*ret_part)->transaction, &scope, logical, err);
}

bool gremlin_part_overlay(struct gremlin_graph *graph, struct gremlin_part *part, struct error *err)
{
    return transaction_overlay(part->transaction, &part->overlay, err) && hold(graph, err);
}

void gremlin_graph_let_go(struct gremlin_graph *graph)
{
    while (graph->parts) {
        struct gremlin_part *part = graph->parts;

        graph->parts = part->next;
        memory_free(part);
    }
    agreement_free(TAKE(graph->agreement));
    arena_free(TAKE(graph->transact_arena));
    if (graph->held)
        memory_meter_set(meter_of(graph), graph->held, 0);
    graph->held = 0;
    arena_free(graph->written_arena);
    graph->written_arena = NULL;
    graph->written = NULL;
    graph->written_count = graph->written_size = 0;
    graph->reads_moment = graph->options.one_moment;
}

/* --- What was written
 * ------------------------------------------------------------------------------ */

static struct slice written_key(const struct gremlin_graph *graph, const struct partition_key *key,
                                struct slice id, struct arena *arena)
{
    struct document_value text = document_string(id);

    return item_key(definition_names_of(graph->space.definition),
                    item_logical(&graph->space.definition->key, key, arena), &text, arena);
}

static struct gremlin_written *written_find(const struct gremlin_graph *graph, struct slice key)
{
    uint64_t hash = XXH3_64bits(key.data, key.len);
    struct gremlin_written *written;

    if (!graph->written_count)
        return NULL;
    written = graph->written[hash & (graph->written_size - 1)];
    while (written && (written->hash != hash || !slice_equal(written->key, key)))
        written = written->next;
    return written;
}

const struct gremlin_written *gremlin_graph_written(const struct gremlin_graph *graph,
                                                    const struct partition_key *key,
                                                    struct slice id)
{
    CLEANUP(arena_free) struct arena *arena = NULL;

    if (!graph->written_count)
        return NULL;
    arena = arena_new();
    return written_find(graph, written_key(graph, key, id, arena));
}

static void written_grow(struct gremlin_graph *graph)
{
    size_t size = graph->written_size ? 2 * graph->written_size : WRITTEN_FIRST;
    struct gremlin_written **slots =
        arena_alloc_zero(graph->written_arena, memory_array_size(size, sizeof *slots));

    for (size_t i = 0; i < graph->written_size; i++) {
        for (struct gremlin_written *w = graph->written[i], *next; w; w = next) {
            next = w->next;
            w->next = slots[w->hash & (size - 1)];
            slots[w->hash & (size - 1)] = w;
        }
    }
    graph->written = slots;
    graph->written_size = size;
}

static void written_set(struct gremlin_graph *graph, const struct partition_key *key,
                        struct slice id, struct slice document)
{
    struct gremlin_written *written;
    struct slice name;

    if (!graph->written_arena)
        graph->written_arena = arena_new();
    name = written_key(graph, key, id, graph->written_arena);
    written = written_find(graph, name);
    if (!written) {
        if (graph->written_count >= graph->written_size)
            written_grow(graph);
        written = ARENA_NEW(graph->written_arena, struct gremlin_written);
        written->key = name;
        written->hash = XXH3_64bits(name.data, name.len);
        written->next = graph->written[written->hash & (graph->written_size - 1)];
        graph->written[written->hash & (graph->written_size - 1)] = written;
        graph->written_count++;
    }
    written->document = document;
}

/* --- Writing and reading
 * ----------------------------------------------------------------------------- */

static bool may_write(const struct gremlin_graph *graph, const struct partition_key *key,
                      struct error *err)
{
    if (graph->options.readonly)
        return error_set(err, ERROR_FORBIDDEN, "the key or token used may only read");
    if (graph->bound && !partition_key_starts_with(key, &graph->only))
        return error_set(err, ERROR_FORBIDDEN, "the resource token is for another partition key");
    return true;
}

bool gremlin_graph_put(struct gremlin_graph *graph, const struct partition_key *key,
                       struct slice id, enum transaction_verb verb, struct slice document,
                       struct error *err)
{
    struct gremlin_part *part;
    struct document_value name;

    if (!may_write(graph, key, err) || !gremlin_part_enter(graph, key, &part, err) ||
        !hold(graph, err))
        return false;
    name = document_string(arena_copy(part->arena, id));
    if (verb != TRANSACTION_DELETE)
        document = arena_copy(part->arena, document);
    if (!items_names_check(&graph->space, key, &name, err) ||
        !transaction_write(part->transaction, &name, verb, document, NULL, err))
        return false;
    written_set(graph, key, id, verb == TRANSACTION_DELETE ? SLICE_NONE : document);
    graph->figures.written++;
    return true;
}

bool gremlin_graph_get(struct gremlin_graph *graph, const struct partition_key *key,
                       struct slice id, struct slice *ret_document, struct error *err)
{
    struct document_value name = document_string(id);
    struct gremlin_part *part;
    const struct item *item;

    if (!gremlin_part_enter(graph, key, &part, err) ||
        !transaction_read(part->transaction, &name, &item, err))
        return false;
    *ret_document = item ? item->document : SLICE_NONE;
    return true;
}

/* --- The end
 * ------------------------------------------------------------------------------------------ */

bool gremlin_graph_is_written(const struct gremlin_graph *graph)
{
    return graph->written_count > 0;
}

/* The budgets of the partitions that a part writes to: asked before, by the least its writes can
 * cost, and charged with what they did. */
struct budgets {
    struct metering *list;
    uint32_t *partitions;
    int64_t *cru;
    size_t count, begun;
    struct metered_call call;
};

static size_t budget_find(struct budgets *budgets, uint32_t partition)
{
    size_t at = 0;

    while (at < budgets->count && budgets->partitions[at] != partition)
        at++;
    if (at == budgets->count)
        budgets->partitions[budgets->count++] = partition;
    return at;
}

static bool budgets_begin(struct gremlin_graph *graph, const struct transaction *transaction,
                          struct budgets *budgets, struct arena *arena, struct error *err)
{
    size_t writes = transaction_write_count(transaction), spans;
    int64_t each = cost_write(&(struct cost_write){.puts = true});

    (void)partition_map_spans(graph->space.map, &spans);
    spans = MIN(spans, writes);
    budgets->list = ARENA_ARRAY(arena, struct metering, spans);
    budgets->partitions = ARENA_ARRAY(arena, uint32_t, spans);
    budgets->cru = arena_alloc_zero(arena, memory_array_size(spans, sizeof *budgets->cru));
    for (size_t i = 0; i < writes; i++)
        budgets->cru[budget_find(budgets, transaction_partition(transaction, i))] += each;
    for (; budgets->begun < budgets->count; budgets->begun++) {
        const struct metering_request request = {.partition = budgets->partitions[budgets->begun],
                                                 .price_cru = budgets->cru[budgets->begun]};

        if (!metering_begin(&budgets->list[budgets->begun], graph->options.services->meters,
                            &request, &budgets->call, err)) {
            graph->figures.wait_ms = budgets->call.wait_ms;
            return false;
        }
    }
    return true;
}

static void budgets_drop(struct budgets *budgets)
{
    for (size_t i = 0; i < budgets->begun; i++)
        metering_drop(&budgets->list[i]);
}

static void budgets_end(struct gremlin_graph *graph, const struct transaction *transaction,
                        struct budgets *budgets)
{
    memset(budgets->cru, 0, budgets->count * sizeof *budgets->cru);
    for (size_t i = 0; i < transaction_write_count(transaction); i++) {
        int64_t cru = transaction_result(transaction, i).charge_cru;

        budgets->cru[budget_find(budgets, transaction_partition(transaction, i))] += cru;
        graph->figures.charge_cru += cru;
    }
    for (size_t i = 0; i < budgets->count; i++)
        metering_end(&budgets->list[i], budgets->cru[i]);
}

/* Of all parts that write, before any of them does. */
static bool parts_admit(struct gremlin_graph *graph, struct budgets *budgets, struct arena *arena,
                        struct error *err)
{
    size_t nth = 0;

    for (const struct gremlin_part *part = graph->parts; part; part = part->next, nth++)
        if (transaction_write_count(part->transaction) &&
            !budgets_begin(graph, part->transaction, &budgets[nth], arena, err))
            return false;
    return true;
}

/* What is decided is done, also where a node has still to follow: nobody sees it without. */
static bool parts_commit(struct gremlin_graph *graph, struct error *err)
{
    return agreement_commit(graph->agreement, err) ||
           agreement_outcome(graph->agreement) == AGREEMENT_DECIDED;
}

bool gremlin_graph_commit(struct gremlin_graph *graph, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t count = 0, nth = 0;
    struct budgets *budgets;
    bool fine;

    if (!graph->agreement)
        return true;
    for (const struct gremlin_part *part = graph->parts; part; part = part->next)
        count++;
    budgets = arena_alloc_zero(arena, memory_array_size(count, sizeof *budgets));
    fine = parts_admit(graph, budgets, arena, err) && parts_commit(graph, err);
    for (const struct gremlin_part *part = graph->parts; part; part = part->next, nth++) {
        if (!fine)
            budgets_drop(&budgets[nth]);
        else if (transaction_write_count(part->transaction))
            budgets_end(graph, part->transaction, &budgets[nth]);
    }
    if (!fine) {
        graph->figures.conflicts += err->code == ERROR_CONFLICT;
        return false;
    }
    gremlin_graph_let_go(graph);
    return true;
}

void gremlin_graph_rollback(struct gremlin_graph *graph)
{
    gremlin_graph_let_go(graph);
}

bool gremlin_graph_may_retry(struct gremlin_graph *graph, const struct error *err)
{
    struct error again = *err;

    if (err->code != ERROR_CONFLICT && err->code != ERROR_SNAPSHOT_TOO_OLD &&
        !item_space_is_overtaken(err))
        return false;
    gremlin_graph_let_go(graph);
    return item_space_try_again(&graph->space, &again) && gremlin_graph_renewed(graph);
}
