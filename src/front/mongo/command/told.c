#include "front/mongo/command/told.h"

#include "front/mongo/command/samples.h"
#include "front/mongo/command/sampling.h"
#include "front/traffic.h"

static struct front_traffic_attempt attempt_of(const struct mongo_call *call,
                                               const struct error *err)
{
    return (struct front_traffic_attempt){.refused = err != NULL,
                                          .wait_ms = err ? call->wait_ms : 0,
                                          .started_ns = call->request->started_ns};
}

/* Is the advisor told of it at all? */
static bool is_told(const struct mongo_call *call, const struct mongo_collection *collection,
                    const struct error *err, bool *ret_named)
{
    *ret_named = false;
    return call->services->traffic && collection->container &&
           (!err || front_traffic_is_refusal(err)) &&
           mongo_sampling_takes(call->mongo->sampling,
                                container_info(collection->container)->number,
                                clock_read_monotonic_ms(call->services->clock), ret_named);
}

/* What an operation on one document asks for. An insert asks for nothing; of what was looked for
 * first, the search was told. */
static void item_sample(const struct mongo_call *call, const struct mongo_collection *collection,
                        const struct item_operation *op)
{
    CLEANUP(buf_done) struct buf filter;
    size_t begin;

    buf_init(&filter, BUF_DEFAULT_MAX);
    if (op->verb == ITEM_CREATE || (call->looked && op->options.if_match.len))
        return;
    begin = document_begin(&filter);
    document_append(&filter, SLICE("_id"), &op->id);
    document_end(&filter, begin);
    mongo_samples_add(call, collection, buf_slice(&filter));
}

/* The first $match of a pipeline. */
static struct slice match_of(struct slice body)
{
    struct document_value pipeline, stage, match;

    if (document_find(body, SLICE("pipeline"), &pipeline) && pipeline.type == DOCUMENT_ARRAY &&
        document_find_index(pipeline.document, 0, &stage) && stage.type == DOCUMENT_OBJECT &&
        document_find(stage.document, SLICE("$match"), &match) && match.type == DOCUMENT_OBJECT)
        return match.document;
    return SLICE_NONE;
}

void mongo_told_item(struct mongo_call *call, const struct mongo_collection *collection,
                     const struct item_operation *op, const struct error *err)
{
    static const enum advise_operation_kind kinds[] = {
        [ITEM_READ] = ADVISE_READ,     [ITEM_CREATE] = ADVISE_CREATE, [ITEM_REPLACE] = ADVISE_PATCH,
        [ITEM_UPSERT] = ADVISE_UPSERT, [ITEM_DELETE] = ADVISE_DELETE, [ITEM_CHANGE] = ADVISE_PATCH,
    };
    bool named;

    if (!is_told(call, collection, err, &named))
        return;
    if (named)
        item_sample(call, collection, op);
    front_traffic_item(call->services, collection->container,
                       &(struct front_traffic_item){.kind = kinds[op->verb],
                                                    .key = &op->key,
                                                    .id = &op->id,
                                                    .document = op->document.data ? op->document
                                                                : op->verb == ITEM_READ && !err
                                                                    ? op->result.item.document
                                                                    : SLICE_NONE,
                                                    .cru = err ? 0 : op->metered.charge_cru,
                                                    .attempt = attempt_of(call, err)});
}

/* "a.b" as the advisor knows it: /a/b. */
static void path_append(struct slice dotted, struct buf *out)
{
    struct slice head, tail;

    while (slice_split(dotted, '.', &head, &tail)) {
        buf_printf(out, "/%.*s", SLICE_ARG(head));
        dotted = tail;
    }
    buf_printf(out, "/%.*s", SLICE_ARG(dotted));
}

/* What the filter names by equality, which looks into arrays, so that no condition of the plan says
 * it. */
static struct slice named_write(const struct mongo_reading *reading, struct arena *arena,
                                struct buf *out)
{
    struct mongo_equality *equalities;
    size_t count, begin;
    struct error ignored;

    if (!reading->match ||
        !mongo_match_equalities(reading->match, arena, &equalities, &count, &ignored))
        return SLICE_NONE;
    begin = document_begin(out);
    for (size_t i = 0; i < count; i++) {
        CLEANUP(buf_done) struct buf path;

        buf_init(&path, BUF_DEFAULT_MAX);
        path_append(equalities[i].path, &path);
        if (!buf_overflowed(&path))
            document_append(out, buf_slice(&path), &equalities[i].value);
    }
    document_end(out, begin);
    return buf_slice(out);
}

void mongo_told_reading(struct mongo_call *call, const struct mongo_collection *collection,
                        const struct mongo_reading *reading, const struct metered_call *metered,
                        size_t bytes, const struct error *err)
{
    CLEANUP(buf_done) struct buf named;
    bool sampled;

    buf_init(&named, BUF_DEFAULT_MAX);
    call->looked = true;
    if (!is_told(call, collection, err, &sampled))
        return;
    if (sampled)
        mongo_samples_add(call, collection,
                          reading->filter.data ? reading->filter : match_of(call->message.body));
    front_traffic_query(
        call->services, collection->container,
        &(struct front_traffic_query){.plan = &reading->plan,
                                      .named = named_write(reading, call->arena, &named),
                                      .cru = err ? 0 : metered->charge_cru,
                                      .bytes = bytes,
                                      .text = call->message.body,
                                      .attempt = attempt_of(call, err)});
}
