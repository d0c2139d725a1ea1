/* count and distinct. */
#include "document/order.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/indexes.h"
#include "front/mongo/command/snapshot.h"
#include "front/mongo/command/view.h"
#include "query/value/set.h"
#include "query/value/value.h"

enum {
    PAGE_ROWS = 10000,
    PAGE_BYTES = 16 * 1024 * 1024,
    VALUES_BYTES_MAX = 16 * 1024 * 1024,
    STEPS_MAX = 1000000,
    SHOWN_FIRST = 16
};

static bool is_given(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_NULL;
}

/* --- count ----------------------------------------------------------------------------------- */

struct count {
    struct slice query;
    int64_t limit, skip;
    struct document_value hint;
    struct slice collation;
};

static void number_append(struct buf *out, uint64_t number)
{
    if (number <= INT32_MAX)
        document_append_int32(out, SLICE("n"), (int32_t)number);
    else
        document_append_int64(out, SLICE("n"), (int64_t)number);
}

static bool row_count(void *self, const struct document_value *value UNUSED,
                      struct error *err UNUSED)
{
    ++*(uint64_t *)self;
    return true;
}

static bool row_total(void *self, const struct document_value *value, struct error *err UNUSED)
{
    int64_t number = 0;

    (void)document_to_int64(value, &number);
    *(uint64_t *)self += (uint64_t)number;
    return true;
}

/* Every page of the reading. */
static bool reading_drain(struct mongo_call *call, const struct mongo_collection *collection,
                          const struct mongo_reading *reading, struct mongo_page *page,
                          struct error *err)
{
    if (!mongo_deadline(call, &page->deadline_ms, err))
        return false;
    do
        if (!mongo_reading_page(call, collection, reading, page, err))
            return false;
    while (page->continuation.len);
    return true;
}

static uint64_t limit_of(const struct count *count)
{
    return !count->limit      ? UINT64_MAX
           : count->limit < 0 ? 0 - (uint64_t)count->limit
                              : (uint64_t)count->limit;
}

static bool is_view(const struct error *err, const struct document_value *hint)
{
    return mongo_error_code(err) == MONGO_COMMAND_NOT_SUPPORTED_ON_VIEW && !is_given(hint);
}

/* Every document that a view shows of those the query matches, for the page; blocks. */
static bool view_drain(struct mongo_call *call, const struct mongo_namespace *name,
                       struct slice match, struct slice collation, struct mongo_page *page,
                       struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    const struct document_value filter = document_object(match);
    struct mongo_view_query query = {.name = name, .collation = collation};
    struct mongo_reading reading = {.limit = UINT64_MAX};
    CLEANUP(buf_done) struct buf stages;
    struct mongo_view view;
    uint32_t count = 0;
    size_t begin;

    buf_init(&stages, BUF_DEFAULT_MAX);
    begin = document_begin(&stages);
    if (match.data)
        mongo_stage_append(&stages, &count, "$match", &filter);
    document_end(&stages, begin);
    query.pipeline = buf_slice(&stages);
    return mongo_view_open(call, &query, call->arena, &view, &reading, &collection, err) &&
           reading_drain(call, &collection, &reading, page, err);
}

/* Of a view: what is skipped and limited is that of the number. */
static bool count_in_view(struct mongo_call *call, const struct mongo_namespace *name,
                          const struct count *count, struct error *err)
{
    uint64_t number = 0;
    struct mongo_page page = {
        .rows_max = PAGE_ROWS, .bytes_max = PAGE_BYTES, .row = row_count, .self = &number};

    if (!mongo_call_blocks(call) ||
        !view_drain(call, name, count->query, count->collation, &page, err))
        return false;
    number = number > (uint64_t)count->skip ? number - (uint64_t)count->skip : 0;
    number_append(&call->reply, MIN(number, limit_of(count)));
    return true;
}

/* A negative limit means the same as its amount. Without one the documents need not be seen one by
 * one: entries of an index may do, or the numbers that partitions keep. */
bool mongo_count(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"query", MONGO_FIELD_OBJECT, offsetof(struct count, query)},
        {"limit", MONGO_FIELD_NUMBER, offsetof(struct count, limit)},
        {"skip", MONGO_FIELD_SIZE, offsetof(struct count, skip)},
        {"hint", MONGO_FIELD_VALUE, offsetof(struct count, hint)},
        {"collation", MONGO_FIELD_OBJECT, offsetof(struct count, collation)},
        {"fields", MONGO_FIELD_ANY},
    };
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct mongo_reading reading = {.shape = MONGO_SHAPE_DOCUMENT};
    struct mongo_page page = {.rows_max = PAGE_ROWS, .bytes_max = PAGE_BYTES, .row = row_count};
    struct mongo_namespace name;
    struct count count = {0};
    uint64_t number = 0;

    if (!mongo_call_namespace(call, &name, err) ||
        !mongo_arguments_read(call, fields, ARRAY_LEN(fields), &count, err))
        return false;
    if (!mongo_collection_open(call, &name, &collection, err))
        return is_view(err, &count.hint) && count_in_view(call, &name, &count, err);
    if (mongo_collection_exists(&collection)) {
        reading.filter = count.query;
        reading.collation = count.collation;
        reading.collation_default = collection.terms.collation;
        reading.text = mongo_text_index(&collection);
        reading.cluster_time = mongo_cluster_time_read(&call->mongo->time);
        reading.hint = count.hint;
        reading.counts = !count.limit;
        if (reading.counts)
            page.row = row_total;
        reading.skip = (uint64_t)count.skip;
        reading.limit = limit_of(&count);
        page.self = &number;
        if (!mongo_reading_prepare(call, &reading, call->arena, err) ||
            !reading_drain(call, &collection, &reading, &page, err))
            return false;
        if (reading.counts)
            number = number > reading.skip ? number - reading.skip : 0;
    }
    number_append(&call->reply, number);
    return true;
}

/* --- distinct -------------------------------------------------------------------------------- */

struct distinct {
    struct slice key, query, collation;
    struct document_value hint;
};

/* Values are kept in an arena of their own, as often as they are new. */
struct gathering {
    struct slice key;
    struct arena *arena;
    struct query_set set;                     /* of values in comparison form */
    const struct document_collator *collator; /* NULL: they are as they came */
    struct query_context *context;            /* of a collator; its arena is for one value */
    struct document_value *shown;             /* the values as they came; of a collator alone */
    size_t shown_count, shown_max;
    size_t bytes;
    uint32_t steps; /* of the document that is looked into */
};

static void shown_add(struct gathering *gathering, const struct document_value *value)
{
    if (gathering->shown_count == gathering->shown_max) {
        size_t room = 2 * gathering->shown_max + SHOWN_FIRST;
        struct document_value *longer = ARENA_ARRAY(gathering->arena, struct document_value, room);

        if (gathering->shown_count)
            memcpy(longer, gathering->shown, gathering->shown_count * sizeof *longer);
        gathering->shown = longer;
        gathering->shown_max = room;
    }
    gathering->shown[gathering->shown_count++] = query_value_copy(value, gathering->arena);
}

static bool value_gather(struct gathering *gathering, const struct document_value *value,
                         struct error *err)
{
    struct document_value copy, form = *value;
    size_t before;
    bool is_new;

    if (gathering->collator) {
        arena_reset(gathering->context->arena);
        if (!mongo_collate(gathering->collator, value, gathering->context, &form, err))
            return false;
    }
    if (query_set_find(&gathering->set, &form) != SIZE_MAX)
        return true;
    before = arena_used(gathering->arena);
    if (gathering->collator)
        shown_add(gathering, value);
    copy = query_value_copy(&form, gathering->arena);
    gathering->bytes += arena_used(gathering->arena) - before;
    (void)query_set_add(&gathering->set, &copy, &is_new);
    return gathering->bytes <= VALUES_BYTES_MAX ||
           mongo_error_set(err, 17217, "distinct too big, 16mb cap");
}

/* A leaf: of an array the values of its elements. */
static bool leaf_gather(struct gathering *gathering, const struct document_value *value,
                        struct error *err)
{
    struct document_iter iter;

    if (value->type != DOCUMENT_ARRAY)
        return value_gather(gathering, value, err);
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter))
        if (!value_gather(gathering, &iter.value, err))
            return false;
    return true;
}

/* Is it the place of an element? */
static bool is_place(struct slice name, size_t *ret_place)
{
    size_t place = 0;

    if (!name.len || name.len > 9 || (name.len > 1 && name.data[0] == '0'))
        return false;
    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] < '0' || name.data[i] > '9')
            return false;
        place = place * 10 + (name.data[i] - '0');
    }
    *ret_place = place;
    return true;
}

/* The values at a path below a value. Arrays on the way are looked into, each of their elements,
 * and a number is also the place of one. A path is as long as a key, so this is as deep as a
 * document. */
static bool path_gather(struct gathering *gathering, const struct document_value *value,
                        struct slice path, struct error *err)
{
    struct slice name = path, rest = SLICE_NONE;
    struct document_value found;
    struct document_iter iter;
    size_t place, at = 0;

    /* arrays in arrays and numbers for names lead to a value by many ways */
    if (++gathering->steps > STEPS_MAX)
        return mongo_error_set(err, MONGO_EXCEEDED_MEMORY_LIMIT,
                               "distinct: the key leads through a document in too many ways");
    if (!path.data)
        return leaf_gather(gathering, value, err);
    (void)slice_split(path, '.', &name, &rest);
    if (value->type == DOCUMENT_OBJECT)
        return !document_find(value->document, name, &found) ||
               path_gather(gathering, &found, rest, err);
    if (value->type != DOCUMENT_ARRAY)
        return true;
    document_iter_init(&iter, value->document);
    for (; document_iter_next(&iter); at++) {
        if (iter.value.type == DOCUMENT_OBJECT && !path_gather(gathering, &iter.value, path, err))
            return false;
        if (is_place(name, &place) && place == at &&
            !path_gather(gathering, &iter.value, rest, err))
            return false;
    }
    return true;
}

static bool row_gather(void *self, const struct document_value *row, struct error *err)
{
    struct gathering *gathering = self;

    gathering->steps = 0;
    return path_gather(gathering, row, gathering->key, err);
}

static bool distinct_check(const struct distinct *distinct, struct error *err)
{
    return !memchr(distinct->key.data, 0, distinct->key.len) ||
           mongo_error_set(err, MONGO_BAD_VALUE, "Key field cannot contain an embedded null byte");
}

static bool distinct_gather(struct mongo_call *call, const struct mongo_namespace *name,
                            const struct distinct *distinct, struct gathering *gathering,
                            struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct mongo_reading reading = {.shape = MONGO_SHAPE_DOCUMENT,
                                    .filter = distinct->query,
                                    .collation = distinct->collation,
                                    .hint = distinct->hint,
                                    .limit = UINT64_MAX};
    struct mongo_page page = {
        .rows_max = PAGE_ROWS, .bytes_max = PAGE_BYTES, .row = row_gather, .self = gathering};

    if (!mongo_collection_open(call, name, &collection, err))
        return is_view(err, &distinct->hint) && mongo_call_blocks(call) &&
               view_drain(call, name, distinct->query, distinct->collation, &page, err);
    if (!mongo_collection_exists(&collection))
        return true;
    reading.collation_default = collection.terms.collation;
    reading.text = mongo_text_index(&collection);
    if (!mongo_reading_prepare(call, &reading, call->arena, err))
        return false;
    gathering->collator = reading.collator;
    return reading_drain(call, &collection, &reading, &page, err);
}

bool mongo_distinct(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"key", MONGO_FIELD_STRING, offsetof(struct distinct, key), true},
        {"query", MONGO_FIELD_OBJECT, offsetof(struct distinct, query)},
        {"collation", MONGO_FIELD_OBJECT, offsetof(struct distinct, collation)},
        {"hint", MONGO_FIELD_VALUE, offsetof(struct distinct, hint)},
    };
    struct distinct distinct = {0};
    CLEANUP(arena_free) struct arena *temporary = arena_new();
    CLEANUP(query_context_done) struct query_context context;
    struct gathering gathering = {.arena = call->arena, .context = &context};
    const struct document_value *values;
    struct mongo_namespace name;
    char text[DOCUMENT_INDEX_SIZE];
    size_t list;

    query_context_init(&context, temporary, NULL, NULL);
    context.keep_nonfinite = true;
    if (!mongo_call_namespace(call, &name, err) ||
        !mongo_arguments_read(call, fields, ARRAY_LEN(fields), &distinct, err) ||
        !distinct_check(&distinct, err) ||
        !mongo_collator_find(distinct.collation, &gathering.collator, err))
        return false;
    gathering.key = distinct.key;
    query_set_init(&gathering.set, DOCUMENT_ORDER_MONGO, call->arena, 64);
    if (!distinct_gather(call, &name, &distinct, &gathering, err))
        return false;
    values = gathering.collator ? gathering.shown : gathering.set.values;
    list = document_append_array_begin(&call->reply, SLICE("values"));
    for (size_t i = 0; i < gathering.set.count; i++)
        document_append(&call->reply, document_index_key((uint32_t)i, text), &values[i]);
    document_end(&call->reply, list);
    mongo_snapshot_append(call);
    return true;
}
