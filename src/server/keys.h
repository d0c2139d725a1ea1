/* Keys: the secrets clients sign their requests with.
 *
 * One primary key, made at random at the first start and kept in the file `keys` beside the data,
 * readable by its owner only. Without a directory it is made anew each time. In development mode
 * the public emulator key stands in its place; server/ sees to it that this stays on loopback. */
#pragma once

#include "base/error.h"

enum {
    KEYS_SECRET_BYTES = 64,
    KEYS_TEXT_SIZE = 89, /* base64 of a secret, and a NUL */
};

/* The well-known key of the Cosmos DB emulator: no secret. */
extern const char keys_emulator[KEYS_TEXT_SIZE];

struct keys {
    char primary[KEYS_TEXT_SIZE];
    char path[256]; /* the file it is kept in; empty: none */
};

/* directory may be NULL. ERROR_SYSTEM: the file cannot be read or written; ERROR_CONFIGURATION: it
 * holds something else or others may read it. */
NODISCARD bool keys_load(const char *directory, struct keys *ret_keys, struct error *err);
