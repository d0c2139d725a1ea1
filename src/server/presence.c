/* A file for each server, as text that a person can read:
 *
 *     endpoint http://127.0.0.1:8081
 *     directory /home/ann/orrery/data
 *     dev yes
 *
 * The lock is flock(2): the kernel lets go of it when the process ends, however that happens, and
 * it holds across containers that share the directory, where a process id would mean nothing. The
 * directory itself is locked while a note is written or notes are read, so that nobody meets one
 * between its making and its lock. */
#include "server/presence.h"

#include "base/random.h"
#include "server/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOTE_BYTES_MAX = 16 * 1024 };

struct presence {
    int fd; /* of the note, locked */
    char path[PATH_MAX];
};

static void fd_close_cleanup_(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static void directory_close_cleanup_(DIR **directory)
{
    if (*directory)
        closedir(*directory);
}

/* --- The place ------------------------------------------------------------------------------- */

static bool place_find(char path[PATH_MAX], struct error *err)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int length;

    if (state && state[0] == '/')
        length = snprintf(path, PATH_MAX, "%s/orrery/servers", state);
    else if (home && home[0] == '/')
        length = snprintf(path, PATH_MAX, "%s/.local/state/orrery/servers", home);
    else
        return error_set(err, ERROR_SYSTEM, "neither XDG_STATE_HOME nor HOME is set");
    return (size_t)length < PATH_MAX ||
           error_set(err, ERROR_SYSTEM, "the path of the state directory is too long");
}

/* For its owner only, with all that is above it. */
static bool place_make(char path[PATH_MAX], struct error *err)
{
    for (char *at = path + 1;; at++) {
        char here = *at;

        if (here && here != '/')
            continue;
        *at = '\0';
        if (!server_file_make_directory(path, err))
            return false;
        *at = here;
        if (!here)
            return true;
    }
}

/* Opens the place and locks it: shared to read, else for whoever changes it. */
static int place_open(const char *path, int lock)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (fd >= 0 && flock(fd, lock) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Has the server that left this note gone? Shared, so that two who look do not take each other for
 * it. */
static bool is_abandoned(int fd)
{
    return flock(fd, LOCK_SH | LOCK_NB) == 0;
}

/* --- Leaving --------------------------------------------------------------------------------- */

static void abandoned_remove(int place)
{
    CLEANUP(directory_close) DIR *directory = fdopendir(dup(place));
    struct dirent *entry;

    while (directory && (entry = readdir(directory))) {
        CLEANUP(fd_close) int fd = -1;

        if (entry->d_name[0] == '.')
            continue;
        fd = openat(place, entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd >= 0 && is_abandoned(fd))
            unlinkat(place, entry->d_name, 0);
    }
}

static bool note_write(int fd, const struct presence_note *note)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, NOTE_BYTES_MAX);
    buf_printf(&text, "endpoint %s\ndirectory %s\ndev %s\n", note->endpoint, note->directory,
               note->dev ? "yes" : "no");
    return !buf_overflowed(&text) && write(fd, text.data, text.len) == (ssize_t)text.len;
}

bool presence_leave(const struct presence_note *note, struct presence **ret_presence,
                    struct error *err)
{
    CLEANUP(presence_take_back) struct presence *presence = MEMORY_NEW(struct presence);
    CLEANUP(fd_close) int place = -1;
    char path[PATH_MAX], name[RANDOM_UUID_SIZE];

    presence->fd = -1;
    if (!place_find(path, err) || !place_make(path, err))
        return false;
    place = place_open(path, LOCK_EX);
    if (place < 0)
        return error_set_errno(err, ERROR_SYSTEM, "directory \"%s\"", path);
    abandoned_remove(place);
    random_uuid(name);
    if (strlen(path) + 1 + strlen(name) >= sizeof presence->path)
        return error_set(err, ERROR_SYSTEM, "the path of the state directory is too long");
    presence->fd = openat(place, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (presence->fd >= 0)
        snprintf(presence->path, sizeof presence->path, "%.*s/%s",
                 (int)(sizeof presence->path - sizeof name - 1), path, name);
    if (presence->fd < 0 || flock(presence->fd, LOCK_EX | LOCK_NB) != 0 ||
        !note_write(presence->fd, note))
        return error_set_errno(err, ERROR_SYSTEM, "a file in \"%s\"", path);
    *ret_presence = TAKE(presence);
    return true;
}

void presence_take_back(struct presence *presence)
{
    if (!presence)
        return;
    if (presence->path[0])
        unlink(presence->path);
    if (presence->fd >= 0)
        close(presence->fd);
    memory_free(presence);
}

/* --- Looking --------------------------------------------------------------------------------- */

/* The rest of the line that begins with name; data NULL: there is none. */
static struct slice line_of(struct slice text, struct slice name)
{
    struct slice line;

    while (slice_split(text, '\n', &line, &text))
        if (slice_starts_with(line, name))
            return slice_skip(line, name.len);
    return SLICE_NONE;
}

static bool note_read(int fd, struct arena *arena, struct presence_note *ret_note)
{
    char bytes[NOTE_BYTES_MAX];
    ssize_t length = read(fd, bytes, sizeof bytes);
    struct slice text = slice_of(bytes, length > 0 ? (size_t)length : 0);
    struct slice endpoint = line_of(text, SLICE("endpoint "));
    struct slice directory = line_of(text, SLICE("directory "));

    if (!endpoint.len || !directory.data)
        return false;
    ret_note->endpoint = arena_text(arena, endpoint);
    ret_note->directory = arena_text(arena, directory);
    ret_note->dev = slice_equal(line_of(text, SLICE("dev ")), SLICE("yes"));
    return true;
}

/* A note of this user's, or of one who may do everything anyhow. */
static bool is_ours(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
           (status.st_uid == geteuid() || status.st_uid == 0);
}

size_t presence_list(struct arena *arena, struct presence_note notes[PRESENCE_NOTES_MAX])
{
    CLEANUP(directory_close) DIR *directory = NULL;
    char path[PATH_MAX];
    struct dirent *entry;
    struct error ignored;
    size_t count = 0;
    int place;

    place = place_find(path, &ignored) ? place_open(path, LOCK_SH) : -1;
    if (place >= 0)
        directory = fdopendir(place);
    while (directory && count < PRESENCE_NOTES_MAX && (entry = readdir(directory))) {
        CLEANUP(fd_close) int fd = -1;

        if (entry->d_name[0] == '.')
            continue;
        fd = openat(place, entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd >= 0 && is_ours(fd) && !is_abandoned(fd) && note_read(fd, arena, &notes[count]))
            count++;
    }
    return count;
}
