/* What the two kinds of authorisation share. */
#pragma once

#include "front/kit/authorize.h"
#include "front/table/call.h"

/* Whether one of the texts was signed with one of the keys that count here: the account's, and with
 * --dev the public keys of the emulators. sig: base64. *ret_readonly: with a key that may only
 * read. */
bool table_signature_check(const struct table_call *call, struct slice sig,
                           const struct front_signed *texts, size_t count, bool *ret_readonly);

/* By a shared access signature, which is there. */
NODISCARD bool table_sas_authorize(struct table_call *call, struct slice sig, struct error *err);
