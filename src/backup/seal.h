/* Seal: the encryption of a backup, with a key that its owner keeps.
 *
 * The key is made of a key file (HKDF-SHA-256) or of a passphrase (scrypt), with a salt of the
 * chain's own. What is sealed is AES-256-GCM:
 *
 *     12  nonce, at random
 *     16  tag
 *     ..  the bytes
 *
 * under the name of where it belongs, so that nothing can be put in the place of something else. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum {
    BACKUP_KEY_LEN = 32,
    BACKUP_SALT_LEN = 16,
    BACKUP_CHECK_LEN = 32,
    BACKUP_SEAL_EXTRA = 28,
    BACKUP_SECRET_MAX = 64 * 1024,
};

enum backup_seal_kind { BACKUP_SEAL_NONE, BACKUP_SEAL_KEY_FILE, BACKUP_SEAL_PASSPHRASE };

/* "none", "key-file", "passphrase"; and back. */
const char *backup_seal_name(enum backup_seal_kind kind);
NODISCARD bool backup_seal_parse(struct slice name, enum backup_seal_kind *ret_kind);

struct backup_seal {
    enum backup_seal_kind kind;
    uint8_t salt[BACKUP_SALT_LEN];
    uint8_t key[BACKUP_KEY_LEN];
};

/* secret: the content of the key file, at least 16 bytes, or the passphrase, at least 8.
 * ERROR_BAD_REQUEST. */
NODISCARD bool backup_seal_init(struct backup_seal *seal, enum backup_seal_kind kind,
                                const uint8_t salt[BACKUP_SALT_LEN], struct slice secret,
                                struct error *err);
void backup_seal_done(struct backup_seal *seal); /* cleanses it */
CLEANUP_VALUE_FN(struct backup_seal, backup_seal_done)

/* What only the key can tell of these bytes: HMAC-SHA-256. */
void backup_seal_check(const struct backup_seal *seal, struct slice bytes,
                       uint8_t ret_check[BACKUP_CHECK_LEN]);

/* Append; of kind NONE the bytes as they are. ERROR_STORE_CORRUPT: they are not what was sealed,
 * or not here. */
void backup_seal_close(const struct backup_seal *seal, struct slice name, struct slice bytes,
                       struct buf *out);
NODISCARD bool backup_seal_open(const struct backup_seal *seal, struct slice name,
                                struct slice sealed, struct buf *out, struct error *err);
