/* mapReduce is a pipeline: what map emits for a document is an array that is unwound and grouped by
 * key, and the values of a key are reduced at once; so its memory, its limits and where it writes
 * are those of aggregate. Each function is that of a $function whose body calls the client's. */
#include "document/json.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/javascript.h"
#include "front/mongo/command/permit.h"
#include "front/mongo/command/reading.h"
#include "front/mongo/command/target.h"
#include "front/mongo/command/view.h"
#include "front/mongo/pipeline/pipeline.h"

enum { PAGE_ROWS = 1000, PAGE_BYTES = 4 * 1024 * 1024, RESULT_BYTES_MAX = 16 * 1024 * 1024 };

struct map_reduce {
    struct document_value map, reduce, finalize, out;
    struct slice query, sort, scope, collation;
    int64_t limit;
    bool bypass;
};

static const struct mongo_field map_reduce_fields[] = {
    {"map", MONGO_FIELD_VALUE, offsetof(struct map_reduce, map), true},
    {"reduce", MONGO_FIELD_VALUE, offsetof(struct map_reduce, reduce), true},
    {"finalize", MONGO_FIELD_VALUE, offsetof(struct map_reduce, finalize)},
    {"out", MONGO_FIELD_VALUE, offsetof(struct map_reduce, out), true},
    {"query", MONGO_FIELD_OBJECT, offsetof(struct map_reduce, query)},
    {"sort", MONGO_FIELD_OBJECT, offsetof(struct map_reduce, sort)},
    {"limit", MONGO_FIELD_SIZE, offsetof(struct map_reduce, limit)},
    {"scope", MONGO_FIELD_OBJECT, offsetof(struct map_reduce, scope)},
    {"collation", MONGO_FIELD_OBJECT, offsetof(struct map_reduce, collation)},
    {"jsMode", MONGO_FIELD_ANY},  /* how values are kept in between */
    {"verbose", MONGO_FIELD_ANY}, /* without effect since MongoDB 4.4 */
    {"bypassDocumentValidation", MONGO_FIELD_BOOL, offsetof(struct map_reduce, bypass)},
};

/* --- Functions ------------------------------------------------------------------------------- */

static bool code_check(const struct document_value *value, const char *name, struct error *err)
{
    if (value->type == DOCUMENT_STRING || value->type == DOCUMENT_CODE)
        return true;
    return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                           "'%s' must be a string or code without a scope, but found %s", name,
                           mongo_type_name(value->type));
}

static bool bypass_check(const struct map_reduce *asked, struct error *err)
{
    return !asked->bypass || mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                                             "mapReduce: bypassDocumentValidation is not offered");
}

/* A JavaScript expression: the client's function, or null. */
static void function_append(struct buf *body, const struct document_value *code)
{
    if (code->type != DOCUMENT_STRING && code->type != DOCUMENT_CODE) {
        BUF_APPEND(body, "null");
        return;
    }
    BUF_APPEND(body, "(0, eval)('(' + ");
    document_json_write_string(code->text, body);
    BUF_APPEND(body, ".replace(/[\\s;]+$/, '') + '\\n)')");
}

static void map_body(struct buf *body, const struct map_reduce *asked)
{
    BUF_APPEND(body, "(() => { const map = ");
    function_append(body, &asked->map);
    BUF_APPEND(body,
               "; return (document, scope) => { const emits = [];"
               " globalThis.emit = (k, v) => {"
               " emits.push({ k: k === undefined ? null : k, v: v === undefined ? null : v });"
               " }; Object.assign(globalThis, scope);"
               " map.call(document); return emits; }; })()");
}

/* One value is not reduced. */
static void reduce_body(struct buf *body, const struct map_reduce *asked)
{
    BUF_APPEND(body, "(() => { const reduce = ");
    function_append(body, &asked->reduce);
    BUF_APPEND(body, ", finalize = ");
    function_append(body, &asked->finalize);
    BUF_APPEND(body, "; return (key, values, scope) => { Object.assign(globalThis, scope);"
                     " const value = values.length === 1 ? values[0] : reduce(key, values);"
                     " return finalize === null ? value : finalize(key, value); }; })()");
}

/* {name: {$function: {body, args: [first, second, scope], lang: "js"}}}; second with type
 * undefined: there is none. */
static void call_append(struct buf *out, const char *name, const struct buf *body,
                        const struct map_reduce *asked, const char *first,
                        const struct document_value *second)
{
    const struct document_value scope =
        document_object(asked->scope.data ? asked->scope : SLICE("\5\0\0\0\0"));
    size_t field = document_append_object_begin(out, slice_of_text(name)), function, args, literal;
    char text[DOCUMENT_INDEX_SIZE];
    uint32_t count = 0;

    function = document_append_object_begin(out, SLICE("$function"));
    document_append_string(out, SLICE("body"), buf_slice(body));
    args = document_append_array_begin(out, SLICE("args"));
    document_append_string(out, document_index_key(count++, text), slice_of_text(first));
    if (second->type != DOCUMENT_UNDEFINED)
        document_append(out, document_index_key(count++, text), second);
    literal = document_append_object_begin(out, document_index_key(count, text));
    document_append(out, SLICE("$literal"), &scope);
    document_end(out, literal);
    document_end(out, args);
    document_append_string(out, SLICE("lang"), SLICE("js"));
    document_end(out, function);
    document_end(out, field);
}

/* --- The pipeline ---------------------------------------------------------------------------- */

struct stages {
    struct buf *out;
    uint32_t count;
    size_t stage;
};

static size_t stage_begin(struct stages *stages, const char *name)
{
    char text[DOCUMENT_INDEX_SIZE];

    stages->stage =
        document_append_object_begin(stages->out, document_index_key(stages->count++, text));
    return document_append_object_begin(stages->out, slice_of_text(name));
}

static void stage_end(struct stages *stages, size_t specification)
{
    document_end(stages->out, specification);
    document_end(stages->out, stages->stage);
}

static void stage_add(struct stages *stages, const char *name, const struct document_value *value)
{
    char text[DOCUMENT_INDEX_SIZE];
    size_t stage =
        document_append_object_begin(stages->out, document_index_key(stages->count++, text));

    document_append(stages->out, slice_of_text(name), value);
    document_end(stages->out, stage);
}

static void stages_select(struct stages *stages, const struct map_reduce *asked)
{
    const struct document_value query = document_object(asked->query),
                                sort = document_object(asked->sort),
                                limit = document_int64(asked->limit);

    if (asked->query.data && document_count(asked->query))
        stage_add(stages, "$match", &query);
    if (asked->sort.data && document_count(asked->sort))
        stage_add(stages, "$sort", &sort);
    if (asked->limit)
        stage_add(stages, "$limit", &limit);
}

static void stages_compute(struct stages *stages, const struct map_reduce *asked,
                           const struct buf *map, const struct buf *reduce)
{
    const struct document_value none = document_undefined(),
                                path = document_string(SLICE("$emits")),
                                values = document_string(SLICE("$value"));
    size_t specification = stage_begin(stages, "$project"), push;

    document_append_int32(stages->out, SLICE("_id"), 0);
    call_append(stages->out, "emits", map, asked, "$$ROOT", &none);
    stage_end(stages, specification);
    stage_add(stages, "$unwind", &path);
    specification = stage_begin(stages, "$group");
    document_append_string(stages->out, SLICE("_id"), SLICE("$emits.k"));
    push = document_append_object_begin(stages->out, SLICE("value"));
    document_append_string(stages->out, SLICE("$push"), SLICE("$emits.v"));
    document_end(stages->out, push);
    stage_end(stages, specification);
    specification = stage_begin(stages, "$project");
    call_append(stages->out, "value", reduce, asked, "$_id", &values);
    stage_end(stages, specification);
}

/* --- Where it goes --------------------------------------------------------------------------- */

enum out_kind { OUT_INLINE, OUT_REPLACE, OUT_MERGE, OUT_REDUCE };

struct out {
    enum out_kind kind;
    struct slice database, collection;
    bool in_database; /* it was named */
};

static bool out_field(struct out *out, const struct document_iter *iter, struct error *err)
{
    static const char *const kinds[] = {"inline", "replace", "merge", "reduce"};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (!slice_equal(iter->key, slice_of_text(kinds[i])))
            continue;
        out->kind = (enum out_kind)i;
        if (i == OUT_INLINE)
            return true;
        if (iter->value.type != DOCUMENT_STRING)
            break;
        out->collection = iter->value.text;
        return true;
    }
    if (slice_equal(iter->key, SLICE("db")) && iter->value.type == DOCUMENT_STRING) {
        out->database = iter->value.text;
        out->in_database = true;
        return true;
    }
    if (slice_equal(iter->key, SLICE("sharded")))
        return true; /* without effect since MongoDB 5.0: the collection is what it is */
    if (slice_equal(iter->key, SLICE("nonAtomic")) && iter->value.type == DOCUMENT_BOOL &&
        iter->value.boolean)
        return true;
    return mongo_error_set(err, MONGO_BAD_VALUE, "mapReduce: 'out' with this '%.*s' is not offered",
                           (int)MIN(iter->key.len, (size_t)80), (const char *)iter->key.data);
}

static bool out_read(const struct mongo_call *call, const struct document_value *value,
                     struct out *ret_out, struct error *err)
{
    struct document_iter iter;

    *ret_out = (struct out){.kind = OUT_REPLACE, .database = call->message.database};
    if (value->type == DOCUMENT_STRING) {
        ret_out->collection = value->text;
        return true;
    }
    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(err, 13606, "'out' has to be a string or an object");
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter))
        if (!out_field(ret_out, &iter, err))
            return false;
    return ret_out->kind == OUT_INLINE || ret_out->collection.data ||
           mongo_error_set(err, MONGO_BAD_VALUE,
                           "'out' requires one of inline, replace, merge and reduce");
}

/* What is there and what comes are reduced once more. */
static void again_append(struct stages *stages, const struct map_reduce *asked,
                         const struct buf *reduce)
{
    CLEANUP(buf_done) struct buf pair;
    size_t begin, list, stage, set;

    buf_init(&pair, 1024);
    begin = document_begin(&pair);
    document_append_string(&pair, SLICE("0"), SLICE("$value"));
    document_append_string(&pair, SLICE("1"), SLICE("$$new.value"));
    document_end(&pair, begin);
    list = document_append_array_begin(stages->out, SLICE("whenMatched"));
    stage = document_append_object_begin(stages->out, SLICE("0"));
    set = document_append_object_begin(stages->out, SLICE("$set"));
    call_append(stages->out, "value", reduce, asked, "$_id",
                &(struct document_value){.type = DOCUMENT_ARRAY, .document = buf_slice(&pair)});
    document_end(stages->out, set);
    document_end(stages->out, stage);
    document_end(stages->out, list);
}

static void stages_write(struct stages *stages, const struct out *to,
                         const struct map_reduce *asked, const struct buf *reduce)
{
    size_t specification, into;

    if (to->kind == OUT_INLINE)
        return;
    specification = stage_begin(stages, to->kind == OUT_REPLACE ? "$out" : "$merge");
    into = to->kind == OUT_REPLACE ? 0 : document_append_object_begin(stages->out, SLICE("into"));
    document_append_string(stages->out, SLICE("db"), to->database);
    document_append_string(stages->out, SLICE("coll"), to->collection);
    if (to->kind != OUT_REPLACE) {
        document_end(stages->out, into);
        if (to->kind == OUT_REDUCE)
            again_append(stages, asked, reduce);
        else
            document_append_string(stages->out, SLICE("whenMatched"), SLICE("replace"));
        document_append_string(stages->out, SLICE("whenNotMatched"), SLICE("insert"));
    }
    stage_end(stages, specification);
}

/* The whole of it as a BSON array, in the call's arena. */
static bool pipeline_make(struct mongo_call *call, const struct map_reduce *asked,
                          const struct out *to, struct slice *ret_pipeline, struct error *err)
{
    CLEANUP(buf_done) struct buf out, map, reduce;
    struct stages stages = {.out = &out};
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    buf_init(&map, BUF_DEFAULT_MAX);
    buf_init(&reduce, BUF_DEFAULT_MAX);
    map_body(&map, asked);
    reduce_body(&reduce, asked);
    begin = document_begin(&out);
    stages_select(&stages, asked);
    stages_compute(&stages, asked, &map, &reduce);
    stages_write(&stages, to, asked, &reduce);
    document_end(&out, begin);
    if (buf_overflowed(&out) || buf_overflowed(&map) || buf_overflowed(&reduce))
        return mongo_error_set(err, MONGO_BAD_VALUE, "mapReduce: its functions are too long");
    *ret_pipeline = arena_copy(call->arena, buf_slice(&out));
    return true;
}

/* --- Running --------------------------------------------------------------------------------- */

struct results {
    struct buf *out;
    size_t begin;
    uint32_t count;
};

static bool result_take(void *self, const struct document_value *value, struct error *err)
{
    struct results *results = self;
    char text[DOCUMENT_INDEX_SIZE];

    document_append(results->out, document_index_key(results->count++, text), value);
    if (results->out->len - results->begin <= RESULT_BYTES_MAX)
        return true;
    return mongo_error_set(err, 10334, "mapReduce: the results are over 16 MB: name a collection");
}

static bool results_give(struct mongo_call *call, const struct mongo_collection *collection,
                         const struct mongo_reading *reading, struct error *err)
{
    struct results results = {.out = &call->reply};
    struct mongo_page page = {
        .rows_max = PAGE_ROWS, .bytes_max = PAGE_BYTES, .row = result_take, .self = &results};

    if (!mongo_deadline(call, &page.deadline_ms, err))
        return false;
    results.begin = document_append_array_begin(&call->reply, SLICE("results"));
    do {
        if (!mongo_reading_page(call, collection, reading, &page, err))
            return false;
        page.continuation =
            page.continuation.len ? arena_copy(call->arena, page.continuation) : SLICE_NONE;
    } while (page.continuation.len);
    document_end(&call->reply, results.begin);
    return true;
}

/* What the rules of commands cannot see. */
static bool out_permit(const struct mongo_call *call, const struct out *to, struct error *err)
{
    enum mongo_action second = to->kind == OUT_REPLACE ? MONGO_ACTION_REMOVE : MONGO_ACTION_UPDATE;

    if (to->kind == OUT_INLINE ||
        (mongo_permit_allows(call, MONGO_ACTION_INSERT, to->database, to->collection) &&
         mongo_permit_allows(call, second, to->database, to->collection) &&
         (to->kind == OUT_REPLACE ||
          mongo_permit_allows(call, MONGO_ACTION_FIND, to->database, to->collection))))
        return true;
    return mongo_permit_refuse(call, err);
}

static void target_tell(struct mongo_call *call, const struct out *to)
{
    size_t object;

    if (!to->in_database) {
        document_append_string(&call->reply, SLICE("result"), to->collection);
        return;
    }
    object = document_append_object_begin(&call->reply, SLICE("result"));
    document_append_string(&call->reply, SLICE("db"), to->database);
    document_append_string(&call->reply, SLICE("collection"), to->collection);
    document_end(&call->reply, object);
}

bool mongo_map_reduce(struct mongo_call *call, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct map_reduce asked = {0};
    struct mongo_pipeline_options options;
    struct mongo_reading reading = {0};
    struct mongo_pipeline pipeline;
    struct mongo_namespace name;
    struct slice stages;
    struct mongo_view view;
    struct out to;
    struct query_build build = {
        .arena = call->arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_MONGO};

    if (!mongo_javascript_check(call, "mapReduce", err) ||
        !mongo_call_namespace(call, &name, err) ||
        !mongo_arguments_read(call, map_reduce_fields, ARRAY_LEN(map_reduce_fields), &asked, err) ||
        !code_check(&asked.map, "map", err) || !code_check(&asked.reduce, "reduce", err) ||
        (asked.finalize.type != DOCUMENT_UNDEFINED && asked.finalize.type != 0 &&
         !code_check(&asked.finalize, "finalize", err)) ||
        !bypass_check(&asked, err) || !out_read(call, &asked.out, &to, err) ||
        !out_permit(call, &to, err) || !pipeline_make(call, &asked, &to, &stages, err))
        return false;
    options =
        (struct mongo_pipeline_options){.database = name.database, .collection = name.collection};
    if (!mongo_view_resolve(call, &name, &view, err) ||
        !mongo_view_collation(&view, asked.collation, &options.collation, err) ||
        !mongo_pipeline_compile(stages, &options, &build, &pipeline, err) ||
        !mongo_collection_open(call, &name, &collection, err))
        return false;
    reading.plan = pipeline.plan;
    reading.script = build.script;
    if (to.kind == OUT_INLINE)
        return results_give(call, &collection, &reading, err);
    if (!mongo_target_check(call, &pipeline.target, err) ||
        !mongo_target_run(call, &pipeline.target, &collection, &reading, err))
        return false;
    target_tell(call, &to);
    return true;
}
