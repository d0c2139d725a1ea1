/* The bytes are GraphBinary, a value or a request; gremlin_formats.h says what holds. */
#include "fuzz/gremlin_formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    value_try("application/vnd.graphbinary-v1.0", slice_of(data, size));
    request_try("application/vnd.graphbinary-v1.0", slice_of(data, size));
    return 0;
}
