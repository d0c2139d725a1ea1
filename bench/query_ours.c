#include "query_ours.h"

#include "base/thread.h"
#include "document/json.h"
#include "front/rest/sql/compile.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { TENANTS_AT_ONCE = 100, FILL_THREADS = 2, PAGE_ROWS = 1000, ITEMS_OF_A_TENANT = 10 };

/* --- Filling --------------------------------------------------------------------------------- */

struct filling {
    struct bench_space *space;
    uint64_t count;
    atomic_uint_fast64_t next; /* item to begin with */
};

/* Some tenants in one transaction. */
static void tenants_create(struct filling *filling, uint64_t first, uint64_t end)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    const struct item_space *space = &filling->space->space;
    struct error err;

    for (uint64_t n = first; n < end; n++) {
        struct bench_item item = bench_item_make(filling->space, n, 0, arena);
        struct slice logical = item_logical(&space->definition->key, &item.key, arena);

        if (n % ITEMS_OF_A_TENANT == 0 || n == first) {
            struct item_scope scope = item_space_scope(space, logical);

            bench_must(transaction ? transaction_enter(transaction, &scope, logical, &err)
                                   : transaction_begin(&scope, logical, arena, &transaction, &err),
                       &err);
        }
        bench_must(transaction_write(transaction, &item.id, TRANSACTION_CREATE, item.document,
                                     &(struct transaction_options){0}, &err),
                   &err);
    }
    bench_must(transaction_commit(transaction, &err), &err);
}

static void fill_thread(void *context)
{
    struct filling *filling = context;
    enum { STEP = TENANTS_AT_ONCE * ITEMS_OF_A_TENANT };
    uint64_t first;

    while ((first = atomic_fetch_add(&filling->next, STEP)) < filling->count)
        tenants_create(filling, first, MIN(first + STEP, filling->count));
}

void query_ours_fill(struct bench_space *space, uint64_t count)
{
    struct filling filling = {.space = space, .count = count};
    struct thread threads[FILL_THREADS];

    for (size_t i = 0; i < FILL_THREADS; i++)
        thread_start(&threads[i], "fill", fill_thread, &filling);
    for (size_t i = 0; i < FILL_THREADS; i++)
        thread_join(&threads[i]);
}

/* --- Running --------------------------------------------------------------------------------- */

struct rows {
    struct buf json;
    struct query_ours_result *result;
};

static void row_done(struct rows *rows)
{
    struct query_ours_result *result = rows->result;

    if (!result->rows)
        snprintf(result->first, sizeof result->first, "%.*s", (int)rows->json.len,
                 (const char *)rows->json.data);
    result->rows++;
}

static bool row_take(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct rows *rows = self;

    document_json_write_value(value, &rows->json);
    row_done(rows);
    return true;
}

/* [{"name": "@a", "value": ...}, ...] */
static struct slice parameters_make(const struct query_values *values, struct arena *arena)
{
    static const char *const names[QUERY_VALUES_MAX] = {"@a", "@b"};
    CLEANUP(buf_done) struct buf buf;
    size_t array, object;

    buf_init(&buf, BUF_DEFAULT_MAX);
    array = document_begin(&buf);
    for (size_t i = 0; i < values->count; i++) {
        char index[DOCUMENT_INDEX_SIZE];

        object = document_append_object_begin(&buf, document_index_key((uint32_t)i, index));
        document_append_string(&buf, SLICE("name"), slice_of_text(names[i]));
        document_append(&buf, SLICE("value"), &values->list[i]);
        document_end(&buf, object);
    }
    document_end(&buf, array);
    return arena_copy(arena, buf_slice(&buf));
}

static struct query_plan plan_make(const struct query_case *query,
                                   const struct query_values *values, struct arena *arena)
{
    struct sql_prepared prepared;
    struct sql_error fault;
    struct error err;

    bench_must(sql_prepare(slice_of_text(query->ours), parameters_make(values, arena), NULL, arena,
                           &prepared, &fault, &err),
               &err);
    return prepared.plan;
}

static struct query_request request_make(struct bench_space *space, const struct query_case *query,
                                         const struct query_values *values, struct rows *rows,
                                         struct arena *arena)
{
    struct query_request request = {.space = &space->space,
                                    .container = rid_of_container(1, 2),
                                    .limits = {.rows_max = PAGE_ROWS},
                                    .arena = arena,
                                    .row = row_take,
                                    .self = rows};

    if (query->keyed)
        request.scope = (struct query_scope){
            .kind = QUERY_SCOPE_KEY,
            .key = partition_key_of(&space->definition.key, &values->tenant, 1)};
    return request;
}

void query_ours_run(struct bench_space *space, const struct query_executor *executor,
                    const struct query_case *query, const struct query_values *values,
                    struct query_ours_result *result)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct rows rows = {.result = result};
    struct query_plan plan = plan_make(query, values, arena);
    struct query_request request = request_make(space, query, values, &rows, arena);
    struct error err;

    request.executor = executor;
    buf_init(&rows.json, BUF_DEFAULT_MAX);
    do {
        struct query_page page;

        buf_clear(&rows.json);
        bench_must(query_run(&plan, &request, &page, &err), &err);
        result->bytes += rows.json.len;
        result->charge_cru += page.charge_cru;
        result->pages++;
        request.continuation = page.continuation;
    } while (request.continuation.len);
    buf_done(&rows.json);
}

void query_ours_read(struct bench_space *space, const struct query_values *values,
                     struct query_ours_result *result)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct item_operation op = {
        .space = &space->space,
        .arena = arena,
        .verb = ITEM_READ,
        .key = partition_key_of(&space->definition.key, &values->tenant, 1),
        .id = values->list[0],
    };
    struct rows rows = {.result = result};
    struct error err;

    buf_init(&rows.json, BUF_DEFAULT_MAX);
    bench_must(item_operation_run(&op, &err), &err);
    document_json_write(op.result.item.document, &rows.json);
    row_done(&rows);
    result->bytes += rows.json.len;
    buf_done(&rows.json);
}

void query_ours_explain(struct bench_space *space, const struct query_case *query,
                        const struct query_values *values)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf json;
    struct query_ours_result result = {0};
    struct rows rows = {.result = &result};
    struct query_plan plan = plan_make(query, values, arena);
    struct query_request request = request_make(space, query, values, &rows, arena);
    struct query_page page;
    struct error err;

    buf_init(&json, BUF_DEFAULT_MAX);
    buf_init(&rows.json, BUF_DEFAULT_MAX);
    request.explain = true;
    bench_must(query_run(&plan, &request, &page, &err), &err);
    document_json_write(page.explain, &json);
    printf("  %s, first page: %.*s\n", query->name, (int)json.len, (const char *)json.data);
    buf_done(&rows.json);
}
