/* Signatures: HMAC-SHA256, fast enough to be made several times for each request. */
#pragma once

#include "base/slice.h"

enum { REST_SIGNATURE_LEN = 32 };

/* The HMAC of the parts one after the other. */
void rest_signature(struct slice key, const struct slice *parts, size_t count,
                    uint8_t ret_mac[REST_SIGNATURE_LEN]);

/* Whether they are equal, in a time that does not depend on where they differ. */
bool rest_signature_equal(const uint8_t a[REST_SIGNATURE_LEN], const uint8_t b[REST_SIGNATURE_LEN]);
