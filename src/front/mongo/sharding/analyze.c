/* analyzeShardKey and configureQueryAnalyzer: what a shard key would be like, by documents that are
 * looked at and by the operations that the advisor has recorded (advise/).
 *
 * Documents are read as any query reads them, each with the same chance, in the order they were
 * made: so they are charged, bounded and fair to others, and whether values grow with time is seen
 * in passing. */
#include "advise/evaluate.h"
#include "advise/records.h"
#include "document/order.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/reading.h"
#include "front/mongo/command/sampling.h"
#include "front/mongo/sharding/changing.h"
#include "front/mongo/sharding/key.h"
#include "query/value/set.h"

#include <math.h>

enum {
    SAMPLE_SIZE = 10000, /* unless the command says another number */
    SAMPLE_SIZE_MAX = 100000,
    COMMON_VALUES = 5,
    PAGE_ROWS = 1000,
    PAGE_BYTES = 4 * 1024 * 1024,
    SAMPLE_BYTES_MAX = 64 * 1024 * 1024, /* of values that are kept */
};

struct analysis {
    struct slice key;
    struct document_value characteristics, distribution, rate, size;

    struct mongo_call *call;
    struct mongo_shard_key shard_key;
    struct advise_workload *workload;
    struct query_set values; /* of the whole key, as arrays */
    uint64_t *counts;        /* of each */
    size_t capacity;
    uint64_t total; /* documents of the collection */
    uint64_t sampled, bytes, kept_bytes;
    struct document_value last; /* the first field of the document before */
    uint64_t rises, falls;      /* how often it grew from one document to the next, or shrank */
};

/* --- Documents ------------------------------------------------------------------------------- */

static struct document_value value_at(struct slice document, struct slice dotted)
{
    struct document_value value = document_object(document);
    struct slice head, tail, rest = dotted;

    for (bool more = true; more;) {
        more = slice_split(rest, '.', &head, &tail);
        if (value.type != DOCUMENT_OBJECT ||
            !document_find(value.document, more ? head : rest, &value))
            return document_null();
        rest = tail;
    }
    return value;
}

static bool value_count(struct analysis *a, struct slice key, struct error *err)
{
    const struct document_value whole = document_array(key);
    struct document_value copy;
    size_t at = query_set_find(&a->values, &whole);
    bool is_new;

    if (at != SIZE_MAX) {
        a->counts[at]++;
        return true;
    }
    a->kept_bytes += key.len;
    if (a->kept_bytes > SAMPLE_BYTES_MAX)
        return mongo_error_set(err, MONGO_EXCEEDED_MEMORY_LIMIT,
                               "analyzeShardKey: the values of the key take too much memory; use a "
                               "smaller sampleSize");
    if (a->values.count == a->capacity) {
        size_t capacity = 2 * a->capacity + 64;
        uint64_t *counts = ARENA_ARRAY(a->call->arena, uint64_t, capacity);

        if (a->capacity)
            memcpy(counts, a->counts, a->capacity * sizeof *counts);
        a->counts = counts;
        a->capacity = capacity;
    }
    copy = document_array(arena_copy(a->call->arena, key));
    query_set_add(&a->values, &copy, &is_new);
    a->counts[a->values.count - 1] = 1;
    return true;
}

static void growth_note(struct analysis *a, const struct document_value *first)
{
    enum { KEPT_MAX = 256 };
    int order = 0;

    if (a->sampled)
        order = document_compare(DOCUMENT_ORDER_MONGO, first, &a->last);
    a->rises += order > 0;
    a->falls += order < 0;
    if (first->type == DOCUMENT_STRING)
        a->last = document_string(arena_copy(
            a->call->arena, slice_first(first->text, MIN(first->text.len, (size_t)KEPT_MAX))));
    else if (first->type == DOCUMENT_OBJECT || first->type == DOCUMENT_ARRAY)
        a->last = document_null();
    else
        a->last = *first;
}

static bool document_take(void *self, const struct document_value *value, struct error *err)
{
    struct analysis *a = self;
    CLEANUP(buf_done) struct buf key;
    char text[DOCUMENT_INDEX_SIZE];
    struct document_value first = document_null();
    size_t begin;

    buf_init(&key, BUF_DEFAULT_MAX);
    begin = document_begin(&key);
    for (size_t i = 0; i < a->shard_key.count; i++) {
        struct document_value part = value_at(value->document, a->shard_key.names[i]);

        if (i == 0)
            first = part;
        document_append(&key, document_index_key((uint32_t)i, text), &part);
    }
    document_end(&key, begin);
    growth_note(a, &first);
    a->sampled++;
    a->bytes += value->document.len;
    if (a->call->services->traffic && a->workload)
        traffic_item(a->call->services->traffic, a->workload, value->document,
                     (uint32_t)value->document.len, 0);
    return value_count(a, buf_slice(&key), err);
}

static bool total_take(void *self, const struct document_value *value, struct error *err UNUSED)
{
    int64_t number = 0;

    (void)document_to_int64(value, &number);
    *(uint64_t *)self += (uint64_t)number;
    return true;
}

static bool pages_run(struct analysis *a, const struct mongo_collection *collection,
                      const struct mongo_reading *reading, struct mongo_page *page,
                      struct error *err)
{
    if (!mongo_deadline(a->call, &page->deadline_ms, err))
        return false;
    do {
        if (!mongo_reading_page(a->call, collection, reading, page, err))
            return false;
        front_call_breathe(&a->call->front);
    } while (page->continuation.len);
    return true;
}

static bool total_read(struct analysis *a, const struct mongo_collection *collection,
                       struct error *err)
{
    struct mongo_reading reading = {.shape = MONGO_SHAPE_DOCUMENT, .counts = true};
    struct mongo_page page = {
        .rows_max = PAGE_ROWS, .bytes_max = PAGE_BYTES, .row = total_take, .self = &a->total};

    return mongo_reading_prepare(a->call, &reading, a->call->arena, err) &&
           pages_run(a, collection, &reading, &page, err);
}

/* So many of them as are asked for, by chance. */
static bool sample_read(struct analysis *a, const struct mongo_collection *collection, double rate,
                        struct error *err)
{
    struct mongo_reading reading = {.shape = MONGO_SHAPE_DOCUMENT, .limit = SAMPLE_SIZE_MAX};
    struct mongo_page page = {
        .rows_max = PAGE_ROWS, .bytes_max = PAGE_BYTES, .row = document_take, .self = a};
    CLEANUP(buf_done) struct buf filter;
    size_t begin;

    buf_init(&filter, BUF_DEFAULT_MAX);
    begin = document_begin(&filter);
    document_append_double(&filter, SLICE("$sampleRate"), rate);
    document_end(&filter, begin);
    if (rate < 1)
        reading.filter = arena_copy(a->call->arena, buf_slice(&filter));
    if (!mongo_reading_prepare(a->call, &reading, a->call->arena, err))
        return false;
    mongo_reading_by_creation(&reading, a->call->arena);
    return pages_run(a, collection, &reading, &page, err);
}

/* --- keyCharacteristics ---------------------------------------------------------------------- */

/* Is there a unique index of exactly these fields, or is _id the key? */
static bool is_unique(const struct analysis *a, const struct mongo_collection *collection)
{
    const struct definition_fields *fields =
        definition_fields(container_definition(collection->container));

    if (a->shard_key.count == 1 && slice_equal(a->shard_key.names[0], SLICE("_id")))
        return true;
    for (size_t i = 0; i < fields->index_count; i++) {
        const struct index_definition *index = fields->indexes[i];
        size_t agreed = 0;

        if (index->unique == INDEX_UNIQUE_NOT || index->part_count != a->shard_key.count ||
            index->filter_count || index->sparse || index->state != INDEX_READY)
            continue;
        for (size_t part = 0; part < index->part_count; part++)
            agreed += mongo_path_is_called(&index->parts[part].path, a->shard_key.names[part]);
        if (agreed == index->part_count)
            return true;
    }
    return false;
}

static void common_append(const struct analysis *a, struct buf *out)
{
    size_t list = document_append_array_begin(out, SLICE("mostCommonValues"));
    uint64_t before = UINT64_MAX;
    size_t before_at = 0;
    char text[DOCUMENT_INDEX_SIZE];

    for (uint32_t n = 0; n < COMMON_VALUES && n < a->values.count; n++) {
        size_t best = SIZE_MAX, entry, value;

        for (size_t i = 0; i < a->values.count; i++) {
            bool behind = a->counts[i] < before || (a->counts[i] == before && i > before_at);

            if ((n == 0 || behind) && (best == SIZE_MAX || a->counts[i] > a->counts[best]))
                best = i;
        }
        if (best == SIZE_MAX)
            break;
        before = a->counts[best];
        before_at = best;
        entry = document_append_object_begin(out, document_index_key(n, text));
        value = document_append_object_begin(out, SLICE("value"));
        for (size_t i = 0; i < a->shard_key.count; i++) {
            struct document_value part;

            if (document_find_index(a->values.values[best].document, i, &part))
                document_append(out, a->shard_key.names[i], &part);
        }
        document_end(out, value);
        document_append_int64(out, SLICE("frequency"), (int64_t)a->counts[best]);
        document_end(out, entry);
    }
    document_end(out, list);
}

/* Of values that come in the order their documents were made in, nearly every step goes one way. */
static void monotonicity_append(const struct analysis *a, struct buf *out)
{
    uint64_t steps = a->rises + a->falls;
    double lean = steps ? ((double)a->rises - (double)a->falls) / (double)steps : 0;
    size_t part = document_append_object_begin(out, SLICE("monotonicity"));

    if (!a->shard_key.hashed && steps)
        document_append_double(out, SLICE("recordIdCorrelationCoefficient"), lean);
    document_append_string(
        out, SLICE("type"),
        a->shard_key.hashed || fabs(lean) < 0.7
            ? (steps || a->shard_key.hashed ? SLICE("not monotonic") : SLICE("unknown"))
            : SLICE("monotonic"));
    document_end(out, part);
}

static void characteristics_append(const struct analysis *a,
                                   const struct mongo_collection *collection)
{
    struct buf *out = &a->call->reply;
    size_t part = document_append_object_begin(out, SLICE("keyCharacteristics"));

    document_append_int64(out, SLICE("numDocsTotal"), (int64_t)a->total);
    document_append_int64(out, SLICE("avgDocSizeBytes"),
                          a->sampled ? (int64_t)(a->bytes / a->sampled) : 0);
    document_append_int64(out, SLICE("numDocsSampled"), (int64_t)a->sampled);
    document_append_bool(out, SLICE("isUnique"), is_unique(a, collection));
    document_append_int64(out, SLICE("numDistinctValues"), (int64_t)a->values.count);
    common_append(a, out);
    monotonicity_append(a, out);
    document_end(out, part);
}

/* --- readDistribution, writeDistribution ------------------------------------------------------ */

struct share {
    uint64_t total, single, multi, everywhere;
};

static void percentage_append(struct buf *out, const char *name, uint64_t some, uint64_t all)
{
    document_append_double(out, slice_of_text(name), all ? 100.0 * (double)some / (double)all : 0);
}

static void share_append(struct buf *out, const char *name, const char *what,
                         const struct share *share)
{
    char text[64];
    size_t part = document_append_object_begin(out, slice_of_text(name)), size;

    size = document_append_object_begin(out, SLICE("sampleSize"));
    document_append_int64(out, SLICE("total"), (int64_t)share->total);
    document_end(out, size);
    if (share->total) {
        snprintf(text, sizeof text, "percentageOfSingleShard%s", what);
        percentage_append(out, text, share->single, share->total);
        snprintf(text, sizeof text, "percentageOfMultiShard%s", what);
        percentage_append(out, text, share->multi, share->total);
        snprintf(text, sizeof text, "percentageOfScatterGather%s", what);
        percentage_append(out, text, share->everywhere, share->total);
    }
    document_end(out, part);
}

static bool key_of(const struct analysis *a, struct advise_key *ret_key)
{
    *ret_key =
        (struct advise_key){.kind = a->shard_key.count > 1 ? ADVISE_HIERARCHICAL : ADVISE_PROPERTY};
    for (size_t i = 0; i < a->shard_key.count && i < ADVISE_KEY_PATHS_MAX; i++) {
        CLEANUP(buf_done) struct buf path;
        struct slice head, tail, rest = a->shard_key.names[i];
        int at;

        buf_init(&path, BUF_DEFAULT_MAX);
        while (slice_split(rest, '.', &head, &tail)) {
            buf_printf(&path, "/%.*s", SLICE_ARG(head));
            rest = tail;
        }
        buf_printf(&path, "/%.*s", SLICE_ARG(rest));
        at = advise_workload_path(a->workload, buf_slice(&path));
        if (at < 0)
            return false;
        ret_key->paths[ret_key->path_count++] = (uint8_t)at;
    }
    return true;
}

/* Who names the whole key, or the first fields of a ranged one, asks some shards; others ask all.
 */
static void operation_count(const struct analysis *a, const struct advise_key *key, bool known,
                            const struct advise_operation *operation, struct share shares[2])
{
    bool write = operation->kind != ADVISE_READ && operation->kind != ADVISE_QUERY;
    bool ranged = known && !a->shard_key.hashed && operation->ranges >> key->paths[0] & 1;
    struct share *share = &shares[write];

    share->total += operation->weight;
    if (operation->kind == ADVISE_CREATE ||
        (known && advise_key_known(key, operation->given) == ADVISE_KNOWN_WHOLE))
        share->single += operation->weight;
    else if (ranged || (known && advise_key_known(key, operation->given) == ADVISE_KNOWN_PREFIX))
        share->multi += operation->weight;
    else
        share->everywhere += operation->weight;
}

static bool records_take(const struct analysis *a, const struct mongo_collection *collection,
                         struct error *err)
{
    const struct front_services *services = a->call->services;
    uint64_t number = container_rid(collection->container).owner;
    CLEANUP(buf_done) struct buf records;

    buf_init(&records, SIZE_MAX / 2);
    if (services->keeper) {
        if (!keeper_copy(services->keeper, number, &records, err))
            return false;
    } else {
        (void)traffic_copy(services->traffic, number, 0, &records);
    }
    (void)records_read(buf_slice(&records), a->workload);
    return true;
}

static bool distributions_append(const struct analysis *a,
                                 const struct mongo_collection *collection, struct error *err)
{
    const struct advise_operation *operations;
    struct share shares[2] = {{0}};
    struct advise_key key;
    size_t count;
    bool known;

    if (!records_take(a, collection, err))
        return false;
    advise_workload_finish(a->workload);
    known = key_of(a, &key);
    operations = advise_workload_operations(a->workload, &count);
    for (size_t i = 0; i < count; i++)
        operation_count(a, &key, known, &operations[i], shares);
    share_append(&a->call->reply, "readDistribution", "Reads", &shares[0]);
    share_append(&a->call->reply, "writeDistribution", "Writes", &shares[1]);
    return true;
}

/* --- The commands ---------------------------------------------------------------------------- */

static bool is_off(const struct document_value *flag)
{
    return flag->type == DOCUMENT_BOOL && !flag->boolean;
}

static bool is_given(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_NULL && value->type != 0;
}

/* The share of documents to look at. */
static bool rate_read(const struct analysis *a, double *ret_rate, struct error *err)
{
    int64_t size = SAMPLE_SIZE;

    if (is_given(&a->rate) && is_given(&a->size))
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "Cannot specify both 'sampleRate' and 'sampleSize'");
    if (is_given(&a->rate)) {
        if (!document_to_double(&a->rate, ret_rate) || !(*ret_rate > 0 && *ret_rate <= 1))
            return mongo_error_set(err, MONGO_BAD_VALUE,
                                   "The 'sampleRate' must be greater than 0 and less or equal to "
                                   "1");
        if (*ret_rate * (double)a->total > SAMPLE_SIZE_MAX)
            *ret_rate = (double)SAMPLE_SIZE_MAX / (double)a->total;
        return true;
    }
    if (is_given(&a->size) && (!document_to_int64(&a->size, &size) || size < 1))
        return mongo_error_set(err, MONGO_BAD_VALUE, "The 'sampleSize' must be greater than 0");
    size = MIN(size, (int64_t)SAMPLE_SIZE_MAX);
    *ret_rate = a->total > (uint64_t)size ? (double)size / (double)a->total : 1;
    return true;
}

static bool analysis_run(struct analysis *a, const struct mongo_collection *collection,
                         struct error *err)
{
    double rate;

    if (!total_read(a, collection, err))
        return false;
    if (!a->total)
        return mongo_error_set(err, MONGO_ILLEGAL_OPERATION,
                               "Cannot analyze the characteristics of a shard key for an empty "
                               "collection");
    if (!rate_read(a, &rate, err) || !sample_read(a, collection, rate, err))
        return false;
    if (!is_off(&a->characteristics))
        characteristics_append(a, collection);
    return is_off(&a->distribution) || distributions_append(a, collection, err);
}

bool mongo_analyze_shard_key(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"key", MONGO_FIELD_OBJECT, offsetof(struct analysis, key), true},
        {"keyCharacteristics", MONGO_FIELD_VALUE, offsetof(struct analysis, characteristics)},
        {"readWriteDistribution", MONGO_FIELD_VALUE, offsetof(struct analysis, distribution)},
        {"sampleRate", MONGO_FIELD_VALUE, offsetof(struct analysis, rate)},
        {"sampleSize", MONGO_FIELD_VALUE, offsetof(struct analysis, size)},
    };
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
    struct analysis a = {.call = call, .workload = workload};
    struct mongo_namespace name;

    if (!mongo_change_namespace(call, &call->target, &name, err) ||
        !mongo_arguments_read(call, fields, ARRAY_LEN(fields), &a, err) ||
        !mongo_shard_key_read(a.key, &a.shard_key, err) ||
        !mongo_collection_open(call, &name, &collection, err))
        return false;
    if (is_off(&a.characteristics) && is_off(&a.distribution))
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "Expected at least one of 'keyCharacteristics' and "
                               "'readWriteDistribution' to be true");
    if (!collection.container)
        return mongo_error_set(err, MONGO_NAMESPACE_NOT_FOUND, "The namespace does not exist");
    if (!is_off(&a.distribution) && !call->services->traffic)
        return mongo_error_set(err, MONGO_ILLEGAL_OPERATION,
                               "analyzeShardKey: operations are not recorded (advise.record); ask "
                               "with readWriteDistribution: false");
    query_set_init(&a.values, DOCUMENT_ORDER_MONGO, call->arena, 0);
    return analysis_run(&a, &collection, err);
}

struct analyzer {
    struct slice mode;
    struct document_value rate;
};

/* What of the operations of a collection is told to the advisor. */
static void configuration_append(struct mongo_call *call, const char *name, bool named, double rate)
{
    size_t part = document_append_object_begin(&call->reply, slice_of_text(name));

    document_append_string(&call->reply, SLICE("mode"),
                           named && rate <= 0 ? SLICE("off") : SLICE("full"));
    if (named && rate > 0)
        document_append_double(&call->reply, SLICE("samplesPerSecond"), rate);
    document_end(&call->reply, part);
}

/* The rate that is asked for; 0: no operation. */
static bool samples_read(const struct analyzer *asked, double *ret_rate, struct error *err)
{
    bool full = slice_equal(asked->mode, SLICE("full"));

    *ret_rate = 0;
    if (!full && !slice_equal(asked->mode, SLICE("off")))
        return mongo_error_set(
            err, MONGO_BAD_VALUE, "Enumeration value '%.*s' for field 'mode' is not a valid value.",
            (int)MIN(asked->mode.len, (size_t)40), (const char *)asked->mode.data);
    if (full != is_given(&asked->rate))
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               full ? "'samplesPerSecond' must be specified when 'mode' is 'full'"
                                    : "'samplesPerSecond' cannot be specified when 'mode' is "
                                      "'off'");
    return !full || (document_to_double(&asked->rate, ret_rate) && *ret_rate > 0) ||
           mongo_error_set(err, MONGO_INVALID_OPTIONS, "'samplesPerSecond' must be greater than 0");
}

bool mongo_configure_query_analyzer(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"mode", MONGO_FIELD_STRING, offsetof(struct analyzer, mode), true},
        {"samplesPerSecond", MONGO_FIELD_VALUE, offsetof(struct analyzer, rate)},
    };
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct analyzer asked = {0};
    struct mongo_namespace name;
    double before = 0, rate;
    uint32_t number;
    bool named;

    if (!mongo_change_namespace(call, &call->target, &name, err) ||
        !mongo_arguments_read(call, fields, ARRAY_LEN(fields), &asked, err) ||
        !mongo_collection_open(call, &name, &collection, err))
        return false;
    if (!collection.container)
        return mongo_error_set(err, MONGO_NAMESPACE_NOT_FOUND, "The namespace does not exist");
    if (!samples_read(&asked, &rate, err))
        return false;
    if (!call->services->traffic)
        return mongo_error_set(err, MONGO_ILLEGAL_OPERATION,
                               "configureQueryAnalyzer: the server was started with "
                               "advise.record=false");
    number = container_info(collection.container)->number;
    named = mongo_sampling_find(call->mongo->sampling, number, &before);
    if (!mongo_sampling_set(call->mongo->sampling, number, rate, err))
        return false;
    configuration_append(call, "oldConfiguration", named, before);
    configuration_append(call, "newConfiguration", true, rate);
    return true;
}
