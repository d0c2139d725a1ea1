#include "base/directory.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

enum { WALK_DESCRIPTORS = 16 };

static int entry_remove(const char *path, const struct stat *status UNUSED, int kind UNUSED,
                        struct FTW *walk UNUSED)
{
    return remove(path);
}

bool directory_remove(const char *path, enum error_code code, struct error *err)
{
    struct stat status;

    return lstat(path, &status) != 0 ||
           nftw(path, entry_remove, WALK_DESCRIPTORS, FTW_DEPTH | FTW_PHYS) == 0 ||
           error_set_errno(err, code, "removing \"%s\"", path);
}
