/* Answers: status line to last byte, the same way for every operation; and errors with their codes
 * and words. */
#pragma once

#include "front/table/call.h"

/* For front_call_kind: sends what the call has gathered; or an error, as JSON, or as XML where the
 * operation speaks it. */
void table_answer_send(struct front_call *call);
void table_answer_refuse(struct front_call *call, const struct error *err);

/* One row of codes.def. */
struct table_code {
    const char *code;
    uint16_t status;
    const char *words;
};

/* The row of an error; never NULL. */
const struct table_code *table_code_of(enum error_code code);

/* Appends {"odata.error":...} for an error; index: of the operation in its batch, or -1. */
void table_error_append(struct table_call *call, const struct error *err, int index,
                        struct buf *out);

/* application/json;odata=...;streaming=true;charset=utf-8 of the level. */
const char *table_content_type(enum table_level level);
