#include "front/rest/metadata_query.h"

bool rest_metadata_query(struct rest_call *call, const struct slice *documents UNUSED,
                         size_t count UNUSED, struct slice owner UNUSED, struct slice name UNUSED,
                         struct error *err)
{
    return error_set(err, ERROR_NOT_SUPPORTED,
                     "%s: resources cannot be queried yet; list them instead",
                     call->operation->name);
}
