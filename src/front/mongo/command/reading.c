#include "front/mongo/command/reading.h"

#include "document/order.h"
#include "front/kit/queries.h"
#include "front/mongo/command/indexes.h"
#include "front/mongo/command/sort.h"
#include "front/mongo/projection/projection.h"
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

static uint64_t fingerprint_of(const struct mongo_reading *reading)
{
    const struct slice parts[] = {reading->filter, reading->projection, reading->sort};
    uint64_t print = reading->skip * 31 + reading->limit + (uint64_t)reading->shape;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        print = XXH3_64bits_withSeed(parts[i].len ? parts[i].data : (const uint8_t *)"",
                                     parts[i].len, print * 31 + parts[i].len);
    return print;
}

static const struct slice everything = SLICE("\5\0\0\0\0"); /* {} */

static bool is_given(struct slice document)
{
    return document.data && document_count(document);
}

static bool hint_read(struct mongo_reading *reading, struct arena *arena, struct error *err);

/* One row, with the number of documents. */
static void count_plan(struct mongo_reading *reading, struct query_build *build)
{
    struct query_aggregate_call *calls = ARENA_NEW(build->arena, struct query_aggregate_call);

    *calls = (struct query_aggregate_call){
        .kind = QUERY_COUNT, .argument = query_constant(build, document_int32(1)), .slot = 1};
    reading->plan.query.aggregates = calls;
    reading->plan.query.aggregate_count = 1;
    reading->plan.query.order = NULL;
    reading->plan.query.order_count = 0;
    reading->plan.query.offset = 0;
    reading->plan.query.limit = UINT64_MAX;
    reading->plan.query.select = query_variable(build, 1);
    reading->plan.slot_count = 2;
    reading->plan.fingerprint ^= UINT64_C(0xC0);
}

static bool select_compile(struct mongo_reading *reading, struct query_build *build,
                           const struct query_expression **ret_select, struct error *err)
{
    const struct query_kind *kind =
        reading->shape == MONGO_SHAPE_DOCUMENT ? &document_kind : &version_kind;
    const struct query_expression *item = query_variable(build, 0);
    const struct mongo_projection *projection;

    if (is_given(reading->projection)) {
        assert(reading->shape == MONGO_SHAPE_DOCUMENT);
        if (!mongo_projection_compile(reading->projection, NULL, reading->match, build, &projection,
                                      err))
            return false;
        if (!mongo_projection_is_whole(projection)) {
            *ret_select = mongo_projection_expression(projection, build);
            return true;
        }
    }
    *ret_select = query_node(build, kind, sizeof(struct query_expression), &item, 1);
    return true;
}

bool mongo_reading_prepare(struct mongo_reading *reading, struct arena *arena, struct error *err)
{
    const struct mongo_match_options options = {.collation = reading->collation};
    struct query_build build = {
        .arena = arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_MONGO};
    const struct query_expression *filter = NULL, *select;
    const struct query_order *order;
    size_t order_count;

    if (!hint_read(reading, arena, err) ||
        !mongo_match_parse(reading->filter.data ? reading->filter : everything, &options, &build,
                           &reading->match, err))
        return false;
    if (is_given(reading->filter))
        filter = mongo_match_expression(reading->match, &build);
    if (!select_compile(reading, &build, &select, err) ||
        !mongo_sort_compile(reading->sort, &build, &order, &order_count, err))
        return false;
    reading->plan = (struct query_plan){.query = {.filter = filter,
                                                  .select = select,
                                                  .order = order_count ? order : NULL,
                                                  .order_count = order_count,
                                                  .offset = reading->skip,
                                                  .limit = reading->limit},
                                        .slot_count = 1,
                                        .order = DOCUMENT_ORDER_MONGO,
                                        .order_free = true,
                                        .fingerprint = fingerprint_of(reading)};
    if (reading->counts)
        count_plan(reading, &build);
    if (build.failed)
        *err = build.error;
    return !build.failed;
}

/* --- Hints ----------------------------------------------------------------------------------- */

bool mongo_reading_is_hinted(const struct mongo_reading *reading)
{
    return reading->hint.type == DOCUMENT_STRING || reading->hint.type == DOCUMENT_OBJECT;
}

static bool hint_refuse(struct error *err)
{
    return mongo_error_set(err, MONGO_BAD_VALUE,
                           "error processing query: planner returned error :: caused by :: hint "
                           "provided does not correspond to an existing index");
}

/* The index that the hint names. _id is what is done without one. */
static bool hint_find(struct mongo_call *call, const struct mongo_collection *collection,
                      const struct mongo_reading *reading, struct query_hint *ret_hint,
                      struct error *err)
{
    size_t count;
    struct slice *shown;

    *ret_hint = (struct query_hint){reading->natural ? QUERY_HINT_SCAN : QUERY_HINT_NONE};
    if (reading->natural || !mongo_reading_is_hinted(reading))
        return true;
    shown = mongo_indexes_shown(call, collection, &count);
    for (size_t i = 0; i < count; i++) {
        struct document_value name = document_undefined(), key = document_undefined();
        const struct index_definition *index;

        (void)document_find(shown[i], SLICE("name"), &name);
        (void)document_find(shown[i], SLICE("key"), &key);
        if (reading->hint.type == DOCUMENT_STRING
                ? !slice_equal(name.text, reading->hint.text)
                : document_compare(DOCUMENT_ORDER_MONGO, &key, &reading->hint) != 0)
            continue;
        if (i == 0)
            return true;
        index = definition_index(definition_fields(container_definition(collection->container)),
                                 name.text);
        if (!index || index->state != INDEX_READY || index->hidden)
            continue;
        *ret_hint = (struct query_hint){QUERY_HINT_INDEX, index->name};
        return true;
    }
    return hint_refuse(err);
}

/* {$natural: 1} is a scan, and {$natural: -1} one that is turned around. */
static bool hint_read(struct mongo_reading *reading, struct arena *arena, struct error *err)
{
    struct document_value natural;
    CLEANUP(buf_done) struct buf sort;
    size_t begin;
    double number;

    buf_init(&sort, BUF_DEFAULT_MAX);
    if (reading->hint.type == DOCUMENT_UNDEFINED || reading->hint.type == DOCUMENT_NULL ||
        reading->hint.type == 0)
        return true;
    if (!mongo_reading_is_hinted(reading))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE, "Hint must be a string or an object");
    if (reading->hint.type == DOCUMENT_STRING ||
        !document_find(reading->hint.document, SLICE("$natural"), &natural))
        return true;
    if (!document_to_double(&natural, &number) || (number != 1 && number != -1))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "$natural hint must be a number of 1 or -1");
    reading->natural = true;
    if (number > 0 || is_given(reading->sort) || reading->counts)
        return true;
    begin = document_begin(&sort);
    document_append_int32(&sort, SLICE("$natural"), -1);
    document_end(&sort, begin);
    reading->sort = arena_copy(arena, buf_slice(&sort));
    return true;
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
        .explain = page->explain,
        .row = page->row,
        .self = page->self,
    };
    struct query_page done;
    bool fine;

    if (!hint_find(call, collection, reading, &request.hint, err))
        return false;
    fine = front_query_run(&call->front, &reading->plan, &request, &done, err);
    mongo_call_charged(call, &metered);
    if (!fine)
        return false;
    page->continuation = done.continuation;
    page->explained = done.explain;
    page->metrics = done.metrics;
    return true;
}

void mongo_reading_by_creation(struct mongo_reading *reading, struct arena *arena)
{
    struct query_build build = {
        .arena = arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_MONGO};

    reading->plan.query.order = mongo_sort_by_creation(&build);
    reading->plan.query.order_count = 1;
    reading->plan.fingerprint ^= UINT64_C(0xC1);
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
