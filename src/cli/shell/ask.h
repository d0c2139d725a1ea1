/* Ask: one request to the NoSQL API, waited out where the server is short of throughput. */
#pragma once

#include "cli/client.h"

/* Where requests go, shared by everything that sends one. */
struct shell_server {
    struct cli_client *client; /* borrowed */
    int cancel;                /* readable: stop waiting; -1: nothing stops it */
    uint64_t throttled;        /* times the server said 429, which were waited out */
};

/* Any answer but 429, which is tried again after the wait it names until a minute has gone by in
 * waiting. Errors as of cli_client_send; ERROR_CANCELLED. */
NODISCARD bool shell_ask(struct shell_server *server, const struct cli_request *request,
                         struct arena *arena, struct cli_answer *ret_answer, struct error *err);

/* Waits so long, unless cancelled. */
NODISCARD bool shell_wait(const struct shell_server *server, int64_t ms, struct error *err);

/* GET of a resource, or of all pages of a feed of them, where take is called for each. An answer of
 * 400 and above is an error. */
NODISCARD bool shell_get(struct shell_server *server, const char *type, struct slice link,
                         struct arena *arena, struct cli_answer *ret_answer, struct error *err);
NODISCARD bool shell_feed(struct shell_server *server, const char *type, struct slice link,
                          const char *array, struct arena *arena,
                          void (*take)(void *context, struct slice resource), void *context,
                          struct error *err);
