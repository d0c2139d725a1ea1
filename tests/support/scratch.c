#include "support/scratch.h"

#include <ftw.h>
#include <unistd.h>

void scratch_init(struct scratch *scratch)
{
    const char *base = getenv("TMPDIR");

    snprintf(scratch->path, sizeof scratch->path, "%s/orrery-test-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(scratch->path)) {
        perror("making a scratch directory");
        abort();
    }
}

static int remove_one(const char *path, const struct stat *status UNUSED, int kind UNUSED,
                      struct FTW *place UNUSED)
{
    return remove(path);
}

void scratch_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void scratch_done(struct scratch *scratch)
{
    if (scratch->path[0])
        scratch_remove(scratch->path);
    scratch->path[0] = '\0';
}

const char *scratch_path(const struct scratch *scratch, const char *name)
{
    static __thread char ring[8][256];
    static __thread unsigned at;
    char *path = ring[at++ % ARRAY_LEN(ring)];

    snprintf(path, sizeof ring[0], "%s/%s", scratch->path, name);
    return path;
}
