#include "server/machine.h"

#include "base/attrs.h"

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/* The root of the control groups as the process sees it, which within a container is its own. */
static const char group_path[] = "/sys/fs/cgroup/memory.max";

static size_t group_memory(void)
{
    FILE *file = fopen(group_path, "re");
    unsigned long long bytes;
    int found;

    if (!file)
        return SIZE_MAX;
    found = fscanf(file, "%llu", &bytes); /* or the word max */
    fclose(file);
    return found == 1 ? (size_t)bytes : SIZE_MAX;
}

size_t machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    size_t physical = pages > 0 && size > 0 ? (size_t)pages * (size_t)size : SIZE_MAX;

    return MIN(physical, group_memory());
}
