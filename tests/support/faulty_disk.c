#include "support/faulty_disk.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static int disk_open(void *self, const char *directory UNUSED)
{
    struct faulty_disk *disk = self;

    if (disk->cannot_open) {
        errno = EACCES;
        return -1;
    }
    disk->files++;
    return memfd_create("spill", MFD_CLOEXEC);
}

static ssize_t disk_write(void *self, int fd, const void *bytes, size_t len, off_t at)
{
    struct faulty_disk *disk = self;
    ssize_t written;

    if (disk->full_at && disk->written >= disk->full_at) {
        errno = ENOSPC;
        return -1;
    }
    if (disk->full_at)
        len = (size_t)MIN((uint64_t)len, disk->full_at - disk->written);
    if (disk->write_max)
        len = MIN(len, disk->write_max);
    written = pwrite(fd, bytes, len, at);
    disk->written += written > 0 ? (uint64_t)written : 0;
    return written;
}

static ssize_t disk_read(void *self, int fd, void *bytes, size_t len, off_t at)
{
    struct faulty_disk *disk = self;

    if (++disk->reads == disk->reads_until) {
        errno = EIO;
        return -1;
    }
    return pread(fd, bytes, disk->write_max ? MIN(len, disk->write_max) : len, at);
}

void faulty_disk_init(struct faulty_disk *disk)
{
    *disk = (struct faulty_disk){
        .io = {.open = disk_open, .write = disk_write, .read = disk_read, .self = disk}};
}

struct query_spill *faulty_disk_spill(struct faulty_disk *disk, uint64_t bytes_max)
{
    return query_spill_new(&(struct query_spill_options){.directory = "",
                                                         .query_bytes_max = bytes_max,
                                                         .total_bytes_max = bytes_max,
                                                         .io = &disk->io});
}
