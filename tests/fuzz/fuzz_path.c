/* A path that is taken prints in a form that is taken as well and prints the same. */
#include "document/path.h"
#include "fuzz/fuzz.h"

static bool print(struct slice text, enum document_path_use use, struct buf *buf)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_path path;
    struct error err;

    if (!document_path_parse(text, use, arena, &path, &err))
        return false;
    document_path_append(&path, buf);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int use = DOCUMENT_PATH_KEY; use <= DOCUMENT_PATH_INDEX; use++) {
        CLEANUP(buf_done) struct buf first, second;

        buf_init(&first, BUF_DEFAULT_MAX);
        buf_init(&second, BUF_DEFAULT_MAX);
        /* A canonical path can be longer, by its escapes, than the limit. */
        if (!print(slice_of(data, size), use, &first) || first.len > DOCUMENT_PATH_BYTES_MAX)
            continue;
        FUZZ_CHECK(print(buf_slice(&first), use, &second));
        FUZZ_CHECK(slice_equal(buf_slice(&first), buf_slice(&second)));
        /* What a key may hold, an index path may hold too. */
        if (use == DOCUMENT_PATH_KEY)
            FUZZ_CHECK(print(buf_slice(&first), DOCUMENT_PATH_INDEX, &second));
    }
    return 0;
}
