/* The configuration reader: any bytes are either settings or an error with a message, and texts
 * that were accepted lie within their limits. */
#include "server/settings.h"

#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(settings_free) struct settings *settings = settings_new();
    struct error err = {0};

    if (!settings_read_text(settings, "fuzz.conf", slice_of(data, size), &err)) {
        FUZZ_CHECK(err.code == ERROR_CONFIGURATION && err.message[0]);
        return 0;
    }
    FUZZ_CHECK(settings->node_count <= SETTINGS_NODES_MAX);
    FUZZ_CHECK(settings->net_loops >= 0 && settings->net_loops <= 1024);
    FUZZ_CHECK(settings->net_body_bytes_max >= 65536);
    for (size_t i = 0; i < settings->node_count; i++)
        FUZZ_CHECK(strlen(settings->nodes[i].name) <= SETTINGS_NODE_NAME_MAX);
    return 0;
}
