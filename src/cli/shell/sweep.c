#include "cli/shell/sweep.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"
#include "cli/shell/pages.h"
#include "cli/shell/progress.h"
#include "document/bson.h"
#include "document/json.h"

enum {
    PATHS_MAX = 8,
    DEPTH_MAX = 32,
    PAGE_ROWS = 500,
    BATCH_ITEMS = 100,
    TOLD_MAX = 10,
    WAIT_MS_MAX = 60 * 1000,
};

/* One item that was found: what its operation begins with. */
struct target {
    struct slice json; /* "id":...,"partitionKey":"...","ifMatch":...; on the heap */
};

struct sweeping {
    const struct shell_sweep *sweep;
    struct arena *arena; /* of the definition */
    struct slice paths[PATHS_MAX];
    size_t path_count;
    struct target *targets;
    size_t count, capacity, at;
    struct shell_progress progress;
    int64_t waited_ms;
};

static void sweeping_done(struct sweeping *sweeping)
{
    for (size_t i = sweeping->at; i < sweeping->count; i++)
        memory_free((void *)(uintptr_t)sweeping->targets[i].json.data);
    memory_free(sweeping->targets);
    arena_free(sweeping->arena);
}
CLEANUP_VALUE_FN(struct sweeping, sweeping_done)

static struct slice link_of(const struct sweeping *sweeping, struct arena *arena)
{
    return arena_printf(arena, "dbs/%.*s/colls/%.*s", SLICE_ARG(sweeping->sweep->database),
                        SLICE_ARG(sweeping->sweep->container));
}

/* --- Which key an item has ------------------------------------------------------------------- */

static bool definition_read(struct sweeping *sweeping, struct error *err)
{
    struct document_value key, paths, path, other;
    struct cli_answer answer;

    if (!shell_get(sweeping->sweep->server, "colls", link_of(sweeping, sweeping->arena),
                   sweeping->arena, &answer, err))
        return false;
    if (!document_find(answer.document, SLICE("partitionKey"), &key) ||
        key.type != DOCUMENT_OBJECT || !document_find(key.document, SLICE("paths"), &paths) ||
        paths.type != DOCUMENT_ARRAY)
        return true; /* a container without a key */
    if (document_find(cli_answer_inside(answer.document, "orrery"), SLICE("synthetic"), &other) ||
        document_find(key.document, SLICE("synthetic"), &other))
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "containers with a synthetic partition key are not swept: their keys are "
                         "the server's to make");
    while (sweeping->path_count < PATHS_MAX &&
           document_find_index(paths.document, sweeping->path_count, &path) &&
           path.type == DOCUMENT_STRING)
        sweeping->paths[sweeping->path_count++] = path.text;
    return true;
}

/* The value at "/a/b" of an item, as an element of its key: what is not there is {}. */
static void component_append(struct slice item, struct slice path, struct buf *out)
{
    struct document_value value = document_object(item);
    struct slice rest = path, name;

    for (int i = 0; i < DEPTH_MAX && rest.len; i++) {
        struct document_value next;

        rest = slice_skip(rest, 1); /* the slash */
        if (!slice_split(rest, '/', &name, &rest)) {
            name = rest;
            rest = SLICE_NONE;
        } else {
            rest = slice_of(rest.data - 1, rest.len + 1);
        }
        if (value.type != DOCUMENT_OBJECT || !document_find(value.document, name, &next)) {
            BUF_APPEND(out, "{}");
            return;
        }
        value = next;
    }
    document_json_write_value(&value, out);
}

static void target_append(const struct sweeping *sweeping, struct slice item, struct buf *out)
{
    CLEANUP(buf_done) struct buf key;
    struct document_value id;

    buf_init(&key, BUF_DEFAULT_MAX);
    BUF_APPEND(out, "\"id\":");
    if (document_find(item, SLICE("id"), &id))
        document_json_write_value(&id, out);
    else
        BUF_APPEND(out, "\"\"");
    BUF_APPEND(&key, "[");
    for (size_t i = 0; i < sweeping->path_count; i++) {
        if (i)
            BUF_APPEND(&key, ",");
        component_append(item, sweeping->paths[i], &key);
    }
    BUF_APPEND(&key, "]");
    BUF_APPEND(out, ",\"partitionKey\":");
    document_json_write_string(buf_slice(&key), out);
    BUF_APPEND(out, ",\"ifMatch\":");
    document_json_write_string(cli_answer_text(item, "_etag"), out);
}

/* --- Looking --------------------------------------------------------------------------------- */

static bool target_add(struct sweeping *sweeping, struct slice item, struct error *err)
{
    struct buf json;
    size_t len;

    if (sweeping->count == SHELL_SWEEP_ITEMS_MAX)
        return error_set(err, ERROR_LIMIT_REACHED,
                         "the condition holds for more than %d items: make it narrower, and run it "
                         "several times",
                         (int)SHELL_SWEEP_ITEMS_MAX);
    if (sweeping->count == sweeping->capacity) {
        sweeping->capacity = sweeping->capacity ? 2 * sweeping->capacity : 256;
        sweeping->targets = memory_realloc(
            sweeping->targets, memory_array_size(sweeping->capacity, sizeof *sweeping->targets));
    }
    buf_init(&json, BUF_DEFAULT_MAX);
    target_append(sweeping, item, &json);
    sweeping->targets[sweeping->count].json.data = buf_take(&json, &len);
    sweeping->targets[sweeping->count++].json.len = len;
    return true;
}

static bool targets_find(struct sweeping *sweeping, struct error *err)
{
    CLEANUP(arena_free) struct arena *one = arena_new();
    CLEANUP(arena_free) struct arena *other = arena_new();
    struct arena *arenas[2] = {one, other};
    struct shell_pages pages = {.server = sweeping->sweep->server,
                                .database = sweeping->sweep->database,
                                .container = sweeping->sweep->container,
                                .text = arena_printf(sweeping->arena, "SELECT * FROM c WHERE %.*s",
                                                     SLICE_ARG(sweeping->sweep->condition)),
                                .rows_max = PAGE_ROWS};

    for (int i = 0; !pages.ended; i = !i) {
        struct shell_fault fault = {0};
        struct shell_page page;
        struct document_iter iter;

        arena_reset(arenas[i]);
        if (!shell_pages_next(&pages, arenas[i], &page, &fault, err))
            return fault.message.len
                       ? error_set(err, ERROR_BAD_REQUEST, "%.*s", SLICE_ARG(fault.message))
                       : false;
        sweeping->progress.charge += page.charge;
        document_iter_init(&iter, page.rows);
        while (document_iter_next(&iter))
            if (iter.value.type == DOCUMENT_OBJECT &&
                !target_add(sweeping, iter.value.document, err))
                return false;
    }
    return true;
}

/* --- Changing -------------------------------------------------------------------------------- */

static void operation_append(const struct sweeping *sweeping, const struct target *target,
                             struct buf *body)
{
    struct slice operations = sweeping->sweep->operations;

    buf_printf(body, "{\"operationType\":\"%s\",%.*s", operations.data ? "Patch" : "Delete",
               SLICE_ARG(target->json));
    if (operations.data)
        buf_printf(body, ",\"resourceBody\":{\"operations\":%.*s}", SLICE_ARG(operations));
    BUF_APPEND(body, "}");
}

static bool batch_send(struct sweeping *sweeping, size_t count, struct arena *arena,
                       struct cli_answer *ret_answer, struct error *err)
{
    CLEANUP(buf_done) struct buf body;
    struct cli_request request = {.method = "POST",
                                  .type = SLICE("docs"),
                                  .link = link_of(sweeping, arena),
                                  .feed = true,
                                  .lines = SLICE("x-ms-cosmos-is-batch-request: True\r\n"
                                                 "x-ms-cosmos-batch-atomic: False\r\n"
                                                 "x-ms-cosmos-batch-continue-on-error: True\r\n"
                                                 "prefer: return=minimal\r\n")};

    buf_init(&body, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < count; i++) {
        buf_append_byte(&body, i ? ',' : '[');
        operation_append(sweeping, &sweeping->targets[sweeping->at + i], &body);
    }
    BUF_APPEND(&body, "]");
    request.body = buf_slice(&body);
    if (!shell_ask(sweeping->sweep->server, &request, arena, ret_answer, err))
        return false;
    if (ret_answer->status >= 400)
        return cli_answer_refused(ret_answer, err);
    return document_count(ret_answer->document) == count ||
           error_set(err, ERROR_SYSTEM, "the server's answer does not fit what was sent");
}

static bool is_for_later(unsigned status)
{
    return status == 429 || status == 449 || status == 410 || status == 503;
}

static void refused_tell(struct sweeping *sweeping, const struct target *target,
                         struct slice result, unsigned status)
{
    struct slice message = cli_answer_text(result, "message");

    if (sweeping->progress.failed++ >= TOLD_MAX || sweeping->sweep->quiet)
        return;
    shell_progress_clear(&sweeping->progress);
    fprintf(stderr, "orrery: {%.*s}: %.*s (%u)\n", SLICE_ARG(target->json),
            SLICE_ARG(status == 412 ? SLICE("it was changed meanwhile")
                      : message.len ? message
                                    : SLICE("it was refused")),
            status);
}

/* What has to be sent again is moved to the end of the batch, which is the beginning of the next.
 */
static int64_t results_take(struct sweeping *sweeping, size_t count, struct slice results)
{
    struct target *batch = &sweeping->targets[sweeping->at];
    struct document_iter iter;
    int64_t wait_ms = 0;
    size_t index = 0, done = 0;

    document_iter_init(&iter, results);
    for (; document_iter_next(&iter) && index < count; index++) {
        struct slice result =
            iter.value.type == DOCUMENT_OBJECT ? iter.value.document : SLICE("\5\0\0\0");
        unsigned status = (unsigned)cli_answer_number(result, "statusCode");
        struct target target = batch[index];

        sweeping->progress.charge += cli_answer_number(result, "requestCharge");
        if (is_for_later(status)) {
            int64_t wait = (int64_t)cli_answer_number(result, "retryAfterMilliseconds");

            sweeping->progress.throttled += status == 429;
            wait_ms = MAX(wait_ms, MAX(wait, (int64_t)1));
            continue;
        }
        if (status >= 200 && status < 300)
            sweeping->progress.items++;
        else
            refused_tell(sweeping, &target, result, status);
        memory_free((void *)(uintptr_t)target.json.data);
        batch[index] = batch[done]; /* one that waits, or itself */
        batch[done++] = (struct target){0};
    }
    sweeping->at += done;
    return wait_ms;
}

static bool targets_change(struct sweeping *sweeping, struct error *err)
{
    while (sweeping->at < sweeping->count) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        size_t count = MIN(sweeping->count - sweeping->at, (size_t)BATCH_ITEMS);
        size_t before = sweeping->at;
        struct cli_answer answer;
        int64_t wait_ms;

        if (!batch_send(sweeping, count, arena, &answer, err))
            return false;
        wait_ms = results_take(sweeping, count, answer.document);
        sweeping->waited_ms = sweeping->at > before ? 0 : sweeping->waited_ms + wait_ms;
        if (sweeping->waited_ms > WAIT_MS_MAX)
            return error_set(err, ERROR_TOO_MANY_REQUESTS,
                             "no item got through for a minute: the container has too little "
                             "throughput, or is paused");
        if (wait_ms && !shell_wait(sweeping->sweep->server, wait_ms, err))
            return false;
        sweeping->progress.share = (double)sweeping->at / (double)sweeping->count;
        shell_progress_show(&sweeping->progress, clock_monotonic_ms());
    }
    return true;
}

bool shell_sweep_run(const struct shell_sweep *sweep, uint64_t *ret_found, uint64_t *ret_failed,
                     struct error *err)
{
    CLEANUP(sweeping_done)
    struct sweeping sweeping = {.sweep = sweep, .arena = arena_new()};
    bool patches = sweep->operations.data;
    bool fine;

    shell_progress_begin(&sweeping.progress, patches ? "patching" : "deleting",
                         patches ? "patched" : "deleted", sweep->quiet, clock_monotonic_ms());
    sweeping.progress.json = sweep->json ? stdout : NULL;
    fine = definition_read(&sweeping, err) && targets_find(&sweeping, err);
    *ret_found = sweeping.count;
    if (fine && !sweep->dry)
        fine = targets_change(&sweeping, err);
    *ret_failed = sweeping.progress.failed;
    if (!sweep->dry && (fine || sweeping.progress.items))
        shell_progress_end(&sweeping.progress, clock_monotonic_ms());
    return fine;
}
