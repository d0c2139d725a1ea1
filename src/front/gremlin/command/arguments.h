/* Arguments: what a request asks for, checked, before anything of it runs. */
#pragma once

#include "front/gremlin/command/front.h"
#include "front/gremlin/value/traversal.h"

enum gremlin_op {
    GREMLIN_OP_EVAL,
    GREMLIN_OP_BYTECODE,
    GREMLIN_OP_AUTHENTICATION,
    GREMLIN_OP_CLOSE, /* of a session */
};

enum { GREMLIN_BATCH_MAX = 100000 }; /* results of a frame that may be asked for */

/* All of it is borrowed from the request. */
struct gremlin_asked {
    enum gremlin_op op;
    struct slice script;                       /* of eval */
    const struct gremlin_traversal *traversal; /* of bytecode */
    struct slice source;                       /* what traversals of the script begin with: "g" */
    struct slice alias;                        /* what that stands for; data NULL: not said */
    const struct gremlin_value *bindings;      /* a map; NULL: none */
    struct slice session;                      /* data NULL: none */
    bool open_ended; /* the session is to commit by itself: manageTransaction is false */
    size_t batch;    /* results of one frame */
    int64_t evaluation_ms;
    bool tokens;       /* elements without properties */
    struct slice sasl; /* of authentication: base64 */
};

/* ERROR_BAD_REQUEST with *ret_code 498: no such op; 499: arguments are missing or contradict one
 * another; 401: of an authentication. Limits of the options are kept here. */
NODISCARD bool gremlin_asked_read(const struct gremlin *gremlin,
                                  const struct gremlin_request *request,
                                  struct gremlin_asked *ret_asked, uint16_t *ret_code,
                                  struct error *err);

/* The arguments alone, as HTTP has them; the op is eval. */
NODISCARD bool gremlin_arguments_read(const struct gremlin *gremlin, struct gremlin_value args,
                                      struct gremlin_asked *ret_asked, struct error *err);
