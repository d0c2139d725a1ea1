/* Account keys: the four secrets that the owners of an account sign requests with.
 *
 * Two may do everything and two may only read; of each sort there are two, so that one can be
 * replaced while clients still use the other. A key is 64 random bytes; people and clients see it
 * as base64. A set of keys is a plain value: whoever holds a copy cleanses it with
 * account_keys_done. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum account_key {
    ACCOUNT_KEY_PRIMARY,
    ACCOUNT_KEY_SECONDARY,
    ACCOUNT_KEY_PRIMARY_READONLY,
    ACCOUNT_KEY_SECONDARY_READONLY,
};

enum {
    ACCOUNT_KEYS = 4,
    ACCOUNT_KEY_BYTES = 64,
    ACCOUNT_KEY_TEXT_SIZE = 89, /* base64 of a key, and a NUL */
};

/* The well-known key of the Cosmos DB emulator, as text: no secret. */
extern const char account_key_emulator[ACCOUNT_KEY_TEXT_SIZE];

struct account_keys {
    uint8_t secrets[ACCOUNT_KEYS][ACCOUNT_KEY_BYTES]; /* by enum account_key */
};

/* Four new ones. */
void account_keys_make(struct account_keys *ret_keys);
/* A new one in place of one of them. */
void account_keys_rotate(struct account_keys *keys, enum account_key which);
void account_keys_done(struct account_keys *keys);
CLEANUP_VALUE_FN(struct account_keys, account_keys_done)

/* "primary", "secondary", "primary-readonly", "secondary-readonly", and back. */
const char *account_key_name(enum account_key which);
NODISCARD bool account_key_named(struct slice name, enum account_key *ret_which);
bool account_key_is_readonly(enum account_key which);

/* Base64, and back. False: the text is not the base64 of exactly one key. */
void account_key_format(const uint8_t secret[ACCOUNT_KEY_BYTES],
                        char ret_text[ACCOUNT_KEY_TEXT_SIZE]);
NODISCARD bool account_key_parse(struct slice text, uint8_t ret_secret[ACCOUNT_KEY_BYTES]);

/* As the object that the account's record keeps: each name with its bytes. Reading checks: a disk
 * is outside. ERROR_STORE_CORRUPT. */
void account_keys_append(struct buf *buf, struct slice property, const struct account_keys *keys);
NODISCARD bool account_keys_read(struct slice object, struct account_keys *ret_keys,
                                 struct error *err);
