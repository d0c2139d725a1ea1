#include "front/mongo/wire/compress.h"

#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

enum { ZSTD_LEVEL = 3 };

enum mongo_compressor mongo_compressor_find(struct slice name)
{
    if (slice_equal(name, SLICE("snappy")))
        return MONGO_COMPRESSOR_SNAPPY;
    if (slice_equal(name, SLICE("zlib")))
        return MONGO_COMPRESSOR_ZLIB;
    if (slice_equal(name, SLICE("zstd")))
        return MONGO_COMPRESSOR_ZSTD;
    return MONGO_COMPRESSOR_NONE;
}

static bool snappy_unpack(struct slice packed, uint8_t *to, size_t len)
{
    size_t said;

    /* it writes as much as its bytes say */
    return snappy_uncompressed_length((const char *)packed.data, packed.len, &said) == SNAPPY_OK &&
           said == len &&
           snappy_uncompress((const char *)packed.data, packed.len, (char *)to, &said) ==
               SNAPPY_OK &&
           said == len;
}

bool mongo_uncompress(enum mongo_compressor compressor, struct slice packed, uint8_t *to,
                      size_t len)
{
    uLongf got = len;

    switch (compressor) {
    case MONGO_COMPRESSOR_NONE:
        if (packed.len != len)
            return false;
        memcpy(to, packed.data, len);
        return true;
    case MONGO_COMPRESSOR_SNAPPY:
        return snappy_unpack(packed, to, len);
    case MONGO_COMPRESSOR_ZLIB:
        return uncompress(to, &got, packed.data, packed.len) == Z_OK && got == len;
    case MONGO_COMPRESSOR_ZSTD:
        return ZSTD_decompress(to, len, packed.data, packed.len) == len;
    }
    return false;
}

static size_t bound_of(enum mongo_compressor compressor, size_t len)
{
    switch (compressor) {
    case MONGO_COMPRESSOR_NONE:
        break;
    case MONGO_COMPRESSOR_SNAPPY:
        return snappy_max_compressed_length(len);
    case MONGO_COMPRESSOR_ZLIB:
        return compressBound(len);
    case MONGO_COMPRESSOR_ZSTD:
        return ZSTD_compressBound(len);
    }
    return len;
}

bool mongo_compress(enum mongo_compressor compressor, struct slice bytes, struct buf *out)
{
    size_t bound = bound_of(compressor, bytes.len);
    uLongf got = bound;
    bool done = false;
    uint8_t *to;

    if (!buf_reserve(out, bound))
        return false;
    to = out->data + out->len;
    switch (compressor) {
    case MONGO_COMPRESSOR_NONE:
        memcpy(to, bytes.data, bytes.len);
        done = true;
        break;
    case MONGO_COMPRESSOR_SNAPPY:
        done = snappy_compress((const char *)bytes.data, bytes.len, (char *)to, &got) == SNAPPY_OK;
        break;
    case MONGO_COMPRESSOR_ZLIB:
        done = compress2(to, &got, bytes.data, bytes.len, Z_DEFAULT_COMPRESSION) == Z_OK;
        break;
    case MONGO_COMPRESSOR_ZSTD:
        got = ZSTD_compress(to, bound, bytes.data, bytes.len, ZSTD_LEVEL);
        done = !ZSTD_isError(got);
        break;
    }
    if (done)
        out->len += got;
    return done;
}
