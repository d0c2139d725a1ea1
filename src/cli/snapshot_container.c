/* A snapshot is never written by going back to it: it is copied once more, under a name that nobody
 * uses, and the copy takes the name of the container in one commit. So a reset that is cut off
 * leaves the container as it was, and what is left of it goes with the next. */
#include "cli/snapshot_container.h"

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/partition.h"
#include "cli/table.h"
#include "document/bson.h"
#include "document/json.h"

enum { NAME_LEN_MAX = 63 };

/* One snapshot of one container. */
struct snapshot {
    struct cli_asking *asking;
    struct slice database, container;
    struct slice copy;      /* CONTAINER@NAME */
    struct slice resetting; /* what a reset makes of it first */
    const char *name;
};

static bool name_is_fine(const char *name)
{
    size_t len = strlen(name);
    bool fine = len > 0 && len <= NAME_LEN_MAX && name[0] != '-';

    for (size_t i = 0; i < len; i++)
        fine = fine && ((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9') ||
                        name[i] == '-');
    return fine;
}

static bool snapshot_read(struct cli_asking *asking, const char *path, const char *name,
                          struct snapshot *ret_snapshot)
{
    struct slice text = slice_of_text(path);
    const uint8_t *slash = memchr(text.data, '/', text.len);

    *ret_snapshot = (struct snapshot){.asking = asking, .name = name};
    if (!slash || slash == text.data || slash + 1 == text.data + text.len) {
        cli_fail(CLI_USAGE, "--container takes DATABASE/CONTAINER, not \"%s\"", path);
        return false;
    }
    if (name && !name_is_fine(name)) {
        cli_fail(CLI_USAGE,
                 "a snapshot has a name of small letters, digits and hyphens, at most %d",
                 NAME_LEN_MAX);
        return false;
    }
    ret_snapshot->database = slice_first(text, (size_t)(slash - text.data));
    ret_snapshot->container = slice_skip(text, (size_t)(slash - text.data) + 1);
    ret_snapshot->copy = arena_printf(asking->arena, "%.*s@%s", SLICE_ARG(ret_snapshot->container),
                                      name ? name : "");
    ret_snapshot->resetting =
        arena_printf(asking->arena, "%.*s.reset", SLICE_ARG(ret_snapshot->copy));
    return true;
}

static struct slice link_of(const struct snapshot *snapshot, struct slice container)
{
    return arena_printf(snapshot->asking->arena, "dbs/%.*s/colls/%.*s",
                        SLICE_ARG(snapshot->database), SLICE_ARG(container));
}

/* An answer of 400 and above is an error. */
static bool rest_ask(const struct snapshot *snapshot, struct cli_request request,
                     struct cli_answer *ret_answer, struct error *err)
{
    return cli_client_send(snapshot->asking->client, &request, snapshot->asking->arena, ret_answer,
                           err) &&
           (ret_answer->status < 400 || cli_answer_refused(ret_answer, err));
}

static bool container_drop(const struct snapshot *snapshot, struct slice container,
                           struct error *err)
{
    struct cli_answer answer;

    return rest_ask(snapshot,
                    (struct cli_request){.method = "DELETE",
                                         .type = SLICE("colls"),
                                         .link = link_of(snapshot, container)},
                    &answer, err);
}

/* --- Copying --------------------------------------------------------------------------------- */

/* Scripts of one kind, page by page. */
static bool scripts_copy(const struct snapshot *snapshot, const char *type, const char *member,
                         struct slice from, struct slice to, struct error *err)
{
    struct arena *arena = snapshot->asking->arena;
    struct slice lines = SLICE_NONE, more;

    do {
        struct cli_answer page, made;
        struct document_iter iter;

        if (!rest_ask(snapshot,
                      (struct cli_request){.method = "GET",
                                           .type = slice_of_text(type),
                                           .link = link_of(snapshot, from),
                                           .feed = true,
                                           .lines = lines},
                      &page, err))
            return false;
        document_iter_init(&iter, cli_answer_inside(page.document, member));
        while (document_iter_next(&iter)) {
            CLEANUP(buf_done) struct buf json;

            buf_init(&json, BUF_DEFAULT_MAX);
            document_json_write_value(&iter.value, &json);
            if (!rest_ask(snapshot,
                          (struct cli_request){.method = "POST",
                                               .type = slice_of_text(type),
                                               .link = link_of(snapshot, to),
                                               .feed = true,
                                               .body = buf_slice(&json)},
                          &made, err))
                return false;
        }
        more = cli_answer_header(&page, "x-ms-continuation");
        lines = arena_printf(arena, "x-ms-continuation: %.*s\r\n", SLICE_ARG(more));
    } while (more.len);
    return true;
}

static bool all_scripts_copy(const struct snapshot *snapshot, struct slice from, struct slice to,
                             struct error *err)
{
    return scripts_copy(snapshot, "sprocs", "StoredProcedures", from, to, err) &&
           scripts_copy(snapshot, "triggers", "Triggers", from, to, err) &&
           scripts_copy(snapshot, "udfs", "UserDefinedFunctions", from, to, err);
}

/* Begins the copy and follows it to its end, then its scripts. CLI_OK, or the exit code after a
 * message. */
static int copy_make(struct snapshot *snapshot, struct slice from, struct slice to)
{
    struct cli_asking *asking = snapshot->asking;
    CLEANUP(buf_done) struct buf body;
    struct cli_answer answer;
    struct error err, ignored;
    int code;

    buf_init(&body, BUF_DEFAULT_MAX);
    BUF_APPEND(&body, "{\"to\":");
    document_json_write_string(to, &body);
    BUF_APPEND(&body, "}");
    asking->words[1] = arena_text(asking->arena, snapshot->database);
    asking->words[2] = arena_text(asking->arena, from);
    if (!cli_asking_ask(asking, "POST", cli_asking_path(asking, SLICE("/copy")), buf_slice(&body),
                        &answer, &err))
        return cli_asking_failed(&err);
    code = cli_partition_watch(asking, cli_answer_text(answer.document, "id"));
    if (code != CLI_OK)
        return code;
    if (all_scripts_copy(snapshot, from, to, &err))
        return CLI_OK;
    (void)!container_drop(snapshot, to, &ignored); /* without its scripts it is none */
    return cli_asking_failed(&err);
}

int cli_snapshot_container_create(struct cli_asking *asking, const char *path, const char *name)
{
    struct snapshot snapshot;
    int code;

    if (!snapshot_read(asking, path, name, &snapshot))
        return CLI_USAGE;
    code = copy_make(&snapshot, snapshot.container, snapshot.copy);
    if (code == CLI_OK && !asking->options.json)
        printf("snapshot \"%s\" of %s is made: container \"%.*s\"\n", name, path,
               SLICE_ARG(snapshot.copy));
    return code;
}

/* --- Going back ------------------------------------------------------------------------------ */

int cli_snapshot_container_reset(struct cli_asking *asking, const char *path, const char *name)
{
    CLEANUP(buf_done) struct buf query;
    struct snapshot snapshot;
    struct cli_answer answer;
    struct error err;
    int code;

    buf_init(&query, BUF_DEFAULT_MAX);
    if (!snapshot_read(asking, path, name, &snapshot))
        return CLI_USAGE;
    /* of one that was cut off */
    if (!container_drop(&snapshot, snapshot.resetting, &err) && err.code != ERROR_NOT_FOUND)
        return cli_asking_failed(&err);
    code = copy_make(&snapshot, snapshot.copy, snapshot.resetting);
    if (code != CLI_OK)
        return code;
    BUF_APPEND(&query, "name=");
    for (size_t i = 0; i < snapshot.container.len; i++)
        buf_printf(&query, "%%%02X", snapshot.container.data[i]);
    asking->words[2] = arena_text(asking->arena, snapshot.resetting);
    if (!cli_client_ask(asking->client, "POST", cli_asking_path(asking, SLICE("/restore/over")),
                        buf_slice(&query), SLICE("{}"), asking->arena, &answer, &err))
        return cli_asking_failed(&err);
    if (!asking->options.json)
        printf("%s is what snapshot \"%s\" was\n", path, name);
    return CLI_OK;
}

int cli_snapshot_container_drop(struct cli_asking *asking, const char *path, const char *name)
{
    struct snapshot snapshot;
    struct cli_answer none = {.text = SLICE("{}")};
    struct error err;

    if (!snapshot_read(asking, path, name, &snapshot))
        return CLI_USAGE;
    if (!container_drop(&snapshot, snapshot.copy, &err))
        return cli_asking_failed(&err);
    return cli_asking_done(asking, &none, "snapshot \"%s\" of %s is dropped", name, path);
}

/* --- Looking --------------------------------------------------------------------------------- */

/* The name in an id of the form CONTAINER@NAME; empty: it is no snapshot of that container. */
static struct slice name_in(const struct snapshot *snapshot, struct slice id)
{
    if (!slice_starts_with(id, snapshot->copy))
        return SLICE_NONE;
    id = slice_skip(id, snapshot->copy.len);
    return memchr(id.data, '.', id.len) ? SLICE_NONE : id;
}

int cli_snapshot_container_list(struct cli_asking *asking, const char *path)
{
    static const char *const headings[] = {"NAME", "MADE", "CONTAINER", NULL};
    struct cli_table *table = cli_table_new(asking->arena, headings);
    CLEANUP(buf_done) struct buf json;
    struct snapshot snapshot;
    struct cli_answer answer;
    struct document_iter iter;
    struct error err;

    buf_init(&json, BUF_DEFAULT_MAX);
    if (!snapshot_read(asking, path, NULL, &snapshot))
        return CLI_USAGE;
    if (!rest_ask(&snapshot,
                  (struct cli_request){
                      .method = "GET",
                      .type = SLICE("colls"),
                      .link = arena_printf(asking->arena, "dbs/%.*s", SLICE_ARG(snapshot.database)),
                      .feed = true,
                      .lines = SLICE("x-ms-max-item-count: -1\r\n")},
                  &answer, &err))
        return cli_asking_failed(&err);
    document_iter_init(&iter, cli_answer_inside(answer.document, "DocumentCollections"));
    while (document_iter_next(&iter)) {
        struct slice id = cli_answer_text(iter.value.document, "id"), name = name_in(&snapshot, id);
        int64_t made_ms = (int64_t)cli_answer_number(iter.value.document, "_ts") * 1000;
        char made[CLOCK_ISO_SIZE];

        if (!name.len)
            continue;
        clock_iso(made_ms, made);
        cli_table_text(table, name);
        cli_table_text(table, arena_copy(asking->arena, slice_of_text(made)));
        cli_table_text(table, id);
        buf_printf(&json,
                   "%s{\"name\":\"%.*s\",\"created\":%lld,\"container\":", json.len ? "," : "",
                   SLICE_ARG(name), (long long)made_ms);
        document_json_write_string(id, &json);
        BUF_APPEND(&json, "}");
    }
    if (asking->options.json)
        printf("{\"snapshots\":[%.*s]}\n", SLICE_ARG(buf_slice(&json)));
    else
        cli_table_print(table);
    return CLI_OK;
}
