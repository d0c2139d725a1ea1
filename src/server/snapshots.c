/* One file decides: the name in ROOT/reset. While it is there, every node is reset when it is
 * opened, again if need be, and no client is served before all of them were and it is gone. So a
 * crash at any point leaves all nodes as they were, or all of them reset. */
#include "server/snapshots.h"

#include "base/directory.h"
#include "catalogue/kept.h"
#include "server/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INFO_BYTES_MAX = 64 * 1024 };

bool snapshot_name_check(struct slice name, struct error *err)
{
    bool fine = name.len > 0 && name.len < SNAPSHOT_NAME_SIZE;

    for (size_t i = 0; i < name.len && fine; i++)
        fine = (name.data[i] >= 'a' && name.data[i] <= 'z') ||
               (name.data[i] >= '0' && name.data[i] <= '9') || (name.data[i] == '-' && i);
    return fine ||
           error_set(err, ERROR_BAD_REQUEST,
                     "a snapshot has a name of small letters, digits and hyphens, at most %d",
                     SNAPSHOT_NAME_SIZE - 1);
}

static bool path_make(char path[PATH_MAX], const char *directory, const char *below,
                      struct slice name, const char *file, struct error *err)
{
    int length = snprintf(path, PATH_MAX, "%s%s%.*s%s", directory, below, SLICE_ARG(name), file);

    return (length > 0 && length < PATH_MAX) ||
           error_set(err, ERROR_CONFIGURATION, "the path of a snapshot is too long");
}

/* --- Nodes ------------------------------------------------------------------------------------ */

static bool nodes_check(const struct nodes *nodes, struct error *err)
{
    for (size_t i = 0; i < nodes_count(nodes); i++)
        if (!nodes_at(nodes, i)->gone && !nodes_at(nodes, i)->directory)
            return error_set(err, ERROR_NOT_SUPPORTED,
                             "snapshots are of rocksdb: nodes, and node \"%s\" is none",
                             nodes_at(nodes, i)->name);
    return true;
}

static const char *root_of(const struct nodes *nodes)
{
    return nodes_at(nodes, 0)->directory;
}

static bool info_read(const struct nodes *nodes, struct slice name, struct buf *out,
                      struct error *err)
{
    char path[PATH_MAX];

    if (!snapshot_name_check(name, err) || !nodes_check(nodes, err) ||
        !path_make(path, root_of(nodes), "/snapshots/", name, "/snapshot", err))
        return false;
    errno = 0;
    if (server_file_read(path, out, err))
        return true;
    return errno == ENOENT
               ? error_set(err, ERROR_NOT_FOUND, "there is no snapshot \"%.*s\"", SLICE_ARG(name))
               : false;
}

/* --- Making ----------------------------------------------------------------------------------- */

struct making {
    const struct nodes *nodes;
    struct slice name;
};

/* Also what was left of one that was cut off. */
static bool copies_remove(const struct nodes *nodes, struct slice name, struct error *err)
{
    for (size_t i = 0; i < nodes_count(nodes); i++) {
        const struct nodes_member *member = nodes_at(nodes, i);
        char path[PATH_MAX];

        if (!member->gone && member->directory &&
            (!path_make(path, member->directory, "/snapshots/", name, "", err) ||
             !directory_remove(path, ERROR_SYSTEM, err)))
            return false;
    }
    return true;
}

static bool copies_make(void *context, struct error *err)
{
    const struct making *making = context;

    for (size_t i = 0; i < nodes_count(making->nodes); i++) {
        const struct nodes_member *member = nodes_at(making->nodes, i);
        char path[PATH_MAX];

        if (member->gone)
            continue;
        if (!path_make(path, member->directory, "/snapshots", SLICE(""), "", err) ||
            !server_file_make_directory(path, err) ||
            !path_make(path, member->directory, "/snapshots/", making->name, "", err) ||
            !engine_backup(member->engine, slice_of_text(path), err))
            return error_prefix(err, "node \"%s\"", member->name);
    }
    return true;
}

static bool info_write(const struct making *making, int64_t now_ms, struct error *err)
{
    CLEANUP(buf_done) struct buf text;
    char path[PATH_MAX];

    buf_init(&text, INFO_BYTES_MAX);
    buf_printf(&text, "orrery snapshot\nformat 1\ncreated %lld\n", (long long)now_ms);
    for (size_t i = 0; i < nodes_count(making->nodes); i++)
        if (!nodes_at(making->nodes, i)->gone)
            buf_printf(&text, "node %s\n", nodes_at(making->nodes, i)->name);
    return path_make(path, root_of(making->nodes), "/snapshots/", making->name, "/snapshot", err) &&
           server_file_write_private(path, buf_slice(&text), err);
}

static size_t count_all(const struct nodes *nodes)
{
    CLEANUP(buf_done) struct buf list;
    struct error ignored;
    size_t count = 0;

    buf_init(&list, BUF_DEFAULT_MAX);
    if (snapshots_append(nodes, &list, &ignored))
        for (size_t i = 0; i < list.len; i++)
            count += list.data[i] == '{';
    return count;
}

bool snapshots_make(const struct nodes *nodes, struct catalogue *catalogue, struct slice name,
                    int64_t now_ms, struct error *err)
{
    CLEANUP(catalogue_hold_free) struct catalogue_hold *hold = NULL;
    CLEANUP(buf_done) struct buf there;
    struct making making = {nodes, name};
    struct error ignored;

    buf_init(&there, INFO_BYTES_MAX);
    if (info_read(nodes, name, &there, err))
        return error_set(err, ERROR_NAME_TAKEN, "there is a snapshot \"%.*s\" already",
                         SLICE_ARG(name));
    if (err->code != ERROR_NOT_FOUND)
        return false;
    if (count_all(nodes) >= SNAPSHOTS_MAX)
        return error_set(err, ERROR_LIMIT_REACHED, "there are %d snapshots, as many as may be",
                         SNAPSHOTS_MAX);
    if (copies_remove(nodes, name, err) &&
        catalogue_hold_new(catalogue, copies_make, &making, &hold, err) &&
        info_write(&making, now_ms, err))
        return true;
    (void)!copies_remove(nodes, name, &ignored);
    return false;
}

/* --- Looking ---------------------------------------------------------------------------------- */

/* The info file as a JSON object. */
static void info_show(struct slice name, struct slice text, struct buf *out)
{
    struct slice line;
    bool first = true;

    if (out->len && out->data[out->len - 1] == '}')
        BUF_APPEND(out, ",");
    buf_printf(out, "{\"name\":\"%.*s\"", SLICE_ARG(name));
    for (struct slice rest = text; slice_split(rest, '\n', &line, &rest);)
        if (slice_starts_with(line, SLICE("created ")))
            buf_printf(out, ",\"created\":%.*s", SLICE_ARG(slice_skip(line, strlen("created "))));
    BUF_APPEND(out, ",\"nodes\":[");
    for (struct slice rest = text; slice_split(rest, '\n', &line, &rest);)
        if (slice_starts_with(line, SLICE("node "))) {
            buf_printf(out, "%s\"%.*s\"", first ? "" : ",",
                       SLICE_ARG(slice_skip(line, strlen("node "))));
            first = false;
        }
    BUF_APPEND(out, "]}");
}

static int names_compare(const void *left, const void *right)
{
    const struct slice *a = left, *b = right;

    return slice_compare(*a, *b);
}

bool snapshots_append(const struct nodes *nodes, struct buf *out, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice *names = ARENA_ARRAY(arena, struct slice, SNAPSHOTS_MAX * 4);
    const struct dirent *entry;
    char path[PATH_MAX];
    struct error ignored;
    size_t count = 0;
    DIR *listing;

    if (!nodes_check(nodes, err) ||
        !path_make(path, root_of(nodes), "/snapshots", SLICE(""), "", err))
        return false;
    listing = opendir(path);
    while (listing && count < SNAPSHOTS_MAX * 4 && (entry = readdir(listing)) != NULL)
        if (snapshot_name_check(slice_of_text(entry->d_name), &ignored))
            names[count++] = arena_copy(arena, slice_of_text(entry->d_name));
    if (listing)
        closedir(listing);
    qsort(names, count, sizeof *names, names_compare);
    for (size_t i = 0; i < count; i++) {
        CLEANUP(buf_done) struct buf text;

        buf_init(&text, INFO_BYTES_MAX);
        if (info_read(nodes, names[i], &text, &ignored))
            info_show(names[i], buf_slice(&text), out);
    }
    return true;
}

bool snapshots_drop(const struct nodes *nodes, struct slice name, struct error *err)
{
    CLEANUP(buf_done) struct buf text;
    char path[PATH_MAX];

    buf_init(&text, INFO_BYTES_MAX);
    if (!info_read(nodes, name, &text, err) ||
        !path_make(path, root_of(nodes), "/snapshots/", name, "/snapshot", err))
        return false;
    if (unlink(path) != 0)
        return error_set_errno(err, ERROR_SYSTEM, "removing \"%s\"", path);
    return copies_remove(nodes, name, err);
}

/* --- Going back ------------------------------------------------------------------------------- */

static bool text_has_node(struct slice text, const char *name)
{
    struct slice line;

    while (slice_split(text, '\n', &line, &text))
        if (slice_starts_with(line, SLICE("node ")) &&
            slice_equal(slice_skip(line, strlen("node ")), slice_of_text(name)))
            return true;
    return false;
}

/* The same nodes as then, each with its copy. */
static bool nodes_match(const struct nodes *nodes, struct slice name, struct slice text,
                        struct error *err)
{
    size_t here = 0, then = 0;
    struct slice line;

    for (size_t i = 0; i < nodes_count(nodes); i++) {
        const struct nodes_member *member = nodes_at(nodes, i);
        char path[PATH_MAX];

        if (member->gone)
            continue;
        here++;
        if (!path_make(path, member->directory, "/snapshots/", name, "/orrery.node", err))
            return false;
        if (!text_has_node(text, member->name) || access(path, R_OK) != 0)
            return error_set(err, ERROR_CONFLICT,
                             "node \"%s\" has no part in snapshot \"%.*s\": it came later, or its "
                             "copy is gone",
                             member->name, SLICE_ARG(name));
    }
    for (struct slice rest = text; slice_split(rest, '\n', &line, &rest);)
        then += slice_starts_with(line, SLICE("node "));
    return here == then ||
           error_set(
               err, ERROR_CONFLICT,
               "snapshot \"%.*s\" is of %zu nodes, and there are %zu: a node was removed since",
               SLICE_ARG(name), then, here);
}

bool snapshots_reset(const struct nodes *nodes, struct slice name, struct error *err)
{
    CLEANUP(buf_done) struct buf text;
    char path[PATH_MAX];

    buf_init(&text, INFO_BYTES_MAX);
    return info_read(nodes, name, &text, err) && nodes_match(nodes, name, buf_slice(&text), err) &&
           path_make(path, root_of(nodes), "/reset", SLICE(""), "", err) &&
           server_file_write_private(path, name, err);
}

bool snapshots_pending(const char *root, char ret_name[SNAPSHOT_NAME_SIZE], struct error *err)
{
    CLEANUP(buf_done) struct buf text;
    char path[PATH_MAX];

    ret_name[0] = '\0';
    buf_init(&text, INFO_BYTES_MAX);
    if (!path_make(path, root, "/reset", SLICE(""), "", err))
        return false;
    errno = 0;
    if (!server_file_read(path, &text, err))
        return errno == ENOENT || errno == ENOTDIR;
    if (!snapshot_name_check(buf_slice(&text), err))
        return error_prefix(err, "\"%s\"", path);
    snprintf(ret_name, SNAPSHOT_NAME_SIZE, "%.*s", SLICE_ARG(buf_slice(&text)));
    return true;
}

bool snapshots_apply(const char *url, const char *directory, const char *name, struct error *err)
{
    char path[PATH_MAX];

    if (!directory)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "snapshots are of rocksdb: nodes, and this is none");
    return path_make(path, directory, "/snapshots/", slice_of_text(name), "", err) &&
           engine_reset(slice_of_text(url), slice_of_text(path), err);
}

bool snapshots_applied(const char *root, struct error *err)
{
    char path[PATH_MAX];
    int fd;
    bool synced;

    if (!path_make(path, root, "/reset", SLICE(""), "", err))
        return false;
    if (unlink(path) != 0)
        return error_set_errno(err, ERROR_SYSTEM, "removing \"%s\"", path);
    fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    synced = fd >= 0 && fsync(fd) == 0;
    if (!synced)
        error_set_errno(err, ERROR_SYSTEM, "syncing \"%s\"", root);
    if (fd >= 0)
        close(fd);
    return synced;
}
