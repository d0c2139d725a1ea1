/* Answers: status line to last byte, the same way for every operation. */
#pragma once

#include "front/rest/call.h"

/* The service's words for a request that is too large as a whole, which libraries look for. */
#define REST_TOO_LARGE_TEXT "Message: {\"Errors\":[\"Request size is too large\"]}"

enum {
    REST_LINES_MAX = 64 * 1024,
    REST_BODY_MAX = 64 * 1024 * 1024, /* an operation keeps its own, far smaller limits */
};

/* Takes over the activity id the client sent, or makes one that differs from all others of the
 * server: of a secret it began with and of the number of the request. */
void rest_answer_activity(struct rest_call *call, uint64_t secret, uint64_t number);

/* Sends what the call has gathered, which is the end of the call. */
void rest_answer_send(struct rest_call *call);

/* Sends an error with the charge collected so far; 304 has no body, everything else a JSON one. */
void rest_answer_send_error(struct rest_call *call, const struct error *err);

/* The name of a status in error bodies: "NotFound". */
const char *rest_answer_code(uint16_t status);
