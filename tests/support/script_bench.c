#include "support/script_bench.h"

#include "document/json.h"
#include "support/check.h"

void script_bench_init(struct script_bench *bench, const struct script_options *options)
{
    struct script_options made = options ? *options : (struct script_options){0};

    if (!made.program)
        made.program = ORRERY_JS;
    if (!made.wait_ms)
        made.wait_ms = 20000; /* a slow machine is not what is tested */
    *bench = (struct script_bench){.arena = arena_new(), .domain = "a"};
    bench->pool = script_pool_new(&made);
}

void script_bench_done(struct script_bench *bench)
{
    script_pool_free(bench->pool);
    for (size_t i = 0; i < bench->count; i++)
        memory_free(bench->items[i].json);
    arena_free(bench->arena);
}

/* --- The collection -------------------------------------------------------------------------- */

static size_t item_find(const struct script_bench *bench, struct slice id)
{
    size_t i = 0;

    while (i < bench->count && !slice_equal(slice_of_text(bench->items[i].id), id))
        i++;
    return i;
}

static struct slice id_of(struct slice body, struct arena *arena)
{
    CLEANUP(buf_done) struct buf bson;
    struct document_value id;
    struct error err;

    buf_init(&bson, BUF_DEFAULT_MAX);
    if (!document_json_read(body, NULL, &bson, &err) ||
        !document_find(buf_slice(&bson), SLICE("id"), &id) || id.type != DOCUMENT_STRING)
        return SLICE("");
    return arena_copy(arena, id.text);
}

static struct slice link_id(struct slice link)
{
    size_t at = link.len;

    while (at && link.data[at - 1] != '/')
        at--;
    return slice_skip(link, at);
}

static struct script_answer answer_with(struct script_bench *bench, size_t item, uint16_t status,
                                        struct arena *arena)
{
    return (struct script_answer){
        .status = status,
        .body = arena_copy(arena, slice_of_text(bench->items[item].json)),
        .etag = arena_printf(arena, "v%u", bench->items[item].version),
        .charge_cru = 529,
    };
}

static struct script_answer answer_error(uint16_t status, struct slice message)
{
    return (struct script_answer){.status = status, .message = message};
}

static struct script_answer put(struct script_bench *bench, size_t item,
                                const struct script_operation *operation, struct slice id,
                                struct arena *arena)
{
    bool is_new = item == bench->count;

    if (operation->etag.data &&
        (is_new ||
         !slice_equal(operation->etag, arena_printf(arena, "v%u", bench->items[item].version))))
        return answer_error(412, SLICE("the etag is another"));
    if (is_new) {
        assert_true(bench->count < SCRIPT_BENCH_ITEMS);
        bench->count++;
        snprintf(bench->items[item].id, sizeof bench->items[item].id, "%.*s", SLICE_ARG(id));
    } else {
        memory_free(bench->items[item].json);
    }
    bench->items[item].json = slice_to_text(operation->body);
    bench->items[item].version++;
    return answer_with(bench, item, is_new ? 201 : 200, arena);
}

/* Pages of all items, in their order; the continuation is the number of the next one. */
static struct script_answer page(struct script_bench *bench,
                                 const struct script_operation *operation, struct arena *arena)
{
    CLEANUP(buf_done) struct buf json;
    uint64_t from = 0;
    size_t size = operation->page_size > 0 ? (size_t)operation->page_size : 100, at;
    struct script_answer answer = {.status = 200, .charge_cru = 300};

    buf_init(&json, BUF_DEFAULT_MAX);
    if (operation->continuation.data && !slice_to_uint64(operation->continuation, &from))
        return answer_error(400, SLICE("bad continuation"));
    BUF_APPEND(&json, "[");
    for (at = from; at < bench->count && at < from + size; at++) {
        if (at > from)
            BUF_APPEND(&json, ",");
        buf_append_text(&json, bench->items[at].json);
    }
    BUF_APPEND(&json, "]");
    answer.body = arena_copy(arena, buf_slice(&json));
    if (at < bench->count)
        answer.continuation = arena_printf(arena, "%zu", at);
    return answer;
}

static struct script_answer serve_one(struct script_bench *bench,
                                      const struct script_operation *operation, struct arena *arena)
{
    struct slice id = operation->verb == SCRIPT_CREATE || operation->verb == SCRIPT_UPSERT
                          ? id_of(operation->body, arena)
                          : link_id(operation->link);
    size_t item = item_find(bench, id);

    if (operation->verb == SCRIPT_QUERY || operation->verb == SCRIPT_READ_FEED)
        return page(bench, operation, arena);
    if (operation->verb == SCRIPT_CREATE && item < bench->count)
        return answer_error(409, SLICE("an item with that id exists already"));
    if (operation->verb != SCRIPT_CREATE && operation->verb != SCRIPT_UPSERT &&
        item == bench->count)
        return answer_error(404, SLICE("there is no such item"));
    if (operation->verb == SCRIPT_READ || operation->verb == SCRIPT_PATCH)
        return answer_with(bench, item, 200, arena);
    if (operation->verb == SCRIPT_DELETE) {
        memory_free(bench->items[item].json);
        bench->items[item] = bench->items[--bench->count];
        return (struct script_answer){.status = 204};
    }
    return put(bench, item, operation, id, arena);
}

static bool serve(void *self, const struct script_operation *operations, size_t count,
                  struct script_answer *ret_answers, bool *ret_accepting, struct arena *arena,
                  struct error *err)
{
    struct script_bench *bench = self;

    bench->batches++;
    if (bench->before)
        bench->before(bench->before_context);
    for (size_t i = 0; i < count; i++) {
        if (++bench->operations == bench->fail_at)
            return error_set(err, ERROR_CONFLICT, "another was first");
        ret_answers[i] = serve_one(bench, &operations[i], arena);
    }
    if (bench->accepted_max && bench->operations >= bench->accepted_max)
        *ret_accepting = false;
    return true;
}

/* --- Runs ------------------------------------------------------------------------------------ */

const struct script_host *script_bench_host(struct script_bench *bench, struct script_host *host)
{
    *host = (struct script_host){.serve = serve, .self = bench};
    return host;
}

struct script_request script_bench_make(struct script_bench *bench, enum script_kind kind,
                                        const char *source)
{
    return (struct script_request){
        .kind = kind,
        .who = {.account = SLICE("acme"), .database = slice_of_text(bench->domain)},
        .key = slice_of_text(source),
        .name = SLICE("tested"),
        .source = slice_of_text(source),
        .self_link = SLICE("dbs/AAA=/colls/AAB=/"),
        .alt_link = SLICE("dbs/d/colls/c"),
        .logging = true,
        .may_write = true,
        .arena = bench->arena,
    };
}

bool script_bench_request(struct script_bench *bench, struct script_request *request)
{
    struct script_host host;

    bench->err = (struct error){0};
    return script_run(bench->pool, request, script_bench_host(bench, &host), &bench->result,
                      &bench->err);
}

bool script_bench_run(struct script_bench *bench, const char *source, const char *arguments)
{
    struct script_request request = script_bench_make(bench, SCRIPT_PROCEDURE, source);

    if (arguments)
        request.arguments = slice_of_text(arguments);
    return script_bench_request(bench, &request);
}
