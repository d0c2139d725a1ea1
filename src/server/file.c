#include "server/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 4096 };

static void fd_close_cleanup_(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

bool server_file_read(const char *path, struct buf *out, struct error *err)
{
    CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got;

    if (fd < 0)
        return error_set_errno(err, ERROR_SYSTEM, "file \"%s\"", path);
    do {
        if (!buf_reserve(out, READ_BYTES)) {
            errno = EFBIG;
            return error_set(err, ERROR_SYSTEM, "file \"%s\" is larger than the %zu bytes allowed",
                             path, out->max);
        }
        got = read(fd, out->data + out->len, READ_BYTES);
        if (got < 0)
            return error_set_errno(err, ERROR_SYSTEM, "file \"%s\"", path);
        out->len += (size_t)got;
    } while (got > 0);
    return true;
}

/* A rename is durable only when its directory is. */
static bool directory_sync(const char *path)
{
    char copy[PATH_MAX];
    int length = snprintf(copy, sizeof copy, "%s", path);
    CLEANUP(fd_close) int fd = -1;

    if (length < 0 || (size_t)length >= sizeof copy) {
        errno = ENAMETOOLONG;
        return false;
    }
    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && fsync(fd) == 0;
}

static bool bytes_write(int fd, struct slice bytes)
{
    while (bytes.len) {
        ssize_t put = write(fd, bytes.data, bytes.len);

        if (put < 0)
            return false;
        bytes = slice_skip(bytes, (size_t)put);
    }
    return fsync(fd) == 0;
}

bool server_file_write_private(const char *path, struct slice bytes, struct error *err)
{
    char fresh[PATH_MAX];
    int length = snprintf(fresh, sizeof fresh, "%s.new", path);
    CLEANUP(fd_close) int fd = -1;

    if (length < 0 || (size_t)length >= sizeof fresh) {
        errno = ENAMETOOLONG;
        return error_set_errno(err, ERROR_SYSTEM, "file \"%s\"", path);
    }
    unlink(fresh); /* left behind by a crash, perhaps with other rights */
    fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || !bytes_write(fd, bytes) || rename(fresh, path) != 0 || !directory_sync(path)) {
        error_set_errno(err, ERROR_SYSTEM, "file \"%s\"", path);
        unlink(fresh);
        return false;
    }
    return true;
}

bool server_file_make_directory(const char *path, struct error *err)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return error_set_errno(err, ERROR_SYSTEM, "directory \"%s\"", path);
    return true;
}
