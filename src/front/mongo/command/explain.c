#include "front/mongo/command/explain.h"

#include "base/clock.h"
#include "document/order.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/indexes.h"

enum { PAGE_ROWS = 1000, PAGE_BYTES = 4 * 1024 * 1024, BOUNDS_MAX = 64, TEXT_MAX = 120 };

/* --- Finding out ----------------------------------------------------------------------------- */

static bool row_drop(void *self, const struct document_value *value UNUSED,
                     struct error *err UNUSED)
{
    ++*(uint64_t *)self;
    return true;
}

static struct slice kept(const struct mongo_call *call, struct slice document)
{
    return document.data ? arena_copy(call->arena, document) : SLICE_NONE;
}

static void metrics_add(struct query_metrics *to, const struct query_metrics *from)
{
    to->items_loaded += from->items_loaded;
    to->index_entries += from->index_entries;
    to->rows += from->rows;
    to->partitions = MAX(to->partitions, from->partitions);
}

static bool pages_run(struct mongo_call *call, const struct mongo_collection *collection,
                      const struct mongo_reading *reading, struct error *err)
{
    struct mongo_explaining *e = call->explaining;
    struct mongo_page page = {.rows_max = e->runs ? PAGE_ROWS : 1,
                              .bytes_max = PAGE_BYTES,
                              .explain = true,
                              .row = row_drop};
    uint64_t rows = 0;

    page.self = &rows;
    if (!mongo_deadline(call, &page.deadline_ms, err))
        return false;
    do {
        if (!mongo_reading_page(call, collection, reading, &page, err))
            return false;
        if (!e->explained.data)
            e->explained = page.explained;
        metrics_add(&e->metrics, &page.metrics);
        page.continuation = kept(call, page.continuation);
    } while (e->runs && page.continuation.len);
    return true;
}

bool mongo_explain_reading(struct mongo_call *call, const struct mongo_collection *collection,
                           const struct mongo_reading *reading, struct error *err)
{
    struct mongo_explaining *e = call->explaining;
    uint64_t begin = clock_monotonic_ns();
    int64_t before_cru = call->charge_cru;

    if (e->done)
        return mongo_error_set(err, MONGO_INTERRUPTED, "explained");
    e->begun = true;
    if (!pages_run(call, collection, reading, err)) {
        e->begun = false;
        return false;
    }
    e->begun = false;
    e->done = true;
    e->filter = kept(call, reading->filter);
    e->sort = kept(call, reading->sort);
    e->projection = kept(call, reading->projection);
    e->skip = reading->skip;
    e->limit = reading->limit;
    e->counts = reading->counts;
    if (reading->near) {
        e->near = kept(call, mongo_near_key(reading->near));
        e->near_plane = mongo_near_is_plane(reading->near);
    }
    e->staged = reading->plan.rest != NULL;
    e->fixed = collection->container && collection->space.definition->key.system_key;
    e->ms = (clock_monotonic_ns() - begin) / 1000000;
    e->charge_cru = call->charge_cru - before_cru;
    return mongo_error_set(err, MONGO_INTERRUPTED, "explained");
}

/* --- Bounds ---------------------------------------------------------------------------------- */

/* The value whose key these bytes are, whole; or, with the last one less, those of the first key
 * behind it. */
static bool key_value(enum document_order order, struct slice key, bool behind, struct arena *arena,
                      struct document_value *ret_value)
{
    struct slice bytes = arena_copy(arena, key);
    struct error ignored;

    if (!bytes.len)
        return false;
    if (behind)
        ((uint8_t *)bytes.data)[bytes.len - 1]--;
    return document_key_read(order, &bytes, arena, ret_value, &ignored) && !bytes.len;
}

static void bound_append(struct buf *out, const struct document_value *value)
{
    mongo_text_append(out, value, TEXT_MAX);
}

/* [1, 5), as far as the bytes tell: the ends of a type are told by their names. */
static void range_append(struct buf *out, enum document_order order, struct slice min,
                         struct slice max, struct arena *arena)
{
    struct document_value value;

    if (key_value(order, min, false, arena, &value)) {
        BUF_APPEND(out, "[");
        bound_append(out, &value);
    } else if (key_value(order, min, true, arena, &value)) {
        BUF_APPEND(out, "(");
        bound_append(out, &value);
    } else {
        BUF_APPEND(out, "[MinKey");
    }
    BUF_APPEND(out, ", ");
    if (key_value(order, max, true, arena, &value)) {
        bound_append(out, &value);
        BUF_APPEND(out, "]");
    } else if (key_value(order, max, false, arena, &value)) {
        bound_append(out, &value);
        BUF_APPEND(out, ")");
    } else {
        BUF_APPEND(out, "MaxKey]");
    }
}

static struct slice binary_of(const struct document_value *pair, uint32_t at)
{
    struct document_value value;

    return document_find_index(pair->document, at, &value) && value.type == DOCUMENT_BINARY
               ? value.binary.bytes
               : SLICE_NONE;
}

static void bounds_append(struct buf *out, struct slice field, const struct document_value *ranges,
                          enum document_order order, struct arena *arena)
{
    size_t list = document_append_array_begin(out, field);
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;
    uint32_t count = 0;

    if (ranges) {
        document_iter_init(&iter, ranges->document);
        while (document_iter_next(&iter)) {
            CLEANUP(buf_done) struct buf one;

            buf_init(&one, BUF_DEFAULT_MAX);
            range_append(&one, order, binary_of(&iter.value, 0), binary_of(&iter.value, 1), arena);
            document_append_string(out, document_index_key(count++, text), buf_slice(&one));
        }
    }
    if (!count)
        document_append_string(out, SLICE("0"), SLICE("[MinKey, MaxKey]"));
    document_end(out, list);
}

/* --- Stages ---------------------------------------------------------------------------------- */

struct showing {
    struct mongo_call *call;
    const struct mongo_explaining *e;
    const struct mongo_collection *collection;
    struct buf *out;
    bool stats;                   /* with what each stage did */
    struct document_value access; /* of the explanation */
    const char *command;
};

static struct document_value member(const struct document_value *object, const char *name)
{
    struct document_value value = document_undefined();

    if (object->type == DOCUMENT_OBJECT || object->type == DOCUMENT_ARRAY)
        (void)document_find(object->document, slice_of_text(name), &value);
    return value;
}

static bool is_true(const struct document_value *object, const char *name)
{
    struct document_value value = member(object, name);

    return value.type == DOCUMENT_BOOL && value.boolean;
}

static void stage_append(struct showing *s, const char *name)
{
    document_append_string(s->out, SLICE("stage"), slice_of_text(name));
    if (s->stats)
        document_append_int64(s->out, SLICE("nReturned"), (int64_t)s->e->metrics.rows);
}

static void filter_append(struct showing *s)
{
    const struct document_value filter = document_object(s->e->filter);

    if (s->e->filter.data && document_count(s->e->filter) && !is_true(&s->access, "filterSettled"))
        document_append(s->out, SLICE("filter"), &filter);
}

static struct slice shown_index(struct showing *s, struct slice name)
{
    size_t count;
    struct slice *shown = mongo_indexes_shown(s->call, s->collection, &count);

    for (size_t i = 0; i < count; i++) {
        struct document_value is;

        if (document_find(shown[i], SLICE("name"), &is) && slice_equal(is.text, name))
            return shown[i];
    }
    return shown[0];
}

static void multikey_append(struct showing *s, const struct document_value *index,
                            const struct document_value *key)
{
    struct document_value arrays = member(index, "arrays"), mask;
    struct document_iter iter;
    bool any = false;
    size_t paths;
    uint32_t part = 0;

    for (uint32_t i = 0;
         arrays.type == DOCUMENT_ARRAY && document_find_index(arrays.document, i, &mask); i++)
        any |= mask.int64 != 0;
    document_append_bool(s->out, SLICE("isMultiKey"), any);
    paths = document_append_object_begin(s->out, SLICE("multiKeyPaths"));
    document_iter_init(&iter, key->document);
    while (document_iter_next(&iter)) {
        size_t list = document_append_array_begin(s->out, iter.key);
        char text[DOCUMENT_INDEX_SIZE];
        uint32_t count = 0;
        size_t depth = 0;

        if (arrays.type == DOCUMENT_ARRAY && document_find_index(arrays.document, part++, &mask) &&
            mask.int64)
            for (size_t at = 0; at <= iter.key.len; at++) {
                if (at < iter.key.len && iter.key.data[at] != '.')
                    continue;
                depth++;
                if ((uint64_t)mask.int64 >> MIN(depth, (size_t)63) & 1)
                    document_append_string(s->out, document_index_key(count++, text),
                                           slice_first(iter.key, at));
            }
        document_end(s->out, list);
    }
    document_end(s->out, paths);
}

/* One index: the name is that of a definition, or else it is the path of _id. */
static void ixscan_append(struct showing *s, const struct document_value *index, bool backwards)
{
    struct document_value name = member(index, "definition"), bounds = member(index, "bounds");
    struct document_value order = member(index, "order"), key, value;
    struct slice shown = shown_index(s, name.type == DOCUMENT_STRING ? name.text : SLICE("_id_"));
    enum document_order entries =
        order.type == DOCUMENT_STRING && slice_equal(order.text, SLICE("mongo"))
            ? DOCUMENT_ORDER_MONGO
            : DOCUMENT_ORDER_SQL;
    struct document_iter iter;
    uint32_t part = 0;
    size_t list;

    stage_append(s, "IXSCAN");
    if (s->stats)
        document_append_int64(s->out, SLICE("keysExamined"), (int64_t)s->e->metrics.index_entries);
    (void)document_find(shown, SLICE("key"), &key);
    document_append(s->out, SLICE("keyPattern"), &key);
    (void)document_find(shown, SLICE("name"), &value);
    document_append(s->out, SLICE("indexName"), &value);
    multikey_append(s, index, &key);
    value = document_object(shown);
    document_append_bool(s->out, SLICE("isUnique"),
                         is_true(&value, "unique") ||
                             slice_equal(shown, shown_index(s, SLICE("_id_"))));
    document_append_bool(s->out, SLICE("isSparse"), is_true(&value, "sparse"));
    document_append_bool(s->out, SLICE("isPartial"),
                         member(&value, "partialFilterExpression").type == DOCUMENT_OBJECT);
    document_append_int32(s->out, SLICE("indexVersion"), 2);
    document_append_string(s->out, SLICE("direction"),
                           backwards ? SLICE("backward") : SLICE("forward"));
    list = document_append_object_begin(s->out, SLICE("indexBounds"));
    document_iter_init(&iter, key.document);
    while (document_iter_next(&iter)) {
        bool some = bounds.type == DOCUMENT_ARRAY &&
                    document_find_index(bounds.document, part, &value) &&
                    value.type == DOCUMENT_ARRAY;

        bounds_append(s->out, iter.key, some ? &value : NULL, entries, s->call->arena);
        part++;
    }
    document_end(s->out, list);
}

static void input_append(struct showing *s, struct slice name, const struct document_value *index)
{
    size_t input = document_append_object_begin(s->out, name);

    ixscan_append(s, index, is_true(&s->access, "backwards"));
    document_end(s->out, input);
}

/* Several indexes below one stage. */
static void inputs_append(struct showing *s, const char *stage, const struct document_value *list,
                          const struct document_value *second)
{
    size_t input = document_append_object_begin(s->out, SLICE("inputStage")), all;
    char text[DOCUMENT_INDEX_SIZE];
    uint32_t count = 0;

    stage_append(s, stage);
    all = document_append_array_begin(s->out, SLICE("inputStages"));
    if (second) {
        input_append(s, document_index_key(count++, text), list);
        input_append(s, document_index_key(count++, text), second);
    } else {
        struct document_iter iter;

        document_iter_init(&iter, list->document);
        while (document_iter_next(&iter))
            input_append(s, document_index_key(count++, text), &iter.value);
    }
    document_end(s->out, all);
    document_end(s->out, input);
}

static void docs_append(struct showing *s)
{
    if (s->stats)
        document_append_int64(s->out, SLICE("docsExamined"), (int64_t)s->e->metrics.items_loaded);
}

/* How documents are got at. */
static void access_append(struct showing *s)
{
    struct document_value kind = member(&s->access, "kind"), index = member(&s->access, "index");
    struct document_value second = member(&s->access, "intersectedWith");
    struct document_value members = member(&index, "union");

    if (kind.type != DOCUMENT_STRING || slice_equal(kind.text, SLICE("nothing"))) {
        stage_append(s, "EOF");
    } else if (slice_equal(kind.text, SLICE("point"))) {
        stage_append(s, "IDHACK");
        docs_append(s);
    } else if (slice_equal(kind.text, SLICE("scan"))) {
        stage_append(s, "COLLSCAN");
        filter_append(s);
        document_append_string(s->out, SLICE("direction"), SLICE("forward"));
        docs_append(s);
    } else {
        stage_append(s, s->e->counts && !s->e->metrics.items_loaded ? "COUNT_SCAN" : "FETCH");
        filter_append(s);
        docs_append(s);
        if (members.type == DOCUMENT_ARRAY)
            inputs_append(s, "OR", &members, NULL);
        else if (second.type == DOCUMENT_OBJECT)
            inputs_append(s, "AND_SORTED", &index, &second);
        else
            input_append(s, SLICE("inputStage"), &index);
    }
}

enum stage {
    STAGE_WRITE,
    STAGE_COUNT,
    STAGE_LIMIT,
    STAGE_SKIP,
    STAGE_PROJECTION,
    STAGE_SORT,
    STAGE_NEAR,
    STAGE_ACCESS
};

static bool stage_is_there(const struct showing *s, enum stage stage)
{
    const struct mongo_explaining *e = s->e;

    switch (stage) {
    case STAGE_WRITE:
        return !strcmp(s->command, "update") || !strcmp(s->command, "delete") ||
               !strcasecmp(s->command, "findAndModify");
    case STAGE_COUNT:
        return e->counts || !strcmp(s->command, "count");
    case STAGE_LIMIT:
        return e->limit != UINT64_MAX && e->limit && !e->counts;
    case STAGE_SKIP:
        return e->skip && !e->counts;
    case STAGE_PROJECTION:
        return e->projection.data && document_count(e->projection);
    case STAGE_SORT:
        return e->sort.data && document_count(e->sort) && !is_true(&s->access, "ordered");
    case STAGE_NEAR:
        return e->near.data && !(e->sort.data && document_count(e->sort)) && !e->counts;
    default:
        return true;
    }
}

static void stages_append(struct showing *s, struct slice name, enum stage stage)
{
    const struct document_value sort = document_object(s->e->sort);
    const struct document_value projection = document_object(s->e->projection);
    size_t object;

    while (!stage_is_there(s, stage))
        stage++;
    object = document_append_object_begin(s->out, name);
    switch (stage) {
    case STAGE_WRITE:
        stage_append(s, strcmp(s->command, "delete") ? "UPDATE" : "DELETE");
        break;
    case STAGE_COUNT:
        stage_append(s, "COUNT");
        break;
    case STAGE_LIMIT:
        stage_append(s, "LIMIT");
        document_append_int64(s->out, SLICE("limitAmount"), (int64_t)s->e->limit);
        break;
    case STAGE_SKIP:
        stage_append(s, "SKIP");
        document_append_int64(s->out, SLICE("skipAmount"), (int64_t)s->e->skip);
        break;
    case STAGE_PROJECTION:
        stage_append(s, "PROJECTION_DEFAULT");
        document_append(s->out, SLICE("transformBy"), &projection);
        break;
    case STAGE_SORT:
        stage_append(s, "SORT");
        document_append(s->out, SLICE("sortPattern"), &sort);
        document_append_string(s->out, SLICE("type"), SLICE("simple"));
        break;
    case STAGE_NEAR:
        stage_append(s, s->e->near_plane ? "GEO_NEAR_2D" : "GEO_NEAR_2DSPHERE");
        document_append_string(s->out, SLICE("field"), s->e->near);
        break;
    default:
        access_append(s);
        document_end(s->out, object);
        return;
    }
    stages_append(s, SLICE("inputStage"), stage + 1);
    document_end(s->out, object);
}

/* --- The reply ------------------------------------------------------------------------------- */

static void planner_append(struct showing *s, const struct mongo_namespace *name)
{
    const struct document_value filter = document_object(s->e->filter);
    size_t planner = document_append_object_begin(s->out, SLICE("queryPlanner")), list;

    document_append_string(s->out, SLICE("namespace"),
                           arena_printf(s->call->arena, "%.*s.%.*s", SLICE_ARG(name->database),
                                        SLICE_ARG(name->collection)));
    document_append_bool(s->out, SLICE("indexFilterSet"), false);
    if (s->e->filter.data) {
        document_append(s->out, SLICE("parsedQuery"), &filter);
    } else {
        document_end(s->out, document_append_object_begin(s->out, SLICE("parsedQuery")));
    }
    document_append_bool(s->out, SLICE("maxIndexedOrSolutionsReached"), false);
    document_append_bool(s->out, SLICE("maxIndexedAndSolutionsReached"), false);
    document_append_bool(s->out, SLICE("maxScansToExplodeReached"), false);
    s->stats = false;
    stages_append(s, SLICE("winningPlan"), STAGE_WRITE);
    list = document_append_array_begin(s->out, SLICE("rejectedPlans"));
    document_end(s->out, list);
    document_end(s->out, planner);
}

static void stats_append(struct showing *s, bool all_plans)
{
    size_t stats = document_append_object_begin(s->out, SLICE("executionStats")), list;

    document_append_bool(s->out, SLICE("executionSuccess"), true);
    document_append_int64(s->out, SLICE("nReturned"), (int64_t)s->e->metrics.rows);
    document_append_int64(s->out, SLICE("executionTimeMillis"), (int64_t)s->e->ms);
    document_append_int64(s->out, SLICE("totalKeysExamined"), (int64_t)s->e->metrics.index_entries);
    document_append_int64(s->out, SLICE("totalDocsExamined"), (int64_t)s->e->metrics.items_loaded);
    document_append_double(s->out, SLICE("requestCharge"), (double)s->e->charge_cru / 100);
    s->stats = true;
    stages_append(s, SLICE("executionStages"), STAGE_WRITE);
    if (all_plans) {
        list = document_append_array_begin(s->out, SLICE("allPlansExecution"));
        document_end(s->out, list);
    }
    document_end(s->out, stats);
}

/* Stages that run over the rows of the plan: $group, ... */
static void rest_append(struct showing *s, const struct document_value *stages, uint32_t count)
{
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;

    if (stages->type != DOCUMENT_ARRAY)
        return;
    document_iter_init(&iter, stages->document);
    while (document_iter_next(&iter)) {
        struct document_value kind = member(&iter.value, "stage");
        size_t one = document_append_object_begin(s->out, document_index_key(count++, text));

        document_append(
            s->out,
            arena_printf(s->call->arena, "$%.*s",
                         SLICE_ARG(kind.type == DOCUMENT_STRING ? kind.text : SLICE("stage"))),
            &iter.value);
        document_end(s->out, one);
    }
}

static void reply_make(struct showing *s, const struct mongo_namespace *name, bool all_plans,
                       const struct document_value *command)
{
    const struct document_value whole = document_object(s->e->explained);
    struct document_value stages = document_undefined();
    size_t list = 0, first = 0, cursor = 0, info;

    if (s->e->explained.data) {
        s->access = member(&whole, "access");
        stages = member(&whole, "stages");
    }
    document_append_string(s->out, SLICE("explainVersion"), SLICE("1"));
    if (s->e->staged) {
        list = document_append_array_begin(s->out, SLICE("stages"));
        first = document_append_object_begin(s->out, SLICE("0"));
        cursor = document_append_object_begin(s->out, SLICE("$cursor"));
    }
    planner_append(s, name);
    if (s->e->runs)
        stats_append(s, all_plans);
    if (s->e->staged) {
        document_end(s->out, cursor);
        document_end(s->out, first);
        rest_append(s, &stages, 1);
        document_end(s->out, list);
    }
    document_append(s->out, SLICE("command"), command);
    info = document_append_object_begin(s->out, SLICE("serverInfo"));
    document_append_string(s->out, SLICE("host"), slice_of_text(s->call->mongo->advertised));
    document_append_string(s->out, SLICE("version"), SLICE("7.0.0"));
    document_end(s->out, info);
}

struct explain {
    struct slice verbosity;
};

/* The command within, as if it had come by itself. */
static bool inner_run(struct mongo_call *call, struct slice inner, struct slice name,
                      const struct document_value *target, struct error *err)
{
    const struct mongo_command *outer = call->command, *command = mongo_command_find(name);
    struct slice body = call->message.body, outer_name = call->name;
    struct document_value outer_target = call->target;
    size_t reply = call->reply.len;
    bool fine;

    static const char *const known[] = {"find",   "aggregate", "count",        "distinct",
                                        "update", "delete",    "findAndModify"};
    size_t at = 0;

    while (command && at < ARRAY_LEN(known) && strcmp(command->name, known[at]))
        at++;
    if (!command || at == ARRAY_LEN(known))
        return mongo_error_set(err, MONGO_COMMAND_NOT_FOUND,
                               "Explain failed due to unknown command: %.*s",
                               (int)MIN(name.len, (size_t)60), (const char *)name.data);
    call->command = command;
    call->name = name;
    call->message.body = inner;
    call->target = *target;
    fine = command->run(call, err);
    call->command = outer;
    call->name = outer_name;
    call->message.body = body;
    call->target = outer_target;
    call->reply.len = reply;
    return call->explaining->done || fine;
}

/* Explains the command; its first field is what is iterated. */
static bool inner_explain(struct mongo_call *call, const struct document_value *command,
                          struct slice verbosity, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct mongo_explaining explaining = {.limit = UINT64_MAX};
    struct document_value outer = call->target;
    struct mongo_namespace name;
    struct document_iter iter;
    struct showing s;
    char *text;
    bool fine;

    explaining.runs = !slice_equal(verbosity, SLICE("queryPlanner"));
    if (explaining.runs && !slice_equal(verbosity, SLICE("executionStats")) &&
        !slice_equal(verbosity, SLICE("allPlansExecution")))
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "Enumeration value '%.*s' for field 'explain.verbosity' is not a "
                               "valid value.",
                               (int)MIN(verbosity.len, (size_t)60), (const char *)verbosity.data);
    document_iter_init(&iter, command->document);
    if (!document_iter_next(&iter))
        return mongo_error_set(err, MONGO_BAD_VALUE, "explain command requires a nested object");
    call->target = iter.value;
    fine = mongo_call_namespace(call, &name, err) &&
           mongo_collection_open(call, &name, &collection, err);
    call->target = outer;
    if (!fine)
        return false;
    call->explaining = &explaining;
    fine = !collection.container || inner_run(call, command->document, iter.key, &iter.value, err);
    call->explaining = NULL;
    if (!fine)
        return false;
    text = slice_to_text(iter.key);
    s = (struct showing){.call = call,
                         .e = &explaining,
                         .collection = &collection,
                         .out = &call->reply,
                         .access = document_undefined(),
                         .command = text};
    reply_make(&s, &name, slice_equal(verbosity, SLICE("allPlansExecution")), command);
    memory_free(text);
    return true;
}

bool mongo_explain_itself(struct mongo_call *call, struct error *err)
{
    const struct document_value command = document_object(call->message.body);

    return inner_explain(call, &command, SLICE("queryPlanner"), err);
}

bool mongo_explain(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"verbosity", MONGO_FIELD_STRING, offsetof(struct explain, verbosity)}};
    struct explain explain = {.verbosity = SLICE("allPlansExecution")};
    const struct document_value command = call->target;

    if (!mongo_arguments_read(call, fields, ARRAY_LEN(fields), &explain, err))
        return false;
    if (command.type != DOCUMENT_OBJECT)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "BSON field 'explain.explain' is the wrong type '%s', expected type "
                               "'object'",
                               mongo_type_name(command.type));
    return inner_explain(call, &command, explain.verbosity, err);
}
