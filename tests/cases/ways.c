#include "cases/ways.h"

#include "base/memory.h"
#include "document/json.h"
#include "front/rest/sql/ranking_run.h"
#include "front/rest/sql/rebind.h"
#include "query/value/value.h"
#include "support/space.h"

#include <stdio.h>
#include <stdlib.h>

enum { PAGE_ROWS = 3, PAGES_MAX = 10000, PARTITIONS = 16 };

static const int64_t WALL_MS = 1700000000000; /* in 2023 */

/* A container for each way, holding the documents of one world. */
struct ways {
    struct test_space spaces[WAY_COUNT];
    const struct script_world *worlds[WAY_COUNT]; /* NULL: the space is not open */
};

struct collection {
    struct arena *arena;
    struct sql_rows rows;
    size_t room;
};

const char *way_name(enum way way)
{
    static const char *const names[] = {
        [WAY_SUBQUERY] = "a subquery",          [WAY_DOCUMENTS] = "documents at hand",
        [WAY_INDEXED] = "a container",          [WAY_SCANNED] = "a container without index",
        [WAY_PARTITIONS] = "many partitions",   [WAY_SHORT] = "a loop",
        [WAY_REBOUND] = "a plan that was kept",
    };

    return names[way];
}

/* Only single properties can be ordered by without the composite index that a policy brings. */
bool ways_apply(enum way way, const struct script_case *test)
{
    if (way == WAY_SUBQUERY || way == WAY_DOCUMENTS)
        return !test->containers_only;
    if (way == WAY_SCANNED && test->containers_only)
        return false;
    return !test->documents_only && (way != WAY_SCANNED || !test->world->policy.len);
}

/* --- Values ------------------------------------------------------------------------------------
 */

struct document_value ways_json(struct slice text, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value value;
    struct slice copy;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    if (!document_json_read_value(text, NULL, &buf, &value, &err)) {
        fprintf(stderr, "%.*s: %s\n", SLICE_ARG(text), err.message);
        exit(2);
    }
    copy = arena_copy(arena, buf_slice(&buf));
    if (!document_find(copy, SLICE(""), &value))
        abort();
    return value;
}

static bool is_system(struct slice key)
{
    return slice_equal(key, SLICE("_rid")) || slice_equal(key, SLICE("_self")) ||
           slice_equal(key, SLICE("_etag")) || slice_equal(key, SLICE("_attachments")) ||
           slice_equal(key, SLICE("_ts"));
}

/* Items have more properties than the documents they were made of. */
static void append_bare(struct buf *buf, struct slice key, const struct document_value *value)
{
    struct document_iter iter;
    size_t begin;

    if (value->type != DOCUMENT_OBJECT && value->type != DOCUMENT_ARRAY) {
        document_append(buf, key, value);
        return;
    }
    begin = value->type == DOCUMENT_OBJECT ? document_append_object_begin(buf, key)
                                           : document_append_array_begin(buf, key);
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter))
        if (!is_system(iter.key))
            append_bare(buf, iter.key, &iter.value);
    document_end(buf, begin);
}

static struct document_value value_bare(const struct document_value *value, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value bare;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    append_bare(&buf, SLICE("v"), value);
    document_end(&buf, begin);
    if (!document_find(arena_copy(arena, buf_slice(&buf)), SLICE("v"), &bare))
        abort();
    return bare;
}

static bool row_keep(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct collection *collection = self;
    struct sql_rows *rows = &collection->rows;

    if (rows->count == collection->room) {
        struct document_value *grown;

        collection->room = collection->room ? collection->room * 2 : 64;
        grown = ARENA_ARRAY(collection->arena, struct document_value, collection->room);
        if (rows->count)
            memcpy(grown, rows->values, rows->count * sizeof *grown);
        rows->values = grown;
    }
    rows->values[rows->count++] = value_bare(value, collection->arena);
    return true;
}

static struct slice *documents_of(const struct script_world *world, struct arena *arena)
{
    struct slice *documents = ARENA_ARRAY(arena, struct slice, world->document_count + 1);

    for (size_t i = 0; i < world->document_count; i++)
        documents[i] = ways_json(world->documents[i], arena).document;
    return documents;
}

/* --- Over documents ----------------------------------------------------------------------------
 */

/* The plan as a subquery: a source before its own walks the documents into slot 0. */
static struct query_subquery subquery_over(const struct query_plan *plan,
                                           const struct script_world *world,
                                           struct query_build *build)
{
    CLEANUP(buf_done) struct buf buf;
    struct slice *documents = documents_of(world, build->arena);
    struct query_subquery query = plan->query;
    struct query_source *sources;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    if (plan->constant)
        return query;
    begin = document_begin(&buf);
    for (size_t i = 0; i < world->document_count; i++) {
        char key[DOCUMENT_INDEX_SIZE];
        struct document_value document = document_object(documents[i]);

        document_append(&buf, document_index_key((uint32_t)i, key), &document);
    }
    document_end(&buf, begin);
    sources = ARENA_ARRAY(build->arena, struct query_source, query.source_count + 1);
    sources[0] = (struct query_source){
        .kind = QUERY_SOURCE_EACH,
        .expression = query_constant(build, document_array(buf_slice(&buf))),
    };
    if (query.source_count)
        memcpy(sources + 1, query.sources, query.source_count * sizeof *sources);
    query.sources = sources;
    query.source_count++;
    return query;
}

static bool run_subquery(const struct script_case *test, const struct query_plan *plan,
                         struct collection *collection, struct error *err)
{
    CLEANUP(query_context_done) struct query_context context;
    struct query_build build = {.arena = collection->arena};
    struct query_subquery query = subquery_over(plan, test->world, &build);
    struct query_slot slots[QUERY_SLOTS_MAX];
    struct query_rows *rows;
    struct document_value value;
    bool more = true;

    query_context_init(&context, collection->arena, NULL, NULL);
    for (size_t i = 0; i < ARRAY_LEN(slots); i++)
        slots[i] = (struct query_slot){.value = document_undefined()};
    context.slots = slots;
    context.slot_count = plan->slot_count;
    rows = query_subquery_open(&query, &context, err);
    if (!rows)
        return false;
    while (more) {
        if (!query_rows_next(rows, &context, &more, &value, err))
            return false;
        if (more && !row_keep(collection, &value, err))
            return false;
    }
    return true;
}

/* --- Over containers ---------------------------------------------------------------------------
 */

static void space_fill(struct test_space *space, const struct script_world *world)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice *documents = documents_of(world, arena);
    struct transaction_options options = {0};
    struct document_value id;
    struct error err;

    for (size_t i = 0; i < world->document_count; i++) {
        struct partition_key key = partition_key_extract(&space->definition.key, documents[i]);

        if (!document_find(documents[i], SLICE("id"), &id) ||
            !item_operation_run(&(struct item_operation){.space = &space->space,
                                                         .arena = arena,
                                                         .verb = ITEM_CREATE,
                                                         .key = key,
                                                         .id = id,
                                                         .document = documents[i],
                                                         .options = options},
                                &err)) {
            fprintf(stderr, "%.*s: cannot be stored\n", SLICE_ARG(world->documents[i]));
            exit(2);
        }
    }
}

static struct test_space *space_of(struct ways *ways, enum way way,
                                   const struct script_world *world)
{
    struct test_space *space = &ways->spaces[way];
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct test_space_options options = {.partitions = way == WAY_PARTITIONS ? PARTITIONS : 1};
    struct engine *engine;
    struct error err;

    if (ways->worlds[way] == world)
        return space;
    if (ways->worlds[way])
        test_space_done(space);
    if (way == WAY_SCANNED)
        options.policy = "{\"indexingMode\":\"none\"}";
    else if (world->policy.len)
        options.policy = arena_text(arena, world->policy);
    if (world->vectors.len)
        options.vectors = arena_text(arena, world->vectors);
    if (!engine_open(SLICE("memory:"), &(struct engine_options){0}, &engine, &err)) {
        fprintf(stderr, "%s\n", err.message);
        exit(2);
    }
    test_space_init(space, engine, &options);
    space->wall_ms = WALL_MS;
    space_fill(space, world);
    ways->worlds[way] = world;
    return space;
}

struct ways *ways_new(void)
{
    return MEMORY_NEW(struct ways);
}

void ways_free(struct ways *ways)
{
    if (!ways)
        return;
    for (enum way way = 0; way < WAY_COUNT; way++)
        if (ways->worlds[way])
            test_space_done(&ways->spaces[way]);
    memory_free(ways);
}

/* --- Page by page ------------------------------------------------------------------------------
 */

static bool container_page(void *self UNUSED, const struct query_plan *plan,
                           const struct query_request *request, struct query_page *ret_page,
                           struct error *err)
{
    return query_run(plan, request, ret_page, err);
}

static bool run_pages(struct ways *ways, enum way way, const struct script_case *test,
                      const struct sql_ranking_run *ranking, struct collection *collection,
                      struct error *err)
{
    const struct query_plan *plan = &ranking->prepared->plan;
    struct arena *arena = collection->arena;
    struct slice *documents = documents_of(test->world, arena);
    struct query_request request = {.container = rid_of_container(1, 2),
                                    .order_unindexed = true,
                                    .limits = {.rows_max = PAGE_ROWS},
                                    .arena = arena,
                                    .row = row_keep,
                                    .self = collection};
    struct query_page page;

    if (way != WAY_DOCUMENTS)
        request.space = &space_of(ways, way, test->world)->space;
    for (int i = 0; i < PAGES_MAX; i++) {
        size_t before = collection->rows.count;
        bool done;

        request.is_short =
            way == WAY_SHORT && i == 0 && query_plan_is_short(plan) && !ranking->prepared->ranking;
        done = way == WAY_DOCUMENTS
                   ? query_run_documents(plan, documents, test->world->document_count, &request,
                                         &page, err)
               : ranking->prepared->ranking ? sql_ranking_page(ranking, &request, &page, err)
                                            : query_run(plan, &request, &page, err);
        if (!done && request.is_short && err->code == ERROR_COLD) {
            request.is_short = false;
            collection->rows.count = before;
            done = query_run(plan, &request, &page, err);
        }
        if (!done)
            return false;
        if (collection->rows.count - before > PAGE_ROWS)
            return error_set(err, ERROR_BAD_REQUEST, "a page of %zu rows",
                             collection->rows.count - before);
        if (!page.continuation.len)
            return true;
        request.continuation = page.continuation;
    }
    return error_set(err, ERROR_BAD_REQUEST, "more than %d pages", PAGES_MAX);
}

/* --- Plans that are kept -----------------------------------------------------------------------
 */

/* Another value of the same type. */
static struct document_value value_other(const struct document_value *value, struct arena *arena)
{
    struct document_value other = *value;

    switch (value->type) {
    case DOCUMENT_BOOL:
        other.boolean = !value->boolean;
        break;
    case DOCUMENT_STRING:
        other.text = arena_printf(arena, "%.*sx", SLICE_ARG(value->text));
        break;
    case DOCUMENT_INT32:
        other = document_int32(value->int32 / 2 + 1);
        break;
    case DOCUMENT_INT64:
        other = document_int64(value->int64 / 2 + 1);
        break;
    case DOCUMENT_DOUBLE:
        other = document_double(value->number / 2 + 1);
        break;
    case DOCUMENT_ARRAY:
    case DOCUMENT_OBJECT:
        other.document = slice_of("\5\0\0\0", 5);
        break;
    default:
        break;
    }
    return other;
}

static struct slice parameters_other(struct slice parameters, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_iter iter;
    size_t begin, entry;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_iter_init(&iter, parameters);
    while (document_iter_next(&iter)) {
        struct document_value name, value;

        entry = document_append_object_begin(&buf, iter.key);
        if (document_find(iter.value.document, SLICE("name"), &name))
            document_append(&buf, SLICE("name"), &name);
        if (document_find(iter.value.document, SLICE("value"), &value)) {
            value = value_other(&value, arena);
            document_append(&buf, SLICE("value"), &value);
        }
        document_end(&buf, entry);
    }
    document_end(&buf, begin);
    return arena_copy(arena, buf_slice(&buf));
}

/* The same query with other values, given those of the case. It stays as it is where it would not
 * be kept, or other values make no query. */
static void rebind(const struct script_case *test, struct slice parameters,
                   const struct sql_compile_options *options, struct arena *arena,
                   struct sql_prepared *prepared)
{
    CLEANUP(buf_done) struct buf key;
    struct sql_prepared other;
    struct error ignored;

    buf_init(&key, BUF_DEFAULT_MAX);
    if (!parameters.len || !sql_rebind_key(test->query, parameters, options, &key) ||
        !sql_prepare(test->query, parameters_other(parameters, arena), options, arena, &other, NULL,
                     &ignored) ||
        !sql_rebind_is_possible(&other))
        return;
    sql_rebind(&other, test->query, parameters, options);
    assert(other.plan.fingerprint == prepared->plan.fingerprint);
    *prepared = other;
}

bool ways_run(struct ways *ways, enum way way, const struct script_case *test, struct arena *arena,
              struct sql_rows *ret_rows, struct sql_error *ret_error, struct error *err)
{
    struct collection collection = {.arena = arena};
    struct sql_compile_options options = {.ranks = true};
    struct slice parameters = SLICE_NONE;
    struct sql_prepared prepared;
    struct sql_ranking_run ranking = {
        .prepared = &prepared, .options = &options, .head = {container_page, NULL}};

    if (test->parameters.len)
        parameters = ways_json(test->parameters, arena).document;
    if (test->world->computed.len)
        options.computed = ways_json(test->world->computed, arena).document;
    if (test->world->vectors.len)
        options.vectors = ways_json(test->world->vectors, arena).document;
    if (!sql_prepare(test->query, parameters, &options, arena, &prepared, ret_error, err))
        return false;
    if (way == WAY_REBOUND)
        rebind(test, parameters, &options, arena, &prepared);
    ranking.parameters = parameters;
    if (way == WAY_SUBQUERY && (prepared.plan.rest || prepared.plan.order_defined))
        way = WAY_DOCUMENTS; /* stages, and orders by vectors, are no part of a subquery */
    if (way == WAY_SUBQUERY ? !run_subquery(test, &prepared.plan, &collection, err)
                            : !run_pages(ways, way, test, &ranking, &collection, err))
        return false;
    *ret_rows = collection.rows;
    return true;
}
