/* Keys: the secrets of the default account, which clients sign their requests with.
 *
 * The catalogue keeps them. Beside the data, if there is a directory, the file `keys` is a copy for
 * the owner to read: mode 0600, one `name key` a line. Whoever rotates a key writes it anew. In
 * development mode the public emulator key is accepted besides; server/ sees to it that this stays
 * on loopback. The seal is a secret of the server's own, made once, that rotating a key leaves
 * alone: a client in the middle of a feed goes on. */
#pragma once

#include "catalogue/catalogue.h"
#include "server/settings.h"

enum { KEYS_SEAL_BYTES = 32 };

struct keys {
    char primary[ACCOUNT_KEY_TEXT_SIZE]; /* as text */
    char path[256];                      /* of the file; empty: there is none */
    bool made;                           /* by this start: nobody has seen them before */
    uint8_t seal[KEYS_SEAL_BYTES];       /* what the server seals continuations with; never shown */
};

/* Makes sure that the default account is there and has keys, and that the file, if there is a
 * directory (else NULL), shows them. An account without keys gets those of a file that is there
 * already, from before the catalogue kept them, and new ones for those it does not name.
 *
 * ERROR_SYSTEM: the file cannot be read or written; ERROR_CONFIGURATION: others may read it, or it
 * holds something else at a time when it is needed. What the catalogue may answer. */
NODISCARD bool keys_load(struct catalogue *catalogue, const char *directory, struct keys *ret_keys,
                         struct error *err);

/* The keys of an account as the catalogue of these nodes has them, without a server: which must not
 * run. ERROR_NOT_FOUND: there is no such account, or it has no keys of its own. */
NODISCARD bool keys_read_stored(const struct settings *settings, struct slice account,
                                struct account_keys *ret_keys, struct error *err);

/* Writes the file, whole or not at all; nothing happens if it says the same already. ERROR_SYSTEM.
 */
NODISCARD bool keys_write_file(const char *path, const struct account_keys *keys,
                               struct error *err);
