/* Seals: bytes of the server in a client's hands, such as the place where a query goes on.
 *
 * They carry a MAC of this server, so that a client can neither make nor change them, nor use them
 * for another container or purpose. The text is base64, safe in headers. It stays good over
 * restarts, as long as the secret does. */
#pragma once

#include "base/arena.h"
#include "base/slice.h"

/* The bytes that fit into 1 KB of text, the least a client may limit a continuation to. */
enum { FRONT_SEAL_BYTES_MAX = 740, FRONT_SEAL_TEXT_MAX = 1024 };

/* What it is sealed with and for. */
struct front_seal {
    struct slice secret;
    struct slice rid;     /* of the container */
    struct slice purpose; /* a word, with a version */
};

/* At most FRONT_SEAL_BYTES_MAX bytes. The text is in the arena. */
struct slice front_seal_close(const struct front_seal *seal, struct slice bytes,
                              struct arena *arena);

/* False: it was not sealed here for this. The bytes are in the arena. */
NODISCARD bool front_seal_open(const struct front_seal *seal, struct slice text,
                               struct arena *arena, struct slice *ret_bytes);

/* The bytes of base64 text with its padding, in the arena. False: it is none. */
NODISCARD bool front_base64_decode(struct slice text, struct arena *arena, struct slice *ret_bytes);
