/* Signatures: HMAC-SHA256, fast enough to be made several times for each request. */
#pragma once

#include "base/slice.h"

enum { FRONT_SIGNATURE_LEN = 32 };

/* The HMAC of the parts one after the other. */
void front_signature(struct slice key, const struct slice *parts, size_t count,
                     uint8_t ret_mac[FRONT_SIGNATURE_LEN]);

/* Whether they are equal, in a time that does not depend on where they differ. */
bool front_signature_equal(const uint8_t a[FRONT_SIGNATURE_LEN],
                           const uint8_t b[FRONT_SIGNATURE_LEN]);
