/* Files: what the portal is made of, packed into the binary when it is built (scripts/portal-pack).
 */
#pragma once

#include "base/slice.h"

#include <stddef.h>

struct portal_file {
    const char *name; /* behind /_orrery/portal/ */
    const char *type;
    const char *etag;    /* of its bytes, with quotes */
    struct slice packed; /* gzip */
    size_t len;          /* unpacked */
};

extern const struct portal_file portal_files[];
extern const size_t portal_file_count;
