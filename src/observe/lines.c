#include "observe/lines.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

struct lines {
    char path[4096];
    uint64_t file_bytes_max;
    struct log *log;
    struct thread thread;
    atomic_uint_fast64_t lost;

    struct mutex lock; /* of what follows */
    struct condition filled;
    struct buf waiting;
    uint64_t waiting_count;
    bool stopping, reopen;

    /* the thread's alone */
    int fd;
    uint64_t written;
    bool failing;
};

static int file_open(const char *path)
{
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

static uint64_t file_size(int fd)
{
    struct stat stat;

    return fd >= 0 && fstat(fd, &stat) == 0 ? (uint64_t)stat.st_size : 0;
}

static void file_renew(struct lines *lines)
{
    int fd = file_open(lines->path);

    if (fd < 0)
        return; /* the one it has is better than none */
    if (lines->fd >= 0)
        close(lines->fd);
    lines->fd = fd;
    lines->written = file_size(fd);
}

static void file_rotate(struct lines *lines)
{
    char old[sizeof lines->path + 2];

    snprintf(old, sizeof old, "%s.1", lines->path);
    if (rename(lines->path, old) == 0)
        file_renew(lines);
    else
        lines->written = 0; /* tried again after as much */
}

static bool write_whole(int fd, struct slice bytes)
{
    while (bytes.len) {
        ssize_t count = write(fd, bytes.data, bytes.len);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        bytes = slice_skip(bytes, (size_t)count);
    }
    return true;
}

static void batch_write(struct lines *lines, struct slice bytes, uint64_t count)
{
    if (write_whole(lines->fd, bytes)) {
        lines->failing = false;
        lines->written += bytes.len;
        if (lines->written >= lines->file_bytes_max)
            file_rotate(lines);
        return;
    }
    atomic_fetch_add(&lines->lost, count);
    if (!lines->failing)
        log_event(lines->log, LOG_ERROR, "lines of a log file are lost",
                  LOG_TEXT("file", lines->path), LOG_TEXT("because", strerror(errno)));
    lines->failing = true;
}

static void run(void *context)
{
    struct lines *lines = context;
    bool stopping;

    do {
        CLEANUP(buf_done) struct buf batch;
        bool reopen;
        uint64_t count;

        mutex_lock(&lines->lock);
        while (!lines->waiting.len && !lines->stopping && !lines->reopen)
            condition_wait(&lines->filled, &lines->lock);
        batch = lines->waiting;
        buf_init(&lines->waiting, batch.max);
        count = lines->waiting_count;
        lines->waiting_count = 0;
        stopping = lines->stopping;
        reopen = lines->reopen;
        lines->reopen = false;
        mutex_unlock(&lines->lock);
        if (reopen)
            file_renew(lines);
        if (batch.len)
            batch_write(lines, buf_slice(&batch), count);
    } while (!stopping);
}

bool lines_new(const struct lines_options *options, struct lines **ret_lines, struct error *err)
{
    struct lines *lines;
    int fd;

    if (strlen(options->path) >= sizeof lines->path)
        return error_set(err, ERROR_CONFIGURATION, "the path of a log file is too long");
    fd = file_open(options->path);
    if (fd < 0)
        return error_set_errno(err, ERROR_CONFIGURATION, "log file \"%s\"", options->path);
    lines = MEMORY_NEW(struct lines);
    snprintf(lines->path, sizeof lines->path, "%s", options->path);
    lines->fd = fd;
    lines->written = file_size(fd);
    lines->file_bytes_max = options->file_bytes_max;
    lines->log = options->log;
    mutex_init(&lines->lock);
    condition_init(&lines->filled);
    buf_init(&lines->waiting, options->waiting_bytes_max);
    thread_start(&lines->thread, "log-lines", run, lines);
    *ret_lines = lines;
    return true;
}

void lines_free(struct lines *lines)
{
    if (!lines)
        return;
    WITH_LOCK (&lines->lock) {
        lines->stopping = true;
        condition_signal(&lines->filled);
    }
    thread_join(&lines->thread);
    close(lines->fd);
    buf_done(&lines->waiting);
    condition_done(&lines->filled);
    mutex_done(&lines->lock);
    memory_free(lines);
}

void lines_add(struct lines *lines, struct slice line)
{
    bool taken = false;

    WITH_LOCK (&lines->lock) {
        taken = buf_reserve(&lines->waiting, line.len + 1);
        if (taken) {
            buf_append_slice(&lines->waiting, line);
            buf_append_byte(&lines->waiting, '\n');
            if (lines->waiting_count++ == 0)
                condition_signal(&lines->filled);
        }
    }
    if (!taken)
        atomic_fetch_add(&lines->lost, 1);
}

void lines_reopen(struct lines *lines)
{
    WITH_LOCK (&lines->lock) {
        lines->reopen = true;
        condition_signal(&lines->filled);
    }
}

uint64_t lines_lost(const struct lines *lines)
{
    return atomic_load(&lines->lost);
}
