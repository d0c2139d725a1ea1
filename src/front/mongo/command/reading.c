#include "front/mongo/command/reading.h"

#include "front/kit/queries.h"
#include "front/mongo/command/filter.h"
#include "query/expression/item.h"

#include <xxhash.h>

/* --- The row --------------------------------------------------------------------------------- */

/* The stored document: without the system properties that slot 0 has for other languages. */
static bool document_evaluate(const struct query_expression *expression UNUSED,
                              struct query_context *context, struct document_value *ret_value,
                              struct error *err UNUSED)
{
    const struct query_item *bound = context->slots[0].hidden_self;

    *ret_value = bound ? document_object(bound->item->document) : document_undefined();
    return true;
}

static bool version_evaluate(const struct query_expression *expression UNUSED,
                             struct query_context *context, struct document_value *ret_value,
                             struct error *err)
{
    const struct query_item *bound = context->slots[0].hidden_self;
    struct buf *out = &context->scratch;
    size_t mark = query_build_begin(context), begin;
    struct document_value document;
    char etag[ITEM_ETAG_LEN];

    *ret_value = document_undefined();
    if (!bound)
        return true;
    if (!query_work(context, bound->item->document.len >> 4, err))
        return false;
    document = document_object(bound->item->document);
    item_etag(&bound->item->header, etag);
    begin = document_begin(out);
    document_append(out, SLICE("d"), &document);
    document_append_string(out, SLICE("e"), slice_of(etag, sizeof etag));
    return query_build_close(context, mark, begin, DOCUMENT_OBJECT, ret_value, err);
}

static const struct query_kind document_kind = {"document", document_evaluate, QUERY_STABLE};
static const struct query_kind version_kind = {"version", version_evaluate, QUERY_STABLE};

/* --- The plan -------------------------------------------------------------------------------- */

bool mongo_reading_prepare(struct mongo_reading *reading, struct arena *arena, struct error *err)
{
    struct query_build build = {
        .arena = arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_MONGO};
    const struct query_expression *item = query_variable(&build, 0), *filter = NULL;
    const struct query_expression *select =
        query_node(&build,
                   reading->shape == MONGO_SHAPE_DOCUMENT ? &document_kind : &version_kind,
                   sizeof(struct query_expression), &item, 1);

    if (!mongo_filter_compile(reading->filter, &build, &filter, err))
        return false;
    reading->plan = (struct query_plan){
        .query = {.filter = filter,
                  .select = select,
                  .offset = reading->skip,
                  .limit = reading->limit},
        .slot_count = 1,
        .order = DOCUMENT_ORDER_MONGO,
        .order_free = true,
        .fingerprint = XXH3_64bits_withSeed(
            reading->filter.len ? reading->filter.data : (const uint8_t *)"", reading->filter.len,
            reading->skip * 31 + reading->limit + (uint64_t)reading->shape)};
    if (build.failed)
        *err = build.error;
    return !build.failed;
}

bool mongo_reading_page(struct mongo_call *call, const struct mongo_collection *collection,
                        const struct mongo_reading *reading, struct mongo_page *page,
                        struct error *err)
{
    struct metered_call metered = mongo_call_metered(call);
    struct query_request request = {
        .space = &collection->space,
        .container = container_rid(collection->container),
        .call = &metered,
        .continuation = page->continuation,
        .limits = {.rows_max = page->rows_max,
                   .bytes_max = page->bytes_max,
                   .deadline_ms = page->deadline_ms},
        .order_unindexed = true,
        .row = page->row,
        .self = page->self,
    };
    struct query_page done;
    bool fine = front_query_run(&call->front, &reading->plan, &request, &done, err);

    mongo_call_charged(call, &metered);
    if (fine)
        page->continuation = done.continuation;
    return fine;
}

bool mongo_deadline(const struct mongo_call *call, int64_t *ret_deadline_ms, struct error *err)
{
    struct document_value value;
    int64_t ms;

    *ret_deadline_ms = 0;
    if (!document_find(call->message.body, SLICE("maxTimeMS"), &value) ||
        value.type == DOCUMENT_NULL || value.type == DOCUMENT_UNDEFINED)
        return true;
    if (!document_to_int64(&value, &ms))
        return mongo_error_set(err, MONGO_BAD_VALUE, "maxTimeMS must be a whole number");
    if (ms < 0 || ms > INT32_MAX)
        return mongo_error_set(err, MONGO_BAD_VALUE, "%lld value for maxTimeMS is out of range",
                               (long long)ms);
    if (ms)
        *ret_deadline_ms = clock_read_monotonic_ms(call->services->clock) + ms;
    return true;
}
