/* A closed node becomes what a copy of it was.
 *
 *     DIR/store.fresh   the copy's store, being linked
 *     DIR/store.past    the store that is replaced
 *
 * Tables of RocksDB never change once written, so they are linked and cost nothing; the few small
 * files beside them (logs, manifest) are copied. The fresh store is complete and synced before the
 * present one makes way. Cut off anywhere, the same call again ends well: where there is no store
 * but a past one, the fresh one was complete; else it is made anew. The copy stays as it is. */
#include "engine/rocks/rocks_private.h"

#include "base/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_BYTES = 64 * 1024 };

struct resetting {
    const char *store, *fresh, *past, *copy; /* paths; copy: the store of the copy */
};

static bool is_there(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0;
}

static bool bytes_copy(int from, int to)
{
    uint8_t bytes[COPY_BYTES];
    ssize_t got;

    while ((got = read(from, bytes, sizeof bytes)) > 0)
        if (write(to, bytes, (size_t)got) != got)
            return false;
    return got == 0 && fsync(to) == 0;
}

static bool file_copy(const char *from, const char *to, struct error *err)
{
    int source = open(from, O_RDONLY | O_CLOEXEC);
    int target = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool copied = source >= 0 && target >= 0 && bytes_copy(source, target);

    if (!copied)
        error_set_errno(err, ERROR_STORE_IO, "copying \"%s\"", from);
    if (source >= 0)
        close(source);
    if (target >= 0)
        close(target);
    return copied;
}

static bool name_is_table(const char *name)
{
    size_t len = strlen(name);

    return len > 4 && strcmp(name + len - 4, ".sst") == 0;
}

static bool entry_take(const struct resetting *resetting, const char *name, struct arena *arena,
                       struct error *err)
{
    const char *from = arena_text(arena, arena_printf(arena, "%s/%s", resetting->copy, name));
    const char *to = arena_text(arena, arena_printf(arena, "%s/%s", resetting->fresh, name));

    if (name_is_table(name))
        return link(from, to) == 0 || error_set_errno(err, ERROR_STORE_IO, "linking \"%s\"", from);
    return file_copy(from, to, err);
}

static bool entries_take(const struct resetting *resetting, DIR *listing, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct dirent *entry;

    while ((entry = readdir(listing)) != NULL)
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "LOCK") != 0 &&
            !entry_take(resetting, entry->d_name, arena, err))
            return false;
    return true;
}

static bool fresh_make(const struct resetting *resetting, struct error *err)
{
    DIR *listing;
    bool done;

    if (!directory_remove(resetting->fresh, ERROR_STORE_IO, err))
        return false;
    if (mkdir(resetting->fresh, 0700) != 0)
        return error_set_errno(err, ERROR_STORE_IO, "making \"%s\"", resetting->fresh);
    listing = opendir(resetting->copy);
    if (!listing)
        return error_set_errno(err, ERROR_STORE_IO, "reading \"%s\"", resetting->copy);
    done = entries_take(resetting, listing, err);
    closedir(listing);
    return done && rocks_directory_sync(resetting->fresh, err);
}

static bool past_make_way(const struct resetting *resetting, struct error *err)
{
    if (!directory_remove(resetting->past, ERROR_STORE_IO, err))
        return false;
    return rename(resetting->store, resetting->past) == 0 ||
           error_set_errno(err, ERROR_STORE_IO, "renaming \"%s\"", resetting->store);
}

static bool stores_exchange(const struct rocks_directory *directory,
                            const struct resetting *resetting, struct error *err)
{
    const char *acknowledged = rocks_directory_acknowledged(directory);

    if (is_there(resetting->store) &&
        (!fresh_make(resetting, err) || !past_make_way(resetting, err)))
        return false;
    if (unlink(acknowledged) != 0 && errno != ENOENT)
        return error_set_errno(err, ERROR_STORE_IO, "removing \"%s\"", acknowledged);
    if (rename(resetting->fresh, resetting->store) != 0)
        return error_set_errno(err, ERROR_STORE_IO, "renaming \"%s\"", resetting->fresh);
    return rocks_directory_sync(rocks_directory_path(directory), err) &&
           directory_remove(resetting->past, ERROR_STORE_IO, err);
}

bool rocks_reset(struct slice url, struct slice copy, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(rocks_directory_close) struct rocks_directory *directory = NULL;
    const char *marker =
        arena_text(arena, arena_printf(arena, "%.*s/orrery.node", SLICE_ARG(copy)));
    struct slice path;
    struct resetting resetting;

    if (!rocks_url_path(url, &path, err))
        return false;
    if (!is_there(marker))
        return error_set(err, ERROR_NOT_FOUND, "\"%.*s\" is no copy of a node", SLICE_ARG(copy));
    if (!rocks_directory_open_for_reset(path, &directory, err))
        return false;
    resetting = (struct resetting){
        .store = rocks_directory_store(directory),
        .fresh = arena_text(arena, arena_printf(arena, "%.*s/store.fresh", SLICE_ARG(path))),
        .past = arena_text(arena, arena_printf(arena, "%.*s/store.past", SLICE_ARG(path))),
        .copy = arena_text(arena, arena_printf(arena, "%.*s/store", SLICE_ARG(copy))),
    };
    return stores_exchange(directory, &resetting, err);
}
