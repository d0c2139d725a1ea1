/* Entities come in the order of their keys, which tables have a composite index for; in a container
 * that has none they are sorted. A continuation is the engine's own, sealed: it is made of values
 * and so goes on where it was whatever became of the partitions. */
#include "front/table/query.h"

#include "front/kit/queries.h"
#include "front/seal.h"
#include "front/table/entity.h"
#include "front/table/select.h"
#include "front/table/write.h"
#include "front/traffic.h"
#include "query/expression/item.h"
#include "query/run.h"
#include "throughput/cost.h"

#include <xxhash.h>

enum { PAGE_BYTES_MAX = 4 * 1024 * 1024 };

static const struct slice purpose = {(const uint8_t *)"entities 1", 10};

struct querying {
    struct table_call *call;
    struct table_space space;
    struct table_shape shape;
    struct table_selection selection;
    size_t top;
    const struct table_filter *filter; /* NULL: none */
    struct query_plan plan;
    struct query_order order[2];
    struct buf *body;
    size_t rows;
    struct metered_call metered;
};

/* --- The row --------------------------------------------------------------------------------- */

/* An entity as {"t": ticks, "e": {its stored properties}}, of those that are selected. What is no
 * entity, for its keys are no texts, is no row. */
struct entity_node {
    struct query_expression head;
    const struct table_selection *selection;
};

static bool wanted(const struct table_selection *selection, struct slice stored)
{
    return table_property_is_own(stored) ||
           table_selection_has(selection, table_property_shown(stored));
}

static bool is_entity(struct slice document)
{
    struct document_value value;

    return document_find(document, SLICE("PartitionKey"), &value) &&
           value.type == DOCUMENT_STRING &&
           document_find(document, table_names()->identity, &value) &&
           value.type == DOCUMENT_STRING;
}

static bool entity_evaluate(const struct query_expression *expression,
                            struct query_context *context, struct document_value *ret_value,
                            struct error *err)
{
    const struct entity_node *node = (const struct entity_node *)expression;
    const struct query_item *bound = context->slots[0].hidden_self;
    struct buf *out = &context->scratch;
    size_t mark = query_build_begin(context), begin, inner;
    struct document_iter iter;

    *ret_value = document_undefined();
    if (!bound || !is_entity(bound->item->document))
        return true;
    if (!query_work(context, bound->item->document.len >> 4, err))
        return false;
    begin = document_begin(out);
    document_append_int64(out, SLICE("t"), table_entity_ticks(&bound->item->header));
    inner = document_append_object_begin(out, SLICE("e"));
    document_iter_init(&iter, bound->item->document);
    while (document_iter_next(&iter))
        if (wanted(node->selection, iter.key))
            buf_append(out, iter.element, (size_t)(iter.at - iter.element));
    document_end(out, inner);
    return query_build_close(context, mark, begin, DOCUMENT_OBJECT, ret_value, err);
}

static const struct query_kind entity_kind = {"entity", entity_evaluate, QUERY_STABLE};

static bool row_append(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct querying *q = self;
    struct document_value ticks = document_undefined(), entity = document_undefined();

    (void)document_find(value->document, SLICE("t"), &ticks);
    (void)document_find(value->document, SLICE("e"), &entity);
    if (q->rows++)
        buf_append_byte(q->body, ',');
    table_entity_append(&q->shape, entity.document, ticks.int64, false, q->body);
    return true;
}

/* --- The plan -------------------------------------------------------------------------------- */

static const struct query_expression *stored_of(struct query_build *build, struct slice name)
{
    return query_property_of(build, query_variable(build, 0), name);
}

static const struct query_expression *text_compare(struct query_build *build,
                                                   enum query_comparison comparison,
                                                   struct slice name, struct slice text)
{
    return query_compare(build, comparison, stored_of(build, name),
                         query_constant(build, document_string(text)));
}

/* What a signature allows: from the one bound on, or up to the other. */
static const struct query_expression *bound_filter(struct query_build *build,
                                                   const struct table_bound *bound, bool first,
                                                   const struct query_expression *filter)
{
    enum query_comparison within = first ? QUERY_GREATER_EQUAL : QUERY_LESS_EQUAL;
    enum query_comparison inside = first ? QUERY_GREATER : QUERY_LESS;
    const struct query_expression *part, *same;

    if (!bound->partition.data)
        return filter;
    part = text_compare(build, within, SLICE("PartitionKey"), bound->partition);
    if (bound->row.data) {
        same = query_and(build,
                         text_compare(build, QUERY_EQUAL, SLICE("PartitionKey"), bound->partition),
                         text_compare(build, within, table_names()->identity, bound->row));
        part = query_and(
            build, part,
            query_or(build, text_compare(build, inside, SLICE("PartitionKey"), bound->partition),
                     same));
    }
    return filter ? query_and(build, filter, part) : part;
}

static uint64_t fingerprint_add(uint64_t seed, struct slice text)
{
    return XXH3_64bits_withSeed(text.len ? text.data : (const uint8_t *)"", text.len,
                                seed * 31 + text.len);
}

static uint64_t fingerprint_of(const struct querying *q)
{
    const struct table_call *call = q->call;
    const struct table_identity *identity = &call->identity;
    uint64_t print = 1;

    print = fingerprint_add(print, table_parameter(&call->parameters, SLICE("$filter")));
    print = fingerprint_add(print, table_parameter(&call->parameters, SLICE("$select")));
    print = fingerprint_add(print, identity->first.partition);
    print = fingerprint_add(print, identity->first.row);
    print = fingerprint_add(print, identity->last.partition);
    return fingerprint_add(print, identity->last.row);
}

static bool plan_make(struct querying *q, struct error *err)
{
    const struct table_filter_place place = {SLICE("PartitionKey"), table_names()->identity, true};
    struct query_build build = {.arena = q->call->arena, .keep_nonfinite = true};
    const struct query_expression *item = query_variable(&build, 0), *filter = NULL;
    struct entity_node *select = query_node(&build, &entity_kind, sizeof *select, &item, 1);

    select->selection = &q->selection;
    if (q->filter)
        filter = table_filter_compile(q->filter, &place, &build);
    filter = bound_filter(&build, &q->call->identity.first, true, filter);
    filter = bound_filter(&build, &q->call->identity.last, false, filter);
    q->order[0].expression = stored_of(&build, SLICE("PartitionKey"));
    q->order[1].expression = stored_of(&build, table_names()->identity);
    q->plan = (struct query_plan){.query = {.filter = filter,
                                            .order = q->order,
                                            .order_count = 2,
                                            .select = &select->head,
                                            .limit = UINT64_MAX},
                                  .slot_count = 1,
                                  .order_free = true,
                                  .fingerprint = fingerprint_of(q)};
    if (build.failed)
        *err = build.error;
    return !build.failed;
}

/* --- Continuations --------------------------------------------------------------------------- */

static struct front_seal seal_of(const struct querying *q)
{
    return (struct front_seal){slice_of(q->call->options->seal, TABLE_SEAL_BYTES),
                               container_info(q->space.container)->rid, purpose};
}

/* Base64 in the alphabet that needs no escapes in a URL, and back. */
static struct slice swapped(struct slice text, const char *from, const char *to,
                            struct arena *arena)
{
    uint8_t *bytes = arena_alloc(arena, text.len + 1);

    for (size_t i = 0; i < text.len; i++)
        bytes[i] = text.data[i] == from[0]   ? (uint8_t)to[0]
                   : text.data[i] == from[1] ? (uint8_t)to[1]
                   : text.data[i] == from[2] ? (uint8_t)to[2]
                                             : text.data[i];
    return slice_of(bytes, text.len);
}

static bool continuation_open(struct querying *q, struct slice *ret_bytes, struct error *err)
{
    struct slice text = table_parameter(&q->call->parameters, SLICE("NextPartitionKey"));
    struct front_seal seal = seal_of(q);

    *ret_bytes = SLICE_NONE;
    if (text.len == 0)
        return true;
    return front_seal_open(&seal, swapped(text, "-_.", "+/=", q->call->arena), q->call->arena,
                           ret_bytes) ||
           error_set(err, ERROR_BAD_CONTINUATION,
                     "NextPartitionKey was not made by this server for this table");
}

static void continuation_answer(struct querying *q, struct slice continuation, struct buf *lines)
{
    struct front_seal seal = seal_of(q);
    struct slice text = front_seal_close(&seal, continuation, q->call->arena);

    BUF_APPEND(lines, "x-ms-continuation-NextPartitionKey: ");
    buf_append_slice(lines, swapped(text, "+/=", "-_.", q->call->arena));
    BUF_APPEND(lines, "\r\nx-ms-continuation-NextRowKey: 1\r\n");
}

/* --- Running --------------------------------------------------------------------------------- */

static bool parameters_read(struct querying *q, struct error *err)
{
    struct table_call *call = q->call;
    struct slice text = table_parameter(&call->parameters, SLICE("$filter"));

    return table_options_check(call, err) && table_selection_parse(call, &q->selection, err) &&
           table_top_parse(call, &q->top, err) &&
           (slice_trim(text).len == 0 || table_filter_parse(text, call->arena, &q->filter, err));
}

static void answer_begin(struct querying *q)
{
    BUF_APPEND(q->body, "{");
    if (q->shape.minimal) {
        BUF_APPEND(q->body, "\"odata.metadata\":\"");
        buf_append_slice(q->body, q->shape.root);
        BUF_APPEND(q->body, "/$metadata#");
        buf_append_slice(q->body, q->space.name);
        BUF_APPEND(q->body, "\",");
    }
    BUF_APPEND(q->body, "\"value\":[");
}

/* Both keys are given: as fast as a get. What is not there, or may not be seen, is no row. */
static bool point_run(struct querying *q, const struct table_keys *keys, struct error *err)
{
    struct table_call *call = q->call;
    struct item_operation op = {.space = &q->space.space,
                                .meters = call->services->meters,
                                .arena = call->arena,
                                .verb = ITEM_READ,
                                .key = table_write_key(&q->space, keys),
                                .id = table_write_id(keys),
                                .metered = q->metered};
    const struct item *item = &op.result.item;
    struct error outside;
    bool found;

    if (!table_identity_check_keys(&call->identity, keys, &outside))
        return true;
    found = item_operation_run(&op, err);
    q->metered = op.metered;
    table_call_charged(call, &q->metered);
    if (found || front_traffic_is_refusal(err))
        front_traffic_item(
            call->services, q->space.container,
            &(struct front_traffic_item){.kind = ADVISE_READ,
                                         .key = &op.key,
                                         .id = &op.id,
                                         .document = item->document,
                                         .cru = q->metered.charge_cru,
                                         .attempt = table_call_attempt(call, found ? NULL : err)});
    if (!found)
        return err->code == ERROR_ITEM_MISSING;
    q->rows = 1;
    table_entity_append(&q->shape, item->document, table_entity_ticks(&item->header), false,
                        q->body);
    return true;
}

static bool page_run(struct querying *q, struct buf *lines, struct error *err)
{
    struct table_call *call = q->call;
    struct query_request request = {
        .space = &q->space.space,
        .container = container_rid(q->space.container),
        .call = &q->metered,
        .limits = {.rows_max = q->top, .bytes_max = PAGE_BYTES_MAX},
        .row = row_append,
        .self = q,
    };
    struct query_page page;
    bool done;

    if (!plan_make(q, err) || !continuation_open(q, &request.continuation, err))
        return false;
    done = front_query_run(&call->front, &q->plan, &request, &page, err);
    table_call_charged(call, &q->metered);
    if (!request.continuation.len && (done || front_traffic_is_refusal(err)))
        front_traffic_query(
            call->services, q->space.container,
            &(struct front_traffic_query){.plan = &q->plan,
                                          .cru = q->metered.charge_cru,
                                          .bytes = done ? q->body->len : 0,
                                          .text = call->http->target,
                                          .attempt = table_call_attempt(call, done ? NULL : err)});
    if (!done)
        return false;
    if (page.continuation.len)
        continuation_answer(q, page.continuation, lines);
    return true;
}

static bool query_answer(struct querying *q, struct buf *lines, struct error *err)
{
    struct table_keys keys;
    bool done;

    q->metered = table_call_metered(q->call);
    answer_begin(q);
    if (q->top == 0) { /* nothing is asked for, and nothing is left to ask for */
        BUF_APPEND(q->body, "]}");
        q->call->charge_cru = cost_metadata(COST_METADATA_READ);
        return true;
    }
    done = q->filter && table_filter_is_point(q->filter, &keys) ? point_run(q, &keys, err)
                                                                : page_run(q, lines, err);
    table_call_charged(q->call, &q->metered);
    BUF_APPEND(q->body, "]}");
    return done;
}

bool table_query_run(struct table_call *call, struct slice table, struct buf *lines,
                     struct buf *body, struct error *err)
{
    struct querying q = {.call = call, .body = body};
    bool done;

    if (!parameters_read(&q, err) || !table_space_open(call, table, &q.space, err))
        return false;
    if (!table_space_look(call, &q.space, err)) {
        table_space_close(&q.space);
        return false;
    }
    q.shape = table_call_shape(call, &q.space);
    q.shape.selection = q.selection;
    done = query_answer(&q, lines, err);
    if (!call->batch) {
        size_t count;
        const struct partition_span *spans = partition_map_spans(q.space.space.map, &count);

        table_space_served(call, &q.space, spans, count);
    }
    table_space_close(&q.space);
    if (done && buf_overflowed(body))
        return error_set(err, ERROR_TOO_LARGE, "a page is larger than an answer may be");
    return done;
}

bool table_entities_query(struct table_call *call, struct error *err)
{
    call->status = 200;
    return table_query_run(call, call->route.table, &call->lines, &call->body, err);
}
