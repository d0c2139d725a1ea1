/* Message: the frames of protocol.h as the structures of script.h, on the server's side.
 *
 * Reading takes nothing a worker says on trust: counts, lengths, verbs and outcomes are within
 * their bounds and all text is UTF-8, or the frame is refused. JSON is only claimed to be JSON;
 * whoever uses it parses it. */
#pragma once

#include "script/protocol.h"
#include "script/script.h"

struct message_run_limits {
    uint32_t time_ms, accept_ms; /* from now */
    uint32_t output_max, log_max;
};

/* Append a whole frame. False: it is larger than a frame may be, and buf is as it was. */
NODISCARD bool message_put_run(struct buf *buf, const struct script_request *request,
                               const struct message_run_limits *limits);
NODISCARD bool message_put_calls(struct buf *buf, const struct script_function *function,
                                 const struct document_value *values, size_t width, size_t rows,
                                 const struct message_run_limits *limits);

/* Puts as many of the answers into a frame as fit, but one at least, and gives their number; 0:
 * not even one fits. */
size_t message_put_answers(struct buf *buf, const struct script_answer *answers, size_t count,
                           bool accepting);

struct message_ready {
    uint32_t version, hidden;
};
NODISCARD bool message_get_ready(struct slice frame, struct message_ready *ret_ready);

/* Operations of a frame, at most SCRIPT_OPERATIONS_MAX; slices point into it. */
NODISCARD bool message_get_operations(struct slice frame, struct script_operation *ret_operations,
                                      size_t *ret_count);

struct message_done {
    enum protocol_outcome outcome;
    bool log_cut, retire, uncompiled;
    int32_t number;
    struct slice message, stack; /* all of them into the frame */
    struct slice body, request_body, request_values, response_values, log;
};
NODISCARD bool message_get_done(struct slice frame, struct message_done *ret_done);

/* The results of calls: JSON of the worker to values in arena. ERROR_SCRIPT_CRASHED: it is not
 * what was asked for. */
NODISCARD bool message_get_rows(struct slice json, size_t rows, struct arena *arena,
                                struct document_value *ret_values, struct error *err);

/* The members of a JSON object as named values in arena. */
NODISCARD bool message_get_values(struct slice json, struct arena *arena,
                                  const struct script_value **ret_values, size_t *ret_count,
                                  struct error *err);
