/* The bytes are GraphSON, a value or a request; gremlin_formats.h says what holds. */
#include "fuzz/gremlin_formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    value_try("application/vnd.gremlin-v3.0+json", slice_of(data, size));
    request_try("application/vnd.gremlin-v3.0+json", slice_of(data, size));
    return 0;
}
