#include "front/mongo/command/reading.h"

#include "document/order.h"
#include "front/kit/queries.h"
#include "front/kit/references.h"
#include "front/mongo/command/explain.h"
#include "front/mongo/command/geo_index.h"
#include "front/mongo/command/index_uses.h"
#include "front/mongo/command/javascript.h"
#include "front/mongo/command/told.h"
#include "front/mongo/command/virtual.h"
#include "front/mongo/expression/javascript.h"
#include "front/mongo/index/spec.h"
#include "front/mongo/pipeline/sort.h"
#include "front/mongo/projection/projection.h"
#include "query/expression/item.h"
#include "throughput/cost.h"

#include <xxhash.h>

/* --- The row --------------------------------------------------------------------------------- */

/* The stored document: without the system properties that slot 0 has for other languages. */
static bool document_evaluate(const struct query_expression *expression UNUSED,
                              struct query_context *context, struct document_value *ret_value,
                              struct error *err UNUSED)
{
    const struct query_item *bound = context->slots[0].hidden_self;

    *ret_value = bound ? document_object(bound->item->document) : context->slots[0].value;
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
    const struct slice parts[] = {reading->filter, reading->projection, reading->sort, reading->let,
                                  reading->collation};
    uint64_t print = reading->skip * 31 + reading->limit + (uint64_t)reading->shape +
                     ((uint64_t)reading->return_key << 8) +
                     ((uint64_t)reading->show_record_id << 9);

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
    const struct mongo_match_options options = {.collator = reading->collator,
                                                .expression = mongo_expression_hook,
                                                .expression_self = &reading->expressions};
    const struct query_expression *item = query_variable(build, 0);
    const struct mongo_projection *projection;

    if (is_given(reading->projection)) {
        assert(reading->shape == MONGO_SHAPE_DOCUMENT);
        if (!mongo_projection_compile(reading->projection, &options, reading->match, build,
                                      &projection, err))
            return false;
        if (!mongo_projection_is_whole(projection)) {
            *ret_select = mongo_projection_expression(projection, build);
            return true;
        }
    }
    *ret_select = query_node(build, kind, sizeof(struct query_expression), &item, 1);
    return true;
}

/* Are documents found by _id where the plan walks no index: is it what is asked for, or by? */
static bool is_by_id(const struct mongo_reading *reading)
{
    const struct document_value *hint = &reading->hint;
    struct document_value value;

    return (hint->type == DOCUMENT_STRING && slice_equal(hint->text, MONGO_INDEX_ID)) ||
           (hint->type == DOCUMENT_OBJECT && document_find(hint->document, SLICE("_id"), &value)) ||
           (is_given(reading->filter) && document_find(reading->filter, SLICE("_id"), &value));
}

/* What a row is: with returnKey an index key, and the projection does not count. */
static bool row_compile(struct mongo_reading *reading, struct query_build *build,
                        const struct query_expression **ret_select, struct error *err)
{
    if (!select_compile(reading, build, ret_select, err))
        return false;
    if (reading->return_key)
        *ret_select = mongo_key_expression(is_by_id(reading), build);
    if (reading->show_record_id)
        *ret_select = mongo_record_id_expression(*ret_select, build);
    return true;
}

/* The filter, and that an entry is within the bounds; NULL: there is neither. */
static const struct query_expression *filter_compile(const struct mongo_reading *reading,
                                                     struct query_build *build)
{
    const struct query_expression *filter =
        is_given(reading->filter) ? mongo_match_expression(reading->match, build) : NULL;
    const struct query_expression *bounds =
        reading->bounds ? mongo_key_bounds_expression(reading->bounds, build) : NULL;

    return filter && bounds ? query_and(build, filter, bounds) : bounds ? bounds : filter;
}

const struct mongo_variable *mongo_cluster_time_variable(uint64_t time, struct query_build *build)
{
    const struct document_value value = {.type = DOCUMENT_TIMESTAMP, .timestamp = time};
    struct mongo_variable *variable = ARENA_NEW(build->arena, struct mongo_variable);

    *variable = (struct mongo_variable){SLICE("CLUSTER_TIME"), query_constant(build, value)};
    return variable;
}

bool mongo_command_let(struct slice let, uint64_t cluster_time, struct query_build *build,
                       struct mongo_expression_options *ret_options, struct error *err)
{
    struct mongo_expression_options outer = {.collator = ret_options->collator};
    const struct mongo_variable *variables;
    size_t count;

    if (cluster_time) {
        outer.variables = mongo_cluster_time_variable(cluster_time, build);
        outer.variable_count = 1;
    }
    if (!mongo_expression_let(let, &outer, build, &variables, &count, err))
        return false;
    for (size_t i = 0; i < count; i++)
        if (variables[i].value->slots_used)
            return mongo_error_set(err, 4890500,
                                   "Command let Expression tried to access a field, but this is "
                                   "not allowed because Command let expressions run before the "
                                   "query examines any documents.");
    *ret_options = (struct mongo_expression_options){
        .variables = variables, .variable_count = count, .collator = outer.collator};
    return true;
}

bool mongo_reading_prepare(const struct mongo_call *call, struct mongo_reading *reading,
                           struct arena *arena, struct error *err)
{
    struct mongo_match_options options = {.expression = mongo_expression_hook,
                                          .expression_self = &reading->expressions,
                                          .where = mongo_where_hook,
                                          .near = true,
                                          .searches = true,
                                          .text = reading->text};
    struct query_build build = {
        .arena = arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_MONGO};
    const struct query_expression *select;
    const struct query_order *order;
    size_t order_count;

    if (!is_given(reading->collation) && reading->collation_default.data)
        reading->collation = arena_copy(arena, reading->collation_default);
    reading->collation_default = SLICE_NONE; /* it goes with the collection */
    reading->text = NULL;
    if (!mongo_reading_hint(reading, arena, err) ||
        !mongo_collator_find(reading->collation, &reading->collator, err))
        return false;
    options.collator = reading->expressions.collator = reading->collator;
    if (!mongo_command_let(reading->let, reading->cluster_time, &build, &reading->expressions,
                           err) ||
        !mongo_match_parse(reading->filter.data ? reading->filter : everything, &options, &build,
                           &reading->match, err))
        return false;
    if (!row_compile(reading, &build, &select, err) ||
        !mongo_sort_compile(reading->sort, reading->collator, 0, &build, &order, &order_count, err))
        return false;
    reading->near = mongo_match_near(reading->match);
    if (reading->near && !order_count) {
        order = mongo_near_order(reading->near, 0, &build);
        order_count = 1;
    }
    reading->plan = (struct query_plan){.query = {.filter = filter_compile(reading, &build),
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
    reading->script = build.script;
    if (build.failed) {
        *err = build.error;
        return false;
    }
    return mongo_javascript_check(call, build.script, err);
}

/* --- Hints ----------------------------------------------------------------------------------- */

bool mongo_reading_is_hinted(const struct mongo_reading *reading)
{
    return reading->hint.type == DOCUMENT_STRING || reading->hint.type == DOCUMENT_OBJECT;
}

static bool plan_killed(struct error *err)
{
    return mongo_error_set(err, MONGO_QUERY_PLAN_KILLED,
                           "query plan killed :: caused by :: the index it goes by was dropped, "
                           "or has become another");
}

/* The index that the hint names. _id is what is done without one. */
static bool hint_find(struct mongo_call *call, const struct mongo_collection *collection,
                      const struct mongo_reading *reading, struct query_hint *ret_hint,
                      struct error *err)
{
    const struct index_definition *index;

    *ret_hint = (struct query_hint){reading->natural ? QUERY_HINT_SCAN : QUERY_HINT_NONE};
    if (reading->natural || !mongo_reading_is_hinted(reading))
        return true;
    if (!mongo_hint_find(call, collection, &reading->hint, &index, err))
        return false;
    if (index)
        *ret_hint = (struct query_hint){QUERY_HINT_INDEX, index->name};
    if (!reading->bounds || !index)
        return true;
    if (!index_definition_same(index, reading->bounds->index))
        return plan_killed(err);
    ret_hint->bounds = reading->bounds->range;
    return true;
}

/* {$natural: 1} is a scan, and {$natural: -1} one that is turned around. */
bool mongo_reading_hint(struct mongo_reading *reading, struct arena *arena, struct error *err)
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

/* Rows that the server has made just now: a page is of those of now, behind as many as were seen.
 */
static bool virtual_page(struct mongo_call *call, const struct mongo_virtual *made,
                         const struct mongo_reading *reading, struct mongo_page *page,
                         struct error *err)
{
    struct query_request request = {.continuation = page->continuation,
                                    .limits = {.rows_max = page->rows_max,
                                               .bytes_max = page->bytes_max,
                                               .deadline_ms = page->deadline_ms,
                                               .cancelled = call->cancelled},
                                    .arena = call->arena,
                                    .udf = reading->script ? mongo_javascript_host(call)
                                                           : (struct query_udf_host){0},
                                    .row = page->row,
                                    .self = page->self};
    struct mongo_rows rows;
    struct query_page done;

    if (!mongo_virtual_rows(call, made, &rows, err) ||
        !query_run_documents(&reading->plan, rows.list, rows.count, &request, &done, err))
        return false;
    call->charge_cru += cost_metadata(COST_METADATA_READ);
    page->continuation = done.continuation;
    return true;
}

/* --- Other collections ----------------------------------------------------------------------- */

/* Few enough to be walked for each batch of rows, where they are not found by key. */
enum { COPY_DOCUMENTS_MAX = 1000 };

struct other {
    struct slice name;
    struct mongo_collection collection;
    struct query_copy_taken taken; /* of a reference container; copy NULL: it is read where it is */
    struct other *next;
};

struct others {
    const struct mongo_call *call;
    struct other *first;
    int64_t filled_cru; /* what filling copies has cost */
};

static void others_close(struct others *others)
{
    for (struct other *other = others->first; other; other = other->next) {
        query_copy_unref(other->taken.copy);
        mongo_collection_close(&other->collection);
    }
}
CLEANUP_VALUE_FN(struct others, others_close)

/* A small reference container is looked at in its copy; not in a transaction, which has a moment of
 * its own. */
static bool other_take(struct others *others, struct other *other, struct error *err)
{
    const struct front_call *call = &others->call->front;
    const struct definition_fields *fields = other->collection.space.definition;
    struct item_space space = other->collection.space;
    size_t count;

    if (!other->collection.container || !fields->reference ||
        fields->identity != DEFINITION_IDENTITY_MONGO || call->moment || !call->may_block)
        return true;
    space.reading = NULL; /* a copy is of the primaries, whatever this request reads from */
    if (!front_reference_take(call, other->collection.container, &space, &other->taken, err)) {
        if (err->code != ERROR_REFERENCE_FULL)
            return false;
        *err = (struct error){0}; /* it has become larger than copies may be: it is read itself */
        return true;
    }
    others->filled_cru += other->taken.filled_cru;
    if (query_copy_documents(other->taken.copy, &count))
        return true;
    query_copy_unref(other->taken.copy);
    other->taken.copy = NULL;
    return true;
}

/* What a copy gives; false: it is too large to be walked, and an index serves better. */
static bool other_copied(const struct query_copy *copy, struct query_request *request)
{
    const struct slice *documents;
    size_t count;

    if (!request->wanted || !query_copy_narrow(copy, request->wanted, &documents, &count)) {
        documents = query_copy_documents(copy, &count);
        if (count > COPY_DOCUMENTS_MAX)
            return false;
    }
    request->documents = documents;
    request->document_count = count;
    return true;
}

/* Who finds a copy out of date pays for the next. */
static void others_pay(const struct others *others, const struct mongo_collection *collection,
                       struct metered_call *metered)
{
    size_t count;

    if (!others->filled_cru || !collection->container)
        return;
    metering_charge(others->call->services->meters,
                    partition_map_spans(collection->space.map, &count)->id, others->filled_cru);
    metered->charge_cru = cost_add(metered->charge_cru, others->filled_cru);
}

/* container is "database.collection"; empty: none. */
static bool other_open(void *self, struct slice container, struct query_request *request,
                       struct error *err)
{
    struct others *others = self;
    struct other *other = others->first;
    struct mongo_namespace name;

    request->space = NULL;
    request->documents = NULL;
    request->document_count = 0;
    request->hint = (struct query_hint){0}; /* it is of the collection that is read first */
    if (!slice_split(container, '.', &name.database, &name.collection))
        return true;
    while (other && !slice_equal(other->name, container))
        other = other->next;
    if (!other) {
        struct mongo_collection collection = {0};

        if (!mongo_collection_open(others->call, &name, &collection, err))
            return false;
        other = ARENA_NEW(others->call->arena, struct other);
        *other = (struct other){.name = container, .collection = collection, .next = others->first};
        others->first = other;
        if (!other_take(others, other, err))
            return false;
    }
    if (other->collection.made)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "stages that read %.*s, which the server makes, are not offered",
                               SLICE_ARG(container));
    if (!other->collection.container)
        return true;
    if (other->taken.copy && other_copied(other->taken.copy, request))
        return true;
    request->space = &other->collection.space;
    request->container = container_rid(other->collection.container);
    /* a transaction may have come to other nodes with it */
    return !others->call->front.moment ||
           others->call->front.moment->take(others->call->front.moment->self, request, err);
}

static void index_used(void *self, const struct rid *container,
                       const struct index_definition *index)
{
    mongo_index_uses_add(self, container, index);
}

bool mongo_reading_page(struct mongo_call *call, const struct mongo_collection *collection,
                        const struct mongo_reading *reading, struct mongo_page *page,
                        struct error *err)
{
    CLEANUP(others_close) struct others others = {.call = call};
    struct metered_call metered = mongo_call_metered(call);
    struct query_request request = {
        .space = collection->container ? &collection->space : NULL,
        .call = &metered,
        .continuation = page->continuation,
        .limits = {.rows_max = page->rows_max,
                   .bytes_max = page->bytes_max,
                   .deadline_ms = page->deadline_ms},
        .order_unindexed = true,
        .explain = page->explain,
        .in_memory = reading->in_memory,
        .tail = reading->tail,
        .other = other_open,
        .other_self = &others,
        .index_used = index_used,
        .index_used_self = call,
        .row = page->row,
        .self = page->self,
    };
    struct query_page done;
    bool fine;

    if (call->explaining && !call->explaining->begun)
        return mongo_explain_reading(call, collection, reading, err);
    if (reading->script)
        request.udf = mongo_javascript_host(call);
    if (collection->made)
        return virtual_page(call, collection->made, reading, page, err);
    if (collection->container) {
        request.container = container_rid(collection->container);
        if (!hint_find(call, collection, reading, &request.hint, err))
            return false;
        if (reading->near && !mongo_geo_index_check(collection, reading->near, err))
            return false;
    }
    fine = front_query_run(&call->front, &reading->plan, &request, &done, err);
    if (!fine && err->code == ERROR_COLD)
        return false; /* of a loop */
    others_pay(&others, collection, &metered);
    mongo_call_charged(call, &metered);
    if (!request.continuation.len)
        mongo_told_reading(call, collection, reading, &metered,
                           fine ? (size_t)done.metrics.row_bytes : 0, fine ? NULL : err);
    /* What a filter or pipeline finds fault with is MongoDB's error: this is of the continuation.
     */
    if (!fine && page->continuation.len && err->code == ERROR_BAD_REQUEST)
        return plan_killed(err);
    if (fine) {
        front_query_observe(call->seen, &done.metrics);
        page->continuation = done.continuation;
        page->explained = done.explain;
        page->metrics = done.metrics;
    } else if (reading->in_memory && err->code == ERROR_QUERY_LIMIT) {
        return mongo_error_set(err, MONGO_NO_DISK_USE_ALLOWED,
                               "Exceeded memory limit, but didn't allow external sort or spilling. "
                               "Pass allowDiskUse:true to opt in.");
    }
    return fine;
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
