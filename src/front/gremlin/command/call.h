/* Call: one request of a WebSocket client, from its message to its last frame.
 *
 * It is made and read on the loop of its connection (where it is long, on a worker), waits there
 * for its turn, runs there if it is short and otherwise on a worker, and ends on the loop again. */
#pragma once

#include "front/gremlin/command/evaluate.h"

struct gremlin_client;

struct gremlin_call {
    union {
        struct front_call front;
        struct front_call;
    };
    struct gremlin *gremlin;
    struct gremlin_client *client;
    struct gremlin_call *next; /* of a queue */
    struct gremlin_incoming message;
    struct memory_meter *meter; /* its bytes are held there */
    bool text;                  /* it is answered in text frames */

    struct gremlin_heap *heap;
    struct gremlin_request request;
    struct gremlin_asked asked;
    struct gremlin_answering answering;
    struct gremlin_evaluation evaluation;
    struct gremlin_identity identity; /* as it was when the call began to run */
    struct gremlin_session *session;  /* NULL: none */
    bool running;
    bool stranger; /* its key is none any more: the client has to authenticate anew */

    bool refused; /* it cannot be run: */
    uint16_t code;
    struct error error;
};

/* Of a message, which it takes over. */
struct gremlin_call *gremlin_call_new(struct gremlin_client *client,
                                      struct gremlin_incoming *message);
/* Without an answer. On the loop, or where nobody else knows it. */
void gremlin_call_free(struct gremlin_call *call);

/* Reads the message; any thread. Whatever is wrong with it is told when it is answered. */
void gremlin_call_read(struct gremlin_call *call);

/* Runs it, here or on a worker; on the loop. It ends with gremlin_client_ended. */
void gremlin_call_run(struct gremlin_call *call);

/* Answers without running it, and ends it. On the loop. */
void gremlin_call_refuse(struct gremlin_call *call, const struct error *err, uint16_t code);
void gremlin_call_answer(struct gremlin_call *call, uint16_t code);

/* Sends a frame without results, after which others follow: 407. On the loop. */
void gremlin_call_challenge(struct gremlin_call *call);
