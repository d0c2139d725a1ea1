/* Scratch: a temporary directory of one test, removed with all in it. */
#pragma once

#include "base/attrs.h"

struct scratch {
    char path[64];
};

/* Ends the test program when the directory cannot be made. */
void scratch_init(struct scratch *scratch);
void scratch_done(struct scratch *scratch);
CLEANUP_VALUE_FN(struct scratch, scratch_done)

/* Removes a directory and all in it; nothing happens when it is not there. */
void scratch_remove(const char *path);

/* PATH/name on a ring of static buffers: good for the next few calls of this thread. */
const char *scratch_path(const struct scratch *scratch, const char *name);
