/* A node's directory: what tells it from any other directory, and who holds it.
 *
 *     DIR/orrery.node   text, one fact per line:
 *                           orrery node
 *                           format 1
 *                           id 0b6c...            the node's identity
 *                           state making|ready    making: the store may not be there yet
 *     DIR/lock          held with flock while open; holds the process number, for the message
 *     DIR/store/        RocksDB
 *     DIR/acknowledged  how far writes were acknowledged: mark.c
 *     DIR/snapshots/    copies of the node, by name (engine_backup); reset.c goes back to one
 *
 * The marker is written first, so that a crash while a node is being made leaves a directory we
 * recognise, and rewritten when the store exists: from then on a missing store is a loss that must
 * be seen, not a reason to start an empty one. */
#include "engine/rocks/rocks_private.h"

#include "base/random.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { FORMAT = 1, MARKER_MAX = 4096 };

struct rocks_directory {
    char *path, *store, *tombstone, *load, *acknowledged; /* owned */
    char node_id[37];
    bool ready;
    int lock_fd;
};

static bool marker_write(const char *path, const char *node_id, bool ready, struct error *err);

static char *path_join(const char *directory, const char *name)
{
    struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    buf_printf(&buf, "%s/%s", directory, name);
    buf_append_byte(&buf, '\0');
    return (char *)buf.data;
}

bool rocks_directory_sync(const char *path, struct error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;

    if (!synced)
        error_set_errno(err, ERROR_STORE_IO, "syncing directory \"%s\"", path);
    if (fd >= 0)
        close(fd);
    return synced;
}

/* Makes the directory and its parents. Private to the owner: it will hold data and keys. */
static bool directory_make(const char *path, struct error *err)
{
    CLEANUP(memory_free) char *partial = slice_to_text(slice_of_text(path));

    for (char *at = partial + 1;; at++) {
        bool end = *at == '\0';

        if (!end && *at != '/')
            continue;
        *at = '\0';
        if (mkdir(partial, 0700) != 0 && errno != EEXIST)
            return error_set_errno(err, ERROR_STORE_IO, "making the data directory \"%s\"", path);
        if (end)
            return true;
        *at = '/';
    }
}

static bool is_expected_in_new(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "lost+found") == 0 ||
           strcmp(name, "lock") == 0 || strcmp(name, "orrery.node.new") == 0;
}

static bool directory_check_empty(const char *path, struct error *err)
{
    DIR *listing = opendir(path);
    const struct dirent *entry;
    bool empty = true;

    if (!listing)
        return error_set_errno(err, ERROR_STORE_IO, "reading the data directory \"%s\"", path);
    while (empty && (entry = readdir(listing)) != NULL) {
        empty = is_expected_in_new(entry->d_name);
        if (!empty)
            error_set(err, ERROR_STORE_FOREIGN,
                      "directory \"%s\" holds \"%s\" and is not an orrery node: choose an empty or "
                      "a new directory",
                      path, entry->d_name);
    }
    closedir(listing);
    return empty;
}

static bool directory_lock(struct rocks_directory *directory, struct error *err)
{
    CLEANUP(memory_free) char *path = path_join(directory->path, "lock");
    char holder[32] = "";

    directory->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (directory->lock_fd < 0)
        return error_set_errno(err, ERROR_STORE_IO, "opening \"%s\"", path);
    if (flock(directory->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        ssize_t got = pread(directory->lock_fd, holder, sizeof holder - 1, 0);

        holder[got > 0 ? strcspn(holder, "\n") : 0] = '\0';
        return error_set(err, ERROR_STORE_IN_USE,
                         "data directory \"%s\" is in use by process %s: stop it or choose another "
                         "directory",
                         directory->path, holder[0] ? holder : "(unknown)");
    }
    snprintf(holder, sizeof holder, "%d\n", (int)getpid());
    if (ftruncate(directory->lock_fd, 0) != 0 ||
        pwrite(directory->lock_fd, holder, strlen(holder), 0) != (ssize_t)strlen(holder))
        return error_set_errno(err, ERROR_STORE_IO, "writing \"%s\"", path);
    return true;
}

/* The rest of the line that begins with name and a blank. */
static bool marker_fact(struct slice text, struct slice name, struct slice *ret_value)
{
    struct slice line;

    while (slice_split(text, '\n', &line, &text))
        if (slice_starts_with(line, name) && line.len > name.len && line.data[name.len] == ' ') {
            *ret_value = slice_skip(line, name.len + 1);
            return true;
        }
    return false;
}

static bool marker_parse(struct rocks_directory *directory, struct slice text, struct error *err)
{
    struct slice format, id, state;
    uint64_t number;

    if (!slice_starts_with(text, SLICE("orrery node\n")) ||
        !marker_fact(text, SLICE("format"), &format) || !slice_to_uint64(format, &number))
        return error_set(err, ERROR_STORE_CORRUPT, "\"%s/orrery.node\" is damaged",
                         directory->path);
    if (number > FORMAT)
        return error_set(err, ERROR_STORE_VERSION,
                         "data directory \"%s\" has format %llu, this orrery reads up to %d: use a "
                         "newer orrery",
                         directory->path, (unsigned long long)number, FORMAT);
    if (!marker_fact(text, SLICE("id"), &id) || id.len != sizeof directory->node_id - 1 ||
        !marker_fact(text, SLICE("state"), &state))
        return error_set(err, ERROR_STORE_CORRUPT, "\"%s/orrery.node\" is damaged",
                         directory->path);
    memcpy(directory->node_id, id.data, id.len);
    directory->ready = slice_equal(state, SLICE("ready"));
    return true;
}

static bool marker_read(struct rocks_directory *directory, bool *ret_exists, struct error *err)
{
    CLEANUP(memory_free) char *path = path_join(directory->path, "orrery.node");
    char text[MARKER_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got;

    if (fd < 0 && errno == ENOENT) {
        *ret_exists = false;
        return true;
    }
    if (fd < 0)
        return error_set_errno(err, ERROR_STORE_IO, "opening \"%s\"", path);
    got = read(fd, text, sizeof text);
    close(fd);
    if (got < 0)
        return error_set_errno(err, ERROR_STORE_IO, "reading \"%s\"", path);
    *ret_exists = true;
    return marker_parse(directory, slice_of(text, (size_t)got), err);
}

/* New beside old, synced, renamed: a crash leaves one or the other. */
static bool marker_write(const char *path, const char *node_id, bool ready, struct error *err)
{
    CLEANUP(memory_free) char *name = path_join(path, "orrery.node");
    CLEANUP(memory_free) char *fresh = path_join(path, "orrery.node.new");
    char text[200];
    int length = snprintf(text, sizeof text, "orrery node\nformat %d\nid %s\nstate %s\n", FORMAT,
                          node_id, ready ? "ready" : "making");
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool written = fd >= 0 && write(fd, text, (size_t)length) == length && fsync(fd) == 0;

    if (!written)
        error_set_errno(err, ERROR_STORE_IO, "writing \"%s\"", fresh);
    if (fd >= 0)
        close(fd);
    if (!written)
        return false;
    if (rename(fresh, name) != 0)
        return error_set_errno(err, ERROR_STORE_IO, "renaming \"%s\"", fresh);
    return rocks_directory_sync(path, err);
}

static bool marker_open(struct rocks_directory *directory, bool resets, struct error *err)
{
    struct stat status;
    bool exists;

    if (!marker_read(directory, &exists, err))
        return false;
    if (resets)
        return exists || error_set(err, ERROR_NOT_FOUND, "\"%s\" is no node yet", directory->path);
    if (!exists) {
        random_uuid(directory->node_id);
        return directory_check_empty(directory->path, err) &&
               marker_write(directory->path, directory->node_id, false, err);
    }
    if (directory->ready && stat(directory->store, &status) != 0)
        return error_set(err, ERROR_STORE_CORRUPT,
                         "data directory \"%s\" has lost its \"store\" folder: restore it from a "
                         "backup",
                         directory->path);
    return true;
}

/* Looks before the lock file is made: somebody else's directory is left without a trace. */
static bool directory_check_ours(const char *path, struct error *err)
{
    CLEANUP(memory_free) char *marker = path_join(path, "orrery.node");

    return access(marker, F_OK) == 0 || directory_check_empty(path, err);
}

static bool directory_open(struct slice path, bool resets, struct rocks_directory **ret_directory,
                           struct error *err)
{
    CLEANUP(rocks_directory_close)
    struct rocks_directory *directory = MEMORY_NEW(struct rocks_directory);

    directory->lock_fd = -1;
    directory->path = slice_to_text(path);
    directory->store = path_join(directory->path, "store");
    directory->tombstone = path_join(directory->path, "tombstone.sst");
    directory->acknowledged = path_join(directory->path, "acknowledged");
    directory->load = path_join(directory->path, "load.sst");
    if (!directory_make(directory->path, err) || !directory_check_ours(directory->path, err) ||
        !directory_lock(directory, err) || !marker_open(directory, resets, err))
        return false;
    (void)unlink(directory->load); /* of a load that a crash has cut off */
    *ret_directory = TAKE(directory);
    return true;
}

bool rocks_directory_open(struct slice path, struct rocks_directory **ret_directory,
                          struct error *err)
{
    return directory_open(path, false, ret_directory, err);
}

bool rocks_directory_open_for_reset(struct slice path, struct rocks_directory **ret_directory,
                                    struct error *err)
{
    return directory_open(path, true, ret_directory, err);
}

const char *rocks_directory_path(const struct rocks_directory *directory)
{
    return directory->path;
}

void rocks_directory_close(struct rocks_directory *directory)
{
    if (!directory)
        return;
    if (directory->lock_fd >= 0)
        close(directory->lock_fd);
    memory_free(directory->load);
    memory_free(directory->tombstone);
    memory_free(directory->acknowledged);
    memory_free(directory->store);
    memory_free(directory->path);
    memory_free(directory);
}

const char *rocks_directory_store(const struct rocks_directory *directory)
{
    return directory->store;
}

const char *rocks_directory_acknowledged(const struct rocks_directory *directory)
{
    return directory->acknowledged;
}

const char *rocks_directory_tombstone(const struct rocks_directory *directory)
{
    return directory->tombstone;
}

const char *rocks_directory_load(const struct rocks_directory *directory)
{
    return directory->load;
}

const char *rocks_directory_node_id(const struct rocks_directory *directory)
{
    return directory->node_id;
}

bool rocks_directory_ready(struct rocks_directory *directory, struct error *err)
{
    if (directory->ready)
        return true;
    directory->ready = marker_write(directory->path, directory->node_id, true, err);
    return directory->ready;
}

uint64_t rocks_directory_free_bytes(const struct rocks_directory *directory)
{
    struct statvfs status;

    if (statvfs(directory->path, &status) != 0)
        return UINT64_MAX; /* not known: the write itself will tell */
    return (uint64_t)status.f_bavail * status.f_frsize;
}

bool rocks_directory_mark_copy(struct slice path, const char *node_id, struct error *err)
{
    CLEANUP(memory_free) char *text = slice_to_text(path);

    return marker_write(text, node_id, true, err);
}
