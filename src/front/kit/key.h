/* Key: one of an account's keys that a client has shown as it is (SASL PLAIN, HTTP Basic), or has
 * proved to know. A plain value; whoever keeps one cleanses it. */
#pragma once

#include "catalogue/account_keys.h"
#include "front/account.h"

struct front_key {
    uint8_t secret[ACCOUNT_KEY_BYTES];
    bool readonly;
    bool public_key; /* the emulator's, which --dev accepts */
};

enum { FRONT_KEYS_MAX = ACCOUNT_KEYS + 1 };

/* The keys that open the account. dev: the emulator's counts too. The caller cleanses them. That an
 * account is missing is told to the server's owner alone, so read-only keys do not open one. */
size_t front_key_list(const struct front_account *account, bool dev,
                      struct front_key ret_keys[FRONT_KEYS_MAX]);

/* The one whose text is the password, compared in constant time. False: none is. */
NODISCARD bool front_key_find(const struct front_account *account, bool dev, struct slice password,
                              struct front_key *ret_key);

/* Is the key still one of the account's? */
bool front_key_holds(const struct front_key *key, const struct front_account *account);
