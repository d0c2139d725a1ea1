/* One bulk request after the other over one connection. Each holds what was refused for lack of
 * throughput the last time, and new items up to its limits. */
#include "base/clock.h"
#include "base/random.h"
#include "cli/cli.h"
#include "cli/shell/graph.h"
#include "cli/shell/progress.h"
#include "cli/shell/transfer.h"
#include "document/json.h"

enum {
    BATCH_ITEMS_MAX = 100,
    BATCH_BYTES_MAX = 1024 * 1024, /* the server takes two */
    TOLD_MAX = 10,                 /* refused items that are named */
    WAIT_MS_MAX = 60 * 1000,       /* without any item getting through */
};

struct entry {
    uint64_t line;
    struct slice json; /* on the heap */
};

struct importing {
    const struct shell_transfer *transfer;
    struct shell_records *records;
    struct shell_progress progress;
    struct entry entries[BATCH_ITEMS_MAX];
    size_t count, bytes;
    bool ended;          /* of the file */
    struct entry *ahead; /* read, and not sent yet: one, or the items of a vertex; owned */
    size_t ahead_at, ahead_count, ahead_capacity;
    struct shell_graph *graph; /* NULL: records are items */
    int64_t waited_ms;
};

static void entry_drop(struct entry *entry)
{
    memory_free((void *)(uintptr_t)entry->json.data);
    entry->json = SLICE_NONE;
}

static void importing_done(struct importing *importing)
{
    for (size_t i = 0; i < importing->count; i++)
        entry_drop(&importing->entries[i]);
    for (size_t i = importing->ahead_at; i < importing->ahead_count; i++)
        entry_drop(&importing->ahead[i]);
    memory_free(importing->ahead);
    shell_graph_free(importing->graph);
    shell_records_close(importing->records);
}
CLEANUP_VALUE_FN(struct importing, importing_done)

/* --- Reading --------------------------------------------------------------------------------- */

static bool learn(struct importing *importing, struct slice item, struct error *err)
{
    struct error why = {0};

    if (!importing->graph || shell_graph_learn(importing->graph, item, &why))
        return true;
    return error_set(err, why.code, "%s, line %llu: %s", importing->transfer->path,
                     (unsigned long long)shell_records_line(importing->records), why.message);
}

/* Reads the whole file without sending anything. Of a graph that is how its vertices are known. */
static bool check(struct importing *importing, struct error *err)
{
    CLEANUP(buf_done) struct buf item;
    bool end = false;

    buf_init(&item, BUF_DEFAULT_MAX);
    if (shell_records_size(importing->records) == 0)
        return !importing->graph ||
               error_set(err, ERROR_BAD_REQUEST,
                         "a graph is read twice: it has to be a file, not a pipe");
    for (;;) {
        if (!shell_records_next(importing->records, &item, &end, err))
            return false;
        if (end)
            break;
        if (!learn(importing, buf_slice(&item), err))
            return false;
    }
    return shell_records_rewind(importing->records) ||
           error_set_errno(err, ERROR_SYSTEM, "file \"%s\" cannot be read again",
                           importing->transfer->path);
}

/* The item as it is sent. */
static void item_json(struct slice item, struct buf *json)
{
    char id[RANDOM_UUID_SIZE];
    struct document_value value;
    size_t brace;

    if (document_find(item, SLICE("id"), &value)) {
        document_json_write(item, json);
        return;
    }
    random_uuid(id);
    buf_printf(json, "{\"id\":\"%s\"", id);
    brace = json->len;
    document_json_write(item, json);
    if (document_count(item))
        json->data[brace] = ','; /* instead of the brace that the rest was opened with */
    else
        memmove(json->data + brace, json->data + brace + 1, --json->len - brace);
}

/* Takes the text over. */
static void ahead_add(struct importing *importing, struct buf *json)
{
    struct entry *entry;
    size_t length;

    if (importing->ahead_count == importing->ahead_capacity) {
        importing->ahead_capacity = importing->ahead_capacity ? 2 * importing->ahead_capacity : 16;
        importing->ahead =
            memory_realloc(importing->ahead,
                           memory_array_size(importing->ahead_capacity, sizeof *importing->ahead));
    }
    entry = &importing->ahead[importing->ahead_count++];
    entry->line = shell_records_line(importing->records);
    entry->json.data = buf_take(json, &length);
    entry->json.len = length;
}

static bool graph_item_take(void *self, struct slice item, struct error *err UNUSED)
{
    struct buf json;

    buf_init(&json, BUF_DEFAULT_MAX);
    buf_append_slice(&json, item);
    ahead_add(self, &json);
    return true;
}

static bool record_read(struct importing *importing, struct error *err)
{
    CLEANUP(buf_done) struct buf item;
    CLEANUP(buf_done) struct buf json;
    struct error why = {0};

    buf_init(&item, BUF_DEFAULT_MAX);
    buf_init(&json, BUF_DEFAULT_MAX);
    importing->ahead_at = importing->ahead_count = 0;
    if (!shell_records_next(importing->records, &item, &importing->ended, err))
        return false;
    if (importing->ended)
        return true;
    if (!importing->graph) {
        item_json(buf_slice(&item), &json);
        ahead_add(importing, &json);
        return true;
    }
    return shell_graph_items(importing->graph, buf_slice(&item), graph_item_take, importing,
                             &why) ||
           error_set(err, why.code, "%s, line %llu: %s", importing->transfer->path,
                     (unsigned long long)shell_records_line(importing->records), why.message);
}

/* Fills up with new items, as far as there is room. */
static bool batch_fill(struct importing *importing, struct error *err)
{
    while (importing->count < BATCH_ITEMS_MAX) {
        struct entry *next;

        while (importing->ahead_at == importing->ahead_count && !importing->ended)
            if (!record_read(importing, err))
                return false;
        if (importing->ahead_at == importing->ahead_count)
            return true;
        next = &importing->ahead[importing->ahead_at];
        if (importing->count && importing->bytes + next->json.len > BATCH_BYTES_MAX)
            return true;
        importing->bytes += next->json.len;
        importing->entries[importing->count++] = *next;
        importing->ahead_at++;
    }
    return true;
}

/* --- Sending --------------------------------------------------------------------------------- */

static bool batch_send(struct importing *importing, struct arena *arena,
                       struct cli_answer *ret_answer, struct error *err)
{
    const struct shell_transfer *transfer = importing->transfer;
    CLEANUP(buf_done) struct buf body;
    struct cli_request request = {.method = "POST",
                                  .type = SLICE("docs"),
                                  .feed = true,
                                  .lines = SLICE("x-ms-cosmos-is-batch-request: True\r\n"
                                                 "x-ms-cosmos-batch-atomic: False\r\n"
                                                 "x-ms-cosmos-batch-continue-on-error: True\r\n"
                                                 "prefer: return=minimal\r\n")};

    buf_init(&body, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < importing->count; i++) {
        buf_printf(&body, "%s{\"operationType\":\"%s\",\"resourceBody\":", i ? "," : "[",
                   transfer->upsert ? "Upsert" : "Create");
        buf_append_slice(&body, importing->entries[i].json);
        BUF_APPEND(&body, "}");
    }
    BUF_APPEND(&body, "]");
    request.body = buf_slice(&body);
    request.link = arena_printf(arena, "dbs/%.*s/colls/%.*s", SLICE_ARG(transfer->database),
                                SLICE_ARG(transfer->container));
    if (!shell_ask(transfer->server, &request, arena, ret_answer, err))
        return false;
    if (ret_answer->status >= 400)
        return cli_answer_refused(ret_answer, err);
    return document_count(ret_answer->document) == importing->count ||
           error_set(err, ERROR_SYSTEM, "the server's answer does not fit what was sent");
}

static void refused_tell(struct importing *importing, const struct entry *entry,
                         struct slice result, unsigned status)
{
    struct slice message = cli_answer_text(result, "message");

    if (importing->progress.failed++ >= TOLD_MAX)
        return;
    shell_progress_clear(&importing->progress);
    fprintf(stderr, "orrery: %s, line %llu: %.*s (%u)\n", importing->transfer->path,
            (unsigned long long)entry->line,
            SLICE_ARG(message.len ? message : SLICE("the item was refused")), status);
    if (importing->progress.failed == TOLD_MAX)
        fprintf(stderr, "orrery: further items that are refused are counted only\n");
}

/* Again after a wait: no throughput, a lost race, a partition on the move. */
static bool is_for_later(unsigned status)
{
    return status == 429 || status == 449 || status == 410 || status == 503;
}

/* Keeps what has to be sent again, at the front. *ret_wait_ms: before that. */
static void results_take(struct importing *importing, struct slice results, int64_t *ret_wait_ms)
{
    struct document_iter iter;
    size_t kept = 0, index = 0;

    *ret_wait_ms = 0;
    importing->bytes = 0;
    document_iter_init(&iter, results);
    for (; document_iter_next(&iter) && index < importing->count; index++) {
        struct entry *entry = &importing->entries[index];
        struct slice result =
            iter.value.type == DOCUMENT_OBJECT ? iter.value.document : SLICE("\5\0\0\0");
        unsigned status = (unsigned)cli_answer_number(result, "statusCode");

        importing->progress.charge += cli_answer_number(result, "requestCharge");
        if (is_for_later(status)) {
            int64_t wait = (int64_t)cli_answer_number(result, "retryAfterMilliseconds");

            importing->progress.throttled += status == 429;
            *ret_wait_ms = MAX(*ret_wait_ms, MAX(wait, (int64_t)1));
            importing->bytes += entry->json.len;
            importing->entries[kept++] = *entry;
            continue;
        }
        if (status >= 200 && status < 300)
            importing->progress.items++;
        else
            refused_tell(importing, entry, result, status);
        entry_drop(entry);
    }
    importing->count = kept;
}

static bool batch_run(struct importing *importing, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t before = importing->count;
    struct cli_answer answer;
    int64_t wait_ms;

    if (!batch_send(importing, arena, &answer, err))
        return false;
    results_take(importing, answer.document, &wait_ms);
    importing->waited_ms = importing->count < before ? 0 : importing->waited_ms + wait_ms;
    if (importing->waited_ms > WAIT_MS_MAX)
        return error_set(err, ERROR_TOO_MANY_REQUESTS,
                         "no item got through for a minute: the container has too little "
                         "throughput for them");
    return wait_ms == 0 || shell_wait(importing->transfer->server, wait_ms, err);
}

static bool items_send(struct importing *importing, struct error *err)
{
    uint64_t size = shell_records_size(importing->records);

    for (;;) {
        if (!batch_fill(importing, err))
            return false;
        if (importing->count == 0)
            return true;
        if (!batch_run(importing, err))
            return false;
        if (size)
            importing->progress.share =
                (double)shell_records_place(importing->records) / (double)size;
        shell_progress_show(&importing->progress, clock_monotonic_ms());
    }
}

/* A graph is stored by the partition key of its container. */
static bool graph_begin(struct importing *importing, struct error *err)
{
    const struct shell_transfer *transfer = importing->transfer;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value key, paths, path = document_undefined(), more, system;
    struct slice name = SLICE_NONE;
    struct cli_answer answer;

    if (!transfer->graph)
        return true;
    if (!shell_get(transfer->server, "colls",
                   arena_printf(arena, "dbs/%.*s/colls/%.*s", SLICE_ARG(transfer->database),
                                SLICE_ARG(transfer->container)),
                   arena, &answer, err))
        return false;
    if (document_find(answer.document, SLICE("partitionKey"), &key) &&
        key.type == DOCUMENT_OBJECT && document_find(key.document, SLICE("paths"), &paths) &&
        paths.type == DOCUMENT_ARRAY && document_find_index(paths.document, 0, &path) &&
        path.type == DOCUMENT_STRING && path.text.len > 1 &&
        !(document_find(key.document, SLICE("systemKey"), &system) &&
          system.type == DOCUMENT_BOOL && system.boolean)) {
        name = slice_skip(path.text, 1);
        if (document_find_index(paths.document, 1, &more) || memchr(name.data, '/', name.len) ||
            memchr(name.data, '"', name.len))
            return error_set(err, ERROR_NOT_SUPPORTED,
                             "graphs are imported into containers with one partition key of one "
                             "level, such as /pk, or none");
    }
    importing->graph = shell_graph_new(name, transfer->key_from);
    return true;
}

bool shell_import(const struct shell_transfer *transfer, uint64_t *ret_failed, struct error *err)
{
    CLEANUP(importing_done) struct importing importing = {.transfer = transfer};
    uint64_t throttled = transfer->server->throttled;
    bool good;

    *ret_failed = 0;
    if (!graph_begin(&importing, err) ||
        !shell_records_open(transfer->path, transfer->kind, transfer->columns_text,
                            &importing.records, err) ||
        !check(&importing, err))
        return false;
    shell_progress_begin(&importing.progress, "importing", "imported", transfer->quiet,
                         clock_monotonic_ms());
    importing.progress.json = transfer->json ? stdout : NULL;
    good = items_send(&importing, err);
    importing.progress.throttled += transfer->server->throttled - throttled;
    if (good || importing.progress.items || importing.progress.failed)
        shell_progress_end(&importing.progress, clock_monotonic_ms());
    else
        shell_progress_clear(&importing.progress); /* the reason is all there is to say */
    *ret_failed = importing.progress.failed;
    return good;
}
