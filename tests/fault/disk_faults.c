/* Disk faults: a library preloaded under a program that uses a real RocksDB. It counts what the
 * program does to files below one directory and, at a chosen moment, makes the disk fail:
 *
 *     DISK_FAULTS_ROOT   the directory
 *     DISK_FAULTS_AT     the event (write or sync, counted from 1) at which it happens
 *     DISK_FAULTS_KIND   cut    the power goes: the process ends, and every file loses what was
 *                               written since its last sync; of that, a random part may remain,
 *                               cut anywhere or with blocks that read as zeros, or, where bytes
 *                               were written over others, as those
 *                        error  that call and all later writes and syncs fail with EIO
 *                        full   writes fail with ENOSPC, half done, from then on
 *                        slow   every sync takes 20 ms longer
 *     DISK_FAULTS_SEED   of the choices above
 *
 * A sync is fsync or fdatasync. sync_file_range is no promise and counts as nothing. A file whose
 * directory was not synced since it was made may vanish. */
/* Both names of each call are defined here, so neither may stand for the other. */
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { FILES_MAX = 4096, DESCRIPTORS_MAX = 4096, BLOCK = 4096 };

/* What a file had where it was written over since its last sync. */
struct overwritten {
    struct overwritten *older;
    off_t at;
    size_t len;
    char bytes[];
};

struct file {
    char path[PATH_MAX];
    struct overwritten *overwritten; /* the newest first */
    off_t synced;                    /* bytes that survive */
    bool entry_safe;                 /* its directory was synced after it was made */
    bool gone;
};

enum kind { KIND_NONE, KIND_CUT, KIND_ERROR, KIND_FULL, KIND_SLOW };

static struct {
    pthread_mutex_t lock;
    bool ready;
    char root[PATH_MAX];
    enum kind kind;
    uint64_t at, events, random;
    bool failing;
    struct file files[FILES_MAX];
    int file_count;
    int of_descriptor[DESCRIPTORS_MAX]; /* index + 1; 0: not ours */
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static uint64_t random_step(void)
{
    disk.random ^= disk.random << 13;
    disk.random ^= disk.random >> 7;
    disk.random ^= disk.random << 17;
    return disk.random;
}

static void disk_init(void)
{
    static const char *const kinds[] = {"none", "cut", "error", "full", "slow"};
    const char *root = getenv("DISK_FAULTS_ROOT"), *kind = getenv("DISK_FAULTS_KIND");
    const char *at = getenv("DISK_FAULTS_AT"), *seed = getenv("DISK_FAULTS_SEED");

    if (disk.ready)
        return;
    disk.ready = true;
    if (root)
        snprintf(disk.root, sizeof disk.root, "%s", root);
    for (unsigned i = 0; kind && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kind, kinds[i]) == 0)
            disk.kind = (enum kind)i;
    disk.at = at ? strtoull(at, NULL, 10) : 0;
    disk.random = (seed ? strtoull(seed, NULL, 10) : 0) * 2654435761u + 88172645463325252u;
}

static bool path_is_ours(const char *path)
{
    size_t len = strlen(disk.root);

    return len && strncmp(path, disk.root, len) == 0;
}

static struct file *file_find(const char *path)
{
    for (int i = 0; i < disk.file_count; i++)
        if (!disk.files[i].gone && strcmp(disk.files[i].path, path) == 0)
            return &disk.files[i];
    return NULL;
}

static struct file *file_of(int fd)
{
    if (fd < 0 || fd >= DESCRIPTORS_MAX || !disk.of_descriptor[fd])
        return NULL;
    return &disk.files[disk.of_descriptor[fd] - 1];
}

static void note_open(const char *path, int fd, bool existed, off_t size)
{
    struct file *file;

    if (fd < 0 || fd >= DESCRIPTORS_MAX || !path_is_ours(path))
        return;
    file = file_find(path);
    if (!file && disk.file_count < FILES_MAX) {
        file = &disk.files[disk.file_count++];
        snprintf(file->path, sizeof file->path, "%s", path);
        file->synced = existed ? size : 0;
        file->entry_safe = existed;
    }
    if (file)
        disk.of_descriptor[fd] = (int)(file - disk.files) + 1;
}

/* --- The cut --------------------------------------------------------------------------------- */

/* A hole in place of some blocks: data whose size arrived and whose content did not. */
static void zero_some_blocks(int fd, off_t from, off_t to)
{
    static const char zeros[BLOCK];

    for (off_t at = from / BLOCK * BLOCK; at < to; at += BLOCK) {
        off_t begin = at < from ? from : at, end = at + BLOCK > to ? to : at + BLOCK;

        if (random_step() % 2 && end > begin &&
            REAL(pwrite64)(fd, zeros, (size_t)(end - begin), begin) < 0)
            abort();
    }
}

/* Block by block what was there before comes back, or does not. */
static void restore_some_blocks(int fd, const struct overwritten *newest)
{
    for (const struct overwritten *one = newest; one; one = one->older)
        for (size_t done = 0, len; done < one->len; done += len) {
            len = BLOCK - (size_t)(one->at + (off_t)done) % BLOCK;
            len = len < one->len - done ? len : one->len - done;
            if (random_step() % 2 &&
                REAL(pwrite64)(fd, one->bytes + done, len, one->at + (off_t)done) < 0)
                abort();
        }
}

static void file_lose(struct file *file)
{
    int fd = REAL(open64)(file->path, O_RDWR);
    struct stat status;
    off_t keep;

    if (fd < 0)
        return;
    if (!file->entry_safe && file->synced == 0 && random_step() % 2) {
        REAL(unlink)(file->path);
        REAL(close)(fd);
        return;
    }
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > file->synced) {
        uint64_t fate = random_step() % 4;

        keep = file->synced;
        if (fate == 3)
            keep = status.st_size;
        else if (fate >= 1)
            keep += (off_t)(random_step() % (uint64_t)(status.st_size - file->synced + 1));
        if (REAL(ftruncate64)(fd, keep) != 0)
            abort();
        if (fate == 3)
            zero_some_blocks(fd, file->synced, keep);
    }
    restore_some_blocks(fd, file->overwritten);
    REAL(close)(fd);
}

static void power_cut(void)
{
    for (int i = 0; i < disk.file_count; i++)
        if (!disk.files[i].gone)
            file_lose(&disk.files[i]);
    _exit(99);
}

/* One write or sync of ours. False: it must fail, with errno set. */
static bool event(void)
{
    disk.events++;
    if (disk.kind == KIND_CUT && disk.events == disk.at)
        power_cut();
    if ((disk.kind == KIND_ERROR || disk.kind == KIND_FULL) && disk.events >= disk.at)
        disk.failing = true;
    return !disk.failing;
}

/* --- What is intercepted --------------------------------------------------------------------- */

static int open_ours(const char *path, int flags, mode_t mode)
{
    struct stat status;
    bool existed;
    int fd;

    pthread_mutex_lock(&disk.lock);
    disk_init();
    existed = stat(path, &status) == 0;
    fd = REAL(open64)(path, flags, mode);
    note_open(path, fd, existed && !(flags & O_TRUNC), existed ? status.st_size : 0);
    pthread_mutex_unlock(&disk.lock);
    return fd;
}

#define MODE_OF(flags, mode)                                                                       \
    do {                                                                                           \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode = (flags) & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;                         \
        va_end(args);                                                                              \
    } while (0)

int open(const char *path, int flags, ...)
{
    mode_t mode;

    MODE_OF(flags, mode);
    return open_ours(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    mode_t mode;

    MODE_OF(flags, mode);
    return open_ours(path, flags, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
    FILE *stream = REAL(fopen64)(path, mode);

    pthread_mutex_lock(&disk.lock);
    disk_init();
    if (stream && mode[0] != 'r')
        note_open(path, fileno(stream), false, 0);
    pthread_mutex_unlock(&disk.lock);
    return stream;
}

FILE *fopen(const char *path, const char *mode)
{
    return fopen64(path, mode);
}

int close(int fd)
{
    pthread_mutex_lock(&disk.lock);
    if (fd >= 0 && fd < DESCRIPTORS_MAX)
        disk.of_descriptor[fd] = 0;
    pthread_mutex_unlock(&disk.lock);
    return REAL(close)(fd);
}

/* Of what is about to be written, the part that lies within what is safe. */
static void note_overwriting(int fd, struct file *file, size_t count, off_t at)
{
    struct overwritten *one;
    ssize_t len;

    if (at < 0)
        at = lseek(fd, 0, SEEK_CUR);
    if (at < 0 || at >= file->synced)
        return;
    if ((off_t)count > file->synced - at)
        count = (size_t)(file->synced - at);
    one = malloc(sizeof *one + count);
    fd = REAL(open64)(file->path, O_RDONLY | O_CLOEXEC); /* ours may be open for writing alone */
    len = one && fd >= 0 ? pread(fd, one->bytes, count, at) : -1;
    if (len < 0)
        abort();
    REAL(close)(fd);
    one->older = file->overwritten;
    one->at = at;
    one->len = (size_t)len;
    file->overwritten = one;
}

static void forget_overwriting(struct file *file)
{
    while (file->overwritten) {
        struct overwritten *older = file->overwritten->older;

        free(file->overwritten);
        file->overwritten = older;
    }
}

/* Does the write, or half of it, or none, as the disk allows. */
static ssize_t write_ours(int fd, const void *bytes, size_t count, off_t at)
{
    ssize_t done;

    pthread_mutex_lock(&disk.lock);
    if (file_of(fd) && !event()) {
        if (disk.kind == KIND_FULL && count > 1 && at < 0 && disk.events == disk.at) {
            done = REAL(write)(fd, bytes, count / 2);
        } else {
            errno = disk.kind == KIND_FULL ? ENOSPC : EIO;
            done = -1;
        }
    } else {
        if (file_of(fd) && disk.kind == KIND_CUT)
            note_overwriting(fd, file_of(fd), count, at);
        done = at < 0 ? REAL(write)(fd, bytes, count) : REAL(pwrite64)(fd, bytes, count, at);
    }
    pthread_mutex_unlock(&disk.lock);
    return done;
}

ssize_t write(int fd, const void *bytes, size_t count)
{
    if (fd >= DESCRIPTORS_MAX || fd < 0 || !disk.of_descriptor[fd])
        return REAL(write)(fd, bytes, count);
    return write_ours(fd, bytes, count, -1);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at)
{
    return write_ours(fd, bytes, count, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
    return write_ours(fd, bytes, count, at);
}

static void note_sync(int fd, struct file *file)
{
    struct stat status;
    size_t len;

    if (fstat(fd, &status) != 0)
        return;
    if (!S_ISDIR(status.st_mode)) {
        file->synced = status.st_size;
        forget_overwriting(file);
        return;
    }
    len = strlen(file->path);
    for (int i = 0; i < disk.file_count; i++)
        if (strncmp(disk.files[i].path, file->path, len) == 0)
            disk.files[i].entry_safe = true;
}

static int sync_ours(int fd, int (*real)(int))
{
    struct file *file;
    int result;

    pthread_mutex_lock(&disk.lock);
    disk_init();
    file = file_of(fd);
    if (file && !event()) {
        /* A full disk can still sync what is there. */
        errno = EIO;
        result = disk.kind == KIND_FULL ? real(fd) : -1;
    } else {
        result = real(fd);
        if (result == 0 && file)
            note_sync(fd, file);
    }
    if (file && disk.kind == KIND_SLOW)
        nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
    pthread_mutex_unlock(&disk.lock);
    return result;
}

int fsync(int fd)
{
    return sync_ours(fd, REAL(fsync));
}

int fdatasync(int fd)
{
    return sync_ours(fd, REAL(fdatasync));
}

static void note_shorter(struct file *file, off_t size)
{
    if (file && file->synced > size)
        file->synced = size;
}

int ftruncate64(int fd, off64_t size)
{
    int result = REAL(ftruncate64)(fd, size);

    pthread_mutex_lock(&disk.lock);
    if (result == 0)
        note_shorter(file_of(fd), size);
    pthread_mutex_unlock(&disk.lock);
    return result;
}

int ftruncate(int fd, off_t size)
{
    return ftruncate64(fd, size);
}

int unlink(const char *path)
{
    struct file *file;

    pthread_mutex_lock(&disk.lock);
    file = file_find(path);
    if (file)
        file->gone = true;
    pthread_mutex_unlock(&disk.lock);
    return REAL(unlink)(path);
}

/* The new name belongs to the old file; whoever had it is gone. A rename itself is taken to be
 * safe once done: undoing one needs the directory's sync, which its users all do next. */
int rename(const char *from, const char *to)
{
    struct file *file;
    int result;

    pthread_mutex_lock(&disk.lock);
    result = REAL(rename)(from, to);
    if (result == 0) {
        file = file_find(to);
        if (file)
            file->gone = true;
        file = file_find(from);
        if (file)
            snprintf(file->path, sizeof file->path, "%s", to);
    }
    pthread_mutex_unlock(&disk.lock);
    return result;
}
