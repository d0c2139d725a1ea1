/* Compression of messages: zlib, zstd and snappy. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "front/mongo/wire/message.h"

/* The compressor of that name; MONGO_COMPRESSOR_NONE: we have none. */
enum mongo_compressor mongo_compressor_find(struct slice name);

/* Unpacks into exactly len bytes at `to`. False: the bytes are not of this kind, or of another
 * length. */
NODISCARD bool mongo_uncompress(enum mongo_compressor compressor, struct slice packed, uint8_t *to,
                                size_t len);

/* Appends the packed bytes. False: there is no room for them in out. */
NODISCARD bool mongo_compress(enum mongo_compressor compressor, struct slice bytes,
                              struct buf *out);
