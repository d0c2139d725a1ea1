/* Continuations: where a feed or query goes on, in the client's hands between two pages.
 *
 * A continuation is what the operation wants to find again, under a MAC of this server, so that a
 * client can neither make nor change one, nor use it on another container or for another purpose.
 * It is opaque text, safe in headers. It stays good over restarts, as long as the account's primary
 * key is not replaced. */
#pragma once

#include "front/rest/call.h"
#include "front/seal.h"

/* The bytes that fit into 1 KB of text, the least a client may limit a continuation to. */
enum {
    REST_CONTINUATION_BYTES_MAX = FRONT_SEAL_BYTES_MAX,
    REST_CONTINUATION_TEXT_MAX = FRONT_SEAL_TEXT_MAX,
};

/* purpose: a word for what it continues, with a version; rid: of the container. At most
 * REST_CONTINUATION_BYTES_MAX bytes. The text is in the arena. */
struct slice rest_continuation_seal(struct rest_call *call, struct slice rid, struct slice purpose,
                                    struct slice bytes);

/* ERROR_BAD_CONTINUATION: it was not sealed here for this. The bytes are in the arena. */
NODISCARD bool rest_continuation_open(struct rest_call *call, struct slice rid,
                                      struct slice purpose, struct slice text,
                                      struct slice *ret_bytes, struct error *err);

/* Adds x-ms-continuation to the answer. */
void rest_continuation_answer(struct rest_call *call, struct slice text);

/* Checks x-ms-documentdb-responsecontinuationtokenlimitinkb. ERROR_BAD_REQUEST. */
NODISCARD bool rest_continuation_limit_check(const struct rest_call *call, struct error *err);
